"""Where reading ends: a regular file of bearable size that lies in a folder once links are resolved."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MAX_BYTES = 20_000_000
_KERNEL = tuple(os.path.join(os.sep, name, "") for name in ("dev", "proc", "sys"))


class PathError(ValueError):
    """A path that the user named, or that must be looked at for its sake, cannot be."""


def inside(root: Path, path: Path, known: dict[str, str] | None = None) -> str | None:
    """Where a path leads once links are resolved; None unless that is a regular file in the folder.

    Whatever a repository names is read through this, so that nothing outside, no device, no pipe and no file of the
    kernel's is, and what does not exist cannot be told from what lies outside. `known` holds folders that are resolved
    already, for many files of few folders.
    """
    known = {} if known is None else known
    try:
        folder, name = os.path.split(os.path.abspath(path))
        real = os.path.join(_resolved(folder, known), name)
        mode = os.lstat(real).st_mode
        if stat.S_ISLNK(mode):
            real = os.path.realpath(real)
            mode = os.stat(real).st_mode if _lies_in(real, _resolved(str(root), known)) else 0
    except (OSError, ValueError):
        return None
    bounded = _lies_in(real, _resolved(str(root), known)) and not real.startswith(_KERNEL)
    return real if bounded and stat.S_ISREG(mode) else None


def leads_out(root: Path, path: Path) -> bool:
    """A path does not lie in the folder once links are resolved, whether or not anything is there."""
    try:
        return not _lies_in(os.path.realpath(path), os.path.realpath(root))
    except (OSError, ValueError):
        return True


def read(root: Path, path: Path) -> bytes:
    """The bytes of a file that lies in the folder, one more than MAX_BYTES at most.

    Raises OSError.
    """
    real = inside(root, path)
    if real is None:
        raise OSError(errno.ENOENT, "no regular file of the workspace", str(path))
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(real, flags), "rb") as stream:
        return stream.read(MAX_BYTES + 1)


def _resolved(folder: str, known: dict[str, str]) -> str:
    if folder not in known:
        known[folder] = os.path.realpath(folder)
    return known[folder]


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))
