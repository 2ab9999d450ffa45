"""The files of one repository, read once: a subject's definitions may be in any of them."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, cast

from trainlint.budget import BUDGET
from trainlint.reading.text import Text, Undecodable, decode
from trainlint.reading.words import ANYTHING, AnyOf, may_say
from trainlint.records import NamedTuple
from trainlint.repository.bounds import MAX_BYTES, Bounds, PathError, read
from trainlint.repository.discover import SUFFIXES, Excluder, Tree, workspace_of
from trainlint.repository.git import Answers
from trainlint.repository.index import Index, Question

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

    def may_say(self, word: str) -> bool:
        """A value of the file can hold a word."""
        return self.text is not None and may_say(self.text.content, word)


_UNMARKED = Source("", None)
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""How text in UTF-16 begins."""
_HEAD = 10_000
"""Characters of a file beyond the budget, by which its program is recognised."""


def display_path(file: str | Path) -> str:
    """A file as the user would name it: relative to the current folder if it is below, with forward slashes."""
    absolute = _key(file)
    here = os.path.join(os.getcwd(), "")
    below = os.path.normcase(absolute).startswith(os.path.normcase(here))
    return (absolute[len(here) :] if below else absolute).replace(os.sep, "/")


def _key(file: str | Path) -> str:
    """The absolute path of a file; a text is one already, as a listing gives it."""
    return file if isinstance(file, str) else os.path.abspath(file)


Marks = Callable[[bytes | str], Collection[str]]
"""Gives the marks of the bytes of a file, or of its text where that is in UTF-16."""


def load(file: str | Path, data: bytes, marks: Marks) -> Source:
    """Read a file; one without a mark is only searched for marks."""
    head = data if len(data) <= MAX_BYTES else data[:_HEAD]
    text: Text | None = None
    if b"\0" in data[:4]:
        with suppress(Undecodable):
            text = decode(data)
    found = marks(head if text is None else text.content)
    if not found:
        return _UNMARKED
    path = display_path(file)
    if len(data) > MAX_BYTES:
        return Source(path, Text(_head(data, text)), found, _beyond(f"it is larger than {MAX_BYTES // 1_000_000} MB"))
    if data.count(b"\n") + data.count(b"\r") > BUDGET.lines:
        return Source(path, Text(_head(data, text)), found, _beyond(f"it has more than {BUDGET.lines:,} lines"))
    try:
        return Source(path, text or decode(data), found)
    except Undecodable as error:
        trouble = Trouble(str(error), error.line, 1, 0, "encoding", "save it as UTF-8")
        return Source(path, Text(data.decode("utf-8", "replace")), found, trouble)


def _head(data: bytes, text: Text | None) -> str:
    return (data[:_HEAD].decode("latin-1") if text is None else text.content)[:_HEAD]


def _beyond(message: str) -> Trouble:
    return Trouble(message, 1, 1, 0, "budget", "split it, or exclude the file in the settings")


