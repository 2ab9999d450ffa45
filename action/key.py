"""Prints the key of the Action's cache: `key.py ACTION_PATH VERSION FOLDER`.

An installation can be used again by the same Python, in the same folder, for the same release, or, where no release is
asked for, the same files of the Action.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from pathlib import Path


def key(action_path: Path, version: str, folder: str) -> str:
    """`trainlint-` and 32 hexadecimal digits."""
    digest = hashlib.sha256(repr((sys.version, platform.platform(), sys.executable, version, folder)).encode())
    files = [] if version else [action_path / "pyproject.toml", *sorted((action_path / "linter").rglob("*"))]
    for file in files:
        if file.is_file() and "__pycache__" not in file.parts:
            content = file.read_bytes()
            name = file.relative_to(action_path).as_posix()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"trainlint-{digest.hexdigest()[:32]}"


if __name__ == "__main__":
    print(key(Path(sys.argv[1]), sys.argv[2], sys.argv[3]))
