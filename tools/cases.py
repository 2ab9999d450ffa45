"""The cases of the fixtures: the findings that each expects, and the text report in its snapshot."""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from trainlint import fixes
from trainlint.catalogue import all_rules, parse_target
from trainlint.engine import lint
from trainlint.findings import Finding
from trainlint.report import Report
from trainlint.reports import render
from trainlint.settings import Overrides
from trainlint.targets import How, Target

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
WITHOUT = frozenset(("TL004",))
"""Rules that no file is known to bring about."""
EXPECTATIONS = "expect.txt"
_COMMENT = re.compile(rb"[ \t]*#[ \t]*expect:[^\r\n]*")
_INLINE = re.compile(r"#\s*expect:\s*(.+)$")
_ONE = re.compile(r"([A-Z]{2}\d{3}) (\d+)-(\d+)")
_ROW = re.compile(r"([^#:]+):(\d+):(\d+) (\S+)")


@dataclass(frozen=True, order=True)
class Expected:
    """A finding that a case expects; its end column is 0 where it is not stated."""

    file: str
    line: int
    code: str
    column: int
    end_column: int


@dataclass(frozen=True)
class Case:
    """A file, or a folder that is a small repository, in the folder of a rule's code."""

    path: Path

    @property
    def code(self) -> str:
        """The code of its rule."""
        return self.path.parent.name

    @property
    def is_folder(self) -> bool:
        """It is a repository; its expectations are in a file of their own."""
        return self.path.is_dir()

    @property
    def snapshot(self) -> Path:
        """The file of its text report: `bad.out` beside `bad.yaml` or `bad/`."""
        name = self.path.name if self.is_folder else self.path.stem
        return self.path.with_name(f"{name}.out")

    @property
    def kept(self) -> str:
        """The content of the snapshot; empty where there is none yet."""
        return self.snapshot.read_text(encoding="utf-8") if self.snapshot.is_file() else ""

    def overrides(self) -> Overrides:
        """The `# target:` and `# runtimes:` of the first lines of the file or of the folder's expectations."""
        head = self.path / EXPECTATIONS if self.is_folder else self.path
        targets: dict[str, Target] = {}
        runtimes = "open"
        lines = head.read_bytes().decode("utf-8", "replace").splitlines()[:5] if head.is_file() else []
        for line in lines:
            if match := re.match(r"#\s*target:\s*(\S+)", line):
                targets.update(parse_target(match.group(1)))
            elif match := re.match(r"#\s*runtimes:\s*(\w+)", line):
                runtimes = match.group(1)
        return Overrides(targets=targets, runtimes=runtimes)

    def expected(self) -> Iterator[Expected]:
        """The findings in its comments or rows."""
        if self.is_folder:
            for row in (self.path / EXPECTATIONS).read_text(encoding="utf-8").splitlines():
                if match := _ROW.match(row):
                    yield Expected(match[1], int(match[2]), match[4], int(match[3]), 0)
            return
        for number, line in enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1):
            if match := _INLINE.search(line):
                for code, start, end in _ONE.findall(match[1]):
                    yield Expected(self.path.name, number, code, int(start), int(end))

    def found(self) -> list[Expected]:
        """The findings of the linter, in the form of `expected`."""
        return sorted(self._as_expected(finding) for finding in judged(self)[0].active)

    def _as_expected(self, finding: Finding) -> Expected:
        at = finding.span
        end = 0 if self.is_folder or at.end_line > at.line else at.end_column
        return Expected(at.path, at.line, finding.rule, at.column, end)

    def files(self) -> dict[str, bytes]:
        """Its files by their path in the case, without the expectations."""
        if not self.is_folder:
            return {self.path.name: _COMMENT.sub(b"", self.path.read_bytes())}
        files = sorted(file for file in self.path.rglob("*") if file.is_file() and file.name != EXPECTATIONS)
        return {file.relative_to(self.path).as_posix(): file.read_bytes() for file in files}


def cases(prefix: str) -> list[Case]:
    """The cases of all rules whose name begins with the prefix."""
    codes = {rule.code for rule in all_rules()}
    return [
        Case(path)
        for folder in sorted(FIXTURES.iterdir())
        if folder.name in codes
        for path in sorted(folder.glob(f"{prefix}*"))
        if path.is_dir() or path.suffix in (".yaml", ".yml")
    ]


@cache
def judged(case: Case) -> tuple[Report, str]:
    """The report on a case, and its text with the safe fixes as a diff; it is the same on every machine."""
    with copied(case):
        overrides = by_the_newest(case.overrides())
        report = lint([Path()], overrides)
        told, before = render("text", report), case.files()
        now = report
        for unsafe, label in ((False, "fixed"), (True, "with unsafe fixes")):
            while changed := fixes.mended(now, unsafe=unsafe):
                for file in changed:
                    Path(file.path).write_bytes(file.data)
                now = lint([Path()], overrides)
            for name, data in before.items():
                told += _diff(name, data, Path(name).read_bytes(), label)
            before = {name: Path(name).read_bytes() for name in before}
        return report, told


def by_the_newest(overrides: Overrides) -> Overrides:
    """The options for the current folder; where it states no release of a program, the newest one is used.

    torchtune is an exception, because its rules depend on whether the release is stated.
    """
    report = lint([Path()], overrides)
    open_ = {
        name: Target(target.versions[-1:], "option")
        for name, target in report.targets.items()
        if target.how is How.NOT_STATED and name != "torchtune"
    }
    return replace(overrides, targets={**open_, **overrides.targets})


@contextmanager
def copied(case: Case) -> Iterator[None]:
    """Enter a temporary repository with only the case, so that paths are relative to it."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        for name, data in case.files().items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def _diff(name: str, before: bytes, after: bytes, label: str) -> str:
    old, new = (data.decode("utf-8", "replace").splitlines() for data in (before, after))
    lines = list(difflib.unified_diff(old, new, name, f"{name} ({label})", lineterm=""))
    return "\n".join(["", *lines, ""]) if lines else ""
