"""Versions and spans: what holds for which release, and whether each span speaks of releases that are known."""

from __future__ import annotations

import pytest

from trainlint.programs.table import PROGRAMS
from trainlint.records import dataclass
from trainlint.releases import (
    ReleaseSpan,
    behaviour,
    behaviour_spans,
    during,
    names_within,
    spans,
    speaking_for,
    within,
    words_within,
)
from trainlint.training.declarations import DISTRIBUTIONS, declarations


@pytest.mark.parametrize(
    ("text", "release", "holds"),
    [
        ("..", "1.0", True),
        ("1.4.0..1.6.0", "1.4.0", True),
        ("1.4.0..1.6.0", "1.6.0", True),
        ("1.4.0..1.6.0", "1.6.1", False),
        ("1.4.0..", "1.3.9", False),
        ("..1.4.0", "1.10.0", False),
        ("0.76.1", "0.76.1", True),
        ("0.76.1", "0.77.0", False),
        ("..0.2.0,0.4.0..", "0.3.0", False),
        ("..0.2.0,0.4.0..", "0.4.0", True),
    ],
)
def test_within(text: str, release: str, holds: bool) -> None:
    assert within(release, text) is holds


def test_words() -> None:
    assert [span.words for span in spans("1.6.0..,1.4.0..1.6.0,..1.12.0")] == [
        "since 1.6.0",
        "1.4.0 to 1.6.0",
        "until 1.12.0",
    ]
    assert spans("1.6.0..") == (ReleaseSpan("1.6.0"),)


@pytest.mark.parametrize(
    ("version", "releases"),
    [
        ("1.2.0", ("1.2.0",)),
        ("1.2", ("1.2.0",)),
        ("1.1.5", ("1.1.0",)),
        ("1.2.0rc1", ("1.2.0",)),
        ("1.2.0.dev0", ("1.1.0", "1.2.0")),
        ("1.2.1.dev0", ("1.2.0",)),
        ("1.1.0.dev0", ()),
        ("1.0", ()),
        ("1.4.0.dev0", ("1.2.0",)),
    ],
)
def test_speaking_for(version: str, releases: tuple[str, ...]) -> None:
    """A development version lies between the release that it names and the one before."""
    assert speaking_for(("1.1.0", "1.2.0"), version).releases == releases


@pytest.mark.parametrize(
    ("names", "version", "told"),
    [
        (("1.1.1", "1.2.0"), "1.2.3", "is newer than 1.2.0"),
        (("1.1.1", "1.2.0"), "1.1.0", "is older than 1.1.1, the oldest release that is known: checked as that one"),
        (("1.1.1", "1.2.0"), "1.0.9", "is older than 1.1.1, the oldest release that is known: its files are not"),
        (("1.1.1", "1.2.0"), "1.1.2", ""),
        (("1.1.1", "1.2.0"), "1.1", ""),
        (("2.0", "2.3"), "2.3.9", ""),
        (("2.0", "2.3"), "2.0.0", ""),
    ],
)
def test_a_version_outside_the_known_ones_is_told(names: tuple[str, ...], version: str, told: str) -> None:
    """Also where a known one has the same two numbers; those that are known by two are all of these two."""
    in_force = speaking_for(names, version)
    assert in_force.notice.startswith(told)
    assert bool(in_force.notice) is bool(told)
    assert bool(in_force.releases) is not told.endswith("are not")


def test_tables() -> None:
    assert words_within({"..": ("a", "b"), "2.0..": ("c",)}, "1.0") == ("a", "b")
    assert names_within({"a": "..1.0", "b": "2.0.."}, "2.1") == ("b",)


def test_behaviour() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Facts:
        release: str
        new: bool = during("2.0..")

    assert behaviour_spans(Facts) == {"new": "2.0.."}
    assert Facts(release="1.0", **behaviour(Facts, "1.0")).new is False
    assert Facts(release="2.0", **behaviour(Facts, "2.0")).new is True


@pytest.mark.parametrize("program", DISTRIBUTIONS)
def test_spans_of_facts_name_known_releases(program: str) -> None:
    """A span that begins or ends with a release which is not known would move when one is added."""
    owner = "transformers" if program in ("trl", "llamafactory") else program
    facts = PROGRAMS[program].load().facts(declarations(program).newest)
    ends = {
        end
        for text in behaviour_spans(type(facts)).values()
        for span in spans(text)
        for end in (span.since, span.until)
    }
    assert ends - {""} <= set(declarations(owner).names)
