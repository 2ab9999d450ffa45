"""TOML, JSON and INI as trees in which each value knows its place, read without recursion and with a bound on depth.

What pip, uv and Poetry refuse is refused here too, where it matters: a file that is cut off or not of its syntax states
nothing. Numbers and dates stay text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from trainlint.budget import BUDGET
from trainlint.lazy import regex
from trainlint.records import dataclass, field
from trainlint.repository.statements.page import Broken


@dataclass(slots=True)
class Leaf:
    """A text, or a number, date or boolean as it is written (`quoted` is then False); with its quotes' place."""

    value: str
    start: int
    end: int
    quoted: bool = True

    @property
    def place(self) -> tuple[int, int]:
        """From its first to behind its last character."""
        return self.start, self.end


@dataclass(slots=True)
class Items:
    """An array."""

    items: list[Tree] = field(default_factory=list)
    start: int = 0
    end: int = 0


@dataclass(slots=True)
class Table:
    """A table; `keys` has the place of each key."""

    entries: dict[str, Tree] = field(default_factory=dict)
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)
    start: int = 0
    end: int = 0

    def at(self, *path: str) -> Tree | None:
        """What stands at a path of keys."""
        found: Tree | None = self
        for key in path:
            found = found.entries.get(key) if isinstance(found, Table) else None
        return found

    def table(self, *path: str) -> Table:
        """The table at a path of keys; an empty one where there is none."""
        found = self.at(*path)
        return found if isinstance(found, Table) else Table()

    def items(self, *path: str) -> list[Tree]:
        """The items of an array at a path of keys; a single table of TOML's `[[name]]` is one as well."""
        found = self.at(*path)
        return found.items if isinstance(found, Items) else []

    def leaf(self, *path: str) -> Leaf | None:
        """The text at a path of keys."""
        found = self.at(*path)
        return found if isinstance(found, Leaf) else None

    def text(self, *path: str) -> str:
        """The text at a path of keys, empty where there is none."""
        found = self.leaf(*path)
        return found.value if found else ""


Tree: TypeAlias = "Leaf | Items | Table"


def leaves(tree: Tree | None) -> Iterator[Leaf]:
    """The texts of an array; a text alone is one as well."""
    if isinstance(tree, Leaf) and tree.quoted:
        yield tree
    elif isinstance(tree, Items):
        yield from (item for item in tree.items if isinstance(item, Leaf) and item.quoted)


_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "e": "\x1b"}
_ESCAPE = regex(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|x([0-9A-Fa-f]{2})|(\s*\n\s*)|(.))", re.DOTALL)


def unescaped(text: str) -> str:
    """Text with its escapes resolved."""
    if "\\" not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        code = match[1] or match[2] or match[3]
        if code:
            number = int(code, 16)
            return chr(number) if number < 0x110000 else "\ufffd"
        return "" if match[4] else _ESCAPES.get(match[5], match[5])

    return _ESCAPE.sub(replaced, text)


# JSON

_JSON = regex(
    r'(?P<blank>[ \t\r\n\ufeff]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)|(?P<string>"[^"\\]*(?:\\.[^"\\]*)*")'
    r"|(?P<mark>[\[\]{},:])|(?P<word>[\w.+-]+)",
    re.DOTALL,
)


