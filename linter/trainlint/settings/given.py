"""Options that a caller in Python gives: they are checked as those of the command line are, each with one line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from trainlint.findings import Severity, Stage, did_you_mean
from trainlint.records import replace
from trainlint.reports import FORMATS
from trainlint.repository.patterns import PatternError, Patterns
from trainlint.settings import RUNTIMES, Overrides, SettingsError, Vocabulary
from trainlint.targets import Target, TargetError, parse_target

_LISTS_OF_RULES = ("select", "ignore", "extend_select", "extend_ignore")
_BY_PATTERN = ("per_file_ignores", "extend_per_file_ignores")


def checked(options: Overrides, known: Vocabulary) -> Overrides:
    """The options, whose paths may also be texts. Raises SettingsError for what the command line would refuse."""
    if not isinstance(options, Overrides):
        raise SettingsError(f"settings: must be trainlint.Overrides, not {type(options).__name__}")
    for name in _LISTS_OF_RULES:
        _check_rules(name, getattr(options, name), known)
    for name in _BY_PATTERN:
        table = _table(name, getattr(options, name), '{"legacy/**": ("FS",)}')
        for pattern, rules in table.items():
            _check_patterns(name, [pattern.removeprefix("!")])
            _check_rules(f"{name}[{pattern!r}]", rules, known)
    _check_patterns("exclude", _texts("exclude", options.exclude))
    for stage in options.stages:
        _check_member("stages", stage, Stage)
    if options.fail_on is not None:
        _check_member("fail_on", options.fail_on, Severity)
    _check_word("runtimes", options.runtimes, RUNTIMES)
    _check_word("format", options.format, FORMATS)
    for program, target in _table("targets", options.targets, '{"axolotl": Target(("0.12.2",))}').items():
        _check_target(program, target, known)
    return replace(options, config=_path("config", options.config), baseline=_path("baseline", options.baseline))


def _check_rules(name: str, value: Any, known: Vocabulary) -> None:
    for word in _texts(name, value):
        if problem := known.selector_problem(word):
            raise SettingsError(f"{name}: {problem}")


def _check_patterns(name: str, patterns: Iterable[str]) -> None:
    try:
        Patterns(tuple(patterns))
    except PatternError as error:
        raise SettingsError(f"{name}: {error}") from None


def _check_member(name: str, value: object, kind: type[Severity] | type[Stage]) -> None:
    if not isinstance(value, kind):
        spelled = next((one for one in kind if one.value == value), next(iter(kind)))
        raise SettingsError(f"{name}: {value!r} is no {kind.__name__}: write {kind.__name__}.{spelled.name}")


def _check_word(name: str, value: str | None, allowed: Iterable[str]) -> None:
    words = tuple(allowed)
    if value is not None and value not in words:
        hint = did_you_mean(value, words) if isinstance(value, str) else ""
        raise SettingsError(f"{name}: {value!r} is none of {', '.join(words)}{f', {hint}' if hint else ''}")


def _check_target(program: str, target: object, known: Vocabulary) -> None:
    if not isinstance(target, Target):
        versions = (target,) if isinstance(target, str) else target
        raise SettingsError(f"targets: {program!r} needs a Target: write Target({versions!r})")
    try:
        parse_target(f"{program}={','.join(_texts('targets', target.versions))}", known.targets, known.verdict_only)
    except TargetError as error:
        raise SettingsError(f"targets: {error}") from None


def _texts(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise SettingsError(f"{name}: {value!r} is no tuple of texts: write ({value!r},)")
    texts = tuple(value)
    if wrong := [one for one in texts if not isinstance(one, str)]:
        raise SettingsError(f"{name}: {wrong[0]!r} is no text")
    return texts


def _table(name: str, value: object, example: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise SettingsError(f"{name}: {value!r} is no mapping such as {example}")
    return value


def _path(name: str, value: Any) -> Path | None:
    if value is not None and not isinstance(value, (str, os.PathLike)):
        raise SettingsError(f"{name}: {value!r} is no path")
    return None if value is None else Path(value)
