"""The facts files: the tables of all releases, where equal entries are stored once with the spans of their releases.

The format is described in linter/trainlint/training/declarations.py. `decode` is the inverse of `encode`, so a release
can be added without the packages of the others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from packaging.version import Version

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Attributes = dict[str, Json]
Table = dict[str, Attributes]


@dataclass
class Release:
    """The facts of one release: tables of names with attributes, and single values."""

    tables: dict[str, Table] = field(default_factory=dict)
    values: dict[str, Json] = field(default_factory=dict)


@dataclass
class History:
    """The known releases of a program, oldest first, with their days; those in `run` were also run."""

    source: str
    run: list[str]
    dates: dict[str, str]
    releases: dict[str, Release]

    def add(self, version: str, date: str, release: Release) -> None:
        """Add a release in its place among the others, or replace it."""
        found = {**self.releases, version: release}
        self.releases = {name: found[name] for name in sorted(found, key=Version)}
        dates = {**self.dates, version: date}
        self.dates = {name: dates[name] for name in self.releases if name in dates}


def spans(present: list[bool], releases: list[str]) -> str:
    """The spans of releases as text: `1.4.0..1.6.0`, open at the oldest and the newest release."""
    text = []
    start: int | None = None
    for index, here in enumerate([*present, False]):
        if here and start is None:
            start = index
        elif not here and start is not None:
            first = releases[start] if start else ""
            last = releases[index - 1] if index < len(releases) else ""
            text.append(first if first and first == last else f"{first}..{last}")
            start = None
    return ",".join(text)


def in_spans(text: str, releases: list[str]) -> list[str]:
    """The releases in a text of `spans`."""
    found = []
    for span in text.split(","):
        first, dots, last = span.partition("..")
        start = releases.index(first) if first else 0
        end = releases.index(last) if last else len(releases) - 1 if dots else start
        found += releases[start : end + 1]
    return found


def variants(found: Mapping[str, Attributes], releases: list[str]) -> Json:
    """The variants of a name, each with its releases, which are left out where all releases have it."""
    having: dict[str, list[bool]] = {}
    for index, release in enumerate(releases):
        if release in found:
            having.setdefault(json.dumps(found[release]), [False] * len(releases))[index] = True
    out: list[Json] = []
    for text, present in having.items():
        when = spans(present, releases)
        out.append({**({"in": when} if when != ".." else {}), **json.loads(text)})
    return out[0] if len(out) == 1 else out


def by_release(stored: Json, releases: list[str]) -> dict[str, Attributes]:
    """The attributes of a name in each release that has it: the inverse of `variants`."""
    found: dict[str, Attributes] = {}
    for variant in stored if isinstance(stored, list) else [stored]:
        attributes = dict(_mapping(variant))
        for release in in_spans(str(attributes.pop("in", "..")), releases):
            found[release] = attributes
    return found


def encode(history: History) -> Json:
    """A program's releases in the format of its facts file."""
    releases = list(history.releases)
    found = history.releases
    tables: dict[str, Json] = {}
    for table in sorted({name for release in found.values() for name in release.tables}):
        columns = {version: release.tables.get(table, {}) for version, release in found.items()}
        names = dict.fromkeys(name for column in reversed(columns.values()) for name in column)
        tables[table] = {
            name: variants({version: column[name] for version, column in columns.items() if name in column}, releases)
            for name in names
        }
    values: dict[str, Json] = {}
    for key in sorted({name for release in found.values() for name in release.values}):
        column = {version: release.values.get(key) for version, release in found.items()}
        values[key] = variants({v: {"value": value} for v, value in column.items() if value is not None}, releases)
    return {
        "source": history.source,
        "releases": [*releases],
        "run": [version for version in history.run if version in found],
        "dates": {**history.dates},
        "values": values,
        "tables": tables,
    }


def decode(data: Json) -> History:
    """The releases in a facts file."""
    file = _mapping(data)
    names = _texts(file["releases"])
    releases = {name: Release() for name in names}
    for key, stored in _mapping(file["values"]).items():
        for release in releases.values():
            release.values[key] = None
        for name, attributes in by_release(stored, names).items():
            releases[name].values[key] = attributes["value"]
    for table, rows in _mapping(file["tables"]).items():
        for release in releases.values():
            release.tables[table] = {}
        for row, stored in _mapping(rows).items():
            for name, attributes in by_release(stored, names).items():
                releases[name].tables[table][row] = attributes
    dates = {name: str(date) for name, date in _mapping(file.get("dates", {})).items()}
    return History(str(file["source"]), _texts(file["run"]), dates, releases)


def dumps(data: Json) -> str:
    """JSON with one name per line, so that the diff of a new release is readable."""
    lines = []
    for key, value in _mapping(data).items():
        if key not in ("tables", "values") or not isinstance(value, dict):
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
            continue
        parts = []
        for name, entry in value.items():
            if key == "tables" and isinstance(entry, dict):
                rows = ",\n".join(f"{json.dumps(k)}:{_compact(v)}" for k, v in entry.items())
                parts.append(f"{json.dumps(name)}: {{\n{rows}\n}}")
            else:
                parts.append(f"{json.dumps(name)}:{_compact(entry)}")
        lines.append(f"{json.dumps(key)}: {{\n" + ",\n".join(parts) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _mapping(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise ValueError(f"a mapping was expected: {value!r:.80}")
    return value


def _texts(value: Json) -> list[str]:
    return [str(text) for text in value] if isinstance(value, list) else []
