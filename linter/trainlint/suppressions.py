"""Comments that suppress findings: `# trainlint: ignore[TT102] reason`, for a line, a range or a file."""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from trainlint.budget import BUDGET
from trainlint.findings import Edit, Finding, Fix
from trainlint.lazy import regex
from trainlint.reading.text import Text
from trainlint.records import NamedTuple, replace

if TYPE_CHECKING:
    from trainlint.reading.document import Document, Node

_COMMENT = regex(r"(?:^|(?<=\s))#\s*trainlint:\s*(ignore(?:-[\w-]*)?)(?!\w)(?:\[([^\]]*)\])?\s*([^\r\n]*)")
_HEAD = regex(r"\s*(?:#.*|%.*|---\s*(?:#.*)?)?")
"""A line that may stand before the first one with content."""


class Reach(enum.Enum):
    """What a comment is for, by its word."""

    LINE = "ignore"
    """Its own line; the line below if it is alone on its line."""
    START = "ignore-start"
    """The lines from it to its end, both included."""
    END = "ignore-end"
    FILE = "ignore-file"
    """The file; it must stand before the first line with content."""


class Suppression(NamedTuple):
    """One comment: its place, the rules that it names, its reason, and whether it is alone on its line.

    `reach` is None where the word is none that trainlint knows; `certain` is false where the comment may be part of a
    value, such as a script.
    """

    line: int
    column: int
    end_column: int
    rules: tuple[str, ...]
    reason: str
    alone: bool
    reach: Reach | None = Reach.LINE
    word: str = "ignore"
    certain: bool = True

    def word_for(self, finding: Finding) -> str | None:
        """The code or name in the comment that suppresses this finding; None where there is none."""
        return next((word for word in self.rules if word.upper() == finding.rule or word.lower() == finding.name), None)


class Idle(NamedTuple):
    """A comment that suppresses less than it says: the words that suppressed nothing, or what is wrong with it."""

    suppression: Suppression
    words: tuple[str, ...] = ()
    problem: str = ""
    help: str = ""
    removable: bool = False
    """It can go as a whole."""


def suppressions(text: Text, documents: Iterable[Document] = ()) -> Iterator[Suppression]:
    """The suppression comments of a file, which has these documents; what stands in a quoted value is none."""
    if "trainlint:" not in text.content:
        return
    values: _Values | None = None
    for number in range(1, text.line_count + 1):
        line = text.line(number)
        match = _COMMENT.search(line) if "trainlint:" in line else None
        if match is None:
            continue
        values = values or _Values(text, documents)
        style = values.style_at(text.line_start(number) + match.start())
        if style in ('"', "'"):
            continue
        rules = tuple(word.strip() for word in (match[2] or "").split(",") if word.strip())
        yield Suppression(
            number,
            match.start() + 1,
            len(line.rstrip()) + 1,
            rules,
            match[3].strip(),
            not line[: match.start()].strip(),
            next((reach for reach in Reach if reach.value == match[1]), None),
            match[1],
            not style,
        )


