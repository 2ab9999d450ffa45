"""Which statement of a package's release counts for a file: the nearest, and of those near the surest.

Looked at are the folder of the file and those above it up to the root of the git repository, and beside them the
folders that hold no project of their own (`docker/`, `requirements/`, `.github/`). Files are read from near to far and
only until something is stated.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.repository import bounds
from trainlint.repository.discover import files_below, files_in, repository_root
from trainlint.repository.statements import Form, Include, Kind, Reading, Statement, form_of, packages, statements_of

if TYPE_CHECKING:
    from trainlint.reading.values import Field
    from trainlint.repository.files import Repository

ASKED = (
    "accelerate",
    "axolotl",
    "deepspeed",
    "kubeflow",
    "kubeflow-trainer",
    "kubeflow-trainer-api",
    "llamafactory",
    "peft",
    "soup-cli",
    "torch",
    "torchtune",
    "transformers",
    "trl",
)
"""The packages whose releases some verdict may depend on."""

_BESIDE = frozenset(
    ".ci .circleci .devcontainer .github .gitlab build ci conda container containers deploy deployment docker"
    " dockerfiles env environment environments envs images infra install installation notebooks packaging requirements"
    " scripts setup tools workflows".split()
)
"""Folders below one of a file's own parents whose files speak for it too; any other may hold a project of its own."""
FIRST = frozenset({Form.LOCK, Form.REQUIREMENTS, Form.CONSTRAINTS, Form.PROJECT, Form.ENVIRONMENT, Form.VENDORED})
"""Forms that files have by their names: they are read before others of the same folder."""

Distance = tuple[int, int]
"""How many folders up, and then down again."""


@dataclass(frozen=True)
class Stated:
    """What a repository states of a package for one file: nothing where `statements` is empty.

    More than one statement where several are equally near and differ.
    """

    statements: tuple[Statement, ...] = ()

    @property
    def kind(self) -> Kind | None:
        """UNKNOWN where any of them is, EXACT where all are, else RANGE; None where nothing is stated."""
        kinds = {statement.kind for statement in self.statements}
        if not kinds:
            return None
        if Kind.UNKNOWN in kinds:
            return Kind.UNKNOWN
        return Kind.EXACT if kinds == {Kind.EXACT} else Kind.RANGE


@dataclass
class _Folder:
    """The files of one folder that may state something, by whether their names promise it."""

    first: list[str] = field(default_factory=list)
    then: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)


