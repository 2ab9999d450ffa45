"""Part: a value that a controller put together, with the place in a manifest that gave it.

The Trainer decodes a runtime, patches it, and writes a TrainJob's values over it; a `Part` is a value of the result. It
remembers the field that it was read from, so that what Kubernetes says of the result can be said of the manifest.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from trainlint.programs.kubeflow.quantities import parse_quantity
from trainlint.reading.scalars import Plain
from trainlint.reading.values import Field

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.facts.crds import SchemaNode


class Source(enum.Enum):
    """Whose manifest a value stands in."""

    JOB = "job"
    RUNTIME = "runtime"


class Unclear(enum.Enum):
    """A value that the manifests do not tell: a template fills it in, or the program's own answer is random."""

    VALUE = "unclear"


UNCLEAR = Unclear.VALUE

Content: TypeAlias = "dict[str, Part] | list[Part] | str | int | float | bool | Unclear | None"

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


class Part:
    """One value of what is built: its content, the field that gave it, and whether the controller made it up.

    `made` values stand in no manifest; their place is the field that they follow from.
    """

    __slots__ = ("_key", "_place", "content", "made", "source")

    def __init__(self, content: Content, place: Field, source: Source, *, made: bool = False, key: str = "") -> None:
        self.content = content
        self.source = source
        self.made = made
        self._place = place
        self._key = key

    @property
    def place(self) -> Field:
        """The field that gave this value, or in which one is missing."""
        if self._key:
            self._place, self._key = self._place.get(self._key), ""
        return self._place

    @property
    def exists(self) -> bool:
        """Something is here, clear or not."""
        return self.content is not None

    @property
    def is_unclear(self) -> bool:
        """What is here is not in the manifests."""
        return self.content is UNCLEAR

    @property
    def text(self) -> str | None:
        """The text here; None also where it is unclear."""
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
    def amount(self) -> Fraction | None:
        """The quantity here, `500m` or `2`."""
        if isinstance(self.content, bool) or not isinstance(self.content, (str, int, float)):
            return None
        return parse_quantity(str(self.content))

    @property
    def written(self) -> str:
        """The scalar here as a text, for a message."""
        return str(self.content) if isinstance(self.content, (str, int, float)) else ""

    @property
    def name(self) -> str:
        """The text under `name`, empty where there is none."""
        return self.get("name").text or ""

    def get(self, key: str) -> Part:
        """The value under a key; an absent one, placed as near as can be, where there is none."""
        if isinstance(self.content, dict) and key in self.content:
            return self.content[key]
        content = UNCLEAR if self.is_unclear else None
        return Part(content, self.place, self.source, made=self.made, key="" if self.made else key)

    def at(self, *keys: str) -> Part:
        """The value several keys down."""
        part = self
        for key in keys:
            part = part.get(key)
        return part

    def entries(self) -> Iterator[tuple[str, Part]]:
        """The keys and values of a mapping."""
        if isinstance(self.content, dict):
            yield from self.content.items()

    def find(self, path: str) -> Iterator[Part]:
        """The values at a path such as `ports[].name`, where `[]` stands for every item; absent ones are left out."""
        step, _, rest = path.partition(".")
        found = self.content.get(step.removesuffix("[]")) if isinstance(self.content, dict) else None
        if found is None:
            return
        for part in found.items() if step.endswith("[]") else [found]:
            if rest:
                yield from part.find(rest)
            elif part.exists:
                yield part

    def items(self) -> list[Part]:
        """The items of a list; empty where there is none."""
        return self.content if isinstance(self.content, list) else []

    def texts(self) -> list[str] | None:
        """A list of texts, None where there is none or something in it is unclear."""
        if not isinstance(self.content, list):
            return None
        texts = [item.text for item in self.content]
        return None if None in texts else [text for text in texts if text is not None]

    def set(self, key: str, value: Part) -> None:
        """Put a value under a key of a mapping."""
        if isinstance(self.content, dict):
            self.content[key] = value

    def child(self, key: str, default: Content) -> Part:
        """The value under a key, put there with this content first where it is absent."""
        part = self.get(key)
        if not part.exists:
            part = Part(default, part.place, part.source, made=self.made)
            self.set(key, part)
        return part


