"""What one file of Python code tells about configuration files; it is read with `ast` and never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from trainlint.lazy import regex
from trainlint.records import dataclass

_HOLDERS = regex(r"(?:^|_)(?:args|arguments|config|cfg|conf|hparams)$")
_OPTION_CALLS = frozenset({"add_argument", "option", "Option", "DEFINE_string", "DEFINE_integer", "DEFINE_float"})


@dataclass(frozen=True)
class Class:
    """A class of the repository: the names of its bases and of its annotated or assigned fields."""

    name: str
    bases: tuple[str, ...]
    fields: frozenset[str]


@dataclass(frozen=True)
class Module:
    """What one parsed Python file tells."""

    classes: tuple[Class, ...]
    calls: frozenset[tuple[str, frozenset[str]]]
    """The methods that are called on parsers (`parse_…`), each with the names of its keyword arguments."""
    parsed: frozenset[str]
    """The classes that are passed to an argument parser."""
    options: frozenset[str]
    """The options that are added to parsers."""
    stored: frozenset[str]
    """Keys that are stored in mappings or attributes."""
    read: frozenset[str]
    """Arguments that code reads by name: `args.beta`, `training_args.beta`, `self.config.beta`."""
    parsers: frozenset[str]
    """The argument parsers that are made: `TrlParser`, `HfArgumentParser`."""
    filled: frozenset[str]
    """The classes that are made of a mapping: `TrainingArguments(**settings)`."""
    keys: frozenset[str]
    """Keys that are read from mappings: `config["beta"]`, `config.get("beta")`."""
    lists: frozenset[tuple[str, frozenset[str] | None]]
    """The names to which a list of texts is given, with these texts; None where the list is computed."""
    compared: frozenset[str]
    """The texts that code compares something with: `value in ("auto", None)`."""
    given: frozenset[str]
    """Keys that are passed to a function behind a mapping: `set_where_auto(config, "beta", 1)`."""


def parse(data: bytes) -> Module | None:
    """What a Python file tells; None if it cannot be parsed."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    classes: list[Class] = []
    parsed: set[str] = set()
    options: set[str] = set()
    stored: set[str] = set()
    read: set[str] = set()
    parsers: set[str] = set()
    filled: set[str] = set()
    keys: set[str] = set()
    calls: set[tuple[str, frozenset[str]]] = set()
    lists: set[tuple[str, frozenset[str] | None]] = set()
    compared: set[str] = set()
    given: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            classes.append(Class(node.name, tuple(_last(base) for base in node.bases), _fields(node)))
        elif isinstance(node, ast.Call):
            name = _last(node.func)
            if len(node.args) > 2 and isinstance(node.args[0], ast.Name):
                given.update(_texts_of(node.args[1:2]))
            if name[:1].isupper() and any(keyword.arg is None for keyword in node.keywords):
                filled.add(name)
            if name.startswith("parse_"):
                calls.add((name, frozenset(keyword.arg or "" for keyword in node.keywords)))
            if name in ("get", "pop", "setdefault"):
                keys.update(_texts_of(node.args[:1]))
            if name in _OPTION_CALLS:
                options.update(_flag(text) for text in _texts_of(node.args) if text.startswith("-") or "_" in text)
            elif _is_parser(name):
                parsed.update(_class_names(node))
                parsers.update({name} - {"ArgumentParser", "cli", "parse"})
            elif name in ("update", "dict", "merge", "setdefault"):
                stored.update(keyword.arg for keyword in node.keywords if keyword.arg)
                stored.update(_texts_of(node.args))
                stored.update(key for arg in node.args if isinstance(arg, ast.Dict) for key in _texts_of(arg.keys))
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            compared.update(_texts_of([*sides, *(item for side in sides for item in getattr(side, "elts", ()))]))
        elif isinstance(node, ast.Attribute) and _HOLDERS.search(_last(node.value)):
            read.add(node.attr)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            keys.update(_texts_of([node.slice]))
        elif isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            lists.update((target.id, _listed(node.value)) for target in targets if isinstance(target, ast.Name))
            stored.update(key for target in targets for key in _stored(target))
    return Module(
        classes=tuple(classes),
        calls=frozenset(calls),
        parsed=frozenset(parsed),
        options=frozenset(options),
        stored=frozenset(stored),
        read=frozenset(read),
        parsers=frozenset(parsers),
        filled=frozenset(filled),
        keys=frozenset(keys),
        lists=frozenset(lists),
        compared=frozenset(compared),
        given=frozenset(given),
    )


def _is_parser(name: str) -> bool:
    """A class or function that reads arguments: `HfArgumentParser`, `TrlParser`, `parse`."""
    kind = name.removesuffix("Parser")
    return name in ("cli", "parse") or (
        kind != name and (kind.endswith(("Argument", "Arguments", "Arg", "Trl", "H4")) or "Hf" in kind)
    )


def _fields(node: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        statement.target.id
        for statement in node.body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    )


def _class_names(node: ast.Call) -> Iterator[str]:
    arguments = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("dataclass_types", "dataclasses"))]
    for argument in arguments:
        items = argument.elts if isinstance(argument, (ast.Tuple, ast.List)) else [argument]
        yield from (name for item in items if (name := _last(item)))


def _last(node: ast.expr) -> str:
    """The last word of a dotted name; empty for anything else."""
    if isinstance(node, ast.Subscript):
        return _last(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _texts_of(nodes: Sequence[ast.expr | None]) -> Iterator[str]:
    return (node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _listed(node: ast.expr | None) -> frozenset[str] | None:
    """The texts of a list that is written out; None for any other value."""
    if not isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return None
    texts = frozenset(_texts_of(node.elts))
    return texts if len(texts) == len(node.elts) else None


def _flag(text: str) -> str:
    return text.lstrip("-").replace("-", "_")


def _stored(target: ast.expr) -> Iterator[str]:
    if isinstance(target, ast.Subscript):
        yield from _texts_of([target.slice])
    elif isinstance(target, ast.Attribute):
        yield target.attr
    elif isinstance(target, (ast.Tuple, ast.List)):
        for item in target.elts:
            yield from _stored(item)
