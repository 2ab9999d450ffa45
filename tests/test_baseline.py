"""Known findings that do not count."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainlint.cli import main

JOB = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec:
  runtimeRef: {name: torchtune-llama3.2-1b}
  trainer: {command: [tune, run], numNodes: 2, numProcPerNode: 1}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(JOB, encoding="utf-8")
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(main, args)


def test_only_new_findings_count() -> None:
    written = run("--baseline", "known.json", "--write-baseline")
    assert written.exit_code == 0
    assert written.stderr.endswith("trainlint: known.json holds 1 finding\n")
    assert run("--baseline", "known.json").exit_code == 0
    Path("job.yaml").write_text(f"# moved\n\n{JOB}---\n{JOB}", encoding="utf-8")
    result = run("--baseline", "known.json", "--format", "json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [f["line"] for f in document["findings"]] == [15]
    assert document["summary"]["baselined"] == 1


def test_a_baseline_holds_a_finding_as_often_as_it_was_found() -> None:
    Path("job.yaml").write_text(f"{JOB}---\n{JOB}", encoding="utf-8")
    run("--baseline", "known.json", "--write-baseline")
    assert run("--baseline", "known.json").exit_code == 0


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"version": 9, "findings": []}',
        '{"version": 2, "findings": [1]}',
        '{"version": 2, "findings": [{"path": "a"}]}',
    ],
)
def test_what_is_no_baseline(content: str) -> None:
    Path("known.json").write_text(content, encoding="utf-8")
    result = run("--baseline", "known.json")
    assert result.exit_code == 2
    assert "known.json: no baseline" in result.stderr


def test_a_moved_file_keeps_its_rows() -> None:
    run("--baseline", "known.json", "--write-baseline")
    Path("jobs").mkdir()
    Path("job.yaml").rename("jobs/renamed.yaml")
    assert run("--baseline", "known.json").exit_code == 0


def test_a_copy_is_new() -> None:
    run("--baseline", "known.json", "--write-baseline")
    Path("copy.yaml").write_text(JOB, encoding="utf-8")
    assert run("--baseline", "known.json").exit_code == 1


def test_another_value_at_the_same_place_is_new() -> None:
    run("--baseline", "known.json", "--write-baseline")
    Path("job.yaml").write_text(JOB.replace("numNodes: 2", "numNodes: 3"), encoding="utf-8")
    assert run("--baseline", "known.json").exit_code == 1


def test_another_job_of_the_file_is_new() -> None:
    run("--baseline", "known.json", "--write-baseline")
    Path("job.yaml").write_text(JOB.replace("name: tune}", "name: other}"), encoding="utf-8")
    assert run("--baseline", "known.json").exit_code == 1


def test_a_baseline_of_an_older_release() -> None:
    """It is read, holds nothing, and a notice says how to write it anew."""
    Path("known.json").write_text('{"version": 1, "findings": [{"fingerprint": "0"}]}', encoding="utf-8")
    result = run("--baseline", "known.json")
    assert result.exit_code == 1
    assert "write it anew with --baseline known.json --write-baseline" in result.stderr


def test_rows_are_sorted_and_independent_of_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".git").mkdir()
    Path("a.yaml").write_text(JOB, encoding="utf-8")
    run("--baseline", "known.json", "--write-baseline")
    rows = json.loads(Path("known.json").read_text())["findings"]
    assert [row["path"] for row in rows] == ["a.yaml", "job.yaml"]
    inner = folder / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    result = run("--baseline", "../known.json", "..")
    assert result.exit_code == 0


def test_wrong_use() -> None:
    assert run("--write-baseline").exit_code == 2
    assert run("--baseline", "nowhere.json").exit_code == 2
    assert run("--baseline", "no/where.json", "--write-baseline").exit_code == 2
