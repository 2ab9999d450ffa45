"""The files of one repository, read once: a subject's definitions may be in any of them."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, cast

from trainlint.budget import BUDGET
from trainlint.reading.text import Text, Undecodable, decode
from trainlint.records import NamedTuple
from trainlint.repository.bounds import MAX_BYTES, Bounds, PathError, read
from trainlint.repository.discover import SUFFIXES, Excluder, files_below, files_in
from trainlint.repository.git import Answers

if TYPE_CHECKING:
    from trainlint.reading.document import Document

T = TypeVar("T")
Cause: TypeAlias = Literal["syntax", "encoding", "budget"]


class Trouble(NamedTuple):
    """Why a file could not be read to its end, at which 1-based line and column, and what to do, if that is known."""

    message: str
    line: int
    column: int
    document: int
    cause: Cause = "syntax"
    help: str = ""


class Source:
    """One file: its text, its marks, and its documents, which are composed on first use.

    A file without a mark has text None, and no documents or subjects.
    """

    def __init__(
        self, path: str, text: Text | None, marks: Collection[str] = (), unreadable: Trouble | None = None
    ) -> None:
        self.path = path
        self.text = text
        self.marks = marks
        self._trouble = unreadable

    @cached_property
    def documents(self) -> list[Document]:
        """The documents before the first that cannot be read."""
        from trainlint.reading.document import BeyondBudget, Unparsable, documents

        found: list[Document] = []
        if self.text is None or self._trouble is not None:
            return found
        try:
            found.extend(documents(self.path, self.text))
        except Unparsable as error:
            line, column = self.text.position(error.index)
            cause: Cause = "budget" if isinstance(error, BeyondBudget) else "syntax"
            self._trouble = Trouble(str(error), line, column, error.document, cause, error.help)
        return found

    @property
    def trouble(self) -> Trouble | None:
        """Why reading stopped, if it did."""
        _ = self.documents
        return self._trouble


_UNMARKED = Source("", None)
_HEAD = 10_000
"""Characters of a file beyond the budget, by which its program is recognised."""


def display_path(file: Path) -> str:
    """A file as the user would name it: relative to the current folder if it is below, with forward slashes."""
    absolute = os.path.abspath(file)
    here = os.path.join(os.getcwd(), "")
    below = os.path.normcase(absolute).startswith(os.path.normcase(here))
    return (absolute[len(here) :] if below else absolute).replace(os.sep, "/")


Marks = Callable[[str], Collection[str]]
"""Gives the marks of a text; it gets the bytes of a file as Latin-1."""


def load(file: Path, data: bytes, marks: Marks) -> Source:
    """Read a file; one without a mark is only searched for marks."""
    text: Text | None = None
    content = (data if len(data) <= MAX_BYTES else data[:_HEAD]).decode("latin-1")
    if b"\0" in data[:4]:
        try:
            text = decode(data)
            content = text.content
        except Undecodable:
            pass
    found = marks(content)
    if not found:
        return _UNMARKED
    path = display_path(file)
    if len(data) > MAX_BYTES:
        return Source(path, Text(content[:_HEAD]), found, _beyond(f"it is larger than {MAX_BYTES // 1_000_000} MB"))
    if data.count(b"\n") + data.count(b"\r") > BUDGET.lines:
        return Source(path, Text(content[:_HEAD]), found, _beyond(f"it has more than {BUDGET.lines:,} lines"))
    try:
        return Source(path, text or decode(data), found)
    except Undecodable as error:
        trouble = Trouble(str(error), error.line, 1, 0, "encoding", "save it as UTF-8")
        return Source(path, Text(data.decode("utf-8", "replace")), found, trouble)


def _beyond(message: str) -> Trouble:
    return Trouble(message, 1, 1, 0, "budget", "split it, or exclude the file in the settings")


class Shared:
    """What is made once, by key: for one workspace, or for all of a run."""

    def __init__(self, contents: Mapping[str, bytes] | None = None) -> None:
        self._made: dict[Hashable, object] = {}
        self.contents = contents or {}
        """What files are taken to hold, by absolute path, whatever is on the disk."""

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, which is called once for each key."""
        if key not in self._made:
            self._made[key] = make()
        return cast("T", self._made[key])


