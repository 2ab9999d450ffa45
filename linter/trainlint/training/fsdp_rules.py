"""The FSDP rules that all trainers share.

Each rule is written once, for `FsdpSetup` or `FsdpRun`; `FsdpFacts` says which releases of which program it concerns.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from trainlint.findings import Finding, Fix, Severity, Stage, did_you_mean, one_of
from trainlint.reading import mending
from trainlint.reading.values import Field, Value
from trainlint.rule import rule
from trainlint.training.fsdp import FSDP2_ALWAYS, STRATEGIES, FsdpRun, FsdpSetup

T = TypeVar("T")


@rule("FS001", "unread-fsdp-key", stage=Stage.RUN, severity=Severity.WARNING)
def unread_fsdp_key(setup: FsdpSetup) -> Iterator[Finding]:
    """A key of the FSDP settings is not read.

    The program looks its settings up by name and ignores every other key without a message: training runs with the
    default instead. Typical are misspelt keys, keys of another release, and keys that only the Python class
    (`limit_all_gathers`, `cpu_offload`) or another trainer reads.

    Fix the name, or remove the key.

    Source: the keys that each release reads; accelerate's launcher copies `fsdp_config` onto its options, transformers
    asks `fsdp_config` for single keys.
    """
    facts = setup.facts
    if facts.unknown_key is None or not setup.on:
        return
    for entry in setup.section.entries():
        bare = not entry.name.startswith(facts.optional_prefix)
        name = facts.optional_prefix + entry.name if bare else entry.name
        told = facts.version_not_read is not None and setup.version.field.node is entry.node  # by FS002
        if name not in facts.keys and not told:
            known = {key.removeprefix(facts.optional_prefix) for key in facts.keys} if bare else facts.keys
            advice = facts.key_advice.get(name) or did_you_mean(entry.name, known)
            yield entry.finding(
                f"{entry.name} is not read",
                help=advice or "remove it",
                severity=facts.unknown_key,
                fix=mending.advised(entry, advice) or mending.renamed_to_nearest(entry, known),
                at_key=True,
            )


@rule("FS002", "fsdp-version", stage=Stage.START, varies="warning where the release does not read the key")
def fsdp_version(setup: FsdpSetup) -> Iterator[Finding]:
    """The FSDP version does not exist, or this release does not read it.

    The version is 1 or 2. A release that knows both raises at any other value when it reads the settings. A release
    older than FSDP2 does not read the key: FSDP1 runs, with FSDP1's default for everything that the file leaves out.

    Source: accelerate 1.6, FullyShardedDataParallelPlugin; transformers 5.0, processing of `fsdp_config`.
    """
    facts, version = setup.facts, setup.version
    if not setup.on:
        return
    if facts.versions:
        if version.wrong_type or version.known_and_not_in(facts.versions):
            yield version.finding(
                f"unknown FSDP version {version}",
                help=f"write {one_of(facts.versions)}",
                fix=mending.whole(version),
            )
    elif facts.version_not_read and version.known_and_not_in([facts.default_version]):
        yield version.finding(
            f"{version.field.name} is not read: FSDP{facts.default_version} runs",
            help="use a release with FSDP2, or write FSDP1's settings",
            severity=facts.version_not_read,
            stage=_stage(facts.version_not_read),
        )


@rule("FS003", "sharding-strategy", stage=Stage.START)
def sharding_strategy(setup: FsdpSetup) -> Iterator[Finding]:
    """The sharding strategy is unknown.

    FULL_SHARD shards parameters, gradients and optimizer state. SHARD_GRAD_OP keeps the parameters after forward.
    HYBRID_SHARD and HYBRID_SHARD_ZERO2 shard within a machine and copy across machines. NO_SHARD is plain data
    parallelism. Any other word raises in every worker. Up to 0.25 accelerate reads the number of a strategy, 1 for
    FULL_SHARD, and raises at any word.

    Source: torch.distributed.fsdp.ShardingStrategy; accelerate, FullyShardedDataParallelPlugin.
    """
    word, help, fix = setup.strategy.field.written.upper(), "", None
    if setup.facts.strategy_numbers:
        stands = {name: f"{number}, which stands for {name}" for number, name in enumerate(STRATEGIES, 1)}
        help = f"write {stands.get(word) or f'a number from 1 ({STRATEGIES[0]}) to {len(STRATEGIES)}'}"
        if word in STRATEGIES:
            fix = mending.written(setup.strategy, str(STRATEGIES.index(word) + 1))
    yield from _unknown_word(setup, "strategy", setup.strategy, help, fix)


@rule("FS004", "wrap-policy", stage=Stage.START, varies="warning in releases that ignore an unknown word")
def wrap_policy(setup: FsdpSetup) -> Iterator[Finding]:
    """The wrap policy is unknown.

    The policy is TRANSFORMER_BASED_WRAP (a unit for each layer class), SIZE_BASED_WRAP (a unit for each module of a
    certain size) or NO_WRAP. Older releases of accelerate compare the word with the first two and ignore any other: the
    model is then one unit, which every process gathers as a whole. Later releases raise.

    Source: accelerate, FullyShardedDataParallelPlugin.
    """
    yield from _unknown_word(setup, "wrap_policy", setup.wrap_policy)


@rule("FS005", "backward-prefetch", stage=Stage.START)
def backward_prefetch(setup: FsdpSetup) -> Iterator[Finding]:
    """The backward prefetch is unknown.

    It is BACKWARD_PRE, BACKWARD_POST or NO_PREFETCH. accelerate looks the word up even under FSDP2, which then ignores
    it. The word `None` is unknown too and raises; an empty value does not.

    Source: torch.distributed.fsdp.BackwardPrefetch; accelerate, FullyShardedDataParallelPlugin.
    """
    yield from _unknown_word(setup, "backward_prefetch", setup.backward_prefetch)


@rule("FS006", "state-dict-type", stage=Stage.START)
def state_dict_type(setup: FsdpSetup) -> Iterator[Finding]:
    """The state dict type is unknown, or this FSDP version does not have it.

    It is FULL_STATE_DICT, SHARDED_STATE_DICT or LOCAL_STATE_DICT. FSDP2 has no LOCAL_STATE_DICT, and accelerate 1.6
    saves only SHARDED_STATE_DICT under FSDP2.

    Source: torch.distributed.fsdp.StateDictType; accelerate, FullyShardedDataParallelPlugin.
    """
    yield from _unknown_word(setup, "state_dict_type", setup.state_dict_type)


def _unknown_word(
    setup: FsdpSetup, setting: str, value: Value[str], help: str = "", fix: Fix | None = None
) -> Iterator[Finding]:
    version = setup.runs_version
    words = setup.facts.words.get(setting, {}).get(version or 0)
    if not setup.on or words is None:
        return
    if value.wrong_type or value.known_and_not_in(words.allowed):
        elsewhere = any(value.is_(*other.allowed) for other in setup.facts.words[setting].values())
        where = f" under FSDP{version}" if elsewhere else ""
        allowed = sorted(words.allowed)
        what = f'cannot be "{value.field.written}"' if value.field.written else "must not be empty"
        yield value.finding(
            f"{value.field.name} {what}{where}",
            help=help or (not elsewhere and did_you_mean(value.field.written, allowed)) or f"write {one_of(allowed)}",
            severity=words.otherwise,
            stage=_stage(words.otherwise),
            fix=fix or (None if elsewhere or help else mending.respelled(value, allowed)),
        )


def _stage(severity: Severity | None) -> Stage | None:
    """Of a value that a release refuses the stage of the rule; what it accepts runs."""
    return Stage.RUN if severity is Severity.WARNING else None


@rule("FS007", "fsdp-boolean", stage=Stage.START)
def fsdp_boolean(setup: FsdpSetup) -> Iterator[Finding]:
    """A switch is neither true nor false.

    The launcher passes each switch on as text, and every worker accepts y, yes, t, true, on, 1 and their opposites, in
    any case, with or without quotes. Anything else raises there, also an empty value, which arrives as "none". A switch
    that this FSDP version does not use is not checked.

    Source: accelerate, str_to_bool as FullyShardedDataParallelPlugin uses it.
    """
    version = setup.runs_version
    if not setup.on or version is None:
        return
    for setting, by_version in setup.facts.booleans.items():
        value: Value[object] = getattr(setup, setting)
        if setting != "reshard" and version in by_version and value.wrong_type:
            yield value.finding(
                f"{value.field.name} must be true or false{_not_what_is_written(value.field)}",
                help="write true or false",
                severity=by_version[version],
            )


def _not_what_is_written(field: Field) -> str:
    return f', not "{field.written}"' if field.written else ""


@rule("FS008", "size-wrap-without-size", stage=Stage.START)
def size_wrap_without_size(setup: FsdpSetup) -> Iterator[Finding]:
    """SIZE_BASED_WRAP has no size, or a size that is not an integer.

    The policy makes a unit of each module with at least `min_num_params` parameters. Before 1.13 accelerate's own
    default is a float, which the worker cannot read as an integer. `1e8` fails in every release: YAML reads it as text,
    and Python's int() does not accept it.

    Write the digits out: `100000000`.

    Source: accelerate, launch options and FullyShardedDataParallelPlugin.
    """
    facts, size = setup.facts, setup.min_num_params
    if not setup.on or not setup.wrap_policy.is_("SIZE_BASED_WRAP"):
        return
    if size.absent and facts.size_wrap_without_size:
        yield setup.wrap_policy.finding(
            "SIZE_BASED_WRAP needs a size",
            help=f"add {size.field.name} with the digits written out, such as 100000000",
            severity=facts.size_wrap_without_size,
        )
    elif size.wrong_type and facts.size_not_an_integer:
        yield size.finding(
            f"{size.field.name} must be an integer{_not_what_is_written(size.field)}",
            help="write the digits out, such as 100000000",
            severity=facts.size_not_an_integer,
            fix=mending.whole(size),
        )


@rule("FS009", "layer-class-names", stage=Stage.START)
def layer_class_names(setup: FsdpSetup) -> Iterator[Finding]:
    """The layer classes are not comma-separated class names.

    The text is split at each comma and nothing is stripped, so a space becomes part of a name. A YAML list arrives as
    Python text, with brackets and quotes. A module path, an empty text or the word None is not a class of the model.
    The worker raises when it wraps the model.

    Write `LlamaDecoderLayer` or `Qwen3DecoderLayer,Qwen3VisionBlock`, or remove the key: then the model's own list
    (`_no_split_modules`) is used. accelerate up to 0.21 does not use that list, so there the key is needed.

    Source: accelerate, FullyShardedDataParallelPlugin.set_auto_wrap_policy.
    """
    classes = setup.layer_classes
    if setup.on and setup.facts.no_class_name and setup.wrap_policy.is_("TRANSFORMER_BASED_WRAP") and classes.absent:
        yield setup.wrap_policy.finding(
            "TRANSFORMER_BASED_WRAP needs the model's layer class",
            help="add transformer_layer_cls_to_wrap, such as LlamaDecoderLayer",
            severity=setup.facts.no_class_name,
        )
    if setup.on and setup.facts.class_names and setup.wrap_policy.is_("TRANSFORMER_BASED_WRAP") and classes.wrong_type:
        written, fix = classes.field.written, None
        if classes.field.is_sequence:
            names = ",".join(str(item.written) for item in classes.field.items())
            what, help = "the layer classes must be one text, not a list", f"write {names}" if names else "remove it"
            fix = mending.as_text(classes, names) if names else mending.removed(classes)
        else:
            fixed = ",".join(name.strip().rpartition(".")[2] for name in written.split(",") if name.strip())
            what = (
                f'"{written}" holds no class name' if not fixed else f'"{written}" is not comma-separated class names'
            )
            help = f"write {fixed}" if fixed and fixed != written else "remove it: the model's own list is used"
            fix = mending.worded(classes, fixed) if fixed and fixed != written else mending.removed(classes)
        yield classes.finding(what, help=help, severity=setup.facts.class_names, fix=fix)


@rule("FS010", "unsynced-ram-loading", stage=Stage.START)
def unsynced_ram_loading(setup: FsdpSetup) -> Iterator[Finding]:
    """Only the first process loads the weights, and the others never get them.

    With RAM-efficient loading the other processes start with empty weights and wait for `sync_module_states` to send
    them the real ones. Releases that notice the conflict refuse it, or switch the synchronisation on.

    Source: transformers, TrainingArguments; accelerate, FullyShardedDataParallelPlugin.
    """
    severity = setup.facts.unsynced_ram_loading.get(setup.runs_version or 0)
    if setup.on and severity and setup.ram_efficient_loading.is_(True) and setup.sync_module_states.is_(False):
        yield setup.sync_module_states.finding(
            f"{setup.sync_module_states.field.name} must be true with {setup.ram_efficient_loading.field.name}",
            help=f"set it to true, or {setup.ram_efficient_loading.field.name} to false",
            severity=severity,
            related=setup.ram_efficient_loading.field.relate("only the first process loads the weights"),
        )


@rule("FS011", "fsdp2-reshard-word", stage=Stage.START)
def fsdp2_reshard_word(setup: FsdpSetup) -> Iterator[Finding]:
    """reshard_after_forward is not a boolean under FSDP2.

    FSDP2 has no strategies: true reshards after forward as FULL_SHARD does, false keeps the parameters as SHARD_GRAD_OP
    does. The name or the number of a strategy raises in every worker.

    Source: accelerate 1.6 and later, FullyShardedDataParallelPlugin.
    """
    severity = setup.facts.booleans.get("reshard", {}).get(2)
    reshard = setup.reshard
    if severity and setup.is_fsdp2 and (reshard.wrong_type or reshard.known_and(lambda known: isinstance(known, str))):
        keeps = reshard.known_and(lambda word: str(word).upper() in ("SHARD_GRAD_OP", "HYBRID_SHARD_ZERO2"))
        yield reshard.finding(
            f"{reshard.field.name} must be true or false under FSDP2{_not_what_is_written(reshard.field)}",
            help=f"write {'false' if keeps else 'true'}",
            severity=severity,
            fix=mending.written(reshard, "false" if keeps else "true") if _is_strategy(reshard) else None,
        )


def _is_strategy(reshard: Value[bool | str]) -> bool:
    return reshard.known_and(lambda word: _strategy(word) in STRATEGIES)


@rule("FS012", "checkpoint-offload-alone", stage=Stage.START)
def checkpoint_offload_alone(setup: FsdpSetup) -> Iterator[Finding]:
    """Checkpoint offloading is on without activation checkpointing, or under FSDP1.

    Activation checkpointing makes the checkpoints that are offloaded, and only FSDP2 can offload them. The worker
    raises where one of the two is missing.

    Source: accelerate 1.15, FullyShardedDataParallelPlugin.
    """
    severity = setup.facts.checkpoint_offload_alone
    offload, checkpointing = setup.checkpoint_offload, setup.activation_checkpointing
    if not (setup.on and severity and offload.is_(True)):
        return
    if checkpointing.absent or checkpointing.is_(False):
        yield offload.finding(
            f"{offload.field.name} needs activation checkpointing",
            help="set fsdp_activation_checkpointing: true",
            severity=severity,
        )
    elif setup.is_fsdp1:
        yield offload.finding(f"{offload.field.name} needs FSDP2", help="set fsdp_version: 2", severity=severity)


@rule("FS013", "checkpointing-without-wrap", stage=Stage.PREPARE, severity=Severity.WARNING)
def checkpointing_without_wrap(setup: FsdpSetup) -> Iterator[Finding]:
    """FSDP2 cannot checkpoint activations without a wrap policy.

    accelerate takes the modules to checkpoint from the wrap policy. Without one the worker stops with a TypeError when
    it prepares the model. FSDP1 does not need one.

    Add a wrap policy, or use the trainer's gradient checkpointing.

    Source: accelerate 1.8 to 1.15, preparation of a model for FSDP2.
    """
    severity = setup.facts.checkpointing_without_wrap
    if _stops_without_wrap(setup):
        yield setup.activation_checkpointing.finding(
            "activation checkpointing under FSDP2 needs a wrap policy",
            help=setup.facts.wrap_advice,
            severity=severity,
        )


def _stops_without_wrap(setup: FsdpSetup) -> bool:
    checkpoints = setup.facts.checkpointing_without_wrap and setup.activation_checkpointing.is_(True)
    return bool(checkpoints) and setup.on and setup.is_fsdp2 and _no_policy(setup)


def _no_policy(setup: FsdpSetup) -> bool:
    policy = setup.wrap_policy
    return policy.absent or policy.is_("NO_WRAP")


@rule(
    "FS014",
    "fsdp-beside-deepspeed",
    stage=Stage.START,
    varies="warning under Accelerate, which ignores the other section",
)
def fsdp_beside_deepspeed(setup: FsdpSetup) -> Iterator[Finding]:
    """FSDP and DeepSpeed are both configured.

    Both shard the same things, and a run uses one of them. transformers' Trainer and Axolotl refuse the combination;
    accelerate runs what distributed_type says and ignores the other section.

    Remove one of the two.

    Source: transformers, Trainer; accelerate, launch command.
    """
    if setup.on and setup.facts.deepspeed_beside and not setup.deepspeed.is_absent:
        yield setup.deepspeed.finding(
            f"{setup.deepspeed.name} is set although FSDP is on",
            help=f"remove {setup.deepspeed.name}, or switch FSDP off",
            severity=setup.facts.deepspeed_beside,
            stage=_stage(setup.facts.deepspeed_beside) or setup.facts.trainer_stage,
            related=setup.switch.relate("FSDP is on here"),
            at_key=True,
        )


@rule("FS020", "strategy-not-read", stage=Stage.RUN, severity=Severity.WARNING)
def strategy_not_read(setup: FsdpSetup) -> Iterator[Finding]:
    """The sharding strategy is in a key that FSDP1 does not read.

    From 1.6 on `accelerate config` writes the strategy of an FSDP1 setup to `fsdp_reshard_after_forward`. The launcher
    always passes `fsdp_sharding_strategy` on too, FULL_SHARD when the file has none, and the worker reads the other key
    only when that one is missing. So SHARD_GRAD_OP, HYBRID_SHARD and NO_SHARD all run as FULL_SHARD: parameters are
    gathered again in backward, and machines hold no copies of their own. Nothing is printed.

    Write the strategy to `fsdp_sharding_strategy`, or move to FSDP2 with `fsdp_version: 2` and a boolean.

    Source: accelerate 1.6 to 1.15, environment of the launcher and FullyShardedDataParallelPlugin.
    """
    severity, reshard = setup.facts.reshard_under_fsdp1, setup.reshard
    runs = setup.strategy.or_when_absent("FULL_SHARD").known
    wanted = reshard.map(lambda word: _strategy(word))
    if severity and setup.is_fsdp1 and runs and wanted.known_and(lambda word: word in STRATEGIES and word != runs):
        given = not setup.strategy.absent
        yield reshard.finding(
            f"FSDP1 does not read {wanted} here: {runs} runs",
            help=f"remove it, or write {wanted} to {setup.strategy.field.name}"
            if given
            else f"write fsdp_sharding_strategy: {wanted}",
            severity=severity,
            related=setup.strategy.field.relate("this strategy runs") if given else (),
            fix=None if given else mending.renamed(reshard, "fsdp_sharding_strategy"),
        )


def _strategy(word: bool | str) -> str:
    text = str(word).upper()
    return STRATEGIES[int(text) - 1] if text in ("1", "2", "3", "4", "5") else text


@rule("FS021", "reshard-without-fsdp2", stage=Stage.RUN, severity=Severity.WARNING)
def reshard_without_fsdp2(setup: FsdpSetup) -> Iterator[Finding]:
    """A setting of FSDP2 is given although FSDP1 runs.

    `fsdp_reshard_after_forward: true` or `false` is an option of FSDP2. Without `fsdp_version: 2` FSDP1 runs; it
    ignores the option and uses FULL_SHARD unless `fsdp_sharding_strategy` says otherwise.

    Add `fsdp_version: 2`, or write FSDP1's `fsdp_sharding_strategy`.

    Source: accelerate 1.6 and later, launch options and FullyShardedDataParallelPlugin.
    """
    severity, reshard = setup.facts.boolean_reshard_under_fsdp1, setup.reshard
    if not (severity and setup.is_fsdp1):
        return
    boolean = reshard.known_and(lambda known: isinstance(known, bool))
    kept = reshard.is_(False) and not setup.strategy.is_("SHARD_GRAD_OP")
    if boolean and (setup.version.absent or kept or severity is Severity.ERROR):
        yield reshard.finding(
            f"{reshard.field.name} is a setting of FSDP2, but FSDP1 runs",
            help=f"add {setup.version.field.name}: 2"
            if setup.version.absent
            else f"set {setup.version.field.name}: 2, or write the strategy to {setup.strategy.field.name}",
            severity=severity,
            related=setup.version.field.as_other_half,
        )


@rule(
    "FS022",
    "fsdp1-setting-under-fsdp2",
    stage=Stage.RUN,
    severity=Severity.WARNING,
    varies="note where the setting asks for what FSDP2 does anyway",
)
def fsdp1_setting_under_fsdp2(setup: FsdpSetup) -> Iterator[Finding]:
    """A setting of FSDP1 is given although FSDP2 runs.

    FSDP2 always uses the original parameters, synchronises and prefetches by itself, and shards fully unless
    `reshard_after_forward` is false; hybrid sharding needs a device mesh. It ignores the settings of FSDP1, mostly
    without a message. A setting that asks for what FSDP2 does anyway is only a note.

    Remove the setting; for SHARD_GRAD_OP write `fsdp_reshard_after_forward: false`, for HYBRID_SHARD give the sizes in
    `parallelism_config`.

    Source: accelerate 1.6 and later, FullyShardedDataParallelPlugin; transformers 5; Axolotl 0.20.
    """
    if not setup.is_fsdp2:
        return
    for setting, severity in setup.facts.fsdp1_only.items():
        value: Value[object] = getattr(setup, setting)
        if value.absent or value.unknown:
            continue
        if setting == "sync_module_states" and _refused_unsynced(setup):
            continue
        same = value.is_(FSDP2_ALWAYS.get(setting)) or (setting == "strategy" and _same_reshard(setup))
        yield value.finding(
            f"{value.field.name} has no effect under FSDP2",
            help=_instead(setup, setting),
            severity=Severity.NOTE if same and severity is Severity.WARNING else severity,
            fix=_fix_under_fsdp2(setup, setting, value, same=same),
            at_key=True,
        )


def _refused_unsynced(setup: FsdpSetup) -> bool:
    """That is an error of its own, whose help says to remove the setting."""
    unsynced = setup.sync_module_states.field.plain is False and not setup.ram_efficient_loading.is_(False)
    return unsynced and bool(setup.facts.unsynced_ram_loading.get(2) or setup.facts.sync_checked_at_launch)


def _same_reshard(setup: FsdpSetup) -> bool:
    return setup.strategy.is_("SHARD_GRAD_OP") and setup.reshard.is_(False)


def _instead(setup: FsdpSetup, setting: str) -> str:
    if setting == "strategy" and setup.strategy.is_("SHARD_GRAD_OP"):
        return "write fsdp_reshard_after_forward: false"
    if setting == "strategy" and setup.strategy.is_("HYBRID_SHARD", "HYBRID_SHARD_ZERO2"):
        return "remove it, and set the replicate and shard sizes in parallelism_config"
    return "remove it"


def _fix_under_fsdp2(setup: FsdpSetup, setting: str, value: Value[object], *, same: bool) -> Fix | None:
    """Take away what FSDP2 does anyway or has nothing like; a strategy that it does not run is for the author."""
    if setting != "strategy" or same:
        return mending.removed(value, sure=same, keeps=True)
    if setup.strategy.is_("SHARD_GRAD_OP"):
        return mending.instead(value, setup.reshard.field.name, "false")
    return None


@rule("FS023", "unused-fsdp-settings", stage=Stage.RUN, severity=Severity.WARNING)
def unused_fsdp_settings(setup: FsdpSetup) -> Iterator[Finding]:
    """FSDP settings are given although FSDP is off.

    The settings are read only when FSDP is on: in an accelerate file by `distributed_type: FSDP`, in training arguments
    by `fsdp`. Otherwise they are ignored without a message and every process holds the whole model. Settings beside
    `distributed_type: NO` count as left over and are not reported.

    Source: accelerate, launch command; transformers, TrainingArguments.
    """
    severity = setup.facts.section_not_used
    here = setup.switch.document is setup.section.document
    if severity and setup.off and here and any(not entry.is_absent for entry in setup.section.entries()):
        how = f"{setup.switch.name} is {setup.switch.written}" if setup.switch.written else "FSDP is off"
        yield setup.section.finding(
            f"{setup.section.name} is not used: {how}",
            help="switch FSDP on, or remove the section",
            severity=severity,
            at_key=True,
            related=setup.switch.relate("FSDP is off here") if not setup.switch.is_absent else (),
        )


@rule(
    "FS024",
    "single-fsdp-unit",
    stage=Stage.RUN,
    severity=Severity.WARNING,
    varies="note with NO_WRAP, which asks for it",
)
def single_fsdp_unit(setup: FsdpSetup) -> Iterator[Finding]:
    """The model is one FSDP unit.

    Without a wrap policy, or with a size of 0, only the model as a whole is wrapped: every process gathers all
    parameters at once in forward and backward, so the memory peak is that of the whole model and nothing overlaps. A
    script may set a policy of its own. NO_WRAP asks for one unit, so it gets only a note.

    Add `fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP`; most models name their layer classes themselves.

    Source: accelerate, FullyShardedDataParallelPlugin; transformers up to 5.0, Trainer.
    """
    severity, policy = setup.facts.single_unit, setup.wrap_policy
    if not (severity and setup.on) or setup.runs_version is None:
        return
    help = setup.facts.wrap_advice
    if _stops_without_wrap(setup) or (setup.section.node is not None and not setup.section.is_mapping):
        return  # FS013, or FS108
    if policy.absent:
        place = setup.section if not setup.section.is_absent else setup.switch
        yield place.finding(
            "without a wrap policy the model is one FSDP unit", help=help, severity=severity, at_key=True
        )
    elif policy.is_("NO_WRAP"):
        yield policy.finding("with NO_WRAP the model is one FSDP unit", help=help, severity=Severity.NOTE)
    elif policy.is_("SIZE_BASED_WRAP") and setup.min_num_params.below(1):
        yield setup.min_num_params.finding(
            f"with a size of {setup.min_num_params} the model is one FSDP unit",
            help="write the smallest number of parameters of a unit, such as 100000000",
            severity=severity,
        )


@rule("FS025", "unused-wrap-setting", stage=Stage.RUN, severity=Severity.WARNING, follows=("FS401", "FS410"))
def unused_wrap_setting(setup: FsdpSetup) -> Iterator[Finding]:
    """The wrap policy does not use this setting.

    Only SIZE_BASED_WRAP uses a size, and only TRANSFORMER_BASED_WRAP uses layer classes. Any other policy ignores them
    without a message.

    Source: accelerate, FullyShardedDataParallelPlugin.
    """
    severity, policy = setup.facts.wrap_setting_not_used, setup.wrap_policy
    if not (severity and setup.on):
        return
    if policy.is_("TRANSFORMER_BASED_WRAP") and (setup.min_num_params.above(0) or setup.min_num_params.wrong_type):
        yield _unused(setup.min_num_params, "SIZE_BASED_WRAP", policy, severity)
    if policy.is_("SIZE_BASED_WRAP", "NO_WRAP") and setup.layer_classes.known:
        yield _unused(setup.layer_classes, "TRANSFORMER_BASED_WRAP", policy, severity)


def _unused(value: Value[T], needed: str, policy: Value[str], severity: Severity) -> Finding:
    return value.finding(
        f"{value.field.name} is only used with {needed}",
        help=f"remove it, or set the wrap policy to {needed}",
        severity=severity,
        related=policy.field.as_other_half,
        at_key=True,
    )


@rule("FS026", "hybrid-on-one-machine", stage=Stage.RUN, severity=Severity.WARNING)
def hybrid_on_one_machine(setup: FsdpSetup) -> Iterator[Finding]:
    """A hybrid strategy on one machine shards like a plain one.

    HYBRID_SHARD shards within each machine and keeps one copy per machine. On one machine there is one copy, sharded
    over all processes, which is what FULL_SHARD does (for HYBRID_SHARD_ZERO2: SHARD_GRAD_OP).

    Source: torch, process groups of the hybrid strategies.
    """
    severity = setup.facts.hybrid_on_one_machine
    plain = {"HYBRID_SHARD": "FULL_SHARD", "HYBRID_SHARD_ZERO2": "SHARD_GRAD_OP"}
    if severity and setup.is_fsdp1 and setup.strategy.is_(*plain) and setup.machines.is_(1):
        yield setup.strategy.finding(
            f"{setup.strategy} on one machine does what {plain[str(setup.strategy)]} does",
            help=f"write {plain[str(setup.strategy)]}, or train on several machines",
            severity=severity,
            related=setup.machines.field.relate("one machine"),
        )


@rule("FS040", "two-checkpointings", stage=Stage.START)
def two_checkpointings(run: FsdpRun) -> Iterator[Finding]:
    """Activations are checkpointed twice.

    The trainer's gradient checkpointing and FSDP's activation checkpointing do the same. transformers' Trainer refuses
    both together, also where one is in the training arguments and the other in the accelerate file.

    Keep FSDP's and set `gradient_checkpointing: false`.

    Source: transformers, Trainer.
    """
    severity, mine, other = (
        run.facts.two_checkpointings,
        run.training.gradient_checkpointing,
        run.setup.activation_checkpointing,
    )
    if run.setup.on and severity and mine.is_(True) and other.is_(True):
        yield mine.finding(
            "gradient checkpointing is on together with FSDP's activation checkpointing",
            help="set gradient_checkpointing: false",
            severity=severity,
            fix=mending.written(mine, "false", sure=False),
            stage=run.facts.trainer_stage,
            related=other.field.relate("FSDP checkpoints activations"),
        )


@rule("FS041", "save-only-sharded-model", stage=Stage.LOAD)
def save_only_sharded_model(run: FsdpRun) -> Iterator[Finding]:
    """save_only_model does not work with a sharded state dict.

    torch's distributed checkpointing saves a sharded state dict together with optimizer and scheduler; it cannot save
    the model alone. The Trainer refuses the combination; older releases fail at the first checkpoint.

    Set `fsdp_state_dict_type: FULL_STATE_DICT`, or remove save_only_model.

    Source: transformers 4.50 and later, Trainer.
    """
    severity, only = run.facts.save_only_model_sharded, run.training.save_only_model
    if run.setup.on and severity and only.is_(True) and run.setup.runs_state_dict_type == "SHARDED_STATE_DICT":
        written = not run.setup.state_dict_type.absent
        yield only.finding(
            "save_only_model does not work with SHARDED_STATE_DICT",
            help="set the state dict type to FULL_STATE_DICT, or remove save_only_model",
            severity=severity,
            related=run.setup.state_dict_type.field.relate("the state dict is sharded") if written else (),
        )


@rule("FS042", "save-only-model-and-best", stage=Stage.LOAD)
def save_only_model_and_best(run: FsdpRun) -> Iterator[Finding]:
    """save_only_model does not work with load_best_model_at_end under FSDP.

    Loading the best checkpoint needs the states that save_only_model leaves out. The Trainer refuses the combination.

    Source: transformers, Trainer.
    """
    severity, only = run.facts.save_only_model_best, run.training.save_only_model
    if run.setup.on and severity and only.is_(True) and run.training.load_best_model_at_end.is_(True):
        yield only.finding(
            "save_only_model does not work with load_best_model_at_end under FSDP",
            help="remove one of the two",
            severity=severity,
            related=run.training.load_best_model_at_end.field.relate("the best checkpoint is loaded at the end"),
        )


@rule("FS043", "eight-bit-optimizer", stage=Stage.SAVE, severity=Severity.WARNING)
def eight_bit_optimizer(run: FsdpRun) -> Iterator[Finding]:
    """The state of an 8-bit optimizer cannot be gathered from its shards.

    bitsandbytes keeps that state in blocks of its own layout, which FSDP cannot split and join. Training runs, and
    fails when the first checkpoint is saved. Axolotl refuses some of these optimizers (FS411).

    Use adamw_torch, adamw_torch_fused or adamw_torch_8bit.

    Source: Axolotl, validation of its configuration; reports about accelerate and bitsandbytes.
    """
    optimizer = run.training.optimizer
    severity = run.facts.eight_bit_optimizers.get(str(optimizer))
    if run.setup.on and severity and optimizer.known:
        yield optimizer.finding(
            f"{optimizer} does not work with FSDP",
            help="use adamw_torch_fused or adamw_torch_8bit",
            severity=severity,
            related=run.setup.switch.as_other_half,
        )


@rule("FS044", "quant-storage", stage=Stage.PREPARE)
def quant_storage(run: FsdpRun) -> Iterator[Finding]:
    """4-bit weights under FSDP1 are not stored in the dtype of the other parameters.

    FSDP1 flattens the parameters of a unit into one tensor, which has one floating dtype. 4-bit weights are stored as
    uint8 unless `bnb_4bit_quant_storage` names the dtype of the other parameters. FSDP2 shards each parameter by
    itself.

    Set `bnb_4bit_quant_storage: bfloat16` (the model's dtype), or use FSDP2.

    Source: torch FSDP1; bitsandbytes; trainers' handling of the key.
    """
    severity, training = run.facts.quant_storage, run.training
    if not (severity and run.setup.is_fsdp1 and training.quantization.is_("4bit")):
        return
    storage, dtype = training.quant_storage, training.compute_dtype
    if storage.absent or storage.is_("uint8") or (storage.known and dtype.known and storage.known != dtype.known):
        place = training.quantization if storage.absent else storage
        yield place.finding(
            "4-bit weights under FSDP1 must be stored in the dtype of the other parameters",
            help=f"set bnb_4bit_quant_storage: {dtype if dtype.known else 'bfloat16'}, or use FSDP2",
            severity=severity,
            related=run.setup.switch.relate("FSDP1 is on here"),
        )


@rule("FS047", "eight-bit-weights", stage=Stage.PREPARE)
def eight_bit_weights(run: FsdpRun) -> Iterator[Finding]:
    """FSDP1 does not shard 8-bit weights.

    It flattens the parameters of a unit into one floating tensor, and bitsandbytes stores 8-bit weights as integers.
    4-bit weights can be stored as floating numbers (FS044).

    Use load_in_4bit with bnb_4bit_quant_storage, or do not quantize.

    Source: torch FSDP1; bitsandbytes.
    """
    quantization = run.training.quantization
    if run.setup.is_fsdp1 and quantization.is_("8bit"):
        yield quantization.finding(
            "FSDP1 does not shard 8-bit weights",
            help="use load_in_4bit with bnb_4bit_quant_storage: bfloat16, or do not quantize",
            related=run.setup.switch.relate("FSDP1 is on here"),
        )


@rule("FS045", "deepspeed-under-fsdp", stage=Stage.START)
def deepspeed_under_fsdp(run: FsdpRun) -> Iterator[Finding]:
    """The training arguments ask for DeepSpeed, but the launcher sets up FSDP.

    The Trainer finds both and raises.

    Remove `deepspeed`, or launch with a DeepSpeed configuration.

    Source: transformers, Trainer.
    """
    severity, deepspeed = run.facts.deepspeed_beside, run.training.deepspeed
    if run.setup.on and severity and deepspeed.given and run.setup.switch.document is not deepspeed.field.document:
        yield deepspeed.finding(
            "deepspeed is set, but the launcher sets up FSDP",
            help="remove deepspeed, or launch with a DeepSpeed config",
            severity=severity,
            related=run.setup.switch.relate("FSDP is on here"),
        )


@rule("FS046", "auto-batch-size-under-fsdp", stage=Stage.TRAIN, severity=Severity.WARNING)
def auto_batch_size_under_fsdp(run: FsdpRun) -> Iterator[Finding]:
    """auto_find_batch_size does not work under FSDP.

    When a batch does not fit, the Trainer tries again with a smaller one; by then the model is wrapped, and the second
    try fails. Releases up to 4.44 refuse the combination at once.

    Set the batch size yourself.

    Source: transformers, Trainer; transformers#34113.
    """
    severity, auto = run.facts.auto_find_batch_size, run.training.auto_find_batch_size
    if run.setup.on and severity and auto.is_(True):
        yield auto.finding(
            "auto_find_batch_size does not work with FSDP",
            help="set the batch size yourself",
            severity=severity,
            related=run.setup.switch.as_other_half,
        )
