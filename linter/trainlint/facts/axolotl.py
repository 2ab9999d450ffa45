"""What Axolotl's validation makes of a configuration, release by release, beyond the types of its fields.

Source: Axolotl's utils/schemas/ (config.py, validation.py, peft.py, fsdp.py, deprecated.py), utils/config/__init__.py
and utils/trainer.py, each known release read and run. The fields and their types are in axolotl.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainlint.conditions import Limit
from trainlint.facts.releases import releases

FSDP1_REMOVED = "0.20.0"

IGNORED_UNDER_FSDP2 = (
    "sync_module_states",
    "backward_prefetch",
    "backward_prefetch_policy",
    "limit_all_gathers",
    "use_orig_params",
)
"""Keys of fsdp_config that are dropped with a warning since FSDP1 is gone."""

REFUSED_UNDER_FSDP2 = {
    "sharding_strategy": "write reshard_after_forward: true (or false for SHARD_GRAD_OP) instead",
    "forward_prefetch": "remove it: FSDP2 has nothing like it",
}
"""Keys of fsdp_config that are refused since FSDP1 is gone."""

FSDP_ENV_KEYS = {
    "": (
        "activation_checkpointing",
        "offload_params",
        "sync_module_states",
        "cpu_ram_efficient_loading",
        "use_orig_params",
        "state_dict_type",
        "auto_wrap_policy",
        "transformer_layer_cls_to_wrap",
    ),
    "0.8.1": ("version", "reshard_after_forward"),
}
"""Keys of fsdp_config that are handed to accelerate before it had a model, with the release from which each is."""

BUILT_IN_ADAPTERS = ("lora", "qlora", "llama-adapter")
PLUGIN_ADAPTERS = ("mixlora", "mora", "multilora")
"""Adapters that a plugin which comes with Axolotl registers."""

ATTENTION_FLAGS = {
    "xformers_attention": "xformers",
    "sage_attention": "sage",
    "flex_attention": "flex_attention",
    "flash_attention": "flash_attention_2",
    "sdp_attention": "sdpa",
    "eager_attention": "eager",
}
"""The old flags in the order in which one decides the attention, with what attn_implementation becomes."""

ATTENTIONS = {
    "0.17.0": ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention", "xformers", "sage", "fp8"),
    "0.19.0": ("flash_attention_4", "flash_attention_torch"),
    "0.21.0": ("varlen",),
}
"""The words that attn_implementation takes beside a kernel's path (with a slash), with the release each is from."""

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
"""Attentions that keep packed samples apart by their positions."""

WORDS = {
    "image_resize_algorithm": ("bilinear", "bicubic", "lanczos"),
    "large_head_attention": ("auto", "sdpa", "triton_flash"),
}
"""Words that a field takes in whatever case."""

DTYPES = ("int4", "int8", "float8_e4m3fn", "fp8", "float8", "nvfp4", "mxfp4", "ternary")
"""Dtypes that quantization takes in one release or another."""

RESERVED_PROCESSOR_KEYS = {"revision": "revision_of_model", "trust_remote_code": "trust_remote_code"}
"""Keys that processor_kwargs refuses, with the settings to use for them."""

COMPARED_AS_NUMBERS = {"tensor_parallel_size": "0.12.2"}
"""Settings that are compared with a number before texts are converted, with the release from which they are."""

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
COMPILE_OPTIONS_SINCE = "0.18.0"

NOT_EMPTY = ("datasets", "test_datasets", "pretraining_dataset", "dpo_loss_type", "dpo_loss_weights")
"""Lists that need an item, as their annotations say."""

MIXLORA_DEFAULTS = {"mixlora_top_k": 2, "mixlora_num_experts": 8}

REFUSED_WHEN_TRUE = ("max_packed_sequence_len", "rope_scaling", "s2_attention", "flash_attn_rms_norm")
"""Removed fields that are refused only where they are set to something true; the others wherever they are given."""

RENAMED = {
    "noisy_embedding_alpha": "write neftune_noise_alpha",
    "dpo_beta": "write rl_beta",
    "evaluation_strategy": "write eval_strategy",
    "rope_scaling": "write it below model_config (overrides_of_model_config)",
    "max_packed_sequence_len": "write sequence_len",
    "eval_table_size": "write generate_samples and num_generation_samples",
    "eval_max_new_tokens": "write generation_max_new_tokens",
}

"""Deprecated fields with what is written for them."""

UNDECLARED_KEYS = ("fsdp", "capabilities", "env_capabilities")
"""Keys that are read though no field of the release declares them."""

_OLD_ATTENTIONS = "xformers_attention|sdp_attention|s2_attention|flash_attention|flex_attention"
_FLAGS = "|".join(ATTENTION_FLAGS)
_KERNELS = "lora_mlp_kernel|lora_qkv_kernel|lora_o_kernel"
_UNSLOTH_LORA = "unsloth_lora_mlp|unsloth_lora_qkv|unsloth_lora_o"
_UNSLOTH = f"unsloth_cross_entropy_loss|{_UNSLOTH_LORA}|unsloth_rms_norm|unsloth_rope"
_CROSS_ENTROPIES = "cut_cross_entropy|chunked_cross_entropy|liger_cross_entropy|liger_fused_linear_cross_entropy"
_USE_ONE = "keep one of them"

