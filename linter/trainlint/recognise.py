"""Which program owns a document.

Each program claims a document that looks like a file of its own. A claim is dropped where the document has a key of
another program or of another tool, is the log of a run, or is composed by Hydra. Of the remaining claims the strongest
wins (a program's own words, then a combination of keys that only it has, then names that it shares); where two are
equally strong, nobody owns the document. A document without a claim, or with one of a program that shares its files,
belongs to the program to which a command of the repository passes it. Settings for a file win over all that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING
from zlib import crc32

from trainlint.lazy import regex
from trainlint.programs.table import COMMANDS, MARKED, PROGRAMS, Program, marked
from trainlint.reading.values import Field
from trainlint.reading.words import AnyOf
from trainlint.records import NamedTuple
from trainlint.repository.files import Sought
from trainlint.repository.statements.packages import KNOWN, Packages

if TYPE_CHECKING:
    from trainlint.programs import Subject
    from trainlint.reading.document import Document
    from trainlint.repository.files import Repository, Source

Recognised = list[tuple[Program, "Subject"]]

NONE = "none"
"""The program in settings for files that should not be checked."""

BY_SETTINGS = "the settings"
"""The evidence of a claim that the settings make."""
OWN_KEYS = 4
"""A file with so many keys that only one program knows is its file, with a key of another program among them."""
FOREIGN_KEYS = 4
"""A file with so many keys that no reader of training arguments knows is not one, if nothing in the repository is."""
READERS = ("transformers", "trl")
"""The programs that read training arguments; their names are those of their packages."""
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
    "verifiers": (Sign(frozenset({"async_generation_timeout"})), Sign(frozenset({"num_batches_ahead"}))),
    "Hydra": (Sign(frozenset({"hydra"})),),
    "other trainers": (Sign(frozenset({"trainer_type"})),),
}
"""Tools that trainlint does not check, with the signs of their files."""


_HEAD = 2_000
_PACKAGE = regex(r"(?:^|\n)#[ \t]*@package[ \t]")
"""What tells Hydra, in the head of a file, where its keys go."""
_RUN_LOGS = regex(
    r"(?:^|/)(?:wandb/(?:offline-)?run-[^/]+/|mlruns/|lightning_logs/|\.hydra/|checkpoint-\d+/|\.git/)"
    r"|(?:^|/)hparams\.ya?ml$"
)
"""Where tools record the settings of a run; nobody starts a run from these files."""


class Claim(NamedTuple):
    """The claim of a program to a document: a subject in it, and how it was recognised (`evidence`).

    `lost` is the reason why the claim does not count, empty if it counts.
    """

    program: Program
    subject: Subject
    evidence: str
    lost: str = ""


class Recogniser:
    """The subjects in one repository's files; each document is recognised once."""

    def __init__(
        self,
        repository: Repository,
        program_of: Callable[[str], str | None] = lambda path: None,
        guard: Callable[[Document, str], AbstractContextManager[None]] = lambda document, doing: nullcontext(),
    ) -> None:
        self.repository = repository
        self._program_of = program_of
        self._guard = guard
        self._claims: dict[str, list[Claim]] = {}
        self._of_program: dict[tuple[str, ...], list[Subject]] = {}

    def claims(self, source: Source) -> list[Claim]:
        """The claims of all programs to a file, document by document."""
        if source.path not in self._claims:
            self._claims[source.path] = list(self._all_claims(source))
        return self._claims[source.path]

    def _all_claims(self, source: Source) -> Iterator[Claim]:
        for document in source.documents:
            with self._guard(document, "recognition"):
                yield from self._document_claims(document, source)

    def supposed(self, source: Source) -> Recognised:
        """The subjects of a file if it were like this; nothing else sees them."""
        return [(claim.program, claim.subject) for claim in self._all_claims(source) if not claim.lost]

    def subjects(self, source: Source) -> Recognised:
        """The subjects in a file, document by document, each with its program."""
        return [(claim.program, claim.subject) for claim in self.claims(source) if not claim.lost]

    def subjects_of(self, program: str, saying: Sequence[str] = ()) -> Sequence[Subject]:
        """The subjects of one program in the workspace's YAML files, by path and document.

        Of files that cannot say some words there are none.
        """
        key = program, *saying
        if key not in self._of_program:
            self._of_program[key] = [
                subject
                for source in self.repository.marked(program, saying)
                for owner, subject in self.subjects(source)
                if owner.name == program
            ]
        return self._of_program[key]

    def subjects_in(self, program: str, path: str) -> Sequence[Subject]:
        """The subjects of one program in one of these files."""
        source = self.repository.known(path)
        return [subject for owner, subject in self.subjects(source) if owner.name == program] if source else []

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
            claims = [claim._replace(lost=reason) if claim.subject.owns_document else claim for claim in claims]
        elif all(claim.program.several_readers for claim in claims if claim.subject.owns_document):
            claims = self._as_named(claims, list(self._named(document, programs)))
        for claim in claims:
            yield from [claim] if claim.lost or not claim.subject.owns_document else self._by_code(claim, document)

    def _by_code(self, claim: Claim, document: Document) -> Iterator[Claim]:
        """A claim, that of the rival to which the repository's code hands the document, or a lost one."""
        rival = PROGRAMS.get(claim.program.rival)
        if rival is not None and claim.subject.field.node is document.root:
            module = rival.load()
            evidence = module.reader_in_code(document, self.repository)
            if evidence:
                yield claim._replace(lost=evidence)
                for subject in module.adopt(document):
                    yield Claim(rival, subject, evidence)
                return
        lost = claim.program.load().against(claim.subject, self.repository)
        yield claim._replace(lost=lost or _of_stranger(claim, document, self.repository))

    def _as_named(self, claims: list[Claim], named: list[Claim]) -> list[Claim]:
        """The claims with those of commands, which win over the claim of a program that shares its files."""
        if not named or any(claim.program is named[0].program for claim in claims):
            return claims
        reason = named[0].evidence
        return [claim._replace(lost=reason) if claim.subject.owns_document else claim for claim in claims] + named

    def _named(self, document: Document, programs: Iterable[Program]) -> Iterator[Claim]:
        """The claims of programs to which a command in the repository passes this document."""
        for program in programs:
            module = program.load()
            evidence = module.handed_by(document, self.repository)
            if evidence:
                for subject in module.adopt(document):
                    yield Claim(program, subject, evidence)
                return


