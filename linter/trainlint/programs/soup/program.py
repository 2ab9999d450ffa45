"""Soup: `soup.yaml`, the `soup train` commands that use it, and both together.

Only the command line can ask for sharding, so a file is judged together with the commands of the repository that name
it.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from trainlint.findings import Severity, nearest
from trainlint.lazy import regex
from trainlint.programs import FileReader, WheelProgram
from trainlint.programs.soup.facts import (
    CHAT_TEMPLATES,
    EMPTY_IS_NULL,
    FILE_SUFFIXES,
    FOLDED,
    KIMI_K2,
    LONGLORA_MODEL,
    REFERENCE_LOSSES,
    SIGNALS,
    TRAIN,
    VISION_MODEL,
    WORD_ALIASES,
    SoupFacts,
    facts_of,
)
from trainlint.programs.soup.values import wrong_collections, wrong_texts, wrong_types
from trainlint.reading.document import Document
from trainlint.reading.scalars import Dialect, Plain
from trainlint.reading.values import UNKNOWN, Absent, Field, Known, Unknown, Value
from trainlint.repository.invocations import Invocation, invocations_in, named_file, repository_invocations
from trainlint.repository.shell import Word
from trainlint.repository.stated import Pinned, pinned
from trainlint.training.declarations import declarations
from trainlint.training.limits import Data, Limit, data_of, grouped, told
from trainlint.training.pydantic_types import as_boolean, as_number

if TYPE_CHECKING:
    from trainlint.findings import Finding
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
    """A `soup.yaml` as one release reads it: with defaults, and with values in the types of their fields.

    A value that Soup refuses, and a key that is misspelt where Soup refuses it, count as unknown: what rests on them is
    no mistake of its own.
    """

    def __init__(self, field: Field, facts: SoupFacts) -> None:
        self.field = field
        self.facts = facts
        self._known: dict[str, Data] = {}

    def place(self, name: str) -> Field:
        """Where a setting is written (`training.lora.r`); a top-level `lora` counts as that of `training`."""
        keys = name.removeprefix("changed.").split(".")
        if keys[:2] == ["training", "lora"] and self.field.at("training", "lora").node is None:
            lora = self.field.get("lora")
            if lora.node is not None:
                return lora.at(*keys[2:])
        if len(keys) == 1 and keys[0] in DERIVED_AT:
            return self.place(DERIVED_AT[keys[0]])
        return self.field.at(*keys)

    def data(self, name: str) -> Data:
        """The value of a setting as Soup reads it; its default where it is absent, None where no release has it."""
        if name not in self._known:
            self._known[name] = self._data(name)
        return self._known[name]

    def setting(self, name: str) -> Value[Plain]:
        """The value of a setting at its place."""
        place, data = self.place(name), self.data(name)
        if data is None:
            return Absent(place)
        return Known(place, data) if isinstance(data, (str, bool, int, float)) else Unknown(place)

    @property
    def written_quantization(self) -> Data:
        """The quantization before a `load_in_` switch decides."""
        return UNKNOWN if "training.quantization" in self.refused else self._plainly("training.quantization")

    def is_listed(self, name: str) -> bool:
        """The setting is a list."""
        return isinstance(self.data(name), list)

    def declares(self, name: str) -> bool:
        """The release has this setting."""
        return self._spec(name) is not None

    @cached_property
    def refused(self) -> frozenset[str]:
        """The settings with a value or a key that Soup refuses."""
        places = [refusal.place for refusal in wrong_types(self)]
        places += [wrong.place for wrong in (*wrong_texts(self), *wrong_collections(self)) if wrong.certain]
        found = {".".join(str(step) for step in place.path) for place in places}
        if self.facts.staged_field is Severity.ERROR:
            found.update(self.staged)
        if self.facts.unknown_key is Severity.ERROR:
            found.update(meant for _, _, meant in unknown_keys(self) if meant)
        return frozenset(
            name.replace("lora", "training.lora", 1) if name.startswith("lora") else name for name in found
        )

    def is_other(self, name: str) -> bool:
        """The setting is written and differs from its default, whatever its kind."""
        place, spec, found = self.place(name), self._spec(name), self.data(name)
        return place.node is not None and spec is not None and found is not UNKNOWN and found != spec.default

    @cached_property
    def _refusals(self) -> list[list[Limit]]:
        """The limits that hold, those of one mistake together."""
        return grouped((limit for some in self.facts.limits.values() for limit in some), self)

    def refusals(self, section: str) -> Iterator[Finding]:
        """A finding for each mistake whose first limit is in this section of limits.txt; the others are related."""
        for first, *others in self._refusals:
            if first in self.facts.limits[section]:
                yield told(first, self, others)

    @cached_property
    def staged(self) -> Sequence[str]:
        """The settings that nothing reads yet, and that differ from their default."""
        given = [name for name in self.facts.staged if self.place(name).node is not None]
        known = [(name, self._plainly(name)) for name in given if not self.place(name).is_unknown]
        return [name for name, data in known if data not in (None, UNKNOWN, self.facts.staged[name].default)]

    def _data(self, name: str) -> Data:
        if name in DERIVED:
            return DERIVED[name](self)
        if name.startswith("changed."):
            return self._is_changed(name.removeprefix("changed."))
        if any(
            wrong == name or f"{wrong}.".startswith(f"{name}.") or name.startswith(f"{wrong}.")
            for wrong in self.refused
        ):
            return UNKNOWN
        if name == "training.quantization":
            return self._quantization()
        if name == "training.lora.init_strategy" and self.place(name).node is None:
            olora = self.data("training.lora.use_olora")
            return olora if olora is UNKNOWN else "olora" if olora else self._plainly(name)
        return self._plainly(name)

    def _is_changed(self, name: str) -> Data:
        """The setting differs from its default."""
        found, spec = self.data(name), self._spec(name)
        if found is UNKNOWN or spec is None:
            return UNKNOWN if spec is not None else False
        return found != spec.default

    def _plainly(self, name: str) -> Data:
        place, spec = self.place(name), self._spec(name)
        if spec is None:
            return None
        if place.node is None:
            around = place.parent
            while around is not None:
                if around.is_unknown:
                    return UNKNOWN
                around = around.parent
            return spec.default if isinstance(spec.default, (str, bool, int, float)) else None
        # A chat template is Jinja itself: its braces are no template of the file.
        found = place.written if name == "data.chat_template" and place.written else data_of(place)
        if found in ("", [], {}) and spec.name in EMPTY_IS_NULL:
            return None
        return _converted(found, spec) if isinstance(found, (str, bool, int, float)) else found

    def _quantization(self) -> Data:
        """The quantization: by default 4bit, unless a `load_in_` switch or the task decides otherwise."""
        found = self._plainly("training.quantization")
        aliased = False
        for switch, meaning in (("training.load_in_8bit", "8bit"), ("training.load_in_16bit", "none")):
            value = self.data(switch)
            if value is UNKNOWN or value is True:
                found, aliased = UNKNOWN if value is UNKNOWN else meaning, True
        left_out = self.place("training.quantization").node is None and not aliased
        if left_out or (self.facts.bitsandbytes_dropped and found in ("4bit", "8bit")):
            task, storage = self.data("task"), self.data("training.bnb_4bit_quant_storage")
            if (task is UNKNOWN or task in self.facts.unquantized_tasks) and storage is None:
                return UNKNOWN if task is UNKNOWN else "none"
        return found

    def _spec(self, name: str) -> Spec | None:
        *sections, key = name.split(".")
        model = "SoupConfig"
        for section in sections:
            spec = self.facts.fields(model).get(section)
            model = next((kind for kind in spec.types if self.facts.fields(kind)), "") if spec else ""
        return self.facts.fields(model).get(key)


def unknown_keys(config: SoupConfig) -> Iterator[tuple[Field, str, str]]:
    """The keys that their section does not have, with the section's model, and the setting that is probably meant."""
    yield from _unknown_below(config.field, "SoupConfig", "", config.facts)
    yield from _unknown_below(config.field.get("lora"), "LoraConfig", "training.lora.", config.facts)


