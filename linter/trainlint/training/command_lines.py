"""What a command line gives a program besides a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from trainlint.records import NamedTuple

if TYPE_CHECKING:
    from trainlint.reading.values import Field
    from trainlint.repository.shell import Word


class GivenBeside(NamedTuple):
    """The settings that a command line gives besides a file."""

    names: frozenset[str] = frozenset()
    is_open: bool = False
    """A variable, or a list of words, may give further ones."""

    def seen_from(self, field: Field) -> Field:
        """The file's mapping: what it lacks is not known where the command line may give it."""
        return field.left_open() if self.is_open else field


NOTHING_BESIDE = GivenBeside()


def given_in(words: Sequence[Word]) -> GivenBeside:
    """The flags among words of a command line; a word that is filled in later, and no value, may be several."""
    hidden = (
        word.known is None and word.text[:1] != "-" and (index == 0 or words[index - 1].text[:1] != "-")
        for index, word in enumerate(words)
    )
    return GivenBeside(frozenset(flag_names(word.text for word in words)), any(hidden))


def given_by_any(given: Iterable[GivenBeside]) -> GivenBeside:
    """What some of several command lines give."""
    every = list(given)
    names = frozenset[str]().union(*(one.names for one in every))
    return GivenBeside(names, any(one.is_open for one in every))


def flag_names(words: Iterable[str]) -> set[str]:
    """The names of the arguments on a command line: `--learning-rate=1` gives learning_rate."""
    return {word[2:].partition("=")[0].replace("-", "_") for word in words if word.startswith("--")}
