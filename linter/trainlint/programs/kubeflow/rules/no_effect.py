"""Jobs that start and do not do what was meant: fields without effect, processes and devices that do not fit."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage
from trainlint.programs.kubeflow.build import Build, BuiltJob
from trainlint.programs.kubeflow.built_value import BuiltValue, Owner
from trainlint.programs.kubeflow.draft import NODE
from trainlint.programs.kubeflow.facts import servers
from trainlint.programs.kubeflow.facts.admission import INITIALIZERS
from trainlint.programs.kubeflow.facts.jobset import ACCELERATORS, TRAINER_FIELDS
from trainlint.programs.kubeflow.facts.paths import Paths
from trainlint.programs.kubeflow.facts.release import KubeflowFacts
from trainlint.programs.kubeflow.objects import Namesake, Runtime
from trainlint.programs.kubeflow.quantities import whole
from trainlint.reading import mending
from trainlint.rule import rule

_CURLY = "“”„‘’‚«»"


def _devices(container: BuiltValue | None) -> tuple[BuiltValue, int] | None:
    """The accelerators of a container, where it has one kind of them and a known number."""
    if container is None or container.get("resources").unknown:
        return None
    found: dict[str, BuiltValue] = {}
    for kind in ("requests", "limits"):
        for name, part in container.at("resources", kind).entries():
            if ACCELERATORS.search(name):
                found[name] = part
    amounts = [(part, part.amount) for part in found.values()]
    if len(amounts) != 1 or amounts[0][1] is None or amounts[0][1] <= 0:
        return None
    return amounts[0][0], whole(amounts[0][1])


@rule("TJ601", "args-without-command", stage=Stage.RUN, severity=Severity.WARNING, program="kubernetes")
def args_without_command(job: BuiltJob) -> Iterator[Finding]:
    """The job has args, and neither it nor its runtime has a command.

    The arguments go to whatever the image starts by default. The shipped runtimes have no command from 2.1 on, so
    torchrun does not run a script given in args: write `command: [torchrun]`.

    Source: Kubeflow Trainer 2.0 and later; containers of Kubernetes.
    """
    container = job.node
    given = job.spec.at("trainer", "args")
    if container is None or not given.items() or container.get("command").given:
        return
    if container.get("args").place is given.place:
        yield given.place.finding(
            "args without a command go to the image's own entry point",
            help="add spec.trainer.command, such as [torchrun] or [python]",
        )


@rule("TJ602", "fewer-gpus", stage=Stage.RUN, severity=Severity.WARNING, program="kubernetes")
def fewer_gpus(job: BuiltJob) -> Iterator[Finding]:
    """resourcesPerNode takes away GPUs of the runtime.

    Up to 2.2 resourcesPerNode replaces the runtime's resources, so a job that only wants more memory loses the GPUs;
    from 2.3 on both are merged, and a smaller amount in the job wins.

    Source: Kubeflow Trainer 2.0 and later.
    """
    given = job.spec.at("trainer", "resourcesPerNode")
    container = job.node
    runtime_job = job.runtime.trainer_job
    before = runtime_job.container(NODE) if runtime_job else None
    if container is None or before is None or given.absent or given.unknown:
        return
    for entry in before.resources.get("limits").entries():
        amount = BuiltValue(entry.plain, entry, Owner.RUNTIME).amount
        left = container.at("resources", "limits", entry.name)
        if not ACCELERATORS.search(entry.name) or not amount or left.unknown:
            continue
        if left.absent and not container.at("resources", "requests", entry.name).given:
            yield given.place.finding(
                f"resourcesPerNode replaces the runtime's resources: its {entry.name} is lost",
                help=f"repeat {entry.name}: {entry.written} under limits",
            )
        elif left.given and left.amount is not None and left.amount < amount and not job.runtime.shipped:
            yield job.finding(
                left,
                f"the job uses {left} of the runtime's {entry.written} {entry.name}",
                help=f"set {entry.name}: {entry.written}, or remove it",
            )


@rule("TJ603", "processes-from-cpus", stage=Stage.RUN, severity=Severity.WARNING, program="torchrun")
def processes_from_cpus(job: BuiltJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The controller takes the number of processes from the CPUs, although there are accelerators.

    Without numProcPerNode the controller counts resources whose name contains `gpu`, and only those in resourcesPerNode
    if the job has it, even where the runtime's GPUs stay. Where it finds none it counts the CPUs: four CPUs beside two
    GPUs of the runtime, or beside one TPU, start four processes.

    Source: Kubeflow Trainer 2.1 and later, torch plugin.
    """
    processes, devices = job.processes, _devices(job.node)
    made = processes.made and processes.number is not None
    if job.policy.get("torch").given and facts.procs_from_gpus and made and devices and processes.number != devices[1]:
        name = devices[0].place.name
        yield job.finding(
            processes if processes.owner is Owner.JOB else job.spec.at("trainer", "resourcesPerNode"),
            f"{processes.number} processes start, as many as CPUs, with {devices[1]} {name}",
            help=f"set numProcPerNode: {devices[1]}",
        )


