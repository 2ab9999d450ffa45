"""The recipes, configs and components that each release of torchtune ships, and those that its source has added since.

Source: tools/torchtune_facts.py, which reads the released wheels and writes the three files beside this one. A value
that differs between releases is an object; each of its keys names the releases of one value (`"0.4.0 0.5.0"`).

torchtune.json             `recipes`: the registry (`file`, `distributed`, `configs` with their files, null where the
                           registered file is not shipped), the settings that a recipe reads when it is constructed
                           (`start`), while it sets up (`setup`) or only in some cases (`optional`), and its `checks`
torchtune-components.json  `modules`: the names of every module, each with its parameters (`!` after a required one,
                           `**` where it accepts any keyword), `@module` for the module that it is imported from, or
                           `?` where it is only known to exist; the empty name is the module itself
torchtune-configs.json     `configs`: for each shipped config its list of keys (by index in `shapes`) and their values
                           (by index in `values`)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.lazy import regex
from trainlint.records import dataclass

if TYPE_CHECKING:
    from typing import TypeAlias

    Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

DATES: Mapping[str, str] = {"0.4.0": "2024-11-14", "0.5.0": "2024-12-20", "0.6.1": "2025-04-07"}
"""The day of each release. Source: the wheels, which require neither the other trainers nor torch."""

RELEASES = tuple(DATES)

KUBEFLOW_IMAGE = "0.6.1"
"""The torchtune in the image of the torchtune runtimes that Kubeflow Trainer 2.0 to 2.3 ship.

Source: cmd/trainers/torchtune/requirements.txt of Kubeflow Trainer.
"""

DTYPES = ("bf16", "fp32", "fp64", "fp16")
"""Source: PRECISION_STR_TO_DTYPE of torchtune.training.precision, 0.4.0 to 0.6.1."""

DEVICES = frozenset(
    "cpu cuda fpga hip hpu ideep ipu lazy maia meta mkldnn mps mtia npu opencl opengl privateuseone ve vulkan xla"
    " xpu".split()
)
"""The device types of torch; npu comes with torch_npu. Source: torch.device, torch 2.13."""

LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "output_proj")
"""The attention modules that can get LoRA; any other name in lora_attn_modules is ignored without a message.

Source: LORA_ATTN_MODULES of torchtune.modules.peft, 0.4.0 to 0.6.1; the builders of 0.6.1 called on meta tensors.
"""

SAVED_TARGETS = (*LORA_TARGETS, "output", "w1", "w2", "w3")
"""The modules that an adapter_config.json can name. Source: tune_to_peft_adapter_config, 0.4.0 to 0.6.1."""

LORA_PARAMETERS = (
    "apply_lora_to_mlp", "apply_lora_to_output", "lora_alpha", "lora_attn_modules", "lora_dropout", "lora_rank",
    "quantize_base", "use_dora",
)  # fmt: skip
"""Parameters that only LoRA's model builders have."""

TIED_OUTPUT = regex(r"torchtune\.models\.(?:llama3_2\.q?lora_llama3_2|qwen2_5\.q?lora_qwen2_5_(?:0_5b|1_5b|3b))(?:_|$)")
"""Model builders that refuse apply_lora_to_output: their output layer is the embedding.

Source: the lora builders of torchtune.models, 0.4.0 to 0.6.1, those of 0.6.1 called on meta tensors.
"""

TIED_EMBEDDINGS = regex(
    r"torchtune\.models\.(?:llama3_2\.(?:q?lora_)?llama3_2|gemma\.(?:q?lora_)?gemma"
    r"|qwen2\.(?:q?lora_)?qwen2_(?:0_5b|1_5b)|qwen2_5\.(?:q?lora_)?qwen2_5_(?:0_5b|1_5b|3b))(?:_|$)"
)
"""Model builders whose output layer is the embedding. Source: TiedLinear in torchtune.models, 0.4.0 to 0.6.1."""

MULTIMODAL = "torchtune.datasets.multimodal."
"""The datasets that refuse `packed`. Source: torchtune.datasets.multimodal, 0.4.0 to 0.6.1."""

