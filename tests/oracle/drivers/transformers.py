"""transformers: `HfArgumentParser` on a file of training arguments, then `Trainer()` and the first step on the CPU.

The model is a tiny Llama. What needs GPUs or several processes (sharding, fp16, compiling) is not told.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oracle import machines
from oracle.asking import CannotTell, Driver, Environment, Json, Progress, Settings, Sound, Table, module
from oracle.drivers.trl import MISSING

WITH: Mapping[str, str] = {"4.46.3": "1.1.1", "4.57.1": "1.11.0", "5.24.0": "1.15.0"}
"""The accelerate that each release is run with."""
FILE = "training_args.yaml"
BASE: Settings = {
    "output_dir": "out",
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "learning_rate": 2.0e-5,
    "num_train_epochs": 3,
    "lr_scheduler_type": "cosine",
    "logging_steps": 10,
    "report_to": "none",
}
SOUND: Mapping[str, Settings] = {
    "plain": {},
    "evaluating": {"eval_strategy": "steps", "eval_steps": 50, "save_strategy": "steps", "save_steps": 50},
    "best": {
        "eval_strategy": "epoch",
        "save_strategy": "epoch",
        "load_best_model_at_end": True,
        "metric_for_best_model": "loss",
    },
    "saving-memory": {"bf16": True, "gradient_checkpointing": True, "optim": "adafactor"},
}
OWN = re.compile(r"not found in the evaluation metrics|name 'xm' is not defined")
"""Words about metrics that the script computes, or the names of the model's labels; about a TPU."""
ELSEWHERE = ("fsdp", "deepspeed", "fp16", "fp16_full_eval", "tf32", "push_to_hub", "ddp_backend")
"""Arguments that need what is not here."""
NUMBERS = [[1, 2, 3, 4, 5, 6, 7, 8]] * 32


class Asked(Driver):
    """transformers."""

    program = "transformers"
    reaches = "train"
    warnings_count = True
    imports_late = True
    samples: Mapping[str, Sequence[Json]] = {
        "optim": ["adamw_torch", "adafactor", "sgd", "adamw_torch_fused"],
        "lr_scheduler_type": ["cosine", "linear", "polynomial", "cosine_with_min_lr", "reduce_lr_on_plateau"],
        "lr_scheduler_kwargs": [{"num_cycles": 2}, {"min_lr": 1e-6}, {"power": 2.0}],
        "save_strategy": ["no", "steps", "epoch", "best"],
        "eval_strategy": ["no", "steps", "epoch"],
        "logging_strategy": ["no", "steps", "epoch"],
        "report_to": ["none", ["none"]],
        "output_dir": ["out"],
        "logging_dir": ["logs"],
        "metric_for_best_model": ["loss", "eval_loss"],
        "max_steps": [1, 10, -1],
        "gradient_checkpointing_kwargs": [{"use_reentrant": False}],
        "accelerator_config": [{"split_batches": False}],
    }

    def environment(self, release: str) -> Environment:
        """The release with accelerate."""
        pins = ("torch==2.13.0", *(f"accelerate=={WITH[name]}" for name in WITH if name == release))
        return Environment("3.11", (f"transformers=={release}", "accelerate", "sentencepiece"), pins)

    def sound(self, release: str) -> Sequence[Sound]:
        """Training alone, with evaluation, with the best model at the end, with little memory."""
        return [Sound(name, FILE, {**BASE, **settings}) for name, settings in SOUND.items()]

    def tables(self, release: str) -> Sequence[Table]:
        """The training arguments."""
        return [Table("TrainingArguments")]

    def load(self, release: str) -> None:
        """Import the Trainer."""
        machines.quiet()
        module("torch").set_num_threads(1)
        arguments = module("transformers.training_args")
        self._transformers = module("transformers")
        for name in ("Trainer", "HfArgumentParser", "LlamaForCausalLM", "LlamaConfig"):
            getattr(self._transformers, name)
        machines.few_workers()
        machines.half_precision(arguments, module("transformers.utils"))

    def ask(self, folder: Path, progress: Progress) -> None:
        """Parse, construct, train one step."""
        settings = module("yaml").safe_load((folder / FILE).read_text(encoding="utf-8"))
        try:
            self._train(settings, progress)
        except Exception as refusal:
            if MISSING.search(str(refusal)) or OWN.search(str(refusal)):
                raise CannotTell(str(refusal)) from refusal
            raise

    def _train(self, settings: Any, progress: Progress) -> None:
        library = self._transformers
        (arguments,) = library.HfArgumentParser(library.TrainingArguments).parse_yaml_file(FILE)
        if any(settings.get(name) for name in ELSEWHERE) or getattr(arguments, "torch_compile", False):
            raise CannotTell("needs what is not here")
        progress.stage = "start"
        sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
        model = library.LlamaForCausalLM(library.LlamaConfig(vocab_size=64, **sizes))
        rows = [{"input_ids": row, "attention_mask": [1] * len(row), "labels": row} for row in NUMBERS]
        trainer = library.Trainer(model=model, args=arguments, train_dataset=rows, eval_dataset=rows[:8])
        progress.stage = "train"
        arguments.max_steps, arguments.save_strategy = 1, "no"
        kept = [one for one in trainer.callback_handler.callbacks if type(one).__name__ == "DefaultFlowCallback"]
        trainer.callback_handler.callbacks = kept
        trainer.train()
