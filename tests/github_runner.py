"""As much of a GitHub runner as the Action needs: its steps one after the other, and what they left behind."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import NamedTuple

import yaml

from external import ROOT, run

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, object]] = ACTION["runs"]["steps"]
STEP = {str(step["id"]): step for step in STEPS}
DEFAULTS: dict[str, str] = {name: str(entry["default"]) for name, entry in ACTION["inputs"].items()}

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
OUTPUT = re.compile(r"steps\.([\w-]+)\.outputs\.([\w-]+)")


class Ran(NamedTuple):
    """What a step left behind."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


def file_command(text: str) -> dict[str, str]:
    """The outputs that a step wrote: `name=value`, or `name<<word` and the lines before one that is the word."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, equals, value = line.partition("=")
        if "<<" in name or not equals:
            name, _, word = line.partition("<<")
            assert word, line
            value = "\n".join(iter(lines.__next__, word))
        assert name not in found, name
        found[name] = value
    return found


class Log(NamedTuple):
    """What a step printed: `inert` while GitHub took no commands, and the rest."""

    inert: str
    live: str


def log_of(text: str) -> Log:
    """A log in two."""
    found: dict[bool, str] = {True: "", False: ""}
    word = ""
    for line in text.splitlines(keepends=True):
        if word and line.strip() == f"::{word}::":
            word = ""
        elif not word and line.startswith("::stop-commands::"):
            word = line.strip().removeprefix("::stop-commands::")
            assert len(word) >= 32
        else:
            found[bool(word)] += line
    assert not word
    return Log(found[True], found[False])


class Runner:
    """As much of a GitHub runner as a composite of `run` steps and of GitHub's cache needs."""

    def __init__(self, action_path: Path, workspace: Path, temp: Path, env: dict[str, str]) -> None:
        self.action_path = action_path
        self.workspace = workspace
        self.temp = temp
        self.env = env
        self.outputs: dict[str, dict[str, str]] = {}
        self.cached: dict[str, str] = {}
        """The folders that are in the cache, by key; they stay where they are."""

    def at(self, workspace: Path, **env: str) -> Runner:
        """This runner, with the Action installed, before another checkout and with further variables."""
        other = Runner(self.action_path, workspace, self.temp, {**self.env, **env})
        other.outputs = dict(self.outputs)
        other.cached = dict(self.cached)
        return other

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
            # A step that is left out, and an output that it did not set, are empty.
            assert step[1] in STEP
            return self.outputs.get(step[1], {}).get(step[2], "")

        return EXPRESSION.sub(value, text)

    def _wanted(self, step: dict[str, object], inputs: dict[str, str]) -> bool:
        """The `if` of a step: comparisons that all hold."""
        for comparison in str(step.get("if", "'' == ''")).split(" && "):
            left, operator, right = comparison.split(" ")
            given = left.strip("'") if left.startswith("'") else self.evaluate(f"${{{{ {left} }}}}", inputs)
            if (given == right.strip("'")) is not (operator == "=="):
                return False
        return True

    def _cache(self, step: dict[str, object], inputs: dict[str, str]) -> None:
        """actions/cache/restore and actions/cache/save."""
        given = step["with"]
        assert isinstance(given, dict)
        path, key = (self.evaluate(str(given[name]), inputs) for name in ("path", "key"))
        if str(step["uses"]).startswith("actions/cache/save@"):
            assert Path(path).is_dir()
            self.cached[key] = path
        else:
            self.outputs[str(step["id"])] = {"cache-hit": "true"} if self.cached.get(key) == path else {}

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
        command = [str(shutil.which("bash")), "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)]
        done = run(command, cwd=self.workspace, env=env, network=False)
        written = file_command(outputs.read_text(encoding="utf-8"))
        self.outputs[str(step["id"])] = written
        return Ran(done.returncode, done.stdout + done.stderr, written, summary.read_text(encoding="utf-8"))

    def run(self, **changed: str) -> Ran:
        """Run the steps until one fails; the outputs are those that the action itself hands on."""
        inputs = {**DEFAULTS, **{name.replace("_", "-"): value for name, value in changed.items()}}
        again = not {"version", "cache"} & changed.keys() and "install" in self.outputs
        for step in STEPS:
            if (again and step["id"] != "lint") or not self._wanted(step, inputs):
                continue
            if "uses" in step:
                self._cache(step, inputs)
                continue
            ran = self.step(step, inputs)
            if ran.code:
                break
        outputs = {name: self.evaluate(entry["value"], inputs) for name, entry in ACTION["outputs"].items()}
        return ran._replace(outputs=outputs)
