"""The rules on DeepSpeed's config, which all programs share that hand one to it.

Each rule is written once, for `DeepSpeedConfig`; `DeepSpeedFacts` says which releases of DeepSpeed it concerns. What
accelerate says before it calls DeepSpeed is here, too, because every other program goes through accelerate.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping

from trainlint.findings import Finding, Severity, Stage, did_you_mean, one_of, some_of
from trainlint.reading import mending
from trainlint.reading.values import Field
from trainlint.rule import rule
from trainlint.training.declarations import Spec, declarations
from trainlint.training.deepspeed import (
    AUTO,
    DTYPES,
    SECTIONS,
    TOP_KEYS,
    TORCH_ADAGRAD,
    TORCH_ADAM,
    TORCH_OPTIMIZERS,
    TORCH_SCHEDULERS,
    BrokenConfig,
    DeepSpeedConfig,
    DeepSpeedFacts,
)
from trainlint.training.pydantic_types import as_number, model_refusals


@rule("FS133", "deepspeed-not-json", stage=Stage.START)
def deepspeed_not_json(config: BrokenConfig) -> Iterator[Finding]:
    """The DeepSpeed config is not JSON.

    It is read with Python's json module, which takes no comments, no comma before a closing bracket, no single quotes,
    no `True` or `None`, and no byte order mark. A key that is given twice is no error: the last one counts.

    Source: accelerate, HfDeepSpeedConfig of utils/deepspeed.py.
    """
    yield config.field.finding(
        f"the DeepSpeed config is not JSON: {config.reason}",
        help=config.help,
        stage=config.read_at,
        fix=config.fix,
    )


# what stands where


_EARLY = ("zero_optimization.offload_optimizer", "zero_optimization.offload_param", "fp16", "bf16")
"""Sections that accelerate itself looks into, by name."""
_LATE = (
    "activation_checkpointing",
    "aio",
    "autotuning",
    "checkpoint",
    "checkpoint.parallel_write",
    "comet",
    "comms_logger",
    "compile",
    "csv_monitor",
    "data_efficiency",
    "data_types",
    "flops_profiler",
    "hybrid_engine",
    "optimizer",
    "optimizer.params",
    "pipeline",
    "scheduler",
    "scheduler.params",
    "tensor_parallel",
    "tensorboard",
    "timers",
    "timers.throughput",
    "torch_autocast",
    "wandb",
    "weight_quantization",
)
"""Sections that DeepSpeed looks into."""
_OLD = (
    "amp",
    "compression_training",
    "curriculum_learning",
    "elasticity",
    "nebula",
    "progressive_layer_drop",
    "sparse_attention",
)
"""Sections of DeepSpeed before 0.19.8; their names alone are looked for, so that a null is none either."""
_MAY_BE_NULL = ("aio", "zero_optimization.offload_optimizer", "zero_optimization.offload_param", "optimizer.params")


@rule("FS134", "deepspeed-section", stage=Stage.PREPARE)
def deepspeed_section(config: DeepSpeedConfig) -> Iterator[Finding]:
    """A section of the DeepSpeed config is missing or is not a mapping.

    The config must have `zero_optimization`, and each section must be an object: `"offload_optimizer": "cpu"` was the
    form of very old releases. Remove a section that is not wanted; null stands for none in few places only.

    Source: accelerate, DeepSpeedPlugin and HfDeepSpeedConfig; deepspeed, runtime/config.py.
    """
    root, early = config.field, config.read_at
    if not root.is_mapping:
        yield root.finding("a DeepSpeed config must be an object", help="write it in braces", stage=early)
        return
    zero = root.get("zero_optimization")
    if zero.node is None:
        yield root.finding(
            "zero_optimization is missing", help='add "zero_optimization": {"stage": 2}', at_key=True, stage=early
        )
    elif not zero.is_mapping and not zero.is_unknown:
        yield _no_mapping(zero, Stage.PREPARE if zero.is_null else early)
    for name in (*_EARLY, *_LATE, *(_OLD if config.facts.old_sections else ())):
        section = config.at(name)
        # accelerate asks a null for its device where the optimizer is the script's own.
        own = name == "zero_optimization.offload_optimizer" and root.get("optimizer").node is None
        if section.is_null and own:
            yield _no_mapping(section, Stage.PREPARE)
            continue
        null = section.is_null and name in _MAY_BE_NULL
        if section.node is None or section.is_mapping or section.is_unknown or null:
            continue
        if section.plain == AUTO or (name in SECTIONS and not config.facts.model(name) and name not in _EARLY):
            continue
        if (name == "scheduler.params" and section.is_null) or (name == "torch_autocast" and not config.facts.autocast):
            continue
        yield _no_mapping(section, early if name in _EARLY else Stage.PREPARE)


def _no_mapping(section: Field, stage: Stage) -> Finding:
    device = section.plain in ("cpu", "nvme", "none") and section.name.startswith("offload")
    literal = f'{{"device": "{section.written}"}}'
    help = f"write {literal}" if device else "write its settings in braces, or remove it"
    fix = mending.written(section, literal) if device else mending.removed(section) if section.is_null else None
    return section.finding(f"{section.name} must be an object", help=help, stage=stage, fix=fix)


_WORDS: Mapping[str, tuple[str, ...]] = {
    "communication_data_type": ("fp16", "bf16", "fp32"),
    "seq_parallel_communication_data_type": ("fp16", "bf16", "fp32"),
    "checkpoint.tag_validation": ("warn", "ignore", "fail"),
    "checkpoint.writer.type": ("python", "fast", "mock"),
    "gradient_allreduce_op": ("mean", "sum"),
}
"""Settings that are words in any case."""
_SWITCHES = ("wall_clock_breakdown", "flops_profiler.enabled")
"""Switches that DeepSpeed combines with `|`, which text does not have."""
_COUNTS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")


@rule("FS135", "deepspeed-value", stage=Stage.PREPARE, follows=("FS238",))
def deepspeed_value(config: DeepSpeedConfig) -> Iterator[Finding]:
    """A setting of the DeepSpeed config has a value that DeepSpeed refuses.

    Most sections are read with pydantic: text that looks like a number is one, `5e8` is an integer, but 0.5 is none,
    and null is refused where a number or a switch is expected. Other settings are used as they are, and fail where
    DeepSpeed calculates with them: batch sizes as text when it is set up, clipping as text in the first step.

    Source: deepspeed, runtime/config.py, runtime/zero/config.py and runtime/precision_config.py.
    """
    facts = config.facts
    for name in SECTIONS:
        section = config.at(name)
        if section.is_mapping:
            fields = {key: spec for key, spec in facts.model(name).items() if key != "stage"}
            for refusal in model_refusals(section, fields, facts.schema):
                place = refusal.place
                # FS134 looks at what is offloaded; the names of leaf modules may also stand alone.
                elsewhere = place.name in ("offload_param", "offload_optimizer") and refusal.wanted == "a mapping"
                alone = place.parent is not None and place.parent.name == "leaf_module" and isinstance(place.plain, str)
                alone = alone or (place.name == "leaf_module" and place.is_null)
                spec = fields.get(place.name)
                # FS136 tells it of a name that stands beside the other one.
                alone = alone or (spec is not None and _other_name(place.parent, spec) is not None)
                if not (refusal.missing or elsewhere or alone or place.plain == AUTO):
                    yield _wrong(place, refusal.wanted, refusal.choices)
    stage = config.at("zero_optimization.stage")
    if _written(stage) and config.stage is None and stage.plain != AUTO:
        yield _wrong(stage, "0, 1, 2 or 3")
    for name in _COUNTS:
        field = config.at(name)
        number = field.is_null or isinstance(field.plain, (int, float))
        if _written(field) and not number and field.plain != AUTO:
            yield _wrong(field, "a number" + (" without quotes" if as_number(field.plain) is not None else ""))
    vocabulary = config.at("vocabulary_size")
    if _written(vocabulary) and isinstance(vocabulary.plain, str) and vocabulary.plain not in ("", AUTO):
        yield _wrong(vocabulary, "a number")
    for name in ("autotuning.results_dir", "autotuning.exps_dir"):
        field = config.at(name)
        if field.node is not None and not field.is_mapping and not field.plain and not field.is_sequence:
            yield _wrong(field, "the name of a folder")
    for name in _SWITCHES:
        field = config.at(name)
        if _written(field) and field.plain != AUTO and not isinstance(field.plain, int):
            yield _wrong(field, "true or false")
    yield from _words(config)
    yield from _loss_scale(config)
    yield from _zenflow_values(config)
    parallel = config.at("sequence_parallel_size")
    divides = config.facts.sequence_parallel_divides and config.at("data_parallel_size").node is None
    # What cannot divide counts as one process, which only the whole batch contradicts.
    divides = divides and not config.at("train_batch_size").is_absent
    known = isinstance(parallel.plain, (int, float)) and bool(parallel.plain)
    if divides and _written(parallel) and parallel.plain != AUTO and not known:
        at_key = parallel.is_mapping or parallel.is_sequence
        help = "write a number that divides the processes"
        yield parallel.finding("sequence_parallel_size must be a number, and not 0", help=help, at_key=at_key)
    clipping = config.at("gradient_clipping")
    if _written(clipping) and clipping.plain != AUTO and not isinstance(clipping.plain, (int, float)):
        yield clipping.finding(
            "gradient_clipping must be a number",
            help="write the number without quotes; 0 clips nothing",
            stage=Stage.TRAIN,
            fix=mending.numbered(clipping),
        )


def _written(field: Field) -> bool:
    return field.node is not None and not field.is_unknown


def _wrong(field: Field, wanted: str, choices: Collection[str] = ()) -> Finding:
    help = did_you_mean(field.written, choices) or f"write {wanted}"
    if choices:
        same = _SAME_DTYPE.get(field.written.lower())
        fix = mending.worded(field, same) if same and same in choices else mending.respelled(field, choices)
    elif "true or false" in wanted or "boolean" in wanted:
        fix = mending.switched(field)
    else:
        fix = mending.whole(field) if "integer" in wanted else mending.numbered(field) if "number" in wanted else None
    return field.finding(f"{field.name} must be {wanted}", help=help, fix=fix)


_SAME_DTYPE = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float": "fp32"}
"""Other names of the types of numbers."""


def _words(config: DeepSpeedConfig) -> Iterator[Finding]:
    for name, words in _WORDS.items():
        field = config.at(name)
        read = {
            "gradient_allreduce_op": config.facts.allreduce_op,
            "checkpoint.writer.type": config.facts.checkpoint_writer,
        }.get(name, True)
        null = field.is_null and name.endswith(("data_type", "writer.type"))
        if not read or null or not _written(field) or field.plain == AUTO:
            continue
        if not isinstance(field.plain, str) or field.plain.lower() not in words:
            yield _wrong(field, one_of(words), words)
    for name in ("data_types.grad_accum_dtype", *(("torch_autocast.dtype",) if config.facts.autocast else ())):
        dtype = config.at(name)
        null = dtype.is_null and name != "torch_autocast.dtype"
        if _written(dtype) and not null and dtype.plain != AUTO and dtype.plain not in DTYPES:
            yield _wrong(dtype, one_of(("fp16", "bf16", "fp32")), DTYPES)
    pipeline = config.at("checkpoint.parallel_write.pipeline_stage")
    if _written(pipeline) and pipeline.plain not in (True, False, AUTO):
        yield _wrong(pipeline, "true or false")
    for section in ("optimizer", "scheduler"):
        kind = config.at(section).get("type")
        if _written(kind) and not kind.is_null and not isinstance(kind.plain, str):
            yield _wrong(kind, f"the name of {'an optimizer' if section == 'optimizer' else 'a scheduler'}")


def _zenflow_values(config: DeepSpeedConfig) -> Iterator[Finding]:
    """What zenflow's own validator refuses."""
    section = config.at("zero_optimization.zenflow")
    if "zenflow" not in config.facts.model("zero_optimization") or not section.is_mapping:
        return
    strategy = section.get("select_strategy")
    if strategy.text().known_and_not_in((AUTO, "step", "epoch")):
        yield _wrong(strategy, "step or epoch", ("step", "epoch"))
    for name in ("select_interval", "update_interval"):
        interval = section.get(name)
        text = interval.text().known_and(lambda word: word != AUTO)
        if text or (name == "update_interval" and interval.number().known_and(lambda number: number < 1)):
            yield _wrong(interval, "a number" if text else "1 or more")


