"""What the Trainer's webhooks refuse: those of TrainJobs, with the plugins that they ask, and those of runtimes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainlint.findings import Finding, Severity, did_you_mean, some_of
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
from trainlint.reading.values import Value
from trainlint.rule import rule

# the TrainJob's webhook


@rule("TJ101", "runtime-not-found")
def runtime_not_found(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The runtime that the job names does not exist.

    It is looked up by kind (ClusterTrainingRuntime unless `runtimeRef.kind` says otherwise) and name, a TrainingRuntime
    in the job's namespace. Admission refuses a job without its runtime, also one that is applied before it, and
    checks nothing else. By default a runtime found neither in the repository nor among those that the release ships
    may exist in the cluster: then this is a note that the checks which need it could not be made. `--runtimes closed`
    says that there are no others but those of `[tool.trainlint.cluster]`.

    Source: Kubeflow Trainer 2.0 and later, validation of TrainJobs.
    """
    if job.partial or job.runtime is not None or job.runtime_installed or job.runtime_name.known is None:
        return
    kind = str(job.runtime_kind)
    if kind not in RUNTIME_KINDS or not job.runtime_group.is_(GROUP):
        return
    if job.runtime_name.is_(""):
        if facts.empty_runtime_name:
            yield job.runtime_name.finding(f"no {kind} has an empty name", field="spec.runtimeRef")
    elif job.runtime_missing:
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


@rule("TJ102", "unsupported-runtime-kind")
def unsupported_runtime_kind(job: TrainJob) -> Iterator[Finding]:
    """runtimeRef names a group or kind that is no runtime of the Trainer's.

    The group must be trainer.kubeflow.org and the kind ClusterTrainingRuntime or TrainingRuntime, spelled exactly; both
    may be left out, an empty text is refused. A TrainJob without `spec` has no runtime at all.

    Source: Kubeflow Trainer 2.0 and later, the TrainJob's webhook.
    """
    if job.partial:
        return
    if job.spec.is_absent:
        yield job.spec.finding("a TrainJob needs a spec", help="name its runtime in spec.runtimeRef.name")
    if job.runtime_group.known_and(lambda group: group != GROUP):
        yield job.runtime_group.finding(f"no runtime has the group {str(job.runtime_group)!r}", help=f"write {GROUP}")
    if job.runtime_kind.known_and_not_in(RUNTIME_KINDS):
        yield job.runtime_kind.finding(
            f"there is no runtime of kind {str(job.runtime_kind)!r}",
            help=did_you_mean(str(job.runtime_kind), RUNTIME_KINDS) or f"write {' or '.join(RUNTIME_KINDS)}",
        )


