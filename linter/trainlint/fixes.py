"""Applies safe fixes in place; a file is changed as a whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from trainlint.findings import Edit, Finding
from trainlint.report import Report
from trainlint.repository.bounds import inside
from trainlint.repository.discover import workspace_of


def apply(report: Report) -> int:
    """Apply the safe fixes of the active findings; returns the number of fixed findings.

    A fix that overlaps an earlier one is left for the next run. Raises OSError when a file cannot be written, which
    then stays unchanged.
    """
    by_file: dict[str, list[Finding]] = {}
    for finding in report.active:
        if finding.fix is not None and finding.fix.safe and finding.fix.edits:
            by_file.setdefault(finding.path, []).append(finding)
    fixed = 0
    for path, findings in by_file.items():
        text = report.texts[path]
        edits, count = _compatible(finding.fix.edits for finding in findings if finding.fix)
        content = text.content
        for edit in sorted(edits, key=lambda e: e.start, reverse=True):
            content = content[: edit.start] + edit.replacement + content[edit.end :]
        _replace(Path(path), text.encoded(content))
        fixed += count
    return fixed


def _compatible(fixes: Iterable[tuple[Edit, ...]]) -> tuple[list[Edit], int]:
    """The edits of the fixes that overlap no earlier one, and the number of these fixes; equal edits count once."""
    chosen: list[Edit] = []
    count = 0
    for edits in fixes:
        fresh = [edit for edit in edits if edit not in chosen]
        if not any(_touch(edit, other) for edit in fresh for other in chosen):
            chosen += fresh
            count += 1
    return chosen, count


def _touch(one: Edit, other: Edit) -> bool:
    return (one.start < other.end and other.start < one.end) or one.start == other.start


def _replace(file: Path, data: bytes) -> None:
    """Replace a file's content, through a link within the workspace if it is one; the mode stays."""
    folder = Path(os.path.abspath(file)).parent
    real = inside(workspace_of(folder, folder), file)
    if real is None:
        raise OSError(errno.EXDEV, "a link that leads out of the workspace", str(file))
    target = Path(real)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.chmod(name, target.stat().st_mode & 0o7777)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
