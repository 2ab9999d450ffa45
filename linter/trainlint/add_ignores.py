"""Writes suppression comments for findings: `trainlint check --add-ignores`.

A comment may change nothing but what is reported. So each file is parsed again with its new comments, and a comment is
left out where it would be part of a value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from trainlint.findings import Edit
from trainlint.fixes import edited, replace_content
from trainlint.reading.document import Alias, Document, Node, Scalar, Unparsable, documents
from trainlint.reading.document import Mapping as Map
from trainlint.reading.document import Sequence as List
from trainlint.reading.text import Text
from trainlint.records import NamedTuple
from trainlint.report import Report
from trainlint.repository.discover import SUFFIXES
from trainlint.suppressions import Suppressed

_OWN = frozenset({"TL001", "TL002", "TL003", "TL004"})
"""No comment helps against what these find."""


class Added(NamedTuple):
    """How many comments were written, in how many files, and why others were not."""

    comments: int
    files: int
    notices: tuple[str, ...]


def wanted(report: Report) -> Mapping[str, Mapping[int, set[str]]]:
    """The codes of the active findings against which a comment helps, by file and line."""
    found: dict[str, dict[int, set[str]]] = {}
    for finding in report.active:
        if finding.rule not in _OWN:
            found.setdefault(finding.path, {}).setdefault(finding.span.line, set()).add(finding.rule)
    return found


def add_ignores(report: Report, reason: str, on_failure: Callable[[OSError], None]) -> Added:
    """Write comments for the active findings; files that cannot be written are told to `on_failure`."""
    comments = files = 0
    notices: list[str] = []
    written: set[str] = set()
    for path, by_line in wanted(report).items():
        text, real = report.texts[path], os.path.realpath(path)
        if not path.lower().endswith(SUFFIXES):
            kind = "JSON has no comments" if path.lower().endswith(".json") else "comments are written in YAML only"
            notices.append(f"{path}: {kind}; use per-file-ignores for {', '.join(_rules(by_line))}")
            continue
        changed, count, left = _commented(path, text, by_line, reason)
        notices += [f"{path}:{line}: no comment can be written here; use per-file-ignores" for line in left]
        if not count or real in written:
            continue
        try:
            replace_content(Path(path), text.encoded(text.content), text.encoded(changed))
        except OSError as error:
            on_failure(error)
        else:
            written.add(real)
            comments, files = comments + count, files + 1
    return Added(comments, files, tuple(notices))


def _rules(by_line: Mapping[int, Iterable[str]]) -> list[str]:
    return sorted({rule for rules in by_line.values() for rule in rules})


def _commented(path: str, text: Text, by_line: Mapping[int, set[str]], reason: str) -> tuple[str, int, list[int]]:
    """The content with comments, their number, and the lines that can have none."""
    try:
        found = list(documents(path, text))
    except Unparsable:
        return text.content, 0, list(by_line)
    places = _Places(text, found)
    edits: list[tuple[int, list[Edit]]] = []
    wrapped: dict[tuple[int, int], set[str]] = {}
    for line, rules in by_line.items():
        around = places.value_around(line)
        if around is None:
            edits.append((line, places.on_line(line, sorted(rules), reason)))
        else:
            wrapped.setdefault(around, set()).update(rules)
    edits += [(lines[0], places.around(lines, sorted(rules), reason)) for lines, rules in wrapped.items()]
    changed = edited(text.content, [edit for _, several in edits for edit in several])
    if all(several for _, several in edits) and _same(path, found, changed):
        return changed, len(edits), []
    kept: list[Edit] = []
    left: list[int] = []
    for line, several in edits:
        if several and _same(path, found, edited(text.content, [*kept, *several])):
            kept += several
        else:
            left.append(line)
    return edited(text.content, kept), len(edits) - len(left), left


class _Places:
    """Where a text can have comments."""

    def __init__(self, text: Text, found: Sequence[Document]) -> None:
        self._text = text
        self._comments = Suppressed(text, found)
        self._inside: dict[int, tuple[int, int]] = {}
        for scalar in (node for one in found for node in _nodes(one.root) if isinstance(node, Scalar)):
            first, last = text.position(scalar.start)[0], text.position(max(scalar.end - 1, scalar.start))[0]
            is_block = scalar.style in ("|", ">")
            for line in range(first + is_block, last + is_block):
                self._inside[line] = first, last

    def value_around(self, line: int) -> tuple[int, int] | None:
        """The first and last line of the value that would take a comment on a line for its own text."""
        return self._inside.get(line)

    def on_line(self, line: int, rules: Sequence[str], reason: str) -> list[Edit]:
        """A comment at the end of a line, or the comment there with these rules, too."""
        known = self._comments.extended(line, rules, reason)
        if known is not None:
            return known
        content = self._text.line(line)
        start = self._text.line_start(line)
        return [Edit(start + len(content.rstrip()), start + len(content), f"  {_comment('ignore', rules, reason)}")]

    def around(self, lines: tuple[int, int], rules: Sequence[str], reason: str) -> list[Edit]:
        """Comments before and behind a value of several lines."""
        first, last = lines
        content = self._text.line(first)
        indent = content[: len(content) - len(content.lstrip(" "))]
        start = self._text.line_start(first)
        beyond = last >= self._text.line_count
        end = len(self._text.content) if beyond else self._text.line_start(last + 1)
        line_end = self._line_end(first)
        behind = f"{indent}# trainlint: ignore-end{line_end}"
        if beyond and self._text.content[-1:] not in ("\n", "\r"):
            behind = f"{line_end}{indent}# trainlint: ignore-end"
        before = f"{indent}{_comment('ignore-start', rules, reason)}{line_end}"
        return [Edit(start, start, before), Edit(end, end, behind)]

    def _line_end(self, line: int) -> str:
        if line >= self._text.line_count:
            return "\n"
        whole = self._text.content[self._text.line_start(line) : self._text.line_start(line + 1)]
        return whole[len(self._text.line(line)) :] or "\n"


def _comment(word: str, rules: Sequence[str], reason: str) -> str:
    return f"# trainlint: {word}[{', '.join(rules)}]{f' {reason}' if reason else ''}"


def _same(path: str, before: Sequence[Document], content: str) -> bool:
    """A text has these documents, whatever its comments are."""
    try:
        after = list(documents(path, Text(content)))
    except Unparsable:
        return False
    return len(before) == len(after) and all(
        _shape(one.root) == _shape(other.root) for one, other in zip(before, after, strict=True)
    )


def _shape(root: Node) -> list[tuple[str | None, ...]]:
    """All that a document says, in one line."""
    return [_said(node) for node in _nodes(root)]


def _said(node: Node) -> tuple[str | None, ...]:
    if isinstance(node, Scalar):
        return "scalar", node.value, node.style, node.tag, node.anchor
    if isinstance(node, Alias):
        return "alias", node.name
    children = node.pairs if isinstance(node, Map) else node.items
    return type(node).__name__, str(len(children)), node.tag, node.anchor


def _nodes(root: Node) -> Iterator[Node]:
    """The nodes of a document in its order, without what is behind aliases."""
    nodes = [root]
    while nodes:
        node = nodes.pop()
        yield node
        if isinstance(node, Map):
            nodes.extend(part for pair in reversed(node.pairs) for part in reversed(pair))
        elif isinstance(node, List):
            nodes.extend(reversed(node.items))
