"""Fixes change what they say and lose nothing: not an edit of the user's, not a mode, not the other half of a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from checkout import ARGUMENTS, build, without_notice
from trainlint import fixes
from trainlint.cli import main
from trainlint.report import Report
from trainlint.repository import writing

posix = pytest.mark.skipif(os.name == "nt", reason="modes, owners and links of POSIX")
OLD, NEW = "learning_rate: 2e-5\n", "learning_rate: 2.0e-5\n"


def fix(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(folder)
    return CliRunner().invoke(main, ["check", "--fix", "--format", "concise", "."])


def test_a_file_that_has_changed_since_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path, {"a.yaml": ARGUMENTS + OLD, "b.yaml": ARGUMENTS + OLD})
    real = fixes.apply

    def late(report: Report, *rest: object, **options: object) -> int:
        with open(tmp_path / "a.yaml", "a", encoding="utf-8") as stream:
            stream.write("max_steps: 5\n")
        return real(report, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(fixes, "apply", late)
    done = fix(tmp_path, monkeypatch)
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8").startswith(f"{ARGUMENTS}{OLD}max_steps: 5\n")
    assert (tmp_path / "b.yaml").read_text(encoding="utf-8") == ARGUMENTS + NEW
    assert "a.yaml: cannot be changed: it has changed since it was read" in done.output
    assert done.exit_code == 2


@posix
def test_of_several_files_those_that_cannot_be_written_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, {"a.yaml": ARGUMENTS + OLD, "b.yaml": ARGUMENTS + OLD, "c.yaml": ARGUMENTS + OLD})
    os.link(tmp_path / "b.yaml", tmp_path / "other")
    done = fix(tmp_path, monkeypatch)
    texts = [(tmp_path / name).read_text(encoding="utf-8")[len(ARGUMENTS) :] for name in ("a.yaml", "b.yaml", "c.yaml")]
    assert texts == [NEW, OLD, NEW]
    assert "b.yaml: cannot be changed: it has other hard links" in done.output
    assert done.exit_code == 2


@posix
def test_mode_and_links_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path, {"a.yaml": ARGUMENTS + OLD})
    (tmp_path / "a.yaml").chmod(0o640)
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    done = fix(tmp_path, monkeypatch)
    assert done.exit_code == 0
    assert "fixed 1 finding\n" in without_notice(done.output)
    assert (tmp_path / "a.yaml").stat().st_mode & 0o777 == 0o640
    assert os.readlink(tmp_path / "b.yaml") == "a.yaml"
    assert sorted(os.listdir(tmp_path)) == [".git", "a.yaml", "b.yaml"]


@posix
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path, {"a.yaml": ARGUMENTS + OLD})
    os.chown(tmp_path / "a.yaml", 65534, 65533)
    fix(tmp_path, monkeypatch)
    after = (tmp_path / "a.yaml").stat()
    assert (after.st_uid, after.st_gid) == (65534, 65533)
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == ARGUMENTS + NEW


KILLED = """
import os, signal, sys
sys.path[:0] = PATH
from trainlint import cli, fixes
from trainlint.repository import writing
def stop(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
os.supports_fd.add(stop)
WHERE = stop
sys.argv = ["trainlint", "check", "--fix", "a.yaml"]
cli.main()
"""


def kill(folder: Path, where: str) -> list[str]:
    """Stop a run at a call; returns what is in the folder beside the file, which is the old one."""
    code = KILLED.replace("PATH", repr(sys.path)).replace("WHERE", where)
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=folder, capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (folder / "a.yaml").read_text(encoding="utf-8") == ARGUMENTS + OLD
    return sorted({path.name for path in folder.iterdir()} - {"a.yaml", ".git"})


@posix
@pytest.mark.parametrize("where", ["os.chmod", "fixes.read", "writing.give_name", "os.replace"])
def test_a_kill_leaves_nothing_that_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    build(tmp_path, {"a.yaml": ARGUMENTS + OLD})
    descriptor, has_name = writing.new_file(tmp_path / "probe")
    os.close(descriptor)
    (tmp_path / "probe").unlink(missing_ok=True)
    if has_name:
        pytest.skip("this file system has no files without a name")
    left = kill(tmp_path, where)
    # Between the two calls that put the whole new file in its place there is no other way.
    assert len(left) == (where == "os.replace")
    assert fix(tmp_path, monkeypatch).exit_code == 0
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == ARGUMENTS + NEW
    assert sorted(os.listdir(tmp_path)) == [".git", "a.yaml"]


@posix
def test_a_kill_where_every_file_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path, {"a.yaml": ARGUMENTS + OLD})
    monkeypatch.setattr(writing, "_DESCRIPTORS", "/nowhere")
    (name,) = kill(tmp_path, "writing._DESCRIPTORS = '/nowhere'; os.chmod")
    done = fix(tmp_path, monkeypatch)
    said = f"another run changes it, or was ended while it did; remove {os.path.realpath(tmp_path)}/{name}\n"
    assert f"a.yaml: cannot be changed: {said}" in done.output
    (tmp_path / name).unlink()
    assert fix(tmp_path, monkeypatch).exit_code == 0
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == ARGUMENTS + NEW
    assert sorted(os.listdir(tmp_path)) == [".git", "a.yaml"]