def _loss_scale(config: DeepSpeedConfig) -> Iterator[Finding]:
    """fp16's loss scale, which later releases check themselves."""
    if not config.facts.loss_scale_checked or not config.at("fp16").is_mapping:
        return
    scale = config.at("fp16.loss_scale")
    number = None if isinstance(scale.plain, bool) else as_number(scale.plain)
    if _written(scale) and scale.plain != AUTO and (number is None or not math.isfinite(number) or number < 0):
        yield _wrong(scale, "a number of at least 0 (0 is dynamic)")
        return
    if not config.facts.scale_window_checked:
        return
    dynamic = config.is_on("fp16.enabled") and (scale.node is None or number == 0)
    for name in ("loss_scale_window", "min_loss_scale"):
        field = config.at("fp16").get(name)
        if not _written(field) or field.plain == AUTO:
            continue
        number = None if isinstance(field.plain, bool) else as_number(field.plain)
        if number is None or not number.is_integer():
            yield _wrong(field, "an integer")
        elif dynamic and number <= 0:
            yield _wrong(field, "above 0 while the loss scale is dynamic")


@rule("FS136", "deepspeed-unknown-key", stage=Stage.PREPARE)
def deepspeed_unknown_key(config: DeepSpeedConfig) -> Iterator[Finding]:
    """A section of the DeepSpeed config has a key that this release does not know.

    The sections that are read with pydantic refuse other keys, also comments. That `fp16` and `bf16` do so is new in
    0.17. A few keys have two names, of which only one may be written. Keys come and go: `leaf_module` came with 0.18,
    `mics_shard_size` is gone since 0.19.8.

    Source: deepspeed, DeepSpeedConfigModel of runtime/config_utils.py and the models made of it.
    """
    for name in SECTIONS:
        model = config.facts.model(name)
        if model and config.at(name).is_mapping:
            yield from _unknown_keys(config.at(name), SECTIONS[name], model, config.facts)


