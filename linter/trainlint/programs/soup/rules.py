"""The rules of Soup: `soup.yaml`, the `soup train` command line, and both together."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Fix, Severity, Stage, did_you_mean, nearest, one_of
from trainlint.programs.soup.facts import (
    COMPILE_READERS,
    CSM_DATA,
    CSM_FIELDS,
    CSM_LORA,
    LORA_TASKS,
    MAX_GPUS,
    MINIMUM_ACCELERATE,
    MINIMUM_TORCH,
    REWARDS,
    UNSHARDABLE,
    VALUE_OPTIONS,
    ZERO3_PRESETS,
    ZERO3_UNCHECKED,
    SoupFacts,
    schedulers,
)
from trainlint.programs.soup.program import SoupCommand, SoupConfig, SoupRun, SoupStack, SoupTraining, unknown_keys
from trainlint.programs.soup.values import wrong_collections, wrong_texts, wrong_types
from trainlint.reading import mending
from trainlint.reading.document import Alias
from trainlint.reading.scalars import whole_number
from trainlint.reading.values import Field, Value
from trainlint.rule import rule
from trainlint.training.pydantic_types import Schema, mended, model_refusals

CSM_TABLES = (
    ("training", "TrainingConfig", CSM_FIELDS),
    ("training.lora", "LoraConfig", CSM_LORA),
    ("data", "DataConfig", CSM_DATA),
)
YAML_TAG = "tag:yaml.org,2002:"
YAML_TAGS = ("!", "null", "bool", "int", "float", "binary", "timestamp", "omap", "pairs", "set", "str", "seq", "map")
_SHARDING_KEYS = ("fsdp", "deepspeed", "gpus", "nodes")
_FOREIGN_PRESETS = {
    "fsdp": "full_shard",
    "fsdp2": "full_shard",
    "full_shard auto_wrap": "full_shard",
    "shard_grad_op": "shard_grad",
    "offload": "full_offload",
    "full_shard_offload": "full_offload",
    "zero2": "shard_grad",
    "zero3": "full_shard",
}


@rule("FS301", "soup-unknown-preset", stage=Stage.START)
def unknown_preset(command: SoupTraining, facts: SoupFacts) -> Iterator[Finding]:
    """`--fsdp` names an unknown preset.

    `soup train` reads its config and then exits: the preset must be one of three words, in lower case. The names that
    transformers and torch use (shard_grad_op, FULL_SHARD, hybrid_shard) are unknown. Each preset sets
    TrainingArguments:

    - full_shard: `fsdp: full_shard auto_wrap`; shards parameters, gradients and optimizer state.
    - shard_grad: `fsdp: shard_grad_op auto_wrap`; shards gradients and optimizer state.
    - full_offload: `fsdp: full_shard auto_wrap offload`; as full_shard, but kept in the memory of the CPU.

    Each also sets `fsdp_config`: backward_prefetch backward_pre, and forward_prefetch, use_orig_params,
    limit_all_gathers and sync_module_states true. An empty text switches FSDP off.

    Source: Soup 0.15 and later, commands/train.py and utils/fsdp.py; run with 0.73.3 to 0.77.0.
    """
    if command.preset.known_and_not_in(facts.presets):
        word = str(command.preset)
        meant = _FOREIGN_PRESETS.get(word.lower()) or nearest(word, facts.presets)
        yield command.preset.finding(
            f'unknown FSDP preset "{word}"',
            help=f'did you mean "{meant}"?' if meant else f"write {one_of(facts.presets)}",
            fix=_preset(command.preset, facts),
        )


def _preset(preset: Value[str], facts: SoupFacts) -> Fix | None:
    """The preset of Soup for FSDP's own word, or the one that is written but for case or joints."""
    word = str(preset).lower()
    if word.replace("-", "_") == "shard_grad_op":
        return mending.worded(preset, "shard_grad")
    return mending.respelled(preset, facts.presets)


@rule("FS302", "soup-fsdp-with-deepspeed", stage=Stage.START)
def fsdp_with_deepspeed(command: SoupTraining) -> Iterator[Finding]:
    """`--fsdp` and `--deepspeed` exclude each other.

    Both shard the model, and `soup train` stops before it loads it.

    Keep one of them.

    Source: Soup 0.15 and later, utils/fsdp.py, validate_fsdp_config.
    """
    if command.preset.known and command.deepspeed.known:
        yield command.deepspeed.finding(
            "--deepspeed and --fsdp exclude each other",
            help="remove --deepspeed or --fsdp",
            related=command.preset.field.relate("FSDP is on here"),
        )


