"""Versions and spans of releases: which known releases speak for a version, and what holds for which of them.

A span is written in one way everywhere, in code, JSON and limits: `1.4.0..1.6.0` with both ends included, `1.6.0..`
and `..0.34.2` with one, `..` for all, `0.76.1` for one release, and several joined by commas.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class InForce:
    """The known releases that stand in for a version; only findings common to all are reported.

    Usually one, which is then the `label`; two for a version between them; none for one older than the oldest known.
    `notice` is what the user should know of the choice.
    """

    releases: tuple[str, ...]
    label: str
    notice: str = ""


@dataclass(frozen=True)
class ReleaseSpan:
    """A run of releases with both ends included; an empty end is open."""

    since: str = ""
    until: str = ""

    def holds(self, release: str) -> bool:
        """The release lies in the span."""
        version = version_tuple(release)
        return (not self.since or version_tuple(self.since) <= version) and (
            not self.until or version <= version_tuple(self.until)
        )

    @property
    def words(self) -> str:
        """The span for a message: `since 1.6.0`, `1.4.0 to 1.6.0`, `until 1.12.0`."""
        if self.since and self.until:
            return f"{self.since} to {self.until}"
        return f"since {self.since}" if self.since else f"until {self.until}"


@cache
def spans(text: str) -> tuple[ReleaseSpan, ...]:
    """The spans that a text names."""
    found = []
    for part in text.split(","):
        since, dots, until = part.partition("..")
        found.append(ReleaseSpan(since, until if dots else since))
    return tuple(found)


def within(release: str, text: str) -> bool:
    """The release lies in one of the spans that the text names."""
    return any(span.holds(release) for span in spans(text))


def words_within(table: Mapping[str, tuple[T, ...]], release: str) -> tuple[T, ...]:
    """The words that a release has, of a table that lists them by the spans in which they exist."""
    return tuple(word for text, words in table.items() if within(release, text) for word in words)


def names_within(table: Mapping[str, str], release: str) -> tuple[str, ...]:
    """The names whose span holds for a release."""
    return tuple(name for name, text in table.items() if within(release, text))


def during(text: str) -> Any:
    """A member of a facts dataclass that is true for the releases of these spans; `behaviour` fills it in."""
    return dataclasses.field(metadata={"during": text}, kw_only=True)


def behaviour(facts: type[Any], release: str) -> dict[str, Any]:
    """The members of a facts dataclass that are declared with `during`, for one release."""
    return {name: within(release, text) for name, text in behaviour_spans(facts).items()}


def behaviour_spans(facts: type[Any]) -> dict[str, str]:
    """The members of a facts dataclass that are declared with `during`, with their spans."""
    return {one.name: one.metadata["during"] for one in dataclasses.fields(facts) if "during" in one.metadata}


@cache
def version_tuple(version: str) -> tuple[int, ...]:
    """The release part of a version as numbers: `v1.6.0rc1` is (1, 6, 0); () where there is none.

    A pre-release has the keys of its release rather than those of the release before.
    """
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


def speaking_for(program: str, names: Iterable[str], version: str) -> InForce:
    """Which of a program's known releases speak for a version."""
    known = {version_tuple(name): name for name in names}
    asked = version_tuple(version)
    if not asked:
        return InForce((), version, f"{version} is not a version of {program}: nothing that depends on it is said")
    same = [name for name in known if name[: len(asked)] == asked]
    if same:
        return InForce((known[max(same)],), known[max(same)])
    near = [name for name in known if name[:2] == asked[:2]]
    below = max((name for name in near or known if name < asked), default=None)
    above = min((name for name in near or known if name > asked), default=None)
    if above is None and not near:
        newest = known[max(known)]
        notice = f"{program} {version} is newer than {newest}, the newest release that is known"
        return InForce((newest,), newest, notice)
    if below is None and not near:
        notice = f"{program} {version} is older than {known[min(known)]}, the oldest release that is known"
        return InForce((), version, notice)
    speaking = tuple(known[name] for name in (below, above) if name is not None)
    return InForce(speaking, speaking[0] if len(speaking) == 1 else version)
