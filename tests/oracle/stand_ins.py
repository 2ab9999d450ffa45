"""Empty modules in place of packages that are heavy or need a GPU, and that decide no verdict.

A driver names them; a program that only imports such a package, or asks whether it is there, goes on.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class _Anything(type):
    """A class of which every attribute is such a class, so that it can be a base, a type or a decorator."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return anything(name)

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __or__(cls, other: object) -> Any:
        return cls

    def __ror__(cls, other: object) -> Any:
        return cls


def anything(name: str) -> Any:
    """A class that can be made, called and asked for anything."""

    def call(self: Any, *given: Any, **named: Any) -> Any:
        return given[0] if len(given) == 1 and callable(given[0]) and not named else self

    def attribute(self: Any, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return anything(name)()

    members = {
        "__init__": lambda self, *given, **named: None,
        "__call__": call,
        "__getattr__": attribute,
        "__class_getitem__": classmethod(lambda cls, item: cls),
    }
    return _Anything(name, (), members)


class StandIn(types.ModuleType):
    """A module that has everything."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = anything(name)
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of packages that are not installed; asked last."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = frozenset(names)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module of one of the packages."""
        if fullname.partition(".")[0] not in self.names and fullname not in self.names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """An empty module."""
        module = StandIn(spec.name)
        module.__path__ = []
        module.__dict__["__version__"] = "99.0.0"
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing is in it."""


def stand_in(names: Iterable[str]) -> None:
    """Let packages and modules that are not there be empty ones; names are those that are imported."""
    sys.meta_path.append(Finder(names))