SHARDING = (
    Limit(
        "fsdp_config.auto_wrap_policy",
        "fsdp_config.auto_wrap_policy=SIZE_BASED_WRAP !fsdp_config.min_num_params?",
        "SIZE_BASED_WRAP needs min_num_params",
        "add min_num_params, such as 100000000",
        "0.18.0",
        converted=True,
    ),
    Limit(
        "fsdp_config.cpu_offload_pin_memory",
        "fsdp_config.cpu_offload_pin_memory=false fsdp_version!=2",
        "FSDP1 always pins the memory that it offloads to",
        "set fsdp_version: 2, or remove cpu_offload_pin_memory",
        "0.13.2",
        "0.19.0",
    ),
    Limit(
        "fsdp_config.cpu_offload_pin_memory",
        "fsdp_config.cpu_offload_pin_memory=false !fsdp_config.offload_params",
        "cpu_offload_pin_memory: false needs offload_params: true",
        "set offload_params: true, or remove cpu_offload_pin_memory",
        "0.13.2",
    ),
    Limit(
        "base_model",
        "base_model~falcon fsdp",
        "Falcon models are not trained with FSDP",
        until="0.19.0",
        converted=True,
    ),
    Limit(
        "base_model",
        "base_model~falcon fsdp_config",
        "Falcon models are not trained with FSDP",
        since="0.20.0",
        converted=True,
    ),
    Limit("relora_steps", "relora_steps fsdp", "ReLoRA does not work with FSDP", until="0.11.0", converted=True),
    Limit("relora", "relora fsdp|fsdp_config", "ReLoRA does not work with FSDP", since="0.12.2", converted=True),
    Limit("relora_steps", "relora_steps deepspeed", "ReLoRA excludes DeepSpeed", until="0.11.0", converted=True),
    Limit("relora", "relora deepspeed", "ReLoRA excludes DeepSpeed", since="0.12.2", converted=True),
    Limit(
        "fp8_enable_fsdp_float8_all_gather",
        "fp8_enable_fsdp_float8_all_gather fsdp_version!=2",
        "fp8_enable_fsdp_float8_all_gather needs FSDP2",
        "set fsdp_version: 2",
        "0.12.2",
        "0.19.0",
    ),
    Limit(
        "fp8_enable_fsdp_float8_all_gather",
        "fp8_enable_fsdp_float8_all_gather !fsdp_config",
        "fp8_enable_fsdp_float8_all_gather needs an fsdp_config",
        since="0.20.0",
    ),
    Limit(
        "fp8_enable_fsdp_float8_all_gather",
        "fp8_enable_fsdp_float8_all_gather fp8_config.recipe? fp8_config.recipe!=tensorwise",
        "fp8_enable_fsdp_float8_all_gather works with the tensorwise recipe alone",
        since="0.19.0",
    ),
    Limit(
        "fp32_norms",
        "fp32_norms !fsdp_config?",
        "fp32_norms needs an fsdp_config",
        since="0.17.0",
        converted=True,
    ),
    Limit(
        "fp32_norms",
        "fp32_norms fsdp_config? fsdp_version!=2",
        "fp32_norms needs FSDP2",
        "set fsdp_version: 2",
        "0.17.0",
        "0.19.0",
        converted=True,
    ),
    Limit(
        "ple_cpu_offload",
        "ple_cpu_offload fsdp_config|fsdp?",
        "ple_cpu_offload excludes FSDP",
        since="0.19.0",
        until="0.19.0",
    ),
    Limit("ple_cpu_offload", "ple_cpu_offload fsdp_config?", "ple_cpu_offload excludes FSDP", since="0.20.0"),
    Limit("ple_cpu_offload", "ple_cpu_offload deepspeed", "ple_cpu_offload excludes DeepSpeed", since="0.19.0"),
    Limit(
        "fsdp_config.state_dict_type",
        "fsdp save_safetensors fsdp_config.state_dict_type=SHARDED_STATE_DICT",
        "a sharded state dict is not saved as safetensors",
        "use FULL_STATE_DICT, or set save_safetensors: false",
        until="0.11.0",
    ),
    Limit("deepcompile", "deepcompile !deepspeed", "deepcompile needs DeepSpeed", since="0.12.2"),
    Limit("tiled_mlp", "tiled_mlp !deepspeed", "tiled_mlp needs DeepSpeed ZeRO", since="0.11.0", until="0.11.0"),
    Limit(
        "torch_compile",
        "deepspeed torch_compile",
        "torch_compile cannot be set beside deepspeed",
        "set it in DeepSpeed's own configuration",
        until="0.12.2",
    ),
    Limit(
        "tensor_parallel_size",
        "tensor_parallel_size>1 expert_parallel_size>1",
        "tensor_parallel_size cannot be combined with expert_parallel_size",
        since="0.20.0",
        converted=True,
    ),
)

