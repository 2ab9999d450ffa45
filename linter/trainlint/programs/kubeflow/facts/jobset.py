"""How each release of Kubeflow Trainer builds a JobSet from a TrainJob and its runtime.

Source: the released modules github.com/kubeflow/trainer/v2 at v2.0.1, v2.1.0, v2.2.1 and v2.3.0, packages
pkg/runtime/core and pkg/runtime/framework/plugins; what they build was compared on thousands of jobs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

TRAINER_PORT = 29500
COMPLETION_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
COPIED_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
"""The sources of variables that are copied from the env of a TrainJob's trainer or initializer; others get lost."""


@dataclass(frozen=True)
class BuildFacts:
    """One release's controller, as data."""

    release: str
    overrides_field: str
    """The field of a TrainJob that patches its runtime's pods."""
    patches_whole_jobset: bool
    """A patch is merged into the JobSet, so that a job which the runtime lacks is added; else into jobs that exist."""
    resources_merged: bool
    """resourcesPerNode is merged into the resources of a runtime with an mlPolicy; else it replaces any runtime's."""
    node_job_follows_launcher: bool
    """With runLauncherAsNode the job `node` gets the trainer's env and resources, too."""
    procs_from_gpus: bool
    """The number of processes follows the GPUs counted in requests, then limits; else the names in limits decide."""
    runtime_procs: bool
    """A runtime's torch policy has numProcPerNode."""
    rendezvous_for_auto: bool
    """`tune run` gets a rendezvous endpoint unless there is exactly one process; else only for several."""
    labels_on_spec: bool
    """A TrainJob has spec.labels and spec.annotations for its JobSet."""
    flux_wraps_runtime_command: bool
    """Flux starts the runtime's command where the job has none."""
    flux_shared_memory: bool
    """Flux mounts memory at /dev/shm."""


_2_0 = BuildFacts(
    release="2.0",
    overrides_field="podSpecOverrides",
    patches_whole_jobset=False,
    resources_merged=False,
    node_job_follows_launcher=False,
    procs_from_gpus=False,
    runtime_procs=True,
    rendezvous_for_auto=True,
    labels_on_spec=True,
    flux_wraps_runtime_command=False,
    flux_shared_memory=False,
)
_2_1 = replace(
    _2_0,
    release="2.1",
    overrides_field="podTemplateOverrides",
    node_job_follows_launcher=True,
    procs_from_gpus=True,
    rendezvous_for_auto=False,
)
_2_2 = replace(
    _2_1,
    release="2.2",
    overrides_field="runtimePatches",
    runtime_procs=False,
    labels_on_spec=False,
)
_2_3 = replace(
    _2_2,
    release="2.3",
    patches_whole_jobset=True,
    resources_merged=True,
    flux_wraps_runtime_command=True,
    flux_shared_memory=True,
)

BUILDS = {facts.release: facts for facts in (_2_0, _2_1, _2_2, _2_3)}

FLUX_IMAGE = "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy"
FLUX_MOUNTS = (
    ("flux-install", "/mnt/flux"),
    ("spack-install", "/opt/software"),
)

FAILURE_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
"""Why a Job fails, as a JobSet's failure policy may name it. Source: JobSet 0.12, k8s.io/api batch/v1."""

TORCHRUN_WORDS = re.compile(r"\btorchrun\b|\btorch\.distributed\.(run|launch)\b|\btune\s+run\b")
"""Commands that read the PET_ variables. Source: torch 2.13, torchtune 0.6.1."""

ACCELERATORS = re.compile(
    r"gpu|^(habana\.ai|google\.com/tpu|aws\.amazon\.com/neuron|huawei\.com/ascend|cambricon\.com/mlu|nvidia\.com/mig-)",
    re.IGNORECASE,
)
"""Names of resources that are accelerators. Source: the device plugins of NVIDIA, AMD, Intel, Habana, Google, AWS."""

TRAINER_FIELDS = ("image", "command", "args", "env", "resourcesPerNode")
"""Fields of spec.trainer that go into the container `node` of the trainer's job."""
