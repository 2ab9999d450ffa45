"""Files that appear as a whole or not at all: a kill leaves no part of one behind."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
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


def write_whole(file: Path, data: bytes) -> None:
    """Make a file, or replace it, through a link if it is one; its mode stays. What is no file is written to.

    Raises OSError with the file's own name.
    """
    target = Path(os.path.realpath(file))
    if os.path.exists(target) and not os.path.isfile(target):
        target.write_bytes(data)
        return
    name = target.with_name(f".trainlint-{target.name}")
    try:
        descriptor, is_named = new_file(name)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.chmod(descriptor if os.chmod in os.supports_fd else name, _mode(target))
            if not is_named:
                give_name(descriptor, name)
        os.replace(name, target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def _mode(file: Path) -> int:
    """The mode of a file, or what the user's mask leaves a new one."""
    if file.exists():
        return file.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
