"""Text from a file or its name, made safe to print: it can neither control a terminal nor hide."""

from __future__ import annotations


def visible(text: str, encoding: str = "utf-8") -> str:
    r"""The text; characters that do not print or that the encoding lacks are escaped (`\x1b`, `\u202e`, `\n`)."""
    if text.isprintable() and _encodable(text, encoding):
        return text
    return "".join(visible_character(character, encoding) for character in text)


def visible_character(character: str, encoding: str) -> str:
    """One character, escaped where it does not print or the encoding lacks it."""
    if character.isprintable() and _encodable(character, encoding):
        return character
    return character.encode("unicode_escape").decode("ascii")


def columns(text: str) -> int:
    """The terminal columns of printable text: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    return sum(
        0 if category(character) in ("Mn", "Me") else 2 if east_asian_width(character) in ("W", "F") else 1
        for character in text
    )


def _encodable(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