OPTIMIZERS = (
    Limit(
        "optimizer",
        "fsdp optimizer~8bit fsdp_config.offload_params",
        "an 8-bit optimizer does not work with FSDP's parameter offload",
        "use adamw_torch, or drop the offload",
        until="0.8.0",
    ),
    Limit(
        "optimizer",
        "fsdp optimizer~8bit fsdp_config.offload_params fsdp_config.version!=2",
        "an 8-bit optimizer does not work with FSDP1's parameter offload",
        "use adamw_torch, or drop the offload",
        "0.8.1",
        "0.11.0",
    ),
    Limit(
        "optimizer",
        "fsdp optimizer=adamw_8bit,adamw_bnb_8bit fsdp_config.version=2",
        "bitsandbytes' 8-bit AdamW does not work with FSDP2",
        "use adamw_torch_8bit",
        "0.8.1",
        "0.11.0",
    ),
    Limit(
        "optimizer",
        "fsdp_config optimizer~8bit fsdp_config.offload_params fsdp_version!=2",
        "an 8-bit optimizer does not work with FSDP1's parameter offload",
        "use adamw_torch, or drop the offload",
        "0.12.2",
        "0.19.0",
        converted=True,
    ),
    Limit(
        "optimizer",
        "fsdp_config optimizer=adamw_8bit,adamw_bnb_8bit fsdp_version=2",
        "bitsandbytes' 8-bit AdamW does not work with FSDP2",
        "use adamw_torch_8bit",
        "0.12.2",
        "0.19.0",
        converted=True,
    ),
    Limit(
        "optimizer",
        "fsdp_config optimizer=adamw_8bit,adamw_bnb_8bit",
        "bitsandbytes' 8-bit AdamW does not work with FSDP2",
        "use adamw_torch_8bit",
        "0.20.0",
        converted=True,
    ),
    Limit(
        "optimizer",
        "optimizer=paged_adamw_8bit,adamw_8bit,adamw_bnb_8bit tensor_parallel_size>1",
        "bitsandbytes' 8-bit AdamW does not work with tensor parallelism",
        "use adamw_torch_8bit, or set tensor_parallel_size: 1",
        "0.12.2",
        converted=True,
    ),
    Limit(
        "optimizer",
        "optimizer=muon deepspeed|fsdp|fsdp_config",
        "muon works with neither DeepSpeed nor FSDP in this release",
        until="0.12.2",
    ),
    Limit("optimizer", "optimizer=muon deepspeed", "muon does not work with DeepSpeed", since="0.13.2"),
    Limit("optimizer", "optimizer=muon_8bit deepspeed", "muon_8bit does not work with DeepSpeed", since="0.21.0"),
    Limit(
        "optimizer",
        "optimizer=muon fsdp|fsdp_config fsdp_version!=2",
        "muon works with FSDP2 alone",
        "set fsdp_version: 2",
        "0.13.2",
        "0.19.0",
    ),
    Limit("optimizer", "optimizer~flash_ deepspeed", "the flash optimizers do not work with DeepSpeed", since="0.16.1"),
    Limit(
        "optimizer",
        "optimizer~flash_ fsdp|fsdp_config fsdp_version!=2",
        "the flash optimizers work with FSDP2 alone",
        "set fsdp_version: 2",
        "0.16.1",
        "0.19.0",
    ),
    Limit(
        "optimizer",
        "optimizer=q_galore_adamw8bit adapter",
        "q_galore_adamw8bit trains full parameters, not an adapter",
        since="0.17.0",
    ),
    Limit(
        "optimizer",
        "optimizer=q_galore_adamw8bit deepspeed",
        "q_galore_adamw8bit does not work with DeepSpeed",
        since="0.17.0",
    ),
    Limit(
        "optimizer",
        "optimizer=q_galore_adamw8bit fsdp|fsdp_config fsdp_version!=2",
        "q_galore_adamw8bit works with FSDP2 alone",
        "set fsdp_version: 2",
        "0.17.0",
        "0.19.0",
    ),
    Limit(
        "optimizer",
        "optimizer=q_galore_adamw8bit fsdp|fsdp_config fsdp_config.use_orig_params!=true",
        "q_galore_adamw8bit needs use_orig_params: true in fsdp_config",
        since="0.17.0",
        until="0.19.0",
    ),
    Limit("optimizer", "optimizer=polora adapter!=lora,qlora", "polora trains LoRA factors alone", since="0.19.0"),
    Limit(
        "optimizer",
        "optimizer=polora deepspeed",
        "polora does not work with DeepSpeed",
        since="0.19.0",
    ),
    Limit(
        "optimizer",
        "optimizer=polora tensor_parallel_size>1",
        "polora does not work with tensor parallelism",
        since="0.19.0",
    ),
    Limit(
        "optimizer",
        "optimizer=polora fsdp|fsdp_config fsdp_version!=2",
        "polora works with FSDP2 alone",
        "set fsdp_version: 2",
        "0.19.0",
        "0.19.0",
    ),
    *(
        Limit(key, f"optimizer=polora {key}", f"polora does not work with {key}", since="0.19.0")
        for key in (
            "lora_modules_to_save",
            "unfrozen_parameters",
            "peft_use_dora",
            "peft_trainable_token_indices",
            "lisa_step_interval",
            "reward_model",
            "process_reward_model",
            "loraplus_lr_ratio",
            "lr_groups",
            "embedding_lr",
            "embedding_lr_scale",
            "relora_steps",
        )
    ),
    Limit(
        "optimizer",
        "optimizer=adamw_torch_8bit,adamw_torch_4bit loraplus_lr_ratio|embedding_lr_scale|embedding_lr|lr_groups?",
        "torchao's low-bit optimizers take no learning rates for groups",
        since="0.12.2",
        until="0.14.0",
        converted=True,
    ),
    Limit("lr_groups", "lr_groups loraplus_lr_ratio", "lr_groups and loraplus_lr_ratio exclude each other", _USE_ONE),
)

