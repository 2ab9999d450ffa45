"""What pydantic's lax mode accepts for a declared field, for the trainers that validate their YAML with it.

Source: pydantic 2.11 and 2.13, tried on each pair of a type and a value. A union accepts what one of its parts accepts;
a boolean is a number, a number is never a text; texts are converted to numbers and booleans.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from trainlint.findings import Fix, some_of
from trainlint.lazy import regex
from trainlint.reading import mending
from trainlint.reading.document import Scalar, target_of
from trainlint.reading.scalars import value_of
from trainlint.reading.values import is_template
from trainlint.records import NamedTuple, dataclass

if TYPE_CHECKING:
    from trainlint.reading.document import Node
    from trainlint.reading.scalars import Plain
    from trainlint.reading.values import Field
    from trainlint.training.declarations import Json, Spec

_TRUE = frozenset("1 on t true y yes".split())
_FALSE = frozenset("0 off f false n no".split())
_INT = regex(r"\s*[-+]?[0-9]+(_[0-9]+)*(\.0+)?\s*")
_LARGEST = 2.0**63
"""From here on a float is no integer, with whatever fraction; an integer may be larger."""
_DATE = regex(r"\d{4}-(\d\d-\d\d|\d\d?-\d\d?([Tt]|[ \t]+)\d\d?:\d\d:\d\d.*)")
_WORDS = {
    "bool": "a boolean",
    "int": "an integer",
    "PositiveInt": "a positive integer",
    "float": "a number",
    "str": "a text",
    "Path": "a path",
}
_BOUNDS = (
    ("ge", operator.ge, "of at least"),
    ("gt", operator.gt, "above"),
    ("le", operator.le, "of at most"),
    ("lt", operator.lt, "below"),
)


@dataclass(frozen=True)
class Schema:
    """The classes in annotations, by name.

    `model` gives the fields of a model (none for another class), `enum` the values of an enum (None for an unknown one,
    which then accepts anything).
    """

    model: Callable[[str], Mapping[str, Spec]]
    enum: Callable[[str], Collection[Json] | None]


class Refusal(NamedTuple):
    """A place whose value the model refuses, what it accepts there, and in `got` what is there instead."""

    place: Field
    wanted: str
    missing: bool = False
    choices: tuple[str, ...] = ()
    got: str = ""


def refusals(place: Field, spec: Spec, schema: Schema) -> list[Refusal]:
    """What is wrong with the value of one declared field; nothing where it is absent or not known."""
    if place.node is None or place.is_unknown:
        return []
    if place.is_null:
        return [] if {"None", "Any"} & set(spec.types) or not spec.types else [Refusal(place, wanted(spec))]
    tried = [_refused_as(place, kind, spec, schema) for kind in spec.types if kind != "None"]
    if not tried or any(not found for found in tried):
        return _out_of_bounds(place, spec)
    if len(tried) == 1:
        return tried[0]
    words = [choice for choice in spec.choices if isinstance(choice, str)]
    return [Refusal(place, wanted(spec), choices=tuple(words))]


def model_refusals(place: Field, fields: Mapping[str, Spec], schema: Schema) -> Iterator[Refusal]:
    """What is wrong with the fields of a model, under any of their names, and which required fields are missing."""
    for name, spec in fields.items():
        written = [place.get(key) for key in (name, *spec.aliases) if place.get(key).node is not None]
        if spec.required and not written:
            yield Refusal(place, name, missing=True)
        for field in dict.fromkeys(written):
            if not spec.converted:
                yield from refusals(field, spec, schema)


def mended(refusal: Refusal) -> Fix | None:
    """The fix for a refused value, where the value that is meant is as good as written."""
    place, wanted_ = refusal.place, refusal.wanted
    target = place.target
    if not isinstance(target, Scalar):
        alone = place.items()[0] if len(place.items()) == 1 else None
        text = alone.text().known if alone is not None else None
        return mending.as_text(place, text) if text is not None and wanted_ == _WORDS["str"] else None
    if not isinstance(place.plain, str):
        quotes = wanted_ == _WORDS["str"] or target.value in refusal.choices
        return mending.quoted(place) if quotes and not place.is_null else None
    if refusal.choices:
        return mending.respelled(place, (str(choice) for choice in refusal.choices))
    if wanted_ in ("a list of texts", "a list"):
        return mending.listed(place) if wanted_ == "a list of texts" and target.value else None
    if wanted_ in (_WORDS["int"], _WORDS["PositiveInt"]):
        return mending.whole(place)
    return None


def wanted(spec: Spec) -> str:
    """What a field accepts, in words."""
    words = [str(choice) for choice in spec.choices]
    kinds = [kind for kind in spec.types if kind not in ("None", "literal") and not (words and kind in ("str", "int"))]
    parts = [_WORDS.get(kind) or _container(kind) for kind in kinds]
    if words:
        parts = [some_of(words), *(part for part in parts if part != "a mapping")]
    return " or ".join(dict.fromkeys(parts)) or "nothing"


def _container(kind: str) -> str:
    if kind == "list":
        return "a list"
    if kind.startswith(("list[", "tuple[")):
        inner = kind[kind.index("[") + 1 : -1]
        return "a list of texts" if inner == "str" else "a list of integers" if inner == "int" else "a list"
    return "a mapping"


def as_boolean(value: Plain) -> bool | None:
    """A scalar as a boolean field converts it, None where it refuses it."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return bool(value) if value in (0, 1) else None
    if isinstance(value, str):
        word = value.lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def as_number(value: Plain) -> float | None:
    """A scalar as a number field converts it, None where it refuses it."""
    if isinstance(value, (bool, int, float)):
        return float(value) if not isinstance(value, int) or abs(value) < 10**300 else math.inf
    if isinstance(value, str) and not re.search(r"__|^_|_$|_\.|\._|0[xX]", value.strip()):
        try:
            return float(value)
        except ValueError:
            return None
    return None


