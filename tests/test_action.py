"""The GitHub Action: what its file promises, and its steps run one after the other as a runner would, network off."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from external import DEMO, ROOT, commit_all, copy_of_project, need, need_wheelhouse, offline_environment, run
from trainlint import __version__

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, object]] = ACTION["runs"]["steps"]
DEFAULTS: dict[str, str] = {name: str(entry["default"]) for name, entry in ACTION["inputs"].items()}

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
OUTPUT = re.compile(r"steps\.([\w-]+)\.outputs\.([\w-]+)")


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


class Ran(NamedTuple):
    """What a step left behind."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """As much of a GitHub runner as a composite of `run` steps needs."""

    def __init__(self, action_path: Path, workspace: Path, temp: Path, env: dict[str, str]) -> None:
        self.action_path = action_path
        self.workspace = workspace
        self.temp = temp
        self.env = env
        self.outputs: dict[str, dict[str, str]] = {}

    def evaluate(self, text: str, inputs: dict[str, str]) -> str:
        """One expression of an `env` entry or an output; a name that nothing defines is an error here."""

        def value(match: re.Match[str]) -> str:
            expression = match[1]
            if expression == "github.action_path":
                return str(self.action_path)
            if expression.startswith("inputs."):
                return inputs[expression.removeprefix("inputs.")]
            step = OUTPUT.fullmatch(expression)
            assert step, f"an expression that this runner does not know: {expression}"
            return self.outputs[step[1]][step[2]]

        return EXPRESSION.sub(value, text)

    def step(self, step: dict[str, object], inputs: dict[str, str]) -> Ran:
        """Run one step with GitHub's own bash options."""
        script, outputs, summary = (self.temp / name for name in ("step.sh", "outputs", "summary.md"))
        script.write_text(str(step["run"]), encoding="utf-8")
        outputs.write_text("", encoding="utf-8")
        summary.write_text("", encoding="utf-8")
        given = step.get("env")
        assert isinstance(given, dict)
        env = {
            **self.env,
            **{key: self.evaluate(str(value), inputs) for key, value in given.items()},
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_STEP_SUMMARY": str(summary),
            "RUNNER_TEMP": str(self.temp),
        }
        command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
        done = run(command, cwd=self.workspace, env=env, network=False)
        written = dict(line.split("=", 1) for line in outputs.read_text(encoding="utf-8").splitlines())
        self.outputs[str(step["id"])] = written
        return Ran(done.returncode, done.stdout + done.stderr, written, summary.read_text(encoding="utf-8"))

    def run(self, **changed: str) -> Ran:
        """Run the steps until one fails; the outputs are those that the action itself hands on."""
        inputs = {**DEFAULTS, **{name.replace("_", "-"): value for name, value in changed.items()}}
        for step in STEPS:
            if step["id"] == "install" and not changed.get("version") and "install" in self.outputs:
                continue
            ran = self.step(step, inputs)
            if ran.code:
                break
        outputs = {name: self.evaluate(entry["value"], inputs) for name, entry in ACTION["outputs"].items()}
        return ran._replace(outputs=outputs)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """A runner with the Action checked out beside a repository that holds the demo in a folder with a space."""
    need_wheelhouse()
    need(os.name != "nt" and shutil.which("bash"), "bash")
    folder = tmp_path_factory.mktemp("action")
    wheels = folder / "wheels"
    env = offline_environment(folder, wheels)
    action_path = copy_of_project(folder / "actions" / "trainlint")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    built = run(build, cwd=action_path, env=env)
    assert built.returncode == 0, built.stderr
    workspace = folder / "workspace"
    shutil.copytree(DEMO, workspace / "train ing")
    commit_all(workspace, env)
    temp = folder / "temp"
    temp.mkdir()
    return Runner(action_path, workspace, temp, env)


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
    assert f"::error file=train ing/{BAD},line=11," in ran.log
    assert f"{BAD}:11:15: error TT" in ran.log
    assert f"{BAD}:11:15: error TT" in ran.summary
    assert ran.summary.startswith("### trainlint\n")


@pytest.mark.parametrize("form", ["text", "concise", "json", "sarif"])
def test_other_formats_annotate_nothing(runner: Runner, form: str) -> None:
    ran = runner.run(working_directory="train ing", paths=BAD, format=form)
    assert ran.code == 1
    assert "::error" not in ran.log
    if form in ("json", "sarif"):
        assert isinstance(json.loads(ran.log), dict)
    else:
        assert ran.log.startswith(f"{BAD}:11:15: error TT")


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
