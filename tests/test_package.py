"""What is shipped: the wheel holds the package with its data, the source distribution what tests it, nothing else."""

from __future__ import annotations

import os
import re
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from external import ROOT, run
from trainlint import __version__


def built(target: str, source: Path, folder: Path) -> Path:
    """Build with the backend that is in this environment, so without a network."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "--directory", str(folder)]
    done = run(command, cwd=source, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    (artifact,) = folder.iterdir()
    return artifact


def files_below(folder: Path) -> set[str]:
    """The files of a folder of the project, without what Python leaves there."""
    found = (path for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in found}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    archive = built("sdist", ROOT, folder / "dist")
    with tarfile.open(archive) as tar:
        for member in tar.getmembers():
            assert member.name.startswith(f"trainlint-{__version__}/"), member.name
            assert ".." not in Path(member.name).parts
        # The filter came to Python in patch releases, and a later one warns of its absence.
        tar.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
        tar.extractall(folder)
    return folder / f"trainlint-{__version__}"


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from the source distribution as pip would."""
    return zipfile.ZipFile(built("wheel", unpacked, tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    return Parser().parsestr(wheel.read(f"trainlint-{__version__}.dist-info/METADATA").decode())


def test_the_source_distribution_can_test_itself(unpacked: Path) -> None:
    shipped = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    for folder in ("linter", "tests", "fixtures", "tools"):
        assert files_below(Path(folder)) <= shipped
    assert {"Makefile", "LICENSE", "README.md", "action.yml", ".pre-commit-hooks.yaml"} <= shipped
    assert not [name for name in shipped if name.startswith((".venv", ".cache", ".git/")) or "__pycache__" in name]


def test_the_wheel_holds_the_package_and_its_data(wheel: zipfile.ZipFile) -> None:
    shipped = {name for name in wheel.namelist() if ".dist-info/" not in name}
    pages = {name.replace("docs/rules", "trainlint/pages") for name in files_below(Path("docs/rules"))}
    assert shipped == pages | {name.removeprefix("linter/") for name in files_below(Path("linter"))}
    assert any(name.startswith("trainlint/programs/") and name.endswith(".json") for name in shipped)
    assert "trainlint/py.typed" in shipped
    assert f"trainlint-{__version__}.dist-info/licenses/LICENSE" in wheel.namelist()


def test_the_command(wheel: zipfile.ZipFile) -> None:
    entry_points = wheel.read(f"trainlint-{__version__}.dist-info/entry_points.txt").decode()
    assert entry_points.split() == ["[console_scripts]", "trainlint", "=", "trainlint.__main__:main"]


def test_what_is_installed_with_it(metadata: Message) -> None:
    requires = [value for value in metadata.get_all("Requires-Dist", []) if "extra ==" not in value]
    names = sorted(re.split("[<>=]", value)[0] for value in requires)
    assert names == ["click", "packaging", "ruamel-yaml[oldlibyaml]", "sarif-om", "tomli"]
    assert metadata["Version"] == __version__
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["License-Expression"] == "Apache-2.0"


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{name}.md" for name in ("fixes", "integrations", "packaging"))])
def test_pages_name_this_release(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = re.findall(r'\bv(\d+\.\d+\.\d+)\b|trainlint==([\d.]+)|version: "([\d.]+)"', text)
    assert {"".join(one) for one in named} <= {__version__, "3.13", "3.12"}


def test_the_changelog_begins_with_this_release() -> None:
    first = re.search(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert first is not None
    assert first[1] == __version__
