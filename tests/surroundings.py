"""A folder as programs see it: what the engine makes of a workspace, for tests of a program's own functions."""

from __future__ import annotations

from pathlib import Path

from trainlint.engine import Workspace
from trainlint.programs import Surroundings
from trainlint.programs.table import marked
from trainlint.reading.document import documents
from trainlint.reading.text import Text
from trainlint.recognise import recognised
from trainlint.settings import Settings


def surroundings(folder: Path, files: dict[str, str]) -> Surroundings:
    """The surroundings of a subject in a folder with these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Workspace(folder, Settings()).surroundings


def owners(text: str, name: str = "config.yaml") -> list[str]:
    """The programs that own the first document of a text."""
    document = next(documents(name, Text(text)))
    return [program.name for program, subject in recognised(document, marked(text)) if subject.owns_document]
