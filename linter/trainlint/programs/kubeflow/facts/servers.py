"""Fields of Jobs and pods that some API servers drop, by the first Kubernetes release that uses each.

A server whose type lacks a field drops it with a warning that only the JobSet controller sees; one that has the field
behind a feature gate which is off drops it without any. Checks on a field begin with the first release that uses it.

Source: kube-apiserver 1.30.14 to 1.36.2 with default feature gates, run on the Jobs that Kubeflow Trainer 2.3 makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from trainlint.programs.kubeflow.facts.paths import Paths
from trainlint.records import NamedTuple

NEWEST = "1.36"
"""The newest server that was asked."""


class Used(NamedTuple):
    """The first release that uses a field, empty if none does, and what happens in those that drop it."""

    since: str
    otherwise: str = "the job runs without it"

    @property
    def dropped(self) -> str:
        """The releases that drop the field, as a span."""
        major, _, minor = self.since.partition(".")
        return f"..{major}.{int(minor) - 1}" if self.since else ".."


_TERMS = tuple(
    f"affinity.{kind}.{term}"
    for kind in ("podAffinity", "podAntiAffinity")
    for term in (
        "requiredDuringSchedulingIgnoredDuringExecution[]",
        "preferredDuringSchedulingIgnoredDuringExecution[].podAffinityTerm",
    )
)

JOB_FIELDS = Paths[Used](
    {
        "successPolicy": Used("1.31"),
        "managedBy": Used("1.32", "the built-in controller runs the Job"),
    }
)
POD_FIELDS = Paths[Used](
    {
        **{f"{term}.{key}": Used("1.31") for term in _TERMS for key in ("matchLabelKeys", "mismatchLabelKeys")},
        "hostUsers": Used("1.33"),
        "securityContext.supplementalGroupsPolicy": Used("1.33"),
        "securityContext.seLinuxChangePolicy": Used("1.33"),
        "resourceClaims": Used("1.34", "the pod starts without the device"),
        "resources": Used("1.34"),
        "volumes[].image": Used("1.35", "the volume is empty or left out, with all its mounts"),
        "hostnameOverride": Used("1.35"),
        "schedulingGroup": Used(""),
        "volumes[].projected.sources[].podCertificate": Used(""),
        "volumes[].projected.sources[].clusterTrustBundle": Used(""),
    }
)
CONTAINER_FIELDS = Paths[Used](
    {
        "volumeMounts[].recursiveReadOnly": Used("1.31"),
        "securityContext.procMount": Used("1.33", "it is Default"),
        "resizePolicy": Used("1.33"),
        "resources.claims": Used("1.34", "the container starts without the device"),
        "restartPolicyRules": Used("1.35"),
        "lifecycle.stopSignal": Used(""),
    }
)
"""By the path from the Job's spec, the pod's, or a container; `[]` means every item of a list."""

_OWNERS: tuple[tuple[str, Mapping[str, Used]], ...] = (
    (r"\.replicatedJobs\[\]\.template\.spec", JOB_FIELDS),
    (r"(?:\.template\.spec\.template\.spec|\.podSpecOverrides\[\]|\.podTemplateOverrides\[\]\.spec)", POD_FIELDS),
    (r"\.(?:init)?[cC]ontainers\[\]", CONTAINER_FIELDS),
)


def used_within(field_path: str) -> str:
    """The releases that read the field at a path of a manifest, as a span; empty for all."""
    path = re.sub(r"\[\d+\]", "[]", field_path)
    return next((f"{since}.." for since, pattern in _patterns() if pattern.search(path)), "")


@cache
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """By the first release that uses them, a pattern for the paths of fields and of what is in them."""
    by_release: dict[str, list[str]] = {}
    for owner, fields in _OWNERS:
        for path, used in fields.items():
            if used.since:
                by_release.setdefault(used.since, []).append(rf"{owner}\.{re.escape(path)}")
    return tuple((since, _any_of(paths)) for since, paths in by_release.items())


def _any_of(paths: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(paths)})(?:\.|\[|$)")
