"""Kubeflow Trainer: TrainJob, TrainingRuntime and ClusterTrainingRuntime, as typed views."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from trainlint.programs.kubeflow.crd_walk import Defect, DefectKind, Walk, Walked, WalkOptions, place_of, structure_at
from trainlint.programs.kubeflow.facts.admission import CEL_RULES, QUEUE_ANNOTATION, SUPPORT_LABEL
from trainlint.programs.kubeflow.facts.release import (
    ANCESTOR_LABEL,
    DORA_ARG,
    FRAMEWORK_LABEL,
    LORA_ARG,
    QUANTIZE_ARG,
    RELEASES,
    TORCHTUNE_COMMAND,
    KubeflowFacts,
)
from trainlint.programs.kubeflow.gpus import Amounts, possible_gpus
from trainlint.programs.kubeflow.quantities import parse_quantity
from trainlint.reading.values import Absent, Field, Value

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.built_value import BuiltValue
    from trainlint.programs.kubeflow.facts.crds import Kind

Declares: TypeAlias = "Callable[[Kind, Field], bool]"

GROUP = "trainer.kubeflow.org"
OLD_GROUP, OLD_VERSION = "kubeflow.org", "v2alpha1"
"""The group of the time before 2.0."""
VERSION = "v1alpha1"
RUNTIME_KINDS = ("ClusterTrainingRuntime", "TrainingRuntime")
KINDS = ("TrainJob", *RUNTIME_KINDS)
_UID = len("00000000-0000-0000-0000-000000000000")


class TrainerObject:
    """A document of the API group trainer.kubeflow.org, whatever its kind and version.

    A `partial` one is a patch of kustomize, and may lack anything.
    """

    owns_document = True
    partial = False

    def __init__(self, field: Field) -> None:
        self.field = field
        self.manifests: dict[tuple[str, bool], Manifest] = {}

    @cached_property
    def api_version(self) -> Value[str]:
        return self.field.get("apiVersion").text()

    @cached_property
    def kind(self) -> Value[str]:
        return self.field.get("kind").text()

    @cached_property
    def name(self) -> Value[str]:
        return self.field.at("metadata", "name").text()

    @cached_property
    def namespace(self) -> str:
        """`metadata.namespace`, `default` when absent; empty when it is not known."""
        return self.field.at("metadata", "namespace").text().or_when_absent("default").known or ""

    @cached_property
    def spec(self) -> Field:
        return self.field.get("spec")


class Manifest:
    """An object as strict decoding and its CRD's structure check it in one release."""

    def __init__(
        self,
        subject: TrainerObject,
        kind: Kind,
        facts: KubeflowFacts,
        *,
        partial: bool = False,
        declares: Declares = lambda kind, field: False,
    ) -> None:
        self.field = subject.field
        self.name = subject.name
        self.kind: Kind = kind
        self.facts = facts
        self.partial = partial
        self.declares = declares
        """CRDs in the repository have a field that the release lacks."""

    def defects(self, kind: DefectKind) -> Iterator[Defect]:
        """The places with a defect of this kind."""
        found = (defect for walk in self._walks for defect in walk.defects if defect.kind is kind)
        if kind is not DefectKind.UNKNOWN_FIELD:
            return found
        return (defect for defect in found if not self.declares(self.kind, defect.field))

    def places(self, cel_rule: str) -> Iterator[Field]:
        """The places that a CEL rule of this name checks, and that are not absent."""
        return (field for walk in self._walks for field, digest in walk.cel if CEL_RULES.get(digest) == cel_rule)

    def releases_with(self, field: Field) -> list[str]:
        """The other releases in which this object may have this field."""
        path = field.path[field.origin :]
        others = [facts for facts in RELEASES.values() if facts is not self.facts]
        return [facts.release for facts in others if structure_at(facts.structure(self.kind), path) is not None]

    def place_of(self, name: str, kind: Kind) -> str | None:
        """Where a kind of object has a field of this name, near its root."""
        return place_of(self.facts.structure(kind), name)

    @property
    def cluster_scoped(self) -> bool:
        """A ClusterTrainingRuntime: it has no namespace."""
        return self.field.get("kind").text().is_("ClusterTrainingRuntime")

    @cached_property
    def _walks(self) -> tuple[Walked, ...]:
        """The walks over metadata, the object's own fields, and status.

        Metadata is only decoded. Status is dropped before the structure is checked: an unknown field in it is refused,
        a wrong type only where a webhook decodes first.
        """
        from trainlint.programs.kubeflow.facts.crds import object_meta

        root = self.facts.structure(self.kind)
        keeps_nulls = not self.name.known
        decoding = WalkOptions(keeps_nulls=keeps_nulls, partial=self.partial, types_only=True)
        metadata, status = Walk(decoding), Walk(decoding)
        metadata.check(self.field.get("metadata"), object_meta())
        if "status" in root.properties:
            status.check(self.field.get("status"), root.properties["status"])
            if not self.facts.decodes_first:
                status.defects = [d for d in status.defects if d.kind is DefectKind.UNKNOWN_FIELD or d.stray]
        decoded = self.facts.decodes_first and self.kind == "TrainJob"
        own = Walk(
            WalkOptions(
                keeps_nulls=keeps_nulls,
                decoded=decoded,
                rewritten=decoded and self._has_untimed_patch,
                partial=self.partial,
                ranges_unplaced=self.facts.ranges_in_structure and self.kind != "TrainJob",
            )
        )
        own.check_root(self.field, root, skip=("metadata", "status") if "status" in root.properties else ("metadata",))
        return metadata.found, own.found, status.found

    @property
    def _has_untimed_patch(self) -> bool:
        patches = self.field.at("spec", "runtimePatches").items()
        return any(patch.is_null or (patch.is_mapping and patch.get("time").is_absent) for patch in patches)


