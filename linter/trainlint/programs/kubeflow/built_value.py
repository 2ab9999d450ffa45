"""BuiltValue: a value that the controller put together, with the place in a manifest that gave it.

The Trainer decodes a runtime, patches it, and writes a TrainJob's values over it; a `BuiltValue` is a value of the
result. It remembers the field that it was read from, so that a finding on the result points into the manifest.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from trainlint.programs.kubeflow.quantities import Amount, parse_quantity
from trainlint.reading.scalars import Plain
from trainlint.reading.values import UNKNOWN as UNKNOWN
from trainlint.reading.values import Field, UnknownContent
from trainlint.records import NamedTuple

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.facts.crds import SchemaNode
    from trainlint.programs.kubeflow.facts.paths import Paths

T = TypeVar("T")


class Owner(enum.Enum):
    """Whose manifest a value is from."""

    JOB = "job"
    RUNTIME = "runtime"


Content: TypeAlias = "dict[str, BuiltValue] | list[BuiltValue] | str | int | float | bool | UnknownContent | None"

MERGE_KEYS: Mapping[str, str] = {
    "replicatedJobs": "name",
    "dependsOn": "name",
    "volumes": "name",
    "initContainers": "name",
    "containers": "name",
    "ephemeralContainers": "name",
    "imagePullSecrets": "name",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "env": "name",
    "ports": "containerPort",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
}
"""Lists that a strategic merge patch merges item by item, and by which key; it replaces all others.

