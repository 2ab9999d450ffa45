"""How far a long run is: a line on a terminal, never in a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from trainlint.reports.escape import columns, visible

BEGINS_AFTER = 1.0
"""Seconds without a line: most runs never show it."""
_EVERY = 0.1


def terminal_width(stream: TextIO | None = None) -> int:
    """The columns of the terminal that a stream (standard error) goes to; `COLUMNS` wins, and 80 is a guess.

    As shutil.get_terminal_size, whose module brings readers of archives into each run.
    """
    asked = os.environ.get("COLUMNS", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size((stream or sys.stderr).fileno()).columns or 80
    except (OSError, ValueError, AttributeError):
        return 80


def terminal_height() -> int:
    """The lines of the terminal that standard output goes to; `LINES` wins, and 24 is a guess."""
    asked = os.environ.get("LINES", "")
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).lines or 24
    except (OSError, ValueError, AttributeError):
        return 24


class Progress:
    """A line on a terminal that is written again and again, and is gone at the end."""

    def __init__(self, *, shown: bool, clock: Callable[[], float] = time.perf_counter) -> None:
        self._shown = shown
        self._clock = clock
        self._next = clock() + BEGINS_AFTER
        self._visible = False
        self.begun: list[tuple[float, str]] = []
        """When the check of each file began."""

    def __call__(self, done: int, total: int, path: str) -> None:
        """The check of a file begins; `done` files are checked."""
        now = self._clock()
        self.begun.append((now, path))
        if not self._shown or now < self._next:
            return
        self._next = now + _EVERY
        self._visible = True
        room = terminal_width() - 1
        line = f"checking {done:,} of {total:,} files: {visible(path)}"
        while columns(line) > room:
            line = line[:-1]
        self._write(line)

    def above(self, tell: Callable[[str, str], None]) -> Callable[[str, str], None]:
        """A function that writes lines, so that they come before this one."""

        def told(path: str, what: str) -> None:
            self.clear()
            tell(path, what)

        return told

    def clear(self) -> None:
        """Take the line away."""
        if self._visible:
            self._write("")
            self._visible = False

    def _write(self, line: str) -> None:
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
