"""The environments of the real programs, made by uv from the package registry, and the workers in them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from oracle.asking import Answer, Driver, Environment

ROOT = Path(__file__).resolve().parents[2]
HOME = Path(os.environ.get("ORACLE_HOME", ROOT / ".cache" / "oracle"))
"""Where environments and cases are kept; an environment with torch takes some gigabytes."""


def fingerprint(wanted: Environment) -> str:
    """What tells whether an environment is the one that is wanted."""
    return hashlib.sha256(repr(wanted).encode()).hexdigest()


def made(program: str, release: str, wanted: Environment) -> Path:
    """The Python of a release's environment, which is made where it is not there.

    Raises CalledProcessError where something cannot be installed.
    """
    place = HOME / "environments" / f"{program}-{release}"
    python = place / "bin" / "python"
    mark = place / ".made"
    digest = fingerprint(wanted)
    if mark.is_file() and mark.read_text(encoding="utf-8") == digest:
        return python
    print(f"making the environment of {program} {release}", file=sys.stderr)
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", wanted.python, place], check=True)
    overrides = place / "overrides.txt"
    left_out = (f"{name}; python_version < '3'\n" for name in wanted.without)
    overrides.write_text("".join([*(f"{pin}\n" for pin in wanted.pins), *left_out]), encoding="utf-8")
    install: list[str | Path] = [
        uv,
        "pip",
        "install",
        "--quiet",
        "--python",
        python,
        "--override",
        overrides,
        *wanted.packages,
    ]
    subprocess.run([*install, *wanted.pins], check=True)
    mark.write_text(digest, encoding="utf-8")
    return python


class Worker:
    """A process with the real program, which answers one case after the other."""

    def __init__(self, asked: Driver, release: str) -> None:
        python = made(asked.program, release, asked.environment(release))
        here = {"PYTHONPATH": str(ROOT / "tests"), "PYTHONHASHSEED": "0", "ORACLE_HOME": str(HOME)}
        self._process = subprocess.Popen(
            [python, "-m", "oracle.worker", asked.program, release],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **here},
        )
        self._read()

    def _read(self) -> object:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the worker ended with status {self._process.wait()}")
        return json.loads(line)

    def answers(self, folders: Sequence[Path]) -> Iterator[Answer]:
        """The answers on cases, in order, while the worker goes on with the next ones."""
        pipe = self._process.stdin
        assert pipe is not None

        def feed() -> None:
            for folder in folders:
                pipe.write(f"{folder}\n")
            pipe.flush()

        threading.Thread(target=feed, daemon=True).start()
        for _ in folders:
            told = self._read()
            assert isinstance(told, list)
            yield Answer(*told)

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
