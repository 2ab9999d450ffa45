"""TRL: `trl TRAINER --config FILE`, from the command line through TRL's own script to the first step.

Every model is a tiny Llama, every data set a small one with the columns of the trainer. `accelerate launch` is not run;
the script runs in this process, on the CPU. Trainers that generate stop where their constructor ends.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from oracle import machines
from oracle.asking import CannotTell, Driver, Environment, Json, Progress, Settings, Sound, Table, module
from oracle.machines import always

WITH: Mapping[str, tuple[str, ...]] = {
    "0.19.1": ("transformers==4.53.3", "accelerate==1.8.1", "peft==0.15.2", "datasets==3.6.0"),
    "0.24.0": ("transformers==4.57.1", "accelerate==1.11.0", "peft==0.17.1", "datasets==4.3.0"),
    "1.16.0": ("transformers==5.24.0", "accelerate==1.15.0", "peft==0.21.2", "datasets==5.2.0"),
}
"""What each release is run with."""
GENERATING = ("grpo", "rloo")
PROMPTS = ["what colour is the sky", "why is it blue", "is the sky green", "what is a good question"] * 4
CLASSES = {"sft": "SFT", "dpo": "DPO", "kto": "KTO", "reward": "Reward", "grpo": "GRPO", "rloo": "RLOO"}
OTHERS = {
    "sft": ("SFTScriptArguments", "ScriptArguments"),
    "grpo": ("GRPOScriptArguments", "ScriptArguments"),
    "rloo": ("RLOOScriptArguments", "ScriptArguments"),
}
MISSING = re.compile(
    r"not a local folder|valid model identifier|offline|Hub|huggingface\.co|No such file|pip install|is not installed|"
    r"CUDA|NVIDIA driver|requires the .* library|Connection|doesn't exist|does not exist|not found in the base model|"
    r"process group has not been|in the vocabulary of|not a Mixture-of-Experts|num_samples should be a positive|"
    r"ForCausalLM.__init__\(\) got an unexpected|dataset is not conversational|"
    r"only works in distributed training"
)
"""Words about what is not on this machine, and about the tiny model and data."""

NAMED_IN_DATA = ("dataset_text_field", "dataset_train_split", "dataset_test_split")
"""Names of what is in the data."""
BASE: Settings = {
    "model_name_or_path": "acme/tiny-lm",
    "dataset_name": "acme/notes",
    "output_dir": "out",
    "learning_rate": 1e-5,
    "per_device_train_batch_size": 2,
    "gradient_accumulation_steps": 2,
    "num_train_epochs": 1,
    "logging_steps": 10,
    "report_to": "none",
}
PEFT: Settings = {"use_peft": True, "lora_r": 8, "lora_alpha": 16, "lora_target_modules": ["q_proj", "v_proj"]}
GENERATION: Settings = {
    "reward_model_name_or_path": "acme/judge",
    "num_generations": 4,
    "max_completion_length": 64,
    "per_device_train_batch_size": 4,
}
SOUND: Mapping[str, tuple[str, Settings]] = {
    "sft": ("sft", {"max_length": 128}),
    "sft-peft": ("sft", {**PEFT, "gradient_checkpointing": True, "eval_strategy": "steps", "eval_steps": 10}),
    "sft-packing": ("sft", {"packing": True, "max_length": 64}),
    "dpo": ("dpo", {"beta": 0.1, "loss_type": "sigmoid"}),
    "dpo-peft": ("dpo", {**PEFT, "beta": 0.1}),
    "kto": ("kto", {"beta": 0.1}),
    "reward": ("reward", {"max_length": 128}),
    "grpo": ("grpo", GENERATION),
    "rloo": ("rloo", GENERATION),
}


class Trained(BaseException):
    """As far as a trainer is run."""


class Asked(Driver):
    """TRL."""

    program = "trl"
    imports_late = True
    reaches = "train"
    warnings_count = True
    samples: Mapping[str, Sequence[Json]] = {
        "optim": ["adamw_torch", "adafactor", "sgd"],
        "lr_scheduler_type": ["cosine", "linear", "constant_with_warmup"],
        "attn_implementation": ["eager", "sdpa"],
        "model_name_or_path": ["acme/small-lm"],
        "dataset_name": ["acme/pairs"],
        "torch_dtype": ["auto", "bfloat16", "float32"],
        "dtype": ["auto", "bfloat16", "float32"],
        "report_to": ["none", ["none"]],
        "save_strategy": ["no", "steps", "epoch", "best"],
        "eval_strategy": ["no", "steps", "epoch"],
        "logging_strategy": ["no", "steps", "epoch"],
        "dataset_test_split": ["test"],
        "dataset_train_split": ["train"],
        "packing_strategy": ["bfd", "wrapped"],
        "pad_token": ["<pad>"],
        "eos_token": ["</s>"],
        "lora_target_modules": [["q_proj"], ["q_proj", "o_proj"], ["all-linear"]],
        "max_steps": [1, 10],
        "gradient_accumulation_steps": [1, 2, 4],
        "per_device_train_batch_size": [1, 2, 4],
    }

    def release_of(self, program: str, release: str) -> str:
        """The transformers that the release is run with."""
        return WITH[release][0].partition("==")[2]

    def environment(self, release: str) -> Environment:
        """The release and its companions."""
        return Environment("3.11", (f"trl=={release}",), ("torch==2.13.0", *WITH[release]))

    def sound(self, release: str) -> Sequence[Sound]:
        """Each trainer of the command, with and without PEFT."""
        return [
            Sound(
                name,
                f"{trainer}.yaml",
                {**BASE, **settings},
                {"run.sh": f"trl {trainer} --config {trainer}.yaml --num_processes 1\n"},
                self._of(trainer),
                "start" if trainer in GENERATING else "",
            )
            for name, (trainer, settings) in SOUND.items()
        ]

    def _of(self, trainer: str) -> tuple[Table, ...]:
        """The tables of a trainer; its own come first and most often."""
        own = [Table(f"{CLASSES[trainer]}Config")] * 3
        others = [Table(name) for name in OTHERS.get(trainer, ("ScriptArguments",))]
        return (*own, *others, Table("ModelConfig"), Table("TrainingArguments", program="transformers"))

    def load(self, release: str) -> None:
        """Import TRL, in the order in which its command does, and make the models."""
        machines.quiet()
        arguments = module("transformers.training_args")
        module("torch").set_num_threads(1)
        self._datasets = module("datasets")
        self._transformers = module("transformers")
        self._trl = module("trl")
        for name in ("peft", "accelerate.commands.launch", "transformers.models.llama.modeling_llama"):
            module(name)
        for name in ("SFTTrainer", "DPOTrainer", "KTOTrainer", "GRPOTrainer", "RLOOTrainer", "RewardTrainer"):
            getattr(self._trl, name)
        machines.few_workers()
        machines.few_processes(self._datasets)
        machines.half_precision(arguments, module("transformers.utils"))
        self._datasets.disable_progress_bars()
        self._models = Path(os.environ["ORACLE_HOME"]) / "models" / f"trl-{release}"
        machines.tiny_models(self._models)
        self._scripts = Path(self._trl.__file__).parent / "scripts"

    def ask(self, folder: Path, progress: Progress) -> None:
        """The command line, then its script."""
        trainer = (folder / "run.sh").read_text(encoding="utf-8").split()[1]
        file = f"{trainer}.yaml"
        settings = module("yaml").safe_load((folder / file).read_text(encoding="utf-8"))
        for name in sorted(_ids(settings)):
            (folder / name).parent.mkdir(exist_ok=True, parents=True)
            (folder / name).symlink_to(self._models / ("reward" if "judge" in name else "causal"))
        data = self._data(trainer)

        def load(*given: Any, streaming: bool = False, **named: Any) -> Any:
            iterable = {split: rows.to_iterable_dataset() for split, rows in data.items()}
            return self._datasets.IterableDatasetDict(iterable) if streaming else data

        self._datasets.load_dataset = load
        try:
            self._command(trainer, file)
            self._script(trainer, file, progress)
        except (Trained, CannotTell):
            return
        except SystemExit as refusal:
            raise RuntimeError(f"exit status {refusal.code}") from refusal
        except Exception as refusal:
            ours = [settings.get(name) for name in NAMED_IN_DATA]
            if (isinstance(refusal, KeyError) and refusal.args[0] in ours) or MISSING.search(str(refusal)):
                raise CannotTell(str(refusal)) from refusal
            raise

    def _command(self, trainer: str, file: str) -> None:
        """`trl TRAINER`, up to the launch."""
        argparse = module("argparse")
        argparse.ArgumentParser.error = _refuse
        sys.argv = ["trl", trainer, "--config", file, "--num_processes", "1"]
        if (self._scripts.parent / "cli.py").is_file():
            command = module("trl.cli")
            command.launch_command = always(None)
            command.main()
            return
        launcher = module("trl.cli.accelerate_launcher")
        launcher.launch_training_script.__kwdefaults__["launch_command_fn"] = always(None)
        module("trl.cli.main").main()

    def _script(self, trainer: str, file: str, progress: Progress) -> None:
        """The script as the program itself, up to the first step."""
        parse = self._trl.TrlParser.parse_args_and_config

        def parsed(*given: Any, **named: Any) -> Any:
            found = parse(*given, **named)
            progress.stage = "start"
            return found

        self._trl.TrlParser.parse_args_and_config = parsed
        train = self._transformers.Trainer.train

        def one_step(at: Any, *given: Any, **named: Any) -> None:
            if trainer in GENERATING:
                raise Trained
            progress.stage = "train"
            at.args.max_steps, at.args.save_strategy, at.args.push_to_hub = 1, "no", False
            kept = [one for one in at.callback_handler.callbacks if type(one).__name__ == "DefaultFlowCallback"]
            at.callback_handler.callbacks = kept
            train(at)
            raise Trained

        self._transformers.Trainer.train = one_step
        script = str(self._scripts / f"{trainer}.py")
        sys.argv = [script, "--config", file]
        runpy.run_path(script, run_name="__main__")

    def _data(self, trainer: str) -> Any:
        rows: list[dict[str, Any]] = [{"prompt": prompt} for prompt in PROMPTS]
        for number, row in enumerate(rows):
            if trainer == "sft":
                row["text"] = f"{row.pop('prompt')} because it is blue"
            elif trainer == "kto":
                row |= {"completion": " the sky is blue", "label": number % 2 == 0}
            elif trainer in ("dpo", "reward"):
                row |= {"chosen": " the sky is blue", "rejected": " it is red"}
        if trainer == "reward":
            rows = [{name: row["prompt"] + row[name] for name in ("chosen", "rejected")} for row in rows]
        made = self._datasets.Dataset.from_list
        return self._datasets.DatasetDict({"train": made(rows), "test": made(rows[:8])})


def _refuse(parser: Any, message: str) -> None:
    """In place of argparse's exit, which tells nothing."""
    raise RuntimeError(message)


def _ids(settings: object) -> set[str]:
    """The names of models in a file."""
    if not isinstance(settings, dict):
        return set()
    named = [settings.get("model_name_or_path"), settings.get("reward_model_name_or_path")]
    funcs = settings.get("reward_funcs")
    named += funcs if isinstance(funcs, list) else [funcs]
    return {name for name in named if isinstance(name, str) and re.fullmatch(r"[\w-]+/[\w-]+", name)}
