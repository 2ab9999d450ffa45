"""Claims about the newest release of a program, each with the functions of the package that it depends on.

A claim is a limit or a fact without an end, or a rule: a release that is added inherits it. The file
tests/confirmed/PROGRAM.txt has a row for each claim:

    0.21.0 3fa9c1e2 utils/schemas/validation.py:OptimizationValidationMixin.check_muon  optimizer=muon deepspeed

The columns are the release for which the claim was confirmed, a digest of the code that it depends on, the place of
that code (`-` where it is not known), and the claim: the condition of a limit, `fact` and a name, or `rule` and a code.
When a release is added, `ask` confirms the rows whose code is unchanged. The others get the new release with a question
mark (`?0.22.0`): read the function or run the release, then remove the mark; a test lists the rows that still have one.

Places are found by the words of a condition or of a rule's source, and may be corrected by hand: the next run computes
the digest of the new place. Those of facts are written by hand. The place `tables` means that a claim depends on the
facts file only, or on no code of the package, so there is nothing to confirm.
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
from trainlint.training.declarations import LIBRARIES
from trainlint.training.limits import Limit, limits_of
from wheel_facts.package import Package
from wheel_facts.source import texts_of

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "confirmed"
UNKNOWN = "-"
TABLES = "tables"
MOST = 6
"""The number of functions that a limit may depend on."""

Texts = Mapping[str, str]
"""The code that claims depend on, by place: functions, methods, classes (`module.py:Class.name`), whole modules."""
Finder = Callable[[Texts], tuple[str, ...]]
"""Finds the places that a claim depends on."""


@dataclass(frozen=True)
class Row:
    """One claim with the release for which it was confirmed, or, if `asked`, must be confirmed."""

    claim: str
    release: str
    digest: str = UNKNOWN
    places: tuple[str, ...] = ()
    asked: bool = True

    def __str__(self) -> str:
        mark = "?" if self.asked else ""
        return f"{mark}{self.release} {self.digest} {','.join(self.places) or UNKNOWN}  {self.claim}"


def claims_of(program: str) -> dict[str, Finder]:
    """The claims about a program, each with the finder of its places."""
    own = Path(__file__).resolve().parents[2] / "linter" / "trainlint" / "programs" / program / "limits.txt"
    limits = [limit for some in limits_of(program).values() for limit in some] if own.exists() else []
    library = program in LIBRARIES
    facts = import_module(f"trainlint.training.{program}" if library else f"trainlint.programs.{program}.facts")
    rules = [f"trainlint.training.{program}_rules"] if library else PROGRAMS[program].rules
    kinds = [kind for kind in vars(facts).values() if isinstance(kind, type) and kind.__module__ == facts.__name__]
    spans = {name: text for kind in kinds if is_dataclass(kind) for name, text in behaviour_spans(kind).items()}
    return {
        **dict(limit_claims(limits)),
        **{f"fact {name}": nowhere for name, text in spans.items() if text.endswith("..")},
        **dict(rule_claims(program, rules_of(rules))),
    }


def nowhere(texts: Texts) -> tuple[str, ...]:
    """No place: the places of a fact are written into its row by hand."""
    return ()


def limit_claims(limits: Iterable[Limit]) -> Iterator[tuple[str, Finder]]:
    """The limits that apply to the newest release."""
    for limit in limits:
        if not limit.until:
            words = frozenset(words_of(limit.when))
            yield limit.when, partial(places_of, words)


def rule_claims(program: str, rules: Iterable[Rule]) -> Iterator[tuple[str, Finder]]:
    """The program's own rules, and those whose source names the program."""
    for rule in rules:
        source = " ".join(rule.documentation.rpartition("Source:")[2].split())
        title = PROGRAMS[program].title if program in PROGRAMS else program
        parts = [part for part in source.split(";") if title.lower() in part.lower()]
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
    """The functions with a `raise` that contain most of the words; rare words count more.

    All of a tie are kept; none where it is so large that no word can be a telling one.
    """
    raising = {place: text for place, text in texts.items() if _is_function(text) and re.search(r"\braise\b", text)}
    having = {word: {place for place, text in raising.items() if _mentions(text, word)} for word in words}
    weights = {place: sum(1 / len(having[w]) for w in sorted(words) if place in having[w]) for place in raising}
    best = max(weights.values(), default=0)
    found = tuple(place for place, weight in weights.items() if weight == best) if best else ()
    return found if len(found) <= MOST else ()


def named_in(source: str, texts: Texts) -> tuple[str, ...]:
    """The functions, methods and classes that a sentence names, in the modules that it names; else these modules."""
    modules = [place for place in texts if ":" not in place]
    named = [module for word in re.findall(r"[\w/]+\.py", source) for module in modules if _ends(module, word)]
    words = set(re.findall(r"[A-Za-z_][\w.]*\w", source))
    found = [place for place in texts if ":" in place and words & _names(place)]
    here = [place for place in found if place.partition(":")[0] in named]
    return tuple(dict.fromkeys(here or found or named))


def _names(place: str) -> set[str]:
    """The names of a place in a sentence: the whole name, or its last part if that is not an everyday word."""
    whole = place.partition(":")[2]
    last = whole.rpartition(".")[2]
    telling = not last.startswith("__") and re.search(r"_|[A-Z]", last)
    return {whole, last} if telling else {whole} if "." in whole else set()


def _ends(module: str, word: str) -> bool:
    return f"/{module}".endswith(f"/{word}")


def _is_function(text: str) -> bool:
    return text.startswith(("def ", "@"))


def _mentions(text: str, word: str) -> bool:
    """The text contains the word; a long word may also be part of another one."""
    return re.search(rf"\b{re.escape(word)}\b" if len(word) < 4 else re.escape(word), text) is not None


def digest_of(places: Iterable[str], texts: Texts) -> str:
    """A digest of the code at some places; UNKNOWN where one of them does not exist."""
    found = [texts.get(place, place if place == TABLES else None) for place in places]
    if not found or None in found:
        return UNKNOWN
    return hashlib.sha256("\n".join(sorted(map(str, found))).encode()).hexdigest()[:8]


def asked(rows: Iterable[Row], claims: Mapping[str, Finder], release: str, texts: Texts) -> list[Row]:
    """The rows of these claims for a release with these texts.

    A row stays confirmed where its code is unchanged. Where a part of the code is gone, and for a new claim, the places
    are searched again, so that a function that has only moved counts as unchanged.
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
    """Check the claims about a release, write the program's file, and return the rows that must be confirmed."""
    rows = asked(rows_of(program), claims_of(program), release, texts_of(package, modules))
    file_of(program).parent.mkdir(exist_ok=True)
    file_of(program).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return [row for row in rows if row.asked]


def file_of(program: str) -> Path:
    """The path of a program's claims."""
    return FOLDER / f"{program}.txt"


def rows_of(program: str) -> list[Row]:
    """The rows in a program's file; none where there is no file."""
    path = file_of(program)
    return [_row(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def _row(line: str) -> Row:
    release, digest, places, claim = line.split(maxsplit=3)
    where = () if places == UNKNOWN else tuple(places.split(","))
    return Row(claim, release.lstrip("?"), digest, where, release.startswith("?"))
