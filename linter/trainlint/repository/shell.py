"""Shell text word by word; every word keeps its place, so that a finding can point at it inside a block scalar.

Characters that a shell or a template fills in (`$PRESET`, `$(…)`, `${{ … }}`) are hidden: the word is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainlint.budget import BUDGET, has_long_number
from trainlint.lazy import regex
from trainlint.reading.document import Scalar
from trainlint.reading.values import Field, Known, Unknown, Value

SHELLS = frozenset("ash bash dash ksh sh zsh".split())


class Word:
    """One word of a command line with the place of each character.

    `hidden`, for each character: a shell or a template fills it in, so the real one is not known.
    """

    __slots__ = ("hidden", "indexes", "line", "span", "text")

    def __init__(
        self, line: ShellText, text: str, indexes: Sequence[int], hidden: Sequence[bool], span: tuple[int, int]
    ) -> None:
        self.line = line
        self.text = text
        self.indexes = indexes
        self.hidden = hidden
        self.span = span

    @property
    def known(self) -> str | None:
        """The word, or None where part of it is filled in later, or is a number beyond the budget."""
        return None if any(self.hidden) or has_long_number(self.text) else self.text

    @property
    def file_name(self) -> str | None:
        """The word as the name of a file: variables to which its script gives one text, and no other, are filled in.

        None where something is left that is not known.
        """
        if self.known is not None or "{{" in self.text:
            return self.known
        filled = _VARIABLE.sub(lambda found: self.line.assigned(found[1] or found[2]) or "`", self.text)
        return None if "$" in filled or "`" in filled else filled

    @property
    def field(self) -> Field:
        """The place of the word with its quotes; the whole scalar where a YAML escape hides the exact place."""
        return self.line.field(self.text, *self.span)

    @property
    def value(self) -> Value[str]:
        """The word as a value at its place."""
        return Unknown(self.field) if self.known is None else Known(self.field, self.text)

    def part(self, start: int, end: int | None = None) -> Word:
        """The characters from `start` to `end` as a word of their own."""
        indexes = self.indexes[start:end]
        span = (indexes[0], indexes[-1] + 1) if indexes else self.span
        return Word(self.line, self.text[start:end], indexes, self.hidden[start:end], span)

    def __str__(self) -> str:
        return self.text


class ShellText:
    """Shell text in a field: a YAML scalar, or a whole script."""

    def __init__(self, source: Field, text: str, places: Sequence[int] | None) -> None:
        self.source = source
        self.text = text
        self.places = places

    @classmethod
    def of(cls, source: Field) -> ShellText | None:
        """The shell text of a scalar, as far as the budget goes; None where there is no scalar."""
        target = source.target
        if not isinstance(target, Scalar):
            return None
        text = target.value[: BUDGET.script]
        return cls(source, text, _places(target, text, source.document.text.content))

    def field(self, text: str, start: int, end: int) -> Field:
        """The characters `start` to `end` as a place in the document."""
        source = self.source
        if self.places is None or source.use is not None or not start < end:
            return source
        node = Scalar(text, '"', None, self.places[start], self.places[end - 1] + 1, None)
        return Field(source.document, source.dialect, node, source.path, parent=source, origin=source.origin)

    def cut(self, start: int, end: int) -> ShellText:
        """A part of the text."""
        return ShellText(self.source, self.text[start:end], None if self.places is None else self.places[start:end])

    def assigned(self, name: str) -> str | None:
        """The text that a variable gets in the one place where the script gives it something; else None."""
        document = self.source.document
        found = document.once("assignments", lambda: _assignments(document.text.content)).get(name, ())
        if len(found) != 1 or found[0][0] != "=" or _OPEN.search(found[0][1]):
            return None
        return found[0][1].strip("\"'") or None

    def inside(self, word: Word) -> ShellText:
        """A word that is itself shell text, as in `bash -c '…'`."""
        places = None if self.places is None else [self.places[index] for index in word.indexes]
        return ShellText(self.source, word.text, places)


_VARIABLE = regex(r"\$(?:\{(\w{1,100})\}|(\w{1,100}))")
_ASSIGNED = regex(r"(?<![\w$.-])([A-Za-z_]\w{0,99})(=|[ \t]+in[ \t]+)([^\s;&|()#]{0,500})")
"""What gets something in a script: `NAME=text`, and `for NAME in …`."""
_OPEN = regex(r"[$`*?\[{\\]")


def _assignments(content: str) -> dict[str, list[tuple[str, str]]]:
    """By name, each way in which a variable gets something, with the text behind it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, how, text in _ASSIGNED.findall(content):
        found.setdefault(name, []).append((how, text))
    return found


