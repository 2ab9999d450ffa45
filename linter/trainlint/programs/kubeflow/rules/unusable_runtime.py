"""A runtime by itself: what makes every job that uses it fail."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from trainlint.findings import Finding, Severity, Stage
from trainlint.programs.kubeflow.build import Build, RuntimeAsIs
from trainlint.programs.kubeflow.facts.release import KubeflowFacts
from trainlint.programs.kubeflow.rules import containers, jobset, pods, scheduling, volumes
from trainlint.records import replace
from trainlint.rule import Rule, rule, rules_of

_MODULES = tuple(module.__name__ for module in (jobset, containers, volumes, scheduling, pods))


@rule("TJ590", "unusable-runtime", stage=Stage.CREATE, severity=Severity.WARNING, program="kubernetes")
def unusable_runtime(runtime: RuntimeAsIs, facts: KubeflowFacts) -> Iterator[Finding]:
    """No job can start with this runtime as it is.

    Admission accepts any runtime that its structure allows; what is wrong with its Jobs and pods shows when a TrainJob
    uses it, and then only in the events of a JobSet or Job. Each rule on what a job becomes runs here on a job that
    adds only an image; a job's patches may fix what is found, such as a missing volume. Where a job of the same file
    uses the runtime, what is wrong is said of that job.

    Source: the rules TJ501 to TJ549, which name theirs.
    """
    own = runtime.runtime.field.document.path
    for other in _refusing_jobs():
        for found in other.run([runtime.sample], facts):
            if found.path == own:
                message = f"a job that uses this runtime is refused ({other.code}): {found.message}"
                yield replace(found, message=message, severity=None)


@cache
def _refusing_jobs() -> list[Rule]:
    """The rules by which what a job becomes is refused."""
    return [
        one
        for one in rules_of(_MODULES)
        if issubclass(one.subject, Build) and one.severity is Severity.ERROR and one.program == "kubernetes"
    ]
