"""Soup: `soup train --config soup.yaml --dry-run --yes` on a machine with eight GPUs and all optional packages.

Not looked at: the data (their rows, and whether there are any), the memory that the model needs, and the graphics card.
"""

from __future__ import annotations

import io
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from oracle.asking import Driver, Environment, Json, Progress, Refused, Settings, Sound, Table, module

NOTHING = (
    "_hardware_fit_preflight _validate_preference_dataset_if_applicable _refuse_empty_train "
    "_validate_classification_dataset_if_applicable _validate_csm_dataset_if_applicable _refuse_over_judge_budget "
    "configure_mps_async_load configure_cuda_alloc_hint"
).split()
"""Functions of the command that look at the machine or at the data."""
PRESENT: Mapping[str, Mapping[str, object]] = {
    "fsdp": {"is_fsdp_available": True},
    "liger": {"check_liger_available": True},
    "flash_attn": {"check_flash_attn_available": "flash_attention_2"},
    "qat": {"is_qat_available": True},
    "fp8": {"is_torchao_float8_available": True, "fp8_training_supported": (True, ""), "is_fp8_available": True},
    "ring_attention": {"check_ring_attention_available": True},
    "topology": {"detect_topology": {"gpu_count": 8, "interconnect": "none"}},
    "gpu": {"get_compute_dtype": "bfloat16"},
}
"""What functions below `utils` answer where the packages and the GPUs are there."""

BASE: dict[str, Json] = {
    "base": "acme/tiny-lm-1b",
    "task": "sft",
    "data": {"train": "./data/train.jsonl", "format": "alpaca"},
    "training": {"epochs": 2, "lr": 0.0002, "batch_size": 4, "gradient_accumulation_steps": 4},
    "output": "./output",
}
SOUND: Mapping[str, tuple[Settings, Settings, Settings]] = {
    "sft": ({}, {}, {"lora": {"r": 16, "alpha": 32}}),
    "full": ({}, {}, {"quantization": "none", "lora": {"r": 0}}),
    "dpo": ({"task": "dpo"}, {"format": "dpo"}, {"dpo_beta": 0.1}),
    "kto": ({"task": "kto"}, {"format": "kto"}, {"kto_beta": 0.1}),
    "orpo": ({"task": "orpo"}, {"format": "dpo"}, {}),
    "simpo": ({"task": "simpo"}, {"format": "dpo"}, {}),
    "grpo": ({"task": "grpo"}, {"format": "chatml"}, {"reward_fn": "accuracy", "num_generations": 4}),
    "ppo": ({"task": "ppo"}, {"format": "chatml"}, {"reward_model": "acme/judge"}),
    "pretrain": ({"task": "pretrain"}, {"format": "plaintext"}, {"quantization": "none"}),
    "embedding": ({"task": "embedding"}, {"format": "embedding"}, {"quantization": "none"}),
    "reward": ({"task": "reward_model"}, {"format": "dpo"}, {}),
    "distill": ({"task": "distill"}, {}, {"teacher_model": "acme/teacher"}),
    "classifier": ({"task": "classifier"}, {"format": "auto"}, {"num_labels": 3, "quantization": "none"}),
    "unsloth": ({"backend": "unsloth"}, {}, {"lora": {"r": 16, "dropout": 0.0}}),
    "vision": ({"modality": "vision"}, {"format": "llava", "image_dir": "./images"}, {}),
    "asr": (
        {"task": "asr", "modality": "audio", "base": "acme/whisper-tiny"},
        {"format": "asr", "audio_dir": "./audio"},
        {"quantization": "none"},
    ),
}


def always(value: object) -> Callable[..., Any]:
    """A function that has one answer."""
    return lambda *given, **named: value


