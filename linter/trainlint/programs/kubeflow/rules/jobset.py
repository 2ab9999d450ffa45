"""What JobSet and Kubernetes say of the JobSet and Jobs that a TrainJob becomes, and torchrun in their pods."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage, did_you_mean, one_of
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.build import NAME_LIMIT, Build, BuiltJob
from trainlint.programs.kubeflow.built_pods import Pods, command_words
from trainlint.programs.kubeflow.built_value import BuiltValue, Owner
from trainlint.programs.kubeflow.facts.jobset import EXCLUSIVE_TOPOLOGY, FAILURE_REASONS, TORCHRUN_WORDS
from trainlint.programs.kubeflow.facts.pods import CLAIM_WORDS, MAX_INT32, MAX_PODS
from trainlint.programs.kubeflow.rules.volumes import claim_problems
from trainlint.rule import rule

POD_SUFFIX = len("-abcde")
"""The end of a pod's name, behind the names of JobSet and job and the two indexes."""


# the JobSet


@rule("TJ501", "node-count", stage=Stage.CREATE, program="kubernetes")
def node_count(job: Build) -> Iterator[Finding]:
    """The number of nodes is negative or above 100,000.

    Admission accepts any 32-bit number; then the Job is refused, and nothing on the TrainJob says so. A runtime's own
    number below 1 becomes 1. Where the runtime is not known this is a warning, since some runtimes ignore numNodes.

    Source: Kubernetes 1.36, validation of Jobs, on what Kubeflow Trainer 2.0 and later builds.
    """
    for pods in job.made:
        count = pods.count
        if count.number is not None and not 0 <= count.number <= MAX_PODS:
            yield job.finding(
                count,
                f"{pods} cannot run {count.number} pods",
                help=f"set a number of nodes between 1 and {MAX_PODS}",
                severity=None if isinstance(job, BuiltJob) else Severity.WARNING,
            )


@rule("TJ502", "zero-num-nodes", stage=Stage.RUN, severity=Severity.WARNING, program="kubernetes")
def zero_num_nodes(job: Build) -> Iterator[Finding]:
    """numNodes is 0: the job turns Complete and nothing has run.

    The Job needs no pod, so it succeeds at once, and with it the TrainJob. With an MPI runtime one node runs anyway.

    Source: Kubeflow Trainer 2.3 with JobSet 0.12 on Kubernetes 1.36, run live.
    """
    if job.num_nodes.is_(0):
        launcher = job.policy.get("mpi").given
        message = "numNodes 0 runs one node" if launcher else "with numNodes 0 the job turns Complete without running"
        yield job.finding(
            job.num_nodes,
            message if isinstance(job, BuiltJob) else f"{message}, unless the runtime is an MPI runtime",
            help="set numNodes to 1 or more",
        )


@rule("TJ504", "generated-name-too-long", stage=Stage.CREATE, program="kubernetes")
def generated_name_too_long(job: BuiltJob) -> Iterator[Finding]:
    """The names of Jobs or pods made from the job's name exceed 63 characters.

    Each pod is called NAME-JOB-0-INDEX and six more characters, so the longest possible name of a TrainJob depends on
    the runtime's longest job name and the number of nodes: 48 characters with torch-distributed, 44 with
    deepspeed-distributed, 33 with the torchtune runtimes. Admission accepts up to 63.

    Source: JobSet 0.12, validation of JobSets.
    """
    length = job.name_length
    if length is None or length > NAME_LIMIT:
        return
    longest, limit = _longest_name(job)
    if longest is not None and length > limit:
        place = job.job.name.field if job.name is not None else job.job.field.at("metadata", "generateName")
        yield place.finding(
            f"the pods of {longest} would have names of more than {NAME_LIMIT} characters",
            help=f"shorten the name from {length} to {limit} characters"
            if limit > 0
            else "shorten the names of the runtime's jobs",
        )


def _longest_name(job: BuiltJob) -> tuple[Pods | None, int]:
    """The replicated job that leaves the fewest characters for the job's name, and how many."""
    room: dict[Pods, int] = {}
    for pods in job.jobs:
        replicas, count = pods.replicas.number, pods.job.get("completions").number
        tail = f"-{pods.name}-{(1 if replicas is None else replicas) - 1}"
        if count is not None and pods.job.get("completionMode").text in (None, "Indexed"):
            tail += f"-{count - 1}" + "x" * POD_SUFFIX
        room[pods] = NAME_LIMIT - len(tail)
    longest = min(room, key=lambda pods: room[pods], default=None)
    return longest, room[longest] if longest else NAME_LIMIT


