"""tools/mutate.py finds the conditions, and inverts one of them alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

mutate = pytest.importorskip("mutate", reason="mutants are forks, which this system has not")

SOURCE = """\
from __future__ import annotations

ON_IMPORT = 1 if len("a") == 1 else 2


def kind(number: int, words: list[str]) -> str:
    if number > 3 and words:
        return "many"
    while number > 2:
        number -= 1
    return ",".join(word for word in words if word) or ("none" if number else "zero")


later = lambda number: number == ON_IMPORT
"""


@pytest.fixture
def module(tmp_path: Path) -> Any:
    (tmp_path / "toy.py").write_text(SOURCE, encoding="utf-8")
    return mutate.Conditions([tmp_path / "toy.py"])


def _run(conditions: Any) -> dict[str, Any]:
    names: dict[str, Any] = {mutate.Wrapped.PROBE: conditions.probe}
    for code in conditions.code.values():
        exec(code, names)
    return names


def test_every_condition_inside_a_function_is_a_site(module: Any) -> None:
    assert [(site.line, site.text) for site in module.sites] == [
        (7, "number > 3 and words"),
        (7, "number > 3"),
        (7, "words"),
        (9, "number > 2"),
        (11, '",".join(word for word in words if word)'),
        (11, "word"),
        (11, '("none" if number else "zero")'.strip("()")),
        (11, "number"),
        (14, "number == ON_IMPORT"),
    ]


def test_nothing_changes_until_one_is_inverted(module: Any) -> None:
    names = _run(module)
    assert [names["kind"](4, ["a"]), names["kind"](1, ["a", "", "b"]), names["kind"](0, [])] == ["many", "a,b", "zero"]
    assert module.reached == set(range(8))
    module.inverted = 2
    assert names["kind"](4, ["a"]) == "a"
    module.inverted = 5
    assert names["kind"](1, ["a", "", "b"]) == "none"
    module.inverted = 8
    assert names["later"](1) is False


def test_the_modules_of_rules_and_of_the_rooms_below_are_found() -> None:
    found = {path.relative_to(mutate.PACKAGE).as_posix() for path in mutate.modules(mutate.PACKAGE)}
    rooms = {"reading/values.py", "training/fsdp_rules.py", "own_rules.py", "programs/trl/rules.py"}
    assert rooms <= found
    assert not found & {"rule.py", "engine.py", "programs/trl/program.py", "repository/files.py"}
