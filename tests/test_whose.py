"""Whose file it is, by the repository's own code and by its marks; shown as `--show-files` shows it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from trainlint.engine import Run, lint
from trainlint.settings import Overrides
from trainlint.show_files import as_text

ARGUMENTS = """model_name_or_path: org/model
output_dir: out
learning_rate: 2.0e-5
per_device_train_batch_size: 2
num_train_epochs: 1
max_seq_length: 1024
"""
SECTION = "name: a\ntraining:\n" + "".join(f"  {line}\n" for line in ARGUMENTS.splitlines() if "model" not in line)
SECTION = SECTION.replace("  max_seq_length: 1024\n", "  warmup_steps: 10\n  lr_scheduler_type: cosine\n")


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def owners(folder: Path, path: str) -> list[str]:
    """The programs whose claims to a file count."""
    (shown,) = Run(Overrides()).files([folder / path])
    return [one.claim.program.name for one in shown.owned if not one.claim.lost]


@pytest.mark.parametrize(
    ("code", "owner"),
    [
        ({}, "transformers"),
        ({"train.py": "parser = TrlParser((ScriptArguments, SFTConfig))\n"}, "trl"),
        ({"train.py": "parser = HfArgumentParser((Mine, TrainingArguments))\n"}, "transformers"),
        ({"a.py": "TrlParser((A, SFTConfig))\n", "b.py": "HfArgumentParser((A, B))\n"}, "transformers"),
        ({"a/a.py": "TrlParser((A, SFTConfig))\n", "b/b.py": "HfArgumentParser((A, B))\n"}, "trl"),
        ({"a/a.py": "HfArgumentParser((A, B))\n", "b/b.py": "TrlParser((A, SFTConfig))\n"}, "transformers"),
        ({"train.py": "parser = argparse.ArgumentParser()\n", "x.py": "TrlParser(SFTConfig)\n"}, "trl"),
    ],
)
def test_the_parser_in_the_nearest_code(tmp_path: Path, code: dict[str, str], owner: str) -> None:
    """TrlParser and HfArgumentParser read the same keys in their own ways; nothing is said where code has both."""
    write(tmp_path, {"a/config.yaml": ARGUMENTS, **code})
    (tmp_path / ".git").mkdir()
    assert owners(tmp_path, "a/config.yaml") == [owner]


@pytest.mark.parametrize(
    ("code", "counts"),
    [
        ("", True),
        ("args = TrainingArguments(**config['training'])\n", True),
        ("import yaml\nc = yaml.safe_load(f)\nargs = SFTConfig(output_dir=o, **c['training'])\n", True),
        ("class Mine(TrainingArguments): pass\nargs = Mine(**config['training'])\n", True),
        ("(args,) = HfArgumentParser(TrainingArguments).parse_dict(yaml.safe_load(f)['training'])\n", True),
        ("class Own: pass\nargs = Own(**config['training'])\n", False),
        ("import yaml\nc = yaml.safe_load(f)\nrate = c['training']['learning_rate']\n", False),
        ("print('training')\n", True),
    ],
)
def test_a_section(tmp_path: Path, code: str, counts: bool) -> None:
    """A section is checked unless code of the repository reads it and makes no training arguments of it."""
    write(tmp_path, {"config.yaml": SECTION, "train.py": code})
    (tmp_path / ".git").mkdir()
    assert owners(tmp_path, "config.yaml") == (["transformers"] if counts else [])


def test_a_section_of_a_job(tmp_path: Path) -> None:
    """Arguments beside a script reach it as words of a command line."""
    write(tmp_path, {"config.yaml": SECTION.replace("name: a", "script: train.py")})
    assert owners(tmp_path, "config.yaml") == []


def test_generated_files(tmp_path: Path) -> None:
    """A file that .gitattributes marks as generated is left alone, and counted; the nearest marks count."""
    broken = "distributed_type: FSDP\ncompute_environment: LOCAL_MACHINE\nnum_processes: 4\nnum_processes: 2\n"
    write(
        tmp_path,
        {
            ".gitattributes": "# marks\n*.yaml text\nmade/** linguist-generated=true\n",
            "made/a.yaml": broken,
            "made/other.yaml": "a: 1\n",
            "made/mine/.gitattributes": "b.yaml -linguist-generated\n",
            "made/mine/b.yaml": broken,
            "c.yaml": broken,
        },
    )
    (tmp_path / ".git").mkdir()
    report = lint([tmp_path])
    assert sorted({Path(finding.path).name for finding in report.findings}) == ["b.yaml", "c.yaml"]
    assert "1 file is not checked: .gitattributes marks it as generated" in report.notices
    shown = {Path(file.path).name: file.left_alone for file in Run(Overrides()).files([tmp_path])}
    assert [name for name, why in shown.items() if why] == ["a.yaml"]


def test_a_release_older_than_all_known_ones_is_shown_so(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a.yaml": "distributed_type: FSDP\ncompute_environment: LOCAL_MACHINE\nnum_processes: 4\n",
            "requirements.txt": "accelerate==0.15.0\n",
        },
    )
    shown = as_text(list(Run(Overrides()).files([tmp_path])))
    assert shown.splitlines()[2].startswith("    release 0.15.0, stated in ")
    assert shown.splitlines()[2].endswith("requirements.txt:1, older than all known ones; not checked")


def test_files_that_the_settings_give_to_no_program(tmp_path: Path) -> None:
    """They are not almost recognised, but left alone, and shown so."""
    write(
        tmp_path,
        {
            "a.yaml": "distributed_type: FSDP\ncompute_environment: LOCAL_MACHINE\nnum_processes: 4\n",
            "trainlint.toml": '[[overrides]]\npaths = ["a.yaml"]\nprogram = "none"\n',
        },
    )
    report = lint([tmp_path])
    assert (report.findings, report.near, report.left_alone) == ((), (), 1)
    (shown,) = Run(Overrides()).files([tmp_path])
    assert shown.near == ()
    assert shown.left_alone.endswith('/trainlint.toml:3 says program = "none"')
    assert as_text([shown]).endswith("0 recognised, 0 almost, 1 not checked\n")


def test_files_that_the_settings_give_to_a_program(tmp_path: Path) -> None:
    """They are judged without a word of it; where nothing in one is that program's, a notice says so."""
    programs = {"a.yaml": "axolotl", "k.yaml": "kubeflow-trainer", "plain.yaml": ""}
    given = (f'[[overrides]]\npaths = ["{name}"]\nprogram = "{one}"\n' for name, one in programs.items() if one)
    write(tmp_path, {**dict.fromkeys(programs, "lr: 1\n"), "trainlint.toml": "".join(given)})
    report = lint([tmp_path])
    assert {(Path(finding.path).name, finding.rule) for finding in report.findings} == {("a.yaml", "FS403")}
    (notice,) = (notice for notice in report.notices if "k.yaml" in notice)
    assert "k.yaml: nothing in it is of Kubeflow Trainer, whose it is by " in notice
    assert notice.endswith("/trainlint.toml:6: its files have `apiVersion: trainer.kubeflow.org/…`")
    assert report.near == ()
    assert "/trainlint.toml:3\n" in as_text(list(Run(Overrides()).files([tmp_path])))


