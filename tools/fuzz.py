"""Looks for files that trainlint fails on: `python tools/fuzz.py --seconds 600 [--seed N]`; `make fuzz SECONDS=600`.

Each round makes a small repository (tools/fuzz_inputs.py) and runs trainlint on it in this process. Nothing may be
raised, the steps stay in proportion, each place is inside its file, the formats parse and are commands to nobody, a
second run and each file alone say the same, and fixes keep the values of all else. A repository that fails is kept, and
its folder is told. One that brings trainlint to do something new is saved in the corpus, from which later ones start.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from cProfile import Profile
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import NamedTuple, TypeAlias
from xml.etree import ElementTree

import jsonschema

from cases import ROOT
from fuzz_inputs import STATES, Files, fixtures, repository
from trainlint import fixes
from trainlint.catalogue import all_rules
from trainlint.engine import Run, lint
from trainlint.findings import Edit, Finding
from trainlint.reading.document import Mapping, Node, Scalar, Unparsable, documents, target_of
from trainlint.reading.text import decode
from trainlint.report import Report
from trainlint.reports import FORMATS, RenderOptions, render, without_secrets
from trainlint.reports.diff import Rounds
from trainlint.reports.escape import visible
from trainlint.repository.bounds import PathError
from trainlint.settings import Overrides, SettingsError
from trainlint.show_files import as_json, as_text

STEPS = 6_000_000
"""Calls that a small repository may take, most of them the first reading of facts."""
CORPUS = ROOT / ".cache" / "fuzz"
LARGEST = 40_000
"""Bytes of a repository that is worth keeping."""
STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]|##\[|##vso\[|(?m:^\s*::)")
"""What would steer a terminal or a CI system, in a report for people."""
ANNOTATIONS = {"github": r"::(?:error|warning|notice) file=", "azure": r"##vso\[task\.logissue type="}
"""How each line begins that is meant for a CI system."""


class Element(NamedTuple):
    """An element of JUnit's: in which other one it is, the attributes that it must and may have."""

    within: str
    needed: frozenset[str]
    other: frozenset[str] = frozenset()
    has_text: bool = False


JUNIT_COUNTS = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
"""Attributes that count elements."""
_COUNTED = frozenset({"name", *JUNIT_COUNTS})
JUNIT = {
    "testsuites": Element("", _COUNTED),
    "testsuite": Element("testsuites", _COUNTED),
    "testcase": Element("testsuite", frozenset({"name", "classname"}), frozenset({"file", "line"})),
    "failure": Element("testcase", frozenset({"type", "message"}), has_text=True),
    "skipped": Element("testcase", frozenset({"message"}), has_text=True),
    "system-out": Element("testcase", frozenset(), has_text=True),
}
"""The elements that reports have. Source: "Common JUnit XML format" of Testmo, which lists what readers understand."""

Feature = tuple[object, ...]


class Failure(Exception):
    """Something that must not be."""


@dataclass
class Seen:
    """What trainlint was brought to do: which function calls which, about how often, and which rules find something."""

    features: set[Feature] = field(default_factory=set)
    findings: Counter[str] = field(default_factory=Counter)

    def is_new(self, counter: Profile, report: Report) -> bool:
        """Something here was not seen before."""
        made: set[Feature] = {(finding.rule, finding.level) for finding in report.findings}
        for entry in counter.getstats():
            if isinstance(entry.code, CodeType) and "trainlint" in entry.code.co_filename:
                caller = entry.code.co_filename, entry.code.co_firstlineno
                made.add((*caller, min(entry.callcount, 64).bit_length()))
                made |= {
                    (*caller, call.code.co_filename, call.code.co_firstlineno)
                    for call in entry.calls or ()
                    if isinstance(call.code, CodeType)
                }
        self.findings.update(finding.rule for finding in report.findings)
        new = not made <= self.features
        self.features |= made
        return new


