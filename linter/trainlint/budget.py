"""What one file may cost, in counted steps: no verdict depends on the machine, or on the other files of a run.

Everything that is read, matched or compared has its bound here. A file that goes beyond one of them is reported once
(TL003), at the place, and the rest of the run goes on.
"""

from __future__ import annotations

from trainlint.lazy import regex
from trainlint.records import NamedTuple

_DIGITS = regex(r"[0-9]+")


class Budget(NamedTuple):
    """The bounds of one file. Honest files stay far below: a thousand TrainJobs have less than 100,000 values."""

    bytes: int = 10_000_000
    lines: int = 500_000
    values: int = 250_000
    """Keys and values, as written."""
    expanded: int = 50_000
    """Keys and values of one document, with every alias written out."""
    depth: int = 100
    """Levels of nesting, those behind aliases included, and folders from the workspace to a file."""
    scalar: int = 1_000_000
    """Characters of one value."""
    key: int = 1_000
    """Characters of one key."""
    digits: int = 250
    """Characters of a number: no shorter one is too large for a float, not even in base 16."""
    message: int = 500
    """Characters of a message, in which a value may stand."""
    findings: int = 500
    """Findings of one rule in one object or config."""
    comments: int = 2_000
    """Suppression comments in one file."""
    path: int = 1_000
    """Characters of a folder that commands enter one after another."""
    code: int = 300_000
    """Characters of a file of Python."""
    script: int = 200_000
    """Characters of a script, or of all scripts in one document, that are read as shell text."""
    command: int = 5
    """Levels of scripts that commands pass to a shell, and of here-documents."""
    settings: int = 500_000
    """Bytes of a file with settings."""
    patterns: int = 1_000
    """Patterns of paths in one setting, and their stars; releases of one program."""
    selectors: int = 5_000
    """Codes, prefixes and names of rules in one file with settings."""
    pattern: int = 1_000
    """Characters of such a pattern, and of a regular expression that is tried."""
    stars: int = 20
    """Stars of a pattern of paths."""
    likened: int = 100
    """Characters of a word for which a similar one is looked for."""
    candidates: int = 2_500
    """Words among which it is looked for."""
    included: int = 250
    """Files or groups that one names, and that these name, for the releases in them."""
    references: int = 2_000
    """Times that these files name each other."""


BUDGET = Budget()


def has_long_number(text: str) -> bool:
    """There are more digits in a row than a number may have."""
    return len(text) > BUDGET.digits and any(len(digits) > BUDGET.digits for digits in _DIGITS.findall(text))
