"""The GitHub Action: what its file promises, and its steps run one after the other as a runner would, network off."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from external import DEMO, ROOT, commit_all, run
from github_runner import ACTION, DEFAULTS, EXPRESSION, STEP, STEPS, Runner, log_of
from trainlint import __version__


def texts(node: object) -> list[str]:
    """Every text below a node of the file."""
    if isinstance(node, dict):
        return [text for value in node.values() for text in texts(value)]
    if isinstance(node, list):
        return [text for value in node for text in texts(value)]
    return [node] if isinstance(node, str) else []


def test_expressions_stand_in_env_and_outputs_alone() -> None:
    allowed = texts([[step.get("env"), step.get("with")] for step in STEPS]) + texts(ACTION["outputs"])
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
    runner = runner.at(runner.workspace)
    ran = runner.run(version=__version__, paths=f"train ing/{GOOD}")
    assert ran.code == 0, ran.log
    # As a version that was never released: the install fails, and with it the step.
    failed = runner.step(STEP["install"], {**DEFAULTS, "version": "0.0.0"})
    assert failed.code == 2
    assert "::error title=trainlint::trainlint 0.0.0 cannot be installed; the log says why\n" in failed.log


@pytest.mark.parametrize("version", ["--index-url=x", "0.1/../../repo", "1 @ file:///x", "1\n::error::x"])
def test_a_version_is_nothing_but_a_release(runner: Runner, version: str) -> None:
    for name in ("find", "install"):
        ran = runner.at(runner.workspace).step(STEP[name], {**DEFAULTS, "version": version})
        assert (ran.code, ran.log) == (2, "::error title=trainlint::version is no release of trainlint\n")


def test_the_cache(runner: Runner, tmp_path: Path) -> None:
    """The second run installs nothing; another release, or other files of the Action, are another key."""
    temp = tmp_path / "temp"
    temp.mkdir()
    fresh = Runner(runner.action_path, runner.workspace, temp, runner.env)
    first = fresh.run(cache="true", paths=f"train ing/{GOOD}")
    assert first.code == 0, first.log
    ((key, folder),) = fresh.cached.items()
    assert folder == str(temp / key)
    assert re.fullmatch("trainlint-[0-9a-f]{32}", key)
    mark = Path(folder) / "venv" / "mark"
    mark.write_text("", encoding="utf-8")
    for step in (STEP["restore"], STEP["save"]):
        assert str(step["uses"]).startswith(f"actions/cache/{'restore' if step is STEP['restore'] else 'save'}@")
    second = fresh.run(cache="true", paths=f"train ing/{BAD}")
    assert second.code == 1, second.log
    assert mark.exists()
    assert list(fresh.cached) == [key]
    # What is there without the cache having brought it was not put there by this Action.
    fresh.cached.clear()
    assert fresh.run(cache="true", paths=f"train ing/{GOOD}").code == 0
    assert not mark.exists()


def test_the_cache_is_on_or_off(runner: Runner) -> None:
    """GitHub compares without case; another word is told, before anything is installed."""
    ran = runner.at(runner.workspace).step(STEP["find"], {**DEFAULTS, "cache": "yes"})
    assert (ran.code, ran.log) == (2, "::error title=trainlint::cache must be true or false\n")
    for word in ("True", "FALSE", ""):
        assert runner.at(runner.workspace).step(STEP["find"], {**DEFAULTS, "cache": word}).code == 0


def test_the_key_of_the_cache(tmp_path: Path) -> None:
    (tmp_path / "linter").mkdir()
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    code = tmp_path / "linter" / "a.py"
    code.write_text("1", encoding="utf-8")

    def key(version: str = "", folder: str = "/tmp") -> str:
        script = str(ROOT / "action" / "key.py")
        return subprocess.run(
            [sys.executable, "-I", "-S", script, str(tmp_path), version, folder],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    keys = [key(), key("0.1.0"), key("0.2.0"), key(folder="/other")]
    assert len(set(keys)) == 4
    assert key() == keys[0]
    code.write_text("2", encoding="utf-8")
    assert key() != keys[0]
    assert key("0.1.0") == keys[1]


def pull_request(repository: Path, env: dict[str, str]) -> dict[str, str]:
    """A branch that changes two jobs, adds and deletes others, merged into main as GitHub does for a pull request."""

    def git(*arguments: str) -> str:
        done = run(["git", *arguments], cwd=repository, env=env)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    commit_all(repository, env)
    base = git("rev-parse", "HEAD")
    git("checkout", "--quiet", "-b", "feature")
    for name in (BAD, "jobs/llama-70b.yaml", "README.md", "vendor/x.yaml"):
        file = repository / name
        file.parent.mkdir(exist_ok=True)
        file.write_text((file.read_text("utf-8") if file.exists() else "") + "# changed\n", encoding="utf-8")
    (repository / "jobs/mistral-7b.yaml").unlink()
    (repository / "jobs/nightly.yaml").rename(repository / "jobs/moved.yaml")
    git("add", "--all")
    git("commit", "--quiet", "-m", "feature")
    git("checkout", "--quiet", "main")
    (repository / "other.yaml").write_text("a: 1\n", encoding="utf-8")
    git("add", "--all")
    git("commit", "--quiet", "-m", "main goes on")
    git("merge", "--quiet", "--no-ff", "-m", "merge", "feature")
    event = repository.with_name("event.json")
    event.write_text(json.dumps({"pull_request": {"base": {"sha": base}}}), encoding="utf-8")
    return {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": str(event)}


def files_of(document: Path) -> set[str]:
    results = json.loads(document.read_text(encoding="utf-8"))["runs"][0]["results"]
    return {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results}


def test_only_what_a_pull_request_changes(runner: Runner, tmp_path: Path) -> None:
    """The merge commit against its first parent, the branch against its base; all else is read where it is needed."""
    repository = tmp_path / "repository"
    shutil.copytree(DEMO, repository)
    (repository / "trainlint.toml").write_text('exclude = ["vendor/"]\n', encoding="utf-8")
    env = pull_request(repository, runner.env)
    changed = {BAD, "jobs/llama-70b.yaml", "jobs/moved.yaml"}
    document = repository / "trainlint.sarif"

    ran = runner.at(repository, **env).run(only_changed="true")
    assert ran.code == 1, ran.log
    # The runtime of llama-70b is not changed, and known: without it LoRA on several nodes could not be judged.
    assert files_of(document) == changed
    assert "jobs/llama-70b.yaml:25:15: " in ran.log
    assert "in 3 of 3 files" in ran.log

    assert runner.at(repository, **env).run(only_changed="true", paths="runtimes\njobs/moved.yaml").code == 1
    assert files_of(document) == {"jobs/moved.yaml"}
    ran = runner.at(repository, **env).run(only_changed="true", paths="runtimes\ndocs")
    assert ran.code == 0
    assert "The pull request changes no YAML file below runtimes, docs.\n" in ran.log
    assert "Found no YAML files" not in ran.log
    ran = runner.at(repository, **env).run(only_changed="true", working_directory="jobs")
    assert files_of(repository / "jobs/trainlint.sarif") == changed

    def git(*arguments: str) -> None:
        assert run(["git", *arguments], cwd=repository, env=runner.env).returncode == 0

    git("clean", "--quiet", "-fdx")
    git("checkout", "--quiet", "feature")
    assert runner.at(repository, **env).run(only_changed="true").code == 1
    assert files_of(document) == changed
    # Other events lint everything.
    runner.at(repository, GITHUB_EVENT_NAME="push").run(only_changed="true")
    assert len(files_of(document)) > 3


def test_a_checkout_without_the_commits_that_only_changed_needs(runner: Runner, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    shutil.copytree(DEMO, repository)
    env = pull_request(repository, runner.env)
    for depth, code in (("1", 2), ("2", 1)):
        shallow = tmp_path / f"shallow{depth}"
        command = ["git", "clone", "--quiet", "--depth", depth, repository.as_uri(), str(shallow)]
        assert run(command, cwd=tmp_path, env=runner.env).returncode == 0
        ran = runner.at(shallow, **env).run(only_changed="true")
        assert ran.code == code, ran.log
    ran = runner.at(tmp_path / "shallow1", **env).run(only_changed="true")
    assert "the commits of the pull request are not here: give actions/checkout fetch-depth: 2" in ran.log
    ran = runner.at(repository, **env, GIT_TEST_ASSUME_DIFFERENT_OWNER="1").run(only_changed="true")
    assert ran.code == 2
    assert f"git config --global --add safe.directory {repository}" in ran.log
    event = tmp_path / "event.json"
    for content in ("", "[]", '{"pull_request": {"base": {"sha": "--output=x"}}}', '{"pull_request": null}'):
        event.write_text(content, encoding="utf-8")
        ran = runner.at(tmp_path / "shallow1", **env).run(only_changed="true")
        assert ran.code == 2
    assert runner.at(repository, **env).run(only_changed="perhaps").code == 2
