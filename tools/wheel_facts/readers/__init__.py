"""A reader a program, and where the program's releases come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wheel_facts.history import Release
from wheel_facts.package import Package
from wheel_facts.readers import accelerate, axolotl, llamafactory, soup, transformers, trl


@dataclass(frozen=True)
class Program:
    """A program's distribution, the package in it, its reader, and the tables without which a release is not read.

    The reader's docstring is the `source` of the facts file.
    """

    distribution: str
    package: str
    read: Callable[[Package], Release]
    essential: tuple[str, ...]


PROGRAMS: Mapping[str, Program] = {
    "accelerate": Program(
        "accelerate", "accelerate", accelerate.read, ("config", "launch_flags", "fsdp_config", "fsdp_plugin")
    ),
    "axolotl": Program("axolotl", "axolotl", axolotl.read, ("AxolotlInputConfig",)),
    "llamafactory": Program(
        "llamafactory", "llamafactory", llamafactory.read, ("ModelArguments", "FinetuningArguments")
    ),
    "soup": Program("soup-cli", "soup_cli", soup.read, ("SoupConfig", "TrainingConfig", "DataConfig")),
    "transformers": Program("transformers", "transformers", transformers.read, ("TrainingArguments", "fsdp_config")),
    "trl": Program("trl", "trl", trl.read, ("SFTConfig", "ModelConfig", "ScriptArguments")),
}
