"""What each release of Kubeflow Trainer checks beside its CRDs' structure when an object is created.

Source: the released modules github.com/kubeflow/trainer/v2 at v2.0.1, v2.1.0, v2.2.1 and v2.3.0, packages pkg/webhooks,
pkg/runtime/core and pkg/runtime/framework/plugins, with k8s.io/apiextensions-apiserver and k8s.io/apimachinery as their
go.mod names them; each fact was measured on that release's admission.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from trainlint.programs.kubeflow.facts.crds import SchemaNode

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.facts.crds import Row

CEL_RULES: Mapping[str, str] = {
    "399f9516": "immutable",
    "271c38a1": "status",
    "b77b5ec4": "name",
    "89329c02": "name",
    "645589f6": "managed-by",
    "ca465e3c": "storage-uri",
    "dadcc580": "one-policy",
    "a43dea81": "one-policy",
    "98be6f38": "elastic-nodes",
    "14e6cd73": "torch-processes",
    "513dbf98": "flux-processes",
    "6d5621a7": "injected-node",
    "71e95060": "startup-or-depends",
    "19e8f661": "claim-namespace",
}
"""The CEL rules of all releases' CRDs: the digest of the rule's text, and what it is about.

`immutable` compares with an object's earlier state and `status` concerns what is dropped from a new object, so neither
can refuse a creation.
"""

MANAGERS = ("trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue")
POLICIES = ("torch", "mpi", "jax", "xgboost", "flux")
TORCH_PROCESS_WORDS = ("auto", "cpu", "gpu")

STEP_CONTAINERS: Mapping[str, str] = {
    "trainer": "node",
    "dataset-initializer": "dataset-initializer",
    "model-initializer": "model-initializer",
}
"""The container that a TrainJob's step goes into, by the step that a runtime's job is labelled with."""

INITIALIZERS: Mapping[str, str] = {"dataset": "dataset-initializer", "model": "model-initializer"}
"""The job, and in it the container of the same name, that runs each initializer."""
INITIALIZER_MOUNT = "initializer"

RESERVED_MPI_ENV = frozenset(
    {
        "OMPI_MCA_orte_default_hostfile",
        "OMPI_MCA_plm_rsh_args",
        "OMPI_MCA_orte_keep_fqdn_hostnames",
        "OMPI_MCA_orte_set_default_slots",
    }
)
RESERVED_XGBOOST_ENV = frozenset({"DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER"})
FLUX_INSTALLER = "flux-installer"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
HIGHEST_PRIORITIES = ("system-cluster-critical", "system-node-critical")
"""The priority classes that every cluster has."""

SUPPORT_LABEL = "trainer.kubeflow.org/support"
WEBHOOK_LABEL = "trainer.kubeflow.org/webhook-validation"

OVERRIDES = ("podSpecOverrides", "podTemplateOverrides", "runtimePatches")
"""The fields of a TrainJob that patch its runtime's pods: renamed and reshaped twice, in 2.1 and 2.2."""

MOVED: Mapping[tuple[str, str], str] = {
    ("TrainingRuntime", "spec.mlPolicy.torch.numProcPerNode"): "spec.trainer.numProcPerNode of the TrainJob",
    ("TrainJob", "spec.labels"): "metadata.labels of a template in spec.runtimePatches",
    ("TrainJob", "spec.annotations"): "metadata.annotations of a template in spec.runtimePatches",
    ("TrainJob", "spec.trainer.resources"): "spec.trainer.resourcesPerNode",
}
"""Where to write what a field said that is gone from the newest releases, or that never was."""


