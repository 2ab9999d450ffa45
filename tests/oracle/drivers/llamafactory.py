"""LLaMA-Factory: the reading of `llamafactory-cli train FILE`, `get_train_args`, and the checks of quantization.

Asked as one of two processes; what is refused there again as the only process, and with DeepSpeed on another ZeRO stage
where the JSON is not there: where the answers differ, the file does not tell. Optional packages count as installed, and
bf16 and tf32 as supported. transformers reads the DeepSpeed JSON only where that package is, so it is held back.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oracle.asking import CannotTell, Driver, Environment, Json, Progress, Refused, Settings, Sound, Table, module
from oracle.stand_ins import stand_in

TRANSFORMERS = {"0.9.1": "4.45.2", "0.9.2": "4.49.0", "0.9.3": "4.52.4", "0.9.4": "4.57.1", "0.9.5": "4.57.1"}
"""What each release is run with, as in the facts."""
HEAVY = (
    "av fastapi gradio hf-transfer librosa matplotlib modelscope scipy sse-starlette torchaudio torchdata torchvision "
    "uvicorn"
).split()

BASE: Settings = {
    "model_name_or_path": "acme/tiny-lm",
    "stage": "sft",
    "do_train": True,
    "finetuning_type": "lora",
    "lora_target": "all",
    "dataset": "identity",
    "template": "llama3",
    "cutoff_len": 2048,
    "output_dir": "saves/tiny",
    "logging_steps": 10,
    "save_steps": 500,
    "per_device_train_batch_size": 1,
    "gradient_accumulation_steps": 8,
    "learning_rate": 0.0001,
    "num_train_epochs": 3.0,
    "lr_scheduler_type": "cosine",
    "warmup_ratio": 0.1,
    "bf16": True,
}
SOUND: Mapping[str, Settings] = {
    "lora": {},
    "full": {"finetuning_type": "full", "lora_target": None},
    "freeze": {"finetuning_type": "freeze", "lora_target": None, "freeze_trainable_layers": 2},
    "qlora": {"quantization_bit": 4, "val_size": 0.1, "eval_strategy": "steps", "eval_steps": 500},
    "pretrain": {"stage": "pt", "template": None},
    "reward": {"stage": "rm"},
    "dpo": {"stage": "dpo", "pref_beta": 0.1, "pref_loss": "sigmoid"},
    "kto": {"stage": "kto", "pref_beta": 0.1},
    "ppo": {"stage": "ppo", "reward_model": "saves/judge", "max_new_tokens": 256},
    "predict": {
        "do_train": False,
        "do_predict": True,
        "predict_with_generate": True,
        "eval_dataset": "identity",
        "dataset": None,
    },
    "deepspeed": {"finetuning_type": "full", "lora_target": None, "deepspeed": "ds_z3.json"},
    "fsdp": {"fsdp": "full_shard auto_wrap", "fsdp_transformer_layer_cls_to_wrap": "LlamaDecoderLayer"},
    "streaming": {"streaming": True, "max_steps": 100},
    "galore": {"finetuning_type": "full", "lora_target": None, "use_galore": True, "galore_layerwise": False},
}
ZERO3 = {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 3}}


class Asked(Driver):
    """LLaMA-Factory."""

    program = "llamafactory"
    samples: Mapping[str, Sequence[Json]] = {
        "template": ["llama3", "qwen", "default"],
        "lora_target": ["all", "q_proj,v_proj"],
        "quantization_method": ["bnb", "bitsandbytes", "hqq", "eetq"],
        "deepspeed": ["ds_z3.json"],
        "rope_scaling": ["linear", "dynamic", "yarn"],
        "flash_attn": ["auto", "fa2", "sdpa", "disabled"],
        "report_to": ["none", "tensorboard", ["wandb"]],
        "pref_loss": ["sigmoid", "ipo", "orpo", "simpo", "hinge"],
        "infer_backend": ["huggingface", "vllm", "sglang"],
        "reward_model_type": ["lora", "full", "api"],
        "mix_strategy": ["concat", "interleave_under", "interleave_over"],
        "badam_mode": ["layer", "ratio"],
        "fsdp": ["full_shard", "shard_grad_op auto_wrap"],
        "optim": ["adamw_torch", "adafactor", "adamw_8bit"],
    }

    def release_of(self, program: str, release: str) -> str:
        """The transformers that the release is run with."""
        return TRANSFORMERS[release]

    def environment(self, release: str) -> Environment:
        """The release and its transformers; pictures, sound and the web page are left out."""
        pins = ("torch==2.13.0", f"transformers=={TRANSFORMERS[release]}", "pydantic>=2.10", "numpy<3")
        return Environment("3.11", (f"llamafactory=={release}",), pins, tuple(HEAVY))

    def sound(self, release: str) -> Sequence[Sound]:
        """The stages and methods of training."""
        made = []
        for name, settings in SOUND.items():
            whole = {key: value for key, value in {**BASE, **settings}.items() if value is not None}
            made.append(Sound(name, "train.yaml", whole, {"ds_z3.json": json.dumps(ZERO3)}))
        return made

    def tables(self, release: str) -> Sequence[Table]:
        """The arguments of LLaMA-Factory, and fewer of transformers."""
        own = ("ModelArguments", "DataArguments", "TrainingArguments", "FinetuningArguments", "GeneratingArguments")
        return [*(Table(name) for name in own * 2), Table("Seq2SeqTrainingArguments", program="transformers")]

    def load(self, release: str) -> None:
        """Import the parser, and let the machine have what is asked for."""
        os.environ.update(DISABLE_VERSION_CHECK="1", HF_HUB_OFFLINE="1", LLAMAFACTORY_VERBOSITY="ERROR")
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        stand_in(["av", "gradio", "librosa", "matplotlib", "modelscope", "scipy"])
        self._parser = module("llamafactory.hparams.parser")
        self._quantization = module("llamafactory.model.model_utils.quantization")
        arguments = module("transformers.training_args")
        logging.disable(logging.WARNING)
        self._processes = 2
        modes = arguments.ParallelMode
        arguments.TrainingArguments.parallel_mode = property(
            lambda _: modes.DISTRIBUTED if self._processes > 1 else modes.NOT_PARALLEL
        )
        simulated = {
            "is_torch_bf16_gpu_available": True,
            "is_torch_tf32_available": True,
            "check_version": None,
            "require_version": None,
            "check_dependencies": None,
        }
        for at in (self._parser, arguments, self._quantization):
            for name, value in simulated.items():
                if hasattr(at, name):
                    setattr(at, name, lambda *given, _value=value, **named: _value)

    def ask(self, folder: Path, progress: Progress) -> None:
        """Parse as one of two processes, and what is refused as others that the file may be for."""
        text = (folder / "train.yaml").read_text(encoding="utf-8")
        worlds = [(2, False)]
        if "\nfsdp:" not in f"\n{text}":
            worlds.append((1, False))
        if "\ndeepspeed:" in f"\n{text}":
            worlds.append((2, True))
        if re.search(r"^new_special_tokens_config: (?!null)", text, re.MULTILINE):
            raise CannotTell("names a file that is not there")
        refusals: list[BaseException] = []
        for processes, other_stage in worlds:
            try:
                self._parse(folder, processes, other_stage)
            except (CannotTell, ImportError):
                raise
            except (Exception, SystemExit) as refusal:
                refusals.append(refusal)
            else:
                if refusals:
                    raise CannotTell(f"rests on the launch: {refusals[0]}")
                return
        raise refusals[0]

    def _parse(self, folder: Path, processes: int, other_stage: bool) -> None:
        self._processes = processes
        sys.argv = ["llamafactory-cli", "train.yaml"]
        settings = self._parser.read_args(None) if hasattr(self._parser, "read_args") else self._read(folder)
        named = settings.get("deepspeed") if isinstance(settings, dict) else None
        if named and not isinstance(named, (str, dict)):
            raise CannotTell("transformers reads deepspeed only where that package is")
        zero3 = self._is_zero3(folder, named, other_stage)
        self._parser.is_deepspeed_zero3_enabled = lambda: zero3
        self._quantization.is_deepspeed_zero3_enabled = lambda: zero3
        self._quantization.is_fsdp_enabled = lambda: False
        parse = self._parser._parse_train_args
        if named:
            settings = {name: value for name, value in settings.items() if name != "deepspeed"}

            def with_deepspeed(*given: Any, **others: Any) -> Any:
                parsed = parse(*given, **others)
                parsed[2].deepspeed = named
                return parsed

            self._parser._parse_train_args = with_deepspeed
        try:
            model, *_ = self._parser.get_train_args(settings)
        finally:
            self._parser._parse_train_args = parse
        if model.quantization_bit is not None:
            self._quantize(model)

    def _read(self, folder: Path) -> Any:
        """As the parser of dataclasses reads a file, before LLaMA-Factory read files itself."""
        yaml = module("yaml")
        return yaml.safe_load((folder / "train.yaml").read_text(encoding="utf-8"))

    def _is_zero3(self, folder: Path, named: object, other_stage: bool) -> bool:
        if isinstance(named, dict):
            section = named.get("zero_optimization")
            return isinstance(section, dict) and section.get("stage") == 3
        if isinstance(named, str) and (folder / named).is_file():
            return json.loads((folder / named).read_text(encoding="utf-8"))["zero_optimization"]["stage"] == 3  # type: ignore[no-any-return]
        return other_stage

    def _quantize(self, model: Any) -> None:
        """The checks of a model's quantization; whatever else is wrong there is about the model."""

        class Config:
            """A model's configuration that is not quantized."""

        configure = self._quantization.configure_quantization
        others: tuple[Any, ...] = (model, True, {}) if configure.__code__.co_argcount == 5 else (model, {})
        try:
            configure(Config(), None, *others)
        except ValueError as refusal:
            raise Refused(f"at model load: {refusal}") from refusal
        except Exception:
            return
