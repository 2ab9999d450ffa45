"""The TorchTune rule set: what the torch plugin checks on TrainJobs that run torchtune, and what escapes it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from trainlint.findings import Finding, Severity, Stage, did_you_mean, some_of
from trainlint.programs.kubeflow.facts.release import (
    DORA_ARG,
    LORA_ARG,
    QUANTIZE_ARG,
    RESERVED_ENV,
    TORCHTUNE_COMMAND,
    KubeflowFacts,
)
from trainlint.programs.kubeflow.objects import TrainJob, admitted_recipe, built_recipe
from trainlint.reading import mending
from trainlint.rule import rule

_SETTING_OF = {"PET_NNODES": "spec.trainer.numNodes", "PET_NPROC_PER_NODE": "spec.trainer.numProcPerNode"}
"""The settings of a TrainJob that the controller turns into these variables."""


def _checked(job: TrainJob, facts: KubeflowFacts) -> bool:
    """The torch plugin checks this job: its runtime has a torch policy, it a trainer, in 2.0 and 2.1 numProcPerNode."""
    return (
        job.runtime is not None
        and job.runtime.torch
        and job.trainer.is_mapping
        and (not facts.gated_by_num_proc or not job.num_proc_per_node.is_absent)
    )


def _checked_as_torchtune(job: TrainJob, facts: KubeflowFacts) -> bool:
    return _checked(job, facts) and job.runs_tune


def _runtime_names(models: Iterable[str]) -> list[str]:
    return sorted(f"torchtune-{model.replace('_', '.').replace('/', '-').lower()}" for model in models)


@rule("TT101", "unsupported-model", stage=Stage.ADMISSION)
def unsupported_model(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The torch plugin does not support the model.

    Admission takes the model from the runtime's name: three parts between dashes, of which the second and third are
    torchtune's model (torchtune-llama3.2-1b is llama3_2/1B). A job whose command is `tune run` is refused when that
    is not one of the release's models. Release 2.0 lists llama3_2/7B where it means 3B, and refuses its own runtime
    torchtune-llama3.2-3b.

    Source: Kubeflow Trainer 2.0 and later, torch plugin, validation of torchtune.
    """
    if not _checked_as_torchtune(job, facts):
        return
    if job.torchtune_model.known_and_not_in(facts.supported_models):
        names, model = _runtime_names(facts.supported_models), str(job.torchtune_model)
        message = f"the torch plugin does not support model {model}"
        hint = did_you_mean(str(job.runtime_name), names)
        yield job.runtime_name.finding(
            message if model else f"the runtime's name {job.runtime_name} does not contain a model",
            help=f"use the runtime of a supported model ({some_of(names)}){'; ' + hint if hint else ''}",
        )


