"""TRL: which files are its own, what its parser converts, and what its releases and launches add."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Finding
from trainlint.programs.trl.facts import GOES_WITH, PROFILES, TRAINERS, trl_facts
from trainlint.programs.trl.program import PROGRAM
from trainlint.reading.document import documents
from trainlint.reading.text import Text
from trainlint.settings import Overrides
from trainlint.training.declarations import declarations

BASE = "output_dir: out\nper_device_train_batch_size: 8\nlearning_rate: 2.0e-5\nnum_train_epochs: 1\n"
SFT = "model_name_or_path: org/model\ndataset_name: org/data\n" + BASE


def _findings(root: Path, files: dict[str, str], *targets: str) -> list[Finding]:
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    overrides = Overrides(targets={k: v for target in targets for k, v in parse_target(target).items()})
    return list(lint([root], overrides).active)


@pytest.mark.parametrize(
    ("text", "is_trl"),
    [
        (SFT, True),
        (BASE, False),
        (BASE + "num_generations: 8\nmax_completion_length: 256\n", True),
        (BASE + "lora_r: 8\nlora_alpha: 16\n", False),
        (SFT + "dataset_config_name: default\ntrain_file: a.json\n", False),
    ],
)
def test_recognition(text: str, is_trl: bool) -> None:
    """A model and a dataset under TRL's names or two arguments of its own; not transformers' example scripts."""
    assert bool(PROGRAM.recognise(next(documents("args.yaml", Text(text))))) is is_trl


def test_goes_with() -> None:
    """Each release goes with a known transformers that it allows."""
    from packaging.specifiers import SpecifierSet

    known, transformers = declarations("trl"), declarations("transformers")
    assert tuple(GOES_WITH) == known.names
    for release, other in GOES_WITH.items():
        assert other in transformers.names
        assert SpecifierSet(str(known.value("requires:transformers", release))).contains(other)
    assert set(TRAINERS.values()) <= set(known.tables)
    assert {"fsdp1", "fsdp2"} <= PROFILES


def test_texts_are_converted(tmp_path: Path) -> None:
    """What TrlParser converts is no finding, as it is for HfArgumentParser."""
    arguments = BASE.replace("2.0e-5", "2e-5") + "bf16: 'false'\n"
    assert [f.rule for f in _findings(tmp_path, {"args.yaml": arguments})] == ["FS203", "FS204"]
    (tmp_path / "args.yaml").unlink()
    trl = "model_name_or_path: org/model\ndataset_name: org/data\n" + arguments
    assert _findings(tmp_path, {"sft.yaml": trl}) == []


@pytest.mark.parametrize(
    ("release", "rules"), [("0.12.2", []), ("0.19.1", []), ("0.24.0", ["FS040"]), ("1.16.0", ["FS040"])]
)
def test_checkpoints_by_default(tmp_path: Path, release: str, rules: list[str]) -> None:
    """Since 0.20 gradient checkpointing is on unless it is switched off, and FSDP's own clashes with it."""
    text = SFT + "fsdp: full_shard auto_wrap\nfsdp_config:\n  activation_checkpointing: true\n"
    found = _findings(tmp_path, {"sft.yaml": text}, f"trl={release}")
    assert [f.rule for f in found] == rules
    assert all(f.span.line == 9 for f in found)
    off = text + "gradient_checkpointing: false\n"
    assert _findings(tmp_path, {"sft.yaml": off}, f"trl={release}") == []


def test_the_file_name_tells_the_trainer(tmp_path: Path) -> None:
    """In 0.12 max_length was DPO's and not SFT's."""
    text = SFT + "max_length: 1024\n"
    found = _findings(tmp_path, {"sft.yaml": text, "dpo.yaml": text, "args.yaml": text}, "trl=0.12.2")
    assert [(Path(f.span.path).name, f.rule) for f in found] == [("sft.yaml", "FS215")]


def test_transformers_below(tmp_path: Path) -> None:
    """A target or pin of transformers says which one is below."""
    files = {"sft.yaml": SFT + "warmup_ratio: 0.1\n"}
    assert [f.rule for f in _findings(tmp_path, files, "trl=1.16.0")] == ["FS215"]
    assert _findings(tmp_path, files, "trl=1.16.0", "transformers=5.0") == []
    files["requirements.txt"] = "transformers==4.57.6\n"
    assert _findings(tmp_path, files, "trl=1.16.0") == []


def test_quantized_under_a_shipped_profile(tmp_path: Path) -> None:
    """Only from the release on that has the key do 4-bit weights need it, and only under FSDP1."""
    text = SFT + "load_in_4bit: true\naccelerate_config: fsdp1\ndtype: bfloat16\n"
    assert [f.rule for f in _findings(tmp_path, {"sft.yaml": text}, "trl=1.16.0")] == ["FS044"]
    assert _findings(tmp_path, {"sft.yaml": text}, "trl=0.24.0") == []
    stored = text + "bnb_4bit_quant_storage: bfloat16\n"
    assert _findings(tmp_path, {"sft.yaml": stored}, "trl=1.16.0") == []
    assert _findings(tmp_path, {"sft.yaml": text.replace("fsdp1", "fsdp2")}, "trl=1.16.0") == []


