"""The JSON object, key by key."""

from __future__ import annotations

import json

from sample_report import EMPTY, FIXABLE, FULL, NODES, report
from trainlint.reports import RenderOptions, render
from trainlint.reports.json import __doc__ as documentation


def test_whole_object() -> None:
    assert json.loads(render("json", report(FIXABLE), RenderOptions(version="9.9"))) == {
        "version": 1,
        "tool": {"name": "trainlint", "version": "9.9"},
        "findings": [
            {
                "rule": "TT102",
                "name": "single-node-model",
                "severity": "error",
                "stage": "admission",
                "program": "kubeflow-trainer",
                "programVersions": ["2.3"],
                "release": {"known": "", "from": ""},
                "message": "numNodes must be 1 for qwen2_5/1.5B",
                "help": "remove numNodes",
                "path": "jobs/tune.yaml",
                "document": 0,
                "field": "spec.trainer.numNodes",
                "yamlPath": "spec.trainer.numNodes",
                "line": 6,
                "column": 15,
                "endLine": 6,
                "endColumn": 16,
                "related": [
                    {
                        "message": "the runtime",
                        "path": "runtimes/odd name.yaml",
                        "line": 3,
                        "column": 1,
                        "endLine": 3,
                        "endColumn": 5,
                    }
                ],
                "fix": {
                    "title": "remove numNodes",
                    "safe": True,
                    "edits": [{"line": 6, "column": 1, "endLine": 7, "endColumn": 1, "replacement": ""}],
                },
                "suppressed": None,
                "fingerprint": report(FIXABLE).findings[0].fingerprint,
            }
        ],
        "files": {"discovered": 41, "parsed": 4, "recognised": 3, "judged": 3},
        "targets": {"kubeflow-trainer": {"versions": ["2.2", "2.3"], "from": "option", "known": "chosen"}},
        "notices": ["kubeflow-trainer 2.9 is judged as 2.3"],
        "summary": {"error": 1, "warning": 0, "note": 0, "suppressed": 0, "baselined": 0},
    }


def test_empty() -> None:
    assert json.loads(render("json", EMPTY)) == {
        "version": 1,
        "tool": {"name": "trainlint", "version": RenderOptions().version},
        "findings": [],
        "files": {"discovered": 41, "parsed": 0, "recognised": 0, "judged": 0},
        "targets": {},
        "notices": [],
        "summary": {"error": 0, "warning": 0, "note": 0, "suppressed": 0, "baselined": 0},
    }


def test_suppressed_and_baselined_are_left_out_unless_asked_for() -> None:
    told = json.loads(render("json", FULL))
    assert [(f["rule"], f["line"]) for f in told["findings"]] == [("TT102", 6), ("TL001", 1), ("TT102", 9)]
    assert told["summary"] == {"error": 1, "warning": 1, "note": 1, "suppressed": 1, "baselined": 1}
    told = json.loads(render("json", FULL, RenderOptions(show_suppressed=True)))
    assert [(f["suppressed"], f["baselined"]) for f in told["findings"]] == [
        (None, False),
        ("our own fork", False),
        (None, True),
        (None, False),
        (None, False),
    ]


def test_any_stream_can_take_it() -> None:
    assert render("json", FULL).isascii()


def test_every_key_is_documented() -> None:
    told = json.loads(render("json", report(FIXABLE), RenderOptions(show_suppressed=True)))
    assert documentation is not None
    for key in (*told, *told["findings"][0], *told["findings"][0]["fix"], *told["summary"], *told["files"]):
        assert f"`{key}`" in documentation


def test_a_finding_in_a_file_without_text_has_no_fix() -> None:
    from dataclasses import replace

    made = replace(report(FIXABLE, NODES), texts={})
    assert [f["fix"] for f in json.loads(render("json", made))["findings"]] == [None, None]
