"""docs/features.md and docs/policy.md: every row has a link to what shows it, and every link leads somewhere."""

from __future__ import annotations

import re

import pytest

from external import ROOT
from trainlint.reports import FORMATS

DOCS = ROOT / "docs"
TEXT = (DOCS / "features.md").read_text(encoding="utf-8")
ROWS, BESIDES = (
    [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"(?m)^\|.*\|$", part)]
    for part in TEXT.split("Besides:")
)


def headings(text: str) -> set[str]:
    """The anchors that GitHub makes of the headings."""
    return {re.sub(r"[^\w-]", "", line.lower().replace(" ", "-")) for line in re.findall(r"^#+ (.+)$", text, re.M)}


@pytest.mark.parametrize("name", ["features.md", "policy.md", "settings.md", "python.md", "dependencies.md"])
def test_links(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"(?s)```.*?```", "", text)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (DOCS / path) if path else DOCS / name
        assert file.exists(), target
        if anchor:
            assert anchor in headings(file.read_text(encoding="utf-8")), target


def test_every_row_is_full_and_shown() -> None:
    head, _, *rows = ROWS
    assert head[1] == "trainlint"
    assert len(head) == 11
    for row in rows:
        assert len(row) == len(head), row
        assert all(row), row
        assert re.search(r"\]\(.+\)", row[1]), row[0]
    assert all("](" in row[1] for row in BESIDES[2:])


def test_what_is_not_there_has_a_reason() -> None:
    reasons = TEXT.partition("## Decided against")[2].lower()
    missing = [row[0] for row in ROWS if "#decided-against" in row[1]]
    assert missing == ["watches, language server", "rules of one's own"]
    for word in ("cache of results", "language server", "rules of one's own"):
        assert f"**{word}" in reasons or f"{word}.**" in reasons


def test_the_number_of_formats() -> None:
    (row,) = [row for row in ROWS if row[0] == "formats"]
    assert row[1].startswith(f"[{len(FORMATS)}]")
    assert "one of the thirteen formats" in TEXT
    assert len(FORMATS) == 13
