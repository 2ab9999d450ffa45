"""Soup: the models of its config, staged fields and presets."""

from __future__ import annotations

import ast

from wheel_facts.history import Release
from wheel_facts.models import model_tree
from wheel_facts.package import Package
from wheel_facts.source import Scope, items_of


def read(package: Package) -> Release:
    """Soup: config/schema.py, config/loader.py, config/staged_fields.py, utils/fsdp.py, utils/deepspeed.py."""
    # Some bounds of fields are constants of other modules, which have moved between releases.
    bounds = "config_bounds|layer_stream|async_disk_source|ship_verdict"
    modules = package.names(rf"config/\w+\.py|utils/(fsdp|deepspeed|quant_menu|{bounds})\.py")
    scope = Scope(package, modules)
    release = Release()
    model_tree(scope, "config/schema.py", "SoupConfig", release)
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
        presets = dict(items_of(constant[1])) if constant else {}
        keep = table == "fsdp_presets"
        release.tables[table] = {
            preset: {"sets": scope.literal(module, value)} if keep else {} for preset, value in presets.items()
        }
    return release