def sought() -> Sought:
    """What is looked for in the bytes of all files on behalf of the programs."""
    words = dict.fromkeys(word for program in PROGRAMS.values() for word in program.sought)
    return Sought(tuple(PROGRAMS), tuple(words), COMMANDS, _ANYTHING)


_ANYTHING = AnyOf([*MARKED.words, *COMMANDS.words, *Packages(KNOWN).words])
"""A file without these words is nobody's, starts no program, and states no release unless its name tells."""


def answers_version() -> str:
    """Another text wherever the same bytes of a file might get other answers than before."""
    from trainlint import __version__
    from trainlint.repository.statements import readers_version

    tables = [(p.name, p.words, p.marker, p.commands, p.sought) for p in PROGRAMS.values()]
    return f"{__version__} {crc32(repr(tables).encode()):08x} {readers_version()}"


def marks(content: bytes | str) -> tuple[str, ...]:
    """The names of the programs whose marker is in a text, or in the bytes of one, read as Latin-1."""
    if isinstance(content, bytes):
        if not MARKED.found_in(content):
            return ()
        content = content.decode("latin-1")
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
    owner, text = owner_of_broken(source), source.text
    return owner is not None and text is not None and any(mark in text.content for mark in owner.templates)


def recognised(document: Document, programs: Iterable[Program]) -> Recognised:
    """The subjects of these programs in a document: those of its owner, and the commands of any program."""
    return [(claim.program, claim.subject) for claim in claimed(document, programs) if not claim.lost]


def claimed(document: Document, programs: Iterable[Program]) -> Iterator[Claim]:
    """The claims of these programs to a document; dropped ones have a reason."""
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
            yield claim._replace(lost=f"it looks like a file of {others}, too")


