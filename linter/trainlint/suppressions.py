"""Comments that suppress findings: `# trainlint: ignore[TT102] reason`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from trainlint.findings import Finding
from trainlint.lazy import regex
from trainlint.reading.text import Text

_COMMENT = regex(r"(?:^|(?<=\s))#\s*trainlint:\s*ignore\b(?:\[([^\]]*)\])?\s*([^\r\n]*)")


class Suppression(NamedTuple):
    """One comment: its place, the rules that it names, its reason, and whether it is alone on its line."""

    line: int
    column: int
    end_column: int
    rules: tuple[str, ...]
    reason: str
    alone: bool

    def word_for(self, finding: Finding) -> str | None:
        """The code or name in the comment that suppresses this finding; None where there is none."""
        return next((word for word in self.rules if word.upper() == finding.rule or word.lower() == finding.name), None)


def suppressions(text: Text) -> Iterator[Suppression]:
    """The suppression comments of a file."""
    if "trainlint:" not in text.content:
        return
    for number in range(1, text.line_count + 1):
        line = text.line(number)
        match = _COMMENT.search(line)
        if match:
            rules = tuple(word.strip() for word in (match.group(1) or "").split(",") if word.strip())
            alone = line[: match.start()].strip() == ""
            end = len(line.rstrip()) + 1
            yield Suppression(number, match.start() + 1, end, rules, match.group(2).strip(), alone)


class Suppressed:
    """The suppression comments of one file, and which of them were used.

    A comment suppresses on its own line or, if it is alone on its line, on the line below; several such comments may
    follow each other.
    """

    def __init__(self, text: Text) -> None:
        self._by_line = {suppression.line: suppression for suppression in suppressions(text)}
        self._used: set[tuple[int, str]] = set()

    def apply(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings; those that a comment suppresses are marked."""
        for finding in findings:
            yield self._marked(finding)

    def unused(self) -> Iterator[tuple[Suppression, tuple[str, ...]]]:
        """The comments that name no rule, or rules that suppressed nothing, with these rules."""
        for suppression in self._by_line.values():
            idle = tuple(word for word in suppression.rules if (suppression.line, word) not in self._used)
            if idle or not suppression.rules:
                yield suppression, idle

    def _marked(self, finding: Finding) -> Finding:
        for suppression in self._above(finding.span.line):
            word = suppression.word_for(finding)
            if word is not None:
                self._used.add((suppression.line, word))
                return replace(finding, suppressed=suppression.reason)
        return finding

    def _above(self, line: int) -> Iterator[Suppression]:
        if line in self._by_line:
            yield self._by_line[line]
        line -= 1
        while line in self._by_line and self._by_line[line].alone:
            yield self._by_line[line]
            line -= 1
