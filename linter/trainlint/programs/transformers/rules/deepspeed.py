"""Arguments beside a DeepSpeed config."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage
from trainlint.programs.transformers.arguments import Arguments
from trainlint.programs.transformers.facts import FILLED, FILLED_OF_AMP
from trainlint.reading.values import Field
from trainlint.rule import rule

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


@rule("FS238", "deepspeed-mismatch", stage=Stage.PREPARE)
def deepspeed_mismatch(arguments: Arguments) -> Iterator[Finding]:
    """The DeepSpeed config and the training arguments have different values.

    The Trainer fills in each "auto" in the DeepSpeed config and compares the rest with its own arguments, given or
    default: batch size, accumulation, clipping, the optimizer's settings, warm-up and steps, fp16 and bf16. A
    difference raises ValueError when training starts. A number in quotes is a text, which differs from each number.
    `train_batch_size` is that of all processes, and must be a multiple of batch size times accumulation.

    Write "auto" in the DeepSpeed config.

    Source: transformers 4.31 to 5.24, HfTrainerDeepSpeedConfig.trainer_config_process and trainer_config_finalize.
    """
    deepspeed = arguments.deepspeed
    if deepspeed is None:
        return
    for path, name in _DEEPSPEED_NUMBERS.items():
        theirs, mine = deepspeed.at(*path.split(".")), arguments.number(name)
        default = arguments.facts.default(name)
        if arguments.is_left_out(name) and isinstance(default, (int, float)):
            mine = mine.or_when_absent(float(default))
        if mine.known is not None and _differs(theirs, mine.known):
            yield _mismatch(arguments, theirs, path, name, f"{mine.known:g}")
    for path, name in _DEEPSPEED_SWITCHES.items():
        flag, on = deepspeed.at(*path.split(".")), arguments.switch(name)
        full = arguments.is_on(f"{name}_full_eval")
        off = arguments.is_left_out(name) and arguments.facts.default(name) is False and not full
        word = flag.text().known_and_not_in(("auto",))
        if (flag.boolean().is_(True) and (off or (on.is_(False) and not full))) or (
            (flag.boolean().is_(False) or word) and on.is_(True)
        ):
            yield _mismatch(arguments, flag, path, name, "true" if on.is_(True) else "false")

    yield from _whole_batch(arguments, deepspeed.get("train_batch_size"))
    yield from _betas(arguments, deepspeed.at("optimizer", "params", "betas"))
    yield from _schedule(arguments, deepspeed.at("scheduler", "params"))


def _whole_batch(arguments: Arguments, total: Field) -> Iterator[Finding]:
    """The batch of all processes, whose number is not known, is that of one process times their number."""
    size, steps = (_number(arguments, name) for name in ("per_device_train_batch_size", "gradient_accumulation_steps"))
    whole = total.number().known
    if whole is None or not size or not steps or arguments.is_on("auto_find_batch_size") or not whole % (size * steps):
        return
    name = "per_device_train_batch_size"
    at = arguments.get(name if arguments.has(name) else "deepspeed")
    yield arguments.refused(
        at,
        f"train_batch_size {whole:g} of the DeepSpeed config is no multiple of batch × accumulation, {size * steps:g}",
        help='write "auto" in the DeepSpeed config',
        related=total.relate("the value in the DeepSpeed config"),
    )


def _betas(arguments: Arguments, theirs: Field) -> Iterator[Finding]:
    given = [item.number().known for item in theirs.items()]
    mine = [_number(arguments, name) for name in ("adam_beta1", "adam_beta2")]
    single = isinstance(theirs.plain, (bool, int, float))
    if None not in mine and (single or (None not in given and theirs.is_sequence and given != mine)):
        name = "adam_beta1" if given[:1] != mine[:1] else "adam_beta2"
        at = arguments.get(name if arguments.has(name) else "deepspeed")
        message = f"the betas are {mine[0]:g} and {mine[1]:g}, but the DeepSpeed config has others"
        related = theirs.relate("the values in the DeepSpeed config")
        yield arguments.refused(at, message, help='write "auto" in the DeepSpeed config', related=related)


def _schedule(arguments: Arguments, params: Field) -> Iterator[Finding]:
    """The steps of the scheduler, where the arguments give them."""
    total = arguments.number("max_steps").known
    warmup, ratio = _number(arguments, "warmup_steps"), _number(arguments, "warmup_ratio") or 0
    theirs = params.get("warmup_num_steps")
    mine = warmup if warmup and warmup >= 1 else 0 if warmup == 0 and not ratio else None
    accepted = (mine,) if mine else (0, 1)
    if mine is not None and _differs(theirs, *accepted):
        yield _mismatch(arguments, theirs, "scheduler.params.warmup_num_steps", "warmup_steps", f"{mine:g}")
    steps = params.get("total_num_steps")
    if total is not None and total > 0 and _differs(steps, total):
        yield _mismatch(arguments, steps, "scheduler.params.total_num_steps", "max_steps", f"{total:g}")


def _differs(theirs: Field, *accepted: float) -> bool:
    """The value is none of these numbers.

    A boolean is 1 or 0; a text but "auto" never equals a number, whatever it says, nor does a list or a mapping.
    """
    if theirs.is_mapping or theirs.is_sequence or isinstance(theirs.plain, bool):
        return theirs.plain not in accepted
    return theirs.number().known_and_not_in(accepted) or theirs.text().known_and_not_in(("auto",))


def _number(arguments: Arguments, name: str) -> float | None:
    """A number as given, or its default."""
    value, default = arguments.number(name), arguments.facts.default(name)
    if not arguments.is_left_out(name) or not isinstance(default, (int, float)):
        return value.known
    return float(default)


def _mismatch(arguments: Arguments, theirs: Field, path: str, name: str, value: str) -> Finding:
    at = arguments.get(name if arguments.has(name) else "deepspeed")
    quoted = f'"{theirs.written}"' if theirs.text().known is not None else theirs.written
    return arguments.refused(
        at,
        f"{name} is {value}, but the DeepSpeed config has {path}: {quoted}",
        help='write "auto" in the DeepSpeed config',
        related=theirs.relate("the value in the DeepSpeed config"),
    )


@rule("FS239", "deepspeed-excludes", stage=Stage.START)
def deepspeed_excludes(arguments: Arguments) -> Iterator[Finding]:
    """An argument does not work with DeepSpeed.

    `save_only_model` with `load_best_model_at_end` raises ValueError, since the best checkpoint could not be loaded; so
    does `auto_find_batch_size` with ZeRO-3 (up to 4.44 with any DeepSpeed). In 4.57 `optim: adafactor` does not work
    with an optimizer in the DeepSpeed config, before that the argument `adafactor` does not.

    Remove one of them.

    Source: transformers 4.31 to 5.24, Trainer.create_accelerator_and_postprocess.
    """
    given = arguments.get("deepspeed")
    if given.is_absent or given.is_unknown or given.text().is_(""):
        return
    only, auto = arguments.switch("save_only_model"), arguments.switch("auto_find_batch_size")
    if only.is_(True) and arguments.switch("load_best_model_at_end").is_(True):
        message = "save_only_model does not work with load_best_model_at_end under DeepSpeed"
        other = arguments.get("load_best_model_at_end").as_other_half
        yield arguments.refused(only, message, help="remove one of the two", related=other)
    own = arguments.deepspeed.get("optimizer") if arguments.deepspeed else None
    name = "optim" if arguments.facts.adafactor_excludes_optimizer else "adafactor"
    adafactor = arguments.get("optim").text().is_("adafactor") if name == "optim" else arguments.is_on("adafactor")
    if own is not None and own.node is not None and adafactor:
        message = f"{name} does not work with an optimizer in the DeepSpeed config"
        help, related = "remove one of the two", own.relate("the optimizer")
        yield arguments.refused(arguments.own(name), message, help=help, related=related, stage=Stage.PREPARE)
    stage = arguments.deepspeed.at("zero_optimization", "stage").integer() if arguments.deepspeed else None
    if auto.is_(True) and (arguments.facts.no_batch_size_search_with_sharding or (stage is not None and stage.is_(3))):
        message, help = "auto_find_batch_size does not work with DeepSpeed", "set the batch size yourself"
        yield arguments.refused(auto, message, help=help, related=given.as_other_half)


@rule("FS225", "deepspeed-form", stage=Stage.LOAD)
def deepspeed_form(arguments: Arguments) -> Iterator[Finding]:
    """`deepspeed` is not a DeepSpeed config, or one without ZeRO.

    It is the name of a JSON file, the text of a JSON object, or a mapping; anything else is opened as a file and raises
    TypeError or OSError. A file that is no JSON, or holds no object, raises when TrainingArguments is made, and so does
    a config without `zero_optimization`.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__; accelerate, HfDeepSpeedConfig and
    DeepSpeedPlugin.__post_init__.
    """
    given, config = arguments.get("deepspeed"), arguments.deepspeed
    if given.is_sequence or given.number().known or given.boolean().is_(True):
        message = "deepspeed must name a file or hold a mapping"
        yield arguments.refused(given, message, help="write the name of a JSON file", at_key=given.is_sequence)
    elif arguments.trouble is not None:
        related = given.relate("this file uses it")
        message = f"the DeepSpeed config cannot be read: {arguments.trouble.reason}"
        place, fix = arguments.trouble.field, arguments.trouble.fix
        yield arguments.refused(place, message, help="write one JSON object", related=related, fix=fix)
    elif config is not None and config.is_mapping and config.get("zero_optimization").node is None:
        message = "the DeepSpeed config has no zero_optimization"
        help = "add zero_optimization with a stage, such as 2"
        yield arguments.refused(given, message, help=help, at_key=True)


@rule("FS226", "deepspeed-auto-not-filled", stage=Stage.PREPARE)
def deepspeed_auto(arguments: Arguments) -> Iterator[Finding]:
    """The DeepSpeed config has an "auto" that nobody fills in.

    The Trainer and accelerate fill in the batch sizes, accumulation, clipping, precision, the usual settings of
    optimizer and scheduler, and some of ZeRO; up to 4.57 also those of `amp`. Any other "auto" raises ValueError when
    the engine is made.

    Write a value.

    Source: transformers 4.33 to 5.24, HfTrainerDeepSpeedConfig; accelerate, DeepSpeedPlugin.fill_match.
    """
    if arguments.deepspeed is None:
        return
    filled = FILLED | (FILLED_OF_AMP if arguments.facts.fills_amp else frozenset())
    sections: dict[str, list[tuple[str, Field]]] = {}
    for path, place in _autos(arguments.deepspeed, ""):
        if path not in filled:
            sections.setdefault(path.rpartition(".")[0] or path, []).append((path, place))
    for (path, place), *others in sections.values():
        related = arguments.get("deepspeed").relate("this file uses it")
        more = tuple(one for other, at in others for one in at.relate(f"nor for {other}"))
        yield arguments.refused(
            place, f'nobody fills in "auto" for {path}', help="write a value", related=(*related, *more)
        )


def _autos(section: Field, path: str) -> Iterator[tuple[str, Field]]:
    """The places below a section that hold "auto"."""
    for entry in section.entries():
        name = f"{path}.{entry.name}" if path else entry.name
        if entry.text().is_("auto"):
            yield name, entry
        else:
            yield from _autos(entry, name)
