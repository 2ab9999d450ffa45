"""trainlint: a linter for training manifests and trainer configs.

`lint(paths, settings) -> Report` is the public function. What `__all__` names is stable, and described in
docs/python.md; it is imported on first use, so that the command line only imports what it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainlint.engine import lint as lint
    from trainlint.findings import Edit as Edit
    from trainlint.findings import Finding as Finding
    from trainlint.findings import Fix as Fix
    from trainlint.findings import Related as Related
    from trainlint.findings import Severity as Severity
    from trainlint.findings import Span as Span
    from trainlint.findings import Stage as Stage
    from trainlint.report import FileCounts as FileCounts
    from trainlint.report import Report as Report
    from trainlint.repository.bounds import PathError as PathError
    from trainlint.settings import Overrides as Overrides
    from trainlint.settings import SettingsError as SettingsError
    from trainlint.targets import Target as Target

__version__ = "0.2.0"

_HOMES = {
    "Edit": "findings",
    "FileCounts": "report",
    "Finding": "findings",
    "Fix": "findings",
    "Overrides": "settings",
    "PathError": "repository.bounds",
    "Related": "findings",
    "Report": "report",
    "SettingsError": "settings",
    "Severity": "findings",
    "Span": "findings",
    "Stage": "findings",
    "Target": "targets",
    "lint": "engine",
}

__all__ = [
    "Edit",
    "FileCounts",
    "Finding",
    "Fix",
    "Overrides",
    "PathError",
    "Related",
    "Report",
    "SettingsError",
    "Severity",
    "Span",
    "Stage",
    "Target",
    "__version__",
    "lint",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"trainlint.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
