"""The steps of a regular expression: a small backtracking machine that does what `re` does, and counts.

Bounded repetitions are cut to a few, so that short inputs are already longer than every bound of a pattern.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

if sys.version_info >= (3, 11):
    from re import _parser as sre_parse
else:
    import sre_parse

FEW = 3
Groups: TypeAlias = "dict[Any, Any]"
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdigit,
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_WORD": lambda c: c.isalnum() or c == "_",
}
_SAMPLES = "a1 _-.=/:,#$@+<>[](){}\"'`\\\t\n\0xyzAZ09!?*&|;~^%é"


class TooManySteps(Exception):
    """The machine was stopped."""


@dataclass(slots=True)
class _Split:
    """Go on at one of these places, the first before the others."""

    targets: tuple[int, ...]


class Machine:
    """A pattern as instructions; a tuple is an instruction, a _Split a choice."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        self.tree = sre_parse.parse(pattern, flags)
        self.flags = self.tree.state.flags
        self.steps = 0
        self.limit = 10**9
        self.code: list[Any] = []
        self._add(self.tree, self.flags)
        self.code.append(("end",))

    def count(self, text: str, mode: str) -> int:
        """The steps until there is no (further) match: from the start, or from everywhere."""
        self.steps, at = 0, 0
        if mode in ("match", "fullmatch"):
            self._run(0, text, 0, {}, whole=mode == "fullmatch")
            return self.steps
        while at <= len(text):
            end = self._run(0, text, at, {})
            if end is not None and mode == "search":
                break
            at = max(at + 1, end or 0)
        return self.steps

    def _run(
        self, start: int, text: str, at: int, groups: dict[int, tuple[int, int]], *, whole: bool = False
    ) -> int | None:
        stack: list[tuple[int, int, Groups]] = [(start, at, groups)]
        while stack:
            place, index, known = stack.pop()
            while True:
                self.steps += 1
                if self.steps > self.limit:
                    raise TooManySteps
                one = self.code[place]
                if isinstance(one, _Split):
                    stack.extend((target, index, known) for target in reversed(one.targets[1:]))
                    place = one.targets[0]
                    continue
                what = one[0]
                if what == "set":
                    if index < len(text) and one[1](text[index]):
                        place, index = place + 1, index + 1
                        continue
                    break
                if what == "jump":
                    place = one[1]
                    continue
                if what == "moved":
                    # An empty round of a loop ends it.
                    if known.get(one[1]) == index:
                        break
                    known = {**known, one[1]: index}
                    place += 1
                    continue
                if what == "open":
                    known = {**known, ("open", one[1]): index}
                    place += 1
                    continue
                if what == "close":
                    known = {**known, one[1]: (known["open", one[1]], index)}
                    place += 1
                    continue
                if what == "at":
                    if not one[1](text, index):
                        break
                    place += 1
                    continue
                if what == "ahead":
                    _, wanted, back, inner, after = one
                    found = index >= back and self._run(inner, text, index - back, known) is not None
                    if found is not wanted:
                        break
                    place = after
                    continue
                if what == "atomic":
                    end = self._run(one[1], text, index, known)
                    if end is None:
                        break
                    place, index = one[2], end
                    continue
                if what == "again":
                    first, last = known.get(one[1], (0, -1))
                    if last < first or not text.startswith(text[first:last], index):
                        break
                    place, index = place + 1, index + last - first
                    continue
                if what == "has":
                    place = one[2] if one[1] in known else one[3]
                    continue
                if whole and index < len(text) and place == len(self.code) - 1:
                    break
                return index
        return None

    def _add(self, tree: Any, flags: int) -> None:
        for operator, value in tree:
            getattr(self, f"_{str(operator).lower()}")(value, flags)

    def _chars(self, test: Callable[[str], bool], flags: int) -> None:
        if flags & sre_parse.SRE_FLAG_IGNORECASE:
            self.code.append(("set", lambda c: test(c.lower()) or test(c.upper())))
        else:
            self.code.append(("set", test))

    def _literal(self, value: int, flags: int) -> None:
        self._chars(chr(value).__eq__, flags)

    def _not_literal(self, value: int, flags: int) -> None:
        self._chars(lambda c: c != chr(value), flags)

    def _any(self, _: None, flags: int) -> None:
        self._chars((lambda _: True) if flags & sre_parse.SRE_FLAG_DOTALL else (lambda c: c != "\n"), flags)

    def _in(self, value: Any, flags: int) -> None:
        self._chars(among(value), flags)

    def _branch(self, value: Any, flags: int) -> None:
        self._choice([partial(self._add, part, flags) for part in value[1]])

    def _choice(self, parts: list[Callable[[], None]]) -> None:
        split = len(self.code)
        self.code.append(None)
        starts, jumps = [], []
        for part in parts:
            starts.append(len(self.code))
            part()
            jumps.append(len(self.code))
            self.code.append(None)
        self.code[split] = _Split(tuple(starts))
        for jump in jumps:
            self.code[jump] = ("jump", len(self.code))

    def _subpattern(self, value: Any, flags: int) -> None:
        group, added, removed, inner = value
        flags = (flags | added) & ~removed
        if group is not None:
            self.code.append(("open", group))
        self._add(inner, flags)
        if group is not None:
            self.code.append(("close", group))

    def _max_repeat(self, value: Any, flags: int, *, lazy: bool = False) -> None:
        least, most, inner = value
        endless = most == sre_parse.MAXREPEAT
        for _ in range(min(int(least), FEW)):
            self._add(inner, flags)
        if endless:
            split = len(self.code)
            self.code += [None, ("moved", ("loop", split))]
            self._add(inner, flags)
            self.code.append(("jump", split))
            ways = (split + 1, len(self.code))
            self.code[split] = _Split(ways[::-1] if lazy else ways)
            return
        splits = []
        for _ in range(min(int(most), FEW) - min(int(least), FEW)):
            splits.append(len(self.code))
            self.code.append(None)
            self._add(inner, flags)
        for split in splits:
            ways = (split + 1, len(self.code))
            self.code[split] = _Split(ways[::-1] if lazy else ways)

    def _min_repeat(self, value: Any, flags: int) -> None:
        self._max_repeat(value, flags, lazy=True)

    def _apart(self, inner: Callable[[], None]) -> tuple[int, int]:
        """Instructions that only another one starts: where they begin, and what follows them."""
        jump = len(self.code)
        self.code.append(None)
        inner()
        self.code.append(("end",))
        self.code[jump] = ("jump", len(self.code))
        return jump + 1, len(self.code)

    def _possessive_repeat(self, value: Any, flags: int) -> None:
        start, _ = self._apart(lambda: self._max_repeat(value, flags))
        self.code.append(("atomic", start, len(self.code) + 1))

    def _atomic_group(self, value: Any, flags: int) -> None:
        start, _ = self._apart(lambda: self._add(value, flags))
        self.code.append(("atomic", start, len(self.code) + 1))

    def _assert(self, value: Any, flags: int, *, wanted: bool = True) -> None:
        direction, inner = value
        start, _ = self._apart(lambda: self._add(inner, flags))
        back = inner.getwidth()[0] if direction < 0 else 0
        self.code.append(("ahead", wanted, back, start, len(self.code) + 1))

    def _assert_not(self, value: Any, flags: int) -> None:
        self._assert(value, flags, wanted=False)

    def _groupref(self, value: int, _: int) -> None:
        self.code.append(("again", value))

    def _groupref_exists(self, value: Any, flags: int) -> None:
        group, yes, no = value
        place = len(self.code)
        self.code.append(None)
        self._add(yes, flags)
        jump = len(self.code)
        self.code.append(None)
        other = len(self.code)
        self._add(no or [], flags)
        self.code[jump] = ("jump", len(self.code))
        self.code[place] = ("has", group, place + 1, other)

    def _at(self, value: Any, flags: int) -> None:
        lines = bool(flags & sre_parse.SRE_FLAG_MULTILINE)
        self.code.append(("at", lambda text, index: _holds(str(value), text, index, lines)))