@rule("TJ103", "deprecated-runtime", severity=Severity.WARNING)
def deprecated_runtime(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The job's runtime is labelled as deprecated.

    A ClusterTrainingRuntime with the label trainer.kubeflow.org/support: deprecated will go in a later release; the
    API server answers with a warning.

    Source: Kubeflow Trainer 2.1 and later, validation of TrainJobs.
    """
    if job.runtime and _deprecated(job.runtime, facts):
        yield job.runtime_name.finding(
            f"the runtime {job.runtime_name} is deprecated",
            help="move to another runtime",
            related=job.runtime.support.field.relate("it is labelled here"),
        )


def _deprecated(runtime: Runtime, facts: KubeflowFacts) -> bool:
    labelled = runtime.kind.is_(RUNTIME_KINDS[0]) and runtime.support.is_("deprecated")
    return labelled and facts.support_label


@rule("TJ111", "runtime-without-initializer")
def runtime_without_initializer(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The job has an initializer and its runtime none to run it.

    `initializer.dataset`, even an empty one, needs a job `dataset-initializer` with a container of that name in the
    runtime; `initializer.model` likewise. From 2.3 that container must mount a volume called `initializer`.

    Source: Kubeflow Trainer 2.0 and later, jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    if jobs is None:
        return
    for key, name in INITIALIZERS.items():
        initializer = job.spec.at("initializer", key)
        if not initializer.is_absent and not initializer.is_unknown:
            lacks = _initializer_lacks(jobs.get(name), name, mounts=facts.initializer_mounts)
            if lacks:
                yield initializer.finding(
                    f"the runtime {job.runtime_name} has no {lacks}, which initializer.{key} needs",
                    help=f"remove initializer.{key}, or use a runtime that has it",
                    field="spec.runtimeRef",
                    at_key=True,
                )


def _initializer_lacks(job: MergedJob | None, name: str, *, mounts: bool) -> str:
    if job is None:
        return f"job {name}"
    containers, initial = job.containers(), job.containers("initContainers")
    if containers is None or initial is None:
        return ""
    if name not in containers and name not in initial:
        return f"container {name} in its job {name}"
    mounted = job.mounts(name)
    if mounts and not any(mount.is_(INITIALIZER_MOUNT) or mount.unknown for mount in mounted):
        return f"mount of a volume {INITIALIZER_MOUNT} in its container {name}"
    return ""


@rule("TJ112", "patch-of-unknown-job")
def patch_of_unknown_job(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An override or patch names a job that the runtime does not have.

    From 2.3 such a patch is taken and adds a job of that name to the JobSet.

    Source: Kubeflow Trainer 2.0, 2.1 and 2.2, jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    for patch in job.pod_patches if jobs is not None else ():
        if jobs is not None and patch.job.known_and_not_in(jobs):
            yield patch.job.finding(
                f"the runtime {job.runtime_name} has no job {patch.job}",
                help=did_you_mean(str(patch.job), jobs) or f"it has {some_of(jobs)}",
                field=f"spec.{facts.overrides_field}",
            )


@rule("TJ113", "job-overridden-twice")
def job_overridden_twice(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """Two overrides have the same target job.

    2.0 takes a job as target once, over all entries of podSpecOverrides.

    Source: Kubeflow Trainer 2.0, jobset plugin.
    """
    if job.runtime is None or not facts.one_override_per_job:
        return
    seen: dict[str, Value[str]] = {}
    for patch in job.pod_patches:
        name = patch.job.known
        if name is not None and name in seen:
            yield patch.job.finding(
                f"{name} is the target of an earlier override",
                help="put both into one entry",
                field=f"spec.{facts.overrides_field}",
                related=seen[name].field.relate("the first one"),
            )
        elif name is not None:
            seen[name] = patch.job


@rule("TJ114", "patched-env")
def patched_env(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An override or patch sets the environment of a container that the Trainer fills.

    The environment of `node`, `dataset-initializer` and `model-initializer` comes from `spec.trainer.env` and
    `spec.initializer`; patches may set that of other containers only.

    Source: Kubeflow Trainer 2.0 and later, jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    for patch in job.pod_patches if jobs is not None else ():
        if jobs is not None and patch.job.known in jobs:
            for container in patch.pod_spec.get("containers").items():
                if container.get("name").text().is_(*STEP_CONTAINERS.values()) and container.get("env").items():
                    yield container.get("env").finding(
                        f"a patch must not set env of the container {container.get('name').written}",
                        help="set it in spec.trainer.env, or in the initializer's env",
                        field=f"spec.{facts.overrides_field}",
                        at_key=True,
                    )


@rule("TJ115", "patch-manager")
def patch_manager(job: TrainJob) -> Iterator[Finding]:
    """The manager of a runtime patch is no domain and path.

    It says who wrote the patch: a DNS name, `/` and a path, such as example.com/me.

    Source: Kubeflow Trainer 2.2 and later, jobset plugin.
    """
    for patch in job.runtime_patches if job.runtime else ():
        manager = patch.get("manager").text()
        if manager.known_and(lambda text: names.domain_path(text) != ""):
            yield manager.finding(
                f"the manager {manager!s} is no domain and path",
                help="write example.com/NAME",
                field="spec.runtimePatches.manager",
            )


@rule("TJ116", "nameless-pull-secret")
def nameless_pull_secret(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """A patch holds a pull secret without a name for pods that have pull secrets, and the webhook crashes on it.

    Patches are merged by name; where that fails the webhook goes on without the merged runtime and crashes, which
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
                    f"a nameless pull secret cannot be merged with those of {merged.name}", help="name the secret"
                )


