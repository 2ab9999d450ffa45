"""Comments that suppress findings: on a line, above it, for a range, for a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint import fixes
from trainlint.engine import lint
from trainlint.findings import Finding, Span
from trainlint.reading.document import documents
from trainlint.reading.text import Text
from trainlint.suppressions import Suppressed

JOB = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    numProcPerNode: 0
"""


def finding(line: int, rule: str = "TT102", name: str = "single-node-model") -> Finding:
    return Finding("m", Span("a.yaml", line, 1, line, 2), 0, "f", "f", rule=rule, name=name)


def suppressed(content: str, *, require_reason: bool = False) -> Suppressed:
    text = Text(content)
    return Suppressed(text, documents("a.yaml", text), require_reason=require_reason)


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
        # Ranges: from the line of the start to that of the end, both included.
        ("# trainlint: ignore-start[TT102] all\na: 1\nb: 1\n# trainlint: ignore-end\nc: 1", 3, "all"),
        ("a: 1  # trainlint: ignore-start[TT102] all\nb: 1\n", 1, "all"),
        ("# trainlint: ignore-start[TT102] all\na: 1\nb: 1  # trainlint: ignore-end\nc: 1", 3, "all"),
        ("# trainlint: ignore-start[TT102] all\na: 1\n# trainlint: ignore-end\nc: 1", 4, None),
        ("# trainlint: ignore-start[TT101] all\na: 1\n# trainlint: ignore-end\n", 2, None),
        ("# trainlint: ignore-start[TT102] all\na: 1\nb: 1\n", 3, "all"),
        (
            "# trainlint: ignore-start[TT102] outer\n# trainlint: ignore-start[TT101]\na: 1\n"
            "# trainlint: ignore-end\nb: 1\n# trainlint: ignore-end\n",
            5,
            "outer",
        ),
        (
            "# trainlint: ignore-start[TT102] outer\n# trainlint: ignore-start[TT101]\na: 1\n"
            "# trainlint: ignore-end[TT102]\nb: 1\n# trainlint: ignore-end\n",
            5,
            None,
        ),
        # For the whole file: before the first line with content.
        ("# trainlint: ignore-file[TT102] old\na: 1", 2, "old"),
        ("# licence\n\n%YAML 1.1\n--- # one\n# trainlint: ignore-file[TT102] old\na: 1\nb: 1", 7, "old"),
        ("--- {a: 1}\n# trainlint: ignore-file[TT102] old\n", 1, None),
        ("a: 1\n# trainlint: ignore-file[TT102] old\n", 1, None),
        ("# trainlint: ignore-file[TT101] old\na: 1", 2, None),
        ("# trainlint: ignore-file\na: 1", 2, None),
        # What is no comment.
        ('a: "b # trainlint: ignore[TT102] text"', 1, None),
        ("a: 'b\n  # trainlint: ignore[TT102] text'", 2, None),
        ("a: |  # trainlint: ignore[TT102] header\n  x", 1, "header"),
        ("a: |\n  run # trainlint: ignore[TT102] in a script", 2, "in a script"),
    ],
)
def test_which_findings_a_comment_covers(content: str, line: int, reason: str | None) -> None:
    (found,) = suppressed(content).apply([finding(line)])
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
        ("# trainlint: ignore-file[TT102, TT101]\na: 1", [("TT101",)]),
        ("a: 1  # trainlint: ignore-start[TT102, TT101]\n# trainlint: ignore-end", [("TT101",)]),
    ],
)
def test_words_that_cover_nothing(content: str, idle: list[tuple[str, ...]]) -> None:
    comments = suppressed(content)
    list(comments.apply([finding(1)]))
    assert [one.words for one in comments.unused()] == idle


def test_the_nearest_comment_is_the_one_that_is_used() -> None:
    """A comment for the file suppresses nothing if one on the line does so already."""
    comments = suppressed("# trainlint: ignore-file[TT102] old\na: 1  # trainlint: ignore[TT102] near\n")
    assert [found.suppressed for found in comments.apply([finding(2)])] == ["near"]
    assert [(one.suppression.line, one.words) for one in comments.unused()] == [(1, ("TT102",))]


