"""Sharding, where transformers differs from other programs."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Fix, Severity, Stage, did_you_mean, one_of
from trainlint.programs.transformers.arguments import Arguments
from trainlint.programs.transformers.facts import (
    FALSE_WORDS,
    FSDP2_OPTIONS,
    SAME_DTYPES,
    SHARDING_OPTIONS,
    TORCH_DTYPES,
    SwitchForm,
)
from trainlint.programs.transformers.fsdp import FsdpConfig
from trainlint.programs.transformers.json_settings import is_object_text
from trainlint.programs.transformers.rules.words import shown
from trainlint.reading import mending
from trainlint.reading.values import Value
from trainlint.releases import minor
from trainlint.rule import rule


@rule("FS230", "fsdp-word", stage=Stage.LOAD, varies="warning where the release ignores the word or the value")
def fsdp_word(arguments: Arguments) -> Iterator[Finding]:
    """`fsdp` has an unknown word, or a value of the wrong kind.

    It is a boolean, words separated by spaces (`full_shard auto_wrap`), or a list of such words: full_shard,
    shard_grad_op, no_shard, hybrid_shard, hybrid_shard_zero2, offload, auto_wrap. A text is split, and each word must
    be a member of an enumeration: a misspelt word, upper case, commas and a quoted "true" raise ValueError. Up to 5.9
    words in a list are not checked, and a wrong one is ignored without a message. `fsdp: false` raises TypeError in
    4.57, a null up to 4.56. Up to 5.9 `offload` needs a strategy, and full_shard and shard_grad_op exclude each other;
    later releases accept both without a message.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__, since 5.10 _apply_legacy_fsdp_to_config.
    """
    options, facts = arguments.options, arguments.facts
    field = options.field
    if field.boolean().is_(False) and facts.fsdp_false_refused:
        yield arguments.refused(field, f"Transformers {facts.release} cannot read fsdp: false", help="remove it")
    elif field.is_null and facts.fsdp_null_refused:
        yield arguments.refused(field, f"Transformers {facts.release} cannot read an empty fsdp", help="remove it")
    elif field.number().known is not None and not facts.reads_options_as_settings:
        yield arguments.refused(
            field, f"fsdp cannot be the number {field.written}", help="write true, or words such as full_shard"
        )
    elif field.is_mapping:
        yield arguments.warned(field, "fsdp cannot be a mapping", help="write its settings in fsdp_config", at_key=True)
    mended = _fsdp_words(arguments)
    for word in options.words:
        yield from _fsdp_word(arguments, word, mended)
    if not facts.reads_options_as_settings:
        yield from _option_clash(arguments)


def _fsdp_word(arguments: Arguments, word: Value[str], mended: Fix | None) -> Iterator[Finding]:
    text, options = word.known, arguments.facts.options
    if text in options or word.unknown:
        return
    folded = (text or "").lower()
    new = arguments.facts.reads_options_as_settings
    if folded in SHARDING_OPTIONS and (new or arguments.options.field.is_sequence):
        return
    if text is None and not new and arguments.config and arguments.config.switch("xla").known:
        return
    help = did_you_mean(folded, options) or f"write {one_of(options, 7)}"
    if "," in folded:
        help = "put spaces between the words, or write a list"
    elif folded in ("true", "false"):
        help = f"write {folded} without quotes"
    message = f'unknown word "{word.field.written if text is None else text}" in fsdp'
    if text is not None and arguments.options.field.is_sequence and not new:
        yield arguments.warned(word, f"{message} is ignored", help=help, stage=Stage.RUN)
    else:
        yield arguments.refused(word, message, help=help, fix=mended)


def _fsdp_words(arguments: Arguments) -> Fix | None:
    """The words of `fsdp` in lower case and with spaces between them, or the boolean without quotes."""
    field, options = arguments.options.field, arguments.facts.options
    text = field.text().known
    if text is None:
        return None
    if text.lower() in ("true", "false"):
        return mending.written(field, text.lower())
    words = text.lower().replace(",", " ").split()
    return mending.worded(field, " ".join(words)) if set(words) <= set(options) else None


def _option_clash(arguments: Arguments) -> Iterator[Finding]:
    options = arguments.options
    words = {word.known for word in options.words}
    if words == {"offload"}:
        yield arguments.refused(
            options.field, "offload in fsdp needs a sharding strategy", help="write full_shard offload"
        )
    elif {"full_shard", "shard_grad_op"} <= words:
        yield arguments.refused(
            options.field, "full_shard and shard_grad_op in fsdp exclude each other", help="keep one of them"
        )


@rule("FS231", "fsdp1-strategy", stage=Stage.START)
def fsdp1_strategy(arguments: Arguments) -> Iterator[Finding]:
    """`fsdp` names a strategy that FSDP2 does not have.

    Since 5.10 FSDP2 runs unless `fsdp_config` has `version: 1`. It has full_shard and shard_grad_op, in lower case;
    no_shard and the hybrid strategies raise ValueError.

    Set `version: 1` as long as FSDP1 exists, or use one of the two.

    Source: transformers 5.10 to 5.24, TrainingArguments._apply_legacy_fsdp_to_config.
    """
    config = arguments.config
    version = config.runs_version if config else arguments.facts.default_fsdp_version
    if not arguments.facts.reads_options_as_settings or version != 2:
        return
    for word in arguments.options.words:
        if (word.known or "").lower() in SHARDING_OPTIONS and word.known not in FSDP2_OPTIONS:
            lower = str(word).lower()
            help = f"write {lower}" if lower in FSDP2_OPTIONS else "set version: 1 in fsdp_config, or write full_shard"
            fix = mending.worded(word, lower) if lower in FSDP2_OPTIONS and word.field.written == str(word) else None
            yield arguments.refused(word, f"FSDP2 has no strategy {word}", help=help, fix=fix)


@rule("FS232", "fsdp-strategy-not-run", stage=Stage.RUN, severity=Severity.WARNING)
def fsdp_strategy_not_run(arguments: Arguments) -> Iterator[Finding]:
    """The strategy in `fsdp` is not the one that runs.

    Since 5.4 the strategy is passed to accelerate as reshard-after-forward. Under FSDP1 (`version: 1`) accelerate does
    not read that: every strategy runs as FULL_SHARD, so shard_grad_op gathers the parameters again in backward,
    no_shard shards, and the hybrid strategies span all machines. From 5.0 to 5.3 FSDP2 (`version: 2`) does not read
    `fsdp`: parameters stay gathered after forward, also with full_shard, unless `reshard_after_forward` is true.
    Nothing is printed.

    Set the strategy in the accelerate config, or `reshard_after_forward`.

    Source: transformers 5.0 to 5.24, TrainingArguments._process_fsdp_args; accelerate 1.6 to 1.15.
    """
    config, facts = arguments.config, arguments.facts
    strategy = arguments.options.strategy
    version = config.runs_version if config else facts.default_fsdp_version
    reshard = config.read("reshard_after_forward") if config else None
    if strategy.known is None or (reshard is not None and not reshard.is_absent):
        return
    if version == 1 and facts.strategy_is_reshard and strategy.known.lower() != "full_shard":
        lower = strategy.known.lower()
        elsewhere = f"set fsdp_sharding_strategy: {lower.upper()} in the accelerate config"
        help = "set version: 2 in fsdp_config" if lower in FSDP2_OPTIONS else elsewhere
        yield arguments.warned(strategy, f"{strategy} runs as full_shard under FSDP1", help=help)
    elif version == 2 and facts.fsdp2_ignores_strategy and strategy.is_("full_shard"):
        yield arguments.warned(
            strategy,
            "full_shard keeps the parameters after forward",
            help="add reshard_after_forward: true to fsdp_config",
        )


@rule("FS233", "fsdp-wraps-nothing", stage=Stage.RUN, severity=Severity.WARNING)
def fsdp_wraps_nothing(arguments: Arguments) -> Iterator[Finding]:
    """The model is one FSDP unit, or is not wrapped by the given size.

    Up to 5.9 the model is wrapped only if `fsdp` has auto_wrap; without it every process gathers all parameters at
    once, and the layer classes or the size in `fsdp_config` are not used. From 5.10 on the model is always wrapped by
    its layer classes; `min_num_params` is only used with `auto_wrap_policy: SIZE_BASED_WRAP`. Nothing is printed.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__ and _process_fsdp_args.
    """
    options, config = arguments.options, arguments.config
    if not options.on.is_(True) or not arguments.whole or (config and config.switch("xla").known):
        return
    if config and config.runs_version == 2 and config.switch("activation_checkpointing").is_(True):
        return  # FS013
    if arguments.facts.reads_options_as_settings:
        if config and config.has_size and not config.get("auto_wrap_policy").text().is_("SIZE_BASED_WRAP"):
            yield arguments.warned(
                config.min_num_params,
                f"{config.min_num_params.name} is not used: the model is wrapped by its layer classes",
                help="add auto_wrap_policy: SIZE_BASED_WRAP",
            )
    elif options.given("auto_wrap") is not None:
        if not arguments.facts.auto_wrap_asks_model and not arguments.wraps:
            yield arguments.warned(
                options.field,
                "auto_wrap wraps nothing without layer classes or a size",
                help="add fsdp_transformer_layer_cls_to_wrap to fsdp_config",
            )
    elif options.strategy.known or options.field.boolean().is_(True):
        yield arguments.warned(
            options.field,
            "without auto_wrap in fsdp the model is one FSDP unit",
            help="add auto_wrap to fsdp" if options.words else "write fsdp: full_shard auto_wrap",
        )


@rule("FS234", "fsdp-config-form", stage=Stage.LOAD)
def fsdp_config_form(arguments: Arguments) -> Iterator[Finding]:
    """`fsdp_config` is not a mapping, a JSON object or the name of a JSON file.

    A text that begins with a brace is parsed as JSON (since 4.40), any other text is opened as a file; anything else
    has no get() and raises AttributeError. Up to 5.9 this also happens without `fsdp`. Up to 4.39 a JSON object as text
    is read as the name of a file, also in `deepspeed`.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__ and _process_fsdp_args.
    """
    field = arguments.get("fsdp_config")
    read = arguments.options.on.is_(True) or not arguments.facts.reads_options_as_settings
    scalar = field.scalar()
    for text in (field, arguments.get("deepspeed")):
        if is_object_text(text) and not arguments.facts.texts_parsed:
            message = f"Transformers {minor(arguments.facts.release)} reads {text.name} as the name of a file"
            yield arguments.refused(text, message, help="write its keys below it, or name a JSON file")
    if read and (field.is_sequence or (scalar.known is not None and not isinstance(scalar.known, str))):
        yield arguments.refused(
            field, "fsdp_config must be a mapping", help="write its settings below it as keys", at_key=True
        )


@rule("FS235", "fsdp-config-value", stage=Stage.LOAD, varies="warning where the value only counts as true")
def fsdp_config_value(arguments: Arguments) -> Iterator[Finding]:
    """A value of `fsdp_config` has a type that the release refuses or misreads.

    `min_num_params` is compared with 0: text such as `1e6`, which PyYAML does not read as a number, and a null raise
    TypeError up to 5.9, even without `fsdp`; a size together with layer classes raises ValueError there and is ignored
    later. Some switches only have to be non-empty: `activation_checkpointing: "false"` and `limit_all_gathers: "false"`
    are on up to 5.9, `cpu_offload`, `xla` and the like in every release. From 4.32 to 4.40 `forward_prefetch`,
    `sync_module_states` and `use_orig_params` are put into the environment as they are, where a YAML boolean raises
    TypeError: quote it. Under FSDP1 (since 5.0) `reshard_after_forward` is the name of a strategy. The dtypes of
    `xla_fsdp_settings` are looked up in torch.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__ and _process_fsdp_args; Trainer.
    """
    config, on = arguments.config, arguments.options.on.is_(True)
    yield from _size(arguments, on)
    if config is None or not on:
        return
    if config.switch("xla").is_(True):
        yield from _xla_dtypes(arguments, config)
    else:
        yield from _reshard_word(arguments, config)
    yield from _switches(arguments, config)


def _size(arguments: Arguments, on: bool) -> Iterator[Finding]:
    config = arguments.config
    if arguments.facts.reads_options_as_settings:
        return
    if config:
        size = config.min_num_params
        if size.node is not None and not size.is_unknown and not isinstance(size.plain, (int, float)):
            message = f"{size.name} must be a number, not {shown(size)}"
            fix = mending.whole(size)
            yield arguments.refused(size, message, help="write the digits out, such as 100000000", fix=fix)
    sizes = [*([config.min_num_params] if config else []), arguments.own("fsdp_min_num_params")]
    given = next((size for size in sizes if size.number().known_and(lambda number: number > 0)), None)
    own_classes = arguments.own("fsdp_transformer_layer_cls_to_wrap")
    has_own = own_classes.node is not None and not own_classes.is_null
    if on and given and ((config and config.has_classes) or has_own):
        message = f"{given.name} and transformer_layer_cls_to_wrap exclude each other"
        classes = [*([config.read("transformer_layer_cls_to_wrap")] if config else []), own_classes]
        related = tuple(place for field in classes for place in field.as_other_half)
        yield arguments.refused(given, message, help="keep one of them", related=related, at_key=True)


def _switches(arguments: Arguments, config: FsdpConfig) -> Iterator[Finding]:
    for key in sorted(arguments.facts.fsdp_keys):
        field = config.read(key)
        form = arguments.facts.switch_form(key, config.runs_version)
        text = field.text().known
        if form is SwitchForm.TRUTH and text and text.lower() in FALSE_WORDS and not config.json:
            yield arguments.warned(
                field,
                f'{field.name} is the text "{text}", which counts as true',
                help="write false, without quotes",
                stage=Stage.RUN,
                fix=mending.written(field, "false"),
            )
        elif (
            form is SwitchForm.TEXT
            and text is None
            and not (field.node is None or field.is_unknown or config.switch("xla").known)
        ):
            word = "true" if field.boolean().is_(True) else "false"
            message = f"{field.name} must be text in Transformers {minor(arguments.facts.release)}"
            fix = mending.written(field, f'"{word}"') if field.boolean().known is not None else None
            yield arguments.refused(field, message, help=f'write "{word}", in quotes', fix=fix)


def _reshard_word(arguments: Arguments, config: FsdpConfig) -> Iterator[Finding]:
    field = config.read("reshard_after_forward")
    word = field.written.lower()
    if config.runs_version != 1 or field.node is None or field.is_unknown or field.boolean().known is not None:
        return
    if word not in SHARDING_OPTIONS and word not in ("1", "2", "3", "4", "5"):
        hint = did_you_mean(word, SHARDING_OPTIONS) or f"write {one_of(SHARDING_OPTIONS)}"
        fix = mending.respelled(field, SHARDING_OPTIONS)
        yield arguments.refused(field, f"{field.name} cannot be {shown(field)}", help=hint, fix=fix)


def _xla_dtypes(arguments: Arguments, config: FsdpConfig) -> Iterator[Finding]:
    settings = config.read("xla_fsdp_settings")
    for key in ("compute_dtype", "buffer_dtype"):
        dtype = settings.get(key).text()
        if dtype.known_and_not_in(TORCH_DTYPES):
            hint = did_you_mean(str(dtype), TORCH_DTYPES) or f"write {one_of(sorted(TORCH_DTYPES))}"
            same = SAME_DTYPES.get(str(dtype).lower())
            fix = mending.worded(dtype, same) if same else mending.respelled(dtype, TORCH_DTYPES)
            yield arguments.refused(dtype, f"torch has no dtype {dtype}", help=hint, fix=fix)


@rule("FS236", "cpu-under-fsdp", stage=Stage.RUN, severity=Severity.WARNING)
def cpu_under_fsdp(arguments: Arguments) -> Iterator[Finding]:
    """`use_cpu` turns FSDP off.

    On CPUs accelerate runs plain data parallelism, whatever `fsdp` says: every process holds the whole model, and
    nothing is printed.

    Remove one of the two.

    Source: transformers 4.31 to 5.24 with accelerate, the state of eight processes on the CPU.
    """
    for name in ("use_cpu", "no_cuda"):
        if name in arguments.facts.fields and arguments.switch(name).is_(True) and arguments.options.on.is_(True):
            yield arguments.warned(arguments.get(name), f"{name} turns FSDP off", help=f"remove {name}, or fsdp")


@rule("FS237", "checkpointing-gathers-twice", stage=Stage.RUN, severity=Severity.WARNING)
def checkpointing_gathers_twice(arguments: Arguments) -> Iterator[Finding]:
    """The Trainer's gradient checkpointing under FSDP gathers the parameters once more in backward.

    It works, but is slower than FSDP's own: recomputing a layer gathers its parameters again. The Trainer warns of it
    since 4.43, up to 5.9 for full_shard and hybrid_shard, later for every strategy.

    Set `activation_checkpointing: true` in `fsdp_config` instead.

    Source: transformers 4.43 to 5.24, TrainingArguments; transformers#30404.
    """
    facts, options, config = arguments.facts, arguments.options, arguments.config
    told = facts.reads_options_as_settings or options.field.boolean().is_(True)
    told = told or options.given("full_shard", "hybrid_shard") is not None
    both = config is not None and config.switch("activation_checkpointing").known
    if not (facts.checkpointing_told and options.on.is_(True) and told) or both or not arguments.whole:
        return
    name = arguments.checkpointing_name
    if arguments.switch(name).is_(True):
        yield arguments.warned(
            arguments.get(name),
            f"{name} gathers parameters twice under FSDP",
            help="set activation_checkpointing: true in fsdp_config instead",
        )
