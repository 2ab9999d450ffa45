"""The rules of TRL alone: config files as TrlParser reads them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from trainlint.findings import Finding, Severity, Stage, counted, did_you_mean, one_of
from trainlint.programs.transformers.facts import SAME_DTYPES, TORCH_DTYPES
from trainlint.programs.trl.facts import (
    ATTENTIONS,
    COMMANDS,
    METRIC_WORDS,
    PROFILES,
    TRAINERS,
    has_command,
    loads_dtype,
    losses,
    reads_files,
    rewards,
    trl_limits,
)
from trainlint.programs.trl.program import TrlArguments
from trainlint.reading import mending
from trainlint.reading.values import UNKNOWN
from trainlint.releases import minor, within
from trainlint.rule import rule
from trainlint.training.declarations import declarations
from trainlint.training.limits import refused


@rule("FS250", "environment-not-a-mapping", stage=Stage.LOAD)
def environment_not_a_mapping(arguments: TrlArguments) -> Iterator[Finding]:
    """`env` is not a mapping.

    TrlParser takes `env` out of the file and sets each of its keys as an environment variable before it parses
    anything; a list or a text raises ValueError (AttributeError in 0.12).

    Write `NAME: value` lines below it.

    Source: TRL 0.8 to 1.16, TrlParser.parse_args_and_config.
    """
    env = arguments.get("env")
    if env.node is not None and not env.is_mapping and not env.is_unknown:
        yield arguments.refused(env, "env must be a mapping", help="write NAME: value lines below it", at_key=True)


@rule("FS251", "unknown-accelerate-profile", stage=Stage.START, severity=Severity.WARNING)
def unknown_accelerate_profile(arguments: TrlArguments) -> Iterator[Finding]:
    """`accelerate_config` names neither a file nor a config that TRL ships.

    `trl sft --config` reads it as a path, and if there is no such file as the name of a shipped config: fsdp1, fsdp2,
    multi_gpu, single_gpu, zero1, zero2 or zero3. Anything else raises ValueError before the launch. Your own script may
    not use the key, so this is a warning.

    Source: TRL 0.18 to 1.16, the command line's resolution of `accelerate_config`.
    """
    name = arguments.get("accelerate_config").text()
    looks_like_file = name.known_and(lambda text: "/" in text or text.endswith((".yaml", ".yml", ".json")))
    if name.known_and_not_in(PROFILES) and not looks_like_file:
        hint = did_you_mean(str(name), PROFILES) or f"write a path, or {one_of(sorted(PROFILES), 7)}"
        fix = mending.respelled(name, PROFILES)
        yield arguments.warned(name, f"TRL has no accelerate config {name}", help=hint, fix=fix)


# the command


@rule("FS252", "no-such-trl-command", stage=Stage.LOAD)
def no_such_command(arguments: TrlArguments) -> Iterator[Finding]:
    """`trl` has no such command in this release, or its script reads no file.

    The commands are sft and dpo, since 0.11 kto, since 0.14 grpo, since 0.22 rloo, since 0.24 reward, since 1.10
    distillation; no release has one for ORPO, CPO, PPO and the like, which need a script of your own. Up to 0.12
    `trl kto` starts a script that does not know `--config`: it stops because its required arguments are missing.

    Source: TRL 0.8 to 1.16, commands/cli.py, cli.py, cli/commands; scripts/kto.py.
    """
    start, release = arguments.start, arguments.facts.version
    if start is None or not start.command:
        return
    words, related = start.invocation.field, arguments.field.relate("the file that it names")
    if not has_command(start.trainer, release):
        known = [word for word in COMMANDS if has_command(word, release)]
        message = f"TRL {minor(release)} has no command {start.invocation.program[-1].text}"
        yield words.finding(message, help=f"write {one_of(known, 7)}, or a script of your own", related=related)
    elif not reads_files(start.trainer, release):
        message = f"trl {start.trainer} reads no config file in {minor(release)}"
        yield words.finding(message, help="give its settings as options", related=related)


# data and model


@rule("FS253", "trainer-without-data", stage=Stage.START)
def trainer_without_data(arguments: TrlArguments) -> Iterator[Finding]:
    """A script of TRL gets no data or no model, or a dataset of its mixture has a wrong key.

    Up to 0.17 `dataset_name` is a required argument; since 0.22 the scripts raise ValueError without `dataset_name` and
    `datasets`. Each item of `datasets` is made into a DatasetConfig: without `path`, or with a key that it does not
    have, that raises TypeError while the file is read. Streamed data has no length, so `max_steps` must say how long to
    train.

    Source: TRL 0.8 to 1.16, ScriptArguments, DatasetMixtureConfig.__post_init__ and scripts/*.py.
    """
    start, release = arguments.start, arguments.facts.version
    none = arguments.data("dataset_name") is None and not arguments.data("datasets")
    if start and start.scripted and arguments.whole and "dataset_name" in arguments.facts.fields and none:
        message = f"{start.trainer} gets no data"
        if within(release, "..0.17.0"):
            yield arguments.refused(arguments.field, message, help="add dataset_name", stage=Stage.LOAD)
        elif within(release, "0.22.2.."):
            yield arguments.refused(arguments.field, message, help="add dataset_name, or datasets")
    model = arguments.own("model_name_or_path")
    usual = arguments.data(model.name)
    named = model.text().known or model.is_unknown or (isinstance(usual, str) and usual)
    scripted = start is not None and start.scripted and model.name not in start.beside.names and arguments.whole
    if start and scripted and "model_name_or_path" in arguments.facts.fields and not named:
        at = model if model.node is not None else arguments.field
        help = "write its name" if model.node is not None else "add model_name_or_path"
        yield arguments.refused(at, f"{start.trainer} gets no model", help=help, at_key=model.node is not None)
    yield from _limits(arguments, "data")
    known = declarations("trl").keys("DatasetConfig", release)
    for item in arguments.own("datasets").items() if known else ():
        for entry in item.entries():
            if entry.name not in known:
                hint = did_you_mean(entry.name, known) or f"write {one_of(sorted(known), 7)}"
                message = f"datasets has no key {entry.name}"
                fix = mending.renamed_to_nearest(entry, known)
                yield arguments.refused(entry, message, help=hint, fix=fix, at_key=True, stage=Stage.LOAD)
        if item.is_mapping and item.get("path").node is None:
            message = "an item of datasets needs a path"
            yield arguments.refused(item, message, help="add path", at_key=True, stage=Stage.LOAD)


@rule("FS254", "text-for-mapping", stage=Stage.LOAD)
def text_for_mapping(arguments: TrlArguments) -> Iterator[Finding]:
    """An argument is text where a mapping or numbers are needed.

    TrlParser converts text with the type of the argument: `dict` of a text raises ValueError, and so does a number of
    one that is none. Later releases take JSON for arguments such as `model_init_kwargs`; another text raises when the
    model is loaded.

    Write the keys below it, or a list of numbers.

    Source: TRL 0.9 to 1.16, HfArgumentParser and argparse, which converts defaults that are texts.
    """
    for name, argument in arguments.facts.fields.items():
        text = arguments.get(name).text().known
        if text is None or not arguments.facts.converts or not arguments.parsed:
            continue
        if arguments.is_none_text(argument, text):
            continue
        kinds = [kind for kind in argument.types if kind != "None"]
        used = arguments.is_sure and arguments.trainer in _MAPPINGS.get(name, ()) and not text.startswith("{")
        if text and ((len(kinds) == 1 and kinds[0].startswith("dict")) or used):
            message, stage = f"{name} must be a mapping, not a text", Stage.START if len(kinds) > 1 else Stage.LOAD
            yield arguments.refused(arguments.get(name), message, help="write its keys below it", stage=stage)
        elif kinds in (["list[float]"], ["list[int]"]) and not _is_number(text):
            message = f"{name} must be a list of numbers, not a text"
            yield arguments.refused(arguments.get(name), message, help="write a list of numbers")


_MAPPINGS: Mapping[str, frozenset[str]] = {
    "model_init_kwargs": frozenset(TRAINERS),
    "generation_kwargs": frozenset({"grpo", "rloo"}),
    "dataset_kwargs": frozenset({"sft"}),
}
"""Mappings that may be JSON in later releases, with the trainers that use them as soon as they are made."""


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


@rule("FS255", "model-loading", stage=Stage.START)
def model_loading(arguments: TrlArguments) -> Iterator[Finding]:
    """A script of TRL cannot load the model as the file says.

    `dtype` (`torch_dtype` up to 0.26) is looked up in torch, since 0.29 among four words: `bf16` raises. An unknown
    `attn_implementation` raises in transformers; a slash makes it the name of a kernel. The model cannot be in 4 and in
    8 bits at once. A LoRA rank must be above 0, and PEFT has six task types.

    Source: TRL 0.8 to 1.16, ModelConfig, scripts/*.py, trainer/utils.py; transformers, PreTrainedModel.from_pretrained;
    peft, LoraConfig.
    """
    yield from _limits(arguments, "model")
    start, release = arguments.start, arguments.facts.version
    if start is None or not start.scripted or not arguments.whole:
        return
    words = _LOADED_DTYPES if within(release, "0.29.1..") else {*TORCH_DTYPES, "auto"}
    name = next((name for name in ("dtype", "torch_dtype") if not arguments.own(name).is_absent), "")
    dtype = arguments.get(name).text()
    if not loads_dtype(start.trainer, release):
        return
    if dtype.known_and_not_in(words) and name not in start.beside.names:
        hint = SAME_DTYPES.get(str(dtype)) or did_you_mean(str(dtype), words)
        help = hint if hint.startswith("did") else f"write {hint or one_of(_LOADED_DTYPES)}"
        same = SAME_DTYPES.get(str(dtype))
        fix = mending.worded(dtype, same) if same else mending.respelled(dtype, words)
        yield arguments.refused(dtype, f"{name} cannot be {dtype}", help=help, fix=fix)
    attention = arguments.own("attn_implementation").text()
    if attention.known_and(lambda word: word not in ATTENTIONS and not {*"/|"} & {*word}):
        hint = did_you_mean(str(attention), ATTENTIONS) or f"write {one_of(sorted(ATTENTIONS))}"
        message = f"Transformers has no attn_implementation {attention}"
        yield arguments.refused(attention, message, help=hint, fix=mending.respelled(attention, ATTENTIONS))


_LOADED_DTYPES = ("auto", "bfloat16", "float16", "float32")


@rule("FS256", "lora-not-used", stage=Stage.RUN, severity=Severity.WARNING)
def lora_not_used(arguments: TrlArguments) -> Iterator[Finding]:
    """LoRA settings without `use_peft`: all weights are trained.

    The scripts of TRL read `lora_r` and the like only with `use_peft: true`; nothing is printed.

    Source: TRL 0.8 to 1.16, get_peft_config.
    """
    start = arguments.start
    if start is None or not start.scripted or arguments.data("use_peft") is not False:
        return
    for entry in arguments.field.entries():
        if entry.name in _LORA and entry.name in arguments.facts.fields:
            message = f"{entry.name} is not used without use_peft"
            yield arguments.warned(entry, message, help="set use_peft: true, or remove it", at_key=True)
            return


_LORA = ("lora_r", "lora_alpha", "lora_dropout", "lora_target_modules", "lora_modules_to_save", "use_dora")


# losses, and what the trainers take together


@rule("FS257", "unknown-loss", stage=Stage.TRAIN)
def unknown_loss(arguments: TrlArguments) -> Iterator[Finding]:
    """The trainer does not know this loss.

    The parser takes any word. SFT raises ValueError when it is made, the others only in the first step: DPO, CPO and
    GRPO ValueError, KTO UnboundLocalError. Since 0.20 DPO takes a list of losses; earlier a list is an unknown loss.
    `kto_pair` was a loss of DPO up to 0.8; up to 0.28 it is refused when the trainer is made. A trainer of the
    repository's own that asks for the loss may know others.

    Source: TRL 0.8 to 1.16, trainer/*_trainer.py and experimental/, the functions that compute a loss.
    """
    trainer, release = arguments.trainer or "", arguments.facts.version
    words = losses(trainer, release)
    field = arguments.own("loss_type")
    listed = trainer == "dpo" and within(release, "0.20.0..")
    given = arguments.start is not None and "loss_type" in arguments.start.beside.names
    if not words or given or arguments.has_own_losses:
        return
    if field.is_sequence and not listed:
        message = f"{_NAMES.get(trainer, trainer)} takes one loss, not a list"
        yield arguments.told(field, message, help="write one word", at_key=True)
    if field.is_sequence and listed and not field.items():
        yield arguments.told(field, "DPO needs a loss", help="remove loss_type, or name one", at_key=True)
    for item in field.items() if field.is_sequence and listed else [field]:
        text = item.text()
        none = item.is_null and (item is not field or arguments.has("loss_type"))
        if none or (text.wrong_type and not (item is field and field.is_sequence)):
            kind = "a list" if item.is_sequence else "a mapping" if item.is_mapping else item.written or "null"
            message = f"loss_type cannot be {kind}"
            stage = Stage.START if trainer == "sft" else Stage.TRAIN
            at_key = item.is_sequence or item.is_mapping
            yield arguments.told(item, message, help=f"write {one_of(words)}", stage=stage, at_key=at_key)
        elif text.known_and_not_in(words):
            hint = did_you_mean(str(text), words) or f"write {one_of(words)}"
            if text.is_("kto_pair"):
                hint = "train with KTO instead"
            early = trainer == "sft" or (text.is_("kto_pair") and within(release, "..0.28.0"))
            stage = Stage.START if early else Stage.TRAIN
            message = f"{_NAMES.get(trainer, trainer)} has no loss {text}"
            yield arguments.told(text, message, help=hint, stage=stage, fix=mending.respelled(text, words))


_NAMES = {"sft": "SFT", "dpo": "DPO", "kto": "KTO", "grpo": "GRPO", "cpo": "CPO", "rloo": "RLOO"}


def _limits(arguments: TrlArguments, section: str) -> Iterator[Finding]:
    """A finding for each limit of a section that the arguments exceed."""
    if arguments.trainer is not None or section == "model":
        severity = None if arguments.is_sure else Severity.WARNING
        yield from refused(trl_limits(arguments.facts.version)[section], arguments, severity=severity)


@rule("FS258", "packing-limits", stage=Stage.START)
def packing_limits(arguments: TrlArguments) -> Iterator[Finding]:
    """SFT does not pack, cut or checkpoint the samples like this.

    Packing needs a length and one of the release's strategies. Since 1.0 `padding_free` without packing needs
    `max_length: null`, because nothing would cut the samples. Up to 0.29 a negative length is refused.

    Source: TRL 0.16 to 1.16, SFTTrainer.__init__ and _prepare_dataset; data_utils.pack_dataset.
    """
    yield from _limits(arguments, "packing")


@rule("FS259", "preference-limits", stage=Stage.START)
def preference_limits(arguments: TrlArguments) -> Iterator[Finding]:
    """DPO, KTO, CPO or ORPO does not take these settings together.

    DPO's `loss_weights` must be as many as its losses. The prompt must be shorter than the whole sample in CPO, where
    both have defaults. Some losses do not work with liger, weighting, or another divergence; KTO needs more than one
    sample a batch.

    Source: TRL 0.9 to 1.16, DPOConfig.__post_init__, the trainers' __init__.
    """
    yield from _limits(arguments, "preference")
    release = arguments.facts.version
    weights, found = arguments.data("loss_weights"), arguments.losses
    number = len(weights) if isinstance(weights, Sequence) and not isinstance(weights, str) else None
    if arguments.trainer == "dpo" and found and number not in (None, len(found)):
        at = arguments.get("loss_weights")
        message = f"loss_weights has {counted(number or 0, 'number')} for {counted(len(found), 'loss', 'losses')}"
        yield arguments.told(at, message, help="write one number for each loss", at_key=True, stage=Stage.LOAD)
    if arguments.trainer == "cpo" and within(release, "0.17.0..0.27.2"):
        yield from _prompt_length(arguments)


def _prompt_length(arguments: TrlArguments) -> Iterator[Finding]:
    whole, prompt = arguments.data("max_length"), arguments.data("max_prompt_length")
    length = 512 if whole is None else whole
    of_prompt = 128 if prompt is None else prompt
    if isinstance(length, int) and isinstance(of_prompt, int) and of_prompt >= length:
        name = "max_prompt_length" if arguments.has("max_prompt_length") else "max_length"
        message = f"max_prompt_length {of_prompt} must be below max_length {length}"
        help = "lower max_prompt_length"
        if name == "max_length":
            help = f"add for example max_prompt_length: {max(length // 2, 1)}"
        yield arguments.told(arguments.get(name), message, help=help)


@rule("FS260", "reference-model-limits", stage=Stage.START)
def reference_model_limits(arguments: TrlArguments) -> Iterator[Finding]:
    """The reference model cannot be synchronised, or precomputed, like this.

    `sync_ref_model` updates a reference model: there is none with PEFT, with precomputed log-probabilities, or with
    `beta: 0`. Precomputing does not work with ZeRO stage 3 (DPO up to 0.28) and with streamed data.

    Source: TRL 0.9 to 1.16, the trainers' __init__.
    """
    yield from _limits(arguments, "reference")


# generation


@rule("FS261", "generation-limits", stage=Stage.LOAD)
def generation_limits(arguments: TrlArguments) -> Iterator[Finding]:
    """GRPO or RLOO does not take these settings together.

    Source: TRL 0.14 to 1.16, GRPOConfig and RLOOConfig.__post_init__, the trainers' __init__, generation/.
    """
    yield from _limits(arguments, "generation")
    low, high = (arguments.data(f"vllm_importance_sampling_clip_{end}") for end in ("min", "max"))
    cap = arguments.data("vllm_importance_sampling_cap")
    high = high if cap is None else cap
    numbers = isinstance(low, (int, float)) and isinstance(high, (int, float)) and low >= high
    if arguments.trainer == "grpo" and numbers and within(arguments.facts.version, "1.6.0.."):
        at = arguments.get("vllm_importance_sampling_clip_min")
        message = f"vllm_importance_sampling_clip_min must be below {high}"
        yield arguments.told(at, message, help="lower it, or raise vllm_importance_sampling_clip_max")


@rule("FS262", "generation-batch", stage=Stage.LOAD)
def generation_batch(arguments: TrlArguments) -> Iterator[Finding]:
    """The batches of GRPO or RLOO do not hold whole groups of generations.

    A generation batch is `generation_batch_size`, or the batch per device times the processes times
    `steps_per_generation` (else the accumulation). It must be divisible by `num_generations` (8 by default), and, where
    it is given, by the batch of all processes. The same holds for the batch of an evaluation (not in 0.20 and 0.21),
    with `num_generations_eval`. With vLLM in the same processes their number must be divisible by
    `vllm_tensor_parallel_size`. Where neither command nor file tells the number of processes, only what is wrong for
    every number is found.

    From 0.15 to 0.17 the trainer of GRPO divides the batch of all processes (0.17: times the accumulation) and that
    of an evaluation.

    Source: TRL 0.18 to 1.16, GRPOConfig.__post_init__; since 0.22 RLOOConfig.__post_init__; generation/. 0.15 to 0.17:
    GRPOTrainer.__init__.
    """
    release, processes = arguments.facts.version, arguments.processes
    since = {"grpo": "0.15.2..", "rloo": "0.22.2.."}.get(arguments.trainer or "")
    if since is None or not within(release, since):
        return
    numbers = {name: value for name in _SIZES if isinstance(value := arguments.data(name), int)}
    group, batch = numbers.get("num_generations", 0), numbers.get("per_device_train_batch_size", 0)
    by_trainer = within(release, "..0.17.0")
    what, stage = ("batch", Stage.START) if by_trainer else ("generation batch", Stage.LOAD)
    if group < 2 or batch < 1 or _is_unknown(arguments, "generation_batch_size", "steps_per_generation"):
        return
    size = numbers.get("generation_batch_size")
    steps = numbers.get("steps_per_generation", numbers.get("gradient_accumulation_steps"))
    if within(release, "..0.16.1"):
        steps = 1
    if size is not None and "steps_per_generation" in numbers:
        return
    of_all = batch * processes if processes is not None else None
    if size is not None and of_all and size % of_all and within(release, "0.19.1.."):
        at, message = "generation_batch_size", f"generation_batch_size {size} is not divisible by {of_all}"
        yield _undivided(arguments, at, message, f"write a multiple of {of_all}: {batch} for each of {processes}")
        return
    total = size if size is not None else of_all * steps if of_all and steps is not None else None
    if total is not None and (total % group or (total == 0 and within(release, "..0.19.1"))):
        message = f"a {what} of {total} is not divisible by num_generations {group}"
        help = f"write for example num_generations: {_divisor(total)}"
        yield _undivided(arguments, "num_generations", message, help, stage)
        return
    evaluated = numbers.get("num_generations_eval") or group
    each = numbers.get("per_device_eval_batch_size")
    evaluates = arguments.data("evaluates") is True and not within(release, "0.20.0..0.21.0")
    if evaluates and each and processes and each * processes % evaluated:
        message = f"an evaluation batch of {each * processes} is not divisible by {evaluated} generations"
        yield _undivided(arguments, "per_device_eval_batch_size", message, "raise per_device_eval_batch_size", stage)
    shards, colocated = numbers.get("vllm_tensor_parallel_size", 0), arguments.data("vllm_mode") == "colocate"
    if (
        arguments.data("use_vllm") is True
        and colocated
        and shards > 1
        and processes
        and processes % shards
        and not by_trainer
    ):
        message = f"vllm_tensor_parallel_size {shards} does not divide {processes} processes"
        place = arguments.get("vllm_tensor_parallel_size")
        yield arguments.told(place, message, help="write a divisor of it", stage=Stage.START)


_SIZES = (
    "num_generations", "num_generations_eval", "per_device_train_batch_size", "per_device_eval_batch_size",
    "generation_batch_size", "steps_per_generation", "gradient_accumulation_steps", "vllm_tensor_parallel_size",
)  # fmt: skip


def _is_unknown(arguments: TrlArguments, *names: str) -> bool:
    return any(arguments.data(name) is UNKNOWN for name in names)


def _divisor(total: int) -> int:
    """The largest divisor up to 8 that makes groups, or the number itself."""
    return next((number for number in range(8, 1, -1) if total and total % number == 0), max(total, 2))


def _undivided(arguments: TrlArguments, name: str, message: str, help: str, stage: Stage = Stage.LOAD) -> Finding:
    """A finding at the first of the settings that is written."""
    names = [name, "num_generations", "generation_batch_size", "steps_per_generation", "gradient_accumulation_steps"]
    names += ["per_device_train_batch_size", "eval_strategy"]
    at = next((known for known in names if arguments.has(known)), name)
    related = arguments.start.invocation.field.relate("the processes") if arguments.start else ()
    return arguments.told(arguments.get(at), message, help=help, related=related, stage=stage)


@rule("FS263", "reward-functions", stage=Stage.START)
def reward_functions(arguments: TrlArguments) -> Iterator[Finding]:
    """The script of GRPO or RLOO cannot use these rewards.

    A name in `reward_funcs` is one of the release's own, or has a dot and is imported; anything else raises ValueError.
    `reward_weights` must be as many as the reward model and functions together. Up to 0.19 the script passes on the
    reward model alone, and fails without one; since 1.8 GRPO refuses to start without any reward.

    Source: TRL 0.14 to 1.16, scripts/grpo.py and rloo.py; the trainers' __init__.
    """
    start, release = arguments.start, arguments.facts.version
    if start is None or not start.scripted or start.trainer not in ("grpo", "rloo") or not arguments.whole:
        return
    model, functions = arguments.data("reward_model_name_or_path"), arguments.own("reward_funcs")
    for item in functions.items():
        name = item.text()
        if name.known_and(lambda word: word not in rewards(release) and "." not in word):
            hint = did_you_mean(str(name), rewards(release)) or "write an import path, or one of TRL's own"
            fix = mending.respelled(name, rewards(release))
            yield arguments.refused(name, f"TRL has no reward function {name}", help=hint, fix=fix)
            return
    if model is UNKNOWN or "reward_funcs" in start.beside.names or functions.is_unknown:
        return
    only_model = within(release, "..0.19.1")
    count = bool(model) + (0 if only_model else len(functions.items()))
    missing = not model if only_model else not count and start.trainer == "grpo" and within(release, "1.8.0..")
    weights = arguments.own("reward_weights")
    if missing:
        what = "reward_model_name_or_path" if only_model else "reward_funcs"
        yield arguments.refused(arguments.field, f"{start.trainer} gets no reward", help=f"add {what}")
    elif weights.is_sequence and count and len(weights.items()) != count:
        given, needed = counted(len(weights.items()), "number"), counted(count, "reward function")
        message = f"reward_weights has {given} for {needed}"
        yield arguments.refused(weights, message, help="write one number for each", at_key=True)


@rule("FS264", "loss-mask-dropped", stage=Stage.RUN, severity=Severity.WARNING)
def loss_mask_dropped(arguments: TrlArguments) -> Iterator[Finding]:
    """SFT drops the mask that says which tokens count: the loss is computed on all of them.

    Up to 0.19, packing and the liger kernel keep only the ids of the tokens, and in 0.20 and 0.21 the liger kernel
    loses the mask of `assistant_only_loss`. The model then also learns the prompts. Nothing is printed.

    Source: TRL 0.17 to 0.22, SFTTrainer._prepare_dataset.
    """
    prepared = arguments.data("dataset_kwargs.skip_prepare_dataset") in (None, False)
    if arguments.trainer != "sft" or not prepared:
        return
    for (cause, name), releases in _MASKS_LOST.items():
        lost = within(arguments.facts.version, releases)
        if lost and arguments.data(cause) is True and arguments.data(name) is True:
            yield arguments.get(name).finding(
                f"{cause} drops the mask of {name}: all tokens count",
                help=f"remove {cause}, or train with TRL 0.22 or later",
                related=arguments.get(cause).as_other_half,
            )
            return


_MASKS_LOST = {
    ("packing", "assistant_only_loss"): "..0.19.1",
    ("packing", "completion_only_loss"): "..0.19.1",
    ("use_liger_kernel", "completion_only_loss"): "..0.19.1",
    ("use_liger_kernel", "assistant_only_loss"): "..0.21.0",
}
"""What drops the mask of a loss, and in which releases."""


@rule("FS265", "metric-not-computed", stage=Stage.TRAIN, severity=Severity.WARNING)
def metric_not_computed(arguments: TrlArguments) -> Iterator[Finding]:
    """`metric_for_best_model` is none that the trainer computes.

    The scripts of TRL pass no `compute_metrics`: an evaluation has its loss, its times, and what the trainer logs, such
    as `mean_token_accuracy` or `rewards/margins`. Any other metric raises KeyError after the first evaluation.

    Write `loss`, or remove it.

    Source: TRL 0.8 to 1.16, scripts/*.py and the trainers' logs; transformers, Trainer._determine_best_metric.
    """
    metric = arguments.own("metric_for_best_model").text()
    start, evaluates = arguments.start, arguments.data("evaluates") is True
    if start is None or not start.scripted or not arguments.whole or metric.field.name in start.beside.names:
        return
    if evaluates and metric.known_and(lambda name: bool(name) and not METRIC_WORDS & set(_words(name))):
        message = f'{_NAMES.get(start.trainer, start.trainer)} computes no metric "{metric}"'
        yield arguments.warned(metric, message, help="write loss, or remove it")


def _words(name: str) -> list[str]:
    return "".join(letter if letter.isalpha() else " " for letter in name.lower()).split()
