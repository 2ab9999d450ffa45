"""The Action before a checkout that is made to be run, to pass for options, and to speak to the runner."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from checkout import JOB
from external import run
from github_runner import DEFAULTS, STEPS, Runner, log_of

MODULES = "click ensurepip hatchling json packaging pathspec pip ruamel sarif_om site trainlint tomllib venv".split()
SCRIPTS = ("sitecustomize.py", "usercustomize.py", "setup.py")
PROGRAMS = "bash cat git mktemp pip python python3 rm uv".split()


@pytest.fixture
def owned(tmp_path: Path) -> Path:
    """The file in which everything that is run of the checkout leaves its name."""
    return tmp_path / "owned"


@pytest.fixture
def hostile(tmp_path: Path, owned: Path) -> Path:
    """A checkout in which each look-up of Python, pip and the shell would find something to run."""

    def code(name: str) -> str:
        return f"with open({str(owned)!r}, 'a') as file: file.write({name!r} + '\\n')\n"

    def program(file: Path) -> None:
        file.write_text(f"#!/bin/sh\necho {file.name} >> {shlex.quote(str(owned))}\n", encoding="utf-8")
        file.chmod(0o755)

    repository = tmp_path / "repo"
    (repository / "bin").mkdir(parents=True)
    for name in MODULES:
        (repository / name).mkdir()
        for file in ("__init__.py", "__main__.py"):
            (repository / name / file).write_text(code(name), encoding="utf-8")
    for name in SCRIPTS:
        (repository / name).write_text(code(name), encoding="utf-8")
    (repository / "evil.pth").write_text(f"import os; exec({code('evil.pth')!r})\n", encoding="utf-8")
    for name in PROGRAMS:
        program(repository / "bin" / name)
    program(repository / "mktemp")
    (repository / "pip.conf").write_text("no section\n", encoding="utf-8")
    (repository / "pyproject.toml").write_text('[tool.uv]\nindex-url = "file:///nowhere"\n', encoding="utf-8")
    (repository / ".python-version").write_text("2.0\n", encoding="utf-8")
    (repository / "job.yaml").write_text(JOB, encoding="utf-8")
    return repository


def towards(repository: Path) -> dict[str, str]:
    """The variables of a workflow that looks for everything in its checkout first."""
    return {
        "PATH": os.pathsep.join([str(repository / "bin"), ".", "", os.environ["PATH"]]),
        "PYTHONPATH": str(repository),
        "PIP_CONFIG_FILE": str(repository / "pip.conf"),
        "XDG_CONFIG_HOME": str(repository),
        "PIP_CONSTRAINT": str(repository / "evil.pth"),
    }


def test_no_step_runs_anything_of_the_checkout(runner: Runner, hostile: Path, owned: Path) -> None:
    before = runner.at(hostile, **towards(hostile))
    for step in (step for step in STEPS if "run" in step):
        ran = before.step(step, DEFAULTS)
        assert not owned.exists(), owned.read_text(encoding="utf-8")
        assert ran.code == (step["id"] == "lint"), ran.log
    assert "job.yaml:6:13: error TJ011" in ran.log


@pytest.mark.parametrize(
    "command",
    [
        "python3 -V",
        "mktemp",
        f"{sys.executable} -m venv x",
        f"{sys.executable} -m pip --version",
        f"{sys.executable} -c 'import json'",
    ],
)
def test_the_traps_work(runner: Runner, hostile: Path, owned: Path, command: str) -> None:
    run([str(shutil.which("bash")), "-c", command], cwd=hostile, env={**runner.env, **towards(hostile)})
    assert owned.exists()


def test_inputs_are_no_options(runner: Runner, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(JOB, encoding="utf-8")
    for name in ("paths", "config", "format", "fail-on", "sarif-file"):
        ran = runner.at(tmp_path).run(**{"paths": "job.yaml", name.replace("-", "_"): "--exit-zero"})
        assert ran.code == (1 if name == "sarif-file" else 2), ran.log
        ran = runner.at(tmp_path).run(**{"paths": "job.yaml", name.replace("-", "_"): "--fix"})
    assert job.read_text(encoding="utf-8") == JOB
    assert (tmp_path / "--exit-zero").is_file()


SPEAKING = [
    "::error file=README.md,line=1,title=x::y.yaml",
    "::stop-commands::word.yaml",
    " ::set-output name=findings::0.yaml",
    "##[add-mask]a.yaml",
    "`" * 12 + ".yaml",
    "sarif-file=x.yaml",
    "a\n::error::b.yaml",
    "a\r::error::b.yaml",
    "a\nfindings=0\n.yaml",
]


def test_names_do_not_speak_to_the_runner(runner: Runner, tmp_path: Path) -> None:
    for name in SPEAKING:
        (tmp_path / name).write_text(JOB.replace("numNodez", name.strip("\n")), encoding="utf-8")
    ran = runner.at(tmp_path).run()
    assert ran.code == 1, ran.log
    assert ran.outputs == {"sarif-file": "trainlint.sarif", "exit-code": "1", "findings": str(len(SPEAKING))}
    live = log_of(ran.log).live.splitlines()
    assert len(live) == len(SPEAKING)
    assert all(line.startswith("::error file=") and line.count("::") == 2 for line in live), live
    heading, block = ran.summary.split("\n\n", 1)
    assert heading == "### trainlint"
    assert all(line.startswith("    ") or not line for line in block.splitlines()), block


@pytest.mark.parametrize("name", ["a\nfindings=0", "a\n::error::b", "a\x1b[2J"])
def test_inputs_do_not_speak_to_the_runner(runner: Runner, tmp_path: Path, name: str) -> None:
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    for ran in (runner.at(tmp_path).run(sarif_file=name), runner.at(tmp_path).run(working_directory=name)):
        assert ran.code == 2
        assert ran.outputs == {"sarif-file": "", "exit-code": "2", "findings": ""}
        (inert,) = log_of(ran.log).inert.splitlines()
        # Wrong use is an annotation as well, with the same words.
        assert log_of(ran.log).live == f"::error title=trainlint::{inert.removeprefix('trainlint: ')}\n"
        assert "\x1b" not in ran.log


@pytest.mark.parametrize("sarif_file", ["link/t.sarif", "link/deeper/t.sarif", "up/t.sarif", "trainlint.sarif"])
def test_the_document_follows_no_link(runner: Runner, tmp_path: Path, sarif_file: str) -> None:
    outside, repository = tmp_path / "outside", tmp_path / "repo"
    (outside / "deeper").mkdir(parents=True)
    (outside / "victim").write_text("as it was", encoding="utf-8")
    repository.mkdir()
    (repository / "job.yaml").write_text(JOB, encoding="utf-8")
    (repository / "link").symlink_to(outside)
    (repository / "up").symlink_to("..")
    (repository / "trainlint.sarif").symlink_to(outside / "victim")
    ran = runner.at(repository).run(sarif_file=sarif_file)
    assert ran.code == (1 if sarif_file == "trainlint.sarif" else 2), ran.log
    assert sorted(path.name for path in outside.rglob("*")) == ["deeper", "victim"]
    assert (outside / "victim").read_text(encoding="utf-8") == "as it was"
    assert not (tmp_path / "t.sarif").exists()


def test_the_working_directory_follows_no_link(runner: Runner, tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    repository.mkdir()
    (tmp_path / "job.yaml").write_text(JOB, encoding="utf-8")
    (repository / "link").symlink_to("..")
    ran = runner.at(repository).run(working_directory="link")
    assert ran.code == 2
    assert "job.yaml" not in ran.log
    assert not (tmp_path / "trainlint.sarif").exists()