def run_log(path: str, document: Document) -> str:
    """The reason why a document is the log of a run; empty if it is none."""
    if _RUN_LOGS.search(path):
        return "it is in a folder of run logs"
    entries = list(_root(document).entries())
    if len(entries) > 2 and all(entry.is_mapping and entry.get("value").node is not None for entry in entries):
        return "every key has a `value`, as in logs of Weights & Biases"
    return ""


def _chosen(document: Document, programs: Sequence[Program], chosen: str) -> Iterator[Claim]:
    """The claim of the program in the settings; commands in the file still belong to their own programs."""
    for claim in claimed(document, programs):
        if not claim.subject.owns_document:
            yield claim
    if chosen != NONE:
        program = PROGRAMS[chosen]
        for subject in program.load().adopt(document):
            yield Claim(program, subject, BY_SETTINGS)


def _against(program: Program, subject: Subject) -> str:
    """The reason why a top-level key of the document or section belongs to something else; empty if none does."""
    from trainlint.reading.scalars import Dialect

    if program.strength >= OWN_WORDS:
        return ""
    root = Field.root(subject.field.document, subject.field.dialect)
    for keys in ({entry.name for entry in part.entries()} for part in (root, subject.field)):
        for other in PROGRAMS.values():
            theirs = keys & other.keys - program.keys
            if theirs and not _is_plainly(program, other, keys):
                return f"{min(theirs)} is {other.title}'s"
        for name, signs in STRANGERS.items():
            for sign in signs:
                if sign.keys <= keys and not sign.unless & keys:
                    return f"{' and '.join(sorted(sign.keys))}: as in files of {name}"
    if root.get("defaults").is_sequence:
        return "defaults is a list, as in files for Hydra"
    if _PACKAGE.search(root.document.text.content, 0, _HEAD):
        return "# @package above it: a file for Hydra"
    missing = next((entry.name for entry in subject.field.entries() if entry.written == "???"), "")
    if missing and subject.field.dialect is not Dialect.OMEGACONF:
        return f"{missing}: ???, for which OmegaConf waits"
    return ""


def _of_stranger(claim: Claim, document: Document, repository: Repository) -> str:
    """The reason why the names of settings, which nothing else bears out, are those of an unknown program."""
    from trainlint.repository import strangers

    program = claim.program
    if (
        not program.several_readers
        or claim.evidence != program.known_by
        or claim.subject.field.node is not document.root
    ):
        return ""
    command = strangers.handed_to_stranger(repository, document.path)
    if command or program.strength:
        return command
    foreign = [entry.name for entry in claim.subject.field.entries() if not _is_name_of(READERS, entry.name)]
    if len(foreign) < FOREIGN_KEYS or strangers.is_mentioned(repository, READERS):
        return ""
    return f"{', '.join(foreign[:FOREIGN_KEYS])}: nothing here uses {program.title}, which does not know them"


def _is_name_of(programs: Iterable[str], key: str) -> bool:
    """Some release of one of these programs knows the key."""
    from trainlint.training.declarations import declarations

    return any(declarations(name).first_with(key) for name in programs)


def _is_plainly(program: Program, other: Program, keys: Collection[str]) -> bool:
    """Of these keys so many are this program's alone that one of another program is there by mistake."""
    from trainlint.training.declarations import DISTRIBUTIONS

    if program.several_readers or not {program.name, other.name} <= DISTRIBUTIONS.keys():
        return False
    alone = {name: _alone(name, keys) for name in (program.name, other.name)}
    return len(alone[program.name]) >= max(OWN_KEYS, 3 * len(alone[other.name]))


def _alone(program: str, keys: Collection[str]) -> list[str]:
    """Those of these keys that some release of this program knows, and no release of another."""
    from trainlint.training.declarations import DISTRIBUTIONS, declarations

    having = {name: declarations(name).first_with for name in DISTRIBUTIONS}
    return [key for key in keys if [name for name, first in having.items() if first(key)] == [program]]


def _root(document: Document) -> Field:
    from trainlint.reading.scalars import Dialect

    return Field.root(document, Dialect.PYYAML)
