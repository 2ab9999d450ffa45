"""How each release of TRL treats a config file, apart from names and types (trl.json).

Source: the released wheels of TRL, modules scripts/utils.py (up to 0.12 commands/cli_utils.py), scripts/*.py and
trainer/*_config.py, each known release read, and TrlParser run in 0.8.6, 0.9.6, 0.11.4, 0.12.2, 0.19.1, 0.24.0 and
1.16.0. 0.8 uses the values as YAML reads them; later releases convert texts. Settings of `accelerate launch` are passed
on to it since 0.18.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from trainlint.programs.transformers.facts import TABLES, ArgumentFacts, argument_fields
from trainlint.records import replace
from trainlint.releases import behaviour, within, words_within
from trainlint.training.declarations import Spec, declarations
from trainlint.training.limits import Limit, limits_of_release

if TYPE_CHECKING:
    from trainlint.training.declarations import Json

GOES_WITH: Mapping[str, str] = {
    "0.8.6": "4.40.2", "0.9.6": "4.42.4", "0.10.1": "4.44.2", "0.11.4": "4.45.2",
    "0.12.2": "4.46.3", "0.13.0": "4.48.3", "0.14.0": "4.49.0", "0.15.2": "4.50.3", "0.16.1": "4.51.3",
    "0.17.0": "4.52.4", "0.18.2": "4.53.3", "0.19.1": "4.53.3", "0.20.0": "4.54.1", "0.21.0": "4.55.4",
    "0.22.2": "4.56.2", "0.23.1": "4.57.1", "0.24.0": "4.57.6", "0.25.1": "4.57.6", "0.26.2": "5.0.0",
    "0.27.2": "5.1.0", "0.28.0": "5.3.0", "0.29.1": "5.4.0", "1.0.0": "5.5.4", "1.1.0": "5.5.4", "1.2.0": "5.6.2",
    "1.3.0": "5.8.1", "1.4.0": "5.9.0", "1.5.1": "5.11.0", "1.6.0": "5.12.1", "1.7.1": "5.12.1", "1.8.0": "5.14.1",
    "1.9.2": "5.14.1", "1.10.0": "5.16.1", "1.11.0": "5.16.1", "1.12.0": "5.17.0", "1.13.0": "5.18.0",
    "1.14.2": "5.19.0", "1.15.0": "5.20.1", "1.16.0": "5.24.0",
}  # fmt: skip
"""For each release of TRL the newest transformers that it allows and that is older than the next release of TRL.

For 0.8.6 it is the one that it was run with.

Source: the dates in the wheels, and `requires:transformers` of the release. It is a guess: a pin of transformers wins.
"""

PROFILES = frozenset({"fsdp1", "fsdp2", "multi_gpu", "single_gpu", "zero1", "zero2", "zero3"})
"""The accelerate configs that TRL ships, which `accelerate_config` may name since 0.18."""

PROFILE_PROCESSES = 8
"""The num_processes of each of them."""

FSDP_PROFILES: Mapping[str, dict[str, object]] = {
    "fsdp1": {
        "fsdp_version": 1,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_state_dict_type": "FULL_STATE_DICT",
        "fsdp_activation_checkpointing": False,
    },
    "fsdp2": {
        "fsdp_version": 2,
        "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
        "fsdp_state_dict_type": "FULL_STATE_DICT",
        "fsdp_activation_checkpointing": False,
    },
}
"""The FSDP settings of these that interact with training arguments."""

TRAINERS: Mapping[str, str] = {
    "sft": "SFTConfig",
    "dpo": "DPOConfig",
    "grpo": "GRPOConfig",
    "kto": "KTOConfig",
    "orpo": "ORPOConfig",
    "cpo": "CPOConfig",
    "rloo": "RLOOConfig",
    "reward": "RewardConfig",
    "gkd": "GKDConfig",
    "ppo": "PPOConfig",
    "online_dpo": "OnlineDPOConfig",
    "bco": "BCOConfig",
    "distillation": "DistillationConfig",
}
"""The dataclass of each trainer; files for a trainer often have its name."""

COMMANDS: Mapping[str, str] = {
    "sft": "..",
    "dpo": "..",
    "kto": "0.11.4..",
    "grpo": "0.14.0..",
    "rloo": "0.22.2..",
    "reward": "0.24.0..",
    "distillation": "1.10.0..",
}
"""The commands `trl WORD`, with the releases that have them.

