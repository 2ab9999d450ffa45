"""Axolotl: its configuration files, as a release reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from trainlint.findings import Severity, Stage
from trainlint.programs import FileReader, WheelProgram
from trainlint.programs.axolotl.facts import (
    ATTENTION_FLAGS,
    PACKING_ATTENTIONS,
    PLUGINS,
    SHADOWED,
    AxolotlFacts,
    facts_of,
)
from trainlint.reading.document import Document
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import UNKNOWN, Absent, Field, Known, Unknown, Value, WrongType
from trainlint.records import NamedTuple
from trainlint.repository.invocations import Command, Invocation, invocations_naming
from trainlint.repository.python_code import OwnReader, own_reader
from trainlint.training.declarations import Spec, declarations
from trainlint.training.fsdp import STATE_DICT_TYPES, WRAP_POLICIES, FsdpFacts, FsdpSetup, Words, nothing
from trainlint.training.limits import Data, data_of, is_true
from trainlint.training.pydantic_types import Schema, as_boolean, as_number

if TYPE_CHECKING:
    from trainlint.programs import Surroundings, Views
    from trainlint.training.declarations import Json

PREFIX = "fsdp_"
CLI = Command(
    "axolotl",
    (
        *(
            ("axolotl", word)
            for word in ("train", "preprocess", "merge-lora", "merge-sharded-fsdp-weights", "evaluate")
        ),
        *((f"axolotl.cli.{word}",) for word in ("train", "preprocess", "merge_lora", "evaluate")),
        ("finetune.py",),
    ),
    r"\baxolotl\b",
)
SIGNS = ("datasets", "pretraining_dataset", "micro_batch_size", "adapter", "sequence_len")
LAUNCHER_COUNTS = {
    "num_processes": "total",
    "nproc_per_node": "each",
    "nnodes": "nodes",
    "num_machines": "nodes",
}
"""Options of accelerate launch and torchrun, with what they count."""
PLACEHOLDERS = ("auto", "default", "none", "null", "tbd", "todo", "unset")
"""Words that stand for a value which something else decides."""
UNMISTAKABLE = ("micro_batch_size", "sequence_len", "learning_rate")
"""A file with all of these, and with a kind of data, is Axolotl's even without `base_model`."""


class AxolotlFile:
    """A document that is an Axolotl configuration."""

    owns_document = True

    def __init__(self, field: Field) -> None:
        self.field = field


class Processes(NamedTuple):
    """The number of processes that a command starts, and where it says so."""

    number: int
    place: Field


