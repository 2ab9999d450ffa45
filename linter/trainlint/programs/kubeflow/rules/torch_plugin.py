"""The TorchTune rule set: what the torch plugin checks on TrainJobs that run torchtune, and what escapes it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from trainlint.findings import Finding, Severity, did_you_mean, some_of
from trainlint.programs.kubeflow.facts.release import (
    DORA_ARG,
    LORA_ARG,
    QUANTIZE_ARG,
    RESERVED_ENV,
    TORCHTUNE_COMMAND,
    KubeflowFacts,
)
from trainlint.programs.kubeflow.objects import TrainJob, admitted_recipe, built_recipe
from trainlint.rule import rule


def _checked(job: TrainJob, facts: KubeflowFacts) -> bool:
    """The torch plugin looks at this job: torch policy in its runtime, a trainer, in 2.0 and 2.1 numProcPerNode."""
    return (
        job.runtime is not None
        and job.runtime.torch
        and job.trainer.is_mapping
        and (not facts.gated_by_num_proc or not job.num_proc_per_node.is_absent)
    )


def _checked_as_torchtune(job: TrainJob, facts: KubeflowFacts) -> bool:
    return _checked(job, facts) and job.runs_tune


@rule("TT101", "unsupported-model")
def unsupported_model(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The model is not one that the torchtune plugin supports.

    Admission takes the model from the name of the runtime: three parts between dashes, of which the second and third
    are torchtune's model (torchtune-llama3.2-1b is llama3_2/1B). A job whose command is `tune run` is refused when
    that is not one of the release's models. Release 2.0 lists llama3_2/7B where it means 3B, so that it refuses its own
    runtime torchtune-llama3.2-3b.

    Source: Kubeflow Trainer 2.0 and later, torch plugin, validation of torchtune.
    """
    if not _checked_as_torchtune(job, facts):
        return
    if job.torchtune_model.known_and_not_in(facts.supported_models):
        names = sorted(
            f"torchtune-{model.replace('_', '.').replace('/', '-').lower()}" for model in facts.supported_models
        )
        what = f"model {job.torchtune_model}" if str(job.torchtune_model) else "a runtime of this name"
        hint = did_you_mean(str(job.runtime_name), names)
        yield job.runtime_name.finding(
            f"torchtune does not support {what}",
            help=f"name a runtime of a supported model ({some_of(names)}){'; ' + hint if hint else ''}",
        )


