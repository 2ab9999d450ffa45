"""Which files a kustomization names as patches: they hold a part of an object, not an object.

Source: the Kustomization of kustomize 5: `patches`, and the older `patchesStrategicMerge`; a kustomization may name
files of its own folder and below.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.lazy import regex
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Undecodable
from trainlint.reading.values import Field
from trainlint.reading.words import may_say

if TYPE_CHECKING:
    from trainlint.repository.files import Repository

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_PATCHES = regex(r"patches|patchesStrategicMerge")


def is_patch(file: Path, repository: Repository) -> bool:
    """A kustomization in the file's folder or above, within the workspace, lists the file as a patch."""
    target = os.path.abspath(file)
    root = os.path.abspath(repository.root)
    folder, name = os.path.split(target)
    while folder == root or folder.startswith(os.path.join(root, "")):
        texts = repository.once(("kustomizations", folder), partial(_texts_of, folder, repository))
        if any(may_say(text, name) for text in texts) and target in repository.once(
            ("patches", folder), partial(_patches_of, folder, repository)
        ):
            return True
        if folder == root:
            break
        folder = os.path.dirname(folder)
    return False


def _texts_of(folder: str, repository: Repository) -> list[str]:
    """The texts of the kustomization in a folder, which need not be parsed where they do not name a file."""
    texts = []
    for file in (Path(folder, name) for name in NAMES):
        if repository.find(file):
            with suppress(OSError, Undecodable):
                texts.append(repository.text(file))
    return texts


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
