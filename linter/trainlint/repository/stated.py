"""Which release of a package counts for a file: of all that a repository states, what is nearest and speaks first.

A file's own folder comes first, then each folder above it up to the git root; a folder beside them is another
project's. Folders like `requirements/`, `docker/` or `.github/workflows/` belong to the folder that holds them. Locks,
requirements, project files and vendored sources speak before commands, images and manifests, and those before copies of
the source further in; a README speaks last of all. What a folder `src` holds speaks for the folder that holds it where
nothing else there does.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.budget import BUDGET
from trainlint.records import NamedTuple
from trainlint.repository import fences
from trainlint.repository.bounds import Bounds
from trainlint.repository.discover import SUFFIXES, Tree, repository_root
from trainlint.repository.files import display_path
from trainlint.repository.git import by_parts
from trainlint.repository.index import Index, Question
from trainlint.repository.statements import (
    Form,
    Include,
    Kind,
    Meaning,
    Packages,
    Reading,
    Statement,
    Unreadable,
    form_of,
    needs_names,
    statements_of,
)
from trainlint.repository.statements.model import OWN_HEADER
from trainlint.repository.statements.packages import KNOWN, Package, normalised
from trainlint.targets import How

if TYPE_CHECKING:
    from trainlint.reading.values import Field
    from trainlint.repository.files import Repository

_BESIDE = frozenset(
    ".circleci .devcontainer .github .gitlab bin build ci conda constraints dependencies deps docker dockerfiles env"
    " environment environments envs images install requirements reqs script scripts setup sky skypilot slurm"
    " workflows".split()
)
"""Folders whose files speak for the folder that holds them; any other may hold a project of its own."""

_ASIDE = frozenset("bin build ci script scripts sky skypilot slurm workflows .circleci .github .gitlab".split())
"""Those of them that are there for something else than to say what is installed."""

_SERVING = frozenset(
    "bench benchmark chat demo deploy deployment eval evaluate evaluation gradio infer inference ollama serve server"
    " serving sglang streamlit vllm".split()
)
_TRAINING = frozenset("dpo finetune finetuning grpo install ppo rlhf setup sft train training".split())
"""Words in the names of scripts that tell what they install for."""
_GENERAL = frozenset(("", "configs", "config", "jobs", "requirement", "src", "txt", "yaml", "yml"))
_CI = frozenset((".circleci", ".github", ".gitlab", "ci", "test", "tests"))

_DOCKERFILES = tuple(
    f"dockerfile.{kind}" for kind in "base cpu cuda dev gpu nvidia prod rocm runpod train trainer training".split()
)
_FILES = (
    ".txt", ".in", ".pip", ".lock", ".toml", "pipfile", "setup.py", "setup.cfg", "requirements", "constraints",
    ".gitmodules", "metadata", "pkg-info", "go.mod",
)  # fmt: skip
_PROJECTS = ("pyproject.toml", "setup.py", "setup.cfg")
_COPIES = (
    *_PROJECTS,
    *sorted({posixpath.basename(name) for package in KNOWN.values() for name in package.version_files}),
)
"""Names of files in which a copy of a package's source may keep its version."""
_COMMANDS = (
    ".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".pbs", ".job", ".def", ".mk", "makefile", "justfile", "dockerfile",
    "containerfile", *_DOCKERFILES, ".ipynb", ".py",
)  # fmt: skip
_CLUSTER = (
    "kustomization.yaml", "kustomization.yml", "chart.yaml", "helmfile.yaml", "trainjobs.yaml", "trainingruntimes.yaml",
    "crd.yaml", "crds.yaml", ".sh", "makefile", "go.mod", "kind.yaml", "kind.yml", "kind-config.yaml", "k3d.yaml",
)  # fmt: skip
"""Files that say what a cluster runs; a cluster is the whole repository's, wherever they lie."""

_MOST_CONSTRAINTS = 20
"""Constraints on one package that narrow what is required of it; where there are more, none does."""

TRAINER = "kubeflow-trainer"
SERVER = "kubernetes"
"""The cluster's API server."""
_SURE = frozenset((Form.LOCK, Form.REQUIREMENTS, Form.CONSTRAINTS, Form.PROJECT, Form.ENVIRONMENT, Form.VENDORED))
_SILENT = Reading()
_LOCKED = frozenset((Form.PROJECT, Form.ENVIRONMENT))


