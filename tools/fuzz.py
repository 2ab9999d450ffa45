"""Looks for files that trainlint fails on: `python tools/fuzz.py --seconds 600 [--seed N]`; `make fuzz SECONDS=600`.

Each round makes a small repository out of fixtures, mutated and made anew from the words in them, and runs trainlint on
it in this process. Nothing may be raised, the steps stay in proportion, each place is inside its file, the formats
parse, a second run and each file alone say the same, and fixes keep the shape of a file. A repository that fails is
kept, and its folder is told.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from cProfile import Profile
from pathlib import Path
from xml.etree import ElementTree

from cases import ROOT, cases
from trainlint import fixes
from trainlint.catalogue import all_rules
from trainlint.engine import lint
from trainlint.reading.document import Mapping, Node, Scalar, Unparsable, documents, target_of
from trainlint.reading.text import decode
from trainlint.report import Report
from trainlint.reports import FORMATS, RenderOptions, render, without_secrets
from trainlint.settings import SettingsError

STEPS = 6_000_000
"""Calls that a small repository may take, most of them the first reading of facts."""
WORDS = ROOT / "tools" / "fuzz_words.txt"
LONG = ("9" * 240, "9" * 300, "-" + "9" * 240, "0x" + "f" * 240, "a" * 2_000)


def pieces() -> dict[str, list[str]]:
    """What files are made of, by section."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^\[(?=[\w.]+\]$)", WORDS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = section.partition("]\n")
        written = text.strip("\n").replace("|\n", "|").split("|")
        found[name] = [piece.encode().decode("unicode_escape") for piece in written]
    found["values"] += LONG
    return found


PIECES = pieces()
ODD, MOVES = PIECES.pop("values"), PIECES.pop("moves")


class Failure(Exception):
    """Something that must not be."""


def tree(chance: random.Random, words: list[str], depth: int = 0) -> str:
    """A value in flow style, or a scalar, of words that programs know."""
    kind = chance.random()
    if depth > 4 or kind < 0.55:
        return chance.choice(ODD) if chance.random() < 0.6 else chance.choice(words)
    items = [tree(chance, words, depth + 1) for _ in range(chance.randint(0, 4))]
    name = f"&{chance.choice('xyz')} " if chance.random() < 0.1 else ""
    if kind < 0.75:
        return f"{name}[{', '.join(items)}]"
    return f"{name}{{{', '.join(f'{chance.choice(words)}: {item}' for item in items)}}}"


def changed(chance: random.Random, data: bytes, words: list[str]) -> bytes:
    """A file in which a few values, lines or stretches are others."""
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(lines) + 1)
        line = lines[at] if at < len(lines) else ""
        key, colon, _ = line.partition(":")
        how = chance.random()
        if how < 0.45 and colon:
            lines[at] = f"{key}: {tree(chance, words)}\n"
        elif how < 0.6 and colon:
            lines[at] = f"{key[: len(key) - len(key.lstrip())]}{chance.choice(words)}:{line[len(key) + 1 :]}"
        elif how < 0.7:
            lines[at:at] = [chance.choice(lines or [""])]
        elif how < 0.8:
            lines[at : at + 1] = []
        else:
            cut = chance.randrange(len(line) + 1)
            lines[at : at + 1] = [line[:cut] + chance.choice(MOVES) + line[cut:]]
    text = "".join(lines)
    return text.encode(chance.choice(["utf-8"] * 9 + ["utf-16"]), "surrogatepass")


def repository(chance: random.Random, seeds: list[dict[str, bytes]], words: list[str]) -> dict[str, bytes]:
    """A few files that know of each other."""
    files: dict[str, bytes] = {}
    for number in range(chance.randint(1, 3)):
        for name, data in chance.choice(seeds).items():
            place = name if chance.random() < 0.7 else f"{chance.choice('abc')}/{name}"
            files[place if place not in files else f"{number}-{place}"] = changed(chance, data, words)
    for name in chance.sample(sorted(PIECES), chance.randint(0, 4)):
        text = "".join(
            chance.choice(PIECES[name]) + chance.choice(["", " ", " ", "\n"]) for _ in range(chance.randint(1, 40))
        )
        files[name] = text.encode("utf-8", "surrogatepass")
    return files


