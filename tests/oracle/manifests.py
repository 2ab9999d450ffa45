#!/usr/bin/env python3
"""Random TrainJobs and runtimes, sound ones with a few changes anywhere: at the places that any release's CRD knows.

    manifests.py SEED FILES DOCUMENTS    writes that many files into the current folder

Most of the jobs get one or two changes: a value replaced by one of another kind, a field added that the structure
knows or does not, something removed or doubled. They are not meant to be realistic but to reach every check.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import TypeAlias

from trainlint.programs.kubeflow.facts.crds import SchemaNode, schema

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
Object: TypeAlias = dict[str, Json]

GROUP = "trainer.kubeflow.org"
STEP = f"{GROUP}/trainjob-ancestor-step"
RELEASES = ("2.0", "2.1", "2.2", "2.3")
SHIPPED = (
    "torch-distributed torch-distributed-with-cache deepspeed-distributed mlx-distributed jax-distributed "
    "xgboost-distributed mpi-distributed torchtune-llama3.2-1b torchtune-llama3.2-3b torchtune-qwen2.5-1.5b"
).split()
ARGS = (
    "lr=1e-4 epochs=3 model.lora_attn_modules=[q_proj] model.quantize_base=True model.quantize_base=false "
    "model.quantize_base model.use_dora=True model.use_dora output_dir=/o tokenizer.path=/t tokenizer.merges_file "
    "checkpointer.checkpoint_dir=/c --output_dir=/o"
).split()
ENV = (
    "LOG HF_TOKEN PET_NNODES PET_NODE_RANK DMLC_TASK_ID DMLC_NUM_WORKER OMPI_MCA_plm_rsh_args OMPI_MCA_other A A"
).split()
NAMES = ["node", "launcher", "dataset-initializer", "model-initializer", "side", "initializer", "flux-installer", "x"]
ODD_SCALARS: tuple[Json, ...] = (
    *(None, True, False, 0, 1, -1, 2, 2**31, -(2**31) - 1, 2**63, 1.5, 2.0, 1e3, 1e20, 1e300),
    *("", "x", "auto", "1", "yes", "null", "5Gi", " 5Gi", "500m", "5GB", "1e3", "1e1.5", "-1", "+.5Ki", "1e99"),
    *("2026-01-31T12:00:00Z", "2026-01-31", "2026-13-31T12:00:00Z", "2026-01-31T12:00:00.5+02:00"),
    *("a/b", "a.io/x", "A.io/x", "hf://a/b", "s3://", "InOrder", "Delete", "Fail job", "node", "a" * 64, "a" * 254),
)
ODD_COLLECTIONS = (
    '[] {} [null] [{}] [[]] [[{"a":1}]] ["a"] ["a","a"] [1] {"a":"b"} {"a":1} {"a":null} {"name":"x"} [null,null] '
    '[{"name":"x"},{"name":"x"}] [{"name":"x"},{"name":"y","z":null}] "tune" ["tune","run"]'
).split()
RAW = [
    "yes",
    "no",
    "on",
    "y",
    "~",
    "010",
    "0o7",
    "1_0",
    "0x1f",
    "0b11",
    ".5",
    "1.",
    "1e3",
    "+1",
    ".inf",
    "2026-01-31",
    "-0",
]


class Raw(str):
    """A scalar that is written as it stands, without quotes."""


class Maker:
    """Random objects from one source of chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.structures = {
            kind: [schema(release, kind) for release in RELEASES] for kind in ("TrainJob", "TrainingRuntime")
        }

    def pick(self, *choices: Json) -> Json:
        return self.chance.choice(choices)

    def word(self, *choices: str) -> str:
        return self.chance.choice(choices)

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    # sound objects

    def runtime(self, name: str, kind: str) -> Object:
        policy: Object = {"numNodes": self.pick(1, 1, 2)}
        policies: list[Object] = [
            {"torch": {}},
            {"torch": {}},
            {"torch": {"envInjection": {"targets": [{"jobName": self.pick("node", "x"), "containerNames": ["side"]}]}}},
            {"mpi": {"runLauncherAsNode": self.often(0.7)}},
            {"mpi": {"numProcPerNode": 2, "mpiImplementation": "OpenMPI"}},
            {"flux": {"numProcPerNode": self.pick(1, 2)}},
            {"jax": {}},
            {"xgboost": {}},
            {"torch": {"numProcPerNode": self.pick("auto", 2, "gpu", "1")}},
            {"torch": {"elasticPolicy": {"minNodes": 1}}},
            {},
        ]
        policy.update(self.chance.choice(policies))
        jobs: list[Json] = [self.job("node", "trainer", "node")]
        for step in ("dataset-initializer", "model-initializer"):
            if self.often(0.4):
                jobs.insert(0, self.job(step, step, step))
        if self.often(0.2):
            jobs.append(self.job("launcher", "", "node"))
        template: Object = {"spec": {"replicatedJobs": jobs}}
        if self.often(0.2):
            template["metadata"] = {"annotations": {"scheduling.volcano.sh/queue-name": self.pick("", "q")}}
        spec: Object = {"mlPolicy": policy, "template": template}
        if self.often(0.3):
            spec["podGroupPolicy"] = self.pick({"volcano": {}}, {"coscheduling": {}}, {"volcano": {}})
        metadata: Object = {"name": name}
        if kind == "TrainingRuntime":
            metadata["namespace"] = "team"
        if self.often(0.2):
            metadata["labels"] = {
                f"{GROUP}/{self.pick('support', 'webhook-validation')}": self.pick("deprecated", "disabled")
            }
        return {"apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}

    def job(self, name: str, step: str, container: str) -> Object:
        first: Object = {"name": container, "image": "example.com/i:1"}
        if self.often(0.6):
            first["volumeMounts"] = [{"name": self.pick("initializer", "initializer", "x"), "mountPath": "/w"}]
        if self.often(0.3):
            first["resources"] = {"limits": {self.word("nvidia.com/gpu", "amd.com/gpu", "cpu"): self.pick(1, 2, "8")}}
        pod: Object = {"containers": [first]}
        if self.often(0.3):
            pod["initContainers"] = [{"name": self.pick("side", "side", "flux-installer"), "image": "s"}]
        if self.often(0.1):
            pod["priorityClassName"] = self.pick("high", "system-node-critical", "")
        if self.often(0.1):
            pod["imagePullSecrets"] = [{"name": "s"}]
        template: Object = {"spec": {"template": {"spec": pod}}}
        if step:
            template["metadata"] = {"labels": {STEP: step}}
        made: Object = {"name": name, "template": template}
        if self.often(0.1):
            made["replicas"] = self.pick(1, 2)
        return made

    def train_job(self, number: int, runtimes: list[tuple[str, str]]) -> Object:
        name, kind = self.chance.choice(runtimes)
        ref: Object = {"name": name}
        if kind == "TrainingRuntime" or self.often(0.2):
            ref["kind"] = kind
        if self.often(0.2):
            ref["apiGroup"] = GROUP
        spec: Object = {"runtimeRef": ref}
        trainer: Object = {}
        if self.often(0.6):
            trainer["numNodes"] = self.pick(1, 1, 1, 2)
        if self.often(0.5):
            trainer["numProcPerNode"] = self.pick(1, 1, 2, 0, "auto")
        if self.often(0.4):
            trainer["command"] = self.pick(["tune", "run"], ["tune", "run"], ["python", "t.py"])
            trainer["args"] = [self.chance.choice(ARGS) for _ in range(self.chance.randint(0, 3))]
        if self.often(0.3):
            names = self.chance.sample(ENV, self.chance.randint(1, 2))
            trainer["env"] = [{"name": env, "value": "v"} for env in names]
        if self.often(0.4):
            gpu = self.chance.choice(["nvidia.com/gpu", "amd.com/gpu", "cpu", "memory"])
            trainer["resourcesPerNode"] = {self.word("limits", "requests"): {gpu: self.pick(1, 2, "1", "500m", "4Gi")}}
        if trainer or self.often(0.2):
            spec["trainer"] = trainer
        if self.often(0.2):
            uri = self.pick("hf://a/b", "s3://b/k", "", "/local")
            spec["initializer"] = {self.word("dataset", "model"): self.pick({"storageUri": uri}, {})}
        if self.often(0.3):
            self.override(spec)
        if self.often(0.1):
            spec["managedBy"] = self.pick("kueue.x-k8s.io/multikueue", f"{GROUP}/trainjob-controller", "me")
        metadata: Object = {"name": f"job-{number}"}
        if kind == "TrainingRuntime" or self.often(0.2):
            metadata["namespace"] = self.pick("team", "team", "other")
        if self.often(0.05):
            metadata["generateName"] = self.pick("run-", "Run-", "9-")
            metadata.pop("name")
        return {"apiVersion": f"{GROUP}/v1alpha1", "kind": "TrainJob", "metadata": metadata, "spec": spec}

    def override(self, spec: Object) -> None:
        pod: Object = {}
        for _ in range(self.chance.randint(1, 2)):
            pod.update(
                self.chance.choice(
                    [
                        {"containers": [{"name": self.chance.choice(NAMES), "env": [{"name": "A", "value": "b"}]}]},
                        {
                            "containers": [
                                {"name": self.chance.choice(NAMES), "volumeMounts": [{"name": "v", "mountPath": "/w"}]}
                            ]
                        },
                        {"initContainers": [{"name": self.chance.choice(NAMES)}]},
                        {"volumes": [{"name": "v", "emptyDir": {"sizeLimit": self.pick("1Gi", 5, 1.5)}}]},
                        {"nodeSelector": {"a": "b"}},
                        {"tolerations": [{"operator": "Exists"}]},
                        {"imagePullSecrets": [self.pick({}, {"name": "s"}, {"name": ""})]},
                        {"schedulingGates": [{"name": "g"}]},
                        {"securityContext": {"runAsUser": self.pick(0, 1000)}},
                    ]
                )
            )
        job = self.pick("node", "node", "node", "launcher", "dataset-initializer", "x")
        kind = self.chance.choice(["podSpecOverrides", "podTemplateOverrides", "runtimePatches", "runtimePatches"])
        if kind == "podSpecOverrides":
            entries: list[Json] = [{"targetJobs": [{"name": job}], **pod}]
        elif kind == "podTemplateOverrides":
            entries = [{"targetJobs": [{"name": job}], "spec": pod}]
        else:
            template: Object = {
                "spec": {"replicatedJobs": [{"name": job, "template": {"spec": {"template": {"spec": pod}}}}]}
            }
            if self.often(0.2):
                template["metadata"] = {"annotations": {"scheduling.volcano.sh/queue-name": self.pick("", "q")}}
            entries = [{"manager": self.pick("a.io/x", "a.io/x", "me"), "trainingRuntimeSpec": {"template": template}}]
            if self.often(0.5):
                entries = [{**entry, "time": "2026-01-31T12:00:00Z"} for entry in entries if isinstance(entry, dict)]
        if self.often(0.2):
            entries += json.loads(json.dumps(entries))
            last = entries[-1]
            if isinstance(last, dict) and "manager" in last:
                last["manager"] = self.pick("a.io/x", "b.io/x")
        spec[kind] = entries

    # changes

    def changed(self, made: Object) -> None:
        """Change something in the object."""
        kind = "TrainJob" if made.get("kind") == "TrainJob" else "TrainingRuntime"
        root = self.chance.choice(self.structures[kind])
        places = list(_collections(made, root))
        spec = [place for place in places if place[0] is not made]
        holder, node = self.chance.choice(spec if spec and self.often(0.95) else places)
        change = self.chance.choice(
            [self.replace, self.replace, self.add_known, self.add_known, self.add_odd, self.remove]
        )
        change(holder, node)

    def replace(self, holder: Json, node: SchemaNode | None) -> None:
        if isinstance(holder, dict) and holder:
            holder[self.chance.choice(list(holder))] = self.odd()
        elif isinstance(holder, list) and holder:
            holder[self.chance.randrange(len(holder))] = self.odd()

    def remove(self, holder: Json, node: SchemaNode | None) -> None:
        if isinstance(holder, dict) and holder:
            holder.pop(self.chance.choice(list(holder)))
        elif isinstance(holder, list) and holder:
            holder.append(json.loads(json.dumps(self.chance.choice(holder))))

    def add_odd(self, holder: Json, node: SchemaNode | None) -> None:
        if isinstance(holder, dict):
            key = self.chance.choice(["foo", "Name", "numNode", "labels", "a.b/c", "name", "env", "status", "0"])
            holder[key] = self.odd()
        elif isinstance(holder, list):
            holder.append(self.odd())

    def add_known(self, holder: Json, node: SchemaNode | None) -> None:
        if isinstance(holder, dict) and node is not None and node.properties:
            name = self.chance.choice(list(node.properties))
            holder[name] = self.fitting(node.properties[name], 4)
        elif isinstance(holder, list) and node is not None and node.items is not None:
            holder.append(self.fitting(node.items, 4))
        else:
            self.add_odd(holder, node)

    def odd(self) -> Json:
        if self.often(0.15):
            return Raw(self.chance.choice(RAW))
        if self.often(0.3):
            collection: Json = json.loads(self.chance.choice(ODD_COLLECTIONS))
            return collection
        return self.chance.choice(ODD_SCALARS)

    def fitting(self, node: SchemaNode, depth: int) -> Json:
        """Something that the structure takes here, mostly."""
        if self.often(0.1):
            return self.odd()
        if node.enum:
            return self.pick(*node.enum, "x")
        if node.type == "object":
            if node.values is not None:
                return {self.chance.choice(["a", "cpu", "b.c/d"]): self.fitting(node.values, depth - 1)}
            wanted = set(node.required) if self.often(0.8) else set()
            if node.properties and depth > 0:
                wanted |= set(self.chance.sample(list(node.properties), min(2, len(node.properties))))
            return {name: self.fitting(node.properties[name], depth - 1) for name in sorted(wanted)}
        if node.type == "array":
            count = self.chance.choice([0, 1, 1, 2]) if depth > 0 else 0
            return [self.fitting(node.items, depth - 1) for _ in range(count)] if node.items else []
        plain: dict[str, Json] = {
            "integer": self.pick(0, 1, 5, -1, 2**31, 2.0),
            "number": self.pick(0, 1.5),
            "boolean": self.pick(True, False),
            "int-or-string": self.pick(1, "1", "auto", "5Gi", 1.5, "x", 2**31),
            "string": self.pick("x", "node", "a.io/x", "", "2026-01-31T12:00:00Z"),
        }
        return plain[node.type]


def _collections(value: Json, node: SchemaNode | None) -> list[tuple[Json, SchemaNode | None]]:
    """Every mapping and list with its structure."""
    found: list[tuple[Json, SchemaNode | None]] = []
    if isinstance(value, dict):
        found.append((value, node))
        for key, child in value.items():
            found += _collections(child, node.properties.get(key, node.values) if node else None)
    elif isinstance(value, list):
        found.append((value, node))
        for child in value:
            found += _collections(child, node.items if node else None)
    return found


def write(folder: Path, seed: int, files: int, documents: int) -> None:
    """Write random files, each with a few runtimes and a number of TrainJobs."""
    for number in range(files):
        maker = Maker(seed * 100_003 + number)
        objects: list[Object] = []
        runtimes: list[tuple[str, str]] = []
        for index in range(maker.chance.randint(2, 6)):
            name = maker.chance.choice(
                [f"own-{index}", "torchtune-llama3.3-70b", "mine-qwen2.5-1.5b", "tt-llama3.2-1b"]
            )
            kind = maker.chance.choice(["ClusterTrainingRuntime"] * 4 + ["TrainingRuntime"])
            if (name, kind) not in runtimes:
                runtimes.append((name, kind))
                objects.append(maker.runtime(name, kind))
        named = runtimes * 3 + [(name, "ClusterTrainingRuntime") for name in (*SHIPPED, "nope")]
        objects += [maker.train_job(index, named) for index in range(documents)]
        for made in objects:
            for _ in range(maker.chance.choice([0, 1, 1, 2] if made.get("kind") == "TrainJob" else [0, 0, 0, 1])):
                maker.changed(made)
        text = "---\n".join(_yaml(made, 0) for made in objects)
        (folder / f"s{seed}-{number:04}.yaml").write_text(text, encoding="utf-8")


def _yaml(value: Json, depth: int) -> str:
    """Block style for what has content; scalars as JSON, raw ones as they are."""
    pad = "  " * depth
    if isinstance(value, dict) and value:
        return "".join(f"{pad}{json.dumps(key)}:{_after(child, depth)}" for key, child in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{pad}-{_after(child, depth)}" for child in value)
    return f"{pad}{json.dumps(value)}\n"


def _after(value: Json, depth: int) -> str:
    if isinstance(value, (dict, list)) and value:
        return "\n" + _yaml(value, depth + 1)
    return f" {value}\n" if isinstance(value, Raw) else f" {json.dumps(value)}\n"


if __name__ == "__main__":
    write(Path.cwd(), *map(int, sys.argv[1:4]))
