"""Soup: `soup.yaml`, the `soup train` commands that use it, and both together.

Only the command line can ask for sharding, so a file is judged together with the commands of the repository that name
it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from trainlint.lazy import regex
from trainlint.programs import FileReader, WheelProgram
from trainlint.programs.soup.facts import TRAIN, SoupFacts, facts_of
from trainlint.reading.document import Document
from trainlint.reading.scalars import Dialect, Plain
from trainlint.reading.values import UNKNOWN, Absent, Field, Known, Unknown, Value
from trainlint.repository.invocations import Invocation, invocations_in, named_file, repository_invocations
from trainlint.repository.shell import Word
from trainlint.repository.stated import Pinned, pinned
from trainlint.training.declarations import declarations
from trainlint.training.limits import Data, data_of
from trainlint.training.pydantic_types import as_boolean, as_number

if TYPE_CHECKING:
    from trainlint.programs import Surroundings, Views
    from trainlint.training.declarations import Spec

SECTIONS = {"data": "DataConfig", "training": "TrainingConfig", "eval": "EvalConfig", "advise": "AdviseConfig"}
_HOSTED_RUNNER = regex(r"(?:ubuntu|windows|macos)-(?:latest|[0-9.]+)(?:-arm)?")
_HERE = frozenset(
    "accelerate env exec launch nohup pdm pipenv pixi poetry python python3 run rye sudo time torchrun uv uvx".split()
)
_ACCELERATOR = regex(r"gpu|nvidia|amd\.com|mig-|tpu|neuron|habana")


class SoupFile:
    """A document that is a `soup.yaml`, whatever its name."""

    owns_document = True

    def __init__(self, field: Field) -> None:
        self.field = field


class SoupConfig:
    """A `soup.yaml` as one release reads it: with defaults, and with values in the types of their fields."""

    def __init__(self, field: Field, facts: SoupFacts) -> None:
        self.field = field
        self.facts = facts

    def place(self, name: str) -> Field:
        """Where a setting is written (`training.lora.r`); a top-level `lora` counts as that of `training`."""
        keys = name.split(".")
        if keys[:2] == ["training", "lora"] and self.field.at("training", "lora").node is None:
            lora = self.field.get("lora")
            if lora.node is not None:
                return lora.at(*keys[2:])
        return self.field.at(*keys)

    def data(self, name: str) -> Data:
        """The value of a setting as Soup reads it; its default where it is absent."""
        if name == "training.quantization":
            return self._quantization()
        return self._plainly(name)

    def setting(self, name: str) -> Value[Plain]:
        """The value of a setting at its place."""
        place, data = self.place(name), self.data(name)
        if data is None:
            return Absent(place)
        return Known(place, data) if isinstance(data, (str, bool, int, float)) else Unknown(place)

    def _plainly(self, name: str) -> Data:
        place = self.place(name)
        if place.node is None:
            around = place.parent
            while around is not None:
                if around.is_unknown:
                    return UNKNOWN
                around = around.parent
            spec = self._spec(name)
            return None if spec is None or not isinstance(spec.default, (str, bool, int, float)) else spec.default
        found = data_of(place)
        spec = self._spec(name)
        if spec and isinstance(found, (str, bool, int, float)):
            return _converted(found, spec)
        return found

    def _quantization(self) -> Data:
        """The quantization: by default 4bit, unless a `load_in_` switch or the task decides otherwise."""
        found = self._plainly("training.quantization")
        for switch, meaning in (("training.load_in_8bit", "8bit"), ("training.load_in_16bit", "none")):
            value = self._plainly(switch)
            if value is UNKNOWN or value is True:
                found = UNKNOWN if value is UNKNOWN else meaning
        left_out = self.place("training.quantization").node is None and found == "4bit"
        if left_out or (self.facts.bitsandbytes_dropped and found in ("4bit", "8bit")):
            task = self._plainly("task")
            if task is UNKNOWN or task in self.facts.unquantized_tasks:
                return UNKNOWN if task is UNKNOWN else "none"
        return found

    def _spec(self, name: str) -> Spec | None:
        *sections, key = name.split(".")
        model = "SoupConfig"
        for section in sections:
            spec = self.facts.fields(model).get(section)
            model = next((kind for kind in spec.types if self.facts.fields(kind)), "") if spec else ""
        return self.facts.fields(model).get(key)


class SoupCommand:
    """A `soup train` command, also one that ends before it checks sharding: `--cloud`, `--find-lr`."""

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation

    @property
    def preset(self) -> Value[str]:
        """The value of `--fsdp`; an empty text counts as absent."""
        return _switched(self.invocation.flag("--fsdp"))

    @property
    def deepspeed(self) -> Value[str]:
        """The value of `--deepspeed`; an empty text counts as absent."""
        return _switched(self.invocation.flag("--deepspeed"))

    @property
    def gpus(self) -> Value[str]:
        """The value of `--gpus`; an empty text counts as absent."""
        return _switched(self.invocation.flag("--gpus"))

    @property
    def cloud(self) -> Value[str]:
        """The value of `--cloud`; an empty text counts as absent."""
        return _switched(self.invocation.flag("--cloud"))

    @property
    def config(self) -> Value[str]:
        """The value of `--config`; the default is `soup.yaml`."""
        return self.invocation.flag("--config", "-c").or_when_absent("soup.yaml")

    @property
    def trains(self) -> bool:
        """The command trains on this machine."""
        return not (self.cloud.given or self.invocation.has("--find-lr", "--help"))

    @property
    def is_here(self) -> bool:
        """The command runs in its own step or container, not on another machine or in another container."""
        before = [word.text for word in self.invocation.before if "=" not in word.text]
        names = [word.rpartition("/")[2] for word in before if not word.startswith("-")]
        return not self.invocation.elsewhere and all(name in _HERE or name.isdecimal() for name in names)

    @property
    def hidden_devices(self) -> Word | Field | None:
        """A CUDA_VISIBLE_DEVICES that hides every GPU (empty or -1), on the command line or in the step's `env`."""
        for word in self.invocation.before:
            name, equals, value = word.text.partition("=")
            if name == "CUDA_VISIBLE_DEVICES" and equals and value in ("", "-1") and word.known is not None:
                return word
        owner = self.invocation.owner
        entry = owner.at("env", "CUDA_VISIBLE_DEVICES") if owner is not None else None
        return entry if entry is not None and entry.node is not None and entry.plain in (None, "", -1, "-1") else None

    @property
    def hosted_runner(self) -> Field | None:
        """The `runs-on` of a workflow's job if it names one of GitHub's own runners, which have no GPU."""
        job = _around(self.invocation.owner, "steps")
        runner = job.get("runs-on") if job is not None else None
        label = runner.text().known if runner is not None else None
        return runner if label is not None and _HOSTED_RUNNER.fullmatch(label) else None

    @property
    def gpuless_container(self) -> Field | None:
        """A pod's container that asks for no GPU and gets none in another way that its manifest shows."""
        container = self.invocation.owner
        if container is None or container.parent is None or container.parent.name != "containers":
            return None
        pod, root = container.parent.parent, Field.root(container.document, container.dialect)
        if pod is None or root.get("kind").text().known in (None, "TrainingRuntime", "ClusterTrainingRuntime"):
            return None
        resources = container.get("resources")
        ways = [resources.get("claims"), container.at("securityContext", "privileged"), pod.get("runtimeClassName")]
        visible = [item for item in container.get("env").items() if "VISIBLE_DEVICES" in item.get("name").written]
        if resources.is_unknown or visible or any(way.node is not None for way in ways):
            return None
        for part in (resources.get("limits"), resources.get("requests")):
            if part.is_unknown or any(_ACCELERATOR.search(entry.name.lower()) for entry in part.entries()):
                return None
        return resources if resources.node is not None else container

    @property
    def container_gpus(self) -> Value[int]:
        """The number of GPUs of a pod's container."""
        owner = self.invocation.owner
        if owner is None:
            return Absent(self.invocation.field)
        counts = [e for e in owner.at("resources", "limits").entries() if _ACCELERATOR.search(e.name.lower())]
        return counts[0].integer() if len(counts) == 1 else Absent(owner)


