"""Writes the rule pages in docs/rules/ from the registry, the fixtures and their snapshots: `python tools/docs.py`.

It also writes what is derived from the registry beside them: the package's list of rules, and the JSON Schema of the
settings.

A page shows the rule's `bad.yaml` or `bad/`, the report on it, the difference to `good.yaml` or `good/`, and what the
other bad cases bring about. With `--check` nothing is written, and the outdated pages are listed.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cases import FIXTURES, ROOT, WITHOUT, Case
from trainlint import catalogue
from trainlint.catalogue import FAMILIES, VOCABULARY, all_rules, rule_facts
from trainlint.findings import Stage
from trainlint.rule import Rule
from trainlint.rule_list import as_markdown
from trainlint.settings.schema import schema

PAGES = ROOT / "docs" / "rules"
SCHEMA = ROOT / "docs" / "settings.schema.json"
NAMES = Path(catalogue.__file__).with_name("rule_names.txt")
SHOWN_WHOLE = 3
"""The number of findings that are shown with their lines; of further ones only the first line is shown."""

SHOWN_OTHERS = 20
"""The number of messages that are shown of the other cases."""

_STAGES = {
    Stage.ADMISSION: "Shows at admission.",
    Stage.CREATE: "Shows when the JobSet, its Jobs or pods are created.",
    Stage.LOAD: "Shows when the file is loaded.",
    Stage.START: "Shows at the start, after the file was loaded.",
    Stage.PREPARE: "Shows when the model is prepared for training.",
    Stage.TRAIN: "Shows at a training step.",
    Stage.SAVE: "Shows when something is saved, after training.",
    Stage.RUN: "Nothing stops: the run is not what was meant.",
}
_LANGUAGES = {".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml", ".sh": "sh"}
_HEADER = re.compile(r"^\S+:\d+:\d+: (\w+) ([A-Z]{2}\d{3}) ", re.MULTILINE)


def pages() -> dict[Path, str]:
    """Every page's path and content."""
    rules = all_rules()
    return {PAGES / "README.md": _index(rules), **{PAGES / f"{rule.code}.md": _page(rule) for rule in rules}}


def names() -> str:
    """The list of rules in the package, from which selectors are checked without importing the rules."""
    return "".join(f"{rule.code} {rule.name}\n" for rule in all_rules())


def settings_schema() -> str:
    """The JSON Schema of the settings, which names the rules of that list."""
    return json.dumps(schema(VOCABULARY), indent=1) + "\n"


def _index(rules: list[Rule]) -> str:
    lines = [
        "# Rules",
        "",
        "An error is a warning where only some of the releases that a file may be for refuse it.",
        "",
    ]
    for family, title in FAMILIES.items():
        lines += [f"## {title}", "", as_markdown([rule for rule in rules if rule.code.startswith(family)], "{}.md")]
    return "\n".join(lines)


_FIXES = {
    "safe": "`--fix` mends some of its findings.",
    "unsafe": "`--fix --unsafe-fixes` mends some of its findings.",
}


def _facts(rule: Rule) -> Iterator[str]:
    """Sentences on a rule that come before its documentation."""
    other = f"; {rule.varies}" if rule.varies else ""
    yield f"Severity: {rule.severity.value}{other}. {_STAGES[rule.stage]}"
    facts = rule_facts()[rule.code]
    if facts.releases:
        yield f"Its cases are reported for {facts.in_words()}."
    if facts.fix:
        yield _FIXES[facts.fix]


def _page(rule: Rule) -> str:
    lines = [f"# {rule.code} {rule.name}", ""]
    for sentence in _facts(rule):
        lines += [sentence, ""]
    lines += [rule.documentation, ""]
    if rule.code in WITHOUT:
        return "\n".join(lines)
    bad, good = _example(rule, "bad"), _example(rule, "good")
    lines += ["## Example", ""]
    asked = bad.overrides()
    options = [f"--target {program}={', '.join(target.versions)}" for program, target in asked.targets.items()]
    options += ["--runtimes closed"] if asked.runtimes == "closed" else []
    if options:
        lines += [f"With `{' '.join(options)}`:", ""]
    lines += [*_files(bad), "```", *_output(bad), "```", ""]
    lines += ["## Use instead", "", "```diff", *_difference(bad, good), "```", ""]
    others = list(_others(rule, bad))
    if others:
        lines += ["## Also found", "", "```", *others, "```", ""]
    return "\n".join(lines)


