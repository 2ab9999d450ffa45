"""accelerate's config file: what is one, how its values are read, which release says what, and who launches it."""

from __future__ import annotations

from pathlib import Path

import pytest

from surroundings import surroundings
from trainlint.engine import lint
from trainlint.findings import Severity
from trainlint.programs.accelerate.config import AccelerateConfig, ListedConfig, python_text, switch, truthy
from trainlint.programs.accelerate.facts import accelerate_facts
from trainlint.programs.accelerate.program import PROGRAM, fsdp_setup, launched_setups
from trainlint.reading.document import documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import Field, Known
from trainlint.settings import Overrides
from trainlint.targets import Target
from trainlint.training.fsdp import FsdpSetup

NEWEST = "1.15.0"
HEAD = """\
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 1
num_processes: 8
"""


def field(text: str) -> Field:
    return Field.root(next(documents("a.yaml", Text(text))), Dialect.PYYAML)


def setup(text: str, release: str = NEWEST) -> FsdpSetup:
    return fsdp_setup(AccelerateConfig(field(text)), accelerate_facts(release))


def found(folder: Path, text: str, release: str | None = None) -> list[tuple[str, int, Severity]]:
    (folder / "a.yaml").write_text(text)
    targets = {"accelerate": Target((release,))} if release else {}
    report = lint([folder], Overrides(isolated=True, targets=targets))
    return [(f.rule, f.span.line, f.level) for f in report.findings]


@pytest.mark.parametrize(
    "text",
    [
        HEAD,
        "distributed_type: FSDP\nfsdp_config:\n  fsdp_version: 2\n",
        "distributed_type: NO\nmixed_precision: fp8\n",
        "compute_environment: LOCAL_MACHINE\nnum_machines: 1\nnum_processes: 8\n",
        '{"compute_environment": "LOCAL_MACHINE", "distributed_type": "FSDP"}',
    ],
)
def test_config_files(text: str) -> None:
    assert isinstance(PROGRAM.recognise(next(documents("a.yaml", Text(text))))[0], AccelerateConfig)


@pytest.mark.parametrize(
    "text",
    [
        "distributed_type: FSDP\n",
        "compute_environment: prod\nnum_machines: 3\n",
        "output_dir: out\nfsdp: full_shard\nfsdp_config:\n  fsdp_version: 2\n",
        "model_name_or_path: m\naccelerate_config: fsdp1\nnum_processes: 8\n",
        "cluster:\n  distributed_type: FSDP\n  num_machines: 1\n",
        "- a\n- distributed_type\n",
        "distributed_type\n",
    ],
)
def test_other_files(text: str) -> None:
    assert PROGRAM.recognise(next(documents("a.yaml", Text(text)))) == []


def test_a_list_of_settings() -> None:
    (subject,) = PROGRAM.recognise(next(documents("a.yaml", Text("- distributed_type: FSDP\n- num_processes: 8\n"))))
    assert isinstance(subject, ListedConfig)


@pytest.mark.parametrize(
    ("written", "text", "boolean", "true"),
    [
        ("true", "True", True, True),
        ("no", "False", False, False),
        ("'no'", "no", False, True),
        ("0", "0", False, False),
        ("2", "2", None, True),
        ("1.0", "1.0", None, True),
        ("'Y'", "Y", True, True),
        ("null", "None", None, None),
        ("''", "", None, False),
        ("[a]", None, None, True),
        ("{}", None, None, False),
    ],
)
def test_values_as_the_workers_get_them(
    written: str, text: str | None, boolean: bool | None, true: bool | None
) -> None:
    """The workers see Python's text of a value; the launcher asks Python whether the value is true."""
    value = field(f"a: {written}\n").get("a")
    assert python_text(value).known == (text if text != "None" else "None")
    assert switch(value).known is boolean
    assert truthy(value, True).known is (False if written == "null" else true)
    assert python_text(field("b: 1\n").get("a")).absent
    assert truthy(field("b: 1\n").get("a"), True).is_(True)


def test_a_template_is_unknown() -> None:
    config = setup(HEAD + "fsdp_config:\n  fsdp_version: ${VERSION}\n  fsdp_offload_params: '{{ offload }}'\n")
    assert config.version.unknown
    assert config.offload.unknown
    assert config.runs_version is None
    assert not config.is_fsdp1
    assert not config.is_fsdp2


