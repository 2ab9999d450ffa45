"""torchtune: its facts, which recipe a config is for, commands, forks, and jobs that start it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from train_jobs import train_job
from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Finding
from trainlint.programs.torchtune.facts import RELEASES, TorchtuneFacts, facts_of
from trainlint.report import Report
from trainlint.settings import Overrides

CONFIG = (Path(__file__).resolve().parent.parent / "fixtures/TT306/good.yaml").read_text(encoding="utf-8")
GENERATION = (Path(__file__).resolve().parent.parent / "fixtures/TT357/good.yaml").read_text(encoding="utf-8")
GENERATION = GENERATION.replace("prompt:\n  system:\n  user: Name", "prompt: Name")
WORKFLOW = "jobs:\n  train:\n    steps:\n"


def run(folder: Path, files: Mapping[str, str], target: str = "", paths: tuple[str, ...] = (".",)) -> Report:
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    (folder / ".git").mkdir(exist_ok=True)
    targets = parse_target(target) if target else {}
    return lint([folder / path for path in paths], Overrides(targets=targets))


def found(report: Report) -> list[tuple[str, str, int]]:
    return [(Path(f.path).name, f.rule, f.span.line) for f in report.active]


def step(*commands: str) -> str:
    return WORKFLOW + "".join(f"      - run: {command}\n" for command in commands)


# facts


@pytest.mark.parametrize("release", RELEASES)
def test_shipped_configs_are_sound(release: str) -> None:
    """Every component of every shipped config exists and takes what the config gives it."""
    facts = facts_of(release)
    files = {file for recipe in facts.recipes.values() for file in recipe.configs.values() if file is not None}
    assert len(files) > 100
    for file in files:
        content = facts.config(file)
        assert content is not None, file
        for section in content.values():
            if isinstance(section, dict) and isinstance(section.get("_component_"), str):
                component = facts.component(str(section["_component_"]))
                assert component.exists is not False, (file, section)
                if component.signature is not None and not component.signature.keywords:
                    assert set(section) - {"_component_"} <= set(component.signature.parameters), (file, section)


@pytest.mark.parametrize("release", RELEASES)
def test_shipped_configs_have_what_their_recipes_read(release: str) -> None:
    facts = facts_of(release)
    for recipe in facts.recipes.values():
        for file in recipe.configs.values():
            content = facts.config(file) if file is not None else None
            if content is not None:
                assert [key for key in recipe.start if key not in content] == [], (recipe.name, file)


def facts_and(path: str) -> tuple[TorchtuneFacts, bool | None]:
    facts = facts_of("0.6.1")
    return facts, facts.component(path).exists


@pytest.mark.parametrize(
    ("path", "exists"),
    [
        ("torchtune.models.llama3_2.lora_llama3_2_1b", True),
        ("torchtune.models.llama3_3.llama3_3_70b", True),
        ("torchtune.training.metric_logging.DiskLogger", True),
        ("torchtune.models.llama3_2.llama3_2_1bb", False),
        ("torchtune.models.llama3_2.llama3_2_1b.build", False),
        ("torchtune.datasets", True),
        ("torch.optim.AdamW", True),
        ("torch.optim.AdamX", False),
        ("torch.nn.CrossEntropyLoss", None),
        ("transformers.AutoModel", None),
    ],
)
def test_components(path: str, exists: bool | None) -> None:
    assert facts_and(path)[1] is exists


def test_signatures_follow_partials_and_imports() -> None:
    signature = facts_of("0.6.1").component("torchtune.models.llama3_2.qlora_llama3_2_1b").signature
    assert signature is not None
    assert "quantize_base" in signature.parameters
    assert signature.required == {"lora_attn_modules"}


def test_releases_differ() -> None:
    assert facts_of("0.4.0").component("torchtune.models.llama3_3.llama3_3_70b").exists is False
    assert "llama3_3/70B_full" not in facts_of("0.4.0").configs
    assert "compile" not in facts_of("0.4.0").recipes["qat_distributed"].checks
    assert "compile" in facts_of("0.5.0").recipes["qat_distributed"].checks


# which recipe


def test_the_recipe_of_a_file_is_told_by_its_command(tmp_path: Path) -> None:
    """optimizer_in_bwd is nothing to LoRA, so that accumulation beside it is no mistake there."""
    config = CONFIG.replace("optimizer_in_bwd: false", "optimizer_in_bwd: true").replace(
        "gradient_accumulation_steps: 1", "gradient_accumulation_steps: 4"
    )
    assert ("full.yaml", "TT310", 29) in found(run(tmp_path / "a", {"full.yaml": config}))
    files = {"full.yaml": config, "ci.yaml": step("tune run own_recipe.py --config full.yaml"), "own_recipe.py": ""}
    assert found(run(tmp_path / "b", files)) == []


def test_a_command_mends_or_breaks_its_file(tmp_path: Path) -> None:
    config = CONFIG.replace("dtype: bf16", "dtype: fp16")
    command = "tune run full_finetune_single_device --config full.yaml"
    assert found(run(tmp_path / "a", {"full.yaml": config, "ci.yaml": step(f"{command} dtype=bf16")})) == []
    report = run(tmp_path / "b", {"full.yaml": CONFIG, "ci.yaml": step(f"{command} dtype=fp16")})
    assert found(report) == [("ci.yaml", "TT308", 4)]


def test_what_all_likely_recipes_say_counts(tmp_path: Path) -> None:
    """A config for one recipe on one device or several: what only one of them refuses is not said."""
    config = CONFIG.replace("device: cuda", "device: npu").replace("compile: false", "compile: true")
    assert found(run(tmp_path, {"full.yaml": config})) == []


def test_a_config_for_a_recipe_of_ones_own_is_left_alone(tmp_path: Path) -> None:
    content = "trainer:\n  _component_: own.Trainer\n  steps: 3\ndtype: half\nalgorithm: x\n"
    assert found(run(tmp_path, {"own.yaml": content})) == []


def shown(command: str, language: str = "bash") -> str:
    return f"# Talk\n\n```{language}\n$ {command}\n```\n"


@pytest.mark.parametrize(
    ("files", "rules"),
    [
        ({}, ["TT357"]),
        ({"README.md": shown("tune run own_generate --config talk.yaml")}, ["TT357"]),
        ({"README.md": shown("tune run own_generate --config talk.yaml"), "own_generate.py": ""}, []),
        ({"README.md": shown("tune run own_generate --config other.yaml"), "own_generate.py": ""}, ["TT357"]),
        ({"README.md": shown("tune run generate --config talk.yaml"), "generate.py": ""}, ["TT357"]),
        ({"README.md": shown("tune run own_generate --config talk.yaml", "json"), "own_generate.py": ""}, ["TT357"]),
    ],
)
def test_a_readme_tells_of_a_recipe_of_ones_own(tmp_path: Path, files: dict[str, str], rules: list[str]) -> None:
    """Where nothing else starts a config, a README says that it is for the repository's own recipe."""
    report = run(tmp_path, {"configs/talk.yaml": GENERATION, **files})
    assert [rule for _, rule, _ in found(report)] == rules


