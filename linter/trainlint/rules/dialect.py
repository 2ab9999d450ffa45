"""What YAML itself makes of a manifest, before anyone looks at its fields."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity
from trainlint.programs.kubeflow import TrainerObject
from trainlint.rules import rule
from trainlint.values import Field


@rule("YD001", "duplicate-key", severity=Severity.WARNING, program="trainlint")
def duplicate_key(document: TrainerObject) -> Iterator[Finding]:
    """A key stands twice in one mapping, and the earlier value is lost.

    `kubectl` reads the last one without a word, where other readers refuse the file. A key that replaces one of a merge
    (`<<`) is meant and not reported.

    Source: sigs.k8s.io/yaml as kubectl uses it; YAML 1.2.2, section 3.2.1.3.
    """
    seen: set[int] = set()
    waiting = [document.field]
    while waiting:
        field = waiting.pop()
        if id(field.target) in seen:
            continue
        seen.add(id(field.target))
        for child in (*field.entries(), *field.items()):
            if child.earlier_keys:
                yield _finding(child)
            if child.is_mapping or child.is_sequence:
                waiting.append(child)


def _finding(field: Field) -> Finding:
    return field.finding(
        f"{field.name} stands twice in this mapping: the earlier value is lost",
        help="remove one of them",
        related=field.earlier_keys,
        at_key=True,
    )
