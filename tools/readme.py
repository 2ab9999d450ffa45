"""Writes into README.md and the pages of docs/ what they show of trainlint itself.

A block marked `<!-- output: COMMAND -->` shows the current output of COMMAND, the one marked `<!-- programs -->` the
programs with their known releases, the one marked `<!-- settings -->` all settings.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from trainlint.programs.kubeflow.facts import release as kubeflow
from trainlint.programs.table import PROGRAMS
from trainlint.programs.torchtune import facts as torchtune
from trainlint.settings.table import PATHS, SETTINGS
from trainlint.training.declarations import DISTRIBUTIONS, declarations

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "settings.md")
"""Those with marked blocks."""

_BLOCK = re.compile(r"<!-- output: (?P<command>[^\n]+) -->\n```\n.*?```\n<!-- /output -->", re.DOTALL)


_PROGRAMS = re.compile(r"<!-- programs -->\n.*?<!-- /programs -->", re.DOTALL)
_SETTINGS = re.compile(r"<!-- settings -->\n.*?<!-- /settings -->", re.DOTALL)


def filled(text: str) -> str:
    """The text with every marked block updated."""
    text = _SETTINGS.sub(lambda _: _settings(), _PROGRAMS.sub(lambda _: _programs(), text))
    return _BLOCK.sub(_block, text)


def releases() -> dict[str, tuple[str, ...]]:
    """The known releases of each program, oldest first."""
    wheels = {name: declarations(name).names for name in DISTRIBUTIONS}
    return {"kubeflow-trainer": tuple(kubeflow.RELEASES), "torchtune": torchtune.RELEASES, **wheels}


def _programs() -> str:
    rows = ["| `--target` | releases | how its files are recognised |", "|---|---|---|"]
    for name, known in sorted(releases().items()):
        rows.append(f"| `{name}` | {known[0]} to {known[-1]} | {PROGRAMS[name].known_by} |")
    return "\n".join(["<!-- programs -->", *rows, "<!-- /programs -->"])


def _settings() -> str:
    rows = ["| setting | values | default | what it does | in `[[overrides]]` |", "|---|---|---|---|---|"]
    for one in (PATHS, *SETTINGS):
        default = f"`{one.default}`" if one.default else ""
        mark = "only" if one.only_in_overrides else "✓" if one.in_overrides else ""
        rows.append(f"| `{one.key}` | {one.kind.words} | {default} | {one.doc} | {mark} |")
    return "\n".join(["<!-- settings -->", *rows, "<!-- /settings -->"])


def _block(match: re.Match[str]) -> str:
    command = match["command"]
    return f"<!-- output: {command} -->\n```\n$ {command}\n{_output(command)}```\n<!-- /output -->"


def _output(command: str) -> str:
    # As bytes, so that line ends are the same on every system.
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command}: exit {done.returncode}")
    return done.stdout.decode().replace("\r\n", "\n")


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
