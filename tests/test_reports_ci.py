"""What GitHub, GitLab and JUnit readers are given."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sample_report import EMPTY, FULL, NODES, NOTE, ODD, SUPPRESSED, report
from trainlint.findings import Severity
from trainlint.reports import FORMATS, RenderOptions, render

PAGES = "https://github.com/trainlint/trainlint/blob/main/docs/rules"


def test_github() -> None:
    assert render("github", FULL, RenderOptions(show_suppressed=True)).splitlines() == [
        "::error file=jobs/tune.yaml,line=6,col=15,endLine=6,endColumn=16,title=TT102 single-node-model::"
        "numNodes must be 1 for qwen2_5/1.5B%0Ahelp: remove numNodes",
        "::notice file=jobs/größe & co/a b%2Cc%3Ad.yaml,line=1,col=1,endLine=1,endColumn=11,"
        "title=TL001 unparsable-file::not checked",
        "::warning file=jobs/größe & co/a b%2Cc%3Ad.yaml,line=9,col=10,endLine=9,endColumn=12,"
        "title=TT102 single-node-model::100%25 wrong: \\x1b[31m,\\nreally%0Ahelp: größer",
    ]
    assert render("github", EMPTY) == ""


def test_github_has_no_columns_over_several_lines() -> None:
    found = replace(NODES, help="", span=NODES.span._replace(end_line=7, end_column=2))
    assert render("github", report(found)) == (
        "::error file=jobs/tune.yaml,line=6,endLine=7,title=TT102 single-node-model::"
        "numNodes must be 1 for qwen2_5/1.5B\n"
    )


def test_a_line_end_in_a_file_name_begins_no_further_command() -> None:
    found = replace(NODES, span=NODES.span._replace(path="a\n::error::b.yaml"))
    assert render("github", report(found)).startswith("::error file=a%0A%3A%3Aerror%3A%3Ab.yaml,line=6,")


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_name_that_is_not_utf_8(name: str) -> None:
    found = replace(NODES, span=NODES.span._replace(path="caf\udce9.yaml"))
    assert render(name, report(found)).encode("utf-8")


def test_gitlab() -> None:
    issues = json.loads(render("gitlab", report(NODES, ODD, NOTE, SUPPRESSED)))
    prints = [issue.pop("fingerprint") for issue in issues]
    assert len(set(prints)) == 3
    assert issues == [
        {
            "description": "numNodes must be 1 for qwen2_5/1.5B (help: remove numNodes)",
            "type": "issue",
            "categories": ["Bug Risk"],
            "check_name": "TT102",
            "content": {"body": f"single-node-model: {PAGES}/TT102.md"},
            "severity": "major",
            "location": {"path": "jobs/tune.yaml", "lines": {"begin": 6, "end": 6}},
        },
        {
            "description": "100% wrong: \x1b[31m,\nreally (help: größer)",
            "type": "issue",
            "categories": ["Bug Risk"],
            "check_name": "TT102",
            "content": {"body": f"single-node-model: {PAGES}/TT102.md"},
            "severity": "minor",
            "location": {"path": "jobs/größe & co/a b,c:d.yaml", "lines": {"begin": 9, "end": 9}},
        },
        {
            "description": "not checked",
            "type": "issue",
            "categories": ["Bug Risk"],
            "check_name": "TL001",
            "content": {"body": f"unparsable-file: {PAGES}/TL001.md"},
            "severity": "info",
            "location": {"path": "jobs/größe & co/a b,c:d.yaml", "lines": {"begin": 1, "end": 1}},
        },
    ]
    assert render("gitlab", EMPTY) == "[]\n"


def test_gitlab_fingerprints_are_unique_and_stable() -> None:
    made = report(NODES, NODES)
    prints = [issue["fingerprint"] for issue in json.loads(render("gitlab", made))]
    assert len(set(prints)) == 2
    assert prints == [issue["fingerprint"] for issue in json.loads(render("gitlab", made))]


def test_junit() -> None:
    assert (
        render("junit", report(NODES, SUPPRESSED), RenderOptions(show_suppressed=True))
        == """\
<?xml version='1.0' encoding='us-ascii'?>
<testsuites name="trainlint" tests="2" failures="1" errors="0" skipped="1">
  <testsuite name="jobs/tune.yaml" tests="2" failures="1" errors="0" skipped="1">
    <testcase name="TT102 single-node-model at 6:15" classname="jobs/tune.yaml" file="jobs/tune.yaml" line="6">
      <failure type="error" message="numNodes must be 1 for qwen2_5/1.5B">\
jobs/tune.yaml:6:15: numNodes must be 1 for qwen2_5/1.5B
Kubeflow Trainer 2.3 refuses this job (spec.trainer.numNodes)
help: remove numNodes</failure>
    </testcase>
    <testcase name="TT107 reserved-env at 8:15" classname="jobs/tune.yaml" file="jobs/tune.yaml" line="8">
      <skipped message="our own fork" />
    </testcase>
  </testsuite>
</testsuites>
"""
    )


def test_junit_of_nothing_is_one_test_that_passed() -> None:
    assert (
        render("junit", EMPTY)
        == """\
<?xml version='1.0' encoding='us-ascii'?>
<testsuites name="trainlint" tests="1" failures="0" errors="0" skipped="0">
  <testsuite name="trainlint" tests="1" failures="0" errors="0" skipped="0">
    <testcase name="Checked 41 files, none a training file: nothing to judge." classname="trainlint" />
  </testsuite>
</testsuites>
"""
    )


@pytest.mark.parametrize(
    ("fail_on", "failures"), [(Severity.ERROR, "1"), (Severity.WARNING, "2"), (Severity.NOTE, "3")]
)
def test_junit_fails_what_the_exit_code_fails(fail_on: Severity, failures: str) -> None:
    root = ElementTree.fromstring(render("junit", FULL, RenderOptions(fail_on=fail_on)))
    assert (root.get("tests"), root.get("failures")) == ("3", failures)


def test_junit_holds_no_character_that_xml_lacks() -> None:
    found = replace(ODD, severity=Severity.ERROR, message="a\x00\x1b\ud800\ufffeb")
    root = ElementTree.fromstring(render("junit", report(found)))
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("message") == "a\\x00\\x1b\\ud800\\ufffeb"
    assert [case.get("file") for case in root.iter("testcase")] == ["jobs/größe & co/a b,c:d.yaml"]


@pytest.mark.parametrize("name", ["json", "sarif", "gitlab", "junit"])
def test_machine_formats_are_ascii(name: str) -> None:
    assert render(name, FULL, RenderOptions(show_suppressed=True)).isascii()


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders_and_ends_its_last_line(name: str) -> None:
    assert render(name, FULL).endswith("\n")
    assert render(name, EMPTY)[-1:] in ("", "\n")


def test_paths_from_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "repository" / "below"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    options = RenderOptions(root=tmp_path / "repository")
    assert options.from_root("a.yaml") == "below/a.yaml"
    assert options.from_root(os.path.join("..", "a.yaml")) == "a.yaml"
    assert options.from_root(str(below / "a.yaml")) == "below/a.yaml"
    assert options.from_root(os.path.join("..", "..", "a.yaml")) == (tmp_path / "a.yaml").as_posix()


@pytest.mark.skipif(os.name == "nt", reason="making symbolic links takes rights on Windows")
def test_paths_through_a_linked_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    assert RenderOptions(root=tmp_path / "real").from_root("link/a.yaml") == "a.yaml"
