"""A runtime by itself: what every job that uses it would be refused for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trainlint.findings import Finding, Severity
from trainlint.programs.kubeflow.build import Build, RuntimeAsIs
from trainlint.programs.kubeflow.facts.release import KubeflowFacts
from trainlint.programs.kubeflow.rules import containers, jobset, pods, scheduling, volumes
from trainlint.rule import rule, rules_of

_MODULES = tuple(module.__name__ for module in (jobset, containers, volumes, scheduling, pods))


@rule("TJ590", "unusable-runtime", severity=Severity.WARNING)
def unusable_runtime(runtime: RuntimeAsIs, facts: KubeflowFacts) -> Iterator[Finding]:
    """No job starts from this runtime as it is.

    A runtime is admitted with anything that its structure allows; what is wrong with its Jobs and pods shows when a
    TrainJob uses it, and then only in the events of a JobSet or Job. Each rule on what a job becomes is asked here with
    a job that adds an image and nothing else; a job's patches may mend what is found, such as a volume that is missing.

    Source: the rules TJ501 to TJ549, which name theirs.
    """
    own = runtime.runtime.field.document.path
    for other in rules_of(_MODULES):
        if issubclass(other.subject, Build) and other.severity is Severity.ERROR and other.program == "kubernetes":
            for found in other.run(runtime.sample, facts):
                if found.path == own:
                    message = f"a job that uses this runtime is refused ({other.code}): {found.message}"
                    yield replace(found, message=message, severity=None)
