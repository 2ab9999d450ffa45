"""One HTML file for a browser, which needs no network: what was found, with its source, filters, and what jobs start.

Everything that comes from files is escaped, and the page's policy lets no script run but its own, whatever is in it.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from html import escape
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from trainlint.findings import Finding, Severity, Span, counted
from trainlint.programs.table import title
from trainlint.reading.text import Text
from trainlint.records import NamedTuple
from trainlint.report import Report
from trainlint.reports import PROJECT, RenderOptions, rule_page
from trainlint.reports.escape import as_xml, visible, visible_path
from trainlint.reports.snippet import hidden_in, printed
from trainlint.reports.statistics import counts
from trainlint.reports.words import annotation, fix_title, hints, reason, result

AROUND = 3
"""Lines before and after a marked one."""
_MARKED_LINES = 8
"""Lines that are marked of a place with more."""
_LONGEST_LINE = 400
"""Characters of a line that are shown around its first mark."""


def render(report: Report, options: RenderOptions) -> str:
    """The page, in ASCII."""
    findings = list(options.shown(report))
    style, script = (Path(__file__).with_name(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'"
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}; form-action \'none\'">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>trainlint: {_text(result(report))}</title>",
        f"<style>{style}</style>",
        "</head>",
        "<body>",
        '<a class="skip" href="#findings">Skip to the findings</a>',
        *_header(report, findings),
        *(_filters(findings) if findings else ()),
        '<main id="findings" tabindex="-1">',
        *_files(findings, report, options),
        "</main>",
        f'<footer><a href="{PROJECT}">trainlint</a> {_text(options.version)}</footer>',
        f"<script>{script}</script>",
        "</body>",
        "</html>",
    ]
    document = "\n".join(lines) + "\n"
    return as_xml(document.encode("ascii", "xmlcharrefreplace").decode("ascii"))


def _hash(content: str) -> str:
    return f"'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'"


def _text(text: str) -> str:
    return escape(visible(text))


def _header(report: Report, findings: Sequence[Finding]) -> Iterator[str]:
    yield f"<header><h1>trainlint</h1><p>{_text(result(report))}</p>"
    for hint in hints(report):
        yield f"<p>{_text(hint)}</p>"
    if report.notices:
        yield "<h2>Notices</h2><ul>"
        yield from (f"<li>{_text(notice)}</li>" for notice in report.notices)
        yield "</ul>"
    if report.targets:
        yield "<details><summary>Releases</summary>"
        rows = [
            (title(name), ", ".join(target.versions) or "none that is known", target.origin, target.how.value)
            for name, target in report.targets.items()
        ]
        yield from _table(("program", "checked for", "from", "known"), rows)
        yield "</details>"
    if findings:
        yield "<details><summary>By rule</summary>"
        told = [(row.rule, row.name, row.severity.value, str(row.number), str(row.fixable)) for row in counts(findings)]
        yield from _table(("rule", "name", "severity", "findings", "fixable"), told)
        yield "</details>"
    yield "</header>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    cells = "".join(f'<th scope="col">{word}</th>' for word in head)
    yield '<div class="wide" tabindex="0" role="group" aria-label="table">'
    yield f"<table><thead><tr>{cells}</tr></thead><tbody>"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>"
    yield "</tbody></table></div>"


# filters


def _filters(findings: Sequence[Finding]) -> Iterator[str]:
    """The controls; a script shows them, since without one they do nothing."""
    yield '<form id="filters" hidden aria-label="Filters"><fieldset><legend>Severity</legend>'
    levels = Counter(finding.level for finding in findings)
    for severity in reversed(Severity):
        if levels[severity]:
            word = severity.value
            box = f'<input type="checkbox" name="severity" value="{word}" checked>'
            yield f'<label class="{word}">{box} {counted(levels[severity], word)}</label>'
    yield "</fieldset>"
    names = {finding.rule: f"{finding.rule} {finding.name}" for finding in findings}
    yield from _choice("rule", "Rule", ((f.rule, names[f.rule]) for f in findings))
    yield from _choice("program", "Program", ((f.program, title(f.program)) for f in findings))
    yield from _choice("file", "File", ((f.path, f.path) for f in findings))
    yield '<button type="reset">Show all</button><output id="shown" aria-live="polite"></output></form>'


def _choice(name: str, label: str, values: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A list of what findings have, with how many have it."""
    yield f'<label>{label} <select name="{name}"><option value="">all</option>'
    for (value, shown), number in sorted(Counter(values).items()):
        yield f'<option value="{_text(value)}">{_text(shown)} ({number})</option>'
    yield "</select></label>"


# findings


def _files(findings: Sequence[Finding], report: Report, options: RenderOptions) -> Iterator[str]:
    for path, group in groupby(sorted(findings, key=attrgetter("path")), key=attrgetter("path")):
        own = list(group)
        yield f'<section class="file"><h2>{_text(path)}</h2><div class="beside"><div class="found">'
        for finding in own:
            yield from _finding(finding, report.texts.get(path))
        yield "</div>"
        jobs = [
            lines for document in sorted({f.document for f in own}) for lines in options.jobs.get((path, document), ())
        ]
        if jobs:
            yield "<aside><details open><summary>What the job starts</summary>"
            for lines in jobs:
                yield from _job(lines)
            yield "</details></aside>"
        yield "</div></section>"