@pytest.mark.parametrize(("program", "expected"), [("none", []), ("axolotl", ["TL001"])])
def test_a_broken_file_is_whose_the_settings_say(tmp_path: Path, program: str, expected: list[str]) -> None:
    override = f'[[overrides]]\npaths = ["a.yaml"]\nprogram = "{program}"\n'
    write(tmp_path, {"a.yaml": "base_model: x\na: [\n", "trainlint.toml": override})
    assert [finding.rule for finding in lint([tmp_path]).findings] == expected


@pytest.mark.parametrize("pattern", ["a\\", "*" * 5_000, "/", "[", "!x"])
def test_a_pattern_that_is_none_marks_nothing(tmp_path: Path, pattern: str) -> None:
    """A .gitattributes file of any content ends no run."""
    broken = "distributed_type: FSDP\ncompute_environment: LOCAL_MACHINE\nnum_processes: 4\nnum_processes: 2\n"
    write(tmp_path, {".gitattributes": f"{pattern} linguist-generated\n", "c.yaml": broken})
    (tmp_path / ".git").mkdir()
    report = lint([tmp_path])
    assert (bool(report.findings), report.crashed) == (True, False)


APPLICATION = """import yaml
config = yaml.safe_load(open(path))
length = config["max_seq_length"]
quantize = config.get("use_lora")
"""
SAID = {"max_seq_length": "warning", "use_lora": "warning", "save_strategy": "error"}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, SAID),
        ({"train.py": APPLICATION}, {"save_strategy": "warning"}),
        ({"train.py": APPLICATION.replace("use_lora", "x")}, {"use_lora": "warning", "save_strategy": "warning"}),
        ({"train.py": APPLICATION + "TrlParser(SFTConfig)\n"}, SAID),
        ({"train.py": APPLICATION + "args = SFTConfig(**config)\n"}, SAID),
        ({"read.py": APPLICATION, "run.sh": "trl sft --config config.yaml\n"}, dict.fromkeys(SAID, "error")),
    ],
)
def test_keys_that_code_reads_itself(tmp_path: Path, files: dict[str, str], said: dict[str, str]) -> None:
    """Code that loads a file without a parser may read keys of its own, and do what it likes with a value."""
    text = ARGUMENTS + "dataset_name: org/data\nuse_lora: true\nsave_strategy: sometimes\n"
    write(tmp_path, {"config.yaml": text, "requirements.txt": "trl==0.29.0\n", **files})
    (tmp_path / ".git").mkdir()
    findings = lint([tmp_path]).active
    assert {f.message.split()[0]: f.level.value for f in findings if f.span.path.endswith("config.yaml")} == said


LLAMAFACTORY = ARGUMENTS.replace(
    "max_seq_length: 1024\n", "stage: sft\nfinetuning_type: lora\ndataset: a\ntemplate: qwen\n"
)


@pytest.mark.parametrize(("pin", "said"), [("transformers==4.30.1", []), ("transformers==4.41.2", ["FS501"])])
def test_a_companion_that_the_program_does_not_start_with(tmp_path: Path, pin: str, said: list[str]) -> None:
    """LLaMA-Factory 0.9.2 needs transformers 4.41.2: an older one is for something else in the repository."""
    requirements = f"llamafactory==0.9.2\n{pin}\n"
    write(tmp_path, {"sft.yaml": f"{LLAMAFACTORY}eval_on_start: true\n", "requirements.txt": requirements})
    assert [f.rule for f in lint([tmp_path / "sft.yaml"]).active if f.rule == "FS501"] == said


