"""Facts from the sources of a package, read with `ast` and never imported."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Iterator, Mapping

from wheel_facts.history import Attributes, Json, Table
from wheel_facts.package import Package


class Scope:
    """The classes, constants and imports of some modules of a package, by name."""

    def __init__(self, package: Package, modules: Iterable[str]) -> None:
        self.classes: dict[tuple[str, str], ast.ClassDef] = {}
        self.constants: dict[tuple[str, str], ast.expr] = {}
        self.imports: dict[tuple[str, str], tuple[str, str]] = {}
        self.modules = list(modules)
        for module in self.modules:
            for node in statements(package.module(module).body):
                if isinstance(node, ast.ClassDef):
                    self.classes[module, node.name] = node
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    self.constants[module, node.targets[0].id] = node.value
                elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
                    self.constants[module, node.target.id] = node.value
                elif isinstance(node, ast.ImportFrom) and node.module:
                    for alias in node.names:
                        self.imports[module, alias.asname or alias.name] = (node.module, alias.name)

    def _where(self, module: str, name: str, known: Mapping[tuple[str, str], ast.AST]) -> tuple[str, str] | None:
        if (module, name) in known:
            return module, name
        source, original = self.imports.get((module, name), ("", name))
        tail = source.replace(".", "/")
        homes = [key for key in known if key[1] == original]
        for key in homes:
            path = key[0].removesuffix(".py").removesuffix("/__init__")
            if tail and (tail == path or tail.endswith("/" + path) or path.endswith("/" + tail)):
                return key
        # A package's __init__ re-exports names of its modules.
        inside = [key for key in homes if tail and f"/{tail}/" in f"/{key[0]}"]
        if len(inside) == 1:
            return inside[0]
        return homes[0] if len(homes) == 1 else None

    def find_class(self, module: str, name: str) -> tuple[str, ast.ClassDef] | None:
        """The class that a name means in a module, with the module that defines it."""
        key = self._where(module, name, self.classes)
        return (key[0], self.classes[key]) if key else None

    def find_constant(self, module: str, name: str) -> tuple[str, ast.expr] | None:
        """The expression that a module-level name is bound to."""
        key = self._where(module, name, self.constants)
        return (key[0], self.constants[key]) if key else None

    def literal(self, module: str, node: ast.expr | None) -> Json:
        """The value of an expression of literals, constants and enum members; raises ValueError otherwise."""
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return value
            case ast.List() | ast.Tuple() | ast.Set():
                return [self.literal(module, element) for element in node.elts]
            case ast.Dict():
                return {
                    str(self.literal(module, key)): self.literal(module, value)
                    for key, value in zip(node.keys, node.values, strict=True)
                }
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                first, second = self.literal(module, left), self.literal(module, right)
                if isinstance(first, list) and isinstance(second, list):
                    return [*first, *second]
                if isinstance(first, str) and isinstance(second, str):
                    return first + second
            case ast.BinOp(op=ast.Pow() | ast.Sub() as operation, left=left, right=right):
                first, second = self.literal(module, left), self.literal(module, right)
                if isinstance(first, int) and isinstance(second, int) and second >= 0:
                    return first - second if isinstance(operation, ast.Sub) else int(first**second)
            case ast.Call(func=ast.Name(id="frozenset" | "set" | "tuple" | "list"), args=[argument]):
                return self.literal(module, argument)
            case ast.Name(id=name):
                constant = self.find_constant(module, name)
                if constant:
                    return self.literal(*constant)
            case ast.Attribute(value=ast.Name(id=name), attr=member):
                members = self.enum(module, name)
                if member in members:
                    return members[member]
        raise ValueError(ast.dump(node) if node else "nothing")

    def enum(self, module: str, name: str) -> dict[str, Json]:
        """The members of an enum class; empty for another class."""
        home = self.find_class(module, name)
        if not home or not any("Enum" in ast.unparse(base) for base in home[1].bases):
            return {}
        members: dict[str, Json] = {}
        for node in home[1].body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                try:
                    members[node.targets[0].id] = self.literal(home[0], node.value)
                except ValueError:
                    # Such as torchao's dtypes: a file names the member.
                    members[node.targets[0].id] = node.targets[0].id
        return members

    def fields(self, module: str, name: str, stop: Iterable[str] = ()) -> tuple[Table, list[str]]:
        """The fields of a dataclass or pydantic model with those of its bases, and its bases outside the scope."""
        home = self.find_class(module, name)
        if not home or name in stop:
            return {}, [name]
        where, node = home
        table: Table = {}
        outside: list[str] = []
        for base in reversed(node.bases):
            inherited, beyond = self.fields(where, ast.unparse(base).split(".")[-1].split("[")[0], stop)
            table |= inherited
            outside = beyond + outside
        for statement in statements(node.body):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                attributes = self._field(where, statement)
                if attributes is not None:
                    table[statement.target.id] = attributes
        for field_name in _converted_fields(node):
            if field_name in table:
                table[field_name] = {**table[field_name], "converted": True}
        return table, [base for base in dict.fromkeys(outside) if base not in ("BaseModel", "object", "ABC")]

    def _field(self, module: str, statement: ast.AnnAssign) -> Attributes | None:
        assert isinstance(statement.target, ast.Name)
        if statement.target.id.startswith("_") or "ClassVar" in ast.unparse(statement.annotation):
            return None
        if statement.target.id == "model_config" and isinstance(statement.value, ast.Call | ast.Dict):
            return None
        types: list[str] = []
        choices: list[Json] = []
        calls: list[ast.Call] = []
        self._type(module, statement.annotation, types, choices, calls)
        if isinstance(statement.value, ast.Call) and ast.unparse(statement.value.func) in ("field", "Field"):
            calls.append(statement.value)
        attributes: Attributes = {"type": "|".join(dict.fromkeys(types))}
        default: ast.expr | None = None if calls and calls[-1] is statement.value else statement.value
        factory: ast.expr | None = None
        for call in calls:
            for keyword in call.keywords:
                match keyword.arg:
                    case "init" if ast.unparse(keyword.value) == "False":
                        return None
                    case "default":
                        default = keyword.value
                    case "default_factory":
                        factory = keyword.value
                    case "ge" | "gt" | "le" | "lt" | "min_length" | "max_length" | "pattern" | "multiple_of":
                        self._note(attributes, keyword.arg, module, keyword.value)
                    case "alias" | "validation_alias":
                        names = [text.value for text in ast.walk(keyword.value) if isinstance(text, ast.Constant)]
                        attributes["aliases"] = [text for text in names if isinstance(text, str)]
                    case "metadata":
                        for key, value in items_of(keyword.value):
                            if key == "choices":
                                self._note(attributes, "choices", module, value)
                    case _:
                        pass
            if call.args and ast.unparse(call.func) == "Field":
                default = call.args[0]
        if choices:
            attributes["choices"] = list(dict.fromkeys(choices))
        if factory is not None:
            empty: dict[str, Json] = {"list": [], "dict": {}}
            made = empty.get(ast.unparse(factory))
            if isinstance(factory, ast.Lambda):
                self._note(attributes, "default", module, factory.body)
            elif made is not None:
                attributes["default"] = made
        elif default is None or ast.unparse(default) in ("...", "MISSING"):
            attributes["required"] = True
        else:
            self._note(attributes, "default", module, default)
        if attributes.get("default", ...) is None:
            del attributes["default"]
        return attributes

    def _note(self, attributes: Attributes, key: str, module: str, node: ast.expr) -> None:
        try:
            attributes[key] = self.literal(module, node)
        except ValueError:
            attributes.pop(key, None)
            if key == "default":
                attributes["computed"] = True

    def _type(
        self, module: str, node: ast.expr, types: list[str], choices: list[Json], calls: list[ast.Call], depth: int = 0
    ) -> None:
        match node:
            case ast.Constant(value=None):
                types.append("None")
            case ast.Constant(value=str(text)):
                self._type(module, ast.parse(text, mode="eval").body, types, choices, calls, depth)
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                self._type(module, left, types, choices, calls, depth)
                self._type(module, right, types, choices, calls, depth)
            case ast.Subscript(value=outer, slice=inner):
                parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                match ast.unparse(outer).split(".")[-1]:
                    case "Optional":
                        self._type(module, parts[0], types, choices, calls, depth)
                        types.append("None")
                    case "Union":
                        for part in parts:
                            self._type(module, part, types, choices, calls, depth)
                    case "Literal":
                        types.append("literal")
                        for part in parts:
                            choices.append(self.literal(module, part))
                    case "Annotated":
                        self._type(module, parts[0], types, choices, calls, depth)
                        calls.extend(part for part in parts[1:] if isinstance(part, ast.Call))
                    case name:
                        inside = []
                        for part in parts:
                            nested: list[str] = []
                            self._type(module, part, nested, choices, calls, depth)
                            inside.append("|".join(dict.fromkeys(nested)))
                        types.append(f"{name.lower() if name in _GENERICS else name}[{','.join(inside)}]")
            case ast.List(elts=parts):
                types.append("[" + ",".join(ast.unparse(part) for part in parts) + "]")
            case ast.Name(id=name) | ast.Attribute(attr=name):
                alias = self.find_constant(module, name) if depth < 5 else None
                if alias and isinstance(alias[1], ast.Subscript | ast.BinOp):
                    self._type(alias[0], alias[1], types, choices, calls, depth + 1)
                else:
                    types.append(name.lower() if name in _GENERICS else name)
            case _:
                types.append(ast.unparse(node))


def _converted_fields(model: ast.ClassDef) -> Iterator[str]:
    """The fields of a pydantic model that a validator may rewrite before their type is checked."""
    for function in functions(ast.Module(model.body, [])):
        for decorator in function.decorator_list:
            match decorator:
                case ast.Call(func=ast.Name(id="field_validator"), args=names, keywords=keywords):
                    if any(ast.unparse(keyword) in ("mode='before'", "mode='wrap'") for keyword in keywords):
                        yield from (str(name.value) for name in names if isinstance(name, ast.Constant))


_GENERICS = {"List", "Dict", "Tuple", "Set", "Type"}


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, also those in branches and blocks."""
    for node in body:
        if isinstance(node, ast.If):
            yield from statements(node.body)
            yield from statements(node.orelse)
        elif isinstance(node, ast.With):
            yield from statements(node.body)
        elif isinstance(node, ast.Try):
            yield from statements(node.body)
            for handler in node.handlers:
                yield from statements(handler.body)
        else:
            yield node


