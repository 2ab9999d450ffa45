"""What a repository pins, where it says so, and which release that makes the target."""

from __future__ import annotations

from pathlib import Path

import pytest

from surroundings import surroundings
from trainlint.repository.files import Repository
from trainlint.repository.pins import pinned_version, target_from_pins

RELEASES = ("0.27.2", "0.34.2", "1.0.1", "1.6.0", "1.15.0")


def repository(folder: Path, files: dict[str, str]) -> Repository:
    return surroundings(folder, files).repository


def target(folder: Path, files: dict[str, str], near: str = "a.yaml", package: str = "accelerate") -> tuple[str, str]:
    found = target_from_pins(repository(folder, files), folder / near, package, RELEASES)
    (version,) = found.versions
    return version, found.origin.removeprefix(f"{folder.as_posix()}/")


@pytest.mark.parametrize(
    ("pin", "version"),
    [
        ("accelerate==1.6.0", "1.6.0"),
        ("accelerate == 1.5.2  # why", "1.5.2"),
        ("Accelerate[testing]==1.6.0 ; python_version > '3.9'", "1.6.0"),
        ("accelerate>=0.30,<1.1", "1.0.1"),
        ("accelerate~=1.0", "1.15.0"),
        ("accelerate~=1.6.0", "1.6.0"),
        ("accelerate==1.*", "1.15.0"),
        ("accelerate<0.27", "0.26"),
        ("accelerate<=0.20.3", "0.20.3"),
        ("accelerate>2", "2.1"),
        ("accelerate==0.20.3 \\\n    --hash=sha256:00", "0.20.3"),
    ],
)
def test_target(tmp_path: Path, pin: str, version: str) -> None:
    """An exact pin is the version; of a range the newest known release counts, or a version outside all known."""
    assert target(tmp_path, {"requirements.txt": f"# the stack\n-r other.txt\n{pin}\n"}) == (
        version,
        "requirements.txt:3",
    )


@pytest.mark.parametrize(
    "text",
    [
        "accelerate\n",
        "# accelerate==1.6.0\n",
        "accelerate @ git+https://example.org/accelerate\n",
        "accelerate-plus==1.6.0\n",
        "accelerate==1.6.0; sys_platform == 'darwin'\n",
        "accelerate==1.6.0; python_version < '3.9'\naccelerate==1.15.0; python_version >= '3.9'\n",
        "accelerate==one\n",
    ],
)
def test_no_pin(tmp_path: Path, text: str) -> None:
    """Nothing is pinned, or not one version: the newest release."""
    assert target(tmp_path, {"requirements.txt": text}) == ("1.15.0", "default")


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("requirements/train.txt", "accelerate==1.6.0\n", "requirements/train.txt:1"),
        ("requirements-gpu.txt", "\naccelerate==1.6.0\n", "requirements-gpu.txt:2"),
        ("pyproject.toml", '[project]\ndependencies = [\n  "accelerate==1.6.0",\n]\n', "pyproject.toml:3"),
        ("pyproject.toml", "[project.optional-dependencies]\nx = ['accelerate==1.6.0']\n", "pyproject.toml:2"),
        ("pyproject.toml", '[dependency-groups]\nx = ["accelerate==1.6.0"]\n', "pyproject.toml:2"),
        ("pyproject.toml", '[tool.poetry.dependencies]\naccelerate = "1.6.0"\n', "pyproject.toml:2"),
        (
            "pyproject.toml",
            '[tool.poetry.group.g.dependencies]\naccelerate = {version = "~1.6", extras = []}\n',
            "pyproject.toml:2",
        ),
        ("environment.yml", "dependencies:\n- python\n- conda-forge::accelerate=1.6.0\n", "environment.yml:3"),
        ("environment.yml", "dependencies:\n- pip:\n  - accelerate==1.6.0\n", "environment.yml:3"),
        ("Dockerfile", "FROM x\nRUN pip install -U pip && \\\n  pip install 'accelerate==1.6.0'\n", "Dockerfile:3"),
        (".github/workflows/a.yml", "run: |\n  ls\n  uv pip install accelerate==1.6.0\n", ".github/workflows/a.yml:3"),
    ],
)
def test_places(tmp_path: Path, name: str, text: str, place: str) -> None:
    """Each kind of file, with the line of the pin."""
    assert target(tmp_path, {name: text}) == ("1.6.0", place)


def test_nearest_wins(tmp_path: Path) -> None:
    """The config's own folder, then its parents; other projects of the repository do not count."""
    files = {
        "requirements.txt": "accelerate==1.0.1\n",
        "a/requirements.txt": "accelerate==1.6.0\n",
        "b/c/requirements.txt": "accelerate==0.34.2\n",
    }
    assert target(tmp_path, files, "a/configs/x.yaml") == ("1.6.0", "a/requirements.txt:1")
    assert target(tmp_path, files, "b/x.yaml") == ("1.0.1", "requirements.txt:1")
    (tmp_path / "requirements.txt").unlink()
    assert target(tmp_path, {}, "b/x.yaml") == ("1.15.0", "default")


def test_exact_before_range(tmp_path: Path) -> None:
    """Of equally near files an exact pin speaks; two that differ say nothing."""
    files = {"requirements.txt": "accelerate>=0.27\n", "environment.yml": "dependencies: [accelerate==1.6.0]\n"}
    assert target(tmp_path, files) == ("1.6.0", "environment.yml:1")
    files = {"requirements.txt": "accelerate==1.0.1\n", "requirements-dev.txt": "accelerate==1.6.0\n"}
    assert target(tmp_path, files) == ("1.15.0", "default")


@pytest.mark.parametrize(
    ("pin", "allowed"),
    [
        ("torch==2.1.2", False),
        ("torch<2.2", False),
        ("torch~=2.1.0", False),
        ("torch==2.1.*", False),
        ("torch<=2.2", True),
        ("torch<2.2.1", True),
        ("torch>=2.1,<2.3,!=2.2", True),
        ("torch~=2.1", True),
        ("torch>=1.13", True),
        ("torch==2.9.1+cu128", True),
    ],
)
def test_allows_from(tmp_path: Path, pin: str, allowed: bool) -> None:
    """Whether any version from 2.2 on satisfies the pin."""
    context = repository(tmp_path, {"requirements.txt": f"{pin}\n"})
    found = pinned_version(context, tmp_path / "a.yaml", "torch")
    assert found is not None
    assert found.allows_from("2.2") is allowed
