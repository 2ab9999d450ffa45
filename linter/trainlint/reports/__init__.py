"""The output formats: each is a module that turns a report into one document, imported only when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path, PurePath
from typing import cast

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
"""The name of each format, with the module of this package and the function that render it."""


@dataclass(frozen=True, slots=True)
class RenderOptions:
    """What a document depends on besides the report.

    `color` and `links` (to rule pages) are for terminals; `encoding` and `width` (in columns) are those of the stream
    that the text report goes to. `show_suppressed` adds suppressed and baselined findings to text, concise, json,
    gitlab and junit (github never has them, sarif always). `root` is the repository's root, to which sarif, github and
    gitlab make paths relative. Findings below `fail_on` fail no test of junit. `show_values` shows also what looks like
    a secret.
    """

    color: bool = False
    links: bool = False
    show_suppressed: bool = False
    show_values: bool = False
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
    """The report as a document of the named format, ending in a line end unless it is empty.

    All formats but text, concise and github are plain ASCII, so that any stream can take them.
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
    """Where a rule is documented."""
    return f"{PROJECT}/blob/main/docs/rules/{code}.md"
