"""The structural walker: what it refuses, where, and what it lets pass."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from trainlint.programs.kubeflow.crd_walk import (
    MAX_DEFECTS,
    DefectKind,
    Walk,
    WalkOptions,
    dotted,
    place_of,
    structure_at,
)
from trainlint.programs.kubeflow.facts.admission import CEL_RULES
from trainlint.programs.kubeflow.facts.crds import SchemaNode, object_meta, schema
from trainlint.programs.kubeflow.facts.release import RELEASES
from trainlint.programs.kubeflow.objects import Manifest, TrainerObject
from trainlint.reading.document import documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import Field

FACTS = Path(__file__).resolve().parent.parent / "linter" / "trainlint" / "programs" / "kubeflow" / "facts"


def root_of(text: str) -> Field:
    """The first document of a text, as Kubernetes reads it."""
    return Field.root(next(documents("x.yaml", Text(text))), Dialect.KUBERNETES)


def walked(
    text: str, structure: SchemaNode, options: WalkOptions | None = None
) -> list[tuple[DefectKind, str, int, int]]:
    """Kind, place as the API server spells it, line and column of each defect."""
    walk = Walk(options or WalkOptions())
    walk.check(root_of(text), structure)
    found = []
    for defect in walk.defects:
        at_key = defect.stray or defect.kind is DefectKind.UNKNOWN_FIELD
        span = defect.field.key_span if at_key else defect.field.span
        found.append((defect.kind, defect.dotted, span.line, span.column))
    return found


def spec(release: str = "2.3", kind: str = "TrainJob") -> SchemaNode:
    """The structure of `spec`."""
    return schema(release, "TrainJob" if kind == "TrainJob" else "TrainingRuntime").properties["spec"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("runtimeRef: {name: a}", []),
        ("runtimeRef: {name: a}\nsuspend: yes", []),
        ("runtimeRef: {name: a}\ntrainer: null", []),
        ("runtimeRef: {name: a}\ntrainer: {foo: null}", []),
        ("runtimeRef: {name: a}\nfoo: 1", [(DefectKind.UNKNOWN_FIELD, "foo", 2, 1)]),
        ("runtimeRef: {name: a, foo: {bar: 1}}", [(DefectKind.UNKNOWN_FIELD, "runtimeRef.foo", 1, 23)]),
        ("suspend: true", [(DefectKind.MISSING, "runtimeRef", 1, 1)]),
        ("runtimeref: {name: a}", [(DefectKind.UNKNOWN_FIELD, "runtimeref", 1, 1)]),
        ("runtimeRef: {name: ''}", [(DefectKind.OUT_OF_BOUNDS, "runtimeRef.name", 1, 20)]),
        ("runtimeRef: x", [(DefectKind.WRONG_TYPE, "runtimeRef", 1, 13)]),
        ("runtimeRef: [x]", [(DefectKind.WRONG_TYPE, "runtimeRef", 1, 13)]),
        ("runtimeRef: [{name: x}]", [(DefectKind.WRONG_TYPE, "runtimeRef[0].name", 1, 15)]),
        (
            "runtimeRef: {name: {first: a, second: b}}",
            [
                (DefectKind.WRONG_TYPE, "runtimeRef.name.first", 1, 21),
            ],
        ),
        (
            "runtimeRef: {name: a}\ntrainer: {numNodes: 2147483648}",
            [(DefectKind.OUT_OF_BOUNDS, "trainer.numNodes", 2, 21)],
        ),
        ("runtimeRef: {name: a}\ntrainer: {numNodes: 1.5}", [(DefectKind.WRONG_TYPE, "trainer.numNodes", 2, 21)]),
        ("runtimeRef: {name: a}\ntrainer: {numNodes: 1e3}", []),
        ("runtimeRef: {name: a}\nactiveDeadlineSeconds: 9007199254740993", []),
        (
            "runtimeRef: {name: a}\nactiveDeadlineSeconds: 1e18",
            [(DefectKind.WRONG_TYPE, "activeDeadlineSeconds", 2, 24)],
        ),
        (
            "runtimeRef: {name: a}\nactiveDeadlineSeconds: 18446744073709551615",
            [(DefectKind.WRONG_TYPE, "activeDeadlineSeconds", 2, 24)],
        ),
        ("runtimeRef: {name: a}\ntrainer: {args: [a, null]}", [(DefectKind.WRONG_TYPE, "trainer.args[1]", 2, 21)]),
        (
            "runtimeRef: {name: a}\ntrainer: {env: [{name: A}, {name: B}, {name: A}, {name: A}]}",
            [(DefectKind.DUPLICATE, "trainer.env[2]", 2, 39)],
        ),
        (
            "runtimeRef: {name: a}\ntrainer: {resourcesPerNode: {limits: {nvidia.com/gpu: lots}}}",
            [(DefectKind.MALFORMED, "trainer.resourcesPerNode.limits.nvidia.com/gpu", 2, 55)],
        ),
        (
            "runtimeRef: {name: a}\ntrainer: {resourcesPerNode: {limits: {cpu: 1.5, memory: 500m}}}",
            [(DefectKind.WRONG_TYPE, "trainer.resourcesPerNode.limits.cpu", 2, 44)],
        ),
        ("runtimeRef: {name: a}\ntrainer:\n  command: ${CMD}\n  numNodes: <NODES>\n  ${KEY}: 1", []),
    ],
)
def test_train_job(text: str, expected: list[tuple[DefectKind, str, int, int]]) -> None:
    """Each defect at its place."""
    assert walked(text, spec()) == expected


def test_sets() -> None:
    """The second of equal items is named, once; a number and a text are not equal."""
    words = SchemaNode({"type": "array", "items": 0, "listType": "set"}, [SchemaNode({"type": "int-or-string"}, [])])
    assert walked('[a, b, a, a, 1, "1"]', words) == [(DefectKind.DUPLICATE, "[2]", 1, 8)]


def test_default_of_a_list_key() -> None:
    """A port without a protocol is TCP."""
    ports = structure_at(
        spec(kind="TrainingRuntime"),
        ["template", "spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "containers", 0, "ports"],
    )
    assert ports is not None
    text = "[{containerPort: 80}, {containerPort: 80, protocol: UDP}, {containerPort: 80, protocol: TCP}]"
    assert walked(text, ports) == [(DefectKind.DUPLICATE, "[2]", 1, 59)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{name: a, labels: {a: b}, creationTimestamp: null, managedFields: [{fieldsV1: {'f:a': {'.': {}}}}]}", []),
        ("{name: 7}", [(DefectKind.WRONG_TYPE, "name", 1, 8)]),
        ("{labels: {a: 1}}", [(DefectKind.WRONG_TYPE, "labels.a", 1, 14)]),
        ("{ownerReferences: [{foo: a}]}", [(DefectKind.UNKNOWN_FIELD, "ownerReferences[0].foo", 1, 21)]),
        ("{creationTimestamp: '2026-01-31'}", [(DefectKind.MALFORMED, "creationTimestamp", 1, 21)]),
        ("{Labels: {}}", [(DefectKind.UNKNOWN_FIELD, "Labels", 1, 2)]),
        ("text", [(DefectKind.WRONG_TYPE, "", 1, 1)]),
    ],
)
def test_metadata(text: str, expected: list[tuple[DefectKind, str, int, int]]) -> None:
    """ObjectMeta has a structure that no CRD states."""
    assert walked(text, object_meta(), WalkOptions(types_only=True)) == expected


def test_null_fields_of_a_generated_name() -> None:
    """`kubectl create` sends nulls: an unknown field is refused whatever it holds."""
    assert walked("{runtimeRef: {name: a, foo: null}}", spec(), WalkOptions(keeps_nulls=True)) == [
        (DefectKind.UNKNOWN_FIELD, "runtimeRef.foo", 1, 24)
    ]


def test_rewritten() -> None:
    """What Go writes back has empty texts for missing ones, and quantities as texts."""
    text = (
        "{activeDeadlineSeconds: 0, trainer: {args: [null], env: [{value: a}], resourcesPerNode: {limits: {cpu: 1.5}}}}"
    )
    assert [d[:2] for d in walked(text, spec(), WalkOptions(rewritten=True))] == [
        (DefectKind.OUT_OF_BOUNDS, "activeDeadlineSeconds"),
        (DefectKind.MISSING, "runtimeRef"),
    ]
    assert len(walked(text, spec())) == 5


def test_partial() -> None:
    """A patch is not checked for what it lacks, and may say how it is merged."""
    assert (
        walked(
            "{trainer: {env: [{name: a, $patch: delete}]}, $retainKeys: [trainer]}", spec(), WalkOptions(partial=True)
        )
        == []
    )
    assert walked("{trainer: {env: [{value: a}], numNodes: x}}", spec(), WalkOptions(partial=True)) == [
        (DefectKind.WRONG_TYPE, "trainer.numNodes", 1, 41)
    ]


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("2026-01-31T12:00:00Z", True),
        ("2026-01-31T12:00:00.123+02:00", True),
        ("2024-02-29T00:00:00Z", True),
        ("2026-02-29T00:00:00Z", False),
        ("2026-01-31T24:00:00Z", False),
        ("2026-01-31T12:00:60Z", False),
        ("2026-01-31t12:00:00z", False),
        ("2026-01-31 12:00:00", False),
        ("", False),
    ],
)
def test_date_time(text: str, good: bool) -> None:
    """RFC 3339 as Go's time package parses it."""
    node = SchemaNode({"type": "string", "format": "date-time"}, [])
    assert (walked(json.dumps(text), node) == []) is good


