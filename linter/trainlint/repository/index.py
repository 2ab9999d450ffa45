"""What was found in a folder's files by the last run: a file that has not changed since is not opened again.

One small file for each folder stands in the user's cache folder, never in the repository. It says of each file what it
was then (size, times, inode) and a few small numbers that follow from its bytes alone; no finding is kept. It is used
only if this very version wrote it for this very folder, and it is whole, the user's own, and no link; whatever is wrong
with it, the files are read as if there were none. A file that was changed just before it was read is not kept, because
a second change may leave no trace in its times.

Source: the index of git, "racy git" in its technical notes; XDG base directory specification 0.8.
"""

from __future__ import annotations

import json
import os
import stat
import struct
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

from trainlint.repository.bounds import Stamp

VARIABLE = "TRAINLINT_CACHE"
"""The environment variable that names the cache folder; with `off` nothing is kept."""
_FORMAT = 1
_LARGEST = 64_000_000
"""Bytes of an index: that of 500,000 files is smaller."""
_RACY_NS = 2_000_000_000
"""How long before a run a file must have changed last, so that each later change shows; times on FAT are so coarse."""
_ABANDONED = 60
"""Seconds after which a half-written index is somebody's who was killed."""
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
_UNKNOWN = -1


class Question(IntEnum):
    """What is asked of a file and follows from its bytes alone."""

    MARKS = 0
    """Whose file it may be, a bit for each program, and which words it may say, a bit for each that is looked for."""
    COMMANDS = 1
    """A command of a program can stand in it."""
    STATES = 2
    """It states the release of a known package, names a file that may, or cannot be read."""


_STAMP = 4
_NOTHING = (_UNKNOWN,) * len(Question)
_ROW = struct.Struct(f"<{_STAMP + len(Question)}q")
Entry = tuple[int, ...]
"""A stamp, and an answer to each question, -1 where nobody asked."""


class Index:
    """The answers for the files of one folder.

    `version` is anything that changes when the same bytes could get another answer.
    """

    def __init__(self, folder: str, version: str, environment: Mapping[str, str] = os.environ) -> None:
        self._start = os.path.join(os.path.abspath(folder), "")
        self._version = version
        self._before = time.time_ns() - _RACY_NS
        self._file = _place(self._start, environment)
        self._changed = False
        found = _read(self._file, self._head()) if self._file else {}
        self._known: dict[str, Entry] = dict(zip(map(self._start.__add__, found), found.values(), strict=True))
        """By absolute path."""

    def answer(self, path: str, stamp: Stamp, question: Question) -> int | None:
        """What is known of a file, by its absolute path, that has this stamp now."""
        return self.answers([path], lambda _: (path, stamp), question).get(path)

    def answers(
        self, paths: Iterable[str], look: Callable[[str], tuple[str, Stamp] | None], question: Question
    ) -> dict[str, int]:
        """The same of many files, of which `look` gives the stamps that they have now; without what is not known."""
        known, place = self._known, _STAMP + question
        found: dict[str, int] = {}
        for path in paths:
            entry, looked = known.get(path), look(path)
            if entry is not None and looked is not None and entry[:_STAMP] == looked[1] and entry[place] != _UNKNOWN:
                found[path] = entry[place]
        return found

    def keep(self, path: str, stamp: Stamp, question: Question, answer: int) -> None:
        """Keep an answer for a file that had this stamp before it was read."""
        if path.startswith(self._start) and max(stamp[1:3]) < self._before:
            known = self._known.get(path)
            answers = known[_STAMP:] if known is not None and known[:_STAMP] == stamp else _NOTHING
            if answers[question] == answer:
                return
            self._known[path] = (*stamp, *answers[:question], answer, *answers[question + 1 :])
            self._changed = True

    def save(self, paths: Iterable[str]) -> None:
        """Keep what was found, of the files with these absolute paths; other runs may do the same."""
        if self._file and self._changed:
            self._changed = False
            there, skip = set(paths), len(self._start)
            entries = {path[skip:]: entry for path, entry in self._known.items() if path in there}
            with suppress(OSError, ValueError, struct.error):
                _write(self._file, self._head(), entries)

    def _head(self) -> list[object]:
        """What an index must begin with to be this one."""
        return [_FORMAT, self._version, self._start]


def _place(start: str, environment: Mapping[str, str]) -> Path | None:
    """The file for a folder; None where nothing is to be kept, or it would be kept in the folder itself."""
    chosen = environment.get(VARIABLE, "")
    if chosen.lower() == "off":
        return None
    cache = Path(chosen) if chosen else _caches(environment)
    if cache is None or not cache.is_absolute() or (str(cache) + os.sep).startswith(start):
        return None
    if os.path.join(os.path.realpath(cache), "").startswith(os.path.join(os.path.realpath(start), "")):
        return None
    return cache / f"{zlib.crc32(os.fsencode(start)):08x}-{len(start)}.index"


def _caches(environment: Mapping[str, str]) -> Path | None:
    """The folder for trainlint in the user's cache folder."""
    if os.name == "nt":
        base = environment.get("LOCALAPPDATA")
        return Path(base, "trainlint", "Cache") if base else None
    given = environment.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):
        return Path(given, "trainlint")
    home = environment.get("HOME")
    if not home:
        return None
    return Path(home, *(("Library", "Caches") if sys.platform == "darwin" else (".cache",)), "trainlint")


def _read(file: Path, head: list[object]) -> dict[str, Entry]:
    """The entries of an index, none where it cannot be trusted."""
    try:
        return _parsed(_bytes(file), head)
    except (OSError, ValueError, TypeError, RecursionError, struct.error):
        return {}


def _bytes(file: Path) -> bytes:
    descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _FLAGS)
    with open(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _is_own(status) or status.st_size > _LARGEST:
            raise ValueError("not an index of this user")
        return stream.read(_LARGEST)


def _is_own(status: os.stat_result) -> bool:
    """It belongs to the user, and nobody else may write to it."""
    return os.name == "nt" or (status.st_uid == os.geteuid() and not status.st_mode & 0o022)


def _parsed(data: bytes, head: list[object]) -> dict[str, Entry]:
    first, _, rest = data.partition(b"\n")
    *found, count, length, checksum = json.loads(first)
    if found != head or checksum != zlib.crc32(rest) or not isinstance(count, int) or not isinstance(length, int):
        raise ValueError("another index, or a damaged one")
    names = os.fsdecode(rest[:length]).split("\0") if count else []
    return dict(zip(names, _ROW.iter_unpack(rest[length:]), strict=True))


def _write(file: Path, head: list[object], entries: Mapping[str, Entry]) -> None:
    """Write an index beside the old one, and put it in its place at once; one that another run is writing has its way.

    Raises OSError.
    """
    names = os.fsencode("\0".join(entries))
    rest = names + b"".join(_ROW.pack(*entry) for entry in entries.values())
    first = json.dumps([*head, len(entries), len(names), zlib.crc32(rest)]).encode()
    folder = file.parent
    os.makedirs(folder, mode=0o700, exist_ok=True)
    status = os.lstat(folder)
    if not _is_own(status) or not stat.S_ISDIR(status.st_mode):
        return
    new = file.with_suffix(".new")
    with suppress(FileNotFoundError):
        if time.time() - os.lstat(new).st_mtime > _ABANDONED:
            os.unlink(new)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(first + b"\n" + rest)
        os.replace(new, file)
    except BaseException:
        os.unlink(new)
        raise
