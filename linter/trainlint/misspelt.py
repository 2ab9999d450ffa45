"""What follows from a misspelt key: the key with the right name is missing, and others say so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from trainlint.fixes import with_fixes

if TYPE_CHECKING:
    from trainlint.findings import Finding
    from trainlint.reading.text import Text


def without_consequences_of_names(
    findings: Sequence[Finding], path: str, text: Text | None, found_in: Callable[[str], Iterable[Finding]]
) -> Iterator[Finding]:
    """The findings of one file without those that are gone once its keys have the names that fixes give them.

    A finding on the file may be in another one that it names, whose keys are left as they are.

    `found_in` gives the findings that the file would have with another content. One that is more severe than the
    misspelt keys stays, so that a fix in doubt hides no error.
    """
    own = (finding for finding in findings if finding.path == path)
    renaming = [finding for finding in own if finding.fix is not None and finding.fix.renames]
    worst = max((finding.level.rank for finding in renaming), default=-1)
    if text is None or all(finding in renaming or finding.level.rank > worst for finding in findings):
        yield from findings
        return
    content = with_fixes(text.content, [finding.fix for finding in renaming if finding.fix is not None])
    left = {_place(finding) for finding in found_in(content)}
    for finding in findings:
        if finding in renaming or finding.level.rank > worst or _place(finding) in left:
            yield finding


def _place(finding: Finding) -> tuple[str, str, int]:
    """What a finding keeps when keys on its line are renamed."""
    return finding.rule, finding.path, finding.span.line