@rule("FS303", "soup-unknown-deepspeed", stage=Stage.START)
def unknown_deepspeed(command: SoupTraining, facts: SoupFacts) -> Iterator[Finding]:
    """`--deepspeed` names neither a preset of Soup nor a JSON file.

    It must be zero2, zero3, zero2_offload, zero3_offload, zero++ or zero_pp, or the path of an existing file whose name
    ends in `.json`; `soup train` exits at anything else.

    Source: Soup 0.73.3 to 0.77.0, commands/train.py.
    """
    name = command.deepspeed
    if name.known_and_not_in(facts.deepspeed_presets) and not str(name).endswith(".json"):
        yield name.finding(
            f"{name} is neither a DeepSpeed preset of Soup nor a .json file",
            help=did_you_mean(str(name), facts.deepspeed_presets) or f"write {one_of(facts.deepspeed_presets, 6)}",
            fix=mending.respelled(name, facts.deepspeed_presets),
        )


@rule("FS304", "soup-fsdp-backend", stage=Stage.START, varies="warning with backend mlx, which only has no sharding")
def fsdp_backend(run: SoupRun) -> Iterator[Finding]:
    """The config's backend does not work with `--fsdp`.

    Backend unsloth is refused with a preset. Backend mlx is accepted, but its trainer has no sharding: the preset is
    printed and has no effect. Where use_fsdp2_compile is on too, it is reported alone: it needs backend transformers.

    Use backend transformers.

    Source: Soup 0.73.3 to 0.77.0, utils/fsdp.py, validate_fsdp_config (unsloth), trainer/mlx_routing.py (mlx).
    """
    backend = run.config.setting("backend")
    compiles = run.config.setting("training.use_fsdp2_compile").is_(True)
    if run.command.preset.known and backend.is_("unsloth", "mlx") and not compiles:
        refused = backend.is_("unsloth")
        yield backend.finding(
            f"backend {backend} {'does not work with' if refused else 'ignores'} --fsdp {run.command.preset}",
            help="set backend: transformers, or remove --fsdp from the command",
            severity=Severity.ERROR if refused else Severity.WARNING,
            stage=None if refused else Stage.RUN,
            related=run.command.preset.field.relate("FSDP is on here"),
        )


@rule(
    "FS305",
    "soup-fsdp-without-cuda",
    stage=Stage.START,
    varies="warning for a container without a GPU in its resources, which may get one in another way",
)
def fsdp_without_cuda(command: SoupTraining) -> Iterator[Finding]:
    """`soup train --fsdp` runs where there is no CUDA device.

    `soup train` stops when a preset is given and there is no CUDA device. It is an error on one of GitHub's own runners
    (`ubuntu-latest` and the like have no GPU) and with a CUDA_VISIBLE_DEVICES that hides all GPUs. A pod's container
    without a GPU in its resources is a warning: a cluster may give it one in another way.

    Source: Soup 0.15 and later, utils/fsdp.py, validate_fsdp_config.
    """
    if command.preset.known is None or not command.is_here:
        return
    hidden, runner, container = command.hidden_devices, command.hosted_runner, command.gpuless_container
    if hidden is not None:
        place = hidden if isinstance(hidden, Field) else hidden.field
        yield place.finding("this hides every GPU from soup train --fsdp", help="remove it, or remove --fsdp")
    elif runner is not None:
        yield command.preset.finding(
            f"soup train --fsdp needs a CUDA device, which {runner.written} does not have",
            help="use a runner with a GPU, or remove --fsdp",
            related=runner.relate("the runner"),
        )
    elif container is not None:
        yield command.preset.finding(
            "soup train --fsdp needs a CUDA device, but this container asks for none",
            help="add nvidia.com/gpu to resources.limits, or remove --fsdp",
            severity=Severity.WARNING,
            related=container.relate("the container asks for no GPU"),
        )


@rule("FS306", "soup-compile-without-fsdp", stage=Stage.START)
def compile_without_fsdp(run: SoupRun) -> Iterator[Finding]:
    """`use_fsdp2_compile` is set, but the command that uses this config does not shard with FSDP.

    `soup train` stops: the switch needs a preset (`--fsdp full_shard`, shard_grad or full_offload) and excludes
    `--deepspeed`, which compiles by itself. Only the command line can give the preset; the file has no key for it.

    Source: Soup 0.27 and later, utils/fsdp.py, validate_fsdp2_compile_config.
    """
    compiled, preset, deepspeed = (
        run.config.setting("training.use_fsdp2_compile"),
        run.command.preset,
        run.command.deepspeed,
    )
    if not compiled.is_(True):
        return
    if deepspeed.known:
        yield compiled.finding(
            f"use_fsdp2_compile does not work with --deepspeed {deepspeed}",
            help="train with --fsdp full_shard, or remove use_fsdp2_compile",
            related=deepspeed.field.relate("DeepSpeed is on here"),
        )
    elif preset.absent:
        yield compiled.finding(
            "use_fsdp2_compile needs --fsdp, which this command does not have",
            help="add --fsdp full_shard to the command, or remove use_fsdp2_compile",
            related=run.command.invocation.field.relate("the command"),
        )


@rule("FS307", "soup-compile-backend", stage=Stage.START)
def compile_backend(config: SoupConfig) -> Iterator[Finding]:
    """`use_fsdp2_compile` is set with a backend other than transformers.

    `soup train` refuses it whatever the command line says: unsloth and mlx compile in their own way.

    Source: Soup 0.27 and later, utils/fsdp.py, validate_fsdp2_compile_config.
    """
    yield from config.refusals("compile")