def test_trl_command(tmp_path: Path) -> None:
    """`trl sft` ties the file to the accelerate config that the command line names."""
    launcher = (
        "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_machines: 1\nnum_processes: 8\n"
        "fsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
        "  fsdp_activation_checkpointing: true\n"
    )
    run = "trl sft --config sft.yaml --accelerate_config fsdp.yaml"
    files = {"sft.yaml": SFT, "fsdp.yaml": launcher, "run.sh": run + "\n"}
    assert [(Path(f.span.path).name, f.rule) for f in _findings(tmp_path, files)] == [("sft.yaml", "FS040")]
    files["run.sh"] = run + " --gradient_checkpointing False\n"
    assert _findings(tmp_path, files) == []


def test_facts_of_one_trainer() -> None:
    """Defaults are known where the trainers agree, or where the trainer is."""
    assert trl_facts("1.16.0", "5.24.0").default("logging_steps") is None
    assert trl_facts("1.16.0", "5.24.0", "sft").default("logging_steps") == 10
    assert trl_facts("1.16.0", "5.24.0").default("gradient_checkpointing") is True
    assert trl_facts("0.19.1", "4.53.3").default("gradient_checkpointing") is False


OWN_LOSS = "class Mine(DPOTrainer):\n    def loss(self):\n        return self.loss_type == 'mine'\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "error"),
        ({"trainer.py": "class Mine(DPOTrainer): pass\n"}, "error"),
        ({"trainer.py": OWN_LOSS}, ""),
        ({"trainer.py": OWN_LOSS, "run.sh": "trl dpo --config dpo.yaml\n"}, "error"),
        ({"config.py": "class DPOConfig(TrainingArguments): pass\n"}, "warning"),
        ({"config.py": "class DPOConfig(trl.DPOConfig): pass\n"}, "error"),
        ({"trainer.py": "class DPOTrainer(Trainer): pass\n"}, "warning"),
    ],
)
def test_a_trainer_of_ones_own(tmp_path: Path, files: dict[str, str], said: str) -> None:
    """A trainer of the repository may know other losses, and refuse less, than the one that TRL would start."""
    text = SFT + "loss_type: mine\nrpo_alpha: 1.0\n"
    found = _findings(tmp_path, {"dpo.yaml": text, **files}, "trl=0.24.0")
    assert [f.level.value for f in found if f.rule == "FS257"] == ([said] if said else [])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ("", ["error"]),
        ("class SFTConfig(trl.SFTConfig):\n    own_key: int = 1\n", []),
        ("class SFTConfig(trl.SFTConfig):\n    other: int = 1\n", []),
    ],
)
def test_a_config_that_a_script_takes_from_elsewhere(tmp_path: Path, config: str, said: list[str]) -> None:
    """The script's parser fills a class of the repository, which stands in another of its files."""
    parser = "TrlParser((ScriptArguments, SFTConfig, ModelConfig))"
    script = f"from mine import SFTConfig\nargs = {parser}.parse_args_and_config()\n"
    files = {"sft.yaml": SFT + "own_key: 1\n", "train.py": script, "run.sh": "python train.py --config sft.yaml\n"}
    found = _findings(tmp_path, {**files, "mine.py": config}, "trl=0.16.0")
    assert [f.level.value for f in found if f.rule == "FS215"] == said


@pytest.mark.parametrize(("made", "said"), [("SDPOConfig", False), ("GRPOConfig", True)])
def test_a_class_that_hydra_makes(tmp_path: Path, made: str, said: bool) -> None:
    """`_target_` says which config the keys are for."""
    text = f"_target_: trl.{made}\n{BASE}max_prompt_length: 8\nmax_completion_length: 256\nnum_generations: 8\n"
    found = _findings(tmp_path, {"args.yaml": text}, "trl=1.10.0")
    assert ("max_prompt_length" in "".join(f.message for f in found)) is said


@pytest.mark.parametrize(
    ("source", "parsed", "said"),
    [
        ("trl", "TrlParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_and_config()", ["FS215"]),
        ("mine", "TrlParser((ScriptArguments, SFTConfig, ModelConfig)).parse_args_and_config()", []),
        ("trl", "yaml.safe_load(open('sft.yaml'))", []),
    ],
)
def test_a_script_hands_over_a_file_of_few_keys(tmp_path: Path, source: str, parsed: str, said: list[str]) -> None:
    """The script of the command says whose the file is, where its keys do not; a class of its own has any keys."""
    text = "model_name_or_path: org/model\ntorch_dtype: bfloat16\ndataset_name: org/data\noutput_dir: out\n"
    files = {"sft.yaml": text, "run.sh": "python train.py --config sft.yaml\n"}
    script = {"train.py": f"from {source} import SFTConfig\nargs = {parsed}\n"}
    mine = {"mine.py": "class SFTConfig:\n    torch_dtype: str = ''\n"} if source == "mine" else {}
    found = _findings(tmp_path, {**files, **script, **mine}, "trl=1.16.0")
    assert [f.rule for f in found if "torch_dtype" in f.message] == said