@pytest.mark.parametrize(
    ("source", "level"),
    [
        ("git clone https://github.com/pytorch/torchtune.git\npip install -e torchtune\n", "warning"),
        ("git clone https://github.com/me/torchtune.git\npip install -e torchtune\n", ""),
        ("pip install -e ../torchtune\n", ""),
        ("pip install torchtune==0.6.1\n", "error"),
    ],
)
def test_a_clone_may_hold_what_no_release_has(tmp_path: Path, source: str, level: str) -> None:
    """A name that no known release has is an error where one runs; somebody's copy may have any name."""
    config = "loss:\n  _component_: torchtune.modules.loss.NoSuchLoss\n"
    write(tmp_path, {"a.yaml": config, "setup.sh": source})
    found = [(finding.rule, finding.level.value) for finding in lint([tmp_path / "a.yaml"]).active]
    assert found == ([("TT303", level)] if level else [])


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are text there")
def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """The bytes of a name may be none of UTF-8; code is searched for them all the same."""
    code = "import yaml\nfrom omegaconf import OmegaConf\nconfig = yaml.safe_load(open('a.yaml'))\n"
    write(tmp_path, {os.fsdecode(b"\xff\xfe.yaml"): f"{ARGUMENTS}own_key: 1\n", "train.py": code})
    assert not lint([tmp_path]).crashed


JOB = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: 1.done}
spec:
  runtimeRef: {name: torch-distributed}
"""
GIVEN_OUT = [
    "status:\n  conditions:\n    - {type: Complete, lastTransitionTime: '2025-11-01T10:00:00Z'}\n",
    "status:\n  jobsStatus:\n    - {name: node, succeeded: 1}\n",
]


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        (JOB, ["kubeflow-trainer"]),
        (f"{JOB}status: {{}}\n", ["kubeflow-trainer"]),
        (f"{JOB}status:\n  conditions: []\n", ["kubeflow-trainer"]),
        *((JOB + status, []) for status in GIVEN_OUT),
        (JOB.replace("{name", "{uid: 6f0e8c1a-0000-4000-8000-000000000000, name"), []),
    ],
)
def test_a_job_that_a_cluster_gave_out(tmp_path: Path, text: str, owner: list[str]) -> None:
    """Test data of other tools: the cluster admitted it, and nobody submits it as it stands."""
    write(tmp_path, {"testdata/job.yaml": text})
    assert owners(tmp_path, "testdata/job.yaml") == owner
    assert bool(lint([tmp_path]).findings) == bool(owner)


AXOLOTL = """base_model: org/model
datasets: [{path: a/b, type: alpaca}]
val_set_size: 0.1
sequence_len: 2048
adapter: lora
lora_target_linear: true
micro_batch_size: 2
gradient_accumulation_steps: 1
learning_rate: 0.0002
"""


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        (f"{AXOLOTL}cutoff_len: 2048\n", ["axolotl"]),
        (f"{AXOLOTL}cutoff_len: 2048\nfinetuning_type: lora\n", []),
        ("base_model: org/model\nmicro_batch_size: 2\ncutoff_len: 2048\n", []),
        (f"{LLAMAFACTORY}cutoff_len: 2048\noverwrite_cache: true\nbase_model: org/model\n", ["llamafactory"]),
        (f"{LLAMAFACTORY}{AXOLOTL}", []),
    ],
)
def test_a_key_of_a_sister(tmp_path: Path, text: str, owner: list[str]) -> None:
    """One key of another program throws nothing away where enough keys are one program's alone."""
    write(tmp_path, {"config.yaml": text})
    assert owners(tmp_path, "config.yaml") == owner


def test_words_that_code_replaces(tmp_path: Path) -> None:
    """A template whose words the repository's code turns into values before it starts Axolotl."""
    text = AXOLOTL.replace("[{path: a/b, type: alpaca}]", "auto") + "flash_attention: auto\n"
    text = text.replace("0.0002", "auto")
    code = (
        "config = yaml.safe_load(open(path))\n"
        "def set_where_auto(config, key, value):\n    if config[key] in ('auto', None):\n        config[key] = value\n"
        "set_where_auto(config, 'flash_attention', True)\nset_where_auto(config, 'learning_rate', rate(config))\n"
        "if config['datasets'] == 'auto':\n    config['datasets'] = [{'path': given}]\n"
    )
    write(tmp_path, {"config.yaml": text, "requirements.txt": "axolotl==0.12.2\n"})
    said = {finding.field for finding in lint([tmp_path / "config.yaml"]).active}
    assert said == {"datasets", "flash_attention", "learning_rate"}
    write(tmp_path, {"train.py": code})
    assert not lint([tmp_path / "config.yaml"]).findings


def test_a_fork_may_accept_what_every_release_refuses(tmp_path: Path) -> None:
    """Also where a companion bounds the release that the fork was made of."""
    config = f"{AXOLOTL}sample_packing: maybe\n"
    for source, level in (("axolotl-ai-cloud", "error"), ("me", "warning")):
        pins = f"axolotl @ git+https://github.com/{source}/axolotl@0123456789abcdef\ntransformers==4.55.2\n"
        write(tmp_path, {"config.yaml": config, "requirements.txt": pins})
        findings = lint([tmp_path / "config.yaml"]).active
        assert [f.level.value for f in findings if f.field == "sample_packing"] == [level]


