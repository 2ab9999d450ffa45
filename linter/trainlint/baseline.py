"""A file of known findings that do not count, so that only new ones do."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from trainlint.findings import Finding
from trainlint.report import Report
from trainlint.repository.bounds import leads_out
from trainlint.repository.discover import repository_root
from trainlint.settings import SettingsError

VERSION = 2
FAULT = "TL004"
"""No fault of trainlint's is ever known and done with."""


@dataclass(frozen=True)
class Row:
    """One finding in the baseline: its path and its two fingerprints."""

    path: str
    fingerprint: str
    content: str


@dataclass(frozen=True)
class Baseline:
    """The rows of a baseline file; `notice` is a message for the user."""

    rows: tuple[Row, ...]
    notice: str = ""


def read(file: Path) -> Baseline:
    """The baseline in a file. Rows of version 1 cannot be matched; the notice says so.

    Raises SettingsError when the file is not a baseline.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] == 1 and isinstance(data["findings"], list):
            return Baseline(
                (),
                f"{file} was written by an older release and cannot be used: write it again with "
                f"--baseline {file} --write-baseline",
            )
        if data["version"] != VERSION:
            raise ValueError(data["version"])
        rows = (Row(str(row["path"]), str(row["fingerprint"]), str(row["content"])) for row in data["findings"])
        return Baseline(tuple(rows))
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SettingsError(f"{file}: not a baseline of version {VERSION}; write it with --write-baseline") from None


def _is_there(path: str) -> bool:
    """A row's file exists, or is outside the repository, where nothing is looked up: rows come from the repository."""
    return leads_out(repository_root(Path.cwd()), Path(path)) or os.path.exists(path)


def apply(report: Report, known: Baseline, exists: Callable[[str], bool] = _is_there) -> Report:
    """The report with its baselined findings marked.

    Each row matches one finding of its fingerprint, or, where the row's file no longer exists (it was moved), one of
    the same content. `exists` tells whether a file exists.
    """
    held = {id(finding) for finding in _held(list(report.findings), known, exists)}
    findings = tuple(replace(finding, baselined=id(finding) in held) for finding in report.findings)
    notices = (*report.notices, *([known.notice] if known.notice else []))
    return replace(report, findings=findings, notices=notices)


def _held(findings: Iterable[Finding], known: Baseline, exists: Callable[[str], bool]) -> Iterator[Finding]:
    left = Counter(known.rows)
    by_fingerprint = {row.fingerprint: row for row in known.rows}
    remaining: list[Finding] = []
    for finding in findings:
        row = by_fingerprint.get(finding.fingerprint)
        if finding.suppressed is None and row is not None and left[row] > 0:
            left[row] -= 1
            yield finding
        elif finding.suppressed is None:
            remaining.append(finding)
    moved = Counter(row.content for row in left.elements() if not exists(row.path))
    for finding in remaining:
        if moved[finding.content] > 0:
            moved[finding.content] -= 1
            yield finding


def write(file: Path, report: Report) -> int:
    """Write the findings that no comment suppresses, sorted by path, rule and field; returns their number.

    Raises OSError.
    """
    rows = sorted(
        (
            {"path": f.path, "rule": f.rule, "field": f.yaml_path, "fingerprint": f.fingerprint, "content": f.content}
            for f in report.findings
            if f.suppressed is None and f.rule != FAULT
        ),
        key=lambda row: (row["path"], row["rule"], row["field"], row["fingerprint"]),
    )
    file.write_text(json.dumps({"version": VERSION, "findings": rows}, indent=1) + "\n", encoding="utf-8", newline="\n")
    return len(rows)
