"""A released package: its Python sources, what it requires, and when it was built."""

from __future__ import annotations

import ast
import re
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, timezone
from email.parser import Parser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from trainlint.training.declarations import DISTRIBUTIONS, LIBRARIES

COMPANIONS = frozenset({*DISTRIBUTIONS.values(), *LIBRARIES, "peft", "torch", "torchtune"})
"""The distributions whose mutual requirements are recorded."""

MACHINE = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.12.0",
    "python_version": "3.12",
    "sys_platform": "linux",
    "extra": "",
}
"""The environment for a requirement's marker: where trainers run."""

MADE_UP = 2021
"""Reproducible builds have a date up to this year, which is not that of the release."""


class Package:
    """The sources of one released package, wheel or source distribution."""

    def __init__(self, archive: Path, package: str) -> None:
        self.package = package
        self._files: dict[str, bytes] = {}
        self._metadata: list[str] = []
        self._requirements = ""
        self._built: date | None = None
        top = archive.name.removesuffix(".tar.gz")
        for name, built, read in _members(archive):
            self._built = max(self._built or built, built)
            if name.endswith(("dist-info/METADATA", f"{top}/PKG-INFO")):
                self._metadata = Parser().parsestr(read().decode()).get_all("Requires-Dist") or []
            elif name == f"{top}/requirements.txt":
                self._requirements = read().decode()
            inside = re.search(rf"(?:^|/src/|^[^/]+/){package}/(.+\.py)$", name)
            if inside:
                self._files[inside[1]] = read()
        self._modules: dict[str, ast.Module] = {}

    def names(self, pattern: str) -> list[str]:
        """The modules whose path inside the package matches the regular expression."""
        return sorted(name for name in self._files if re.fullmatch(pattern, name))

    def text(self, name: str) -> str:
        """The source of a module, empty when the release has no such module."""
        return self._files.get(name, b"").decode()

    def module(self, name: str) -> ast.Module:
        """The syntax tree of a module, empty when the release has no such module."""
        if name not in self._modules:
            self._modules[name] = ast.parse(self._files.get(name, b""))
        return self._modules[name]

    @property
    def built(self) -> str:
        """The day on which the archive was built, empty where it is not known."""
        return self._built.isoformat() if self._built and self._built.year > MADE_UP else ""

    def requirements(self) -> Iterator[tuple[str, str, bool]]:
        """The required distributions: canonical name, range, and whether only an extra requires it.

        A source distribution without metadata has them in its requirements.txt.
        """
        for line in self._metadata or self._requirements.splitlines():
            try:
                requirement = Requirement(line.partition(" #")[0])
            except InvalidRequirement:
                continue
            marker = requirement.marker
            optional = marker is not None and re.search(r"\bextra\b", str(marker)) is not None
            if marker is None or optional or marker.evaluate(dict(MACHINE)):
                yield canonicalize_name(requirement.name), str(requirement.specifier), optional

    def bounds(self) -> dict[str, str]:
        """The ranges of the companions: `requires:NAME`, and `optional:NAME` for that of most extras."""
        asked: dict[str, Counter[str]] = {}
        bounds = {}
        for name, specifier, optional in self.requirements():
            if name not in COMPANIONS:
                continue
            if optional:
                asked.setdefault(name, Counter())[specifier] += bool(specifier)
            else:
                bounds[f"requires:{name}"] = specifier
        for name, counted in asked.items():
            bounds[f"optional:{name}"] = counted.most_common(1)[0][0]
        return bounds


def _members(archive: Path) -> Iterator[tuple[str, date, Callable[[], bytes]]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for info in wheel.infolist():
                yield info.filename, date(*info.date_time[:3]), lambda info=info: wheel.read(info)  # type: ignore[misc]
        return
    with tarfile.open(archive) as sdist:
        for member in sdist:
            stream = sdist.extractfile(member)
            if stream is not None:
                yield member.name, datetime.fromtimestamp(member.mtime, timezone.utc).date(), stream.read
