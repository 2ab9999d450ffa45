"""Axolotl: the models of its config, deprecated fields, and its plugins with their models."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheel_facts.history import Attributes, Release
from wheel_facts.models import model_tree
from wheel_facts.package import Package
from wheel_facts.source import Scope, functions

SCHEMAS = r"utils/(schemas|config/models/input/v0_4_1)"
"""Where the models are; before 0.8 in the second folder."""


def read(package: Package) -> Release:
    """Axolotl: utils/schemas/, and the plugins of integrations/ with the configuration that each adds."""
    scope = Scope(package, package.names(rf"{SCHEMAS}/.+\.py"))
    (config, _), *_ = (place for place in scope.classes if place[1] == "AxolotlInputConfig")
    release = Release()
    model_tree(scope, config, "AxolotlInputConfig", release)
    capabilities = scope.fields(config, "AxolotlConfigWCapabilities", stop=["AxolotlInputConfig"])
    release.tables["AxolotlConfigWCapabilities"], bases = capabilities
    release.values["bases:AxolotlConfigWCapabilities"] = list(bases)
    _read_plugins(package, release)
    deprecated = scope.find_class(config, "DeprecatedParameters")
    release.tables["deprecated"] = {}
    if deprecated:
        fields = scope.fields(deprecated[0], "DeprecatedParameters")[0]
        for name in fields:
            bodies = [
                ast.unparse(function)
                for function in functions(ast.Module(deprecated[1].body, []))
                if any(f"'{name}'" in ast.unparse(decorator) for decorator in function.decorator_list)
            ]
            refused = any("raise " in body for body in bodies)
            release.tables["deprecated"][name] = {"effect": "error" if refused else "warning"}
    return release


def _read_plugins(package: Package, release: Release) -> None:
    """Each plugin under the names that a file can give it, with its model and the adapters that it registers."""
    scope = Scope(package, package.names(rf"({SCHEMAS}|integrations)/.+\.py"))
    release.tables["plugins"] = {}
    for (module, name), node in scope.classes.items():
        if name != "BasePlugin" and not any(ast.unparse(base).endswith("BasePlugin") for base in node.bases):
            continue
        attributes: Attributes = {}
        model = next(_texts(node, "get_input_args"), "").rpartition(".")[2]
        home = scope.find_class(module, model) if model else None
        if home:
            attributes["args"] = model
            model_tree(scope, home[0], model, release)
            _mark_converted(scope, model, release)
        adapters = [*_texts(node, "get_adapter_capabilities")]
        if adapters:
            attributes["adapters"] = [*adapters]
        for place in (module, *_reexporting(package, scope, module, name)):
            release.tables["plugins"][f"{_dotted(place)}.{name}"] = attributes


def _texts(plugin: ast.ClassDef, method: str) -> Iterator[str]:
    """The texts that a method of a plugin returns, apart from its docstring."""
    for function in functions(ast.Module(plugin.body, []), method):
        for statement in function.body:
            if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                constants = (node.value for node in ast.walk(statement) if isinstance(node, ast.Constant))
                yield from (text for text in constants if isinstance(text, str))


def _mark_converted(scope: Scope, model: str, release: Release) -> None:
    """Fields of the models below a plugin's that their validators rewrite before the types are checked."""
    for spec in release.tables[model].values():
        for (_, name), node in scope.classes.items():
            if name in str(spec["type"]).split("|") and name in release.tables:
                for target in _assigned_before(node) & release.tables[name].keys():
                    release.tables[name][target] = {**release.tables[name][target], "converted": True}


def _assigned_before(model: ast.ClassDef) -> set[str]:
    found = set()
    for function in functions(ast.Module(model.body, [])):
        if any("model_validator(mode='before')" in ast.unparse(decorator) for decorator in function.decorator_list):
            found.update(re.findall(r"data\['(\w+)'\] = ", ast.unparse(function)))
    return found


def _reexporting(package: Package, scope: Scope, module: str, name: str) -> Iterator[str]:
    """The packages around a module that have a name of it, also one that is imported when it is asked for."""
    for place in scope.modules:
        lazily = "def __getattr__" in package.text(place) and f'"{name}"' in package.text(place)
        around = place.endswith("/__init__.py") and module.startswith(place.removesuffix("__init__.py"))
        if around and place != module and ((place, name) in scope.imports or lazily):
            yield place


def _dotted(module: str) -> str:
    """`liger` for integrations/liger/__init__.py."""
    return module.removeprefix("integrations/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
