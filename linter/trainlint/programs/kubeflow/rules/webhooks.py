"""What the Trainer's webhooks refuse: those of TrainJobs, with the plugins that they call, and those of runtimes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainlint.findings import Finding, Fix, Severity, Stage, did_you_mean, one_of
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.facts.admission import (
    FLUX_INSTALLER,
    HIGHEST_PRIORITIES,
    INITIALIZER_MOUNT,
    INITIALIZERS,
    QUEUE_ANNOTATION,
    RESERVED_MPI_ENV,
    RESERVED_XGBOOST_ENV,
    STEP_CONTAINERS,
    WEBHOOK_LABEL,
)
from trainlint.programs.kubeflow.facts.release import KubeflowFacts
from trainlint.programs.kubeflow.objects import GROUP, RUNTIME_KINDS, MergedJob, Runtime, TrainJob
from trainlint.reading import mending
from trainlint.reading.values import Value
from trainlint.rule import rule

_ENV_OF = {
    "node": "spec.trainer.env",
    "dataset-initializer": "spec.initializer.dataset.env",
    "model-initializer": "spec.initializer.model.env",
}
"""Where a TrainJob sets the variables of the containers that the Trainer fills."""


# the TrainJob's webhook


@rule("TJ101", "runtime-not-found", stage=Stage.ADMISSION, varies="note where the runtime may be in the cluster")
def runtime_not_found(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The runtime that the job names does not exist.

    It is looked up by kind (ClusterTrainingRuntime unless `runtimeRef.kind` says otherwise) and name, a TrainingRuntime
    in the job's namespace. Admission refuses a job whose runtime is missing, refused, or applied later, and checks
    nothing else. By default a runtime that is neither in the repository nor shipped with the release may exist in the
    cluster: then this is a note that the checks which need it were skipped. With `--runtimes closed` there are no other
    runtimes but those in `[tool.trainlint.cluster]`.

    Source: Kubeflow Trainer 2.0 and later, validation of TrainJobs.
    """
    if job.partial or job.runtime is not None or job.runtime_installed or job.runtime_name.known is None:
        return
    kind = str(job.runtime_kind)
    if kind not in RUNTIME_KINDS or not job.runtime_group.is_(GROUP):
        return
    if job.runtime_name.is_(""):
        if facts.empty_runtime_name:
            yield job.runtime_name.finding(f"the name of the {kind} is empty", field="spec.runtimeRef")
    elif job.runtime_missing:
        yield job.runtime_name.finding(
            f"{kind} {job.runtime_name} does not exist when this job is applied",
            help="define a valid one before the job, or list it under runtimes in [tool.trainlint.cluster]",
            field="spec.runtimeRef",
        )
    else:
        yield job.runtime_name.finding(
            f"{kind} {job.runtime_name} is not in this repository: checks that need it are skipped",
            help="add its manifest, or list it under runtimes in [tool.trainlint.cluster]",
            severity=Severity.NOTE,
        )


@rule("TJ102", "unsupported-runtime-kind", stage=Stage.ADMISSION)
def unsupported_runtime_kind(job: TrainJob) -> Iterator[Finding]:
    """runtimeRef names an unknown group or kind of runtime.

    The group must be trainer.kubeflow.org and the kind ClusterTrainingRuntime or TrainingRuntime, spelled exactly; both
    may be left out, an empty string is refused. A TrainJob without `spec` has no runtime at all.

    Source: Kubeflow Trainer 2.0 and later, the TrainJob's webhook.
    """
    if job.partial:
        return
    if job.spec.is_absent:
        yield job.spec.finding("the TrainJob has no spec", help="name its runtime in spec.runtimeRef.name")
    if job.runtime_group.known_and(lambda group: group != GROUP):
        group = job.runtime_group
        fix = mending.worded(group, GROUP) if group.is_("") else mending.respelled(group, [GROUP])
        yield group.finding(f"unknown group of runtimes {str(group)!r}", help=f"write {GROUP}", fix=fix)
    if job.runtime_kind.known_and_not_in(RUNTIME_KINDS):
        yield job.runtime_kind.finding(
            f"unknown kind of runtime {str(job.runtime_kind)!r}",
            help=did_you_mean(str(job.runtime_kind), RUNTIME_KINDS) or f"write {' or '.join(RUNTIME_KINDS)}",
            fix=mending.respelled(job.runtime_kind, RUNTIME_KINDS),
        )


