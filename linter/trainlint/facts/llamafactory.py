"""What LLaMA-Factory makes of a configuration, release by release, beyond the names of its arguments.

Source: LLaMA-Factory's hparams/ (parser.py and the dataclasses), model/model_utils/quantization.py and train/tuner.py;
each known release read, 0.9.5 run over transformers 4.57.1 on two processes. The names are in llamafactory.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from trainlint.conditions import Limit
from trainlint.facts.releases import Field, releases
from trainlint.facts.transformers import TABLES, ArgumentFacts, argument_fields

GOES_WITH: Mapping[str, str] = {
    "0.9.0": "4.44.2",
    "0.9.1": "4.45.2",
    "0.9.2": "4.49.0",
    "0.9.3": "4.52.4",
    "0.9.4": "4.57.1",
    "0.9.5": "4.57.1",
}
"""The known transformers below each release where nothing else says which.

It is the newest that the release allows (`requires:transformers`), for 0.9.5, which allows 4.55 to 5.6, the one that it
was run over.
"""

TRAINING_TABLES = ("ModelArguments", "DataArguments", "TrainingArguments", "FinetuningArguments", "GeneratingArguments")
INFERENCE_TABLES = ("ModelArguments", "DataArguments", "FinetuningArguments", "GeneratingArguments")
EVALUATION_TABLES = ("ModelArguments", "DataArguments", "EvaluationArguments", "FinetuningArguments")

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "train": TRAINING_TABLES,
    "export": INFERENCE_TABLES,
    "chat": INFERENCE_TABLES,
    "api": INFERENCE_TABLES,
    "webchat": INFERENCE_TABLES,
    "eval": EVALUATION_TABLES,
}
"""The dataclasses that each command of llamafactory-cli fills in."""

STAGES = ("pt", "sft", "rm", "ppo", "dpo", "kto")

FINETUNING_TYPES: Mapping[str, tuple[str, ...]] = {"": ("lora", "freeze", "full"), "0.9.4": ("oft",)}
"""With the release each is from."""

QUANTIZATION_BITS: Mapping[str, tuple[int, ...]] = {
    "bnb": (4, 8),
    "bitsandbytes": (4, 8),
    "hqq": (1, 2, 3, 4, 5, 6, 8),
    "eetq": (8,),
}
"""The bits that each method quantizes to on the fly."""

BNB: Mapping[str, str] = {"": "bitsandbytes", "0.9.3": "bnb"}
"""How bitsandbytes is called, with the release each name is from."""

PREQUANTIZED = ("gptq", "awq", "aqlm", "-int4", "-int8", "-4bit", "-8bit", "bnb", "fp8", "mxfp4", "gpt-oss")
"""Parts of names of models that come quantized, so that quantization_bit does not count."""

PPO_REPORTERS: Mapping[str, tuple[str, ...]] = {"": ("wandb", "tensorboard"), "0.9.5": ("trackio", "none")}

PIXELS: Mapping[str, int] = {
    "image_max_pixels": 768 * 768,
    "image_min_pixels": 32 * 32,
    "video_max_pixels": 256 * 256,
    "video_min_pixels": 16 * 16,
}
"""Defaults that the release computes."""

SPLIT_TEXTS: Mapping[str, str] = {"adapter_name_or_path": "", "add_tokens": "0.9.3", "add_special_tokens": "0.9.3"}
"""Texts that are split at commas, so that a list or a number ends the run, with the release each is from."""

SUMMED = ("use_galore", "use_apollo", "use_badam")
"""Switches that are added up, so that a text ends the run."""

MODEL_BITS = ("ref_model_quantization_bit", "reward_model_quantization_bit")

_KEEP_ONE = "keep one of them"

DATA = (
    Limit("val_size", "!dataset? val_size>1e-6", "val_size needs a dataset", "name a dataset, or remove val_size"),
    Limit(
        "val_size",
        "eval_dataset? val_size>1e-6",
        "val_size and eval_dataset exclude each other",
        "keep one of them",
    ),
    Limit(
        "interleave_probs",
        "interleave_probs? mix_strategy=concat",
        "interleave_probs needs an interleaving mix_strategy",
        "set mix_strategy: interleave_under or interleave_over",
    ),
    Limit(
        "val_size",
        "streaming val_size>1e-6 val_size<1",
        "streamed data needs a val_size in examples",
        "write a whole number",
    ),
    Limit("max_samples", "streaming max_samples?", "streamed data takes no max_samples", "remove max_samples"),
    Limit(
        "mask_history", "mask_history train_on_prompt", "mask_history and train_on_prompt exclude each other", _KEEP_ONE
    ),
    Limit(
        "export_quantization_bit",
        "export_quantization_bit? !export_quantization_dataset?",
        "export_quantization_bit needs export_quantization_dataset",
    ),
    Limit(
        "image_max_pixels|image_min_pixels",
        "image_pixels_swapped",
        "image_max_pixels is below image_min_pixels",
        since="0.9.3",
    ),
    Limit(
        "video_max_pixels|video_min_pixels",
        "video_pixels_swapped",
        "video_max_pixels is below video_min_pixels",
        since="0.9.3",
    ),
    Limit(
        "split_special_tokens",
        "split_special_tokens use_fast_tokenizer",
        "split_special_tokens needs use_fast_tokenizer: false",
        until="0.9.4",
    ),
)

METHOD = (
    Limit("stage", "stage=ppo !reward_model?", "PPO needs a reward_model", "name one in reward_model"),
    Limit(
        "reward_model_type|finetuning_type",
        "stage=ppo reward_model_type=lora finetuning_type!=lora",
        "a LoRA reward model needs finetuning_type: lora",
        "set reward_model_type: full",
    ),
    Limit(
        "reward_model_type",
        "stage=ppo reward_model_type=oft finetuning_type!=oft",
        "an OFT reward model needs finetuning_type: oft",
        since="0.9.4",
    ),
    Limit(
        "dpo_label_smoothing",
        "stage=dpo pref_loss!=sigmoid dpo_label_smoothing>1e-6",
        "dpo_label_smoothing needs pref_loss: sigmoid",
    ),
    Limit("use_llama_pro", "use_llama_pro finetuning_type=full", "use_llama_pro does not do full training"),
    Limit(
        "use_galore|use_apollo|use_badam",
        "finetuning_type=lora use_galore|use_apollo|use_badam",
        "GaLore, APOLLO and BAdam do not train LoRA",
        "set finetuning_type: full",
    ),
    Limit(
        "use_galore|use_apollo|use_badam",
        "use_galore|use_apollo|use_badam#>1",
        "GaLore, APOLLO and BAdam exclude each other",
        _KEEP_ONE,
    ),
    Limit("pissa_init", "pissa_init stage=ppo,kto", "PiSSA does not do this stage", "remove pissa_init"),
    Limit(
        "pissa_init",
        "pissa_init stage=dpo pref_loss!=orpo,simpo",
        "PiSSA does not go with a reference model",
        "remove pissa_init",
    ),
    Limit("loraplus_lr_ratio", "finetuning_type!=lora loraplus_lr_ratio?", "loraplus_lr_ratio is for LoRA alone"),
    *(
        Limit(name, f"finetuning_type!=lora {name}", f"{name} is for LoRA alone", f"remove {name}")
        for name in ("use_rslora", "use_dora", "pissa_init")
    ),
    Limit(
        "train_mm_proj_only",
        "train_mm_proj_only finetuning_type!=full",
        "train_mm_proj_only needs finetuning_type: full",
        until="0.9.1",
    ),
    Limit(
        "adapter_name_or_path",
        "adapter_name_or_path? finetuning_type!=lora",
        "an adapter is for LoRA alone",
        "set finetuning_type: lora, or remove adapter_name_or_path",
    ),
)

QUANTIZATION = (
    Limit(
        "quantization_bit",
        "quantization_bit? finetuning_type!=lora",
        "a quantized model is trained with LoRA alone",
        "set finetuning_type: lora, or remove quantization_bit",
        until="0.9.3",
    ),
    Limit(
        "quantization_bit",
        "quantization_bit? finetuning_type!=lora,oft",
        "a quantized model is trained with LoRA or OFT alone",
        "set finetuning_type: lora, or remove quantization_bit",
        since="0.9.4",
    ),
    Limit("pissa_init", "quantization_bit? pissa_init", "PiSSA does not start from a quantized model"),
    Limit("resize_vocab", "quantization_bit? resize_vocab", "the embeddings of a quantized model cannot be resized"),
    Limit(
        "create_new_adapter",
        "quantization_bit? adapter_name_or_path? create_new_adapter",
        "no new adapter is put upon the adapter of a quantized model",
    ),
    Limit(
        "adapter_name_or_path",
        "quantization_bit? adapter_name_or_path~,",
        "a quantized model takes one adapter",
        "merge them first",
    ),
)

QUANTIZED_TRAINING = (
    Limit(
        "quantization_device_map",
        "do_train quantization_device_map=auto",
        "quantization_device_map does not go with training",
        "remove it",
    ),
    Limit("fp8", "fp8 quantization_bit?", "fp8 does not go with quantization_bit", _KEEP_ONE, since="0.9.4"),
)

TRAINING = (
    Limit("stage", "stage!=sft predict_with_generate", "predict_with_generate needs stage: sft"),
    Limit("neat_packing", "stage!=sft neat_packing", "neat_packing needs stage: sft"),
    Limit(
        "train_on_prompt|mask_history",
        "stage!=sft train_on_prompt|mask_history",
        "train_on_prompt and mask_history need stage: sft",
    ),
    Limit(
        "do_predict",
        "stage=sft do_predict !predict_with_generate",
        "do_predict needs predict_with_generate: true",
        "set predict_with_generate: true",
    ),
    Limit(
        "load_best_model_at_end",
        "stage=rm,ppo load_best_model_at_end",
        "this stage does not load the best model",
        "remove load_best_model_at_end",
    ),
    Limit("stage", "stage=ppo !do_train", "PPO trains and does nothing else", "set do_train: true"),
    Limit("shift_attn", "stage=ppo shift_attn", "PPO does not go with shift_attn"),
    Limit(
        "use_unsloth",
        "stage=ppo reward_model_type=lora use_unsloth",
        "unsloth does not go with a LoRA reward model",
    ),
    Limit(
        "use_kt",
        "stage=ppo reward_model_type=lora use_kt",
        "KTransformers does not go with a LoRA reward model",
        since="0.9.4",
    ),
    Limit("streaming", "streaming max_steps=-1", "streamed data needs max_steps", "set max_steps"),
    Limit("do_train", "do_train !dataset?", "there is no dataset to train on", "name one in dataset"),
    Limit(
        "do_eval|do_predict|eval_strategy",
        "evaluates !eval_dataset? val_size<1e-6",
        "there is nothing to evaluate on",
        "set val_size or eval_dataset",
    ),
    Limit(
        "predict_with_generate",
        "predict_with_generate !eval_dataset? val_size<1e-6",
        "there is nothing to predict for",
        "set val_size or eval_dataset",
        since="0.9.4",
    ),
    Limit(
        "predict_with_generate",
        "predict_with_generate !eval_dataset?",
        "predict_with_generate needs eval_dataset",
        until="0.9.3",
    ),
    Limit(
        "compute_accuracy",
        "predict_with_generate compute_accuracy",
        "compute_accuracy and predict_with_generate exclude each other",
        _KEEP_ONE,
    ),
    Limit(
        "infer_backend",
        "infer_backend=vllm",
        "training does not run on vLLM",
        "remove infer_backend",
        until="0.9.2",
    ),
    Limit(
        "infer_backend",
        "infer_backend!=huggingface",
        "training runs on the huggingface backend alone",
        "remove infer_backend",
        since="0.9.3",
    ),
    Limit(
        "neat_packing",
        "neat_packing transformers_4_53",
        "neat_packing does not go with transformers 4.53 and later in this release",
        "use LLaMA-Factory 0.9.5, or an older transformers",
        since="0.9.4",
        until="0.9.4",
    ),
    Limit("template", "stage!=pt !template?", "template is missing", "name the model's template", until="0.9.1"),
    Limit(
        "deepspeed",
        "deepspeed? use_galore",
        "GaLore does not work with DeepSpeed",
        until="0.9.1",
    ),
    Limit(
        "deepspeed",
        "deepspeed? use_galore|use_apollo",
        "GaLore and APOLLO do not work with DeepSpeed",
        since="0.9.2",
    ),
)

DISTRIBUTED = (
    Limit("galore_layerwise", "use_galore galore_layerwise", "layer-wise GaLore runs on one device alone"),
    Limit(
        "apollo_layerwise", "use_apollo apollo_layerwise", "layer-wise APOLLO runs on one device alone", since="0.9.2"
    ),
    Limit(
        "badam_mode",
        "use_badam badam_mode=ratio",
        "BAdam by ratio runs on one device alone",
        "set badam_mode: layer and train with ZeRO-3",
    ),
    Limit(
        "use_badam",
        "use_badam badam_mode!=ratio !zero3",
        "layer-wise BAdam on several devices needs DeepSpeed ZeRO-3",
        "name a ZeRO-3 configuration in deepspeed",
    ),
)
"""What is refused on more than one process."""

ZERO3 = (
    Limit("predict_with_generate", "predict_with_generate", "predict_with_generate does not go with ZeRO-3"),
    Limit("pissa_init", "pissa_init", "PiSSA does not start under ZeRO-3"),
    Limit("pure_bf16", "pure_bf16", "pure_bf16 does not go with ZeRO-3", "set bf16: true instead"),
    Limit("use_unsloth", "use_unsloth", "unsloth does not go with ZeRO-3"),
    Limit("use_kt", "use_kt", "KTransformers does not go with ZeRO-3", since="0.9.4"),
)
"""What is refused under DeepSpeed ZeRO-3."""


@dataclass(frozen=True, kw_only=True)
class LlamaFactoryFacts:
    """What one known release of LLaMA-Factory accepts."""

    release: str
    tables: Mapping[str, Mapping[str, Field]]
    """The release's own dataclasses."""
    finetuning_types: tuple[str, ...]
    bnb: str
    ppo_reporters: tuple[str, ...]
    split_texts: tuple[str, ...]
    data: tuple[Limit, ...]
    method: tuple[Limit, ...]
    quantization: tuple[Limit, ...]
    quantized_training: tuple[Limit, ...]
    training: tuple[Limit, ...]
    distributed: tuple[Limit, ...]
    zero3: tuple[Limit, ...]


