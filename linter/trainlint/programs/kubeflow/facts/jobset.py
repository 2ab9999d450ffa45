"""Names and numbers in the JobSet of a TrainJob that are the same in all releases; what differs is in release.py.

Source: the released modules github.com/kubeflow/trainer/v2, packages pkg/runtime/core and
pkg/runtime/framework/plugins.
"""

from __future__ import annotations

import re

from trainlint.lazy import regex

TRAINER_PORT = 29500
COMPLETION_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
COPIED_ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
"""The sources of variables that are copied from the env of a TrainJob's trainer or initializer; others get lost."""

EXCLUSIVE_TOPOLOGY = "alpha.jobset.sigs.k8s.io/exclusive-topology"
"""The annotation that places each Job of a JobSet in a topology domain of its own."""
FLUX_IMAGE = "ghcr.io/converged-computing/flux-view-ubuntu:tag-jammy"
FLUX_MOUNTS = (
    ("flux-install", "/mnt/flux"),
    ("spack-install", "/opt/software"),
)

V1_VARIABLES = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
"""What the training operator before 2.0 set in each container. Source: kubeflow/training-operator 1.9."""

FAILURE_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
"""Why a Job fails, as a JobSet's failure policy may name it. Source: JobSet 0.12, k8s.io/api batch/v1."""

TORCHRUN_WORDS = regex(r"\btorchrun\b|\btorch\.distributed\.(run|launch)\b|\btune\s+run\b")
"""Commands that read the PET_ variables. Source: torch 2.13, torchtune 0.6.1."""

ACCELERATORS = regex(
    r"gpu|^(habana\.ai|google\.com/tpu|aws\.amazon\.com/neuron|huawei\.com/ascend|cambricon\.com/mlu|nvidia\.com/mig-)",
    re.IGNORECASE,
)
"""Names of resources that are accelerators. Source: the device plugins of NVIDIA, AMD, Intel, Habana, Google, AWS."""

TRAINER_FIELDS = ("image", "command", "args", "env", "resourcesPerNode")
"""Fields of spec.trainer that go into the container `node` of the trainer's job."""
