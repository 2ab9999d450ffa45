"""TrainJobs that pass admission and die in torchtune."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, some_of
from trainlint.programs.torchtune.facts import TorchtuneFacts
from trainlint.programs.torchtune.program import Job
from trainlint.rule import rule


@rule("TT501", "config-not-shipped")
def config_not_shipped(job: Job, facts: TorchtuneFacts) -> Iterator[Finding]:
    """Kubeflow Trainer starts the job with a config that torchtune does not have.

    The controller puts the config's name together from the runtime's name, the nodes, processes and GPUs and the LoRA
    arguments, and does not ask whether torchtune ships it. llama3_3/70B has no config for a single device, and small
    models have none for several nodes: admission lets some of these jobs pass, and `tune run` ends at once with a file
    that is not there.

    Source: the torch plugin of Kubeflow Trainer 2.0 to 2.3; the registry of torchtune 0.4.0 to 0.6.1.
    """
    if job.config not in facts.configs:
        same = facts.configs_of_model(job.config)
        fitting = [config for config in same if config in facts.recipes[job.recipe].configs]
        yield job.place.finding(
            f"this job starts {job.recipe} with config {job.config}, which torchtune {facts.release} does not have",
            help=f"of this model it has {some_of(fitting or same)}" if same else "",
        )
