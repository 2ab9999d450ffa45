"""Writes what the fixtures show of each rule to linter/trainlint/rule_facts.json: `python tools/rule_facts.py`.

By code: the severities of its findings, the most severe first; whether `--fix` fixes some of them (`safe`), or only
`--unsafe-fixes` (`unsafe`); and the known releases of each program in which one of its bad cases is reported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from cases import ROOT, Case, cases, copied, judged
from readme import releases
from trainlint.catalogue import all_rules, find_rule
from trainlint.engine import Run
from trainlint.findings import Finding, Severity
from trainlint.rule import Rule

FILE = ROOT / "linter" / "trainlint" / "rule_facts.json"

Facts = dict[str, object]


def table() -> dict[str, Facts]:
    """The facts of all rules, by code."""
    found: dict[str, list[Finding]] = {rule.code: [] for rule in all_rules()}
    reported: dict[str, dict[str, set[str]]] = {rule.code: {} for rule in all_rules()}
    for case in cases("bad"):
        for finding in judged(case)[0].findings:
            found[finding.rule].append(finding)
        for program, release in _reporting(case):
            reported[case.code].setdefault(program, set()).add(release)
    return {rule.code: _facts(rule, found[rule.code], reported[rule.code]) for rule in all_rules()}


def _facts(rule: Rule, found: Sequence[Finding], reported: dict[str, set[str]]) -> Facts:
    levels = {finding.level for finding in found} or {rule.severity}
    safe = {finding.fix.safe for finding in found if finding.fix is not None and finding.fix.edits}
    return {
        "severities": [severity.value for severity in reversed(Severity) if severity in levels],
        "fix": "safe" if True in safe else "unsafe" if safe else "",
        "releases": {program: _spans(program, reported[program]) for program in sorted(reported)},
    }


def _reporting(case: Case) -> Iterator[tuple[str, str]]:
    """The programs and their releases in which the rule of a case finds something in it."""
    rule = find_rule(case.code)
    if rule is None:
        return
    with copied(case):
        run = Run(case.overrides())
        # The stages of a run, without the choice of a release.
        for candidate, source in run._sources([Path()], None):
            workspace = run._workspace(candidate.workspace)
            for program, subject in workspace.recogniser.subjects(source):
                if rule.module in program.rules:
                    for release in releases()[program.name]:
                        if workspace.findings(program, subject, release, [rule]):
                            yield program.name, release


def _spans(program: str, reported: set[str]) -> str:
    """Releases as spans of the known ones, whose end is open where it is the newest."""
    known = releases()[program]
    spans: list[tuple[int, int]] = []
    for index in sorted(map(known.index, reported)):
        if spans and spans[-1][1] == index - 1:
            spans[-1] = (spans[-1][0], index)
        else:
            spans.append((index, index))
    last = len(known) - 1
    told = []
    for first, end in spans:
        if first == end != last:
            told.append(known[first])
        else:
            told.append(f"{known[first] if first else ''}..{known[end] if end < last else ''}")
    return ",".join(told)


def text() -> str:
    """The content of the file: a line for each rule."""
    rows = (f'"{code}": {json.dumps(facts)}' for code, facts in table().items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8", newline="\n")
