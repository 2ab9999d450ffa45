"""How each release of LLaMA-Factory treats a configuration, apart from the names of its arguments.

Source: LLaMA-Factory's hparams/ (parser.py and the dataclasses), model/model_utils/quantization.py and train/tuner.py;
each known release read, 0.9.5 run with transformers 4.57.1 on two processes. Names are in llamafactory.json, settings
that exclude or need each other in limits.txt. Of 0.7.1 to 0.8.3 the names alone were read (llamafactory-older.json):
nothing else in this module, and no limit, is meant for these.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from trainlint.findings import Stage
from trainlint.programs.transformers.facts import TABLES, ArgumentFacts, argument_fields
from trainlint.records import dataclass, replace
from trainlint.releases import behaviour, names_within, within, words_within
from trainlint.training.declarations import Spec, declarations
from trainlint.training.limits import Limit, limits_of_release

GOES_WITH: Mapping[str, str] = {
    "0.7.1": "4.40.2",
    "0.8.0": "4.41.2",
    "0.8.1": "4.41.2",
    "0.8.2": "4.41.2",
    "0.8.3": "4.42.4",
    "0.9.0": "4.44.2",
    "0.9.1": "4.45.2",
    "0.9.2": "4.49.0",
    "0.9.3": "4.52.4",
    "0.9.4": "4.57.1",
    "0.9.5": "4.57.1",
}
"""The transformers of each release where nothing else says which.

It is the newest known one that the release allows (`requires:transformers`); for 0.9.5, which allows 4.55 to 5.6, the
one that it was run with; for those before 0.9, which name no newest, the one of their day.
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
"""The dataclasses that each command of llamafactory-cli fills."""

STAGES = ("pt", "sft", "rm", "ppo", "dpo", "kto")

FINETUNING_TYPES: Mapping[str, tuple[str, ...]] = {"..": ("lora", "freeze", "full"), "0.9.4..": ("oft",)}
"""By span: the methods of training."""

QUANTIZATION_BITS: Mapping[str, tuple[int, ...]] = {
    "bnb": (4, 8),
    "bitsandbytes": (4, 8),
    "hqq": (1, 2, 3, 4, 5, 6, 8),
    "eetq": (8,),
}
"""The bits that each method can quantize to when the model is loaded."""

BNB: Mapping[str, str] = {"bitsandbytes": "..0.9.2", "bnb": "0.9.3.."}
"""The name of bitsandbytes, with the releases that use it."""

LOADED_WITH_OMEGACONF = "0.9.4.."
"""The releases in which read_args of hparams/parser.py hands the file to OmegaConf.load; before, to yaml.safe_load."""

PREQUANTIZED = ("gptq", "awq", "aqlm", "-int4", "-int8", "-4bit", "-8bit", "bnb", "fp8", "mxfp4", "gpt-oss")
"""Parts of names of models that are already quantized, so that quantization_bit is not used."""

PPO_REPORTERS: Mapping[str, tuple[str, ...]] = {"..": ("wandb", "tensorboard"), "0.9.5..": ("trackio", "none")}

PIXELS: Mapping[str, int] = {
    "image_max_pixels": 768 * 768,
    "image_min_pixels": 32 * 32,
    "video_max_pixels": 256 * 256,
    "video_min_pixels": 16 * 16,
}
"""Defaults that the release computes."""

PIXELS_COMPARED: Mapping[str, str] = {"image": "0.9.3..", "video": "0.9.3.."}
"""Media whose largest and smallest number of pixels are compared, with the releases that do so."""

COMPARED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "..": (
        ("val_size", "!dataset?"),
        ("val_size", "eval_dataset?"),
        ("val_size", "streaming"),
        ("val_size", "evaluates !eval_dataset?"),
        ("dpo_label_smoothing", "stage=dpo pref_loss!=sigmoid"),
    ),
    "0.9.4..": (("val_size", "predict_with_generate !eval_dataset?"),),
}
"""By span: settings that are compared with a number when the arguments are read, with the condition for that."""

DATASET_FORMATS: Mapping[str, tuple[str, ...]] = {"0.9.2..": ("alpaca", "sharegpt"), "0.9.4..": ("openai",)}
"""By span: the formats of a dataset; before, every other word is read as sharegpt."""

