"""What a trainer's configuration says about sharding a model: the vocabulary that every trainer's module fills in.

Three views, each a plain record of values with their places:

- `FsdpSetup`: how the model is sharded. An accelerate file, a TrainingArguments file with `fsdp`, an Axolotl file and a
  `soup train --fsdp` each fill one in. Rules about sharding alone look at it.
- `Training`: what the trainer's own arguments say that meets with sharding.
- `FsdpRun`: both together, of one file or of a launcher's file and the arguments' file. Rules about how the two meet
  look at it. A module that takes the setup from another program's file gives the run alone, not the setup again: what
  is wrong in the setup itself is said of the file that holds it.

A program's module gives every value that its files can hold as its reader takes it: words in their canonical upper
case (`FULL_SHARD`, `TRANSFORMER_BASED_WRAP`, `BACKWARD_PRE`, `SHARDED_STATE_DICT`), numbers that stand for words turned
into them, a word that means nothing left as it was read. WrongType is what the program cannot read at all. What the
program does not have is left out and Absent. What one of its releases makes of it all is `FsdpFacts`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from trainlint.findings import Severity
from trainlint.reading.document import of_data
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Absent, Field, Value

T = TypeVar("T")

STRATEGIES = ("FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "HYBRID_SHARD_ZERO2")
"""torch.distributed.fsdp.ShardingStrategy, by the number that stands for each, from 1."""

WRAP_POLICIES = ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP")

PREFETCHES = ("BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH")
"""The first two are torch.distributed.fsdp.BackwardPrefetch, by the number that stands for each, from 1."""

STATE_DICT_TYPES = ("FULL_STATE_DICT", "LOCAL_STATE_DICT", "SHARDED_STATE_DICT")
"""torch.distributed.fsdp.StateDictType, by the number that stands for each, from 1."""

_NOWHERE = Field(of_data("", {}), Dialect.PYYAML, None)


def nothing() -> Absent[T]:
    """The value of what a program's file cannot hold; it has no place, so no finding is made at it."""
    return Absent(_NOWHERE)


FSDP2_ALWAYS: Mapping[str, str | bool] = {
    "strategy": "FULL_SHARD",
    "backward_prefetch": "BACKWARD_PRE",
    "forward_prefetch": False,
    "use_orig_params": True,
    "sync_module_states": True,
    "limit_all_gathers": True,
}
"""What FSDP2 does whatever the FSDP1 setting of that name (an attribute of `FsdpSetup`) says."""


@dataclass(frozen=True)
class Words:
    """The words that one FSDP version takes for a setting, and what comes of any other."""

    allowed: frozenset[str]
    otherwise: Severity = Severity.ERROR


@dataclass(frozen=True, kw_only=True)
class FsdpFacts:
    """What one release of a program makes of a setup.

    An empty collection or None means that the release does not look, so that no rule speaks. A severity is the
    release's own answer: ERROR where it refuses, WARNING where it goes on and does something other than what is
    written. Settings are named as `FsdpSetup` names them.
    """

    keys: frozenset[str] = frozenset()
    """The keys that are read from the setup's section."""
    optional_prefix: str = ""
    """What may be left out in front of each key."""
    key_advice: Mapping[str, str] = field(default_factory=dict)
    """For keys that are not read but that users write: what to do about each."""
    unknown_key: Severity | None = None

    default_version: int = 1
    """The FSDP version that runs where the setup names none."""
    versions: tuple[int, ...] = ()
    """The versions that may be named; where empty, a named one is not read and `default_version` runs."""
    version_not_read: Severity | None = None
    """A named version that is not the one that runs, in a release that does not read it."""

    words: Mapping[str, Mapping[int, Words]] = field(default_factory=dict)
    """By setting and FSDP version: a version that is missing does not look at the setting."""
    strategy_numbers: bool = False
    """A strategy is written as the number that stands for it, and a word is refused."""
    booleans: Mapping[str, Mapping[int, Severity]] = field(default_factory=dict)
    """By setting and FSDP version: what comes of a value that is no boolean."""
    fsdp1_only: Mapping[str, Severity] = field(default_factory=dict)
    """Settings that FSDP2 does without, with what comes of one that differs from `FSDP2_ALWAYS`."""
    default_state_dict_type: Mapping[int, str] = field(default_factory=dict)
    """By FSDP version."""

    reshard_under_fsdp1: Severity | None = None
    """A sharding strategy in reshard-after-forward under FSDP1 that is not the one that runs."""
    boolean_reshard_under_fsdp1: Severity | None = None
    """A boolean in reshard-after-forward, which means FSDP2, under FSDP1."""
    size_wrap_without_size: Severity | None = None
    size_not_an_integer: Severity | None = None
    """A min_num_params that is no integer while the wrap policy goes by size."""
    unsynced_ram_loading: Mapping[int, Severity] = field(default_factory=dict)
    """RAM-efficient loading without synchronising module states, by FSDP version."""
    checkpointing_without_wrap: Severity | None = None
    """Activation checkpointing under FSDP2 without a wrap policy."""
    checkpoint_offload_alone: Severity | None = None
    """Offloading of checkpoints without activation checkpointing, or under FSDP1."""
    class_names: Severity | None = None
    """Layer classes that are not written as names with commas between them and no space."""
    no_class_name: Severity | None = None
    """TRANSFORMER_BASED_WRAP without layer classes, in a release that does not ask the model for them."""
    single_unit: Severity | None = None
    """A model that is sharded as one unit, since no wrap policy is given."""
    wrap_setting_not_used: Severity | None = None
    """A size or layer classes that the wrap policy does not look at."""
    hybrid_on_one_machine: Severity | None = None
    section_not_used: Severity | None = None
    """A section of FSDP settings while sharding is off."""
    deepspeed_beside: Severity | None = None

    two_checkpointings: Severity | None = None
    """The trainer's gradient checkpointing beside FSDP's activation checkpointing."""
    save_only_model_sharded: Severity | None = None
    """save_only_model with a sharded state dict."""
    save_only_model_best: Severity | None = None
    """save_only_model with load_best_model_at_end."""
    eight_bit_optimizers: Mapping[str, Severity] = field(default_factory=dict)
    """Optimizers whose state cannot be gathered, by name."""
    quant_storage: Severity | None = None
    """A 4-bit model under FSDP1 whose quant storage is not the dtype of its other parameters."""
    auto_find_batch_size: Severity | None = None


