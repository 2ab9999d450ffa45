"""Issues of a build: logging commands that a step of Azure Pipelines prints.

Source: Azure Pipelines documentation, "Logging commands", LogIssue; the escapes are those of the agent,
`src/Microsoft.VisualStudio.Services.Agent/Util/StringUtil.cs` and `Microsoft.VisualStudio.Services.Agent/Command.cs`.
"""

from __future__ import annotations

from trainlint.findings import Finding, Severity
from trainlint.report import Report
from trainlint.reports import RenderOptions
from trainlint.reports.escape import visible_but_line_ends, writable
from trainlint.reports.words import visible_with_help

_TYPES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "warning"}
"""An issue of a build is an error or a warning; a note says that it is one."""


def render(report: Report, options: RenderOptions) -> str:
    """One command for each finding that is not suppressed."""
    return "".join(f"{_command(finding, options)}\n" for finding in report.active)


def _command(finding: Finding, options: RenderOptions) -> str:
    properties = {
        "type": _TYPES[finding.level],
        "sourcepath": visible_but_line_ends(options.from_root(finding.path)),
        "linenumber": str(finding.span.line),
        "columnnumber": str(finding.span.column),
        "code": finding.rule,
    }
    listed = "".join(f"{name}={_property(value)};" for name, value in properties.items())
    said = visible_with_help(finding)
    said = f"{finding.level.value}: {said}" if finding.level is Severity.NOTE else said
    return writable(f"##vso[task.logissue {listed}]{_data(said)}")


def _data(text: str) -> str:
    return text.replace("%", "%AZP25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace("]", "%5D").replace(";", "%3B")