class Shared:
    """What is made once, by key: for one workspace, or for all of a run.

    `version` is that of the answers in an index, empty where none is used; `contents` is what files are taken to hold,
    by absolute path, whatever is on the disk.
    """

    def __init__(self, version: str = "", contents: Mapping[str, bytes] | None = None) -> None:
        self._made: dict[Hashable, object] = {}
        self._version = version
        self.contents = contents or {}
        self.blank: set[str] = set()
        """The absolute paths of files that were read and have no word which is looked for."""

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result of `make`, which is called once for each key."""
        if key not in self._made:
            self._made[key] = make()
        return cast("T", self._made[key])

    def bounds(self, root: Path) -> Bounds:
        """The bounds of a folder."""
        return self.once(("bounds", os.path.abspath(root)), lambda: Bounds(root))

    def tree(self, folder: Path, *, deep: bool = True) -> Tree:
        """The files below a folder, or in it."""
        answers = self.once("git", Answers)
        start = Path(os.path.abspath(folder))
        bounds = self.once(("bounds of the workspace of", start), lambda: self.bounds(workspace_of(start, start)))
        return self.once(("tree", start, deep), lambda: Tree(start, answers, bounds, deep=deep))

    def index(self, folder: str) -> Index | None:
        """What the last run found in the files below a folder."""
        if not self._version:
            return None
        return self.once(("index", folder), lambda: Index(folder, self._version))

    def save(self) -> None:
        """Keep what was found for the next run."""
        for tree in [made for made in self._made.values() if isinstance(made, Tree) and made.deep]:
            if ("index", tree.folder) in self._made:
                index = self.index(tree.folder)
                if index is not None:
                    index.save(map(tree.path, tree.names))


class Sought(NamedTuple):
    """What is looked for in the bytes of all files: the names of marks, words of look-ups, and words of commands.

    A file has nothing of all that, and states no release, if none of the words of `anything` is in it in lower case.
    """

    marks: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    commands: AnyOf = ANYTHING
    anything: AnyOf = ANYTHING

    def is_in(self, data: bytes) -> bool:
        """One of these words may be in the bytes of a file; text in UTF-16 may have any."""
        return b"\0" in data[:4] or data[:2] in _WIDE or self.anything.found_in(data.lower())

    def bits(self, marks: Iterable[str], words: Iterable[str]) -> int:
        """Some marks and words as one number."""
        places = {name: 1 << place for place, name in enumerate((*self.marks, *self.words))}
        return sum(places.get(name, 0) for name in (*marks, *words))


NOTHING = Sought()


class Repository:
    """The files of one workspace, each read once."""

    def __init__(
        self, root: Path, exclude: Excluder, marks: Marks, run: Shared | None = None, sought: Sought = NOTHING
    ) -> None:
        self.root = root
        self.exclude = exclude
        self.whole = True
        """All files below the root belong to it, else only those in the root itself."""
        self.run = run or Shared()
        self._marks = marks
        self._sought = sought
        self._bounds = self.run.bounds(root)
        self._named: dict[str, None] = {}
        self._sources: dict[str, Source] = {}
        self._unmarked: dict[str, Source] = {}
        self._scripts: dict[str, Document] = {}
        self._listed: dict[tuple[str, ...], list[str]] = {}
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

    def source(self, file: str | Path) -> Source:
        """One file of the workspace.

        Raises OSError when it cannot be read.
        """
        key = _key(file)
        source = self._sources.get(key)
        if source is None:
            source = self._sources[key] = _UNMARKED if self._recall(key, Question.MARKS) == 0 else self._load(key)
        return source

    def checked(self, key: str) -> Source:
        """A file that is checked itself; one that has no word which is looked for is not read again.

        Raises OSError when it cannot be read.
        """
        if key not in self._sources and self._recall(key, Question.MARKS) is None and key not in self.run.contents:
            data = self.read(key)
            if self._sought.is_in(data):
                self._sources[key] = self._loaded(key, data)
            else:
                self._sources[key] = _UNMARKED
                self.run.blank.add(key)
                self._keep(key, Question.MARKS, 0)
                self._keep(key, Question.COMMANDS, 0)
        return self.source(key)

    def read_for(self, key: str, mark: str) -> Source:
        """A file that has no mark, read as if it had this one. Raises OSError."""
        source = self._sources.get(key)
        if source is None or not source.marks:
            source = self._sources[key] = load(key, self.read(key), lambda content: (mark,))
        return source

    def _load(self, key: str) -> Source:
        return self._loaded(key, self.read(key))

    def _loaded(self, key: str, data: bytes) -> Source:
        source = load(key, data, self._marks)
        said = filter(source.may_say, self._sought.words) if source.marks else ()
        self._keep(key, Question.MARKS, self._sought.bits(source.marks, said) if source.marks else 0)
        return source

    @cached_property
    def index(self) -> Index | None:
        """What the last run found in the files of the workspace."""
        return self.run.index(os.path.abspath(self.root)) if self.whole else None

    def _recall(self, key: str, question: Question) -> int | None:
        """What the last run found in a file that has not changed since."""
        found = self._bounds.look(key) if self.index is not None else None
        return self.index.answer(key, found[1], question) if self.index is not None and found is not None else None

    def _keep(self, key: str, question: Question, answer: int) -> None:
        found = self._bounds.look(key) if self.index is not None else None
        if self.index is not None and found is not None:
            self.index.keep(key, found[1], question, answer)

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

    def read(self, file: str | Path) -> bytes:
        """The bytes of a file in the workspace, at most one more than MAX_BYTES.

        A file that the user named outside any workspace may be a link to anywhere, because the user chose it.
        Raises OSError.
        """
        if self.run.contents:
            held = self.run.contents.get(os.path.abspath(file))
            if held is not None:
                return held
        if not self.whole and _key(file) in self._named:
            real = Path(os.path.realpath(file))
            return read(real.parent, real)
        return self._bounds.read(file)

    def _bounded(self, file: str | Path) -> bytes:
        data = self.read(file)
        if len(data) > MAX_BYTES:
            raise OSError(errno.EFBIG, f"larger than {MAX_BYTES // 1_000_000} MB", str(file))
        return data

    def documents(self, file: str | Path, pattern: re.Pattern[str]) -> list[Document]:
        """The documents of one YAML file whose text matches the pattern.

        Raises OSError when it cannot be read.
        """
        source = self.source(file)
        if source.text is None:
            return self._looked_into(file, pattern).documents
        return source.documents if pattern.search(source.text.content) else []

    def _looked_into(self, file: str | Path, pattern: re.Pattern[str]) -> Source:
        """A file without a mark as a separate source; for the run it stays unmarked."""
        key = _key(file)
        if key in self._unmarked:
            return self._unmarked[key]
        data = self.read(file)
        if len(data) > MAX_BYTES or not pattern.search(data.decode("latin-1")):
            return _UNMARKED
        try:
            self._unmarked[key] = Source(display_path(file), decode(data))
        except Undecodable:
            self._unmarked[key] = _UNMARKED
        return self._unmarked[key]

    def script(self, file: str | Path) -> Document:
        """A file other than YAML (a script, a Makefile) as a document of one text, for findings in it.

        Raises OSError when it cannot be read and Undecodable when it is not text.
        """
        from trainlint.reading.document import of_text

        key = _key(file)
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

    def name(self, keys: Iterable[str]) -> None:
        """Add files to the repository that settings or git leave out, because the user named them."""
        self._named.update(dict.fromkeys(keys))

    @property
    def files(self) -> list[Path]:
        """All YAML files of the workspace."""
        return self.files_named(SUFFIXES)

    @property
    def tree(self) -> Tree:
        """The files below the root, or in it."""
        return self.run.tree(self.root, deep=self.whole)

    def files_named(self, suffixes: Sequence[str]) -> list[Path]:
        """All files of the workspace whose names have one of these endings (scripts, requirements)."""
        return [Path(path) for path in self.paths(suffixes)]

    def paths(self, suffixes: Sequence[str] = SUFFIXES) -> list[str]:
        """The same files by their absolute paths."""
        key = tuple(suffixes)
        if key not in self._listed:
            near = self.tree.near_paths(key)
            self._listed[key] = [path for path in near if not self.exclude.excludes(path)] if self.exclude else near
        return self._listed[key]

    def with_commands(self, suffixes: Sequence[str]) -> list[str]:
        """The absolute paths of the files with one of these endings in which a command of a program can stand."""
        return self.once(("commands", *suffixes), lambda: list(filter(self._may_have_commands, self.paths(suffixes))))

    def _may_have_commands(self, key: str) -> bool:
        if key in self._sources and self._sources[key].text is not None:
            return True
        if key in self.run.blank:
            return False
        known = self._recall(key, Question.COMMANDS)
        if known is None:
            try:
                data = self.read(key)
            except OSError:
                return False
            known = int(b"\0" in data[:4] or self._sought.commands.found_in(data))
            self._keep(key, Question.COMMANDS, known)
        return bool(known)

    @cached_property
    def _all(self) -> dict[str, None]:
        """The workspace's YAML files, then the others that the user named."""
        listed = dict.fromkeys(self.paths())
        return {**listed, **dict.fromkeys(sorted(self._named.keys() - listed.keys()))}

    def marked(self, mark: str, saying: Sequence[str] = ()) -> Iterator[Source]:
        """Of the workspace's readable YAML files and those that the user named: all with a mark that may say words."""
        wanted = self._sought.bits([mark], saying)
        for key, held in self._held.items():
            if held & wanted == wanted:
                with suppress(OSError):
                    source = self.source(key)
                    if mark in source.marks and all(map(source.may_say, saying)):
                        yield source

    @cached_property
    def _held(self) -> dict[str, int]:
        """The bits of each of these files that has a mark; -1, which has all bits, where only its text can tell."""
        held: dict[str, int] = {}
        recalled = self.index.answers(self._all, self._bounds.look, Question.MARKS) if self.index is not None else {}
        for key in self._all:
            known = None if key in self._sources else recalled.get(key)
            if known is None:
                with suppress(OSError):
                    known = -1 if self.source(key).marks else 0
            if known:
                held[key] = known
        return held

    def known(self, path: str) -> Source | None:
        """One of the same files, by its display path; None where it is none of them or has no mark."""
        key = os.path.abspath(path)
        try:
            source = self.source(key) if key in self._all else _UNMARKED
        except OSError:
            return None
        return source if source.marks else None
