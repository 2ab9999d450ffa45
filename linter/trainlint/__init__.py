"""trainlint: a linter for training manifests and trainer configs.

`lint(paths, overrides) -> Report` is the public function; `Overrides` holds the command line's options. Both are
imported on first use, so that the command line only imports what it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlint.engine import lint as lint
    from trainlint.report import Report as Report
    from trainlint.settings import Overrides as Overrides

__version__ = "0.1.0"
__all__ = ["Overrides", "Report", "__version__", "lint"]

_HOMES = {"lint": "engine", "Report": "report", "Overrides": "settings"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"trainlint.{_HOMES[name]}"), name)
