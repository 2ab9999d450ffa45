"""What one repository defines: the files that a subject's definitions may stand in, read once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.discover import SUFFIXES, Excluder, files_below
from trainlint.text import Text, Undecodable, decode

if TYPE_CHECKING:
    from trainlint.document import Document
    from trainlint.programs import Program, Subject
    from trainlint.settings import Settings

MAX_BYTES = 20_000_000


@dataclass
class Source:
    """One file: its text, the programs whose marker it holds, its documents and what is wrong with it.

    `text` is None, and nothing else is told, where the file holds no marker. `trouble` is what stopped the reading.
    """

    path: str
    text: Text | None = None
    programs: Sequence[Program] = ()
    documents: list[Document] = field(default_factory=list)
    trouble: Trouble | None = None
    subjects: list[tuple[Program, Subject]] = field(default_factory=list)


_UNMARKED = Source("")


@dataclass(frozen=True)
class Trouble:
    """Why a file could not be read to its end."""

    message: str
    line: int
    column: int
    document: int
    templated: bool


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
    source = Source(display_path(file), programs=programs)
    if len(data) > MAX_BYTES:
        source.text = Text("")
        source.trouble = Trouble(f"larger than {MAX_BYTES // 1_000_000} MB, not checked", 1, 1, 0, True)
        return source
    try:
        source.text = text or decode(data)
    except Undecodable as error:
        source.text = Text(data.decode("utf-8", "replace"))
        source.trouble = Trouble(f"not text: {error}", error.line, 1, 0, False)
        return source
    _compose(source, source.text)
    return source


def _compose(source: Source, text: Text) -> None:
    from trainlint.document import Unparsable, documents

    try:
        for document in documents(source.path, text):
            source.documents.append(document)
            source.subjects.extend(_recognised(source.programs, document))
    except Unparsable as error:
        line, column = text.position(error.index)
        owners = [program for program in source.programs if program.owns_broken(text.content)]
        marks = owners[0].templates if owners else ()
        templated = any(mark in text.content for mark in marks)
        source.trouble = Trouble(str(error), line, column, error.document, templated)


def _recognised(programs: Sequence[Program], document: Document) -> list[tuple[Program, Subject]]:
    """The subjects of the first program that owns the document, and those of any that own no document."""
    found: list[tuple[Program, Subject]] = []
    owned = False
    for program in programs:
        subjects = [s for s in program.load().recognise(document) if not (owned and s.owns_document)]
        found.extend((program, subject) for subject in subjects)
        owned = owned or any(subject.owns_document for subject in subjects)
    return found


class Repository:
    """The files of one workspace, each read once however many subjects ask for it."""

    def __init__(self, root: Path, exclude: Excluder) -> None:
        self.root = root
        self.exclude = exclude
        self._sources: dict[str, Source] = {}
        self._scripts: dict[str, Document] = {}

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
            source = Source(display_path(file))
            try:
                source.text = decode(data)
            except Undecodable:
                return []
            _compose(source, source.text)
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

    @cached_property
    def files(self) -> list[Path]:
        """All YAML files of the workspace."""
        return [file for file in files_below(self.root, SUFFIXES) if not self.exclude.excludes(file)]

    def files_named(self, suffixes: Sequence[str]) -> list[Path]:
        """All files of the workspace whose names end in one of these (scripts, requirements)."""
        return [file for file in files_below(self.root, suffixes) if not self.exclude.excludes(file)]

    @cached_property
    def subjects(self) -> list[tuple[Program, Subject]]:
        """Everything that any program recognises in the workspace's YAML files, by path and document."""
        found: list[tuple[Program, Subject]] = []
        for file in self.files:
            try:
                found.extend(self.source(file).subjects)
            except OSError:
                continue
        listed = {os.path.abspath(file) for file in self.files}
        for key, source in self._sources.items():
            if key not in listed:
                found.extend(source.subjects)
        return found


@dataclass
class Context:
    """What a program's module may ask of the surroundings of a subject."""

    repository: Repository
    settings: Settings
    judge: Callable[[Context, Program, Subject, str], bool]
    _admitted: dict[tuple[int, str], bool] = field(default_factory=dict)

    def subjects(self, program: str) -> list[Subject]:
        """All subjects of a program in the workspace."""
        return [subject for owner, subject in self.repository.subjects if owner.name == program]

    @property
    def closed_runtimes(self) -> bool:
        """The repository and the release's shipped runtimes are all that the cluster has."""
        return self.settings.runtimes == "closed"

    def is_admitted(self, subject: Subject, release: str) -> bool:
        """No rule of the subject's own program calls it an error."""
        key = (id(subject), release)
        if key not in self._admitted:
            program = next(owner for owner, known in self.repository.subjects if known is subject)
            self._admitted[key] = self.judge(self, program, subject, release)
        return self._admitted[key]
