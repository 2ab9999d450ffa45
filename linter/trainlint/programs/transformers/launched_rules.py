"""The rules on training arguments together with the launch that starts them."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage
from trainlint.programs.accelerate.facts import FILE_SETTINGS
from trainlint.programs.transformers.program import LaunchedArguments
from trainlint.programs.transformers.setup import fsdp_setup
from trainlint.reading.values import Field
from trainlint.records import replace
from trainlint.rule import rule
from trainlint.training.deepspeed import AUTO

_NUMBERS = {
    "train_micro_batch_size_per_gpu": "per_device_train_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_clipping": "max_grad_norm",
    "optimizer.params.lr": "learning_rate",
    "optimizer.params.weight_decay": "weight_decay",
    "optimizer.params.eps": "adam_epsilon",
    "scheduler.params.warmup_max_lr": "learning_rate",
}
"""What the Trainer compares, by its name in the DeepSpeed config."""


@rule(
    "FS166",
    "launched-deepspeed-mismatch",
    stage=Stage.PREPARE,
    varies="warning where the launch overrules the argument without a message",
)
def launched_deepspeed_mismatch(run: LaunchedArguments) -> Iterator[Finding]:
    """The launcher's DeepSpeed settings and the training arguments have different values.

    Under a launch with DeepSpeed the Trainer takes the launcher's settings, fills in what is "auto" there, and compares
    the rest with its own arguments, given or default: accumulation, clipping, batch size, the optimizer's settings,
    fp16 and bf16. A difference raises when training starts.

    Write the value once: "auto" in the DeepSpeed config, or no `gradient_accumulation_steps` and `gradient_clipping` in
    the launcher's file.

    Source: transformers, HfTrainerDeepSpeedConfig.trainer_config_process; accelerate, DeepSpeedPlugin.
    """
    if run.launch.config.launcher != "deepspeed" or run.has_own_deepspeed:
        return
    for path, name in _NUMBERS.items():
        theirs = _setting(run, path)
        if theirs is None or theirs.is_absent or theirs.plain == AUTO or name in run.given:
            continue
        default = run.arguments.facts.default(name)
        mine = run.arguments.number(name)
        if run.arguments.is_left_out(name) and isinstance(default, (int, float)):
            mine = mine.or_when_absent(float(default))
        off = path == "gradient_clipping" and run.launch.deepspeed is None and theirs.number().is_(0)
        if mine.known is not None and theirs.number().known_and_not_in([mine.known]) and not off:
            yield _mismatch(run, theirs, path, name, f"{mine.known:g}")
    yield from _precision(run)


def _setting(run: LaunchedArguments, path: str) -> Field | None:
    """The launcher's value of a DeepSpeed setting: from the config that its file names, else from its section."""
    if not run.launch.named.is_absent:
        return run.launch.deepspeed.at(*path.split(".")) if run.launch.deepspeed is not None else None
    section = ("gradient_accumulation_steps", "gradient_clipping")
    return run.launch.config.deepspeed(path, run.launch.facts) if path in section else None


def _precision(run: LaunchedArguments) -> Iterator[Finding]:
    """fp16 or bf16 is on for DeepSpeed alone."""
    arguments, names = run.arguments, ("fp16", "bf16")
    if any(name in run.given or f"{name}_full_eval" in run.given for name in names):
        return

    def is_off(name: str) -> bool:
        by_default = arguments.is_left_out(name) and arguments.facts.default(name) is False
        return (arguments.switch(name).is_(False) or by_default) and not arguments.is_on(f"{name}_full_eval")

    for name in names:
        switched = run.launch.deepspeed.get(name).get("enabled") if run.launch.deepspeed is not None else None
        if switched is not None and switched.boolean().is_(True) and is_off(name):
            yield _mismatch(run, switched, f"{name}.enabled", name, "false")
    precision = run.launch.config.key("mixed_precision")
    word = precision.written.lower()
    if run.launch.named.is_absent and word in names and all(map(is_off, names)):
        yield _mismatch(run, precision, "mixed_precision", word, "false")


def _mismatch(run: LaunchedArguments, theirs: Field, path: str, name: str, value: str) -> Finding:
    arguments, switched = run.arguments, name in ("fp16", "bf16")
    finding = arguments.refused(
        arguments.get(name),
        f"{name} is {value}, but the launch has {path}: {theirs.written}",
        help=f"write {name}: true" if switched else "write the same in both, or leave the launcher's out",
        related=theirs.relate("the launcher's value"),
    )
    return finding if arguments.has(name) else replace(finding, severity=Severity.WARNING)


@rule("FS167", "fsdp-twice", stage=Stage.RUN, severity=Severity.WARNING)
def fsdp_twice(run: LaunchedArguments) -> Iterator[Finding]:
    """Both the launcher's file and the training arguments shard the model.

    The arguments win: `fsdp` and `fsdp_config` replace what the launcher's `fsdp_config` says, also with defaults where
    they say nothing.

    Write the settings in one of the two files.

    Source: transformers, TrainingArguments.__post_init__.
    """
    field, setup = run.arguments.get("fsdp"), fsdp_setup(run.arguments)
    if run.launch.config.runs.is_("FSDP") and "fsdp" not in run.given and setup is not None and setup.on:
        yield field.finding(
            f"fsdp replaces the fsdp_config of {run.launch.config.field.document.path}",
            help="remove it, and keep the launcher's settings",
            related=run.launch.config.fsdp_config.relate("the launcher's settings"),
        )


@rule("FS168", "deepspeed-twice", stage=Stage.LOAD)
def deepspeed_twice(run: LaunchedArguments) -> Iterator[Finding]:
    """The training arguments name a DeepSpeed config, and the launcher's file has DeepSpeed settings of its own.

    The arguments make a DeepSpeed plugin of the config that they name. It refuses the settings that the launcher passes
    on, as it refuses them beside `deepspeed_config_file`, and `mixed_precision`, too.

    Remove `deepspeed` from the arguments, or launch without DeepSpeed: the arguments switch it on by themselves.

    Source: transformers, TrainingArguments.__post_init__; accelerate, DeepSpeedPlugin._deepspeed_config_checks.
    """
    named = run.has_own_deepspeed and run.arguments.has("deepspeed")
    if run.launch.config.launcher != "deepspeed" or not named or "deepspeed" in run.given:
        return
    section = run.launch.config.field.get("deepspeed_config")
    given = [section.get(name) for name in FILE_SETTINGS if section.get(name).node is not None]
    precision = run.launch.config.field.get("mixed_precision")
    flagged = run.launch.config.launch is not None and run.launch.config.launch.flag("mixed_precision") is not None
    if not precision.is_absent and not flagged:
        given.append(precision)
    if given:
        path = run.launch.config.field.document.path
        yield run.arguments.refused(
            run.arguments.get("deepspeed"),
            f"deepspeed cannot stand beside {given[0].name} of {path}",
            help=f"remove deepspeed, or launch without the DeepSpeed of {path}",
            related=given[0].relate("the launcher's setting"),
        )
