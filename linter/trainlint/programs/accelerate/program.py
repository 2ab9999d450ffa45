"""accelerate: the config file of `accelerate launch` and the command lines that use it, as typed views.

The launcher reads the file with PyYAML, copies it to its options where the command line gives none, and passes the FSDP
settings to every worker as environment variables: a worker gets Python's text of each value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, TypeVar

from trainlint.programs import FileReader, WheelProgram
from trainlint.programs.accelerate.facts import (
    FALSE_WORDS,
    OLD_PREFETCH,
    PREFIX,
    SEVERAL_GPUS,
    SIZES,
    STEM,
    STRATEGY_MEMBERS,
    TRUE_WORDS,
    AccelerateFacts,
    accelerate_facts,
)
from trainlint.reading.document import Document
from trainlint.reading.scalars import Dialect, Plain, whole_number
from trainlint.reading.values import Absent, Field, Known, Unknown, Value, WrongType
from trainlint.repository.invocations import Command, Flag, Invocation, named_file, repository_invocations
from trainlint.training.fsdp import PREFETCHES, STATE_DICT_TYPES, STRATEGIES, WRAP_POLICIES, FsdpSetup

if TYPE_CHECKING:
    from trainlint.programs import Surroundings, Views

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

_SIGNS = ("num_machines", "main_training_function", "rdzv_backend", "num_processes", "mixed_precision", "machine_rank")


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
        if not self.runs.is_("FSDP", *SEVERAL_GPUS):
            return None
        read = facts.sections["parallelism_config"]
        keys = {name: f"parallelism_config_{name}_size" for name in SIZES}
        fields = {name: self.parallelism.get(key) for name, key in keys.items() if key in read}
        return Mesh({name: _size(field) for name, field in fields.items()})

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


@dataclass(frozen=True)
class Mesh:
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

    @property
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


def _integer(field: Field) -> Value[int]:
    """An integer as Python's int() reads it from the text."""

    def read(plain: Plain) -> int | None:
        try:
            return int(str(plain))
        except ValueError:
            return None

    return _python(field, read)


def _size(field: Field) -> Value[int]:
    return Known(field, 1) if field.node is None else _integer(field)


@dataclass(frozen=True)
class _Enumeration:
    """Words that a worker looks up, some of them also by number."""

    words: Sequence[str]
    numbered: Sequence[str]
    any_case: bool
    members: Mapping[str, str] = field(default_factory=dict)
    """torch's names where accelerate's differ."""

    def read(self, field: Field) -> Value[str]:
        """The canonical word for the word or number here; an unknown word as it is written."""
        return python_text(field).map(self._canonical)

    def _canonical(self, text: str) -> str:
        number = whole_number(text)
        if number is not None and 1 <= number <= len(self.numbered):
            return self.numbered[number - 1]
        if not self.any_case:
            return text
        word = self.members.get(text.upper(), text.upper())
        return word if word in self.words else text


def _or_absent(field: Field, read: Callable[[Field], Value[T]]) -> Value[T]:
    """A setting that the launcher passes on only where it is not null."""
    return Absent(field) if field.is_null else read(field)


def _reshard(field: Field) -> Value[bool | str]:
    boolean = switch(field)
    return python_text(field).map(lambda text: text if boolean.known is None else boolean.known)


def _layer_classes(field: Field) -> Value[list[str]]:
    names = python_text(field).map(lambda text: text.split(","))
    return names if not names.known or all(_is_class_name(name) for name in names.known) else WrongType(field)


def _is_class_name(name: str) -> bool:
    return name.isidentifier() and name != "None"