GENERIC_TYPES = ("GEMMA", "LLAMA2", "LLAMA3", "LLAMA3_2", "MISTRAL")
"""The model types with one conversion. Source: load_checkpoint of FullModelHFCheckpointer, 0.4.0 to 0.6.1."""

_CONVERTED_BY: Mapping[str, str] = {
    **dict.fromkeys(GENERIC_TYPES, "generic"),
    "CLIP_TEXT": "clip", "GEMMA2": "gemma2", "LLAMA3_VISION": "vision", "PHI3_MINI": "phi3", "PHI4": "phi3",
    "QWEN2": "qwen2", "REWARD": "reward", "T5_ENCODER": "t5",
}  # fmt: skip

CONVERSIONS: Mapping[str, tuple[str, ...]] = {
    "code_llama2": ("LLAMA2",), "gemma": ("GEMMA",), "gemma2": ("GEMMA2",), "llama2": ("LLAMA2",),
    "llama3": ("LLAMA3",), "llama3_1": ("LLAMA3",), "llama3_2": ("LLAMA3_2",), "llama3_2_vision": ("LLAMA3_VISION",),
    "llama3_3": ("LLAMA3",), "mistral": ("MISTRAL",), "phi3": ("PHI3_MINI",), "phi4": ("PHI4",), "qwen2": ("QWEN2",),
    "qwen2_5": ("QWEN2",),
}  # fmt: skip
"""The model types of each family of models. Source: ModelType and the shipped configs, 0.4.0 to 0.6.1."""

META_FAMILIES = ("code_llama2", "llama2", "llama3", "llama3_1", "llama3_2", "llama3_3")
"""The families with weights in Meta's format and the plain names."""

NO_PEFT_CONFIG = ("LLAMA3_VISION", "PHI3_MINI", "PHI4")
"""The model types without adapter_config.json. Source: FullModelHFCheckpointer.save_checkpoint, 0.4.0 to 0.6.1."""

NOT_WEIGHTS = (".json", ".md", ".model", ".py", ".txt", ".yaml", ".yml")
"""The ends of file names of a checkpoint that are never weights."""

FALSE_WORDS = frozenset("0 f false n no none null off".split())
"""Texts that are meant to be false, and count as true."""


def family_of(path: str) -> str:
    """The family of a language model's builder: `llama3_2`; empty for classifiers and anything else."""
    parts = path.split(".")
    plain = len(parts) == 4 and path.startswith("torchtune.models.") and parts[2] in CONVERSIONS
    return parts[2] if plain and not re.search("classifier|reward|tokenizer|transform|encoder", parts[3]) else ""


def conversion_of(model_type: str) -> str | None:
    """The conversion of weights that a model type stands for."""
    return _CONVERTED_BY.get(model_type)


FAMILY_LENGTHS: Mapping[str, int] = {
    "code_llama2": 16384, "gemma": 8192, "gemma2": 8192, "llama2": 4096, "llama3": 8192, "llama3_1": 131072,
    "llama3_2": 131072, "llama3_3": 131072, "mistral": 32768, "phi3": 4096, "phi4": 16384, "qwen2": 32768,
    "qwen2_5": 131072,
}  # fmt: skip
"""The longest max_seq_len of a family's builders. Source: torchtune.models, 0.4.0 to 0.6.1."""

FAMILY_VOCABULARIES: Mapping[str, int] = {
    "code_llama2": 32016, "gemma": 256000, "gemma2": 256000, "llama2": 32000, "llama3": 128256, "llama3_1": 128256,
    "llama3_2": 128256, "llama3_3": 128256, "mistral": 32000, "phi3": 32064, "phi4": 100352, "qwen2": 152064,
    "qwen2_5": 152064,
}  # fmt: skip
"""The largest vocab_size of a family's builders. Source: torchtune.models, 0.4.0 to 0.6.1."""

