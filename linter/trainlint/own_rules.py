"""trainlint's own rules: files that cannot be checked, and suppression comments without effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainlint.findings import Finding, Fix, Severity, Span, Stage
from trainlint.records import dataclass
from trainlint.repository.files import Trouble
from trainlint.rule import rule
from trainlint.suppressions import Idle

_RENDERED = "lint the rendered file (of a chart: helm template … | trainlint check -)"


@dataclass(frozen=True)
class BrokenFile:
    """A file with the marker of a known program that could not be read to its end."""

    span: Span
    trouble: Trouble
    templated: bool
    """The file is a template, which is filled in before a program reads it."""

    def finding(self, message: str, help: str, severity: Severity | None = None) -> Finding:
        """A finding at the place where reading stopped."""
        help = self.trouble.help or help
        return Finding(message, self.span, self.trouble.document, "", "", help=help, severity=severity)


@rule("TL001", "unparsable-file", stage=Stage.LOAD, varies="note for a template, which is filled in before it is read")
def unparsable_file(file: BrokenFile) -> Iterator[Finding]:
    """A file for a known program is not valid YAML, or not text.

    The program cannot read it either: `kubectl apply` stops at the same place. The documents before that place are
    checked, those after it are not. A file with template syntax (`{{`, `{%`, `${`) is rendered before anyone reads it:
    then this is a note that the file was not checked.

    Source: YAML 1.1 as libyaml and Go's reader take it; UTF-8 and UTF-16 are read.
    """
    trouble = file.trouble
    if file.templated:
        yield file.finding(f"the file is a template and is not checked: {trouble.message}", _RENDERED, Severity.NOTE)
    else:
        yield file.finding(f"the file is not valid YAML: {trouble.message}", "fix the syntax here or just above")


@dataclass(frozen=True)
class Excess:
    """A place at which a file goes beyond the budget, and what it has too much of."""

    span: Span
    document: int
    message: str
    help: str


@rule("TL003", "beyond-budget", stage=Stage.LOAD, severity=Severity.NOTE)
def beyond_budget(excess: Excess) -> Iterator[Finding]:
    """A file is so large, or so deeply nested, that it is checked only up to this place.

    No file may take the check from the others, so each has a budget. It is counted in steps and not in seconds, and is
    the same on every machine. A file is checked up to 10 MB, 500,000 lines and 250,000 keys and values; a document up
    to 50,000 of them, with its aliases written out, and 100 levels; a value up to 1,000,000 characters, a key up to
    1,000, a number up to 250 digits. Of one rule 500 findings are shown for each object or config, and of a file 2,000
    suppression comments are read.

    The documents before the place are checked. What the program makes of the file is not known.

    Split the file. If nobody trains with it, exclude it in the settings.

    Source: trainlint's own bounds.
    """
    yield Finding(excess.message, excess.span, excess.document, "", "", help=excess.help)


@dataclass(frozen=True)
class Fault:
    """An exception in trainlint itself: the document that it was looking at, what it did, and where it failed."""

    span: Span
    document: int
    doing: str
    error: str


@rule("TL004", "internal-error", stage=Stage.RUN)
def internal_error(fault: Fault) -> Iterator[Finding]:
    """trainlint itself failed on this file, and did not check all of it.

    This is a mistake in trainlint, and the exit code is 2. All other files, and all other rules for this file, are
    checked as usual.

    Please report it with the line that this finding shows, and the version (`trainlint --version`): neither has
    anything of the file's contents. A file with which it happens helps most.

    Source: trainlint itself.
    """
    message = f"internal error in {fault.doing}: {fault.error}"
    help = "report this line and the version of trainlint"
    yield Finding(message, fault.span, fault.document, "", "", help=help)


@dataclass(frozen=True)
class UnusedSuppression:
    """A suppression comment that is not what it looks like, or words in it that suppress nothing.

    `words` are those that count in this run. `unknown` are those that name no rule, each with the rule that may be
    meant; `prefixes` are those of them with which codes begin. `fix` takes the others out of the comment.
    """

    path: str
    idle: Idle
    words: tuple[str, ...]
    unknown: Mapping[str, str | None]
    fix: Fix | None = None
    prefixes: tuple[str, ...] = ()

    def finding(self, message: str, help: str, fix: Fix | None = None) -> Finding:
        """A finding at the comment."""
        at = self.idle.suppression
        span = Span(self.path, at.line, at.column, at.line, at.end_column)
        return Finding(message, span, 0, "", "", help=help, fix=fix)


@rule("TL002", "unused-suppression", stage=Stage.RUN, severity=Severity.NOTE)
def unused_suppression(comment: UnusedSuppression) -> Iterator[Finding]:
    """A suppression comment suppresses nothing, or is not what it looks like.

    It names no rule, a rule that does not exist, or one without a finding where it counts: the mistake was fixed, or
    the comment is elsewhere than the finding. Rules that the run leaves out for the file (options, settings) do not
    count. An `ignore-start` wants an `ignore-end`, an `ignore-file` a place before the first line with content, and any
    of them a reason where the setting `require-reason` says so.

    Remove the comment, or put the code of the finding into its brackets. `--fix` takes out what suppresses nothing.

    Source: trainlint's own comments, `# trainlint: ignore[CODE] reason`.
    """
    if comment.idle.problem:
        yield comment.finding(comment.idle.problem, comment.idle.help, comment.fix)
    elif not comment.words:
        yield comment.finding("the comment names no rule and suppresses nothing", "write # trainlint: ignore[CODE]")
    for word in comment.words:
        if word not in comment.unknown:
            message = f"there is no finding of {word} here to suppress"
            yield comment.finding(message, "remove it from the comment", comment.fix)
        elif word in comment.prefixes:
            yield comment.finding(f"{word} is no rule, but the beginning of several", "name each rule in the comment")
        else:
            near = comment.unknown[word]
            help = f'did you mean "{near}"?' if near else "write a code or name that `trainlint rules` lists"
            yield comment.finding(f"unknown rule {word}", help)
