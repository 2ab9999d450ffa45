"""Finds the YAML files to open, and the workspace of each."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.budget import BUDGET
from trainlint.lazy import regex
from trainlint.records import NamedTuple
from trainlint.repository import git
from trainlint.repository.bounds import Bounds, PathError, inside, leads_out, read, walk

if TYPE_CHECKING:
    from trainlint.repository.patterns import Patterns

SUFFIXES = (".yaml", ".yml")
_TABLE = regex(rb"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*trainlint\b", re.MULTILINE)
FILE_NAMES = ("trainlint.toml", "pyproject.toml")
_SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", ".tox", ".nox"})


class MissingPath(PathError):
    """A named path does not exist."""


class Candidate(NamedTuple):
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
    folder that git ignores, all files below, without links to folders. Links that lead out of a workspace are skipped.

    Raises MissingPath, and PathError for a path that leads out of its workspace or where git refuses.
    """
    seen: set[str] = set()
    workspaces = _Workspaces()
    for path in paths:
        # Before the check that the path exists: nobody should learn what exists outside the workspace.
        workspaces.hold(path)
        if os.path.isdir(path):
            found: Iterable[Path] = _kept(path, _files_below(path, SUFFIXES))
            top = path
        elif os.path.exists(path):
            found, top = (path,), path.parent
        else:
            raise MissingPath(f"{path}: no such file or folder")
        top = Path(os.path.abspath(top))
        start = workspaces.of(top, top)
        for file in found:
            place = os.path.abspath(file)
            key = os.path.normcase(place)
            if key not in seen:
                seen.add(key)
                yield Candidate(file, workspaces.of(Path(os.path.dirname(place)), top), start, path)


def is_too_deep(file: Path, workspace: Path) -> bool:
    """There are more folders between a workspace and a file than the budget allows."""
    return os.path.abspath(file).count(os.sep) - os.path.abspath(workspace).count(os.sep) > BUDGET.depth


def files_below(folder: Path, suffixes: Sequence[str] = SUFFIXES, answers: git.Answers | None = None) -> Iterator[Path]:
    """The files below a folder with one of these suffixes, in the order of their paths.

    Links that lead out are left out, and files that are too deep. Raises PathError where git refuses.
    """
    return (file for file in _kept(folder, _files_below(folder, suffixes, answers)) if not is_too_deep(file, folder))


def _files_below(folder: Path, suffixes: Sequence[str], answers: git.Answers | None = None) -> list[Path]:
    wanted = tuple(suffix.lower() for suffix in suffixes)
    listed = git.listed(folder, wanted, answers)
    return sorted(_walk(folder, wanted) if listed is None else listed)


def files_in(folder: Path, suffixes: Sequence[str] = SUFFIXES) -> list[Path]:
    """The files directly in a folder with one of these suffixes, in the order of their paths."""
    wanted = tuple(suffix.lower() for suffix in suffixes)
    names = sorted(name for name in os.listdir(folder) if name.lower().endswith(wanted))
    return list(_kept(folder, (folder / name for name in names)))


def _kept(folder: Path, files: Iterable[Path]) -> Iterator[Path]:
    """The regular files, and the links to regular files in the workspace of the folder."""
    root = workspace_of(Path(os.path.abspath(folder)), Path(os.path.abspath(folder)))
    bounds = Bounds(root)
    return (file for file in files if bounds.file(file))


def workspace_of(folder: Path, top: Path) -> Path:
    """The nearest folder upward with settings or `.git`, else `top`, the folder that the user named."""
    return _Workspaces().of(folder, top)


def is_workspace(folder: Path) -> bool:
    """The folder contains settings or `.git`."""
    return os.path.exists(folder / ".git") or settings_file(folder) is not None


def settings_file(folder: Path) -> Path | None:
    """The settings file of one folder: trainlint.toml, or a pyproject.toml with [tool.trainlint].

    Raises PathError for a trainlint.toml that is a link out of the repository; such a pyproject.toml has no settings.
    """
    own, project = (folder / name for name in FILE_NAMES)
    if os.path.lexists(own):
        root = repository_root(folder)
        if leads_out(root, own):
            raise PathError(f"{own}: a link that leads out of the repository {root}")
        if inside(root, own):
            return own
    return project if os.path.lexists(project) and _has_table(project) else None


def _has_table(project: Path) -> bool:
    try:
        data = read(repository_root(project.parent), project)
        if b"trainlint" not in data:
            return False
        if len(data) > BUDGET.settings:
            return _TABLE.search(data) is not None
        if sys.version_info >= (3, 11):
            import tomllib
        else:
            import tomli as tomllib
        tool = tomllib.loads(data.decode("utf-8-sig")).get("tool")
    except OSError:
        return False
    except (ValueError, RecursionError):
        return _TABLE.search(data) is not None
    return isinstance(tool, dict) and "trainlint" in tool


def repository_root(folder: Path) -> Path:
    """The nearest folder upward with `.git`, else the folder itself."""
    return git.top(folder) or folder


class _Workspaces:
    def __init__(self) -> None:
        self._known: dict[Path, Path | None] = {}
        self._held: set[Path] = set()

    def of(self, folder: Path, top: Path) -> Path:
        return self._marked(folder) or top

    def hold(self, path: Path) -> None:
        """Raises PathError where a link in a path leads out of the workspace that has the link."""
        place = Path(os.path.abspath(path))
        for link in (place, *place.parents):
            if link in self._held:
                return
            self._held.add(link)
            holder = self._marked(link.parent) if os.path.islink(link) else None
            if holder is not None and leads_out(holder, link):
                raise PathError(f"{path}: a link that leads out of the workspace {holder}")

    def _marked(self, folder: Path) -> Path | None:
        passed: list[Path] = []
        found: Path | None = None
        for above in (folder, *folder.parents):
            if above in self._known:
                found = self._known[above]
                break
            passed.append(above)
            if is_workspace(above):
                found = above
                break
        self._known.update(dict.fromkeys(passed, found))
        return found


def _walk(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    for root, folders, names in walk(folder):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in names:
            file = Path(root, name)
            if name.lower().endswith(suffixes):
                yield file


class Excluder:
    """Patterns in the style of .gitignore, relative to a folder; and `more`, whose patterns count beside them."""

    def __init__(self, patterns: Sequence[str], base: Path, more: Sequence[Excluder] = ()) -> None:
        self.base = Path(os.path.abspath(base))
        self.patterns = tuple(patterns)
        self.more = tuple(more)

    def excludes(self, path: Path | str, *, folder: bool = False) -> bool:
        """A pattern matches the file (or folder), or a folder above it."""
        if any(other.excludes(path, folder=folder) for other in self.more):
            return True
        if not self.patterns:
            return False
        # As texts: there may be a thousand settings for paths, each of which asks this of each file.
        absolute, base = os.path.abspath(path), os.path.join(self.base, "")
        if not os.path.normcase(os.path.join(absolute, "")).startswith(os.path.normcase(base)):
            return False
        relative = absolute[len(base) :].replace(os.sep, "/") or "."
        return _patterns(self.patterns).match(f"{relative}/" if folder else relative)


@lru_cache(maxsize=BUDGET.patterns)
def _patterns(written: tuple[str, ...]) -> Patterns:
    from trainlint.repository.patterns import Patterns

    return Patterns(written)