class SoupTraining(SoupCommand):
    """A `soup train` that trains on the machine where it starts.

    `stage` is the ZeRO stage in the DeepSpeed file of the repository that it names.
    """

    def __init__(self, invocation: Invocation, stage: int | None = None) -> None:
        super().__init__(invocation)
        self.stage = stage


class SoupRun:
    """A `soup.yaml` with a command that trains with it."""

    def __init__(self, config: SoupConfig, command: SoupTraining) -> None:
        self.config = config
        self.command = command


class SoupStack:
    """The versions that a repository pins for a sharded run."""

    def __init__(self, command: SoupTraining, torch: Pinned | None, accelerate: Pinned | None) -> None:
        self.command = command
        self.torch = torch
        self.accelerate = accelerate


def _is_soup(root: Field, name: str) -> bool:
    if not root.is_mapping:
        return False
    base, task, output = (root.get(key) for key in ("base", "task", "output"))
    has_base = base.text().known is not None or base.is_unknown
    sections = [root.get(section).is_mapping for section in ("data", "training")]
    trains = sections[1] or not (task.is_absent and output.is_absent)
    if name.startswith("soup") and name.endswith((".yaml", ".yml")):
        return all(sections) or (has_base and (sections[0] or trains))
    if not (has_base and sections[0] and trains):
        return False
    known = declarations("soup")
    tables = {"SoupConfig": root, **{SECTIONS[key]: root.get(key) for key in ("data", "training")}}
    read = [entry.name in known.keys_of_any(table) for table, place in tables.items() for entry in place.entries()]
    return sum(read) * 2 > len(read)


