"""Limits as data: what each word of a condition means."""

from __future__ import annotations

import pytest

from trainlint.reading.document import documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import Field
from trainlint.training.limits import UNREAD, Data, Limit, data_of


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
    "a: true\nb: 2\nc: word\nd: []\ne: null\nf: ${X}\ng: {h: 1, i: false}\nj: 'false'\nk: 0\nl: 'no'\nm: -1\n"
)


@pytest.mark.parametrize(
    "when",
    "a; a b c; !d; !e; !z; a|d; !d|e; e|a; d?; !e?; b=2; b=1,2; c=word; a=true; c!=other; z!=other; b>1; b<3; c~OR; "
    "a|b|d#>1; a|d|e#<2; g.h; !g.i; g.i=false; j; k?; k=0; l=no; m=-1; m<0".lower().split("; "),
)
def test_holds(when: str) -> None:
    """The condition holds of the sheet."""
    assert Limit("a", when, "").holds(SHEET)


@pytest.mark.parametrize(
    "when",
    "!a; d; e; z; !a|d; e?; !d?; b=1; b=two; j=false; k=false; c!=word; b>2; z>0; c>1; c~x; a|b#>2; a|b#<2; "
    "l!=no; f; !f; f?; !f?; f=x; f!=x; f>1; a|f#>1; a f; g.z".split("; "),
)
def test_does_not_hold(when: str) -> None:
    """The condition does not hold, or rests on what is not known."""
    assert not Limit("a", when, "").holds(SHEET)


def test_unknown_beside_what_decides() -> None:
    """What is known may decide alone."""
    assert Limit("a", "a|f", "").holds(SHEET)
    assert not Limit("a", "!a|f", "").holds(SHEET)
    assert SHEET.data("f") is UNREAD


def test_place() -> None:
    """The first given name, one that is set to something true before others, else what the condition names."""
    assert Limit("d|b", "a", "").place(SHEET).name == "b"
    assert Limit("d|e", "a", "").place(SHEET).name == "d"
    assert Limit("z", "!z c", "").place(SHEET).name == "c"


def test_nonsense_is_refused() -> None:
    """A word that is no condition is a fault of the table."""
    with pytest.raises(ValueError, match="is no condition"):
        Limit("a", "a-b", "").holds(SHEET)
