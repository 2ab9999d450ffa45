"""Which files a kustomization names as patches: they hold a part of an object, not an object.

Source: the Kustomization of kustomize 5: `patches`, and the older `patchesStrategicMerge`; a kustomization may name
files of its own folder and below.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.lazy import regex
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field

if TYPE_CHECKING:
    from trainlint.repository.files import Repository

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_PATCHES = regex(r"patches|patchesStrategicMerge")


def is_patch(file: Path, repository: Repository) -> bool:
    """A kustomization in the file's folder or above, within the workspace, lists the file as a patch."""
    target = os.path.abspath(file)
    root = os.path.abspath(repository.root)
    folder = os.path.dirname(target)
    while folder == root or folder.startswith(os.path.join(root, "")):
        if target in repository.once(("patches", folder), partial(_patches_of, folder, repository)):
            return True
        if folder == root:
            break
        folder = os.path.dirname(folder)
    return False


def _patches_of(folder: str, repository: Repository) -> frozenset[str]:
    """The files that the kustomization in a folder names as patches."""
    found: set[str] = set()
    for name in NAMES:
        file = Path(folder, name)
        try:
            documents = repository.documents(file, _PATCHES) if repository.find(file) else []
        except OSError:
            continue
        for document in documents:
            kustomization = Field.root(document, Dialect.KUBERNETES)
            patches = [patch.get("path") for patch in kustomization.get("patches").items()]
            for path in (*patches, *kustomization.get("patchesStrategicMerge").items()):
                text = path.text().known
                if text is not None and "\n" not in text:
                    found.add(os.path.abspath(os.path.join(folder, text)))
    return frozenset(found)
