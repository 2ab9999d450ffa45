"""Compare trainlint with a real program on drawn documents: `python -m oracle PROGRAM RELEASE`; see README.md.

Exit status 0 if nothing disagrees, else 1. Each case that disagrees is kept, with the sound document that it was made
from and with the program's words.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from oracle.asking import STAGES, Answer, Driver, Sound, driver
from oracle.draws import Draw, Drawer, written
from oracle.environments import HOME, Worker
from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Finding, Severity
from trainlint.settings import Overrides
from whats_new import newest_known


@dataclass
class Kind:
    """Disagreements of one kind: how many, and the first cases."""

    count: int = 0
    cases: list[str] = field(default_factory=list)


class Comparison:
    """The answers so far."""

    def __init__(self, asked: Driver, release: str, folder: Path) -> None:
        self.asked = asked
        self.release = release
        self.folder = folder
        self.count: Counter[str] = Counter()
        self.kinds: dict[str, defaultdict[str, Kind]] = {
            "missed refusals": defaultdict(Kind),
            "false errors": defaultdict(Kind),
            "several findings for one change": defaultdict(Kind),
        }

    def findings(self, case: Path) -> Sequence[Finding]:
        """trainlint's findings on a case, by itself."""
        target = parse_target(f"{self.asked.program}={self.release}")
        report = lint([case], Overrides(targets=target, isolated=True, runtimes="closed"))
        if report.crashed:
            raise SystemExit(f"{case}: {'; '.join(report.notices)}")
        return list(report.active)

    def add(self, draw: Draw, case: Path, answer: Answer) -> None:
        """Compare one case; it is removed where both agree."""
        found = self.findings(case)
        errors = [finding for finding in found if finding.level is Severity.ERROR]
        reached = [finding for finding in errors if self._is_reached(finding, draw.sound)]
        self.count[answer.verdict] += 1
        self.count["one change" if draw.is_one_change else "free"] += 1
        told = errors or (self.asked.warnings_count and [f for f in found if f.level is Severity.WARNING])
        if answer.verdict == "refuse" and not told:
            self._keep("missed refusals", plain(answer.words), draw, case, answer)
        elif answer.verdict == "accept" and reached:
            for rule in dict.fromkeys(f"{f.rule} {plain(f.message)}" for f in reached):
                self._keep("false errors", rule, draw, case, answer)
        elif answer.verdict == "refuse" and draw.is_one_change and draw.kind != "limit" and len(errors) > 1:
            rules = " + ".join(sorted(finding.rule for finding in errors))
            self._keep("several findings for one change", rules, draw, case, answer)
        else:
            shutil.rmtree(case)

    def _is_reached(self, finding: Finding, sound: Sound) -> bool:
        stage = finding.stage.value if finding.stage else ""
        last = sound.reaches or self.asked.reaches
        return stage not in STAGES or STAGES.index(stage) <= STAGES.index(last)

    def _keep(self, what: str, kind: str, draw: Draw, case: Path, answer: Answer) -> None:
        seen = self.kinds[what][kind]
        seen.count += 1
        if len(seen.cases) < 5:
            seen.cases.append(f"{case.name} {draw.sound.name}: {draw.told()[:300]}")
        (case / "good").mkdir(exist_ok=True)
        (case / "good" / draw.sound.file).write_text(draw.good(), encoding="utf-8")
        (case / "answer.txt").write_text(f"{what}\n{draw.told()}\n{answer}\n", encoding="utf-8")

    def tell(self, show: int) -> int:
        """Print the counts and the kinds; returns the number of disagreements."""
        asked = self.count["accept"] + self.count["refuse"]
        missed, wrong = (sum(kind.count for kind in self.kinds[what].values()) for what in list(self.kinds)[:2])
        print(
            f"{self.asked.program} {self.release}: {asked} comparisons ({self.count['one change']} with one change, "
            f"{self.count['free']} free), {self.count['refuse']} refused, {missed} missed, {wrong} false errors, "
            f"{self.count['cannot tell']} not told; {100 * (missed + wrong) / max(asked, 1):.2f} % off"
        )
        for what, kinds in self.kinds.items():
            print(f"{what}: {sum(kind.count for kind in kinds.values())}")
            for name, kind in sorted(kinds.items(), key=lambda item: -item[1].count):
                print(f"  {kind.count:4} {name}")
                for case in kind.cases[:show]:
                    print(f"         {case}")
        return missed + wrong


def plain(words: str) -> str:
    """Words without what differs from case to case."""
    words = re.sub(r"'[^']*'|\"[^\"]*\"|`[^`]*`", "…", words)
    return re.sub(r"-?\b\d[\d.e+-]*", "N", words)[:160]


def sound_ones(drawer: Drawer, worker: Worker, comparison: Comparison) -> None:
    """Leave out the sound documents that are none in this release, and say so."""
    folders: list[Path] = []
    for sound in drawer.sounds:
        place = comparison.folder / f"sound-{sound.name}"
        write(place, {**sound.beside, sound.file: written(sound.file, sound.settings)})
        folders.append(place)
    kept = []
    for sound, place, answer in zip(drawer.sounds, folders, worker.answers(folders), strict=True):
        errors = [finding for finding in comparison.findings(place) if finding.level is Severity.ERROR]
        if answer.verdict == "accept":
            kept.append(sound)
        else:
            print(f"not sound: {sound.name}: {answer.verdict}: {answer.words}", file=sys.stderr)
        for finding in errors:
            print(f"an error in {sound.name}: {finding.rule} {finding.message}", file=sys.stderr)
    drawer.sounds = kept


def write(folder: Path, files: dict[str, str]) -> None:
    """Write the files of a case into a new folder."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def main() -> int:
    """Draw, ask both, compare, print."""
    parser = argparse.ArgumentParser("oracle", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("release", nargs="?", default="", help="the newest known one, if it is not given")
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=2, help="cases of each kind")
    options = parser.parse_args()
    asked = driver(options.program)
    options.release = options.release or newest_known(options.program)
    folder = HOME / "cases" / f"{options.program}-{options.release}-{options.seed}"
    shutil.rmtree(folder, ignore_errors=True)
    comparison = Comparison(asked, options.release, folder)
    drawer = Drawer(asked, options.release, options.seed)
    worker = Worker(asked, options.release)
    sound_ones(drawer, worker, comparison)
    draws = list(drawer.draws(options.cases))
    places = [folder / f"{draw.number:05}" for draw in draws]
    for draw, place in zip(draws, places, strict=True):
        write(place, draw.files())
    for draw, place, answer in zip(draws, places, worker.answers(places), strict=True):
        comparison.add(draw, place, answer)
    worker.close()
    return 1 if comparison.tell(options.show) else 0


if __name__ == "__main__":
    sys.exit(main())
