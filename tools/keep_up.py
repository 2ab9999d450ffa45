"""Adds the releases that came out, asks the newest of each program, and writes what somebody has to look at.

    python tools/keep_up.py REPORT [--cases N]

REPORT is a Markdown file with a part for each program that has a newer release: the difference of its facts, the code
that changed under the claims that are open now, and where the release and trainlint disagree. A program whose releases
cannot be listed has a part that says why. Without any part it is not written. The facts of torchtune and Kubeflow
Trainer need a person, so these are only named.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from oracle import drivers
from whats_new import OTHERS, newer, newest_known
from wheel_facts.readers import PROGRAMS
from wheel_facts.registry import Missing, Registry

ROOT = Path(__file__).resolve().parent.parent
MOST = 20_000
"""The characters of one output in the report; an issue holds three of them."""


def told(*command: str) -> str:
    """What a command prints, also where it fails."""
    ran = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ran.stdout.strip()


def part(name: str, releases: list[str], cases: int) -> str:
    """The part of the report on one program, whose releases are added."""
    title = f"## {name} {', '.join(releases)}\n\n"
    if name in OTHERS:
        return f"{title}Its facts are added by hand: see CONTRIBUTING.md.\n"
    texts: dict[str, str] = {}
    note = ""
    for release in releases:
        added = ("make", "facts", f"PROGRAM={name}", f"RELEASE={release}")
        texts[" ".join(added)] = told(*added)
    texts["git diff"] = told("git", "diff", "--", *(f"*{name}.{kind}" for kind in ("json", "txt")))
    texts[f"make changes PROGRAM={name}"] = told("make", "--silent", "changes", f"PROGRAM={name}")
    if name in drivers.NAMES:
        asked = ("make", "--silent", "oracle", f"PROGRAM={name}", f"RELEASE={releases[-1]}", f"CASES={cases}")
        texts[" ".join(asked)] = told(*asked)
        ran = f"PYTHONPATH=tools .venv/bin/python -m wheel_facts {name} --ran {releases[-1]}"
        note = f"If {releases[-1]} itself answered, note that it was run: `{ran}`.\n"
    return title + "".join(f"`{command}`\n\n{fenced(text)}\n" for command, text in texts.items()) + note


def fenced(text: str) -> str:
    """An output as a block of code that nothing in it ends, cut where it is long."""
    cut = text if len(text) <= MOST else f"{text[:MOST]}\n… {len(text) - MOST} characters more"
    longest = max((len(run) for run in re.findall("`+", cut)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{cut}\n{fence}\n"


def report(found: Mapping[str, list[str] | Missing], cases: int) -> str:
    """The whole report, with a part for each program that has newer releases or of which nobody can tell."""
    parts = [
        f"## {name}\n\nIts releases cannot be listed:\n\n{fenced(str(releases))}"
        if isinstance(releases, Missing)
        else part(name, releases, cases)
        for name, releases in found.items()
        if releases
    ]
    return "\n".join(parts)


def listed(name: str, registry: Registry) -> list[str] | Missing:
    """The releases of a program that are newer than the known ones, or why they cannot be listed."""
    try:
        return newer(name, registry)
    except Missing as problem:
        return problem


def main() -> None:
    """Look for releases, and write the report."""
    parser = argparse.ArgumentParser("keep_up", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--cases", type=int, default=1000)
    options = parser.parse_args()
    registry = Registry.of_pip()
    found = {name: listed(name, registry) for name in (*PROGRAMS, *OTHERS)}
    for name, releases in found.items():
        print(f"{name} {newest_known(name)}:", *([releases] if isinstance(releases, Missing) else releases))
    if text := report(found, options.cases):
        options.report.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