class AxolotlConfig:
    """A configuration as one release reads it, before it converts the values to the types of their fields."""

    def __init__(
        self,
        field: Field,
        facts: AxolotlFacts,
        own_package: bool = False,
        overridden: frozenset[str] = frozenset(),
        reader: OwnReader | None = None,
        processes: Sequence[Processes] = (),
    ) -> None:
        self.field = field
        self.facts = facts
        self.own_package = own_package
        """The repository contains Axolotl itself, so its keys need not be those of a release."""
        self.overridden = overridden
        """Settings that a command line, or code of the repository, overrides."""
        self.reader = reader or OwnReader()
        """What the repository's own code does with the file."""
        self.processes = processes
        """How many processes each command starts that trains with the file; none where one does not say."""

    @cached_property
    def fields(self) -> Mapping[str, Spec]:
        """The fields of the configuration, with those of its plugins."""
        added = [self.model(model) for model in map(_model_of, self.plugins) if model]
        return {name: spec for fields in (*added, self.model("AxolotlInputConfig")) for name, spec in fields.items()}

    @cached_property
    def plugins(self) -> Sequence[Spec]:
        """The plugins of the release that are loaded."""
        named = [*self.facts.own_plugins, *(self.plugin_name(item) for item in self.field.get("plugins").items())]
        return [self.facts.plugins[name] for name in dict.fromkeys(named) if name in self.facts.plugins]

    @property
    def has_other_plugins(self) -> bool:
        """Plugins that do not come with Axolotl are loaded, or may be."""
        names = self.field.get("plugins")
        unknown = names.is_unknown or "plugins" in self.overridden
        return unknown or any(not self.plugin_name(item) for item in names.items())

    def plugin_name(self, item: Field) -> str:
        """The name of a plugin below axolotl.integrations; empty where it is another's, or not known."""
        written = item.text().known or ""
        name = written.replace(":", ".", 1) if self.facts.plugins_required else written
        if name.startswith(PLUGINS):
            return name.removeprefix(PLUGINS)
        first = name.partition(".")[0]
        short = self.facts.short_plugin_names and first not in SHADOWED
        return name if short and any(known.startswith(f"{first}.") for known in self.facts.plugins) else ""

    def may_be_filled(self, name: str) -> bool:
        """Code of the repository may fill in a setting; Axolotl's own, and its tests, only do so later."""
        return self.reader.fills(name, ("axolotl", "tests") if self.own_package else ())

    def may_know(self, value: Field) -> bool:
        """The file belongs to a copy of Axolotl, whose code may have added this word to those of the release."""
        word = value.text().known
        return self.own_package and word is not None and self.reader.knows_word(word)

    @property
    def converted(self) -> AxolotlConfig:
        """The configuration after the values are converted."""
        return Converted(self.field, self.facts, self.own_package, self.overridden, self.reader, self.processes)

    @property
    def schema(self) -> Schema:
        """The release's models and enums."""
        return Schema(self.model, self.enum)

    def model(self, name: str) -> Mapping[str, Spec]:
        """The fields of a model; empty for another class."""
        return declarations("axolotl").fields(name, self.facts.release) if "[" not in name else {}

    def enum(self, name: str) -> Collection[Json] | None:
        """The values of an enum of Axolotl in this release, or of the transformers that it requires."""
        own, known, table = declarations("axolotl"), declarations("transformers"), f"choices:{name}"
        if table in own.tables:
            return tuple(own.fields(table, self.facts.release))
        if table not in known.tables:
            return None
        required = own.bounds(self.facts.release).get("transformers", "")
        exact = known.in_force(required.removeprefix("==")).releases if required.startswith("==") else ()
        return known.keys_of_any(table, exact or None)

    @property
    def read_apart(self) -> tuple[str, ...]:
        """Fields that are not checked one by one; from 0.17 on the old attention flags are taken out before."""
        share = self.field.get("warmup_steps").number().known_and(lambda steps: 0 < steps < 1)
        rewritten = ("warmup_steps",) if share and self._diffusion_rewrites else ()
        flags = ATTENTION_FLAGS if self.facts.attentions else ()
        return ("datasets", "fsdp_config", *flags, *rewritten, *self.overridden)

    @property
    def _diffusion_rewrites(self) -> bool:
        """A plugin rewrites settings before they are checked."""
        old, new = self.field.get("diffusion"), self.field.get("diffusion_lm")
        plugin = self.facts.diffusion_rewrites and self.data("DiffusionPlugin") is True
        return plugin and (new.is_absent or not old.is_absent)

    def dataset_model(self, item: Field) -> str:
        """The model of an item of `datasets`."""
        rl = self.field.get("rl").text()
        if rl.is_(*self.facts.dpo_datasets):
            return "DPODataset"
        if rl.is_("kto"):
            return "KTODataset"
        synthetic = item.get("type").text().is_("_synthetic") and self.model("SyntheticDataset")
        return "SyntheticDataset" if synthetic else "SFTDataset"

    @property
    def section(self) -> Field:
        """The section `fsdp_config`."""
        return self.field.get("fsdp_config")

    def fsdp_keys(self) -> Iterator[tuple[str, Field]]:
        """The keys of fsdp_config, each with its name after the prefix is stripped."""
        for entry in self.section.entries():
            name = entry.name
            if name == "fsdp_version":
                name = "version"
            elif name.startswith(PREFIX):
                name = name.replace(PREFIX, "")
            elif not self.facts.prefix_stripped:
                continue
            yield name, entry

    def fsdp(self, name: str) -> Field:
        """A setting of fsdp_config; of two spellings the last one counts."""
        found = [entry for key, entry in self.fsdp_keys() if key == name]
        return found[-1] if found else self.section.get(name)

    def place(self, name: str) -> Field:
        """Where a setting is written."""
        if name.startswith("fsdp_config."):
            return self.fsdp(name.removeprefix("fsdp_config."))
        if name == "eval_strategy" and self.field.get(name).is_absent:
            name = "evaluation_strategy"
        if name == "context_parallel_size" and self.facts.degree_renamed and self.field.get(name).is_absent:
            name = "sequence_parallel_degree"
        return self.field.at(*name.split(".")) if name else self.field

    def data(self, name: str) -> Data:
        """The value of a setting, or a value that the release computes from several."""
        if name.partition(".")[0] in self.overridden:
            return UNKNOWN
        if name == "fsdp_version":
            return self._fsdp_version()
        if name.endswith("Plugin"):
            return self._loads(name)
        if name == "own_lora_kernels":
            return self._own_lora_kernels()
        if name.startswith("fsdp_config."):
            return _number(data_of(self.place(name))) if name.endswith("_version") else data_of(self.place(name))
        section, _, key = name.partition(".")
        value = data_of(self.field.get(section))
        if name == "metric_for_best_model" and value is None and self._diffusion_rewrites:
            return UNKNOWN
        if name == "eval_strategy" and value is None:
            return data_of(self.field.get("evaluation_strategy"))
        if not key:
            return value
        return UNKNOWN if value is UNKNOWN else value.get(key) if isinstance(value, Mapping) else None

    def _loads(self, plugin: str) -> Data:
        """A plugin of this class is loaded."""
        if any(spec.name.endswith(f".{plugin}") for spec in self.plugins):
            return True
        return UNKNOWN if self.has_other_plugins else False

    def _own_lora_kernels(self) -> Data:
        """The LoRA kernels switch themselves on: for an adapter without dropout, where no setting speaks against it."""
        kernels = [self.data(f"lora_{part}_kernel") for part in ("mlp", "qkv", "o")]
        others = [self.data(f"unsloth_lora_{part}") for part in ("mlp", "qkv", "o")]
        adapter, dropout, section = self.data("adapter"), self.data("lora_dropout"), self.data("fsdp_config")
        several = section is not None and _number(self.data("fsdp_version")) != 2
        asked = [*kernels, *others, self.data("rl"), self.data("load_in_8bit") if adapter == "lora" else None]
        if UNKNOWN in (*asked, adapter, dropout, section) or several:
            return UNKNOWN
        return (
            adapter in ("lora", "qlora") and dropout == 0 and not any(k is not None for k in kernels) and not any(asked)
        )

    @property
    def inner_version(self) -> Field:
        """The FSDP version in fsdp_config."""
        return self.fsdp("version") if self.facts.bare_version else self.section.get("fsdp_version")

    def _fsdp_version(self) -> Data:
        """The FSDP version: 1 or 2, UNKNOWN, or another value as it is written."""
        given = [data_of(self.inner_version), data_of(self.field.get("fsdp_version"))]
        if self.facts.own_version_first:
            given.reverse()
        for value in given:
            if value is UNKNOWN or value:
                return _number(value)
        return 1 if self.facts.fsdp1 else 2


