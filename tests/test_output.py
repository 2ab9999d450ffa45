"""Where reports go, and what a run tells besides: several files, a terminal's abilities, progress, remarks, timings."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from test_cli import BAD
from trainlint.cli import main
from trainlint.output import Output, Screen
from trainlint.progress import BEGINS_AFTER, Progress


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a file that has a finding, one that is excluded, one of no interest, one that is near."""
    monkeypatch.chdir(tmp_path)
    files = {
        "bad.yaml": BAD,
        "left/out.yaml": BAD,
        "plain.yaml": "a: 1\n",
        "near.yaml": "base_model: x\n",
        "trainlint.toml": 'exclude = ["left/"]\n',
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["--target", "kubeflow-trainer=2.3", *args])


# several outputs


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("out.json", Output("", Path("out.json"))),
        ("sarif=out.json", Output("sarif", Path("out.json"))),
        ("html=a=b.html", Output("html", Path("a=b.html"))),
        ("word=out.json", Output("", Path("word=out.json"))),
        ("./sarif=out.json", Output("", Path("sarif=out.json"))),
        ("=x", Output("", Path("=x"))),
        ("-", Output("", Path("-"))),
    ],
)
def test_a_prefix_is_a_format_only_when_it_names_one(word: str, expected: Output) -> None:
    assert Output.of(word) == expected


def test_a_format_needs_a_file() -> None:
    wrong = run("--output", "sarif=")
    assert wrong.exit_code == 2
    assert "'sarif=' names no file: write FORMAT=FILE" in wrong.stderr
    assert not Path("sarif=").exists()


def test_a_word_that_is_almost_a_format() -> None:
    """It is no part of a file's name, unless that is spelled as one."""
    wrong = run("--output", "sarf=out.sarif")
    assert wrong.exit_code == 2
    assert "'sarf=out.sarif': sarf is no format, did you mean \"sarif\"? A file of this name is ./sarf=" in wrong.stderr
    assert run("--output", "./sarf=out.sarif").exit_code == 1
    assert [path.name for path in Path().glob("*=*")] == ["sarf=out.sarif"]


def test_the_report_is_shown_though_a_file_cannot_be_written(place: Path) -> None:
    """The other files are written, too; the exit code says that one is missing."""
    result = run("--output", "sarif=no/a.sarif", "--output", "jsonl=a.jsonl")
    assert result.exit_code == 2
    assert result.stdout == run().stdout
    assert result.stderr == "trainlint: no/a.sarif: cannot be written: No such file or directory\n"
    assert (place / "a.jsonl").exists()


def test_several_outputs(place: Path) -> None:
    result = run("--output", "sarif=a.sarif", "--output", "html=a.html", "--output", "jsonl=a.jsonl")
    assert result.exit_code == 1
    assert result.stdout.startswith("bad.yaml:6:45: error TT102 ")
    assert json.loads((place / "a.sarif").read_text(encoding="utf-8"))["version"] == "2.1.0"
    assert "What the job starts" in (place / "a.html").read_text(encoding="utf-8")
    assert json.loads((place / "a.jsonl").read_text(encoding="utf-8"))["rule"] == "TT102"


def test_each_file_is_told_once_with_a_page(place: Path) -> None:
    """What jobs start is found by the same run, which is silent by then."""
    told = run("--verbose", "--output", "html=a.html").stderr
    assert told == run("--verbose").stderr


def test_what_standard_output_shows() -> None:
    concise = run("--format", "concise").stdout
    assert run("--format", "concise", "--output", "sarif=a").stdout == concise
    assert run("--format", "concise", "--output", "a").stdout == run().stdout
    assert run("--format", "concise", "--output", "jsonl=-", "--output", "a").stdout == run("--format", "jsonl").stdout
    assert Path("a").read_text(encoding="utf-8") == concise


