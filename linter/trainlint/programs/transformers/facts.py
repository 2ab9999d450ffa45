"""How each release of transformers treats TrainingArguments, apart from names and types (transformers.json).

Source: the released wheels of transformers, modules training_args.py, trainer.py, trainer_utils.py and
integrations/integration_utils.py, each known release read, and run in 4.31.0, 4.36.2, 4.38.2, 4.40.2, 4.46.3, 4.52.4,
4.57.6, 5.0.0, 5.23.0 and 5.24.0 (HfArgumentParser, then Trainer in eight simulated processes). A span names the first
and the last known release with a behaviour.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING

from trainlint.findings import Severity, Stage
from trainlint.records import dataclass, field
from trainlint.releases import behaviour, during, minor, names_within, version_tuple, within, words_within
from trainlint.training.declarations import Declarations, Spec, declarations
from trainlint.training.fsdp import FsdpFacts, Words

if TYPE_CHECKING:
    from trainlint.training.declarations import Json

_CALLED = {"transformers": "Transformers", "trl": "TRL", "llamafactory": "LLaMA-Factory"}
"""How programs are called in a sentence, where not by their own names."""

TABLES = ("TrainingArguments", "Seq2SeqTrainingArguments")

OPTIONS = ("full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2", "offload", "auto_wrap")
"""The words of `fsdp`: trainer_utils.FSDPOption; the hybrid ones came with 4.36."""

SHARDING_OPTIONS = OPTIONS[:5]

FSDP2_OPTIONS = frozenset({"full_shard", "shard_grad_op"})
"""The sharding options that FSDP2 has too."""

EIGHT_BIT_OPTIMIZERS = (
    "adamw_8bit", "adamw_bnb_8bit", "ademamix_8bit", "lion_8bit", "paged_adamw_8bit", "paged_ademamix_8bit",
    "paged_lion_8bit", "rmsprop_bnb_8bit", "galore_adamw_8bit", "galore_adamw_8bit_layerwise",
)  # fmt: skip
"""The 8-bit optimizers of bitsandbytes."""

_ACCELERATOR_KEYS = frozenset({"split_batches", "dispatch_batches", "even_batches", "use_seedable_sampler"})
_LATER_ACCELERATOR_KEYS = {
    "gradient_accumulation_kwargs": "4.40.2..",
    "non_blocking": "4.41.2..",
    "use_configured_state": "4.42.4..",
}

TRUE_WORDS = frozenset({"y", "yes", "t", "true", "on", "1"})
FALSE_WORDS = frozenset({"n", "no", "f", "false", "off", "0"})
"""The words that str_to_bool accepts, in any case."""

_LOG_LEVELS = {"..": ("debug", "info", "warning", "error", "critical", "passive"), "4.32.1..": ("detail",)}

REPORTERS = frozenset("azure_ml clearml codecarbon comet_ml dagshub flyte mlflow neptune tensorboard wandb".split())
_LATER_REPORTERS = {"dvclive": "4.36.2..", "swanlab": "4.50.3..", "trackio": "4.54.1..", "kubeflow": "5.4.0.."}

COMPILE_BACKENDS = frozenset(
    """
    no eager aot_eager inductor aot_ts_nvfuser nvprims_nvfuser cudagraphs ofi fx2trt onnxrt tensorrt
    aot_torchxla_trace_once torchxla_trace_once ipex tvm hpu_backend neuron
    """.split()
)
"""The backends of torch.compile that some release of accelerate knows (DynamoBackend), in any case."""

COMPILE_MODES = ("default", "lite", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""The modes of torch.compile with its own backend, in some release of torch."""

ACCUMULATION_SETTINGS = frozenset({"num_steps", "adjust_scheduler", "sync_with_dataloader", "sync_each_batch"})
"""The fields of accelerate's GradientAccumulationPlugin."""

PLATEAU_SETTINGS = frozenset("mode factor patience threshold threshold_mode cooldown min_lr eps verbose".split())
"""What torch's ReduceLROnPlateau takes; `verbose` went with torch 2.7."""

