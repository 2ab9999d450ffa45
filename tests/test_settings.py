"""Settings files and targets: what is read and what is refused, with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.catalogue import VOCABULARY, parse_target, rule_names
from trainlint.findings import Severity
from trainlint.repository.discover import Excluder, settings_file
from trainlint.selection import Choice
from trainlint.settings import Overrides, PerFileIgnores, Settings, SettingsError
from trainlint.settings.reader import read_settings
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
            extend-select = ["FS"]
            extend-ignore = ["FS003"]
            exclude = ["build/"]
            require-reason = true
            runtimes = "closed"
            fail-on = "warning"
            format = "concise"
            [targets]
            kubeflow-trainer = ["2.2", "2.3"]
            [cluster]
            runtimes = ["own"]
            priority-classes = ["high"]
            [per-file-ignores]
            "a/" = ["TT"]
            [extend-per-file-ignores]
            "!b/" = ["FS"]
            [severity]
            FS004 = "off"
            [[overrides]]
            paths = ["c/"]
            program = "none"
            select = ["YD"]
            severity = {YD = "note"}
            targets = {axolotl = "0.9.2"}
            per-file-ignores = {"c/d" = ["YD"]}
            """,
        ),
        VOCABULARY,
    )
    assert settings.choices == (Choice(("TT", "TJ101"), ("zero-num-nodes", "FS003"), ("FS",)),)
    assert [(one.pattern.patterns, one.negated, one.rules) for one in settings.per_file_ignores] == [
        (("a/",), False, ("TT",)),
        (("b/",), True, ("FS",)),
    ]
    assert settings.severities == ({"FS004": "off"},)
    assert settings.require_reason
    assert [(one.patterns, one.base) for one in settings.excluders] == [(("build/",), tmp_path)]
    (override,) = settings.overrides
    assert (override.program, override.choice, override.severity) == ("none", Choice(("YD",)), {"YD": "note"})
    assert override.targets == {"axolotl": Target(("0.9.2",), f"{tmp_path.as_posix()}/trainlint.toml:27")}
    assert [one.rules for one in override.per_file_ignores] == [("YD",)]
    assert settings.runtimes == "closed"
    assert settings.fail_on is Severity.WARNING
    assert settings.format == "concise"
    assert settings.targets == {"kubeflow-trainer": Target(("2.2", "2.3"), f"{tmp_path.as_posix()}/trainlint.toml:12")}
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
        assert read_settings(project, VOCABULARY).choices == (Choice(None, ("TT",)),)


