"""Which versions a repository pins: requirements files, pyproject.toml, environment.yml, and `pip install` commands."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.findings import Span
from trainlint.reading.document import Document, Scalar
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Undecodable
from trainlint.reading.values import Field
from trainlint.releases import version_tuple
from trainlint.repository.invocations import Command, Invocation, repository_invocations
from trainlint.targets import Target

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

from trainlint.repository.files import Repository

PIP = Command(
    "pip install",
    (("pip", "install"), ("pip3", "install")),
    r"\bpip3?\W+install\b",
    bare=frozenset(
        "-U --upgrade -q --quiet -v --verbose --no-cache-dir --no-deps --pre --user --system --no-build-isolation"
        " --force-reinstall --break-system-packages --ignore-installed -I --prefer-binary".split()
    ),
)
_CONDA_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch"}
_CLAUSE = r"[=<>!~]=?=?\s*[^;#,\s=<>!~]+"
_REQUIREMENT = re.compile(
    rf"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*\(?\s*({_CLAUSE}(?:\s*,\s*{_CLAUSE})*)?"
)
_CONDA = re.compile(r"(?:[\w-]+::)?([A-Za-z0-9._-]+?)\s*(=?[=<>!~][^ #]*)?(?:=.*)?$")
_BESIDE = frozenset(
    ".devcontainer .github build ci conda docker dockerfiles env environment environments envs images install"
    " requirements setup workflows".split()
)
"""Folders below one of a config's own parents whose files speak for it too; any other may hold a project of its own."""


@dataclass(frozen=True)
class Pin:
    """What one place says of a package's version; `field` is the requirement's own text there."""

    package: str
    specifier: SpecifierSet
    field: Field
    rank: int
    """Which kind of file it is from; the lower speaks first among those that are equally near."""

    @property
    def span(self) -> Span:
        """Where the requirement stands."""
        return self.field.span

    @property
    def origin(self) -> str:
        """File and line, as a target's origin: `requirements.txt:3`."""
        return f"{self.span.path}:{self.span.line}"

    @property
    def exact(self) -> str | None:
        """The one version that is pinned, as it is written, or None."""
        found = [spec.version for spec in self.specifier if spec.operator in ("==", "===")]
        return found[0] if len(found) == 1 and not found[0].endswith("*") else None

    def allows(self, version: str) -> bool:
        """This version satisfies the pin."""
        return bool(self.specifier.contains(version, prereleases=True))

    def allows_from(self, oldest: str) -> bool:
        """Some version that is `oldest` or newer satisfies the pin."""
        from packaging.version import Version

        bounds = [spec.version.removesuffix(".*") for spec in self.specifier]
        tried = [oldest, f"{oldest}.1", "99999", *bounds, *(f"{bound}.1" for bound in bounds)]
        return any(Version(version) >= Version(oldest) and self.allows(version) for version in tried)


def pinned_version(repository: Repository, near: str | Path, package: str) -> Pin | None:
    """The pin of a package that is nearest to a file: in its own folder, then its parents', then beside those.

    Where several equally near files disagree, an exact pin speaks, then requirements before pyproject.toml,
    environment.yml and commands; None where two of the same kind differ.
    """
    found = _nearest(_of_files(repository).get(package, ()), near)
    found = found or _nearest(_of_commands(repository).get(package, ()), near)
    if not found:
        return None
    exact = [pin for pin in found if pin.exact]
    best = min(exact or found, key=lambda pin: pin.rank)
    rivals = [pin for pin in exact or found if pin.rank == best.rank]
    return best if all(pin.specifier == best.specifier for pin in rivals) else None


def target_from_pins(repository: Repository, near: str | Path, package: str, releases: Sequence[str]) -> Target:
    """The release that a repository's pins ask for, else the newest of `releases` (the known ones, oldest first).

    An exact pin names it; of a range the newest known release counts; a range that no known release satisfies is
    represented by a version of its own, older or newer than all known.
    """
    pin = pinned_version(repository, near, package)
    if pin is None:
        return Target((releases[-1],))
    return Target((pin.exact or _represented(pin, releases),), pin.origin)


def _represented(pin: Pin, releases: Sequence[str]) -> str:
    for release in reversed(releases):
        if pin.allows(release):
            return release
    bounds = [spec.version.removesuffix(".*") for spec in pin.specifier]
    for bound in bounds:
        for version in (bound, f"{bound}.1", _just_below(bound)):
            if pin.allows(version):
                return version
    return releases[-1]


def _just_below(version: str) -> str:
    """A release below a bound: 0.26 for 0.27, 0 for 1.0."""
    numbers = list(version_tuple(version))
    while numbers and not numbers[-1]:
        numbers.pop()
    return ".".join(str(number) for number in [*numbers[:-1], numbers[-1] - 1]) if numbers else "0"


def _nearest(pins: Iterable[Pin], near: str | Path) -> list[Pin]:
    home = Path(near).absolute().parent
    by_distance: dict[tuple[bool, int, int], list[Pin]] = {}
    for pin in pins:
        folder = Path(pin.span.path).absolute().parent
        common = next((p for p in (home, *home.parents) if p == folder or p in folder.parents), home)
        up, down = len(home.parts) - len(common.parts), len(folder.parts) - len(common.parts)
        if down == 0 or set(folder.relative_to(common).parts) <= _BESIDE:
            by_distance.setdefault((down > 0, up, down), []).append(pin)
    return by_distance[min(by_distance)] if by_distance else []


# reading them


def _of_files(repository: Repository) -> dict[str, list[Pin]]:
    return repository.once("pins of files", lambda: _by_package(_in_files(repository)))


