"""`trainlint resolve`: what each TrainJob starts, and where each value comes from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from trainlint.engine import Run
from trainlint.programs.kubeflow.build import BuiltJob
from trainlint.programs.kubeflow.built_pods import Pods
from trainlint.programs.kubeflow.built_value import BuiltValue, Owner
from trainlint.programs.kubeflow.objects import TrainJob
from trainlint.programs.kubeflow.program import PROGRAM
from trainlint.programs.kubeflow.quantities import parse_quantity
from trainlint.records import dataclass
from trainlint.reports import Jobs, escape
from trainlint.reports.escape import visible_line, visible_path
from trainlint.reports.masking import shown, shown_value, shown_words

if TYPE_CHECKING:
    from trainlint.settings import Overrides

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

CONTAINER_KEYS = ("image", "command", "args", "env", "envFrom", "resources", "ports", "volumeMounts")


@dataclass(frozen=True)
class Resolved:
    """One TrainJob with one definition of its runtime, in one release; `built` is None where it is not known."""

    job: TrainJob
    built: BuiltJob | None
    release: str
    admitted: bool


def resolve(paths: Sequence[Path], overrides: Overrides, run: Run | None = None) -> list[Resolved]:
    """Build every TrainJob in these files and folders, in order; kustomize patches are not jobs.

    A `run` that has read the files already is used again.
    Raises PathError for a path that is not there or leads out, SettingsError for settings that cannot be used.
    """
    found: list[Resolved] = []
    for surroundings, subject, in_force in (run or Run(overrides)).subjects(paths, "kubeflow-trainer"):
        if not isinstance(subject, TrainJob):
            continue
        for release in in_force.releases:
            admitted = surroundings.is_admitted("kubeflow-trainer", subject, release)
            for views in PROGRAM.alternatives(subject, surroundings, release):
                if any(isinstance(view, TrainJob) and view.partial for view in views):
                    continue
                built = next((view for view in views if isinstance(view, BuiltJob)), None)
                found.append(Resolved(subject, built, release, admitted))
    return found


# as JSON


def as_json(found: Sequence[Resolved], *, show_values: bool = False) -> str:
    """One object: `{"version": 1, "jobs": [...]}`, values that look like secrets masked unless `show_values` is set."""
    jobs = [_job(item) for item in found]
    return escape.as_json({"version": 1, "jobs": jobs if show_values else [_masked(job) for job in jobs]})


def _masked(node: Json) -> Json:
    """Plain data of a pod with its secrets masked: those in variables and in flags of commands."""
    if isinstance(node, str):
        return shown(node)
    if isinstance(node, list):
        words = shown_words([item if isinstance(item, str) else "" for item in node])
        return [word if isinstance(item, str) else _masked(item) for word, item in zip(words, node, strict=True)]
    if not isinstance(node, dict):
        return node
    name, value = node.get("name"), node.get("value")
    told = {key: _masked(item) for key, item in node.items()}
    if isinstance(name, str) and isinstance(value, str):
        told |= {"name": name, "value": shown_value(name, value)}
    return told


def _job(item: Resolved) -> Json:
    field = item.job.field
    row: dict[str, Json] = {
        "path": field.document.path,
        "document": field.document.index,
        "line": field.key_span.line,
        "name": item.job.name.known,
        "namespace": item.job.namespace,
        "release": item.release,
        "admitted": item.admitted,
        "runtime": None,
        "stops": None,
        "replicatedJobs": [],
    }
    built = item.built
    if built is not None:
        row["runtime"] = {
            "kind": built.runtime.kind.known,
            "name": built.runtime.name.known,
            "path": None if built.runtime.shipped else built.runtime.field.document.path,
            "line": None if built.runtime.shipped else built.runtime.field.key_span.line,
        }
        row["stops"] = built.stops[1] if built.stops else None
        if built.stops is None:
            row["replicatedJobs"] = [_pods(pods, built) for pods in built.jobs]
    return row


def _pods(pods: Pods, built: BuiltJob) -> Json:
    return {
        "name": pods.name,
        "step": pods.ancestor or None,
        "replicas": plain(pods.replicas) if pods.replicas.given else 1,
        "parallelism": plain(pods.count),
        "completions": plain(pods.job.get("completions")),
        "processesPerNode": plain(built.processes) if pods is built.trainer else None,
        "from": {"parallelism": _origin(pods.count, built)},
        "initContainers": [_container(container, built) for container in pods.init_containers],
        "containers": [_container(container, built) for container in pods.containers],
        "volumes": [plain(volume) for volume in pods.spec.get("volumes").items()],
    }


def _container(container: BuiltValue, built: BuiltJob) -> Json:
    row: dict[str, Json] = {"name": container.name}
    origins: dict[str, Json] = {}
    for key in CONTAINER_KEYS:
        part = container.get(key)
        row[key] = plain(part) or None
        if part.given and key != "env":
            origins[key] = _origin(part, built)
    row["env"] = [_env(env, built) for env in container.get("env").items()]
    row["from"] = origins
    return row


def _env(env: BuiltValue, built: BuiltJob) -> Json:
    row: dict[str, Json] = {"name": plain(env.get("name"))}
    for key in ("value", "valueFrom"):
        if env.get(key).given:
            row[key] = plain(env.get(key))
    row["from"] = _origin(env.get("value") if env.get("value").given else env, built)
    return row


def plain(part: BuiltValue) -> Json:
    """A part as plain data; an unknown value is null."""
    content = part.content
    if isinstance(content, dict):
        amounts = content.items() if "limits" in content or "requests" in content else ()
        listed = {key: plain(value) for key, value in content.items()}
        for key, value in amounts:
            if key in ("limits", "requests"):
                listed[key] = {name: canonical(str(amount)) for name, amount in value.entries()}
        return listed
    if isinstance(content, list):
        return [plain(item) for item in content]
    return None if part.unknown or not isinstance(content, (str, int, float, bool)) else content


def _origin(part: BuiltValue, built: BuiltJob) -> Json:
    span = None if part.owner is Owner.RUNTIME and built.runtime.shipped else part.place.span
    by = "release" if part.made else part.owner.value
    return {"by": by, "path": span.path if span else None, "line": span.line if span else None}


# as text


def as_text(found: Sequence[Resolved], *, show_values: bool = False, encoding: str = "utf-8") -> str:
    """A block for each job: its pods and containers, with the file and line of each value.

    Values that look like secrets are masked unless `show_values` is set.
    """
    blocks = ([visible_line(line, encoding) for line in _lines(item, show_values)] for item in found)
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in blocks)


def by_document(found: Sequence[Resolved], *, show_values: bool = False) -> Jobs:
    """The same lines, for each job."""
    jobs: dict[tuple[str, int], list[list[str]]] = {}
    for item in found:
        document = item.job.field.document
        jobs.setdefault((document.path, document.index), []).append(list(_lines(item, show_values)))
    return jobs


def _lines(item: Resolved, show_values: bool) -> Iterator[str]:
    job, built = item.job, item.built
    span = job.field.key_span
    runtime = f"{job.runtime_kind} {job.runtime_name}"
    yield f"{visible_path(span.path)}:{span.line}: TrainJob {job.name} with {runtime}, Kubeflow Trainer {item.release}"
    if not item.admitted:
        yield "  refused at admission (run trainlint check)"
    if built is None:
        yield "  what it starts is not known, because its runtime is not"
        return
    if built.stops:
        yield f"  starts nothing: {built.stops[1]}"
        return
    for pods in built.jobs:
        yield from _pod_lines(pods, built, show_values)


def _pod_lines(pods: Pods, built: BuiltJob, show_values: bool) -> Iterator[str]:
    count = _shown(pods.count, True)
    yield f"  {pods.name}: {count} {'pod' if count == '1' else 'pods'}{_behind(pods.count, built)}"
    if pods is built.trainer and built.processes.given:
        yield f"    processes per node: {_shown(built.processes, True)}{_behind(built.processes, built)}"
    for container in [*pods.init_containers, *pods.containers]:
        yield f"    {container.name or '?'}"
        for key in ("image", "command", "args"):
            part = container.get(key)
            if part.given:
                yield f"      {key}: {_shown(part, show_values)}{_behind(part, built)}"
        for env in container.get("env").items():
            value = env.get("value")
            name, text = _shown(env.get("name"), True), _source(env.get("valueFrom"))
            if value.given or env.get("valueFrom").absent:
                text = _shown(value, show_values, name)
            yield f"      env {name}={text}{_behind(value if value.given else env, built)}"
        for kind in ("limits", "requests"):
            for name, amount in container.at("resources", kind).entries():
                yield f"      {kind} {name}: {canonical(str(amount)) or '?'}{_behind(amount, built)}"


def _shown(part: BuiltValue, show_values: bool, name: str | None = None) -> str:
    if part.unknown:
        return "?"
    if isinstance(part.content, list):
        words = ["" if item.unknown else str(item) for item in part.content]
        told = words if show_values else shown_words(words)
        return " ".join("?" if i.unknown else shlex.quote(w) for i, w in zip(part.content, told, strict=True))
    return str(part) if show_values else shown_value(name, str(part))


def _source(source: BuiltValue) -> str:
    """The source of a variable's value: `(secretKeyRef token)`."""
    for key, ref in source.entries():
        words = [str(value) for _, value in ref.entries() if str(value)]
        return f"({' '.join([key, *words])})"
    return "?"


