"""Combines the findings that several releases have on one subject: which are kept, and with which severity."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from trainlint.findings import Finding, Severity, Span, Stage
from trainlint.records import replace
from trainlint.releases import within as in_span
from trainlint.targets import How

if TYPE_CHECKING:
    from trainlint.reading.text import Text

Place = tuple[str, Span]
"""A rule and the place of its finding; findings of two releases with the same place are one."""
_NONE: Mapping[str, list[Finding]] = {}


def chosen(verdicts: Sequence[tuple[str, list[Finding]]]) -> Iterator[Finding]:
    """The findings of all these releases, given by label; equal ones become one that names all its releases."""
    merged: dict[tuple[object, ...], Finding] = {}
    for label, findings in verdicts:
        for finding in findings:
            key = (finding.rule, finding.span, finding.message, finding.severity, finding.field)
            before = merged.get(key)
            versions = (*before.program_versions, label) if before else (label,)
            differs = before is not None and before.fix != finding.fix
            finding = finding.with_unsafe_fix if differs else finding
            merged[key] = replace(finding, program_versions=tuple(dict.fromkeys(versions)))
    for finding in merged.values():
        yield finding if len(finding.program_versions) == len(verdicts) else finding.with_unsafe_fix


def meant(
    releases: Sequence[str],
    judge: Callable[[str, frozenset[str] | None], list[Finding]],
    *,
    all_must_agree: bool,
    maybe_another: bool = False,
    ordinary_elsewhere: frozenset[str],
) -> Iterator[Finding]:
    """The findings of the newest of these releases, one of which is in use; weaker where the others lack them.

    `judge` gives the findings of a release, or only those of the rules whose codes it gets. An error stays an error if
    every release refuses. If only some do, it becomes a warning that names them, or is dropped: for rules that are
    `ordinary_elsewhere`, because the other releases accept the setting as an ordinary one, and if `all_must_agree`.
    With `maybe_another`, one that is not known may be in use: nothing is an error then.
    """
    if not releases:
        return
    newest = judge(releases[-1], None)
    if not newest:
        return
    dropped = {finding.rule for finding in newest if all_must_agree or finding.rule in ordinary_elsewhere}
    left = newest
    others: dict[str, dict[Place, Finding]] = {}
    # The oldest release differs most from the newest: what it lacks need not be looked for in the others.
    for release in dict.fromkeys((*releases[:1], *releases[-2:0:-1])):
        if release == releases[-1] or not left:
            continue
        others[release] = _by_place(judge(release, frozenset(finding.rule for finding in left)))
        left = [f for f in left if f.rule not in dropped or (f.rule, f.span) in others[release]]
    for finding in left:
        place = (finding.rule, finding.span)
        agreeing = [release for release in releases[:-1] if place in others[release]] + [releases[-1]]
        alike = [others[release][place] for release in agreeing[:-1]]
        level = min((finding.level, *(other.level for other in alike)), key=lambda one: one.rank)
        if len(agreeing) < len(releases) or any(other.fix != finding.fix for other in alike):
            finding = finding.with_unsafe_fix
        if len(agreeing) < len(releases):
            finding = weakened(replace(finding, severity=level))
        else:
            finding = replace(finding, severity=level)
        if maybe_another:
            finding = weakened(finding)
        yield replace(finding, program_versions=tuple(agreeing), releases=_words(agreeing, releases))


def differing(verdicts: Sequence[tuple[str, list[Finding]]]) -> Iterator[Finding]:
    """The findings of the stated releases, given by label; one is an error only if all of them refuse."""
    for finding in chosen(verdicts):
        alone = len(finding.program_versions) < len(verdicts)
        yield weakened(finding) if alone else finding


def without_consequences(
    findings: Sequence[Finding],
    covers: Collection[str],
    follows: Mapping[str, Collection[str]],
    texts: Mapping[str, Text],
) -> Iterator[Finding]:
    """The findings of one file, without those that follow from another one.

    Some are placed in other files; `texts` has the texts by path, as far as they are at hand.

    An error hides what shows at a later stage at the same place, and a warning of its own stage. An error of the rules
    in `covers` says that the program does not read a place at all, and hides whatever other rules say of it and of what
    is in it. `follows` names for a rule those whose finding hides its own, unless that is weaker: at the same place or
    around it, or where one has the other's place as a related one, such as the other half of a contradiction.
    """
    order = {stage: number for number, stage in enumerate(Stage)}
    named = {code for codes in follows.values() for code in codes}
    touching = _by_line(finding for finding in findings if finding.rule in named)
    causes: dict[tuple[str, int, str], dict[str, list[Finding]]] = {}
    for finding in findings:
        if finding.yaml_path and (finding.level is Severity.ERROR or finding.rule in named):
            at_place = causes.setdefault((finding.path, finding.document, finding.yaml_path), {})
            at_place.setdefault(finding.rule, []).append(finding)

    def hides(cause: Finding, finding: Finding, *, inside: bool) -> bool:
        if cause.rule in covers and cause.level is Severity.ERROR and inside:
            return True
        if inside:
            return cause.rule in follows.get(finding.rule, ()) and cause.level.reaches(finding.level)
        if not _same_entry(cause.span, finding.span, texts.get(finding.path)):
            return False
        if cause.rule in follows.get(finding.rule, ()) and cause.level.reaches(finding.level):
            return _is_of_one_place(cause, finding)
        if cause.level is not Severity.ERROR:
            return False
        earlier = order[_stage(cause)] < order[_stage(finding)]
        weaker = cause.stage is finding.stage and finding.level is not Severity.ERROR
        return cause.rule in covers or earlier or (weaker and _is_of_one_place(cause, finding))

    def touches(cause: Finding, finding: Finding) -> bool:
        halves = [(cause.span, other.span) for other in finding.related]
        halves += [(other.span, finding.span) for other in cause.related]
        return any(one.path == other.path and _same_entry(one, other, texts.get(one.path)) for one, other in halves)

    for finding in findings:
        if any(
            hides(cause, finding, inside=inside)
            for inside, place in _places(finding.yaml_path)
            for rule, found in causes.get((finding.path, finding.document, place), _NONE).items()
            if rule != finding.rule
            for cause in found
        ):
            continue
        wanted = follows.get(finding.rule, ())
        near = {id(cause): cause for line in _lines(finding) for cause in touching.get(line, ())} if wanted else {}
        if not any(
            cause.rule in wanted
            and cause.rule != finding.rule
            and cause.level.reaches(finding.level)
            and touches(cause, finding)
            for cause in near.values()
        ):
            yield finding


def _by_line(findings: Iterable[Finding]) -> dict[tuple[str, int], list[Finding]]:
    found: dict[tuple[str, int], list[Finding]] = {}
    for finding in findings:
        for line in _lines(finding):
            found.setdefault(line, []).append(finding)
    return found


def _lines(finding: Finding) -> set[tuple[str, int]]:
    """The lines of a finding's place and of its related ones."""
    return {(span.path, span.line) for span in (finding.span, *(other.span for other in finding.related))}


