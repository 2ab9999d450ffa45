"""TrainingArguments in YAML: words, numbers and switches as the parsers read them, and arguments that exclude others.

A YAML file does not say which parser reads it. A finding is an error where every parser of the release fails, and a
warning where only HfArgumentParser, which converts nothing, fails or a script's own dataclass may differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from trainlint.findings import Finding, Severity, Stage, did_you_mean, one_of, some_of
from trainlint.programs.transformers.facts import (
    FALSE_WORDS,
    FSDP2_OPTIONS,
    SHARDING_OPTIONS,
    TORCH_DTYPES,
    TRUE_WORDS,
    ArgumentFacts,
    SwitchForm,
)
from trainlint.programs.transformers.program import Arguments, FsdpConfig, is_object_text
from trainlint.reading.scalars import Dialect, plain_value
from trainlint.reading.values import Field, Value
from trainlint.releases import minor, names_within
from trainlint.rule import rule
from trainlint.training.declarations import Spec, declarations

# words

ENUMERATIONS = (
    "eval_strategy", "evaluation_strategy", "logging_strategy", "save_strategy", "hub_strategy", "lr_scheduler_type",
    "optim",
)  # fmt: skip
_DEBUG_WORDS = ("underflow_overflow", "tpu_metrics_debug")


@rule("FS201", "unknown-argument-word", stage=Stage.LOAD)
def unknown_argument_word(arguments: Arguments) -> Iterator[Finding]:
    """An argument has a value that is not one of its words.

    TrainingArguments turns `save_strategy`, `eval_strategy`, `logging_strategy`, `hub_strategy`, `lr_scheduler_type`
    and `optim` into members of an enumeration and raises ValueError for anything else: a misspelt word, another case, a
    null where the default is a word, and the boolean that YAML makes of an unquoted `no` or `off`. The words differ by
    release: `save_strategy: best` came with 4.47, `adamw_hf` went in 4.50.

    Quote the word, or write one of those that the help lists.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__.
    """
    for name in ENUMERATIONS:
        argument = arguments.facts.fields.get(name)
        if argument is None or not arguments.has(name) or _is_overridden(arguments, name):
            continue
        field = arguments.get(name)
        words = [str(choice) for choice in argument.choices]
        if field.is_null:
            if argument.default is not None or argument.computed:
                yield arguments.refused(field, f"{name} cannot be null", help=f"remove it, or write {one_of(words)}")
        elif field.boolean().is_(False) and "no" in words:
            message = f"{name} is false: YAML reads an unquoted {field.written} as a boolean"
            yield arguments.refused(field, message, help='the word "no" needs quotes in YAML', replacement='"no"')
        elif field.text().known_and_not_in(words) or field.text().wrong_type:
            torch = f"{field.written}_torch"
            hint = did_you_mean(torch if torch in words else field.written, words) or f"write {one_of(words)}"
            yield arguments.refused(field, f"{name} cannot be {_shown(field)}", help=hint)


def _shown(field: Field) -> str:
    """A value as a message names it."""
    if field.is_sequence or field.is_mapping:
        return "a list" if field.is_sequence else "a mapping"
    return f'"{field.written}"' if field.written else "empty"


def _is_overridden(arguments: Arguments, name: str) -> bool:
    """From 4.41 to 4.50 evaluation_strategy replaces eval_strategy before that is checked."""
    old = "evaluation_strategy"
    return name == "eval_strategy" and old in arguments.facts.fields and not arguments.get(old).is_absent


@rule("FS202", "unknown-log-or-report-word", stage=Stage.LOAD)
def unknown_log_or_report_word(arguments: Arguments) -> Iterator[Finding]:
    """log_level, report_to or debug has an unknown word.

    The Trainer looks up `log_level` in its table of levels (KeyError) and each name of `report_to` in its table of
    integrations (ValueError). `all` and `none` must stand alone, several names are a YAML list, and the boolean that
    YAML makes of an unquoted `no` or `off` is not a name; since 5.0 a null in `report_to` is not one either. `debug` is
    split at spaces into members of an enumeration.

    Source: transformers 4.31 to 5.24, Trainer.__init__ and get_reporting_integration_callbacks.
    """
    for name in ("log_level", "log_level_replica"):
        field = arguments.get(name)
        levels = arguments.facts.log_levels
        if field.text().known_and_not_in(levels):
            hint = did_you_mean(field.written, levels) or f"write {one_of(sorted(levels))}"
            yield arguments.refused(field, f"{name} cannot be {_shown(field)}", help=hint)
    debug = arguments.get("debug").text()
    for word in (debug.known or "").split():
        if word not in _DEBUG_WORDS:
            yield arguments.refused(debug, f'unknown word "{word}" in debug', help=f"write {one_of(_DEBUG_WORDS)}")
    yield from _reporters(arguments)


def _reporters(arguments: Arguments) -> Iterator[Finding]:
    field = arguments.get("report_to")
    items = field.items() if field.is_sequence else [field]
    names = arguments.facts.reporters | (frozenset({"all", "none"}) if len(items) == 1 else frozenset())
    if field.is_null and arguments.has("report_to") and arguments.facts.null_report_to_refused:
        yield arguments.refused(field, "report_to cannot be null", help="write none, all or names of integrations")
    for item in items:
        if item.boolean().known is not None:
            message = f"report_to cannot be {item.written}: YAML reads it as a boolean"
            yield arguments.refused(item, message, help='write "none" to report to nothing')
        elif item.text().is_("all", "none") and len(items) > 1:
            yield arguments.refused(item, f"report_to cannot list {item.written} with others", help="write it alone")
        elif item.text().known_and_not_in(names):
            hint = "write a list, one name in each item" if "," in item.written else did_you_mean(item.written, names)
            hint = hint or f"write all, none, or names such as {some_of(sorted(arguments.facts.reporters))}"
            yield arguments.refused(item, f"report_to cannot be {_shown(item)}", help=hint)


# numbers and switches

_KINDS = {"int": "an integer", "float": "a number", "bool": "a boolean"}
_RAISING = frozenset({"learning_rate", "logging_steps", "warmup_steps", "warmup_ratio"})
"""Numbers that are compared before anything is trained."""


@rule("FS203", "text-for-number", stage=Stage.START, severity=Severity.WARNING)
def text_for_number(arguments: Arguments) -> Iterator[Finding]:
    """An argument is text where a number is needed.

    PyYAML reads a number with an exponent only if the number has a dot and the exponent a sign: `2e-5`, `1e8` and
    `1.0e5` are text, and so is everything in quotes. HfArgumentParser converts nothing: the text gets into
    TrainingArguments and raises TypeError where it is first compared, `learning_rate` in the optimizer, `warmup_steps`,
    `eval_steps` and the like at once, batch sizes, epochs and `weight_decay` in train(). TrlParser converts text and
    stops with an error where it cannot (`max_steps: 1e3` must be an integer).

    Write `2.0e-5`, without quotes.

    Source: transformers 4.31 to 5.24, HfArgumentParser.parse_yaml_file; TRL 0.8 to 1.16, TrlParser; PyYAML's resolver.
    """
    converts = arguments.facts.converts
    for name, argument, field in arguments.given:
        kind = _kind(argument)
        text = field.text().known
        if kind not in ("int", "float") or text is None or not arguments.whole or arguments.reader.uses_omegaconf:
            continue
        number = _converted(text, "float")
        if converts:
            if _converted(text, kind) is None:
                message = f'{name} must be {_KINDS[kind]}, not the text "{text}"'
                yield arguments.refused(field, message, help=f"write {_KINDS[kind]}")
        elif number is None or not math.isfinite(number):
            say = arguments.refused if name in _RAISING else arguments.warned
            yield say(field, f'{name} is the text "{text}", not a number', help="write a number")
        else:
            yaml = _yaml_number(number, kind)
            say = arguments.refused if _is_compared_at_once(name, arguments.facts) else arguments.warned
            message = f'{name} is the text "{text}", not a number'
            yield say(field, message, help=_why_text(text, kind), replacement=yaml)


def _why_text(text: str, kind: str) -> str:
    """Help: why YAML reads a number as text."""
    if not isinstance(plain_value(text, Dialect.PYYAML), str):
        return "remove the quotes"
    return "write out the digits" if kind == "int" else "PyYAML needs a dot and a signed exponent to read a number"


def _is_compared_at_once(name: str, facts: ArgumentFacts) -> bool:
    """The value is compared when TrainingArguments is built."""
    return (name == "warmup_steps" and facts.warmup_steps_compared) or (
        name == "warmup_ratio" and facts.warmup_ratio_compared
    )


def _kind(argument: Spec) -> str | None:
    """`int`, `float` or `bool` for an argument of that one type."""
    kinds = [kind for kind in argument.types if kind != "None"]
    return kinds[0] if kinds in (["int"], ["float"], ["bool"]) else None


def _converted(text: str, kind: str) -> float | None:
    try:
        return int(text) if kind == "int" else float(text)
    except ValueError:
        return None


def _yaml_number(number: float, kind: str) -> str:
    """A number as PyYAML reads it."""
    if kind == "int" and number.is_integer():
        return str(int(number))
    mantissa, exponent, power = repr(number).partition("e")
    if not exponent:
        return mantissa
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(power):+d}"


@rule("FS204", "quoted-boolean", stage=Stage.RUN, severity=Severity.WARNING)
def quoted_boolean(arguments: Arguments) -> Iterator[Finding]:
    """An argument is text where a boolean is needed, and counts as true.

    HfArgumentParser passes text on unchanged, and Python treats any text that is not empty as true: `bf16: "false"`
    turns bf16 on. TrlParser reads yes, true, t, y, 1 and their opposites, and stops with an error at any other text
    (also at a quoted `on`). PyYAML reads an unquoted `true`, `yes` or `on` as a boolean, and `y` and `n` as text.

    Write true or false, without quotes.

    Source: transformers 4.31 to 5.24, HfArgumentParser.parse_yaml_file and string_to_bool.
    """
    for name, argument, field in arguments.given:
        text = field.text().known
        if _kind(argument) != "bool" or not text or not arguments.whole:
            continue
        folded = text.lower()
        meant = "true" if folded in TRUE_WORDS else "false" if folded in FALSE_WORDS else None
        if arguments.facts.converts:
            if meant is None or folded in ("on", "off"):
                message = f'{name} must be true or false, not the text "{text}"'
                yield arguments.warned(field, message, help="write true or false, without quotes")
        elif meant != "true":
            yield arguments.warned(
                field,
                f'{name} is the text "{text}", which counts as true',
                help="write a YAML boolean, without quotes" if meant else "write true or false, without quotes",
                replacement=meant,
            )


@rule("FS205", "wrong-number", stage=Stage.START, severity=Severity.WARNING)
def wrong_number(arguments: Arguments) -> Iterator[Finding]:
    """An argument is a float, boolean, list or mapping where an integer or a number is needed.

    The parsers only check text. A float such as `4.0` for a batch size, `max_steps` or `gradient_accumulation_steps` is
    accepted and raises TypeError in train(), where torch needs an integer. A boolean counts as 1 or 0. A list or
    mapping raises where it is first used.

    Write one plain number.

    Source: transformers 4.31 to 5.24, HfArgumentParser; TRL 0.8 to 1.16, TrlParser.
    """
    for name, argument, field in arguments.given:
        kind = _kind(argument)
        if kind is None or field.is_absent or field.is_unknown:
            continue
        if field.is_mapping or field.is_sequence:
            what = "mapping" if field.is_mapping else "list"
            yield arguments.warned(
                field, f"{name} must be {_KINDS[kind]}, not a {what}", help="write one value", at_key=True
            )
        elif kind == "int" and isinstance(field.plain, float) and name != "warmup_steps":
            yield arguments.warned(field, f"{name} must be an integer, not {field.written}", help="write an integer")
        elif kind != "bool" and isinstance(field.plain, bool):
            yield arguments.warned(field, f"{name} must be a number, not {field.written}", help="write a number")


_TEXTS: Mapping[str, str] = {
    "output_dir": "..",
    "logging_dir": "..4.57.6",
    "metric_for_best_model": "4.42.4..",
    "torch_compile_backend": "..",
    "torchdynamo": "..",
    "torch_compile_mode": "..4.57.6",
}
"""Arguments that raise when they are not text, with the releases in which they do."""


@rule("FS213", "wrong-text", stage=Stage.LOAD)
def wrong_text(arguments: Arguments) -> Iterator[Finding]:
    """An argument that must be text is something else.

    The parsers only check text. `output_dir: 2024` raises TypeError when its `~` is expanded, a numeric
    `metric_for_best_model` has no endswith(), and the backend of torch.compile is put into the environment or into
    upper case.

    Quote the value.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__.
    """
    for name in names_within(_TEXTS, arguments.facts.release):
        field = arguments.get(name)
        if name not in arguments.facts.fields:
            continue
        if name == "metric_for_best_model" and not arguments.get("greater_is_better").is_absent:
            continue
        if field.text().wrong_type:
            help = f'quote it: "{field.written}"' if field.written else "write one text"
            yield arguments.refused(field, f"{name} must be text, not {field.written or _shown(field)}", help=help)


@rule("FS206", "steps-out-of-range", stage=Stage.LOAD)
def steps_out_of_range(arguments: Arguments) -> Iterator[Finding]:
    """A number of steps or a ratio is out of range.

    TrainingArguments raises ValueError for: logging, evaluation or saving by steps with a step number above 1 that is
    not whole, or with none (`logging_steps: 0`); a negative `warmup_steps` (since 4.42), a fraction in it (4.42 to
    4.57; from 5.0 on it is a ratio); a `warmup_ratio` outside 0 to 1 (up to 4.57); a `torch_empty_cache_steps` that is
    not a positive integer (since 4.50). A step number below 1 is a ratio of all steps.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__ and _validate_args.
    """
    for strategy, steps in (("logging", "logging_steps"), ("eval", "eval_steps"), ("save", "save_steps")):
        by_steps = arguments.eval_strategy if strategy == "eval" else arguments.word(f"{strategy}_strategy")
        if by_steps.is_("steps"):
            yield from _steps(arguments, steps)
    yield from _warmup(arguments)
    cache = arguments.get("torch_empty_cache_steps")
    if arguments.facts.empty_cache_steps_checked and (cache.number().known_and(lambda n: n < 1 or n % 1 != 0)):
        message = f"torch_empty_cache_steps must be a positive integer, not {cache.written}"
        yield arguments.refused(cache, message, help="remove it, or write 1 or more")


def _steps(arguments: Arguments, name: str) -> Iterator[Finding]:
    value = arguments.steps(name)
    if value.known_and(lambda number: number > 1 and number % 1 != 0):
        message = f"{name} above 1 must be an integer, not {value.field.written}"
        yield arguments.refused(value, message, help="write an integer, or a ratio below 1")
    elif name == "logging_steps" and value.is_(0):
        help = 'write a number above 0, or logging_strategy: "no"'
        yield arguments.refused(value, "logging_steps must not be 0", help=help)
    elif name == "eval_steps" and value.field.name == "logging_steps" and value.known_and(lambda number: number <= 0):
        message = f"eval_steps follows logging_steps, which is {value.field.written}"
        yield arguments.refused(value, message, help="set eval_steps")
    elif name != "eval_steps" and value.field.is_null and arguments.has(name):
        yield arguments.refused(value, f"{name} cannot be null", help="remove it, or write a number")


def _warmup(arguments: Arguments) -> Iterator[Finding]:
    facts = arguments.facts
    steps, ratio = arguments.number("warmup_steps"), arguments.number("warmup_ratio")
    for value, looked_at in ((steps, facts.warmup_steps_compared), (ratio, facts.warmup_ratio_compared)):
        if looked_at and value.field.is_null and arguments.has(value.field.name):
            yield arguments.refused(value, f"{value.field.name} cannot be null", help="remove it, or write a number")
    if facts.warmup_steps_integer and isinstance(steps.field.plain, float):
        message = f"warmup_steps must be an integer, not {steps.field.written}"
        yield arguments.refused(steps, message, help="write a ratio as warmup_ratio")
    elif facts.warmup_steps_not_one and steps.is_(1):
        yield arguments.refused(steps, "warmup_steps cannot be 1", help="write 0, or a number above 1")
    elif facts.warmup_steps_compared and steps.known_and(lambda number: number < 0):
        yield arguments.refused(steps, "warmup_steps must not be negative", help="write 0 or more")
    if facts.warmup_ratio_compared and ratio.known_and(lambda number: not 0 <= number <= 1):
        message = f"warmup_ratio must be between 0 and 1, not {ratio.field.written}"
        yield arguments.refused(ratio, message, help="write a number of steps as warmup_steps")


# arguments that exclude or need others


@rule("FS207", "two-precisions", stage=Stage.LOAD)
def two_precisions(arguments: Arguments) -> Iterator[Finding]:
    """fp16 and bf16 are both on.

    TrainingArguments raises ValueError, for training (`fp16`, `bf16`) and for evaluation (`fp16_full_eval`,
    `bf16_full_eval`).

    Keep bf16 where the GPUs support it.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__.
    """
    for first, second in (("bf16", "fp16"), ("bf16_full_eval", "fp16_full_eval")):
        if arguments.switch(first).is_(True) and arguments.switch(second).is_(True):
            yield arguments.refused(arguments.get(second), f"{second} and {first} are both on", help="keep one of them")


@rule("FS208", "best-model-strategies", stage=Stage.LOAD)
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
        yield arguments.refused(best, message, help="set eval_strategy and save_strategy to the same word")
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
    yield arguments.refused(at, message, help=f"write for example save_steps: {2 * evaluation:g}")


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
    """dataloader_prefetch_factor needs worker processes.

    With `dataloader_num_workers: 0`, the default, TrainingArguments raises ValueError.

    Set the number of workers, or remove the factor.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__ and _validate_args.
    """
    factor, workers = arguments.get("dataloader_prefetch_factor"), arguments.number("dataloader_num_workers")
    none = workers.is_(0) or not arguments.has("dataloader_num_workers")
    if none and not factor.is_absent and not factor.is_unknown:
        yield arguments.refused(
            factor,
            "dataloader_prefetch_factor needs worker processes",
            help="set dataloader_num_workers above 0, or remove it",
            at_key=True,
        )


@rule("FS211", "output-dir-missing", stage=Stage.START, severity=Severity.WARNING)
def output_dir_missing(arguments: Arguments) -> Iterator[Finding]:
    """output_dir is missing.

    Up to 4.48 TrainingArguments has no default for it, and parse_yaml_file raises TypeError. (A script that also reads
    its command line may get it there.) From 4.49 on the default is `trainer_output`.

    Source: transformers 4.40 to 4.48, TrainingArguments.
    """
    argument = arguments.facts.fields.get("output_dir")
    if argument and argument.required and arguments.whole and not arguments.has("output_dir"):
        yield arguments.warned(
            arguments.get("output_dir"),
            "output_dir is missing",
            help=f"add output_dir: transformers {arguments.facts.release} has no default for it",
        )


@rule("FS212", "argument-not-built", stage=Stage.LOAD)
def argument_not_built(arguments: Arguments) -> Iterator[Finding]:
    """An argument needs an object that YAML cannot give, or a mapping has an unknown key.

    `parallelism_config` (since 4.56) must be accelerate's ParallelismConfig; parsers pass a mapping on and
    Accelerator() raises AttributeError. Parallelism in a file belongs in the accelerate config. `accelerator_config` is
    built from a mapping, and an unknown key raises TypeError; since 4.40 its `num_steps` raises ValueError where
    `gradient_accumulation_steps` is above 1. 4.38 writes `dispatch_batches` and `split_batches` into that object, which
    has no items, and raises TypeError unless there is a mapping to write to.

    Source: transformers 4.38 to 5.24, Trainer.create_accelerator_and_postprocess; trainer_pt_utils.AcceleratorConfig.
    """
    accelerator, steps = arguments.get("accelerator_config"), arguments.number("gradient_accumulation_steps")
    for name in ("dispatch_batches", "split_batches") if arguments.facts.batch_options_break else ():
        if accelerator.is_absent and not (arguments.get(name).is_absent or arguments.get(name).is_unknown):
            message = f"{name} cannot be given to transformers {minor(arguments.facts.release)}"
            help = f"write accelerator_config: {{{name}: …}}"
            yield arguments.refused(arguments.get(name), message, help=help, at_key=True)
    counted = accelerator.at("gradient_accumulation_kwargs", "num_steps")
    twice = steps.known_and(lambda number: number > 1) and not (counted.node is None or counted.is_unknown)
    if twice and arguments.facts.accumulation_excludes_steps:
        message = "num_steps and gradient_accumulation_steps exclude each other"
        yield arguments.refused(counted, message, help="keep gradient_accumulation_steps", at_key=True)
    parallel = arguments.get("parallelism_config")
    if "parallelism_config" in arguments.facts.fields and parallel.is_mapping:
        message = "parallelism_config cannot be a mapping: the Trainer needs an object"
        help = "write it in the accelerate config"
        yield arguments.refused(parallel, message, help=help, at_key=True, stage=arguments.facts.trainer_stage)
    keys = arguments.facts.accelerator_keys
    for entry in accelerator.entries():
        if entry.name not in keys:
            hint = did_you_mean(entry.name, keys) or f"write {one_of(sorted(keys))}"
            yield arguments.refused(entry, f"accelerator_config has no key {entry.name}", help=hint, at_key=True)


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
            yield arguments.refused(sharded, f"sharded_ddp does not work with {name}", help="use fsdp instead")


# names


@rule("FS215", "unknown-argument", stage=Stage.LOAD, severity=Severity.WARNING, ordinary_elsewhere=True)
def unknown_argument(arguments: Arguments) -> Iterator[Finding]:
    """A key is not an argument of this release, but of another one, or almost one of this.

    HfArgumentParser raises ValueError for a key that no dataclass has. TRL's own scripts ignore it without a message,
    so the setting keeps its default. Scripts add dataclasses of their own: a key that no release knows is only reported
    when it is within two letters of a known one, never one of the repository's own classes or options, and always as a
    warning. `evaluation_strategy` is `eval_strategy` (the old name ended with 4.50), `overwrite_output_dir` and
    `no_cuda` went in 5.0, `warmup_ratio` in 5.15 (a `warmup_steps` below 1 is a ratio); TRL's `max_seq_length` is
    `max_length`, its `torch_dtype` is `dtype`. Names with hyphens are for the command line; in a file they have
    underscores. Settings of `accelerate launch` (several of `num_processes`, `mixed_precision` and the like) belong in
    its own config file.

    Source: the dataclasses of the released wheels of transformers 4.31 to 5.24 and TRL 0.8 to 1.16.
    """
    unknown = [
        entry
        for entry in arguments.field.entries()
        if entry.name not in arguments.facts.fields and entry.name not in arguments.facts.others
    ]
    launch_keys = declarations("accelerate").keys_of_any("config")
    launched = [entry.name for entry in unknown if entry.name in launch_keys]
    for entry in unknown:
        other = arguments.facts.other_releases(entry.name)
        if (other is not None or arguments.near_miss(entry.name)) and arguments.reader.defines(entry.name):
            continue
        if other is not None:
            advice = arguments.facts.renamed(entry.name)
            help = f"{advice} ({other})" if advice else f"remove it: {other}"
            yield arguments.warned(entry, _no_argument(entry, arguments), help=help, at_key=True)
        elif near := arguments.near_miss(entry.name):
            help = f'did you mean "{near}"?'
            yield arguments.warned(entry, _no_argument(entry, arguments), help=help, at_key=True)
        elif entry.name in launched and len(launched) > 1:
            help = "move it to the accelerate config: accelerate launch reads it"
            yield arguments.warned(entry, _no_argument(entry, arguments), help=help, at_key=True)


def _no_argument(entry: Field, arguments: Arguments) -> str:
    return f"{entry.name} is not an argument of {arguments.facts.label}"


@rule("FS216", "duplicate-argument", stage=Stage.RUN, severity=Severity.WARNING)
def duplicate_argument(arguments: Arguments) -> Iterator[Finding]:
    """An argument is given more than once, and only the last one counts.

    An argument is a name that some release has. PyYAML keeps the last of several equal keys in a mapping, without a
    message.

    Remove the others.

    Source: PyYAML's constructor, which transformers and TRL read with.
    """
    for entry in arguments.field.entries():
        if entry.dialect is not Dialect.PYYAML:
            continue
        if entry.entry and entry.entry.duplicates and arguments.facts.is_ever(entry.name):
            times = len(entry.entry.duplicates) + 1
            message = f"{entry.name} is given {times} times: only the last one counts"
            yield arguments.warned(entry, message, help="keep one of them", at_key=True)


# sharding, where transformers differs


@rule("FS230", "fsdp-word", stage=Stage.LOAD)
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
        yield arguments.refused(field, f"transformers {facts.release} cannot read fsdp: false", help="remove it")
    elif field.is_null and facts.fsdp_null_refused:
        yield arguments.refused(field, f"transformers {facts.release} cannot read an empty fsdp", help="remove it")
    elif field.number().known is not None and not facts.reads_options_as_settings:
        yield arguments.refused(
            field, f"fsdp cannot be the number {field.written}", help="write true, or words such as full_shard"
        )
    elif field.is_mapping:
        yield arguments.warned(field, "fsdp cannot be a mapping", help="write its settings in fsdp_config", at_key=True)
    for word in options.words:
        yield from _fsdp_word(arguments, word)
    if not facts.reads_options_as_settings:
        yield from _option_clash(arguments)


def _fsdp_word(arguments: Arguments, word: Value[str]) -> Iterator[Finding]:
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
        yield arguments.warned(word, f"{message} is ignored", help=help)
    else:
        yield arguments.refused(word, message, help=help)


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
            yield arguments.refused(word, f"FSDP2 has no strategy {word}", help=help)


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
            message = f"transformers {minor(arguments.facts.release)} reads {text.name} as the name of a file"
            yield arguments.refused(text, message, help="write its keys below it, or name a JSON file")
    if read and (field.is_sequence or (scalar.known is not None and not isinstance(scalar.known, str))):
        yield arguments.refused(
            field, "fsdp_config must be a mapping", help="write its settings below it as keys", at_key=True
        )


@rule("FS235", "fsdp-config-value", stage=Stage.LOAD)
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
            message = f"{size.name} must be a number, not {_shown(size)}"
            yield arguments.refused(size, message, help="write the digits out, such as 100000000")
    sizes = [*([config.min_num_params] if config else []), arguments.own("fsdp_min_num_params")]
    given = next((size for size in sizes if size.number().known_and(lambda number: number > 0)), None)
    classes = (config and config.has_classes) or not arguments.own("fsdp_transformer_layer_cls_to_wrap").is_absent
    if on and given and classes:
        message = f"{given.name} and transformer_layer_cls_to_wrap exclude each other"
        yield arguments.refused(given, message, help="keep one of them", at_key=True)


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
            )
        elif (
            form is SwitchForm.TEXT
            and text is None
            and not (field.node is None or field.is_unknown or config.switch("xla").known)
        ):
            word = "true" if field.boolean().is_(True) else "false"
            message = f"{field.name} must be text in transformers {minor(arguments.facts.release)}"
            yield arguments.refused(field, message, help=f'write "{word}", in quotes')


def _reshard_word(arguments: Arguments, config: FsdpConfig) -> Iterator[Finding]:
    field = config.read("reshard_after_forward")
    word = field.written.lower()
    if config.runs_version != 1 or field.node is None or field.is_unknown or field.boolean().known is not None:
        return
    if word not in SHARDING_OPTIONS and word not in ("1", "2", "3", "4", "5"):
        hint = did_you_mean(word, SHARDING_OPTIONS) or f"write {one_of(SHARDING_OPTIONS)}"
        yield arguments.refused(field, f"{field.name} cannot be {_shown(field)}", help=hint)


def _xla_dtypes(arguments: Arguments, config: FsdpConfig) -> Iterator[Finding]:
    settings = config.read("xla_fsdp_settings")
    for key in ("compute_dtype", "buffer_dtype"):
        dtype = settings.get(key).text()
        if dtype.known_and_not_in(TORCH_DTYPES):
            hint = did_you_mean(str(dtype), TORCH_DTYPES) or f"write {one_of(sorted(TORCH_DTYPES))}"
            yield arguments.refused(dtype, f"torch has no dtype {dtype}", help=hint)


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


# DeepSpeed

_DEEPSPEED_NUMBERS = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_clipping": "max_grad_norm",
    "optimizer.params.lr": "learning_rate",
    "optimizer.params.weight_decay": "weight_decay",
    "optimizer.params.eps": "adam_epsilon",
    "scheduler.params.warmup_max_lr": "learning_rate",
}
_DEEPSPEED_SWITCHES = {"fp16.enabled": "fp16", "bf16.enabled": "bf16"}


@rule("FS238", "deepspeed-mismatch", stage=Stage.START)
def deepspeed_mismatch(arguments: Arguments) -> Iterator[Finding]:
    """The DeepSpeed config and the training arguments have different values.

    The Trainer fills in each "auto" in the DeepSpeed config and compares the rest with its own arguments, given or
    default: batch size, accumulation, clipping, the optimizer's settings, fp16 and bf16. A difference raises ValueError
    when training starts.

    Write "auto" in the DeepSpeed config.

    Source: transformers 4.31 to 5.24, HfTrainerDeepSpeedConfig.trainer_config_process and trainer_config_finalize.
    """
    deepspeed = arguments.deepspeed
    if deepspeed is None:
        return
    for path, name in _DEEPSPEED_NUMBERS.items():
        theirs, mine = deepspeed.at(*path.split(".")), arguments.number(name)
        default = arguments.facts.default(name)
        if not arguments.has(name) and isinstance(default, (int, float)):
            mine = mine.or_when_absent(float(default))
        if mine.known is not None and theirs.number().known_and_not_in([mine.known]):
            yield _mismatch(arguments, theirs, path, name, f"{mine.known:g}")
    for path, name in _DEEPSPEED_SWITCHES.items():
        flag, on = deepspeed.at(*path.split(".")), arguments.switch(name)
        full = arguments.is_on(f"{name}_full_eval")
        off = not arguments.has(name) and arguments.facts.default(name) is False and not full
        if (flag.boolean().is_(True) and (off or (on.is_(False) and not full))) or (
            flag.boolean().is_(False) and on.is_(True)
        ):
            yield _mismatch(arguments, flag, path, name, "true" if on.is_(True) else "false")


def _mismatch(arguments: Arguments, theirs: Field, path: str, name: str, value: str) -> Finding:
    at = arguments.get(name if arguments.has(name) else "deepspeed")
    return arguments.refused(
        at,
        f"{name} is {value}, but the DeepSpeed config has {path}: {theirs.written}",
        help='write "auto" in the DeepSpeed config',
        related=theirs.relate("the value in the DeepSpeed config"),
    )


@rule("FS239", "deepspeed-excludes", stage=Stage.START)
def deepspeed_excludes(arguments: Arguments) -> Iterator[Finding]:
    """An argument does not work with DeepSpeed.

    `save_only_model` with `load_best_model_at_end` raises ValueError, since the best checkpoint could not be loaded; so
    does `auto_find_batch_size` with ZeRO-3 (up to 4.44 with any DeepSpeed).

    Remove one of them.

    Source: transformers 4.31 to 5.24, Trainer.create_accelerator_and_postprocess.
    """
    given = arguments.get("deepspeed")
    if given.is_absent or given.is_unknown or given.text().is_(""):
        return
    only, auto = arguments.switch("save_only_model"), arguments.switch("auto_find_batch_size")
    if only.is_(True) and arguments.switch("load_best_model_at_end").is_(True):
        message = "save_only_model does not work with load_best_model_at_end under DeepSpeed"
        yield arguments.refused(only, message, help="remove one of the two")
    stage = arguments.deepspeed.at("zero_optimization", "stage").integer() if arguments.deepspeed else None
    if auto.is_(True) and (arguments.facts.no_batch_size_search_with_sharding or (stage is not None and stage.is_(3))):
        yield arguments.refused(
            auto, "auto_find_batch_size does not work with DeepSpeed", help="set the batch size yourself"
        )
