"""GitLab's Code Quality report, which is also an array of Code Climate's issues.

Source: GitLab documentation, "Code Quality report format": an array of issues whose fingerprints are unique; Code
Climate's specification of analyzers: what an issue must have besides (`type`, `categories`), and what it may have.
"""

from __future__ import annotations

from trainlint.findings import Severity
from trainlint.report import Report
from trainlint.reports import RenderOptions, rule_page
from trainlint.reports.escape import as_json

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(report: Report, options: RenderOptions) -> str:
    """The array, indented, in ASCII."""
    issues = []
    for finding in options.shown(report):
        issues.append(
            {
                "type": "issue",
                "categories": ["Bug Risk"],
                "description": f"{finding.message} (help: {finding.help})" if finding.help else finding.message,
                "check_name": finding.rule,
                "content": {"body": f"{finding.name}: {rule_page(finding.rule)}"},
                "fingerprint": finding.fingerprint,
                "severity": _SEVERITIES[finding.level],
                "location": {
                    "path": options.from_root(finding.path),
                    "lines": {"begin": finding.span.line, "end": finding.span.end_line},
                },
            }
        )
    return as_json(issues)
