"""Writes the cases of the limits, fixtures/RULE/limits.yaml, from their conditions: `python tools/limit_cases.py`.

For each line of a limits file it looks for settings for which only this line holds, in the first and the last release
of its span, but not in the releases before and after; and, for each term of the condition, for a value with which the
rule finds nothing. tools/trials.py explains the format, tests/test_limits.py runs the cases. The script lists the lines
for which it finds no such settings: they need a case in fixtures/RULE/limits-by-hand.yaml, which it only reads.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import itemgetter
from pathlib import Path

from trainlint.engine import Workspace
from trainlint.programs.table import PROGRAMS
from trainlint.reading.document import documents
from trainlint.reading.scalars import Dialect, plain_value
from trainlint.reading.text import Text
from trainlint.repository.files import display_path
from trainlint.settings import Settings
from trainlint.training.declarations import declarations
from trainlint.training.limits import Limit, ReadFile, Term, limits_of, terms_of
from trials import Expected, Trial, file_of, key_of, outcomes, read_cases, said

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
HEAD = "# Cases of the limits that {code} checks, written by tools/limit_cases.py; their form: tools/trials.py.\n"
MOST = 600
"""The number of combinations of values that are tried for a limit."""
ENOUGH = 6
"""The number of combinations to choose from for which only this limit holds."""

Values = Mapping[str, object]


class Absent:
    """The value of a setting that is not in the file."""


ABSENT = Absent()


@dataclass(frozen=True)
class Origin:
    """What the cases of a program are made from.

    `base` has the settings of all cases; `needs` those that a section, a setting or one of its values requires.
    `samples` are values of settings that accept no plain value, `makes` the settings from which the program derives a
    name. Where `commands` has a command for the value of `chosen`, a script passes it the file; the terms in `told`
    follow from that.
    """

    base: Values
    needs: Mapping[str, Values] = field(default_factory=dict)
    samples: Mapping[str, Sequence[object]] = field(default_factory=dict)
    makes: Mapping[str, Sequence[Values]] = field(default_factory=dict)
    chosen: str = ""
    commands: Mapping[str, str] = field(default_factory=dict)
    told: frozenset[str] = frozenset()

    def run(self, limit: Limit) -> str:
        """The command that a script passes the file to; empty where none does."""
        words = [word for term in terms_of(limit.when) if self.chosen in term.names for word in term.operand.split(",")]
        return self.commands.get(words[0] if words else "", "")


ATTENTIONS: Sequence[Values] = [
    {"attn_implementation": word, "flash_attention": ABSENT}
    for word in ("eager", "flash_attention_2", "flex_attention")
]
PLUGINS = sorted(declarations("axolotl").keys_of_any("plugins"), key=len, reverse=True)
ORIGINS: Mapping[str, Origin] = {
    "axolotl": Origin(
        base={
            "base_model": "acme/tiny-lm",
            "datasets": [{"path": "acme/notes", "type": "alpaca"}],
            "output_dir": "out",
            "sequence_len": 1024,
            "micro_batch_size": 1,
            "gradient_accumulation_steps": 2,
            "learning_rate": 0.0001,
        },
        needs={
            "relora": {"adapter": "lora", "jagged_restart_steps": 10},
            "relora_steps": {"adapter": "lora"},
            "load_in_8bit": {"adapter": "lora"},
            "load_in_4bit": {"adapter": "qlora"},
            "adapter=qlora": {"load_in_4bit": True},
            "adapter=mixlora": {
                "lora_r": 8,
                "lora_alpha": 16,
                "plugins": ["axolotl.integrations.mixlora.MixLoraPlugin"],
            },
            "adapter=multilora": {"plugins": ["acme.adapters.Plugin"]},
            "expert_parallel_size": {
                "fsdp_config.state_dict_type": "FULL_STATE_DICT",
                "fsdp_version": 2,
                "plugins": ["axolotl.integrations.expert_parallel.ExpertParallelPlugin"],
            },
            "nvfp4_merge_aware": {"use_sonicmoe": True, "adapter": "lora"},
            "coreweave": {"coreweave": {}},
            "use_glm_dsa_kernels": {"plugins": ["axolotl.integrations.kernels.KernelsPlugin"]},
            "context_parallel.ring_size": {"context_parallel.size": 2},
            "optimizer=polora": {"adapter": "lora"},
            "optimizer=q_galore_adamw8bit": {"fsdp_config.use_orig_params": True, "fsdp_version": 2},
            "ple_cpu_offload": {"adapter": "lora", "load_in_8bit": True},
            "quantize_moe_experts": {"adapter": "lora", "load_in_8bit": True},
            "rl=kto": {"remove_unused_columns": False},
            "fsdp_config.cpu_offload_pin_memory": {"fsdp_config.offload_params": True, "fsdp_version": 2},
            "fp8_enable_fsdp_float8_all_gather": {
                "fp8": True,
                "fsdp_config": {"offload_params": False},
                "fsdp_version": 2,
            },
            "fp8_config": {"fp8": True},
            "streaming": {"max_steps": 10},
            "pretraining_dataset": {"max_steps": 10},
            "early_stopping_patience": {"save_steps": 10, "eval_steps": 10},
            "batch_size": {"gradient_accumulation_steps": ABSENT},
            "context_parallel_size": {"flash_attention": True},
            "sequence_parallel_degree": {"flash_attention": True},
            "batch_flattening": {"flash_attention": True},
            "selective_checkpointing": {"gradient_checkpointing": True},
            "activation_offloading": {"gradient_checkpointing": True},
        },
        samples={
            "base_model": ["acme/small-lm"],
            "adapter": ["lora", "qlora"],
            "optimizer": ["adamw_torch"],
            "fsdp": [["full_shard"]],
            "fsdp_config": [{"offload_params": False}],
            "fsdp_version": [1],
            "deepspeed": ["ds_z2.json"],
            "lr_groups": [[{"name": "head", "modules": ["lm_head"], "lr": 0.001}]],
            "test_datasets": [[{"path": "acme/held-out", "type": "alpaca"}]],
            "pretraining_dataset": [[{"path": "acme/notes"}]],
            "neftune_noise_alpha": [5.0, -1.0],
            "peft_layers_to_transform": [[0, 1]],
            "peft_trainable_token_indices": [[0, 1]],
            "dpo_loss_type": [["sigmoid"]],
            "dpo_loss_weights": [[1.0]],
            "lora_target_parameters": [["experts.gate"]],
            "lora_modules_to_save": [["embed_tokens"]],
            "unfrozen_parameters": [["lm_head"]],
            "peft_init_lora_weights": ["pissa"],
            "peft.loftq_config": [{"loftq_bits": 4}],
            "bnb_config_kwargs.blocksize": [128],
            "qat": [{"weight_dtype": "int8"}],
            "save_strategy": ["epoch"],
            "eval_strategy": ["epoch"],
            "fp8_config": [{"recipe": "tensorwise"}],
            "added_tokens_overrides": [{"128000": "<note>"}],
            "attn_implementation": ["eager"],
            "expert_backend": ["scattermoe", "sonicmoe"],
            "torch_compile_options": [{"shape_padding": True}],
            "export.quantize": [["Q4_K_M"]],
            "export.outfile": ["model.gguf"],
            "max_memory": [{"0": "20GiB"}],
            "context_parallel.ring_size": [2],
        },
        makes={
            "staged_nf4": [
                {"fsdp_config.cpu_ram_efficient_loading": True, "load_in_4bit": True, "adapter": "qlora"},
                {
                    "fsdp_config.cpu_ram_efficient_loading": True,
                    "load_in_4bit": True,
                    "qlora_sharded_model_loading": True,
                },
                {"nf4_backend": "torchao", "adapter": "qlora", "load_in_4bit": True},
                {"nf4_backend": "torchao", "adapter": "qlora", "merge_lora": True},
                {
                    "nf4_backend": "torchao",
                    "adapter": "qlora",
                    "load_in_4bit": True,
                    "fsdp_config.cpu_ram_efficient_loading": True,
                },
                {"nf4_backend": "torchao"},
            ],
            "attention": ATTENTIONS,
            "packing_attention": ATTENTIONS,
            "own_lora_kernels": [
                {"adapter": "lora", "lora_dropout": 0},
                {"adapter": "lora", "lora_dropout": 0, "load_in_8bit": True},
            ],
            **{name.rpartition(".")[2]: [{"plugins": [f"axolotl.integrations.{name}"]}] for name in PLUGINS},
        },
    ),
    "llamafactory": Origin(
        base={
            "model_name_or_path": "acme/tiny-lm",
            "stage": "sft",
            "do_train": True,
            "finetuning_type": "lora",
            "template": "llama3",
            "dataset": "identity",
            "output_dir": "out",
        },
        needs={
            "zero3": {"deepspeed": "ds_z3.json"},
            "distributed": {"fsdp": "full_shard auto_wrap"},
            "stage=ppo": {"reward_model": "acme/judge"},
            "streaming": {"max_steps": 10},
            "use_galore": {"finetuning_type": "full"},
            "use_apollo": {"finetuning_type": "full"},
            "use_badam": {"finetuning_type": "full"},
            "do_predict": {"predict_with_generate": True, "eval_dataset": "identity"},
            "predict_with_generate": {"eval_dataset": "identity"},
            "load_best_model_at_end": {"eval_strategy": "steps", "val_size": 0.1},
        },
        samples={
            "quantization_bit": [4],
            "adapter_name_or_path": ["acme/lora"],
            "val_size": [0.1],
            "interleave_probs": ["1.0"],
        },
        makes={
            "image_pixels_swapped": [{"image_max_pixels": 256, "image_min_pixels": 512}, {"image_max_pixels": 1024}],
            "video_pixels_swapped": [{"video_max_pixels": 256, "video_min_pixels": 512}, {"video_max_pixels": 1024}],
            "evaluates": [{"do_eval": True}, {"do_eval": False}],
        },
    ),
    "soup": Origin(
        base={"base": "acme/tiny-lm", "output": "out", "data": {"train": "notes.jsonl"}},
        needs={
            "training.stream_layers": {"training.batch_size": 1},
            "task=distill": {"training.teacher_model": "acme/teacher"},
            "task=classifier": {"training.num_labels": 2},
            "task=reranker": {"training.num_labels": 2},
            "task=unlearn": {"training.unlearn_method": "npo", "data.forget_set": "forget.jsonl"},
            "task=online_dpo": {"training.reward_model": "acme/judge"},
            "task=tts": {"modality": "audio_out", "training.tts_family": "orpheus"},
            "task=preference": {"training.preference_loss": "simpo"},
            "task=moe_lora_routing": {"training.mole_task_adapters": ["a", "b"]},
            "relora": {"training.quantization": "none"},
            "training.use_galore": {"training.quantization": "none"},
            "training.lora.r": {"training.quantization": "none"},
            "training.lora.r=0": {"training.quantization": "none"},
            "training.lisa_enabled": {"training.quantization": "none"},
            "training.unfrozen_parameters": {"training.quantization": "none"},
            "training.train_router_only": {"training.moe_lora": True},
            "training.moe_expert_quant": {"training.moe_lora": True},
            "training.expand_layers": {
                "training.freeze_trainable_layers": 2,
                "training.quantization": "none",
                "training.lora.r": 0,
            },
            "training.freeze_trainable_layers": {
                "training.expand_layers": 2,
                "training.quantization": "none",
                "training.lora.r": 0,
            },
            "training.reward_hack_mitigation": {"training.reward_hack_detector": "info_rm", "task": "grpo"},
            "training.reward_hack_mitigation=kl_control": {"training.reward_hack_detector": "info_rm", "task": "grpo"},
            "training.reward_hack_rollback": {
                "training.reward_hack_detector": "info_rm",
                "training.rl_checkpoint_save_every_steps": 10,
                "task": "grpo",
            },
            "training.uld_strategy=topk_align": {"training.uld_top_k": 4},
            "training.minillm_enabled": {
                "training.minillm_on_policy": True,
                "training.teacher_model": "acme/teacher",
                "task": "distill",
            },
            "training.fp8_attention": {"training.quantization_aware": "fp8"},
            "training.echo_trap_enabled": {"task": "grpo"},
            "training.fast_lora": {"training.lora.dropout": 0},
            "training.lora.target_parameters": {"training.lora.dropout": 0},
            "training.grace_codebook": {"training.grace_codebook_size": 4, "training.grace_codebook_dim": 4},
            "training.dpo_beta_schedule": {"training.dpo_beta_end": 0.5, "task": "dpo"},
            "training.dpo_beta_end": {"training.dpo_beta_schedule": "linear", "task": "dpo"},
            "training.dpo_ref_regen_epochs": {"task": "dpo"},
            "data.new_special_tokens": {"data.new_special_tokens": ["note"]},
            "training.lora.init_strategy=pissa": {"training.quantization": "none"},
            "training.quantization_aware=quest": {
                "training.quantization": "none",
                "training.lora.r": 0,
                "training.batch_size": 2,
            },
            **{
                f"training.{name}": {"task": "grpo"}
                for name in ("long_context_grpo", "grpo_variant", "mask_truncated_completions", "prm_reward")
            },
            "training.rollout_backend": {"task": "grpo", "training.rollout_func": "notes:reply"},
            "training.vision_grpo": {"task": "grpo", "modality": "vision", "base": "acme/llava"},
            "training.label_names": {"task": "classifier", "training.num_labels": 2},
            "training.mole_top_k": {"task": "moe_lora_routing", "training.mole_task_adapters": ["a", "b"]},
            "training.uld_strategy": {"task": "distill", "training.teacher_model": "acme/teacher"},
            "training.citation_faithful": {"data.format": "raft"},
            "training.curriculum_dynamic": {"training.curriculum": True},
            "training.unsloth_bnb_4bit": {"backend": "unsloth"},
            "data.format=pre_tokenized": {"data.tokenized_path": "cache"},
            "data.interleave": {"data.train": ["a.jsonl", "b.jsonl"]},
            "training.use_longlora": {"base": "acme/llama-3"},
            "judge_rank": {"task": "grpo", "training.grpo_judge": "ollama://m", "training.grpo_judge_max_calls": 9},
        },
        samples={
            "base": ["acme/small-lm"],
            "training.reward_fn": ["judge_rank", "verifiable", "accuracy,format", "accuracy"],
            "training.grpo_judge": ["ollama://model"],
            "training.preference_loss_weights": [{"simpo": 0.5, "orpo": 0.5}],
            "training.mole_task_adapters": [["a", "b"]],
            "training.lora.rank_pattern": [{"q_proj": 8}],
            "training.lora.alpha_pattern": [{"q_proj": 8}],
            "training.lora.target_parameters": [["experts.gate"]],
            "training.rollout_func": ["notes:reply"],
            "data.prompt_strategy": ["notes:prompt"],
            "data.interleave": ["concat"],
            "data.train": [["a.jsonl", "b.jsonl"], ["a.jsonl", "acme/notes"], ["s3://acme/a.json", "s3://acme/b.json"]],
            "training.optimizer": ["adamw_torch", "sgd"],
            "training.tts_emotion": ["happy"],
            "training.label_names": [["yes"]],
            "training.mole_top_k": [3],
            "training.eval_steps": [5],
            "training.stream_buffers": [4],
            "training.stream_read_ahead": [4],
            "training.stream_loss_chunk": [64],
            "training.expand_layers": [2],
            "data.image_min_pixels": [512],
            "training.freeze_trainable_layers": [2],
            "training.reward_hack_kl_gain": [2.0],
        },
        makes={
            "longlora_model": [{"base": "acme/llama-3"}, {"base": "acme/tiny-lm"}],
            "vision_model": [{"base": "acme/llava"}, {"base": "acme/tiny-lm"}],
            "kimi": [{"base": "moonshotai/Kimi-K2-Base"}, {"base": "acme/tiny-lm"}],
            "unknown_template": [{"data.chat_template": "notes"}, {"data.chat_template": "chatml"}],
            "judge_rank": [{"training.reward_fn": "judge_rank"}, {"training.reward_fn": "accuracy"}],
            "reward_needs_domain": [{"training.reward_fn": "verifiable"}, {"training.reward_fn": "accuracy"}],
            "several_rewards": [{"training.reward_fn": "accuracy,format"}, {"training.reward_fn": "accuracy"}],
            "main_preference": [{"training.preference_loss": "dpo"}, {"training.preference_loss": "simpo"}],
            "frozen_reference": [{"training.preference_loss": "dpo"}, {"training.preference_loss": "simpo"}],
            "lora_changed": [{"training.lora.alpha": 32}, {"training.lora.alpha": 16}],
            "lora_variant": [{"training.lora.use_vera": True}],
            "head_targets": [
                {"training.lora.target_modules": ["lm_head"]},
                {"training.lora.target_modules": ["q_proj"]},
            ],
            "written_quantization": [{"training.quantization": word} for word in ("gptq", "8bit", "none", "4bit")],
            "expanded_differently": [
                {"training.freeze_trainable_layers": 3, "training.expand_layers": 2},
                {"training.freeze_trainable_layers": 2, "training.expand_layers": 2},
            ],
            "beta_bounds_swapped": [{"training.reward_hack_beta_floor": 2.0}, {"training.reward_hack_beta_floor": 0.1}],
            "bands_swapped": [{"training.reward_hack_release_band": 0.5}, {"training.reward_hack_release_band": 0.2}],
            "labels_miscounted": [{"training.label_names": ["yes"]}, {"training.label_names": ["yes", "no"]}],
            "adapters_exceeded": [{"training.mole_top_k": 3}, {"training.mole_top_k": 2}],
            "pixels_swapped": [
                {"data.image_min_pixels": 512, "data.image_max_pixels": 256},
                {"data.image_min_pixels": 128, "data.image_max_pixels": 256},
            ],
            "curriculum_overfull": [
                {
                    "training.curriculum": True,
                    "training.curriculum_dynamic": True,
                    "training.curriculum_dynamic_floor": 0.5,
                },
                {"training.curriculum_dynamic_floor": 0.05},
            ],
            "several_sources": [{"data.train": ["a.jsonl", "b.jsonl"]}, {"data.train": "notes.jsonl"}],
            "mixed_sources": [{"data.train": ["a.jsonl", "acme/notes"]}, {"data.train": ["a.jsonl", "b.jsonl"]}],
            "hub_sources": [{"data.train": ["acme/words", "acme/notes"]}, {"data.train": ["a.jsonl", "b.jsonl"]}],
            "remote_sources": [
                {"data.train": ["a.jsonl", "s3://acme/b.jsonl"]},
                {"data.train": ["a.jsonl", "b.jsonl"]},
            ],
            "nothing_held_out": [{"data.val_split": 0}, {"data.val_split": 0.1}],
            "signals_changed": [{"training.reward_hack_signals": ["repetition"]}],
            "detector_signalled": [
                {"training.reward_hack_signals": ["repetition"]},
                {"training.reward_hack_signals": ["info_rm"]},
            ],
            "foreign_signal": [
                {"training.reward_hack_signals": ["info_rm", "notes"]},
                {"training.reward_hack_signals": ["info_rm", "repetition"]},
            ],
        },
    ),
    "trl": Origin(
        base={
            "model_name_or_path": "acme/tiny-lm",
            "dataset_name": "acme/notes",
            "output_dir": "out",
            "per_device_train_batch_size": 8,
        },
        needs={
            "zero3": {"deepspeed": {"zero_optimization": {"stage": 3}}},
            "evaluates": {"eval_strategy": "epoch"},
            "use_liger_kernel": {"bf16": True},
            "generation": {"reward_model_name_or_path": "acme/judge"},
        },
        samples={
            "model_init_kwargs": [{"use_cache": False}],
            "ref_model_init_kwargs": [{"use_cache": False}],
            "model_init_kwargs.num_labels": [2],
            "lora_task_type": ["CAUSAL"],
            "packing_strategy": ["greedy"],
            "f_divergence_type": ["js_divergence", "chi_squared"],
            "truncation_mode": ["keep_middle"],
            "loss_type": ["sigmoid", "kto", "ipo", "apo_zero_unpaired", "aot"],
            "vllm_mode": ["remote"],
            "vllm_importance_sampling_mode": ["token_truncate", "sequence_mask"],
            "importance_sampling_level": ["sequence", "word"],
            "multi_objective_aggregation": ["sum"],
            "scale_rewards": ["std"],
            "train_sampling_strategy": ["random"],
            "ref_adapter_name": ["reference"],
            "log_completions_hub_repo": ["acme/completions"],
            "max_length": [256],
            "max_seq_length": [256],
            "delta": [4.0],
            "off_policy_mask_threshold": [0.5],
            "generation_batch_size": [16],
            "steps_per_generation": [2],
            "num_generations": [8],
        },
        makes={
            "zero3": [{"deepspeed": {"zero_optimization": {"stage": 3}}}, {"deepspeed": ABSENT}],
            "evaluates": [{"eval_strategy": "epoch"}, {"eval_strategy": ABSENT}],
            "streams": [{"dataset_streaming": True}, {"dataset_streaming": False}],
            "other_losses": [{"loss_type": "nca_pair"}, {"loss_type": "sigmoid"}],
            **{
                f"losses.{word}": [{"loss_type": word}, {"loss_type": "sigmoid"}]
                for word in ("exo_pair", "aot", "aot_unpaired")
            },
        },
        chosen="trainer",
        commands={
            "": "trl sft",
            **{word: f"trl {word}" for word in ("sft", "dpo", "kto", "grpo", "rloo", "reward")},
        },
        told=frozenset({"trainer", "scripted"}),
    ),
}
PLAIN = (True, 2, 0.5, "notes", ["notes"], {"notes": 1}, False, 0, 1)
"""Values for a setting without declared words; values that other rules refuse are skipped."""
KINDS = {
    bool: re.compile("bool|Any"),
    int: re.compile("int|PositiveInt|float|Any"),
    float: re.compile("float|Any"),
    str: re.compile("str|Any"),
    list: re.compile(r"list\b|Any"),
    dict: re.compile(r"(?!list)\w*(dict|Mapping|Config|Any)"),
}
"""The types that accept a plain value, by its type."""


# values for the settings of a condition


def samples(name: str, program: str) -> Iterator[object]:
    """Values that a setting may have: words that a release declares for it before plain ones of its type."""
    yield from ORIGINS[program].samples.get(name, ())
    words, types = _declared(name.rpartition(".")[2], program)
    yield from words
    yield from (value for value in PLAIN if not types or any(map(KINDS[type(value)].match, types)))


@cache
def _declared(key: str, program: str) -> tuple[tuple[object, ...], frozenset[str]]:
    """The words that a setting accepts in some release, and its types."""
    known = declarations(program)
    tables = [known.fields(table, release) for table in known.tables for release in reversed(known.names)]
    specs = [table[key] for table in tables if key in table]
    words = dict.fromkeys(word for spec in specs for word in spec.choices if isinstance(word, (str, int)))
    return tuple(words), frozenset(kind for spec in specs for kind in spec.types) - {"None"}


def values(name: str, term: Term, truth: bool, program: str) -> Iterator[object]:
    """Values of one setting with which a term should hold or, if not `truth`, should not; some may be wrong."""
    if term.given:
        yield from samples(name, program) if truth else [ABSENT, None]
    elif not term.operator or term.operator.startswith("#"):
        yield from (value for value in samples(name, program) if value) if truth else [ABSENT, False]
    elif term.operator in "<>":
        bound, step = float(term.operand), 1 if term.operator == ">" else -1
        edge = int(bound) if bound.is_integer() else bound
        numbers = [v for v in samples(name, program) if isinstance(v, (int, float)) and not isinstance(v, bool)]
        fitting = [number for number in numbers if (number - edge) * step > 0]
        yield from [*fitting, edge + step] if truth else [edge, edge - step, ABSENT]
    elif term.operator == "~":
        yield from (v for v in samples(name, program) if isinstance(v, str) and (term.operand in v.lower()) == truth)
        yield f"acme/{term.operand}-tiny" if truth else ABSENT
    else:
        listed = [_scalar(text) for text in term.operand.split(",")]
        if truth == (term.operator == "="):
            yield from listed
        else:
            yield from (value for value in samples(name, program) if value not in listed)
        if truth == (term.operator == "!="):
            yield ABSENT


def _scalar(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    number = plain_value(text, Dialect.PYYAML) if text.lstrip("-")[:1].isdecimal() else None
    return text if number is None else number


def _made(term: Term, program: str) -> list[Values]:
    return [settings for name in term.names for settings in ORIGINS[program].makes.get(name, ())]


def _of_settings(term: Term) -> Term:
    """A term with the settings that its names are about."""
    return replace(term, names=tuple(name.removeprefix("changed.") for name in term.names))


def satisfying(term: Term, program: str) -> Iterator[Values]:
    """Settings with which a term of a condition may hold."""
    term = _of_settings(term)
    yield from _made(term, program)
    if term.operator.startswith("#"):
        count = int(term.operand) + (1 if term.operator == "#>" else -1)
        for chosen in itertools.combinations(term.names, count):
            yield {n: next(values(n, term, True, program)) if n in chosen else ABSENT for n in term.names}
    elif term.negated:
        yield dict.fromkeys(term.names, ABSENT)
        yield from ({name: value} for name in term.names for value in values(name, term, False, program))
    else:
        yield from ({name: value} for name in term.names for value in values(name, term, True, program))


def differing(term: Term, program: str) -> Iterator[Values]:
    """Settings, each of which may be enough for a term to hold no longer."""
    term = _of_settings(term)
    made = _made(term, program)
    yield from [*made, *({name: ABSENT} for settings in made for name in settings)]
    for truth in (term.negated, not term.negated):
        for name in term.names:
            yield from ({name: value} for value in values(name, term, truth, program))


def candidates(limit: Limit, program: str) -> Iterator[Values]:
    """Settings with which a limit may hold, the simplest first."""
    told = ORIGINS[program].told
    terms = [term for term in terms_of(limit.when) if not told.issuperset(term.names)]
    options = [list(itertools.islice(satisfying(term, program), 24)) for term in terms]
    picks = sorted(itertools.product(*(range(len(option)) for option in options)), key=sum)
    for pick in picks[:MOST]:
        settings: dict[str, object] = {}
        for index, option in zip(pick, options, strict=True):
            if any(settings.get(name, value) != value for name, value in option[index].items()):
                break
            settings.update(option[index])
        else:
            yield settings


# settings as a file


@dataclass(frozen=True)
class Draft:
    """Settings as the lines of a case, with the keys of the base that it leaves out."""

    settings: Values
    lines: tuple[str, ...]
    left_out: tuple[str, ...]
    base: tuple[str, ...]

    @property
    def text(self) -> str:
        """The file with these settings."""
        return file_of(self.lines, self.base, self.left_out)


def drafted(settings: Values, program: str, keep: Sequence[str] = ()) -> Draft:
    """Settings as lines, after the keys of the base that are kept."""
    base = ORIGINS[program].base
    tree: dict[str, object] = {key: base[key] for key in keep}
    for name, value in settings.items():
        *sections, key = name.split(".")
        place = tree
        for section in sections:
            inner = place.get(section, base.get(section) if place is tree else None)
            place[section] = inner = dict(inner) if isinstance(inner, Mapping) else {}
            place = inner
        within = place.get(key)
        if isinstance(value, Mapping) and isinstance(within, Mapping):
            place[key] = {**value, **within}
        elif value is not ABSENT and not (value is True and isinstance(within, Mapping)):
            place[key] = value
    left_out = tuple(name for name, value in settings.items() if value is ABSENT and name in base)
    lines = tuple(f"{key}: {flow(value)}" for key, value in tree.items() if value != {})
    return Draft(settings, lines, left_out, tuple(f"{key}: {flow(value)}" for key, value in base.items()))


_BARE = re.compile(r"(?!(?:true|false|null|yes|no|on|off|[yn])$)[A-Za-z_][\w./+-]*", re.IGNORECASE)


def flow(value: object) -> str:
    """A value as YAML on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return value if isinstance(value, str) and _BARE.fullmatch(value) else json.dumps(value)