class Suppressed:
    """The suppression comments of one file, and which of them were used.

    Several comments that are alone on their lines may follow each other; all of them are for the line below. A comment
    without a reason suppresses nothing if `require_reason` says so.
    """

    def __init__(self, text: Text, documents: Iterable[Document] = (), *, require_reason: bool = False) -> None:
        self._text = text
        read = suppressions(text, documents)
        self._comments = list(islice(read, BUDGET.comments))
        self.beyond = next(read, None)
        """The first comment that the budget leaves out."""
        self._require_reason = require_reason
        self._used: set[tuple[int, str]] = set()
        self._by_line = {comment.line: comment for comment in self._counting(Reach.LINE)}
        self._head = _first_line_of_content(text) if any(self._counting(Reach.FILE)) else 0
        self._for_file = [comment for comment in self._counting(Reach.FILE) if comment.line < self._head]
        self._ends: dict[int, Suppression] = {}
        self._ranges: list[tuple[int, int, Suppression]] = []
        self._lone_ends: set[int] = set()
        self._pair()

    def apply(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings; those that a comment suppresses are marked."""
        for finding in findings:
            yield self._marked(finding) if self._comments else finding

    def unused(self) -> Iterator[Idle]:
        """The comments that name no rule or rules that suppressed nothing, or that are not what they look like."""
        for comment in self._comments:
            if comment.reach is None:
                known = ", ".join(reach.value for reach in Reach)
                yield Idle(comment, (), f"{comment.word} is no comment of trainlint", f"write one of {known}")
            elif comment.reach is Reach.END:
                if comment.line in self._lone_ends:
                    help = "remove it, or name the rules of the ignore-start"
                    yield Idle(comment, (), "there is no ignore-start before this ignore-end", help, True)
            elif self._lacks_reason(comment):
                problem = "the comment gives no reason and suppresses nothing"
                yield Idle(comment, (), problem, "write the reason behind the bracket, as the settings require")
            elif comment.reach is Reach.FILE and comment.line >= self._head:
                problem = "ignore-file suppresses nothing below the first line with content"
                yield Idle(comment, (), problem, "move it to the beginning of the file")
            else:
                idle = tuple(word for word in comment.rules if (comment.line, word) not in self._used)
                if idle or not comment.rules:
                    yield Idle(comment, idle, removable=bool(idle))
                elif comment.reach is Reach.START and comment.line not in self._ends:
                    problem = "ignore-start has no ignore-end and counts up to the end of the file"
                    yield Idle(comment, (), problem, "write # trainlint: ignore-end below the last line that is meant")

    def without(self, idle: Idle, words: Collection[str]) -> Fix | None:
        """The change that takes these words out of a comment, and the comment with the last of them."""
        comment = idle.suppression
        left = [word for word in comment.rules if word not in words]
        if not comment.certain or not idle.removable:
            return None
        if left:
            start, end = self._bracket(comment)
            return Fix(f"remove {', '.join(words)} from the comment", (Edit(start, end, ", ".join(left)),), keeps=True)
        removed = [comment, *([self._ends[comment.line]] if comment.line in self._ends else [])]
        if not all(one.certain for one in removed):
            return None
        return Fix("remove the comment", tuple(self._removal(one) for one in removed), keeps=True)

    def extended(self, line: int, rules: Sequence[str], reason: str) -> list[Edit] | None:
        """The changes that add rules, and a reason where there is none, to the comment on a line.

        None if the line has no comment; empty if the one that it has cannot be extended.
        """
        comment = next((one for one in self._comments if one.line == line), None)
        if comment is None:
            return None
        if comment.alone or not comment.certain or not comment.rules or comment.reach is not Reach.LINE:
            return []
        _, end = self._bracket(comment)
        behind = self._text.line_start(line) + comment.end_column - 1
        named = [rule for rule in rules if rule not in comment.rules]
        added = [Edit(end, end, "".join(f", {rule}" for rule in named))] if named else []
        return [*added, *([Edit(behind, behind, f" {reason}")] if reason and not comment.reason else [])]

    def _counting(self, reach: Reach) -> Iterator[Suppression]:
        return (one for one in self._comments if one.reach is reach and not self._lacks_reason(one))

    def _lacks_reason(self, comment: Suppression) -> bool:
        return self._require_reason and bool(comment.rules) and not comment.reason

    def _pair(self) -> None:
        """Each end belongs to the last open start: that of the same rules if the end names some."""
        opened: list[Suppression] = []
        of_rules: dict[frozenset[str], list[Suppression]] = {}
        for comment in self._comments:
            rules = frozenset(comment.rules)
            if comment.reach is Reach.START:
                opened.append(comment)
                of_rules.setdefault(rules, []).append(comment)
            elif comment.reach is Reach.END:
                fitting = of_rules.get(rules, []) if rules else opened
                while fitting and fitting[-1].line in self._ends:
                    fitting.pop()
                if fitting:
                    self._ends[fitting.pop().line] = comment
                else:
                    self._lone_ends.add(comment.line)
        for start in self._counting(Reach.START):
            end = self._ends[start.line].line if start.line in self._ends else self._text.line_count
            self._ranges.append((start.line, end, start))

    def _marked(self, finding: Finding) -> Finding:
        for suppression in self._meant_for(finding.span.line):
            word = suppression.word_for(finding)
            if word is not None:
                self._used.add((suppression.line, word))
                return replace(finding, suppressed=suppression.reason)
        return finding

    def _meant_for(self, line: int) -> Iterator[Suppression]:
        """The comments for a line, the nearest first."""
        if line in self._by_line:
            yield self._by_line[line]
        above = line - 1
        while above in self._by_line and self._by_line[above].alone:
            yield self._by_line[above]
            above -= 1
        for start, end, suppression in reversed(self._ranges):
            if start <= line <= end:
                yield suppression
        yield from self._for_file

    def _bracket(self, comment: Suppression) -> tuple[int, int]:
        """What stands between the brackets."""
        line = self._text.line(comment.line)
        start = line.index("[", comment.column - 1) + 1
        at = self._text.line_start(comment.line)
        return at + start, at + line.index("]", start)

    def _removal(self, comment: Suppression) -> Edit:
        """The comment, with its line if it is alone there, else with the blanks before it."""
        at = self._text.line_start(comment.line)
        if comment.alone:
            last = comment.line >= self._text.line_count
            end = len(self._text.content) if last else self._text.line_start(comment.line + 1)
            return Edit(at, end, "")
        line = self._text.line(comment.line)
        return Edit(at + len(line[: comment.column - 1].rstrip()), at + len(line), "")


def _first_line_of_content(text: Text) -> int:
    lines = range(1, text.line_count + 1)
    return next((number for number in lines if not _HEAD.fullmatch(text.line(number))), text.line_count + 1)


class _Values:
    """The scalars of documents, by their places."""

    def __init__(self, text: Text, documents: Iterable[Document]) -> None:
        self._text = text
        self._scalars = sorted((start, end, style) for one in documents for start, end, style in _scalars(one.root))

    def style_at(self, index: int) -> str:
        """The style of the scalar that a character is in, `plain` if it has none; empty outside all scalars.

        What follows the `|` of a block on its line is outside.
        """
        place = bisect_right(self._scalars, (index + 1,)) - 1
        if place < 0:
            return ""
        start, end, style = self._scalars[place]
        header = style in ("|", ">") and self._text.position(start)[0] == self._text.position(index)[0]
        return (style or "plain") if start <= index < end and not header else ""


def _scalars(root: Node) -> Iterator[tuple[int, int, str]]:
    from trainlint.reading.document import Mapping, Scalar
    from trainlint.reading.document import Sequence as List

    nodes: list[Node] = [root]
    while nodes:
        node = nodes.pop()
        if isinstance(node, Scalar):
            yield node.start, node.end, node.style
        elif isinstance(node, Mapping):
            nodes.extend(part for pair in node.pairs for part in pair)
        elif isinstance(node, List):
            nodes.extend(node.items)
