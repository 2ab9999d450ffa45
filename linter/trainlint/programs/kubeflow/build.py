"""What the controller of a Kubeflow Trainer release builds from a TrainJob and its runtime: a JobSet of pods.

The order is the controller's: the runtime's template, the job's patches, resourcesPerNode, the ML policy's own
additions, then what the job's trainer and initializers say. Source: pkg/runtime/core and the plugins of the released
module, for each release.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from trainlint.findings import Finding, Severity
from trainlint.programs.kubeflow.built_value import (
    UNKNOWN,
    BuiltValue,
    Content,
    Decoding,
    Owner,
    is_no_key,
    merge,
    read,
)
from trainlint.programs.kubeflow.facts.admission import INITIALIZERS
from trainlint.programs.kubeflow.facts.jobset import (
    COMPLETION_INDEX,
    COPIED_ENV_SOURCES,
    FLUX_IMAGE,
    FLUX_MOUNTS,
    TRAINER_PORT,
)
from trainlint.programs.kubeflow.facts.release import ANCESTOR_LABEL, TORCHTUNE_COMMAND, KubeflowFacts
from trainlint.programs.kubeflow.name_syntax import Check
from trainlint.programs.kubeflow.objects import GROUP, VERSION, Runtime, TrainJob, recipe_and_config
from trainlint.programs.kubeflow.quantities import whole
from trainlint.reading.document import of_data
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Absent, Field, Known, Unknown, Value

NODE = "node"
LAUNCHER = "launcher"
TRAINER = "trainer"
NAME_LIMIT = 63
RANDOM_SUFFIX = 5
"""Characters that the API server appends to a generateName."""


class Pods:
    """One replicated job of the JobSet: how often it runs, and the pods that it makes."""

    def __init__(self, value: BuiltValue) -> None:
        self.value = value

    @property
    def name(self) -> str:
        """The replicated job's name."""
        return self.value.name

    @property
    def ancestor(self) -> str:
        """The step of the TrainJob that it is: trainer, dataset-initializer, model-initializer, or empty."""
        return self.value.at("template", "metadata", "labels", ANCESTOR_LABEL).text or ""

    @property
    def job(self) -> BuiltValue:
        """The Job's spec."""
        return self.value.at("template", "spec")

    @property
    def template(self) -> BuiltValue:
        """The pod template, with its metadata."""
        return self.job.get("template")

    @property
    def spec(self) -> BuiltValue:
        """The pod's spec."""
        return self.template.get("spec")

    @property
    def containers(self) -> list[BuiltValue]:
        """The pod's containers."""
        return self.spec.get("containers").items()

    @property
    def init_containers(self) -> list[BuiltValue]:
        """The pod's init containers."""
        return self.spec.get("initContainers").items()

    @property
    def count(self) -> BuiltValue:
        """How many pods it runs: parallelism, which completions follow."""
        return self.job.get("parallelism")

    @property
    def replicas(self) -> BuiltValue:
        """How many Jobs are made from it."""
        return self.value.get("replicas")

    @property
    def is_made(self) -> bool:
        """At least one Job is made from it."""
        return self.replicas.number is None or self.replicas.number > 0

    def container(self, name: str) -> BuiltValue | None:
        """The container with this name."""
        return next((container for container in self.containers if container.name == name), None)

    def __str__(self) -> str:
        return f"job {self.name}"


class Container:
    """A container of a replicated job's pods; an init container runs before the others."""

    def __init__(self, value: BuiltValue, pods: Pods, *, init: bool) -> None:
        self.value = value
        self.pods = pods
        self.init = init

    @property
    def stays(self) -> bool:
        """It runs beside the others: no init container, or one that is always restarted."""
        return not self.init or self.value.get("restartPolicy").is_("Always")

    def get(self, key: str) -> BuiltValue:
        """One of its values."""
        return self.value.get(key)

    def __str__(self) -> str:
        return f"{'init container' if self.init else 'container'} {self.value.name} of job {self.pods.name}"