FILLED = frozenset(
    """
    train_micro_batch_size_per_gpu train_batch_size gradient_accumulation_steps gradient_clipping fp16.enabled
    bf16.enabled optimizer.params.lr optimizer.params.betas optimizer.params.eps optimizer.params.weight_decay
    scheduler.params.warmup_min_lr scheduler.params.warmup_max_lr scheduler.params.warmup_num_steps
    scheduler.params.total_num_steps zero_optimization.stage zero_optimization.reduce_bucket_size
    zero_optimization.stage3_prefetch_bucket_size zero_optimization.stage3_param_persistence_threshold
    zero_optimization.stage3_gather_16bit_weights_on_model_save zero_optimization.offload_optimizer.device
    zero_optimization.offload_optimizer.nvme_path zero_optimization.offload_param.device
    zero_optimization.offload_param.nvme_path steps_per_print
    """.split()
)
"""The settings of a DeepSpeed config whose "auto" the Trainer or accelerate fills in."""

FILLED_OF_AMP = frozenset({"amp.enabled", "amp.opt_level"})

TORCH_DTYPES = frozenset(
    "float float16 float32 float64 bfloat16 half double float8_e4m3fn float8_e5m2 int8 uint8 int16 int32 int64".split()
)

SAME_DTYPES: Mapping[str, str] = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "half": "float16",
    "float": "float32",
}
"""Other names of torch's dtypes."""

LOOKED_UP = frozenset(
    """
    dtype torch_dtype dataset_name model_name_or_path reward_model_name_or_path reward_model_path sft_model_path
    chat_template_path eos_token pad_token attn_implementation packing_strategy truncation_mode dataset_text_field
    dataset_train_split f_divergence_type cache_implementation ddp_backend length_column_name lora_task_type
    train_sampling_strategy include_for_metrics
    """.split()
)
"""Texts that name something, which no number does: other texts may be a number without harm."""

RENAMED: Mapping[str, str] = {
    "evaluation_strategy": "eval_strategy",
    "evaluate_during_training": "eval_strategy",
    "sharded_ddp": "fsdp",
    "xpu_backend": "ddp_backend",
    "no_cuda": "use_cpu",
    "use_mps_device": "remove it: the device is found without it",
    "overwrite_output_dir": "remove it: a run no longer stops at a folder that is not empty",
    "warmup_ratio": "warmup_steps, which takes a ratio below 1 since 5.0",
    "logging_dir": "the environment variable TENSORBOARD_LOGGING_DIR",
    "group_by_length": "train_sampling_strategy: group_by_length",
    "save_safetensors": "remove it: weights are always saved as safetensors",
    "include_inputs_for_metrics": "include_for_metrics: [inputs]",
    "include_tokens_per_second": "include_num_input_tokens_seen",
    "half_precision_backend": "fp16 or bf16",
    "fp16_backend": "fp16 or bf16",
    "push_to_hub_token": "hub_token",
    "push_to_hub_model_id": "hub_model_id",
    "push_to_hub_organization": "hub_model_id, with the organization in front",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
    "adafactor": "optim: adafactor",
    "torchdynamo": "torch_compile_backend",
    "tpu_metrics_debug": "debug: tpu_metrics_debug",
    "dispatch_batches": "accelerator_config: {dispatch_batches: …}",
    "split_batches": "accelerator_config: {split_batches: …}",
    "fsdp_min_num_params": "fsdp_config: {min_num_params: …}",
    "fsdp_transformer_layer_cls_to_wrap": "fsdp_config: {transformer_layer_cls_to_wrap: …}",
}
"""What replaces an argument that is gone."""

OTHER_VALUES = frozenset({"evaluate_during_training", "sharded_ddp"})
"""Arguments that are gone, and whose values are not those of the replacement."""

MEANT: Mapping[str, str] = {"epochs": "num_train_epochs"}
"""Names that no release has, with the arguments that users mean."""

GONE_BEFORE = frozenset({"evaluate_during_training"})
"""Arguments that are still in files although they ended before the oldest known release."""

