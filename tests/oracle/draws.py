"""Documents drawn from the facts of a release: sound ones with one change each, and free ones with several.

A change writes a right, a wrong or an edge value of a declared setting, removes or misspells one, or satisfies the
condition of a limit (settings that exclude or need one another). The same seed always draws the same documents.
"""

from __future__ import annotations

import copy
import json
import operator
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import yaml

from limit_cases import ABSENT, ORIGINS, Values, candidates, differing, flow
from oracle.asking import Driver, Json, Settings, Sound, Table
from trainlint.training.declarations import Spec, declarations
from trainlint.training.limits import Limit, limits_of_release, terms_of

EDGES: list[Json] = [
    *(0, 1, -1, 2, 3, 7, 64, 4096, 2**31, 2.0, 0.0, 0.5, 1.0, 1.5, -0.5, 1e-5, 1e30, float("inf"), float("nan")),
    *("", " ", "0", "1", "2", "0.5", "1e-4", "true", "false", "yes", "no", "none", "null", "auto", "all", "-1"),
    *(None, True, False),
]
EDGES += [[], {}, [None], [[]], ["a", 1], {"a": None}]
"""Values at the border of what a type accepts."""
NUMBERS: Mapping[str, Sequence[Json]] = {
    "int": (1, 2, 4, 8, 16, 3, 100, 512, 0),
    "float": (0.1, 0.5, 0.9, 1.0, 2.0, 1e-4, 5.0, 0.0, 1),
}
SHARES = {"value": 0.34, "gone": 0.04, "misspelt": 0.04, "limit": 0.14, "near": 0.1, "right": 0.22, "any": 0.12}
"""How often each kind of draw is made; `right` and `any` are free draws, `near` is a limit but for one of its terms."""


@dataclass(frozen=True)
class Key:
    """A setting that may be written: where, how it is declared, and what it needs beside it."""

    path: str
    spec: Spec
    program: str
    with_: Mapping[str, Json]


@dataclass(frozen=True)
class Draw:
    """A drawn document, and the sound one that it was made from."""

    number: int
    sound: Sound
    kind: str
    changes: Mapping[str, object]

    @property
    def is_one_change(self) -> bool:
        """It differs from the sound document in one thing."""
        return self.kind not in ("near", "right", "any")

    def files(self) -> dict[str, str]:
        """The files of the case by name."""
        return {**self.sound.beside, self.sound.file: written(self.sound.file, with_changes(self.sound, self.changes))}

    def good(self) -> str:
        """The sound document."""
        return written(self.sound.file, self.sound.settings)

    def told(self) -> str:
        """The changes on one line."""
        return ", ".join(f"{k}: {'(none)' if v is ABSENT else flow(v)}" for k, v in self.changes.items())


def written(file: str, settings: Settings) -> str:
    """A document as the text of its file."""
    if file.endswith(".json"):
        return json.dumps(settings, indent=2) + "\n"
    return yaml.dump(settings, Dumper=_Whole, sort_keys=False, allow_unicode=True)


class _Whole(yaml.SafeDumper):
    """Writes what several settings share as often as they do, without aliases: one change stays one."""

    def ignore_aliases(self, data: object) -> bool:
        """All of it."""
        return True


def with_changes(sound: Sound, changes: Mapping[str, object]) -> Settings:
    """The settings of a sound document with values at dotted paths; a number is an index of a list."""
    made: dict[str, Json] = dict(copy.deepcopy(sound.settings))
    for path, value in changes.items():
        *parents, last = path.split(".")
        at: Any = made
        for name in parents:
            at = _below(at, name)
        if isinstance(at, dict):
            if value is ABSENT:
                at.pop(last, None)
            else:
                at[last] = copy.deepcopy(value)
        elif isinstance(at, list) and last.isdecimal() and int(last) < len(at) and value is not ABSENT:
            at[int(last)] = copy.deepcopy(value)
    return made


def _below(at: Any, name: str) -> Any:
    """What is at a name, which is made a section where it is none; None below a scalar."""
    if isinstance(at, list):
        return at[int(name)] if name.isdecimal() and int(name) < len(at) else None
    if isinstance(at, dict):
        if not isinstance(at.get(name), (dict, list)):
            at[name] = {}
        return at[name]
    return None


