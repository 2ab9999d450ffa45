"""Which release of Kubeflow Trainer a repository installs, by the CRDs that it holds.

A CRD names no release; its properties do: a release fits if its structure has all of them, and best if they have all
of its. A CRD with fields of neighbouring releases that no one release has together is of the time between these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from trainlint.programs.kubeflow.facts.crds import schema
from trainlint.programs.kubeflow.facts.release import RELEASES
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field
from trainlint.records import NamedTuple

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.facts.crds import Kind, SchemaNode
    from trainlint.repository.files import Repository

Names = tuple[str, ...]
"""The way to a property; the items of a list are the empty name."""

MAX_DEPTH = 60
_KINDS: dict[str, Kind] = {
    "TrainJob": "TrainJob",
    "TrainingRuntime": "TrainingRuntime",
    "ClusterTrainingRuntime": "TrainingRuntime",
}


class Installed(NamedTuple):
    """What the CRDs in a repository tell.

    `releases` are those that they are of: of a state of development, those between which it lies. `fields` are the
    fields that they have and that not all of these releases have.
    """

    releases: tuple[str, ...] = ()
    place: str = ""
    fields: frozenset[tuple[Kind, Names]] = frozenset()

    @property
    def is_between(self) -> bool:
        """They are of the time between two releases, neither of which has all their fields."""
        return len(self.releases) == 2 and bool(self.fields)

    def declares(self, kind: Kind, field: Field) -> bool:
        """A field of such an object is one of these fields, or lies below one."""
        path = tuple("" if isinstance(step, int) else step for step in field.path[field.origin :])
        return any((kind, path[:length]) in self.fields for length in range(1, len(path) + 1))


def installed(repository: Repository) -> Installed:
    """The releases whose CRDs the repository holds; none where it holds none."""
    return repository.once("CRDs of Kubeflow Trainer", lambda: _installed(repository))


def _installed(repository: Repository) -> Installed:
    foreign: dict[str, set[tuple[Kind, Names]]] = {release: set() for release in RELEASES}
    whole: set[str] = set()
    place = ""
    for field, kind in _definitions(repository):
        structure = field.get("openAPIV3Schema")
        if not structure.get("properties").is_mapping:
            continue
        place = place or f"{field.document.path}:{field.span.line}"
        for release, found in foreign.items():
            unknown, missing = _differing(structure, schema(release, kind))
            found.update((kind, path) for path in unknown)
            if not unknown and not missing:
                whole.add(release)
    if not place:
        return Installed()
    releases = _shortest_span({release: frozenset(found) for release, found in foreign.items()})
    if len(releases) == 1:
        fitting = tuple(release for release in RELEASES if foreign[release] == foreign[releases[0]])
        best = tuple(release for release in fitting if release in whole) or fitting
        return Installed(best, place, frozenset(foreign[best[0]]))
    return Installed(releases, place, frozenset().union(*(foreign[release] for release in releases)))


def _shortest_span(foreign: Mapping[str, frozenset[tuple[Kind, Names]]]) -> tuple[str, ...]:
    """The fewest neighbouring releases that together have all fields which any release has."""
    names = tuple(foreign)
    nowhere = frozenset.intersection(*foreign.values())
    for length in range(1, len(names)):
        for first in range(len(names) - length + 1):
            span = names[first : first + length]
            if frozenset.intersection(*(foreign[name] for name in span)) == nowhere:
                return span
    return names


def _definitions(repository: Repository) -> Iterator[tuple[Field, Kind]]:
    for source in repository.marked("kubeflow-trainer", ("CustomResourceDefinition",)):
        for document in source.documents:
            root = Field.root(document, Dialect.KUBERNETES)
            kind = root.at("spec", "names", "kind").text().known or ""
            if root.get("kind").text().is_("CustomResourceDefinition") and kind in _KINDS:
                for version in root.at("spec", "versions").items():
                    if version.get("name").text().is_("v1alpha1"):
                        yield version.get("schema"), _KINDS[kind]


def _differing(structure: Field, node: SchemaNode) -> tuple[set[Names], int]:
    """The properties that the CRD has and the release lacks, and how many it lacks that the release has."""
    unknown: set[Names] = set()
    missing = 0
    waiting: list[tuple[Field, SchemaNode, Names]] = [(structure, node, ())]
    while waiting:
        field, known, path = waiting.pop()
        written = {entry.name: entry for entry in field.get("properties").entries()}
        if known.type == "object" and known.values is None:
            unknown.update((*path, name) for name in written.keys() - known.properties.keys())
        missing += len(known.properties.keys() - written.keys() - {"apiVersion", "kind", "metadata"})
        for name, entry in written.items():
            if name in known.properties and len(path) < MAX_DEPTH:
                waiting.append((entry, known.properties[name], (*path, name)))
        items = field.get("items")
        if items.is_mapping and known.items is not None and len(path) < MAX_DEPTH:
            waiting.append((items, known.items, (*path, "")))
    return unknown, missing
