"""Paths and line ends of Windows and macOS, simulated: the same reports, settings and baselines as elsewhere.

The tests of the other modules run on these systems in CI; these here say on any system what would go wrong there.
"""

from __future__ import annotations

import ntpath
import os
import posixpath
from pathlib import Path, PureWindowsPath
from types import ModuleType, SimpleNamespace
from unicodedata import normalize

import pytest
from click.testing import CliRunner

from trainlint import reports
from trainlint.catalogue import VOCABULARY
from trainlint.cli import main
from trainlint.engine import lint
from trainlint.reports import RenderOptions
from trainlint.repository import bounds, discover, files
from trainlint.settings import Overrides, SettingsError
from trainlint.settings.reader import read_settings

JOB = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec:
  runtimeRef: {name: torchtune-llama3.2-1b}
  trainer: {command: [tune, run],
    numNodes: 2}
"""


def windows(monkeypatch: pytest.MonkeyPatch, module: ModuleType, folder: str = "C:\\repo") -> None:
    """A module as it is on Windows, in a current folder there; the file system stays that of this machine."""
    path = SimpleNamespace(**{name: getattr(ntpath, name) for name in dir(ntpath) if not name.startswith("__")})
    path.abspath = lambda one: ntpath.normpath(ntpath.join(folder, one))
    path.realpath = path.abspath
    monkeypatch.setattr(module, "os", SimpleNamespace(path=path, sep="\\", altsep="/", getcwd=lambda: folder))
    for name in ("Path", "PurePath"):
        if hasattr(module, name):
            monkeypatch.setattr(module, name, PureWindowsPath)


@pytest.mark.parametrize(
    ("file", "here", "shown"),
    [
        ("C:\\repo\\jobs\\a.yaml", "C:\\repo", "jobs/a.yaml"),
        ("jobs\\a.yaml", "C:\\repo", "jobs/a.yaml"),
        ("jobs/a.yaml", "C:\\repo", "jobs/a.yaml"),
        (".\\jobs\\..\\a.yaml", "C:\\repo", "a.yaml"),
        ("c:\\Repo\\Jobs\\a.yaml", "C:\\repo", "Jobs/a.yaml"),
        ("D:\\repo\\a.yaml", "C:\\repo", "D:/repo/a.yaml"),
        ("C:\\repository\\a.yaml", "C:\\repo", "C:/repository/a.yaml"),
        ("\\\\server\\share\\a.yaml", "C:\\repo", "//server/share/a.yaml"),
        ("C:\\a.yaml", "C:\\", "a.yaml"),
    ],
)
def test_how_a_file_is_named(monkeypatch: pytest.MonkeyPatch, file: str, here: str, shown: str) -> None:
    windows(monkeypatch, files, here)
    assert files.display_path(PureWindowsPath(file)) == shown  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "file", "excluded"),
    [
        ("jobs/old/", "C:\\repo\\jobs\\old\\a.yaml", True),
        ("/jobs/*.yaml", "jobs\\a.yaml", True),
        ("*.yaml", "c:\\REPO\\x\\a.yaml", True),
        ("jobs/", "D:\\repo\\jobs\\a.yaml", False),
        ("old/**", "C:\\repo\\jobs\\a.yaml", False),
    ],
)
def test_patterns_have_forward_slashes(
    monkeypatch: pytest.MonkeyPatch, pattern: str, file: str, excluded: bool
) -> None:
    windows(monkeypatch, discover)
    excluder = discover.Excluder([pattern], PureWindowsPath("C:\\repo"))  # type: ignore[arg-type]
    assert excluder.excludes(PureWindowsPath(file)) is excluded  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "root", "parts"),
    [
        ("C:\\repo\\jobs\\a.yaml", "C:\\repo", ["a.yaml", "jobs"]),
        ("c:\\Repo\\jobs\\a.yaml", "C:\\repo", ["a.yaml", "jobs"]),
        ("C:\\repo", "c:\\REPO", []),
        ("C:\\repository\\a.yaml", "C:\\repo", None),
        ("D:\\repo\\a.yaml", "C:\\repo", None),
        ("C:\\repo\\a.yaml", "C:\\", ["a.yaml", "repo"]),
    ],
)
def test_the_bounds_of_a_folder(monkeypatch: pytest.MonkeyPatch, path: str, root: str, parts: list[str] | None) -> None:
    windows(monkeypatch, bounds)
    found = bounds._below(path, root)
    assert (None if found is None else [part for part in found if part]) == parts


def test_bounds_elsewhere_tell_cases_apart() -> None:
    assert bounds._below("/Repo/a.yaml", "/repo") is None
    assert files.display_path(Path(f"{os.getcwd().upper()}/a.yaml")).startswith("/")


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("C:\\repo\\jobs\\a.yaml", "jobs/a.yaml"),
        ("jobs\\a.yaml", "jobs/a.yaml"),
        ("c:\\REPO\\jobs\\a.yaml", "jobs/a.yaml"),
        ("D:\\other\\a.yaml", "D:/other/a.yaml"),
    ],
)
def test_paths_from_the_root(monkeypatch: pytest.MonkeyPatch, path: str, uri: str) -> None:
    """As SARIF, GitLab and GitHub have them."""
    windows(monkeypatch, reports)
    assert RenderOptions(root=PureWindowsPath("C:\\repo")).from_root(path) == uri  # type: ignore[arg-type]


def test_a_drive_letter_is_no_separator() -> None:
    done = CliRunner().invoke(main, ["check", "--per-file-ignores", "C:/repo/a.yaml:TT9"])
    assert "unknown rule 'TT9', did you mean \"TT\"?" in done.stderr


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def crlf(text: str) -> bytes:
    return text.replace("\n", "\r\n").encode()


def test_a_checkout_with_line_ends_of_windows(here: Path) -> None:
    """The same findings, places, fingerprints, suppressions and settings."""
    settings = '# one\n[severity]\nTT102 = "warning"\n[targets]\nkubeflow-trainer = "2.3"\n'
    job = JOB.replace("    numNodes: 2}", "    # trainlint: ignore[TT101] x\n    numNodes: 2}")
    found = []
    for written in (str.encode, crlf):
        (here / "trainlint.toml").write_bytes(written(settings))
        (here / "job.yaml").write_bytes(written(job))
        report = lint([Path("job.yaml")])
        found.append([(f.rule, f.level, f.span, f.fingerprint, f.content, f.suppressed) for f in report.findings])
    assert found[0] == found[1]
    assert [row[0] for row in found[0]] == ["TL002", "TT102"]
    (here / "trainlint.toml").write_bytes(crlf('# one\n[severity]\nTT1O2 = "warning"\n'))
    with pytest.raises(SettingsError, match=r"trainlint\.toml:3: "):
        read_settings(here / "trainlint.toml", VOCABULARY)


def test_fixes_and_comments_keep_the_line_ends_of_windows(here: Path) -> None:
    file = here / "job.yaml"
    file.write_bytes(crlf(JOB))
    runner = CliRunner()
    assert runner.invoke(main, ["check", "--add-ignores", "--select", "TT102"]).exit_code == 0
    added = JOB.replace("numNodes: 2}", "numNodes: 2}  # trainlint: ignore[TT102]")
    assert file.read_bytes() == crlf(added)
    file.write_bytes(crlf(added.replace("numNodes: 2}", "numNodes: 1}")))
    assert runner.invoke(main, ["check", "--fix"]).exit_code == 0
    assert file.read_bytes() == crlf(JOB.replace("numNodes: 2}", "numNodes: 1}"))


def test_a_baseline_of_another_system(here: Path) -> None:
    """Paths in it have forward slashes, and its findings are those of a checkout with other line ends."""
    (here / "jobs").mkdir()
    (here / "jobs/job.yaml").write_bytes(JOB.encode())
    runner = CliRunner()
    runner.invoke(main, ["check", "--baseline", "known.json", "--write-baseline"])
    assert '"path": "jobs/job.yaml"' in (here / "known.json").read_text()
    (here / "jobs/job.yaml").write_bytes(crlf(JOB))
    (here / "known.json").write_bytes(crlf((here / "known.json").read_text()))
    assert runner.invoke(main, ["check", "--baseline", "known.json"]).exit_code == 0


@pytest.mark.parametrize("name", ["job.YAML", "JOB.Yml"])
def test_endings_in_any_case(here: Path, name: str) -> None:
    (here / name).write_text(JOB, encoding="utf-8")
    assert lint([here]).files.discovered == 1


def test_one_file_under_two_spellings(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system does not tell cases apart, a file that is named twice is checked once."""
    for name in ("a.yaml", "A.yaml"):
        (here / name).write_text(JOB, encoding="utf-8")
    assert len(list(discover.discover([Path("a.yaml"), Path("A.yaml")]))) == 2
    monkeypatch.setattr(posixpath, "normcase", str.lower)
    assert [candidate.file.name for candidate in discover.discover([Path("a.yaml"), Path("A.yaml")])] == ["a.yaml"]


def test_names_that_macos_decomposes(here: Path) -> None:
    """A letter with its accent apart is shown and found as it is named."""
    name = normalize("NFD", "é.yaml")
    (here / name).write_text(JOB, encoding="utf-8")
    report = lint([Path()], Overrides(select=("TT102",)))
    assert [f.path for f in report.findings] == [name]
