"""accelerate's config file and the command lines that use it, as typed views, and how the workers read a value.

The launcher reads the file with PyYAML, copies it to its options where the command line gives none, and passes most
settings to every worker as environment variables: a worker gets Python's text of each value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from math import prod
from typing import TypeVar

from trainlint.programs.accelerate.facts import (
    FALSE_WORDS,
    PREFIX,
    SEVERAL_GPUS,
    SIZES,
    STEM,
    TRUE_WORDS,
    AccelerateFacts,
)
from trainlint.reading.scalars import Plain, whole_number
from trainlint.reading.values import Absent, Field, Known, Unknown, Value, WrongType
from trainlint.records import NamedTuple, dataclass
from trainlint.repository.invocations import Command, Flag, Invocation

T = TypeVar("T")

LAUNCH = Command(
    "accelerate launch",
    (("accelerate", "launch"), ("accelerate-launch",), ("accelerate.commands.launch",)),
    r"\baccelerate\b",
    bare=frozenset(
        "--cpu --debug --downcast_bf16 --dynamo_use_dynamic --dynamo_use_fullgraph --dynamo_use_regional_compilation"
        " --enable_cpu_affinity --fp8_use_autocast_during_eval --ipex --module -m --multi_gpu --no_python"
        " --no_tpu_cluster --quiet -q --same_network --tpu --tpu_use_cluster --tpu_use_sudo --use_deepspeed --use_fsdp"
        " --use_megatron_lm --use_parallelism_config --use_tp --use_xpu".split()
    ),
    dashes_as_underscores=True,
    ends_at_script=True,
)

PARADIGMS = ("--multi_gpu", "--tpu", "--use_deepspeed", "--use_megatron_lm", "--cpu")
"""Flags that replace the file's distributed_type."""


class AccelerateConfig:
    """A config file, with the command line that uses it if there is one; its flags win over the file."""

    owns_document = True

    def __init__(self, field: Field, launch: Launch | None = None) -> None:
        self.field = field
        self.launch = launch
        self._by_full_name: dict[bool, dict[str, Field]] = {}

    def key(self, name: str) -> Field:
        """A top-level setting: the command line's flag, else the file's key."""
        flag = self.launch.flag(name) if self.launch else None
        return flag if flag is not None else self.field.get(name)

    def number(self, name: str) -> Value[int]:
        """A top-level setting that must be an integer; WrongType for anything that is not a Python int."""
        field = self.key(name)
        if field.document is not self.field.document:
            given = whole_number(field.written)
            return Unknown(field) if given is None else Known(field, given)
        return _python(field, lambda plain: plain if isinstance(plain, int) and not isinstance(plain, bool) else None)

    @property
    def sagemaker(self) -> bool:
        """The launcher reads the file as one for Amazon SageMaker: any compute_environment but LOCAL_MACHINE."""
        environment = self.field.get("compute_environment")
        return environment.node is not None and not environment.is_unknown and environment.plain != "LOCAL_MACHINE"

    @cached_property
    def distributed_type(self) -> Value[str]:
        """`distributed_type`; a value that is not text counts as absent."""
        return self.field.get("distributed_type").text()

    @property
    def runs(self) -> Value[str]:
        """The distributed type that runs: a flag's, else the file's."""
        chosen = self.launch.paradigm if self.launch else None
        return chosen or self.distributed_type

    @property
    def launcher(self) -> str | None:
        """The launcher that starts the workers: `torchrun`, `deepspeed`, `tpu`, `single`; None where not known."""
        runs = self.runs
        if self.sagemaker or runs.unknown:
            return None
        if runs.is_("FSDP", "MEGATRON_LM", "TP", *SEVERAL_GPUS):
            return "torchrun"
        if runs.is_("DEEPSPEED"):
            return "deepspeed"
        return "tpu" if runs.is_("XLA", "TPU") else "single"

    @property
    def machines(self) -> Value[int]:
        """`num_machines`, 1 when absent."""
        field = self.key("num_machines")
        return self.number("num_machines") if field.node is not None else Known(field, 1)

    @property
    def world_size(self) -> int | None:
        """How many processes start on all machines together; None where it is not known."""
        processes, machines = self.number("num_processes").known, self.machines.known
        if processes is None or machines is None:
            return None
        return processes if machines <= 1 else processes // machines * machines

    @property
    def fsdp_config(self) -> Field:
        """The section of FSDP settings."""
        return self.field.get("fsdp_config")

    @property
    def parallelism(self) -> Field:
        """The section `parallelism_config`."""
        return self.field.get("parallelism_config")

    def mesh(self, facts: AccelerateFacts) -> Mesh | None:
        """The device mesh of `parallelism_config`; None where no launcher reads it."""
        if "parallelism_config" not in facts.sections or not any(self.parallelism.entries()):
            return None
        meshed = ("FSDP", *SEVERAL_GPUS, *(("DEEPSPEED",) if facts.deepspeed_mesh else ()))
        if not self.runs.is_(*meshed):
            return None
        read = facts.sections["parallelism_config"]
        keys = {name: f"parallelism_config_{name}_size" for name in SIZES}
        fields = {name: self.parallelism.get(key) for name, key in keys.items() if key in read}
        return Mesh({name: _size(field) for name, field in fields.items()})

    def deepspeed(self, name: str, facts: AccelerateFacts) -> Field:
        """A DeepSpeed setting: the flag or the section's key, whichever wins in this release."""
        flag = self.launch.flag(name) if self.launch else None
        key = self.field.get("deepspeed_config").get(name)
        return flag if flag is not None and (facts.flags_win_over_sections or key.node is None) else key

    def setting(self, name: str, facts: AccelerateFacts) -> Field:
        """An FSDP setting by its full name: the flag, else the last key of that name with or without the prefix."""
        flag = self.launch.flag(name) if self.launch and facts.flags_win_over_sections else None
        if flag is not None:
            return flag
        return self._fsdp_settings(facts.prefix_anywhere).get(name) or self.fsdp_config.get(name)

    def _fsdp_settings(self, prefix_anywhere: bool) -> dict[str, Field]:
        """The entries of `fsdp_config` by their full names."""
        if prefix_anywhere not in self._by_full_name:
            found: dict[str, Field] = {}
            for entry in self.fsdp_config.entries():
                prefixed = STEM in entry.name if prefix_anywhere else entry.name.startswith(STEM)
                found[entry.name if prefixed else PREFIX + entry.name] = entry
            self._by_full_name[prefix_anywhere] = found
        return self._by_full_name[prefix_anywhere]


