"""Writes programs/torchtune/torchtune*.json from the released wheels of torchtune.

    python tools/torchtune_facts.py --cache DIR [--download]

torchtune is not imported, since it needs torch: registry, recipes and component signatures are read with `ast`, the
shipped configs as YAML. DIR has the torchtune-VERSION wheels, and one wheel each of torch and bitsandbytes, whose
optimizers the configs name. With --download missing wheels are fetched with pip; that of torch is large. The format of
the written files is described in linter/trainlint/programs/torchtune/facts.py.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML

FACTS = Path(__file__).resolve().parent.parent / "linter" / "trainlint" / "programs" / "torchtune"
RELEASES = ("0.4.0", "0.5.0", "0.6.1")
OTHERS = {"torch": "2.13.0", "bitsandbytes": "0.50.2"}

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
EXISTS = "?"
ANYTHING = "* **"


# -- packages ----------------------------------------------------------------------------------------------------


def wheel(cache: Path, distribution: str, version: str, *, download: bool) -> zipfile.ZipFile:
    """A released wheel in the cache; with `download` it is fetched if it is missing."""
    found = sorted(cache.glob(f"{distribution}-{version}-*.whl"))
    if not found and download:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(cache)]
        subprocess.run([*pip, f"{distribution}=={version}"], check=True)
        found = sorted(cache.glob(f"{distribution}-{version}-*.whl"))
    return zipfile.ZipFile(found[0])


class Package:
    """The modules in some parts of a package, and the meaning of each of their names."""

    def __init__(self, archive: zipfile.ZipFile, parts: str) -> None:
        self.modules: dict[str, ast.Module] = {}
        for name in archive.namelist():
            if name.endswith(".py") and name.startswith(parts):
                dotted = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                self.modules[dotted] = ast.parse(archive.read(name))
        self._packages = {
            name.removesuffix("/__init__.py").replace("/", ".")
            for name in archive.namelist()
            if name.endswith("/__init__.py")
        }
        self._names: dict[str, dict[str, ast.AST]] = {}

    def names(self, module: str) -> dict[str, ast.AST]:
        """The names of a module with their definition, import or assignment."""
        if module not in self._names:
            self._names[module] = dict(_bindings(self.modules[module].body))
        return self._names[module]

    def imported(self, module: str, node: ast.ImportFrom) -> str:
        """The module that a `from … import` in a module names."""
        if not node.level:
            return node.module or ""
        base = module.split(".")
        base = base[: len(base) - node.level + (module in self._packages)]
        return ".".join([*base, *filter(None, [node.module])])

    def definition(self, module: str, name: str) -> tuple[str, str, ast.AST] | None:
        """Where a name of a module is defined, through imports; None if outside this package."""
        node = self.names(module).get(name) if module in self.modules else None
        if isinstance(node, ast.ImportFrom):
            source = self.imported(module, node)
            original = next(alias.name for alias in node.names if (alias.asname or alias.name) == name)
            is_module = f"{source}.{original}" in self.modules
            return None if is_module or (source, original) == (module, name) else self.definition(source, original)
        return None if node is None or isinstance(node, ast.Import) else (module, name, node)

    def entry(self, module: str, name: str, *, follow: bool = False) -> str:
        """A name as the facts file stores it: its signature, `@module[:name]` for an import, or `?`.

        With `follow` an imported name has its signature too.
        """
        node = self.names(module)[name]
        found = self.definition(module, name)
        if found is None:
            return EXISTS
        if isinstance(node, ast.ImportFrom) and not follow:
            return f"@{found[0]}" + ("" if found[1] == name else f":{found[1]}")
        signature = self.signature(found[0], found[2])
        return EXISTS if signature is None else signature

    def signature(self, module: str, node: ast.AST) -> str | None:
        """The parameters as inspect.signature gives them, `!` after a required one; None where unreadable."""
        if isinstance(node, ast.FunctionDef):
            return _written(node.args, skip=0)
        if isinstance(node, ast.ClassDef):
            return self._of_class(module, node)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            found = self.definition(module, node.value.id)
            return self.signature(found[0], found[2]) if found else None
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Name) and call.func.id == "partial" and isinstance(call.args[0], ast.Name):
                found = self.definition(module, call.args[0].id)
                inner = self.signature(found[0], found[2]) if found else None
                bound = {keyword.arg for keyword in call.keywords}
                if inner is not None and len(call.args) == 1:
                    return " ".join(word.rstrip("!") if word.rstrip("!") in bound else word for word in inner.split())
        return None

    def _of_class(self, module: str, node: ast.ClassDef) -> str | None:
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                return _written(statement.args, skip=1)
        if any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list):
            fields = [s for s in node.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)]
            return " ".join(ast.unparse(s.target) + ("!" if s.value is None else "") for s in fields)
        for base in node.bases:
            written = ast.unparse(base)
            found = self.definition(module, written)
            inherited = self._of_class(found[0], found[2]) if found and isinstance(found[2], ast.ClassDef) else None
            if inherited is not None:
                return inherited
            if written in ("nn.Module", "Module", "Protocol"):
                return ANYTHING
            if not written.startswith(("ABC", "Dataset", "Generic", "object")):
                return None
        return "" if not node.keywords else None


def _bindings(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], node
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    yield target.id, node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _bindings([*node.orelse, *node.body])
        elif isinstance(node, ast.Try):
            yield from _bindings([*(s for h in node.handlers for s in h.body), *node.body])


def _written(arguments: ast.arguments, *, skip: int) -> str:
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    words = [arg.arg + ("!" if index < required else "") for index, arg in enumerate(positional)][skip:]
    if arguments.vararg:
        words.append("*")
    words += [
        arg.arg + ("!" if default is None else "")
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    return " ".join([*words, "**"] if arguments.kwarg else words)


# -- recipes -----------------------------------------------------------------------------------------------------

CHECKS = {
    "launcher": r"^not training\.is_distributed\(\)$",
    "fp16": r"^self\._dtype == torch\.float16$",
    "compile": r"^cfg\.get\('compile', False\)$",
    "npu-compile": r"^cfg\.device == 'npu' and cfg\.compile$",
    "in-backward-clip": r"^self\._optimizer_in_bwd && self\._clip_grad_norm is not None$",
    "in-backward-accumulation": r"_optimizer_in_bwd.*&&.*_gradient_accumulation_steps > 1$"
    r"|^self\._gradient_accumulation_steps > 1 and self\._optimizer_in_bwd$",
    "offloading-device": r"_enable_activation_offloading && .*!= 'cuda'$",
    "offloading-checkpointing": r"_enable_activation_offloading && not self\._enable_activation_checkpointing$",
    "tensor-parallel-plan": r"tensor_parallel_dim > 1 and self\.tensor_parallel_plan is None$",
    "tensor-parallel-world": r"^self\.world_size % self\.tensor_parallel_dim != 0$",
    "tensor-parallel-fused": r"tensor_parallel_dim > 1 and cfg\.optimizer\.get\('fused', False\)$",
    "left-pad": r"^'left_pad_sequence' in collate_fn$",
    "quantizer": r"^quantizer_cfg is None$",
    "ppo-forward-batch": r"^self\.batch_size % self\._forward_batch_size != 0$",
    "ppo-batch": r"^self\.batch_size % self\._ppo_batch_size != 0$",
    "ppo-accumulation": r"^self\._ppo_batch_size % self\._gradient_accumulation_steps != 0$",
    "ppo-steps": r"^self\._total_steps == 0$",
}
"""The checks of recipes on their settings, by the conditions of their `raise`."""

NOT_OF_SETTINGS = (
    r"resume_from_checkpoint|isinstance|version\(|torch_version_ge|quantization_mode|quantizer_mode|^packed$"
)
"""Conditions on checkpoints, installed versions and parts, which do not depend on a recipe's settings."""