@rule("TJ505", "patched-job-unknown", stage=Stage.CREATE, program="kubernetes")
def patched_job_unknown(job: BuiltJob) -> Iterator[Finding]:
    """A job of the JobSet has no containers; often a patch names a job that the runtime lacks.

    From Kubeflow Trainer 2.3 on a patch for an unknown job is not refused: it adds the job, with nothing but what the
    patch holds, and the JobSet is refused.

    Source: JobSet 0.12, its CRD, on what Kubeflow Trainer 2.3 builds.
    """
    for pods in job.jobs:
        containers = pods.spec.get("containers")
        if not containers.unknown and not containers.items():
            known = [other.name for other in job.jobs if other is not pods]
            place = pods.value.get("name")
            yield job.finding(
                place,
                f"{pods} has no containers",
                help=did_you_mean(pods.name, known)
                or (f"add containers, or patch {one_of(known)}" if known else "add containers"),
                field=containers.place.field_path if place.owner is Owner.JOB else None,
            )


@rule("TJ507", "ports-become-equal", stage=Stage.CREATE, program="kubernetes")
def ports_become_equal(job: BuiltJob) -> Iterator[Finding]:
    """Two ports of a container become the same port.

    The controller writes a container's ports over themselves. Two ports with the same number or the same name count as
    one, and having no name counts as a name: of two unnamed ports the second replaces the first. The JobSet then has
    it twice and is refused.

    Source: Kubeflow Trainer 2.0 to 2.3, run with JobSet 0.12.
    """
    for pods in job.jobs:
        for container in [*pods.init_containers, *pods.containers]:
            seen: set[tuple[object, object]] = set()
            for port in container.get("ports").items():
                where = (port.get("containerPort").content, port.get("protocol").text or "TCP")
                if where in seen and not port.get("containerPort").unknown:
                    yield job.finding(
                        port,
                        f"container {container.name} of {pods} ends up with port {where[0]} twice",
                        help="give each port its own number and name",
                    )
                seen.add(where)


_UNTIL_IT_STOPS = {
    "numNodes": "set numNodes in spec.trainer of the job",
    "trainer job": "give a job of the runtime the label trainer.kubeflow.org/trainjob-ancestor-step: trainer",
}
"""By words of what stops the controller: what lets it go on."""


@rule("TJ508", "controller-stops", stage=Stage.CREATE, program="kubernetes")
def controller_stops(job: BuiltJob) -> Iterator[Finding]:
    """The Trainer's controller cannot build the job and retries forever.

    It crashes with Flux where spec.trainer or its numNodes is missing, and in 2.2 on a JAX runtime without a trainer
    job; of MPI it can start only OpenMPI.

    Source: Kubeflow Trainer 2.2 and 2.3, Flux, MPI and JAX plugins.
    """
    if job.stops:
        part, why = job.stops
        helps = (help for words, help in _UNTIL_IT_STOPS.items() if words in why)
        yield job.finding(part, why, help=next(helps, ""))


@rule("TJ509", "unknown-replicated-job", stage=Stage.CREATE, program="kubernetes")
def unknown_replicated_job(job: BuiltJob) -> Iterator[Finding]:
    """The runtime's JobSet refers to a job that it does not have, or depends on a later one.

    successPolicy, failurePolicy and coordinator name jobs of the JobSet; dependsOn names an earlier one.

    Source: JobSet 0.12, validation of JobSets.
    """
    known = [pods.name for pods in job.jobs]
    if not known:
        return
    targets = [
        *job.jobset.find("successPolicy.targetReplicatedJobs[]"),
        *job.jobset.find("failurePolicy.rules[].targetReplicatedJobs[]"),
        *job.jobset.find("coordinator.replicatedJob"),
    ]
    for target in targets:
        if target.known_and_not_in(known):
            help = did_you_mean(str(target), known) or f"write {one_of(known)}"
            yield job.finding(target, f'the JobSet has no job "{target}"', help=help)
    for index, pods in enumerate(job.jobs):
        for target in pods.value.find("dependsOn[].name"):
            if index and target.known_and_not_in(known[: index + 1]):  # TJ510 speaks of the first job.
                help = did_you_mean(str(target), known[:index]) or f"write {one_of(known[:index])}, or move {pods} down"
                yield job.finding(target, f'{pods} depends on "{target}", which is not an earlier job', help=help)


