"""The vocabulary of sharding and the rules written against it, whichever program fills it in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import pytest

from trainlint.findings import Finding, Severity
from trainlint.reading.document import documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import Absent, Field, Known, WrongType
from trainlint.rule import Rule, rules_of
from trainlint.training.fsdp import FSDP2_ALWAYS, FsdpFacts, FsdpRun, FsdpSetup, Training, Words, nothing

TEXT = """\
switch: FSDP
section:
  strategy: SHARD_GRAD_OP
  reshard: HYBRID_SHARD
  version: 1
  size: 10
trainer: true
"""
ROOT = Field.root(next(documents("a.yaml", Text(TEXT))), Dialect.PYYAML)
RULES = rules_of(["trainlint.training.fsdp_rules"])
STRICT = FsdpFacts(
    versions=(1, 2),
    words={"strategy": {1: Words(frozenset(("FULL_SHARD", "SHARD_GRAD_OP")))}},
    fsdp1_only={"strategy": Severity.WARNING},
    reshard_under_fsdp1=Severity.WARNING,
    two_checkpointings=Severity.ERROR,
    deepspeed_beside=Severity.ERROR,
)


def setup(facts: FsdpFacts = STRICT, *, on: bool = True) -> FsdpSetup:
    switch = ROOT.get("switch")
    return FsdpSetup(facts=facts, switch=switch, section=ROOT.get("section"), sharding=Known(switch, on))


def said(view: FsdpSetup | FsdpRun) -> list[Finding]:
    return list(_said(view))


def _said(view: FsdpSetup | FsdpRun) -> Iterator[Finding]:
    for rule in RULES:
        if isinstance(view, rule.subject):
            for finding in rule.run([view], None):
                yield finding.stamped(
                    rule=rule.code, name=rule.name, severity=rule.severity, stage=rule.stage, program="p", version="1"
                )


def strategy(word: str) -> Known[str]:
    return Known(ROOT.at("section", "strategy"), word)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_rules_see_only_the_vocabulary(rule: Rule) -> None:
    """One parameter, a setup or a run: what releases and programs do differently is in its facts."""
    assert rule.subject in (FsdpSetup, FsdpRun)
    assert not rule.takes_facts


def test_facts_that_say_nothing_let_no_rule_speak() -> None:
    silent = FsdpFacts()
    given = replace(
        setup(silent),
        strategy=strategy("NONE"),
        reshard=Known(ROOT.at("section", "reshard"), "NO_SHARD"),
        wrap_policy=WrongType[str](ROOT.get("section")),
        offload=WrongType[bool](ROOT.get("section")),
        deepspeed=ROOT.get("trainer"),
    )
    checkpointing = Known(ROOT.get("trainer"), True)
    training = Training(arguments=ROOT, gradient_checkpointing=checkpointing, save_only_model=checkpointing)
    assert said(given) == []
    assert said(FsdpRun(facts=silent, setup=given, training=training)) == []


def test_an_empty_setup_is_fine() -> None:
    assert said(setup()) == []
    assert said(FsdpRun(facts=STRICT, setup=setup(), training=Training(arguments=ROOT))) == []


def test_settings_count_only_while_sharding_is_on() -> None:
    assert [f.rule for f in said(replace(setup(), strategy=strategy("NONE")))] == ["FS003"]
    assert said(replace(setup(on=False), strategy=strategy("NONE"))) == []


def test_every_setting_in_facts_is_one_of_the_setup() -> None:
    names = {field.name for field in fields(FsdpSetup)}
    assert set(FSDP2_ALWAYS) <= names


def test_nothing_is_absent_and_has_no_place() -> None:
    value: Absent[bool] = nothing()
    assert value.absent
    assert value.field.relate("here") == ()
    assert setup().deepspeed.is_absent


@pytest.mark.parametrize(
    ("runs", "wanted", "speaks"),
    [(None, "FULL_SHARD", False), (None, "2", True), ("SHARD_GRAD_OP", "SHARD_GRAD_OP", False)],
)
def test_strategy_where_fsdp1_does_not_look(runs: str | None, wanted: str, speaks: bool) -> None:
    view = replace(setup(), reshard=Known(ROOT.at("section", "reshard"), wanted))
    view = replace(view, strategy=strategy(runs)) if runs else view
    assert ("FS020" in [f.rule for f in said(view)]) is speaks


def test_the_fix_moves_the_strategy_to_where_it_is_read() -> None:
    view = replace(setup(), reshard=Known(ROOT.at("section", "reshard"), "HYBRID_SHARD"))
    (finding,) = said(view)
    assert finding.fix
    assert (finding.level, finding.fix.keeps) == (Severity.WARNING, False)
    (edit,) = finding.fix.edits
    assert TEXT[edit.start : edit.end] == "reshard"
    assert edit.replacement == "fsdp_sharding_strategy"


@pytest.mark.parametrize(("word", "level"), [("FULL_SHARD", Severity.NOTE), ("SHARD_GRAD_OP", Severity.WARNING)])
def test_a_setting_that_fsdp2_keeps_to_anyway_is_only_noted(word: str, level: Severity) -> None:
    view = replace(setup(), version=Known(ROOT.at("section", "version"), 2), strategy=strategy(word))
    assert [(f.rule, f.level) for f in said(view)] == [("FS022", level)]


def test_what_meets_across_files_points_at_both() -> None:
    view = replace(setup(), activation_checkpointing=Known(ROOT.at("section", "size"), True))
    training = Training(arguments=ROOT, gradient_checkpointing=Known(ROOT.get("trainer"), True))
    (finding,) = said(FsdpRun(facts=STRICT, setup=view, training=training))
    assert (finding.rule, finding.span.line, [r.span.line for r in finding.related]) == ("FS040", 7, [6])
