"""The report as one JSON object for other programs, or each finding as an object on a line of its own.

Keys of the object, all of them always there:

- `version`: of this format, 1; new keys do not change it. `tool`: `name` and `version`.
- `findings`: in the order of file and place, without suppressed and baselined ones unless these are asked for.
- `files`: how many were `discovered`, `parsed`, `recognised` and `judged`: checked for a known release.
- `targets`: for each program the `versions` that it was checked for, where they come `from`, and how they are `known`:
  where files differ, as the least certain of them.
- `notices`: remarks on the run itself. `summary`: how many `error`, `warning`, `note`, `suppressed`, `baselined`.

Keys of a finding:

- `rule`, `name`, `severity`, `stage` (when it shows: `admission`, `create`, `load`, `start`, `prepare`, `train`,
  `save`, or `run` for what never raises), `program`, `programVersions`, `message`, `help` (may be empty);
- `release`: how it is `known` (`chosen`, `stated`, `range`, `unknown`, `not stated`; empty for trainlint's own rules)
  and the place that it comes `from`;
- `path` as the user would write it, `document` (index among the file's non-empty documents), `field` (the path as the
  program spells it), `yamlPath` (the path in the document);
- `line`, `column`, `endLine`, `endColumn`: from 1, columns count characters, the end is exclusive;
- `related`: objects of `message`, `path` and the four numbers;
- `fix`: null, or `title`, `safe` and `edits`: objects of the four numbers and `replacement`;
- `suppressed`: null, or the reason (may be empty); `baselined`: only where suppressed findings are asked for;
- `fingerprint`: the same while only lines move or a message is reworded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from trainlint.findings import Finding, Severity, Span
from trainlint.reading.text import Text
from trainlint.report import Report
from trainlint.reports import RenderOptions
from trainlint.reports.escape import as_json

Json: TypeAlias = "bool | int | str | Sequence[Json] | Mapping[str, Json] | None"

VERSION = 1


def render(report: Report, options: RenderOptions) -> str:
    """The object, indented, in ASCII."""
    document: Json = {
        "version": VERSION,
        "tool": {"name": "trainlint", "version": options.version},
        "findings": [_finding(finding, report, options) for finding in options.shown(report)],
        "files": {
            "discovered": report.files.discovered,
            "parsed": report.files.parsed,
            "recognised": report.files.recognised,
            "judged": report.files.recognised - report.unjudged,
        },
        "targets": {
            program: {"versions": list(target.versions), "from": target.origin, "known": target.how.value}
            for program, target in report.targets.items()
        },
        "notices": list(report.notices),
        "summary": {
            **{severity.value: report.count(severity) for severity in reversed(Severity)},
            "suppressed": report.suppressed,
            "baselined": report.baselined,
        },
    }
    return as_json(document)


def render_lines(report: Report, options: RenderOptions) -> str:
    """The objects of the findings, one a line, in ASCII."""
    return "".join(as_json(_finding(finding, report, options), indent=None) for finding in options.shown(report))


def _finding(finding: Finding, report: Report, options: RenderOptions) -> Json:
    told: dict[str, Json] = {
        "rule": finding.rule,
        "name": finding.name,
        "severity": finding.level.value,
        "stage": finding.stage.value if finding.stage else "",
        "program": finding.program,
        "programVersions": list(finding.program_versions),
        "release": {"known": finding.stated, "from": finding.stated_at},
        "message": finding.message,
        "help": finding.help,
        "path": finding.path,
        "document": finding.document,
        "field": finding.field,
        "yamlPath": finding.yaml_path,
        **_numbers(finding.span),
        "related": [
            {"message": related.message, "path": related.span.path, **_numbers(related.span)}
            for related in finding.related
        ],
        "fix": _fix(finding, report.texts.get(finding.path)),
        "suppressed": finding.suppressed,
        "fingerprint": finding.fingerprint,
    }
    if options.show_suppressed:
        told["baselined"] = finding.baselined
    return told


def _numbers(span: Span) -> dict[str, Json]:
    return {"line": span.line, "column": span.column, "endLine": span.end_line, "endColumn": span.end_column}


def _fix(finding: Finding, text: Text | None) -> Json:
    if finding.fix is None or not finding.fix.edits or text is None:
        return None
    return {
        "title": finding.fix.title,
        "safe": finding.fix.safe,
        "edits": [
            {
                **_numbers(Span(finding.path, *text.position(edit.start), *text.position(edit.end))),
                "replacement": edit.replacement,
            }
            for edit in finding.fix.edits
        ],
    }
