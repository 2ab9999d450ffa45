"""LLaMA-Factory: which files are its own, which command reads them, and what comes of several settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from surroundings import owners
from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Finding
from trainlint.programs.llamafactory import facts as tables
from trainlint.programs.llamafactory.facts import argument_facts
from trainlint.programs.llamafactory.program import PROGRAM, LlamaFactoryConfig, LlamaFactoryFile
from trainlint.programs.transformers.arguments import Arguments
from trainlint.reading.document import documents
from trainlint.reading.text import Text
from trainlint.settings import Overrides
from trainlint.training.declarations import declarations
from trainlint.training.limits import Limit, limits_of, terms_of

BASE = """\
model_name_or_path: a/b
stage: sft
do_train: true
finetuning_type: lora
template: llama3
output_dir: out
dataset: identity
"""
RELEASES = declarations("llamafactory").names
LIMITS = [limit for section in limits_of("llamafactory").values() for limit in section]


def config(text: str = "", release: str = RELEASES[-1]) -> LlamaFactoryConfig:
    """A configuration as a release reads it."""
    (document,) = documents("train.yaml", Text(BASE + text))
    (subject,) = PROGRAM.recognise(document)
    assert isinstance(subject, LlamaFactoryFile)
    known = argument_facts(release, tables.GOES_WITH[release], frozenset())
    return LlamaFactoryConfig(Arguments(subject, known), PROGRAM.facts(release))


def found(
    tmp_path: Path,
    text: str,
    *targets: str,
    files: dict[str, str] | None = None,
    method: str = "lora",
    stage: str = "sft",
) -> list[Finding]:
    """The findings on a configuration."""
    base = BASE.replace("finetuning_type: lora", f"finetuning_type: {method}").replace("stage: sft", f"stage: {stage}")
    (tmp_path / "train.yaml").write_text(base + text, encoding="utf-8")
    for name, content in (files or {}).items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    wanted = {program: target for text in targets for program, target in parse_target(text).items()}
    return [f for f in lint([tmp_path], Overrides(targets=wanted)).active if f.program == "llamafactory"]


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("model_name_or_path: a\nfinetuning_type: lora\n", True),
        ("model_name_or_path: a\nstage: sft\ndo_train: true\n", True),
        ("model_name_or_path: a\ntemplate: x\ndataset: y\n", True),
        ("model_name_or_path: a\ntemplate: x\n", False),
        ("model_name_or_path: a\ndataset_name: y\nlearning_rate: 1.0\n", False),
        ("model: a\nstage: sft\ndo_train: true\n", False),
        ("- model_name_or_path: a\n", False),
    ],
)
def test_recognise(text: str, ours: bool) -> None:
    """A model by its path with a method, a template and a dataset, or a stage of training."""
    assert ("llamafactory" in owners(text)) is ours


def test_numbers_are_read_as_omegaconf_does(tmp_path: Path) -> None:
    """An exponent without a dot is a number here, and a quoted one is a text that only warns."""
    assert found(tmp_path, "learning_rate: 2e-5\n") == []
    assert [(f.rule, f.level.value) for f in found(tmp_path, "learning_rate: '2e-5'\n")] == [("FS203", "warning")]


def test_transformers_below(tmp_path: Path) -> None:
    """The transformers that is pinned or targeted says what fsdp may hold."""
    assert [f.rule for f in found(tmp_path, "fsdp: false\n")] == ["FS230"]
    assert found(tmp_path, "fsdp: false\n", "transformers=5.6") == []
    pinned = {"requirements.txt": "llamafactory==0.9.5\ntransformers==5.6.2\n"}
    assert found(tmp_path, "fsdp: false\n", files=pinned) == []


def test_overrides_on_the_command_line(tmp_path: Path) -> None:
    """What a command line gives besides is not known."""
    text = "val_size: 0.1\neval_dataset: x\n"
    assert [f.rule for f in found(tmp_path, text)] == ["FS505"]
    script = {"run.sh": "FORCE_TORCHRUN=1 llamafactory-cli train train.yaml val_size=0\n"}
    assert found(tmp_path, text, files=script) == []


def test_deepspeed_file_is_read(tmp_path: Path) -> None:
    """A DeepSpeed file that is there decides, its name only warns."""
    text = "deepspeed: ds.json\nquantization_bit: 8\n"
    stage = '{"zero_optimization": {"stage": %d}}'
    assert [f.level.value for f in found(tmp_path, text, files={"ds.json": stage % 3})] == ["error"]
    assert found(tmp_path, text, files={"ds.json": stage % 2}) == []
    named = found(tmp_path, text.replace("ds.json", "ds_z3.json"))
    assert [(f.rule, f.level.value) for f in named] == [("FS510", "warning")]


def test_templates_are_left_alone(tmp_path: Path) -> None:
    """Nothing is said of values that something fills in."""
    text = "quantization_bit: ${BITS}\npissa_init: true\nval_size: ${VAL}\neval_dataset: x\nfsdp: ${FSDP}\n"
    assert found(tmp_path, text) == []


@pytest.mark.parametrize(
    ("source", "rules"),
    [
        ("METHODS = ['lora', 'freeze', 'full']\n", ["FS503"]),
        ("METHODS = ['lora', 'freeze', 'full', 'own-method']\n", []),
        ("METHODS = ['lora', 'freeze', 'full'] + list(found)\n", []),
        ("OTHERS = list(found)\n", ["FS503"]),
    ],
)
def test_a_copy_may_have_methods_of_its_own(tmp_path: Path, source: str, rules: list[str]) -> None:
    """A copy of LLaMA-Factory accepts what its own list holds; a list that is computed may hold anything."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "src/llamafactory/extras").mkdir(parents=True)
    (tmp_path / "src/llamafactory/extras/env.py").write_text('VERSION = "0.9.4.dev0"\n', encoding="utf-8")
    files = {"src/llamafactory/extras/constants.py": source}
    assert [f.rule for f in found(tmp_path, "", files=files, method="own-method")] == rules


