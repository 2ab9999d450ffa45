"""How long one staged file takes in a git repository of 10,000 files, beside other commands in the same run.

A figure alone says little on another machine, so each is shown with its ratio to a bare Python start and to yamllint
on the same file. The commands take turns, so that a busy moment hits all of them. Exit 1 when a staged file takes more
than half a second.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

DEMO = Path(__file__).resolve().parent.parent / "fixtures" / "demo"
LIMIT = 0.5

BARE = "python -c pass"
YAMLLINT = "yamllint, a staged job"
STAGED = {
    "trainlint, a staged file without a job": "service-0/manifest-3.yaml",
    "trainlint, a staged job on a shipped runtime": "jobs/llama-1b.yaml",
    "trainlint, a staged job whose runtime the repository defines": "jobs/llama-70b.yaml",
}
WHOLE = "trainlint, the whole repository"

MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: service-{number}
  labels: {{app: service-{number}, tier: backend}}
spec:
  replicas: 3
  selector:
    matchLabels: {{app: service-{number}}}
  template:
    metadata:
      labels: {{app: service-{number}}}
    spec:
      containers:
        - name: main
          image: registry.example.com/service-{number}:1.{number}
          env:
            - name: LOG_LEVEL
              value: info
"""


def make_repository(root: Path, files: int) -> None:
    """A git repository in which three files of ten are YAML, one file of a hundred a long one; and the demo's files."""
    shutil.copytree(DEMO, root)
    others = files - sum(path.is_file() for path in root.rglob("*"))
    for number in range(others):
        folder = root / f"service-{number // 100}"
        folder.mkdir(exist_ok=True)
        if number % 10 in (3, 6, 9):
            repeat = 50 if number % 100 == 33 else 1
            text = "---\n".join(MANIFEST.format(number=number + step) for step in range(repeat))
            (folder / f"manifest-{number % 100}.yaml").write_text(text, encoding="utf-8")
        else:
            (folder / f"module_{number % 100}.py").write_text(f"VALUE = {number}\n" * 40, encoding="utf-8")
    git = ["git", "-C", str(root), "-c", "user.name=bench", "-c", "user.email=bench@example.com", "-c", "gc.auto=0"]
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all"]):
        subprocess.run([*git, *arguments], check=True)


def run(command: Sequence[str], root: Path) -> tuple[float, str]:
    """Wall time and standard error of one run; 0 and 1 are the exit codes of a linter that did its work."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # Compiled modules, as an installed package has them.
    env["PYTHONPYCACHEPREFIX"] = str(root.parent / "compiled")
    start = time.perf_counter()
    done = subprocess.run(command, cwd=root, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    taken = time.perf_counter() - start
    said = done.stderr.decode()
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit {done.returncode}\n{said}")
    return taken, said


def measure(commands: dict[str, Sequence[str]], root: Path, rounds: int) -> dict[str, list[float]]:
    """The times of each command, taken in turns after one round that only warms up."""
    for command in commands.values():
        run(command, root)
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(run(command, root)[0])
    return times


def import_microseconds(job: str, root: Path) -> Counter[str]:
    """What Python spends on importing each package to lint this job, by its own account."""
    command = [sys.executable, "-X", "importtime", "-m", "trainlint", "check", job]
    run(command, root)
    _, said = run(command, root)
    spent: Counter[str] = Counter()
    for microseconds, module in re.findall(r"^import time: +(\d+) \| +\d+ \| +(\S+)$", said, re.MULTILINE):
        package = module.split(".")[0]
        spent["Python's own" if package in sys.stdlib_module_names else package] += int(microseconds)
    return spent


def main() -> int:
    """Build the repository, measure, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()

    programs = Path(sys.executable).parent
    trainlint = [str(programs / "trainlint"), "check", "--force-exclude"]
    commands: dict[str, Sequence[str]] = {BARE: [sys.executable, "-c", "pass"]}
    commands["git ls-files -z"] = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    job = "jobs/llama-1b.yaml"
    if shutil.which("yamllint", path=programs):
        commands[YAMLLINT] = [str(programs / "yamllint"), job]
    for name, path in STAGED.items():
        commands[name] = [*trainlint, path]
    commands[WHOLE] = trainlint

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "repository"
        make_repository(root, arguments.files)
        times = measure(commands, root, arguments.rounds)
        imports = import_microseconds(job, root)

    medians = {name: statistics.median(taken) for name, taken in times.items()}
    print(
        f"{arguments.files} files, {arguments.rounds} rounds, Python {sys.version.split()[0]}, {os.cpu_count()} cores"
    )
    print(f"{'':62}{'median':>9}{'best':>9}{'÷ python':>10}{'÷ yamllint':>12}")
    for name, median in medians.items():
        beside = f"{median / medians[YAMLLINT]:12.1f}" if YAMLLINT in medians else f"{'–':>12}"
        print(f"{name:62}{median:7.3f} s{min(times[name]):7.3f} s{median / medians[BARE]:10.1f}{beside}")

    listed = ", ".join(f"{package} {spent / 1000:.0f} ms" for package, spent in imports.most_common(5))
    print(f"\nImports of a staged job, as Python accounts for them (it slows itself by that): {listed}")
    slow = [name for name in STAGED if medians[name] > LIMIT]
    for name in slow:
        print(f"more than {LIMIT} s: {name}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
