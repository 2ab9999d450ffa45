"""A table for the comment on a pull request, in GitHub's and GitLab's Markdown.

Nothing in it is taken from files as Markdown or HTML, mentions somebody, or refers to an issue.

Source: GitHub Flavored Markdown Spec, "Tables" and "Entity and numeric character references"; GitHub documentation,
"Autolinked references and URLs".
"""

from __future__ import annotations

import re

from trainlint.findings import Finding, counted
from trainlint.lazy import regex
from trainlint.report import Report
from trainlint.reports import RenderOptions, rule_page
from trainlint.reports.escape import visible, visible_path, writable
from trainlint.reports.words import hints, reason, result

LONGEST = 60_000
"""Characters of the document; GitHub accepts 65,536 in a comment, GitLab more."""

_STRUCTURE = "\\`*_[]<>&|~$!"
_SPECIAL = regex(
    rf"[{re.escape(_STRUCTURE)}]|[@#](?=\S)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=GH-)(?=\d)",
    re.IGNORECASE,
)
"""Characters that Markdown gives a meaning, and beginnings of mentions, references and addresses."""
_APART = "&#8203;"
"""A space without width: what is around it is no mention, reference or address."""


def render(report: Report, options: RenderOptions) -> str:
    """A heading, and a table with a row for each finding, up to the length that a comment may have."""
    findings = list(options.shown(report))
    lines = ["### trainlint", "", _text(result(report))]
    for hint in hints(report):
        lines += ["", _text(hint)]
    if findings:
        lines += ["", "| severity | place | rule | finding |", "|---|---|---|---|"]
    left = LONGEST - sum(len(line) + 1 for line in lines)
    for number, finding in enumerate(findings):
        row = _row(finding)
        left -= len(row) + 1
        if left < 0:
            lines += ["", f"{counted(len(findings) - number, 'further finding')}: the log has all of them."]
            break
        lines.append(row)
    return writable("\n".join(lines) + "\n")


def _row(finding: Finding) -> str:
    span = finding.span
    place = f"<code>{_text(visible_path(span.path))}:{span.line}:{span.column}</code>"
    said = [_text(finding.message)]
    if finding.help:
        said.append(f"<em>{_text(finding.help)}</em>")
    if why := reason(finding):
        said.append(f"suppressed: {_text(why)}")
    rule = f"[{finding.rule}]({rule_page(finding.rule)}) {finding.name}"
    return f"| {finding.level.value} | {place} | {rule} | {'<br>'.join(said)} |"


def _text(text: str) -> str:
    return _SPECIAL.sub(_plain, visible(text))


def _plain(found: re.Match[str]) -> str:
    sign = found[0]
    return f"&#{ord(sign)};" if sign and sign in _STRUCTURE else f"{sign}{_APART}"