def _holds(what: str, text: str, index: int, lines: bool) -> bool:
    before, after = text[index - 1 : index] if index else "", text[index : index + 1]
    if what == "AT_BEGINNING":
        return not before or (lines and before == "\n")
    if what == "AT_BEGINNING_STRING":
        return not before
    if what == "AT_END":
        return not after or (after == "\n" and (lines or index == len(text) - 1))
    if what == "AT_END_STRING":
        return not after
    bound = (before in _WORD and bool(before)) != (after in _WORD and bool(after))
    return bound == (what == "AT_BOUNDARY")


def _between(low: int, high: int, character: str) -> bool:
    return low <= ord(character) <= high


def _is(test: Callable[[str], bool], wanted: bool, character: str) -> bool:
    return test(character) is wanted


def among(value: Any) -> Callable[[str], bool]:
    """The characters of a class."""
    negated = bool(value) and str(value[0][0]) == "NEGATE"
    tests: list[Callable[[str], bool]] = []
    for operator, argument in value[negated:]:
        name = str(operator)
        if name == "LITERAL":
            tests.append(chr(argument).__eq__)
        elif name == "RANGE":
            tests.append(partial(_between, *argument))
        else:
            word = str(argument).replace("_NOT_", "_")
            tests.append(partial(_is, _CATEGORIES[word], "_NOT_" not in str(argument)))
    return lambda c: any(test(c) for test in tests) is not negated


