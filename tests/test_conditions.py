"""Limits as data: what each word of a condition means."""

from __future__ import annotations

import pytest

from trainlint.reading.document import documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import UNKNOWN, Field
from trainlint.training.limits import Data, Limit, data_of, read_limits, refused


class Sheet:
    """A mapping as a reading."""

    def __init__(self, text: str) -> None:
        (document,) = documents("x.yml", Text(text))
        self.field = Field.root(document, Dialect.PYYAML)

    def data(self, name: str) -> Data:
        """The value of a setting."""
        return data_of(self.place(name))

    def place(self, name: str) -> Field:
        """Where a setting stands."""
        return self.field.at(*name.split(".")) if name else self.field


SHEET = Sheet(
    "a: true\nb: 2\nc: word\nd: []\ne: null\nf: ${X}\ng: {h: 1, i: false}\nj: 'false'\nk: 0\nl: 'no'\nm: -1\nn: MixeD\n"
)


@pytest.mark.parametrize(
    "when",
    "a; a b c; !d; !e; !z; a|d; !d|e; e|a; d?; !e?; b=2; b=1,2; c=word; a=true; c!=other; z!=other; b>1; b<3; c~OR; "
    "c~Or; a|b|d#>1; a|d|e#<2; g.h; !g.i; "
    "g.i=false; j; k?; k=0; l=no; m=-1; m<0; n~mixed; n~MIXED; b?!=1; c?!=other,l; a?!=false".split("; "),
)
def test_holds(when: str) -> None:
    """The condition holds of the sheet."""
    assert Limit("a", when, "").holds(SHEET)


@pytest.mark.parametrize(
    "when",
    "!a; d; e; z; !a|d; e?; !d?; b=1; b=two; j=false; k=false; c!=word; b>2; z>0; c>1; c~x; a|b#>2; a|b#<2; "
    "l!=no; z?!=1; e?!=1; b?!=1,2; f?!=1; f; !f; f?; !f?; f=x; f!=x; f>1; a|f#>1; a f; g.z".split("; "),
)
def test_does_not_hold(when: str) -> None:
    """The condition does not hold, or rests on what is not known."""
    assert not Limit("a", when, "").holds(SHEET)


def test_unknown_beside_what_decides() -> None:
    """What is known may decide alone."""
    assert Limit("a", "a|f", "").holds(SHEET)
    assert not Limit("a", "!a|f", "").holds(SHEET)
    assert SHEET.data("f") is UNKNOWN


def test_place() -> None:
    """The first written name, one that is set to something true before others, else what the condition names."""
    assert Limit("d|b", "a", "").place(SHEET).name == "b"
    assert Limit("d|e", "a", "").place(SHEET).name == "d"
    assert Limit("e|b", "a", "").place(SHEET).name == "b"
    assert Limit("z", "!z y=c c", "").place(SHEET).name == "c"
    assert Limit("z", "!z", "").place(SHEET).name == "z"
    assert Limit("", "!z", "").place(SHEET).name == SHEET.field.name


def test_which_values_a_limit_looks_at() -> None:
    """Those as written, or those after their conversion, where there is one."""
    as_written, as_converted = Limit("a", "a=1", "as written"), Limit("a", "a=1", "converted", converted=True)
    for limits, sheets, said in (
        ([as_written, as_converted], (Sheet("a: 2\n"), Sheet("a: 1\n")), ["converted"]),
        ([as_written, as_converted], (Sheet("a: 1\n"), Sheet("a: 2\n")), ["as written"]),
        ([as_converted], (Sheet("a: 1\n"), None), ["converted"]),
    ):
        assert [finding.message for finding in refused(limits, *sheets)] == said


def test_nonsense_is_refused() -> None:
    """A text that is not a condition is a fault of the table."""
    with pytest.raises(ValueError, match="not a condition: a-b"):
        Limit("a", "a-b", "").holds(SHEET)


TABLE = """\
# a head
[first]

1.0..1.2 converted: @a b
    a and b exclude each other
    -> keep one of them
..1.1: @(c|d) !e
    c needs e

[second]
1.1: !a @!b
    b is missing
"""


def test_table() -> None:
    """Sections, releases, the place, message and help, as the heads of the files say."""
    assert read_limits(TABLE) == {
        "first": (
            Limit("a", "a b", "a and b exclude each other", "keep one of them", "1.0", "1.2", converted=True),
            Limit("c|d", "!e", "c needs e", until="1.1"),
        ),
        "second": (Limit("b", "!a !b", "b is missing", since="1.1", until="1.1"),),
    }


@pytest.mark.parametrize(
    "table",
    [
        "1.0: @a\n    message\n",
        "[first]\n1.0: @a\n",
        "[first]\n1.0: @a\n    -> help\n",
        "[first]\n1.0: @a\n    message\n    message\n",
        "[first]\n    message\n",
    ],
)
def test_no_table(table: str) -> None:
    """Each limit stands in a section and has one message."""
    with pytest.raises(ValueError, match="not a limit"):
        read_limits(table)


@pytest.mark.parametrize("limit", ["a b", "1.0: a b", "1.0-1.2: @a b", ": @a b"])
def test_no_limit(limit: str) -> None:
    """A line that names no releases or no place is a fault of the table."""
    with pytest.raises(ValueError, match=f"not a limit: {limit}"):
        read_limits(f"[first]\n{limit}\n    message\n")


@pytest.mark.parametrize(
    ("release", "limits"), [("1.0", ["a b", "!e"]), ("1.1", ["a b", "!e", "!a !b"]), ("1.2", ["a b"]), ("1.3", [])]
)
def test_in_force(release: str, limits: list[str]) -> None:
    """From the first to the last release that is named."""
    table = [limit for section in read_limits(TABLE).values() for limit in section]
    assert [limit.when for limit in table if limit.applies_to(release, ["1.0", "1.1", "1.2", "1.3"])] == limits


@pytest.mark.parametrize(
    ("when", "others"),
    [
        ("@a b=2 c=word", [("b is here", 2), ("c is here", 3)]),
        ("@a !z", []),
        ("@a !k", [("k is here", 9)]),
        ("@a b|k|z", [("b is here", 2)]),
        ("@(a) a|k|b#>1", [("b is here", 2)]),
        ("@a g.h", [("h is here", 7)]),
    ],
)
def test_the_other_half_is_a_related_place(when: str, others: list[tuple[str, int]]) -> None:
    """What is written, and makes a term hold; what is left out or does not count is no place to look at."""
    text = f"[x]\n..: {when}\n    wrong\n"
    (found,) = refused(read_limits(text)["x"], SHEET)
    assert [(one.message, one.span.line) for one in found.related] == others