@rule("FS308", "soup-compile-not-read", stage=Stage.RUN, severity=Severity.WARNING)
def compile_not_read(config: SoupConfig) -> Iterator[Finding]:
    """The trainer of this task does not read `use_fsdp2_compile`.

    Only the trainers of sft and tts turn it into torch_compile. The others pass FSDP's settings on without it: the run
    goes on and compiles nothing.

    Source: Soup 0.73.3 to 0.77.0, trainer/sft.py alone calls apply_fsdp_training_kwargs.
    """
    task = config.setting("task")
    compiled = config.setting("training.use_fsdp2_compile")
    trains = compiled.is_(True) and config.setting("backend").is_("transformers")
    if trains and task.known_and_not_in(COMPILE_READERS):
        yield compiled.finding(
            f"use_fsdp2_compile has no effect in task {task}",
            help="remove it: only sft and tts read it",
            fix=mending.removed(compiled, keeps=True),
        )


@rule(
    "FS309",
    "soup-quantization-sharded",
    stage=Stage.START,
    varies="warning where Soup does not see the sharding: zero3_offload, or a JSON file",
)
def quantization_sharded(run: SoupRun) -> Iterator[Finding]:
    """HQQ, EETQ and AQLM models cannot be sharded.

    `soup train` stops when such a quantization is combined with `--fsdp`, or with `--deepspeed` zero3, zero++ or
    zero_pp. Its check does not know zero3_offload and does not read JSON files, which may shard the parameters too: the
    run starts and fails later, which is a warning here.

    Use quantization 4bit or none, or ZeRO stage 2.

    Source: Soup 0.38 and later, utils/quant_menu.py, check_quant_distributed_compat.
    """
    quantization = run.config.setting("training.quantization")
    if not quantization.known_and(lambda kind: isinstance(kind, str) and kind.partition(":")[0] in UNSHARDABLE):
        return
    preset, deepspeed = run.command.preset, run.command.deepspeed
    unchecked = deepspeed.is_(*ZERO3_UNCHECKED) or run.command.stage == 3
    sharding = preset if preset.known else deepspeed if unchecked or deepspeed.is_(*ZERO3_PRESETS) else None
    if sharding is not None:
        checked = sharding is preset or not unchecked
        yield quantization.finding(
            f"quantization {quantization} cannot be sharded, but the command has {sharding}",
            help="use quantization 4bit or none, or --deepspeed zero2",
            severity=Severity.ERROR if checked else Severity.WARNING,
            related=sharding.field.relate("sharding is on here"),
        )


@rule("FS310", "soup-quant-storage", stage=Stage.RUN, severity=Severity.WARNING)
def quant_storage(run: SoupRun, facts: SoupFacts) -> Iterator[Finding]:
    """The storage type of a 4-bit model under FSDP is missing, or is overridden.

    Up to 0.73, without `bnb_4bit_quant_storage` the weights are gathered in 32 bits: Soup says so and trains slowly.
    Set bfloat16 or float16, the type that the run computes in. From 0.74 Soup sets the storage to that type itself and
    overrides a uint8 or float32 in the file.

    Source: Soup 0.73.3 (utils/quant_menu.py) and 0.74.0 to 0.77.0 (resolve_fsdp_qlora_quant_storage).
    """
    if not run.command.preset.known or not run.config.setting("training.quantization").is_("4bit"):
        return
    storage = run.config.setting("training.bnb_4bit_quant_storage")
    if facts.storage_follows_compute and storage.is_("uint8", "float32"):
        yield storage.finding(
            f"bnb_4bit_quant_storage {storage} is overridden under --fsdp",
            help="remove it: Soup uses the type that the run computes in",
            fix=mending.removed(storage, keeps=True),
        )
    elif storage.absent and not facts.storage_follows_compute:
        yield storage.finding(
            "without bnb_4bit_quant_storage a 4-bit model under --fsdp is gathered in 32 bits",
            help="set training.bnb_4bit_quant_storage: bfloat16",
            related=run.command.preset.field.relate("FSDP is on here"),
        )


@rule("FS311", "soup-stream-layers", stage=Stage.LOAD, follows=("FS322", "FS323"))
def stream_layers(config: SoupConfig) -> Iterator[Finding]:
    """`stream_layers` is combined with a setting that it excludes.

    Streaming builds the model without its weights and loads them layer by layer, so nothing may change or shard those
    layers: use_fsdp2_compile, other backends, tasks that generate, any quantization but 4bit, DoRA and the like. The
    config is refused. From 0.76 also quantization_aware, fp8_attention, nvfp4, use_liger and use_flash_attn.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py, the validator of stream_layers.
    """
    yield from config.refusals("streaming")


