"""`trainlint rules`, `explain` and `completion`: what they say of the rules, and to whom."""

from __future__ import annotations

import json
import os
import pydoc
import re
import shutil
import sys

import pytest
from click.testing import CliRunner

import rule_facts
from cases import WITHOUT, cases, judged
from external import ROOT, need, run
from test_output import Terminal
from trainlint import rule_list
from trainlint.catalogue import (
    FAMILIES,
    all_rules,
    find_rule,
    holds_for,
    known_programs,
    known_releases,
    programs_of_rule,
)
from trainlint.catalogue import (
    rule_facts as facts_of_rules,
)
from trainlint.cli import main
from trainlint.completion import SHELLS, rules, targets
from trainlint.findings import Severity
from trainlint.programs.table import PROGRAMS
from trainlint.rule import Rule


def said(*arguments: str) -> str:
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def known(word: str) -> Rule:
    found = find_rule(word)
    assert found is not None
    return found


# what is known of a rule


def test_the_facts_are_those_of_the_cases() -> None:
    assert rule_facts.FILE.read_text(encoding="utf-8") == rule_facts.text(), "run tools/rule_facts.py"


def test_each_rule_says_with_which_severities_it_reports() -> None:
    """The default one, and one other where `varies` says when; each is shown by a case."""
    shown: dict[str, set[Severity]] = {rule.code: set() for rule in all_rules()}
    for case in cases("bad"):
        for finding in judged(case)[0].findings:
            if not finding.refused_by_some:
                shown[finding.rule].add(finding.level)
    wrong = {rule.code: shown[rule.code] for rule in all_rules() if set(rule.severities) != shown[rule.code]}
    assert wrong == {code: set() for code in WITHOUT}


def test_what_varies_begins_with_the_other_severity() -> None:
    for rule in all_rules():
        assert not rule.varies or len(rule.severities) == 2, rule.code


@pytest.mark.parametrize(
    ("code", "program", "version", "expected"),
    [
        ("TT109", "kubeflow-trainer", "2.1", True),
        ("TT109", "kubeflow-trainer", "2.2", False),
        ("FS012", "accelerate", "1.15.0", True),
        ("FS012", "accelerate", "1.15", True),
        ("FS012", "accelerate", "1.14.0", False),
        ("FS012", "torchtune", "0.6.1", False),
        ("TJ525", "kubernetes", "1.33", True),
        ("TL001", "accelerate", "1.0.0", False),
    ],
)
def test_which_rules_hold_for_a_release(code: str, program: str, version: str, expected: bool) -> None:
    assert holds_for(known(code), program, version) is expected


def test_programs_of_rules() -> None:
    assert set(programs_of_rule(known("FS003"))) == {"accelerate", "transformers", "trl", "axolotl", "llamafactory"}
    assert programs_of_rule(known("TJ503")) == ("kubeflow-trainer", "torchrun")
    assert {name for rule in all_rules() for name in programs_of_rule(rule)} == {*known_programs(), "trainlint"}


def test_known_releases() -> None:
    assert known_releases("kubeflow-trainer") == ("2.0", "2.1", "2.2", "2.3")
    assert known_releases("kubernetes")[0] == "1.30"
    assert known_releases("nothing") == ()
    assert all(known_releases(name) for name in PROGRAMS)


# rules


def test_rules_as_text() -> None:
    lines = said("rules").splitlines()
    assert len(lines) == len(all_rules())
    assert re.fullmatch(
        r"FS304  soup-fsdp-backend +error or warning +start +The config's backend .+", lines[_at("FS304")]
    )


def _at(code: str) -> int:
    return [rule.code for rule in all_rules()].index(code)


def test_rules_as_json() -> None:
    rows = json.loads(said("rules", "--format", "json"))
    assert rows[_at("TT109")] == {
        "code": "TT109",
        "name": "num-nodes-missing",
        "severity": "error",
        "severities": ["error"],
        "varies": "",
        "stage": "admission",
        "ruleSet": "trainlint.programs.kubeflow.rules.torch_plugin",
        "programs": ["kubeflow-trainer"],
        "releases": {"kubeflow-trainer": "..2.1"},
        "fix": None,
        "summary": "numNodes is missing, and the webhook of this release crashes.",
        "url": "https://github.com/trainlint/trainlint/blob/main/docs/rules/TT109.md",
    }


def test_rules_as_markdown() -> None:
    lines = said("rules", "--format", "markdown").splitlines()
    assert len(lines) == len(all_rules()) + 2
    assert {re.sub(r"\\\|", "", line).count("|") for line in lines} == {6}


