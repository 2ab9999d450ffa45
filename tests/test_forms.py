"""Silence is no answer: a release that a file states is judged as one that is named, in whichever form it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from cases import FIXTURES
from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.settings import Overrides

REPOSITORIES = {
    "accelerate": "huggingface/accelerate",
    "axolotl": "axolotl-ai-cloud/axolotl",
    "llamafactory": "hiyouga/LLaMA-Factory",
    "soup-cli": "MakazhanAlpamys/Soup",
    "torchtune": "pytorch/torchtune",
    "transformers": "huggingface/transformers",
    "trl": "huggingface/trl",
}
DISTRIBUTIONS = {"soup": "soup-cli"}
CASES = (
    "FS001/bad-other-release.yaml",
    "FS010/bad.yaml",
    "FS201/bad_trl.yaml",
    "FS215/bad_old_split.yaml",
    "FS330/bad-old.yaml",
    "FS402/bad-old-dtypes.yaml",
    "FS404/bad-newer.yaml",
    "FS501/bad-old-release.yaml",
    "TT330/bad.yaml",
)
"""Fixtures that name a release, of each program; some of their findings are those of that release alone."""

Form = tuple[str, Callable[[str, str, str], str]]


def _lock(name: str, release: str, source: str) -> str:
    return f'[[package]]\nname = "{name}"\nversion = "{release}"\nsource = {{ {source} }}\n'


def _notebook(name: str, release: str, repository: str) -> str:
    cell = {"cell_type": "code", "outputs": [], "source": [f"%pip install -q {name}=={release}\n"]}
    return json.dumps({"cells": [cell]})


FORMS: dict[str, Form] = {
    "constraints": ("requirements.txt", lambda name, release, _: f"-c pins.txt\n{name}\n"),
    "uv source with a tag": (
        "pyproject.toml",
        lambda name, release, repository: (
            f'[project]\nname = "job"\ndependencies = ["{name}"]\n[tool.uv.sources]\n'
            f'{name} = {{ git = "https://github.com/{repository}", tag = "v{release}" }}\n'
        ),
    ),
    "uv lock of a tag": (
        "uv.lock",
        lambda name, release, repository: _lock(
            name, release, f'git = "https://github.com/{repository}?tag=v{release}#0123456789"'
        ),
    ),
    "dependency group": (
        "pyproject.toml",
        lambda name, release, _: f'[project]\nname = "job"\n[dependency-groups]\ntrain = ["{name}=={release}"]\n',
    ),
    "poetry": (
        "pyproject.toml",
        lambda name, release, _: f'[tool.poetry]\nname = "job"\n[tool.poetry.dependencies]\n{name} = "{release}"\n',
    ),
    "pdm lock": ("pdm.lock", lambda name, release, _: f'[[package]]\nname = "{name}"\nversion = "{release}"\n'),
    "pylock": ("pylock.toml", lambda name, release, _: f"[[packages]]\nname = '{name}'\nversion = '{release}'\n"),
    "conda lock": (
        "conda-lock.yml",
        lambda name, release, _: (
            f"version: 1\npackage:\n- name: {name}\n  version: {release}\n  manager: pip\n  platform: linux-64\n"
        ),
    ),
    "pixi lock": (
        "pixi.lock",
        lambda name, release, _: f"version: 6\npackages:\n- pypi: {name}.whl\n  name: {name}\n  version: {release}\n",
    ),
    "conda list": (
        "requirements.txt",
        lambda name, release, _: f"# platform: linux-64\n_libgcc_mutex=0.1=main\n{name}={release}=pypi_0\n",
    ),
    "conda install": ("setup.sh", lambda name, release, _: f"conda install -c conda-forge -y {name}={release}\n"),
    "tag of a repository": (
        "requirements.txt",
        lambda name, release, repository: f"{name} @ git+https://github.com/{repository}.git@v{release}\n",
    ),
    "wheel": (
        "requirements.txt",
        lambda name, release, _: (
            f"https://example.org/{name.replace('-', '_')}-{release}-py3-none-any.whl --hash=sha256:{'0' * 64}\n"
        ),
    ),
    "clone and checkout": (
        "setup.sh",
        lambda name, release, repository: (
            f"git clone https://github.com/{repository}.git && cd {repository.rpartition('/')[2]}\n"
            f"git checkout v{release} && pip install -e .\n"
        ),
    ),
    "clone in a README": (
        "README.md",
        lambda name, release, repository: f"```bash\ngit clone -b v{release} https://github.com/{repository}\n```\n",
    ),
    "step of a README": (
        "README.md",
        lambda name, release, repository: f"1. `git clone -b v{release} https://github.com/{repository}`\n2. Train.\n",
    ),
    "notebook": ("train.ipynb", _notebook),
    "workflow": (
        ".github/workflows/train.yml",
        lambda name, release, _: f"on: push\njobs:\n  a:\n    steps:\n      - run: uv pip install {name}=={release}\n",
    ),
    "task": ("sky.yaml", lambda name, release, _: f"setup: |\n  pip install '{name}[all]=={release}'\nrun: echo\n"),
    "header of a script": (
        "train.py",
        lambda name, release, _: f'# /// script\n# dependencies = ["{name}=={release}"]\n# ///\nimport sys\n',
    ),
    "image in code": (
        "app.py",
        lambda name, release, _: f'V = "{release}"\nimage = modal.Image.debian_slim().pip_install(f"{name}=={{V}}")\n',
    ),
    "installed package": (
        "lib/{folder}-{release}.dist-info/METADATA",
        lambda name, release, _: f"Metadata-Version: 2.1\nName: {name}\nVersion: {release}\n",
    ),
}


def _target(case: str) -> tuple[str, str]:
    text = (FIXTURES / case).read_text(encoding="utf-8")
    match = re.match(r"# target: ([\w-]+)=([\d.]+)\n", text)
    assert match is not None
    return match[1], match[2]


def _found(folder: Path, option: str = "") -> list[tuple[object, ...]]:
    targets = parse_target(option) if option else {}
    findings = lint([folder / "job.yaml"], Overrides(targets=targets, isolated=True)).active
    return sorted((f.rule, f.span.line, f.span.column, f.level.value) for f in findings)


@cache
def _expected(case: str, folder: Path) -> list[tuple[object, ...]]:
    folder.mkdir(exist_ok=True)
    (folder / "job.yaml").write_text((FIXTURES / case).read_text(encoding="utf-8"), encoding="utf-8")
    program, release = _target(case)
    return _found(folder, f"{program}={release}")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_a_release_in_this_form(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, case: str, form: str) -> None:
    """The findings are those of the target that the fixture names."""
    program, release = _target(case)
    name = DISTRIBUTIONS.get(program, program)
    file, text = FORMS[form]
    path = tmp_path / file.format(folder=name.replace("-", "_"), release=release)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text(name, release, REPOSITORIES[name]), encoding="utf-8")
    (tmp_path / "pins.txt").write_text(f"{name}=={release}\n", encoding="utf-8")
    (tmp_path / "job.yaml").write_text((FIXTURES / case).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / ".git").mkdir()
    expected = _expected(case, tmp_path_factory.getbasetemp() / case.replace("/", "-"))
    assert expected
    assert _found(tmp_path) == expected
