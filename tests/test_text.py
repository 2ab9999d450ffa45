"""Bytes to text, indices to lines and columns."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainlint.reading.text import Text, Undecodable, decode


@pytest.mark.parametrize(
    "data",
    [
        "a: ü\n".encode(),
        codecs.BOM_UTF8 + "a: ü\n".encode(),
        codecs.BOM_UTF16_LE + "a: ü\n".encode("utf-16-le"),
        codecs.BOM_UTF16_BE + "a: ü\n".encode("utf-16-be"),
        "a: ü\n".encode("utf-16-le"),
        "a: ü\n".encode("utf-16-be"),
    ],
    ids=["utf-8", "utf-8 bom", "utf-16le bom", "utf-16be bom", "utf-16le", "utf-16be"],
)
def test_decodes_without_the_mark(data: bytes) -> None:
    assert decode(data).content == "a: ü\n"


def test_undecodable_names_the_line() -> None:
    with pytest.raises(Undecodable) as caught:
        decode(b"a: 1\r\nb: \xff\n")
    assert caught.value.line == 2
    assert "byte 9" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "index", "place"),
    [
        ("a\nb", 2, (2, 1)),
        ("a\r\nb", 3, (2, 1)),
        ("a\rb", 2, (2, 1)),
        ("a\u2028b\x85c\nd", 4, (1, 5)),
        ("a\u2028b\x85c\nd", 6, (2, 1)),
        ("", 0, (1, 1)),
        ("a\n", 2, (2, 1)),
        ("😀 x", 2, (1, 3)),
    ],
)
def test_position(content: str, index: int, place: tuple[int, int]) -> None:
    assert Text(content).position(index) == place


@given(st.text(alphabet="ab\r\n\u2028", max_size=30))
def test_lines_and_positions_agree(content: str) -> None:
    text = Text(content)
    for index, character in enumerate(content):
        line, column = text.position(index)
        if character not in "\r\n":
            assert text.line(line)[column - 1] == character
        assert text.line_start(line) <= index


@pytest.mark.parametrize(("content", "count"), [("", 1), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\n\n", 2)])
def test_line_count(content: str, count: int) -> None:
    assert Text(content).line_count == count
