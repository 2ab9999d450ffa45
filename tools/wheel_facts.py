"""Write the release facts in linter/trainlint/programs/ from the packages that the programs were released as.

    python tools/wheel_facts.py --cache DIR [--download] [PROGRAM ...]

Each release is read with `ast`: nothing of it is imported. With --download, missing packages are fetched into the
cache directory with pip. The format of the written files is described in linter/trainlint/training/declarations.py.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from email.parser import Parser
from pathlib import Path

FACTS = Path(__file__).resolve().parent.parent / "linter" / "trainlint" / "programs"

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Attributes = dict[str, Json]
Table = dict[str, Attributes]


@dataclass
class Release:
    """What one release says: tables of names with attributes, and single values."""

    tables: dict[str, Table] = field(default_factory=dict)
    values: dict[str, Json] = field(default_factory=dict)


# -- packages ----------------------------------------------------------------------------------------------------


def download(distribution: str, version: str, cache: Path, *, sdist: bool) -> None:
    """Fetch one release into the cache with pip; a release that pip does not have is left out."""
    form = ["--no-binary", distribution] if sdist else ["--only-binary=:all:", "--python-version", "3.12"]
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*pip, *form, "-d", str(cache), f"{distribution}=={version}"], check=False)


class Package:
    """The sources of one released package, wheel or sdist."""

    def __init__(self, archive: Path, package: str) -> None:
        self.package = package
        self._files: dict[str, bytes] = {}
        self.metadata: list[str] = []
        for name, read in _members(archive):
            if name.endswith(("dist-info/METADATA", f"{archive.name.removesuffix('.tar.gz')}/PKG-INFO")):
                message = Parser().parsestr(read().decode())
                self.metadata = message.get_all("Requires-Dist") or []
            inside = re.search(rf"(?:^|/src/|^[^/]+/){package}/(.+\.py)$", name)
            if inside:
                self._files[inside[1]] = read()
        self._modules: dict[str, ast.Module] = {}

    def names(self, pattern: str) -> list[str]:
        """The modules whose path inside the package matches the regular expression."""
        return sorted(name for name in self._files if re.fullmatch(pattern, name))

    def module(self, name: str) -> ast.Module:
        """The syntax tree of a module, empty when the release has no such module."""
        if name not in self._modules:
            self._modules[name] = ast.parse(self._files.get(name, b""))
        return self._modules[name]

    def requirement(self, distribution: str) -> str | None:
        """The version range that this release requires of another distribution, in any of its extras."""
        found = {}
        for line in self.metadata:
            match = re.match(rf"{distribution}(?:\[[^]]*\])?\s*(\(?[<>=!~][^;]*)?(?:;\s*(.*))?$", line, re.IGNORECASE)
            if match:
                found[match[2] or ""] = (match[1] or "").strip(" ()")
        plain = found.get("")
        if plain is not None:
            return plain
        bounded = [text for text in found.values() if text]
        return bounded[0] if bounded else None


def _members(archive: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                yield name, lambda name=name: wheel.read(name)  # type: ignore[misc]
        return
    with tarfile.open(archive) as sdist:
        for member in sdist:
            stream = sdist.extractfile(member)
            if stream is not None:
                yield member.name, stream.read


# -- reading classes ---------------------------------------------------------------------------------------------


class Scope:
    """The classes and constants of some modules of a package, by name."""

    def __init__(self, package: Package, modules: Iterable[str]) -> None:
        self.classes: dict[tuple[str, str], ast.ClassDef] = {}
        self.constants: dict[tuple[str, str], ast.expr] = {}
        self.imports: dict[tuple[str, str], tuple[str, str]] = {}
        self.modules = list(modules)
        for module in self.modules:
            for node in _statements(package.module(module).body):
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
        # A package's __init__ hands on what its modules define.
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
        """The members of an enum class; empty when the name is no enum."""
        home = self.find_class(module, name)
        if not home or not any("Enum" in ast.unparse(base) for base in home[1].bases):
            return {}
        members: dict[str, Json] = {}
        for node in home[1].body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                try:
                    members[node.targets[0].id] = self.literal(home[0], node.value)
                except ValueError:
                    # torchao's dtypes and the like: the file names the member.
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
        for statement in _statements(node.body):
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
                        for key, value in _items(keyword.value):
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


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _statements(node.body)
            yield from _statements(node.orelse)
        elif isinstance(node, ast.With):
            yield from _statements(node.body)
        elif isinstance(node, ast.Try):
            yield from _statements(node.body)
            for handler in node.handlers:
                yield from _statements(handler.body)
        else:
            yield node


def _items(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
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


def attributes_of(tree: ast.AST, owner: str) -> set[str]:
    """The attributes read from a variable, also through getattr and hasattr."""
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


# -- accelerate --------------------------------------------------------------------------------------------------


def accelerate(package: Package) -> Release:
    """accelerate: commands/config/config_args.py, commands/launch.py, utils/launch.py, utils/dataclasses.py."""
    scope = Scope(
        package,
        [
            "commands/config/config_args.py",
            "utils/dataclasses.py",
            "utils/constants.py",
            *package.names("parallelism_config.py"),
        ],
    )
    config = "commands/config/config_args.py"
    release = Release()
    tables = release.tables
    tables["config"] = scope.fields(config, "ClusterConfig")[0]
    tables["sagemaker_config"] = scope.fields(config, "SageMakerConfig")[0]
    tables["config_converted"] = plain(_converted_keys(package.module(config)) - tables["config"].keys())
    flags = _flags(package.module("commands/launch.py"), scope)
    tables["launch_flags"] = flags
    launcher = package.module("utils/launch.py")
    read = set().union(*(attributes_of(function, "args") for function in functions(launcher)))
    environment = _environment(launcher)
    by_group = {
        "fsdp_config": "fsdp_",
        "parallelism_config": "parallelism_config_",
        "dynamo_config": "dynamo_",
        "fp8_config": "fp8_",
        "megatron_lm_config": "megatron_lm_",
        "mpirun_config": "mpirun_",
        "tp_config": "tp_",
    }
    for table, prefix in by_group.items():
        names = {name for name in read if name.startswith(prefix)}
        if table == "fp8_config":
            # setup_fp8_env hands on whatever flag or key starts with fp8_.
            names |= {name for name in flags if name.startswith(prefix)}
        if table in ("mpirun_config", "dynamo_config"):
            names |= {name for name in flags if name.startswith(prefix)}
        tables[table] = {
            name: {"env": environment[name]} if name in environment else {}
            for name in sorted(names)
            if table != "tp_config" or name in flags
        }
        for name, attributes in tables[table].items():
            for key in ("type", "choices"):
                if key in flags.get(name, {}):
                    attributes[key] = flags[name][key]
    tables["fsdp_config_flag_only"] = plain(
        {name for name in flags if name.startswith("fsdp_")} - tables["fsdp_config"].keys()
    )
    deepspeed = {name for name, attributes in flags.items() if attributes.get("group") == "DeepSpeed Arguments"}
    tables["deepspeed_config"] = plain(deepspeed & (read | attributes_of(package.module("commands/launch.py"), "args")))
    for table in ("fsdp_plugin", "parallelism_plugin"):
        name = {"fsdp_plugin": "FullyShardedDataParallelPlugin", "parallelism_plugin": "ParallelismConfig"}[table]
        tables[table] = scope.fields("utils/dataclasses.py", name)[0]
        for attributes in tables[table].values():
            attributes.pop("choices", None)
            attributes["type"] = ""
    enums = {
        "distributed_type": "DistributedType",
        "compute_environment": "ComputeEnvironment",
        "mixed_precision": "PrecisionType",
        "dynamo_backend": "DynamoBackend",
        "sagemaker_distributed_type": "SageMakerDistributedType",
        "fp8_backend": "FP8BackendType",
    }
    for table, name in enums.items():
        tables["choices:" + table] = plain(str(v) for v in scope.enum("utils/dataclasses.py", name).values())
    constants = {
        "fsdp_sharding_strategy": "FSDP_SHARDING_STRATEGY",
        "fsdp_auto_wrap_policy": "FSDP_AUTO_WRAP_POLICY",
        "fsdp_backward_prefetch": "FSDP_BACKWARD_PREFETCH",
        "fsdp_state_dict_type": "FSDP_STATE_DICT_TYPE",
        "fsdp2_state_dict_type": "FSDP2_STATE_DICT_TYPE",
        "dynamo_mode": "TORCH_DYNAMO_MODES",
        "deepspeed_multinode_launcher": "DEEPSPEED_MULTINODE_LAUNCHERS",
    }
    for table, name in constants.items():
        constant = scope.find_constant("utils/constants.py", name)
        found = scope.literal(*constant) if constant else []
        tables["choices:" + table] = plain(str(v) for v in found) if isinstance(found, list) else {}
    for value, name in {"torch_fsdp": "FSDP_PYTORCH_VERSION", "torch_fsdp2": "FSDP2_PYTORCH_VERSION"}.items():
        constant = scope.find_constant("utils/constants.py", name)
        if constant:
            release.values[value] = scope.literal(*constant)
    release.values["requires:torch"] = package.requirement("torch")
    return release


def _converted_keys(module: ast.Module) -> set[str]:
    """Keys that the loader takes out of the mapping before it looks for unknown ones."""
    found = set()
    for function in functions(module, "process_config", "from_yaml_file"):
        for node in ast.walk(function):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="config_dict"), attr="pop"), args=[ast.Constant(value=key), *_]
                ):
                    found.add(key)
                case ast.Delete(
                    targets=[ast.Subscript(value=ast.Name(id="config_dict"), slice=ast.Constant(value=key))]
                ):
                    found.add(key)
    return {str(key) for key in found}


def _flags(module: ast.Module, scope: Scope) -> Table:
    """The options of `accelerate launch`: group, type, whether they take a value, choices, other spellings."""
    groups: dict[str, str] = {}
    flags: Table = {}
    for function in functions(module, "launch_command_parser"):
        for node in ast.walk(function):
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=variable)],
                    value=ast.Call(
                        func=ast.Attribute(attr="add_argument_group"), args=[ast.Constant(value=str(title)), *_]
                    ),
                ):
                    groups[variable] = title
        for node in ast.walk(function):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr="add_argument"), args=arguments):
                    spellings = [a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                    _flag(flags, scope, spellings, groups.get(owner), node.keywords)
    return dict(sorted(flags.items()))


def _flag(flags: Table, scope: Scope, spellings: list[str], group: str | None, keywords: list[ast.keyword]) -> None:
    long = [text for text in spellings if text.startswith("--")]
    if not long:
        return
    words = {keyword.arg: keyword.value for keyword in keywords}
    # argparse's own rule: the first long option names the attribute.
    name = long[0].lstrip("-").replace("-", "_")
    if "dest" in words:
        name = str(scope.literal("", words["dest"]))
    attributes: Attributes = {"group": group} if group else {}
    if len(spellings) > 1 or spellings[0] != "--" + name:
        attributes["spellings"] = list(spellings)
    if "action" in words and ast.unparse(words["action"]).strip("'") in ("store_true", "store_false"):
        attributes["takes"] = "nothing"
    elif "nargs" in words:
        attributes["takes"] = ast.unparse(words["nargs"]).strip("'")
    if "type" in words:
        attributes["type"] = ast.unparse(words["type"])
    if "choices" in words:
        with contextlib.suppress(ValueError):
            attributes["choices"] = scope.literal("utils/constants.py", words["choices"])
    flags[name] = attributes


def _environment(module: ast.Module) -> dict[str, str]:
    """Which environment variable carries which option to the started processes."""
    found: dict[str, str] = {}
    for node in ast.walk(module):
        match node:
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id="current_env"), slice=key)], value=value):
                for attribute in attributes_of(value, "args"):
                    match key:
                        case ast.Constant(value=str(name)):
                            found.setdefault(attribute, name)
                        case ast.BinOp(left=ast.Name(id="prefix"), right=ast.Constant(value=str(name))):
                            upper = attribute.upper()
                            found.setdefault(attribute, upper if upper.endswith(name) else name)
    return found


# -- transformers ------------------------------------------------------------------------------------------------

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


def transformers(package: Package) -> Release:
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
    release.values["requires:accelerate"] = package.requirement("accelerate")
    release.values["requires:torch"] = package.requirement("torch")
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


# -- TRL ---------------------------------------------------------------------------------------------------------


def trl(package: Package) -> Release:
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
    for name, module in configs.items():
        release.tables[name], bases = scope.fields(module, name, stop=configs.keys() - {name})
        release.values["bases:" + name] = list(bases)
    for name in ("transformers", "accelerate", "torch"):
        release.values["requires:" + name] = package.requirement(name)
    return release


# -- Soup --------------------------------------------------------------------------------------------------------


def soup(package: Package) -> Release:
    """Soup: config/schema.py, config/loader.py, config/staged_fields.py, utils/fsdp.py, utils/deepspeed.py."""
    modules = package.names(r"config/\w+\.py|utils/(fsdp|deepspeed|quant_menu)\.py")
    scope = Scope(package, modules)
    release = Release()
    _model_tree(scope, "config/schema.py", "SoupConfig", release)
    staged = scope.find_constant("config/staged_fields.py", "STAGED_FIELDS")
    release.tables["staged"] = {}
    if staged and isinstance(staged[1], ast.Dict):
        for path, default in zip(staged[1].keys, staged[1].values, strict=True):
            parts = scope.literal(staged[0], path)
            assert isinstance(parts, list)
            release.tables["staged"][".".join(map(str, parts))] = {"default": scope.literal(staged[0], default)}
    severities = {"unknown_key": "UNKNOWN_KEY_SEVERITY", "staged_field": "STAGED_FIELD_SEVERITY"}
    for key, name in severities.items():
        constant = scope.find_constant("config/loader.py", name)
        release.values[key] = scope.literal(*constant) if constant else "silent"
    misplaced = scope.find_constant("config/schema.py", "ROOT_LEVEL_MISPLACED_KEYS")
    release.values["root_level_keys"] = scope.literal(*misplaced) if misplaced else ["lora"]
    for table, module, name in (
        ("fsdp_presets", "utils/fsdp.py", "FSDP_CONFIGS"),
        ("deepspeed_presets", "utils/deepspeed.py", "CONFIGS"),
    ):
        constant = scope.find_constant(module, name)
        presets = dict(_items(constant[1])) if constant else {}
        keep = table == "fsdp_presets"
        release.tables[table] = {
            preset: {"sets": scope.literal(module, value)} if keep else {} for preset, value in presets.items()
        }
    for name in ("transformers", "accelerate", "torch"):
        release.values["requires:" + name] = package.requirement(name)
    return release


def _model_tree(scope: Scope, module: str, name: str, release: Release) -> None:
    home = scope.find_class(module, name)
    if home is None or name in release.tables or not scope.fields(module, name)[0]:
        return
    where, node = home
    release.tables[name] = scope.fields(where, name)[0]
    for statement in node.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "model_config":
            extra = re.search(r"extra['\"]?\s*[=:]\s*['\"](\w+)", ast.unparse(statement.value))
            if extra:
                release.values["extra:" + name] = extra[1]
    for attributes in release.tables[name].values():
        for nested in re.findall(r"\w+", str(attributes["type"])):
            if scope.enum(where, nested):
                members = scope.enum(where, nested).values()
                release.tables.setdefault("choices:" + nested, plain(str(value) for value in members))
            elif nested != name:
                _model_tree(scope, where, nested, release)
                base_home = _field_home(scope, where, name, nested)
                if base_home:
                    _model_tree(scope, base_home, nested, release)


def _field_home(scope: Scope, module: str, name: str, nested: str) -> str | None:
    """The module among a model's bases in which a nested model's name has a meaning."""
    home = scope.find_class(module, name)
    if home is None:
        return None
    for base in home[1].bases:
        found = scope.find_class(home[0], ast.unparse(base))
        if found and scope.find_class(found[0], nested):
            return found[0]
        deeper = _field_home(scope, home[0], ast.unparse(base), nested) if found else None
        if deeper:
            return deeper
    return None


# -- Axolotl -----------------------------------------------------------------------------------------------------


def axolotl(package: Package) -> Release:
    """Axolotl: utils/schemas/, and the configuration that its bundled plugins add (integrations/*/args.py)."""
    scope = Scope(package, package.names(r"utils/schemas/.+\.py"))
    release = Release()
    _model_tree(scope, "utils/schemas/config.py", "AxolotlInputConfig", release)
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
    for name in ("transformers", "accelerate", "torch"):
        release.values["requires:" + name] = package.requirement(name)
    return release


# -- LLaMA-Factory -----------------------------------------------------------------------------------------------


def llamafactory(package: Package) -> Release:
    """LLaMA-Factory: hparams/; its training arguments go on in transformers' Seq2SeqTrainingArguments."""
    scope = Scope(package, package.names(r"hparams/\w+\.py|extras/constants\.py"))
    release = Release()
    names = ("ModelArguments", "DataArguments", "TrainingArguments", "FinetuningArguments", "GeneratingArguments")
    for name in (*names, "EvaluationArguments"):
        homes = [module for module, known in scope.classes if known == name]
        table, outside = scope.fields(homes[0], name) if homes else ({}, [])
        release.tables[name] = table
        release.values["bases:" + name] = list(outside)
    types = {str(attributes.get("type")) for fields in release.tables.values() for attributes in fields.values()}
    for module, known in scope.classes:
        members = scope.enum(module, known)
        if members and any(known in text for text in types):
            release.tables["choices:" + known] = plain(str(value) for value in members.values())
    for name in ("transformers", "accelerate", "torch"):
        release.values["requires:" + name] = package.requirement(name)
    return release


# -- writing -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """Where a program's releases come from, and which of them were also run."""

    distribution: str
    package: str
    read: Callable[[Package], Release]
    versions: str
    run: str
    sdists: str = ""


PROGRAMS = {
    "accelerate": Program(
        "accelerate",
        "accelerate",
        accelerate,
        "0.27.2 0.28.0 0.29.3 0.30.1 0.31.0 0.32.1 0.33.0 0.34.2 1.0.1 1.1.1 1.2.1 1.3.0 1.4.0 1.5.2 1.6.0 1.7.0 1.8.1"
        " 1.9.0 1.10.1 1.11.0 1.12.0 1.13.0 1.14.0 1.15.0",
        "0.27.2 0.28.0 0.30.1 0.32.1 0.34.2 1.0.1 1.2.1 1.3.0 1.4.0 1.5.2 1.6.0 1.7.0 1.8.1 1.9.0 1.10.1 1.11.0 1.12.0"
        " 1.13.0 1.14.0 1.15.0",
    ),
    "transformers": Program(
        "transformers",
        "transformers",
        transformers,
        "4.40.2 4.41.2 4.42.4 4.43.4 4.44.2 4.45.2 4.46.3 4.47.1 4.48.3 4.49.0 4.50.3 4.51.3 4.52.4 4.53.3"
        " 4.54.1 4.55.4 4.56.2 4.57.1 4.57.6 5.0.0 5.1.0 5.2.0 5.3.0 5.4.0 5.5.4 5.6.2 5.7.0 5.8.1 5.9.0 5.10.4"
        " 5.11.0 5.12.1 5.13.1 5.14.1 5.15.1 5.16.1 5.17.0 5.18.0 5.19.0 5.20.1 5.21.1 5.22.2 5.23.0 5.24.0",
        "4.40.2 4.46.3 4.52.4 4.57.6 5.0.0 5.23.0 5.24.0",
    ),
    "trl": Program(
        "trl",
        "trl",
        trl,
        "0.12.2 0.13.0 0.14.0 0.15.2 0.16.1 0.17.0 0.18.2 0.19.1 0.20.0 0.21.0 0.22.2 0.23.1 0.24.0 0.25.1 0.26.2"
        " 0.27.2 0.28.0 0.29.1 1.0.0 1.1.0 1.2.0 1.3.0 1.4.0 1.5.1 1.6.0 1.7.1 1.8.0 1.9.2 1.10.0 1.11.0 1.12.0 1.13.0"
        " 1.14.2 1.15.0 1.16.0",
        "0.12.2 0.19.1 0.24.0 1.16.0",
    ),
    "soup": Program(
        "soup-cli",
        "soup_cli",
        soup,
        "0.73.3 0.74.0 0.75.2 0.76.1 0.77.0",
        "0.73.3 0.74.0 0.75.2 0.76.1 0.77.0",
    ),
    "axolotl": Program(
        "axolotl",
        "axolotl",
        axolotl,
        "0.8.0 0.8.1 0.9.2 0.10.0 0.11.0 0.12.2 0.13.2 0.14.0 0.15.0 0.16.1 0.17.0 0.18.0 0.19.0 0.20.0 0.21.0",
        "0.21.0",
        sdists="0.8.0 0.8.1 0.9.2 0.10.0 0.11.0 0.12.2 0.13.2 0.14.0 0.15.0 0.16.1",
    ),
    "llamafactory": Program(
        "llamafactory", "llamafactory", llamafactory, "0.9.0 0.9.1 0.9.2 0.9.3 0.9.4 0.9.5", "0.9.5"
    ),
}


def spans(present: list[bool], releases: list[str]) -> str:
    """The runs of releases as text: `1.4.0..1.6.0`, open at the oldest and the newest release."""
    text = []
    start: int | None = None
    for index, here in enumerate([*present, False]):
        if here and start is None:
            start = index
        elif not here and start is not None:
            first = releases[start] if start else ""
            last = releases[index - 1] if index < len(releases) else ""
            text.append(first if first and first == last else f"{first}..{last}")
            start = None
    return ",".join(text)


def history(found: list[Json | None], known: list[bool], releases: list[str]) -> Json:
    """A name's variants, each with the releases that have it; the releases are left out when all have it."""
    variants: dict[str, list[bool]] = {}
    for index, attributes in enumerate(found):
        if known[index]:
            variants.setdefault(json.dumps(attributes), [False] * len(releases))[index] = True
    out: list[Json] = []
    for text, present in variants.items():
        when = spans(present, releases)
        entry = json.loads(text)
        out.append({**({"in": when} if when != ".." else {}), **entry})
    return out[0] if len(out) == 1 else out


def encode(program: Program, found: Mapping[str, Release]) -> Json:
    """One program's releases in the format that releases.py reads."""
    releases = list(found)
    tables: dict[str, Json] = {}
    for table in sorted({name for release in found.values() for name in release.tables}):
        columns = [release.tables.get(table) for release in found.values()]
        names = list(dict.fromkeys(name for column in reversed(columns) if column for name in column))
        tables[table] = {
            name: history(
                [(column or {}).get(name) for column in columns],
                [name in (column or {}) for column in columns],
                releases,
            )
            for name in names
        }
    values: dict[str, Json] = {}
    for key in sorted({name for release in found.values() for name in release.values}):
        column = [release.values.get(key) for release in found.values()]
        values[key] = history([{"value": value} for value in column], [v is not None for v in column], releases)
    doc = program.read.__doc__ or ""
    return {
        "source": doc,
        "releases": list(releases),
        "run": [version for version in program.run.split() if version in found],
        "values": values,
        "tables": tables,
    }


def dumps(data: Json) -> str:
    """JSON with one name a line, so that a new release shows as a readable change."""
    lines = []
    assert isinstance(data, dict)
    for key, value in data.items():
        if key not in ("tables", "values") or not isinstance(value, dict):
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
            continue
        parts = []
        for name, entry in value.items():
            if key == "tables" and isinstance(entry, dict):
                rows = ",\n".join(f"{json.dumps(k)}:{_compact(v)}" for k, v in entry.items())
                parts.append(f"{json.dumps(name)}: {{\n{rows}\n}}")
            else:
                parts.append(f"{json.dumps(name)}:{_compact(entry)}")
        lines.append(f"{json.dumps(key)}: {{\n" + ",\n".join(parts) + "\n}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def main() -> None:
    """Write the facts of the programs named, or of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--cache", type=Path, required=True, help="where the packages are kept")
    parser.add_argument("--download", action="store_true", help="fetch missing packages with pip")
    options = parser.parse_args()
    for name in options.programs or PROGRAMS:
        program = PROGRAMS[name]
        found: dict[str, Release] = {}
        for version in program.versions.split():
            sdist = version in program.sdists.split()
            file = program.distribution.replace("-", "_") + f"-{version}"
            pattern = f"{file}.tar.gz" if sdist else f"{file}-*.whl"
            if options.download and not list(options.cache.glob(pattern)):
                download(program.distribution, version, options.cache, sdist=sdist)
            archives = list(options.cache.glob(pattern))
            if archives:
                found[version] = program.read(Package(archives[0], program.package))
            else:
                print(f"{name} {version}: not found, left out", file=sys.stderr)
        text = dumps(encode(program, found))
        (FACTS / name / f"{name}.json").write_text(text, encoding="utf-8")
        print(f"{name}.json: {len(found)} releases, {len(text) // 1024} KB")


if __name__ == "__main__":
    main()
