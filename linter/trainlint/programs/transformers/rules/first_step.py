"""What the first training step refuses: schedulers, optimizers, batches and checkpointing are only made in train()."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainlint.findings import Finding, Stage, did_you_mean, one_of
from trainlint.programs.transformers.arguments import Arguments
from trainlint.programs.transformers.facts import PLATEAU_SETTINGS
from trainlint.programs.transformers.rules.words import shown
from trainlint.reading import mending
from trainlint.reading.scalars import Dialect, plain_value
from trainlint.reading.values import Field
from trainlint.rule import rule
from trainlint.training.declarations import Spec

# the scheduler

_SQRT = "inverse_sqrt"
_MIN_LR = ("cosine_with_min_lr", "cosine_warmup_with_min_lr")
_SHAPES = ("linear", "cosine", "1-sqrt")
_WORDS = {"warmup_type": _SHAPES, "decay_type": _SHAPES, "mode": ("min", "max"), "threshold_mode": ("rel", "abs")}
_NO_NUMBERS = frozenset({*_WORDS, "verbose"})
_CONVERTED = ("num_cycles",)
"""Numbers that most schedulers convert from text."""


@rule("FS219", "scheduler-settings", stage=Stage.TRAIN)
def scheduler_settings(arguments: Arguments) -> Iterator[Finding]:
    """`lr_scheduler_kwargs` does not fit the scheduler.

    The scheduler is made in train(), from a function that takes only its own settings: an unknown one raises TypeError,
    and so does a missing `num_decay_steps` of warmup_stable_decay (up to 4.48 also `num_stable_steps`).
    cosine_with_min_lr needs `min_lr` or `min_lr_rate`, not both; `lr_end` of polynomial must be below the learning
    rate. A number with an exponent that PyYAML reads as text (`min_lr: 1e-6`) raises TypeError. constant,
    constant_with_warmup and, up to 5.3, inverse_sqrt ignore the settings. Where the DeepSpeed config has a scheduler,
    that one is used; where code of the repository makes the schedule, it may know what the file leaves out.

    Source: transformers 4.36 to 5.24, optimization.get_scheduler and the functions that it calls; torch.
    """
    word, config = arguments.word("lr_scheduler_type"), arguments.get("lr_scheduler_kwargs")
    spec = arguments.facts.schedulers.get(word.known or "")
    own = arguments.deepspeed is not None and arguments.deepspeed.get("scheduler").node is not None
    ignored = word.is_("constant", "constant_with_warmup", "" if arguments.facts.inverse_sqrt_has_settings else _SQRT)
    if spec is None or own or ignored or config.is_unknown or "lr_scheduler_kwargs" not in arguments.facts.fields:
        return
    config = arguments.mapping("lr_scheduler_kwargs") or config
    if config.node is not None and not config.is_mapping and not config.is_null and shown(config) != "empty":
        message = "lr_scheduler_kwargs must be a mapping"
        yield arguments.refused(config, message, help="write its settings below it", at_key=config.is_sequence)
        return
    at = config if config.node is not None and not config.is_null else word.field
    given = {entry.name: entry for entry in config.entries()}
    takes = PLATEAU_SETTINGS if spec.extra.get("open") else frozenset(_listed(spec, "takes"))
    for name, entry in given.items():
        if name not in takes and word.known != "greedy":
            hint = did_you_mean(name, takes) or (
                f"remove it, or write {one_of(sorted(takes))}" if takes else "remove it"
            )
            fix = mending.renamed_to_nearest(entry, takes)
            yield arguments.refused(entry, f"{word} has no setting {name}", help=hint, fix=fix, at_key=True)
        else:
            yield from _setting(arguments, entry, str(word))
    own_schedule = config.node is None and arguments.may_have_own_classes and arguments.reader.schedules
    for name in _listed(spec, "needs") if not own_schedule else ():
        if name not in given:
            message = f"{word} needs {name} in lr_scheduler_kwargs"
            yield arguments.refused(at, message, help=f"add {name}", at_key=at is config)
    if word.is_(*_MIN_LR):
        rates = [given[name] for name in ("min_lr", "min_lr_rate") if name in given and not given[name].is_null]
        if not rates and not own_schedule:
            message = f"{word} needs min_lr or min_lr_rate in lr_scheduler_kwargs"
            yield arguments.refused(at, message, help="add for example min_lr_rate: 0.1", at_key=at is config)
        elif len(rates) > 1:
            message, other = "min_lr and min_lr_rate exclude each other", rates[0].as_other_half
            yield arguments.refused(rates[1], message, help="keep one", related=other, at_key=True)
    if word.is_("polynomial"):
        yield from _end(arguments, given.get("lr_end"))


def _listed(spec: Spec, key: str) -> list[str]:
    value = spec.extra.get(key)
    return [str(name) for name in value] if isinstance(value, list) else []


def _setting(arguments: Arguments, entry: Field, scheduler: str) -> Iterator[Finding]:
    """A setting of a wrong kind: text for a number, or an unknown word."""
    text = entry.text().known
    converted = entry.name in _CONVERTED and scheduler != "cosine_warmup_with_min_lr"
    if converted and text is not None and _as_number(text) is not None:
        return
    words = _WORDS.get(entry.name)
    if words and entry.text().known_and_not_in(words):
        hint = did_you_mean(entry.written, words) or f"write {one_of(words)}"
        fix = mending.respelled(entry, words)
        yield arguments.refused(entry, f"{entry.name} cannot be {shown(entry)}", help=hint, fix=fix)
    elif text is not None and entry.name not in _NO_NUMBERS:
        exponent = isinstance(plain_value(text, Dialect.PYYAML), str) and _as_number(text) is not None
        help = "PyYAML needs a dot and a signed exponent to read a number" if exponent else "write a number"
        fix = mending.numbered(entry)
        yield arguments.refused(entry, f'{entry.name} is the text "{text}", not a number', help=help, fix=fix)


def _end(arguments: Arguments, end: Field | None) -> Iterator[Finding]:
    rate = arguments.number("learning_rate")
    default = arguments.facts.default("learning_rate")
    if arguments.is_left_out("learning_rate") and isinstance(default, float):
        rate = rate.or_when_absent(default)
    last = end.number().known if end is not None else 1e-7
    if rate.known is not None and last is not None and rate.known >= 0 and rate.known <= last:
        at = end if end is not None else arguments.get("learning_rate")
        message = f"lr_end {last:g} must be below learning_rate {rate.known:g}"
        yield arguments.refused(at, message, help="lower lr_end")


def _as_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# the optimizer

_CHECKED_RATE = ("adamw_torch", "sgd", "adagrad", "rmsprop", "adamw_hf")
"""The optimizers that check their learning rate; their other forms have longer names."""


@rule("FS220", "optimizer-settings", stage=Stage.TRAIN)
def optimizer_settings(arguments: Arguments) -> Iterator[Finding]:
    """A number of the optimizer is out of range, or `optim_args` cannot be read.

    The optimizer is made in train(): torch raises ValueError for a negative learning rate, TypeError for a null, and
    AdamW for betas outside 0 to 1 (1 is refused) and a negative epsilon. `optim_args` is split at commas and each part
    at its equals sign. Where the DeepSpeed config has an optimizer, that one is used.

    Source: transformers 4.31 to 5.24, Trainer.get_optimizer_cls_and_kwargs; torch.optim.
    """
    named = arguments.word("optim")
    optimizer = named.known or ("adamw_torch" if named.absent else "")
    if arguments.deepspeed is not None and arguments.deepspeed.get("optimizer").node is not None:
        return
    rate = arguments.number("learning_rate")
    if optimizer.startswith(_CHECKED_RATE) and rate.field.is_null and arguments.has("learning_rate"):
        yield arguments.refused(rate, "learning_rate cannot be null", help="remove it, or write a number")
    if optimizer.startswith(_CHECKED_RATE) and rate.known_and(lambda number: not number >= 0):
        yield arguments.refused(rate, "learning_rate must not be negative", help="write for example 2.0e-5")
    for name in ("adam_beta1", "adam_beta2") if optimizer.startswith("adamw_torch") else ():
        beta = arguments.number(name)
        if beta.known_and(lambda number: not 0 <= number < 1):
            yield arguments.refused(beta, f"{name} must be at least 0 and below 1", help="write for example 0.9")
    epsilon = arguments.number("adam_epsilon")
    if optimizer.startswith("adamw_torch") and epsilon.known_and(lambda number: number < 0):
        yield arguments.refused(epsilon, "adam_epsilon must not be negative", help="write for example 1.0e-8")
    given = arguments.own("optim_args")
    # What is false in Python counts as none.
    if (given.plain or any(given.entries()) or given.items()) and given.text().wrong_type:
        help = "write one text, such as fused=True,foreach=False"
        at_key = given.is_mapping or given.is_sequence
        yield arguments.refused(given, "optim_args must be text", help=help, at_key=at_key)
    parts = given.text().known
    for part in parts.replace(" ", "").split(",") if parts else ():
        if part.count("=") != 1:
            message = f'optim_args cannot read "{part}"'
            yield arguments.refused(given, message, help="write name=value, with commas between them")
            break


# batches and workers


@rule("FS221", "step-numbers", stage=Stage.TRAIN, follows=("FS205",))
def step_numbers(arguments: Arguments) -> Iterator[Finding]:
    """A number of batches, steps or workers, or the seed, is too small for the first step.

    The data loader takes a batch size of 1 or more and no negative number of workers; `dataloader_persistent_workers`
    needs workers. `gradient_accumulation_steps: 0` and, up to 4.49, `torch_empty_cache_steps: 0` divide by zero. Since
    5.3 a null `max_grad_norm` raises TypeError: 0 turns clipping off. numpy takes no negative seed, which raises when
    the trainer is made; torch makes no negative noise (`neftune_noise_alpha`).

    Source: transformers 4.31 to 5.24, Trainer.get_train_dataloader and training loop; torch.utils.data.DataLoader.
    """
    batch = arguments.number("per_device_train_batch_size")
    if batch.known_and(lambda number: number < 1 and number % 1 == 0):
        yield arguments.refused(batch, "per_device_train_batch_size must be 1 or more", help="write 1 or more")
    evaluation = arguments.number("per_device_eval_batch_size")
    evaluates = arguments.eval_strategy.known_and_not_in(("no",))
    if evaluates and evaluation.known_and(lambda number: number < 1 and number % 1 == 0):
        yield arguments.refused(evaluation, "per_device_eval_batch_size must be 1 or more", help="write 1 or more")
    if evaluates and arguments.number("eval_accumulation_steps").is_(0):
        at = arguments.get("eval_accumulation_steps")
        yield arguments.refused(at, "eval_accumulation_steps: 0 divides by zero", help="remove it, or write 1 or more")
    if arguments.number("gradient_accumulation_steps").is_(0):
        at = arguments.get("gradient_accumulation_steps")
        yield arguments.refused(at, "gradient_accumulation_steps must be 1 or more", help="write 1 or more")
    workers = arguments.number("dataloader_num_workers")
    if workers.known_and(lambda number: number < 0):
        yield arguments.refused(workers, "dataloader_num_workers must not be negative", help="write 0 or more")
    persistent = arguments.own("dataloader_persistent_workers")
    none = workers.is_(0) or arguments.is_left_out("dataloader_num_workers")
    if none and persistent.node is not None and arguments.switch("dataloader_persistent_workers").is_(True):
        message = "dataloader_persistent_workers needs worker processes"
        yield arguments.refused(persistent, message, help="set dataloader_num_workers above 0, or remove it")
    noise = arguments.number("neftune_noise_alpha")
    if "neftune_noise_alpha" in arguments.facts.fields and noise.known_and(lambda number: number < 0):
        yield arguments.refused(noise, "neftune_noise_alpha must not be negative", help="write 0 or more, or remove it")
    seed = arguments.number("seed")
    if seed.known_and(lambda number: number < 0 or number >= 2**32):
        help = "write 0 or more"
        yield arguments.refused(seed, "seed must be at least 0 and below 2**32", help=help, stage=Stage.START)
    cache = arguments.own("torch_empty_cache_steps")
    if cache.number().is_(0) and not arguments.facts.empty_cache_steps_checked:
        yield arguments.refused(
            cache, "torch_empty_cache_steps: 0 divides by zero", help="remove it, or write 1 or more"
        )
    clipping = arguments.get("max_grad_norm")
    if arguments.facts.clipping_compared and clipping.is_null and arguments.has("max_grad_norm"):
        yield arguments.refused(clipping, "max_grad_norm cannot be null", help="write 0 to turn clipping off")


@rule("FS222", "text-for-labels", stage=Stage.TRAIN)
def text_for_labels(arguments: Arguments) -> Iterator[Finding]:
    """`label_names` is text where a list is needed.

    The Trainer adds it to the columns that it keeps, and a text cannot be added to a list: TypeError. Only with
    `remove_unused_columns: false` is it not used there.

    Write a list.

    Source: transformers 4.31 to 5.24, Trainer._set_signature_columns_if_needed.
    """
    labels = arguments.get("label_names")
    keeps = arguments.switch("remove_unused_columns").is_(False)
    if arguments.facts.program == "transformers" and labels.text().known and not keeps:
        fix = mending.listed(labels)
        yield arguments.refused(labels, "label_names must be a list", help=f"write [{labels.written}]", fix=fix)


# gradient checkpointing

_CHECKPOINT = frozenset(
    {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
)


@rule(
    "FS223",
    "checkpointing-settings",
    stage=Stage.TRAIN,
    varies="warning where the key is passed on to layers, which may ignore it",
)
def checkpointing_settings(arguments: Arguments) -> Iterator[Finding]:
    """`gradient_checkpointing_kwargs` is no mapping, or has a key that torch does not know.

    They are passed to torch.utils.checkpoint.checkpoint, which refuses what it does not know; with
    `use_reentrant: false` it passes that on to the layers, most of which ignore it. TRL's SFT has a key `selective`
    since 1.15.

    Source: transformers 4.35 to 5.24, PreTrainedModel.gradient_checkpointing_enable; torch.utils.checkpoint.
    """
    name = arguments.checkpointing_settings_name
    config = arguments.own(name)
    if config.is_absent or config.is_unknown or not arguments.checkpoints_gradients:
        return
    config = arguments.mapping(name) or config
    # What is false in Python counts as none in later releases.
    if not config.is_mapping and (config.plain or config.items()):
        message = f"{name} must be a mapping"
        help = "write for example use_reentrant: false below it"
        yield arguments.refused(config, message, help=help, at_key=config.is_sequence)
    own = arguments.own_checkpointing_settings
    passed_on = config.get("use_reentrant").boolean().is_(False)
    for entry in config.entries():
        if entry.name not in _CHECKPOINT and entry.name not in own:
            hint = did_you_mean(entry.name, _CHECKPOINT) or "write use_reentrant, or remove it"
            message = f"checkpointing has no setting {entry.name}"
            say = arguments.warned if passed_on else arguments.refused
            yield say(entry, message, help=hint, fix=mending.renamed_to_nearest(entry, _CHECKPOINT), at_key=True)
