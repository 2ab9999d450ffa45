"""Options in, exit code out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from trainlint import __version__
from trainlint.findings import Severity, Stage
from trainlint.reports import FORMATS
from trainlint.settings import RUNTIMES, Overrides, SettingsError
from trainlint.targets import Target, TargetError

if TYPE_CHECKING:
    from trainlint.engine import Run
    from trainlint.report import Report
    from trainlint.settings import Settings

_STAGES = [stage.value for stage in Stage]
_SEVERITIES = [severity.value for severity in Severity]
_RUNTIMES_HELP = "A runtime that is not in the repository is a note (open, the default) or an error (closed)."


_ROUNDS = 10
"""Fixes that overlap are applied one after another, in so many rounds."""


class _DefaultsToCheck(click.Group):
    """`trainlint` and `trainlint PATH` mean `trainlint check`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"-h", "--help", "--version"}
        if not args or (args[0] not in own and args[0] not in self.commands):
            args = ["check", *args]
        return super().parse_args(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the options of the group."""
        with _plain_errors():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an unexpected exception is exit 2, never 1, which means findings."""
        try:
            with _plain_errors():
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:
            from trainlint.faults import fault, is_debugged

            if is_debugged():
                raise
            if isinstance(error, OSError):
                _stop(f"{error.filename or 'the current folder'}: {error.strerror}")
            _stop(fault(error))


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Options may hold the names of files (`trainlint *`): what click says of them is printed as one line, too."""
    try:
        yield
    except click.ClickException as error:
        from trainlint.reports.escape import visible

        error.message = visible(error.message)  # type: ignore[misc]
        raise


@click.group(cls=_DefaultsToCheck, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="trainlint %(version)s")
def main() -> None:
    """Find training manifests and trainer configs that will be refused, crash, or not do what they say."""


def _words(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def _selectors(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    from trainlint.catalogue import selector_problem

    words = _words(ctx, param, values)
    for word in words:
        if problem := selector_problem(word):
            raise click.BadParameter(problem)
    return words


def _patterns(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    words = _words(ctx, param, values)
    if not words:
        return ()
    from trainlint.repository.patterns import PatternError, Patterns

    try:
        Patterns(words)
    except PatternError as error:
        raise click.BadParameter(str(error)) from None
    return words


def _targets(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, Target]:
    from trainlint.catalogue import parse_target

    targets: dict[str, Target] = {}
    for value in values:
        try:
            for program, target in parse_target(value).items():
                before = targets[program].versions if program in targets else ()
                targets[program] = replace(target, versions=tuple(dict.fromkeys([*before, *target.versions])))
        except TargetError as error:
            raise click.BadParameter(str(error)) from None
    return targets


def _severity(_: click.Context, __: click.Parameter, value: str | None) -> Severity | None:
    return None if value is None else Severity(value)


def _stages(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[Stage, ...]:
    return tuple(Stage(value) for value in values)


@main.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Format of the report (default: text).")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Write the report to this file.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    callback=_targets,
    metavar="PROGRAM=VERSION",
    help="The release of a program that the files are for.",
)
@click.option("--select", multiple=True, callback=_selectors, metavar="RULES", help="Use only these rules.")
@click.option("--ignore", multiple=True, callback=_selectors, metavar="RULES", help="Do not use these rules.")
@click.option(
    "--stage",
    "stages",
    multiple=True,
    type=click.Choice(_STAGES),
    callback=_stages,
    help="Report only what shows at this stage of a job.",
)
@click.option("--exclude", multiple=True, callback=_patterns, metavar="PATTERNS", help="Do not check these files.")
@click.option("--force-exclude", is_flag=True, help="Exclude files even when they are named.")
@click.option("--runtimes", type=click.Choice(RUNTIMES), help=_RUNTIMES_HELP)
@click.option(
    "--fail-on",
    type=click.Choice(_SEVERITIES),
    callback=_severity,
    help="Lowest severity that makes the exit code 1 (default: error).",
)
@click.option("--exit-zero", is_flag=True, help="Exit 0 even with findings.")
@click.option("--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Use this settings file.")
@click.option("--isolated", is_flag=True, help="Ignore all settings files.")
@click.option("--stdin-filename", type=click.Path(path_type=Path), help="Name of the file that standard input has.")
@click.option(
    "--baseline", type=click.Path(path_type=Path, dir_okay=False), help="A file of known findings, which do not count."
)
@click.option("--write-baseline", is_flag=True, help="Write the findings to the baseline file and exit 0.")
@click.option("--fix", is_flag=True, help="Fix files in place where that is safe.")
@click.option("--show-files", is_flag=True, help="Show which program owns each file, and its release.")
@click.option("--show-suppressed", is_flag=True, help="Also report suppressed findings.")
@click.option("--show-values", is_flag=True, help="Do not mask values that look like secrets.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour the text.")
def check(
    paths: tuple[Path, ...],
    format_: str | None,
    output: Path | None,
    targets: dict[str, Target],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    stages: tuple[Stage, ...],
    exclude: tuple[str, ...],
    force_exclude: bool,
    runtimes: str | None,
    fail_on: Severity | None,
    exit_zero: bool,
    config: Path | None,
    isolated: bool,
    stdin_filename: Path | None,
    baseline: Path | None,
    write_baseline: bool,
    fix: bool,
    show_files: bool,
    show_suppressed: bool,
    show_values: bool,
    color: str,
) -> None:
    """Check files and folders (default: the current folder); - reads standard input."""
    from trainlint.engine import Run
    from trainlint.reports import without_secrets
    from trainlint.repository.bounds import PathError

    if isolated and config is not None:
        raise click.UsageError("--config and --isolated exclude each other.")
    overrides = Overrides(
        select=select,
        ignore=ignore,
        stages=stages,
        exclude=exclude,
        targets=targets,
        runtimes=runtimes,
        fail_on=fail_on,
        format=format_,
        config=config,
        isolated=isolated,
        force_exclude=force_exclude,
    )
    named = [path for path in paths if str(path) != "-"]
    stdin = None
    if len(named) < len(paths):
        if fix:
            _stop("--fix cannot be used with standard input")
        if sys.stdin is None:
            _stop("standard input is closed")
        stdin = (stdin_filename or Path("stdin.yaml"), sys.stdin.buffer.read())
    elif not named:
        named = [Path()]
    if show_files:
        _show_files(Run(overrides), named, format_)
        return
    try:
        run = Run(overrides)
        settings = run.settings_for([*named, *([stdin[0]] if stdin else [])])
        report = run.lint(named, stdin)
        failed: dict[str, str] = {}
        for _ in range(_ROUNDS if fix else 0):
            if not _fix(report, failed):
                break
            report = Run(overrides).lint(named)
        if baseline is not None and not write_baseline:
            from trainlint import baseline as known

            report = known.apply(report, known.read(baseline))
    except (PathError, SettingsError) as error:
        _stop(str(error))
    told = report if show_values else without_secrets(report)
    for notice in [*told.notices, *failed.values()]:
        _say(notice)
    if write_baseline:
        for fault in (finding for finding in told.findings if finding.rule == "TL004"):
            _say(f"{fault.path}: {fault.message}")
        _write_baseline(report, baseline)
        sys.exit(2 if report.crashed or failed else 0)
    _write(told, settings, output, color, show_suppressed, show_values)
    if report.crashed or failed:
        sys.exit(2)
    if report.fails(settings.fail_on) and not exit_zero:
        sys.exit(1)


def _show_files(run: Run, paths: list[Path], format_: str | None) -> None:
    from trainlint.repository.bounds import PathError
    from trainlint.show_files import as_json, as_text

    if format_ not in (None, "text", "json"):
        raise click.UsageError("--show-files is shown as text or json.")
    try:
        found = list(run.files(paths))
    except (PathError, SettingsError) as error:
        _stop(str(error))
    _print(as_json(found) if format_ == "json" else as_text(found))


def _write_baseline(report: Report, file: Path | None) -> None:
    from trainlint import baseline

    if file is None:
        _stop("--write-baseline needs --baseline FILE")
    try:
        count = baseline.write(file, report)
    except OSError as error:
        _stop(f"{file}: cannot be written: {error.strerror}")
    _say(f"{file} holds {count} finding{'' if count == 1 else 's'}")


def _fix(report: Report, failed: dict[str, str]) -> int:
    """Fix what can be fixed at once; the files that cannot be written are told in `failed`."""
    from trainlint import fixes

    def tell(error: OSError) -> None:
        failed[str(error.filename)] = f"{error.filename}: cannot be changed: {error.strerror}"

    count = fixes.apply(report, tell)
    if count:
        _say(f"fixed {count} finding{'' if count == 1 else 's'}")
    return count


def _write(
    report: Report, settings: Settings, output: Path | None, color: str, show_suppressed: bool, show_values: bool
) -> None:
    from trainlint.reports import RenderOptions, render
    from trainlint.repository.discover import repository_root

    document = RenderOptions(
        show_suppressed=show_suppressed,
        show_values=show_values,
        root=repository_root(Path.cwd()),
        fail_on=settings.fail_on,
    )
    terminal = RenderOptions(
        color=_is_colored(color),
        links=_is_colored(color) and sys.stdout.isatty(),
        encoding=sys.stdout.encoding or "utf-8",
        show_suppressed=show_suppressed,
        show_values=show_values,
    )
    if output is None or str(output) == "-":
        _print(render(settings.format, report, terminal if settings.format in ("text", "concise") else document))
        return
    try:
        output.write_text(render(settings.format, report, document), encoding="utf-8", newline="\n")
    except OSError as error:
        _stop(f"{output}: cannot be written: {error.strerror}")
    _print(render("text", report, terminal))


def _is_colored(choice: str) -> bool:
    import os

    if choice != "auto":
        return choice == "always"
    return not os.environ.get("NO_COLOR") and sys.stdout.isatty()


def _print(text: str) -> None:
    """Write to standard output; characters that its encoding lacks are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False, color=True)


