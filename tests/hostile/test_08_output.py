"""Names, values and settings that are made to speak to a terminal or a CI system, and secrets that are to be shown."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from checkout import ARGUMENTS, JOB, without_notice
from external import need
from trainlint.cli import main
from trainlint.reports import FORMATS

pytestmark = pytest.mark.skipif(os.name == "nt", reason="names that Windows has not")

COMMANDS = (
    "::error title=pwned::z",
    "  ::stop-commands::z",
    "##[add-mask]z",
    "x ##[error]z",
    "##vso[task.setvariable variable=a]z",
    "##teamcity[buildStatus status='SUCCESS']",
)
BREAKS = (
    "a\n::error::z",
    "a\r::error::z",
    "a\x1b]0;z\x07",
    "a\x1b[2J",
    "a\u202ez",
    "a\x9b2Jz",
    "a\u2028::error::z",
    "a\x85z",
)
EVIL = (*COMMANDS, *BREAKS, "<img src=x onerror=z>", "'\"><b>z", "](javascript:z)", "@team #1 `|`")
ANNOTATIONS = {"github": ("::error file=", "::", 2), "azure": ("##vso[task.logissue type=error;", "##", 1)}
"""Formats that are commands: how each begins, and a sign that is in it so many times."""
PATHS_OF: dict[str, Callable[[str], list[str]]] = {
    "json": lambda told: [found["path"] for found in json.loads(told)["findings"]],
    "jsonl": lambda told: [json.loads(line)["path"] for line in told.splitlines()],
    "gitlab": lambda told: [found["location"]["path"] for found in json.loads(told)],
    "rdjson": lambda told: [found["location"]["path"] for found in json.loads(told)["diagnostics"]],
}


def runs_nothing(text: str, *, annotations: bool = False) -> None:
    """No line is a command to GitHub, Azure or TeamCity, and nothing steers a terminal; annotations are our own."""
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", text), text
    if not annotations:
        assert not re.search(r"##(?:vso|teamcity)?\[", text), text
        assert not [line for line in text.split("\n") if line.strip().startswith("::")], text


def said(*arguments: str) -> str:
    """What a run prints on both streams."""
    done = CliRunner().invoke(main, arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return without_notice(done.output)


@pytest.fixture(autouse=True)
def _workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def quoted(text: str) -> str:
    """A YAML scalar of any text."""
    return json.dumps(text)


@pytest.mark.parametrize("form", FORMATS)
def test_file_names(form: str) -> None:
    for name in EVIL:
        Path(f"{name}.yaml").write_text(JOB, encoding="utf-8")
    told = said("check", "--format", form)
    assert "TJ011" in told
    runs_nothing(told, annotations=form in ANNOTATIONS)
    if form in ANNOTATIONS:
        assert len(told.splitlines()) == len(EVIL)
        begins, sign, times = ANNOTATIONS[form]
        assert all(line.startswith(begins) and line.count(sign) == times for line in told.splitlines())
    if form in PATHS_OF:
        assert sorted(PATHS_OF[form](told)) == sorted(f"{name}.yaml" for name in EVIL)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("place", ["key", "value", "name", "comment", "suppression"])
def test_contents(form: str, place: str) -> None:
    for number, text in enumerate(EVIL):
        job = {
            "key": JOB.replace("numNodez", quoted(text)),
            "value": JOB.replace("torch-distributed", quoted(text)).replace("numNodez", "numNodes"),
            "name": JOB.replace("name: a", f"name: {quoted(text)}"),
            "comment": JOB.replace("1}", f"1}} # {text.splitlines()[0]}"),
            "suppression": JOB.replace("1}", f"1}} # trainlint: ignore[TJ011] {text.splitlines()[0]}"),
        }[place]
        Path(f"{number}.yaml").write_text(job, encoding="utf-8")
    told = said("check", "--format", form, "--show-suppressed", "--runtimes", "closed")
    runs_nothing(told, annotations=form in ANNOTATIONS)
    if form == "github":
        assert all(re.match(r"::(?:error|warning|notice) file=\d+\.yaml,", line) for line in told.splitlines()), told
    if form == "azure":
        issue = re.compile(
            r"##vso\[task\.logissue type=(?:error|warning);sourcepath=\d+\.yaml;[^;\]]*;[^;\]]*;code=[A-Z\d]+;\]"
        )
        assert all(issue.match(line) and line.count("##") == 1 for line in told.splitlines()), told
    if form in ("json", "sarif", "gitlab", "rdjson"):
        json.loads(told)
    if form in ("html", "markdown"):
        assert "<img" not in told
        assert "<b>" not in told
    assert form != "markdown" or "](javascript" not in told
    if form == "junit":
        ElementTree.fromstring(told)


@pytest.mark.parametrize("text", EVIL)
def test_what_is_not_yaml(text: str) -> None:
    for number, line in enumerate(text.splitlines()):
        Path(f"{number}.yaml").write_text(f"{JOB}# {line}\n]{line}\n", encoding="utf-8")
    for form in ("text", "concise"):
        runs_nothing(said("check", "--format", form))


@pytest.mark.parametrize("text", EVIL)
def test_settings(text: str) -> None:
    Path("job.yaml").write_text(JOB, encoding="utf-8")
    spelled = quoted(text)
    for settings in (
        f"{spelled} = 1",
        f"fail-on = {spelled}",
        f"select = [{spelled}]",
        f"[targets]\n{spelled} = '1'",
        f"[targets]\nkubeflow-trainer = {spelled}",
        f"[targets]\nkubeflow-trainer = [{spelled}]",
        f"[cluster]\n{spelled} = []",
        f"[{spelled}",
    ):
        Path("trainlint.toml").write_text(settings, encoding="utf-8")
        told = said("check")
        runs_nothing(told)
        assert len(told.splitlines()) == 1, told


@pytest.mark.parametrize("text", EVIL)
def test_folders_of_settings(text: str) -> None:
    folder = Path(text)
    folder.mkdir()
    (folder / "job.yaml").write_text(JOB, encoding="utf-8")
    (folder / "trainlint.toml").write_text("fail-on = 5\n", encoding="utf-8")
    runs_nothing(said("check"))
    runs_nothing(said("check", text))


@pytest.mark.parametrize("text", EVIL)
def test_options_and_paths_that_are_no_such_thing(text: str) -> None:
    for arguments in (
        [text],
        [f"--{text}"],
        ["--select", text],
        ["--target", text],
        ["--target", f"torchtune={text}"],
        ["--format", text],
        ["--config", text],
        ["--fail-on", text],
        ["--baseline", text],
        ["--output", f"none/{text}"],
    ):
        runs_nothing(said("check", *arguments))
    runs_nothing(said("explain", text))
    runs_nothing(said(f"--{text}"))


@pytest.mark.parametrize("text", EVIL)
def test_versions_that_a_repository_pins(text: str) -> None:
    Path("a.yaml").write_text("compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n", encoding="utf-8")
    Path("requirements.txt").write_text(f"accelerate===9{text}\n", encoding="utf-8")
    runs_nothing(said("check"))


@pytest.mark.parametrize("form", ["text", "json"])
def test_resolve(form: str) -> None:
    for number, text in enumerate(EVIL):
        job = (
            JOB.replace("name: a", f"name: {quoted(text)}")
            .replace("torch-distributed", quoted("torch-distributed"))
            .replace(
                "numNodez: 1",
                f"image: {quoted(text)}, command: [{quoted(text)}], args: [{quoted(text)}], "
                f"env: [{{name: {quoted(text)}, value: {quoted(text)}}}]",
            )
        )
        Path(f"{number}.yaml").write_text(job, encoding="utf-8")
        Path(f"{text}.yaml").write_text(job, encoding="utf-8")
    told = said("resolve", "--format", form)
    assert "PET_NNODES" in told
    runs_nothing(told)


FIXABLE = ARGUMENTS + "learning_rate: 1e-5"


def test_a_diff() -> None:
    """Also where a line of the file stands behind the blank of a line that stays."""
    for number, text in enumerate(EVIL):
        Path(f"{text}.yaml").write_text(f"{FIXABLE} # x\n", encoding="utf-8")
        words = " ".join(text.split())
        Path(f"{number}.yaml").write_text(f"run_name: 'a\n\n{text}\n\n  {words}'\n{FIXABLE}\n", encoding="utf-8")
    told = said("check", "--diff")
    assert told.count("+learning_rate: 1.0e-5") >= len(EVIL)
    runs_nothing(told)


def test_a_diff_with_odd_names_can_be_applied() -> None:
    names = ("a b", 'a"b', "a\nb", "a\\b", "é", "\x1b[2J", "\u202e", "##[error]z")
    for name in names:
        Path(f"{name}.yaml").write_text(f"{FIXABLE}\n", encoding="utf-8")
    diff = CliRunner().invoke(main, ["check", "--diff"]).stdout
    need(shutil.which("git"), "git")
    subprocess.run(["git", "apply", "-"], input=diff.encode(), check=True, env={**os.environ, "GIT_DIR": "none"})
    assert all("1.0e-5" in Path(f"{name}.yaml").read_text(encoding="utf-8") for name in names)


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("option", ["--show-files", "--show-settings"])
def test_what_is_shown_of_files(option: str, form: str) -> None:
    for text in EVIL:
        Path(f"{text}.yaml").write_text(JOB, encoding="utf-8")
    names = [f"./{text}.yaml" for text in EVIL]
    runs_nothing(said("check", option, "--format", form, *names))
    runs_nothing(said("check", option, "--format", form, "-v"))


SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData:
  token: hunter2-secret
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a}
spec:
  runtimeRef: {name: torch-distributed}
  trainer:
    command: [sh, -c, "HF_TOKEN=line-secret train --api-key flag-secret"]
    args: ["--password", "pw-arg-secret", "--max-tokens", "42"]
    env:
    - {name: HF_TOKEN, value: hf_env-secret}
    - {name: MAX_TOKENS, value: "1000"}
    - {name: TOKENIZERS_PARALLELISM, value: "maybe"}
    - {name: PLAIN, value: glpat-prefixed}
"""
SECRETS = ("hunter2-secret", "line-secret", "flag-secret", "pw-arg-secret", "hf_env-secret", "glpat-prefixed")
PLAIN = ("1000", "maybe", "42")


@pytest.mark.parametrize("form", FORMATS)
def test_secrets_in_reports(form: str) -> None:
    Path("a.yaml").write_text(f"{SECRET}    imag: x\n", encoding="utf-8")
    told = said("check", "--format", form)
    assert "TJ011" in told
    assert not [secret for secret in SECRETS if secret in told]
    if form in ("text", "sarif"):
        assert "glpat-prefixed" in said("check", "--format", form, "--show-values")


@pytest.mark.parametrize("form", ["text", "json"])
def test_secrets_in_what_is_resolved(form: str) -> None:
    Path("a.yaml").write_text(SECRET, encoding="utf-8")
    told = said("resolve", "--format", form)
    assert not [secret for secret in SECRETS if secret in told]
    assert not [plain for plain in PLAIN if plain not in told]
    asked = said("resolve", "--format", form, "--show-values")
    assert [secret for secret in SECRETS if secret in asked] == list(SECRETS[1:])


def test_secrets_in_a_file_that_is_broken() -> None:
    Path("a.yaml").write_text(SECRET.replace("    - {name: MAX", "   ]\n    - {name: MAX"), encoding="utf-8")
    told = said("check")
    assert "TL001" in told
    assert "***" in told
    assert not [secret for secret in SECRETS if secret in told]