def _model_of(plugin: Spec) -> str:
    return str(plugin.extra.get("args", ""))


def _number(value: Data) -> Data:
    """A version as it is compared: as a number if its text is one."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


class Converted(AxolotlConfig):
    """A configuration after validation has converted its values: with defaults, and text turned into numbers."""

    def data(self, name: str) -> Data:
        """The value of a setting, or a value that the release computes from several."""
        if name == "attention":
            return self._attention()
        if name == "packing_attention":
            attention = self._attention()
            return UNKNOWN if attention is UNKNOWN else attention in PACKING_ATTENTIONS
        if name == "staged_nf4":
            return self._staged_nf4()
        if name == "fsdp_config.cpu_ram_efficient_loading" and self._loads_own_shards():
            return False
        value = super().data(name)
        if name in self.facts.compared_as_numbers and isinstance(value, str):
            return UNKNOWN
        if value is not None and name not in self.fields and self._is_of_a_plugin(name):
            return UNKNOWN if self.has_other_plugins else None
        if name == "context_parallel_size" and "context_parallel" in self.fields:
            own = super().data("context_parallel.size")
            value = value if own is None else own
        if name == "context_parallel_size" and self.facts.degree_renamed and is_true(value) is False:
            name, value = "sequence_parallel_degree", super().data("sequence_parallel_degree")
        table, _, key = name.rpartition(".")
        fields = self.model("FSDPConfig") if table == "fsdp_config" else self.fields if not table else {}
        spec = fields.get(key)
        return value if spec is None or name == "fsdp_version" else self._converted(value, spec, self.place(name))

    def _is_of_a_plugin(self, name: str) -> bool:
        """A plugin of the release, which need not be loaded, has the field."""
        return any(name in self.model(_model_of(plugin)) for plugin in self.facts.plugins.values())

    def _converted(self, value: Data, spec: Spec, place: Field) -> Data:
        if value is None and place.is_absent and not place.is_null:
            default = spec.default
            return default if isinstance(default, (str, int, float, bool)) else None
        if isinstance(value, Mapping) and any(self.model(kind) for kind in spec.types):
            return {**value, "": True}
        if not isinstance(value, (str, int, float)) or value in spec.choices or "str" in spec.types:
            return value
        numbers = {"int", "float"} & set(spec.types)
        number = as_number(value) if numbers else None
        switch = as_boolean(value) if "bool" in spec.types and not numbers else None
        return number if number is not None else switch if switch is not None else value

    def _attention(self) -> Data:
        """attn_implementation without a revision, or the attention that the old flags choose."""
        written = super().data("attn_implementation")
        if isinstance(written, str) and written:
            return written.split(":", 1)[0].split("@", 1)[0].strip()
        flags = {flag: is_true(super(Converted, self).data(flag)) for flag in ATTENTION_FLAGS}
        if written is UNKNOWN or None in flags.values():
            return UNKNOWN
        return next((word for flag, word in ATTENTION_FLAGS.items() if flags[flag]), None)

    def _loads_own_shards(self) -> bool:
        """Tensor parallelism switches loading on the first process off, unless NF4 weights are loaded in stages."""
        size = self.data("tensor_parallel_size")
        asked = is_true(super().data("qlora_sharded_model_loading")) and is_true(super().data("load_in_4bit"))
        parallel = isinstance(size, (int, float)) and size > 1 and self.facts.tensor_parallel_loads_shards
        return parallel and not asked and super().data("nf4_backend") != "torchao"

    def _staged_nf4(self) -> Data:
        """NF4 weights are loaded in stages."""
        if self.data("nf4_backend") == "torchao":
            return True
        parts = [
            is_true(self.data(name))
            for name in ("fsdp_config", "fsdp_config.cpu_ram_efficient_loading", "load_in_4bit")
        ]
        asked = self.data("qlora_sharded_model_loading")
        if asked is None:
            adapter = self.data("adapter")
            parts.append(None if adapter is UNKNOWN else adapter == "qlora")
        else:
            parts.append(is_true(asked))
        return UNKNOWN if None in parts else all(parts)


# sharding


def fsdp_setup(config: AxolotlConfig) -> FsdpSetup:
    """How a configuration shards the model.

    Up to 0.11 the list `fsdp` switches FSDP on, from 0.12 on a non-empty `fsdp_config` too, from 0.20 on only that.

    Source: prepare_optim_env of utils/trainer.py.
    """
    facts = config.facts
    switches = ["fsdp_config"] if not facts.fsdp1 else ["fsdp", "fsdp_config"] if facts.prefix_stripped else ["fsdp"]
    on = [is_true(config.data(name)) for name in switches]
    switch = config.field.get(next((n for n, s in zip(switches, on, strict=True) if s), switches[0]))
    sharding: Value[bool] = (
        Known(switch, True) if True in on else Unknown(switch) if None in on else Known(switch, False)
    )
    deepspeed = config.field.get("deepspeed")
    classes = config.fsdp("transformer_layer_cls_to_wrap")
    return FsdpSetup(
        facts=_fsdp_facts(facts, config),
        switch=switch,
        section=config.section,
        sharding=sharding,
        version=_version(config),
        wrap_policy=_one_of(config.fsdp("auto_wrap_policy"), WRAP_POLICIES),
        layer_classes=_classes(classes),
        min_num_params=config.fsdp("min_num_params").integer(),
        backward_prefetch=_any_spelling(config, "backward_prefetch", "backward_prefetch_policy").text(),
        use_orig_params=_switch(config.fsdp("use_orig_params")),
        limit_all_gathers=_switch(config.fsdp("limit_all_gathers")),
        sync_module_states=_switch(config.fsdp("sync_module_states")),
        ram_efficient_loading=_switch(config.fsdp("cpu_ram_efficient_loading")),
        state_dict_type=_one_of(config.fsdp("state_dict_type"), STATE_DICT_TYPES),
        offload=_switch(config.fsdp("offload_params")),
        activation_checkpointing=_switch(config.fsdp("activation_checkpointing")),
        deepspeed=deepspeed if is_true(config.data("deepspeed")) else nothing().field,
    )


def _fsdp_facts(facts: AxolotlFacts, config: AxolotlConfig) -> FsdpFacts:
    model = facts.fsdp_model
    known = {PREFIX + name for name in facts.fsdp_keys} | {"fsdp_version"}
    dropped = () if facts.fsdp1 else (*facts.ignored_keys, *facts.refused_keys)
    validated = not facts.fsdp1 or is_true(config.data("fsdp"))
    sharded_alone = Words(frozenset({"FULL_STATE_DICT", "SHARDED_STATE_DICT"}), Severity.WARNING)
    return FsdpFacts(
        keys=frozenset(known | {PREFIX + name for name in dropped}),
        optional_prefix=PREFIX,
        unknown_key=None if config.own_package or not facts.prefix_stripped else Severity.WARNING,
        default_version=1 if facts.fsdp1 else 2,
        versions=(1, 2) if facts.fsdp1 else (2,),
        words={"state_dict_type": {2: sharded_alone}},
        fsdp1_only=dict.fromkeys(
            () if facts.fsdp1 else ("use_orig_params", "limit_all_gathers", "sync_module_states", "backward_prefetch"),
            Severity.WARNING,
        ),
        class_names=Severity.WARNING if model else None,
        wrap_setting_not_used=Severity.WARNING if model else None,
        section_not_used=None if facts.prefix_stripped else Severity.WARNING,
        deepspeed_beside=Severity.ERROR if validated or config.data("rl") is None else Severity.WARNING,
        trainer_stage=Stage.LOAD if validated else Stage.PREPARE,
    )


def _any_spelling(config: AxolotlConfig, *names: str) -> Field:
    return next((config.fsdp(name) for name in names if config.fsdp(name).node is not None), config.fsdp(names[0]))


def _version(config: AxolotlConfig) -> Value[int]:
    version = config.data("fsdp_version")
    written = next(
        (f for f in (config.field.get("fsdp_version"), config.inner_version) if not f.is_absent),
        config.field.get("fsdp_version"),
    )
    if version is UNKNOWN:
        return Unknown(written)
    # Before 0.20 every version but 2 runs FSDP1; from 0.20 on FS406 refuses it.
    return Known(written, 2 if version == 2 else 1) if config.facts.fsdp1 and not written.is_absent else Absent(written)


def _one_of(field: Field, words: Sequence[str]) -> Value[str]:
    """One of the words that the model accepts; other words are reported as a wrong value of the field."""
    value = field.text()
    return value if not value.known or value.is_(*words) else Unknown(field)


def _switch(field: Field) -> Value[bool]:
    value = field.scalar()
    if value.unknown or value.absent:
        return Unknown(field) if value.unknown else Absent(field)
    known = as_boolean(field.plain)
    return WrongType(field) if known is None else Known(field, known)


def _classes(field: Field) -> Value[list[str]]:
    """The layer classes as accelerate splits them; the model refuses anything but text."""
    names = field.text()
    if names.wrong_type:
        return Unknown(field)
    if names.known_and(lambda text: any(not name.isidentifier() for name in text.split(","))):
        return WrongType(field)
    return names.map(lambda text: text.split(","))


def _readings(subject: AxolotlFile, surroundings: Surroundings, *, documented: bool = False) -> Sequence[Invocation]:
    """The commands with this file, or those that a README shows."""
    document = subject.field.document
    return invocations_naming(surroundings.repository, document, CLI, _config_of, documented=documented)


def _overridden(invocations: Sequence[Invocation]) -> frozenset[str]:
    """The settings that command lines override (`--learning-rate 1e-5`)."""
    flags = (flag.name.text.lstrip("-").partition("=")[0] for command in invocations for flag in command.flags)
    return frozenset(flag.replace("-", "_").removeprefix("no_").partition(".")[0].partition("__")[0] for flag in flags)


def _replaced(field: Field, reader: OwnReader) -> frozenset[str]:
    """The settings with a word in place of a value, which code of the repository fills in before Axolotl reads them."""
    words = {entry.name: entry.text().known or "" for entry in field.entries()}
    left_open = {name: word for name, word in words.items() if word.lower() in PLACEHOLDERS}
    return frozenset(name for name, word in left_open.items() if reader.replaces_value(name, word))


def _processes(invocation: Invocation) -> Processes | None:
    """What a launcher's options say of the number of processes; None where they do not, or not clearly."""
    found: dict[str, tuple[str, Field]] = {}
    words = [*invocation.before, *invocation.words]
    for word, following in zip(words, [*words[1:], None], strict=True):
        name, equals, value = (word.known or "").replace("-", "_").lstrip("_").partition("=")
        place = word if equals else following
        if name in LAUNCHER_COUNTS and place is not None:
            found[LAUNCHER_COUNTS[name]] = (value if equals else place.known or "", place.field)
    numbers = {name: int(text) for name, (text, _) in found.items() if text.isdecimal()}
    if len(numbers) < len(found) or not {"total", "each"} & found.keys():
        return None
    if "total" in numbers:
        return Processes(numbers["total"], found["total"][1])
    return Processes(numbers["each"] * numbers.get("nodes", 1), found["each"][1])


