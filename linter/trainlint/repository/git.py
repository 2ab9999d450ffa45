"""What git lists of a work tree, asked so that nothing which the repository configures or holds is run.

A repository's own configuration can name programs: a monitor of the file system, hooks, what answers for a missing
object. A clone brings none, but an archive can, and so can a folder that is itself a git directory and was committed as
plain files. Hence: git starts at the folder that holds `.git`, looks nowhere else, and talks to nobody.

Source: git-config, git and gitprotocol documentation of git 2.39 to 2.51.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trainlint.repository.bounds import PathError

_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "protocol.allow=never",
    # A folder with HEAD, objects and refs is a repository only where it is called .git.
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
)
_ENVIRONMENT = {
    # Of the system's settings only safe.directory counts, see _trusted; the user's own are the user's word.
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    # A missing object stays missing; protocol.NAME.allow of the repository would win over protocol.allow.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_KEPT = re.compile(r"GIT_CONFIG_(?:GLOBAL|SYSTEM|COUNT|KEY_\d+|VALUE_\d+|PARAMETERS)|GIT_TEST_ASSUME_DIFFERENT_OWNER")
"""What the user told git by variables; the others, which a hook sets, speak of one repository and its index."""

PATIENCE = 3
"""Seconds after which it is looked for what git may be waiting for."""
LIMIT = 600
"""Seconds after which git is given up."""


def listed(folder: Path, patterns: Sequence[str]) -> list[Path] | None:
    """What git tracks, or does not ignore, below a folder, of the files whose names match one of the patterns.

    None outside a work tree, without git, and where git ignores the folder itself. Raises PathError where there is a
    repository that git refuses to read.
    """
    root = top(folder)
    if root is None:
        return None
    root, real = Path(os.path.realpath(root)), Path(os.path.realpath(folder))
    git = _program(root)
    if git is None or not real.is_relative_to(root):
        return None
    below = real.relative_to(root).as_posix()
    prefix = "" if below == "." else f"./{_literally(below)}/"
    found = _run(git, root, ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"], prefix, patterns)
    if found is None:
        return None
    if not found and below != "." and _ignores(git, root, below):
        return None
    start = "" if below == "." else f"{below}/"
    return [folder / name.removeprefix(start) for name in found]


def top(folder: Path) -> Path | None:
    """The nearest folder upward that holds `.git`."""
    here = folder.absolute()
    return next((parent for parent in (here, *here.parents) if os.path.exists(parent / ".git")), None)


def _run(git: str, root: Path, command: Sequence[str], prefix: str, patterns: Sequence[str]) -> list[str] | None:
    """The names that git lists; None where there is no repository after all."""
    arguments = [*command, *(prefix + pattern for pattern in patterns)]
    code, out, error = _answer(git, root, arguments)
    if code and "dubious ownership" in error:
        trusted = [f"safe.directory={folder}" for folder in _trusted(git)]
        code, out, error = _answer(git, root, arguments, trusted) if trusted else (code, out, error)
    if code == 0:
        return [os.fsdecode(name) for name in out.split(b"\0") if name]
    if "not a git repository" in error:
        return None
    if "dubious ownership" in error:
        raise PathError(
            f"{root}: git refuses this repository, which belongs to another user; if you trust it: "
            f"git config --global --add safe.directory {root}"
        )
    said = next((line for line in error.splitlines() if line.startswith(("fatal:", "error:"))), "no reason given")
    raise PathError(f"{root}: git cannot list the files of this repository: {said.partition(': ')[2] or said}")


def _ignores(git: str, root: Path, below: str) -> bool:
    """Whether git ignores a folder, or cannot say (one of a submodule)."""
    code, _, _ = _answer(git, root, ["--literal-pathspecs", "check-ignore", "-q", "--", below])
    return code != 1


def _trusted(git: str) -> list[str]:
    """The folders that the system's settings call safe: containers often say so there."""
    asked = ["config", "--system", "-z", "--get-all", "safe.directory"]
    code, out, _ = _answer(git, Path(os.path.abspath(os.sep)), asked, system=True)
    return [os.fsdecode(value) for value in out.split(b"\0") if value] if code == 0 else []


def _answer(
    git: str, root: Path, arguments: Sequence[str], settings: Sequence[str] = (), *, system: bool = False
) -> tuple[int, bytes, str]:
    """Exit code, output and error of one command, started at the root."""
    settings = [part for setting in (*_SETTINGS, *settings) for part in ("-c", setting)]
    process = subprocess.Popen(
        [git, "--no-pager", "--no-replace-objects", *settings, *arguments],
        cwd=root,
        env=_environment(root, system),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            out, error = _wait(process, root)
        except BaseException:
            process.kill()
            raise
    return process.returncode, out, error.decode("utf-8", "replace")


def _wait(process: subprocess.Popen[bytes], root: Path) -> tuple[bytes, bytes]:
    try:
        return process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        odd = next(_unreadable_excludes(root), None)
        if odd is not None:
            raise PathError(f"{odd} is no regular file, and git waits for what it holds") from None
    try:
        return process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise PathError(f"{root}: git has not listed the files within {LIMIT} seconds") from None


def _unreadable_excludes(root: Path) -> Iterator[Path]:
    """Pipes and devices in the place of files that tell what to ignore."""
    for folder, _, names in os.walk(root):
        for name in {".gitignore", "exclude"} & set(names):
            file = Path(folder, name)
            if not os.path.islink(file) and not os.path.isfile(file):
                yield file


def _environment(root: Path, system: bool) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _KEPT.match(name)}
    made = {**given, **_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": str(root.parent)}
    if system:
        del made["GIT_CONFIG_NOSYSTEM"]
    return made


def _program(root: Path, environment: Mapping[str, str] = os.environ) -> str | None:
    """git, as the path names it; neither a relative folder of the path counts nor one of the repository.

    Windows would look into the current folder first, which may be a checkout that brings its own.
    """
    name = "git.exe" if os.name == "nt" else "git"
    for folder in os.get_exec_path(dict(environment)):
        file = os.path.join(folder, name)
        ours = os.path.isabs(folder) and not Path(os.path.realpath(folder)).is_relative_to(root)
        if ours and os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    return None


def _literally(path: str) -> str:
    """A path as a pattern that matches nothing else."""
    return re.sub(r"[*?[]", r"[\g<0>]", path).replace("\\", r"[\\]")
