"""Which program owns a document.

Each program claims a document that looks like a file of its own. A claim is dropped where the document has a key of
another program or of another tool. Of the remaining claims the strongest wins (a program's own words, then a
combination of keys that only it has, then names that it shares); where two are equally strong, nobody owns the
document.
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
"""A claim of at least this strength is never dropped: the document has words that only this program has."""


class Sign(NamedTuple):
    """Top-level keys that together show that a document belongs to another tool."""

    keys: frozenset[str]
    unless: frozenset[str] = frozenset()
    """With one of these keys the sign does not count."""


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
"""Tools that trainlint does not check, with the signs of their files."""


class Recogniser:
    """The subjects in one repository's files; each document is recognised once."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._of_source: dict[str, Recognised] = {}
        self._of_program: dict[str, list[Subject]] = {}

    def subjects(self, source: Source) -> Recognised:
        """The subjects in a file, document by document, each with its program."""
        if source.path not in self._of_source:
            programs = programs_of(source)
            self._of_source[source.path] = [
                found for document in source.documents for found in recognised(document, programs)
            ]
        return self._of_source[source.path]

    def subjects_of(self, program: str) -> Sequence[Subject]:
        """The subjects of one program in the workspace's YAML files, by path and document."""
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
    """The names of the programs whose marker is in a text."""
    return tuple(program.name for program in marked(content))


def programs_of(source: Source) -> list[Program]:
    """The programs whose marker is in a file."""
    return [PROGRAMS[name] for name in source.marks]


def owner_of_broken(source: Source) -> Program | None:
    """The program that owns a file which cannot be read to its end."""
    content = source.text.content if source.text is not None else ""
    owners = [program for program in programs_of(source) if program.owns_broken(content)]
    return owners[0] if owners else None


def is_templated(source: Source) -> bool:
    """The file is a template."""
    owner = owner_of_broken(source)
    return (
        owner is not None and source.text is not None and any(mark in source.text.content for mark in owner.templates)
    )


def recognised(document: Document, programs: Iterable[Program]) -> Recognised:
    """The subjects of these programs in a document: those of its owner, and the commands of any program."""
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
    """The claim is not dropped: no top-level key of the document or of the section belongs to another program."""
    if program.strength >= OWN_WORDS:
        return True
    root = Field.root(subject.field.document, subject.field.dialect)
    theirs = frozenset().union(*(other.keys for other in PROGRAMS.values())) - program.keys
    signs = [sign for known in STRANGERS.values() for sign in known]
    for keys in ({entry.name for entry in part.entries()} for part in (root, subject.field)):
        if keys & theirs or any(sign.keys <= keys and not sign.unless & keys for sign in signs):
            return False
    return True