@dataclass(frozen=True, kw_only=True)
class FsdpSetup:
    """How one configuration shards a model.

    `switch` is what turns sharding on or off (`distributed_type`, `fsdp`, a flag) and `section` the mapping that holds
    the settings (`fsdp_config`), either absent where it is not written.
    """

    facts: FsdpFacts
    switch: Field
    section: Field
    sharding: Value[bool]
    """Known to be on, known to be off, or not to be told from the file."""

    version: Value[int] = field(default_factory=nothing)
    strategy: Value[str] = field(default_factory=nothing)
    reshard: Value[bool | str] = field(default_factory=nothing)
    """Reshard after forward: a boolean, or a word such as a sharding strategy where it is not one."""
    wrap_policy: Value[str] = field(default_factory=nothing)
    layer_classes: Value[list[str]] = field(default_factory=nothing)
    """The names as the program splits them; WrongType for what it takes for a name that no class has."""
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
    """What activation checkpointing keeps is offloaded to the CPU."""
    deepspeed: Field = _NOWHERE
    """What turns DeepSpeed on beside it."""
    device: Value[str] = field(default_factory=nothing)
    """`cuda`, `cpu`, … where it is told."""
    backend: Value[str] = field(default_factory=nothing)
    """The trainer's backend, where it has several (`transformers`, `unsloth`)."""
    processes: Value[int] = field(default_factory=nothing)
    """Over all machines."""
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
        """The FSDP version that runs; None where it is not to be told or none that exists is named."""
        if not self.facts.versions or self.version.absent:
            return self.facts.default_version
        return self.version.known if self.version.is_(*self.facts.versions) else None

    @property
    def runs_state_dict_type(self) -> str | None:
        """The state dict type that is saved, as far as it is known."""
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
    """What a trainer's arguments say that meets with sharding, each as the trainer's own defaults leave it."""

    arguments: Field
    """The mapping that holds the arguments."""
    gradient_checkpointing: Value[bool] = field(default_factory=nothing)
    save_only_model: Value[bool] = field(default_factory=nothing)
    load_best_model_at_end: Value[bool] = field(default_factory=nothing)
    auto_find_batch_size: Value[bool] = field(default_factory=nothing)
    optimizer: Value[str] = field(default_factory=nothing)
    quantization: Value[str] = field(default_factory=nothing)
    """`4bit`, `8bit`, or what else the program has a name for."""
    quant_storage: Value[str] = field(default_factory=nothing)
    """The dtype in which quantized weights are stored."""
    compute_dtype: Value[str] = field(default_factory=nothing)
    """The dtype of the parameters that are not quantized."""
    deepspeed: Value[str] = field(default_factory=nothing)


@dataclass(frozen=True, kw_only=True)
class FsdpRun:
    """A setup and the training that runs in it.

    `facts` are those of the program that runs the training, which may be another than the one whose file holds the
    setup.
    """

    facts: FsdpFacts
    setup: FsdpSetup
    training: Training
