"""Settings files and targets: what is read and what is refused, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.catalogue import VOCABULARY, parse_target
from trainlint.findings import Severity
from trainlint.repository.discover import settings_file
from trainlint.settings import Overrides, Settings, SettingsError, read_settings
from trainlint.targets import Target, TargetError


def written(folder: Path, content: str, name: str = "trainlint.toml") -> Path:
    file = folder / name
    file.write_text(content, encoding="utf-8")
    return file


def test_everything_that_can_be_set(tmp_path: Path) -> None:
    settings = read_settings(
        written(
            tmp_path,
            """
            select = ["TT", "TJ101"]
            ignore = ["zero-num-nodes"]
            exclude = ["build/"]
            runtimes = "closed"
            fail-on = "warning"
            format = "concise"
            [targets]
            kubeflow-trainer = ["2.2", "2.3"]
            [cluster]
            runtimes = ["own"]
            priority-classes = ["high"]
            """,
        ),
        VOCABULARY,
    )
    assert settings.select == ("TT", "TJ101")
    assert settings.ignore == ("zero-num-nodes",)
    assert settings.exclude == ("build/",)
    assert settings.runtimes == "closed"
    assert settings.fail_on is Severity.WARNING
    assert settings.format == "concise"
    assert settings.targets == {"kubeflow-trainer": Target(("2.2", "2.3"), "trainlint.toml")}
    assert settings.cluster.runtimes == frozenset({"own"})
    assert settings.cluster.priority_classes == frozenset({"high"})
    assert settings.base == tmp_path


def test_a_pyproject_counts_with_our_table_only(tmp_path: Path) -> None:
    project = written(tmp_path, "[tool.other]\nx = 1\n", "pyproject.toml")
    assert settings_file(tmp_path) is None
    project.write_text("[tool.trainlint]\nfail-on = 'note'\n", encoding="utf-8")
    assert settings_file(tmp_path) == project
    assert read_settings(project, VOCABULARY).fail_on is Severity.NOTE
    own = written(tmp_path, "")
    assert settings_file(tmp_path) == own


@pytest.mark.parametrize(
    ("content", "ours"),
    [
        ('[tool]\ntrainlint.ignore = ["TT"]\n', True),
        ('tool.trainlint.ignore = ["TT"]\n', True),
        ('[tool]\ntrainlint = {ignore = ["TT"]}\n', True),
        ('["tool"."trainlint"]\nignore = ["TT"]\n', True),
        ('\ufeff[tool.trainlint]\nignore = ["TT"]\n', True),
        ('[tool.trainlint-more]\nignore = ["TT"]\n', False),
        ('[project]\ndependencies = ["trainlint"]\n', False),
        ("[project\n# trainlint\n", False),
    ],
)
def test_our_table_however_it_is_written(tmp_path: Path, content: str, ours: bool) -> None:
    project = written(tmp_path, content, "pyproject.toml")
    assert settings_file(tmp_path) == (project if ours else None)
    if ours:
        assert read_settings(project, VOCABULARY).ignore == ("TT",)


def test_a_broken_pyproject_with_our_table_is_told(tmp_path: Path) -> None:
    project = written(tmp_path, "[tool.trainlint]\nselect = [\n", "pyproject.toml")
    assert settings_file(tmp_path) == project
    with pytest.raises(SettingsError, match="not valid TOML"):
        read_settings(project, VOCABULARY)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\nselct = ['TT']\n", ":2: unknown setting 'selct', did you mean \"select\"?"),
        ("select = 'TT'\n", ":1: 'select' must be a list of strings"),
        ("x = 1\n", ":1: unknown setting 'x'"),
        ("\n\nrun-times = 1\n", ":3: unknown setting 'run-times', did you mean \"runtimes\"?"),
        ("runtimes = 'shut'\n", ":1: 'runtimes' must be one of open, closed"),
        ("fail-on = 3\n", ":1: 'fail-on' must be one of note, warning, error"),
        ("select = ['single-node-modl']\n", ":1: 'select': unknown rule 'single-node-modl', did you mean"),
        ("[targets]\nkubeflow = '2.3'\n", ":2: unknown program 'kubeflow'"),
        ("[targets]\nkubeflow-trainer = 'new'\n", ":2: 'new' is not a version of kubeflow-trainer"),
        ("[targets]\nkubeflow-trainer = 2.3\n", ":2: the target of kubeflow-trainer must be a string"),
        ("[cluster]\nnodes = []\n", ":2: unknown setting 'nodes' in cluster"),
        ("a = [\n", ": not valid TOML: "),
    ],
)
def test_bad_settings_name_their_place(tmp_path: Path, content: str, message: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(SettingsError) as caught:
        read_settings(file, VOCABULARY)
    assert str(caught.value).startswith(str(file))
    assert message in str(caught.value)


def test_options_go_before_settings() -> None:
    settings = Settings(
        select=("TT",), ignore=("TT101",), exclude=("a",), targets={"kubeflow-trainer": Target(("2.2",))}
    )
    over = Overrides(select=("TJ",), ignore=("TJ1",), exclude=("b",), targets={"kubeflow-trainer": Target(("2.0",))})
    merged = over.over(settings)
    assert merged.select == ("TJ",)
    assert merged.ignore == ("TT101", "TJ1")
    assert merged.exclude == ("a", "b")
    assert merged.targets["kubeflow-trainer"].versions == ("2.0",)
    assert Overrides().over(settings) == settings


@pytest.mark.parametrize(
    "option", ["kubeflow-trainer", "kubeflow-trainer=", "kubeflow-trainer=x", "=2", "torchrun=2.9", "trainer=2.3"]
)
def test_bad_targets(option: str) -> None:
    with pytest.raises(TargetError):
        parse_target(option)


def test_several_versions() -> None:
    assert parse_target("kubeflow-trainer=2.1, v2.3.0,2.1") == {"kubeflow-trainer": Target(("2.1", "2.3.0"), "option")}