FAMILY_WIDTHS: Mapping[str, tuple[int, ...]] = {
    "code_llama2": (4096, 5120, 8192, 11008, 13824, 28672), "gemma": (2048, 3072, 16384, 24576),
    "gemma2": (2304, 3584, 4608, 9216, 14336, 36864), "llama2": (4096, 5120, 8192, 11008, 13824, 28672),
    "llama3": (4096, 8192, 14336, 28672), "llama3_1": (4096, 8192, 16384, 14336, 28672, 53248),
    "llama3_2": (2048, 3072, 8192), "llama3_3": (8192, 28672), "mistral": (4096, 14336), "phi3": (3072, 8192),
    "phi4": (5120, 17920), "qwen2": (896, 1536, 3584, 4864, 8960, 18944),
    "qwen2_5": (896, 1536, 2048, 3584, 4864, 5120, 8192, 8960, 11008, 13824, 18944, 27648, 29568),
}  # fmt: skip
"""The widths of the layers of a family's models. Source: torchtune.models, 0.4.0 to 0.6.1."""

FIRST_SPECIAL_TOKEN: Mapping[str, int] = {
    "llama3_tokenizer": 128000, "qwen2_5_tokenizer": 151643, "qwen2_tokenizer": 151643,
}  # fmt: skip
"""The first special token of these tokenizers. Source: torchtune.models, 0.4.0 to 0.6.1."""

NOT_A_TOKENIZER = (".bin", ".json", ".jsonl", ".md", ".pt", ".pth", ".safetensors", ".txt", ".yaml", ".yml")
"""The ends of file names that are never a tokenizer of SentencePiece or tiktoken."""

NO_BPE_VOCABULARY = (
    "config.json", "generation_config.json", "merges.txt", "special_tokens_map.json", "tokenizer.json",
    "tokenizer_config.json", "tokenizer.model",
)  # fmt: skip
"""Files of a model that are not the vocabulary of its BPE tokenizer."""

COLLATE_FUNCTIONS = ("padded_collate", "padded_collate_dpo", "padded_collate_packed")
"""The functions of torchtune.data that fine-tunes cannot call, or whose samples they do not have."""

PREFERENCE_DATASETS = ("hh_rlhf_helpful_dataset", "preference_dataset", "stack_exchange_paired_dataset")
"""The datasets of preferences. Source: torchtune.datasets, 0.4.0 to 0.6.1."""

COLUMNS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("grammar_dataset", "instruct_dataset", "samsum_dataset"), ("input", "output")),
    **dict.fromkeys(PREFERENCE_DATASETS[:2], ("chosen", "rejected")),
    "slimorca_dataset": ("conversations",),
}
"""The keys of a dataset's column_map. Source: the transforms of torchtune.data, 0.4.0 to 0.6.1."""

MAPPED = frozenset((*COLUMNS, "alpaca_dataset", "alpaca_cleaned_dataset", "stack_exchange_paired_dataset"))
"""Datasets with a column_map, which is a mapping. Source: as for COLUMNS."""

CONVERSATION_STYLES = ("openai", "sharegpt")
"""Source: chat_dataset of torchtune 0.4.0 to 0.6.1."""

LABEL_LOSSES = ("CEWithChunkedOutputLoss", "CrossEntropyLoss", "NLLLoss")
"""The losses of logits and labels that have an ignore_index. Source: torchtune.modules.loss and torch.nn."""

PAIR_LOSSES = ("DPOLoss", "RSOLoss", "SimPOLoss")
"""The losses of DPO. Source: torchtune.rlhf.loss, 0.4.0 to 0.6.1."""

DISTILLATION_LOSSES = (
    "ForwardKLLoss", "ForwardKLWithChunkedOutputLoss", "ReverseKLLoss", "ReverseKLWithChunkedOutputLoss",
    "SymmetricKLLoss", "SymmetricKLWithChunkedOutputLoss",
)  # fmt: skip
"""The losses of a student and a teacher. Source: torchtune.modules.loss, 0.4.0 to 0.6.1."""

SUPPLIED: Mapping[str, tuple[str, ...]] = {
    "checkpointer": ("resume_from_checkpoint", "should_load_recipe_state"),
    "dataset": ("tokenizer", "model_transform", "transform"),
    "lr_scheduler": ("optimizer", "num_training_steps", "last_epoch"),
    "optimizer": ("params",),
}
"""The parameters of a section's component that recipes pass themselves. Source: the recipes, 0.4.0 to 0.6.1."""

