"""Patterns of paths in the style of .gitignore, matched in a time that grows with the two lengths only.

A wildcard is tried again at the next character or folder only until the following wildcard is reached, so that no
pattern and no name can make it slow.

Source: gitignore documentation of git 2.51.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeVar

from trainlint.budget import BUDGET
from trainlint.findings import shortened
from trainlint.lazy import regex

A = TypeVar("A")
B = TypeVar("B")

_TOKEN = regex(
    r"\\(?P<escaped>.)|\[(?P<negated>[!^]?)(?P<among>\]?[^\]]{0,99})\]|(?P<star>\*+)|(?P<other>.)", re.DOTALL
)
_ANYTHING = None
"""Stands for any number of characters in a name, and of folders in a path."""

Characters = Callable[[str], bool]
Name = Sequence[Characters | None]


class PatternError(ValueError):
    """A pattern that matches nothing, because it is none."""


class Pattern(NamedTuple):
    """One pattern: the names on the way to what it means; `negated` takes back what earlier ones match."""

    names: Sequence[Name | None]
    negated: bool
    folders_only: bool

    @classmethod
    def of(cls, text: str) -> Pattern | None:
        """A pattern as it is written; None for an empty line and a comment. Raises PatternError."""
        bare = text.rstrip(" ")
        text = bare + " " if bare.endswith("\\") and bare != text else bare
        if not text or text.startswith("#"):
            return None
        if len(text) > BUDGET.pattern:
            raise PatternError(f"{shortened(text)!r} has more than {BUDGET.pattern:,} characters")
        negated = text.startswith("!")
        written = text.removeprefix("!")
        parts = written.strip("/").split("/")
        if not parts[0] or len(written) - len(written.rstrip("\\")) & 1:
            raise PatternError(f"{text!r} is not a pattern")
        if "/" not in written.rstrip("/"):
            parts.insert(0, "**")
        if parts[-1] == "**":
            parts.insert(-1, "*")
        return cls([_ANYTHING if part == "**" else _name(part) for part in parts], negated, written.endswith("/"))

    def matches(self, parts: Sequence[str]) -> int:
        """2 if it matches a path with these parts, 1 if it matches a folder above, else 0."""
        if not self.folders_only and _matches(self.names, parts, _fits):
            return 2
        return int(_matches([*self.names, [_ANYTHING], _ANYTHING], parts, _fits))


class Patterns:
    """Several patterns, of which later ones win; what is taken back as a folder stays out where a file is meant."""

    def __init__(self, written: Collection[str]) -> None:
        if len(written) > BUDGET.patterns:
            raise PatternError(f"more than {BUDGET.patterns:,} patterns")
        self._patterns = [pattern for text in written if (pattern := Pattern.of(text)) is not None]

    def match(self, path: str) -> bool:
        """The patterns leave out a path with forward slashes; one of a folder ends with a slash."""
        out, weight = False, 0
        parts = path.split("/")
        for pattern in self._patterns:
            found = pattern.matches(parts)
            if found and ((found == 1 and not pattern.negated) or found >= weight):
                out, weight = not pattern.negated, found
        return out


def is_pattern(written: str) -> bool:
    """A text can be used as a pattern."""
    try:
        Pattern.of(written)
    except PatternError:
        return False
    return True


def _name(written: str) -> Name:
    """The characters that a name must have, one after another."""
    name: list[Characters | None] = []
    for token in _TOKEN.finditer(written):
        if token["star"]:
            name.append(_ANYTHING)
        elif token["among"] is not None:
            name.append(_among(token["among"], bool(token["negated"])))
        elif token["other"] == "?":
            name.append(lambda _: True)
        else:
            name.append((token["escaped"] or token["other"]).__eq__)
    return name


def _among(written: str, negated: bool) -> Characters:
    """One of the characters and ranges in brackets."""
    ranges = [(first, last or first) for first, last in re.findall(r"\\?(.)(?:-\\?(.))?", written, re.DOTALL)]
    return lambda one: any(first <= one <= last for first, last in ranges) is not negated


def _fits(name: Name, text: str) -> bool:
    return _matches(name, text, lambda wanted, one: wanted(one))


def _matches(wanted: Sequence[A | None], given: Sequence[B], fits: Callable[[A, B], bool]) -> bool:
    """All that is given fits what is wanted, one by one, but for what `_ANYTHING` takes."""
    at = index = start = 0
    star = -1
    while index < len(given):
        if at < len(wanted):
            one = wanted[at]
            if one is _ANYTHING:
                star, start = at, index
                at += 1
                continue
            if fits(one, given[index]):
                at, index = at + 1, index + 1
                continue
        if star < 0:
            return False
        start += 1
        at, index = star + 1, start
    return all(one is _ANYTHING for one in wanted[at:])
