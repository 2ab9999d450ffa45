"""A walk of an object against a CRD's structure: what strict decoding and the structure's own checks refuse.

A small walker of our own: the general JSON Schema engines know neither pruning, list keys nor quantities, work on plain
data without places, and take longer for one manifest than the whole of trainlint does.

Source: k8s.io/apiextensions-apiserver (pruning, defaulting, listtype) and k8s.io/kube-openapi (validation), v0.32 to
v0.36, and encoding/json's decoding into Go types where a webhook does that.
"""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from trainlint.findings import did_you_mean, nearest, one_of, shortened
from trainlint.lazy import regex
from trainlint.programs.kubeflow.quantities import is_quantity
from trainlint.reading.document import Mapping, Sequence
from trainlint.reading.values import Field, is_template
from trainlint.records import NamedTuple

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.facts.crds import SchemaNode
    from trainlint.reading.scalars import Plain
    from trainlint.reading.values import Path

MAX_DEFECTS = 500
MAX_KEY_NODES = 100
LONGEST_QUOTE = 60
_INT32 = (-(2**31), 2**31 - 1)
_INT64 = (-(2**63), 2**63 - 1)
_SUBSTITUTED = regex(r"\$\([\w.-]+\)")
"""What Tekton, Argo and kustomize fill in; in texts Kubernetes itself does so, or leaves it as it is."""
_LARGEST_WHOLE_FLOAT = 2**53 - 1
_RFC3339 = regex(r"(\d{4}-\d\d-\d\d)T(\d\d?:\d\d:[0-5]\d)(?:[.,]\d+)?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


class DefectKind(enum.Enum):
    """What kind of defect a place has."""

    UNKNOWN_FIELD = enum.auto()
    WRONG_TYPE = enum.auto()
    MISSING = enum.auto()
    OUT_OF_BOUNDS = enum.auto()
    MALFORMED = enum.auto()
    NOT_ALLOWED = enum.auto()
    DUPLICATE = enum.auto()


class Defect(NamedTuple):
    """One place that the structure refuses, and why.

    `structure` is what was expected there; for an unknown field, of the mapping that holds it. `stray` is a key inside
    a collection that has no place here: decoding calls it an unknown field. `unplaced`: the API server's message names
    no field, so the object's name is flagged too. `at` is what to point at where that is not the whole field; `earlier`
    is the first entry with the same keys, for a duplicate; `others` are further stray keys.
    """

    kind: DefectKind
    field: Field
    structure: SchemaNode
    message: str
    help: str = ""
    stray: bool = False
    unplaced: bool = False
    at: Field | None = None
    earlier: Field | None = None
    others: tuple[Field, ...] = ()

    @property
    def place(self) -> Field:
        """What to point at."""
        return self.at or self.field

    @property
    def dotted(self) -> str:
        """The place as the API server spells it: keys with dots, whatever they hold."""
        return dotted(self.field.path[self.field.origin :])


class WalkOptions(NamedTuple):
    """What happened to an object before the check, and how much of it is checked.

    `keeps_nulls`: null fields are sent and not dropped by the client, so that an unknown one is refused.
    `decoded`: a webhook has decoded it into Go types before, which refuses wrong ones, but takes a fraction for a
    quantity. `rewritten`: it has sent back what Go writes: fields that Go always writes were added, quantities are
    texts; nothing was taken away. `partial`: a patch, which may lack anything and hold directives (`$patch`).
    `ranges_unplaced`: the check of integers against int32 names no field. `types_only`: it is decoded, and nothing else
    of it is checked.
    """

    keeps_nulls: bool = False
    decoded: bool = False
    rewritten: bool = False
    partial: bool = False
    ranges_unplaced: bool = False
    types_only: bool = False


def dotted(path: Path) -> str:
    """A path as the API server joins it: `spec.trainer.env[2].name`, also for keys that hold dots themselves."""
    spelled = ""
    for step in path:
        spelled += f"[{step}]" if isinstance(step, int) else f".{step}" if spelled else step
    return spelled


class Walked(NamedTuple):
    """What a walk found: defects, and the places that CEL rules look at, as pairs of place and digest."""

    defects: list[Defect]
    cel: list[tuple[Field, str]]


class Walk:
    """A walk over an object, and what it has found so far."""

    def __init__(self, options: WalkOptions) -> None:
        self.options = options
        self.defects: list[Defect] = []
        self.cel: list[tuple[Field, str]] = []
        self._clean: set[tuple[int, int]] = set()

    @property
    def found(self) -> Walked:
        """What was found."""
        return Walked(self.defects, self.cel)

    def check(self, field: Field, structure: SchemaNode) -> None:
        """Check this place and those below; nothing for what is null, absent, or filled in later.

        A collection that was found clean is not walked again where an alias repeats it, so that the work is linear in
        what was written.
        """
        target = field.target
        if field.is_absent or field.is_unknown or structure.type == "any" or len(self.defects) >= MAX_DEFECTS:
            return
        key = (id(target), id(structure))
        if key in self._clean:
            return
        before = len(self.defects), len(self.cel)
        self.cel.extend((field, digest) for digest in structure.cel)
        if isinstance(target, Mapping) and structure.type == "object":
            self._mapping(field, structure)
        elif isinstance(target, Sequence) and structure.type == "array":
            self._sequence(field, structure)
        elif isinstance(target, (Mapping, Sequence)):
            self._misplaced_collection(field, structure)
        else:
            self._scalar(field, structure)
        if before == (len(self.defects), len(self.cel)):
            self._clean.add(key)

    def _add(self, kind: DefectKind, field: Field, structure: SchemaNode, message: str, help: str = "") -> None:
        self.defects.append(Defect(kind, field, structure, message, help))

    def check_root(self, field: Field, structure: SchemaNode, skip: Collection[str]) -> None:
        """Check an object's fields but for some that are read otherwise."""
        self._mapping(field, structure, skip)

    def _mapping(self, field: Field, structure: SchemaNode, skip: Collection[str] = ()) -> None:
        unknown: list[Field] = []
        count = 0
        templated = False
        for child in field.entries():
            if child.name in skip or (self.options.partial and child.name.startswith("$")):
                continue
            below = structure.properties.get(child.name, structure.values)
            if is_template(child.name):
                templated = True
            elif below is not None:
                count += not child.is_null
                self.check(child, below)
            elif (self.options.keeps_nulls or not child.is_null) and len(unknown) < MAX_DEFECTS:
                unknown.append(child)
        for child in unknown:
            owner = dotted(field.path[field.origin :]) or "the object"
            self._add(DefectKind.UNKNOWN_FIELD, child, structure, f"{owner} has no field {child.name}")
        if self.options.partial or self.options.types_only or templated:
            return
        if structure.min_properties is not None and count < structure.min_properties and not unknown:
            self._add(DefectKind.OUT_OF_BOUNDS, field, structure, f"{field.name} must not be empty")
        self._required(field, structure, unknown)

    def _required(self, field: Field, structure: SchemaNode, unknown: Iterable[Field] = ()) -> None:
        """Name the required fields that are missing, but for one that an unknown field was meant to be."""
        missing = [name for name in structure.required if self._lacks(field, structure, name)]
        for child in unknown:
            meant = nearest(child.name, missing)
            if meant is not None:
                missing.remove(meant)
        for name in missing:
            self._add(DefectKind.MISSING, field.get(name), structure.properties[name], f"{name} is missing")

    def _lacks(self, field: Field, structure: SchemaNode, name: str) -> bool:
        child = structure.properties[name]
        if not field.get(name).is_absent or child.default is not None:
            return False
        return not (self.options.rewritten and _go_writes_empty(child))

    def _sequence(self, field: Field, structure: SchemaNode) -> None:
        items = field.items()
        inner = structure.items
        if not self.options.types_only:
            low, high = structure.min_items, structure.max_items
            if high is not None and len(items) > high:
                message = f"{field.name} has {len(items)} items, at most {high} are allowed"
                self.defects.append(Defect(DefectKind.OUT_OF_BOUNDS, field, structure, message, at=items[high]))
            elif low is not None and len(items) < low:
                message = f"{field.name} needs at least {low} item{'s' if low > 1 else ''}"
                self._add(DefectKind.OUT_OF_BOUNDS, field, structure, message)
        for item in items:
            if inner is None:
                continue
            if item.is_null and self.options.rewritten:
                self._required(item, inner)
            elif item.is_null:
                help = "write a value, or remove the item"
                self._add(DefectKind.WRONG_TYPE, item, inner, f"{_called(item)} must be {_kind(inner)}, not null", help)
            self.check(item, inner)
        if not self.options.types_only and inner is not None:
            if structure.list_type == "map":
                self._unique(field, structure, ((item, self._keys(item, structure, inner)) for item in items))
            elif structure.list_type == "set":
                self._unique(field, structure, ((item, _identity(item)) for item in items))

    def _keys(self, item: Field, structure: SchemaNode, inner: SchemaNode) -> tuple[object, ...] | None:
        """What identifies an entry of a list map, None where that is not known."""
        keys: list[object] = []
        for name in structure.list_keys:
            child = item.get(name)
            default = inner.properties[name].default
            if child.is_absent:
                written = "" if self.options.rewritten else None
                keys.append(_typed(default if isinstance(default, (str, int)) else written))
            else:
                identity = _identity(child)
                if identity is None:
                    return None
                keys.append(identity)
        return tuple(keys)

    def _unique(self, field: Field, structure: SchemaNode, keyed: Iterable[tuple[Field, object]]) -> None:
        """Name the second entry of each kind, as the API server does."""
        seen: dict[object, Field] = {}
        reported: set[object] = set()
        for item, key in keyed:
            if key is None or key in reported:
                continue
            if key not in seen:
                seen[key] = item
                continue
            reported.add(key)
            name = structure.list_keys[0] if structure.list_keys else ""
            at = item.get(name) if name else item
            message = f"{field.name} has a second entry {f'with {name} ' if name else ''}{_short(at.written)}"
            defect = Defect(
                DefectKind.DUPLICATE, item, structure, message, "keep one of them", at=at, earlier=seen[key]
            )
            self.defects.append(defect)

    def _misplaced_collection(self, field: Field, structure: SchemaNode) -> None:
        """A mapping or list where something else belongs.

        Decoding names the keys that are found in it, as unknown ones; only without any the type is blamed.
        """
        given = "a mapping" if isinstance(field.target, Mapping) else "a list"
        message = f"{_called(field)} must be {_kind(structure)}, not {given}"
        help = "write a list: `- name: …`" if structure.type == "array" and given == "a mapping" else ""
        if structure.type in ("string", "int-or-string") and given == "a mapping":
            help = "quote it, if the colon is part of the string"
        keys = [
            key
            for key in islice(_first_keys(field), MAX_DEFECTS)
            if not is_template(key.name) and (self.options.keeps_nulls or not key.is_null)
        ]
        unplaced = structure.type == "int-or-string" and not keys and not self.options.decoded
        first, *others = keys or [field]
        stray = first is not field
        self.defects.append(
            Defect(DefectKind.WRONG_TYPE, first, structure, message, help, stray, unplaced, others=tuple(others))
        )

    def _scalar(self, field: Field, structure: SchemaNode) -> None:
        value = _in_json(field.plain)
        quantity = structure.type == "int-or-string" and structure.pattern is not None
        if not self._has_type(value, structure.type, quantity):
            if isinstance(value, str) and _SUBSTITUTED.fullmatch(value):
                return
            message = f"{_called(field)} must be {_kind(structure)}, not {_given(value)}"
            number = isinstance(value, float) and math.isfinite(value)
            unplaced = structure.type == "int-or-string" and ((quantity and number) or not self.options.decoded)
            unplaced |= structure.type == "integer" and number and self.options.ranges_unplaced
            help = _advice(field, value, structure)
            self.defects.append(Defect(DefectKind.WRONG_TYPE, field, structure, message, help, unplaced=unplaced))
            return
        if isinstance(value, float):
            value = int(value) if value.is_integer() else value
        if isinstance(value, int) and not quantity:
            self._integer(field, structure, value)
        elif isinstance(value, str):
            self._text(field, structure, value, quantity)

    def _has_type(self, value: Plain, type: str, quantity: bool) -> bool:
        if isinstance(value, bool):
            return type == "boolean"
        if isinstance(value, int):
            return type in ("integer", "number", "int-or-string")
        if isinstance(value, float):
            if not math.isfinite(value):
                return False
            whole = value.is_integer() and abs(value) <= _LARGEST_WHOLE_FLOAT
            fits_quantity = quantity and self.options.rewritten
            return type == "number" or fits_quantity or (whole and type in ("integer", "int-or-string"))
        return type in ("string", "int-or-string")

    def _integer(self, field: Field, structure: SchemaNode, value: int) -> None:
        ranged = structure.format == "int32" or structure.type == "int-or-string"
        if ranged and not _INT32[0] <= value <= _INT32[1]:
            message = f"{_called(field)} is {value}, which does not fit into 32 bits"
            unplaced = self.options.ranges_unplaced and structure.type == "integer"
            self.defects.append(Defect(DefectKind.OUT_OF_BOUNDS, field, structure, message, unplaced=unplaced))
            return
        if self.options.types_only:
            return
        if structure.minimum is not None and value < structure.minimum:
            message = f"{_called(field)} must be at least {structure.minimum}, not {value}"
            self._add(DefectKind.OUT_OF_BOUNDS, field, structure, message)
        elif structure.maximum is not None and value > structure.maximum:
            message = f"{_called(field)} must be at most {structure.maximum}, not {value}"
            self._add(DefectKind.OUT_OF_BOUNDS, field, structure, message)

    def _text(self, field: Field, structure: SchemaNode, value: str, quantity: bool) -> None:
        if quantity:
            text = value.strip() if self.options.rewritten else value
            if not is_quantity(text):
                self._add(DefectKind.MALFORMED, field, structure, f"{_short(value)} is not a quantity", _QUANTITY_HELP)
            return
        if structure.format == "date-time" and not _is_date_time(value):
            help = "write it like 2026-01-31T12:00:00Z"
            self._add(DefectKind.MALFORMED, field, structure, f"{_short(value)} is not a date and time", help)
            return
        if self.options.types_only:
            return
        low, high = structure.min_length, structure.max_length
        if high is not None and len(value) > high:
            message = f"{_called(field)} has {len(value)} characters, at most {high} are allowed"
            self._add(DefectKind.OUT_OF_BOUNDS, field, structure, message)
        elif low is not None and len(value) < low:
            self._add(DefectKind.OUT_OF_BOUNDS, field, structure, f"{_called(field)} must not be empty")
        elif structure.pattern is not None and not _pattern(structure.pattern).search(value):
            self._add(
                DefectKind.MALFORMED, field, structure, f"{_called(field)} {_short(value)} does not match its format"
            )
        if structure.enum and value not in structure.enum:
            allowed = [word for word in structure.enum if word]
            message = f"{_called(field)} must be {one_of(allowed)}, not {_short(value)}"
            help = did_you_mean(value, [str(word) for word in allowed])
            self._add(DefectKind.NOT_ALLOWED, field, structure, message, help)


def _in_json(value: Plain) -> Plain:
    """A scalar as the API server decodes it: an integer beyond 64 bits becomes a float."""
    if isinstance(value, int) and not _INT64[0] <= value <= _INT64[1]:
        return float(value)
    return value


def _first_keys(field: Field) -> Iterator[Field]:
    """The keys of a mapping, or of the mappings in a list of any depth, but not those below."""
    waiting = [field]
    while waiting:
        at = waiting.pop(0)
        if isinstance(at.target, Mapping):
            yield from at.entries()
        else:
            waiting.extend(item for item in at.items() if isinstance(item.target, (Mapping, Sequence)))


def _go_writes_empty(structure: SchemaNode) -> bool:
    """Go writes this field although it is missing, empty and of the right type.

    The Trainer's own required texts are left out when empty; those of Kubernetes' types, which have no least length,
    are not, and neither are their numbers and structures. A missing list is written as null, which is refused.
    """
    if structure.type == "object":
        return "name" not in structure.required
    return structure.type in ("string", "integer") and structure.min_length is None


def _identity(field: Field) -> object:
    """The content as something to compare, where "1" and 1 differ; None where it is not known."""
    target = field.target
    if field.is_unknown or (isinstance(target, (Mapping, Sequence)) and target.weight > MAX_KEY_NODES):
        return None
    if isinstance(target, Mapping):
        return frozenset((child.name, _identity(child)) for child in field.entries() if not child.is_null)
    if isinstance(target, Sequence):
        return tuple(_identity(item) for item in field.items())
    return _typed(field.plain)


def _typed(value: object) -> object:
    return (type(value).__name__, value)


def _called(field: Field) -> str:
    """A field by its name, an item by its list's name and index."""
    steps: list[str] = []
    for step in reversed(field.path):
        steps.insert(0, f"[{step}]" if isinstance(step, int) else step)
        if isinstance(step, str):
            break
    return "".join(steps)


_QUANTITY_HELP = "write a number, or one with a suffix: 500m, 8, 16Gi"


def _short(text: str) -> str:
    """A text in quotes, cut where it is long."""
    return repr(shortened(text, LONGEST_QUOTE))


_KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "int-or-string": "an integer or a string",
    "any": "anything",
}