def _unknown_keys(section: Field, table: str, model: Mapping[str, Spec], facts: DeepSpeedFacts) -> Iterator[Finding]:
    known = {alias: spec for spec in model.values() for alias in (spec.name, *spec.aliases)}
    gone = facts.removed_zero if table == "DeepSpeedZeroConfig" else ()
    for entry in section.entries():
        spec = known.get(entry.name)
        twice = _other_name(section, spec) if spec and spec.name == entry.name else None
        if twice is not None:
            yield entry.finding(
                f"{entry.name} stands beside {twice.name}, its other name",
                help="remove one of them",
                at_key=True,
                related=twice.relate("the other name"),
            )
        elif spec is not None:
            for kind in spec.types:
                nested = facts.schema.model(kind)
                if nested and entry.is_mapping:
                    yield from _unknown_keys(entry, kind, nested, facts)
        elif entry.name not in gone:
            yield entry.finding(
                f"DeepSpeed {facts.release} does not know {entry.name} in {section.name}",
                help=_advice(entry.name, table) or did_you_mean(entry.name, known) or "remove it",
                fix=None if _advice(entry.name, table) else mending.renamed_to_nearest(entry, known),
                at_key=True,
            )


def _other_name(section: Field | None, spec: Spec) -> Field | None:
    """The other name of a setting, where the section has that, too."""
    others = () if section is None else (section.get(alias) for alias in spec.aliases)
    return next((other for other in others if other.node is not None), None)


def _advice(name: str, table: str) -> str:
    """Help for a key that other releases have."""
    known = declarations("deepspeed")
    if name not in known.keys_of_any(table):
        return ""
    span = known.span(table, name)
    return f"remove it, or use DeepSpeed {span.since} or newer" if not span.until else "remove it"


_COMMENTS = ("comment", "comments", "description", "note", "notes")
_ELSEWHERE = {"zero_stage": "stage", "zero3_init_flag": ""}


@rule("FS137", "deepspeed-unread-key", stage=Stage.RUN, severity=Severity.WARNING)
def deepspeed_unread_key(config: DeepSpeedConfig) -> Iterator[Finding]:
    """A key of the DeepSpeed config is not read.

    Of several equal keys the last one counts. At the top DeepSpeed asks for single keys and ignores others without a
    message: with `zero_optimisation` no ZeRO setting is read, and settings of ZeRO belong into `zero_optimization`.
    Keys that look like none of DeepSpeed's, such as comments, are not reported.

    Source: deepspeed, runtime/config.py.
    """
    zero = {
        alias
        for spec in config.facts.model("zero_optimization").values()
        for alias in (spec.name, *spec.aliases)
        if alias != "zero_optimization"
    }
    for section in (config.field, *config.field.entries()):
        for entry in section.entries():
            if entry.earlier_keys:
                yield entry.finding(
                    f"{entry.name} is given twice: only this one counts",
                    help="remove one of them",
                    at_key=True,
                    related=entry.earlier_keys,
                    fix=mending.without_earlier(entry),
                )
    for entry in config.field.entries():
        inner = _ELSEWHERE.get(entry.name, entry.name)
        if entry.name in TOP_KEYS or entry.name.startswith("_") or entry.name.lower() in _COMMENTS:
            continue
        help = f"write {inner} inside zero_optimization" if inner in zero else did_you_mean(entry.name, TOP_KEYS)
        if help:
            inside = inner in zero
            section = config.field.get("zero_optimization")
            fix = mending.moved(entry, section, inner) if inside else mending.renamed_to_nearest(entry, TOP_KEYS)
            yield entry.finding(f"{entry.name} is not read here", help=help, fix=fix, at_key=True)


@rule("FS138", "deepspeed-removed", stage=Stage.PREPARE)
def deepspeed_removed(config: DeepSpeedConfig) -> Iterator[Finding]:
    """A setting is for something that this release of DeepSpeed no longer has.

    0.19.8 refuses the sections of what it dropped, such as `elasticity`, `sparse_attention`, `amp` and
    `compression_training`, also where they switch it off.

    Source: deepspeed 0.19.8, _reject_removed_config_keys of runtime/config.py.
    """
    names = {"": config.facts.removed, "zero_optimization": config.facts.removed_zero}
    for where, removed in names.items():
        section = config.at(where) if where else config.field
        for entry in section.entries():
            if entry.name in removed:
                yield entry.finding(
                    f"DeepSpeed {config.facts.release} no longer has {entry.name}",
                    help=_INSTEAD.get(entry.name, "remove it, or use an older DeepSpeed"),
                    fix=mending.removed(entry) if _is_off(entry) else None,
                    at_key=True,
                )


