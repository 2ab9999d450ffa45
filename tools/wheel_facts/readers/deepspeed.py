"""DeepSpeed: the models of its config, its optimizers and schedulers with their arguments, and what it has removed."""

from __future__ import annotations

import ast

from wheel_facts.history import Release, Table
from wheel_facts.models import model_tree
from wheel_facts.package import Package
from wheel_facts.source import Scope, functions, plain

MODELS = {
    "runtime/zero/config.py": ("DeepSpeedZeroConfig",),
    "runtime/precision_config.py": ("DeepSpeedFP16Config", "DeepSpeedBF16Config"),
    "runtime/config.py": ("HybridEngineConfig",),
    "runtime/tensor_parallel/config.py": ("TPTrainingConfig",),
    "monitor/config.py": ("DeepSpeedMonitorConfig",),
    "comm/config.py": ("CommsLoggerConfig",),
    "compile/config.py": ("CompileConfig",),
    "utils/config.py": ("DeepSpeedThroughputTimerConfig",),
    "inference/config.py": ("WeightQuantConfig",),
}
"""The pydantic models that sections of the config are read with, by module."""

CALLED = {
    "ops/adam/fused_adam.py": ("FusedAdam",),
    "ops/adam/cpu_adam.py": ("DeepSpeedCPUAdam",),
    "ops/adagrad/cpu_adagrad.py": ("DeepSpeedCPUAdagrad",),
    "ops/lamb/fused_lamb.py": ("FusedLamb",),
    "ops/lion/fused_lion.py": ("FusedLion",),
    "ops/lion/cpu_lion.py": ("DeepSpeedCPULion",),
    "runtime/lr_schedules.py": ("LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR"),
}
"""The classes that are called with the parameters in the config, by module."""


def read(package: Package) -> Release:
    """DeepSpeed: models of its config.py modules, optimizers in ops, runtime/config.py, runtime/lr_schedules.py."""
    config = "runtime/config.py"
    others = ("runtime/zero/offload_config.py", "runtime/zero/leaf_module_config.py", "runtime/constants.py")
    zenflow = package.names(r"runtime/zenflow/zenflow_config\.py")
    comm = package.names(r"comm/constants\.py")
    scope = Scope(package, [*MODELS, *others, *zenflow, *comm])
    release = Release()
    for module, names in MODELS.items():
        for name in names:
            model_tree(scope, module, name, release)
    for model, fields in release.tables.items():
        _deprecated(scope, model, fields)
    for module, names in CALLED.items():
        for name in names:
            release.tables["arguments:" + name] = _arguments(package.module(module), name)
    constants = {
        "choices:optimizer": "DEEPSPEED_OPTIMIZERS",
        "removed": "_REMOVED_TOP_LEVEL_CONFIG_KEYS",
        "removed_zero": "_REMOVED_ZERO_CONFIG_KEYS",
    }
    for table, name in constants.items():
        constant = scope.find_constant(config, name)
        node = constant[1] if constant else None
        if isinstance(node, ast.Dict):
            release.tables[table] = plain(str(scope.literal(config, key)) for key in node.keys)
        else:
            found = scope.literal(config, node) if node else []
            release.tables[table] = plain(str(word) for word in found) if isinstance(found, list) else {}
    return release


def _deprecated(scope: Scope, name: str, table: Table) -> None:
    """The fields that stand for another one: `new` is its name, and `sets` is false where it is only named."""
    for (_, known), node in scope.classes.items():
        for statement in node.body if known == name else ():
            if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
                continue
            words = {
                key.value: value.value
                for part in ast.walk(statement)
                if isinstance(part, ast.Dict)
                for key, value in zip(part.keys, part.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
            }
            field = table.get(statement.target.id)
            new = words.get("new_param")
            if field is not None and words.get("deprecated") is True and isinstance(new, str):
                field["new"] = new
                if words.get("set_new_param") is False:
                    field["sets"] = False


def _arguments(module: ast.Module, name: str) -> Table:
    """The arguments of a class behind its first, which is the optimizer or the parameters."""
    found: Table = {}
    for node in module.body:
        if not (isinstance(node, ast.ClassDef) and node.name == name):
            continue
        for function in functions(ast.Module(node.body, []), "__init__"):
            arguments = function.args.args[2:]
            needed = len(arguments) - len(function.args.defaults)
            for index, argument in enumerate(arguments):
                found[argument.arg] = {"required": True} if index < needed else {}
    return found
