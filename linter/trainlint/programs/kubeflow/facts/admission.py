"""Names and words of Kubeflow Trainer's admission that are the same in all releases; what differs is in release.py.

Source: the released modules github.com/kubeflow/trainer/v2, packages pkg/webhooks, pkg/runtime/core and
pkg/runtime/framework/plugins.
"""

from __future__ import annotations

from collections.abc import Mapping

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

`immutable` compares with an object's earlier state and `status` is dropped from a new object, so neither can refuse a
creation.
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
"""The fields to use in place of those that the newest releases no longer have, or that no release had."""
