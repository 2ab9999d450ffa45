"""The report on new releases."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import keep_up
from wheel_facts.registry import Missing, Registry


def test_a_block_of_code_is_ended_by_nothing_in_it() -> None:
    assert keep_up.fenced("a ```` b") == "`````\na ```` b\n`````\n"
    assert keep_up.fenced("plain") == "```\nplain\n```\n"


def test_a_long_output_is_cut() -> None:
    text = keep_up.fenced("x" * (keep_up.MOST + 7))
    assert text.endswith("\n… 7 characters more\n```\n")


def test_the_report_has_a_part_for_each_program(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def told(*command: str) -> str:
        asked.append(command)
        return " ".join(command)

    monkeypatch.setattr(keep_up, "told", told)
    text = keep_up.report({"soup": ["9.0", "9.1"], "trl": [], "torchtune": ["9.0"], "deepspeed": ["9.0"]}, 50)
    assert [line for line in text.splitlines() if line.startswith("##")] == [
        "## soup 9.0, 9.1",
        "## torchtune 9.0",
        "## deepspeed 9.0",
    ]
    assert ("make", "facts", "PROGRAM=soup", "RELEASE=9.1") in asked
    oracles = [command for command in asked if "oracle" in command]
    assert oracles == [("make", "--silent", "oracle", "PROGRAM=soup", "RELEASE=9.1", "CASES=50")]
    assert "note that it was run: `PYTHONPATH=tools .venv/bin/python -m wheel_facts soup --ran 9.1`" in text


def test_a_program_of_which_nobody_can_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes the look from no other, and is in the report."""

    def newer(name: str, registry: object) -> list[str]:
        if name == "trl":
            raise Missing("the registry answers 503 for trl")
        return ["99.0"] if name == "torchtune" else []

    monkeypatch.setattr(Registry, "of_pip", lambda: None)
    monkeypatch.setattr(keep_up, "newer", newer)
    monkeypatch.setattr(sys, "argv", ["keep_up", str(tmp_path / "report.md")])
    keep_up.main()
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "## trl\n\nIts releases cannot be listed:\n\n```\nthe registry answers 503 for trl\n```\n" in text
    assert "## torchtune 99.0" in text


class Broken:
    """A session with a registry that is not there, or does not speak as one."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def get(self, url: str, **options: object) -> SimpleNamespace:
        if isinstance(self.answer, Exception):
            raise self.answer
        return SimpleNamespace(status_code=200, json=lambda: self.answer)


@pytest.mark.parametrize("answer", [ConnectionError("refused"), TimeoutError(), [], {}, None, "x"])
def test_a_registry_that_does_not_answer(answer: object) -> None:
    with pytest.raises(Missing):
        Registry(Broken(answer), "https://registry.test/simple").versions("trl")


def test_nothing_is_written_where_nothing_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "of_pip", lambda: None)
    monkeypatch.setattr(keep_up, "newer", lambda name, registry: [])
    monkeypatch.setattr(sys, "argv", ["keep_up", str(tmp_path / "report.md")])
    keep_up.main()
    assert not (tmp_path / "report.md").exists()


def test_what_a_failing_command_says_is_told() -> None:
    assert keep_up.told(sys.executable, "-c", "print('so far'); raise SystemExit(3)") == "so far"
