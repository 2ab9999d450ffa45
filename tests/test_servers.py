"""Findings that hold for some API servers only: chosen, stated, in a range, or not known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from trainlint.engine import Run
from trainlint.findings import Finding, Severity
from trainlint.programs.kubeflow.facts.servers import used_within
from trainlint.settings import Overrides
from trainlint.targets import How, Target
from trainlint.weighing import within

FIXTURES = Path(__file__).parent.parent / "fixtures"
RESTART = (FIXTURES / "TJ550" / "bad.yaml").read_text(encoding="utf-8").partition("\n")[2]
"""A runtime whose container has a restartPolicy: servers up to 1.33 refuse it, 1.34 drops it."""


def found(tmp_path: Path, servers: str = "", **files: str) -> list[tuple[str, Severity]]:
    (tmp_path / ".git").mkdir(exist_ok=True)
    (tmp_path / "job.yaml").write_text(RESTART, encoding="utf-8")
    for name, text in files.items():
        (tmp_path / name.replace("__", ".")).write_text(text, encoding="utf-8")
    targets = {"kubernetes": Target(tuple(servers.split(",")), "option")} if servers else {}
    targets["kubeflow-trainer"] = Target(("2.3",), "option")
    report = Run(Overrides(targets=targets, isolated=True)).lint([tmp_path])
    return [(finding.rule, finding.level) for finding in report.findings]


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("1.32", [("TJ550", Severity.ERROR)]),
        ("1.33.5", [("TJ550", Severity.ERROR)]),
        ("1.34", [("TJ615", Severity.WARNING)]),
        ("1.36", []),
        ("1.33,1.36", [("TJ550", Severity.ERROR)]),
        ("", [("TJ550", Severity.WARNING)]),
    ],
)
def test_chosen_and_not_stated(tmp_path: Path, servers: str, expected: list[tuple[str, Severity]]) -> None:
    assert found(tmp_path, servers) == expected


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("kindest/node:v1.33.1", [("TJ550", Severity.ERROR)]),
        ("kindest/node:v1.35.0", []),
        ("kindest/node:latest", [("TJ550", Severity.WARNING)]),
    ],
)
def test_stated(tmp_path: Path, image: str, expected: list[tuple[str, Severity]]) -> None:
    assert found(tmp_path, kind__yaml=f"nodes:\n  - image: {image}\n") == expected


def test_a_range(tmp_path: Path) -> None:
    assert found(tmp_path, Chart__yaml='kubeVersion: ">=1.31 <1.34"\n') == [("TJ550", Severity.ERROR)]
    assert found(tmp_path, Chart__yaml='kubeVersion: ">=1.35"\n') == []


def test_older_than_all_known_and_newer(tmp_path: Path) -> None:
    assert found(tmp_path, "1.20") == []
    assert found(tmp_path, "1.99") == []


def test_a_warning_needs_every_release_where_none_is_known(make: Finding) -> None:
    dropped = replace(make, severity=Severity.WARNING, within="..1.32")
    assert within(dropped, ["1.32", "1.33"], How.NOT_STATED) is None
    assert within(dropped, ["1.32", "1.33"], How.STATED) == dropped
    assert within(dropped, ["1.31", "1.32"], How.NOT_STATED) == dropped
    assert within(dropped, ["1.33"], How.CHOSEN) is None


@pytest.fixture
def make(tmp_path: Path) -> Finding:
    (tmp_path / ".git").mkdir()
    (tmp_path / "job.yaml").write_text(RESTART, encoding="utf-8")
    targets = {"kubernetes": Target(("1.33",)), "kubeflow-trainer": Target(("2.3",))}
    (finding,) = Run(Overrides(targets=targets, isolated=True)).lint([tmp_path]).findings
    return replace(finding, within="")


@pytest.mark.parametrize(
    ("field", "releases"),
    [
        ("spec.template.spec.replicatedJobs[0].template.spec.template.spec.hostUsers", "1.33.."),
        ("spec.template.spec.replicatedJobs[0].template.spec.template.spec.resources.limits.cpu", "1.34.."),
        ("spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0].resources.limits.cpu", ""),
        ("spec.template.spec.replicatedJobs[0].template.spec.successPolicy.rules[0]", "1.31.."),
        ("spec.template.spec.successPolicy.targetReplicatedJobs", ""),
        ("spec.podSpecOverrides[0].initContainers[0].resizePolicy[1].resourceName", "1.33.."),
        ("spec.podTemplateOverrides[0].spec.volumes[2].image.reference", "1.35.."),
        ("spec.trainer.image", ""),
    ],
)
def test_the_first_server_that_reads_a_field(field: str, releases: str) -> None:
    assert used_within(field) == releases
