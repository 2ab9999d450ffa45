"""The accelerate rules: the launcher's config file apart from sharding, and the commands that use it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from trainlint.findings import Finding, Fix, Severity, Stage, did_you_mean, one_of, some_of
from trainlint.programs.accelerate.config import AccelerateConfig, Launch, ListedConfig, MisnamedLaunch, switch, truthy
from trainlint.programs.accelerate.facts import (
    PARALLELISM,
    PREFIX,
    SEVERAL_GPUS,
    TORCHRUN_WORDS,
    AccelerateFacts,
    read_by,
)
from trainlint.programs.accelerate.program import fsdp_setup
from trainlint.reading import mending
from trainlint.reading.values import Field
from trainlint.rule import rule

_WORKERS = ("torchrun", "deepspeed", "single")
"""The launchers that check the precision before they start anything."""
_COMPILING = ("torchrun", "single")
"""The launchers that pass the settings of torch.compile on."""


@rule("FS100", "accelerate-file-is-a-list", stage=Stage.LOAD)
def accelerate_file_is_a_list(config: ListedConfig) -> Iterator[Finding]:
    """The file is a list, not a mapping.

    The loader first reads compute_environment, which a list does not have, and raises.

    Remove the dashes in front of the keys.

    Source: accelerate, commands/config/config_args.py.
    """
    yield config.field.finding("an accelerate config must be a mapping", help="remove the dashes before the keys")


@rule("FS101", "unknown-accelerate-key", stage=Stage.LOAD)
def unknown_accelerate_key(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """The file has a top-level key that this release does not know.

    The loader compares the keys with those of its own class and raises at the first unknown one, before anything is
    launched. Keys come and go: `parallelism_config` is read from 1.10 on, `tp_config` was read from 1.4 to 1.6,
    `ipex_config` until 1.12.

    Fix or remove the key. Training arguments do not belong in this file, FSDP settings belong in `fsdp_config`.

    Source: accelerate, commands/config/config_args.py.
    """
    known = facts.sagemaker_keys if config.sagemaker else facts.top_keys
    if _is_local(config, facts):
        return  # FS103
    for entry in config.field.entries():
        if entry.name in known:
            continue
        fix = None
        if entry.name in facts.key_spans:
            help = read_by(facts.key_spans[entry.name])
        elif entry.name.startswith(PREFIX) and not did_you_mean(entry.name, known):
            help = "write it inside fsdp_config"
            fix = mending.moved(entry, config.field.get("fsdp_config")) if entry.name in facts.fsdp.keys else None
        else:
            help = did_you_mean(entry.name, known) or "remove it"
            fix = mending.renamed_to_nearest(entry, known)
        message = f"Accelerate {facts.release} does not know {entry.name}"
        yield entry.finding(message, help=help, fix=fix, at_key=True)


@rule("FS102", "distributed-type", stage=Stage.LOAD)
def distributed_type(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """distributed_type is missing or unknown.

    It decides which launcher starts the workers and which section of the file is read. The word must be exact: FSDP2 is
    `FSDP` with `fsdp_version: 2` in `fsdp_config`. An unquoted NO, which YAML reads as false, counts as missing.

    Since 0.34 a file for SageMaker cannot say NO: the loader then adds `num_processes: 1`, which such a file may not
    have, and refuses it as an unknown key.

    Source: accelerate, utils.DistributedType and commands/config/config_args.py.
    """
    kind = config.field.get("distributed_type")
    if _is_local(config, facts):
        return  # FS103
    allowed = facts.sagemaker_types if config.sagemaker else facts.distributed_types
    if kind.node is None:
        yield kind.finding("distributed_type is missing", help=f"add {one_of(sorted(allowed))}", at_key=True)
    elif config.distributed_type.known_and_not_in(allowed):
        word = config.distributed_type
        help, fix = (
            did_you_mean(str(word), allowed) or f"write {one_of(sorted(allowed))}",
            mending.respelled(word, allowed),
        )
        if str(word).upper() == "FSDP2":
            help = "write FSDP, and fsdp_version: 2 in fsdp_config"
            section = config.field.get("fsdp_config")
            version = section.get(PREFIX + "version")
            says = None if version.plain == 2 else mending.added(section, PREFIX + "version", "2")
            fix = mending.worded(word, "FSDP")
            fix = fix if version.plain == 2 else mending.all_of(fix, says)
        yield word.finding(f'unknown distributed type "{word}"', help=help, fix=fix)
    elif config.sagemaker and config.distributed_type.is_("NO"):
        yield from _filled_in(config, facts)


def _filled_in(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """The loader adds a key that its class for SageMaker does not have; one that is given is found there."""
    known = config.field.get("compute_environment").plain in facts.environments
    if known and facts.processes_filled_in and config.field.get("num_processes").node is None:
        yield config.field.get("distributed_type").finding(
            "with NO the loader adds num_processes, which a file for SageMaker cannot have",
            help="write DATA_PARALLEL, or launch with Accelerate 0.33 or older",
        )


@rule("FS103", "compute-environment", stage=Stage.LOAD)
def compute_environment(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """compute_environment is unknown, or a key that SageMaker requires is missing.

    With any compute_environment but LOCAL_MACHINE, also an empty one, the loader reads the file as one for Amazon
    SageMaker: keys of a local file are then unknown, and `ec2_instance_type` and `iam_role_name` are required.

    Source: accelerate, commands/config/config_args.py.
    """
    environment = config.field.get("compute_environment")
    if not config.sagemaker:
        return
    if environment.plain not in facts.environments:
        yield environment.finding(
            f'unknown compute environment "{environment.written}"',
            help=did_you_mean(environment.written, facts.environments) or "write LOCAL_MACHINE, or remove it",
            fix=mending.respelled(environment, facts.environments),
        )
        return
    missing = sorted(_missing_for_sagemaker(config, facts))
    if missing:
        yield environment.finding(
            f"a file for SageMaker needs {some_of(missing)}",
            help="add the missing keys, or write compute_environment: LOCAL_MACHINE",
        )


def _missing_for_sagemaker(config: AccelerateConfig, facts: AccelerateFacts) -> frozenset[str]:
    given = {entry.name for entry in config.field.entries()}
    return facts.sagemaker_required - given - {"distributed_type", "mixed_precision", "use_cpu", "debug"}


def _is_local(config: AccelerateConfig, facts: AccelerateFacts) -> bool:
    """A file for this machine that is read as one for SageMaker: everything else follows."""
    environment = config.field.get("compute_environment")
    wrong = environment.plain not in facts.environments or bool(_missing_for_sagemaker(config, facts))
    return config.sagemaker and environment.node is not None and wrong


_SAME_PRECISION = {"fp32": "no", "float32": "no", "none": "no", "bfloat16": "bf16", "float16": "fp16"}
"""Other names of precisions."""


@rule("FS104", "mixed-precision", stage=Stage.LOAD)
def mixed_precision(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """mixed_precision has an unknown value.

    It is `no`, `fp16`, `bf16` or `fp8`, in any case. YAML reads an unquoted `no` as false, which the launcher refuses
    from 0.34 on; older releases take it for "no".

    Write `mixed_precision: "no"` with quotes, or `bf16`. "no" is full 32-bit training.

    Source: accelerate, utils.PrecisionType and utils/launch.py.
    """
    field = config.key("mixed_precision")
    if config.launcher not in _WORKERS or field.is_absent or field.is_unknown:
        return
    word = field.text()
    if field.plain is False and not field.is_sequence:
        if not facts.bare_no_is_no_precision:
            yield field.finding(
                f"YAML reads an unquoted {field.written} as false, not as a precision",
                help='write "no" with quotes',
                fix=mending.worded(field, "no"),
            )
    elif word.wrong_type or word.map(str.lower).known_and_not_in(facts.precisions):
        full = word.map(str.lower).is_("fp32", "float32", "none")
        same = _SAME_PRECISION.get(field.written.lower())
        yield field.finding(
            f'unknown mixed precision "{field.written}"',
            help='write "no" with quotes'
            if full
            else did_you_mean(field.written, facts.precisions) or f"write {one_of(sorted(facts.precisions))}",
            fix=mending.worded(field, same) if same else mending.respelled(field, facts.precisions),
        )


@rule("FS105", "gpu-ids", stage=Stage.START)
def gpu_ids(config: AccelerateConfig) -> Iterator[Finding]:
    """gpu_ids is not text, or names one GPU where several are needed.

    The launcher splits the text at its commas. A single id without quotes is a number in YAML and cannot be split;
    `0,1` is text. A distributed type for several GPUs on one machine refuses a single id.

    Write `gpu_ids: "0"`, `gpu_ids: 0,1` or `gpu_ids: all`.

    Source: accelerate, commands/launch.py.
    """
    field = config.key("gpu_ids")
    if field.is_absent or field.is_unknown:
        return
    ids = field.text()
    if ids.wrong_type:
        help = f'write "{field.written}" with quotes' if field.written else "write the ids as text: 0,1"
        several = ",".join(str(item.plain) for item in field.items())
        fix = mending.as_text(field, several) if field.is_sequence and several else mending.quoted(field)
        yield field.finding("gpu_ids must be text", help=help, fix=fix)
    elif (
        config.runs.is_(*SEVERAL_GPUS)
        and config.machines.below(2)
        and ids.known_and(lambda text: "," not in text and text != "all")
    ):
        yield field.finding(
            f"{config.runs} needs several GPUs, but gpu_ids names one",
            help="name at least two, or write all",
            related=config.runs.field.relate("this needs several GPUs"),
        )


@rule("FS106", "process-count", stage=Stage.START)
def process_count(config: AccelerateConfig) -> Iterator[Finding]:
    """num_processes is not a number of processes that the launcher can start.

    It counts the processes of all machines together and is divided by num_machines, rounded down: fewer processes than
    machines leave none for each machine, and an empty value cannot be divided. torchrun's words (`gpu`, `cpu`, `auto`)
    and a number in quotes work on one machine only. -1 means that the command line must give the number.

    Source: accelerate, utils/launch.py; torch.distributed.run.
    """
    field, machines = config.key("num_processes"), config.machines
    if field.node is None or field.is_unknown or config.launcher not in _WORKERS:
        return
    count = config.number("num_processes")
    if field.is_null:
        if config.launcher == "deepspeed" and machines.is_(1):
            yield field.finding("num_processes must be an integer", help="write the number of processes")
        elif config.launcher != "single" and machines.above(1):
            yield field.finding(
                f"an empty num_processes cannot be divided by {machines} machines",
                help="write the number of processes of all machines, or give --num_processes",
                related=machines.field.relate("the number of machines"),
            )
    elif count.known is None:
        yield from _unreadable_count(config, field)
    elif count.known < 1 and config.launcher != "single":
        yield count.finding(f"num_processes cannot be {count}", help="write the number of processes, at least 1")
    elif config.launcher == "torchrun" and machines.known_and(lambda number: number > 1 and count.below(number)):
        yield count.finding(
            f"{count} process{'es' if count.above(1) else ''} cannot be spread over {machines} machines",
            help=f"write at least {machines}: num_processes counts the processes of all machines",
            related=machines.field.relate("the number of machines"),
        )


def _unreadable_count(config: AccelerateConfig, field: Field) -> Iterator[Finding]:
    text = field.text()
    several = config.machines.above(1)
    if config.launcher == "single":
        readable = isinstance(field.plain, (bool, int, float)) and not field.is_sequence
    else:
        one = text.known_and(lambda word: (word.isdecimal() and bool(word.strip("0"))) or word in TORCHRUN_WORDS)
        readable = not several and one
    if not readable:
        word, none = text.is_(*TORCHRUN_WORDS), text.known_and(lambda digits: not digits.strip("0") and bool(digits))
        message = "num_processes must be an integer" if not none else "num_processes cannot be 0"
        yield field.finding(
            f"num_processes cannot be {field.written} on several machines" if several and word else message,
            help="write the number of processes of all machines, without quotes",
            fix=None if none else mending.whole(field),
        )


@rule("FS107", "machine-count", stage=Stage.START)
def machine_count(config: AccelerateConfig) -> Iterator[Finding]:
    """num_machines or machine_rank is not an integer.

    The launcher compares num_machines with 1 and divides by it, which Python cannot do with text. With several machines
    it reads the rank with int().

    Source: accelerate, utils/launch.py.
    """
    machines, rank = config.key("num_machines"), config.key("machine_rank")
    if config.launcher not in _WORKERS:
        return
    if machines.is_null and config.launcher in ("torchrun", "deepspeed"):
        yield machines.finding("num_machines must be an integer", help="write 1, or remove it")
    if not (machines.is_absent or machines.is_unknown) and config.machines.wrong_type:
        plain = machines.plain
        counts = isinstance(plain, (bool, int, float)) and (config.launcher == "single" or plain <= 1)
        if machines.is_sequence or machines.is_mapping or not counts:
            yield machines.finding(
                "num_machines must be an integer",
                help="write the number without quotes",
                fix=mending.whole(machines),
            )
    number = rank.written.lstrip("-").isdecimal() if not (rank.is_sequence or rank.is_mapping) else False
    if (
        config.launcher == "torchrun"
        and config.machines.above(1)
        and not (rank.is_absent or rank.is_unknown or number or isinstance(rank.plain, (bool, float)))
    ):
        yield rank.finding("machine_rank must be an integer", help="write this machine's number, from 0")


@rule("FS108", "section-not-a-mapping", stage=Stage.LOAD, varies="warning where the release ignores the section")
def section_not_a_mapping(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """A section of the file is not a mapping.

    Up to 1.4 the launcher goes through each section's keys and stops with a TypeError. Later releases ignore such a
    section without a message, so all its defaults apply; only DeepSpeed's section must still be a mapping.

    Source: accelerate, commands/launch.py.
    """
    for name in sorted(facts.sections):
        section = config.field.get(name)
        if section.is_absent or section.is_unknown or section.is_mapping or config.sagemaker:
            continue
        read = name != "fp8_config" or facts.fp8_section_is_read
        walked = facts.sections_must_be_mappings and read and not (section.plain == "" or _is_empty_list(section))
        refused = walked or (name == "deepspeed_config" and config.launcher == "deepspeed")
        yield section.finding(
            f"{name} must be a mapping",
            help="write its settings below it as keys, or remove it",
            severity=Severity.ERROR if refused else Severity.WARNING,
            stage=None if refused else Stage.RUN,
        )


def _is_empty_list(field: Field) -> bool:
    return field.is_sequence and not field.items()


@rule(
    "FS109",
    "ram-loading-without-sync",
    stage=Stage.START,
    varies="warning where the launch goes on: the worker switches the setting on, or keeps empty weights",
)
def ram_loading_without_sync(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """Only the first process loads the weights, and module states are not synchronised.

    `fsdp_cpu_ram_efficient_loading` is true by default, and the launcher refuses it together with
    `fsdp_sync_module_states: false`, also under FSDP2, where the key can simply be left out. It checks the values as
    YAML reads them: a quoted "false" counts as true here, and under FSDP1 the worker then switches the synchronisation
    on by itself (before 0.30 it did not, and all processes but one trained on empty weights).

    Set `fsdp_sync_module_states: true`, or `fsdp_cpu_ram_efficient_loading: false`.

    Source: accelerate, utils/launch.py and FullyShardedDataParallelPlugin.
    """
    setup = fsdp_setup(config, facts)
    ram = config.setting(PREFIX + "cpu_ram_efficient_loading", facts)
    sync = config.setting(PREFIX + "sync_module_states", facts)
    if not setup.on or sync.node is None or PREFIX + "cpu_ram_efficient_loading" not in facts.fsdp.keys:
        return
    loads = truthy(ram, True).is_(True)
    related = ram.relate("only the first process loads the weights") if ram.node is not None else ()
    help = "remove it: FSDP2 synchronises by itself" if setup.is_fsdp2 else "set it to true"
    if loads and truthy(sync, True).is_(False):
        yield sync.finding(
            "fsdp_sync_module_states must be true while only one process loads the weights",
            help=f"{help}, or set fsdp_cpu_ram_efficient_loading: false",
            related=related,
        )
    elif setup.is_fsdp1 and switch(sync).is_(False) and (ram.node is None or switch(ram).is_(True)):
        yield sync.finding(
            "Accelerate switches fsdp_sync_module_states on: only one process loads the weights"
            if facts.sync_forced_aloud
            else "fsdp_sync_module_states is off: all processes but one keep empty weights",
            help=help,
            severity=Severity.WARNING,
            stage=Stage.RUN,
            related=related,
            fix=mending.written(sync, "true", keeps=facts.sync_forced_aloud),
        )


@rule("FS110", "dynamo", stage=Stage.START)
def dynamo(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """A setting of torch.compile has an unknown value.

    The backend is one of torch's, in any case. Every worker reads the switches as booleans, and an empty value is not a
    boolean.

    Source: accelerate, utils.DynamoBackend and TorchDynamoPlugin.
    """
    if config.launcher not in _COMPILING:
        return
    legacy = config.field.get("dynamo_backend")
    section = config.field.get("dynamo_config")
    backend = legacy if legacy.node is not None else _dynamo_key(section, "dynamo_backend", facts)
    if config.launch and (flag := config.launch.flag("dynamo_backend")):
        backend = flag
    word = backend.text()
    if word.wrong_type or word.map(str.upper).known_and_not_in(facts.dynamo_backends):
        unquoted = backend.plain is False and not backend.is_sequence
        yield backend.finding(
            f'unknown dynamo backend "{backend.written}"',
            help='write "no" with quotes'
            if unquoted
            else did_you_mean(backend.written, facts.dynamo_backends)
            or f"write {one_of(sorted(facts.dynamo_backends))}",
            fix=mending.worded(backend, "no") if unquoted else mending.respelled(backend, facts.dynamo_backends),
        )
    for name in ("dynamo_use_fullgraph", "dynamo_use_dynamic", "dynamo_use_regional_compilation"):
        field = _dynamo_key(section, name, facts)
        if legacy.node is None and name in facts.sections["dynamo_config"] and switch(field).wrong_type:
            yield field.finding(f"{field.name} must be true or false", help="write true or false")


def _dynamo_key(section: Field, name: str, facts: AccelerateFacts) -> Field:
    short = section.get(name.removeprefix("dynamo_"))
    return short if facts.dynamo_prefix_optional and short.node is not None else section.get(name)


@rule("FS111", "parallelism-value", stage=Stage.START)
def parallelism_value(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """A setting of parallelism_config has a value that the workers cannot use.

    Each size is an integer of at least 1. Most sizes may be in quotes; those of context and sequence parallelism may
    not, since the launcher compares them first. The communication of context parallelism is allgather or alltoall.

    Source: accelerate 1.10 and later, utils/launch.py and ParallelismConfig.
    """
    mesh = config.mesh(facts)
    if mesh is None:
        return
    for name, size in mesh.sizes.items():
        compared = name in ("cp", "sp") and size.field.node is not None and size.field.text().known is not None
        if size.wrong_type or compared or size.below(1):
            yield size.finding(
                f"{size.field.name} must be an integer of at least 1",
                help="write the number without quotes" if compared else "write 1 or more",
                fix=mending.whole(size) if compared else None,
            )
    for name, allowed, needs in PARALLELISM:
        if name not in facts.sections["parallelism_config"] or not (needs is None or mesh.size(needs) > 1):
            continue
        field = config.parallelism.get(name)
        if field.node is not None and not field.is_unknown and field.plain not in allowed:
            yield field.finding(
                f'{name} cannot be "{field.written}"',
                help=f"write {one_of(allowed)}",
                fix=mending.respelled(field, allowed),
            )


@rule(
    "FS112",
    "parallelism-combination",
    stage=Stage.START,
    varies="warning where the release notices it only when it prepares the model",
)
def parallelism_combination(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """Two kinds of parallelism exclude each other, or one needs another.

    A device mesh needs FSDP2 or plain data parallelism: FSDP1 refuses every size above 1, and context parallelism needs
    FSDP2. Context and sequence parallelism exclude each other from 1.13 on. Tensor or context parallelism with replicas
    also needs a shard size. Under FSDP2 some size must be left to shard over: 1.15 checks this at once, earlier
    releases fail when they prepare the model.

    Source: accelerate 1.10 and later, ParallelismConfig and AcceleratorState; accelerate#3798.
    """
    mesh = config.mesh(facts)
    first = next((size for size in mesh.sizes.values() if size.above(1)), None) if mesh else None
    if mesh is None or first is None:
        return
    setup = fsdp_setup(config, facts)
    cp, sp, tp = mesh.sizes["cp"], mesh.sizes.get("sp"), mesh.sizes["tp"]
    replicate, shard = mesh.sizes["dp_replicate"], mesh.sizes["dp_shard"]
    if sp is not None and cp.above(1) and sp.above(1) and facts.sequence_excludes_context:
        yield sp.finding("sequence parallelism excludes context parallelism", help="set one of the two sizes to 1")
    elif (tp.above(1) or cp.above(1)) and replicate.above(1) and shard.is_(1):
        yield replicate.finding(
            f"{'tensor' if tp.above(1) else 'context'} parallelism with replicas needs a shard size",
            help="set parallelism_config_dp_shard_size above 1, or parallelism_config_dp_replicate_size to 1",
        )
    elif setup.is_fsdp1:
        yield first.finding(
            "FSDP1 does not run on a device mesh",
            help="set fsdp_version: 2, or remove parallelism_config",
            related=setup.version.field.relate("FSDP1 runs") if setup.version.given else (),
        )
    elif config.runs.is_(*SEVERAL_GPUS) and cp.above(1):
        yield cp.finding("context parallelism needs FSDP2", help="use distributed_type: FSDP with fsdp_version: 2")
    elif setup.is_fsdp2 and shard.is_(1) and cp.is_(1):
        refused = facts.shard_dimension_required
        yield first.finding(
            "FSDP2 has nothing to shard over: the shard size is 1",
            help="set parallelism_config_dp_shard_size above 1, or switch FSDP off",
            severity=Severity.ERROR if refused else Severity.WARNING,
        )


@rule("FS113", "parallelism-total", stage=Stage.START)
def parallelism_total(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """The product of the sizes in parallelism_config is not the number of processes.

    Every process has one place in the mesh. A larger mesh cannot be built, a smaller one is refused.

    Source: accelerate 1.10 and later, ParallelismConfig.
    """
    mesh, world = config.mesh(facts), config.world_size
    if mesh is None or mesh.total is None or world is None or min(mesh.total, world) < 1 or mesh.total in (1, world):
        return
    if facts.sequence_size_unchecked and mesh.size("sp") > 1:
        return
    yield config.parallelism.finding(
        f"the product of the sizes is {mesh.total}, but the number of processes is {world}",
        help="make the product equal to num_processes",
        at_key=True,
        related=config.key("num_processes").relate("the number of processes"),
    )


@rule("FS114", "unread-section-key", stage=Stage.RUN, severity=Severity.WARNING)
def unread_section_key(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """A key of this section is not read.

    The launcher copies each key of a section to the option of that name and ignores a name without an option, without a
    message. In `parallelism_config` each key needs its full name, `parallelism_config_dp_shard_size`; with
    `dp_shard_size` all sizes stay 1 and nothing runs in parallel.

    Source: accelerate, commands/launch.py.
    """
    for name, entry in _unread(config, facts):
        known = facts.sections[name]
        full = name + "_" + entry.name
        help = f"write {full}" if full in known else did_you_mean(entry.name, known) or "remove it"
        fix = mending.renamed(entry, full) if full in known else mending.renamed_to_nearest(entry, known)
        yield entry.finding(f"{entry.name} is not read from {name}", help=help, fix=fix, at_key=True)


def _unread(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[tuple[str, Field]]:
    """The keys of sections that are not read, each with its section."""
    for name, prefix in _sections_in_use(config, facts):
        known = facts.sections[name]
        for entry in config.field.get(name).entries():
            option = name == "deepspeed_config" and entry.name in facts.launch_options
            if entry.name not in known and prefix + entry.name not in known and not option:
                yield name, entry


def _sections_in_use(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[tuple[str, str]]:
    if config.launcher == "torchrun" and "parallelism_config" in facts.sections:
        yield "parallelism_config", ""
    if config.launcher in _COMPILING:
        yield "dynamo_config", "dynamo_" if facts.dynamo_prefix_optional else ""
    if config.launcher == "deepspeed":
        yield "deepspeed_config", ""


@rule("FS115", "uneven-processes", stage=Stage.RUN, severity=Severity.WARNING)
def uneven_processes(config: AccelerateConfig) -> Iterator[Finding]:
    """The number of processes is not a multiple of the number of machines.

    num_processes counts the processes of all machines, and each machine starts num_processes // num_machines: of nine
    processes on two machines eight run.

    Source: accelerate, utils/launch.py.
    """
    processes, machines, world = config.number("num_processes"), config.machines, config.world_size
    if config.launcher == "torchrun" and world and processes.known_and(lambda number: number > world):
        yield processes.finding(
            f"of {processes} processes on {machines} machines only {world} run",
            help=f"write a multiple of {machines}",
            related=machines.field.relate("the number of machines"),
        )


@rule("FS116", "fewer-gpus-than-processes", stage=Stage.RUN, severity=Severity.WARNING)
def fewer_gpus_than_processes(config: AccelerateConfig) -> Iterator[Finding]:
    """This machine starts more processes than it names GPUs.

    Every machine starts the same number, num_processes // num_machines, whatever its own gpu_ids say; different numbers
    for each machine cannot be written. The surplus processes find no GPU of their own and fail or share one.

    Source: accelerate, utils/launch.py; accelerate#3894.
    """
    ids, world = config.key("gpu_ids").text(), config.world_size
    machines = config.machines.known
    if config.launcher != "torchrun" or world is None or machines is None or not ids.known or ids.is_("all"):
        return
    each, named = world // max(machines, 1), len([part for part in ids.known.split(",") if part.strip()])
    if named < each:
        yield ids.finding(
            f"this machine starts {each} processes, but gpu_ids names {named} GPU{'s' if named > 1 else ''}",
            help=f"name {each} GPUs, or lower num_processes, which is split evenly over the machines",
            related=config.key("num_processes").relate(f"{each} on each machine"),
        )


@rule("FS117", "machine-rank", stage=Stage.RUN, severity=Severity.WARNING)
def machine_rank(config: AccelerateConfig) -> Iterator[Finding]:
    """machine_rank is not below num_machines.

    The machines are numbered from 0. The launcher accepts any number, and the processes then wait for ranks that never
    come.

    Source: accelerate, utils/launch.py.
    """
    rank, machines = config.number("machine_rank"), config.machines
    if config.launcher == "torchrun" and machines.known_and(lambda number: number > 1 and rank.above(number - 1)):
        yield rank.finding(
            f"machine_rank {rank} is not below num_machines {machines}",
            help="number the machines from 0",
            related=machines.field.relate("the number of machines"),
        )


@rule("FS118", "cpu-beside-fsdp", stage=Stage.RUN, severity=Severity.WARNING)
def cpu_beside_fsdp(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """use_cpu has no effect with FSDP.

    The launcher for several processes does not pass it on: the workers use the GPUs that they find.

    Remove it; to train on CPUs use `distributed_type: MULTI_CPU`.

    Source: accelerate, utils/launch.py.
    """
    field = config.field.get("use_cpu")
    if fsdp_setup(config, facts).on and truthy(field, False).is_(True):
        yield field.finding(
            "use_cpu has no effect under FSDP: the GPUs are used",
            help="remove it, or set distributed_type: MULTI_CPU",
        )


@rule("FS119", "flag-only-setting", stage=Stage.RUN, severity=Severity.WARNING)
def flag_only_setting(config: AccelerateConfig) -> Iterator[Finding]:
    """The launcher reads this setting only from its command line.

    The file only sets options that have no value yet. These have one from the start: `rdzv_backend` is static and
    `enable_cpu_affinity` is off, whatever the file says. With the static rendezvous each machine needs its own
    machine_rank.

    Give `--rdzv_backend` or `--enable_cpu_affinity` to `accelerate launch`.

    Source: accelerate, options and _validate_launch_command of commands/launch.py.
    """
    backend, affinity = config.field.get("rdzv_backend"), config.field.get("enable_cpu_affinity")
    flags = config.launch.flag if config.launch else lambda name: None
    rendezvous = config.launcher == "torchrun" and config.machines.above(1) and not flags("rdzv_backend")
    if rendezvous and backend.text().known_and_not_in(["static"]):
        yield backend.finding(
            f"rdzv_backend {backend.written} is not read from the file: static runs",
            help=f"give --rdzv_backend {backend.written} to accelerate launch",
        )
    if config.launcher in _WORKERS and truthy(affinity, False).is_(True) and not flags("enable_cpu_affinity"):
        yield affinity.finding(
            "enable_cpu_affinity is not read from the file",
            help="give --enable_cpu_affinity to accelerate launch",
        )


@rule("FS120", "duplicate-accelerate-key", stage=Stage.RUN, severity=Severity.WARNING)
def duplicate_accelerate_key(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """A setting is given twice, and only the last one counts.

    PyYAML keeps the last of several equal keys without a message. In `fsdp_config` a key with the prefix and the same
    key without it are one setting.

    Source: PyYAML's safe loader; accelerate, commands/launch.py.
    """
    yield from _repeated(config.field, "")
    unread = {(section, entry.name) for section, entry in _unread(config, facts)}
    for section in config.field.entries():
        left_out = {name for where, name in unread if where == section.name}
        yield from _repeated(section, PREFIX if section.name == "fsdp_config" else "", left_out)


def _repeated(mapping: Field, prefix: str, left_out: Collection[str] = ()) -> Iterator[Finding]:
    last: dict[str, Field] = {}
    for entry in mapping.entries():
        name = entry.name if entry.name.startswith(prefix) else prefix + entry.name
        before = last.get(name)
        earlier = entry.earlier_keys or (before.relate("the same setting is here") if before else ())
        if earlier and entry.name not in left_out:
            yield entry.finding(
                f"{entry.name} is given twice: only this one counts",
                help="remove one of them",
                at_key=True,
                related=earlier,
                fix=mending.without_earlier(entry),
            )
        last[name] = entry


@rule(
    "FS121",
    "port-as-text",
    stage=Stage.START,
    varies="warning unless DeepSpeed launches: only then is the port always asked for",
)
def port_as_text(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """main_process_port is no integer.

    Before it starts anything the launcher asks whether the port is free (since 0.21, from 0.25 on only on the first
    machine), which raises for text and for a number with a fraction. Digits are text when they are in quotes, or begin
    with 0 and contain an 8 or 9.

    Source: accelerate, utils.is_port_in_use and utils/launch.py.
    """
    field = config.field.get("main_process_port")
    asked = facts.port_is_asked_for and config.launcher in ("torchrun", "deepspeed")
    rank = config.number("machine_rank")
    elsewhere = facts.port_is_asked_for_by_first and config.machines.above(1) and rank.known != 0 and rank.given
    text = field.text().known is not None
    # A mapping is taken for a section, and its keys for options: no port is left to ask for.
    other = isinstance(field.plain, float) or field.is_sequence
    if asked and not elsewhere and (text or other):
        yield field.finding(
            f'main_process_port "{field.written}" is text' if text else "main_process_port must be an integer",
            help="write the number without quotes" if text else "write a number such as 29500",
            at_key=field.is_sequence,
            severity=Severity.ERROR if config.launcher == "deepspeed" else Severity.WARNING,
            fix=_plain_port(field),
        )


def _plain_port(field: Field) -> Fix | None:
    number = field.written.lstrip("0")
    return mending.written(field, number) if number.isdecimal() else None


@rule("FS122", "several-machines-without-address", stage=Stage.START)
def several_machines_without_address(config: AccelerateConfig, facts: AccelerateFacts) -> Iterator[Finding]:
    """There are several machines, and the address of the first is missing.

    Without a distributed type, or on CPUs, the launcher passes main_process_ip to its one process as an environment
    variable and stops when there is none; from 1.8 on it needs main_process_port as well.

    Source: accelerate, prepare_simple_launcher_cmd_env of utils/launch.py.
    """
    machines = config.machines
    if config.launcher != "single" or not machines.above(1):
        return
    for name in ("main_process_ip", *(("main_process_port",) if facts.single_launcher_needs_port else ())):
        if config.key(name).is_absent:
            yield machines.finding(
                f"{name} is missing for {machines} machines", help=f"add {name}, or set num_machines: 1"
            )
            return


@rule("FS130", "flag-turns-fsdp-off", stage=Stage.RUN, severity=Severity.WARNING)
def flag_turns_fsdp_off(launch: Launch) -> Iterator[Finding]:
    """A flag of the command line turns off the file's FSDP.

    `--multi_gpu`, `--use_deepspeed`, `--use_megatron_lm`, `--tpu` and `--cpu` replace distributed_type: the file's
    `fsdp_config` is then ignored, and with `--multi_gpu` every GPU holds the whole model. Nothing is printed.

    Remove the flag; the file's `distributed_type: FSDP` is enough.

    Source: accelerate, _validate_launch_command of commands/launch.py.
    """
    chosen, file = launch.paradigm, launch.file.distributed_type
    if chosen is not None and file.is_("FSDP") and not chosen.is_("FSDP"):
        flag = chosen.field.written
        yield chosen.finding(
            f"{flag} turns off the FSDP of {launch.config.document.path}",
            help=f"remove {flag}",
            related=file.field.relate("FSDP is on here"),
        )


@rule("FS131", "processes-given-by-nobody", stage=Stage.START)
def processes_given_by_nobody(launch: Launch) -> Iterator[Finding]:
    """Neither the file nor the command line says how many processes to start.

    A file may leave num_processes to the command line. If that does not give it either, the launcher stops: from 0.34
    on with a message of its own, before with a TypeError.

    Add `--num_processes` to the command line, or `num_processes` to the file.

    Source: accelerate, commands/launch.py.
    """
    file = launch.file
    config = AccelerateConfig(launch.config, launch)
    open_ended = launch.invocation.is_open or file.launcher is None or config.launcher not in ("torchrun", "deepspeed")
    if not open_ended and config.key("num_processes").is_absent:
        yield launch.field.finding(
            f"neither this command nor {launch.config.document.path} gives num_processes",
            help="add --num_processes",
            related=launch.config.get("num_processes").relate("num_processes is missing in this file"),
        )


@rule("FS132", "address-given-by-nobody", stage=Stage.RUN, severity=Severity.WARNING)
def address_given_by_nobody(launch: Launch) -> Iterator[Finding]:
    """There are several machines, and neither the file nor the command line names the first of them.

    Without main_process_ip the workers look for a host called None and wait for it.

    Source: accelerate, utils/launch.py.
    """
    config = AccelerateConfig(launch.config, launch)
    if (
        config.launcher == "torchrun"
        and config.machines.above(1)
        and not launch.invocation.is_open
        and config.key("main_process_ip").is_absent
    ):
        yield launch.field.finding(
            f"neither this command nor {launch.config.document.path} gives main_process_ip",
            help=f"add --main_process_ip: there are {config.machines} machines",
            related=config.machines.field.relate("the number of machines"),
        )


@rule("FS147", "deepspeed-config-as-launcher-config", stage=Stage.LOAD)
def deepspeed_config_as_launcher_config(launch: MisnamedLaunch) -> Iterator[Finding]:
    """A command gives the launcher a DeepSpeed config as its own config file.

    `--config_file` names the launcher's file, which must have `distributed_type`; the launcher stops at once.

    Write a file with `distributed_type: DEEPSPEED` that names the DeepSpeed config in `deepspeed_config_file`, or give
    `--use_deepspeed --deepspeed_config_file` in place of `--config_file`.

    Source: accelerate, commands/config/config_args.py.
    """
    path = launch.config.document.path
    yield launch.field.finding(
        f"{path} is a DeepSpeed config, and the launcher needs one of its own",
        help=f"write --use_deepspeed --deepspeed_config_file {path}",
        related=launch.config.get("zero_optimization").relate("a setting of DeepSpeed"),
    )
