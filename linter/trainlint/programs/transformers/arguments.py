"""Training arguments: which mappings are some, and how one release reads them."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TypeVar

from trainlint.budget import BUDGET
from trainlint.findings import Finding, Fix, Related, Severity, Stage, common_letters
from trainlint.programs.transformers.facts import (
    FALSE_WORDS,
    MEANT,
    TABLES,
    TRUE_WORDS,
    ArgumentFacts,
)
from trainlint.programs.transformers.fsdp import FsdpConfig, FsdpOptions
from trainlint.programs.transformers.json_settings import is_object_text, object_text
from trainlint.reading.document import Document
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field, Known, Unknown, Value, WrongType
from trainlint.repository.python_code import OwnReader
from trainlint.training.command_lines import NOTHING_BESIDE, GivenBeside
from trainlint.training.declarations import Spec, declarations
from trainlint.training.deepspeed import BrokenConfig

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

_JOB_KEYS = frozenset("command entry_point entrypoint executable program script training_script".split())

_SECTION_KEYS = 5
_SECTION_SHARE = 0.8
_SHORTEST_NEAR_MISS = 8


CONFIGS = frozenset(
    f"{trainer}Config"
    for trainer in "SFT DPO GRPO KTO ORPO CPO RLOO Reward GKD PPO PPOv2 OnlineDPO PRM XPO BCO".split()
)
"""TRL's classes of training arguments."""


def is_config(name: str) -> bool:
    """A class of this name holds training arguments."""
    return name.endswith("TrainingArguments") or name in CONFIGS


class ArgumentsFile:
    """A mapping of training arguments.

    `whole`: it is the document itself, which a parser reads. A section of a larger config gets to TrainingArguments
    through unknown code. `handed`: a command or a setting names the file's program, so that no other code need load it.
    """

    owns_document = True

    def __init__(self, field: Field, whole: bool, *, handed: bool = False) -> None:
        self.field = field
        self.whole = whole
        self.handed = handed


def arguments_in(document: Document) -> list[ArgumentsFile]:
    """The mappings of training arguments in a document: the document itself, else sections one or two levels down."""
    root = Field.root(document, Dialect.PYYAML)
    if not root.is_mapping:
        return []
    keys = {entry.name for entry in root.entries()}
    if _is_arguments(root, keys):
        return [ArgumentsFile(root, True)]
    inner = [child for part in [root] if not _is_job(part) for child in part.entries() if child.is_mapping]
    inner += [child for part in inner if not _is_job(part) for child in part.entries() if child.is_mapping]
    return [ArgumentsFile(section, False) for section in inner if _is_section(section)]


