"""TRL: YAML files for `trl sft --config` and the scripts behind it, as TrlParser reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import product
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, TypeVar

from trainlint.findings import Finding, Severity, Stage
from trainlint.lazy import regex
from trainlint.programs import FileReader, WheelProgram, told
from trainlint.programs.transformers.arguments import Arguments, ArgumentsFile, arguments_in
from trainlint.programs.transformers.facts import FALSE_WORDS, TABLES, TRUE_WORDS, ArgumentFacts
from trainlint.programs.transformers.json_settings import trouble_of
from trainlint.programs.transformers.program import (
    deepspeed_config,
    fsdp_config,
    given_by_all,
    launched_arguments,
    launches,
    read_by_deepspeed,
    read_otherwise,
    release_below,
    views,
)
from trainlint.programs.transformers.setup import training
from trainlint.programs.trl.facts import (
    DIVERGENCE_LOSSES,
    FSDP_PROFILES,
    GOES_WITH,
    PROFILE_PROCESSES,
    PROFILES,
    TRAINERS,
    Unknowns,
    command_keys,
    launch_keys,
    trainer_of,
    trainer_tables,
    trl_facts,
)
from trainlint.programs.trl.starts import COMMAND_READER, MODULE, Start, start_of_own_script, starts
from trainlint.reading.document import Document, of_data
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import UNKNOWN, Field, Known, Value
from trainlint.records import replace
from trainlint.releases import within
from trainlint.repository.python_code import own_reader
from trainlint.training.command_lines import NOTHING_BESIDE, GivenBeside, flag_names, given_by_any, given_in
from trainlint.training.declarations import declarations
from trainlint.training.fsdp import FsdpSetup, Training, nothing
from trainlint.training.limits import Data, data_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from trainlint.findings import Details
    from trainlint.programs import Surroundings, Views
    from trainlint.repository.files import Repository
    from trainlint.training.declarations import Spec

T = TypeVar("T")

EXAMPLE_SCRIPT_KEYS = frozenset(
    """
    dataset_config_name train_file validation_file block_size max_train_samples max_eval_samples use_fast_tokenizer
    """.split()
)
"""Arguments of transformers' example scripts, which use HfArgumentParser."""

_COMMON = frozenset(
    """
    base_model batch_size columns config data_dir data_files dataset_config dataset_name dataset_num_proc datasets
    device dtype exp_name label_smoothing log_with max_length max_new_tokens max_seq_length mixed_precision
    model_name_or_path model_revision name num_epochs num_updates packing path resume_from sanity_check seed split
    streaming temperature tools top_k top_p torch_dtype train_batch_size trust_remote_code user attn_implementation
    lora_alpha lora_dropout lora_r lora_target_modules load_in_4bit load_in_8bit use_peft
    """.split()
)
"""Arguments of TRL that other scripts have too."""