@rule("TJ103", "deprecated-runtime", stage=Stage.RUN, severity=Severity.WARNING)
def deprecated_runtime(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The job's runtime is labelled as deprecated.

    A later release will remove a ClusterTrainingRuntime with the label trainer.kubeflow.org/support: deprecated; the
    API server answers with a warning.

    Source: Kubeflow Trainer 2.1 and later, validation of TrainJobs.
    """
    if job.runtime and _deprecated(job.runtime, facts):
        yield job.runtime_name.finding(
            f"the runtime {job.runtime_name} is deprecated",
            help="use another runtime",
            related=job.runtime.support.field.relate("the label is here"),
        )


def _deprecated(runtime: Runtime, facts: KubeflowFacts) -> bool:
    labelled = runtime.kind.is_(RUNTIME_KINDS[0]) and runtime.support.is_("deprecated")
    return labelled and facts.support_label


@rule("TJ111", "runtime-without-initializer", stage=Stage.ADMISSION)
def runtime_without_initializer(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The job has an initializer, and its runtime has no job or container that runs it.

    `initializer.dataset`, even an empty one, needs a job `dataset-initializer` with a container of that name in the
    runtime; `initializer.model` likewise. From 2.3 on that container must mount a volume called `initializer`.

    Source: Kubeflow Trainer 2.0 and later, jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    if jobs is None:
        return
    for key, name in INITIALIZERS.items():
        initializer = job.spec.at("initializer", key)
        if not initializer.is_absent and not initializer.is_unknown:
            lacks, help = _initializer_lacks(jobs.get(name), name, mounts=facts.initializer_mounts)
            if lacks:
                yield initializer.finding(
                    f"initializer.{key} needs {lacks} (runtime {job.runtime_name})",
                    help=f"{help}, or remove initializer.{key}",
                    field="spec.runtimeRef",
                    at_key=True,
                )


def _initializer_lacks(job: MergedJob | None, name: str, *, mounts: bool) -> tuple[str, str]:
    """What is missing in the runtime, and what to do about it."""
    if job is None:
        return f"a job {name}", f"use a runtime with the job {name}, as the torchtune runtimes have it"
    containers, initial = job.containers(), job.containers("initContainers")
    if containers is None or initial is None:
        return "", ""
    if name not in containers and name not in initial:
        return f"a container {name} in the job of that name", f"call the container in the runtime's job {name}"
    mounted = job.mounts(name)
    if mounts and not any(mount.is_(INITIALIZER_MOUNT) or mount.unknown for mount in mounted):
        return f"the volume {INITIALIZER_MOUNT} mounted in {name}", f"mount it in the runtime's container {name}"
    return "", ""


@rule("TJ112", "patch-of-unknown-job", stage=Stage.ADMISSION)
def patch_of_unknown_job(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An override or patch names a job that the runtime does not have.

    From 2.3 on such a patch is accepted, and adds a job of that name to the JobSet.

    Source: Kubeflow Trainer 2.0, 2.1 and 2.2, jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    for patch in job.pod_patches if jobs is not None else ():
        if jobs is not None and patch.job.known_and_not_in(jobs):
            yield patch.job.finding(
                f"the runtime {job.runtime_name} has no job {patch.job}",
                help=did_you_mean(str(patch.job), jobs) or f"write {one_of(jobs)}",
                fix=mending.respelled(patch.job, jobs) or _only(patch.job, jobs),
                field=f"spec.{facts.overrides_field}",
            )


def _only(name: Value[str], known: Collection[str]) -> Fix | None:
    return mending.worded(name, *known, sure=False) if len(known) == 1 else None


@rule("TJ113", "job-overridden-twice", stage=Stage.ADMISSION)
def job_overridden_twice(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """Two overrides have the same target job.

    In 2.0 a job may be the target of one entry of podSpecOverrides only.

    Source: Kubeflow Trainer 2.0, jobset plugin.
    """
    if job.runtime is None or not facts.one_override_per_job:
        return
    seen: dict[str, Value[str]] = {}
    for patch in job.pod_patches:
        name = patch.job.known
        if name is not None and name in seen:
            yield patch.job.finding(
                f"job {name} is the target of an earlier override, too",
                help="merge the two entries",
                field=f"spec.{facts.overrides_field}",
                related=seen[name].field.relate("the first one is here"),
            )
        elif name is not None:
            seen[name] = patch.job


@rule("TJ114", "patched-env", stage=Stage.ADMISSION)
def patched_env(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An override or patch sets env of a container whose env the Trainer sets.

    The variables of `node`, `dataset-initializer` and `model-initializer` come from `spec.trainer.env` and
    `spec.initializer`; patches may set env of other containers only.

    Source: Kubeflow Trainer 2.0 and later, jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    for patch in job.pod_patches if jobs is not None else ():
        if jobs is not None and patch.job.known in jobs:
            for container in patch.pod_spec.get("containers").items():
                if container.get("name").text().is_(*STEP_CONTAINERS.values()) and container.get("env").items():
                    yield container.get("env").finding(
                        f"a patch must not set env of the container {container.get('name').written}",
                        help=f"set it in {_ENV_OF[container.get('name').written]}",
                        field=f"spec.{facts.overrides_field}",
                        at_key=True,
                    )


@rule("TJ115", "patch-manager", stage=Stage.ADMISSION)
def patch_manager(job: TrainJob) -> Iterator[Finding]:
    """The manager of a runtime patch must have the form domain/path.

    It says who wrote the patch, such as example.com/me.

    Source: Kubeflow Trainer 2.2 and later, jobset plugin.
    """
    for patch in job.runtime_patches if job.runtime else ():
        manager = patch.get("manager").text()
        if manager.known_and(lambda text: names.domain_path(text) != ""):
            yield manager.finding(
                f"manager {str(manager)!r} must have the form domain/path",
                help="write something like example.com/NAME",
                field="spec.runtimePatches.manager",
            )


@rule("TJ116", "nameless-pull-secret", stage=Stage.ADMISSION)
def nameless_pull_secret(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """A patch adds a pull secret without a name to pods that have pull secrets, and the webhook crashes on it.

    Pull secrets are merged by name; where that fails the webhook goes on without the merged runtime and crashes, which
    refuses the job with an internal error that names no field.

    Source: Kubeflow Trainer 2.1 and later, merging of patches before the jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    if jobs is None or not facts.pull_secrets:
        return
    for merged in jobs.values():
        lists = [spec.get("imagePullSecrets") for spec in merged.pod_specs if spec.get("imagePullSecrets").items()]
        for item in (item for later in lists[1:] for item in later.items()):
            if item.is_mapping and (item.get("name").is_absent or item.get("name").text().is_("")):
                yield item.finding(
                    f"a pull secret without a name cannot be merged with those of job {merged.name}",
                    help="add its name",
                )


@rule("TJ121", "injection-target-missing", stage=Stage.ADMISSION)
def injection_target_missing(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The runtime's envInjection names a job or container that the runtime does not have.

    Every job on such a runtime is refused, while the runtime itself is accepted.

    Source: Kubeflow Trainer 2.3, torch plugin.
    """
    jobs = job.merged_jobs(facts)
    if jobs is None or job.runtime is None or not facts.injection_targets:
        return
    for target in job.runtime.ml_policy.at("torch", "envInjection", "targets").items():
        name = target.get("jobName").text().known
        if name is None:
            continue
        for container in target.get("containerNames").texts().known or []:
            if container.known is not None and _lacks_container(jobs.get(name), container.known):
                yield job.runtime_name.finding(
                    f"the runtime injects PET_* into container {container} of job {name}, which does not exist",
                    help="fix envInjection of the runtime, or use another runtime",
                    field="spec.runtimeRef",
                    related=container.field.relate("the name is here"),
                )


def _lacks_container(job: MergedJob | None, name: str) -> bool:
    if job is None:
        return True
    listed = [job.containers(), job.containers("initContainers")]
    return all(containers is not None and name not in containers for containers in listed)


@rule("TJ131", "mpi-num-proc-word", stage=Stage.ADMISSION)
def mpi_num_proc_word(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """numProcPerNode is a word where the runtime runs MPI, which needs a number.

    Source: Kubeflow Trainer 2.0 and 2.1, mpi plugin.
    """
    words = job.num_proc_per_node.text()
    if job.runs_policy("mpi") and facts.integer_mpi_processes and words.known is not None:
        yield words.finding(
            f"numProcPerNode must be a number with MPI, not {str(words)!r}", help="write a number without quotes"
        )


@rule("TJ132", "mpi-launcher-missing", stage=Stage.ADMISSION)
def mpi_launcher_missing(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """Several MPI nodes with the launcher as a node need both the launcher and the node job.

    With `runLauncherAsNode`, numNodes above 1 needs a job `launcher` and a job `node` in the runtime.

    Source: Kubeflow Trainer 2.0 and later, mpi plugin.
    """
    jobs = job.merged_jobs(facts)
    if jobs is None or job.runtime is None or not job.runs_policy("mpi") or not job.num_nodes.above(1):
        return
    lacking = [name for name in ("launcher", "node") if name not in jobs]
    if lacking and job.runtime.ml_policy.at("mpi", "runLauncherAsNode").boolean().is_(True):
        yield job.num_nodes.finding(
            f"numNodes must be 1: the runtime {job.runtime_name} has no job {' and no job '.join(lacking)}",
            help="set numNodes: 1, or use a runtime with the jobs launcher and node",
        )


@rule("TJ133", "mpi-reserved-env", stage=Stage.ADMISSION)
def mpi_reserved_env(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The job sets an environment variable of Open MPI that the controller sets itself.

    Source: Kubeflow Trainer 2.3, mpi plugin.
    """
    if job.runs_policy("mpi") and facts.reserved_mpi_env:
        for name in _env_names(job, RESERVED_MPI_ENV):
            yield name.finding(
                f"{name} is reserved: the controller sets it",
                help="remove it",
                field="spec.trainer.env",
                fix=mending.without_item(name.field.parent) if name.field.parent else None,
            )


def _env_names(job: TrainJob, reserved: Collection[str]) -> Iterator[Value[str]]:
    for env in job.env:
        name = env.get("name").text()
        if name.is_(*reserved):
            yield name


@rule("TJ141", "xgboost-reserved-env", stage=Stage.ADMISSION)
def xgboost_reserved_env(job: TrainJob) -> Iterator[Finding]:
    """The job sets an environment variable of XGBoost's tracker that the controller sets itself.

    Source: Kubeflow Trainer 2.2 and later, xgboost plugin.
    """
    if job.runs_policy("xgboost"):
        for name in _env_names(job, RESERVED_XGBOOST_ENV):
            entry = name.field.parent or name.field
            message = f"{name} is reserved: the controller sets it"
            yield name.finding(message, help="remove it", field=entry.field_path, fix=mending.without_item(entry))


@rule("TJ151", "flux-processes", stage=Stage.ADMISSION)
def flux_processes(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """numProcPerNode is below 1 on a Flux runtime.

    Source: Kubeflow Trainer 2.3, flux plugin.
    """
    procs = job.num_proc_per_node.integer()
    if job.runs_policy("flux") and facts.flux_counts_job and procs.below(1):
        yield procs.finding(
            f"numProcPerNode must be at least 1 with Flux, not {procs}", help="set numProcPerNode to 1 or more"
        )


@rule("TJ152", "flux-installer", stage=Stage.ADMISSION)
def flux_installer(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The pods of a Flux runtime have an init container called flux-installer.

    The controller adds a container of that name itself.

    Source: Kubeflow Trainer 2.2 and later, flux plugin.
    """
    jobs = job.merged_jobs(facts) if job.runs_policy("flux") else None
    node = (jobs or {}).get("node")
    for container in (node.containers("initContainers") or {}).get(FLUX_INSTALLER, []) if node else []:
        own = job.holds(container)
        at = container.get("name") if own else job.runtime_name.field
        yield at.finding(
            f"an init container must not be called {FLUX_INSTALLER}: the controller adds one",
            help="rename it",
            field="spec.trainer.initContainers",
            related=() if own else container.get("name").relate("the runtime has it here"),
        )
        return


@rule("TJ161", "volcano-queue", stage=Stage.ADMISSION)
def volcano_queue(job: TrainJob) -> Iterator[Finding]:
    """The name of Volcano's queue is empty.

    The annotation scheduling.volcano.sh/queue-name of the runtime's template, of the job (2.1) or of its patches (from
    2.2 on) names the queue; leave it out for the default queue.

    Source: Kubeflow Trainer 2.1 and later, volcano plugin.
    """
    if job.gangs_with_volcano and job.queue is not None and job.queue.is_(""):
        queue = job.queue.field
        own = job.holds(queue)
        yield (queue if own else job.runtime_name.field).finding(
            f"the annotation {QUEUE_ANNOTATION} is empty",
            help="name a queue, or remove the annotation",
            field=f"spec.annotations[{QUEUE_ANNOTATION}]",
            related=() if own else queue.relate("the runtime has it here"),
        )


@rule(
    "TJ162",
    "volcano-priority-class",
    stage=Stage.ADMISSION,
    varies="note where the settings do not list the cluster's classes",
)
def volcano_priority_class(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The priority class of the runtime's pods must exist in the cluster.

    With Volcano the webhook looks up the class of each job's pods, up to the first that is one of Kubernetes' own
    (system-cluster-critical, system-node-critical). List the cluster's classes under `priority-classes` in
    `[tool.trainlint.cluster]`; without such a list this is a note.

    Source: Kubeflow Trainer 2.1 and later, volcano plugin.
    """
    jobs = job.merged_jobs(facts) if job.gangs_with_volcano else None
    for merged in (jobs or {}).values():
        name = merged.pod_specs[0].get("priorityClassName").text() if merged.pod_specs else None
        if name is None or name.unknown or name.is_(*HIGHEST_PRIORITIES):
            return
        if name.known and (job.priority_classes is None or name.known not in job.priority_classes):
            unsure = job.priority_classes is None
            yield job.runtime_name.finding(
                f"the runtime's priority class {name} {'must exist' if unsure else 'does not exist'} in the cluster",
                help="list the cluster's classes under priority-classes in [tool.trainlint.cluster]"
                if unsure
                else did_you_mean(str(name), job.priority_classes or ()) or "use a runtime without it, or create it",
                severity=Severity.NOTE if unsure else None,
                field="spec.templateSpec.priorityClassName",
                related=name.field.relate("the name is here"),
            )


# the runtimes' webhooks


def _webhook_looks(runtime: Runtime, facts: KubeflowFacts) -> bool:
    opted_out = runtime.field.at("metadata", "labels", WEBHOOK_LABEL).text().is_("disabled")
    return not (opted_out and facts.opt_out)


@rule("TJ201", "runtime-replicas", stage=Stage.ADMISSION)
def runtime_replicas(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """The runtime job that runs a TrainJob's step must have exactly one replica.

    Nodes are the pods of this one job, whose number numNodes sets. The rule looks at jobs that are labelled as trainer,
    dataset-initializer or model-initializer, in 2.0 also at a job called launcher.

    Source: Kubeflow Trainer 2.0 and later, the runtimes' webhook; the label webhook-validation: disabled skips it from
    2.3.
    """
    if not _webhook_looks(runtime, facts):
        return
    for job in runtime.jobs:
        launcher = facts.launcher_replicas and job.name.is_("launcher")
        if (launcher or job.ancestor.is_(*STEP_CONTAINERS)) and job.replicas.known_and(lambda count: count != 1):
            yield job.replicas.finding(
                f"job {job.name} must have 1 replica",
                help="set replicas: 1, and numNodes for more nodes",
                fix=mending.written(job.replicas, "1", sure=False),
            )


@rule("TJ202", "runtime-container", stage=Stage.ADMISSION)
def runtime_container(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """A job of the runtime lacks the container that runs a TrainJob's step.

    The job labelled as trainer needs a container `node`, the ones labelled as dataset-initializer and model-initializer
    a container of that name. 2.0 accepts such a runtime, and image, command and arguments of its jobs have no effect.

    Source: Kubeflow Trainer 2.1 and later, the runtimes' webhook; the label webhook-validation: disabled skips it from
    2.3.
    """
    if runtime.partial or not facts.step_containers or not _webhook_looks(runtime, facts):
        return
    for job in runtime.jobs:
        wanted = STEP_CONTAINERS.get(job.ancestor.known or "")
        listed = job.pod_spec.get("containers")
        if wanted is None or listed.is_unknown or job.container(wanted):
            continue
        called = [container.name for container in job.containers]
        if not any(name.unknown for name in called):
            at = called[0].field if called else listed
            yield at.finding(
                f"job {job.name} has no container {wanted} to run the step {job.ancestor}",
                help=f"call its main container {wanted}",
                field=listed.field_path,
            )


@rule("TJ203", "deprecated-runtime-manifest", stage=Stage.RUN, severity=Severity.WARNING)
def deprecated_runtime_manifest(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """A ClusterTrainingRuntime is labelled as deprecated.

    The API server answers with a warning, also to each TrainJob that uses it.

    Source: Kubeflow Trainer 2.1 and later, the ClusterTrainingRuntime's webhook.
    """
    if _deprecated(runtime, facts) and _webhook_looks(runtime, facts):
        yield runtime.support.finding("this runtime is deprecated", help="move its jobs to another runtime")
