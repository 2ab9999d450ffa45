"""Finding, Severity, Fix: what a rule says, and where."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from trainlint import records
from trainlint.budget import BUDGET
from trainlint.records import NamedTuple, dataclass, replace


class Severity(enum.Enum):
    """`error`: the program refuses or raises; `warning`: accepted, not what was meant; `note`: advice or no check."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for note, 1 for warning, 2 for error."""
        return _RANKS[self]

    def reaches(self, threshold: Severity) -> bool:
        """At or above `threshold`."""
        return self.rank >= threshold.rank


class Stage(enum.Enum):
    """When a user learns of a fault, in the order of a job's life; `run` for what never raises but was not meant."""

    ADMISSION = "admission"
    """The webhooks and the API server refuse the object."""
    CREATE = "create"
    """The JobSet, the Jobs or their pods cannot be created."""
    LOAD = "load"
    """The file is read and checked."""
    START = "start"
    """The launcher, or the constructor of a trainer, an accelerator or a recipe."""
    PREPARE = "prepare"
    """The model is wrapped, the engine or the recipe set up."""
    TRAIN = "train"
    """A training step."""
    SAVE = "save"
    """A checkpoint or the trained model is saved."""
    RUN = "run"
    """Nothing raises."""


_RANKS = {Severity.NOTE: 0, Severity.WARNING: 1, Severity.ERROR: 2}


