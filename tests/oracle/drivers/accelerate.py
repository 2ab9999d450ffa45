"""accelerate with DeepSpeed: `accelerate launch`, `Accelerator()` and `prepare` with the whole engine.

The launcher stops where it would start workers; this process is then the first of a group. The training script is the
one of accelerate's guide: a placeholder where the JSON has an optimizer or a scheduler, else torch's AdamW and none.
DeepSpeed runs on its CPU accelerator, which is told to have every precision; compiled operations do nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oracle import machines
from oracle.asking import CannotTell, Driver, Environment, Json, Progress, Refused, Settings, Sound, Table, module
from oracle.machines import always

WITH: Mapping[str, tuple[str, str]] = {
    "1.0.1": ("0.16.9", "4.46.3"),
    "1.8.1": ("0.17.6", "4.53.3"),
    "1.15.0": ("0.19.8", "5.24.0"),
}
"""The DeepSpeed and the transformers that each release is run with."""
CONFIG = "accelerate_config.yaml"
JSON = "ds_config.json"

LAUNCH: Mapping[str, Json] = {
    "compute_environment": "LOCAL_MACHINE",
    "debug": False,
    "distributed_type": "DEEPSPEED",
    "downcast_bf16": "no",
    "machine_rank": 0,
    "main_training_function": "main",
    "num_machines": 1,
    "num_processes": 8,
    "rdzv_backend": "static",
    "same_network": True,
    "use_cpu": False,
}
INLINE: Mapping[str, Settings] = {
    "zero2": {
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 1.0,
        "offload_optimizer_device": "none",
        "offload_param_device": "none",
        "zero3_init_flag": False,
        "zero_stage": 2,
    },
    "zero3": {
        "gradient_accumulation_steps": 4,
        "offload_optimizer_device": "cpu",
        "offload_param_device": "cpu",
        "zero3_init_flag": True,
        "zero3_save_16bit_model": True,
        "zero_stage": 3,
    },
}
OPTIMIZER: Settings = {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto", "betas": [0.9, 0.999]}}
BATCHES: Settings = {
    "gradient_accumulation_steps": 1,
    "gradient_clipping": "auto",
    "steps_per_print": 100,
    "train_batch_size": "auto",
    "train_micro_batch_size_per_gpu": "auto",
    "wall_clock_breakdown": False,
}
FILES: Mapping[str, Settings] = {
    "file-zero2": {
        "bf16": {"enabled": True},
        "zero_optimization": {
            "stage": 2,
            "offload_optimizer": {"device": "cpu", "pin_memory": True},
            "allgather_partitions": True,
            "allgather_bucket_size": 200000000,
            "overlap_comm": True,
            "reduce_bucket_size": 200000000,
        },
        **BATCHES,
    },
    "file-zero3": {
        "fp16": {"enabled": True, "loss_scale": 0, "initial_scale_power": 16, "hysteresis": 2},
        "optimizer": OPTIMIZER,
        "scheduler": {
            "type": "WarmupDecayLR",
            "params": {
                "warmup_min_lr": "auto",
                "warmup_max_lr": "auto",
                "warmup_num_steps": "auto",
                "total_num_steps": "auto",
            },
        },
        "zero_optimization": {
            "stage": 3,
            "offload_param": {"device": "cpu"},
            "stage3_param_persistence_threshold": "auto",
            "stage3_prefetch_bucket_size": "auto",
            "reduce_bucket_size": "auto",
            "sub_group_size": 1000000000,
            "stage3_gather_16bit_weights_on_model_save": True,
        },
        **BATCHES,
    },
    "file-plain": {
        "zero_optimization": {"stage": 1},
        "bf16": {"enabled": "auto"},
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 2,
        "optimizer": {"type": "Adam", "params": {"lr": 0.001}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
    },
}
SECTIONS = {
    "DeepSpeedZeroConfig": "zero_optimization",
    "DeepSpeedFP16Config": "fp16",
    "DeepSpeedBF16Config": "bf16",
    "DeepSpeedZeroOffloadOptimizerConfig": "zero_optimization.offload_optimizer",
    "DeepSpeedZeroOffloadParamConfig": "zero_optimization.offload_param",
    "CSVConfig": "csv_monitor",
    "CommsLoggerConfig": "comms_logger",
    "arguments:FusedAdam": "optimizer.params",
    "arguments:WarmupDecayLR": "scheduler.params",
    "arguments:WarmupLR": "scheduler.params",
}
PLACES: Sequence[tuple[str, Sequence[Json]]] = (
    ("train_batch_size", ["auto", 32, 64, 30, 8]),
    ("train_micro_batch_size_per_gpu", ["auto", 4, 8, 1]),
    ("gradient_accumulation_steps", ["auto", 1, 2, 8]),
    ("gradient_clipping", ["auto", 1.0, 0, 0.5]),
    ("steps_per_print", [10, 100, "auto"]),
    ("wall_clock_breakdown", [True, False]),
    ("optimizer.type", ["Adam", "AdamW", "Lion", "Adagrad", "SGD", "OneBitAdam", "Lamb"]),
    ("optimizer", [OPTIMIZER, {"type": "Adam", "params": {"lr": 0.01}}, {"type": "AdamW"}]),
    ("scheduler.type", ["WarmupLR", "WarmupDecayLR", "OneCycle", "LRRangeTest", "WarmupCosineLR"]),
    ("scheduler", [{"type": "WarmupLR", "params": {}}, {"type": "OneCycle", "params": {"cycle_min_lr": 0.1}}]),
    ("zero_optimization.stage", [0, 1, 2, 3, "2", "auto"]),
    ("fp16.enabled", [True, False, "auto"]),
    ("bf16.enabled", [True, False, "auto"]),
    ("zero_allow_untested_optimizer", [True, False]),
    ("zero_force_ds_cpu_optimizer", [True, False]),
    ("activation_checkpointing", [{"partition_activations": True}, {"cpu_checkpointing": True}]),
    ("communication_data_type", ["fp16", "bf16", "fp32", None]),
    ("prescale_gradients", [True, False]),
    ("sparse_gradients", [True, False]),
    ("flops_profiler", [{"enabled": True, "profile_step": 1}, {"enabled": False}]),
    ("data_types", [{"grad_accum_dtype": "fp32"}, {"grad_accum_dtype": "bf16"}]),
    ("amp", [{"enabled": True}, {"enabled": False}]),
    ("elasticity", [{"enabled": False}]),
    ("seq_parallel_communication_data_type", ["fp32"]),
    ("sequence_parallel_size", [1, 2]),
    ("zero_optimization.offload_optimizer", [{"device": "cpu"}, {"device": "nvme", "nvme_path": "/nvme"}, {}]),
    ("zero_optimization.offload_param", [{"device": "cpu"}, {"device": "none"}, {}]),
)
"""What the JSON may have where no table has it."""


class Launched(BaseException):
    """Raised in place of the start of workers."""

    def __init__(self, environment: Mapping[str, str], processes: int, each: int) -> None:
        super().__init__()
        self.environment = dict(environment)
        self.processes = processes
        self.each = each


class Asked(Driver):
    """accelerate, as far as DeepSpeed goes."""

    program = "accelerate"
    imports_late = True
    reaches = "prepare"
    samples: Mapping[str, Sequence[Json]] = {
        "compute_environment": ["LOCAL_MACHINE"],
        "distributed_type": ["DEEPSPEED", "MULTI_GPU", "NO", "FSDP"],
        "mixed_precision": ["no", "bf16", "fp16"],
        "num_processes": [1, 2, 4, 8, 16],
        "num_machines": [1, 2],
        "machine_rank": [0, 1],
        "main_process_port": [29500, 0],
        "main_process_ip": ["10.0.0.1"],
        "rdzv_backend": ["static", "c10d"],
        "gpu_ids": ["all", "0,1"],
        "downcast_bf16": ["no", "yes"],
        "main_training_function": ["main"],
        "zero_stage": [0, 1, 2, 3],
        "offload_optimizer_device": ["none", "cpu", "nvme"],
        "offload_param_device": ["none", "cpu", "nvme"],
        "gradient_accumulation_steps": [1, 2, "auto"],
        "gradient_clipping": [1.0, "auto", 0.5],
        "zero3_init_flag": [True, False],
        "zero3_save_16bit_model": [True, False],
        "deepspeed_multinode_launcher": ["pdsh", "standard", "openmpi", "slurm"],
        "deepspeed_moe_layer_cls_names": ["MixtralSparseMoeBlock"],
        "stage": [0, 1, 2, 3],
        "device": ["none", "cpu", "nvme"],
        "same_network": [True, False],
        "debug": [True, False],
        "use_cpu": [True, False],
        "enable_cpu_affinity": [True, False],
        "dynamo_config": [{"dynamo_backend": "INDUCTOR"}],
        "fsdp_config": [{"fsdp_version": 2}],
    }

    def release_of(self, program: str, release: str) -> str:
        """The DeepSpeed that the release is run with."""
        return WITH[release][0]

    def environment(self, release: str) -> Environment:
        """The release with DeepSpeed, and transformers, which accelerate asks for words."""
        deepspeed, transformers = WITH[release]
        pins = ("torch==2.13.0", f"deepspeed=={deepspeed}", f"transformers=={transformers}")
        return Environment("3.11", (f"accelerate=={release}",), pins)

    def sound(self, release: str) -> Sequence[Sound]:
        """Settings in accelerate's file, and a JSON beside it."""
        deepspeed = {
            "requirements.txt": f"deepspeed=={WITH[release][0]}\n",
            "run.sh": f"accelerate launch --config_file {CONFIG} train.py\n",
        }
        inline = [
            Sound(name, CONFIG, {**LAUNCH, "mixed_precision": "bf16", "deepspeed_config": section}, deepspeed)
            for name, section in INLINE.items()
        ]
        named = {**LAUNCH, "deepspeed_config": {"deepspeed_config_file": JSON, "zero3_init_flag": False}}
        launch = "".join(f"{line}\n" for line in _lines(named))
        tables = tuple(Table(name, tuple(path.split(".")), program="deepspeed") for name, path in SECTIONS.items())
        files = [
            Sound(name, JSON, settings, {**deepspeed, CONFIG: launch}, tables, also=PLACES)
            for name, settings in FILES.items()
        ]
        return [*inline, *files]

    def tables(self, release: str) -> Sequence[Table]:
        """The launch's keys and those of the section."""
        return [Table("config"), Table("deepspeed_config", ("deepspeed_config",))]

    def load(self, release: str) -> None:
        """Import all three."""
        machines.quiet()
        torch = module("torch")
        torch.set_num_threads(1)
        for name in ("torch.distributed.run", "torch.distributed.fsdp", "transformers", "transformers.integrations"):
            module(name)
        info = module("cpuinfo")
        told = info.get_cpu_info()
        info.get_cpu_info = always(told)
        module("deepspeed")
        self._accelerate = module("accelerate")
        self._launch = module("accelerate.commands.launch")
        self._configs = module("accelerate.commands.config.config_args")
        module("accelerate.utils.deepspeed")
        machines.deepspeed_on_cpu()
        self._torch = torch

    def ask(self, folder: Path, progress: Progress) -> None:
        """Launch, make the accelerator, prepare a tiny model."""
        module("argparse").ArgumentParser.error = _refuse
        accelerate = self._accelerate
        with machines.gpus():
            self._configs.load_config_from_file(CONFIG)
            progress.stage = "start"
            launched = self._launched()
            os.environ.update(launched.environment)
            machines.first_of(launched.processes)
            os.environ["LOCAL_WORLD_SIZE"] = str(launched.each)
            for at in (accelerate.state, accelerate.accelerator):
                if hasattr(at, "check_cuda_p2p_ib_support"):
                    at.check_cuda_p2p_ib_support = always(True)
            accelerator = accelerate.Accelerator()
            plugin = getattr(accelerator.state, "deepspeed_plugin", None)
            if plugin is None:
                return
            progress.stage = "prepare"
        # With "auto" the micro batch is that of the script's own loader.
        loaded = plugin.is_auto("train_micro_batch_size_per_gpu")
        try:
            self._prepare(accelerator, plugin)
        except (RuntimeError, AssertionError) as problem:
            batch = loaded and "Check batch related" in str(problem)
            if batch or re.search(r"CUDA|not implemented for|aio", str(problem), re.IGNORECASE):
                raise CannotTell(str(problem)) from problem
            raise
        except Exception as problem:
            if re.search(r"not been implemented on CPU|Could not find a transformer layer class", str(problem)):
                raise CannotTell(str(problem)) from problem
            raise

    def _launched(self) -> Launched:
        """What the launcher would start."""

        def run(arguments: Any) -> None:
            torchrun = module("torch.distributed.run")
            torchrun.config_from_args(arguments)
            nodes = int(str(arguments.nnodes).rpartition(":")[2])
            # "gpu" and the like are counted here.
            each = torchrun.determine_local_world_size(str(arguments.nproc_per_node))
            raise Launched(os.environ, each * nodes, each)

        parser = self._launch.launch_command_parser()
        arguments = parser.parse_args(["--config_file", CONFIG, "train.py"])

        def popen(command: Any, *given: Any, env: Any = None, **named: Any) -> None:
            # With several machines it is the launcher of DeepSpeed.
            if os.path.basename(command[0]) == "deepspeed":
                module("deepspeed.launcher.runner").parse_args(command[1:])
            processes, hosts = int(arguments.num_processes), int(arguments.num_machines)
            raise Launched(env or os.environ, processes, max(1, processes // max(1, hosts)))

        module("torch.distributed.run").run = run
        used = module("accelerate.utils.launch")
        in_use = used.is_port_in_use
        used.is_port_in_use = lambda *port: in_use(*port) and False
        if hasattr(self._launch, "check_cuda_p2p_ib_support"):
            self._launch.check_cuda_p2p_ib_support = always(True)
        real = subprocess.Popen
        subprocess.Popen = popen  # type: ignore[assignment,misc]
        try:
            self._launch.launch_command(arguments)
        except Launched as launched:
            return launched
        finally:
            subprocess.Popen = real  # type: ignore[misc]
        raise Refused("the launcher started nothing")

    def _prepare(self, accelerator: Any, plugin: Any) -> None:
        torch, utils = self._torch, self._accelerate.utils
        model = _tiny(torch)
        data = torch.utils.data.DataLoader([torch.ones(8) for _ in range(64)], batch_size=4)
        has = plugin.deepspeed_config
        optimizer = utils.DummyOptim if "optimizer" in has else torch.optim.AdamW
        made = optimizer(model.parameters(), lr=1e-3)
        objects = [model, made, data]
        if "scheduler" in has:
            objects.append(utils.DummyScheduler(made, total_num_steps=100, warmup_num_steps=10))
        accelerator.prepare(*objects)


def _tiny(torch: Any) -> Any:
    """A model whose layers have the names that configs give."""
    linear = torch.nn.Linear
    layer = type("LlamaDecoderLayer", (linear,), {})
    expert = type("MixtralSparseMoeBlock", (linear,), {})
    model = torch.nn.Sequential(layer(8, 8), expert(8, 8))
    model.config = type("Config", (), {"hidden_size": 8})()
    model._no_split_modules = ["LlamaDecoderLayer"]
    return model


def _lines(settings: Mapping[str, Any], head: str = "") -> Sequence[str]:
    """Settings as YAML, one key a line."""
    lines: list[str] = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            lines += [f"{head}{name}:", *_lines(value, f"{head}  ")]
        else:
            text = str(value).lower() if isinstance(value, bool) else f"'{value}'" if value == "no" else str(value)
            lines.append(f"{head}{name}: {text}")
    return lines


def _refuse(parser: Any, message: str) -> None:
    """In place of argparse's exit, which tells nothing."""
    raise Refused(message)
