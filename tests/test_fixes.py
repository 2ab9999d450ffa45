"""Fixes in place."""

from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path

import pytest

from trainlint.findings import Edit, Finding, Fix, Span
from trainlint.fixes import apply
from trainlint.reading.text import decode
from trainlint.report import Report


def report(file: Path, *fixes: Fix, suppressed: str | None = None) -> Report:
    path = str(file)
    findings = tuple(Finding("m", Span(path, 1, 1, 1, 2), 0, "f", "f", fix=fix, suppressed=suppressed) for fix in fixes)
    return Report(findings=findings, texts={path: decode(file.read_bytes())})


def fix(*edits: tuple[int, int, str], safe: bool = True) -> Fix:
    return Fix("mend", tuple(Edit(*edit) for edit in edits), safe)


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8], ids=["plain", "byte order mark"])
def test_edits_keep_encoding_and_line_ends(tmp_path: Path, mark: bytes) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(mark + "ü: fsdp_x\r\nb: fsdp_y\r\n".encode())
    assert apply(report(file, fix((3, 8, "")), fix((14, 19, "")))) == 2
    assert file.read_bytes() == mark + "ü: x\r\nb: y\r\n".encode()


def test_utf16_stays_utf16(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes("a: 1\n".encode("utf-16"))
    assert apply(report(file, fix((3, 4, "2")))) == 1
    assert file.read_bytes() == "a: 2\n".encode("utf-16")


def test_a_fix_that_touches_an_earlier_one_waits(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("abcdef", encoding="utf-8")
    assert apply(report(file, fix((0, 3, "x")), fix((2, 4, "y")), fix((4, 5, "z")))) == 2
    assert file.read_text(encoding="utf-8") == "xdzf"


def test_unsafe_and_suppressed_ones_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("abc", encoding="utf-8")
    assert apply(report(file, fix((0, 1, "x"), safe=False))) == 0
    assert apply(report(file, fix((0, 1, "x")), suppressed="why")) == 0
    assert file.read_text(encoding="utf-8") == "abc"


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")
def test_mode_and_link_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "a.yaml", tmp_path / "b.yaml"
    file.write_text("abc", encoding="utf-8")
    file.chmod(0o640)
    link.symlink_to(file)
    assert apply(report(link, fix((0, 1, "x")))) == 1
    assert link.is_symlink()
    assert file.read_text(encoding="utf-8") == "xbc"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_file_is_changed_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("abc", encoding="utf-8")

    def fail(source: str, target: str) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        apply(report(file, fix((0, 1, "x"))))
    assert file.read_text(encoding="utf-8") == "abc"
    assert list(tmp_path.iterdir()) == [file]