@rule("FS312", "soup-relora", stage=Stage.LOAD, follows=("FS322", "FS323"))
def relora(config: SoupConfig) -> Iterator[Finding]:
    """`relora_steps` is combined with a setting that it excludes.

    From 0.76 each restart of ReLoRA merges the adapter into the base weights, which must be plain and writable: no
    quantization (the default is 4bit), no use_fsdp2_compile, no stream_layers, DoRA or VeRA. The config is refused.
    From 0.77 a task whose loss compares with a frozen reference is refused too.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py, the validator of relora_steps.
    """
    yield from config.refusals("relora")


@rule("FS313", "soup-pipeline-stages", stage=Stage.START, follows=("FS322", "FS323"))
def pipeline_stages(config: SoupConfig) -> Iterator[Finding]:
    """`parallelism: pipeline` has fewer than two stages.

    `soup train` stops, also where pipeline_stages is left out, since its default is 1.

    Source: Soup 0.27 and later, utils/pipeline.py, validate_pipeline_config.
    """
    yield from config.refusals("pipeline")


@rule("FS314", "soup-pipeline-gpus", stage=Stage.START)
def pipeline_gpus(run: SoupRun) -> Iterator[Finding]:
    """There are more pipeline stages than GPUs.

    `soup train` counts the GPUs of the machine and stops when there are fewer than pipeline_stages. The number is known
    where the command runs in a container that asks for GPUs.

    Source: Soup 0.27 and later, utils/pipeline.py, validate_pipeline_config.
    """
    stages, gpus = run.config.setting("training.pipeline_stages"), run.command.container_gpus
    number = stages.known
    if run.config.setting("training.parallelism").is_("pipeline") and isinstance(number, int) and gpus.below(number):
        yield stages.finding(
            f"{number} pipeline stages need as many GPUs, but the container has {gpus}",
            help="lower pipeline_stages, or ask for more GPUs",
            related=gpus.field.relate("the GPUs of the container"),
        )


@rule("FS315", "soup-pipeline-data-parallel", stage=Stage.RUN, severity=Severity.WARNING)
def pipeline_data_parallel(config: SoupConfig) -> Iterator[Finding]:
    """`parallelism: pipeline` does not make the run pipeline-parallel.

    Soup checks the settings and then trains data-parallel, as it prints on the console: every GPU holds the whole
    model.

    To spread a model over GPUs use `--fsdp` or `--deepspeed`.

    Source: Soup 0.27 to 0.77.0, commands/train.py.
    """
    parallelism, stages = config.setting("training.parallelism"), config.setting("training.pipeline_stages").known
    if parallelism.is_("pipeline") and isinstance(stages, int) and stages > 1:
        yield parallelism.finding(
            "parallelism: pipeline has no effect: the run is data-parallel",
            help="remove it, and shard the model with soup train --fsdp full_shard",
        )


@rule("FS320", "soup-sharding-key", stage=Stage.LOAD, varies="warning up to 0.74, which ignores the key")
def sharding_key(config: SoupConfig, facts: SoupFacts) -> Iterator[Finding]:
    """`soup.yaml` has a key for FSDP or DeepSpeed, which only the command line can set.

    Sharding is an option of the command: `soup train --fsdp full_shard`, `--deepspeed zero3`, `--gpus 4`. The only key
    of the file about it is `training.use_fsdp2_compile`. Up to 0.73 any other is ignored without a message and the
    model trains unsharded; 0.74 warns, 0.75 and later refuse the file.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py, config/unknown_keys.py.
    """
    for entry, _, _ in unknown_keys(config):
        if _about_sharding(entry.name):
            flag = next((f"--{key}" for key in _SHARDING_KEYS if entry.name.lower().startswith(key)), "--gpus")
            yield entry.finding(
                f"soup.yaml has no key {entry.name}: {_outcome(facts)}",
                help=f"remove it, and give {flag} to soup train",
                severity=facts.unknown_key or Severity.WARNING,
                stage=None if facts.unknown_key is Severity.ERROR else Stage.RUN,
                at_key=True,
            )


@rule("FS321", "soup-unknown-key", stage=Stage.LOAD, varies="warning up to 0.74, which ignores the key")
def unknown_key(config: SoupConfig, facts: SoupFacts) -> Iterator[Finding]:
    """A section of `soup.yaml` has an unknown key.

    Up to 0.73 it is ignored without a message, 0.74 warns, 0.75 and later refuse the file. Where it is ignored, the
    setting keeps its default: so a misspelt gradient_checkpointing, or a LoRA section in the wrong place, goes
    unnoticed.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py, config/unknown_keys.py.
    """
    for entry, table, _ in unknown_keys(config):
        if not _about_sharding(entry.name):
            yield entry.finding(
                f"{_section(table)} has no key {entry.name}: {_outcome(facts)}",
                help=_elsewhere(entry.name, table, facts) or "remove it",
                severity=facts.unknown_key or Severity.WARNING,
                stage=None if facts.unknown_key is Severity.ERROR else Stage.RUN,
                fix=_move(entry, table, config, facts),
                at_key=True,
            )