NOT_NULL = frozenset(
    "checkpointer dataset kd_loss loss metric_logger model optimizer policy_model ref_checkpointer"
    " ref_policy_checkpointer reward_and_value_model reward_checkpointer teacher_checkpointer teacher_model tokenizer"
    " value_checkpointer".split()
)
"""Sections that recipes use without asking whether they are null. Source: the recipes, 0.4.0 to 0.6.1."""

INSTANTIATED = (
    "checkpointer", "dataset", "kd_loss", "loss", "lr_scheduler", "metric_logger", "model", "optimizer", "policy_model",
    "quantizer", "ref_checkpointer", "ref_policy_checkpointer", "reward_and_value_model", "reward_checkpointer",
    "teacher_checkpointer", "teacher_model", "tensor_parallel_plan", "tokenizer", "value_checkpointer",
)  # fmt: skip
"""Sections that recipes pass to config.instantiate: a mapping with `_component_`, or null; `dataset` also a list."""

PROFILER = "torchtune.training.setup_torch_profiler"
"""The only component that recipes accept in `profiler`. Source: _setup_profiler of the recipes, 0.4.0 to 0.6.1."""

RENAMED: Mapping[str, str] = {
    "torchtune.utils.metric_logging": "torchtune.training.metric_logging",
    "torchtune.utils.FullModelHFCheckpointer": "torchtune.training.FullModelHFCheckpointer",
    "torchtune.utils.FullModelMetaCheckpointer": "torchtune.training.FullModelMetaCheckpointer",
    "torchtune.utils.FullModelTorchTuneCheckpointer": "torchtune.training.FullModelTorchTuneCheckpointer",
    "torchtune.utils.quantization": "torchtune.training.quantization",
    "torchtune.utils.profiler": PROFILER,
    "torchtune.utils.setup_torch_profiler": PROFILER,
    "torchtune.modules.get_cosine_schedule_with_warmup": "torchtune.training.get_cosine_schedule_with_warmup",
    "torchtune.modules.rlhf.loss": "torchtune.rlhf.loss",
}
"""The new paths of components that have moved since 0.1 and 0.2. Source: the wheels 0.1.1 to 0.4.0."""

LOW_BIT_OPTIMIZERS = "torchao.prototype.low_bit_optim"
"""A module that torchao 0.11 has moved to torchao.optim. Source: the wheels of torchao 0.9 to 0.13."""

DATASET_PARAMETERS_GONE: Mapping[str, str] = {
    "max_seq_len": "tokenizer.max_seq_len",
    "template": "tokenizer.prompt_template",
    "chat_format": "tokenizer.prompt_template",
}
"""Parameters of dataset builders in 0.1 and 0.2, and what replaces them. Source: the wheels 0.1.1, 0.2.1 and 0.3.1."""

LOADER_KEYWORDS = frozenset(
    "batch_size block_size cache_dir catalog chunksize coerce_float column_names columns comment comment_prefix con"
    " converters data_dir data_files date_format decimal decode_num_threads delimiter description dialect doublequote"
    " download_config download_mode drop_labels drop_metadata encoding encoding_errors end_time engine error_bad_lines"
    " escapechar false_values features field filters float_precision fragment_scan_options header ignore_verifications"
    " include_files index_col input_batch_size keep_default_na keep_in_memory keep_linebreaks lineterminator"
    " mangle_dupe_cols max_batch_bytes memory_map metadata_filenames na_filter na_values name names newlines_in_values"
    " nrows num_proc on_bad_files on_bad_lines on_mixed_types output_batch_size params parse_agent_traces parse_dates"
    " prefix quotechar quoting revision sample_by save_infos sep skip_blank_lines skip_docstart skipfooter"
    " skipinitialspace skiprows snapshot_id split sql start_time storage_options streaming strip_canary table"
    " table_name task thousands timestamp_tz timestamp_unit token true_values trust_remote_code use_auth_token"
    " use_threads usecols verbose verification_mode version warn_bad_lines".split()
)
"""Keywords that a dataset may pass on. Source: load_dataset and the packaged builders of datasets 2.14 to 5.2."""

