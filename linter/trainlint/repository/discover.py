"""Finds the YAML files to open, and the workspace of each."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.budget import BUDGET
from trainlint.findings import did_you_mean
from trainlint.lazy import regex
from trainlint.records import NamedTuple
from trainlint.repository import git
from trainlint.repository.bounds import Bounds, PathError, inside, leads_out, read, walk

if TYPE_CHECKING:
    from trainlint.repository.patterns import Patterns

SUFFIXES = (".yaml", ".yml")
_TABLE = regex(rb"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*trainlint\b", re.MULTILINE)
_OTHER_TABLE = regex(rb"^[ \t]*\[[ \t]*tool[ \t]*\.[ \t]*(tr[\w-]{4,20})[ \t]*[\].]", re.MULTILINE)
FILE_NAMES = ("trainlint.toml", "pyproject.toml")
_SKIPPED = frozenset({".git", "node_modules", ".venv", "venv", ".tox", ".nox"})


class MissingPath(PathError):
    """A named path does not exist."""


class Candidate(NamedTuple):
    """A file to check, with its workspace; `path` is the named path that led to it, `start` that path's workspace.

    `key` is its absolute path.
    """

    key: str
    workspace: Path
    start: Path
    path: Path
    named: bool
    """The user named the file itself."""

    @property
    def file(self) -> Path:
        """The file, as the user named it."""
        return self.path if self.named else Path(self.key)


class Tree:
    """The files below one folder, asked of git or of the disk once.

    In a git work tree these are the tracked files and the untracked ones that are not ignored; elsewhere, and below a
    folder that git ignores, all files below, without links to folders. Links that lead out of the workspace are
    skipped. Unless it is `deep`, only the files in the folder itself belong to it. Reading it raises PathError where
    git refuses.
    """

    def __init__(
        self, folder: Path, answers: git.Answers | None = None, bounds: Bounds | None = None, *, deep: bool = True
    ) -> None:
        self.folder = os.path.abspath(folder)
        self.deep = deep
        self._start = os.path.join(self.folder, "")
        self._answers = answers or git.Answers()
        self._bounds = bounds or Bounds(workspace_of(Path(self.folder), Path(self.folder)))
        self._paths: dict[tuple[str, ...], list[str]] = {}

    @cached_property
    def names(self) -> list[str]:
        """Paths from the folder with forward slashes, in the order of their parts; also of what may not be read."""
        if not self.deep:
            return sorted(os.listdir(self.folder))
        listed = git.listed(Path(self.folder), self._answers)
        return sorted(_walk(self.folder), key=git.by_parts) if listed is None else listed

    @cached_property
    def folders(self) -> dict[str, list[str]]:
        """The names by the folder that they are in, without those that are too deep."""
        found: dict[str, list[str]] = {}
        last = None
        files: list[str] = []
        is_deep = self._is_deep
        for name in self.names:
            if is_deep and name.count("/") > BUDGET.depth:
                continue
            folder = name[: name.rfind("/") + 1]
            if folder != last:
                last, files = folder, found.setdefault(folder[:-1], [])
            files.append(name)
        return found

    def paths(self, suffixes: Sequence[str] = SUFFIXES) -> list[str]:
        """The absolute paths that end so, in any case, of files that may be read."""
        wanted = tuple(suffix.lower() for suffix in suffixes)
        if wanted not in self._paths:
            names, start = self._ending(wanted), self._start
            paths = [start + name for name in names] if os.sep == "/" else map(self.path, names)
            self._paths[wanted] = list(filter(self._bounds.look, paths))
        return self._paths[wanted]

    def _ending(self, suffixes: tuple[str, ...]) -> list[str]:
        # Most endings have no file.
        suffixes = tuple(suffix for suffix in suffixes if suffix.rpartition("/")[2] in self._in_lower_case)
        if not suffixes or not self.names:
            return []
        lowered_names = self._in_lower_case.split("\0")
        folder, both = self.folder.lower(), zip(self.names, lowered_names, strict=True)
        if any("/" in suffix for suffix in suffixes):
            return [name for name, lowered in both if f"{folder}/{lowered}".endswith(suffixes)]
        return [name for name, lowered in both if lowered.endswith(suffixes)]

    def near_paths(self, suffixes: Sequence[str] = SUFFIXES) -> list[str]:
        """The same, without those that are too deep."""
        found = self.paths(suffixes)
        return [path for path in found if not is_too_deep(path, self.folder)] if self._is_deep else found

    def ending(self, suffixes: Sequence[str]) -> list[str]:
        """The names of these files."""
        start = len(self._start)
        return [path[start:].replace(os.sep, "/") for path in self.near_paths(suffixes)]

    @cached_property
    def _is_deep(self) -> bool:
        """Some file is too deep."""
        return any(name.count("/") >= BUDGET.depth for name in self.names if len(name) > BUDGET.depth)

    def holds(self, name: str) -> bool:
        """A name is of a regular file in the workspace."""
        return self._bounds.look(self.path(name)) is not None

    def path(self, name: str) -> str:
        """The absolute path of a name."""
        return self._start + (name if os.sep == "/" else name.replace("/", os.sep))

    @cached_property
    def _in_lower_case(self) -> str:
        """All names."""
        return "\0".join(self.names).lower()


def discover(paths: Sequence[Path], tree: Callable[[Path], Tree] = Tree) -> Iterator[Candidate]:
    """The files of the named paths, each once: a file itself, a folder's YAML files.

    Raises MissingPath, and PathError for a path that leads out of its workspace or where git refuses.
    """
    seen: set[str] = set()
    workspaces = _Workspaces()
    for path in paths:
        # Before the check that the path exists: nobody should learn what exists outside the workspace.
        workspaces.hold(path)
        absolute = os.path.abspath(path)
        named = not os.path.isdir(path)
        if named and not os.path.exists(path):
            raise MissingPath(f"{path}: no such file or folder")
        top = Path(os.path.dirname(absolute) if named else absolute)
        start = workspaces.of(str(top), top)
        for key in [absolute] if named else tree(top).paths():
            spelled = os.path.normcase(key)
            if spelled not in seen:
                seen.add(spelled)
                yield Candidate(key, workspaces.of(os.path.dirname(key), top), start, path, named)


def is_too_deep(path: str, workspace: str | Path) -> bool:
    """There are more folders between a workspace and a file than the budget allows; both paths are absolute."""
    depth = path.count(os.sep)
    return depth > BUDGET.depth and depth - os.fspath(workspace).count(os.sep) > BUDGET.depth


def workspace_of(folder: Path, top: Path) -> Path:
    """The nearest folder upward with settings or `.git`, else `top`, the folder that the user named."""
    return _Workspaces().of(str(folder), top)


def is_workspace(folder: Path) -> bool:
    """The folder contains settings or `.git`."""
    return os.path.exists(os.path.join(folder, ".git")) or settings_file(folder) is not None


def settings_file(folder: Path) -> Path | None:
    """The settings file of one folder: trainlint.toml, or a pyproject.toml with [tool.trainlint].

    Raises PathError for a trainlint.toml that is a link out of the repository; such a pyproject.toml has no settings.
    """
    own, project = (os.path.join(folder, name) for name in FILE_NAMES)
    if os.path.lexists(own):
        root = repository_root(folder)
        if leads_out(root, Path(own)):
            raise PathError(f"{own}: a link that leads out of the repository {root}")
        if inside(root, Path(own)):
            return Path(own)
    return Path(project) if os.path.lexists(project) and _has_table(Path(project)) else None


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


def misspelt_settings(folder: Path) -> Iterator[str]:
    """What looks like the settings of a folder that has none."""
    if os.path.lexists(folder / ".trainlint.toml"):
        yield f"{_shown(folder / '.trainlint.toml')} is not read: settings are in trainlint.toml"
    try:
        data = read(repository_root(folder), folder / "pyproject.toml")
    except OSError:
        return
    for table in _OTHER_TABLE.findall(data):
        if hint := did_you_mean(table.decode(), ("trainlint",)):
            yield f"{_shown(folder / 'pyproject.toml')}: [tool.{table.decode()}] is not read, {hint}"


def _shown(file: Path) -> str:
    """A file as the user would name it."""
    return os.path.relpath(file) if file.is_relative_to(Path.cwd()) else str(file)


def repository_root(folder: Path) -> Path:
    """The nearest folder upward with `.git`, else the folder itself."""
    return git.top(folder) or folder


def trap(file: Path) -> str:
    """What a file that the user names is, where it is a trap: a link out of the repository, or a pipe or device in it.

    Empty for any other file; what does not lie in the repository by its name is the user's own choice.
    """
    root = repository_root(Path.cwd())
    if not any(Path(os.path.abspath(file)).is_relative_to(base) for base in (root, os.path.realpath(root))):
        return ""
    if leads_out(root, file):
        return f"a link that leads out of the repository {root}"
    return "not a regular file" if os.path.exists(file) and inside(root, file) is None else ""


class _Workspaces:
    def __init__(self) -> None:
        self._known: dict[str, Path | None] = {}
        self._held: set[Path] = set()

    def of(self, folder: str, top: Path) -> Path:
        return self._marked(folder) or top

    def hold(self, path: Path) -> None:
        """Raises PathError where a link in a path leads out of the workspace that has the link."""
        place = Path(os.path.abspath(path))
        for link in (place, *place.parents):
            if link in self._held:
                return
            self._held.add(link)
            holder = self._marked(str(link.parent)) if os.path.islink(link) else None
            if holder is not None and leads_out(holder, link):
                raise PathError(f"{path}: a link that leads out of the workspace {holder}")

    def _marked(self, folder: str) -> Path | None:
        passed: list[str] = []
        found: Path | None = None
        above = folder
        while above not in self._known:
            passed.append(above)
            if is_workspace(Path(above)):
                found = Path(above)
                break
            folder, above = above, os.path.dirname(above)
            if above == folder:
                break
        else:
            found = self._known[above]
        self._known.update(dict.fromkeys(passed, found))
        return found


def _walk(folder: str) -> Iterator[str]:
    start = len(os.path.join(folder, ""))
    for root, folders, names in walk(Path(folder)):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        folders[:] = [name for name in folders if name not in _SKIPPED]
        for name in names:
            yield os.path.join(root, name)[start:].replace(os.sep, "/")


class Excluder:
    """Patterns in the style of .gitignore, relative to a folder; and `more`, whose patterns count beside them."""

    def __init__(self, patterns: Sequence[str], base: Path, more: Sequence[Excluder] = ()) -> None:
        self.base = Path(os.path.abspath(base))
        self.patterns = tuple(patterns)
        self.more = tuple(filter(None, more))

    def __bool__(self) -> bool:
        """There are patterns."""
        return bool(self.patterns or self.more)

    def excludes(self, path: str | Path, *, folder: bool = False) -> bool:
        """A pattern matches the file (or folder), or a folder above it."""
        if any(other.excludes(path, folder=folder) for other in self.more):
            return True
        if not self.patterns:
            return False
        try:
            relative = Path(os.path.abspath(path)).relative_to(self.base).as_posix()
        except ValueError:
            return False
        return _patterns(self.patterns).match(f"{relative}/" if folder else relative)


@lru_cache(maxsize=BUDGET.patterns)
def _patterns(written: tuple[str, ...]) -> Patterns:
    from trainlint.repository.patterns import Patterns

    return Patterns(written)
