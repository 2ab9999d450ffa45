"""Which of a repository's statements counts for a file."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path
from typing import Any

import pytest

from trainlint.recognise import sought
from trainlint.repository.discover import Excluder
from trainlint.repository.files import Repository
from trainlint.repository.stated import Stated, Statements, pinned, statements_in
from trainlint.repository.statements import Form
from trainlint.targets import How


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def told(stated: Stated, folder: Path) -> list[str]:
    """What counts: `0.17.0 requirements.txt:1`."""
    return [f"{s.specifier or 'any'} {os.path.relpath(s.origin, folder)}" for s in stated.statements]


LOCK = '[[package]]\nname = "trl"\nversion = "0.17.0"\nsource = { registry = "r" }\n'
PROJECT = "[project]\nname = 'job'\ndependencies = ['trl>=0.9']\n"

CASES = [
    pytest.param(
        dict(re.findall(r"^=== ([^\n]+)\n((?:(?!===|>>>)[^\n]*\n)*)", block, re.MULTILINE)),
        re.findall(r"^>>> (.*)$", block, re.MULTILINE),
        id=block.partition("\n")[0],
    )
    for block in re.split(
        r"^### ", Path(__file__).with_name("stated.txt").read_text(encoding="utf-8"), flags=re.MULTILINE
    )[1:]
]


@pytest.mark.parametrize(("files", "expected"), CASES)
def test_what_counts(tmp_path: Path, files: dict[str, str], expected: list[str]) -> None:
    """For a file in `a/configs`; each case has files, the package with how much is known, and what counts."""
    write(tmp_path, files)
    package, _, how = expected[0].partition(" ")
    stated = Statements(tmp_path).stated(tmp_path / "a" / "configs" / "x.yaml", package)
    assert (stated.how.value, told(stated, tmp_path)) == (how, expected[1:])


class Thorough(Statements):
    """Looks into every folder, also where nothing speaks, and into every file."""

    def _speaks(self, level: str, package: str) -> bool:
        return True


@pytest.mark.parametrize("seed", range(40))
def test_where_nothing_speaks(seed: int, tmp_path: Path) -> None:
    """Folders in which nothing is stated, and files without a word of a package, change nothing."""
    dice = random.Random(seed)
    folders = [tmp_path / name for name in ("", "a", "a/b", "a/scripts", "a/b/c", "d")]
    for case in dice.sample(CASES, 4):
        files_of_case: Any = case.values[0]
        write(dice.choice(folders), files_of_case)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    yaml = [str(file) for file in files if file.suffix in (".yaml", ".yml")]
    blank = {file for file in yaml if not sought().is_in(Path(file).read_bytes())}
    quick, thorough = Statements(tmp_path, blank=blank), Thorough(tmp_path)
    for folder in dict.fromkeys([*folders, *(file.parent for file in files)]):
        for package in ("trl", "transformers", "kubeflow-trainer", "kubernetes", "torch", "soup-cli"):
            assert quick.stated(folder / "x.yaml", package) == thorough.stated(folder / "x.yaml", package)


def test_what_does_not_count_is_kept(tmp_path: Path) -> None:
    """What was come upon on the way can be shown."""
    write(tmp_path, {"uv.lock": LOCK, "pyproject.toml": PROJECT, "requirements-dev.txt": "trl==0.1\n"})
    stated = Statements(tmp_path).stated(tmp_path / "x.yaml", "trl")
    assert [other.specifier for other in stated.others] == [">=0.9", "0.1"]
    assert stated.versions == ("0.17.0",)
    assert stated.statements[0].form is Form.LOCK


def test_allows(tmp_path: Path) -> None:
    """A release can be meant by one of several statements."""
    write(tmp_path, {"requirements.txt": "trl==0.17.0\n", "environment.yml": "dependencies: ['trl>=1,<2']\n"})
    stated = Statements(tmp_path).stated(tmp_path / "x.yaml", "trl")
    assert [stated.allows(version) for version in ("0.17.0", "0.17.1", "1.5.0", "2.0.0")] == [True, False, True, False]
    nothing = Statements(tmp_path).stated(tmp_path / "x.yaml", "accelerate")
    assert nothing.allows("1.0")
    assert nothing.origin == ""


def test_boundary(tmp_path: Path) -> None:
    """Statements are looked for up to the git root, also above settings further in, and never beyond."""
    write(
        tmp_path,
        {"requirements.txt": "trl==0.1\n", "git/requirements.txt": "trl==0.17.0\n", "git/a/trainlint.toml": ""},
    )
    (tmp_path / "git" / ".git").mkdir()
    repository = Repository(tmp_path / "git" / "a", Excluder((), tmp_path), lambda _: ())
    stated = statements_in(repository).stated(tmp_path / "git" / "a" / "x.yaml", "trl")
    assert told(stated, tmp_path) == ["0.17.0 git/requirements.txt:1"]
    (tmp_path / "git" / "requirements.txt").unlink()
    assert Statements(tmp_path / "git").stated(tmp_path / "git" / "a" / "x.yaml", "trl").how is How.NOT_STATED


def test_links_that_lead_out(tmp_path: Path) -> None:
    """Nothing outside the repository is read, whatever names it."""
    write(tmp_path, {"out.txt": "trl==0.1\n", "git/x.yaml": "", "git/requirements-a.txt": "-r link.list\n"})
    for name in ("requirements.txt", "link.list"):
        (tmp_path / "git" / name).symlink_to(tmp_path / "out.txt")
    os.mkfifo(tmp_path / "git" / "requirements-b.txt")
    assert Statements(tmp_path / "git").stated(tmp_path / "git" / "x.yaml", "trl").how is How.NOT_STATED


def test_unreadable(tmp_path: Path) -> None:
    """A companion that cannot be read states nothing, and is named once."""
    write(tmp_path, {"pyproject.toml": "dependencies = ['trl==0.17.0'\n", "requirements.txt": "trl==0.16.0\n"})
    statements = Statements(tmp_path)
    for name in ("a.yaml", "b/c.yaml"):
        assert statements.stated(tmp_path / name, "trl").versions == ("0.16.0",)
    (remark,) = statements.unreadable
    assert remark.reason == "not TOML"
    assert remark.span.path.endswith("pyproject.toml")


def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many files and packages ask."""
    write(tmp_path, {"requirements.txt": "trl==0.17.0\ntransformers==4.51.3\n", "a/requirements.txt": "torch\n"})
    statements = Statements(tmp_path)
    read: list[str] = []
    true = Statements._bytes

    def counted(self: Statements, path: str) -> bytes | None:
        read.append(path)
        return true(self, path)

    monkeypatch.setattr(Statements, "_bytes", counted)
    for package in ("trl", "transformers", "accelerate"):
        for name in ("x.yaml", "y.yaml", "a/z.yaml"):
            statements.stated(tmp_path / name, package)
    assert sorted(read) == sorted(set(read))


# pins that a rule blames


def repository(folder: Path, files: dict[str, str]) -> Repository:
    write(folder, files)
    return Repository(folder, Excluder((), folder), lambda _: ())


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
    """Whether any version from 2.2 on can be meant, with the place to blame."""
    found = pinned(repository(tmp_path, {"requirements.txt": f"{pin}\n"}), tmp_path / "a.yaml", "torch")
    assert found is not None
    assert found.package == "torch"
    assert found.field.written == pin
    assert found.allows_from("2.2") is allowed
