"""Reads settings files: [tool.trainlint] of a pyproject.toml or a trainlint.toml, and the files that they extend."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainlint.budget import BUDGET
from trainlint.findings import Severity
from trainlint.records import NamedTuple
from trainlint.repository.bounds import inside, leads_out
from trainlint.repository.discover import Excluder, repository_root, trap
from trainlint.repository.files import display_path
from trainlint.selection import Choice
from trainlint.settings import PathOverride, PerFileIgnores, Settings, SettingsError, Vocabulary
from trainlint.settings.kinds import At
from trainlint.settings.table import IN_OVERRIDES, TOP
from trainlint.targets import Cluster

MOST_FILES = 10
"""Settings files that extend each other."""


class Written(NamedTuple):
    """What one settings file says: the values by key, and those of each of its `[[overrides]]`."""

    at: At
    values: Mapping[str, Any]
    overrides: tuple[Mapping[str, Any], ...]

    @property
    def base(self) -> Path:
        """The folder that its patterns are relative to."""
        return self.at.file.parent


def read_settings(file: Path, known: Vocabulary) -> Settings:
    """The settings in a file, and in those that it extends.

    Raises SettingsError with file and line for unknown keys, bad values, invalid TOML or an unreadable file.
    """
    return settings_of(written(file, known), file.parent)


def written(file: Path, known: Vocabulary) -> list[Written]:
    """What the file says, and before it what the extended files say. Raises SettingsError."""
    found: list[Written] = []
    seen: set[str] = set()
    next_file: Path | None = file
    while next_file is not None:
        one = _read(next_file, known)
        found.insert(0, one)
        seen.add(os.path.realpath(next_file))
        next_file = _extended(one)
        if next_file is not None and os.path.realpath(next_file) in seen:
            raise one.at.below("extend").error(f"the settings extend themselves: {one.values['extend']}")
        if next_file is not None and len(found) == MOST_FILES:
            raise one.at.below("extend").error(f"more than {MOST_FILES} settings files extend each other")
    return found


def settings_of(files: Iterable[Written], base: Path) -> Settings:
    """The settings of a workspace out of what its files say, the extended ones first."""
    files = list(files)
    values: dict[str, Any] = {}
    for one in files:
        values.update(one.values)
    per_file: tuple[PerFileIgnores, ...] = ()
    cluster: dict[str, frozenset[str]] = {}
    for one in files:
        per_file = (*(() if "per-file-ignores" in one.values else per_file), *_per_file(one.values, one.base))
        cluster.update({key: frozenset(names) for key, names in one.values.get("cluster", {}).items()})
    return Settings(
        choices=tuple(_choice(one.values) for one in files),
        per_file_ignores=per_file,
        severities=tuple(one.values["severity"] for one in files if one.values.get("severity")),
        require_reason=values.get("require-reason", False),
        baseline=_baseline(files),
        excluders=tuple(Excluder(one.values["exclude"], one.base) for one in files if one.values.get("exclude")),
        targets={name: target for one in files for name, target in one.values.get("targets", {}).items()},
        runtimes=values.get("runtimes", "open"),
        fail_on=Severity(values.get("fail-on", "error")),
        format=values.get("format", "text"),
        cluster=Cluster(cluster.get("runtimes"), cluster.get("priority-classes")),
        base=base,
        overrides=tuple(
            _override(override, one.base, one.at.below("overrides").below(str(number)))
            for one in files
            for number, override in enumerate(one.overrides)
        ),
    )


def _choice(values: Mapping[str, Any]) -> Choice:
    ignored = (*values.get("ignore", ()), *values.get("extend-ignore", ()))
    return Choice(values.get("select"), ignored, values.get("extend-select", ()))


def _per_file(values: Mapping[str, Any], base: Path) -> Iterator[PerFileIgnores]:
    for key in ("per-file-ignores", "extend-per-file-ignores"):
        for pattern, rules in values.get(key, {}).items():
            yield PerFileIgnores.of(pattern, rules, base)


def _override(values: Mapping[str, Any], base: Path, at: At) -> PathOverride:
    return PathOverride(
        Excluder(values["paths"], base),
        values.get("targets", {}),
        values.get("program"),
        _choice(values),
        tuple(_per_file(values, base)),
        values.get("severity", {}),
        f"{display_path(at.file)}:{at.below('program').line()}" if "program" in values else "",
    )


def _read(file: Path, known: Vocabulary) -> Written:
    text, data = _parsed(file)
    at = At(file, text, known)
    table: object = data
    if file.name == "pyproject.toml":
        for key in ("tool", "trainlint"):
            table = table.get(key) if isinstance(table, dict) else None
        if table is None:
            raise SettingsError(f"{display_path(file)}: has no [tool.trainlint]")
    if not isinstance(table, dict):
        raise at.error("'trainlint' must be a table")
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key == "overrides":
            continue
        if key not in TOP:
            raise at.below(key).unknown((*TOP, "overrides"), hint=_home_of(key))
        values[key] = TOP[key].kind.read(at.below(key), value)
    overrides = _overrides(at.below("overrides"), table.get("overrides", []))
    _measure(at.below("overrides"), (values, *overrides))
    return Written(at, values, overrides)


def _home_of(key: str) -> str:
    """Where a key belongs that does not stand at the top; empty for any other."""
    if key in IN_OVERRIDES:
        return "which stands in [[overrides]], for the files of its paths"
    is_table = key in ("tool", "trainlint")
    return "in trainlint.toml the settings stand at the top, without [tool.trainlint]" if is_table else ""


def _measure(at: At, tables: Iterable[Mapping[str, Any]]) -> None:
    """As much as is compared with each file is within the budget."""
    patterns = rules = 0
    for values in tables:
        ignores = [values.get(key, {}) for key in ("per-file-ignores", "extend-per-file-ignores")]
        lists = [values.get(key, ()) for key in ("select", "ignore", "extend-select", "extend-ignore", "severity")]
        patterns += len(values.get("paths", ())) + sum(map(len, ignores))
        rules += sum(map(len, (*lists, *(listed for table in ignores for listed in table.values()))))
    for number, most, what in ((patterns, BUDGET.patterns, "patterns"), (rules, BUDGET.selectors, "rules")):
        if number > most:
            raise at.error(f"more than {most:,} {what} are named")


def _overrides(at: At, value: object) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise at.error("'overrides' must be tables: [[overrides]]")
    return tuple(_read_override(at.below(str(number)), item) for number, item in enumerate(value))


def _read_override(at: At, table: Mapping[str, object]) -> Mapping[str, Any]:
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in IN_OVERRIDES:
            hint = "which stands at the top, for all files" if key in TOP else ""
            raise at.below(key).unknown(IN_OVERRIDES, " of an override", hint)
        values[key] = IN_OVERRIDES[key].kind.read(at.below(key), value)
    if not values.get("paths"):
        raise at.error("an override needs paths")
    return values


def _parsed(file: Path) -> tuple[str, dict[str, object]]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    if found := trap(file):
        raise SettingsError(f"{display_path(file)}: {found}")
    try:
        with open(file, "rb") as stream:
            content = stream.read(BUDGET.settings + 1)
        if len(content) > BUDGET.settings:
            raise SettingsError(f"{display_path(file)}: cannot be read: it is larger than {BUDGET.settings:,} bytes")
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        return text, tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{display_path(file)}: cannot be read: {error}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SettingsError(f"{display_path(file)}: not valid TOML: {said}") from None
    except ValueError:
        raise SettingsError(f"{display_path(file)}: not valid TOML: a number that is too long") from None


def _baseline(files: Iterable[Written]) -> Path | None:
    """The file with the known findings; the nearest settings file that names one. Raises SettingsError."""
    found = None
    for one in files:
        if "baseline" in one.values:
            found = _named_file(one, "baseline")
            if os.path.lexists(found) and inside(repository_root(one.base), found) is None:
                raise one.at.below("baseline").error(f"{one.values['baseline']!r} is no file")
    return found


def _named_file(one: Written, key: str) -> Path:
    """The file that a setting names. Raises SettingsError where it would not be in the repository."""
    root, named = repository_root(one.base), one.values[key]
    file = Path(os.path.abspath(one.base / named))
    if leads_out(root, file):
        raise one.at.below(key).error(f"{named!r} leads out of the repository {root}")
    return file


def _extended(one: Written) -> Path | None:
    """The settings file that another one extends. Raises SettingsError where it is not in the repository."""
    if "extend" not in one.values:
        return None
    file = _named_file(one, "extend")
    if inside(repository_root(one.base), file) is None:
        raise one.at.below("extend").error(f"{one.values['extend']!r} is no file")
    return file
