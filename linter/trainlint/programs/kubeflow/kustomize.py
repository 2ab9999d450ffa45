"""Which files a kustomization names as patches: they hold a part of an object, not an object.

Source: the Kustomization of kustomize 5: `patches`, and the older `patchesStrategicMerge`; a kustomization may name
files of its own folder and below.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field

if TYPE_CHECKING:
    from trainlint.repository.files import Repository

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_PATCHES = re.compile(r"patches|patchesStrategicMerge")


def is_patch(file: Path, repository: Repository) -> bool:
    """A kustomization in the file's folder or above, within the workspace, lists the file as a patch."""
    target = Path(os.path.abspath(file))
    root = Path(os.path.abspath(repository.root))
    folders = [folder for folder in target.parents if folder == root or root in folder.parents]
    return any(target in _patches_of(folder, repository) for folder in folders)


def _patches_of(folder: Path, repository: Repository) -> Iterator[Path]:
    for name in NAMES:
        try:
            documents = repository.documents(folder / name, _PATCHES) if repository.find(folder / name) else []
        except OSError:
            continue
        for document in documents:
            kustomization = Field.root(document, Dialect.KUBERNETES)
            patches = [patch.get("path") for patch in kustomization.get("patches").items()]
            for path in (*patches, *kustomization.get("patchesStrategicMerge").items()):
                text = path.text().known
                if text is not None and "\n" not in text:
                    yield Path(os.path.abspath(folder / text))
