"""The report for people, to the character."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sample_report import BASELINED, EMPTY, FIXABLE, FULL, JOB, NODES, ODD, SUPPRESSED, report, span
from trainlint.findings import Finding, Fix, Related, Severity, Stage
from trainlint.reading.text import Text
from trainlint.report import FileCounts, Report
from trainlint.reports import RenderOptions, render
from trainlint.reports.escape import columns, visible
from trainlint.reports.words import annotation, result

FILES = "41 files, 3 of them training files"
NODES_BLOCK = """\
jobs/tune.yaml:6:15: error TT102 single-node-model: numNodes must be 1 for qwen2_5/1.5B
  |
4 |   trainer:
5 |     command: [tune, run]
6 |     numNodes: 2
  |               ^ Kubeflow Trainer 2.3 refuses this job (spec.trainer.numNodes)
  |
  = help: remove numNodes
"""


def in_line(content: str, column: int, length: int, terminal: int = 160) -> list[str]:
    """The lines under the header and the empty gutter: the flagged line and what stands under it."""
    found = replace(NODES, span=span("a.yaml", 1, column, length), help="", field="", program="trainlint")
    made = Report((found,), texts={"a.yaml": Text(content)})
    return render("text", made, RenderOptions(width=terminal)).splitlines()[2:-2]


def test_full_form() -> None:
    assert render("text", report(NODES)) == f"{NODES_BLOCK}\nFound 1 error in 1 of {FILES}.\n"


def test_remarks_and_footer() -> None:
    assert render("text", report(FIXABLE, SUPPRESSED, BASELINED)) == (
        f"{NODES_BLOCK.replace('TT102', 'TT102 [*]')}"
        "  = fix: remove numNodes\n"
        "  = related: runtimes/odd name.yaml:3:1 the runtime\n\n"
        f"Found 1 error in 1 of {FILES} (1 fixable with --fix, 1 suppressed, 1 in the baseline).\n"
    )


def test_unsafe_fixes_are_marked_when_they_are_asked_for() -> None:
    unsafe = replace(FIXABLE, fix=Fix("remove numNodes", (), safe=False), related=())
    told = f"{NODES_BLOCK}  = fix: remove numNodes (unsafe)\n\nFound 1 error in 1 of {FILES} "
    assert render("text", report(unsafe)) == f"{told}(1 fixable with --fix --unsafe-fixes).\n"
    marked = render("text", report(unsafe), RenderOptions(unsafe_fixes=True))
    assert marked == f"{told}(1 fixable with --fix --unsafe-fixes).\n".replace("TT102", "TT102 [*]")
    assert "[*]" not in render("concise", report(replace(FIXABLE, baselined=True)), RenderOptions(show_suppressed=True))


def test_suppressed_ones_when_asked_for() -> None:
    shown = render("text", report(SUPPRESSED, BASELINED), RenderOptions(show_suppressed=True))
    assert "          ^^^^^^^^^^ Kubeflow Trainer 2.3 refuses this job (spec.trainer.env)\n" in shown
    assert "\n  = suppressed: our own fork\n" in shown
    assert "\n  = suppressed: in the baseline\n" in shown
    assert shown.endswith(f"\nChecked {FILES}: nothing found (1 suppressed, 1 in the baseline).\n")


def test_concise() -> None:
    assert render("concise", FULL) == (
        "jobs/tune.yaml:6:15: error TT102 [*] single-node-model: numNodes must be 1 for qwen2_5/1.5B\n"
        "jobs/größe & co/a b,c:d.yaml:1:1: note TL001 unparsable-file: not checked\n"
        "jobs/größe & co/a b,c:d.yaml:9:10: warning TT102 single-node-model: 100% wrong: \\x1b[31m,\\nreally\n"
    )
    assert render("concise", EMPTY) == ""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (EMPTY, "Checked 41 files, none a training file: nothing to judge."),
        (Report(files=FileCounts(1)), "Checked 1 file, which is no training file: nothing to judge."),
        (Report(files=FileCounts(1, 1, 1)), "Checked 1 file: nothing found."),
        (Report(files=FileCounts(7, 7, 7)), "Checked 7 files: nothing found."),
        (Report(files=FileCounts(7, 7, 1)), "Checked 7 files, 1 of them a training file: nothing found."),
        (Report(), "Found no YAML files."),
        (Report(files=FileCounts(discovered=2), crashed=True), "Found nothing, and not everything was checked."),
        (report(SUPPRESSED, SUPPRESSED), f"Checked {FILES}: nothing found (2 suppressed)."),
        (
            FULL,
            f"Found 1 error, 1 warning and 1 note in 2 of {FILES} "
            "(1 fixable with --fix, 1 suppressed, 1 in the baseline).",
        ),
        (
            report(FIXABLE, replace(FIXABLE, fix=Fix("write 1", (), safe=False))),
            f"Found 2 errors in 1 of {FILES} (1 fixable with --fix, 1 more with --unsafe-fixes).",
        ),
        (report(NODES, NODES), f"Found 2 errors in 1 of {FILES}."),
        (Report((NODES,)), "Found 1 error in 1 of 1 file."),
    ],
)
def test_result(made: Report, expected: str) -> None:
    assert result(made) == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            replace(NODES, program_versions=("2.1", "2.2", "2.3")),
            "Kubeflow Trainer 2.1, 2.2 and 2.3 refuse this job (spec.trainer.numNodes)",
        ),
        (
            replace(NODES, severity=Severity.WARNING, stage=Stage.RUN),
            "Kubeflow Trainer 2.3 accepts this job (spec.trainer.numNodes)",
        ),
        (
            replace(NODES, severity=Severity.WARNING, stage=Stage.SAVE, field=""),
            "Kubeflow Trainer 2.3 may stop on this when it saves, after training",
        ),
        (
            replace(NODES, severity=Severity.WARNING, stage=Stage.START, refused_by_some=True, field=""),
            "Kubeflow Trainer 2.3 stops on this at the start",
        ),
        (
            replace(NODES, program_versions=("2.2", "2.3"), stage=Stage.PREPARE, field=""),
            "Kubeflow Trainer 2.2 and 2.3 stop on this when the model is prepared",
        ),
        (replace(NODES, severity=Severity.NOTE), "spec.trainer.numNodes"),
        (
            replace(NODES, program="torchrun", program_versions=("2.2", "2.3")),
            "torchrun refuses what Kubeflow Trainer 2.2 and 2.3 makes of this job (spec.trainer.numNodes)",
        ),
        (replace(NODES, field="spec.RuntimeRef"), "Kubeflow Trainer 2.3 refuses this job (spec.RuntimeRef)"),
        (
            replace(NODES, field="spec.mlPolicy.torch"),
            "Kubeflow Trainer 2.3 refuses this runtime (spec.mlPolicy.torch)",
        ),
        (replace(NODES, field="metadata.name"), "Kubeflow Trainer 2.3 refuses this (metadata.name)"),
        (replace(NODES, field="", program="axolotl", program_versions=()), "Axolotl refuses this"),
        (replace(NODES, field="", program="trainlint"), ""),
        (
            replace(
                NODES,
                severity=Severity.WARNING,
                stage=Stage.RUN,
                program="trl",
                program_versions=("1.16.0",),
                field="warmup_ratio",
            ),
            "TRL 1.16.0 may accept this (warmup_ratio)",
        ),
    ],
)
def test_annotation(found: Finding, expected: str) -> None:
    assert annotation(found) == expected


def test_what_the_file_holds_cannot_steer_the_terminal() -> None:
    shown = render("text", report(ODD))
    assert "9 |     # größe 模型 e\u0301 \\x1b[31m\\u202e end\n" in shown
    assert "  |             ^^^^ Kubeflow Trainer 2.2 and 2.3 may refuse this\n" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_narrow_encoding_keeps_the_caret_in_place() -> None:
    shown = render("text", report(ODD), RenderOptions(encoding="ascii"))
    assert shown.isascii()
    line, caret = shown.splitlines()[4:6]
    assert line[caret.index("^") : caret.rindex("^") + 1] == "\\u6a21\\u578b"


def test_color_and_links() -> None:
    shown = render("text", report(NODES), RenderOptions(color=True, links=True))
    assert shown.splitlines()[0] == (
        "\x1b[1mjobs/tune.yaml:6:15\x1b[0m: \x1b[1;31merror\x1b[0m "
        "\x1b]8;;https://github.com/trainlint/trainlint/blob/main/docs/rules/TT102.md\x1b\\\x1b[1mTT102\x1b[0m"
        "\x1b]8;;\x1b\\ single-node-model: numNodes must be 1 for qwen2_5/1.5B"
    )
    assert "\x1b" not in render("text", report(NODES))


def test_tab_before_the_span() -> None:
    assert in_line("\ta:\tbad", 5, 3) == ["1 |     a:    bad", "  |           ^^^"]


def test_span_of_several_lines_is_marked_on_its_first() -> None:
    found = replace(NODES, span=NODES.span._replace(line=5, column=14, end_line=7, end_column=3))
    assert "  |              ^^^^^^^^^^^ Kube" in render("text", report(found))


@pytest.mark.parametrize(("column", "width"), [(2, 0), (3, 1), (9, 4)])
def test_span_without_width_or_past_the_end(column: int, width: int) -> None:
    line, caret = in_line("ab", column, width)
    assert (line, caret) == ("1 | ab", f"  | {' ' * min(column - 1, 2)}^")


def test_leading_blank_lines_are_no_context() -> None:
    found = replace(NODES, span=span("a.yaml", 3, 1, 1))
    shown = render("text", Report((found,), texts={"a.yaml": Text("\n\nx\n")}))
    assert shown.splitlines()[1:3] == ["  |", "3 | x"]


@pytest.mark.parametrize("texts", [{}, {"jobs/tune.yaml": Text("x\n")}])
def test_without_the_line_there_is_no_snippet(texts: dict[str, Text]) -> None:
    assert render("text", Report((NODES,), texts=texts)).splitlines()[1:3] == [" |", " = help: remove numNodes"]


@pytest.mark.parametrize("character", ["x", "模"])
@pytest.mark.parametrize("at", [1, 40, 100, 500, 998])
def test_long_line_is_clipped_around_the_span(character: str, at: int) -> None:
    content = character * (at - 1) + "BAD" + character * (1000 - at)
    line, caret = in_line(content, at, 3, terminal=100)
    assert columns(line) <= 100
    before, marked, after = line[4:].partition("BAD")
    assert marked
    assert caret == f"  | {' ' * columns(before)}^^^"
    assert before.startswith("...") == (at > 48 or (character == "模" and at > 25))
    assert after.endswith("...") == (at < 998)


def test_span_longer_than_the_terminal() -> None:
    line, caret = in_line("a: " + "b" * 5000, 4, 5000)
    assert (len(line), len(caret)) == (160, 157)
    assert line.endswith("b...")


def test_annotation_moves_below_where_it_would_not_fit() -> None:
    found = replace(NODES, span=span("a.yaml", 1, 140, 3))
    shown = render("text", Report((found,), texts={"a.yaml": Text("x" * 139 + "BAD")})).splitlines()
    said = "Kubeflow Trainer 2.3 refuses this job (spec.trainer.numNodes)"
    assert shown[3:5] == [f"  | {' ' * 139}^^^", f"  | {' ' * (156 - len(said))}{said}"]


def test_a_huge_line() -> None:
    line, caret = in_line("y" * 5_000_000, 4_000_000, 10)
    assert len(line) <= 160
    assert caret.count("^") == 10


def test_visible() -> None:
    assert visible("plain größe") == "plain größe"
    assert visible("a\nb\x07\u2028\udcff\xa0") == "a\\nb\\x07\\u2028\\udcff\\xa0"
    assert visible("größe", "ascii") == "gr\\xf6\\xdfe"


def test_the_sample_is_what_these_tests_think() -> None:
    assert JOB.splitlines()[5] == "    numNodes: 2"


# two places


def related(line: int, column: int, length: int, said: str = "the other") -> Related:
    return Related(span("jobs/tune.yaml", line, column, length), said)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (
            related(5, 14, 11),
            [
                "4 |   trainer:",
                "5 |     command: [tune, run]",
                "  |              ----------- the other",
                "6 |     numNodes: 2",
                "  |               ^",
            ],
        ),
        (
            related(2, 7, 8),
            [
                "2 | kind: TrainJob",
                "  |       -------- the other",
                "3 | spec:",
                "4 |   trainer:",
                "5 |     command: [tune, run]",
                "6 |     numNodes: 2",
                "  |               ^",
            ],
        ),
        (
            related(1, 1, 10),
            [
                "1 | apiVersion: trainer.kubeflow.org/v1alpha1",
                "  | ---------- the other",
                "...",
                "4 |   trainer:",
                "5 |     command: [tune, run]",
                "6 |     numNodes: 2",
                "  |               ^",
            ],
        ),
        (
            related(6, 5, 8),
            [
                "4 |   trainer:",
                "5 |     command: [tune, run]",
                "6 |     numNodes: 2",
                "  |               ^",
                "  |     -------- the other",
            ],
        ),
        (
            related(8, 15, 10),
            [
                "4 |   trainer:",
                "5 |     command: [tune, run]",
                "6 |     numNodes: 2",
                "  |               ^",
                "7 |     env:",
                "8 |       - name: PET_NNODES",
                "  |               ---------- the other",
            ],
        ),
    ],
)
def test_two_places_of_one_file_are_in_one_snippet(other: Related, expected: list[str]) -> None:
    found = replace(NODES, related=(other,), help="", field="", program="trainlint")
    assert render("text", report(found)).splitlines()[2:-2] == expected


def test_of_many_places_the_first_are_in_the_snippet() -> None:
    places = tuple(related(line, 1, 2, f"no. {line}") for line in (1, 2, 3, 4))
    shown = render("text", report(replace(NODES, related=places)))
    assert shown.count("  | -- no. ") == 3
    assert "\n  = related: jobs/tune.yaml:4:1 no. 4\n" in shown


def test_the_gutter_is_as_wide_as_the_largest_number() -> None:
    found = replace(NODES, span=span("a.yaml", 2, 1, 1), related=(Related(span("a.yaml", 12, 1, 1), "there"),))
    shown = render("text", Report((found,), texts={"a.yaml": Text("x\n" * 12)})).splitlines()
    assert shown[1:5] == ["   |", " 1 | x", " 2 | x", f"   | ^ {annotation(found)}"]
    assert shown[5:8] == ["...", "12 | x", "   | - there"]


# on a terminal


def wrapped(found: Finding, width: int) -> list[str]:
    return render("text", report(found), RenderOptions(width=width, wraps=True)).splitlines()


def test_long_lines_are_wrapped_with_an_indent() -> None:
    lines = wrapped(NODES, 50)
    assert lines[:3] == [
        "jobs/tune.yaml:6:15: error TT102",
        "    single-node-model: numNodes must be 1 for",
        "    qwen2_5/1.5B",
    ]
    long = replace(NODES, help="remove numNodes, or use the runtime of a multi-node model instead")
    assert wrapped(long, 50)[11:14] == [
        "  = help: remove numNodes, or use the runtime of a",
        "          multi-node model instead",
        "",
    ]
    assert max(map(len, wrapped(long, 50))) <= 50
    assert len(render("text", report(NODES), RenderOptions(width=50)).splitlines()[0]) > 50, "not in a pipe"


def test_wide_characters_are_wrapped_by_columns() -> None:
    found = replace(NODES, message="模型 " * 12)
    assert all(columns(line) <= 50 for line in wrapped(found, 50)[:4])


def test_a_word_that_is_longer_than_a_line_stays_whole() -> None:
    path = f"{'a' * 80} b.yaml"
    found = replace(NODES, span=span(path, 1, 1, 1))
    lines = render("concise", Report((found,)), RenderOptions(width=40, wraps=True)).splitlines()
    assert lines == [f"{path}:1:1: error TT102 single-node-model: numNodes must be 1 for qwen2_5/1.5B"]
    assert render("text", Report((found,)), RenderOptions(width=40, wraps=True)).splitlines()[:2] == [
        f"{path}:1:1:",
        "    error TT102 single-node-model:",
    ]


def test_grouped_lines_are_wrapped_below_their_text() -> None:
    lines = render("grouped", report(NODES), RenderOptions(width=40, wraps=True)).splitlines()
    assert lines[:4] == [
        "jobs/tune.yaml",
        "  6:15  error   TT102 single-node-model:",
        "        numNodes must be 1 for",
        "        qwen2_5/1.5B",
    ]