Source: up to 0.12 SUPPORTED_COMMANDS in commands/cli.py, up to 0.28 cli.py, later cli/commands.
"""

_READS_NO_FILE: Mapping[str, str] = {"kto": "..0.12.2"}
"""Commands whose script does not read `--config`."""


class Unknowns(enum.Enum):
    """What a start does with a key of the file that no dataclass of its parser has."""

    REFUSED = "refused"
    LAUNCHED = "launched"
    """It is passed on to `accelerate launch`, which refuses what is no option of its own."""
    SHARED = "shared"
    """The same, but a key that another command of `trl` has is dropped."""
    DROPPED = "dropped"
    UNSURE = "unsure"
    """The parser fills dataclasses of the repository too."""


def under_command(trainer: str, release: str) -> Unknowns:
    """What `trl TRAINER` does with an unknown key.

    Source: cli.py, and parse_args_and_config with its arguments in scripts/TRAINER.py of each known release.
    """
    if within(release, "0.29.1.."):
        return Unknowns.LAUNCHED
    if trainer == "sft" and within(release, "0.18.2.."):
        return Unknowns.SHARED
    return under_script(trainer, release)


def under_script(trainer: str, release: str) -> Unknowns:
    """What a script of TRL, started by `accelerate launch -m trl.scripts.TRAINER`, does with an unknown key."""
    if within(release, "..0.8.6"):
        return Unknowns.UNSURE
    return Unknowns.DROPPED if within(release, "0.18.2.." if trainer == "sft" else "0.22.2..") else Unknowns.REFUSED


def has_command(trainer: str, release: str) -> bool:
    """There is a command `trl TRAINER`."""
    return trainer in COMMANDS and within(release, COMMANDS[trainer])


def reads_files(trainer: str, release: str) -> bool:
    """The script of TRAINER reads the file that `--config` names."""
    return trainer not in _READS_NO_FILE or not within(release, _READS_NO_FILE[trainer])


DIVERGENCE_LOSSES = frozenset({"sigmoid", "sigmoid_norm", "hinge", "ipo", "exo_pair", "robust", "discopop", "sft"})
"""The losses of DPO that another f_divergence_type than reverse_kl works with.

Source: DPOTrainer.__init__ since 1.10.
"""

METRIC_WORDS = frozenset(
    """
    loss runtime samples steps second epoch entropy accuracy accuracies token tokens reward rewards logps logits kl
    margin margins ratio length std advantages completions sampling count importance frac step time chosen rejected
    """.split()
)
"""Words of which each metric of a trainer has one."""

_DPO = ("sigmoid", "hinge", "ipo", "exo_pair", "nca_pair", "robust", "bco_pair", "sppo_hard")
_GRPO = ("grpo", "bnpo", "dr_grpo")

_LOSSES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sft": {"0.23.1..": ("nll", "dft"), "1.4.0..": ("chunked_nll",)},
    "dpo": {
        "..0.8.6": ("sigmoid", "hinge", "ipo", "kto_pair"),
        "0.9.6..": _DPO,
        "0.10.1..0.27.2": ("aot", "aot_pair"),
        "0.28.0..": ("aot", "aot_unpaired"),
        "0.10.1..": ("apo_zero", "apo_down"),
        "0.13.0..": ("discopop",),
        "0.20.0..": ("sft",),
        "1.4.0..": ("sigmoid_norm",),
    },
    "kto": {"0.11.4..": ("kto", "apo_zero_unpaired")},
    "grpo": {
        "0.17.0..": _GRPO,
        "0.22.2..": ("dapo",),
        "0.26.2..": ("cispo", "sapo"),
        "0.28.0..": ("luspo",),
        "1.0.0..": ("vespo",),
    },
    "cpo": {"0.9.6..": ("sigmoid", "hinge", "ipo", "simpo"), "0.22.2..": ("alphapo",)},
}
"""The losses that a trainer knows.

Source: the chain of comparisons before "Unknown loss type" in each known release; CPOConfig, which turns alphapo into
simpo. The dataclasses declare words, but no parser checks those in a file.
"""

_REWARDS: Mapping[str, tuple[str, ...]] = {
    "0.18.2..": ("think_format_reward",),
    "0.22.2..": ("get_soft_overlong_punishment",),
    "0.24.0..": ("accuracy_reward",),
    "0.26.2..": ("reasoning_accuracy_reward",),
}
"""The reward functions that the scripts of GRPO and RLOO know by name: reward_funcs_registry."""

_DTYPES: Mapping[str, str] = {
    "sft": "..", "dpo": "..", "grpo": "0.26.2..", "rloo": "1.5.1..", "reward": "1.5.1..", "kto": "1.8.0..",
}  # fmt: skip
"""The scripts that load the model as `dtype` and `attn_implementation` say, with their releases."""

ATTENTIONS = frozenset(
    """
    eager sdpa flash_attention_2 flash_attention_3 flash_attention_4 flex_attention eager_paged sdpa_paged
    paged_attention
    """.split()
)
"""The words of attn_implementation in any release of transformers; a slash makes it the name of a kernel.

Later releases also take `paged|WORD`.
"""


def losses(trainer: str, release: str) -> tuple[str, ...]:
    """The losses that a trainer knows; none where it has no choice."""
    return words_within(_LOSSES.get(trainer, {}), release)


def rewards(release: str) -> tuple[str, ...]:
    """The reward functions that the scripts of GRPO and RLOO know by name."""
    return words_within(_REWARDS, release)


def loads_dtype(trainer: str, release: str) -> bool:
    """The trainer's script loads the model in the dtype, and with the attention, that the file gives."""
    return trainer in _DTYPES and within(release, _DTYPES[trainer])


@cache
def trl_limits(release: str) -> Mapping[str, tuple[Limit, ...]]:
    """The limits of a release, by section of limits.txt."""
    return limits_of_release("trl", release, declarations("trl").names)


