"""What each release of Soup refuses or ignores: its presets, its command's options, settings that exclude each other.

The keys of `soup.yaml`, their types and bounds are in soup.json (read from the released packages); what is here was
read in config/schema.py, commands/train.py and utils/ of the same packages and tried on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from trainlint.findings import Severity
from trainlint.repository.invocations import Command
from trainlint.training.declarations import Spec, declarations
from trainlint.training.limits import Limit

VALUE_OPTIONS: Mapping[str, str] = dict.fromkeys(
    "--config -c --name -n --resume -r --tracker --deepspeed --fsdp --gpus --gate --push-as --find-lr-start"
    " --find-lr-end --find-lr-steps --find-lr-output --reward-hack-detector --replay --replay-ratio --replay-seed"
    " --reward-hack-mitigation --diagnose-gate --annex-xi --repro-receipt --capture-activations --capture-prompts"
    " --energy-country --energy-out --cloud --gpu".split(),
    "",
) | dict.fromkeys("--nodes --node-rank --master-addr --master-port".split(), "0.76.1")
"""Options of `soup train` that take a value, with the first known release that has them where not all do."""

SWITCHES = frozenset(
    "--dry-run --wandb --tensorboard --no-reexec --hf-resume --find-lr --yes -y --trust-remote-code"
    " --echo-trap-tokenizer-aware --reward-hack-halt --minillm-on-policy --profile --allow-oom-attempt --track-energy"
    " --cloud-submit --help".split()
)
"""Options of `soup train` that take no value."""

TRAIN = Command(
    "soup train",
    (("soup", "train"), ("soup_cli.cli", "train"), ("soup_cli", "train")),
    r"\bsoup(?:_cli)?\b",
    bare=SWITCHES,
    counts=dict.fromkeys(VALUE_OPTIONS, 1),
)

MAX_GPUS = 128
"""The most that `--gpus` takes (utils/topology.py)."""

COMPILE_READERS = ("sft", "tts")
"""Tasks whose trainer reads use_fsdp2_compile: trainer/sft.py, and trainer/tts.py that builds on it."""

UNSHARDABLE = ("hqq", "eetq", "aqlm")
"""Kinds of quantization that neither FSDP nor ZeRO stage 3 goes with (utils/quant_menu.py, since 0.38)."""

ZERO3_PRESETS = ("zero3", "zero++", "zero_pp")
"""DeepSpeed presets that the check of quantization takes for stage 3."""

ZERO3_UNCHECKED = ("zero3_offload",)
"""DeepSpeed presets of stage 3 that it does not know."""

UNQUANTIZED_TASKS = ("distill", "classifier", "reranker", "cross_encoder", "prm", "moe_lora_routing", "unlearn", "asr")
"""Tasks whose trainer never quantizes the model, so that the default is no quantization (since 0.76)."""

MINIMUM_TORCH = "2.2"
MINIMUM_ACCELERATE = "0.27"
"""What utils/fsdp.py asks of torch and names for accelerate."""

COMPILE_LIMITS = (
    Limit(
        "backend",
        "training.use_fsdp2_compile backend=unsloth,mlx",
        "use_fsdp2_compile works with backend transformers alone",
        "set backend: transformers, or drop use_fsdp2_compile",
    ),
)

PIPELINE_LIMITS = (
    Limit(
        "training.pipeline_stages|training.parallelism",
        "training.parallelism=pipeline training.pipeline_stages<2",
        "pipeline parallelism needs pipeline_stages of 2 or more",
        "set training.pipeline_stages, or parallelism: data",
    ),
)

_STREAMED = "training.stream_layers"


def _beside_streaming(names: str, since: str = "", when: str = "") -> tuple[Limit, ...]:
    return tuple(
        Limit(
            f"training.{name}",
            f"{_STREAMED} training.{name}{when}",
            f"stream_layers does not go with {name}",
            f"drop {name}, or stream_layers",
            since=since,
        )
        for name in names.split()
    )


STREAM_LIMITS = (
    Limit(
        "task", f"{_STREAMED} task!=sft,dpo,orpo,simpo,kto", "stream_layers trains sft, dpo, orpo, simpo and kto only"
    ),
    Limit("backend", f"{_STREAMED} backend!=transformers", "stream_layers needs backend transformers"),
    Limit("modality", f"{_STREAMED} modality!=text", "stream_layers needs modality text"),
    Limit(
        "training.quantization|training.load_in_8bit",
        f"{_STREAMED} training.quantization!=none,4bit",
        "stream_layers needs quantization none or 4bit",
    ),
    Limit(
        "training.batch_size|training.stream_layers",
        f"{_STREAMED} training.batch_size=auto",
        "stream_layers needs a batch_size that is a number",
        "set training.batch_size",
    ),
    Limit("training.lora.r", f"{_STREAMED} training.lora.r<1", "stream_layers needs LoRA: lora.r of 1 or more"),
    Limit("training.lora.use_dora", f"{_STREAMED} training.lora.use_dora", "stream_layers does not go with DoRA"),
    Limit("training.lora.use_vera", f"{_STREAMED} training.lora.use_vera", "stream_layers does not go with VeRA"),
    Limit(
        "training.lora.init_strategy",
        f"{_STREAMED} training.lora.init_strategy!=random",
        "stream_layers needs lora.init_strategy random",
    ),
    Limit(
        "training.stream_vram_probe",
        f"{_STREAMED} training.stream_vram_probe task!=sft",
        "stream_vram_probe measures sft only",
    ),
    *_beside_streaming("use_fsdp2_compile lisa_enabled packing multipack train_router_only unfrozen_parameters"),
    *_beside_streaming("expand_layers", when="?"),
    *_beside_streaming("moe_expert_quant", "0.74.0", "?"),
    *_beside_streaming("quantization_aware fp8_attention nvfp4 use_liger use_flash_attn", "0.76.1"),
    *_beside_streaming("use_cut_ce", "0.77.0"),
)

_RELORA = "training.relora_steps?"
_MERGES = "0.76.1"
"""Since this release a restart of ReLoRA merges the adapter into the base weights, which must then be writable."""

RELORA_LIMITS = (
    Limit("backend", f"{_RELORA} backend=mlx", "relora_steps does not work with backend mlx"),
    Limit(
        "training.quantization|training.relora_steps",
        f"{_RELORA} training.quantization!=none",
        "relora_steps needs quantization: none (4bit where it is left out)",
        "set training.quantization: none, or drop relora_steps",
        since=_MERGES,
    ),
    *(
        Limit(
            f"training.{name}",
            f"{_RELORA} training.{name}",
            f"relora_steps does not go with {name}",
            f"drop {name}, or relora_steps",
            since=_MERGES,
        )
        for name in ("use_fsdp2_compile", "stream_layers", "lora.use_vera", "lora.use_dora")
    ),
    Limit(
        "task",
        f"{_RELORA} task=dpo,ipo,kto,bco",
        "relora_steps does not go with a task that compares with a frozen reference",
        "drop training.relora_steps",
        since="0.77.0",
    ),
)

QUANTIZATION_LIMITS = (
    Limit(
        "training.bnb_4bit_quant_storage",
        "training.bnb_4bit_quant_storage? training.quantization!=4bit,mxfp4",
        "bnb_4bit_quant_storage needs quantization 4bit or mxfp4",
        "drop it, or set quantization: 4bit",
    ),
    Limit(
        "training.load_in_8bit",
        "training.load_in_8bit training.load_in_16bit",
        "load_in_8bit and load_in_16bit exclude each other",
    ),
    Limit(
        "training.quantization|training.use_galore",
        "training.use_galore training.quantization=4bit,8bit",
        "use_galore needs quantization: none (4bit where it is left out)",
        "set training.quantization: none",
    ),
    Limit("backend", "training.use_galore backend=unsloth", "use_galore does not work with backend unsloth"),
    *(
        Limit(setting, f"{setting}{test} training.quantization!=none", f"{words} needs quantization: none", since=since)
        for setting, test, words, since in (
            ("training.lora.r", "<1", "lora.r of 0 (full fine-tuning)", ""),
            ("training.lora.init_strategy", "=pissa,loftq", "lora.init_strategy pissa or loftq", "0.76.1"),
            ("training.unfrozen_parameters", "", "unfrozen_parameters", ""),
        )
    ),
    Limit(
        "training.fast_lora",
        "training.fast_lora training.lora.dropout!=0",
        "fast_lora needs lora.dropout: 0 (0.05 where it is left out)",
    ),
    Limit(
        "training.lora.target_parameters",
        "training.lora.target_parameters training.lora.dropout!=0",
        "lora.target_parameters needs lora.dropout: 0 (0.05 where it is left out)",
    ),
    Limit(
        "training.quantization|training.load_in_8bit",
        f"task={','.join(UNQUANTIZED_TASKS)} training.quantization!=none",
        "the trainer of this task quantizes nothing",
        "drop it, or set quantization: none",
        since="0.76.1",
    ),
    Limit(
        "training.quantization",
        "training.quantization~hqq backend=mlx",
        "HQQ does not work with backend mlx",
    ),
    *(
        Limit(
            "training.quantization",
            f"training.quantization={kind} backend=mlx",
            f"quantization {kind} does not work with backend mlx",
        )
        for kind in ("gptq", "awq", "aqlm", "eetq", "mxfp4", "fp8")
    ),
)


NEEDS = (
    ("task: grpo", "task!=grpo", "grpo_variant grpo_fp16 vllm_sleep_mode rollout_backend replay_buffer_size"),
    ("task: grpo", "task!=grpo", "ref_model_ema_alpha async_grpo_prefetch tis_threshold defer_rerolling"),
    ("task: grpo", "task!=grpo", "skip_zero_advantage prm_reward"),
    ("task: grpo or ppo", "task!=grpo,ppo", "echo_trap_enabled reward_hack_detector rl_checkpoint_save_every_steps"),
    ("task: online_dpo", "task!=online_dpo", "online_dpo_judge online_dpo_loss_type online_dpo_max_new_tokens"),
    ("task: asr", "task!=asr", "asr_language asr_task asr_lora"),
    ("task: tts", "task!=tts", "tts_family tts_emotion"),
    (
        "task: classifier, reranker or cross_encoder",
        "task!=classifier,reranker,cross_encoder",
        "num_labels classifier_kind label_names classifier_lora",
    ),
    ("task: moe_lora_routing", "task!=moe_lora_routing", "mole_top_k mole_temperature mole_task_adapters"),
    (
        "task: distill",
        "task!=distill",
        "teacher_model distill_divergence distill_temperature distill_mode uld_strategy",
    ),
    ("task: distill", "task!=distill", "distill_chunk_size distill_checkpoint minillm_enabled"),
    ("task: preference", "task!=preference", "preference_loss preference_loss_weights"),
    ("task: unlearn", "task!=unlearn", "unlearn_method"),
    ("moe_lora: true", "!training.moe_lora", "moe_expert_quant train_router_only"),
    (
        "minillm_enabled: true",
        "!training.minillm_enabled",
        "minillm_teacher_mix_ratio minillm_length_normalize minillm_pretrain_anchor_weight"
        " minillm_pretrain_anchor_path minillm_on_policy minillm_rollout_length",
    ),
    ("uld_strategy", "!training.uld_strategy?", "uld_top_k"),
    ("echo_trap_enabled: true", "!training.echo_trap_enabled", "echo_trap_halt echo_trap_tokenizer_aware"),
    (
        "reward_hack_detector",
        "!training.reward_hack_detector?",
        "reward_hack_halt training.reward_hack_mitigation=log_only,kl_control,pid_lagrangian",
    ),
    (
        "reward_hack_mitigation",
        "training.reward_hack_mitigation!=log_only,kl_control,pid_lagrangian",
        "reward_hack_beta_floor reward_hack_beta_ceil reward_hack_trip_band reward_hack_release_band"
        " reward_hack_dwell_steps reward_hack_release_patience reward_hack_kl_gain reward_hack_pid_kp"
        " reward_hack_pid_ki reward_hack_pid_kd reward_hack_signal_target reward_hack_integral_clamp"
        " reward_hack_rollback reward_hack_rollback_patience reward_hack_max_recovery_attempts"
        " reward_hack_signal_smoothing reward_hack_smoothing_window reward_hack_conservative_on_disagreement"
        " reward_hack_reward_shaping reward_hack_shaping_kind reward_hack_shaping_strength",
    ),
    (
        "rope_scaling_type: yarn",
        "training.rope_scaling_type!=yarn",
        "yarn_factor yarn_attn_factor yarn_beta_fast yarn_beta_slow",
    ),
    ("curriculum: true", "!training.curriculum", "curriculum_dynamic"),
    ("loss_watchdog: true", "!training.loss_watchdog", "loss_spike_recovery"),
    (
        "lisa_enabled: true",
        "!training.lisa_enabled",
        "lisa_num_layers lisa_interval_steps lisa_reset_optimizer lisa_train_embeddings",
    ),
    (
        "stream_layers: true",
        "!training.stream_layers",
        "stream_source stream_ngram_source stream_pin stream_vram_override stream_vram_probe stream_nf4_scale_cache"
        " stream_expert_layout stream_loss_chunk stream_disk_kind",
    ),
    (
        "quantization: none (4bit where it is left out)",
        "training.quantization!=none",
        "lisa_enabled",
    ),
    ("expand_layers", "!training.expand_layers?", "freeze_trainable_layers"),
    ("freeze_trainable_layers", "!training.freeze_trainable_layers?", "expand_layers"),
    ("dpo_beta_end", "!training.dpo_beta_end?", "dpo_beta_schedule"),
    ("dpo_beta_schedule", "!training.dpo_beta_schedule?", "dpo_beta_end"),
    ("quantization_aware: fp8", "training.quantization_aware!=fp8", "fp8_recipe fp8_attention"),
    ("quantization: 8bit", "training.quantization!=8bit", "llm_int8"),
    ("backend: unsloth", "backend!=unsloth", "unsloth_bnb_4bit"),
    ("grpo_variant: two_sided", "training.grpo_variant!=two_sided,gspo", "grpo_delta"),
    ("tis_threshold", "!training.tis_threshold?", "mask_truncated_completions"),
    ("citation_faithful: true", "!training.citation_faithful", "citation_style"),
    ("data.format: raft", "data.format!=raft", "citation_faithful"),
    ("data.replay", "!data.replay?", "data.replay_ratio data.replay_seed"),
    ("data.streaming: true", "!data.streaming", "data.buffer_size"),
    ("data.tokenized_path", "!data.tokenized_path?", "data.format=pre_tokenized"),
    ("train_on_responses_only: false", "data.train_on_responses_only", "data.train_on_prompt"),
    ("train_on_responses_only: false", "data.train_on_responses_only", "data.train_on_messages_with_train_field"),
    ("prm_reward", "!training.prm_reward?", "prm_aggregate"),
    ("unlearn_method", "!training.unlearn_method?", "unlearn_alpha"),
    ("ra_dit_stage", "!training.ra_dit_stage?", "ra_dit_retriever_model"),
    ("task: embedding", "task!=embedding", "training.ra_dit_stage=retriever"),
    ("task: ppo or reward_model", "task!=ppo,reward_model", "quantize_reward_model"),
    ("suite", "!training.eval_gate.suite?", "training.eval_gate.enabled=true"),
    ("num_labels", "!training.num_labels?", "task=classifier task=reranker task=cross_encoder"),
    ("teacher_model", "!training.teacher_model?", "task=distill"),
    ("unlearn_method", "!training.unlearn_method?", "task=unlearn"),
    ("mole_task_adapters", "!training.mole_task_adapters?", "task=moe_lora_routing"),
    ("modality: audio_out", "modality!=audio_out", "task=tts"),
    (
        "online_dpo_judge or reward_model",
        "!training.online_dpo_judge|training.reward_model?",
        "task=online_dpo",
    ),
    ("preference_loss", "!training.preference_loss|training.preference_loss_weights?", "task=preference"),
)
"""What a setting needs beside it, as a condition that holds where it is missing, and the settings that need it: names
in `training` (or a whole path), set to something other than their default, or to the value after `=`."""

NEEDED_SINCE: Mapping[str, str] = {"freeze_trainable_layers": "0.76.1"}
"""Settings that need it from a later release on than the oldest known."""

REFUSED_VALUES = (
    Limit("training.batch_size", "training.batch_size<1", "batch_size is at least 1, or auto"),
    *(
        Limit(name.partition("=")[0].rstrip("?"), name, f"{words} is refused", help, since=since)
        for name, words, help, since in (
            ("training.quantization=bitnet_1.58", "quantization bitnet_1.58", "train with 4bit or none", "0.76.1"),
            ("training.quantization_aware=true", "quantization_aware: true", "use fp8, or drop it", "0.76.1"),
            ("training.use_longlora", "use_longlora", "drop it", "0.76.1"),
            ("training.kernel_auto_compose", "kernel_auto_compose", "set the kernels one by one", "0.76.1"),
            ("training.packing_cross_doc_attn_mask", "packing_cross_doc_attn_mask", "use packing: true", "0.76.1"),
            ("training.ebft_variant?", "ebft_variant", "drop it", "0.76.1"),
            ("training.gdpo_variant?", "gdpo_variant", "drop it", "0.76.1"),
            ("data.remove_unused_columns", "remove_unused_columns: true", "drop it", "0.77.0"),
        )
    ),
)
"""Values that their field's type takes, with what to do instead and the first known release that refuses them."""