class TrlArguments(Arguments):
    """The arguments of one of TRL's trainers, as a start reads them.

    `start` is None where the repository shows none; `trainer` is then what the keys or the file's name tell.
    """

    start: Start | None = None
    trainer: str | None = None
    shown = False
    """The trainer follows from a start or from the keys, not from the file's name alone."""

    @property
    def is_certain(self) -> bool:
        """The parser and its dataclasses are known."""
        return self.whole and self.start is not None and self.start.unknowns is not Unknowns.UNSURE

    def is_refused(self, key: str) -> bool:
        """The start refuses this key, which no dataclass of its parser has."""
        release = self.facts.version
        how = self.start.unknowns if self.start and self.whole else Unknowns.UNSURE
        if how is Unknowns.SHARED and key in command_keys(release):
            return False
        passed_on = how in (Unknowns.LAUNCHED, Unknowns.SHARED) and key not in launch_keys()
        return key != "env" and (passed_on or how is Unknowns.REFUSED)

    def is_dropped(self, key: str) -> bool:
        """The start drops this key, which no dataclass of its parser has, without a message."""
        how = self.start.unknowns if self.start and self.whole else Unknowns.UNSURE
        shared = how is Unknowns.SHARED and key in command_keys(self.facts.version)
        return key not in ("env", "config") and (shared or how is Unknowns.DROPPED)

    def raises_on_kind(self, name: str) -> Stage | None:
        """As in transformers; PEFT makes its matrices with the rank, and losses are computed with beta."""
        if name == "lora_r" and self.data("scripted") and self.data("use_peft") is True:
            return Stage.START
        if name == "gradient_accumulation_steps" and self.is_sure and self.trainer in ("grpo", "rloo"):
            return Stage.START
        if name == "dataset_kwargs" and self.is_sure and self.trainer == "sft":
            return Stage.START
        if name == "beta" and self.is_sure and self.trainer in ("dpo", "kto", "cpo", "orpo"):
            return Stage.TRAIN
        return super().raises_on_kind(name)

    @property
    def own_checkpointing_settings(self) -> frozenset[str]:
        """SFT has a key of its own."""
        has = within(self.facts.version, "1.15.0..") and self.trainer in ("sft", None)
        return frozenset({"selective"}) if has else frozenset()

    @property
    def is_sure(self) -> bool:
        """A parser reads the file, and it is that of the trainer, which is TRL's own."""
        return self.parsed and self.shown and not self._has_own_trainer

    @property
    def may_have_own_classes(self) -> bool:
        """As in transformers; TRL's own scripts read TRL's own classes."""
        return not (self.start is not None and self.start.scripted)

    @cached_property
    def _has_own_trainer(self) -> bool:
        """The repository has a trainer or a config of the same name: no command of TRL starts TRL's."""
        if self.trainer is None or (self.start is not None and self.start.scripted):
            return False
        config = TRAINERS[self.trainer]
        return self.reader.replaces(config) or self.reader.replaces(config.replace("Config", "Trainer"))

    def told(self, at: Field | Value[T], message: str, **details: Unpack[Details]) -> Finding:
        """A finding on what the trainer refuses: an error where it is surely this trainer, else a warning."""
        details["severity"] = None if self.is_sure else Severity.WARNING
        return at.finding(message, **details)

    @property
    def has_own_losses(self) -> bool:
        """The repository's own trainer may compute the loss: no command of TRL starts its own."""
        return self.reader.computes_losses and not (self.start is not None and self.start.scripted)

    @property
    def processes(self) -> int | None:
        """The number of processes, where the command line, or the file for the launcher, tells it."""
        start = self.start
        if start is None or start.processes is not None or not start.command:
            return start.processes if start else None
        if start.unknowns not in (Unknowns.LAUNCHED, Unknowns.SHARED) or "accelerate_config" in start.beside.names:
            return None
        profile = self.get("accelerate_config")
        stated = self.get("num_processes").integer().known
        return PROFILE_PROCESSES if stated is None and profile.text().is_(*PROFILES) else stated

    @property
    def losses(self) -> list[Data] | None:
        """The losses; None where they are not known."""
        found = self.data("loss_type")
        if found is UNKNOWN or isinstance(found, Mapping):
            return None
        listed: list[Data] = list(found) if isinstance(found, Sequence) and not isinstance(found, str) else [found]
        return None if UNKNOWN in listed else listed

    # what limits look at

    def place(self, name: str) -> Field:
        """Where a setting is written."""
        first, *further = name.split(".")
        return self.get(first).at(*further)

    def data(self, name: str) -> Data:
        """The value of a setting as the parser makes it, or its default; what the command line gives is unknown."""
        derived = _DERIVED.get(name)
        if derived is not None:
            return derived(self)
        if name.startswith("losses."):
            return name.partition(".")[2] in self.losses if self.losses is not None else UNKNOWN
        if name.partition(".")[0] not in self.facts.fields:
            return None
        place = self.place(name)
        if place.node is not None or place.is_unknown:
            found = data_of(place)
            spec = self.facts.fields.get(name)
            return _converted(found, spec) if isinstance(found, str) and spec is not None else found
        return UNKNOWN if self._is_computed(name) else self.facts.default(name)

    def _is_computed(self, name: str) -> bool:
        spec = self.facts.fields.get(name)
        return spec is not None and spec.computed and self.facts.default(name) is None


def _converted(text: str, spec: Spec) -> Data:
    """A text in the type of its argument, where that is a number or a boolean and it is one."""
    kinds = [kind for kind in spec.types if kind != "None"]
    try:
        if kinds == ["int"]:
            return int(text)
        if kinds == ["float"]:
            return float(text)
    except ValueError:
        return UNKNOWN
    if kinds == ["bool"]:
        word = text.lower()
        return word in TRUE_WORDS if word in TRUE_WORDS | FALSE_WORDS else UNKNOWN
    return text


def _evaluates(arguments: TrlArguments) -> Data:
    """An evaluation strategy other than `no`."""
    strategy = arguments.eval_strategy
    return UNKNOWN if strategy.unknown or strategy.known is None else not strategy.is_("no")


def _zero3(arguments: TrlArguments) -> Data:
    """The DeepSpeed config that the file names has ZeRO stage 3."""
    stage = arguments.deepspeed.at("zero_optimization", "stage").integer() if arguments.deepspeed else None
    return stage is not None and stage.is_(3)


def _streams(arguments: TrlArguments) -> Data:
    """The data is streamed."""
    return arguments.data("streaming" if arguments.data("datasets") else "dataset_streaming")


