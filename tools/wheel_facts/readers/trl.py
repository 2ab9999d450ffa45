"""TRL: the dataclasses that its parser can be given."""

from __future__ import annotations

import ast
import re

from wheel_facts.history import Release
from wheel_facts.package import Package
from wheel_facts.source import Scope

OLD_NAMES = {"SftScriptArguments": "SFTScriptArguments", "DpoScriptArguments": "DPOScriptArguments"}
"""How 0.8 called what later releases have under another name."""


def read(package: Package) -> Release:
    """TRL: the dataclasses of trainer/, scripts/, experimental/ and utils.py that its parser can be given."""
    # Of two classes with one name, that of the earlier pattern is the one that TRL's own scripts are given.
    patterns = (
        r"(commands/)?\w*utils\.py",
        r"scripts/utils\.py",
        r"scripts/.+\.py",
        r"trainer/(\w*config\w*|utils)\.py",
    )
    modules = dict.fromkeys(m for p in (*patterns, r"experimental/.+config\w*\.py") for m in package.names(p))
    scope = Scope(package, modules)
    configs: dict[str, str] = {}
    for (module, name), node in scope.classes.items():
        decorated = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
        if decorated and re.search("(Config|Arguments|Args)$", name) and not name.startswith("_"):
            configs.setdefault(name, module)
    release = Release()
    serving = scope.classes.get(("scripts/vllm_serve.py", "ScriptArguments"))
    if serving is not None:
        release.tables["VLLMServeArguments"], _ = scope.fields("scripts/vllm_serve.py", "ScriptArguments")
    for name, module in configs.items():
        table, (fields, bases) = OLD_NAMES.get(name, name), scope.fields(module, name, stop=configs.keys() - {name})
        if name == "PPOConfig" and not bases:
            continue  # Up to 0.11 it held no training arguments, and no command was given it.
        release.tables[table] = fields
        release.values["bases:" + table] = list(bases)
    return release
