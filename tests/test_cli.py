"""The command line: what goes where, and with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainlint import __version__
from trainlint.__main__ import plain_options
from trainlint.checking import Options
from trainlint.cli import main
from trainlint.reports import FORMATS

BAD = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec:
  runtimeRef: {name: torchtune-llama3.2-1b}
  trainer: {command: [tune, run], numNodes: 2, numProcPerNode: 1}
"""


@pytest.fixture
def bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    file = tmp_path / "bad.yaml"
    file.write_text(BAD, encoding="utf-8")
    return file


def run(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, args, input=stdin)


@pytest.mark.parametrize("args", [[], ["."], ["bad.yaml"], ["check"], ["check", "bad.yaml"], ["--format", "concise"]])
def test_check_is_the_default(bad: Path, args: list[str]) -> None:
    result = run(*args)
    assert result.exit_code == 1
    assert result.stdout.startswith("bad.yaml:6:45: error TT102 single-node-model: ")


@pytest.mark.parametrize("format_", FORMATS)
def test_exit_codes_are_the_same_in_every_format(bad: Path, format_: str) -> None:
    assert run("--format", format_).exit_code == 1
    assert run("--format", format_, "--exit-zero").exit_code == 0
    assert run("--format", format_, "--ignore", "TT").exit_code == 0
    assert run("--format", format_, "--output", "out").exit_code == 1


def test_the_threshold(bad: Path) -> None:
    bad.write_text(BAD.replace("numNodes: 2", "numNodes: 0"), encoding="utf-8")
    assert run().exit_code == 0
    assert run("--fail-on", "warning").exit_code == 1
    bad.with_name("trainlint.toml").write_text('fail-on = "note"\n', encoding="utf-8")
    assert run().exit_code == 1
    assert run("--isolated").exit_code == 0


def test_json_has_the_documented_keys(bad: Path) -> None:
    document = json.loads(run("--format", "json").stdout)
    assert list(document) == ["version", "tool", "findings", "files", "targets", "notices", "summary"]
    (finding,) = document["findings"]
    fingerprint = finding.pop("fingerprint")
    assert len(fingerprint) == 16
    help_text = finding.pop("help")
    assert "remove numNodes" in help_text
    assert finding == {
        "rule": "TT102",
        "name": "single-node-model",
        "severity": "error",
        "stage": "admission",
        "program": "kubeflow-trainer",
        "programVersions": ["2.0", "2.1", "2.2", "2.3"],
        "release": {"known": "not stated", "from": ""},
        "message": "numNodes must be 1 for llama3_2/1B",
        "path": "bad.yaml",
        "document": 0,
        "field": "spec.trainer.numNodes",
        "yamlPath": "spec.trainer.numNodes",
        "line": 6,
        "column": 45,
        "endLine": 6,
        "endColumn": 46,
        "related": [],
        "fix": None,
        "suppressed": None,
    }


def test_only_findings_of_the_asked_stages(bad: Path) -> None:
    bad.write_text(bad.read_text(encoding="utf-8") + "# trainlint: ignore[FS001]\n", encoding="utf-8")

    def rules(*options: str) -> list[str]:
        return [finding["rule"] for finding in json.loads(run("--format", "json", *options).stdout)["findings"]]

    assert rules() == ["TT102", "TL002"]
    assert rules("--stage", "load") == []
    assert rules("--stage", "load", "--stage", "admission") == ["TT102"]


def test_output_takes_the_document_and_stdout_the_text(bad: Path, tmp_path: Path) -> None:
    result = run("--format", "json", "--output", "out.json")
    assert "Found 1 error in 1 of 1 file" in result.stdout
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["summary"]["error"] == 1
    assert run("--output", "no/where.json").exit_code == 2


def test_output_to_standard_output(bad: Path) -> None:
    assert run("--format", "json", "--output", "-").stdout == run("--format", "json").stdout
    assert not bad.with_name("-").exists()


def test_a_repeated_target_adds_its_releases(bad: Path) -> None:
    options = ("--target", "kubeflow-trainer=2.2", "--target", "kubeflow-trainer=2.3,2.2")
    document = json.loads(run("--format", "json", *options).stdout)
    assert document["targets"]["kubeflow-trainer"] == {
        "versions": ["2.2", "2.3"],
        "from": "option",
        "known": "chosen",
    }