def _unknown_below(section: Field, table: str, path: str, facts: SoupFacts) -> Iterator[tuple[Field, str, str]]:
    fields = facts.fields(table)
    for entry in section.entries():
        if entry.name in fields:
            for kind in fields[entry.name].types:
                if facts.fields(kind):
                    yield from _unknown_below(entry, kind, f"{path}{entry.name}.", facts)
        elif path or entry.name != "lora":
            yield entry, table, _meant(entry.name, table, path, facts)


def _meant(name: str, table: str, path: str, facts: SoupFacts) -> str:
    """The setting that a key of no use probably means: of another section, or with a similar name."""
    for other, section in SECTION_OF.items():
        if other != table and name in facts.fields(other):
            return f"{section}.{name}"
    near = nearest(name, facts.fields(table))
    return f"{path}{near}" if near else ""


SECTION_OF = {"TrainingConfig": "training", "LoraConfig": "training.lora", "DataConfig": "data"}


# what limits.txt names that is no setting


def _texts(config: SoupConfig, name: str) -> list[str] | None:
    """The texts of a list, or the one text that is not a list; None where one is not known."""
    found = config.data(name)
    listed = found if isinstance(found, list) else [] if found is None else [found]
    return None if UNKNOWN in listed else [text for text in listed if isinstance(text, str)]