class Stated(NamedTuple):
    """What a repository says of the release of a package that a file runs with.

    `statements` are those that count: one, or several equally near ones that differ. `others` are those that were come
    upon and do not count.
    """

    package: str
    statements: tuple[Statement, ...] = ()
    others: tuple[Statement, ...] = ()

    @property
    def how(self) -> How:
        """Stated where every statement names one release; unknown where one of them cannot be told."""
        kinds = {statement.kind for statement in self.statements}
        if not kinds:
            return How.NOT_STATED
        if Kind.UNKNOWN in kinds:
            return How.UNKNOWN
        return How.STATED if kinds == {Kind.EXACT} else How.RANGE

    @property
    def of_fork(self) -> bool:
        """What is said is said of somebody's copy of the source, which may differ from the release of that name."""
        return any(statement.meaning.fork for statement in self.statements)

    @property
    def versions(self) -> tuple[str, ...]:
        """The releases that are named, in the order of the statements."""
        return tuple(dict.fromkeys(s.specifier for s in self.statements if s.kind is Kind.EXACT))

    @property
    def origin(self) -> str:
        """File and line of the first statement, empty where there is none."""
        return self.statements[0].origin if self.statements else ""

    def allows(self, version: str) -> bool:
        """A release can be the one that is meant; any can where nothing is known."""
        return not self.statements or any(allows(statement, version) for statement in self.statements)


class _Found(NamedTuple):
    """What files say, those that count and those that do not; unless it is `settled`, a README may say more."""

    statements: tuple[Statement, ...] = ()
    others: tuple[Statement, ...] = ()
    settled: bool = False


_NOTHING = _Found()


def allows(statement: Statement, version: str) -> bool:
    """A release satisfies one statement; of one that is unknown, any may."""
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    if statement.kind is Kind.EXACT:
        return Version(statement.specifier).public == Version(version).public
    return statement.kind is Kind.UNKNOWN or SpecifierSet(statement.specifier).contains(version, prereleases=True)


