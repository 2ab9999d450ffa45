"""All rules of all programs and trainlint's own, and the names that settings and options may use."""

from __future__ import annotations

import re

from trainlint.findings import nearest
from trainlint.programs.table import PROGRAMS, TARGETS, VERDICT_ONLY
from trainlint.rule import Rule, rules_of
from trainlint.settings import Vocabulary
from trainlint.targets import Target
from trainlint.targets import parse_target as _parse_target

OWN_RULES = "trainlint.own_rules"
FAMILIES = {
    "TT": "TorchTune: TrainJobs that run torchtune, its recipe configs and commands",
    "FS": "FSDP: sharding and other settings of trainers",
    "TJ": "TrainJobs and runtimes: admission, start, settings without effect",
    "YD": "YAML dialect",
    "TL": "trainlint's own",
}
"""The families of codes, by the letters that they begin with."""


def all_rules() -> list[Rule]:
    """Every rule, by code; this imports all rule sets."""
    return rules_of({OWN_RULES, *(module for program in PROGRAMS.values() for module in program.rules)})


def find_rule(word: str) -> Rule | None:
    """The rule with this code or name, in any case."""
    folded = word.lower()
    return next((r for r in all_rules() if folded in (r.code.lower(), r.name)), None)


def nearest_rule(word: str) -> str | None:
    """The code or name that is most like a word."""
    rules = all_rules()
    return nearest(word, [r.name for r in rules] + [r.code for r in rules], cutoff=0.6)


def selector_problem(word: str) -> str:
    """What is wrong with a rule selector (a code, a prefix of codes, a name); empty when nothing is.

    This imports the rules, except for a word that looks like a family (`TT`, `FS1`), which is accepted unchecked.
    """
    if re.fullmatch(rf"(?:{'|'.join(FAMILIES)})\d{{0,2}}", word, re.IGNORECASE):
        return ""
    if any(rule.matches(word) for rule in all_rules()):
        return ""
    near = nearest_rule(word)
    return f"unknown rule {word!r}" + (f', did you mean "{near}"?' if near else "")


def parse_target(option: str) -> dict[str, Target]:
    """`PROGRAM=VERSION[,VERSION…]` as a target. Raises TargetError."""
    return _parse_target(option, TARGETS, VERDICT_ONLY)


VOCABULARY = Vocabulary(PROGRAMS, TARGETS, VERDICT_ONLY, selector_problem)
"""The names of programs and rules, for settings."""
