"""The Action's step in process: what it writes where, whatever its inputs are."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from external import DEMO
from github_runner import file_command, log_of
from trainlint import action, baseline, engine
from trainlint.engine import lint
from trainlint.settings import Overrides

BAD = str(DEMO / "jobs" / "qwen-two-nodes.yaml")
GOOD = str(DEMO / "jobs" / "llama-1b.yaml")


class Step:
    """The step in a folder of its own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def __call__(self, **inputs: str) -> tuple[int, str, dict[str, str], str]:
        """Exit code, log, outputs and summary."""
        outputs, summary = self.folder / "outputs", self.folder / "summary.md"
        for file in (outputs, summary):
            file.write_text("", encoding="utf-8")
        code = action.main({"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary), **inputs})
        text = outputs.read_text(encoding="utf-8")
        return code, self.capsys.readouterr().out, file_command(text), summary.read_text(encoding="utf-8")


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Step:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.chdir(workspace)
    return Step(tmp_path, capsys)


def test_findings(step: Step) -> None:
    code, log, outputs, summary = step(PATHS=BAD)
    assert code == 1
    assert outputs == {"sarif-file": "trainlint.sarif", "exit-code": "1", "findings": "2"}
    assert len(json.loads(Path("trainlint.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]) == 2
    assert [line[:13] for line in log_of(log).live.splitlines()] == ["::error file="] * 2
    told = log_of(log).inert
    assert told.endswith("Found 2 errors in 1 of 1 file.\n")
    assert summary == "### trainlint\n\n" + "".join(f"    {line}\n" for line in told.splitlines()) + "\n"


def test_the_baseline_of_the_settings(step: Step) -> None:
    """What it holds does not count; without the file the step is wrongly used, as the command is."""
    Path("job.yaml").write_bytes(Path(BAD).read_bytes())
    Path("trainlint.toml").write_text('baseline = "known.json"\n', encoding="utf-8")
    code, log, _, _ = step()
    assert (code, "known.json" in log) == (2, True)
    baseline.write(Path("known.json"), baseline.rows_of(lint(["job.yaml"], Overrides(isolated=True))))
    code, _, outputs, _ = step()
    assert (code, outputs["findings"]) == (0, "0")


@pytest.mark.parametrize("form", ["text", "concise", "json", "sarif", "gitlab", "junit"])
def test_other_formats(step: Step, form: str) -> None:
    code, log, _, _ = step(PATHS=f"{GOOD}\r\n\n{BAD}\n", FORMAT=form)
    assert code == 1
    assert log_of(log).live == ""
    assert "TT102" in log_of(log).inert


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"FORMAT": "htm"}, "format must be one of text, "),
        ({"FAIL_ON": "never"}, "fail-on must be one of note, "),
        ({"PATHS": "none.yaml"}, "none.yaml: no such file"),
        ({"PATHS": "-"}, "-: no such file"),
        ({"CONFIG": "none.toml"}, "none.toml: cannot be read"),
        ({"DIRECTORY": "none"}, "working-directory none: "),
        ({"SARIF_FILE": "none/t.sarif"}, "none/t.sarif: cannot be written"),
        ({"SARIF_FILE": "."}, "sarif-file . is a folder: name a file in it"),
        ({"SARIF_FILE": "../"}, "sarif-file ../ is a folder: name a file in it"),
        ({"ONLY_CHANGED": "yes"}, "only-changed must be true or false"),
    ],
)
def test_wrong_use(step: Step, inputs: dict[str, str], said: str) -> None:
    code, log, outputs, summary = step(**{"PATHS": GOOD, **inputs})
    assert code == 2
    assert outputs == {"sarif-file": "", "exit-code": "2", "findings": ""}
    assert f"trainlint: {said}" in log_of(log).inert, log
    assert log_of(log).live.startswith(f"::error title=trainlint::{said}")
    assert log_of(log).live.count("\n") == 1
    assert said in summary


def test_what_was_found_is_shown_though_the_document_cannot_be_written(
    step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise action._Unusable("t.sarif: cannot be written: No space left on device")

    monkeypatch.setattr(action, "_write", fail)
    code, log, outputs, summary = step(PATHS=BAD)
    assert (code, outputs["sarif-file"]) == (2, "")
    for told in (log_of(log).inert, summary):
        assert "TT102" in told
        assert "t.sarif: cannot be written: No space left on device" in told
    assert "::error title=trainlint::t.sarif: cannot be written" in log_of(log).live


def test_a_fault_of_ours_is_no_finding(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a\n::error::b")

    monkeypatch.setattr(engine.Run, "lint", fail)
    code, log, outputs, _ = step(PATHS=GOOD)
    assert (code, outputs["exit-code"], outputs["findings"]) == (2, "2", "")
    assert ": a ::error::b\n" in log_of(log).inert
    assert log_of(log).live.startswith("::error title=trainlint::internal error")
    assert log_of(log).live.count("\n") == 1


def test_paths_of_the_outputs(step: Step, tmp_path: Path) -> None:
    Path("train").mkdir()
    assert step(PATHS=GOOD, DIRECTORY="./train/", SARIF_FILE="t.sarif")[2]["sarif-file"] == "train/t.sarif"


def test_a_document_outside_by_its_own_name(step: Step, tmp_path: Path) -> None:
    named = str(tmp_path / "t.sarif")
    assert step(PATHS=GOOD, SARIF_FILE=named)[2]["sarif-file"] == named
    assert (tmp_path / "t.sarif").is_file()


def test_a_summary_has_room(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(action, "MAX_SUMMARY", 100)
    assert len(step(PATHS=BAD)[3].encode()) <= 100 + len("### trainlint\n\n\n")


@pytest.mark.skipif(os.name == "nt", reason="pipes")
def test_what_is_no_file_is_not_replaced(step: Step) -> None:
    """A step that runs as root would take a device from the whole machine: `/dev/full`."""
    os.mkfifo("pipe")
    code, log, _, _ = step(PATHS=GOOD, SARIF_FILE="pipe")
    assert (code, "pipe: cannot be written: not a regular file\n" in log_of(log).inert) == (2, True)
    assert Path("pipe").is_fifo()


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no text")
def test_a_folder_whose_name_is_no_text(step: Step) -> None:
    Path("\udcff").mkdir()
    code = action.main({"GITHUB_OUTPUT": str(step.folder / "outputs"), "PATHS": GOOD, "DIRECTORY": "\udcff"})
    assert code == 0
    assert b"\n\xff/trainlint.sarif\n" in (step.folder / "outputs").read_bytes()


EVENTS = {"ONLY_CHANGED": "true", "GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": "event.json"}


@pytest.mark.parametrize("event", ["", "{}", "[]", '{"pull_request": null}', "[" * 100_000], ids=range(5))
def test_an_event_that_cannot_be_read(step: Step, event: str) -> None:
    Path("event.json").write_text(event, encoding="utf-8")
    code, log, _, _ = step(**EVENTS)
    assert (code, "the event of this workflow cannot be read\n" in log_of(log).inert) == (2, True)


@pytest.mark.skipif(os.name == "nt", reason="links")
@pytest.mark.parametrize("exists", [False, True])
def test_a_changed_link_that_leads_out(step: Step, monkeypatch: pytest.MonkeyPatch, *, exists: bool) -> None:
    """It is passed over, as in a folder, so that nothing tells whether it leads to a file."""
    if exists:
        (step.folder / "outside.yaml").write_bytes(Path(BAD).read_bytes())
    Path("link.yaml").symlink_to(step.folder / "outside.yaml")
    Path("event.json").write_text(json.dumps({"pull_request": {"base": {"sha": "0" * 40}}}), encoding="utf-8")
    monkeypatch.setattr(action, "changed", lambda here, base: [here / "link.yaml"])
    code, log, outputs, _ = step(**EVENTS)
    assert (code, outputs["findings"]) == (0, "0"), log
