"""The rules of LLaMA-Factory: what its parser, its argument checks and its model loading refuse."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Fix, Severity, Stage, did_you_mean, one_of, some_of
from trainlint.lazy import regex
from trainlint.programs.llamafactory.facts import (
    COMMANDS,
    DATASET_COLUMNS,
    DATASET_SOURCES,
    DATASET_TAGS,
    DEMO_DATASETS,
    MODEL_BITS,
    QUANTIZATION_BITS,
    RANKED_STAGES,
    STAGES,
    SUMMED,
    LlamaFactoryFacts,
)
from trainlint.programs.llamafactory.program import LlamaFactoryConfig
from trainlint.reading import mending
from trainlint.reading.values import Field
from trainlint.releases import version_tuple
from trainlint.rule import rule
from trainlint.training.declarations import declarations
from trainlint.training.limits import is_true, refused, terms_of
from trainlint.training.pydantic_types import as_number


@rule("FS501", "llamafactory-unknown-key", stage=Stage.LOAD, ordinary_elsewhere=True)
def llamafactory_unknown_key(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """A key is not an argument.

    All keys are given to the dataclasses of the command, and a key that none of them has raises ValueError before
    anything starts, unless the environment sets ALLOW_EXTRA_ARGS. `export`, `chat`, `api` and `eval` do not read
    training arguments: where one of them is given a file with `do_train`, the command is wrong, not the file. Training
    with mcore_adapter (USE_MCA) has other arguments: a file for it is not checked.

    Source: LLaMA-Factory 0.9.0 to 0.9.5, hparams/parser.py; the dataclasses of hparams/ and of transformers, those of
    0.7.1 to 0.8.3 too.
    """
    if config.own_package or config.is_megatron:
        return
    for reading in config.misplaced:
        yield reading.place.finding(
            f"llamafactory-cli {reading.command} cannot read a file for training",
            help="give it a file of its own, without training arguments",
            related=config.field.get("do_train").relate("an argument of training"),
        )
    for entry in config.field.entries():
        if entry.name in config.keys or config.arguments.reader.defines(entry.name):
            continue
        command = f"llamafactory-cli {config.command}" if config.command else f"LLaMA-Factory {facts.release}"
        help = _instead(entry.name, config, facts)
        fix = None if help.startswith("remove it") else mending.advised(entry, help, among=config.keys)
        yield entry.finding(
            f"{entry.name} is not an argument of {command}",
            help=help,
            fix=fix or mending.renamed_to_nearest(entry, config.keys) if help.startswith(("did", "call")) else None,
            at_key=True,
        )


def _instead(name: str, config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> str:
    known = declarations("llamafactory")
    tables = {table for names in COMMANDS.values() for table in names}
    having = [release for release in known.names if any(name in known.keys(table, release) for table in tables)]
    if config.command and (facts.release in having or name in config.arguments.facts.fields):
        return "remove it: this command does not read it"
    if having:
        gone = version_tuple(having[-1]) < version_tuple(facts.release)
        if gone:
            return f"remove it: LLaMA-Factory {having[-1]} was the last release with it"
        return f"remove it, or use LLaMA-Factory {having[0]} or newer"
    other = config.arguments.facts.other_releases(name)
    if other:
        return config.arguments.facts.renamed(name) or f"remove it: {other}"
    return did_you_mean(name, config.keys) or "remove it"


@rule(
    "FS502",
    "llamafactory-duplicate-key",
    stage=Stage.LOAD,
    varies="warning before 0.9.4, where only the last one counts",
)
def llamafactory_duplicate_key(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """A key is written twice.

    OmegaConf, which reads the file since 0.9.4, refuses equal texts as keys of any mapping. Before, PyYAML takes the
    last of them without a message, and the first value is lost (FS216, where it is an argument of training).

    Source: OmegaConf, its loader of YAML; LLaMA-Factory 0.9.1 to 0.9.5, read_args of hparams/parser.py.
    """
    for entry in _duplicates(config.field):
        fix = mending.without_earlier(entry)
        if facts.loads_with_omegaconf:
            yield entry.finding(
                f"{entry.name} is written twice",
                help="remove one of them",
                # Unless they say the same, nobody knows which one is meant.
                fix=fix if fix is not None and fix.safe else None,
                at_key=True,
                related=entry.earlier_keys,
            )
        elif entry.parent is not config.field or not config.arguments.facts.is_ever(entry.name):
            yield entry.finding(
                f"{entry.name} is written twice: only this one counts",
                help="remove the wrong one",
                severity=Severity.WARNING,
                stage=Stage.RUN,
                fix=fix,
                at_key=True,
                related=entry.earlier_keys,
            )


def _duplicates(field: Field) -> Iterator[Field]:
    """The fields, at any depth, whose key stands more than once in a mapping."""
    for entry in (*field.entries(), *field.items()):
        if entry.entry is not None and entry.entry.duplicates and not entry.use:
            yield entry
        yield from _duplicates(entry)


@rule("FS503", "llamafactory-value", stage=Stage.LOAD)
def llamafactory_value(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """An argument has a value that LLaMA-Factory refuses.

    Values are not converted, and only a few are checked when the arguments are read: `finetuning_type` must be a known
    method, `ray_storage_filesystem` s3, gs or gcs (0.9.3 and 0.9.4), `adapter_name_or_path` and added tokens are text
    with commas between the parts (a YAML list has no split()), the switches of GaLore, APOLLO and BAdam are added up
    and cannot be text. Numbers of pixels are compared, and where they are asked for `val_size` and
    `dpo_label_smoothing` too; LoRA's alpha is computed from its rank, and reference and reward models are quantized to
    4 or 8 bits. A model must be named. A copy of LLaMA-Factory in the repository may have methods of its own.

    Source: LLaMA-Factory 0.9.0 to 0.9.5, __post_init__ of the dataclasses of hparams/.
    """
    method = config.field.get("finetuning_type")
    wrong = method.node is not None and not method.is_unknown and method.plain not in facts.finetuning_types
    if wrong and not config.may_know(method.written, "METHODS"):
        yield method.finding(
            f'finetuning_type cannot be "{method.written}"' if method.written else "finetuning_type must not be empty",
            help=did_you_mean(method.written, facts.finetuning_types) or f"write {one_of(facts.finetuning_types)}",
            fix=mending.respelled(method, facts.finetuning_types),
        )
    storage = config.field.get("ray_storage_filesystem")
    words = [str(word) for word in spec.choices] if (spec := config.spec(storage.name)) is not None else []
    if words and not (storage.is_absent or storage.is_unknown) and storage.plain not in words:
        help, fix = did_you_mean(storage.written, words) or f"write {one_of(words)}", mending.respelled(storage, words)
        yield storage.finding(f"ray_storage_filesystem must be {one_of(words)}", help=help, fix=fix)
    model = config.field.get("model_name_or_path")
    if model.is_null:
        yield model.finding("model_name_or_path must not be empty", help="write the name or path of a model")
    elif model.node is None and not config.gives("model_name_or_path"):
        yield config.field.finding("model_name_or_path is missing", help="add the name or path of a model")
    for name in facts.split_texts:
        field = config.field.get(name)
        if field.text().wrong_type:
            help = "write one text, with commas between the parts"
            parts = [item.text().known for item in field.items()]
            texts = [part for part in parts if part and "," not in part]
            fix = mending.as_text(field, ",".join(texts)) if texts and len(texts) == len(parts) else None
            at_key = field.is_sequence or field.is_mapping
            yield field.finding(f"{name} must be a text", help=help, fix=fix, at_key=at_key)
    for name in SUMMED:
        field = config.field.get(name)
        if field.text().known is not None and config.spec(name) is not None:
            message = f'{name} must be true or false, not "{field.written}"'
            fix = mending.switched(field)
            yield field.finding(message, help="write true or false" if fix is None else "remove the quotes", fix=fix)
        elif field.is_sequence or field.is_mapping:
            yield field.finding(f"{name} must be true or false", help="write true or false", at_key=True)
    yield from _pixels(config, facts)
    yield from _compared(config, facts)
    rank = config.field.get("lora_rank")
    if rank.is_null and not is_true(config.data("lora_alpha")):
        yield rank.finding("lora_rank must not be empty", help="write a number such as 8, or remove it")
    for name in MODEL_BITS:
        bits = config.field.get(name)
        if not bits.is_absent and not bits.is_unknown and bits.plain not in (4, 8):
            yield bits.finding(f"{name} must be 4 or 8, not {bits.written}", help="write 4 or 8")


def _compared(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """Values that are compared with a number and are none."""
    for name in dict.fromkeys(name for name, _ in facts.compared):
        field = config.field.get(name)
        given = field.node is not None and not field.is_unknown and name not in config.overridden
        if not given or isinstance(field.plain, (int, float)):
            continue
        conditions = [condition for of, condition in facts.compared if of == name]
        if any(all(term.test(config) is True for term in terms_of(condition)) for condition in conditions):
            written = f'not "{field.written}"' if field.text().known is not None else "to be compared with one"
            yield field.finding(f"{name} must be a number, {written}", help="write a number such as 0.1")


def _pixels(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """Numbers of pixels that cannot be compared: a text, a list or nothing on one side."""
    for kind in facts.pixels_compared:
        sides = [config.field.get(f"{kind}_{end}_pixels") for end in ("max", "min")]
        texts = [side for side in sides if side.text().known is not None]
        lists = [side for side in sides if side.is_sequence]
        others = lists if len(lists) == 1 else [side for side in sides if side.is_null or side.is_mapping]
        for side in texts if len(texts) == 1 else others:
            written = (
                f'"{side.written}"' if texts else "a mapping" if side.is_mapping else "a list" if lists else "empty"
            )
            yield side.finding(
                f"{side.name} must be a number, not {written or 'empty'}",
                help="write a number such as 589824",
                fix=_product(side),
            )
            break


def _product(side: Field) -> Fix | None:
    """The number of pixels that `768*768` means."""
    match = _AREA.fullmatch(side.written)
    return mending.written(side, str(int(match[1]) * int(match[2]))) if match else mending.whole(side)


_AREA = regex(r"\s*([0-9]{1,6})\s*[*x]\s*([0-9]{1,6})\s*")


@rule("FS504", "llamafactory-word", stage=Stage.RUN, severity=Severity.WARNING)
def llamafactory_word(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """An argument has an unknown word.

    Words are not checked when a YAML file is read. A wrong `stage` ends the run after everything is loaded ("unknown
    task"), others fail when they are first needed, and some have no effect: with a `quantization_method` that the
    release does not know the model is loaded unquantized, without a message (`bitsandbytes` is called `bnb` since
    0.9.3).

    Source: LLaMA-Factory 0.9.0 to 0.9.5, the dataclasses of hparams/, train/tuner.py and model_utils/quantization.py.
    """
    for table in facts.tables.values():
        for name, spec in table.items():
            words = [str(choice) for choice in spec.choices]
            value = config.field.get(name).text()
            if not words or name in _REFUSED_WORDS or not value.known_and_not_in(words):
                continue
            if config.may_know(str(value)):
                continue
            yield value.finding(
                f'{name} cannot be "{value}"{_consequence(name, config)}',
                help=did_you_mean(str(value), words) or f"write {one_of(words)}",
                fix=mending.respelled(value, words),
            )


_REFUSED_WORDS = ("finetuning_type", "infer_backend", "ray_storage_filesystem")
"""Words that are checked when they are read: FS503, and a limit."""


def _consequence(name: str, config: LlamaFactoryConfig) -> str:
    if name == "quantization_method" and config.quantizes:
        return ": the model is not quantized"
    return f": the stages are {some_of(STAGES, 6)}" if name == "stage" else ""


@rule("FS505", "llamafactory-data-limit", stage=Stage.LOAD, follows=("FS503",))
def llamafactory_data_limit(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """Two settings of the data exclude each other, or one needs another.

    For example a validation share needs a dataset and no `eval_dataset`, and streamed data counts its validation in
    examples. `interleave_probs` has a number for each dataset, in one text with commas or in a list. The arguments are
    checked as they are read.

    Source: LLaMA-Factory 0.9.0 to 0.9.5, hparams/data_args.py and model_args.py.
    """
    yield from refused(facts.limits["data"], config)
    shares = config.field.get("interleave_probs")
    if config.data("mix_strategy") == "concat" or shares.is_absent or shares.is_unknown:
        return
    wrong = next(_no_numbers(shares), None)
    if wrong is not None:
        help = "write a share for each dataset, such as 0.7,0.3"
        yield shares.finding(f"interleave_probs must be numbers, not {wrong}", help=help, at_key=shares.is_sequence)
        return
    probs = _parts(shares)
    for name in ("dataset", "eval_dataset"):
        datasets = _parts(config.field.get(name))
        if probs is not None and datasets is not None and probs != datasets:
            yield config.field.get("interleave_probs").finding(
                f"interleave_probs has {probs} probabilities for {datasets} datasets in {name}",
                help="write one for each dataset",
            )


def _no_numbers(shares: Field) -> Iterator[str]:
    """The parts of interleave_probs that float() does not take: of a text with commas, a list, or a mapping's keys."""
    text = shares.text().known
    if text is not None:
        yield from (f'"{part.strip()}"' for part in text.split(",") if as_number(part.strip()) is None)
    elif shares.is_sequence:
        plain = (item for item in shares.items() if not item.is_unknown)
        yield from (item.written or "empty" for item in plain if as_number(item.plain) is None)
    elif shares.is_mapping:
        yield from (entry.name for entry in shares.entries() if as_number(entry.name) is None)
    else:
        yield f"{shares.written} alone"


def _parts(field: Field) -> int | None:
    """The number of comma-separated parts of a text, or of items of a list; None where it is not known."""
    text = field.text().known
    return len(field.items()) if field.is_sequence else text.count(",") + 1 if text is not None else None


@rule("FS506", "llamafactory-method-limit", stage=Stage.LOAD, follows=("FS503",))
def llamafactory_method_limit(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """A setting does not work with the training method or stage.

    LoRA's variants (DoRA, rsLoRA, LoRA+, PiSSA) and adapters need `finetuning_type: lora`; GaLore, APOLLO and BAdam
    need another method; PPO needs a reward model of the right kind.

    Source: LLaMA-Factory 0.9.0 to 0.9.5, hparams/finetuning_args.py and parser.py.
    """
    yield from refused(facts.limits["method"], config)


@rule("FS507", "llamafactory-quantization", stage=Stage.LOAD, follows=("FS503",))
def llamafactory_quantization(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """A setting does not work with a quantized model.

    `quantization_bit` needs LoRA (or OFT, since 0.9.4), an unchanged vocabulary, one adapter at most, and training
    without fp8. bitsandbytes quantizes to 4 or 8 bits, EETQ to 8, HQQ to 1 to 8 except 7; another number ends the run
    when the model is loaded.

    Source: LLaMA-Factory 0.9.0 to 0.9.5, hparams/parser.py and model/model_utils/quantization.py.
    """
    yield from refused(facts.limits["quantization"], config)
    if config.trains:
        yield from refused(facts.limits["quantized-training"], config)
    method, bits = config.quantization_method, config.field.get("quantization_bit")
    allowed = QUANTIZATION_BITS.get(str(method.known), ())
    known = method.is_(facts.bnb, "hqq", "eetq") and config.quantizes
    if known and bits.plain not in allowed:
        yield bits.finding(f"{method.known} cannot quantize to {bits.written} bits", help=f"write {one_of(allowed, 7)}")


@rule("FS508", "llamafactory-training-limit", stage=Stage.LOAD, follows=("FS503",))
def llamafactory_training_limit(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """Two settings of training exclude each other, or one needs another.

    Training needs a dataset, evaluation needs data to evaluate, streamed data needs `max_steps`, prediction needs
    `predict_with_generate` and stage sft; reward models and PPO do not load the best model at the end.

    Source: LLaMA-Factory 0.9.0 to 0.9.5, get_train_args of hparams/parser.py.
    """
    if not config.trains:
        return
    yield from refused(facts.limits["training"], config)
    reporters = config.field.get("report_to")
    if config.field.get("stage").text().is_("ppo"):
        for item in reporters.items() or [reporters]:
            if item.text().known_and_not_in(facts.ppo_reporters) and item.written not in ("none", "all"):
                help = f"write {one_of(facts.ppo_reporters)}"
                yield item.finding(f"PPO cannot report to {item.written}", help=help)


@rule(
    "FS509",
    "llamafactory-several-devices",
    stage=Stage.START,
    varies="warning where it depends on the number of GPUs, or the DeepSpeed file is not in the repository",
)
def llamafactory_several_devices(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """A setting does not work on several devices, or not under ZeRO-3.

    Layer-wise GaLore and APOLLO and BAdam by ratio run on one device; layer-wise BAdam on several devices needs
    DeepSpeed ZeRO-3. ZeRO-3 works without generation in evaluation, PiSSA, pure_bf16 and unsloth. It is an error where
    FSDP or DeepSpeed is on (for ZeRO-3, where its file is in the repository), else a warning: llamafactory-cli starts a
    process for each GPU that it finds.

    Source: LLaMA-Factory 0.9.0 to 0.9.5, get_train_args of hparams/parser.py.
    """
    if not config.trains:
        return
    severity = None if config.several else Severity.WARNING
    why = "" if config.several else ", but each GPU gets a process"
    if config.several or not _is_shipped(config):
        yield from refused(facts.limits["distributed"], config, severity=severity, why=why)
    if config.zero3:
        yield from refused(facts.limits["zero3"], config)
    elif config.names_zero3:
        why = f" (see {config.field.get('deepspeed').written})"
        yield from refused(facts.limits["zero3"], config, severity=Severity.WARNING, why=why)


@rule(
    "FS510",
    "llamafactory-quantized-under-fsdp",
    stage=Stage.START,
    varies="warning where the model is loaded before anything notices, or the DeepSpeed file is not in the repository",
)
def llamafactory_quantized_under_fsdp(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """The model is quantized in a way that cannot be sharded.

    Only 4-bit models of bitsandbytes can be. Under FSDP with RAM-efficient loading, and under DeepSpeed ZeRO-3, 8-bit,
    HQQ and EETQ models are refused when the model is loaded. FSDP comes from the file's own `fsdp` or from the
    accelerate file that launches it. Without RAM-efficient loading FSDP is not noticed there, and sharding fails later;
    FSDP1 surely does not shard 8-bit models.

    Set `quantization_bit: 4` with bitsandbytes.

    Source: LLaMA-Factory 0.9.0 to 0.9.5, model/model_utils/quantization.py; transformers, is_fsdp_enabled.
    """
    if not config.quantizes:
        return
    bits, method = config.field.get("quantization_bit"), config.quantization_method
    shardable = method.is_(facts.bnb) and bits.plain == 4
    if shardable or not method.is_(facts.bnb, "hqq", "eetq") or bits.plain not in QUANTIZATION_BITS[str(method.known)]:
        return
    what = f"{bits.written}-bit models" if method.is_(facts.bnb) else f"{str(method).upper()} models"
    setup = next((setup for setup in config.setups if not setup.ram_efficient_loading.unknown), None)
    if setup is not None:
        launched = setup.switch.document is not config.field.document
        noticed = setup.ram_efficient_loading.or_when_absent(launched).is_(True)
        # FSDP1 flattens parameters, and those of 8-bit models are integers.
        raises = noticed or (setup.is_fsdp1 and method.is_(facts.bnb))
        yield bits.finding(
            f"FSDP cannot shard {what}",
            help="set quantization_bit: 4 with bitsandbytes",
            severity=None if raises else Severity.WARNING,
            stage=None if noticed else Stage.PREPARE,
            related=setup.switch.relate("FSDP is on here"),
        )
        return
    if config.zero3 or config.names_zero3:
        yield bits.finding(
            f"ZeRO-3 cannot shard {what}",
            help="set quantization_bit: 4 with bitsandbytes",
            severity=None if config.zero3 else Severity.WARNING,
        )


@rule(
    "FS511", "llamafactory-dataset", stage=Stage.START, varies="warning where a part of the definition is only not read"
)
def llamafactory_dataset(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """A dataset is not defined, or its definition does not fit the stage.

    The names in `dataset` and `eval_dataset` are keys of `dataset_info.json` in the folder `dataset_dir` (`data`).
    Reward models and DPO train on pairs of answers, so their datasets have `ranking: true`, with columns for the chosen
    and the rejected answer; all other stages refuse such a dataset. The data are loaded before the model.

    Checked where the repository has exactly one such file for the folder.

    Source: LLaMA-Factory 0.9.0 to 0.9.5, get_dataset_list of data/parser.py, data/loader.py and data/converter.py.
    """
    info = config.dataset_info
    given = {"dataset", "eval_dataset", "dataset_dir", "stage", "tokenized_path"} & config.overridden
    if info is None or given or not config.trains or not config.field.get("tokenized_path").is_absent:
        return
    defined = {entry.name: entry for entry in info.entries()}
    for place, name in _dataset_names(config):
        if name not in defined and name in DEMO_DATASETS and _is_shipped(config):
            continue  # The copy has datasets of its own; nobody starts the examples that came with it.
        if name not in defined:
            yield place.finding(
                f"dataset {name} is not defined in {info.document.path}",
                help=did_you_mean(name, defined) or f"add it there; it has {some_of(defined)}",
            )
        elif defined[name].is_mapping:
            yield from _definition(place, defined[name], config, facts)


def _is_shipped(config: LlamaFactoryConfig) -> bool:
    """The file lies where LLaMA-Factory's own examples do in a copy of its source."""
    return _SHIPPED.search(config.field.document.path) is not None


_SHIPPED = regex(r"(?:^|/)examples/(?:extras|inference|merge_lora|train_[a-z]+)/")


def _dataset_names(config: LlamaFactoryConfig) -> Iterator[tuple[Field, str]]:
    """The names of the datasets, each with its place."""
    for key in ("dataset", "eval_dataset"):
        field = config.field.get(key)
        for item in field.items() if field.is_sequence else [field]:
            names = item.text().known
            yield from ((item, name.strip()) for name in (names or "").split(",") if name.strip())


def _definition(
    place: Field, definition: Field, config: LlamaFactoryConfig, facts: LlamaFactoryFacts
) -> Iterator[Finding]:
    """What is wrong with the definition of a dataset for this stage."""
    name, stage = definition.name, config.field.get("stage").text().or_when_absent("sft")
    ranking, columns = definition.get("ranking"), definition.get("columns")
    ranked = ranking.plain is True
    if stage.is_(*RANKED_STAGES) and (ranking.node is None or ranking.plain is False):
        yield place.finding(
            f"dataset {name} has no pairs of answers: stage {stage} needs ranking: true",
            help="use a dataset with ranking: true",
            related=definition.relate("defined here"),
        )
        return
    own_stage = stage.known_and_not_in(STAGES) and config.may_know(str(stage))
    if ranked and stage.known_and_not_in(RANKED_STAGES) and not own_stage:
        yield place.finding(
            f"dataset {name} has pairs of answers: they are for the stages rm and dpo, not {stage}",
            help="use another dataset, or set stage: dpo",
            related=ranking.relate("ranking is set here"),
        )
        return
    if not any(definition.get(key).node is not None for key in DATASET_SOURCES):
        yield place.finding(
            f"dataset {name} has no file_name",
            help="add file_name or hf_hub_url to its definition",
            related=definition.relate("defined here"),
        )
    word = definition.get("formatting").text()
    if facts.dataset_formats and word.known_and_not_in(facts.dataset_formats) and not config.may_know(str(word)):
        yield place.finding(
            f"dataset {name} has an unknown formatting: {word}",
            help=did_you_mean(str(word), facts.dataset_formats) or f"write {one_of(facts.dataset_formats)}",
            related=word.field.relate("written here"),
        )
    missing = [column for column in ("chosen", "rejected") if columns.get(column).node is None]
    if ranked and missing and not columns.is_unknown:
        yield place.finding(
            f"dataset {name} names no column for the {missing[0]} answer",
            help=f"add {' and '.join(missing)} to its columns",
            related=definition.relate("defined here"),
        )
    for section, known in (("columns", DATASET_COLUMNS), ("tags", DATASET_TAGS)):
        for entry in definition.get(section).entries():
            if entry.name not in known and not config.may_know(entry.name):
                yield place.finding(
                    f"dataset {name}: {entry.name} in {section} is not read",
                    help=did_you_mean(entry.name, known) or f"write {one_of(known)}",
                    severity=Severity.WARNING,
                    stage=Stage.RUN,
                    related=entry.relate("written here"),
                )


@rule(
    "FS512",
    "llamafactory-template",
    stage=Stage.START,
    varies="warning where no release has the template: an installed copy of LLaMA-Factory may have been given it",
)
def llamafactory_template(config: LlamaFactoryConfig, facts: LlamaFactoryFacts) -> Iterator[Finding]:
    """The release does not have this chat template.

    The name is looked up once the tokenizer is loaded, for every stage and command. New models come with new templates,
    so a config for one of them needs the release that brought it.

    Source: LLaMA-Factory 0.9.0 to 0.9.5, data/template.py, get_template_and_fix_tokenizer.
    """
    name = config.field.get("template").text()
    if "template" in config.overridden or config.is_megatron or not name.known_and_not_in(facts.templates):
        return
    if config.may_know(str(name)) or config.arguments.reader.registers("register_template", str(name)):
        return
    known = declarations("llamafactory")
    having = [release for release in known.names if str(name) in known.keys("templates", release)]
    fix = None if having else mending.respelled(name, facts.templates)
    if having:
        last = having[-1] == known.names[-1]
        help = f"install LLaMA-Factory {having[0]} or later" if last else f"{having[-1]} was the last release with it"
    else:
        help = did_you_mean(str(name), facts.templates) or "write the template of the model, or remove it"
    severity = Severity.ERROR if having else Severity.WARNING
    yield name.finding(f"LLaMA-Factory {facts.release} has no template {name}", help=help, fix=fix, severity=severity)
