"""Repositories to measure with: one of a company with many services, and the shapes that cost the most."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: tune-{number}
spec:
  runtimeRef:
    name: torchtune-{model}
  trainer:
    numNodes: {nodes}
    resourcesPerNode:
      limits: {{nvidia.com/gpu: {gpus}}}
    args:
      - batch_size={size}
"""
ACCELERATE = """\
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 1
num_processes: {gpus}
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_state_dict_type: FULL_STATE_DICT
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: team-{number}
spec:
  mlPolicy: {{numNodes: 1, torch: {{}}}}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata:
              labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
            spec:
              template:
                spec:
                  restartPolicy: Never
                  containers:
                    - name: node
                      image: registry.example.com/train:{number}
                      command: [torchrun, train.py]
                      resources: {{requests: {{cpu: 2}}, limits: {{cpu: {cpus}}}}}
"""
SERVICE = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: service-{number}
  labels: {{app: service-{number}, tier: backend}}
spec:
  replicas: {size}
  selector: {{matchLabels: {{app: service-{number}}}}}
  template:
    metadata: {{labels: {{app: service-{number}}}}}
    spec:
      containers:
"""
CONTAINER = """\
        - name: container-{number}
          image: registry.example.com/service:1.{size}
          ports: [{{containerPort: 80{size:02}}}]
          resources:
            requests: {{cpu: "{gpus}", memory: {size}Gi}}
          env:
"""
VARIABLE = '            - {{name: LEVEL_{number}, value: "{size}"}}\n'
WORKFLOW = """\
name: test-{number}
on: [push]
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: |
          make test-{number}
          ./scripts/run.sh --size {size}
"""
WORDS = (
    "learning rate micro batch size gradient accumulation steps warmup ratio sequence len sample packing flash"
    " attention lora alpha dropout target modules optimizer scheduler save eval"
).split()
MODELS = ("llama3.2-1b", "llama3.2-3b", "qwen2.5-1.5b", "llama3.3-70b", "unknown-7b")


def company(root: Path, files: int) -> None:
    """A git repository of YAML files, of which one in fifty is a TrainJob and one in fifty a config of accelerate."""
    dice = random.Random(files)
    for number in range(files):
        folder = root / f"team-{number % 40:02}" / f"service-{number % 400:03}"
        folder.mkdir(parents=True, exist_ok=True)
        values = {
            "number": number,
            "model": dice.choice(MODELS),
            "nodes": dice.choice((1, 1, 1, 2)),
            "gpus": dice.choice((1, 2, 4, 8)),
            "size": dice.randint(1, 64),
        }
        kind = dice.random()
        if number == 0 or kind < 0.02:
            name, text = f"job-{number}.yaml", JOB.format(**values)
        elif kind < 0.04:
            name, text = f"fsdp-{number}.yaml", ACCELERATE.format(**values)
        elif kind < 0.8:
            name, text = f"service-{number}.yaml", SERVICE.format(**values)
            for _ in range(dice.randint(1, 3)):
                text += CONTAINER.format(**values)
                text += "".join(VARIABLE.format(number=n, size=dice.random()) for n in range(dice.randint(3, 25)))
        else:
            name, text = f"test-{number}.yml", WORKFLOW.format(**values)
        (folder / name).write_text(text, encoding="utf-8")
    git = ["git", "-C", str(root), "-c", "gc.auto=0"]
    for arguments in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run([*git, *arguments], check=True)


def jobs_in_one_file(root: Path, jobs: int) -> None:
    """Many TrainJobs as documents of one file."""
    dice = random.Random(jobs)
    texts = [
        JOB.format(number=n, model=dice.choice(MODELS), nodes=1, gpus=dice.choice((1, 2)), size=n) for n in range(jobs)
    ]
    (root / "jobs.yaml").write_text("---\n".join(texts), encoding="utf-8")


def kustomizations(root: Path, folders: int) -> None:
    """Folders of which each has a job, and a kustomization with as many patches as there are folders."""
    patches = "".join(f"- path: patch-{number}.yaml\n" for number in range(folders))
    for number in range(folders):
        folder = root / f"overlay-{number}"
        folder.mkdir()
        (folder / "kustomization.yaml").write_text(f"patches:\n{patches}", encoding="utf-8")
        job = JOB.format(number=number, model=MODELS[0], nodes=1, gpus=1, size=1)
        (folder / "job.yaml").write_text(job, encoding="utf-8")


def launches(root: Path, scripts: int) -> None:
    """Scripts that all launch with one config."""
    (root / "a.yaml").write_text(ACCELERATE.format(gpus=2), encoding="utf-8")
    for number in range(scripts):
        launch = "accelerate launch --config_file a.yaml train.py\n"
        (root / f"run-{number}.sh").write_text(launch, encoding="utf-8")


def launches_in_folders(root: Path, folders: int) -> None:
    """Folders of which each has a config, a script that launches with it, and requirements of its own."""
    for number in range(folders):
        folder = root / f"run-{number}"
        folder.mkdir()
        (folder / "a.yaml").write_text(ACCELERATE.format(gpus=2), encoding="utf-8")
        (folder / "run.sh").write_text("accelerate launch --config_file a.yaml train.py\n", encoding="utf-8")
        (folder / "requirements.txt").write_text(f"accelerate==1.{number % 8}.0\n", encoding="utf-8")


def runtimes(root: Path, files: int) -> None:
    """Files of which each has a runtime."""
    for number in range(files):
        text = RUNTIME.format(number=number, cpus=number % 3 + 1)
        (root / f"runtime-{number}.yaml").write_text(text, encoding="utf-8")


def unknown_keys(root: Path, files: int) -> None:
    """Configs of axolotl, each with 400 keys that it does not know: the nearest known one is looked for each."""
    dice = random.Random(files)
    for number in range(files):
        names = {"_".join(dice.choices(WORDS, k=dice.randint(1, 4))) for _ in range(400)}
        keys = "".join(f"{name}_x: 1\n" for name in sorted(names))
        (root / f"config-{number}.yaml").write_text(f"base_model: a/b\nmicro_batch_size: 2\n{keys}", encoding="utf-8")


def repeated_scalar(root: Path, uses: int) -> None:
    """A long script with a thousand commands that many steps take by an alias."""
    script = "tune run full_finetune_single_device a=1; " * 1000
    steps = "".join(f"step-{number}: {{run: *s, script: *s, cmd: *s}}\n" for number in range(uses))
    (root / "a.yaml").write_text(f"s: &s '{script}'\n{steps}", encoding="utf-8")


SHAPES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    "1,000 TrainJobs in one file": (jobs_in_one_file, 1000),
    "400 kustomizations of 400 patches": (kustomizations, 400),
    "3,000 scripts with one config": (launches, 3000),
    "400 launches in 400 folders": (launches_in_folders, 400),
    "1,000 files with a runtime": (runtimes, 1000),
    "27 configs of 400 unknown keys": (unknown_keys, 27),
    "a script of 1,000 commands in 20 steps": (repeated_scalar, 20),
}
"""Many jobs, and the shapes that were or are the worst, each with its size."""
