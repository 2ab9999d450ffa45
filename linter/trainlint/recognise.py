"""Whose document it is: the one place that weighs what the programs say of it.

Each program claims a document by what a file of its own looks like. A claim falls where the document has a key that is
another program's, or that of a tool which trainlint does not know further. Of the claims that stand the strongest wins
(a program's own words over keys that only it has together, and those over names that it shares); where two are equal,
nobody owns the document.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from trainlint.programs.table import PROGRAMS, Program, marked
from trainlint.reading.values import Field

if TYPE_CHECKING:
    from trainlint.programs import Subject
    from trainlint.reading.document import Document
    from trainlint.repository.files import Repository, Source

Recognised = list[tuple[Program, "Subject"]]

OWN_WORDS = 4
"""From this strength on no key speaks against a claim: the document has words that only this program has."""


class Sign(NamedTuple):
    """Keys that together, at the top of a document, show that it is some other tool's."""

    keys: frozenset[str]
    unless: frozenset[str] = frozenset()
    """They show nothing where one of these is there too."""


STRANGERS: dict[str, tuple[Sign, ...]] = {
    "Kubernetes": (Sign(frozenset({"apiVersion"})),),
    "GitHub Actions": (Sign(frozenset({"jobs"})),),
    "mergekit": (Sign(frozenset({"slices"})),),
    "ms-swift": (
        *(Sign(frozenset({key})) for key in ("rlhf_type", "train_type", "tuner_type")),
        Sign(frozenset({"model", "dataset"}), unless=frozenset({"model_name_or_path"})),
    ),
    "example scripts of accelerate": (Sign(frozenset({"checkpointing_steps"})), Sign(frozenset({"with_tracking"}))),
    "other trainers": (Sign(frozenset({"trainer_type"})),),
}
"""Tools that trainlint does not check, by what their files look like."""


class Recogniser:
    """The subjects of one repository's files, each document looked at once."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._of_source: dict[str, Recognised] = {}
        self._of_program: dict[str, list[Subject]] = {}

    def subjects(self, source: Source) -> Recognised:
        """What the programs recognise in a file, document by document."""
        if source.path not in self._of_source:
            programs = programs_of(source)
            self._of_source[source.path] = [
                found for document in source.documents for found in recognised(document, programs)
            ]
        return self._of_source[source.path]

    def subjects_of(self, program: str) -> Sequence[Subject]:
        """What a program recognises in the workspace's YAML files, by path and document."""
        if program not in self._of_program:
            self._of_program[program] = [
                subject
                for source in self.repository.sources
                if program in source.marks
                for owner, subject in self.subjects(source)
                if owner.name == program
            ]
        return self._of_program[program]


def marks(content: str) -> tuple[str, ...]:
    """The names of the programs whose marker a text holds."""
    return tuple(program.name for program in marked(content))


def programs_of(source: Source) -> list[Program]:
    """The programs that a file's text speaks of."""
    return [PROGRAMS[name] for name in source.marks]


def owner_of_broken(source: Source) -> Program | None:
    """The program whose file this is, although it cannot be read to its end."""
    content = source.text.content if source.text is not None else ""
    owners = [program for program in programs_of(source) if program.owns_broken(content)]
    return owners[0] if owners else None


def is_templated(source: Source) -> bool:
    """The file is a template of its program's: something fills it in first."""
    owner = owner_of_broken(source)
    return (
        owner is not None and source.text is not None and any(mark in source.text.content for mark in owner.templates)
    )


def recognised(document: Document, programs: Iterable[Program]) -> Recognised:
    """What a document holds of these programs: its owner's subjects, and the commands of any."""
    claims = [(program, subject) for program in programs for subject in program.load().recognise(document)]
    standing = [program for program, subject in claims if subject.owns_document and _stands(program, subject)]
    strongest = max((program.strength for program in standing), default=0)
    owners = {program.name for program in standing if program.strength == strongest}
    return [
        (program, subject)
        for program, subject in claims
        if not subject.owns_document or (owners == {program.name} and _stands(program, subject))
    ]


def _stands(program: Program, subject: Subject) -> bool:
    """The claim holds: nothing at the top of the document, or of the section, speaks of another program."""
    if program.strength >= OWN_WORDS:
        return True
    root = Field.root(subject.field.document, subject.field.dialect)
    theirs = frozenset().union(*(other.keys for other in PROGRAMS.values())) - program.keys
    signs = [sign for known in STRANGERS.values() for sign in known]
    for keys in ({entry.name for entry in part.entries()} for part in (root, subject.field)):
        if keys & theirs or any(sign.keys <= keys and not sign.unless & keys for sign in signs):
            return False
    return True
