"""Where the time of a run goes: `--timings`."""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterator
from cProfile import Profile
from pathlib import Path
from pstats import Stats
from typing import TypeVar

from trainlint.progress import Progress
from trainlint.rule import known_rules

T = TypeVar("T")

_MOST = 8
"""How many parts, rules and files are told."""


class Timings:
    """Where the time of a run goes: by part of trainlint, by rule and by file.

    Python's profiler counts, which slows the run down; what it says is how the parts compare.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._profile = Profile()

    def of(self, run: Callable[[], T]) -> T:
        """The result of a function, which is measured."""
        return self._profile.runcall(run)

    def lines(self) -> Iterator[str]:
        """The parts that take most, each with its seconds."""
        stats = Stats(self._profile).stats  # type: ignore[attr-defined]
        parts: Counter[str] = Counter()
        rules: Counter[str] = Counter()
        checks = {
            (code.co_filename, code.co_firstlineno): f"{rule.code} {rule.name}"
            for rule in known_rules()
            for code in [inspect.unwrap(rule.check).__code__]
        }
        for (file, line, _), (_, _, own, total, _) in stats.items():
            parts[_part(file)] += own
            if (file, line) in checks:
                rules[checks[file, line]] += total
        yield f"timings in seconds, with a profiler, which slows the run: {sum(parts.values()):.2f} in all"
        ends = [at for at, _ in self._progress.begun[1:]] + [time.perf_counter()]
        files = Counter({path: end - at for (at, path), end in zip(self._progress.begun, ends, strict=True)})
        for title, seconds in (("parts", parts), ("rules", rules), ("files", files)):
            for name, spent in seconds.most_common(_MOST):
                yield f"{title}: {spent:7.3f} {name}"


def _part(file: str) -> str:
    """The room of the house that a module is in; what else Python runs is together."""
    try:
        parts = Path(file).relative_to(Path(__file__).parent).with_suffix("").parts
    except ValueError:
        return "Python and libraries"
    return "/".join(parts[:2]) if parts[0] == "programs" else parts[0]
