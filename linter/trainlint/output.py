"""Where reports go: the terminal, and files; several at once."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from trainlint.findings import did_you_mean
from trainlint.progress import terminal_width
from trainlint.records import NamedTuple
from trainlint.report import Report
from trainlint.reports import FOR_TERMINALS, FORMATS, RenderOptions, render
from trainlint.repository.discover import trap

STDOUT = Path("-")
_LINKING = ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "Tabby", "rio", "WarpTerminal")
"""Values of TERM_PROGRAM of terminals that show links."""
_LINKING_VARIABLES = ("WT_SESSION", "KITTY_WINDOW_ID", "KONSOLE_VERSION", "DOMTERM", "ALACRITTY_WINDOW_ID")


class OutputError(ValueError):
    """A file that a report cannot be written to."""


class Output(NamedTuple):
    """A file for a report; an empty format is that of `--format` or of the settings."""

    format: str
    file: Path

    @classmethod
    def of(cls, word: str) -> Output:
        """`FILE`, or `FORMAT=FILE`; a word before an equals sign that is no format belongs to the file's name.

        Raises OutputError for a format without a file, and for a word that is almost a format.
        """
        prefix, equals, rest = word.partition("=")
        if not equals or prefix not in FORMATS:
            if equals and "/" not in prefix and (hint := did_you_mean(prefix, FORMATS)):
                raise OutputError(f"{word!r}: {prefix} is no format, {hint} A file of this name is ./{word}")
            return cls("", Path(word))
        if not rest:
            raise OutputError(f"{word!r} names no file: write FORMAT=FILE, such as {prefix}=report")
        return cls(prefix, Path(rest))


class Screen(NamedTuple):
    """What is known of the terminal that standard output goes to."""

    color: bool
    links: bool
    width: int | None
    """None where it is no terminal: then nothing is wrapped."""

    @classmethod
    def of(cls, color: str) -> Screen:
        """The screen of this run, with the choice of `--color`."""
        terminal = sys.stdout.isatty()
        colored = color == "always" or (color == "auto" and terminal and not os.environ.get("NO_COLOR"))
        return cls(colored, colored and terminal and _shows_links(), terminal_width(sys.stdout) if terminal else None)

    def options(self, options: RenderOptions) -> RenderOptions:
        """The options of a report for this screen."""
        encoding = sys.stdout.encoding or "utf-8"
        shown = options._replace(color=self.color, links=self.links, encoding=encoding)
        return shown if self.width is None else shown._replace(width=self.width, wraps=True)


def _shows_links() -> bool:
    """The terminal says in its environment that it shows links (OSC 8); others print parts of them."""
    asked = os.environ.get("FORCE_HYPERLINK")
    if asked is not None:
        return asked not in ("", "0")
    env = os.environ
    if env.get("TERM") == "dumb":
        return False
    vte = env.get("VTE_VERSION", "")
    return (
        env.get("TERM_PROGRAM") in _LINKING
        or (vte.isdecimal() and int(vte) >= 5000)
        or any(env.get(name) for name in _LINKING_VARIABLES)
    )


class Written(NamedTuple):
    """What standard output shows, and which files could not be written."""

    shown: str
    failures: tuple[str, ...] = ()


def write(report: Report, outputs: Sequence[Output], chosen: str, options: RenderOptions, screen: Screen) -> Written:
    """Write each output.

    Standard output shows the report in the chosen format, or, where a file without a format of its own takes that one,
    the text; also where no file can be written. Raises OutputError for a file that is named twice.
    """
    shown = "text" if any(not output.format and output.file != STDOUT for output in outputs) else chosen
    seen: set[str] = set()
    for output in outputs:
        place = str(output.file) if output.file == STDOUT else os.path.abspath(output.file)
        if place in seen:
            raise OutputError(f"{output.file}: two reports cannot be written to one file")
        seen.add(place)
    failures = []
    for output in outputs:
        form = output.format or chosen
        if output.file == STDOUT:
            shown = form
            continue
        try:
            _write(output.file, render(form, report, options))
        except OutputError as error:
            failures.append(str(error))
    told = render(shown, report, screen.options(options) if shown in FOR_TERMINALS else options)
    return Written(told, tuple(failures))


def _write(file: Path, document: str) -> None:
    """Write a document, but not through a link of the repository that leads out of it, nor to a pipe in it."""
    if found := trap(file):
        raise OutputError(f"{file}: {found}")
    try:
        file.write_text(document, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OutputError(f"{file}: cannot be written: {error.strerror}") from None
