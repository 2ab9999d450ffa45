"""`trainlint resolve` against what the real controllers built, and its output formats."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from trainlint.report import Target
from trainlint.resolve import as_json, canonical, resolve
from trainlint.settings import Overrides

VERDICTS = os.environ.get("TRAINLINT_VERDICTS", "")
"""A folder of recorded cases: `kubeflow-trainer/verdicts.jsonl` and a folder for each case."""

UNCLEAR = "<unclear>"
VERSIONS = ("2.0.1", "2.1.0", "2.2.1", "2.3.0")


def built(folder: Path, version: str) -> dict[tuple[int, str], list[object]]:
    """The containers that each job of a folder starts, by document and name, in the recorded cases' own form."""
    target = {"kubeflow-trainer": Target((version,), "option")}
    found = json.loads(as_json(resolve([folder], Overrides(targets=target, runtimes="closed", isolated=True))))
    return {(job["document"], job["name"]): [_runs(pods) for pods in job["replicatedJobs"]] for job in found["jobs"]}


def _runs(pods: dict[str, object]) -> dict[str, object]:
    containers = pods["containers"]
    assert isinstance(containers, list)
    return {
        "job": pods["name"],
        "parallelism": pods["parallelism"],
        "containers": [
            {
                "name": container["name"],
                "command": _words(container["command"]),
                "args": _words(container["args"]),
                "env": sorted(_variable(env) for env in container["env"]),
            }
            for container in containers
        ],
    }


def _words(words: list[str | None] | None) -> list[str] | None:
    return None if words is None else [UNCLEAR if word is None else word for word in words]


def _variable(env: dict[str, object]) -> str:
    return (
        f"{env['name']}={UNCLEAR if env['value'] is None else env['value']}"
        if "value" in env
        else f"{env['name']}=<ref>"
    )


def _recorded(pods: list[dict[str, object]]) -> list[object]:
    """A recorded answer without resources; the host of shipped images is left out of recordings."""
    text = json.dumps(pods).replace("IMAGE-HOST", "ghcr.io")
    found = json.loads(text)
    for container in (container for pod in found for container in pod["containers"]):
        container["env"].sort()
        container.pop("resources", None)
    return list(found)


def _is_random(found: object) -> bool:
    """Several resources with `gpu` in their name: the controller's own answer changes from run to run."""
    return UNCLEAR in json.dumps(found)


@pytest.mark.skipif(not VERDICTS, reason="TRAINLINT_VERDICTS names no recorded cases")
@pytest.mark.parametrize("version", VERSIONS)
def test_equals_what_the_controllers_built(version: str, tmp_path: Path) -> None:
    """Command, args, environment and parallelism of every container of every admitted job."""
    folder = Path(VERDICTS) / "kubeflow-trainer"
    rows = [json.loads(line) for line in (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()]
    wanted: dict[str, dict[tuple[int, str], object]] = {}
    for row in rows:
        # a generated name is recorded as empty
        if row["version"] == version and row["verdict"] == "accept" and row.get("runs") and row["name"]:
            wanted.setdefault(row["case"], {})[row["document"], row["name"]] = _recorded(row["runs"])
    assert wanted
    wrong, random = {}, 0
    for case, jobs in wanted.items():
        copy = shutil.copytree(folder / case, tmp_path / case)
        found = built(copy, version)
        for key, runs in jobs.items():
            if found.get(key) != runs:
                random += _is_random(found[key])
                wrong.update({} if _is_random(found[key]) else {(case, *key): (runs, found[key])})
    assert not wrong
    assert random < 5


@pytest.mark.parametrize(
    ("written", "canonically"),
    [
        ("1000m", "1"),
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("0", "0"),
        ("-1", "-1"),
        ("x", None),
    ],
)
def test_canonical_quantities(written: str, canonically: str | None) -> None:
    """Amounts are shown as Kubernetes writes them back."""
    assert canonical(written) == canonically