class Statements:
    """What the files of one git repository state, read when first asked for.

    `root` is the git root, or the folder that was named where there is none; `tree` tells the files that belong to it,
    but for those that are `excluded`. The files in `blank` have no word that is looked for.
    """

    def __init__(
        self,
        root: Path,
        tree: Tree | None = None,
        index: Index | None = None,
        excluded: Callable[[str], bool] = lambda path: False,
        blank: Collection[str] = (),
        bounds: Bounds | None = None,
        note: Callable[[str], None] = lambda notice: None,
        companion: Callable[[str], AbstractContextManager[None]] = lambda path: nullcontext(),
    ) -> None:
        self.root = Path(os.path.abspath(root))
        self._tree = tree or Tree(self.root)
        self._index = index
        self._excluded = excluded
        self._blank = blank
        self._bounds = bounds or Bounds(self.root)
        self._note = note
        self._companion = companion
        self.unreadable: dict[Unreadable, None] = {}
        """Files that state releases by their names and cannot be read, among those that were asked."""
        self._targets: dict[tuple[str, str, str], str | None] = {}
        self._readings: dict[tuple[str, str], Reading] = {}
        self._lists: dict[tuple[str, ...], dict[str, list[str]]] = {}
        self._of_level: dict[tuple[tuple[str, ...], str], list[str]] = {}
        self._speaking: dict[tuple[str, str, str], list[str]] = {}
        self._found: dict[tuple[str, str, str], list[Statement]] = {}
        self._known = Packages(KNOWN)
        self._folders: dict[str, str] = {}
        self._beside: dict[str, frozenset[str]] = {}
        self._stated: dict[tuple[str, str], Stated] = {}
        self._copies: dict[str, list[tuple[str, str]]] = {}
        self._above_copies: dict[str, frozenset[str]] = {}
        self._nearest: dict[tuple[str, str, str], _Found] = {}

    def stated(self, near: str | Path, package: str) -> Stated:
        """The release of a package that counts for a file."""
        folder = self._folder_of(near)
        key = folder, package
        if key not in self._stated:
            self._stated[key] = self._choose(folder, package)
        return self._stated[key]

    def _folder_of(self, near: str | Path) -> str:
        place = os.path.dirname(near)
        if place not in self._folders:
            folder = os.path.relpath(os.path.abspath(place), self.root).replace(os.sep, "/")
            self._folders[place] = "" if folder == "." or folder.startswith("..") else folder
        return self._folders[place]

    def in_comments(self, near: str | Path, package: str) -> Stated:
        """What a file's own comments say of the release of a package; they count where nothing else does."""
        path = self._relative(os.path.abspath(near))
        found = self._reading(path, package, Form.README, home="").statements if not path.startswith("..") else ()
        return Stated(package, tuple(self._counted([s for s in found if s.package == package], [])))

    def is_together(self, found: Stated, near: str | Path, package: str) -> bool:
        """What was found of a package speaks for the environment in which a file's program gets another package.

        A copy of a source below a folder further up belongs to a project of its own where the file's project has
        statements of the other package itself, also one that names no release, or is a project by its files.
        """
        folder = self._folder_of(near)
        homes = [s.home for s in found.statements if s.form in (Form.VENDORED, Form.SUBMODULE)]
        if all(folder == home or _is_below(folder, home) for home in homes):
            return True
        said = self.stated(near, package)
        own = {posixpath.dirname(self._relative(s.span.path)) for s in (*said.statements, *said.others)}
        own |= self._listed(_PROJECTS).keys() & set(_levels(folder))
        above = {level for level in _levels(folder) for home in homes if home == level or _is_below(home, level)}
        return not any(home != level and _is_below(home, level) for home in own for level in above)

    def _choose(self, folder: str, package: str) -> Stated:
        found = self._from_files(folder, package)
        if found.settled:
            return Stated(package, found.statements, found.others)
        others = [*found.others]
        for level in _levels(folder):
            counted = self._counted(self._once(self._readmes, level, package), others)
            if counted and not found.statements:
                return Stated(package, tuple(counted), tuple(others))
        return Stated(package, found.statements, tuple(others))

    def _from_files(self, folder: str, package: str) -> _Found:
        """What all files but a README say; folders in which nothing speaks have what the nearest above them has."""
        nearest = next((level for level in _levels(folder) if self._speaks(level, package)), None)
        if nearest is None:
            return _NOTHING
        branch = posixpath.join(nearest, _next_below(nearest, folder))
        key = nearest, branch, package
        if key not in self._nearest:
            self._nearest[key] = self._at_levels(nearest, branch, package)
        return self._nearest[key]

    def _at_levels(self, nearest: str, branch: str, package: str) -> _Found:
        """What the files at a level and those above it say for what is in a folder of it, or for the level itself."""
        others: list[Statement] = []
        variants: list[Statement] = []
        bounds: list[Statement] = []
        for level in _levels(nearest):
            if not self._speaks(level, package):
                continue
            for group in (self._at, self._commands, self._in_source, self._below):
                if variants and group != self._at:
                    # A variant of the requirements yields to requirements further up, and to nothing else.
                    continue
                counted = self._counted(self._for(branch, level, self._once(group, level, package)), others)
                if group == self._at and counted:
                    counted = self._replaced(counted, level, others)
                elif group == self._at:
                    counted = self._broken(level, package)
                if package == TRAINER:
                    # The shape of a cluster's CRDs is a bound on the release that it runs, which another file may name.
                    bounds = _bounds(counted, bounds)
                    pins = (statement for statement in counted if statement.kind is Kind.EXACT)
                    if bounds:
                        counted = [pin for pin in pins if all(allows(bound, pin.specifier) for bound in bounds)]
                if any(not _is_variant(statement) for statement in counted):
                    return _Found(tuple(counted), (*others, *variants), settled=True)
                variants = variants or counted
        return _Found(tuple(bounds or variants), tuple(others), settled=bool(bounds))

    def _speaks(self, level: str, package: str) -> bool:
        """Something but a README may state a package's release at a level."""
        source = posixpath.join(level, "src")
        places = (level, source) if source in self._speakers else (level,)
        return (
            any(self._that_speak(group, place, package) for place in places for group in ("at", "commands"))
            or level in self._levels_of_copies(package)
            or bool(self._files((".gitmodules",), level))
            or (package in (TRAINER, SERVER) and level in self._of_cluster)
            or not self._listed(("uv.lock",)).keys().isdisjoint(_levels(level))
        )

    def _levels_of_copies(self, package: str) -> frozenset[str]:
        """The levels at which, or below which, is a copy of a package's source."""
        if package not in self._above_copies:
            homes = {home for _, home in self._sources(package)}
            self._above_copies[package] = frozenset(level for home in homes for level in _levels(home))
        return self._above_copies[package]

    def _for(self, folder: str, level: str, found: list[Statement]) -> list[Statement]:
        """Statements without those of files that are named after a folder beside this one, which has a file as well.

        Of `requirements/east.txt` and `requirements/west.yml` the first is for `east/`, and not for `west-jobs/`.
        """
        ours = _words(_next_below(level, folder)) if found else None
        return [s for s in found if not self._is_for_another(s, level, ours)] if ours else found

    def _is_for_another(self, statement: Statement, level: str, ours: frozenset[str]) -> bool:
        home, name = posixpath.split(self._relative(statement.span.path))
        words = _words(posixpath.splitext(name)[0])
        if home == level or not words or words & ours:
            return False
        if not any(
            _words(posixpath.splitext(o.rpartition("/")[2])[0]) & ours for o in self._tree.folders.get(home, ())
        ):
            return False
        if level not in self._beside:
            names = (_words(posixpath.basename(f)) for f in self._tree.folders if f and posixpath.dirname(f) == level)
            self._beside[level] = frozenset().union(*names)
        return bool(words & self._beside[level])

    def _replaced(self, counted: list[Statement], level: str, others: list[Statement]) -> list[Statement]:
        """The statements of commands that install the package anew behind the project; else what was counted."""
        scripts = [path for path in self._files(_COMMANDS, level) if not path.endswith(".py") and not _is_ci(path)]
        found = [s for path in scripts for s in self._statements(path, counted[0].package) if s.replaces]
        anew = [s for s in found if s.kind is not Kind.RANGE or not any(_satisfies(one, s) for one in counted)]
        kept = self._counted(anew, others)
        if kept:
            others.extend(statement for statement in counted if statement not in others)
        return kept or counted

    def _broken(self, level: str, package: str) -> list[Statement]:
        """A file that by its name states releases, cannot be read and names the package: nobody knows which release."""
        for path in self._that_speak("at", level, package):
            unreadable = self._reading(path, package, home=level).unreadable
            if unreadable is not None and Packages([package]).named_in((self._bytes(path) or b"").lower()):
                meaning = Meaning(Kind.UNKNOWN, "")
                return [Statement(package, meaning, unreadable.span, form_of(path) or Form.PROJECT)]
        return []

    # what stands at one level

    def _once(self, group: Callable[[str, str], Iterator[Statement]], level: str, package: str) -> list[Statement]:
        """What a group of files says at a level, which many folders have above them."""
        key = group.__name__, level, package
        if key not in self._found:
            self._found[key] = list(group(level, package))
        return self._found[key]

    def _at(self, level: str, package: str) -> Iterator[Statement]:
        """Locks, requirements, project files and copies of the source that speak for a folder itself."""
        found = [(path, list(self._followed(path, package, level))) for path in self._that_speak("at", level, package)]
        own = any(not s.is_bare for path, told in found for s in told if not _is_aside(path, level))
        for path, told in found:
            yield from told if not (own and _is_aside(path, level)) else ()
        for above in _levels(level):
            # A workspace's lock speaks for its members, which lie below it.
            lock = posixpath.join(above, "uv.lock")
            if above != level and lock in self._listed(("uv.lock",)).get(above, ()):
                yield from (s for s in self._statements(lock, package) if s.home == level)
        for path, home in self._sources(package):
            if home == level and form_of(path) not in _SURE:
                yield from self._statements(path, package)

    def _commands(self, level: str, package: str) -> Iterator[Statement]:
        for path in self._that_speak("commands", level, package):
            told = self._followed(path, package, level)
            yield from (s for s in told if s.extra != OWN_HEADER or posixpath.dirname(path) == level)

    def _in_source(self, level: str, package: str) -> Iterator[Statement]:
        """What stands in `src`, where the project of a folder may keep its code."""
        folder = posixpath.join(level, "src")
        if folder in self._speakers:
            yield from list(self._at(folder, package)) or self._commands(folder, package)

    def _below(self, level: str, package: str) -> Iterator[Statement]:
        """Copies of the source further in; of the Trainer and the API server, whatever says what the cluster runs."""
        for path, home in self._sources(package):
            if _is_below(home, level):
                yield from self._version(path, package, home)
        for path in self._files((".gitmodules",), level):
            yield from self._statements(path, package)
        if package in (TRAINER, SERVER):
            for path in self._of_cluster.get(level, ()):
                yield from self._statements(path, package)

    def _readmes(self, level: str, package: str) -> Iterator[Statement]:
        for path in self._that_speak("readmes", level, package):
            yield from self._followed(path, package, level)

    @cached_property
    def _of_cluster(self) -> dict[str, list[str]]:
        """The files that say what a cluster runs, by each folder that they are in or below."""
        found: dict[str, list[str]] = {}
        for folder, paths in self._listed(_CLUSTER).items():
            for level in _levels(folder):
                found.setdefault(level, []).extend(paths)
        return found

    def _that_speak(self, group: str, level: str, package: str) -> list[str]:
        """The files of a group at a level in which anything is stated, of any package that is known."""
        known = package in self._known
        key = group, level, "" if known else package
        if key not in self._speaking:
            paths = {
                "at": lambda: [p for p in self._all_files(level, _FILES, SUFFIXES) if form_of(p) in _SURE],
                "commands": lambda: [
                    path
                    for path in self._all_files(level, _COMMANDS, SUFFIXES, _CLUSTER)
                    if form_of(path) not in _SURE and not _is_for_serving(path)
                ],
                "readmes": lambda: self._files(fences.SUFFIXES, level),
            }[group]()
            self._speaking[key] = [path for path in paths if self._reading(path, package, home=level) != _SILENT]
        return self._speaking[key]

    def _sources(self, package: str) -> list[tuple[str, str]]:
        """The files that hold the version of a copy of a package's source, each with the folder of the project."""
        if package not in self._copies:
            asked = Packages([package])
            former = asked.all[0].former
            found = [
                (path, home)
                for paths in self._listed(_COPIES).values()
                for path in paths
                for _, home in asked.vendored(path) or _project_of(path, asked.all[0])
            ]
            now = {home for path, home in found if former and f"/{former}/" not in f"/{path}"}
            self._copies[package] = [
                (path, home) for path, home in found if home not in now or f"/{former}/" not in f"/{path}"
            ]
        return self._copies[package]

    # which of them count

    def _counted(self, found: list[Statement], others: list[Statement]) -> list[Statement]:
        """Of statements that are equally near, those that count; the rest goes to `others`."""
        named = [statement for statement in self._resolved(found) if not statement.is_bare]
        main = [statement for statement in named if not statement.extra] or named
        kept = _without_constraints(main)
        kept = _without_what_is_locked(kept)
        kept = _without_floating_images(kept)
        counted: dict[object, Statement] = {}
        for statement in sorted(kept, key=lambda s: (s.form, s.span)):
            counted.setdefault(statement.meaning, statement)
        spans = {statement.span for statement in counted.values()}
        others.extend(statement for statement in found if statement.span not in spans and statement not in others)
        return list(counted.values())

    def _resolved(self, found: list[Statement]) -> list[Statement]:
        """Statements in which a path to a copy of the source is that copy's version, where the repository has it."""
        kept: list[Statement] = []
        exact = {s.home for s in found if s.form is Form.VENDORED and s.kind is Kind.EXACT}
        for statement in found:
            if not statement.meaning.local:
                kept.append(statement)
                continue
            copies = self._copies_at(statement)
            if copies:
                kept += [copy._replace(form=statement.form, extra=statement.extra) for copy in copies]
            elif not (statement.form is Form.VENDORED and statement.home in exact):
                kept.append(statement)
        return list(dict.fromkeys(kept))

    def _copies_at(self, statement: Statement) -> list[Statement]:
        """The versions of the copy at a path from the file's folder, or from one above it, where a run may start."""
        folder = posixpath.dirname(self._relative(statement.span.path))
        homes = (_normal(posixpath.join(above, statement.specifier)) for above in _levels(folder))
        return next((copies for home in homes if (copies := self._copied(home, statement.package))), [])

    def _copied(self, home: str, package: str) -> list[Statement]:
        """The version of the copy of a package in a folder, also of a submodule or a clone that git does not list."""
        found: list[Statement] = []
        for name in (*Packages([package]).all[0].version_files, *_PROJECTS) if not home.startswith("..") else ():
            path = _normal(posixpath.join(home, name))
            if self._bounds.file(self.root / path):
                found += self._version(path, package, home)
        return [statement for statement in found if statement.kind is Kind.EXACT]

    def _version(self, path: str, package: str, home: str) -> list[Statement]:
        """What a file of a copy of the source says of the copy's own version."""
        found = [*self._statements(path, package), *self._followed(path, package, home)]
        return list(dict.fromkeys(s for s in found if s.form is Form.VENDORED))

    # files

    def _files(self, suffixes: tuple[str, ...], level: str) -> list[str]:
        """The files that speak for a folder: its own, and those of folders in it that are no project of their own."""
        key = suffixes, level
        if key not in self._of_level:
            found = [files for folder in self._speakers.get(level, ()) if (files := self._in_folder(folder, suffixes))]
            self._of_level[key] = [path for files in sorted(found, key=lambda f: by_parts(f[0])) for path in files]
        return self._of_level[key]

    def _all_files(self, level: str, *suffixes: tuple[str, ...]) -> list[str]:
        return sorted({path for ends in suffixes for path in self._files(ends, level)})

    @cached_property
    def _speakers(self) -> dict[str, list[str]]:
        """By folder, the folders whose files speak for it."""
        found: dict[str, list[str]] = {}
        for folder in self._tree.folders:
            home = folder
            found.setdefault(home, []).append(folder)
            while home and _is_beside(posixpath.basename(home).lower()):
                home = posixpath.dirname(home)
                if folder.endswith(".egg-info") and posixpath.basename(home) == "src":
                    home = posixpath.dirname(home)
                found.setdefault(home, []).append(folder)
        return found

    def _in_folder(self, folder: str, suffixes: tuple[str, ...]) -> list[str]:
        """The files directly in a folder with one of these suffixes, as paths from the root."""
        return [
            name
            for name in self._tree.folders.get(folder, ())
            if name.lower().endswith(suffixes) and self._belongs(name)
        ]

    def _listed(self, suffixes: tuple[str, ...]) -> dict[str, list[str]]:
        """The repository's files with one of these suffixes, by folder, as paths from the root."""
        if suffixes not in self._lists:
            found: dict[str, list[str]] = {}
            for name in self._tree.ending(suffixes):
                if self._belongs(name):
                    found.setdefault(posixpath.dirname(name), []).append(name)
            self._lists[suffixes] = found
        return self._lists[suffixes]

    def _belongs(self, name: str) -> bool:
        return self._tree.holds(name) and not self._excluded(self._tree.path(name))

    def _statements(self, path: str, package: str) -> list[Statement]:
        return [statement for statement in self._reading(path, package).statements if statement.package == package]

    def _followed(self, path: str, package: str, level: str) -> Iterator[Statement]:
        """The statements of a file and of those that it names, for the folder that it speaks for."""
        seen = {path}
        stack: list[tuple[str, Form | None, str, str]] = [(path, None, "", "")]
        while stack:
            current, form, version_of, extra = stack.pop()
            reading = self._reading(current, package, form, version_of, level)
            for statement in reading.statements:
                if statement.package == package and (statement.home == posixpath.dirname(current) or version_of):
                    # What a file is for is told by whoever names it, before its own name.
                    named = form is not None and _is_variant(statement)
                    yield statement._replace(extra=extra if named else statement.extra or extra)
            for include in reading.includes:
                target = self._target(include) if len(seen) < BUDGET.included else None
                if target is not None and target not in seen and include.package in ("", package):
                    seen.add(target)
                    stack.append((target, include.form, include.package, extra or include.extra))

    def _target(self, include: Include) -> str | None:
        """The file of the repository that another names, from its own folder, else from one above it."""
        key = include.span.path, include.path, include.package
        if key not in self._targets:
            self._targets[key] = self._file_of(include)
        return self._targets[key]

    def _file_of(self, include: Include) -> str | None:
        written = include.path
        if not written or written.startswith(("/", "~")) or len(written) > 500 or "\0" in written:
            return None
        folder = posixpath.dirname(self._relative(include.span.path))
        for above in _levels(folder) if not include.package else (folder,):
            path = _normal(posixpath.join(above, written))
            if not path.startswith("..") and self._bounds.file(self.root / path):
                return path
        return None

    def _reading(
        self, path: str, package: str, form: Form | None = None, version_of: str = "", home: str = ""
    ) -> Reading:
        """What one file states, read once for all packages that are known."""
        group = "" if package in self._known else package
        key = f"{path}\0{'' if form is None else form.name}\0{version_of}", group
        if key not in self._readings:
            plain = not group and form is None and not version_of
            if plain and self._is_known_silent(path):
                self._readings[key] = _SILENT
                return _SILENT
            data = self._bytes(path)
            asked = Packages([package]) if group else self._known
            reading = _SILENT
            if data is not None:
                shown = display_path(self.root / path)
                with self._companion(shown):
                    reading = _shown(statements_of(path, data, asked, form=form, package=version_of, home=home), shown)
                    if plain:
                        self._remember(path, reading)
            if reading.unreadable is not None:
                self.unreadable[reading.unreadable] = None
                span = reading.unreadable.span
                self._note(f"{span.path}:{span.line}: {reading.unreadable.reason}; the releases in it are not known")
            self._readings[key] = reading
        return self._readings[key]

    def _is_known_silent(self, path: str) -> bool:
        """The file states nothing of any known package: it is blank, or did not and has not changed since."""
        index, place = self._index, self._tree.path(path)
        if place in self._blank and needs_names(path, self._known):
            self._remember(path, _SILENT)
            return True
        found = self._bounds.look(place) if index else None
        return index is not None and found is not None and index.answer(place, found[1], Question.STATES) == 0

    def _remember(self, path: str, reading: Reading) -> None:
        index, place = self._index, self._tree.path(path)
        found = self._bounds.look(place) if index else None
        if index and found:
            index.keep(place, found[1], Question.STATES, int(reading != _SILENT))

    def _bytes(self, path: str) -> bytes | None:
        """The content of a file of the repository; None for what is none, or lies outside."""
        try:
            return self._bounds.read(os.path.abspath(os.path.join(self.root, path)))
        except (OSError, ValueError):
            return None

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self.root).replace(os.sep, "/")