class Asked(Driver):
    """Soup."""

    program = "soup"
    reaches = "start"
    samples: Mapping[str, Sequence[Json]] = {
        "optimizer": ["adamw_torch", "adamw_8bit", "lion_32bit", "adafactor"],
        "scheduler": ["cosine", "linear", "constant"],
        "reward_fn": ["accuracy", "format", "accuracy,format", "verifiable"],
        "train": ["./data/train.jsonl", "acme/notes", ["a.jsonl", "b.jsonl"]],
        "output": ["./output"],
        "base": ["acme/tiny-lm-1b", "acme/llama-3"],
    }

    def environment(self, release: str) -> Environment:
        """The release with what it requires, which is light."""
        heavy = "accelerate bitsandbytes datasets peft torch transformers trl tensorboard".split()
        return Environment("3.11", (f"soup-cli=={release}",), (), tuple(heavy))

    def sound(self, release: str) -> Sequence[Sound]:
        """The tasks, on text, pictures and sound."""
        made = []
        for name, (top, data, training) in SOUND.items():
            whole: dict[str, Json] = {**BASE, **top}
            for section, settings in (("data", data), ("training", training)):
                own = BASE[section]
                assert isinstance(own, Mapping)
                whole[section] = {**own, **settings}
            made.append(Sound(name, "soup.yaml", whole))
        return made

    def tables(self, release: str) -> Sequence[Table]:
        """The sections of the file; most of the fields are about training."""
        training = [Table("TrainingConfig", ("training",))] * 4
        return [
            *training,
            Table("SoupConfig"),
            Table("DataConfig", ("data",)),
            Table("DataConfig", ("data",)),
            Table("LoraConfig", ("training", "lora")),
            Table("EvalConfig", ("eval",)),
            Table("EvalGateConfig", ("training", "eval_gate")),
            Table("AdviseConfig", ("advise",)),
            Table("ShipConfig", ("ship",)),
        ]

    def load(self, release: str) -> None:
        """Import the command, and give it the machine."""
        self._command = module("soup_cli.commands.train")
        self._loader = module("soup_cli.config.loader")
        self._console = module("rich.console")
        self._typer = module("typer")
        self._testing = module("typer.testing")
        command = self._command
        command.detect_device = always(("cuda", "simulated"))
        command.get_gpu_info = always({"memory_total": "n/a", "memory_total_bytes": 0, "gpu_count": 8})
        command.load_dataset = always({"train": [{}]})
        for name in NOTHING:
            if hasattr(command, name):
                setattr(command, name, always(None))
        for name, answer in (("_train_sample_count", 1), ("_unsloth_tip_applies", False)):
            if hasattr(command, name):
                setattr(command, name, always(answer))
        for name_of, answers in PRESENT.items():
            at = module(f"soup_cli.utils.{name_of}")
            for name, value in answers.items():
                if hasattr(at, name):
                    setattr(at, name, always(value))
        rings = module("soup_cli.utils.ring_attention")
        rings.validate_ring_attention_config = with_gpus(rings.validate_ring_attention_config)

    def ask(self, folder: Path, progress: Progress) -> None:
        """The command, whose words are on its console."""
        told = io.StringIO()
        console = self._console.Console(file=told, width=100_000, force_terminal=False, color_system=None)
        self._command.console = self._loader.console = console
        load = self._command.load_config

        def loaded(*given: Any, **named: Any) -> Any:
            config = load(*given, **named)
            progress.stage = "start"
            return config

        self._command.load_config = loaded
        app = self._typer.Typer()
        app.command()(self._command.train)
        ran = self._testing.CliRunner().invoke(app, ["--config", "soup.yaml", "--dry-run", "--yes"])
        if ran.exception and not isinstance(ran.exception, SystemExit):
            raise ran.exception
        if ran.exit_code:
            lines = [line.strip() for line in told.getvalue().splitlines()]
            raise Refused(" ".join(line for line in lines if line and line[0] not in "╭│╰") or ran.output)


def with_gpus(check: Callable[..., Any]) -> Callable[..., Any]:
    """A check that finds a torch with eight GPUs where it imports one."""

    def checked(*given: Any, **named: Any) -> Any:
        torch: Any = types.ModuleType("torch")
        torch.cuda = types.SimpleNamespace(is_available=always(True), device_count=always(8))
        before = sys.modules.get("torch")
        sys.modules["torch"] = torch
        try:
            return check(*given, **named)
        finally:
            del sys.modules["torch"]
            if before is not None:
                sys.modules["torch"] = before

    return checked
