"""Each rule's fixture folder: what is bad is found where it says, what is good is clean."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainlint.catalogue import all_rules, find_rule, parse_target
from trainlint.engine import lint
from trainlint.findings import Finding
from trainlint.report import Report
from trainlint.settings import Overrides
from trainlint.targets import Target

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
RULES = {rule.code: rule for rule in all_rules()}
_EXPECT = re.compile(r"#\s*expect:\s*(.+)$")
_ONE = re.compile(r"([A-Z]{2}\d{3}) (\d+)-(\d+)")


def _cases(prefix: str) -> list[Path]:
    return sorted(
        case
        for folder in FIXTURES.iterdir()
        if folder.name in RULES
        for case in folder.glob(f"{prefix}*")
        if case.is_dir() or case.suffix in (".yaml", ".yml")
    )


def _settings(case: Path) -> tuple[dict[str, Target], str]:
    """The `# target:` and `# runtimes:` of the first lines of a file or of a folder's expect.txt."""
    head = case / "expect.txt" if case.is_dir() else case
    targets: dict[str, Target] = {}
    runtimes = "open"
    lines = head.read_bytes().decode("utf-8", "replace").splitlines()[:5] if head.is_file() else []
    for line in lines:
        if match := re.match(r"#\s*target:\s*(\S+)", line):
            targets.update(parse_target(match.group(1)))
        elif match := re.match(r"#\s*runtimes:\s*(\w+)", line):
            runtimes = match.group(1)
    return targets, runtimes


def _lint(case: Path, tmp_path: Path) -> Report:
    copy = tmp_path / "repository"
    if case.is_dir():
        shutil.copytree(case, copy)
    else:
        copy.mkdir()
        shutil.copy(case, copy)
    targets, runtimes = _settings(case)
    return lint([copy], Overrides(targets=targets, runtimes=runtimes))


def _expected(case: Path) -> Iterator[tuple[str, int, str, int, int]]:
    """File name, line, code, first and end column of each expected finding; end 0 where it is left open."""
    if case.is_dir():
        for line in (case / "expect.txt").read_text(encoding="utf-8").splitlines():
            if match := re.match(r"([^#:]+):(\d+):(\d+) (\S+)", line):
                yield match[1], int(match[2]), match[4], int(match[3]), 0
        return
    for number, line in enumerate(case.read_text(encoding="utf-8").splitlines(), 1):
        if match := _EXPECT.search(line):
            for code, start, end in _ONE.findall(match.group(1)):
                yield case.name, number, code, int(start), int(end)


def _found(case: Path, root: Path, finding: Finding) -> tuple[str, int, str, int, int]:
    span = finding.span
    name = Path(span.path).relative_to(root).as_posix() if case.is_dir() else Path(span.path).name
    one_line = span.end_line == span.line and not case.is_dir()
    return name, span.line, finding.rule, span.column, span.end_column if one_line else 0


@pytest.mark.parametrize("case", _cases("bad"), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_bad(case: Path, tmp_path: Path) -> None:
    """Exactly the expected findings, each at its line and columns, the folder's own rule among them."""
    report = _lint(case, tmp_path)
    found = sorted(_found(case, tmp_path / "repository", f) for f in report.active)
    assert found == sorted(_expected(case))
    assert case.parent.name in {finding.rule for finding in report.active}


@pytest.mark.parametrize("case", _cases("good"), ids=lambda case: f"{case.parent.name}/{case.name}")
def test_good(case: Path, tmp_path: Path) -> None:
    """Nothing at all is found."""
    assert [(f.rule, f.span.line, f.message) for f in _lint(case, tmp_path).active] == []


@pytest.mark.parametrize("code", RULES)
def test_rule_is_whole(code: str) -> None:
    """Each rule has documentation with its source, a bad and a good fixture."""
    rule = RULES[code]
    assert rule.summary.endswith("."), "the first line of the docstring is a sentence"
    assert re.search(r"^Source: ", rule.documentation, re.MULTILINE), "the docstring names its source"
    assert find_rule(rule.name) is rule
    assert list((FIXTURES / code).glob("bad*")), f"fixtures/{code}/bad*"
    assert list((FIXTURES / code).glob("good*")), f"fixtures/{code}/good*"


def test_no_fixtures_of_unknown_rules() -> None:
    """Every folder of fixtures is a rule's, or the demo."""
    assert {folder.name for folder in FIXTURES.iterdir() if folder.is_dir()} <= {*RULES, "demo"}