def _is_integer(value: Plain) -> bool:
    if isinstance(value, (bool, int)):
        return True
    if isinstance(value, float):
        return value.is_integer() and -_LARGEST < value < _LARGEST
    return isinstance(value, str) and _INT.fullmatch(value) is not None


def _takes(kind: str, value: Plain, choices: Collection[Json]) -> bool:
    if kind == "bool":
        return as_boolean(value) is not None
    if kind == "int":
        return _is_integer(value)
    if kind == "PositiveInt":
        return _is_integer(value) and (as_number(value) or 0) > 0
    if kind == "float":
        return as_number(value) is not None
    if kind in ("str", "Path"):
        return isinstance(value, str)
    # A literal is compared as in Python: 1 equals True.
    return any(value == choice and isinstance(value, str) == isinstance(choice, str) for choice in choices)


def _refused_as(place: Field, kind: str, spec: Spec, schema: Schema) -> list[Refusal]:
    """What is wrong with a value, read as one part of a union."""
    if kind == "Any" or place.is_null:
        return []
    if kind == "list":
        return [] if place.is_sequence else [Refusal(place, "a list")]
    if kind.startswith(("list[", "tuple[")):
        return _refused_items(place, kind, spec, schema)
    if kind == "dict" or kind.startswith("dict["):
        return _refused_mapping(place, kind, spec, schema)
    model = schema.model(kind)
    if model:
        if not place.is_mapping:
            return [Refusal(place, "a mapping")]
        return list(model_refusals(place, model, schema))
    choices = spec.choices if kind == "literal" else () if kind in _WORDS else schema.enum(kind)
    if choices is None:
        return []
    target = place.target
    pattern = spec.bounds.get("pattern") if kind == "str" else None
    if isinstance(target, Scalar) and _takes(kind, place.plain, choices) and not _is_date(target):
        if not isinstance(pattern, str) or re.search(pattern, target.value):
            return []
        return [Refusal(place, "another text")]
    words = tuple(choice for choice in choices if isinstance(choice, str))
    return [Refusal(place, f"one of {some_of(choices)}" if choices else _WORDS[kind], choices=words)]