OLD_COMPONENTS = """checkpointer:
  _component_: torchtune.utils.FullModelHFCheckpointer
metric_logger:
  _component_: torchtune.utils.metric_logging.DiskLogger
"""


@pytest.mark.parametrize(
    ("text", "pins", "level"),
    [
        (OLD_COMPONENTS, "", "warning"),
        (OLD_COMPONENTS, "torchtune==0.6.1\n", "error"),
        (OLD_COMPONENTS.partition("metric_logger")[0], "", "error"),
        (f"{OLD_COMPONENTS}profiler:\n  _component_: torchtune.training.setup_torch_profiler\n", "", "error"),
    ],
)
def test_components_of_releases_that_are_not_known(tmp_path: Path, text: str, pins: str, level: str) -> None:
    """A config that was written for an older torchtune throughout is one for it, where nothing states another."""
    write(tmp_path, {"config.yaml": text, "requirements.txt": pins})
    findings = lint([tmp_path / "config.yaml"]).active
    assert {finding.level.value for finding in findings if finding.rule == "TT303"} == {level}


def test_a_script_beside_configs_of_another_release(tmp_path: Path) -> None:
    """A command in a script runs with the release of the script's folder, whatever a config elsewhere is for."""
    config = "model:\n  _component_: torchtune.models.llama3.llama3_8b\n"
    script = "tune run lora_finetune_single_device --config llama3_2/1B_lora\n"
    write(tmp_path, {"a/x.yaml": config, "a/requirements.txt": "torchtune==0.5.0\n", "b/run.sh": script})
    assert not lint([tmp_path]).findings
    write(tmp_path, {"b/y.yaml": config, "b/requirements.txt": "torchtune==0.6.1\n"})
    (found,) = lint([tmp_path]).active
    assert (Path(found.path).name, found.rule, found.program_versions) == ("run.sh", "TT403", ("0.6.1",))


def test_a_statement_that_is_passed_over_is_shown(tmp_path: Path) -> None:
    """What counts, and what the repository says besides."""
    write(
        tmp_path,
        {
            "config.yaml": AXOLOTL,
            "requirements.txt": "axolotl==0.9.2\n",
            "setup.sh": "pip install -r requirements.txt\npip install axolotl==0.10.0\n",
        },
    )
    (shown,) = Run(Overrides()).files([tmp_path])
    (owned,) = (one for one in shown.owned if not one.claim.lost)
    assert [(Path(place).name, said) for place, said in owned.passed_over] == [("requirements.txt:1", "0.9.2")]
    text = as_text([shown]).splitlines()
    assert text[2].startswith("    release 0.10.0, stated in ")
    assert text[3].startswith("    passed over: ")
    assert text[3].endswith("requirements.txt:1 (0.9.2)")


def test_one_notice_for_each_program(tmp_path: Path) -> None:
    """However different the releases are that the files of a program may be for."""
    arguments = ARGUMENTS + "dataset_name: org/data\n"
    write(tmp_path, {"a.yaml": arguments, "b.yaml": f"{arguments}num_generations: 4\n"})
    (notice,) = lint([tmp_path]).notices
    assert notice.startswith("no file states the release of TRL: checked for 0.11 to 1.16; pin it")


@pytest.mark.parametrize("pins", ["", "trl @ git+https://github.com/huggingface/trl@main\n", "trl==0.11.4\n"])
def test_a_key_that_no_release_has(tmp_path: Path, pins: str) -> None:
    """One that is almost a key of some release is a mistake in all of them."""
    text = f"{ARGUMENTS}dataset_name: org/data\ndataset_configs: [all]\n"
    write(tmp_path, {"config.yaml": text, "requirements.txt": pins})
    found = [f for f in lint([tmp_path / "config.yaml"]).active if f.field == "dataset_configs"]
    assert [(f.rule, f.level.value, "dataset_config" in (f.help or "")) for f in found] == [("FS215", "warning", True)]


def test_a_file_of_trl_that_nothing_can_read(tmp_path: Path) -> None:
    text = f"{ARGUMENTS}hub_model_id: *name*version\n"
    write(tmp_path, {"config.yaml": text})
    (found,) = lint([tmp_path]).active
    assert (found.rule, found.program, found.level.value) == ("TL001", "trl", "error")


LAUNCH = "accelerate launch train.py config.yaml"


@pytest.mark.parametrize(
    ("scripts", "said"),
    [
        ({}, True),
        ({"a.sh": f"{LAUNCH} --learning_rate=2e-5\n"}, False),
        ({"a.sh": f"{LAUNCH} --learning_rate=2e-5\n{LAUNCH}\n"}, True),
        ({"a.sh": "trl sft --config config.yaml --learning_rate 2e-5\n"}, False),
    ],
)
def test_text_that_every_launch_overrides(tmp_path: Path, scripts: dict[str, str], said: bool) -> None:
    """What the file says of an argument never counts where each launch gives it."""
    text = f"{ARGUMENTS}dataset_name: org/data\n".replace("2.0e-5", "2e-x")
    write(tmp_path, {"config.yaml": text, "requirements.txt": "trl==0.11.4\n", **scripts})
    assert any(f.field == "learning_rate" for f in lint([tmp_path]).active) is said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", ["FS512"]),
        ("register_template(name='mine', format_user=f)\n", []),
        ("register_template(name='other')\n", ["FS512"]),
    ],
)
def test_a_template_that_code_registers(tmp_path: Path, code: str, said: list[str]) -> None:
    """Code of the repository may give LLaMA-Factory templates that no release has."""
    text = LLAMAFACTORY.replace("template: qwen", "template: mine")
    write(tmp_path, {"sft.yaml": text, "plugin/register.py": code})
    (tmp_path / ".git").mkdir()
    assert [f.rule for f in lint([tmp_path / "sft.yaml"]).active if f.rule == "FS512"] == said