def _behind(part: BuiltValue, built: BuiltJob) -> str:
    """The place of a value: `  # jobs.yaml:7`."""
    shipped = part.owner is Owner.RUNTIME and built.runtime.shipped
    place = "the shipped runtime" if shipped else f"{part.place.span.path}:{part.place.span.line}"
    return f"  # {'made from ' if part.made else ''}{place}"


# quantities

_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def canonical(text: str) -> str | None:
    """A quantity as Kubernetes writes it: 1000m is 1, 1024Mi is 1Gi; None for a text that is not a quantity.

    Source: Quantity.CanonicalizeBytes of k8s.io/apimachinery.
    """
    parsed = parse_quantity(text)
    if parsed is None:
        return None
    amount = Fraction(parsed)
    if text.endswith("i") and abs(amount) >= 1024:
        return _scaled(Fraction(-(-amount.numerator // amount.denominator)), 1024, _BINARY)
    exponent = 0
    while amount and exponent < 18 and (amount / 1000).denominator == 1:
        amount, exponent = amount / 1000, exponent + 3
    while amount.denominator != 1 and exponent > -9:
        amount, exponent = amount * 1000, exponent - 3
    number = -(-amount.numerator // amount.denominator)
    if "e" in text.lower() and not text.endswith("E"):
        return f"{number}e{exponent}" if exponent else str(number)
    return f"{number}{_DECIMAL[exponent]}"


def _scaled(amount: Fraction, step: int, suffixes: Sequence[str]) -> str:
    place = 0
    while place + 1 < len(suffixes) and (amount / step).denominator == 1:
        amount, place = amount / step, place + 1
    return f"{amount.numerator}{suffixes[place]}"
