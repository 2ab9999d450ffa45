"""What the modules here share: a job with a mistake, and trainlint run on it as its own process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import trainlint

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodez: 1}
"""

_PACKAGE = str(Path(trainlint.__file__).parent.parent)
_MAIN = f"import sys; sys.path.insert(0, {_PACKAGE!r}); from trainlint.cli import main; main()"


_NOT_STATED = re.compile(r"^trainlint: no file states the release of [^\n]*\n", re.MULTILINE)


def without_notice(text: str) -> str:
    """An output without the notice that nothing states a release."""
    return _NOT_STATED.sub("", text)


def check(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`trainlint ARGUMENTS`, as a process that imports nothing from where it stands."""
    return subprocess.run(
        [sys.executable, "-I", "-c", _MAIN, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
    )
