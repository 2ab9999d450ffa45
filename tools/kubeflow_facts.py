#!/usr/bin/env python3
"""Writes the CRDs and runtimes of a release of Kubeflow Trainer into linter/trainlint/programs/kubeflow/facts/.

    tools/kubeflow_facts.py VERSION...            e.g. 2.3.0, from the released Go module (needs go)
    tools/kubeflow_facts.py --module DIR VERSION  the same from an unpacked module or a checkout
    tools/kubeflow_facts.py --show-cel VERSION... print the CEL rules of the digests instead

There are two files for each release:

- kubeflow-MINOR.json: the structure of the CRDs in manifests/base/crds, as a table of nodes; equal parts are stored
  once, children before their parents. CEL rules are stored as digests of their text, so that a test notices a rule that
  a release adds or changes. TrainingRuntime also stands for ClusterTrainingRuntime (the script checks that).
- kubeflow-MINOR-runtimes.json: the runtimes of the overlays `runtimes` and `data-cache`, with the labels and image tags
  that the overlays add.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from ruamel.yaml import YAML

Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None
Object: TypeAlias = dict[str, Json]

FACTS = Path(__file__).resolve().parent.parent / "linter" / "trainlint" / "programs" / "kubeflow" / "facts"
MODULE = "github.com/kubeflow/trainer/v2"
GROUP = "trainer.kubeflow.org"
KINDS = {"TrainJob": "trainjobs", "TrainingRuntime": "trainingruntimes"}
OVERLAYS = ("runtimes", "data-cache")
# The modules whose code decides on metadata, quantities, CRD validation, defaulting, JobSet and queues.
PINNED = (
    "k8s.io/api",
    "k8s.io/apimachinery",
    "sigs.k8s.io/controller-runtime",
    "sigs.k8s.io/jobset",
    "sigs.k8s.io/scheduler-plugins",
    "volcano.sh/apis",
)

# OpenAPI keyword → key in the table. A keyword that facts/crds.py could not read stops the script.
KEPT = {
    "type": "type",
    "format": "format",
    "required": "required",
    "default": "default",
    "enum": "enum",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "minLength": "minLength",
    "maxLength": "maxLength",
    "minItems": "minItems",
    "maxItems": "maxItems",
    "minProperties": "minProperties",
    "x-kubernetes-list-type": "listType",
    "x-kubernetes-list-map-keys": "listKeys",
}
# Descriptions, and keywords for merges, which do not matter for the admission of a new object.
DROPPED = {"description", "x-kubernetes-map-type"}
INT_OR_STRING: Json = [{"type": "integer"}, {"type": "string"}]


class Unexpected(Exception):
    """The release has something that the table cannot express yet."""


def mapping(value: Json) -> Object:
    if not isinstance(value, dict):
        raise Unexpected(f"a mapping was expected: {value!r:.80}")
    return value


def sequence(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise Unexpected(f"a list was expected: {value!r:.80}")
    return value


def load_all(path: Path) -> Iterator[Object]:
    for document in YAML(typ="safe", pure=True).load_all(path.read_text(encoding="utf-8")):
        if document is not None:
            yield mapping(document)


def load(path: Path) -> Object:
    (document,) = load_all(path)
    return document


# --- the CRDs


def cel_digest(rule: Object) -> str:
    """A digest of a CEL rule, which changes with its expression and with the field that it names."""
    told = {key: rule[key] for key in ("rule", "fieldPath") if key in rule}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:8]


class Table:
    """Schema nodes, equal ones stored once, children before parents."""

    def __init__(self) -> None:
        self.nodes: list[Object] = []
        self.index: dict[str, int] = {}

    def add(self, schema: Object, place: str) -> int:
        node: Object = {}
        rest = {key: value for key, value in schema.items() if key not in DROPPED}
        if rest.pop("x-kubernetes-int-or-string", False):
            if rest.pop("anyOf", None) != INT_OR_STRING or "type" in rest:
                raise Unexpected(f"{place}: an unusual int-or-string")
            node["type"] = "int-or-string"
        elif "type" not in rest:
            raise Unexpected(f"{place}: no type")
        if rest.get("default", "") is None:
            raise Unexpected(f"{place}: a null default")
        for keyword, key in KEPT.items():
            if keyword in rest:
                node[key] = rest.pop(keyword)
        if rules := rest.pop("x-kubernetes-validations", None):
            node["cel"] = [cel_digest(mapping(rule)) for rule in sequence(rules)]
        if properties := rest.pop("properties", None):
            node["properties"] = {
                name: self.add(mapping(child), f"{place}.{name}") for name, child in mapping(properties).items()
            }
        if items := rest.pop("items", None):
            node["items"] = self.add(mapping(items), f"{place}[*]")
        if values := rest.pop("additionalProperties", None):
            node["values"] = self.add(mapping(values), f"{place}.*")
        if rest:
            raise Unexpected(f"{place}: unknown keywords {sorted(rest)}")
        text = compact(node)
        if text not in self.index:
            self.index[text] = len(self.nodes)
            self.nodes.append(node)
        return self.index[text]


def crd_schema(module: Path, plural: str) -> Object:
    crd = mapping(load(module / "manifests" / "base" / "crds" / f"{GROUP}_{plural}.yaml")["spec"])
    versions = [mapping(version) for version in sequence(crd["versions"])]
    if [version["name"] for version in versions] != ["v1alpha1"]:
        raise Unexpected(f"{plural}: versions other than v1alpha1")
    return mapping(mapping(versions[0]["schema"])["openAPIV3Schema"])


def cel_rules(schema: Object, place: str) -> Iterator[tuple[str, Object]]:
    for rule in sequence(schema.get("x-kubernetes-validations", [])):
        yield place, mapping(rule)
    for name, child in mapping(schema.get("properties", {})).items():
        yield from cel_rules(mapping(child), f"{place}.{name}")
    for key, suffix in (("items", "[*]"), ("additionalProperties", ".*")):
        if key in schema:
            yield from cel_rules(mapping(schema[key]), place + suffix)


def structure(module: Path, version: str) -> str:
    table = Table()
    roots: Object = {kind: table.add(crd_schema(module, plural), kind) for kind, plural in KINDS.items()}
    if table.add(crd_schema(module, "clustertrainingruntimes"), "ClusterTrainingRuntime") != roots["TrainingRuntime"]:
        raise Unexpected("ClusterTrainingRuntime differs from TrainingRuntime")
    head = compact({"version": version, "modules": pinned(module), "roots": roots})
    return head[:-1] + ',"nodes":[\n' + ",\n".join(map(compact, table.nodes)) + "\n]}\n"


def pinned(module: Path) -> Object:
    """The versions of the modules that the release's admission uses (go.mod)."""
    gomod = (module / "go.mod").read_text(encoding="utf-8")
    found = dict(re.findall(r"^\s+(\S+) (v\S+)", gomod, re.MULTILINE))
    return {name: found[name] for name in PINNED if name in found}


