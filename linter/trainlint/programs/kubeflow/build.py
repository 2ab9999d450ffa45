"""What becomes of a TrainJob, as rules see it: the JobSet that the controller builds of it and its runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

from trainlint.findings import Finding
from trainlint.programs.kubeflow.builder import build
from trainlint.programs.kubeflow.built_pods import Container, Pods
from trainlint.programs.kubeflow.built_value import BuiltValue, Owner
from trainlint.programs.kubeflow.draft import NODE, TRAINER, Draft
from trainlint.programs.kubeflow.facts.admission import INITIALIZERS
from trainlint.programs.kubeflow.facts.release import ANCESTOR_LABEL, KubeflowFacts
from trainlint.programs.kubeflow.facts.servers import used_within
from trainlint.programs.kubeflow.name_syntax import Check
from trainlint.programs.kubeflow.objects import GROUP, VERSION, PodPatch, Runtime, TrainJob
from trainlint.reading.document import of_data
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from trainlint.findings import Details
    from trainlint.repository.invocations import Invocation

NAME_LIMIT = 63
RANDOM_SUFFIX = 5
"""Characters that the API server appends to a generateName."""


class Build:
    """A TrainJob as the controller would build it with some definition of its runtime."""

    def __init__(self, job: TrainJob, runtime: Runtime, facts: KubeflowFacts, *, sample: bool = False) -> None:
        self.job = job
        self.runtime = runtime
        self.facts = facts
        self.sample = sample

    @cached_property
    def name(self) -> str | None:
        """The JobSet's name, which is the TrainJob's; None where it is not known."""
        return self.job.name.known

    @cached_property
    def name_length(self) -> int | None:
        """How long that name is, generated names included."""
        if self.name is not None:
            return len(self.name)
        prefix = self.job.field.at("metadata", "generateName").text().known
        return None if prefix is None else min(len(prefix), NAME_LIMIT - RANDOM_SUFFIX) + RANDOM_SUFFIX

    @cached_property
    def spec(self) -> BuiltValue:
        """The TrainJob's spec as the controller reads it."""
        return self._draft.spec

    @cached_property
    def policy(self) -> BuiltValue:
        """The runtime's `mlPolicy`."""
        return self._draft.policy

    @cached_property
    def jobset(self) -> BuiltValue:
        """The JobSet's spec."""
        return self._draft.jobset

    @cached_property
    def labels(self) -> BuiltValue:
        """The JobSet's labels."""
        return self._draft.labels

    @cached_property
    def annotations(self) -> BuiltValue:
        """The JobSet's annotations."""
        return self._draft.annotations

    @cached_property
    def jobs(self) -> list[Pods]:
        """The JobSet's replicated jobs; none where the controller stops before it makes them."""
        return [] if self.stops else self._draft.pods

    @cached_property
    def made(self) -> list[Pods]:
        """Those replicated jobs of which Jobs are made."""
        return [pods for pods in self.jobs if pods.is_made]

    @cached_property
    def containers(self) -> list[Container]:
        """The containers of all pods that are made, init containers first."""
        return [
            Container(part, pods, init=init)
            for pods in self.made
            for init, parts in ((True, pods.init_containers), (False, pods.containers))
            for part in parts
        ]

    @cached_property
    def trainer(self) -> Pods | None:
        """The replicated job of the trainer step."""
        return self._draft.trainer

    @cached_property
    def node(self) -> BuiltValue | None:
        """The container `node` of the trainer's pods, which the job's trainer fills in."""
        return self.trainer.container(NODE) if self.trainer else None

    @cached_property
    def torchruns(self) -> list[Invocation]:
        """Where that container starts torchrun, in the job's own command or the runtime's."""
        if self.node is None:
            return []
        from trainlint.programs.kubeflow.torchrun import starts_in

        parts = [part for part in (self.node.get("command"), self.node.get("args")) if part.given and not part.made]
        return starts_in([part.place for part in parts])

    @cached_property
    def num_nodes(self) -> BuiltValue:
        """The job's own `spec.trainer.numNodes`."""
        return self.spec.at("trainer", "numNodes")

    @cached_property
    def processes(self) -> BuiltValue:
        """How many processes run on each node of the trainer: a number, `auto`, or absent where nothing says so."""
        return self._draft.processes

    @cached_property
    def stops(self) -> tuple[BuiltValue, str] | None:
        """Why the controller cannot build anything, and the value at which it stops."""
        return self._draft.stops

    @cached_property
    def _draft(self) -> Draft:
        return build(self.job, self.runtime, self.facts)

    def finding(self, value: BuiltValue, message: str, **details: Unpack[Details]) -> Finding:
        """A finding on what is built: at the job's field that gave it, or where the job names its runtime.

        Of a sample job, which is in no file, it is always the value's own place. It holds in the servers that read the
        field, unless the rule says in which.
        """
        if details.get("within") is None:
            details["within"] = used_within(value.place.field_path)
        if value.owner is Owner.JOB or self.sample:
            return value.place.finding(message, **details)
        return self.job.runtime_name.finding(
            f"{message} (runtime {self.runtime.name})",
            help=details.get("help", ""),
            severity=details.get("severity"),
            stage=details.get("stage"),
            within=details["within"],
            related=value.place.relate(value.place.field_path) + details.get("related", ()),
        )

    def malformed(
        self, value: BuiltValue, check: Check, what: str, owner: str = "", *, within: str | None = None
    ) -> Iterator[Finding]:
        """A finding if a text is here which breaks a syntax."""
        problem = "" if value.text is None else check(value.text)
        if problem:
            yield self.finding(value, f'{what} "{value}"{owner and f" of {owner}"} {problem}', within=within)


class BuiltJob(Build):
    """A TrainJob as the controller would build it with one definition of its runtime."""


class UnplacedJob(Build):
    """A TrainJob whose runtime is not known, on a stand-in that has the jobs and containers which the job speaks of.

    Only what the TrainJob says by itself can be judged: its own values, not what they meet in the runtime.
    """

    def __init__(self, job: TrainJob, facts: KubeflowFacts) -> None:
        super().__init__(job, _stand_in(job.pod_patches) if job.pod_patches else _plain_stand_in(), facts)


@cache
def _plain_stand_in() -> Runtime:
    return _stand_in([])


def _stand_in(patches: Sequence[PodPatch]) -> Runtime:
    labels = {NODE: TRAINER, **{name: name for name in INITIALIZERS.values()}}
    pods: dict[str, dict[str, object]] = {name: {"containers": [{"name": name, "image": "image"}]} for name in labels}
    for patch in patches:
        name = patch.job.known
        if name is None:
            continue
        own = pods.setdefault(name, {})
        for kind in ("containers", "initContainers"):
            given = {item.get("name").text().known for item in patch.pod_spec.get(kind).items()} - {None, NODE, name}
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
