"""Patterns in the style of .gitignore mean what git means by them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from external import need
from trainlint.budget import BUDGET
from trainlint.repository.patterns import PatternError, Patterns

PATHS = """
a.yaml b.yaml aa.yaml ab.yaml a*.yaml a[.yaml x/a.yaml x/b.yaml x/y/a.yaml x/y/z/a.yaml y/x/a.yaml deep/x/y/b.yaml
out/a.yaml sub/out/a.yaml out.yaml/a !a #a
""".split()
MEANT = {
    "a.yaml": "a.yaml x/a.yaml x/y/a.yaml x/y/z/a.yaml y/x/a.yaml out/a.yaml sub/out/a.yaml",
    "/a.yaml": "a.yaml",
    "x/a.yaml": "x/a.yaml",
    "x/": "x/a.yaml x/b.yaml x/y/a.yaml x/y/z/a.yaml y/x/a.yaml deep/x/y/b.yaml",
    "/x": "x/a.yaml x/b.yaml x/y/a.yaml x/y/z/a.yaml",
    "x/**": "x/a.yaml x/b.yaml x/y/a.yaml x/y/z/a.yaml",
    "x/***": "x/a.yaml x/b.yaml x/y/a.yaml x/y/z/a.yaml",
    "x/**/a.yaml": "x/a.yaml x/y/a.yaml x/y/z/a.yaml",
    "**/y/a.yaml": "x/y/a.yaml",
    "**/x/**/b.yaml": "x/b.yaml deep/x/y/b.yaml",
    "x/*/a.yaml": "x/y/a.yaml",
    "x/*": "x/a.yaml x/b.yaml x/y/a.yaml x/y/z/a.yaml",
    "*/out": "sub/out/a.yaml",
    "out.yaml/": "out.yaml/a",
    "a?.yaml": "aa.yaml ab.yaml a*.yaml a[.yaml",
    "a[ab].yaml": "aa.yaml ab.yaml",
    "a[!a].yaml": "ab.yaml a*.yaml a[.yaml",
    "a[^a].yaml": "ab.yaml a*.yaml a[.yaml",
    "a[a-c].yaml": "aa.yaml ab.yaml",
    "a[c-a].yaml": "",
    "a\\*.yaml": "a*.yaml",
    "a[*].yaml": "a*.yaml",
    "a\\[.yaml": "a[.yaml",
    "a*b.yaml": "ab.yaml",
    "*a*a*": "aa.yaml aa.yaml x/a.yaml x/y/a.yaml x/y/z/a.yaml y/x/a.yaml out/a.yaml sub/out/a.yaml a.yaml ab.yaml "
    "a*.yaml a[.yaml",
    "\\!a": "!a",
    "\\#a": "#a",
    "#a": "",
    "b.yaml  ": "b.yaml x/b.yaml deep/x/y/b.yaml",
}


@pytest.mark.parametrize("pattern", MEANT)
def test_what_a_pattern_means(pattern: str) -> None:
    patterns = Patterns([pattern])
    assert {path for path in PATHS if patterns.match(path)} == set(MEANT[pattern].split())


@pytest.mark.parametrize("pattern", MEANT)
def test_git_means_the_same(pattern: str, tmp_path: Path) -> None:
    need(shutil.which("git"), "git")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text(f"{pattern}\n", encoding="utf-8")
    said = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin"],
        cwd=tmp_path,
        input="".join(f"{path}\n" for path in PATHS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(said.stdout.splitlines()) == set(MEANT[pattern].split())


def test_later_patterns_win() -> None:
    patterns = Patterns(["*.yaml", "!a.yaml", "x/", "!x/b.yaml"])
    assert [path for path in ("b.yaml", "a.yaml", "x/a.yaml", "x/b.yaml") if patterns.match(path)] == [
        "b.yaml",
        "x/a.yaml",
    ]


@pytest.mark.parametrize("pattern", ["!", "/", "a\\", "a" * (BUDGET.pattern + 1), "*a" * (BUDGET.stars + 1)])
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(PatternError):
        Patterns([pattern])


def test_there_is_an_end_of_patterns() -> None:
    for written in (["a"] * (BUDGET.patterns + 1), ["*a*"] * (BUDGET.patterns // 2 + 1)):
        with pytest.raises(PatternError):
            Patterns(written)
