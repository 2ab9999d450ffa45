"""What a program is to trainlint: the class that each program fills in, and what it may ask of its surroundings.

The table of programs is beside this file, in table.py: it imports the programs, and they import this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from trainlint.targets import Cluster, Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainlint.reading.document import Document
    from trainlint.reading.values import Field
    from trainlint.releases import InForce
    from trainlint.repository.files import Repository

Views = Sequence[object]
"""What the rules look at together: typed views of one subject and of what it needs from other files."""


class Subject(Protocol):
    """What a program recognised in a document: the root of a typed view.

    `owns_document` says that the document is this program's file; an invocation found in another program's file leaves
    it unset.
    """

    owns_document: bool

    @property
    def field(self) -> Field:
        """The mapping that holds the subject."""


S = TypeVar("S", bound=Subject)
F = TypeVar("F")
Kind = TypeVar("Kind")


class ProgramModule(Generic[S, F]):
    """What the engine asks of a program: `S` is the type of its subjects, `F` that of one release's facts."""

    def recognise(self, document: Document) -> Sequence[S]:
        """The subjects in a document; empty where nothing in it looks like this program's.

        Whether another program has the better claim to the document is weighed in recognise.py.
        """
        raise NotImplementedError

    def alternatives(self, subject: S, surroundings: Surroundings, release: str) -> Sequence[Views]:
        """The views that the rules run on, gathered from other files through the surroundings.

        More than one alternative where the repository leaves open which definition counts (overlays): a finding counts
        only if it holds in all of them.
        """
        raise NotImplementedError

    def facts(self, release: str) -> F:
        """What one known release accepts."""
        raise NotImplementedError

    def default_target(self, subject: S, surroundings: Surroundings) -> Target:
        """The target where neither option nor setting names one."""
        raise NotImplementedError

    def in_force(self, version: str) -> InForce:
        """The known releases that stand for a version which a user or a pin names."""
        raise NotImplementedError

    def other_releases(self, subject: S, release: str) -> Sequence[str]:
        """The releases that know a field of the subject which the given one does not, the newest last."""
        return ()


class WheelProgram(ProgramModule[S, F]):
    """A program that is released as a Python package: a repository states which of its releases it uses."""

    name: ClassVar[str]
    distribution: ClassVar[str] = ""
    """The package's name where it is not the program's."""

    def default_target(self, subject: S, surroundings: Surroundings) -> Target:
        """The release that the repository states, else the newest known."""
        from trainlint.repository.stated import target_of
        from trainlint.training.declarations import declarations

        path = self.pinned_near(subject, surroundings)
        return target_of(surroundings.repository, path, self.distribution or self.name, declarations(self.name).names)

    def pinned_near(self, subject: S, surroundings: Surroundings) -> str:
        """The file whose nearest pin counts."""
        return subject.field.document.path

    def in_force(self, version: str) -> InForce:
        """The known release of a version, those around it for one between."""
        from trainlint.training.declarations import declarations

        return declarations(self.name).in_force(version)


@dataclass
class Surroundings:
    """What a program may ask of the repository around a subject, and of the run."""

    repository: Repository
    cluster: Cluster
    targets: Mapping[str, Target]
    """The targets that an option or a setting names, by program."""
    _subjects: Callable[[str], Sequence[Subject]]
    _judge: Callable[[str, Subject, str], bool]
    _admitted: dict[tuple[int, str], bool] = field(default_factory=dict)

    def subjects(self, program: str, kind: type[Kind]) -> list[Kind]:
        """All subjects of a program in the workspace that are of one type, by path and document."""
        return [subject for subject in self._subjects(program) if isinstance(subject, kind)]

    def is_admitted(self, program: str, subject: Subject, release: str) -> bool:
        """No rule that speaks for a subject's own program calls it an error."""
        key = (id(subject), release)
        if key not in self._admitted:
            self._admitted[key] = self._judge(program, subject, release)
        return self._admitted[key]
