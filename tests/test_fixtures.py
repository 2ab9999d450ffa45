"""Each rule's fixture folder: what is bad is found where it says and reported as its snapshot says; good is clean."""

from __future__ import annotations

import difflib
import re

import pytest

from cases import FIXTURES, Case, cases, judged
from trainlint.catalogue import all_rules, find_rule

RULES = {rule.code: rule for rule in all_rules()}


def _name(case: Case) -> str:
    return f"{case.code}/{case.path.name}"


@pytest.mark.parametrize("case", cases("bad"), ids=_name)
def test_bad(case: Case) -> None:
    """Exactly the expected findings, each at its line and columns, the folder's own rule among them."""
    assert case.found() == sorted(case.expected())
    assert case.code in {finding.rule for finding in judged(case)[0].active}


@pytest.mark.parametrize("case", cases("bad"), ids=_name)
def test_snapshot(case: Case) -> None:
    """Every word of the report is as it was when it was last looked at."""
    name = f"fixtures/{case.code}/{case.snapshot.name}"
    kept = case.snapshot.read_text(encoding="utf-8").splitlines() if case.snapshot.is_file() else []
    changes = list(difflib.unified_diff(kept, judged(case)[1].splitlines(), name, "the report now", lineterm=""))
    if changes:
        pytest.fail("\n".join(["run make snapshots, and look at what it changes", *changes]), pytrace=False)


def test_no_snapshot_without_a_case() -> None:
    assert set(FIXTURES.glob("*/*.out")) == {case.snapshot for case in cases("bad")}, "run make snapshots"


def test_each_case_has_a_snapshot_of_its_own() -> None:
    snapshots = [case.snapshot for case in cases("bad")]
    assert len(snapshots) == len(set(snapshots)), "bad.yaml and bad/ would share bad.out"


@pytest.mark.parametrize("case", cases("good"), ids=_name)
def test_good(case: Case) -> None:
    """Nothing at all is found."""
    assert [(f.rule, f.span.line, f.message) for f in judged(case)[0].active] == []


@pytest.mark.parametrize("code", RULES)
def test_rule_is_whole(code: str) -> None:
    """Each rule has documentation with its source, a bad and a good fixture."""
    rule = RULES[code]
    assert rule.summary.endswith("."), "the first line of the docstring is a sentence"
    assert re.search(r"^Source: ", rule.documentation, re.MULTILINE), "the docstring names its source"
    assert find_rule(rule.name) is rule
    assert any(case.code == code for case in cases("bad")), f"fixtures/{code}/bad*"
    assert any(case.code == code for case in cases("good")), f"fixtures/{code}/good*"


def test_no_fixtures_of_unknown_rules() -> None:
    """Every folder of fixtures is a rule's, or the demo."""
    assert {folder.name for folder in FIXTURES.iterdir() if folder.is_dir()} <= {*RULES, "demo"}
