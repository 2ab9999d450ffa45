"""What states a package's release: every statement of one file, with its true place, and what it tells.

Nothing is parsed that does not hold the name of a package that is asked for, nothing is run, and no input raises: a
file that cannot be read states nothing, and says why where its name promised more.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from trainlint.budget import BUDGET
from trainlint.findings import Span
from trainlint.lazy import regex
from trainlint.reading.text import Undecodable, decode
from trainlint.repository.statements.model import (
    Form,
    Include,
    Kind,
    Meaning,
    Reading,
    Statement,
    Unreadable,
)
from trainlint.repository.statements.packages import Packages, packages

if TYPE_CHECKING:
    from typing import TypeAlias

    from trainlint.repository.statements.page import Page

    Reader: TypeAlias = Callable[[Page], Iterable["Statement | Include"]]

__all__ = [
    "Form",
    "Include",
    "Kind",
    "Meaning",
    "Packages",
    "Reading",
    "Statement",
    "Unreadable",
    "form_of",
    "needs_names",
    "packages",
    "statements_of",
]

_BY_NAME: dict[str, tuple[Form, str, str]] = {
    "uv.lock": (Form.LOCK, "locks", "read"),
    "poetry.lock": (Form.LOCK, "locks", "read"),
    "pdm.lock": (Form.LOCK, "locks", "read"),
    "pipfile.lock": (Form.LOCK, "locks", "read_pipfile_lock"),
    "conda-lock.yml": (Form.LOCK, "locks", "read_conda"),
    "conda-lock.yaml": (Form.LOCK, "locks", "read_conda"),
    "pixi.lock": (Form.LOCK, "locks", "read_conda"),
    "pyproject.toml": (Form.PROJECT, "projects", "read_pyproject"),
    "setup.py": (Form.PROJECT, "setup_py", "read"),
    "setup.cfg": (Form.PROJECT, "projects", "read_setup_cfg"),
    "pipfile": (Form.PROJECT, "projects", "read_pipfile"),
    "pixi.toml": (Form.PROJECT, "projects", "read_pixi"),
    "uv.toml": (Form.PROJECT, "projects", "read_uv"),
    "requires.txt": (Form.PROJECT, "requirements", "read_requires"),
    "metadata": (Form.VENDORED, "vendored", "read_metadata"),
    "pkg-info": (Form.VENDORED, "vendored", "read_metadata"),
    ".gitmodules": (Form.SUBMODULE, "vendored", "read_submodules"),
    "go.mod": (Form.MANIFEST, "kubeflow", "read_go_mod"),
}
_BY_PATTERN: dict[str, tuple[Form, str, str]] = {
    r"pylock(?:\.[^.]+)?\.toml": (Form.LOCK, "locks", "read"),
    r".*conda-lock\.ya?ml": (Form.LOCK, "locks", "read_conda"),
    r".*(?:requirement|constraint|dependenc).*\.(?:txt|in|pip|lock)|(?:.*[-_.])?(?:reqs?|deps|pip)(?:[-_.].*)?\.(?:txt|in|pip|lock)"
    r"|(?:requirements|constraints)(?:\.frozen|\.lock)?": (Form.REQUIREMENTS, "requirements", "read"),
    r".*\.txt": (Form.REQUIREMENTS, "requirements", "read_any"),
    r".*\.ya?ml": (Form.COMMAND, "yaml_files", "read"),
    r"(?:.*\.)?(?:docker|container)file(?:\..*)?": (Form.COMMAND, "commands", "read_script"),
    r".*\.(?:sh|bash|zsh|ksh|slurm|sbatch|pbs|job|lsf|mk|def|just)": (Form.COMMAND, "commands", "read_script"),
    r"(?:gnu)?makefile(?:\..*)?|\.?justfile": (Form.COMMAND, "commands", "read_script"),
    r".*\.ipynb": (Form.NOTEBOOK, "texts", "read_notebook"),
    r".*\.(?:md|markdown|mdx|rst|qmd)": (Form.README, "texts", "read_markdown"),
    r".*\.py": (Form.CODE, "code", "read"),
}
"""By the pattern of a name, of which the first counts; none has groups."""
_NAMED = regex("|".join(f"({pattern})" for pattern in _BY_PATTERN))
_READERS = tuple(_BY_PATTERN.values())
_FOLDERS = regex(r"(?:^|/)(?:requirements?|reqs?|constraints|deps)/[^/]+\.(?:txt|in|pip)$")
_ENVIRONMENT = regex(r"(?:conda[\w.-]*|env|environment[\w.-]*|[\w.-]*environment)\.ya?ml")
_NAMES_FILES = regex(rb"(?:^|\s)(?:-r|-c|--requirements?|--constraints?)[ \t=]|\.txt\b|\bfile:", re.MULTILINE)
_NAMING = ("requirements", "projects", "setup_py", "commands", "texts")
"""Readers of files that may name others which state a release."""
_LIKELY: dict[str, tuple[bytes, ...]] = {
    "yaml_files": (
        b"pip", b"uv ", b"uvx", b"conda", b"mamba", b"poetry", b"pdm", b"pixi", b"clone", b"image", b"registry",
        b"repository", b"chart", b"packages", b"kubeflow-trainer", b"repourl", b"ref=", b"releases/download",
        b"raw.githubusercontent", b"requirements", b"dependencies", b"customresourcedefinition", b"from:",
        b"kubeversion", b"kubernetes-version",
    ),
    "code": (
        b"# /// script", b"pip_install", b"packages_to_install", b"pip_packages", b"python_packages",
        b"transformers_version", b"'-m'", b'"-m"', b'"install"', b"'install'", b"pip install", b"pip3 install",
        b"uv pip", b"# magic", b"from_registry", b"image", b"git clone", b"pip=", b"requirements=",
    ),
}  # fmt: skip
"""What a file of any content must hold besides, to be worth parsing."""
_PROMISED = (Form.LOCK, Form.REQUIREMENTS, Form.CONSTRAINTS, Form.PROJECT, Form.ENVIRONMENT)
"""Forms whose files say by their name that they state releases; of others it is no news that they cannot be read."""


def readers_version() -> int:
    """Another number whenever the modules of this package have changed, also while someone works on them."""
    with os.scandir(os.path.dirname(__file__)) as entries:
        return max((entry.stat().st_ctime_ns for entry in entries if entry.name.endswith(".py")), default=0)


def form_of(path: str) -> Form | None:
    """Which form of statement a file may hold, by its name alone; None where it holds none."""
    found = _reader_of(path)
    return found[0] if found else None


def statements_of(
    path: str,
    data: bytes,
    names: Collection[str] | Packages,
    *,
    form: Form | None = None,
    package: str = "",
    home: str = "",
) -> Reading:
    """Every statement of some packages' releases in one file.

    `form` is set for a file that another names: requirements of any name, or where a `package` keeps its version (its
    project's folder is then `home`).
    """
    asked = packages(names)
    reader = _reader_of(path)
    if form in (Form.REQUIREMENTS, Form.CONSTRAINTS) and (reader is None or reader[0] is not Form.LOCK):
        reader = form, "requirements", "read"
    vendored = [(package, home)] if package else asked.vendored(path)
    if form is Form.README and path.endswith((".yaml", ".yml")):
        reader = Form.README, "texts", "read_comments"
    if reader is None and not vendored:
        return Reading()
    wide = data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data[:2]
    if not vendored and not wide and reader is not None and not _is_likely(path, data, asked, reader[1]):
        return Reading()
    if len(data) > BUDGET.bytes:
        return _unreadable(path, reader, f"larger than {BUDGET.bytes // 1_000_000} MB")
    if data.count(b"\n") + data.count(b"\r") > BUDGET.lines:
        return _unreadable(path, reader, f"more than {BUDGET.lines:,} lines")
    return _read(path, data, asked, reader, vendored)


def needs_names(path: str, asked: Packages) -> bool:
    """A file with this path states nothing of some packages where no name of theirs is in it."""
    reader = _reader_of(path)
    return not (reader is not None and reader[1] in _NAMING) and not asked.vendored(path) and not _named(path, asked)


def _named(path: str, asked: Packages) -> bool:
    return asked.named_in(path.lower().encode(errors="replace"))


def _is_likely(path: str, data: bytes, asked: Packages, module: str) -> bool:
    lowered = data.lower()
    if not asked.named_in(lowered) and not _named(path, asked):
        return module in _NAMING and _NAMES_FILES.search(data) is not None
    return module not in _LIKELY or any(word in lowered for word in _LIKELY[module])


@lru_cache(maxsize=2**10)
def _reader_of(path: str) -> tuple[Form, str, str] | None:
    name = posixpath.basename(path).lower()
    found = _BY_NAME.get(name)
    if found is not None:
        return found
    if _FOLDERS.search(path.lower()):
        return Form.REQUIREMENTS, "requirements", "read"
    if _ENVIRONMENT.fullmatch(name):
        return Form.ENVIRONMENT, "yaml_files", "read"
    match = _NAMED.fullmatch(name)
    return _READERS[match.lastindex - 1] if match and match.lastindex else None


def _read(
    path: str, data: bytes, asked: Packages, reader: tuple[Form, str, str] | None, vendored: list[tuple[str, str]]
) -> Reading:
    from trainlint.repository.statements.page import Broken, Page

    try:
        page = Page(path, decode(data), asked)
    except Undecodable as error:
        return _unreadable(path, reader, str(error), error.line)
    try:
        if vendored:
            from trainlint.repository.statements.vendored import read

            found = [statement for package, home in vendored for statement in read(page, package, home)]
            return Reading(tuple(found))
        assert reader is not None
        function: Reader = getattr(import_module(f"{__name__}.{reader[1]}"), reader[2])
        both = list(function(page))
    except Broken as error:
        return _unreadable(path, reader, str(error), *page.text.position(min(error.index, len(page.content))))
    except (ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        return _unreadable(path, reader, f"not readable ({type(error).__name__})")
    statements = dict.fromkeys(item for item in both if isinstance(item, Statement))
    return Reading(tuple(statements), tuple(item for item in both if isinstance(item, Include)))


def _unreadable(
    path: str, reader: tuple[Form, str, str] | None, reason: str, line: int = 1, column: int = 1
) -> Reading:
    if reader is None or reader[0] not in _PROMISED or reader[2] == "read_any":
        return Reading()
    return Reading(unreadable=Unreadable(Span(path, line, column, line, column), reason))
