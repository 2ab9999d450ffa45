"""What lies in a folder, by name and by links."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainlint.repository import bounds
from trainlint.repository.bounds import inside, leads_out, read

pytestmark = pytest.mark.skipif(os.name == "nt", reason="making symbolic links takes rights on Windows")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    for file in (root / "a", root / "sub" / "b", tmp_path / "out" / "c"):
        file.write_text(file.name, encoding="utf-8")
    for link, target in {
        "file": "a",
        "absolute": str(root / "a"),
        "chain": "file",
        "folder": "sub",
        "up": "sub/../a",
        "out-file": "../out/c",
        "out-folder": "../out",
        "out-absolute": str(tmp_path / "out" / "c"),
        "out-and-back": "../root/a",
        "gone": "nothing",
        "loop": "loop",
        "sub/deep": "../folder/b",
        "host": "/net/example.org/x",
        "sibling": str(tmp_path / "root2"),
    }.items():
        (root / link).symlink_to(target)
    (tmp_path / "root2").mkdir()
    return root


@pytest.mark.parametrize(
    ("path", "real"),
    [
        *[(path, "a") for path in ("a", "file", "absolute", "chain", "up", "sub/../a", "./a")],
        *[(path, "sub/b") for path in ("sub/b", "folder/b", "sub/deep", "folder/deep")],
        *[(path, None) for path in ("out-file", "out-folder/c", "out-absolute", "out-and-back", "gone", "loop", "sub")],
        *[(path, None) for path in ("../out/c", "/etc/passwd", "host", "host/y", "nothing", "", "sibling", "a/b")],
        *[(path, None) for path in ("a\0b", "\ud800", "x" * 5000, "/".join("x" * 2000))],
    ],
)
def test_inside(root: Path, path: str, real: str | None) -> None:
    assert inside(root, root / path) == (None if real is None else str(root / real))


@pytest.mark.parametrize(
    ("path", "out"),
    [
        *[(path, False) for path in ("a", "file", "gone", "nothing", "sub", "folder/x", "nothing/x", "")],
        *[
            (path, True)
            for path in ("out-file", "out-folder", "out-folder/x", "../x", "/etc", "host", "loop", "../root2")
        ],
    ],
)
def test_leads_out(root: Path, path: str, out: bool) -> None:
    assert leads_out(root, root / path) is out


def test_a_root_behind_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    assert inside(tmp_path / "alias", tmp_path / "alias" / "folder" / "b") == str(root / "sub" / "b")
    assert inside(tmp_path / "alias", root / "a") == str(root / "a")
    assert inside(tmp_path / "alias", tmp_path / "alias" / "absolute") == str(root / "a")


def test_nothing_outside_is_asked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def spied(real: Callable[..., Any]) -> Callable[..., Any]:
        def spy(path: str, *rest: Any, **named: Any) -> Any:
            asked.append(os.fspath(path))
            return real(path, *rest, **named)

        return spy

    with monkeypatch.context() as patched:
        for name in ("lstat", "stat", "readlink", "open"):
            patched.setattr(os, name, spied(getattr(os, name)))
        for path in (
            "host",
            "host/y",
            "out-file",
            "out-folder/c",
            "//server/share/x",
            "../out/c",
            "/net/example.org/x",
        ):
            inside(root, root / path)
            leads_out(root, root / path)
    assert any(path.endswith("out-folder") for path in asked)
    assert not [path for path in asked if not (path.startswith(str(root)) or str(root).startswith(path))]


def test_a_read_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_BYTES", 3)
    (root / "a").write_bytes(b"12345")
    assert read(root, root / "file") == b"1234"
    for path in ("sub", "gone", "out-file", "nothing"):
        with pytest.raises(OSError, match="no regular file of the workspace"):
            read(root, root / path)
