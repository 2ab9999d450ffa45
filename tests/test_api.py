"""The Python API: its surface, which stays, and the page that describes it."""

from __future__ import annotations

import doctest
import inspect
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import trainlint
from external import ROOT

JOB = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec:
  runtimeRef: {name: torchtune-llama3.2-1b}
  trainer: {command: [tune, run], numNodes: 2}
"""
MEMBERS = {
    "Edit": "start end replacement",
    "FileCounts": "discovered parsed recognised",
    "Finding": "message span document field yaml_path help severity stage program program_versions releases stated"
    " stated_at rule name related fix suppressed baselined fingerprint path level",
    "Fix": "title edits safe",
    "Overrides": "select ignore extend_select per_file_ignores extend_per_file_ignores stages exclude targets runtimes"
    " fail_on format config isolated force_exclude",
    "PathError": "args",
    "Related": "span message",
    "Report": "findings files targets notices crashed active count suppressed baselined fails",
    "SettingsError": "args",
    "Severity": "NOTE WARNING ERROR rank reaches",
    "Span": "path line column end_line end_column",
    "Stage": "ADMISSION CREATE LOAD START PREPARE TRAIN SAVE RUN",
    "Target": "versions origin how",
}
"""What users of each class may rely on; more may come, nothing of it goes."""


def test_the_surface() -> None:
    assert [*MEMBERS, "__version__", "lint"] == trainlint.__all__
    for name, members in MEMBERS.items():
        member = getattr(trainlint, name)
        stated = {one.name for one in (fields(member) if is_dataclass(member) else ())}
        missing = [word for word in members.split() if word not in stated and not hasattr(member, word)]
        assert missing == [], name
        assert member.__doc__, name
    assert set(trainlint.__all__) <= set(dir(trainlint))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = trainlint.nothing


def test_the_signature() -> None:
    assert str(inspect.signature(trainlint.lint)) == (
        "(paths: 'Iterable[str | os.PathLike[str]]', settings: 'Overrides | None' = None, "
        "stdin: 'tuple[str | os.PathLike[str], bytes] | None' = None) -> 'Report'"
    )


def test_paths_of_any_kind(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB, encoding="utf-8")
    settings = trainlint.Overrides(select=("TT102",))
    for paths in ([file], [str(file)], (str(tmp_path),), iter([tmp_path]), str(file)):
        report: trainlint.Report = trainlint.lint(paths, settings)
        assert [(f.rule, f.span.line) for f in report.findings] == [("TT102", 6)]
    content = (str(tmp_path / "new.yaml"), JOB.encode())
    assert [f.rule for f in trainlint.lint([], settings, stdin=content).findings] == ["TT102"]


def test_what_is_raised(tmp_path: Path) -> None:
    """ValueErrors of one line."""
    with pytest.raises(trainlint.PathError, match="no such file or folder"):
        trainlint.lint([tmp_path / "nowhere"])
    (tmp_path / "trainlint.toml").write_text("zzz = 1", encoding="utf-8")
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    with pytest.raises(trainlint.SettingsError, match=r"trainlint\.toml:1: unknown setting 'zzz'$"):
        trainlint.lint([tmp_path])
    assert issubclass(trainlint.PathError, ValueError)
    assert issubclass(trainlint.SettingsError, ValueError)


def test_nothing_is_printed_or_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    assert trainlint.lint([tmp_path]).findings
    assert capfd.readouterr() == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == ["job.yaml"]


def test_the_page_shows_what_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    tried = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False)
    assert (tried.failed, tried.attempted) == (0, 13)
