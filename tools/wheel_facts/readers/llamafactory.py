"""LLaMA-Factory: the dataclasses of its arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheel_facts.history import Release
from wheel_facts.package import Package
from wheel_facts.source import Scope, plain

ARGUMENTS = ("ModelArguments", "DataArguments", "TrainingArguments", "FinetuningArguments", "GeneratingArguments")


def read(package: Package) -> Release:
    """LLaMA-Factory: hparams/; its training arguments go on in transformers' Seq2SeqTrainingArguments."""
    scope = Scope(package, package.names(r"hparams/\w+\.py|extras/constants\.py"))
    release = Release()
    for name in (*ARGUMENTS, "EvaluationArguments"):
        homes = [module for module, known in scope.classes if known == name]
        table, outside = scope.fields(homes[0], name) if homes else ({}, [])
        release.tables[name] = table
        release.values["bases:" + name] = list(outside)
    types = {str(attributes.get("type")) for fields in release.tables.values() for attributes in fields.values()}
    for module, known in scope.classes:
        members = scope.enum(module, known)
        if members and any(known in text for text in types):
            release.tables["choices:" + known] = plain(str(value) for value in members.values())
    release.tables["templates"] = plain(_templates(package))
    return release


def _templates(package: Package) -> Iterator[str]:
    """The chat templates: the names that data/template.py registers."""
    for module in package.names(r"data/template\.py"):
        for node in ast.walk(package.module(module)):
            match node:
                case ast.Call(func=ast.Name(id="register_template" | "_register_template"), keywords=keywords):
                    yield from (
                        keyword.value.value
                        for keyword in keywords
                        if keyword.arg == "name"
                        and isinstance(keyword.value, ast.Constant)
                        and isinstance(keyword.value.value, str)
                    )