def test_pattern_ends_at_the_end_of_the_text() -> None:
    """Go's `$` does not match before a last line break."""
    node = SchemaNode({"type": "string", "pattern": "^[a-z]+$"}, [])
    assert walked('"abc"', node) == []
    assert walked('"abc\\n"', node) == [(DefectKind.MALFORMED, "", 1, 1)]


def lines_run(action: Callable[[], object]) -> int:
    """How many lines of Python run, whatever the machine is busy with."""
    count = 0

    def counted(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        action()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("leaf", ["[a, b, c]", "[1, 2, 3]"])
def test_aliases_are_walked_once(leaf: str) -> None:
    """Repetitions of what is clean cost nothing, however deep; what is not is named at each use, up to a limit."""

    def work(depth: int) -> int:
        levels = "\n".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]" for n in range(1, depth + 1))
        node = SchemaNode({"type": "array", "items": 0}, [SchemaNode({"type": "string"}, [])])
        for _ in range(depth):
            node = SchemaNode({"type": "array", "items": 0}, [node])
        last = root_of(f"x0: &x0 {leaf}\n{levels}\n").get(f"x{depth}")
        walk = Walk(WalkOptions())
        lines = lines_run(lambda: walk.check(last, node))
        assert len(walk.defects) <= 600
        return lines

    assert work(4) < 3 * work(3)