CLIENT_READS = ("resume_from_checkpoint", "enable_async_checkpointing", "optimizer_in_bwd")
"""Settings that CheckpointClient reads, with a default of its own, from the config that a recipe passes to it."""


Known = dict[str, tuple[str, bool]]
"""By variable: the dotted key of its part of the config, and whether that part is required."""


@dataclass
class Reads:
    """The settings that a recipe reads: at its start, when it sets up, or only in some cases; and its checks."""

    start: dict[str, None] = field(default_factory=dict)
    setup: dict[str, None] = field(default_factory=dict)
    optional: dict[str, None] = field(default_factory=dict)
    checks: dict[str, None] = field(default_factory=dict)

    def facts(self) -> dict[str, Json]:
        """The lists, each without the names of an earlier one."""
        setup: list[Json] = [key for key in self.setup if key not in self.start]
        optional: list[Json] = [*sorted(key for key in self.optional if key not in self.start and key not in setup)]
        return {"start": [*self.start], "setup": setup, "optional": optional, "checks": [*sorted(self.checks)]}


class RecipeReader:
    """Follows the config through a recipe's main function, its class and its methods."""

    def __init__(self, tree: ast.Module, name: str) -> None:
        classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and "Recipe" in n.name]
        main = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in ("recipe_main", "main"))
        self.name = name
        self.reads = Reads()
        self.required = self.reads.start
        body = classes[-1].body if classes else []
        self.methods = {n.name: n for n in body if isinstance(n, ast.FunctionDef)}
        if "__init__" in self.methods:
            self._function(self.methods["__init__"], {"cfg": ("", True)}, certain=True)
        self._function(main, {"cfg": ("", True)}, certain=True)
        self.required = self.reads.setup
        for method in ("setup", "quantize", "generate", "evaluate", "save_checkpoint"):
            if method in self.methods and "cfg" in {a.arg for a in self.methods[method].args.args}:
                self._function(self.methods[method], {"cfg": ("", True)}, certain=True)

    def _function(self, function: ast.FunctionDef, known: Known, *, certain: bool) -> None:
        self._block(function.body, known, certain=certain, conditions=[])

    def _block(self, body: Sequence[ast.stmt], known: Known, *, certain: bool, conditions: list[str]) -> None:
        for node in body:
            if isinstance(node, ast.If):
                written = ast.unparse(node.test)
                self._expression(node.test, known, certain=certain)
                inside = certain and "rank_zero" in written
                self._block(node.body, known, certain=inside, conditions=[*conditions, written])
                self._block(node.orelse, known, certain=False, conditions=[*conditions, f"not ({written})"])
            elif isinstance(node, ast.Raise):
                self._check(conditions)
            elif isinstance(node, (ast.For, ast.While, ast.With, ast.Try)):
                for value in ast.iter_child_nodes(node):
                    if isinstance(value, ast.expr):
                        self._expression(value, known, certain=certain)
                always = certain and isinstance(node, (ast.With, ast.Try))
                self._block(node.body, known, certain=always, conditions=conditions)
            elif not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self._expression(node, known, certain=certain)

    def _check(self, conditions: list[str]) -> None:
        written = " && ".join(conditions)
        for check, pattern in CHECKS.items():
            if re.search(pattern, written):
                self.reads.checks[check] = None
                return
        if written and not re.search(NOT_OF_SETTINGS, written):
            print(f"{self.name}: CHECKS has no name for this check: {written}", file=sys.stderr)

    def _expression(self, node: ast.AST, known: Known, *, certain: bool) -> None:
        if isinstance(node, (ast.BoolOp, ast.IfExp)):
            first, *rest = node.values if isinstance(node, ast.BoolOp) else [node.test, node.body, node.orelse]
            self._expression(first, known, certain=certain)
            for part in rest:
                self._expression(part, known, certain=False)
            return
        path = self._path(node, known)
        if path is not None:
            key, sure = path
            if key:
                self._read(key, certain=certain and sure)
            return
        if isinstance(node, ast.Call):
            self._call(node, known, certain=certain)
        for child in ast.iter_child_nodes(node):
            self._expression(child, known, certain=certain)

    def _read(self, key: str, *, certain: bool) -> None:
        (self.required if certain else self.reads.optional).setdefault(key)
        head, _, tail = key.rpartition(".")
        if tail and head:
            self._read(head, certain=certain or head in self.required)

    def _path(self, node: ast.AST, known: Known) -> tuple[str, bool] | None:
        """The dotted key of the config that an expression reads, and whether it is required."""
        if isinstance(node, ast.Name) and node.id in known:
            return known[node.id]
        if isinstance(node, ast.Attribute):
            inner = self._path(node.value, known)
            if inner and node.attr not in ("get", "items", "keys", "values", "update"):
                return f"{inner[0]}.{node.attr}".lstrip("."), inner[1]
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            inner = self._path(node.value, known)
            if inner and isinstance(node.slice.value, str):
                return f"{inner[0]}.{node.slice.value}".lstrip("."), inner[1]
        if isinstance(node, ast.Call) and node.args:
            getter = node.func
            key = node.args[0]
            if isinstance(getter, ast.Attribute) and getter.attr == "get":
                inner = self._path(getter.value, known)
            elif isinstance(getter, ast.Name) and getter.id == "getattr" and len(node.args) == 3:
                inner, key = self._path(node.args[0], known), node.args[1]
            else:
                return None
            name = "profiler" if isinstance(key, ast.Name) and key.id == "PROFILER_KEY" else getattr(key, "value", None)
            if inner and isinstance(name, str):
                return f"{inner[0]}.{name}".lstrip("."), False
        return None

    def _call(self, node: ast.Call, known: Known, *, certain: bool) -> None:
        function = ast.unparse(node.func)
        if function == "CheckpointClient" and node.args and self._path(node.args[0], known):
            for key in CLIENT_READS:
                self._read(key, certain=False)
            self.reads.setup.setdefault("checkpointer")
        method = self.methods.get(function.removeprefix("self."))
        if method is None or not function.startswith("self."):
            return
        names = [arg.arg for arg in [*method.args.args[1:], *method.args.kwonlyargs]]
        given = {**dict(zip(names, node.args, strict=False)), **{k.arg: k.value for k in node.keywords if k.arg}}
        paths = {parameter: self._path(value, known) for parameter, value in given.items() if "cfg" in parameter}
        handed = {parameter: path for parameter, path in paths.items() if path is not None}
        if handed:
            self._function(method, handed, certain=certain)


