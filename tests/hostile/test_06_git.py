"""Repositories whose git configuration names something to run, and repositories that git refuses."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import struct
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
        self.folder = folder
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


def reached_by_a_link(repository: Repository, pipe: str) -> None:
    (repository.root / ".git/index").unlink()
    (repository.root / ".git/index").symlink_to(f"../{pipe}")


def included(repository: Repository, pipe: str) -> None:
    repository.git("config", "include.path", f"../{pipe}")


def of_ignored_files(repository: Repository, pipe: str) -> None:
    repository.git("config", "core.excludesFile", str(repository.root / pipe))


def of_another_folder(repository: Repository, pipe: str) -> None:
    shutil.copytree(repository.root / ".git", repository.root / "common")
    (repository.root / "common/config").unlink()
    (repository.root / "common/config").symlink_to(f"../{pipe}")
    (repository.root / ".git/commondir").write_text("../common\n", encoding="utf-8")


def behind_a_file(repository: Repository, pipe: str) -> None:
    (repository.root / ".git").rename(repository.root / "kept")
    (repository.root / ".git").write_text("gitdir: kept\n", encoding="utf-8")
    (repository.root / "kept/config").unlink()
    (repository.root / "kept/config").symlink_to(f"../{pipe}")


@pytest.mark.skipif(sys.platform != "linux", reason="what a process waits for")
@pytest.mark.parametrize("name", [reached_by_a_link, included, of_ignored_files, of_another_folder, behind_a_file])
def test_a_pipe_that_git_is_led_to(repository: Repository, name: Callable[[Repository, str], None]) -> None:
    name(repository, "pipe")
    os.mkfifo(repository.root / "pipe")
    said = f"trainlint: {repository.root}/pipe is not a regular file, and git waits for its content\n"
    assert repository.check(".") == (2, [], said)


@pytest.mark.skipif(sys.platform != "linux", reason="a limit that is set from outside")
def test_a_device_that_has_no_end(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git reads the name of its common folder as long as there is more."""
    monkeypatch.setattr(git, "_MEMORY", 50_000_000)
    (repository.root / ".git/commondir").symlink_to("/dev/zero")
    with pytest.raises(PathError, match="git cannot list the files of this repository: Out of memory"):
        git.listed(repository.root, git.Answers())


ODD_NAMES = (
    *("../outside.yaml", "sub/../../outside.yaml", "sub/../job.yaml", "./job.yaml", "sub//b.yaml"),
    *(".git/x.yaml", "sub/.GIT/x.yaml"),
)


def odd_index(repository: Repository) -> None:
    """An index with names that `git add` refuses, as a program can write it."""
    entries = b""
    for name in sorted((*ODD_NAMES, str(repository.root.parent / "outside.yaml"), "job.yaml")):
        entry = struct.pack(">10I20xH", *[0] * 6, 0o100644, 0, 0, 0, len(name)) + name.encode()
        entries += entry + b"\0" * (8 - len(entry) % 8)
    data = b"DIRC" + struct.pack(">II", 2, len(ODD_NAMES) + 2) + entries
    (repository.root / ".git/index").write_bytes(data + hashlib.sha1(data).digest())


def test_names_that_lead_out_of_the_index(repository: Repository, tmp_path: Path) -> None:
    """A clone has no such index; an archive can."""
    for folder in (tmp_path, repository.root / ".git", repository.root / "sub/.GIT"):
        folder.mkdir(exist_ok=True)
        (folder / "x.yaml").write_text(JOB, encoding="utf-8")
    (tmp_path / "outside.yaml").write_text(JOB, encoding="utf-8")
    odd_index(repository)
    assert "../outside.yaml" in repository.git("ls-files")
    assert repository.check(".") == (1, BOTH, "")
    assert repository.check("sub") == (1, ["sub/b.yaml"], "")
    repository.check("--fix", "--unsafe-fixes", ".")
    assert (tmp_path / "outside.yaml").read_text(encoding="utf-8") == JOB


@pytest.mark.parametrize("name", ["..", ".git", "."])
def test_names_that_lead_out_of_a_commit(repository: Repository, tmp_path: Path, name: str) -> None:
    """Servers refuse such a tree, where they are told to look."""
    (tmp_path / "outside.yaml").write_text(JOB, encoding="utf-8")
    base = repository.git("rev-parse", "HEAD")
    blob = bytes.fromhex(repository.git("rev-parse", "HEAD:job.yaml"))
    inner = raw_object(repository, "tree", b"100644 outside.yaml\0" + blob)
    names = sorted([(b"100644 new.yaml\0", blob), (f"40000 {name}\0".encode(), bytes.fromhex(inner))])
    tree = raw_object(repository, "tree", b"".join(entry + digest for entry, digest in names))
    author = "a <a@b> 1700000000 +0000"
    commit = f"tree {tree}\nparent {base}\nauthor {author}\ncommitter {author}\n\nx\n"
    repository.git("update-ref", "HEAD", raw_object(repository, "commit", commit.encode()))
    assert git.changed(repository.root, base) == [repository.root / "new.yaml"]


def raw_object(repository: Repository, kind: str, content: bytes) -> str:
    """An object that git does not look into; returns its digest."""
    (repository.folder / "object").write_bytes(content)
    file = str(repository.folder / "object")
    return repository.git("hash-object", "--literally", "-t", kind, "-w", file)


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
