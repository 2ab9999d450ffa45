"""The readers: one for each program, with its distribution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from wheel_facts.history import Release
from wheel_facts.package import Package
from wheel_facts.readers import accelerate, axolotl, deepspeed, llamafactory, soup, transformers, trl


@dataclass(frozen=True)
class Program:
    """A program's distribution, the package in it, its reader, and the tables that must not be empty.

    The names of the tables are regular expressions, since releases differ. The docstring of the reader is the `source`
    in the facts file.
    """

    distribution: str
    package: str
    read: Callable[[Package], Release]
    essential: tuple[str, ...]
    behaviour: str
    """A regular expression of the modules that claims depend on."""


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
        r"utils/(schemas|config)/.+\.py|utils/(trainer|distributed)\.py|integrations/(base|\w+/(args|plugins?|__init__))\.py",
    ),
    "deepspeed": Program(
        "deepspeed",
        "deepspeed",
        deepspeed.read,
        ("DeepSpeedZeroConfig", "arguments:FusedAdam", "arguments:WarmupLR", "choices:optimizer"),
        r"(runtime|launcher)/.+\.py",
    ),
    "llamafactory": Program(
        "llamafactory",
        "llamafactory",
        llamafactory.read,
        ("ModelArguments", "FinetuningArguments"),
        r"(hparams|model|data)/.+\.py|train/tuner\.py",
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
        r"(training_args|trainer|optimization)\w*\.py|hf_argparser\.py|integrations/.+\.py",
    ),
    "trl": Program(
        "trl",
        "trl",
        trl.read,
        ("ModelConfig", "(SFT)?ScriptArguments"),
        r"(commands|scripts|cli|generation)/.+\.py|trainer/\w+(config|trainer)\.py|data_utils\.py",
    ),
}
