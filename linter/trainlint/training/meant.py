"""Which known releases of a program may be meant for a file, by what is stated of it and of its companions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING

from trainlint.releases import version_tuple
from trainlint.repository.stated import Statements
from trainlint.repository.stated import statements as statements_of
from trainlint.repository.statements import Kind, Statement
from trainlint.targets import How, Target
from trainlint.training.declarations import declarations

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from trainlint.reading.values import Field
    from trainlint.repository.files import Repository

RECENT = timedelta(days=730)
"""Where nothing is stated, the known releases of so long before the newest may be meant."""
DISTRIBUTIONS = {"soup": "soup-cli"}
"""Programs whose package has another name."""
PROGRAMS = ("accelerate", "axolotl", "llamafactory", "soup", "transformers", "trl")


@dataclass(frozen=True)
class KnownReleases:
    """The known releases of a package, oldest first, with their days, and what each requires of others."""

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
    return KnownReleases(DISTRIBUTIONS.get(program, program), found.names, found.dates, found.bounds)


def target(repository: Repository, near: str, known: KnownReleases) -> Target:
    """The releases of a program that may be meant for a file."""
    stated = statements_of(repository)
    found = stated.of(known.package, near)
    origin = ", ".join(stated.place(statement) for statement in found.statements)
    if found.kind is Kind.UNKNOWN:
        names, bound = _bounded(stated, near, known, known.names)
        return Target(tuple(names), origin if not bound else f"{origin}, {bound}", How.UNKNOWN)
    if found.kind is Kind.EXACT:
        return Target(tuple(dict.fromkeys(s.specifier for s in found.statements)), origin, How.STATED)
    if found.kind is Kind.RANGE:
        allowed = [name for name in known.names if any(_allows(s, name) for s in found.statements)]
        if not allowed:
            return Target((_represented(found.statements[0], known.names),), origin, How.STATED)
        names, bound = _bounded(stated, near, known, allowed)
        return Target(tuple(names), origin if not bound else f"{origin}, {bound}", How.RANGE)
    names, bound = _bounded(stated, near, known, known.names)
    if bound:
        return Target(tuple(names), bound, How.RANGE)
    return Target(known.recent, "default", How.NOT_STATED)


@dataclass(frozen=True)
class Requirement:
    """What one place requires of a package, with that place."""

    statement: Statement
    field: Field

    @property
    def package(self) -> str:
        """The package's name."""
        return self.statement.package

    def allows_from(self, oldest: str) -> bool:
        """Some version that is `oldest` or newer satisfies it."""
        from packaging.specifiers import InvalidSpecifier, SpecifierSet
        from packaging.version import Version

        try:
            bounds = [spec.version.removesuffix(".*") for spec in SpecifierSet(self.statement.specifier)]
        except InvalidSpecifier:
            bounds = [self.statement.specifier]
        tried = [oldest, f"{oldest}.1", "99999", *bounds, *(f"{bound}.1" for bound in bounds)]
        return any(Version(version) >= Version(oldest) and _allows(self.statement, version) for version in tried)


def requirement(repository: Repository, near: str, package: str) -> Requirement | None:
    """The one release, or range, that is stated of a package for a file; None where it is none or not known."""
    stated = statements_of(repository)
    found = stated.of(package, near)
    if found.kind in (None, Kind.UNKNOWN) or len(found.statements) != 1:
        return None
    field = stated.field(found.statements[0])
    return None if field is None else Requirement(found.statements[0], field)


def _bounded(stated: Statements, near: str, known: KnownReleases, names: Sequence[str]) -> tuple[Sequence[str], str]:
    """The releases that go with what is stated of the packages around this one, and where that is stated."""
    places: list[str] = []
    left = list(names)
    for bound, place in _bounds_from_dependants(stated, near, known.package):
        kept = [name for name in left if bound.contains(name, prereleases=True)]
        if kept and len(kept) < len(left):
            left = kept
            places.append(place)
    versions = {}
    for package in {package for name in left for package in known.bounds(name)}:
        found = stated.of(package, near)
        if found.kind is Kind.EXACT and len(found.statements) == 1:
            versions[package] = found.statements[0]
    kept = [name for name in left if all(_goes_with(known.bounds(name), p, s.specifier) for p, s in versions.items())]
    if kept and len(kept) < len(left):
        left = kept
        places.extend(stated.place(statement) for statement in versions.values())
    return left, ", ".join(places)


def _bounds_from_dependants(stated: Statements, near: str, package: str) -> Iterator[tuple[SpecifierSet, str]]:
    """What programs whose release is stated require of this package."""
    from packaging.specifiers import SpecifierSet

    for program in PROGRAMS:
        other = known_releases(program)
        if other.package == package:
            continue
        found = stated.of(other.package, near)
        if found.kind is Kind.EXACT and len(found.statements) == 1:
            speaking = declarations(program).in_force(found.statements[0].specifier).releases
            bounds = [other.bounds(name).get(package) for name in speaking]
            if len(bounds) == 1 and bounds[0]:
                yield SpecifierSet(bounds[0]), stated.place(found.statements[0])


def _goes_with(bounds: Mapping[str, str], package: str, version: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion

    try:
        return SpecifierSet(bounds.get(package, "")).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True


def _allows(statement: Statement, version: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion

    if statement.kind is Kind.EXACT:
        return version_tuple(statement.specifier) == version_tuple(version)
    try:
        return SpecifierSet(statement.specifier).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return False


def _represented(statement: Statement, names: Sequence[str]) -> str:
    """A version that stands for a range which no known release satisfies: older, newer or between them."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        bounds = [spec.version.removesuffix(".*") for spec in SpecifierSet(statement.specifier)]
    except InvalidSpecifier:
        return statement.specifier
    for bound in bounds:
        for version in (bound, f"{bound}.1", _just_below(bound)):
            if _allows(statement, version):
                return version
    return names[-1]


def _just_below(version: str) -> str:
    """A release below a bound: 0.26 for 0.27, 0 for 1.0."""
    numbers = list(version_tuple(version))
    while numbers and not numbers[-1]:
        numbers.pop()
    return ".".join(str(number) for number in [*numbers[:-1], numbers[-1] - 1]) if numbers else "0"
