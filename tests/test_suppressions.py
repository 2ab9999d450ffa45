"""Comments that suppress findings."""

from __future__ import annotations

import pytest

from trainlint.findings import Finding, Span
from trainlint.reading.text import Text
from trainlint.suppressions import Suppressed


def finding(line: int, rule: str = "TT102", name: str = "single-node-model") -> Finding:
    return Finding("m", Span("a.yaml", line, 1, line, 2), 0, "f", "f", rule=rule, name=name)


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ("a: 1  # trainlint: ignore[TT102] known", 1, "known"),
        ("a: 1 #trainlint:ignore[single-node-model]", 1, ""),
        ("a: 1  # trainlint: ignore[TJ101, tt102]  why not ", 1, "why not"),
        ("# trainlint: ignore[TT102] above\na: 1", 2, "above"),
        ("  # trainlint: ignore[TT102] above\n  # trainlint: ignore[TT101] other\n  a: 1", 3, "above"),
        ("a: 1  # trainlint: ignore[TT101] other", 1, None),
        ("a: 1  # trainlint: ignore[TT102] not alone\nb: 1", 2, None),
        ("# trainlint: ignore[TT102]\n\na: 1", 3, None),
        ("a: x# trainlint: ignore[TT102]", 1, None),
        ("a: 1  # trainlint: ignore[]", 1, None),
        ("a: 1", 1, None),
    ],
)
def test_which_findings_a_comment_covers(content: str, line: int, reason: str | None) -> None:
    (found,) = Suppressed(Text(content)).apply([finding(line)])
    assert found.suppressed == reason


@pytest.mark.parametrize(
    ("content", "idle"),
    [
        ("a: 1  # trainlint: ignore[TT102]", []),
        ("a: 1  # trainlint: ignore[TT102, TT101]", [("TT101",)]),
        ("a: 1  # trainlint: ignore", [()]),
        ("a: 1  # trainlint: ignore[]", [()]),
        ("a: 1\nb: 1  # trainlint: ignore[TT102]", [("TT102",)]),
        ("a: 1  # trainlint: ignored", []),
    ],
)
def test_words_that_cover_nothing(content: str, idle: list[tuple[str, ...]]) -> None:
    comments = Suppressed(Text(content))
    list(comments.apply([finding(1)]))
    assert [words for _, words in comments.unused()] == idle
