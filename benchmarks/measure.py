"""What trainlint costs, in units that mean something on any machine, measured in one run.

A start is counted in starts of Python that do nothing; a repository in the time of reading all its files, as git lists
them. Seconds are CPU seconds of all processes but where wall time is said, medians of several rounds in which the
commands take turns. `--against FOLDER` compares with the newest table in it: exit 1 if a ratio is 1.3 times as large.
A company of 100,000 files takes many minutes, so it is measured with `--files 1000,10000,100000` only.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from shapes import SHAPES, company

TOLERATED = 1.3
PROGRAMS = Path(sys.executable).parent
TRAINLINT = str(PROGRAMS / "trainlint")
READ_ALL = """\
import subprocess
listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, check=True).stdout
for name in filter(None, listed.split(b"\\0")):
    with open(name, "rb") as stream:
        stream.read()
"""


class Used(NamedTuple):
    """What one command used: seconds of computing and by the clock, and the largest process in MB."""

    cpu: float
    wall: float
    memory: float


class Command(NamedTuple):
    """What is run where, with or without the index of an earlier run."""

    words: Sequence[str]
    folder: Path
    remembers: bool = False


class Row(NamedTuple):
    """A line of the table: a ratio, how it is made, and the figure itself in words."""

    name: str
    ratio: float
    unit: str
    figure: str


def run(command: Command, cache: Path) -> Used:
    """Run a command to its end; 0 and 1 are the exit codes of a linter that did its work."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # Compiled modules, as an installed package has them.
    env["PYTHONPYCACHEPREFIX"] = str(cache / "compiled")
    env["TRAINLINT_CACHE"] = str(cache / "index") if command.remembers else "off"
    start = time.perf_counter()
    with subprocess.Popen(
        command.words, cwd=command.folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        sys.exit(f"{' '.join(command.words)}: exit {process.returncode}")
    return Used(used.ru_utime + used.ru_stime, time.perf_counter() - start, used.ru_maxrss / 1024)


def measure(commands: dict[str, Command], rounds: int, cache: Path) -> dict[str, Used]:
    """The medians of what each command uses, after one round that only warms up."""
    found: dict[str, list[Used]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            used = run(command, cache)
            if number:
                found[name].append(used)
    return {name: Used(*map(statistics.median, zip(*all_used, strict=True))) for name, all_used in found.items()}


def start_rows(folder: Path, rounds: int) -> list[Row]:
    """What a hook costs on few files, in starts of Python."""
    alone, large = folder / "alone", folder / "company"
    alone.mkdir()
    company(large, 10_000)
    job = "team-00/service-000/job-0.yaml"
    shutil.copy(large / job, alone / "job.yaml")
    (alone / "other.yaml").write_text("key: value\n", encoding="utf-8")
    commands = {
        "python -c pass": Command([sys.executable, "-c", "pass"], alone),
        "--version": Command([TRAINLINT, "--version"], alone),
        "an unrelated file": Command([TRAINLINT, "check", "other.yaml"], alone),
        "one TrainJob alone": Command([TRAINLINT, "check", "job.yaml"], alone),
        "one TrainJob of 10,000 files, the first time": Command([TRAINLINT, "check", job], large),
        "one TrainJob of 10,000 files, from then on": Command([TRAINLINT, "check", job], large, remembers=True),
    }
    if shutil.which("yamllint", path=PROGRAMS):
        commands["yamllint, the TrainJob alone"] = Command([str(PROGRAMS / "yamllint"), "job.yaml"], alone)
    # What was written a moment ago is not kept in the index.
    time.sleep(3)
    found = measure(commands, rounds, folder)
    unit = found["python -c pass"].cpu
    return [Row(name, used.cpu / unit, "× python -c pass", f"{used.cpu:.3f} s") for name, used in found.items()]


def whole_rows(folder: Path, files: int, rounds: int) -> list[Row]:
    """What a whole repository costs, in times of reading its files."""
    root = folder / f"company-{files}"
    company(root, files)
    check = [TRAINLINT, "check", "--exit-zero"]
    commands = {
        "read": Command([sys.executable, "-c", READ_ALL], root),
        "one process": Command([*check, "--jobs", "1", "."], root),
        "all cores": Command([*check, "."], root),
        "git grep": Command(["git", "grep", "-c", "trainer.kubeflow.org"], root),
    }
    if shutil.which("kubeconform"):
        kubeconform = "kubeconform -summary -ignore-missing-schemas -schema-location none.json . || true"
        commands["kubeconform"] = Command(["sh", "-c", kubeconform], root)
    found = measure(commands, rounds, folder)
    shutil.rmtree(root)
    read, one, many = found["read"], found["one process"], found["all cores"]
    rows = [
        Row("one process", one.cpu / read.cpu, "× reading", f"{one.cpu:.2f} s and {read.cpu:.3f} s"),
        Row("all cores, wall time", many.wall / read.wall, "× reading", f"{many.wall:.2f} s and {read.wall:.3f} s"),
        Row("memory of one process", one.memory / 80, "× 80 MB", f"{one.memory:.0f} MB"),
    ]
    for name in ("git grep", "kubeconform"):
        if name in found:
            rows.append(Row(name, found[name].cpu / read.cpu, "× reading", f"{found[name].cpu:.3f} s"))
    return [row._replace(name=f"{files:,} files, {row.name}") for row in rows]


def shape_rows(folder: Path, rounds: int) -> list[Row]:
    """What the shapes of few files cost, in starts of Python."""
    commands = {"python -c pass": Command([sys.executable, "-c", "pass"], folder)}
    for number, (name, (make, size)) in enumerate(SHAPES.items()):
        root = folder / f"shape-{number}"
        root.mkdir()
        make(root, size)
        commands[name] = Command([TRAINLINT, "check", "--exit-zero", "--jobs", "1", "."], root)
    found = measure(commands, rounds, folder)
    unit = found.pop("python -c pass").cpu
    return [
        Row(name, used.cpu / unit, "× python -c pass", f"{used.cpu:.2f} s, {used.memory:.0f} MB")
        for name, used in found.items()
    ]


def machine() -> str:
    """The machine in words, without its name."""
    file = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.+)", file.read_text(encoding="utf-8")) if file.exists() else None
    processor = model.group(1) if model else platform.machine()
    return f"{platform.system()}, {processor}, {os.cpu_count()} cores, Python {platform.python_version()}"


def table(rows: Sequence[Row], rounds: int) -> str:
    """The results as a page of Markdown."""
    lines = [f"# {date.today().isoformat()}", "", f"{machine()}. Medians of {rounds} rounds.", ""]
    lines += ["| what | ratio | unit | figure |", "|---|---|---|---|"]
    lines += [f"| {row.name} | {row.ratio:.2f} | {row.unit} | {row.figure} |" for row in rows]
    return "\n".join(lines) + "\n"


def larger(rows: Sequence[Row], folder: Path) -> list[str]:
    """The rows whose ratio is larger than in the newest table, beyond what is tolerated."""
    tables = sorted(folder.glob("20*.md"))
    if not tables:
        return []
    before = dict(re.findall(r"^\| (.+?) \| ([\d.]+) \|", tables[-1].read_text(encoding="utf-8"), re.MULTILINE))
    return [
        f"{row.name}: {row.ratio:.2f}, and {before[row.name]} in {tables[-1].name}"
        for row in rows
        if row.name in before and row.ratio > TOLERATED * float(before[row.name])
    ]


def main() -> int:
    """Measure, print the table, and compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", default="1000,10000", help="sizes of the repositories, with commas")
    parser.add_argument("--output", type=Path, help="also write the table into this folder, under the day's date")
    parser.add_argument("--against", type=Path, help="compare with the newest table in this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        rows = start_rows(folder, arguments.rounds)
        for files in map(int, arguments.files.split(",")):
            rows += whole_rows(folder, files, arguments.rounds)
        rows += shape_rows(folder, arguments.rounds)
    text = table(rows, arguments.rounds)
    print(text)
    worse = larger(rows, arguments.against) if arguments.against else []
    for line in worse:
        print(line)
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / f"{date.today().isoformat()}.md").write_text(text, encoding="utf-8")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
