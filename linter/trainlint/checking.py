"""The check: what is done with the options, whoever has read them; options in, exit code out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from trainlint.findings import counted
from trainlint.records import NamedTuple
from trainlint.settings import Overrides, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from trainlint.baseline import Baseline, Places, Row
    from trainlint.engine import Run
    from trainlint.output import Output
    from trainlint.report import Report
    from trainlint.settings import Settings

COMMANDS = frozenset({"check", "rules", "explain", "resolve", "completion", "settings-schema"})
"""The first word of a command line; without one it is a path for `check`."""
_GONE = (("is", "it"), ("are", "them"))
_ROUNDS = 25
"""Fixes that overlap are applied one after another, in so many rounds."""


class Options(NamedTuple):
    """The options of `trainlint check`; settings have a say on those in `overrides`, too."""

    paths: tuple[Path, ...]
    overrides: Overrides
    outputs: tuple[Output, ...] = ()
    exit_zero: bool = False
    stdin_filename: Path | None = None
    write_baseline: bool = False
    update_baseline: bool = False
    add_ignores: bool = False
    reason: str = ""
    show_settings: bool = False
    fix: bool = False
    unsafe_fixes: bool = False
    fix_only: bool = False
    diff: bool = False
    show_files: bool = False
    show_suppressed: bool = False
    show_values: bool = False
    statistics: bool = False
    quiet: bool = False
    verbose: bool = False
    timings: bool = False
    color: str = "auto"


@contextmanager
def guarded(*passed: type[Exception]) -> Iterator[None]:
    """An unexpected exception is exit 2, never 1, which means findings; those that are `passed` are raised."""
    try:
        yield
    except passed:
        raise
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Nobody reads on. Python would say so once more when it writes what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        from trainlint.faults import fault, is_debugged

        if is_debugged():
            raise
        if isinstance(error, OSError):
            stop(f"{error.filename or 'the current folder'}: {error.strerror}")
        stop(fault(error))


def run_check(options: Options) -> None:
    """Check files and folders, and print the report."""
    from trainlint.engine import Run
    from trainlint.reports import without_secrets
    from trainlint.repository.bounds import PathError
    from trainlint.repository.discover import MissingPath
    from trainlint.repository.files import display_path

    named = [path for path in options.paths if str(path) != "-"]
    stdin = None
    if len(named) < len(options.paths):
        if options.add_ignores:
            stop("--add-ignores cannot be used with standard input")
        if (options.fix or options.fix_only) and not options.diff:
            stop("--fix cannot be used with standard input, only --diff")
        if sys.stdin is None:
            stop("standard input is closed")
        stdin = (options.stdin_filename or Path("stdin.yaml"), sys.stdin.buffer.read())
    elif not named:
        named = [Path()]
    if options.show_files or options.show_settings:
        _show_instead(Run(options.overrides), named, options)
        return
    try:
        run = Run(options.overrides)
        settings = run.settings_for([*named, *([stdin[0]] if stdin else [])])
        if (options.write_baseline or options.update_baseline) and settings.baseline is None:
            option = "--write-baseline" if options.write_baseline else "--update-baseline"
            stop(f"{option} needs --baseline FILE, or the setting baseline")
        report = _told(run, options, named, stdin)
        if options.diff:
            sys.exit(_show_diff(report, run, options, named, stdin))
        failed: dict[str, str] = {}
        fixes = options.fix or options.fix_only
        known = _known(run, options) if fixes else []
        for _ in range(_ROUNDS if fixes else 0):
            if not _fix(_marked(report, run, known, named), failed, unsafe=options.unsafe_fixes):
                break
            run = Run(options.overrides)
            report = run.lint(named)
        for file in _baselines(run, options):
            report = _with_baseline(report, run, named, file, update=options.update_baseline)
    except MissingPath as error:
        stop(f"{error}{_command_like(named[0])}")
    except (PathError, SettingsError) as error:
        stop(str(error))
    told = report if options.show_values else without_secrets(report)
    for notice in [*(() if options.quiet else told.notices), *failed.values()]:
        _say(notice)
    if options.fix_only:
        sys.exit(2 if report.crashed or failed else 0)
    if options.add_ignores:
        _add_ignores(report, run, options)
    if options.write_baseline:
        for fault in (finding for finding in told.findings if finding.rule == "TL004"):
            _say(f"{fault.path}: {fault.message}")
        _write_baseline(report, run, named, options.overrides.baseline or Path(display_path(settings.baseline or "")))
        sys.exit(2 if report.crashed or failed else 0)
    written = _write(told, settings, options, run, named)
    if report.crashed or failed or not written:
        sys.exit(2)
    if report.fails(settings.fail_on) and not options.exit_zero:
        sys.exit(1)


def _command_like(path: Path) -> str:
    """The command that the first word of the command line, if it is no file, was perhaps meant to be."""
    from trainlint.findings import did_you_mean

    hint = "" if os.path.exists(path) else did_you_mean(str(path), COMMANDS)
    return f", and no command: {hint}" if hint else ""


def _show_instead(run: Run, paths: list[Path], options: Options) -> None:
    """Print the files or the settings, and no report."""
    from trainlint import show_files
    from trainlint.repository.bounds import PathError
    from trainlint.settings import show as show_settings

    as_json = options.overrides.format in ("json", "jsonl")
    try:
        if options.show_files:
            files = list(run.files(paths))
            told = show_files.as_json(files) if as_json else show_files.as_text(files)
        else:
            settings = list(run.show_settings(paths))
            told = show_settings.as_json(settings) if as_json else show_settings.as_text(settings)
    except (PathError, SettingsError) as error:
        stop(str(error))
    show(told)
    for refusal in run.refused.values():
        _say(f"{refusal}; nothing there is shown")
    if run.refused:
        sys.exit(2)


def _write_baseline(report: Report, run: Run, named: Sequence[Path], file: Path) -> None:
    """Write the findings; what the file has of other paths and rules than those of this run stays."""
    from trainlint import baseline
    from trainlint.repository import git

    places = baseline.Places(run.homes, named)
    try:
        left = baseline.apply(report, baseline.read(file), places.exists).left if file.exists() else ()
    except SettingsError:
        # It is no baseline, perhaps since two branches were merged; whether it may be written is asked below.
        left = ()
    # What the settings turn off has no row, unlike what the options of this one run leave out.
    kept = [row for row in left if report.crashed or not _is_looked_at(row, run, places, as_set=False)]
    count = _written(file, (*baseline.rows_of(report), *kept))
    beside = f", {len(kept)} of them of what this run did not look at" if kept else ""
    _say(f"{file} holds {counted(count, 'finding')}{beside}")
    if git.ignores(file.absolute()):
        _say(f"{file} is ignored by git: others have it only after git add --force {file}")


def _is_looked_at(row: Row, run: Run, places: Places, *, as_set: bool = True) -> bool:
    """The run would have found what a row of a baseline holds, or its options alone would have let it."""
    covered = places.covered(row.path)
    return covered is not None and run.looks_for(covered, row.rule, as_set=as_set)


def _written(file: Path, rows: Iterable[Row]) -> int:
    from trainlint import baseline

    try:
        return baseline.write(file, rows)
    except OSError as error:
        stop(f"{file}: cannot be written: {error.strerror}")
    except SettingsError as error:
        stop(str(error))


def _baselines(run: Run, options: Options) -> Sequence[Path]:
    """The baselines whose findings do not count."""
    return () if options.overrides.no_baseline or options.write_baseline else run.baselines


def _known(run: Run, options: Options) -> list[Baseline]:
    """What these baselines hold, for all rounds of fixes."""
    from trainlint import baseline

    return [baseline.read(file) for file in _baselines(run, options)]


def _marked(report: Report, run: Run, known: Sequence[Baseline], named: Sequence[Path]) -> Report:
    """The report with the known findings marked: they are not fixed either."""
    from trainlint import baseline

    return baseline.marked(report, known, baseline.Places(run.homes, named))


def _with_baseline(report: Report, run: Run, named: Sequence[Path], file: Path, *, update: bool) -> Report:
    """The report with the known findings marked; a notice counts those that are gone, unless they are dropped."""
    from collections import Counter

    from trainlint import baseline
    from trainlint.records import replace

    places = baseline.Places(run.homes, named)
    report, found, left = baseline.apply(report, baseline.read(file), places.exists)
    gone = Counter(row for row in left if not report.crashed and _is_looked_at(row, run, places))
    if update and not report.crashed:
        count = _written(file, (*found, *(row for row in left if row not in gone)))
        _say(f"{file} holds {counted(count, 'finding')}, {gone.total()} dropped")
    elif gone:
        one, several = (f"of {file} {verb} gone: --update-baseline drops {them}" for verb, them in _GONE)
        notice = counted(gone.total(), f"finding {one}", f"findings {several}")
        report = replace(report, notices=(*report.notices, notice))
    return report


def _add_ignores(report: Report, run: Run, options: Options) -> NoReturn:
    from trainlint.add_ignores import add_ignores, wanted

    reason = " ".join(options.reason.split())
    for path in wanted(report):
        if not reason and run.settings_for([Path(path)]).require_reason:
            stop(f"{path}: its settings require a reason: write --reason TEXT")
    failed: list[OSError] = []
    added = add_ignores(report, reason, failed.append)
    for notice in added.notices:
        _say(notice)
    for error in failed:
        _say(f"{error.filename}: cannot be changed: {error.strerror}")
    _say(f"added {counted(added.comments, 'comment')} in {counted(added.files, 'file')}")
    sys.exit(2 if failed or report.crashed else 0)


def _show_diff(report: Report, run: Run, options: Options, paths: list[Path], stdin: tuple[Path, bytes] | None) -> int:
    """Print what fixes would change, in all rounds, as one diff; returns the exit code."""
    from trainlint import fixes
    from trainlint.engine import Run
    from trainlint.reading.text import MASK
    from trainlint.reports.diff import Rounds

    rounds: dict[str, Rounds] = {}
    contents: dict[str, bytes] = {}
    count = 0
    known = _known(run, options)
    now = _marked(report, run, known, paths)
    for _ in range(_ROUNDS):
        changed = fixes.mended(now, unsafe=options.unsafe_fixes)
        if not changed:
            break
        for file in changed:
            count += file.fixed
            rounds.setdefault(file.path, Rounds(file.path, file.before)).add(file)
            contents[os.path.abspath(file.path)] = file.data
            if stdin is not None and os.path.abspath(stdin[0]) == os.path.abspath(file.path):
                stdin = stdin[0], file.data
        run = Run(options.overrides, contents)
        now = _marked(run.lint(paths, stdin), run, known, paths)
    diffs = [one.diff(show_values=options.show_values) for _, one in sorted(rounds.items())]
    told = "".join(diff.text for diff in diffs)
    show(told)
    if any(diff.escaped for diff in diffs):
        _say("what would steer a terminal or a CI system is escaped: the diff cannot be applied")
    if MASK in told and not options.show_values:
        _say("what looks like a secret is masked: the diff can be applied with --show-values")
    # What is left after the last round.
    hidden = 0 if options.unsafe_fixes else sum(fixes.applicable(one, unsafe=True) is not None for one in now.active)
    more = f", and {hidden} more with --unsafe-fixes" if hidden else ""
    _say(f"would fix {counted(count, 'finding')}{more}")
    if report.crashed:
        return 2
    return 1 if rounds and not options.exit_zero else 0


def _fix(report: Report, failed: dict[str, str], *, unsafe: bool) -> int:
    """Fix what can be fixed at once; the files that cannot be written are told in `failed`."""
    from trainlint import fixes

    def tell(error: OSError) -> None:
        failed[str(error.filename)] = f"{error.filename}: cannot be changed: {error.strerror}"

    count = fixes.apply(report, tell, unsafe=unsafe)
    if count:
        _say(f"fixed {counted(count, 'finding')}")
    return count


def _told(run: Run, options: Options, paths: list[Path], stdin: tuple[Path, bytes] | None) -> Report:
    """The report; on standard error what is asked for besides, and on a terminal how far a long run is."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not (options.verbose or options.timings or terminal):
        return run.lint(paths, stdin)
    from trainlint.progress import Progress

    progress = Progress(shown=terminal and not options.quiet)
    run.progress = progress
    if options.verbose:
        run.tell = progress.above(lambda path, what: _say(f"{path}: {what}"))
    try:
        if not options.timings:
            return run.lint(paths, stdin)
        from trainlint.timings import Timings

        timings = Timings(progress)
        report = timings.of(lambda: run.lint(paths, stdin))
    finally:
        run.progress = run.tell = None
        progress.clear()
    for line in timings.lines():
        _say(line)
    return report


