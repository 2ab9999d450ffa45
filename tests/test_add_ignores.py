"""Comments that --add-ignores writes: where they stand, and that nothing else of a file changes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cases import FIXTURES
from external import DEMO
from trainlint.cli import main
from trainlint.engine import lint
from trainlint.settings import Overrides

HEAD = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec:
  runtimeRef: {name: torchtune-llama3.2-1b}
"""
NODES = "  trainer: {command: [tune, run], numNodes: 2, numProcPerNode: 0}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainlint.toml").write_text('[targets]\nkubeflow-trainer = "2.3"\naccelerate = "1.15.0"\n')
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["check", *args])


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("body", "written"),
    [
        (
            f"{NODES}\n",
            f"{NODES}  # trainlint: ignore[TJ503, TT102] T-1\n",
        ),
        (
            "  trainer:\n    command: [tune, run]\n    numNodes: 2   # two\n    numProcPerNode: 0",
            "  trainer:\n    command: [tune, run]\n    numNodes: 2   # two  # trainlint: ignore[TT102] T-1\n"
            "    numProcPerNode: 0  # trainlint: ignore[TJ503] T-1",
        ),
        (
            "  trainer:\r\n    command: [tune, run]\r\n    numNodes: 2 \r\n",
            "  trainer:\r\n    command: [tune, run]\r\n    numNodes: 2  # trainlint: ignore[TT102] T-1\r\n",
        ),
        (
            f"{NODES} # trainlint: ignore[TJ503] smoke\n",
            f"{NODES} # trainlint: ignore[TJ503, TT102] smoke\n",
        ),
        (
            "  trainer: {command: [tune, run], numNodes: 2, numProcPerNode: 0} # trainlint: ignore[TJ503]\n",
            "  trainer: {command: [tune, run], numNodes: 2, numProcPerNode: 0} # trainlint: ignore[TJ503, TT102] T-1\n",
        ),
        # A flow list of several lines takes a comment on any of them.
        (
            "  trainer: {command: [tune, run],\n    numNodes: 2,\n    numProcPerNode: 1}\n",
            "  trainer: {command: [tune, run],\n    numNodes: 2,  # trainlint: ignore[TT102] T-1\n"
            "    numProcPerNode: 1}\n",
        ),
        # In a value of several lines a comment would be its text: it is put around the value.
        (
            "  trainer:\n    command: [sh, -c]\n    args:\n      - |\n        set -e\n"
            "        tune run lora_finetune_distribute --config a.yaml\n    numNodes: 1\n",
            "  trainer:\n    command: [sh, -c]\n    args:\n      # trainlint: ignore-start[TT401] T-1\n      - |\n"
            "        set -e\n        tune run lora_finetune_distribute --config a.yaml\n      # trainlint: ignore-end\n"
            "    numNodes: 1\n",
        ),
        (
            "  trainer:\n    command: [sh, -c]\n    args:\n      - |\n"
            "        tune run lora_finetune_distribute --config a.yaml\n",
            "  trainer:\n    command: [sh, -c]\n    args:\n      # trainlint: ignore-start[TT401] T-1\n      - |\n"
            "        tune run lora_finetune_distribute --config a.yaml\n      # trainlint: ignore-end\n",
        ),
    ],
)
def test_where_a_comment_stands(body: str, written: str) -> None:
    file = Path("job.yaml")
    file.write_bytes(f"{HEAD}{body}".encode())
    mode = 0o640
    os.chmod(file, mode)
    done = run("--add-ignores", "--reason", "T-1")
    assert done.exit_code == 0
    assert file.read_bytes().decode() == f"{HEAD}{written}"
    assert file.stat().st_mode & 0o777 == mode
    report = lint([file])
    assert list(report.active) == []
    assert report.suppressed
    again = run("--add-ignores", "--reason", "T-1")
    assert again.stderr.endswith("trainlint: added 0 comments in 0 files\n")
    assert file.read_bytes().decode() == f"{HEAD}{written}"


def test_what_is_said() -> None:
    Path("a.yaml").write_text(f"{HEAD}  trainer: {{command: [tune, run], numNodes: 2}}\n")
    Path("b.yaml").write_text(f"{HEAD}  trainer:\n    command: [tune, run]\n    numNodes: 2\n    numProcPerNode: 0\n")
    done = run("--add-ignores")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.endswith("trainlint: added 3 comments in 2 files\n")
    assert "numNodes: 2}  # trainlint: ignore[TT102]\n" in Path("a.yaml").read_text()
    assert run().exit_code == 0


