"""The index of what is in a repository's files: the same findings with it and without, whatever happens to it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainlint import lint
from trainlint.recognise import answers_version, marks, sought
from trainlint.repository import index
from trainlint.repository.discover import Excluder
from trainlint.repository.files import Repository, Shared
from trainlint.repository.index import Index, Question
from trainlint.repository.stated import statements_in
from trainlint.settings import Overrides

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec:
  runtimeRef: {name: mine}
"""
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: mine}
spec: {}
"""
CONFIG = "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 0\n"
CONTENTS = (
    JOB,
    RUNTIME,
    RUNTIME.replace("mine", "your"),
    RUNTIME.replace("mine", '"m\\x69ne"'),
    CONFIG,
    "run: accelerate launch --config_file a.yaml train.py\n",
    "accelerate launch --config_file a.yaml train.py\n",
    "accelerate==1.2.0\n",
    "accelerate==1.9.0\n",
    "pip install accelerate==1.2.0\n",
    "key: value\n",
    "",
)
NAMES = ("a.yaml", "b.yaml", "c.yml", "deep/a.yaml", "run.sh", "deep/run.sh", "requirements.txt", "deep/x.txt")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder of the test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TRAINLINT_CACHE", str(folder))
    return folder


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has just been written is kept, too."""
    monkeypatch.setattr(index, "_RACY_NS", -(10**12))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "deep").mkdir(parents=True)
    (folder / "trainlint.toml").touch()
    for name, content in (("a.yaml", JOB), ("b.yaml", RUNTIME), ("c.yml", CONFIG), ("requirements.txt", CONTENTS[7])):
        (folder / name).write_text(content, encoding="utf-8")
    return folder


def answers(folder: Path, *, remembering: bool) -> list[object]:
    """Everything that an index answers, asked of a new run."""
    run = Shared(answers_version() if remembering else "")
    asked = Repository(folder, Excluder((), folder), marks, run, sought())
    statements = statements_in(asked)
    found: list[object] = [
        [(source.path, tuple(source.marks)) for source in asked.marked("kubeflow-trainer")],
        [source.path for source in asked.marked("kubeflow-trainer", ("TrainingRuntime", "mine"))],
        [source.path for source in asked.marked("accelerate")],
        asked.with_commands((".yaml", ".yml")),
        asked.with_commands((".sh",)),
        [statements.stated(folder / "deep" / "a.yaml", package) for package in ("accelerate", "kubeflow-trainer")],
    ]
    run.save()
    return found


def findings(folder: Path, *, remembering: bool) -> list[object]:
    report = lint([folder], Overrides(cache=remembering))
    return [(finding.span, finding.rule, finding.message) for finding in report.findings]


def kept(cache: Path) -> list[Path]:
    return sorted(cache.glob("*")) if cache.is_dir() else []


def stamps(folder: Path) -> dict[Path, tuple[int, ...]]:
    found: dict[Path, tuple[int, ...]] = {}
    for file in sorted(folder.rglob("*")):
        status = os.lstat(file)
        found[file] = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return found


def changes(folder: Path, dice: random.Random) -> Iterator[None]:
    """Edit, rename, touch, restore and remove files at random; no change is within one tick of the disk's clock."""
    former: list[tuple[bytes, int]] = []
    while True:
        file, before = folder / dice.choice(NAMES), stamps(folder)
        while True:
            step = dice.choice(("write", "write", "append", "rename", "touch", "restore", "remove"))
            if step != "write" and not file.is_file():
                continue
            if file.is_file():
                former.append((file.read_bytes(), file.stat().st_mtime_ns))
            if step == "write":
                file.write_text(dice.choice(CONTENTS), encoding="utf-8")
            elif step == "append":
                with file.open("a", encoding="utf-8") as stream:
                    stream.write(f"# {dice.choice(CONTENTS)!r}\n")
            elif step == "rename":
                file.replace(folder / dice.choice(NAMES))
            elif step == "touch":
                os.utime(file, ns=(10**18, 10**18))
            elif step == "restore":
                content, time = dice.choice(former[-20:])
                file.write_bytes(content)
                os.utime(file, ns=(time, time))
            else:
                file.unlink()
            if stamps(folder) != before:
                break
        yield


@pytest.mark.usefixtures("cache", "at_once")
@pytest.mark.parametrize("seed", range(4))
def test_a_thousand_changes(repository: Path, seed: int) -> None:
    for number, _ in zip(range(250), changes(repository, random.Random(seed)), strict=False):
        assert answers(repository, remembering=True) == answers(repository, remembering=False), number
        if number % 50 == 0:
            assert findings(repository, remembering=True) == findings(repository, remembering=False), number