def items_of(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The entries of a written mapping whose keys are texts."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value, value


def plain(names: Iterable[str]) -> Table:
    """A table of names without attributes."""
    return {name: {} for name in sorted(names)}


def functions(module: ast.Module, *names: str) -> Iterator[ast.FunctionDef]:
    """The functions and methods of these names, or all of them."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and (not names or node.name in names):
            yield node


def texts_of(package: Package, pattern: str) -> dict[str, str]:
    """The text of some modules and of their functions, methods and classes, by place (`module.py:A.b`)."""

    def inside(body: list[ast.stmt], outer: str) -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
        for node in statements(body):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield outer + node.name, node
            if isinstance(node, ast.ClassDef):
                yield from inside(node.body, f"{outer}{node.name}.")

    found = {}
    for module in package.names(pattern):
        found[module] = package.text(module)
        lines = [line.rstrip() for line in found[module].splitlines()]
        for name, node in inside(package.module(module).body, ""):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[f"{module}:{name}"] = textwrap.dedent("\n".join(lines[first - 1 : node.end_lineno]))
    return found


def attributes_of(tree: ast.AST, owner: str) -> set[str]:
    """The attributes that are read from a variable, also with getattr."""
    found = set()
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute, ctx=ast.Load()) if name == owner:
                found.add(attribute)
            case ast.Call(
                func=ast.Name(id="getattr"), args=[ast.Name(id=name), ast.Constant(value=str(attribute)), *_]
            ) if name == owner:
                found.add(attribute)
    return found