def _kind(structure: SchemaNode) -> str:
    quantity = structure.type == "int-or-string" and structure.pattern is not None
    return "a quantity" if quantity else _KINDS[structure.type]


def _given(value: Plain) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int):
        return "an integer"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "a number that JSON cannot hold"
        return "a number beyond 64 bits" if value.is_integer() else "a number with a fraction"
    return "a string" if value else "an empty string"


def _advice(field: Field, value: Plain, structure: SchemaNode) -> str:
    written = field.written
    if structure.type in ("string", "int-or-string") and not isinstance(value, str):
        if structure.pattern is not None and structure.type == "int-or-string":
            return f'quote it: "{written}"' if isinstance(value, float) else _QUANTITY_HELP
        if isinstance(value, bool) and written.lower() not in ("true", "false"):
            return f'YAML reads {written} as {str(value).lower()}: quote it, "{written}"'
        return f'quote it: "{written}"' if structure.type == "string" else ""
    if isinstance(value, str):
        if structure.type == "integer" and re.fullmatch(r"[+-]?[0-9]+", value):
            return "remove the quotes"
        if structure.type == "boolean" and value.lower() in ("true", "false"):
            return "remove the quotes"
        if structure.type == "array":
            return "write a list with one item for each word"
    return ""


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of Go: its `$` is the very end of the text, never before a last line break."""
    return re.compile(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), re.ASCII)


def _is_date_time(text: str) -> bool:
    match = _RFC3339.fullmatch(text)
    if match is None:
        return False
    try:
        datetime.strptime(f"{match[1]} {match[2]}", "%Y-%m-%d %H:%M:%S")
    except ValueError:
        return False
    return True


# where a field is known


def structure_at(root: SchemaNode, path: Iterable[str | int]) -> SchemaNode | None:
    """The structure at a path, None where the path leads out of it."""
    node: SchemaNode | None = root
    for step in path:
        if node is None:
            return None
        node = node.items if isinstance(step, int) else node.properties.get(step, node.values)
    return node


def place_of(root: SchemaNode, name: str, depth: int = 4) -> str | None:
    """The nearest place below the root, not inside of lists, where a field of this name is known."""
    waiting = [("", root)]
    for _ in range(depth):
        deeper: list[tuple[str, SchemaNode]] = []
        for path, node in waiting:
            if name in node.properties:
                return f"{path}{name}"
            deeper.extend((f"{path}{key}.", child) for key, child in node.properties.items())
        waiting = deeper
    return None
