"""What follows from a misspelt key: the key with the right name is missing, and others say so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from trainlint.fixes import with_fixes
from trainlint.records import replace

if TYPE_CHECKING:
    from trainlint.findings import Finding
    from trainlint.reading.text import Text


def without_consequences_of_names(
    findings: Sequence[Finding], path: str, text: Text | None, found_in: Callable[[str], Iterable[Finding]]
) -> Iterator[Finding]:
    """The findings of one file without those that are gone once its keys have the names that fixes give them.

    A finding on the file may be in another one that it names, whose keys are left as they are.

    `found_in` gives the findings that the file would have with another content. A fix in doubt hides no error: one that
    is more severe than the misspelt keys stays, in the place of the key whose right name it says.
    """
    own = (finding for finding in findings if finding.path == path)
    renaming = [finding for finding in own if finding.fix is not None and finding.fix.renames]
    if text is None or not renaming or len(renaming) == len(findings):
        yield from findings
        return
    content = with_fixes(text.content, [finding.fix for finding in renaming if finding.fix is not None])
    left = {_place(finding) for finding in found_in(content)}
    worst = max(finding.level.rank for finding in renaming)
    in_place_of: dict[int, Finding] = {}
    kept = []
    for finding in findings:
        if finding in renaming or _place(finding) in left:
            kept.append(finding)
            continue
        if finding.level.rank <= worst:
            continue
        cause = next((one for one in renaming if id(one) not in in_place_of and _is_cause(one, finding)), None)
        if cause is None:
            kept.append(finding)
        else:
            in_place_of[id(cause)] = replace(finding, span=cause.span, help=cause.help, fix=cause.fix)
    for finding in kept:
        yield in_place_of.get(id(finding), finding)


def _is_cause(misspelt: Finding, finding: Finding) -> bool:
    """A finding says the right name of a misspelt key of its document."""
    name = misspelt.fix.renames if misspelt.fix is not None else ""
    return misspelt.document == finding.document and name in re.split(r"[^\w-]+", finding.message)


def _place(finding: Finding) -> tuple[str, str, int]:
    """What a finding keeps when keys on its line are renamed."""
    return finding.rule, finding.path, finding.span.line
