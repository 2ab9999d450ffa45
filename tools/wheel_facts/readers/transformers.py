"""transformers: the training arguments, their words, the keys that are read of fsdp_config, the schedulers."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from wheel_facts.history import Attributes, Json, Release, Table
from wheel_facts.package import Package
from wheel_facts.source import Scope, plain

TRANSFORMERS_ENUMS = (
    "FSDPOption",
    "IntervalStrategy",
    "SaveStrategy",
    "EvaluationStrategy",
    "SchedulerType",
    "OptimizerNames",
    "HubStrategy",
    "DebugOption",
)


def read(package: Package) -> Release:
    """transformers: training_args.py, training_args_seq2seq.py, trainer_utils.py, trainer.py, optimization.py."""
    scope = Scope(
        package, ["training_args.py", "training_args_seq2seq.py", "trainer_utils.py", *package.names("debug_utils.py")]
    )
    release = Release()
    release.tables["TrainingArguments"] = scope.fields("training_args.py", "TrainingArguments")[0]
    release.tables["Seq2SeqTrainingArguments"] = scope.fields(
        "training_args_seq2seq.py", "Seq2SeqTrainingArguments", stop=["TrainingArguments"]
    )[0]
    for name in TRANSFORMERS_ENUMS:
        members = scope.enum("training_args.py", name)
        release.tables["choices:" + name] = plain(str(value) for value in members.values())
    read: set[str] = set()
    for module in package.names(r"training_args\.py|trainer\.py|trainer_utils\.py|integrations/fsdp\.py"):
        read |= mapping_reads(package.module(module), "fsdp_config")
    release.tables["fsdp_config"] = plain(read)
    release.tables["schedulers"] = schedulers(package, scope.enum("training_args.py", "SchedulerType"))
    return release


GIVEN = frozenset({"optimizer", "num_warmup_steps", "num_training_steps"})
"""What get_scheduler itself passes to a scheduler."""


def schedulers(package: Package, words: Mapping[str, Json]) -> Table:
    """By the word of lr_scheduler_type: the settings that its function takes from lr_scheduler_kwargs, and needs."""
    module = package.module("optimization.py")
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    found: Table = {}
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="TYPE_TO_SCHEDULER_FUNCTION")], value=ast.Dict(keys, values)):
                for key, value in zip(keys, values, strict=True):
                    if isinstance(key, ast.Attribute) and isinstance(value, ast.Name):
                        found[str(words[key.attr])] = _settings(functions[value.id])
    return found


def _settings(function: ast.FunctionDef) -> Attributes:
    names = [argument.arg for argument in function.args.args]
    required = names[: len(names) - len(function.args.defaults)]
    settings: Attributes = {"takes": [name for name in names if name not in GIVEN]}
    if needs := [name for name in required if name not in GIVEN]:
        settings["needs"] = list(needs)
    if function.args.kwarg:
        settings["open"] = True
    return settings


def mapping_reads(module: ast.Module, owner: str) -> set[str]:
    """The string keys that are read from a mapping called so."""

    def owned(node: ast.expr) -> bool:
        return ast.unparse(node).split(".")[-1] == owner

    found: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.For(target=ast.Name(id=variable), iter=ast.List() | ast.Tuple() as keys, body=body):
                names = [key.value for key in keys.elts if isinstance(key, ast.Constant) and isinstance(key.value, str)]
                inside = ast.walk(ast.Module(body, []))
                if any(_gets(call, variable) and owned(call.func.value) for call in inside):  # type: ignore[attr-defined]
                    found.update(names)
            case ast.Subscript(value=value, slice=ast.Constant(value=str(key)), ctx=ast.Load()) if owned(value):
                found.add(key)
            case ast.Call(
                func=ast.Attribute(value=value, attr="get" | "pop" | "setdefault"),
                args=[ast.Constant(value=str(key)), *_],
            ) if owned(value):
                found.add(key)
            case ast.Compare(left=ast.Constant(value=str(key)), ops=[ast.In() | ast.NotIn()], comparators=[value]) if (
                owned(value)
            ):
                found.add(key)
    return found


def _gets(node: ast.AST, variable: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Name(id=name), *_]):
            return name == variable
    return False
