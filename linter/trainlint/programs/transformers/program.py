"""transformers: YAML files of TrainingArguments, as HfArgumentParser reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from trainlint.findings import Edit, Finding, Fix, Related, Severity, Stage
from trainlint.programs import WheelProgram
from trainlint.programs.transformers.facts import (
    FALSE_WORDS,
    MEANT,
    TABLES,
    TRUE_WORDS,
    ArgumentFacts,
    transformers_facts,
)
from trainlint.programs.transformers.fsdp import FsdpConfig, FsdpOptions, fsdp_setup
from trainlint.programs.transformers.json_settings import is_object_text, mapping_of, object_text, trouble_of
from trainlint.reading.document import Document, Scalar
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field, Known, Unknown, Value, WrongType
from trainlint.repository.python_code import OwnReader, own_reader
from trainlint.targets import How
from trainlint.training.declarations import declarations
from trainlint.training.fsdp import FsdpRun, FsdpSetup, Training, nothing

if TYPE_CHECKING:
    from trainlint.programs import Surroundings, Views

T = TypeVar("T")

SIGNS = frozenset(
    """
    per_device_train_batch_size per_device_eval_batch_size per_gpu_train_batch_size num_train_epochs lr_scheduler_type
    save_strategy eval_strategy evaluation_strategy logging_strategy save_total_limit load_best_model_at_end
    metric_for_best_model remove_unused_columns report_to overwrite_output_dir gradient_checkpointing_kwargs
    hub_model_id hub_strategy push_to_hub ddp_find_unused_parameters group_by_length logging_first_step
    """.split()
)
"""Arguments whose names other programs hardly use."""

_SECTION_KEYS = 5
_SECTION_SHARE = 0.8
_SHORTEST_NEAR_MISS = 8


class ArgumentsFile:
    """A mapping of training arguments.

    `whole`: it is the document itself, which a parser reads. A section of a larger config gets to TrainingArguments
    through unknown code.
    """

    owns_document = True

    def __init__(self, field: Field, whole: bool) -> None:
        self.field = field
        self.whole = whole


def arguments_in(document: Document) -> list[ArgumentsFile]:
    """The mappings of training arguments in a document: the document itself, else sections one or two levels down."""
    root = Field.root(document, Dialect.PYYAML)
    if not root.is_mapping:
        return []
    keys = {entry.name for entry in root.entries()}
    if _is_arguments(root, keys):
        return [ArgumentsFile(root, True)]
    inner = [child for child in root.entries() if child.is_mapping]
    inner += [child for section in inner for child in section.entries() if child.is_mapping]
    return [ArgumentsFile(section, False) for section in inner if _is_section(section)]


def _is_arguments(field: Field, keys: set[str]) -> bool:
    known = keys & _all_names()
    if not field.get("fsdp").is_mapping and "fsdp" in keys:
        return bool(keys & {"output_dir", "per_device_train_batch_size", "learning_rate", "num_train_epochs"})
    return len(keys & SIGNS) >= 3 or ("per_device_train_batch_size" in keys and len(known) >= 3)


def _is_section(field: Field) -> bool:
    keys = {entry.name for entry in field.entries()}
    known = keys & _all_names()
    return len(known) >= max(_SECTION_KEYS, _SECTION_SHARE * len(keys)) and (
        len(keys & SIGNS) >= 3 or "per_device_train_batch_size" in keys
    )


def _all_names() -> frozenset[str]:
    known = declarations("transformers")
    return frozenset().union(*(known.keys_of_any(table) for table in TABLES))


class Arguments:
    """The arguments as one release reads them."""

    def __init__(
        self,
        file: ArgumentsFile,
        facts: ArgumentFacts,
        config: FsdpConfig | None = None,
        deepspeed: Field | None = None,
        reader: OwnReader | None = None,
        trouble: str = "",
    ) -> None:
        self.field = file.field
        self.reader = reader or OwnReader()
        """What the repository's own code does with the file."""
        self.whole = file.whole and not self.reader.takes_apart
        self.facts = facts
        self.config = config
        """The section of FSDP settings, where it is known."""
        self.deepspeed = deepspeed
        """The mapping in `deepspeed` or in the file that it names, where it is known."""
        self.trouble = trouble
        """Why the JSON in `deepspeed`, or in the file that it names, is no object."""

    def get(self, name: str) -> Field:
        """The field of an argument."""
        return self.field.get(name)

    def own(self, name: str) -> Field:
        """The field of an argument that only some releases have; absent where this one does not."""
        return self.get(name if name in self.facts.fields else "")

    def has(self, name: str) -> bool:
        """The argument is written, even as null."""
        return self.get(name).node is not None

    # what is known of the parser

    @property
    def is_certain(self) -> bool:
        """The parser that reads the file, and all its dataclasses, are known."""
        return False

    def is_refused(self, key: str) -> bool:
        """The parser surely refuses this key, which none of its dataclasses has."""
        return False

    def is_dropped(self, key: str) -> bool:
        """The parser surely ignores this key, which none of its dataclasses has."""
        return False

    def is_known(self, key: str) -> bool:
        """What the parser does with this key is known."""
        return self.is_refused(key) or self.is_dropped(key)

    def raises_on_kind(self, name: str) -> Stage | None:
        """When it surely raises that a number is of a wrong kind: numpy is given the seed when the trainer is made."""
        return Stage.START if name == "seed" else None

    def refused(
        self,
        at: Field | Value[T],
        message: str,
        *,
        help: str = "",
        replacement: str | None = None,
        related: tuple[Related, ...] = (),
        at_key: bool = False,
        stage: Stage | None = None,
    ) -> Finding:
        """A finding on what the release refuses: an error where a parser reads this mapping, else a warning."""
        severity = Severity.ERROR if self.whole else Severity.WARNING
        fix = _written_as(at, replacement)
        return at.finding(message, help=help, severity=severity, related=related, fix=fix, at_key=at_key, stage=stage)

    def warned(
        self,
        at: Field | Value[T],
        message: str,
        *,
        help: str = "",
        replacement: str | None = None,
        at_key: bool = False,
        stage: Stage | None = None,
    ) -> Finding:
        """A finding on what is accepted but not meant, or refused by some parsers only."""
        fix = _written_as(at, replacement)
        return at.finding(message, help=help, severity=Severity.WARNING, fix=fix, at_key=at_key, stage=stage)

    # values, as the parser passes them on

    def number(self, name: str) -> Value[float]:
        """A number; text counts where the parser converts it."""
        field = self.get(name)
        text = field.text().known
        if text is not None and self.facts.converts:
            try:
                return Known(field, float(text))
            except ValueError:
                return WrongType(field)
        return field.number()

    def switch(self, name: str) -> Value[bool]:
        """A switch; Unknown for text that the parsers read differently."""
        field = self.get(name)
        text = field.text().known
        if text is None:
            number = field.number()
            return number.map(bool) if number.known is not None else field.boolean()
        word = text.lower()
        if word in TRUE_WORDS or (word in FALSE_WORDS and self.facts.converts):
            return Known(field, word in TRUE_WORDS)
        return Unknown(field)

    def is_on(self, name: str) -> bool:
        """The switch is on, as written or by default."""
        value = self.switch(name)
        return value.is_(True) or (value.absent and self.facts.default(name) is True)

    def word(self, name: str) -> Value[str]:
        """A word, or the release's default."""
        default = self.facts.default(name)
        value = self.get(name).text()
        return value.or_when_absent(default) if isinstance(default, str) else value

    def steps(self, name: str) -> Value[float]:
        """A number of steps, or the release's default; for evaluation that of logging where it has none."""
        value = self.number(name)
        if name == "eval_steps" and (value.absent or value.is_(0)):
            return self.steps("logging_steps")
        default = self.facts.default(name)
        if self.get(name).is_null or not isinstance(default, (int, float)):
            return value
        return value.or_when_absent(float(default))

    def mapping(self, name: str) -> Field | None:
        """An argument that is a mapping, or the text of a JSON object where the release parses it; None for others."""
        field = self.get(name)
        if field.is_mapping or not is_object_text(field):
            return field if field.is_mapping else None
        text = field.text().known
        return object_text(field, text) if text is not None and self.facts.texts_parsed else None

    @property
    def eval_strategy(self) -> Value[str]:
        """The evaluation strategy under its new or old name; the old one wins where the release reads both."""
        old = self.get("evaluation_strategy")
        if "eval_strategy" not in self.facts.fields:
            return self.word("evaluation_strategy")
        if "evaluation_strategy" in self.facts.fields and not old.is_absent:
            return old.text()
        return self.word("eval_strategy")

    @property
    def checkpointing_name(self) -> str:
        """The name of the argument for gradient checkpointing: activation_checkpointing where that is set."""
        new = "activation_checkpointing"
        return new if new in self.facts.fields and not self.get(new).is_absent else "gradient_checkpointing"

    @property
    def checkpoints_gradients(self) -> bool:
        """The Trainer's gradient checkpointing is on."""
        return self.is_on(self.checkpointing_name)

    @cached_property
    def options(self) -> FsdpOptions:
        """The argument `fsdp`."""
        return FsdpOptions(self.get("fsdp"))

    @property
    def wraps(self) -> bool:
        """Layer classes or a size are given, in fsdp_config or by the arguments that went before it."""
        names = ("fsdp_min_num_params", "fsdp_transformer_layer_cls_to_wrap")
        given = any(not self.own(name).is_absent for name in names)
        return given or (self.config is not None and (self.config.has_size or self.config.has_classes))

    def near_miss(self, name: str) -> str | None:
        """The argument that a name may mean: one that is not given, within two edits (hyphens apart) or cut short."""
        name = name.replace("-", "_")
        if len(name) < _SHORTEST_NEAR_MISS or name in MEANT:
            return MEANT.get(name)
        names = [known for known in self.facts.fields if not self.has(known) and abs(len(known) - len(name)) <= 3]
        near = [known for known in names if _edits(name, known) <= 2 or known.startswith(name)]
        return min(near, key=lambda known: _edits(name, known), default=None)