PACKAGED_SOURCES = frozenset("arrow csv json pandas parquet text xml".split())
"""Sources that are builders of datasets itself, with no keywords of their own. Source: datasets 2.14 to 5.2."""

LOADERS_OF_ENDINGS = {"txt": "text", "jsonl": "json", "ndjson": "json", "tsv": "csv", "pq": "parquet"}
"""Endings that are no builder's name, with the builder that reads such files. Source: datasets 2.14 to 5.2."""

SWITCHES = frozenset(
    "amsgrad apply_lora_to_mlp apply_lora_to_output compile cpu cuda enable_activation_checkpointing"
    " enable_activation_offloading enable_async_checkpointing enable_kv_cache enabled fsdp_cpu_offload"
    " fsdp_reshard_after_forward fused log_peak_memory_stats low_cpu_ram maximize optimizer_in_bwd packed"
    " profile_memory quantize_base record_shapes safe_serialization save_adapter_weights_only shuffle"
    " tie_word_embeddings train_on_input use_dora with_flops with_stack".split()
)
"""The switches of recipes and components. Source: the shipped configs and signatures, 0.4.0 to 0.6.1."""

LATER_SETTINGS = frozenset(
    "batch_size_val context_parallel_dim context_parallel_rotate_method data_parallel_replicate_dim"
    " data_parallel_shard_dim dataset_val enable_fp8_training expert_parallel_degree fp8_recipe_name packing_strategy"
    " run_val_every_n_steps save_every_n_steps save_last_epoch_only use_grad_scaler".split()
)
"""Settings that torchtune's source has added since 0.6.1. Source: the recipes of its main branch, 2025."""

TORCHRUN_BARE = (
    "--standalone", "--module", "-m", "--no_python", "--run_path", "--virtual_local_rank",
    "--signals_to_handle_default", "-h", "--help",
)  # fmt: skip
"""torchrun's options without a value. Source: torch.distributed.run, torch 2.5 to 2.13."""

_SINCE_COMPONENTS = (
    "torchtune.dev.", "torchtune.models.gemma3", "torchtune.models.llama4", "torchtune.models.qwen3",
    "torchtune.modules.loss.LinearCrossEntropyLoss", "torchtune.modules.moe",
)  # fmt: skip
_SINCE_RECIPES = ("dev/async_grpo_full_finetune_distributed", "dev/grpo_full_finetune_distributed", "qat_single_device")
_SINCE_CONFIGS = (
    "dev/", "gemma3/", "llama2/1B_", "llama3_1/8B_lora_simpo", "llama4/", "qwen2_5/1.5B_qat_single_device",
    "qwen2_5/3B_qat_single_device", "qwen3/",
)  # fmt: skip


def unreleased_component(path: str) -> bool:
    """A component that torchtune's source has added since 0.6.1, its last release; a config with it is for that source.

    Source: the modules and configs of its main branch, 2025.
    """
    return path.startswith(_SINCE_COMPONENTS)


def unreleased_recipe(name: str) -> bool:
    """A recipe that torchtune's source has added since 0.6.1. Source: its registry, main branch, 2025."""
    return name in _SINCE_RECIPES


def unreleased_config(name: str) -> bool:
    """A config that torchtune's source has added since 0.6.1. Source: its registry, main branch, 2025."""
    return name.startswith(_SINCE_CONFIGS)


@dataclass(frozen=True)
class Signature:
    """The parameters of a component; `keywords`: it also accepts any keyword."""

    parameters: tuple[str, ...]
    required: frozenset[str]
    keywords: bool

    @classmethod
    def of(cls, written: str) -> Signature:
        """A signature as written in the facts file."""
        words = [word for word in written.split() if not word.startswith("*")]
        names = tuple(word.rstrip("!") for word in words)
        return cls(names, frozenset(w[:-1] for w in words if w.endswith("!")), "**" in written.split())


@dataclass(frozen=True)
class Component:
    """What a dotted path leads to.

    `exists` is None where the path leads out of the known packages. `signature` is None where only the existence is
    known. For a path that leads nowhere, `parent` is its part that exists and `known` the names in it.
    """

    exists: bool | None
    signature: Signature | None = None
    parent: str = ""
    known: tuple[str, ...] = ()
    is_module: bool = False