class Span(NamedTuple):
    """A stretch of one file: lines and columns 1-based, columns in characters, the end exclusive."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


class Related(NamedTuple):
    """Another place that helps to understand a finding (an anchor, a runtime, a launcher's config)."""

    span: Span
    message: str


class Edit(NamedTuple):
    """Replace the characters `start` to `end` (exclusive) of the finding's file."""

    start: int
    end: int
    replacement: str


class Fix(NamedTuple):
    """A change that fixes a finding; `reading/mending.py` makes them.

    `title` says what is written where. The help of the finding is a different sentence that says why or how. A rule
    says whether the right text is certain (`safe`), and whether the program does the same before and after (`keeps`).
    A reported fix is `safe` only if nobody can depend on what is there: it keeps that, or the program surely refuses.
    Of fixes with the same `claim`, the place of a new key or of what is taken away, only `room` go in one round.
    """

    title: str
    edits: tuple[Edit, ...]
    safe: bool = True
    keeps: bool = False
    claim: str = ""
    room: int = 1
    renames: str = ""
    """The name that a key gets."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong at one place.

    A rule fills in what it knows; the engine adds rule, name, program, release and, unless the rule gave them, severity
    and stage. `field` is the path as the program spells it, `yaml_path` the true one.
    """

    message: str
    span: Span
    document: int
    field: str
    yaml_path: str
    help: str = ""
    severity: Severity | None = None
    stage: Stage | None = None
    """When the program raises; the engine fills in what the rule says."""
    program: str = ""
    program_versions: tuple[str, ...] = ()
    releases: str = ""
    """The releases in words, if the list would be too long: `since 0.20.0`, `0.16.0 to 1.16.0`."""
    refused_by_some: bool = False
    """It is an error in the named releases, and only a warning because the file may be for one that accepts it."""
    within: str = ""
    """The releases of a program that only gives verdicts (Kubernetes) in which this holds, as a span; empty for all."""
    stated: str = ""
    """How the release is known: `chosen`, `stated`, `range`, `unknown` or `not stated`."""
    stated_at: str = ""
    """Where the release is stated (`requirements.txt:3`); empty if nothing states it."""
    rule: str = ""
    name: str = ""
    related: tuple[Related, ...] = ()
    fix: Fix | None = records.field(default=None, compare=False)
    verdict: Severity | None = None
    """The severity before the settings set another one; None if they did not."""
    suppressed: str | None = records.field(default=None, compare=False)
    baselined: bool = records.field(default=False, compare=False)
    identity: tuple[str, ...] = records.field(default=(), compare=False)
    """What identifies the finding in its file in later runs; fingerprints.py says what it is made of."""
    home_path: str = records.field(default="", compare=False)
    """The path from the root of the repository, or of the workspace outside git: the same wherever a run starts."""

    @property
    def path(self) -> str:
        """The file, as the user named or would name it."""
        return self.span.path

    @property
    def fingerprint(self) -> str:
        """Identifies the finding in later runs."""
        return _digest(self.home_path, *self.identity) if self.identity else ""

    @property
    def content(self) -> str:
        """The fingerprint without the path: the same when the file is moved."""
        return _digest(*self.identity) if self.identity else ""

    @property
    def level(self) -> Severity:
        """The severity; every reported finding has one."""
        return self.severity or Severity.ERROR

    @property
    def settled(self) -> Finding:
        """This finding, whose fix is unsafe where some program runs with what it changes."""
        fix = self.fix
        if fix is None or not fix.safe or fix.keeps or self.level is Severity.ERROR:
            return self
        return self.with_unsafe_fix

    @property
    def with_unsafe_fix(self) -> Finding:
        """This finding, whose fix is right in some cases only."""
        return self if self.fix is None else replace(self, fix=self.fix._replace(safe=False))

    def stamped(
        self, *, rule: str, name: str, severity: Severity, stage: Stage, program: str, version: str | None
    ) -> Finding:
        """This finding with its rule, its program, its release, a severity and a stage."""
        return replace(
            self,
            message=shortened(self.message, BUDGET.message),
            help=shortened(self.help, BUDGET.message),
            rule=rule,
            name=name,
            severity=self.severity or severity,
            stage=self.stage or stage,
            program=self.program or program,
            program_versions=() if version is None else (version,),
        )


def _digest(*parts: str) -> str:
    """Sixteen hexadecimal digits."""
    from hashlib import sha256

    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


if TYPE_CHECKING:
    from typing import TypedDict

    class Details(TypedDict, total=False):
        """What a finding says besides its message; the place, the rule and the engine settle what is left out.

        `field` where the program spells the place otherwise; `at_key` when the key is wrong, not the value.
        """

        help: str
        severity: Severity | None
        stage: Stage | None
        within: str | None
        field: str | None
        program: str
        related: tuple[Related, ...]
        fix: Fix | None
        at_key: bool


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean "x"?` for the nearest of the known words, else an empty text.

    A word that begins otherwise or has other digits is another word, unless one of the two is a part of the other.
    """
    match = nearest(word, known)
    return "" if match is None or not _may_be_meant(word.lower(), match.lower()) else f'did you mean "{match}"?'


def _may_be_meant(word: str, match: str) -> bool:
    numbers = {"".join(filter(str.isdigit, one)) for one in (word, match)}
    part, whole = sorted((word, match), key=len)
    is_part = whole.endswith(part) and not whole.removesuffix(part)[-1:].isalnum()
    return len(numbers) == 1 and (word[:1] == match[:1] or is_part)


def nearest(word: str, known: Iterable[str], cutoff: float = 0.7) -> str | None:
    """The known word most like this one, or None when none is near, or too many are known; case does not count."""
    if isinstance(known, Collection) and len(known) > BUDGET.candidates:
        return None
    return _nearest(word.lower(), known if isinstance(known, frozenset) else frozenset(map(str, known)), cutoff)


@lru_cache(maxsize=2**10)
def _nearest(word: str, known: frozenset[str], cutoff: float) -> str | None:
    """The nearest word; those are compared first that can be nearest by their length and letters, and few others."""
    if len(word) > BUDGET.likened:
        return None
    hopes: list[tuple[float, str, str]] = []
    for length, words in _by_length(known).items():
        both = len(word) + length
        if both and 2 * min(len(word), length) / both >= cutoff:
            hopes += [(2 * common_letters(word, folded) / both, folded, other) for folded, other in words]
    best: tuple[float, int, str, str | None] = (cutoff, 0, "", None)
    for hope, folded, other in sorted(hopes, reverse=True):
        if hope < best[0]:
            break
        best = max(best, (_likeness(word, folded), _beginning(word, folded), folded, other), key=lambda one: one[:3])
    return best[3]


@lru_cache(maxsize=2**6)
def _by_length(known: frozenset[str]) -> dict[int, list[tuple[str, str]]]:
    """Words by their length, each in lower case and as it is."""
    found: dict[int, list[tuple[str, str]]] = {}
    for other in sorted(known):
        found.setdefault(len(other), []).append((other.lower(), other))
    return found


def common_letters(word: str, other: str) -> int:
    """How many letters two words have in common, in any order; it may be more than there are beyond ASCII letters."""
    return (_letters(word) & _letters(other)).bit_count()


@lru_cache(maxsize=2**12)
def _letters(word: str) -> int:
    """The letters of a word as a set of bits: one for each time that a letter occurs."""
    times: dict[int, int] = {}
    bits = 0
    for letter in word:
        place = ord(letter) % _PLACES
        bits |= 1 << (place + _PLACES * times.setdefault(place, 0))
        times[place] += 1
    return bits


_PLACES = 64


def _beginning(word: str, other: str) -> int:
    """How many letters two words begin with alike."""
    alike = (number for number, (one, two) in enumerate(zip(word, other, strict=False)) if one != two)
    return next(alike, min(len(word), len(other)))


@lru_cache(maxsize=2**14)
def _likeness(word: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, other, word).ratio()


def some_of(words: Iterable[object], limit: int = 5) -> str:
    """A list of values for a message, capped: `a, b, c, … (12 in all)`."""
    known = words if isinstance(words, Collection) else list(words)
    listed = ", ".join(map(str, islice(known, limit)))
    return listed if len(known) <= limit else f"{listed}, … ({len(known)} in all)"


def one_of(words: Iterable[object], limit: int = 5) -> str:
    """What may be written, for a help: `a`, `a or b`, `one of a, b, c`; capped as `some_of` does."""
    listed = [str(word) for word in words]
    return " or ".join(listed) if len(listed) < 3 else f"one of {some_of(listed, limit)}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or f'{noun}s'}"


def shortened(text: str, limit: int = 40) -> str:
    """A text for a message, cut where it is long."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
