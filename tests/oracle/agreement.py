#!/usr/bin/env python3
"""Compare trainlint with the real admission of Kubeflow Trainer on random manifests; see README.md beside this file.

    tests/oracle/agreement.py --oracle DIR [--seed N] [--files N] [--documents N] [--release 2.3.0]... [FILE...]

Exit status 0 if nothing disagrees, else 1; each disagreement is printed with its file, which is kept.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Finding, Severity
from trainlint.settings import Overrides

OURS = Path(__file__).with_name("manifests.py")
RELEASES = ("2.0.1", "2.1.0", "2.2.1", "2.3.0")
NOT_CHECKED = "some validation rules were not checked"


@dataclass(frozen=True)
class Answer:
    """What the real admission said of one document: `fields` is empty where it names none."""

    document: int
    kind: str
    allowed: bool
    stage: str
    fields: frozenset[str]
    words: str


def answers(oracle: Path, release: str, files: list[Path]) -> dict[str, list[Answer]]:
    """The oracle's answers by file name; documents whose answer changes from run to run are left out."""
    program = oracle / "bin" / f"oracle-{release}"
    run = subprocess.run([program, *files], check=True, stdout=subprocess.PIPE, text=True)
    found: defaultdict[str, list[Answer]] = defaultdict(list)
    for line in run.stdout.splitlines():
        row = json.loads(line)
        errors = [error for error in row.get("errors") or [] if not error["detail"].startswith(NOT_CHECKED)]
        fields = {_spelled(error) for error in errors}
        words = "; ".join(f"{error['field']}: {error['detail']}" for error in errors)
        if not row.get("unstable"):
            stage = "ok" if row["allowed"] else row["stage"]
            named = frozenset(field for field in fields if field is not None)
            found[row["file"]].append(Answer(row["docIndex"], row["kind"], row["allowed"], stage, named, words))
    return found


def _spelled(error: dict[str, str]) -> str | None:
    """The field of an error as trainlint spells it; None where the answer names none.

    The API server writes `<nil>` for the object as a whole, which stands for its name.
    """
    if error["type"] in ("Denied", "Plain", "Panic", "InternalError") or error["type"].startswith("HTTP"):
        return None
    if error["field"] == "<nil>":
        return "metadata.name"
    return error["field"].replace("spec.RuntimeRef", "spec.runtimeRef") or None


def disagreements(answer: Answer, findings: list[Finding]) -> Iterator[str]:
    """Admitted: no error. Refused: an error at each field named, and where webhooks refused, at no other."""
    errors = [f for f in findings if f.level is Severity.ERROR and f.program == "kubeflow-trainer"]
    if answer.allowed:
        yield from (f"admitted, but {f.rule} at {f.field}: {f.message}" for f in errors)
        return
    if not errors:
        yield f"refused ({answer.stage}), but no error; {answer.words[:300]}"
    elif answer.fields:
        said = {finding.field for finding in errors}
        yield from (f"no error at {field}; {answer.words[:300]}" for field in answer.fields - said)
        if answer.stage == "webhook":
            for finding in errors:
                if finding.field not in answer.fields:
                    yield f"{finding.rule} at {finding.field}: {finding.message}; the webhook: {answer.words[:300]}"


def findings_of(file: Path, release: str, select: tuple[str, ...]) -> dict[int, list[Finding]]:
    """trainlint's findings on a file, which stands alone in its folder, by document."""
    target = parse_target(f"kubeflow-trainer={release}")
    report = lint([file], Overrides(targets=target, runtimes="closed", select=select))
    if report.crashed:
        raise SystemExit("; ".join(report.notices))
    by_document: defaultdict[int, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        by_document[finding.document].append(finding)
    return by_document


def compare(
    oracle: Path, release: str, files: list[Path], *, select: tuple[str, ...], show: int
) -> tuple[Counter[str], set[Path]]:
    """Counts of one release, and the files with a disagreement."""
    count: Counter[str] = Counter()
    wrong: set[Path] = set()
    real = answers(oracle, release, files)
    for file in files:
        rows = Counter(answer.document for answer in real[file.name])
        ours = findings_of(file, release, select)
        for answer in real[file.name]:
            if rows[answer.document] > 1:
                continue
            count[answer.kind] += 1
            count[answer.stage] += 1
            why = list(disagreements(answer, ours[answer.document]))
            if why:
                wrong.add(file)
                count["disagree"] += 1
                if count["disagree"] <= show:
                    print(f"    {file} document {answer.document}: {why[0]}" + (f" (+{len(why) - 1})" * (len(why) > 1)))
    return count, wrong


def copied(files: list[Path], folder: Path) -> list[Path]:
    """Each file alone in a folder, with what is known of the oracle's cluster: it has no priority class."""
    copies: list[Path] = []
    for file in files:
        alone = folder / file.stem
        alone.mkdir()
        (alone / "trainlint.toml").write_text("[cluster]\npriority-classes = []\n", encoding="utf-8")
        copies.append(Path(shutil.copy(file, alone)))
    return copies


def main() -> int:
    """Generate, ask, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--oracle", type=Path, required=True, metavar="DIR", help="holds bin/oracle-RELEASE")
    parser.add_argument("--generator", type=Path, default=OURS, help="a script that takes SEED FILES DOCUMENTS")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", type=int, default=50)
    parser.add_argument("--documents", type=int, default=20, help="TrainJobs in each file")
    parser.add_argument("--release", action="append", choices=RELEASES)
    parser.add_argument("--select", type=lambda text: tuple(text.split(",")), default=(), help="only these rules")
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="copy files with a disagreement here")
    parser.add_argument("given", nargs="*", type=Path, metavar="FILE", help="compare these instead of random ones")
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        written = options.given or generated(options, folder / "written")
        (folder / "alone").mkdir()
        files = copied(written, folder / "alone")
        for release in options.release or RELEASES:
            count, wrong = compare(options.oracle, release, files, select=options.select, show=options.show)
            bad += count["disagree"]
            stages = ", ".join(f"{stage} {count[stage]}" for stage in ("ok", "decode", "schema", "cel", "webhook"))
            kinds = ", ".join(f"{count[kind]} {kind}s" for kind in sorted(count) if re.match("[A-Z]", kind))
            print(f"{release}: {count['disagree']} disagreements in {kinds} ({stages})", flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                for file in wrong:
                    shutil.copy(file, options.keep)
    return 1 if bad else 0


def generated(options: argparse.Namespace, folder: Path) -> list[Path]:
    """Random files of the seed, which a copy of the generator writes below its folder."""
    folder.mkdir()
    script = Path(shutil.copy(options.generator, folder))
    command = [sys.executable, str(script), str(options.seed), str(options.files), str(options.documents)]
    subprocess.run(command, check=True, cwd=folder)
    return sorted(folder.rglob("*.yaml"))


if __name__ == "__main__":
    sys.exit(main())
