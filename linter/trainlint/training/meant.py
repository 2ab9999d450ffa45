"""Which known releases of a program a file may be for, from the stated releases of it and of related packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING

from trainlint.lazy import regex
from trainlint.records import NamedTuple
from trainlint.releases import version_tuple
from trainlint.repository.stated import Stated, Statements, allows, statements_in
from trainlint.repository.statements import Form, Kind, Statement
from trainlint.targets import How, Target
from trainlint.training.declarations import DISTRIBUTIONS, declarations

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from trainlint.repository.files import Repository

RECENT = timedelta(days=730)
"""Where nothing is stated, a file may be for any known release of this time before the newest."""

_FURTHER_BOUNDS: Mapping[str, Mapping[str, str]] = {"axolotl": {"torch": ">=2.4"}}
"""What all known releases of a program require and their metadata do not say.

Source: axolotl 0.8 to 0.13, parse_requirements of setup.py, which refuses to be installed beside an older torch.
"""


_APPLICATIONS = frozenset(("axolotl", "llamafactory"))
"""Programs that no other package requires: where they are installed, something names them."""

_DAY = regex(r"\bmain-(20\d\d)([01]\d)([0-3]\d)\b")
"""The tag of an image that is built each night."""


class KnownReleases(NamedTuple):
    """The known releases of a package, oldest first, with their dates and the packages they require.

    `older` are releases before these, of which only the tables were read; `dates` has those too.
    """

    package: str
    names: Sequence[str]
    dates: Mapping[str, str]
    bounds: Callable[[str], Mapping[str, str]]
    older: Sequence[str] = ()

    @property
    def recent(self) -> tuple[str, ...]:
        """The releases of the two years before the newest."""
        first = (date.fromisoformat(self.dates[self.names[-1]]) - RECENT).isoformat()
        return tuple(name for name in self.names if self.dates[name] >= first)


@cache
def known_releases(program: str) -> KnownReleases:
    """The known releases of a program that is released as a wheel."""
    found = declarations(program)
    further = _FURTHER_BOUNDS.get(program, {})

    @cache
    def bounds(release: str) -> Mapping[str, str]:
        return {**further, **found.bounds(release)}

    dates = {**found.older.dates, **found.dates} if found.only_read else found.dates
    return KnownReleases(DISTRIBUTIONS[program], found.names, dates, bounds, found.only_read)


def target(repository: Repository, near: str, known: KnownReleases) -> Target:
    """The releases of a program that a file may be for."""
    return repository.once(("target", near, known.package), lambda: _target(repository, near, known))


def _target(repository: Repository, near: str, known: KnownReleases) -> Target:
    statements = statements_in(repository)
    found = statements.stated(near, known.package)
    if found.how is How.NOT_STATED:
        found = statements.in_comments(near, known.package)._replace(others=found.others)
    origin = ", ".join(dict.fromkeys(statement.origin for statement in found.statements))
    if found.how is How.STATED:
        return Target(found.versions, origin, How.STATED, maybe_another=found.of_fork)
    allowed = known.names
    if found.how is How.RANGE:
        allowed = [name for name in known.names if found.allows(name)]
        if not allowed:
            older = tuple(name for name in known.older if found.allows(name))
            if older:
                return Target(older, origin, How.RANGE)
            return Target((_represented(found, known.names),), origin, How.STATED)
    dated = _of_that_day(found, known)
    if dated is not None:
        return Target(dated, origin, How.UNKNOWN, maybe_another=bool(dated))
    # An image, and what is installed behind the project, bring their own companions.
    alone = any(statement.replaces or statement.form is Form.IMAGE for statement in found.statements)
    if known.package in _APPLICATIONS and not found.statements and not found.others:
        alone = True  # What is installed here is not what it runs with: it would be named.
    names, bound = (allowed, "") if alone else _bounded(statements, near, known, allowed, found)
    if not names and found.how is How.NOT_STATED and not found.others:
        names, bound = allowed, ""  # Nothing shows that the program is installed beside the old package.
    if not names:
        return Target((), ", ".join(part for part in (origin, bound) if part), How.UNKNOWN)
    if found.how is How.NOT_STATED and not bound:
        return Target(known.recent, "default", How.NOT_STATED)
    how = How.RANGE if found.how is How.NOT_STATED else found.how
    if how is How.UNKNOWN and bound:
        # A commit may be newer than the last release that fits; then the next release contains it.
        all_names = [*known.older, *known.names]
        names = [*names, *all_names[all_names.index(names[-1]) + 1 :][:1]]
    another = how is How.UNKNOWN and (not bound or found.of_fork)
    return Target(tuple(names), ", ".join(part for part in (origin, bound) if part), how, maybe_another=another)


def passed_over(repository: Repository, near: str, program: str) -> tuple[tuple[str, str], ...]:
    """What was come upon on the way to the statement that counts, and does not count itself: place and meaning."""
    found = statements_in(repository).stated(near, DISTRIBUTIONS.get(program, program))
    return tuple((other.origin, other.specifier) for other in found.others if other.specifier)


def with_settings(
    meant: Target, program: str, settings: Iterable[str], is_own: Callable[[str], bool] = lambda name: False
) -> Target:
    """Those of the releases that are meant which have the settings of a file, or are newer than one that has.

    A setting that was removed since does not count against the newer releases: it may be there by mistake. Nor does an
    argument of transformers that a release declares anew, or a setting that the repository defines itself.
    """
    known = declarations(program)
    inherited = _inherited(program)
    oldest = min(map(known.names.index, meant.versions), default=0)
    since = 0
    for name in settings:
        release = known.first_with(name)
        first = known.names.index(release) if release else 0
        if first > max(oldest, since) and name not in inherited and not is_own(name):
            since = first
    left = tuple(release for release in meant.versions if known.names.index(release) >= since)
    return meant._replace(versions=left) if left else meant


@cache
def _inherited(program: str) -> frozenset[str]:
    """The arguments that a program's dataclasses have from those of transformers."""
    known, theirs = declarations(program), declarations("transformers")
    bases = {base for table in known.tables for base in known.bases(table, known.newest)}
    if program == "transformers" or not bases & {"TrainingArguments", "BaseTrainingArguments"}:
        return frozenset()
    return frozenset().union(
        *(theirs.keys_of_any(table) for table in ("TrainingArguments", "Seq2SeqTrainingArguments"))
    )