@pytest.mark.parametrize(
    ("name", "command", "level"),
    [
        ("OUT_DIR", "", "warning"),
        ("out_dir", "", "error"),
        ("OUT_DIR", "tune run full_finetune_single_device --config full.yaml", "error"),
    ],
)
def test_a_name_that_something_may_fill_in(tmp_path: Path, name: str, command: str, level: str) -> None:
    """`${OUT_DIR}` is a variable for envsubst, unless a command hands the file itself to torchtune."""
    config = CONFIG.replace("max_steps_per_epoch: null", f"max_steps_per_epoch: null\nsaves: ${{{name}}}/saves")
    files = {"full.yaml": config, **({"ci.yaml": step(command)} if command else {})}
    report = run(tmp_path, files)
    assert [f.level.value for f in report.active if f.rule == "TT302"] == [level]


# forks and unreleased names


@pytest.mark.parametrize("path", ["recipes/configs/llama3_2/1B_full.yaml", "configs/mine.yaml"])
def test_a_fork_has_names_of_its_own(tmp_path: Path, path: str) -> None:
    config = CONFIG.replace("llama3_2.llama3_2_1b", "own_family.own_model")
    files = {path: config, "torchtune/_recipe_registry.py": "", "ci.yaml": step("tune run own --config own/1B")}
    assert found(run(tmp_path, files)) == []


def test_an_unreleased_component_is_refused_where_the_release_is_named(tmp_path: Path) -> None:
    config = CONFIG.replace("CEWithChunkedOutputLoss", "LinearCrossEntropyLoss")
    assert found(run(tmp_path / "a", {"full.yaml": config})) == []
    assert found(run(tmp_path / "b", {"full.yaml": config}, "torchtune=0.6.1")) == [("full.yaml", "TT303", 27)]
    pinned = {"full.yaml": config, "requirements.txt": "torchtune==0.6.1\n"}
    assert found(run(tmp_path / "c", pinned)) == [("full.yaml", "TT303", 27)]


@pytest.mark.parametrize(("code", "said"), [("class OwnLoss: pass\n", False), ("OwnLoss()\n", True)])
def test_a_component_that_the_repository_may_put_into_torchtune(tmp_path: Path, code: str, said: bool) -> None:
    config = CONFIG.replace("CEWithChunkedOutputLoss", "OwnLoss")
    assert (found(run(tmp_path, {"full.yaml": config, "patch.py": code})) != []) is said


def test_releases_by_target(tmp_path: Path) -> None:
    command = step("tune run --nproc_per_node 8 full_finetune_distributed --config llama3_3/70B_full")
    assert found(run(tmp_path, {"ci.yaml": command})) == []
    assert found(run(tmp_path, {"ci.yaml": command}, "torchtune=0.4.0")) == [("ci.yaml", "TT402", 4)]
    report = run(tmp_path, {"ci.yaml": command}, "torchtune=0.2.0")
    assert (found(report), len(report.notices)) == ([], 1)


