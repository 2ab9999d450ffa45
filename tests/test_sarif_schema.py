"""The demo's SARIF before two judges: the 2.1.0 JSON schema, and Microsoft's validator with GitHub's requirements.

Neither sees everything the other does. Both come from npm (`make test` fetches them where npm is present) and work
without a network. A judge that passes everything proves nothing, so both are shown broken documents as well.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import jsonschema
import pytest

from external import DEMO, ROOT, need, run

Document: TypeAlias = dict[str, Any]
# Its notes are left out: they ask for message ids and version control details, and whether links can be reached.
KINDS = ("--rule-kind", "Sarif;Ghas", "--level", "Error;Warning")


def package() -> Path:
    """The validator's package for this system, which carries the schema too."""
    found = sorted((ROOT / ".cache" / "npm" / "node_modules" / "@microsoft").glob("sarif-multitool-*/sarif-2.1.0.json"))
    need(found, "@microsoft/sarif-multitool from npm (make test fetches it where npm is)")
    return found[0].parent


@pytest.fixture(scope="module")
def schema_errors() -> Callable[[Document], list[str]]:
    schema = json.loads((package() / "sarif-2.1.0.json").read_text(encoding="utf-8-sig"))
    validator = jsonschema.validators.validator_for(schema)(schema)
    return lambda document: [error.json_path for error in validator.iter_errors(document)]


@pytest.fixture
def multitool_complaints(tmp_path: Path) -> Callable[[Document], list[str]]:
    name = "Sarif.Multitool.exe" if os.name == "nt" else "Sarif.Multitool"
    tool = package() / name

    def complaints(document: Document) -> list[str]:
        judged, verdict = tmp_path / "judged.sarif", tmp_path / "verdict.sarif"
        judged.write_text(json.dumps(document), encoding="utf-8")
        # Its exit code is 0 for any verdict, so what it wrote is what counts.
        done = run(
            [str(tool), "validate", str(judged), "--output", str(verdict), "--log", "ForceOverwrite", *KINDS],
            cwd=tmp_path,
            env={**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"},
            network=False,
        )
        assert verdict.exists(), done.stdout + done.stderr
        said = json.loads(verdict.read_text(encoding="utf-8-sig"))["runs"][0]
        assert said["invocations"][0]["executionSuccessful"], done.stdout
        return [f"{result['ruleId']} {result['message'].get('arguments')}" for result in said["results"]]

    return complaints


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Document:
    target = tmp_path_factory.mktemp("sarif") / "demo.sarif"
    command = [sys.executable, "-m", "trainlint", "check", "--format", "sarif", "--output", str(target), str(DEMO)]
    done = run(command, cwd=ROOT, env=dict(os.environ))
    assert done.returncode == 1, done.stderr
    document: Document = json.loads(target.read_text(encoding="utf-8"))
    return document


def first(document: object, *path: str | int) -> object:
    """The node at a path of keys and indices."""
    for step in path:
        assert isinstance(document, dict | list)
        document = document[step]  # type: ignore[index]
    return document


REGION = ("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region")
ARTIFACT = (*REGION[:-1], "artifactLocation")


def broken(document: Document, path: tuple[str | int, ...], value: object) -> Document:
    """The document with one node replaced, or taken out when the value is None."""
    other = copy.deepcopy(document)
    parent = first(other, *path[:-1])
    assert isinstance(parent, dict)
    if value is None:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return other


def test_schema(demo: Document, schema_errors: Callable[[Document], list[str]]) -> None:
    assert schema_errors(demo) == []


def test_multitool(demo: Document, multitool_complaints: Callable[[Document], list[str]]) -> None:
    assert multitool_complaints(demo) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("runs", 0, "results", 0, "level"), "fatal"),
        ((*REGION, "startLine"), 0),
        (("runs", 0, "nonsense"), 1),
    ],
)
def test_the_schema_can_fail(
    demo: Document, schema_errors: Callable[[Document], list[str]], path: tuple[str | int, ...], value: object
) -> None:
    assert schema_errors(broken(demo, path, value))


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        (("runs", 0, "results", 0, "ruleIndex"), 9999, "SARIF1009"),
        ((*REGION, "startLine"), 9999, "SARIF1007"),
        ((*ARTIFACT, "uri"), "a b.yaml", "SARIF1002"),
        (("runs", 0, "tool", "driver", "rules", 0, "fullDescription"), None, "GH2012"),
        (("runs", 0, "results"), None, "GH1014"),
    ],
)
def test_the_multitool_can_fail(
    demo: Document,
    multitool_complaints: Callable[[Document], list[str]],
    path: tuple[str | int, ...],
    value: object,
    complaint: str,
) -> None:
    assert complaint in {said.split()[0] for said in multitool_complaints(broken(demo, path, value))}
