"""The rule pages are those of the registry."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import docs  # noqa: E402


def test_the_pages_are_up_to_date() -> None:
    stale = [page.name for page, text in docs.pages().items() if not page.is_file() or page.read_text("utf-8") != text]
    assert stale == [], "run make docs"
    assert {page.name for page in docs.PAGES.glob("*.md")} == {page.name for page in docs.pages()}
