"""Settings that are a mapping, the text of a JSON object, or the name of a JSON file."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.reading.document import Node, Scalar, Unparsable, documents
from trainlint.reading.text import Text
from trainlint.reading.values import Field
from trainlint.training.deepspeed import JSON, BrokenConfig, named_config

if TYPE_CHECKING:
    from trainlint.programs import Surroundings


def is_object_text(field: Field) -> bool:
    """The field holds the text of a JSON object."""
    return field.text().known_and(lambda text: text.startswith("{"))


def mapping_of(field: Field, surroundings: Surroundings) -> Field | None:
    """A setting as a mapping: itself, its JSON text, or the content of the file that it names; None for others."""
    found = _read(field, surroundings)
    return found if isinstance(found, Field) else None


def trouble_of(field: Field, surroundings: Surroundings) -> BrokenConfig | None:
    """Why the JSON in a setting, or in the file that it names, holds no object; None where it does, or is not there."""
    found = _read(field, surroundings)
    if isinstance(found, Field) and not found.is_mapping and found.use is None:
        return BrokenConfig(found, "it holds no object")
    return found if isinstance(found, BrokenConfig) else None


def _read(field: Field, surroundings: Surroundings) -> Field | BrokenConfig | None:
    if field.is_mapping:
        return field
    text = field.text().known
    if text is None or field.use is not None:
        return None
    if text.startswith("{"):
        trouble = _trouble(text)
        return BrokenConfig(field, trouble) if trouble else object_text(field, text)
    holder = Path(field.document.path).absolute().parent
    bases = (surroundings.repository.root, holder)
    return named_config(text, bases, surroundings.repository) if text.endswith(".json") else None


@lru_cache(maxsize=2**6)
def _trouble(text: str) -> str:
    """Why a text is no JSON; empty where it is, or is nested too deeply or has too long a number to tell."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f"{error.msg.lower()} at character {error.pos + 1}"
    except (RecursionError, ValueError):
        pass
    return ""


def object_text(field: Field, text: str) -> Field | None:
    """A JSON object in a scalar; each of its nodes has its place in the file."""
    target = field.target
    if not isinstance(target, Scalar):
        return None
    content = field.document.text.content
    start = content.find(text, target.start, target.end)
    if start < 0:
        return None
    inner = _nodes(text, start)
    if inner is None:
        return None
    return Field(field.document, JSON, inner, field.path, entry=field.entry, parent=field.parent)


@lru_cache(maxsize=2**6)
def _nodes(text: str, start: int) -> Node | None:
    """The nodes of a text that begins at a place of a file."""
    try:
        return next(documents("", Text(" " * start + text))).root
    except (StopIteration, Unparsable):
        return None