@rule("FS322", "soup-staged-field", stage=Stage.LOAD)
def staged_field(config: SoupConfig, facts: SoupFacts) -> Iterator[Finding]:
    """A field is set that nothing reads yet.

    Soup declares such fields for later. 0.76 warns of one that differs from its default, 0.77 refuses the file.

    Source: Soup 0.76.1 and 0.77.0, config/staged_fields.py.
    """
    for name in config.staged if facts.staged_field else ():
        message, place = f"{name} has no effect yet", config.place(name)
        fix = mending.removed(place, keeps=True)
        yield place.finding(message, help="remove it", severity=facts.staged_field, fix=fix, at_key=True)


@rule("FS323", "soup-field-value", stage=Stage.LOAD)
def field_value(config: SoupConfig, facts: SoupFacts) -> Iterator[Finding]:
    """A value has the wrong type, is not one of the field's words, or is out of its bounds.

    Soup first checks its file with pydantic. Text that is a number counts as a number (`2e-5`), text like "yes" as a
    boolean; a number does not count as text, and null is only accepted where a field may be empty.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py.
    """
    ignored = [config.place(name).path for name in config.staged] if facts.staged_field is Severity.ERROR else []
    for refusal in wrong_types(config):
        place = refusal.place
        if place.path in ignored:
            continue
        written = place.written or ("null" if place.is_null else "this")
        hint = did_you_mean(place.written, refusal.choices)
        message = f"{place.name} must be {refusal.wanted}, not {refusal.got or written}"
        yield place.finding(message, help=hint, fix=mended(refusal))


@rule("FS324", "soup-missing-field", stage=Stage.LOAD)
def missing_field(config: SoupConfig, facts: SoupFacts) -> Iterator[Finding]:
    """A required field is missing: `base`, `data`, or `train` in `data`.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py.
    """
    schema = Schema(facts.fields, lambda _: None)
    for refusal in model_refusals(config.field, facts.fields("SoupConfig"), schema):
        if refusal.missing:
            name = ".".join(str(step) for step in (*refusal.place.path, refusal.wanted))
            yield refusal.place.get(refusal.wanted).finding(f"{name} is missing", help=f"add {name}")


@rule("FS325", "soup-lora-twice", stage=Stage.LOAD)
def lora_twice(config: SoupConfig) -> Iterator[Finding]:
    """`lora` is given at the top level and in `training`.

    Soup moves a top-level `lora` into `training`; where both have one, it refuses the file.

    Source: Soup 0.40.1 and later, config/schema.py.
    """
    lora, inner = config.field.get("lora"), config.field.at("training", "lora")
    if lora.node is not None and inner.node is not None:
        yield lora.finding(
            "lora is given at the top level and in training",
            help="keep the one in training",
            at_key=True,
            related=inner.relate("lora in training"),
        )


@rule("FS326", "soup-quantization-settings", stage=Stage.LOAD, follows=("FS322", "FS323"))
def quantization_settings(config: SoupConfig) -> Iterator[Finding]:
    """A setting excludes this quantization, or needs one.

    The default is 4bit, so everything that trains the weights themselves needs an explicit `quantization: none`:
    use_galore, lora.r of 0, unfrozen_parameters, from 0.76 PiSSA and LoftQ. Also refused are bnb_4bit_quant_storage
    without 4-bit weights, load_in_8bit together with load_in_16bit, pre-quantized formats with backend mlx, and from
    0.76 any quantization in a task whose trainer does not quantize.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py, utils/galore.py.
    """
    yield from config.refusals("quantization")


@rule("FS327", "soup-setting-needs", stage=Stage.LOAD, follows=("FS322", "FS323"))
def setting_needs(config: SoupConfig) -> Iterator[Finding]:
    """A setting needs another one: a task, a switch, a data format.

    Soup refuses settings that would have no effect, such as grpo_variant in a task other than grpo, stream_source
    without stream_layers, or the parts of reward_hack without reward_hack_mitigation; and a task without what it needs,
    such as distill without teacher_model.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py; each pair was tried on each release.
    """
    yield from config.refusals("needs")


@rule("FS328", "soup-refused-value", stage=Stage.LOAD, follows=("FS322", "FS323"))
def refused_value(config: SoupConfig, facts: SoupFacts) -> Iterator[Finding]:
    """A value has the right type, but Soup refuses it.

    Examples are an unknown optimizer, a batch size below 1, and switches and variants that were declared and never
    worked. adam_mini, adamw_apex_fused, ao_adamw_4bit, ao_adamw_8bit, ao_adamw_fp8, badam, came_pytorch and dion are
    refused from 0.76 on, since transformers 5 does not have them.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py, utils/optimizer_zoo.py.
    """
    yield from config.refusals("values")
    optimizer = config.setting("training.optimizer")
    if optimizer.known_and(lambda name: isinstance(name, str) and name.lower() not in facts.optimizers):
        yield optimizer.finding(
            f"Soup {facts.release} has no optimizer {optimizer}",
            help=did_you_mean(str(optimizer), facts.optimizers) or "write another optimizer, such as adamw_torch",
            fix=mending.respelled(optimizer, facts.optimizers),
        )


