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

    The names of these are regular expressions, since releases differ. The reader's docstring is the `source` of the
    facts file.
    """

    distribution: str
    package: str
    read: Callable[[Package], Release]
    essential: tuple[str, ...]
    behaviour: str
    """The modules whose code claims rest on, as a regular expression."""


PROGRAMS: Mapping[str, Program] = {
    "accelerate": Program(
        "accelerate",
        "accelerate",
        accelerate.read,
        ("config", "launch_flags", "fsdp_config", "fsdp_plugin"),
        r"(commands|utils)/.+\.py|(accelerator|state|parallelism_config)\.py",
    ),
    "axolotl": Program(
        "axolotl",
        "axolotl",
        axolotl.read,
        ("AxolotlInputConfig",),
        r"utils/schemas/.+\.py|utils/config/.+\.py|utils/trainer\.py",
    ),
    "llamafactory": Program(
        "llamafactory",
        "llamafactory",
        llamafactory.read,
        ("ModelArguments", "FinetuningArguments"),
        r"hparams/.+\.py|model/.+\.py|train/tuner\.py",
    ),
    "soup": Program(
        "soup-cli",
        "soup_cli",
        soup.read,
        ("SoupConfig", "TrainingConfig", "DataConfig"),
        r"(config|utils)/.+\.py|commands/train\.py",
    ),
    "transformers": Program(
        "transformers",
        "transformers",
        transformers.read,
        ("TrainingArguments", "fsdp_config"),
        r"(training_args|trainer)\w*\.py|hf_argparser\.py|integrations/.+\.py",
    ),
    "trl": Program(
        "trl",
        "trl",
        trl.read,
        ("ModelConfig", "(SFT)?ScriptArguments"),
        r"(commands|scripts|cli)/.+\.py|trainer/\w+config\.py",
    ),
}
