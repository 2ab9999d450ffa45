"""Copies of a package's own source: where such a copy keeps its version."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from trainlint.lazy import regex
from trainlint.repository.statements.model import Form, Kind, Statement
from trainlint.repository.statements.packages import KNOWN
from trainlint.repository.statements.page import Page
from trainlint.repository.statements.specifiers import exact

_ASSIGNED = regex(
    r"""^(?:__version__|VERSION|version)(?:[ \t]*:[ \t]*\w{1,20})?[ \t]*=[ \t]*(?P<literal>(["'])[^"'\n]{1,100}\2)""",
    re.MULTILINE,
)
_WHOLE = regex(r"\s*(v?\d[\w.+-]{0,100})\s*")
_METADATA = regex(r"^(Name|Version):[ \t]*([^\s]{1,200})[ \t]*\r?$", re.MULTILINE)


def read(page: Page, package: str, home: str) -> Iterator[Statement]:
    """A file that holds a package's version: `__version__ = "…"` or the version alone."""
    if _is_renamed(page.path, package) and not page.packages.named_in(page.content.lower().encode("utf-8", "replace")):
        return
    match = _ASSIGNED.search(page.content)
    place = match.span("literal") if match else None
    if match is None:
        match = _WHOLE.fullmatch(page.content[:1000])
        place = match.span(1) if match else None
    if place is not None:
        meaning = exact(page.content[slice(*place)].strip("\"'"))
        if meaning.kind is Kind.EXACT:
            yield page.statement(package, meaning, place, Form.VENDORED, home=home)


def _is_renamed(path: str, package: str) -> bool:
    """The file is where a copy that has another name keeps its version; other packages may keep theirs there too."""
    known = KNOWN.get(package)
    if known is None or not known.renamed or not path.endswith(known.renamed):
        return False
    return not any(f"/{path}".endswith(f"/{own}") for own in known.version_files)


def read_metadata(page: Page) -> Iterator[Statement]:
    """`METADATA` or `PKG-INFO` of a distribution that is kept in the repository."""
    found = {match[1]: match for match in reversed(list(_METADATA.finditer(page.content[:10_000])))}
    package = page.packages.distribution(found["Name"][2]) if "Name" in found else None
    if package is not None and "Version" in found:
        version = found["Version"]
        yield page.statement(
            package, exact(version[2]), version.span(2), Form.VENDORED, home=posixpath.dirname(page.home)
        )


def read_submodules(page: Page) -> Iterator[Statement]:
    """`.gitmodules`: a submodule of a package's repository is at some commit, which the file does not tell."""
    from trainlint.repository.statements.model import Meaning
    from trainlint.repository.statements.origins import repository_of

    for section in re.split(r"^(?=\[)", page.content, flags=re.MULTILINE):
        url = re.search(r"^[ \t]*url[ \t]*=[ \t]*(\S+)", section, re.MULTILINE)
        path = re.search(r"^[ \t]*path[ \t]*=[ \t]*(\S[^\n]*)", section, re.MULTILINE)
        own = repository_of(url[1]) if url else None
        known = page.packages.repository(own[0]) if own else None
        if url and path and known:
            start = page.content.index(url[0]) + url[0].index(url[1])
            meaning = Meaning(Kind.UNKNOWN, path[1].rstrip(), local=True)
            yield page.statement(known[0], meaning, (start, start + len(url[1])), Form.SUBMODULE)