@rule("FS333", "soup-backend-settings", stage=Stage.LOAD, follows=("FS322", "FS323"))
def backend_settings(config: SoupConfig) -> Iterator[Finding]:
    """The backend does not train this task, or does not have this setting.

    Backend mlx trains sft alone, from 0.77 on also dpo, orpo, simpo and kto. From 0.76 on backend unsloth is refused in
    the tasks whose trainer has no setup for it, and settings that a backend would ignore are refused, among them
    moe_lora, freeze_layers, rope_scaling_type and loraplus_lr_ratio.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py; use_liger and quantization_aware also in commands/train.py.
    """
    yield from config.refusals("backends")


@rule("FS334", "soup-task-settings", stage=Stage.LOAD, follows=("FS322", "FS323"))
def task_settings(config: SoupConfig) -> Iterator[Finding]:
    """The trainer of this task or modality does not have this setting.

    Many settings act only in the trainer of sft. Up to 0.75 most of them are accepted and ignored elsewhere; later
    releases refuse the file: use_liger, use_flash_attn, freeze_layers, rope_scaling_type, from 0.77 neftune_alpha and
    use_mod. Batch sizes that a task cannot train with are refused too.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py; use_ring_attention in commands/train.py.
    """
    yield from config.refusals("tasks")


@rule("FS335", "soup-whole-weights", stage=Stage.LOAD, follows=("FS322", "FS323"))
def whole_weights(config: SoupConfig) -> Iterator[Finding]:
    """A setting does not go together with training the weights themselves.

    lora.r of 0 trains the whole model, unfrozen_parameters and lisa_enabled parts of it, expand_layers new layers.
    Each needs plain weights (`quantization: none`, the default is 4bit), backend transformers and modality text, and
    excludes the others and everything about LoRA.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py, the validators of these settings.
    """
    yield from config.refusals("full")


@rule("FS336", "soup-lora-settings", stage=Stage.LOAD, follows=("FS322", "FS323"))
def lora_settings(config: SoupConfig) -> Iterator[Finding]:
    """LoRA settings exclude each other, or have no effect here.

    DoRA, VeRA and OLoRA exclude each other, and a few have their own ways to start. LoRA+ and LoRA-FA need an adapter
    with trainable matrices; moe_lora needs a trainer that builds one.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py.
    """
    yield from config.refusals("lora")


@rule("FS337", "soup-data-settings", stage=Stage.LOAD, follows=("FS322", "FS323"))
def data_settings(config: SoupConfig) -> Iterator[Finding]:
    """Settings of `data` exclude each other, or need another task or format.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py.
    """
    yield from config.refusals("data")


@rule("FS338", "soup-text", stage=Stage.LOAD, varies="warning for an absolute path, which may lie below the folder")
def text(config: SoupConfig) -> Iterator[Finding]:
    """A text is empty, too long, or has a form that Soup refuses.

    Functions are named as `module.path:function`, a chat template may not include other files, a judge is an ollama or
    https URL. Paths such as tokenized_path must lie below the folder in which Soup is started: one that climbs out of
    it is refused; an absolute one is reported as a warning, since it may lie there.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py; utils/data_pipeline.py, agent_rollout.py, eval/gate.py.
    """
    for wrong in wrong_texts(config):
        yield wrong.finding(None if wrong.certain else Severity.WARNING)


@rule("FS339", "soup-list", stage=Stage.LOAD, follows=("FS322", "FS323"))
def collection(config: SoupConfig) -> Iterator[Finding]:
    """A list or mapping has too few, too many, repeated or wrong entries.

    Weights must add up to 1, names be different, regular expressions be valid and quick to match.

    Source: Soup 0.73.3 to 0.77.0, config/schema.py; utils/data_pipeline.py, classifier.py, mole_routing.py.
    """
    for wrong in wrong_collections(config):
        yield wrong.finding()


@rule("FS341", "soup-csm", stage=Stage.LOAD)
def csm(config: SoupConfig, facts: SoupFacts) -> Iterator[Finding]:
    """A setting has no place in the training of a Sesame CSM model.

    tts_family sesame_csm has a trainer of its own, from 0.77 on. It takes data of the format audio, no quantization,
    and only the settings that each training has.

    Source: Soup 0.77.0, utils/csm.py, validate_csm_config.
    """
    chosen = config.setting("task").is_("tts") and config.setting("training.tts_family").is_("sesame_csm")
    if not (facts.csm and chosen):
        return
    for name, wanted in (("backend", "transformers"), ("data.format", "audio"), ("training.quantization", "none")):
        place = config.setting(name)
        if place.given and place.known not in (wanted, None):
            at = place if place.field.node is not None else config.setting("training.tts_family")
            fix = mending.worded(place, wanted, sure=False)
            yield at.finding(f"tts_family: sesame_csm needs {name}: {wanted}", help=f"set {name}: {wanted}", fix=fix)
            return
    checkpointing = config.place("training.gradient_checkpointing")
    if isinstance(config.data("training.gradient_checkpointing"), str):
        message = "tts_family: sesame_csm needs gradient_checkpointing: true or false"
        yield checkpointing.finding(message, help="write true or false")
    for section, table, taken in CSM_TABLES:
        for name in facts.fields(table):
            setting = f"{section}.{name}"
            if name not in taken and config.is_other(setting):
                message = f"tts_family: sesame_csm does not take {setting}"
                fix = mending.removed(config.place(setting), sure=False)
                yield config.place(setting).finding(message, help=f"remove {name}", fix=fix, at_key=True)


