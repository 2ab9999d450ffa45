"""accelerate: its config file, what the launcher reads of it, the options of `accelerate launch`."""

from __future__ import annotations

import ast
import contextlib

from wheel_facts.history import Attributes, Release, Table
from wheel_facts.package import Package
from wheel_facts.source import Scope, attributes_of, functions, plain


def read(package: Package) -> Release:
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
