"""trainlint's own findings: files that could not be checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainlint.findings import Finding, Severity, Span
from trainlint.repository.files import Trouble
from trainlint.rule import rule
from trainlint.suppressions import Suppression


@dataclass(frozen=True)
class BrokenFile:
    """A file that holds the marker of a known program and could not be read to its end."""

    path: str
    trouble: Trouble
    end_column: int
    templated: bool
    """Something fills the file in before a program reads it."""

    def finding(self, message: str, help: str, severity: Severity | None = None) -> Finding:
        """A finding at the place where reading stopped."""
        at = self.trouble
        span = Span(self.path, at.line, at.column, at.line, max(self.end_column, at.column))
        return Finding(message, span, at.document, "", "", help=help, severity=severity)


@rule("TL001", "unparsable-file")
def unparsable_file(file: BrokenFile) -> Iterator[Finding]:
    """A file that is meant for a known program is no YAML, or no text.

    The program could not read it either: `kubectl apply` stops at the same place. The documents before that place are
    checked, those after it are not. Where the file holds template syntax (`{{`, `{%`, `${`) it is rendered before
    anyone reads it: then this is a note that the file was not checked.

    Source: YAML 1.1 as libyaml and Go's reader take it; UTF-8 and UTF-16 are read.
    """
    if file.templated:
        yield file.finding(
            f"not checked: {file.trouble.message}", "lint the rendered manifest instead", severity=Severity.NOTE
        )
    else:
        yield file.finding(
            f"not readable as YAML: {file.trouble.message}", "mend the syntax at or just above this place"
        )


@dataclass(frozen=True)
class UnusedSuppression:
    """A suppression comment that names no rule, or the words in it that cover no finding.

    `unknown` are those of the words that are no rule's, with the rule that may be meant.
    """

    path: str
    suppression: Suppression
    words: tuple[str, ...]
    unknown: Mapping[str, str | None]

    def finding(self, message: str, help: str) -> Finding:
        """A finding at the comment."""
        at = self.suppression
        return Finding(message, Span(self.path, at.line, at.column, at.line, at.end_column), 0, "", "", help=help)


@rule("TL002", "unused-suppression", severity=Severity.NOTE)
def unused_suppression(comment: UnusedSuppression) -> Iterator[Finding]:
    """A suppression comment suppresses nothing.

    It names no rule, a rule that does not exist, or one that finds nothing on its line: the mistake was mended, or the
    comment stands on another line than the finding. Rules which the run leaves out (`--select`, `--ignore`) do not
    count. Remove the comment, or put the code of the finding into its brackets.

    Source: trainlint's own comments, `# trainlint: ignore[CODE] reason`.
    """
    if not comment.words:
        yield comment.finding("this comment names no rule and suppresses nothing", "write # trainlint: ignore[CODE]")
    for word in comment.words:
        if word not in comment.unknown:
            yield comment.finding(f"{word} finds nothing here to suppress", "remove it from the comment")
        else:
            near = comment.unknown[word]
            help = f'did you mean "{near}"?' if near else "trainlint rules lists all"
            yield comment.finding(f"no rule is called {word}", help)
