"""The workflows: pinned, and with no more rights than they need. zizmor and actionlint judge them where they are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from external import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_every_action_is_pinned(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    for used, rest in re.findall(r"(?m)^\s*(?:- )?uses: (\S+)(.*)$", text):
        assert used.startswith("./") or re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", used), used
        assert used.startswith("./") or re.fullmatch(r" # v\d+(\.\d+)*", rest), rest


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_targets_of_make_are_there(file: Path) -> None:
    targets = re.findall(r"(?m)^([\w-]+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    scripts = [step.get("run", "") for job in workflow["jobs"].values() for step in job.get("steps", ())]
    asked = {target for script in scripts for target in re.findall(r"\bmake (?:--silent )?([a-z][\w-]*)", script)}
    assert asked <= set(targets)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_rights(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for name, job in workflow["jobs"].items():
        writes = {right for right, level in job.get("permissions", {}).items() if level == "write"}
        # Where rights to write are, no code of the repository runs: it is not even there.
        assert not writes or not any("checkout" in step.get("uses", "") for step in job["steps"]), name


@pytest.mark.parametrize(
    "command", [["zizmor", "--offline", "--no-progress", "--persona", "auditor", "."], ["actionlint"]]
)
def test_linters_of_workflows_find_nothing(command: list[str]) -> None:
    if not shutil.which(command[0]):
        pytest.skip(f"{command[0]} is not installed here (make audit brings it)")
    if not (ROOT / ".git").exists():
        pytest.skip("actionlint looks for a repository")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
