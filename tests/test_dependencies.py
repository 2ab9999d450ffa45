"""What an installation brings: bounded, listed with a reason, and under licences that allow it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from external import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
REQUIREMENTS = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
DIRECT, BROUGHT = (
    [[cell.strip(" `") for cell in row.strip("|").split("|")] for row in re.findall(r"(?m)^\|.*$", part)[2:]]
    for part in PAGE.split("They bring with them:")
)
LICENCES: dict[str, str] = {canonicalize_name(row[0]): row[2] for row in DIRECT} | {
    canonicalize_name(row[0]): row[1] for row in BROUGHT
}
ALLOWED = {"MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "MPL-2.0"}
"""Licences of the OSI's that put no condition on who only imports the package."""
CLASSIFIED = {
    "MIT License": "MIT",
    "BSD License": "BSD-3-Clause",
    "Apache Software License": "Apache-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
WINDOWS = {"colorama"}


def installed(requirements: list[Requirement], extras: frozenset[str] = frozenset()) -> Iterator[str]:
    """The packages that these requirements bring on this system, each with its own."""
    for requirement in requirements:
        environments = [{"extra": extra} for extra in (*extras, "")]
        if requirement.marker is None or any(requirement.marker.evaluate(one) for one in environments):
            yield canonicalize_name(requirement.name)
            theirs = distribution(requirement.name).requires or []
            yield from installed([Requirement(text) for text in theirs], frozenset(requirement.extras))


def licence(name: str) -> str:
    """What a package states of its licence, as an SPDX expression."""
    stated = distribution(name).metadata
    short = next((stated[field] for field in ("License-Expression", "License") if field in stated), "")
    classified = [text.rpartition(" :: ")[2] for text in stated.get_all("Classifier", []) if text.startswith("License")]
    return short if 0 < len(short) < 40 else " OR ".join(CLASSIFIED[text] for text in classified)


def test_the_page_names_what_the_project_requires() -> None:
    assert [(row[0], SpecifierSet(row[1])) for row in DIRECT] == [(r.name, r.specifier) for r in REQUIREMENTS]
    assert all(len(row) == 4 and row[3] for row in DIRECT)


def test_every_requirement_is_bounded() -> None:
    for requirement in REQUIREMENTS:
        assert {spec.operator for spec in requirement.specifier} == {">=", "<"}, requirement


def test_the_page_names_what_an_installation_brings() -> None:
    brought = set(installed(REQUIREMENTS)) - WINDOWS
    assert brought <= set(LICENCES)
    if sys.implementation.name == "cpython" and sys.version_info < (3, 11):
        assert brought == set(LICENCES)


@pytest.mark.parametrize("name", LICENCES)
def test_licences(name: str) -> None:
    try:
        stated = licence(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed here")
    assert stated == LICENCES[name]
    assert ALLOWED.intersection(stated.split(" OR ")), stated


def test_what_builds_and_audits_is_pinned_with_hashes() -> None:
    for name in ("build", "audit"):
        text = (ROOT / ".ci" / f"{name}.txt").read_text(encoding="utf-8")
        packages = re.split(r"(?m)^(?=[a-z])", text)[1:]
        assert packages
        assert all(re.match(r"[\w.-]+==\S+", package) and "--hash=sha256:" in package for package in packages)
        asked = {Requirement(line).name for line in (ROOT / ".ci" / f"{name}.in").read_text().splitlines()}
        assert asked <= {re.split("==", package)[0] for package in packages}
    backend = [Requirement(text) for text in PROJECT["build-system"]["requires"]]
    pinned = dict(re.findall(r"(?m)^([\w.-]+)==(\S+)", (ROOT / ".ci" / "build.txt").read_text(encoding="utf-8")))
    assert all(requirement.specifier.contains(pinned[requirement.name]) for requirement in backend)