@pytest.mark.parametrize("names", [("sarif=a", "json=a"), ("a", "./a"), ("-", "json=-")])
def test_two_reports_into_one_file(names: tuple[str, str]) -> None:
    result = run("--output", names[0], "--output", names[1])
    assert result.exit_code == 2
    assert "two reports cannot be written to one file" in result.output
    assert not Path("a").exists()


# quiet and statistics


def test_quiet() -> None:
    assert re.fullmatch(r"bad\.yaml:6:45: [^\n]+\n(?:[ \d] [^\n]+\n)+", run("--quiet").output)
    loud = CliRunner().invoke(main, ["check", "--isolated"])
    assert "no file states the release" in loud.stderr
    assert CliRunner().invoke(main, ["check", "--isolated", "-q"]).stderr == ""
    assert run("-q", "plain.yaml").output == ""


def test_statistics() -> None:
    assert run("--statistics").stdout == (
        "1  error    TT102  single-node-model\n\nFound 1 error in 1 of 3 files, 1 of them a training file.\n"
    )
    assert run("--statistics", "--quiet").stdout == "1  error    TT102  single-node-model\n"
    assert json.loads(run("--statistics", "--format", "json").stdout)[0]["count"] == 1


def test_statistics_in_place_of_the_format_of_the_settings(place: Path) -> None:
    (place / "trainlint.toml").write_text('exclude = ["left/"]\nformat = "concise"\n', encoding="utf-8")
    assert run("--statistics").stdout.startswith("1  error    TT102  ")
    (place / "trainlint.toml").write_text('exclude = ["left/"]\nformat = "json"\n', encoding="utf-8")
    assert json.loads(run("--statistics").stdout)[0]["rule"] == "TT102"


@pytest.mark.parametrize(
    "args",
    [
        ("--statistics", "--format", "sarif"),
        ("--statistics", "--output", "html=a"),
        ("--quiet", "--verbose"),
    ],
)
def test_options_that_exclude_each_other(args: tuple[str, ...]) -> None:
    assert run(*args).exit_code == 2


# verbose and timings


def test_verbose_says_what_is_done_with_each_file() -> None:
    told = run("--verbose")
    assert told.stderr.splitlines() == [
        "trainlint: left/out.yaml: not read: the settings exclude it",
        "trainlint: bad.yaml: Kubeflow Trainer, by `apiVersion: trainer.kubeflow.org/…`; release 2.3, chosen by option",
        "trainlint: bad.yaml: torchtune, by `_component_`, or a `tune run` command; "
        "release 0.6.1, stated in the image of Kubeflow Trainer",
        "trainlint: near.yaml: not Axolotl: its files have `base_model`, with datasets, an adapter or a batch size",
        "trainlint: plain.yaml: not judged: it has no word of a program",
    ]
    assert told.stdout == run().stdout


def test_verbose_says_why_a_file_is_not_read_to_its_end(place: Path) -> None:
    (place / "bad.yaml").write_text(f"{BAD}]\n", encoding="utf-8")
    assert "trainlint: bad.yaml: read up to line 7: " in run("-v").stderr
    (place / ".gitattributes").write_text("bad.yaml linguist-generated\n", encoding="utf-8")
    assert "trainlint: bad.yaml: not checked: a .gitattributes file marks it as generated\n" in run("-v").stderr


def test_timings() -> None:
    told = run("--timings")
    lines = told.stderr.splitlines()
    assert lines[0].startswith("trainlint: timings in seconds, with a profiler, ")
    kinds = [line.split()[1] for line in lines[1:]]
    assert set(kinds) == {"parts:", "rules:", "files:"}
    assert any(line.endswith(" reading") for line in lines)
    rules = [line.split()[3] for line in lines[1:] if line.split()[1] == "rules:"]
    assert {code[:2] for code in rules} <= {"TT", "TJ", "YD"}
    assert any(line.endswith(" bad.yaml") for line in lines)
    assert told.stdout == run().stdout


