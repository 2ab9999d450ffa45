"""One file as its reader sees it: its text, what is looked for in it, and how its places are told."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from trainlint.findings import Span
from trainlint.reading.text import Text
from trainlint.repository.statements.model import Form, Include, Meaning, Statement
from trainlint.repository.statements.packages import Packages
from trainlint.repository.statements.requirement import requirement


class Broken(ValueError):
    """A file is not what its name says; `index` is where that shows."""

    def __init__(self, reason: str, index: int = 0) -> None:
        super().__init__(reason)
        self.index = index


class Page:
    """A file that is being read."""

    def __init__(self, path: str, text: Text, packages: Packages) -> None:
        self.path = path
        self.text = text
        self.content = text.content
        self.packages = packages
        self.home = posixpath.dirname(path)

    @property
    def name(self) -> str:
        """The file's own name in lower case."""
        return posixpath.basename(self.path).lower()

    def span(self, start: int, end: int) -> Span:
        """The place of the characters from `start` to `end`."""
        return Span(self.path, *self.text.position(start), *self.text.position(end))

    def statement(
        self,
        package: str,
        meaning: Meaning,
        place: tuple[int, int],
        form: Form,
        *,
        extra: str = "",
        marker: str = "",
        home: str | None = None,
        replaces: bool = False,
    ) -> Statement:
        """A statement at a place of this file."""
        where = self.home if home is None else home
        return Statement(package, meaning, self.span(*place), form, extra, marker, where, replaces)

    def required(self, text: str, place: tuple[int, int], form: Form, *, extra: str = "") -> Iterator[Statement]:
        """The statement of a requirement in pip's syntax, if it is one of a package that is asked for."""
        found = requirement(text.strip(), self.packages)
        if found is not None:
            yield self.statement(
                found.package, found.meaning, place, form, extra=extra or found.extra, marker=found.marker
            )

    def include(
        self,
        path: str,
        place: tuple[int, int],
        form: Form,
        *,
        package: str = "",
        extra: str = "",
        home: str | None = None,
    ) -> Include:
        """A file that this one names."""
        return Include(path, self.span(*place), form, self.home if home is None else home, package, extra)
