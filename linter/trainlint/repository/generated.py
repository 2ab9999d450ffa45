"""Files that `.gitattributes` marks as generated: nobody edits them, so nothing is said of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.budget import BUDGET
from trainlint.repository.bounds import read
from trainlint.repository.discover import repository_root

if TYPE_CHECKING:
    from trainlint.repository.patterns import Pattern

_ATTRIBUTE = "linguist-generated"


class Generated:
    """The marks of the `.gitattributes` files that are above the asked files, each read once."""

    def __init__(self) -> None:
        self._marks: dict[Path, list[tuple[Pattern, bool]]] = {}
        self._roots: dict[Path, Path] = {}

    def __contains__(self, file: Path) -> bool:
        """A file is marked; the nearest `.gitattributes` counts, and the last line in it that matches."""
        path = Path(os.path.abspath(file))
        folder = path.parent
        if folder not in self._roots:
            self._roots[folder] = repository_root(folder)
        root = self._roots[folder]
        for above in (folder, *folder.parents):
            for pattern, marked in reversed(self._marks_in(above, root)):
                if pattern.is_of(path.relative_to(above).as_posix()):
                    return marked
            if above == root:
                break
        return False

    def _marks_in(self, folder: Path, root: Path) -> list[tuple[Pattern, bool]]:
        if folder not in self._marks:
            self._marks[folder] = []
            try:
                data = read(root, folder / ".gitattributes")
            except (OSError, ValueError):
                return []
            if _ATTRIBUTE.encode() in data:
                lines = data.decode("utf-8", "replace").splitlines()
                self._marks[folder] = list(islice((mark for line in lines for mark in _of_line(line)), BUDGET.patterns))
        return self._marks[folder]


def _of_line(line: str) -> Iterator[tuple[Pattern, bool]]:
    """The pattern of a line, and whether it sets the attribute or takes it away; nothing for other attributes."""
    written, *attributes = line.split() or [""]
    if written.startswith(("#", "!", "[", '"')) or written.endswith("/"):
        return
    for attribute in reversed(attributes):
        name, _, value = attribute.lstrip("-!").partition("=")
        if name == _ATTRIBUTE:
            from trainlint.repository.patterns import Pattern, PatternError

            with suppress(PatternError):
                pattern = Pattern.of(written)
                if pattern is not None:
                    yield pattern, not attribute.startswith(("-", "!")) and value != "false"
            return