class Build:
    """A TrainJob as the controller would build it with some definition of its runtime."""

    def __init__(self, job: TrainJob, runtime: Runtime, facts: KubeflowFacts, *, sample: bool = False) -> None:
        self.job = job
        self.runtime = runtime
        self.facts = facts
        self.sample = sample

    @property
    def name(self) -> str | None:
        """The JobSet's name, which is the TrainJob's; None where it is not told."""
        return self.job.name.known

    @property
    def name_length(self) -> int | None:
        """How long that name is, generated names included."""
        if self.name is not None:
            return len(self.name)
        prefix = self.job.field.at("metadata", "generateName").text().known
        return None if prefix is None else min(len(prefix), NAME_LIMIT - RANDOM_SUFFIX) + RANDOM_SUFFIX

    @property
    def spec(self) -> BuiltValue:
        """The TrainJob's spec as the controller reads it."""
        return self._parts.spec

    @property
    def policy(self) -> BuiltValue:
        """The runtime's `mlPolicy`."""
        return self._parts.policy

    @property
    def jobset(self) -> BuiltValue:
        """The JobSet's spec."""
        return self._parts.jobset

    @property
    def labels(self) -> BuiltValue:
        """The JobSet's labels."""
        return self._parts.labels

    @property
    def annotations(self) -> BuiltValue:
        """The JobSet's annotations."""
        return self._parts.annotations

    @property
    def jobs(self) -> list[Pods]:
        """The JobSet's replicated jobs; none where the controller stops before it makes them."""
        return [] if self.stops else self._parts.pods

    @property
    def made(self) -> list[Pods]:
        """Those replicated jobs of which Jobs are made."""
        return [pods for pods in self.jobs if pods.is_made]

    @property
    def containers(self) -> list[Container]:
        """The containers of all pods that are made, init containers first."""
        return [
            Container(part, pods, init=init)
            for pods in self.made
            for init, parts in ((True, pods.init_containers), (False, pods.containers))
            for part in parts
        ]

    @property
    def trainer(self) -> Pods | None:
        """The replicated job of the trainer step."""
        return self._parts.trainer

    @property
    def num_nodes(self) -> BuiltValue:
        """The job's own `spec.trainer.numNodes`."""
        return self.spec.at("trainer", "numNodes")

    @property
    def processes(self) -> BuiltValue:
        """How many processes run on each node of the trainer: a number, `auto`, or absent where nothing says so."""
        return self._parts.processes

    @property
    def stops(self) -> tuple[BuiltValue, str] | None:
        """Why the controller cannot build anything, and the value at which it stops."""
        return self._parts.stops

    @cached_property
    def _parts(self) -> _Builder:
        builder = _Builder(self.job, self.runtime, self.facts, self.name)
        builder.run()
        return builder

    def finding(
        self,
        part: BuiltValue,
        message: str,
        *,
        help: str = "",
        severity: Severity | None = None,
        at_key: bool = False,
        field: str | None = None,
    ) -> Finding:
        """A finding on what is built: at the job's field that gave it, or where the job names its runtime.

        Of a sample job, which stands in no file, it is always the value's own place. `field` is what Kubernetes
        misses, where that is told better at another place.
        """
        if part.owner is Owner.JOB or self.sample:
            return part.place.finding(message, help=help, severity=severity, at_key=at_key, field=field)
        return self.job.runtime_name.finding(
            f"{message} (runtime {self.runtime.name})",
            help=help,
            severity=severity,
            related=part.place.relate(part.place.field_path),
        )

    def malformed(self, part: BuiltValue, check: Check, what: str, owner: str = "") -> Iterator[Finding]:
        """A finding if a text is here which breaks a syntax."""
        problem = "" if part.text is None else check(part.text)
        if problem:
            yield self.finding(part, f'{what} "{part.text}"{owner and f" of {owner}"} {problem}')


class BuiltJob(Build):
    """A TrainJob as the controller would build it with one definition of its runtime."""


class UnplacedJob(Build):
    """A TrainJob whose runtime is not known, on a stand-in that has the jobs and containers which the job speaks of.

    Only what the TrainJob says by itself can be judged: its own values, not what they meet in the runtime.
    """

    def __init__(self, job: TrainJob, facts: KubeflowFacts) -> None:
        super().__init__(job, _stand_in(job, facts), facts)


def _stand_in(job: TrainJob, facts: KubeflowFacts) -> Runtime:
    pods: dict[str, dict[str, object]] = {}
    labels = {NODE: TRAINER, **{name: name for name in INITIALIZERS.values()}}
    for name in labels:
        pods[name] = {"containers": [{"name": NODE if name == NODE else name, "image": "image"}]}
    for name, patch in _patched_pods(job, facts):
        own = pods.setdefault(name, {})
        for kind in ("containers", "initContainers"):
            given = {item.get("name").text().known for item in patch.get(kind).items()} - {None, NODE, name}
            listed = [{"name": other, "image": "image"} for other in sorted(str(other) for other in given)]
            before = own.get(kind)
            own[kind] = [*(before if isinstance(before, list) else []), *listed]
        own["containers"] = own["containers"] or [{"name": NODE, "image": "image"}]
    jobs = [
        {
            "name": name,
            "template": {
                "metadata": {"labels": {ANCESTOR_LABEL: labels[name]} if name in labels else {}},
                "spec": {"template": {"spec": spec}},
            },
        }
        for name, spec in pods.items()
    ]
    data = {"spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": jobs}}}}
    return Runtime(Field.root(of_data("", data), Dialect.KUBERNETES))


