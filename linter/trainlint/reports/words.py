"""What several formats say in the same words: the verdict of a finding, and the result of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainlint.findings import Finding, Severity, Stage, counted
from trainlint.programs.table import PROGRAMS, VERDICT_ONLY, about, title
from trainlint.releases import spans
from trainlint.report import Report
from trainlint.reports.escape import visible

IN_BASELINE = "in the baseline"

_LATER = {
    Stage.START: " at the start",
    Stage.PREPARE: " when the model is prepared",
    Stage.TRAIN: " at the first step",
    Stage.SAVE: " when it saves, after training",
}
"""When a program stops that has already taken its settings."""
_NAMED = 3
"""How many of the files are named that were almost recognised."""


def annotation(finding: Finding) -> str:
    """Which program gives which verdict, and the field as it spells it."""
    level = finding.verdict or finding.level
    if finding.program in ("", "trainlint") or level is Severity.NOTE:
        return finding.field
    maker = VERDICT_ONLY.get(finding.program)
    program = PROGRAMS.get(maker or finding.program)
    thing = about(finding.field)
    stage = finding.stage or Stage.RUN
    verb = "accept" if stage is Stage.RUN else "stop on" if stage in _LATER else "refuse"
    sure = stage is Stage.RUN or level is Severity.ERROR or finding.refused_by_some
    several = maker is None and len(finding.program_versions) > 1 and not finding.releases.startswith("since")
    if not sure or (stage is Stage.RUN and program is not None and program.several_readers):
        verb = f"may {verb}"
    elif not several:
        verb = "stops on" if verb == "stop on" else f"{verb}s"
    if maker is None:
        said = f"{_release(finding.program, finding)} {verb} {thing}"
    else:
        judge = " ".join([title(finding.program), " and ".join(span.words for span in spans(finding.within))])
        said = f"{judge.rstrip()} {verb} what {_release(maker, finding)} makes of {thing}"
    said += _LATER.get(stage, "")
    return f"{said} ({finding.field})" if finding.field else said


def _release(program: str, finding: Finding) -> str:
    return f"{title(program)} {finding.releases or joined(finding.program_versions)}".rstrip()


def reason(finding: Finding) -> str:
    """Why a finding does not count; empty if it does."""
    if finding.suppressed is not None:
        return finding.suppressed or "no reason given"
    return IN_BASELINE if finding.baselined else ""


def with_help(finding: Finding) -> str:
    """The message and, on a line of its own, the help."""
    said = finding.message or finding.name
    return f"{said}\nHelp: {finding.help}" if finding.help else said


def visible_with_help(finding: Finding) -> str:
    """The same, made safe to print."""
    said = [finding.message or finding.name, f"help: {finding.help}" if finding.help else ""]
    return "\n".join(visible(line) for line in said if line)


def is_fixable(finding: Finding, *, unsafe: bool = False) -> bool:
    """Whether `--fix` fixes it, or would with `--unsafe-fixes`."""
    active = finding.suppressed is None and not finding.baselined
    return active and finding.fix is not None and (finding.fix.safe or unsafe)


def fix_title(finding: Finding) -> str:
    """What the fix does, and that it is unsafe if it is; empty without a fix."""
    if finding.fix is None:
        return ""
    return finding.fix.title if finding.fix.safe else f"{finding.fix.title} (unsafe)"


def result(report: Report) -> str:
    """How many findings of each severity in how many files, and how many are not shown; one sentence."""
    active = list(report.active)
    counts = [
        counted(report.count(severity), severity.value) for severity in reversed(Severity) if report.count(severity)
    ]
    fixable = sum(is_fixable(finding) for finding in active)
    unsafe = sum(is_fixable(finding, unsafe=True) for finding in active) - fixable
    asides = [
        f"{number} {what}"
        for number, what in (
            (fixable, "fixable with --fix"),
            (unsafe, "more with --unsafe-fixes" if fixable else "fixable with --fix --unsafe-fixes"),
            (report.suppressed, "suppressed"),
            (report.baselined, IN_BASELINE),
        )
        if number
    ]
    if report.unjudged:
        asides.append(counted(report.unjudged, "file not judged", "files not judged"))
    aside = f" ({', '.join(asides)})" if asides else ""
    files = report.files
    if counts:
        affected = len({finding.path for finding in active})
        return f"Found {joined(counts)} in {affected} of {_files(report, at_least=affected)}{aside}."
    if report.crashed:
        return f"Found nothing, and not everything was checked{aside}."
    if not files.discovered:
        return f"Found no YAML files{aside}."
    is_judged = files.recognised > report.unjudged or report.suppressed or report.baselined
    what = "nothing found" if is_judged else "nothing to judge"
    return f"Checked {_files(report)}: {what}{aside}."


def _files(report: Report, at_least: int = 0) -> str:
    """The files of the run, and how many of them are those of a program where that is not all."""
    count, ours = max(report.files.discovered, at_least), report.files.recognised
    if ours >= count:
        return counted(count, "file")
    if count == 1:
        return "1 file, which is no training file" if not at_least else "1 file"
    of_them = counted(ours, "of them a training file", "of them training files") if ours else "none a training file"
    return f"{count} files, {of_them}"


def hints(report: Report) -> Iterator[str]:
    """What to do where no file was recognised."""
    if report.files.recognised or not report.files.discovered or report.crashed or any(report.active):
        return
    if report.near:
        named = [f"{near.path} ({joined(near.programs, 'or')})" for near in report.near[:_NAMED]]
        left = len(report.near) - len(named)
        more = [f"{left} more"] if left else []
        yield f"Almost recognised: {joined([*named, *more])}."
        yield "trainlint check --show-files says what is missing in them."
    elif report.left_alone:
        yield "trainlint check --show-files says why what may be training files is not checked."
    else:
        yield "No file has a word of a program that trainlint knows; its README says how files are recognised."


def joined(words: Sequence[str], last: str = "and") -> str:
    """Words as a list: `a, b and c`."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)
