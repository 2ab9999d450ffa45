"""Judges subjects by rules: each rule once for each subject and release, on the views that its program gathers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from trainlint.budget import BUDGET
from trainlint.catalogue import OWN_RULES
from trainlint.findings import Finding, Severity, Stage
from trainlint.records import replace
from trainlint.rule import Rule, rules_of

if TYPE_CHECKING:
    from trainlint.own_rules import Excess
    from trainlint.programs import Subject, Views
    from trainlint.programs.table import Program
    from trainlint.reading.document import Document

RECENT = 64
"""So many judgements are kept: what asks about a subject comes soon after it, and views take memory."""


class _Judgement:
    """What is known of one subject in one release: its views, as far as they were gathered, and findings by rule."""

    def __init__(self, subject: Subject, in_all: Views, alternatives: Iterable[Views]) -> None:
        self.subject = subject
        self.in_all = in_all
        self.judged: set[str] = set()
        self.found: dict[str, Sequence[Finding]] = {}
        self._gathered: list[Views] = []
        self._left = iter(alternatives)

    @property
    def alternatives(self) -> Iterator[Views]:
        """The alternatives, each gathered once."""
        yield from self._gathered
        for views in self._left:
            self._gathered.append(views)
            yield views


class Judge:
    """The rules that may be used, and what they find.

    `gather` gives the views of a subject in a release that all its alternatives have, and those of each; `blame` keeps
    an exception in a rule, by document and code.
    """

    def __init__(
        self,
        may_use: Callable[[Rule], bool],
        gather: Callable[[Program, Subject, str], tuple[Views, Iterable[Views]]],
        blame: Callable[[Document, str, Exception], None],
    ) -> None:
        self._may_use = may_use
        self._gather = gather
        self._blame = blame
        self._rules: dict[str, list[Rule]] = {}
        self._admission: dict[str, list[Rule]] = {}
        self._recent: dict[tuple[int, str], _Judgement] = {}

    def rules(self, program: Program) -> list[Rule]:
        """The rules of a program that may be used."""
        if program.name not in self._rules:
            self._rules[program.name] = [rule for rule in rules_of(program.rules) if self._may_use(rule)]
        return self._rules[program.name]

    def own(self, view: object, program: str = "trainlint") -> Iterator[Finding]:
        """The findings of trainlint's own rules on a view of theirs."""
        return run_rules(filter(self._may_use, rules_of([OWN_RULES])), [view], program)

    def findings(self, program: Program, subject: Subject, release: str, rules: Sequence[Rule]) -> list[Finding]:
        """The findings of rules in one known release that hold in every alternative of the subject."""
        judgement = self._judgement(program, subject, release)
        found = judgement.found
        new = [rule for rule in rules if rule.code not in judgement.judged] if judgement.judged else rules
        if new:
            try:
                found.update(self._common(program, subject, release, new, judgement))
                judgement.judged.update([rule.code for rule in new])
            except Exception:
                del self._recent[id(subject), release]
                raise
        return [finding for rule in rules for finding in found.get(rule.code, ())] if found else []

    def admits(self, program: Program, subject: Subject, release: str) -> bool:
        """The subject's own program admits it: no rule on that finds an error, whatever the settings select."""
        if program.name not in self._admission:
            self._admission[program.name] = [
                rule
                for rule in rules_of(program.rules)
                if rule.program in (None, program.name) and rule.stage is Stage.ADMISSION
            ]
        found = self.findings(program, subject, release, self._admission[program.name])
        return not any(one.level is Severity.ERROR and one.program == program.name for one in found)

    def _judgement(self, program: Program, subject: Subject, release: str) -> _Judgement:
        key = id(subject), release
        if key not in self._recent:
            while len(self._recent) >= RECENT:
                del self._recent[next(iter(self._recent))]
            self._recent[key] = _Judgement(subject, *self._gather(program, subject, release))
        return self._recent[key]

    def _common(
        self, program: Program, subject: Subject, release: str, rules: Sequence[Rule], judgement: _Judgement
    ) -> dict[str, list[Finding]]:
        """By rule, its findings in the first alternative that all others have at the same place too."""
        facts, document = program.load().facts(release), subject.field.document
        common: dict[str, list[Finding]] = {}
        left = rules
        for number, views in enumerate(judgement.alternatives):
            found = self._by_rule(left, views, program.name, release, facts, document)
            common = {c: common_to_all([common[c], found[c]]) for c in common if c in found} if number else found
            # The next alternative can only confirm what is left.
            left = [rule for rule in left if common.get(rule.code)]
            if not left:
                break
        for code, found_in_all in self._by_rule(
            rules, judgement.in_all, program.name, release, facts, document
        ).items():
            common.setdefault(code, []).extend(found_in_all)
        return common

    def _by_rule(
        self, rules: Iterable[Rule], views: Views, program: str, release: str, facts: object, document: Document
    ) -> dict[str, list[Finding]]:
        """The findings of each rule that has some, as many as the budget allows.

        An exception in a rule leaves the others alone.
        """
        found: dict[str, list[Finding]] = {}
        of_type: dict[type, list[object]] = {}
        for rule in rules:
            ours = of_type.get(rule.subject)
            if ours is None:
                ours = of_type[rule.subject] = [view for view in views if isinstance(view, rule.subject)]
            if not ours:
                continue
            try:
                for finding in rule.run(ours, facts):
                    stamped = _stamped(finding, rule, program, release)
                    so_far = found.setdefault(rule.code, [])
                    if len(so_far) == BUDGET.findings:
                        so_far.extend(self.own(_further(stamped)))
                        break
                    so_far.append(stamped)
            except Exception as error:
                self._blame(document, rule.code, error)
        return found


def run_rules(rules: Iterable[Rule], views: Views, program: str) -> Iterator[Finding]:
    """The findings of rules on the views that they look at, completed with rule and program."""
    for rule in rules:
        for finding in rule.run([view for view in views if isinstance(view, rule.subject)], None):
            yield _stamped(finding, rule, program, None)


def _stamped(finding: Finding, rule: Rule, program: str, release: str | None) -> Finding:
    return finding.stamped(
        rule=rule.code,
        name=rule.name,
        severity=rule.severity,
        stage=rule.stage,
        program=rule.program or program,
        version=release,
    )


def _further(finding: Finding) -> Excess:
    """The place of the first finding of a rule that the budget leaves out."""
    from trainlint.own_rules import Excess

    message = f"further findings of {finding.rule} are not shown: there are more than {BUDGET.findings}"
    return Excess(finding.span, finding.document, message, "fix those that are shown, and run trainlint again")


def common_to_all(alternatives: Sequence[list[Finding]]) -> list[Finding]:
    """The findings of the first alternative that all others have at the same place too, with the fix of all."""
    if len(alternatives) < 2:
        return list(alternatives[0]) if alternatives else []
    others = [{(f.rule, f.span, f.level): f for f in findings} for findings in alternatives[1:]]
    common: list[Finding] = []
    for finding in alternatives[0]:
        alike = [other.get((finding.rule, finding.span, finding.level)) for other in others]
        if all(alike):
            same = all(other is None or other.fix == finding.fix for other in alike)
            common.append(finding if same else replace(finding, fix=None))
    return common