def test_a_reason_that_the_settings_require() -> None:
    content = "a: 1  # trainlint: ignore[TT102]\nb: 1  # trainlint: ignore[TT102] known\n"
    comments = suppressed(content, require_reason=True)
    assert [found.suppressed for found in comments.apply([finding(1), finding(2)])] == [None, "known"]
    assert [(one.suppression.line, one.problem) for one in comments.unused()] == [
        (1, "the comment gives no reason and suppresses nothing")
    ]


@pytest.mark.parametrize(
    ("comment", "fixed"),
    [
        ("    numNodes: 1  # trainlint: ignore[TT102] old\n", "    numNodes: 1\n"),
        ("    numNodes: 1  # keep # trainlint: ignore[TT102] old\n", "    numNodes: 1  # keep\n"),
        ("    # trainlint: ignore[TT102] old\n    numNodes: 1\n", "    numNodes: 1\n"),
        ("    # trainlint: ignore[TT102] old\r\n    numNodes: 1\r\n", "    numNodes: 1\r\n"),
        (
            "    # trainlint: ignore[TJ503, TT102, TT101] smoke\n    numProcPerNode: 0\n",
            "    # trainlint: ignore[TJ503] smoke\n    numProcPerNode: 0\n",
        ),
        (
            "    # trainlint: ignore-start[TT102] old\n    numNodes: 1\n    # trainlint: ignore-end\n",
            "    numNodes: 1\n",
        ),
        (
            "    # trainlint: ignore-start[TJ503, TT102] old\n    numProcPerNode: 0\n    # trainlint: ignore-end\n",
            "    # trainlint: ignore-start[TJ503] old\n    numProcPerNode: 0\n    # trainlint: ignore-end\n",
        ),
        ("    # trainlint: ignore-end\n    numNodes: 1\n", "    numNodes: 1\n"),
        ("    image: a  # trainlint: ignore[TT102]", "    image: a"),
        # What may be part of a value, or meant for another rule, stays.
        ("    command: [sh, -c]\n    args:\n      - |\n        run # trainlint: ignore[TT102] x\n", None),
        ("    # trainlint: ignore[TT1O2] smoke\n    numNodes: 1\n", None),
        ("    # trainlint: ignore smoke\n    numNodes: 1\n", None),
    ],
)
def test_fix_removes_what_suppresses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comment: str, fixed: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    head = JOB.replace("    numProcPerNode: 0\n", "")
    file = Path("job.yaml")
    file.write_bytes(f"{head}{comment}".encode())
    while fixes.apply(lint([file])):
        pass
    assert file.read_bytes().decode() == f"{head}{fixed or comment}"
    told = [found.message for found in lint([file]).findings if found.rule == "TL002"]
    assert bool(told) is (fixed is None)


def test_rules_that_a_run_leaves_out_for_a_file_are_not_missed(tmp_path: Path) -> None:
    """Whether by option, by the settings of a path, or by severity."""
    file = tmp_path / "job.yaml"
    file.write_text(JOB + "    image: a  # trainlint: ignore[TT102] x\n")
    for settings in (
        'ignore = ["TT"]',
        'per-file-ignores = {"job.yaml" = ["TT102"]}',
        'severity = {TT = "off"}',
        '[[overrides]]\npaths = ["job.yaml"]\nignore = ["TT1"]',
        'ignore = ["TL002"]',
        'per-file-ignores = {"*" = ["unused-suppression"]}',
    ):
        (tmp_path / "trainlint.toml").write_text(settings)
        assert [found.rule for found in lint([file]).findings] == ["TJ503"], settings
    (tmp_path / "trainlint.toml").write_text('severity = {TL002 = "error"}')
    assert [(found.rule, found.level.value) for found in lint([file]).findings][-1] == ("TL002", "error")