def _of_that_day(found: Stated, known: KnownReleases) -> tuple[str, ...] | None:
    """The releases around the day of an image that is built from the main branch; none if it is older than all.

    None where no such image is what is stated.
    """
    match = _DAY.search(found.statements[0].specifier) if len(found.statements) == 1 else None
    if match is None or found.how is not How.UNKNOWN:
        return None
    day = "-".join(match.groups())
    dated = [*known.older, *known.names]
    before = [name for name in dated if known.dates[name] <= day]
    after = [name for name in dated if known.dates[name] > day]
    return (*before[-1:], *after[:1]) if before else ()


def _bounded(
    statements: Statements, near: str, known: KnownReleases, names: Sequence[str], found: Stated
) -> tuple[Sequence[str], str]:
    """The releases that fit the stated releases of related packages, and where those are stated.

    `found` is what is stated of the program itself.
    If a package is stated that is older than what any release requires, the program is older as well: it may be one of
    those that were only read, or older than these.
    """
    places: list[str] = []
    left = list(names)
    for bounds, place in _bounds_from_dependants(statements, near, known.package, found):
        kept = [name for name in left if any(bound.contains(name, prereleases=True) for bound in bounds)]
        if kept and len(kept) < len(left):
            left = kept
            places.append(place)
    versions = {}
    for package in dict.fromkeys(package for name in left for package in known.bounds(name)):
        companion = statements.stated(near, package)
        if (
            companion.how is How.STATED
            and len(companion.versions) == 1
            and _go_together(companion, found)
            and statements.is_together(companion, near, known.package)
        ):
            versions[package] = companion.statements[0]
    for package, statement in versions.items():
        if all(is_below(known.bounds(name).get(package, ""), statement.specifier) for name in names):
            older = [name for name in known.older if found.allows(name) and _goes_with_all(known, name, versions)]
            return older, statement.origin
    kept = [name for name in left if _goes_with_all(known, name, versions)]
    if kept and len(kept) < len(left):
        left = kept
        places.extend(statement.origin for statement in versions.values())
    return left, ", ".join(places)


def _bounds_from_dependants(
    statements: Statements, near: str, package: str, of_package: Stated
) -> Iterator[tuple[Sequence[SpecifierSet], str]]:
    """The versions of this package that programs with a stated release require: for each, those of any such release."""
    for program, distribution in DISTRIBUTIONS.items():
        if distribution == package:
            continue
        found = statements.stated(near, distribution)
        if found.how is How.STATED and _go_together(found, of_package) and statements.is_together(found, near, package):
            from packaging.specifiers import SpecifierSet

            speaking = [name for version in found.versions for name in declarations(program).in_force(version).releases]
            bounds = [known_releases(program).bounds(name).get(package) for name in dict.fromkeys(speaking)]
            required = [SpecifierSet(bound) for bound in bounds if bound]
            if required and len(required) == len(bounds):
                yield required, found.origin


def _go_together(companion: Stated, found: Stated) -> bool:
    """The stated release of a companion holds where the program runs.

    A clone, a commit or a fork that is installed for itself brings the companions that it needs: only what is installed
    in the same go or later in the same script limits it. Of a fork nobody knows what it needs.
    """
    if companion.of_fork:
        return False
    unknown = [statement for statement in found.statements if statement.kind is Kind.UNKNOWN]
    return all(_holds_beside(one, other) for one in companion.statements for other in unknown)


def _holds_beside(companion: Statement, unknown: Statement) -> bool:
    if companion.form <= Form.ENVIRONMENT and unknown.form <= Form.ENVIRONMENT:
        return companion.home == unknown.home
    same_file = companion.span.path == unknown.span.path
    return same_file and (companion.span.line, companion.span.column) > (unknown.span.line, unknown.span.column)


def _goes_with_all(known: KnownReleases, name: str, versions: Mapping[str, Statement]) -> bool:
    bounds = known.bounds(name)
    return all(_goes_with(bounds, package, stated.specifier) for package, stated in versions.items())


def _goes_with(bounds: Mapping[str, str], package: str, version: str) -> bool:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion

    try:
        return SpecifierSet(bounds.get(package, "")).contains(version, prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return True


def is_below(bound: str, version: str) -> bool:
    """A version is below the lower end of a range."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        ends = [Version(s.version) for s in SpecifierSet(bound) if s.operator in (">=", ">", "==", "~=")]
        return any(Version(version) < end for end in ends)
    except (InvalidSpecifier, InvalidVersion):
        return False


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
