"""All rules of all programs and trainlint's own, and the names that settings and options may use."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from trainlint.findings import nearest, shortened
from trainlint.programs.table import PROGRAMS, TARGETS, VERDICT_ONLY, VERDICTS
from trainlint.records import NamedTuple
from trainlint.releases import spans, version_tuple
from trainlint.rule import Rule, rules_of
from trainlint.selection import ALL, reach
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


@cache
def all_rules() -> list[Rule]:
    """Every rule, by code; this imports all rule sets."""
    return rules_of({OWN_RULES, *(module for program in PROGRAMS.values() for module in program.rules)})


@cache
def rule_names() -> Mapping[str, str]:
    """The name of every rule, by code; this imports no rules, but reads the list that `make docs` derives from them."""
    lines = Path(__file__).with_name("rule_names.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split() for line in lines)


@cache
def _codes() -> Mapping[str, str]:
    """The code of every rule, by its code and name in lower case."""
    return {word: code for code, name in rule_names().items() for word in (code.lower(), name)}


def code_of(word: str) -> str | None:
    """The code of the rule with this code or name, in any case."""
    return _codes().get(word.lower())


def find_rule(word: str) -> Rule | None:
    """The rule with this code or name, in any case; this imports all rule sets."""
    return next((rule for rule in all_rules() if word.lower() in (rule.code.lower(), rule.name)), None)


def nearest_rule(word: str) -> str | None:
    """The code or name that is most like a word."""
    names = rule_names()
    return nearest(word, [*names.values(), *names], cutoff=0.6)


def selectors() -> list[str]:
    """Every rule selector: ALL, the prefixes of codes, the codes, the names."""
    names = rule_names()
    prefixes = dict.fromkeys(code[:length] for code in names for length in range(2, 5))
    return [ALL, *sorted(prefixes), *names, *names.values()]


def selector_problem(word: str) -> str:
    """What is wrong with a rule selector (a code, a prefix of codes, a name, ALL); empty when nothing is."""
    if word.strip() and any(reach(code, name, word) >= 0 for code, name in rule_names().items()):
        return ""
    near = nearest(word, selectors(), cutoff=0.6)
    hint = f'did you mean "{near}"?' if near else f"codes begin with {', '.join(FAMILIES)}"
    return f"unknown rule {shortened(word)!r}, {hint}"


class RuleFacts(NamedTuple):
    """What the cases of a rule show.

    `fix` is `safe` where `--fix` fixes some findings, `unsafe` where only `--unsafe-fixes` does, else empty. `releases`
    are the known releases of each program in which a case is reported, as spans.
    """

    fix: str
    releases: Mapping[str, str]

    def in_words(self) -> str:
        """The releases for people: `Axolotl since 0.12.2; TRL, all known releases`."""
        told = []
        for program, written in self.releases.items():
            words = " and ".join(span.words for span in spans(written))
            told.append(f"{PROGRAMS[program].title}{f' {words}' if words else ', all known releases'}")
        return "; ".join(told)


@cache
def rule_facts() -> Mapping[str, RuleFacts]:
    """The facts of all rules, by code; tools/rule_facts.py makes the file."""
    import json

    data = json.loads(Path(__file__).with_name("rule_facts.json").read_text(encoding="utf-8"))
    return {code: RuleFacts(**row) for code, row in data.items()}


def known_programs() -> tuple[str, ...]:
    """The programs that rules are about, by name."""
    return tuple(dict.fromkeys([*TARGETS, *VERDICT_ONLY]))


def known_releases(program: str) -> tuple[str, ...]:
    """The known releases of a program that a target may name, oldest first; none of any other word."""
    if program == "kubeflow-trainer":
        from trainlint.programs.kubeflow.facts.release import RELEASES

        return tuple(RELEASES)
    if program == "torchtune":
        from trainlint.programs.torchtune.facts import RELEASES as TORCHTUNE

        return TORCHTUNE
    if program in VERDICTS:
        return VERDICTS[program].releases
    if program not in PROGRAMS:
        return ()
    from trainlint.training.declarations import declarations

    return declarations(program).names


def programs_of_rule(rule: Rule) -> tuple[str, ...]:
    """The programs whose files a rule looks at, and the one whose verdict it gives."""
    own = [name for name, program in PROGRAMS.items() if rule.module in program.rules]
    return tuple(dict.fromkeys([*own, *([rule.program] if rule.program else [])]))


def holds_for(rule: Rule, program: str, version: str) -> bool:
    """The rule may find something in the files of a release of a program: nothing shows that it does not."""
    if program not in programs_of_rule(rule):
        return False
    written = rule_facts()[rule.code].releases.get(program)
    if written is None:
        return True
    asked = version_tuple(version)
    return any(
        (not span.since or version_tuple(span.since)[: len(asked)] <= asked)
        and (not span.until or asked <= version_tuple(span.until)[: len(asked)])
        for span in spans(written)
    )


def parse_target(option: str) -> dict[str, Target]:
    """`PROGRAM=VERSION[,VERSION…]` as a target. Raises TargetError."""
    return _parse_target(option, TARGETS, VERDICT_ONLY)


VOCABULARY = Vocabulary(PROGRAMS, TARGETS, VERDICT_ONLY, selector_problem, selectors)
"""The names of programs and rules, for settings."""