ADAPTERS = (
    Limit(
        "load_in_4bit|load_in_8bit",
        "!adapter !inference load_in_8bit|load_in_4bit",
        "a quantized model is trained through an adapter alone",
        "set adapter: qlora (4-bit) or adapter: lora, or load the model unquantized",
    ),
    Limit("load_in_8bit", "adapter=qlora load_in_8bit", "qlora does not load the model in 8 bits", converted=True),
    Limit("gptq", "adapter=qlora gptq", "qlora does not work with GPTQ", converted=True),
    Limit(
        "adapter",
        "adapter=qlora !merge_lora !load_in_4bit",
        "qlora needs load_in_4bit: true",
        "set load_in_4bit: true, or adapter: lora",
        converted=True,
    ),
    Limit("merge_lora", "adapter=qlora merge_lora load_in_4bit", "a 4-bit qlora is not merged", converted=True),
    Limit(
        "model_quantization_config",
        "model_quantization_config load_in_8bit|load_in_4bit",
        "model_quantization_config cannot be used beside load_in_4bit or load_in_8bit",
        since="0.12.2",
    ),
    Limit(
        "fsdp_config.cpu_ram_efficient_loading",
        "model_quantization_config=Mxfp4Config fsdp_config.cpu_ram_efficient_loading=true",
        "cpu_ram_efficient_loading does not work with Mxfp4Config",
        "set cpu_ram_efficient_loading: false",
        "0.12.2",
    ),
    Limit(
        "fsdp_config.cpu_ram_efficient_loading",
        "fsdp_config fsdp_version=2 fsdp_config.cpu_ram_efficient_loading load_in_4bit|load_in_8bit",
        "cpu_ram_efficient_loading under FSDP2 does not work with a quantized model",
        "set cpu_ram_efficient_loading: false",
        "0.12.2",
        "0.12.2",
        converted=True,
    ),
    Limit(
        "fsdp_config.cpu_ram_efficient_loading",
        "fsdp_config fsdp_version=2 fsdp_config.cpu_ram_efficient_loading load_in_4bit",
        "cpu_ram_efficient_loading under FSDP2 does not work with load_in_4bit",
        "set cpu_ram_efficient_loading: false",
        "0.19.0",
        "0.19.0",
        converted=True,
    ),
    *(
        Limit(
            "fsdp_config.cpu_ram_efficient_loading",
            f"fsdp_config.cpu_ram_efficient_loading load_in_4bit {unless}",
            "cpu_ram_efficient_loading with load_in_4bit needs sharded loading of a qlora model",
            "set qlora_sharded_model_loading: true, or cpu_ram_efficient_loading: false",
            "0.20.0",
            converted=True,
        )
        for unless in ("qlora_sharded_model_loading=false", "!qlora_sharded_model_loading? adapter!=qlora")
    ),
    Limit(
        "bnb_config_kwargs.blocksize",
        "load_in_4bit nf4_backend!=torchao bnb_config_kwargs.blocksize? bnb_config_kwargs.blocksize!=64",
        "bitsandbytes quantizes to 4 bits in blocks of 64 alone",
        "remove blocksize",
        "0.20.0",
        converted=True,
    ),
    *(
        Limit(
            "fsdp_config.cpu_ram_efficient_loading",
            f"staged_nf4 {violated}",
            f"loading NF4 weights in stages {why}",
            "set qlora_sharded_model_loading: false and cpu_ram_efficient_loading: false",
            "0.20.0",
            converted=True,
        )
        for violated, why in (
            ("adapter!=qlora", "needs adapter: qlora"),
            ("!load_in_4bit", "needs load_in_4bit: true"),
            ("load_in_8bit", "does not work with load_in_8bit"),
            ("fsdp_config !fsdp_config.cpu_ram_efficient_loading", "needs cpu_ram_efficient_loading: true"),
            ("fsdp_config qlora_sharded_model_loading=false", "needs qlora_sharded_model_loading: true"),
            ("deepspeed", "does not work with DeepSpeed"),
            ("tensor_parallel_size>1", "does not work with tensor parallelism"),
            ("context_parallel_size>1", "does not work with context parallelism"),
            ("!context_parallel_size sequence_parallel_degree>1", "does not work with context parallelism"),
            ("dp_replicate_size>1", "needs dp_replicate_size: 1"),
            ("bnb_config_kwargs.bnb_4bit_quant_type? bnb_config_kwargs.bnb_4bit_quant_type!=nf4", "needs the type nf4"),
            ("nf4_backend=torchao bnb_config_kwargs.blocksize? bnb_config_kwargs.blocksize!=64", "needs blocks of 64"),
            (
                "nf4_backend=torchao bnb_config_kwargs.bnb_4bit_use_double_quant?"
                " !bnb_config_kwargs.bnb_4bit_use_double_quant",
                "needs double quantization",
            ),
            ("peft_use_dora", "does not work with DoRA"),
            ("lora_modules_to_save", "does not work with lora_modules_to_save"),
            (
                "peft_init_lora_weights? peft_init_lora_weights!=true,false,gaussian",
                "needs the default or gaussian init",
            ),
            ("peft.loftq_config", "does not work with LoftQ"),
        )
    ),
    Limit(
        "adapter",
        "adapter=lora,qlora flash_attn_fuse_qkv",
        "an adapter does not work with fused attention modules",
        "remove flash_attn_fuse_qkv",
        until="0.11.0",
        converted=True,
    ),
    Limit(
        "flash_attn_fuse_mlp",
        "adapter=lora,qlora flash_attn_fuse_mlp",
        "an adapter does not work with flash_attn_fuse_mlp",
        converted=True,
    ),
    Limit(
        "flash_attn_fuse_mlp|flash_attn_fuse_qkv",
        "adapter=mixlora flash_attn_fuse_mlp|flash_attn_fuse_qkv",
        "mixlora does not work with fused modules",
        since="0.20.0",
        converted=True,
    ),
    Limit("rl", "adapter=mixlora rl?", "mixlora does not work with RL training", since="0.20.0", converted=True),
    Limit("adapter", "adapter=mixlora !lora_r", "mixlora needs lora_r", since="0.20.0", converted=True),
    Limit("adapter", "adapter=mixlora !lora_alpha", "mixlora needs lora_alpha", since="0.20.0", converted=True),
    Limit(
        "use_onebitllms",
        "use_onebitllms adapter=lora,qlora",
        "use_onebitllms does not work with lora or qlora",
        since="0.17.0",
        converted=True,
    ),
    Limit(
        _KERNELS,
        f"{_KERNELS} adapter=lora load_in_8bit",
        "the LoRA kernels do not work with an 8-bit model",
    ),
    Limit(_KERNELS, f"{_KERNELS} rl", "the LoRA kernels do not work with RL training", since="0.10.0", until="0.15.0"),
    Limit(
        _KERNELS,
        f"{_KERNELS} peft_use_dora",
        "the LoRA kernels do not work with DoRA",
        since="0.12.2",
        until="0.15.0",
    ),
    Limit(
        _KERNELS,
        f"{_KERNELS} trust_remote_code",
        "the LoRA kernels do not work with trust_remote_code",
        since="0.15.0",
        until="0.20.0",
    ),
    Limit(
        _KERNELS,
        f"{_KERNELS} fsdp?",
        "the LoRA kernels do not work with FSDP on several devices",
        until="0.8.1",
    ),
    Limit(
        _KERNELS,
        f"{_KERNELS} fsdp? fsdp_config.version!=2",
        "the LoRA kernels do not work with FSDP1 on several devices",
        "set fsdp_version: 2 in fsdp_config",
        "0.9.2",
        "0.11.0",
    ),
    Limit(
        _KERNELS,
        f"{_KERNELS} fsdp_config? fsdp_version!=2",
        "the LoRA kernels do not work with FSDP1 on several devices",
        "set fsdp_version: 2",
        "0.12.2",
        "0.19.0",
    ),
    Limit(
        "lora_dropout",
        "lora_target_parameters lora_dropout",
        "lora_target_parameters needs lora_dropout: 0",
        since="0.15.0",
        converted=True,
    ),
    Limit(
        "peft_init_lora_weights",
        "lora_target_parameters peft_init_lora_weights? peft_init_lora_weights!=true,false,gaussian",
        "lora_target_parameters needs the default or gaussian init",
        since="0.20.0",
        converted=True,
    ),
    Limit(
        "peft",
        "lora_target_parameters peft.loftq_config",
        "lora_target_parameters does not work with LoftQ",
        since="0.20.0",
        converted=True,
    ),
    Limit(
        "peft_layers_to_transform",
        "adapter peft_layers_to_transform unfrozen_parameters",
        "peft_layers_to_transform and unfrozen_parameters exclude each other",
        _USE_ONE,
    ),
    Limit(
        "peft_layers_pattern",
        "peft_layers_pattern !peft_layers_to_transform",
        "peft_layers_pattern needs peft_layers_to_transform",
    ),
    Limit("relora", "relora !jagged_restart_steps", "ReLoRA needs jagged restarts", since="0.12.2", converted=True),
    Limit("relora", "relora !adapter", "ReLoRA needs adapter: lora or qlora", since="0.12.2", converted=True),
    Limit(
        "relora_steps",
        "relora_steps adapter!=lora,qlora",
        "ReLoRA needs adapter: lora or qlora",
        until="0.11.0",
        converted=True,
    ),
    Limit(
        "adapter",
        "relora adapter? adapter!=lora,qlora",
        "ReLoRA needs adapter: lora or qlora",
        since="0.12.2",
        until="0.16.1",
        converted=True,
    ),
    Limit(
        "lr_scheduler",
        "relora_steps lr_scheduler=one_cycle",
        "ReLoRA does not work with the one_cycle scheduler",
        until="0.11.0",
        converted=True,
    ),
    Limit(
        "lr_scheduler",
        "relora lr_scheduler=one_cycle",
        "ReLoRA does not work with the one_cycle scheduler",
        since="0.12.2",
        converted=True,
    ),
    Limit("gptq", "gptq revision_of_model", "a GPTQ model is not loaded by revision_of_model"),
    Limit(
        "ple_cpu_offload",
        "ple_cpu_offload adapter=lora !load_in_8bit",
        "ple_cpu_offload with lora needs load_in_8bit: true",
        since="0.19.0",
    ),
    Limit(
        "ple_cpu_offload",
        "ple_cpu_offload adapter!=lora,qlora",
        "ple_cpu_offload needs a quantized model with lora or qlora",
        since="0.19.0",
    ),
    Limit(
        "quantize_moe_experts",
        "quantize_moe_experts lora_target_linear",
        "quantize_moe_experts does not work with lora_target_linear",
        "name the experts in lora_target_parameters",
        "0.15.0",
    ),
    Limit(
        "quantize_moe_experts",
        "quantize_moe_experts adapter!=lora,qlora",
        "quantize_moe_experts needs adapter: lora or qlora",
        since="0.15.0",
    ),
    Limit(
        "quantize_moe_experts",
        "quantize_moe_experts !load_in_4bit|load_in_8bit",
        "quantize_moe_experts needs load_in_4bit or load_in_8bit",
        since="0.15.0",
    ),
    Limit(
        "lora_fp32_gradients",
        "lora_fp32_gradients adapter!=lora,qlora,multilora",
        "lora_fp32_gradients needs a LoRA adapter",
        since="0.20.0",
    ),
    Limit("qat", "qat peft", "QAT does not work with peft", since="0.10.0"),
    Limit("qat", "qat load_in_8bit|load_in_4bit", "QAT does not work with a quantized model", since="0.10.0"),
    Limit(
        "qat",
        "qat.weight_dtype=ternary qat.activation_dtype? qat.activation_dtype!=int8",
        "ternary QAT takes int8 activations alone",
        since="0.19.0",
    ),
    Limit(
        _UNSLOTH_LORA,
        f"{_UNSLOTH_LORA} adapter=lora load_in_8bit",
        "unsloth's kernels do not work with an 8-bit model",
        until="0.16.1",
    ),
    Limit(
        _UNSLOTH_LORA,
        f"{_UNSLOTH_LORA} {_KERNELS}",
        "unsloth's kernels and Axolotl's exclude each other",
        _USE_ONE,
        until="0.16.1",
    ),
)

