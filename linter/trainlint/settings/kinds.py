"""The kinds of values that settings have: how each is read, what its JSON Schema is, and how it is shown.

Settings are hostile input: every reader takes any TOML value and says what is wrong in one line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from trainlint.budget import BUDGET
from trainlint.findings import did_you_mean, shortened
from trainlint.records import dataclass
from trainlint.repository.files import display_path
from trainlint.settings import SettingsError, Vocabulary
from trainlint.settings.places import places_in
from trainlint.targets import Target, TargetError, parse_target

Schema: TypeAlias = "Mapping[str, bool | int | str | Sequence[str] | Sequence[Schema] | Schema]"

_LONGEST = 500
"""Characters of a message on a setting."""


@dataclass(frozen=True)
class At:
    """The place of a value: its file, and the keys on the way to it."""

    file: Path
    text: str
    known: Vocabulary
    path: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The last key."""
        return self.path[-1] if self.path else "trainlint"

    def below(self, key: str) -> At:
        """The place of a value in this one."""
        return At(self.file, self.text, self.known, (*self.path, key))

    def line(self, below: tuple[str, ...] = (), word: str = "") -> int:
        """The 1-based line of this place, or of one below it; with a word, that of the word behind it."""
        prefix = ("tool", "trainlint") if self.file.name == "pyproject.toml" else ()
        return places_in(self.text).line((*prefix, *self.path, *below), word)

    def error(self, problem: str, hint: str = "", word: str = "") -> SettingsError:
        """What is wrong at this place; `word` is the value that is meant where the place has several."""
        place = f"{display_path(self.file)}:{self.line((), word)}"
        return SettingsError(f"{place}: {shortened(problem, _LONGEST)}{f', {hint}' if hint else ''}")

    def unknown(self, among: Collection[str], where: str = "", hint: str = "") -> SettingsError:
        """The last key is none of these; a hint says where it belongs."""
        if not hint and self.key in (*self.known.targets, *self.known.verdict_only):
            hint = "releases stand in [targets]"
        hint = hint or did_you_mean(self.key.replace("_", "-"), among)
        return self.error(f"unknown setting {self.key!r}{where}", hint)


class Kind(ABC):
    """A kind of values."""

    @abstractmethod
    def read(self, at: At, value: object) -> object:
        """The value as settings hold it. Raises SettingsError."""

    @abstractmethod
    def schema(self, known: Vocabulary) -> Schema:
        """The JSON Schema (draft 7) of what may be written."""

    @property
    @abstractmethod
    def words(self) -> str:
        """What may be written, for a table of the documentation."""


class Flag(Kind):
    """true or false."""

    words = "`true`, `false`"

    def read(self, at: At, value: object) -> bool:
        """The value itself."""
        if not isinstance(value, bool):
            raise at.error(f"{at.key!r} must be true or false")
        return value

    def schema(self, known: Vocabulary) -> Schema:
        """A boolean."""
        return {"type": "boolean"}


@dataclass(frozen=True)
class OneOf(Kind):
    """One of some words; those of `more` depend on the programs that are known."""

    allowed: tuple[str, ...]
    more: Callable[[Vocabulary], Iterable[str]] = lambda known: ()
    told: str = ""

    @property
    def words(self) -> str:
        """The words themselves, unless something shorter tells them."""
        return self.told or ", ".join(f"`{word}`" for word in self.allowed)

    def read(self, at: At, value: object) -> str:
        """The value itself."""
        allowed = (*self.more(at.known), *self.allowed)
        if not isinstance(value, str) or value not in allowed:
            hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
            raise at.error(f"{at.key!r} must be one of {', '.join(allowed)}", hint)
        return value

    def schema(self, known: Vocabulary) -> Schema:
        """An enumeration."""
        return {"type": "string", "enum": [*self.more(known), *self.allowed]}


class File(Kind):
    """The path of a file."""

    words = "a path, relative to the settings file"

    def read(self, at: At, value: object) -> str:
        """The path as written."""
        if not isinstance(value, str) or not value or "\0" in value:
            raise at.error(f"{at.key!r} must be the path of a file")
        return value

    def schema(self, known: Vocabulary) -> Schema:
        """A text."""
        return {"type": "string", "minLength": 1}


@dataclass(frozen=True)
class Words(Kind):
    """A list of texts."""

    words = "a list of names"

    def read(self, at: At, value: object) -> tuple[str, ...]:
        """The texts; as many as the budget allows."""
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            hint = f'write ["{shortened(value)}"]' if isinstance(value, str) else ""
            raise at.error(f"{at.key!r} must be a list of strings", hint)
        if len(value) > BUDGET.patterns:
            raise at.error(f"{at.key!r} has more than {BUDGET.patterns:,} entries")
        return tuple(value)

    def schema(self, known: Vocabulary) -> Schema:
        """An array of strings."""
        return {"type": "array", "items": {"type": "string"}}


class Selectors(Words):
    """A list of rules, by code, prefix or name."""

    words = "a list of codes, prefixes, names or `ALL`"

    def read(self, at: At, value: object) -> tuple[str, ...]:
        """The selectors, each of which names a rule, and each once."""
        found = tuple(dict.fromkeys(super().read(at, value)))
        for word in found:
            problem = at.known.selector_problem(word)
            if problem:
                raise at.error(f"{at.key!r}: {problem}", word=word)
        return found

    def schema(self, known: Vocabulary) -> Schema:
        """An array of the selectors."""
        return {"type": "array", "items": {"$ref": "#/definitions/rule"}}


