"""Settings: [tool.trainlint] of a pyproject.toml or a trainlint.toml, overridden by the command line's options."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from trainlint.budget import BUDGET
from trainlint.findings import Severity, Stage, did_you_mean
from trainlint.reports import FORMATS
from trainlint.repository.discover import Excluder
from trainlint.targets import Cluster, Target, TargetError, parse_target

_LONGEST = 500
"""Characters of a message on a setting."""
RUNTIMES = ("open", "closed")


class SettingsError(ValueError):
    """A setting or option that cannot be used; the message begins with the file and line."""


@dataclass(frozen=True)
class Settings:
    """The settings of one workspace."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    targets: Mapping[str, Target] = field(default_factory=dict)
    runtimes: str = "open"
    stages: tuple[Stage, ...] = ()
    """Report only findings of these stages; empty for all."""
    fail_on: Severity = Severity.ERROR
    format: str = "text"
    cluster: Cluster = field(default_factory=Cluster)
    base: Path | None = None
    """The folder that `exclude` and the paths of overrides are relative to: that of the settings file."""
    overrides: tuple[PathOverride, ...] = ()
    """The `[[overrides]]` in order; of several that match a file the last one counts."""
    chosen: Mapping[str, Target] = field(default_factory=dict)
    """The targets in options, which win over those of any path."""

    def targets_of(self, path: str) -> Mapping[str, Target]:
        """The targets for a file."""
        matching = [override.targets for override in self.overrides if override.matches(path, self.base)]
        return {**self.targets, **{name: t for targets in matching for name, t in targets.items()}, **self.chosen}

    def program_of(self, path: str) -> str | None:
        """The program that the settings give a file, `none` for no program; None where they do not say."""
        named = [o.program for o in self.overrides if o.program and o.matches(path, self.base)]
        return named[-1] if named else None


@dataclass(frozen=True)
class PathOverride:
    """One of the `[[overrides]]`: settings for the files of some paths."""

    paths: tuple[str, ...]
    targets: Mapping[str, Target] = field(default_factory=dict)
    program: str | None = None

    def matches(self, path: str, base: Path | None) -> bool:
        """One of the patterns matches a file."""
        return Excluder(self.paths, base or Path()).excludes(Path(path))


@dataclass(frozen=True)
class Overrides:
    """Options of the command line; None or empty leaves the setting unchanged."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()
    exclude: tuple[str, ...] = ()
    targets: Mapping[str, Target] = field(default_factory=dict)
    runtimes: str | None = None
    fail_on: Severity | None = None
    format: str | None = None
    config: Path | None = None
    isolated: bool = False
    force_exclude: bool = False
    cache: bool = False
    """An index in the user's cache folder may be used and written."""
    jobs: int = 1
    """The processes among which many files are divided; 0 for as many as there are cores."""
    shard: tuple[int, int] | None = None
    """Which part of the files is checked, of how many parts; None for all."""

    def over(self, settings: Settings) -> Settings:
        """The settings overridden by these options; `ignore` and `exclude` are added."""
        return replace(
            settings,
            select=self.select or settings.select,
            ignore=settings.ignore + self.ignore,
            stages=self.stages,
            exclude=settings.exclude + self.exclude,
            targets={**settings.targets, **self.targets},
            chosen=self.targets,
            runtimes=self.runtimes or settings.runtimes,
            fail_on=self.fail_on or settings.fail_on,
            format=self.format or settings.format,
        )


class Vocabulary(NamedTuple):
    """The names that settings may use."""

    programs: Collection[str]
    targets: Collection[str]
    """The programs that a target may name."""
    verdict_only: Mapping[str, str]
    """Programs that only give verdicts, with the program whose files they are about."""
    selector_problem: Callable[[str], str]
    """What is wrong with a rule selector; empty when nothing is."""


