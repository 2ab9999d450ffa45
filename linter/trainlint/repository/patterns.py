"""Patterns of paths in the style of .gitignore, as regular expressions that no pattern and no name can make slow.

A wildcard takes as little as it can and keeps that: a later place for what follows it never helps. So the steps grow
with the two lengths only. In the expressions that the library pathspec makes of them they grow with a power of the
name's length, one for each star.

Source: gitignore documentation of git 2.51.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import count

from trainlint.budget import BUDGET
from trainlint.findings import shortened
from trainlint.lazy import regex
from trainlint.records import NamedTuple

_TOKEN = regex(
    r"\\(?P<escaped>.)|\[(?P<negated>[!^]?)(?P<among>\]?[^\]]{0,99})\]|(?P<star>\*+)|(?P<any>\?)|(?P<other>.)",
    re.DOTALL,
)
_FOLDERS = "(?:[^/]+/)*?"
_RANGE = regex(r"\\?(.)(?:-\\?(.))?", re.DOTALL)


class PatternError(ValueError):
    """A pattern that matches nothing, because it is none."""


class Pattern(NamedTuple):
    """One pattern: `itself` matches a path unless only folders are meant, `below` a folder above it.

    A negated one takes back what earlier ones match.
    """

    itself: re.Pattern[str] | None
    below: re.Pattern[str]
    negated: bool

    @classmethod
    def of(cls, text: str) -> Pattern | None:
        """A pattern as it is written; None for an empty line and a comment. Raises PatternError."""
        bare = text.rstrip(" ")
        text = bare + " " if bare.endswith("\\") and bare != text else bare
        if not text or text.startswith("#"):
            return None
        if len(text) > BUDGET.pattern:
            raise PatternError(f"{shortened(text)!r} has more than {BUDGET.pattern:,} characters")
        if text.count("*") > BUDGET.stars:
            raise PatternError(f"{shortened(text)!r} has more than {BUDGET.stars} stars")
        negated = text.startswith("!")
        written = text.removeprefix("!")
        parts = written.strip("/").split("/")
        if not parts[0] or len(written) - len(written.rstrip("\\")) & 1:
            raise PatternError(f"{text!r} is not a pattern")
        if "/" not in written.rstrip("/"):
            parts.insert(0, "**")
        path = _path(parts)
        itself = None if written.endswith("/") else re.compile(rf"{path}\Z")
        return cls(itself, re.compile(f"{path}/"), negated)

    def is_of(self, path: str) -> bool:
        """It matches a path itself."""
        return self.itself is not None and self.itself.match(path) is not None

    def matches(self, path: str) -> int:
        """2 if it matches a path, 1 if it matches a folder above, else 0."""
        return 2 if self.is_of(path) else int(self.below.match(path) is not None)


class Patterns:
    """Several patterns, of which later ones win; what is taken back as a folder stays out where a file is meant."""

    def __init__(self, written: Collection[str]) -> None:
        if len(written) > BUDGET.patterns:
            raise PatternError(f"more than {BUDGET.patterns:,} patterns")
        if sum(text.count("*") for text in written) > BUDGET.patterns:
            raise PatternError(f"more than {BUDGET.patterns:,} stars in all patterns")
        self._patterns = [pattern for text in written if (pattern := Pattern.of(text)) is not None]

    def match(self, path: str) -> bool:
        """The patterns leave out a path with forward slashes; one of a folder ends with a slash."""
        out, weight = False, 0
        for pattern in self._patterns:
            found = pattern.matches(path)
            if found and ((found == 1 and not pattern.negated) or found >= weight):
                out, weight = not pattern.negated, found
        return out


def _path(parts: Sequence[str]) -> str:
    """The expression for a path up to the end of its last name; `**` stands for any number of folders."""
    numbers = count()
    runs: list[list[str]] = [[]]
    for part in parts:
        if len(part) > 1 and not part.strip("*"):
            runs.append([])
        else:
            runs[-1].append(_name(part, numbers))
    first, *others = map("/".join, runs)
    if not others:
        return first
    path = first and f"{first}/"
    for names in filter(None, others[:-1]):
        path += _kept(f"{_FOLDERS}{names}/", numbers)
    return f"{path}{_FOLDERS}{others[-1] or '[^/]*'}"


def _name(written: str, numbers: Iterator[int]) -> str:
    """The expression for one name."""
    texts = [""]
    for token in _TOKEN.finditer(written):
        if token["star"]:
            texts.append("")
        elif token["among"] is not None:
            texts[-1] += _among(token["among"], bool(token["negated"]))
        else:
            texts[-1] += "[^/]" if token["any"] else re.escape(token["escaped"] or token["other"])
    first, *others = texts
    if not others:
        return first
    return first + "".join(_kept(f"[^/]*?{text}", numbers) for text in filter(None, others[:-1])) + f"[^/]*{others[-1]}"


def _among(written: str, negated: bool) -> str:
    """The expression for one of the characters and ranges in brackets."""
    ranges = [(first, last or first) for first, last in _RANGE.findall(written)]
    listed = "".join(f"{re.escape(first)}-{re.escape(last)}" for first, last in ranges if first <= last)
    return f"[^/{listed}]" if negated else f"(?!/)[{listed}]" if listed else "(?!)"


def _kept(least: str, numbers: Iterator[int]) -> str:
    """The first match of an expression and no other: an atomic group, which Python has since 3.11 only."""
    name = f"n{next(numbers)}"
    return f"(?=(?P<{name}>{least}))(?P={name})"
