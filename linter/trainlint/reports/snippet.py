"""Lines of a file with marks under them, for a terminal: the place of a finding, and related places near by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainlint.findings import Span
from trainlint.reading.text import MASK, Stretch, Text
from trainlint.records import NamedTuple
from trainlint.reports.escape import columns, visible, visible_cells

CONTEXT = 2
TAB = "    "
CUT = "..."


class Mark(NamedTuple):
    """A place to mark with a character under it, and what is said of it; `color` is that of the terminal."""

    span: Span
    sign: str
    said: str
    color: str


class Row(NamedTuple):
    """A line of a snippet: its number (empty under a line, `...` where lines are left out), indent, text and color."""

    number: str
    indent: int = 0
    text: str = ""
    color: str = ""


class Clipped(NamedTuple):
    """A line as it is printed, and the place of the marked part in terminal columns."""

    text: str
    offset: int
    width: int


def rows(text: Text, marks: Sequence[Mark], room: int, encoding: str) -> Iterator[Row]:
    """The lines of the marks, in order, with up to two lines before that of the first mark given."""
    by_line: dict[int, list[Mark]] = {}
    for mark in marks:
        by_line.setdefault(mark.span.line, []).append(mark)
    own = marks[0].span.line
    before = {number for number in range(max(1, own - CONTEXT), own) if number not in by_line}
    last = None
    blank = True
    for number in sorted({*before, *by_line}):
        line = text.line(number)
        blank = blank and not line.strip() and number not in by_line
        if blank:
            continue
        if last is not None and number == last + 2:
            yield Row(str(last + 1), 0, _clipped_at(text, last + 1, 0, 0, room, encoding).text)
        elif last is not None and number > last + 1:
            yield Row(CUT)
        last = number
        if number not in by_line:
            yield Row(str(number), 0, _clipped_at(text, number, 0, 0, room, encoding).text)
        printed = None
        for mark in by_line.get(number, ()):
            shown = _clipped_at(text, number, *_within(mark.span, line), room, encoding)
            if shown.text != printed:
                yield Row(str(number), 0, shown.text)
            printed = shown.text
            yield from _under(mark, shown, room, encoding)


def _within(span: Span, line: str) -> tuple[int, int]:
    """The first and the last marked character of a line, from 0; a place of several lines is marked on its first."""
    start = min(span.column - 1, len(line))
    end = span.end_column - 1 if span.end_line == span.line else len(line.rstrip())
    return start, min(end, len(line))


def _under(mark: Mark, shown: Clipped, room: int, encoding: str) -> Iterator[Row]:
    sign = mark.sign * max(shown.width, 1)
    said = visible(mark.said, encoding)
    if shown.offset + len(sign) + 1 + columns(said) <= room:
        yield Row("", shown.offset, f"{sign} {said}".rstrip(), mark.color)
    else:
        yield Row("", shown.offset, sign, mark.color)
        for line in _broken(said, room):
            yield Row("", max(0, min(shown.offset, room - columns(said))), line, mark.color)


def _broken(said: str, room: int) -> Iterator[str]:
    """Words in lines of so many columns; a longer word is not broken."""
    line = ""
    for word in said.split(" "):
        if line and columns(line) + 1 + columns(word) > room:
            yield line
            line = word
        else:
            line = f"{line} {word}" if line else word
    if line:
        yield line


def _clipped_at(text: Text, number: int, start: int, end: int, room: int, encoding: str) -> Clipped:
    return clipped(text.line(number), start, end, room, encoding, hidden_in(text, number))


def hidden_in(text: Text, number: int) -> list[Stretch]:
    """What is not to be shown of a line, in characters of it."""
    begins = text.line_start(number)
    return [(a - begins, b - begins) for a, b in text.hidden_within(begins, begins + len(text.line(number)))]


def printed(line: str, first: int, last: int, encoding: str, hidden: Sequence[Stretch]) -> list[str]:
    """The printed form of each character of a part of a line; the first of a hidden stretch stands for all of it."""
    cells = [
        TAB if character == "\t" else cell
        for character, cell in zip(line[first:last], visible_cells(line[first:last], encoding), strict=True)
    ]
    for a, b in hidden:
        inner = range(max(a, first) - first, min(b, last) - first)
        if inner:
            cells[inner.start : inner.stop] = [MASK, *[""] * (len(inner) - 1)]
    return cells


def clipped(line: str, start: int, end: int, room: int, encoding: str, hidden: Sequence[Stretch] = ()) -> Clipped:
    """The part of a line around its characters `start` to `end` that fits into `room` columns.

    Only as many characters are read as could be shown, however long the line is.
    """
    first, last = max(0, start - room), min(len(line), start + room)
    cells = printed(line, first, last, encoding, hidden)
    widths = [columns(cell) for cell in cells]
    mark, stop = start - first, max(end, start) - first
    if first == 0 and last == len(line) and sum(widths) <= room:
        return Clipped("".join(cells), sum(widths[:mark]), sum(widths[mark:stop]))

    left, used = mark, 0
    half = room // 2
    if first > 0 or sum(widths[:mark]) > half:
        while left > 0 and used + widths[left - 1] <= half:
            left -= 1
            used += widths[left]
    else:
        left, used = 0, sum(widths[:mark])
    head = CUT if first + left > 0 else ""
    offset = used + len(head)
    right, used = mark, offset
    while right < len(cells) and used + widths[right] <= room - len(CUT):
        used += widths[right]
        right += 1
    tail = CUT if first + right < len(line) else ""
    return Clipped(f"{head}{''.join(cells[left:right])}{tail}", offset, sum(widths[mark : min(stop, right)]))