REINFORCEMENT = (
    Limit(
        "sample_packing",
        "sample_packing rl",
        "sample_packing does not work with RL training",
        "remove sample_packing",
    ),
    Limit("eval_sample_packing", "rl=kto eval_sample_packing", "KTO does not pack samples"),
    Limit(
        "remove_unused_columns",
        "rl=kto remove_unused_columns!=false",
        "KTO needs remove_unused_columns: false",
    ),
    Limit(
        "warmup_ratio",
        "rl=simpo warmup_ratio",
        "SimPO does not take warmup_ratio",
        "set warmup_steps",
        converted=True,
    ),
    Limit(
        "load_in_4bit|load_in_8bit",
        "fsdp_version=2 rl=dpo,kto,orpo,ipo load_in_8bit|load_in_4bit",
        "preference training of a quantized model does not work under FSDP2",
        "use DeepSpeed, or load the model unquantized",
        "0.12.2",
        "0.19.0",
    ),
    Limit(
        "load_in_4bit|load_in_8bit",
        "fsdp_config rl=dpo,kto,orpo,ipo load_in_8bit|load_in_4bit",
        "preference training of a quantized model does not work under FSDP2",
        "use DeepSpeed, or load the model unquantized",
        "0.20.0",
    ),
    *(
        Limit(
            "rl",
            f"rl=grpo trl.use_liger_loss {size}>1",
            "GRPO with Liger's loss does not split sequences over devices",
            since=since,
            until=until,
        )
        for size, since, until in (
            ("sequence_parallel_degree", "0.9.2", "0.11.0"),
            ("context_parallel_size", "0.12.2", ""),
        )
    ),
    Limit(
        "trl.multi_objective_aggregation",
        "rl=gdpo trl.multi_objective_aggregation=sum_then_normalize",
        "GDPO does not sum its rewards before it normalizes them",
        since="0.13.2",
    ),
    Limit(
        "dpo_loss_type|dpo_loss_weights",
        "rl!=dpo dpo_loss_type|dpo_loss_weights?",
        "dpo_loss_type and dpo_loss_weights are for rl: dpo alone",
        since="0.17.0",
    ),
    Limit(
        "dpo_loss_weights",
        "rl=dpo dpo_loss_weights? !dpo_loss_type?",
        "dpo_loss_weights needs dpo_loss_type",
        since="0.17.0",
    ),
    Limit(
        "trl.num_generations",
        "rl=grpo trl.num_generations<2",
        "GRPO needs at least two generations per prompt",
        since="0.17.0",
    ),
    Limit(
        "rl",
        "dpo_use_liger_kernel rl=ipo",
        "dpo_use_liger_kernel does not do IPO",
        since="0.19.0",
        until="0.20.0",
        converted=True,
    ),
    Limit("rl", "rl=ebft !ebft", "EBFT needs an ebft section", since="0.16.1"),
    Limit(
        "torch_compile",
        "rl=ebft torch_compile=true ebft.mode=strided gradient_checkpointing",
        "strided EBFT with gradient checkpointing does not work with torch_compile",
        since="0.16.1",
    ),
    Limit(
        "trl.vllm_mode",
        "trl.use_vllm trl.vllm_mode=colocate context_parallel_size>1",
        "vLLM beside the trainer does not work with context parallelism",
        "set vllm_mode: server",
        "0.21.0",
        converted=True,
    ),
    Limit(
        "trl.vllm_lora_sync",
        "trl.use_vllm trl.vllm_mode=colocate trl.vllm_lora_sync",
        "vllm_lora_sync needs vllm_mode: server",
        since="0.21.0",
        converted=True,
    ),
    Limit(
        "trl.vllm_mode",
        "trl.use_vllm trl.vllm_mode=colocate adapter trl.async_prefetch|trl.use_data_producer",
        "asynchronous GRPO of an adapter needs vllm_mode: server",
        since="0.21.0",
        converted=True,
    ),
)

