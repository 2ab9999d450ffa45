"""Arguments that exclude or need others."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage, did_you_mean, one_of
from trainlint.programs.transformers.arguments import Arguments
from trainlint.programs.transformers.facts import ACCUMULATION_SETTINGS
from trainlint.programs.transformers.rules.words import shown
from trainlint.reading import mending
from trainlint.reading.values import Field, Value
from trainlint.releases import minor
from trainlint.rule import rule


@rule("FS207", "two-precisions", stage=Stage.LOAD)
def two_precisions(arguments: Arguments) -> Iterator[Finding]:
    """fp16 and bf16 are both on.

    TrainingArguments raises ValueError, for training (`fp16`, `bf16`) and for evaluation (`fp16_full_eval`,
    `bf16_full_eval`), and up to 4.57 for bf16 with apex as the backend, which `fp16_backend`
    overrides.

    Keep bf16 where the GPUs support it.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__.
    """
    for first, second in (("bf16", "fp16"), ("bf16_full_eval", "fp16_full_eval")):
        if arguments.switch(first).is_(True) and arguments.switch(second).is_(True):
            message, other = f"{second} and {first} are both on", arguments.get(first).as_other_half
            yield arguments.refused(arguments.get(second), message, help="keep one of them", related=other)
    backend, replacement = (arguments.own(name).text() for name in ("half_precision_backend", "fp16_backend"))
    if not replacement.is_("auto"):
        backend = replacement.or_when_absent(backend)
    half = arguments.switch("fp16")
    bf16 = arguments.switch("bf16").is_(True) or (arguments.is_on("bf16") and (half.absent or half.is_(False)))
    if backend.is_("apex") and bf16:
        message, other = f"{backend.field.name} apex does not work with bf16", arguments.get("bf16").as_other_half
        yield arguments.refused(backend, message, help="remove it, or use fp16", related=other)


@rule("FS208", "best-model-strategies", stage=Stage.LOAD, follows=("FS201", "FS508"))
def best_model_strategies(arguments: Arguments) -> Iterator[Finding]:
    """load_best_model_at_end needs a checkpoint at each evaluation.

    TrainingArguments raises ValueError unless saving and evaluation have the same strategy (the defaults are `steps`
    and `no`), and with `steps` unless `save_steps` is a multiple of `eval_steps` (or of `logging_steps` where that is
    left out). A ratio below 1 cannot be combined with a step number. Since 4.48 `save_strategy: best` is exempt.

    Set `eval_strategy` and `save_strategy` to the same word.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__ and _validate_args.
    """
    best = arguments.switch("load_best_model_at_end")
    save, evaluation = arguments.word("save_strategy"), arguments.eval_strategy
    if not best.is_(True) or save.known is None or evaluation.known is None:
        return
    if save.is_("best") and arguments.facts.saves_best:
        return
    if save.known != evaluation.known:
        message = f"load_best_model_at_end needs save_strategy and eval_strategy alike, not {save} and {evaluation}"
        help = "set eval_strategy and save_strategy to the same word"
        related = save.field.as_other_half + evaluation.field.as_other_half
        yield arguments.refused(best, message, help=help, related=related)
    elif save.is_("steps"):
        yield from _multiple(arguments, best)


def _multiple(arguments: Arguments, best: Value[bool]) -> Iterator[Finding]:
    saving, evaluating = arguments.steps("save_steps"), arguments.steps("eval_steps")
    save, evaluation = saving.known, evaluating.known
    if save is None or not evaluation or not math.isfinite(save) or not math.fmod(save, evaluation):
        return
    as_ratio = save < 1 and evaluation < 1 and arguments.facts.steps_may_be_ratios
    if as_ratio and not (save * 1_000_000) % (evaluation * 1_000_000):
        return
    at = saving.field if arguments.has("save_steps") else best.field
    message = f"load_best_model_at_end: save_steps {save:g} is not a multiple of eval_steps {evaluation:g}"
    help, related = f"write for example save_steps: {2 * evaluation:g}", evaluating.field.as_other_half
    yield arguments.refused(at, message, help=help, related=related)


@rule("FS209", "needs-evaluation-or-metric", stage=Stage.START)
def needs_evaluation_or_metric(arguments: Arguments) -> Iterator[Finding]:
    """A scheduler or saving strategy needs an evaluation that is off, or a metric that is not named.

    `lr_scheduler_type: reduce_lr_on_plateau` (and `greedy`, since 5.4) follows the evaluation: TrainingArguments raises
    ValueError with `eval_strategy: "no"`, which is the default. `save_strategy: best` needs `metric_for_best_model`
    unless `load_best_model_at_end` sets it: the Trainer raises ValueError.

    Set them.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__; since 4.47 Trainer.__init__.
    """
    scheduler = arguments.word("lr_scheduler_type")
    if scheduler.is_("reduce_lr_on_plateau", "greedy") and arguments.eval_strategy.is_("no"):
        yield arguments.refused(scheduler, f"{scheduler} needs an evaluation", help="set eval_strategy")
    save, metric = arguments.word("save_strategy"), arguments.get("metric_for_best_model")
    unset = metric.is_absent and not scheduler.is_("reduce_lr_on_plateau", "greedy")
    if save.is_("best") and unset and not arguments.is_on("load_best_model_at_end"):
        yield arguments.refused(save, "save_strategy best needs a metric", help="set metric_for_best_model")


@rule("FS210", "prefetch-without-workers", stage=Stage.LOAD)
def prefetch_without_workers(arguments: Arguments) -> Iterator[Finding]:
    """A setting of the data loader needs worker processes.

    With `dataloader_num_workers: 0`, the default, TrainingArguments raises ValueError for a prefetch factor, and since
    5.15 the loader itself for a `dataloader_multiprocessing_context`, when training begins. That is fork, spawn or
    forkserver.

    Set the number of workers, or remove the setting.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__ and _validate_args; torch, DataLoader.
    """
    factor, workers = arguments.get("dataloader_prefetch_factor"), arguments.number("dataloader_num_workers")
    none = workers.is_(0) or arguments.is_left_out("dataloader_num_workers")
    if none and not factor.is_absent and not factor.is_unknown:
        yield arguments.refused(
            factor,
            "dataloader_prefetch_factor needs worker processes",
            help="set dataloader_num_workers above 0, or remove it",
            at_key=True,
        )
    context = arguments.own("dataloader_multiprocessing_context")
    if none and not context.is_absent and not context.is_unknown:
        yield arguments.refused(
            context,
            "dataloader_multiprocessing_context needs worker processes",
            help="set dataloader_num_workers above 0, or remove it",
            at_key=True,
            stage=Stage.TRAIN,
        )
    elif context.text().known_and_not_in(_START_METHODS):
        message = f'dataloader_multiprocessing_context cannot be "{context.written}"'
        help, fix = f"write {one_of(_START_METHODS)}", mending.respelled(context, _START_METHODS)
        yield arguments.refused(context, message, help=help, fix=fix, stage=Stage.TRAIN)


_START_METHODS = ("fork", "spawn", "forkserver")


@rule(
    "FS211",
    "output-dir-missing",
    stage=Stage.START,
    severity=Severity.WARNING,
    varies="error with a null, and in releases without a default",
)
def output_dir_missing(arguments: Arguments) -> Iterator[Finding]:
    """output_dir is missing or null.

    Up to 4.48 TrainingArguments has no default for it, and parse_yaml_file raises TypeError. (A script that also reads
    its command line may get it there.) A null raises TypeError in the Trainer. From 4.49 on the default is
    `trainer_output`.

    Source: transformers 4.40 to 4.48, TrainingArguments.
    """
    argument = arguments.facts.fields.get("output_dir")
    given = arguments.get("output_dir")
    if argument and argument.required and arguments.parsed and arguments.has("output_dir") and given.is_null:
        yield arguments.refused(given, "output_dir cannot be null", help="write the name of a folder")
    elif argument and argument.required and arguments.parsed and arguments.is_left_out("output_dir"):
        say = arguments.refused if arguments.is_certain else arguments.warned
        yield say(
            given,
            "output_dir is missing",
            help=f"add output_dir: Transformers {arguments.facts.release} has no default for it",
        )


@rule("FS212", "argument-not-built", stage=Stage.LOAD, varies="warning where the script may have made the state before")
def argument_not_built(arguments: Arguments) -> Iterator[Finding]:
    """An argument needs an object that YAML cannot give, or a mapping has an unknown key.

    `parallelism_config` (since 4.56) must be accelerate's ParallelismConfig; parsers pass any value on and
    Accelerator() raises AttributeError. Parallelism in a file belongs in the accelerate config. `accelerator_config` is
    built from a mapping or a JSON file, a list raises TypeError, and so does an unknown key; since 4.40 its `num_steps`
    raises ValueError where `gradient_accumulation_steps` is above 1, and `use_configured_state: true` (since 4.42)
    where no state was made before. The keys of `gradient_accumulation_kwargs` are checked up to 4.45 and since 5.2.
    4.38 writes `dispatch_batches` and `split_batches` into that object, which has no items, and raises TypeError unless
    there is a mapping to write to.

    Source: transformers 4.38 to 5.24, Trainer.create_accelerator_and_postprocess; trainer_pt_utils.AcceleratorConfig.
    """
    accelerator, steps = arguments.get("accelerator_config"), arguments.number("gradient_accumulation_steps")
    for name in ("dispatch_batches", "split_batches") if arguments.facts.batch_options_break else ():
        if accelerator.is_absent and not (arguments.get(name).is_absent or arguments.get(name).is_unknown):
            message = f"{name} cannot be given to Transformers {minor(arguments.facts.release)}"
            help = f"write accelerator_config: {{{name}: …}}"
            fix = mending.advised(arguments.get(name), help.replace("write", "use", 1))
            yield arguments.refused(arguments.get(name), message, help=help, fix=fix, at_key=True)
    counted = accelerator.at("gradient_accumulation_kwargs", "num_steps")
    twice = steps.known_and(lambda number: number > 1) and not (counted.node is None or counted.is_unknown)
    if twice and arguments.facts.accumulation_excludes_steps:
        message = "num_steps and gradient_accumulation_steps exclude each other"
        help, other = "keep gradient_accumulation_steps", steps.field.as_other_half
        yield arguments.refused(counted, message, help=help, related=other, at_key=True)
    parallel = arguments.get("parallelism_config")
    if "parallelism_config" in arguments.facts.fields and not parallel.is_absent and not parallel.is_unknown:
        kind = parallel.written or shown(parallel)
        message = f"parallelism_config cannot be {kind}: the Trainer needs an object"
        help = "write it in the accelerate config"
        at_key = parallel.is_mapping or parallel.is_sequence
        yield arguments.refused(parallel, message, help=help, at_key=at_key, stage=arguments.facts.trainer_stage)
    if accelerator.is_sequence or accelerator.number().known is not None or accelerator.boolean().known is not None:
        message = "accelerator_config must be a mapping"
        yield arguments.refused(accelerator, message, help="write its settings below it as keys", at_key=True)
    yield from _accumulation(arguments, accelerator.get("gradient_accumulation_kwargs"))
    state = accelerator.get("use_configured_state")
    if state.boolean().is_(True) and "use_configured_state" in arguments.facts.accelerator_keys:
        message = "use_configured_state needs a state that the script made before"
        yield arguments.warned(state, message, help="remove it, or build PartialState before the arguments")
    keys = arguments.facts.accelerator_keys
    for entry in accelerator.entries():
        if entry.name not in keys:
            hint = did_you_mean(entry.name, keys) or f"write {one_of(sorted(keys))}"
            fix = mending.renamed_to_nearest(entry, keys)
            message = f"accelerator_config has no key {entry.name}"
            yield arguments.refused(entry, message, help=hint, fix=fix, at_key=True)


def _accumulation(arguments: Arguments, section: Field) -> Iterator[Finding]:
    if not arguments.facts.accumulation_settings_checked:
        return
    if section.is_sequence:
        message = "gradient_accumulation_kwargs must be a mapping"
        yield arguments.refused(section, message, help="write its settings below it", at_key=True, stage=Stage.START)
    for entry in section.entries():
        if entry.name not in ACCUMULATION_SETTINGS:
            hint = did_you_mean(entry.name, ACCUMULATION_SETTINGS) or f"write {one_of(sorted(ACCUMULATION_SETTINGS))}"
            message = f"gradient_accumulation_kwargs has no key {entry.name}"
            fix = mending.renamed_to_nearest(entry, ACCUMULATION_SETTINGS)
            yield arguments.refused(entry, message, help=hint, fix=fix, at_key=True, stage=Stage.START)


@rule("FS217", "half-precision-on-cpu", stage=Stage.LOAD)
def half_precision_on_cpu(arguments: Arguments) -> Iterator[Finding]:
    """fp16 is on although training runs on the CPU.

    Up to 4.41 TrainingArguments raises ValueError for `fp16` and `fp16_full_eval` if `use_cpu` (or `no_cuda`) keeps the
    training on the CPU.

    Use bf16, or a GPU.

    Source: transformers 4.31 to 4.41, TrainingArguments.__post_init__.
    """
    cpu = next((name for name in ("use_cpu", "no_cuda") if arguments.switch(name).is_(True)), None)
    for name in ("fp16", "fp16_full_eval"):
        if cpu and arguments.facts.half_precision_needs_gpu and arguments.switch(name).is_(True):
            at = arguments.get(name)
            related = arguments.get(cpu).relate("training runs on the CPU")
            yield arguments.refused(at, f"{name} needs a GPU", help=f"remove {name}, or {cpu}", related=related)


@rule("FS218", "sharded-ddp", stage=Stage.START)
def sharded_ddp(arguments: Arguments) -> Iterator[Finding]:
    """sharded_ddp does not work with bf16, FSDP or DeepSpeed.

    TrainingArguments raises ValueError for the combination. `sharded_ddp` is fairscale's sharding, which transformers
    had up to 4.34.

    Use `fsdp` instead.

    Source: transformers 4.31 to 4.34, TrainingArguments.__post_init__ and Trainer.__init__.
    """
    sharded = arguments.own("sharded_ddp")
    on = sharded.text().known_and(lambda text: text != "") or sharded.boolean().is_(True) or bool(sharded.items())
    deepspeed = arguments.get("deepspeed")
    beside = {
        "bf16": arguments.switch("bf16").is_(True),
        "fsdp": arguments.options.on.is_(True),
        "deepspeed": not (deepspeed.is_absent or deepspeed.is_unknown or deepspeed.text().is_("")),
    }
    for name, given in beside.items():
        if on and given:
            message, other = f"sharded_ddp does not work with {name}", arguments.get(name).as_other_half
            yield arguments.refused(sharded, message, help="use fsdp instead", related=other)
