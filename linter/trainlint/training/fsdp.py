"""The vocabulary of sharding: three views that every trainer's program fills in, and the facts of its releases.

- `FsdpSetup`: how the model is sharded, by an accelerate file, a TrainingArguments file with `fsdp` or an Axolotl file.
- `Training`: training arguments that interact with sharding.
- `FsdpRun`: both together, from one file or from the launcher's file and the arguments' file. A program that takes the
  setup from another program's file gives the run alone, not the setup again: mistakes in the setup are reported on the
  file that holds it.

A program gives each value as it reads it: words in their canonical upper case (`FULL_SHARD`, `TRANSFORMER_BASED_WRAP`,
`BACKWARD_PRE`, `SHARDED_STATE_DICT`), numbers that stand for a word as that word, unknown words as they were read. A
value that the program cannot read is WrongType; a setting that the program does not have is left out and Absent.
`FsdpFacts` says how one release treats all this.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from trainlint.findings import Severity, Stage
from trainlint.reading.document import of_data
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Absent, Field, Value
from trainlint.records import dataclass, field

T = TypeVar("T")

STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
"""torch.distributed.fsdp.ShardingStrategy, in the order of their numbers, from 1."""

WRAP_POLICIES = ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP")

PREFETCHES = ("BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH")
"""The first two are torch.distributed.fsdp.BackwardPrefetch, in the order of their numbers, from 1."""

STATE_DICT_TYPES = ("FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT")
"""torch.distributed.fsdp.StateDictType, in the order of their numbers, from 1."""

_NOWHERE = Field(of_data("", {}), Dialect.PYYAML, None)


def nothing() -> Absent[T]:
    """The value of a setting that a program does not have; it has no place, so a finding cannot be made at it."""
    return Absent(_NOWHERE)


FSDP2_ALWAYS: Mapping[str, str | bool] = {
    "strategy": "FULL_SHARD",
    "backward_prefetch": "BACKWARD_PRE",
    "forward_prefetch": False,
    "use_orig_params": True,
    "sync_module_states": True,
    "limit_all_gathers": True,
}
"""What FSDP2 always does, by the FSDP1 setting (an attribute of `FsdpSetup`) that it ignores."""


@dataclass(frozen=True)
class Words:
    """The words that one FSDP version accepts for a setting, and the severity of any other word."""

    allowed: frozenset[str]
    otherwise: Severity = Severity.ERROR


@dataclass(frozen=True, kw_only=True)
class FsdpFacts:
    """How one release of a program treats a setup.

    An empty collection or None means that the release does not check, so no rule reports anything. A severity says what
    the release does: ERROR where it refuses, WARNING where it goes on and does not do what is written. Settings are
    named as in `FsdpSetup`.
    """

    keys: frozenset[str] = frozenset()
    """The keys that are read from the setup's section."""
    optional_prefix: str = ""
    """A prefix of the keys that may be left out."""
    key_advice: Mapping[str, str] = field(default_factory=dict)
    """Help for keys that users write although they are not read."""
    unknown_key: Severity | None = None

    default_version: int = 1
    """The FSDP version that runs where the setup names none."""
    versions: tuple[int, ...] = ()
    """The versions that a file may name; where empty, none is read and `default_version` runs."""
    version_not_read: Severity | None = None
    """A version that is named but does not run, in a release that does not read it."""

    words: Mapping[str, Mapping[int, Words]] = field(default_factory=dict)
    """By setting and FSDP version; a version that is missing does not check the setting."""
    strategy_numbers: bool = False
    """A strategy is written as a number, and a word is refused."""
    booleans: Mapping[str, Mapping[int, Severity]] = field(default_factory=dict)
    """By setting and FSDP version: the severity of a value that is not a boolean."""
    fsdp1_only: Mapping[str, Severity] = field(default_factory=dict)
    """Settings that FSDP2 ignores, with the severity of a value that differs from `FSDP2_ALWAYS`."""
    default_state_dict_type: Mapping[int, str] = field(default_factory=dict)
    """By FSDP version."""
    wrap_advice: str = ""
    """Help: how the program's file names a wrap policy."""

    reshard_under_fsdp1: Severity | None = None
    """Under FSDP1: a sharding strategy in reshard-after-forward that does not run."""
    boolean_reshard_under_fsdp1: Severity | None = None
    """Under FSDP1: a boolean in reshard-after-forward, which is for FSDP2."""
    size_wrap_without_size: Severity | None = None
    size_not_an_integer: Severity | None = None
    """With a wrap policy by size: a min_num_params that is not an integer."""
    unsynced_ram_loading: Mapping[int, Severity] = field(default_factory=dict)
    """By FSDP version: RAM-efficient loading without synchronised module states."""
    sync_checked_at_launch: bool = False
    """The launcher refuses the same, also where both are only defaults."""
    checkpointing_without_wrap: Severity | None = None
    """Under FSDP2: activation checkpointing without a wrap policy."""
    checkpoint_offload_alone: Severity | None = None
    """Checkpoint offloading without activation checkpointing, or under FSDP1."""
    class_names: Severity | None = None
    """Layer classes that are not comma-separated names without spaces."""
    no_class_name: Severity | None = None
    """TRANSFORMER_BASED_WRAP without layer classes, in a release that does not take them from the model."""
    single_unit: Severity | None = None
    """A model that is one FSDP unit because no wrap policy is given."""
    wrap_setting_not_used: Severity | None = None
    """A size or layer classes that the wrap policy does not use."""
    hybrid_on_one_machine: Severity | None = None
    section_not_used: Severity | None = None
    """FSDP settings although FSDP is off."""
    deepspeed_beside: Severity | None = None
    trainer_stage: Stage | None = None
    """When transformers' Trainer is built, in a program that loads the model before."""

    two_checkpointings: Severity | None = None
    """The trainer's gradient checkpointing together with FSDP's activation checkpointing."""
    save_only_model_sharded: Severity | None = None
    """save_only_model with a sharded state dict."""
    save_only_model_best: Severity | None = None
    """save_only_model with load_best_model_at_end."""
    eight_bit_optimizers: Mapping[str, Severity] = field(default_factory=dict)
    """By name: optimizers whose state cannot be gathered."""
    quant_storage: Severity | None = None
    """Under FSDP1: a 4-bit model whose quant storage is not the dtype of its other parameters."""
    auto_find_batch_size: Severity | None = None