def read_settings(file: Path, known: Vocabulary) -> Settings:
    """The settings in a file.

    Raises SettingsError with file and line for unknown keys, bad values, invalid TOML or an unreadable file.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        with open(file, "rb") as stream:
            content = stream.read(BUDGET.settings + 1)
        if len(content) > BUDGET.settings:
            raise SettingsError(f"{file}: cannot be read: it is larger than {BUDGET.settings:,} bytes")
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
        data: object = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: cannot be read: {error}") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        said = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise SettingsError(f"{file}: not valid TOML: {said}") from None
    except ValueError:
        raise SettingsError(f"{file}: not valid TOML: a number that is too long") from None
    table = data
    if file.name == "pyproject.toml":
        for key in ("tool", "trainlint"):
            table = table.get(key, {}) if isinstance(table, dict) else {}
    return _Reader(file, text, known).settings(table)


class _Reader:
    def __init__(self, file: Path, text: str, known: Vocabulary) -> None:
        self.file = file
        self.text = text
        self.known = known

    def settings(self, table: object) -> Settings:
        if not isinstance(table, dict):
            raise self._error("trainlint", "must be a table")
        values: dict[str, object] = {"base": self.file.parent}
        for key, value in table.items():
            name = key.replace("_", "-")
            if name not in _KEYS:
                raise self._error(key, f"unknown setting {key!r}", did_you_mean(name, _KEYS))
            values[name.replace("-", "_")] = _KEYS[name](self, key, value)
        return Settings(**values)  # type: ignore[arg-type]

    def _error(self, key: str, problem: str, hint: str = "") -> SettingsError:
        """An error at the line of a key: the first that has it before an equals sign or in a header."""
        heads = (line.partition("#")[0].partition("=")[0] for line in self.text.splitlines())
        line = next((number for number, head in enumerate(heads, 1) if key in re.split(r"[^\w-]+", head)), 1)
        shown = problem if len(problem) <= _LONGEST else f"{problem[:_LONGEST]}…"
        return SettingsError(f"{self.file}:{line}: {shown}{f', {hint}' if hint else ''}")

    def words(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(key, f"{key!r} must be a list of strings")
        return tuple(value)

    def patterns(self, key: str, value: object) -> tuple[str, ...]:
        from trainlint.repository.patterns import PatternError, Patterns

        words = self.words(key, value)
        try:
            Patterns(words)
        except PatternError as error:
            raise self._error(key, f"{key!r}: {error}") from None
        return words

    def selectors(self, key: str, value: object) -> tuple[str, ...]:
        words = self.words(key, value)
        for word in words:
            problem = self.known.selector_problem(word)
            if problem:
                raise self._error(key, f"{key!r}: {problem}")
        return words

    def runtimes(self, key: str, value: object) -> str:
        return self._one_of(key, value, RUNTIMES)

    def format(self, key: str, value: object) -> str:
        return self._one_of(key, value, FORMATS)

    def fail_on(self, key: str, value: object) -> Severity:
        return Severity(self._one_of(key, value, tuple(s.value for s in Severity)))

    def targets(self, key: str, value: object) -> dict[str, Target]:
        if not isinstance(value, dict):
            raise self._error(key, f'{key!r} must be a table, such as kubeflow-trainer = "2.3"')
        targets: dict[str, Target] = {}
        for program, versions in value.items():
            listed = versions if isinstance(versions, list) else [versions]
            if not all(isinstance(version, str) for version in listed):
                raise self._error(program, f"the target of {program} must be a string or a list of strings")
            try:
                option = f"{program}={','.join(listed)}"
                targets.update(parse_target(option, self.known.targets, self.known.verdict_only, self.file.name))
            except TargetError as error:
                raise self._error(program, str(error)) from None
        return targets

    def overrides(self, key: str, value: object) -> tuple[PathOverride, ...]:
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self._error(key, "'overrides' must be tables: [[overrides]]")
        return tuple(self._override(key, item) for item in value)

    def _override(self, key: str, item: dict[str, object]) -> PathOverride:
        for name in item:
            if name not in ("paths", "targets", "program"):
                hint = did_you_mean(name, ("paths", "targets", "program"))
                raise self._error(name, f"unknown setting {name!r} of an override", hint)
        paths = self.patterns("paths", item.get("paths"))
        if not paths:
            raise self._error(key, "an override needs paths")
        program = item.get("program")
        if program is not None:
            program = self._one_of("program", program, (*self.known.programs, "none"))
        return PathOverride(paths, self.targets("targets", item.get("targets", {})), program)

    def cluster(self, key: str, value: object) -> Cluster:
        if not isinstance(value, dict):
            raise self._error(key, f"{key!r} must be a table")
        sets: dict[str, frozenset[str]] = {}
        for name, listed in value.items():
            if name not in ("runtimes", "priority-classes"):
                hint = did_you_mean(name, ("runtimes", "priority-classes"))
                raise self._error(name, f"unknown setting {name!r} in cluster", hint)
            sets[name.replace("-", "_")] = frozenset(self.words(name, listed))
        return Cluster(sets.get("runtimes"), sets.get("priority_classes"))

    def _one_of(self, key: str, value: object, allowed: Collection[str]) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise self._error(key, f"{key!r} must be one of {', '.join(allowed)}")
        return value


_KEYS: Mapping[str, Callable[[_Reader, str, object], object]] = {
    "select": _Reader.selectors,
    "ignore": _Reader.selectors,
    "exclude": _Reader.patterns,
    "targets": _Reader.targets,
    "runtimes": _Reader.runtimes,
    "fail-on": _Reader.fail_on,
    "format": _Reader.format,
    "cluster": _Reader.cluster,
    "overrides": _Reader.overrides,
}