def _is_date(scalar: Scalar) -> bool:
    """PyYAML reads it as a date, which a text field refuses."""
    return not scalar.style and scalar.tag is None and _DATE.fullmatch(scalar.value) is not None


def _refused_items(place: Field, kind: str, spec: Spec, schema: Schema) -> list[Refusal]:
    if not place.is_sequence:
        return [Refusal(place, _container(kind))]
    inner = kind[kind.index("[") + 1 : -1]
    if kind.startswith("tuple["):
        parts = inner.split(",")
        if len(place.items()) != len(parts):
            return [Refusal(place, f"a list of {len(parts)}", got=f"of {len(place.items())}")]
        inner = parts[0]
    found: list[Refusal] = []
    for item in place.items():
        if not item.is_unknown:
            if item.is_null and "None" not in inner and inner != "Any":
                found.append(Refusal(item, _WORDS.get(inner, "a value")))
            else:
                found += _refused_as_each(item, _parts(inner), spec, schema)
    return found


def _refused_as_each(place: Field, kinds: Collection[str], spec: Spec, schema: Schema) -> list[Refusal]:
    """What is wrong with an item or entry that no part of a union accepts."""
    tried = [_refused_as(place, kind, spec, schema) for kind in kinds]
    if not tried or not all(tried):
        return []
    if len(tried) == 1:
        return tried[0]
    if place.is_mapping:
        return [Refusal(place, "a mapping with other keys or values", got="this one")]
    return [Refusal(place, " or ".join(dict.fromkeys(_WORDS.get(kind) or _container(kind) for kind in kinds)))]


def _refused_mapping(place: Field, kind: str, spec: Spec, schema: Schema) -> list[Refusal]:
    if not place.is_mapping:
        return [Refusal(place, "a mapping")]
    key, _, value = kind.removeprefix("dict[").partition(",")
    inner = value.rstrip()[:-1] if value else "Any"
    found: list[Refusal] = []
    for entry in place.entries():
        if value and entry.entry is not None and not _takes_key(key, entry.entry.key, place, spec):
            keys = " or ".join(some_of(spec.choices) if part == "literal" else _WORDS[part] for part in _parts(key))
            found.append(Refusal(place, f"a mapping with {keys} as key", got=f'"{entry.name}"'))
        elif not entry.is_unknown:
            found += _refused_as_each(entry, _parts(inner), spec, schema)
    return found


def _takes_key(annotation: str, key: Node, place: Field, spec: Spec) -> bool:
    """A key has one of the kinds of the annotation; what is no scalar, or of another kind, is not judged."""
    target, kinds = target_of(key), _parts(annotation)
    if (
        not isinstance(target, Scalar)
        or is_template(target.value)
        or not all(kind == "literal" or kind in _WORDS for kind in kinds)
    ):
        return True
    plain = value_of(target, place.dialect)
    return any(_takes(kind, plain, spec.choices if kind == "literal" else ()) for kind in kinds)


def _parts(annotation: str) -> list[str]:
    return [part for part in re.split(r"\|(?![^\[]{0,200}\])", annotation) if part != "None"]


def _out_of_bounds(place: Field, spec: Spec) -> list[Refusal]:
    least = spec.bounds.get("min_length")
    if place.is_sequence and isinstance(least, int) and len(place.items()) < least:
        return [Refusal(place, f"a list of at least {least}", got=f"of {len(place.items())}")]
    number = as_number(place.plain) if not place.is_sequence and not place.is_mapping else None
    if number is None:
        return []
    for name, holds, words in _BOUNDS:
        bound = spec.bounds.get(name)
        if isinstance(bound, (int, float)) and not holds(number, bound):
            return [Refusal(place, f"a number {words} {bound:g}")]
    return []
