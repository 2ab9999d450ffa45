"""Reviewdog's diagnostics, of which it makes comments of a review, and of fixes suggestions to accept.

Source: reviewdog 0.21, `proto/rdf/reviewdog.proto`: columns count bytes of UTF-8 from 1, the end is exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from trainlint.findings import Finding, Fix, Severity, Span
from trainlint.reading.text import Text
from trainlint.report import Report
from trainlint.reports import PROJECT, RenderOptions, rule_page
from trainlint.reports.escape import as_json
from trainlint.reports.words import with_help

Json: TypeAlias = "str | int | Sequence[Json] | Mapping[str, Json]"

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.NOTE: "INFO"}


def render(report: Report, options: RenderOptions) -> str:
    """One object with a diagnostic for each finding that is not suppressed, in ASCII.

    Paths are relative to the current folder, where reviewdog looks for them too.
    """
    return as_json(
        {
            "source": {"name": "trainlint", "url": PROJECT},
            "diagnostics": [_diagnostic(finding, report, options) for finding in report.active],
        }
    )


def _diagnostic(finding: Finding, report: Report, options: RenderOptions) -> Json:
    told: dict[str, Json] = {
        "message": with_help(finding),
        "location": _location(finding.span, report.texts),
        "severity": _SEVERITIES[finding.level],
        "code": {"value": f"{finding.rule} {finding.name}", "url": rule_page(finding.rule)},
    }
    if finding.related:
        told["relatedLocations"] = [
            {"message": related.message, "location": _location(related.span, report.texts)}
            for related in finding.related
        ]
    text = report.texts.get(finding.path)
    suggestion = _suggestion(finding.fix, finding.path, text, options) if finding.fix and text else None
    if suggestion is not None:
        told["suggestions"] = [suggestion]
    return told


def _suggestion(fix: Fix, path: str, text: Text, options: RenderOptions) -> Json | None:
    """The fix as one replacement, with the text between its edits; None where that has a secret that is not shown."""
    if not fix.edits:
        return None
    edits = sorted(fix.edits)
    start, end = edits[0].start, edits[-1].end
    if text.hidden_within(start, end) and not options.show_values:
        return None
    parts, at = [], start
    for edit in edits:
        parts += [text.content[at : edit.start], edit.replacement]
        at = edit.end
    span = Span(path, *text.position(start), *text.position(end))
    return {"range": _range(span, text), "text": "".join(parts)}


def _location(span: Span, texts: Mapping[str, Text]) -> Json:
    return {"path": span.path, "range": _range(span, texts.get(span.path))}


def _range(span: Span, text: Text | None) -> Json:
    return {
        "start": _position(span.line, span.column, text),
        "end": _position(span.end_line, span.end_column, text),
    }


def _position(line: int, column: int, text: Text | None) -> Json:
    """Line and column; without the text only the line, since its bytes are not known."""
    if text is None:
        return {"line": line}
    before = text.line(line)[: column - 1] if line <= text.line_count else ""
    return {"line": line, "column": len(before.encode("utf-8", "surrogatepass")) + 1}
