"""Fixtures of several test modules."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from external import DEMO, commit_all, copy_of_project, need, need_wheelhouse, offline_environment, run
from github_runner import DEFAULTS, STEP, Runner

# No test looks into the cache folder of whoever runs it, nor do the commands that it starts.
os.environ["TRAINLINT_CACHE"] = "off"


@pytest.fixture(scope="session")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """A runner with the Action installed, and a repository that holds the demo in a folder with a space."""
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
    made = Runner(action_path, workspace, temp, env)
    for name in ("find", "install"):
        done = made.step(STEP[name], DEFAULTS)
        assert done.code == 0, done.log
    return made
