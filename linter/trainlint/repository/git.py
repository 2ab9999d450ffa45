"""The files that git lists in a work tree; git is called so that it runs no program of the repository.

The configuration of a repository can name programs: a file system monitor, hooks, a helper for missing objects. A clone
has none, but an archive can, and so can a git directory that was committed as plain files. So git starts at the folder
with `.git`, looks nowhere else, and contacts no server.

Source: git-config, git and gitprotocol documentation of git 2.39 to 2.51.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.budget import BUDGET
from trainlint.lazy import regex
from trainlint.repository.bounds import PathError, walk

if TYPE_CHECKING:
    import subprocess

_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "protocol.allow=never",
    # A folder with HEAD, objects and refs is a repository only if its name is .git.
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
)
_ENVIRONMENT = {
    # Of the system's settings only safe.directory counts, see _trusted; the user's own settings are trusted.
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    # A missing object stays missing; protocol.NAME.allow of the repository would win over protocol.allow.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_ODD_NAME = regex(r"\0/|//|[\0/](?:\.{1,2}|\.git)(?=[\0/])", re.IGNORECASE)
"""In names between NULs: a path that is absolute, has an empty part, `.` or `..`, or leads into `.git`."""
_ODD_SIGNS = (regex(rb"\0/"), regex(rb"//"), regex(rb"\.(?:[/\0]|[gG][iI][tT][/\0])"))
"""One of these is in an output with such a name; each begins with one byte, which is looked for quickly."""
_DIGEST = regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_KEPT = regex(r"GIT_CONFIG_(?:GLOBAL|SYSTEM|COUNT|KEY_\d+|VALUE_\d+|PARAMETERS)|GIT_TEST_ASSUME_DIFFERENT_OWNER")
"""Variables for git that users set; the others are set by hooks, for one repository and its index."""

PATIENCE = 1
"""Seconds after which trainlint looks for a reason why git waits."""
_MANY_STARS = 4
LIMIT = 120
"""Seconds after which git is stopped."""
_WORK = 60
"""Seconds of computing after which git ends by itself, even if nobody waits for it any more."""
_MEMORY = 2_000_000_000
"""Bytes that git may ask for besides the files that it maps; the index of a million files needs a tenth."""


class Answers:
    """What git has said in one run: the files of a folder, and of the whole tree once a second folder is asked for.

    Files are told apart by their names here: a process costs more than the names of 10,000 files.
    """

    def __init__(self) -> None:
        self._programs: dict[Path, str | None] = {}
        self._listed: dict[tuple[Path, str], list[str] | None] = {}
        self._not_ignored: set[Path] = set()

    def program(self, root: Path) -> str | None:
        """The path of git."""
        if root not in self._programs:
            self._programs[root] = _program(root)
        return self._programs[root]

    def names(self, git: str, root: Path, below: str) -> list[str] | None:
        """The files of a work tree that are below a folder, as paths from the root; None if there is no repository.

        They are in the order of their parts, so that those of one folder stand together.
        """
        if (root, below) not in self._listed:
            found: list[str] | None
            if below != "." and any(known == root for known, _ in self._listed):
                whole = self.names(git, root, ".")
                found = None if whole is None else _below(whole, below)
            else:
                found = _listing(git, root, below)
            self._listed[root, below] = found
        return self._listed[root, below]

    def ignores(self, git: str, root: Path, below: str, found: Sequence[str]) -> bool:
        """Git ignores a folder, of which these files were found."""
        folder = root / below
        if found or folder in self._not_ignored or below == ".":
            self._not_ignored.add(folder)
            return False
        return _ignores(git, root, below)


def listed(folder: Path, answers: Answers) -> list[str] | None:
    """The files below a folder that git tracks or does not ignore, as paths from it, in the order of their parts.

    None outside a work tree, without git, and if git ignores the folder itself. Raises PathError for a repository that
    git refuses to read.
    """
    root = top(folder)
    if root is None:
        return None
    root, real = Path(os.path.realpath(root)), Path(os.path.realpath(folder))
    git = answers.program(root)
    if git is None or not real.is_relative_to(root):
        return None
    below = real.relative_to(root).as_posix()
    names = answers.names(git, root, below)
    if names is None or answers.ignores(git, root, below, names):
        return None
    return names if below == "." else [name[len(below) + 1 :] for name in names]


def by_parts(name: str) -> str:
    """The key by which paths stand in the order of their parts: a folder's files come before `folder-b`."""
    return name.replace("/", "\0")