def _shown(reading: Reading, path: str) -> Reading:
    """A reading whose places are told as the user knows the file."""
    return Reading(
        tuple(s._replace(span=s.span._replace(path=path)) for s in reading.statements),
        tuple(i._replace(span=i.span._replace(path=path)) for i in reading.includes),
        reading.unreadable and reading.unreadable._replace(span=reading.unreadable.span._replace(path=path)),
    )


def _without_floating_images(found: list[Statement]) -> list[Statement]:
    """The images of runtimes, of whatever day, say nothing of the Trainer beside what states its release."""
    kept = [s for s in found if not (s.package == TRAINER and s.is_open_image)]
    return kept or found


def _without_constraints(found: Sequence[Statement]) -> list[Statement]:
    """Statements in which a constraint narrows what is required beside it; one that stands alone is kept."""
    constraints = [s for s in found if s.form is Form.CONSTRAINTS and s.kind is Kind.RANGE]
    required = [s for s in found if s.form is not Form.CONSTRAINTS and s.kind is Kind.RANGE]
    if not constraints or not required or len(constraints) > _MOST_CONSTRAINTS:
        return list(found)
    bounds = ",".join(s.specifier for s in constraints)
    kept = [s for s in found if s not in constraints and s not in required]
    return kept + [s._replace(meaning=s.meaning._replace(text=f"{s.specifier},{bounds}")) for s in required]


