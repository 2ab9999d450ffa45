"""What each release of Soup refuses or ignores: its presets and the options of its command.

The keys of `soup.yaml`, their types and bounds are in soup.json, settings that exclude or need each other in
limits.txt. The facts here were read in config/schema.py, commands/train.py and utils/ of the released packages, and
tried on them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from trainlint.findings import Severity
from trainlint.lazy import regex
from trainlint.records import dataclass, replace
from trainlint.releases import behaviour, during, names_within
from trainlint.repository.invocations import Command
from trainlint.training.declarations import Spec, declarations
from trainlint.training.limits import Limit, limits_of_release

VALUE_OPTIONS: Mapping[str, str] = dict.fromkeys(
    "--config -c --name -n --resume -r --tracker --deepspeed --fsdp --gpus --gate --push-as --find-lr-start"
    " --find-lr-end --find-lr-steps --find-lr-output --reward-hack-detector --replay --replay-ratio --replay-seed"
    " --reward-hack-mitigation --diagnose-gate --annex-xi --repro-receipt --capture-activations --capture-prompts"
    " --energy-country --energy-out --cloud --gpu".split(),
    "..",
) | dict.fromkeys("--nodes --node-rank --master-addr --master-port".split(), "0.76.1..")
"""Options of `soup train` that take a value, with the releases that have them."""

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
"""The largest number that `--gpus` accepts (utils/topology.py)."""

COMPILE_READERS = ("sft", "tts")
"""Tasks whose trainer reads use_fsdp2_compile: trainer/sft.py, and trainer/tts.py, which is based on it."""

UNSHARDABLE = ("hqq", "eetq", "aqlm")
"""Kinds of quantization that work neither with FSDP nor with ZeRO stage 3 (utils/quant_menu.py, since 0.38)."""

ZERO3_PRESETS = ("zero3", "zero++", "zero_pp")
"""DeepSpeed presets that the check of quantization knows as stage 3."""

ZERO3_UNCHECKED = ("zero3_offload",)
"""DeepSpeed presets of stage 3 that the check does not know."""

UNQUANTIZED_TASKS = ("distill", "classifier", "reranker", "cross_encoder", "prm", "moe_lora_routing", "unlearn", "asr")
"""Tasks whose trainer never quantizes the model; since 0.76 their default is no quantization."""

MINIMUM_TORCH = "2.2"
MINIMUM_ACCELERATE = "0.27"
"""utils/fsdp.py checks torch's version and names accelerate's."""

OPTIMIZERS = frozenset(
    "adafactor adagrad adalomo adamw_8bit adamw_anyprecision adamw_bnb_8bit adamw_hf adamw_torch adamw_torch_fused"
    " adamw_torch_xla apollo_adamw grokadamw lion_32bit lion_8bit lomo muon paged_adamw_32bit paged_adamw_8bit"
    " paged_lion_32bit paged_lion_8bit rmsprop schedule_free_adamw schedule_free_sgd sgd".split()
)
OLD_OPTIMIZERS = frozenset(
    "adam_mini adamw_apex_fused ao_adamw_4bit ao_adamw_8bit ao_adamw_fp8 badam came_pytorch dion".split()
)
"""Accepted up to 0.75.2; transformers 5 does not have them."""

MLX_OPTIMIZERS = frozenset(("adamw_hf", "muon"))
"""Since 0.76 only backend mlx has them."""

CONVERTED_FIRST = frozenset(
    "lr_groups reward_hack_mitigation stream_recompute hub distill_divergence distill_mode reasoning_effort"
    " kv_cache_type unlearn_method ra_dit_stage citation_style".split()
)
"""Fields whose validators accept more than their declared types and words; values.py checks them."""

FOLDED = CONVERTED_FIRST - {"lr_groups", "reward_hack_mitigation", "stream_recompute"}
"""Fields whose words may be written in any case."""

WORD_ALIASES: Mapping[str, Mapping[str, str]] = {"distill_divergence": {"kl": "forward_kl"}}
"""Other words for a word, by field."""

TAKE_NULL = frozenset("mod_capacity_factor distill_mode distill_checkpoint".split())
"""Fields that take null for their default."""

EMPTY_IS_NULL = frozenset("forget_set retain_set video_dir tokenized_path chat_template lr_groups".split())
"""Fields that take an empty text or list for null."""

STRICT_NUMBERS = frozenset(
    "expand_layers freeze_trainable_layers num_labels mole_top_k distill_chunk_size grace_codebook_size"
    " grace_codebook_dim mod_capacity_factor mole_temperature distill_temperature ebft_temperature unlearn_alpha"
    " citation_recall_threshold".split()
)
"""Fields whose validators take a number of the type itself: no text of digits, and for an integer no 2.0."""

BOUNDS: Mapping[str, Mapping[str, float]] = {
    "freeze_trainable_layers": {"ge": -1000, "le": 1000},
    "mole_top_k": {"ge": 1},
    "mole_temperature": {"ge": 1e-06, "le": 100},
    "distill_chunk_size": {"ge": 1},
    "distill_temperature": {"ge": 0.05, "le": 100},
    "ebft_temperature": {"ge": 0.0001, "le": 100},
    "unlearn_alpha": {"ge": 0, "le": 10},
    "citation_recall_threshold": {"ge": 0, "le": 1},
    "grace_codebook_size": {"ge": 1, "le": 100000},
    "grace_codebook_dim": {"ge": 1, "le": 16384},
    "buffer_size": {"ge": 1, "le": 1000000},
    "shards": {"ge": 1, "le": 1024},
    "image_min_pixels": {"ge": 1, "le": 2**30},
    "image_max_pixels": {"ge": 1, "le": 2**30},
    "video_maxlen": {"ge": 1, "le": 4096},
    "video_fps": {"gt": 0, "le": 240},
}
"""Bounds that validators check, not the declarations."""


@dataclass(frozen=True)
class TextLimit:
    """What a text may be: its greatest length, and whether it may be empty or blank. No text may contain a NUL."""

    most: int
    empty: bool = True
    blank: bool = True


TEXTS: Mapping[str, TextLimit] = {
    "advise.goal": TextLimit(4096),
    "data.replay": TextLimit(4096, empty=False, blank=False),
    "data.forget_set": TextLimit(4096),
    "data.retain_set": TextLimit(4096),
    "data.video_dir": TextLimit(4096),
    "data.tokenized_path": TextLimit(4096),
    "data.chat_template": TextLimit(65536),
    "training.reward_fn": TextLimit(512, empty=False, blank=False),
    "training.prm_reward": TextLimit(512, empty=False),
    "training.grpo_judge": TextLimit(512, empty=False, blank=False),
    "training.grpo_judge_rubric": TextLimit(4096, empty=False, blank=False),
    "training.online_dpo_judge": TextLimit(512, empty=False, blank=False),
    "training.asr_language": TextLimit(32, empty=False, blank=False),
    "training.minillm_pretrain_anchor_path": TextLimit(4096, empty=False),
    "training.teacher_model": TextLimit(512, empty=False),
    "training.tts_emotion": TextLimit(32, empty=False),
    "training.reward_model": TextLimit(512),
    "training.ra_dit_retriever_model": TextLimit(512, empty=False),
}
"""The texts that validators check."""

INSIDE = ("data.video_dir", "data.tokenized_path", "training.grpo_judge_rubric")
"""Paths that must lie below the folder in which Soup is started."""

FUNCTION_NAMES = ("data.prompt_strategy", "training.rollout_func")
FUNCTION_NAME = regex(r"[A-Za-z_][A-Za-z0-9_.]{0,127}:[A-Za-z_][A-Za-z0-9_]{0,127}")
"""Functions of the user, as `module.path:function`."""

TEMPLATE_DIRECTIVES = ("include", "import", "from", "macro", "extends")
"""Jinja directives that data.chat_template may not use."""
CHAT_TEMPLATES = tuple("chatml qwen2.5 qwen phi4 phi-4 llama3 llama-3 mistral gemma3 gemma-3 deepseek-r1".split())
"""The names that data.chat_template may have; since 0.76 Soup checks them before it trains (data/chat_templates.py)."""

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
FILE_SUFFIXES = (".jsonl", ".json", ".csv", ".parquet", ".txt")
"""Endings by which an entry of a list in data.train is a local file; another is a dataset of the hub."""
INTERLEAVE = ("concat", "under", "over", "probs")
PREFERENCE_LOSSES = ("dpo", "simpo", "orpo", "ipo", "bco")
REFERENCE_LOSSES = ("dpo", "ipo", "bco")
"""Preference losses with a frozen reference model."""
SIGNALS = ("length_trend", "repetition")
"""Names that reward_hack_signals may have beside the active detector."""

REWARDS = ("accuracy", "format", "verifiable", "judge_rank")
"""The rewards of trainer/rewards.py; judge_rank since 0.77."""
LORA_TASKS = tuple("sft dpo ipo kto orpo simpo bco preference grpo pretrain".split())
"""Tasks whose trainer wraps the model in a LoRA adapter, unless lora.r is 0."""

LONGLORA_MODEL = regex(
    r"(?:^|[^a-z0-9])(?:(?:code)?-?llama|mistral|mixtral|qwen|phi)(?:-?\d+(?:\.\d+)?)?(?:[^a-z0-9]|$)", re.IGNORECASE
)
"""utils/longlora.py, up to 0.75.2."""
VISION_MODEL = regex(
    r"(?:^|[^a-z0-9])(?:qwen[\d.]*-vl|qvq|pixtral|internvl[\d._]*|llama-?3\.?2[a-z0-9._-]*vision|llava|minicpm-?v"
    r"|idefics\d*|sharegpt4v|fuyu)(?:[^a-z0-9]|$)",
    re.IGNORECASE,
)
"""utils/prm.py, the bases that vision_grpo takes."""
KIMI_K2 = tuple(f"moonshotai/kimi-k2-{kind}" for kind in ("base", "instruct", "instruct-0905", "thinking"))
"""utils/kimi.py, since 0.77: models that load only with stream_layers."""

CSM_FIELDS = frozenset(
    "epochs lr batch_size gradient_accumulation_steps seed data_seed warmup_ratio weight_decay max_grad_norm optimizer"
    " scheduler save_steps logging_steps eval_steps lora quantization tts_family gradient_checkpointing".split()
)
CSM_LORA = frozenset(("r", "alpha", "dropout"))
CSM_DATA = frozenset(("train", "format", "val_split", "max_length", "audio_dir"))
"""The fields that a Sesame CSM training takes (utils/csm.py, since 0.77)."""


@dataclass(frozen=True, kw_only=True)
class SoupFacts:
    """What one release of Soup does."""

    release: str
    unknown_key: Severity | None
    """How an unknown key is treated: ERROR, WARNING, or None where it is ignored without a message."""
    staged_field: Severity | None
    """How a field that nothing reads yet is treated, if it differs from its default."""
    staged: Mapping[str, Spec]
    presets: Mapping[str, Spec]
    deepspeed_presets: tuple[str, ...]
    storage_follows_compute: bool = during("0.74.0..")
    """4-bit storage under FSDP is set to the compute type, whatever the file says."""
    some_tasks_unquantized: bool = during("0.76.1..")
    """Some tasks never quantize the model, and their default is no quantization."""
    bitsandbytes_dropped: bool = during("0.76.1")
    """4bit or 8bit for such a task is ignored with a warning; later it is refused."""
    old_optimizers: bool = during("..0.75.2")
    """The old optimizers still exist."""
    limits: Mapping[str, tuple[Limit, ...]]
    """The limits by section of limits.txt."""
    judged_urls: bool = during("0.75.2..")
    """online_dpo_judge may not name a private address, and regular expressions are checked for their cost."""
    several_sources: bool = during("0.74.0..")
    """data.train may be a list, whose entries are mixed as data.interleave says."""
    csm: bool = during("0.77.0..")
    """A TTS model of the family Sesame CSM can be trained, with a few settings."""

    @property
    def unquantized_tasks(self) -> tuple[str, ...]:
        """Tasks that never quantize the model."""
        return UNQUANTIZED_TASKS if self.some_tasks_unquantized else ()

    @property
    def optimizers(self) -> frozenset[str]:
        """The names that training.optimizer accepts."""
        return OPTIMIZERS | OLD_OPTIMIZERS if self.old_optimizers else OPTIMIZERS

    def fields(self, table: str) -> Mapping[str, Spec]:
        """The fields of a section's model; none for another name."""
        return _fields(self.release, table)

    @property
    def options(self) -> frozenset[str]:
        """The options of this release's `soup train`."""
        return SWITCHES.union(names_within(VALUE_OPTIONS, self.release))


@cache
def _fields(release: str, table: str) -> Mapping[str, Spec]:
    """The fields of a model, with the bounds that its validators check.

    A validator that rewrites a value still checks its type and bounds, except in CONVERTED_FIRST.
    """
    known = declarations("soup")
    fields = known.fields(table, release) if table in known.tables else {}
    return {
        name: replace(
            spec,
            converted=name in CONVERTED_FIRST,
            types=(*spec.types, "None") if name in TAKE_NULL else spec.types,
            bounds={**spec.bounds, **BOUNDS.get(name, {})},
            extra={"before": spec.converted},
        )
        for name, spec in fields.items()
    }


@cache
def schedulers() -> frozenset[str]:
    """The schedulers of all known releases of transformers, to which Soup hands its own setting on."""
    return declarations("transformers").keys_of_any("choices:SchedulerType")


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
        limits=limits_of_release("soup", release, known.names),
        **behaviour(SoupFacts, release),
    )