@dataclass(frozen=True, kw_only=True)
class FsdpSetup:
    """How one configuration shards a model.

    `switch` turns sharding on or off (`distributed_type`, `fsdp`, a flag); `section` is the mapping with the settings
    (`fsdp_config`). Either is absent where it is not written.
    """

    facts: FsdpFacts
    switch: Field
    section: Field
    sharding: Value[bool]
    """FSDP is on: known to be true, known to be false, or not known."""

    version: Value[int] = field(default_factory=nothing)
    strategy: Value[str] = field(default_factory=nothing)
    reshard: Value[bool | str] = field(default_factory=nothing)
    """Reshard after forward: a boolean, or a word such as a sharding strategy."""
    wrap_policy: Value[str] = field(default_factory=nothing)
    layer_classes: Value[list[str]] = field(default_factory=nothing)
    """The names as the program splits them; WrongType where one of them cannot be a class name."""
    min_num_params: Value[int] = field(default_factory=nothing)
    backward_prefetch: Value[str] = field(default_factory=nothing)
    forward_prefetch: Value[bool] = field(default_factory=nothing)
    use_orig_params: Value[bool] = field(default_factory=nothing)
    limit_all_gathers: Value[bool] = field(default_factory=nothing)
    sync_module_states: Value[bool] = field(default_factory=nothing)
    ram_efficient_loading: Value[bool] = field(default_factory=nothing)
    state_dict_type: Value[str] = field(default_factory=nothing)
    offload: Value[bool] = field(default_factory=nothing)
    """Parameters are offloaded to the CPU."""
    activation_checkpointing: Value[bool] = field(default_factory=nothing)
    checkpoint_offload: Value[bool] = field(default_factory=nothing)
    """Activation checkpoints are offloaded to the CPU."""
    deepspeed: Field = _NOWHERE
    """The setting that turns DeepSpeed on as well."""
    device: Value[str] = field(default_factory=nothing)
    """`cuda`, `cpu`, …"""
    backend: Value[str] = field(default_factory=nothing)
    """The trainer's backend, where it has several (`transformers`, `unsloth`)."""
    processes: Value[int] = field(default_factory=nothing)
    """On all machines together."""
    machines: Value[int] = field(default_factory=nothing)

    @property
    def on(self) -> bool:
        """The model is known to be sharded by FSDP."""
        return self.sharding.is_(True)

    @property
    def off(self) -> bool:
        """The model is known not to be sharded by FSDP."""
        return self.sharding.is_(False)

    @property
    def runs_version(self) -> int | None:
        """The FSDP version that runs; None where it is not known or does not exist."""
        if not self.facts.versions or self.version.absent:
            return self.facts.default_version
        return self.version.known if self.version.is_(*self.facts.versions) else None

    @property
    def runs_state_dict_type(self) -> str | None:
        """The state dict type that is saved; None where it is not known."""
        if self.state_dict_type.absent and self.runs_version is not None:
            return self.facts.default_state_dict_type.get(self.runs_version)
        return self.state_dict_type.known

    @property
    def is_fsdp1(self) -> bool:
        """The model is known to be sharded by FSDP1."""
        return self.on and self.runs_version == 1

    @property
    def is_fsdp2(self) -> bool:
        """The model is known to be sharded by FSDP2."""
        return self.on and self.runs_version == 2


@dataclass(frozen=True, kw_only=True)
class Training:
    """Training arguments that interact with sharding, with the trainer's own defaults."""

    arguments: Field
    """The mapping that holds the arguments."""
    gradient_checkpointing: Value[bool] = field(default_factory=nothing)
    save_only_model: Value[bool] = field(default_factory=nothing)
    load_best_model_at_end: Value[bool] = field(default_factory=nothing)
    auto_find_batch_size: Value[bool] = field(default_factory=nothing)
    optimizer: Value[str] = field(default_factory=nothing)
    quantization: Value[str] = field(default_factory=nothing)
    """`4bit`, `8bit`, or another name of the program."""
    quant_storage: Value[str] = field(default_factory=nothing)
    """The dtype in which quantized weights are stored."""
    compute_dtype: Value[str] = field(default_factory=nothing)
    """The dtype of the parameters that are not quantized."""
    deepspeed: Value[str] = field(default_factory=nothing)


@dataclass(frozen=True, kw_only=True)
class FsdpRun:
    """A setup together with the training arguments.

    `facts` belong to the program that runs the training; the setup may stand in another program's file.
    """

    facts: FsdpFacts
    setup: FsdpSetup
    training: Training
