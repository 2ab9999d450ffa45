"""CONTRIBUTING.md names files, make targets, tests and blocks of codes that exist."""

from __future__ import annotations

import re
from functools import cache

import pytest

from external import ROOT
from trainlint.catalogue import all_rules

TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
NAMED = {word for span in re.findall(r"`([^`\n]+)`", re.sub(r"(?s)```.*?```", "", TEXT)) for word in span.split()}
MADE_UP = re.compile(r"mytrainer|PROGRAM|CODE|WORD|-2\.4|^\.out$|^\.cache/|^pkg/|:")
"""Names that stand for others, that are made, or that are another repository's."""
FOLDERS = ("linter", "tools", "tests", "fixtures", "docs")


def paths() -> list[str]:
    """The words that look like a path of the repository."""
    ends = r"\.(?:py|txt|md|json|toml|yaml)|/"
    return sorted(word for word in NAMED if re.fullmatch(rf"[\w./-]+(?:{ends})", word) and not MADE_UP.search(word))


@cache
def files() -> str:
    """All files, one a line."""
    found = [*ROOT.glob("*.*"), *(file for folder in FOLDERS for file in (ROOT / folder).rglob("*"))]
    return "".join(f"/{file.relative_to(ROOT).as_posix()}\n" for file in found)


@pytest.mark.parametrize("path", paths())
def test_path(path: str) -> None:
    """A path from the root, from the package or from the folder that is spoken of."""
    assert f"/{path}" + ("" if path.endswith("/") else "\n") in files()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make ([\w-]+)", TEXT))))
def test_make_target(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)
    assert re.search(rf"^# make {target}\b", MAKEFILE, re.MULTILINE) or target == "help", "make help lists it"


def test_make_variables() -> None:
    given = set(re.findall(r"\b([A-Z_]+)=", " ".join(re.findall(r"`make [^`]+`", TEXT))))
    assert {name for name in given if f"$({name})" not in MAKEFILE} == set()


def test_tests() -> None:
    code = "".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").glob("test_*.py"))
    named = {word for word in NAMED if re.fullmatch(r"test_\w+", word)}
    assert {name for name in named if f"def {name}(" not in code} == set()


def test_links() -> None:
    headings = {re.sub(r"[^\w-]", "", line.lower().replace(" ", "-")) for line in re.findall(r"^#+ (.+)$", TEXT, re.M)}
    assert set(re.findall(r"\]\(#([\w-]+)\)", TEXT)) <= headings


def test_every_rule_is_in_a_block() -> None:
    """And in a module or folder of its block; the longest block that fits counts."""
    rows = re.findall(r"^\| (`[^|]+`) \| (`.+) \|$", TEXT.partition("## Codes")[2].partition("\n## ")[0], re.MULTILINE)
    blocks = {
        block: tuple(re.findall(r"`([\w/.]+)`", paths))
        for cell, paths in rows
        for block in re.findall(r"`(\w+)`", cell)
    }
    for rule in all_rules():
        own = max((block for block in blocks if rule.code.startswith(block)), key=len, default="")
        module = rule.module.removeprefix("trainlint.").replace(".", "/") + ".py"
        assert own, f"{rule.code} is in no block of CONTRIBUTING.md"
        assert module.startswith(blocks[own]), f"{own} belongs to {', '.join(blocks[own])}, {rule.code} is in {module}"