def trainer_of(config: str) -> str | None:
    """The trainer with this dataclass."""
    return next((trainer for trainer, name in TRAINERS.items() if name == config), None)


_SHARED = ("ModelConfig", "ScriptArguments", "DatasetMixtureConfig")
_NOT_FOR_CONFIGS = frozenset(
    {"ChatArguments", "DDPOConfig", "AlignPropConfig", "DatasetConfig", "BaseConfig", "VLLMServeArguments"}
)
"""Tables whose names are never top-level keys of a trainer's file."""

_FOREIGN = frozenset({"base_model"})
"""Arguments of two configs in 0.9 that many files have for other programs."""

RENAMED: Mapping[str, str] = {
    "max_seq_length": "max_length",
    "torch_dtype": "dtype",
    "use_liger": "use_liger_kernel",
    "use_liger_loss": "use_liger_kernel",
    "dataset_batch_size": "remove it",
    "num_of_sequences": "remove it",
    "chars_per_token": "remove it",
    "gradient_checkpointing_use_reentrant": "gradient_checkpointing_kwargs: {use_reentrant: …}",
    "vllm_guided_decoding_regex": "vllm_structured_outputs_regex",
    "vllm_max_model_len": "vllm_max_model_length",
    "rloo_k": "num_generations",
}
"""What replaces an argument of TRL that is gone."""


def trainer_tables(trainer: str | None = None) -> tuple[str, ...]:
    """The dataclasses that a config file fills: those of one trainer, or of all."""
    known = declarations("trl")
    mine = known.tables if trainer is None else (TRAINERS[trainer], f"{TRAINERS[trainer][:-6]}ScriptArguments")
    tables = [table for table in mine if table in known.tables and table not in _NOT_FOR_CONFIGS]
    return tuple(dict.fromkeys([*tables, *_SHARED]))


def known_tables(names: Collection[str], release: str) -> tuple[str, ...]:
    """The dataclasses of these names; none if one of them is unknown."""
    known = declarations("trl")
    mine = tuple(sorted(name for name in names if known.keys(name, release)))
    return mine if set(names) <= {*mine, *TABLES} else ()


@cache
def command_keys(release: str) -> frozenset[str]:
    """The keys that any command of `trl` has; up to 0.28 they share a parser."""
    known = declarations("trl")
    tables = {table for word in COMMANDS if has_command(word, release) for table in trainer_tables(word)}
    return frozenset().union(*(known.keys(table, release) for table in {*tables, "VLLMServeArguments"}))


@cache
def launch_keys() -> frozenset[str]:
    """The options of `accelerate launch`, and what `trl` makes of one of them."""
    return declarations("accelerate").keys_of_any("launch_flags") | {"accelerate_config"}


@cache
def trl_facts(
    release: str, transformers: str, trainer: str | None = None, dataclasses: tuple[str, ...] = ()
) -> ArgumentFacts:
    """The facts of one known release of TRL with one of transformers, for one trainer or for all.

    `dataclasses` are those that the parser fills; by default those of the trainer's script.
    """
    known = declarations("trl")
    tables = [table for table in dataclasses or trainer_tables(trainer) if known.keys(table, release)]
    fields = argument_fields(declarations("transformers"), TABLES, transformers)
    own: dict[str, list[Spec]] = {}
    for table in tables:
        for name, field in known.fields(table, release).items():
            own.setdefault(name, []).append(field)
    fields.update({name: _merged(found) for name, found in own.items() if name not in fields})
    trainers = [table for table in tables if table.endswith("Config") and table not in _SHARED]
    return ArgumentFacts(
        program="trl",
        version=release,
        release=transformers,
        fields=fields,
        converts=within(release, "0.9.6.."),
        none_is_null=within(release, "1.6.0.."),
        defaults=_defaults(own, len(trainers)),
        quant_storage="bnb_4bit_quant_storage" in known.keys("ModelConfig", release),
        tables={"trl": trainer_tables(trainer), "transformers": TABLES},
        others=_FOREIGN | {"config", "env"} | (launch_keys() if within(release, "0.18.2..") else frozenset()),
        advice=RENAMED,
        **behaviour(ArgumentFacts, transformers),
    )


def _merged(found: list[Spec]) -> Spec:
    """One spec for a name of several dataclasses; without a type where they differ by more than None."""
    first = found[0]
    types = {kind for field in found for kind in field.types}
    if all(set(first.types) - {"None"} == set(field.types) - {"None"} for field in found):
        return replace(first, types=tuple(sorted(types)))
    return Spec(first.name, (), (), None, False, True, False, (), {}, {})


def _defaults(own: Mapping[str, list[Spec]], trainers: int) -> dict[str, Json]:
    """The defaults that TRL redefines: the value where all its trainers agree, else None."""
    return {
        name: _agreed(field.default for field in found) if len(found) == trainers else None
        for name, found in own.items()
    }


def _agreed(defaults: Iterable[Json]) -> Json:
    listed = list(defaults)
    return listed[0] if all(default == listed[0] for default in listed) else None