def _patched_pods(job: TrainJob, facts: KubeflowFacts) -> Iterator[tuple[str, Field]]:
    """The pods that the job patches, by the name of their job."""
    for patch in job.spec.get(facts.overrides_field).items():
        if facts.overrides_field == "runtimePatches":
            replicated = patch.at("trainingRuntimeSpec", "template", "spec", "replicatedJobs").items()
            targets = [(item, item.at("template", "spec", "template", "spec")) for item in replicated]
        else:
            pod = patch if facts.overrides_field == "podSpecOverrides" else patch.get("spec")
            targets = [(item, pod) for item in patch.get("targetJobs").items()]
        for item, pod in targets:
            name = item.get("name").text().known
            if name is not None:
                yield name, pod


class RuntimeAsIs:
    """A runtime by itself, with a job that adds an image and, where it must, the number of nodes."""

    def __init__(self, runtime: Runtime, facts: KubeflowFacts) -> None:
        self.runtime = runtime
        reference = {"name": runtime.name.known or "", "kind": runtime.kind.known or ""}
        trainer: dict[str, object] = {"image": "image"}
        if not runtime.ml_policy.get("flux").is_absent:
            trainer["numNodes"] = 1
        spec = {"runtimeRef": reference, "trainer": trainer}
        document = of_data("", {"apiVersion": f"{GROUP}/{VERSION}", "kind": "TrainJob", "spec": spec})
        job = TrainJob(Field.root(document, Dialect.KUBERNETES), runtime)
        self.sample = BuiltJob(job, runtime, facts, sample=True)


