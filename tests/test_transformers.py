"""transformers: which files are training arguments, how values reach the Trainer, and what a launcher's config adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Finding, Severity
from trainlint.programs.table import PROGRAMS
from trainlint.programs.transformers.arguments import Arguments, ArgumentsFile, arguments_in
from trainlint.programs.transformers.facts import SwitchForm, transformers_facts
from trainlint.programs.transformers.fsdp import FsdpConfig
from trainlint.programs.transformers.setup import fsdp_setup
from trainlint.reading.document import documents
from trainlint.reading.text import Text
from trainlint.recognise import recognised
from trainlint.settings import Overrides

BASE = "output_dir: out\nper_device_train_batch_size: 8\nlearning_rate: 2.0e-5\nnum_train_epochs: 1\n"


def _arguments(text: str, release: str = "5.24.0") -> Arguments:
    document = next(documents("args.yaml", Text(text)))
    file = arguments_in(document)[0]
    facts = transformers_facts(release)
    config = file.field.get("fsdp_config")
    return Arguments(file, facts, FsdpConfig(config, facts) if config.is_mapping else None)


def _findings(root: Path, files: dict[str, str], *targets: str) -> list[Finding]:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    overrides = Overrides(targets={k: v for target in targets for k, v in parse_target(target).items()})
    return list(lint([root], overrides).active)


def _said(findings: list[Finding]) -> list[tuple[str, str, int]]:
    return [(Path(f.span.path).name, f.rule, f.span.line) for f in findings]


@pytest.mark.parametrize(
    ("text", "wholes"),
    [
        (BASE, [True]),
        ("fsdp: full_shard\nlearning_rate: 1.0\n", [True]),
        ("fsdp: [full_shard]\noutput_dir: out\n", [True]),
        ("save_strategy: epoch\nnum_train_epochs: 1\nlr_scheduler_type: cosine\n", [True]),
        ("fsdp: {sharding_strategy: FULL_SHARD}\ntraining: {learning_rate: 1.0}\n", []),
        ("output_dir: out\nlearning_rate: 1.0\n", []),
        (BASE + "stage: sft\nfinetuning_type: lora\n", []),
        (BASE + "base_model: org/model\n", []),
        (BASE + "with_tracking: true\n", []),
        ("training:\n" + "".join(f"  {line}\n" for line in (BASE + "bf16: true").splitlines()), [False]),
        ("training:\n" + "".join(f"  {line}\n" for line in BASE.splitlines()) + "  a: 1\n  b: 2\n  c: 3\n", []),
        ("- " + BASE.replace("\n", "\n  ").rstrip() + "\n", []),
    ],
)
def test_recognition(text: str, wholes: list[bool]) -> None:
    """A document of arguments, a section that is nearly all arguments, and look-alikes."""
    document = next(documents("args.yaml", Text(text)))
    found = recognised(document, [PROGRAMS["transformers"]])
    assert [subject.whole for _, subject in found if isinstance(subject, ArgumentsFile)] == wholes


@pytest.mark.parametrize(
    ("written", "known"),
    [("true", True), ("1", True), ("0", False), ("'yes'", True), ("'false'", None), ("maybe", None), ("${A}", None)],
)
def test_switch(written: str, known: bool | None) -> None:
    """A text is only told where every parser takes it alike."""
    assert _arguments(BASE + f"bf16: {written}\n").switch("bf16").known is known


def test_steps_fall_back() -> None:
    """Evaluation goes by logging where it has no steps, and by the release's default where that has none."""
    assert _arguments(BASE).steps("eval_steps").known == 500
    assert _arguments(BASE + "logging_steps: 30\neval_steps: 0\n").steps("eval_steps").known == 30
    assert _arguments(BASE + "logging_steps:\n").steps("logging_steps").known is None


@pytest.mark.parametrize(
    ("release", "strategy"), [("4.40.2", "epoch"), ("4.46.3", "epoch"), ("4.51.3", None), ("5.24.0", None)]
)
def test_evaluation_strategy(release: str, strategy: str | None) -> None:
    """The old name counts as long as it is read; then the author means something that the release does not know."""
    assert _arguments(BASE + "evaluation_strategy: epoch\n", release).eval_strategy.known == strategy


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("gradient_acumulation_steps", "gradient_accumulation_steps"),
        ("per-device-eval-batch-size", "per_device_eval_batch_size"),
        ("learning_rtae", "learning_rate"),
        ("learnin_rtae", None),
        ("use_gpu", None),
        ("tokenizer_name", None),
    ],
)
def test_near_miss(name: str, near: str | None) -> None:
    """Two edits, hyphens apart, in names that are long enough; one of an argument that is given."""
    assert _arguments(BASE).near_miss(name) == near


