"""accelerate: whose file it is, which commands use it, and how it shards the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from trainlint.programs import FileReader, WheelProgram
from trainlint.programs.accelerate.config import (
    LAUNCH,
    AccelerateConfig,
    Launch,
    ListedConfig,
    MisnamedConfig,
    MisnamedLaunch,
    python_integer,
    python_text,
    switch,
)
from trainlint.programs.accelerate.deepspeed import deepspeed_views
from trainlint.programs.accelerate.facts import (
    OLD_PREFETCH,
    PREFIX,
    STRATEGY_MEMBERS,
    AccelerateFacts,
    accelerate_facts,
)
from trainlint.reading.document import Document
from trainlint.reading.scalars import Dialect, whole_number
from trainlint.reading.values import Absent, Field, Unknown, Value, WrongType
from trainlint.records import dataclass, field
from trainlint.repository.invocations import Invocation, named_file, repository_invocations
from trainlint.training.fsdp import PREFETCHES, STATE_DICT_TYPES, STRATEGIES, WRAP_POLICIES, FsdpSetup

if TYPE_CHECKING:
    from trainlint.programs import Surroundings, Views
    from trainlint.repository.files import Repository

T = TypeVar("T")

_SIGNS = ("num_machines", "main_training_function", "rdzv_backend", "num_processes", "mixed_precision", "machine_rank")


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
        version=python_integer(setting("version")),
        strategy=_strategy(setting("sharding_strategy"), facts),
        reshard=_reshard(setting("reshard_after_forward")),
        wrap_policy=_or_absent(setting("auto_wrap_policy"), words(WRAP_POLICIES, ())),
        layer_classes=_or_absent(setting("transformer_layer_cls_to_wrap"), _layer_classes),
        min_num_params=python_integer(setting("min_num_params")),
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
        number = python_integer(field)
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
    for invocation in repository_invocations(repository, LAUNCH) if any(repository.marked("accelerate")) else ():
        name = invocation.flag("--config_file").known
        file = named_file(repository, invocation, name) if name else None
        configs = (
            surroundings.subjects_in(display_path(file), "accelerate", AccelerateConfig) if file is not None else []
        )
        config = configs[-1] if configs else None
        if config is not None:
            yield invocation, config


def launched_setups(
    surroundings: Surroundings, wanted: Iterable[Invocation] | None = None
) -> Iterator[tuple[Invocation, FsdpSetup]]:
    """The wanted `accelerate launch` (else all) that name a config, with their setup: the file's, changed by the flags.

    For programs whose scripts such a command starts.
    """
    configs = dict(_launches(surroundings))
    for invocation in configs if wanted is None else wanted:
        config = configs.get(invocation)
        if config is None:
            continue
        setup = setup_as_checked(AccelerateConfig(config.field, Launch(invocation, config.field)), surroundings)
        if setup is not None:
            yield invocation, setup


def launched_configs(
    surroundings: Surroundings, wanted: Iterable[Invocation]
) -> Iterator[tuple[Invocation, AccelerateConfig, AccelerateFacts]]:
    """The wanted `accelerate launch` with their files, changed by the flags, as the newest release reads them.

    For programs whose scripts such a command starts.
    """
    configs = dict(_launches(surroundings))
    for invocation in wanted:
        config = configs.get(invocation)
        if config is None:
            continue
        target = surroundings.named_target("accelerate", config.field.document.path)
        target = target or PROGRAM.default_target(config, surroundings)
        known = PROGRAM.in_force(target.versions[-1]).releases
        if known:
            yield (
                invocation,
                AccelerateConfig(config.field, Launch(invocation, config.field)),
                accelerate_facts(known[-1]),
            )


def setup_as_checked(config: AccelerateConfig, surroundings: Surroundings) -> FsdpSetup | None:
    """The setup of a file in the release that its own findings are for; None if that is older than all known."""
    named = surroundings.named_target("accelerate", config.field.document.path)
    target = named or PROGRAM.default_target(config, surroundings)
    known = PROGRAM.in_force(target.versions[-1]).releases
    return fsdp_setup(config, accelerate_facts(known[-1])) if known else None


def _is_deepspeed_config(root: Field) -> bool:
    """The keys of a DeepSpeed config, and none that only the launcher's file has."""
    return root.get("zero_optimization").is_mapping and root.get("distributed_type").node is None


_READER = FileReader(LAUNCH, "--config_file")


def _misnamed(subject: MisnamedConfig, repository: Repository) -> Iterator[MisnamedLaunch]:
    for invocation in _READER.invocations(repository, subject.field.document):
        yield MisnamedLaunch(invocation, subject.field)


class Accelerate(WheelProgram[AccelerateConfig | ListedConfig | MisnamedConfig, AccelerateFacts]):
    """The program accelerate: its config files."""

    name = "accelerate"
    readers = (_READER,)

    def adopt(self, document: Document) -> Sequence[AccelerateConfig | ListedConfig | MisnamedConfig]:
        """A config file, whatever keys it has; a DeepSpeed config is none."""
        root = Field.root(document, Dialect.PYYAML)
        return [MisnamedConfig(root) if _is_deepspeed_config(root) else AccelerateConfig(root)]

    def recognise(self, document: Document) -> Sequence[AccelerateConfig | ListedConfig]:
        """A mapping with `distributed_type` or `compute_environment` and one or two more keys of such a file."""
        root = Field.root(document, Dialect.PYYAML)
        if root.is_sequence:
            return [ListedConfig(root)] if _is_config([e for item in root.items() for e in item.entries()]) else []
        return [AccelerateConfig(root)] if _is_config(list(root.entries())) else []

    def alternatives(
        self, subject: AccelerateConfig | ListedConfig | MisnamedConfig, surroundings: Surroundings, release: str
    ) -> Iterable[Views]:
        """One alternative for each command line that uses the file; the file alone where there is none."""
        if isinstance(subject, MisnamedConfig):
            return [list(_misnamed(subject, surroundings.repository))]
        if not isinstance(subject, AccelerateConfig):
            return [[subject]]
        known = accelerate_facts(release)
        launches = _differing(self.in_all(subject, surroundings, release))
        configs = [AccelerateConfig(subject.field, launch) for launch in launches] or [subject]
        return (
            [config, fsdp_setup(config, known), *deepspeed_views(config, known, surroundings.repository)]
            for config in configs
        )

    def in_all(
        self, subject: AccelerateConfig | ListedConfig | MisnamedConfig, surroundings: Surroundings, release: str
    ) -> Sequence[Launch]:
        """The command lines that use the file."""
        if not isinstance(subject, AccelerateConfig):
            return ()
        return [Launch(invocation, subject.field) for invocation in _launches_of(surroundings, subject)]

    def facts(self, release: str) -> AccelerateFacts:
        """What one known release accepts."""
        return accelerate_facts(release)


PROGRAM = Accelerate()