def test_notices_go_to_stderr_and_into_the_document(bad: Path) -> None:
    result = run("--format", "json", "--target", "kubeflow-trainer=9.0")
    assert "newer than" in result.stderr
    assert "newer than" in json.loads(result.stdout)["notices"][0]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere.yaml"], "nowhere.yaml: no such file or folder\n"),
        (["rulez"], 'rulez: no such file or folder, and no command: did you mean "rules"?\n'),
        (["--target", "kubeflow-trainer=new"], "is not a version"),
        (["--select", "TT10x"], "unknown rule"),
        (["--config", "nowhere.toml"], "does not exist"),
        (["--format", "xml"], "xml"),
        (["a" * 400], "no such file or folder"),
        (["--isolated", "--config", "bad.yaml"], "exclude each other"),
        (["--select", ""], "no rule is named; without the option all are used"),
        (["--config", "pyproject.toml"], "pyproject.toml: has no [tool.trainlint]"),
        (["--add-ignores", "--diff"], "--add-ignores and --diff exclude each other"),
        (["--add-ignores", "--fix-only"], "exclude each other"),
        (["--diff", "--output", "a"], "exclude each other"),
        (["--diff", "--baseline", "a", "--update-baseline"], "exclude each other"),
        (["--fix-only", "--baseline", "a", "--write-baseline"], "exclude each other"),
        (["--show-files", "--fix"], "exclude each other"),
        (["--show-settings", "--statistics"], "exclude each other"),
        (["--show-files", "--format", "sarif"], "--show-files is shown as text or json"),
        (["bad.yaml", "--stdin-filename", "a.yaml"], "--stdin-filename names what - reads: write - as the path"),
    ],
)
def test_wrong_use(bad: Path, args: list[str], message: str) -> None:
    bad.with_name("pyproject.toml").write_text("[tool.other]\n", encoding="utf-8")
    result = run(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_bad_settings_are_wrong_use(bad: Path) -> None:
    bad.with_name("trainlint.toml").write_text("\nselct = []\n", encoding="utf-8")
    result = run()
    assert result.exit_code == 2
    assert "trainlint.toml:2: unknown setting 'selct'" in result.stderr
    assert run("--isolated").exit_code == 1


def test_closed_standard_input(bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The runner puts its own stream in place of the closed one before the command begins.
    class Closed:
        stdin = None

        def __getattr__(self, name: str) -> object:
            return getattr(sys, name)

    monkeypatch.setattr("trainlint.checking.sys", Closed())
    result = run("-")
    assert (result.exit_code, result.stderr) == (2, "trainlint: standard input is closed\n")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied", "closed/x.yaml"), "trainlint: closed/x.yaml: Permission denied\n"),
        (FileNotFoundError(2, "No such file or directory"), "the current folder: No such file or directory"),
        (KeyError("x"), "internal error, please report it: KeyError at test_cli.py"),
    ],
)
@pytest.mark.parametrize("command", ["check", "resolve"])
def test_what_no_one_foresaw_is_no_finding(
    bad: Path, monkeypatch: pytest.MonkeyPatch, command: str, error: Exception, message: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.delenv("TRAINLINT_DEBUG", raising=False)
    monkeypatch.setattr("trainlint.engine.discover", fail)
    result = run(command)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_baseline_of_a_run_that_went_wrong(bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("x")

    monkeypatch.delenv("TRAINLINT_DEBUG", raising=False)
    monkeypatch.setattr("trainlint.programs.kubeflow.program.KubeflowTrainer.recognise", fail)
    result = run("--baseline", "known.json", "--write-baseline")
    assert result.exit_code == 2
    assert "bad.yaml: internal error in recognition: KeyError at test_cli.py" in result.stderr
    assert "holds 0 findings" in result.stderr


def test_standard_input(bad: Path) -> None:
    result = run("-", "--stdin-filename", "jobs/x.yaml", "--format", "concise", stdin=BAD)
    assert result.exit_code == 1
    assert result.stdout.startswith("jobs/x.yaml:6:45: ")
    assert run("-", stdin="a: 1\n").exit_code == 0
    alone = run("--stdin-filename", "jobs/x.yaml", "--format", "concise", stdin=BAD)
    assert alone.stdout == result.stdout, "as in ruff, the name alone means standard input"


def test_colour_only_where_it_is_wanted(bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in run().stdout
    assert "\x1b[" in run("--color", "always").stdout
    assert "\x1b[" not in run("--format", "json", "--color", "always").stdout


def test_as_a_module_and_in_a_narrow_encoding(bad: Path) -> None:
    bad.write_text(BAD.replace("tune}", "tune}  # 😀") + "# ü\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "trainlint", "--target", "kubeflow-trainer=2.3", "bad.yaml"],
        capture_output=True,
        env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PATH": "", "SYSTEMROOT": "C:\\Windows"},
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == b""
    assert b"TT102" in done.stdout


HOOKS: list[tuple[str, ...]] = [
    (),
    ("check",),
    ("a.yaml", "b c.yaml"),
    ("check", "rules"),
    ("check", "--force-exclude", "a.yaml"),
    ("a.yaml", "--force-exclude", "check"),
    ("check", "--force-exclude", "--fix", "a.yaml"),
]


@pytest.mark.parametrize("arguments", HOOKS)
def test_the_command_lines_of_hooks_are_read_alike(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Options] = []
    monkeypatch.setattr("trainlint.cli.run_check", read.append)
    assert run(*arguments).exit_code == 0
    assert read == [plain_options(arguments)]


@pytest.mark.parametrize(
    "arguments",
    [
        ("rules",),
        ("explain", "TT102"),
        ("resolve",),
        ("settings-schema",),
        ("-",),
        ("a.yaml", "--fix", "-"),
        ("check", "--", "a.yaml"),
        ("-h",),
    ],
)
def test_other_command_lines(arguments: tuple[str, ...]) -> None:
    assert plain_options(arguments) is None


@pytest.mark.parametrize("arguments", [["bad.yaml"], ["bad.yaml", "--color", "never"]], ids=["hook", "click"])
def test_a_hook_and_click_print_the_same(bad: Path, arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "trainlint", *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, run("bad.yaml").stdout)


@pytest.mark.parametrize("arguments", [["bad.yaml"], ["bad.yaml", "--color", "never"]], ids=["hook", "click"])
@pytest.mark.parametrize(("error", "code"), [("KeyboardInterrupt", 130), ("BrokenPipeError", 1)])
def test_an_interrupted_run(bad: Path, arguments: list[str], error: str, code: int) -> None:
    script = (
        "import sys; from trainlint import engine, __main__\n"
        f"def fail(*_): raise {error}\n"
        "engine.discover = fail; __main__.main()"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def imported(*arguments: str) -> set[str]:
    """The modules that a run has imported at its end."""
    script = (
        "import sys; from trainlint.__main__ import main\ntry: main()\nexcept SystemExit: pass\nprint(*sys.modules)"
    )
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_a_hook_without_markers_imports_little(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: [\n", encoding="utf-8")
    heavy = {"click", "subprocess", "tomllib", "tomli", "hashlib", "ruamel", "packaging", "pathspec", "difflib"}
    assert heavy & imported("check", str(tmp_path / "a.yaml")) == set()


def test_what_no_settings_ask_for_is_not_imported(bad: Path) -> None:
    """Without a settings file neither the reader nor the table of settings is, nor what only some options need."""
    own = {"settings.reader", "settings.table", "settings.kinds", "settings.places", "settings.schema", "settings.show"}
    others = {"add_ignores", "baseline", "fixes", "show_files", "cli"}
    names = {f"trainlint.{name}" for name in own | others} | {"tomllib", "tomli"}
    assert names & imported("check", str(bad)) == set()
    bad.with_name("trainlint.toml").write_text('fail-on = "note"\n', encoding="utf-8")
    read = names & imported("check", str(bad))
    assert {name.removeprefix("trainlint.") for name in read} - {"tomllib", "tomli"} == {
        "settings.reader",
        "settings.table",
        "settings.kinds",
        "settings.places",
    }


def test_version() -> None:
    assert run("--version").stdout == f"trainlint {__version__}\n"


def test_the_entry_point_is_a_command_of_click(tmp_path: Path) -> None:
    """Whoever loads it runs it in a process of his own."""
    (entry,) = entry_points(group="console_scripts", name="trainlint")
    result = CliRunner().invoke(entry.load(), ["check", "--isolated", "--format", "json", str(tmp_path)])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["findings"] == []
