"""Settings that are a mapping, the text of a JSON object, or the name of a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.reading.document import Document, Scalar, Unparsable, documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text, Undecodable
from trainlint.reading.values import Field

if TYPE_CHECKING:
    from trainlint.programs import Surroundings


def is_object_text(field: Field) -> bool:
    """The field holds the text of a JSON object."""
    return field.text().known_and(lambda text: text.startswith("{"))


def mapping_of(field: Field, surroundings: Surroundings) -> Field | None:
    if field.is_mapping:
        return field
    text = field.text().known
    if text is None or field.use is not None:
        return None
    return object_text(field, text) if text.startswith("{") else _json_file(field, text, surroundings)


def trouble_of(field: Field, surroundings: Surroundings) -> str:
    """Why the JSON in a field, or in the file that it names, is no object; empty where it is, or is not there."""
    text = field.text().known
    if text is None or field.use is not None:
        return ""
    if not text.startswith("{"):
        script = _json_script(field, text, surroundings)
        text = script.text.content if script is not None else "{}"
    try:
        data: object = json.loads(text)
    except json.JSONDecodeError as error:
        return f"is not valid JSON (line {error.lineno}, column {error.colno})"
    except RecursionError:
        return ""
    return "" if isinstance(data, dict) else "does not hold an object"


_JSON = Dialect.OMEGACONF
"""A reader that reads JSON's numbers as numbers, also `1e-5`."""


def object_text(field: Field, text: str) -> Field | None:
    """A JSON object in a scalar; each of its nodes has its place in the file."""
    target = field.target
    if not isinstance(target, Scalar):
        return None
    content = field.document.text.content
    start = content.find(text, target.start, target.end)
    if start < 0:
        return None
    try:
        inner = next(documents(field.document.path, Text(" " * start + text)))
    except (StopIteration, Unparsable):
        return None
    return Field(field.document, _JSON, inner.root, field.path, entry=field.entry, parent=field.parent)


def _json_script(field: Field, name: str, surroundings: Surroundings) -> Document | None:
    """A JSON file, named relative to the workspace or to the file that names it."""
    holder = Path(field.document.path).absolute().parent
    for base in (surroundings.repository.root, holder):
        file = base / name
        if name.endswith(".json") and not Path(name).is_absolute() and surroundings.repository.find(file):
            try:
                return surroundings.repository.script(file)
            except (OSError, Undecodable):
                return None
    return None


def _json_file(field: Field, name: str, surroundings: Surroundings) -> Field | None:
    """The object in a JSON file."""
    script = _json_script(field, name, surroundings)
    try:
        return Field.root(next(documents(script.path, script.text)), _JSON) if script is not None else None
    except (StopIteration, Unparsable):
        return None