def attacks(machine: Machine, length: int) -> Iterator[str]:
    """Inputs that repeat what a part of the pattern takes, behind what comes before it, and then fit or do not."""
    for begin, part in dict.fromkeys(_pumps(machine.tree)):
        for end in ("", "\0", "\n!"):
            yield begin + (part * length)[:length] + end


def _pumps(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """What may be repeated, and what stands before it: every repeated part, alone and with what follows."""
    whole = example(tree)
    if not before:
        yield "", whole
        ends = ("", " ", "\n")
        yield from (("", whole[:cut] + end) for cut in range(1, min(len(whole), 12)) for end in ends)
        yield from (("", whole + end) for end in (" ", "\n", "x "))
    for index, (operator, value) in enumerate(tree):
        name = str(operator)
        rest = example(tree[index + 1 :])
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            for inner in examples(value[2]):
                yield before, inner
                yield "", before + inner
            if rest:
                yield before, example(value[2]) + rest[:1]
            yield from _pumps(value[2], before)
        elif name == "SUBPATTERN":
            yield from _pumps(value[3], before)
        elif name == "BRANCH":
            for part in value[1]:
                yield from _pumps(part, before)
        elif name in ("ASSERT", "ASSERT_NOT"):
            yield from _pumps(value[1], before)
        elif name == "ATOMIC_GROUP":
            yield from _pumps(value, before)
        before += example(tree[index : index + 1])


def example(tree: Any) -> str:
    """The first text that a pattern takes."""
    return next(examples(tree), "")


def examples(tree: Any) -> Iterator[str]:
    """Some texts that a pattern takes: two for each part that has a choice."""
    found = [""]
    for operator, value in tree:
        name = str(operator)
        parts = [""]
        if name == "LITERAL":
            parts = [chr(value)]
        elif name == "NOT_LITERAL":
            parts = [next(c for c in _SAMPLES if c != chr(value))]
        elif name == "ANY":
            parts = ["a", " "]
        elif name == "IN":
            test = among(value)
            parts = [c for c in _SAMPLES if test(c)][:3] or [
                chr(value[0][1][0] if isinstance(value[0][1], tuple) else 97)
            ]
        elif name == "BRANCH":
            parts = [example(part) for part in value[1]][:6]
        elif name == "SUBPATTERN":
            parts = list(examples(value[3]))[:3]
        elif name == "ATOMIC_GROUP":
            parts = [example(value)]
        elif name.endswith("_REPEAT"):
            parts = [part * max(1, min(int(value[0]), FEW)) for part in list(examples(value[2]))[:2]]
        found = [one + part for one in found for part in parts][:6]
    yield from found
