"""A JobSet in the making: what the controller's steps read and write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from trainlint.programs.kubeflow.built_pods import Pods
from trainlint.programs.kubeflow.built_value import UNKNOWN, BuiltValue, Content, Decoding, Owner, is_no_key, read
from trainlint.programs.kubeflow.facts.jobset import COMPLETION_INDEX, COPIED_ENV_SOURCES, TRAINER_PORT
from trainlint.programs.kubeflow.facts.release import KubeflowFacts
from trainlint.programs.kubeflow.gpus import Amounts, possible_gpus
from trainlint.programs.kubeflow.objects import Runtime, TrainJob

NODE = "node"
LAUNCHER = "launcher"
TRAINER = "trainer"
_WRITTEN_INTO = frozenset(
    {"replicatedJobs", "template", "metadata", "labels", "annotations", "spec", "containers", "initContainers"}
)
"""Where the controller's steps write into the runtime's own mappings and lists; all other lists they write anew."""


class Draft:
    """A TrainJob and its runtime as the controller decodes them, and the JobSet so far.

    `own` is the job's `spec.trainer`, `command` and `args` are what its container will get; `processes` is the number
    of processes on each node of the trainer. `stops` is why the controller cannot go on, and at which value.
    """

    def __init__(self, job: TrainJob, runtime: Runtime, facts: KubeflowFacts) -> None:
        self.job = job
        self.facts = facts
        self.name = job.name.known
        job_schema = facts.structure("TrainJob").properties["spec"]
        field = facts.overrides_field
        overrides = job.spec.get(field)
        untimed = field == "runtimePatches" and any(patch.get("time").is_absent for patch in overrides.items())
        self.spec = read(job.spec, job_schema, Owner.JOB, Decoding(rewritten=False, empty_texts=untimed))
        self.overrides = read(overrides, job_schema.properties[field], Owner.JOB, Decoding(empty_texts=untimed))
        self.runtime_spec = _decoded(runtime, facts).copy(_WRITTEN_INTO)
        self.policy = self.runtime_spec.get("mlPolicy")
        template = self.runtime_spec.get("template")
        self.labels = template.at("metadata", "labels")
        self.annotations = template.at("metadata", "annotations")
        self.jobset = template.get("spec")
        self.pods: list[Pods] = []
        self.trainer: Pods | None = None
        self.stops: tuple[BuiltValue, str] | None = None
        self.own = self.spec.get("trainer")
        self.processes = BuiltValue(None, self.own.place, Owner.JOB)
        self.command = self.own.get("command")
        self.args = self.own.get("args")

    # reading it

    @property
    def container(self) -> BuiltValue | None:
        """The container that the trainer goes into, if the job has a trainer."""
        return self.trainer.container(NODE) if self.trainer and self.own.given else None

    @property
    def num_nodes(self) -> BuiltValue:
        """The job's own `numNodes`."""
        return self.own.get("numNodes")

    @property
    def launcher_is_node(self) -> bool:
        """The MPI launcher trains, too."""
        return self.policy.at("mpi", "runLauncherAsNode").is_(True)

    def pods_called(self, name: str) -> Pods | None:
        """The replicated job with this name."""
        return next((pods for pods in self.pods if pods.name == name), None)

    def takes_resources(self, pods: Pods) -> bool:
        """The trainer's resources and variables go into these pods."""
        follows = self.facts.node_job_follows_launcher and self.launcher_is_node and pods.name == NODE
        return pods.ancestor == TRAINER or follows

    @cached_property
    def resources(self) -> BuiltValue:
        """The resources from which processes are counted: the job's own, even empty, else the runtime's."""
        own = self.own.get("resourcesPerNode")
        if own.given:
            return own
        for pods in self.pods:
            if pods.name == NODE or pods.ancestor == TRAINER:
                container = pods.container(NODE)
                if container is not None:
                    return container.get("resources")
        return own

    @cached_property
    def gpus(self) -> BuiltValue:
        """The GPUs that these resources count as; not known where the controller's answer is random."""
        outcomes = possible_gpus(_amounts(self.resources.get("requests")), _amounts(self.resources.get("limits")))
        return self.resources.derive(outcomes.pop() if outcomes is not None and len(outcomes) == 1 else UNKNOWN)

    # numbers of pods

    def count_from_job(self) -> None:
        """The job's own `numNodes` is the number of the trainer's pods."""
        if self.num_nodes.given:
            self.set_count(self.trainer, self.num_nodes)

    def set_count(self, pods: Pods | None, count: BuiltValue) -> None:
        """A replicated job runs this many pods."""
        if pods is not None:
            pods.job.set("parallelism", count)
            pods.job.set("completions", count)

    # values that the controller makes

    def made(self, content: Content) -> BuiltValue:
        """A value that the controller adds for the trainer."""
        return self.own.derive(content)

    def named(self, content: Content) -> BuiltValue:
        """A value that contains the job's name."""
        return BuiltValue(content, self.job.name.field, Owner.JOB, made=True)

    def called(self, suffix: str) -> BuiltValue:
        """The name of an object that is called after the job."""
        return self.named(UNKNOWN if self.name is None else f"{self.name}-{suffix}")

    def struct(self, **values: BuiltValue) -> BuiltValue:
        """A mapping of made values."""
        return BuiltValue(dict(values), self.own.place, Owner.JOB, made=True)

    def env(self, name: str, value: BuiltValue) -> BuiltValue:
        """A variable with a value that follows from another one."""
        text = value.derive(UNKNOWN if value.unknown else str(value))
        return value.derive({"name": value.derive(name), "value": text})

    def index_env(self, name: str) -> BuiltValue:
        """A variable that holds the pod's index."""
        source = self.struct(fieldRef=self.struct(fieldPath=self.made(COMPLETION_INDEX)))
        return self.struct(name=self.made(name), valueFrom=source)

    def host(self) -> Content:
        """The first pod of the trainer; its name is fixed, whatever the runtime's job is called."""
        return UNKNOWN if self.name is None else f"{self.name}-{NODE}-0-0.{self.name}"

    def address(self) -> Content:
        """That pod with the trainer's port."""
        host = self.host()
        return f"{host}:{TRAINER_PORT}" if isinstance(host, str) else UNKNOWN

    def open_port(self, container: BuiltValue) -> None:
        """A container opens the trainer's port."""
        upsert(container, "ports", self.struct(containerPort=self.made(TRAINER_PORT)), same_port)

    def mount(self, container: BuiltValue, name: BuiltValue, path: BuiltValue) -> None:
        """A container mounts a volume at a path."""
        upsert(container, "volumeMounts", self.struct(name=name, mountPath=path), _same("mountPath"))


