"""How each release of accelerate treats its config file: behaviour here, key lists in accelerate.json.

Source: accelerate 0.20.3 to 1.15.0 as released, modules commands/config/config_args.py, commands/launch.py,
utils/launch.py, utils/dataclasses.py, parallelism_config.py, accelerator.py and state.py; run in twenty-four releases
with the launcher, `Accelerator()` and a model to wrap.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property

from trainlint.findings import Severity
from trainlint.records import dataclass
from trainlint.releases import ReleaseSpan, behaviour, during, minor, within
from trainlint.training.declarations import Declarations, declarations
from trainlint.training.fsdp import PREFETCHES, STATE_DICT_TYPES, STRATEGIES, WRAP_POLICIES, FsdpFacts, Words

PREFIX = "fsdp_"
STEM = "fsdp"
"""The launcher takes a key that contains this for one with the prefix."""
OLD_PREFETCH = "backward_prefetch_policy"

SEVERAL_GPUS = frozenset(
    ("MULTI_GPU", "MULTI_NPU", "MULTI_MLU", "MULTI_SDAA", "MULTI_MUSA", "MULTI_XPU", "MULTI_HPU", "MULTI_NEURON")
)
"""Distributed types that run plain data parallelism on several devices."""

TRUE_WORDS = frozenset(("y", "yes", "t", "true", "on", "1"))
FALSE_WORDS = frozenset(("n", "no", "f", "false", "off", "0"))
"""utils.str_to_bool, in any case."""

STRATEGY_MEMBERS = {"_HYBRID_SHARD_ZERO2": "HYBRID_SHARD_ZERO2"}
"""torch's names where accelerate's differ; releases that ignore case accept both."""

TORCHRUN_WORDS = frozenset(("gpu", "cpu", "auto", "xpu"))
"""Words that torchrun accepts as the number of processes of a machine."""

SIZES = ("dp_replicate", "dp_shard", "tp", "cp", "sp")
"""The dimensions of a device mesh; each has a `parallelism_config_…_size`."""

PARALLELISM: tuple[tuple[str, tuple[str, ...], str | None], ...] = (
    ("parallelism_config_cp_comm_strategy", ("allgather", "alltoall"), "cp"),
    ("parallelism_config_cp_backend", ("torch",), None),
    ("parallelism_config_sp_backend", ("deepspeed",), None),
)
"""Keys of parallelism_config with their words, and the size that must be above 1 for the key to be checked."""

GOES_WITH: Mapping[str, str] = {
    "..0.34.2": "0.16.4",
    "1.0.1..1.7.0": "0.16.9",
    "1.8.1..1.11.0": "0.17.6",
    "1.12.0..1.14.0": "0.18.9",
    "1.15.0..": "0.19.8",
}
"""The release of DeepSpeed that goes with releases of accelerate, where the repository states none."""

FILE_SETTINGS = (
    "gradient_accumulation_steps",
    "gradient_clipping",
    "zero_stage",
    "offload_optimizer_device",
    "offload_param_device",
    "offload_param_nvme_path",
    "offload_optimizer_nvme_path",
    "zero3_save_16bit_model",
)
"""Keys of deepspeed_config that may not stand beside deepspeed_config_file, nor may mixed_precision."""

LAUNCHERS = ("pdsh", "standard", "openmpi", "mvapich", "mpich", "impi", "slurm", "nossh")
"""Launchers of DeepSpeed on several machines; `standard` is torchrun."""
MPI_LAUNCHERS = ("mvapich", "mpich", "impi")


@dataclass(frozen=True)
class AccelerateFacts:
    """One release of accelerate, as data."""

    release: str
    top_keys: frozenset[str]
    sagemaker_keys: frozenset[str]
    sagemaker_required: frozenset[str]
    sections: Mapping[str, frozenset[str]]
    """By section: the keys that are read from it."""
    distributed_types: frozenset[str]
    sagemaker_types: frozenset[str]
    environments: frozenset[str]
    precisions: frozenset[str]
    dynamo_backends: frozenset[str]
    fp8_backends: frozenset[str]
    megatron_types: Mapping[str, str]
    """By key of megatron_lm_config: the type of its option."""
    launch_options: frozenset[str]
    """The options of `accelerate launch`, without their dashes."""
    key_spans: Mapping[str, ReleaseSpan]
    """Top-level keys that only some releases know."""
    strategy_is_a_number: bool = during("..0.25.0")
    """fsdp_sharding_strategy is read as the number that stands for a strategy; a word is refused."""
    layer_class_required: bool = during("..0.21.0")
    """TRANSFORMER_BASED_WRAP needs a layer class; later the model's own list stands in for one."""
    offload_is_true_alone: bool = during("..0.20.3")
    """fsdp_offload_params is on for true alone, and off for anything else."""
    port_is_asked_for: bool = during("0.21.0..")
    """The launcher looks whether main_process_port is taken."""
    port_is_asked_for_by_first: bool = during("0.25.0..")
    """Only the first machine looks."""
    processes_filled_in: bool = during("0.34.2..")
    """A file with distributed_type NO and no num_processes gets num_processes: 1, also one for SageMaker."""
    words_in_any_case: bool = during("0.34.2..")
    """Words of enumerations count in any case."""
    unknown_wrap_policy_refused: bool = during("0.34.2..")
    """An unknown wrap policy is refused; before, it counts as none."""
    ram_loading_read_by_worker: bool = during("0.30.1..")
    """The workers read fsdp_cpu_ram_efficient_loading themselves."""
    fsdp2: bool = during("1.6.0..")
    """The release has FSDP2."""
    fsdp2_full_state_dict: bool = during("1.7.0..")
    """FSDP2 can save a full state dict."""
    fsdp2_checkpoints_by_policy: bool = during("1.8.1..")
    """Activation checkpointing under FSDP2 follows the wrap policy."""
    integer_default_size: bool = during("1.13.0..")
    """The default of fsdp_min_num_params is an integer."""
    sync_forced_aloud: bool = during("0.30.1..")
    """Loading on one process switches fsdp_sync_module_states on, with a message."""
    bare_no_is_no_precision: bool = during("..0.33.0")
    """An unquoted `no`, a boolean for PyYAML, is accepted as mixed_precision."""
    sections_must_be_mappings: bool = during("..1.4.0")
    """The launcher goes through the keys of each section."""
    fp8_section_is_read: bool = during("1.4.0..")
    """The launcher reads fp8_config."""
    prefix_anywhere: bool = during("..1.4.0")
    """A key of a section counts as prefixed where the prefix stands anywhere in it."""
    flags_win_over_sections: bool = during("1.5.2..")
    """A flag of the command line wins over a section's key."""
    dynamo_prefix_optional: bool = during("1.14.0..")
    """Keys of dynamo_config may leave out the prefix."""
    single_launcher_needs_port: bool = during("1.8.1..")
    """The launcher of one process needs main_process_port beside main_process_ip."""
    sequence_excludes_context: bool = during("1.13.0..")
    """Sequence parallelism excludes context parallelism."""
    sequence_size_unchecked: bool = during("1.13.0..")
    """The size of sequence parallelism is not compared with the number of processes."""
    shard_dimension_required: bool = during("1.15.0..")
    """FSDP2 on a device mesh needs a dimension to shard over."""
    deepspeed_mesh: bool = during("1.12.0..")
    """parallelism_config is read under DeepSpeed, too."""
    deepspeed_port_given: bool = during("1.7.0..")
    """DeepSpeed's launcher gets port 29500 where main_process_port is absent; before, it gets the word None."""
    nossh_is_a_flag: bool = during("1.6.0..")
    """The launcher nossh is DeepSpeed's option --no_ssh; before, it is handed over as a launcher's name."""

    @property
    def deepspeed(self) -> str:
        """The release of DeepSpeed that goes with this one."""
        return next(name for span, name in GOES_WITH.items() if within(self.release, span))

    @cached_property
    def fsdp(self) -> FsdpFacts:
        """How this release treats the settings of fsdp_config."""
        return _fsdp_facts(self)


