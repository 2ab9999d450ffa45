"""The steps of the controller of a Kubeflow Trainer release, from a TrainJob and its runtime to a JobSet.

The order is the controller's: the runtime's template, the job's patches, resourcesPerNode, the ML policy's own
additions, then what the job's trainer and initializers say. Source: pkg/runtime/core and the plugins of the released
module, for each release.
"""

from __future__ import annotations

from collections.abc import Callable

from trainlint.programs.kubeflow.built_pods import Pods
from trainlint.programs.kubeflow.built_value import UNKNOWN, BuiltValue, merge
from trainlint.programs.kubeflow.draft import (
    NODE,
    TRAINER,
    Draft,
    append,
    env_of_job,
    same_port,
    upsert,
    upsert_env,
)
from trainlint.programs.kubeflow.facts.admission import INITIALIZERS
from trainlint.programs.kubeflow.facts.release import KubeflowFacts
from trainlint.programs.kubeflow.ml_policies import jax, plain, torch, xgboost
from trainlint.programs.kubeflow.mpi_flux import flux, mpi
from trainlint.programs.kubeflow.objects import Runtime, TrainJob


def build(job: TrainJob, runtime: Runtime, facts: KubeflowFacts) -> Draft:
    """The JobSet, or in `stops` why the controller cannot build it."""
    draft = Draft(job, runtime, facts)
    _patch(draft)
    for value in draft.jobset.get("replicatedJobs").items():
        _make_room(value)
        draft.pods.append(Pods(value))
    draft.trainer = next((pods for pods in draft.pods if pods.ancestor == TRAINER), None)
    for pods in draft.pods:
        if pods.replicas.is_(0):
            # Go drops a zero when it writes the JobSet, whose default is 1
            _run_once(pods)
    _count(draft)
    if facts.resources_merged:
        _merge_resources(draft)
    _enforce_policy(draft)
    _sync_ports(draft)
    _initializers(draft)
    _trainer(draft)
    _schedule(draft)
    if draft.spec.get("suspend").given and draft.jobset.given:
        draft.jobset.set("suspend", draft.spec.get("suspend"))
    return draft


def _make_room(job: BuiltValue) -> None:
    """The mappings that the steps write into exist, as structs do in Go."""
    job.child("template", {}).child("spec", {}).child("template", {}).child("spec", {})


def _run_once(pods: Pods) -> None:
    pods.value.set("replicas", pods.replicas.derive(1))


# the job's patches


def _patch(draft: Draft) -> None:
    if draft.facts.overrides_field == "runtimePatches":
        for patch in draft.overrides.items():
            template = patch.at("trainingRuntimeSpec", "template")
            _add_metadata(draft, template.get("metadata"))
            _patch_jobset(draft, template.get("spec"))
    else:
        for override in draft.overrides.items():
            _override(draft, override)
    if draft.facts.labels_on_spec:
        _add_metadata(draft, draft.spec)


def _add_metadata(draft: Draft, owner: BuiltValue) -> None:
    if owner.get("labels").given:
        draft.labels = merge(draft.labels, owner.get("labels"))
    if owner.get("annotations").given:
        draft.annotations = merge(draft.annotations, owner.get("annotations"))


def _patch_jobset(draft: Draft, patch: BuiltValue) -> None:
    if patch.absent:
        return
    jobs = draft.jobset.get("replicatedJobs").items()
    if draft.facts.patches_add_jobs:
        before = {job.name: index for index, job in enumerate(jobs)}
        draft.jobset = merge(draft.jobset, patch)
        merged = draft.jobset.get("replicatedJobs")
        if isinstance(merged.content, list):
            merged.content.sort(key=lambda job: before.get(job.name, 0))
        return
    for job in patch.get("replicatedJobs").items():
        for mine in jobs:
            if mine.name == job.name and job.get("template").given:
                mine.set("template", merge(mine.get("template"), job.get("template")))


def _override(draft: Draft, override: BuiltValue) -> None:
    targets = {target.name for target in override.get("targetJobs").items()}
    whole_pod = draft.facts.overrides_field == "podSpecOverrides"
    for job in draft.jobset.get("replicatedJobs").items():
        if job.name not in targets:
            continue
        template = job.child("template", {}).child("spec", {}).child("template", {})
        if whole_pod:
            patch = override.with_content({key: value for key, value in override.entries() if key != "targetJobs"})
            template.set("spec", merge(template.child("spec", {}), patch))
            continue
        if override.get("spec").given:
            template.set("spec", merge(template.child("spec", {}), override.get("spec")))
        for key in ("labels", "annotations"):
            patch = override.at("metadata", key)
            if patch.given:
                metadata = template.child("metadata", {})
                metadata.set(key, merge(metadata.get(key), patch))