def check(folder: Path, seen: Seen, schema: jsonschema.protocols.Validator | None) -> bool:
    """Everything that must hold of a run over a folder; whether trainlint did something new."""
    counter = Profile(builtins=True)
    reports: list[Report] = []
    try:
        counter.runcall(lambda: reports.append(lint([folder])))
    except (SettingsError, PathError) as error:
        if len(visible(str(error)).splitlines()) != 1 or len(str(error)) > 2_000:
            raise Failure(f"an error of several lines: {error}") from None
        return False
    (report,) = reports
    steps = sum(entry.callcount for entry in counter.getstats())
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and ".git" not in file.parts)
    if steps > STEPS + 300 * size:
        raise Failure(f"{steps:,} steps for {size:,} bytes")
    for finding in report.findings:
        for span in (finding.span, *(related.span for related in finding.related)):
            _inside(report, span.path, span.line, span.column, span.end_line, span.end_column)
        if len(finding.message) > 500:
            raise Failure(f"a message of {finding.rule}: {finding.message[:80]!r}")
    _formats(report, schema)
    again = lint([folder])
    if again.findings != report.findings or again.notices != report.notices:
        raise Failure("a second run says something else")
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix in (".yaml", ".yml") and file.is_file() and ".git" not in file.parts
    )
    alone = {finding for file in files for finding in _alone(file) if not finding.rule.startswith("TL002")}
    if alone != {finding for finding in lint(files).findings if not finding.rule.startswith("TL002")}:
        raise Failure("files alone say something else")
    _shown(folder, report)
    _fixes(report)
    return seen.is_new(counter, report) and size <= LARGEST


def _alone(file: Path) -> Sequence[Finding]:
    """The findings of one file; none where its own settings are broken, which a run over more folders passes over."""
    try:
        return lint([file]).findings
    except SettingsError:
        return ()


def _inside(report: Report, path: str, line: int, column: int, end_line: int, end_column: int) -> None:
    text = report.texts.get(path)
    if (line, column) > (end_line, end_column) or line < 1 or column < 1:
        raise Failure(f"a place that ends before it begins: {path}:{line}:{column}")
    if text is not None and text.content:
        for row, last_column in ((line, column), (end_line, end_column)):
            last = text.line(row) if row <= text.line_count else ""
            if row > text.line_count + 1 or last_column > len(last) + 2 - (row == line):
                raise Failure(f"a place outside: {path}:{row}:{last_column}")


def _formats(report: Report, schema: jsonschema.protocols.Validator | None) -> None:
    told = without_secrets(report)
    for name in FORMATS:
        text = render(name, told, RenderOptions())
        text.encode("utf-8")
        if name in ("json", "sarif", "gitlab"):
            document = json.loads(text)
            if name == "sarif" and schema is not None:
                for wrong in schema.iter_errors(document):
                    raise Failure(f"SARIF: {wrong.json_path} {wrong.message[:200]}")
        elif name == "junit":
            _is_junit(ElementTree.fromstring(text), within="")
        elif name in ANNOTATIONS:
            if any(not re.match(ANNOTATIONS[name], line) for line in text.splitlines()):
                raise Failure(f"a line for {name} is no annotation")
        elif found := STEERING.search(text):
            raise Failure(f"{name} steers: {text[max(0, found.start() - 40) : found.end() + 40]!r}")


def _is_junit(element: ElementTree.Element, within: str) -> None:
    """An element is as the common format says: its place, its attributes, its text, and what it counts."""
    known = JUNIT.get(element.tag)
    if known is None or within != known.within:
        raise Failure(f"JUnit has no {element.tag} in {within or 'a document'}")
    names = set(element.keys())
    if not known.needed <= names <= known.needed | known.other:
        raise Failure(f"JUnit: attributes of {element.tag}: {sorted(names)}")
    if any(not value.isdecimal() for name, value in element.items() if name in (*JUNIT_COUNTS, "line")):
        raise Failure(f"JUnit: {element.tag} counts in words")
    if not known.has_text and (element.text or "").strip():
        raise Failure(f"JUnit: text in {element.tag}")
    for name, tag in JUNIT_COUNTS.items():
        if name in names and int(element.get(name, "")) != sum(1 for _ in element.iter(tag)):
            raise Failure(f"JUnit counts other {name} than it has")
    for inner in element:
        _is_junit(inner, within=element.tag)