def test_a_broken_pyproject_with_our_table_is_told(tmp_path: Path) -> None:
    project = written(tmp_path, "[tool.trainlint]\nselect = [\n", "pyproject.toml")
    assert settings_file(tmp_path) == project
    with pytest.raises(SettingsError, match="not valid TOML"):
        read_settings(project, VOCABULARY)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("\nselct = ['TT']\n", ":2: unknown setting 'selct', did you mean \"select\"?"),
        ("select = 'TT'\n", ":1: 'select' must be a list of strings, write [\"TT\"]"),
        ("x = 1\n", ":1: unknown setting 'x'"),
        ("\n\nrun-times = 1\n", ":3: unknown setting 'run-times', did you mean \"runtimes\"?"),
        ("runtimes = 'shut'\n", ":1: 'runtimes' must be one of open, closed"),
        ("fail-on = 3\n", ":1: 'fail-on' must be one of error, warning, note"),
        ("fail-on = 2026-12-01\n", ":1: 'fail-on' must be one of error, warning, note"),
        (
            "fail-on = 'eror'\n",
            ":1: 'fail-on' must be one of error, warning, note, did you mean \"error\"?",
        ),
        (
            "select = ['single-node-modl']\n",
            ":1: 'select': unknown rule 'single-node-modl', did you mean \"single-node-model\"?",
        ),
        ("ignore = [\n  'FS',\n  'FSX',\n]\n", ":3: 'ignore': unknown rule 'FSX', did you mean \"FS\"?"),
        ("ignore = ['TT9']\n", ":1: 'ignore': unknown rule 'TT9', did you mean \"TT\"?"),
        ("ignore = ['']\n", ":1: 'ignore': unknown rule '', codes begin with TT, FS, TJ, YD, TL"),
        ("extend-select = ['TT1O2']\n", ":1: 'extend-select': unknown rule 'TT1O2', did you mean \"TT102\"?"),
        ("extend-ignore = [true]\n", ":1: 'extend-ignore' must be a list of strings"),
        ("[targets]\nkubeflow = '2.3'\n", ":2: unknown program 'kubeflow'"),
        ("[targets]\nkubeflow-trainer = 'new'\n", ":2: 'new' is not a version of kubeflow-trainer"),
        ("[targets]\nkubeflow-trainer = 2.3\n", "of strings, write the release in quotes"),
        ("fail_on = 'note'\n", ":1: unknown setting 'fail_on', did you mean \"fail-on\"?"),
        (
            "[tool.trainlint]\nselect = []\n",
            "in trainlint.toml the settings stand at the top, without [tool.trainlint]",
        ),
        (
            "\nprogram = 'none'\n",
            ":2: unknown setting 'program', which stands in [[overrides]], for the files",
        ),
        (
            "[[overrides]]\npaths = ['a']\nfail-on = 'note'\n",
            ":3: unknown setting 'fail-on' of an override, which stands at the top, for all files",
        ),
        (
            "[cluster]\nkubernetes = '1.33'\n",
            ":2: unknown setting 'kubernetes' in cluster, releases stand in",
        ),
        ("axolotl = '0.12.2'\n", ":1: unknown setting 'axolotl', releases stand in [targets]"),
        ("[cluster]\nnodes = []\n", ":2: unknown setting 'nodes' in cluster"),
        ("cluster = []\n", ":1: 'cluster' must be a table"),
        ("per-file-ignores = ['a']\n", ':1: \'per-file-ignores\' must be a table, such as "legacy/**" = ["FS"]'),
        ("[per-file-ignores]\n'a' = 'FS'\n", ":2: 'a' must be a list of strings"),
        ("[per-file-ignores]\n'a' = []\n'!' = ['FS']\n", ":3: 'per-file-ignores': '!' is not a pattern"),
        (
            "[extend-per-file-ignores]\n'a' = ['FZ']\n",
            ":2: 'a': unknown rule 'FZ', codes begin with TT, FS, TJ, YD, TL",
        ),
        ("[severity]\nFS = 'of'\n", ":2: 'FS' must be one of error, warning, note, off, did you mean \"off\"?"),
        ("[severity]\nFZ = 'off'\n", ":2: 'severity': unknown rule 'FZ', codes begin with TT, FS, TJ, YD, TL"),
        ("severity = 'off'\n", ":1: 'severity' must be a table, such as FS003 = \"warning\""),
        ("require-reason = 'yes'\n", ":1: 'require-reason' must be true or false"),
        ("overrides = {}\n", ":1: 'overrides' must be tables: [[overrides]]"),
        ("fail-on = 'note'\n[[overrides]]\nselect = []\n", ":2: an override needs paths"),
        (
            "[[overrides]]\npaths = ['a']\n[[overrides]]\npaths = ['b']\nexclud = []\n",
            ":5: unknown setting 'exclud' of an override",
        ),
        (
            "targets = {}\n[[overrides]]\npaths = ['a']\nselct = []\n",
            ":4: unknown setting 'selct' of an override, did you mean \"select\"?",
        ),
        ("[[overrides]]\npaths = ['a']\nprogram = 'axolot'\n", ', did you mean "axolotl"?'),
        ("[[overrides]]\npaths = ['a']\n[overrides.targets]\nsoup = 1\n", ":4: the target of soup must be a string"),
        ("extend = 3\n", ":1: 'extend' must be the path of a file"),
        ("extend = ''\n", ":1: 'extend' must be the path of a file"),
        ("# one\nextend = 'no.toml'\n", ":2: 'no.toml' is no file"),
        ("extend = 'trainlint.toml'\n", ":1: the settings extend themselves: trainlint.toml"),
        (
            "".join(f"[[overrides]]\npaths = ['a']\nselect = {list(rule_names())}\n" for _ in range(13)),
            ":1: more than 5,000 rules are named",
        ),
        (f"[per-file-ignores]\n{''.join(f'a{n} = []{chr(10)}' for n in range(1001))}", "more than 1,000 entries"),
        (
            f"[per-file-ignores]\n{''.join(f'a{n} = []{chr(10)}' for n in range(900))}"
            f"[[overrides]]\npaths = {[f'b{n}' for n in range(101)]}\n",
            ":902: more than 1,000 patterns are named",
        ),
        ("a = [\n", ": not valid TOML: "),
    ],
)
def test_bad_settings_name_their_place(tmp_path: Path, content: str, message: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(SettingsError) as caught:
        read_settings(file, VOCABULARY)
    assert str(caught.value).startswith(str(file))
    assert message in str(caught.value)


def test_the_line_of_a_key_is_found_wherever_it_is(tmp_path: Path) -> None:
    """Texts, arrays and comments with the same key before it do not count."""
    content = """
[project]
description = \'\'\'
[tool.trainlint]
selct = 1
\'\'\'
escaped = "\\\\" # [["
literal = '\\' # [[
also = \"\"\" \\\"\"\" \\
selct = 1
\"\"\"
keywords = [
  "a", # selct = 1 ]
  "selct",
]
[tool.other]
selct = 1
[tool.trainlint]
"fail-on" = "error"
selct = 1
"""
    with pytest.raises(SettingsError) as caught:
        read_settings(written(tmp_path, content, "pyproject.toml"), VOCABULARY)
    assert str(caught.value).startswith(f"{tmp_path / 'pyproject.toml'}:20: unknown setting 'selct'")


def test_options_go_before_settings(tmp_path: Path) -> None:
    settings = Settings(
        choices=(Choice(("TT",), ("TT101",)),),
        per_file_ignores=(PerFileIgnores.of("a", ("FS",), tmp_path),),
        excluders=(Excluder(("a",), tmp_path),),
        targets={"kubeflow-trainer": Target(("2.2",))},
    )
    over = Overrides(
        select=("TJ",),
        ignore=("TJ1",),
        extend_select=("FS003",),
        per_file_ignores={"b": ("TT",)},
        extend_per_file_ignores={"!c": ("YD",)},
        exclude=("b",),
        targets={"kubeflow-trainer": Target(("2.0",))},
    )
    merged = over.over(settings, tmp_path)
    assert merged.choices == settings.choices
    assert merged.choice == Choice(("TJ",), ("TJ1",), ("FS003",))
    assert [(one.pattern.patterns, one.negated) for one in merged.per_file_ignores] == [(("b",), False), (("c",), True)]
    assert [one.patterns for one in merged.excluders] == [("a",), ("b",)]
    assert merged.targets["kubeflow-trainer"].versions == ("2.0",)
    assert Overrides().over(settings, tmp_path) == settings


def test_what_an_extended_file_says(tmp_path: Path) -> None:
    """Its values count where these say nothing; exclude, targets, cluster, severity and overrides add up."""
    (tmp_path / "conf").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    written(
        tmp_path / "conf",
        """
        select = ["FS"]
        ignore = ["FS003"]
        exclude = ["a"]
        fail-on = "note"
        runtimes = "closed"
        require-reason = true
        per-file-ignores = {"a" = ["TT"]}
        severity = {FS = "note", TT = "off"}
        targets = {soup = "0.77.0", axolotl = "0.9.0"}
        cluster = {runtimes = ["a"], priority-classes = ["b"]}
        [[overrides]]
        paths = ["x"]
        """,
        "base.toml",
    )
    middle = written(
        tmp_path,
        """
        [tool.trainlint]
        extend = "conf/base.toml"
        extend-select = ["TT"]
        extend-per-file-ignores = {"b" = ["TJ"]}
        fail-on = "warning"
        """,
        "pyproject.toml",
    )
    own = written(
        tmp_path / "inner",
        """
        extend = "../pyproject.toml"
        ignore = ["TT1"]
        exclude = ["c"]
        fail-on = "error"
        severity = {FS = "warning"}
        targets = {axolotl = "0.12.2"}
        cluster = {runtimes = ["c"]}
        [[overrides]]
        paths = ["y"]
        """,
    )
    settings = read_settings(own, VOCABULARY)
    assert settings.choices == (Choice(("FS",), ("FS003",)), Choice(extend_select=("TT",)), Choice(ignore=("TT1",)))
    assert [(one.patterns, one.base) for one in settings.excluders] == [
        (("a",), tmp_path / "conf"),
        (("c",), tmp_path / "inner"),
    ]
    assert [(one.pattern.patterns, one.pattern.base) for one in settings.per_file_ignores] == [
        (("a",), tmp_path / "conf"),
        (("b",), tmp_path),
    ]
    assert (settings.fail_on, settings.runtimes, settings.require_reason) == (Severity.ERROR, "closed", True)
    assert settings.severities == ({"FS": "note", "TT": "off"}, {"FS": "warning"})
    assert {name: target.versions for name, target in settings.targets.items()} == {
        "soup": ("0.77.0",),
        "axolotl": ("0.12.2",),
    }
    assert (settings.cluster.runtimes, settings.cluster.priority_classes) == (frozenset({"c"}), frozenset({"b"}))
    assert [one.paths.base for one in settings.overrides] == [tmp_path / "conf", tmp_path / "inner"]
    middle.write_text("[tool.other]\n", encoding="utf-8")
    with pytest.raises(SettingsError, match=r"pyproject\.toml: has no \[tool\.trainlint\]$"):
        read_settings(own, VOCABULARY)


def test_extended_files_stay_in_the_repository(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    written(tmp_path, "", "out.toml")
    (repository / "link.toml").symlink_to(tmp_path / "out.toml")
    for named in ("../out.toml", "link.toml", str(tmp_path / "out.toml"), "../nowhere.toml"):
        own = written(repository, f"extend = '{named}'\n")
        with pytest.raises(SettingsError) as caught:
            read_settings(own, VOCABULARY)
        assert str(caught.value) == f"{own}:1: {named!r} leads out of the repository {repository}"


def test_files_that_extend_each_other(tmp_path: Path) -> None:
    written(tmp_path, "extend = 'trainlint.toml'\n", "b.toml")
    own = written(tmp_path, "extend = 'b.toml'\n")
    with pytest.raises(SettingsError, match=r"b\.toml:1: the settings extend themselves: trainlint\.toml$"):
        read_settings(own, VOCABULARY)
    for number in range(11):
        written(tmp_path, f"extend = '{number + 1}.toml'\n", f"{number}.toml")
    written(tmp_path, "", "11.toml")
    with pytest.raises(SettingsError, match=r"9\.toml:1: more than 10 settings files extend each other$"):
        read_settings(tmp_path / "0.toml", VOCABULARY)
    assert read_settings(tmp_path / "2.toml", VOCABULARY).base == tmp_path


@pytest.mark.parametrize(
    "option", ["kubeflow-trainer", "kubeflow-trainer=", "kubeflow-trainer=x", "=2", "torchrun=2.9", "trainer=2.3"]
)
def test_bad_targets(option: str) -> None:
    with pytest.raises(TargetError):
        parse_target(option)


def test_several_versions() -> None:
    assert parse_target("kubeflow-trainer=2.1, v2.3.0,2.1") == {"kubeflow-trainer": Target(("2.1", "2.3.0"), "option")}