@dataclass(frozen=True)
class AdmissionFacts:
    """One release's checks of new objects, as data."""

    decodes_first: bool
    """A mutating webhook decodes a TrainJob into its Go types before the structure is checked; it looks at status too.

    Where it sets the time of a runtime patch, it sends the whole object back as Go writes it: required texts that were
    missing are empty then, quantities are texts.
    """
    ranges_in_structure: bool
    """The structure refuses an integer outside int32, and names no field; else decoding does."""
    launcher_replicas: bool
    """A runtime's job `launcher` must have one replica."""
    step_containers: bool
    """A runtime's job with a step's label must hold the step's container."""
    opt_out: bool
    """A label takes a runtime out of its webhook."""
    initializer_mounts: bool
    """An initializer's container must mount the volume `initializer`."""
    one_override_per_job: bool
    """No job may be the target of two overrides."""
    patches_add_jobs: bool
    """A patch for a job that the runtime does not have adds that job."""
    pull_secrets: bool
    """Overrides may set imagePullSecrets."""
    injection_targets: bool
    """The containers that envInjection names must exist."""
    integer_mpi_processes: bool
    """With MPI numProcPerNode must not be a word."""
    reserved_mpi_env: bool
    flux_counts_job: bool
    """With Flux the TrainJob's numProcPerNode must be at least 1, not the runtime's alone."""
    support_label: bool
    """A runtime that is labelled as deprecated draws a warning."""
    empty_runtime_name: bool
    """An empty `runtimeRef.name` passes the structure, and no runtime of that name is found."""


_2_0 = AdmissionFacts(
    decodes_first=False,
    ranges_in_structure=False,
    launcher_replicas=True,
    step_containers=False,
    opt_out=False,
    initializer_mounts=False,
    one_override_per_job=True,
    patches_add_jobs=False,
    pull_secrets=False,
    injection_targets=False,
    integer_mpi_processes=True,
    reserved_mpi_env=False,
    flux_counts_job=False,
    support_label=False,
    empty_runtime_name=True,
)
_2_1 = replace(
    _2_0,
    launcher_replicas=False,
    step_containers=True,
    one_override_per_job=False,
    pull_secrets=True,
    support_label=True,
    empty_runtime_name=False,
)
_2_2 = replace(
    _2_1,
    decodes_first=True,
    ranges_in_structure=True,
    integer_mpi_processes=False,
)
_2_3 = replace(
    _2_2,
    opt_out=True,
    initializer_mounts=True,
    patches_add_jobs=True,
    injection_targets=True,
    reserved_mpi_env=True,
    flux_counts_job=True,
)

ADMISSION: Mapping[str, AdmissionFacts] = {"2.0": _2_0, "2.1": _2_1, "2.2": _2_2, "2.3": _2_3}


_OBJECT_META: list[Row] = [
    {"type": "string"},
    {"type": "string", "format": "date-time"},
    {"type": "integer", "format": "int64"},
    {"type": "boolean"},
    {"type": "object", "values": 0},
    {"type": "array", "items": 0},
    {
        "type": "object",
        "properties": {
            **dict.fromkeys(("apiVersion", "kind", "name", "uid"), 0),
            **dict.fromkeys(("controller", "blockOwnerDeletion"), 3),
        },
    },
    {"type": "array", "items": 6},
    {"type": "any"},
    {
        "type": "object",
        "properties": {
            **dict.fromkeys(("manager", "operation", "apiVersion", "fieldsType", "subresource"), 0),
            "time": 1,
            "fieldsV1": 8,
        },
    },
    {"type": "array", "items": 9},
    {
        "type": "object",
        "properties": {
            **dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), 0),
            **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), 1),
            **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), 2),
            **dict.fromkeys(("labels", "annotations"), 4),
            "finalizers": 5,
            "ownerReferences": 7,
            "managedFields": 10,
        },
    },
]


@cache
def object_meta() -> SchemaNode:
    """The structure of `metadata`, which no CRD states.

    Source: ObjectMeta of k8s.io/apimachinery v0.32 to v0.36. The content of managedFields' fieldsV1 is free.
    """
    done: list[SchemaNode] = []
    for row in _OBJECT_META:
        done.append(SchemaNode(row, done))
    return done[-1]
