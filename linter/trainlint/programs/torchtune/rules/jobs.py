"""The rule on TrainJobs that pass admission and fail in torchtune."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage, some_of
from trainlint.programs.torchtune.facts import TorchtuneFacts
from trainlint.programs.torchtune.program import Job
from trainlint.rule import rule


@rule("TT501", "config-not-shipped", stage=Stage.START)
def config_not_shipped(job: Job, facts: TorchtuneFacts) -> Iterator[Finding]:
    """Kubeflow Trainer starts the job with a config that torchtune does not have.

    The controller composes the config's name from the runtime's name, the nodes, processes and GPUs and the LoRA
    arguments, and does not check whether torchtune ships it. llama3_3/70B has no config for a single device, and small
    models have none for several nodes: admission accepts some of these jobs, and `tune run` stops at once because the
    file is missing.

    Source: the torch plugin of Kubeflow Trainer 2.0 to 2.3; the registry of torchtune 0.4.0 to 0.6.1.
    """
    if job.config not in facts.configs:
        same = facts.configs_of_model(job.config)
        fitting = [config for config in same if config in facts.recipes[job.recipe].configs]
        yield job.place.finding(
            f"the job's config {job.config} does not exist in torchtune {facts.release}",
            help=f"configs of this model: {some_of(fitting or same)}" if same else "",
        )