_DERIVED: dict[str, Callable[[TrlArguments], Data]] = {
    "evaluates": _evaluates,
    "zero3": _zero3,
    "streams": _streams,
    "trainer": lambda arguments: arguments.trainer,
    "scripted": lambda arguments: arguments.start is not None and arguments.start.scripted,
    "other_losses": lambda arguments: bool(arguments.losses and set(map(str, arguments.losses)) - DIVERGENCE_LOSSES),
}
"""Names in limits that are no setting."""


@cache
def _own_names() -> frozenset[str]:
    known, theirs = declarations("trl"), declarations("transformers")
    names: frozenset[str] = frozenset().union(*(known.keys_of_any(table) for table in trainer_tables()))
    return names.difference(_COMMON, *(theirs.keys_of_any(table) for table in TABLES))


def _is_trl(file: ArgumentsFile) -> bool:
    keys = {entry.name for entry in file.field.entries()}
    if keys & EXAMPLE_SCRIPT_KEYS:
        return False
    named = "dataset_name" in keys or _is_mixture(file.field.get("datasets"))
    return ("model_name_or_path" in keys and named) or len(keys & _own_names()) >= 2


def _is_mixture(field: Field) -> bool:
    """The field lists datasets by their paths."""
    items = field.items()
    return bool(items) and all(not item.get("path").is_absent for item in items)


def _started(
    arguments: TrlArguments, surroundings: Surroundings, subject: ArgumentsFile
) -> Iterator[tuple[FsdpSetup, set[str]]]:
    """The setups that the file's `accelerate_config` names, or a `trl` command with this file."""
    own = arguments.get("accelerate_config").text().known
    if own:
        yield from ((setup, set()) for setup in _profile(own, subject, surroundings))
    for invocation in COMMAND_READER.invocations(surroundings.repository, subject.field.document):
        config = invocation.flag("--accelerate_config").known
        if config:
            given = flag_names(flag.name.text for flag in invocation.flags)
            yield from ((setup, given) for setup in _profile(config, subject, surroundings))


def _profile(name: str, subject: ArgumentsFile, surroundings: Surroundings) -> Iterator[FsdpSetup]:
    """The setup of an accelerate config, named by its path or, if TRL ships it, by its name."""
    from trainlint.programs.accelerate import program as accelerate
    from trainlint.programs.accelerate.config import AccelerateConfig
    from trainlint.programs.accelerate.facts import accelerate_facts
    from trainlint.repository.files import display_path

    if name in FSDP_PROFILES:
        data = {"distributed_type": "FSDP", "fsdp_config": FSDP_PROFILES[name]}
        document = of_data(f"{name}.yaml of TRL", data)
        config = AccelerateConfig(Field.root(document, Dialect.PYYAML))
        yield accelerate.fsdp_setup(config, accelerate_facts(declarations("accelerate").newest))
    holder = Path(subject.field.document.path).absolute().parent
    paths = {
        display_path(file)
        for base in (surroundings.repository.root, holder)
        if (file := surroundings.repository.find(base / name))
    }
    for theirs in surroundings.subjects("accelerate", AccelerateConfig):
        if theirs.field.document.path in paths:
            setup = accelerate.setup_as_checked(theirs, surroundings)
            if setup is not None:
                yield setup


def _trainer_by_keys(subject: ArgumentsFile, release: str) -> str | None:
    """The one trainer whose dataclass has all arguments in the file that are TRL's own, if there is exactly one."""
    known = declarations("trl")
    made = _made_by_hydra(subject)
    if made:
        return trainer_of(made)
    keys = {entry.name for entry in subject.field.entries()}
    tables = {trainer: known.keys(name, release) for trainer, name in TRAINERS.items()}
    own = keys & frozenset().union(*tables.values()) - _not_own()
    fitting = [trainer for trainer, table in tables.items() if own <= table]
    return fitting[0] if own and len(fitting) == 1 else None


def _made_by_hydra(subject: ArgumentsFile) -> str:
    """The class that Hydra makes of the file, by its `_target_`; empty where it names none."""
    return (subject.field.get("_target_").text().known or "").rpartition(".")[2]


@cache
def _not_own() -> frozenset[str]:
    """The arguments that are no trainer's own."""
    known, theirs = declarations("trl"), declarations("transformers")
    shared = (known.keys_of_any(table) for table in ("ModelConfig", "ScriptArguments", "DatasetMixtureConfig"))
    return frozenset().union(*shared, *(theirs.keys_of_any(table) for table in TABLES))


def _trainer(subject: ArgumentsFile) -> str | None:
    """The one trainer in the file's name, if there is exactly one."""
    words = set(re.split(r"[^a-z]+", PurePath(subject.field.document.path).stem.lower()))
    named = [trainer for trainer in TRAINERS if trainer in words]
    return named[0] if len(named) == 1 else None


