"""What a run assumes: the releases of each program, and the contents of the cluster."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from trainlint.findings import did_you_mean


class TargetError(ValueError):
    """A target with an unknown program or an invalid version."""


@dataclass(frozen=True, slots=True)
class Target:
    """The releases of a program whose verdict is given, and where that choice comes from.

    `origin` is `default`, `option`, or the place of a setting or pin (`pyproject.toml`, `requirements.txt:3`).
    """

    versions: tuple[str, ...]
    origin: str = "default"


@dataclass(frozen=True)
class Cluster:
    """The known contents of the cluster: `[tool.trainlint.cluster]` and `runtimes`. None where nothing is known.

    `closed`: there are no other runtimes than those in the repository and those that the release ships.
    """

    runtimes: frozenset[str] | None = None
    priority_classes: frozenset[str] | None = None
    closed: bool = False


def parse_target(
    option: str, programs: Collection[str], verdict_only: Mapping[str, str], origin: str = "option"
) -> dict[str, Target]:
    """`PROGRAM=VERSION[,VERSION…]` as a target.

    `verdict_only` are names without a target of their own, with the program whose target counts. Raises TargetError for
    an unknown program or an invalid version.
    """
    program, equals, listed = option.partition("=")
    versions = [version.strip().lstrip("v") for version in listed.split(",") if version.strip()]
    if not equals or not versions:
        raise TargetError(f"{option!r} is not a target: write PROGRAM=VERSION, such as kubeflow-trainer=2.3")
    if program in verdict_only:
        raise TargetError(f"{program} has no target of its own: name that of {verdict_only[program]}")
    if program not in programs:
        hint = did_you_mean(program, programs)
        raise TargetError(f"unknown program {program!r}{f', {hint}' if hint else ''}; known: {', '.join(programs)}")
    for version in versions:
        if not re.fullmatch(r"\d+(\.\d+){0,3}([-.]?(a|b|rc|dev|post|alpha|beta)[-.]?\d*)?", version):
            raise TargetError(f"{version!r} is not a version of {program}")
    return {program: Target(tuple(dict.fromkeys(versions)), origin)}