@pytest.mark.parametrize(
    ("release", "key", "version", "form"),
    [
        ("4.40.2", "forward_prefetch", 1, SwitchForm.TEXT),
        ("4.40.2", "cpu_ram_efficient_loading", 1, None),
        ("4.57.6", "forward_prefetch", 1, SwitchForm.WORD),
        ("4.57.6", "activation_checkpointing", 1, SwitchForm.TRUTH),
        ("5.0.0", "sync_module_states", 2, SwitchForm.WORD),
        ("5.24.0", "sync_module_states", 2, None),
        ("5.24.0", "activation_checkpointing", 2, SwitchForm.WORD),
        ("5.24.0", "cpu_offload", 2, SwitchForm.TRUTH),
        ("5.24.0", "min_num_params", 2, None),
    ],
)
def test_switch_forms(release: str, key: str, version: int, form: SwitchForm | None) -> None:
    """How a switch of fsdp_config is read, by release and FSDP version."""
    assert transformers_facts(release).switch_form(key, version) is form


@pytest.mark.parametrize(
    ("release", "config", "version", "policy"),
    [
        ("4.57.6", "version: 2", 1, "TRANSFORMER_BASED_WRAP"),
        ("4.57.6", "min_num_params: 2000", 1, "SIZE_BASED_WRAP"),
        ("5.0.0", "version: '2'", 2, "TRANSFORMER_BASED_WRAP"),
        ("5.24.0", "limit_all_gathers: true", 2, "TRANSFORMER_BASED_WRAP"),
        ("5.24.0", "fsdp_version: 1\n  version: 2", 1, "TRANSFORMER_BASED_WRAP"),
        ("4.46.3", "fsdp_min_num_params: 2000", 1, "TRANSFORMER_BASED_WRAP"),
    ],
)
def test_setup(release: str, config: str, version: int, policy: str) -> None:
    """The FSDP version that runs and how the model is wrapped."""
    setup = fsdp_setup(_arguments(BASE + f"fsdp: full_shard auto_wrap\nfsdp_config:\n  {config}\n", release))
    assert setup is not None
    assert (setup.runs_version, setup.wrap_policy.known) == (version, policy)


@pytest.mark.parametrize(
    ("release", "config", "rules"),
    [
        ("4.57.6", "min_num_params: 1.0e+6", ["FS008"]),
        ("5.24.0", "auto_wrap_policy: SIZE_BASED_WRAP\n  min_num_params: 1.0e+6", ["FS008"]),
        ("5.24.0", "auto_wrap_policy: SIZE_BASED_WRAP\n  min_num_params:", ["FS008"]),
        ("5.24.0", "state_dict_type: '3'", []),
        ("5.24.0", "state_dict_type: '2'", ["FS006"]),
        ("5.24.0", "state_dict_type: SHARDED", ["FS006"]),
        ("5.24.0", "activation_checkpointing:", ["FS007"]),
        ("5.24.0", "backward_prefetch: always", []),
        ("5.24.0", "version: 1\n  backward_prefetch:", ["FS005"]),
        ("5.24.0", "transformer_layer_cls_to_wrap: [A, 'B, C']", ["FS009"]),
        ("5.24.0", "version: v2", ["FS002"]),
        ("5.24.0", "reshard_after_forward: full_shard", ["FS011"]),
        ("5.24.0", "version: 1\n  reshard_after_forward: true", ["FS021"]),
    ],
)
def test_setting(tmp_path: Path, release: str, config: str, rules: list[str]) -> None:
    """What the rules that all programs share make of a setting, notes apart."""
    text = BASE + f"fsdp: full_shard auto_wrap\nfsdp_config:\n  {config}\n"
    found = _findings(tmp_path, {"args.yaml": text}, f"transformers={release}")
    assert [f.rule for f in found if f.level is not Severity.NOTE] == rules


@pytest.mark.parametrize("fsdp", ["false", "''", "null"])
def test_switched_off(fsdp: str) -> None:
    """Settings below an `fsdp` that is off are left over."""
    assert fsdp_setup(_arguments(BASE + f"fsdp: {fsdp}\nfsdp_config: {{version: 2}}\n")) is None


LAUNCHER = """\
compute_environment: LOCAL_MACHINE
distributed_type: FSDP
mixed_precision: bf16
num_machines: 1
num_processes: 8
fsdp_config:
  fsdp_version: 2
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
  fsdp_state_dict_type: SHARDED_STATE_DICT
  fsdp_activation_checkpointing: true
"""


