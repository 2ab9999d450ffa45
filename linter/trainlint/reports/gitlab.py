"""GitLab's Code Quality report.

Source: GitLab documentation, "Code Quality report format": an array of issues whose fingerprints are unique.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter

from trainlint.findings import Severity
from trainlint.report import Report
from trainlint.reports import RenderOptions

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render(report: Report, options: RenderOptions) -> str:
    """The array, indented, in ASCII."""
    seen: Counter[str] = Counter()
    issues = []
    for finding in options.shown(report):
        seen[finding.fingerprint] += 1
        identity = f"{finding.fingerprint}:{seen[finding.fingerprint]}"
        issues.append(
            {
                "description": f"{finding.message} (help: {finding.help})" if finding.help else finding.message,
                "check_name": finding.rule,
                "fingerprint": hashlib.sha256(identity.encode()).hexdigest(),
                "severity": _SEVERITIES[finding.level],
                "location": {
                    "path": options.from_root(finding.path),
                    "lines": {"begin": finding.span.line, "end": finding.span.end_line},
                },
            }
        )
    return json.dumps(issues, indent=2) + "\n"
