"""Limits as data: settings that a program refuses together, as short conditions on the names of the settings.

A condition is a list of terms with spaces between them. It holds for a file when every term does; a term that depends
on an unknown value does not hold. `rl sample_packing` holds when both are set to something true. The other terms:

    !a        a is absent or false            a|b       one of them is set to something true
    a?  !a?   a is given, is absent or null   !a|b      none of them is
    a=x,y     a is one of these               a!=x,y    a is none of these, or absent
    a>1  a<2  a is a number above, below      a?!=x,y   a is given, and none of these
    a|b#>1    more than one of them is true   a|b#<2    fewer than two are
    a~x       the text of a contains x, in any case

`true` and `false` are the booleans themselves. `a.b` is a key of the section `a`. A word before the colon (`start`,
`prepare`, `train`, `save`) says when the program refuses, where that is later than its rule says. `{}` in a message or
help is the last part of the name of the setting that the finding points at. A help that is one step, `remove NAME` or
`set NAME: VALUE`, is also the unsafe fix. A program's limits are in programs/PROGRAM/limits.txt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from trainlint.findings import Fix, Stage
from trainlint.lazy import regex
from trainlint.reading import mending
from trainlint.reading.scalars import Dialect, Plain, plain_value
from trainlint.reading.values import UNKNOWN
from trainlint.records import dataclass

if TYPE_CHECKING:
    from trainlint.findings import Finding, Severity
    from trainlint.reading.values import Field, UnknownContent

Data: TypeAlias = "Plain | Sequence[Data] | Mapping[str, Data] | UnknownContent"


@runtime_checkable
class ReadFile(Protocol):
    """A file as a program reads it: its settings by name."""

    def data(self, name: str) -> Data:
        """The value of a setting; None where it is absent."""

    def place(self, name: str) -> Field:
        """Where a setting is written."""


@dataclass(frozen=True)
class Term:
    """One term of a condition: the settings that it names, and the test on them."""

    names: tuple[str, ...]
    negated: bool = False
    given: bool = False
    operator: str = ""
    operand: str = ""

    def test(self, reading: ReadFile) -> bool | None:
        """Whether it holds for a file; None where that depends on an unknown value."""
        values = [reading.data(name) for name in self.names]
        if self.operator.startswith("#"):
            return _count(values, self.operator, int(self.operand))
        if self.given:
            answers = [_given(value) for value in values]
        elif self.operator:
            answers = [_compare(value, self.operator, self.operand) for value in values]
        else:
            answers = [is_true(value) for value in values]
        answer = True if True in answers else None if None in answers else False
        return None if answer is None else answer != self.negated

    def of(self, name: str) -> Term:
        """What the term says of one of its settings; of those that it counts, that it is true."""
        if self.operator.startswith("#"):
            return Term((name,))
        return Term((name,), self.negated, self.given, self.operator, self.operand)


_TERM = regex(r"(!?)([\w.|]+)(?:(\?)|(=|!=|\?!=|#>|#<|>|<|~)(.*))?")


@cache
def terms_of(condition: str) -> tuple[Term, ...]:
    """The terms of a condition.

    Raises ValueError for a text that is not a term.
    """
    return tuple(_term(text) for text in condition.split(" ") if text)


def _term(text: str) -> Term:
    match = _TERM.fullmatch(text)
    if match is None:
        raise ValueError(f"not a condition: {text}")
    negated, names, given, operator, operand = match.groups("")
    return Term(tuple(names.split("|")), bool(negated), bool(given), operator, operand)


@dataclass(frozen=True)
class Limit:
    """Settings that a program refuses together.

    `at` names the setting that the finding is placed at (of several, the first that is given). `since` and `until` are
    the first and the last known release that refuse. `converted`: the program checks after it has converted the values
    to the types of their fields. `stage` is when it refuses, where that is not when its rule says.
    """

    at: str
    when: str
    message: str
    help: str = ""
    since: str = ""
    until: str = ""
    converted: bool = False
    stage: Stage | None = None

    def holds(self, reading: ReadFile) -> bool:
        """Every term of the limit holds."""
        return all(term.test(reading) is True for term in terms_of(self.when))

    def place(self, reading: ReadFile) -> Field:
        """Where the setting to point at is written."""
        return reading.place(self.pointed(reading))

    def pointed(self, reading: ReadFile) -> str:
        """The setting to point at: of several the first that is true; if none is written, one of the condition."""
        names = self.at.split("|")
        written = [name for name in names if _is_written(reading, name) and reading.data(name) is not None]
        if not written and self.at:
            named = [name for term in terms_of(self.when) for name in term.names]
            written = [name for name in named if _is_written(reading, name)]
        return next((name for name in written if is_true(reading.data(name))), (written or names)[0])

    def named(self, text: str, reading: ReadFile) -> str:
        """The message or the help, with the name of the setting to point at."""
        return text.replace("{}", self.pointed(reading).rpartition(".")[2])

    def names(self, reading: ReadFile) -> frozenset[str]:
        """The settings of the condition that are written in the file."""
        return frozenset(n for term in terms_of(self.when) for n in term.names if _is_written(reading, n))

    def halves(self, reading: ReadFile) -> Iterator[Field]:
        """The settings that are written in the file and for which the terms hold, each at its place."""
        for term in terms_of(self.when):
            for name in term.names:
                if _is_written(reading, name) and term.of(name).test(reading) is True:
                    yield reading.place(name)

    def applies_to(self, release: str, order: Sequence[str]) -> bool:
        """The limit is one of this release; `order` has the known releases, oldest first."""
        unknown = {self.since, self.until} - {"", *order}
        if unknown:
            raise ValueError(f"the limit on {self.when} names {min(unknown)}, which is not a known release")
        index = order.index(release)
        return (not self.since or order.index(self.since) <= index) and (
            not self.until or index <= order.index(self.until)
        )


def _is_written(reading: ReadFile, name: str) -> bool:
    return reading.place(name).node is not None


def refused(
    limits: Iterable[Limit],
    reading: ReadFile,
    converted: ReadFile | None = None,
    *,
    severity: Severity | None = None,
    why: str = "",
) -> Iterator[Finding]:
    """A finding for each place with a limit that holds; `converted` is the file after its values are converted.

    Further limits of the same place are told with the first one. `why` is added to each message.
    """
    found: dict[object, list[tuple[Limit, ReadFile]]] = {}
    for limit in limits:
        seen = converted if limit.converted and converted is not None else reading
        if limit.holds(seen):
            place = limit.place(seen)
            found.setdefault((place.path, place.node is None and limit.message), []).append((limit, seen))
    for (limit, seen), *others in found.values():
        also = [other for other, _ in others]
        yield told(limit, seen, also, severity=severity, why=why)


def told(
    limit: Limit, reading: ReadFile, also: Iterable[Limit] = (), *, severity: Severity | None = None, why: str = ""
) -> Finding:
    """The finding for a limit that holds, with the places of others that hold for the same settings."""
    place = limit.place(reading)
    others = [one for other in also for one in other.place(reading).relate(other.named(other.message, reading))]
    taken = {place.span, *(other.span for other in others)}
    halves = [one for half in limit.halves(reading) for one in half.as_other_half]
    return place.finding(
        limit.named(limit.message, reading) + why,
        help=limit.named(limit.help, reading),
        fix=_followed(limit, reading),
        severity=severity,
        stage=limit.stage,
        at_key=place.is_sequence or place.is_mapping,
        related=tuple(dict.fromkeys([*(half for half in halves if half.span not in taken), *others])),
    )


def _followed(limit: Limit, reading: ReadFile) -> Fix | None:
    """The fix where the help is one step: `remove NAME`, `remove it` or `set NAME: VALUE`.

    It is never sure: the other half of the contradiction may be the wrong one.
    """
    step = _STEP.fullmatch(limit.help)
    if step is None:
        return None
    pointed = limit.pointed(reading)
    if step["gone"]:
        name = pointed if step["gone"] in ("it", "{}") else step["gone"]
        return mending.removed(reading.place(name), sure=False)
    named = [name for term in terms_of(limit.when) for name in term.names]
    name = next((name for name in named if name == step["name"] or name.endswith(f".{step['name']}")), None)
    if name is None:
        return None
    place = reading.place(name)
    if place.node is not None:
        return mending.written(place, step["value"], sure=False)
    return mending.added(place.parent, place.name, step["value"], sure=False) if place.parent is not None else None


_STEP = regex(
    r"remove (?P<gone>it|\{\}|[\w.]+)(?:: .+)?|set (?P<name>[\w.]+): (?P<value>[\w.-]+)(?: \(the default is [\w.]+\))?"
)


def grouped(limits: Iterable[Limit], reading: ReadFile) -> list[list[Limit]]:
    """The limits that hold; those of the same setting in the file, or with the same term, together."""
    groups: list[tuple[list[Limit], set[object]]] = []
    for limit in limits:
        if limit.holds(reading):
            about = {*limit.names(reading), *terms_of(limit.when)}
            group = next((group for group in groups if group[1] & about), None)
            if group is None:
                groups.append(([limit], about))
            else:
                group[0].append(limit)
                group[1].update(about)
    return [found for found, _ in groups]


_PART = regex(r"\[(\S+)\]\n|(\S.*)\n {4}(?!-> )(.+)\n(?: {4}-> (.+)\n)?")
_LIMIT = regex(r"(?=[\d.])(\d+(?:\.\d+)+)?(\.\.)?(\d+(?:\.\d+)+)?( converted)?(?: (\w+))?: (.+)")
_PLACE = regex(r"@\(([\w.|]*)\) ?|@(!?([\w.|]+))")


@cache
def limits_of(program: str) -> Mapping[str, tuple[Limit, ...]]:
    """The limits of a program in all its releases, by section."""
    path = Path(__file__).parent.parent / "programs" / program / "limits.txt"
    return read_limits(path.read_text(encoding="utf-8"))


def read_limits(text: str) -> Mapping[str, tuple[Limit, ...]]:
    """The limits in a text, by section; the head of each file describes the format.

    Raises ValueError for any other text.
    """
    lines = [f"{line}\n" for line in text.splitlines() if line and not line.startswith("#")]
    stated = "".join(lines)
    found: dict[str, list[Limit]] = {}
    section: list[Limit] | None = None
    position = 0
    while position < len(stated):
        part = _PART.match(stated, position)
        if part is None or (part[1] is None and section is None):
            raise ValueError(f"not a limit: {stated[position:].partition(chr(10))[0]}")
        if part[1] is not None:
            section = found.setdefault(part[1], [])
        elif section is not None:
            section.append(_limit(part[2], part[3], part[4] or ""))
        position = part.end()
    return {name: tuple(limits) for name, limits in found.items()}


def limits_of_release(program: str, release: str, order: Sequence[str]) -> Mapping[str, tuple[Limit, ...]]:
    """The limits of one release, by section; `order` has the known releases, oldest first."""
    return {
        section: tuple(limit for limit in limits if limit.applies_to(release, order))
        for section, limits in limits_of(program).items()
    }


def _limit(line: str, message: str, help: str) -> Limit:
    match = _LIMIT.fullmatch(line)
    place = _PLACE.search(line)
    if match is None or place is None:
        raise ValueError(f"not a limit: {line}")
    since, dots, until, converted, stage, when = match.groups()
    at = place[3] if place[1] is None else place[1]
    when = _PLACE.sub(lambda found: found[2] or "", when)
    return Limit(
        at,
        when,
        message,
        help,
        since or "",
        (until if dots else since) or "",
        bool(converted),
        Stage(stage) if stage else None,
    )


def is_true(value: Data) -> bool | None:
    """Whether the value is true in Python; None where it is not known."""
    return None if value is UNKNOWN else bool(value)


def data_of(field: Field) -> Data:
    """What a field holds as plain data; a template in it is UNKNOWN."""
    if field.is_unknown:
        return UNKNOWN
    if field.node is None:
        return None
    if field.is_mapping:
        return {entry.name: data_of(entry) for entry in field.entries()}
    if field.is_sequence:
        return [data_of(item) for item in field.items()]
    return field.plain


def _given(value: Data) -> bool | None:
    return None if value is UNKNOWN else value is not None


def _count(values: Sequence[Data], operator: str, bound: int) -> bool | None:
    answers = [is_true(value) for value in values]
    if None in answers:
        return None
    return answers.count(True) > bound if operator == "#>" else answers.count(True) < bound


def _compare(value: Data, operator: str, operand: str) -> bool | None:
    if value is UNKNOWN:
        return None
    if operator == "~":
        return isinstance(value, str) and operand.lower() in value.lower()
    if operator in (">", "<"):
        if not isinstance(value, (int, float)):
            return False
        return value > float(operand) if operator == ">" else value < float(operand)
    if operator == "?!=" and value is None:
        return False
    found = any(_is(value, word) for word in operand.split(","))
    return found if operator == "=" else not found


def _is(value: Data, word: str) -> bool:
    if word in ("true", "false"):
        return value is (word == "true")
    number = plain_value(word, Dialect.PYYAML) if word.lstrip("-")[:1].isdecimal() else None
    return value == (word if number is None else number)
