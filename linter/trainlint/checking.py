"""The check: what is done with the options, whoever has read them; options in, exit code out."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from trainlint.settings import Overrides, SettingsError

if TYPE_CHECKING:
    from trainlint.engine import Run
    from trainlint.report import Report
    from trainlint.settings import Settings

_ROUNDS = 25
"""Fixes that overlap are applied one after another, in so many rounds."""


class Options(NamedTuple):
    """The options of `trainlint check`; settings have a say on those in `overrides`, too."""

    paths: tuple[Path, ...]
    overrides: Overrides
    output: Path | None = None
    exit_zero: bool = False
    stdin_filename: Path | None = None
    baseline: Path | None = None
    write_baseline: bool = False
    fix: bool = False
    unsafe_fixes: bool = False
    fix_only: bool = False
    diff: bool = False
    show_files: bool = False
    show_suppressed: bool = False
    show_values: bool = False
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

    named = [path for path in options.paths if str(path) != "-"]
    stdin = None
    if len(named) < len(options.paths):
        if (options.fix or options.fix_only) and not options.diff:
            stop("--fix cannot be used with standard input, only --diff")
        if sys.stdin is None:
            stop("standard input is closed")
        stdin = (options.stdin_filename or Path("stdin.yaml"), sys.stdin.buffer.read())
    elif not named:
        named = [Path()]
    if options.show_files:
        _show_files(Run(options.overrides), named, options.overrides.format)
        return
    try:
        run = Run(options.overrides)
        settings = run.settings_for([*named, *([stdin[0]] if stdin else [])])
        report = run.lint(named, stdin)
        if options.diff:
            sys.exit(_show_diff(report, options, named, stdin))
        failed: dict[str, str] = {}
        for _ in range(_ROUNDS if options.fix or options.fix_only else 0):
            if not _fix(report, failed, unsafe=options.unsafe_fixes):
                break
            report = Run(options.overrides).lint(named)
        if options.baseline is not None and not options.write_baseline:
            from trainlint import baseline as known

            report = known.apply(report, known.read(options.baseline))
    except (PathError, SettingsError) as error:
        stop(str(error))
    told = report if options.show_values else without_secrets(report)
    for notice in [*told.notices, *failed.values()]:
        _say(notice)
    if options.fix_only:
        sys.exit(2 if report.crashed or failed else 0)
    if options.write_baseline:
        for fault in (finding for finding in told.findings if finding.rule == "TL004"):
            _say(f"{fault.path}: {fault.message}")
        _write_baseline(report, options.baseline)
        sys.exit(2 if report.crashed or failed else 0)
    _write(told, settings, options)
    if report.crashed or failed:
        sys.exit(2)
    if report.fails(settings.fail_on) and not options.exit_zero:
        sys.exit(1)


def _show_files(run: Run, paths: list[Path], format_: str | None) -> None:
    from trainlint.repository.bounds import PathError
    from trainlint.show_files import as_json, as_text

    try:
        found = list(run.files(paths))
    except (PathError, SettingsError) as error:
        stop(str(error))
    show(as_json(found) if format_ == "json" else as_text(found))


def _write_baseline(report: Report, file: Path | None) -> None:
    from trainlint import baseline

    if file is None:
        stop("--write-baseline needs --baseline FILE")
    try:
        count = baseline.write(file, report)
    except OSError as error:
        stop(f"{file}: cannot be written: {error.strerror}")
    _say(f"{file} holds {count} finding{'' if count == 1 else 's'}")


def _show_diff(report: Report, options: Options, paths: list[Path], stdin: tuple[Path, bytes] | None) -> int:
    """Print what fixes would change, in all rounds, as one diff; returns the exit code."""
    from trainlint import fixes
    from trainlint.engine import Run
    from trainlint.reading.text import MASK
    from trainlint.reports.diff import unified

    first: dict[str, fixes.Mended] = {}
    contents: dict[str, bytes] = {}
    count = 0
    now = report
    for _ in range(_ROUNDS):
        changed = fixes.mended(now, unsafe=options.unsafe_fixes)
        if not changed:
            break
        for file in changed:
            count += file.fixed
            before = first[file.path].before if file.path in first else file.before
            first[file.path] = file._replace(before=before)
            contents[os.path.abspath(file.path)] = file.data
            if stdin is not None and os.path.abspath(stdin[0]) == os.path.abspath(file.path):
                stdin = stdin[0], file.data
        now = Run(options.overrides, contents).lint(paths, stdin)
    told = "".join(unified(file, show_values=options.show_values) for _, file in sorted(first.items()))
    show(told)
    if MASK in told and not options.show_values:
        _say("what looks like a secret is masked: the diff can be applied with --show-values")
    _say(f"would fix {count} finding{'' if count == 1 else 's'}")
    if report.crashed:
        return 2
    return 1 if first else 0


def _fix(report: Report, failed: dict[str, str], *, unsafe: bool) -> int:
    """Fix what can be fixed at once; the files that cannot be written are told in `failed`."""
    from trainlint import fixes

    def tell(error: OSError) -> None:
        failed[str(error.filename)] = f"{error.filename}: cannot be changed: {error.strerror}"

    count = fixes.apply(report, tell, unsafe=unsafe)
    if count:
        _say(f"fixed {count} finding{'' if count == 1 else 's'}")
    return count


def _write(report: Report, settings: Settings, options: Options) -> None:
    from trainlint.reports import RenderOptions, render
    from trainlint.repository.discover import repository_root

    output = options.output
    common = RenderOptions(
        show_suppressed=options.show_suppressed, show_values=options.show_values, unsafe_fixes=options.unsafe_fixes
    )
    document = common._replace(root=repository_root(Path.cwd()), fail_on=settings.fail_on)
    colored = _is_colored(options.color)
    terminal = common._replace(
        color=colored, links=colored and sys.stdout.isatty(), encoding=sys.stdout.encoding or "utf-8"
    )
    if output is None or str(output) == "-":
        show(render(settings.format, report, terminal if settings.format in ("text", "concise") else document))
        return
    try:
        output.write_text(render(settings.format, report, document), encoding="utf-8", newline="\n")
    except OSError as error:
        stop(f"{output}: cannot be written: {error.strerror}")
    show(render("text", report, terminal))


def _is_colored(choice: str) -> bool:
    if choice != "auto":
        return choice == "always"
    return not os.environ.get("NO_COLOR") and sys.stdout.isatty()


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