@rule("FS342", "soup-yaml", stage=Stage.LOAD)
def yaml_form(config: SoupConfig) -> Iterator[Finding]:
    """Soup does not read this YAML: the file has several documents, a tag that is not YAML's own, or a key of no text.

    Soup reads its config with PyYAML's safe loader, which takes one document and knows no tag of Python's, such as
    `!!python/name:`. A key at the top level must be a text; up to 0.74 a number there ends in an exception.

    Source: Soup 0.73.3 to 0.77.0, config/loader.py; PyYAML 6.
    """
    if config.field.document.index:
        yield config.field.finding("the file has several documents", help="write each config to a file of its own")
    waiting = [config.field]
    while waiting:
        place = waiting.pop()
        if isinstance(place.node, Alias) or (place.entry is not None and place.entry.use is not None):
            continue
        tag = place.target.tag if place.target is not None else None
        if tag is not None and tag.removeprefix(YAML_TAG) not in YAML_TAGS:
            yield place.finding(f"Soup does not know the tag {tag.replace(YAML_TAG, '!!')}", help="remove the tag")
        waiting += [*place.entries(), *place.items()]


@rule("FS343", "soup-fails-later", stage=Stage.PREPARE)
def fails_later(config: SoupConfig) -> Iterator[Finding]:
    """`soup train --dry-run` takes a value that the trainer refuses when it is built.

    Soup hands `scheduler`, `logging_steps` and `lora.dropout` on unseen: transformers knows no other schedulers than
    its own and no logging every 0 steps, and PyTorch no dropout above 1. A `reward_fn` of grpo must be one of Soup's
    own or the path of a `.py` file. The model is loaded by then.

    Source: Soup 0.73.3 to 0.77.0, trainer/*.py and trainer/rewards.py; transformers, SchedulerType and
    TrainingArguments.
    """
    if not config.setting("backend").is_("transformers"):
        return
    scheduler, steps = config.setting("training.scheduler"), config.setting("training.logging_steps")
    if scheduler.known_and_not_in(schedulers()):
        help = did_you_mean(str(scheduler), schedulers()) or "write one such as cosine or linear"
        fix = mending.respelled(scheduler, schedulers())
        yield scheduler.finding(f"Transformers has no scheduler {scheduler}", help=help, fix=fix)
    if steps.is_(0):
        yield steps.finding("logging_steps must not be 0", help="write 1 or more")
    dropout, rank = config.setting("training.lora.dropout"), config.setting("training.lora.r").known
    without = any(config.data(f"training.{name}") for name in ("lisa_enabled", "unfrozen_parameters", "stream_layers"))
    with_lora = isinstance(rank, int) and rank > 0 and not without and config.setting("task").is_(*LORA_TASKS)
    if with_lora and dropout.known_and(lambda share: isinstance(share, (int, float)) and share > 1):
        yield dropout.finding("lora.dropout must not be above 1", help="write a share such as 0.05")
    rewards = config.setting("training.reward_fn")
    if config.setting("task").is_("grpo") and config.setting("training.prm_reward").absent:
        for name in str(rewards.known or "").split(","):
            if name.strip() and name.strip() not in REWARDS and not name.strip().endswith(".py"):
                help = did_you_mean(name.strip(), REWARDS) or f"write {one_of(REWARDS)}, or the path of a .py file"
                fix = mending.respelled(rewards, REWARDS)
                yield rewards.finding(f"Soup has no reward {name.strip()}", help=help, fix=fix)


@rule("FS344", "soup-no-effect", stage=Stage.RUN, severity=Severity.WARNING)
def no_effect(config: SoupConfig) -> Iterator[Finding]:
    """A setting is accepted and does nothing.

    forgetting_detection, checkpoint_intelligence, early_stop_on_regression and convergence_detection are only announced
    on the console; a suite for `soup train --gate` does what they promise.

    Source: Soup 0.73.3 to 0.77.0, commands/train.py, utils/freeze.py.
    """
    yield from config.refusals("silent")