RUNTIME = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: mine}
spec:
  mlPolicy: {numNodes: 1, torch: {numProcPerNode: 1}}
  template: {spec: {replicatedJobs: []}}
"""
OF_2_1 = JOB.replace("1.done", "done").replace("torch-distributed}", "mine, kind: TrainingRuntime}")
OF_2_1 += "  podTemplateOverrides:\n    - targetJobs: [{name: node}]\n      spec: {nodeSelector: {a: b}}\n"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, True),
        ({"a/job.yaml": OF_2_1}, False),
        ({"b/job.yaml": OF_2_1}, False),
        ({"a/job.yaml": OF_2_1.replace("mine", "other")}, True),
        ({"a/job.yaml": OF_2_1.partition("  podTemplate")[0], "b/job.yaml": OF_2_1}, True),
    ],
)
def test_the_runtime_of_a_job_is_for_its_release(tmp_path: Path, files: dict[str, str], said: bool) -> None:
    """A job with fields of one release runs there, and so does the runtime that it names; the nearest job tells."""
    write(tmp_path, {"a/runtime.yaml": RUNTIME, **files})
    found = [f.rule for f in lint([tmp_path]).active if f.path.endswith("runtime.yaml")]
    assert ("TJ011" in found) is said


def test_a_file_whose_comment_names_the_command(tmp_path: Path) -> None:
    """A few arguments are TRL's where the file itself says which command reads it."""
    text = "model_name_or_path: org/model\ndataset_name: org/data\nlearning_rate: 0.0001\nlr_scheduler_type: cosine\n"
    write(tmp_path, {"a.yaml": text, "b.yaml": f"# use it like that: `trl sft --config config.yaml`\n{text}"})
    assert (owners(tmp_path, "a.yaml"), owners(tmp_path, "b.yaml")) == ([], ["trl"])


PLAIN = """model: org/model
output_dir: out
max_steps: 30
per_device_train_batch_size: 1
learning_rate: 2e-5
warmup_steps: 5
"""


@pytest.mark.parametrize(
    ("files", "owner"),
    [
        ({}, ["transformers"]),
        ({"README.md": "```shell\nCUDA_VISIBLE_DEVICES=1 tuner sft ./conf/a.yaml\n```\n"}, []),
        ({"run.sh": "uv run tuner grpo-train --verbose --config conf/a.yaml\n"}, []),
        ({"run.sh": "cd conf\ntuner pre-train --config=a.yaml\n"}, []),
        ({".github/workflows/a.yml": "jobs:\n  a:\n    steps:\n      - run: tuner train conf/a.yaml\n"}, []),
        ({"run.sh": "tuner train conf/b.yaml\n", "conf/b.yaml": PLAIN}, ["transformers"]),
        ({"run.sh": "tuner show conf/a.yaml\n"}, ["transformers"]),
        ({"run.sh": "torchrun train.py conf/a.yaml\ntuner train conf/a.yaml\n"}, ["transformers"]),
        ({"run.sh": "tuner train conf/a.yaml\n", "a.py": "read('conf/a.yaml')\n"}, ["transformers"]),
        ({"run.sh": "tuner train conf/a.yaml\n", "tuner/cli.py": "\n"}, ["transformers"]),
        (
            {"run.sh": "tuner train conf/a.yaml\n", "pyproject.toml": '[project.scripts]\ntuner = "mine:run"\n'},
            ["transformers"],
        ),
        ({"run.sh": "git train conf/a.yaml\n"}, ["transformers"]),
    ],
)
def test_a_command_of_an_unknown_program(tmp_path: Path, files: dict[str, str], owner: list[str]) -> None:
    """Names of training arguments do not tell whose a file is that a command hands to a program of its own."""
    write(tmp_path, {"conf/a.yaml": PLAIN, **files})
    (tmp_path / ".git").mkdir()
    assert owners(tmp_path, "conf/a.yaml") == owner


def test_a_command_of_an_unknown_program_with_a_model_and_a_dataset(tmp_path: Path) -> None:
    """Also where a model and a dataset are named as TRL names them, but not where a command of TRL reads the file."""
    write(tmp_path, {"a.yaml": f"{ARGUMENTS}dataset_name: org/data\n", "run.sh": "tuner sft a.yaml\n"})
    assert owners(tmp_path, "a.yaml") == []
    write(tmp_path, {"run.sh": "tuner sft a.yaml\ntrl sft --config a.yaml\n"})
    assert owners(tmp_path, "a.yaml") == ["trl"]


