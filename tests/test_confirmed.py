"""What is claimed of the newest releases is confirmed, and what a release changes is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_wheel_facts_tool import wheel
from trainlint.training.declarations import declarations
from trainlint.training.limits import Limit
from wheel_facts import confirmed
from wheel_facts.confirmed import Row, asked, claims_of, digest_of, limit_claims, named_in, places_of, rows_of, words_of
from wheel_facts.package import Package
from wheel_facts.readers import PROGRAMS
from wheel_facts.source import texts_of

SOURCE = """
class Config:
    limit = 3

    @validator(mode="before")
    def check_packing(cls, data):
        if data.get("packing") and data.get("rl"):
            raise ValueError("packing")

    def check_muon(self):
        if self.optimizer == "muon" and self.deepspeed:
            raise ValueError("no")

    def tell_muon(self):
        log("muon with deepspeed, optimizer")


def check_packing_alone(data):
    if data["packing"]:
        raise ValueError(data)
"""
CLAIMS = dict(
    limit_claims(
        [
            Limit("packing", "packing rl", "m"),
            Limit("optimizer", "optimizer=muon deepspeed", "m", since="2.0"),
            Limit("gone", "gone", "m", until="1.0"),
            Limit("elsewhere", "elsewhere>0", "m"),
        ]
    )
)


def texts(folder: Path, source: str = SOURCE) -> dict[str, str]:
    package = Package(wheel(folder, trainer=source), "transformers")
    return texts_of(package, r"trainer\.py")


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_claim_on_the_newest_release_is_confirmed(program: str) -> None:
    """Each claim has a row that somebody confirmed for the newest release."""
    rows = {row.claim: row for row in rows_of(program)}
    newest = declarations(program).newest
    claims = claims_of(program)
    told = f"run make confirm PROGRAM={program}"
    assert [claim for claim in claims if claim not in rows] == [], f"{told}: it adds these rows"
    assert [claim for claim in rows if claim not in claims] == [], f"{told}: it removes these rows"
    assert [str(row) for row in rows.values() if row.release != newest] == [], f"{told}: it asks {newest}"
    opened = [str(row) for row in rows.values() if row.asked]
    assert opened == [], f"read what each row names, and take its ? away in tests/confirmed/{program}.txt"


@pytest.mark.parametrize("program", PROGRAMS)
def test_rows_are_written_as_they_are_read(program: str) -> None:
    text = confirmed.file_of(program).read_text(encoding="utf-8")
    assert "".join(f"{row}\n" for row in rows_of(program)) == text


def test_words_of_a_condition() -> None:
    when = "!a.b|c? optimizer=adamw_8bit,muon size>1 x#<2 steps<1e-6 lora=true name~Falcon"
    assert set(words_of(when)) == {"a", "b", "c", "optimizer", "adamw_8bit", "muon", "size", "x", "steps", "lora"} | {
        "name",
        "Falcon",
    }


def test_a_limit_is_placed_at_the_validator_that_mentions_it(tmp_path: Path) -> None:
    found = texts(tmp_path)
    assert places_of(frozenset({"packing", "rl"}), found) == ("trainer.py:Config.check_packing",)
    assert places_of(frozenset({"optimizer", "muon"}), found) == ("trainer.py:Config.check_muon",)
    both = ("trainer.py:Config.check_packing", "trainer.py:check_packing_alone")
    assert places_of(frozenset({"packing"}), found) == both
    assert places_of(frozenset({"nowhere"}), found) == ()
    assert found["trainer.py:Config.check_packing"].startswith('@validator(mode="before")\ndef check_packing')


def test_a_rule_is_placed_at_what_its_source_names(tmp_path: Path) -> None:
    found = texts(tmp_path)
    assert named_in("Transformers 4.40, Config.check_muon and tell_muon", found) == (
        "trainer.py:Config.check_muon",
        "trainer.py:Config.tell_muon",
    )
    assert named_in("Transformers, Config", found) == ("trainer.py:Config",)
    assert named_in("Transformers, check_muon of trainer.py", found) == ("trainer.py:Config.check_muon",)
    assert named_in("Transformers, trainer.py of each release", found) == ("trainer.py",)
    assert named_in("Transformers, strainer.py, the limit of it", found) == ()


def test_a_release_confirms_what_is_the_same_and_asks_what_is_not(tmp_path: Path) -> None:
    one = texts(tmp_path / "one")
    first = asked([], CLAIMS, "2.0", one)
    assert [row.claim for row in first] == ["packing rl", "optimizer=muon deepspeed", "elsewhere>0"]
    assert all(row.asked for row in first)
    known = [Row(row.claim, row.release, row.digest, row.places, asked=False) for row in first]
    assert [row.asked for row in asked(known, CLAIMS, "2.0", one)] == [False, False, False]

    changed = texts(tmp_path / "changed", SOURCE.replace("self.deepspeed", "not self.deepspeed"))
    second = asked(known, CLAIMS, "2.1", changed)
    assert [(row.release, row.asked) for row in second] == [("2.1", False), ("2.1", True), ("2.1", True)]
    assert second[1].digest == digest_of(second[1].places, changed) != known[1].digest
    assert asked(second, CLAIMS, "2.2", changed)[1].asked, "an open row stays open"


def test_a_validator_that_moved_is_the_same_and_one_that_is_gone_is_asked(tmp_path: Path) -> None:
    known = [
        Row(row.claim, row.release, row.digest, row.places, asked=False)
        for row in asked([], CLAIMS, "2.0", texts(tmp_path / "one"))
    ]
    moved = asked(known, CLAIMS, "2.1", texts(tmp_path / "moved", SOURCE.replace("class Config", "class Mixin")))
    assert moved[0].places == ("trainer.py:Mixin.check_packing",)
    assert [row.asked for row in moved] == [False, False, True]
    gone = asked(known, CLAIMS, "2.1", texts(tmp_path / "gone", SOURCE.replace("def check_muon", "def look")))
    assert gone[1].asked


def test_places_are_corrected_by_hand_and_tables_are_not_asked(tmp_path: Path) -> None:
    one = texts(tmp_path)
    rows = [
        Row("packing rl", "1.0", "-", ("trainer.py:check_packing_alone",), asked=False),
        Row("elsewhere>0", "1.0", digest_of([confirmed.TABLES], one), (confirmed.TABLES,), asked=False),
    ]
    packing, _, elsewhere = asked(rows, CLAIMS, "2.0", one)
    assert packing.places == ("trainer.py:check_packing_alone",)
    assert packing.asked
    assert packing.digest == digest_of(packing.places, one)
    assert not elsewhere.asked
