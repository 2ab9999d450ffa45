"""Cases of the limits: files below fixtures/ with short settings and the expected findings of a rule.

Such a file has several YAML documents: first the settings that all cases share, then one document for each case:

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

With each target the rule has exactly the finding of the line marked `expect` (code, columns), with the severity,
message and help below it; of two marks on one line the first finding comes first. The rule finds nothing with a
`silent` target, nor with the last target if the line in `instead` replaces that with the same key (`no KEY`: removes
it). `# base: no KEY` removes a shared setting. `# run: trl sft` is the command that a script of the repository passes
the file to, as its `--config`.
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
    """The finding of a rule at a line and its columns."""

    line: int
    start: int
    end: int
    severity: str
    message: str
    help: str = ""


@dataclass(frozen=True)
class Trial:
    """A file, its target, and the findings of the rule; `instead` is the line that was replaced."""

    text: str
    targets: tuple[str, ...]
    expected: tuple[Expected, ...] = ()
    instead: str = ""
    run: str = ""


@dataclass
class Case:
    """One case: the settings and the comments of a document."""

    path: Path
    line: int
    base: Sequence[str]
    settings: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    instead: list[str] = field(default_factory=list)
    expected: list[Expected] = field(default_factory=list)
    run: str = ""

    @property
    def rule(self) -> str:
        """The rule whose folder has it."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """Its file and line."""
        return f"{self.rule}/{self.path.name}:{self.line}"

    def trials(self) -> Iterator[Trial]:
        """The trials: the settings with each target, and with each line replaced."""
        targets = [one for listed in self.targets for one in _each_version(listed)]
        text = file_of(self.settings, self.base, self.left_out)
        for target in targets:
            yield Trial(text, target, tuple(sorted(self.expected)), run=self.run)
        for target in (one for listed in self.silent for one in _each_version(listed)):
            yield Trial(text, target, run=self.run)
        for line in self.instead:
            key = key_of(line.removeprefix("no "))
            keys = [key_of(setting) for setting in self.settings]
            at = keys.index(key) if key in keys else len(keys)
            settings = [*self.settings[:at], *([] if line.startswith("no ") else [line]), *self.settings[at + 1 :]]
            text = file_of(settings, self.base, [*self.left_out, key])
            yield Trial(text, targets[-1], instead=line, run=self.run)


def file_of(settings: Sequence[str], base: Sequence[str], left_out: Sequence[str]) -> str:
    """A file with these lines and those of the base with other keys."""
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


_COMMENT = re.compile(r"# (target|silent|instead|base: no|run|help|error|warning|note):? (.+)")
_MARK = re.compile(r" +# expect: (.+)$")
_PLACE = re.compile(r"([A-Z]{2}\d{3}) (\d+)-(\d+)")


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file.

    Raises ValueError for an unknown comment in a case, and for a mark without a message.
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
    if what == "run":
        case.run = text
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
    """The findings in each trial, of one rule or, without `rule`, of all."""
    found: list[tuple[Finding, ...]] = [()] * len(trials)
    by_targets: dict[tuple[str, ...], list[int]] = {}
    for index, trial in enumerate(trials):
        by_targets.setdefault(trial.targets, []).append(index)
    for names, indexes in by_targets.items():
        targets = {program: target for name in names for program, target in parse_target(name).items()}
        with tempfile.TemporaryDirectory() as folder:
            for index in indexes:
                Path(folder, f"{index}.yaml").write_text(trials[index].text, encoding="utf-8")
                if trials[index].run:
                    script = f"{trials[index].run} --config {index}.yaml\n"
                    Path(folder, f"{index}.sh").write_text(script, encoding="utf-8")
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
