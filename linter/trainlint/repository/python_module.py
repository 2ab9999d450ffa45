"""What one file of Python code tells about configuration files; it is read with `ast` and never imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from trainlint.lazy import regex
from trainlint.records import dataclass

_HOLDERS = regex(r"(?:^|_)(?:args|arguments|config|cfg|conf|hparams)$")
_OPTION_CALLS = frozenset({"add_argument", "option", "Option", "DEFINE_string", "DEFINE_integer", "DEFINE_float"})


@dataclass(frozen=True)
class Class:
    """A class of the repository: the names of its bases, and its annotated fields with the parts of their types."""

    name: str
    bases: tuple[str, ...]
    fields: Mapping[str, frozenset[str]]
    defaults: Mapping[str, object]
    """The defaults of the fields that have one; an `ast` node stands for what is computed."""


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
    beside: frozenset[tuple[str, str]]
    """What such classes are given besides the mapping: `beta` of `TrainingArguments(**settings, beta=1)`."""
    keys: frozenset[str]
    """Keys that are read from mappings: `config["beta"]`, `config.get("beta")`."""
    lists: frozenset[tuple[str, frozenset[str] | None]]
    """The names to which a list of texts is given, with these texts; None where the list is computed."""
    compared: frozenset[str]
    """The texts that code compares something with: `value in ("auto", None)`."""
    given: frozenset[str]
    """Keys that are passed to a function behind a mapping: `set_where_auto(config, "beta", 1)`."""
    nulls_filled: frozenset[str]
    """Attributes that code sets where they are None: `if self.beta is None: self.beta = 1`."""


def parse(data: bytes) -> Module | None:
    """What a Python file tells; None if it cannot be parsed, or is nested too deeply to be read."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    with suppress(RecursionError):
        return _read(tree)
    return None


def _read(tree: ast.Module) -> Module:
    classes: list[Class] = []
    parsed: set[str] = set()
    options: set[str] = set()
    stored: set[str] = set()
    read: set[str] = set()
    parsers: set[str] = set()
    filled: set[str] = set()
    beside: set[tuple[str, str]] = set()
    keys: set[str] = set()
    calls: set[tuple[str, frozenset[str]]] = set()
    lists: set[tuple[str, frozenset[str] | None]] = set()
    compared: set[str] = set()
    given: set[str] = set()
    nulls_filled: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            bases = tuple(_last(base) for base in node.bases)
            classes.append(Class(node.name, bases, _fields(node), _defaults(node)))
        elif isinstance(node, ast.Call):
            name = _last(node.func)
            if len(node.args) > 2 and isinstance(node.args[0], ast.Name):
                given.update(_texts_of(node.args[1:2]))
            if name[:1].isupper() and any(keyword.arg is None for keyword in node.keywords):
                filled.add(name)
                beside.update((name, keyword.arg) for keyword in node.keywords if keyword.arg)
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
        elif isinstance(node, ast.If):
            asked = _asked_for_null(node.test)
            if asked:
                nulls_filled.update(asked & {key for part in node.body for key in _set_in(part)})
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
            keys_set = {key for target in targets for key in _stored(target)}
            stored.update(keys_set)
            if isinstance(node.value, ast.IfExp):
                nulls_filled.update(keys_set & _asked_for_null(node.value.test))
            elif isinstance(node.value, ast.BoolOp) and isinstance(node.value.op, ast.Or):
                nulls_filled.update(keys_set & {_last(node.value.values[0])})
    return Module(
        classes=tuple(classes),
        calls=frozenset(calls),
        parsed=frozenset(parsed),
        options=frozenset(options),
        stored=frozenset(stored),
        read=frozenset(read),
        parsers=frozenset(parsers),
        filled=frozenset(filled),
        beside=frozenset(beside),
        keys=frozenset(keys),
        lists=frozenset(lists),
        compared=frozenset(compared),
        given=frozenset(given),
        nulls_filled=frozenset(nulls_filled),
    )


def _is_parser(name: str) -> bool:
    """A class or function that reads arguments: `HfArgumentParser`, `TrlParser`, `parse`."""
    kind = name.removesuffix("Parser")
    return name in ("cli", "parse") or (
        kind != name and (kind.endswith(("Argument", "Arguments", "Arg", "Trl", "H4")) or "Hf" in kind)
    )


def _fields(node: ast.ClassDef) -> dict[str, frozenset[str]]:
    return {name: frozenset(_alternatives(statement.annotation)) for name, statement in _annotated(node)}


def _defaults(node: ast.ClassDef) -> dict[str, object]:
    """The defaults that a class gives its fields: `beta: int = 1`, `beta: int = field(default=1)`."""
    given = ((name, _default(statement.value)) for name, statement in _annotated(node) if statement.value is not None)
    return {name: _constant(value) for name, value in given if value is not None}


def _annotated(node: ast.ClassDef) -> Iterator[tuple[str, ast.AnnAssign]]:
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, statement


def _default(value: ast.expr) -> ast.expr | None:
    """What stands for a field's default; None where a call to `field` gives none."""
    if not isinstance(value, ast.Call) or _last(value.func) not in ("field", "Field"):
        return value
    given = {keyword.arg: keyword.value for keyword in value.keywords}
    first = value.args[0] if value.args else None
    return next((given[name] for name in ("default", "default_factory") if name in given), first)


def _constant(value: ast.expr) -> object:
    """A constant, also a negative number; the node itself for any other expression."""
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) and isinstance(value.operand, ast.Constant):
        number = value.operand.value
        return -number if isinstance(number, (int, float)) else value
    return value.value if isinstance(value, ast.Constant) else value


def _alternatives(annotation: ast.expr) -> Iterator[str]:
    """The outer parts of a type: `int`, `list[str]` and `None` of `Optional[Union[int, List[str]]]`."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except (SyntaxError, ValueError, MemoryError):
            return
    if isinstance(annotation, ast.BinOp):
        yield from _alternatives(annotation.left)
        yield from _alternatives(annotation.right)
    elif isinstance(annotation, ast.Subscript) and _last(annotation.value) in ("Optional", "Union", "Annotated"):
        kind, inner = _last(annotation.value), annotation.slice
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        for part in parts[:1] if kind == "Annotated" else parts:
            yield from _alternatives(part)
        yield from ["None"] if kind == "Optional" else []
    else:
        text = ast.unparse(annotation).replace(" ", "").removeprefix("typing.")
        yield text[:1].lower() + text[1:] if text.startswith(("List", "Dict")) else text


def _asked_for_null(test: ast.expr) -> set[str]:
    """The attributes that a condition asks for None: `self.beta is None`, `not args.beta`."""
    found: set[str] = set()
    for node in ast.walk(test):
        if isinstance(node, ast.Compare) and isinstance(node.comparators[0], ast.Constant):
            found |= {_last(node.left)} if node.comparators[0].value is None else set()
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found.add(_last(node.operand))
    return found - {""}


def _set_in(statement: ast.stmt) -> Iterator[str]:
    """The attributes that a statement sets, also in what is inside it."""
    return (
        node.attr for node in ast.walk(statement) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
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
