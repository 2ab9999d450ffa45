"""transformers: YAML files of TrainingArguments, as HfArgumentParser reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from trainlint.findings import Stage
from trainlint.programs import WheelProgram
from trainlint.programs.transformers.arguments import Arguments, ArgumentsFile, arguments_in, is_config, known_names
from trainlint.programs.transformers.facts import FILLED, ArgumentFacts, transformers_facts
from trainlint.programs.transformers.fsdp import FsdpConfig
from trainlint.programs.transformers.json_settings import is_object_text, mapping_of, trouble_of
from trainlint.programs.transformers.launched import LaunchOfFile, launches_of_file, passed_files
from trainlint.programs.transformers.setup import fsdp_setup, training
from trainlint.reading.document import Document
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field, Value
from trainlint.records import dataclass, replace
from trainlint.releases import within
from trainlint.repository.files import display_path
from trainlint.repository.python_code import own_reader, python_code
from trainlint.targets import How
from trainlint.training.command_lines import GivenBeside, flag_names, given_in
from trainlint.training.declarations import declarations
from trainlint.training.deepspeed import TRAINER, DeepSpeedConfig, deepspeed_facts, stated_release
from trainlint.training.fsdp import FsdpRun, FsdpSetup, Training, nothing

if TYPE_CHECKING:
    from trainlint.programs import Surroundings, Views
    from trainlint.repository.files import Repository

T = TypeVar("T")


def views(arguments: Arguments, trained: Training, launched: Iterable[tuple[FsdpSetup, set[str]]]) -> Iterator[object]:
    """What the rules look at: the arguments, their own sharding, and the arguments with each sharding.

    `launched` are the setups of launchers, each with the arguments that its command line gives itself.
    """
    yield arguments
    setup = fsdp_setup(arguments)
    on_cpu = any(arguments.switch(name).is_(True) for name in ("use_cpu", "no_cuda"))
    if setup is not None:
        yield setup
    if setup is not None and setup.on:
        if not on_cpu:
            yield FsdpRun(facts=arguments.facts.fsdp, setup=setup, training=trained)
        return
    for theirs, given in launched if arguments.whole and not on_cpu else ():
        yield FsdpRun(facts=arguments.facts.fsdp, setup=theirs, training=_without(trained, given))


def launches(file: ArgumentsFile, surroundings: Surroundings) -> Iterator[tuple[FsdpSetup, set[str]]]:
    """The setup of each `accelerate launch` in the repository that passes this file to its script.

    With each come the names of the arguments that the command line gives itself.
    """
    from trainlint.programs.accelerate.config import LAUNCH
    from trainlint.programs.accelerate.program import launched_setups
    from trainlint.repository.invocations import invocations_naming

    naming = invocations_naming(surroundings.repository, file.field.document, LAUNCH, passed_files)
    for invocation, setup in launched_setups(surroundings, naming):
        yield setup, flag_names(word.text for word in invocation.rest)


@dataclass(frozen=True)
class LaunchedArguments:
    """The arguments as a launch starts them, with the names of those that the command line gives itself."""

    arguments: Arguments
    launch: LaunchOfFile
    given: frozenset[str]

    @property
    def field(self) -> Field:
        """The mapping of the arguments."""
        return self.arguments.field

    @property
    def has_own_deepspeed(self) -> bool:
        """The arguments name a DeepSpeed config themselves."""
        field = self.arguments.get("deepspeed")
        return "deepspeed" in self.given or not (field.is_absent or field.text().is_(""))


def launched_arguments(arguments: Arguments, surroundings: Surroundings) -> Iterator[LaunchedArguments]:
    """The arguments with each launch in the repository that passes their file to its script."""
    for launch in launches_of_file(arguments.field.document, surroundings) if arguments.whole else ():
        yield LaunchedArguments(arguments, launch, frozenset(flag_names(launch.words)))


def read_otherwise(subject: ArgumentsFile, repository: Repository) -> str:
    """The reason why a file is none of arguments: a script reads it into its own options, key by key, or by Hydra."""
    code, keys = python_code(repository), frozenset(entry.name for entry in subject.field.entries())
    file = code.reads_into_options(keys)
    if file is not None:
        return f"{display_path(file)} reads it into its own options"
    file = code.composes(subject.field.document.path, is_config)
    if file is not None:
        return f"Hydra composes it for {display_path(file)}"
    known = declarations("trl")
    file = code.picks(keys.difference(known_names(), *map(known.keys_of_any, known.tables)), is_config)
    return f"{display_path(file)} reads its keys one by one" if file is not None else ""


def given_by_all(subject: ArgumentsFile, surroundings: Surroundings) -> GivenBeside:
    """The arguments that each launch of a file in the repository gives on its command line."""
    from trainlint.programs.accelerate.config import LAUNCH
    from trainlint.repository.invocations import invocations_naming

    naming = invocations_naming(surroundings.repository, subject.field.document, LAUNCH, passed_files)
    given = [given_in(invocation.rest) for invocation in naming if subject.whole]
    certain = [one.names for one in given if not one.is_open] or [one.names for one in given]
    names = frozenset.intersection(*certain) if certain else frozenset[str]()
    return GivenBeside(names, bool(given) and all(one.is_open for one in given))


def _without(trained: Training, given: set[str]) -> Training:
    """The training arguments without those that a command line gives."""

    def kept(value: Value[T], *names: str) -> Value[T]:
        return nothing() if given.intersection(names) else value

    return replace(
        trained,
        gradient_checkpointing=kept(
            trained.gradient_checkpointing,
            "gradient_checkpointing",
            "activation_checkpointing",
            "no_gradient_checkpointing",
        ),
        save_only_model=kept(trained.save_only_model, "save_only_model"),
        load_best_model_at_end=kept(trained.load_best_model_at_end, "load_best_model_at_end"),
        auto_find_batch_size=kept(trained.auto_find_batch_size, "auto_find_batch_size"),
        optimizer=kept(trained.optimizer, "optim"),
        deepspeed=kept(trained.deepspeed, "deepspeed"),
        quantization=kept(trained.quantization, "load_in_4bit", "load_in_8bit"),
        quant_storage=kept(trained.quant_storage, "bnb_4bit_quant_storage"),
    )


def release_below(file: ArgumentsFile, surroundings: Surroundings, otherwise: str, needed: str) -> Sequence[str]:
    """The known releases of transformers that a trainer runs with: the target, the stated one, else `otherwise`.

    Of a range it is `otherwise` if that is in the range, else the newest. Where a statement fits no known release, the
    oldest and the newest are added. A stated one below the range that the trainer's release needs is that of another
    environment: the trainer does not start with it.
    """
    from trainlint.training.meant import is_below, known_releases, target

    known = declarations("transformers")
    named = surroundings.named_target("transformers", file.field.document.path)
    found = named or target(surroundings.repository, file.field.document.path, known_releases("transformers"))
    if found.how is How.STATED and is_below(needed, found.versions[-1]):
        return (otherwise,)
    if found.how in (How.CHOSEN, How.STATED):
        return known.in_force(found.versions[-1]).releases or (known.names[0],)
    if found.how is How.UNKNOWN:
        return tuple(dict.fromkeys((known.names[0], otherwise, known.names[-1])))
    return (otherwise,) if found.how is How.NOT_STATED or otherwise in found.versions else (found.versions[-1],)


def fsdp_config(arguments: Field, facts: ArgumentFacts, surroundings: Surroundings) -> FsdpConfig | None:
    """`fsdp_config` as a mapping, or from its JSON text or file; None where it is none of these."""
    field = arguments.get("fsdp_config")
    if is_object_text(field) and not facts.texts_parsed:
        return None
    mapping = mapping_of(field, surroundings)
    return FsdpConfig(mapping, facts, json=mapping is not field) if mapping else None


def deepspeed_config(file: ArgumentsFile, surroundings: Surroundings) -> Field | None:
    """`deepspeed` as a mapping, or from its JSON text or file; None where it is none of these."""
    return mapping_of(file.field.get("deepspeed"), surroundings)


_WITH_DEEPSPEED = "4.49.0.."
"""The releases that the known ones of DeepSpeed are run with."""


def read_by_deepspeed(arguments: Arguments, surroundings: Surroundings) -> list[list[DeepSpeedConfig]]:
    """The DeepSpeed config of the arguments, one alternative for each release of DeepSpeed that may be meant.

    Where the repository states none, these are the newest and the oldest known one. Of a config that is none, or has no
    ZeRO, the rules on the arguments speak.
    """
    config, release = arguments.deepspeed, arguments.facts.release
    named, path = arguments.get("deepspeed"), arguments.field.document.path
    zero = config is not None and config.is_mapping and config.get("zero_optimization").node is not None
    if config is None or not zero or not arguments.parsed or not within(release, _WITH_DEEPSPEED):
        return [[]]
    if "deepspeed" in arguments.given_beside.names:
        return [[]]
    names = declarations("deepspeed").names
    stated = [stated_release(surroundings.repository, path, usual) for usual in (names[-1], names[0])]
    return [
        [
            DeepSpeedConfig(
                field=config,
                named=None if config is named else named,
                facts=deepspeed_facts(one),
                fills=dict.fromkeys(TRAINER | FILLED),
                has_trainer=True,
                read_at=Stage.LOAD,
            )
        ]
        for one in dict.fromkeys(stated)
        if one is not None
    ] or [[]]


class Transformers(WheelProgram[ArgumentsFile, ArgumentFacts]):
    """Files of TrainingArguments."""

    name = "transformers"

    def adopt(self, document: Document) -> Sequence[ArgumentsFile]:
        """A file of arguments, whatever they are."""
        return [ArgumentsFile(Field.root(document, Dialect.PYYAML), True, handed=True)]

    def recognise(self, document: Document) -> Sequence[ArgumentsFile]:
        """The training arguments in a document."""
        return arguments_in(document)

    def against(self, subject: ArgumentsFile, repository: Repository) -> str:
        """The nearest code that reads a section of a larger file makes no training arguments of it, or of the whole."""
        if subject.whole:
            return "" if subject.handed else read_otherwise(subject, repository)
        section = str(subject.field.path[-1])
        made = own_reader(repository, subject.field.document.path).made_of(section)
        if made is None or any(is_config(name) or name == "parse_dict" for name in made):
            return ""
        return f"code of the repository reads `{section}` itself"

    def alternatives(self, subject: ArgumentsFile, surroundings: Surroundings, release: str) -> Sequence[Views]:
        """The arguments, how they shard the model, and both together."""
        known = transformers_facts(release)
        arguments = Arguments(
            subject,
            known,
            fsdp_config(subject.field, known, surroundings),
            deepspeed_config(subject, surroundings),
            own_reader(surroundings.repository, subject.field.document.path),
            trouble_of(subject.field.get("deepspeed"), surroundings),
            given_by_all(subject, surroundings),
        )
        seen = views(arguments, training(arguments), launches(subject, surroundings))
        found = [*seen, *launched_arguments(arguments, surroundings)]
        return [[*found, *configs] for configs in read_by_deepspeed(arguments, surroundings)]

    def facts(self, release: str) -> ArgumentFacts:
        """What one known release accepts."""
        return transformers_facts(release)


PROGRAM = Transformers()