@dataclass(frozen=True)
class RecipeFacts:
    """One registered recipe of a release.

    `configs` are the registered names with their files, None where the file is not shipped. The recipe reads the
    settings (dotted inside sections) in `start` when it is constructed, those in `setup` while it sets up, and those in
    `optional` only in some cases.
    """

    name: str
    distributed: bool
    configs: Mapping[str, str | None]
    start: tuple[str, ...]
    setup: tuple[str, ...]
    optional: tuple[str, ...]
    checks: frozenset[str]

    @property
    def required(self) -> tuple[str, ...]:
        """The settings that must be there."""
        return (*self.start, *self.setup)

    @property
    def is_dpo(self) -> bool:
        """It learns from preferences."""
        return "dpo" in self.name

    @property
    def is_distillation(self) -> bool:
        """It learns from a teacher."""
        return self.name.startswith("knowledge_distillation")

    @property
    def is_fine_tune(self) -> bool:
        """It learns from tokens and labels, also from those of a teacher."""
        finetune = "finetune" in self.name and not self.name.startswith("ppo")
        return finetune or self.name.startswith("qat_") or self.is_distillation

    @cached_property
    def top_level(self) -> frozenset[str]:
        """The top-level settings that it reads."""
        return frozenset(key.partition(".")[0] for key in (*self.required, *self.optional))


