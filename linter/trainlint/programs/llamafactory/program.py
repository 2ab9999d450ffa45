"""LLaMA-Factory: its YAML files for llamafactory-cli, as OmegaConf and HfArgumentParser read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.programs import FileReader, WheelProgram
from trainlint.programs.llamafactory.facts import (
    COMMANDS,
    GOES_WITH,
    PIXELS,
    PREQUANTIZED,
    SUMMED,
    LlamaFactoryFacts,
    argument_facts,
    facts_of,
)
from trainlint.programs.transformers.arguments import Arguments, ArgumentsFile
from trainlint.programs.transformers.program import (
    deepspeed_config,
    fsdp_config,
    launched_arguments,
    launches,
    release_below,
    views,
)
from trainlint.programs.transformers.setup import fsdp_setup, training
from trainlint.reading.document import Document
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import UNKNOWN, Field, Value
from trainlint.records import NamedTuple, replace
from trainlint.repository.invocations import Command
from trainlint.repository.python_code import own_reader
from trainlint.training.command_lines import GivenBeside, given_by_any
from trainlint.training.declarations import Spec, declarations
from trainlint.training.deepspeed import named_config
from trainlint.training.fsdp import FsdpSetup, Training, nothing
from trainlint.training.limits import Data, data_of, is_true

if TYPE_CHECKING:
    from trainlint.programs import Surroundings, Views

CLI = Command(
    "llamafactory-cli",
    tuple((name, command) for name in ("llamafactory-cli", "lmf") for command in COMMANDS),
    r"\bllamafactory-cli\b|\blmf\b",
)
SCRIPT = Command("train.py", (("train.py",),), r"\btrain\.py\b")
TRAINING_SIGNS = ("do_train", "do_eval", "do_predict", "output_dir", "per_device_train_batch_size", "dataset")
INFERENCE = ("infer_", "vllm_", "sglang_")
"""The beginnings of settings for a server of the model, which may be asked about a dataset as well."""
UNMISTAKABLE = frozenset({"stage", "do_train", "finetuning_type"})
"""A file with all of these is LLaMA-Factory's even without a model."""
MEGATRON = ("model_parallel", "use_mca", "sequence_parallel")
"""Parts of keys of training with mcore_adapter, which has arguments of its own."""


class LlamaFactoryFile(ArgumentsFile):
    """A document that llamafactory-cli reads."""

    def __init__(self, field: Field) -> None:
        super().__init__(field, whole=True, handed=True)


class Reading(NamedTuple):
    """A command that reads a file."""

    command: str
    beside: GivenBeside
    """The settings that it gives itself (`learning_rate=1e-5`)."""
    place: Field
    """The name of the file in it."""


