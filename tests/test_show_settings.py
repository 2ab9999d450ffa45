"""--show-settings, and the JSON Schema of the settings: both are made of the one table of settings."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner, Result

from external import ROOT
from trainlint.catalogue import VOCABULARY, rule_names
from trainlint.cli import main
from trainlint.settings import SettingsError
from trainlint.settings.kinds import At
from trainlint.settings.reader import read_settings
from trainlint.settings.schema import schema
from trainlint.settings.table import IN_OVERRIDES, SETTINGS, TOP

SCHEMA = ROOT / "docs" / "settings.schema.json"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def write(name: str, content: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(content, encoding="utf-8")


def run(*args: str) -> Result:
    return CliRunner().invoke(main, ["check", "--show-settings", *args])


def shown(*args: str) -> dict[str, str]:
    """The lines of the first block, by key; without the blanks before a comment."""
    lines = run(*args).stdout.split("\n\n")[0].splitlines()
    return {line.partition(" = ")[0]: " ".join(line.partition(" = ")[2].split()) for line in lines if " = " in line}


def test_without_settings() -> None:
    done = run()
    assert done.exit_code == 0
    assert (
        done.stdout
        == f"""\
# .: no settings file
select = ["ALL"]                                              # default
ignore = []                                                   # default
extend-select = []                                            # default
extend-ignore = []                                            # default
per-file-ignores = {{}}                                         # default
extend-per-file-ignores = {{}}                                  # default
severity = {{}}                                                 # default
require-reason = false                                        # default
exclude = []                                                  # default
targets = {{}}                                                  # default
runtimes = "open"                                             # default
fail-on = "error"                                             # default
format = "text"                                               # default
cluster = {{}}                                                  # default
# {len(rule_names())} of {len(rule_names())} rules are used
"""
    )


def test_each_value_has_its_place() -> None:
    write("base.toml", 'exclude = ["a"]\nignore = ["FS"]\nfail-on = "note"\n[targets]\nsoup = "0.77.0"\n')
    write(
        "pyproject.toml",
        '[tool.trainlint]\nextend = "base.toml"\nexclude = ["b"]\nignore = ["TT102"]\n'
        'targets = {axolotl = ["0.9.2", "0.12.2"]}\n'
        '[[tool.trainlint.overrides]]\npaths = ["jobs/"]\nprogram = "axolotl"\nignore = ["YD"]\n'
        '[[tool.trainlint.overrides]]\npaths = ["other/"]\nselect = ["TL"]\n',
    )
    write("jobs/a.yaml", "")
    values = shown("jobs/a.yaml", "--target", "axolotl=0.13.0", "--fail-on", "warning", "--ignore", "TJ5")
    project = "pyproject.toml"
    assert values["exclude"] == '["a", "b"] # base.toml:1, pyproject.toml:3'
    assert values["ignore"] == f'["FS", "TT102", "YD", "TJ5"] # base.toml:2, {project}:4, {project}:9, --ignore'
    assert values["targets"] == '{soup = "0.77.0", axolotl = "0.13.0"} # base.toml:4, pyproject.toml:5, --target'
    assert values["program"] == '"axolotl" # pyproject.toml:8'
    assert values["fail-on"] == '"warning" # --fail-on'
    assert values["select"] == '["ALL"] # default'
    done = run("jobs/a.yaml", "--ignore", "TJ5")
    assert done.stdout.startswith("# jobs/a.yaml: pyproject.toml, then base.toml\n")
    left = [code for code, _ in rule_names().items() if not code.startswith(("FS", "YD", "TJ5")) and code != "TT102"]
    assert done.stdout.endswith(f"# {len(left)} of {len(rule_names())} rules are used, all but FS, TJ5, TT102, YD\n")


def test_what_selects_anew() -> None:
    """`select` leaves nothing of what an extended file selects and ignores, nor per-file-ignores of those there."""
    write("base.toml", 'ignore = ["FS"]\nextend-select = ["FS003"]\nper-file-ignores = {a = ["TT"]}\n')
    write("trainlint.toml", 'extend = "base.toml"\nselect = ["TT"]\n[per-file-ignores]\nb = ["TT1"]\n')
    values = shown()
    assert values["select"] == '["TT"] # trainlint.toml:2'
    assert values["ignore"] == "[] # default"
    assert values["extend-select"] == "[] # default"
    assert values["per-file-ignores"] == '{b = ["TT1"]} # trainlint.toml:3'
    assert shown("--per-file-ignores", "c d:TJ")["per-file-ignores"] == '{"c d" = ["TJ"]} # --per-file-ignores'


def test_exclude_of_the_files_above() -> None:
    write("trainlint.toml", 'exclude = ["a"]\nfail-on = "note"\n')
    write("one/trainlint.toml", 'exclude = ["b"]\n')
    write("one/two/trainlint.toml", '\nexclude = ["c"]\n')
    write("one/two/x.yaml", "")
    values = shown("one/two/x.yaml")
    assert values["exclude"] == '["a", "b", "c"] # trainlint.toml:1, one/trainlint.toml:1, one/two/trainlint.toml:2'
    assert values["fail-on"] == '"error" # default'


def test_as_json() -> None:
    write("trainlint.toml", 'select = ["TL"]\n')
    document = json.loads(run(".", "trainlint.toml", "--format", "json").stdout)
    assert document["version"] == 1
    one, other = document["files"]
    assert (one["path"], other["path"]) == (".", "trainlint.toml")
    assert one["settings"] == ["trainlint.toml"]
    assert one["values"]["select"] == {"value": ["TL"], "from": ["trainlint.toml:1"]}
    assert one["values"]["fail-on"] == {"value": "error", "from": []}
    assert one["off"] == ["FS", "TJ", "TT", "YD"]


@pytest.mark.parametrize(
    ("args", "files"), [(["--isolated"], "no settings file"), (["--config", "other.toml"], "other.toml")]
)
def test_the_settings_that_options_name(args: list[str], files: str) -> None:
    write("trainlint.toml", 'exclude = ["a"]\n')
    write("other.toml", "")
    done = run(*args)
    assert done.stdout.startswith(f"# .: {files}\n")
    assert "# trainlint.toml" not in done.stdout


def test_wrong_use() -> None:
    done = run("--format", "sarif")
    assert done.exit_code == 2
    assert "--show-settings is shown as text or json." in done.stderr
    missing = run("nosuch.yaml")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert missing.stderr == "trainlint: nosuch.yaml: no such file or folder\n"
    write("trainlint.toml", "zzz = 1")
    assert run().stderr.endswith("trainlint.toml:1: unknown setting 'zzz'\n")
    assert run().exit_code == 2


def test_the_schema_in_docs_is_current() -> None:
    done = CliRunner().invoke(main, ["settings-schema"])
    assert done.exit_code == 0
    assert done.stdout == SCHEMA.read_text(encoding="utf-8"), "make docs writes it anew"


def test_the_schema_is_one() -> None:
    document = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft7Validator.check_schema(document)
    assert list(document["properties"]) == [*TOP, "overrides"]
    assert list(document["properties"]["overrides"]["items"]["properties"]) == list(IN_OVERRIDES)
    assert all(one["description"].endswith(".") for one in document["properties"].values())


VALUES: list[object] = [
    *("x", "", "ALL", "TT102", "none", "warning", "off", "open", "sarif", "0.12.2"),
    *(1, True, False, None, [], [1], ["TT"], ["x y"], [["TT"]], {}, {"TT": "off"}, {"TT": "x"}, {"a/": ["TT"]}),
    *({"axolotl": "0.12.2"}, {"axolotl": ["0.12.2"]}, {"axolotl": []}, {"axolotl": 1}, {"nope": "1"}),
    *({"runtimes": ["a"]}, {"runtimes": "a"}, {"a": ["x"]}),
]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.key)
def test_schema_and_reader_accept_the_same(setting: object) -> None:
    """Each kind of value, in the right and in the wrong setting."""
    kind = next(one for one in SETTINGS if one is setting).kind
    whole = {**schema(VOCABULARY), **kind.schema(VOCABULARY)}
    for key in ("properties", "additionalProperties", "$id"):
        if key not in kind.schema(VOCABULARY):
            whole.pop(key, None)
    whole["type"] = kind.schema(VOCABULARY)["type"]
    validator = jsonschema.Draft7Validator(whole)
    at = At(Path("trainlint.toml"), "", VOCABULARY, ("x",))
    for value in VALUES:
        try:
            kind.read(at, value)
            accepted = True
        except SettingsError:
            accepted = False
        assert validator.is_valid(value) is accepted, value


def test_defaults_are_those_of_the_code(folder: Path) -> None:
    """A file that writes every default says nothing."""
    lines = [f"{one.key} = {one.default}" for one in SETTINGS if one.default and one.key != "select"]
    write("all.toml", "\n".join(lines))
    write("none.toml", "")
    assert read_settings(folder / "all.toml", VOCABULARY) == read_settings(folder / "none.toml", VOCABULARY)


def test_options_are_shown_under_their_names() -> None:
    lines = shown("--extend-ignore", "FS", "--baseline", "known.json")
    assert lines["extend-ignore"] == '["FS"] # --extend-ignore'
    assert lines["ignore"] == "[] # default"
    assert lines["baseline"] == '"known.json" # --baseline'


@pytest.mark.parametrize("form", ["concise", "grouped", "jsonl"])
def test_formats_of_lines_are_those_of_their_kind(form: str) -> None:
    """An alias or a task that has a format may ask for the settings and files, too."""
    done = run("--format", form)
    assert (done.exit_code, done.stdout[:1]) == (0, "{" if form == "jsonl" else "#")


def test_a_file_of_no_program() -> None:
    """No count of rules is shown for it."""
    write("trainlint.toml", '[[overrides]]\npaths = ["a.yaml"]\nprogram = "none"\n')
    write("a.yaml", "base_model: x\n")
    assert run("a.yaml").stdout.splitlines()[-1] == "# the file is not checked: it is no program's"
    assert json.loads(run("a.yaml", "--format", "json").stdout)["files"][0]["leftAlone"] is True
    assert run(".").stdout.splitlines()[-1].endswith(" rules are used")
