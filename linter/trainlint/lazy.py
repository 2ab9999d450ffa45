"""Regular expressions that are compiled when first used: a run needs few of them, and each costs a start 0.2 ms."""

from __future__ import annotations

import re
from typing import AnyStr, Generic, cast


class _Lazy(Generic[AnyStr]):
    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self._written: tuple[AnyStr, int] = pattern, flags

    def __getattr__(self, name: str) -> object:
        """An attribute of the compiled pattern; the next time it is found without this."""
        pattern, flags = self._written
        value = getattr(re.compile(pattern, flags), name)
        setattr(self, name, value)
        return value


def regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, put off until the pattern is used."""
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