def _config_of(invocation: Invocation) -> list[str]:
    names = (word.file_name or word.text for word in invocation.words)
    return [name for name in names if name.endswith((".yaml", ".yml"))][:1]


_OWN_SOURCE = ("src/axolotl/utils", "axolotl/utils")


class Axolotl(WheelProgram[AxolotlFile, AxolotlFacts]):
    """The program Axolotl: its configurations."""

    name = "axolotl"
    readers = (FileReader(CLI),)
    of_tables = ("FS401", "FS404", "FS405", "FS416")

    def adopt(self, document: Document) -> Sequence[AxolotlFile]:
        """A configuration, whatever keys it has."""
        return [AxolotlFile(Field.root(document, Dialect.PYYAML))]

    def recognise(self, document: Document) -> Sequence[AxolotlFile]:
        """A mapping with a `base_model` and settings to train it."""
        root = Field.root(document, Dialect.PYYAML)
        keys = {entry.name for entry in root.entries()}
        named = "base_model" in keys and not keys.isdisjoint(SIGNS)
        trains = keys.issuperset(UNMISTAKABLE) and not keys.isdisjoint(SIGNS[:2])
        if "training" not in keys and (named or trains):
            return [AxolotlFile(root)]
        return []

    def alternatives(self, subject: AxolotlFile, surroundings: Surroundings, release: str) -> Sequence[Views]:
        """The configuration as the release reads it, and how it shards the model."""
        commands = list(_readings(subject, surroundings))
        training = [command for command in commands if "train" in command.name]
        counts = [_processes(command) for command in training]
        reader = own_reader(surroundings.repository, subject.field.document.path)
        shown = commands or _readings(subject, surroundings, documented=True)
        is_open = any(command.is_open for command in shown)
        config = AxolotlConfig(
            subject.field.left_open() if is_open else subject.field,
            facts_of(release),
            surroundings.repository.holds_above(subject.field.document.path, _OWN_SOURCE),
            _overridden(shown) | _replaced(subject.field, reader),
            reader,
            [count for count in counts if count] if None not in counts else [],
        )
        return [[config, fsdp_setup(config)]]

    def facts(self, release: str) -> AxolotlFacts:
        """What one known release accepts."""
        return facts_of(release)


PROGRAM = Axolotl()