def _is_off(field: Field) -> bool:
    """What it is for is switched off, so it can go."""
    return field.plain is False or (field.is_mapping and field.get("enabled").plain is False)


_INSTEAD = {
    "amp": "use fp16, bf16 or torch_autocast",
    "curriculum_learning": "write it inside data_efficiency.data_sampling",
    "elasticity": "remove it, and write the batch sizes",
}


# what is filled in


@rule("FS139", "deepspeed-auto", stage=Stage.PREPARE, follows=("FS226",))
def deepspeed_auto(config: DeepSpeedConfig) -> Iterator[Finding]:
    """Nobody fills in this "auto".

    "auto" is no value of DeepSpeed: accelerate fills it in where it knows better, and refuses every other one when the
    model is prepared. It knows batch sizes, accumulation, clipping, precision, a few sizes of ZeRO 3, and of optimizer
    and scheduler what belongs to DummyOptim and DummyScheduler. transformers' Trainer also fills in `betas` and `eps`.

    Write the value, or remove the setting: DeepSpeed has a default for most.

    Source: accelerate, DeepSpeedPlugin.deepspeed_config_process and Accelerator.prepare.
    """
    yield from _autos(config.field, "", config)


def _autos(section: Field, prefix: str, config: DeepSpeedConfig) -> Iterator[Finding]:
    for entry in section.entries():
        name = prefix + entry.name
        if entry.is_mapping:
            yield from _autos(entry, name + ".", config)
        elif entry.plain == AUTO and name not in config.fills and not _gone(name, config.facts):
            yield entry.finding(f'nobody fills in "auto" for {name}', help="write a value, or remove it")


def _gone(name: str, facts: DeepSpeedFacts) -> bool:
    return name.partition(".")[0] in facts.removed or name.rpartition(".")[2] in facts.removed_zero


# batches


@rule("FS140", "deepspeed-batch", stage=Stage.PREPARE, follows=("FS238",))
def deepspeed_batch(config: DeepSpeedConfig) -> Iterator[Finding]:
    """The batch sizes of the DeepSpeed config do not fit together.

    `train_batch_size` must be `train_micro_batch_size_per_gpu` times `gradient_accumulation_steps` times the number of
    processes, divided by `sequence_parallel_size` from 0.17 on. accelerate puts 1 for an accumulation that is not
    written, so DeepSpeed does not calculate it.

    Write "auto" for two of the three.

    Source: deepspeed, DeepSpeedConfig._batch_assertion and _set_batch_related_parameters; accelerate, DeepSpeedPlugin.
    """
    total, micro, steps = (config.at(name) for name in _COUNTS)
    values = {name: config.number(name) for name in _COUNTS}
    if not config.field.is_mapping or any(_is_text(field) for field in (total, micro, steps)):
        return
    for name in _COUNTS:
        value = values[name]
        if value is not None and value <= 0 and config.at(name).plain != AUTO:
            yield config.at(name).finding(f"{name} must be above 0", help='write a number above 0, or "auto"')
            return
    if micro.is_absent and (total.is_absent or (total.plain == AUTO and not config.has_trainer)):
        yield config.field.finding(
            "train_micro_batch_size_per_gpu is missing",
            help='add "train_micro_batch_size_per_gpu": "auto"',
            at_key=True,
        )
        return
    if steps.is_null and not micro.is_absent:
        yield steps.finding("gradient_accumulation_steps cannot be null", help='write a number, or "auto"')
        return
    parts = config.number("sequence_parallel_size") if config.facts.sequence_parallel_divides else None
    if parts and parts > 1 and total.plain == AUTO and not micro.is_absent and config.processes is not None:
        yield total.finding(
            f'"auto" counts all processes, and sequence_parallel_size {parts:g} leaves fewer',
            help="remove train_batch_size: DeepSpeed then calculates it",
            related=config.at("sequence_parallel_size").relate("so many processes share a batch"),
        )
        return
    world, size, given = config.world, values["train_batch_size"], values["train_micro_batch_size_per_gpu"]
    accumulated = 1.0 if steps.is_absent else values["gradient_accumulation_steps"]
    if world is None or size is None or total.plain == AUTO or accumulated is None:
        return
    if given is not None:
        product, words = given * accumulated * world, f"{given:g} × {accumulated:g} × {world:g}"
        if product != size:
            yield total.finding(
                f"train_batch_size is {size:g}, but micro batch × accumulation × processes is {words} = {product:g}",
                help='write "auto"',
                fix=None if parts and parts > 1 else mending.written(total, '"auto"', sure=False),
                related=(*micro.relate("the micro batch"), *(steps.relate("the accumulation") if steps.node else ())),
            )
    elif size % (accumulated * world) or size < accumulated * world:
        yield total.finding(
            f"train_batch_size {size:g} is no multiple of {accumulated:g} × {world:g}, accumulation × processes",
            help='write "auto"',
            related=steps.relate("the accumulation") if steps.node else (),
        )


def _is_text(field: Field) -> bool:
    """Nothing to calculate with."""
    plain = field.plain
    return field.is_unknown or field.is_mapping or field.is_sequence or (isinstance(plain, str) and plain != AUTO)


# precision