def _without_what_is_locked(found: Sequence[Statement]) -> list[Statement]:
    """Statements without the ranges that another one, equally near, pins to a release in them.

    A lock also tells which release a project's branch or commit is of, and so does the source that is the project.
    """
    pins = [s for s in found if s.kind is Kind.EXACT]
    locked = any(s.form is Form.LOCK for s in pins)
    copied = {s.home for s in pins if s.form is Form.VENDORED}
    kept: list[Statement] = []
    for statement in found:
        if statement.kind is Kind.RANGE and any(allows(statement, pin.specifier) for pin in pins):
            continue
        if statement.kind is Kind.UNKNOWN and locked and statement.form in _LOCKED:
            continue
        if statement.kind is Kind.UNKNOWN and statement.form is not Form.VENDORED and statement.home in copied:
            continue
        kept.append(statement)
    return kept


def _bounds(found: Sequence[Statement], before: list[Statement]) -> list[Statement]:
    """What only limits the release: ranges, else images with a floating tag; empty where a statement says more."""
    ranges = [statement for statement in found if statement.kind is Kind.RANGE]
    floating = [s for s in found if s.kind is Kind.UNKNOWN and s.form is Form.IMAGE]
    if len(ranges) + len(floating) < len(found) or any(bound.kind is Kind.RANGE for bound in before):
        return before
    return _together(ranges) if ranges else before or floating


