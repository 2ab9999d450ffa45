"""Which release of Kubeflow Trainer a repository installs, by the CRDs that it holds.

A CRD names no release; its properties do: a release fits if its structure has all of them, and best if they have all
of its.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.programs.kubeflow.facts.crds import schema
from trainlint.programs.kubeflow.facts.release import RELEASES
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.facts.crds import Kind, SchemaNode
    from trainlint.repository.files import Repository

MAX_DEPTH = 60
_KINDS: dict[str, Kind] = {
    "TrainJob": "TrainJob",
    "TrainingRuntime": "TrainingRuntime",
    "ClusterTrainingRuntime": "TrainingRuntime",
}


def installed(repository: Repository) -> tuple[tuple[str, ...], str]:
    """The releases whose CRDs the repository holds, and where; none where it holds none or CRDs of no known release."""
    return repository.once("CRDs of Kubeflow Trainer", lambda: _installed(repository))


def _installed(repository: Repository) -> tuple[tuple[str, ...], str]:
    fitting = set(RELEASES)
    exact: set[str] = set()
    place = ""
    for field, kind in _definitions(repository):
        structure = field.get("openAPIV3Schema")
        if not structure.get("properties").is_mapping:
            continue
        place = place or f"{field.document.path}:{field.span.line}"
        foreign = {release: _differing(structure, schema(release, kind)) for release in RELEASES}
        least = min(unknown for unknown, _ in foreign.values())
        fitting &= {release for release, (unknown, _) in foreign.items() if unknown == least}
        exact |= {release for release, (unknown, missing) in foreign.items() if not unknown and not missing}
    if not place:
        return (), ""
    best = fitting & exact or fitting
    return tuple(release for release in RELEASES if release in best), place


def _definitions(repository: Repository) -> Iterator[tuple[Field, Kind]]:
    for source in repository.marked("kubeflow-trainer", ("CustomResourceDefinition",)):
        for document in source.documents:
            root = Field.root(document, Dialect.KUBERNETES)
            kind = root.at("spec", "names", "kind").text().known or ""
            if root.get("kind").text().is_("CustomResourceDefinition") and kind in _KINDS:
                for version in root.at("spec", "versions").items():
                    if version.get("name").text().is_("v1alpha1"):
                        yield version.get("schema"), _KINDS[kind]


def _differing(structure: Field, node: SchemaNode) -> tuple[int, int]:
    """How many properties the CRD has that the release lacks, and how many it lacks that the release has."""
    unknown = missing = 0
    waiting = [(structure, node, 0)]
    while waiting:
        field, known, depth = waiting.pop()
        written = {entry.name: entry for entry in field.get("properties").entries()}
        open_ended = known.type != "object" or known.values is not None
        unknown += 0 if open_ended else len(written.keys() - known.properties.keys())
        missing += len(known.properties.keys() - written.keys() - {"apiVersion", "kind", "metadata"})
        for name, entry in written.items():
            if name in known.properties and depth < MAX_DEPTH:
                waiting.append((entry, known.properties[name], depth + 1))
        items = field.get("items")
        if items.is_mapping and known.items is not None and depth < MAX_DEPTH:
            waiting.append((items, known.items, depth + 1))
    return unknown, missing
