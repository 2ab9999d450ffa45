"""How a job's container starts the training, against the nodes and processes that the controller sets up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlint.findings import Finding, Fix, Severity, Stage, counted
from trainlint.lazy import regex
from trainlint.programs.kubeflow.build import BuiltJob
from trainlint.programs.kubeflow.built_pods import command_words
from trainlint.programs.kubeflow.built_value import BuiltValue, Owner
from trainlint.programs.kubeflow.draft import NODE
from trainlint.programs.kubeflow.facts.jobset import V1_VARIABLES
from trainlint.reading import mending
from trainlint.repository.shell import Word
from trainlint.rule import rule

_VARIABLE = regex(r"\$(?:\{(\w+)\}|\((\w+)\)|(\w+))")


def _by_torch(job: BuiltJob) -> bool:
    """torch's policy sets up the nodes."""
    return job.policy.get("torch").given


def _finding(job: BuiltJob, word: Word, message: str, help: str, severity: Severity | None = None) -> Finding:
    place = BuiltValue(word.text, word.field, Owner.JOB if job.job.holds(word.field) else Owner.RUNTIME)
    return job.finding(place, message, help=help, severity=severity)


@rule("TJ620", "variables-of-the-old-operator", stage=Stage.START, program="torchrun")
def variables_of_the_old_operator(job: BuiltJob) -> Iterator[Finding]:
    """torchrun gets its nodes from variables that nobody sets in a TrainJob.

    The training operator before Trainer 2.0 set MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK in each container. The
    Trainer sets torchrun's own PET_ variables instead, so no option is needed: torchrun sets the old names for its
    workers.

    Source: Kubeflow Trainer 2.0 and later, torch plugin; torchrun of torch 2.13, which stops at an empty value.
    """
    container = job.node
    if not _by_torch(job) or container is None or container.get("envFrom").given or container.get("env").unknown:
        return
    known = {env.name for env in container.get("env").items()}
    for invocation in job.torchruns:
        text = " ".join(word.text for word in invocation.before)
        unset = [
            (variable, word)
            for flag in invocation.flags
            for word in flag.values
            for variable in _variables(word.text)
            if variable not in known and not re.search(rf"\b{variable}=", text + word.line.text)
        ]
        for variable, word in sorted(unset, key=lambda one: V1_VARIABLES.index(one[0]))[:1]:
            yield _finding(
                job,
                word,
                f"nothing sets {variable} here",
                "remove the option: the controller gives torchrun its nodes",
            )


def _variables(text: str) -> list[str]:
    named = [next(name for name in match.groups() if name) for match in _VARIABLE.finditer(text)]
    return [name for name in named if name in V1_VARIABLES]


@rule(
    "TJ621",
    "nodes-of-the-launcher",
    stage=Stage.START,
    program="torchrun",
    varies="warning where some of the nodes train all the same",
)
def nodes_of_the_launcher(job: BuiltJob) -> Iterator[Finding]:
    """torchrun is told another number of nodes than the job has.

    Its options win over the PET_ variables of the controller. With more nodes than the job has it waits in vain and
    stops; with fewer, or with --standalone, the others train by themselves or not at all.

    Source: torchrun of torch 2.13; Kubeflow Trainer 2.0 and later, torch plugin.
    """
    count = job.trainer.count.number if job.trainer else None
    if not _by_torch(job) or count is None:
        return
    for invocation in job.torchruns:
        flag = invocation.given("--nnodes")
        told = flag.values[0] if flag and flag.values else None
        number = int(told.known) if told and told.known and told.known.isdigit() else None
        alone = invocation.given("--standalone")
        if told is not None and number is not None and number != count:
            yield _finding(
                job,
                told,
                f"torchrun expects {counted(number, 'node')}, and the job has {count}",
                "remove --nnodes: the controller says how many there are",
                None if number > count else Severity.WARNING,
            )
        elif alone is not None and told is None and count > 1:
            yield _finding(
                job,
                alone.name,
                f"with --standalone each of the {count} nodes trains by itself",
                "remove --standalone",
                Severity.WARNING,
            )


@rule("TJ622", "no-launcher", stage=Stage.RUN, severity=Severity.WARNING, program="torchrun")
def no_launcher(job: BuiltJob) -> Iterator[Finding]:
    """Several nodes start a script with python, and nothing joins them.

    The controller's variables are for torchrun. A script that python starts runs once on each node, with one process,
    unless it reads the PET_ variables itself.

    Source: Kubeflow Trainer 2.0 and later, torch plugin; torchrun of torch 2.13.
    """
    container, count = job.node, job.trainer.count.number if job.trainer else None
    if not _by_torch(job) or container is None or count is None or count < 2 or job.spec.get("trainer").absent:
        return
    words = command_words(container)
    if len(words) > 1 and re.fullmatch(r"(?:\S*/)?python[\d.]*", words[0]) and words[1].endswith(".py"):
        yield job.finding(
            container.get("command"),
            f"{words[0]} starts {words[1]} once on each of {count} nodes, and nothing joins them",
            help="write torchrun instead of python",
            fix=_by_torchrun(container),
        )


def _by_torchrun(container: BuiltValue) -> Fix | None:
    """torchrun in place of python, where that is a word of its own."""
    words = container.get("command").items()
    return mending.worded(words[0].place, "torchrun") if words else None


@rule("TJ623", "image-of-the-launcher", stage=Stage.RUN, severity=Severity.WARNING)
def image_of_the_launcher(job: BuiltJob) -> Iterator[Finding]:
    """spec.trainer.image reaches the MPI launcher alone, and the nodes keep the runtime's image.

    mpirun starts the program on the nodes, where the launcher's files are missing. Patch the image of the job `node`.

    Source: Kubeflow Trainer 2.0 to 2.3, MPI plugin.
    """
    image = job.spec.at("trainer", "image")
    if not image.text or job.policy.get("mpi").absent:
        return
    for pods in job.made:
        container = pods.container(NODE)
        if pods is job.trainer or pods.name != NODE or container is None:
            continue
        own = container.get("image").text
        if own and own != image.text:
            yield job.finding(
                image,
                f"only the launcher gets this image: the nodes run {own}",
                help=f"patch the image of job {NODE}, too",
            )


@rule("TJ624", "patched-tolerations", stage=Stage.RUN, severity=Severity.WARNING)
def patched_tolerations(job: BuiltJob) -> Iterator[Finding]:
    """A patch of the job replaces the tolerations of its runtime.

    Tolerations have no key by which a patch could merge them: the patch's list is the whole list, and the pods are not
    scheduled where only the runtime's tolerations let them.

    Source: strategic merge patch of k8s.io/apimachinery; Kubeflow Trainer 2.0 to 2.3.
    """
    before = {one.name.known: one.pod_spec.get("tolerations") for one in job.runtime.jobs}
    for pods in job.made:
        listed, shared = pods.spec.get("tolerations"), before.get(pods.name)
        if shared is None or listed.owner is not Owner.JOB or not shared.items() or listed.unknown:
            continue
        kept = [{key: value.content for key, value in item.entries()} for item in listed.items()]
        lost = [item for item in shared.items() if {e.name: e.plain for e in item.entries()} not in kept]
        if lost and not any(item.is_unknown for item in lost):
            keys = ", ".join(item.get("key").written or "any" for item in lost)
            yield listed.place.finding(
                f"the patch replaces the runtime's tolerations: {keys} is lost",
                help="repeat the runtime's tolerations in the patch",
                at_key=True,
                related=lost[0].relate("the runtime's toleration"),
            )
