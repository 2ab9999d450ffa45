"""SARIF 2.1.0 for GitHub code scanning and other readers.

Source of what is not in the standard: GitHub documentation, "SARIF support for code scanning" (required properties and
limits), and github/codeql-action, `src/fingerprints.ts` (the line hash).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import PurePath
from typing import TypeAlias
from urllib.parse import quote

import attr
import sarif_om as om

from trainlint.catalogue import all_rules
from trainlint.findings import Finding, Related, Severity, Span
from trainlint.reading.text import Text
from trainlint.report import Report
from trainlint.reports import PROJECT, RenderOptions, rule_page
from trainlint.reports.escape import as_json
from trainlint.reports.snippet import CONTEXT
from trainlint.reports.words import IN_BASELINE, fix_title, with_help
from trainlint.rule import Rule

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT_ID = "SRCROOT"
MAX_RESULTS = 25_000
MAX_DESCRIPTION = 1024
MAX_SNIPPET = 1000

_PROBLEM_SEVERITIES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "recommendation"}


def render(report: Report, options: RenderOptions) -> str:
    """The log of one run: every rule, every finding (suppressed ones marked so), and notices as notifications."""
    rules = all_rules()
    kept, left_out = _most_severe(report.findings)
    notices = list(report.notices)
    if left_out:
        notices.append(f"{left_out} more findings of lower severity are left out: code scanning takes {MAX_RESULTS}")
    log = om.SarifLog(
        version="2.1.0",
        schema_uri=SCHEMA,
        runs=[
            om.Run(
                tool=om.Tool(driver=_driver(rules, options.version)),
                automation_details=om.RunAutomationDetails(id="trainlint/"),
                invocations=[
                    om.Invocation(
                        execution_successful=True,
                        tool_execution_notifications=[_notification(notice) for notice in notices],
                    )
                ],
                original_uri_base_ids={
                    ROOT_ID: om.ArtifactLocation(description=om.Message(text="The root of the repository."))
                },
                column_kind="unicodeCodePoints",
                newline_sequences=["\r\n", "\n", "\r"],
                results=list(_results(kept, rules, report.texts, options)),
            )
        ],
    )
    return as_json(to_json(log))


def to_json(node: object) -> Json:
    """A sarif_om object as JSON.

    None, empty texts (which GitHub refuses) and the standard's defaults are left out, except `level`, whose default
    depends on the rule. Raises TypeError for anything that is not JSON.
    """
    if isinstance(node, str):
        return _without_lone_surrogates(node)
    if node is None or isinstance(node, (bool, int, float)):
        return node
    if isinstance(node, (list, tuple)):
        return [to_json(item) for item in node]
    if isinstance(node, dict):
        return {_key(key): to_json(value) for key, value in node.items() if value not in (None, "")}
    kind: type = type(node)
    if not (attr.has(kind) and kind.__module__.startswith("sarif_om.")):
        raise TypeError(f"{kind.__name__} is not part of SARIF")
    told: dict[str, Json] = {}
    for field in attr.fields(kind):
        value: object = getattr(node, field.name)
        if value in (None, "") or (field.name != "level" and value == _default(field)):
            continue
        told[field.metadata["schema_property_name"]] = to_json(value)
    return told


def _without_lone_surrogates(text: str) -> str:
    # Strict JSON readers refuse them.
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{key!r} cannot be a key in JSON")
    return key


def _default(field: attr.Attribute[object]) -> object:
    default: object = field.default
    # sarif_om gives its lists as factories.
    factory = getattr(default, "factory", None)
    return factory() if callable(factory) else default


def line_hashes(content: str) -> list[str]:
    """GitHub's `primaryLocationLineHash` of each line.

    A polynomial in 37, modulo 2**64, over the 100 UTF-16 units that follow the start of the line, without spaces and
    tabs, with every line end as LF, and after the text's end 65535 and zeros; then how often that hash has occurred.
    """
    size, base, mask = 100, 37, 2**64 - 1
    raw = content.replace("\r\n", "\n").replace("\r", "\n").replace(" ", "").replace("\t", "")
    encoded = raw.encode("utf-16-le", "surrogatepass")
    units = [*struct.unpack(f"<{len(encoded) // 2}H", encoded), 65535]
    starts = [0, *(index + 1 for index, unit in enumerate(units) if unit == 10)]
    sums = list(accumulate([*units, *[0] * size], lambda total, unit: (total * base + unit) & mask, initial=0))
    power = pow(base, size, mask + 1)
    seen: Counter[str] = Counter()
    hashes = []
    for start in starts:
        digest = f"{(sums[start + size] - sums[start] * power) & mask:x}"
        seen[digest] += 1
        hashes.append(f"{digest}:{seen[digest]}")
    return hashes


def _most_severe(findings: Sequence[Finding]) -> tuple[Sequence[Finding], int]:
    """The findings up to the limit, in order, and the number of those left out."""
    if len(findings) <= MAX_RESULTS:
        return findings, 0
    by_severity = sorted(range(len(findings)), key=lambda index: -findings[index].level.rank)
    return [findings[index] for index in sorted(by_severity[:MAX_RESULTS])], len(findings) - MAX_RESULTS


def _driver(rules: Sequence[Rule], version: str) -> om.ToolComponent:
    return om.ToolComponent(
        name="trainlint",
        version=version,
        semantic_version=version,
        information_uri=PROJECT,
        rules=[_descriptor(rule) for rule in rules],
    )


def _descriptor(rule: Rule) -> om.ReportingDescriptor:
    page = rule_page(rule.code)
    return om.ReportingDescriptor(
        id=rule.code,
        name="".join(word.capitalize() for word in rule.name.split("-")),
        short_description=om.MultiformatMessageString(text=_description(rule.summary)),
        full_description=om.MultiformatMessageString(text=_description(rule.documentation)),
        help=om.MultiformatMessageString(
            text=f"{rule.documentation}\n\n{page}",
            markdown=f"**{rule.code} `{rule.name}`**\n\n{rule.documentation}\n\n[Rule page]({page})",
        ),
        help_uri=page,
        default_configuration=om.ReportingConfiguration(level=rule.severity.value),
        properties={
            "tags": [rule.module, *([rule.program] if rule.program else [])],
            "precision": "very-high" if rule.severity is Severity.ERROR else "high",
            "problem.severity": _PROBLEM_SEVERITIES[rule.severity],
            "stage": rule.stage.value,
        },
    )


def _description(text: str) -> str:
    return text if len(text) <= MAX_DESCRIPTION else f"{text[: MAX_DESCRIPTION - 4].rstrip()} ..."


def _notification(notice: str) -> om.Notification:
    return om.Notification(message=om.Message(text=notice), level="note")


def _results(
    findings: Sequence[Finding], rules: Sequence[Rule], texts: Mapping[str, Text], options: RenderOptions
) -> Iterator[om.Result]:
    index = {rule.code: number for number, rule in enumerate(rules)}
    some_suppressed = any(finding.suppressed is not None or finding.baselined for finding in findings)
    hashes = {
        path: line_hashes(texts[path].shown(0, len(texts[path].content)))
        for path in {finding.path for finding in findings}
        if path in texts
    }
    for finding in findings:
        text = texts.get(finding.path)
        lines = hashes.get(finding.path, [])
        yield om.Result(
            rule_id=finding.rule,
            rule_index=index[finding.rule],
            level=finding.level.value,
            message=om.Message(text=with_help(finding)),
            locations=[_location(finding.span, text, options)],
            related_locations=[
                _related(related, number, texts, options) for number, related in enumerate(finding.related, 1)
            ]
            or None,
            partial_fingerprints=_partial_fingerprints(finding, lines) or None,
            # In one run either every result says whether it is suppressed, or none does (SARIF 2.1.0, 3.27.23).
            suppressions=_suppressions(finding) if some_suppressed else None,
            fixes=_fixes(finding, text, options),
            properties={
                "program": finding.program,
                "stage": finding.stage.value if finding.stage else "",
                "programVersions": list(finding.program_versions),
                "document": finding.document,
                "field": finding.field,
                "yamlPath": finding.yaml_path,
            },
        )


def _partial_fingerprints(finding: Finding, lines: Sequence[str]) -> dict[str, str]:
    """Our own fingerprint, and the hash of the line by which GitHub identifies an alert."""
    ours = {"trainlint/v2": finding.fingerprint} if finding.fingerprint else {}
    line = finding.span.line
    return {**ours, "primaryLocationLineHash": lines[line - 1]} if line <= len(lines) else ours


def _artifact(path: str, options: RenderOptions) -> om.ArtifactLocation:
    place = options.from_root(path)
    if PurePath(place).is_absolute():
        return om.ArtifactLocation(uri=PurePath(place).as_uri())
    return om.ArtifactLocation(uri=quote(place, errors="surrogateescape"), uri_base_id=ROOT_ID)


def _region(span: Span, snippet: str | None = None) -> om.Region:
    return om.Region(
        start_line=span.line,
        start_column=span.column,
        end_line=span.end_line,
        end_column=span.end_column,
        snippet=om.ArtifactContent(text=snippet) if snippet else None,
    )


def _location(span: Span, text: Text | None, options: RenderOptions) -> om.Location:
    return om.Location(
        physical_location=om.PhysicalLocation(
            artifact_location=_artifact(span.path, options),
            region=_region(span, _snippet(span, text)),
            context_region=_context(span, text),
        )
    )


def _context(span: Span, text: Text | None) -> om.Region | None:
    if text is None or span.end_line > text.line_count:
        return None
    first = max(1, span.line - CONTEXT)
    around = Span(span.path, first, 1, span.end_line, len(text.line(span.end_line)) + 1)
    snippet = _snippet(around, text)
    return _region(around, snippet) if snippet else None


def _related(related: Related, number: int, texts: Mapping[str, Text], options: RenderOptions) -> om.Location:
    location = _location(related.span, texts.get(related.span.path), options)
    location.id = number
    location.message = om.Message(text=related.message or "related")
    return location


def _snippet(span: Span, text: Text | None) -> str | None:
    if text is None or span.end_line > text.line_count:
        return None
    start = text.line_start(span.line) + span.column - 1
    end = text.line_start(span.end_line) + span.end_column - 1
    return text.shown(start, end) if end - start <= MAX_SNIPPET else None


def _suppressions(finding: Finding) -> list[om.Suppression]:
    if finding.suppressed is not None:
        return [om.Suppression(kind="inSource", justification=finding.suppressed)]
    return [om.Suppression(kind="external", justification=IN_BASELINE)] if finding.baselined else []


def _fixes(finding: Finding, text: Text | None, options: RenderOptions) -> list[om.Fix] | None:
    if finding.fix is None or not finding.fix.edits or text is None:
        return None
    replacements = []
    for edit in finding.fix.edits:
        span = Span(finding.path, *text.position(edit.start), *text.position(edit.end))
        content = om.ArtifactContent(text=edit.replacement) if edit.replacement else None
        replacements.append(om.Replacement(deleted_region=_region(span), inserted_content=content))
    change = om.ArtifactChange(artifact_location=_artifact(finding.path, options), replacements=replacements)
    applicability = "safe" if finding.fix.safe else "unsafe"
    return [
        om.Fix(
            artifact_changes=[change],
            description=om.Message(text=fix_title(finding)),
            properties={"applicability": applicability},
        )
    ]