def _write(report: Report, settings: Settings, options: Options, run: Run, paths: list[Path]) -> bool:
    """Write the reports; whether all files could be written."""
    from trainlint.output import OutputError, Screen, write
    from trainlint.reports import STATISTICS, RenderOptions
    from trainlint.repository.discover import repository_root

    chosen = settings.format if not options.statistics or settings.format in STATISTICS else "text"
    rendering = RenderOptions(
        show_suppressed=options.show_suppressed,
        show_values=options.show_values,
        root=repository_root(Path.cwd()),
        fail_on=settings.fail_on,
        quiet=options.quiet,
        statistics=options.statistics,
        unsafe_fixes=options.unsafe_fixes,
    )
    if "html" in {chosen, *(output.format for output in options.outputs)}:
        from trainlint.resolve import by_document, resolve

        # After fixes the files are others than those that the run has read.
        found = resolve(paths, options.overrides, None if options.fix else run)
        jobs = by_document(found, show_values=options.show_values)
        rendering = rendering._replace(jobs=jobs)
    try:
        written = write(report, options.outputs, chosen, rendering, Screen.of(options.color))
    except OutputError as error:
        stop(str(error))
    show(written.shown)
    for failure in written.failures:
        _say(failure)
    return not written.failures


def show(text: str) -> None:
    """Write to standard output; characters that its encoding lacks are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    text = text.encode(encoding, "backslashreplace").decode(encoding)
    if os.name == "nt":
        import click

        # It knows the consoles of Windows.
        click.echo(text, nl=False, color=True)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def _say(message: str) -> None:
    """One line on standard error, whatever is in the message."""
    from trainlint.reports.escape import visible

    print(f"trainlint: {visible(message)}", file=sys.stderr, flush=True)


def stop(message: str) -> NoReturn:
    _say(message)
    sys.exit(2)