def _shown(folder: Path, report: Report) -> None:
    """What is shown of files and of fixes steers nothing, and the diff has no more lines than the files."""
    texts = [as_text(list(Run(Overrides()).files([folder]))), as_json(list(Run(Overrides()).files([folder])))]
    for mended in fixes.mended(report, unsafe=True):
        rounds = Rounds(mended.path, mended.before)
        rounds.add(mended)
        if rounds.content != mended.content:
            raise Failure(f"a diff of something else than {mended.path}")
        texts.append(rounds.diff().text.replace("\r\n", "\n"))
    for text in texts:
        if found := STEERING.search(text):
            raise Failure(f"what is shown steers: {text[max(0, found.start() - 40) : found.end() + 40]!r}")


def _fixes(report: Report) -> None:
    """Fixes change the values that they say; all others stay, and so does the shape of all documents."""
    edits = {file.path: file.edits for file in fixes.mended(report)}
    before = {path: _values(Path(path)) for path in edits}
    fixes.apply(report, lambda error: None)
    for path, values in before.items():
        after = _values(Path(path))
        if values is None or after == values:
            continue
        values = _without(values, [(e.start, e.end) for e in edits[path] if not e.replacement.strip()])
        after = after and _without(after, list(_added(edits[path])))
        if after is not None and _is_moved(values, after):
            # A value becomes a list of itself or the reverse, or goes into a section of its own: all other words stay.
            values = _words(_without(values, [(e.start, e.end) for e in edits[path]]))
            after = _words(_without(after, list(_written(edits[path]))))
        if after is None or len(after) != len(values):
            raise Failure(f"a fix changes the shape of {path}")
        for (depth, kind, value, start, end), now in zip(values, after, strict=True):
            fixed = any(edit.start <= end and start <= edit.end for edit in edits[path])
            if (depth, kind) != now[:2] or (value != now[2] and not fixed):
                raise Failure(f"a fix changes what it does not name in {path}: {value!r} to {now[2]!r}")


def _without(values: Sequence[Value], stretches: Sequence[tuple[int, int]]) -> list[Value]:
    """The values that do not lie in stretches of the file, which a fix removes or adds."""
    return [value for value in values if not any(start <= value[3] and value[4] <= end for start, end in stretches)]


def _is_moved(before: Sequence[Value], after: Sequence[Value]) -> bool:
    """There are more values or fewer, or as many of each kind at other places."""
    one, other = ([value[:2] for value in values] for values in (before, after))
    return len(one) != len(other) or (
        one != other and Counter(kind for _, kind in one) == Counter(kind for _, kind in other)
    )


def _words(values: Sequence[Value]) -> list[Value]:
    """The scalars, wherever they stand."""
    return [(0, *value[1:]) for value in values if value[1] == Scalar.__name__]


def _added(edits: Sequence[Edit]) -> Iterator[tuple[int, int]]:
    """Where text stands, after all edits, that takes the place of none."""
    whole = sorted(edits, key=lambda one: one.start)
    return (place for edit, place in zip(whole, _written(whole), strict=True) if edit.start == edit.end)


def _written(edits: Sequence[Edit]) -> Iterator[tuple[int, int]]:
    """Where the text of each edit stands after all edits."""
    shift = 0
    for edit in sorted(edits, key=lambda one: one.start):
        yield edit.start + shift, edit.start + shift + len(edit.replacement)
        shift += len(edit.replacement) - (edit.end - edit.start)


Value: TypeAlias = "tuple[int, str, str, int, int]"
"""Depth, kind and text of a node, and where it is."""


