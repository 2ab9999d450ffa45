"""Commands in documents for people: fences of Markdown and reStructuredText, and cells of notebooks."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from trainlint.lazy import regex
from trainlint.repository.fences import SHELLS, fences, without_prompts
from trainlint.repository.statements import trees
from trainlint.repository.statements.commands import INSTALLS, Script, shell_text, texts_of, whole
from trainlint.repository.statements.model import Form, Include, Meaning, Statement
from trainlint.repository.statements.origins import images_in
from trainlint.repository.statements.page import Broken, Page
from trainlint.repository.statements.requirements import lines_of, looks_like_requirements, of_line
from trainlint.repository.statements.trees import Items, Leaf, Table

_PINNED = regex(
    r"^[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+"
    r"`(?P<pin>[A-Za-z][\w.-]{0,100}(?:\[[\w,-]{0,100}\])?[ \t]*[~=<>!]=[^`\n]{1,100})`",
    re.MULTILINE,
)
"""An item of a list that is a requirement: `transformers==4.40.2`."""
_SPAN = regex(r"(?<!`)`(?P<code>[^`\n]{8,300})`(?!`)")
_CLONE = regex(r"\bgit\b[^\n]{0,300}\bclone\b")
_STEP = regex(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?:[^`\n]{0,60}:[ \t]*)?")
"""What stands before a command that is a step of a list: `1. Install: `."""
_LISTS = frozenset(("", "text", "txt", "requirements", "pip", "pip-requirements", "commandline"))
_PYTHON = frozenset(("python", "py", "ipython", "jupyter", "python3", "ipython3"))
_MAGIC = regex(r"[ \t]*(?:!|%(?=(?:pip|conda|mamba|uv|sx|system)\b))")
_CELL_SHELL = regex(r"\s*%%(?:bash|sh|shell|script[ \t]+(?:ba|z)?sh)\b")


def read_markdown(page: Page) -> Iterator[Statement | Include]:
    """The fences of a README: shell, Dockerfiles, and what Python's say to the shell; else commands in its lines."""
    content = page.content
    script = Script(page, Form.README)
    docker = Script(page, Form.README, docker=True)
    if page.name.endswith(".rst"):
        indented = "".join(
            line if line[:1] in " \t\r\n" else _blank(line) for line in content.splitlines(keepends=True)
        )
        script.read(whole(page, without_prompts(indented)))
    for language, start, end in fences(content):
        text = content[start:end]
        if (language in _LISTS or language in SHELLS) and looks_like_requirements(text):
            for line, first in lines_of(text):
                yield from of_line(page, line, start + first, Form.README)
            continue
        if not (script.concerns(text) or docker.concerns(text)):
            continue
        places = range(start, end)
        if language in ("dockerfile", "docker"):
            docker.read(shell_text(page, text, places))
        elif language in _PYTHON:
            script.read(shell_text(page, magics(text), places))
        elif language in SHELLS:
            script.read(shell_text(page, without_prompts(text), places))
        else:
            for package, meaning, first, last in _images(text, page):
                yield page.statement(package, meaning, (start + first, start + last), Form.README)
    for item in _PINNED.finditer(content):
        yield from of_line(page, item["pin"], item.start("pin"), Form.README)
    shown = [*script.found, *docker.found]
    yield from shown
    told = {found.package for found in shown if isinstance(found, Statement)}
    yield from (found for found in _in_lines(page) if isinstance(found, Statement) and found.package not in told)


def _in_lines(page: Page) -> Iterator[Statement | Include]:
    """What spans of code say outside of blocks: a clone, and the commands that are steps of a list.

    Any other is as likely a remark, such as what helps against an error.
    """
    content = page.content
    script = Script(page, Form.README)
    blocks = [place for _, start, end in fences(content) for place in (start, end)]
    for span in _SPAN.finditer(content):
        start, end = span.span("code")
        before = content[content.rfind("\n", 0, start) + 1 : start - 1]
        said = _CLONE.search(span["code"]) or (INSTALLS.search(span["code"]) and _STEP.fullmatch(before))
        if said and not bisect_right(blocks, start) % 2:
            script.read(shell_text(page, span["code"], range(start, end)))
            script.folder = ""
    yield from script.found


