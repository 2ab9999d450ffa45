"""The pods of a JobSet, as the controller builds them and as rules see them."""

from __future__ import annotations

from functools import cached_property

from trainlint.programs.kubeflow.built_value import BuiltValue
from trainlint.programs.kubeflow.facts.release import ANCESTOR_LABEL


class Pods:
    """One replicated job of the JobSet: how often it runs, and the pods that it makes."""

    def __init__(self, value: BuiltValue) -> None:
        self.value = value

    @cached_property
    def name(self) -> str:
        """The replicated job's name."""
        return self.value.name

    @cached_property
    def ancestor(self) -> str:
        """The step of the TrainJob that it is: trainer, dataset-initializer, model-initializer, or empty."""
        return self.value.at("template", "metadata", "labels", ANCESTOR_LABEL).text or ""

    @cached_property
    def job(self) -> BuiltValue:
        """The Job's spec."""
        return self.value.at("template", "spec")

    @cached_property
    def template(self) -> BuiltValue:
        """The pod template, with its metadata."""
        return self.job.get("template")

    @cached_property
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


def command_words(container: BuiltValue) -> list[str]:
    """The words of a container's command and args; without those of a list that is not known."""
    return [*(container.get("command").texts() or []), *(container.get("args").texts() or [])]


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
