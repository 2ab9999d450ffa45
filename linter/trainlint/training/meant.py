"""Which known releases of a program a file may be for, from the stated releases of it and of related packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from trainlint.releases import version_tuple
from trainlint.repository.stated import Stated, Statements, allows, statements_in
from trainlint.repository.statements import Kind
from trainlint.targets import How, Target
from trainlint.training.declarations import DISTRIBUTIONS, declarations

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from trainlint.repository.files import Repository

RECENT = timedelta(days=730)
"""Where nothing is stated, a file may be for any known release of this time before the newest."""


@dataclass(frozen=True)
class KnownReleases:
    """The known releases of a package, oldest first, with their dates and the packages they require."""

    package: str
    names: Sequence[str]
    dates: Mapping[str, str]
    bounds: Callable[[str], Mapping[str, str]]

    @property
    def recent(self) -> tuple[str, ...]:
        """The releases of the two years before the newest."""
        first = (date.fromisoformat(self.dates[self.names[-1]]) - RECENT).isoformat()
        return tuple(name for name in self.names if self.dates[name] >= first)


def known_releases(program: str) -> KnownReleases:
    """The known releases of a program that is released as a wheel."""
    found = declarations(program)
    return KnownReleases(DISTRIBUTIONS[program], found.names, found.dates, found.bounds)


def target(repository: Repository, near: str, known: KnownReleases) -> Target:
    """The releases of a program that a file may be for."""
    statements = statements_in(repository)
    found = statements.stated(near, known.package)
    origin = ", ".join(dict.fromkeys(statement.origin for statement in found.statements))
    if found.how is How.STATED:
        return Target(found.versions, origin, How.STATED)
    allowed = known.names
    if found.how is How.RANGE:
        allowed = [name for name in known.names if found.allows(name)]
        if not allowed:
            return Target((_represented(found, known.names),), origin, How.STATED)
    names, bound = _bounded(statements, near, known, allowed)
    if found.how is How.NOT_STATED and not bound:
        return Target(known.recent, "default", How.NOT_STATED)
    how = How.RANGE if found.how is How.NOT_STATED else found.how
    if how is How.UNKNOWN and bound:
        # A commit may be newer than the last release that fits; then the next release contains it.
        names = [*names, *known.names[known.names.index(names[-1]) + 1 :][:1]]
    return Target(tuple(names), ", ".join(part for part in (origin, bound) if part), how)


def _bounded(
    statements: Statements, near: str, known: KnownReleases, names: Sequence[str]
) -> tuple[Sequence[str], str]:
    """The releases that fit the stated releases of related packages, and where those are stated."""
    places: list[str] = []
    left = list(names)
    for bound, place in _bounds_from_dependants(statements, near, known.package):
        kept = [name for name in left if bound.contains(name, prereleases=True)]
        if kept and len(kept) < len(left):
            left = kept
            places.append(place)
    versions = {}
    for package in {package for name in left for package in known.bounds(name)}:
        found = statements.stated(near, package)
        if found.how is How.STATED and len(found.versions) == 1:
            versions[package] = found.statements[0]
    kept = [name for name in left if all(_goes_with(known.bounds(name), p, s.specifier) for p, s in versions.items())]
    if kept and len(kept) < len(left):
        left = kept
        places.extend(statement.origin for statement in versions.values())
    return left, ", ".join(places)


def _bounds_from_dependants(statements: Statements, near: str, package: str) -> Iterator[tuple[SpecifierSet, str]]:
    """The versions of this package that programs with a stated release require."""
    from packaging.specifiers import SpecifierSet

    for program in DISTRIBUTIONS:
        other = known_releases(program)
        if other.package == package:
            continue
        found = statements.stated(near, other.package)
        if found.how is How.STATED and len(found.versions) == 1:
            speaking = declarations(program).in_force(found.versions[0]).releases
            bounds = [other.bounds(name).get(package) for name in speaking]
            if len(bounds) == 1 and bounds[0]:
                yield SpecifierSet(bounds[0]), found.origin


def _goes_with(bounds: Mapping[str, str], package: str, version: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion

    try:
        return SpecifierSet(bounds.get(package, "")).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True


def _represented(found: Stated, names: Sequence[str]) -> str:
    """A version in a range without a known release: older or newer than these, or between two."""
    from packaging.specifiers import SpecifierSet

    ranges = [statement for statement in found.statements if statement.kind is Kind.RANGE]
    for statement in ranges:
        for bound in (spec.version.removesuffix(".*") for spec in SpecifierSet(statement.specifier)):
            for version in (bound, f"{bound}.1", _just_below(bound)):
                if allows(statement, version):
                    return version
    return names[-1]


def _just_below(version: str) -> str:
    """A release below a bound: 0.26 for 0.27, 0 for 1.0."""
    numbers = list(version_tuple(version))
    while numbers and not numbers[-1]:
        numbers.pop()
    return ".".join(str(number) for number in [*numbers[:-1], numbers[-1] - 1]) if numbers else "0"
