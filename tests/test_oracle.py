"""The drawing of documents for the real programs; that asks none of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import yaml

from limit_cases import ABSENT
from oracle import drivers
from oracle.__main__ import plain
from oracle.asking import STAGES, driver
from oracle.draws import SHARES, Drawer, with_changes, written
from oracle.environments import fingerprint
from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Severity
from trainlint.settings import Overrides
from whats_new import newest_known

each_program = pytest.mark.parametrize("program", drivers.NAMES)


def drawer(program: str, seed: int = 1) -> Drawer:
    return Drawer(driver(program), newest_known(program), seed)


@each_program
def test_a_seed_draws_the_same_documents(program: str) -> None:
    random.seed(random.random())
    first, again, other = ([draw.files() for draw in drawer(program, seed).draws(30)] for seed in (1, 1, 2))
    assert first == again
    assert first != other


@each_program
def test_every_kind_is_drawn_and_one_change_is_one(program: str) -> None:
    made = drawer(program)
    draws = list(made.draws(200))
    kinds = {draw.kind for draw in draws}
    assert kinds == set(SHARES)
    for draw in draws:
        assert draw.changes, draw
        assert set(draw.files()) == {draw.sound.file, *draw.sound.beside}
        if draw.kind == "gone":
            (path,) = draw.changes
            assert draw.changes[path] is ABSENT
    changed = [draw for draw in draws if draw.files()[draw.sound.file] != draw.good()]
    assert len(changed) > 150


@each_program
def test_sound_documents_have_no_error(program: str, tmp_path: Path) -> None:
    made = drawer(program)
    assert made.asked.program == program
    assert made.asked.reaches in STAGES
    for sound in made.sounds:
        folder = tmp_path / sound.name
        for name, text in {**sound.beside, sound.file: written(sound.file, sound.settings)}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        report = lint([folder], Overrides(targets=parse_target(f"{program}={made.release}"), isolated=True))
        assert [found for found in report.findings if found.level is Severity.ERROR] == []
        assert program in report.targets


def test_changes_reach_into_lists_and_make_sections() -> None:
    sound = drawer("axolotl").sounds[0]
    changes = {"datasets.0.type": "completion", "trl.beta": 0.5, "bf16": ABSENT, "datasets.7.type": "x"}
    made = yaml.safe_load(written("config.yml", with_changes(sound, changes)))
    assert made["datasets"] == [{"path": "acme/notes", "type": "completion"}]
    assert made["trl"] == {"beta": 0.5}
    assert "bf16" not in made
    assert sound.settings["bf16"] == "auto"


def test_kinds_of_words_have_neither_names_nor_numbers() -> None:
    first = plain("ValidationError: a.b: Input should be 'x' or \"y\" [got 12, -0.5 or 1e-05]")
    assert first == "ValidationError: a.b: Input should be … or … [got N, N or N]"


def test_an_environment_is_made_anew_when_what_is_wanted_changes() -> None:
    wanted = driver("soup").environment("0.77.0")
    assert fingerprint(wanted) == fingerprint(wanted)
    assert fingerprint(wanted) != fingerprint(wanted._replace(pins=("pydantic==2.0",)))