def _together(found: Sequence[Statement]) -> list[Statement]:
    """Ranges that hold together as one; as they are where they contradict each other."""
    from packaging.specifiers import SpecifierSet

    joined = SpecifierSet(",".join(statement.specifier for statement in found))
    versions = [spec.version.removesuffix(".*") for spec in joined]
    if not any(joined.contains(tried) for version in versions for tried in (version, f"{version}.1")):
        return list(found)
    return [found[0]._replace(meaning=found[0].meaning._replace(text=str(joined)))]


def _satisfies(statement: Statement, wanted: Statement) -> bool:
    """What is installed by one statement may satisfy another, so that pip leaves it alone."""
    return statement.kind is not Kind.EXACT or allows(wanted, statement.specifier)


def _is_ci(path: str) -> bool:
    """A script that only tests the project; it may install what nobody trains with."""
    return bool(_CI.intersection(path.split("/")[:-1]))


def _is_for_serving(path: str) -> bool:
    """A script that by its name serves or evaluates a model: what it installs need not be where a model is trained."""
    words = set(re.split(r"[^a-z]+", posixpath.basename(path).lower()))
    return bool(words & _SERVING) and not words & _TRAINING


def _is_aside(path: str, level: str) -> bool:
    """A file for a folder lies in one of its folders that is there for something else."""
    return bool(_ASIDE.intersection(path[len(level) :].lower().split("/")[:-1]))