@rule("TJ510", "jobset-policy", stage=Stage.CREATE, program="kubernetes")
def jobset_policy(job: BuiltJob) -> Iterator[Finding]:
    """A policy of the runtime's JobSet is invalid.

    The first job cannot depend on another; the coordinator's indexes must exist; rules of the failure policy have
    unique names of letters, digits and `_,:`, and known reasons; InPlaceRestart and the actions that restart one Job
    need feature gates that are off by default.

    Source: JobSet 0.12, validation of JobSets.
    """
    if not job.jobs:
        return
    first = job.jobs[0].value.get("dependsOn")
    if first.given:
        message = f"{job.jobs[0]} is the first job and cannot depend on another"
        yield job.finding(first, message, help="move it below the others, or remove dependsOn")
    for pods in job.jobs:
        count, replicas = pods.count.number or 0, pods.replicas.number or 0
        if replicas < 0:
            yield job.finding(pods.replicas, f"{pods} cannot have {replicas} replicas")
        if count * replicas > MAX_INT32:
            yield job.finding(
                pods.replicas, f"{pods} has {replicas} replicas of {count} pods, more than {MAX_INT32} pods"
            )
    yield from _failure_policy(job)
    yield from _coordinator(job)


def _failure_policy(job: BuiltJob) -> Iterator[Finding]:
    policy = job.jobset.get("failurePolicy")
    strategy = policy.get("restartStrategy")
    if strategy.is_("InPlaceRestart"):
        message = "restartStrategy InPlaceRestart needs a feature gate that is off by default"
        yield job.finding(strategy, message, help="write Recreate, or BlockingRecreate")
    taken: set[str] = set()
    for index, item in enumerate(policy.get("rules").items()):
        action, name = item.get("action"), item.get("name")
        if (action.text or "").startswith("RestartJob") and not (action.text or "").startswith("RestartJobSet"):
            message = f"action {action} needs a feature gate that is off by default"
            yield job.finding(action, message, help="write FailJobSet, or RestartJobSet, which restarts all jobs")
        text = name.text or f"failurePolicyRule{index}"
        if len(text) > 128 or not re.fullmatch(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", text):
            yield job.finding(
                name, f'rule name "{text}" must have only letters, digits, "_", "," and ":", with a letter first'
            )
        if text in taken:
            yield job.finding(name, f'two rules of the failure policy have the name "{text}"')
        taken.add(text)
        for reason in item.get("onJobFailureReasons").items():
            if reason.known_and_not_in(FAILURE_REASONS):
                hint = did_you_mean(str(reason), FAILURE_REASONS) or f"write {one_of(FAILURE_REASONS)}"
                yield job.finding(reason, f'unknown reason "{reason}" for a failed Job', help=hint)


def _coordinator(job: BuiltJob) -> Iterator[Finding]:
    coordinator = job.jobset.get("coordinator")
    target = coordinator.get("replicatedJob").text
    pods = next((pods for pods in job.jobs if pods.name == target), None)
    if pods is None:
        return
    if pods.job.get("completionMode").is_("NonIndexed"):
        yield job.finding(
            coordinator.get("replicatedJob"),
            f"{pods} is not Indexed, so none of its pods can be the coordinator",
            help="set completionMode: Indexed, or name another job",
        )
    replicas = 1 if pods.replicas.number is None else pods.replicas.number
    for key, count in (("jobIndex", replicas), ("podIndex", pods.count.number)):
        index = coordinator.get(key)
        if count is not None and not 0 <= (index.number or 0) < count:
            yield job.finding(index, f"{key} {index.number or 0} of the coordinator must be below {count}")
    if job.name is not None:
        subdomain = job.jobset.at("network", "subdomain").text or job.name
        indexes = f"{coordinator.get('jobIndex').number or 0}-{coordinator.get('podIndex').number or 0}"
        endpoint = f"{job.name}-{target}-{indexes}.{subdomain}"
        if names.label_value(endpoint):
            yield job.finding(
                coordinator,
                f"the coordinator's address {endpoint} is too long for a label",
                help="shorten the names in it",
            )


@rule("TJ511", "jobset-name", stage=Stage.CREATE, program="kubernetes")
def jobset_name(job: BuiltJob) -> Iterator[Finding]:
    """A name in the runtime's JobSet is malformed.

    Names of jobs, groups and the subdomain become parts of DNS names: lower-case letters, digits and dashes, at most
    63 characters; a group and a subdomain start with a letter.

    Source: JobSet 0.12, validation of JobSets.
    """
    subdomain = job.jobset.at("network", "subdomain")
    if subdomain.text:
        yield from job.malformed(subdomain, names.letter_first, "subdomain")
    for manager in (job.jobset.get("managedBy"), *(pods.job.get("managedBy") for pods in job.jobs)):
        if manager.text is not None and (names.domain_path(manager.text) or len(manager.text) > NAME_LIMIT):
            problem = names.domain_path(manager.text) or f"must not be longer than {NAME_LIMIT} characters"
            yield job.finding(manager, f'managedBy "{manager}" {problem}')
    for pods in job.jobs:
        group, name = pods.value.get("groupName"), pods.value.get("name")
        yield from job.malformed(group, names.letter_first, "group name", str(pods))
        if name.text is not None and names.letter_first(f"x{name}x"):
            yield job.finding(name, f'job name "{name}" must have only lower-case letters, digits and dashes')


@rule("TJ512", "volume-claim-policy", stage=Stage.CREATE, program="kubernetes")
def volume_claim_policy(job: BuiltJob) -> Iterator[Finding]:
    """A volume claim of the runtime's JobSet cannot be used.

    A container must mount it, its name must differ from those of other claims and of the jobs' volumes, and its name
    and the TrainJob's together have 63 characters at most. It needs access modes and an amount of storage.

    Source: JobSet 0.11 and 0.12, validation of JobSets; Kubernetes 1.34, validation of claims.
    """
    mounted = {
        mount.name
        for pods in job.jobs
        for container in [*pods.init_containers, *pods.containers]
        for mount in container.get("volumeMounts").items()
    }
    taken: set[str] = set()
    for policy in job.jobset.get("volumeClaimPolicies").items():
        for template in policy.get("templates").items():
            part = template.at("metadata", "name")
            if part.unknown:
                continue
            name = part.text or ""
            if names.subdomain(name):
                yield job.finding(part, f'claim name "{name}" {names.subdomain(name)}')
            if name in taken:
                yield job.finding(part, f'two volume claims have the name "{name}"')
            if name not in mounted:
                yield job.finding(part, f'no container mounts the volume claim "{name}"', help="mount it, or remove it")
            if job.name_length is not None and len(name) + 1 + job.name_length > NAME_LIMIT:
                room = NAME_LIMIT - 1 - len(name)
                yield job.job.name.finding(
                    f"the volume claim {name}-{job.name or '…'} would have more than {NAME_LIMIT} characters",
                    help=f"shorten the job's name to {room} characters" if room > 0 else "shorten the claim's name",
                )
            taken.add(name)
            yield from _claim(job, name, template)
    for pods in job.jobs:
        for volume in pods.spec.get("volumes").items():
            if volume.name in taken:
                yield job.finding(
                    volume.get("name"),
                    f"volume {volume.name} of {pods} has the name of a volume claim",
                    help="rename one of them",
                )


def _claim(job: BuiltJob, name: str, template: BuiltValue) -> Iterator[Finding]:
    """What the API server refuses of a claim that JobSet creates before the Jobs."""
    spec = template.get("spec")
    yield from claim_problems(job, f"the claim {name}", spec)
    for path, words, part in spec.rows(CLAIM_WORDS):
        if part.known_and_not_in(words):
            hint = did_you_mean(str(part), words) or f"write {one_of(words)}"
            yield job.finding(part, f'{path.removesuffix("[]")} of the claim {name} cannot be "{part}"', help=hint)
    for path in ("storageClassName", "volumeAttributesClassName"):
        for part in spec.find(path):
            if part.text:
                yield from job.malformed(part, names.subdomain, path, f"the claim {name}")
    for key, value in template.at("metadata", "labels").entries():
        problem = names.key(key) or names.label_value(value.text or "")
        if problem:
            yield job.finding(value, f'label "{key}: {value}" of the claim {name} {problem}')


@rule("TJ517", "exclusive-placement", stage=Stage.CREATE, program="kubernetes")
def exclusive_placement(job: BuiltJob) -> Iterator[Finding]:
    """The annotation for exclusive placement names a topology key that cannot be the key of a label.

    JobSet makes an affinity of it, and every pod is refused. The annotation of a Job wins over that of the JobSet; on
    the TrainJob's own metadata it does nothing.

    Source: JobSet 0.8 to 0.12, webhook for pods.
    """
    shared = job.annotations.get(EXCLUSIVE_TOPOLOGY)
    for pods in job.made:
        own = (pods.value.at("template", "metadata"), pods.template.get("metadata"))
        listed = [metadata.get("annotations").get(EXCLUSIVE_TOPOLOGY) for metadata in own]
        for part in listed if any(part.given for part in listed) else [shared]:
            if part.text:
                yield from job.malformed(part, names.key, "topology key")


# Jobs


@rule("TJ513", "job-selector", stage=Stage.CREATE, program="kubernetes")
def job_selector(job: BuiltJob) -> Iterator[Finding]:
    """The runtime's Job has a selector of its own.

    A Job makes its selector and labels itself. manualSelector needs a selector that matches the labels of the pods, and
    without manualSelector a selector is refused.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        selector, manual = pods.job.get("selector"), pods.job.get("manualSelector")
        wanted = {key: value.text for key, value in selector.get("matchLabels").entries()}
        labels = {key: value.text for key, value in pods.template.at("metadata", "labels").entries()}
        if not manual.is_(True) and selector.given:
            yield job.finding(selector, f"{pods} must not have a selector", help="remove the selector")
        elif manual.flag and selector.absent:
            yield job.finding(manual, f"manualSelector of {pods} needs a selector", help="remove manualSelector")
        elif manual.flag and any(labels.get(key) != value for key, value in wanted.items()):
            yield job.finding(selector, f"the selector of {pods} does not match the labels of its pods")


@rule("TJ514", "restart-policy", stage=Stage.CREATE, program="kubernetes")
def restart_policy(job: BuiltJob) -> Iterator[Finding]:
    """A Job cannot have this restartPolicy.

    It must be OnFailure, which is the default here, or Never; with a podFailurePolicy it must be Never. Always, the
    default of other pods, is refused.

    Source: Kubernetes 1.36, validation of Jobs; JobSet 0.12 for the default.
    """
    for pods in job.made:
        policy = pods.spec.get("restartPolicy")
        fails = pods.job.get("podFailurePolicy")
        if policy.known_and_not_in(("OnFailure", "Never")):
            yield job.finding(
                policy,
                f'restartPolicy of {pods} must be OnFailure or Never, not "{policy}"',
                help=did_you_mean(str(policy), ("OnFailure", "Never")),
            )
        elif fails.given and not policy.is_("Never") and not policy.unknown:
            yield job.finding(
                policy if policy.given else fails, f"the podFailurePolicy of {pods} needs restartPolicy: Never"
            )


@rule("TJ515", "pod-failure-policy", stage=Stage.CREATE, program="kubernetes")
def pod_failure_policy(job: BuiltJob) -> Iterator[Finding]:
    """A rule of the runtime's podFailurePolicy or successPolicy is invalid.

    A failure rule has an action and one of onExitCodes and onPodConditions; exit codes are in order and distinct,
    without 0 for the operator In, and belong to a container of the pod. A success rule has indexes or a count that the
    Job has.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        for item in pods.job.find("podFailurePolicy.rules[]"):
            yield from _failure_rule(job, pods, item)
        if pods.job.get("podFailurePolicy").given:
            replacement = pods.job.get("podReplacementPolicy")
            if replacement.known_and_not_in(("Failed",)):
                yield job.finding(replacement, "a podFailurePolicy needs podReplacementPolicy: Failed")
        success = pods.job.get("successPolicy")
        if success.given and not success.get("rules").items() and not success.get("rules").unknown:
            yield job.finding(success, f"the successPolicy of {pods} has no rules", within="")
        for item in success.get("rules").items():
            yield from _success_rule(job, pods, item)


def _failure_rule(job: BuiltJob, pods: Pods, item: BuiltValue) -> Iterator[Finding]:
    action, codes, conditions = item.get("action"), item.get("onExitCodes"), item.get("onPodConditions")
    actions = ("FailJob", "FailIndex", "Ignore", "Count")
    if action.known_and_not_in(actions):
        yield job.finding(action, f'action must be {one_of(actions)}, not "{action}"')
    if action.is_("FailIndex") and pods.job.get("backoffLimitPerIndex").absent:
        yield job.finding(action, "action FailIndex needs a backoffLimitPerIndex")
    if codes.given == bool(conditions.items()) and not item.unknown and not conditions.unknown:
        yield job.finding(item, "a rule of podFailurePolicy needs either onExitCodes or onPodConditions")
    values = codes.get("values")
    numbers = [value.number for value in values.items() if value.number is not None]
    operator, target = codes.get("operator"), codes.get("containerName")
    if operator.known_and_not_in(("In", "NotIn")):
        yield job.finding(operator, f'operator must be In or NotIn, not "{operator}"')
    if operator.is_("In") and 0 in numbers:
        yield job.finding(values, "the operator In cannot have exit code 0")
    if codes.given and (numbers != sorted(set(numbers)) or not 0 < len(values.items()) <= 255):
        yield job.finding(values, "exit codes must be 1 to 255 distinct numbers, in order")
    known = [part.name for part in (*pods.containers, *pods.init_containers)]
    if target.known_and_not_in(known):
        yield job.finding(target, f'{pods} has no container "{target}"', help=did_you_mean(str(target), known))
    for condition in conditions.items():
        kind, status = condition.get("type"), condition.get("status")
        yield from job.malformed(kind, names.key, "condition")
        if status.known_and_not_in(("True", "False", "Unknown")):
            yield job.finding(status, f'status must be True, False or Unknown, not "{status}"')


def _success_rule(job: BuiltJob, pods: Pods, item: BuiltValue) -> Iterator[Finding]:
    count, indexes, pods_in_all = item.get("succeededCount"), item.get("succeededIndexes"), pods.count.number
    if count.absent and indexes.absent:
        yield job.finding(item, "a rule of successPolicy needs succeededCount or succeededIndexes")
    if pods_in_all is None:
        return
    listed = _indexes(indexes.text, pods_in_all) if indexes.text is not None else pods_in_all
    if listed is None:
        yield job.finding(indexes, f'succeededIndexes must be rising indexes below {pods_in_all}, not "{indexes}"')
    elif count.number is not None and not 0 <= count.number <= listed:
        yield job.finding(count, f"succeededCount must be between 0 and {listed}, not {count.number}")


def _indexes(text: str, count: int) -> int | None:
    """How many indexes `0,2-4` stands for; None where it is malformed or names one that does not exist."""
    last, total = -1, 0
    for part in text.split(",") if text else ():
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None:
            return None
        first = int(match[1])
        end = int(match[2]) if match[2] else first
        if not last < first < count or end >= count or (match[2] and end <= first):
            return None
        last, total = end, total + end - first + 1
    return total


@rule("TJ516", "index-limits", stage=Stage.CREATE, program="kubernetes")
def index_limits(job: BuiltJob) -> Iterator[Finding]:
    """Limits by index do not fit their Job.

    maxFailedIndexes needs backoffLimitPerIndex and cannot exceed the number of pods; both, and a successPolicy, need
    completionMode: Indexed, which is the default here.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        per_index, most = pods.job.get("backoffLimitPerIndex"), pods.job.get("maxFailedIndexes")
        if most.given and per_index.absent:
            yield job.finding(most, f"maxFailedIndexes of {pods} needs backoffLimitPerIndex")
        if pods.job.get("completionMode").is_("NonIndexed"):
            for part in (per_index, most, pods.job.get("successPolicy")):
                if part.given:
                    yield job.finding(part, f"{part.place.name} of {pods} needs completionMode: Indexed")
        elif most.number is not None and pods.count.number is not None and most.number > pods.count.number:
            yield job.finding(
                most, f"maxFailedIndexes of {pods} must be at most {pods.count.number}, not {most.number}"
            )


# torchrun


@rule(
    "TJ503",
    "num-proc-below-one",
    stage=Stage.START,
    program="torchrun",
    varies="warning where the job visibly starts something other than torchrun",
)
def num_proc_below_one(job: BuiltJob) -> Iterator[Finding]:
    """The number of processes per node is below 1.

    torchrun gets it as PET_NPROC_PER_NODE and stops with a bare assertion. Admission checks words only, not the
    number. Where the job visibly starts something other than torchrun, this is a warning.

    Source: torchrun of torch 2.13, run with these values.
    """
    processes = job.processes
    if job.policy.get("torch").absent or job.trainer is None:
        return
    if processes.number is not None and processes.number < 1:
        yield job.finding(
            processes,
            "torchrun needs at least one process per node",
            help="set numProcPerNode to 1 or more",
            severity=Severity.WARNING if _starts_something_else(job) else None,
        )


def _starts_something_else(job: BuiltJob) -> bool:
    """The trainer's command is known and is neither torchrun nor torchtune, which uses it."""
    if job.node is None or not job.node.get("command").texts():
        return False
    return not TORCHRUN_WORDS.search(" ".join(command_words(job.node)))
