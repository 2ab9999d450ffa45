"""Comments that suppress findings: `# trainlint: ignore[TT102] reason`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from trainlint.findings import Finding
from trainlint.text import Text

_COMMENT = re.compile(r"(?:^|(?<=\s))#\s*trainlint:\s*ignore\[([^\]]*)\]\s*([^\r\n]*)")


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment: the rules that it names, its reason, and whether it stands alone on its line."""

    line: int
    rules: tuple[str, ...]
    reason: str
    alone: bool

    def covers(self, finding: Finding) -> bool:
        """The comment names this finding's rule, by code or name."""
        return any(word.upper() == finding.rule or word.lower() == finding.name for word in self.rules)


def suppressions(text: Text) -> Iterator[Suppression]:
    """The suppression comments of a file."""
    if "trainlint:" not in text.content:
        return
    for number in range(1, text.line_count + 1):
        line = text.line(number)
        match = _COMMENT.search(line)
        if match:
            rules = tuple(word.strip() for word in match.group(1).split(",") if word.strip())
            yield Suppression(number, rules, match.group(2).strip(), line[: match.start()].strip() == "")


def apply(findings: Iterable[Finding], text: Text) -> Iterator[Finding]:
    """The findings of one file, those marked as suppressed that a comment covers.

    A comment covers its own line or, alone on a line, the line below; several such comments may stand above each
    other.
    """
    by_line = {suppression.line: suppression for suppression in suppressions(text)}
    for finding in findings:
        cover = next((s for s in _above(finding.span.line, by_line) if s.covers(finding)), None)
        yield finding if cover is None else replace(finding, suppressed=cover.reason)


def _above(line: int, by_line: dict[int, Suppression]) -> Iterator[Suppression]:
    if line in by_line:
        yield by_line[line]
    line -= 1
    while line in by_line and by_line[line].alone:
        yield by_line[line]
        line -= 1