class _Builder:
    """The steps of the controller, on parts that are this build's own."""

    def __init__(self, job: TrainJob, runtime: Runtime, facts: KubeflowFacts, name: str | None) -> None:
        self.job = job
        self.facts = facts
        self.name = name
        runtime_schema = facts.structure("TrainingRuntime").properties["spec"]
        job_schema = facts.structure("TrainJob").properties["spec"]
        overrides = facts.overrides_field
        patches = job.spec.get(overrides).items()
        untimed = overrides == "runtimePatches" and any(patch.get("time").is_absent for patch in patches)
        self.spec = read(job.spec, job_schema, Owner.JOB, Decoding(rewritten=False, empty_texts=untimed))
        self.overrides = read(
            job.spec.get(overrides), job_schema.properties[overrides], Owner.JOB, Decoding(empty_texts=untimed)
        )
        self.runtime_spec = read(runtime.spec, runtime_schema, Owner.RUNTIME, Decoding())
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

    def run(self) -> None:
        """Build, or say in `stops` why the controller cannot."""
        self._patch()
        self.pods = [Pods(part) for part in self.jobset.get("replicatedJobs").items()]
        self.trainer = next((pods for pods in self.pods if pods.ancestor == TRAINER), None)
        for pods in self.pods:
            _make_room(pods)
            if pods.replicas.is_(0):
                # Go drops a zero when it writes the JobSet, whose default is 1
                pods.value.set("replicas", pods.replicas.derive(1))
        self._count()
        if self.facts.resources_merged:
            self._merge_resources()
        self._enforce_policy()
        self._sync_lists()
        self._initializers()
        self._trainer()
        self._schedule()
        if self.spec.get("suspend").given and self.jobset.given:
            self.jobset.set("suspend", self.spec.get("suspend"))

    # the runtime's template and the job's patches

    def _patch(self) -> None:
        if self.facts.overrides_field == "runtimePatches":
            for patch in self.overrides.items():
                template = patch.at("trainingRuntimeSpec", "template")
                self.labels = _joined(self.labels, template.at("metadata", "labels"))
                self.annotations = _joined(self.annotations, template.at("metadata", "annotations"))
                self._patch_jobset(template.get("spec"))
        else:
            for override in self.overrides.items():
                self._override(override)
        if self.facts.labels_on_spec:
            self.labels = _joined(self.labels, self.spec.get("labels"))
            self.annotations = _joined(self.annotations, self.spec.get("annotations"))

    def _patch_jobset(self, patch: BuiltValue) -> None:
        if patch.absent:
            return
        if self.facts.patches_add_jobs:
            before = {item.name: index for index, item in enumerate(self.jobset.get("replicatedJobs").items())}
            self.jobset = merge(self.jobset, patch)
            merged = self.jobset.get("replicatedJobs")
            if isinstance(merged.content, list):
                merged.content.sort(key=lambda item: before.get(item.name, 0))
            return
        for job in patch.get("replicatedJobs").items():
            for mine in self.jobset.get("replicatedJobs").items():
                if mine.name == job.name and job.get("template").given:
                    mine.set("template", merge(mine.get("template"), job.get("template")))

    def _override(self, override: BuiltValue) -> None:
        targets = {target.name for target in override.get("targetJobs").items()}
        whole_pod = self.facts.overrides_field == "podSpecOverrides"
        for job in self.jobset.get("replicatedJobs").items():
            if job.name not in targets:
                continue
            template = job.child("template", {}).child("spec", {}).child("template", {})
            if whole_pod:
                content = {key: value for key, value in override.entries() if key != "targetJobs"}
                patch = override.with_content(content)
                template.set("spec", merge(template.child("spec", {}), patch))
                continue
            if override.get("spec").given:
                template.set("spec", merge(template.child("spec", {}), override.get("spec")))
            for key in ("labels", "annotations"):
                patch = override.at("metadata", key)
                if patch.given:
                    metadata = template.child("metadata", {})
                    metadata.set(key, merge(metadata.get(key), patch))

    # how many, and with which resources

    def _count(self) -> None:
        for pods in self.pods:
            count = pods.count
            if pods.ancestor == TRAINER and self.policy.given:
                count = self.policy.get("numNodes")
            if not count.unknown and (count.number is None or count.number < 1):
                count = count.derive(1)
            self._set_count(pods, count)

    @staticmethod
    def _set_count(pods: Pods | None, count: BuiltValue) -> None:
        if pods is not None:
            pods.job.set("parallelism", count)
            pods.job.set("completions", count)

    @property
    def _num_nodes(self) -> BuiltValue:
        return self.own.get("numNodes")

    def _count_from_job(self) -> None:
        if self._num_nodes.given:
            self._set_count(self.trainer, self._num_nodes)

    @property
    def _launcher_is_node(self) -> bool:
        return self.policy.at("mpi", "runLauncherAsNode").is_(True)

    def _takes_resources(self, pods: Pods) -> bool:
        follows = self.facts.node_job_follows_launcher and self._launcher_is_node and pods.name == NODE
        return pods.ancestor == TRAINER or follows

    def _merge_resources(self) -> None:
        """Release 2.3: resourcesPerNode laid over the runtime's, if that has an mlPolicy at all."""
        override = self.own.get("resourcesPerNode")
        if not (override.given and self.policy.given):
            return
        for pods in self.pods:
            container = pods.container(NODE) if self._takes_resources(pods) else None
            if container is not None:
                base = container.get("resources")
                merged = override.with_content({})
                for key in ("limits", "requests"):
                    value = merge(base.get(key), override.get(key)) if override.get(key).content else base.get(key)
                    if value.given:
                        merged.set(key, value)
                container.set("resources", merged)

    @cached_property
    def _resources(self) -> BuiltValue:
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
    def _gpus(self) -> BuiltValue:
        return gpus_of(self._resources)

    # the ML policy

    def _enforce_policy(self) -> None:
        policy = next((key for key in ("torch", "mpi", "jax") if self.policy.get(key).given), None)
        if policy is None:
            self._plain()
        steps: dict[str, Callable[[], None]] = {
            "torch": self._torch,
            "mpi": self._mpi,
            "jax": self._jax,
            "xgboost": self._xgboost,
            "flux": self._flux,
        }
        for key, step in steps.items():
            if self.policy.get(key).given:
                step()

    @property
    def _container(self) -> BuiltValue | None:
        """The container that the trainer goes into, if the job has a trainer."""
        return self.trainer.container(NODE) if self.trainer and self.own.given else None

    def _plain(self) -> None:
        self._count_from_job()
        if self._container is not None:
            _upsert_env(self._container, _env_of_job(self.own.get("env")))

    def _torch(self) -> None:
        self._count_from_job()
        procs = self._torch_procs()
        count = self.trainer.count if self.trainer else self._made(1, self.own)
        env = [
            self._env("PET_NNODES", count),
            self._env("PET_NPROC_PER_NODE", procs),
            self._index_env("PET_NODE_RANK"),
        ]
        master = [
            self._env("PET_MASTER_ADDR", self._made(self._host(), self.own)),
            self._env("PET_MASTER_PORT", self._made(str(TRAINER_PORT), self.own)),
        ]
        container = self._container
        if container is not None:
            self.processes = procs
            _upsert_env(container, _env_of_job(self.own.get("env")))
            _upsert_env(container, env)
            if self.command.texts() == list(TORCHTUNE_COMMAND):
                self._torchtune(count, procs)
            else:
                _upsert_env(container, master)
            self._open_port(container)
        for target in self.policy.at("torch", "envInjection", "targets").items():
            pods = next((p for p in self.pods if p.name == target.get("jobName").text), None)
            for name in target.get("containerNames").texts() or []:
                found = [c for c in [*pods.containers, *pods.init_containers] if c.name == name] if pods else []
                if found:
                    _upsert_env(found[0], [*env, *master])

    def _torch_procs(self) -> BuiltValue:
        procs = self.own.get("numProcPerNode")
        if procs.absent and self.facts.runtime_procs:
            procs = self.policy.at("torch", "numProcPerNode")
        if procs.absent:
            procs = BuiltValue("auto", procs.place, Owner.JOB, made=True)
        if not self.facts.procs_from_gpus:
            return self._procs_by_names(procs)
        gpus = self._gpus
        if procs.is_("auto") and gpus.unknown:
            return gpus.derive(UNKNOWN)
        if (procs.is_("cpu") and self.facts.runtime_procs) or (procs.is_("auto") and gpus.is_(0)):
            return cpus_of(self._resources)
        return procs

    def _procs_by_names(self, procs: BuiltValue) -> BuiltValue:
        """Release 2.0: what names resourcesPerNode holds decides, limits before requests."""
        resources = self.own.get("resourcesPerNode")
        if resources.absent:
            return procs
        if resources.unknown or procs.unknown:
            return resources.derive(UNKNOWN)
        fallback = procs.derive(1) if procs.is_("cpu") else procs
        answer = fallback
        for key in ("limits", "requests"):
            listed = resources.get(key)
            if listed.unknown:
                return listed.derive(UNKNOWN)
            names = [name for name, _ in listed.entries()]
            if listed.absent:
                answer = resources.derive(1)
            elif (procs.is_("auto") and not any("gpu" in name.lower() for name in names)) or (
                procs.is_("cpu") and "cpu" in names
            ):
                amount = listed.get("cpu").amount
                return BuiltValue(max(1, whole(amount) if amount else 0), listed.place, listed.owner, made=True)
            else:
                answer = fallback
        return answer

    def _torchtune(self, count: BuiltValue, procs: BuiltValue) -> None:
        """`tune run` gets its rendezvous, recipe, config and the runtime's own settings."""
        if not isinstance(self.command.content, list):
            return
        own = self.own
        words: list[BuiltValue] = []
        gpus = self._gpus
        several = count.number is not None and count.number > 1
        if self.facts.rendezvous_for_auto:
            rendezvous: bool | None = several or procs.number != 1
        else:
            several_procs = procs.number is not None and procs.number > 1
            several_gpus = procs.text is not None and gpus.number is not None and gpus.number > 1
            rendezvous = several or several_procs or several_gpus
        if procs.unknown or count.unknown or (procs.text is not None and gpus.unknown):
            rendezvous = None if not several else True
        host = self._host()
        if rendezvous is None:
            words.append(self._made(UNKNOWN, own))
        elif rendezvous:
            endpoint = f"--rdzv_endpoint={host}:{TRAINER_PORT}" if isinstance(host, str) else UNKNOWN
            words.append(self._made(endpoint, own))
        recipe = recipe_and_config(self.job, self.facts, num_nodes=_as_number(count), procs=_as_number(procs))
        settings: list[Content] = [recipe.name, "--config", recipe.config] if recipe else [UNKNOWN]
        words.extend(self._made(word, own) for word in settings)
        for pods in self.pods:
            container = pods.container(NODE) if pods.ancestor == TRAINER else None
            for word in container.get("command").items() if container else []:
                if (word.text or "").partition("=")[0] in self.facts.immutable_keys:
                    words.append(word)
        self.command = self.command.with_content([*self.command.content, *words])

    def _jax(self) -> None:
        if self.trainer is None and self.facts.jax_needs_trainer_job:
            self.stops = (self.policy.get("jax"), "a JAX runtime without a trainer job crashes the controller")
            return
        self._count_from_job()
        container = self._container
        if container is None or self.trainer is None:
            return
        host = self._host()
        address = f"{host}:{TRAINER_PORT}" if isinstance(host, str) else UNKNOWN
        env = [
            self._env("JAX_NUM_PROCESSES", self.trainer.count),
            self._index_env("JAX_PROCESS_ID"),
            self._env("JAX_COORDINATOR_ADDRESS", self._made(address, self.own)),
        ]
        _upsert_env(container, env)
        self._open_port(container)

    def _xgboost(self) -> None:
        self._count_from_job()
        container = self._container
        if container is None or self.trainer is None:
            return
        gpus, count = self._gpus, self.trainer.count
        workers: Content = UNKNOWN
        if gpus.number is not None and count.number is not None:
            workers = str(count.number * max(gpus.number, 1))
        env = [
            self._env("DMLC_TRACKER_URI", self._made(self._host(), self.own)),
            self._env("DMLC_TRACKER_PORT", self._made(str(TRAINER_PORT), self.own)),
            self._index_env("DMLC_TASK_ID"),
            self._env("DMLC_NUM_WORKER", gpus.derive(workers)),
        ]
        _upsert_env(container, env)
        self._open_port(container)

    def _mpi(self) -> None:
        node = next((pods for pods in self.pods if pods.name == NODE), None)
        count = self._num_nodes
        if count.given and node is not None:
            if self._launcher_is_node:
                rest: Content = UNKNOWN if count.number is None else max(count.number - 1, 1)
                count = count.derive(rest)
            self._set_count(node, count)
        slots = self.processes = self._slots()
        for pods in self.pods:
            if pods.name not in (NODE, LAUNCHER):
                continue
            _upsert_volume(pods, self._secret_volume())
            if pods.name == LAUNCHER:
                _upsert_volume(pods, self._hostfile_volume())
            for container in pods.containers:
                if container.name != NODE:
                    continue
                self._mount(container, "mpi-ssh-auth", self.policy.at("mpi", "sshAuthMountPath"))
                if pods.name == LAUNCHER:
                    self._mount(container, "mpi-hostfile", self._made("/etc/mpi", self.own))
                    self._openmpi(container, slots)

    def _slots(self) -> BuiltValue:
        slots = self.own.get("numProcPerNode")
        if slots.given:
            return slots
        slots = self.policy.at("mpi", "numProcPerNode")
        if self.facts.procs_from_gpus and slots.is_(1):
            gpus = self._gpus
            if gpus.unknown or (gpus.number or 0) > 1:
                return gpus
        return slots

    def _openmpi(self, container: BuiltValue, slots: BuiltValue) -> None:
        implementation = self.policy.at("mpi", "mpiImplementation")
        if implementation.known_and_not_in(("OpenMPI",)):
            self.stops = (implementation, f"the controller cannot start MPI of the kind {implementation.text}")
            return
        env = [
            self._env("OMPI_MCA_orte_default_hostfile", self._made("/etc/mpi/hostfile", self.own)),
            self._env("OMPI_MCA_orte_keep_fqdn_hostnames", self._made("true", self.own)),
            self._env("OMPI_MCA_orte_set_default_slots", slots),
            self._env("OMPI_MCA_plm_rsh_args", self._made("-o ConnectionAttempts=10", self.own)),
        ]
        _upsert_env(container, env)

    def _flux(self) -> None:
        if self.own.absent or self._num_nodes.absent:
            missing = self._num_nodes if self.own.given else self.own
            self.stops = (missing, "a Flux runtime needs spec.trainer.numNodes: without it the controller crashes")
            return
        settings = {"FLUX_VIEW_IMAGE": self._made(FLUX_IMAGE, self.own)}
        container = self._container
        for env in [*(container.get("env").items() if container else []), *self.own.get("env").items()]:
            if env.name in settings:
                settings[env.name] = env.get("value")
        command = container.get("command") if container and self.facts.flux_wraps_runtime_command else None
        if self.command.given or command is None:
            command = self.command
        words = [*(command.texts() or []), *(self.args.texts() or [])]
        known = command.absent or command.texts() is not None
        original: Content = " ".join(words).strip() if known else UNKNOWN
        self.command = BuiltValue(
            [self._made(word, self.own) for word in ("/bin/bash", "/etc/flux-config/entrypoint.sh", original)],
            self.command.place,
            Owner.JOB,
            made=True,
        )
        self.args = BuiltValue(None, self.args.place, Owner.JOB)
        node = next((pods for pods in self.pods if pods.name == NODE), None)
        if node is not None:
            self._flux_pods(node, settings["FLUX_VIEW_IMAGE"])

    def _flux_pods(self, node: Pods, image: BuiltValue) -> None:
        config: Content = UNKNOWN if self.name is None else f"{self.name}-flux-entrypoint"
        curve: Content = UNKNOWN if self.name is None else f"{self.name}-flux-curve"
        empty = self._made({}, self.own)
        memory = self._struct(medium=self._made("Memory", self.own))
        volumes = [
            self._struct(name=self._made("spack-install", self.own), emptyDir=empty),
            self._struct(name=self._made("flux-install", self.own), emptyDir=empty),
            self._struct(name=self._named(config), configMap=self._struct(name=self._named(config))),
        ]
        mounts = [(self._made(name, self.own), path) for name, path in FLUX_MOUNTS]
        mounts += [(self._named(config), "/etc/flux-config"), (self._made("flux-curve", self.own), "/curve")]
        if self.facts.flux_shared_memory:
            volumes.append(self._struct(name=self._made("shared-memory", self.own), emptyDir=memory))
            mounts.append((self._made("shared-memory", self.own), "/dev/shm"))
        secret = self._struct(secretName=self._named(curve))
        volumes.append(self._struct(name=self._made("flux-curve", self.own), secret=secret))
        for volume in volumes:
            _upsert_volume(node, volume)
        installer = self._struct(
            name=self._made("flux-installer", self.own),
            image=image,
            command=self._made(
                [self._made(word, self.own) for word in ("/bin/bash", "/etc/flux-config/init.sh")], self.own
            ),
            volumeMounts=self._made([], self.own),
        )
        self._mount(installer, "flux-install", self._made("/mnt/flux", self.own))
        self._mount_part(installer, self._named(config), self._made("/etc/flux-config", self.own))
        _append(node.spec, "initContainers", installer)
        for container in node.containers:
            if container.name == NODE:
                for name, path in mounts:
                    self._mount_part(container, name, self._made(path, self.own))

    # what each pod set carries over, the trainer and the initializers

    def _sync_lists(self) -> None:
        """Ports and mounts are written over themselves, which merges ports that share a number or a name."""
        for pods in self.pods:
            containers = list(pods.containers)
            if self.facts.init_ports_merged:
                containers += pods.init_containers
            for container in containers:
                for port in list(container.get("ports").items()):
                    _upsert(container, "ports", port, _same_port)

    def _initializers(self) -> None:
        for step, name in INITIALIZERS.items():
            own = self.spec.at("initializer", step)
            for pods in self.pods:
                if pods.ancestor != name:
                    continue
                pods.value.set("replicas", pods.replicas.derive(1))
                container = pods.container(name)
                if container is None or own.absent:
                    continue
                if own.get("storageUri").given:
                    _upsert_env(container, [self._env("STORAGE_URI", own.get("storageUri"))])
                _upsert_env(container, _env_of_job(own.get("env")))
                secret = own.get("secretRef")
                if secret.given:
                    _append(container, "envFrom", secret.with_content({"secretRef": secret}))

    def _trainer(self) -> None:
        for pods in self.pods:
            if pods.ancestor == TRAINER:
                pods.value.set("replicas", pods.replicas.derive(1))
                for container in pods.containers:
                    if container.name == NODE and self.own.given:
                        for key, value in (
                            ("image", self.own.get("image")),
                            ("command", self.command),
                            ("args", self.args),
                        ):
                            if value.given:
                                container.set(key, value)
            if self._takes_resources(pods):
                for container in pods.containers:
                    if container.name == NODE and self.own.given:
                        self._replace_resources(container)
                        _upsert_env(container, _env_of_job(self.own.get("env")))

    def _replace_resources(self, container: BuiltValue) -> None:
        """Up to release 2.2: resourcesPerNode stands in place of the runtime's, if it lists anything."""
        own = self.own.get("resourcesPerNode")
        lists = {key: own.get(key) for key in ("limits", "requests") if own.get(key).given}
        if lists and not self.facts.resources_merged:
            container.set("resources", own.with_content(dict(lists)))

    def _schedule(self) -> None:
        scheduler = self.runtime_spec.get("podGroupPolicy")
        marks = (
            ("coscheduling", "labels", "scheduling.x-k8s.io/pod-group"),
            ("volcano", "annotations", "scheduling.k8s.io/group-name"),
        )
        for policy, kind, key in marks:
            if scheduler.get(policy).given:
                for pods in self.pods:
                    mark = pods.template.child("metadata", {}).child(kind, {})
                    mark.set(key, self._named(UNKNOWN if self.name is None else self.name))

    # values that the controller makes

    def _made(self, content: Content, cause: BuiltValue) -> BuiltValue:
        return cause.derive(content)

    def _named(self, content: Content) -> BuiltValue:
        """A value made of the job's name."""
        return BuiltValue(content, self.job.name.field, Owner.JOB, made=True)

    def _struct(self, **parts: BuiltValue) -> BuiltValue:
        return BuiltValue(dict(parts), self.own.place, Owner.JOB, made=True)

    def _env(self, name: str, value: BuiltValue) -> BuiltValue:
        text: Content = UNKNOWN if value.unknown else str(value)
        made = value.derive(text)
        return BuiltValue({"name": self._made(name, value), "value": made}, value.place, value.owner, made=True)

    def _index_env(self, name: str) -> BuiltValue:
        source = self._struct(fieldRef=self._struct(fieldPath=self._made(COMPLETION_INDEX, self.own)))
        return self._struct(name=self._made(name, self.own), valueFrom=source)

    def _host(self) -> Content:
        """The first pod of the trainer; its name is fixed, whatever the runtime's job is called."""
        return UNKNOWN if self.name is None else f"{self.name}-{NODE}-0-0.{self.name}"

    def _open_port(self, container: BuiltValue) -> None:
        port = self._struct(containerPort=self._made(TRAINER_PORT, self.own))
        _upsert(container, "ports", port, _same_port)

    def _mount(self, container: BuiltValue, name: str, path: BuiltValue) -> None:
        self._mount_part(container, self._made(name, self.own), path)

    def _mount_part(self, container: BuiltValue, name: BuiltValue, path: BuiltValue) -> None:
        mount = self._struct(name=name, mountPath=path)
        _upsert(container, "volumeMounts", mount, lambda a, b: _same(a, b, "mountPath"))

    def _secret_volume(self) -> BuiltValue:
        secret: Content = UNKNOWN if self.name is None else f"{self.name}-mpi-ssh-auth"
        return self._struct(
            name=self._made("mpi-ssh-auth", self.own), secret=self._struct(secretName=self._named(secret))
        )

    def _hostfile_volume(self) -> BuiltValue:
        config: Content = UNKNOWN if self.name is None else f"{self.name}-mpi-hostfile"
        return self._struct(name=self._made("mpi-hostfile", self.own), configMap=self._struct(name=self._named(config)))


