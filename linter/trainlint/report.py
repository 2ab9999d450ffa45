"""The result of a run: findings, counts, targets and notices, for all output formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainlint.findings import Finding, Severity
from trainlint.reading.text import Text
from trainlint.records import NamedTuple, dataclass, field
from trainlint.targets import Target


class FileCounts(NamedTuple):
    """How many YAML files the run found, parsed, and recognised as those of a program."""

    discovered: int = 0
    parsed: int = 0
    recognised: int = 0


class Near(NamedTuple):
    """A file with the marker of programs of which none owns it, and their titles."""

    path: str
    programs: tuple[str, ...]


@dataclass(frozen=True)
class Report:
    """The result of a run.

    `findings` are in the order of file, line, column and rule; suppressed and baselined ones are marked and included.
    `texts` has the text of each file with a finding, by path. `notices` are one-line remarks on the run itself.
    """

    findings: tuple[Finding, ...] = ()
    files: FileCounts = field(default_factory=FileCounts)
    targets: Mapping[str, Target] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    texts: Mapping[str, Text] = field(default_factory=dict)
    near: tuple[Near, ...] = ()
    """The files that were almost recognised."""
    left_alone: int = 0
    """How many files could be a program's, and are not checked by the settings or a .gitattributes file."""
    unjudged: int = 0
    """How many files are recognised, and not checked: they are for releases older than all known ones."""
    masked: bool = False
    """What looks like a secret is taken out of findings and notices, and hidden in the texts."""
    crashed: bool = False
    """Not everything was checked: after an exception in trainlint, or without a workspace that cannot be read."""

    @property
    def active(self) -> Iterator[Finding]:
        """The findings that are neither suppressed nor baselined."""
        return (f for f in self.findings if f.suppressed is None and not f.baselined)

    def count(self, severity: Severity) -> int:
        """The number of active findings of a severity."""
        return sum(f.level is severity for f in self.active)

    @property
    def suppressed(self) -> int:
        """The number of suppressed findings."""
        return sum(f.suppressed is not None for f in self.findings)

    @property
    def baselined(self) -> int:
        """The number of baselined findings."""
        return sum(f.baselined and f.suppressed is None for f in self.findings)

    def fails(self, threshold: Severity) -> bool:
        """An active finding is at or above the threshold."""
        return any(f.level.reaches(threshold) for f in self.active)