class Drawer:
    """Draws documents for one release of a program."""

    def __init__(self, asked: Driver, release: str, seed: int) -> None:
        self.asked = asked
        self.release = release
        self.chance = random.Random(f"{asked.program} {release} {seed}")
        self.sounds = list(asked.sound(release))
        self._origin = ORIGINS.get(asked.program)
        self.limits = self._limits()
        tables = asked.tables(release)
        self._keys = {sound.name: self._keys_of(sound.tables or tables) for sound in self.sounds}

    def _limits(self) -> list[Limit]:
        if self._origin is None:
            return []
        order = declarations(self.asked.program).names
        found = limits_of_release(self.asked.program, self.release, order)
        return [limit for limits in found.values() for limit in limits]

    def _keys_of(self, tables: Sequence[Table]) -> list[Key]:
        found: list[Key] = []
        for table in tables:
            program = table.program or self.asked.program
            known = declarations(program)
            release = self.release if program == self.asked.program else self.asked.release_of(program, self.release)
            for name, spec in known.fields(table.name, release).items():
                for spelled in (name, *spec.aliases):
                    found.append(Key(".".join((*table.path, spelled)), spec, program, table.with_))
        return found

    def draws(self, count: int) -> Iterator[Draw]:
        """That many documents."""
        for number in range(count):
            kind = self.chance.choices(list(SHARES), list(SHARES.values()))[0]
            sound = self.chance.choice(self.sounds)
            yield Draw(number, sound, kind, self._changes(kind, sound))

    def _changes(self, kind: str, sound: Sound) -> Mapping[str, object]:
        chance = self.chance
        written_ = list(_paths(sound.settings))
        if kind == "gone":
            return {chance.choice(written_): ABSENT}
        if kind == "misspelt":
            return self._misspelt(sound, written_)
        if kind == "limit" and self.limits and (changes := self._limit(chance.choice(self.limits))):
            return changes
        if kind == "near" and self.limits and (changes := self._near(chance.choice(self.limits))):
            return changes
        if kind in ("right", "any"):
            changes = {}
            for _ in range(chance.randint(2, 5)):
                how = "right" if kind == "right" or chance.random() < 0.7 else chance.choice(["wrong", "edge"])
                changes.update(self._value(sound, how, written_))
            return changes
        return self._value(sound, chance.choices(["right", "wrong", "edge"], [3, 4, 4])[0], written_)

    def _value(self, sound: Sound, how: str, written_: Sequence[str]) -> dict[str, object]:
        chance = self.chance
        keys = self._keys[sound.name]
        if sound.also and chance.random() < 0.35:
            path, values = chance.choice(sound.also)
            return {path: chance.choice(values if how == "right" else EDGES)}
        if not keys or chance.random() < 0.15:
            near = [key for key in keys if key.path in set(written_)]
            if not near:
                return {chance.choice(written_): chance.choice(EDGES)}
            key = chance.choice(near)
        else:
            key = chance.choice(keys)
        if how == "edge":
            value: Json = chance.choice(EDGES)
        elif how == "wrong":
            value = chance.choice(self.wrong(key))
        else:
            value = chance.choice(self.right(key) or [True])
        changes: dict[str, object] = {**key.with_, key.path: value}
        return {**self._needed(changes), **changes} if how == "right" and chance.random() < 0.7 else changes

    def _needed(self, changes: Mapping[str, object]) -> dict[str, object]:
        """What a driver knows that settings need beside them."""
        if self._origin is None:
            return {}
        given = {name: value for name, value in changes.items() if value is not ABSENT}
        names = [*given, *(f"{name}={flow(value)}" for name, value in given.items())]
        return {name: value for key in names for name, value in self._origin.needs.get(key, {}).items()}

    def _limit(self, limit: Limit) -> dict[str, object]:
        """Settings for which a limit holds, or nothing where it needs what cannot be written."""
        found: list[Values] = list(islice(candidates(limit, self.asked.program), 40))
        if not found:
            return {}
        chosen = self.chance.choice(found)
        return {**self._needed(chosen), **chosen} if self.chance.random() < 0.8 else dict(chosen)

    def _near(self, limit: Limit) -> dict[str, object]:
        """Settings for which a limit holds but for one of its terms."""
        held = self._limit(limit)
        term = self.chance.choice(terms_of(limit.when))
        others = list(islice(differing(term, self.asked.program), 12))
        return {**held, **self.chance.choice(others)} if held and others else {}

    def _misspelt(self, sound: Sound, written_: Sequence[str]) -> dict[str, object]:
        """A declared name with a letter less, or two exchanged."""
        keys = self._keys[sound.name]
        path = self.chance.choice([key.path for key in keys] or list(written_))
        head, _, name = path.rpartition(".")
        if len(name) < 4:
            return {path: ABSENT}
        at = self.chance.randrange(1, len(name) - 1)
        other = name[:at] + name[at + 1 :] if self.chance.random() < 0.5 else name[:at] + name[at + 1] + name[at:]
        return {f"{head}.{other}" if head else other: self.chance.choice((1, True, "notes"))}

    # the values of a setting

    def right(self, key: Key) -> Sequence[Json]:
        """Values that the declaration of a setting accepts."""
        named = key.path.rpartition(".")[2]
        own = self.asked.samples
        given = own.get(key.path) or own.get(named) or ()
        if not given and self._origin is not None:
            given = cast(Sequence[Json], self._origin.samples.get(key.path, ()))
        if given and self.chance.random() < 0.8:
            return given
        found: list[Json] = [word for word in key.spec.choices if word is not None]
        for kind in key.spec.types:
            found += self._of_type(kind, key)
        default = [] if key.spec.default is None else [key.spec.default]
        return [*found, *default]

    def _of_type(self, kind: str, key: Key) -> list[Json]:
        head, _, inner = kind.partition("[")
        inner = inner.removesuffix("]")
        if kind == "bool":
            return [True, False]
        if kind in ("int", "float", "PositiveInt", "NonNegativeInt"):
            return [n for n in NUMBERS["float" if kind == "float" else "int"] if within(n, key.spec.bounds)]
        if kind == "str":
            return [] if key.spec.choices else ["notes", "acme/notes"]
        if head in ("list", "tuple", "set", "Sequence"):
            parts: list[Json] = []
            for one in inner.split(","):
                parts += self._of_type(one.partition("|")[0], key)[:2]
            return [*([part] for part in parts[:3]), *([parts[:2]] if len(parts) > 1 else [])]
        if head in ("dict", "Mapping"):
            return [{"a": 1}, {"notes": "b"}]
        if head == "Any":
            return [True, 2, "notes"]
        known = declarations(key.program)
        if head in known.tables:
            release = (
                self.release if key.program == self.asked.program else self.asked.release_of(key.program, self.release)
            )
            fields = list(known.fields(head, release).values())
            if not fields:
                return []
            model: dict[str, Json] = {}
            chosen = [field for field in fields if field.required] + self.chance.sample(fields, min(2, len(fields)))
            for field in chosen:
                values = [v for k in field.types if k != head for v in self._plain(k, field)] or [True]
                model[field.name] = self.chance.choice([*(c for c in field.choices if c is not None), *values])
            return [model]
        words = known.keys(f"choices:{head}", self.release) if f"choices:{head}" in known.tables else ()
        return [*sorted(words)]

    def _plain(self, kind: str, field: Spec) -> list[Json]:
        if kind == "bool":
            return [True, False]
        if kind in ("int", "float"):
            return [n for n in NUMBERS[kind] if within(n, field.bounds)]
        return ["notes"] if kind == "str" and not field.choices else [["notes"]] if kind.startswith("list[str") else []

    def wrong(self, key: Key) -> Sequence[Json]:
        """Values that the declaration of a setting should not accept, as far as it tells."""
        kinds = set(key.spec.types)
        found: list[Json] = [["many"], {"many": 1}]
        if not kinds & {"str", "Any"}:
            found += ["many", "notes"]
        if key.spec.choices:
            word = next((w for w in key.spec.choices if isinstance(w, str) and len(w) > 2), "word")
            found += [f"{word}s", str(word).upper(), "many"]
        if not kinds & {"int", "float", "bool", "Any"}:
            found += [5, True, 0.5]
        if kinds & {"int"} and "float" not in kinds:
            found += [0.5, "0.5", 1.5]
        if "bool" in kinds and "int" not in kinds:
            found += [2, "maybe", 0.5]
        for name, by in (("ge", -1), ("gt", 0), ("le", 1), ("lt", 0)):
            bound = key.spec.bounds.get(name)
            if isinstance(bound, (int, float)):
                found += [bound + by] * 2
        return found


def within(number: Json, bounds: Mapping[str, object]) -> bool:
    """A number keeps to pydantic's bounds."""
    tests = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}
    known = ((tests[name], bound) for name, bound in bounds.items() if name in tests)
    return all(bool(test(cast(float, number), cast(float, bound))) for test, bound in known)


def _paths(settings: Json, head: str = "") -> Iterator[str]:
    """The dotted paths of what is written, leaves and sections."""
    items: list[tuple[str, Json]] = []
    if isinstance(settings, Mapping):
        items = list(settings.items())
    elif isinstance(settings, list):
        items = [(str(index), item) for index, item in enumerate(settings)]
    for name, value in items:
        path = f"{head}.{name}" if head else name
        yield path
        yield from _paths(value, path)
