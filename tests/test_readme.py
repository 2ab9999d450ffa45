"""README.md shows what the program prints now."""

from __future__ import annotations

from external import ROOT
from readme import filled


def test_outputs_are_real() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("<!-- output: trainlint check ") == 2
    assert filled(text) == text, "make docs writes them anew"
