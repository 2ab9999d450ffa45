"""The rule pages are those of the registry."""

from __future__ import annotations

import docs
from cases import WITHOUT
from trainlint.catalogue import all_rules

PAGES = docs.pages()


def test_the_pages_are_up_to_date() -> None:
    stale = [page.name for page, text in PAGES.items() if not page.is_file() or page.read_text("utf-8") != text]
    assert stale == [], "run make docs"
    assert {page.name for page in docs.PAGES.glob("*.md")} == {page.name for page in PAGES}


def test_what_else_is_derived_is_up_to_date() -> None:
    assert docs.NAMES.read_text("utf-8") == docs.names(), "run make docs"
    assert docs.SCHEMA.read_text("utf-8") == docs.settings_schema(), "run make docs"


def test_every_page_shows_what_to_change() -> None:
    """Each rule has an example with what is reported on it, and what to write instead."""
    for rule in (rule for rule in all_rules() if rule.code not in WITHOUT):
        example, _, instead = PAGES[docs.PAGES / f"{rule.code}.md"].partition("## Use instead")
        report = example.partition("## Example")[2].replace(" [*]", "")
        assert f" {rule.code} {rule.name}: " in report, rule.code
        assert "\n-" in instead or "\n+" in instead, rule.code
