"""trainlint's own rules: files that cannot be checked, and suppression comments without effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainlint.findings import Finding, Severity, Span, Stage
from trainlint.repository.files import Trouble
from trainlint.rule import rule
from trainlint.suppressions import Suppression


@dataclass(frozen=True)
class BrokenFile:
    """A file with the marker of a known program that could not be read to its end."""

    path: str
    trouble: Trouble
    end_column: int
    templated: bool
    """The file is a template, which is filled in before a program reads it."""

    def finding(self, message: str, help: str, severity: Severity | None = None) -> Finding:
        """A finding at the place where reading stopped."""
        at = self.trouble
        span = Span(self.path, at.line, at.column, at.line, max(self.end_column, at.column))
        return Finding(message, span, at.document, "", "", help=help, severity=severity)


@rule("TL001", "unparsable-file", stage=Stage.LOAD)
def unparsable_file(file: BrokenFile) -> Iterator[Finding]:
    """A file for a known program is not valid YAML, or not text.

    The program cannot read it either: `kubectl apply` stops at the same place. The documents before that place are
    checked, those after it are not. A file with template syntax (`{{`, `{%`, `${`) is rendered before anyone reads it:
    then this is a note that the file was not checked.

    Source: YAML 1.1 as libyaml and Go's reader take it; UTF-8 and UTF-16 are read.
    """
    trouble = file.trouble
    if file.templated:
        message, help = f"the file is not checked: {trouble.message}", trouble.help or "lint the rendered file"
        yield file.finding(message, help, severity=Severity.NOTE)
    else:
        message = f"the file is not valid YAML: {trouble.message}"
        yield file.finding(message, trouble.help or "fix the syntax here or just above")


@dataclass(frozen=True)
class UnusedSuppression:
    """A suppression comment that names no rule, or words in it that suppress nothing.

    `unknown` are the words that name no rule, each with the rule that may be meant.
    """

    path: str
    suppression: Suppression
    words: tuple[str, ...]
    unknown: Mapping[str, str | None]

    def finding(self, message: str, help: str) -> Finding:
        """A finding at the comment."""
        at = self.suppression
        return Finding(message, Span(self.path, at.line, at.column, at.line, at.end_column), 0, "", "", help=help)


@rule("TL002", "unused-suppression", stage=Stage.RUN, severity=Severity.NOTE)
def unused_suppression(comment: UnusedSuppression) -> Iterator[Finding]:
    """A suppression comment suppresses nothing.

    It names no rule, a rule that does not exist, or one without a finding on its line: the mistake was fixed, or the
    comment is on another line than the finding. Rules that the run leaves out (`--select`, `--ignore`) do not count.

    Remove the comment, or put the code of the finding into its brackets.

    Source: trainlint's own comments, `# trainlint: ignore[CODE] reason`.
    """
    if not comment.words:
        yield comment.finding("the comment names no rule and suppresses nothing", "write # trainlint: ignore[CODE]")
    for word in comment.words:
        if word not in comment.unknown:
            yield comment.finding(f"there is no finding of {word} here to suppress", "remove it from the comment")
        else:
            near = comment.unknown[word]
            help = f'did you mean "{near}"?' if near else "write a code or name that `trainlint rules` lists"
            yield comment.finding(f"unknown rule {word}", help)
