"""Every command in README.md, CONTRIBUTING.md and docs/ can be run, and every exit code is one of those told.

What needs a network, a container or an installation of its own is listed here by its first words.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from external import DEMO, ROOT, need
from trainlint import checking
from trainlint.cli import main

PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", *sorted(f"docs/{file.name}" for file in ROOT.glob("docs/*.md")))
NOT_RUN = {
    "pip install": "asks PyPI",
    "pip freeze": "a file of requirements is meant",
    "conda list": "a file of requirements is meant",
    "go mod download": "asks Go's proxy",
    "helm template": "needs Helm and a chart",
    "uvx trainlint": "asks PyPI",
    "pipx run trainlint": "asks PyPI",
    "docker build": "builds an image of the released project; a workflow builds that of the checkout",
    "docker run": "needs the image",
    "prek install": "changes the checkout; tests/test_hook.py runs the hooks",
    "pre-commit install": "changes the checkout; tests/test_hook.py runs the hooks",
    "git apply": "takes a patch that somebody made",
    "git diff": "shows what somebody changed",
    "soup train": "a trainer's own command",
    "tune run": "a trainer's own command",
    "accelerate launch": "a trainer's own command",
    "trl sft": "a trainer's own command",
    ".venv/bin/python tools/kubeflow_facts.py": "asks Go's proxy for a release",
    ".venv/bin/python tools/torchtune_facts.py": "asks PyPI for large wheels",
}
PROGRAMS = (
    *(
        "trainlint",
        "make",
        ".venv/bin/python",
        "python",
        "pip",
        "pipx",
        "uv",
        "uvx",
        "conda",
        "docker",
        "podman",
        "helm",
    ),
    *("pre-commit", "prek", "lefthook", "npx", "npm", "go", "git", "kubectl", "soup", "tune", "accelerate", "trl"),
)
"""The first words by which a command is known."""
MADE_UP = {"CODE": "TT102", "SHELL": "bash", "FILE": "jobs/llama-1b.yaml", "FS199": "FS101", "[PATHS]": "jobs", "…": ""}
"""Words that stand for others in the pages."""
FILES = {"ci/tune.yaml": "a: 1\n", "legacy/a.yaml": "a: 1\n"}
"""Files that the pages speak of, beside those of the demo."""


def commands() -> list[str]:
    """The commands in fences without a language or of a shell, and in code within a sentence."""
    found: dict[str, None] = {}
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        fences = re.findall(r"(?ms)^ *```(\w*)\n(.*?)^ *```", text)
        lines = [
            line.strip() for kind, body in fences if kind in ("", "sh", "bash", "console") for line in body.splitlines()
        ]
        spans = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^ *```.*?^ *```", "", text).replace("\n", " "))
        for line in [*lines, *spans]:
            command = re.sub(r"\s{2,}#.*|\s\|\s.*", "", line.removeprefix("$ ")).strip()
            if command.startswith(tuple(f"{program} " for program in PROGRAMS)) or command == "trainlint":
                found[command] = None
    return list(found)


COMMANDS = commands()


def reason(command: str) -> str:
    """Why a command is not run; empty if it is."""
    return next((why for words, why in NOT_RUN.items() if command.startswith(words)), "")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo, as a repository of its own, with what the pages speak of."""
    folder = tmp_path / "repository"
    shutil.copytree(DEMO, folder)
    shutil.copytree(DEMO, folder / "fixtures" / "demo")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    with (folder / "trainlint.toml").open("r+", encoding="utf-8") as settings:
        content = settings.read()
        settings.seek(0)
        settings.write(f'baseline = "trainlint-baseline.json"\n{content}')
    (folder / "trainlint-baseline.json").write_text('{"version": 2, "findings": []}\n', encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", None)
    return folder


def test_the_pages_have_commands() -> None:
    assert len([command for command in COMMANDS if not reason(command)]) > 30
    for needed in ("trainlint", "make test", "trainlint check --show-files", "trainlint explain CODE"):
        assert needed in COMMANDS


@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("trainlint") and not reason(c)])
def test_trainlint(command: str, repository: Path) -> None:
    for word, other in MADE_UP.items():
        command = re.sub(rf"(?<![\w-]){re.escape(word)}(?!\w)", other, command)
    words = shlex.split(command)[1:]
    if words == ["explain"]:
        words.append("TT102")
    done = CliRunner().invoke(main, words, input="a: 1\n")
    assert done.exit_code in (0, 1), done.output
    assert "No such option" not in done.output


@pytest.mark.skipif(os.name == "nt", reason="make is another one there")
@pytest.mark.parametrize("command", [c for c in COMMANDS if c.startswith("make ")])
def test_make(command: str) -> None:
    """The target exists, with these variables; what it does has tests of its own."""
    need(shutil.which("make"), "make")
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *shlex.split(command.replace("…", "1"))[1:]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_tools() -> None:
    found = [command for command in COMMANDS if command.startswith(".venv/bin/python")]
    assert len(found) > 2
    for command in found:
        script = next(word for word in shlex.split(command)[1:] if not word.startswith("-"))
        assert (ROOT / script).exists(), command


def test_what_is_not_run_is_listed_and_spoken_of() -> None:
    own = ("trainlint", "make ", ".venv/bin/python", "python -m trainlint", "python -I -m trainlint")
    assert [command for command in COMMANDS if not command.startswith(own) and not reason(command)] == []
    assert [words for words in NOT_RUN if not any(command.startswith(words) for command in COMMANDS)] == []


# exit codes


def told_codes() -> list[int]:
    """The codes in README.md's table."""
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("### Exit codes")[2].partition("\n## ")[0]
    return [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]


def test_exit_codes(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def code(*arguments: str) -> int:
        return CliRunner().invoke(main, list(arguments)).exit_code

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    found = [code("ci/tune.yaml"), code("jobs"), code("none.yaml")]
    with monkeypatch.context() as patch:
        patch.setattr("trainlint.cli.run_check", interrupted)
        found.append(code("jobs"))
    assert found == told_codes() == [0, 1, 2, 130]
    assert code("jobs", "--output", "no/where") == 2
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    with pytest.raises(SystemExit, match="1"), checking.guarded():
        raise BrokenPipeError