def test_launched_with_an_accelerate_config(tmp_path: Path) -> None:
    """FSDP in the launcher's file against what the arguments ask for."""
    arguments = (
        BASE + "gradient_checkpointing: true\nsave_only_model: true\noptim: adamw_bnb_8bit\ndeepspeed: ds.json\n"
    )
    run = "accelerate launch --config_file conf/fsdp.yaml train.py --lr 1 args.yaml\n"
    found = _findings(tmp_path, {"args.yaml": arguments, "conf/fsdp.yaml": LAUNCHER, "run.sh": run})
    assert _said(found) == [
        ("args.yaml", "FS040", 5),
        ("args.yaml", "FS041", 6),
        ("args.yaml", "FS043", 7),
        ("args.yaml", "FS045", 8),
    ]
    assert [Path(r.span.path).name for r in found[0].related] == ["fsdp.yaml"]


@pytest.mark.parametrize(
    "run",
    [
        "accelerate launch --config_file fsdp.yaml train.py other.yaml",
        "accelerate launch --config_file fsdp.yaml train.py args.yaml --gradient_checkpointing false",
        "accelerate launch --config_file fsdp.yaml --multi_gpu train.py args.yaml",
        "python train.py args.yaml",
    ],
)
def test_not_launched_so(tmp_path: Path, run: str) -> None:
    """Another file, an argument that the command line gives itself, FSDP turned off by a flag, no launcher."""
    files = {"args.yaml": BASE + "gradient_checkpointing: true\n", "fsdp.yaml": LAUNCHER, "run.sh": run + "\n"}
    assert "FS040" not in {f.rule for f in _findings(tmp_path, files)}


def test_on_the_cpu_nothing_meets(tmp_path: Path) -> None:
    """use_cpu turns FSDP off, and with it what FSDP excludes."""
    text = (
        BASE
        + "use_cpu: true\ngradient_checkpointing: true\nfsdp: true\nfsdp_config:\n  activation_checkpointing: true\n"
    )
    assert {f.rule for f in _findings(tmp_path, {"args.yaml": text})} == {"FS236"}


def test_json_beside(tmp_path: Path) -> None:
    """A JSON file that fsdp_config names counts, and is pointed at."""
    files = {
        "conf/args.yaml": BASE + "fsdp: true\nfsdp_config: fsdp.json\ngradient_checkpointing: true\n",
        "conf/fsdp.json": '{\n  "activation_checkpointing": true,\n  "shard": 1\n}\n',
    }
    assert _said(_findings(tmp_path, files)) == [("args.yaml", "FS040", 7), ("fsdp.json", "FS001", 3)]


def test_json_text(tmp_path: Path) -> None:
    """A JSON object in the file itself, with each key at its place."""
    text = BASE + 'fsdp: true\nfsdp_config: \'{"version": 2, "shard": 1}\'\n'
    [finding] = _findings(tmp_path, {"args.yaml": text})
    assert (finding.rule, finding.span.line, finding.span.column) == ("FS001", 6, 30)


def test_target_from_pins(tmp_path: Path) -> None:
    """The repository's own pin chooses the release."""
    files = {"args.yaml": BASE + "evaluation_strategy: epoch\n", "requirements.txt": "transformers==4.46.3\n"}
    assert _findings(tmp_path, files) == []
    assert [f.rule for f in _findings(tmp_path, files, "transformers=5.24")] == ["FS215"]


def test_between_two_releases(tmp_path: Path) -> None:
    """Only what the neighbours both say is said of a release between them."""
    files = {"args.yaml": BASE + "evaluation_strategy: epoch\noverwrite_output_dir: true\n"}
    assert [f.span.line for f in _findings(tmp_path, files, "transformers=4.50.9")] == []
    assert [f.span.line for f in _findings(tmp_path, files, "transformers=4.58")] == [5]


def test_older_than_known(tmp_path: Path) -> None:
    """Nothing is said of a release that is older than the oldest known."""
    assert _findings(tmp_path, {"args.yaml": BASE + "fsdp: full_shrad\n"}, "transformers=4.30") == []


@pytest.mark.parametrize(
    ("release", "severity"),
    [
        ("4.37.2", Severity.WARNING),
        ("4.38.2", Severity.ERROR),
        ("4.44.2", Severity.ERROR),
        ("4.45.2", Severity.WARNING),
    ],
)
def test_the_search_for_a_batch_size_with_sharding(tmp_path: Path, release: str, severity: Severity) -> None:
    """Refused from 4.38 to 4.44; before and after, every process searches for itself."""
    text = BASE + "fsdp: full_shard auto_wrap\nauto_find_batch_size: true\n"
    found = _findings(tmp_path, {"args.yaml": text}, f"transformers={release}")
    assert [f.severity for f in found if f.rule == "FS046"] == [severity]