OPTIMIZERS = frozenset(
    "adafactor adagrad adalomo adamw_8bit adamw_anyprecision adamw_bnb_8bit adamw_hf adamw_torch adamw_torch_fused"
    " adamw_torch_xla apollo_adamw grokadamw lion_32bit lion_8bit lomo muon paged_adamw_32bit paged_adamw_8bit"
    " paged_lion_32bit paged_lion_8bit rmsprop schedule_free_adamw schedule_free_sgd sgd".split()
)
OLD_OPTIMIZERS = frozenset(
    "adam_mini adamw_apex_fused ao_adamw_4bit ao_adamw_8bit ao_adamw_fp8 badam came_pytorch dion".split()
)
"""Taken up to 0.75.2; transformers 5 does not have them."""

TAKE_MORE = frozenset(
    "lr_groups mod_capacity_factor distill_mode distill_checkpoint reward_hack_mitigation stream_recompute".split()
)
"""Fields whose validators take more than their declared types and bounds say."""


@dataclass(frozen=True)
class SoupFacts:
    """What one release of Soup does."""

    release: str
    unknown_key: Severity | None
    """What comes of a key that no section has: ERROR, WARNING, or None where it is dropped without a word."""
    staged_field: Severity | None
    """What comes of a field that nothing reads yet, once it differs from its default."""
    staged: Mapping[str, Spec]
    presets: Mapping[str, Spec]
    deepspeed_presets: tuple[str, ...]
    storage_follows_compute: bool
    """4-bit storage under FSDP is set to the compute type, whatever is written."""
    unquantized_tasks: tuple[str, ...]
    bitsandbytes_dropped: bool
    """A 4bit or 8bit that is written for such a task is ignored with a warning; later it is refused."""
    optimizers: frozenset[str]
    needs: tuple[Limit, ...]
    strict: frozenset[str]
    """Fields whose validators do not let a boolean pass for a number or a number for a boolean, as pydantic does."""

    def fields(self, table: str) -> Mapping[str, Spec]:
        """The fields of a section's model; none for a name that is no model."""
        return _fields(self.release, table)

    def limits(self, table: Sequence[Limit]) -> list[Limit]:
        """The limits of a table that this release checks."""
        return [limit for limit in table if limit.in_force(self.release, declarations("soup").names)]

    def has_option(self, name: str) -> bool:
        """The option exists in this release's `soup train`."""
        since = VALUE_OPTIONS.get(name)
        return name in SWITCHES or (since is not None and declarations("soup").since(since, self.release))


