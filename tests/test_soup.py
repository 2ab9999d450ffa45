"""Soup: what is recognised, which commands belong to which config, and the facts that pages repeat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trainlint.catalogue import find_rule
from trainlint.engine import lint
from trainlint.programs.soup.facts import facts_of
from trainlint.programs.soup.program import DERIVED, PROGRAM, SoupConfig, SoupFile
from trainlint.reading.document import documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import Field
from trainlint.settings import Overrides
from trainlint.targets import Target
from trainlint.training.declarations import declarations
from trainlint.training.limits import Limit, limits_of, terms_of

CONFIG = "base: acme/tiny-lm\ndata:\n  train: a.jsonl\ntraining:\n  epochs: 1\n"
RELEASES = declarations("soup").names
LIMITS = [limit for section in limits_of("soup").values() for limit in section]


def is_config(text: str, name: str = "any.yaml") -> bool:
    (document,) = documents(name, Text(text))
    return any(isinstance(subject, SoupFile) for subject in PROGRAM.recognise(document))


def found(folder: Path, files: dict[str, str], version: str = "0.77.0") -> Iterator[tuple[str, str, int]]:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    report = lint([folder], Overrides(targets={"soup": Target((version,))}))
    for finding in report.active:
        yield finding.rule, Path(finding.path).relative_to(folder).as_posix(), finding.span.line


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (CONFIG, "any.yaml", True),
        ("base: acme/tiny-lm\ntask: sft\ndata: {train: a.jsonl}\n", "any.yaml", True),
        ("data: {train: a.jsonl}\ntraining: {epochs: 1}\n", "soup.yaml", True),
        ("data: {train: a.jsonl}\ntraining: {epochs: 1}\n", "any.yaml", False),
        ("base: [a]\ndata: {train: a.jsonl}\ntask: sft\n", "any.yaml", False),
        ("items:\n- name: zlib\n  training: none\n", "soup.yaml", False),
        ("- base: x\n", "soup.yaml", False),
        ("base: soup\n", "soup.yaml", False),
        ("base: conf/base.yaml\ndata: {root: d, loader: {workers: 4}}\noutput: out\ntrainer: x\n", "any.yaml", False),
    ],
)
def test_recognised(text: str, name: str, expected: bool) -> None:
    """By content; a file of the usual name needs less of it."""
    assert is_config(text, name) is expected


@pytest.mark.parametrize(
    ("where", "command", "hit"),
    [
        ("run.sh", "soup train --fsdp full_shard\n", True),
        ("jobs/run.sh", "cd jobs && soup train --fsdp full_shard --config soup.yaml\n", False),
        ("Makefile", "go:\n\tsoup train --fsdp full_shard\n", True),
        ("ci.yml", "run: soup train --config ./soup.yaml --fsdp full_shard\n", True),
        ("ci.yml", "run: soup train --config other.yaml --fsdp full_shard\n", False),
        ("ci.yml", "run: soup train --config $CONFIG --fsdp full_shard\n", False),
        ("ci.yml", "run: soup train --fsdp $PRESET\n", False),
        ("ci.yml", "run: soup train --fsdp full_shard --find-lr\n", False),
        ("ci.yml", "run: soup train --fsdp full_shard --help\n", False),
        ("ci.yml", "command: [soup, train]\nargs: [--config, /app/soup.yaml, --fsdp, full_shard]\n", True),
        ("Dockerfile", 'FROM a\nENTRYPOINT ["soup", "train"]\nCMD ["--fsdp", "full_shard"]\n', True),
    ],
)
def test_commands_of_a_config(tmp_path: Path, where: str, command: str, hit: bool) -> None:
    """A config is judged with the commands of its repository that name it."""
    files = {"soup.yaml": "backend: unsloth\n" + CONFIG, where: command}
    if where.startswith("jobs"):
        files["jobs/soup.yaml"] = CONFIG + "  quantization: none\n"
    assert (("FS304", "soup.yaml", 1) in found(tmp_path, files)) is hit


def test_pin_is_the_target(tmp_path: Path) -> None:
    """Unknown keys are refused or not as the pinned release does."""
    (tmp_path / "requirements.txt").write_text("soup-cli==0.74.0\n")
    (tmp_path / "soup.yaml").write_text(CONFIG + "  fsdp: full_shard\n")
    report = lint([tmp_path / "soup.yaml"], Overrides())
    assert [(f.rule, f.level.value, f.program_versions) for f in report.active] == [("FS320", "warning", ("0.74.0",))]
    assert report.targets["soup"].origin.endswith("requirements.txt:1")


def test_page_lists_the_presets() -> None:
    """The page of the preset rule says what each preset sets, as the releases do."""
    rule = find_rule("FS301")
    assert rule is not None
    for name, spec in facts_of(RELEASES[-1]).presets.items():
        sets = spec.extra["sets"]
        assert isinstance(sets, dict)
        assert f"- {name}: `fsdp: {sets['fsdp']}`" in rule.documentation
        assert isinstance(sets["fsdp_config"], dict)
        for key in sets["fsdp_config"]:
            assert key in rule.documentation


@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.when)
def test_limits_are_well_formed(limit: Limit) -> None:
    """Releases are known ones, and one of them has the settings of the condition, one of which is the place."""
    assert {limit.since, limit.until} - {""} <= set(RELEASES)
    named = {name for word in terms_of(limit.when) for name in word.names}
    in_force = [release for release in RELEASES if limit.applies_to(release, RELEASES)]
    settings = {name.removeprefix("changed.") for name in {*named, *limit.at.split("|")} - DERIVED.keys()}
    assert [name for name in settings if not any(is_setting(name, release) for release in in_force)] == []


def is_setting(name: str, release: str) -> bool:
    """A release has the setting."""
    fields, field = facts_of(release).fields, None
    table = fields("SoupConfig")
    for key in name.split("."):
        field = table.get(key)
        table = next((fields(kind) for kind in field.types if fields(kind)), {}) if field else {}
    return field is not None


@pytest.mark.parametrize("release", RELEASES)
def test_plain_config_meets_no_limit(release: str) -> None:
    """A config that sets nothing meets none."""
    (document,) = documents("soup.yaml", Text(CONFIG))
    facts = facts_of(release)
    config = SoupConfig(Field.root(document, Dialect.PYYAML), facts)
    for limit in [limit for section in facts.limits.values() for limit in section]:
        assert not limit.holds(config), limit


@pytest.mark.parametrize(
    ("training", "quantization"),
    [
        ("", "4bit"),
        ("  quantization: 8bit\n", "8bit"),
        ("  load_in_8bit: true\n", "8bit"),
        ("  load_in_16bit: yes\n", "none"),
        ("  quantization: ${Q}\n", None),
    ],
)
def test_quantization(training: str, quantization: str | None) -> None:
    """Two switches rewrite it; left out it is 4bit."""
    (document,) = documents("soup.yaml", Text(CONFIG + training))
    config = SoupConfig(Field.root(document, Dialect.PYYAML), facts_of(RELEASES[-1]))
    assert config.setting("training.quantization").known == quantization