def test_only_what_is_reported_gets_a_comment() -> None:
    """Not what options leave out, a comment or the baseline covers, nor what no comment helps against."""
    content = f"{HEAD}  trainer: {{command: [tune, run], numNodes: 2, numProcPerNode: 0}}\n"
    Path("job.yaml").write_text(content)
    run("--baseline", "known.json", "--write-baseline")
    assert run("--baseline", "known.json", "--add-ignores").stderr.endswith("added 0 comments in 0 files\n")
    assert run("--ignore", "ALL", "--add-ignores").stderr.endswith("added 0 comments in 0 files\n")
    assert Path("job.yaml").read_text() == content
    Path("job.yaml").write_text(f"{HEAD}  trainer: {{command: [tune, run]}}  # trainlint: ignore[TT102]\n")
    Path("broken.yaml").write_text(f"{HEAD}  trainer: [\n")
    assert {f.rule for f in lint([Path()]).active} == {"TL001", "TL002"}
    assert run("--add-ignores").stderr.endswith("added 0 comments in 0 files\n")


def test_a_reason_that_the_settings_require() -> None:
    """Without one nothing is written, and nobody is asked."""
    content = f"{HEAD}  trainer: {{command: [tune, run], numNodes: 2}}\n"
    Path("jobs").mkdir()
    Path("jobs/trainlint.toml").write_text("require-reason = true\n")
    Path("jobs/job.yaml").write_text(content)
    Path("job.yaml").write_text(content)
    done = run("--add-ignores")
    assert done.exit_code == 2
    assert done.stderr.endswith("trainlint: jobs/job.yaml: its settings require a reason: write --reason TEXT\n")
    assert Path("job.yaml").read_text() == content
    assert run("--add-ignores", "--reason", " known,\n see T-1 ").exit_code == 0
    assert Path("jobs/job.yaml").read_text().endswith("  # trainlint: ignore[TT102] known, see T-1\n")


@pytest.mark.parametrize(
    ("fixture", "said"),
    [
        ("FS133/bad-comment", "ds.json: JSON has no comments; use per-file-ignores for FS133"),
        ("FS130/bad", "run.sh: comments are written in YAML only; use per-file-ignores for FS130"),
    ],
)
def test_files_without_such_comments(folder: Path, fixture: str, said: str) -> None:
    shutil.copytree(FIXTURES / fixture, folder / "case")
    before = contents(folder)
    done = run("case", "--add-ignores")
    assert f"trainlint: case/{said}\n" in done.stderr
    assert done.exit_code == 0
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("body", "line"),
    [
        # A comment of another kind is on the line.
        (f"{NODES}  # trainlint: ignore-end\n", 6),
        # A line end that the file does not have would become part of the script.
        ("  trainer:\n    command: [sh, -c]\n    args:\n      - |\n        tune run lora_finetune_distribute", 9),
    ],
)
def test_where_no_comment_can_stand(body: str, line: int) -> None:
    content = f"{HEAD}{body}"
    Path("job.yaml").write_text(content)
    done = run("--add-ignores")
    assert f"trainlint: job.yaml:{line}: no comment can be written here; use per-file-ignores\n" in done.stderr
    assert Path("job.yaml").read_text() == content


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-", "--add-ignores"], "--add-ignores cannot be used with standard input"),
        (["--reason", "x"], "--reason needs --add-ignores."),
        (["--add-ignores", "--fix"], "--add-ignores and --fix exclude each other."),
        (
            ["--add-ignores", "--baseline", "a", "--write-baseline"],
            "--add-ignores and --write-baseline exclude each other.",
        ),
    ],
)
def test_wrong_use(args: list[str], message: str) -> None:
    done = run(*args)
    assert done.exit_code == 2
    assert message in done.stderr


def test_a_file_that_cannot_be_changed(folder: Path) -> None:
    content = f"{HEAD}  trainer: {{command: [tune, run], numNodes: 2}}\n"
    Path("a.yaml").write_text(content)
    os.link("a.yaml", folder / "other")
    done = run("--add-ignores")
    assert done.exit_code == 2
    assert "a.yaml: cannot be changed: it has other hard links" in done.stderr
    assert Path("a.yaml").read_text() == content


def test_nothing_but_comments_is_added_to_the_fixtures(folder: Path) -> None:
    """After it every file of the demo says the same, and nothing is left to be reported of it."""
    shutil.copytree(DEMO, folder / "demo")
    done = run("demo", "--add-ignores", "--reason", "x")
    assert done.exit_code == 0
    report = lint([Path("demo")], Overrides())
    assert {f.rule for f in report.active} <= {"TL001"}
    assert report.suppressed == 11
