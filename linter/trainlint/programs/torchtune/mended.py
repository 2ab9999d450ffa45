"""Fixes for settings of a recipe, in a config file or as `key=value` on a command line."""

from __future__ import annotations

from collections.abc import Iterable

from trainlint.findings import Fix
from trainlint.programs.torchtune.omegaconf import ConfigNode
from trainlint.reading import mending


def worded(node: ConfigNode, text: str, *, sure: bool = True) -> Fix | None:
    """Another text as the value of a setting."""
    key = _override(node)
    return mending.worded(node.field, key + text, sure=sure) if _is_plain(node) else None


def written(node: ConfigNode, literal: str, *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """A number, a boolean, null or a list in flow style as the value of a setting."""
    key = _override(node)
    if not _is_plain(node):
        return None
    if key:
        return mending.worded(node.field, key + literal, sure=sure, keeps=keeps)
    return mending.written(node.field, literal, sure=sure, keeps=keeps)


def respelled(node: ConfigNode, words: Iterable[str]) -> Fix | None:
    """The one of these words that is meant as the value of a setting."""
    return None if _override(node) or not _is_plain(node) else mending.respelled(node.field, words)


def renamed(node: ConfigNode, names: Iterable[str]) -> Fix | None:
    """The one of these names that is meant as the key of a setting in a file."""
    return None if _override(node) else mending.renamed_to_nearest(node.field, names)


def removed(node: ConfigNode, *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """A setting in a file goes, or an item of a list."""
    return None if _override(node) else mending.removed(node.field, sure=sure, keeps=keeps)


def _override(node: ConfigNode) -> str:
    """The key of an override with its `=`; empty for a setting in a file."""
    key, equals, _ = node.field.written.partition("=")
    return key + equals if equals and node.key in (key.rpartition(".")[2], "_component_") else ""


def _is_plain(node: ConfigNode) -> bool:
    """The value is written here, and neither interpolated nor a part of an override."""
    written = node.field.written
    return node.own and "$" not in written and not (node.key.isdigit() and "=" in written)
