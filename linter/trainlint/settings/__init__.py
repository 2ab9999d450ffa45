"""Settings and options: what is meant for a workspace, and for each file in it.

Settings files are read by reader.py, which a run without one does not import.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from trainlint.findings import Severity, Stage
from trainlint.records import NamedTuple, dataclass, field, replace
from trainlint.repository.discover import Excluder
from trainlint.selection import Choice, Selection, reach
from trainlint.targets import Cluster, Target

RUNTIMES = ("open", "closed")


class SettingsError(ValueError):
    """A setting or option that cannot be used; the message begins with the file and line."""


class PerFileIgnores(NamedTuple):
    """The rules that are not used on the files of one pattern; if `negated`, on all others."""

    pattern: Excluder
    negated: bool
    rules: tuple[str, ...]

    @classmethod
    def of(cls, pattern: str, rules: tuple[str, ...], base: Path) -> PerFileIgnores:
        """One entry of `per-file-ignores`, whose pattern is relative to a folder."""
        return cls(Excluder([pattern.removeprefix("!")], base), pattern.startswith("!"), rules)

    def covers(self, path: str) -> bool:
        """The rules are not used on this file."""
        return self.pattern.excludes(Path(path)) is not self.negated


@dataclass(frozen=True)
class PathOverride:
    """One of the `[[overrides]]`: settings for the files of some paths."""

    paths: Excluder
    targets: Mapping[str, Target] = field(default_factory=dict)
    program: str | None = None
    choice: Choice = field(default_factory=Choice)
    per_file_ignores: tuple[PerFileIgnores, ...] = ()
    severity: Mapping[str, str] = field(default_factory=dict)
    origin: str = ""
    """The file and line of its `program`."""

    def covers(self, path: str) -> bool:
        """It is meant for this file."""
        return self.paths.excludes(path)

    @property
    def on_rules(self) -> bool:
        """It says something about rules."""
        return bool(self.choice != Choice() or self.per_file_ignores or self.severity)

    @property
    def brings(self) -> Iterable[str]:
        """The selectors with which it can bring rules into use."""
        return (*(self.choice.select or ()), *self.choice.extend_select, *self.severity)


@dataclass(frozen=True)
class Settings:
    """The settings of one workspace; those of an extended file come first where there are several."""

    choices: tuple[Choice, ...] = ()
    per_file_ignores: tuple[PerFileIgnores, ...] = ()
    severities: tuple[Mapping[str, str], ...] = ()
    require_reason: bool = False
    """A suppression comment without a reason suppresses nothing."""
    baseline: Path | None = None
    """A file of known findings, which need not be there yet."""
    excluders: tuple[Excluder, ...] = ()
    targets: Mapping[str, Target] = field(default_factory=dict)
    runtimes: str = "open"
    stages: tuple[Stage, ...] = ()
    """Report only findings of these stages; empty for all."""
    fail_on: Severity = Severity.ERROR
    format: str = "text"
    cluster: Cluster = field(default_factory=Cluster)
    base: Path | None = None
    """The folder that the patterns of options are relative to: that of the settings file."""
    overrides: tuple[PathOverride, ...] = ()
    """The `[[overrides]]` in order; of several that match a file the last one counts."""
    chosen: Mapping[str, Target] = field(default_factory=dict)
    """The targets in options, which win over those of any path."""
    choice: Choice = field(default_factory=Choice)
    """The rules in options, which win over those of any path."""

    def targets_of(self, path: str) -> Mapping[str, Target]:
        """The targets for a file."""
        targets = dict(self.targets)
        for override in self._overrides_of(path):
            targets.update(override.targets)
        return {**targets, **self.chosen}

    def program_of(self, path: str) -> str | None:
        """The program that the settings give a file, `none` for no program; None where they do not say."""
        named = self._naming(path)
        return named.program if named else None

    def place_of_program(self, path: str) -> str:
        """The file and line of the settings that give a file to a program."""
        named = self._naming(path)
        return named.origin if named else ""

    def _naming(self, path: str) -> PathOverride | None:
        return next((override for override in reversed(self._overrides_of(path)) if override.program), None)

    def selection_of(self, path: str) -> Selection:
        """Which rules are used on a file, and with which severity."""
        overrides = self._overrides_of(path)
        ignores = (*self.per_file_ignores, *(one for override in overrides for one in override.per_file_ignores))
        return Selection(
            (*self.choices, *(override.choice for override in overrides), self.choice),
            tuple(rule for one in ignores if one.covers(path) for rule in one.rules),
            (*self.severities, *(override.severity for override in overrides)),
        )

    @cached_property
    def differs_by_file(self) -> bool:
        """Rules are used, or their severities are set, in a way that the choice for the workspace does not tell."""
        return bool(self.per_file_ignores or any(self.severities)) or any(one.on_rules for one in self.overrides)

    @cached_property
    def gives_programs(self) -> bool:
        """Some file is said to be a program's."""
        return any(override.program for override in self.overrides)

    @cached_property
    def selects_all(self) -> bool:
        """Every rule is used on every file."""
        return not self.differs_by_file and all(choice == Choice() for choice in (*self.choices, self.choice))

    def may_use(self, code: str, name: str) -> bool:
        """A rule is used on some file, as far as that can be told without the file."""
        used = Selection((*self.choices, self.choice), (), self.severities).uses(code, name)
        return used or any(reach(code, name, selector) >= 0 for selector in self._brought)

    @cached_property
    def _brought(self) -> Collection[str]:
        return {selector for override in self.overrides for selector in override.brings}

    @cached_property
    def _known(self) -> dict[str, tuple[PathOverride, ...]]:
        """The overrides of the files that were asked for."""
        return {}

    def _overrides_of(self, path: str) -> tuple[PathOverride, ...]:
        if path not in self._known:
            self._known[path] = tuple(override for override in self.overrides if override.covers(path))
        return self._known[path]


@dataclass(frozen=True)
class Overrides:
    """Options of the command line; None or empty leaves the setting unchanged."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    extend_per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
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
    extend_ignore: tuple[str, ...] = ()
    baseline: Path | None = None
    """A file of known findings that is used in place of the one in the settings."""
    no_baseline: bool = False
    """What a baseline holds counts, too."""

    def over(self, settings: Settings, base: Path) -> Settings:
        """The settings overridden by these options, whose patterns are relative to a folder; `exclude` is added."""
        known = () if self.per_file_ignores else settings.per_file_ignores
        added = (*self.per_file_ignores.items(), *self.extend_per_file_ignores.items())
        return replace(
            settings,
            choice=Choice(self.select or None, (*self.ignore, *self.extend_ignore), self.extend_select),
            per_file_ignores=(*known, *(PerFileIgnores.of(pattern, rules, base) for pattern, rules in added)),
            stages=self.stages,
            excluders=(*settings.excluders, *([Excluder(self.exclude, base)] if self.exclude else [])),
            targets={**settings.targets, **self.targets},
            chosen=self.targets,
            runtimes=self.runtimes or settings.runtimes,
            fail_on=self.fail_on or settings.fail_on,
            format=self.format or settings.format,
            baseline=None if self.no_baseline else self.baseline or settings.baseline,
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
    selectors: Callable[[], Collection[str]]
    """Every rule selector."""