def registry(archive: zipfile.ZipFile) -> Iterator[tuple[str, str, bool, dict[str, str]]]:
    """For each registered recipe: name, file, support of several devices, and configs with their files."""
    tree = ast.parse(archive.read("torchtune/_recipe_registry.py"))
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Recipe":
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            configs = {}
            for config in ast.walk(given["configs"]):
                if isinstance(config, ast.Call):
                    words = {k.arg: ast.literal_eval(k.value) for k in config.keywords}
                    configs[words["name"]] = words["file_path"]
            literal = {key: ast.literal_eval(given[key]) for key in ("name", "file_path", "supports_distributed")}
            yield literal["name"], literal["file_path"], literal["supports_distributed"], configs


# -- writing -----------------------------------------------------------------------------------------------------


def by_release(values: dict[str, Json]) -> Json:
    """One value if all releases have the same, else a value for each group of releases."""
    groups: dict[str, list[str]] = {}
    for release, value in values.items():
        groups.setdefault(json.dumps(value), []).append(release)
    if len(groups) == 1 and len(values) == len(RELEASES):
        return next(iter(values.values()))
    return {" ".join(releases): json.loads(written) for written, releases in groups.items()}


def recipes(archives: dict[str, zipfile.ZipFile]) -> dict[str, Json]:
    """The facts on each recipe, from the registry and the recipe's code."""
    found: dict[str, dict[str, dict[str, Json]]] = {}
    for release, archive in archives.items():
        shipped = {name.removeprefix("recipes/configs/") for name in archive.namelist()}
        for name, file, distributed, configs in registry(archive):
            reads = RecipeReader(ast.parse(archive.read(f"recipes/{file}")), name).reads.facts()
            facts: dict[str, Json] = {"file": file, "distributed": distributed, **reads}
            facts["configs"] = {config: path if path in shipped else None for config, path in configs.items()}
            for attribute, value in facts.items():
                found.setdefault(name, {}).setdefault(attribute, {})[release] = value
    return {
        name: {
            attribute: _configs(values) if attribute == "configs" else by_release(values)
            for attribute, values in attributes.items()
        }
        for name, attributes in found.items()
    }