@rule("TJ604", "processes-and-gpus", stage=Stage.RUN, severity=Severity.WARNING, program="kubernetes")
def processes_and_gpus(job: BuiltJob) -> Iterator[Finding]:
    """The processes per node do not fit the GPUs per node.

    Two processes cannot share a GPU with NCCL; with MPI it takes one process per GPU to use all of them. From 2.1 on an
    MPI runtime's own `numProcPerNode: 1` counts as not set: the controller starts as many processes as there are GPUs,
    which is told where one file has both.

    Source: Kubeflow Trainer 2.0 and later, torch and MPI plugins.
    """
    mpi = job.policy.get("mpi").given
    if not mpi and job.policy.get("torch").absent:
        return
    node = next((pods for pods in job.jobs if pods.name == NODE), None) if mpi else None
    devices = _devices(node.container(NODE) if node else None) or _devices(job.node)
    processes = job.processes
    if devices is None or processes.number is None or processes.number < 1:
        return
    part, count = devices
    own = job.runtime.ml_policy.at("mpi", "numProcPerNode")
    if mpi and processes.made and count > 1 and own.integer().is_(1) and not job.runtime.shipped:
        if part.owner is Owner.JOB and own.document.path != part.place.document.path:
            return  # The job asks for the GPUs, and gets a process for each.
        yield job.finding(
            part,
            f"MPI starts {processes.number} processes per node, one per GPU, not the runtime's numProcPerNode of 1",
            help="set spec.trainer.numProcPerNode, which always counts",
        )
    elif processes.number > count and not processes.made:
        message = f"{processes.number} processes per node share {count} {part.place.name}"
        yield job.finding(processes, message, help=f"set numProcPerNode: {count}")
    elif mpi and processes.number < count:
        few = "one process" if processes.is_(1) else f"{processes.number} processes"
        message = f"MPI starts {few} per node with {count} {part.place.name}"
        yield job.finding(part, message, help=f"set spec.trainer.numProcPerNode: {count}")


@rule("TJ605", "runtime-of-other-kind", stage=Stage.RUN, severity=Severity.WARNING)
def runtime_of_other_kind(namesake: Namesake) -> Iterator[Finding]:
    """The repository has a runtime of this name, but of the other kind.

    `runtimeRef.kind` is ClusterTrainingRuntime unless it says TrainingRuntime. A job that means a TrainingRuntime of
    its namespace and does not say so gets the cluster's runtime of the same name, or is refused where there is none.

    Source: Kubeflow Trainer 2.0 and later, defaults of the CRD.
    """
    kind, other = str(namesake.job.runtime_kind), str(namesake.runtime.kind)
    yield namesake.job.runtime_name.finding(
        f"this is a {kind}; the repository has a {other} called {namesake.runtime.name}",
        help=f"set kind: {other} if that one is meant",
        related=namesake.runtime.name.field.relate(f"the {other} is here"),
    )


_TAKE_ANOTHER = "remove it, or name a runtime that reads it"


