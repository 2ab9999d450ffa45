"""The package registry: a program's releases, their dates, and the packages themselves.

It is read through pip's own session, so pip's index, proxy and certificates are used. Nothing is built or run: a source
distribution is stored unchanged.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.utils import InvalidSdistFilename, InvalidWheelFilename, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version

SIMPLE = "application/vnd.pypi.simple.v1+json"


class Missing(Exception):
    """A package that is not available."""


@dataclass(frozen=True)
class File:
    """One file of a release in the registry."""

    name: str
    version: Version
    date: str
    url: str
    sha256: str


class Registry:
    """A registry, read through a session like that of `requests`."""

    def __init__(self, session: Any, index: str) -> None:
        self._session = session
        self._index = index.rstrip("/")
        self._files: dict[str, list[File]] = {}

    @classmethod
    def of_pip(cls) -> Registry:
        """The registry that pip uses."""
        from pip._internal.commands import create_command

        command: Any = create_command("index")
        options, _ = command.parse_args(["versions", "any"])
        with command.main_context():
            return cls(command.get_default_session(options), options.index_url)

    def _get(self, url: str, **options: Any) -> Any:
        try:
            return self._session.get(url, **options)
        except OSError as problem:
            raise Missing(f"the registry cannot be asked: {type(problem).__name__}") from problem

    def files(self, distribution: str) -> list[File]:
        """The files of all final releases that are not yanked, wheels before source distributions; raises Missing."""
        if distribution not in self._files:
            answer = self._get(f"{self._index}/{distribution}/", headers={"Accept": SIMPLE})
            if answer.status_code != 200:
                raise Missing(f"the registry answers {answer.status_code} for {distribution}")
            try:
                rows = answer.json()["files"]
            except (ValueError, LookupError, TypeError) as problem:
                raise Missing(f"the registry answers with no list of files for {distribution}") from problem
            found = [file for row in rows if not row.get("yanked") and (file := _file(row))]
            self._files[distribution] = sorted(found, key=lambda file: not file.name.endswith(".whl"))
        return self._files[distribution]

    def versions(self, distribution: str) -> list[str]:
        """The final releases of a distribution, oldest first."""
        return [str(version) for version in sorted({file.version for file in self.files(distribution)})]

    def dates(self, distribution: str) -> dict[str, str]:
        """The day on which the first file of each release was uploaded."""
        found: dict[str, str] = {}
        for file in sorted(self.files(distribution), key=lambda file: file.date, reverse=True):
            found[str(file.version)] = file.date
        return found

    def fetch(self, distribution: str, version: str, cache: Path) -> Path:
        """A release's wheel, else its source distribution, in the cache; raises Missing where there is neither."""
        for file in self.files(distribution):
            if file.version == Version(version):
                content = self._get(file.url).content
                if hashlib.sha256(content).hexdigest() != file.sha256:
                    raise Missing(f"the digest of {file.name} is not that of the registry")
                cache.mkdir(parents=True, exist_ok=True)
                path = cache / file.name
                path.write_bytes(content)
                return path
        raise Missing(f"the registry has no {distribution} {version}")


def version_of(name: str) -> Version | None:
    """The version in the name of a wheel or source distribution; None for other files."""
    try:
        return parse_wheel_filename(name)[1] if name.endswith(".whl") else parse_sdist_filename(name)[1]
    except (InvalidSdistFilename, InvalidWheelFilename):
        return None


def _file(row: dict[str, Any]) -> File | None:
    """A file of the index; None for a pre-release or another kind of file."""
    version = version_of(row["filename"])
    if version is None or version.is_prerelease:
        return None
    return File(row["filename"], version, row.get("upload-time", "")[:10], row["url"], row["hashes"]["sha256"])


def in_cache(distribution: str, version: str, cache: Path) -> Path | None:
    """The package of a release in the cache, if it is there; the wheel first."""
    stem = f"{distribution.replace('-', '_')}-{version}"
    found = [*sorted(cache.glob(f"{stem}-*.whl")), *sorted(cache.glob(f"{stem}.tar.gz"))]
    return found[0] if found else None
