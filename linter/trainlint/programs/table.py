"""The table of programs: how to find files that could be theirs, and which modules read and check them.

A run on unrelated files imports nothing else of the programs. The order of the rows has no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from trainlint.reading.words import AnyOf
from trainlint.records import NamedTuple, dataclass, field

if TYPE_CHECKING:
    from trainlint.programs import ProgramModule


class Verdict(NamedTuple):
    """A program that gives verdicts on another program's files.

    `releases` are the known ones, oldest first, that a target may name; without them the other program's target counts.
    `usual` are those that count where nothing is stated.
    """

    title: str
    releases: tuple[str, ...] = ()
    usual: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """One program: its names, its rules and the marker in the text of its files."""

    name: str
    """The name in options and settings, and in JSON."""
    title: str
    """The name as its authors write it."""
    load: Callable[[], ProgramModule[Any, Any]]
    """Imports and returns the program."""
    rules: tuple[str, ...]
    """The modules with its rules."""
    words: tuple[str, ...]
    """One of these words is in every text with the marker; a search for them is fast."""
    marker: str
    """A regular expression: a file without a match is not a file of this program."""
    known_by: str
    """How its files are recognised, in words."""
    keys: frozenset[str] = frozenset()
    """Top-level keys that show that a file belongs to this program."""
    strength: int = 0
    """The strength of its claim to a document, compared with other programs; see recognise.py."""
    sure: bool | tuple[str, ...] = False
    """The marker, or narrower ones of which each must match, shows that a broken file belongs to this program."""
    templates: tuple[str, ...] = ("{{", "{%", "${")
    """Text that shows that a file of this program is a template."""
    commands: tuple[str, ...] = ()
    """One of these words is in each text with a command that is looked for on behalf of this program."""
    sought: tuple[str, ...] = ()
    """Words of which a file must say one where something is looked up in it: the index knows which it may say."""
    reads_commands: bool = False
    """It has subjects in other programs' documents: commands, or jobs that start it."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """Other programs that give verdicts on its files."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """By the second step of a field's path: what a verdict on it refers to, such as `this job`."""
    rival: str = ""
    """Another program whose files look like these; the repository's code tells which of both reads them."""
    several_readers: bool = False
    """Several parsers may read its files, so a warning cannot say which one refuses."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """The marker, compiled."""
        return _compiled(self.marker)

    def owns_broken(self, content: str) -> bool:
        """A file with this content belongs to this program, although it cannot be parsed."""
        if isinstance(self.sure, bool):
            return self.sure
        return all(_compiled(pattern).search(content) is not None for pattern in self.sure)


def _top(*keys: str) -> str:
    """A pattern for one of some keys at the beginning of a line."""
    return rf"(?m:^(?:{'|'.join(keys)})[ \t]*:)"


def _kubeflow() -> ProgramModule[Any, Any]:
    from trainlint.programs.kubeflow.program import PROGRAM

    return PROGRAM


def _torchtune() -> ProgramModule[Any, Any]:
    from trainlint.programs.torchtune.program import PROGRAM

    return PROGRAM


def _accelerate() -> ProgramModule[Any, Any]:
    from trainlint.programs.accelerate.program import PROGRAM

    return PROGRAM


def _transformers() -> ProgramModule[Any, Any]:
    from trainlint.programs.transformers.program import PROGRAM

    return PROGRAM


def _trl() -> ProgramModule[Any, Any]:
    from trainlint.programs.trl.program import PROGRAM

    return PROGRAM


def _axolotl() -> ProgramModule[Any, Any]:
    from trainlint.programs.axolotl.program import PROGRAM

    return PROGRAM


def _llamafactory() -> ProgramModule[Any, Any]:
    from trainlint.programs.llamafactory.program import PROGRAM

    return PROGRAM


def _soup() -> ProgramModule[Any, Any]:
    from trainlint.programs.soup.program import PROGRAM

    return PROGRAM


_KUBEFLOW_RULES = "trainlint.programs.kubeflow.rules"
_KUBEFLOW_MODULES = (
    "yaml_dialect",
    "structure",
    "webhooks",
    "torch_plugin",
    "jobset",
    "containers",
    "volumes",
    "scheduling",
    "pods",
    "unusable_runtime",
    "no_effect",
    "launch",
)
_TORCHTUNE_RULES = "trainlint.programs.torchtune.rules"
_TORCHTUNE_MODULES = (
    "recipes",
    "checkpoints",
    "models",
    "data",
    "training",
    "losses",
    "optimizers",
    "values",
    "quantization",
    "generation",
    "commands",
    "jobs",
)
_FSDP_RULES = "trainlint.training.fsdp_rules"
_ACCELERATE_KEYS = r"(?m:^(?:[ \t{]*[\"']|-[ \t]+)?(?:distributed_type|compute_environment)[\"']?[ \t]*:)"
_DEEPSPEED_RULES = "trainlint.training.deepspeed_rules"
_TRANSFORMERS_RULES = tuple(
    f"trainlint.programs.transformers.rules.{module}"
    for module in ("words", "numbers", "pairs", "names", "first_step", "sharding", "deepspeed")
)
_LAUNCHED_RULES = "trainlint.programs.transformers.launched_rules"
_ARGUMENT_WORDS = ("_batch_size", "num_train_epochs", "lr_scheduler_type", "save_strategy", "fsdp")
_ARGUMENTS = (
    r"\bper_(?:device|gpu)_(?:train|eval)_batch_size\b|\bnum_train_epochs\b|\blr_scheduler_type\b|\bsave_strategy\b"
    r"|(?m:^[\"']?fsdp[\"']?[ \t]*:)"
)
"""Names that are almost always training arguments of transformers."""

_SERVERS = ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36")
"""API servers that were asked; Trainer 2.2 and later install from 1.32 on."""

PROGRAMS: dict[str, Program] = {
    program.name: program
    for program in (
        Program(
            "kubeflow-trainer",
            "Kubeflow Trainer",
            _kubeflow,
            tuple(f"{_KUBEFLOW_RULES}.{module}" for module in _KUBEFLOW_MODULES),
            ("trainer.kubeflow.org", "kubeflow.org/v2alpha1"),
            r"trainer\.kubeflow\.org|\bkubeflow\.org/v2alpha1\b",
            "`apiVersion: trainer.kubeflow.org/…`",
            keys=frozenset({"apiVersion"}),
            strength=4,
            sure=(r"(?m:^[ \t-]*[\"']?apiVersion[\"']?[ \t]*:[ \t]*[\"']?trainer\.kubeflow\.org/)",),
            sought=("TrainingRuntime", "CustomResourceDefinition"),
            verdicts={
                "kubernetes": Verdict("Kubernetes", _SERVERS, _SERVERS[2:]),
                "torchrun": Verdict("torchrun"),
            },
            parts={
                **dict.fromkeys(("runtimeref", "trainer", "initializer"), "this job"),
                **dict.fromkeys(("runtimepatches", "podspecoverrides", "podtemplateoverrides"), "this job"),
                **dict.fromkeys(("mlpolicy", "podgrouppolicy", "template"), "this runtime"),
            },
        ),
        Program(
            "accelerate",
            "Accelerate",
            _accelerate,
            (
                "trainlint.programs.accelerate.rules",
                "trainlint.programs.accelerate.deepspeed_rules",
                "trainlint.programs.accelerate.section_rules",
                _FSDP_RULES,
                _DEEPSPEED_RULES,
            ),
            ("distributed_type", "compute_environment", "zero_optimization"),
            rf"{_ACCELERATE_KEYS}|\"zero_optimization\"[ \t]*:",
            "`distributed_type`, `compute_environment`",
            keys=frozenset({"compute_environment"}),
            strength=4,
            sure=(_ACCELERATE_KEYS,),
            commands=("accelerate",),
        ),
        Program(
            "torchtune",
            "torchtune",
            _torchtune,
            tuple(f"{_TORCHTUNE_RULES}.{module}" for module in _TORCHTUNE_MODULES),
            ("_component_", "tune"),
            r"\b_component_[\"']?[ \t]*:|\btune\W+run\b|\btorchtune-",
            "`_component_`, or a `tune run` command",
            strength=4,
            sure=(r"(?m:^[ \t-]*[\"']?_component_[\"']?[ \t]*:)",),
            templates=("{{", "{%"),
            reads_commands=True,
            commands=("tune",),
        ),
        Program(
            "axolotl",
            "Axolotl",
            _axolotl,
            ("trainlint.programs.axolotl.rules", "trainlint.programs.axolotl.plugin_rules", _FSDP_RULES),
            ("base_model", "micro_batch_size"),
            r"\b(base_model|micro_batch_size)[\"']?\s*:",
            "`base_model`, with datasets, an adapter or a batch size",
            keys=frozenset({"base_model", "base_model_config", "micro_batch_size"}),
            strength=3,
            sure=(
                _top("base_model"),
                _top("datasets", "pretraining_dataset"),
                _top("micro_batch_size", "sequence_len"),
            ),
            commands=("axolotl",),
        ),
        Program(
            "soup",
            "Soup",
            _soup,
            ("trainlint.programs.soup.rules",),
            ("base", "training", "soup"),
            r"(?m:^[\"']?(?:base|training)[\"']?[ \t]*:)|\bsoup(?:_cli)?\b",
            "`base` and `data`, or a `soup train` command",
            strength=3,
            sure=(r"(?m:^base[ \t]*:[ \t]*\S)", _top("data"), _top("training", "task")),
            reads_commands=True,
            commands=("soup",),
        ),
        Program(
            "llamafactory",
            "LLaMA-Factory",
            _llamafactory,
            ("trainlint.programs.llamafactory.rules", *_TRANSFORMERS_RULES, _LAUNCHED_RULES, _FSDP_RULES),
            ("model_name_or_path", "finetuning_type"),
            r"\b(model_name_or_path|finetuning_type)[\"']?\s*:",
            "`model_name_or_path`, with `finetuning_type`, `stage` and `do_train`, or `template` and `dataset`",
            keys=frozenset({"model_name_or_path", "cutoff_len", "finetuning_type", "stage"}),
            strength=2,
            sure=(
                _top("model_name_or_path"),
                _top("finetuning_type", "cutoff_len"),
                _top("stage", "template", "dataset"),
            ),
            commands=("llamafactory-cli", "lmf", "train.py"),
        ),
        Program(
            "trl",
            "TRL",
            _trl,
            (*_TRANSFORMERS_RULES, "trainlint.programs.trl.rules", _LAUNCHED_RULES, _FSDP_RULES, _DEEPSPEED_RULES),
            (*_ARGUMENT_WORDS, "model_name_or_path"),
            rf"{_ARGUMENTS}|(?m:^[\"']?model_name_or_path[\"']?[ \t]*:)",
            "names of training arguments, with a model and a dataset or with names that only TRL has",
            keys=frozenset({"model_name_or_path"}),
            strength=1,
            sure=(
                _top("model_name_or_path"),
                _top("per_device_train_batch_size"),
                _top("output_dir"),
                _top("beta", "max_completion_length", "max_prompt_length", "max_seq_length", "num_generations"),
            ),
            several_readers=True,
            commands=("trl", "--config"),
        ),
        Program(
            "transformers",
            "Transformers",
            _transformers,
            (*_TRANSFORMERS_RULES, _LAUNCHED_RULES, _FSDP_RULES, _DEEPSPEED_RULES),
            _ARGUMENT_WORDS,
            _ARGUMENTS,
            "names of training arguments",
            keys=frozenset({"model_name_or_path"}),
            rival="trl",
            several_readers=True,
        ),
    )
}

MARKED = AnyOf(word for program in PROGRAMS.values() for word in program.words)
"""The words of all markers: most files have none."""
COMMANDS = AnyOf(word for program in PROGRAMS.values() for word in program.commands)
"""The words of all commands."""

VERDICT_ONLY = {name: program.name for program in PROGRAMS.values() for name in program.verdicts}
"""Programs that give verdicts on another program's files, with that program."""
VERDICTS = {name: verdict for program in PROGRAMS.values() for name, verdict in program.verdicts.items()}
"""The same programs, with what is known of them."""
TARGETS = (*PROGRAMS, *(name for name, verdict in VERDICTS.items() if verdict.releases))
"""The programs that a target may name."""


def title(name: str) -> str:
    """The title of a program, or of one that only gives verdicts."""
    if name in VERDICT_ONLY:
        return PROGRAMS[VERDICT_ONLY[name]].verdicts[name].title
    return PROGRAMS[name].title if name in PROGRAMS else name


def about(field_path: str) -> str:
    """What a field belongs to, in words: `this job`, `this runtime`, else `this`."""
    steps = field_path.lower().split(".")
    part = steps[1].partition("[")[0] if steps[0] == "spec" and len(steps) > 1 else ""
    return next((program.parts[part] for program in PROGRAMS.values() if part in program.parts), "this")


@cache
def _compiled(marker: str) -> re.Pattern[str]:
    return re.compile(marker)


def marked(content: str) -> list[Program]:
    """The programs whose marker is in a text."""
    found: dict[str, bool] = {}
    for program in PROGRAMS.values():
        if program.marker not in found:
            likely = any(word in content for word in program.words)
            found[program.marker] = likely and program.pattern.search(content) is not None
    return [program for program in PROGRAMS.values() if found[program.marker]]
