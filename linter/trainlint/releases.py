"""Versions and spans of releases: which known releases stand in for a version, and which releases a span contains.

Code, JSON and limits all write a span like this: `1.4.0..1.6.0` with both ends included, `1.6.0..` and `..0.34.2` with
one end, `..` for all releases, `0.76.1` for one release, and several spans joined by commas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from trainlint.records import NamedTuple, field, members

T = TypeVar("T")

_OLDEST = "the oldest release that is known"
_NOT_CHECKED = f"{_OLDEST}: its files are not checked"


class InForce(NamedTuple):
    """The known releases that stand in for a version; only findings common to all are reported.

    It is usually one, which is then the `label`; two for a version between them; none for a version older than all.
    `notice` tells the user about the choice, behind the name of the program and the version.
    """

    releases: tuple[str, ...]
    label: str
    notice: str = ""


class ReleaseSpan(NamedTuple):
    """A range of releases with both ends included; an empty end is open."""

    since: str = ""
    until: str = ""

    def holds(self, release: str) -> bool:
        """The release is in the span."""
        version = version_tuple(release)
        return (not self.since or version_tuple(self.since) <= version) and (
            not self.until or version <= version_tuple(self.until)
        )

    @property
    def words(self) -> str:
        """The span in a message: `since 1.6.0`, `1.4.0 to 1.6.0`, `until 1.12.0`."""
        if self.since and self.since == self.until:
            return self.since
        if self.since and self.until:
            return f"{self.since} to {self.until}"
        return f"since {self.since}" if self.since else f"until {self.until}" if self.until else ""


@cache
def spans(text: str) -> tuple[ReleaseSpan, ...]:
    """The spans in a text."""
    found = []
    for part in text.split(","):
        since, dots, until = part.partition("..")
        found.append(ReleaseSpan(since, until if dots else since))
    return tuple(found)


def within(release: str, text: str) -> bool:
    """The release is in one of the spans of the text."""
    return any(span.holds(release) for span in spans(text))


def words_within(table: Mapping[str, tuple[T, ...]], release: str) -> tuple[T, ...]:
    """The words of a release, from a table of words by span."""
    return tuple(word for text, words in table.items() if within(release, text) for word in words)


def names_within(table: Mapping[str, str], release: str) -> tuple[str, ...]:
    """The names of a release, from a table of spans by name."""
    return tuple(name for name, text in table.items() if within(release, text))


def during(text: str) -> Any:
    """A member of a facts dataclass that is true in the releases of these spans; `behaviour` fills it in."""
    return field(metadata={"during": text}, kw_only=True)


def behaviour(facts: type[Any], release: str) -> dict[str, Any]:
    """The values of the members declared with `during`, for one release."""
    return {name: within(release, text) for name, text in behaviour_spans(facts).items()}


def behaviour_spans(facts: type[Any]) -> dict[str, str]:
    """The members declared with `during`, with their spans."""
    return {name: one.metadata["during"] for name, one in members(facts).items() if "during" in one.metadata}


@cache
def version_tuple(version: str) -> tuple[int, ...]:
    """The release part of a version as numbers: `v1.6.0rc1` is (1, 6, 0), also for a pre-release; () where none."""
    parts = []
    for text in version.strip().lstrip("vV").split("."):
        digits = len(text) - len(text.lstrip("0123456789"))
        if not digits:
            break
        parts.append(int(text[:digits]))
        if digits < len(text):
            break
    return tuple(parts)


def minor(version: str) -> str:
    """The first two numbers of a version: `4.57` for `4.57.1`."""
    return ".".join(version.split(".")[:2])


def speaking_for(names: Iterable[str], version: str) -> InForce:
    """The known releases of a program that stand in for a version."""
    known = {version_tuple(name): name for name in names}
    asked = version_tuple(version)
    if not asked:
        return InForce((), version, "is no version: its files are not checked")
    same = [name for name in known if name[: len(asked)] == asked]
    if same and not re.search(r"[.-]?dev\d*$", version):
        return InForce((known[max(same)],), known[max(same)])
    if same:
        # A development version is what became of the release before, on its way to the one that it names.
        before = [name for name in known if name < min(same)]
        if before:
            return InForce((known[max(before)], known[min(same)]), version)
        return InForce((), version, f"is older than {known[min(known)]}, {_NOT_CHECKED}")
    first, last = min(known), max(known)
    # Releases that are known by two numbers are also those with a third.
    if asked[: len(last)] > last:
        newest = known[last]
        notice = f"is newer than {newest}, the newest release that is known: checked as that one"
        return InForce((newest,), newest, notice)
    if asked[: len(first)] < first:
        if asked[:2] != first[:2]:
            return InForce((), version, f"is older than {known[first]}, {_NOT_CHECKED}")
        notice = f"is older than {known[first]}, {_OLDEST}: checked as that one"
        return InForce((known[first],), known[first], notice)
    near = [name for name in known if name[:2] == asked[:2]]
    below = max((name for name in near or known if name < asked), default=None)
    above = min((name for name in near or known if name > asked), default=None)
    speaking = tuple(known[name] for name in (below, above) if name is not None)
    return InForce(speaking, speaking[0] if len(speaking) == 1 else version)
