"""The examples in docs/integrations.md, each run by its own tool where that is here, and the files that they use."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import click
import pytest
import yaml

from external import DEMO, ROOT, commit_all, copy_of_project, need, need_wheelhouse, offline_environment, run
from github_runner import DEFAULTS
from trainlint import __version__
from trainlint.cli import main
from trainlint.repository.discover import FILE_NAMES

PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```\n", PAGE, re.DOTALL))
COMPONENT = ROOT / "templates" / "trainlint.yml"
BIN = Path(sys.executable).parent
BAD, GOOD = "jobs/qwen-two-nodes.yaml", "jobs/llama-1b.yaml"
FOUND = f"{BAD}:11:15: error TT102 single-node-model: numNodes must be 1 for qwen2_5/1.5B"


def program(name: str) -> str:
    """A program beside this Python, or elsewhere in PATH."""
    found = shutil.which(name, path=str(BIN)) or shutil.which(name)
    need(found, name)
    return str(found)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """No network, no one's settings, and trainlint in PATH."""
    need(os.name != "nt", "a system with sh")
    made = offline_environment(tmp_path / "home")
    (tmp_path / "home").mkdir()
    return {**made, "PATH": f"{BIN}{os.pathsep}{made['PATH']}", "NO_COLOR": "1", "CI": "true"}


