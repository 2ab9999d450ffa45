"""The report on new releases."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import keep_up
from wheel_facts.registry import Registry


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


def test_nothing_is_written_where_nothing_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "of_pip", lambda: None)
    monkeypatch.setattr(keep_up, "newer", lambda name, registry: [])
    monkeypatch.setattr(sys, "argv", ["keep_up", str(tmp_path / "report.md")])
    keep_up.main()
    assert not (tmp_path / "report.md").exists()


def test_what_a_failing_command_says_is_told() -> None:
    assert keep_up.told(sys.executable, "-c", "print('so far'); raise SystemExit(3)") == "so far"
