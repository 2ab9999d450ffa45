"""torchtune: a recipe through its constructor, `setup`, the first optimizer step and the save, on tiny models.

The word `cuda` passes torchtune's own look-up with eight devices that do not exist, and the recipe goes on on the CPU;
bf16 counts as supported, memory is not measured, and torch.compile leaves the model as it is. What a recipe would train
for hours ends after one step. Recipes for one process only. What rests on files that the case does not have, the shapes
of the weights and the state of an earlier run among them, is not told.
"""

from __future__ import annotations

import copy
import inspect
import json
import os
import random
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oracle import machines
from oracle.asking import CannotTell, Driver, Environment, Json, Progress, Refused, Settings, Sound, module
from oracle.machines import always

SIZES: Settings = {
    "vocab_size": 512,
    "num_layers": 2,
    "num_heads": 4,
    "num_kv_heads": 2,
    "embed_dim": 64,
    "max_seq_len": 512,
    "intermediate_dim": 128,
}
CHECKPOINT: Settings = {
    "_component_": "torchtune.training.FullModelHFCheckpointer",
    "checkpoint_dir": "models/tiny",
    "checkpoint_files": ["model.safetensors"],
    "recipe_checkpoint": None,
    "output_dir": "${output_dir}",
    "model_type": "MISTRAL",
}
BASE: Settings = {
    "output_dir": "out/tiny",
    "model": {"_component_": "torchtune.models.mistral.mistral", **SIZES},
    "tokenizer": {
        "_component_": "torchtune.models.mistral.mistral_tokenizer",
        "path": "models/tiny/tokenizer.model",
        "max_seq_len": 64,
    },
    "dataset": {
        "_component_": "torchtune.datasets.alpaca_dataset",
        "source": "json",
        "data_files": "models/alpaca.json",
        "packed": False,
    },
    "seed": None,
    "shuffle": True,
    "checkpointer": CHECKPOINT,
    "resume_from_checkpoint": False,
    "batch_size": 2,
    "epochs": 1,
    "optimizer": {"_component_": "torch.optim.AdamW", "lr": 2e-5, "fused": True},
    "loss": {"_component_": "torchtune.modules.loss.CEWithChunkedOutputLoss"},
    "max_steps_per_epoch": None,
    "gradient_accumulation_steps": 1,
    "optimizer_in_bwd": False,
    "clip_grad_norm": None,
    "compile": False,
    "metric_logger": {
        "_component_": "torchtune.training.metric_logging.DiskLogger",
        "log_dir": "${output_dir}/logs",
    },
    "log_every_n_steps": 1,
    "log_peak_memory_stats": True,
    "device": "cuda",
    "dtype": "bf16",
    "enable_activation_checkpointing": False,
    "enable_activation_offloading": False,
}
LORA: Settings = {
    "model": {
        "_component_": "torchtune.models.mistral.lora_mistral",
        "lora_attn_modules": ["q_proj", "v_proj"],
        "apply_lora_to_mlp": True,
        "lora_rank": 8,
        "lora_alpha": 16,
        "lora_dropout": 0.0,
        **SIZES,
    },
    "lr_scheduler": {
        "_component_": "torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup",
        "num_warmup_steps": 100,
    },
    "save_adapter_weights_only": False,
}
TEACHER: Settings = {
    "teacher_model": {"_component_": "torchtune.models.mistral.mistral", **SIZES},
    "teacher_checkpointer": copy.deepcopy(CHECKPOINT),
    "kd_loss": {"_component_": "torchtune.modules.loss.ForwardKLWithChunkedOutputLoss"},
    "kd_ratio": 0.5,
}
SOUND: Mapping[str, tuple[str, Settings]] = {
    "full": ("full_finetune_single_device", {}),
    "lora": ("lora_finetune_single_device", LORA),
    "distill": ("knowledge_distillation_single_device", {**LORA, **TEACHER}),
}
PLACES: Sequence[tuple[str, Sequence[Json]]] = (
    ("batch_size", [1, 2, 4]),
    ("epochs", [1, 2]),
    ("seed", [None, 1234]),
    ("max_steps_per_epoch", [None, 1, 10]),
    ("gradient_accumulation_steps", [1, 2, 8]),
    ("optimizer_in_bwd", [True, False]),
    ("clip_grad_norm", [None, 1.0, "inf"]),
    ("compile", [True, False]),
    ("dtype", ["bf16", "fp32", "fp16"]),
    ("device", ["cuda", "cpu"]),
    ("enable_activation_checkpointing", [True, False]),
    ("enable_activation_offloading", [True, False]),
    ("resume_from_checkpoint", [True, False]),
    ("log_peak_memory_stats", [True, False]),
    ("save_adapter_weights_only", [True, False]),
    ("dataset.packed", [True, False]),
    ("dataset.train_on_input", [True, False]),
    ("dataset.split", ["train"]),
    ("dataset._component_", ["torchtune.datasets.alpaca_cleaned_dataset", "torchtune.datasets.alpacca_dataset"]),
    ("tokenizer.max_seq_len", [None, 64, 512]),
    ("tokenizer.prompt_template", [None, "torchtune.data.ChatMLTemplate"]),
    ("optimizer._component_", ["torch.optim.AdamW", "torch.optim.SGD", "torch.optim.Adam", "torch.optim.AdamX"]),
    ("optimizer.lr", [1e-4, 2e-5]),
    ("optimizer.weight_decay", [0.01, 0]),
    ("optimizer.momentum", [0.9]),
    ("loss._component_", ["torch.nn.CrossEntropyLoss", "torchtune.modules.loss.CEWithChunkedOutputLoss"]),
    ("loss.num_output_chunks", [1, 8]),
    ("lr_scheduler.num_warmup_steps", [0, 10]),
    ("lr_scheduler", [None]),
    ("model.lora_rank", [4, 8]),
    ("model.lora_attn_modules", [["q_proj"], ["q_proj", "o_proj"], ["q_proj", "output_proj"], []]),
    ("model.apply_lora_to_mlp", [True, False]),
    ("model.apply_lora_to_output", [True, False]),
    ("model.use_dora", [True, False]),
    ("model.quantize_base", [False]),
    ("model.attn_dropout", [0.0, 0.1]),
    ("model._component_", ["torchtune.models.mistral.mistral", "torchtune.models.mistral.lora_mistral"]),
    ("checkpointer.model_type", ["MISTRAL", "LLAMA2", "LLAMA3", "MISTRALL"]),
    ("checkpointer.output_dir", ["out/other", "models/tiny/out"]),
    ("checkpointer.recipe_checkpoint", [None]),
    ("checkpointer.safe_serialization", [True, False]),
    ("checkpointer.checkpoint_files", [["model.safetensors"], "model.safetensors", []]),
    ("output_dir", ["out/other", "models/tiny"]),
    ("metric_logger._component_", ["torchtune.training.metric_logging.StdoutLogger"]),
    ("log_every_n_steps", [1, 5, 0]),
    ("kd_ratio", [0.5, 1.0]),
    ("profiler", [{"_component_": "torchtune.training.setup_torch_profiler", "enabled": False}]),
)
READS = "--config config.yaml"
FILES = (
    "Error(s) in loading state_dict", "should be smaller than max_seq_len", "can't allocate memory",
    "No file with name", "No such file or directory", "recipe_checkpoint file must be provided",
    "The local rank is larger than the number of available", "Missing non-LoRA key",
    "on the Hub", "Unable to find", "An error occurred while generating the dataset",
    "join() argument must be str, bytes, or os.PathLike object, not 'NoneType'",
)  # fmt: skip
"""What is said of files that are not there or hold something else, of samples, of a run before, and of GPUs."""
ABSENT = ("wandb", "tensorboard", "comet", "torchvision", "bitsandbytes", "fbgemm")