@pytest.mark.parametrize(
    ("files", "owner"),
    [
        ({}, []),
        ({"requirements.txt": "transformers\n"}, ["transformers"]),
        ({"train.py": "from trl import SFTTrainer\n"}, ["transformers"]),
        ({"run.sh": "torchrun train.py\n"}, ["transformers"]),
        ({"train.py": "import torch\n"}, []),
    ],
)
def test_keys_of_no_reader(tmp_path: Path, files: dict[str, str], owner: list[str]) -> None:
    """Many keys that no release knows, in a repository that uses nothing of Transformers."""
    foreign = "sequence_len: 4096\nsample_packing: true\nrecipe: bf16\nlora: true\nlora_rank: 16\n"
    write(tmp_path, {"a.yaml": PLAIN + foreign, **files})
    (tmp_path / ".git").mkdir()
    assert owners(tmp_path, "a.yaml") == owner


OWN_CONFIG = """from dataclasses import dataclass
@dataclass
class Mine(BASE):
    FIELD
    def __post_init__(self):
        BODY
parser = HfArgumentParser((ModelArguments, Mine))
"""


@pytest.mark.parametrize(
    ("base", "field", "body", "line", "said"),
    [
        ("Other", "weight_decay: str = '0'", "pass", "weight_decay: 1e-2", []),
        ("Other", "weight_decay: Optional[Union[float, str]] = 0", "pass", "weight_decay: 1e-2", []),
        ("Other", "weight_decay: float | None = 0", "pass", "weight_decay: 1e-2", ["FS203"]),
        ("Other", "weight_decay: 'float' = 0", "pass", "weight_decay: 1e-2", ["FS203"]),
        ("Other", "optim: str = 'mine'", "pass", "optim: mine", []),
        ("TrainingArguments", "optim: str = 'adamw_torch'", "pass", "optim: mine", ["FS201"]),
        ("Other", "x: int = 0", "pass", "dataloader_num_workers: null", ["FS227"]),
        ("TrainingArguments", "x: int = 0", "pass", "dataloader_num_workers: null", []),
        (
            "Other",
            "x: int = 0",
            "if self.dataloader_num_workers is None: self.dataloader_num_workers = 8",
            "dataloader_num_workers: null",
            [],
        ),
        (
            "TrainingArguments",
            "x: int = 0",
            "self.report_to = self.report_to or []",
            "report_to: null\noptim: null",
            ["FS201"],
        ),
        (
            "TrainingArguments",
            "x: int = 0",
            "self.optim = 'adamw_torch' if not self.optim else self.optim",
            "optim: null",
            [],
        ),
    ],
)
def test_fields_of_own_classes(tmp_path: Path, base: str, field: str, body: str, line: str, said: list[str]) -> None:
    """A field that a class of the repository annotates is of that type; a null that its code fills in is meant."""
    code = OWN_CONFIG.replace("BASE", base).replace("FIELD", field).replace("BODY", body)
    arguments = "".join(line for line in ARGUMENTS.splitlines(keepends=True) if "max_seq" not in line)
    pins = "transformers==4.57.0\n"
    write(tmp_path, {"a.yaml": f"{arguments}{line}\n", "train.py": code, "requirements.txt": pins})
    assert [f.rule for f in lint([tmp_path / "a.yaml"]).active] == said


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", ["FS210"]),
        (OWN_CONFIG.replace("FIELD", "dataloader_num_workers: int = 4"), []),
        (OWN_CONFIG.replace("FIELD", "dataloader_num_workers: int = field(default=4)"), []),
        (OWN_CONFIG.replace("FIELD", "dataloader_num_workers: int = field(default_factory=count)"), []),
        (OWN_CONFIG.replace("FIELD", "dataloader_num_workers: int = -1"), []),
        (OWN_CONFIG.replace("FIELD", "dataloader_num_workers: int = 0"), ["FS210"]),
        (OWN_CONFIG.replace("FIELD", "dataloader_num_workers: int = field(default=0)"), ["FS210"]),
        (OWN_CONFIG.replace("FIELD", "dataloader_num_workers: int"), ["FS210"]),
        ("args = TrainingArguments(**settings, dataloader_num_workers=4)\n", []),
        ("args = TrainingArguments(output_dir=join(a, b), dataloader_num_workers=4, **settings)\n", []),
        ("settings['dataloader_num_workers'] = 4\nargs = TrainingArguments(**settings)\n", []),
        ("args = LoaderConfig(**settings, dataloader_num_workers=4)\n", ["FS210"]),
        ("args = TrainingArguments(**settings, logging_steps=4)\n", ["FS210"]),
    ],
)
def test_defaults_that_code_changes(tmp_path: Path, code: str, said: list[str]) -> None:
    """What the file leaves out has the release's default, unless code of the repository gives another value."""
    text = f"{ARGUMENTS.replace('max_seq_length: 1024', 'dataloader_prefetch_factor: 2')}"
    code = code.replace("BASE", "TrainingArguments").replace("BODY", "pass")
    write(tmp_path, {"a.yaml": text, "train.py": code, "requirements.txt": "transformers==4.57.0\n"})
    assert [f.rule for f in lint([tmp_path / "a.yaml"]).active] == said


PARTS = {
    "trl": "model_name_or_path: org/model\noutput_dir: out\nper_device_train_batch_size: 2\nlearning_rate: 1.0e-4\n"
    "dataset_name: org/data\nload_best_model_at_end: true\nsave_strategy: steps\nnum_train_epochs: 1\n",
    "llamafactory": "stage: sft\ndo_train: true\nfinetuning_type: lora\ntemplate: llama3\noutput_dir: out\n",
    "axolotl": "base_model: org/model\nadapter: lora\nlora_r: 8\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\n"
    "learning_rate: 0.0001\n",
    "torchtune": "output_dir: out\ntokenizer:\n  _component_: torchtune.models.llama3.llama3_tokenizer\n",
}
COMMANDS = {
    "trl": "trl sft --config a.yaml",
    "llamafactory": "llamafactory-cli train a.yaml",
    "axolotl": "axolotl train a.yaml",
    "torchtune": "tune run full_finetune_single_device --config a.yaml",
}


