"""The data files of each Kubeflow Trainer release, their loader, and the script that writes them."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from trainlint.programs.kubeflow.facts import crds as schemas
from trainlint.programs.kubeflow.facts import release as kubeflow

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "tools" / "kubeflow_facts.py"
FACTS = Path(schemas.__file__).parent
RELEASES = {"2.0": "2.0.1", "2.1": "2.1.0", "2.2": "2.2.1", "2.3": "2.3.0"}
SHIPPED = {
    "2.0": "deepspeed-distributed mlx-distributed mpi-distributed torch-distributed "
    "torchtune-llama3.2-1b torchtune-llama3.2-3b",
    "2.1": "deepspeed-distributed mlx-distributed torch-distributed torch-distributed-with-cache "
    "torchtune-llama3.2-1b torchtune-llama3.2-3b torchtune-qwen2.5-1.5b",
    "2.2": "deepspeed-distributed jax-distributed mlx-distributed torch-distributed torch-distributed-with-cache "
    "torchtune-llama3.2-1b torchtune-llama3.2-3b torchtune-qwen2.5-1.5b xgboost-distributed",
}
SHIPPED["2.3"] = SHIPPED["2.2"]

each_release = pytest.mark.parametrize("release", RELEASES)


def test_every_file_belongs_to_a_known_release() -> None:
    found = {path.name for path in FACTS.glob("kubeflow-*.json")}
    assert found == {f"kubeflow-{release}{suffix}.json" for release in RELEASES for suffix in ("", "-runtimes")}


def test_the_table_has_every_release() -> None:
    assert {release: facts.patch for release, facts in kubeflow.RELEASES.items()} == RELEASES
    dates = [facts.date for facts in kubeflow.RELEASES.values()]
    assert dates == sorted(dates)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for date in dates)


@each_release
def test_the_table_is_sound(release: str) -> None:
    data = json.loads((FACTS / f"kubeflow-{release}.json").read_bytes())
    assert data["version"] == RELEASES[release]
    assert data["roots"].keys() == {"TrainJob", "TrainingRuntime"}
    nodes = data["nodes"]
    assert len({json.dumps(node) for node in nodes}) == len(nodes), "equal nodes are stored once"
    used = set(data["roots"].values())
    for index, node in enumerate(nodes):
        children = [*node.get("properties", {}).values(), *(node[key] for key in ("items", "values") if key in node)]
        assert all(0 <= child < index for child in children), "children stand first, so nothing can be circular"
        used.update(children)
        assert set(node.get("required", ())) <= node.get("properties", {}).keys()
        assert ("items" in node) == (node["type"] == "array")
        assert ("listKeys" in node) == (node.get("listType") == "map")
        assert all(re.fullmatch("[0-9a-f]{8}", digest) for digest in node.get("cel", ()))
        re.compile(node.get("pattern", ""))
        if node.get("listType") == "map":
            assert set(node["listKeys"]) <= nodes[node["items"]]["properties"].keys()
    assert used == set(range(len(nodes)))


@each_release
def test_every_key_of_the_table_is_read(release: str) -> None:
    data = json.loads((FACTS / f"kubeflow-{release}.json").read_bytes())
    keys = {key for node in data["nodes"] for key in node}
    snake = {re.sub("[A-Z]", lambda match: "_" + match[0].lower(), key) for key in keys}
    assert snake <= set(schemas.SchemaNode.__slots__)


@each_release
def test_schema(release: str) -> None:
    job = schemas.schema(release, "TrainJob")
    assert job.properties.keys() == {"apiVersion", "kind", "metadata", "spec", "status"}
    ref = job.properties["spec"].properties["runtimeRef"]
    assert ref.required == ("name",)
    assert ref.properties["kind"].default == "ClusterTrainingRuntime"
    env = job.properties["spec"].properties["trainer"].properties["env"]
    assert (env.type, env.list_type, env.list_keys) == ("array", "map", ("name",))
    assert env.items is not None
    assert env.items.required == ("name",)
    processes = job.properties["spec"].properties["trainer"].properties["numProcPerNode"]
    assert processes.type == ("int-or-string" if release in ("2.0", "2.1") else "integer")
    policy = schemas.schema(release, "TrainingRuntime").properties["spec"].properties["mlPolicy"]
    assert {"torch", "mpi"} <= policy.properties.keys()
    assert policy.cel


def test_a_release_is_built_once_and_an_unknown_one_is_an_error() -> None:
    assert schemas.schema("2.3", "TrainJob") is schemas.schema("2.3", "TrainJob")
    assert schemas.shipped_runtimes("2.3") is schemas.shipped_runtimes("2.3")
    with pytest.raises(FileNotFoundError):
        schemas.schema("1.9", "TrainJob")


@each_release
def test_pinned_modules(release: str) -> None:
    assert {"k8s.io/apimachinery", "sigs.k8s.io/jobset"} <= schemas.pinned_modules(release).keys()


@each_release
def test_shipped_runtimes(release: str) -> None:
    runtimes = schemas.shipped_runtimes(release)
    assert list(runtimes) == SHIPPED[release].split()
    for name, runtime in runtimes.items():
        assert runtime["apiVersion"] == "trainer.kubeflow.org/v1alpha1"
        assert runtime["kind"] == "ClusterTrainingRuntime"
        metadata, spec = runtime["metadata"], runtime["spec"]
        assert isinstance(metadata, dict)
        assert isinstance(spec, dict)
        assert metadata["name"] == name
        labels = metadata.get("labels", {})
        assert isinstance(labels, dict)
        if name != "mpi-distributed":
            assert name.startswith(str(labels["trainer.kubeflow.org/framework"]))
        unchecked = labels.get("trainer.kubeflow.org/webhook-validation") == "disabled"
        assert unchecked == (release == "2.3")
        policy = spec["mlPolicy"]
        assert isinstance(policy, dict)
        assert policy["numNodes"] == 1
        assert len(policy) == 2
        known(spec, schemas.schema(release, "TrainingRuntime").properties["spec"], name)
        assert f"torchtune-trainer:v{RELEASES[release]}" in json.dumps(runtime) or "torchtune" not in name


def known(value: schemas.Json, node: schemas.SchemaNode, place: str) -> None:
    if isinstance(value, dict):
        for key, child in value.items():
            below = node.properties.get(key) or node.values
            assert below is not None, f"{place}.{key}"
            known(child, below, f"{place}.{key}")
    elif isinstance(value, list):
        assert node.items is not None, place
        for item in value:
            known(item, node.items, place)


# --- the script


def crd(kind: str, schema: str) -> str:
    return (
        f"spec:\n  names: {{kind: {kind}}}\n  versions:\n"
        f"  - name: v1alpha1\n    schema:\n      openAPIV3Schema: {schema}\n"
    )


JOB = """{type: object, description: gone, properties: {
        a: {type: string, x-kubernetes-validations: [{rule: self != 'x', message: gone}]},
        b: {type: array, items: {type: string}, maxItems: 3},
        c: {additionalProperties: {type: string}, type: object},
        d: {anyOf: [{type: integer}, {type: string}], x-kubernetes-int-or-string: true}}}"""
RUNTIME = "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\nmetadata: {name: own}\n"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    files = {
        "go.mod": "require (\n\tk8s.io/api v0.1.0\n\tsigs.k8s.io/jobset v0.2.0\n)\n",
        "manifests/base/crds/trainer.kubeflow.org_trainjobs.yaml": crd("TrainJob", JOB),
        "manifests/base/crds/trainer.kubeflow.org_trainingruntimes.yaml": crd("TrainingRuntime", "{type: object}"),
        "manifests/base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml": crd("Cluster", "{type: object}"),
        "manifests/base/runtimes/kustomization.yaml": "resources: [own.yaml]\n",
        "manifests/base/runtimes/own.yaml": RUNTIME + "spec: {deep: [{containers: [{image: a/b}, {image: a/bc}]}]}\n",
        "manifests/overlays/runtimes/kustomization.yaml": "resources: [../../base/runtimes, 'https://elsewhere/x']\n"
        "labels: [{pairs: {l: v}, includeSelectors: false}]\nimages: [{name: a/b, newTag: v9}]\n",
    }
    for name, text in files.items():
        path = tmp_path / "module" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "module"


def run(module: Path, output: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "9.8.7", "--module", str(module), "--output", str(output), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_script_shares_equal_parts_and_applies_the_overlay(module: Path, tmp_path: Path) -> None:
    assert run(module, tmp_path).returncode == 0
    digest = script().cel_digest({"rule": "self != 'x'", "message": "another"})
    assert json.loads((tmp_path / "kubeflow-9.8.json").read_text(encoding="utf-8")) == {
        "version": "9.8.7",
        "modules": {"k8s.io/api": "v0.1.0", "sigs.k8s.io/jobset": "v0.2.0"},
        "roots": {"TrainJob": 5, "TrainingRuntime": 6},
        "nodes": [
            {"type": "string", "cel": [digest]},
            {"type": "string"},
            {"type": "array", "maxItems": 3, "items": 1},
            {"type": "object", "values": 1},
            {"type": "int-or-string"},
            {"type": "object", "properties": {"a": 0, "b": 2, "c": 3, "d": 4}},
            {"type": "object"},
        ],
    }
    (runtime,) = json.loads((tmp_path / "kubeflow-9.8-runtimes.json").read_text(encoding="utf-8"))["runtimes"].values()
    assert runtime["metadata"] == {"name": "own", "labels": {"l": "v"}}
    assert runtime["spec"] == {"deep": [{"containers": [{"image": "a/b:v9"}, {"image": "a/bc"}]}]}


@pytest.mark.parametrize(
    ("file", "text", "trouble"),
    [
        ("base/crds/trainer.kubeflow.org_trainjobs.yaml", crd("T", "{type: object, oneOf: []}"), "oneOf"),
        ("base/crds/trainer.kubeflow.org_trainjobs.yaml", crd("T", "{properties: {}}"), "no type"),
        ("base/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml", crd("C", "{type: string}"), "differs"),
        ("overlays/runtimes/kustomization.yaml", "resources: [../../base/runtimes]\nnamePrefix: x-\n", "namePrefix"),
    ],
)
def test_the_script_stops_at_what_it_does_not_know(
    module: Path, tmp_path: Path, file: str, text: str, trouble: str
) -> None:
    (module / "manifests" / file).write_text(text, encoding="utf-8")
    result = run(module, tmp_path)
    assert (result.returncode, list(tmp_path.glob("*.json"))) == (1, [])
    assert trouble in result.stderr


def test_the_script_shows_cel_rules(module: Path, tmp_path: Path) -> None:
    result = run(module, tmp_path, "--show-cel")
    assert "TrainJob.a" in result.stdout
    assert "self != 'x'" in result.stdout


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kubeflow_facts", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
