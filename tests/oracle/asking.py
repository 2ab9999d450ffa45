"""What a driver is: the part of the differential test that knows one program.

A driver runs in two places. This module and the drivers import nothing but the standard library at their top: a worker
imports them in the environment of the real program, where trainlint is not, and the comparison imports them where the
program is not. Only `load` and `ask` of a driver, which run in the worker, import the program.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | int | float | None"
Settings: TypeAlias = Mapping[str, Json]
STAGES = ("load", "start", "prepare", "train", "save")
"""How far a program gets, in order."""


class CannotTell(Exception):
    """The answer rests on what is not there: a package, a device, a file, the network."""


class Refused(Exception):
    """The program refuses without an exception of its own."""


class Answer(NamedTuple):
    """What the program said: `accept`, `refuse` or `cannot tell`, where it stopped, and its words."""

    verdict: str
    stage: str = ""
    words: str = ""


class Environment(NamedTuple):
    """What is installed for a release: `python` as X.Y, what pip would be asked for, and the packages to leave out.

    `pins` are packages in a fixed version, whatever the others require. What is left out is heavy or needs a GPU; a
    driver puts stand-ins in its place where the program imports it without need.
    """

    python: str
    packages: tuple[str, ...]
    pins: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class Table(NamedTuple):
    """A table of declarations whose names may be written below `path`.

    `program` has the table, by default the driver's own; `with_` are settings that the names need beside them.
    """

    name: str
    path: tuple[str, ...] = ()
    with_: Mapping[str, Json] = {}
    program: str = ""


@dataclass(frozen=True)
class Sound:
    """A document that the program accepts, where every change starts.

    `settings` is the document that draws change, `file` its name, and `beside` the other files of the case. `tables`
    says which tables may be drawn from, where not all of the driver's fit; `reaches` the last stage that is run of it,
    where that is not the driver's. `also` are settings that no table has: a path, and right values.
    """

    name: str
    file: str
    settings: Settings
    beside: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    reaches: str = ""
    also: Sequence[tuple[str, Sequence[Json]]] = ()


class Progress:
    """Where the program is; a driver sets `stage` before each step."""

    def __init__(self) -> None:
        self.stage = "load"


class Driver:
    """One program; the base class of the class `Asked` in each module of `drivers/`."""

    program: str
    """As trainlint calls it."""
    reaches = "load"
    """The last stage that is run: errors of later ones do not contradict an acceptance."""
    warnings_count = False
    """A warning is enough for what is refused: the file alone does not tell which parser reads it."""
    imports_late = False
    """The program imports much only when it is asked; the worker then imports that itself, once."""
    samples: Mapping[str, Sequence[Json]] = {}
    """Right values of settings whose type says too little, by name or path."""

    def release_of(self, program: str, release: str) -> str:
        """The release of another program whose tables are drawn from."""
        raise NotImplementedError

    def environment(self, release: str) -> Environment:
        """What a release needs."""
        raise NotImplementedError

    def sound(self, release: str) -> Sequence[Sound]:
        """The sound documents of a release."""
        raise NotImplementedError

    def tables(self, release: str) -> Sequence[Table]:
        """The tables that names are drawn from."""
        return ()

    def load(self, release: str) -> None:
        """Import the program, and simulate what this machine lacks; called once in a worker."""
        raise NotImplementedError

    def ask(self, folder: Path, progress: Progress) -> None:
        """Have the program read a case, whose folder is the current one.

        It returns where the program accepts. Every exception is a refusal, but CannotTell and ImportError.
        """
        raise NotImplementedError


def module(name: str) -> Any:
    """A module of the program, in the worker."""
    return importlib.import_module(name)


def driver(program: str) -> Driver:
    """The driver of a program; raises ModuleNotFoundError for an unknown one."""
    found = module(f"oracle.drivers.{program}").Asked()
    assert isinstance(found, Driver)
    return found