FSDP_KEY_ADVICE: Mapping[str, str] = {
    "sharding_strategy": "name the strategy in fsdp",
    "offload_params": "write offload in fsdp",
    "cpu_offload": "write offload in fsdp",
    "backward_prefetch_policy": "call it backward_prefetch",
    "auto_wrap_policy": "write auto_wrap in fsdp",
    "mixed_precision": "set bf16 or fp16 beside fsdp_config",
    "reshard_after_forward": "name the strategy in fsdp",
    "state_dict_type": "set fsdp_state_dict_type in the accelerate config",
    "cpu_ram_efficient_loading": "set fsdp_cpu_ram_efficient_loading in the accelerate config",
}
"""Help for keys of fsdp_config that a release does not read."""


OLD_SPELLINGS: Mapping[str, tuple[str, str]] = {
    "min_num_params": ("..4.31.0", "fsdp_min_num_params"),
    "transformer_layer_cls_to_wrap": ("..4.31.0", "fsdp_transformer_layer_cls_to_wrap"),
    "backward_prefetch": ("..4.38.2", "fsdp_backward_prefetch"),
    "forward_prefetch": ("4.32.1..4.38.2", "forward_prefect"),
}
"""Keys of fsdp_config that some releases read under another name, with these releases and the name."""

_WITHOUT_EFFECT = {"forward_prefect": "..4.31.0"}
"""Keys of fsdp_config that are read but have no effect."""

SWITCHES = frozenset(
    """
    activation_checkpointing cpu_offload cpu_ram_efficient_loading forward_prefetch limit_all_gathers sync_module_states
    use_orig_params xla xla_fsdp_v2 xla_fsdp_grad_ckpt
    """.split()
)
"""The switches of fsdp_config."""


class SwitchForm(enum.Enum):
    """The form in which a release takes a switch of fsdp_config."""

    TEXT = "text"
    """Only text, which is put into the environment: a YAML boolean raises TypeError."""
    WORD = "word"
    """A boolean, or a word for one; anything else raises ValueError."""
    TRUTH = "truth"
    """Anything, as Python tests it: every text that is not empty is on."""