class Asked(Driver):
    """torchtune."""

    program = "torchtune"
    reaches = "save"
    imports_late = True

    def environment(self, release: str) -> Environment:
        """The release with the torch and torchao of Kubeflow's image."""
        pins = ("torch==2.9.1", "torchao==0.15.0")
        return Environment("3.11", (f"torchtune=={release}", "torchdata==0.11.0"), pins, ("torchvision",))

    def sound(self, release: str) -> Sequence[Sound]:
        """Full fine-tuning, LoRA and distillation of a tiny model."""
        return [
            Sound(
                name,
                "config.yaml",
                {**BASE, **settings},
                {"run.sh": f"tune run {recipe} --config config.yaml\n"},
                also=PLACES,
            )
            for name, (recipe, settings) in SOUND.items()
        ]

    def load(self, release: str) -> None:
        """Import torchtune, take away what needs a GPU, make the models."""
        machines.quiet()
        self._torch = torch = module("torch")
        self._tune = module("torchtune.config")
        self._training = training = module("torchtune.training")
        self._registry = module("torchtune._recipe_registry")
        torch.set_num_threads(1)
        module("torchtune.training.precision").verify_bf16_support = always(True)
        torch.compile = lambda model=None, *given, **named: model if model is not None else (lambda one: one)
        torch.nn.Module.compile = always(None)
        for name in ("empty_cache", "reset_peak_memory_stats"):
            setattr(torch.cpu, name, always(None))
        for at in (training, module("torchtune.training.memory")):
            at.log_memory_stats = always(None)
            at.get_memory_stats = lambda *given, **named: dict.fromkeys(
                ("peak_memory_active", "peak_memory_alloc", "peak_memory_reserved"), 0
            )
        devices, utils = module("torchtune.utils._device"), module("torchtune.utils")
        devices.get_device = utils.get_device = _on_gpus(devices.get_device, torch)
        self._root = Path(module("torchtune").__file__).parent.parent
        self._models = Path(os.environ["ORACLE_HOME"]) / "models" / f"torchtune-{release}"
        _make_models(self._models)
        module("datasets").disable_progress_bars()
        self._recipes = {name: self._recipe(name) for name, _ in SOUND.values()}

    def _recipe(self, name: str) -> Any:
        recipe = next(one for one in self._registry.get_all_recipes() if one.name == name)
        util = module("importlib.util")
        spec = util.spec_from_file_location(f"recipe_{name}", self._root / "recipes" / recipe.file_path)
        found = util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found

    def ask(self, folder: Path, progress: Progress) -> None:
        """The command line's parsing, then the recipe."""
        shutil.copytree(self._models, folder / "models")
        recipe = (folder / "run.sh").read_text(encoding="utf-8").split()[2]
        os.environ["HF_DATASETS_CACHE"] = str(folder / "cache")
        try:
            self._run(recipe, progress)
        except Exception as refusal:
            if any(words in str(refusal) for words in (*ABSENT, *FILES)):
                raise CannotTell(str(refusal)) from refusal
            raise

    def _run(self, name: str, progress: Progress) -> None:
        read: list[Any] = []

        @self._tune.parse  # type: ignore[untyped-decorator]
        def main(cfg: Any) -> None:
            read.append(cfg)

        sys.argv = ["recipe", "--config", "config.yaml"]
        try:
            main()
        except SystemExit as end:
            if not read:
                raise Refused(f"exit status {end.code}") from end
        (cfg,) = read
        at = self._recipes[name]
        self._tune.log_config(recipe_name=name, cfg=cfg)
        progress.stage = "start"
        kinds: list[Any] = [
            kind
            for title, kind in vars(at).items()
            if inspect.isclass(kind) and kind.__module__ == at.__name__ and "Recipe" in title
        ]
        recipe = kinds[-1](cfg=cfg)
        if getattr(recipe, "_device", None) is not None and recipe._device.type == "cuda":
            self._on_cpu(recipe)
        progress.stage = "prepare"
        recipe.setup(cfg=cfg)
        progress.stage = "train"
        if type(recipe.total_epochs) is int:
            recipe.total_epochs = min(recipe.total_epochs, recipe.epochs_run + 1)
        if recipe.max_steps_per_epoch is None or (
            type(recipe.max_steps_per_epoch) is int and recipe.max_steps_per_epoch > 1
        ):
            recipe.max_steps_per_epoch = 1
        for saver in (recipe, getattr(recipe, "_checkpoint_client", None)):
            if hasattr(saver, "save_checkpoint"):
                _noting(saver, progress)
        recipe.train()

    def _on_cpu(self, recipe: Any) -> None:
        recipe._device = self._torch.device("cpu")
        if hasattr(recipe, "_checkpoint_client"):
            recipe._checkpoint_client._device = recipe._device
        for name in ("_enable_activation_offloading", "_log_peak_memory_stats"):
            if getattr(recipe, name, False):
                setattr(recipe, name, False)