@dataclass(frozen=True)
class Decoding:
    """How Go reads an object.

    A `rewritten` one was turned into JSON and back, which drops its empty optional values. One with `empty_texts` was
    written anew before its structure was checked, so that required texts which are missing are there, and empty.
    """

    rewritten: bool = True
    empty_texts: bool = False


def read(field: Field, schema: SchemaNode, source: Source, how: Decoding) -> Part:
    """What Go decodes from a field: defaults of the schema filled in, nulls dropped."""
    return Part(_read(field, schema, source, how), field, source)


def _read(field: Field, schema: SchemaNode, source: Source, how: Decoding) -> Content:
    if field.is_absent:
        return None
    if field.is_unknown:
        return UNCLEAR
    if field.is_mapping:
        return _mapping(field, schema, source, how)
    if field.is_sequence:
        if schema.items is None:
            return UNCLEAR
        inner = schema.items
        return [read(item, inner, source, how) for item in field.items()]
    return _scalar(field.plain, schema)


def _mapping(field: Field, schema: SchemaNode, source: Source, how: Decoding) -> Content:
    content: dict[str, Part] = {}
    if schema.values is not None:
        for entry in field.entries():
            value = read(entry, schema.values, source, how)
            if value.exists:
                content[entry.name] = value
        return content
    for entry in field.entries():
        inner = schema.properties.get(entry.name)
        if inner is None:
            continue
        value = read(entry, inner, source, how)
        optional = entry.name not in schema.required and entry.name not in POINTERS
        if value.exists and not (how.rewritten and optional and _is_empty(value, inner)):
            content[entry.name] = value
    for key, filled in _filled_in(schema, how.empty_texts):
        if field.get(key).is_absent:
            content[key] = Part(filled, field.get(key), source)
    return content


@functools.cache
def _filled_in(schema: SchemaNode, empty_texts: bool) -> tuple[tuple[str, str | int | bool], ...]:
    """What Go finds under keys that are not there."""
    defaults = {
        key: inner.default for key, inner in schema.properties.items() if isinstance(inner.default, (str, int, bool))
    }
    texts = [key for key in schema.required if schema.properties[key].type == "string" and key not in defaults]
    return (*defaults.items(), *((key, "") for key in texts if empty_texts))


def _is_empty(value: Part, schema: SchemaNode) -> bool:
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
        return UNCLEAR
    return plain


def merge(base: Part, patch: Part, key: str = "") -> Part:
    """A patch laid over a value as a strategic merge patch does; the patch's place stays where it says anything.

    Source: StrategicMergePatch of k8s.io/apimachinery, also for the order of merged lists.
    """
    if not base.exists or base.is_unclear or patch.is_unclear:
        content = patch.content if not base.exists or patch.is_unclear else base.content
        return Part(content, patch.place, patch.source, made=patch.made)
    if isinstance(base.content, dict) and isinstance(patch.content, dict):
        merged = dict(base.content)
        for name, value in patch.content.items():
            merged[name] = merge(merged[name], value, name) if name in merged else value
        return Part(merged, patch.place, patch.source)
    if isinstance(base.content, list) and isinstance(patch.content, list):
        if key in MERGE_KEYS:
            return Part(_merge_items(base.content, patch.content, MERGE_KEYS[key]), patch.place, patch.source)
        if key == "finalizers":
            texts = {item.text for item in base.content}
            added = [item for item in patch.content if item.text not in texts]
            return Part([*base.content, *added], patch.place, patch.source)
    return patch


def is_no_key(part: Part) -> bool:
    """Items cannot be told apart by a value that is not known, a mapping or a list."""
    return part.is_unclear or isinstance(part.content, (dict, list))


def _merge_items(base: Sequence[Part], patch: Sequence[Part], key: str) -> Content:
    if any(item.is_unclear or is_no_key(item.get(key)) for item in (*base, *patch)):
        return UNCLEAR
    order = {item.get(key).content: index for index, item in enumerate(base)}
    merged = {item.get(key).content: item for item in base}
    patched: list[Content] = []
    for item in patch:
        name = item.get(key).content
        merged[name] = merge(merged[name], item) if name in merged else item
        if name not in patched:
            patched.append(name)
    kept = [name for name in merged if name not in patched]
    result: list[Part] = []
    while kept and patched:
        first = kept[0] in order and patched[0] in order and order[kept[0]] < order[patched[0]]
        result.append(merged[(kept if first else patched).pop(0)])
    result.extend(merged[name] for name in (*kept, *patched))
    return result