class TorchtuneFacts:
    """One release of torchtune."""

    def __init__(self, release: str) -> None:
        self.release = release
        self._components: dict[str, Component] = {}
        self._settings: dict[str, frozenset[str]] = {}

    @cached_property
    def recipes(self) -> Mapping[str, RecipeFacts]:
        """The registered recipes, by name."""
        found = {}
        for name, attributes in _recipes().items():
            file, distributed, start, setup, optional, checks = (
                self._at(attributes[key]) for key in ("file", "distributed", "start", "setup", "optional", "checks")
            )
            if file is not _MISSING:
                configs = {config: self._at(path) for config, path in _mapping(attributes["configs"]).items()}
                found[name] = RecipeFacts(
                    name,
                    bool(distributed),
                    {
                        config: path if isinstance(path, str) else None
                        for config, path in configs.items()
                        if path is not _MISSING
                    },
                    _texts(start),
                    _texts(setup),
                    _texts(optional),
                    frozenset(_texts(checks)),
                )
        return found

    @cached_property
    def configs(self) -> Mapping[str, tuple[str, ...]]:
        """Every registered config with the recipes that it is registered for."""
        found: dict[str, tuple[str, ...]] = {}
        for recipe in self.recipes.values():
            for config in recipe.configs:
                found[config] = (*found.get(config, ()), recipe.name)
        return found

    def configs_of_model(self, name: str) -> list[str]:
        """The registered configs of the model that a config's name begins with: `llama3_2/1B` of `llama3_2/1B_full`."""
        family, slash, rest = name.partition("/")
        model = f"{family}/{rest.partition('_')[0]}_"
        return [config for config in self.configs if slash and config.startswith(model)]

    def config_file(self, name: str, recipe: str) -> str | None:
        """The shipped file of a config: of the given recipe, else of any."""
        own = self.recipes.get(recipe)
        for candidate in (*([own] if own else []), *self.recipes.values()):
            if name in candidate.configs:
                return candidate.configs[name]
        return None

    def recipes_of_file(self, path: str) -> tuple[RecipeFacts, ...]:
        """The recipes that ship a file of this path's name (`…/llama3_2/1B_full.yaml`)."""
        tail = "/".join(path.split("/")[-2:])
        return tuple(recipe for recipe in self.recipes.values() if tail in recipe.configs.values())

    def config(self, file: str) -> Mapping[str, Json] | None:
        """The content of a shipped config."""
        row = self._config_row(file)
        if row is None:
            return None
        shape, *indexes = row
        values = _list(_file("torchtune-configs.json")["values"])
        return dict(zip(_shape(shape), (values[index] for index in indexes), strict=True))

    def _config_row(self, file: str) -> list[int] | None:
        """The index of a config's keys, and those of its values."""
        row = self._at(_mapping(_file("torchtune-configs.json")["configs"]).get(file, {}))
        return [int(str(index)) for index in row] if isinstance(row, list) else None

    @cached_property
    def model_types(self) -> tuple[str, ...]:
        """The model_type words of a checkpointer."""
        return _texts(self._at(_file("torchtune.json")["model_types"]))

    @cached_property
    def settings(self) -> frozenset[str]:
        """The top-level settings of all recipes and shipped configs."""
        return frozenset().union(*map(self.settings_of, self.recipes.values()))

    def settings_of(self, recipe: RecipeFacts) -> frozenset[str]:
        """The top-level settings of a recipe and of the configs shipped for it."""
        if recipe.name not in self._settings:
            rows = (self._config_row(file) for file in recipe.configs.values() if file is not None)
            shapes = {row[0] for row in rows if row is not None}
            self._settings[recipe.name] = recipe.top_level.union(*map(_shape, shapes))
        return self._settings[recipe.name]

    def component(self, path: str) -> Component:
        """What a dotted path in `_component_` leads to, as torchtune resolves it: attributes, then submodules."""
        if path not in self._components:
            self._components[path] = self._component(path)
        return self._components[path]

    def _component(self, path: str) -> Component:
        parts = path.split(".")
        depth = next((n for n in range(len(parts), 0, -1) if self._is_module(".".join(parts[:n]))), 0)
        if not depth:
            return Component(None)
        module = ".".join(parts[:depth])
        if depth == len(parts):
            return Component(True, is_module=True)
        entry = self._entry(module, parts[depth])
        if entry is None:
            return Component(False, parent=module, known=self._names_in(module))
        if depth + 1 < len(parts):
            is_function = entry != "?" and parts[depth].islower()
            return Component(False, parent=".".join(parts[: depth + 1])) if is_function else Component(True)
        return Component(True, None if entry == "?" else Signature.of(entry))

    def has(self, path: str) -> bool:
        """This release has a name, also one that is not public."""
        return self.component(path).exists is True

    def _is_module(self, name: str) -> bool:
        return self._at(_mapping(_modules().get(name)).get("", _MISSING)) is not _MISSING

    def _entry(self, module: str, name: str) -> str | None:
        """The signature of a name, through imports; None where the module has no such name."""
        entry = self._at(_mapping(_modules()[module]).get(name, {}))
        if not isinstance(entry, str) or entry is _MISSING:
            return None
        if entry.startswith("@"):
            source, _, original = entry[1:].partition(":")
            return self._entry(source, original or name)
        return entry

    def _names_in(self, module: str) -> tuple[str, ...]:
        names = [name for name in _mapping(_modules()[module]) if name and self._entry(module, name) is not None]
        below = {name[len(module) + 1 :].partition(".")[0] for name in _modules() if name.startswith(f"{module}.")}
        names += [name for name in sorted(below) if self._is_module(f"{module}.{name}")]
        return tuple(name for name in names if not name.startswith("_"))

    def _at(self, value: Json) -> Json:
        """A value in this release; _MISSING where it has none."""
        if isinstance(value, dict) and all(key.partition(" ")[0] in RELEASES for key in value):
            return next((v for releases, v in value.items() if self.release in releases.split()), _MISSING)
        return value


_MISSING = "\0"


@cache
def facts_of(release: str) -> TorchtuneFacts:
    """The facts of one known release."""
    return TorchtuneFacts(release)


@cache
def _file(name: str) -> dict[str, Json]:
    return _mapping(json.loads(Path(__file__).with_name(name).read_text(encoding="utf-8")))


@cache
def _shape(index: int) -> tuple[str, ...]:
    """The keys of some configs, by their index."""
    return _texts(_list(_file("torchtune-configs.json")["shapes"])[index])


def _recipes() -> dict[str, dict[str, Json]]:
    return {name: _mapping(recipe) for name, recipe in _mapping(_file("torchtune.json")["recipes"]).items()}


def _modules() -> dict[str, Json]:
    return _mapping(_file("torchtune-components.json")["modules"])


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _texts(value: Json) -> tuple[str, ...]:
    return tuple(str(item) for item in _list(value))
