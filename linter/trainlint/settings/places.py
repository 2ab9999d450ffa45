"""On which line of a TOML text each key is: the parser of the standard library does not say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

Path = tuple[str, ...]
"""The keys on the way to a value; those in an array of tables have the index of their table, as text, in it."""

_KEY = r"""(?:[\w-]+|"(?:\\.|[^"\\])*"|'[^']*')"""
_KEYS = re.compile(rf"[ \t]*({_KEY}(?:[ \t]*\.[ \t]*{_KEY})*)[ \t]*")
_TOKEN = re.compile(r'"""|\'\'\'|\\.|["\'#\[\]{}\n]', re.DOTALL)


class Places:
    """The lines of the keys of one text, which is valid TOML."""

    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._known: dict[Path, int] = {}
        for path, line in _keys(text):
            self._known.setdefault(path, line)

    def line(self, path: Path, word: str = "") -> int:
        """The 1-based line of a key, or of the nearest one around it; with a word, the first from there that has it."""
        while path and path not in self._known:
            path = path[:-1]
        line = self._known.get(path, 1)
        if not word:
            return line
        further = enumerate(self._lines[line - 1 :], line)
        return next((number for number, content in further if f'"{word}"' in content or f"'{word}'" in content), line)


@lru_cache(maxsize=8)
def places_in(text: str) -> Places:
    """The places of a text, made once."""
    return Places(text)


def _keys(text: str) -> Iterator[tuple[Path, int]]:
    """Each key that begins a line, and each header, with its line."""
    table: Path = ()
    counts: dict[Path, int] = {}
    for line, content in _statements(text):
        array, header = content.startswith("[["), content.startswith("[")
        found = _KEYS.match(content.lstrip("[") if header else content)
        if found is None:
            continue
        keys = tuple(_unquoted(key) for key in re.findall(_KEY, found[1]))
        if not header:
            for length in range(1, len(keys) + 1):
                yield (*table, *keys[:length]), line
            continue
        table = _within(keys, counts)
        if array:
            yield table, line
            counts[table] = counts.get(table, -1) + 1
            table = (*table, str(counts[table]))
        for length in range(1, len(table) + 1):
            yield table[:length], line


def _within(keys: Path, counts: dict[Path, int]) -> Path:
    """The path that a header means: below an array of tables it is that of the last table."""
    path: Path = ()
    for key in keys[:-1]:
        path = (*path, key)
        if path in counts:
            path = (*path, str(counts[path]))
    return (*path, keys[-1])


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The first lines of keys and headers: not those within a text, an array or an inline table."""
    depth, line, first, start, at = 0, 1, 1, 0, 0
    within = ""
    """The mark that began the text, or the comment, which is read."""
    while token := _TOKEN.search(text, at):
        said, at = token[0], token.end()
        if said[0] == "\\":
            # In a literal text a backslash is one character like any other.
            at = token.start() + (1 if within[:1] == "'" else 2)
            line += text.count("\n", token.start(), at)
        elif said == "\n":
            line += 1
            if len(within) < 3:
                within = ""
            if not within and depth == 0:
                yield first, text[start : token.start()].strip()
                first, start = line, at
        elif within:
            within = "" if said == within else within
        elif said in ("[", "{"):
            depth += 1
        elif said in ("]", "}"):
            depth -= 1
        else:
            within = said
    yield first, text[start:].strip()


def _unquoted(key: str) -> str:
    return key[1:-1] if key[:1] in ("'", '"') else key