def _below(names: Sequence[str], folder: str) -> list[str]:
    """Of paths in the order of their parts, those below a folder."""
    first = bisect_left(names, by_parts(f"{folder}/"), key=by_parts)
    last = bisect_left(names, by_parts(folder) + "\1", first, key=by_parts)
    return list(names[first:last])


def changed(folder: Path, base: str) -> list[Path]:
    """The files that the checked out commit adds or changes, sorted; `base` is the digest of the commit before.

    A merge commit, which GitHub checks out for a pull request, is compared with its first parent; another one with the
    commit at which it leaves the base. Raises PathError where git lacks one of these commits, or the repository.
    """
    root = top(folder)
    if root is None:
        raise PathError(f"{folder}: not in a git repository")
    root = Path(os.path.realpath(root))
    git = Answers().program(root)
    if git is None:
        raise PathError("git is not installed")

    trusted: list[str] = []
    _, _, error = _answer(git, root, ["rev-parse", "--verify", "HEAD"])
    if "dubious ownership" in error:
        trusted = [f"safe.directory={folder}" for folder in _trusted(git)]
        _, _, error = _answer(git, root, ["rev-parse", "--verify", "HEAD"], trusted)
    if "dubious ownership" in error:
        raise _refusal(root)

    def commit(*arguments: str) -> str:
        code, out, _ = _answer(git, root, arguments, trusted)
        found = out.decode("ascii", "replace").strip()
        return found if code == 0 and _DIGEST.fullmatch(found) else ""

    start = commit("rev-parse", "--verify", "--quiet", "HEAD^2^{commit}") and commit("rev-parse", "--verify", "HEAD^1")
    if not start and _DIGEST.fullmatch(base):
        start = commit("merge-base", base, "HEAD")
    if not start:
        raise PathError("the commits of the pull request are not here: give actions/checkout fetch-depth: 2")
    options = ["-r", "-z", "--name-only", "--no-renames", "--diff-filter=d"]
    code, out, error = _answer(git, root, ["diff-tree", *options, start, "HEAD"], trusted)
    if code:
        raise PathError(f"{root}: git cannot compare the commits of the pull request: {error.strip()}")
    return [root / name for name in sorted(_names(out))]


def _names(out: bytes) -> list[str]:
    """The names in an output, without those that git itself refuses to check out.

    Git lists what an index or a tree holds, and either can be made with `../x.yaml` in it.
    """
    names = os.fsdecode(out).split("\0")[:-1]
    # Nearly no output has one, and these searches cost much less than a look at each name.
    if os.sep == "/" and not any(sign.search(out) for sign in _ODD_SIGNS) and not out.startswith(b"/"):
        return names
    return [name for name in names if not _is_odd(name)]


def _is_odd(name: str) -> bool:
    # Windows takes further characters as signs between parts, and of a drive.
    return bool(_ODD_NAME.search(f"\0{name}\0")) or (os.name == "nt" and ("\\" in name or ":" in name))


def ignores(file: Path) -> bool:
    """Git surely ignores a file, which it does not track."""
    root = top(file.parent)
    if root is None:
        return False
    root, real = Path(os.path.realpath(root)), Path(os.path.realpath(file.parent), file.name)
    git = Answers().program(root)
    if git is None or not real.is_relative_to(root):
        return False
    return _answer(git, root, _question(real.relative_to(root).as_posix()))[0] == 0


def top(folder: Path) -> Path | None:
    """The nearest folder upward that holds `.git`."""
    here = folder.absolute()
    return next((parent for parent in (here, *here.parents) if os.path.exists(parent / ".git")), None)


def _listing(git: str, root: Path, below: str) -> list[str] | None:
    """The names that git lists; None if there is no repository."""
    inside = [] if below == "." else [f"./{_literally(below)}/*"]
    arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *inside]
    code, out, error = _answer(git, root, arguments)
    if code and "dubious ownership" in error:
        trusted = [f"safe.directory={folder}" for folder in _trusted(git)]
        code, out, error = _answer(git, root, arguments, trusted) if trusted else (code, out, error)
    if code == 0:
        return sorted(dict.fromkeys(_names(out)), key=by_parts)
    if "not a git repository" in error:
        return None
    if code < 0:
        raise PathError(f"{root}: git has not listed the files within {_WORK} seconds")
    if "dubious ownership" in error:
        raise _refusal(root)
    said = next((line for line in error.splitlines() if line.startswith(("fatal:", "error:"))), "no reason given")
    raise PathError(f"{root}: git cannot list the files of this repository: {said.partition(': ')[2] or said}")


