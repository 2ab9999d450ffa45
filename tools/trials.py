"""Cases of the limits: files below fixtures/ that say what a rule makes of short settings.

Such a file is a stream of YAML documents: the settings that all its cases have, then a case each:

    ---
    # target: axolotl=0.8.1,0.11.0
    # silent: axolotl=0.8.0
    # silent: axolotl=0.12.2
    fsdp: [full_shard]
    optimizer: adamw_8bit  # expect: FS411 12-22
    # error: bitsandbytes' 8-bit AdamW does not work with FSDP2
    # help: use adamw_torch_8bit
    fsdp_config: {fsdp_version: 2}
    # instead: no fsdp
    # instead: optimizer: adamw_torch

With each target the rule says what the line marked `expect` says (code, columns), with the severity, message and help
below it, and nothing else; of two marks on a line the first is said first. The rule is silent with the targets named
so, and with the last target too once a line stands in place of the one for the same key, or no line does.
`# base: no KEY` leaves out a setting of all cases.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Finding
from trainlint.settings import Overrides


@dataclass(frozen=True, order=True)
class Expected:
    """What a rule says at a line and its columns."""

    line: int
    start: int
    end: int
    severity: str
    message: str
    help: str = ""


@dataclass(frozen=True)
class Trial:
    """A file, the releases that judge it, and what the rule says of it; `instead` is the line that differs."""

    text: str
    targets: tuple[str, ...]
    expected: tuple[Expected, ...] = ()
    instead: str = ""


@dataclass
class Case:
    """One document of a file of cases: its lines that are settings, and what its comments say."""

    path: Path
    line: int
    base: Sequence[str]
    settings: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    instead: list[str] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)

    @property
    def rule(self) -> str:
        """The rule in whose folder it stands."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """Where it stands."""
        return f"{self.rule}/{self.path.name}:{self.line}"

    def trials(self) -> Iterator[Trial]:
        """What is tried: the settings with each target, and each line that stands instead of another."""
        targets = [one for listed in self.targets for one in _each_version(listed)]
        text = file_of(self.settings, self.base, self.left_out)
        for target in targets:
            yield Trial(text, target, tuple(sorted(self.expected)))
        for target in (one for listed in self.silent for one in _each_version(listed)):
            yield Trial(text, target)
        for line in self.instead:
            key = key_of(line.removeprefix("no "))
            keys = [key_of(setting) for setting in self.settings]
            at = keys.index(key) if key in keys else len(keys)
            settings = [*self.settings[:at], *([] if line.startswith("no ") else [line]), *self.settings[at + 1 :]]
            yield Trial(file_of(settings, self.base, [*self.left_out, key]), targets[-1], instead=line)


def file_of(settings: Sequence[str], base: Sequence[str], left_out: Sequence[str]) -> str:
    """A file of these lines and of those of the base whose keys they leave."""
    keys = {*map(key_of, settings), *left_out}
    return "".join(f"{line}\n" for line in [*settings, *(line for line in base if key_of(line) not in keys)])


def key_of(line: str) -> str:
    """The key of a line at the top of a file."""
    return line.partition(":")[0].strip()


def _each_version(listed: str) -> Iterator[tuple[str, ...]]:
    """`a=1,2 b=3` as `a=1 b=3` and `a=2 b=3`."""
    first, *others = listed.split()
    program, _, versions = first.partition("=")
    for version in versions.split(","):
        yield (f"{program}={version}", *others)


_COMMENT = re.compile(r"# (target|silent|instead|base: no|help|error|warning|note):? (.+)")
_MARK = re.compile(r" +# expect: (.+)$")
_PLACE = re.compile(r"([A-Z]{2}\d{3}) (\d+)-(\d+)")


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file.

    Raises ValueError for a comment in a case that says nothing of it, and for a mark without a message.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [index for index, line in enumerate(lines) if line == "---"]
    base = [line for line in lines[: starts[0]] if not line.startswith("#")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        case = Case(path, start + 1, base)
        for line in lines[start + 1 : end]:
            _read_line(case, line)
        if not case.targets or any(not expected.message for expected in case.expected):
            raise ValueError(f"{case.name} has no target, or a mark without a message")
        yield case


def _read_line(case: Case, line: str) -> None:
    if not line.startswith("#"):
        mark = _MARK.search(line)
        case.settings.append(line[: mark.start()] if mark else line)
        for code, start, end in _PLACE.findall(mark[1]) if mark else ():
            if code != case.rule:
                raise ValueError(f"{case.name}: {line}")
            case.expected.append(Expected(len(case.settings), int(start), int(end), "", ""))
        return
    comment = _COMMENT.fullmatch(line)
    if comment is None:
        raise ValueError(f"{case.name}: {line}")
    what, text = comment.groups()
    lists = {"target": case.targets, "silent": case.silent, "instead": case.instead, "base: no": case.left_out}
    if what in lists:
        lists[what].append(text)
        return
    unsaid = [index for index, expected in enumerate(case.expected) if not expected.message]
    index = (unsaid[0] if unsaid else len(case.expected)) - (what == "help")
    if not 0 <= index < len(case.expected):
        raise ValueError(f"{case.name}: {line}")
    expected = case.expected[index]
    case.expected[index] = (
        replace(expected, help=text) if what == "help" else replace(expected, severity=what, message=text)
    )


def outcomes(trials: Sequence[Trial], rule: str = "") -> list[tuple[Finding, ...]]:
    """What one rule, or where none is named any, says of each trial."""
    found: list[tuple[Finding, ...]] = [()] * len(trials)
    by_targets: dict[tuple[str, ...], list[int]] = {}
    for index, trial in enumerate(trials):
        by_targets.setdefault(trial.targets, []).append(index)
    for names, indexes in by_targets.items():
        targets = {program: target for name in names for program, target in parse_target(name).items()}
        with tempfile.TemporaryDirectory() as folder:
            for index in indexes:
                Path(folder, f"{index}.yaml").write_text(trials[index].text, encoding="utf-8")
            overrides = Overrides(targets=targets, select=(rule,) if rule else (), isolated=True)
            report = lint([Path(folder)], overrides)
        if report.crashed:
            raise RuntimeError(report.notices)
        for finding in report.active:
            index = int(Path(finding.path).stem)
            found[index] = (*found[index], finding)
    return found


def said(finding: Finding) -> Expected:
    """A finding as a case states it."""
    at = finding.span
    return Expected(at.line, at.column, at.end_column, finding.level.value, finding.message, finding.help)
