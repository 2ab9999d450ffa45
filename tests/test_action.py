"""The GitHub Action: what its file promises, and its steps run one after the other as a runner would, network off."""

from __future__ import annotations

import json
import re

import pytest

from external import ROOT
from github_runner import ACTION, DEFAULTS, EXPRESSION, STEPS, Runner, log_of
from trainlint import __version__


def texts(node: object) -> list[str]:
    """Every text below a node of the file."""
    if isinstance(node, dict):
        return [text for value in node.values() for text in texts(value)]
    if isinstance(node, list):
        return [text for value in node for text in texts(value)]
    return [node] if isinstance(node, str) else []


def test_expressions_stand_in_env_and_outputs_alone() -> None:
    allowed = texts([step.get("env") for step in STEPS]) + texts(ACTION["outputs"])
    used = [text for text in texts(ACTION) if "${{" in text]
    assert sorted(used) == sorted(text for text in allowed if "${{" in text)
    assert all(EXPRESSION.fullmatch(text) for text in used)


def test_every_step_is_bash_and_pinned() -> None:
    for step in STEPS:
        if "uses" in step:
            assert re.search(r"@[0-9a-f]{40}$", str(step["uses"])), step
        else:
            assert step["shell"] == "bash", step


def test_inputs_are_declared_and_used() -> None:
    used = {name for text in texts(STEPS) for name in re.findall(r"inputs\.([\w-]+)", text)}
    assert used == set(DEFAULTS)


def test_the_readme_lists_inputs_and_outputs() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("### As a GitHub Action")[1].split("\n## ")[0]
    inputs, outputs = section.split("| output |")
    assert dict(re.findall(r"^\| `([\w-]+)` \| ?`?([^`|]*?)`? ?\|", inputs, re.MULTILINE)) == DEFAULTS
    assert re.findall(r"^\| `([\w-]+)` \|", outputs, re.MULTILINE) == list(ACTION["outputs"])


BAD = "jobs/qwen-two-nodes.yaml"
GOOD = "jobs/llama-1b.yaml"


def test_findings(runner: Runner) -> None:
    ran = runner.run(working_directory="train ing", paths=f"{BAD}\n{GOOD}\n")
    assert ran.code == 1, ran.log
    assert ran.outputs == {"sarif-file": "train ing/trainlint.sarif", "exit-code": "1", "findings": "2"}
    document = json.loads((runner.workspace / ran.outputs["sarif-file"]).read_text(encoding="utf-8"))
    places = [
        (location["artifactLocation"]["uri"], location["region"]["startLine"])
        for result in document["runs"][0]["results"]
        for location in [result["locations"][0]["physicalLocation"]]
    ]
    assert places == [(f"train%20ing/{BAD}", 11), (f"train%20ing/{BAD}", 15)]
    # GitHub shows an annotation on the file of the repository, wherever trainlint was started.
    assert f"::error file=train ing/{BAD},line=11," in log_of(ran.log).live
    assert f"{BAD}:11:15: error TT" in log_of(ran.log).inert
    assert ran.summary.startswith(f"### trainlint\n\n    {BAD}:11:15: error TT")


@pytest.mark.parametrize("form", ["text", "concise", "json", "sarif"])
def test_other_formats_annotate_nothing(runner: Runner, form: str) -> None:
    ran = runner.run(working_directory="train ing", paths=BAD, format=form)
    assert ran.code == 1
    log = log_of(ran.log)
    assert not log.live
    if form in ("json", "sarif"):
        assert isinstance(json.loads(log.inert), dict)
    else:
        assert log.inert.startswith(f"{BAD}:11:15: error TT")


def test_no_findings(runner: Runner) -> None:
    ran = runner.run(paths=f"train ing/{GOOD}", sarif_file="out.sarif")
    assert (ran.code, ran.outputs) == (0, {"sarif-file": "out.sarif", "exit-code": "0", "findings": "0"}), ran.log


def test_fail_on_and_config(runner: Runner) -> None:
    paths = "train ing/jobs/nightly.yaml"
    settings = runner.workspace / "quiet.toml"
    settings.write_text('ignore = ["num-proc-below-one"]\n', encoding="utf-8")
    assert runner.run(paths=paths).outputs["exit-code"] == "1"
    assert runner.run(paths=paths, config="quiet.toml").outputs["exit-code"] == "0"
    assert runner.run(paths=paths, config="quiet.toml", fail_on="note").outputs["exit-code"] == "1"


def test_wrong_use_leaves_no_document(runner: Runner) -> None:
    ran = runner.run(paths="no/such/folder", sarif_file="none.sarif")
    assert ran.code == 2
    assert ran.outputs == {"sarif-file": "", "exit-code": "2", "findings": ""}
    assert "no/such/folder" in ran.log
    assert runner.run(paths=".", format="nonsense").outputs["exit-code"] == "2"


def test_inputs_are_data_and_not_shell(runner: Runner) -> None:
    ran = runner.run(paths="$(touch hacked)\n`touch hacked`\n--exit-zero", fail_on="$(touch hacked)", config="; exit 0")
    assert ran.code == 2
    assert not list(runner.workspace.rglob("hacked"))


def test_a_released_version(runner: Runner) -> None:
    ran = runner.run(version=__version__, paths=f"train ing/{GOOD}")
    assert ran.code == 0, ran.log
    # As a version that was never released: the install fails, and with it the step.
    assert runner.step(STEPS[0], {**DEFAULTS, "version": "0.0.0"}).code != 0


@pytest.mark.parametrize("version", ["--index-url=x", "0.1/../../repo", "1 @ file:///x", "1\n::error::x"])
def test_a_version_is_nothing_but_a_release(runner: Runner, version: str) -> None:
    ran = runner.step(STEPS[0], {**DEFAULTS, "version": version})
    assert (ran.code, ran.log) == (2, "::error title=trainlint::version is no release of trainlint\n")
