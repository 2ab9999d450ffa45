"""A file of known findings that do not count, so that only new ones do."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from trainlint.findings import Finding
from trainlint.records import NamedTuple, dataclass, replace
from trainlint.report import Report
from trainlint.repository.bounds import Bounds
from trainlint.repository.discover import trap
from trainlint.repository.writing import write_whole
from trainlint.settings import SettingsError

VERSION = 3
_LARGEST = 100_000_000
"""Bytes of a baseline: one of 500,000 findings has fewer."""
FAULT = "TL004"
"""No fault of trainlint's is ever known and done with."""


class Row(NamedTuple):
    """One known finding; `path` is relative to the repository's root, or to the workspace outside git.

    `fingerprint` is made of rule, document, field and the marked text, and not of the path: a moved file keeps its
    rows.
    """

    path: str
    rule: str
    field: str
    fingerprint: str


@dataclass(frozen=True)
class Baseline:
    """The rows of a baseline file; `notice` is a message for the user."""

    rows: tuple[Row, ...]
    notice: str = ""


class Applied(NamedTuple):
    """A report with its known findings marked; the rows that were found, with the paths of today, and the others."""

    report: Report
    found: tuple[Row, ...]
    left: tuple[Row, ...]


class Places:
    """Where the files of rows are, below the homes of a run's files; those outside a home are not looked up."""

    def __init__(self, homes: Iterable[Path], named: Iterable[Path]) -> None:
        self._homes = [(home, Bounds(home)) for home in sorted(homes)]
        self._named = [os.path.abspath(path) for path in named]

    def exists(self, path: str) -> bool:
        """The file of a row exists, as far as anybody may know."""
        return any(bounds.leaves(home / path) or os.path.exists(home / path) for home, bounds in self._homes)

    def covered(self, path: str) -> Path | None:
        """The file of a row if it is one of the named paths, or below one of them.

        One that is no longer there may have been moved: nobody knows unless all of its home is named.
        """
        for home, bounds in self._homes:
            file = home / path
            if not bounds.leaves(file) and self._are_named(file if os.path.lexists(file) else home):
                return file
        return None

    def _are_named(self, file: Path) -> bool:
        """The file or folder is a named path, or below one."""
        return any(str(file) == named or str(file).startswith(os.path.join(named, "")) for named in self._named)


def read(file: Path) -> Baseline:
    """The baseline in a file. Rows of version 1 cannot be matched; the notice says so.

    Raises SettingsError when the file is not a baseline.
    """
    if found := trap(file):
        raise SettingsError(f"{file}: {found}")
    try:
        with open(file, "rb") as stream:
            content = stream.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise SettingsError(f"{file}: cannot be read: it is larger than {_LARGEST // 1_000_000} MB")
        data = json.loads(content)
        if data["version"] == 1 and isinstance(data["findings"], list):
            return Baseline(
                (),
                f"{file} was written by an older release and cannot be used: write it again with "
                f"--baseline {file} --write-baseline",
            )
        if data["version"] not in (2, VERSION):
            raise ValueError(data["version"])
        # Version 2 had the path in its fingerprint, and the same without it beside.
        fingerprint = "content" if data["version"] == 2 else "fingerprint"
        keys = ("path", "rule", "field", fingerprint)
        rows = (Row(*(str(row[key]) for key in keys)) for row in data["findings"])
        return Baseline(tuple(rows))
    except FileNotFoundError:
        raise SettingsError(f"{file}: there is no such baseline; write it with --write-baseline") from None
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SettingsError(f"{file}: not a baseline of version {VERSION}; write it with --write-baseline") from None


def apply(report: Report, known: Baseline, exists: Callable[[str], bool]) -> Applied:
    """Mark the findings that have a row.

    Each row is for one finding of its path and fingerprint, or, where the row's file no longer exists (it was moved),
    for one of the same fingerprint. `exists` tells whether the file of a row exists.
    """
    left = Counter(known.rows)
    held: dict[int, Row] = {}
    remaining: list[Finding] = []
    for finding in report.findings:
        if finding.suppressed is None and not finding.baselined:
            row = _row(finding)
            if left[row] > 0:
                left[row] -= 1
                held[id(finding)] = row
            else:
                remaining.append(finding)
    moved: dict[str, list[Row]] = {}
    there = {path: exists(path) for path in {row.path for row in left.elements()}}
    for row in left.elements():
        if not there[row.path]:
            moved.setdefault(row.fingerprint, []).append(row)
    for finding in remaining:
        if moved.get(finding.content):
            left[moved[finding.content].pop()] -= 1
            held[id(finding)] = _row(finding)
    findings = tuple(
        replace(finding, baselined=finding.baselined or id(finding) in held) for finding in report.findings
    )
    notices = (*report.notices, *([known.notice] if known.notice else []))
    return Applied(replace(report, findings=findings, notices=notices), tuple(held.values()), tuple(left.elements()))


def marked(report: Report, known: Iterable[Baseline], places: Places) -> Report:
    """A report with what these baselines know marked."""
    for one in known:
        report = apply(report, one, places.exists).report
    return report


def rows_of(report: Report) -> Iterator[Row]:
    """The rows of the findings that no comment suppresses."""
    return (_row(f) for f in report.findings if f.suppressed is None and f.rule != FAULT)


def write(file: Path, rows: Iterable[Row]) -> int:
    """Write rows, each on a line of its own, sorted by path, rule and field; returns their number.

    A kill leaves the old file. Raises OSError, and SettingsError for a link out of the repository.
    """
    if found := trap(file):
        raise SettingsError(f"{file}: {found}")
    lines = [json.dumps(row._asdict()) for row in sorted(rows)]
    listed = ",".join(f"\n  {line}" for line in lines)
    text = f'{{\n "version": {VERSION},\n "findings": [{listed}{chr(10) if lines else ""} ]\n}}\n'
    write_whole(file, text.encode())
    return len(lines)


def _row(finding: Finding) -> Row:
    return Row(finding.home_path, finding.rule, finding.yaml_path, finding.content)