def json(content: str, start: int = 0) -> Tree:
    """Read JSON; comments and commas behind the last item are taken as editors take them.

    Raises Broken.
    """
    stack: list[Table | Items] = []
    root: Tree | None = None
    key: Leaf | None = None
    colon = False
    index, end, values = start, len(content), 0
    while index < end:
        match = _JSON.match(content, index)
        values += 1
        if values > BUDGET.values:
            raise Broken(f"more than {BUDGET.values:,} values", index)
        if not match:
            raise Broken("not JSON", index)
        begin, index = match.span()
        kind, text = match.lastgroup, match[0]
        if kind == "blank" or text == ",":
            continue
        value: Tree | None = None
        if kind == "string":
            leaf = Leaf(unescaped(text[1:-1]), begin, index)
            if stack and isinstance(stack[-1], Table) and not colon:
                key = leaf
                continue
            value = leaf
        elif kind == "word":
            value = Leaf(text, begin, index, quoted=False)
        elif text == ":":
            colon = key is not None
            continue
        elif text in "{[":
            value = Table(start=begin) if text == "{" else Items(start=begin)
        else:
            if not stack or key is not None or isinstance(stack[-1], Table) != (text == "}"):
                raise Broken("not JSON", begin)
            stack.pop().end = index
            key, colon = None, False
            if not stack:
                break
            continue
        if not stack:
            root = value
        elif isinstance(stack[-1], Items):
            stack[-1].items.append(value)
        elif key is None or not colon:
            raise Broken("not JSON", begin)
        else:
            stack[-1].entries[key.value] = value
            stack[-1].keys[key.value] = key.place
        if isinstance(value, (Table, Items)):
            if len(stack) >= BUDGET.depth:
                raise Broken(f"nested more than {BUDGET.depth} levels deep", begin)
            stack.append(value)
        elif not stack:
            break
        key, colon = None, False
    if root is None or stack:
        raise Broken("not JSON: it ends too early", end)
    return root


# TOML

_TOML = regex(
    r"(?P<blank>[ \t]+|\#[^\n]*)|(?P<line>\r?\n)"
    r'|(?P<long>"""(?:[^"\\]|\\.|""?(?!"))*"{3,5}|\'\'\'(?:[^\']|\'\'?(?!\'))*\'{3,5})'
    r'|(?P<string>"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\')'
    r"|(?P<mark>[\[\]{},=.])|(?P<word>[^\s\[\]{},=.#\"']+)",
    re.DOTALL,
)
_BARE_VALUE = regex(r"[\w.+:-]+(?: \d\d:[\d:.Z+-]+)?")


