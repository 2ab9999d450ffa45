"""Arguments beside a DeepSpeed config."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage
from trainlint.programs.transformers.program import Arguments
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
