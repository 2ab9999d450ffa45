"""Fingerprints identify a finding when lines move, a message is reworded or its file is renamed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from trainlint.findings import Finding
from trainlint.reading.document import Document
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import Field
from trainlint.records import replace


def document_name(document: Document) -> str:
    """Kind and name of a manifest, `#` and the index of any other document."""
    root = Field.root(document, Dialect.KUBERNETES)
    kind, name = root.get("kind").text().known, root.at("metadata", "name").text().known
    return f"{kind}/{name}" if kind and name else f"#{document.index}"


def fingerprinted(
    findings: Iterable[Finding],
    texts: Mapping[str, Text],
    path_of: Callable[[str], str],
    document_of: Callable[[str, int], str],
) -> Iterator[Finding]:
    """The findings, in their order, with what their fingerprints are made of.

    `path_of` makes a path relative to its repository or workspace, `document_of` names a document by path and index.
    The fingerprint is made of path, rule, document, true path, the text that the finding marks, and the number of equal
    findings before it; `content` is made of the same without the path.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    for finding in findings:
        document = document_of(finding.path, finding.document)
        parts = (finding.rule, document, finding.yaml_path, _marked(finding, texts.get(finding.path)))
        equal = (finding.path, *parts)
        seen[equal] += 1
        yield replace(finding, identity=(*parts, str(seen[equal])), home_path=path_of(finding.path))


def _marked(finding: Finding, text: Text | None) -> str:
    span = finding.span
    if text is None or span.end_line > text.line_count + 1:
        return ""
    start = text.line_start(span.line) + span.column - 1
    end = text.line_start(span.end_line) + span.end_column - 1 if span.end_line <= text.line_count else None
    # The same in a checkout that has the line ends of Windows.
    return text.content[start:end].replace("\r\n", "\n")