@rule("TJ121", "injection-target-missing")
def injection_target_missing(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The runtime's envInjection names a job or container that is not there.

    Every job on such a runtime is refused, while the runtime itself is taken.

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
                    help="mend the runtime's envInjection",
                    field="spec.runtimeRef",
                    related=container.field.relate("it is named here"),
                )


def _lacks_container(job: MergedJob | None, name: str) -> bool:
    if job is None:
        return True
    listed = [job.containers(), job.containers("initContainers")]
    return all(containers is not None and name not in containers for containers in listed)


@rule("TJ131", "mpi-num-proc-word")
def mpi_num_proc_word(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """numProcPerNode is a word on an MPI runtime, which needs a number.

    Source: Kubeflow Trainer 2.0 and 2.1, mpi plugin.
    """
    words = job.num_proc_per_node.text()
    if job.runs_policy("mpi") and facts.integer_mpi_processes and words.known is not None:
        yield words.finding(
            f"MPI needs a number of processes, not {str(words)!r}", help="write a number without quotes"
        )


@rule("TJ132", "mpi-launcher-missing")
def mpi_launcher_missing(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """Several nodes on an MPI runtime whose launcher is a node and whose jobs are not both there.

    With `runLauncherAsNode` more than one node needs a job `launcher` and a job `node` in the runtime.

    Source: Kubeflow Trainer 2.0 and later, mpi plugin.
    """
    jobs = job.merged_jobs(facts)
    if jobs is None or job.runtime is None or not job.runs_policy("mpi") or not job.num_nodes.above(1):
        return
    lacking = [name for name in ("launcher", "node") if name not in jobs]
    if lacking and job.runtime.ml_policy.at("mpi", "runLauncherAsNode").boolean().is_(True):
        yield job.num_nodes.finding(
            f"numNodes must be 1: the runtime {job.runtime_name} has no job {' and no job '.join(lacking)}",
            help="use a runtime with the jobs launcher and node",
        )


@rule("TJ133", "mpi-reserved-env")
def mpi_reserved_env(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An environment variable of Open MPI that the controller sets is set by hand.

    Source: Kubeflow Trainer 2.3, mpi plugin.
    """
    if job.runs_policy("mpi") and facts.reserved_mpi_env:
        for name in _env_names(job, RESERVED_MPI_ENV):
            yield name.finding(
                f"{name} is reserved: the controller sets it", help="remove it", field="spec.trainer.env"
            )


def _env_names(job: TrainJob, reserved: Collection[str]) -> Iterator[Value[str]]:
    for env in job.env:
        name = env.get("name").text()
        if name.is_(*reserved):
            yield name


@rule("TJ141", "xgboost-reserved-env")
def xgboost_reserved_env(job: TrainJob) -> Iterator[Finding]:
    """An environment variable of XGBoost's tracker that the controller sets is set by hand.

    Source: Kubeflow Trainer 2.2 and later, xgboost plugin.
    """
    if job.runs_policy("xgboost"):
        for name in _env_names(job, RESERVED_XGBOOST_ENV):
            entry = name.field.parent or name.field
            yield name.finding(f"{name} is reserved: the controller sets it", help="remove it", field=entry.field_path)


@rule("TJ151", "flux-processes")
def flux_processes(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """numProcPerNode is below 1 on a Flux runtime.

    Source: Kubeflow Trainer 2.3, flux plugin.
    """
    procs = job.num_proc_per_node.integer()
    if job.runs_policy("flux") and facts.flux_counts_job and procs.below(1):
        yield procs.finding(
            f"Flux needs at least 1 process per node, not {procs}", help="set numProcPerNode to 1 or more"
        )


@rule("TJ152", "flux-installer")
def flux_installer(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The pods of a Flux runtime hold an init container called flux-installer.

    The controller adds one of that name itself.

    Source: Kubeflow Trainer 2.2 and later, flux plugin.
    """
    jobs = job.merged_jobs(facts) if job.runs_policy("flux") else None
    node = (jobs or {}).get("node")
    for container in (node.containers("initContainers") or {}).get(FLUX_INSTALLER, []) if node else []:
        own = job.holds(container)
        at = container.get("name") if own else job.runtime_name.field
        yield at.finding(
            f"the init container {FLUX_INSTALLER} is the controller's own",
            help="rename yours",
            field="spec.trainer.initContainers",
            related=() if own else container.get("name").relate("the runtime has it here"),
        )
        return


@rule("TJ161", "volcano-queue")
def volcano_queue(job: TrainJob) -> Iterator[Finding]:
    """The queue for Volcano is an empty text.

    The annotation scheduling.volcano.sh/queue-name of the runtime's template, of the job (2.1) or of its patches (from
    2.2) names the queue; leave it out for the default queue.

    Source: Kubeflow Trainer 2.1 and later, volcano plugin.
    """
    if job.gangs_with_volcano and job.queue is not None and job.queue.is_(""):
        queue = job.queue.field
        own = job.holds(queue)
        yield (queue if own else job.runtime_name.field).finding(
            f"{QUEUE_ANNOTATION} names no queue",
            help="name a queue, or remove the annotation",
            field=f"spec.annotations[{QUEUE_ANNOTATION}]",
            related=() if own else queue.relate("the runtime has it here"),
        )


@rule("TJ162", "volcano-priority-class")
def volcano_priority_class(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The priority class of the runtime's pods must exist in the cluster.

    With Volcano the webhook looks up the class of each job's pods, until it meets one of Kubernetes' own
    (system-cluster-critical, system-node-critical). Which classes a cluster has can be said in
    `[tool.trainlint.cluster]`, `priority-classes`; without that this is a note.

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
                help="list the cluster's classes in [tool.trainlint.cluster] priority-classes",
                severity=Severity.NOTE if unsure else None,
                field="spec.templateSpec.priorityClassName",
                related=name.field.relate("it is named here"),
            )


# the runtimes' webhooks


def _webhook_looks(runtime: Runtime, facts: KubeflowFacts) -> bool:
    opted_out = runtime.field.at("metadata", "labels", WEBHOOK_LABEL).text().is_("disabled")
    return not (opted_out and facts.opt_out)


@rule("TJ201", "runtime-replicas")
def runtime_replicas(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """A job of the runtime that a TrainJob's step goes into has not one replica.

    Nodes come from the parallelism of the one job, which numNodes sets. It concerns jobs that are labelled as trainer,
    dataset-initializer or model-initializer, in 2.0 also a job called launcher.

    Source: Kubeflow Trainer 2.0 and later, the runtimes' webhook; the label webhook-validation: disabled skips it from
    2.3.
    """
    if not _webhook_looks(runtime, facts):
        return
    for job in runtime.jobs:
        launcher = facts.launcher_replicas and job.name.is_("launcher")
        if (launcher or job.ancestor.is_(*STEP_CONTAINERS)) and job.replicas.known_and(lambda count: count != 1):
            yield job.replicas.finding(f"the job {job.name} must have 1 replica", help="set numNodes for more nodes")


@rule("TJ202", "runtime-container")
def runtime_container(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """A job of the runtime lacks the container that a TrainJob's step goes into.

    The job labelled as trainer needs a container `node`, the ones labelled as dataset-initializer and model-initializer
    a container of that name. 2.0 took such a runtime, and image, command and arguments of its jobs went nowhere.

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
                f"the job {job.name} has no container {wanted}, where {job.ancestor} goes",
                help=f"name the main container {wanted}",
                field=listed.field_path,
            )


@rule("TJ203", "deprecated-runtime-manifest", severity=Severity.WARNING)
def deprecated_runtime_manifest(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """A ClusterTrainingRuntime is labelled as deprecated.

    The API server answers with a warning to it, and to each TrainJob that names it.

    Source: Kubeflow Trainer 2.1 and later, the ClusterTrainingRuntime's webhook.
    """
    if _deprecated(runtime, facts) and _webhook_looks(runtime, facts):
        yield runtime.support.finding("this runtime is deprecated", help="move its jobs to another runtime")