def _noting(saver: Any, progress: Progress) -> None:
    save = saver.save_checkpoint

    def noted(*given: Any, **named: Any) -> Any:
        progress.stage = "save"
        return save(*given, **named)

    saver.save_checkpoint = noted


def _on_gpus(look: Any, torch: Any) -> Any:
    """torchtune's look-up of a device, on a machine with GPUs."""

    def found(device: Any = None) -> Any:
        # A number alone is the index of a GPU.
        if type(device) is not int and device is not None and str(device).partition(":")[0] != "cuda":
            return look(device)
        empty = torch.empty
        with machines.gpus():
            torch.empty = lambda *given, **named: empty(0)
            try:
                return look(device)
            finally:
                torch.empty = empty

    return found


def _make_models(folder: Path) -> None:
    """A tiny Mistral in the form of Hugging Face, its tokenizer, and a few instructions."""
    if (folder / "tiny" / "config.json").is_file():
        return
    (folder / "tiny").mkdir(parents=True, exist_ok=True)
    torch, chance = module("torch"), random.Random(0)
    torch.manual_seed(0)
    corpus = folder / "corpus.txt"
    corpus.write_text(
        "\n".join(" ".join(chance.choice(machines.WORDS) for _ in range(12)) for _ in range(800)), encoding="utf-8"
    )
    module("sentencepiece").SentencePieceTrainer.train(
        input=str(corpus),
        model_prefix=str(folder / "tiny" / "tokenizer"),
        vocab_size=60,
        model_type="bpe",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    corpus.unlink()
    model = module("torchtune.models.mistral").mistral(**SIZES)
    weights = {name: value.to(torch.bfloat16) for name, value in model.state_dict().items()}
    hugging = module("torchtune.models.convert_weights").tune_to_hf(weights, num_heads=4, num_kv_heads=2, dim=64)
    hugging = {name: value.clone().contiguous() for name, value in hugging.items()}
    module("safetensors.torch").save_file(hugging, folder / "tiny" / "model.safetensors")
    rows = [
        {"instruction": f"why is the {chance.choice(machines.WORDS)}", "input": "", "output": "because the sky is blue"}
        for _ in range(64)
    ]
    (folder / "alpaca.json").write_text(json.dumps(rows), encoding="utf-8")
    sizes = {"hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
    config = {"architectures": ["X"], "model_type": "mistral", "vocab_size": 512, **sizes}
    (folder / "tiny" / "config.json").write_text(json.dumps(config), encoding="utf-8")