def _given(subject: ArgumentsFile, surroundings: Surroundings) -> GivenBeside:
    """What each launch of a file gives that no command of TRL starts, else what such a command in a README does."""
    document = subject.field.document
    shown = COMMAND_READER.invocations(surroundings.repository, document, documented=True)
    launched = given_by_all(subject, surroundings)
    return given_by_any([launched, *(given_in(invocation.words) for invocation in shown)])


def _training(arguments: TrlArguments) -> Training:
    """Training arguments that interact with sharding, with the quantization of the model."""
    dtype_name = "dtype" if "dtype" in arguments.facts.fields and arguments.has("dtype") else "torch_dtype"
    dtype = arguments.word(dtype_name if arguments.has(dtype_name) else "dtype")
    bits = next((bits for bits in ("4bit", "8bit") if arguments.is_on(f"load_in_{bits}")), "")
    return replace(
        training(arguments),
        quantization=Known(arguments.get(f"load_in_{bits}"), bits) if bits else nothing(),
        quant_storage=arguments.get("bnb_4bit_quant_storage").text(),
        compute_dtype=dtype,
    )


_HEAD = 2_000
"""So many characters of a file are its head."""
_COMMENT = regex(rf"^#[^\n]*\btrl (?:{'|'.join(TRAINERS)}) --config\b", re.MULTILINE)


class Trl(WheelProgram[ArgumentsFile, ArgumentFacts]):
    """Files for TRL's trainers."""

    name = "trl"
    readers = (COMMAND_READER, FileReader(MODULE, "--config"))

    def adopt(self, document: Document) -> Sequence[ArgumentsFile]:
        """A file of arguments, whatever they are."""
        return [ArgumentsFile(Field.root(document, Dialect.PYYAML), True, handed=True)]

    def handed_by(self, document: Document, repository: Repository) -> str:
        """A command of TRL, also in a comment above, or a start of a script with a config of a trainer of TRL."""
        command = super().handed_by(document, repository)
        if command:
            return command
        start = start_of_own_script(repository, document, declarations("trl").newest)
        if start is not None:
            return told(start.invocation)
        return "a comment in it: trl … --config" if _COMMENT.search(document.text.content[:_HEAD]) else ""

    def reader_in_code(self, document: Document, repository: Repository) -> str:
        """The nearest Python code reads whole files with TrlParser alone."""
        parser, place = own_reader(repository, document.path).parser
        return f"{parser} in {place}" if parser == "TrlParser" else ""

    def recognise(self, document: Document) -> Sequence[ArgumentsFile]:
        """Training arguments that name a model and a dataset as TRL does, or have two arguments that only TRL has."""
        return [file for file in arguments_in(document) if file.whole and _is_trl(file)]

    def against(self, subject: ArgumentsFile, repository: Repository) -> str:
        """A script of the repository reads the file in its own way."""
        handed = subject.handed or self.handed_by(subject.field.document, repository)
        return "" if handed else read_otherwise(subject, repository)

    def alternatives(self, subject: ArgumentsFile, surroundings: Surroundings, release: str) -> Sequence[Views]:
        """The arguments, how they shard the model, and both together; one alternative for each transformers release."""
        reader = own_reader(surroundings.repository, subject.field.document.path)
        found: list[Views] = []
        shown: list[Start | None] = [*starts(surroundings.repository, subject.field.document, release)] or [None]
        unstarted = _given(subject, surroundings) if shown == [None] else NOTHING_BESIDE
        file = ArgumentsFile(subject.field, subject.whole, handed=subject.handed or shown != [None])
        needed = declarations("trl").bounds(release).get("transformers", "")
        for transformers, start in product(release_below(subject, surroundings, GOES_WITH[release], needed), shown):
            told = start.trainer if start else _trainer_by_keys(subject, release)
            trainer = told or (None if _made_by_hydra(subject) else _trainer(subject))
            known = trl_facts(release, transformers, trainer, start.tables if start else ())
            config = fsdp_config(subject.field, known, surroundings)
            trouble = trouble_of(subject.field.get("deepspeed"), surroundings)
            deepspeed = deepspeed_config(subject, surroundings)
            beside = start.beside if start else unstarted
            arguments = TrlArguments(file, known, config, deepspeed, reader, trouble, beside)
            arguments.start, arguments.trainer, arguments.shown = start, trainer, told is not None
            launched = [*launches(subject, surroundings), *_started(arguments, surroundings, subject)]
            runs = launched_arguments(arguments, surroundings)
            seen = [*views(arguments, _training(arguments), launched), *runs]
            found.extend([*seen, *configs] for configs in read_by_deepspeed(arguments, surroundings))
        return found

    def facts(self, release: str) -> ArgumentFacts:
        """What one known release accepts, with its usual transformers."""
        return trl_facts(release, GOES_WITH[release])


PROGRAM = Trl()