def _job(lines: Sequence[str]) -> Iterator[str]:
    """Lines of `trainlint resolve`: the part behind `#` is the place of the value."""
    told = []
    for line in lines:
        value, sign, place = line.strip().partition("  # ")
        depth = (len(line) - len(line.lstrip())) // 2
        told.append(_Line(f'{_text(value)}<span class="place">{_text(sign + place)}</span>', f"depth{min(depth, 3)}"))
    yield f'<pre tabindex="0">{_lines(told)}</pre>'


def _finding(finding: Finding, text: Text | None) -> Iterator[str]:
    word = finding.level.value
    data = (("severity", word), ("rule", finding.rule), ("program", finding.program), ("file", finding.path))
    listed = " ".join(f'data-{name}="{_text(value)}"' for name, value in data)
    span = finding.span
    yield f'<article class="finding {word}" tabindex="-1" {listed}>'
    code = f'<a href="{rule_page(finding.rule)}">{finding.rule}</a>'
    yield f'<h3><span class="level">{word}</span> {code} <span class="name">{_text(finding.name)}</span></h3>'
    yield f'<p class="message">{_text(finding.message)}</p>'
    yield f'<p class="place">{_text(visible_path(span.path))}:{span.line}:{span.column}{_known(finding)}</p>'
    if text is not None and span.line <= text.line_count:
        yield f'<pre tabindex="0"><code>{_lines(_source(finding, text))}</code></pre>'
    remarks = [
        ("help", finding.help),
        ("fix", fix_title(finding)),
        ("suppressed", reason(finding)),
    ]
    remarks += [
        ("related", f"{visible_path(r.span.path)}:{r.span.line}:{r.span.column} {r.message}")
        for r in finding.related
        if r.span.path != finding.path or text is None
    ]
    if any(said for _, said in remarks):
        yield "<dl>"
        yield from (f"<dt>{label}</dt><dd>{_text(said)}</dd>" for label, said in remarks if said)
        yield "</dl>"
    yield "</article>"


def _known(finding: Finding) -> str:
    """When it shows, and how the release is known."""
    stage = f", stage {finding.stage.value}" if finding.stage else ""
    at = f" in {finding.stated_at}" if finding.stated_at else ""
    return _text(f"{stage}, release {finding.stated}{at}" if finding.stated else stage)


class _Line(NamedTuple):
    """A line in HTML, and its class."""

    html: str
    kind: str


def _lines(lines: Iterable[_Line]) -> str:
    """Each line in an element, so that none begins with what a file says."""
    return "".join(f'<span class="line {line.kind}">{line.html}\n</span>' for line in lines)


# source


class _Place(NamedTuple):
    """A place to mark in a file: the finding's own, or a related one, and what is said of it."""

    span: Span
    kind: str
    said: str


def _source(finding: Finding, text: Text) -> Iterator[_Line]:
    """The lines around the finding and its related places in the same file."""
    places = [_Place(finding.span, "own", annotation(finding))]
    places += [
        _Place(related.span, "other", related.message)
        for related in finding.related
        if related.span.path == finding.path and related.span.line <= text.line_count
    ]
    shown: set[int] = set()
    for place in places:
        last = min(place.span.end_line, place.span.line + _MARKED_LINES)
        around = AROUND if place.kind == "own" else 1
        shown.update(range(max(1, place.span.line - around), min(text.line_count, last + around) + 1))
    before = min(shown) - 1
    for number in sorted(shown):
        if number > before + 1:
            yield _Line('<span class="number">...</span>', "gap")
        before = number
        here = [place for place in places if place.span.line <= number <= place.span.end_line]
        yield _Line(f'<span class="number">{number}</span>{_line(text, number, here)}', "code")
        for place in here:
            if place.said and number == place.span.line:
                yield _Line(_text(place.said), f"remark {place.kind}")


def _line(text: Text, number: int, places: Sequence[_Place]) -> str:
    """One line with its marks; of a long one the part around the first mark."""
    line = text.line(number)
    marks = [(*_within(place.span, number, len(line)), place.kind) for place in places]
    middle = min((start for start, _, _ in marks), default=0)
    first = max(0, middle - _LONGEST_LINE // 2) if len(line) > _LONGEST_LINE else 0
    last = min(len(line), first + _LONGEST_LINE)
    cells = printed(line, first, last, "utf-8", hidden_in(text, number))
    kinds = ["" for _ in cells]
    for start, end, kind in reversed(marks):
        for index in range(max(start, first), min(max(end, start + 1), last)):
            kinds[index - first] = kind
    told = []
    for kind, run in groupby(zip(kinds, cells, strict=True), key=lambda pair: pair[0]):
        part = escape("".join(cell for _, cell in run))
        told.append(f'<mark class="{kind}">{part}</mark>' if kind else part)
    return f"{'...' if first else ''}{''.join(told)}{'...' if last < len(line) else ''}"


def _within(span: Span, number: int, length: int) -> tuple[int, int]:
    """The marked characters of one line of a place, from 0."""
    start = span.column - 1 if number == span.line else 0
    return start, span.end_column - 1 if number == span.end_line else length
