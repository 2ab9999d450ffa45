"""The report for people: each finding with its lines, and a count at the end; or one line for each finding."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter

from trainlint.findings import Finding, Related, Severity, Span
from trainlint.reading.text import Text
from trainlint.report import Report
from trainlint.reports import RenderOptions, rule_page
from trainlint.reports.escape import columns, visible, visible_path
from trainlint.reports.snippet import CUT, Mark, rows
from trainlint.reports.words import annotation, fix_title, hints, is_fixable, reason, result

_COLORS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}
_FRAME = "34"
_BOLD = "1"
_MARK = "36"
_NARROWEST = 40
"""Columns that the lines of a file have, however narrow the terminal."""
_IN_SNIPPET = 3
"""How many related places a snippet shows beside the finding's own."""

Piece = tuple[str, str]
"""Printable text, and its color."""


def render(report: Report, options: RenderOptions) -> str:
    """Each finding with up to two lines before its own, then the result."""
    blocks = ["\n".join(_block(finding, report, options)) for finding in options.shown(report)]
    if not options.quiet:
        blocks.append("\n".join(_footer(report, options)))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def render_concise(report: Report, options: RenderOptions) -> str:
    """One line for each finding."""
    return "".join(
        f"{_painted([(_place(finding.span, options), _BOLD), (': ', ''), *_headline(finding, options)], options)}\n"
        for finding in options.shown(report)
    )


def render_grouped(report: Report, options: RenderOptions) -> str:
    """A heading for each file with its findings below, in columns, then the result."""
    found = sorted(options.shown(report), key=attrgetter("path"))
    blocks = []
    for path, group in groupby(found, key=attrgetter("path")):
        findings = list(group)
        places = [f"{finding.span.line}:{finding.span.column}" for finding in findings]
        wide = max(map(len, places))
        lines = [_painted([(visible_path(path, options.encoding), _BOLD)], options)]
        for place, finding in zip(places, findings, strict=True):
            indent = 2 + wide + 2
            pieces = [(f"  {place.rjust(wide)}  ", ""), *_headline(finding, options, pad=True)]
            lines += _wrapped(pieces, indent, options)
        blocks.append("\n".join(lines))
    if not options.quiet:
        blocks.append("\n".join(_footer(report, options)))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _footer(report: Report, options: RenderOptions) -> Iterator[str]:
    for sentence in (result(report), *hints(report)):
        yield from _wrapped([(visible(sentence, options.encoding), "")], 0, options)


def _place(span: Span, options: RenderOptions) -> str:
    return f"{visible_path(span.path, options.encoding)}:{span.line}:{span.column}"


def _headline(finding: Finding, options: RenderOptions, *, pad: bool = False) -> list[Piece]:
    """`error TT102 single-node-model: message`; `[*]` behind the code marks what `--fix` fixes."""
    level = finding.level.value
    return [
        (level, _COLORS[finding.level]),
        (" " * (8 - len(level)) if pad else " ", ""),
        (finding.rule, _BOLD),
        (" [*]" if is_fixable(finding, unsafe=options.unsafe_fixes) else "", _MARK),
        (f" {finding.name}: {visible(finding.message, options.encoding)}", ""),
    ]


def _painted(pieces: list[Piece], options: RenderOptions) -> str:
    return "".join(_paint(text, color, options) for text, color in pieces)


def _paint(text: str, color: str, options: RenderOptions) -> str:
    """Text in a color; the code of a rule is a link to its page."""
    painted = f"\x1b[{color}m{text}\x1b[0m" if options.color and color and text else text
    if options.links and color == _BOLD and _is_code(text):
        return f"\x1b]8;;{rule_page(text)}\x1b\\{painted}\x1b]8;;\x1b\\"
    return painted


def _is_code(text: str) -> bool:
    return len(text) == 5 and text[:2].isupper() and text[2:].isdecimal()


def _wrapped(pieces: list[Piece], indent: int, options: RenderOptions) -> Iterator[str]:
    """The pieces as one line, or, on a terminal, as lines of its width; all but the first are indented.

    A word that is longer than a line is not broken: a path can still be copied or clicked.
    """
    if not options.wraps:
        yield _painted(pieces, options)
        return
    words: list[list[Piece]] = [[]]
    for text, color in pieces:
        for number, part in enumerate([text] if color == _BOLD else text.split(" ")):
            if number:
                words.append([])
            words[-1].append((part, color))
    line, used = words[0], _width(words[0])
    for word in words[1:]:
        if any(part for part, _ in word) and used + 1 + _width(word) > options.width and used > indent:
            yield _painted(line, options).rstrip(" ")
            line, used = [(" " * indent, ""), *word], indent + _width(word)
        else:
            line, used = [*line, (" ", ""), *word], used + 1 + _width(word)
    yield _painted(line, options)


def _width(pieces: list[Piece]) -> int:
    return sum(columns(text) for text, _ in pieces)


def _block(finding: Finding, report: Report, options: RenderOptions) -> Iterator[str]:
    place = (_place(finding.span, options), _BOLD)
    yield from _wrapped([place, (": ", ""), *_headline(finding, options)], 4, options)
    text = report.texts.get(finding.path)
    indent, beside = " ", []
    if text is not None and finding.span.line <= text.line_count:
        beside = list(_beside(finding, text))
        last = max(span.line for span in (finding.span, *(related.span for related in beside)))
        indent = " " * (len(str(last)) + 1)
        yield from _snippet(finding, beside, text, len(indent) - 1, options)
    remarks = list(_remarks(finding, beside, options))
    if remarks:
        yield _painted([(f"{indent}|", _FRAME)], options)
        for label, remark in remarks:
            head = [(indent, ""), ("=", _FRAME), (" ", ""), (label, _BOLD)]
            yield from _wrapped([*head, (f": {remark}", "")], len(indent) + len(label) + 4, options)


def _beside(finding: Finding, text: Text) -> Iterator[Related]:
    """The related places of the same file, which its snippet shows too."""
    own = [
        related
        for related in finding.related
        if related.span.path == finding.path and related.span.line <= text.line_count
    ]
    yield from own[:_IN_SNIPPET]


def _snippet(finding: Finding, beside: list[Related], text: Text, digits: int, options: RenderOptions) -> Iterator[str]:
    marks = [
        Mark(finding.span, "^", annotation(finding), _COLORS[finding.level]),
        *(Mark(related.span, "-", related.message, _FRAME) for related in beside),
    ]
    room = max(options.width - digits - len(" | "), _NARROWEST)
    bar = ("|", _FRAME)
    yield _painted([(" " * (digits + 1), ""), bar], options)
    for row in rows(text, marks, room, options.encoding):
        if row.number == CUT:
            yield _painted([(CUT, _FRAME)], options)
            continue
        content = [(f" {' ' * row.indent}", ""), (row.text, row.color)] if row.text else []
        yield _painted([(f"{row.number.rjust(digits)} ", _FRAME), bar, *content], options).rstrip()


def _remarks(finding: Finding, beside: list[Related], options: RenderOptions) -> Iterator[tuple[str, str]]:
    if finding.help:
        yield "help", visible(finding.help, options.encoding)
    if finding.fix is not None:
        yield "fix", visible(fix_title(finding), options.encoding)
    for related in finding.related:
        if related not in beside:
            yield "related", f"{_place(related.span, options)} {visible(related.message, options.encoding)}"
    if said := reason(finding):
        yield "suppressed", visible(said, options.encoding)
