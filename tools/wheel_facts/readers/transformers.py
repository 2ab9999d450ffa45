"""transformers: the training arguments, the words that they take, the keys that are read of fsdp_config."""

from __future__ import annotations

import ast

from wheel_facts.history import Release
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
    """transformers: training_args.py, training_args_seq2seq.py, trainer_utils.py, trainer.py."""
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
    return release


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
