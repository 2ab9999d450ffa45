"""What becomes of an admitted TrainJob: its JobSet, Jobs and pods, and torchrun in them."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity
from trainlint.programs.kubeflow import TrainJob
from trainlint.rules import rule


@rule("TJ501", "negative-num-nodes", program="kubernetes")
def negative_num_nodes(job: TrainJob) -> Iterator[Finding]:
    """numNodes is negative.

    Admission takes the job; the Job made from it has a negative parallelism and is refused, with nothing on the
    TrainJob that says so.

    Source: Kubernetes 1.36, validation of Jobs, on what Kubeflow Trainer 2.0 and later builds.
    """
    if job.num_nodes.below(0):
        yield job.num_nodes.finding(
            "the Job made from a negative numNodes is refused", help="set numNodes to 1 or more"
        )


@rule("TJ502", "zero-num-nodes", severity=Severity.WARNING, program="kubernetes")
def zero_num_nodes(job: TrainJob) -> Iterator[Finding]:
    """numNodes is 0: the job turns Complete and nothing has run.

    The Job made from it wants no pod, so it succeeds at once, and with it the TrainJob.

    Source: Kubeflow Trainer 2.3 with JobSet 0.12 on Kubernetes 1.36, run live.
    """
    if job.num_nodes.is_(0):
        yield job.num_nodes.finding(
            "with numNodes 0 the job turns Complete without running", help="set numNodes to 1 or more"
        )


@rule("TJ503", "num-proc-below-one", program="torchrun")
def num_proc_below_one(job: TrainJob) -> Iterator[Finding]:
    """numProcPerNode is 0 or negative, which kills torchrun.

    Admission does not look at the number; torchrun gets it as PET_NPROC_PER_NODE and stops with a bare assertion.

    Source: torchrun of torch 2.13, run with these values.
    """
    procs = job.num_proc_per_node.integer()
    if job.runtime and job.runtime.torch and procs.below(1):
        yield procs.finding("torchrun needs at least one process per node", help="set numProcPerNode to 1 or more")