@pytest.mark.parametrize(
    ("options", "inside", "outside"),
    [
        (("--program", "soup"), "FS304", "FS101"),
        (("--program", "torchrun"), "TJ503", "TJ501"),
        (("--stage", "save"), "FS043", "TT102"),
        (("--target", "kubeflow-trainer=2.1"), "TT109", "TJ141"),
        (("--target", "kubeflow-trainer=2.3"), "TJ141", "TT109"),
        (("--program", "kubeflow-trainer", "--stage", "run"), "TT201", "TT102"),
    ],
)
def test_filters(options: tuple[str, ...], inside: str, outside: str) -> None:
    codes = {line.split()[0] for line in said("rules", *options).splitlines()}
    assert inside in codes
    assert outside not in codes


def test_filters_that_nothing_passes() -> None:
    assert said("rules", "--program", "soup", "--stage", "admission") == "no rule is like that\n"
    wrong = CliRunner().invoke(main, ["rules", "--program", "sop"])
    assert wrong.exit_code == 2
    assert wrong.stderr == "trainlint: unknown program 'sop', did you mean \"soup\"?\n"
    wrong = CliRunner().invoke(main, ["rules", "--program", "nope"])
    assert wrong.stderr.startswith("trainlint: unknown program 'nope', known: kubeflow-trainer, ")


# explain


def test_explain_shows_the_page() -> None:
    told = said("explain", "soup-fsdp-backend")
    for part in (
        "FS304 soup-fsdp-backend\n\nSeverity: error; warning with backend mlx, ",
        "\nIts cases are reported for Soup, all known releases.\n",
        "\nSource: Soup 0.73.3 to 0.77.0, ",
        "\nExample\n\n`mlx.yaml`:\n\n    base: acme/tiny-lm\n    backend: mlx\n",
        "\n    soup.yaml:2:10: error FS304 ",
        "\nUse instead\n\n    --- soup.yaml\n     base: acme/tiny-lm\n    -backend: unsloth\n    +backend: ",
    ):
        assert part in told
    assert told.endswith("\nhttps://github.com/trainlint/trainlint/blob/main/docs/rules/FS304.md\n")
    assert "```" not in told


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_can_be_explained(rule: Rule) -> None:
    told = rule_list.explained(rule)
    assert told.startswith(f"{rule.code} {rule.name}\n")
    assert "\x1b" not in told
    plain = re.sub(r"\x1b\[\d*m", "", rule_list.explained(rule, color=True))
    assert plain == re.sub(r"`", "", told) or rule_list.explained(rule, color=True).count("\x1b") > 1


def test_explain_is_coloured() -> None:
    told = rule_list.explained(known("FS304"), color=True)
    assert told.startswith("\x1b[1mFS304 soup-fsdp-backend\x1b[0m\n")
    assert "\x1b[31m    -backend: unsloth\x1b[0m\n\x1b[32m    +backend: transformers\x1b[0m\n" in told
    assert "does not work with \x1b[36m--fsdp\x1b[0m." in told


def test_paragraphs_are_laid_into_lines_of_the_terminal() -> None:
    told = rule_list.explained(known("FS304"), width=60)
    prose, example = told.split("\nExample\n")
    assert all(len(line) <= 60 for line in prose.splitlines())
    assert " ".join(prose.split()) == " ".join(rule_list.explained(known("FS304")).split("\nExample\n")[0].split())
    assert example == rule_list.explained(known("FS304")).split("\nExample\n")[1]


def test_explain_without_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_list, "_PAGES", ())
    assert "Backend unsloth is refused with a preset." in rule_list.explained(known("FS304"))


def test_a_prefix_lists() -> None:
    assert [line.split()[0] for line in said("explain", "TT10").splitlines()] == [f"TT10{n}" for n in range(1, 10)]
    assert said("explain", "fs30") == said("explain", "FS30")
    assert CliRunner().invoke(main, ["explain", ""]).exit_code == 2
    wrong = CliRunner().invoke(main, ["explain", "TT1022"])
    assert (wrong.exit_code, wrong.stderr) == (2, "trainlint: unknown rule 'TT1022', did you mean \"TT102\"?\n")


def test_explain_is_paged_on_a_terminal_that_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    paged: list[str] = []
    screen = Terminal()
    monkeypatch.setattr("click.echo_via_pager", lambda text, color: paged.append(text))
    monkeypatch.delenv("NO_COLOR", raising=False)
    for lines, pages in (("10", 1), ("1000", 0)):
        paged.clear()
        monkeypatch.setenv("LINES", lines)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", screen)
            with pytest.raises(SystemExit):
                main(["explain", "TT102"])
        assert len(paged) == pages
    assert pydoc.plain(screen.getvalue()) is not None
    assert "\x1b[1mTT102 single-node-model\x1b[0m" in screen.getvalue()


