"""Reads the command line; what a hook runs is also read by __main__.py, without click."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from trainlint import __version__
from trainlint.checking import Options, guarded, run_check, show, stop
from trainlint.completion import SHELLS, command_words
from trainlint.findings import Severity, Stage
from trainlint.progress import terminal_height
from trainlint.reports import FOR_TERMINALS, FORMATS, STATISTICS
from trainlint.settings import RUNTIMES, Overrides, SettingsError
from trainlint.targets import Target, TargetError, unknown_program

if TYPE_CHECKING:
    from trainlint.output import Output

Command = TypeVar("Command", bound=Callable[..., Any])

_STAGES = [stage.value for stage in Stage]
_SEVERITIES = [severity.value for severity in Severity]
_RUNTIMES_HELP = "A runtime that is not in the repository is a note (open, the default) or an error (closed)."


_ON_BASELINES = {"--write-baseline", "--update-baseline"}
_WRITING = ("--write-baseline", "--update-baseline", "--add-ignores", "--fix", "--fix-only", "--diff")
_EXCLUDING = {
    "--config": ("--isolated",),
    "--quiet": ("--verbose",),
    "--no-baseline": ("--baseline", "--write-baseline", "--update-baseline"),
    "--write-baseline": ("--update-baseline", "--fix-only", "--diff", "--output", "--statistics"),
    "--update-baseline": ("--fix-only", "--diff"),
    "--add-ignores": (*_WRITING[:2], *_WRITING[3:], "--output", "--statistics"),
    "--fix-only": ("--output", "--statistics"),
    "--diff": ("--output", "--statistics"),
    "--show-files": ("--show-settings", *_WRITING, "--output", "--statistics"),
    "--show-settings": (*_WRITING, "--output", "--statistics"),
}
"""By option: those that cannot be used beside it, because one would do nothing or undo the other."""


class _DefaultsToCheck(click.Group):
    """`trainlint` and `trainlint PATH` mean `trainlint check`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {"-h", "--help", "--version"}
        if not args and ctx.resilient_parsing:
            # A shell completes the first word.
            return super().parse_args(ctx, args)
        if not args or (args[0] not in own and args[0] not in self.commands):
            args = ["check", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """What the first word may be: a command, or an option or path of `check`."""
        command = self.commands["check"]
        # What lets bash complete a path makes it forget what was before.
        return [*command_words(command, ctx, incomplete), *super().shell_complete(ctx, incomplete)]

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the options of the group."""
        with _plain_errors():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an unexpected exception is exit 2, never 1, which means findings."""
        with guarded(click.ClickException, click.exceptions.Exit, click.Abort), _plain_errors():
            return super().invoke(ctx)


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


def _complete_rules(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from trainlint.completion import rules

    return rules(incomplete)


def _complete_targets(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from trainlint.completion import targets

    return targets(incomplete)


def _complete_programs(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    from trainlint.catalogue import known_programs

    return [name for name in known_programs() if name.startswith(incomplete)]


def _words(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.strip() for value in values for word in value.split(",") if word.strip())


def _selectors(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    from trainlint.catalogue import selector_problem

    words = _words(ctx, param, values)
    if values and not words and param.name == "select":
        raise click.BadParameter("no rule is named; without the option all are used.")
    for word in words:
        if problem := selector_problem(word):
            raise click.BadParameter(problem)
    return words


def _rules_option(name: str, help: str) -> Callable[[Command], Command]:
    """An option that names rules."""
    return click.option(
        name, multiple=True, callback=_selectors, metavar="RULES", shell_complete=_complete_rules, help=help
    )


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


def _per_file(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """`PATTERN:RULE[,RULE…]`, of which several may follow each other after commas."""
    found: dict[str, list[str]] = {}
    pattern = ""
    for word in _words(ctx, param, values):
        before, colon, rule = word.rpartition(":")
        pattern = before if colon else pattern
        if not pattern.removeprefix("!"):
            raise click.BadParameter(
                f"{word!r} is not a pattern with a rule: write PATTERN:RULE, such as legacy/**:FS003"
            )
        found.setdefault(pattern, []).extend(_selectors(ctx, param, (rule,)))
    _patterns(ctx, param, tuple(pattern.removeprefix("!") for pattern in found))
    return {pattern: tuple(rules) for pattern, rules in found.items()}


def _targets(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, Target]:
    from trainlint.catalogue import parse_target

    targets: dict[str, Target] = {}
    for value in values:
        try:
            for program, target in parse_target(value).items():
                before = targets[program].versions if program in targets else ()
                targets[program] = target._replace(versions=tuple(dict.fromkeys([*before, *target.versions])))
        except TargetError as error:
            raise click.BadParameter(str(error)) from None
    return targets


def _shard(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    number, slash, count = value.partition("/")
    if not (slash and number.isascii() and number.isdigit() and count.isascii() and count.isdigit()):
        raise click.BadParameter(f"{value!r} is not like 2/4.")
    if len(value) > 12 or not 1 <= int(number) <= int(count):
        raise click.BadParameter("the first number must be between 1 and the second.")
    return int(number), int(count)


def _severity(_: click.Context, __: click.Parameter, value: str | None) -> Severity | None:
    return None if value is None else Severity(value)


def _stages(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[Stage, ...]:
    return tuple(Stage(value) for value in values)


def _stage_option(help: str) -> Callable[[Command], Command]:
    """An option that names stages."""
    return click.option("--stage", "stages", multiple=True, type=click.Choice(_STAGES), callback=_stages, help=help)


def _outputs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[Output, ...]:
    if not values:
        return ()
    from trainlint.output import Output, OutputError

    try:
        return tuple(Output.of(value) for value in values)
    except OutputError as error:
        raise click.BadParameter(str(error)) from None


@main.command(short_help="Check files and folders; without a command, too.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--format", "format_", type=click.Choice(FORMATS), help="Format of the report (default: text).")
@click.option(
    "--output",
    "outputs",
    multiple=True,
    callback=_outputs,
    metavar="[FORMAT=]FILE",
    help="Write the report to this file; repeatable, each time with a format of its own.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    callback=_targets,
    metavar="PROGRAM=VERSION",
    shell_complete=_complete_targets,
    help="The release of a program that the files are for.",
)
@_rules_option("--select", "Use only these rules.")
@_rules_option("--ignore", "Do not use these rules.")
@_rules_option("--extend-select", "Use these rules, too.")
@_rules_option("--extend-ignore", "Do not use these rules either.")
@click.option(
    "--per-file-ignores",
    multiple=True,
    callback=_per_file,
    metavar="PATTERN:RULES",
    help="Do not use these rules on these files, instead of what the settings say.",
)
@click.option(
    "--extend-per-file-ignores",
    multiple=True,
    callback=_per_file,
    metavar="PATTERN:RULES",
    help="Do not use these rules on these files, beside what the settings say.",
)
@_stage_option("Report only what shows at this stage of a job.")
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
@click.option("--no-baseline", is_flag=True, help="Count the findings of the baseline in the settings, too.")
@click.option("--write-baseline", is_flag=True, help="Write the findings to the baseline file and exit 0.")
@click.option("--update-baseline", is_flag=True, help="Drop from the baseline file what is gone.")
@click.option("--add-ignores", is_flag=True, help="Write comments that suppress what is found, and exit 0.")
@click.option("--reason", metavar="TEXT", help="The reason in the comments of --add-ignores.")
@click.option("--fix", is_flag=True, help="Fix files in place where that is safe.")
@click.option("--unsafe-fixes", is_flag=True, help="Also use fixes that change what runs, or that are a guess.")
@click.option("--fix-only", is_flag=True, help="Fix files, report nothing, and exit 0.")
@click.option("--diff", is_flag=True, help="Change nothing: show what --fix would, and exit 1 if there is something.")
@click.option(
    "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes for many files (default: one for each core)."
)
@click.option(
    "--shard", callback=_shard, metavar="I/N", help="Check only part I of N, which the paths of the files tell."
)
@click.option("--no-cache", is_flag=True, help="Open every file, and keep no index of what is in them.")
@click.option("--show-files", is_flag=True, help="Show which program owns each file, and its release.")
@click.option("--show-settings", is_flag=True, help="Show the settings of each path, and where they come from.")
@click.option("--show-suppressed", is_flag=True, help="Also report suppressed findings.")
@click.option("--show-values", is_flag=True, help="Do not mask values that look like secrets.")
@click.option("--statistics", is_flag=True, help="Show how often each rule was broken, instead of the findings.")
@click.option("-q", "--quiet", is_flag=True, help="Show the findings and nothing else.")
@click.option("-v", "--verbose", is_flag=True, help="Also tell what is done with each file, and why.")
@click.option("--timings", is_flag=True, help="Also tell where the time goes.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colour the text.")
def check(
    paths: tuple[Path, ...],
    format_: str | None,
    outputs: tuple[Output, ...],
    targets: dict[str, Target],
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    extend_select: tuple[str, ...],
    extend_ignore: tuple[str, ...],
    per_file_ignores: dict[str, tuple[str, ...]],
    extend_per_file_ignores: dict[str, tuple[str, ...]],
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
    no_baseline: bool,
    write_baseline: bool,
    update_baseline: bool,
    add_ignores: bool,
    reason: str | None,
    fix: bool,
    unsafe_fixes: bool,
    fix_only: bool,
    diff: bool,
    jobs: int | None,
    shard: tuple[int, int] | None,
    no_cache: bool,
    show_files: bool,
    show_settings: bool,
    show_suppressed: bool,
    show_values: bool,
    statistics: bool,
    quiet: bool,
    verbose: bool,
    timings: bool,
    color: str,
) -> None:
    """Check files and folders (default: the current folder); - reads standard input."""
    _check_together(click.get_current_context(), format_)
    if stdin_filename is not None and not paths:
        paths = (Path("-"),)
    elif stdin_filename is not None and Path("-") not in paths:
        raise click.UsageError("--stdin-filename names what - reads: write - as the path.")
    overrides = Overrides(
        select=select,
        ignore=ignore,
        extend_ignore=extend_ignore,
        extend_select=extend_select,
        per_file_ignores=per_file_ignores,
        extend_per_file_ignores=extend_per_file_ignores,
        stages=stages,
        exclude=exclude,
        targets=targets,
        runtimes=runtimes,
        fail_on=fail_on,
        format=format_,
        config=config,
        isolated=isolated,
        force_exclude=force_exclude,
        cache=not no_cache,
        jobs=1 if timings else jobs or 0,
        shard=shard,
        baseline=baseline,
        no_baseline=no_baseline,
    )
    run_check(
        Options(
            paths=paths,
            overrides=overrides,
            outputs=outputs,
            exit_zero=exit_zero,
            stdin_filename=stdin_filename,
            write_baseline=write_baseline,
            update_baseline=update_baseline,
            add_ignores=add_ignores,
            reason=reason or "",
            fix=fix,
            unsafe_fixes=unsafe_fixes,
            fix_only=fix_only,
            diff=diff,
            show_files=show_files,
            show_settings=show_settings,
            show_suppressed=show_suppressed,
            show_values=show_values,
            statistics=statistics,
            quiet=quiet,
            verbose=verbose,
            timings=timings,
            color=color,
        )
    )


def _check_together(ctx: click.Context, format_: str | None) -> None:
    """Raises UsageError for options that need others or exclude each other: none is passed over in silence."""
    source = click.core.ParameterSource.COMMANDLINE
    options = (one for one in ctx.command.params if one.name and ctx.get_parameter_source(one.name) is source)
    given = {max(one.opts, key=len) for one in options}
    for option, others in _EXCLUDING.items():
        for other in others:
            if {option, other} <= given:
                raise click.UsageError(f"{option} and {other} exclude each other.")
    if "--shard" in given and given & _ON_BASELINES:
        raise click.UsageError("A baseline is of all findings, and --shard finds a part of them.")
    if "--reason" in given and "--add-ignores" not in given:
        raise click.UsageError("--reason needs --add-ignores.")
    if "--statistics" in given and (
        format_ not in (None, *STATISTICS) or any(output.format for output in ctx.params["outputs"])
    ):
        raise click.UsageError(f"--statistics are shown as {' or '.join(STATISTICS)}.")
    for option in ("--show-files", "--show-settings"):
        if option in given and format_ not in (None, *FOR_TERMINALS, "json", "jsonl"):
            raise click.UsageError(f"{option} is shown as text or json.")


@main.command("settings-schema")
def settings_schema() -> None:
    """Print the JSON Schema of the settings."""
    import json

    from trainlint.catalogue import VOCABULARY
    from trainlint.settings.schema import schema

    show(json.dumps(schema(VOCABULARY), indent=1) + "\n")


@main.command("rules")
@click.option(
    "--format", "format_", type=click.Choice(["text", "json", "markdown"]), default="text", help="Output format."
)
@click.option(
    "--program",
    "programs",
    multiple=True,
    metavar="PROGRAM",
    shell_complete=_complete_programs,
    help="Only those of this program.",
)
@_stage_option("Only those that show at this stage of a job.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    callback=_targets,
    metavar="PROGRAM=VERSION",
    shell_complete=_complete_targets,
    help="Only those that may find something in files for this release.",
)
def list_rules(format_: str, programs: tuple[str, ...], stages: tuple[Stage, ...], targets: dict[str, Target]) -> None:
    """List the rules."""
    from trainlint import rule_list
    from trainlint.catalogue import all_rules, holds_for, known_programs, programs_of_rule

    if unknown := [name for name in programs if name not in known_programs()]:
        stop(unknown_program(unknown[0], known_programs()))
    rules = [
        rule
        for rule in all_rules()
        if (not programs or set(programs) & set(programs_of_rule(rule)))
        and (not stages or rule.stage in stages)
        and (
            not targets
            or any(holds_for(rule, name, version) for name, one in targets.items() for version in one.versions)
        )
    ]
    render = {"text": rule_list.as_text, "json": rule_list.as_json, "markdown": rule_list.as_markdown}[format_]
    show(render(rules))


@main.command(short_help="Explain a rule, or list those of a prefix.")
@click.argument("rule", shell_complete=_complete_rules)
@click.option(
    "--format", "format_", type=click.Choice(["text", "json", "markdown"]), default="text", help="Output format."
)
def explain(rule: str, format_: str) -> None:
    """Explain a rule, by its code or name, or list those whose codes begin so."""
    from trainlint import rule_list
    from trainlint.catalogue import all_rules, find_rule, nearest_rule
    from trainlint.output import Screen

    found = find_rule(rule)
    listed = [] if found else [one for one in all_rules() if rule and one.code.startswith(rule.upper())]
    if found is None and not listed:
        near = nearest_rule(rule)
        stop(f"unknown rule {rule!r}" + (f', did you mean "{near}"?' if near else ""))
    if format_ == "json":
        show(rule_list.as_json([found] if found else listed, explained=True))
        return
    if format_ == "markdown":
        show(rule_list.page_of(found) if found else rule_list.as_markdown(listed))
        return
    screen = Screen.of("auto")
    told = (
        rule_list.as_text(listed)
        if found is None
        else rule_list.explained(found, color=screen.color, width=screen.width)
    )
    if screen.width is not None and told.count("\n") >= terminal_height():
        click.echo_via_pager(told, color=screen.color)
    else:
        show(told)


@main.command(short_help="Complete options, rules and targets in a shell.")
@click.argument("shell", type=click.Choice(list(SHELLS)), required=False)
def completion(shell: str | None) -> None:
    """Print the script that completes options, rules and targets in a shell; without SHELL, how to install it."""
    from trainlint.completion import installation, script

    show(installation() if shell is None else script(main, shell))


@main.command("resolve", short_help="Show what each TrainJob starts.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@click.option(
    "--target",
    "targets",
    multiple=True,
    callback=_targets,
    metavar="PROGRAM=VERSION",
    shell_complete=_complete_targets,
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
        stop(str(error))
    encoding = sys.stdout.encoding or "utf-8"
    if format_ == "json":
        show(as_json(found, show_values=show_values))
    else:
        show(as_text(found, show_values=show_values, encoding=encoding) or "found no TrainJob\n")
