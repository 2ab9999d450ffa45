"""Limits as data: settings that a program refuses together, written as short conditions over the names of its settings.

A condition is words between spaces that must all hold of a file; where one rests on a value that is not known, it does
not. `rl sample_packing` holds when both are set to something true; the other words are

    !a        a is absent or false            a|b       one of them is set to something true
    a?  !a?   a is given, is absent or null   !a|b      none of them is
    a=x,y     a is one of these               a!=x,y    a is none of these, or absent
    a>1  a<2  a is a number above, below      a~x       the text of a contains x, in whatever case
    a|b#>1    more than one of them is true   a|b#<2    fewer than two are

`true` and `false` stand for the booleans themselves. `a.b` is a key of the section `a`. A program's limits stand in
programs/PROGRAM/limits.txt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from trainlint.reading.scalars import Dialect, Plain, plain_value

if TYPE_CHECKING:
    from trainlint.reading.values import Field

Data: TypeAlias = "Plain | Sequence[Data] | Mapping[str, Data] | Unread"


class Unread:
    """A value that something fills in before the program reads it."""


UNREAD = Unread()


class Reading(Protocol):
    """A file as a program reads it, by the names of its settings."""

    def data(self, name: str) -> Data:
        """The value of a setting; None where it is absent."""

    def place(self, name: str) -> Field:
        """Where a setting stands."""


@dataclass(frozen=True)
class Limit:
    """Settings that a program refuses together.

    `at` names the setting that the finding is placed at (the first of several that is given); `since` and `until` are
    the first and last known releases that refuse. `converted` says that the program looks after it has converted the
    values to the types of their fields.
    """

    at: str
    when: str
    message: str
    help: str = ""
    since: str = ""
    until: str = ""
    converted: bool = False

    def holds(self, reading: Reading) -> bool:
        """The settings are all as the limit says."""
        return all(test(reading) is True for test in _tests(self.when))

    def place(self, reading: Reading) -> Field:
        """The setting to point at; where it is not given, the first of the condition that is."""
        names = self.at.split("|")
        given = [name for name in names if reading.data(name) is not None]
        if not given and self.at:
            named = [name for keys in re.findall(r"[\w.|]+", self.when) for name in keys.split("|")]
            given = [name for name in named if reading.place(name).node is not None]
        return reading.place(next((name for name in given if is_true(reading.data(name))), (given or names)[0]))

    def in_force(self, release: str, order: Sequence[str]) -> bool:
        """The limit holds in this one of the known releases, oldest first."""
        index = order.index(release)
        return (not self.since or order.index(self.since) <= index) and (
            not self.until or index <= order.index(self.until)
        )


_LIMIT = re.compile(r"(\d+(?:\.\d+)+)?(\.\.)?(\d+(?:\.\d+)+)?( converted)?: (.+)")
_PLACE = re.compile(r"@\(([\w.|]*)\) ?|@(!?([\w.|]+))")


@cache
def limits_of(program: str) -> Mapping[str, tuple[Limit, ...]]:
    """The limits of a program by their section, for all its releases.

    Raises ValueError for a file that is not written as its head says.
    """
    path = Path(__file__).parent.parent / "programs" / program / "limits.txt"
    found: dict[str, list[Limit]] = {}
    section: list[Limit] = []
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    for line, after, hint in zip(lines, [*lines[1:], ""], [*lines[2:], "", ""], strict=True):
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), [])
        elif not line.startswith(" "):
            help = hint.strip().removeprefix("-> ") if hint.startswith("    -> ") else ""
            section.append(_limit(line, after.strip(), help))
    return {name: tuple(limits) for name, limits in found.items()}


def limits_in_force(program: str, release: str, order: Sequence[str]) -> Mapping[str, tuple[Limit, ...]]:
    """The limits of one of the known releases (`order`, oldest first), by their section."""
    return {
        section: tuple(limit for limit in limits if limit.in_force(release, order))
        for section, limits in limits_of(program).items()
    }


def _limit(line: str, message: str, help: str) -> Limit:
    match = _LIMIT.fullmatch(line)
    place = _PLACE.search(line)
    if match is None or place is None:
        raise ValueError(f"{line} is no limit")
    since, dots, until, converted, when = match.groups()
    at = place[3] if place[1] is None else place[1]
    when = _PLACE.sub(lambda found: found[2] or "", when)
    return Limit(at, when, message, help, since or "", (until if dots else since) or "", bool(converted))


def is_true(value: Data) -> bool | None:
    """Whether Python takes a value for true; None where it is not known."""
    return None if isinstance(value, Unread) else bool(value)


def data_of(field: Field) -> Data:
    """What a field holds as plain data, templates in it unread."""
    if field.node is None:
        return None
    if field.is_unknown:
        return UNREAD
    if field.is_mapping:
        return {entry.name: data_of(entry) for entry in field.entries()}
    if field.is_sequence:
        return [data_of(item) for item in field.items()]
    return field.plain


Test: TypeAlias = "Callable[[Reading], bool | None]"

_WORD = re.compile(r"(!?)([\w.|]+)(?:(\?)|(=|!=|#>|#<|>|<|~)(.*))?")


@cache
def _tests(when: str) -> tuple[Test, ...]:
    return tuple(_test(word) for word in when.split(" ") if word)


def _test(word: str) -> Test:
    match = _WORD.fullmatch(word)
    if match is None:
        raise ValueError(f"{word} is no condition")
    negated, names, given, operator, operand = match.groups()
    keys = names.split("|")
    test = _none if negated else _any
    if given:
        return lambda reading: test(_given(reading.data(key)) for key in keys)
    if operator in ("#>", "#<"):
        return lambda reading: _count(reading, keys, operator, int(operand))
    if operator:
        return lambda reading: test(_compare(reading.data(key), operator, operand) for key in keys)
    return lambda reading: test(is_true(reading.data(key)) for key in keys)


def _given(value: Data) -> bool | None:
    return None if isinstance(value, Unread) else value is not None


def _any(found: Iterable[bool | None]) -> bool | None:
    answers = list(found)
    return True if True in answers else None if None in answers else False


def _none(found: Iterable[bool | None]) -> bool | None:
    answer = _any(found)
    return None if answer is None else not answer


def _count(reading: Reading, keys: Sequence[str], operator: str, bound: int) -> bool | None:
    answers = [is_true(reading.data(key)) for key in keys]
    if None in answers:
        return None
    return answers.count(True) > bound if operator == "#>" else answers.count(True) < bound


def _compare(value: Data, operator: str, operand: str) -> bool | None:
    if isinstance(value, Unread):
        return None
    if operator == "~":
        return isinstance(value, str) and operand in value.lower()
    if operator in (">", "<"):
        if not isinstance(value, (int, float)):
            return False
        return value > float(operand) if operator == ">" else value < float(operand)
    found = any(_is(value, word) for word in operand.split(","))
    return found if operator == "=" else not found


def _is(value: Data, word: str) -> bool:
    if word in ("true", "false"):
        return value is (word == "true")
    number = plain_value(word, Dialect.PYYAML) if word.lstrip("-")[:1].isdecimal() else None
    return value == (word if number is None else number)