def test_words_and_numbers() -> None:
    text = HEAD + (
        "fsdp_config:\n  sharding_strategy: 2\n  fsdp_backward_prefetch: '1'\n  state_dict_type: sharded_state_dict\n"
        "  auto_wrap_policy: no_wrap\n  fsdp_transformer_layer_cls_to_wrap: A,B\n"
    )
    new, old = setup(text), setup(text, "0.32.1")
    assert new.strategy.is_("SHARD_GRAD_OP")
    assert old.strategy.is_("SHARD_GRAD_OP")
    assert new.backward_prefetch.is_("BACKWARD_PRE")
    assert old.backward_prefetch.is_("1")
    assert new.state_dict_type.is_("SHARDED_STATE_DICT")
    assert old.state_dict_type.is_("sharded_state_dict")
    assert new.wrap_policy.is_("NO_WRAP")
    assert old.wrap_policy.is_("no_wrap")
    assert new.layer_classes.known == ["A", "B"]


def test_the_last_of_two_spellings_counts() -> None:
    assert setup(HEAD + "fsdp_config:\n  fsdp_offload_params: true\n  offload_params: false\n").offload.is_(False)


@pytest.mark.parametrize(
    ("kind", "on", "off"),
    [("FSDP", True, False), ("MULTI_GPU", False, True), ("NO", False, False), ("'NO'", False, False)],
)
def test_sharding(kind: str, on: bool, off: bool) -> None:
    """Without any distribution the file takes no side, so that settings left over contradict nothing."""
    config = setup(HEAD.replace("FSDP", kind))
    assert (config.on, config.off) == (on, off)


def test_versions() -> None:
    assert setup(HEAD).is_fsdp1
    assert setup(HEAD + "fsdp_config: {fsdp_version: '2'}\n").is_fsdp2
    assert setup(HEAD + "fsdp_config: {fsdp_version: 2}\n", "1.5.2").is_fsdp1
    assert setup(HEAD + "fsdp_config: {fsdp_version: 3}\n").runs_version is None


def test_default_state_dict_types() -> None:
    assert setup(HEAD).runs_state_dict_type == "FULL_STATE_DICT"
    assert setup(HEAD + "fsdp_config: {fsdp_version: 2}\n").runs_state_dict_type == "SHARDED_STATE_DICT"


def test_key_lists_by_release() -> None:
    assert "parallelism_config" in accelerate_facts("1.10.1").top_keys
    assert "parallelism_config" not in accelerate_facts("1.9.0").top_keys
    assert "fsdp_version" not in accelerate_facts("1.5.2").fsdp.keys
    assert accelerate_facts("1.5.2").fsdp.key_advice["fsdp_version"] == "remove it, or use Accelerate 1.6 or newer"


@pytest.mark.parametrize(
    ("text", "release", "expected"),
    [
        ("fsdp_state_dict_type: FULL_STATE_DICT", "1.6.0", [("FS006", 8, Severity.ERROR)]),
        ("fsdp_state_dict_type: FULL_STATE_DICT", "1.7.0", []),
        ("fsdp_state_dict_type: FULL_STATE_DICT", "1.6.5", [("FS006", 8, Severity.ERROR)]),
        ("fsdp_activation_checkpointing_offload: true", "1.14.0", [("FS001", 8, Severity.WARNING)]),
        ("fsdp_activation_checkpointing_offload: true", "1.15.0", [("FS012", 8, Severity.ERROR)]),
        ("fsdp_activation_checkpointing_offload: true", "9.9", [("FS012", 8, Severity.ERROR)]),
        ("fsdp_activation_checkpointing_offload: true", "0.19", []),
    ],
)
def test_verdicts_follow_the_release(
    tmp_path: Path, text: str, release: str, expected: list[tuple[str, int, Severity]]
) -> None:
    section = f"fsdp_config:\n  fsdp_version: 2\n  {text}\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
    assert found(tmp_path, HEAD + section, release) == expected


def test_the_known_release_of_a_version() -> None:
    """The same one, else the nearest of its minor release; none for one older than all that are known."""
    assert PROGRAM.in_force("0.30.0").releases == ("0.30.1",)
    assert PROGRAM.in_force("0.32").releases == ("0.32.1",)
    assert PROGRAM.in_force("0.20").releases == ("0.20.3",)
    assert PROGRAM.in_force("0.19").releases == ()
    assert PROGRAM.in_force("0.19").notice