Source: the patchStrategy and patchMergeKey tags of k8s.io/api core/v1 and sigs.k8s.io/jobset v1alpha2.
"""

POINTERS = frozenset(
    {
        "serviceAccountName",
        "runtimeClassName",
        "storageClassName",
        "volumeAttributesClassName",
        "hostnameOverride",
        "localhostProfile",
        "runAsUserName",
        "gmsaCredentialSpecName",
        "mountPropagation",
        "recursiveReadOnly",
        "procMount",
        "fsGroupChangePolicy",
        "supplementalGroupsPolicy",
        "seLinuxChangePolicy",
        "managedBy",
        "completionMode",
        "podReplacementPolicy",
    }
)
"""Optional texts that Go keeps when they are empty; it drops every other empty text, list and map."""


class BuiltValue:
    """One value of what is built: its content, the field that gave it, and whether the controller made it up.

    `made` values are in no manifest; their place is the field that they follow from. A missing value knows the one that
    lacks it, and its key, and looks for its place when it is asked for it. As with a `Value`, a test on
    anything that is not known is false.
    """

    __slots__ = ("_key", "_place", "content", "made", "owner")

    def __init__(
        self, content: Content, place: Field | BuiltValue, owner: Owner, made: bool = False, key: str = ""
    ) -> None:
        self.content = content
        self.owner = owner
        self.made = made
        self._place = place
        self._key = key

    @property
    def place(self) -> Field:
        """The field that gave this value, or in which one is missing."""
        place = self._place
        if isinstance(place, BuiltValue):
            place = self._place = place.place.get(self._key) if self._key else place.place
        return place

    @property
    def given(self) -> bool:
        """Something is here, known or not."""
        return self.content is not None

    @property
    def absent(self) -> bool:
        """Nothing is here."""
        return self.content is None

    @property
    def unknown(self) -> bool:
        """What is here is not known from the manifests."""
        return self.content is UNKNOWN

    @property
    def empty(self) -> bool:
        """Nothing is here, or an empty text or list."""
        return self.content is None or self.content in ("", [])

    @property
    def known(self) -> str | int | float | None:
        """The scalar here; None where there is none, or it is not known."""
        return self.content if isinstance(self.content, (str, int, float)) else None

    @property
    def text(self) -> str | None:
        """The text here."""
        return self.content if isinstance(self.content, str) else None

    @property
    def number(self) -> int | None:
        """The whole number here."""
        return self.content if isinstance(self.content, int) and not isinstance(self.content, bool) else None

    @property
    def flag(self) -> bool | None:
        """The boolean here."""
        return self.content if isinstance(self.content, bool) else None

    @property
    def amount(self) -> Amount | None:
        """The quantity here, `500m` or `2`."""
        if isinstance(self.content, bool) or not isinstance(self.content, (str, int, float)):
            return None
        return parse_quantity(str(self.content))

    def __str__(self) -> str:
        """The scalar here for a message, empty where there is none."""
        return "" if self.known is None else str(self.known)

    def is_(self, *wanted: str | int) -> bool:
        """Known and one of these; a boolean is no number."""
        return any(type(self.content) is type(value) and self.content == value for value in wanted)

    def known_and_not_in(self, allowed: Collection[str | int]) -> bool:
        """Known and none of these."""
        return self.known is not None and self.known not in allowed

    @property
    def name(self) -> str:
        """The text under `name`, empty where there is none."""
        return self.get("name").text or ""

    def get(self, key: str) -> BuiltValue:
        """The value under a key; an absent one, placed as near as can be, where there is none."""
        content = self.content
        if isinstance(content, dict):
            value = content.get(key)
            if value is not None:
                return value
        elif content is UNKNOWN:
            return BuiltValue(UNKNOWN, self, self.owner, self.made, "" if self.made else key)
        return BuiltValue(None, self, self.owner, self.made, "" if self.made else key)

    def at(self, *keys: str) -> BuiltValue:
        """The value several keys down."""
        value = self
        for key in keys:
            value = value.get(key)
        return value

    def entries(self) -> Iterator[tuple[str, BuiltValue]]:
        """The keys and values of a mapping."""
        if isinstance(self.content, dict):
            yield from self.content.items()

    def find(self, path: str) -> Iterator[BuiltValue]:
        """The values at a path such as `ports[].name`, where `[]` means every item; absent ones are left out."""
        step, _, rest = path.partition(".")
        found = self.content.get(step.removesuffix("[]")) if isinstance(self.content, dict) else None
        if found is None:
            return
        for value in found.items() if step.endswith("[]") else [found]:
            if rest:
                yield from value.find(rest)
            elif value.given:
                yield value

    def rows(self, table: Paths[T]) -> Iterator[tuple[str, T, BuiltValue]]:
        """The rows of a table whose paths lead to a value here: path, row and value."""
        for step in self.content if isinstance(self.content, dict) else ():
            for path, row in table.by_step.get(step, ()):
                for value in self.find(path):
                    yield path, row, value

    def items(self) -> list[BuiltValue]:
        """The items of a list; empty where there is none."""
        return self.content if isinstance(self.content, list) else []

    def texts(self) -> list[str] | None:
        """A list of texts, None where there is none or something in it is not known."""
        if not isinstance(self.content, list):
            return None
        texts = [item.text for item in self.content]
        return None if None in texts else [text for text in texts if text is not None]

    # building

    def copy(self, within: Collection[str]) -> BuiltValue:
        """The same value; it, and what is under some keys, can be changed without this one. They share the rest."""
        content = self.content
        if isinstance(content, dict):
            content = {key: value.copy(within) if key in within else value for key, value in content.items()}
        elif isinstance(content, list):
            content = [value.copy(within) for value in content]
        else:
            return self
        return self._holding(content)

    def _holding(self, content: Content) -> BuiltValue:
        return BuiltValue(content, self._place, self.owner, self.made, self._key)

    def with_content(self, content: Content) -> BuiltValue:
        """Another content at the same place."""
        return BuiltValue(content, self.place, self.owner)

    def derive(self, content: Content) -> BuiltValue:
        """A content that the controller makes of this value."""
        return BuiltValue(content, self.place, self.owner, made=True)

    def set(self, key: str, value: BuiltValue) -> None:
        """Put a value under a key of a mapping."""
        if isinstance(self.content, dict):
            self.content[key] = value

    def child(self, key: str, default: Content) -> BuiltValue:
        """The value under a key, put there with this content first where it is absent."""
        value = self.get(key)
        if value.absent:
            value = BuiltValue(default, value.place, value.owner, made=self.made)
            self.set(key, value)
        return value

    def own_list(self, key: str) -> list[BuiltValue] | None:
        """The list under a key, as one that no other value has and that can be changed; None where none is there."""
        value = self.child(key, [])
        if not isinstance(value.content, list):
            return None
        content = [*value.content]
        self.set(key, value._holding(content))
        return content


def repeated(values: Iterable[BuiltValue]) -> Iterator[BuiltValue]:
    """The values whose text an earlier one has already."""
    seen: set[str] = set()
    for value in values:
        if value.text is not None:
            if value.text in seen:
                yield value
            seen.add(value.text)


class Decoding(NamedTuple):
    """How Go reads an object.

    A `rewritten` one was turned into JSON and back, which drops its empty optional values. One with `empty_texts` was
    written anew before its structure was checked, so that required texts which are missing are there, and empty.
    """

    rewritten: bool = True
    empty_texts: bool = False


def read(field: Field, schema: SchemaNode, owner: Owner, how: Decoding) -> BuiltValue:
    """What Go decodes from a field: defaults of the schema filled in, nulls dropped."""
    return BuiltValue(_read(field, schema, owner, how), field, owner)


def _read(field: Field, schema: SchemaNode, owner: Owner, how: Decoding) -> Content:
    if field.is_absent:
        return None
    if field.is_unknown:
        return UNKNOWN
    if field.is_mapping:
        return _mapping(field, schema, owner, how)
    if field.is_sequence:
        if schema.items is None:
            return UNKNOWN
        inner = schema.items
        return [read(item, inner, owner, how) for item in field.items()]
    return _scalar(field.plain, schema)


def _mapping(field: Field, schema: SchemaNode, owner: Owner, how: Decoding) -> Content:
    content: dict[str, BuiltValue] = {}
    if schema.values is not None:
        for entry in field.entries():
            value = read(entry, schema.values, owner, how)
            if value.given:
                content[entry.name] = value
        return content
    for entry in field.entries():
        inner = schema.properties.get(entry.name)
        if inner is None:
            continue
        value = read(entry, inner, owner, how)
        optional = entry.name not in schema.required and entry.name not in POINTERS
        if value.given and not (how.rewritten and optional and _is_empty(value, inner)):
            content[entry.name] = value
    for key, filled in _filled_in(schema, how.empty_texts):
        if field.get(key).is_absent:
            content[key] = BuiltValue(filled, field.get(key), owner)
    return content


@functools.cache
def _filled_in(schema: SchemaNode, empty_texts: bool) -> tuple[tuple[str, str | int | bool], ...]:
    """What Go finds under keys that are not there."""
    defaults = {
        key: inner.default for key, inner in schema.properties.items() if isinstance(inner.default, (str, int, bool))
    }
    texts = [key for key in schema.required if schema.properties[key].type == "string" and key not in defaults]
    return (*defaults.items(), *((key, "") for key in texts if empty_texts))


def _is_empty(value: BuiltValue, schema: SchemaNode) -> bool:
    """Go drops it when it writes the object: an empty text or list, or a map (not a struct) without keys."""
    return value.content in ("", []) or (value.content == {} and schema.values is not None)


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "int-or-string": (int, float, str),
}


def _scalar(plain: Plain, schema: SchemaNode) -> Content:
    if isinstance(plain, float) and plain.is_integer() and schema.type == "integer":
        plain = int(plain)
    wanted = _TYPES.get(schema.type)
    if wanted is None or not isinstance(plain, wanted) or (isinstance(plain, bool) and bool not in wanted):
        return UNKNOWN
    return plain


def merge(base: BuiltValue, patch: BuiltValue, key: str = "") -> BuiltValue:
    """A patch laid over a value as a strategic merge patch does; the patch's place stays where it says anything.

    Source: StrategicMergePatch of k8s.io/apimachinery, also for the order of merged lists.
    """
    if base.absent or base.unknown or patch.unknown:
        content = patch.content if base.absent or patch.unknown else base.content
        return BuiltValue(content, patch.place, patch.owner, made=patch.made)
    if isinstance(base.content, dict) and isinstance(patch.content, dict):
        merged = dict(base.content)
        for name, value in patch.content.items():
            merged[name] = merge(merged[name], value, name) if name in merged else value
        return patch.with_content(merged)
    if isinstance(base.content, list) and isinstance(patch.content, list):
        if key in MERGE_KEYS:
            return patch.with_content(_merge_items(base.content, patch.content, MERGE_KEYS[key]))
        if key == "finalizers":
            texts = {item.text for item in base.content}
            added = [item for item in patch.content if item.text not in texts]
            return patch.with_content([*base.content, *added])
    return patch


def is_no_key(value: BuiltValue) -> bool:
    """The value cannot identify an item of a list: it is not known, a mapping or a list."""
    return value.unknown or isinstance(value.content, (dict, list))


def _merge_items(base: Sequence[BuiltValue], patch: Sequence[BuiltValue], key: str) -> Content:
    if any(item.unknown or is_no_key(item.get(key)) for item in (*base, *patch)):
        return UNKNOWN
    order = {item.get(key).content: index for index, item in enumerate(base)}
    merged = {item.get(key).content: item for item in base}
    patched: list[Content] = []
    for item in patch:
        name = item.get(key).content
        merged[name] = merge(merged[name], item) if name in merged else item
        if name not in patched:
            patched.append(name)
    kept = [name for name in merged if name not in patched]
    result: list[BuiltValue] = []
    while kept and patched:
        first = kept[0] in order and patched[0] in order and order[kept[0]] < order[patched[0]]
        result.append(merged[(kept if first else patched).pop(0)])
    result.extend(merged[name] for name in (*kept, *patched))
    return result