def _decoded(runtime: Runtime, facts: KubeflowFacts) -> BuiltValue:
    """The runtime's spec, read once for each release."""
    if facts.release not in runtime.decoded:
        schema = facts.structure("TrainingRuntime").properties["spec"]
        runtime.decoded[facts.release] = read(runtime.spec, schema, Owner.RUNTIME, Decoding())
    return runtime.decoded[facts.release]


def _amounts(listed: BuiltValue) -> Amounts | None:
    return None if listed.unknown else [(name, value.amount) for name, value in listed.entries()]


# changing lists


def append(owner: BuiltValue, key: str, item: BuiltValue) -> None:
    """Add to the list under a key."""
    listed = owner.own_list(key)
    if listed is not None:
        listed.append(item)


def upsert(owner: BuiltValue, key: str, item: BuiltValue, same: Callable[[BuiltValue, BuiltValue], bool]) -> None:
    """Put in place of the first item that counts as the same, else add."""
    listed = owner.own_list(key)
    if listed is not None:
        _put(listed, item, same)


def _put(listed: list[BuiltValue], item: BuiltValue, same: Callable[[BuiltValue, BuiltValue], bool]) -> None:
    for index, other in enumerate(listed):
        if same(other, item):
            listed[index] = item
            return
    listed.append(item)


def upsert_volume(pods: Pods, volume: BuiltValue) -> None:
    """Add a volume, or replace the one of its name."""
    upsert(pods.spec, "volumes", volume, _same("name"))


def upsert_env(container: BuiltValue, env: Iterable[BuiltValue]) -> None:
    """Add variables, or replace those of their names."""
    listed = container.own_list("env")
    if listed is None:
        return
    positions: dict[Content, int] = {}
    for index, other in enumerate(listed):
        if not is_no_key(other.get("name")):
            positions.setdefault(other.get("name").content, index)
    for item in env:
        name = item.get("name")
        if is_no_key(name):
            _put(listed, item, _same("name"))
        elif name.content in positions:
            listed[positions[name.content]] = item
        else:
            positions[name.content] = len(listed)
            listed.append(item)


def same_port(one: BuiltValue, other: BuiltValue) -> bool:
    """Ports are the same by number, or by name, and having none is a name."""
    return _equal(one, other, "containerPort") or _equal(one, other, "name")


def _same(key: str) -> Callable[[BuiltValue, BuiltValue], bool]:
    return lambda one, other: _equal(one, other, key)


def _equal(one: BuiltValue, other: BuiltValue, key: str) -> bool:
    mine, theirs = one.get(key), other.get(key)
    return mine.content == theirs.content and not mine.unknown


def env_of_job(listed: BuiltValue) -> list[BuiltValue]:
    """The job's own variables as they are copied: a source hides the value, and some sources are not copied."""
    env: list[BuiltValue] = []
    for item in listed.items():
        name, source, value = item.get("name"), item.get("valueFrom"), item.get("value")
        if source.given:
            kept = {key: _without(ref, "apiVersion") for key, ref in source.entries() if key in COPIED_ENV_SOURCES}
            copied = source if source.unknown else source.with_content(dict(kept))
            env.append(item.with_content({"name": name, "valueFrom": copied}))
        else:
            text = value if value.given else value.with_content("")
            env.append(item.with_content({"name": name, "value": text}))
    return env


def _without(value: BuiltValue, key: str) -> BuiltValue:
    content: Content = value.content
    if isinstance(content, dict):
        content = {name: inner for name, inner in content.items() if name != key}
    return value.with_content(content)