def _words(name: str) -> frozenset[str]:
    """The words in a name that tell what it is for: those of folders that hold any project's files do not."""
    return frozenset(re.split(r"[^a-z0-9]+", name.lower())) - _BESIDE - _GENERAL


def _is_variant(statement: Statement) -> bool:
    """A file of requirements that is a variant of others; it speaks where no other does."""
    return bool(statement.extra) and statement.form in (Form.REQUIREMENTS, Form.CONSTRAINTS)


def _is_beside(name: str) -> bool:
    return name in _BESIDE or name.endswith((".dist-info", ".egg-info"))


def _levels(folder: str) -> Iterator[str]:
    """A folder, and those above it up to the root."""
    while folder:
        yield folder
        folder = posixpath.dirname(folder)
    yield ""


def _next_below(level: str, folder: str) -> str:
    """The name of the folder of a level that another folder is, or is below; empty for the level itself."""
    return folder[len(level) :].lstrip("/").partition("/")[0]


def _is_below(folder: str, level: str) -> bool:
    return folder != level and (not level or folder.startswith(level + "/"))


def _project_of(path: str, package: Package) -> list[tuple[str, str]]:
    """The folder of a project file, where it is called as the package is."""
    folder, _, name = path.rpartition("/")
    named = name in _PROJECTS and normalised(posixpath.basename(folder)) in package.folders
    return [(package.name, folder)] if named else []


