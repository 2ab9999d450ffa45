"""README.md shows what the program prints now, and names the options, formats and keys that it has now."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import click

from external import DEMO, ROOT, run
from readme import filled
from trainlint.catalogue import VOCABULARY, all_rules
from trainlint.cli import check
from trainlint.programs.table import PROGRAMS
from trainlint.reports import FORMATS
from trainlint.settings import Settings
from trainlint.settings.reader import read_settings
from trainlint.settings.table import IN_OVERRIDES, TOP

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
