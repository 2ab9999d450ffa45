"""LLaMA-Factory: the dataclasses of its arguments."""

from __future__ import annotations

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
    return release
