"""What Python code states of the packages that it is to run with.

Read are the header of a script (PEP 723), what code hands to a container image or a service
(`Image.pip_install("trl==0.17.0")`, `packages_to_install=[…]`, `transformers_version="4.49"`), commands that it starts,
and cells of a notebook that is kept as Python.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from trainlint.lazy import regex
from trainlint.repository.shell import ShellText, Word
from trainlint.repository.statements import trees
from trainlint.repository.statements.commands import Script, shell_text
from trainlint.repository.statements.model import OWN_HEADER, Form, Include, Kind, Meaning, Statement
from trainlint.repository.statements.origins import images_in, with_named_tag
from trainlint.repository.statements.page import Page
from trainlint.repository.statements.setup_py import Places, parse
from trainlint.repository.statements.specifiers import exact, of_pip

_BEGIN = regex(r"^# /// script[ \t]*\r?$", re.MULTILINE)
_HEADER = regex(r"# /// script[ \t]*\r?\n(?P<body>(?:#(?: [^\n]*|\r)?\n)+?)# ///[ \t]*\r?$", re.MULTILINE)
_CELL = regex(r"^# (?:MAGIC )?(?:%(?=pip|uv|conda)|!)(?P<command>[^\n]*)", re.MULTILINE)
_LITERAL = regex(r"[rRuUbB]{0,2}(?P<quote>\"{3}|'{3}|\"|')(?P<text>.*)(?P=quote)", re.DOTALL)
_LISTS = ("packages_to_install", "pip_packages", "python_packages", "pip", "requirements")
_INSTALLERS = frozenset(("pip_install", "uv_pip_install", "add_python_packages"))
_STARTERS = frozenset(
    ("run_commands", "dockerfile_commands", "system", "run", "call", "check_call", "check_output", "Popen", "getoutput")
)
_OPEN = "${}"
"""Stands in the name of an image for what code computes."""
_IMAGE_KEYS = ("image", "image_uri", "image_name", "base_image", "docker_image")


def read(page: Page) -> Iterator[Statement | Include]:
    """Everything that one Python file states."""
    begin = _BEGIN.search(page.content)
    header = _HEADER.match(page.content, begin.start()) if begin else None
    if header is not None:
        yield from _script_header(page, header)
    tree = parse(page.content)
    code = _Code(page, tree)
    script = code.script
    for cell in _CELL.finditer(page.content):
        script.read(shell_text(page, cell["command"], range(*cell.span("command"))))
    stated = [statement for node in _calls(tree) for statement in code.call(node)]
    found = [*stated, *script.found]
    named = {s.package for s in found if isinstance(s, Statement) and s.kind is Kind.EXACT}
    for statement in found:
        # What is built on an image that tells no release replaces what it holds.
        if isinstance(statement, Statement) and statement.is_open_image and statement.package in named:
            continue
        yield statement


def _calls(tree: ast.Module) -> list[ast.Call]:
    """The calls of a module in the order in which they are made: of a chain, the first call first."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return sorted(calls, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0))


def _script_header(page: Page, header: re.Match[str]) -> Iterator[Statement]:
    # The comment signs are blanked out, so that each character keeps its place.
    body = re.sub(r"^# ?", lambda match: " " * len(match[0]), header["body"], flags=re.MULTILINE)
    content = " " * header.start("body") + body
    for leaf in trees.leaves(trees.toml(content, header.start("body")).at("dependencies")):
        yield from page.required(leaf.value, leaf.place, Form.CODE, extra=OWN_HEADER)


def _texts(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names to which a module gives a text, and that text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from ((target.id, node.value.value) for target in node.targets if isinstance(target, ast.Name))


class _Code:
    """Goes through the calls of a module."""

    def __init__(self, page: Page, tree: ast.Module) -> None:
        self.page = page
        self.places = Places(page)
        self.script = Script(page, Form.CODE, dict(_texts(tree)))

    def call(self, node: ast.Call) -> Iterator[Statement]:
        """What one call says."""
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if name in _INSTALLERS:
            for argument in [*node.args, *given.values()]:
                yield from self.requirements(argument)
        elif name in _STARTERS:
            for argument in node.args:
                self.start(argument)
        images = [given[key] for key in _IMAGE_KEYS if key in given]
        for argument in [*node.args[:1], *images]:
            image, place = self.text(argument, unknown=_OPEN) or "", self.places.of(argument)
            untagged = name == "from_registry" or argument in images
            for package, meaning, _, _ in images_in(image, self.page.packages, untagged=untagged):
                meaning = with_named_tag(meaning, self.page.content)
                if _OPEN in meaning.text:
                    meaning = Meaning(Kind.UNKNOWN, self.page.content[slice(*place)].lstrip("rRfF").strip("\"'"))
                yield self.page.statement(package, meaning, place, Form.IMAGE)
        for key in _LISTS:
            if key in given:
                yield from self.requirements(given[key])
        version = given.get("transformers_version")
        text = self.text(version) if version is not None else None
        if version is not None and text and "transformers" in self.page.packages:
            # Two numbers name an image of any patch release.
            asked = of_pip(f"=={text}.*") if text.count(".") == 1 else exact(text)
            if asked is not None and asked.kind is not Kind.UNKNOWN:
                yield self.page.statement("transformers", asked, self.places.of(version), Form.CODE)

    def requirements(self, value: ast.expr) -> Iterator[Statement]:
        """A requirement, or a list of them."""
        for item in value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]:
            text = self.text(item)
            if text:
                yield from self.page.required(text, self.places.of(item), Form.CODE)

    def start(self, value: ast.expr) -> None:
        """A command line: a text, or a list of words."""
        self.script.folder = ""
        if isinstance(value, (ast.List, ast.Tuple)):
            words: list[Word] = []
            for item in value.elts:
                text = self.text(item)
                line = self.shell(text if text is not None else "python", item)
                length = len(line.text)
                words.append(Word(line, line.text, range(length), [False] * length, (0, length)))
            if any(re.search(r"\s", word.text) for word in words):
                for word in words:
                    self.script.read(word.line)
            elif words:
                self.script.command(words)
            return
        text = self.text(value)
        if text and self.script.concerns(text):
            self.script.read(self.shell(text, value))

    def shell(self, text: str, node: ast.expr) -> ShellText:
        """A literal's text with the places of its characters, which are its own as a whole where it has escapes."""
        start, end = self.places.of(node)
        literal = _LITERAL.fullmatch(self.page.content, start, end)
        known = literal is not None and literal["text"] == text
        places = range(*literal.span("text")) if literal is not None and known else None
        return shell_text(self.page, text, places, (start, end))

    def text(self, node: ast.expr, unknown: str | None = None) -> str | None:
        """A literal, or an f-string of names that stand for one; `unknown` stands for what no literal is."""
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if not isinstance(node, ast.JoinedStr):
            return None
        parts: list[str | None] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                parts.append(self.script.variables.get(getattr(part.value, "id", ""), unknown))
            else:
                parts.append(self.text(part))
        known = [part for part in parts if part is not None]
        return "".join(known) if len(known) == len(parts) else None
