"""JUnit XML: a suite for each file with findings, a test case for each finding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from xml.etree import ElementTree

from trainlint.findings import Finding
from trainlint.report import Report
from trainlint.reports import RenderOptions
from trainlint.reports.escape import as_xml, visible, visible_line, visible_path
from trainlint.reports.words import annotation, reason, result


def render(report: Report, options: RenderOptions) -> str:
    """The document, indented, in ASCII.

    A finding at or above `fail_on` is a failure; one below passes and has its message as output; a suppressed one is
    skipped. A run without findings is one passed test.
    """
    root = ElementTree.Element("testsuites", name="trainlint")
    findings = sorted(options.shown(report), key=attrgetter("path"))
    for path, group in groupby(findings, key=attrgetter("path")):
        _suite(root, path, list(group), options)
    if not findings:
        suite = ElementTree.SubElement(root, "testsuite", name="trainlint")
        ElementTree.SubElement(suite, "testcase", name=result(report), classname="trainlint")
    for element in (*root, root):
        element.set("tests", _number_of(element, "testcase"))
        element.set("failures", _number_of(element, "failure"))
        element.set("errors", "0")
        element.set("skipped", _number_of(element, "skipped"))
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True)
    return as_xml(document.decode("ascii")) + "\n"


def _number_of(element: ElementTree.Element, tag: str) -> str:
    return str(sum(1 for _ in element.iter(tag)))


def _suite(root: ElementTree.Element, path: str, findings: Sequence[Finding], options: RenderOptions) -> None:
    shown_path = visible(path)
    suite = ElementTree.SubElement(root, "testsuite", name=shown_path)
    for finding in findings:
        span = finding.span
        case = ElementTree.SubElement(
            suite,
            "testcase",
            name=f"{finding.rule} {finding.name} at {span.line}:{span.column}",
            classname=shown_path,
            file=shown_path,
            line=str(span.line),
        )
        message = visible(finding.message)
        if said := reason(finding):
            ElementTree.SubElement(case, "skipped", message=visible(said))
        elif finding.level.reaches(options.fail_on):
            failure = ElementTree.SubElement(case, "failure", type=finding.level.value, message=message)
            failure.text = _details(finding)
        else:
            ElementTree.SubElement(case, "system-out").text = f"{finding.level.value}: {_details(finding)}"


def _details(finding: Finding) -> str:
    span = finding.span
    lines = [f"{visible_path(finding.path)}:{span.line}:{span.column}: {finding.message}", annotation(finding)]
    if finding.help:
        lines.append(f"help: {finding.help}")
    return "\n".join(visible_line(line) for line in lines if line)