class _Toml:
    def __init__(self, content: str, start: int, end: int) -> None:
        self.content = content
        self.index = start
        self.end = end
        self.root = Table(start=start, end=end)
        self.values = 0

    def next(self, *, lines: bool = False) -> tuple[str, str, int, int]:
        """The next token: kind, text, start and end; `lines` skips line ends as well."""
        while self.index < self.end:
            match = _TOML.match(self.content, self.index, self.end)
            self.values += 1
            if self.values > BUDGET.values:
                raise Broken(f"more than {BUDGET.values:,} values", self.index)
            if not match:
                raise Broken("not TOML", self.index)
            start, self.index = match.span()
            kind = match.lastgroup or ""
            if kind == "blank" or (lines and kind == "line"):
                continue
            return kind, match[0], start, self.index
        return "end", "", self.end, self.end

    def read(self) -> Table:
        here = self.root
        while True:
            kind, text, start, end = self.next(lines=True)
            if kind == "end":
                return self.root
            if text == "[":
                many = self.content.startswith("[", end)
                self.index += many
                path = self.key(*self.next())
                for _ in range(1 + many):
                    if self.next()[1] != "]":
                        raise Broken("not TOML", start)
                here = self.enter(path, many=many)
                self.line_ends()
            else:
                self.pair(here, kind, text, start, end)
                self.line_ends()

    def line_ends(self) -> None:
        kind, _, start, _ = self.next()
        if kind not in ("line", "end"):
            raise Broken("not TOML", start)

    def key(self, kind: str, text: str, start: int, end: int) -> list[Leaf]:
        """A dotted key, whose first token has been read; what follows it is left."""
        path: list[Leaf] = []
        while True:
            if kind == "string":
                path.append(Leaf(text[1:-1] if text[0] == "'" else unescaped(text[1:-1]), start, end))
            elif kind == "word":
                path.append(Leaf(text, start, end))
            else:
                raise Broken("not TOML", start)
            if len(path) > BUDGET.depth:
                raise Broken(f"nested more than {BUDGET.depth} levels deep", start)
            before = self.index
            if self.next()[1] != ".":
                self.index = before
                return path
            kind, text, start, end = self.next()

    def enter(self, path: list[Leaf], *, many: bool) -> Table:
        """The table of a header."""
        here = self.root
        for step in path[:-1]:
            here = self.step(here, step)
        last = path[-1]
        if not many:
            return self.step(here, last)
        found = here.entries.setdefault(last.value, Items(start=last.start))
        if not isinstance(found, Items):
            raise Broken("not TOML: a key is given twice", last.start)
        table = Table(start=last.start, end=last.end)
        found.items.append(table)
        here.keys.setdefault(last.value, last.place)
        return table

    def step(self, here: Table, key: Leaf) -> Table:
        found = here.entries.get(key.value)
        if isinstance(found, Items) and found.items:
            found = found.items[-1]
        if found is None:
            found = here.entries[key.value] = Table(start=key.start, end=key.end)
            here.keys[key.value] = key.place
        if not isinstance(found, Table):
            raise Broken("not TOML: a key is given twice", key.start)
        return found

    def pair(self, here: Table, kind: str, text: str, start: int, end: int, depth: int = 0) -> None:
        path = self.key(kind, text, start, end)
        if self.next()[1] != "=":
            raise Broken("not TOML", start)
        for step in path[:-1]:
            here = self.step(here, step)
        key = path[-1]
        if key.value in here.entries:
            raise Broken("not TOML: a key is given twice", key.start)
        here.keys[key.value] = key.place
        here.entries[key.value] = self.value(depth)

    def value(self, depth: int, *, lines: bool = False) -> Tree:
        before = self.index
        kind, text, start, end = self.next(lines=lines)
        if depth > BUDGET.depth:
            raise Broken(f"nested more than {BUDGET.depth} levels deep", start)
        if kind == "long":
            inner = text[3:-3].removeprefix("\r").removeprefix("\n")
            return Leaf(inner if text[0] == "'" else unescaped(inner), start, end)
        if kind == "string":
            return Leaf(text[1:-1] if text[0] == "'" else unescaped(text[1:-1]), start, end)
        if kind == "word":
            match = _BARE_VALUE.match(self.content, start, self.end)
            if not match:
                raise Broken("not TOML", before)
            self.index = match.end()
            return Leaf(match[0], start, match.end(), quoted=False)
        if text == "[":
            return self.array(start, depth)
        if text == "{":
            return self.inline(start, depth)
        raise Broken("not TOML", start)

    def array(self, start: int, depth: int) -> Items:
        found = Items(start=start)
        while True:
            before = self.index
            if self.next(lines=True)[1] == "]":
                break
            self.index = before
            found.items.append(self.value(depth + 1, lines=True))
            _, text, at, _ = self.next(lines=True)
            if text == "]":
                break
            if text != ",":
                raise Broken("not TOML", at)
        found.end = self.index
        return found

    def inline(self, start: int, depth: int) -> Table:
        found = Table(start=start)
        while True:
            kind, text, at, end = self.next(lines=True)
            if text == "}" and kind == "mark":
                break
            self.pair(found, kind, text, at, end, depth + 1)
            _, text, at, _ = self.next(lines=True)
            if text == "}":
                break
            if text != ",":
                raise Broken("not TOML", at)
        found.end = self.index
        return found


def toml(content: str, start: int = 0, end: int | None = None) -> Table:
    """Read TOML, or a stretch of it that begins with a header.

    Raises Broken.
    """
    return _Toml(content, start, len(content) if end is None else end).read()


def ini(content: str) -> Iterator[tuple[str, str, list[Leaf]]]:
    """Section, key and the lines of the value, one after another, as configparser splits them."""
    section = key = ""
    lines: list[Leaf] = []
    for match in re.finditer(r"^[^\r\n]*", content, re.MULTILINE):
        line = match[0]
        text = line.strip()
        start = match.start() + len(line) - len(line.lstrip())
        if not text or text[0] in "#;":
            continue
        if line[0].isspace() and key:
            lines.append(Leaf(text, start, start + len(text)))
            continue
        if key:
            yield section, key, lines
        key, lines = "", []
        header = re.match(r"\[([^\]]+)\]", text)
        pair = re.match(r"([^=:]+)[=:][ \t]*", text)
        if header:
            section = header[1].strip().lower()
        elif pair:
            key = pair[1].rstrip().lower()
            rest = text[pair.end() :]
            if rest:
                lines.append(Leaf(rest, start + pair.end(), start + len(text)))
    if key:
        yield section, key, lines