# commands


def test_words_that_are_filled_in_later_decide_nothing(tmp_path: Path) -> None:
    commands = (
        'tune run "$RECIPE" --config llama3_2/1B_lora dtype=fp16',
        "tune run full_finetune_single_device --config $CONFIG dtype=fp16",
        'tune run full_finetune_single_device --config llama3_2/1B_full_single_device dtype=fp16 "$@"',
        "tune run full_finetune_single_device --config llama3_2/1B_full_single_device dtype=${DTYPE}",
        "tune run full_finetune_single_device --config llama3_2/1B_full_single_device epochs=$N seed=${{ seed }}",
        "tune run $OPTIONS lora_finetune_distributed --config llama3_2/1B_lora dtype=bf16",
    )
    assert found(run(tmp_path, {"ci.yaml": step(*(f"|\n          {command}" for command in commands))})) == []


def test_scripts_go_with_the_configs_of_their_repository(tmp_path: Path) -> None:
    files = {
        "full.yaml": CONFIG,
        "train.sh": "cd .\ntune run full_finetune_single_device --config full.yaml \\\n  dtype=fp16\n",
        "Makefile": "lora:\n\ttune run lora_finetune --config llama3_2/1B_lora\n",
    }
    assert found(run(tmp_path, files)) == [("Makefile", "TT401", 2), ("train.sh", "TT308", 3)]


def test_a_config_is_looked_up_as_tune_run_does(tmp_path: Path) -> None:
    """The recipe's own configs first, then those of all recipes, then a file."""
    commands = (
        "tune run lora_finetune_single_device --config llama3_2/1B_lora",
        "tune run lora_finetune_single_device --config configs/none",
        "tune run lora_finetune_single_device --config configs/lora",
    )
    report = run(tmp_path, {"ci.yaml": step(*commands), "configs/lora": ""})
    assert found(report) == [("ci.yaml", "TT403", 4), ("ci.yaml", "TT402", 5)]


# TrainJobs


def job(*lines: str, runtime: str = "torchtune-llama3.2-1b") -> str:
    return train_job(runtime, *lines)


def of_torchtune(report: Report) -> list[Finding]:
    return [finding for finding in report.active if finding.program == "torchtune"]


def test_a_job_without_a_command_runs_that_of_its_runtime(tmp_path: Path) -> None:
    """The shipped runtime starts the distributed recipe, whose config has the optimizer outside the backward pass."""
    fine = job("args: [gradient_accumulation_steps=4]", "resourcesPerNode: {limits: {nvidia.com/gpu: 1}}")
    assert of_torchtune(run(tmp_path, {"job.yaml": fine})) == []
    bad = job("args: [dtype=fp16]")
    assert [(f.rule, f.span.line) for f in of_torchtune(run(tmp_path, {"job.yaml": bad}))] == [("TT308", 9)]


def test_a_job_whose_gpus_cannot_be_told(tmp_path: Path) -> None:
    """What every recipe that it may get refuses is said, what only some refuse is not."""
    resources = "resourcesPerNode: {limits: {nvidia.com/gpu: 1, example.com/gpu-memory: 40}}"
    command = "command: [tune, run]"
    accumulation = job(command, resources, "args: [gradient_accumulation_steps=4]")
    assert of_torchtune(run(tmp_path, {"job.yaml": accumulation})) == []
    dtype = job(command, resources, "args: [dtype=fp16]")
    assert [f.rule for f in of_torchtune(run(tmp_path, {"job.yaml": dtype}))] == ["TT308"]


def test_a_job_that_admission_refuses_is_not_followed_further(tmp_path: Path) -> None:
    report = run(tmp_path, {"job.yaml": job("command: [tune, run]", "numNodes: 2", "args: [dtype=fp16, --x]")})
    assert [f.rule for f in of_torchtune(report)] == ["TT404"]


def test_the_runtime_gives_what_is_its_own(tmp_path: Path) -> None:
    """The runtime's paths are handed on; a job's template values are not guessed at."""
    args = "args: [dtype=$(DTYPE), 'batch_size={{ size }}']"
    assert of_torchtune(run(tmp_path, {"job.yaml": job("command: [tune, run]", args)})) == []


def test_the_verdict_follows_the_named_release(tmp_path: Path) -> None:
    """qwen2_5 came with 0.4.0, tensor parallelism with 0.6."""
    content = job(
        "command: [tune, run]",
        "resourcesPerNode: {limits: {nvidia.com/gpu: 2}}",
        "args: [tensor_parallel_dim=2]",
        runtime="torchtune-qwen2.5-1.5b",
    )
    newest = of_torchtune(run(tmp_path, {"job.yaml": content}, "kubeflow-trainer=2.3"))
    assert {(f.rule, f.severity and f.severity.value) for f in newest} == {("TT311", "error")}
    older = of_torchtune(run(tmp_path, {"job.yaml": content}, "torchtune=0.5.0"))
    assert {(f.rule, f.severity and f.severity.value) for f in older} == {("TT321", "warning")}
