"""The pre-commit hooks: the manifest, and both hooks run for real on repositories on disk, with the network off."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from identify import identify

from external import DEMO, ROOT, commit_all, copy_of_project, need, need_wheelhouse, offline_environment, run

MANIFEST = ROOT / ".pre-commit-hooks.yaml"
PRE_COMMIT = [sys.executable, "-m", "pre_commit"]
HOOKS = {hook["id"]: hook for hook in yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))}

BAD = Path("jobs/qwen-two-nodes.yaml")
GOOD = Path("jobs/llama-1b.yaml")


def test_the_manifest_is_valid(tmp_path: Path) -> None:
    env = offline_environment(tmp_path)
    done = run([*PRE_COMMIT, "validate-manifest", str(MANIFEST)], cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stdout


def test_the_manifest_offers_staged_files_and_whole_repository() -> None:
    assert list(HOOKS) == ["trainlint", "trainlint-all"]
    assert HOOKS["trainlint"]["entry"] == "python -I -m trainlint check --force-exclude"
    assert HOOKS["trainlint"].get("pass_filenames", True)
    assert not HOOKS["trainlint-all"]["pass_filenames"]
    # Two processes would find the definitions twice, and print their reports into each other.
    assert all(hook["require_serial"] for hook in HOOKS.values())


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("jobs/tune.yaml", True),
        ("tune.yml", True),
        (".github/workflows/train.yml", True),
        ("deploy/overlays/prod/patch.yaml", True),
        ("README.md", False),
        ("train.py", False),
        ("jobs/tune.yaml.j2", False),
        ("pyproject.toml", False),
    ],
)
def test_which_files_a_hook_asks_for(hook: str, path: str, wanted: bool) -> None:
    tags = identify.tags_from_filename(path) | {"file", "non-executable"}
    assert (set(HOOKS[hook]["types"]) <= tags) is wanted


class Hooked(NamedTuple):
    """A hook repository and the environment in which pre-commit installs from it."""

    repository: Path
    revision: str
    env: dict[str, str]


@pytest.fixture(scope="module")
def hooked(tmp_path_factory: pytest.TempPathFactory) -> Hooked:
    need_wheelhouse()
    need(shutil.which("git"), "git")
    folder = tmp_path_factory.mktemp("hook")
    env = offline_environment(folder)
    repository = copy_of_project(folder / "trainlint")
    commit_all(repository, env)
    revision = run(["git", "rev-parse", "HEAD"], cwd=repository, env=env).stdout.strip()
    return Hooked(repository, revision, env)


@pytest.fixture
def consumer(tmp_path: Path, hooked: Hooked) -> Path:
    """A repository that uses the hooks, with the demo's files in it."""
    repository = tmp_path / "consumer"
    shutil.copytree(DEMO, repository)
    commit_all(repository, hooked.env)
    return repository


def test_try_repo_runs_both_hooks(consumer: Path, hooked: Hooked) -> None:
    done = run(
        [*PRE_COMMIT, "try-repo", str(hooked.repository), "--all-files", "--verbose", "--color=never"],
        cwd=consumer,
        env=hooked.env,
        network=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    staged, everything = done.stdout.split("trainlint (whole repository)")
    for report in (staged, everything):
        assert "- exit code: 1" in report, done.stdout
        assert f"{BAD.as_posix()}:11:15: error TT" in report
        assert GOOD.as_posix() not in report
    assert "hook id: trainlint-all" in everything


def test_only_staged_files_are_linted(consumer: Path, hooked: Hooked) -> None:
    config = {"repos": [{"repo": str(hooked.repository), "rev": hooked.revision, "hooks": [{"id": "trainlint"}]}]}
    (consumer / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    job = consumer / "jobs" / "llama-70b.yaml"
    good, separator, bad = job.read_text(encoding="utf-8").partition("---\n")
    targets = (consumer / "trainlint.toml").read_text(encoding="utf-8")

    def stage_and_run(text: str, settings: str = "") -> tuple[int, str]:
        job.write_text(text, encoding="utf-8")
        (consumer / "trainlint.toml").write_text(settings + targets, encoding="utf-8")
        for command in (["git", "add", "--all"], [*PRE_COMMIT, "run", "--color=never"]):
            done = run(command, cwd=consumer, env=hooked.env, network=command[0] == "git")
        return done.returncode, done.stdout + done.stderr

    # The runtime is not staged, and still known: without it the job could not be judged.
    code, report = stage_and_run(good + separator + bad + "# staged\n")
    assert code == 1, report
    assert "jobs/llama-70b.yaml:25:15: error TT" in report
    assert BAD.as_posix() not in report

    code, report = stage_and_run(good)
    assert code == 0, report

    code, report = stage_and_run(good + separator + bad, 'exclude = ["jobs/"]\n')
    assert code == 0, report
