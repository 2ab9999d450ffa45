"""Whose each file is, by which evidence, in which release and stated where: `trainlint check --show-files`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainlint.targets import How, Target

if TYPE_CHECKING:
    from trainlint.recognise import Claim


@dataclass(frozen=True)
class Owned:
    """One subject of a file: the claim to it, and the releases that it is judged by."""

    claim: Claim
    target: Target | None
    """None for a claim that does not count."""


@dataclass(frozen=True)
class ShownFile:
    """One file that holds the marker of some program.

    `near` are the titles of programs whose marker it holds and which claim nothing in it, with what their files are
    known by. `left_alone` says why the file is not looked at, empty where it is.
    """

    path: str
    owned: tuple[Owned, ...]
    near: tuple[tuple[str, str], ...]
    left_alone: str = ""


def as_text(files: Sequence[ShownFile]) -> str:
    """A block for each file, those that were almost recognised at the end."""
    owned = [file for file in files if any(one.target is not None for one in file.owned)]
    rest = [file for file in files if file not in owned]
    blocks = ["\n".join(_lines(file)) for file in [*owned, *rest]]
    count = f"{len(owned)} recognised, {len(rest)} almost\n"
    return "\n\n".join([*blocks, count]) if blocks else "no file holds the marker of a program\n"


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
                    "lost": one.claim.lost or None,
                }
                for one in file.owned
            ],
            "near": [{"program": title, "knownBy": known_by} for title, known_by in file.near],
            "leftAlone": file.left_alone or None,
        }
        for file in files
    ]
    return json.dumps({"version": 1, "files": rows}, indent=2, ensure_ascii=False) + "\n"


def _lines(file: ShownFile) -> Iterator[str]:
    yield file.path
    if file.left_alone:
        yield f"  left alone: {file.left_alone}"
    for one in file.owned:
        claim = one.claim
        if one.target is None:
            yield f"  not {claim.program.title}: {claim.lost}"
        else:
            yield f"  {claim.program.title}, by {claim.evidence}"
            yield f"    {_release(one.target)}"
    if not file.left_alone:
        for title, known_by in file.near:
            yield f"  not {title}: its files are known by {known_by}"


def _release(target: Target) -> str:
    versions = target.versions
    span = versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
    if target.how is How.CHOSEN:
        return f"release {', '.join(versions)}, chosen by {target.origin}"
    if target.how is How.STATED:
        return f"release {', '.join(versions)}, stated in {target.origin}"
    if target.how is How.RANGE:
        return f"release {span}, a range by {target.origin}"
    if target.how is How.UNKNOWN:
        return f"release unknown: {target.origin} names a commit, a branch or a copy; what {span} agree on is said"
    return f"release not stated: {span} may be meant"
