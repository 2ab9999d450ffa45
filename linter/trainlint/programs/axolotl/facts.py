"""How each release of Axolotl validates a configuration, apart from the types of its fields.

Source: Axolotl's utils/schemas/ (config.py, validation.py, peft.py, fsdp.py, deprecated.py), utils/config/__init__.py
and utils/trainer.py, each known release read and run. Fields and types are in axolotl.json, settings that exclude or
need each other in limits.txt. Of 0.5.2 to 0.7.0 the fields and types alone were read (axolotl-older.json): nothing else
in this module, and no limit, is meant for these.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from trainlint.records import dataclass
from trainlint.releases import behaviour, during, names_within, words_within
from trainlint.training.declarations import Spec, declarations
from trainlint.training.limits import Limit, limits_of_release

IGNORED_UNDER_FSDP2 = (
    "sync_module_states",
    "backward_prefetch",
    "backward_prefetch_policy",
    "limit_all_gathers",
    "use_orig_params",
)
"""Keys of fsdp_config that are ignored with a warning since FSDP1 is gone."""

REFUSED_UNDER_FSDP2 = {
    "sharding_strategy": "write reshard_after_forward: true (or false for SHARD_GRAD_OP) instead",
    "forward_prefetch": "remove it: FSDP2 has no such setting",
}
"""Keys of fsdp_config that are refused since FSDP1 is gone, with help."""

FSDP_ENV_KEYS = {
    "..": (
        "activation_checkpointing",
        "offload_params",
        "sync_module_states",
        "cpu_ram_efficient_loading",
        "use_orig_params",
        "state_dict_type",
        "auto_wrap_policy",
        "transformer_layer_cls_to_wrap",
    ),
    "0.8.1..": ("version", "reshard_after_forward"),
}
"""By span: keys that are passed to accelerate where fsdp_config is not a model of fields."""

BUILT_IN_ADAPTERS = ("lora", "qlora", "llama-adapter")

PLUGINS = "axolotl.integrations."
"""Where the plugins are that come with Axolotl."""

OWN_PLUGINS = {
    "context_parallel.ContextParallelPlugin": "0.20.0..",
    "expert_parallel.ExpertParallelPlugin": "0.21.0..",
}
"""Plugins that are loaded without being named, with the releases that do so."""

SHADOWED = ("baseten", "hatchery", "kernels", "lm_eval", "modal", "nebius", "nemo_gym", "spectrum", "swanlab")
"""Plugins whose short name may be that of another installed package, which then wins."""

SWANLAB_MODES = ("cloud", "local", "offline", "disabled")

KERNEL_WORDS = {
    "dsv4_fp4_grouped_mode": ("nvfp4",),
    "dsv4_fp8_nonexpert_mode": ("float8tensor", "bf16"),
    "expert_backend": ("scattermoe", "sonicmoe", "eager", "builtin"),
    "moe_grouped_backend": ("auto", "marlin", "cutlass", "deepgemm"),
    "nonexpert_quantization": ("none", "bf16", "fp8", "fp8_blockwise", "nf4", "nvfp4"),
}
"""Words of settings of KernelsPlugin, in any case."""

ATTENTION_FLAGS = {
    "xformers_attention": "xformers",
    "sage_attention": "sage",
    "flex_attention": "flex_attention",
    "flash_attention": "flash_attention_2",
    "sdp_attention": "sdpa",
    "eager_attention": "eager",
}
"""The old flags, with the attn_implementation that each sets; the first that is true decides."""

ATTENTIONS = {
    "0.17.0..": (
        "eager",
        "sdpa",
        "flash_attention_2",
        "flash_attention_3",
        "flex_attention",
        "xformers",
        "sage",
        "fp8",
    ),
    "0.19.0..": ("flash_attention_4", "flash_attention_torch"),
    "0.21.0..": ("varlen",),
}
"""By span: the words of attn_implementation, apart from the path of a kernel, which has a slash."""

PACKING_ATTENTIONS = (
    "flash_attention_2",
    "flash_attention_3",
    "flash_attention_4",
    "flash_attention_torch",
    "flex_attention",
    "xformers",
    "sage",
    "varlen",
    "kernels-community/flash-attn2",
    "kernels-community/flash-attn3",
    "kernels-community/sage-attention",
)
"""Attentions that keep packed samples apart by position."""

WORDS = {
    "image_resize_algorithm": ("bilinear", "bicubic", "lanczos"),
    "large_head_attention": ("auto", "sdpa", "triton_flash"),
}
"""Words of a field, in any case."""

WRITTEN_OUT = ("large_head_attention",)
"""Those whose value is made a text before it is compared."""

GGUF_QUANTS = tuple(
    "F32 F16 BF16 Q8_0 Q6_K Q5_K_M Q5_K_S Q5_0 Q4_K_M Q4_K_S Q4_0 Q4_1 Q3_K_L Q3_K_M Q3_K_S Q2_K Q2_K_S IQ4_XS IQ4_NL"
    " IQ3_M IQ3_S IQ3_XS IQ3_XXS IQ2_M IQ2_S IQ2_XS IQ2_XXS IQ1_M IQ1_S TQ1_0 TQ2_0 MXFP4_MOE".split()
)
"""The types of llama.cpp that an export may have, in any case."""

DTYPES = {
    "..": ("int4", "int8"),
    "0.13.2..": ("float8_e4m3fn", "fp8", "float8", "nvfp4"),
    "0.16.1..": ("mxfp4",),
    "0.19.0..": ("ternary",),
}
"""By span: the dtypes of quantization."""

DPO_DATASETS = {"..": ("dpo",), "0.12.2..": ("simpo",), "0.13.2..": ("ipo",)}
"""By span: the methods whose datasets are DPODataset."""

RESERVED_PROCESSOR_KEYS = {"revision": "revision_of_model", "trust_remote_code": "trust_remote_code"}
"""Keys that processor_kwargs refuses, with the settings to use instead."""

COMPARED_AS_NUMBERS = {"tensor_parallel_size": "0.12.2..", "sequence_parallel_degree": "..0.8.1"}
"""Settings that are compared with a number before text is converted, with the releases that do so."""

METRICS = ("sacrebleu", "comet", "ter", "chrf", "perplexity")

COMPILE_OPTIONS = (
    "coordinate_descent_tuning",
    "coordinate_descent_check_all_directions",
    "shape_padding",
    "epilogue_fusion",
    "max_autotune_gemm",
    "fx_graph_cache",
    "assume_aligned_inputs",
    "comprehensive_padding",
    "decompose_mem_bound_mm",
    "triton.cudagraphs",
)

NOT_EMPTY = ("datasets", "test_datasets", "pretraining_dataset", "dpo_loss_type", "dpo_loss_weights")
"""Lists that must not be empty."""

MIXLORA_DEFAULTS = {"mixlora_top_k": 2, "mixlora_num_experts": 8}

REFUSED_WHEN_TRUE = ("max_packed_sequence_len", "rope_scaling", "s2_attention", "flash_attn_rms_norm")
"""Removed fields that are refused only when they are true; the others are refused with any value."""

RENAMED = {
    "noisy_embedding_alpha": "write neftune_noise_alpha",
    "dpo_beta": "write rl_beta",
    "evaluation_strategy": "write eval_strategy",
    "rope_scaling": "write it in overrides_of_model_config",
    "max_packed_sequence_len": "write sequence_len",
    "eval_table_size": "write generate_samples and num_generation_samples",
    "eval_max_new_tokens": "write generation_max_new_tokens",
}
"""Help for deprecated fields."""

UNDECLARED_KEYS = ("fsdp", "capabilities", "env_capabilities", "lora_exclude_modules")
"""Keys that are read although no field declares them."""


@dataclass(frozen=True, kw_only=True)
class AxolotlFacts:
    """What one known release of Axolotl accepts."""

    release: str
    fsdp1: bool = during("..0.19.0")
    """The release still has FSDP1."""
    fsdp_model: bool
    """fsdp_config is a model of typed fields."""
    prefix_stripped: bool = during("0.12.2..")
    """The prefix `fsdp_` of keys of fsdp_config is stripped."""
    own_version_first: bool = during("0.14.0..")
    """A top-level fsdp_version wins over the one in fsdp_config."""
    bare_version: bool = during("0.14.0..")
    """`version` in fsdp_config is the FSDP version; before, only `fsdp_version` is."""
    offload_key_needed: bool = during("0.12.2")
    """An 8-bit optimizer needs the key offload_params in fsdp_config, whatever its value."""
    degree_renamed: bool = during("0.12.2..")
    """sequence_parallel_degree is the old name of context_parallel_size."""
    null_optimizer_with_rates: bool = during("0.12.2..0.14.0")
    """An empty optimizer ends the run where parameters have rates of their own."""
    dtypes: tuple[str, ...]
    """The dtypes of quantization."""
    dpo_datasets: tuple[str, ...]
    """The methods whose datasets are DPODataset."""
    tensor_parallel_loads_shards: bool = during("0.20.0..")
    """Tensor parallelism switches loading on the first process off."""
    fsdp_keys: frozenset[str]
    """The keys that fsdp_config is read for, without the prefix."""
    ignored_keys: tuple[str, ...]
    """Keys of fsdp_config that are ignored with a warning."""
    refused_keys: Mapping[str, str]
    """Keys of fsdp_config that are refused, with help."""
    attentions: tuple[str, ...]
    """The words of attn_implementation; none where there is no such setting."""
    compile_options: bool = during("0.18.0..")
    """torch_compile_options are checked."""
    registered_adapters: bool = during("0.17.0..")
    """An adapter must be built in, or registered by a plugin."""
    compared_as_numbers: tuple[str, ...]
    """Settings that are compared with a number before text is converted."""
    target_patterns_compiled: bool = during("0.16.1..")
    """lora_target_modules are compiled as regular expressions."""
    processor_keys_reserved: bool = during("0.17.0..")
    """processor_kwargs refuses keys that have settings of their own."""
    rl_counts_checked: bool = during("0.17.0..")
    """DPO needs as many weights as losses, GRPO a batch that is a multiple of its generations."""
    streams_packed_alone: bool = during("0.13.2..")
    """Only a single streamed dataset can be packed."""
    plugins: Mapping[str, Spec]
    """The plugins that come with the release, by their names below axolotl.integrations."""
    own_plugins: tuple[str, ...]
    """Those of them that are always loaded."""
    short_plugin_names: bool = during("..")
    """A plugin's name may be given without axolotl.integrations."""
    sizes_multiply: bool = during("0.12.2..")
    """The parallel sizes must multiply to the number of processes."""
    diffusion_rewrites: bool = during("0.21.0..")
    """DiffusionPlugin turns a share in warmup_steps into warmup_ratio, and names the metric of the best checkpoint."""
    looks_at_start_step: bool = during("0.20.0..")
    """nvfp4_merge_aware_start_step is looked at without nvfp4_merge_aware, unless that is false."""
    plugins_required: bool = during("0.21.0..")
    """A plugin that cannot be loaded ends the run; before, that is only logged. A colon may stand before its class."""
    limits: Mapping[str, tuple[Limit, ...]]
    """The limits by section of limits.txt."""


@cache
def facts_of(release: str) -> AxolotlFacts:
    """The facts of one known release."""
    known = declarations("axolotl")
    model = known.keys("FSDPConfig", release)
    behaves = behaviour(AxolotlFacts, release)
    fsdp1 = behaves["fsdp1"]
    return AxolotlFacts(
        release=release,
        fsdp_model=bool(model),
        fsdp_keys=frozenset({*model, "version", "fsdp_version"} if model else words_within(FSDP_ENV_KEYS, release)),
        ignored_keys=() if fsdp1 else IGNORED_UNDER_FSDP2,
        refused_keys={} if fsdp1 else REFUSED_UNDER_FSDP2,
        attentions=words_within(ATTENTIONS, release),
        dtypes=words_within(DTYPES, release),
        dpo_datasets=words_within(DPO_DATASETS, release),
        compared_as_numbers=names_within(COMPARED_AS_NUMBERS, release),
        plugins=known.fields("plugins", release),
        own_plugins=names_within(OWN_PLUGINS, release),
        limits={} if known.is_only_read(release) else limits_of_release("axolotl", release, known.names),
        **behaves,
    )
