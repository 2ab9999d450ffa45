"""The limits of reading: only regular files, up to a size, that are in the folder after links are resolved.

Links are followed one by one, and only while they stay in the folder. A path that leads out is not even looked up:
on some systems that would mount a share or sign in to a server.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from trainlint.budget import BUDGET

MAX_BYTES = BUDGET.bytes
_KERNEL = tuple(os.path.join(os.sep, name, "") for name in ("dev", "proc", "sys"))
_MAX_LINKS = 40
_INODE = 2**63 - 1
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class PathError(ValueError):
    """A path that the user named, or a file that is needed for it, cannot be used."""


Stamp: TypeAlias = tuple[int, int, int, int]
"""What the disk says of a regular file: size, mtime and ctime in ns, inode. While it stays, so does the content."""


class Bounds:
    """The bounds of one folder; what is resolved is kept, for the folders and the files in them.

    A path that is a text is absolute and normal, as a listing gives it.
    """

    def __init__(self, root: Path) -> None:
        self._roots = (os.path.abspath(root), os.path.realpath(root))
        self._known: dict[str, str | None] = {}
        self._files: dict[str, tuple[str, Stamp] | None] = {}

    def file(self, path: str | Path) -> str | None:
        """The path with its links resolved; None unless it is a regular file in the folder.

        Every path that a repository names goes through this function. So nothing outside the folder, no device, no
        pipe and no file of the kernel is read, and a missing file cannot be told from one outside.
        """
        found = self.look(path if isinstance(path, str) else os.path.abspath(path))
        return found[0] if found else None

    def look(self, key: str) -> tuple[str, Stamp] | None:
        """The same path, with the file's stamp."""
        if key in self._files:
            return self._files[key]
        found = None
        above = key[: key.rfind(os.sep) + 1]
        try:
            start = self._known.get(above) or self._start(above)
            if start is not None:
                real = key if start == above else start + key[len(above) :]
                status = os.lstat(real)
                if stat.S_ISLNK(status.st_mode):
                    real = self._resolved(real) or ""
                    status = os.lstat(real) if real and not real.startswith(_KERNEL) else status
                if stat.S_ISREG(status.st_mode):
                    found = real, (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino & _INODE)
        except (OSError, ValueError):
            found = None
        self._files[key] = found
        return found

    def _start(self, above: str) -> str | None:
        """What the paths of a folder's files begin with after links are resolved; None where none is to be read."""
        if above not in self._known:
            parent = above[: above.rfind(os.sep, 0, -1) + 1]
            if parent not in self._known:
                self._known[parent] = self._begins(parent)
            start = self._known[parent]
            # A folder that is no link is where the one above it is.
            real = start and start + above[len(parent) :]
            is_plain = real is not None and os.name != "nt" and not os.path.islink(real[:-1])
            self._known[above] = real if is_plain else self._begins(above)
        return self._known[above]

    def _begins(self, folder: str) -> str | None:
        real = self._resolved(folder)
        start = real and os.path.join(real, "")
        return None if start is None or start.startswith(_KERNEL) else start

    def leaves(self, path: Path) -> bool:
        """A path is outside the folder after links are resolved, whether or not it exists."""
        try:
            return self._resolved(os.path.abspath(path)) is None
        except (OSError, ValueError):
            return True

    def read(self, path: str | Path) -> bytes:
        """The bytes of a file in the folder, at most one more than MAX_BYTES.

        Raises OSError.
        """
        found = self.look(path if isinstance(path, str) else os.path.abspath(path))
        if found is None:
            raise OSError(errno.ENOENT, "not a regular file in the workspace", str(path))
        real, (size, *_) = found
        descriptor = os.open(real, _FLAGS)
        try:
            data = os.read(descriptor, min(size, MAX_BYTES) + 1)
            while size != len(data) <= MAX_BYTES and (more := os.read(descriptor, MAX_BYTES + 1 - len(data))):
                data += more
            return data
        finally:
            os.close(descriptor)

    def _resolved(self, path: str) -> str | None:
        """An absolute path with the links below the folder followed; None as soon as it leaves the folder."""
        base = self._roots[1]
        below = _below(path, *self._roots)
        if below is None:
            return None
        current, rest, links = base, below, 0
        while rest:
            part = rest.pop()
            if part == os.pardir:
                current = os.path.dirname(current)
            elif part not in ("", os.curdir):
                current = os.path.join(current, part)
            if _below(current, base) is None:
                return None
            if os.path.islink(current):
                links += 1
                target = os.readlink(current)
                if links > _MAX_LINKS:
                    return None
                if os.path.isabs(target):
                    below = _below(target, *self._roots)
                    if below is None:
                        return None
                    current, rest = base, [*rest, *below]
                else:
                    current, rest = os.path.dirname(current), [*rest, *reversed(_parts(target))]
        # A junction of Windows is no link to Python before 3.12.
        return current if os.name != "nt" or _below(os.path.realpath(current), base) is not None else None


def inside(root: Path, path: Path) -> str | None:
    """The path with its links resolved; None unless it is a regular file in the folder."""
    return Bounds(root).file(path)


def leads_out(root: Path, path: Path) -> bool:
    """A path is outside the folder after links are resolved."""
    return Bounds(root).leaves(path)


def read(root: Path, path: Path) -> bytes:
    """The bytes of a file in the folder, at most one more than MAX_BYTES.

    Raises OSError.
    """
    return Bounds(root).read(path)


def walk(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each folder below one, with its folders and other names; those taken from the list are left out.

    It does what os.walk does, which before Python 3.12 calls itself for each level.
    """
    waiting = [os.fspath(folder)]
    while waiting:
        current = waiting.pop()
        folders: list[str] = []
        names: list[str] = []
        with suppress(OSError), os.scandir(current) as entries:
            for entry in entries:
                (folders if entry.is_dir(follow_symlinks=False) else names).append(entry.name)
        yield current, folders, names
        waiting += (os.path.join(current, name) for name in reversed(folders))


def _below(path: str, *folders: str) -> list[str] | None:
    """The parts of a path below one of the folders, the last first; None if it is in none of them."""
    # Windows spells one folder in several ways: C:\Repo, c:\repo.
    spelled = os.path.normcase(path)
    for folder in folders:
        known = os.path.normcase(folder)
        if spelled == known or spelled.startswith(os.path.join(known, "")):
            return _parts(path[len(folder) :])[::-1]
    return None


def _parts(path: str) -> list[str]:
    return path.replace(os.altsep or os.sep, os.sep).split(os.sep)