@pytest.mark.usefixtures("at_once")
def test_a_file_that_has_not_changed_is_not_opened(
    repository: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repository / "values.yaml").write_text("key: value\n", encoding="utf-8")
    expected = answers(repository, remembering=True)
    opened: list[str] = []
    real = os.open

    def noting(path: str, *rest: int, **named: int) -> int:
        opened.append(os.path.basename(path))
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "open", noting)
    assert answers(repository, remembering=True) == expected
    assert "b.yaml" in opened, "the runtime is read again"
    assert not {"values.yaml", "run.sh"} & set(opened)
    assert len(kept(cache)) == 1


def test_a_file_that_has_just_changed_is_not_kept(repository: Path, cache: Path) -> None:
    assert answers(repository, remembering=True)
    assert kept(cache) == []


@pytest.mark.usefixtures("at_once")
def test_what_is_wrong_with_an_index_does_not_matter(repository: Path, cache: Path) -> None:
    expected = answers(repository, remembering=True)
    (file,) = kept(cache)
    data = file.read_bytes()
    dice = random.Random(1)
    damaged = [data[: dice.randrange(len(data))] for _ in range(40)]
    for _ in range(40):
        place = dice.randrange(len(data))
        damaged.append(data[:place] + bytes([data[place] ^ 1 << dice.randrange(8)]) + data[place + 1 :])
    damaged += [b"", b"\n", b"[" * 100_000, b"null\n", b"[]\n", data.replace(b"[1", b"[2", 1), data + b"x"]
    for wrong in damaged:
        file.write_bytes(wrong)
        assert answers(repository, remembering=True) == expected
    assert file.read_bytes() == data, "it is written anew"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such owners and modes")
@pytest.mark.usefixtures("at_once")
def test_an_index_that_others_could_have_written_is_not_read(repository: Path, cache: Path) -> None:
    answers(repository, remembering=True)
    (file,) = kept(cache)
    start, version = str(repository), answers_version()

    def known() -> int | None:
        path = repository / "a.yaml"
        status = path.stat()
        stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        return Index(start, version).answer(str(path), stamp, Question.MARKS)

    assert known()
    assert Index(start, "another version")._known == {}
    file.chmod(0o622)
    assert known() is None
    file.chmod(0o600)
    file.rename(cache / "elsewhere")
    file.symlink_to(cache / "elsewhere")
    assert known() is None
    file.unlink()
    os.mkfifo(file)
    assert known() is None


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("place", ["off", "OFF", "repository/cache", "relative"])
def test_where_nothing_is_kept(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRAINLINT_CACHE", str(tmp_path / place) if "/" in place else place)
    before = sorted(tmp_path.rglob("*"))
    assert answers(repository, remembering=True) == answers(repository, remembering=False)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.skipif(sys.platform != "linux", reason="the place on Linux")
@pytest.mark.usefixtures("at_once")
def test_the_users_cache_folder(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRAINLINT_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for variable, folder in (("", "home/.cache/trainlint"), (str(tmp_path / "xdg"), "xdg/trainlint")):
        monkeypatch.setenv("XDG_CACHE_HOME", variable)
        answers(repository, remembering=True)
        assert len(kept(tmp_path / folder)) == 1
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_written(repository: Path, cache: Path) -> None:
    cache.write_text("a file", encoding="utf-8")
    assert answers(repository, remembering=True) == answers(repository, remembering=False)


RUN = """\
import os, signal, sys
from trainlint.__main__ import main
from trainlint.repository import index
index._RACY_NS = -(10**12)
if sys.argv[1] == "killed":
    index.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
sys.argv = ["trainlint", "check", sys.argv[2]]
main()
"""


def started(folder: Path, how: str = "") -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", RUN, how, str(folder)], stdout=subprocess.PIPE)


def test_two_runs_at_once(repository: Path, cache: Path) -> None:
    expected = started(repository).communicate()[0]
    for file in kept(cache):
        file.unlink()
    runs = [started(repository) for _ in range(4)]
    assert [run.communicate()[0] for run in runs] == [expected] * 4
    assert [file.suffix for file in kept(cache)] == [".index"]
    assert started(repository).communicate()[0] == expected


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
def test_a_run_that_is_killed_while_it_writes(repository: Path, cache: Path, at_once: None) -> None:
    expected = answers(repository, remembering=False)
    killed = started(repository, "killed")
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    (half,) = kept(cache)
    assert half.suffix == ".new"
    assert answers(repository, remembering=True) == expected
    assert kept(cache) == [half], "another run may still be at it"
    os.utime(half, (0, 0))
    assert answers(repository, remembering=True) == expected
    assert [file.suffix for file in kept(cache)] == [".index"]
