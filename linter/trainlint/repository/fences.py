"""The fenced blocks of documents for people: what a README shows as commands."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlint.lazy import regex

SUFFIXES = (".md", ".markdown", ".rst", ".mdx", ".qmd")
"""Documents for people."""
SHELLS = frozenset(
    ("", "bash", "sh", "shell", "zsh", "console", "text", "txt", "shell-session", "cmd", "powershell", "fish")
)
"""The languages of blocks that may hold commands."""
_FENCE = regex(r"^[ \t>]*(?P<mark>`{3,}|~{3,})[ \t]*\{?\.?(?P<language>[\w+-]*)[^\n]*$", re.MULTILINE)
_PROMPT = regex(r"^[ \t]*(?:\([\w.-]+\)[ \t]*)?[$>%](?=[ \t]+\S)", re.MULTILINE)


def fences(content: str) -> Iterator[tuple[str, int, int]]:
    """The language of each block, in lower case, and where its text begins and ends."""
    opened: re.Match[str] | None = None
    for match in _FENCE.finditer(content):
        if opened is None:
            opened = match
        elif match["mark"].startswith(opened["mark"]) and not match["language"]:
            yield opened["language"].lower(), min(opened.end() + 1, match.start()), match.start()
            opened = None


def without_prompts(text: str) -> str:
    """A transcript with its prompts (`$ pip install …`) blanked out."""
    return _PROMPT.sub(lambda match: " " * len(match[0]), text)
