"""Writes what the cases show of each rule to linter/trainlint/rule_facts.json: `python tools/rule_facts.py [CODE...]`.

By code: whether `--fix` fixes some of its findings (`safe`), or only `--unsafe-fixes` does (`unsafe`); and the known
releases of each program in which one of its bad cases is reported. With codes only these rules are looked at again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from cases import ROOT, Case, cases, copied, judged
from trainlint.catalogue import all_rules, find_rule, known_releases
from trainlint.engine import Run

FILE = ROOT / "linter" / "trainlint" / "rule_facts.json"

Facts = Mapping[str, object]


def table(codes: Collection[str] = ()) -> dict[str, Facts]:
    """The facts of all rules, by code; with codes those of other rules are as in the file."""
    known: dict[str, Facts] = json.loads(FILE.read_text(encoding="utf-8")) if codes else {}
    own: dict[str, list[Case]] = {rule.code: [] for rule in all_rules()}
    for case in cases("bad"):
        own[case.code].append(case)
    return {
        code: known[code] if code in known and code not in codes else _facts(code, found) for code, found in own.items()
    }


def _facts(code: str, own: list[Case]) -> Facts:
    found = [finding for case in own for finding in judged(case)[0].findings if finding.rule == code]
    safe = {finding.fix.safe for finding in found if finding.fix is not None and finding.fix.edits}
    reported: dict[str, set[str]] = {}
    for case in own:
        for program, release in _reporting(case):
            reported.setdefault(program, set()).add(release)
    return {
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
                    for release in known_releases(program.name):
                        if workspace.judge.findings(program, subject, release, [rule]):
                            yield program.name, release


def _spans(program: str, reported: set[str]) -> str:
    """Releases as spans of the known ones, whose end is open where it is the newest."""
    known = known_releases(program)
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


def text(codes: Collection[str] = ()) -> str:
    """The content of the file: a line for each rule."""
    rows = (f'"{code}": {json.dumps(facts)}' for code, facts in table(codes).items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(text(sys.argv[1:]), encoding="utf-8", newline="\n")
