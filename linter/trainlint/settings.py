"""[tool.trainlint] of a pyproject.toml, or trainlint.toml, and the command line's options: Settings."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainlint.findings import Severity, did_you_mean
from trainlint.report import Target

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMATS = ("text", "concise", "json", "sarif", "github", "gitlab", "junit")
RUNTIMES = ("open", "closed")
FILE_NAMES = ("trainlint.toml", "pyproject.toml")


class SettingsError(ValueError):
    """A setting or option that cannot be used; the message begins with its place."""


@dataclass(frozen=True)
class Cluster:
    """What the cluster is known to hold: `[tool.trainlint.cluster]`. None where nothing was said."""

    runtimes: frozenset[str] | None = None
    priority_classes: frozenset[str] | None = None


@dataclass(frozen=True)
class Settings:
    """How to lint one workspace."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    targets: Mapping[str, Target] = field(default_factory=dict)
    runtimes: str = "open"
    fail_on: Severity = Severity.ERROR
    format: str = "text"
    cluster: Cluster = Cluster()
    base: Path | None = None
    """The folder that `exclude` starts from: where the settings were read."""


@dataclass(frozen=True)
class Overrides:
    """Options of the command line; None or empty where the settings decide."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    targets: Mapping[str, Target] = field(default_factory=dict)
    runtimes: str | None = None
    fail_on: Severity | None = None
    format: str | None = None
    config: Path | None = None
    isolated: bool = False
    force_exclude: bool = False

    def over(self, settings: Settings) -> Settings:
        """The settings with these options in their place; `ignore` and `exclude` add to theirs."""
        return replace(
            settings,
            select=self.select or settings.select,
            ignore=settings.ignore + self.ignore,
            exclude=settings.exclude + self.exclude,
            targets={**settings.targets, **self.targets},
            runtimes=self.runtimes or settings.runtimes,
            fail_on=self.fail_on or settings.fail_on,
            format=self.format or settings.format,
        )


def settings_file(folder: Path) -> Path | None:
    """The settings file of one folder: trainlint.toml, or a pyproject.toml with [tool.trainlint]."""
    own, project = (folder / name for name in FILE_NAMES)
    if os.path.isfile(own):
        return own
    return project if os.path.isfile(project) and _has_table(project) else None


def _has_table(project: Path) -> bool:
    try:
        data = project.read_bytes()
        if b"trainlint" not in data:
            return False
        tool = tomllib.loads(data.decode("utf-8-sig")).get("tool")
    except OSError:
        return False
    except ValueError:
        return re.search(rb"^\s*\[\s*tool\s*\.\s*trainlint\b", data, re.MULTILINE) is not None
    return isinstance(tool, dict) and "trainlint" in tool


def read_settings(file: Path) -> Settings:
    """The settings of one file.

    Raises SettingsError with file and line for unknown keys, bad values, broken TOML or an unreadable file.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
        data: object = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: not TOML: {error}") from None
    table = data
    if file.name == "pyproject.toml":
        for key in ("tool", "trainlint"):
            table = table.get(key, {}) if isinstance(table, dict) else {}
    return _Reader(file, text).settings(table)


class _Reader:
    def __init__(self, file: Path, text: str) -> None:
        self.file = file
        self.text = text

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
        match = re.search(rf"^\s*\[?[\w.\s\"'-]*\b{re.escape(key)}\b", self.text, re.MULTILINE)
        line = self.text.count("\n", 0, match.end()) + 1 if match else 1
        return SettingsError(f"{self.file}:{line}: {problem}{f', {hint}' if hint else ''}")

    def words(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._error(key, f"{key!r} must be a list of texts")
        return tuple(value)

    def selectors(self, key: str, value: object) -> tuple[str, ...]:
        words = self.words(key, value)
        for word in words:
            problem = selector_problem(word)
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
                raise self._error(program, f"the target of {program} must be a text or a list of texts")
            try:
                targets.update(parse_target(f"{program}={','.join(listed)}", self.file.name))
            except SettingsError as error:
                raise self._error(program, str(error)) from None
        return targets

    def cluster(self, key: str, value: object) -> Cluster:
        if not isinstance(value, dict):
            raise self._error(key, f"{key!r} must be a table")
        sets: dict[str, frozenset[str]] = {}
        for name, listed in value.items():
            if name not in ("runtimes", "priority-classes"):
                hint = did_you_mean(name, ("runtimes", "priority-classes"))
                raise self._error(name, f"unknown setting {name!r} of the cluster", hint)
            sets[name.replace("-", "_")] = frozenset(self.words(name, listed))
        return Cluster(**sets)

    def _one_of(self, key: str, value: object, allowed: tuple[str, ...]) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise self._error(key, f"{key!r} must be one of {', '.join(allowed)}")
        return value


_KEYS: Mapping[str, Callable[[_Reader, str, object], object]] = {
    "select": _Reader.selectors,
    "ignore": _Reader.selectors,
    "exclude": _Reader.words,
    "targets": _Reader.targets,
    "runtimes": _Reader.runtimes,
    "fail-on": _Reader.fail_on,
    "format": _Reader.format,
    "cluster": _Reader.cluster,
}


def selector_problem(word: str) -> str:
    """What is wrong with a rule selector (a code, a prefix of codes, a name); empty when nothing is.

    The rules are imported to find out, so a word with the shape of a family (`TT`, `FS1`) is taken as it is.
    """
    if re.fullmatch(r"(?:TT|FS|TJ|YD|TL)\d{0,2}", word, re.IGNORECASE):
        return ""
    from trainlint.rules import all_rules, nearest_rule

    if any(rule.matches(word) for rule in all_rules()):
        return ""
    near = nearest_rule(word)
    return f"no rule is called {word!r}" + (f', did you mean "{near}"?' if near else "")


def parse_target(option: str, origin: str = "option") -> dict[str, Target]:
    """`PROGRAM=VERSION[,VERSION…]` as a target.

    Raises SettingsError for an unknown program or a text that is no version.
    """
    from trainlint.programs import PROGRAMS, VERDICT_ONLY

    program, equals, listed = option.partition("=")
    versions = [version.strip().lstrip("v") for version in listed.split(",") if version.strip()]
    if not equals or not versions:
        raise SettingsError(f"{option!r} is no target: write PROGRAM=VERSION, such as kubeflow-trainer=2.3")
    if program in VERDICT_ONLY:
        raise SettingsError(f"{program} has no target of its own: it follows {VERDICT_ONLY[program]}")
    if program not in PROGRAMS:
        hint = did_you_mean(program, PROGRAMS)
        raise SettingsError(f"{program!r} is no program that trainlint knows{f', {hint}' if hint else ''}")
    for version in versions:
        if not re.fullmatch(r"\d+(\.\d+){0,3}([-.]?(a|b|rc|dev|post|alpha|beta)[-.]?\d*)?", version):
            raise SettingsError(f"{version!r} is no version of {program}")
    return {program: Target(tuple(dict.fromkeys(versions)), origin)}
