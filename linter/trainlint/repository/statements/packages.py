"""The packages whose releases are looked for, and the names under which files know them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable
from functools import cached_property

from trainlint.reading.words import AnyOf
from trainlint.records import NamedTuple


def normalised(name: str) -> str:
    """A distribution's name as PyPI compares it: `Soup_CLI` is `soup-cli`."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Package(NamedTuple):
    """One package: its distributions, the repositories that it is released from, and its import packages.

    `repositories` are `owner/name` in lower case, all that were ever official. `version_files` are where a copy of the
    source keeps its version, from the folder of the project. `forkable` says that a repository of the same name
    elsewhere is taken for a fork; words that mean many things are not. `former` is an older name of its import package.
    """

    name: str
    distributions: tuple[str, ...]
    repositories: tuple[str, ...] = ()
    version_files: tuple[str, ...] = ()
    forkable: bool = True
    former: str = ""
    others: tuple[str, ...] = ()
    """Other words that a file may use for it."""
    renamed: str = ""
    """The end of a version file's path in a copy that has another name; such a file names the package itself."""

    @property
    def folders(self) -> frozenset[str]:
        """What a copy of its source is called, as PyPI compares names."""
        names = (*self.distributions, *(known.partition("/")[2] for known in self.repositories))
        return frozenset(normalised(name) for name in names)

    def is_repository(self, slug: str) -> bool | None:
        """An `owner/name` is one of its own (True), a fork (False) or another's (None)."""
        if slug in self.repositories:
            return True
        names = {known.partition("/")[2] for known in self.repositories} or set(self.distributions)
        return False if self.forkable and slug.rpartition("/")[2] in names else None


def _source(*imports: str) -> tuple[str, ...]:
    return tuple(f"{folder}{name}/__init__.py" for name in imports for folder in ("src/", ""))


_TRAINER_IMAGES = ("trainer-controller-manager", "torchtune-trainer")

KNOWN = {
    package.name: package
    for package in (
        Package("accelerate", ("accelerate",), ("huggingface/accelerate",), _source("accelerate")),
        Package(
            "axolotl",
            ("axolotl",),
            ("axolotl-ai-cloud/axolotl", "openaccess-ai-collective/axolotl"),
            _source("axolotl"),
        ),
        Package(
            "llamafactory",
            ("llamafactory", "llmtuner"),
            ("hiyouga/llama-factory", "hiyouga/llamafactory", "hiyouga/llama-efficient-tuning"),
            (
                "src/llamafactory/extras/env.py",
                "llamafactory/extras/env.py",
                "src/llmtuner/extras/env.py",
                *_source("llmtuner"),
            ),
            former="llmtuner",
            renamed="extras/env.py",
        ),
        Package(
            "soup-cli",
            ("soup-cli",),
            ("makazhanalpamys/soup",),
            _source("soup_cli"),
            forkable=False,
        ),
        Package("torch", ("torch",), ("pytorch/pytorch",), others=("pytorch",)),
        Package(
            "torchtune",
            ("torchtune",),
            ("pytorch/torchtune", "meta-pytorch/torchtune"),
            _source("torchtune"),
        ),
        Package("transformers", ("transformers",), ("huggingface/transformers",), _source("transformers")),
        Package("trl", ("trl",), ("huggingface/trl", "lvwerra/trl"), _source("trl")),
        Package("deepspeed", ("deepspeed",), ("deepspeedai/deepspeed", "microsoft/deepspeed")),
        Package("peft", ("peft",), ("huggingface/peft",), _source("peft")),
        Package("kubeflow", ("kubeflow",), ("kubeflow/sdk",), forkable=False),
        Package("kubeflow-trainer-api", ("kubeflow-trainer-api",), forkable=False),
        Package(
            "kubeflow-trainer",
            (),
            ("kubeflow/trainer", "kubeflow/training-operator"),
            forkable=False,
            others=("kubeflow/trainer", "kubeflow-trainer", "trainer.kubeflow.org", *_TRAINER_IMAGES),
        ),
        Package(
            "kubernetes",
            (),
            forkable=False,
            others=("kindest/node", "rancher/k3s", "kubernetes-version", "kubeversion"),
        ),
    )
}
"""Source: the packages' own metadata and the history of their repositories' names. Others are known by name alone."""


class Packages:
    """The packages that are asked for."""

    def __init__(self, names: Iterable[str]) -> None:
        known = (KNOWN.get(name) or Package(name, (name,)) for name in dict.fromkeys(map(normalised, names)))
        self.all: tuple[Package, ...] = tuple(known)
        self._by_distribution = {name: package for package in self.all for name in package.distributions}
        self._by_name = {package.name: package for package in self.all}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def distribution(self, name: str) -> str | None:
        """The package that a distribution's name means, as it is written somewhere."""
        found = self._by_distribution.get(normalised(name))
        return found.name if found else None

    def conda(self, name: str) -> str | None:
        """The package that a conda package's name means."""
        return self.distribution("torch" if normalised(name) in ("pytorch", "pytorch-gpu") else name)

    def repository(self, slug: str) -> tuple[str, bool] | None:
        """The package that an `owner/name` holds, and whether it is its own rather than a fork."""
        slug = slug.lower().removesuffix(".git")
        for package in self.all:
            own = package.is_repository(slug)
            if own is not None:
                return package.name, own
        return None

    @property
    def words(self) -> frozenset[str]:
        """The words, in lower case, of which every file has one that states a release and does not tell by its name."""
        words: set[str] = set()
        for package in self.all:
            words.update(package.others, package.repositories)
            words.update(slug.partition("/")[2] for slug in package.repositories if package.forkable)
            words.update(name.replace("-", mark) for name in package.distributions for mark in "-_.")
        return frozenset(words)

    @cached_property
    def _words(self) -> AnyOf:
        return AnyOf(sorted(self.words))

    def named_in(self, data: bytes) -> bool:
        """Bytes, in lower case, hold a name of one of the packages: only then is a file worth reading."""
        return bool(self._words.words) and self._words.found_in(data)

    def vendored(self, path: str) -> list[tuple[str, str]]:
        """The packages of which a path is a version file, each with the folder of the project."""
        found: list[tuple[str, str]] = []
        lowered = "/" + path
        for package in self.all:
            for file in package.version_files:
                if lowered.endswith("/" + file):
                    found.append((package.name, path[: len(path) - len(file)].rstrip("/")))
                    break
            else:
                if package.renamed and lowered.endswith("/" + package.renamed):
                    home = posixpath.dirname(path[: len(path) - len(package.renamed)].rstrip("/"))
                    found.append((package.name, posixpath.dirname(home) if posixpath.basename(home) == "src" else home))
        return found


def packages(names: Collection[str] | Packages) -> Packages:
    """The packages of these names."""
    return names if isinstance(names, Packages) else Packages(names)
