"""Writes the rule pages in docs/rules/ from the registry and the fixtures: `python tools/docs.py [--check]`."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from trainlint.catalogue import FAMILIES, all_rules, parse_target
from trainlint.engine import lint
from trainlint.findings import Finding
from trainlint.rule import Rule
from trainlint.settings import Overrides
from trainlint.targets import Target

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "rules"
FIXTURES = ROOT / "fixtures"
_COMMENT = re.compile(r"\s*#\s*(?:expect|target|runtimes):.*$", re.MULTILINE)


def pages() -> dict[Path, str]:
    """Every page's path and content."""
    rules = all_rules()
    return {PAGES / "README.md": _index(rules), **{PAGES / f"{rule.code}.md": _page(rule) for rule in rules}}


def _index(rules: list[Rule]) -> str:
    lines = ["# Rules", ""]
    for family, title in FAMILIES.items():
        lines += [f"## {title}", "", "| code | name | severity | what it finds |", "| --- | --- | --- | --- |"]
        lines += [
            f"| [{rule.code}]({rule.code}.md) | `{rule.name}` | {rule.severity.value} | {_cell(rule.summary)} |"
            for rule in rules
            if rule.code.startswith(family)
        ]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(rule: Rule) -> str:
    lines = [f"# {rule.code} {rule.name}", "", f"Severity: {rule.severity.value}.", "", rule.documentation, ""]
    example = FIXTURES / rule.code / "bad.yaml"
    if example.is_file():
        lines += [
            "## Example",
            "",
            "```yaml",
            _without_comments(example),
            "```",
            "",
            "```",
            *_findings(example),
            "```",
            "",
        ]
    return "\n".join(lines)


def _without_comments(example: Path) -> str:
    """The fixture as a reader should see it, without expectations and settings."""
    return _COMMENT.sub("", example.read_text(encoding="utf-8")).strip("\n")


def _findings(example: Path) -> list[str]:
    content = example.read_text(encoding="utf-8")
    targets: dict[str, Target] = {}
    for match in re.finditer(r"^#\s*target:\s*(\S+)", content, re.MULTILINE):
        targets.update(parse_target(match.group(1)))
    runtimes = re.search(r"^#\s*runtimes:\s*(\w+)", content, re.MULTILINE)
    overrides = Overrides(targets=targets, runtimes=runtimes.group(1) if runtimes else None, isolated=True)
    shown = _without_comments(example).encode()
    with tempfile.TemporaryDirectory() as folder:
        report = lint([], overrides, stdin=(Path(folder, "example.yaml"), shown))
    return [_line(finding) for finding in report.findings]


def _line(finding: Finding) -> str:
    at = finding.span
    return f"{at.line}:{at.column}: {finding.level.value} {finding.rule} {finding.name}: {finding.message}"


def main() -> int:
    """Write the pages, or with --check say which differ."""
    wanted = pages()
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