class Repository:
    """The files of one workspace, each read once."""

    def __init__(self, root: Path, exclude: Excluder, marks: Marks, run: Shared | None = None) -> None:
        self.root = root
        self.exclude = exclude
        self.whole = True
        """All files below the root belong to it, else only those in the root itself."""
        self.run = run or Shared()
        self._marks = marks
        self._bounds = Bounds(root)
        self._named: dict[str, Path] = {}
        self._sources: dict[str, Source] = {}
        self._unmarked: dict[str, Source] = {}
        self._scripts: dict[str, Document] = {}
        self._listed: dict[tuple[str, ...], list[Path]] = {}
        self._own = Shared()
        self.has_faults = False
        """An exception in trainlint itself has ended the reading of a file that another one needs."""
        self.notices: dict[str, None] = {}
        """What is said of files that others need and that cannot be read: what they hold is not known."""

    def note(self, notice: str) -> None:
        """Say once what is not known of a file that another one needs."""
        self.notices[notice] = None

    @contextmanager
    def companion(self, path: str) -> Iterator[None]:
        """An exception in trainlint ends the block and is told: what the file holds is not known."""
        try:
            yield
        except PathError:
            raise
        except Exception as error:
            from trainlint.faults import at_fault, is_debugged

            if is_debugged():
                raise
            self.has_faults = True
            self.note(f"{path}: internal error, please report it: {at_fault(error)}; what the file holds is not known")

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, which is called once for each key."""
        return self._own.once(key, make)

    def source(self, file: Path) -> Source:
        """One file of the workspace.

        Raises OSError when it cannot be read.
        """
        key = os.path.abspath(file)
        if key not in self._sources:
            self._sources[key] = load(file, self._read(file), self._marks)
        return self._sources[key]

    def find(self, file: Path) -> Path | None:
        """A file that another file names; None if it is not a file in the workspace."""
        return file if self._bounds.file(file) else None

    def is_outside(self, path: Path) -> bool:
        """A path that some file names leads out of the workspace, where nothing is looked up."""
        return self._bounds.leaves(path)

    def has_folder(self, name: str) -> bool:
        """The workspace has a folder with this path from its root."""
        return not self._bounds.leaves(self.root / name) and os.path.isdir(self.root / name)

    def text(self, file: Path) -> str:
        """The text of a file that another file names.

        Raises OSError when it cannot be read or is outside the workspace, and Undecodable when it is not text.
        """
        return decode(self._bounded(file)).content

    def _read(self, file: Path) -> bytes:
        """The bytes of a file in the workspace, at most one more than MAX_BYTES.

        A file that the user named outside any workspace may be a link to anywhere, because the user chose it.
        """
        if self.run.contents:
            held = self.run.contents.get(os.path.abspath(file))
            if held is not None:
                return held
        if not self.whole and os.path.abspath(file) in self._named:
            real = Path(os.path.realpath(file))
            return read(real.parent, real)
        return self._bounds.read(file)

    def _bounded(self, file: Path) -> bytes:
        data = self._read(file)
        if len(data) > MAX_BYTES:
            raise OSError(errno.EFBIG, f"larger than {MAX_BYTES // 1_000_000} MB", str(file))
        return data

    def documents(self, file: Path, pattern: re.Pattern[str]) -> list[Document]:
        """The documents of one YAML file; a file without a mark must match the pattern.

        Raises OSError when it cannot be read.
        """
        source = self.source(file)
        return source.documents if source.text is not None else self._looked_into(file, pattern).documents

    def _looked_into(self, file: Path, pattern: re.Pattern[str]) -> Source:
        """A file without a mark as a separate source; for the run it stays unmarked."""
        key = os.path.abspath(file)
        if key in self._unmarked:
            return self._unmarked[key]
        data = self._read(file)
        if len(data) > MAX_BYTES or not pattern.search(data.decode("latin-1")):
            return _UNMARKED
        try:
            self._unmarked[key] = Source(display_path(file), decode(data))
        except Undecodable:
            self._unmarked[key] = _UNMARKED
        return self._unmarked[key]

    def script(self, file: Path) -> Document:
        """A file other than YAML (a script, a Makefile) as a document of one text, for findings in it.

        Raises OSError when it cannot be read and Undecodable when it is not text.
        """
        from trainlint.reading.document import of_text

        key = os.path.abspath(file)
        if key not in self._scripts:
            self._scripts[key] = of_text(display_path(file), decode(self._bounded(file)))
        return self._scripts[key]

    def text_of(self, path: str) -> Text | None:
        """The text of a file that was read already, by its display path."""
        key = os.path.abspath(path)
        source = self._sources.get(key)
        if source is None or source.text is None:
            source = self._unmarked.get(key)
        if source is not None:
            return source.text
        return self._scripts[key].text if key in self._scripts else None

    def documents_of(self, path: str) -> list[Document]:
        """The documents of a file that was read already, by its display path."""
        key = os.path.abspath(path)
        return [
            document
            for source in (self._sources.get(key), self._unmarked.get(key))
            if source is not None
            for document in source.documents
        ]

    def adopt(self, file: Path, data: bytes) -> None:
        """Use other content for a file than that on the disk (standard input)."""
        self._sources[os.path.abspath(file)] = load(file, data, self._marks)

    def holds_above(self, path: str, folders: Sequence[str]) -> bool:
        """One of these folders is next to a file, or next to a folder above it in the workspace."""
        root = os.path.abspath(self.root)
        folder = os.path.dirname(os.path.abspath(path))
        while True:
            if any(os.path.isdir(os.path.join(folder, *name.split("/"))) for name in folders):
                return True
            above = os.path.dirname(folder)
            if folder == root or above == folder or not folder.startswith(os.path.join(root, "")):
                return False
            folder = above

    def name(self, files: Iterable[Path]) -> None:
        """Add files to the repository that settings or git leave out, because the user named them."""
        self._named.update((os.path.abspath(file), file) for file in files)

    @property
    def files(self) -> list[Path]:
        """All YAML files of the workspace."""
        return self.files_named(SUFFIXES)

    @property
    def git(self) -> Answers:
        """What git has said in this run."""
        return self.run.once("git", Answers)

    def files_named(self, suffixes: Sequence[str]) -> list[Path]:
        """All files of the workspace whose names have one of these endings (scripts, requirements)."""
        key = tuple(suffixes)
        if key not in self._listed:
            found = files_below(self.root, key, self.git) if self.whole else files_in(self.root, key)
            self._listed[key] = [file for file in found if not self.exclude.excludes(file)]
        return self._listed[key]

    @property
    def sources(self) -> Iterator[Source]:
        """The workspace's readable YAML files, with those that the user named."""
        listed = {os.path.abspath(file): file for file in self.files}
        for file in (*self.files, *(file for key, file in sorted(self._named.items()) if key not in listed)):
            try:
                yield self.source(file)
            except OSError:
                continue
