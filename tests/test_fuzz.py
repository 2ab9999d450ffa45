"""tools/fuzz.py: some of what it makes, all of it checked as it does, and that it notices what it looks for."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import fuzz
from external import need
from fuzz_inputs import KNOWING, STATES, Grammar, Pairs, Writer, fixtures, repository
from trainlint.engine import lint
from trainlint.findings import Edit, Fix
from trainlint.report import Report

ACCELERATE = b"compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 2\n"


@pytest.mark.parametrize("seed", range(8))
def test_random_repositories(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINLINT_DEBUG", "1")
    fuzz.build(tmp_path, repository(random.Random(seed), fixtures()), "a folder")
    fuzz.check(tmp_path, fuzz.Seen(), None)


@pytest.mark.parametrize("state", STATES)
def test_whatever_a_folder_is_to_git(state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINLINT_DEBUG", "1")
    need(shutil.which("git"), "git")
    fuzz.build(tmp_path, {"a.yaml": ACCELERATE}, state)
    fuzz.check(tmp_path, fuzz.Seen(), None)


@pytest.mark.parametrize("program", KNOWING)
def test_a_config_is_its_programs(program: str) -> None:
    config = Grammar(random.Random(1)).config(program)
    assert isinstance(config, Pairs)
    assert {key for key, _ in config.pairs} >= set(KNOWING[program][0])


def test_events_are_written() -> None:
    chance = random.Random(3)
    written = "".join(Writer(chance).text([Grammar(chance).document()]) for _ in range(200))
    for form in ("&a", "*a", "<<: ", "!!", '"', "'", "|", ">"):
        assert form in written


@pytest.mark.parametrize(
    ("config", "fixed"),
    [
        (ACCELERATE + b"fsdp_offload_params: true\n", b"fsdp_config:\n  fsdp_offload_params: true\n"),
        (
            b"base_model: x\nmicro_batch_size: 1\nadapter: lora\nspecial_tokens:\n  additional_special_tokens: a\n",
            b"additional_special_tokens: [a]\n",
        ),
    ],
    ids=["a section of its own", "a list of itself"],
)
def test_a_fix_may_put_a_value_elsewhere(config: bytes, fixed: bytes, tmp_path: Path) -> None:
    fuzz.build(tmp_path, {"a.yaml": config}, "a folder")
    fuzz.check(tmp_path, fuzz.Seen(), None)
    assert fixed in (tmp_path / "a.yaml").read_bytes()


Broken = Callable[[Report], Report]


def outside(report: Report) -> Report:
    """A place that is not in the file."""
    first = report.findings[0]
    return replace(report, findings=(replace(first, span=first.span._replace(line=99, end_line=99)),))


def long(report: Report) -> Report:
    """A message of a thousand characters."""
    return replace(report, findings=(replace(report.findings[0], message="a" * 1_000),))


def rewriting(report: Report) -> Report:
    """A fix that changes another value than that of its finding."""
    (edit,) = (Edit(21, 34, "{}"),)
    return replace(report, findings=(replace(report.findings[0], fix=Fix("", (edit,))),))


@pytest.mark.parametrize(
    ("broken", "said"),
    [(outside, "a place outside"), (long, "a message of FS024"), (rewriting, "a fix changes")],
)
def test_what_must_not_be_is_noticed(
    broken: Broken, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuzz.build(tmp_path, {"a.yaml": ACCELERATE}, "a folder")
    fuzz.check(tmp_path, fuzz.Seen(), None)
    monkeypatch.setattr(fuzz, "lint", lambda paths: broken(lint(paths)))
    with pytest.raises(fuzz.Failure, match=said):
        fuzz.check(tmp_path, fuzz.Seen(), None)


def test_another_verdict_in_company_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(paths: Sequence[Path]) -> Report:
        report = lint(paths)
        return replace(report, findings=()) if len(paths) > 1 else report

    fuzz.build(tmp_path, {"a.yaml": ACCELERATE, "b.yaml": ACCELERATE}, "a folder")
    monkeypatch.setattr(fuzz, "lint", forgetful)
    with pytest.raises(fuzz.Failure, match="alone"):
        fuzz.check(tmp_path, fuzz.Seen(), None)


def test_what_is_new_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "CORPUS", tmp_path / "corpus")
    fuzz.build(tmp_path / "r", {"a.yaml": ACCELERATE}, "a folder")
    seen = fuzz.Seen()
    assert fuzz.check(tmp_path / "r", seen, None)
    # What a collector of garbage ends, it may end in any run.
    assert not all(fuzz.check(tmp_path / "r", seen, None) for _ in range(5))
    fuzz.save({"a.yaml": ACCELERATE})
    assert fuzz.saved() == [{"a.yaml": ACCELERATE}]
