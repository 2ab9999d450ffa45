"""`trainlint resolve` against what the real controllers built, and its output formats."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from train_jobs import cluster_runtime, train_job
from trainlint.cli import main
from trainlint.resolve import as_json, canonical, resolve
from trainlint.settings import Overrides
from trainlint.targets import Target

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


JOB = train_job(
    "torchtune-llama3.2-1b",
    "command: [tune, run]",
    "env:",
    "  - name: TOKEN",
    "    valueFrom:",
    "      secretKeyRef: {name: hub, key: token}",
    "resourcesPerNode:",
    "  limits: {nvidia.com/gpu: 1000m}",
)


def _shown(folder: Path, *options: str) -> str:
    result = CliRunner().invoke(main, ["resolve", "--isolated", *options, str(folder)])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_text(tmp_path: Path) -> None:
    """A block for each job, with the place of each value behind it."""
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    text = _shown(tmp_path).replace(f"{tmp_path.as_posix()}/", "")
    assert text.splitlines()[0] == (
        "job.yaml:1: TrainJob tune with ClusterTrainingRuntime torchtune-llama3.2-1b, Kubeflow Trainer 2.3"
    )
    assert "  node: 1 pod  # the shipped runtime\n    processes per node: auto  # made from job.yaml:8\n" in text
    assert "      command: tune run full_finetune_single_device --config llama3_2/1B_full_single_device" in text
    assert "      env TOKEN=(secretKeyRef hub token)  # job.yaml:11\n" in text
    assert "      limits nvidia.com/gpu: 1  # job.yaml:15\n" in text


def test_json(tmp_path: Path) -> None:
    """Values and where they come from: the job, the runtime or the release."""
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    (job,) = json.loads(_shown(tmp_path, "--format", "json"))["jobs"]
    assert (job["name"], job["release"], job["admitted"], job["stops"]) == ("tune", "2.3", True, None)
    assert job["runtime"] == {
        "kind": "ClusterTrainingRuntime",
        "name": "torchtune-llama3.2-1b",
        "path": None,
        "line": None,
    }
    node = job["replicatedJobs"][2]
    assert (node["name"], node["step"], node["parallelism"], node["processesPerNode"]) == ("node", "trainer", 1, "auto")
    (container,) = node["containers"]
    assert container["from"]["command"]["by"] == "job"
    assert container["from"]["image"] == {"by": "runtime", "path": None, "line": None}
    assert {env["name"]: env["from"]["by"] for env in container["env"]} == {
        "TOKEN": "job",
        "PET_NNODES": "release",
        "PET_NPROC_PER_NODE": "release",
        "PET_NODE_RANK": "release",
    }


def test_what_is_not_known(tmp_path: Path) -> None:
    """A runtime found nowhere, a job that is refused, and a controller that stops are said to be so."""
    job = JOB.replace("torchtune-llama3.2-1b", "team")
    (tmp_path / "job.yaml").write_text(job.replace("name: tune", "name: Tune"), encoding="utf-8")
    text = _shown(tmp_path)
    assert "refused at admission" in text
    assert "what it starts is not known" in text
    runtime = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: team
spec:
  mlPolicy:
    flux: {}
  template:
    spec: {}
"""
    (tmp_path / "job.yaml").write_text(f"{runtime}---\n{job}", encoding="utf-8")
    assert "starts nothing: the controller crashes on a Flux runtime without spec.trainer.numNodes" in _shown(tmp_path)


def test_two_definitions_of_a_runtime_are_both_shown(tmp_path: Path) -> None:
    """Overlays: one block for each."""
    for nodes in (1, 2):
        (tmp_path / f"runtime-{nodes}.yaml").write_text(cluster_runtime("team", f"numNodes: {nodes}"), encoding="utf-8")
    (tmp_path / "job.yaml").write_text(JOB.replace("torchtune-llama3.2-1b", "team"), encoding="utf-8")
    assert [line.split("#")[0].strip() for line in _shown(tmp_path).splitlines() if " pod" in line] == [
        "node: 1 pod",
        "node: 2 pods",
    ]


def test_a_missing_path_is_wrong_use(tmp_path: Path) -> None:
    """Exit 2, with a message on standard error."""
    result = CliRunner().invoke(main, ["resolve", str(tmp_path / "nowhere")])
    assert result.exit_code == 2
    assert "nowhere" in result.stderr


def test_a_patch_of_kustomizes_is_no_job(tmp_path: Path) -> None:
    job = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainJob\nmetadata: {name: a}\nspec: {}\n"
    (tmp_path / "nodes.yaml").write_text(job, encoding="utf-8")
    assert len(resolve([tmp_path], Overrides(isolated=True))) == 1
    (tmp_path / "kustomization.yaml").write_text("patches: [{path: nodes.yaml}]\n", encoding="utf-8")
    assert resolve([tmp_path], Overrides(isolated=True)) == []


def test_without_a_job(tmp_path: Path) -> None:
    assert CliRunner().invoke(main, ["resolve", str(tmp_path)]).stdout == "found no TrainJob\n"
    assert json.loads(CliRunner().invoke(main, ["resolve", "--format", "json", str(tmp_path)]).stdout)["jobs"] == []