def check(folder: Path) -> int:
    """Everything that must hold of a run over a folder; returns the number of findings."""
    counter = Profile(builtins=True)
    reports: list[Report] = []
    try:
        counter.runcall(lambda: reports.append(lint([folder])))
    except SettingsError:
        return 0
    (report,) = reports
    steps = sum(entry.callcount for entry in counter.getstats())
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if steps > STEPS + 300 * size:
        raise Failure(f"{steps:,} steps for {size:,} bytes")
    for finding in report.findings:
        for span in (finding.span, *(related.span for related in finding.related)):
            _inside(report, span.path, span.line, span.column, span.end_line, span.end_column)
        if len(finding.message) > 500:
            raise Failure(f"a message of {finding.rule}: {finding.message[:80]!r}")
    told = without_secrets(report)
    for name in FORMATS:
        text = render(name, told, RenderOptions())
        if name in ("json", "sarif", "gitlab"):
            json.loads(text)
        elif name == "junit":
            ElementTree.fromstring(text)
    again = lint([folder])
    if again.findings != report.findings or again.notices != report.notices:
        raise Failure("a second run says something else")
    files = sorted(file for file in folder.rglob("*") if file.suffix in (".yaml", ".yml") and ".git" not in file.parts)
    alone = {finding for file in files for finding in lint([file]).findings if not finding.rule.startswith("TL002")}
    if alone != {finding for finding in lint(files).findings if not finding.rule.startswith("TL002")}:
        raise Failure("files alone say something else")
    _fixes(folder, report)
    return len(report.findings)


def _inside(report: Report, path: str, line: int, column: int, end_line: int, end_column: int) -> None:
    text = report.texts.get(path)
    if (line, column) > (end_line, end_column) or line < 1 or column < 1:
        raise Failure(f"a place that ends before it begins: {path}:{line}:{column}")
    if text is not None and text.content:
        last = text.line(line) if line <= text.line_count else ""
        if line > text.line_count + 1 or column > len(last) + 1:
            raise Failure(f"a place outside: {path}:{line}:{column}")


def _fixes(folder: Path, report: Report) -> None:
    """Fixes change the values that they say; the shape of all documents stays."""
    paths = {finding.path for finding in report.active if finding.fix is not None and finding.fix.safe}
    before = {path: _shape(Path(path)) for path in paths}
    fixes.apply(report, lambda error: None)
    for path, shape in before.items():
        if shape is not None and _shape(Path(path)) != shape:
            raise Failure(f"a fix changes the shape of {path}")


def _shape(file: Path) -> list[list[tuple[int, str]]] | None:
    try:
        return [list(_keys(document.root)) for document in documents("x", decode(file.read_bytes()))]
    except (Unparsable, ValueError):
        return None


def _keys(root: Node) -> Iterator[tuple[int, str]]:
    stack: list[tuple[int, Node]] = [(0, root)]
    while stack:
        depth, node = stack.pop()
        target = target_of(node)
        yield depth, type(target).__name__
        if not isinstance(target, Scalar) and target is node:
            stack += [
                (depth + 1, child)
                for child in ([value for _, value in target.pairs] if isinstance(target, Mapping) else target.items)
            ]


def run(seconds: float, seed: int, say: Callable[[str], None] = print) -> int:
    """Rounds until the time is over; returns the number of failures that differ."""
    os.environ["TRAINLINT_DEBUG"] = "1"
    all_rules()
    seeds = [dict(case.files()) for prefix in ("bad", "good") for case in cases(prefix)]
    lines = [
        line for files in seeds for data in files.values() for line in data.decode("utf-8", "replace").splitlines()
    ]
    words = sorted({line.partition(":")[0].strip(" -") for line in lines if re.match(r"[ -]*[\w-]+:", line)})
    end, number, findings = time.monotonic() + seconds, 0, 0
    failures: dict[str, Path] = {}
    while time.monotonic() < end:
        chance = random.Random(f"{seed} {number}")
        number += 1
        folder = Path(tempfile.mkdtemp(prefix="trainlint-fuzz-"))
        (folder / ".git").mkdir()
        for name, data in repository(chance, seeds, words).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        kept = folder.with_name(folder.name + "-kept")
        shutil.copytree(folder, kept)
        try:
            findings += check(folder)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
            what = str(error) if isinstance(error, Failure) else place
            key = what.split(": ")[0].split("/")[0]
            if key not in failures:
                failures[key] = kept
                say(f"round {number}, {kept}: {what}")
                kept = folder
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(kept, ignore_errors=True)
    say(f"{number} repositories, {findings} findings, {len(failures)} kinds of failure (seed {seed})")
    return len(failures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.exit(1 if run(options.seconds, options.seed) else 0)


if __name__ == "__main__":
    main()