class ListedConfig:
    """A file that would be a config file if its root were a mapping and not a list."""

    owns_document = True

    def __init__(self, field: Field) -> None:
        self.field = field


class MisnamedConfig:
    """A DeepSpeed config that a command hands to the launcher as its own."""

    owns_document = True

    def __init__(self, field: Field) -> None:
        self.field = field


@dataclass(frozen=True)
class MisnamedLaunch:
    """A command that hands a DeepSpeed config to the launcher as its own."""

    invocation: Invocation
    config: Field

    @property
    def field(self) -> Field:
        """The words `accelerate launch`."""
        return self.invocation.field


class Mesh(NamedTuple):
    """The sizes of a device mesh by dimension, 1 where none is given."""

    sizes: Mapping[str, Value[int]]

    def size(self, name: str) -> int:
        """A size, 1 where it is not known or the release has no such dimension."""
        size = self.sizes.get(name)
        return 1 if size is None or size.known is None else size.known

    @property
    def total(self) -> int | None:
        """All sizes multiplied; None where one is not known."""
        known = [size.known for size in self.sizes.values()]
        return None if None in known else prod(size for size in known if size is not None)


@dataclass(frozen=True)
class Launch:
    """A command line that uses a config file."""

    invocation: Invocation
    config: Field
    """The config file's mapping."""

    @property
    def field(self) -> Field:
        """The words `accelerate launch`."""
        return self.invocation.field

    def flag(self, name: str) -> Field | None:
        """The value of a flag by its name without dashes; None when it is not given."""
        given = self.invocation.given("--" + name)
        return None if given is None else _flag_field(given)

    @cached_property
    def paradigm(self) -> Value[str] | None:
        """The distributed type that a flag sets, at the place of the flag."""
        for flag, runs in (("--use_fsdp", "FSDP"), *((flag, flag) for flag in PARADIGMS)):
            given = self.invocation.given(flag)
            if given is not None:
                return Known(given.name.field, runs if runs == "FSDP" else _PARADIGM_TYPES[runs])
        return None

    @property
    def file(self) -> AccelerateConfig:
        """The file alone, without the command line."""
        return AccelerateConfig(self.config)


_PARADIGM_TYPES = {
    "--multi_gpu": "MULTI_GPU",
    "--tpu": "XLA",
    "--use_deepspeed": "DEEPSPEED",
    "--use_megatron_lm": "MEGATRON_LM",
    "--cpu": "NO",
}


class _FilledIn(Field):
    """A word of a command line that a shell fills in: its value is not in the file."""

    __slots__ = ()

    @property
    def is_unknown(self) -> bool:
        """Always true."""
        return True


def _flag_field(flag: Flag) -> Field:
    if not flag.values:
        return flag.name.field
    field = flag.values[0].field
    if flag.values[0].known is not None:
        return field
    return _FilledIn(field.document, field.dialect, field.node, field.path, parent=field.parent, origin=field.origin)


# reading values as the workers get them


def _python(field: Field, convert: Callable[[Plain], T | None]) -> Value[T]:
    """A value by its Python type; null is a value too, and Absent means that nothing is written."""
    if field.node is None:
        return Absent(field)
    if field.is_unknown:
        return Unknown(field)
    if field.is_mapping or field.is_sequence:
        return WrongType(field)
    converted = convert(field.plain)
    return WrongType(field) if converted is None else Known(field, converted)


def python_text(field: Field) -> Value[str]:
    """The text that `str()` makes of the value, which is what the workers get."""
    return _python(field, str)


def switch(field: Field) -> Value[bool]:
    """A boolean as the workers read it."""
    text = python_text(field).map(str.lower)
    if text.known is not None and text.known not in TRUE_WORDS | FALSE_WORDS:
        return WrongType(field)
    return text.map(lambda word: word in TRUE_WORDS)


def truthy(field: Field, default: bool) -> Value[bool]:
    """Whether the value is true in Python, as the launcher checks it before it makes a text of it."""
    if field.node is None:
        return Known(field, default)
    if field.is_mapping or field.is_sequence:
        return Known(field, any(field.entries()) or bool(field.items()))
    return _python(field, lambda plain: bool(plain))


def python_integer(field: Field) -> Value[int]:
    """An integer as Python's int() reads it from the text that the worker gets; a list or mapping is WrongType."""

    def read(plain: Plain) -> int | None:
        try:
            return int(str(plain))
        except ValueError:
            return None

    return _python(field, read)


def _size(field: Field) -> Value[int]:
    return Known(field, 1) if field.node is None else python_integer(field)