@pytest.mark.parametrize(
    ("program", "words", "said"),
    [
        ("trl", "", ["FS208"]),
        ("trl", "--eval_strategy steps", []),
        ("trl", "--eval_strategy=$HOW", []),
        ("trl", '"${MORE[@]}"', []),
        ("trl", "--seed $SEED", ["FS208"]),
        ("trl", "--seed=$SEED", ["FS208"]),
        ("llamafactory", "", ["FS503", "FS508"]),
        ("llamafactory", "model_name_or_path=$MODEL dataset=a", []),
        ("llamafactory", "seed=$SEED", ["FS503", "FS508"]),
        ("llamafactory", "$MORE", []),
        ("axolotl", "", ["FS403"]),
        ("axolotl", "$MORE", []),
        ("axolotl", "--seed $SEED", ["FS403"]),
        ("torchtune", "$MORE", []),
    ],
)
def test_what_a_command_line_may_give(tmp_path: Path, program: str, words: str, said: list[str]) -> None:
    """What the file leaves out is not missing where the command that reads it gives it, or may give it."""
    pins = "trl==0.17.0\ntransformers==4.51.3\nllamafactory==0.9.3\naxolotl==0.13.2\ntorchtune==0.6.1\n"
    write(tmp_path, {"a.yaml": PARTS[program], "run.sh": f"{COMMANDS[program]} {words}\n", "requirements.txt": pins})
    assert [f.rule for f in lint([tmp_path / "a.yaml"]).active] == said


@pytest.mark.parametrize("program", ["llamafactory", "axolotl", "trl"])
@pytest.mark.parametrize("words", ["$MORE", ""])
def test_what_a_documented_command_may_give(tmp_path: Path, program: str, words: str) -> None:
    """A command that a README shows counts where no script has one."""
    readme = f"# a\n\n```bash\n{COMMANDS[program]} {words}\n```\n"
    pins = "trl==0.17.0\ntransformers==4.51.3\nllamafactory==0.9.3\naxolotl==0.13.2\n"
    write(tmp_path, {"a.yaml": PARTS[program], "README.md": readme, "requirements.txt": pins})
    (tmp_path / ".git").mkdir()
    assert [f.rule for f in lint([tmp_path / "a.yaml"]).active if f.rule in ("FS208", "FS403", "FS503")] == (
        [] if words else [{"llamafactory": "FS503", "axolotl": "FS403", "trl": "FS208"}[program]]
    )
    write(tmp_path, {"run.sh": f"{COMMANDS[program]}\n"})
    assert any(f.rule in ("FS208", "FS403", "FS503") for f in lint([tmp_path / "a.yaml"]).active)


def test_a_part_of_a_recipe_alone_lacks_a_parameter(tmp_path: Path) -> None:
    """The counterpart of the open command line: nothing gives what the tokenizer requires."""
    write(tmp_path, {"a.yaml": PARTS["torchtune"], "requirements.txt": "torchtune==0.6.1\n"})
    assert [f.rule for f in lint([tmp_path / "a.yaml"]).active] == ["TT305"]


INTO_OPTIONS = """import argparse, yaml
from transformers import Trainer
parser = argparse.ArgumentParser()
parser.add_argument("--output_dir")
parser.add_argument("--learning_rate")
parser.add_argument("--per_device_train_batch_size")
parser.add_argument("--num_train_epochs")
settings = yaml.safe_load(open(path))
"""


PICKS = """import yaml
from transformers import Trainer, TrainingArguments
settings = yaml.safe_load(open(path))
args = TrainingArguments(num_train_epochs=settings["epochs"], optim=settings.get("which_optimizer"))
"""


@pytest.mark.parametrize(
    ("code", "owner"),
    [
        (PICKS, []),
        (PICKS.replace("epochs=", "epochs=1 or ").replace('"which_optimizer"', "name"), ["transformers"]),
        (f"{PICKS}more = TrainingArguments(**settings)\n", ["transformers"]),
        (f"{PICKS}(more,) = HfArgumentParser(Mine).parse_yaml_file(path)\n", ["transformers"]),
        (PICKS.replace("yaml.safe_load(open(path))", "dict(os.environ)"), ["transformers"]),
    ],
)
def test_keys_that_code_picks(tmp_path: Path, code: str, owner: list[str]) -> None:
    """A script that loads a file and reads keys of its own from it, one by one, is its reader."""
    write(tmp_path, {"a.yaml": f"{ARGUMENTS}epochs: 2\nwhich_optimizer: sgd\n", "train.py": code})
    assert owners(tmp_path, "a.yaml") == owner