@rule("FS330", "soup-command-line", stage=Stage.START)
def command_line(command: SoupCommand, facts: SoupFacts) -> Iterator[Finding]:
    """`soup train` has an unknown option, an option without its value, or a word that it does not take.

    The command line is refused before the config is read. `--nodes`, `--node-rank`, `--master-addr` and `--master-port`
    exist from 0.76 on; there is no `--device`.

    Source: Soup 0.73.3 to 0.77.0, commands/train.py.
    """
    given = command.invocation.has("--config", "-c")
    for flag in command.invocation.flags:
        name = flag.name.text
        if flag.name.known is None:
            continue
        if name not in facts.options:
            known = VALUE_OPTIONS.get(name, "")
            place = f"soup train of Soup {facts.release}" if known else "soup train"
            later = f"use Soup {known.partition('..')[0]} or newer, or remove it"
            config = "" if given else next((value.text for value in flag.values if _is_config(value.text)), "")
            instead = f"write --config {config}" if config else ""
            help = later if known else did_you_mean(name, facts.options) or instead or "remove it"
            fix = None if known else mending.respelled(flag.name.value, facts.options)
            yield flag.name.field.finding(f"{place} has no option {name}", help=help, fix=fix)
        elif name in VALUE_OPTIONS and not flag.values:
            yield flag.name.field.finding(f"{name} needs a value", help="write the value behind it")
    for word in command.invocation.positionals:
        if word.known is not None:
            help = f"write --config {word}" if _is_config(word.text) and not given else "remove it"
            yield word.field.finding(f"soup train takes options only, not {word}", help=help)


@rule("FS331", "soup-gpus", stage=Stage.START)
def gpus(command: SoupTraining) -> Iterator[Finding]:
    """`--gpus` is neither `auto` nor a number from 1 to 128.

    Source: Soup 0.73.3 to 0.77.0, utils/topology.py.
    """
    if command.gpus.known_and(lambda text: not _is_gpu_count(text)):
        message = f"--gpus must be auto or a number from 1 to {MAX_GPUS}, not {command.gpus}"
        yield command.gpus.finding(message, help="write auto, or the number of GPUs")


@rule("FS332", "soup-cloud-unsharded", stage=Stage.RUN, severity=Severity.WARNING)
def cloud_unsharded(command: SoupCommand) -> Iterator[Finding]:
    """`--cloud` ignores `--fsdp` and `--deepspeed`.

    With `--cloud` Soup makes a job from the config alone; the job runs `soup train` without the sharding options of
    this command.

    Source: Soup 0.73.3 to 0.77.0, commands/train.py (read, not run).
    """
    for sharding in (command.preset, command.deepspeed):
        if command.cloud.known and sharding.known:
            yield sharding.finding(
                f"the job of --cloud {command.cloud} trains without {sharding}",
                help=f"remove it, or run soup train on the machine itself, without --cloud {command.cloud}",
            )


@rule("FS340", "soup-versions", stage=Stage.START)
def versions(stack: SoupStack, facts: SoupFacts) -> Iterator[Finding]:
    """The repository pins versions with which `soup train --fsdp` does not start.

    FSDP needs torch 2.2 or newer, which Soup checks before it trains, and accelerate 0.27 or newer, which it only
    names; from 0.74 its package requires that accelerate, so an older pin cannot be installed with it. Reported only
    where a pin allows no version that would do.

    Source: Soup 0.73.3 to 0.77.0, utils/fsdp.py, is_fsdp_available; the package's requirements.
    """
    if not stack.command.preset.known:
        return
    for pin, oldest in ((stack.torch, MINIMUM_TORCH), (stack.accelerate, MINIMUM_ACCELERATE)):
        if pin is not None and not pin.allows_from(oldest):
            only_named = pin is stack.accelerate and not facts.storage_follows_compute
            yield pin.field.finding(
                f"soup train --fsdp needs {pin.package} {oldest} or newer",
                help=f"pin {pin.package}>={oldest}",
                severity=Severity.WARNING if only_named else Severity.ERROR,
                related=stack.command.preset.field.relate("FSDP is on here"),
            )


# what several rules share


def _about_sharding(name: str) -> bool:
    return name.lower().startswith(_SHARDING_KEYS) or name.lower() == "num_gpus"


def _outcome(facts: SoupFacts) -> str:
    if facts.unknown_key is Severity.ERROR:
        return "the file is refused"
    return "Soup warns and ignores it" if facts.unknown_key else "it is ignored without a message"


def _section(table: str) -> str:
    name = table.removesuffix("Config").lower()
    return "soup.yaml" if name == "soup" else name


def _elsewhere(name: str, table: str, facts: SoupFacts) -> str:
    """Help: the section that has the key, or a similar key of this section."""
    fields = facts.fields(table)
    for other, place in (("TrainingConfig", "training"), ("LoraConfig", "training.lora"), ("DataConfig", "data")):
        if other != table and name in facts.fields(other):
            return f"move it to {place}"
    return did_you_mean(name, fields)


def _move(entry: Field, table: str, config: SoupConfig, facts: SoupFacts) -> Fix | None:
    """The key goes to the section that has it, or gets the name that is meant."""
    help = _elsewhere(entry.name, table, facts)
    if help.startswith("move it to "):
        return mending.moved(entry, config.field.at(*help.removeprefix("move it to ").split(".")))
    return mending.renamed_to_nearest(entry, facts.fields(table))


def _is_config(text: str) -> bool:
    return text.endswith((".yaml", ".yml"))


def _is_gpu_count(text: str) -> bool:
    word = text.strip().lower()
    number = whole_number(word.removeprefix("+"))
    return word == "auto" or (number is not None and 1 <= number <= MAX_GPUS)
