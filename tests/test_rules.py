"""The registry of rules, and that everything derived from it agrees."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints

import pytest
from click.testing import CliRunner

from trainlint.catalogue import FAMILIES, OWN_RULES, all_rules, nearest_rule
from trainlint.cli import main
from trainlint.findings import Finding, Stage
from trainlint.programs.kubeflow.objects import TrainJob
from trainlint.programs.table import PROGRAMS, Program
from trainlint.report import Report
from trainlint.reports import render
from trainlint.rule import rule, rules_of

RULES = all_rules()

each_program = pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)


def test_codes_names_and_families() -> None:
    assert [r.code for r in RULES] == sorted({r.code for r in RULES})
    assert len({r.name for r in RULES}) == len(RULES)
    for known in RULES:
        assert re.fullmatch(rf"(?:{'|'.join(FAMILIES)})\d{{3}}", known.code), f"FAMILIES has no family of {known.code}"
        assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", known.name)


def test_every_rule_set_belongs_to_a_program() -> None:
    used = {module for program in PROGRAMS.values() for module in program.rules}
    assert used | {OWN_RULES} == {r.module for r in RULES}


@each_program
def test_rules_ask_for_the_facts_of_their_program(program: Program) -> None:
    module = program.load()
    facts = module.facts(module.in_force("999").label)
    for known in rules_of(program.rules):
        if known.takes_facts:
            wanted = list(get_type_hints(known.check).values())[1]
            assert isinstance(facts, wanted), f"{known.code} asks for {wanted.__name__}"


@each_program
def test_rules_speak_for_a_program_that_gives_verdicts_on_the_files(program: Program) -> None:
    speakers = {None, program.name, *program.verdicts, "trainlint"}
    assert {known.program for known in rules_of(program.rules)} <= speakers


@each_program
def test_every_text_with_a_marker_has_one_of_its_words(program: Program) -> None:
    fixtures = Path(__file__).resolve().parent.parent / "fixtures"
    texts = [file.read_bytes().decode("latin-1") for file in fixtures.rglob("*.y*ml")]
    marked = [text for text in texts if program.pattern.search(text)]
    assert marked
    assert all(any(word in text for word in program.words) for text in marked)


def test_the_list_explain_and_sarif_hold_the_same_rules() -> None:
    listed = json.loads(CliRunner().invoke(main, ["rules", "--format", "json"]).stdout)
    assert [row["code"] for row in listed] == [r.code for r in RULES]
    (run,) = json.loads(render("sarif", Report()))["runs"]
    descriptors = {d["id"]: d for d in run["tool"]["driver"]["rules"]}
    assert list(descriptors) == [r.code for r in RULES]
    table = CliRunner().invoke(main, ["rules"]).stdout
    for known in RULES:
        assert f"{known.code}  {known.name} " in table
        assert descriptors[known.code]["name"] == known.name.title().replace("-", "")
        for word in (known.code, known.name, known.code.lower()):
            explained = CliRunner().invoke(main, ["explain", word])
            assert explained.exit_code == 0
            assert known.documentation in explained.stdout


def test_an_unknown_rule() -> None:
    result = CliRunner().invoke(main, ["explain", "single-node-modle"])
    assert result.exit_code == 2
    assert 'did you mean "single-node-model"?' in result.stderr
    assert nearest_rule("zzzz") is None


def test_a_code_or_name_is_taken_once() -> None:
    def check(job: TrainJob) -> Iterator[Finding]:
        yield from ()

    with pytest.raises(ValueError, match="taken by TT102"):
        rule("TT102", "another-name", stage=Stage.LOAD)(check)
    with pytest.raises(ValueError, match="taken by TT102"):
        rule("TT999", "single-node-model", stage=Stage.LOAD)(check)