@rule("FS141", "deepspeed-precision", stage=Stage.PREPARE, follows=("FS238",))
def deepspeed_precision(config: DeepSpeedConfig) -> Iterator[Finding]:
    """Two settings for precision exclude each other.

    fp16 and bf16 are never on together. 0.17.6 and 0.18.2 refuse torch_autocast beside either. Apex's amp does not work
    with ZeRO. Master weights in fp16 or bf16 need ZeRO.

    Source: deepspeed, runtime/config.py, runtime/torch_autocast.py and engine.py.
    """
    facts = config.facts
    half = config.at("fp16.enabled")
    brain = config.at("bf16.enabled" if config.at("bf16").node is not None else "bfloat16.enabled")
    fp16 = config.is_on("fp16.enabled") is True
    bf16 = config.is_on("bf16.enabled" if brain.parent and brain.parent.name == "bf16" else "bfloat16.enabled") is True
    if fp16 and bf16:
        yield brain.finding(
            "fp16 and bf16 cannot both be on",
            help="switch one of them off",
            related=half.relate("fp16 is on here"),
        )
    autocast = config.at("torch_autocast.enabled")
    if facts.autocast_excludes_precision and config.is_on("torch_autocast.enabled") and (fp16 or bf16):
        yield autocast.finding(
            f"torch_autocast does not work with {'fp16' if fp16 else 'bf16'}",
            help="switch one of them off",
            related=(half if fp16 else brain).relate("this precision is on"),
        )
    amp = config.at("amp.enabled")
    if "amp" not in facts.removed and amp.plain not in (AUTO, None, False) and (config.stage or 0) > 0:
        yield amp.finding("amp does not work with ZeRO", help="use fp16 or bf16", related=config.stage_place)
    for name in _LOW_PRECISION:
        allowed = (2,) if facts.master_weights_need_zero2 else (1, 2, 3)
        known = name.partition(".")[2] in facts.model(name.partition(".")[0])
        if known and config.is_on(name) and config.stage is not None and config.stage not in allowed:
            yield config.at(name).finding(
                f"{config.at(name).name} needs ZeRO {one_of(allowed)}", help=f"set stage to {allowed[-1]}, or remove it"
            )
    for name in _LOW_PRECISION[:2]:
        section, _, key = name.partition(".")
        # Up to 0.16 fp16 has no model, and is read where it is on.
        known = key in facts.model(section) or (section == "fp16" and not facts.model(section) and fp16)
        alone = not config.is_on("bf16.bf16_optimizer_states") and config.is_on(name)
        stages = (1, 2) if facts.master_weights_need_zero2 else (1, 2, 3)
        if known and alone and config.stage in stages and config.offloads_optimizer is False:
            yield config.at(name).finding(
                f"{config.at(name).name} needs the optimizer on the CPU",
                help='add "offload_optimizer": {"device": "cpu"} to zero_optimization',
            )
            return
    states = config.at("bf16.bf16_optimizer_states")
    alone = config.is_on("bf16.bf16_optimizer_states") and config.is_on("bf16.bf16_master_weights_and_grads") is False
    if alone and states.name in facts.model("bf16") and (config.stage or 0) > 0:
        yield states.finding("bf16_optimizer_states needs bf16_master_weights_and_grads", help="switch that on, too")


_LOW_PRECISION = (
    "fp16.fp16_master_weights_and_grads",
    "bf16.bf16_master_weights_and_grads",
    "bf16.bf16_optimizer_states",
)


# optimizer and scheduler


_SOMETIMES = ("Adam", "AdamW", "Adagrad", "Optimizer", "lr_scheduler", "swa_utils")
"""Names that some release of torch.optim has, and that are not looked at."""
_ONE_BIT = ("onebitadam", "onebitlamb", "zerooneadam")
_ZERO_TESTED = ("adam", "adamw", "adagrad", "lion")


@rule("FS142", "deepspeed-optimizer", stage=Stage.PREPARE, follows=("FS238",))
def deepspeed_optimizer(config: DeepSpeedConfig) -> Iterator[Finding]:
    """DeepSpeed cannot make the optimizer of its config.

    The type is one of DeepSpeed's, in any case (`adamw`, `lion`), or the exact name of a class in torch.optim. The
    parameters are the arguments of the class that is made: with the optimizer on the CPU that is DeepSpeedCPUAdam, else
    FusedAdam, so `learning_rate` or `max_grad_norm` are refused. ZeRO refuses optimizers that it was not tried with,
    unless `zero_allow_untested_optimizer` is true, and 1-bit optimizers in any case.

    Source: deepspeed, DeepSpeedEngine._configure_basic_optimizer and _do_optimizer_sanity_check.
    """
    section = config.at("optimizer")
    kind, params = section.get("type"), section.get("params")
    if not section.is_mapping or kind.is_unknown:
        return
    if kind.is_absent:
        if config.stage in (1, 2):
            yield section.finding(
                f"the optimizer has no type, and ZeRO {config.stage} needs one", help='add "type": "AdamW"'
            )
        return
    if not isinstance(kind.plain, str):
        return
    word, facts = kind.plain.lower(), config.facts
    known = {*facts.optimizers, *TORCH_OPTIMIZERS, *_SOMETIMES}
    if word not in facts.optimizers and kind.plain not in known:
        help = did_you_mean(kind.plain, known) or f"write {one_of(('Adam', 'AdamW', 'Lion', 'Adagrad'))}"
        if "adam" in word and "mini" not in word:
            help = "write AdamW: DeepSpeed itself takes its fused or CPU version"
        fix = mending.worded(kind, "AdamW") if word.startswith("adamw_torch") else mending.respelled(kind, known)
        message = f"DeepSpeed {facts.release} does not know the optimizer {kind.plain}"
        yield kind.finding(message, help=help, fix=fix)
        return
    if word in _ONE_BIT and (config.stage or 0) > 0:
        message, help = f"{kind.plain} does not work with ZeRO", "write AdamW, or set stage to 0"
        yield kind.finding(message, help=help, related=config.stage_place)
        return
    yield from _arguments(config, word, kind, params)


