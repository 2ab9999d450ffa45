"""The FSDP settings among training arguments: `fsdp` and `fsdp_config`, and what they mean together."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from trainlint.programs.transformers.facts import (
    FALSE_WORDS,
    SHARDING_OPTIONS,
    TRUE_WORDS,
    ArgumentFacts,
    SwitchForm,
)
from trainlint.reading.document import Scalar
from trainlint.reading.values import Absent, Field, Known, Unknown, Value, WrongType
from trainlint.training.fsdp import STATE_DICT_TYPES, FsdpSetup

if TYPE_CHECKING:
    from trainlint.programs.transformers.program import Arguments


class FsdpOptions:
    """The argument `fsdp`: words separated by spaces, a list of words, or a boolean."""

    def __init__(self, field: Field) -> None:
        self.field = field

    @cached_property
    def words(self) -> list[Value[str]]:
        """The words, each at its place."""
        if self.field.is_sequence:
            return [item.text() for item in self.field.items()]
        text = self.field.text().known
        return [Known(self.field, word) for word in text.split()] if text is not None else []

    def given(self, *names: str) -> Value[str] | None:
        """The last word that is one of these."""
        return next((word for word in reversed(self.words) if word.is_(*names)), None)

    @property
    def on(self) -> Value[bool]:
        """FSDP is on."""
        if self.field.is_unknown or any(word.unknown for word in self.words):
            return Unknown(self.field)
        if self.field.node is None:
            return Absent(self.field)
        plain = self.field.plain
        return Known(self.field, bool(self.words) if plain is None or isinstance(plain, str) else bool(plain))

    @property
    def strategy(self) -> Value[str]:
        """The last word that is a sharding strategy, as written."""
        strategies = (word for word in reversed(self.words) if (word.known or "").lower() in SHARDING_OPTIONS)
        return next(strategies, Absent(self.field))


class FsdpConfig:
    """The argument `fsdp_config`: a mapping, a JSON object as text, or the content of a JSON file.

    `field` is that mapping.
    """

    def __init__(self, field: Field, facts: ArgumentFacts, *, json: bool = False) -> None:
        self.field = field
        self.facts = facts
        self.json = json

    def get(self, key: str) -> Field:
        """The field of a key; where the prefix is stripped, a key with the prefix wins."""
        stripped = self.facts.fsdp_prefix or (self.json and self.facts.prefix_stripped_in_files)
        name, prefixed = self.facts.fsdp_names.get(key, key), self.field.get(f"fsdp_{key}")
        if stripped and name.startswith("fsdp_"):
            return self.field.get("")
        return prefixed if stripped and prefixed.node is not None else self.field.get(name)

    def read(self, key: str) -> Field:
        """The field of a key if the release reads the key, else an absent one."""
        return self.get(key) if key in self.facts.fsdp_keys else self.field.get("")

    @cached_property
    def version(self) -> Value[int]:
        """The FSDP version, as int() reads it."""
        field = self.get("version")
        plain = field.plain
        if field.node is None or field.is_unknown:
            return field.integer()
        try:
            return Known(field, int(plain)) if plain is not None else WrongType(field)
        except (ValueError, OverflowError):
            return WrongType(field)

    @property
    def runs_version(self) -> int | None:
        """The FSDP version that runs; None where it is not known or does not exist."""
        if "version" not in self.facts.fsdp_keys or self.version.absent:
            return self.facts.default_fsdp_version
        return self.version.known if self.version.is_(1, 2) else None

    def switch(self, key: str) -> Value[bool]:
        """A switch as the release reads it; WrongType where it raises."""
        field = self.read(key)
        form = self.facts.switch_form(key, self.runs_version)
        if field.node is None or field.is_unknown or form is None:
            return field.boolean()
        if form is SwitchForm.TRUTH:
            return Known(field, bool(field.plain) if isinstance(field.target, Scalar) else not _is_empty(field))
        word = str(field.plain).lower() if isinstance(field.target, Scalar) else ""
        if form is SwitchForm.TEXT and not isinstance(field.plain, str):
            return Unknown(field)
        return Known(field, word in TRUE_WORDS) if word in TRUE_WORDS | FALSE_WORDS else WrongType(field)

    @property
    def min_num_params(self) -> Field:
        """The size for the wrap policy."""
        return self.read("min_num_params")

    @property
    def has_size(self) -> bool:
        """A size above 0 is given."""
        return self.min_num_params.number().known_and(lambda number: number > 0)

    @property
    def has_classes(self) -> bool:
        """Layer classes are given."""
        return not self.read("transformer_layer_cls_to_wrap").is_absent

    @property
    def layer_classes(self) -> Value[list[str]]:
        """The layer classes; WrongType, at the item, where one is not a class name."""
        field = self.read("transformer_layer_cls_to_wrap")
        names: list[str] = []
        for item in field.items() if field.is_sequence else [field]:
            text = item.text()
            if text.known is None:
                return text.map(lambda name: [name])
            if any(not name or name == "None" or " " in name or "." in name for name in text.known.split(",")):
                return WrongType(item)
            names += text.known.split(",")
        return Known(field, names)


def _is_empty(field: Field) -> bool:
    return not field.items() and not list(field.entries())


def fsdp_setup(arguments: Arguments) -> FsdpSetup | None:
    """How the arguments shard the model; None where they do not, where that is not known, or where torch_xla does."""
    options, facts = arguments.options, arguments.facts
    config = arguments.config or FsdpConfig(arguments.field.get("fsdp_config"), facts)
    if not arguments.whole or options.on.known is False or config.switch("xla").known:
        return None
    deepspeed = arguments.get("deepspeed")
    absent = options.on.absent
    if absent and not config.field.is_mapping:
        return None
    setup = FsdpSetup(
        facts=facts.fsdp,
        switch=options.field,
        section=config.field,
        sharding=Known(config.field, False) if absent else options.on,
        version=config.version,
        strategy=options.strategy.map(str.upper),
        reshard=_reshard(config),
        wrap_policy=_wrap_policy(arguments, config),
        layer_classes=config.layer_classes,
        min_num_params=_size(config),
        backward_prefetch=_prefetch(config),
        forward_prefetch=config.switch("forward_prefetch"),
        use_orig_params=config.switch("use_orig_params"),
        limit_all_gathers=config.switch("limit_all_gathers"),
        sync_module_states=_exact(config.switch("sync_module_states"), facts),
        ram_efficient_loading=_exact(config.switch("cpu_ram_efficient_loading"), facts),
        state_dict_type=_state_dict_type(config),
        offload=config.switch("cpu_offload"),
        activation_checkpointing=config.switch("activation_checkpointing"),
    )
    return setup if deepspeed.is_absent or deepspeed.text().is_("") else replace(setup, deepspeed=deepspeed)


def _reshard(config: FsdpConfig) -> Value[bool | str]:
    """A boolean or a word for one, else the text of the value."""
    field = config.read("reshard_after_forward")
    plain = field.plain
    if field.node is None or field.is_unknown:
        return Unknown(field) if field.is_unknown else Absent(field)
    if isinstance(plain, bool):
        return Known(field, plain)
    word = str(plain).lower()
    switch = word in TRUE_WORDS | FALSE_WORDS and config.runs_version == 2
    return Known(field, word in TRUE_WORDS) if switch else Known(field, word)


def _wrap_policy(arguments: Arguments, config: FsdpConfig) -> Value[str]:
    """The wrap policy: up to 5.9 it follows from `auto_wrap` and a size, later it is a key with a default."""
    if arguments.facts.reads_options_as_settings:
        policy = config.read("auto_wrap_policy")
        return WrongType(policy) if policy.is_null else policy.text().or_when_absent("TRANSFORMER_BASED_WRAP")
    wrap = arguments.options.given("auto_wrap")
    if wrap is None:
        return Absent(arguments.options.field)
    return Known(wrap.field, "SIZE_BASED_WRAP" if config.has_size else "TRANSFORMER_BASED_WRAP")


def _prefetch(config: FsdpConfig) -> Value[str]:
    field = config.read("backward_prefetch")
    return (
        WrongType(field) if field.is_null else field.text().map(lambda word: _PREFETCH_NUMBERS.get(word, word.upper()))
    )


def _size(config: FsdpConfig) -> Value[int]:
    """The size; accelerate refuses a float or a null."""
    field = config.min_num_params
    return WrongType(field) if field.is_null or isinstance(field.plain, float) else field.integer()


def _state_dict_type(config: FsdpConfig) -> Value[str]:
    """The word, or the one that a number in quotes stands for; anything but text is not looked up."""
    text = config.read("state_dict_type").text()
    numbers = {str(number): word for number, word in enumerate(STATE_DICT_TYPES, 1)}
    return Unknown(text.field) if text.wrong_type else text.map(lambda word: numbers.get(word, word.upper()))


_PREFETCH_NUMBERS = {"1": "BACKWARD_PRE", "2": "BACKWARD_POST"}


def _exact(value: Value[bool], facts: ArgumentFacts) -> Value[bool]:
    """Up to 5.9 only true and false are compared; accelerate resolves the conflict for other words."""
    if facts.reads_options_as_settings or str(value.field.plain).lower() in ("true", "false"):
        return value
    return Unknown(value.field) if value.known is not None else value
