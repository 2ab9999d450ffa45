"""What a run assumes: the releases of each program, and the contents of the cluster."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection, Mapping

from trainlint.findings import did_you_mean, shortened
from trainlint.records import NamedTuple, dataclass


class TargetError(ValueError):
    """A target with an unknown program or an invalid version."""


class How(enum.Enum):
    """How the releases are known that a file is checked for."""

    CHOSEN = "chosen"
    """An option or a setting names them; each gives its own verdict."""
    STATED = "stated"
    """The repository states one, or several that differ and are equally near."""
    RANGE = "range"
    """The repository states a range, or the stated release of another package limits this one."""
    UNKNOWN = "unknown"
    """The repository states something that is not a release: a commit, a branch, a fork."""
    NOT_STATED = "not stated"


class Target(NamedTuple):
    """The releases of a program that a file may be for, oldest first, and how they are known.

    `versions` are as chosen or stated where somebody names them, else known releases. `origin` is `default`, `option`,
    or the places of settings and statements (`pyproject.toml`, `requirements.txt:3`). There are no versions if the
    repository shows that the release is older than all known ones; with `maybe_another` an unknown one may run.
    """

    versions: tuple[str, ...]
    origin: str = "default"
    how: How = How.CHOSEN
    maybe_another: bool = False

    @property
    def newest(self) -> Target:
        """The same target if its releases are chosen or stated, else only its newest release."""
        return self if self.how in (How.CHOSEN, How.STATED) else self._replace(versions=self.versions[-1:])


@dataclass(frozen=True)
class Cluster:
    """The known contents of the cluster: `[tool.trainlint.cluster]` and `runtimes`; None if not known.

    `closed`: there are no other runtimes than those in the repository and those that the release ships.
    """

    runtimes: frozenset[str] | None = None
    priority_classes: frozenset[str] | None = None
    closed: bool = False


def unknown_program(program: str, programs: Collection[str]) -> str:
    """What is said of a program that is not known: the nearest one, else all."""
    hint = did_you_mean(program, programs) or f"known: {', '.join(programs)}"
    return f"unknown program {program!r}, {hint}"


def parse_target(
    option: str, programs: Collection[str], verdict_only: Mapping[str, str], origin: str = "option"
) -> dict[str, Target]:
    """`PROGRAM=VERSION[,VERSION…]` as a target.

    `programs` may have a target; `verdict_only` are programs that give verdicts on the files of another one, with that
    one, whose target counts unless they may have one too. Raises TargetError for an unknown program or an invalid
    version.
    """
    program, equals, listed = option.partition("=")
    versions = [version.strip().lstrip("v") for version in listed.split(",") if version.strip()]
    if not equals or not versions:
        example = f"{program}=VERSION" if program in programs else "PROGRAM=VERSION, such as kubeflow-trainer=2.3"
        raise TargetError(f"{option!r} is not a target: write {example}")
    if program in verdict_only and program not in programs:
        raise TargetError(f"{program} has no target of its own: name that of {verdict_only[program]}")
    if program not in programs:
        raise TargetError(unknown_program(program, programs))
    for version in versions:
        if len(version) > 100 or not re.fullmatch(
            r"\d+(\.\d+){0,3}([-.]?(a|b|rc|dev|post|alpha|beta)[-.]?\d*)?", version
        ):
            raise TargetError(f"{shortened(version)!r} is not a version of {program}")
    return {program: Target(tuple(dict.fromkeys(versions)), origin)}
