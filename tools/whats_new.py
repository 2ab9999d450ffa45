"""Lists the releases of each program that are newer than those known: `python tools/whats_new.py [PROGRAM ...]`.

The trainers are asked of the package registry, Kubeflow Trainer of its Go module (which needs go).
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from packaging.version import Version

from kubeflow_facts import MODULE
from trainlint.programs.kubeflow.facts.release import RELEASES as KUBEFLOW
from trainlint.programs.torchtune.facts import RELEASES as TORCHTUNE
from wheel_facts.__main__ import known
from wheel_facts.readers import PROGRAMS
from wheel_facts.registry import Missing, Registry

OTHERS = ("torchtune", "kubeflow-trainer")
"""Programs whose facts are written by tools of their own."""


def newest_known(name: str) -> str:
    """The newest known release of a program."""
    if name == "torchtune":
        return TORCHTUNE[-1]
    if name == "kubeflow-trainer":
        return list(KUBEFLOW.values())[-1].patch
    return max(known(name).releases, key=Version)


def released(name: str, registry: Registry | None) -> list[str]:
    """The final releases of a program, oldest first; raises Missing."""
    if name == "kubeflow-trainer":
        return of_module()
    registry = registry or Registry.of_pip()
    return registry.versions(PROGRAMS[name].distribution if name in PROGRAMS else name)


def of_module() -> list[str]:
    """The final releases of Kubeflow Trainer's Go module; raises Missing where go cannot tell."""
    command = ["go", "list", "-m", "-versions", MODULE]
    try:
        told = subprocess.run(command, check=True, capture_output=True, text=True, cwd="/").stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        raise Missing(f"go cannot list the releases of {MODULE}: {problem}") from problem
    found = sorted(Version(word) for word in told.split()[1:])
    return [str(version) for version in found if not version.is_prerelease]


def newer(name: str, registry: Registry | None = None) -> list[str]:
    """The releases that are newer than the newest known one, oldest first; raises Missing."""
    newest = Version(newest_known(name))
    return [text for text in released(name, registry) if Version(text) > newest]


def main() -> None:
    """Print a line for each program: the newest known release, and the newer ones."""
    parser = argparse.ArgumentParser("whats_new", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join((*PROGRAMS, *OTHERS)))
    programs = parser.parse_args().programs or [*PROGRAMS, *OTHERS]
    if unknown := sorted(set(programs) - {*PROGRAMS, *OTHERS}):
        parser.error(f"unknown program {', '.join(unknown)}; known: {', '.join((*PROGRAMS, *OTHERS))}")
    registry = None if programs == ["kubeflow-trainer"] else Registry.of_pip()
    problems: list[str] = []
    for name in programs:
        try:
            print(f"{name} {newest_known(name)}:", *newer(name, registry))
        except Missing as problem:
            problems.append(str(problem))
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
