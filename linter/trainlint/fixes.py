"""Applies fixes: what each file becomes, and writing it; a file is changed as a whole or not at all."""

from __future__ import annotations

import errno
import os
import sys
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from trainlint.findings import Edit, Finding, Fix
from trainlint.reading.text import Text
from trainlint.records import NamedTuple
from trainlint.report import Report
from trainlint.repository.bounds import inside, read
from trainlint.repository.discover import workspace_of
from trainlint.repository.writing import replacing


def _raise(error: OSError) -> None:
    raise error


class Mended(NamedTuple):
    """One file with fixes: its text before, the content after them, how many findings they fix, and what they edit."""

    path: str
    before: Text
    content: str
    fixed: int
    edits: tuple[Edit, ...] = ()

    @property
    def data(self) -> bytes:
        """The new content as bytes, in the encoding and with the byte order mark of the file."""
        return self.before.encoded(self.content)


def applicable(finding: Finding, *, unsafe: bool = False) -> Fix | None:
    """The fix of a finding, if it has edits and is safe, or if unsafe ones are wanted, too."""
    fix = finding.fix
    return fix if fix is not None and fix.edits and (fix.safe or unsafe) else None


def mended(report: Report, *, unsafe: bool = False) -> list[Mended]:
    """What the files of the active findings become; a fix that overlaps an earlier one is left for the next round.

    What the same file has under another name is left for the next round, too.
    """
    by_file: dict[str, list[Fix]] = {}
    for finding in report.active:
        fix = applicable(finding, unsafe=unsafe)
        if fix is not None:
            by_file.setdefault(finding.path, []).append(fix)
    found: list[Mended] = []
    known: set[str] = set()
    for path, fixes in by_file.items():
        text = report.texts[path]
        edits, count = _compatible(fixes)
        content = edited(text.content, edits)
        real = os.path.realpath(path)
        if content != text.content and real not in known:
            known.add(real)
            found.append(Mended(path, text, content, count, tuple(edits)))
    return found


def edited(content: str, edits: Iterable[Edit]) -> str:
    """A content with edits, which do not overlap; of two at one place the later one comes first."""
    parts, at = [], 0
    for _, edit in sorted(enumerate(edits), key=lambda one: (one[1].start, one[1].end, -one[0])):
        parts += [content[at : edit.start], edit.replacement]
        at = edit.end
    return "".join([*parts, content[at:]])


def apply(report: Report, on_failure: Callable[[OSError], None] = _raise, *, unsafe: bool = False) -> int:
    """Apply the fixes of the active findings, one round of them; returns the number of fixed findings.

    A file that cannot be written, or has changed since it was read, stays as it is and is told; the others are fixed.
    """
    fixed = 0
    for file in mended(report, unsafe=unsafe):
        try:
            replace_content(Path(file.path), file.before.encoded(file.before.content), file.data)
        except OSError as error:
            on_failure(error)
        else:
            fixed += file.fixed
    return fixed


def with_fixes(content: str, fixes: Iterable[Fix]) -> str:
    """A text after those of the fixes that overlap no earlier one."""
    return edited(content, _compatible(fixes)[0])


def _compatible(fixes: Iterable[Fix]) -> tuple[list[Edit], int]:
    """The edits of the fixes that overlap no earlier one, and the number of these fixes; equal edits count once."""
    chosen: dict[Edit, None] = {}
    places: list[tuple[int, int]] = []
    claims: dict[str, set[tuple[Edit, ...]]] = {}
    count = 0
    for fix in fixes:
        fresh = [edit for edit in fix.edits if edit not in chosen]
        claimed = claims.setdefault(fix.claim, set()) | {fix.edits}
        if fix.claim and len(claimed) > fix.room:
            continue
        if not any(_touches(edit, places) for edit in fresh):
            claims[fix.claim] = claimed
            chosen.update(dict.fromkeys(fresh))
            for edit in fresh:
                insort(places, (edit.start, edit.end))
            count += 1
    return list(chosen), count


def _touches(edit: Edit, places: Sequence[tuple[int, int]]) -> bool:
    """An edit overlaps one of some places, which are in order and apart, or begins where one of them does."""
    after = bisect_left(places, (edit.start, -1))
    if after > 0 and edit.start < places[after - 1][1]:
        return True
    return after < len(places) and (places[after][0] == edit.start or places[after][0] < edit.end)


def replace_content(file: Path, known: bytes, data: bytes) -> None:
    """Replace a file's content, through a link within the workspace if it is one; mode and owner stay.

    Raises OSError for a file that has other content than what is known of it, is read-only, or has other hard links.
    """
    folder = Path(os.path.abspath(file)).parent
    workspace = workspace_of(folder, folder)
    real = inside(workspace, file)
    if real is None:
        raise OSError(errno.EXDEV, "a link that leads out of the workspace", str(file))
    target = Path(real)
    before = target.stat()
    if before.st_nlink > 1:
        raise OSError(errno.EMLINK, "it has other hard links, which would keep the old content", str(file))
    if not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(file))
    with replacing(target, target.with_name(f".trainlint-{before.st_ino:x}"), data, file) as made:
        owner = os.stat(made)
        if sys.platform != "win32" and (before.st_uid, before.st_gid) != (owner.st_uid, owner.st_gid):
            os.chown(made, before.st_uid, before.st_gid)
        os.chmod(made, before.st_mode & 0o7777)
        if read(workspace, target) != known:
            raise OSError(errno.EBUSY, "it has changed since it was read", str(file))
