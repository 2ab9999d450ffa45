"""`setup.py`, read and never run: which lists of requirements reach `setup(…)`, through names, tables and helpers."""

from __future__ import annotations

import ast
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from trainlint.budget import BUDGET
from trainlint.records import dataclass, field
from trainlint.repository.statements.model import Form, Include, Kind, Meaning, Statement
from trainlint.repository.statements.packages import normalised
from trainlint.repository.statements.page import Broken, Page
from trainlint.repository.statements.requirement import requirement
from trainlint.repository.statements.specifiers import exact

_MAX_STEPS = 20_000
_MAX_DEPTH = 40
_MAX_TEXT = 20_000
_REQUIREMENT_FILES = (".txt", ".in", ".pip")


def parse(content: str) -> ast.Module:
    """Python as a tree.

    Raises Broken.
    """
    if len(content) > BUDGET.code:
        raise Broken(f"longer than {BUDGET.code:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(content)
    except SyntaxError as error:
        raise Broken(f"not Python: line {error.lineno or 1}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Broken(f"not Python: {type(error).__name__}") from None


class Places:
    """From the places of Python's nodes, which count bytes, to characters."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._offsets: dict[int, list[int] | None] = {}

    def index(self, line: int, column: int) -> int:
        """The character at a line and a column in UTF-8 bytes."""
        if line not in self._offsets:
            text = self.page.text.line(line)
            sizes = (len(character.encode("utf-8", "surrogatepass")) for character in text)
            self._offsets[line] = None if text.isascii() else list(accumulate(sizes))
        offsets = self._offsets[line]
        return self.page.text.line_start(line) + (column if offsets is None else bisect_right(offsets, column))

    def of(self, node: ast.expr) -> tuple[int, int]:
        """Where an expression stands."""
        return (
            self.index(node.lineno, node.col_offset),
            self.index(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset),
        )


@dataclass(frozen=True)
class _Text:
    value: str
    node: ast.expr


class _File(_Text):
    """A text that is the name of a file of requirements."""


@dataclass
class _Module:
    """What the names of a module stand for: every expression that they were given, in order.

    `results` are what each function returns, `files` the names of requirements files in it.
    """

    values: dict[str, list[ast.expr]] = field(default_factory=dict)
    results: dict[str, list[ast.expr]] = field(default_factory=dict)
    files: dict[str, list[_File]] = field(default_factory=dict)
    version_files: list[_Text] = field(default_factory=list)
    calls: list[ast.Call] = field(default_factory=list)

    def add(self, name: str, value: ast.expr) -> None:
        self.values.setdefault(name, []).append(value)


def read(page: Page) -> Iterator[Statement | Include]:
    """The requirements of `setup()` and its extras, files that it reads them from, and the version of the project."""
    module = _gathered(parse(page.content))
    reader = _Reader(page, module)
    found = False
    for call in module.calls:
        arguments = reader.arguments(call)
        if "install_requires" in arguments or "extras_require" in arguments:
            found = True
        for value in arguments.get("install_requires", []):
            yield from reader.stated(value, "")
        for value in arguments.get("extras_require", []):
            for extra, member in reader.members(value):
                yield from reader.stated(member, extra)
        yield from reader.own(arguments)
    if not found:
        for values in module.values.values():
            for value in values:
                if isinstance(value, (ast.List, ast.Tuple)):
                    yield from reader.stated(value, "")


def _gathered(tree: ast.Module) -> _Module:
    module = _Module()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            _function(module, node)
        elif isinstance(node, ast.With):
            for item in node.items:
                if item.optional_vars is not None:
                    _assign(module, item.optional_vars, item.context_expr)
        elif isinstance(node, ast.For):
            _assign(module, node.target, node.iter)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                _assign(module, target, node.value)
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            _assign(module, node.target, node.value)
        elif isinstance(node, ast.Call):
            name = node.func
            if (isinstance(name, ast.Name) and name.id == "setup") or (
                isinstance(name, ast.Attribute) and name.attr == "setup"
            ):
                module.calls.append(node)
            elif isinstance(name, ast.Attribute) and name.attr in ("append", "extend", "update") and node.args:
                _assign(module, name.value, node.args[0])
    return module


def _function(module: _Module, function: ast.FunctionDef) -> None:
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            module.results.setdefault(function.name, []).append(node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node.value.lower().endswith(_REQUIREMENT_FILES) and "\n" not in node.value:
                module.files.setdefault(function.name, []).append(_File(node.value, node))
            if node.value.lower() in ("version", "version.txt"):
                module.version_files.append(_Text(node.value, node))


def _assign(module: _Module, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Name):
        module.add(target.id, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        values = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value] * len(target.elts)
        for one, its in zip(target.elts, values, strict=False):
            _assign(module, one, its)
    elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        # `extras["train"] = …` is one more entry of the table.
        module.add(target.value.id, ast.Dict(keys=[target.slice], values=[value]))


class _Reader:
    """Follows expressions as far as the file itself tells their value."""

    def __init__(self, page: Page, module: _Module) -> None:
        self.page = page
        self.module = module
        self.places = Places(page)
        self.steps = 0
        self._table: dict[str, _Text] | None = None

    def arguments(self, call: ast.Call) -> dict[str, list[ast.expr]]:
        """The keyword arguments of a call, also those of a `**table`."""
        found: dict[str, list[ast.expr]] = {}
        for keyword in call.keywords:
            if keyword.arg is not None:
                found.setdefault(keyword.arg, []).append(keyword.value)
            else:
                for name, value in self.members(keyword.value):
                    found.setdefault(name, []).append(value)
        return found

    def stated(self, value: ast.expr, extra: str) -> Iterator[Statement | Include]:
        """What a list of requirements states."""
        seen: set[tuple[int, int]] = set()
        for text in self.texts(value, 0):
            place = self.places.of(text.node)
            if isinstance(text, _File):
                yield self.page.include(text.value, place, Form.REQUIREMENTS, extra=extra)
                continue
            for line in text.value.splitlines():
                for statement in self.page.required(line, place, Form.PROJECT, extra=extra):
                    if place not in seen:
                        seen.add(place)
                        yield statement

    def members(self, value: ast.expr, depth: int = 0) -> Iterator[tuple[str, ast.expr]]:
        """The entries of a table: its names and what they stand for."""
        self.steps += 1
        if depth > _MAX_DEPTH or self.steps > _MAX_STEPS:
            return
        if isinstance(value, ast.Dict):
            for key, member in zip(value.keys, value.values, strict=True):
                if key is None:
                    yield from self.members(member, depth + 1)
                else:
                    name = self.constant(key)
                    yield name if name is not None else "*", member
        elif isinstance(value, ast.Name):
            for given in self.module.values.get(value.id, []):
                yield from self.members(given, depth + 1)
        elif isinstance(value, ast.Call):
            for keyword in value.keywords:
                if keyword.arg is not None:
                    yield keyword.arg, keyword.value
            for argument in value.args:
                yield from self.members(argument, depth + 1)
            for result in self.results(value):
                yield from self.members(result, depth + 1)
        elif isinstance(value, ast.DictComp):
            yield "*", value.value
        elif isinstance(value, ast.BinOp):
            yield from self.members(value.left, depth + 1)
            yield from self.members(value.right, depth + 1)

    def texts(self, value: ast.expr, depth: int) -> Iterator[_Text]:
        """The texts that an expression comes to, as far as can be seen."""
        self.steps += 1
        if depth > _MAX_DEPTH or self.steps > _MAX_STEPS:
            return
        known = self.constant(value)
        if known is not None:
            if known.lower().endswith(_REQUIREMENT_FILES) and not requirement(known, self.page.packages):
                yield _File(known, value)
            else:
                yield _Text(known, value)
        elif isinstance(value, (ast.List, ast.Tuple, ast.Set)):
            for item in value.elts:
                yield from self.texts(item, depth + 1)
        elif isinstance(value, ast.Starred):
            yield from self.texts(value.value, depth + 1)
        elif isinstance(value, ast.BinOp):
            yield from self.texts(value.left, depth + 1)
            yield from self.texts(value.right, depth + 1)
        elif isinstance(value, ast.IfExp):
            yield from self.texts(value.body, depth + 1)
            yield from self.texts(value.orelse, depth + 1)
        elif isinstance(value, ast.BoolOp):
            for item in value.values:
                yield from self.texts(item, depth + 1)
        elif isinstance(value, ast.Name):
            for given in self.module.values.get(value.id, []):
                yield from self.texts(given, depth + 1)
        elif isinstance(value, ast.Subscript):
            yield from self.subscript(value, depth)
        elif isinstance(value, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            for generator in value.generators:
                yield from self.texts(generator.iter, depth + 1)
        elif isinstance(value, ast.Dict):
            for member in value.values:
                yield from self.texts(member, depth + 1)
        elif isinstance(value, ast.Call):
            yield from self.call(value, depth)
        elif isinstance(value, ast.Attribute):
            yield from self.texts(value.value, depth + 1)

    def subscript(self, value: ast.Subscript, depth: int) -> Iterator[_Text]:
        """`table["name"]`; of a table that is computed, the requirement of that name in a list of the module."""
        key = self.constant(value.slice)
        if key is None:
            yield from self.texts(value.value, depth + 1)
            return
        found = [member for name, member in self.members(value.value, depth + 1) if name == key]
        for member in found:
            yield from self.texts(member, depth + 1)
        if not found and normalised(key) in self.table:
            yield self.table[normalised(key)]

    def call(self, value: ast.Call, depth: int) -> Iterator[_Text]:
        """A helper's arguments, looked up in the module's table where they are names, and what it returns or reads."""
        function = value.func
        for argument in [*value.args, *(keyword.value for keyword in value.keywords)]:
            for text in self.texts(argument, depth + 1):
                name = normalised(text.value)
                looked_up = isinstance(function, ast.Name) and name in self.table and not isinstance(text, _File)
                yield self.table[name] if looked_up else text
        for result in self.results(value):
            yield from self.texts(result, depth + 1)
        if isinstance(function, ast.Name):
            yield from self.module.files.get(function.id, ())
        elif isinstance(function, ast.Attribute):
            yield from self.texts(function.value, depth + 1)

    def results(self, value: ast.Call) -> list[ast.expr]:
        """What a function of the module returns."""
        return self.module.results.get(value.func.id, []) if isinstance(value.func, ast.Name) else []

    @property
    def table(self) -> dict[str, _Text]:
        """The requirements in lists and tables that the module gives names to, by package."""
        if self._table is None:
            self._table = {}
            for values in self.module.values.values():
                for value in values:
                    items = value.elts if isinstance(value, (ast.List, ast.Tuple)) else []
                    items = value.values if isinstance(value, ast.Dict) else items
                    for item in items:
                        text = self.constant(item)
                        found = requirement(text, self.page.packages) if text else None
                        if text and found:
                            self._table.setdefault(
                                normalised(re.split(r"[^\w.-]", text, maxsplit=1)[0]), _Text(text, item)
                            )
        return self._table

    def constant(self, value: ast.expr, depth: int = 0) -> str | None:
        """A text whose value can be seen: a literal, or parts and names that are literals."""
        self.steps += 1
        if depth > _MAX_DEPTH or self.steps > _MAX_STEPS:
            return None
        if isinstance(value, ast.Constant):
            return value.value if isinstance(value.value, str) else None
        if isinstance(value, ast.JoinedStr):
            parts = [
                self.constant(part.value if isinstance(part, ast.FormattedValue) else part, depth + 1)
                for part in value.values
            ]
            return self.joined(parts)
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            left = self.constant(value.left, depth + 1)
            right = self.constant(value.right, depth + 1) if left is not None else None
            return self.joined([left, right])
        if isinstance(value, ast.Name):
            given = self.module.values.get(value.id, [])
            return self.constant(given[0], depth + 1) if len(given) == 1 else None
        return None

    @staticmethod
    def joined(parts: list[str | None]) -> str | None:
        """Texts put together; None where one is not known, or it grows beyond all requirements."""
        known = [part for part in parts if part is not None]
        return "".join(known) if len(known) == len(parts) and sum(map(len, known)) <= _MAX_TEXT else None

    def own(self, arguments: dict[str, list[ast.expr]]) -> Iterator[Statement | Include]:
        """The version of the project itself, where it is one of the packages."""
        names = [self.constant(value) for value in arguments.get("name", [])]
        package = self.page.packages.distribution(names[0]) if names and names[0] else None
        if package is None:
            return
        for value in arguments.get("version", []):
            version = self.constant(value)
            if version is not None:
                literal = self.literal(value)
                yield self.page.statement(package, exact(version), self.places.of(literal), Form.VENDORED)
                return
        name = arguments["name"][0]
        for file in self.module.version_files:
            yield self.page.include(file.value, self.places.of(file.node), Form.VENDORED, package=package)
        meaning = Meaning(Kind.UNKNOWN, ".", local=True)
        yield self.page.statement(package, meaning, self.places.of(name), Form.VENDORED)

    def literal(self, value: ast.expr) -> ast.expr:
        """The literal that a name stands for."""
        for _ in range(_MAX_DEPTH):
            if not isinstance(value, ast.Name):
                break
            value = self.module.values[value.id][0]
        return value
