"""The rest of a TrainJob's and a runtime's admission."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, did_you_mean
from trainlint.programs.kubeflow import GROUP, KINDS, VERSION, TrainerObject, TrainJob
from trainlint.rules import rule


@rule("TJ001", "unknown-kind")
def unknown_kind(document: TrainerObject) -> Iterator[Finding]:
    """The API group is the Trainer's, its version or kind is none that the Trainer serves.

    The group trainer.kubeflow.org has the version v1alpha1 with the kinds TrainJob, TrainingRuntime and
    ClusterTrainingRuntime. `kubectl apply` finds no match for anything else.

    Source: Kubeflow Trainer 2.0 and later, its CRDs.
    """
    version = document.api_version.map(lambda text: text.partition("/")[2])
    if version.known_and(lambda text: text != VERSION):
        yield version.finding(
            f"{GROUP} has no version {version}", help=f"write apiVersion: {GROUP}/{VERSION}", field="kind"
        )
    elif document.kind.absent or document.kind.wrong_type:
        yield document.kind.finding("kind is missing", help=f"write one of {', '.join(KINDS)}")
    elif document.kind.known_and_not_in(KINDS):
        hint = did_you_mean(str(document.kind), KINDS)
        yield document.kind.finding(f"{GROUP} has no kind {document.kind}", help=hint)


@rule("TJ101", "runtime-not-found")
def runtime_not_found(job: TrainJob) -> Iterator[Finding]:
    """The runtime that the job names does not exist.

    It is looked up by kind (ClusterTrainingRuntime unless `runtimeRef.kind` says otherwise) and name, a TrainingRuntime
    in the job's namespace. Admission refuses a job without its runtime, also one that is applied before it, and
    checks nothing else. By default a runtime found neither in the repository nor among those that the release ships
    may exist in the cluster: then this is a note that the checks which need it could not be made. `--runtimes closed`
    says that there are no others.

    Source: Kubeflow Trainer 2.0 and later, validation of TrainJobs.
    """
    if job.runtime is not None or job.runtime_name.known is None:
        return
    kind = str(job.runtime_kind)
    if kind not in KINDS[1:] or not job.runtime_group.is_(GROUP):
        return
    if job.runtime_missing:
        yield job.runtime_name.finding(
            f"there is no {kind} {job.runtime_name} when this job is applied",
            help="define the runtime before the job, or name one that the release ships",
            field="spec.runtimeRef",
        )
    else:
        yield job.runtime_name.finding(
            f"{kind} {job.runtime_name} is not in this repository: what depends on it is not checked",
            help="name the cluster's runtimes in the settings, or add its manifest",
            severity=Severity.NOTE,
        )
