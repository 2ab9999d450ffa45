"""What a run came to: findings, counts, targets and notices, for every output format alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trainlint.findings import Finding, Severity
from trainlint.reading.text import Text
from trainlint.targets import Target


@dataclass(frozen=True, slots=True)
class FileCounts:
    """How many YAML files the run came across, parsed, and found something of its programs in."""

    discovered: int = 0
    parsed: int = 0
    recognised: int = 0


@dataclass(frozen=True)
class Report:
    """The outcome of a run.

    `findings` holds all of them in the order of file, line, column and rule, suppressed and baselined ones included
    (their `suppressed` and `baselined` say so). `texts` has the text of each file with a finding, by its path.
    `notices` are one-line remarks on the run itself.
    """

    findings: tuple[Finding, ...] = ()
    files: FileCounts = FileCounts()
    targets: Mapping[str, Target] = field(default_factory=dict)
    notices: tuple[str, ...] = ()
    texts: Mapping[str, Text] = field(default_factory=dict)
    masked: bool = False
    """What looks like a secret is taken out of findings and notices, and hidden in the texts."""
    crashed: bool = False
    """A fault of trainlint itself kept some file from being checked; a notice says where."""

    @property
    def active(self) -> Iterator[Finding]:
        """The findings that are neither suppressed nor in the baseline."""
        return (f for f in self.findings if f.suppressed is None and not f.baselined)

    def count(self, severity: Severity) -> int:
        """How many active findings have this severity."""
        return sum(f.level is severity for f in self.active)

    @property
    def suppressed(self) -> int:
        """How many findings a comment suppresses."""
        return sum(f.suppressed is not None for f in self.findings)

    @property
    def baselined(self) -> int:
        """How many findings the baseline holds."""
        return sum(f.baselined and f.suppressed is None for f in self.findings)

    def fails(self, threshold: Severity) -> bool:
        """Some active finding is at or above the threshold."""
        return any(f.level.reaches(threshold) for f in self.active)
