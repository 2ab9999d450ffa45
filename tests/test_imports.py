"""The order of the house: imports go down only, those inside functions and for type checking too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import trainlint

PACKAGE = Path(trainlint.__file__).parent
FLOORS = (
    ("budget", "faults", "findings", "jobs", "lazy", "records", "releases"),
    ("rule", "selection", "targets"),
    ("reading",),
    ("repository",),
    ("training",),
    ("programs",),
    (
        "report",
        "reports",
        "settings",
        "suppressions",
        "own_rules",
        "recognise",
        "catalogue",
        "fixes",
        "add_ignores",
        "baseline",
        "fingerprints",
        "judging",
        "misspelt",
        "show_files",
        "rule_list",
        "weighing",
    ),
    ("engine",),
    ("__init__",),
    ("resolve",),
    ("checking", "output", "progress", "timings", "completion"),
    ("action", "cli", "__main__"),
)
"""From the ground up; what stands on one floor may import each other."""

PROGRAMS = {
    "llamafactory": {"transformers", "accelerate"},
    "trl": {"transformers", "accelerate"},
    "transformers": {"accelerate"},
    "torchtune": {"kubeflow"},
}
"""The programs that a program stands on."""

EXCEPTIONS = {("reports", "__init__"), ("recognise", "__init__")}
"""The version stands in the package itself, for the command line's and hatchling's sake."""


def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


MODULES = modules()


def imported(path: Path) -> Iterator[str]:
    """The modules of this package that a module imports, by their names below it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if name.split(".")[0] == "trainlint":
                parts = name.split(".")[1:]
                while parts and ".".join(parts) not in MODULES:
                    parts.pop()
                yield ".".join(parts) or "__init__"


ARROWS = {name: set(imported(path)) - {name} for name, path in MODULES.items()}


def floor(module: str) -> int:
    return next(height for height, rooms in enumerate(FLOORS) if module.split(".")[0] in rooms)


def test_every_module_has_a_floor() -> None:
    assert {name.split(".")[0] for name in MODULES} == {room for rooms in FLOORS for room in rooms}


def test_imports_go_down() -> None:
    up = {
        (name, other)
        for name, others in ARROWS.items()
        for other in others
        if floor(other) > floor(name) and (name.split(".")[0], other) not in EXCEPTIONS
    }
    assert up == set()


def test_programs_stand_on_those_that_they_may() -> None:
    wrong = set()
    for name, others in ARROWS.items():
        parts = name.split(".")
        if parts[0] != "programs" or len(parts) < 2 or parts[1] == "table":
            continue
        for other in others:
            theirs = other.split(".")
            if theirs[0] == "programs" and len(theirs) > 1 and theirs[1] not in {parts[1], *PROGRAMS.get(parts[1], ())}:
                wrong.add((name, other))
    assert wrong == set()


def test_no_circle() -> None:
    below = {name: {o for o in others if o != "__init__"} for name, others in ARROWS.items()}
    TopologicalSorter(below).prepare()


READERS = {
    *("repository.bounds", "repository.git", "repository.discover", "repository.writing"),
    *("settings.reader", "settings.show", "baseline", "engine", "fixes", "action", "checking"),
}
"""Who opens files or asks what is there: by what the user named, or through bounds.py."""
OWN_DATA = {
    *("programs.torchtune.facts", "programs.kubeflow.facts.crds", "training.limits", "training.declarations"),
    "repository.index",
    *("reports.html", "catalogue", "rule_list"),
}
"""Who reads the tables of the package, or the index in the user's cache folder."""
OPENING = set("open read_bytes read_text isfile is_file isdir is_dir exists iterdir rglob glob".split())


def test_what_a_file_names_is_read_through_the_repository() -> None:
    """Programs and rules ask the repository (find, text, documents, script, has_folder), which holds the bounds."""
    asking = {
        name
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Attribute) and node.func.attr in OPENING)
            or (isinstance(node.func, ast.Name) and node.func.id == "open")
        )
    }
    assert asking - READERS - OWN_DATA - {"repository.files"} == set()