def _normal(path: str) -> str:
    path = posixpath.normpath(path)
    return "" if path == "." else path


def statements_in(repository: Repository) -> Statements:
    """The statements of the git repository that a workspace belongs to."""

    def made() -> Statements:
        root = Path(os.path.abspath(repository.root))
        top = repository_root(root) if repository.whole else root
        note, companion, run = repository.note, repository.companion, repository.run

        def of(tree: Tree, index: Index | None, excluded: Callable[[str], bool]) -> Statements:
            return Statements(top, tree, index, excluded, run.blank, run.bounds(top), note, companion)

        if top == root:
            return of(repository.tree, repository.index, repository.exclude.excludes)
        # Workspaces within one git repository look at the same files.
        return run.once(("statements", top), lambda: of(run.tree(top), run.index(str(top)), lambda path: False))

    return repository.once("statements", made)


def stated(repository: Repository, near: str | Path, package: str) -> Stated:
    """What the repository says of the release of a package that a file runs with."""
    return statements_in(repository).stated(near, package)


class Pinned(NamedTuple):
    """What is said of a package's version, as a rule may blame it: `field` is the first place that says so."""

    stated: Stated
    field: Field

    @property
    def package(self) -> str:
        """The package's name."""
        return self.stated.package

    def allows_from(self, oldest: str) -> bool:
        """Some version that is `oldest` or newer can be the one that is meant."""
        return any(_allows_from(statement, oldest) for statement in self.stated.statements)


def pinned(repository: Repository, near: str | Path, package: str) -> Pinned | None:
    """What the repository says of the version of a package that a file runs with, None where that is nothing."""
    from trainlint.reading.document import Scalar
    from trainlint.reading.scalars import Dialect
    from trainlint.reading.text import Undecodable
    from trainlint.reading.values import Field

    found = stated(repository, near, package)
    if found.how not in (How.STATED, How.RANGE):
        return None
    span = found.statements[0].span
    try:
        document = repository.script(Path(span.path))
    except (OSError, Undecodable):
        return None
    text = document.text
    start = text.line_start(span.line) + span.column - 1
    end = text.line_start(span.end_line) + span.end_column - 1
    node = Scalar(text.content[start:end], '"', None, start, end, None)
    return Pinned(found, Field(document, Dialect.PYYAML, node))


def _allows_from(statement: Statement, oldest: str) -> bool:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

    if statement.kind is Kind.EXACT:
        return Version(statement.specifier) >= Version(oldest)
    bounds = [spec.version.removesuffix(".*") for spec in SpecifierSet(statement.specifier)]
    tried = [oldest, f"{oldest}.1", "99999", *bounds, *(f"{bound}.1" for bound in bounds)]
    return any(Version(version) >= Version(oldest) and allows(statement, version) for version in tried)