def _command_views(invocation: Invocation, surroundings: Surroundings) -> Iterator[object]:
    """A command, alone and with the nearest pins."""
    if not SoupCommand(invocation).trains:
        yield SoupCommand(invocation)
        return
    command = SoupTraining(invocation)
    yield command
    near = _near(invocation, surroundings)
    torch, accelerate = (pinned(surroundings.repository, near, package) for package in ("torch", "accelerate"))
    if torch or accelerate:
        yield SoupStack(command, torch, accelerate)


def _run_views(
    file: SoupFile | None, commands: Iterable[Invocation], facts: SoupFacts, surroundings: Surroundings
) -> Iterator[SoupRun]:
    if file is not None:
        config = SoupConfig(file.field, facts)
        for invocation in commands:
            if SoupCommand(invocation).trains:
                yield SoupRun(config, SoupTraining(invocation, _zero_stage(invocation, surroundings)))


def _zero_stage(invocation: Invocation, surroundings: Surroundings) -> int | None:
    name = invocation.flag("--deepspeed").known or ""
    file = named_file(surroundings.repository, invocation, name) if name.endswith(".json") else None
    if file is None:
        return None
    try:
        data: object = json.loads(surroundings.repository.text(file))
    except (OSError, ValueError, RecursionError):
        return None
    zero = data.get("zero_optimization") if isinstance(data, dict) else None
    stage = zero.get("stage") if isinstance(zero, dict) else None
    return stage if isinstance(stage, int) else None


def _config_of(invocation: Invocation, surroundings: Surroundings) -> SoupFile | None:
    """The config that a command trains with, if the repository has it."""
    name = SoupCommand(invocation).config.known
    file = named_file(surroundings.repository, invocation, name) if name else None
    if file is None:
        return None
    path = file.resolve()
    return next(
        (s for s in surroundings.subjects("soup", SoupFile) if Path(s.field.document.path).resolve() == path), None
    )


def _near(subject: SoupFile | Invocation, surroundings: Surroundings) -> str:
    config = _config_of(subject, surroundings) if isinstance(subject, Invocation) else None
    return (config or subject).field.document.path


def _switched(value: Value[str]) -> Value[str]:
    return Absent(value.field) if value.is_("") else value


def _around(field: Field | None, key: str) -> Field | None:
    """The mapping around a step whose list is under a key."""
    steps = field.parent if field is not None else None
    return steps.parent if steps is not None and steps.name == key else None


def _converted(value: str | bool | int | float, spec: Spec) -> Plain:
    """A scalar in the type of its field, if the field has one type and accepts the scalar."""
    kinds = [kind for kind in spec.types if kind != "None"]
    if kinds == ["bool"]:
        found = as_boolean(value)
        return value if found is None else found
    if kinds in (["int"], ["float"]):
        number = as_number(value)
        return value if number is None else int(number) if kinds == ["int"] and number.is_integer() else number
    return value


class Soup(WheelProgram[SoupFile | Invocation, SoupFacts]):
    """The program Soup: its configs and commands."""

    name = "soup"
    readers = (FileReader(TRAIN, "--config"), FileReader(TRAIN, "-c"))

    def adopt(self, document: Document) -> Sequence[SoupFile | Invocation]:
        """A `soup.yaml`, whatever keys it has."""
        return [SoupFile(Field.root(document, Dialect.PYYAML))]

    def recognise(self, document: Document) -> Sequence[SoupFile | Invocation]:
        """A `soup.yaml` by its content, or the `soup train` commands in another program's file."""
        root = Field.root(document, Dialect.PYYAML)
        if _is_soup(root, PurePosixPath(document.path).name.lower()):
            return [SoupFile(root)]
        return invocations_in(document, [TRAIN])

    def alternatives(self, subject: SoupFile | Invocation, surroundings: Surroundings, release: str) -> Sequence[Views]:
        """A config with the commands that name it and those in scripts; a command with the config that it names."""
        facts = facts_of(release)
        if isinstance(subject, Invocation):
            file = _config_of(subject, surroundings)
            return [[*_command_views(subject, surroundings), *_run_views(file, [subject], facts, surroundings)]]
        commands = repository_invocations(surroundings.repository, TRAIN)
        path = subject.field.document.path
        named = [c for c in commands if (file := _config_of(c, surroundings)) and file.field.document.path == path]
        views: list[object] = [SoupConfig(subject.field, facts), *_run_views(subject, named, facts, surroundings)]
        for invocation in commands:
            if invocation.owner is None:
                views += _command_views(invocation, surroundings)
        return [views]

    def facts(self, release: str) -> SoupFacts:
        """The facts of one known release."""
        return facts_of(release)

    def stated_near(self, subject: SoupFile | Invocation, surroundings: Surroundings) -> str:
        """The path of the config, or of the config that a command names."""
        return _near(subject, surroundings)


PROGRAM = Soup()
