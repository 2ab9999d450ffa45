"""One module for each program that is asked; its class `Asked` is the driver."""

from __future__ import annotations

from pathlib import Path

NAMES = tuple(sorted(file.stem for file in Path(__file__).parent.glob("[a-z]*.py")))
"""The programs that have a driver."""
