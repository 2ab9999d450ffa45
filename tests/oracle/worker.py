"""Asks the real program: `python -m oracle.worker PROGRAM RELEASE`, in the environment of that release.

It reads a folder a line, and prints an answer as JSON for each, in order. The program is imported once; each case runs
in a forked child, in a copy of its folder, so that nothing of one case is left for the next.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path

from oracle.asking import Answer, CannotTell, Driver, Progress, driver

SECONDS = 120
"""The time for one case."""
FIRST = 20
"""The cases after which nothing is imported for the next ones any more."""


def answer(asked: Driver, folder: Path) -> Answer:
    """The program's answer on a case, whose copy is the current folder."""
    progress = Progress()
    try:
        asked.ask(folder, progress)
    except (CannotTell, ImportError) as reason:
        return Answer("cannot tell", progress.stage, words(reason, folder))
    except BaseException as refusal:
        if os.environ.get("ORACLE_TRACE"):
            return Answer("refuse", progress.stage, traceback.format_exc()[-3000:])
        return Answer("refuse", progress.stage, words(refusal, folder))
    return Answer("accept", progress.stage)


def words(problem: BaseException, folder: Path) -> str:
    """An exception on one line, without the paths of this machine."""
    errors = getattr(problem, "errors", None)
    text = str(problem)
    if callable(errors):
        with suppress(Exception):
            text = "; ".join(f"{'.'.join(map(str, row['loc']))}: {row['msg']}" for row in errors())
    text = text.replace(str(folder), "").replace(tempfile.gettempdir(), "")
    text = re.sub(r"0x[0-9a-f]{6,}", "0x..", " ".join(text.split()))
    return f"{type(problem).__name__}: {text}"[:700]


def in_child(asked: Driver, folder: Path) -> tuple[Answer, list[str]]:
    """The answer of a forked child, which runs in a copy of the folder, and the modules that it imported."""
    before = set(sys.modules)
    place = Path(tempfile.mkdtemp(prefix="case"))
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with suppress(BaseException):
            null = os.open(os.devnull, os.O_RDWR)
            # What asks for input must not get the next cases.
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os.setpgid(0, 0)
            signal.alarm(SECONDS)
            copy = shutil.copytree(folder, place / "case")
            os.chdir(copy)
            with os.fdopen(write, "w") as channel:
                told = answer(asked, copy)
                channel.write(json.dumps([told, sorted(set(sys.modules) - before)]))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as telling:
        line = telling.read()
    os.waitpid(child, 0)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    shutil.rmtree(place, ignore_errors=True)
    if not line:
        return Answer("cannot tell", "", "the child ended without an answer"), []
    said, imported = json.loads(line)
    return Answer(*said), imported


def import_all(names: list[str]) -> None:
    """Import what a child imported, so that the next ones have it; what fails here is left to them."""
    for name in names:
        with suppress(BaseException):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def main() -> None:
    """Load the program and answer until the input ends."""
    program, release = sys.argv[1:3]
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    asked = driver(program)
    asked.load(release)
    import_all([])
    print(json.dumps("ready"), file=channel)
    for number, line in enumerate(sys.stdin):
        said, imported = in_child(asked, Path(line.rstrip("\n")))
        if asked.imports_late and imported and number < FIRST:
            import_all(imported)
        print(json.dumps(said), file=channel)


if __name__ == "__main__":
    main()
