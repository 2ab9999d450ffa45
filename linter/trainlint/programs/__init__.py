"""The class that each program implements, and what a program may ask about its surroundings.

The table of programs is in table.py, which imports the programs; they import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from trainlint.records import dataclass, field
from trainlint.targets import Cluster, How, Target

if TYPE_CHECKING:
    from trainlint.reading.document import Document
    from trainlint.reading.values import Field
    from trainlint.releases import InForce
    from trainlint.repository.files import Repository
    from trainlint.repository.invocations import Command, Invocation
    from trainlint.repository.shell import Word

Views = Sequence[object]
"""Typed views of one subject and of what it needs from other files; the rules look at them together."""


class Subject(Protocol):
    """What a program recognised in a document: the root of a typed view.

    `owns_document`: the document is a file of this program. It is false for a command in another program's file.
    """

    owns_document: bool

    @property
    def field(self) -> Field:
        """The mapping that holds the subject."""


S = TypeVar("S", bound=Subject)
F = TypeVar("F")
Kind = TypeVar("Kind")


@dataclass(frozen=True, eq=False)
class FileReader:
    """A command that hands a file to a program: as the value of an option, or as a word of its own."""

    command: Command
    option: str = ""
    suffixes: tuple[str, ...] = (".yaml", ".yml")

    def files(self, invocation: Invocation) -> Sequence[str | None]:
        """The name of the file that an invocation of the command hands over."""
        if self.option:
            return [invocation.named_by(self.option)]
        word = self.word(invocation)
        return [word.file_name if word else None]

    def word(self, invocation: Invocation) -> Word | None:
        """The word of an invocation that is the name of a file."""
        return next((word for word in invocation.words if (word.file_name or "").endswith(self.suffixes)), None)

    def invocations(
        self, repository: Repository, document: Document, *, documented: bool = False
    ) -> Sequence[Invocation]:
        """The invocations of the command that hand over the file of a document, or those that a README shows."""
        from trainlint.repository.invocations import invocations_naming

        return invocations_naming(repository, document, self.command, self.files, documented=documented)


def told(invocation: Invocation) -> str:
    """A command that reads a file, with its place, as evidence of whose the file is."""
    return f"{invocation.name} reads it ({invocation.document.path}:{invocation.field.span.line})"


class ProgramModule(Generic[S, F]):
    """What the engine asks of a program; `S` is the type of its subjects, `F` that of a release's facts."""

    readers: ClassVar[tuple[FileReader, ...]] = ()
    """The commands that hand a file to this program, whatever it looks like."""
    of_tables: ClassVar[tuple[str, ...]] = ()
    """The beginnings of the codes of rules that need no more of a release than its tables."""

    def recognise(self, document: Document) -> Sequence[S]:
        """The subjects in a document; empty where it does not look like a file of this program.

        recognise.py decides whether another program has the better claim.
        """
        raise NotImplementedError

    def adopt(self, document: Document) -> Sequence[S]:
        """A document that is known to be this program's file, whatever it looks like."""
        return self.recognise(document)

    def handed_by(self, document: Document, repository: Repository) -> str:
        """The command that hands a document to this program, in words; empty where none does."""
        found = (invocation for reader in self.readers for invocation in reader.invocations(repository, document))
        return next((told(invocation) for invocation in found), "")

    def reader_in_code(self, document: Document, repository: Repository) -> str:
        """The repository's code that hands such a document to this program, in words; empty where it does not tell."""
        return ""

    def against(self, subject: S, repository: Repository) -> str:
        """The reason why the repository's code does not hand a subject to this program; empty if there is none."""
        return ""

    def alternatives(self, subject: S, surroundings: Surroundings, release: str) -> Iterable[Views]:
        """The views that the rules look at, with those from other files, which `surroundings` gives.

        There are several alternatives where the repository does not say which definition counts (overlays, several
        commands with one config). Only findings that all alternatives have are reported, so the later ones may not be
        asked for.
        """
        raise NotImplementedError

    def in_all(self, subject: S, surroundings: Surroundings, release: str) -> Views:
        """Views that each alternative has beside its own, which are judged once for all of them."""
        return ()

    def facts(self, release: str) -> F:
        """The facts of one known release."""
        raise NotImplementedError

    def default_target(self, subject: S, surroundings: Surroundings) -> Target:
        """The target where neither an option nor a setting names one."""
        raise NotImplementedError

    def in_force(self, version: str) -> InForce:
        """The known releases that stand in for a version."""
        raise NotImplementedError

    def is_only_read(self, release: str) -> bool:
        """Nothing but the tables of a release is known: rules `of_tables` speak, and what they refuse is a warning."""
        return False


class WheelProgram(ProgramModule[S, F]):
    """A program that is released as a Python package: its releases are in its JSON file, a repository pins it."""

    name: ClassVar[str]

    def default_target(self, subject: S, surroundings: Surroundings) -> Target:
        """The releases that the repository states, or that may be meant where it states none.

        A file with a setting is for a release that has it: where nothing is stated, older ones are not meant.
        """
        from trainlint.repository.python_code import python_code
        from trainlint.training.meant import known_releases, target, with_settings

        near = self.stated_near(subject, surroundings)
        found = target(surroundings.repository, near, known_releases(self.name))
        if found.how is not How.NOT_STATED or not subject.owns_document:
            return found
        code = python_code(surroundings.repository)
        return with_settings(found, self.name, (entry.name for entry in subject.field.entries()), code.defines)

    def stated_near(self, subject: S, surroundings: Surroundings) -> str:
        """The path of the file whose nearest statement counts."""
        return subject.field.document.path

    def in_force(self, version: str) -> InForce:
        """The known releases that stand in for a version."""
        from trainlint.training.declarations import declarations

        return declarations(self.name).in_force(version)

    def is_only_read(self, release: str) -> bool:
        """A release before the known ones, of which the tables were read."""
        from trainlint.training.declarations import declarations

        return declarations(self.name).is_only_read(release)


@dataclass
class Surroundings:
    """What a program may ask about the repository around a subject, and about the run."""

    repository: Repository
    cluster: Cluster
    named_target: Callable[[str, str], Target | None]
    """The target that an option or a setting names for a program and a file."""
    _subjects: Callable[[str, Sequence[str]], Sequence[Subject]]
    _subjects_in: Callable[[str, str], Sequence[Subject]]
    _judge: Callable[[str, Subject, str], bool]
    _admitted: dict[tuple[int, str], bool] = field(default_factory=dict)

    def subjects(self, program: str, kind: type[Kind], saying: Sequence[str] = ()) -> list[Kind]:
        """All subjects of a program in the workspace that have this type, by path and document.

        Where the file of each that is wanted must hold some words, `saying` them saves reading all others.
        """
        return [subject for subject in self._subjects(program, saying) if isinstance(subject, kind)]

    def subjects_in(self, path: str, program: str, kind: type[Kind]) -> list[Kind]:
        """Those in one file."""
        return [subject for subject in self._subjects_in(program, path) if isinstance(subject, kind)]

    def is_admitted(self, program: str, subject: Subject, release: str) -> bool:
        """The subject's own program admits it: no rule on admission finds an error."""
        key = (id(subject), release)
        if key not in self._admitted:
            self._admitted[key] = self._judge(program, subject, release)
        return self._admitted[key]