def fsdp_setup(config: AccelerateConfig, facts: AccelerateFacts) -> FsdpSetup:
    """How this file, with its command line if there is one, shards the model."""
    any_case = facts.words_in_any_case

    def setting(name: str) -> Field:
        return config.setting(PREFIX + name, facts)

    def words(names: Sequence[str], numbered: Sequence[str]) -> Callable[[Field], Value[str]]:
        return _Enumeration(names, numbered if any_case else (), any_case).read

    return FsdpSetup(
        facts=facts.fsdp,
        switch=config.runs.field,
        section=config.fsdp_config,
        sharding=_sharding(config, facts),
        version=_integer(setting("version")),
        strategy=_strategy(setting("sharding_strategy"), facts),
        reshard=_reshard(setting("reshard_after_forward")),
        wrap_policy=_or_absent(setting("auto_wrap_policy"), words(WRAP_POLICIES, ())),
        layer_classes=_or_absent(setting("transformer_layer_cls_to_wrap"), _layer_classes),
        min_num_params=_integer(setting("min_num_params")),
        backward_prefetch=_or_absent(_prefetch(setting, facts), words(PREFETCHES, PREFETCHES[:2])),
        forward_prefetch=switch(setting("forward_prefetch")),
        use_orig_params=switch(setting("use_orig_params")),
        sync_module_states=switch(setting("sync_module_states")),
        ram_efficient_loading=switch(setting("cpu_ram_efficient_loading")),
        state_dict_type=_or_absent(setting("state_dict_type"), words(STATE_DICT_TYPES, STATE_DICT_TYPES)),
        offload=_offload(setting("offload_params"), facts),
        activation_checkpointing=switch(setting("activation_checkpointing")),
        checkpoint_offload=switch(setting("activation_checkpointing_offload")),
        deepspeed=_filled(config.field.get("deepspeed_config")),
        processes=config.number("num_processes"),
        machines=config.machines,
    )


def _prefetch(setting: Callable[[str], Field], facts: AccelerateFacts) -> Field:
    """The prefetch: under its old name where only that exists; where both exist, the old name wins."""
    old, new = setting(OLD_PREFETCH), setting("backward_prefetch")
    known = facts.fsdp.keys
    return (
        old if PREFIX + OLD_PREFETCH in known and not (old.is_absent and PREFIX + "backward_prefetch" in known) else new
    )


def _strategy(field: Field, facts: AccelerateFacts) -> Value[str]:
    if facts.strategy_is_a_number:
        number = _integer(field)
        return number.map(lambda value: STRATEGIES[value - 1] if 1 <= value <= len(STRATEGIES) else str(value))
    return _Enumeration(STRATEGIES, STRATEGIES, facts.words_in_any_case, STRATEGY_MEMBERS).read(field)


def _offload(field: Field, facts: AccelerateFacts) -> Value[bool]:
    return python_text(field).map(lambda text: text.lower() == "true") if facts.offload_is_true_alone else switch(field)


def _sharding(config: AccelerateConfig, facts: AccelerateFacts) -> Value[bool]:
    """FSDP is on; Absent where nothing is distributed, so that left-over settings are not reported."""
    runs = config.runs
    if config.sagemaker or not runs.known or runs.is_("NO"):
        return Unknown(runs.field) if runs.unknown else Absent(runs.field)
    if runs.known_and_not_in(facts.distributed_types):
        return Unknown(runs.field)
    return runs.map(lambda word: word == "FSDP")


def _filled(section: Field) -> Field:
    """The section, absent where it is empty."""
    return section if any(section.entries()) else Field(section.document, section.dialect, None, section.path)


def _is_config(entries: Sequence[Field]) -> bool:
    names = {entry.name for entry in entries}
    signs = len(names.intersection(_SIGNS))
    section = any(
        key.name.startswith(PREFIX) for entry in entries if entry.name == "fsdp_config" for key in entry.entries()
    )
    typed, placed = "distributed_type" in names, "compute_environment" in names
    return (typed and (placed or signs > 0 or section)) or (placed and (signs > 1 or section))


def _launches(surroundings: Surroundings) -> list[tuple[Invocation, AccelerateConfig]]:
    """Every `accelerate launch` of the repository that names one of its config files, with that file."""
    return surroundings.repository.once("accelerate launch", lambda: list(_find_launches(surroundings)))


def _launches_of(surroundings: Surroundings, config: AccelerateConfig) -> list[Invocation]:
    def found() -> dict[int, list[Invocation]]:
        by_config: dict[int, list[Invocation]] = {}
        for invocation, config in _launches(surroundings):
            by_config.setdefault(id(config.field), []).append(invocation)
        return by_config

    return surroundings.repository.once("launches by config", found).get(id(config.field), [])


