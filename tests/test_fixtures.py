"""Each rule's fixture folder: what is bad is found where it says and reported as its snapshot says; good is clean."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
import sys
from functools import cache

import pytest

from cases import FIXTURES, WITHOUT, Case, cases, judged
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
    changes = list(
        difflib.unified_diff(case.kept.splitlines(), judged(case)[1].splitlines(), name, "the report now", lineterm="")
    )
    if changes:
        pytest.fail("\n".join(["run make snapshots, and look at what it changes", *changes]), pytrace=False)


def test_no_snapshot_without_a_case() -> None:
    orphans = set(FIXTURES.glob("*/*.out")) - {case.snapshot for case in cases("bad")}
    assert orphans == set(), "run make snapshots"


def test_each_case_has_a_snapshot_of_its_own() -> None:
    snapshots = [case.snapshot for case in cases("bad")]
    assert len(snapshots) == len(set(snapshots)), "bad.yaml and bad/ would share bad.out"


@cache
def _reports() -> str:
    return "".join(case.kept for case in cases("bad"))


@pytest.mark.parametrize("module", sorted({rule.check.__module__ for rule in RULES.values()}))
def test_every_text_is_shown(module: str) -> None:
    """What a rule can say stands in a snapshot, so that no word changes unnoticed."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    left_out = {RULES[code].check.__name__ for code in WITHOUT}
    tree.body = [node for node in tree.body if not (isinstance(node, ast.FunctionDef) and node.name in left_out)]
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    docstrings.update(
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "varies"
    )
    said = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    }
    hidden = {text for text in said if re.search(r"[a-z]", text) and " " in text and text not in _reports()}
    assert hidden == set(), "no bad fixture of the rules brings these about"


@pytest.mark.parametrize("case", cases("good"), ids=_name)
def test_good(case: Case) -> None:
    """Nothing at all is found, and everything was looked at."""
    assert not judged(case)[0].crashed
    assert [(f.rule, f.span.line, f.message) for f in judged(case)[0].active] == []


@pytest.mark.parametrize("code", RULES)
def test_rule_is_whole(code: str) -> None:
    """Each rule has documentation with its source, and the two fixtures that its page shows."""
    rule = RULES[code]
    assert rule.summary.endswith("."), "the first line of the docstring is a sentence"
    assert re.search(r"^Source: ", rule.documentation, re.MULTILINE), "the docstring names its source"
    assert find_rule(rule.name) is rule
    folder = FIXTURES / code
    if code in WITHOUT:
        assert not folder.exists()
        return
    assert [(folder / name).is_dir() for name in ("bad", "good")] in ([True, True], [False, False]), "of one kind"
    for name in ("bad", "good"):
        assert (folder / name).is_dir() != (folder / f"{name}.yaml").is_file(), f"fixtures/{code}/{name}"


def test_no_fixtures_of_unknown_rules() -> None:
    """Every folder of fixtures is a rule's, or the demo."""
    assert {folder.name for folder in FIXTURES.iterdir() if folder.is_dir()} <= {*RULES, "demo"}
