"""The report for people: each finding with its lines, and a count at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trainlint.findings import Finding, Severity, Span, Stage
from trainlint.programs.table import PROGRAMS, VERDICT_ONLY, about, title
from trainlint.reading.text import MASK, Stretch, Text
from trainlint.releases import spans
from trainlint.report import Report
from trainlint.reports import RenderOptions, rule_page
from trainlint.reports.escape import columns, visible, visible_cells, visible_path

CONTEXT = 2
TAB = "    "
CUT = "..."

_COLORS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}

_LATER = {
    Stage.START: " at the start",
    Stage.PREPARE: " when the model is prepared",
    Stage.TRAIN: " at the first step",
    Stage.SAVE: " when it saves, after training",
}
"""When a program stops that has already taken its settings."""


def render(report: Report, options: RenderOptions) -> str:
    """Each finding with up to two lines before its own, then the footer."""
    blocks = ["\n".join(_block(finding, report, options)) for finding in options.shown(report)]
    return "\n\n".join([*blocks, footer(report)]) + "\n"


def render_concise(report: Report, options: RenderOptions) -> str:
    """One line for each finding."""
    return "".join(f"{_header(finding, options)}\n" for finding in options.shown(report))


def footer(report: Report) -> str:
    """The last line: how many findings of each severity, in how many files, and how many are not shown."""
    active = list(report.active)
    counts = [
        _counted(report.count(severity), severity.value) for severity in reversed(Severity) if report.count(severity)
    ]
    fixable = sum(finding.fix is not None and finding.fix.safe for finding in active)
    asides = [
        f"{number} {what}"
        for number, what in (
            (fixable, "fixable with --fix"),
            (report.suppressed, "suppressed"),
            (report.baselined, "in the baseline"),
        )
        if number
    ]
    aside = f" ({', '.join(asides)})" if asides else ""
    files = report.files.discovered
    if counts:
        affected = len({finding.path for finding in active})
        return f"Found {_joined(counts)} in {affected} of {_counted(max(files, affected), 'file')}{aside}."
    if report.crashed:
        return f"Found nothing, and not everything was checked{aside}."
    if files > 1:
        return f"All {files} files are clean{aside}."
    return f"The file is clean{aside}." if files else f"Found no YAML files{aside}."


def annotation(finding: Finding) -> str:
    """Which program gives which verdict, and the field as it spells it."""
    level = finding.verdict or finding.level
    if finding.program in ("", "trainlint") or level is Severity.NOTE:
        return finding.field
    maker = VERDICT_ONLY.get(finding.program)
    program = PROGRAMS.get(maker or finding.program)
    thing = about(finding.field)
    stage = finding.stage or Stage.RUN
    verb = "accept" if stage is Stage.RUN else "stop on" if stage in _LATER else "refuse"
    sure = stage is Stage.RUN or level is Severity.ERROR or finding.refused_by_some
    several = maker is None and len(finding.program_versions) > 1 and not finding.releases.startswith("since")
    if not sure or (stage is Stage.RUN and program is not None and program.several_readers):
        verb = f"may {verb}"
    elif not several:
        verb = "stops on" if verb == "stop on" else f"{verb}s"
    if maker is None:
        said = f"{_release(finding.program, finding)} {verb} {thing}"
    else:
        judge = " ".join([title(finding.program), " and ".join(span.words for span in spans(finding.within))])
        said = f"{judge.rstrip()} {verb} what {_release(maker, finding)} makes of {thing}"
    said += _LATER.get(stage, "")
    return f"{said} ({finding.field})" if finding.field else said


def _release(program: str, finding: Finding) -> str:
    return f"{title(program)} {finding.releases or _joined(finding.program_versions)}".rstrip()


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _joined(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _painted(text: str, color: str, options: RenderOptions) -> str:
    return f"\x1b[{color}m{text}\x1b[0m" if options.color and text else text


def _place(span: Span, options: RenderOptions) -> str:
    return f"{visible_path(span.path, options.encoding)}:{span.line}:{span.column}"


def _header(finding: Finding, options: RenderOptions) -> str:
    code = _painted(finding.rule, "1", options)
    if options.links:
        code = f"\x1b]8;;{rule_page(finding.rule)}\x1b\\{code}\x1b]8;;\x1b\\"
    place = _painted(_place(finding.span, options), "1", options)
    level = _painted(finding.level.value, _COLORS[finding.level], options)
    return f"{place}: {level} {code} {finding.name}: {visible(finding.message, options.encoding)}"


def _block(finding: Finding, report: Report, options: RenderOptions) -> Iterator[str]:
    yield _header(finding, options)
    text = report.texts.get(finding.path)
    indent = " "
    if text is not None and finding.span.line <= text.line_count:
        indent = " " * (len(str(finding.span.line)) + 1)
        yield from _snippet(finding, text, options)
    remarks = list(_remarks(finding, options))
    if remarks:
        yield _painted(f"{indent}|", "34", options)
        for label, remark in remarks:
            yield f"{indent}{_painted('=', '34', options)} {_painted(label, '1', options)}: {remark}"


def _remarks(finding: Finding, options: RenderOptions) -> Iterator[tuple[str, str]]:
    if finding.help:
        yield "help", visible(finding.help, options.encoding)
    if finding.fix is not None:
        yield "fix", visible(finding.fix.title, options.encoding)
    for related in finding.related:
        yield "related", f"{_place(related.span, options)} {visible(related.message, options.encoding)}"
    if finding.suppressed is not None:
        yield "suppressed", visible(finding.suppressed, options.encoding) or "no reason given"
    elif finding.baselined:
        yield "suppressed", "in the baseline"


def _snippet(finding: Finding, text: Text, options: RenderOptions) -> Iterator[str]:
    span = finding.span
    digits = len(str(span.line))
    room = max(options.width - digits - len(" | "), 40)
    bar = _painted("|", "34", options)

    def row(number: str, content: str) -> str:
        return f"{_painted(number.rjust(digits), '34', options)} {bar} {content}".rstrip()

    def hidden(number: int) -> list[Stretch]:
        start = text.line_start(number)
        return [(a - start, b - start) for a, b in text.hidden_within(start, start + len(text.line(number)))]

    yield row("", "")
    before = range(max(1, span.line - CONTEXT), span.line)
    blank = True
    for number in before:
        line = text.line(number)
        blank = blank and not line.strip()
        if not blank:
            yield row(str(number), _clipped(line, 0, 0, room, options.encoding, hidden(number)).text)

    line = text.line(span.line)
    start = min(span.column - 1, len(line))
    end = span.end_column - 1 if span.end_line == span.line else len(line.rstrip())
    shown = _clipped(line, start, min(end, len(line)), room, options.encoding, hidden(span.line))
    yield row(str(span.line), shown.text)
    color = _COLORS[finding.level]
    caret = "^" * max(shown.width, 1)
    said = visible(annotation(finding), options.encoding)
    if shown.offset + len(caret) + 1 + columns(said) <= room:
        yield row("", " " * shown.offset + _painted(f"{caret} {said}".rstrip(), color, options))
    else:
        yield row("", " " * shown.offset + _painted(caret, color, options))
        yield row("", " " * max(0, min(shown.offset, room - columns(said))) + _painted(said, color, options))


class _Clipped(NamedTuple):
    """A line as it is printed, and the place of the marked part in terminal columns."""

    text: str
    offset: int
    width: int


def _clipped(line: str, start: int, end: int, room: int, encoding: str, hidden: Sequence[Stretch] = ()) -> _Clipped:
    """The part of a line around its characters `start` to `end` that fits into `room` columns.

    Only as many characters are read as could be shown, however long the line is.
    """
    first, last = max(0, start - room), min(len(line), start + room)
    cells = [
        TAB if character == "\t" else cell
        for character, cell in zip(line[first:last], visible_cells(line[first:last], encoding), strict=True)
    ]
    for a, b in hidden:
        inner = range(max(a, first) - first, min(b, last) - first)
        cells[inner.start : inner.stop] = [MASK, *[""] * (len(inner) - 1)] if inner else []
    widths = [columns(cell) for cell in cells]
    mark, stop = start - first, max(end, start) - first
    if first == 0 and last == len(line) and sum(widths) <= room:
        return _Clipped("".join(cells), sum(widths[:mark]), sum(widths[mark:stop]))

    left, used = mark, 0
    half = room // 2
    if first > 0 or sum(widths[:mark]) > half:
        while left > 0 and used + widths[left - 1] <= half:
            left -= 1
            used += widths[left]
    else:
        left, used = 0, sum(widths[:mark])
    head = CUT if first + left > 0 else ""
    offset = used + len(head)
    right, used = mark, offset
    while right < len(cells) and used + widths[right] <= room - len(CUT):
        used += widths[right]
        right += 1
    tail = CUT if first + right < len(line) else ""
    return _Clipped(f"{head}{''.join(cells[left:right])}{tail}", offset, sum(widths[mark : min(stop, right)]))