@pytest.fixture
def repository(tmp_path: Path, env: dict[str, str]) -> Path:
    """A repository with the demo, whose bad job and good job have changed; the bad one is not staged yet."""
    folder = tmp_path / "repository"
    shutil.copytree(DEMO, folder)
    commit_all(folder, env)
    for name in (BAD, GOOD):
        (folder / name).write_text((folder / name).read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    stage(folder, env, GOOD)
    return folder


def stage(repository: Path, env: dict[str, str], *names: str) -> None:
    assert run(["git", "add", *names], cwd=repository, env=env).returncode == 0


def written(repository: Path, name: str) -> Path:
    file = repository / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(EXAMPLES[name], encoding="utf-8")
    return file


def test_the_examples() -> None:
    assert list(EXAMPLES) == [
        ".pre-commit-config.yaml",
        "lefthook.yml",
        ".husky/pre-commit",
        ".vscode/tasks.json",
        ".github/workflows/trainlint.yml",
        ".gitlab-ci.yml",
        "azure-pipelines.yml",
        "Jenkinsfile",
    ]
    assert set(re.findall(r"\bv(\d+\.\d+\.\d+)\b", PAGE)) <= {__version__}


COMMANDS = sorted({match.strip("\"' ") for match in re.findall(r"trainlint\"? (check.*)", PAGE.replace("\\\n", " "))})


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_known_options(command: str) -> None:
    words = shlex.split(command.rstrip("'\")").partition("#")[0].replace("{staged_files}", "a.yaml"))
    check = main.commands["check"]
    assert words[0] == "check"
    context = check.make_context("check", words[1:], resilient_parsing=False)
    assert isinstance(context, click.Context)


def test_lefthook(repository: Path, env: dict[str, str]) -> None:
    """The staged files at a commit, everything at a push."""
    lefthook = program("lefthook")
    written(repository, "lefthook.yml")

    def hook(name: str) -> tuple[int, str]:
        done = run([lefthook, "run", name], cwd=repository, env=env, network=False)
        return done.returncode, done.stdout + done.stderr

    code, said = hook("pre-commit")
    assert (code, FOUND in said) == (0, False), said
    stage(repository, env, BAD)
    code, said = hook("pre-commit")
    assert (code, FOUND in said) == (1, True), said
    assert "jobs/llama-70b.yaml" not in said
    code, said = hook("pre-push")
    assert code == 1
    assert "jobs/llama-70b.yaml" in said


def test_husky(repository: Path, env: dict[str, str]) -> None:
    """husky runs this file with sh -e; a deleted file is not named, a name with a space is one name."""
    sh = program("sh")
    hook = written(repository, ".husky/pre-commit")

    def committing() -> tuple[int, str]:
        done = run([sh, "-e", str(hook)], cwd=repository, env=env, network=False)
        return done.returncode, done.stdout + done.stderr

    code, said = committing()
    assert code == 0, said
    (repository / BAD).rename(repository / "jobs/a b.yaml")
    stage(repository, env, "--all")
    code, said = committing()
    assert code, said
    assert "jobs/a b.yaml:11:15: error TT102" in said
    assert "jobs/llama-70b.yaml" not in said
    commit_all(repository, env)
    assert committing() == (0, "")


@pytest.fixture(scope="module")
def hook_repository(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    need_wheelhouse()
    folder = tmp_path_factory.mktemp("hooks")
    env = offline_environment(folder)
    project = copy_of_project(folder / "trainlint")
    commit_all(project, env)
    return project, run(["git", "rev-parse", "HEAD"], cwd=project, env=env).stdout.strip()


@pytest.mark.parametrize("name", ["pre-commit", "prek"])
def test_hooks_of_pre_commit_and_prek(
    repository: Path, env: dict[str, str], hook_repository: tuple[Path, str], name: str
) -> None:
    """The staged files at a commit, everything at a push, installed and run without a network."""
    tool = program(name)
    project, revision = hook_repository
    config = written(repository, ".pre-commit-config.yaml")
    text = EXAMPLES[".pre-commit-config.yaml"].replace("https://github.com/trainlint/trainlint", str(project))
    config.write_text(text.replace(f"v{__version__}", revision), encoding="utf-8")
    stage(repository, env, ".pre-commit-config.yaml")
    env = {
        **env,
        "UV_OFFLINE": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": env["PIP_FIND_LINKS"],
        "UV_PYTHON_DOWNLOADS": "never",
        "PREK_HOME": str(repository.parent / "prek"),
    }

    def hook(stage_name: str) -> tuple[int, str]:
        done = run([tool, "run", "--hook-stage", stage_name, "--color=never"], cwd=repository, env=env, network=False)
        return done.returncode, done.stdout + done.stderr

    code, said = hook("pre-commit")
    assert code == 0, said
    assert "whole repository" not in said
    stage(repository, env, BAD)
    code, said = hook("pre-commit")
    assert (code, FOUND in said, "jobs/llama-70b.yaml" in said) == (1, True, False), said
    code, said = hook("pre-push")
    assert (code, "jobs/llama-70b.yaml" in said) == (1, True), said


def test_editors(repository: Path, env: dict[str, str]) -> None:
    """The patterns of the pages read each line; that for Vim is tried with reviewdog, which reads the same."""
    (task,) = json.loads(EXAMPLES[".vscode/tasks.json"])["tasks"]
    pattern = task["problemMatcher"]["pattern"]
    lines = run([task["command"], *task["args"]], cwd=repository, env=env).stdout.splitlines()
    read = [re.fullmatch(pattern["regexp"].removeprefix("^").removesuffix("$"), line) for line in lines]
    assert len(read) > 10
    matched = [one for one in read if one is not None]
    assert len(matched) == len(read)
    places = {(one[pattern["file"]], one[pattern["line"]], one[pattern["code"]]) for one in matched}
    assert (BAD, "11", "TT102") in places
    assert {one[pattern["severity"]] for one in matched} == {"error", "warning", "note"}
    assert "set errorformat=%f:%l:%c:\\ %t%*[a-z]\\ %m\n" in PAGE


def test_the_workflow() -> None:
    """It uses inputs that the Action has, and fetches the commit that it compares with."""
    workflow = yaml.safe_load(EXAMPLES[".github/workflows/trainlint.yml"])
    checkout, action = workflow["jobs"]["trainlint"]["steps"]
    assert checkout["with"]["fetch-depth"] == 2
    assert set(action["with"]) <= set(DEFAULTS)
    assert action["uses"] == f"trainlint/trainlint@v{__version__}"
    assert workflow["permissions"] == {"contents": "read"}


def test_the_gitlab_component(repository: Path, env: dict[str, str], tmp_path: Path) -> None:
    """Its script, as a runner would run it with the inputs of the example; inputs are no code."""
    need_wheelhouse()
    bash = program("bash")
    header, job = yaml.safe_load_all(COMPONENT.read_text(encoding="utf-8"))
    inputs = header["spec"]["inputs"]
    (include,) = yaml.safe_load(EXAMPLES[".gitlab-ci.yml"])["include"]
    assert include["remote"].endswith(f"/v{__version__}/templates/trainlint.yml")
    assert set(include["inputs"]) <= set(inputs)
    used = re.findall(r"\$\[\[ inputs\.([\w-]+) \]\]", COMPONENT.read_text(encoding="utf-8"))
    assert sorted(used) == sorted(inputs)
    job = job["trainlint"]
    assert not [line for line in job["script"] if "inputs." in line]
    version = inputs["version"]
    assert re.match(version["regex"], "1.0")
    assert not re.match(version["regex"], "1; x")
    wheels = tmp_path / "wheels"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    assert run(build, cwd=copy_of_project(tmp_path / "project"), env=env).returncode == 0

    def piped(**given: str) -> int:
        values = {**{name: str(one["default"]) for name, one in inputs.items()}, **given}
        variables = {
            name: re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda match: values[match[1]], value)
            for name, value in job["variables"].items()
        }
        finding = {"PIP_FIND_LINKS": f"{env['PIP_FIND_LINKS']} {wheels}", "CI_BUILDS_DIR": str(tmp_path)}
        script = "\n".join(job["script"])
        done = run([bash, "-e", "-c", script], cwd=repository, env={**env, **variables, **finding}, network=False)
        return done.returncode

    assert piped(**include["inputs"]) == 1
    report = json.loads((repository / job["artifacts"]["reports"]["codequality"]).read_text(encoding="utf-8"))
    assert BAD in {finding["location"]["path"] for finding in report}
    assert piped(paths=GOOD) == 0
    # Where no input says it, the settings say which severity fails the job.
    warned = {"paths": "jobs/qwen-unchecked.yaml"}
    assert piped(**warned) == 0
    settings = repository / "trainlint.toml"
    settings.write_text(f'fail-on = "warning"\n{settings.read_text(encoding="utf-8")}', encoding="utf-8")
    assert (piped(**warned), piped(**warned, **{"fail-on": "error"})) == (1, 0)
    assert piped(paths="$(touch x); touch y `touch z`") == 2
    assert not {"x", "y", "z"} & {path.name for path in repository.iterdir()}
    assert piped(version="99.0") == 1


def test_azure_and_jenkins(repository: Path, env: dict[str, str]) -> None:
    """Their last command, as it stands there; the file that is published is the one that is written."""
    pipeline = yaml.safe_load(EXAMPLES["azure-pipelines.yml"])
    *_, command = [step["script"] for step in pipeline["steps"] if "script" in step]
    published = pipeline["steps"][-1]["inputs"]["testResultsFiles"]
    jenkins = EXAMPLES["Jenkinsfile"]
    (junit,) = re.findall(r"junit '(\S+)'", jenkins)
    *_, last = re.findall(r"sh '(.*)'", jenkins)
    for one, file in ((command, published), (last.replace('"$WORKSPACE_TMP/venv/bin/trainlint"', "trainlint"), junit)):
        (repository / file).unlink(missing_ok=True)
        done = run([program("sh"), "-c", one], cwd=repository, env=env, network=False)
        assert done.returncode == 1, done.stderr
        assert (repository / file).read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize("tool", ["uvx", "pipx"])
def test_run_without_an_installation(tool: str, env: dict[str, str], tmp_path: Path) -> None:
    """The command has the name of the package, so that `uvx trainlint` and `pipx run trainlint` find it."""
    need_wheelhouse()
    found = program(tool)
    wheels = tmp_path / "wheels"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(wheels)]
    assert run(build, cwd=copy_of_project(tmp_path / "project"), env=env).returncode == 0
    links = f"{env['PIP_FIND_LINKS']} {wheels}"
    env = {
        **env,
        "PIP_FIND_LINKS": links,
        "UV_OFFLINE": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": links.replace(" ", ","),
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_CACHE_DIR": str(tmp_path / "uv"),
        "PIPX_HOME": str(tmp_path / "pipx"),
    }
    command = [found, *(["run"] if tool == "pipx" else [])]
    done = run([*command, "trainlint", "--version"], cwd=tmp_path, env=env, network=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"trainlint {__version__}\n"


def test_the_image() -> None:
    """It copies what is there and nothing else, is slim, and runs as no user of the host."""
    lines = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8")).splitlines()
    told = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    stages = [rest.split()[0] for word, rest in told if word == "FROM"]
    assert {stage.rpartition("-")[2] for stage in stages} == {"slim"}
    copied = [rest.split()[:-1] for word, rest in told if word == "COPY" and not rest.startswith("--from")]
    names = {name for row in copied for name in row}
    assert all((ROOT / name).exists() for name in names)
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert kept == names
    *_, (_, user) = (row for row in told if row[0] == "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert told[-1] == ["ENTRYPOINT", '["trainlint"]']
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    scripts = " ".join(step.get("run", "") for step in workflow["jobs"]["container"]["steps"])
    assert "docker build" in scripts
    assert f"= {user.partition(':')[0]}" in scripts


def test_the_recipe() -> None:
    """It needs what the project needs."""
    from packaging.requirements import Requirement

    page = (ROOT / "docs" / "packaging.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    recipe = yaml.safe_load(text)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", project, re.DOTALL | re.MULTILINE)
    assert listed
    wanted = [Requirement(line) for line in re.findall(r'"(.*)"', listed[1])]
    expected = {one.name: {str(part) for part in one.specifier} for one in wanted}
    needed = dict(line.partition(" ")[::2] for line in recipe["requirements"]["run"])
    assert needed.pop("python") == ">=${{ python_min }}"
    assert needed.pop("ruamel.yaml.clib") == ""
    assert {name: set(spec.split(",")) for name, spec in needed.items()} == expected
    assert recipe["context"]["version"] == __version__
    assert "trainlint = trainlint.__main__:main" in recipe["build"]["python"]["entry_points"]
    assert f'trainlint = "{recipe["build"]["python"]["entry_points"][0].partition(" = ")[2]}"' in project
    backend = re.search(r'requires = \["(hatchling>=[\d.]+)"\]', project)
    assert backend
    assert backend[1].replace(">=", " >=") in recipe["requirements"]["host"]


def test_the_entry_for_schemastore() -> None:
    page = (ROOT / "docs" / "packaging.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    entry = json.loads(text)
    schema = json.loads((ROOT / "docs" / "settings.schema.json").read_text(encoding="utf-8"))
    assert entry["url"] == schema["$id"]
    assert entry["fileMatch"] == [FILE_NAMES[0]]