def _written_as(at: Field | Value[T], text: str | None) -> Fix | None:
    """A fix that writes another text in the place of a scalar; None for an alias or a block."""
    field = at.field if isinstance(at, Value) else at
    node = field.node
    if text is None or not isinstance(node, Scalar) or field.use is not None or node.style in ("|", ">"):
        return None
    return Fix(f"write {text}", (Edit(node.start, node.end, text),))


def _edits(word: str, other: str) -> int:
    """The smallest number of letters to change, add, remove or swap with a neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        earlier, before = before, row
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


def training(arguments: Arguments) -> Training:
    """Training arguments that interact with sharding."""
    checkpointing = arguments.switch(arguments.checkpointing_name)
    if checkpointing.absent and arguments.checkpoints_gradients:
        config = arguments.config
        place = config.get("activation_checkpointing") if config else arguments.field
        checkpointing = Known(place if place.node is not None else arguments.field, True)
    deepspeed = arguments.get("deepspeed")
    has_deepspeed = not deepspeed.is_absent and not deepspeed.text().is_("")
    return Training(
        arguments=arguments.field,
        gradient_checkpointing=checkpointing,
        save_only_model=arguments.switch("save_only_model"),
        load_best_model_at_end=arguments.switch("load_best_model_at_end"),
        auto_find_batch_size=arguments.switch("auto_find_batch_size"),
        optimizer=arguments.get("optim").text(),
        deepspeed=Known(deepspeed, deepspeed.written) if has_deepspeed else nothing(),
    )


# reading the file


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
    from trainlint.programs.accelerate.program import launched_setups
    from trainlint.repository.invocations import names_document

    for invocation, setup in launched_setups(surroundings):
        words = [word.known or "" for word in invocation.rest]
        names = [word.rpartition("=")[2] for word in words if word.endswith((".yaml", ".yml"))]
        if any(names_document(surroundings.repository, invocation, name, file.field.document) for name in names):
            yield setup, flag_names(words)


def flag_names(words: Iterable[str]) -> set[str]:
    """The names of the arguments on a command line: `--learning-rate=1` gives learning_rate."""
    return {word[2:].partition("=")[0].replace("-", "_") for word in words if word.startswith("--")}


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
        quantization=kept(trained.quantization, "load_in_4bit"),
        quant_storage=kept(trained.quant_storage, "bnb_4bit_quant_storage"),
    )


def release_below(file: ArgumentsFile, surroundings: Surroundings, otherwise: str) -> Sequence[str]:
    """The known releases of transformers that a trainer runs with: the target, the stated one, else `otherwise`.

    Of a range it is `otherwise` if that is in the range, else the newest. Where a statement fits no known release, the
    oldest and the newest are added.
    """
    from trainlint.training.meant import known_releases, target

    known = declarations("transformers")
    named = surroundings.named_target("transformers", file.field.document.path)
    found = named or target(surroundings.repository, file.field.document.path, known_releases("transformers"))
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


class Transformers(WheelProgram[ArgumentsFile, ArgumentFacts]):
    """Files of TrainingArguments."""

    name = "transformers"

    def adopt(self, document: Document) -> Sequence[ArgumentsFile]:
        """A file of arguments, whatever they are."""
        return [ArgumentsFile(Field.root(document, Dialect.PYYAML), True)]

    def recognise(self, document: Document) -> Sequence[ArgumentsFile]:
        """The training arguments in a document."""
        return arguments_in(document)

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
        )
        return [list(views(arguments, training(arguments), launches(subject, surroundings)))]

    def facts(self, release: str) -> ArgumentFacts:
        """What one known release accepts."""
        return transformers_facts(release)


PROGRAM = Transformers()
