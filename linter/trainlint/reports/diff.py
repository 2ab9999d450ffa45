"""What fixes change, as a unified diff.

Which lines a fix has touched is known, so no text is searched for what two of them have in common.

Source: git documentation, "Generating patch text with -p", for the quotes around odd paths.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, takewhile

from trainlint.findings import Edit
from trainlint.fixes import Mended, edited
from trainlint.reading.text import Text
from trainlint.records import NamedTuple
from trainlint.reports.escape import inert, visible

_AROUND = 3
"""Lines that are shown before and behind those that change."""
_NO_END = "\n\\ No newline at end of file\n"


class Diff(NamedTuple):
    """A diff, and whether something in it is escaped, so that it is for people only."""

    text: str
    escaped: bool


class Rounds:
    """A file before and after rounds of fixes; of each line that no fix has touched it is known which one it was."""

    def __init__(self, path: str, before: Text) -> None:
        self.path = path
        self.before = before
        self.content = before.content
        self._origins: list[int | None] = list(range(len(_lines(before.content))))

    def add(self, mended: Mended) -> None:
        """One more round."""
        lines = _lines(self.content)
        starts = list(accumulate(map(len, lines), initial=0))
        origins: list[int | None] = []
        row = 0
        for first, last, edits in _touched(sorted(mended.edits, key=lambda edit: edit.start), starts, self.content):
            here = starts[first]
            moved = [Edit(edit.start - here, edit.end - here, edit.replacement) for edit in edits]
            old, new = lines[first:last], _lines(edited(self.content[here : starts[last]], moved))
            same = _common(old, new)
            tail = _common(old[same:][::-1], new[same:][::-1])
            origins += self._origins[row : first + same]
            origins += [None] * (len(new) - same - tail)
            row = last - tail
        self._origins = [*origins, *self._origins[row:]]
        self.content = mended.content

    def diff(self, *, show_values: bool = False) -> Diff:
        """The diff of all rounds, for people and for `git apply`; a line with a hidden value is for people only.

        Lines keep their ends, as in git. What looks like a secret is masked unless `show_values`.
        """
        before, after = (_shown(self.path, text, show_values) for text in (self.before, Text(self.content)))
        rows = list(_rows(before, after, self._origins))
        told = [f"--- {_quoted(f'a/{self.path}')}\n", f"+++ {_quoted(f'b/{self.path}')}\n"]
        escaped = False
        old, new = (list(accumulate((sign != other for sign, _ in rows), initial=0)) for other in "+-")
        for hunk in _hunks(rows):
            told.append(f"@@ -{_range(old, hunk)} +{_range(new, hunk)} @@\n")
            for sign, line in rows[hunk.start : hunk.stop]:
                content = line.removesuffix("\n").removesuffix("\r")
                shown = inert(sign + content)
                escaped = escaped or shown != sign + content
                end = line[len(content) :]
                told.append(f"{shown}{end}" if end.endswith("\n") else f"{shown}{end}{_NO_END}")
        return Diff("".join(told), escaped)


def _touched(edits: Sequence[Edit], starts: Sequence[int], content: str) -> Iterator[tuple[int, int, list[Edit]]]:
    """The first line, and the one behind the last, of each stretch that edits touch, with these."""
    at, count = 0, len(starts) - 1
    while at < len(edits):
        first = min(max(bisect_right(starts, edits[at].start) - 1, 0), max(count - 1, 0))
        last, group = first, []
        while at < len(edits) and (edits[at].start < starts[last] or last in (first, count)):
            edit = edits[at]
            group.append(edit)
            at += 1
            until = bisect_right(starts, max(edit.end - 1, edit.start))
            last = min(max(last, until + _joins(edit, content)), count)
        yield first, last, group


def _joins(edit: Edit, content: str) -> bool:
    """An edit takes the end of a line and joins it with the next, since it takes no whole lines."""
    takes_end = edit.end > edit.start and content[edit.end - 1] == "\n"
    keeps = edit.replacement or content[max(edit.start - 1, 0) : edit.start].removesuffix("\n")
    return takes_end and bool(keeps) and not edit.replacement.endswith("\n")


def _common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines two stretches have in common at their beginning."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _rows(before: Sequence[str], after: Sequence[str], origins: Sequence[int | None]) -> Iterator[tuple[str, str]]:
    """Each line of both texts, with the sign that it has in a diff."""
    done, fresh = 0, 0
    for place, origin in enumerate([*origins, len(before)]):
        if origin is None:
            continue
        yield from (("-", line) for line in before[done:origin])
        yield from (("+", line) for line in after[fresh:place])
        yield from ((" ", line) for line in before[origin : origin + 1])
        done, fresh = origin + 1, place + 1


def _hunks(rows: Sequence[tuple[str, str]]) -> Iterator[range]:
    """The stretches of rows that are shown."""
    start = stop = -1
    for place, (sign, _) in enumerate(rows):
        if sign == " ":
            continue
        if start >= 0 and place - _AROUND > stop:
            yield range(start, stop)
            start = -1
        start = max(place - _AROUND, 0) if start < 0 else start
        stop = min(place + _AROUND + 1, len(rows))
    if start >= 0:
        yield range(start, stop)


def _range(lines: Sequence[int], hunk: range) -> str:
    """The lines of a file in a hunk; `lines` has for each row how many lines of the file are before it."""
    first, count = lines[hunk.start] + 1, lines[hunk.stop] - lines[hunk.start]
    return f"{first}" if count == 1 else f"{first if count else first - 1},{count}"


def _lines(content: str) -> list[str]:
    """The lines of a content with their ends, of which only the line feed counts, as in git."""
    *whole, last = content.split("\n")
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]


def _shown(path: str, text: Text, show_values: bool) -> list[str]:
    content = text.content
    if not show_values:
        from trainlint.reports.masking import secrets_of

        content = text.hiding(secrets_of(path, text)[0]).shown(0, len(content))
    return _lines(content)


def _quoted(path: str) -> str:
    """A path as git writes it: in quotes, with bytes in octal, where a character of it does not print."""
    if visible(path) == path and not {'"', "\\"} & set(path):
        return path
    plain = set(range(32, 127)) - set(b'"\\#')
    data = path.encode("utf-8", "surrogateescape")
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in data) + '"'