TRAINING = (
    Limit(
        "",
        "micro_batch_size|gradient_accumulation_steps|batch_size#<2",
        "two of micro_batch_size, gradient_accumulation_steps and batch_size must be set",
        until="0.18.0",
    ),
    Limit(
        "batch_size",
        "batch_size !micro_batch_size|gradient_accumulation_steps",
        "batch_size needs micro_batch_size",
        since="0.19.0",
    ),
    Limit(
        "batch_size",
        "gradient_accumulation_steps batch_size",
        "batch_size and gradient_accumulation_steps exclude each other",
        _USE_ONE,
    ),
    Limit("warmup_ratio", "warmup_steps warmup_ratio", "warmup_steps and warmup_ratio exclude each other", _USE_ONE),
    Limit(
        "save_steps",
        "save_strategy save_steps save_strategy!=steps",
        "save_steps needs save_strategy: steps",
        "remove save_steps, or save_strategy",
    ),
    Limit("save_steps", "saves_per_epoch save_steps", "saves_per_epoch and save_steps exclude each other", _USE_ONE),
    Limit(
        "save_strategy",
        "save_strategy=best !metric_for_best_model",
        "save_strategy: best needs metric_for_best_model",
        since="0.16.1",
    ),
    Limit(
        "eval_steps",
        "eval_strategy eval_steps eval_strategy!=steps",
        "eval_steps needs eval_strategy: steps",
        "remove eval_steps, or eval_strategy",
    ),
    Limit(
        "eval_steps|eval_strategy",
        "val_set_size=0 eval_steps|eval_strategy !test_datasets",
        "there is nothing to evaluate on: val_set_size is 0",
        "set val_set_size, or remove the evaluation",
        until="0.8.1",
    ),
    Limit(
        "eval_steps|eval_strategy",
        "val_set_size=0 eval_steps|eval_strategy !test_datasets eval_strategy!=no",
        "there is nothing to evaluate on: val_set_size is 0",
        "set val_set_size, or remove the evaluation",
        "0.9.2",
    ),
    Limit("eval_steps", "evals_per_epoch eval_steps", "evals_per_epoch and eval_steps exclude each other", _USE_ONE),
    Limit(
        "evals_per_epoch",
        "evals_per_epoch eval_strategy eval_strategy!=steps",
        "evals_per_epoch needs eval_strategy: steps or none",
    ),
    Limit(
        "do_bench_eval",
        "do_bench_eval !evals_per_epoch|eval_steps",
        "do_bench_eval needs evals_per_epoch or eval_steps",
    ),
    Limit(
        "test_datasets",
        "test_datasets val_set_size",
        "test_datasets and val_set_size exclude each other",
        "set val_set_size: 0",
    ),
    Limit(
        "eval_table_size",
        "sample_packing eval_table_size eval_sample_packing!=false",
        "eval_table_size with sample_packing needs eval_sample_packing: false",
    ),
    Limit(
        "do_causal_lm_eval",
        "do_causal_lm_eval eval_sample_packing",
        "do_causal_lm_eval needs eval_sample_packing: false",
    ),
    Limit(
        "early_stopping_patience",
        "early_stopping_patience !save_steps",
        "early_stopping_patience needs save_steps",
        converted=True,
    ),
    Limit(
        "early_stopping_patience",
        "early_stopping_patience !eval_steps",
        "early_stopping_patience needs eval_steps",
        converted=True,
    ),
    Limit(
        "push_dataset_to_hub",
        "push_dataset_to_hub hf_use_auth_token!=true",
        "push_dataset_to_hub needs hf_use_auth_token: true",
    ),
    Limit("pretraining_dataset", "pretraining_dataset !max_steps", "pretraining_dataset needs max_steps"),
    Limit(
        "val_set_size",
        "pretraining_dataset val_set_size",
        "pretraining_dataset does not work with val_set_size",
        "name test_datasets",
        "0.13.2",
    ),
    Limit(
        "include_tokens_per_second",
        "pretraining_dataset include_tokens_per_second",
        "pretraining_dataset does not work with include_tokens_per_second",
        since="0.11.0",
    ),
    Limit(
        "val_set_size",
        "streaming val_set_size",
        "streaming does not work with val_set_size",
        "name test_datasets",
        "0.13.2",
    ),
    Limit("streaming", "streaming !max_steps", "streaming needs max_steps", since="0.13.2"),
    Limit(
        "dataset_exact_deduplication",
        "dataset_exact_deduplication streaming|pretraining_dataset",
        "dataset_exact_deduplication does not work with streamed datasets",
        since="0.13.2",
    ),
    Limit(
        "dataset_exact_deduplication",
        "dataset_exact_deduplication skip_prepare_dataset",
        "dataset_exact_deduplication does not work with skip_prepare_dataset",
        since="0.15.0",
    ),
    Limit(
        "chat_template",
        "chat_template=jinja !chat_template_jinja",
        "chat_template: jinja needs chat_template_jinja",
    ),
    Limit(
        "noisy_embedding_alpha",
        "noisy_embedding_alpha neftune_noise_alpha",
        "noisy_embedding_alpha is the old name of neftune_noise_alpha, and both are set",
        "remove noisy_embedding_alpha",
    ),
    Limit(
        "pretrain_multipack_buffer_size",
        "pretrain_multipack_buffer_size streaming_multipack_buffer_size",
        "pretrain_multipack_buffer_size is the old name of streaming_multipack_buffer_size, and both are set",
        "remove pretrain_multipack_buffer_size",
        "0.13.2",
    ),
    *(
        Limit(
            "neftune_noise_alpha",
            f"neftune_noise_alpha? neftune_noise_alpha{test}",
            "neftune_noise_alpha must be above 0",
            converted=True,
        )
        for test in ("<0", "=0")
    ),
    Limit("fp8_config", "fp8_config? !fp8", "fp8_config needs fp8: true", since="0.19.0"),
    Limit(
        "unfrozen_parameters",
        "unfrozen_parameters gradient_checkpointing_kwargs.use_reentrant=true",
        "unfrozen_parameters needs use_reentrant: false",
    ),
    *(
        Limit(
            key,
            f"tokenizer_use_mistral_common {key}",
            f"{key} does not work with tokenizer_use_mistral_common",
            since=since,
        )
        for key, since in (
            ("added_tokens_overrides", "0.10.0"),
            ("special_tokens", "0.10.0"),
            ("tokens", "0.10.0"),
            ("chat_template", "0.10.0"),
            ("processor_kwargs", "0.17.0"),
        )
    ),
    Limit(
        "gradient_checkpointing",
        "base_model~mpt gradient_checkpointing",
        "MPT models are not trained with gradient_checkpointing",
        converted=True,
    ),
    Limit(
        "gradient_checkpointing",
        "base_model~nemotron-h gradient_checkpointing !sample_packing",
        "Nemotron-H models need sample_packing for gradient_checkpointing",
        since="0.16.1",
        until="0.18.0",
        converted=True,
    ),
    Limit(
        "activation_offloading",
        "activation_offloading !gradient_checkpointing",
        "activation_offloading needs gradient_checkpointing",
        "set gradient_checkpointing: true",
        "0.12.2",
        converted=True,
    ),
    Limit(
        "selective_checkpointing",
        "selective_checkpointing !gradient_checkpointing",
        "selective_checkpointing needs gradient_checkpointing",
        "set gradient_checkpointing: true",
        "0.18.0",
        converted=True,
    ),
    Limit(
        "selective_checkpointing",
        "selective_checkpointing gradient_checkpointing_kwargs.use_reentrant",
        "selective_checkpointing needs use_reentrant: false",
        since="0.18.0",
        converted=True,
    ),
    Limit(
        "selective_checkpointing",
        "selective_checkpointing activation_offloading activation_offloading!=hidden_states",
        "selective_checkpointing works with activation_offloading: hidden_states alone",
        since="0.18.0",
        converted=True,
    ),
    Limit(
        "activation_offloading",
        "activation_offloading=hidden_states gradient_checkpointing_kwargs.use_reentrant unfrozen_parameters",
        "activation_offloading: hidden_states with unfrozen_parameters needs use_reentrant: false",
        since="0.18.0",
        converted=True,
    ),
    Limit(
        "flash_optimum",
        "flash_optimum=true fp16|bf16",
        "flash_optimum does not work with mixed precision",
        converted=True,
    ),
    Limit(
        "sample_packing",
        "sample_packing xformers_attention",
        "sample_packing does not work with xformers_attention",
        until="0.8.1",
    ),
    Limit(
        "sample_packing",
        "sample_packing s2_attention",
        "sample_packing does not work with s2_attention",
        since="0.10.0",
        until="0.16.1",
    ),
    Limit(
        _OLD_ATTENTIONS,
        f"{_OLD_ATTENTIONS}#>1",
        "only one attention can be used",
        _USE_ONE,
        "0.8.1",
        "0.14.0",
    ),
    Limit(
        "flash_attention|sdp_attention",
        "xformers_attention|sdp_attention|flash_attention|flex_attention|sage_attention#>1",
        "only one attention can be used",
        _USE_ONE,
        "0.15.0",
        "0.16.1",
    ),
    Limit(
        _FLAGS,
        f"attn_implementation {_FLAGS}",
        "the old attention flags cannot be used beside attn_implementation",
        "remove the flag",
        "0.17.0",
    ),
    Limit(
        "attn_implementation",
        "gemma4_hybrid_attn_impl attn_implementation attn_implementation!=flash_attention_2",
        "gemma4_hybrid_attn_impl needs attn_implementation: flash_attention_2",
        since="0.17.0",
    ),
    Limit(
        "scaling_softmax",
        "scaling_softmax !flex_attention",
        "scaling_softmax needs flex_attention: true",
        since="0.13.2",
        until="0.16.1",
    ),
    Limit(
        "scaling_softmax",
        "scaling_softmax attention!=flex_attention",
        "scaling_softmax needs attn_implementation: flex_attention",
        since="0.17.0",
        converted=True,
    ),
    Limit(
        "batch_flattening",
        "batch_flattening batch_flattening!=auto !flash_attention",
        "batch_flattening needs flash_attention: true",
        until="0.16.1",
    ),
    Limit(
        "batch_flattening",
        "batch_flattening batch_flattening!=auto !packing_attention",
        "batch_flattening needs an attention that packs samples",
        "set attn_implementation: flash_attention_2",
        "0.17.0",
        converted=True,
    ),
    Limit(
        "batch_flattening",
        "batch_flattening batch_flattening!=auto sample_packing",
        "batch_flattening does not work with sample_packing",
        _USE_ONE,
        converted=True,
    ),
    *(
        Limit(
            size,
            f"{size}>1 !flash_attention",
            f"{size} above 1 needs flash_attention: true",
            since=since,
            until=until,
            converted=True,
        )
        for size, since, until in (
            ("sequence_parallel_degree", "", "0.11.0"),
            ("context_parallel_size", "0.12.2", "0.16.1"),
        )
    ),
    Limit(
        "context_parallel_size",
        "context_parallel_size>1 attention!=flash_attention_2,flash_attention_3",
        "context_parallel_size above 1 needs flash attention",
        "set attn_implementation: flash_attention_2",
        "0.17.0",
        "0.17.0",
        converted=True,
    ),
    Limit(
        "context_parallel_size",
        "context_parallel_size>1 attention=eager",
        "context_parallel_size above 1 does not work with eager attention",
        since="0.20.0",
        converted=True,
    ),
    *(
        Limit(
            "micro_batch_size",
            f"{size}>1 sample_packing micro_batch_size>1",
            f"{size} above 1 with sample_packing needs micro_batch_size: 1",
            since=since,
            until=until,
            converted=True,
        )
        for size, since, until in (
            ("sequence_parallel_degree", "0.9.2", "0.11.0"),
            ("context_parallel_size", "0.12.2", "0.17.0"),
        )
    ),
    Limit(
        "context_parallel_size",
        "deepspeed context_parallel_size>1 rl",
        "context parallelism under DeepSpeed does not work with RL training",
        since="0.21.0",
        converted=True,
    ),
    Limit(_CROSS_ENTROPIES, f"{_CROSS_ENTROPIES}#>1", "only one cross entropy can be used", _USE_ONE, "0.13.2"),
    Limit("use_eaft", "use_dft use_eaft", "use_dft and use_eaft exclude each other", _USE_ONE, "0.20.0"),
    *(
        Limit(
            "use_dft|use_eaft",
            f"use_dft|use_eaft {other}",
            f"use_dft and use_eaft do not work with {other.rstrip('>1')}",
            since="0.20.0",
        )
        for other in (
            "rl",
            "reward_model",
            "process_reward_model",
            "cut_cross_entropy",
            "liger_fused_linear_cross_entropy",
            "chunked_cross_entropy",
            "context_parallel_size>1",
        )
    ),
    Limit(
        "unsloth_cross_entropy_loss",
        "flash_attn_cross_entropy unsloth_cross_entropy_loss",
        "flash_attn_cross_entropy and unsloth_cross_entropy_loss exclude each other",
        _USE_ONE,
        until="0.16.1",
    ),
    Limit(
        _UNSLOTH,
        _UNSLOTH,
        "unsloth's kernels are gone",
        "set lora_mlp_kernel, lora_qkv_kernel and lora_o_kernel",
        "0.17.0",
    ),
    Limit(
        "gpu_memory_limit",
        "max_memory? gpu_memory_limit?",
        "max_memory and gpu_memory_limit exclude each other",
        _USE_ONE,
    ),
    Limit(
        "torch_compile_options",
        "torch_compile_options? !torch_compile",
        "torch_compile_options needs torch_compile: true",
        since="0.18.0",
        converted=True,
    ),
    Limit(
        "torch_compile_regional",
        "torch_compile torch_compile_regional gradient_checkpointing",
        "torch_compile_regional does not work with gradient_checkpointing",
        since="0.21.0",
        converted=True,
    ),
    Limit(
        "save_safetensors",
        "save_safetensors=false",
        "transformers 5 saves safetensors alone",
        "remove save_safetensors",
        "0.14.0",
        converted=True,
    ),
    Limit(
        "balance_labels",
        "balance_labels"
        " sample_packing_sequentially|curriculum_sampling|diffusion_lm|rl|reward_model|process_reward_model",
        "balance_labels needs causal language modelling in free order",
        since="0.21.0",
        converted=True,
    ),
    Limit(
        "balance_labels",
        "balance_labels !sample_packing streaming|pretraining_dataset|group_by_length",
        "balance_labels without sample_packing needs datasets in memory, not grouped by length",
        since="0.21.0",
        converted=True,
    ),
    Limit(
        "label_balance_window_optim_steps",
        "label_balance_window_optim_steps>1 !balance_labels",
        "label_balance_window_optim_steps needs balance_labels: true",
        since="0.21.0",
        converted=True,
    ),
)