def _told(holds: Callable[[str], bool], name: str) -> Callable[[SoupConfig], Data]:
    """Whether something holds for the text of a setting; false for another value."""

    def told(config: SoupConfig) -> Data:
        found = config.data(name)
        return UNKNOWN if found is UNKNOWN else isinstance(found, str) and holds(found)

    return told


def _compared(holds: Callable[[float, float], bool], *names: str) -> Callable[[SoupConfig], Data]:
    """Whether something holds for the numbers of two settings; the length of a list counts as its number."""

    def compared(config: SoupConfig) -> Data:
        numbers: list[float] = []
        for name in names:
            found = config.data(name)
            if found is UNKNOWN:
                return UNKNOWN
            if isinstance(found, list):
                found = len(found)
            if not isinstance(found, (int, float)):
                return False
            numbers.append(found)
        return holds(numbers[0], numbers[1])

    return compared


def _rewards(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _main_preference(config: SoupConfig) -> Data:
    """The loss of task preference: the one that is set, or that of the greatest weight."""
    loss, weights = config.data("training.preference_loss"), config.data("training.preference_loss_weights")
    if loss is not None or not isinstance(weights, dict):
        return loss
    numbers = {name: as_number(weight) for name, weight in weights.items() if isinstance(weight, (str, int, float))}
    if len(numbers) < len(weights) or None in numbers.values():
        return UNKNOWN
    return max(numbers, key=lambda name: numbers[name] or 0, default=None)


def _frozen_reference(config: SoupConfig) -> Data:
    """The loss of task preference compares with a frozen reference."""
    weights = config.data("training.preference_loss_weights")
    if isinstance(weights, dict) and weights:
        return any(name in REFERENCE_LOSSES for name in weights)
    loss = config.data("training.preference_loss")
    return UNKNOWN if UNKNOWN in (loss, weights) else loss in REFERENCE_LOSSES


def _lora_changed(config: SoupConfig) -> Data:
    """A setting of the LoRA section differs from its default."""
    names = [f"changed.training.lora.{name}" for name in config.facts.fields("LoraConfig")]
    return UNKNOWN if config.place("training.lora").is_unknown else any(config.data(name) is True for name in names)


def _lora_variant(config: SoupConfig) -> Data:
    """The adapter is no plain LoRA."""
    lora = ("use_vera", "use_dora", "init_strategy")
    vera, dora, strategy = (config.data(f"training.lora.{name}") for name in lora)
    return UNKNOWN if UNKNOWN in (vera, dora, strategy) else bool(vera or dora or strategy not in ("random", None))


def _source_kinds(config: SoupConfig) -> set[str] | None:
    """The kinds of the entries of a list in data.train; None where it is no list or not known."""
    entries = config.data("data.train")
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        return None
    return {_source_kind(str(entry)) for entry in entries}


def _source_kind(entry: str) -> str:
    if "://" in entry:
        return "remote"
    return "local" if PurePosixPath(entry).suffix.lower() in FILE_SUFFIXES else "hub"


def _sources(holds: Callable[[set[str]], bool]) -> Callable[[SoupConfig], Data]:
    def sources(config: SoupConfig) -> Data:
        kinds = _source_kinds(config)
        return UNKNOWN if kinds is None and config.data("data.train") is UNKNOWN else kinds is not None and holds(kinds)

    return sources


def _nothing_held_out(config: SoupConfig) -> Data:
    """No row is held out, and the data cannot have rows for evaluation of its own."""
    split, form, path = (config.data(f"data.{name}") for name in ("val_split", "format", "tokenized_path"))
    entries = _texts(config, "data.train")
    if entries is None or UNKNOWN in (split, form, path):
        return UNKNOWN
    own = (form == "pre_tokenized" and path) or any(_source_kind(entry) == "hub" for entry in entries)
    return split == 0 and not own


def _signals(holds: Callable[[list[str], Data], bool]) -> Callable[[SoupConfig], Data]:
    """Whether something holds for the names in reward_hack_signals and the detector."""

    def signals(config: SoupConfig) -> Data:
        place = config.place("training.reward_hack_signals")
        names = ["info_rm"] if place.node is None else _texts(config, "training.reward_hack_signals")
        detector = config.data("training.reward_hack_detector")
        return UNKNOWN if names is None or detector is UNKNOWN else holds(names, detector)

    return signals


def _overfull(config: SoupConfig) -> Data:
    """curriculum_dynamic wants a greater share for each bucket than there is."""
    names = ("curriculum_dynamic", "curriculum_dynamic_floor", "curriculum_buckets")
    on, floor, buckets = (config.data(f"training.{name}") for name in names)
    if UNKNOWN in (on, floor, buckets):
        return UNKNOWN
    numbers = isinstance(floor, (int, float)) and isinstance(buckets, (int, float))
    return bool(on) and numbers and floor > 1 / max(buckets, 1)  # type: ignore[operator, type-var]


def _expanded_differently(config: SoupConfig) -> Data:
    return _compared(operator.ne, "training.freeze_trainable_layers", "training.expand_layers")(config)


DERIVED: Mapping[str, Callable[[SoupConfig], Data]] = {
    "written_quantization": lambda config: config.written_quantization,
    "longlora_model": _told(lambda base: bool(LONGLORA_MODEL.search(base)), "base"),
    "vision_model": _told(lambda base: bool(VISION_MODEL.search(base)), "base"),
    "kimi": _told(lambda base: base.casefold() in KIMI_K2, "base"),
    "unknown_template": _told(
        lambda text: bool(text) and "{%" not in text and "{{" not in text and text not in CHAT_TEMPLATES,
        "data.chat_template",
    ),
    "judge_rank": _told(lambda text: "judge_rank" in _rewards(text), "training.reward_fn"),
    "reward_needs_domain": _told(lambda text: "verifiable" in _rewards(text), "training.reward_fn"),
    "several_rewards": _told(lambda text: "," in text, "training.reward_fn"),
    "main_preference": _main_preference,
    "frozen_reference": _frozen_reference,
    "lora_changed": _lora_changed,
    "lora_variant": _lora_variant,
    "head_targets": lambda config: _any_of(_texts(config, "training.lora.target_modules"), ("lm_head", "embed_tokens")),
    "expanded_differently": _expanded_differently,
    "beta_bounds_swapped": _compared(operator.ge, "training.reward_hack_beta_floor", "training.reward_hack_beta_ceil"),
    "bands_swapped": _compared(operator.ge, "training.reward_hack_release_band", "training.reward_hack_trip_band"),
    "labels_miscounted": _compared(operator.ne, "training.label_names", "training.num_labels"),
    "adapters_exceeded": _compared(operator.gt, "training.mole_top_k", "training.mole_task_adapters"),
    "pixels_swapped": _compared(operator.gt, "data.image_min_pixels", "data.image_max_pixels"),
    "curriculum_overfull": _overfull,
    "several_sources": lambda config: (
        UNKNOWN if config.data("data.train") is UNKNOWN else config.is_listed("data.train")
    ),
    "mixed_sources": _sources(lambda kinds: "hub" in kinds and len(kinds) > 1),
    "hub_sources": _sources(lambda kinds: kinds == {"hub"}),
    "remote_sources": _sources(lambda kinds: "remote" in kinds and "hub" not in kinds),
    "nothing_held_out": _nothing_held_out,
    "signals_changed": _signals(lambda names, _: names != ["info_rm"]),
    "detector_signalled": _signals(lambda names, detector: detector in names),
    "foreign_signal": _signals(lambda names, detector: any(name not in (detector, *SIGNALS) for name in names)),
}
"""Words of limits.txt that are no settings."""
DERIVED_AT: Mapping[str, str] = {
    "kimi": "base",
    "unknown_template": "data.chat_template",
    "head_targets": "training.lora.target_modules",
}
"""Where those stand that a finding points at."""


def _any_of(names: list[str] | None, wanted: Sequence[str]) -> Data:
    return UNKNOWN if names is None else any(name in wanted for name in names)


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


def _command_views(invocation: Invocation, surroundings: Surroundings) -> Views:
    """A command, alone and with the nearest pins."""
    return surroundings.repository.once(
        ("soup command", invocation), lambda: list(_views_of_command(invocation, surroundings))
    )


def _views_of_command(invocation: Invocation, surroundings: Surroundings) -> Iterator[object]:
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
    repository = surroundings.repository

    def by_path() -> dict[Path, SoupFile]:
        files = surroundings.subjects("soup", SoupFile)
        return {Path(one.field.document.path).resolve(): one for one in reversed(files)}

    def found() -> SoupFile | None:
        name = SoupCommand(invocation).config.known
        file = named_file(repository, invocation, name) if name else None
        return None if file is None else repository.once("soup configs", by_path).get(file.resolve())

    return repository.once(("soup config", invocation), found)


def _near(subject: SoupFile | Invocation, surroundings: Surroundings) -> str:
    config = _config_of(subject, surroundings) if isinstance(subject, Invocation) else None
    return (config or subject).field.document.path


def _is_for(invocation: Invocation, path: str, surroundings: Surroundings) -> bool:
    """A command runs with the same release as the config in a file."""
    from trainlint.training.meant import known_releases, target

    repository, known = surroundings.repository, known_releases("soup")
    theirs, ours = (target(repository, near, known) for near in (_near(invocation, surroundings), path))
    return (theirs.versions, theirs.how) == (ours.versions, ours.how)


def _switched(value: Value[str]) -> Value[str]:
    return Absent(value.field) if value.is_("") else value


def _around(field: Field | None, key: str) -> Field | None:
    """The mapping around a step whose list is under a key."""
    steps = field.parent if field is not None else None
    return steps.parent if steps is not None and steps.name == key else None


def _converted(value: str | bool | int | float, spec: Spec) -> Plain:
    """A scalar as Soup reads it: in the type of its field, a word in its own spelling, an empty text as null."""
    kinds = [kind for kind in spec.types if kind != "None"]
    if kinds == ["bool"]:
        found = as_boolean(value)
        return value if found is None else found
    if kinds in (["int"], ["float"]):
        number = as_number(value)
        return value if number is None else int(number) if kinds == ["int"] and number.is_integer() else number
    if isinstance(value, bool) and spec.name in ("reward_hack_mitigation", "stream_recompute"):
        return "on" if value else "off"
    if isinstance(value, str) and (spec.name in FOLDED or spec.name == "optimizer"):
        return WORD_ALIASES.get(spec.name, {}).get(value.lower(), value.lower())
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
            if invocation.owner is None and _is_for(invocation, path, surroundings):
                views += _command_views(invocation, surroundings)
        return [views]

    def facts(self, release: str) -> SoupFacts:
        """The facts of one known release."""
        return facts_of(release)

    def stated_near(self, subject: SoupFile | Invocation, surroundings: Surroundings) -> str:
        """The path of the config, or of the config that a command names."""
        return _near(subject, surroundings)


PROGRAM = Soup()
