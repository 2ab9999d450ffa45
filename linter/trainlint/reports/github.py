"""Annotations: workflow commands that a GitHub Actions step prints.

Source: GitHub documentation, "Workflow commands for GitHub Actions"; the escapes are those of `@actions/core`,
`src/command.ts`.
"""

from __future__ import annotations

from trainlint.findings import Finding, Severity
from trainlint.report import Report
from trainlint.reports import RenderOptions
from trainlint.reports.escape import visible, visible_but_line_ends, writable
from trainlint.reports.words import visible_with_help

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(report: Report, options: RenderOptions) -> str:
    """One command for each finding that is not suppressed; GitHub shows ten of each level for a step."""
    return "".join(f"{_command(finding, options)}\n" for finding in report.active)


def wrong_use(message: str) -> str:
    """The command for what is wrong with a run itself."""
    return writable(f"::error title=trainlint::{_data(visible(message))}")


def _command(finding: Finding, options: RenderOptions) -> str:
    span = finding.span
    properties: dict[str, object] = {
        "file": visible_but_line_ends(options.from_root(finding.path)),
        "line": span.line,
    }
    # GitHub accepts columns only for an annotation within one line.
    if span.end_line == span.line:
        properties |= {"col": span.column, "endLine": span.end_line, "endColumn": span.end_column}
    else:
        properties["endLine"] = span.end_line
    properties["title"] = f"{finding.rule} {finding.name}"
    listed = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return writable(f"::{_COMMANDS[finding.level]} {listed}::{_data(visible_with_help(finding))}")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