@dataclass(frozen=True, kw_only=True)
class AxolotlFacts:
    """What one known release of Axolotl accepts.

    `fsdp1` says that it still shards with FSDP1, `fsdp_model` that fsdp_config is a model of typed fields,
    `prefix_stripped` that its keys go without `fsdp_`, `fsdp_keys` those it reads, without the prefix.
    """

    release: str
    fsdp1: bool
    fsdp_model: bool
    prefix_stripped: bool
    fsdp_keys: frozenset[str]
    ignored_keys: tuple[str, ...]
    refused_keys: Mapping[str, str]
    attentions: tuple[str, ...]
    compile_options: bool
    literal_adapters: bool
    registered_adapters: bool
    sharding: tuple[Limit, ...]
    optimizers: tuple[Limit, ...]
    adapters: tuple[Limit, ...]
    reinforcement: tuple[Limit, ...]
    training: tuple[Limit, ...]

    def since(self, release: str) -> bool:
        """This release is that one or a later."""
        order = releases("axolotl").names
        return order.index(release) <= order.index(self.release)


def facts_of(release: str) -> AxolotlFacts:
    """The facts of one known release."""
    known = releases("axolotl")
    order = known.names

    def since(first: str) -> bool:
        return not first or order.index(first) <= order.index(release)

    def gathered(table: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(word for first, words in table.items() if since(first) for word in words)

    def limits(table: tuple[Limit, ...]) -> tuple[Limit, ...]:
        return tuple(limit for limit in table if limit.in_force(release, order))

    model = known.keys("FSDPConfig", release)
    return AxolotlFacts(
        release=release,
        fsdp1=not since(FSDP1_REMOVED),
        fsdp_model=bool(model),
        prefix_stripped=since("0.12.2"),
        fsdp_keys=frozenset({*model, "version", "fsdp_version"} if model else gathered(FSDP_ENV_KEYS)),
        ignored_keys=IGNORED_UNDER_FSDP2 if since(FSDP1_REMOVED) else (),
        refused_keys=REFUSED_UNDER_FSDP2 if since(FSDP1_REMOVED) else {},
        attentions=gathered(ATTENTIONS),
        compile_options=since(COMPILE_OPTIONS_SINCE),
        literal_adapters=since("0.15.0") and not since("0.17.0"),
        registered_adapters=since("0.17.0"),
        sharding=limits(SHARDING),
        optimizers=limits(OPTIMIZERS),
        adapters=limits(ADAPTERS),
        reinforcement=limits(REINFORCEMENT),
        training=limits(TRAINING),
    )
