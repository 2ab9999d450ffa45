"""What a run judges by: the releases of each program, and what the cluster is known to hold."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from trainlint.findings import did_you_mean


class TargetError(ValueError):
    """A target that names no program, or no version of one."""


class How(enum.Enum):
    """How the releases that a file is judged by are known."""

    CHOSEN = "chosen"
    """An option or a setting names them: each gives its own verdict."""
    STATED = "stated"
    """The repository states one, or several that differ and stand equally near."""
    RANGE = "range"
    """The repository states a range, or what it states of another package bounds this one."""
    UNKNOWN = "unknown"
    """The repository states something that no release stands for: a commit, a branch, a fork."""
    NOT_STATED = "not stated"


@dataclass(frozen=True, slots=True)
class Target:
    """The releases of a program that may be meant, oldest first, and how that is known.

    `versions` are as chosen or stated where somebody names them, else known releases. `origin` is `default`, `option`,
    or the places of settings and statements (`pyproject.toml`, `requirements.txt:3`).
    """

    versions: tuple[str, ...]
    origin: str = "default"
    how: How = How.CHOSEN

    @property
    def newest(self) -> Target:
        """The same where releases are chosen or stated; of those that may only be meant the newest."""
        return self if self.how in (How.CHOSEN, How.STATED) else replace(self, versions=self.versions[-1:])


@dataclass(frozen=True)
class Cluster:
    """What the cluster is known to hold: `[tool.trainlint.cluster]` and `runtimes`. None where nothing was said.

    `closed` says that the repository and the release's shipped runtimes are all the runtimes there are.
    """

    runtimes: frozenset[str] | None = None
    priority_classes: frozenset[str] | None = None
    closed: bool = False


def parse_target(
    option: str, programs: Collection[str], verdict_only: Mapping[str, str], origin: str = "option"
) -> dict[str, Target]:
    """`PROGRAM=VERSION[,VERSION…]` as a target.

    `verdict_only` are names that follow another program's release. Raises TargetError for an unknown program or a text
    that is no version.
    """
    program, equals, listed = option.partition("=")
    versions = [version.strip().lstrip("v") for version in listed.split(",") if version.strip()]
    if not equals or not versions:
        raise TargetError(f"{option!r} is not a target: write PROGRAM=VERSION, such as kubeflow-trainer=2.3")
    if program in verdict_only:
        raise TargetError(f"{program} has no target of its own: it follows {verdict_only[program]}")
    if program not in programs:
        hint = did_you_mean(program, programs)
        raise TargetError(f"unknown program {program!r}{f', {hint}' if hint else ''}; known: {', '.join(programs)}")
    for version in versions:
        if not re.fullmatch(r"\d+(\.\d+){0,3}([-.]?(a|b|rc|dev|post|alpha|beta)[-.]?\d*)?", version):
            raise TargetError(f"{version!r} is not a version of {program}")
    return {program: Target(tuple(dict.fromkeys(versions)), origin)}