# the case of a limit


@dataclass(frozen=True)
class Found:
    """A case: its settings, the releases that refuse them, the expected finding, and lines without a finding.

    In the releases around the span the rule is `silent`, or other lines of the table refuse the same settings
    (`twins`). `also` has the findings of other rules on the settings.
    """

    draft: Draft
    refused: Sequence[str]
    silent: Sequence[str] = ()
    twins: Sequence[Found] = ()
    rule: str = ""
    expected: Expected | None = None
    instead: Sequence[str] = ()
    also: Sequence[str] = ()
    run: str = ""

    def document(self, program: str) -> str:
        """The case as text."""
        lines = ["---", f"# target: {program}={','.join(self.refused)}"]
        lines += [f"# silent: {program}={release}" for release in self.silent]
        lines += [f"# run: {self.run}"] if self.run else []
        lines += [f"# base: no {key}" for key in self.draft.left_out]
        for number, line in enumerate(self.draft.lines, 1):
            if self.expected is None or number != self.expected.line:
                lines.append(line)
                continue
            said = self.expected
            lines += [f"{line}  # expect: {self.rule} {said.start}-{said.end}", f"# {said.severity}: {said.message}"]
            lines += [f"# help: {said.help}"] if said.help else []
        lines += [f"# instead: {line}" for line in self.instead]
        return "".join(f"{line}\n" for line in lines) + "".join(twin.document(program) for twin in self.twins)