OWN_DATA = '{"identity": {"file_name": "a.json", "formatting": "mine", "columns": {"own_column": "x"}}}'


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        ("", ["FS508", *["FS511"] * 4]),
        ("STAGES = ['mine']\nCOLUMNS = ['own_column']\n", []),
    ],
)
def test_words_of_a_copy_have_rules_of_their_own(tmp_path: Path, code: str, rules: list[str]) -> None:
    """What a release says of a stage or a dataset is not known of the words that a copy added."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/dataset_info.json").write_text(OWN_DATA, encoding="utf-8")
    text = "predict_with_generate: true\ndo_predict: true\neval_dataset: identity\n"
    files = {"args.py": f"class FinetuningArguments: pass\n{code}"}
    result = found(tmp_path, text, "llamafactory=0.9.3", files=files, stage="mine")
    assert sorted(f.rule for f in result) == rules


@pytest.mark.parametrize(
    ("code", "rules"),
    [
        ("class FinetuningArguments:\n    own_key: int = 1\n", []),
        ("class Arguments:\n    finetuning_type: str = 'lora'\n", ["FS501"]),
    ],
)
def test_a_copy_with_another_name(tmp_path: Path, code: str, rules: list[str]) -> None:
    """A repository with LLaMA-Factory's dataclasses is a copy, whatever its package is called."""
    found_rules = [f.rule for f in found(tmp_path, "other_key: 1\n", files={"args.py": code})]
    assert found_rules == rules


DERIVED = {"evaluates", "zero3", "transformers_4_53", "image_pixels_swapped", "video_pixels_swapped"}


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.when)
def test_limits_are_well_formed(limit: Limit) -> None:
    """Releases are known ones, names are arguments of one, so is the place, and a plain file is not refused."""
    reading = config()
    assert {limit.since, limit.until} - {""} <= set(RELEASES)
    assert any(limit.applies_to(release, RELEASES) for release in RELEASES)
    known = declarations("llamafactory")
    arguments = {name for table in tables.TRAINING_TABLES for name in known.keys_of_any(table)}
    named = {name for word in terms_of(limit.when) for name in word.names} - DERIVED
    assert {*named, *limit.at.split("|")} <= arguments | set(reading.arguments.facts.fields)
    assert limit.holds(reading) is False