class Patterns(Words):
    """A list of patterns of paths."""

    words = "a list of patterns as in `.gitignore`"

    def read(self, at: At, value: object) -> tuple[str, ...]:
        """The patterns, which can be used."""
        found = super().read(at, value)
        _check_patterns(at, found)
        return found


def _check_patterns(at: At, patterns: Collection[str]) -> None:
    from trainlint.repository.patterns import PatternError
    from trainlint.repository.patterns import Patterns as Together

    try:
        Together(patterns)
    except PatternError as error:
        raise at.error(f"{at.key!r}: {error}") from None


def _table(at: At, value: object, example: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise at.error(f"{at.key!r} must be a table, such as {example}")
    if len(value) > BUDGET.patterns:
        raise at.error(f"{at.key!r} has more than {BUDGET.patterns:,} entries")
    return value


class ByPattern(Kind):
    """A table of patterns with the rules of each."""

    words = "a table: a pattern, and a list of rules"

    def read(self, at: At, value: object) -> dict[str, tuple[str, ...]]:
        """The rules by pattern."""
        table = _table(at, value, '"legacy/**" = ["FS"]')
        for pattern in table:
            if not pattern.removeprefix("!").strip("/ "):
                raise at.below(pattern).error(f"{at.key!r}: {pattern!r} is not a pattern")
            _check_patterns(at, [pattern.removeprefix("!")])
        return {pattern: Selectors().read(at.below(pattern), rules) for pattern, rules in table.items()}

    def schema(self, known: Vocabulary) -> Schema:
        """An object with any keys."""
        return {"type": "object", "additionalProperties": Selectors().schema(known)}


@dataclass(frozen=True)
class BySelector(Kind):
    """A table of rules with a word for each."""

    values: OneOf
    example: str

    @property
    def words(self) -> str:
        """The keys, and the words that may stand behind them."""
        return f"a table: a code, prefix or name, and {self.values.words}"

    def read(self, at: At, value: object) -> dict[str, str]:
        """The words by selector."""
        read: dict[str, str] = {}
        for selector, word in _table(at, value, self.example).items():
            problem = at.known.selector_problem(selector)
            if problem:
                raise at.below(selector).error(f"{at.key!r}: {problem}")
            read[selector] = self.values.read(at.below(selector), word)
        return read

    def schema(self, known: Vocabulary) -> Schema:
        """An object whose keys are selectors."""
        return {
            "type": "object",
            "propertyNames": {"$ref": "#/definitions/rule"},
            "additionalProperties": self.values.schema(known),
        }


class Targets(Kind):
    """A table of programs with their releases."""

    words = "a table: a program, and a release or a list of them"

    def read(self, at: At, value: object) -> dict[str, Target]:
        """The targets by program."""
        targets: dict[str, Target] = {}
        for program, versions in _table(at, value, 'kubeflow-trainer = "2.3"').items():
            place = at.below(program)
            written = versions if isinstance(versions, list) else [versions]
            listed = [version for version in written if isinstance(version, str)]
            if len(listed) < len(written):
                is_number = isinstance(versions, (int, float)) and not isinstance(versions, bool)
                hint = "write the release in quotes" if is_number else ""
                raise place.error(f"the target of {program} must be a string or a list of strings", hint)
            if len(listed) > BUDGET.patterns:
                raise place.error(f"more than {BUDGET.patterns:,} releases of {program}")
            try:
                option, origin = f"{program}={','.join(listed)}", f"{display_path(at.file)}:{place.line()}"
                targets.update(parse_target(option, at.known.targets, at.known.verdict_only, origin))
            except TargetError as error:
                raise place.error(str(error)) from None
        return targets

    def schema(self, known: Vocabulary) -> Schema:
        """An object with the programs as keys."""
        one: Schema = {"type": "string", "pattern": r"^v?\d+(\.\d+){0,3}([-.]?(a|b|rc|dev|post|alpha|beta)[-.]?\d*)?$"}
        release: Schema = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
        return {
            "type": "object",
            "properties": dict.fromkeys(known.targets, release),
            "additionalProperties": False,
        }


@dataclass(frozen=True)
class Fixed(Kind):
    """A table with known keys, all of one kind."""

    keys: tuple[str, ...]
    values: Kind

    @property
    def words(self) -> str:
        """The keys, and what may stand behind them."""
        return f"a table: {', '.join(f'`{key}`' for key in self.keys)}, each {self.values.words}"

    def read(self, at: At, value: object) -> dict[str, object]:
        """The values by key."""
        if not isinstance(value, dict):
            raise at.error(f"{at.key!r} must be a table")
        for key in value:
            if key not in self.keys:
                raise at.below(key).unknown(self.keys, f" in {at.key}")
        return {key: self.values.read(at.below(key), one) for key, one in value.items()}

    def schema(self, known: Vocabulary) -> Schema:
        """An object with these keys."""
        return {
            "type": "object",
            "properties": {key: self.values.schema(known) for key in self.keys},
            "additionalProperties": False,
        }