def _of_commands(repository: Repository) -> dict[str, list[Pin]]:
    return repository.once(
        "pins of commands", lambda: _by_package(_in_commands(repository_invocations(repository, PIP)))
    )


def _by_package(pins: Iterable[Pin]) -> dict[str, list[Pin]]:
    found: dict[str, list[Pin]] = {}
    for pin in pins:
        found.setdefault(pin.package, []).append(pin)
    return found


def _in_files(repository: Repository) -> Iterator[Pin]:
    for file in repository.files_named((".txt", "pyproject.toml")):
        name = file.name.lower()
        if name.endswith(".txt") and not re.search(r"requirements|constraints", f"{file.parent.name}/{name}"):
            continue
        try:
            document = repository.script(file)
        except (OSError, Undecodable):
            continue
        yield from _in_requirements(document) if name.endswith(".txt") else _in_pyproject(document)
    for file in repository.files:
        if re.fullmatch(r"(?:conda[\w.-]*|env|environment[\w.-]*)\.ya?ml", file.name.lower()):
            try:
                documents = repository.documents(file, re.compile(r"dependencies"))
            except OSError:
                continue
            for document in documents:
                yield from _in_environment(Field.root(document, Dialect.PYYAML))


def _in_requirements(document: Document) -> Iterator[Pin]:
    for line in re.finditer(r"^[ \t]*(?![#-])([^\n#]*[^\n#\s])", document.text.content, re.MULTILINE):
        end = line.start(1) + len(re.split(r"[;\s\\]", line[1])[0])
        yield from _pin(line[1], _place(document, line.start(1), end), 0)


def _in_pyproject(document: Document) -> Iterator[Pin]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    content = document.text.content
    try:
        data: dict[str, object] = tomllib.loads(content)
    except tomllib.TOMLDecodeError:
        return
    for text in dict.fromkeys(_pyproject_requirements(data)):
        for match in re.finditer(rf"""(["']){re.escape(text)}\1""", content):
            yield from _pin(text, _place(document, *match.span()), 1)
            break
    for name, version in _poetry_requirements(data):
        line = re.search(rf"^[ \t]*{re.escape(name)}[ \t]*=[^\n]*{re.escape(version)}", content, re.MULTILINE)
        if line:
            specifier = _poetry_specifier(version)
            yield from _pin(name + specifier, _place(document, line.end() - len(version), line.end()), 1)


def _pyproject_requirements(data: dict[str, object]) -> Iterator[str]:
    project = _table(data, "project")
    groups = [project.get("dependencies"), *_table(project, "optional-dependencies").values()]
    groups += [*_table(data, "dependency-groups").values(), _table(data, "tool", "uv").get("dev-dependencies")]
    for group in groups:
        if isinstance(group, list):
            yield from (item for item in group if isinstance(item, str))


def _poetry_requirements(data: dict[str, object]) -> Iterator[tuple[str, str]]:
    poetry = _table(data, "tool", "poetry")
    tables = [_table(poetry, "dependencies"), _table(poetry, "dev-dependencies")]
    tables += [_table(_table(poetry, "group"), name, "dependencies") for name in _table(poetry, "group")]
    for table in tables:
        for name, value in table.items():
            version = value.get("version") if isinstance(value, dict) else value
            if isinstance(version, str):
                yield name, version


def _table(data: dict[str, object], *keys: str) -> dict[str, object]:
    for key in keys:
        inner = data.get(key)
        data = inner if isinstance(inner, dict) else {}
    return data


def _poetry_specifier(version: str) -> str:
    """Poetry's own operators in the words of PEP 440: `^1.6` is `>=1.6,<2`, `~1.6` is `~=1.6.0`, `1.6` is `==1.6`."""
    parts = []
    for part in version.split(","):
        text = part.strip()
        number = text.lstrip("^~= ")
        if text[:1] == "^":
            numbers = version_tuple(number)
            first = next((index for index, n in enumerate(numbers) if n), len(numbers) - 1)
            upper = ".".join(str(n) for n in [*numbers[:first], numbers[first] + 1]) if numbers else "0"
            parts += [f">={number}", f"<{upper}"]
        elif text[:1] == "~" and text[:2] != "~=":
            parts += [f">={number}", f"=={'.'.join(number.split('.')[:2])}.*"]
        elif text != "*":
            parts.append(f"=={text}" if text[:1].isdigit() else text)
    return ",".join(parts)


def _in_environment(root: Field) -> Iterator[Pin]:
    for item in root.get("dependencies").items():
        for requirement in item.get("pip").items():
            yield from _pin(requirement.written, requirement, 2)
        match = _CONDA.match(item.written)
        if match and match[2]:
            specifier = match[2]
            if specifier[0] == "=" and specifier[:2] != "==":
                specifier = f"={specifier}" if specifier.count(".") > 1 or "*" in specifier else f"={specifier}.*"
            yield from _pin(_CONDA_NAMES.get(match[1], match[1]) + specifier, item, 2)


def _in_commands(invocations: Iterable[Invocation]) -> Iterator[Pin]:
    for invocation in invocations:
        for word in invocation.positionals:
            if word.known:
                yield from _pin(word.known, word.field, 3)


def _pin(text: str, field: Field, rank: int) -> Iterator[Pin]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.utils import canonicalize_name

    match = _REQUIREMENT.match(text)
    if match and match[2] and "platform" not in text.partition(";")[2]:
        try:
            specifier = SpecifierSet(match[2].rstrip(") "))
        except InvalidSpecifier:
            return
        yield Pin(canonicalize_name(match[1]), specifier, field, rank)


def _place(document: Document, start: int, end: int) -> Field:
    node = Scalar(document.text.content[start:end], '"', None, start, end, None)
    return Field(document, Dialect.PYYAML, node)
