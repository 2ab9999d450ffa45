"""Shows that every promise of SECURITY.md holds: `python tests/hostile/all.py`, or `make hostile`.

It runs the modules of this folder and prints what each shows, whether it holds, and which tests this machine left out.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROW = re.compile(r"\| `(test_\w+\.py)` \| (.+) \|")


class Outcomes:
    """The tests of each module that passed, and those that did not."""

    def __init__(self) -> None:
        self.passed: dict[str, int] = {}
        self.others: dict[str, list[str]] = {}
        self.failing: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test, or the part of one that failed or was left out."""
        module = Path(report.location[0]).name
        if not report.passed:
            self.others.setdefault(module, []).append(f"{report.nodeid.rpartition('/')[2]}: {report.outcome}")
            self.failing.update([module] if report.failed else [])
        elif report.when == "call":
            self.passed[module] = self.passed.get(module, 0) + 1


def main(arguments: list[str]) -> int:
    """Run all modules; returns 1 where one does not hold."""
    os.environ.setdefault("TRAINLINT_TEST_ALL", "1")
    outcomes = Outcomes()
    code = pytest.main([str(HERE), "-q", "--no-header", *arguments], plugins=[outcomes])
    rows = dict(ROW.findall((HERE / "README.md").read_text(encoding="utf-8")))
    whole = code == 0
    for module in sorted(file.name for file in HERE.glob("test_*.py")):
        others = outcomes.others.get(module, [])
        holds = bool(outcomes.passed.get(module)) and module not in outcomes.failing and module in rows
        whole = whole and holds
        print(f"{'holds' if holds else 'FAILS'}  {outcomes.passed.get(module, 0):5} tests  {rows.get(module, module)}")
        print("".join(f"       {other}\n" for other in others), end="")
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