@rule("TJ606", "field-without-effect", stage=Stage.RUN, severity=Severity.WARNING)
def field_without_effect(job: BuiltJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """A field of the job has no effect with this runtime.

    The controller writes spec.trainer into the container `node` of the job that is labelled as the trainer step, and an
    initializer into the container of the job labelled as that step. It reads numProcPerNode only with torch, MPI and
    Flux, from 2.3 on resourcesPerNode only with an mlPolicy, and numNodes of an MPI runtime only if there is a job
    called `node`. Admission refuses a TrainJob with an initializer whose job or container is missing.

    Source: Kubeflow Trainer 2.0 and later.
    """
    trainer = job.spec.get("trainer")
    policies = [kind for kind in ("torch", "mpi", "flux") if job.policy.get(kind).given]
    if job.stops or trainer.unknown or job.policy.unknown or not job.jobs:
        return
    if trainer.given and job.node is None:
        missing = (
            "no job labelled as the trainer step" if job.trainer is None else f"no container {NODE} in its trainer job"
        )
        counted = ("numNodes",) if job.trainer is None and "mpi" not in policies else ()
        ignored = [key for key in (*TRAINER_FIELDS, *counted) if trainer.get(key).given]
        if ignored:
            verb = "has" if len(ignored) == 1 else "have"
            yield trainer.place.finding(
                f"{' and '.join(ignored)} {verb} no effect: the runtime has {missing}",
                help=_TAKE_ANOTHER,
                at_key=True,
            )
    elif trainer.get("resourcesPerNode").given and job.policy.absent and facts.resources_merged:
        yield trainer.get("resourcesPerNode").place.finding(
            "resourcesPerNode has no effect: the runtime has no mlPolicy", help=_TAKE_ANOTHER, at_key=True
        )
    if trainer.get("numProcPerNode").given and not policies:
        yield trainer.get("numProcPerNode").place.finding(
            "numProcPerNode has no effect: the runtime has no torch, mpi or flux policy",
            help=_TAKE_ANOTHER,
            at_key=True,
        )
    if trainer.get("numNodes").given and "mpi" in policies and not any(pods.name == NODE for pods in job.jobs):
        message = f"numNodes has no effect: the runtime has no job called {NODE}"
        yield trainer.get("numNodes").place.finding(message, help=_TAKE_ANOTHER, at_key=True)
    for step, name in INITIALIZERS.items():
        own = job.spec.at("initializer", step)
        named = [pods for pods in job.jobs if pods.name == name]
        listed = [container for pods in named for container in (*pods.containers, *pods.init_containers)]
        refused = not any(container.name == name for container in listed)
        if own.given and not refused and not any(pods.ancestor == name and pods.container(name) for pods in job.jobs):
            yield own.place.finding(
                f"{step} has no effect: no job with container {name} has the label of its step",
                help=_TAKE_ANOTHER,
                at_key=True,
            )


@rule("TJ607", "value-and-source", stage=Stage.RUN, severity=Severity.WARNING)
def value_and_source(job: Build) -> Iterator[Finding]:
    """A variable has both a value and valueFrom, and the value has no effect.

    The controller copies only valueFrom. In a runtime or a patch both are kept, and the Job is refused.

    Source: Kubeflow Trainer 2.0 and later.
    """
    for owner in (job.spec.get("trainer"), *(job.spec.at("initializer", step) for step in INITIALIZERS)):
        for env in owner.get("env").items():
            if env.get("value").text and env.get("valueFrom").given:
                message = f"the value of {env.name} has no effect beside valueFrom"
                place = env.get("value").place
                yield place.finding(message, help="keep one of them", fix=mending.removed(place, keeps=True))


@rule("TJ608", "curly-quotes", stage=Stage.RUN, severity=Severity.WARNING, program="kubernetes")
def curly_quotes(job: Build) -> Iterator[Finding]:
    """A value starts or ends with a curly quote, which becomes part of the value.

    YAML knows only straight quotes; typographic ones come from copying out of a document, and the program gets them as
    part of its environment.

    Source: YAML 1.1 as Kubernetes reads it.
    """
    for owner in (job.spec.get("trainer"), *(job.spec.at("initializer", step) for step in INITIALIZERS)):
        for env in owner.get("env").items():
            value = env.get("value").text or ""
            if value and (value[0] in _CURLY or value[-1] in _CURLY):
                yield env.get("value").place.finding(
                    f"the value of {env.name} contains a curly quote", help="use straight quotes"
                )


@rule("TJ609", "overridden-path", stage=Stage.RUN, severity=Severity.WARNING)
def overridden_path(job: BuiltJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An argument of torchtune sets a path that belongs to the runtime.

    The runtime's command sets output_dir, tokenizer.path, tokenizer.merges_file and checkpointer.checkpoint_dir to fit
    its volumes; arguments come later and win, so results land outside the volume and are lost. From 2.3 on admission
    refuses the plain keys, and accepts `checkpointer[checkpoint_dir]`, which means the same.

    Source: Kubeflow Trainer 2.0 and later, torch plugin; torchtune 0.6.1.
    """
    if not (job.policy.get("torch").given and job.job.runs_tune):
        return
    for arg in job.spec.at("trainer", "args").items():
        key = (arg.text or "").partition("=")[0]
        plain = key.replace("[", ".").removesuffix("]")
        if plain in facts.immutable_keys and (key != plain or not facts.immutable_in_args):
            yield arg.place.finding(
                f"{plain} belongs to the runtime, and this argument overrides it",
                help="remove the argument, or change the runtime's command",
            )


@rule("TJ610", "torchrun-alone", stage=Stage.RUN, severity=Severity.WARNING, program="torchrun")
def torchrun_alone(job: BuiltJob) -> Iterator[Finding]:
    """The job has no spec.trainer, and its nodes do not find each other.

    The controller sets the PET_ variables of torchrun only if there is a spec.trainer, even an empty one. Without them
    each of the runtime's nodes trains by itself, with one process and the same data.

    Source: Kubeflow Trainer 2.3, torch plugin; torchrun of torch 2.13.
    """
    if job.policy.get("torch").given and job.spec.get("trainer").absent and job.trainer:
        count = job.trainer.count.number
        if count is not None and count > 1:
            yield job.spec.get("trainer").place.finding(
                f"without spec.trainer each of the {count} nodes trains by itself",
                help="add trainer: {}",
                fix=mending.added(job.spec.place, "trainer", "{}"),
            )


@rule("TJ615", "field-of-newer-server", stage=Stage.RUN, severity=Severity.WARNING, program="kubernetes")
def field_of_newer_server(job: BuiltJob) -> Iterator[Finding]:
    """The cluster's API server drops this field, and the job runs without it.

    Trainer and JobSet accept every field of Kubernetes 1.36. A server that does not know one, or has it behind a
    feature gate that is off, drops it when the Job is created; nothing on the TrainJob says so. Name the server with
    `--target kubernetes=1.31`; without that only fields are reported that no server uses.

    Source: Kubernetes 1.30 to 1.36 with default feature gates.
    """
    for pods in job.made:
        for owner, fields in ((pods.job, servers.JOB_FIELDS), (pods.spec, servers.POD_FIELDS)):
            yield from _dropped(job, owner, fields)
    for container in job.containers:
        yield from _dropped(job, container.value, servers.CONTAINER_FIELDS)
        restart = container.get("restartPolicy")
        if restart.given and not (container.init and restart.is_("Always")):
            yield job.finding(restart, f"restartPolicy of {container} is dropped", within="1.34")


def _dropped(job: BuiltJob, owner: BuiltValue, fields: Paths[servers.Used]) -> Iterator[Finding]:
    for path, used, part in owner.rows(fields):
        name = path.replace("[]", "")
        when = f"Kubernetes {used.since} is the first that uses {name}"
        none = f"no Kubernetes up to {servers.NEWEST} uses {name} unless a feature gate is set"
        message = f"{when if used.since else none}: {used.otherwise}"
        yield job.finding(part, message, at_key=True, within=used.dropped)


@rule("TJ616", "trainer-needs-newer-server", stage=Stage.CREATE, severity=Severity.WARNING, program="kubernetes")
def trainer_needs_newer_server(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """This release of Kubeflow Trainer cannot be installed on the cluster's API server.

    Up to Kubernetes 1.31 the server refuses the CRDs of runtimes and JobSets from Trainer 2.2 on, since a rule in them
    does not compile there.

    Source: Kubernetes 1.30 and 1.31 with the CRDs of Trainer 2.2.1 and 2.3.0.
    """
    if facts.needs_server_1_32:
        yield runtime.field.get("apiVersion").finding(
            f"the CRDs of Kubeflow Trainer {facts.release} need Kubernetes 1.32 or newer",
            help="update the cluster, or use Trainer 2.1",
            within="..1.31",
        )


@rule("TJ617", "training-runs-again", stage=Stage.RUN, severity=Severity.WARNING)
def training_runs_again(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """The JobSet's ttlSecondsAfterFinished makes the training run again.

    The controller makes a JobSet anew that its time to live has removed: Trainer 2.1 after every training, 2.2 and 2.3
    after one that failed, each time the TTL ends.

    Source: Kubeflow Trainer 2.0.1 to 2.3.0, run live with their JobSets.
    """
    ttl = runtime.spec.at("template", "spec", "ttlSecondsAfterFinished")
    if not ttl.is_absent and facts.runs_again_after_ttl:
        what = "a failed job" if facts.runs_again_after_ttl == "failed" else "a finished job"
        yield ttl.finding(
            f"{what} is trained anew each time ttlSecondsAfterFinished ends",
            help="remove it",
            fix=mending.removed(ttl),
            at_key=True,
        )


@rule("TJ618", "managed-by-ignored", stage=Stage.RUN, severity=Severity.WARNING)
def managed_by_ignored(job: BuiltJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The controller of this release makes the JobSet although another manager is named.

    From Trainer 2.3 on a TrainJob with managedBy: kueue.x-k8s.io/multikueue is left to the other cluster.

    Source: Kubeflow Trainer 2.0.1 to 2.3.0, run live.
    """
    manager = job.spec.get("managedBy")
    if facts.ignores_managed_by and manager.text and manager.text.startswith("kueue"):
        message = f"Kubeflow Trainer {facts.release} runs the job here, too: it does not look at managedBy"
        yield job.finding(manager, message, help="use Kubeflow Trainer 2.3, or remove managedBy")


@rule("TJ619", "depends-on-itself", stage=Stage.RUN, severity=Severity.WARNING, program="kubernetes")
def depends_on_itself(job: BuiltJob) -> Iterator[Finding]:
    """A job of the JobSet waits for itself and never starts.

    Source: JobSet 0.8 to 0.12, which accept it.
    """
    for pods in job.jobs[1:]:
        for target in pods.value.find("dependsOn[].name"):
            if target.is_(pods.name):
                yield job.finding(target, f"{pods} depends on itself and never starts", help="name an earlier job")


@rule("TJ612", "root-forbidden", stage=Stage.START, severity=Severity.WARNING, program="kubernetes")
def root_forbidden(job: Build) -> Iterator[Finding]:
    """runAsNonRoot is set beside user 0, and the container never starts.

    The Job is accepted; the kubelet refuses to start the container and says so in the events of the pod.

    Source: Kubernetes 1.36.
    """
    for container in job.containers:
        own, shared = container.get("securityContext"), container.pods.spec.get("securityContext")
        forbidden = own.get("runAsNonRoot") if own.get("runAsNonRoot").given else shared.get("runAsNonRoot")
        user = own.get("runAsUser") if own.get("runAsUser").given else shared.get("runAsUser")
        if forbidden.flag and user.is_(0):
            yield job.finding(user, f"{container} cannot run as user 0 with runAsNonRoot", help="set another runAsUser")


@rule("TJ613", "unreachable-first-node", stage=Stage.START, severity=Severity.WARNING, program="kubernetes")
def unreachable_first_node(job: BuiltJob) -> Iterator[Finding]:
    """The nodes wait for a first node at an address that does not exist.

    The controller gives torchrun, JAX and XGBoost the address NAME-node-0-0.NAME, whatever the names of the runtime's
    trainer job and subdomain are. A runtime whose trainer job is not called `node`, or with a subdomain of its own,
    cannot train on several nodes.

    Source: Kubeflow Trainer 2.0 to 2.3, torch, JAX and XGBoost plugins; JobSet 0.12 for the names of pods.
    """
    trainer, subdomain = job.trainer, job.jobset.at("network", "subdomain")
    kinds = [kind for kind in ("torch", "jax", "xgboost") if job.policy.get(kind).given]
    count = trainer.count.number if trainer and trainer.is_made else None
    if not kinds or trainer is None or job.node is None or job.spec.get("trainer").absent:
        return
    if count is not None and count > 1:
        address = f"{job.name or 'NAME'}-{NODE}-0-0.{job.name or 'NAME'}"
        if trainer.name != NODE and trainer.name:
            yield job.finding(
                trainer.value.get("name"),
                f"the nodes look for {address}, and the trainer's job is called {trainer.name}",
                help=f"rename the job to {NODE}",
            )
        elif subdomain.text and subdomain.text != job.name:
            yield job.finding(
                subdomain,
                f"the nodes look for {address}, and the subdomain is {subdomain}",
                help="remove the subdomain",
            )


@rule("TJ614", "several-launchers", stage=Stage.RUN, severity=Severity.WARNING)
def several_launchers(job: BuiltJob) -> Iterator[Finding]:
    """The numNodes of an MPI runtime starts several launchers.

    The controller takes the runtime's numNodes for the number of pods of the job that is labelled as the trainer step,
    which is the launcher; only the job's own numNodes counts nodes. Each launcher starts the whole training.

    Source: Kubeflow Trainer 2.0 to 2.3, MPI plugin.
    """
    launcher = job.trainer
    if job.policy.get("mpi").given and launcher and launcher.name == "launcher":
        count = launcher.count
        if count.number is not None and count.number > 1:
            yield job.finding(
                count,
                f"{count.number} launchers start, and each runs the whole training",
                help="set numNodes: 1 in the runtime, and spec.trainer.numNodes in the job",
            )