class Section:
    """The limits of one section of a program, and the files for which they hold."""

    def __init__(self, program: str, name: str, folder: Path) -> None:
        self.program = program
        self.limits = limits_of(program)[name]
        self.order = declarations(program).names
        self._name = name
        self._module = PROGRAMS[program].load()
        self._folder = folder
        self._workspaces: dict[str, Workspace] = {}

    def _workspace(self, run: str) -> tuple[str, Workspace]:
        """The path of the file in a repository whose script passes it to a command, and that repository."""
        folder = self._folder / (run.replace(" ", "-") or "alone")
        if run not in self._workspaces:
            folder.mkdir(exist_ok=True)
            (folder / "case.yaml").touch()
            (folder / "run.sh").write_text(f"{run} --config case.yaml\n" if run else "", encoding="utf-8")
            self._workspaces[run] = Workspace(folder, Settings())
        return display_path(folder / "case.yaml"), self._workspaces[run]

    def holding(self, text: str, release: str, run: str) -> list[Limit]:
        """The limits that hold for a file as a release reads it, also those that this release does not check."""
        path, workspace = self._workspace(run)
        (document,) = documents(path, Text(text))
        found: list[Limit] = []
        for subject in self._module.adopt(document) if run else self._module.recognise(document):
            (views, *_) = self._module.alternatives(subject, workspace.surroundings, release)
            for view in (view for view in views if isinstance(view, ReadFile)):
                converted = getattr(view, "converted", view)
                found += [limit for limit in self.limits if limit.holds(converted if limit.converted else view)]
        return found

    def refusing(self, text: str, release: str, run: str) -> list[Limit]:
        """The limits that hold for a file and that the release checks."""
        return [limit for limit in self.holding(text, release, run) if limit.applies_to(release, self.order)]

    def settings(self, values: Values, limit: Limit) -> Values:
        """Settings with the other settings that they need."""
        origin = ORIGINS[self.program]
        given = {name: value for name, value in values.items() if value is not ABSENT}
        needed = [self._name, *given, *(f"{name}={flow(value)}" for name, value in given.items())]
        return {name: value for key in needed for name, value in origin.needs.get(key, {}).items()} | dict(values)

    def case(self, limit: Limit) -> Found | None:
        """The case with the fewest findings of other rules; None if there is no case."""
        held = (self._held(limit, values) for values in candidates(limit, self.program))
        judged = (self._judged(found) for found in held if found)
        best: Found | None = None
        for found in itertools.islice((found for found in judged if found), ENOUGH):
            if best is None or len(found.also) < len(best.also):
                best = found
            if not best.also:
                break
        return replace(best, instead=list(dict.fromkeys(self._instead(limit, best)))) if best else None

    def _held(self, limit: Limit, values: Values) -> Found | None:
        """Settings for which only this limit is checked and holds, at both ends of its span."""
        draft = drafted(self.settings(values, limit), self.program)
        run = ORIGINS[self.program].run(limit)
        refused = [release for release in self.order if limit in self.refusing(draft.text, release, run)]
        if not refused:
            return None
        first, last = limit.since or refused[0], limit.until or refused[-1]
        if any(self.refusing(draft.text, release, run) != [limit] for release in (first, last)):
            return None
        before = self.order.index(first) - 1 if limit.since else -1
        after = self.order.index(last) + 1 if limit.until else -1
        beside = [self.order[index] for index in (before, after) if 0 <= index < len(self.order)]
        if any(limit not in self.holding(draft.text, release, run) for release in beside):
            return None
        refusing = [release for release in beside if self.refusing(draft.text, release, run)]
        twins = [Found(draft, [release], run=run) for release in refusing]
        silent = [release for release in beside if release not in refusing]
        return Found(draft, list(dict.fromkeys([first, last])), silent, twins, run=run)

    def _judged(self, found: Found) -> Found | None:
        """A case with the finding of the rule, which must be the same in all its releases."""
        targets = [f"{self.program}={release}" for release in found.refused]
        ends = [Trial(found.draft.text, (target,), run=found.run) for target in targets]
        findings = outcomes(ends)
        ours = [f for of_one in findings for f in of_one if any(says(f.message, limit) for limit in self.limits)]
        if len({(f.rule, said(f)) for f in ours}) != 1 or len(ours) != len(ends):
            return None
        expected = said(ours[0])
        if expected.line > len(found.draft.lines):
            key = key_of(found.draft.text.splitlines()[expected.line - 1])
            draft = drafted(found.draft.settings, self.program, [key])
            return self._judged(replace(found, draft=draft))
        twins = [twin for twin in map(self._judged, found.twins) if twin and twin.expected]
        if len(twins) < len(found.twins) or any(t.expected and t.expected.message == expected.message for t in twins):
            return None
        also = [f"{f.rule} {f.message}" for of_one in findings for f in of_one if f not in ours]
        return replace(found, twins=twins, rule=ours[0].rule, expected=expected, also=also)

    def _instead(self, limit: Limit, found: Found) -> Iterator[str]:
        """For each term of the condition a line with which the rule finds nothing."""
        release = found.refused[-1]
        told = ORIGINS[self.program].told
        for term in (term for term in terms_of(limit.when) if not told.issuperset(term.names)):
            lines: dict[str, Draft] = {}
            for change in differing(term, self.program):
                kept = {
                    name: value
                    for name, value in found.draft.settings.items()
                    if not any(name.startswith(f"{gone}.") for gone, to in change.items() if to is ABSENT)
                }
                keep = [key_of(line) for line in found.draft.lines if key_of(line) in ORIGINS[self.program].base]
                draft = drafted({**kept, **change}, self.program, keep)
                held = self.holding(draft.text, release, found.run)
                if limit in held or any(other.applies_to(release, self.order) for other in held):
                    continue
                changed = _changed(found.draft, draft)
                if len(changed) == 1:
                    lines.setdefault(changed[0], draft)
            tried = list(itertools.islice(lines.items(), 8))
            target = (f"{self.program}={release}",)
            findings = outcomes([Trial(draft.text, target, run=found.run) for _, draft in tried])
            silent = [
                (line, len(of_one))
                for (line, _), of_one in zip(tried, findings, strict=True)
                if all(finding.rule != found.rule for finding in of_one)
            ]
            if silent:
                yield min(silent, key=itemgetter(1))[0]


