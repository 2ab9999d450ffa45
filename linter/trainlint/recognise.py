"""Whose document it is: the one place that weighs what the programs say of it.

Each program claims a document by what a file of its own looks like. A claim falls where the document has a key that is
another program's, or that of a tool which trainlint does not know further; where it is the log of a run, or composed by
Hydra. Of the claims that stand the strongest wins (a program's own words over keys that only it has together, and those
over names that it shares); where two are equal, nobody owns the document. A document that nobody claims belongs to the
program that a command of the repository hands it to. What settings say of a file wins over all that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from trainlint.programs.table import PROGRAMS, Program, marked
from trainlint.reading.values import Field

if TYPE_CHECKING:
    from trainlint.programs import Subject
    from trainlint.reading.document import Document
    from trainlint.repository.files import Repository, Source

Recognised = list[tuple[Program, "Subject"]]

NONE = "none"
"""What settings say of a file that is no program's."""

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
    "Hydra": (Sign(frozenset({"hydra"})),),
    "other trainers": (Sign(frozenset({"trainer_type"})),),
}
"""Tools that trainlint does not check, by what their files look like."""


_RUN_LOGS = re.compile(
    r"(?:^|/)(?:wandb/(?:offline-)?run-[^/]+/|mlruns/|lightning_logs/|\.hydra/|checkpoint-\d+/|\.git/)"
    r"|(?:^|/)hparams\.ya?ml$"
)
"""Where tools write down what a run was started with: nobody starts from there."""


@dataclass(frozen=True)
class Claim:
    """What a program says of a document: a subject in it, and by which evidence.

    `lost` says why the claim does not count; it is empty for one that does.
    """

    program: Program
    subject: Subject
    evidence: str
    lost: str = ""


class Recogniser:
    """The subjects of one repository's files, each document looked at once."""

    def __init__(self, repository: Repository, program_of: Callable[[str], str | None] = lambda path: None) -> None:
        self.repository = repository
        self._program_of = program_of
        self._claims: dict[str, list[Claim]] = {}
        self._of_program: dict[str, list[Subject]] = {}

    def claims(self, source: Source) -> list[Claim]:
        """What the programs say of a file, document by document."""
        if source.path not in self._claims:
            self._claims[source.path] = [
                claim for document in source.documents for claim in self._document_claims(document, source)
            ]
        return self._claims[source.path]

    def subjects(self, source: Source) -> Recognised:
        """What the programs recognise in a file, document by document."""
        return [(claim.program, claim.subject) for claim in self.claims(source) if not claim.lost]

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

    def _document_claims(self, document: Document, source: Source) -> Iterator[Claim]:
        chosen = self._program_of(source.path)
        programs = programs_of(source)
        if chosen is not None:
            yield from _chosen(document, programs, chosen)
            return
        named_only = source.path.endswith(".json")
        claims = [] if named_only else list(claimed(document, programs))
        reason = run_log(source.path, document)
        if reason:
            claims = [replace(claim, lost=reason) if claim.subject.owns_document else claim for claim in claims]
        elif not any(claim.subject.owns_document for claim in claims):
            claims.extend(self._named(document, programs))
        yield from claims

    def _named(self, document: Document, programs: Iterable[Program]) -> Iterator[Claim]:
        """The claims to a document that a command of the repository hands to a program."""
        from trainlint.repository.invocations import names_document, repository_invocations

        for program in programs:
            module = program.load()
            for reader in module.readers:
                for invocation in repository_invocations(self.repository, reader.command):
                    name = reader.file(invocation)
                    if name and names_document(self.repository, invocation, name, document):
                        place = f"{invocation.document.path}:{invocation.field.span.line}"
                        for subject in module.adopt(document):
                            yield Claim(program, subject, f"{invocation.name} reads it ({place})")
                        return


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
    owner, text = owner_of_broken(source), source.text
    return owner is not None and text is not None and any(mark in text.content for mark in owner.templates)


def recognised(document: Document, programs: Iterable[Program]) -> Recognised:
    """What a document holds of these programs by itself: its owner's subjects, and the commands of any."""
    return [(claim.program, claim.subject) for claim in claimed(document, programs) if not claim.lost]


def claimed(document: Document, programs: Iterable[Program]) -> Iterator[Claim]:
    """The claims of these programs to a document, those that do not count with the reason."""
    claims = [
        Claim(program, subject, program.known_by, _against(program, subject) if subject.owns_document else "")
        for program in programs
        for subject in program.load().recognise(document)
    ]
    standing = [claim.program for claim in claims if claim.subject.owns_document and not claim.lost]
    strongest = max((program.strength for program in standing), default=0)
    owners = {program.name: program for program in standing if program.strength == strongest}
    for claim in claims:
        if claim.lost or not claim.subject.owns_document or list(owners) == [claim.program.name]:
            yield claim
        else:
            others = " and ".join(owner.title for name, owner in owners.items() if name != claim.program.name)
            yield replace(claim, lost=f"{others} claims it as well")


def run_log(path: str, document: Document) -> str:
    """Why a document is what a run has written down; empty where it is not."""
    if _RUN_LOGS.search(path):
        return "it stands where a tool writes down what a run was started with"
    entries = list(_root(document).entries())
    if len(entries) > 2 and all(entry.is_mapping and entry.get("value").node is not None for entry in entries):
        return "every key holds a value: Weights & Biases wrote it down"
    return ""


def _chosen(document: Document, programs: Sequence[Program], chosen: str) -> Iterator[Claim]:
    """What settings say of the file; commands in it are still their programs'."""
    for claim in claimed(document, programs):
        if not claim.subject.owns_document:
            yield claim
    if chosen != NONE:
        program = PROGRAMS[chosen]
        for subject in program.load().adopt(document):
            yield Claim(program, subject, "settings say so")


def _against(program: Program, subject: Subject) -> str:
    """What at the top of the document, or of the section, speaks of another program; empty where nothing does."""
    if program.strength >= OWN_WORDS:
        return ""
    root = Field.root(subject.field.document, subject.field.dialect)
    for keys in ({entry.name for entry in part.entries()} for part in (root, subject.field)):
        for other in PROGRAMS.values():
            theirs = keys & other.keys - program.keys
            if theirs:
                return f"{min(theirs)} is {other.title}'s"
        for name, signs in STRANGERS.items():
            for sign in signs:
                if sign.keys <= keys and not sign.unless & keys:
                    return f"{' and '.join(sorted(sign.keys))} stands in files of {name}"
    if root.get("defaults").is_sequence:
        return "defaults is a list: Hydra composes it"
    return ""


def _root(document: Document) -> Field:
    from trainlint.reading.scalars import Dialect

    return Field.root(document, Dialect.PYYAML)