def _configs(values: dict[str, Json]) -> Json:
    names = dict.fromkeys(name for configs in values.values() if isinstance(configs, dict) for name in configs)
    files: dict[str, Json] = {}
    for name in names:
        having = {r: c[name] for r, c in values.items() if isinstance(c, dict) and name in c}
        files[name] = by_release(having)
    return files


def components(archives: dict[str, zipfile.ZipFile], others: Iterable[Package]) -> dict[str, Json]:
    """All names of all modules of the package, and the optimizers of the other packages."""
    found: dict[str, dict[str, dict[str, Json]]] = {}
    for release, archive in archives.items():
        package = Package(archive, "torchtune/")
        for module in package.modules:
            found.setdefault(module, {}).setdefault("", {})[release] = EXISTS
            for name in package.names(module):
                if not name.startswith("__"):
                    found.setdefault(module, {}).setdefault(name, {})[release] = package.entry(module, name)
    table: dict[str, Json] = {
        module: {name: by_release(entries) for name, entries in names.items()} for module, names in found.items()
    }
    for package in others:
        optim = next(module for module in package.modules if module.count(".") == 1)
        table[optim] = {
            name: EXISTS if not name else package.entry(optim, name, follow=True)
            for name in ("", *package.names(optim))
            if not name.startswith("__")
        }
    return dict(sorted(table.items()))