def gpus_of(resources: BuiltValue) -> BuiltValue:
    """The GPUs that a list of resources counts as: the first name that contains `gpu`, requests before limits.

    UnknownContent where an amount is, or where several such names make the answer random. Source: GetNumGPUPerNode.
    """
    requested, limited = (_gpu_counts(resources.get(key)) for key in ("requests", "limits"))
    if resources.unknown or requested is None or limited is None:
        return resources.derive(UNKNOWN)
    outcomes = {count for count in requested if count != 0}
    if 0 in requested:
        outcomes |= {max(count, 0) for count in limited}
    content: Content = outcomes.pop() if len(outcomes) == 1 else UNKNOWN
    return resources.derive(content)


def _gpu_counts(listed: BuiltValue) -> set[int] | None:
    if listed.unknown:
        return None
    counts: set[int] = set()
    for name, part in listed.entries():
        if "gpu" in name.lower():
            amount = part.amount
            if amount is None:
                return None
            counts.add(whole(amount))
    return counts or {0}


def cpus_of(resources: BuiltValue) -> BuiltValue:
    """The processes that a list of resources comes to where there is no GPU: its CPUs, requests before limits."""
    requested, limited = resources.at("requests", "cpu"), resources.at("limits", "cpu")
    for cpu in (requested, limited):
        if cpu.unknown or (cpu.given and cpu.amount is None):
            return cpu.derive(UNKNOWN)
        if cpu.amount:
            return BuiltValue(max(1, whole(cpu.amount)), cpu.place, cpu.owner, made=True)
    return resources.derive(1)


