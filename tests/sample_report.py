"""A made-up report with everything in it that an output format must cope with."""

from __future__ import annotations

from dataclasses import replace

from trainlint.findings import Edit, Finding, Fix, Related, Severity, Span, Stage
from trainlint.fingerprints import fingerprinted
from trainlint.reading.text import Text
from trainlint.report import FileCounts, Report
from trainlint.targets import Target

JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
spec:
  trainer:
    command: [tune, run]
    numNodes: 2
    env:
      - name: PET_NNODES
\t# größe 模型 e\u0301 \x1b[31m\u202e end
"""
ODD_PATH = "jobs/größe & co/a b,c:d.yaml"


def span(path: str, line: int, column: int, width: int) -> Span:
    return Span(path, line, column, line, column + width)


def finding(
    rule: str, name: str, message: str, at: Span, field: str = "spec.trainer.numNodes", help: str = ""
) -> Finding:
    """A settled error of Kubeflow Trainer 2.3."""
    return Finding(
        message,
        at,
        0,
        field,
        field,
        help=help,
        severity=Severity.ERROR,
        stage=Stage.ADMISSION,
        program="kubeflow-trainer",
        program_versions=("2.3",),
        rule=rule,
        name=name,
    )


NODES = finding(
    "TT102",
    "single-node-model",
    "numNodes must be 1 for qwen2_5/1.5B",
    span("jobs/tune.yaml", 6, 15, 1),
    help="remove numNodes",
)
FIXABLE = replace(
    NODES,
    fix=Fix("remove numNodes", (Edit(JOB.index("    numNodes"), JOB.index("    env"), ""),)),
    related=(Related(span("runtimes/odd name.yaml", 3, 1, 4), "the runtime"),),
)
SUPPRESSED = replace(
    finding("TT107", "reserved-env", "PET_NNODES is reserved", span("jobs/tune.yaml", 8, 15, 10), "spec.trainer.env"),
    suppressed="our own fork",
)
BASELINED = replace(NODES, baselined=True)
ODD = replace(
    finding("TT102", "single-node-model", "100% wrong: \x1b[31m,\nreally", span(ODD_PATH, 9, 10, 2), "", "größer"),
    severity=Severity.WARNING,
    program_versions=("2.2", "2.3"),
)
NOTE = replace(
    finding("TL001", "unparsable-file", "not checked", span(ODD_PATH, 1, 1, 10), ""),
    severity=Severity.NOTE,
    program="trainlint",
    program_versions=(),
)


def report(*findings: Finding) -> Report:
    """A report of these findings in files that all hold the same text."""
    texts = {found.path: Text(JOB) for found in findings}
    return Report(
        tuple(fingerprinted(findings, texts, str, lambda path, index: f"#{index}")),
        FileCounts(41, 4, 3),
        {"kubeflow-trainer": Target(("2.2", "2.3"), "option")},
        ("kubeflow-trainer 2.9 is judged as 2.3",),
        texts,
    )


FULL = report(FIXABLE, SUPPRESSED, BASELINED, NOTE, ODD)
EMPTY = Report(files=FileCounts(41, 0, 0))
