"""README.md shows what the program prints now, and names the options, formats and keys that it has now."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import click
import yaml

from external import DEMO, ROOT, run
from readme import filled
from trainlint.catalogue import VOCABULARY, all_rules
from trainlint.cli import check
from trainlint.findings import Stage
from trainlint.programs.table import PROGRAMS, VERDICTS
from trainlint.reports import FORMATS
from trainlint.settings import Settings
from trainlint.settings.reader import read_settings
from trainlint.settings.table import IN_OVERRIDES, TOP
from trainlint.training.declarations import declarations

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text below a heading, up to the next of the same or a higher level."""
    level = title.split()[0]
    return re.split(rf"\n#{{1,{len(level)}}} ", TEXT.split(f"\n{title}\n", 1)[1], maxsplit=1)[0]


def test_outputs_are_real() -> None:
    assert TEXT.count("<!-- output: trainlint check ") == 4
    assert TEXT.count("<!-- output: trainlint resolve ") == 1
    assert filled(TEXT) == TEXT, "make docs writes them anew"


def test_every_program_is_named() -> None:
    """In the table that tools/readme.py writes, in the first paragraph and in a description of its rules."""
    table = TEXT.partition("<!-- programs -->")[2].partition("<!-- /programs -->")[0]
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) - {"--target"} == PROGRAMS.keys()
    rule_sets = section("## What it looks at").partition("\n### ")[2]
    for text in (TEXT.split("\n\n")[1], rule_sets):
        words = " ".join(text.lower().split())
        assert [program.title for program in PROGRAMS.values() if program.title.lower() not in words] == []


def test_every_family_is_named() -> None:
    described = section("## What it looks at")
    named = set(re.findall(r"`([A-Z]{2})`", described))
    assert {rule.code[:2] for rule in all_rules()} - {"TL"} == named, "the heading of each rule set names its family"


def test_options() -> None:
    listed = set(re.findall(r"`(--?[a-z-]+)", section("## Options").split("\n### ")[0]))
    assert listed == {
        option for parameter in check.params if isinstance(parameter, click.Option) for option in parameter.opts
    }
    assert re.findall(r"^\| `(\w+)` \|", section("### Formats"), re.MULTILINE) == list(FORMATS)


def test_examples_of_settings(tmp_path: Path) -> None:
    """Each can be read; those of README.md and of the page on settings show most of the keys."""
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    (tmp_path / ".git").mkdir()
    (tmp_path / "trainlint.toml").write_text("", encoding="utf-8")
    folder = tmp_path / "inner"
    folder.mkdir()
    shown = ""
    for text in (section("## Settings"), page):
        for example in re.findall(r"```toml\n(.*?)```", text, re.DOTALL):
            whole = "[tool.trainlint" in example
            file = folder / ("pyproject.toml" if whole else "trainlint.toml")
            file.write_text(example, encoding="utf-8")
            assert read_settings(file, VOCABULARY) != Settings(base=folder)
            shown += example
    missing = [key for key in {**TOP, **IN_OVERRIDES} if not re.search(rf"^(\[tool\.trainlint\.)?{key}\b", shown, re.M)]
    assert missing == ["extend-ignore", "extend-per-file-ignores"]


def test_the_table_of_settings() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert filled(page) == page, "make docs writes it anew"
    assert {*TOP, *IN_OVERRIDES} == set(re.findall(r"^\| `([a-z-]+)`", page, re.MULTILINE))


def test_json_keys() -> None:
    command = [sys.executable, "-m", "trainlint", "check", "--format", "json", str(DEMO)]
    document = json.loads(run(command, cwd=ROOT, env=dict(os.environ)).stdout)
    of_document, of_finding = section("## JSON").split("| key of a finding")
    for table, keys in ((of_document, document), (of_finding, document["findings"][0])):
        listed = [
            name
            for cell in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
            for name in re.findall(r"`(\w+)(?:\[\])?`", cell)
        ]
        assert listed == list(keys)


def test_kubernetes() -> None:
    """The servers that are known, and those that count where nothing says which one runs."""
    words = " ".join(TEXT.split())
    known = VERDICTS["kubernetes"]
    assert f"Known are Kubernetes {known.releases[0]} to {known.releases[-1]};" in words
    assert f"an error is what all of {known.usual[0]} to {known.usual[-1]} refuse" in words


def test_the_example_of_releases_that_limit_each_other() -> None:
    required = declarations("llamafactory").bounds("0.9.5")["transformers"]
    assert "<=5.6.0" in required
    assert "LLaMA-Factory 0.9.5 needs transformers 5.6 or older" in " ".join(TEXT.split())


def test_stages() -> None:
    assert re.findall(r"^\| `(\w+)` \|", section("## Stages"), re.MULTILINE)[: len(Stage)] == [
        one.value for one in Stage
    ]


def test_inputs_and_outputs_of_the_action() -> None:
    """The tables name those of action.yml, with their defaults."""
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    inputs, outputs = section("### As a GitHub Action").split("| output |")
    told = dict(re.findall(r"^\| `([\w-]+)` \| (?:`([^`]*)` )?\|", inputs, re.MULTILINE))
    assert told == {name: str(given.get("default", "")) for name, given in action["inputs"].items()}
    assert re.findall(r"^\| `([\w-]+)` \|", outputs, re.MULTILINE) == list(action["outputs"])
