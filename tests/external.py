"""What the hook, Action and SARIF tests need from outside: a wheel folder, no network, programs that may be missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DEMO = ROOT / "fixtures" / "demo"
WHEELHOUSE = Path(sys.prefix) / "wheelhouse"


def need(available: object, what: str) -> None:
    """Skip the test by name when something is missing, or fail it where `.ci/run` demands that nothing is skipped."""
    if not available:
        reason = f"needs {what}"
        if os.environ.get("TRAINLINT_TEST_ALL"):
            pytest.fail(reason)
        pytest.skip(reason)


def want(available: object, what: str) -> None:
    """Skip the test by name when something is missing that not every machine can bring: a browser, Go's proxy."""
    if not available:
        pytest.skip(f"wants {what}")


def need_wheelhouse() -> None:
    """The wheels that `make test` lays ready, from which trainlint is installed without a network."""
    need(any(WHEELHOUSE.glob("*.whl")), f"a wheel folder at {WHEELHOUSE} (make test fills it)")


@cache
def without_network() -> tuple[str, ...]:
    """The command prefix that takes the network away, where the system can do that for us."""
    for prefix in (("unshare", "--net"), ("unshare", "--map-root-user", "--net")):
        if shutil.which("unshare") and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0:
            return prefix
    return ()


def offline_environment(home: Path, *find_links: Path) -> dict[str, str]:
    """An environment in which pip asks no index, git reads no one's settings, and nothing touches the real home."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PIP_", "PRE_COMMIT", "GITHUB_"))
    }
    git_identity = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "tests"), ("EMAIL", "tests@example.com"))
    }
    return {
        **kept,
        **git_identity,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "HOME": str(home),
        "PRE_COMMIT_HOME": str(home / "pre-commit"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": " ".join(str(path) for path in (WHEELHOUSE, *find_links)),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_CACHE_DIR": "1",
    }


def run(
    command: list[str], *, cwd: Path, env: dict[str, str], network: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and keep what it says, standard output and error apart."""
    prefix = () if network else without_network()
    return subprocess.run(
        [*prefix, *command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def copy_of_project(target: Path) -> Path:
    """What pip needs to build trainlint, and what pre-commit and the Action read, without anything else around it."""
    target.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", ".gitignore", ".pre-commit-hooks.yaml", "action.yml"):
        shutil.copy(ROOT / name, target)
    for name in ("linter", "action", "docs/rules"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    return target


def commit_all(repository: Path, env: dict[str, str]) -> None:
    """Make a folder a git repository, with all its files in one commit."""
    for arguments in (
        ["init", "--quiet", "--initial-branch=main"],
        ["add", "--all"],
        ["commit", "--quiet", "--message", "all"],
    ):
        done = run(["git", *arguments], cwd=repository, env=env)
        assert done.returncode == 0, done.stderr
