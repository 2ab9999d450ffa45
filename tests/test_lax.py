"""What pydantic's lax mode takes: tried on pydantic 2.13 with the same pairs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from trainlint.reading.document import documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import Field
from trainlint.training.declarations import Spec
from trainlint.training.pydantic_types import Schema, refusals

if TYPE_CHECKING:
    from trainlint.training.declarations import Json


def spec(types: str, choices: tuple[Json, ...] = (), **bounds: Json) -> Spec:
    """A declared field."""
    return Spec("x", tuple(types.split(" | ")), choices, None, False, False, False, (), bounds, {})


def refused(value: str, declared: Spec, enums: dict[str, list[Json]] | None = None) -> list[str]:
    """The places that are refused and what they should hold."""
    (document,) = documents("x.yml", Text(f"x: {value}\n"))
    models = {"Model": {"size": spec("int"), "name": Spec("name", ("str",), (), None, True, False, False, (), {}, {})}}
    schema = Schema(lambda name: models.get(name, {}), lambda name: (enums or {}).get(name))
    place = Field.root(document, Dialect.PYYAML).get("x")
    return [f"{r.place.yaml_path}: {r.wanted}" for r in refusals(place, declared, schema)]


@pytest.mark.parametrize(
    ("types", "taken", "not_taken"),
    [
        ("bool", "true yes 'yes' 'ON' 0 1 1.0 'f' '${X}' {{x}}", "2 1.5 ' true' abc '' [true] {} 'enabled'"),
        ("int", "1 -1 1.0 true '5' ' 5 ' '1_000' '+5' '5.00' 007", "1.5 '1.5' 1e3 abc '' '1__0' .inf .nan '0x10'"),
        ("float", "1 1.5 true 1e-5 '1e-5' .inf 'nan' '.5' '1_000'", "abc '' '1,000' [1] '--5' '1_' '0x10'"),
        ("str", "abc '1' '' 'no' 1e-5 2024-1-1", "1 1.5 true no 2024-01-01 [a] {}"),
        ("list[str]", "[] [a,b] ['1']", "a [1] {} [null] [a,1]"),
        ("list[int|str]", "[1,a]", "[[1]] a"),
        ("dict[str,Any]", "{} {'a':1}", "a [a] 1"),
        ("dict[str,PositiveInt]", "{} {'a':1}", "3 {'a':0}"),
        ("tuple[int,int]", "[1,2] ['1',2]", "[1] [1,a] 1"),
        ("int | list[int] | None", "1 [1] null ~", "a [a] {}"),
        ("Any", "1 [a] {} null", ""),
        ("bool", "", "null"),
    ],
)
def test_types(types: str, taken: str, not_taken: str) -> None:
    """Each value is taken or refused as pydantic does."""
    declared = spec(types)
    for value in _values(taken):
        assert refused(value, declared) == [], value
    for value in _values(not_taken):
        assert refused(value, declared) != [], value


def _values(text: str) -> list[str]:
    """Words between spaces, quoted ones whole."""
    return re.findall(r"(?:'[^']*'|[^\s'])+", text)


def test_words() -> None:
    """Words are compared letter by letter; 1 is true; an enum that is not known takes anything."""
    words = spec("literal | bool | None", ("auto",))
    assert refused("auto", words) == refused("true", words) == refused("1", words) == []
    assert refused("Auto", words) == ["x: auto or a boolean"]
    assert refused("a", spec("Kind"), {"Kind": ["a", "b"]}) == []
    assert refused("c", spec("Kind"), {"Kind": ["a", "b"]}) == ["x: one of a, b"]
    assert refused("c", spec("Kind")) == []


def test_bounds() -> None:
    """Numbers and lists within their bounds, also when they are written as texts."""
    assert refused("0", spec("int", ge=1)) == ["x: a number of at least 1"]
    assert refused("'0'", spec("int", ge=1)) == ["x: a number of at least 1"]
    assert refused("0.0", spec("float", gt=0.0)) == ["x: a number above 0"]
    assert refused("2", spec("float", le=1.0)) == ["x: a number of at most 1"]
    assert refused("1", spec("float", lt=1)) == ["x: a number below 1"]
    assert refused("[]", spec("list[str]", min_length=1)) == ["x: a list of at least 1"]
    assert refused("abc", spec("str", pattern="^b")) == ["x: another text"]


def test_models() -> None:
    """A model's fields are checked where they stand, and a required one is missed."""
    assert refused("{size: 1, name: a}", spec("Model | None")) == []
    assert refused("{size: a, name: a}", spec("Model")) == ["x.size: an integer"]
    assert refused("{size: 1}", spec("Model")) == ["x: name"]
    assert refused("[]", spec("Model")) == ["x: a mapping"]
    assert refused("[{name: 1}]", spec("list[Model]")) == ["x[0].name: a text"]
    assert refused("[{name: 1}]", spec("list[Model|str]")) == ["x[0]: a mapping with other keys or values"]
