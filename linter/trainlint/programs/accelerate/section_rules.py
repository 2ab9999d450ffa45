"""The rules on the sections for Megatron-LM and for FP8, and on DeepSpeed's where it is not used."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage, did_you_mean, one_of
from trainlint.programs.accelerate.config import AccelerateConfig, python_integer, python_text, switch
from trainlint.programs.accelerate.facts import SEVERAL_GPUS, AccelerateFacts
from trainlint.reading import mending
from trainlint.reading.values import Field
from trainlint.rule import rule

_ALWAYS_PASSED = ("megatron_lm_tp_degree", "megatron_lm_pp_degree", "megatron_lm_gradient_clipping")
"""Settings whose text the workers get also where they are null."""
_SWITCHES = (
    "megatron_lm_sequence_parallelism",
    "megatron_lm_recompute_activations",
    "megatron_lm_use_distributed_optimizer",
)


@rule("FS148", "megatron-setting", stage=Stage.START)
def megatron_setting(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """A setting of megatron_lm_config has a value that the workers cannot read.

    They get the text of each value, and read degrees and numbers of micro batches as integers, clipping as a number and
    the switches as booleans. Tensor and pipeline degree multiplied must divide the number of processes.

    Source: accelerate, prepare_multi_gpu_env of utils/launch.py and MegatronLMPlugin.
    """
    if not config.runs.is_("MEGATRON_LM"):
        return
    section = config.field.get("megatron_lm_config")
    for entry in section.entries():
        kind = facts.megatron_types.get(entry.name)
        if entry.is_unknown or (entry.is_null and entry.name not in _ALWAYS_PASSED):
            continue
        if kind == "int" and python_integer(entry).wrong_type:
            yield entry.finding(f"{entry.name} must be an integer", help="write the number", fix=mending.whole(entry))
        elif kind == "float" and not _is_float(entry):
            yield entry.finding(f"{entry.name} must be a number", help="write the number")
        elif entry.name in _SWITCHES and switch(entry).wrong_type:
            yield entry.finding(f"{entry.name} must be true or false", help="write true or false")
    tensor, pipeline = (python_integer(section.get(name)) for name in _ALWAYS_PASSED[:2])
    size = (tensor.known or 1) * (pipeline.known or 1)
    at = tensor if tensor.given else pipeline
    wrong = any(value.given and value.known is None for value in (tensor, pipeline))
    if config.world_size and not wrong and size > 1 and config.world_size % size:
        yield at.finding(
            f"{config.world_size} processes cannot be divided by tensor × pipeline degree, which is {size}",
            help="make the product divide num_processes",
            stage=Stage.PREPARE,
            related=config.key("num_processes").relate("the number of processes"),
        )


def _is_float(field: Field) -> bool:
    try:
        return python_text(field).known is not None and float(python_text(field).known or "") is not None
    except ValueError:
        return False


_COUNTS = ("margin", "interval", "amax_history_len")
_WORDS = {
    "format": ("HYBRID", "E4M3", "E5M2"),
    "amax_compute_algo": ("MAX", "MOST_RECENT"),
    "opt_level": ("O1", "O2"),
}


@rule("FS149", "fp8-setting", stage=Stage.START)
def fp8_setting(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """A setting of fp8_config has a value that its backend does not take.

    The backend is TE or MSAMP, from 1.9 on AO too. TE reads margin, interval and the length of the history as integers,
    and knows the formats HYBRID, E4M3 and E5M2 and the algorithms max and most_recent; MSAMP the levels O1 and O2.

    Source: accelerate 1.4 and later, TERecipeKwargs and MSAMPRecipeKwargs of utils/dataclasses.py.
    """
    section = config.field.get("fp8_config")
    precision = config.key("mixed_precision").text().map(str.lower)
    if not facts.fp8_section_is_read or not precision.is_("fp8") or config.launcher is None:
        return
    backend = _fp8(section, "backend")
    word = backend.text().map(str.upper)
    if word.known_and_not_in(facts.fp8_backends):
        yield backend.finding(
            f'unknown FP8 backend "{backend.written}"',
            help=did_you_mean(backend.written, facts.fp8_backends) or f"write {one_of(sorted(facts.fp8_backends))}",
            fix=mending.respelled(backend, facts.fp8_backends),
        )
        return
    for name in _COUNTS if word.is_("TE") else ():
        field = _fp8(section, name)
        if not field.is_absent and python_integer(field).wrong_type:
            yield field.finding(f"{field.name} must be an integer", help="write the number", fix=mending.whole(field))
    for name in ("format", "amax_compute_algo") if word.is_("TE") else ("opt_level",) if word.is_("MSAMP") else ():
        field, words = _fp8(section, name), _WORDS[name]
        text = python_text(field)
        known = text if name == "opt_level" else text.map(str.upper)
        if not field.is_absent and known.known_and_not_in(words):
            yield field.finding(
                f'{field.name} cannot be "{field.written}"',
                help=did_you_mean(field.written, words) or f"write {one_of(words)}",
                fix=mending.respelled(field, words),
            )


def _fp8(section: Field, name: str) -> Field:
    short = section.get(name)
    return short if short.node is not None else section.get(f"fp8_{name}")


@rule("FS169", "deepspeed-section-not-used", stage=Stage.RUN, severity=Severity.WARNING)
def deepspeed_section_not_used(config: AccelerateConfig) -> Iterator[Finding]:
    """deepspeed_config has settings, and DeepSpeed does not run.

    The section is read with `distributed_type: DEEPSPEED` alone. With a type for several GPUs every GPU holds the whole
    model, and nothing is said.

    Source: accelerate, commands/launch.py.
    """
    section = config.field.get("deepspeed_config")
    if config.runs.is_(*SEVERAL_GPUS) and any(section.entries()):
        yield section.finding(
            f"deepspeed_config is not used: distributed_type is {config.runs}",
            help="set distributed_type: DEEPSPEED, or remove the section",
            at_key=True,
            related=config.runs.field.relate("the type that runs"),
        )