class LlamaFactoryConfig:
    """A configuration as one release reads it, without conversion."""

    def __init__(
        self,
        arguments: Arguments,
        facts: LlamaFactoryFacts,
        *,
        command: str | None = None,
        misplaced: Sequence[Reading] = (),
        several: bool | None = None,
        setups: Sequence[FsdpSetup] = (),
        own_package: bool = False,
        dataset_info: Field | None = None,
    ) -> None:
        self.field = arguments.field
        self.arguments = arguments
        self.facts = facts
        self.overridden = arguments.given_beside.names
        """Settings that a command line overrides."""
        self.command = command
        """The command of the repository that reads the file, if there is one."""
        self.misplaced = misplaced
        """Other commands of the repository, which cannot read a file for training."""
        self.several = True if is_true(self.data("deepspeed")) else several
        """Training is distributed: the repository shows it, or DeepSpeed is on, which starts in no other way."""
        self.setups = setups
        """The sharding of each launch of the file."""
        self.own_package = own_package
        """The repository contains LLaMA-Factory itself, so its keys need not be those of a release."""
        self.dataset_info = dataset_info
        """The definitions of the datasets, where the repository has them."""

    @cached_property
    def trains(self) -> bool:
        """The file is for training, by its command or else by its keys."""
        if self.command is not None:
            return self.command == "train"
        signs = [name for name in TRAINING_SIGNS if self.arguments.has(name)]
        infers = any(entry.name.startswith(INFERENCE) for entry in self.field.entries())
        return bool(signs) and not (signs == ["dataset"] and infers)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The names that the command reads; where it is not known, those of all possible commands."""
        commands = [self.command] if self.command else ["train"] if self.trains else list(COMMANDS)
        names: set[str] = set()
        for command in commands:
            for table in COMMANDS[command]:
                names.update(self.facts.tables[table])
            if command == "train":
                names.update(self.arguments.facts.fields)
        return frozenset(names)

    def gives(self, name: str) -> bool:
        """A command line, or code of the repository, may give a setting that the file does not have."""
        beside = self.arguments.given_beside
        return name in beside.names or beside.is_open or self.arguments.reader.fills(name)

    def may_know(self, word: str, *lists: str) -> bool:
        """The file belongs to a copy of LLaMA-Factory, whose code may have added this word to those of a release."""
        reader = self.arguments.reader
        return self.own_package and (reader.knows_word(word) or any(reader.may_list(name, word) for name in lists))

    @property
    def is_megatron(self) -> bool:
        """The file is for mcore_adapter, which the environment switches on."""
        return any(part in entry.name for entry in self.field.entries() for part in MEGATRON)

    def place(self, name: str) -> Field:
        """Where a setting is written."""
        return self.field.get(name)

    def data(self, name: str) -> Data:
        """The value of a setting, its default where it is left out, or a value computed from several."""
        if name in self.overridden:
            return UNKNOWN
        if name == "evaluates":
            return self._evaluates()
        if name == "zero3":
            return UNKNOWN if self.zero3 is None else self.zero3
        if name == "transformers_4_53":
            return self.arguments.facts.breaks_neat_packing
        if name.endswith("_pixels_swapped"):
            return self._swapped(name.partition("_")[0])
        field, spec = self.field.get(name), self.spec(name)
        if spec is None or self._is_refused(field) or self._is_own(field, spec):
            return UNKNOWN if spec else None
        if field.node is not None or field.is_unknown:
            return data_of(field)
        default = PIXELS.get(name, spec.default)
        return default if isinstance(default, (str, int, float, bool)) else None

    def _is_refused(self, field: Field) -> bool:
        """The value itself is refused, so nothing follows from it."""
        text = field.text()
        if field.name == "finetuning_type":
            return text.wrong_type or text.known_and_not_in(self.facts.finetuning_types)
        return field.name in SUMMED and text.known is not None

    def _is_own(self, field: Field, spec: Spec) -> bool:
        """The value is a word that a copy of LLaMA-Factory may have added, with rules of its own."""
        text = field.text()
        return text.known_and_not_in(list(map(str, spec.choices))) and bool(spec.choices) and self.may_know(str(text))

    def spec(self, name: str) -> Spec | None:
        """The declaration of an argument."""
        return self.arguments.facts.fields.get(name)

    def _evaluates(self) -> Data:
        asked = [is_true(self.data(name)) for name in ("do_eval", "do_predict")]
        strategy = self.arguments.eval_strategy
        asked.append(None if strategy.unknown else strategy.known_and(lambda word: word != "no"))
        return True if True in asked else UNKNOWN if None in asked else False

    def _swapped(self, kind: str) -> Data:
        largest, smallest = self.data(f"{kind}_max_pixels"), self.data(f"{kind}_min_pixels")
        numbers = isinstance(largest, (int, float)), isinstance(smallest, (int, float))
        return all(numbers) and largest < smallest  # type: ignore[operator]

    @cached_property
    def zero3(self) -> bool | None:
        """DeepSpeed shards the parameters too; None where that is not known."""
        deepspeed = self.field.get("deepspeed")
        if deepspeed.is_absent and "deepspeed" not in self.overridden:
            return False
        config = self.arguments.deepspeed
        if config is None:
            return None
        stage = config.at("zero_optimization", "stage").integer()
        return False if stage.absent else None if stage.unknown else stage.is_(3)

    @property
    def names_zero3(self) -> bool:
        """The DeepSpeed file is missing, and its name says ZeRO-3."""
        name = self.field.get("deepspeed").text()
        return self.zero3 is None and name.known_and(lambda text: any(part in text.lower() for part in ("z3", "zero3")))

    @property
    def quantizes(self) -> bool:
        """The model is quantized when it is loaded."""
        bits, model = self.field.get("quantization_bit"), self.field.get("model_name_or_path").text()
        comes_quantized = model.known_and(lambda name: any(part in name.lower() for part in PREQUANTIZED))
        exports = not self.field.get("export_quantization_bit").is_absent
        given = not bits.is_absent and not bits.is_unknown and "quantization_bit" not in self.overridden
        return self.trains and given and not exports and not comes_quantized

    @property
    def quantization_method(self) -> Value[str]:
        """The method; the default is bitsandbytes."""
        return self.field.get("quantization_method").text().or_when_absent(self.facts.bnb)


def _dataset_info(subject: LlamaFactoryFile, surroundings: Surroundings) -> Field | None:
    """dataset_info.json of the folder `dataset_dir`; None where no folder or more than one may be meant."""
    named = subject.field.get("dataset_dir").text().or_when_absent("data").known
    if named is None or named == "ONLINE" or named.startswith("REMOTE:"):
        return None
    root = Path(surroundings.repository.root).absolute()
    folders = [root, *(f for f in Path(subject.field.document.path).absolute().parents if root in f.parents)]
    name = f"{named.rstrip('/')}/dataset_info.json"
    found = [named_config(name, [folder], surroundings.repository) for folder in folders]
    infos = [info for info in found if isinstance(info, Field)]
    return infos[0] if len(infos) == 1 else None


def _training(config: LlamaFactoryConfig) -> Training:
    """Training arguments that interact with sharding, with the quantization of the model.

    LLaMA-Factory stores 4-bit weights in the compute dtype and checkpoints gradients in the model itself. What it says
    of other weights is a rule of its own.
    """
    bits = config.field.get("quantization_bit").integer()
    known = config.quantizes and bits.is_(4)
    return replace(training(config.arguments), quantization=bits.map("{}bit".format) if known else nothing())


_CLI_READER, _SCRIPT_READER = FileReader(CLI), FileReader(SCRIPT)


def _readings(subject: LlamaFactoryFile, surroundings: Surroundings, *, documented: bool = False) -> Iterator[Reading]:
    """The commands that read the file, or those that a README shows."""
    repository, document = surroundings.repository, subject.field.document
    for reader in (_CLI_READER, _SCRIPT_READER):
        for invocation in reader.invocations(repository, document, documented=documented):
            file = reader.word(invocation)
            if file is None:
                continue
            words = [word for word in invocation.words if word is not file]
            given = frozenset(word.text.partition("=")[0].lstrip("-+") for word in words if "=" in word.text)
            is_open = any(word.known is None and "=" not in word.text for word in words)
            names = [word.text for word in invocation.program]
            command = next((name for name in names if name in COMMANDS), "train")
            yield Reading(command, GivenBeside(given, is_open), file.field)


def _is_of_a_copy(arguments: Arguments, surroundings: Surroundings) -> bool:
    """The repository contains LLaMA-Factory itself, whatever it is called."""
    path = arguments.field.document.path
    return surroundings.repository.holds_above(path, _OWN_SOURCE) or arguments.reader.makes("FinetuningArguments")


_OWN_SOURCE = ("src/llamafactory", "src/llmtuner", "llamafactory/hparams", "llmtuner/hparams")


class LlamaFactory(WheelProgram[LlamaFactoryFile, LlamaFactoryFacts]):
    """The program LLaMA-Factory: its files."""

    name = "llamafactory"
    readers = (_CLI_READER,)
    of_tables = ("FS2", "FS501", "FS512")

    def adopt(self, document: Document) -> Sequence[LlamaFactoryFile]:
        """A file for llamafactory-cli, whatever keys it has."""
        return [LlamaFactoryFile(Field.root(document, Dialect.OMEGACONF))]

    def recognise(self, document: Document) -> Sequence[LlamaFactoryFile]:
        """A model path with a method, a stage, or a template and a dataset; or words that only LLaMA-Factory has."""
        root = Field.root(document, Dialect.OMEGACONF)
        keys = {entry.name for entry in root.entries()}
        if "model_name_or_path" not in keys:
            return [LlamaFactoryFile(root)] if keys >= UNMISTAKABLE else []
        ours = "finetuning_type" in keys or keys >= {"stage", "do_train"} or keys >= {"template", "dataset"}
        return [LlamaFactoryFile(root)] if ours else []

    def alternatives(self, subject: LlamaFactoryFile, surroundings: Surroundings, release: str) -> Sequence[Views]:
        """The configuration, its training arguments and its sharding; one alternative for each transformers release."""
        if not facts_of(release).loads_with_omegaconf:
            subject = LlamaFactoryFile(Field.root(subject.field.document, Dialect.PYYAML))
        keys = frozenset(entry.name for entry in subject.field.entries())
        readings = list(_readings(subject, surroundings))
        misplaced = [reading for reading in readings if reading.command != "train" and "do_train" in keys]
        beside = given_by_any(
            reading.beside for reading in readings or _readings(subject, surroundings, documented=True)
        )
        launched = list(launches(subject, surroundings))
        found: list[Views] = []
        needed = declarations("llamafactory").bounds(release).get("transformers", "")
        for transformers in release_below(subject, surroundings, GOES_WITH[release], needed):
            known = argument_facts(release, transformers, keys)
            config = fsdp_config(subject.field, known, surroundings)
            arguments = Arguments(
                subject,
                known,
                config,
                deepspeed_config(subject, surroundings),
                own_reader(surroundings.repository, subject.field.document.path),
                given_beside=beside,
            )
            own = fsdp_setup(arguments)
            setups = [setup for setup in ([own] if own else []) + [setup for setup, _ in launched] if setup.on]
            commands = {reading.command for reading in readings if reading not in misplaced}
            ours = LlamaFactoryConfig(
                arguments,
                facts_of(release),
                command=commands.pop() if len(commands) == 1 else "train" if misplaced else None,
                misplaced=misplaced,
                several=True if setups else None,
                setups=setups,
                dataset_info=_dataset_info(subject, surroundings),
                own_package=_is_of_a_copy(arguments, surroundings),
            )
            trained = _training(ours) if ours.trains else None
            runs = launched_arguments(arguments, surroundings) if trained else ()
            found.append([ours, *(views(arguments, trained, launched) if trained else ()), *runs])
        return found

    def facts(self, release: str) -> LlamaFactoryFacts:
        """What one known release accepts."""
        return facts_of(release)


PROGRAM = LlamaFactory()
