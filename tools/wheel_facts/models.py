"""Trees of pydantic models, as tables of a release."""

from __future__ import annotations

import ast
import re

from wheel_facts.history import Release
from wheel_facts.source import Scope, plain


def model_tree(scope: Scope, module: str, name: str, release: Release) -> None:
    """A pydantic model and all models below it as tables of a release, with the words of their enums."""
    home = scope.find_class(module, name)
    if home is None or name in release.tables or not scope.fields(module, name)[0]:
        return
    where, node = home
    release.tables[name] = scope.fields(where, name)[0]
    for statement in node.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "model_config":
            extra = re.search(r"extra['\"]?\s*[=:]\s*['\"](\w+)", ast.unparse(statement.value))
            if extra:
                release.values["extra:" + name] = extra[1]
    for attributes in release.tables[name].values():
        for nested in re.findall(r"\w+", str(attributes["type"])):
            if scope.enum(where, nested):
                members = scope.enum(where, nested).values()
                release.tables.setdefault("choices:" + nested, plain(str(value) for value in members))
            elif nested != name:
                model_tree(scope, where, nested, release)
                base_home = _field_home(scope, where, name, nested)
                if base_home:
                    model_tree(scope, base_home, nested, release)


def _field_home(scope: Scope, module: str, name: str, nested: str) -> str | None:
    """The module among a model's bases in which a nested model's name has a meaning."""
    home = scope.find_class(module, name)
    if home is None:
        return None
    for base in home[1].bases:
        found = scope.find_class(home[0], ast.unparse(base))
        if found and scope.find_class(found[0], nested):
            return found[0]
        deeper = _field_home(scope, home[0], ast.unparse(base), nested) if found else None
        if deeper:
            return deeper
    return None
