"""Data classes without the module dataclasses: they mean the same, and that module takes them for its own."""

from __future__ import annotations

import dataclasses
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainlint import records
from trainlint.findings import Finding, Span
from trainlint.records import NamedTuple, dataclass, field, replace

HEAVY = ("ast", "click", "dataclasses", "difflib", "inspect", "tomllib", "uuid")
"""Modules that a check of a job does not need."""


@dataclass(frozen=True)
class Point:
    """A point, with a note that does not count."""

    x: int
    y: int = 0
    note: str = field(default="", compare=False)
    tags: list[str] = field(default_factory=list, kw_only=True)


@dataclass(frozen=True)
class Named(Point):
    """A point with a name of its own."""

    name: str = "origin"


class Pair(NamedTuple):
    """Two numbers."""

    first: int
    second: int = 2

    @property
    def total(self) -> int:
        """Both together."""
        return self.first + self.second


def test_same_as_dataclasses() -> None:
    """What can be seen of a class that either decorator makes."""
    seen = []
    for make in (records._dataclass, dataclasses.dataclass):
        members = {"__annotations__": {"a": "int", "b": "str"}, "b": "b", "__module__": __name__}
        made: Any = make(frozen=True)(type("Seen", (), members))
        one = made(1)
        seen.append((repr(one), one == made(1, "b"), one == made(2), hash(one) == hash(made(1))))
    assert seen[0] == seen[1] == ("Seen(a=1, b='b')", True, False, True)


def test_members() -> None:
    point = Point(1)
    assert (point.x, point.y, point.note, point.tags) == (1, 0, "", [])
    assert Point(1).tags is not Point(1).tags
    assert Point(1, note="a") == Point(1, note="b") != Point(2)
    assert (Named(1, 2).name, Named(x=1, name="a").name) == ("origin", "a")


@pytest.mark.parametrize("arguments", [(), (1, 2, "", [], 5)])
def test_wrong_arguments(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Point(*arguments)


def test_unknown_and_repeated_arguments() -> None:
    make: Any = Point
    with pytest.raises(TypeError):
        make(1, z=3)
    with pytest.raises(TypeError):
        make(1, x=3)


def test_frozen() -> None:
    point: Any = Point(1)
    with pytest.raises(AttributeError):
        point.x = 2


def test_replace() -> None:
    assert replace(Point(1, 2), y=3) == dataclasses.replace(Point(1, 2), y=3) == Point(1, 3)
    with pytest.raises(TypeError):
        replace(Point(1, 2), z=3)  # type: ignore[call-arg]
    assert [one.name for one in dataclasses.fields(Point)] == ["x", "y", "note", "tags"]


def test_pickled() -> None:
    """Findings travel between processes; they have slots."""
    finding = Finding("a message", Span("a.yaml", 1, 1, 1, 2), 0, "a", "a")
    assert pickle.loads(pickle.dumps(finding)) == finding
    assert not hasattr(finding, "__dict__")


def test_tuples() -> None:
    pair = Pair(1)
    assert (pair, pair.total, pair._replace(second=5)) == ((1, 2), 3, (1, 5))
    assert pickle.loads(pickle.dumps(pair)) == pair


def test_a_check_imports_little(tmp_path: Path) -> None:
    """No module that is heavy and not needed: a hook waits for each."""
    job = Path(__file__).parent.parent / "fixtures" / "demo" / "jobs" / "llama-1b.yaml"
    (tmp_path / "job.yaml").write_bytes(job.read_bytes())
    script = (
        "import json, sys; sys.argv[1:] = ['check', 'job.yaml']\n"
        "from trainlint.__main__ import main\n"
        "try: main()\n"
        "finally: print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    loaded = set(json.loads(done.stderr.splitlines()[-1]))
    assert loaded & set(HEAVY) == set()