def read_comments(page: Page) -> Iterator[Statement | Include]:
    """What a file of settings says in comments of its own: the image, or the packages, that it is for."""
    for line in re.finditer(r"^[ \t]*#([^\n]*)", page.content, re.MULTILINE):
        start = line.start(1)
        for package, meaning, first, last in images_in(line[1], page.packages):
            yield page.statement(package, meaning, (start + first, start + last), Form.README)
        if INSTALLS.search(line[1]):
            script = Script(page, Form.README)
            script.read(shell_text(page, line[1], range(start, line.end(1))))
            yield from script.found


def _images(text: str, page: Page) -> Iterator[tuple[str, Meaning, int, int]]:
    """The images that the lines of a text name, comments apart."""
    for line in re.finditer(r"^[^#\n]+", text, re.MULTILINE):
        for package, meaning, start, end in images_in(line[0], page.packages):
            yield package, meaning, line.start() + start, line.start() + end


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


def magics(text: str) -> str:
    """What lines of a notebook's cell say to the shell, each character in its place, all else blanked out."""
    if _CELL_SHELL.match(text):
        return re.sub(r"%%[^\n]*", lambda match: " " * len(match[0]), text, count=1)
    parts: list[str] = []
    going_on = False
    for line in text.splitlines(keepends=True):
        magic = _MAGIC.match(line)
        if going_on or magic:
            parts.append(line if going_on or magic is None else " " * magic.end() + line[magic.end() :])
            going_on = line.rstrip("\r\n").endswith("\\")
        else:
            parts.append(_blank(line))
    return "".join(parts)


_INTERPOLATED = regex(r"\{(\w{1,100})\}")


def read_notebook(page: Page) -> Iterator[Statement | Include]:
    """The code cells of a notebook; what they put out counts for nothing."""
    root = trees.json(page.content)
    if not isinstance(root, Table):
        raise Broken("no JSON object")
    script = Script(page, Form.NOTEBOOK)
    for cell in root.items("cells"):
        if not isinstance(cell, Table) or cell.text("cell_type") != "code":
            continue
        source = cell.at("source")
        leaves = source.items if isinstance(source, Items) else [source]
        text, places = "", []
        for leaf in leaves:
            if isinstance(leaf, Leaf):
                part, where = _characters(page.content, leaf)
                text += part
                places += where
        script.variables.update(texts_of(text))
        if script.concerns(text):
            shell = magics(text)
            if "{" in shell:
                # `{name}` is Python's to fill in, which shell text spells `$name`.
                shell, places = _interpolated(shell, places)
            script.read(shell_text(page, shell, places))
    yield from script.found


def _interpolated(text: str, places: list[int]) -> tuple[str, list[int]]:
    parts: list[str] = []
    where: list[int] = []
    index = 0
    for match in _INTERPOLATED.finditer(text):
        start, end = match.span()
        if text[start - 1 : start] in ("$", "{") or text[end : end + 1] == "}":
            continue
        parts += [text[index:start], "${", match[1], "}"]
        where += [*places[index:start], places[start], places[start], *places[start + 1 : end]]
        index = end
    parts.append(text[index:])
    where += places[index:]
    return "".join(parts), where


_CHARACTER = regex(r"\\(?:u[0-9A-Fa-f]{4}|.)|[^\\]+", re.DOTALL)


def _characters(content: str, leaf: Leaf) -> tuple[str, list[int]]:
    """The characters of a JSON text, each with its place in the file."""
    parts: list[str] = []
    places: list[int] = []
    for match in _CHARACTER.finditer(content, leaf.start + 1, leaf.end - 1):
        if match[0][0] == "\\":
            parts.append(trees.unescaped(match[0]))
            places.append(match.end() - 1)
        else:
            parts.append(match[0])
            places.extend(range(*match.span()))
    return "".join(parts), places