def manifest_of(
    subject: TrainJob | Runtime,
    facts: KubeflowFacts,
    *,
    partial: bool = False,
    declares: Declares = lambda kind, field: False,
) -> Manifest:
    """An object as one release checks its structure; a `partial` one is a patch of kustomize."""
    key = facts.release, partial
    if key not in subject.manifests:
        kind: Kind = "TrainJob" if isinstance(subject, TrainJob) else "TrainingRuntime"
        subject.manifests[key] = Manifest(subject, kind, facts, partial=partial, declares=declares)
    return subject.manifests[key]


class RuntimeContainer:
    """One container of a runtime's pod template."""

    def __init__(self, field: Field) -> None:
        self.field = field

    @cached_property
    def name(self) -> Value[str]:
        return self.field.get("name").text()

    @cached_property
    def command(self) -> Value[list[Value[str]]]:
        return self.field.get("command").texts()

    @cached_property
    def args(self) -> Value[list[Value[str]]]:
        return self.field.get("args").texts()

    @cached_property
    def resources(self) -> Field:
        return self.field.get("resources")


class MergedJob:
    """One job of a runtime with a TrainJob's patches to its pods: the pod specs, the runtime's first.

    Admission refuses an entry of one of them, and reads some values from the runtime only, so they stay apart here;
    builder.py merges them.
    """

    def __init__(self, name: str, pod_specs: list[Field]) -> None:
        self.name = name
        self.pod_specs = pod_specs
        self._containers: dict[str, dict[str, list[Field]] | None] = {}

    def containers(self, kind: str = "containers") -> dict[str, list[Field]] | None:
        """The entries for each container (or init container), by name; None where a list or name is not known."""
        if kind not in self._containers:
            self._containers[kind] = _by_name(spec.get(kind) for spec in self.pod_specs)
        return self._containers[kind]

    def mounts(self, container: str) -> list[Value[str]]:
        """The names of the volumes that a container mounts; a later mount at a path replaces an earlier one."""
        by_path = {
            str(mount.get("mountPath").text()): mount.get("name").text()
            for part in (self.containers() or {}).get(container, [])
            for mount in part.get("volumeMounts").items()
        }
        return list(by_path.values())


def _by_name(lists: Iterable[Field]) -> dict[str, list[Field]] | None:
    """The items of several lists by their name; None where a list or a name is not known."""
    found: dict[str, list[Field]] = {}
    for field in lists:
        if field.is_unknown:
            return None
        for item in field.items():
            name = item.get("name").text().or_when_absent("")
            if item.is_unknown or name.unknown:
                return None
            found.setdefault(str(name), []).append(item)
    return found