def _arguments(config: DeepSpeedConfig, word: str, kind: Field, params: Field) -> Iterator[Finding]:
    made, allowed = _made_optimizer(config, word, kind.written)
    for entry in params.entries():
        if entry.name == "max_grad_norm":
            yield entry.finding(
                "max_grad_norm is no parameter of a DeepSpeed optimizer",
                help="write gradient_clipping at the top",
                at_key=True,
            )
            return
        if allowed is not None and entry.name not in allowed:
            yield entry.finding(
                f"{made} does not take {entry.name}",
                help=_CALLED.get(entry.name, "") or did_you_mean(entry.name, allowed) or "remove it",
                fix=mending.advised(entry, _CALLED.get(entry.name, "")) or mending.renamed_to_nearest(entry, allowed),
                at_key=True,
                related=kind.relate("the optimizer"),
            )
            return
    amsgrad = params.get("amsgrad")
    if _is_true(amsgrad) and made.startswith(("FusedAdam", "DeepSpeedCPUAdam")):
        yield amsgrad.finding(f"{made} has no amsgrad", help='remove it, or add "torch_adam": true')
        return
    tested = word in _ZERO_TESTED or word not in {*config.facts.optimizers, *map(str.lower, TORCH_OPTIMIZERS)}
    allowed_untested = config.at("zero_allow_untested_optimizer")
    own_muon = word.startswith("mu") and word in config.facts.optimizers
    refused = allowed_untested.plain in (None, False) and not allowed_untested.is_unknown
    if refused and not tested and word not in _ONE_BIT and not own_muon and (config.stage or 0) > 0:
        yield kind.finding(
            f"ZeRO was not tried with {kind.plain}, and refuses it",
            help='add "zero_allow_untested_optimizer": true',
        )
        return
    schedule = config.at("scheduler.type")
    for name in ("lr", "weight_decay", "eps"):
        field = params.get(name)
        text = isinstance(field.plain, str) and field.plain != AUTO and not field.is_unknown
        at_key = field.is_mapping or field.is_sequence
        scheduled = name == "lr" and not schedule.is_absent
        # WarmupLR goes up to the optimizer's own rate where it names none; the others overwrite it.
        taken = scheduled and schedule.plain == "WarmupLR" and config.at("scheduler.params.warmup_max_lr").is_absent
        if (text or (taken and at_key)) and (taken or not scheduled):
            yield field.finding(
                f"{name} must be a number",
                help="write it without quotes" if text else "write a number",
                stage=Stage.PREPARE if taken else Stage.TRAIN,
                fix=mending.numbered(field) if text else None,
                at_key=at_key,
            )


_CALLED = {
    "learning_rate": "write lr",
    "beta": "write betas, a list of two",
    "beta1": "write betas, a list of two",
    "beta2": "write betas, a list of two",
    "adam_beta1": "write betas, a list of two",
    "epsilon": "write eps",
    "adam_epsilon": "write eps",
}


def _made_optimizer(config: DeepSpeedConfig, word: str, written: str) -> tuple[str, Collection[str] | None]:
    """The class that is made, and its arguments, None where they are not known."""
    on_cpu, facts = config.offloads_optimizer, config.facts
    own = {
        "adam": ("FusedAdam", "DeepSpeedCPUAdam"),
        "adamw": ("FusedAdam", "DeepSpeedCPUAdam"),
        "lion": ("FusedLion", "DeepSpeedCPULion"),
        "adagrad": ("", "DeepSpeedCPUAdagrad"),
        "lamb": ("FusedLamb", "FusedLamb"),
    }
    if word in ("adam", "adamw") and config.at("optimizer.params.torch_adam").plain not in (None, False):
        return "torch's Adam", {*TORCH_ADAM, "torch_adam", "adam_w_mode"}
    if word == "adagrad" and on_cpu is False:
        return "torch's Adagrad", TORCH_ADAGRAD
    if word in own:
        extra = {"torch_adam", "adam_w_mode"} if word.startswith("adam") else set()
        names = own[word] if on_cpu is None else (own[word][1 if on_cpu else 0],)
        taken = {argument for name in names for argument in facts.arguments(name)} | extra
        # The engine itself passes these.
        return " or ".join(names), taken - ({"adamw_mode"} if word.startswith("adam") else set())
    if word not in facts.optimizers and written in TORCH_OPTIMIZERS:
        return f"torch's {written}", TORCH_OPTIMIZERS[written].split()
    return written, None


