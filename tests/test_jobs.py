"""Several processes, and parts of a run on several machines, find what one process finds."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from trainlint import engine, lint
from trainlint.cli import main
from trainlint.engine import Checked, Run
from trainlint.jobs import Crash, Spread, can_copy
from trainlint.report import Report
from trainlint.repository.bounds import PathError
from trainlint.repository.discover import Candidate
from trainlint.repository.files import Source
from trainlint.settings import Overrides

FIXTURES = Path(__file__).parent.parent / "fixtures"
needs_copies = pytest.mark.skipif(not can_copy(), reason="this system cannot copy a process")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of several programs with findings, a file that cannot be read to its end, and comments."""
    folder = tmp_path / "repository"
    for name in ("demo", "FS001", "TT102", "TL001", "TL002", "TJ101", "FS101"):
        shutil.copytree(FIXTURES / name, folder / name, ignore=shutil.ignore_patterns("*.out", "trainlint.toml"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(engine, "FEW", 1)
    return folder


def told(report: Report) -> list[object]:
    texts = {path: text.content for path, text in report.texts.items()}
    return [list(report.findings), report.files, report.targets, report.notices, texts, report.crashed]


@needs_copies
@pytest.mark.parametrize("jobs", [2, 5, 0])
def test_the_same_in_several_processes(repository: Path, jobs: int) -> None:
    alone = lint([repository])
    assert {finding.rule for finding in alone.findings} > {"TL001", "TL002", "TT102"}
    several = lint([repository], Overrides(jobs=jobs))
    assert told(several) == told(alone)
    assert list(several.targets) == list(alone.targets)
    assert list(several.texts) == list(alone.texts)
    assert [finding.fingerprint for finding in several.findings] == [f.fingerprint for f in alone.findings]


def test_the_parts_are_the_whole(repository: Path) -> None:
    whole = lint([repository])
    parts = [lint([repository], Overrides(shard=(number, 3))) for number in (1, 2, 3)]
    assert sorted((f for part in parts for f in part.findings), key=lambda f: (f.span, f.rule, f.message)) == list(
        whole.findings
    )
    assert sum(part.files.discovered for part in parts) == whole.files.discovered
    assert all(0 < part.files.discovered < whole.files.discovered for part in parts)
    assert lint([repository], Overrides(shard=(1, 1))).findings == whole.findings


def test_a_part_does_not_depend_on_other_files(repository: Path) -> None:
    before = lint([repository], Overrides(shard=(2, 3))).findings
    (repository / "0.yaml").write_text("key: value\n", encoding="utf-8")
    assert lint([repository], Overrides(shard=(2, 3))).findings == before


@needs_copies
def test_a_process_that_dies_costs_one_file(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = lint([repository])
    lost = next(f.path for f in reversed(alone.findings) if f.rule == "TT102")
    here, real = os.getpid(), Run._checked

    def dying(self: Run, candidate: Candidate, source: Source) -> Checked:
        if source.path == lost and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, candidate, source)

    monkeypatch.setattr(Run, "_checked", dying)
    report = lint([repository], Overrides(jobs=2))
    (finding,) = (f for f in report.findings if f not in alone.findings)
    assert (finding.path, finding.rule) == (lost, "TL004")
    assert finding.message == "internal error in the check: its process ended with signal 9"
    assert [f for f in report.findings if f != finding] == [f for f in alone.findings if f.path != lost]
    assert report.crashed


@needs_copies
def test_what_a_process_raises_is_raised() -> None:
    def work(piece: int) -> int:
        if piece == 3:
            raise PathError("no way")
        return piece

    with pytest.raises(PathError, match="no way"):
        Spread(work, lambda: None).run(range(5), 2)


@needs_copies
def test_every_piece_is_done_though_processes_end() -> None:
    def work(piece: int) -> str:
        if piece in (0, 4, 8):
            os._exit(7)
        return "x" * piece * 100_000

    spread: Spread[str, int] = Spread(work, lambda: 1)
    spread.run(range(9), 2)
    assert spread.found == {n: Crash("exit 7") if n in (0, 4, 8) else "x" * n * 100_000 for n in range(9)}
    assert spread.rests == [1]


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_wrong_jobs(jobs: str) -> None:
    result = CliRunner().invoke(main, ["check", "--jobs", jobs])
    assert result.exit_code == 2
    assert "'--jobs'" in result.output


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        *((value, f"'{value}' is not like 2/4.") for value in ("2", "a/b", "1/", "/2", "1/2/3", "-1/2", "²/2")),
        *(
            (value, "the first number must be between 1 and the second.")
            for value in ("0/2", "3/2", "1/0", "1/1234567890123")
        ),
    ],
)
def test_wrong_shards(shard: str, message: str) -> None:
    result = CliRunner().invoke(main, ["check", "--shard", shard])
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize("option", ["--write-baseline", "--update-baseline"])
def test_a_baseline_is_of_the_whole(option: str) -> None:
    result = CliRunner().invoke(main, ["check", "--shard", "1/2", "--baseline", "b.json", option])
    assert result.exit_code == 2
    assert "A baseline is of all findings, and --shard finds a part of them." in result.output


@needs_copies
def test_a_system_without_room_for_processes(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container with a limit: what no other process does, this one does."""
    one = told(Run(Overrides(jobs=1)).lint([repository]))
    forks, fork = iter([0, 1, 1, 1]), os.fork

    def full() -> int:
        if next(forks):
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", full)
    assert told(Run(Overrides(jobs=4)).lint([repository])) == one
