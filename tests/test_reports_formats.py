"""What each other format says, to the character; tests/test_reports_consumers.py asks the programs that read them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from sample_report import BASELINED, EMPTY, FIXABLE, FULL, JOB, NODES, NOTE, ODD, SUPPRESSED, report, span
from trainlint.findings import Edit, Finding, Fix, Related
from trainlint.reading.text import Text
from trainlint.report import FileCounts, Near, Report
from trainlint.reports import RenderOptions, render

BESIDE = replace(NODES, related=(Related(span("jobs/tune.yaml", 2, 7, 8), "this is the job"),))


# grouped


def test_grouped() -> None:
    assert render("grouped", report(NODES, replace(NODES, span=span("jobs/tune.yaml", 16, 1, 1)), NOTE)) == (
        "jobs/größe & co/a b,c:d.yaml\n"
        "  1:1  note    TL001 unparsable-file: not checked\n\n"
        "jobs/tune.yaml\n"
        "  6:15  error   TT102 single-node-model: numNodes must be 1 for qwen2_5/1.5B\n"
        "  16:1  error   TT102 single-node-model: numNodes must be 1 for qwen2_5/1.5B\n\n"
        "Found 2 errors and 1 note in 2 of 41 files, 3 of them training files.\n"
    )


def test_quiet_leaves_out_what_follows() -> None:
    quiet = RenderOptions(quiet=True)
    for name in ("text", "grouped"):
        assert "Found" not in render(name, report(NODES), quiet)
        assert render(name, EMPTY, quiet) == ""


# jsonl


def test_jsonl_has_the_objects_of_json() -> None:
    lines = render("jsonl", FULL).splitlines()
    assert [json.loads(line) for line in lines] == json.loads(render("json", FULL))["findings"]
    assert render("jsonl", EMPTY) == ""
    assert "".join(lines).isascii()


# azure


def test_azure() -> None:
    odd = replace(NODES, span=span("a;b]c%.yaml", 1, 2, 3), message="100% ]; \n", help="x")
    assert render("azure", report(NODES, NOTE, odd)).splitlines() == [
        "##vso[task.logissue type=error;sourcepath=jobs/tune.yaml;linenumber=6;columnnumber=15;code=TT102;]"
        "numNodes must be 1 for qwen2_5/1.5B%0Ahelp: remove numNodes",
        "##vso[task.logissue type=warning;sourcepath=jobs/größe & co/a b,c:d.yaml;linenumber=1;columnnumber=1;"
        "code=TL001;]note: not checked",
        "##vso[task.logissue type=error;sourcepath=a%3Bb%5Dc%AZP25.yaml;linenumber=1;columnnumber=2;code=TT102;]"
        "100%AZP25 ]; \\n%0Ahelp: x",
    ]


# rdjson


def diagnostics(made: Report, options: RenderOptions | None = None) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(render("rdjson", made, options))["diagnostics"]
    return found


def test_rdjson() -> None:
    assert json.loads(render("rdjson", report(FIXABLE))) == {
        "source": {"name": "trainlint", "url": "https://github.com/trainlint/trainlint"},
        "diagnostics": [
            {
                "message": "numNodes must be 1 for qwen2_5/1.5B\nHelp: remove numNodes",
                "location": {
                    "path": "jobs/tune.yaml",
                    "range": {"start": {"line": 6, "column": 15}, "end": {"line": 6, "column": 16}},
                },
                "severity": "ERROR",
                "code": {
                    "value": "TT102 single-node-model",
                    "url": "https://github.com/trainlint/trainlint/blob/main/docs/rules/TT102.md",
                },
                "relatedLocations": [
                    {
                        "message": "the runtime",
                        "location": {
                            "path": "runtimes/odd name.yaml",
                            "range": {"start": {"line": 3}, "end": {"line": 3}},
                        },
                    }
                ],
                "suggestions": [
                    {
                        "range": {"start": {"line": 6, "column": 1}, "end": {"line": 7, "column": 1}},
                        "text": "",
                    }
                ],
            }
        ],
    }


def test_rdjson_counts_bytes() -> None:
    (told,) = diagnostics(report(ODD))
    assert JOB.splitlines()[8][9:11] == "模型"
    assert told["location"] == {
        "path": "jobs/größe & co/a b,c:d.yaml",
        "range": {"start": {"line": 9, "column": 12}, "end": {"line": 9, "column": 18}},
    }


def test_rdjson_suggests_one_text_for_several_edits() -> None:
    at = JOB.index("numNodes")
    fix = Fix("swap", (Edit(at + 10, at + 11, "1"), Edit(at, at + 8, "nodes")))
    (told,) = diagnostics(report(replace(NODES, fix=fix)))
    assert told["suggestions"] == [
        {"range": {"start": {"line": 6, "column": 5}, "end": {"line": 6, "column": 16}}, "text": "nodes: 1"}
    ]


def test_rdjson_suggests_no_text_with_a_secret() -> None:
    content = "env:\n  API_TOKEN: hunter2-secret\n  x: 1\n"
    fix = Fix("edit", (Edit(0, 3, "envs"), Edit(content.index("1"), content.index("1") + 1, "2")))
    found = replace(NODES, span=span("a.yaml", 3, 6, 1), fix=fix)
    made = Report((found,), texts={"a.yaml": Text(content)})
    assert "suggestions" not in diagnostics(made)[0]
    assert "hunter2-secret" in render("rdjson", made, RenderOptions(show_values=True))


# markdown


def test_markdown() -> None:
    page = "https://github.com/trainlint/trainlint/blob/main/docs/rules"
    assert render("markdown", report(FIXABLE, SUPPRESSED), RenderOptions(show_suppressed=True)) == (
        "### trainlint\n\n"
        "Found 1 error in 1 of 41 files, 3 of them training files (1 fixable with --fix, 1 suppressed).\n\n"
        "| severity | place | rule | finding |\n"
        "|---|---|---|---|\n"
        f"| error | <code>jobs/tune.yaml:6:15</code> | [TT102]({page}/TT102.md) single-node-model "
        "| numNodes must be 1 for qwen2&#95;5/1.5B<br><em>remove numNodes</em> |\n"
        f"| error | <code>jobs/tune.yaml:8:15</code> | [TT107]({page}/TT107.md) reserved-env "
        "| PET&#95;NNODES is reserved<br>suppressed: our own fork |\n"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ask @team about #12 and GH-3", "ask @&#8203;team about #&#8203;12 and GH-&#8203;3"),
        ("https://x.org www.x.org", "https:&#8203;//x.org www&#8203;.x.org"),
        ("*a* _b_ `c` [d](e) <f> | \\ $x$ ~g~ &amp; ![h](i)", None),
    ],
)
def test_markdown_takes_nothing_from_files_as_markup(text: str, expected: str | None) -> None:
    row = render("markdown", report(replace(NODES, message=text, help=""))).splitlines()[-1]
    said = row.removesuffix(" |").rpartition(" | ")[2]
    if expected is None:
        assert not re.search(r"[*_`\[\]<>|\\$~!]", said)
        assert re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), said) == text
    else:
        assert said == expected


def test_markdown_fits_into_a_comment() -> None:
    made = render("markdown", Report((NODES,) * 1000))
    assert len(made) <= 60_200
    shown = made.count("| error |")
    assert made.endswith(f"\n\n{1000 - shown} further findings: the log has all of them.\n")


# html


class Page(HTMLParser):
    """The elements of a page, and its text without style and script."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.words += data


