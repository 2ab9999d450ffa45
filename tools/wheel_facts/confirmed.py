"""What is claimed of the newest release of a program, and which of its functions each claim rests on.

A claim is a limit or a fact without an end, or a rule with all that it says: a release that is added inherits it. The
file tests/confirmed/PROGRAM.txt has a row for each:

    0.21.0 3fa9c1e2 utils/schemas/validation.py:OptimizationValidationMixin.check_muon  optimizer=muon deepspeed

the release that the claim was confirmed for, a digest of what it rests on in that release, where that stands (`-` where
it is not known), and the claim: the condition of a limit, `fact` and its name, or `rule` and a code. When a release is
added, `ask` confirms the rows that rest on the same text there. The others get the new release with a question mark
(`?0.22.0`), which somebody takes away who has read the function or run the release; a test lists those that are left.
Places are found by the words of a condition or of a rule's source, and may be corrected by hand; those of facts are
written by hand. `tables` says that a claim rests on what the facts file holds, or on nothing of the package, so that
there is nothing to ask.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from trainlint.programs.table import PROGRAMS
from trainlint.releases import behaviour_spans
from trainlint.rule import Rule, rules_of
from trainlint.training.limits import Limit, limits_of
from wheel_facts.package import Package
from wheel_facts.source import texts_of

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "confirmed"
UNKNOWN = "-"
TABLES = "tables"

Texts = Mapping[str, str]
"""What a claim may rest on, by place: functions, methods and classes (`module.py:Class.name`) and whole modules."""
Finder = Callable[[Texts], tuple[str, ...]]
"""Gives the places that a claim rests on."""


@dataclass(frozen=True)
class Row:
    """One claim, with the release that it was confirmed for or, if `asked`, is yet to be."""

    claim: str
    release: str
    digest: str = UNKNOWN
    places: tuple[str, ...] = ()
    asked: bool = True

    def __str__(self) -> str:
        mark = "?" if self.asked else ""
        return f"{mark}{self.release} {self.digest} {','.join(self.places) or UNKNOWN}  {self.claim}"


def claims_of(program: str) -> dict[str, Finder]:
    """The claims of a program, each with what finds its places."""
    own = Path(__file__).resolve().parents[2] / "linter" / "trainlint" / "programs" / program / "limits.txt"
    limits = [limit for some in limits_of(program).values() for limit in some] if own.exists() else []
    facts = import_module(f"trainlint.programs.{program}.facts")
    kinds = [kind for kind in vars(facts).values() if isinstance(kind, type) and kind.__module__ == facts.__name__]
    spans = {name: text for kind in kinds if is_dataclass(kind) for name, text in behaviour_spans(kind).items()}
    return {
        **dict(limit_claims(limits)),
        **{f"fact {name}": nowhere for name, text in spans.items() if text.endswith("..")},
        **dict(rule_claims(program, rules_of(PROGRAMS[program].rules))),
    }


def nowhere(texts: Texts) -> tuple[str, ...]:
    """No place: what a fact rests on is written into its row by hand."""
    return ()


def limit_claims(limits: Iterable[Limit]) -> Iterator[tuple[str, Finder]]:
    """The limits that hold of the newest release."""
    for limit in limits:
        if not limit.until:
            words = frozenset(words_of(limit.when))
            yield limit.when, partial(places_of, words)


def rule_claims(program: str, rules: Iterable[Rule]) -> Iterator[tuple[str, Finder]]:
    """The rules whose source names the program, or that are its own."""
    for rule in rules:
        source = " ".join(rule.documentation.rpartition("Source:")[2].split())
        parts = [part for part in source.split(";") if PROGRAMS[program].title.lower() in part.lower()]
        own = f".programs.{program}." in rule.check.__module__
        if own or parts:
            yield f"rule {rule.code}", partial(named_in, source if own else ";".join(parts))


def words_of(when: str) -> Iterator[str]:
    """The names and words of a condition, without numbers and truth values."""
    for word in when.split(" "):
        for text in re.split(r"[!?|.,=<>~#]+", word):
            if text and not re.fullmatch(r"[-\d]+(e-?\d+)?|true|false", text):
                yield text


def places_of(words: frozenset[str], texts: Texts) -> tuple[str, ...]:
    """The functions that raise and mention most of the words, rare ones counting more; all of those that are equal."""
    raising = {place: text for place, text in texts.items() if _is_function(text) and re.search(r"\braise\b", text)}
    having = {word: {place for place, text in raising.items() if _mentions(text, word)} for word in words}
    weights = {place: sum(1 / len(having[w]) for w in sorted(words) if place in having[w]) for place in raising}
    best = max(weights.values(), default=0)
    return tuple(place for place, weight in weights.items() if weight == best) if best else ()


def named_in(source: str, texts: Texts) -> tuple[str, ...]:
    """What a sentence names: functions, methods and classes, those of the modules that it names too; else modules."""
    modules = [place for place in texts if ":" not in place]
    named = [module for word in re.findall(r"[\w/]+\.py", source) for module in modules if _ends(module, word)]
    words = set(re.findall(r"[A-Za-z_][\w.]*\w", source))
    found = [place for place in texts if ":" in place and words & _names(place)]
    here = [place for place in found if place.partition(":")[0] in named]
    return tuple(dict.fromkeys(here or found or named))


def _names(place: str) -> set[str]:
    """How a sentence may call a place: by its whole name, or its last part if that is no word of everyday."""
    whole = place.partition(":")[2]
    last = whole.rpartition(".")[2]
    telling = not last.startswith("__") and re.search(r"_|[A-Z]", last)
    return {whole, last} if telling else {whole} if "." in whole else set()


def _ends(module: str, word: str) -> bool:
    return f"/{module}".endswith(f"/{word}")


def _is_function(text: str) -> bool:
    return text.startswith(("def ", "@"))


def _mentions(text: str, word: str) -> bool:
    """Short words are looked for as words, long ones also as parts of others."""
    return re.search(rf"\b{re.escape(word)}\b" if len(word) < 4 else re.escape(word), text) is not None


def digest_of(places: Iterable[str], texts: Texts) -> str:
    """A short name for what stands at some places; unknown where one of them is not there."""
    found = [texts.get(place, place if place == TABLES else None) for place in places]
    if not found or None in found:
        return UNKNOWN
    return hashlib.sha256("\n".join(sorted(map(str, found))).encode()).hexdigest()[:8]


def asked(rows: Iterable[Row], claims: Mapping[str, Finder], release: str, texts: Texts) -> list[Row]:
    """The rows of these claims for a release that has these texts.

    A row stays confirmed where what it rests on is the same text. Where a part of that is gone, and for a new claim,
    the places are looked for anew, so that a function that has only moved is still the same.
    """
    known = {row.claim: row for row in rows}
    found = []
    for claim, find in claims.items():
        row = known.get(claim, Row(claim, release))
        here = bool(row.places) and texts.keys() | {TABLES} >= set(row.places)
        places = row.places if here else find(texts)
        digest = digest_of(places, texts)
        same = row.release == release or digest == row.digest != UNKNOWN
        found.append(Row(claim, release, digest, places, asked=row.asked or not same))
    return found


def ask(program: str, release: str, package: Package, modules: str) -> list[Row]:
    """Ask a program's claims of a release, and write its file; gives the rows that somebody has to confirm."""
    rows = asked(rows_of(program), claims_of(program), release, texts_of(package, modules))
    file_of(program).parent.mkdir(exist_ok=True)
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
