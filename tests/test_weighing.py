"""What follows from an error is not reported beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from trainlint.findings import Finding, Related, Severity, Span, Stage
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


NONE: Mapping[str, tuple[str, ...]] = {}


def left(*findings: Finding, covers: tuple[str, ...] = (), follows: Mapping[str, tuple[str, ...]] = NONE) -> list[str]:
    return [finding.rule for finding in without_consequences(findings, covers, follows, {"f.yaml": TEXT})]


def test_what_shows_later_at_the_same_place() -> None:
    cause, later = said("A", "a", (1, 4, 5)), said("B", "a", (1, 4, 5), Stage.START)
    assert left(cause, later) == left(later, cause) == ["A"]
    assert left(cause, said("B", "a", (1, 4, 5))) == ["A", "B"]
    assert left(cause, said("B", "b", (2, 1, 2), Stage.START)) == ["A", "B"]
    assert left(cause, said("B", "a", (1, 4, 5), Stage.START, document=1)) == ["A", "B"]


def test_key_and_value_are_one_place_and_two_words_are_two() -> None:
    assert left(said("A", "a", (1, 1, 2)), said("B", "a", (1, 4, 5), Stage.RUN, Severity.WARNING)) == ["A"]
    assert left(said("A", "b[0]", (3, 5, 6)), said("B", "b[0]", (3, 7, 8), Stage.RUN)) == ["A", "B"]


def test_another_file_may_be_longer() -> None:
    """A JSON that the file names: what is found there is placed there."""
    key, value = (replace(said("A", "a", span), span=Span("g.json", *span[:2], span[0], span[2])) for span in FAR)
    assert left(key, replace(value, rule="B", stage=Stage.START)) == ["A", "B"]


FAR = ((9, 3, 6), (9, 8, 9))
"""A key and a value in a line that the file itself does not have."""


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


def test_a_rule_names_what_says_the_same_better() -> None:
    cause, same = said("A", "a", (1, 4, 5)), said("B", "a", (1, 4, 5))
    assert left(cause, same, follows={"B": ("A",)}) == left(same, cause, follows={"B": ("A",)}) == ["A"]
    assert left(cause, said("B", "b", (2, 1, 2)), follows={"B": ("A",)}) == ["A", "B"]
    weaker = said("A", "a", (1, 4, 5), severity=Severity.WARNING)
    assert left(weaker, same, follows={"B": ("A",)}) == ["B"]
    assert left(weaker, said("B", "a", (1, 4, 5), severity=Severity.WARNING), follows={"B": ("A",)}) == ["A"]


def test_a_rule_names_the_cause_around_it_and_at_the_other_half() -> None:
    follows = {"B": ("A",)}
    cause, inside = said("A", "b", (2, 1, 2)), said("B", "b[1]", (4, 5, 6))
    assert left(cause, inside, follows=follows) == ["A"]
    assert left(replace(cause, severity=Severity.WARNING), inside, follows=follows) == ["A", "B"]
    half = replace(said("B", "a", (1, 4, 5)), related=(Related(cause.span, "b is here"),))
    assert left(cause, half, follows=follows) == left(half, cause, follows=follows) == ["A"]
    assert left(cause, half) == ["A", "B"]
    assert left(cause, half, follows={"A": ("B",)}) == ["B"]
    elsewhere = replace(half, related=(Related(cause.span._replace(path="other.yaml"), "b is there"),))
    assert left(cause, elsewhere, follows=follows) == ["A", "B"]


def test_an_error_hides_a_warning_of_its_own_stage() -> None:
    cause = said("A", "a", (1, 4, 5))
    assert left(cause, said("B", "a", (1, 4, 5), severity=Severity.WARNING)) == ["A"]


def test_two_places_of_a_runtime_are_two_though_the_job_names_it_once() -> None:
    place = "spec.runtimeRef.name"
    one, other = said("A", place, (1, 4, 5)), said("B", place, (1, 4, 5))
    spots = [Related(Span("r.yaml", line, 1, line, 2), "here") for line in (1, 2)]
    follows = {"B": ("A",)}
    apart = [replace(finding, related=(spot,)) for finding, spot in zip((one, other), spots, strict=True)]
    assert left(*apart, follows=follows) == ["A", "B"]
    together = [replace(finding, related=(spots[0],)) for finding in (one, other)]
    assert left(*together, follows=follows) == ["A"]