DATASET_SOURCES = ("hf_hub_url", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name", "file_name")
"""Keys of a dataset's definition, one of which says where the data are."""

DATASET_COLUMNS = (
    "prompt",
    "query",
    "response",
    "history",
    "messages",
    "system",
    "tools",
    "images",
    "videos",
    "audios",
    "chosen",
    "rejected",
    "kto_tag",
)
"""The columns that a definition may name, in some release."""

DATASET_TAGS = (
    "role_tag",
    "content_tag",
    "user_tag",
    "assistant_tag",
    "observation_tag",
    "function_tag",
    "system_tag",
)

RANKED_STAGES = ("rm", "dpo")
"""Stages that train on pairs of answers."""

SPLIT_TEXTS: Mapping[str, str] = {
    "adapter_name_or_path": "..",
    "add_tokens": "0.9.3..",
    "add_special_tokens": "0.9.3..",
}
"""Arguments that are split at commas, with the releases that do so: a list or a number ends the run."""

SUMMED = ("use_galore", "use_apollo", "use_badam")
"""Switches that are added up: text ends the run."""

MODEL_BITS = ("ref_model_quantization_bit", "reward_model_quantization_bit")


@dataclass(frozen=True, kw_only=True)
class LlamaFactoryFacts:
    """What one known release of LLaMA-Factory accepts."""

    release: str
    tables: Mapping[str, Mapping[str, Spec]]
    """The release's own dataclasses."""
    finetuning_types: tuple[str, ...]
    bnb: str
    ppo_reporters: tuple[str, ...]
    split_texts: tuple[str, ...]
    compared: tuple[tuple[str, str], ...]
    """Settings that must be numbers, and when."""
    pixels_compared: tuple[str, ...]
    """Media whose numbers of pixels are compared."""
    dataset_formats: tuple[str, ...]
    """The formats of a dataset; none where every word is taken."""
    templates: frozenset[str]
    """The chat templates that data/template.py registers."""
    limits: Mapping[str, tuple[Limit, ...]]
    """The limits by section of limits.txt."""
    loads_with_omegaconf: bool
    """OmegaConf reads the file, not PyYAML: `1e-4` is a number, and a key that is written twice is refused."""


@cache
def facts_of(release: str) -> LlamaFactoryFacts:
    """The facts of one known release."""
    known = declarations("llamafactory")

    return LlamaFactoryFacts(
        release=release,
        tables={name: known.fields(name, release) for name in (*TRAINING_TABLES, "EvaluationArguments")},
        finetuning_types=words_within(FINETUNING_TYPES, release),
        bnb=names_within(BNB, release)[0],
        ppo_reporters=words_within(PPO_REPORTERS, release),
        dataset_formats=words_within(DATASET_FORMATS, release),
        compared=words_within(COMPARED, release),
        pixels_compared=names_within(PIXELS_COMPARED, release),
        split_texts=names_within(SPLIT_TEXTS, release),
        templates=known.keys("templates", release),
        limits={} if known.is_only_read(release) else limits_of_release("llamafactory", release, known.names),
        loads_with_omegaconf=within(release, LOADED_WITH_OMEGACONF),
    )


def argument_facts(release: str, transformers: str, keys: frozenset[str]) -> ArgumentFacts:
    """The training arguments of one release with one of transformers.

    `keys` are those of the file. Unknown keys, and text for switches that are added up and for numbers that are
    compared, are left to LLaMA-Factory's own rules.
    """
    fields = argument_fields(declarations("transformers"), TABLES, transformers)
    own: dict[str, Spec] = {}
    for table in TRAINING_TABLES:
        own.update(declarations("llamafactory").fields(table, release))
    fields.update(own)
    compared = names_within(PIXELS_COMPARED, release)
    for name in (*SUMMED, *(name for name in PIXELS if name.partition("_")[0] in compared)):
        if name in fields:
            fields[name] = replace(fields[name], types=())
    return ArgumentFacts(
        program="llamafactory",
        version=release,
        release=transformers,
        fields=fields,
        tables={"llamafactory": TRAINING_TABLES, "transformers": TABLES},
        others=keys,
        lenient=frozenset(own),
        trainer_stage=Stage.PREPARE,
        **behaviour(ArgumentFacts, transformers),
    )


DEMO_DATASETS = frozenset(
    "identity alpaca_en_demo alpaca_zh_demo c4_demo dpo_en_demo dpo_zh_demo glaive_toolcall_en_demo"
    " glaive_toolcall_zh_demo kto_en_demo mllm_demo mllm_video_demo rlhf_v wiki_demo".split()
)
"""Datasets of data/dataset_info.json that the examples of LLaMA-Factory use."""
