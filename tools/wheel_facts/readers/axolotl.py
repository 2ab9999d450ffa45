"""Axolotl: the models of its config, deprecated fields, and the keys of its plugins."""

from __future__ import annotations

import ast
import re

from wheel_facts.history import Release
from wheel_facts.models import model_tree
from wheel_facts.package import Package
from wheel_facts.source import Scope, functions


def read(package: Package) -> Release:
    """Axolotl: utils/schemas/, and the configuration that its bundled plugins add (integrations/*/args.py)."""
    scope = Scope(package, package.names(r"utils/schemas/.+\.py"))
    release = Release()
    model_tree(scope, "utils/schemas/config.py", "AxolotlInputConfig", release)
    capabilities = scope.fields("utils/schemas/config.py", "AxolotlConfigWCapabilities", stop=["AxolotlInputConfig"])
    release.tables["AxolotlConfigWCapabilities"], bases = capabilities
    release.values["bases:AxolotlConfigWCapabilities"] = list(bases)
    plugins = Scope(package, package.names(r"integrations/.+\.py"))
    release.tables["plugin_args"] = {}
    for (module, name), node in plugins.classes.items():
        if name.endswith("Args") and any(ast.unparse(base) == "BaseModel" for base in node.bases):
            plugin = re.sub(r"^integrations/|/?(args|__init__)?\.py$", "", module)
            for key in plugins.fields(module, name)[0]:
                release.tables["plugin_args"].setdefault(key, {"plugin": plugin})
    deprecated = scope.find_class("utils/schemas/config.py", "DeprecatedParameters")
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