# how many, and with which resources


def _count(draft: Draft) -> None:
    for pods in draft.pods:
        count = pods.count
        if pods.ancestor == TRAINER and draft.policy.given:
            count = draft.policy.get("numNodes")
        if not count.unknown and (count.number is None or count.number < 1):
            count = count.derive(1)
        draft.set_count(pods, count)


def _merge_resources(draft: Draft) -> None:
    """Release 2.3: resourcesPerNode laid over the runtime's, if that has an mlPolicy at all."""
    override = draft.own.get("resourcesPerNode")
    if override.absent or draft.policy.absent:
        return
    for pods in draft.pods:
        container = pods.container(NODE) if draft.takes_resources(pods) else None
        if container is not None:
            base = container.get("resources")
            merged = override.with_content({})
            for key in ("limits", "requests"):
                value = merge(base.get(key), override.get(key)) if override.get(key).content else base.get(key)
                if value.given:
                    merged.set(key, value)
            container.set("resources", merged)


# the ML policy

_POLICIES: dict[str, Callable[[Draft], None]] = {
    "torch": torch,
    "mpi": mpi,
    "jax": jax,
    "xgboost": xgboost,
    "flux": flux,
}


def _enforce_policy(draft: Draft) -> None:
    if all(draft.policy.get(key).absent for key in ("torch", "mpi", "jax")):
        plain(draft)
    for key, enforce in _POLICIES.items():
        if draft.policy.get(key).given:
            enforce(draft)


# what each pod set carries over, the trainer and the initializers


def _sync_ports(draft: Draft) -> None:
    """Ports are written over themselves, which merges those that share a number or a name."""
    for pods in draft.pods:
        for container in [*pods.containers, *(pods.init_containers if draft.facts.init_ports_merged else [])]:
            for port in list(container.get("ports").items()):
                upsert(container, "ports", port, same_port)


def _initializers(draft: Draft) -> None:
    for step, name in INITIALIZERS.items():
        own = draft.spec.at("initializer", step)
        for pods in draft.pods:
            if pods.ancestor != name:
                continue
            _run_once(pods)
            container = pods.container(name)
            if container is None or own.absent:
                continue
            if own.get("storageUri").given:
                upsert_env(container, [draft.env("STORAGE_URI", own.get("storageUri"))])
            upsert_env(container, env_of_job(own.get("env")))
            secret = own.get("secretRef")
            if secret.given:
                append(container, "envFrom", secret.with_content({"secretRef": secret}))


def _trainer(draft: Draft) -> None:
    given = {"image": draft.own.get("image"), "command": draft.command, "args": draft.args}
    for pods in draft.pods:
        nodes = [container for container in pods.containers if container.name == NODE] if draft.own.given else []
        if pods.ancestor == TRAINER:
            _run_once(pods)
            for container in nodes:
                for key, value in given.items():
                    if value.given:
                        container.set(key, value)
        if draft.takes_resources(pods):
            for container in nodes:
                _replace_resources(draft, container)
                upsert_env(container, env_of_job(draft.own.get("env")))


def _replace_resources(draft: Draft, container: BuiltValue) -> None:
    """Up to release 2.2: resourcesPerNode replaces the runtime's resources, if it lists anything."""
    own = draft.own.get("resourcesPerNode")
    lists = {key: own.get(key) for key in ("limits", "requests") if own.get(key).given}
    if lists and not draft.facts.resources_merged:
        container.set("resources", own.with_content(dict(lists)))


def _schedule(draft: Draft) -> None:
    """The group's name on the pods, for a scheduler that starts them together."""
    marks = (
        ("coscheduling", "labels", "scheduling.x-k8s.io/pod-group"),
        ("volcano", "annotations", "scheduling.k8s.io/group-name"),
    )
    for policy, kind, key in marks:
        if draft.runtime_spec.get("podGroupPolicy").get(policy).given:
            for pods in draft.pods:
                mark = pods.template.child("metadata", {}).child(kind, {})
                mark.set(key, draft.named(UNKNOWN if draft.name is None else draft.name))
