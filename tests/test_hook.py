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


def test_the_manifest_offers_staged_files_fixes_and_whole_repository() -> None:
    assert list(HOOKS) == ["trainlint", "trainlint-fix", "trainlint-all"]
    assert HOOKS["trainlint"]["entry"] == "python -I -m trainlint check --force-exclude"
    assert HOOKS["trainlint-fix"]["entry"] == "python -I -m trainlint check --force-exclude --fix"
    for staged in ("trainlint", "trainlint-fix"):
        assert HOOKS[staged].get("pass_filenames", True)
        assert not HOOKS[staged].get("always_run", False)
    assert not HOOKS["trainlint-all"]["pass_filenames"]
    assert HOOKS["trainlint-all"]["always_run"]
    # Two processes would find the definitions twice, and print their reports into each other.
    assert all(hook["require_serial"] for hook in HOOKS.values())


@pytest.mark.parametrize("hook", ["trainlint", "trainlint-fix"])
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
    configured(consumer, hooked, "trainlint")
    job = consumer / "jobs" / "llama-70b.yaml"
    good, separator, bad = job.read_text(encoding="utf-8").partition("---\n")
    targets = (consumer / "trainlint.toml").read_text(encoding="utf-8")

    def staged(text: str, settings: str = "") -> tuple[int, str]:
        job.write_text(text, encoding="utf-8")
        (consumer / "trainlint.toml").write_text(settings + targets, encoding="utf-8")
        return stage_and_run(consumer, hooked)

    # The runtime is not staged, and still known: without it the job could not be judged.
    code, report = staged(good + separator + bad + "# staged\n")
    assert code == 1, report
    assert "jobs/llama-70b.yaml:25:15: error TT" in report
    assert BAD.as_posix() not in report

    code, report = staged(good)
    assert code == 0, report

    code, report = staged(good + separator + bad, 'exclude = ["jobs/"]\n')
    assert code == 0, report


def configured(consumer: Path, hooked: Hooked, hook: str, *args: str) -> None:
    """A configuration with one hook, and its args if there are some."""
    used = {"id": hook, **({"args": list(args)} if args else {})}
    config = {"repos": [{"repo": str(hooked.repository), "rev": hooked.revision, "hooks": [used]}]}
    (consumer / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def stage_and_run(consumer: Path, hooked: Hooked) -> tuple[int, str]:
    """Stage all changes, run the hooks without a network."""
    for command in (["git", "add", "--all"], [*PRE_COMMIT, "run", "--color=never"]):
        done = run(command, cwd=consumer, env=hooked.env, network=command[0] == "git")
    return done.returncode, done.stdout + done.stderr


def test_the_whole_repository_is_linted_whatever_changes(consumer: Path, hooked: Hooked) -> None:
    """A deleted runtime, and a lock: no staged file is YAML, and the verdict on others changes."""
    configured(consumer, hooked, "trainlint-all")
    for file in (consumer / "jobs").iterdir():
        if file.name != "llama-1b.yaml":
            file.unlink()
    (consumer / "runtimes/torchtune-mistral-7b.yaml").unlink()
    job = consumer / "jobs/llama-1b.yaml"
    text = job.read_text(encoding="utf-8").replace("torchtune-llama3.2-1b", "team")
    job.write_text(text, encoding="utf-8")
    shipped = consumer / "runtimes/torchtune-llama3.3-70b.yaml"
    runtime = shipped.with_name("team.yaml")
    runtime.write_text(shipped.read_text(encoding="utf-8").replace("torchtune-llama3.3-70b", "team"), encoding="utf-8")
    settings = consumer / "trainlint.toml"
    settings.write_text('runtimes = "closed"\nselect = ["TJ101"]\n', encoding="utf-8")
    code, report = stage_and_run(consumer, hooked)
    assert code == 0, report
    commit_all(consumer, hooked.env)
    runtime.unlink()
    code, report = stage_and_run(consumer, hooked)
    assert code == 1, report
    assert "error TJ101 runtime-not-found" in report
    (consumer / "requirements.txt").write_text("accelerate==1.0.0\n", encoding="utf-8")
    commit_all(consumer, hooked.env)
    (consumer / "requirements.txt").write_text("accelerate==1.1.0\n", encoding="utf-8")
    assert "error TJ101 runtime-not-found" in stage_and_run(consumer, hooked)[1]


def test_the_hook_that_fixes(consumer: Path, hooked: Hooked) -> None:
    """It changes staged files only, pre-commit tells so, and the next run passes."""
    configured(consumer, hooked, "trainlint-fix")
    comment = "  # trainlint: ignore[TT101] no longer needed\n"
    staged, other = consumer / "jobs/llama-1b.yaml", consumer / "runtimes/torchtune-mistral-7b.yaml"
    texts = [file.read_text(encoding="utf-8").rstrip() for file in (staged, other)]
    for file, text in zip((other, staged), reversed(texts), strict=True):
        commit_all(consumer, hooked.env)
        file.write_text(text + comment, encoding="utf-8")
    code, report = stage_and_run(consumer, hooked)
    assert code == 1, report
    assert "files were modified by this hook" in report
    assert "trainlint: fixed 1 finding" in report
    assert staged.read_text(encoding="utf-8") == f"{texts[0]}\n"
    assert other.read_text(encoding="utf-8").endswith(comment)
    code, report = stage_and_run(consumer, hooked)
    assert code == 0, report


def test_a_baseline_in_a_hook(consumer: Path, hooked: Hooked) -> None:
    """What it holds does not count, and what a run on staged files does not look at is not gone."""
    write = [sys.executable, "-m", "trainlint", "--baseline", "known.json", "--write-baseline"]
    assert run(write, cwd=consumer, env=hooked.env).returncode == 0
    configured(consumer, hooked, "trainlint", "--baseline", "known.json")
    job = consumer / BAD
    text = job.read_text(encoding="utf-8")
    job.write_text(f"{text}# changed\n", encoding="utf-8")
    code, report = stage_and_run(consumer, hooked)
    assert code == 0, report
    job.write_text(text.replace("numNodes: 2", "numNodes: 3"), encoding="utf-8")
    code, report = stage_and_run(consumer, hooked)
    assert code == 1, report
    assert "1 finding of known.json is gone" in report
    assert report.count(": error ") == 1
