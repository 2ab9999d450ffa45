"""The rules on how a recipe trains: device, precision, memory, steps and processes."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage, did_you_mean, one_of
from trainlint.programs.torchtune import mended
from trainlint.programs.torchtune.facts import DEVICES, DTYPES, FALSE_WORDS, LATER_SETTINGS, SWITCHES, TorchtuneFacts
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.reading.scalars import Plain
from trainlint.rule import rule


@rule("TT308", "unsupported-dtype", stage=Stage.START)
def unsupported_dtype(settings: RecipeSettings) -> Iterator[Finding]:
    """The dtype is unknown, or the recipe does not train in it.

    torchtune only knows the names bf16, fp32, fp64 and fp16 (not bfloat16, not an enum's name such as DataType.BF16),
    and every recipe that trains refuses fp16.

    Source: get_dtype and the constructors of the recipes, torchtune 0.4.0 to 0.6.1.
    """
    dtype = settings.at("dtype")
    if settings.recipe is None or not settings.reads("dtype"):
        return
    if dtype.wrong_type:
        yield settings.refusal(dtype, message="dtype must be a name", help=f"write {one_of(DTYPES[:2])}")
    elif dtype.known_and_not_in(DTYPES):
        word = str(dtype.known).lower().rpartition(".")[2]
        same = _DTYPE_WORDS.get(word)
        yield settings.refusal(
            dtype,
            message=f"torchtune has no dtype {dtype.known}",
            help=f"write {same}" if same else _HALF.get(word, f"write {one_of(DTYPES[:2])}"),
            fix=mended.worded(dtype, same) if same else None,
        )
    elif dtype.is_("fp16") and settings.checks("fp16"):
        yield settings.refusal(
            dtype, message=f"{settings.recipe.name} refuses to train in fp16", help="write bf16 or fp32"
        )


_DTYPE_WORDS = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float32": "fp32",
    "fp32": "fp32",
    "float64": "fp64",
    "fp64": "fp64",
}
_HALF = dict.fromkeys(("float16", "fp16", "half"), "write bf16; fp16 is refused")


@rule("TT309", "activation-offloading", stage=Stage.START)
def activation_offloading(settings: RecipeSettings) -> Iterator[Finding]:
    """Activation offloading is on without what it needs.

    Recipes that offload activations raise unless activation checkpointing is on too, and unless they train on CUDA.
    Some shipped configs have checkpointing off (those of llama3_2/1B), so switching only offloading on fails.

    Source: the constructors of the recipes, torchtune 0.4.0 to 0.6.1 (lora_dpo and qat_distributed since 0.5.0).
    """
    offloading = settings.at("enable_activation_offloading")
    if not offloading.truth().is_(True):
        return
    checkpointing = settings.at("enable_activation_checkpointing")
    device = settings.at("device")
    if settings.checks("offloading-device") and device.text().known_and(_is_other_device):
        yield settings.refusal(
            offloading,
            device,
            message=f"activation offloading works only on CUDA, not on {device.text()}",
            help="set enable_activation_offloading: False",
            fix=mended.written(offloading, "False", sure=False),
        )
    elif settings.checks("offloading-checkpointing") and (
        checkpointing.truth().absent or checkpointing.truth().is_(False)
    ):
        yield settings.refusal(
            offloading,
            checkpointing,
            message="activation offloading needs activation checkpointing",
            help="set enable_activation_checkpointing: True, or enable_activation_offloading: False",
        )


def _is_other_device(text: str) -> bool:
    kind = text.partition(":")[0]
    return kind in DEVICES and kind != "cuda"


@rule("TT310", "optimizer-in-backward", stage=Stage.START)
def optimizer_in_backward(settings: RecipeSettings) -> Iterator[Finding]:
    """The optimizer steps in the backward pass, which excludes gradient accumulation and clipping.

    With `optimizer_in_bwd` each gradient is used up at once, so there is nothing to accumulate or clip: the full
    fine-tunes raise when gradient_accumulation_steps is above 1 or clip_grad_norm is not null. The shipped
    single-device configs have it on. LoRA recipes do not read it.

    Source: the constructors of the recipes, torchtune 0.4.0 to 0.6.1 (qat_distributed since 0.5.0).
    """
    in_backward = settings.at("optimizer_in_bwd")
    if not in_backward.truth().is_(True):
        return
    clipping, steps = settings.at("clip_grad_norm"), settings.at("gradient_accumulation_steps")
    clips = settings.checks("in-backward-clip") and clipping.given and not clipping.unknown
    if settings.checks("in-backward-accumulation") and steps.number().known_and(lambda number: number > 1):
        yield settings.refusal(
            steps,
            *([clipping] if clips else []),
            in_backward,
            message=f"gradients cannot be accumulated{', nor clipped,' if clips else ''} with optimizer_in_bwd",
            help="set gradient_accumulation_steps to 1, or optimizer_in_bwd to False"
            if not clips
            else "set optimizer_in_bwd to False",
        )
    elif clips:
        yield settings.refusal(
            clipping,
            in_backward,
            message="gradients cannot be clipped with optimizer_in_bwd",
            help="set clip_grad_norm to null, or optimizer_in_bwd to False",
        )


@rule("TT311", "tensor-parallel", stage=Stage.START)
def tensor_parallel(settings: RecipeSettings) -> Iterator[Finding]:
    """Tensor parallelism is on without what it needs.

    full_finetune_distributed splits a model over tensor_parallel_dim processes: it raises without a
    tensor_parallel_plan, with a fused optimizer, and where the number of processes is not a multiple of it. Other
    recipes do not read the setting.

    Source: full_finetune_distributed of torchtune 0.6.1.
    """
    dim = settings.at("tensor_parallel_dim")
    size = dim.number().known
    if size is None or size <= 1:
        return
    plan, fused = settings.at("tensor_parallel_plan"), settings.at("optimizer.fused")
    if settings.checks("tensor-parallel-plan") and not plan.given:
        yield settings.refusal(
            dim,
            message="tensor parallelism needs a tensor_parallel_plan",
            help="add tensor_parallel_plan with the _component_ of the model's plan",
        )
    elif settings.checks("tensor-parallel-world") and settings.world_size is not None and settings.world_size % size:
        yield settings.refusal(
            dim,
            message=f"{settings.world_size} processes are not a multiple of tensor_parallel_dim {dim.value}",
            help="change tensor_parallel_dim or the number of processes",
        )
    elif settings.checks("tensor-parallel-fused") and fused.truth().is_(True):
        yield settings.refusal(
            dim,
            fused,
            message="tensor parallelism does not work with a fused optimizer",
            help="set optimizer.fused: False",
        )


@rule("TT312", "unsupported-compile", stage=Stage.START)
def unsupported_compile(settings: RecipeSettings) -> Iterator[Finding]:
    """The recipe refuses to compile the model.

    Quantization-aware training raises with `compile: True`; single-device recipes raise with it on an NPU.

    Source: qat_distributed and qat_lora_finetune_distributed of torchtune 0.5.0 and 0.6.1; setup of the single-device
    recipes, 0.5.0 and 0.6.1.
    """
    compile = settings.at("compile")
    if settings.recipe is None or not compile.truth().is_(True):
        return
    if settings.checks("compile"):
        message = f"{settings.recipe.name} cannot compile"
    elif settings.checks("npu-compile") and settings.at("device").text().is_("npu"):
        message = "a model cannot be compiled on an NPU"
    else:
        return
    fix = mended.written(compile, "False", sure=False)
    yield settings.refusal(compile, message=message, help="set compile: False", fix=fix)


@rule("TT318", "ppo-batches", stage=Stage.START)
def ppo_batches(settings: RecipeSettings) -> Iterator[Finding]:
    """The batch sizes of PPO are not multiples of one another.

    batch_size must be a multiple of forward_batch_size and of ppo_batch_size, ppo_batch_size a multiple of
    gradient_accumulation_steps, and num_steps at least batch_size.

    Source: ppo_full_finetune_single_device of torchtune 0.4.0 to 0.6.1.
    """
    for check, larger, smaller in (
        ("ppo-forward-batch", "batch_size", "forward_batch_size"),
        ("ppo-batch", "batch_size", "ppo_batch_size"),
        ("ppo-accumulation", "ppo_batch_size", "gradient_accumulation_steps"),
    ):
        whole, part = settings.at(larger), settings.at(smaller)
        if settings.checks(check) and (whole.number().known or 0) % (part.number().known or 1):
            yield settings.refusal(
                part,
                whole,
                message=f"{larger} {whole.value} is not a multiple of {smaller} {part.value}",
                help="change one of the two",
            )
    steps, batch = settings.at("num_steps"), settings.at("batch_size")
    if settings.checks("ppo-steps") and (steps.number().known or 1) < (batch.number().known or 0):
        message = f"num_steps {steps.value} is below batch_size {batch.value}"
        yield settings.refusal(steps, batch, message=message, help=f"set num_steps to {batch.value} or more")


@rule("TT325", "unknown-device", stage=Stage.START)
def unknown_device(settings: RecipeSettings) -> Iterator[Finding]:
    """The device is not one that torch knows.

    A device is cuda, cpu, xpu, mps or npu, with or without an index after a colon; `gpu` is not one. It is the first
    setting that a recipe reads.

    Source: the recipes of torchtune 0.4.0 to 0.6.1; torch.device of torch 2.13.
    """
    device = settings.at("device")
    kind, _, index = (device.text().known or "").partition(":")
    if settings.reads("device") and (device.wrong_type or _no_device(device.value.known)):
        yield settings.refusal(device, message="device must be a name", help="write cuda or cpu")
    elif settings.reads("device") and kind and (kind not in DEVICES or not (index.isdigit() or not index)):
        yield settings.refusal(
            device,
            message=f"torch has no device {device.text()}",
            help="write cuda" if kind in ("gpu", "nvidia") else did_you_mean(kind, DEVICES) or "write cuda or cpu",
            fix=mended.worded(device, f"cuda:{index}" if index else "cuda") if kind in ("gpu", "nvidia") else None,
        )


def _no_device(plain: Plain) -> bool:
    """A value that torch.device refuses; a number from 0 on is the index of a GPU."""
    return plain == "" or isinstance(plain, (bool, float)) or (isinstance(plain, int) and plain < 0)


@rule("TT351", "device-index", stage=Stage.START)
def device_index(settings: RecipeSettings) -> Iterator[Finding]:
    """The device has an index, although each process has a GPU of its own.

    A process that torchrun starts uses the GPU of its local rank, and raises when `device` names another.

    Source: _validate_device_from_env of torchtune 0.4.0 to 0.6.1.
    """
    device = settings.at("device")
    kind, _, index = (device.text().known or "").partition(":")
    if settings.recipe is None or not settings.recipe.distributed or kind == "cpu" or not index.isdigit():
        return
    if settings.reads("device") and (int(index) > 0 or (settings.world_size or 1) > 1):
        message = f"device {device.text()} is that of one process only"
        fix = mended.worded(device, kind)
        yield settings.refusal(device, message=message, help=f"write {kind}: each process takes its own", fix=fix)


@rule("TT352", "selective-checkpointing", stage=Stage.PREPARE, varies="warning where nothing is checkpointed")
def selective_checkpointing(settings: RecipeSettings) -> Iterator[Finding]:
    """ac_mode does not do what is meant.

    `ac_mode: selective` checkpoints every ac_option-th layer, a whole number, without which it raises. Any other word
    than full and selective checkpoints nothing, and so does ac_mode beside enable_activation_checkpointing: the recipe
    then applies neither.

    Source: setup and checkpoint_wrapper of full_finetune_distributed and qat_distributed, torchtune 0.4.0 to 0.6.1.
    """
    mode, option, plain = (settings.at(key) for key in ("ac_mode", "ac_option", "enable_activation_checkpointing"))
    if not settings.reads("ac_mode") or settings.fork or not mode.given or mode.unknown or plain.unknown:
        return
    if plain.truth().is_(True):
        yield mode.field.finding(
            "nothing is checkpointed with both ac_mode and enable_activation_checkpointing",
            help="remove one of them",
            severity=Severity.WARNING,
            stage=Stage.RUN,
            related=plain.field.as_other_half,
        )
    elif mode.text().is_("selective"):
        if not option.unknown and not _is_every(option.value.known):
            yield settings.refusal(
                option if option.present else mode,
                message="ac_mode selective needs an ac_option, the number of layers of which one is checkpointed",
                help="write ac_option: 2 for every second layer",
            )
    elif mode.text().known_and_not_in(("full", "none")):
        yield mode.field.finding(
            f"ac_mode {mode.value} checkpoints nothing",
            help=did_you_mean(str(mode.value), ("full", "selective")) or "write full or selective",
            fix=mended.respelled(mode, ("full", "selective")),
            severity=Severity.WARNING,
            stage=Stage.RUN,
        )


def _is_every(plain: Plain) -> bool:
    """A number of layers as int() reads it."""
    if isinstance(plain, str):
        return plain.strip().isdigit()
    return isinstance(plain, (int, float)) and plain >= 0


@rule("TT353", "no-metric-logger", stage=Stage.PREPARE)
def no_metric_logger(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The metric logger is none.

    Recipes call log_config and log_dict, which the loggers of torchtune.training.metric_logging have, and those of
    Python's logging and other parts of torch and torchtune have not.

    Source: MetricLoggerInterface and the recipes of torchtune 0.4.0 to 0.6.1.
    """
    section = settings.section("metric_logger")
    place = section.get("_component_") if section is not None else None
    path = place.text().known or "" if place is not None else ""
    if place is None or not place.own or settings.recipe is None:
        return
    ours = path.startswith(("torch.", "torchtune.")) and facts.component(path).exists is not False
    if path.startswith("logging.") or (ours and not path.endswith("Logger")):
        message = f"{path.rpartition('.')[2]} is no metric logger"
        yield settings.refusal(place, message=message, help="write torchtune.training.metric_logging.DiskLogger")


@rule("TT354", "text-counts-as-true", stage=Stage.RUN, severity=Severity.WARNING)
def text_counts_as_true(settings: RecipeSettings) -> Iterator[Finding]:
    """A switch is a text that means false, and counts as true.

    Recipes and components convert nothing, and any text but the empty one is true in Python. `compile: "False"`
    compiles the model.

    Source: the recipes and components of torchtune 0.4.0 to 0.6.1.
    """
    if settings.fork or settings.recipe is None:
        return
    for node in settings.nodes:
        text = node.text().known if node.own and node.key in SWITCHES else None
        if text is not None and text.lower() in FALSE_WORDS:
            yield node.field.finding(
                f'{node.name} is the text "{text}", which counts as true',
                help="write False, without quotes",
                fix=mended.written(node, "False"),
            )


@rule("TT355", "no-step", stage=Stage.RUN, severity=Severity.WARNING)
def no_step(settings: RecipeSettings) -> Iterator[Finding]:
    """The recipe ends without a step, or does not stop where it should.

    With `epochs: 0` nothing is trained and nothing is saved, and the exit code is 0. max_steps_per_epoch is compared
    after a step, so 0, less and a fraction do not stop a fine-tune, which runs the whole epoch; DPO on one device
    compares before it, so 0 saves the model as it was. gradient_accumulation_steps below 1 or between whole numbers
    never steps as meant.

    Source: train of the recipes, torchtune 0.4.0 to 0.6.1, those of 0.6.1 run so.
    """
    if settings.recipe is None or settings.fork:
        return
    epochs, most, parts = (settings.at(key) for key in ("epochs", "max_steps_per_epoch", "gradient_accumulation_steps"))
    if settings.reads("epochs") and epochs.own and epochs.number().known_and(lambda number: number <= 0):
        yield epochs.field.finding("no epoch is trained, and nothing is saved", help="write 1 or more")
    unreached = most.number().known_and(lambda number: number <= 0 or number % 1 > 0)
    if settings.reads("max_steps_per_epoch") and most.own and unreached:
        dpo = settings.recipe.name == "lora_dpo_single_device" and most.is_(0)
        what = "no step is made and the model is saved as it was" if dpo else "the whole epoch is trained"
        fix = None if dpo else mended.written(most, "null", sure=False, keeps=True)
        message = f"max_steps_per_epoch {most.value} does not limit: {what}"
        yield most.field.finding(message, help="write null, or 1", fix=fix)
    amount = parts.number().known
    if settings.reads(parts.key) and parts.own and amount and (amount < 0 or amount % 1):
        yield parts.field.finding(
            f"gradient_accumulation_steps {parts.value} is no number of batches", help="write a whole number from 1 on"
        )


@rule("TT356", "setting-of-a-later-release", stage=Stage.RUN, severity=Severity.WARNING)
def setting_of_a_later_release(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """A setting has no effect in this release, and has one in torchtune's source since.

    Recipes ignore a key that they do not read, without a message: no validation data, no context parallelism, no fp8.
    `compile` as a mapping of what to compile counts as true, whatever is in it.

    Source: the recipes of torchtune 0.4.0 to 0.6.1, and of its main branch in 2025.
    """
    if settings.fork or settings.recipe is None or not settings.stated:
        return
    for key, node in settings.root.entries.items():
        later = key in LATER_SETTINGS and key not in settings.recipe.top_level
        if later and node.own and not (settings.certain and settings.overrides(key)):
            message = f"torchtune {facts.release} does not read {key}, which its source has added since"
            yield node.field.finding(
                message, help="remove it", fix=mended.removed(node, sure=False, keeps=True), at_key=True
            )
    compile = settings.at("compile")
    if settings.reads("compile") and compile.own and compile.entries and not settings.checks("compile"):
        message = f"torchtune {facts.release} takes any mapping in compile for true, and compiles all"
        yield compile.field.finding(message, help="write compile: True or False")