class Statements:
    """The statements of one repository, each file read when it is first near enough to count."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self.root = Path(os.path.abspath(repository_root(Path(os.path.abspath(repository.root)))))
        self._packages = packages(ASKED)
        self._readings: dict[tuple[str, Form | None, str], Reading] = {}
        self._chosen: dict[tuple[str, str], Stated] = {}

    def of(self, package: str, near: str | Path) -> Stated:
        """What is stated of a package for a file."""
        home = os.path.relpath(os.path.dirname(os.path.abspath(near)), self.root).replace(os.sep, "/")
        key = (package, "" if home == "." else home)
        if key not in self._chosen:
            self._chosen[key] = self._choose(*key)
        return self._chosen[key]

    @property
    def unreadable(self) -> Iterator[str]:
        """A line on each file that promised to state releases and could not be read."""
        for reading in self._readings.values():
            if reading.unreadable is not None:
                span = reading.unreadable.span
                yield f"{span.path}:{span.line}: no release is read from it: {reading.unreadable.reason}"

    def place(self, statement: Statement) -> str:
        """Where a statement stands, as the user would name it."""
        from trainlint.repository.files import display_path

        return f"{display_path(self.root / statement.span.path)}:{statement.span.line}"

    def field(self, statement: Statement) -> Field | None:
        """A statement's place as a field, for a finding; None where its file is not there any more."""
        from trainlint.reading.document import Scalar
        from trainlint.reading.scalars import Dialect
        from trainlint.reading.text import Undecodable
        from trainlint.reading.values import Field

        try:
            document = self._repository.script(self.root / statement.span.path)
        except (OSError, Undecodable):
            return None
        text, span = document.text, statement.span
        start = text.line_start(span.line) + span.column - 1
        end = text.line_start(span.end_line) + span.end_column - 1
        return Field(document, Dialect.PYYAML, Scalar(text.content[start:end], '"', None, start, end, None))

    def _choose(self, package: str, home: str) -> Stated:
        for tiers in self._tiers(home):
            for tier in tiers:
                found = [s for path in tier for s in self._read(path) if s.package == package and not s.is_bare]
                chosen = _best([statement for statement in found if _speaks_for(statement, home)])
                if chosen:
                    return Stated(tuple(chosen))
        return Stated()

    def _tiers(self, home: str) -> Iterator[Sequence[list[str]]]:
        """The files to read, from near to far, those whose names promise a release first; pages of text at the end."""
        by_distance: dict[Distance, list[str]] = {}
        for folder in self._folders:
            distance = _distance(home, folder)
            if distance is not None:
                by_distance.setdefault(distance, []).append(folder)
        vendored = self._vendored
        order = [by_distance[distance] for distance in sorted(by_distance)]
        for folders in order:
            within = [self._folders[folder] for folder in folders]
            own = [path for path in vendored if any(path.startswith(f"{f}/" if f else "") for f in folders if f)]
            yield [path for one in within for path in one.first] + own, [path for one in within for path in one.then]
        yield ([*vendored],)
        for folders in order:
            yield ([path for folder in folders for path in self._folders[folder].last],)

    @cached_property
    def _listed(self) -> list[str]:
        everything = ("",)
        found = files_below(self.root, everything) if self._repository.whole else files_in(self.root, everything)
        prefix = os.path.join(str(self.root), "")
        return [os.path.abspath(file).removeprefix(prefix).replace(os.sep, "/") for file in found]

    @cached_property
    def _folders(self) -> dict[str, _Folder]:
        folders: dict[str, _Folder] = {}
        for path in self._listed:
            form = form_of(path)
            if form is None:
                continue
            folder = folders.setdefault(path.rpartition("/")[0], _Folder())
            tier = folder.first if form in FIRST else folder.last if form is Form.README else folder.then
            tier.append(path)
        return folders

    @cached_property
    def _vendored(self) -> list[str]:
        return [path for path in self._listed if self._packages.vendored(path)]

    def _read(self, path: str, form: Form | None = None, package: str = "", home: str = "") -> Iterator[Statement]:
        """The statements of a file, and of the files that it includes."""
        seen: set[tuple[str, Form | None, str]] = set()
        waiting = [(path, form, package, home)]
        while waiting:
            path, form, package, home = waiting.pop()
            key = (path, form, package)
            if key in seen:
                continue
            seen.add(key)
            reading = self._reading(path, form, package, home)
            yield from reading.statements
            for include in reading.includes:
                inside = self._inside(include)
                if inside is not None:
                    waiting.append((inside, include.form, include.package, include.home))

    def _reading(self, path: str, form: Form | None, package: str, home: str) -> Reading:
        key = (path, form, package)
        if key not in self._readings:
            try:
                data = bounds.read(self.root, self.root / path)
            except OSError:
                data = b""
            self._readings[key] = statements_of(path, data, self._packages, form=form, package=package, home=home)
        return self._readings[key]

    def _inside(self, include: Include) -> str | None:
        """The path of an included file, if it is one of the repository's own."""
        target = bounds.inside(self.root, self.root / include.home / include.path)
        return None if target is None else os.path.relpath(target, os.path.realpath(self.root)).replace(os.sep, "/")


def statements(repository: Repository) -> Statements:
    """The statements of a repository's releases, read when first asked for."""
    return repository.once("statements", lambda: Statements(repository))


def _distance(home: str, folder: str) -> Distance | None:
    """How far a folder is from a file's; None where it may hold a project of its own."""
    here, there = home.split("/") if home else [], folder.split("/") if folder else []
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    below = there[common:]
    if below and not set(below) <= _BESIDE:
        return None
    return len(here) - common, len(below)


def _speaks_for(statement: Statement, home: str) -> bool:
    """A lock speaks for the folder of its project, which in a workspace is a member's; others for all that is near."""
    if statement.form is not Form.LOCK or not statement.home:
        return True
    return home == statement.home or home.startswith(f"{statement.home}/")


def _best(found: Iterable[Statement]) -> list[Statement]:
    """Of equally near statements those that count: of the first form, of the main set before extras."""
    listed = list(found)
    if not listed:
        return []
    always = [statement for statement in listed if not statement.extra] or listed
    form = min(statement.form for statement in always)
    rivals = [statement for statement in always if statement.form is form]
    return list({(statement.kind, statement.specifier): statement for statement in rivals}.values())