def _values(file: Path) -> list[Value] | None:
    try:
        return [value for document in documents("x", decode(file.read_bytes())) for value in _nodes(document.root)]
    except (Unparsable, ValueError, OSError):
        return None


def _nodes(root: Node) -> Iterator[Value]:
    stack: list[tuple[int, Node]] = [(0, root)]
    while stack:
        depth, node = stack.pop()
        target = target_of(node)
        scalar = target.value if isinstance(target, Scalar) and target is node else ""
        yield depth, type(node).__name__, scalar, node.start, node.end
        if isinstance(target, Mapping) and target is node:
            stack += [(depth + 1, part) for pair in target.pairs for part in pair]
        elif not isinstance(target, (Scalar, Mapping)) and target is node:
            stack += [(depth + 1, item) for item in target.items]


def sarif_schema() -> jsonschema.protocols.Validator | None:
    """The schema of SARIF 2.1.0, where `make readers` has fetched it."""
    found = sorted((ROOT / ".cache/npm/node_modules/@microsoft").glob("sarif-multitool-*/sarif-2.1.0.json"))
    if not found:
        return None
    schema = json.loads(found[0].read_text(encoding="utf-8-sig"))
    validator: jsonschema.protocols.Validator = jsonschema.validators.validator_for(schema)(schema)
    return validator


def saved() -> list[Files]:
    """The repositories of the corpus."""
    return [
        {name: base64.b64decode(data) for name, data in json.loads(file.read_bytes()).items()}
        for file in sorted(CORPUS.glob("*.json"))
    ]


def save(files: Files) -> None:
    """Add a repository to the corpus."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    text = json.dumps({name: base64.b64encode(data).decode() for name, data in sorted(files.items())})
    (CORPUS / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json").write_text(text, encoding="utf-8")


def build(folder: Path, files: Files, state: str) -> None:
    """The files of a repository that is something to git."""
    for name, data in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    STATES[state](folder)


def run(seconds: float, seed: int, say: Callable[[str], None] = print) -> int:
    """Rounds until the time is over; returns the number of failures that differ."""
    os.environ["TRAINLINT_DEBUG"] = "1"
    all_rules()
    corpus, schema, seen = saved(), sarif_schema(), Seen()
    again = random.Random(seed).sample(corpus, len(corpus))
    if schema is None:
        say("SARIF is not compared to its schema: `make readers` fetches it")
    start, number = time.monotonic(), 0
    failures: dict[str, Path] = {}
    while time.monotonic() < start + seconds:
        chance = random.Random(f"{seed} {number}")
        folder = Path(tempfile.mkdtemp(prefix="trainlint-fuzz-"))
        state = chance.choice(sorted(STATES)) if chance.random() < 0.1 else "a folder"
        # The corpus comes first, for a quarter of the time, so that what is new is new.
        is_known = bool(again) and time.monotonic() < start + seconds / 4
        if is_known:
            files = again.pop()
        else:
            files = repository(chance, corpus if corpus and chance.random() < 0.4 else fixtures())
        number += 1
        try:
            with suppress(OSError):
                build(folder, files, state)
            if check(folder, seen, schema) and not is_known:
                save(files)
                corpus.append(files)
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{type(error).__name__} at {Path(frame.filename).name}:{frame.lineno}"
            what = str(error) if isinstance(error, Failure) else f"{place}: {error}"
            key = re.split(r": |/|\d", what)[0] if isinstance(error, Failure) else place
            if key not in failures:
                failures[key] = folder.with_name(folder.name + "-kept")
                with suppress(OSError):
                    build(failures[key], files, state)
                say(f"round {number}, {failures[key]}: {what}")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    say(
        f"{number:,} repositories ({len(corpus):,} in the corpus), {seen.findings.total():,} findings of "
        f"{len(seen.findings)} rules, {len(failures)} kinds of failure (seed {seed})"
    )
    return len(failures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    sys.exit(1 if run(options.seconds, options.seed) else 0)


if __name__ == "__main__":
    main()