def test_a_broken_file_is_an_error(tmp_path: Path) -> None:
    assert [rule for rule, _, level in found(tmp_path, HEAD + "fsdp_config:\n\tfsdp_version: 2\n")] == ["TL001"]


def test_flags_win(tmp_path: Path) -> None:
    files = {
        "conf/fsdp.yaml": HEAD + "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_version: 1\n",
        "run.sh": "accelerate launch --config_file conf/fsdp.yaml --num-processes 16 --fsdp_version=2 train.py a.yaml\n"
        "accelerate launch --config_file conf/fsdp.yaml --multi_gpu --num_processes $N train.py\n"
        "accelerate launch --config_file other.yaml train.py\n",
    }
    (first, two), (_, plain) = launched_setups(surroundings(tmp_path, files))
    assert [word.known for word in first.rest] == ["a.yaml"]
    assert two.is_fsdp2
    assert two.processes.is_(16)
    assert two.version.field.document.path.endswith("run.sh")
    assert two.strategy.is_("FULL_SHARD")
    assert plain.off
    assert plain.processes.unknown


def test_sections_win_over_flags_up_to_1_4(tmp_path: Path) -> None:
    files = {
        "fsdp.yaml": HEAD + "fsdp_config:\n  fsdp_offload_params: true\n",
        "run.sh": "accelerate launch --config_file fsdp.yaml --fsdp_offload_params false train.py\n",
    }
    for version, offloaded in (("1.4.0", True), ("1.5.2", False)):
        context = surroundings(tmp_path, {**files, "requirements.txt": f"accelerate=={version}\n"})
        ((_, launched),) = launched_setups(context)
        assert launched.offload.is_(offloaded)


def test_a_finding_must_hold_for_every_launch(tmp_path: Path) -> None:
    """One process on two machines is refused, unless every command line says otherwise."""
    text = HEAD.replace("machines: 1", "machines: 2").replace("processes: 8", "processes: 1")
    (tmp_path / "run.sh").write_text("accelerate launch --config_file a.yaml --num_processes 8 train.py\n")
    assert "FS106" not in {rule for rule, _, _ in found(tmp_path, text)}
    (tmp_path / "run.sh").write_text("accelerate launch --config_file a.yaml train.py\n")
    assert "FS106" in {rule for rule, _, _ in found(tmp_path, text)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("job.yaml", "spec:\n  containers:\n  - command: [accelerate, launch]\n    args:\n    - --config_file\n"
         "    - /app/a.yaml\n    - --multi_gpu\n    - train.py\n"),
        ("compose.yaml", "services:\n  a:\n    command: accelerate launch --config_file=a.yaml --multi_gpu train.py\n"),
        ("Makefile", "train:\n\tpython -m accelerate.commands.launch --config-file a.yaml --multi-gpu train.py\n"),
        ("Dockerfile", 'FROM x\nCMD ["accelerate", "launch", "--config_file", "a.yaml", "--multi_gpu", "train.py"]\n'),
    ],
)  # fmt: skip
def test_where_launches_stand(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "a.yaml").write_text(HEAD + "fsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n")
    report = lint([tmp_path], Overrides(isolated=True))
    assert [(f.rule, Path(f.path).name) for f in report.findings] == [("FS130", name)]


def test_world_size() -> None:
    config = AccelerateConfig(field("distributed_type: FSDP\nnum_machines: 2\nnum_processes: 9\n"))
    assert config.world_size == 8
    assert isinstance(config.machines, Known)
    assert AccelerateConfig(field("distributed_type: FSDP\nnum_processes: gpu\n")).world_size is None


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("fsdp_confg", 'did you mean "fsdp_config"?'),
        ("deepspeed_confg", 'did you mean "deepspeed_config"?'),
        ("fsdp_offload_params", "write it inside fsdp_config"),
        ("fsdp_version", "write it inside fsdp_config"),
        ("seed", "remove it"),
    ],
)
def test_advice_for_an_unknown_key(tmp_path: Path, key: str, advice: str) -> None:
    """A misspelt section is not a key that belongs into the section."""
    (tmp_path / "a.yaml").write_text(f"{HEAD}{key}: 1\n")
    findings = lint([tmp_path], Overrides(isolated=True, select=("FS101",))).findings
    assert [(finding.rule, finding.help) for finding in findings] == [("FS101", advice)]