def _example(rule: Rule, name: str) -> Case:
    folder = FIXTURES / rule.code / name
    return Case(folder if folder.is_dir() else folder.with_suffix(".yaml"))


def _texts(case: Case) -> dict[str, list[str]]:
    return {name: data.decode("utf-8", "replace").splitlines() for name, data in case.files().items()}


def _files(case: Case) -> Iterator[str]:
    for name, lines in _texts(case).items():
        if case.is_folder:
            yield from (f"`{name}`:", "")
        yield from (f"```{_LANGUAGES.get(Path(name).suffix, '')}", *lines, "```", "")


def _output(case: Case) -> Iterator[str]:
    """The snapshot; of findings after the first few only the first line."""
    blocks = case.kept.rstrip("\n").split("\n\n")
    findings = [block for block in blocks if _HEADER.match(block)]
    short = findings[SHOWN_WHOLE:]
    if short:
        blocks[SHOWN_WHOLE : len(findings)] = ["\n".join(block.splitlines()[0] for block in short)]
    yield from "\n\n".join(blocks).splitlines()


def _others(rule: Rule, shown: Case) -> Iterator[str]:
    """What the rule says of its other bad cases: severity and message, and the help below; nothing twice."""
    told: dict[str, str] = {}
    known: set[str] = set()
    for snapshot in sorted((FIXTURES / rule.code).glob("bad*.out"), key=lambda file: (file != shown.snapshot, file)):
        for block in snapshot.read_text(encoding="utf-8").split("\n\n"):
            head = _HEADER.match(block)
            if head is not None and head[2] == rule.code:
                message = block.splitlines()[0].partition(f"{rule.name}: ")[2]
                advice = re.search(r"(?m)^ *= (help: .*)$", block)
                told.setdefault(f"{head[1]}: {message}", f"  {advice[1]}" if advice else "")
        if snapshot == shown.snapshot:
            known = set(told)
    new = [(message, help) for message, help in told.items() if message not in known]
    for message, help in new[:SHOWN_OTHERS]:
        yield message
        yield from [help] if help else []
    if len(new) > SHOWN_OTHERS:
        yield f"… and {len(new) - SHOWN_OTHERS} more"


def _difference(bad: Case, good: Case) -> Iterator[str]:
    """What to change, document by document, without files that only the good case has."""
    before, after = _texts(bad), _texts(good)
    if not bad.is_folder:
        after = {bad.path.name: after[good.path.name]}
    for name in before:
        changes = list(_changes(before[name], after[name])) if name in after else []
        if changes and bad.is_folder:
            yield f"--- {name}"
        yield from changes


def _changes(before: list[str], after: list[str]) -> Iterator[str]:
    for document, match in _pairs(_documents(before), _documents(after)):
        for line in list(difflib.unified_diff(document, match, lineterm="", n=2))[3:]:
            yield "@@" if line.startswith("@@") else line


def _pairs(ones: list[list[str]], others: list[list[str]]) -> list[tuple[list[str], list[str]]]:
    """Each document with the most similar one, in order; the most similar pair is chosen first."""
    likeness = {
        (i, j): difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()
        for i, one in enumerate(ones)
        for j, other in enumerate(others)
    }
    chosen: dict[int, int] = {}
    for i, j in sorted(likeness, key=lambda pair: -likeness[pair]):
        if i not in chosen and j not in chosen.values():
            chosen[i] = j
    return [(ones[i], others[j]) for i, j in sorted(chosen.items())]


def _documents(lines: list[str]) -> list[list[str]]:
    documents: list[list[str]] = [[]]
    for line in lines:
        if re.match("# (target|runtimes):", line):
            continue
        if line == "---":
            documents.append([])
        else:
            documents[-1].append(line)
    return documents


def main() -> int:
    """Write the pages, or with --check list those that differ."""
    if "--check" not in sys.argv[1:]:
        NAMES.write_text(names(), encoding="utf-8", newline="\n")
    wanted = {NAMES: names(), SCHEMA: settings_schema(), **pages()}
    stale = {page for page in PAGES.glob("*.md") if page not in wanted}
    changed = {p for p, text in wanted.items() if not p.is_file() or p.read_text(encoding="utf-8") != text}
    if "--check" in sys.argv[1:]:
        for page in sorted(stale | changed):
            print(f"{page.relative_to(ROOT)} is out of date: run make docs")
        return 1 if stale or changed else 0
    PAGES.mkdir(parents=True, exist_ok=True)
    for page in stale:
        page.unlink()
    for page in changed:
        page.write_text(wanted[page], encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