def _differing(launches: Iterable[Launch]) -> Iterable[Launch]:
    """The first of the launches that have the same words before their script."""
    found: dict[object, Launch] = {}
    for launch in launches:
        invocation = launch.invocation
        options = [(flag.name.text, *(value.text for value in flag.values)) for flag in invocation.flags]
        hidden = [value.known is None for flag in invocation.flags for value in flag.values]
        words = [word.text for word in invocation.before]
        key = (*words, *options, *hidden, invocation.is_open, invocation.elsewhere, invocation.folder)
        found.setdefault(key, launch)
    return found.values()


def _find_launches(surroundings: Surroundings) -> Iterator[tuple[Invocation, AccelerateConfig]]:
    from trainlint.repository.files import display_path

    repository = surroundings.repository
    configs = {config.field.document.path: config for config in surroundings.subjects("accelerate", AccelerateConfig)}
    for invocation in repository_invocations(repository, LAUNCH) if configs else ():
        name = invocation.flag("--config_file").known
        file = named_file(repository, invocation, name) if name else None
        config = configs.get(display_path(file)) if file is not None else None
        if config is not None:
            yield invocation, config


def launched_setups(
    surroundings: Surroundings, wanted: Iterable[Invocation] | None = None
) -> Iterator[tuple[Invocation, FsdpSetup]]:
    """The wanted `accelerate launch` (else all) that name a config, with their setup: the file's, changed by the flags.

    For programs whose scripts such a command starts.
    """
    configs = dict(_launches(surroundings))
    for invocation, config in (
        (one, configs[one]) for one in (configs if wanted is None else wanted) if one in configs
    ):
        setup = setup_as_checked(AccelerateConfig(config.field, Launch(invocation, config.field)), surroundings)
        if setup is not None:
            yield invocation, setup


def setup_as_checked(config: AccelerateConfig, surroundings: Surroundings) -> FsdpSetup | None:
    """The setup of a file in the release that its own findings are for; None if that is older than all known."""
    named = surroundings.named_target("accelerate", config.field.document.path)
    target = named or PROGRAM.default_target(config, surroundings)
    known = PROGRAM.in_force(target.versions[-1]).releases
    return fsdp_setup(config, accelerate_facts(known[-1])) if known else None


class Accelerate(WheelProgram[AccelerateConfig | ListedConfig, AccelerateFacts]):
    """The program accelerate: its config files."""

    name = "accelerate"
    readers = (FileReader(LAUNCH, "--config_file"),)

    def adopt(self, document: Document) -> Sequence[AccelerateConfig | ListedConfig]:
        """A config file, whatever keys it has."""
        return [AccelerateConfig(Field.root(document, Dialect.PYYAML))]

    def recognise(self, document: Document) -> Sequence[AccelerateConfig | ListedConfig]:
        """A mapping with `distributed_type` or `compute_environment` and one or two more keys of such a file."""
        root = Field.root(document, Dialect.PYYAML)
        if root.is_sequence:
            return [ListedConfig(root)] if _is_config([e for item in root.items() for e in item.entries()]) else []
        return [AccelerateConfig(root)] if _is_config(list(root.entries())) else []

    def alternatives(
        self, subject: AccelerateConfig | ListedConfig, surroundings: Surroundings, release: str
    ) -> Iterable[Views]:
        """One alternative for each command line that uses the file; the file alone where there is none."""
        if not isinstance(subject, AccelerateConfig):
            return [[subject]]
        known = accelerate_facts(release)
        launches = [Launch(invocation, subject.field) for invocation in _launches_of(surroundings, subject)]
        configs = [AccelerateConfig(subject.field, launch) for launch in _differing(launches)] or [subject]
        return ([config, fsdp_setup(config, known), *launches] for config in configs)

    def facts(self, release: str) -> AccelerateFacts:
        """What one known release accepts."""
        return accelerate_facts(release)


PROGRAM = Accelerate()
