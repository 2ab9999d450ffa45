"""What follows from an error is not reported beside it."""

from __future__ import annotations

from trainlint.findings import Finding, Severity, Span, Stage
from trainlint.reading.text import Text
from trainlint.weighing import without_consequences

TEXT = Text("a: 1\nb:\n  - x y\n  - z\n")


def said(
    rule: str,
    path: str,
    span: tuple[int, int, int],
    stage: Stage = Stage.LOAD,
    severity: Severity = Severity.ERROR,
    document: int = 0,
) -> Finding:
    line, start, end = span
    at = Span("f.yaml", line, start, line, end)
    return Finding("m", at, document, path, path, severity=severity, stage=stage, rule=rule)


def left(*findings: Finding, covers: tuple[str, ...] = ()) -> list[str]:
    return [finding.rule for finding in without_consequences(findings, covers, TEXT)]


def test_what_shows_later_at_the_same_place() -> None:
    cause, later = said("A", "a", (1, 4, 5)), said("B", "a", (1, 4, 5), Stage.START)
    assert left(cause, later) == left(later, cause) == ["A"]
    assert left(cause, said("B", "a", (1, 4, 5))) == ["A", "B"]
    assert left(cause, said("B", "b", (2, 1, 2), Stage.START)) == ["A", "B"]
    assert left(cause, said("B", "a", (1, 4, 5), Stage.START, document=1)) == ["A", "B"]


def test_key_and_value_are_one_place_and_two_words_are_two() -> None:
    assert left(said("A", "a", (1, 1, 2)), said("B", "a", (1, 4, 5), Stage.RUN, Severity.WARNING)) == ["A"]
    assert left(said("A", "b[0]", (3, 5, 6)), said("B", "b[0]", (3, 7, 8), Stage.RUN)) == ["A", "B"]


def test_only_errors_hide() -> None:
    assert left(said("A", "a", (1, 4, 5), severity=Severity.WARNING), said("B", "a", (1, 4, 5), Stage.RUN)) == [
        "A",
        "B",
    ]


def test_what_is_not_read_says_nothing() -> None:
    cause, below = said("A", "b", (2, 1, 2)), said("B", "b[1]", (4, 5, 6))
    assert left(cause, below) == ["A", "B"]
    assert left(cause, below, covers=("A",)) == ["A"]
    assert left(cause, said("A", "b[1]", (4, 5, 6)), covers=("A",)) == ["A", "A"]
    assert left(said("A", "b", (2, 1, 2), Stage.RUN), below, covers=("A",)) == ["A"]
