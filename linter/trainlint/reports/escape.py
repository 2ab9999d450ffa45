"""Text from a file or its name, made safe to print: it can neither control a terminal or a CI system nor hide.

Source of the commands of CI systems: actions/runner, `src/Runner.Common/ActionCommand.cs` (`::` at the start
of a line, blanks apart, and `##[` anywhere in it); microsoft/azure-pipelines-agent, `src/Agent.Sdk/CommandPlugin.cs`
(`##vso[`); TeamCity documentation, "Service Messages" (`##teamcity[`).
"""

from __future__ import annotations

import json
import re

from trainlint.lazy import regex

_COMMAND = regex(r"#(?=#(?:vso|teamcity)?\[)", re.IGNORECASE)
_SPELLED = r"\x23"
_STEERING = regex(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that are for a terminal and not for its reader, but the tab."""


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""The text; characters that do not print or that the encoding lacks are escaped (`\x1b`, `\u202e`, `\n`).

    So is the first character of a command that may be anywhere in a line.
    """
    if not (text.isprintable() and _encodable(text, encoding)):
        text = "".join(_character(character, encoding) for character in text)
    return _COMMAND.sub(lambda _: _SPELLED, text)


def visible_line(text: str, encoding: str = "utf-8") -> str:
    r"""The same for a whole line: a runner's command at its start is escaped as `\x3a:`."""
    shown = visible(text, encoding)
    return shown.replace(":", r"\x3a", 1) if shown.lstrip().startswith("::") else shown


def inert(line: str) -> str:
    """A line of a file as it is, or escaped as a whole where a part of it would steer a terminal or a CI system."""
    begins = line.lstrip().startswith("::")
    if not (begins or _STEERING.search(line) or _COMMAND.search(line)):
        return line
    shown = "\t".join(map(visible, line.split("\t")))
    return shown.replace(":", r"\x3a", 1) if begins else shown


def visible_path(path: str, encoding: str = "utf-8") -> str:
    """The same for a path: with `./` in front it is no command."""
    shown = visible(path, encoding)
    return f"./{shown}" if shown.lstrip().startswith("::") else shown


def visible_but_line_ends(text: str) -> str:
    """The same for a property of a command of a CI system, which has escapes of its own for line ends."""
    return _COMMAND.sub(lambda _: _SPELLED, "".join(c if c in "\r\n" else visible(c) for c in text))


def writable(text: str) -> str:
    """The text for a UTF-8 stream: a file name that is not UTF-8 holds lone surrogates, which are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def visible_cells(text: str, encoding: str) -> list[str]:
    """The printed form of each character of a text."""
    cells = [_character(character, encoding) for character in text]
    for found in _COMMAND.finditer(text):
        cells[found.start()] = _SPELLED
    return cells


def as_json(document: object, indent: int | None = 2) -> str:
    """A document as JSON in ASCII, in one line without `indent`, without text that a CI system reads as a command."""
    return _COMMAND.sub(lambda _: r"\u0023", json.dumps(document, indent=indent)) + "\n"


def as_xml(document: str) -> str:
    """An XML document without text that a CI system reads as a command; parsed, it is unchanged."""
    return re.sub(r"(?m)^([^\S\n]*):(?=:)", r"\1&#58;", _COMMAND.sub("&#35;", document))


def columns(text: str) -> int:
    """The terminal columns of printable text: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(character) in ("Mn", "Me") else 2 if east_asian_width(character) in ("W", "F") else 1
        for character in text
    )


def _character(character: str, encoding: str) -> str:
    if character.isprintable() and _encodable(character, encoding):
        return character
    return character.encode("unicode_escape").decode("ascii")


def _encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
