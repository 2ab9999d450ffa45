"""Writes real output into README.md: a block marked `<!-- output: COMMAND -->` shows the current output of COMMAND."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"

_BLOCK = re.compile(r"<!-- output: (?P<command>[^\n]+) -->\n```\n.*?```\n<!-- /output -->", re.DOTALL)


def filled(text: str) -> str:
    """The text with every marked block updated."""
    return _BLOCK.sub(_block, text)


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
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
