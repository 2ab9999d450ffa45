"""How often each rule was broken, and how many of its findings can be fixed: `--statistics`."""

from __future__ import annotations

from collections.abc import Iterable

from trainlint.findings import Finding, Severity
from trainlint.records import NamedTuple
from trainlint.report import Report
from trainlint.reports import RenderOptions
from trainlint.reports.escape import as_json
from trainlint.reports.words import is_fixable, result


class Count(NamedTuple):
    """The findings of one rule of one severity; those that `--fix` fixes are `fixable`."""

    rule: str
    name: str
    severity: Severity
    number: int
    fixable: int


def counts(findings: Iterable[Finding], *, unsafe: bool = False) -> list[Count]:
    """One row for each rule and severity, the most frequent first."""
    found: dict[tuple[str, str, Severity], list[bool]] = {}
    for finding in findings:
        fixable = is_fixable(finding, unsafe=unsafe)
        found.setdefault((finding.rule, finding.name, finding.level), []).append(fixable)
    rows = [Count(*key, len(fixable), sum(fixable)) for key, fixable in found.items()]
    return sorted(rows, key=lambda row: (-row.number, row.rule, -row.severity.rank))


def render(report: Report, options: RenderOptions) -> str:
    """A table, and the result."""
    rows = counts(options.shown(report), unsafe=options.unsafe_fixes)
    wide = max((len(str(row.number)) for row in rows), default=0)
    longest = max((len(row.name) for row in rows), default=0)
    lines = [
        f"{row.number:{wide}}  {row.severity.value:7}  {row.rule}  {row.name:{longest}}  "
        f"{f'{row.fixable} fixable' if row.fixable else ''}".rstrip()
        for row in rows
    ]
    return "".join(f"{line}\n" for line in [*lines, *([""] if lines else []), result(report)])


def render_json(report: Report, options: RenderOptions) -> str:
    """An array of objects: `rule`, `name`, `severity`, `count`, `fixable`."""
    return as_json(
        [
            {
                "rule": row.rule,
                "name": row.name,
                "severity": row.severity.value,
                "count": row.number,
                "fixable": row.fixable,
            }
            for row in counts(options.shown(report), unsafe=options.unsafe_fixes)
        ]
    )
