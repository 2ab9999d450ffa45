"""What is claimed of the newest release of a program, and on which of its functions each claim rests.

A claim is a limit without an end, or a fact that holds since some release: each release that is added inherits it. The
file tests/confirmed/PROGRAM.txt has a row for each:

    0.21.0 3fa9c1e2 utils/schemas/validation.py:OptimizationValidationMixin.check_muon  optimizer=muon deepspeed

the release that the claim was confirmed for, a digest of the functions that it rests on in that release, where these
stand (`-` where none is known), and the claim. When a release is added, `ask` confirms the rows whose functions are the
same text there. The others get the new release with a question mark (`?0.22.0`), which somebody takes away who has read
the function or run the release; a test lists those that are left.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainlint.training.limits import Limit, limits_of
from wheel_facts.package import Package
from wheel_facts.source import function_texts

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "confirmed"
UNKNOWN = "-"


@dataclass(frozen=True)
class Row:
    """One claim, with the release that it was confirmed or, if `asked`, is yet to be confirmed for."""

    claim: str
    release: str
    digest: str = UNKNOWN
    places: tuple[str, ...] = ()
    asked: bool = True

    def __str__(self) -> str:
        mark = "?" if self.asked else ""
        return f"{mark}{self.release} {self.digest} {','.join(self.places) or UNKNOWN}  {self.claim}"


def claims(limits: Iterable[Limit]) -> dict[str, frozenset[str]]:
    """The claims that limits make of the newest release, each with the words that its validator must mention."""
    return {limit.when: frozenset(words_of(limit.when)) for limit in limits if not limit.until}


def claims_of(program: str) -> dict[str, frozenset[str]]:
    """The claims of a program."""
    return claims(limit for limits in limits_of(program).values() for limit in limits)


def words_of(when: str) -> Iterable[str]:
    """The names and words of a condition, without numbers and truth values."""
    for word in when.split(" "):
        for text in re.split(r"[!?|.,=<>~#]+", word):
            if text and not re.fullmatch(r"[-\d]+(e-?\d+)?|true|false", text):
                yield text


def places_of(words: frozenset[str], functions: Mapping[str, str]) -> tuple[str, ...]:
    """The functions that raise and mention most of the words, rare ones counting more; all of those that are equal."""
    raising = {place: text for place, text in functions.items() if re.search(r"\braise\b", text)}
    having = {word: {place for place, text in raising.items() if _mentions(text, word)} for word in words}
    weights = {place: sum(1 / len(having[w]) for w in sorted(words) if place in having[w]) for place in raising}
    best = max(weights.values(), default=0)
    return tuple(place for place, weight in weights.items() if weight == best) if best else ()


def _mentions(text: str, word: str) -> bool:
    """Short words are looked for as words, long ones also as parts of others."""
    return re.search(rf"\b{re.escape(word)}\b" if len(word) < 4 else re.escape(word), text) is not None


def digest_of(places: Iterable[str], functions: Mapping[str, str]) -> str:
    """A short name for the texts of functions; unknown where one of them is not there."""
    texts = [functions.get(place) for place in places]
    if not texts or None in texts:
        return UNKNOWN
    return hashlib.sha256("\n".join(sorted(map(str, texts))).encode()).hexdigest()[:8]


def asked(
    rows: Iterable[Row], claims: Mapping[str, frozenset[str]], release: str, functions: Mapping[str, str]
) -> list[Row]:
    """The rows of these claims for a release whose validators are these functions.

    A row stays confirmed where the functions that it rests on are the same text. Where one of them is gone, and for a
    new claim, the functions are looked for anew, so that one that has only moved is still the same.
    """
    known = {row.claim: row for row in rows}
    found = []
    for claim, words in claims.items():
        row = known.get(claim, Row(claim, release))
        here = bool(row.places) and functions.keys() >= set(row.places)
        places = row.places if here else places_of(words, functions)
        digest = digest_of(places, functions)
        same = row.release == release or digest == row.digest != UNKNOWN
        found.append(Row(claim, release, digest, places, asked=row.asked or not same))
    return found


def ask(program: str, release: str, package: Package, modules: str) -> list[Row]:
    """Ask a program's claims of a release, and write its file; gives the rows that somebody has to confirm."""
    rows = asked(rows_of(program), claims_of(program), release, function_texts(package, modules))
    file_of(program).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return [row for row in rows if row.asked]


def file_of(program: str) -> Path:
    """The file of a program's claims."""
    return FOLDER / f"{program}.txt"


def rows_of(program: str) -> list[Row]:
    """The rows in the file of a program, none where there is no file."""
    path = file_of(program)
    return [_row(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _row(line: str) -> Row:
    release, digest, places, claim = line.split(maxsplit=3)
    where = () if places == UNKNOWN else tuple(places.split(","))
    return Row(claim, release.lstrip("?"), digest, where, release.startswith("?"))