@rule("TT102", "single-node-model", stage=Stage.ADMISSION)
def single_node_model(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """Only some models can train on several nodes.

    torchtune ships a recipe config for several nodes for the largest model only; admission refuses
    `spec.trainer.numNodes` above 1 for the others. It does not look at the runtime's own numNodes.

    Source: Kubeflow Trainer 2.0 and later, torch plugin, validation of torchtune.
    """
    if not _checked_as_torchtune(job, facts):
        return
    if job.num_nodes.above(1) and job.torchtune_model.known_and_not_in(facts.multi_node_models):
        name = str(job.torchtune_model) or "this runtime's model"
        others = some_of(_runtime_names(facts.multi_node_models))
        yield job.num_nodes.finding(
            f"numNodes must be 1 for {name}",
            help=f"remove numNodes, or use the runtime of a multi-node model ({others})",
        )


@rule("TT103", "qlora-unsupported-model", stage=Stage.ADMISSION)
def qlora_unsupported_model(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """torchtune has no QLoRA config for the model.

    `model.quantize_base` in the arguments asks for QLoRA, unless DoRA switches it off. torchtune has no QLoRA config
    for qwen2_5/1.5B, on one device or several, and admission refuses the job.

    Source: Kubeflow Trainer 2.1 and later, torch plugin, validation of torchtune.
    """
    if not _checked_as_torchtune(job, facts):
        return
    one_node = job.num_nodes.or_when_absent(1).is_(1)
    if one_node and job.uses_qlora(facts) and job.torchtune_model.is_(*facts.models_without_qlora):
        yield job.runtime_name.finding(
            f"torchtune has no QLoRA config for {job.torchtune_model}",
            help=f"remove {QUANTIZE_ARG} from spec.trainer.args to train with LoRA",
        )


@rule("TT104", "qlora-several-devices", stage=Stage.ADMISSION)
def qlora_several_devices(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """QLoRA of a small model needs a single device.

    torchtune has a QLoRA config for llama3_2 1B and 3B on one device only. For admission a job has a single device
    when numProcPerNode is 1 or when it counts one GPU: in `resourcesPerNode` (even an empty one hides the runtime's
    resources), requests before limits. Otherwise it refuses both numProcPerNode and resourcesPerNode.

    Source: Kubeflow Trainer 2.1 and later, torch plugin, validation of torchtune.
    """
    if not _checked_as_torchtune(job, facts):
        return
    recipe = admitted_recipe(job, facts)
    if (
        recipe
        and recipe.quantized
        and not recipe.single_device
        and job.torchtune_model.is_(*facts.single_device_qlora_models)
    ):
        help = "set numProcPerNode: 1, or one GPU in resourcesPerNode"
        for field in (job.num_proc_per_node, job.trainer.get("resourcesPerNode")):
            yield field.finding(f"QLoRA of {job.torchtune_model} needs a single device ({field.name})", help=help)


@rule("TT105", "lora-several-nodes", stage=Stage.ADMISSION, follows=("TT102",))
def lora_several_nodes(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """LoRA and QLoRA run on one node only.

    With several nodes the job becomes a full fine-tune that ignores the LoRA arguments; from 2.3 on admission refuses
    it.

    Source: Kubeflow Trainer 2.3, torch plugin, validation of torchtune.
    """
    if not (_checked_as_torchtune(job, facts) and facts.lora_multi_node_refused):
        return
    if job.num_nodes.above(1) and (job.uses_lora or job.uses_qlora(facts)):
        yield job.num_nodes.finding(
            "LoRA does not train on several nodes",
            help="set numNodes: 1, or remove the LoRA arguments for a full fine-tune",
        )


@rule("TT106", "immutable-config", stage=Stage.ADMISSION)
def immutable_config(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An argument sets what belongs to the runtime.

    The runtime's command sets output_dir, tokenizer.path, tokenizer.merges_file and checkpointer.checkpoint_dir, and
    they must fit its volumes. From 2.3 on admission refuses them in `spec.trainer.args`; it compares the text before
    the first `=` exactly.

    Source: Kubeflow Trainer 2.3, torch plugin, validation of torchtune.
    """
    if not (_checked_as_torchtune(job, facts) and facts.immutable_in_args):
        return
    for arg in job.args:
        key = arg.map(lambda text: text.partition("=")[0])
        if key.is_(*facts.immutable_keys):
            yield arg.finding(
                f"{key} belongs to the runtime and must not be set in args",
                help="remove the argument, or change the runtime's command",
                fix=mending.without_item(arg, sure=False),
            )


@rule("TT107", "reserved-env", stage=Stage.ADMISSION)
def reserved_env(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The job sets an environment variable of torchrun that the controller sets itself.

    These are PET_NNODES, PET_NPROC_PER_NODE, PET_NODE_RANK, PET_MASTER_ADDR and PET_MASTER_PORT. Any job on a runtime
    with a torch policy is refused when it sets one of them, in 2.0 and 2.1 only if it sets numProcPerNode as well.

    Source: Kubeflow Trainer 2.0 and later, torch plugin.
    """
    if _checked(job, facts):
        for env in job.env:
            name = env.get("name").text()
            if name.is_(*RESERVED_ENV):
                yield name.finding(
                    f"{name} is reserved: the controller sets it",
                    help=f"set {_SETTING_OF[str(name)]} instead" if str(name) in _SETTING_OF else "remove it",
                    field="spec.trainer.env",
                    fix=None if str(name) in _SETTING_OF else mending.without_item(env),
                )


@rule("TT108", "num-proc-per-node-word", stage=Stage.ADMISSION)
def num_proc_per_node_word(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """numProcPerNode is a string other than auto, cpu or gpu.

    In 2.0 and 2.1 the field takes an integer or one of these words; a number in quotes is a string and is refused.
    Later releases take only an integer.

    Source: Kubeflow Trainer 2.0 and 2.1, torch plugin.
    """
    words = job.num_proc_per_node.text()
    if facts.num_proc_words and _checked(job, facts) and words.known_and_not_in(facts.num_proc_words):
        number = str(words).isdecimal()
        yield words.finding(
            f'numProcPerNode must be a number, auto, cpu or gpu, not "{words}"',
            help="remove the quotes" if number else did_you_mean(str(words), facts.num_proc_words),
            fix=mending.whole(words) if number else mending.respelled(words, facts.num_proc_words),
        )


@rule("TT109", "num-nodes-missing", stage=Stage.ADMISSION)
def num_nodes_missing(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """numNodes is missing, and the webhook of this release crashes.

    With numProcPerNode set and the command `tune run`, the webhook of 2.0 and 2.1 reads numNodes without a check
    whether it is there; its crash refuses the job with an internal error that names no field.

    Source: Kubeflow Trainer 2.0 and 2.1, torch plugin, validation of torchtune.
    """
    if facts.missing_num_nodes_crashes and _checked_as_torchtune(job, facts) and job.num_nodes.absent:
        yield job.num_nodes.finding(
            f"numNodes is required beside numProcPerNode in Kubeflow Trainer {facts.release}",
            help="add numNodes: 1",
        )


@rule("TT201", "escaped-checks", stage=Stage.RUN, severity=Severity.WARNING)
def escaped_checks(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The command starts torchtune without being exactly `tune run`, and skips checks that would refuse the job.

    Admission checks torchtune only where the command is the two words `tune` and `run`. Any other spelling (a path, a
    shell, the recipe in the command) runs as written: no recipe is chosen, the runtime's paths are not passed on, and
    what admission would have refused fails on the node.

    Source: Kubeflow Trainer 2.0 and later, torch plugin.
    """
    if not (_checked(job, facts) and job.runtime and job.runtime.runs_torchtune):
        return
    if not job.runs_tune and _starts_tune(job):
        unescaped = _AsTuneRun(job.field, job.runtime)
        checks = (
            unsupported_model,
            single_node_model,
            qlora_unsupported_model,
            qlora_several_devices,
            lora_several_nodes,
            immutable_config,
        )
        refusals = [finding.message for check in checks for finding in check(unescaped, facts)]
        if refusals:
            yield job.command.finding(
                f"this command skips a check that would refuse the job: {refusals[0]}",
                help="write command: [tune, run] and fix what admission then refuses",
            )


class _AsTuneRun(TrainJob):
    """A job as if its command were `tune run`."""

    runs_tune = True


def _starts_tune(job: TrainJob) -> bool:
    """The command runs `tune run`, directly or through a shell."""
    words = " ".join(str(word) for word in job.command.known or []).split()
    return any(
        first.strip("\"'").rpartition("/")[2] == TORCHTUNE_COMMAND[0] and second.strip("\"'") == TORCHTUNE_COMMAND[1]
        for first, second in pairwise(words)
    )


@rule("TT202", "unused-lora-arguments", stage=Stage.RUN, severity=Severity.WARNING)
def unused_lora_arguments(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The job asks for LoRA and will get a full fine-tune.

    Release 2.0 runs a full fine-tune whatever the arguments are. Later releases do so when the job runs on several
    nodes, even if only the runtime's numNodes says so, which admission does not look at.

    Source: Kubeflow Trainer 2.0 and later, torch plugin, choice of recipe and config.
    """
    if not (job.runtime and job.runtime.torch and job.runs_tune):
        return
    asks = job.uses_lora or job.uses_qlora(facts)
    refused = job.torchtune_model.known_and_not_in(facts.supported_models)
    refused |= facts.lora_multi_node_refused and job.num_nodes.above(1)
    recipe = built_recipe(job, facts)
    if asks and not refused and recipe and not recipe.lora:
        arg = next(arg for arg in job.args if arg.known_and(lambda text: LORA_ARG in text or QUANTIZE_ARG in text))
        cause = (job.num_nodes if facts.lora_recipes and job.num_nodes.above(1) else job.runtime_name).field
        yield cause.finding(
            f"the job asks for LoRA and runs {recipe.name} with {recipe.config}",
            help=f"{'set numNodes: 1' if facts.lora_recipes else 'use Kubeflow Trainer 2.1 or later'}, "
            "or remove the LoRA arguments",
            related=arg.field.relate("the first LoRA argument"),
        )


@rule("TT203", "dora-switches-qlora-off", stage=Stage.RUN, severity=Severity.WARNING)
def dora_switches_qlora_off(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """DoRA switches the quantized base model off.

    With both `model.quantize_base` and `model.use_dora` in the arguments, the recipe is chosen as for a base model that
    is not quantized: the LoRA config, or without LoRA modules a full fine-tune. In 2.1 and 2.2 the mere presence of
    `model.use_dora` does that, from 2.3 on only a true value.

    Source: Kubeflow Trainer 2.1 and later, torch plugin, choice of recipe and config.
    """
    if not (job.runtime and job.runtime.torch and job.runs_tune and facts.lora_recipes):
        return
    if job.any_arg(lambda text: QUANTIZE_ARG in text) and job.uses_qlora(facts) is False:
        for arg in job.args:
            if arg.known_and(lambda text: QUANTIZE_ARG in text) and _dora(job, facts) and _quantizes(str(arg), facts):
                yield arg.finding(
                    f"{DORA_ARG} switches {QUANTIZE_ARG} off: the base model is not quantized",
                    help=f"remove {DORA_ARG} or {QUANTIZE_ARG}",
                )


def _dora(job: TrainJob, facts: KubeflowFacts) -> bool:
    if facts.qlora_needs_true:
        return job.any_arg(lambda text: DORA_ARG in text and _is_true(text)) or False
    return job.any_arg(lambda text: DORA_ARG in text) or False


def _quantizes(arg: str, facts: KubeflowFacts) -> bool:
    return _is_true(arg) or ("=" not in arg and not facts.qlora_needs_true)


def _is_true(arg: str) -> bool:
    return arg.partition("=")[2].strip().lower() == "true"
