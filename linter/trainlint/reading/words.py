"""One of many words in the bytes of a file, found at the speed of memory.

`re` looks for a first letter as fast as the memory is read, if there is but one. So the words are sorted by a letter
that files of YAML have seldom, and each group is one expression that begins with it: `_(?:type(?<=lr_scheduler_type))`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from trainlint.lazy import regex

_FOLDED = regex(r"[\s']")
"""Characters that a value may be written without."""
_SELDOM = "_fubgkxjqz"
"""Letters of which most words have one and files few, those of most words first."""


class AnyOf:
    """Some words, each of ASCII; where there are none, anything will do."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(dict.fromkeys(words))

    def found_in(self, data: bytes) -> bool:
        """One of the words is in some bytes."""
        for pattern in self._patterns:
            if pattern.search(data):
                return True
        return not self.words

    @cached_property
    def _patterns(self) -> list[re.Pattern[bytes]]:
        groups: dict[str, list[str]] = {}
        for word in self.words:
            if any(other != word and other in word for other in self.words):
                continue
            letter = next((letter for letter in _SELDOM if letter in word), word[0])
            rest = word.partition(letter)[2]
            groups.setdefault(letter, []).append(f"{re.escape(rest)}(?<={re.escape(word)})")
        return [re.compile(f"{re.escape(letter)}(?:{'|'.join(ends)})".encode()) for letter, ends in groups.items()]


def may_say(content: str, word: str) -> bool:
    """A value in a text of YAML can hold a word: it stands there, or an escape or a fold can stand for a part of it."""
    return word in content or "\\" in content or _FOLDED.search(word) is not None


ANYTHING = AnyOf([])
"""Found in everything."""