def _as_number(part: BuiltValue) -> Value[int]:
    """A part for who reads values; a word such as `auto` counts as Absent."""
    if part.unknown:
        return Unknown(part.place)
    return Absent(part.place) if part.number is None else Known(part.place, part.number)


def _make_room(pods: Pods) -> None:
    """The mappings that the steps write into exist, as structs do in Go."""
    pods.value.child("template", {}).child("spec", {}).child("template", {}).child("spec", {})


def _joined(base: BuiltValue, extra: BuiltValue) -> BuiltValue:
    return merge(base, extra) if extra.given else base


def _append(owner: BuiltValue, key: str, item: BuiltValue) -> None:
    listed = owner.child(key, [])
    if isinstance(listed.content, list):
        listed.content.append(item)


def _upsert(owner: BuiltValue, key: str, item: BuiltValue, same: Callable[[BuiltValue, BuiltValue], bool]) -> None:
    listed = owner.child(key, [])
    if not isinstance(listed.content, list):
        return
    for index, other in enumerate(listed.content):
        if same(other, item):
            listed.content[index] = item
            return
    listed.content.append(item)


def _same(one: BuiltValue, other: BuiltValue, key: str) -> bool:
    mine, theirs = one.get(key), other.get(key)
    return mine.content == theirs.content and not mine.unknown


