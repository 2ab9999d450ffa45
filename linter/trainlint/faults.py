"""How an exception in trainlint itself is told."""

from __future__ import annotations

import os
import traceback
from pathlib import Path


def at_fault(error: Exception) -> str:
    """What kind of exception it is and where in the code it comes from; its text may hold contents of files."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"


def fault(error: Exception) -> str:
    """One line on an exception in trainlint itself, outside the check of a file."""
    what = " ".join(str(error).split())
    return f"internal error, please report it: {at_fault(error)}{f': {what}' if what else ''}"


def is_debugged() -> bool:
    """Exceptions are raised, for those who look for them."""
    return bool(os.environ.get("TRAINLINT_DEBUG"))