def _pod_spec(job: Field) -> Field:
    return job.at("template", "spec", "template", "spec")


class PodPatch:
    """One entry of a TrainJob's overrides or patches, for the pods of one job."""

    def __init__(self, job: Value[str], pod_spec: Field) -> None:
        self.job = job
        self.pod_spec = pod_spec


class ReplicatedJob:
    """One job of a runtime's JobSet template."""

    def __init__(self, field: Field) -> None:
        self.field = field

    @cached_property
    def name(self) -> Value[str]:
        return self.field.get("name").text()

    @cached_property
    def ancestor(self) -> Value[str]:
        """The step of a TrainJob that this job is: the label trainjob-ancestor-step of its template."""
        return self.field.at("template", "metadata", "labels", ANCESTOR_LABEL).text()

    @cached_property
    def replicas(self) -> Value[int]:
        """`replicas`, by default 1."""
        return self.field.get("replicas").integer().or_when_absent(1)

    @cached_property
    def pod_spec(self) -> Field:
        return _pod_spec(self.field)

    @cached_property
    def containers(self) -> list[RuntimeContainer]:
        """The containers of its pods."""
        return [RuntimeContainer(item) for item in self.pod_spec.get("containers").items()]

    def container(self, name: str) -> RuntimeContainer | None:
        """The container with this name."""
        return next((c for c in self.containers if c.name.is_(name)), None)


class Runtime(TrainerObject):
    """A TrainingRuntime or ClusterTrainingRuntime."""

    def __init__(self, field: Field, *, shipped: bool = False, partial: bool = False) -> None:
        super().__init__(field)
        self.shipped = shipped
        self.partial = partial
        self.decoded: dict[str, BuiltValue] = {}
        """Its spec as the controller of a release decodes it; draft.py fills it in."""

    @cached_property
    def ml_policy(self) -> Field:
        return self.spec.get("mlPolicy")

    @cached_property
    def torch(self) -> bool:
        """The runtime has a torch policy (an empty one counts)."""
        return not self.ml_policy.get("torch").is_absent

    @cached_property
    def num_nodes(self) -> Value[int]:
        return self.ml_policy.get("numNodes").integer()

    @cached_property
    def support(self) -> Value[str]:
        """The label that can say `deprecated`; only that of a ClusterTrainingRuntime is read."""
        return self.field.at("metadata", "labels", SUPPORT_LABEL).text()

    @cached_property
    def framework(self) -> Value[str]:
        """The framework label."""
        return self.field.at("metadata", "labels", FRAMEWORK_LABEL).text()

    @cached_property
    def job_list(self) -> Field:
        return self.spec.at("template", "spec", "replicatedJobs")

    @cached_property
    def jobs(self) -> list[ReplicatedJob]:
        """The jobs of the runtime."""
        return [ReplicatedJob(item) for item in self.job_list.items()]

    @cached_property
    def trainer_job(self) -> ReplicatedJob | None:
        """The job whose ancestor step is the trainer."""
        return next((job for job in self.jobs if job.ancestor.is_("trainer")), None)

    @cached_property
    def trainer_container(self) -> RuntimeContainer | None:
        """The container into which a TrainJob's trainer goes."""
        return self.trainer_job.container("node") if self.trainer_job else None

    @cached_property
    def runs_torchtune(self) -> bool:
        """Its trainer starts `tune run`, or its framework label says torchtune."""
        container = self.trainer_container
        words = container.command.known if container else None
        starts_tune = words is not None and [str(w) for w in words[:2]] == list(TORCHTUNE_COMMAND)
        return starts_tune or self.framework.is_("torchtune")

    @cached_property
    def resources(self) -> Field | None:
        """The resources of its trainer: those of the first container `node` of the trainer step or of a job `node`.

        Source: ExtractResourcePerNodeFromRuntime of the controller.
        """
        for job in self.jobs:
            if job.name.is_("node") or job.ancestor.is_("trainer"):
                for container in job.containers:
                    if container.name.is_("node"):
                        return container.resources
        return None


