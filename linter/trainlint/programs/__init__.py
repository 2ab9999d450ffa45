"""The programs whose files trainlint reads: how to tell that a file could matter, and which module knows more.

This table is all that a run on unrelated files ever imports of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

if TYPE_CHECKING:
    from trainlint.document import Document
    from trainlint.facts.releases import InForce
    from trainlint.report import Target
    from trainlint.values import Field
    from trainlint.workspace import Context

World = Sequence[object]


class Subject(Protocol):
    """What a program's module recognised in a document: the root of a typed view.

    `owns_document` says that the document is this program's file, so that no later program of the table owns it; an
    invocation found in another program's file leaves it unset.
    """

    owns_document: bool

    @property
    def field(self) -> Field:
        """The mapping that holds the subject."""


class ProgramModule(Protocol):
    """What the engine asks of a module in this package."""

    def recognise(self, document: Document) -> Sequence[Subject]:
        """The subjects in a document; empty where it is not this program's."""

    def worlds(self, subject: Subject, context: Context, release: str) -> Sequence[World]:
        """The alternatives under which the rules run, each a list of views.

        More than one where the repository defines something several times (overlays): a finding counts only if it
        holds in all of them. Definitions from other files are gathered here through the context.
        """

    def facts(self, release: str) -> object:
        """What one known release accepts."""

    def default_target(self, subject: Subject, context: Context) -> Target:
        """The target where neither option nor setting names one: from the repository's pins, else the newest."""

    def in_force(self, version: str) -> InForce:
        """The known releases that stand for a version which a user or a pin names."""


@runtime_checkable
class TellsReleases(Protocol):
    """A module that can tell by its fields which release a subject was written for."""

    def other_releases(self, subject: Subject, release: str) -> Sequence[str]:
        """The releases that know a field of the subject which the given one does not, the newest last."""


@dataclass(frozen=True)
class Program:
    """One program: its name on the command line, its module, its rule sets and the marker in its files' text."""

    name: str
    module: str
    rule_sets: tuple[str, ...]
    words: tuple[str, ...]
    """One of these is in every text that holds the marker: a search for them costs next to nothing."""
    marker: str
    sure: bool | str = False
    """The marker, or this narrower one, occurs in no other program's files: a broken file with it is this program's."""
    templates: tuple[str, ...] = ("{{", "{%", "${")
    """What shows that a file of this program's is a template, which something fills in first."""
    reads_commands: bool = False
    """It finds something of its own in other programs' documents: its commands, or jobs that start it."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """The marker, compiled."""
        return _compiled(self.marker)

    def owns_broken(self, content: str) -> bool:
        """A file with this content is this program's, although it cannot be parsed."""
        return self.sure if isinstance(self.sure, bool) else _compiled(self.sure).search(content) is not None

    def load(self) -> ProgramModule:
        """The module that knows this program."""
        return cast("ProgramModule", import_module(f"trainlint.programs.{self.module}"))


_ARGUMENT_WORDS = ("_batch_size", "num_train_epochs", "lr_scheduler_type", "save_strategy", "fsdp")
_ARGUMENTS = (
    r"\bper_(?:device|gpu)_(?:train|eval)_batch_size\b|\bnum_train_epochs\b|\blr_scheduler_type\b|\bsave_strategy\b"
    r"|(?m:^[\"']?fsdp[\"']?[ \t]*:)"
)
"""Names that are hardly anything but training arguments of transformers."""

PROGRAMS: Mapping[str, Program] = {
    program.name: program
    for program in (
        Program(
            "kubeflow-trainer",
            "kubeflow",
            ("torchtune", "admission", "dialect", "start", "pods", "surprises"),
            ("trainer.kubeflow.org",),
            r"trainer\.kubeflow\.org",
            sure=True,
        ),
        Program(
            "accelerate",
            "accelerate",
            ("accelerate", "fsdp"),
            ("distributed_type", "compute_environment"),
            r"(?m:^(?:[ \t{]*[\"']|-[ \t]+)?(?:distributed_type|compute_environment)[\"']?[ \t]*:)",
            sure=True,
        ),
        Program(
            "torchtune",
            "torchtune",
            ("recipes", "tune_run", "torchtune_jobs"),
            ("_component_", "tune"),
            r"\b_component_[\"']?[ \t]*:|\btune\W+run\b|\btorchtune-",
            sure=r"(?m:^[ \t-]*[\"']?_component_[\"']?[ \t]*:)",
            templates=("{{", "{%"),
            reads_commands=True,
        ),
        Program(
            "axolotl",
            "axolotl",
            ("axolotl", "fsdp"),
            ("base_model", "micro_batch_size"),
            r"\b(base_model|micro_batch_size)[\"']?\s*:",
        ),
        Program(
            "soup",
            "soup",
            ("soup",),
            ("base", "training", "soup"),
            r"(?m:^[\"']?(?:base|training)[\"']?[ \t]*:)|\bsoup(?:_cli)?\b",
            reads_commands=True,
        ),
        Program(
            "llamafactory",
            "llamafactory",
            ("llamafactory", "transformers", "fsdp"),
            ("model_name_or_path",),
            r"\bmodel_name_or_path[\"']?\s*:",
        ),
        Program("trl", "trl", ("transformers", "trl", "fsdp"), _ARGUMENT_WORDS, _ARGUMENTS),
        Program("transformers", "transformers", ("transformers", "fsdp"), _ARGUMENT_WORDS, _ARGUMENTS),
    )
}

VERDICT_ONLY = {"kubernetes": "kubeflow-trainer", "torchrun": "kubeflow-trainer"}
"""Programs that give verdicts on another program's files; their release follows that program's."""


@cache
def _compiled(marker: str) -> re.Pattern[str]:
    return re.compile(marker)


def marked(content: str) -> list[Program]:
    """The programs whose marker a text holds."""
    return [
        program
        for program in PROGRAMS.values()
        if any(word in content for word in program.words) and program.pattern.search(content)
    ]