def _is_of_one_place(one: Finding, other: Finding) -> bool:
    """What a runtime holds is told where a job names it, so that the place in the runtime must be the same, too."""
    places = [{related.span for related in finding.related} for finding in (one, other)]
    return not all(places) or bool(places[0] & places[1]) or not one.field.startswith("spec.runtimeRef")


def _stage(finding: Finding) -> Stage:
    return finding.stage or Stage.RUN


def _places(path: str) -> Iterator[tuple[bool, str]]:
    """A path, and those of the mappings and lists that it is in."""
    yield False, path
    while path:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
        if path:
            yield True, path


def _same_entry(one: Span, other: Span, text: Text | None) -> bool:
    """Two spans are the same, or the key and the value of one entry; a script in a value has many places."""
    first, second = sorted((one, other))
    if first == second:
        return True
    if text is None or first.end_line != second.line:
        return False
    between = text.line(second.line)[first.end_column - 1 : second.column - 1]
    return ":" in between and not between.strip("'\": \t")


def within(finding: Finding, releases: Sequence[str], how: How) -> Finding | None:
    """What is left of a finding that holds in some releases of the program which gives the verdict.

    `releases` are those that may run, `how` is how they are known. None if it holds in none of them, or if they are
    neither chosen nor stated and it is a warning of what no release refuses.
    """
    agreeing = [release for release in releases if in_span(release, finding.within)]
    if len(agreeing) == len(releases) or (agreeing and how is How.CHOSEN):
        return finding if agreeing else None
    refused = finding.level is Severity.ERROR or finding.refused_by_some
    if not agreeing or (how is not How.STATED and not refused):
        return None
    return weakened(finding)


def weakened(finding: Finding) -> Finding:
    """A warning instead of an error."""
    if finding.level is not Severity.ERROR:
        return finding
    return replace(finding, severity=Severity.WARNING, refused_by_some=True)


def _by_place(findings: Sequence[Finding]) -> dict[Place, Finding]:
    return {(finding.rule, finding.span): finding for finding in findings}


def _words(agreeing: Sequence[str], releases: Sequence[str]) -> str:
    """The agreeing releases in words; empty if there is only one release."""
    if len(agreeing) == 1:
        return f"since {agreeing[0]}" if len(releases) > 1 else ""
    first = releases.index(agreeing[0])
    if list(releases[first:]) == list(agreeing):
        return f"since {agreeing[0]}" if first else f"{agreeing[0]} to {agreeing[-1]}"
    return f"{agreeing[0]} to {agreeing[-1]}, not all of them"