def _is_job(field: Field) -> bool:
    """The mapping describes a job: its sections reach a script as words of a command line."""
    return any(entry.name in _JOB_KEYS for entry in field.entries())


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
        trouble: BrokenConfig | None = None,
        given_beside: GivenBeside = NOTHING_BESIDE,
    ) -> None:
        self.field = given_beside.seen_from(file.field)
        self.reader = reader or OwnReader()
        """What the repository's own code does with the file."""
        self.whole = file.whole and not self.reader.takes_apart
        self.parsed = self.whole and (file.handed or not self.reader.loads_alone)
        """A parser reads all keys, as far as the repository's code tells."""
        self.facts = facts
        self.config = config
        """The section of FSDP settings, where it is known."""
        self.deepspeed = deepspeed
        """The mapping in `deepspeed` or in the file that it names, where it is known."""
        self.given_beside = given_beside
        """What every launch of the file gives on its command line."""
        self.trouble = trouble
        """Why the JSON in `deepspeed`, or in the file that it names, is no object."""

    def get(self, name: str) -> Field:
        """The field of an argument; unknown where a command line or code of the repository gives the value."""
        field = self.field.get(name)
        elsewhere = name in self.given_beside.names or (field.is_absent and self._may_be_given(field))
        return field.given_elsewhere() if elsewhere else field

    def _may_be_given(self, field: Field) -> bool:
        """The command line or code may give what the file leaves out, or code fills in the null that is written."""
        if field.is_null or field.name not in self.facts.fields:
            return self._is_filled_in(field)
        default = self.facts.default(field.name)
        return self.may_have_own_classes and self.reader.gives(field.name, default, is_config)

    def _is_filled_in(self, field: Field) -> bool:
        """The argument is null, and a class of the repository sets it then."""
        return field.is_null and self.may_have_own_classes and self.reader.fills_null(field.name)

    @cached_property
    def given(self) -> list[tuple[str, Spec, Field]]:
        """The arguments of this release whose written value counts, each with what it must be."""
        fields = {name: spec for name, spec in self.facts.fields.items() if name not in self.given_beside.names}
        return [
            (entry.name, fields[entry.name], entry)
            for entry in self.field.entries()
            if entry.name in fields and not self._is_of_own_kind(fields[entry.name], entry)
        ]

    def _is_of_own_kind(self, argument: Spec, entry: Field) -> bool:
        """A class of the repository gives the argument another type than the release does, or fills in its null."""
        if not self.may_have_own_classes:
            return False
        if self._is_filled_in(entry):
            return True
        apart = set() if entry.is_null else {"None"}
        known = set(argument.types) - apart
        return any(types - apart != known for types in self.reader.types_of(entry.name))

    @property
    def may_have_own_classes(self) -> bool:
        """Classes of the repository may take the arguments: it is no script of a release that reads the file."""
        return True

    def is_own(self, name: str) -> bool:
        """The argument is one of a class of the repository that has nothing of the trainer's config."""
        return self.may_have_own_classes and self.reader.owns(name, is_config)

    @cached_property
    def has_own_config(self) -> bool:
        """A class of the repository that is derived from a config of a trainer may take the arguments."""
        return self.may_have_own_classes and self.reader.takes_with(is_config)

    def own(self, name: str) -> Field:
        """The field of an argument that only some releases have; absent where this one does not."""
        return self.get(name if name in self.facts.fields else "")

    def has(self, name: str) -> bool:
        """The argument is written, even as null, unless code of the repository fills in the null."""
        return self.get(name).node is not None

    def is_left_out(self, name: str) -> bool:
        """The release's default counts: nothing is written, and no code of the repository gives a value."""
        field = self.get(name)
        return field.node is None and not field.is_unknown

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
        """When it surely raises that a number is of a wrong kind: in numpy, in the data loader, in the optimizer."""
        stages = {"seed": Stage.START, "per_device_train_batch_size": Stage.TRAIN, "learning_rate": Stage.TRAIN}
        return stages.get(name)

    def refused(
        self,
        at: Field | Value[T],
        message: str,
        *,
        help: str = "",
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
        at_key: bool = False,
        stage: Stage | None = None,
    ) -> Finding:
        """A finding on what the release refuses: an error where a parser reads this mapping, else a warning."""
        severity = Severity.ERROR if self.parsed else Severity.WARNING
        return at.finding(message, help=help, severity=severity, related=related, fix=fix, at_key=at_key, stage=stage)

    def warned(
        self,
        at: Field | Value[T],
        message: str,
        *,
        help: str = "",
        related: tuple[Related, ...] = (),
        fix: Fix | None = None,
        at_key: bool = False,
        stage: Stage | None = None,
    ) -> Finding:
        """A finding on what is accepted but not meant, or refused by some parsers only."""
        severity = Severity.WARNING
        return at.finding(message, help=help, severity=severity, related=related, fix=fix, at_key=at_key, stage=stage)

    # values, as the parser passes them on

    def is_none_text(self, argument: Spec, text: str) -> bool:
        """The parser makes null of this text."""
        optional = "None" in argument.types and "str" not in argument.types
        return self.facts.none_is_null and optional and text.lower() in ("none", "null")

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
        """A word, or the release's default, which a null does not stand for."""
        default = self.facts.default(name)
        value = self.get(name).text()
        return value.or_when_absent(default) if isinstance(default, str) and not self.has(name) else value

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
        """The evaluation strategy under its new or old name; the old one wins where the release reads both.

        It is not known where the file has only the name of other releases, which is a fault of its own.
        """
        old = self.get("evaluation_strategy")
        for name, other in (("eval_strategy", "evaluation_strategy"), ("evaluation_strategy", "eval_strategy")):
            if name not in self.facts.fields and not self.get(name).is_absent and self.get(other).is_absent:
                return Unknown(self.get(name))
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
    def checkpointing_settings_name(self) -> str:
        """The name of the settings for gradient checkpointing: the new one where that is set."""
        new = "activation_checkpointing_kwargs"
        return new if new in self.facts.fields and not self.get(new).is_absent else "gradient_checkpointing_kwargs"

    @property
    def own_checkpointing_settings(self) -> frozenset[str]:
        """Settings for gradient checkpointing that the trainer takes itself."""
        return frozenset()

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
        """The argument that a name may mean: within two edits (hyphens apart) or cut short, within one if it is given.

        One of this release comes first; one of another release is meant as well, for a file that is older or newer.
        """
        name = name.replace("-", "_")
        if len(name) < _SHORTEST_NEAR_MISS or name in MEANT:
            return MEANT.get(name)
        alike = _alike(name, tuple(self.facts.tables.items()))
        left = [known for known in alike if not self.has(known) or edits(name, known) == 1]
        return next((known for known in left if known in self.facts.fields), left[0] if left else None)


@lru_cache(maxsize=2**14)
def _alike(name: str, tables: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[str, ...]:
    """The arguments that a name may mean, of any release that has these tables by program; the nearest first."""
    longest = len(name) + 3 if len(name) <= BUDGET.likened else 0
    by_length = _by_length(tables)
    near = [
        known
        for length in range(len(name) - 3, longest + 1)
        for known in by_length.get(length, ())
        if known.startswith(name) or edits(name, known) <= 2
    ]
    return tuple(sorted(near, key=lambda known: (edits(name, known), known)))


@lru_cache
def _by_length(tables: tuple[tuple[str, tuple[str, ...]], ...]) -> dict[int, set[str]]:
    """The arguments of all releases that these tables have, by their length."""
    found: dict[int, set[str]] = {}
    for program, listed in tables:
        for known in (known for table in listed for known in declarations(program).keys_of_any(table)):
            found.setdefault(len(known), set()).add(known)
    return found


@lru_cache(maxsize=2**14)
def edits(word: str, other: str) -> int:
    """The smallest number of letters to change, add, remove or swap with a neighbour; 9 where it is surely above 2."""
    # A change replaces one letter in the one word and one in the other, a swap none.
    if len(word) - common_letters(word, other) > 2 or len(other) - common_letters(word, other) > 2:
        return 9
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
