"""Requirements and constraints, and what pip and conda list of an environment, in files of any name."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from trainlint.lazy import regex
from trainlint.repository.statements.model import Form, Include, Meaning, Statement
from trainlint.repository.statements.origins import of_address
from trainlint.repository.statements.page import Page
from trainlint.repository.statements.requirement import requirement
from trainlint.repository.statements.specifiers import exact, of_conda

_LINE = regex(r"(?:[^\r\n\\]|\\(?:\r?\n)?)+")
_CONTINUED = regex(r"\\\r?\n|\\$")
_MAX_LINE = 10_000
_OPTION = regex(r"--?[A-Za-z][\w-]*")
_FILE_OPTION = regex(r"(?:-r|--requirement|-c|--constraint)(?:[ \t]*=[ \t]*|[ \t]+|(?=[^\s-]))(?P<file>[^\s#]+)")
_EDITABLE = regex(r"(?:-e|--editable)(?:[ \t]*=[ \t]*|[ \t]+)(?P<what>\S+)")
_LISTED = regex(r"(?P<name>[A-Za-z0-9][\w.-]{0,100})[ \t]{1,200}(?P<version>\d[\w.!+-]{0,100})(?:[ \t][^\n]{0,1000})?")
_CONDA_EXPORT = regex(r"(?P<name>[A-Za-z0-9_][\w.-]{0,100})=(?P<version>[\w.!+]{1,100})=[\w.+-]{1,100}")
_VARIANT = regex(
    r"(?:.*[-_.])?(?:requirements?|constraints?|reqs?|deps)[-_.](?P<kind>[\w-]+)|(?P<kind2>[\w-]+)[-_.](?:requirements?|reqs?)"
)
_FOLDERS = frozenset(("requirements", "requirement", "reqs", "deps", "constraints"))
_MAIN = frozenset(
    "all app base common constraints core cuda default freeze frozen full gpu in install linux list lock locked main"
    " minimal pip prod production py requirements runtime train trainer training txt".split()
)
"""What a file of requirements is called that the run itself installs; any other word names a variant of it."""
_MAX_ANY = 500_000


def read(page: Page) -> Iterator[Statement | Include]:
    """Every line of a file of requirements, constraints, `pip freeze`, `pip list`, `conda list` or explicit URLs."""
    name = page.name
    form = Form.CONSTRAINTS if "constraint" in name or name == "overrides.txt" else Form.REQUIREMENTS
    extra = _variant(page)
    for text, start in lines_of(page.content):
        yield from of_line(page, text, start, form, extra)


def read_requires(page: Page) -> Iterator[Statement | Include]:
    """`requires.txt` of an egg's metadata: what is always installed, then sections of extras and markers."""
    extra = ""
    for text, start in lines_of(page.content):
        if text.startswith("["):
            extra = text.strip("[]").partition(":")[0]
        else:
            yield from of_line(page, text, start, Form.PROJECT, extra)


def _variant(page: Page) -> str:
    """What a file of requirements is for besides the run itself: `requirements-dev.txt`, `requirements/fp8.txt`."""
    stem = page.name.rpartition(".")[0] or page.name
    match = _VARIANT.fullmatch(stem)
    kind = (match["kind"] or match["kind2"]) if match else ""
    if not match and posixpath.basename(page.home).lower() in _FOLDERS:
        kind = stem
    words = re.split(r"[-_.]", kind)
    return kind if kind and not any(word in _MAIN or word.startswith(("cu1", "py3", "torch")) for word in words) else ""


def read_any(page: Page) -> Iterator[Statement | Include]:
    """A text file whose name says nothing, if all its lines are requirements."""
    if len(page.content) <= _MAX_ANY and looks_like_requirements(page.content):
        yield from read(page)


def looks_like_requirements(content: str) -> bool:
    """Every line that is no comment is a requirement, an option or a listed package, and one has a version.

    Headings of `pip list` and `conda list` count as comments.
    """
    pinned = False
    for text, _ in lines_of(content):
        if _OPTION.match(text) or re.fullmatch(r"[-\s]+|Package\s+Version.*|@EXPLICIT", text):
            continue
        if re.fullmatch(r"[A-Za-z0-9][\w.-]*(?:\[[\w, .-]*\])?", text):
            continue
        if not re.match(
            r"[A-Za-z0-9][\w.-]*(?:\[[\w, .-]*\])?(?:\s*(?:[=<>!~]=?|@\s)|\s+\d[\w.]*(?:\s|$))|\w+(?:\+\w+)?://\S+$",
            text,
        ):
            return False
        pinned = True
    return pinned


def lines_of(content: str) -> Iterator[tuple[str, int]]:
    """Lines without comments, those that go on joined to one, each with the place of its first character."""
    for match in _LINE.finditer(content):
        text = _CONTINUED.sub(lambda end: " " * len(end[0]), match[0][:_MAX_LINE])
        comment = re.search(r"(?:^|\s)#", text)
        text = text[: comment.start()] if comment else text
        start = match.start() + len(text) - len(text.lstrip())
        if text.strip():
            yield text.strip(), start


def of_line(
    page: Page, text: str, start: int, form: Form, extra: str = "", whole: tuple[int, int] | None = None
) -> Iterator[Statement | Include]:
    """What one line states that begins at `start`; `whole` is its place where it stands in another file's scalar."""
    if text[:1] == "-":
        file = _FILE_OPTION.match(text)
        if file:
            constraint = text[1:2] == "c" or text.startswith("--c")
            place = whole or (start + file.start("file"), start + file.end("file"))
            yield page.include(file["file"], place, Form.CONSTRAINTS if constraint else Form.REQUIREMENTS, extra=extra)
            return
        editable = _EDITABLE.match(text)
        if not editable:
            return
        start, text = start + editable.start("what"), text[editable.start("what") :]
    found = requirement(text, page.packages)
    if found is not None:
        place = whole or (start, start + found.length)
        yield page.statement(found.package, found.meaning, place, form, extra=found.extra or extra, marker=found.marker)
        return
    for package, meaning, length in _listed(page, text):
        yield page.statement(package, meaning, whole or (start, start + length), form, extra=extra)


def _listed(page: Page, text: str) -> Iterator[tuple[str, Meaning, int]]:
    """What is no requirement for pip: a line of `pip list` or `conda list`, an explicit URL, a conda specification."""
    export = _CONDA_EXPORT.fullmatch(text)
    listed = export or _LISTED.fullmatch(text)
    if listed:
        package = (page.packages.conda if export else page.packages.distribution)(listed["name"])
        if package:
            yield package, exact(listed["version"]), listed.end("version")
    elif "://" in text:
        package, meaning = of_address(text, page.packages)
        if package:
            yield package, meaning, len(text)
    elif re.match(r"[\w.-]+=[^=]", text):
        conda = of_conda(text)
        package = page.packages.conda(conda[0]) if conda else None
        for meaning in conda[1] if conda and package else ():
            yield package or "", meaning, len(text)