def _changed(before: Draft, after: Draft) -> list[str]:
    """The different lines, as a case writes them."""
    old, new = ({key_of(line): line for line in draft.text.splitlines()} for draft in (before, after))
    return [new.get(key, f"no {key}") for key in {**old, **new} if old.get(key) != new.get(key)]


def says(text: str, limit: Limit) -> bool:
    """A message is that of a limit, for one of its settings."""
    return re.match(re.escape(limit.message).replace(r"\{\}", r"[\w.]+"), text) is not None


def by_hand(sections: Iterable[Section]) -> set[Limit]:
    """The limits that have a handwritten case."""
    done: set[Limit] = set()
    cases = [case for path in sorted(FIXTURES.glob("*/limits-by-hand.yaml")) for case in read_cases(path)]
    for case in cases:
        trial = next(case.trials())
        program, _, release = trial.targets[0].partition("=")
        messages = [expected.message for expected in trial.expected]
        for section in sections:
            if section.program == program:
                holding = section.refusing(trial.text, release, trial.run)
                done.update(limit for limit in holding if any(says(text, limit) for text in messages))
    return done


@cache
def _written(rule: str) -> str:
    """The cases of a rule before this run."""
    path = FIXTURES / rule / "limits.yaml"
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def main(programs: Sequence[str]) -> int:
    """Write the files of these programs; list the limits without a case, and the new cases that other rules find."""
    with tempfile.TemporaryDirectory() as folder:
        sections = [Section(program, name, Path(folder)) for program in programs for name in limits_of(program)]
        done = by_hand(sections)
        files: dict[str, list[str]] = {}
        missing = 0
        for section in sections:
            base = "".join(f"{key}: {flow(value)}\n" for key, value in ORIGINS[section.program].base.items())
            for limit in (limit for limit in section.limits if limit not in done):
                where = f"{section.program} {limit.since}..{limit.until}: {limit.when}"
                found = section.case(limit)
                if found is None or not found.instead:
                    missing += 1
                    print(f"{where}\n    has no case, write it by hand")
                    continue
                files.setdefault(found.rule, [HEAD.format(code=found.rule) + base]).append(
                    found.document(section.program)
                )
                if found.also and found.document(section.program) not in _written(found.rule):
                    print(f"{where}\n    is also found: {'; '.join(dict.fromkeys(found.also))}")
    for rule, parts in files.items():
        (FIXTURES / rule / "limits.yaml").write_text("".join(parts), encoding="utf-8", newline="\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(ORIGINS)))
