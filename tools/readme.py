"""Writes into README.md and the pages of docs/ what they show of trainlint itself.

A block marked `<!-- output: COMMAND -->` shows the current output of COMMAND, the one marked `<!-- programs -->` the
programs with their known releases, `<!-- followed -->` the number of rules of each program by stage, and
`<!-- settings -->` all settings.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

from trainlint.catalogue import known_releases
from trainlint.findings import Stage
from trainlint.programs.table import PROGRAMS
from trainlint.rule import rules_of
from trainlint.settings.table import PATHS, SETTINGS

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = (README, ROOT / "docs" / "settings.md")
"""Those with marked blocks."""

_BLOCK = re.compile(r"<!-- output: (?P<command>[^\n]+) -->\n```\n.*?```\n<!-- /output -->", re.DOTALL)


_PROGRAMS = re.compile(r"<!-- programs -->\n.*?<!-- /programs -->", re.DOTALL)
_SETTINGS = re.compile(r"<!-- settings -->\n.*?<!-- /settings -->", re.DOTALL)
_FOLLOWED = re.compile(r"<!-- followed -->\n.*?<!-- /followed -->", re.DOTALL)


def filled(text: str) -> str:
    """The text with every marked block updated."""
    text = _PROGRAMS.sub(lambda _: _programs(), _BLOCK.sub(_block, text))
    return _SETTINGS.sub(lambda _: _settings(), _FOLLOWED.sub(lambda _: _followed(), text))


def _programs() -> str:
    rows = ["| `--target` | releases | how its files are recognised |", "|---|---|---|"]
    for name in sorted(PROGRAMS):
        known = known_releases(name)
        rows.append(f"| `{name}` | {known[0]} to {known[-1]} | {PROGRAMS[name].known_by} |")
    return "\n".join(["<!-- programs -->", *rows, "<!-- /programs -->"])


def _followed() -> str:
    stages = list(Stage)
    rows = [f"| | {' | '.join(f'`{stage.value}`' for stage in stages)} |", "|---" * (len(stages) + 1) + "|"]
    for program in sorted(PROGRAMS.values(), key=lambda program: program.name):
        counts = Counter(rule.stage for rule in rules_of(program.rules))
        rows.append(f"| {program.title} | {' | '.join(str(counts[stage] or '') for stage in stages)} |")
    return "\n".join(["<!-- followed -->", *rows, "<!-- /followed -->"])


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
