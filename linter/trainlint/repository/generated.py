"""Files that `.gitattributes` marks as generated: nobody edits them, so nothing is said of them."""

from __future__ import annotations

import os
from pathlib import Path

from trainlint.repository.bounds import read
from trainlint.repository.discover import Excluder, repository_root

_ATTRIBUTE = "linguist-generated"


class Generated:
    """The marks of the `.gitattributes` files that are above the asked files, each read once."""

    def __init__(self) -> None:
        self._marks: dict[Path, list[tuple[Excluder, bool]]] = {}
        self._roots: dict[Path, Path] = {}

    def __contains__(self, file: Path) -> bool:
        """A file is marked; the nearest `.gitattributes` counts, and the last line in it that matches."""
        folder = Path(os.path.abspath(file)).parent
        if folder not in self._roots:
            self._roots[folder] = repository_root(folder)
        root = self._roots[folder]
        for above in (folder, *folder.parents):
            for pattern, marked in reversed(self._marks_in(above, root)):
                if pattern.excludes(file):
                    return marked
            if above == root:
                break
        return False

    def _marks_in(self, folder: Path, root: Path) -> list[tuple[Excluder, bool]]:
        if folder not in self._marks:
            self._marks[folder] = []
            try:
                lines = read(root, folder / ".gitattributes").decode("utf-8", "replace").splitlines()
            except (OSError, ValueError):
                return []
            from trainlint.repository.patterns import is_pattern

            self._marks[folder] = [
                (Excluder([pattern], folder), marked)
                for line in lines
                for pattern, marked in _of_line(line)
                if is_pattern(pattern)
            ]
        return self._marks[folder]


def _of_line(line: str) -> list[tuple[str, bool]]:
    """The pattern of a line, and whether it sets the attribute or takes it away; nothing for other attributes."""
    pattern, *attributes = line.split() or [""]
    if pattern.startswith(("#", "!", "[", '"')) or pattern.endswith("/"):
        return []
    for attribute in reversed(attributes):
        name, _, value = attribute.lstrip("-!").partition("=")
        if name == _ATTRIBUTE:
            return [(pattern, not attribute.startswith(("-", "!")) and value != "false")]
    return []
