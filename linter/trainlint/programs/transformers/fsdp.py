"""The FSDP settings among training arguments: `fsdp` and `fsdp_config`, and what they mean together."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from trainlint.programs.transformers.facts import (
    FALSE_WORDS,
    SHARDING_OPTIONS,
    TRUE_WORDS,
    ArgumentFacts,
    SwitchForm,
)
from trainlint.reading.document import Scalar
from trainlint.reading.values import Absent, Field, Known, Unknown, Value, WrongType

if TYPE_CHECKING:
    pass


class FsdpOptions:
    """The argument `fsdp`: words separated by spaces, a list of words, or a boolean."""

    def __init__(self, field: Field) -> None:
        self.field = field

    @cached_property
    def words(self) -> list[Value[str]]:
        """The words, each at its place."""
        if self.field.is_sequence:
            return [item.text() for item in self.field.items()]
        text = self.field.text().known
        return [Known(self.field, word) for word in text.split()] if text is not None else []

    def given(self, *names: str) -> Value[str] | None:
        """The last word that is one of these."""
        return next((word for word in reversed(self.words) if word.is_(*names)), None)

    @property
    def on(self) -> Value[bool]:
        """FSDP is on."""
        if self.field.is_unknown or any(word.unknown for word in self.words):
            return Unknown(self.field)
        if self.field.node is None:
            return Absent(self.field)
        plain = self.field.plain
        return Known(self.field, bool(self.words) if plain is None or isinstance(plain, str) else bool(plain))

    @property
    def strategy(self) -> Value[str]:
        """The last word that is a sharding strategy, as written."""
        strategies = (word for word in reversed(self.words) if (word.known or "").lower() in SHARDING_OPTIONS)
        return next(strategies, Absent(self.field))


class FsdpConfig:
    """The argument `fsdp_config`: a mapping, a JSON object as text, or the content of a JSON file.

    `field` is that mapping.
    """

    def __init__(self, field: Field, facts: ArgumentFacts, *, json: bool = False) -> None:
        self.field = field
        self.facts = facts
        self.json = json

    def get(self, key: str) -> Field:
        """The field of a key; where the prefix is stripped, a key with the prefix wins."""
        stripped = self.facts.fsdp_prefix or (self.json and self.facts.prefix_stripped_in_files)
        name, prefixed = self.facts.fsdp_names.get(key, key), self.field.get(f"fsdp_{key}")
        if stripped and name.startswith("fsdp_"):
            return self.field.get("")
        return prefixed if stripped and prefixed.node is not None else self.field.get(name)

    def read(self, key: str) -> Field:
        """The field of a key if the release reads the key, else an absent one."""
        return self.get(key) if key in self.facts.fsdp_keys else self.field.get("")

    @cached_property
    def version(self) -> Value[int]:
        """The FSDP version, as int() reads it."""
        field = self.get("version")
        plain = field.plain
        if field.node is None or field.is_unknown:
            return field.integer()
        try:
            return Known(field, int(plain)) if plain is not None else WrongType(field)
        except (ValueError, OverflowError):
            return WrongType(field)

    @property
    def runs_version(self) -> int | None:
        """The FSDP version that runs; None where it is not known or does not exist."""
        if "version" not in self.facts.fsdp_keys or self.version.absent:
            return self.facts.default_fsdp_version
        return self.version.known if self.version.is_(1, 2) else None

    def switch(self, key: str) -> Value[bool]:
        """A switch as the release reads it; WrongType where it raises."""
        field = self.read(key)
        form = self.facts.switch_form(key, self.runs_version)
        if field.node is None or field.is_unknown or form is None:
            return field.boolean()
        if form is SwitchForm.TRUTH:
            return Known(field, bool(field.plain) if isinstance(field.target, Scalar) else not _is_empty(field))
        word = str(field.plain).lower() if isinstance(field.target, Scalar) else ""
        if form is SwitchForm.TEXT and not isinstance(field.plain, str):
            return Unknown(field)
        return Known(field, word in TRUE_WORDS) if word in TRUE_WORDS | FALSE_WORDS else WrongType(field)

    @property
    def min_num_params(self) -> Field:
        """The size for the wrap policy."""
        return self.read("min_num_params")

    @property
    def has_size(self) -> bool:
        """A size above 0 is given."""
        return self.min_num_params.number().known_and(lambda number: number > 0)

    @property
    def has_classes(self) -> bool:
        """Layer classes are given."""
        return not self.read("transformer_layer_cls_to_wrap").is_absent

    @property
    def layer_classes(self) -> Value[list[str]]:
        """The layer classes; WrongType, at the item, where one is not a class name."""
        field = self.read("transformer_layer_cls_to_wrap")
        names: list[str] = []
        for item in field.items() if field.is_sequence else [field]:
            text = item.text()
            if text.known is None:
                return text.map(lambda name: [name])
            if any(not name or name == "None" or " " in name or "." in name for name in text.known.split(",")):
                return WrongType(item)
            names += text.known.split(",")
        return Known(field, names)


def _is_empty(field: Field) -> bool:
    return not field.items() and not list(field.entries())