_SCHEDULERS = ("LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR")
_NUMBERS = ("warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "total_num_steps", "warmup_min_ratio")


@rule(
    "FS143",
    "deepspeed-scheduler",
    stage=Stage.PREPARE,
    varies="warning where DeepSpeed replaces the value by a default",
    follows=("FS238",),
)
def deepspeed_scheduler(config: DeepSpeedConfig) -> Iterator[Finding]:
    """DeepSpeed cannot make the scheduler of its config.

    The type is the exact name of one of its own schedulers: LRRangeTest, OneCycle, WarmupLR, WarmupDecayLR,
    WarmupCosineLR. Each has arguments of its own, which must all be named right: WarmupCosineLR has no
    `warmup_min_lr`, and WarmupDecayLR needs `total_num_steps`. The schedulers of torch do not take the optimizer that
    ZeRO wraps. From 0.19.4 on `warmup_num_steps` must be above 0.

    Source: deepspeed, DeepSpeedEngine._scheduler_from_config and runtime/lr_schedules.py.
    """
    section, facts = config.at("scheduler"), config.facts
    kind, params = section.get("type"), section.get("params")
    if not isinstance(kind.plain, str) or kind.is_unknown:
        return
    if kind.plain not in (*_SCHEDULERS, *TORCH_SCHEDULERS):
        help = did_you_mean(kind.plain, _SCHEDULERS) or _LIKE.get(kind.plain, f"write {one_of(_SCHEDULERS)}")
        yield kind.finding(
            f"DeepSpeed does not know the scheduler {kind.plain}", help=help, fix=mending.respelled(kind, _SCHEDULERS)
        )
        return
    if params.is_absent:
        yield kind.finding(
            f"the scheduler {kind.plain} has no params",
            help='add "params": {}',
            fix=mending.written(params, "{}") if params.is_null else None,
        )
        return
    if kind.plain not in _SCHEDULERS:
        if (config.stage or 0) > 0:
            yield kind.finding(
                f"torch's {kind.plain} does not take the optimizer of ZeRO", help=f"write {one_of(_SCHEDULERS)}"
            )
        return
    arguments = facts.arguments(kind.plain)
    for entry in params.entries():
        if entry.name not in arguments:
            yield entry.finding(
                f"{kind.plain} does not take {entry.name}",
                help=did_you_mean(entry.name, arguments) or f"it takes {some_of(arguments)}",
                fix=mending.renamed_to_nearest(entry, arguments),
                at_key=True,
                related=kind.relate("the scheduler"),
            )
            return
    missing = [name for name, spec in arguments.items() if spec.required and params.get(name).node is None]
    if params.is_mapping and missing:
        yield kind.finding(f"{kind.plain} needs {some_of(missing)}", help="add it to params")
        return
    steps = params.get("warmup_num_steps")
    for name in _NUMBERS:
        field = params.get(name)
        text = isinstance(field.plain, str) and field.plain != AUTO and not field.is_unknown
        # A rate may be a list with one for each group of parameters.
        rates = name.endswith("_lr") and any(isinstance(item.plain, (int, float)) for item in field.items())
        checked = name == steps.name and facts.warmup_must_be_positive
        if text or (not checked and not rates and (field.is_mapping or field.is_sequence)):
            help = "write it without quotes" if text else "write a number"
            fix = mending.numbered(field) if text else None
            yield field.finding(f"{name} must be a number", help=help, fix=fix, at_key=not text)
    positive = isinstance(steps.plain, int) and steps.plain > 0
    text = isinstance(steps.plain, str) or steps.is_unknown
    if facts.warmup_must_be_positive and steps.node is not None and not positive and not text:
        at_key = steps.is_mapping or steps.is_sequence
        yield steps.finding("warmup_num_steps must be a positive integer", help="write 1 or more", at_key=at_key)
    warmup = params.get("warmup_type")
    if warmup.is_mapping or warmup.is_sequence:
        yield warmup.finding("warmup_type must be a word", help="write linear or log", at_key=True)
    if isinstance(warmup.plain, str) and warmup.plain not in ("log", "linear", AUTO) and not warmup.is_unknown:
        yield warmup.finding(
            f'DeepSpeed does not know the warm-up "{warmup.plain}", and takes log',
            help="write linear or log",
            severity=Severity.WARNING,
            stage=Stage.RUN,
        )


_LIKE = {
    "cosine": "write WarmupCosineLR",
    "linear": "write WarmupDecayLR",
    "constant": "write WarmupLR",
    "constant_with_warmup": "write WarmupLR",
}


# what does not go together


@rule("FS144", "deepspeed-combination", stage=Stage.PREPARE, follows=("FS135",))
def deepspeed_combination(config: DeepSpeedConfig) -> Iterator[Finding]:
    """Two settings of the DeepSpeed config exclude each other, or one needs another.

    A name of former times (`cpu_offload`) excludes the new one, also where either is false. ZeRO 3 needs a path to
    offload to NVMe, and a group for secondary parameters (`zero_hpz_partition_size`) that divides the processes. With
    reduce-scatter, which is on by default, ZeRO 2 and 3 do not scale gradients before they are reduced. Only ZeRO 3
    offloads a part of the optimizer, and ZeRO 1 and 2 align their buckets to two elements. ZenFlow under ZeRO 1 and 2
    needs the optimizer on the CPU, and its parameters in the config, and clipping needs the norm of the gradients.

    Source: deepspeed, runtime/config_utils.py, runtime/zero and utils/groups.py.
    """
    zero, stage = config.at("zero_optimization"), config.stage
    model = config.facts.model("zero_optimization")
    for name, spec in model.items():
        new = spec.extra.get("new")
        if not isinstance(new, str) or spec.extra.get("sets") is False or zero.get(name).node is None:
            continue
        names = (new, *model[new].aliases)
        other = next((zero.get(key) for key in names if zero.get(key).node is not None), None)
        if other is not None and other.plain != AUTO and zero.get(name).plain != AUTO:
            yield zero.get(name).finding(
                f"{name} is the old name of {other.name}, and cannot stand beside it",
                help="remove it",
                at_key=True,
                related=other.relate("the new name"),
                fix=mending.removed(zero.get(name), sure=zero.get(name).plain is False),
            )
    if stage == 3:
        for name in ("offload_param", "offload_optimizer"):
            device, path = zero.get(name).get("device"), zero.get(name).get("nvme_path")
            if device.plain == "nvme" and path.is_absent:
                yield device.finding(f"{name} to nvme needs nvme_path", help='add "nvme_path": "/local_nvme"')
        size = zero.get("zero_hpz_partition_size")
        ranks = config.number("zero_optimization.zero_hpz_partition_size")
        if ranks and ranks > 1 and config.processes and config.processes % ranks:
            yield size.finding(
                f"{config.processes} processes cannot be divided into groups of {ranks:g}",
                help="write a number that divides the processes",
            )
    if stage in (2, 3) and config.is_on("zero_optimization.reduce_scatter", default=True):
        prescale, divide = config.at("prescale_gradients"), config.at("gradient_predivide_factor")
        if _is_true(prescale) or any(prescale.entries()) or prescale.items():
            yield prescale.finding(
                f"prescale_gradients does not work with ZeRO {stage} and reduce_scatter",
                help="remove it",
                fix=mending.removed(prescale, sure=False),
                related=config.stage_place,
            )
        if _written(divide) and divide.plain not in (1, AUTO):
            yield divide.finding(
                f"gradient_predivide_factor must be 1 with ZeRO {stage} and reduce_scatter",
                help="remove it",
                fix=mending.removed(divide, sure=False),
                related=config.stage_place,
            )
    bucket = as_number(config.plain("zero_optimization.allgather_bucket_size"))
    if stage in (1, 2) and bucket is not None and bucket % 2 == 1:
        yield zero.get("allgather_bucket_size").finding(
            f"allgather_bucket_size must be even with ZeRO {stage}", help="write an even number"
        )
    if "zenflow" in model:
        yield from _zenflow(config)
    ratio = config.number("zero_optimization.offload_optimizer.ratio")
    if stage is not None and stage < 3 and ratio is not None and 0 <= ratio < 1:
        yield config.at("zero_optimization.offload_optimizer.ratio").finding(
            "only ZeRO 3 offloads a part of the optimizer", help="set stage to 3, or remove ratio"
        )
    if config.is_on("zero_optimization.legacy_stage1") and (stage or 0) > 0:
        old = zero.get("legacy_stage1")
        fix = mending.removed(old, sure=False)
        yield old.finding("DeepSpeed no longer has the old ZeRO 1", help="remove legacy_stage1", fix=fix)
    normed = config.is_on("zero_optimization.compute_grad_norm", default=True)
    if "compute_grad_norm" in model and normed is False and stage in (0, 3):
        yield zero.get("compute_grad_norm").finding(
            f"compute_grad_norm: false does not work with ZeRO {stage}",
            help="set stage to 1 or 2, or remove it",
            related=config.stage_place,
        )
    elif "compute_grad_norm" in model and normed is False and (config.number("gradient_clipping") or 0) > 0:
        yield zero.get("compute_grad_norm").finding(
            "compute_grad_norm: false does not work with gradient_clipping",
            help="set gradient_clipping to 0, or remove compute_grad_norm",
            related=config.at("gradient_clipping").relate("the norm is needed here"),
        )
    parallel = config.number("tensor_parallel.autotp_size")
    if config.facts.autotp_excludes_zero3 and stage == 3 and parallel and parallel > 1:
        yield config.at("tensor_parallel.autotp_size").finding(
            "tensor parallelism does not work with ZeRO 3",
            help="set stage to 2 or less, or use DeepSpeed 0.19",
            related=config.stage_place,
        )
    curriculum = config.at("data_efficiency.data_sampling.curriculum_learning")
    if _is_true(curriculum.get("enabled")) and curriculum.get("curriculum_metrics").node is None:
        yield curriculum.get("enabled").finding("curriculum_learning needs curriculum_metrics", help="add them")
    operation = config.at("gradient_allreduce_op")
    if config.facts.allreduce_op and stage == 3 and str(operation.plain).lower() == "sum":
        yield operation.finding(
            "gradient_allreduce_op sum does not work with ZeRO 3",
            help="write mean",
            fix=mending.worded(operation, "mean", sure=False),
            related=config.stage_place,
        )


def _zenflow(config: DeepSpeedConfig) -> Iterator[Finding]:
    """ZenFlow under ZeRO 1 and 2 is for an optimizer on the CPU; its own one there overlaps communication."""
    section, low = config.at("zero_optimization.zenflow"), config.stage in (1, 2)
    if not section.is_mapping:
        return
    overlaps = config.is_on("zero_optimization.overlap_comm", default=not low)
    if _is_true(section.get("offload")) and config.stage is not None and overlaps is False:
        yield section.get("offload").finding("zenflow's offload needs overlap_comm", help='add "overlap_comm": true')
    elif low and config.offloads_optimizer is False:
        yield section.finding(
            "zenflow needs the optimizer on the CPU", help='add "offload_optimizer": {"device": "cpu"}', at_key=True
        )
    elif low and config.offloads_optimizer and config.at("optimizer.params").is_absent:
        yield section.finding(
            "zenflow makes its own optimizer from the params of the config's, and there are none",
            help='add "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}',
            at_key=True,
        )


@rule("FS145", "deepspeed-old-section", stage=Stage.PREPARE)
def deepspeed_old_section(config: DeepSpeedConfig) -> Iterator[Finding]:
    """A section of the DeepSpeed config lacks what it needs.

    Sections that DeepSpeed dropped with 0.19.8 must be whole before. Elastic training takes the batch sizes into its
    own hands and refuses the config's, of which accelerate always writes one.

    Source: deepspeed up to 0.19.6, runtime/config.py, elasticity and runtime/data_pipeline.
    """
    if not config.facts.old_sections:
        return
    elastic = config.at("elasticity")
    if _is_true(elastic.get("enabled")) and not _is_true(elastic.get("ignore_non_elastic_batch_info")):
        yield elastic.get("enabled").finding(
            "elasticity excludes batch sizes, and Accelerate always writes one",
            help="remove elasticity",
        )
    for name, needed in _NEEDED.items():
        section = config.at(name)
        if not section.is_mapping:
            continue
        on = section.get("enabled")
        if on.node is None:
            yield section.finding(f"{name} needs enabled", help="add enabled, or remove the section", at_key=True)
        elif _is_true(on):
            missing = [key for key in needed if section.get(key).node is None]
            if missing:
                them = "it" if len(missing) == 1 else "them"
                yield on.finding(f"{name} needs {some_of(missing)}", help=f"add {them}, or remove the section")
    mode = config.at("sparse_attention.mode")
    if _written(mode) and mode.plain not in _SPARSE and mode.plain != AUTO:
        yield _wrong(mode, one_of(_SPARSE), _SPARSE)
    for entry in config.at("compression_training").entries():
        if entry.name == "layer_reduction":
            if entry.is_mapping and entry.get("enabled").node is None:
                yield entry.finding("layer_reduction needs enabled", help="add it, or remove the section", at_key=True)
        elif not entry.is_mapping and not entry.is_unknown and entry.plain != AUTO:
            yield _no_mapping(entry, Stage.PREPARE)
        elif entry.is_mapping and entry.get("different_groups").node is None:
            yield entry.finding(f"{entry.name} needs different_groups", help="add them, or remove it", at_key=True)


_NEEDED: Mapping[str, tuple[str, ...]] = {
    "progressive_layer_drop": ("theta", "gamma"),
    "curriculum_learning": ("min_difficulty", "max_difficulty", "schedule_type"),
    "amp": (),
}
_SPARSE = ("dense", "fixed", "variable", "bigbird", "bslongformer")


def _is_true(field: Field) -> bool:
    """A switch that Python takes for true."""
    if not _written(field) or field.is_mapping or field.is_sequence:
        return False
    return bool(field.plain) and field.plain != AUTO


@rule("FS146", "deepspeed-no-effect", stage=Stage.RUN, severity=Severity.WARNING)
def deepspeed_no_effect(config: DeepSpeedConfig) -> Iterator[Finding]:
    """A setting has no effect at this ZeRO stage.

    Parameters are offloaded by ZeRO 3 alone, the optimizer by ZeRO 1 to 3, and neither is a message.

    Source: deepspeed, runtime/zero/offload_config.py and engine.py.
    """
    for name, least in (("offload_param", 3), ("offload_optimizer", 1)):
        device = config.at(f"zero_optimization.{name}.device")
        if config.stage is not None and config.stage < least and device.plain in ("cpu", "nvme"):
            yield device.finding(
                f"{name} has no effect with ZeRO {config.stage}",
                help=f"set stage to {least}, or remove {name}",
                related=config.stage_place,
            )
