"""No pattern is slow: every regular expression of the package, and every pattern that a repository can write."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import trainlint
from steps import Machine, TooManySteps, attacks

PACKAGE = Path(trainlint.__file__).parent
CALLS = ("match", "fullmatch", "search", "sub", "split", "finditer", "findall")
SHORT, LONG = 30, 120
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
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in CALLS:
                continue
            owner = node.func.value
            given: object = names.get(owner.id) if isinstance(owner, ast.Name) else None
            if given is re and node.args and isinstance(node.args[0], ast.Constant):
                flags = re.MULTILINE if "MULTILINE" in ast.unparse(node) else 0
                given = re.compile(node.args[0].value, flags)
            if isinstance(given, re.Pattern):
                text = given.pattern if isinstance(given.pattern, str) else given.pattern.decode("latin-1")
                mode = node.func.attr if node.func.attr in ("match", "fullmatch", "search") else "all"
                found.setdefault((text, given.flags & ~re.UNICODE, mode), f"{path.relative_to(PACKAGE)}:{node.lineno}")
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
