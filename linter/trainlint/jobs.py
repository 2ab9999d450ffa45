"""Pieces of work in several processes: copies of this one, of which each takes every n-th piece.

A copy has everything that was read before, and sends back what it finds piece by piece. Where it ends before its last
piece, by a signal or for want of memory, another copy takes the pieces behind the one that it was at.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Generic, NoReturn, TypeVar

from trainlint.records import NamedTuple

Found = TypeVar("Found")
Rest = TypeVar("Rest")

_LENGTH = 8
"""Bytes of the length before each message."""
_FOUND, _REST, _RAISED = "found", "rest", "raised"


class Crash(NamedTuple):
    """How the process ended that was at a piece: `signal 9`, `exit 1`."""

    how: str


def can_copy() -> bool:
    """This system can make copies of a process; Windows cannot."""
    return hasattr(os, "fork")


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker(NamedTuple):
    process: int
    pipe: int
    pieces: list[int]
    received: bytearray


class Spread(Generic[Found, Rest]):
    """Work on numbered pieces, spread over some processes; `rest` is asked of each process when it is done.

    Pieces for which the system has no process are not in `found`.
    """

    def __init__(self, work: Callable[[int], Found], rest: Callable[[], Rest]) -> None:
        self._work = work
        self._rest = rest
        self.found: dict[int, Found | Crash] = {}
        self.rests: list[Rest] = []

    def run(self, pieces: Sequence[int], jobs: int) -> None:
        """Do it; what a process raises is raised here."""
        gc.freeze()
        with selectors.DefaultSelector() as waiting:
            try:
                for job in range(min(jobs, len(pieces))):
                    self._start(list(pieces[job::jobs]), waiting)
                while waiting.get_map():
                    for key, _ in waiting.select():
                        self._receive(key.data, waiting)
            finally:
                gc.unfreeze()
                for key in list(waiting.get_map().values()):
                    os.kill(key.data.process, signal.SIGKILL)
                    _end(key.data, waiting)

    def _start(self, pieces: list[int], waiting: selectors.BaseSelector) -> None:
        reading, writing = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        try:
            process = os.fork()
        except OSError:
            # There may be no more processes, or no memory for one: who has asked does these pieces itself.
            os.close(reading)
            os.close(writing)
            return
        if not process:
            os.close(reading)
            self._as_worker(pieces, writing)
        os.close(writing)
        waiting.register(reading, selectors.EVENT_READ, _Worker(process, reading, pieces, bytearray()))

    def _as_worker(self, pieces: list[int], pipe: int) -> NoReturn:
        code = 1
        with suppress(BaseException), os.fdopen(pipe, "wb") as stream:
            try:
                for piece in pieces:
                    _send(stream.write, (_FOUND, self._work(piece)))
                    stream.flush()
                _send(stream.write, (_REST, self._rest()))
                code = 0
            except Exception as error:
                _send(stream.write, (_RAISED, error))
        os._exit(code)

    def _receive(self, worker: _Worker, waiting: selectors.BaseSelector) -> None:
        data = os.read(worker.pipe, 1 << 20)
        worker.received.extend(data)
        while len(worker.received) >= _LENGTH:
            end = _LENGTH + int.from_bytes(worker.received[:_LENGTH], "big")
            if len(worker.received) < end:
                break
            kind, value = pickle.loads(worker.received[_LENGTH:end])
            del worker.received[:end]
            if kind == _RAISED:
                raise value
            if kind == _REST:
                self.rests.append(value)
                worker.pieces.clear()
            else:
                self.found[worker.pieces.pop(0)] = value
        if not data:
            how = _end(worker, waiting)
            if worker.pieces:
                self.found[worker.pieces[0]] = Crash(how)
                if worker.pieces[1:]:
                    self._start(worker.pieces[1:], waiting)


def _send(write: Callable[[bytes], object], message: object) -> None:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    write(len(data).to_bytes(_LENGTH, "big") + data)


def _end(worker: _Worker, waiting: selectors.BaseSelector) -> str:
    """Wait for a process that is at its end, and tell how it ended."""
    waiting.unregister(worker.pipe)
    os.close(worker.pipe)
    code = os.waitstatus_to_exitcode(os.waitpid(worker.process, 0)[1])
    return f"signal {-code}" if code < 0 else f"exit {code}"