def _say(message: str) -> None:
    """One line on standard error, whatever is in the message."""
    from trainlint.reports.escape import visible

    click.echo(f"trainlint: {visible(message)}", err=True)


def _stop(message: str) -> NoReturn:
    _say(message)
    sys.exit(2)


@main.command("rules")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text")
def list_rules(format_: str) -> None:
    """List every rule."""
    from trainlint.catalogue import all_rules

    rules = all_rules()
    if format_ == "json":
        import json

        rows = [
            {
                "code": r.code,
                "name": r.name,
                "severity": r.severity.value,
                "stage": r.stage.value,
                "ruleSet": r.module,
                "summary": r.summary,
            }
            for r in rules
        ]
        _print(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")
        return
    width = max(len(r.name) for r in rules)
    for r in rules:
        _print(f"{r.code}  {r.name:{width}}  {r.severity.value:7}  {r.stage.value:9}  {r.summary}\n")


@main.command()
@click.argument("rule")
def explain(rule: str) -> None:
    """Explain a rule, by its code or name."""
    from trainlint.catalogue import find_rule, nearest_rule

    found = find_rule(rule)
    if found is None:
        near = nearest_rule(rule)
        _stop(f"unknown rule {rule!r}" + (f', did you mean "{near}"?' if near else ""))
    _print(f"{found.code} {found.name} ({found.severity.value}, {found.stage.value})\n\n{found.documentation}\n")


@main.command("resolve")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    callback=_targets,
    metavar="PROGRAM=VERSION",
    help="The release of the controller.",
)
@click.option("--runtimes", type=click.Choice(RUNTIMES), help=_RUNTIMES_HELP)
@click.option("--isolated", is_flag=True, help="Ignore all settings files.")
@click.option("--show-values", is_flag=True, help="Do not mask values that look like secrets.")
def show_resolved(
    paths: tuple[Path, ...],
    format_: str,
    targets: dict[str, Target],
    runtimes: str | None,
    isolated: bool,
    show_values: bool,
) -> None:
    """Show what each TrainJob starts: pods, images, commands, environment, and the file and line of each value."""
    from trainlint.repository.bounds import PathError
    from trainlint.resolve import as_json, as_text, resolve

    overrides = Overrides(targets=targets, runtimes=runtimes, isolated=isolated)
    try:
        found = resolve(list(paths) or [Path()], overrides)
    except (PathError, SettingsError) as error:
        _stop(str(error))
    encoding = sys.stdout.encoding or "utf-8"
    told = as_json(found, show_values=show_values) if format_ == "json" else ""
    _print(told or as_text(found, show_values=show_values, encoding=encoding))