class TrainJob(TrainerObject):
    """A TrainJob, with the runtime that it names where that is known.

    `runtime_missing`: there are no runtimes but those of the repository and the release, and it is not among them;
    `runtime_installed`: the settings say that the cluster has it; with neither a runtime nor one of these, nothing is
    known about it. `priority_classes` are those of the cluster, None where the settings do not list them.
    """

    priority_classes: frozenset[str] | None = None

    def __init__(
        self,
        field: Field,
        runtime: Runtime | None = None,
        *,
        runtime_missing: bool = False,
        runtime_installed: bool = False,
        partial: bool = False,
    ) -> None:
        super().__init__(field)
        self.runtime = runtime
        self.runtime_missing = runtime_missing
        self.runtime_installed = runtime_installed
        self.partial = partial
        self._merged: dict[bool, dict[str, MergedJob] | None] = {}

    @property
    def is_from_a_cluster(self) -> bool:
        """It was read from a cluster, which has admitted it: the API server gave it a uid, or a controller a status."""
        status, uid = self.field.get("status"), self.field.at("metadata", "uid").text()
        dated = any(not condition.get("lastTransitionTime").is_absent for condition in status.get("conditions").items())
        return dated or bool(status.get("jobsStatus").items()) or uid.known_and(lambda text: len(text) == _UID)

    @cached_property
    def runtime_ref(self) -> Field:
        return self.spec.get("runtimeRef")

    @cached_property
    def runtime_name(self) -> Value[str]:
        return self.runtime_ref.get("name").text()

    @cached_property
    def runtime_kind(self) -> Value[str]:
        """`spec.runtimeRef.kind`, by default ClusterTrainingRuntime."""
        return self.runtime_ref.get("kind").text().or_when_absent("ClusterTrainingRuntime")

    @cached_property
    def runtime_group(self) -> Value[str]:
        """`spec.runtimeRef.apiGroup`, by default the Trainer's."""
        return self.runtime_ref.get("apiGroup").text().or_when_absent(GROUP)

    @cached_property
    def trainer(self) -> Field:
        return self.spec.get("trainer")

    @cached_property
    def num_nodes(self) -> Value[int]:
        return self.trainer.get("numNodes").integer()

    @cached_property
    def num_proc_per_node(self) -> Field:
        """`spec.trainer.numProcPerNode`: an integer, in 2.0 and 2.1 also a word."""
        return self.trainer.get("numProcPerNode")

    @cached_property
    def command(self) -> Value[list[Value[str]]]:
        return self.trainer.get("command").texts()

    @cached_property
    def args(self) -> list[Value[str]]:
        """`spec.trainer.args`; empty when absent."""
        return self.trainer.get("args").texts().known or []

    @cached_property
    def env(self) -> list[Field]:
        return self.trainer.get("env").items()

    @cached_property
    def pod_patches(self) -> list[PodPatch]:
        """The job's overrides (2.0, 2.1) or patches (from 2.2 on) of pods, one for each job that they name."""
        found = [
            PodPatch(target.get("name").text(), override.get(inner) if inner else override)
            for overrides, inner in (("podSpecOverrides", ""), ("podTemplateOverrides", "spec"))
            for override in self.spec.get(overrides).items()
            for target in override.get("targetJobs").items()
        ]
        for patch in self.runtime_patches:
            jobs = patch.at("trainingRuntimeSpec", "template", "spec", "replicatedJobs").items()
            found.extend(PodPatch(job.get("name").text(), _pod_spec(job)) for job in jobs)
        return found

    @cached_property
    def runtime_patches(self) -> list[Field]:
        return self.spec.get("runtimePatches").items()

    def holds(self, field: Field) -> bool:
        """The field is in this object, not in its runtime."""
        own = self.field
        return field.document is own.document and field.path[: own.origin] == own.path

    def merged_jobs(self, facts: KubeflowFacts) -> dict[str, MergedJob] | None:
        """The runtime's jobs with the job's patches, by name; None where they are not known.

        Source: newRuntimeInfo of the controller, which merges before the webhooks ask.
        """
        if facts.patches_add_jobs not in self._merged:
            self._merged[facts.patches_add_jobs] = self._merge(add_jobs=facts.patches_add_jobs)
        return self._merged[facts.patches_add_jobs]

    def _merge(self, *, add_jobs: bool) -> dict[str, MergedJob] | None:
        if self.runtime is None:
            return None
        jobs = _by_name([self.runtime.job_list])
        if jobs is None or any(patch.job.unknown or patch.pod_spec.is_unknown for patch in self.pod_patches):
            return None
        merged = {name: MergedJob(name, [_pod_spec(field) for field in fields]) for name, fields in jobs.items()}
        for patch in self.pod_patches:
            name = patch.job.known or ""
            if name not in merged and add_jobs:
                merged[name] = MergedJob(name, [])
            if name in merged and all(spec.path != patch.pod_spec.path for spec in merged[name].pod_specs):
                merged[name].pod_specs.append(patch.pod_spec)
        return merged

    def runs_policy(self, name: str) -> bool:
        """Its runtime has this ML policy (an empty one counts)."""
        return self.runtime is not None and not self.runtime.ml_policy.get(name).is_absent

    @cached_property
    def gangs_with_volcano(self) -> bool:
        """Its runtime lets Volcano schedule the pods as a group."""
        return self.runtime is not None and not self.runtime.spec.at("podGroupPolicy", "volcano").is_absent

    @cached_property
    def queue(self) -> Value[str] | None:
        """Volcano's queue: the last annotation among the runtime's, the job's (2.1) and its patches' (from 2.2 on)."""
        template = ("template", "metadata", "annotations", QUEUE_ANNOTATION)
        places = [self.runtime.spec.at(*template)] if self.runtime else []
        places.append(self.spec.at("annotations", QUEUE_ANNOTATION))
        places.extend(patch.at("trainingRuntimeSpec", *template) for patch in self.runtime_patches)
        said = [place for place in places if not place.is_absent]
        return said[-1].text() if said else None

    @cached_property
    def torchtune_model(self) -> Value[str]:
        """torchtune's name of the model, made from the runtime's name: torchtune-llama3.2-1b is llama3_2/1B.

        The name must have three parts between dashes, of which the first is free; else the model is empty text.
        Source: getModelFromRuntimeRef of the torch plugin.
        """
        return self.runtime_name.map(_model_of)

    @cached_property
    def runs_tune(self) -> bool:
        """The command is exactly `tune run`: then the torch plugin treats the job as one of torchtune."""
        words = self.command.known
        return words is not None and [w.known for w in words] == list(TORCHTUNE_COMMAND)

    @cached_property
    def resources(self) -> Field | None:
        """The resources that count: `resourcesPerNode`, even when empty, else the runtime's."""
        own = self.trainer.get("resourcesPerNode")
        if not own.is_absent:
            return own
        return self.runtime.resources if self.runtime else None

    @cached_property
    def has_one_gpu(self) -> bool | None:
        """The torch plugin counts one GPU per node; None where its answer is random or the amounts are not known."""
        resources = self.resources
        if self.runtime is None and self.trainer.get("resourcesPerNode").is_absent:
            return None
        if resources is None:
            return False
        counted = possible_gpus(_amounts(resources.get("requests")), _amounts(resources.get("limits")))
        outcomes = None if resources.is_unknown else counted
        if outcomes is None or (1 in outcomes and len(outcomes) > 1):
            return None
        return 1 in outcomes

    def any_arg(self, test: Callable[[str], bool]) -> bool | None:
        """Some argument passes the test; None when an argument that is not known could."""
        if any(arg.known_and(test) for arg in self.args):
            return True
        unknown = self.trainer.get("args").is_unknown or any(arg.unknown for arg in self.args)
        return None if unknown else False

    @cached_property
    def uses_lora(self) -> bool | None:
        """Some argument contains the name of LoRA's modules."""
        return self.any_arg(lambda arg: LORA_ARG in arg)

    def uses_qlora(self, facts: KubeflowFacts) -> bool | None:
        """The arguments ask for QLoRA, as the release reads them; DoRA switches it off."""
        if facts.qlora_needs_true:
            dora = self.any_arg(lambda arg: _switched_on(arg, DORA_ARG))
            quantized = self.any_arg(lambda arg: _switched_on(arg, QUANTIZE_ARG))
        else:
            dora = self.any_arg(lambda arg: DORA_ARG in arg)
            quantized = self.any_arg(lambda arg: QUANTIZE_ARG in arg and DORA_ARG not in arg)
        if dora or quantized is False:
            return False
        return None if dora is None or quantized is None else True


