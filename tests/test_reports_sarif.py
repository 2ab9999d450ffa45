"""SARIF: what the standard and GitHub ask for, beyond what a schema can see."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest
import sarif_om

from sample_report import EMPTY, FIXABLE, FULL, NODES, ODD, SUPPRESSED, report
from trainlint.catalogue import all_rules
from trainlint.findings import Finding, Severity, Span
from trainlint.reading.text import Text
from trainlint.report import Report
from trainlint.reports import RenderOptions, render, sarif

Json: TypeAlias = "bool | int | str | list[Json] | dict[str, Json] | None"


def run_of(made: Report, options: RenderOptions | None = None) -> dict[str, Json]:
    log = json.loads(render("sarif", made, options))
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def results_of(made: Report, options: RenderOptions | None = None) -> list[dict[str, Json]]:
    results = run_of(made, options)["results"]
    assert isinstance(results, list)
    return results  # type: ignore[return-value]


def strings(node: Json) -> list[str]:
    if isinstance(node, dict):
        return [text for value in node.values() for text in strings(value)]
    if isinstance(node, list):
        return [text for value in node for text in strings(value)]
    return [node] if isinstance(node, str) else []


def test_run_without_findings() -> None:
    run = run_of(EMPTY)
    assert run["results"] == []
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["newlineSequences"] == ["\r\n", "\n", "\r"]
    assert run["automationDetails"] == {"id": "trainlint/"}
    assert run["invocations"] == [{"executionSuccessful": True, "toolExecutionNotifications": []}]
    assert run["originalUriBaseIds"] == {"SRCROOT": {"description": {"text": "The root of the repository."}}}


def test_every_rule_is_described_in_a_stable_order() -> None:
    run = run_of(EMPTY, RenderOptions(version="9.9"))
    assert isinstance(run["tool"], dict)
    driver = run["tool"]["driver"]
    assert isinstance(driver, dict)
    assert (driver["name"], driver["version"], driver["semanticVersion"]) == ("trainlint", "9.9", "9.9")
    described = driver["rules"]
    assert isinstance(described, list)
    assert len(described) == len(all_rules())
    for rule, told in zip(all_rules(), described, strict=True):
        assert isinstance(told, dict)
        page = f"https://github.com/trainlint/trainlint/blob/main/docs/rules/{rule.code}.md"
        assert told["id"] == rule.code
        assert told["shortDescription"] == {"text": rule.summary}
        assert isinstance(told["fullDescription"], dict)
        assert isinstance(told["fullDescription"]["text"], str)
        assert len(told["fullDescription"]["text"]) <= 1024
        assert told["help"] == {
            "text": f"{rule.documentation}\n\n{page}",
            "markdown": f"**{rule.code} `{rule.name}`**\n\n{rule.documentation}\n\n[Rule page]({page})",
        }
        assert told["helpUri"] == page
        assert told["defaultConfiguration"] == {"level": rule.severity.value}
        assert isinstance(told["properties"], dict)
        assert set(told["properties"]) == {"tags", "precision", "problem.severity", "stage"}


def test_result() -> None:
    (result,) = results_of(report(FIXABLE))
    codes = [rule.code for rule in all_rules()]
    place = {"uri": "jobs/tune.yaml", "uriBaseId": "SRCROOT"}
    assert result == {
        "ruleId": "TT102",
        "ruleIndex": codes.index("TT102"),
        "level": "error",
        "message": {"text": "numNodes must be 1 for qwen2_5/1.5B\nHelp: remove numNodes"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": place,
                    "region": {
                        "startLine": 6,
                        "startColumn": 15,
                        "endLine": 6,
                        "endColumn": 16,
                        "snippet": {"text": "2"},
                    },
                    "contextRegion": {
                        "startLine": 4,
                        "startColumn": 1,
                        "endLine": 6,
                        "endColumn": 16,
                        "snippet": {"text": "  trainer:\n    command: [tune, run]\n    numNodes: 2"},
                    },
                }
            }
        ],
        "relatedLocations": [
            {
                "id": 1,
                "message": {"text": "the runtime"},
                "physicalLocation": {
                    "artifactLocation": {"uri": "runtimes/odd%20name.yaml", "uriBaseId": "SRCROOT"},
                    "region": {"startLine": 3, "startColumn": 1, "endLine": 3, "endColumn": 5},
                },
            }
        ],
        "fixes": [
            {
                "description": {"text": "remove numNodes"},
                "artifactChanges": [
                    {
                        "artifactLocation": place,
                        "replacements": [
                            {"deletedRegion": {"startLine": 6, "startColumn": 1, "endLine": 7, "endColumn": 1}}
                        ],
                    }
                ],
                "properties": {"applicability": "safe"},
            }
        ],
        "partialFingerprints": {
            "trainlint/v2": report(FIXABLE).findings[0].fingerprint,
            "primaryLocationLineHash": "c66c39b45c607cd2:1",
        },
        "properties": {
            "program": "kubeflow-trainer",
            "stage": "admission",
            "programVersions": ["2.3"],
            "document": 0,
            "field": "spec.trainer.numNodes",
            "yamlPath": "spec.trainer.numNodes",
        },
    }


def test_level_is_always_written() -> None:
    assert [result["level"] for result in results_of(FULL)] == ["error", "error", "error", "note", "warning"]


def test_suppressions_are_in_all_results_or_in_none() -> None:
    assert [result["suppressions"] for result in results_of(FULL)] == [
        [],
        [{"kind": "inSource", "justification": "our own fork"}],
        [{"kind": "external", "justification": "in the baseline"}],
        [],
        [],
    ]
    assert all("suppressions" not in result for result in results_of(report(NODES, ODD)))
    (result,) = results_of(report(replace(SUPPRESSED, suppressed="")))
    assert result["suppressions"] == [{"kind": "inSource"}]


def uri_of(path: str, options: RenderOptions | None = None) -> tuple[Json, Json]:
    (result,) = results_of(report(replace(NODES, span=Span(path, 1, 1, 1, 2))), options)
    node: Json = result["locations"]
    assert isinstance(node, list)
    assert isinstance(node[0], dict)
    physical = node[0]["physicalLocation"]
    assert isinstance(physical, dict)
    location = physical["artifactLocation"]
    assert isinstance(location, dict)
    return location["uri"], location.get("uriBaseId")


def test_uris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    options = RenderOptions(root=tmp_path)
    assert uri_of("größe & co/a b#c.yaml", options) == ("below/gr%C3%B6%C3%9Fe%20%26%20co/a%20b%23c.yaml", "SRCROOT")
    assert uri_of(str(tmp_path / "a:b.yaml"), options) == ("a%3Ab.yaml", "SRCROOT")
    assert uri_of("../../elsewhere.yaml", options) == ((tmp_path.parent / "elsewhere.yaml").as_uri(), None)


def test_notices_are_notifications() -> None:
    assert run_of(FULL)["invocations"] == [
        {
            "executionSuccessful": True,
            "toolExecutionNotifications": [
                {"level": "note", "message": {"text": "kubeflow-trainer 2.9 is judged as 2.3"}}
            ],
        }
    ]


def test_no_text_is_empty_and_none_holds_a_lone_surrogate() -> None:
    found = replace(ODD, message="", field="", yaml_path="", help="", program="")
    run = run_of(report(found, replace(NODES, message="a\ud800\U0001f600")))
    assert all(strings(run))
    assert "a\ufffd\U0001f600\nHelp: remove numNodes" in strings(run)


def test_the_most_severe_results_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 2)
    warning = replace(NODES, severity=Severity.WARNING)
    made = report(warning, NODES, replace(NODES, severity=Severity.NOTE), warning)
    assert [result["level"] for result in results_of(made)] == ["warning", "error"]
    notices = strings(run_of(made)["invocations"])
    assert "2 more findings of lower severity are left out: code scanning takes 2" in notices


@pytest.mark.parametrize("found", [NODES, ODD])
def test_a_finding_without_its_text(found: Finding) -> None:
    (result,) = results_of(Report((found,)))
    assert "partialFingerprints" not in result
    assert "snippet" not in json.dumps(result)


def test_a_region_past_the_text() -> None:
    found = replace(NODES, span=Span("a.yaml", 9, 1, 9, 1))
    (result,) = results_of(Report((found,), texts={"a.yaml": Text("x\n")}))
    assert "snippet" not in json.dumps(result)


@pytest.mark.parametrize(
    ("content", "hashes"),
    [
        ("", ["c129715d7a2bc9a3:1"]),
        (
            " a\nb\n  \t\tc\n d",
            ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"],
        ),
        (
            "Lorem ipsum dolor sit amet.\n" * 10,
            [
                *(f"a7f2ff13bc495cf2:{number}" for number in range(1, 7)),
                "a7f2ff1481e87703:1",
                "a9cf91f7bbf1862b:1",
                "55ec222b86bcae53:1",
                "cc97dc7b1d7d8f7b:1",
                "c129715d7a2bc9a3:1",
            ],
        ),
    ],
)
def test_line_hashes_are_those_that_github_expects(content: str, hashes: list[str]) -> None:
    """Source: github/codeql-action, `src/fingerprints.test.ts`."""
    assert sarif.line_hashes(content) == hashes
    for line_end in ("\r\n", "\r"):
        assert sarif.line_hashes(content.replace("\n", line_end)) == hashes


def test_line_hashes_count_utf_16_units() -> None:
    assert sarif.line_hashes("\U0001f600") != sarif.line_hashes("\uf600")
    assert len(sarif.line_hashes("a\u2028b\x85c\nd")) == 2


@pytest.mark.parametrize("value", [{"a"}, b"a", Path("a"), Severity.ERROR, NODES, {1: "a"}])
def test_the_serialiser_refuses_what_is_not_json(value: object) -> None:
    with pytest.raises(TypeError):
        sarif.to_json(sarif_om.Message(text="a", properties={"value": value}))


def test_the_serialiser_keeps_level_and_drops_defaults() -> None:
    result = sarif_om.Result(message=sarif_om.Message(text="a"), level="warning", rule_id="")
    assert sarif.to_json(result) == {"message": {"text": "a"}, "level": "warning"}
