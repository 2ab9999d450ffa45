"""How training arguments shard the model, in the words of training/fsdp.py."""

from __future__ import annotations

from trainlint.programs.transformers.arguments import Arguments
from trainlint.programs.transformers.facts import FALSE_WORDS, TRUE_WORDS, ArgumentFacts
from trainlint.programs.transformers.fsdp import FsdpConfig
from trainlint.reading.values import Absent, Known, Unknown, Value, WrongType
from trainlint.records import replace
from trainlint.training.fsdp import STATE_DICT_TYPES, FsdpSetup, Training, nothing


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


def training(arguments: Arguments) -> Training:
    """Training arguments that interact with sharding."""
    checkpointing = arguments.switch(arguments.checkpointing_name)
    if checkpointing.absent and arguments.checkpoints_gradients:
        config = arguments.config
        place = config.get("activation_checkpointing") if config else arguments.field
        checkpointing = Known(place if place.node is not None else arguments.field, True)
    deepspeed = arguments.get("deepspeed")
    has_deepspeed = arguments.has("deepspeed") and not deepspeed.is_absent and not deepspeed.text().is_("")
    return Training(
        arguments=arguments.field,
        gradient_checkpointing=checkpointing,
        save_only_model=arguments.switch("save_only_model"),
        load_best_model_at_end=arguments.switch("load_best_model_at_end"),
        auto_find_batch_size=arguments.switch("auto_find_batch_size"),
        optimizer=arguments.get("optim").text(),
        deepspeed=Known(deepspeed, deepspeed.written) if has_deepspeed else nothing(),
    )
