"""Names, and what the rules on a job's start leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_jobs import cluster_runtime, train_job
from trainlint.engine import lint
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.facts import pods as facts
from trainlint.settings import Overrides

JOB = train_job("team", "command: [torchrun, train.py]")


def _runtime(restart: str) -> str:
    return cluster_runtime("team", "torch: {}", f"restartPolicy: {restart}")


def found(folder: Path) -> list[tuple[str, str, int]]:
    """Rule, file and line of each finding."""
    report = lint([folder], Overrides(isolated=True))
    return [(f.rule, Path(f.path).name, f.span.line) for f in report.findings]


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (names.label, ["a", "a-b", "1a"], ["", "A", "a.b", "-a", "a" * 64]),
        (names.letter_first, ["a", "a1"], ["1a", "a.b", ""]),
        (names.subdomain, ["a", "a.b-c", "1.2"], ["a..b", "A", "a_b", "a" * 254]),
        (names.search, ["a_b.c", ".", "a."], ["A", "a..b"]),
        (names.key, ["a", "A_b.c", "a.b/C"], ["", "a b", "A/b", "/a", "a/", "a/b/c", "a" * 64]),
        (names.label_value, ["", "a", "A.b"], ["a b", "-a", "a" * 64]),
        (names.annotation_key, ["A.b/C"], ["a b"]),
        (names.port, ["http", "a-1"], ["HTTP", "80", "a--b", "a-", "a" * 16, ""]),
        (names.env, ["A", "1A", "A B", "a/b"], ["", "A=B", "A\tB", "é"]),
        (names.strict_env, ["A", "a.b-c"], ["1A", "A B", ".", "..a"]),
        (names.config_key, ["a.b", ".a"], ["a/b", ".", "..a", ""]),
        (names.domain_path, ["a.b/c", "a/b/c"], ["a", "/a", "a/", "A/b", "a/b c"]),
        (names.sysctl, ["net.core.somaxconn", "net/ipv4/tcp_syncookies"], ["a b", ""]),
        (names.ip, ["1.2.3.4", "01.2.3.4", "::1"], ["1.2.3", "a"]),
        (names.canonical_ip, ["1.2.3.4", "10.0.0.1", "::1"], ["01.2.3.4", "::ffff:1.2.3.4"]),
        (names.inner_path, ["a/b"], ["/a", "a/../b"]),
        (names.file_path, ["a"], ["..a", "../a", "/a"]),
        (names.driver, ["csi.example.com", "CSI.example.com"], ["a_b", "a" * 64]),
    ],
)
def test_names(check: names.Check, good: list[str], bad: list[str]) -> None:
    """Each syntax says nothing of good names and something of bad ones."""
    assert [text for text in good if check(text)] == []
    assert [text for text in bad if not check(text)] == []


def test_tables_name_checks_that_exist() -> None:
    """Every syntax in the tables is a function of names.py."""
    assert {*facts.POD_NAMES.values(), *facts.CONTAINER_NAMES.values()} <= set(names.SYNTAX)


def test_a_runtime_in_another_file(tmp_path: Path) -> None:
    """The job is told at the name of its runtime, the runtime at its own line."""
    (tmp_path / "runtime.yaml").write_text(_runtime("Always"), encoding="utf-8")
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    assert found(tmp_path) == [("TJ514", "job.yaml", 7), ("TJ590", "runtime.yaml", 19)]
    report = lint([tmp_path / "job.yaml"], Overrides(isolated=True))
    (finding,) = report.findings
    assert [Path(related.span.path).name for related in finding.related] == ["runtime.yaml"]


def test_overlays_must_agree(tmp_path: Path) -> None:
    """A runtime that is defined twice: only what holds for both is said of the job."""
    for name, restart in (("a", "Always"), ("b", "Never")):
        (tmp_path / f"{name}.yaml").write_text(_runtime(restart), encoding="utf-8")
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    assert found(tmp_path) == [("TJ590", "a.yaml", 19)]


@pytest.mark.parametrize(
    "trainer",
    [
        "numNodes: {{ .Values.nodes }}",
        "numNodes: ${NODES}",
        "env: {{ .Values.env }}",
        "env: [{name: '${NAME}', value: a}]",
        "resourcesPerNode: {requests: {nvidia.com/gpu: '${GPUS}'}, limits: {nvidia.com/gpu: 1}}",
        "resourcesPerNode: {limits: '${LIMITS}', requests: {nvidia.com/gpu: 1}}",
        "image: '{{ .Values.image }}'",
    ],
)
def test_templates_are_left_alone(trainer: str, tmp_path: Path) -> None:
    """What something fills in later is not judged."""
    (tmp_path / "runtime.yaml").write_text(_runtime("Never"), encoding="utf-8")
    (tmp_path / "job.yaml").write_text(f"{JOB}    {trainer}\n", encoding="utf-8")
    assert [finding for finding in found(tmp_path) if finding[0].startswith(("TJ5", "TJ6"))] == []


def test_an_unknown_runtime(tmp_path: Path) -> None:
    """Without the runtime only what the job says by itself is judged."""
    own = """\
    numNodes: -1
    env: [{name: A=B}]
    resourcesPerNode:
      requests: {cpu: 2, nvidia.com/gpu: 1, hugepages-2Mi: 2Mi}
      limits: {cpu: 1, memory: -1}
  runtimePatches:
    - manager: team.example.com/patch
      trainingRuntimeSpec:
        template:
          spec:
            replicatedJobs:
              - name: node
                template:
                  spec:
                    template:
                      spec:
                        tolerations: [{value: a}]
                        containers:
                          - name: other
                            volumeMounts: [{name: data, mountPath: /data}]
"""
    (tmp_path / "job.yaml").write_text(JOB + own, encoding="utf-8")
    assert sorted(found(tmp_path)) == [
        ("TJ101", "job.yaml", 7),
        ("TJ501", "job.yaml", 10),
        ("TJ522", "job.yaml", 11),
        ("TJ526", "job.yaml", 13),
        ("TJ527", "job.yaml", 14),
        ("TJ534", "job.yaml", 26),
    ]
