"""What each release of Soup refuses or ignores: its presets and the options of its command.

The keys of `soup.yaml`, their types and bounds are in soup.json, settings that exclude or need each other in
limits.txt. The facts here were read in config/schema.py, commands/train.py and utils/ of the released packages, and
tried on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from trainlint.findings import Severity
from trainlint.releases import behaviour, during, names_within
from trainlint.repository.invocations import Command
from trainlint.training.declarations import Spec, declarations
from trainlint.training.limits import Limit, limits_of_release

VALUE_OPTIONS: Mapping[str, str] = dict.fromkeys(
    "--config -c --name -n --resume -r --tracker --deepspeed --fsdp --gpus --gate --push-as --find-lr-start"
    " --find-lr-end --find-lr-steps --find-lr-output --reward-hack-detector --replay --replay-ratio --replay-seed"
    " --reward-hack-mitigation --diagnose-gate --annex-xi --repro-receipt --capture-activations --capture-prompts"
    " --energy-country --energy-out --cloud --gpu".split(),
    "..",
) | dict.fromkeys("--nodes --node-rank --master-addr --master-port".split(), "0.76.1..")
"""Options of `soup train` that take a value, with the releases that have them."""

SWITCHES = frozenset(
    "--dry-run --wandb --tensorboard --no-reexec --hf-resume --find-lr --yes -y --trust-remote-code"
    " --echo-trap-tokenizer-aware --reward-hack-halt --minillm-on-policy --profile --allow-oom-attempt --track-energy"
    " --cloud-submit --help".split()
)
"""Options of `soup train` that take no value."""

TRAIN = Command(
    "soup train",
    (("soup", "train"), ("soup_cli.cli", "train"), ("soup_cli", "train")),
    r"\bsoup(?:_cli)?\b",
    bare=SWITCHES,
    counts=dict.fromkeys(VALUE_OPTIONS, 1),
)

MAX_GPUS = 128
"""The largest number that `--gpus` accepts (utils/topology.py)."""

COMPILE_READERS = ("sft", "tts")
"""Tasks whose trainer reads use_fsdp2_compile: trainer/sft.py, and trainer/tts.py, which is based on it."""

UNSHARDABLE = ("hqq", "eetq", "aqlm")
"""Kinds of quantization that work neither with FSDP nor with ZeRO stage 3 (utils/quant_menu.py, since 0.38)."""

ZERO3_PRESETS = ("zero3", "zero++", "zero_pp")
"""DeepSpeed presets that the check of quantization knows as stage 3."""

ZERO3_UNCHECKED = ("zero3_offload",)
"""DeepSpeed presets of stage 3 that the check does not know."""

UNQUANTIZED_TASKS = ("distill", "classifier", "reranker", "cross_encoder", "prm", "moe_lora_routing", "unlearn", "asr")
"""Tasks whose trainer never quantizes the model; since 0.76 their default is no quantization."""

MINIMUM_TORCH = "2.2"
MINIMUM_ACCELERATE = "0.27"
"""utils/fsdp.py checks torch's version and names accelerate's."""

OPTIMIZERS = frozenset(
    "adafactor adagrad adalomo adamw_8bit adamw_anyprecision adamw_bnb_8bit adamw_hf adamw_torch adamw_torch_fused"
    " adamw_torch_xla apollo_adamw grokadamw lion_32bit lion_8bit lomo muon paged_adamw_32bit paged_adamw_8bit"
    " paged_lion_32bit paged_lion_8bit rmsprop schedule_free_adamw schedule_free_sgd sgd".split()
)
OLD_OPTIMIZERS = frozenset(
    "adam_mini adamw_apex_fused ao_adamw_4bit ao_adamw_8bit ao_adamw_fp8 badam came_pytorch dion".split()
)
"""Accepted up to 0.75.2; transformers 5 does not have them."""

TAKE_MORE = frozenset(
    "lr_groups mod_capacity_factor distill_mode distill_checkpoint reward_hack_mitigation stream_recompute".split()
)
"""Fields whose validators accept more than their declared types and bounds."""


@dataclass(frozen=True, kw_only=True)
class SoupFacts:
    """What one release of Soup does."""

    release: str
    unknown_key: Severity | None
    """How an unknown key is treated: ERROR, WARNING, or None where it is ignored without a message."""
    staged_field: Severity | None
    """How a field that nothing reads yet is treated, if it differs from its default."""
    staged: Mapping[str, Spec]
    presets: Mapping[str, Spec]
    deepspeed_presets: tuple[str, ...]
    storage_follows_compute: bool = during("0.74.0..")
    """4-bit storage under FSDP is set to the compute type, whatever the file says."""
    some_tasks_unquantized: bool = during("0.76.1..")
    """Some tasks never quantize the model, and their default is no quantization."""
    bitsandbytes_dropped: bool = during("0.76.1")
    """4bit or 8bit for such a task is ignored with a warning; later it is refused."""
    old_optimizers: bool = during("..0.75.2")
    """The old optimizers still exist."""
    limits: Mapping[str, tuple[Limit, ...]]
    """The limits by section of limits.txt."""
    strict: frozenset[str]
    """Fields whose validators, unlike pydantic, refuse a boolean as a number and a number as a boolean."""

    @property
    def unquantized_tasks(self) -> tuple[str, ...]:
        """Tasks that never quantize the model."""
        return UNQUANTIZED_TASKS if self.some_tasks_unquantized else ()

    @property
    def optimizers(self) -> frozenset[str]:
        """The names that training.optimizer accepts."""
        return OPTIMIZERS | OLD_OPTIMIZERS if self.old_optimizers else OPTIMIZERS

    def fields(self, table: str) -> Mapping[str, Spec]:
        """The fields of a section's model; none for another name."""
        return _fields(self.release, table)

    @property
    def options(self) -> frozenset[str]:
        """The options of this release's `soup train`."""
        return SWITCHES.union(names_within(VALUE_OPTIONS, self.release))


@cache
def _fields(release: str, table: str) -> Mapping[str, Spec]:
    """The fields of a model; a validator that rewrites a value still checks type and bounds, except in TAKE_MORE."""
    known = declarations("soup")
    fields = known.fields(table, release) if table in known.tables else {}
    return {name: replace(spec, converted=name in TAKE_MORE) for name, spec in fields.items()}


_SEVERITIES = {"error": Severity.ERROR, "warn": Severity.WARNING}


@cache
def facts_of(release: str) -> SoupFacts:
    """The facts of one known release."""
    known = declarations("soup")
    return SoupFacts(
        release=release,
        unknown_key=_SEVERITIES.get(str(known.value("unknown_key", release))),
        staged_field=_SEVERITIES.get(str(known.value("staged_field", release))),
        staged=known.fields("staged", release),
        presets=known.fields("fsdp_presets", release),
        deepspeed_presets=tuple(known.fields("deepspeed_presets", release)),
        limits=limits_of_release("soup", release, known.names),
        **behaviour(SoupFacts, release),
        strict=frozenset(
            name
            for table in ("TrainingConfig", "DataConfig", "ShipConfig")
            for name, spec in known.fields(table, release).items()
            if spec.converted and {"int", "float", "bool"} & set(spec.types)
        ),
    )