@cache
def accelerate_facts(release: str) -> AccelerateFacts:
    """The facts of one known release."""
    known = declarations("accelerate")
    sagemaker = known.fields("sagemaker_config", release)
    any_top = known.keys_of_any("config")
    always = known.keys_of_all("config", known.names)
    return AccelerateFacts(
        release=release,
        top_keys=known.keys("config", release) | known.keys("config_converted", release),
        sagemaker_keys=frozenset(sagemaker) | known.keys("config_converted", release),
        sagemaker_required=frozenset(name for name, one in sagemaker.items() if one.required),
        sections={
            table: known.keys(table, release) for table in known.tables if table in known.keys("config", release)
        },
        distributed_types=known.keys("choices:distributed_type", release),
        sagemaker_types=known.keys("choices:sagemaker_distributed_type", release),
        environments=known.keys("choices:compute_environment", release),
        precisions=known.keys("choices:mixed_precision", release),
        dynamo_backends=known.keys("choices:dynamo_backend", release),
        fp8_backends=known.keys("choices:fp8_backend", release) - {"NO"},
        megatron_types={
            name: "|".join(spec.types) for name, spec in known.fields("megatron_lm_config", release).items()
        },
        launch_options=known.keys("launch_flags", release),
        key_spans={key: known.span("config", key) for key in any_top - always},
        **behaviour(AccelerateFacts, release),
    )