@dataclass(frozen=True)
class ArgumentFacts:
    """How one release treats a file of training arguments.

    `program` and `version` belong to the program that reads the file; `release` is the transformers that it runs with.
    """

    program: str
    version: str
    release: str
    fields: Mapping[str, Spec]
    """The arguments of all dataclasses of this release."""
    converts: bool = False
    """The parser converts text to the type of its argument (TrlParser); HfArgumentParser leaves it unchanged."""
    none_is_null: bool = False
    """The parser makes null of the texts none and null, where the argument may be null and is no text (TrlParser)."""
    defaults: Mapping[str, Json] = field(default_factory=dict)
    """The program's own defaults, which replace those of TrainingArguments; None where its dataclasses differ."""
    quant_storage: bool = False
    """4-bit weights are stored as bnb_4bit_quant_storage says; else the release chooses the right dtype itself."""
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"transformers": TABLES})
    """By program: the tables that arguments come from."""
    others: frozenset[str] = frozenset()
    """Keys of a file that are not for a dataclass."""
    lenient: frozenset[str] = frozenset()
    """Arguments that may be of further kinds than their types say; the program's own rules check them."""
    trainer_stage: Stage | None = None
    """When the Trainer is built, in a program that loads the model before."""
    advice: Mapping[str, str] = field(default_factory=dict)
    """What replaces an argument of the program itself that is gone."""
    null_report_to_refused: bool = during("5.0.0..")
    """A null report_to is refused."""
    warmup_steps_compared: bool = during("4.42.4..")
    """warmup_steps is compared when the arguments are built."""
    warmup_steps_integer: bool = during("4.42.4..4.57.6")
    """warmup_steps must be an integer; later a fraction of it is a ratio."""
    warmup_steps_not_one: bool = during("4.42.4..4.43.4")
    """warmup_steps cannot be 1."""
    warmup_ratio_compared: bool = during("..4.57.6")
    """warmup_ratio is compared when the arguments are built, and must lie within 0 and 1."""
    empty_cache_steps_checked: bool = during("4.50.3..")
    """torch_empty_cache_steps must be a positive integer."""
    saves_best: bool = during("4.48.3..")
    """save_strategy: best works with any evaluation strategy."""
    steps_may_be_ratios: bool = during("4.53.3..")
    """save_steps and eval_steps may both be ratios when the best model is loaded."""
    breaks_neat_packing: bool = during("4.53.3..")
    """Its attention does not accept the mask of LLaMA-Factory's packed samples."""
    fsdp_false_refused: bool = during("4.57.1..4.57.6")
    """`fsdp: false` raises."""
    fsdp_null_refused: bool = during("..4.56.2")
    """An empty `fsdp` raises."""
    reads_options_as_settings: bool = during("5.10.4..")
    """`fsdp` is a boolean whose words become settings of fsdp_config; FSDP2 is the default."""
    strategy_is_reshard: bool = during("5.4.0..")
    """The strategy in `fsdp` is passed to accelerate as reshard-after-forward."""
    fsdp2_ignores_strategy: bool = during("5.0.0..5.3.0")
    """FSDP2 does not read the strategy in `fsdp`."""
    names_fsdp_version: bool = during("5.0.0..")
    """fsdp_config names the FSDP version."""
    checkpointing_told: bool = during("4.43.4..")
    """A warning is logged for gradient checkpointing with FSDP."""
    fsdp_prefix: bool = during("4.52.4..")
    """The prefix `fsdp_` of a key of fsdp_config is stripped, also in a YAML mapping."""
    switches_are_texts: bool = during("4.32.1..4.40.2")
    """A switch of fsdp_config must be a text."""
    orig_params_as_written: bool = during("..4.31.0")
    """use_orig_params is passed on as it is written."""
    prefix_stripped_in_files: bool = during("4.32.1..")
    """The prefix `fsdp_` of a key is stripped if fsdp_config is a file or a text."""
    texts_parsed: bool = during("4.40.2..")
    """A text that begins with a brace is parsed as JSON; earlier releases read it as the name of a file."""
    auto_wrap_asks_model: bool = during("4.32.1..")
    """auto_wrap without classes or size wraps the classes that the model names; earlier releases wrap nothing."""
    batch_options_break: bool = during("4.38.2")
    """dispatch_batches and split_batches are written into an object that accepts no items."""
    accumulation_excludes_steps: bool = during("4.40.2..")
    """num_steps in accelerator_config does not work with gradient_accumulation_steps."""
    half_precision_needs_gpu: bool = during("..4.41.2")
    """fp16 on the CPU is refused when the arguments are created."""
    save_only_model_best_refused: bool = during("4.38.2..")
    """save_only_model does not work with load_best_model_at_end."""
    unsynced_loading_refused: bool = during("4.41.2..")
    """Loading on one process needs sync_module_states."""
    sharded_save_only_model_refused: bool = during("4.50.3..")
    """save_only_model does not work with a sharded state dict."""
    inverse_sqrt_has_settings: bool = during("5.4.0..")
    """get_scheduler passes lr_scheduler_kwargs to inverse_sqrt too."""
    clipping_compared: bool = during("5.3.0..")
    """max_grad_norm is compared with 0 in each step, also where it is null."""
    accumulation_settings_checked: bool = during("4.40.2..4.45.2,5.2.0..")
    """gradient_accumulation_kwargs are passed to accelerate's plugin, which refuses unknown ones."""
    fills_amp: bool = during("..4.57.6")
    """An `auto` below `amp` in the DeepSpeed config is filled in."""
    adafactor_excludes_optimizer: bool = during("4.57.1..4.57.6")
    """optim: adafactor does not work with an optimizer in the DeepSpeed config; before, the argument adafactor."""
    no_batch_size_search_with_sharding: bool = during("4.38.2..4.44.2")
    """auto_find_batch_size works neither with FSDP nor with any DeepSpeed."""

    @property
    def label(self) -> str:
        """The program and release that read the file: `Transformers 5.24.0`."""
        return f"{_CALLED.get(self.program, self.program)} {self.version}"

    def default(self, name: str) -> Json:
        """The default of an argument."""
        if name in self.defaults:
            return self.defaults[name]
        argument = self.fields.get(name)
        return argument.default if argument else None

    @property
    def schedulers(self) -> Mapping[str, Spec]:
        """The words of lr_scheduler_type, each with the settings that its function takes and needs."""
        return declarations("transformers").fields("schedulers", self.release)

    @property
    def reporters(self) -> frozenset[str]:
        """The names that report_to may hold besides `all` and `none`."""
        return REPORTERS | set(names_within(_LATER_REPORTERS, self.release))

    @property
    def default_fsdp_version(self) -> int:
        """The FSDP version that runs unless fsdp_config names one."""
        return 2 if self.reads_options_as_settings else 1

    @property
    def log_levels(self) -> tuple[str, ...]:
        """The words of log_level."""
        return words_within(_LOG_LEVELS, self.release)

    @property
    def options(self) -> tuple[str, ...]:
        """The words of `fsdp`."""
        known = declarations("transformers").keys("choices:FSDPOption", self.release)
        return tuple(word for word in OPTIONS if word in known)

    @cached_property
    def fsdp_names(self) -> Mapping[str, str]:
        """The keys of fsdp_config that are read, as later releases spell them, each with how this one does."""
        old = {key: name for key, (text, name) in OLD_SPELLINGS.items() if within(self.release, text)}
        read = declarations("transformers").keys("fsdp_config", self.release)
        read -= {name for name, text in _WITHOUT_EFFECT.items() if within(self.release, text)}
        later = {name: key for key, name in old.items()}
        return {later.get(name, name): name for name in read if name not in old}

    @cached_property
    def fsdp_keys(self) -> frozenset[str]:
        """The keys of fsdp_config that are read, as later releases spell them."""
        return frozenset(self.fsdp_names)

    def switch_form(self, key: str, version: int | None) -> SwitchForm | None:
        """The form of a switch of fsdp_config under an FSDP version; None where the switch is not read."""
        if key not in self.fsdp_keys or key not in SWITCHES:
            return None
        if key.startswith("xla") or key == "cpu_offload" or self.orig_params_as_written:
            return SwitchForm.TRUTH
        new = self.reads_options_as_settings
        if key in ("limit_all_gathers", "activation_checkpointing") and not new:
            return SwitchForm.TRUTH
        if key in ("cpu_ram_efficient_loading", "activation_checkpointing"):
            return SwitchForm.WORD
        if version == 2 and (new or key != "sync_module_states"):
            return None
        return SwitchForm.TEXT if self.switches_are_texts else SwitchForm.WORD

    @cached_property
    def fsdp(self) -> FsdpFacts:
        """How this release treats FSDP settings."""
        error, warning, note = Severity.ERROR, Severity.WARNING, Severity.NOTE
        new = self.reads_options_as_settings
        named = self.names_fsdp_version
        states = frozenset({"FULL_STATE_DICT", "SHARDED_STATE_DICT"})
        prefetches = {1: Words(frozenset({"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"}))}
        policies = Words(frozenset({"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"}))
        words = {"backward_prefetch": prefetches}
        if new:
            words["wrap_policy"] = {1: policies, 2: policies}
            words["state_dict_type"] = {1: Words(states | {"LOCAL_STATE_DICT"}), 2: Words(states)}
        prefix = "fsdp_" if self.fsdp_prefix else ""
        return FsdpFacts(
            keys=frozenset(prefix + key for key in {*self.fsdp_names.values(), "version"}),
            optional_prefix=prefix,
            key_advice={prefix + key: advice for key, advice in self._key_advice.items()},
            unknown_key=warning,
            default_version=self.default_fsdp_version,
            versions=(1, 2) if named else (),
            version_not_read=warning,
            words=words,
            booleans=self._booleans,
            fsdp1_only=dict.fromkeys(
                ("backward_prefetch", "forward_prefetch", "use_orig_params", "sync_module_states", "limit_all_gathers"),
                note,
            ),
            default_state_dict_type={1: "FULL_STATE_DICT", 2: "FULL_STATE_DICT" if new else "SHARDED_STATE_DICT"},
            wrap_advice="set auto_wrap_policy: TRANSFORMER_BASED_WRAP" if new else "add auto_wrap to fsdp",
            boolean_reshard_under_fsdp1=error if named else None,
            size_not_an_integer=error,
            unsynced_ram_loading={1: warning} if new else {1: error, 2: error} if self.unsynced_loading_refused else {},
            checkpointing_without_wrap=warning if named else None,
            class_names=error,
            single_unit=warning if new else None,
            section_not_used=warning,
            deepspeed_beside=error,
            trainer_stage=self.trainer_stage,
            two_checkpointings=error,
            save_only_model_sharded=error if self.sharded_save_only_model_refused else None,
            save_only_model_best=error if self.save_only_model_best_refused else None,
            eight_bit_optimizers=dict.fromkeys(EIGHT_BIT_OPTIMIZERS, warning),
            quant_storage=error if self.quant_storage else None,
            auto_find_batch_size=error if self.no_batch_size_search_with_sharding else warning,
        )

    @property
    def _booleans(self) -> Mapping[str, Mapping[int, Severity]]:
        settings = {
            "forward_prefetch": "forward_prefetch",
            "use_orig_params": "use_orig_params",
            "sync_module_states": "sync_module_states",
            "limit_all_gathers": "limit_all_gathers",
            "ram_efficient_loading": "cpu_ram_efficient_loading",
            "activation_checkpointing": "activation_checkpointing",
        }
        read = {
            setting: {
                version: Severity.ERROR for version in (1, 2) if self.switch_form(key, version) is SwitchForm.WORD
            }
            for setting, key in settings.items()
        }
        return {**read, "reshard": {2: Severity.ERROR}} if self.names_fsdp_version else read

    @property
    def _key_advice(self) -> Mapping[str, str]:
        advice = dict(FSDP_KEY_ADVICE)
        if self.reads_options_as_settings:
            advice |= {
                "offload_params": "call it cpu_offload",
                "sharding_strategy": "call it reshard_after_forward, true or false",
            }
        return advice

    # names

    @cached_property
    def accelerator_keys(self) -> frozenset[str]:
        """The keys of accelerator_config."""
        return _ACCELERATOR_KEYS | set(names_within(_LATER_ACCELERATOR_KEYS, self.release))

    def is_ever(self, name: str) -> bool:
        """Some release has this argument, of whichever trainer."""
        known = [declarations(program) for program in self.tables]
        return name in self.fields or any(
            name in declared.keys_of_any(table) for declared in known for table in declared.tables
        )

    def other_releases(self, name: str) -> str | None:
        """In words, which other releases have an argument; None where none does."""
        for program, tables in self.tables.items():
            known = declarations(program)
            found = [known.span(table, name) for table in tables if name in known.keys_of_any(table)]
            if found:
                called = _CALLED.get(program, program)
                since, until = _oldest(span.since for span in found), _newest(span.until for span in found)
                if since and version_tuple(since) > version_tuple(self._version_of(program)):
                    return f"it needs {called} {minor(since)} or newer"
                if until:
                    return f"{called} {minor(until)} was the last release with it"
                return f"other releases of {called} have it"
        return "older releases had it" if name in GONE_BEFORE else None

    def _version_of(self, program: str) -> str:
        return self.version if program == self.program else self.release

    def renamed(self, name: str) -> str:
        """Help for an argument that another release has; empty where there is none."""
        advice = {**RENAMED, **self.advice}.get(name, "")
        if advice.isidentifier():
            return f"call it {advice}"
        return f"use {advice}" if advice and not advice.startswith("remove") else advice


@cache
def transformers_facts(release: str) -> ArgumentFacts:
    """The facts of one known release of transformers, as HfArgumentParser reads a file."""
    known = declarations("transformers")
    fields = argument_fields(known, TABLES, release)
    return ArgumentFacts("transformers", release, release, fields, **behaviour(ArgumentFacts, release))


def argument_fields(known: Declarations, tables: tuple[str, ...], release: str) -> dict[str, Spec]:
    """The fields of several tables in one release; the first table wins."""
    fields: dict[str, Spec] = {}
    for table in reversed(tables):
        fields.update(known.fields(table, release))
    return fields


def _oldest(versions: Iterable[str]) -> str:
    """The oldest of several first releases; an empty one means the oldest known."""
    listed = list(versions)
    return "" if "" in listed else min(listed, key=version_tuple)


def _newest(versions: Iterable[str]) -> str:
    """The newest of several last releases; an empty one means the newest known."""
    listed = list(versions)
    return "" if "" in listed else max(listed, key=version_tuple)
