"""Repositories whose git configuration names something to run, and repositories that git refuses."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from checkout import JOB, check, without_notice
from external import need
from trainlint.repository import git
from trainlint.repository.bounds import PathError

pytestmark = pytest.mark.skipif(os.name == "nt", reason="traps are shell scripts")


class Repository:
    """A repository with two jobs, a trap, and an environment in which git is nobody's."""

    def __init__(self, folder: Path) -> None:
        need(shutil.which("git"), "git")
        self.root = folder / "repo"
        self.owned = folder / "owned"
        self.trap = folder / "trap"
        self.trap.write_text(f"#!/bin/sh\necho trap >> {shlex.quote(str(self.owned))}\nexit 1\n", encoding="utf-8")
        self.trap.chmod(0o755)
        self.settings = folder / "gitconfig"
        self.settings.write_text("[user]\nname = a\nemail = a@b\n[init]\ndefaultBranch = main\n", encoding="utf-8")
        self.env = {"GIT_CONFIG_GLOBAL": str(self.settings), "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(folder)}
        self.make(self.root)

    def make(self, root: Path) -> None:
        (root / "sub").mkdir(parents=True)
        for name in ("job.yaml", "sub/b.yaml", "ignored.yaml"):
            (root / name).write_text(JOB, encoding="utf-8")
        (root / ".gitignore").write_text("ignored.yaml\n", encoding="utf-8")
        self.git("init", "-q", at=root)
        self.git("add", ".", at=root)
        self.git("commit", "-q", "-m", "x", at=root)

    def git(self, *arguments: str, at: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=at or self.root,
            env={**os.environ, **self.env},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def springs(self, *arguments: str, at: Path) -> bool:
        """The trap works: git, asked without care, runs it."""
        subprocess.run(["git", *arguments], cwd=at, env={**os.environ, **self.env}, capture_output=True, check=False)
        sprung = self.owned.exists()
        self.owned.unlink(missing_ok=True)
        return sprung

    def check(self, *paths: str, **env: str) -> tuple[int, list[str], str]:
        """Exit code, files with findings, and what was said besides."""
        done = check("check", "--format", "concise", *paths, cwd=self.root, env={**self.env, **env})
        assert not self.owned.exists()
        return done.returncode, [line.split(":")[0] for line in done.stdout.splitlines()], without_notice(done.stderr)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


BOTH = ["job.yaml", "sub/b.yaml"]


def monitor(repository: Repository, root: Path) -> None:
    repository.git("config", "core.fsmonitor", str(repository.trap), at=root)


def test_a_monitor(repository: Repository) -> None:
    monitor(repository, repository.root)
    assert repository.springs("ls-files", "--others", at=repository.root)
    assert repository.check(".") == (1, BOTH, "")


def test_hooks(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "hooks").mkdir()
    for hook in ("post-index-change", "fsmonitor-watchman", "post-checkout", "pre-commit", "reference-transaction"):
        shutil.copy(repository.trap, tmp_path / "hooks" / hook)
    repository.git("config", "core.hooksPath", str(tmp_path / "hooks"))
    repository.git("config", "core.untrackedCache", "true")
    assert repository.springs("update-index", "--refresh", "--force-write-index", at=repository.root)
    assert repository.check(".") == (1, BOTH, "")


def test_whatever_else_git_may_start(repository: Repository) -> None:
    trap = str(repository.trap)
    for name in (
        *("core.pager", "pager.ls-files", "core.sshCommand", "core.editor", "core.askPass", "core.gitProxy"),
        *("core.alternateRefsCommand", "diff.external", "diff.x.textconv", "filter.x.clean", "filter.x.process"),
        *("gpg.program", "interactive.diffFilter", "uploadpack.packObjectsHook", "trailer.x.command"),
    ):
        repository.git("config", name, trap)
    for name in ("alias.ls-files", "alias.check-ignore", "credential.helper"):
        repository.git("config", name, f"!{trap}")
    (repository.root / ".gitattributes").write_text("* filter=x diff=x\n", encoding="utf-8")
    (repository.root / "job.yaml").touch()
    assert repository.springs("diff", at=repository.root)
    assert repository.check(".") == (1, BOTH, "")
    assert repository.check("sub") == (1, ["sub/b.yaml"], "")


def promise(repository: Repository, root: Path, config: str) -> None:
    """A sparse index that lacks a tree, which a promised remote, a command of ours, is to deliver."""
    for folder in ("d1/e", "d2/e"):
        (root / folder).mkdir(parents=True)
        (root / folder / "x.yaml").write_text(JOB, encoding="utf-8")
    repository.git("add", ".", at=root)
    repository.git("commit", "-q", "-m", "y", at=root)
    repository.git("sparse-checkout", "init", "--cone", "--sparse-index", at=root)
    repository.git("sparse-checkout", "set", "sub", at=root)
    tree = repository.git("rev-parse", "HEAD:d1", at=root)
    for name, value in (
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", "."),
        ("remote.origin.uploadpack", str(repository.trap)),
        ("protocol.file.allow", "always"),
    ):
        repository.git("config", "-f", config, name, value, at=root)
    (root / ".git/objects" / tree[:2] / tree[2:]).unlink()


def test_a_promised_object(repository: Repository) -> None:
    promise(repository, repository.root, ".git/config")
    if not repository.springs("ls-files", at=repository.root):
        pytest.skip("this git asks nobody for what is missing")
    assert repository.check(".")[0] in (1, 2)


@pytest.fixture
def embedded(repository: Repository, tmp_path: Path) -> Repository:
    """A repository as a clone gives it, with a folder `deps` that was committed and is itself a git directory."""
    inner = tmp_path / "inner"
    repository.make(inner)
    promise(repository, inner, ".git/config")
    deps = repository.root / "deps"
    shutil.copytree(inner / ".git", deps)
    repository.git("config", "-f", str(deps / "config"), "core.bare", "false")
    repository.git("config", "-f", str(deps / "config"), "core.worktree", ".")
    monitor(repository, deps)
    (deps / "job.yaml").write_text(JOB, encoding="utf-8")
    (deps / "trainlint.toml").write_text("ignore = []\n", encoding="utf-8")
    repository.git("add", "--all")
    repository.git("commit", "-q", "-m", "hostile")
    repository.git("clone", "-q", ".", str(tmp_path / "victim"))
    repository.root = tmp_path / "victim"
    for name in ("refs", "objects"):
        (repository.root / "deps" / name).mkdir(exist_ok=True)
    return repository


@pytest.mark.parametrize(
    ("path", "found"),
    [(".", ["deps/job.yaml", *BOTH]), ("deps", ["deps/job.yaml"]), ("deps/job.yaml", ["deps/job.yaml"])],
)
def test_a_committed_git_directory_changes_nothing(embedded: Repository, path: str, found: list[str]) -> None:
    if not embedded.springs("ls-files", "--others", at=embedded.root / "deps"):
        pytest.skip("this git takes no folder of another name for a repository")
    assert embedded.check(path) == (1, found, "")


def on_path(folder: str) -> Callable[[Repository], str]:
    return lambda repository: str(repository.root / "bin") if folder == "absolute" else folder


@pytest.mark.parametrize("folder", ["absolute", "bin", "./bin", "bin/../bin"])
def test_a_git_of_the_checkout(repository: Repository, folder: str) -> None:
    (repository.root / "bin").mkdir()
    shutil.copy(repository.trap, repository.root / "bin" / "git")
    path = os.pathsep.join([on_path(folder)(repository), os.environ["PATH"]])
    subprocess.run(["git"], cwd=repository.root, env={**os.environ, "PATH": path}, check=False)
    assert repository.owned.exists()
    repository.owned.unlink()
    assert repository.check(".", PATH=path) == (1, BOTH, "")


def test_variables_of_a_hook_name_no_other_repository(repository: Repository, tmp_path: Path) -> None:
    repository.make(tmp_path / "other")
    other = {"GIT_DIR": str(tmp_path / "other/.git"), "GIT_INDEX_FILE": str(tmp_path / "none"), "GIT_WORK_TREE": "/"}
    assert repository.check(".", **other) == (1, BOTH, "")


REFUSED = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}


@pytest.mark.parametrize("path", [".", "sub"])
def test_another_users_repository_is_one_clear_error(repository: Repository, path: str) -> None:
    code, found, said = repository.check(path, **REFUSED)
    assert (code, found) == (2, [])
    assert said.count("\n") == 1
    assert f"git config --global --add safe.directory {repository.root}" in said


@pytest.mark.parametrize("where", ["user", "system", "variables"])
def test_a_repository_that_is_called_safe(repository: Repository, tmp_path: Path, where: str) -> None:
    env = dict(REFUSED)
    if where == "user":
        repository.git("config", "--file", str(repository.settings), "safe.directory", str(repository.root))
    elif where == "system":
        env["GIT_CONFIG_SYSTEM"] = str(tmp_path / "system")
        repository.git("config", "--file", env["GIT_CONFIG_SYSTEM"], "--add", "safe.directory", "/elsewhere")
        repository.git("config", "--file", env["GIT_CONFIG_SYSTEM"], "--add", "safe.directory", str(repository.root))
    else:
        env |= {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": str(repository.root),
        }
    assert repository.check(".", **env) == (1, BOTH, "")


def test_a_repository_cannot_call_itself_safe(repository: Repository) -> None:
    repository.git("config", "safe.directory", "*")
    assert repository.check(".", **REFUSED)[0] == 2


@pytest.mark.parametrize(
    "settings",
    [
        {"core.repositoryformatversion": "1", "extensions.objectFormat": "sha999"},
        {"core.repositoryformatversion": "99"},
        {"core.bare": "true"},
    ],
)
def test_what_git_cannot_read_is_one_clear_error(repository: Repository, settings: dict[str, str]) -> None:
    for name, value in settings.items():
        repository.git("config", "-f", ".git/config", name, value, at=repository.root)
    code, found, said = repository.check(".")
    assert (code, found) == (2, [])
    assert said.count("\n") == 1
    assert "git cannot list the files" in said


@pytest.mark.parametrize("file", ["sub/.gitignore", ".git/info/exclude", ".git/index", ".git/config", ".git/HEAD"])
def test_a_pipe_that_git_would_read(repository: Repository, file: str) -> None:
    (repository.root / file).unlink(missing_ok=True)
    os.mkfifo(repository.root / file)
    code, found, said = repository.check(".")
    assert (code, found) == (2, [])
    assert said == f"trainlint: {repository.root}/{file} is not a regular file, and git waits for its content\n"


@pytest.mark.skipif(sys.platform != "linux", reason="a limit that is set from outside")
def test_git_ends_although_nobody_stops_it(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that takes git days ends a killed run, and one that is not seen to be slow."""
    monkeypatch.setattr(git, "_WORK", 1)
    monkeypatch.setattr(git, "_MANY_STARS", 99)
    (repository.root / ".gitignore").write_text(f"{'*a' * 9}*b\n", encoding="utf-8")
    (repository.root / f"{'a' * 200}.yaml").write_text(JOB, encoding="utf-8")
    with pytest.raises(PathError, match="git has not listed the files within 1 seconds"):
        git.listed(repository.root, git.Answers())


def test_a_pattern_with_many_stars(repository: Repository) -> None:
    (repository.root / ".gitignore").write_text(f"x\n{'*a' * 9}*b\n", encoding="utf-8")
    (repository.root / f"{'a' * 200}.yaml").write_text(JOB, encoding="utf-8")
    said = f"trainlint: {repository.root}/.gitignore:2: git needs very long for a pattern with so many stars\n"
    assert repository.check(".") == (2, [], said)


@pytest.mark.parametrize("content", [None, "gitdir: /nonexistent\n"])
def test_where_there_is_no_repository_after_all(repository: Repository, content: str | None) -> None:
    shutil.rmtree(repository.root / ".git")
    (repository.root / ".git").mkdir() if content is None else (repository.root / ".git").write_text(content)
    assert repository.check(".") == (1, ["ignored.yaml", *BOTH], "")