def _refusal(root: Path) -> PathError:
    return PathError(
        f"{root}: git refuses this repository, which belongs to another user; if you trust it: "
        f"git config --global --add safe.directory {root}"
    )


def _ignores(git: str, root: Path, below: str) -> bool:
    """Git ignores a folder, or cannot tell (a folder of a submodule)."""
    code, _, _ = _answer(git, root, _question(below))
    return code != 1


def _question(path: str) -> list[str]:
    """The command that asks whether git ignores a path, of which it takes stars and brackets as they are."""
    return ["check-ignore", "-q", "--", f"./{path}"]


def _trusted(git: str) -> list[str]:
    """The safe folders in the system's settings, where containers often have them."""
    asked = ["config", "--system", "-z", "--get-all", "safe.directory"]
    code, out, _ = _answer(git, Path(os.path.abspath(os.sep)), asked, system=True)
    return [os.fsdecode(value) for value in out.split(b"\0") if value] if code == 0 else []


def _answer(
    git: str, root: Path, arguments: Sequence[str], settings: Sequence[str] = (), *, system: bool = False
) -> tuple[int, bytes, str]:
    """Exit code, output and error of one command, started at the root."""
    import subprocess

    settings = [part for setting in (*_SETTINGS, *settings) for part in ("-c", setting)]
    process = subprocess.Popen(
        [git, "--no-pager", "--no-replace-objects", *settings, *arguments],
        cwd=root,
        env=_environment(root, system),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    _bound(process.pid)
    with process:
        try:
            out, error = _wait(process, root)
        except BaseException:
            process.kill()
            raise
    return process.returncode, out, error.decode("utf-8", "replace")


def _bound(process: int) -> None:
    """A run that is killed cannot stop git, which may have a pattern of ignored files that would take it days.

    Some of its files it reads to their end, which `/dev/zero` behind a link has not.
    """
    if sys.platform == "linux":
        import resource

        for kind, most in ((resource.RLIMIT_CPU, _WORK), (resource.RLIMIT_DATA, _MEMORY)):
            with suppress(OSError, ValueError):
                resource.prlimit(process, kind, (most, most))


def _wait(process: subprocess.Popen[bytes], root: Path) -> tuple[bytes, bytes]:
    import subprocess

    try:
        return process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        reason = next(_reasons_to_wait(root, waits=_waits(process)), None)
        if reason is not None:
            raise PathError(reason) from None
    try:
        return process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise PathError(f"{root}: git has not listed the files within {LIMIT} seconds") from None


def _waits(process: subprocess.Popen[bytes]) -> bool:
    """Every thread of git sleeps, and not because nobody has read what it wrote."""
    if sys.platform != "linux" or process.stdout is None:
        return False
    import select

    try:
        threads = [(task / "stat").read_text() for task in Path(f"/proc/{process.pid}/task").iterdir()]
    except OSError:
        return False
    asleep = all(thread.rpartition(")")[2].split()[:1] == ["S"] for thread in threads)
    return asleep and not select.select([process.stdout], [], [], 0)[0]


def _reasons_to_wait(root: Path, *, waits: bool) -> Iterator[str]:
    """Files that git reads and that are pipes or devices, and patterns of ignored files that take it very long.

    While it `waits`, any pipe may be one that it reads: settings and links in its own folder can name it.
    """
    for folder, _, names in walk(root):
        own = Path(folder).is_relative_to(root / ".git")
        for name in sorted(names):
            file = Path(folder, name)
            if name not in (".gitignore", "exclude") and not ((own or waits) and file.is_fifo()):
                continue
            if not os.path.islink(file) and not os.path.isfile(file):
                yield f"{file} is not a regular file, and git waits for its content"
            elif not os.path.islink(file) and os.path.getsize(file) <= BUDGET.settings:
                for number, line in enumerate(file.read_bytes().splitlines(), 1):
                    if max(part.count(b"*") for part in line.split(b"/")) > _MANY_STARS:
                        yield f"{file}:{number}: git needs very long for a pattern with so many stars"


def _environment(root: Path, system: bool) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _KEPT.match(name)}
    made = {**given, **_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": str(root.parent)}
    if system:
        del made["GIT_CONFIG_NOSYSTEM"]
    return made


def _program(root: Path, environment: Mapping[str, str] = os.environ) -> str | None:
    """git from PATH, except from its relative folders and from folders in the repository.

    Windows would look in the current folder first, which may be a checkout with a git of its own.
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
