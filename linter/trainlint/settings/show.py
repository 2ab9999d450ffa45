"""`trainlint check --show-settings`: the settings of a file, and where each value comes from."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainlint.records import NamedTuple
from trainlint.reports import escape
from trainlint.repository.discover import Excluder
from trainlint.repository.files import display_path
from trainlint.settings import Overrides
from trainlint.settings.reader import Written
from trainlint.settings.table import SETTINGS, Setting
from trainlint.targets import Target

_RESETS = {
    "select": ("ignore", "extend-select", "extend-ignore"),
    "per-file-ignores": ("extend-per-file-ignores",),
}
"""A layer that has the key leaves nothing of what earlier layers say with the others."""
_ROOM = 60


class Value(NamedTuple):
    """One setting of a file: its value, and the places that it is made of; there are none if it is the default."""

    key: str
    value: Any
    origins: tuple[str, ...]
    default: str


class Shown(NamedTuple):
    """The settings of one file or folder: the settings files in the order in which they count, and the values.

    `used` is how many of all `rules` are used; `off` are the codes of the others, or the prefixes of their codes.
    """

    path: str
    files: tuple[str, ...]
    values: tuple[Value, ...]
    off: tuple[str, ...]
    used: int
    rules: int
    left_alone: bool = False
    """It is no program's, so that no rule looks at it."""


class _Layer(NamedTuple):
    values: Mapping[str, Any]
    origins: Mapping[str, str]


def abridged(codes: Collection[str], among: Collection[str]) -> Iterator[str]:
    """Some of these codes, in order, those of a prefix as one if all that have it are there."""
    others = [code for code in among if code not in codes]
    told: set[str] = set()
    for code in codes:
        prefixes = (code[:length] for length in range(2, len(code)))
        word = next((prefix for prefix in prefixes if not any(other.startswith(prefix) for other in others)), code)
        if word not in told:
            told.add(word)
            yield word


def values_of(path: Path, files: Sequence[Written], above: Iterable[Written], options: Overrides) -> Iterator[Value]:
    """The settings that count for a path; `above` are settings files of which `exclude` counts alone."""
    layers = [
        *(_Layer({"exclude": one.values["exclude"]}, _origins(one, ())) for one in above if "exclude" in one.values),
        *_layers(path, files),
        _of_options(options),
    ]
    for setting in SETTINGS:
        if setting.key != "extend":
            value, origins = _combined(setting, layers)
            if origins or setting.default:
                yield Value(setting.key, value, origins, setting.default)


def _layers(path: Path, files: Sequence[Written]) -> Iterator[_Layer]:
    for one in files:
        yield _Layer(one.values, _origins(one, ()))
    for one in files:
        for number, override in enumerate(one.overrides):
            if Excluder(override["paths"], one.base).excludes(path):
                yield _Layer(override, _origins(one, ("overrides", str(number)), override))


def _origins(one: Written, within: tuple[str, ...], values: Mapping[str, Any] | None = None) -> dict[str, str]:
    name = display_path(one.at.file)
    keys = one.values if values is None else values
    return {key: f"{name}:{one.at.line((*within, key))}" for key in keys}


def _of_options(options: Overrides) -> _Layer:
    given = {
        "select": options.select,
        "ignore": options.ignore,
        "extend-select": options.extend_select,
        "extend-ignore": options.extend_ignore,
        "per-file-ignores": options.per_file_ignores,
        "extend-per-file-ignores": options.extend_per_file_ignores,
        "baseline": str(options.baseline) if options.baseline else None,
        "exclude": options.exclude,
        "targets": options.targets,
        "runtimes": options.runtimes,
        "fail-on": options.fail_on.value if options.fail_on else None,
        "format": options.format,
    }
    values = {key: value for key, value in given.items() if value}
    names = {"targets": "--target"}
    return _Layer(values, {key: names.get(key, f"--{key}") for key in values})


def _combined(setting: Setting, layers: Sequence[_Layer]) -> tuple[Any, tuple[str, ...]]:
    """The value out of all layers, and where it comes from."""
    value: Any = None
    origins: tuple[str, ...] = ()
    for layer in layers:
        if any(key in layer.values for key, others in _RESETS.items() if setting.key in others):
            value, origins = None, ()
        if setting.key not in layer.values:
            continue
        own = layer.values[setting.key]
        if not setting.adds or value is None:
            value, origins = own, (*(origins if setting.adds else ()), layer.origins[setting.key])
        else:
            value = {**value, **own} if isinstance(own, Mapping) else tuple(dict.fromkeys((*value, *own)))
            origins = (*origins, layer.origins[setting.key])
    return value, tuple(dict.fromkeys(origins))


def as_text(shown: Iterable[Shown]) -> str:
    """A block for each path, in the syntax of a settings file."""
    return "\n".join("".join(f"{escape.visible_line(line)}\n" for line in _lines(one)) for one in shown)


def as_json(shown: Iterable[Shown]) -> str:
    """One object: `{"version": 1, "files": [...]}`."""
    rows = [
        {
            "path": one.path,
            "settings": list(one.files),
            "values": {
                value.key: {
                    "value": _plain(value.value) if value.origins else _of_default(value.default),
                    "from": list(value.origins),
                }
                for value in one.values
            },
            "off": list(one.off),
            "leftAlone": one.left_alone,
        }
        for one in shown
    ]
    return escape.as_json({"version": 1, "files": rows})


def _lines(one: Shown) -> Iterator[str]:
    yield f"# {one.path}: {', then '.join(one.files) or 'no settings file'}"
    for value in one.values:
        written = f"{value.key} = {_toml(_plain(value.value)) if value.origins else value.default}"
        yield f"{written:{_ROOM}}  # {', '.join(value.origins) or 'default'}"
    if one.left_alone:
        yield "# the file is not checked: it is no program's"
        return
    unused = f", all but {', '.join(one.off)}" if one.off else ""
    yield f"# {one.used} of {one.rules} rules are used{unused}"


def _plain(value: Any) -> Any:
    """A value as it is written in a settings file."""
    if isinstance(value, Target):
        return value.versions[0] if len(value.versions) == 1 else list(value.versions)
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, (tuple, list, frozenset)):
        return [_plain(one) for one in value]
    return value


def _of_default(written: str) -> Any:
    """The value of a default, whose words are TOML and JSON alike; one that is not there is None."""
    return json.loads(written) if written else None


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_toml_key(key)} = {_toml(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


def _toml_key(key: str) -> str:
    bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if bare else json.dumps(key)


def shown_path(path: Path) -> str:
    """A path as the user would name it."""
    return display_path(path) if os.path.abspath(path) != os.getcwd() else "."