def test_explain_as_data() -> None:
    """One rule or those of a prefix: as in the list, with the page; as Markdown the page itself."""
    (row,) = json.loads(said("explain", "TT102", "--format", "json"))
    (listed,) = (one for one in json.loads(said("rules", "--format", "json")) if one["code"] == "TT102")
    page = (ROOT / "docs/rules/TT102.md").read_text(encoding="utf-8")
    assert row == {**listed, "explanation": page}
    assert said("explain", "single-node-model", "--format", "markdown") == page
    assert [one["code"] for one in json.loads(said("explain", "TT10", "--format", "json"))] == rules("TT10")
    assert said("explain", "TT10", "--format", "markdown").startswith("| code | name |")


# completion


def completed(*words: str) -> list[str]:
    """What a shell is offered for the last of these words."""
    env = {
        "COMP_WORDS": " ".join(("trainlint", *words)),
        "COMP_CWORD": str(len(words)),
        "_TRAINLINT_COMPLETE": "bash_complete",
    }
    done = run([sys.executable, "-m", "trainlint"], cwd=ROOT, env={**os.environ, **env})
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_words_of_rules() -> None:
    assert rules("tt10") == [f"TT10{n}" for n in range(1, 10)]
    assert rules("FS001,single-n") == ["FS001,single-node-model"]
    assert rules("") == list(FAMILIES)
    assert rules("TT101,")[:2] == ["TT101,TT", "TT101,FS"]


def test_words_of_targets() -> None:
    assert targets("ax") == ["axolotl="]
    assert targets("kubeflow-trainer=") == [f"kubeflow-trainer={version}" for version in ("2.3", "2.2", "2.1", "2.0")]
    assert targets("nothing=") == []


def test_the_first_word() -> None:
    assert completed("expl") == ["file,expl", "plain,explain"]
    assert completed("--ver") == ["plain,--verbose", "plain,--version"]
    assert completed("check", "--form") == ["plain,--format"]


def test_words_after_options() -> None:
    assert completed("check", "--select", "FS30")[:2] == ["plain,FS301", "plain,FS302"]
    assert completed("--target", "soup=0.73") == ["plain,soup=0.73.3"]
    assert completed("explain", "TT501") == ["plain,TT501"]
    assert "plain,azure" in completed("--format", "a")
    assert completed("rules", "--program", "torcht") == ["plain,torchtune"]


def test_installation() -> None:
    told = said("completion")
    assert all(f"{shell}: add to {file}\n    {line}\n" in told for shell, (file, line) in SHELLS.items())


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_of_its_shell(shell: str) -> None:
    text = said("completion", shell)
    assert f"_TRAINLINT_COMPLETE={shell}_complete" in text
    program = shutil.which(shell)
    if shell == "bash":
        need(program, "bash")
    if program is None:
        pytest.skip(f"no {shell} here")
    done = run([program, "-n", "-c", text], cwd=ROOT, env=dict(os.environ))
    assert (done.returncode, done.stderr) == (0, "")


BASH_WORDS = {
    "explain TT10": [f"TT10{n}" for n in range(1, 10)],
    "expl": ["explain"],
    "compl": ["completion"],
    "check --format = sa": ["sarif"],
    "check --fail-on =": ["note", "warning", "error"],
    "check --target soup = 0.73": ["0.73.3"],
    "--target = soup = 0.73": ["0.73.3"],
    "check --target axo": ["axolotl="],
    "check --select = FS301,FS30": ["FS301,FS301"],
    "check --form": ["--format"],
    "check --output = sarif =": [],
}
"""By the words that bash makes of a command line, `=` among them: what it is offered for the last one."""


def test_bash_completes() -> None:
    """The words that bash puts in the place of the last one, which begins behind an equals sign."""
    bash = shutil.which("bash")
    need(bash, "bash")
    asked = "".join(
        f"COMP_WORDS=(trainlint {words}); COMP_CWORD={len(words.split())}; COMPREPLY=(); "
        '_trainlint_completion trainlint 2> /dev/null; echo "${COMPREPLY[*]}"; '
        for words in BASH_WORDS
    )
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
    command = f'eval "$(trainlint completion bash)"; {asked}'
    done = run([str(bash), "-c", command], cwd=ROOT, env={**os.environ, "PATH": path})
    for (words, expected), offered in zip(BASH_WORDS.items(), done.stdout.splitlines(), strict=True):
        assert offered.split()[: len(expected) or None] == expected, words


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_offered_the_whole_word(shell: str) -> None:
    """They put what they are offered in the place of `--option=val`."""
    words = {"COMP_WORDS": "trainlint check --format=sa", "COMP_CWORD": "2" if shell == "zsh" else "--format=sa"}
    env = {**os.environ, **words, "_TRAINLINT_COMPLETE": f"{shell}_complete"}
    done = run([sys.executable, "-m", "trainlint"], cwd=ROOT, env=env)
    assert "--format=sarif" in done.stdout


def test_facts_are_of_known_releases() -> None:
    for code, facts in facts_of_rules().items():
        assert set(facts.releases) <= set(PROGRAMS), code
        assert facts.fix in ("", "safe", "unsafe")
