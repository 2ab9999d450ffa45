"""A file of findings that are known and accepted for now, so that only new ones count."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from trainlint.findings import Finding
from trainlint.report import Report
from trainlint.settings import SettingsError

VERSION = 1


def read(file: Path) -> Counter[str]:
    """How often the baseline holds each fingerprint.

    Raises SettingsError when the file is no baseline.
    """
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise ValueError(data["version"])
        return Counter(str(finding["fingerprint"]) for finding in data["findings"])
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise SettingsError(f"{file}: no baseline of version {VERSION}; write it with --write-baseline") from None


def apply(report: Report, known: Counter[str]) -> Report:
    """The report with the findings that the baseline holds marked, each as often as it holds it."""
    return replace(report, findings=tuple(_marked(report.findings, Counter(known))))


def _marked(findings: Iterable[Finding], left: Counter[str]) -> Iterator[Finding]:
    for finding in findings:
        held = finding.suppressed is None and left[finding.fingerprint] > 0
        if held:
            left[finding.fingerprint] -= 1
        yield replace(finding, baselined=held)


def write(file: Path, report: Report) -> int:
    """Write a baseline of the findings that no comment suppresses, in a stable order; how many there are.

    Raises OSError.
    """
    rows = [
        {"rule": f.rule, "path": f.path, "field": f.yaml_path, "fingerprint": f.fingerprint}
        for f in report.findings
        if f.suppressed is None
    ]
    file.write_text(json.dumps({"version": VERSION, "findings": rows}, indent=1) + "\n", encoding="utf-8", newline="\n")
    return len(rows)
