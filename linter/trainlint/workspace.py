"""What one repository defines: the files that a subject's definitions may stand in, read once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.discover import SUFFIXES, Excluder, files_below, files_in
from trainlint.text import Text, Undecodable, decode

if TYPE_CHECKING:
    from trainlint.document import Document
    from trainlint.programs import Program, Subject
    from trainlint.settings import Settings

MAX_BYTES = 20_000_000


@dataclass(frozen=True)
class Trouble:
    """Why a file could not be read to its end."""

    message: str
    line: int
    column: int
    document: int
    templated: bool


class Source:
    """One file: its text and the programs whose marker it holds; composed and recognised when first asked for.

    `text` is None, and nothing else is told, where the file holds no marker.
    """

    def __init__(
        self, path: str, text: Text | None, programs: Sequence[Program] = (), unreadable: Trouble | None = None
    ) -> None:
        self.path = path
        self.text = text
        self.programs = programs
        self._trouble = unreadable

    @cached_property
    def documents(self) -> list[Document]:
        """The documents up to the first that cannot be read."""
        from trainlint.document import Unparsable, documents

        found: list[Document] = []
        if self.text is None or self._trouble is not None:
            return found
        try:
            found.extend(documents(self.path, self.text))
        except Unparsable as error:
            line, column = self.text.position(error.index)
            self._trouble = Trouble(str(error), line, column, error.document, self._is_templated(self.text.content))
        return found

    @property
    def trouble(self) -> Trouble | None:
        """What stopped the reading, with the 1-based line and column at which it shows."""
        _ = self.documents
        return self._trouble

    @cached_property
    def subjects(self) -> list[tuple[Program, Subject]]:
        """What the programs recognise, document by document.

        A document belongs to the first program that owns it; commands in it may be another's.
        """
        found: list[tuple[Program, Subject]] = []
        for document in self.documents:
            owned = False
            for program in self.programs:
                if owned and not program.reads_commands:
                    continue
                subjects = [s for s in program.load().recognise(document) if not (owned and s.owns_document)]
                found.extend((program, subject) for subject in subjects)
                owned = owned or any(subject.owns_document for subject in subjects)
        return found

    def _is_templated(self, content: str) -> bool:
        owners = [program for program in self.programs if program.owns_broken(content)]
        return bool(owners) and any(mark in content for mark in owners[0].templates)


_UNMARKED = Source("", None)


def display_path(file: Path) -> str:
    """A file as the user would name it: relative to the current folder when below it, with forward slashes."""
    absolute = os.path.abspath(file)
    here = os.path.join(os.getcwd(), "")
    return (absolute[len(here) :] if absolute.startswith(here) else absolute).replace(os.sep, "/")


def load(file: Path, data: bytes) -> Source:
    """Read a file as far as it matters: nothing but a search for markers where it holds none."""
    from trainlint.programs import marked

    text: Text | None = None
    content = data.decode("latin-1")
    if b"\0" in data[:4]:
        try:
            text = decode(data)
            content = text.content
        except Undecodable:
            pass
    programs = marked(content)
    if not programs:
        return _UNMARKED
    path = display_path(file)
    if len(data) > MAX_BYTES:
        message = f"larger than {MAX_BYTES // 1_000_000} MB, not checked"
        return Source(path, Text(""), programs, Trouble(message, 1, 1, 0, templated=True))
    try:
        return Source(path, text or decode(data), programs)
    except Undecodable as error:
        trouble = Trouble(f"not text: {error}", error.line, 1, 0, templated=False)
        return Source(path, Text(data.decode("utf-8", "replace")), programs, trouble)


class Repository:
    """The files of one workspace, each read once however many subjects ask for it."""

    def __init__(self, root: Path, exclude: Excluder) -> None:
        self.root = root
        self.exclude = exclude
        self.whole = True
        """Everything below the root belongs to it, else only what lies in the root itself."""
        self._sources: dict[str, Source] = {}
        self._scripts: dict[str, Document] = {}
        self._listed: dict[tuple[str, ...], list[Path]] = {}
        self._subjects: dict[str, list[Subject]] = {}

    def source(self, file: Path) -> Source:
        """One file of the workspace.

        Raises OSError when it cannot be read.
        """
        key = os.path.abspath(file)
        if key not in self._sources:
            self._sources[key] = load(file, file.read_bytes())
        return self._sources[key]

    def documents(self, file: Path, pattern: re.Pattern[str]) -> list[Document]:
        """The documents of one YAML file, also of one without a marker if its text matches the pattern.

        Raises OSError when it cannot be read.
        """
        source = self.source(file)
        if source.text is None:
            data = file.read_bytes()
            if len(data) > MAX_BYTES or not pattern.search(data.decode("latin-1")):
                return []
            try:
                source = Source(display_path(file), decode(data))
            except Undecodable:
                return []
            self._sources[os.path.abspath(file)] = source
        return source.documents

    def script(self, file: Path) -> Document:
        """A file that is no YAML (a script, a Makefile) as a document of one text, to place findings in it.

        Raises OSError when it cannot be read and Undecodable when it is no text.
        """
        from trainlint.document import of_text

        key = os.path.abspath(file)
        if key not in self._scripts:
            self._scripts[key] = of_text(display_path(file), decode(file.read_bytes()))
        return self._scripts[key]

    def text_of(self, path: str) -> Text | None:
        """The text of a file that was read already, by its display path."""
        for source in self._sources.values():
            if source.path == path:
                return source.text
        return next((script.text for script in self._scripts.values() if script.path == path), None)

    def adopt(self, file: Path, source: Source) -> None:
        """Take a file's content from elsewhere than the disk (standard input)."""
        self._sources[os.path.abspath(file)] = source

    @property
    def files(self) -> list[Path]:
        """All YAML files of the workspace."""
        return self.files_named(SUFFIXES)

    def files_named(self, suffixes: Sequence[str]) -> list[Path]:
        """All files of the workspace whose names end in one of these (scripts, requirements)."""
        key = tuple(suffixes)
        if key not in self._listed:
            found = files_below(self.root, key) if self.whole else files_in(self.root, key)
            self._listed[key] = [file for file in found if not self.exclude.excludes(file)]
        return self._listed[key]

    def subjects(self, program: Program) -> list[Subject]:
        """What a program recognises in the workspace's YAML files, by path and document."""
        if program.name not in self._subjects:
            self._subjects[program.name] = [
                subject
                for source in self._all_sources
                if program in source.programs
                for owner, subject in source.subjects
                if owner is program
            ]
        return self._subjects[program.name]

    @cached_property
    def _all_sources(self) -> list[Source]:
        """The workspace's YAML files that can be read, and those that were named although they are not listed."""
        sources: list[Source] = []
        for file in self.files:
            try:
                sources.append(self.source(file))
            except OSError:
                continue
        listed = {os.path.abspath(file) for file in self.files}
        return sources + [source for key, source in self._sources.items() if key not in listed]


@dataclass
class Context:
    """What a program's module may ask of the surroundings of a subject."""

    repository: Repository
    settings: Settings
    judge: Callable[[Context, Program, Subject, str], bool]
    _admitted: dict[tuple[int, str], bool] = field(default_factory=dict)

    def subjects(self, program: str) -> list[Subject]:
        """All subjects of a program in the workspace."""
        from trainlint.programs import PROGRAMS

        return self.repository.subjects(PROGRAMS[program])

    @property
    def closed_runtimes(self) -> bool:
        """The repository and the release's shipped runtimes are all that the cluster has."""
        return self.settings.runtimes == "closed"

    def is_admitted(self, program: str, subject: Subject, release: str) -> bool:
        """No rule that speaks for a subject's own program calls it an error."""
        from trainlint.programs import PROGRAMS

        key = (id(subject), release)
        if key not in self._admitted:
            self._admitted[key] = self.judge(self, PROGRAMS[program], subject, release)
        return self._admitted[key]
