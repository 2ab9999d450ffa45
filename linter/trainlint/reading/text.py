"""Bytes to text, and a character index in the text to a line and a column."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property

_LINE_END = re.compile(r"\r\n|\n|\r")
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


Stretch = tuple[int, int]
"""Characters of a text: the first, and the one after the last."""

MASK = "***"


def cut(content: str, start: int, end: int, hidden: Iterable[Stretch]) -> str:
    """The characters from `start` to `end`, those of the hidden stretches, which are in order, replaced."""
    parts, at = [], start
    for first, last in hidden:
        if last > at and first < end:
            parts += [content[at : max(first, at)], MASK]
            at = min(last, end)
    return "".join([*parts, content[at:end]])


class Undecodable(ValueError):
    """The bytes are neither UTF-8 nor UTF-16; the first bad byte is in `line` (1-based)."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class Text:
    """Decoded text (without byte order mark) and its lines.

    Lines end at LF, CRLF or a single CR, as in editors and git; U+2028, U+2029 and NEL do not end a line.
    """

    def __init__(
        self, content: str, encoding: str = "utf-8", mark: bytes = b"", hidden: Sequence[Stretch] = ()
    ) -> None:
        self.content = content
        self.hidden = hidden
        """What is not to be shown of it: in order, apart, each within one line."""
        self._encoding = encoding
        self._mark = mark

    def hiding(self, hidden: Sequence[Stretch]) -> Text:
        """The same text, of which some is not to be shown."""
        return Text(self.content, self._encoding, self._mark, hidden)

    @property
    def has_mark(self) -> bool:
        """The bytes begin with a byte order mark."""
        return bool(self._mark)

    def shown(self, start: int, end: int) -> str:
        """The characters from `start` to `end` as they may be shown."""
        return cut(self.content, start, end, self.hidden_within(start, end))

    def hidden_within(self, start: int, end: int) -> Sequence[Stretch]:
        """The hidden stretches that have characters from `start` to `end`."""
        first = bisect_left(self.hidden, start + 1, key=lambda stretch: stretch[1])
        return self.hidden[first : bisect_left(self.hidden, end, key=lambda stretch: stretch[0])]

    def encoded(self, content: str) -> bytes:
        """Other content as bytes in the encoding of this text, with its byte order mark."""
        return self._mark + content.encode(self._encoding)

    @cached_property
    def _line_ends(self) -> list[tuple[int, int]]:
        return [match.span() for match in _LINE_END.finditer(self.content)]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(end for _, end in self._line_ends)]

    @property
    def line_count(self) -> int:
        """The number of lines; nothing follows a line end at the end of the text."""
        count = len(self._starts)
        return count - 1 if count > 1 and self._starts[-1] == len(self.content) else count

    def position(self, index: int) -> tuple[int, int]:
        """Line and column, both 1-based and in characters, of a character index."""
        line = bisect_right(self._starts, index)
        return line, index - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The content of a 1-based line, without its line end."""
        start = self._starts[number - 1]
        end = self._line_ends[number - 1][0] if number <= len(self._line_ends) else len(self.content)
        return self.content[start:end]

    def line_start(self, number: int) -> int:
        """The character index at which a 1-based line begins."""
        return self._starts[number - 1]


def decode(data: bytes) -> Text:
    """Decode UTF-8 (with or without byte order mark) or UTF-16.

    UTF-16 without a mark is recognised by the zero byte beside an ASCII first character (YAML 1.2, 5.2).

    Raises Undecodable.
    """
    encoding, skip = "utf-8", 0
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            encoding, skip = name, len(mark)
            break
    else:
        if data[1:2] == b"\0" and data[:1] != b"\0":
            encoding = "utf-16-le"
        elif data[:1] == b"\0" and data[1:2] not in (b"\0", b""):
            encoding = "utf-16-be"
    body = data[skip:]
    try:
        return Text(body.decode(encoding), encoding, data[:skip])
    except UnicodeDecodeError as error:
        before = body[: error.start].decode(encoding, "replace")
        line = Text(before).position(len(before))[0]
        raise Undecodable(f"byte {skip + error.start} is not {encoding.upper()}", line) from None
