"""What the real programs said of what fixes make: a folder of recorded verdicts, cases beside `verdicts.jsonl`.

Each refused case is linted for its release, and its fixes are applied in rounds, the safe ones or, with --unsafe, all.
Where another case of that program and release is the same document but for comments and layout, its verdict is that of
the fix: `accepted` proves it, `refused` is printed as a contradiction, unless a finding is left on the fixed case.

Usage: tools/fixed_verdicts.py FOLDER [--unsafe] [PROGRAM[=RELEASE] ...]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from trainlint.catalogue import parse_target
from trainlint.engine import Run
from trainlint.findings import Severity
from trainlint.fixes import applicable, mended
from trainlint.settings import Overrides

PROGRAMS = {
    "torchtune-command": "torchtune",
    "torchtune-start": "torchtune",
    "torchtune-run": "torchtune",
    "kubernetes": "kubeflow-trainer",
    "kubernetes-releases": "kubernetes",
    "kubernetes-trainers": "kubeflow-trainer",
    "accelerate-deepspeed": "accelerate",
    "trl-trainers": "trl",
    "transformers-start": "transformers",
    "soup-config": "soup",
    "accelerate-old": "accelerate",
    "transformers-old": "transformers",
    "trl-old": "trl",
}
"""The program of a folder of verdicts, where the folder has another name."""
BESIDE = {
    "torchtune-run": ("kubeflow-trainer=2.3",),
    "kubernetes": ("kubernetes=1.36",),
    "kubernetes-releases": ("kubeflow-trainer=2.3",),
    "kubernetes-trainers": ("kubernetes=1.34",),
}
"""The releases of other programs that the verdicts of a folder are for."""
CASES = {
    "kubernetes-releases": "kubernetes",
    "kubernetes-trainers": "kubernetes",
    "accelerate-old": "accelerate",
    "transformers-old": "transformers",
    "trl-old": "trl",
}
"""The folder with cases that a folder of verdicts shares."""
ROUNDS = 25


def main() -> int:
    """Print for each program how many refused cases fixes change, and what is known of the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--unsafe", action="store_true")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_intermixed_args()
    wanted = dict(program.partition("=")[::2] for program in options.programs)
    contradicted = 0
    for verdicts in sorted(options.folder.glob("*/verdicts.jsonl")):
        program = verdicts.parent.name
        if wanted and program not in wanted:
            continue
        by_release: dict[str, dict[str, bool]] = defaultdict(dict)
        for line in verdicts.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if (row["verdict"] != "cannot-tell" and not wanted.get(program)) or wanted.get(program) == row["version"]:
                refused = row["verdict"] == "refuse" or by_release[row["version"]].get(row["case"], False)
                by_release[row["version"]][row["case"]] = refused
        for release, cases in by_release.items():
            contradicted += _one_release(verdicts.parent, program, release, cases, unsafe=options.unsafe)
    return 1 if contradicted else 0


def _one_release(folder: Path, program: str, release: str, cases: Mapping[str, bool], *, unsafe: bool) -> int:
    shared = folder.with_name(CASES.get(program, program))
    places = {case: folder / case if (folder / case).is_dir() else shared / case for case in cases}
    verdict_of: dict[str, bool] = {}
    for case, refused in cases.items():
        if places[case].is_dir() and (data := _data(_files(places[case]))) is not None:
            verdict_of[data] = refused
    targets = parse_target(f"{PROGRAMS.get(program, program)}={release}")
    for beside in BESIDE.get(program, ()):
        targets |= parse_target(beside)
    overrides = Overrides(targets=targets, runtimes="closed", isolated=True)
    count: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    contradictions: list[str] = []
    for case in sorted(case for case, refused in cases.items() if refused and places[case].is_dir()):
        files, used, left = _mend(places[case], overrides, unsafe=unsafe)
        if not used:
            continue
        count["fixed"] += 1
        count["nothing left"] += not left
        rules.update(used)
        known = verdict_of.get(_data(files) or "")
        if known is not None:
            count["refused" if known else "accepted"] += 1
        if known and not left:
            contradictions.append(f"    {case}: fixed by {', '.join(sorted(used))}, and refused as it is now")
    told = ", ".join(f"{count[what]} {what}" for what in ("fixed", "nothing left", "accepted", "refused"))
    print(f"{program} {release}: {sum(cases.values())} refused, {told}; {len(rules)} rules", flush=True)
    print("\n".join(contradictions), end="\n" if contradictions else "")
    return len(contradictions)


def _mend(case: Path, overrides: Overrides, *, unsafe: bool) -> tuple[dict[str, bytes], set[str], bool]:
    """The files of a case after its fixes, the rules that fixed something, and whether an error is left."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(case, Path(folder, "repository"))
        os.chdir(copy)
        try:
            report, used = Run(overrides).lint([Path()]), set()
            for _ in range(ROUNDS):
                changed = mended(report, unsafe=unsafe)
                if not changed:
                    break
                used |= {finding.rule for finding in report.active if applicable(finding, unsafe=unsafe)}
                for file in changed:
                    Path(file.path).write_bytes(file.data)
                report = Run(overrides).lint([Path()])
            return _files(copy), used, any(f.level is Severity.ERROR for f in report.active)
        finally:
            os.chdir(here)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def _data(files: Mapping[str, bytes]) -> str | None:
    """What the files hold, as one text to compare; None for a file that is not read."""
    try:
        return repr([(name, [_ordered(part) for part in _documents(name, data)]) for name, data in files.items()])
    except (yaml.YAMLError, ValueError):
        return None


def _ordered(data: object) -> object:
    """Mappings as their items in order: comments, quotes and layout do not count."""
    if isinstance(data, dict):
        return sorted((repr(key), repr(_ordered(value))) for key, value in data.items())
    return [_ordered(item) for item in data] if isinstance(data, list) else data


def _documents(name: str, data: bytes) -> Iterator[object]:
    if name.endswith(".json"):
        yield json.loads(data.decode("utf-8"))
    elif name.endswith((".yaml", ".yml")):
        yield from yaml.load_all(data, Loader=yaml.CSafeLoader)
    else:
        yield data.decode("latin-1")


if __name__ == "__main__":
    sys.exit(main())