def _fsdp_facts(facts: AccelerateFacts) -> FsdpFacts:
    known, release, fsdp2 = declarations("accelerate"), facts.release, facts.fsdp2
    versions = (1, 2) if fsdp2 else (1,)
    refused, ignored = Severity.ERROR, Severity.WARNING
    always = dict.fromkeys(versions, refused)
    return FsdpFacts(
        keys=known.keys("fsdp_config", release),
        optional_prefix=PREFIX,
        key_advice=_key_advice(known, release),
        unknown_key=ignored,
        versions=versions if fsdp2 else (),
        version_not_read=None if fsdp2 else ignored,
        words={
            "strategy": {1: Words(frozenset(STRATEGIES))},
            "wrap_policy": dict.fromkeys(
                versions,
                Words(frozenset(WRAP_POLICIES), refused if facts.unknown_wrap_policy_refused else ignored),
            ),
            "backward_prefetch": dict.fromkeys(versions, Words(frozenset(PREFETCHES))),
            "state_dict_type": {
                1: Words(frozenset(STATE_DICT_TYPES)),
                2: Words(known.keys("choices:fsdp2_state_dict_type", release)),
            },
        },
        strategy_numbers=facts.strategy_is_a_number,
        booleans={
            "offload": {} if facts.offload_is_true_alone else always,
            **{
                setting: {1: refused} if _reads(known, PREFIX + setting, release) else {}
                for setting in ("use_orig_params", "sync_module_states", "forward_prefetch")
            },
            "ram_efficient_loading": always if facts.ram_loading_read_by_worker else {},
            "activation_checkpointing": always if _reads(known, "fsdp_activation_checkpointing", release) else {},
            "checkpoint_offload": always if _reads(known, "fsdp_activation_checkpointing_offload", release) else {},
            "reshard": {2: refused},
        },
        fsdp1_only=dict.fromkeys(
            ("strategy", "backward_prefetch", "forward_prefetch", "use_orig_params", "sync_module_states"), ignored
        ),
        default_state_dict_type={1: "FULL_STATE_DICT", 2: "SHARDED_STATE_DICT"},
        wrap_advice="set fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP",
        reshard_under_fsdp1=ignored if fsdp2 else None,
        boolean_reshard_under_fsdp1=ignored if fsdp2 else None,
        size_wrap_without_size=None if facts.integer_default_size else refused,
        size_not_an_integer=refused,
        checkpointing_without_wrap=ignored if facts.fsdp2_checkpoints_by_policy else None,
        checkpoint_offload_alone=refused if _reads(known, "fsdp_activation_checkpointing_offload", release) else None,
        class_names=refused,
        no_class_name=refused if facts.layer_class_required else None,
        single_unit=ignored,
        wrap_setting_not_used=ignored,
        hybrid_on_one_machine=ignored,
        section_not_used=ignored,
        deepspeed_beside=ignored,
        sync_checked_at_launch=_reads(known, PREFIX + "cpu_ram_efficient_loading", release),
    )


def _reads(known: Declarations, key: str, release: str) -> bool:
    return key in known.keys("fsdp_config", release)


ADVICE = {
    "fsdp_backward_prefetch_policy": "write fsdp_backward_prefetch",
    "fsdp_cpu_offload": "write fsdp_offload_params",
    "fsdp_offload": "write fsdp_offload_params",
    "fsdp_transformer_cls_names_to_wrap": "write fsdp_transformer_layer_cls_to_wrap",
    "fsdp_limit_all_gathers": "remove it: Accelerate always limits them",
    "fsdp_mixed_precision": "write mixed_precision at the top level of the file",
    "fsdp_mixed_precision_policy": "write mixed_precision at the top level of the file",
    "fsdp_gradient_checkpointing": "write fsdp_activation_checkpointing",
    "fsdp_gradient_accumulation_steps": "set it in the training arguments",
}
"""Help for names that the launcher does not read: the Python class's, another trainer's, or another section's."""


def _key_advice(known: Declarations, release: str) -> Mapping[str, str]:
    advice = dict(ADVICE)
    here = known.keys("fsdp_config", release)
    for key in known.keys_of_any("fsdp_config") - here:
        if key not in advice:
            advice[key] = read_by(known.span("fsdp_config", key))
    return {key: text for key, text in advice.items() if key not in here}


def read_by(span: ReleaseSpan) -> str:
    """Help for a key that only other releases read, by their first two numbers: one patch of each is known."""
    if not span.until:
        return f"remove it, or use Accelerate {minor(span.since)} or newer"
    first = f"{minor(span.since)} to" if span.since else "up to"
    return f"remove it: only Accelerate {first} {minor(span.until)} reads it"
