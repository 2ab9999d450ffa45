"""Words are found in bytes as `in` finds them, and those of the programs are in every text that they stand for."""

from __future__ import annotations

import importlib
import pkgutil
import random
import re

import pytest

from trainlint import programs
from trainlint.programs.table import COMMANDS, MARKED, PROGRAMS
from trainlint.reading.words import ANYTHING, AnyOf, may_say
from trainlint.repository.invocations import Command


@pytest.mark.parametrize("seed", range(5))
def test_words_in_bytes(seed: int) -> None:
    dice = random.Random(seed)
    words = AnyOf("".join(dice.choices("ab_f.-/", k=dice.randint(1, 4))) for _ in range(6))
    for _ in range(2000):
        data = "".join(dice.choices("ab_f.-/\n", k=dice.randint(0, 12))).encode()
        assert words.found_in(data) == any(word.encode() in data for word in words.words)


def test_no_words() -> None:
    assert ANYTHING.found_in(b"")


def test_the_words_of_markers() -> None:
    for program in PROGRAMS.values():
        for word in program.words:
            assert MARKED.found_in(b"x " + word.encode() + b": y")


def commands() -> list[Command]:
    """All commands of the programs that are looked for in a repository; torchrun is only looked for in jobs."""
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(programs.__path__, f"{programs.__name__}.")
    ]
    found = {value.name: value for module in modules for value in vars(module).values() if isinstance(value, Command)}
    return [command for command in found.values() if command.name != "torchrun"]


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_the_words_of_commands(command: Command) -> None:
    texts = [" ".join(start) + end for start in command.starts for end in ("", " --config x.yaml")]
    matching = [text for text in texts if re.search(command.marker, text)]
    assert matching
    assert [text for text in matching if not COMMANDS.found_in(text.encode())] == []


@pytest.mark.parametrize(
    ("content", "word", "may"),
    [
        ("name: mine\n", "mine", True),
        ("name: yours\n", "mine", False),
        ('name: "m\\x69ne"\n', "mine", True),
        ('name: "mi\\\n  ne"\n', "mine", True),
        ("name: two\n  words\n", "two words", True),
        ("name: 'it''s'\n", "it's", True),
    ],
)
def test_what_a_value_may_be(content: str, word: str, may: bool) -> None:
    assert may_say(content, word) is may