# the terminal


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("NO_COLOR", "FORCE_HYPERLINK", "TERM_PROGRAM", "VTE_VERSION", "WT_SESSION", "KITTY_WINDOW_ID"):
        monkeypatch.delenv(name, raising=False)
    for name in ("KONSOLE_VERSION", "DOMTERM", "ALACRITTY_WINDOW_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "72")
    return monkeypatch


def screen(monkeypatch: pytest.MonkeyPatch, color: str, stream: io.StringIO | None = None) -> Screen:
    """What is known of a stream, of a terminal where none is given."""
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", stream or Terminal())
        return Screen.of(color)


def test_a_terminal_has_colors_and_a_width(terminal: pytest.MonkeyPatch) -> None:
    assert screen(terminal, "auto") == Screen(True, False, 72)
    assert screen(terminal, "never") == Screen(False, False, 72)
    terminal.setenv("NO_COLOR", "1")
    assert screen(terminal, "auto") == Screen(False, False, 72)


@pytest.mark.parametrize(
    ("variables", "links"),
    [
        ({}, False),
        ({"TERM_PROGRAM": "WezTerm"}, True),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"VTE_VERSION": "7600"}, True),
        ({"VTE_VERSION": "4900"}, False),
        ({"VTE_VERSION": "x"}, False),
        ({"WT_SESSION": "1"}, True),
        ({"WT_SESSION": "1", "TERM": "dumb"}, False),
        ({"WT_SESSION": "1", "FORCE_HYPERLINK": "0"}, False),
        ({"FORCE_HYPERLINK": "1"}, True),
    ],
)
def test_links_where_the_terminal_says_that_it_has_them(
    terminal: pytest.MonkeyPatch, variables: dict[str, str], links: bool
) -> None:
    for name, value in variables.items():
        terminal.setenv(name, value)
    assert screen(terminal, "auto").links is links
    assert screen(terminal, "never").links is False


def test_a_pipe_has_neither(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("FORCE_HYPERLINK", "1")
    assert screen(terminal, "auto", io.StringIO()) == Screen(False, False, None)
    assert screen(terminal, "always", io.StringIO()) == Screen(True, False, None)


# progress


def progress(monkeypatch: pytest.MonkeyPatch, seconds: list[float], *, shown: bool = True) -> tuple[Progress, Terminal]:
    """A line whose clock says these seconds one after another, and what it is written to."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("COLUMNS", "40")
    clock = iter([0.0, *seconds])
    return Progress(shown=shown, clock=lambda: next(clock)), stream


def test_progress_begins_late_and_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    late = BEGINS_AFTER + 0.1
    line, stream = progress(monkeypatch, [0.5, late, late + 0.01, late + 1])
    for number in range(4):
        line(number, 2000, f"jobs/{number}.yaml")
    line.clear()
    assert stream.getvalue() == (
        "\r\x1b[Kchecking 1 of 2,000 files: jobs/1.yaml\r\x1b[Kchecking 3 of 2,000 files: jobs/3.yaml\r\x1b[K"
    )


def test_progress_fits_into_the_line_and_is_printable(monkeypatch: pytest.MonkeyPatch) -> None:
    line, stream = progress(monkeypatch, [9.0])
    line(0, 1, f"\x1b]0;z\n{'模' * 50}")
    assert stream.getvalue() == f"\r\x1b[Kchecking 0 of 1 files: \\x1b]0;z\\n{'模' * 3}"


def test_progress_is_never_shown_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    line, stream = progress(monkeypatch, [9.0], shown=False)
    line(0, 1, "a.yaml")
    line.clear()
    assert stream.getvalue() == ""
    assert line.begun == [(9.0, "a.yaml")]


def test_remarks_come_above_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    line, stream = progress(monkeypatch, [9.0])
    tell = line.above(lambda path, what: print(path, what, file=stream))
    line(0, 1, "a.yaml")
    tell("a.yaml", "read")
    tell("a.yaml", "again")
    assert stream.getvalue() == "\r\x1b[Kchecking 0 of 1 files: a.yaml\r\x1b[Ka.yaml read\na.yaml again\n"