def test_free_content_of_any_depth() -> None:
    """What fieldsV1 holds is nobody's business, however deep."""
    deep = "{a: " * 90 + "1" + "}" * 90
    assert walked(f"managedFields: [{{fieldsV1: {deep}}}]", object_meta(), WalkOptions(types_only=True)) == []


def test_very_many_defects() -> None:
    """There is an end to what is said of one object."""
    text = "\n".join(f"key{number}: 1" for number in range(5000))
    assert len(walked(text, spec())) <= 2 * MAX_DEFECTS


def test_bounds_of_lists() -> None:
    """Too many items are shown at the first one too many, too few at the list; the list is named."""
    targets = structure_at(spec(kind="TrainingRuntime"), ["mlPolicy", "torch", "envInjection", "targets"])
    assert targets is not None
    walk = Walk(WalkOptions())
    walk.check(
        root_of("[{jobName: a, containerNames: []}, {jobName: b, containerNames: [a, b, c, d, e, f, g, h, i]}]"),
        targets,
    )
    few, many = walk.defects
    assert (few.dotted, few.field.span.column, few.at) == ("[0].containerNames", 31, None)
    assert many.dotted == "[1].containerNames"
    assert many.at is not None
    assert many.at.yaml_path == "[1].containerNames[8]"


def test_large_object() -> None:
    """Many entries with a key take no more than their number."""

    def work(entries: int) -> int:
        env = "".join(f"  - {{name: A{number}, value: x}}\n" for number in range(entries))
        root = root_of(f"runtimeRef: {{name: a}}\ntrainer:\n  env:\n{env}")
        walk = Walk(WalkOptions())
        lines = lines_run(lambda: walk.check(root, spec("2.1")))
        assert walk.defects == []
        return lines

    assert work(2_000) < 4.5 * work(500)


def test_every_cel_rule_is_known() -> None:
    """A rule that a release adds or changes must be looked at before its facts are taken."""
    found: set[str] = set()
    for release in RELEASES:
        data = json.loads((FACTS / f"kubeflow-{release}.json").read_text(encoding="utf-8"))
        found.update(digest for node in data["nodes"] for digest in node.get("cel", []))
    assert found == set(CEL_RULES), "tools/kubeflow_facts.py --show-cel RELEASE prints the rules by digest"


def test_where_a_field_is_known() -> None:
    """Other releases by path, other places of the same object by name."""
    root = root_of("spec: {podTemplateOverrides: [], runtimePatches: [{manager: a/b}]}")
    newest, oldest = (Manifest(TrainerObject(root), "TrainJob", RELEASES[release]) for release in ("2.3", "2.0"))
    assert newest.releases_with(root.at("spec", "podTemplateOverrides")) == ["2.1"]
    assert oldest.releases_with(root.at("spec", "runtimePatches").items()[0].get("manager")) == ["2.2", "2.3"]
    runtime = Manifest(TrainerObject(root), "TrainingRuntime", RELEASES["2.3"])
    assert runtime.releases_with(root.at("spec", "mlPolicy", "torch", "numProcPerNode")) == ["2.0", "2.1"]
    assert place_of(schema("2.3", "TrainJob"), "numNodes") == "spec.trainer.numNodes"
    assert place_of(schema("2.3", "TrainJob"), "nothing") is None
    assert dotted(("spec", "env", 2, "a.b/c")) == "spec.env[2].a.b/c"
