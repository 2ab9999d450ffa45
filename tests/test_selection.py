"""Which rules are used on a file, and with which severity: options, settings, overrides and their order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainlint.catalogue import all_rules, rule_names, selector_problem, selectors
from trainlint.cli import main
from trainlint.engine import lint
from trainlint.findings import Severity
from trainlint.reports import render
from trainlint.rule import rules_of
from trainlint.selection import Choice, Selection, reach
from trainlint.settings import Overrides

JOB = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec:
  runtimeRef: {name: torchtune-llama3.2-1b}
  trainer: {command: [tune, run], numNodes: 2, numProcPerNode: 0}
"""
FOUND = {"TT102", "TJ503"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    write("jobs/a.yaml", JOB)
    write("old/b.yaml", JOB)
    return tmp_path


def write(name: str, content: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(content, encoding="utf-8")


def run(*args: str) -> Result:
    return CliRunner().invoke(main, args)


def found(*paths: str, **options: object) -> set[tuple[str, str, str]]:
    """File, rule and severity of each finding in the newest release."""
    overrides = Overrides(**options)  # type: ignore[arg-type]
    report = lint([Path(path) for path in paths or (".",)], overrides)
    return {(f.path, f.rule, f.level.value) for f in report.findings}


def rules_in(path: str, **options: object) -> set[str]:
    return {rule for file, rule, _ in found(path, **options) if file == path}


@pytest.mark.parametrize(
    ("layers", "used"),
    [
        ([], True),
        ([Choice(("TT",))], True),
        ([Choice(("tt102",))], True),
        ([Choice(("single-node-model",))], True),
        ([Choice(("TJ",))], False),
        ([Choice(("ALL",))], True),
        ([Choice(())], False),
        ([Choice(None, ("TT102",))], False),
        ([Choice(None, ("ALL",))], False),
        ([Choice(("TT102",), ("TT",))], True),
        ([Choice(("TT",), ("ALL",))], True),
        ([Choice(("TT",), ("TT",))], False),
        ([Choice(("TT",), ("TT102",))], False),
        ([Choice(("TT",), ("single-node-model",))], False),
        ([Choice(None, ("TT",), ("TT102",))], True),
        ([Choice(("TJ",), (), ("TT1",))], True),
        # A later layer with `select` begins anew, any other one changes what was said before.
        ([Choice(None, ("TT102",)), Choice(("TT",))], True),
        ([Choice(("TJ",)), Choice(None, (), ("TT",))], True),
        ([Choice(("TT",)), Choice(None, ("TT1",))], False),
        ([Choice(("TT102",)), Choice(None, ("ALL",))], False),
        ([Choice(None, ("TT102",)), Choice(None, (), ("TT",))], True),
        ([Choice(("TT",)), Choice()], True),
    ],
)
def test_layers(layers: Sequence[Choice], used: bool) -> None:
    assert Selection(tuple(layers)).uses("TT102", "single-node-model") is used


def test_what_per_file_ignores_leave_out_nothing_brings_back() -> None:
    assert not Selection((Choice(("TT102",)),), ("TT",)).uses("TT102", "single-node-model")
    assert Selection((), ("TJ", "TT101")).uses("TT102", "single-node-model")


@pytest.mark.parametrize(
    ("layers", "severity"),
    [
        ([], None),
        ([{"TT": "warning"}], "warning"),
        ([{"TT102": "note", "TT": "warning"}], "note"),
        ([{"TT": "warning", "single-node-model": "error"}], "error"),
        ([{"ALL": "note"}], "note"),
        ([{"TT102": "note"}, {"TT": "warning"}], "warning"),
        ([{"TT102": "note"}, {"TJ": "warning"}], "note"),
        ([{"TT": "warning"}, {"TT102": "off"}], "off"),
    ],
)
def test_layers_of_severities(layers: Sequence[dict[str, str]], severity: str | None) -> None:
    selection = Selection((), (), tuple(layers))
    assert selection.uses("TT102", "single-node-model") is (severity != "off")
    if severity != "off":
        given = selection.severity("TT102", "single-node-model")
        assert (given.value if given else None) == severity


def test_every_selector_names_a_rule() -> None:
    """The list of names that is read is that of the rules; no other word names one."""
    assert rule_names() == {rule.code: rule.name for rule in all_rules()}, "make docs writes it anew"
    assert [word for word in selectors() if selector_problem(word)] == []
    assert len(set(selectors())) == len(selectors())
    assert {len(word) for word in selectors() if word.isupper() or word[2:].isdigit()} == {2, 3, 4, 5}
    assert selector_problem("TT10x") == "unknown rule 'TT10x', did you mean \"TT10\"?"
    assert selector_problem(" ") == "unknown rule ' ', codes begin with TT, FS, TJ, YD, TL"
    assert reach("TT102", "single-node-model", "Single-Node-Model") == 17


def test_selectors_import_no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only those of the programs that a run has are imported."""
    imported: list[str] = []
    monkeypatch.setattr("trainlint.rule.import_module", imported.append)
    assert selector_problem("TT102") == ""
    assert selector_problem("FS4") == ""
    assert rules_of([]) == []
    assert imported == []


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ({"select": ("TT",)}, {"TT102"}),
        ({"select": ("ALL",)}, FOUND),
        ({"ignore": ("ALL",)}, set()),
        ({"ignore": ("TT",), "extend_select": ("TT102",)}, FOUND),
        ({"per_file_ignores": {"jobs/": ("TT",)}}, {"TJ503"}),
        ({"per_file_ignores": {"*.yaml": ("TT102", "TJ")}}, set()),
        ({"per_file_ignores": {"!jobs/": ("TT",)}}, FOUND),
        ({"per_file_ignores": {"!old/**": ("TT",)}}, {"TJ503"}),
        ({"extend_per_file_ignores": {"a.yaml": ("single-node-model",)}, "select": ("TT102",)}, set()),
    ],
)
def test_options(options: dict[str, object], rules: set[str]) -> None:
    assert rules_in("jobs/a.yaml", **options) == rules


@pytest.mark.parametrize(
    ("settings", "rules"),
    [
        ('select = ["TT"]', {"TT102"}),
        ("select = []", set()),
        ('ignore = ["ALL"]\nextend-select = ["TJ"]', {"TJ503"}),
        ('ignore = ["TT"]\nextend-ignore = ["TJ5"]', set()),
        ('[per-file-ignores]\n"jobs/*.yaml" = ["TT"]', {"TJ503"}),
        ('[per-file-ignores]\n"/jobs" = ["TT"]\n[extend-per-file-ignores]\n"a.yaml" = ["TJ"]', set()),
        ('[[overrides]]\npaths = ["jobs/"]\nselect = ["TJ"]', {"TJ503"}),
        ('select = ["TJ"]\n[[overrides]]\npaths = ["jobs/"]\nextend-select = ["TT1"]', FOUND),
        ('select = ["FS"]\n[[overrides]]\npaths = ["old/"]\nselect = ["ALL"]', set()),
        (
            '[[overrides]]\npaths = ["jobs/"]\nignore = ["TT"]\n[[overrides]]\npaths = ["a.*"]\nselect = ["TT"]',
            {"TT102"},
        ),
        ('[[overrides]]\npaths = ["jobs/"]\nper-file-ignores = {"a.yaml" = ["TT"], "b.yaml" = ["TJ"]}', {"TJ503"}),
        ('[[overrides]]\npaths = ["jobs/"]\nextend-ignore = ["TT"]', {"TJ503"}),
        ('severity = {TT = "off"}', {"TJ503"}),
        ('select = ["TT102"]\nseverity = {TT102 = "off"}', set()),
        ('severity = {TT = "off"}\n[[overrides]]\npaths = ["jobs"]\nseverity = {TT102 = "note"}', FOUND),
    ],
)
def test_settings(settings: str, rules: set[str]) -> None:
    write("trainlint.toml", settings)
    assert rules_in("jobs/a.yaml") == rules


def test_options_win_over_the_settings_of_any_path() -> None:
    write("trainlint.toml", 'ignore = ["TT"]\n[[overrides]]\npaths = ["jobs/"]\nselect = ["FS"]')
    assert rules_in("jobs/a.yaml", select=("TT",)) == {"TT102"}
    assert rules_in("jobs/a.yaml", extend_select=("TJ503",)) == {"TJ503"}
    write("trainlint.toml", 'per-file-ignores = {"*" = ["TT"]}')
    assert rules_in("jobs/a.yaml", per_file_ignores={"x": ("TT",)}) == FOUND
    assert rules_in("jobs/a.yaml", extend_per_file_ignores={"x": ("TT",)}) == {"TJ503"}


def test_a_severity_is_that_of_every_report(folder: Path) -> None:
    """It decides on the exit code; what the program does stays true."""
    write("trainlint.toml", 'severity = {TT102 = "warning", TJ = "note"}\n[targets]\nkubeflow-trainer = "2.3"')
    report = lint([Path("jobs/a.yaml")])
    assert [(f.rule, f.level, f.verdict) for f in report.findings] == [
        ("TT102", Severity.WARNING, Severity.ERROR),
        ("TJ503", Severity.NOTE, Severity.ERROR),
    ]
    text = render("text", report)
    assert "jobs/a.yaml:6:45: warning TT102 single-node-model: numNodes must be 1 for llama3_2/1B" in text
    assert "^ Kubeflow Trainer 2.3 refuses this job (spec.trainer.numNodes)" in text
    assert " torchrun stops on what Kubeflow Trainer 2.3 makes of this job at the start" in text
    assert text.endswith("Found 1 warning and 1 note in 1 of 1 file.\n")
    assert [f["severity"] for f in json.loads(render("json", report))["findings"]] == ["warning", "note"]
    (sarif,) = json.loads(render("sarif", report))["runs"]
    assert [result["level"] for result in sarif["results"]] == ["warning", "note"]
    assert [line.partition(" ")[0] for line in render("github", report).splitlines()] == ["::warning", "::notice"]
    assert run("jobs/a.yaml").exit_code == 0
    assert run("jobs/a.yaml", "--fail-on", "warning").exit_code == 1
    write("trainlint.toml", '[[overrides]]\npaths = ["old/"]\nseverity = {TJ503 = "error", TT102 = "note"}')
    levels = {(path, rule): level for path, rule, level in found(".", targets={})}
    assert levels["old/b.yaml", "TJ503"] == "error"
    assert levels["old/b.yaml", "TT102"] == "note"
    assert levels["jobs/a.yaml", "TT102"] == "error"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--select", "FSX"], "'--select': unknown rule 'FSX', did you mean \"FS\"?"),
        (["--ignore", "TT9"], "'--ignore': unknown rule 'TT9', did you mean \"TT\"?"),
        (["--extend-select", "TT1O2"], "unknown rule 'TT1O2', did you mean \"TT102\"?"),
        (["--extend-ignore", "single-node"], "unknown rule 'single-node', did you mean \"single-node-model\"?"),
        (["--per-file-ignores", "a:TT1O2"], "unknown rule 'TT1O2', did you mean \"TT102\"?"),
        (
            ["--per-file-ignores", "TT102"],
            "'TT102' is not a pattern with a rule: write PATTERN:RULE, such as legacy/**:FS003",
        ),
        (["--extend-per-file-ignores", "!:TT102"], "'!:TT102' is not a pattern with a rule"),
        (["--per-file-ignores", "//:TT102"], "'//' is not a pattern"),
    ],
)
def test_words_that_name_no_rule(args: list[str], message: str) -> None:
    done = run("jobs", *args)
    assert done.exit_code == 2
    assert message in done.stderr


def test_lists_of_options() -> None:
    """As in ruff: several after commas, several options."""
    one = run("check", "jobs", "--format", "concise", "--per-file-ignores", "a.yaml:TT102,TJ503,x/**:FS")
    assert one.stdout == ""
    several = ["--per-file-ignores", "a.yaml:TT102", "--extend-per-file-ignores", "!old:TJ"]
    assert run("check", "jobs", "--format", "concise", *several).stdout == ""


def test_the_nearest_settings_file_governs_a_file() -> None:
    """Whatever is named, and wherever the run starts."""
    write("trainlint.toml", 'ignore = ["TT"]')
    write("jobs/trainlint.toml", 'ignore = ["TJ"]')
    assert rules_in("jobs/a.yaml") == {"TT102"}
    everything = {(path, rule) for path, rule, _ in found(".")}
    assert everything == {("jobs/a.yaml", "TT102"), ("old/b.yaml", "TJ503")}
    write("jobs/trainlint.toml", 'extend = "../trainlint.toml"\nextend-ignore = ["TJ"]')
    assert rules_in("jobs/a.yaml") == set()


@pytest.mark.parametrize(
    ("args", "read"),
    [
        (["."], ["jobs/a.yaml"]),
        (["jobs"], ["jobs/a.yaml"]),
        (["jobs/x"], ["jobs/x/own/d.yaml", "jobs/x/c.yaml"]),
        (["jobs/x/c.yaml", "jobs/x/own/d.yaml", "old/b.yaml"], ["jobs/x/c.yaml", "jobs/x/own/d.yaml", "old/b.yaml"]),
        (["--force-exclude", "jobs/x/c.yaml", "jobs/x/own/d.yaml", "old/b.yaml", "jobs/a.yaml"], ["jobs/a.yaml"]),
        (["--force-exclude", "jobs/x"], []),
    ],
)
def test_exclude_adds_up_from_the_root_down(args: list[str], read: list[str]) -> None:
    """Of every settings file, also where a nearer one says something else, and for what a hook names."""
    write("trainlint.toml", 'exclude = ["/old", "jobs/x/"]')
    write("jobs/trainlint.toml", 'exclude = ["z"]')
    write("jobs/x/own/trainlint.toml", "exclude = []")
    write("jobs/x/c.yaml", JOB)
    write("jobs/x/own/d.yaml", JOB)
    write("jobs/z/e.yaml", JOB)
    done = run("check", "--format", "concise", "--select", "TT102", *args)
    assert {line.partition(":")[0] for line in done.stdout.splitlines()} == set(read)


def test_what_is_excluded_above_is_not_looked_into() -> None:
    """A definition in a file that the settings of the root exclude counts for no file below."""
    write("trainlint.toml", 'exclude = ["gen.yaml"]')
    write("jobs/trainlint.toml", "")
    write("jobs/a.yaml", JOB.replace("torchtune-llama3.2-1b", "team"))
    write(
        "jobs/gen.yaml",
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata: {name: team}\n",
    )
    assert "TJ101" in rules_in("jobs/a.yaml")
    write("trainlint.toml", "")
    assert "TJ101" not in rules_in("jobs/a.yaml")
