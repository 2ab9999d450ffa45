"""No pattern is slow: every regular expression of the package, and every pattern that a repository can write."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import trainlint
from steps import Machine, TooManySteps, attacks
from trainlint.programs.kubeflow.facts.crds import schema
from trainlint.programs.kubeflow.facts.release import RELEASES
from trainlint.programs.table import PROGRAMS
from trainlint.repository.patterns import Pattern

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.facts.crds import Kind

PACKAGE = Path(trainlint.__file__).parent
CALLS = ("match", "fullmatch", "search", "sub", "split", "finditer", "findall")
SHORT, LONG = 20, 80
OWN_DATA = ("training/limits.py", "training/pydantic_types.py:231")
"""What these read is part of the package."""
LINEAR = 6
"""Four times the characters take four times the steps; a square takes sixteen."""

Use = tuple[str, int, str]
"""A pattern, its flags, and how it is used."""


def uses() -> dict[Use, str]:
    """Every pattern of the package with its calls, and where one is."""
    found: dict[Use, str] = {}
    for info in pkgutil.walk_packages([str(PACKAGE)], "trainlint."):
        if not info.name.endswith("__main__"):
            importlib.import_module(info.name)
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        if path.name == "__main__.py":
            continue
        names = vars(importlib.import_module(module))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                not isinstance(node, ast.Call)
                or not isinstance(node.func, ast.Attribute)
                or node.func.attr not in CALLS
            ):
                continue
            owner = node.func.value
            given: object = names.get(owner.id) if isinstance(owner, ast.Name) else None
            if given is re and node.args and isinstance(node.args[0], ast.Constant):
                flags = re.MULTILINE if "MULTILINE" in ast.unparse(node) else 0
                given = re.compile(str(node.args[0].value), flags)
            if isinstance(given, re.Pattern):
                text = given.pattern if isinstance(given.pattern, str) else given.pattern.decode("latin-1")
                mode = node.func.attr if node.func.attr in ("match", "fullmatch", "search") else "all"
                found.setdefault((text, given.flags & ~re.UNICODE, mode), f"{path.relative_to(PACKAGE)}:{node.lineno}")
    commands = {reader.command.marker for program in PROGRAMS.values() for reader in program.load().readers}
    sure = {pattern for program in PROGRAMS.values() if isinstance(program.sure, tuple) for pattern in program.sure}
    markers = {*commands, *sure, *(program.marker for program in PROGRAMS.values())}
    found.update({(pattern, 0, "search"): f"marker {pattern[:20]}" for pattern in markers})
    found.update({(pattern, 0, "fullmatch"): f"CRD {pattern[:20]}" for pattern in _crd_patterns()})
    return {use: place for use, place in found.items() if not place.startswith(OWN_DATA)}


def _crd_patterns() -> set[str]:
    """The patterns in the structures of Kubeflow's objects."""
    kinds: tuple[Kind, ...] = ("TrainJob", "TrainingRuntime")
    found: set[str] = set()
    nodes = [schema(release, kind) for release in RELEASES for kind in kinds]
    while nodes:
        node = nodes.pop()
        found.update([node.pattern] if node.pattern else [])
        nodes += [*node.properties.values(), *(child for child in (node.items, node.values) if child is not None)]
    return found


USES = uses()


def worst(machine: Machine, length: int, mode: str, limit: int) -> tuple[int, str]:
    """The most steps that an attack of a length takes, and its beginning; no more than the limit are counted."""
    machine.limit = limit
    most = (0, "")
    for attack in attacks(machine, length):
        try:
            most = max(most, (machine.count(attack, mode), attack[:40]))
        except TooManySteps:
            return machine.steps, attack[:40]
    return most


@pytest.mark.parametrize("use", USES, ids=USES.get)
def test_a_pattern_is_linear(use: Use) -> None:
    pattern, flags, mode = use
    machine = Machine(pattern, flags)
    few, _ = worst(machine, SHORT, mode, 10**6)
    many, attack = worst(machine, LONG, mode, LINEAR * few + 1)
    assert many <= LINEAR * few, attack


WRITTEN = [
    f"{'*a' * 19}*b",
    f"{'*' * 19}b",
    f"*{'a' * 60}b",
    f"{'a*' * 10}/{'*a' * 9}*b",
    f"{'**/' * 9}b",
    f"{'**/a/' * 9}b",
    f"{'**/*a*/' * 4}b",
    f"{'**/*/' * 6}*b",
    f"**/{'*/' * 17}b",
    f"{'[!b]*' * 19}b",
    f"{'?*' * 19}/b",
]
"""Patterns that a repository can have in its settings."""
NAMES = ("a", "a/", "ab", "aa/", "ba/", "/", "a" * 7 + "/")


@pytest.mark.parametrize("written", WRITTEN)
def test_what_a_repository_can_write_is_linear(written: str) -> None:
    pattern = Pattern.of(written)
    assert pattern is not None
    for expression in (pattern.itself, pattern.below):
        assert expression is not None
        machine = Machine(expression.pattern)
        for name in NAMES:
            few, many = (machine.count((name * length)[:length], "match") for length in (300, 1200))
            assert many <= LINEAR * few, name
