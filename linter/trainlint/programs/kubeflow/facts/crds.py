"""The structure of each Kubeflow Trainer release's CRDs, and the runtimes that it ships.

Source: manifests/base/crds and manifests/overlays/{runtimes,data-cache} of the module github.com/kubeflow/trainer/v2;
the data files beside this one are written by tools/kubeflow_facts.py. A release (`2.3`) is read when first asked for.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias, TypedDict

    Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
    Kind: TypeAlias = Literal["TrainJob", "TrainingRuntime"]
    NodeType: TypeAlias = Literal["object", "array", "string", "integer", "number", "boolean", "int-or-string", "any"]

    class Row(TypedDict, total=False):
        type: NodeType
        format: str
        properties: dict[str, int]
        items: int
        values: int
        required: list[str]
        default: Json
        enum: list[Json]
        pattern: str
        minimum: int | float
        maximum: int | float
        minLength: int
        maxLength: int
        minItems: int
        maxItems: int
        minProperties: int
        listType: Literal["atomic", "set", "map"]
        listKeys: list[str]
        cel: list[str]

    class _Structure(TypedDict):
        version: str
        modules: dict[str, str]
        roots: dict[Kind, int]
        nodes: list[Row]

    class _Runtimes(TypedDict):
        version: str
        runtimes: dict[str, dict[str, Json]]


class SchemaNode:
    """One place of a CRD's structure; equal places of a release share one node.

    `values` is what additionalProperties allows, `list_keys` are the keys of a list of type `map`, `default` is None
    where there is none (no release defaults to null), and `cel` names the rules for this place by digests of their
    text. No release uses nullable, preserve-unknown-fields, embedded resources, maxProperties, multipleOf or exclusive
    bounds; the generator stops at a keyword which is not read here. The type `any` is of no CRD but of metadata, which
    no CRD states.
    """

    __slots__ = (
        "cel",
        "default",
        "enum",
        "format",
        "items",
        "list_keys",
        "list_type",
        "max_items",
        "max_length",
        "maximum",
        "min_items",
        "min_length",
        "min_properties",
        "minimum",
        "pattern",
        "properties",
        "required",
        "type",
        "values",
    )

    def __init__(self, row: Row, done: list[SchemaNode]) -> None:
        items, values = row.get("items"), row.get("values")
        self.type: NodeType = row["type"]
        self.format: str | None = row.get("format")
        self.properties: Mapping[str, SchemaNode] = {name: done[i] for name, i in row.get("properties", {}).items()}
        self.items: SchemaNode | None = None if items is None else done[items]
        self.values: SchemaNode | None = None if values is None else done[values]
        self.required: tuple[str, ...] = tuple(row.get("required", ()))
        self.default: Json = row.get("default")
        self.enum: tuple[Json, ...] = tuple(row.get("enum", ()))
        self.pattern: str | None = row.get("pattern")
        self.minimum: int | float | None = row.get("minimum")
        self.maximum: int | float | None = row.get("maximum")
        self.min_length: int | None = row.get("minLength")
        self.max_length: int | None = row.get("maxLength")
        self.min_items: int | None = row.get("minItems")
        self.max_items: int | None = row.get("maxItems")
        self.min_properties: int | None = row.get("minProperties")
        self.list_type: Literal["atomic", "set", "map"] | None = row.get("listType")
        self.list_keys: tuple[str, ...] = tuple(row.get("listKeys", ()))
        self.cel: tuple[str, ...] = tuple(row.get("cel", ()))


def schema(release: str, kind: Kind) -> SchemaNode:
    """The root of a kind's structure in a release; ClusterTrainingRuntime has that of TrainingRuntime."""
    return _roots(release)[kind]


@functools.cache
def shipped_runtimes(release: str) -> Mapping[str, Mapping[str, Json]]:
    """The ClusterTrainingRuntimes that a release ships, by name, as its overlays install them."""
    import json

    data: _Runtimes = json.loads(_file(release, "-runtimes").read_bytes())
    return data["runtimes"]


def pinned_modules(release: str) -> Mapping[str, str]:
    """Versions of the Go modules whose code the release's admission runs, by module path."""
    return _structure(release)["modules"]


@functools.cache
def _roots(release: str) -> dict[Kind, SchemaNode]:
    structure = _structure(release)
    done: list[SchemaNode] = []
    for row in structure["nodes"]:
        done.append(SchemaNode(row, done))
    return {kind: done[index] for kind, index in structure["roots"].items()}


def _structure(release: str) -> _Structure:
    import json

    structure: _Structure = json.loads(_file(release).read_bytes())
    return structure


def _file(release: str, suffix: str = "") -> Path:
    return Path(__file__).with_name(f"kubeflow-{release}{suffix}.json")


_OBJECT_META: list[Row] = [
    {"type": "string"},
    {"type": "string", "format": "date-time"},
    {"type": "integer", "format": "int64"},
    {"type": "boolean"},
    {"type": "object", "values": 0},
    {"type": "array", "items": 0},
    {
        "type": "object",
        "properties": {
            **dict.fromkeys(("apiVersion", "kind", "name", "uid"), 0),
            **dict.fromkeys(("controller", "blockOwnerDeletion"), 3),
        },
    },
    {"type": "array", "items": 6},
    {"type": "any"},
    {
        "type": "object",
        "properties": {
            **dict.fromkeys(("manager", "operation", "apiVersion", "fieldsType", "subresource"), 0),
            "time": 1,
            "fieldsV1": 8,
        },
    },
    {"type": "array", "items": 9},
    {
        "type": "object",
        "properties": {
            **dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), 0),
            **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), 1),
            **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), 2),
            **dict.fromkeys(("labels", "annotations"), 4),
            "finalizers": 5,
            "ownerReferences": 7,
            "managedFields": 10,
        },
    },
]


@functools.cache
def object_meta() -> SchemaNode:
    """The structure of `metadata`, which no CRD states.

    Source: ObjectMeta of k8s.io/apimachinery v0.32 to v0.36. The content of managedFields' fieldsV1 is free.
    """
    done: list[SchemaNode] = []
    for row in _OBJECT_META:
        done.append(SchemaNode(row, done))
    return done[-1]