# reading it

_HIDDEN = (
    r"\$?\{\{(?:[^{}]|\{(?!\{)|\}(?!\})){0,500}\}\}|\{%(?:[^{%]|\{(?!%)|%(?!\})){0,500}%\}"
    r"|\$\((?:[^()]|\((?:[^()]|\([^()]{0,500}\)){0,500}\)){0,500}\)|`[^`]{0,500}`"
    r"|\$\{(?:[^{}]|\{[^{}]{0,100}\}){0,500}\}|\$\w+|\$[@*#?$!-]"
)
_TOKEN = regex(
    rf"""
      (?P<continued>\\[ \t]*\r?\n)
    | (?P<hidden>{_HIDDEN}|<[A-Za-z][A-Za-z0-9_\ .-]*>)
    | (?P<single>'[^']*')
    | (?P<double>"(?:[^"\\]|\\.)*")
    | \\(?P<escaped>.)
    | (?P<space>[ \t\r]+)
    | (?P<comment>\#[^\n]*)
    | (?P<heredoc><<-?[ \t]*(?P<quote>['"]?)(?P<end>\w+)(?P=quote))
    | (?P<redirect>[0-9]*(?:<<<|>>|&>|[<>]&?)[ \t]*)
    | (?P<operator>&&|\|\||[;&|()\n])
    | (?P<plain>[^\s'"\\$`;&|()<>{{\#]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_IN_DOUBLE = regex(rf'(?P<hidden>{_HIDDEN})|\\(?P<escaped>["\\$`\n])|(?P<plain>[^\\$`{{]+|.)', re.DOTALL)
_IN_SINGLE = regex(r"(?P<hidden>\$?\{\{.{0,500}?\}\}|\$\{.{0,500}?\}|\$\(.{0,500}?\))|(?P<plain>[^${]+|.)", re.DOTALL)
_IN_EXEC = regex(rf"(?P<hidden>{_HIDDEN}|<[A-Za-z][A-Za-z0-9_ .-]*>)|(?P<plain>[^$`{{<]+|.)", re.DOTALL)


class _WordBuilder:
    """Gathers the characters of the word being read."""

    def __init__(self, line: ShellText) -> None:
        self.line = line
        self.start: int | None = None
        self.end = 0
        self.text: list[str] = []
        self.indexes: list[int] = []
        self.hidden: list[bool] = []

    def add(self, start: int, end: int, *, hidden: bool = False) -> None:
        self.touch(start, end)
        self.text.append(self.line.text[start:end])
        self.indexes.extend(range(start, end))
        self.hidden.extend([hidden] * (end - start))

    def touch(self, start: int, end: int) -> None:
        self.start = start if self.start is None else self.start
        self.end = end

    def add_quoted(self, pattern: re.Pattern[str], start: int, end: int) -> None:
        for match in pattern.finditer(self.line.text, start, end):
            kind = match.lastgroup or "plain"
            if match.group(kind) != "\n" or kind != "escaped":
                self.add(*match.span(kind), hidden=kind == "hidden")

    def take(self) -> Word | None:
        if self.start is None:
            return None
        word = Word(self.line, "".join(self.text), self.indexes, self.hidden, (self.start, self.end))
        self.start, self.text, self.indexes, self.hidden = None, [], [], []
        return word


def commands_of(line: ShellText, *, listed: bool = False, depth: int = 0) -> Iterator[list[Word] | str]:
    """The simple commands of shell text, with `(`, `)` and `\\n` at subshells and line ends.

    `listed`: a command may be a JSON list, as in a Dockerfile. `depth` is the number of here-documents around it.
    """
    words: list[Word] = []
    builder = _WordBuilder(line)
    bodies: list[str] = []
    redirected = in_list = False
    text, index = line.text, 0

    def finish() -> None:
        nonlocal redirected
        word = builder.take()
        if word is not None:
            if not redirected:
                words.append(word)
            redirected = False

    while match := _TOKEN.match(text, index):
        start, index = match.span()
        kind = match.lastgroup if match.lastgroup not in ("quote", "end") else "heredoc"
        if kind == "comment" and builder.start is not None:
            kind, index = "plain", start + 1
        if kind == "plain" and listed and (in_list or builder.start is None) and not match.group().strip("[],"):
            finish()
            in_list = "]" not in match.group()
        elif kind == "plain":
            builder.add(start, index, hidden="*" in match.group())
        elif kind == "hidden":
            builder.add(start, index, hidden=True)
        elif kind == "escaped":
            builder.add(start + 1, index)
        elif kind in ("single", "double"):
            builder.touch(start, start + 1)
            builder.add_quoted(_IN_SINGLE if kind == "single" else _IN_DOUBLE, start + 1, index - 1)
            builder.touch(start, index)
        elif kind == "redirect":
            finish()
            redirected = True
        elif kind == "heredoc":
            finish()
            bodies += [match.group("end")] if depth < BUDGET.command else []
        else:
            finish()
            if kind == "operator":
                redirected = in_list = False
                if words:
                    yield words
                words = []
                if match.group() in "()\n":
                    yield match.group()
                if match.group() == "\n":
                    for end in bodies:
                        close = re.compile(rf"^[ \t]*{re.escape(end)}[ \t\r]*$", re.MULTILINE).search(text, index)
                        stop = close.start() if close else len(text)
                        yield from commands_of(line.cut(index, stop), depth=depth + 1)
                        index = close.end() if close else len(text)
                    bodies = []
    finish()
    if words:
        yield words


def name_of(word: Word) -> str:
    """The program that a word names: without its folder, and without what Make puts before a command."""
    return word.text.lstrip("@-+").rpartition("/")[2]


def script_of(words: Sequence[Word]) -> Word | None:
    """The shell text that a command hands to a shell (`bash -lc '…'`), to another machine or to a queue."""
    in_shell = False
    for before, word, script in zip([None, *words], words[:-1], words[1:], strict=False):
        in_shell = in_shell or (before is not None and name_of(before) in SHELLS)
        if in_shell and re.fullmatch(r"-[a-zA-Z]*c", word.text):
            return script
        if word.text == "--wrap":
            return script
    if name_of(words[0]) in ("ssh", "eval") and re.search(r"\s", words[-1].text):
        return words[-1]
    last = words[-1]
    return last.part(len("--wrap=")) if last.text.startswith("--wrap=") else None


def exec_word(item: Field) -> Word | None:
    line = ShellText.of(item)
    if line is None:
        return None
    builder = _WordBuilder(line)
    builder.touch(0, len(line.text))
    builder.add_quoted(_IN_EXEC, 0, len(line.text))
    return builder.take()


# places

_ESCAPE = regex(r'\\(?:(?P<self>["\\/])|(?P<blank>[nt ]|\r?\n)|.)', re.DOTALL)


def _places(scalar: Scalar, text: str, content: str) -> Sequence[int] | None:
    """The index in the file of each character of a scalar's text; None where escapes make that uncertain.

    Apart from whitespace, the characters of a value are the written ones, in order.
    """
    start, end = scalar.start, scalar.end
    if scalar.style in ("|", ">"):
        start = content.find("\n", start, end) + 1 or end
    elif scalar.style:
        start, end = start + 1, end - 1
    places: list[int] = []
    index = start
    for character in text:
        if character.isspace():
            places.append(min(places[-1] + 1 if places else start, max(start, end - 1)))
            continue
        while index < end and content[index].isspace():
            index += 1
        if scalar.style == '"':
            while (escape := _ESCAPE.match(content, index, end)) and escape.lastgroup != "self":
                if escape.lastgroup is None:
                    return None
                index = escape.end()
                while index < end and content[index].isspace():
                    index += 1
            index += escape is not None
        if index >= end or content[index] != character:
            return None
        places.append(index)
        index += 2 if scalar.style == "'" and character == "'" else 1
    return places