@cache
def _fields(release: str, table: str) -> Mapping[str, Spec]:
    """Validators that rewrite a value still leave it to its type and bounds, but for a few fields."""
    known = declarations("soup")
    fields = known.fields(table, release) if table in known.tables else {}
    return {name: replace(spec, converted=name in TAKE_MORE) for name, spec in fields.items()}


_SEVERITIES = {"error": Severity.ERROR, "warn": Severity.WARNING}


@cache
def facts_of(release: str) -> SoupFacts:
    """The facts of one known release."""
    known = declarations("soup")
    return SoupFacts(
        release=release,
        unknown_key=_SEVERITIES.get(str(known.value("unknown_key", release))),
        staged_field=_SEVERITIES.get(str(known.value("staged_field", release))),
        staged=known.fields("staged", release),
        presets=known.fields("fsdp_presets", release),
        deepspeed_presets=tuple(known.fields("deepspeed_presets", release)),
        storage_follows_compute=known.since("0.74.0", release),
        unquantized_tasks=UNQUANTIZED_TASKS if known.since("0.76.1", release) else (),
        bitsandbytes_dropped=release == "0.76.1",
        optimizers=OPTIMIZERS if known.since("0.76.1", release) else OPTIMIZERS | OLD_OPTIMIZERS,
        needs=tuple(_needs(release)),
        strict=frozenset(
            name
            for table in ("TrainingConfig", "DataConfig", "ShipConfig")
            for name, spec in known.fields(table, release).items()
            if spec.converted and {"int", "float", "bool"} & set(spec.types)
        ),
    )


def _needs(release: str) -> Iterator[Limit]:
    known = declarations("soup")
    sections = {"training": known.fields("TrainingConfig", release), "data": known.fields("DataConfig", release)}
    for words, missing, settings in NEEDS:
        for setting in settings.split():
            name, equals, value = setting.partition("=")
            path = name if equals or "." in name else f"training.{name}"
            section, _, key = path.partition(".")
            spec = sections.get(section, {}).get(key)
            if equals or spec is not None:
                test = setting if equals or spec is None else _other_than_default(path, spec)
                since = NEEDED_SINCE.get(name, "")
                shown = f"{name}: {value}" if value and "," not in value else name.rpartition(".")[2]
                yield Limit(path, f"{test} {missing}", f"{shown} needs {words}", since=since)


def _other_than_default(path: str, spec: Spec) -> str:
    if spec.default is None:
        return f"{path}?"
    if isinstance(spec.default, bool):
        return f"!{path}" if spec.default else path
    return f"{path}? {path}!={spec.default}"