def _same_port(one: BuiltValue, other: BuiltValue) -> bool:
    """Ports are the same by number, or by name, and having none is a name."""
    return _same(one, other, "containerPort") or _same(one, other, "name")


def _upsert_env(container: BuiltValue, env: Iterable[BuiltValue]) -> None:
    listed = container.child("env", [])
    if not isinstance(listed.content, list):
        return
    positions: dict[Content, int] = {}
    for index, other in enumerate(listed.content):
        if not is_no_key(other.get("name")):
            positions.setdefault(other.get("name").content, index)
    for item in env:
        name = item.get("name")
        if is_no_key(name):
            _upsert(container, "env", item, lambda a, b: _same(a, b, "name"))
        elif name.content in positions:
            listed.content[positions[name.content]] = item
        else:
            positions[name.content] = len(listed.content)
            listed.content.append(item)


def _without(part: BuiltValue, key: str) -> BuiltValue:
    content = {name: value for name, value in part.entries() if name != key}
    return part.with_content(content if isinstance(part.content, dict) else part.content)


def _env_of_job(listed: BuiltValue) -> list[BuiltValue]:
    """The job's own variables as they are copied: a source hides the value, and some sources are not copied."""
    env: list[BuiltValue] = []
    for item in listed.items():
        name, source, value = item.get("name"), item.get("valueFrom"), item.get("value")
        if source.given:
            kept = {key: _without(part, "apiVersion") for key, part in source.entries() if key in COPIED_ENV_SOURCES}
            copied = source if source.unknown else source.with_content(dict(kept))
            env.append(item.with_content({"name": name, "valueFrom": copied}))
        else:
            text = value if value.given else value.with_content("")
            env.append(item.with_content({"name": name, "value": text}))
    return env


def _upsert_volume(pods: Pods, volume: BuiltValue) -> None:
    _upsert(pods.spec, "volumes", volume, lambda a, b: _same(a, b, "name"))