def model_types(archive: zipfile.ZipFile) -> Json:
    """The values of a checkpointer's model_type: the names of the enum ModelType."""
    tree = ast.parse(archive.read("torchtune/training/checkpointing/_utils.py"))
    enum = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelType")
    return [ast.unparse(n.target) for n in enum.body if isinstance(n, ast.AnnAssign)]


def configs(archives: dict[str, zipfile.ZipFile]) -> dict[str, Json]:
    """The shipped configs; equal sections and equal lists of keys are stored once."""
    values: dict[str, int] = {}
    shapes: dict[str, int] = {}
    found: dict[str, dict[str, Json]] = {}
    reader = YAML(typ="safe")
    for release, archive in archives.items():
        for name in archive.namelist():
            if name.startswith("recipes/configs/") and name.endswith(".yaml"):
                content = reader.load(_with_floats(archive.read(name).decode()))
                shape = shapes.setdefault(json.dumps(list(content)), len(shapes))
                row: list[Json] = [shape]
                row += [values.setdefault(json.dumps(value), len(values)) for value in content.values()]
                found.setdefault(name.removeprefix("recipes/configs/"), {})[release] = row
    return {
        "shapes": [json.loads(shape) for shape in shapes],
        "values": [json.loads(value) for value in values],
        "configs": {name: by_release(rows) for name, rows in sorted(found.items())},
    }


def _with_floats(text: str) -> str:
    """`2e-5` with a dot: OmegaConf reads it as a number, but a YAML 1.1 reader as text."""
    return re.sub(r"(?<=: )(\d+)(e-?\d+)\b", r"\1.0\2", text)


def main() -> None:
    """Read the wheels and write the three files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--download", action="store_true")
    options = parser.parse_args()
    archives = {v: wheel(options.cache, "torchtune", v, download=options.download) for v in RELEASES}
    others = [
        Package(wheel(options.cache, name, version, download=options.download), f"{name}/optim/")
        for name, version in OTHERS.items()
    ]
    source = f"torchtune {', '.join(RELEASES)}, read from their wheels"
    beside = ", ".join(f"{name} {version}" for name, version in OTHERS.items())
    types = by_release({release: model_types(archive) for release, archive in archives.items()})
    facts: dict[str, Json] = {"source": source, "releases": [*RELEASES], "model_types": types}
    write("torchtune.json", {**facts, "recipes": recipes(archives)})
    write("torchtune-components.json", {"source": f"{source}; {beside}", "modules": components(archives, others)})
    write("torchtune-configs.json", {"source": source, **configs(archives)})


def write(name: str, facts: dict[str, Json]) -> None:
    """Write a facts file, with a line for each entry of its tables."""
    lines = []
    for key, value in facts.items():
        if isinstance(value, dict):
            rows = ",\n  ".join(f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
            lines.append(f"{json.dumps(key)}: {{\n  {rows}\n }}")
        elif key in ("shapes", "values") and isinstance(value, list):
            rows = ",\n  ".join(json.dumps(v, ensure_ascii=False) for v in value)
            lines.append(f"{json.dumps(key)}: [\n  {rows}\n ]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    (FACTS / name).write_text("{" + ",\n ".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
