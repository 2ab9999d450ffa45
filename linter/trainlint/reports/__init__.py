"""The output formats: each is a module that turns a report into one document, and is imported on use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import cast

from trainlint import __version__
from trainlint.findings import Finding, Severity, did_you_mean
from trainlint.records import NamedTuple
from trainlint.report import Report

PROJECT = "https://github.com/trainlint/trainlint"

FORMATS: Mapping[str, tuple[str, str]] = {
    "text": ("text", "render"),
    "concise": ("text", "render_concise"),
    "grouped": ("text", "render_grouped"),
    "json": ("json", "render"),
    "jsonl": ("json", "render_lines"),
    "sarif": ("sarif", "render"),
    "github": ("github", "render"),
    "gitlab": ("gitlab", "render"),
    "junit": ("junit", "render"),
    "azure": ("azure", "render"),
    "rdjson": ("rdjson", "render"),
    "markdown": ("markdown", "render"),
    "html": ("html", "render"),
}
"""By name of the format: the module of this package and the function that render it."""
FOR_TERMINALS = frozenset({"text", "concise", "grouped"})
"""The formats that follow the terminal: its colors, links, width and encoding."""
STATISTICS: Mapping[str, tuple[str, str]] = {
    "text": ("statistics", "render"),
    "json": ("statistics", "render_json"),
}
"""The same for `--statistics`, which tells counts in place of findings."""


Jobs = Mapping[tuple[str, int], Sequence[Sequence[str]]]
"""By path and index of the document: for each definition of its runtime the lines on what a job starts."""


class RenderOptions(NamedTuple):
    """Options of a document.

    `color` and `links` (to rule pages) are for terminals; `encoding` and `width` (in columns) belong to the stream of
    the text report, which `wraps` its long lines; `quiet` leaves out what follows the findings. `show_suppressed` adds
    suppressed and baselined findings (github, azure and rdjson never have them, sarif always). Formats that another
    program lays over the repository (sarif, github, gitlab, azure, rdjson) write paths relative to `root`, the
    repository's root. Findings below `fail_on` do not fail a junit test. `show_values` does not mask what looks like a
    secret. `statistics` renders counts in place of findings; `jobs` is for html. With `unsafe_fixes` unsafe fixes are
    marked like safe ones, because the user asked for them.
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
    wraps: bool = False
    quiet: bool = False
    statistics: bool = False
    jobs: Jobs = MappingProxyType({})

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

    All formats but text, concise, grouped, github, azure and markdown are plain ASCII.

    Raises ValueError for a name that is no format, or none of statistics where these are wanted.
    """
    known = STATISTICS if options is not None and options.statistics else FORMATS
    if name not in known:
        hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
        raise ValueError(f"unknown format {name!r}, {hint}")
    module, function = known[name]
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
