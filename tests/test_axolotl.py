"""Axolotl: which files are its own, what a release reads in them, and the limits that its facts hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from surroundings import owners
from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Finding
from trainlint.programs.axolotl.facts import UNDECLARED_KEYS
from trainlint.programs.axolotl.program import PROGRAM, AxolotlConfig, fsdp_setup
from trainlint.reading.document import documents
from trainlint.reading.text import Text
from trainlint.settings import Overrides
from trainlint.training.declarations import declarations
from trainlint.training.limits import Limit, limits_of, terms_of

BASE = """\
base_model: a/b
datasets:
  - path: c/d
    type: alpaca
output_dir: ./out
sequence_len: 1024
micro_batch_size: 1
gradient_accumulation_steps: 2
learning_rate: 2e-5
"""
RELEASES = declarations("axolotl").names
LIMITS = [limit for section in limits_of("axolotl").values() for limit in section]


def config(text: str, release: str = RELEASES[-1]) -> AxolotlConfig:
    """A configuration as a release reads it."""
    (document,) = documents("config.yml", Text(BASE + text))
    (subject,) = PROGRAM.recognise(document)
    return AxolotlConfig(subject.field, PROGRAM.facts(release))


def found(tmp_path: Path, text: str, release: str = RELEASES[-1]) -> list[Finding]:
    """The findings on a configuration."""
    (tmp_path / "config.yml").write_text(BASE + text, encoding="utf-8")
    return list(lint([tmp_path], Overrides(targets=parse_target(f"axolotl={release}"))).active)


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("base_model: a/b\ndatasets: []\n", True),
        ("base_model: a/b\nsequence_len: 1\n", True),
        ("base_model: a/b\n", False),
        ("base_model: a/b\nmerge_method: linear\nslices: []\nmodels: []\n", False),
        ("base_model: a/b\nadapter: lora\napiVersion: v1\nkind: ConfigMap\n", False),
        ("micro_batch_size: 1\nsequence_len: 1\nlearning_rate: 1\ndatasets: []\n", True),
        ("micro_batch_size: 1\nsequence_len: 1\n", False),
        ("- base_model: a/b\n", False),
    ],
)
def test_recognise(text: str, ours: bool) -> None:
    """A base model with something that trains it, and none of another program's keys."""
    assert owners(text) == ["axolotl"] * ours


@pytest.mark.parametrize(
    ("text", "release", "on", "version"),
    [
        ("fsdp_config: {auto_wrap_policy: SIZE_BASED_WRAP}\n", "0.21.0", True, 2),
        ("fsdp_config: {auto_wrap_policy: SIZE_BASED_WRAP}\n", "0.19.0", True, 1),
        ("fsdp_config: {fsdp_version: 2}\n", "0.19.0", True, 2),
        ("fsdp_version: '2'\nfsdp_config: {offload_params: true}\n", "0.18.0", True, 2),
        ("fsdp_config: {fsdp_offload_params: true}\n", "0.11.0", False, 1),
        ("fsdp: [full_shard]\nfsdp_config: {fsdp_version: 2}\n", "0.11.0", True, 2),
        ("fsdp: []\nfsdp_config:\n", "0.12.2", False, 1),
        ("fsdp_config: {}\n", "0.21.0", False, 2),
    ],
)
def test_sharding(text: str, release: str, on: bool, version: int) -> None:
    """What switches FSDP on, and which version runs, differ by release."""
    setup = fsdp_setup(config(text, release))
    assert setup.on is on
    assert setup.runs_version == version


def test_templates_are_left_alone(tmp_path: Path) -> None:
    """Nothing is said of values that something fills in."""
    text = (
        "fsdp_config: ${FSDP_CONFIG}\nfsdp_version: ${V}\noptimizer: ${OPT}\nload_in_4bit: ${FOUR}\nrl: ${RL}\n"
        "sample_packing: true\nmax_memory: ${MEMORY}\ngpu_memory_limit: ${LIMIT}\ndeepspeed: ${DS}\nadapter: ${A}\n"
    )
    assert found(tmp_path, text) == []


def test_last_spelling_counts(tmp_path: Path) -> None:
    """The prefix is stripped, and of two spellings the last one is in force."""
    reading = config("fsdp_config:\n  offload_params: true\n  fsdp_offload_params: false\n")
    assert reading.data("fsdp_config.offload_params") is False
    rules = [f.rule for f in found(tmp_path, "fsdp_config:\n  fsdp_state_dict_type: SHARDED\n")]
    assert rules == ["FS401"]


