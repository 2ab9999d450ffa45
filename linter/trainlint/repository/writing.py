"""Files that appear as a whole or not at all: a kill leaves no part of one behind."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_DESCRIPTORS = "/proc/self/fd"


def new_file(name: Path) -> tuple[int, bool]:
    """A new file for a name, and whether it has it already: where it need not, no kill leaves a part of it behind."""
    with suppress(OSError):
        if hasattr(os, "O_TMPFILE") and os.path.isdir(_DESCRIPTORS):
            return os.open(name.parent, os.O_TMPFILE | os.O_WRONLY, 0o600), False
    try:
        return os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0), 0o600), True
    except FileExistsError:
        raise OSError(errno.EEXIST, f"another run changes it, or was ended while it did; remove {name}") from None


def give_name(descriptor: int, name: Path) -> None:
    """Give a whole file its name; a kill just before it took its place is the only way in which one can be there."""
    name.unlink(missing_ok=True)
    # With the folder's descriptor, which the absolute path makes needless, Python follows the link to the file.
    os.link(f"{_DESCRIPTORS}/{descriptor}", name, src_dir_fd=descriptor)


@contextmanager
def replacing(target: Path, name: Path, data: bytes, called: Path) -> Iterator[int | Path]:
    """Write a new file that takes the place of another; it may be changed, and looked at again, before it does.

    Gives what stands for the new file: a descriptor where the system takes one, else `name`, which it has until then.
    Raises OSError, for a file that cannot be made with the name by which it is `called`.
    """
    try:
        descriptor, is_named = new_file(name)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(called)) from None
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            yield descriptor if os.chmod in os.supports_fd else name
            if not is_named:
                give_name(descriptor, name)
        os.replace(name, target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def write_whole(file: Path, data: bytes) -> None:
    """Make a file, or replace it, through a link if it is one; mode and owner stay. What is no file is written to.

    Raises OSError with the file's own name, also for a file that is read-only.
    """
    target = Path(os.path.realpath(file))
    before = target.stat() if target.exists() else None
    if before is not None and not os.path.isfile(target):
        target.write_bytes(data)
        return
    if before is not None and not os.access(target, os.W_OK):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(file))
    with replacing(target, target.with_name(f".trainlint-{target.name}"), data, file) as made:
        if sys.platform != "win32" and before is not None:
            with suppress(PermissionError):
                os.chown(made, before.st_uid, before.st_gid)
        os.chmod(made, _new_mode() if before is None else before.st_mode & 0o7777)


def _new_mode() -> int:
    """What the user's mask leaves a new file."""
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
