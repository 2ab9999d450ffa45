"""`trainlint check --show-files`: the program and release of each file, and how both are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trainlint.findings import some_of
from trainlint.records import dataclass
from trainlint.reports.escape import as_json as written
from trainlint.reports.escape import visible, visible_path
from trainlint.targets import How, Target

if TYPE_CHECKING:
    from trainlint.recognise import Claim


@dataclass(frozen=True)
class Owned:
    """One subject of a file: the claim to it, and the releases that it is checked for."""

    claim: Claim
    target: Target | None
    """None if the claim does not count."""
    judged: bool = True
    """False if all these releases are older than those that are known: nothing is checked."""
    passed_over: tuple[tuple[str, str], ...] = ()
    """What else the repository says of the release, and does not count: each place, with what it says."""


@dataclass(frozen=True)
class ShownFile:
    """One file with the marker of some program.

    `near` are the programs that claim nothing in it although it has their marker: their titles, and how their files are
    recognised. `left_alone` is the reason why the file is not checked, empty if it is.
    """

    path: str
    owned: tuple[Owned, ...]
    near: tuple[tuple[str, str], ...]
    left_alone: str = ""


def as_text(files: Sequence[ShownFile]) -> str:
    """A block for each file; those that were almost recognised, or are not checked, are at the end."""
    owned = [file for file in files if any(one.target is not None for one in file.owned)]
    rest = [file for file in files if file not in owned]
    blocks = ["\n".join(_lines(file)) for file in [*owned, *rest]]
    aside = sum(bool(file.left_alone) for file in rest)
    count = f"{len(owned)} recognised, {len(rest) - aside} almost" + (f", {aside} not checked" if aside else "")
    return "\n\n".join([*blocks, f"{count}\n"]) if blocks else "no file has the marker of a program\n"


def as_json(files: Sequence[ShownFile]) -> str:
    """One object: `{"version": 1, "files": [...]}`."""
    rows = [
        {
            "path": file.path,
            "subjects": [
                {
                    "program": one.claim.program.name,
                    "line": one.claim.subject.field.span.line,
                    "evidence": one.claim.evidence,
                    "versions": list(one.target.versions) if one.target else [],
                    "known": one.target.how.value if one.target else None,
                    "from": one.target.origin if one.target else None,
                    "passedOver": [{"from": place, "says": said} for place, said in one.passed_over],
                    "lost": one.claim.lost or None,
                }
                for one in file.owned
            ],
            "near": [{"program": title, "knownBy": known_by} for title, known_by in file.near],
            "leftAlone": file.left_alone or None,
        }
        for file in files
    ]
    return written({"version": 1, "files": rows})


def _lines(file: ShownFile) -> Iterator[str]:
    yield visible_path(file.path)
    for remark in remarks(file, "\n    "):
        yield f"  {remark}"


def remarks(file: ShownFile, before_release: str = "; ") -> list[str]:
    """What is known of a file: each program that owns a part of it with its release, and why it is no other's."""
    if file.left_alone:
        return [f"not checked: {visible(file.left_alone)}"]
    claims = [_claim(owned, before_release) for owned in file.owned]
    return [*dict.fromkeys(claims), *(f"not {title}: its files have {known_by}" for title, known_by in file.near)]


def _claim(owned: Owned, before_release: str) -> str:
    claim = owned.claim
    if owned.target is None:
        return visible(f"not {claim.program.title}: {claim.lost}")
    unjudged = "" if owned.judged else ", older than all known ones; not checked"
    shown = some_of([f"{place} ({said})" for place, said in owned.passed_over])
    others = f"{before_release}passed over: {visible(shown)}" if shown else ""
    known_by = visible(f"{claim.program.title}, by {claim.evidence}")
    return f"{known_by}{before_release}{visible(_release(owned.target))}{unjudged}{others}"


def _release(target: Target) -> str:
    versions = target.versions
    if not versions:
        return f"release older than all known ones, by {target.origin}; not checked"
    span = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
    if target.how is How.CHOSEN:
        return f"release {', '.join(versions)}, chosen by {target.origin}"
    if target.how is How.STATED:
        return f"release {', '.join(versions)}, stated in {target.origin}"
    if target.how is How.RANGE:
        return f"release {span}, the range in {target.origin}"
    if target.how is How.UNKNOWN:
        return f"release unknown: {target.origin} does not tell which; checked for {span}"
    return f"release not stated; checked for {span}"
