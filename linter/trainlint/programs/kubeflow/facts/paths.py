"""Tables of facts by the path of a value: `ports[].name`, where `[]` means every item of a list."""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

T = TypeVar("T")


class Paths(dict[str, T]):
    """A table by path. Of its many rows a value has few, so they are looked up by the first step of their path."""

    @cached_property
    def by_step(self) -> dict[str, list[tuple[str, T]]]:
        """The rows whose paths begin with a key."""
        found: dict[str, list[tuple[str, T]]] = {}
        for path, row in self.items():
            found.setdefault(path.partition(".")[0].removesuffix("[]"), []).append((path, row))
        return found
