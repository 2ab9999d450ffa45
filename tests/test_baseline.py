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
  trainer: {command: [tune, run], numNodes: 2}
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
    assert (written.exit_code, written.stderr) == (0, "trainlint: known.json holds 1 finding\n")
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


@pytest.mark.parametrize("content", ["", "[]", '{"version": 9, "findings": []}', '{"version": 1, "findings": [1]}'])
def test_what_is_no_baseline(content: str) -> None:
    Path("known.json").write_text(content, encoding="utf-8")
    result = run("--baseline", "known.json")
    assert result.exit_code == 2
    assert "known.json: no baseline" in result.stderr


def test_wrong_use() -> None:
    assert run("--write-baseline").exit_code == 2
    assert run("--baseline", "nowhere.json").exit_code == 2
    assert run("--baseline", "no/where.json", "--write-baseline").exit_code == 2