@cache
def facts_of(release: str) -> LlamaFactoryFacts:
    """The facts of one known release."""
    known = releases("llamafactory")
    order = known.names

    def since(first: str) -> bool:
        return not first or order.index(first) <= order.index(release)

    def gathered(table: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        return tuple(word for first, words in table.items() if since(first) for word in words)

    def limits(table: tuple[Limit, ...]) -> tuple[Limit, ...]:
        return tuple(limit for limit in table if limit.in_force(release, order))

    return LlamaFactoryFacts(
        release=release,
        tables={name: known.fields(name, release) for name in (*TRAINING_TABLES, "EvaluationArguments")},
        finetuning_types=gathered(FINETUNING_TYPES),
        bnb=[name for first, name in BNB.items() if since(first)][-1],
        ppo_reporters=gathered(PPO_REPORTERS),
        split_texts=tuple(name for name, first in SPLIT_TEXTS.items() if since(first)),
        data=limits(DATA),
        method=limits(METHOD),
        quantization=limits(QUANTIZATION),
        quantized_training=limits(QUANTIZED_TRAINING),
        training=limits(TRAINING),
        distributed=limits(DISTRIBUTED),
        zero3=limits(ZERO3),
    )


def argument_facts(release: str, transformers: str, keys: frozenset[str]) -> ArgumentFacts:
    """The training arguments of one release over one of transformers.

    `keys` are those of the file: names that no dataclass has are LLaMA-Factory's own to refuse, as are texts for
    switches that it adds up.
    """
    fields = argument_fields(releases("transformers"), TABLES, transformers)
    for table in TRAINING_TABLES:
        fields.update(releases("llamafactory").fields(table, release))
    for name in SUMMED:
        if name in fields:
            fields[name] = replace(fields[name], types=())
    return ArgumentFacts(
        program="llamafactory",
        version=release,
        release=transformers,
        fields=fields,
        tables={"llamafactory": TRAINING_TABLES, "transformers": TABLES},
        others=keys,
    )
