"""Axolotl: `load_cfg` from the YAML through the plugins to `validate_config`.

Asked as on eight GPUs of the newest kind, and what is refused there again as on one of an older kind: where the two
differ, the answer rests on the machine. The commands that validators run (nvidia-smi) are not run.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from oracle.asking import CannotTell, Driver, Environment, Json, Progress, Settings, Sound, Table, module
from oracle.stand_ins import stand_in

TORCH = "2.13.0"
HEAVY = (
    "adlfs antlr4-python3-runtime bitsandbytes comet-ml evaluate fastcore fla-core flash-linear-attention gcsfs gradio "
    "hf-transfer immutabledict kernels langdetect liger-kernel llmcompressor lm-eval mistral-common mlflow modal numba "
    "ocifs openenv-core optimum posthog ray s3fs scipy tensorboard torchao torchaudio torchvision trackio wandb "
    "xformers"
).split()
IMPORTED = (
    "adlfs apollo_torch axolotl_contribs_lgpl bitsandbytes came_pytorch comet_ml cut_cross_entropy deepspeed "
    "densemixer dion evaluate fla galore_torch gcsfs gradio grokfast immutabledict kernels langdetect liger_kernel "
    "llmcompressor lm_eval lomo_optim mamba_ssm mistral_common mlflow modal numba ocifs openenv optimi optimum posthog "
    "quack ray ring_flash_attn s3fs scattermoe schedulefree sonicmoe swanlab torch.nn.attention.varlen torchao trackio "
    "triton_kernels vllm wandb xformers"
).split()
MACHINES = ((8, "sm_90"), (1, "sm_80"))

BASE: Settings = {
    "base_model": "acme/tiny-lm",
    "datasets": [{"path": "acme/notes", "type": "alpaca"}],
    "output_dir": "./out",
    "sequence_len": 2048,
    "micro_batch_size": 1,
    "gradient_accumulation_steps": 4,
    "num_epochs": 1,
    "learning_rate": 0.0002,
    "optimizer": "adamw_torch_fused",
    "lr_scheduler": "cosine",
    "bf16": "auto",
}
LORA: Settings = {"adapter": "lora", "lora_r": 8, "lora_alpha": 16, "lora_target_linear": True}
SOUND: Mapping[str, Settings] = {
    "full": {},
    "lora": {**LORA, "lora_dropout": 0.05, "load_in_8bit": True, "optimizer": "adamw_torch"},
    "qlora": {**LORA, "adapter": "qlora", "load_in_4bit": True, "gradient_checkpointing": True},
    "fsdp": {
        "fsdp_version": 2,
        "fsdp_config": {
            "offload_params": False,
            "state_dict_type": "FULL_STATE_DICT",
            "auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "transformer_layer_cls_to_wrap": "LlamaDecoderLayer",
            "reshard_after_forward": True,
        },
    },
    "deepspeed": {"deepspeed": "deepspeed_configs/zero2.json"},
    "packing": {"flash_attention": True, "sample_packing": True, "pad_to_sequence_len": True},
    "dpo": {**LORA, "rl": "dpo", "datasets": [{"path": "acme/pairs", "split": "train", "type": "chatml.intel"}]},
    "kto": {
        **LORA,
        "rl": "kto",
        "remove_unused_columns": False,
        "datasets": [{"path": "acme/pairs", "split": "train", "type": "llama3.ultra"}],
    },
    "grpo": {
        "rl": "grpo",
        "datasets": [{"path": "acme/sums", "split": "train"}],
        "trl": {"beta": 0.001, "max_completion_length": 256, "num_generations": 4, "reward_funcs": ["notes.score"]},
        "micro_batch_size": 4,
        "gradient_accumulation_steps": 8,
    },
    "pretrain": {"pretraining_dataset": [{"path": "acme/text"}], "max_steps": 100, "datasets": None},
    "chat": {
        "datasets": [{"path": "acme/chats", "type": "chat_template", "field_messages": "messages"}],
        "chat_template": "chatml",
        "val_set_size": 0.05,
        "eval_steps": 20,
        "save_steps": 20,
        "special_tokens": {"pad_token": "<pad>"},
    },
    "liger": {"plugins": ["axolotl.integrations.liger.LigerPlugin"], "liger_rope": True, "liger_rms_norm": True},
}
SECTIONS = {
    "FSDPConfig": "fsdp_config",
    "TRLConfig": "trl",
    "VllmConfig": "vllm",
    "QATConfig": "qat",
    "PTQConfig": "quantization",
    "PeftConfig": "peft",
    "SpecialTokensConfig": "special_tokens",
    "FP8Config": "fp8_config",
    "DynamicCheckpointConfig": "dynamic_checkpoint",
    "SelectiveCheckpointingConfig": "selective_checkpointing",
    "EBFTConfig": "ebft",
    "SFTDataset": "datasets.0",
}
PLUGINS = {
    "LigerArgs": "liger.LigerPlugin",
    "CutCrossEntropyArgs": "cut_cross_entropy.CutCrossEntropyPlugin",
    "KDArgs": "kd.KDPlugin",
    "GrokfastArgs": "grokfast.GrokfastPlugin",
    "SpectrumArgs": "spectrum.SpectrumPlugin",
    "LMEvalArgs": "lm_eval.LMEvalPlugin",
    "KernelsArgs": "kernels.KernelsPlugin",
    "DiffusionArgs": "diffusion.DiffusionPlugin",
    "ExpertParallelArgs": "expert_parallel.ExpertParallelPlugin",
    "SwanLabConfig": "swanlab.SwanLabPlugin",
    "DenseMixerArgs": "densemixer.DenseMixerPlugin",
    "NemoGymArgs": "nemo_gym.NemoGymPlugin",
}

NEEDED: Mapping[str, Settings] = {"SwanLabConfig": {"swanlab_project": "notes"}}
"""What a plugin needs beside its settings."""
ZERO: Mapping[str, str] = {
    f"deepspeed_configs/zero{stage}.json": json.dumps({"zero_optimization": {"stage": stage}}) for stage in (2, 3)
}


class NoCommands(subprocess.Popen):  # type: ignore[type-arg]
    """No command of the machine is run."""

    def __init__(self, args: object, *others: object, **named: object) -> None:
        raise CannotTell(f"runs {args}")


class Asked(Driver):
    """Axolotl."""

    program = "axolotl"
    samples: Mapping[str, Sequence[Json]] = {
        "adapter": ["lora", "qlora"],
        "optimizer": ["adamw_torch", "adamw_8bit", "muon", "adamw_bnb_8bit", "paged_adamw_8bit", "sgd", "adafactor"],
        "lr_scheduler": ["cosine", "linear", "constant", "rex", "one_cycle"],
        "deepspeed": ["deepspeed_configs/zero2.json", "deepspeed_configs/zero3.json"],
        "rl": ["dpo", "ipo", "kto", "orpo", "grpo", "simpo"],
        "attn_implementation": ["eager", "sdpa", "flash_attention_2", "flex_attention"],
        "chat_template": ["chatml", "llama3", "tokenizer_default"],
        "fsdp": [["full_shard", "auto_wrap"]],
        "type": ["alpaca", "chat_template", "completion"],
        "save_strategy": ["epoch", "steps", "no", "best"],
        "eval_strategy": ["epoch", "steps", "no"],
        "bf16": [True, False, "auto", "full"],
        "warmup_ratio": [0.1],
        "val_set_size": [0.1, 0, 100],
        "fsdp_version": [1, 2],
        "state_dict_type": ["FULL_STATE_DICT", "SHARDED_STATE_DICT"],
        "final_state_dict_type": ["FULL_STATE_DICT", "SHARDED_STATE_DICT"],
        "auto_wrap_policy": ["TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP"],
    }

    def environment(self, release: str) -> Environment:
        """The release with the packages that it pins, but for those that need a GPU or decide nothing."""
        package = f"axolotl=={release}"
        return Environment("3.12", (package, "pillow", "schedulefree"), (f"torch=={TORCH}",), tuple(HEAVY))

    def sound(self, release: str) -> Sequence[Sound]:
        """Full fine-tuning, adapters, sharding, preference data, pre-training, plugins."""
        made = []
        for name, settings in SOUND.items():
            merged = {**BASE, **settings}
            whole = {key: value for key, value in merged.items() if value is not None}
            made.append(Sound(name, "config.yml", whole, ZERO))
        return made

    def tables(self, release: str) -> Sequence[Table]:
        """All fields, with those of the sections and of the plugins."""
        whole = [Table("AxolotlInputConfig")] * 3
        inner = [Table(name, tuple(section.split("."))) for name, section in SECTIONS.items()]
        plugins = [
            Table(name, (), {"plugins": [f"axolotl.integrations.{plugin}"], **NEEDED.get(name, {})})
            for name, plugin in PLUGINS.items()
        ]
        return [*whole, *inner, *plugins]

    def load(self, release: str) -> None:
        """Import Axolotl; a release asks for its own version, and for torch's."""
        os.environ.update(
            AXOLOTL_DO_NOT_TRACK="1", DO_NOT_TRACK="1", HF_HUB_OFFLINE="1", AXOLOTL_LOG_LEVEL="ERROR", LOG_LEVEL="ERROR"
        )
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        stand_in(IMPORTED)
        config = module("axolotl.utils.config")
        self._config = config
        self._command = module("axolotl.cli.config")
        self._dict = module("axolotl.utils.dict")
        self._internal = module("axolotl.utils.schemas.internal")
        self._yaml = module("yaml")
        schemas = module("axolotl.utils.schemas.config")
        if hasattr(schemas, "is_fp8_available"):
            schemas.is_fp8_available = lambda: True
        with_fields = self._internal.GPUCapabilities.model_fields
        self._machines = [
            {name: value for name, value in capabilities(count, kind).items() if name in with_fields}
            for count, kind in MACHINES
        ]

    def ask(self, folder: Path, progress: Progress) -> None:
        """Read, prepare the plugins, validate for each machine."""
        subprocess.Popen = NoCommands  # type: ignore[misc]
        text = (folder / "config.yml").read_text(encoding="utf-8")
        refusals: list[Exception] = []
        for machine in self._machines:
            settings = self._dict.DictDefault(self._yaml.safe_load(text))
            try:
                self._command.prepare_plugins(settings)
                self._config.validate_config(settings, capabilities=machine, env_capabilities={"torch_version": TORCH})
            except CannotTell:
                raise
            except Exception as refusal:
                refusals.append(refusal)
            else:
                if refusals:
                    raise CannotTell(f"rests on the machine: {refusals[0]}")
                return
        raise refusals[-1]


def capabilities(count: int, kind: str) -> dict[str, Json]:
    """What Axolotl asks of the GPUs of a machine."""
    newest = kind == "sm_90"
    return {"bf16": True, "n_gpu": count, "compute_capability": kind, "fp8": newest, "tf32": True}