# --- the runtimes: the part of kustomize that the overlays use


def runtimes_of(folder: Path) -> list[Object]:
    kustomization = load(folder / "kustomization.yaml")
    found: list[Object] = []
    for resource in map(str, sequence(kustomization["resources"])):
        path = folder / resource
        if "://" in resource:
            continue
        if path.is_dir():
            found += runtimes_of(path)
        else:
            found += [d for d in load_all(path) if str(d.get("apiVersion")).startswith(f"{GROUP}/")]
    if not found:
        return found
    for key, value in kustomization.items():
        if key == "labels":
            for label in map(mapping, sequence(value)):
                if label.keys() - {"pairs", "includeSelectors"} or label.get("includeSelectors"):
                    raise Unexpected(f"{folder}: labels with {sorted(label)}")
                for runtime in found:
                    mapping(mapping(runtime["metadata"]).setdefault("labels", {})).update(mapping(label["pairs"]))
        elif key == "images":
            for image in map(mapping, sequence(value)):
                if image.keys() != {"name", "newTag"}:
                    raise Unexpected(f"{folder}: images with {sorted(image)}")
                for runtime in found:
                    retag(runtime, str(image["name"]), str(image["newTag"]))
        elif key == "patches":
            for patch in map(mapping, sequence(value)):
                if str(mapping(patch["target"])["kind"]).endswith("TrainingRuntime"):
                    raise Unexpected(f"{folder}: a patch of runtimes")
        elif key not in ("apiVersion", "kind", "resources"):
            raise Unexpected(f"{folder}: {key}")
    return found


def retag(value: Json, name: str, tag: str) -> None:
    """Set an image's tag in all containers, at any depth, as kustomize does."""
    if isinstance(value, list):
        for item in value:
            retag(item, name, tag)
    elif isinstance(value, dict):
        for key, child in value.items():
            if key in ("containers", "initContainers"):
                for container in map(mapping, sequence(child)):
                    image = str(container.get("image", ""))
                    if image == name or image.startswith((f"{name}:", f"{name}@")):
                        container["image"] = f"{name}:{tag}"
            retag(child, name, tag)


def shipped(module: Path, version: str) -> str:
    runtimes: Object = {}
    for overlay in OVERLAYS:
        folder = module / "manifests" / "overlays" / overlay
        for runtime in runtimes_of(folder) if folder.is_dir() else []:
            name = str(mapping(runtime["metadata"])["name"])
            if runtime["kind"] != "ClusterTrainingRuntime" or name in runtimes:
                raise Unexpected(f"runtime {name} of kind {runtime['kind']}")
            runtimes[name] = runtime
    lines = ",\n".join(f"{json.dumps(name)}:{compact(runtime)}" for name, runtime in sorted(runtimes.items()))
    return f'{{"version":{json.dumps(version)},"runtimes":{{\n{lines}\n}}}}\n'


# --- the command


def compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def download(version: str) -> Path:
    command = ["go", "mod", "download", "-json", f"{MODULE}@v{version}"]
    answer = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    print(f"{version} was released on {json.loads(Path(answer['Info']).read_bytes())['Time'][:10]}")
    return Path(answer["Dir"])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("versions", nargs="+", metavar="VERSION", help="a release, such as 2.3.0")
    parser.add_argument("--module", type=Path, metavar="DIR", help="an unpacked module (one VERSION only)")
    parser.add_argument("--output", type=Path, default=FACTS, metavar="DIR", help="default: the facts of this checkout")
    parser.add_argument("--show-cel", action="store_true", help="print the CEL rules and write nothing")
    options = parser.parse_args()
    if options.module and len(options.versions) != 1:
        parser.error("--module goes with one VERSION")
    for version in options.versions:
        if not re.fullmatch(r"\d+\.\d+\.\d+", version):
            parser.error(f"not a release: {version}")
        module = options.module or download(version)
        try:
            if options.show_cel:
                for kind, plural in KINDS.items():
                    for place, rule in cel_rules(crd_schema(module, plural), kind):
                        print(version, cel_digest(rule), place, json.dumps(rule))
                continue
            files = {"": structure(module, version), "-runtimes": shipped(module, version)}
        except Unexpected as trouble:
            print(f"{version}: {trouble}", file=sys.stderr)
            return 1
        for suffix, text in files.items():
            path = options.output / f"kubeflow-{version.rpartition('.')[0]}{suffix}.json"
            path.write_text(text, encoding="utf-8", newline="\n")
            print(f"{path.name}: {len(text.encode())} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
