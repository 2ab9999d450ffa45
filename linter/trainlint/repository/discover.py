"""Finds the YAML files to open, and the workspace of each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec.gitignore import GitIgnoreSpec

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SUFFIXES = (".yaml", ".yml")
FILE_NAMES = ("trainlint.toml", "pyproject.toml")
_SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", ".tox", ".nox"})


class MissingPath(ValueError):
    """A named path does not exist."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file to check, with its workspace; `path` is the named path that led to it, `start` that path's workspace."""

    file: Path
    workspace: Path
    start: Path
    path: Path

    @property
    def named(self) -> bool:
        """The user named the file itself."""
        return self.path == self.file


def discover(paths: Sequence[Path]) -> Iterator[Candidate]:
    """The files of the named paths, each once: a file itself, a folder's YAML files.

    In a git work tree these are the tracked files and the untracked ones that are not ignored; elsewhere, and below a
    folder that git ignores, all files below, without links to folders.

    Raises MissingPath.
    """
    seen: set[str] = set()
    workspaces = _Workspaces()
    for path in paths:
        if os.path.isdir(path):
            found: Iterable[Path] = files_below(path)
            top = path
        elif os.path.exists(path):
            found, top = (path,), path.parent
        else:
            raise MissingPath(f"{path}: no such file or folder")
        top = Path(os.path.abspath(top))
        start = workspaces.of(top, top)
        for file in found:
            key = os.path.abspath(file)
            if key not in seen:
                seen.add(key)
                yield Candidate(file, workspaces.of(Path(os.path.dirname(key)), top), start, path)


def files_below(folder: Path, suffixes: Sequence[str] = SUFFIXES) -> Iterator[Path]:
    """The files below a folder with one of these suffixes, in the order of their paths."""
    listed = _git_files(folder, suffixes)
    yield from sorted(_walk(folder, suffixes) if listed is None else listed)


def files_in(folder: Path, suffixes: Sequence[str] = SUFFIXES) -> list[Path]:
    """The files directly in a folder with one of these suffixes, in the order of their paths."""
    names = sorted(name for name in os.listdir(folder) if name.lower().endswith(tuple(suffixes)))
    return [folder / name for name in names if os.path.isfile(folder / name)]


def workspace_of(folder: Path, top: Path) -> Path:
    """The nearest folder upward with settings or `.git`, else `top`, the folder that the user named."""
    return _Workspaces().of(folder, top)


def is_workspace(folder: Path) -> bool:
    """The folder contains settings or `.git`."""
    return os.path.exists(folder / ".git") or settings_file(folder) is not None


def settings_file(folder: Path) -> Path | None:
    """The settings file of one folder: trainlint.toml, or a pyproject.toml with [tool.trainlint]."""
    own, project = (folder / name for name in FILE_NAMES)
    if os.path.isfile(own):
        return own
    return project if os.path.isfile(project) and _has_table(project) else None


def _has_table(project: Path) -> bool:
    try:
        data = project.read_bytes()
        if b"trainlint" not in data:
            return False
        tool = tomllib.loads(data.decode("utf-8-sig")).get("tool")
    except OSError:
        return False
    except ValueError:
        return re.search(rb"^\s*\[\s*tool\s*\.\s*trainlint\b", data, re.MULTILINE) is not None
    return isinstance(tool, dict) and "trainlint" in tool


def repository_root(folder: Path) -> Path:
    """The nearest folder upward with `.git`, else the folder itself."""
    return next((parent for parent in (folder, *folder.parents) if os.path.exists(parent / ".git")), folder)


class _Workspaces:
    def __init__(self) -> None:
        self._known: dict[Path, Path | None] = {}

    def of(self, folder: Path, top: Path) -> Path:
        return self._marked(folder) or top

    def _marked(self, folder: Path) -> Path | None:
        if folder not in self._known:
            if is_workspace(folder):
                self._known[folder] = folder
            else:
                self._known[folder] = self._marked(folder.parent) if folder.parent != folder else None
        return self._known[folder]


def _git_files(folder: Path, suffixes: Sequence[str]) -> list[Path] | None:
    """The files that git lists below a folder; None outside a work tree, without git, or if git ignores the folder."""
    if not any(os.path.exists(parent / ".git") for parent in (folder.absolute(), *folder.absolute().parents)):
        return None
    # A repository's own configuration could name a program to run as its file system monitor.
    git = ["git", "-C", str(folder), "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]
    # Not `:(icase)`, with which git lists nothing from inside a folder of which it tracks no file.
    patterns = [f"*{_in_any_case(suffix)}" for suffix in suffixes]
    try:
        listing = subprocess.run(
            [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
            capture_output=True,
            check=True,
        ).stdout
        if not listing:
            ignored = subprocess.run([*git, "check-ignore", "-q", "."], capture_output=True, check=False)
            if ignored.returncode != 1:
                return None
    except (OSError, subprocess.CalledProcessError):
        return None
    files = (folder / os.fsdecode(name) for name in listing.split(b"\0") if name)
    return [file for file in files if os.path.isfile(file)]


def _in_any_case(suffix: str) -> str:
    return "".join(f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else letter for letter in suffix)


def _walk(folder: Path, suffixes: Sequence[str]) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in names:
            file = Path(root, name)
            if name.lower().endswith(tuple(suffixes)) and os.path.isfile(file):
                yield file


class Excluder:
    """Patterns in the style of .gitignore, relative to a folder."""

    def __init__(self, patterns: Sequence[str], base: Path) -> None:
        self.base = Path(os.path.abspath(base))
        self.patterns = patterns
        self._spec: GitIgnoreSpec | None = None

    def excludes(self, path: Path, *, folder: bool = False) -> bool:
        """A pattern matches the file (or folder), or a folder above it."""
        if not self.patterns:
            return False
        if self._spec is None:
            from pathspec.gitignore import GitIgnoreSpec

            self._spec = GitIgnoreSpec.from_lines(self.patterns)
        try:
            relative = Path(os.path.abspath(path)).relative_to(self.base).as_posix()
        except ValueError:
            return False
        return self._spec.match_file(f"{relative}/" if folder else relative)
