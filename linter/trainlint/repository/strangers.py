"""Commands that hand a file to a program which trainlint does not know: `surogate sft sft.yaml`.

They are evidence against a file's owner where nothing but the names of its settings tells it.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from trainlint.budget import BUDGET
from trainlint.lazy import regex
from trainlint.repository import fences
from trainlint.repository.discover import SUFFIXES
from trainlint.repository.invocations import (
    SCRIPT_SUFFIXES,
    Command,
    Invocation,
    documented_invocations,
    invocations_in,
    invocations_in_script,
    named_file,
)
from trainlint.repository.python_code import python_code

if TYPE_CHECKING:
    from trainlint.repository.files import Repository

_VERBS = r"(?:[\w-]{0,30}[-_])?(?:sft|dpo|grpo|kto|orpo|ppo|rlhf|train|pretrain|finetune|fine-tune)(?:[-_][\w-]{0,30})?"
_COMMAND = regex(
    rf"(?<![\w./$-])(?P<name>[a-z][a-z0-9_-]{{1,30}})[ \t]+(?P<verb>{_VERBS})[ \t]+(?:[^\n|;&#]{{0,500}}?[ \t=])?"
    r"[^\s|;&#]{1,200}\.ya?ml\b"
)
"""A program, what it shall do, and a YAML file."""
_LAUNCHERS = frozenset(
    """
    accelerate axolotl deepspeed fire llamafactory llamafactory-cli lmf python python3 soup torchrun trl tune
    apptainer bash cat conda cp docker exec git hatch invoke inv just kubectl make mamba mlflow modal mv nohup nox npm
    pdm pipenv pixi pnpm podman poetry ray run sbatch script sh singularity sky srun sudo task time tox uv uvx yarn zsh
    """.split()
)
"""Programs of ours, those that start other ones, and those that only handle files."""
_PYTHON = r"(?:python[\d.]*|torchrun|accelerate|deepspeed|axolotl|llamafactory-cli|soup|trl|tune)\b[^\n]*"
_STARTS = ("accelerate launch", "torchrun", "deepspeed")
_STATING = (".py", ".ipynb", ".txt", ".toml", ".cfg", ".lock", ".in", "environment.yml", "environment.yaml", "Pipfile")
_PROJECTS = ("pyproject.toml", "setup.py", "setup.cfg")


def handed_to_stranger(repository: Repository, path: str) -> str:
    """The command that hands a file to an unknown program, in words; empty where there is none.

    A program that the repository makes itself is no stranger, and neither its code nor a command with Python, a
    launcher or a known program names the file.
    """
    found = repository.once("strangers", lambda: _handed(repository)).get(os.path.abspath(path))
    if found is None or python_code(repository).names_file(path):
        return ""
    named = re.compile(_PYTHON + re.escape(PurePosixPath(path).name))
    if any(named.search(text.replace("\\\n", " ")) for _, text in _texts(repository)):
        return ""
    return f"{found.name} reads it ({found.document.path}:{found.field.span.line}), an unknown program"


def is_mentioned(repository: Repository, words: Sequence[str]) -> bool:
    """A Python file, notebook, script, README, requirement or lock says one of these words, or starts a launcher."""
    pattern = re.compile(b"|".join(rb"\b%s\b" % re.escape(word.encode()) for word in (*words, *_STARTS)))
    return repository.once(("mentioned", *words), lambda: any(map(pattern.search, _mentioning(repository))))


def _mentioning(repository: Repository) -> Iterator[bytes]:
    files = repository.paths((*SCRIPT_SUFFIXES, *fences.SUFFIXES, *_STATING))
    return (data for _, data in _contents(repository, files))


def _contents(repository: Repository, files: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Those of these files that can be read, with their bytes."""
    for file in files:
        with suppress(OSError):
            yield file, repository.read(file)


def _handed(repository: Repository) -> dict[str, Invocation]:
    """The files that unknown programs get, by their absolute paths."""
    found: dict[str, Invocation] = {}
    for invocation in _invocations(repository):
        for word in invocation.words:
            known = word.known or ""
            name = known.partition("=")[2] if known.startswith("--") else known
            file = named_file(repository, invocation, posixpath.normpath(name)) if name.endswith(SUFFIXES) else None
            if file is not None:
                found.setdefault(os.path.abspath(file), invocation)
    return found


def _invocations(repository: Repository) -> Sequence[Invocation]:
    from trainlint.reading.text import Undecodable

    found: list[Invocation] = []
    own: dict[str, bool] = {}
    for file, text in _texts(repository):
        wanted = []
        for name, verb in sorted({(match["name"], match["verb"]) for match in _COMMAND.finditer(text)}):
            if name not in own:
                own[name] = name in _LAUNCHERS or _is_made_here(repository, name)
            if not own[name]:
                wanted.append(Command(f"{name} {verb}", ((name, verb),), rf"\b{re.escape(name)}\b"))
        try:
            if file.endswith(SUFFIXES):
                documents = repository.documents(file, regex("run")) if wanted else []
                found += [one for document in documents for one in invocations_in(document, wanted)]
            elif file.endswith(fences.SUFFIXES):
                found += [one for command in wanted for one in documented_invocations(repository, command, [file])]
            elif wanted:
                found += invocations_in_script(repository.script(file), wanted)
        except (OSError, Undecodable):
            continue
    return found


def _texts(repository: Repository) -> Sequence[tuple[str, str]]:
    """The scripts, workflows and READMEs of a repository that name a YAML file."""
    return repository.once("texts with commands", lambda: list(_read(repository)))


def _read(repository: Repository) -> Iterator[tuple[str, str]]:
    workflows = [path for path in repository.paths() if "/.github/workflows/" in path.replace(os.sep, "/")]
    files = [*repository.paths(SCRIPT_SUFFIXES), *repository.paths(fences.SUFFIXES), *workflows]
    for file, data in _contents(repository, files):
        if b".yaml" in data or b".yml" in data:
            yield file, data[: BUDGET.script].decode("utf-8", "replace")


def _is_made_here(repository: Repository, name: str) -> bool:
    """The repository has a package or a script of this name, or a project names it as a command."""
    module = name.replace("-", "_")
    for file in repository.files_named((".py",)):
        if file.stem == module or module in file.parts:
            return True
    entry = re.compile(rb"^\s*[\"']?%s[\"']?\s*=" % re.escape(name.encode()), re.MULTILINE)
    return any(entry.search(data) for _, data in _contents(repository, map(str, repository.files_named(_PROJECTS))))
