"""Which files are looked at, and in which workspace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from trainlint.engine import lint
from trainlint.repository.discover import Excluder, MissingPath, discover


def write(folder: Path, *names: str) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a: 1\n", encoding="utf-8")


def git(folder: Path, *args: str) -> None:
    subprocess.run(["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b", *args], check=True)


def names(*paths: Path, base: Path) -> list[str]:
    return [candidate.file.relative_to(base).as_posix() for candidate in discover(paths)]


def test_a_walk_skips_what_is_no_source(tmp_path: Path) -> None:
    write(
        tmp_path,
        *("b.yml", "a.yaml", "c.txt", ".github/workflows/w.YAML", "node_modules/x.yaml", ".venv/x.yaml"),
        *("env/x.yaml", "env/lib/y.yaml", ".git/x.yaml"),
    )
    (tmp_path / "env/pyvenv.cfg").touch()
    (tmp_path / ".git/x.yaml").rename(tmp_path / "x.yaml")
    (tmp_path / ".git").rmdir()
    assert names(tmp_path, base=tmp_path) == [".github/workflows/w.YAML", "a.yaml", "b.yml", "x.yaml"]


def test_a_walk_follows_no_linked_folder(tmp_path: Path) -> None:
    write(tmp_path, "real/a.yaml")
    try:
        (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
        (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    except OSError:
        pytest.skip("links need a privilege here")
    assert names(tmp_path, base=tmp_path) == ["real/a.yaml"]


def test_git_lists_tracked_and_new_files(tmp_path: Path) -> None:
    write(tmp_path, "tracked.yaml", "new.yaml", "ignored.yaml", "build/x.yaml", "ü ö.yaml", "gone.yaml")
    (tmp_path / ".gitignore").write_text("ignored.yaml\nbuild/\n", encoding="utf-8")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "tracked.yaml", "gone.yaml")
    (tmp_path / "gone.yaml").unlink()
    assert names(tmp_path, base=tmp_path) == ["new.yaml", "tracked.yaml", "ü ö.yaml"]


def test_what_is_named_is_read_though_git_ignores_it(tmp_path: Path) -> None:
    write(tmp_path, "build/x.yaml", "build/deep/y.yaml", "notes.txt")
    (tmp_path / ".gitignore").write_text("build/\nnotes.txt\n", encoding="utf-8")
    git(tmp_path, "init", "-q")
    assert names(tmp_path / "build", base=tmp_path) == ["build/deep/y.yaml", "build/x.yaml"]
    assert names(tmp_path / "build/x.yaml", tmp_path / "notes.txt", base=tmp_path) == ["build/x.yaml", "notes.txt"]


def test_a_folder_of_ignored_files_has_none(tmp_path: Path) -> None:
    """Git ignores the files, and not the folder: nobody asked for them."""
    write(tmp_path, "out/x.yaml", "out/[a]/y.yaml")
    (tmp_path / ".gitignore").write_text("*.yaml\n", encoding="utf-8")
    git(tmp_path, "init", "-q")
    assert names(tmp_path / "out", base=tmp_path) == []
    assert names(tmp_path / "out/[a]", base=tmp_path) == []


def test_a_repositorys_file_system_monitor_is_not_run(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml")
    git(tmp_path, "init", "-q")
    monitor = tmp_path / "monitor.sh"
    monitor.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n", encoding="utf-8")
    monitor.chmod(0o755)
    git(tmp_path, "config", "core.fsmonitor", str(monitor))
    assert names(tmp_path, base=tmp_path) == ["a.yaml"]
    assert not (tmp_path / "ran").exists()


def test_each_file_once(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml")
    assert names(tmp_path, tmp_path / "a.yaml", base=tmp_path) == ["a.yaml"]


def test_a_missing_path(tmp_path: Path) -> None:
    with pytest.raises(MissingPath, match=r"nowhere\.yaml: no such file"):
        list(discover([tmp_path / "nowhere.yaml"]))


def test_workspaces(tmp_path: Path) -> None:
    write(
        tmp_path,
        "repo/.git/HEAD",
        "repo/a/x.yaml",
        "repo/own/trainlint.toml",
        "repo/own/deep/y.yaml",
        "repo/b/pyproject.toml",
    )
    write(tmp_path, "repo/b/z.yaml", "loose/deep/w.yaml")
    (tmp_path / "repo/b/pyproject.toml").write_text("[tool.trainlint]\n", encoding="utf-8")
    found = {
        candidate.file.name: candidate.workspace.relative_to(tmp_path).as_posix()
        for path in ("repo/a/x.yaml", "repo/own", "repo/b/z.yaml", "loose")
        for candidate in discover([tmp_path / path])
    }
    assert found == {"x.yaml": "repo", "y.yaml": "repo/own", "z.yaml": "repo/b", "w.yaml": "loose"}


@pytest.mark.parametrize(
    ("pattern", "file", "excluded"),
    [
        ("build/", "build/a.yaml", True),
        ("build/", "x/build/a.yaml", True),
        ("/build/", "x/build/a.yaml", False),
        ("*.gen.yaml", "x/a.gen.yaml", True),
        ("a.yaml", "b.yaml", False),
    ],
)
def test_excluder(tmp_path: Path, pattern: str, file: str, excluded: bool) -> None:
    assert Excluder([pattern], tmp_path).excludes(tmp_path / file) is excluded


def test_an_excluder_says_nothing_of_files_elsewhere(tmp_path: Path) -> None:
    assert not Excluder(["*.yaml"], tmp_path / "a").excludes(tmp_path / "b/x.yaml")


def test_a_new_folder_named_in_a_work_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, "old/a.yaml")
    git(tmp_path, "add", ".")
    write(tmp_path, "new/b.yaml", "new/deep/C.YML", "old/d.yaml")
    assert names(tmp_path / "new", base=tmp_path) == ["new/b.yaml", "new/deep/C.YML"]
    assert names(tmp_path / "new/deep", base=tmp_path) == ["new/deep/C.YML"]
    assert names(tmp_path, base=tmp_path) == ["new/b.yaml", "new/deep/C.YML", "old/a.yaml", "old/d.yaml"]


@pytest.mark.parametrize("name", ["[a]", "a[!b]", "*", "?x", ":x", ":(icase)x", "!x", "a b", "-x", "ü", r"a\b", "a:b"])
@pytest.mark.skipif(os.name == "nt", reason="names that Windows has not")
def test_git_lists_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    git(tmp_path, "init", "-q")
    write(
        tmp_path, f"{name}/a.yaml", f"{name}/deep/b.yaml", f"{name}/ignored.yaml", "a/c.yaml", "ab/d.yaml", "x/e.yaml"
    )
    (tmp_path / ".gitignore").write_text("ignored.yaml\nbuild\n", encoding="utf-8")
    assert names(tmp_path / name, base=tmp_path) == [f"{name}/a.yaml", f"{name}/deep/b.yaml"]
    write(tmp_path, f"{name}/build/f.yaml")
    assert names(tmp_path / name / "build", base=tmp_path) == [f"{name}/build/f.yaml"]


@pytest.mark.skipif(os.name == "nt", reason="making symbolic links takes rights on Windows")
def test_git_lists_a_linked_folder_of_the_work_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, "real/a.yaml", "real/ignored.yaml")
    (tmp_path / ".gitignore").write_text("ignored.yaml\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("real")
    assert names(tmp_path / "link", base=tmp_path) == ["link/a.yaml"]


def test_without_git_all_files_are_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q")
    write(tmp_path, "a.yaml", "ignored.yaml")
    (tmp_path / ".gitignore").write_text("ignored.yaml\n", encoding="utf-8")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert names(tmp_path, base=tmp_path) == ["a.yaml", "ignored.yaml"]


@pytest.mark.skipif(os.name == "nt", reason="paths of Windows are shorter")
def test_very_many_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path may have more parts than Python may nest calls."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainlint.toml").touch()
    folders = [Path(*["a"] * depth) for depth in range(1, 1_500)]
    for folder in folders:
        folder.mkdir()
    (folders[-1] / "job.yaml").write_text("a: 1\n", encoding="utf-8")
    found = [(candidate.file, candidate.workspace) for candidate in discover([Path()])]
    report = lint([Path()])
    (folders[-1] / "job.yaml").unlink()
    for folder in reversed(folders):
        folder.rmdir()
    assert found == [(tmp_path / folders[-1] / "job.yaml", tmp_path)]
    assert report.notices == ("1 file is not checked: it lies more than 100 folders deep",)
    with pytest.raises(MissingPath):
        list(discover([Path(*["b"] * 5_000)]))
