"""The rules for people and programs: `trainlint rules`, and the pages that `trainlint explain` shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from trainlint.catalogue import programs_of_rule, rule_facts
from trainlint.reports import rule_page
from trainlint.reports.escape import visible
from trainlint.rule import Rule

_PAGES = (Path(__file__).with_name("pages"), Path(__file__).parents[2] / "docs" / "rules")
"""Where the pages are: in an installation, and in a checkout."""
_BOLD, _CODE, _LESS, _MORE = "1", "36", "31", "32"


def severities(rule: Rule) -> str:
    """The severities of its findings, the most severe first: `error or warning`."""
    return " or ".join(severity.value for severity in rule.severities)


def as_text(rules: Sequence[Rule]) -> str:
    """A line for each rule."""
    if not rules:
        return "no rule is like that\n"
    name = max(len(rule.name) for rule in rules)
    severity = max(len(severities(rule)) for rule in rules)
    return "".join(
        f"{rule.code}  {rule.name:{name}}  {severities(rule):{severity}}  {rule.stage.value:9}  {rule.summary}\n"
        for rule in rules
    )


def as_json(rules: Sequence[Rule], *, explained: bool = False) -> str:
    """An array with an object for each rule; with its page in Markdown where it is `explained`."""
    import json

    rows = []
    for rule in rules:
        facts = rule_facts()[rule.code]
        rows.append(
            {
                "code": rule.code,
                "name": rule.name,
                "severity": rule.severity.value,
                "severities": [severity.value for severity in rule.severities],
                "varies": rule.varies,
                "stage": rule.stage.value,
                "ruleSet": rule.module,
                "programs": list(programs_of_rule(rule)),
                "releases": dict(facts.releases),
                "fix": facts.fix or None,
                "summary": rule.summary,
                "url": rule_page(rule.code),
                **({"explanation": page_of(rule)} if explained else {}),
            }
        )
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def as_markdown(rules: Sequence[Rule], address: str = "") -> str:
    """A table; `address` is that of a page, with `{}` for the code."""
    lines = ["| code | name | severity | stage | what it finds |", "| --- | --- | --- | --- | --- |"]
    for rule in rules:
        link = f"[{rule.code}]({address.format(rule.code) if address else rule_page(rule.code)})"
        summary = rule.summary.replace("|", "\\|")
        lines.append(f"| {link} | `{rule.name}` | {severities(rule)} | {rule.stage.value} | {summary} |")
    return "\n".join([*lines, ""])


def page_of(rule: Rule) -> str:
    """The page of a rule, in Markdown."""
    page = next((file for folder in _PAGES if (file := folder / f"{rule.code}.md").is_file()), None)
    return page.read_text(encoding="utf-8") if page else f"# {rule.code} {rule.name}\n\n{rule.documentation}\n"


def explained(rule: Rule, *, color: bool = False, width: int | None = None) -> str:
    """The page of a rule for a terminal: what it finds, why, its releases, and examples, without Markdown's fences.

    Paragraphs are laid into lines of `width` columns; None leaves them as they are.
    """
    lines: list[str] = []
    fence = ""
    for line in _paragraphs(page_of(rule).splitlines(), width):
        if line.startswith("```"):
            fence = "" if fence else line.removeprefix("```") or "output"
            continue
        shown = visible(line.expandtabs(4))
        if fence:
            paint = {"-": _LESS, "+": _MORE}.get(shown[:1], "") if fence == "diff" else ""
            lines.append(_painted(f"    {shown}", paint, color).rstrip())
        elif shown.startswith("#"):
            lines.append(_painted(shown.lstrip("# "), _BOLD, color))
        else:
            lines.append(_with_code(shown) if color else shown)
    return "\n".join([*lines, "", f"{rule_page(rule.code)}", ""])


def _paragraphs(lines: Sequence[str], width: int | None) -> Iterator[str]:
    """The lines of a page, those of a paragraph laid anew."""
    if width is None:
        yield from lines
        return
    from textwrap import wrap

    paragraph: list[str] = []
    fenced = False
    for line in lines:
        fenced ^= line.startswith("```")
        if line and not fenced and not line.startswith(("#", "```")):
            paragraph.append(line)
            continue
        yield from wrap(" ".join(paragraph), width, break_long_words=False, break_on_hyphens=False)
        paragraph = []
        yield line
    yield from wrap(" ".join(paragraph), width, break_long_words=False, break_on_hyphens=False)


def _painted(text: str, paint: str, color: bool) -> str:
    return f"\x1b[{paint}m{text}\x1b[0m" if color and paint else text


def _with_code(line: str) -> str:
    """A line of prose whose words in backquotes are painted."""
    parts = line.split("`")
    if len(parts) % 2 == 0:
        return line
    return "".join(_painted(part, _CODE, True) if number % 2 else part for number, part in enumerate(parts))