def test_html_is_well_formed_and_needs_no_network() -> None:
    made = render("html", FULL)
    page = Page(made)
    assert page.open == []
    assert made.isascii()
    assert {attrs["href"] for tag, attrs in page.tags if tag == "a"} == {
        "#findings",
        "https://github.com/trainlint/trainlint",
        "https://github.com/trainlint/trainlint/blob/main/docs/rules/TT102.md",
        "https://github.com/trainlint/trainlint/blob/main/docs/rules/TL001.md",
    }
    assert not [attrs for _, attrs in page.tags if "src" in attrs or "style" in attrs]
    assert "url(" not in made
    assert "@import" not in made


def test_html_lets_only_its_own_script_run() -> None:
    import base64
    import hashlib

    made = render("html", FULL)
    policy = next(attrs["content"] for tag, attrs in Page(made).tags if "http-equiv" in attrs)
    assert policy is not None
    for tag in ("style", "script"):
        (content,) = re.findall(f"<{tag}>(.*?)</{tag}>", made, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")


def test_html_tells_each_finding_with_its_source() -> None:
    words = " ".join(Page(render("html", report(BESIDE, ODD))).words.split())
    assert "error TT102 single-node-model numNodes must be 1 for qwen2_5/1.5B" in words
    assert "jobs/tune.yaml:6:15, stage admission" in words
    assert "2kind: TrainJob this is the job 3spec:" in words
    assert "6 numNodes: 2 Kubeflow Trainer 2.3 refuses this job (spec.trainer.numNodes)" in words
    assert "\\x1b[31m\\u202e end" in words


def test_html_marks_the_places() -> None:
    made = render("html", report(BESIDE))
    assert '<mark class="own">2</mark>' in made
    assert '<mark class="other">TrainJob</mark>' in made


def test_html_has_a_filter_for_what_is_there() -> None:
    tags = Page(render("html", FULL)).tags
    assert [attrs["value"] for tag, attrs in tags if tag == "input"] == ["error", "warning", "note"]
    values = [attrs["value"] for tag, attrs in tags if tag == "option"]
    assert values == [
        *("", "TL001", "TT102"),
        *("", "kubeflow-trainer", "trainlint"),
        *("", "jobs/größe & co/a b,c:d.yaml", "jobs/tune.yaml"),
    ]
    findings = [attrs for tag, attrs in tags if tag == "article"]
    assert [(f["data-severity"], f["data-rule"], f["data-program"]) for f in findings] == [
        ("note", "TL001", "trainlint"),
        ("warning", "TT102", "kubeflow-trainer"),
        ("error", "TT102", "kubeflow-trainer"),
    ]
    assert "form" not in {tag for tag, _ in Page(render("html", EMPTY)).tags}


def test_html_cuts_long_lines_and_hides_secrets() -> None:
    content = f"{'x' * 3000}BAD{'y' * 3000}\npassword: hunter2-secret\n"
    made = Report((replace(NODES, span=span("a.yaml", 1, 3001, 3)),), texts={"a.yaml": Text(content)})
    shown = render("html", made)
    assert f'...{"x" * 200}<mark class="own">BAD</mark>{"y" * 197}...' in shown
    assert "hunter2" not in shown
    assert "password: ***" in shown


def test_html_shows_what_a_job_starts_beside_its_findings() -> None:
    jobs = {("jobs/tune.yaml", 0): [["jobs/tune.yaml:2: TrainJob a", "  node: 2 pods  # jobs/tune.yaml:6"]]}
    words = Page(render("html", report(NODES), RenderOptions(jobs=jobs))).words
    assert "What the job starts" in words
    assert "node: 2 pods  # jobs/tune.yaml:6" in words
    assert "What the job starts" not in Page(render("html", report(NODES))).words


# statistics


def test_statistics() -> None:
    options = RenderOptions(statistics=True)
    made = report(FIXABLE, NODES, NOTE, SUPPRESSED)
    assert render("text", made, options) == (
        "2  error    TT102  single-node-model  1 fixable\n"
        "1  note     TL001  unparsable-file\n\n"
        "Found 2 errors and 1 note in 2 of 41 files, 3 of them training files (1 fixable with --fix, 1 suppressed).\n"
    )
    assert json.loads(render("json", made, options)) == [
        {"rule": "TT102", "name": "single-node-model", "severity": "error", "count": 2, "fixable": 1},
        {"rule": "TL001", "name": "unparsable-file", "severity": "note", "count": 1, "fixable": 0},
    ]
    assert render("json", EMPTY, options) == "[]\n"
    assert render("text", EMPTY, options) == "Checked 41 files, none a training file: nothing to judge.\n"


# what the run was worth


def test_almost_recognised() -> None:
    near = tuple(Near(f"{name}.yaml", ("Axolotl", "TRL")) for name in "abcde")
    made = Report(files=FileCounts(9, 5, 0), near=near)
    assert render("text", made) == (
        "Checked 9 files, none a training file: nothing to judge.\n"
        "Almost recognised: a.yaml (Axolotl or TRL), b.yaml (Axolotl or TRL), c.yaml (Axolotl or TRL) and 2 more.\n"
        "trainlint check --show-files says what is missing in them.\n"
    )
    assert "Almost recognised: a.yaml" in render("markdown", made)
    assert "Almost recognised: a.yaml" in render("html", made)


def test_nothing_recognised() -> None:
    told = render("text", Report(files=FileCounts(9, 0, 0)))
    assert told.splitlines()[1:] == [
        "No file has a word of a program that trainlint knows; its README says how files are recognised."
    ]
    assert len(render("text", Report(files=FileCounts(9, 1, 1))).splitlines()) == 1
    assert render("text", Report(files=FileCounts(9, 0, 0), left_alone=1)).splitlines()[1:] == [
        "trainlint check --show-files says why what may be training files is not checked."
    ]


@pytest.mark.parametrize("found", [BASELINED, SUPPRESSED])
def test_a_finding_that_does_not_count_says_why(found: Finding) -> None:
    options = RenderOptions(show_suppressed=True)
    why = "in the baseline" if found.baselined else "our own fork"
    for name in ("text", "concise", "grouped", "junit", "markdown", "html"):
        assert why in render(name, report(found), options)