@pytest.mark.parametrize(
    ("code", "owner"),
    [
        (f"{INTO_OPTIONS}parser.set_defaults(**settings)\n", []),
        (f"{INTO_OPTIONS}args = argparse.Namespace(**settings)\n", []),
        (f"{INTO_OPTIONS}vars(args).update(settings)\n", []),
        (f"{INTO_OPTIONS}for key, value in settings.items():\n    setattr(args, key, value)\n", []),
        (INTO_OPTIONS, ["transformers"]),
        ("parser.set_defaults(**yaml.safe_load(path))\nparser.add_argument('--output_dir')\n", ["transformers"]),
    ],
)
def test_options_of_an_own_parser(tmp_path: Path, code: str, owner: list[str]) -> None:
    """A script that reads files into the options of its own parser, most of which a file gives, is its reader."""
    write(tmp_path, {"a.yaml": ARGUMENTS, "train.py": code})
    assert owners(tmp_path, "a.yaml") == owner


CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clustertrainingruntimes.trainer.kubeflow.org}
spec:
  names: {kind: ClusterTrainingRuntime}
  versions:
  - name: v1alpha1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {mlPolicy: {type: object, properties: {POLICIES}}}
"""
JAX_RUNTIME = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: own, labels: {trainer.kubeflow.org/framework: jax}}
spec: {mlPolicy: {jax: {}}}
"""
OLD = "torch: {type: object, properties: {elasticPolicy: {type: object}}}"
NEW = "jax: {type: object}"


@pytest.mark.parametrize(
    ("policies", "source", "releases", "refused"),
    [
        (NEW, {}, ("2.2", "2.3"), False),
        (OLD, {}, ("2.0", "2.1"), True),
        (f"{OLD}, {NEW}", {}, ("2.2.dev0",), False),
        (f"{OLD}, {NEW}, mine: {{type: object}}", {}, ("2.2.dev0",), False),
        (NEW, {"VERSION": "v2.1.0\n"}, ("2.2", "2.3"), False),
        (OLD, {"VERSION": "v2.1.0\n"}, ("2.1.0",), True),
        (
            NEW,
            {"charts/kubeflow-trainer/Chart.yaml": "apiVersion: v2\nname: kubeflow-trainer\nversion: 2.1.0\n"},
            ("2.1.0",),
            True,
        ),
    ],
)
def test_crds(tmp_path: Path, policies: str, source: dict[str, str], releases: tuple[str, ...], refused: bool) -> None:
    """CRDs say which release they are of, or between which; what they declare is no unknown field."""
    module = {"go.mod": "module github.com/kubeflow/trainer/v2\n"} if "VERSION" in source else {}
    crd = CRD.replace("POLICIES", policies)
    write(tmp_path, {"jobs/runtime.yaml": JAX_RUNTIME, "crds/crd.yaml": crd, **module, **source})
    (tmp_path / ".git").mkdir()
    (shown,) = Run(Overrides()).files([tmp_path / "jobs" / "runtime.yaml"])
    assert [one.target and one.target.versions for one in shown.owned] == [releases]
    assert any(f.rule == "TJ011" for f in lint([tmp_path / "jobs" / "runtime.yaml"]).active) is refused


@pytest.mark.parametrize(
    ("head", "line", "owner"),
    [
        ("", "logging_steps: 10", ["transformers"]),
        ("# mine\n# @package _global_\n", "logging_steps: 10", []),
        ("", "logging_steps: ???", []),
        ("", "run_name: what ???", ["transformers"]),
        ("# of the @package\n", "logging_steps: 10", ["transformers"]),
    ],
)
def test_files_for_hydra(tmp_path: Path, head: str, line: str, owner: list[str]) -> None:
    """Where its keys go stands above a file for Hydra; what must be given elsewhere is `???`."""
    write(tmp_path, {"a.yaml": f"{head}{ARGUMENTS}{line}\n"})
    assert owners(tmp_path, "a.yaml") == owner


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", ["FS219"]),
        ("schedule = get_scheduler(name, optimizer, scheduler_specific_kwargs=mine)\n", []),
        ("schedule = get_wsd_schedule(optimizer)\n", []),
        ("class Mine(Trainer):\n    def create_scheduler(self, steps, optimizer=None): ...\n", []),
        ("scheduler = None\n", ["FS219"]),
    ],
)
def test_a_schedule_that_code_makes(tmp_path: Path, code: str, said: list[str]) -> None:
    """Code that makes the schedule may know the steps that the file leaves out."""
    text = ARGUMENTS.replace("max_seq_length: 1024", "lr_scheduler_type: warmup_stable_decay")
    write(tmp_path, {"a.yaml": text, "train.py": code, "requirements.txt": "transformers==4.57.0\n"})
    assert [f.rule for f in lint([tmp_path / "a.yaml"]).active] == said


HYDRA = """import hydra
@hydra.main(version_base=None, config_path="../conf", config_name="main")
def main(settings): ...
"""


@pytest.mark.parametrize(
    ("code", "owner"),
    [
        (HYDRA, []),
        (HYDRA.replace("../conf", "../other"), ["transformers"]),
        (HYDRA.replace("../conf", "../con"), ["transformers"]),
        (f"{HYDRA}args = TrainingArguments(**settings.train)\n", ["transformers"]),
        (HYDRA.replace("hydra.main", "other.main"), ["transformers"]),
    ],
)
def test_files_that_hydra_composes(tmp_path: Path, code: str, owner: list[str]) -> None:
    """What lies in the folder from which a script has its settings composed is Hydra's, if no trainer gets it whole."""
    write(tmp_path, {"conf/train/a.yaml": ARGUMENTS, "src/app.py": code})
    (tmp_path / ".git").mkdir()
    assert owners(tmp_path, "conf/train/a.yaml") == owner
