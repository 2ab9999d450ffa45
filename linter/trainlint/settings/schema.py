"""The JSON Schema of the settings, for editors."""

from __future__ import annotations

from collections.abc import Mapping

from trainlint.settings import Vocabulary
from trainlint.settings.kinds import Schema
from trainlint.settings.table import IN_OVERRIDES, PATHS, TOP, Setting

ID = "https://json.schemastore.org/trainlint.json"


def schema(known: Vocabulary) -> Schema:
    """The schema (draft 7) of trainlint.toml, and of [tool.trainlint] in pyproject.toml."""
    overrides: Schema = {
        "type": "array",
        "description": "Settings for the files of some paths; if several match a file, the last one wins.",
        "items": {
            "type": "object",
            "properties": _properties(IN_OVERRIDES, known),
            "required": [PATHS.key],
            "additionalProperties": False,
        },
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ID,
        "title": "Settings of trainlint",
        "type": "object",
        "properties": {**_properties(TOP, known), "overrides": overrides},
        "additionalProperties": False,
        "definitions": {
            "rule": {
                "description": "A rule by its code or name, rules by a prefix of their codes, or ALL.",
                "type": "string",
                "enum": list(known.selectors()),
            }
        },
    }


def _properties(settings: Mapping[str, Setting], known: Vocabulary) -> dict[str, Schema]:
    return {key: {"description": _sentence(one.doc), **one.kind.schema(known)} for key, one in settings.items()}


def _sentence(doc: str) -> str:
    return f"{doc[0].upper()}{doc[1:]}.".replace("`", "")
