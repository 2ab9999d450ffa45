"""The output formats: each is a module that turns a report into one document, and is imported on use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path, PurePath
from typing import NamedTuple, cast

from trainlint import __version__
from trainlint.findings import Finding, Severity
from trainlint.report import Report

PROJECT = "https://github.com/trainlint/trainlint"

FORMATS: Mapping[str, tuple[str, str]] = {
    "text": ("text", "render"),
    "concise": ("text", "render_concise"),
    "json": ("json", "render"),
    "sarif": ("sarif", "render"),
    "github": ("github", "render"),
    "gitlab": ("gitlab", "render"),
    "junit": ("junit", "render"),
}
"""By name of the format: the module of this package and the function that render it."""


class RenderOptions(NamedTuple):
    """Options of a document.

    `color` and `links` (to rule pages) are for terminals; `encoding` and `width` (in columns) belong to the stream of
    the text report. `show_suppressed` adds suppressed and baselined findings to text, concise, json, gitlab and junit
    (github never has them, sarif always). sarif, github and gitlab write paths relative to `root`, the repository's
    root. Findings below `fail_on` do not fail a junit test. `show_values` does not mask what looks like a secret.
    `unsafe_fixes`: they are marked like safe ones, because the user asked for them.
    """

    color: bool = False
    links: bool = False
    show_suppressed: bool = False
    show_values: bool = False
    unsafe_fixes: bool = False
    root: Path = Path()
    version: str = __version__
    fail_on: Severity = Severity.ERROR
    encoding: str = "utf-8"
    width: int = 160

    def shown(self, report: Report) -> Iterable[Finding]:
        """The findings to print."""
        return report.findings if self.show_suppressed else report.active

    def from_root(self, path: str) -> str:
        """A path relative to the root, with forward slashes; absolute where it is not below the root."""
        place, root = os.path.abspath(path), os.path.abspath(self.root)
        folder, name = os.path.split(place)
        for spelled, base in ((place, root), (os.path.join(os.path.realpath(folder), name), os.path.realpath(root))):
            if PurePath(spelled).is_relative_to(base):
                return PurePath(spelled).relative_to(base).as_posix()
        return PurePath(place).as_posix()


def render(name: str, report: Report, options: RenderOptions | None = None) -> str:
    """The report as a document of a format; it ends with a line end unless it is empty.

    All formats but text, concise and github are plain ASCII.
    """
    module, function = FORMATS[name]
    renderer = cast("Callable[[Report, RenderOptions], str]", getattr(import_module(f"{__name__}.{module}"), function))
    options = options or RenderOptions()
    return renderer(report if options.show_values else without_secrets(report), options)


def without_secrets(report: Report) -> Report:
    """The report as it may be shown to anybody."""
    if report.masked or not (report.texts or report.notices):
        return report
    from trainlint.reports.masking import masked

    return masked(report)


def rule_page(code: str) -> str:
    """The address of a rule's page."""
    return f"{PROJECT}/blob/main/docs/rules/{code}.md"
