"""What each release of a trainer accepts, read from its released packages.

Source: tools/wheel_facts, which writes `<program>.json` into the program's folder, and deepspeed.json, which several
programs use, beside this file. Its format:

    {"source": "the modules read", "releases": ["0.27.2", ...], "run": [the releases that were also run],
     "dates": {release: the day it was made}, "values": {key: history}, "tables": {table: {name: history}}}

A history is one variant, or a list of them. A variant is an object of attributes; its `in` names the releases that it
holds for as a span (releases.py), and is left out where it holds for all. A value's variant has the attribute `value`;
a table's has those of `Spec`. The value `bases:TABLE` names the tables (of this file or, as `TrainingArguments`, of
another program's) whose names the table has as well; `requires:PACKAGE` is the version range that the release requires
(on Linux; "" where any version will do), and `optional:PACKAGE` the one that most of its extras require.

A table is a class by its name, or
`choices:X`                 the values that X (an enum or an option) may have
accelerate                  `config`, `sagemaker_config` (top-level keys), `config_converted` (old keys that the loader
                            takes), `fsdp_config` and its like (keys of the section that the launcher reads),
                            `fsdp_config_flag_only` (options that it does not read), `launch_flags`, `fsdp_plugin`,
                            `parallelism_plugin` (names that a script may pass)
transformers                `fsdp_config` (keys that are read)
soup                        `staged` (fields that nothing reads), `fsdp_presets`, `deepspeed_presets`
axolotl                     `deprecated`, `plugins` (names below axolotl.integrations, with the model of their settings)
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.records import dataclass
from trainlint.releases import InForce, ReleaseSpan, speaking_for, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
    Variant: TypeAlias = dict[str, Json]
    History: TypeAlias = Variant | list[Variant]

DISTRIBUTIONS = {
    "accelerate": "accelerate",
    "axolotl": "axolotl",
    "llamafactory": "llamafactory",
    "soup": "soup-cli",
    "transformers": "transformers",
    "trl": "trl",
}
"""The programs that are released as wheels, with the names of their distributions."""
READ_FURTHER = ("axolotl", "llamafactory")
"""Those of them of which releases before the known ones were read, in `<program>-older.json`."""
LIBRARIES = {"deepspeed": "deepspeed"}
"""Packages without files of their own, whose settings stand in the files of programs, with their distributions."""


@dataclass(frozen=True)
class Spec:
    """One name of a table in one release.

    `types` are the parts of its annotation (`int`, `str`, `list[str]`, `None`, `literal` for one of `choices`, or a
    class: a model, which is a table of this file, or an enum, whose values are then in `choices`). `default` is None
    also where the release computes it (`computed`) or has none (`required`). `bounds` are pydantic's ge, gt, le, lt,
    min_length, max_length and pattern. `converted`: a validator may rewrite the value before its type is checked.
    `extra` holds the attributes of single tables (`env`, `group`, `spellings`, `takes`, `sets`, `new`, `args`,
    `adapters`, `effect`).
    """

    name: str
    types: tuple[str, ...]
    choices: tuple[Json, ...]
    default: Json
    required: bool
    computed: bool
    converted: bool
    aliases: tuple[str, ...]
    bounds: Mapping[str, Json]
    extra: Mapping[str, Json]


_BOUNDS = frozenset({"ge", "gt", "le", "lt", "min_length", "max_length", "pattern", "multiple_of"})
_OWN = _BOUNDS | {"in", "type", "choices", "default", "required", "computed", "converted", "aliases"}


class Declarations:
    """One program's known releases, oldest first."""

    def __init__(self, program: str, data: dict[str, Json], *, further: bool = False) -> None:
        self.program = program
        self._further = further
        self.names = _texts(data["releases"])
        self.run = _texts(data["run"])
        """The releases that were also run, not only read."""
        self._known = frozenset(self.names)
        self.dates = {name: str(day) for name, day in data["dates"].items()}  # type: ignore[union-attr]
        """The day of each release."""
        self._values: dict[str, History] = data["values"]  # type: ignore[assignment]
        self._tables: dict[str, dict[str, History]] = data["tables"]  # type: ignore[assignment]
        self._fields: dict[tuple[str, str], dict[str, Spec]] = {}
        self._keys: dict[tuple[str, str], frozenset[str]] = {}
        self._ever: dict[str, frozenset[str]] = {}
        self._firsts: dict[str, str] = {}
        self._spans: dict[tuple[str, str], ReleaseSpan] = {}
        self._holding: dict[str, frozenset[str]] = {}

    @property
    def newest(self) -> str:
        return self.names[-1]

    @functools.cached_property
    def older(self) -> Declarations:
        """The releases before the known ones, of which nothing but these tables was read."""
        import json

        file = facts_file(self.program).with_name(f"{self.program}-older.json")
        return Declarations(self.program, json.loads(file.read_bytes()))

    @property
    def only_read(self) -> tuple[str, ...]:
        """The names of these releases, oldest first."""
        return self.older.names if self._further else ()

    def is_only_read(self, release: str) -> bool:
        """A release is one of those before the known ones."""
        return self._further and release not in self._known and release in self.older.names

    @property
    def tables(self) -> tuple[str, ...]:
        return tuple(self._tables)

    def in_force(self, version: str) -> InForce:
        """The known releases that stand in for a version, which may be as short as `4.57`.

        One of those that were only read stands in for itself alone.
        """
        found = speaking_for(self.names, version)
        if found.releases or not self._further:
            return found
        older = speaking_for([*self.older.names, self.names[0]], version)
        if not older.releases or not self.is_only_read(older.releases[0]):
            return older
        notice = "is known by its settings alone: what it refuses together is not checked"
        return older._replace(releases=tuple(filter(self.is_only_read, older.releases)), notice=notice)

    def fields(self, table: str, release: str) -> Mapping[str, Spec]:
        """A table in one release, with the names of its bases in this file."""
        if self.is_only_read(release):
            return self.older.fields(table, release)
        key = table, release
        if key not in self._fields:
            found: dict[str, Spec] = {}
            for base in reversed(self.bases(table, release)):
                found.update(self.fields(base, release))
            for name, history in self._tables.get(table, {}).items():
                variant = self._variant(history, release)
                if variant is not None:
                    found[name] = self._field(name, variant, release)
            self._fields[key] = found
        return self._fields[key]

    def keys(self, table: str, release: str) -> frozenset[str]:
        """The names of a table in one release."""
        if self.is_only_read(release):
            return self.older.keys(table, release)
        key = table, release
        if key not in self._keys:
            own = (
                name
                for name, history in self._tables.get(table, {}).items()
                if self._variant(history, release) is not None
            )
            self._keys[key] = frozenset(own).union(*(self.keys(base, release) for base in self.bases(table, release)))
        return self._keys[key]

    def keys_of_any(self, table: str, releases: Iterable[str] | None = None) -> frozenset[str]:
        """The names that a table has in at least one of these releases, or in any."""
        if releases is None:
            if table not in self._ever:
                self._ever[table] = frozenset().union(*(self.keys(table, release) for release in self.names))
            return self._ever[table]
        return frozenset().union(*(self.keys(table, release) for release in releases))

    def keys_of_all(self, table: str, releases: Iterable[str]) -> frozenset[str]:
        """The names that a table has in each of these releases."""
        sets = [self.keys(table, release) for release in releases]
        return frozenset.intersection(*sets) if sets else frozenset()

    def span(self, table: str, name: str) -> ReleaseSpan:
        """The releases whose table has the name, first to last; open at the oldest and the newest known."""
        key = table, name
        if key not in self._spans:
            self._spans[key] = self._span(table, name)
        return self._spans[key]

    def first_with(self, name: str) -> str:
        """The first known release in which a table has the name; empty if none has. Choices are no names."""
        if name not in self._firsts:
            having = [table for table in self._tables if ":" not in table and name in self.keys_of_any(table)]
            found = (release for release in self.names if any(name in self.keys(table, release) for table in having))
            self._firsts[name] = next(found, "")
        return self._firsts[name]

    def _span(self, table: str, name: str) -> ReleaseSpan:
        having = [release for release in self.names if name in self.keys(table, release)]
        if not having:
            raise KeyError(name)
        first, last = having[0], having[-1]
        return ReleaseSpan("" if first == self.names[0] else first, "" if last == self.newest else last)

    def bases(self, table: str, release: str) -> tuple[str, ...]:
        """The base tables, also of other programs, whose names a table has too."""
        bases = self.value("bases:" + table, release)
        return _texts(bases) if isinstance(bases, list) else ()

    def bounds(self, release: str) -> Mapping[str, str]:
        """The distributions that a release requires in a certain range, with that range."""
        if self.is_only_read(release):
            return self.older.bounds(release)
        found = {key.partition(":")[2]: self.value(key, release) for key in self._values if key.startswith("requires:")}
        return {name: str(range) for name, range in found.items() if range}

    def value(self, key: str, release: str) -> Json:
        """A single value in one release; None where it has none."""
        if self.is_only_read(release):
            return self.older.value(key, release)
        variant = self._variant(self._values.get(key, []), release)
        return variant["value"] if variant else None

    def _variant(self, history: History, release: str) -> Variant | None:
        for variant in history if isinstance(history, list) else [history]:
            if self._holds(str(variant.get("in", "..")), release):
                return variant
        return None

    def _holds(self, spans: str, release: str) -> bool:
        if spans not in self._holding:
            self._holding[spans] = frozenset(name for name in self.names if within(name, spans))
        return release in self._holding[spans]

    def _field(self, name: str, variant: Variant, release: str) -> Spec:
        types = tuple(_alternatives(str(variant.get("type", ""))))
        choices = variant.get("choices", [])
        if not choices:
            choices = [key for text in types for key in self.fields("choices:" + text, release)]
        return Spec(
            name=name,
            types=types,
            choices=tuple(choices) if isinstance(choices, list) else (),
            default=variant.get("default"),
            required=bool(variant.get("required", False)),
            computed=bool(variant.get("computed", False)),
            converted=bool(variant.get("converted", False)),
            aliases=_texts(variant.get("aliases", [])),
            bounds={key: value for key, value in variant.items() if key in _BOUNDS},
            extra={key: value for key, value in variant.items() if key not in _OWN},
        )


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(str(text) for text in value) if isinstance(value, list) else ()


def _alternatives(annotation: str) -> Iterable[str]:
    """The outer parts of `int|list[int|str]|None`."""
    depth, start = 0, 0
    for index, character in enumerate(annotation):
        depth += (character == "[") - (character == "]")
        if character == "|" and not depth:
            yield annotation[start:index]
            start = index + 1
    if annotation:
        yield annotation[start:]


@functools.cache
def declarations(program: str) -> Declarations:
    """A program's releases; the file is read once."""
    import json

    return Declarations(program, json.loads(facts_file(program).read_bytes()), further=program in READ_FURTHER)


def facts_file(program: str) -> Path:
    """The file with a program's releases."""
    here = Path(__file__).parent
    return (here if program in LIBRARIES else here.parent / "programs" / program) / f"{program}.json"
