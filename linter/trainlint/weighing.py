"""What several releases say together of one subject: which findings stand, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from trainlint.findings import Finding, Severity, Span

Place = tuple[str, Span]
"""A rule, and where it speaks: by this the same finding is known in another release."""


def chosen(verdicts: Sequence[tuple[str, list[Finding]]]) -> Iterator[Finding]:
    """The findings of each of some releases, by their labels; equal ones become one that names all its releases."""
    merged: dict[tuple[object, ...], Finding] = {}
    for label, findings in verdicts:
        for finding in findings:
            key = (finding.rule, finding.span, finding.message, finding.severity, finding.field)
            before = merged.get(key)
            versions = (*before.program_versions, label) if before else (label,)
            merged[key] = replace(finding, program_versions=tuple(dict.fromkeys(versions)))
    yield from merged.values()


def meant(
    releases: Sequence[str],
    judge: Callable[[str, frozenset[str] | None], list[Finding]],
    *,
    all_must_agree: bool,
    ordinary_elsewhere: frozenset[str],
) -> Iterator[Finding]:
    """The findings of the newest of the releases that may be meant, weakened where the others do not share them.

    `judge` gives a release's findings, of some rules only where it is given their codes. An error stays one where every
    release refuses. Where only some do it is a warning that names them, or nothing at all: for rules that are
    `ordinary_elsewhere`, since what they find is an ordinary setting for the others, and if `all_must_agree`, since no
    release is known to be the one.
    """
    if not releases:
        return
    newest = judge(releases[-1], None)
    if not newest:
        return
    fired = frozenset(finding.rule for finding in newest)
    others = {release: _levels(judge(release, fired)) for release in releases[-2::-1]}
    for finding in newest:
        place = (finding.rule, finding.span)
        agreeing = [release for release in releases[:-1] if place in others[release]] + [releases[-1]]
        levels = [finding.level, *(others[release][place] for release in agreeing[:-1])]
        level = min(levels, key=lambda one: one.rank)
        if len(agreeing) < len(releases):
            if all_must_agree or finding.rule in ordinary_elsewhere:
                continue
            finding = _weakened(replace(finding, severity=level))
        else:
            finding = replace(finding, severity=level)
        yield replace(finding, program_versions=tuple(agreeing), releases=_words(agreeing, releases))


def differing(verdicts: Sequence[tuple[str, list[Finding]]]) -> Iterator[Finding]:
    """The findings of the releases that are stated, by their labels; where several differ, an error needs them all."""
    for finding in chosen(verdicts):
        alone = len(finding.program_versions) < len(verdicts)
        yield _weakened(finding) if alone else finding


def _weakened(finding: Finding) -> Finding:
    """A warning in place of an error."""
    if finding.level is not Severity.ERROR:
        return finding
    return replace(finding, severity=Severity.WARNING, refused_by_some=True)


def _levels(findings: Sequence[Finding]) -> dict[Place, Severity]:
    return {(finding.rule, finding.span): finding.level for finding in findings}


def _words(agreeing: Sequence[str], releases: Sequence[str]) -> str:
    """Some of the releases in words; empty where there is one, which names itself."""
    if len(agreeing) == 1:
        return f"since {agreeing[0]}" if len(releases) > 1 else ""
    first = releases.index(agreeing[0])
    if list(releases[first:]) == list(agreeing):
        return f"since {agreeing[0]}" if first else f"{agreeing[0]} to {agreeing[-1]}"
    return f"{agreeing[0]} to {agreeing[-1]}, not all of them"