class Namesake:
    """A runtime with the name that a job asks for, but of the other kind."""

    def __init__(self, job: TrainJob, runtime: Runtime) -> None:
        self.job = job
        self.runtime = runtime


def _switched_on(arg: str, key: str) -> bool:
    name, equals, value = arg.partition("=")
    return bool(equals) and key in name and value.strip().lower() == "true"


def _model_of(runtime_name: str) -> str:
    parts = runtime_name.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""


def _amounts(listed: Field) -> Amounts | None:
    if listed.is_unknown:
        return None
    given = [entry for entry in listed.entries() if not entry.is_null]
    return [(entry.name, None if entry.is_unknown else parse_quantity(str(entry.plain))) for entry in given]


class Recipe:
    """What `tune run` is started with: the recipe and the config of torchtune's registry."""

    def __init__(self, name: str, config: str, *, single_device: bool, quantized: bool, lora: bool) -> None:
        self.name = name
        self.config = config
        self.single_device = single_device
        self.quantized = quantized
        self.lora = lora


def recipe_and_config(
    job: TrainJob, facts: KubeflowFacts, *, num_nodes: Value[int], procs: Value[int]
) -> Recipe | None:
    """The recipe and config that a job resolves to, from nodes, processes, GPUs and LoRA arguments.

    `procs` is Absent where the number of processes is left to torchrun (`auto`). Admission calls it with the job's own
    numNodes, the controller with the runtime's behind it. None when the file alone does not decide.
    Source: getRecipeAndConfig of the torch plugin.
    """
    model, nodes = job.torchtune_model.known, num_nodes.known
    if model is None or nodes is None or procs.unknown or procs.wrong_type:
        return None
    if not facts.lora_recipes:
        lora: bool | None = False
        quantized: bool | None = False
        single: bool | None = nodes == 1 and procs.is_(1)
    else:
        lora, quantized = job.uses_lora, job.uses_qlora(facts)
        single = nodes == 1 and (procs.is_(1) or job.has_one_gpu)
    if nodes > 1:
        return _full(model, "_full_multinode")
    if nodes < 1:
        return _full(model, "_full")
    if single is None or quantized is None or (not quantized and lora is None):
        return None
    where, suffix = ("single_device", "_single_device") if single else ("distributed", "")
    if quantized or lora:
        config = f"{model}_{'qlora' if quantized else 'lora'}{suffix}"
        return Recipe(f"lora_finetune_{where}", config, single_device=single, quantized=quantized, lora=True)
    return Recipe(f"full_finetune_{where}", f"{model}_full{suffix}", single_device=single, quantized=False, lora=False)


def _full(model: str, suffix: str) -> Recipe:
    return Recipe("full_finetune_distributed", model + suffix, single_device=False, quantized=False, lora=False)


def admitted_recipe(job: TrainJob, facts: KubeflowFacts) -> Recipe | None:
    """The recipe and config that admission assumes: the runtime's numNodes does not count, `auto` stays."""
    return recipe_and_config(
        job, facts, num_nodes=job.num_nodes.or_when_absent(1), procs=processes(job.num_proc_per_node)
    )


def built_recipe(job: TrainJob, facts: KubeflowFacts) -> Recipe | None:
    """The recipe and config that the controller starts: the runtime's numNodes counts where the job has none."""
    nodes = job.num_nodes.or_when_absent(job.runtime.num_nodes) if job.runtime else job.num_nodes
    return recipe_and_config(job, facts, num_nodes=nodes.or_when_absent(1), procs=processes(job.num_proc_per_node))


def processes(field: Field) -> Value[int]:
    """numProcPerNode as a number; a word such as `auto` counts as Absent."""
    if field.text().known is not None:
        return Absent(field)
    return field.integer()
