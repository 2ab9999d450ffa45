"""The TrainJob and the runtime that tests on TrainJobs start at."""

from __future__ import annotations


def train_job(runtime: str = "torch-distributed", *trainer: str) -> str:
    """The TrainJob `tune` on a runtime, with these lines in `spec.trainer`."""
    job = f"""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: tune
spec:
  runtimeRef:
    name: {runtime}
"""
    return f"{job}  trainer:\n{_indented(4, trainer)}" if trainer else job


def cluster_runtime(name: str, policy: str = "torch: {}", *pod: str) -> str:
    """A ClusterTrainingRuntime of one job `node`, with these lines in its pod's spec."""
    return f"""\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata:
  name: {name}
spec:
  mlPolicy:
    {policy}
  template:
    spec:
      replicatedJobs:
        - name: node
          template:
            metadata:
              labels:
                trainer.kubeflow.org/trainjob-ancestor-step: trainer
            spec:
              template:
                spec:
{_indented(18, pod)}\
                  containers:
                    - name: node
                      image: example.com/train:1
"""


def _indented(spaces: int, lines: tuple[str, ...]) -> str:
    return "".join(f"{' ' * spaces}{line}\n" for line in lines)
