"""The Python API: its surface, which stays, and the page that describes it."""

from __future__ import annotations

import doctest
import inspect
import pydoc
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import trainlint
from external import ROOT
from trainlint.cli import main
from trainlint.reports import RenderOptions, render

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
    " fail_on format config isolated force_exclude extend_ignore baseline no_baseline",
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
        "(paths: 'Iterable[str | os.PathLike[str]] | str | os.PathLike[str]', settings: 'Overrides | None' = None, "
        "stdin: 'tuple[str | os.PathLike[str], bytes] | None' = None) -> 'Report'"
    )


def test_help_shows_the_parameters() -> None:
    """Of the classes that users make themselves, with their defaults."""
    options = inspect.signature(trainlint.Overrides)
    assert list(options.parameters) == [one.name for one in fields(trainlint.Overrides)]
    assert str(options.parameters["extend_ignore"]) == "extend_ignore: 'tuple[str, ...]' = ()"
    assert options.parameters["targets"].default == {}
    assert "fail_on: 'Severity | None' = None" in pydoc.plain(pydoc.render_doc(trainlint.Overrides))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"select": ("TT999",)}, 'select: unknown rule .TT999., did you mean "TT'),
        ({"extend_ignore": ["FSX"]}, "extend_ignore: unknown rule 'FSX'"),
        ({"select": "TT"}, r"select: 'TT' is no tuple of texts: write \('TT',\)$"),
        ({"ignore": (1,)}, "ignore: 1 is no text"),
        ({"per_file_ignores": {"a/": ("NO",)}}, r"per_file_ignores\['a/'\]: unknown rule 'NO'"),
        ({"extend_per_file_ignores": ("a",)}, "extend_per_file_ignores: .* is no mapping such as"),
        ({"exclude": "*.yaml"}, "exclude: .* is no tuple of texts"),
        ({"targets": {"axolotll": trainlint.Target(("1",))}}, 'targets: unknown program .*did you mean "axolotl"'),
        ({"targets": {"axolotl": trainlint.Target(("new",))}}, "targets: 'new' is not a version of axolotl"),
        ({"targets": {"axolotl": "0.12.2"}}, r"targets: 'axolotl' needs a Target: write Target\(\('0.12.2',\)\)$"),
        (
            {"targets": {"axolotl": trainlint.Target("0.12.2")}},  # type: ignore[arg-type]
            "targets: '0.12.2' is no tuple of texts",
        ),
        ({"fail_on": "warning"}, "fail_on: 'warning' is no Severity: write Severity.WARNING"),
        ({"stages": ("load",)}, "stages: 'load' is no Stage: write Stage.LOAD"),
        ({"format": "sarff"}, 'format: .* is none of text, .*, did you mean "sarif"'),
        ({"runtimes": "shut"}, "runtimes: 'shut' is none of open, closed$"),
        ({"config": 1}, "config: 1 is no path"),
    ],
)
def test_what_settings_cannot_say(given: dict[str, Any], problem: str) -> None:
    """A word that the command line would refuse is refused, and not passed over."""
    with pytest.raises(trainlint.SettingsError, match=problem):
        trainlint.lint([], trainlint.Overrides(**given))


def test_other_settings_than_overrides() -> None:
    with pytest.raises(trainlint.SettingsError, match=r"settings: must be trainlint\.Overrides, not dict"):
        trainlint.lint([], {"select": ("TT",)})  # type: ignore[arg-type]


def test_a_baseline_and_settings_by_name(tmp_path: Path) -> None:
    """Paths may be texts; a baseline is marked, unless nothing of one shall count."""
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    known, settings = str(tmp_path / "known.json"), tmp_path / "own.toml"
    settings.write_text('baseline = "known.json"\nselect = ["TT102"]\n', encoding="utf-8")
    CliRunner().invoke(main, ["--select", "TT102", "--baseline", known, "--write-baseline", str(tmp_path)])
    by_settings = trainlint.Overrides(config=str(settings))  # type: ignore[arg-type]
    by_option = trainlint.Overrides(select=("TT102",), baseline=known)  # type: ignore[arg-type]
    for options in (by_settings, by_option):
        assert [finding.baselined for finding in trainlint.lint(tmp_path, options).findings] == [True]
    counted = trainlint.Overrides(config=settings, no_baseline=True)
    assert len(list(trainlint.lint(tmp_path, counted).active)) == 1
    without = trainlint.Overrides(select=("TT102",), extend_ignore=("TT102",))
    assert trainlint.lint([tmp_path], without).findings == ()


def test_an_unknown_format() -> None:
    report = trainlint.Report()
    for name, said in (("xml", "known: text, concise"), ("jsn", 'did you mean "json"')):
        with pytest.raises(ValueError, match=f"unknown format '{name}', {said}"):
            render(name, report)
    with pytest.raises(ValueError, match="unknown format 'sarif', known: text, json"):
        render("sarif", report, RenderOptions(statistics=True))


def test_paths_of_any_kind(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB, encoding="utf-8")
    settings = trainlint.Overrides(select=("TT102",))
    for paths in ([file], [str(file)], (str(tmp_path),), iter([tmp_path]), str(file), file):
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
