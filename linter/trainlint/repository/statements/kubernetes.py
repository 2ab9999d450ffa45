"""What states the release of the cluster's API server: minikube's option, and a chart's `kubeVersion`."""

from __future__ import annotations

import re

from trainlint.repository.statements.model import Kind, Meaning
from trainlint.repository.statements.specifiers import exact

NAME = "kubernetes"
OPTION = "--kubernetes-version"
_VERSION = re.compile(r"v?(\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)")
_BOUND = re.compile(r"(>=|<=|>|<|=|==|!=|~|\^)?\s*v?(\d{1,2}(?:\.\d{1,3}){0,2})(?:\.[x*])?(?:-0)?")
_OPERATORS = {"": "==", "=": "==", "~": "~=", "^": ">="}


def of_version(text: str) -> Meaning | None:
    """A release as minikube takes it: `v1.31.4`; None for `stable` and the like."""
    match = _VERSION.fullmatch(text)
    return exact(match[1]) if match else None


def of_chart(text: str) -> Meaning | None:
    """`kubeVersion` of a chart: comparisons joined by spaces or commas; None for anything else."""
    bounds = []
    for part in re.split(r"\s*,\s*|(?<=[\d*x])\s+", text.strip()):
        match = _BOUND.fullmatch(part.removesuffix("-0"))
        if match is None:
            return None
        operator, version = match[1] or "", match[2]
        if _OPERATORS.get(operator, operator) in ("==", "~="):
            minor = ".".join(version.split(".")[:2])
            bounds.append(f"=={minor}.*")
        else:
            bounds.append(f"{_OPERATORS.get(operator, operator)}{version}")
    return Meaning(Kind.RANGE, ",".join(bounds)) if bounds else None
