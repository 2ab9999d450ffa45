"""What the modules here share: a job with a mistake, and trainlint run on it as its own process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from cProfile import Profile
from pathlib import Path

import trainlint
from trainlint.report import Report

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodez: 1}
"""
ACCELERATE = """\
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
num_processes: 2
fsdp_config:
  fsdp_version: 1
"""
ARGUMENTS = "model_name_or_path: x\nper_device_train_batch_size: 1\nnum_train_epochs: 1\noutput_dir: x\n"
AXOLOTL = "base_model: x\ndatasets: [{path: a, type: alpaca}]\nmicro_batch_size: 1\nadapter: lora\n"
SOUP = "base: x\ntask: sft\ndata: {train: a}\ntraining: {epochs: 1}\n"
RECIPE = "model:\n  _component_: torchtune.models.llama3.llama3_8b\n"
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: NAME}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: i}]}}}
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


def steps(run: Callable[[], object]) -> int:
    """How many calls a function makes, those into C included: the same on every machine."""
    counter = Profile(builtins=True)
    counter.runcall(run)
    return sum(entry.callcount + entry.reccallcount for entry in counter.getstats())


def build(folder: Path, files: dict[str, str | bytes]) -> Path:
    """A workspace with these files."""
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
    return folder


def codes(report: Report) -> dict[str, set[str]]:
    """The rules with a finding, by the name of the file."""
    found: dict[str, set[str]] = {}
    for finding in report.findings:
        found.setdefault(Path(finding.path).name, set()).add(finding.rule)
    return found