def test_prefix_is_fixed(tmp_path: Path) -> None:
    """The fix takes the prefix away and nothing else, such as quotes."""
    (finding,) = found(tmp_path, "fsdp_config:\n  'fsdp_offload_params': true\n")
    assert finding.fix is not None
    assert finding.fix.safe
    (edit,) = finding.fix.edits
    content = (tmp_path / "config.yml").read_text(encoding="utf-8")
    assert content[: edit.start] + edit.replacement + content[edit.end :] == content.replace(
        "fsdp_offload_params", "offload_params"
    )


def test_own_package_is_not_judged_by_its_release(tmp_path: Path) -> None:
    """A repository that carries Axolotl may have keys of its own."""
    assert [f.rule for f in found(tmp_path, "sample_packin: true\n")] == ["FS404"]
    (tmp_path / "src" / "axolotl" / "utils").mkdir(parents=True)
    assert found(tmp_path, "sample_packin: true\n") == []


def test_releases_differ(tmp_path: Path) -> None:
    """What one release refuses, another takes."""
    text = "fsdp_version: 2\nload_in_4bit: true\nadapter: lora\nfsdp_config: {cpu_ram_efficient_loading: true}\n"
    said = {release: [f.rule for f in found(tmp_path, text, release)] for release in ("0.12.2", "0.13.2", "0.21.0")}
    assert said == {"0.12.2": ["FS412"], "0.13.2": [], "0.21.0": ["FS412"]}


PLUGINS = {name.rpartition(".")[2] for name in declarations("axolotl").keys_of_any("plugins")}
DERIVED = {"attention", "packing_attention", "staged_nf4", "inference", "own_lora_kernels", *PLUGINS}


def is_setting(name: str) -> bool:
    """Some release has the setting; of a section whose keys it knows, also the key."""
    known = declarations("axolotl")
    section, _, key = name.partition(".")
    plugins = [spec for release in RELEASES for spec in known.fields("plugins", release).values()]
    tables = ["AxolotlInputConfig", *{str(spec.extra["args"]) for spec in plugins if "args" in spec.extra}]
    if section not in {"fsdp"}.union(*(known.keys_of_any(table) for table in tables)):
        return section in ("fsdp_version", *UNDECLARED_KEYS)
    kinds = {k for r in RELEASES for t in tables if (f := known.fields(t, r).get(section)) for k in f.types}
    keys = {key for kind in kinds if kind in known.tables for key in known.keys_of_any(kind)}
    return not key or not keys or key in keys or f"fsdp_{key}" in keys or key.removeprefix("fsdp_") in keys


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.when)
def test_limits_are_well_formed(limit: Limit) -> None:
    """Releases are known ones, names are settings of one, so is the place, and a plain file is not refused."""
    assert {limit.since, limit.until} - {""} <= set(RELEASES)
    assert any(limit.applies_to(release, RELEASES) for release in RELEASES)
    named = {name for word in terms_of(limit.when) for name in word.names} - DERIVED
    assert [name for name in {*named, *limit.at.split("|")} if name and not is_setting(name)] == []
    reading = config("")
    assert limit.holds(reading.converted if limit.converted else reading) is False


@pytest.mark.parametrize(
    ("key", "meant"), [("offload_param", "offload_params"), ("fsdp_offload_param", "fsdp_offload_params")]
)
def test_a_misspelt_key_is_mended_in_its_own_spelling(key: str, meant: str, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"{BASE}fsdp_version: 2\nfsdp_config:\n  {key}: true\n", encoding="utf-8")
    findings = lint([config], Overrides(isolated=True)).findings
    assert [finding.help for finding in findings if finding.rule == "FS001"] == [f'did you mean "{meant}"?']


@pytest.mark.parametrize(
    ("source", "text", "said"),
    [
        ("", "rl: mine\n", True),
        ("MINE = 'mine'\n", "rl: mine\n", False),
        ("", "adapter: mine\n", True),
        ("MINE = 'mine'\n", "adapter: mine\n", False),
        ("", "attn_implementation: mine\n", True),
        ("MINE = 'mine'\n", "attn_implementation: mine\n", False),
        ("MINE = 'mine'\n", "sequence_len: mine\n", True),
    ],
)
def test_a_copy_may_have_words_of_its_own(tmp_path: Path, source: str, text: str, said: bool) -> None:
    """Code of a copy of Axolotl may have added a word to an enumeration, never to a number."""
    schemas = tmp_path / "src/axolotl/utils/schemas"
    schemas.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (schemas / "enums.py").write_text(source, encoding="utf-8")
    assert bool(found(tmp_path, text)) is said