@rule("TT102", "single-node-model")
def single_node_model(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """Only some models can train on several nodes.

    torchtune ships a recipe config for several nodes for the largest model alone; admission refuses
    `spec.trainer.numNodes` above 1 for the others. The runtime's own numNodes is not looked at.

    Source: Kubeflow Trainer 2.0 and later, torch plugin, validation of torchtune.
    """
    if not _checked_as_torchtune(job, facts):
        return
    if job.num_nodes.above(1) and job.torchtune_model.known_and_not_in(facts.multi_node_models):
        name = str(job.torchtune_model) or "this runtime's model"
        yield job.num_nodes.finding(
            f"numNodes must be 1 for {name}",
            help="remove numNodes, or use a runtime of a multi-node model (torchtune-llama3.3-70b)",
        )


@rule("TT103", "qlora-unsupported-model")
def qlora_unsupported_model(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The model has no QLoRA config.

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
            help=f"drop {QUANTIZE_ARG} from spec.trainer.args to train with LoRA",
        )


@rule("TT104", "qlora-several-devices")
def qlora_several_devices(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """QLoRA of a small model needs a single device.

    torchtune has a QLoRA config for llama3_2 1B and 3B on one device alone. Admission takes a job for a single-device
    one when numProcPerNode is 1 or it counts one GPU: in `resourcesPerNode` (even an empty one hides the runtime's
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


@rule("TT105", "lora-several-nodes")
def lora_several_nodes(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """LoRA and QLoRA run on one node only.

    With several nodes the job resolves to a full fine-tune and drops the LoRA arguments without a word; from 2.3
    admission refuses it.

    Source: Kubeflow Trainer 2.3, torch plugin, validation of torchtune.
    """
    if not (_checked_as_torchtune(job, facts) and facts.lora_multi_node_refused):
        return
    if job.num_nodes.above(1) and (job.uses_lora or job.uses_qlora(facts)):
        yield job.num_nodes.finding(
            "LoRA does not train on several nodes",
            help="set numNodes: 1, or drop the LoRA arguments for a full fine-tune",
        )


@rule("TT106", "immutable-config")
def immutable_config(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An argument sets what the runtime owns.

    The runtime's command gives output_dir, tokenizer.path, tokenizer.merges_file and checkpointer.checkpoint_dir, and
    they must fit its volumes. From 2.3 admission refuses them in `spec.trainer.args`; the key is the text before the
    first `=`, compared exactly.

    Source: Kubeflow Trainer 2.3, torch plugin, validation of torchtune.
    """
    if not (_checked_as_torchtune(job, facts) and facts.immutable_in_args):
        return
    for arg in job.args:
        key = arg.map(lambda text: text.partition("=")[0])
        if key.is_(*facts.immutable_keys):
            yield arg.finding(
                f"{key} belongs to the runtime and must not be set in args",
                help="drop the argument, or change the runtime's command",
            )


@rule("TT107", "reserved-env")
def reserved_env(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An environment variable of torchrun is set by hand.

    The controller sets PET_NNODES, PET_NPROC_PER_NODE, PET_NODE_RANK, PET_MASTER_ADDR and PET_MASTER_PORT itself. Any
    job on a runtime with a torch policy is refused when it sets one of them, in 2.0 and 2.1 only if it sets
    numProcPerNode as well.

    Source: Kubeflow Trainer 2.0 and later, torch plugin.
    """
    if _checked(job, facts):
        for env in job.env:
            name = env.get("name").text()
            if name.is_(*RESERVED_ENV):
                yield name.finding(
                    f"{name} is reserved: the controller sets it",
                    help="remove it; numNodes and numProcPerNode decide these values",
                    field="spec.trainer.env",
                )


@rule("TT108", "num-proc-per-node-word")
def num_proc_per_node_word(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """numProcPerNode is a text other than auto, cpu or gpu.

    In 2.0 and 2.1 the field takes an integer or one of these words; a number in quotes is a text and refused. Later
    releases take an integer alone.

    Source: Kubeflow Trainer 2.0 and 2.1, torch plugin.
    """
    words = job.num_proc_per_node.text()
    if facts.num_proc_words and _checked(job, facts) and words.known_and_not_in(facts.num_proc_words):
        number = str(words).isdigit()
        yield words.finding(
            f'numProcPerNode must be a number, auto, cpu or gpu, not "{words}"',
            help="remove the quotes" if number else did_you_mean(str(words), facts.num_proc_words),
        )


@rule("TT109", "num-nodes-missing")
def num_nodes_missing(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """numNodes is missing, and the webhook of this release crashes on that.

    With numProcPerNode set and the command `tune run`, the webhook of 2.0 and 2.1 reads numNodes without asking whether
    it is there; its crash refuses the job with an internal error that names no field.

    Source: Kubeflow Trainer 2.0 and 2.1, torch plugin, validation of torchtune.
    """
    if facts.missing_num_nodes_crashes and _checked_as_torchtune(job, facts) and job.num_nodes.absent:
        yield job.num_nodes.finding(
            f"numNodes is required beside numProcPerNode in Kubeflow Trainer {facts.release}",
            help="add numNodes: 1",
        )


@rule("TT201", "escaped-checks", severity=Severity.WARNING)
def escaped_checks(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The command starts torchtune without being exactly `tune run`, which skips checks that would refuse the job.

    Admission checks torchtune only where the command is the two words `tune` and `run`. Any other spelling (a path, a
    shell, the recipe in the command) is started as it stands: no recipe is chosen, the runtime's paths are not passed
    on, and what admission would have refused fails on the node.

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
                f"this command escapes admission, which would refuse the job: {refusals[0]}",
                help="write command: [tune, run] and mend what admission then refuses",
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


@rule("TT202", "unused-lora-arguments", severity=Severity.WARNING)
def unused_lora_arguments(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The job asks for LoRA and will get a full fine-tune.

    Release 2.0 chooses a full fine-tune whatever the arguments say. Later releases do so when the job runs on several
    nodes, also where only the runtime says so (its numNodes, which admission does not look at).

    Source: Kubeflow Trainer 2.0 and later, torch plugin, choice of recipe and config.
    """
    if not (job.runtime and job.runtime.torch and job.runs_tune):
        return
    asks = job.uses_lora or job.uses_qlora(facts)
    refused = facts.lora_multi_node_refused and job.num_nodes.above(1)
    recipe = built_recipe(job, facts)
    if asks and not refused and recipe and not recipe.lora:
        arg = next(arg for arg in job.args if arg.known_and(lambda text: LORA_ARG in text or QUANTIZE_ARG in text))
        yield arg.finding(
            f"this LoRA argument has no effect: the job resolves to {recipe.name} with {recipe.config}",
            help="train on one node, with Kubeflow Trainer 2.1 or later, or drop the LoRA arguments",
        )


@rule("TT203", "dora-switches-qlora-off", severity=Severity.WARNING)
def dora_switches_qlora_off(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """DoRA switches the quantized base model off.

    Where the arguments hold both `model.quantize_base` and `model.use_dora`, the recipe is chosen as if the base were
    not to be quantized: the LoRA config, or without LoRA modules a full fine-tune. In 2.1 and 2.2 the mere presence of
    `model.use_dora` does that, from 2.3 only a true value.

    Source: Kubeflow Trainer 2.1 and later, torch plugin, choice of recipe and config.
    """
    if not (job.runtime and job.runtime.torch and job.runs_tune and facts.lora_recipes):
        return
    if job.any_arg(lambda text: QUANTIZE_ARG in text) and job.uses_qlora(facts) is False:
        for arg in job.args:
            if arg.known_and(lambda text: QUANTIZE_ARG in text) and _dora(job, facts) and _quantizes(str(arg), facts):
                yield arg.finding(
                    f"{DORA_ARG} switches {QUANTIZE_ARG} off: the base model is not quantized",
                    help=f"drop {DORA_ARG} or {QUANTIZE_ARG}",
                )


def _dora(job: TrainJob, facts: KubeflowFacts) -> bool:
    if facts.qlora_needs_true:
        return job.any_arg(lambda text: DORA_ARG in text and _is_true(text)) or False
    return job.any_arg(lambda text: DORA_ARG in text) or False


def _quantizes(arg: str, facts: KubeflowFacts) -> bool:
    return _is_true(arg) or ("=" not in arg and not facts.qlora_needs_true)


def _is_true(arg: str) -> bool:
    return arg.partition("=")[2].strip().lower() == "true"
