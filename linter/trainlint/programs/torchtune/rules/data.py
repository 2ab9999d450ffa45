"""The rules on tokenizers, datasets and collate functions."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage, did_you_mean, one_of
from trainlint.programs.torchtune import mended
from trainlint.programs.torchtune.facts import (
    COLLATE_FUNCTIONS,
    COLUMNS,
    CONVERSATION_STYLES,
    FAMILY_LENGTHS,
    FAMILY_VOCABULARIES,
    FIRST_SPECIAL_TOKEN,
    LOADERS_OF_ENDINGS,
    MAPPED,
    MULTIMODAL,
    NO_BPE_VOCABULARY,
    NOT_A_TOKENIZER,
    PACKAGED_SOURCES,
    PREFERENCE_DATASETS,
    TorchtuneFacts,
    family_of,
)
from trainlint.programs.torchtune.omegaconf import ConfigNode, is_dotted_path
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.rule import rule


@rule("TT313", "left-padding-collator", stage=Stage.PREPARE)
def left_padding_collator(settings: RecipeSettings) -> Iterator[Finding]:
    """The collate function pads on the left, which recipes that train refuse.

    Source: _setup_data of the fine-tuning recipes, torchtune 0.4.0 to 0.6.1 (qat_distributed since 0.5.0).
    """
    collate = settings.at("collate_fn")
    if settings.checks("left-pad") and collate.text().known_and(lambda text: "left_pad_sequence" in text):
        yield settings.refusal(
            collate,
            message="left_pad_sequence is for inference only",
            help="write torchtune.data.padded_collate_sft, the default",
            fix=mended.worded(collate, "torchtune.data.padded_collate_sft", sure=False),
        )


@rule("TT314", "packed-dataset", stage=Stage.PREPARE)
def packed_dataset(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """A dataset is packed that cannot be.

    `packed: True` joins samples up to the tokenizer's max_seq_len. Where that is null, as in most shipped configs, the
    dataset raises, after every rank has loaded the model. Multimodal datasets and those of preferences refuse packing,
    and of several datasets either all are packed or none.

    Source: the dataset builders and ConcatDataset of torchtune 0.4.0 to 0.6.1.
    """
    tokenizer = settings.at("tokenizer")
    builder = tokenizer.get("_component_").text().known or ""
    length = tokenizer.get("max_seq_len")
    packed_parts = []
    for part in settings.datasets:
        packed = part.get("packed")
        path = part.get("_component_").text().known or ""
        signature = facts.component(path).signature if path.startswith("torchtune.datasets.") else None
        if signature is None or not (packed.truth().is_(True) or packed.unknown):
            continue
        packed_parts.append(part)
        if packed.unknown:
            continue
        if path.startswith(MULTIMODAL):
            fix = mended.written(packed, "False", sure=False)
            yield packed.field.finding("multimodal datasets cannot be packed", help="set packed: False", fix=fix)
        elif path.rpartition(".")[2] in PREFERENCE_DATASETS:
            fix = mended.removed(packed, sure=False)
            yield packed.field.finding("datasets of preferences cannot be packed", help="remove packed", fix=fix)
        elif "packed" not in signature.parameters:
            continue
        elif not length.given and builder.startswith("torchtune.models.") and builder.endswith("_tokenizer"):
            place = next((node for node in (packed, length) if node.own), packed)
            yield place.field.finding(
                "a packed dataset needs the tokenizer's max_seq_len", help="set tokenizer.max_seq_len, or packed: False"
            )
    ours = all((part.get("_component_").text().known or "").startswith("torchtune.") for part in settings.datasets)
    known = not any(part.get("packed").unknown for part in packed_parts)
    if ours and known and 0 < len(packed_parts) < len(settings.datasets):
        yield (
            packed_parts[0]
            .get("packed")
            .field.finding(
                "some of these datasets are packed and some are not", help="set packed to the same value in all of them"
            )
        )


@rule("TT332", "packs-beyond-model", stage=Stage.TRAIN)
def packs_beyond_model(settings: RecipeSettings) -> Iterator[Finding]:
    """Samples are packed to a length that the model does not take.

    Every pack is as long as the tokenizer's max_seq_len, and a model raises on a sequence that is longer than its own
    max_seq_len.

    Source: PackedDataset and TransformerDecoder of torchtune 0.4.0 to 0.6.1.
    """
    length = settings.at("tokenizer.max_seq_len")
    packed = [part for part in settings.datasets if part.get("packed").truth().is_(True)]
    section = settings.section("model")
    if section is None or not packed:
        return
    most = section.get("max_seq_len")
    limit = most.number().known or FAMILY_LENGTHS.get(family_of(section.get("_component_").text().known or ""))
    if not most.unknown and limit is not None and length.number().known_and(lambda number: number > limit):
        yield settings.refusal(
            length,
            most if most.present else section.get("_component_"),
            message=f"packs of {length.value} tokens are longer than the model's max_seq_len {limit:.0f}",
            help=f"set tokenizer.max_seq_len to {limit:.0f} or less",
        )


@rule("TT333", "tokenizer-file", stage=Stage.PREPARE)
def tokenizer_file(settings: RecipeSettings) -> Iterator[Finding]:
    """The tokenizer is given a file of another kind.

    Those of Llama, Mistral, Gemma and Phi read `tokenizer.model`, those of Qwen `vocab.json` and `merges.txt`. A
    `tokenizer.json` or `config.json` is read by none.

    Source: the tokenizers of torchtune 0.4.0 to 0.6.1.
    """
    tokenizer = settings.section("tokenizer")
    builder = _component(tokenizer) if tokenizer is not None else ""
    if tokenizer is None or not builder.startswith("torchtune.models."):
        return
    bpe = "qwen" in builder.lower()
    for key, wanted in (("path", "vocab.json" if bpe else "tokenizer.model"), ("merges_file", "merges.txt")):
        node = tokenizer.get(key)
        name = node.text().known
        if not node.own or not node.present or node.unknown or (key == "merges_file" and not bpe):
            continue
        base, component = posixpath.basename(name or ""), builder.rpartition(".")[2]
        foreign = NO_BPE_VOCABULARY if bpe else NOT_A_TOKENIZER
        if name is None:
            message = f"tokenizer.{key} must be the path of a file"
        elif not base:
            message = f"tokenizer.{key} is a directory"
        elif key == "path" and base.endswith(foreign):
            message = f"{component} does not read {base} as its {key}"
        else:
            continue
        yield settings.refusal(node, message=message, help=f"name its {wanted}")
        return


@rule("TT334", "tokens-beyond-vocabulary", stage=Stage.TRAIN)
def tokens_beyond_vocabulary(settings: RecipeSettings) -> Iterator[Finding]:
    """The tokenizer writes tokens that the model does not have.

    The special tokens of Llama 3's tokenizer begin at 128000, those of Qwen's at 151643, and every sample has some. A
    model with a smaller vocabulary raises an IndexError in the first step.

    Source: the tokenizers and model builders of torchtune 0.4.0 to 0.6.1.
    """
    tokenizer, section = settings.section("tokenizer"), settings.section("model")
    if tokenizer is None or section is None or tokenizer.get("special_tokens_path").given:
        return
    first = FIRST_SPECIAL_TOKEN.get(_component(tokenizer).rpartition(".")[2], 0)
    own = section.get("vocab_size")
    size = own.number().known if own.present else FAMILY_VOCABULARIES.get(family_of(_component(section)))
    if size is not None and 0 < size <= first:
        yield settings.refusal(
            tokenizer.get("_component_"),
            own if own.present else section.get("_component_"),
            message=f"the model has {size:.0f} tokens, and this tokenizer's go beyond {first}",
            help="use the tokenizer and the model of one family",
        )


@rule("TT335", "collate-function", stage=Stage.TRAIN)
def collate_function(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The collate function does not fit the recipe.

    Fine-tunes call it with a batch of samples, padding_idx and ignore_idx: padded_collate_sft, the default, or
    padded_collate_tiled_images_and_mask for images. padded_collate_dpo wants preferences, padded_collate and
    padded_collate_packed have other parameters. Packed datasets do not use it.

    Source: _setup_data of the fine-tuning recipes and torchtune.data, 0.4.0 to 0.6.1.
    """
    collate = settings.at("collate_fn")
    recipe = settings.recipe
    if recipe is None or "left-pad" not in recipe.checks or settings.fork or not collate.own or not collate.present:
        return
    path, default = collate.text().known, "write torchtune.data.padded_collate_sft, the default"
    if collate.unknown or settings.for_development or (path is not None and "left_pad_sequence" in path):
        return
    if path is None or "." not in path:
        message = "collate_fn must be the dotted path of a function"
        bare = path is not None and facts.component(f"torchtune.data.{path}").exists
        fix = mended.worded(collate, f"torchtune.data.{path}") if bare else None
        yield settings.refusal(collate, message=message, help=default, stage=Stage.PREPARE, fix=fix)
        return
    found = facts.component(path)
    name = path.rpartition(".")[2]
    if found.exists is False and path.startswith("torchtune."):
        message = f"torchtune {facts.release} has no {path}"
        hint = did_you_mean(name, found.known) or default
        fix = mended.respelled(collate, [f"{path.rpartition('.')[0]}.{word}" for word in found.known])
        yield settings.refusal(collate, message=message, help=hint, stage=Stage.PREPARE, fix=fix)
    elif path.startswith("torchtune.data.") and name in (COLLATE_FUNCTIONS if _has_images(settings) else _FOR_TEXT):
        packed = any(part.get("packed").truth().known is not False for part in settings.datasets)
        if not packed or all(part.get("packed").absent for part in settings.datasets):
            fix = mended.worded(collate, "torchtune.data.padded_collate_sft", sure=False)
            message = f"{name} does not collate samples of a fine-tune"
            yield settings.refusal(collate, message=message, help=default, fix=fix)


_FOR_TEXT = (*COLLATE_FUNCTIONS, "padded_collate_tiled_images_and_mask")
"""What datasets of text do not work with."""


def _has_images(settings: RecipeSettings) -> bool:
    """Some dataset may have images: it is none of torchtune's for text."""
    paths = [_component(part) for part in settings.datasets]
    return (
        not paths
        or not all(path.startswith("torchtune.datasets.") for path in paths)
        or any(path.startswith(MULTIMODAL) for path in paths)
    )


@rule("TT336", "dataset-of-another-task", stage=Stage.TRAIN, follows=("TT339",))
def dataset_of_another_task(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The dataset is one of preferences in a fine-tune, or one for a fine-tune in DPO.

    DPO compares a chosen with a rejected answer, which preference_dataset, hh_rlhf_helpful_dataset and
    stack_exchange_paired_dataset give; a fine-tune reads tokens and labels, which the others give. Where the loss is of
    the other task as well, it is reported alone: the recipe is the wrong one.

    Source: the datasets, collate functions and recipes of torchtune 0.4.0 to 0.6.1.
    """
    recipe = settings.recipe
    if recipe is None or not settings.sure:
        return
    wants = True if recipe.is_dpo else False if recipe.is_fine_tune else None
    for part in settings.datasets:
        place = part.get("_component_")
        path = place.text().known or ""
        found = facts.component(path) if path.startswith("torchtune.datasets.") and path.endswith("_dataset") else None
        if wants is None or found is None or not found.exists:
            continue
        name = path.rpartition(".")[2]
        if (name in PREFERENCE_DATASETS) != wants:
            gives = "no preferences, which DPO compares" if wants else "preferences, not tokens and labels"
            help = "use preference_dataset" if wants else "use a dataset for fine-tuning, such as chat_dataset"
            yield settings.refusal(place, *_loss(settings), message=f"{name} gives {gives}", help=help)


def _loss(settings: RecipeSettings) -> list[ConfigNode]:
    section = settings.section("loss")
    return [section.get("_component_")] if section is not None else []


@rule("TT337", "dataset-columns", stage=Stage.PREPARE)
def dataset_columns(settings: RecipeSettings) -> Iterator[Finding]:
    """A dataset's columns are not described as its builder wants.

    A column_map of instruct_dataset has the keys `input` and `output`, one of preference_dataset `chosen` and
    `rejected`, one of slimorca_dataset `conversations`. The conversation_style of chat_dataset is sharegpt or openai.

    Source: the dataset builders and their message transforms, torchtune 0.4.0 to 0.6.1.
    """
    for part in settings.datasets:
        name = _component(part).rpartition(".")[2] if _component(part).startswith("torchtune.datasets.") else ""
        columns, style = part.get("column_map"), part.get("conversation_style")
        wanted = COLUMNS.get(name, ())
        lacking = [key for key in wanted if key not in columns.entries]
        empty = columns.mapping is not None and not columns.mapping and wanted[:1] == ("input",)
        if name in MAPPED and columns.own and not columns.unknown and not columns.entries and _is_true(columns):
            message = f"column_map of {name} must be a mapping"
            help = "write the names of your columns, such as {input: question, output: answer}"
            yield settings.refusal(columns, message=message, help=help)
        elif wanted and columns.own and (columns.entries or empty) and lacking:
            yield settings.refusal(
                columns,
                message=f"column_map of {name} lacks {' and '.join(lacking)}",
                help=f"its keys are {' and '.join(wanted)}, its values the names of the columns",
            )
        null = style.present and style.absent
        if name == "chat_dataset" and style.own and (null or style.known_and_not_in(CONVERSATION_STYLES)):
            help = f"write {one_of(CONVERSATION_STYLES)}"
            message = f"there is no conversation_style {'null' if null else style.value}"
            fix = mended.respelled(style, CONVERSATION_STYLES)
            yield settings.refusal(style, message=message, help=help, fix=fix)
        if name and part.get("filter_fn").own and part.get("filter_fn").given:
            message = "filter_fn takes a function, which no config can give"
            yield settings.refusal(part.get("filter_fn"), message=message, help="write a dataset builder of your own")
        if name in _PASS_A_LENGTH_ON:
            yield settings.refusal(
                part.get("_component_"),
                message=f"{name} hands max_seq_len on to load_dataset, which refuses it",
                help="use text_completion_dataset with source and column",
            )


_PASS_A_LENGTH_ON = ("cnn_dailymail_articles_dataset", "wikitext_dataset")
"""Source: these builders of torchtune 0.4.0 to 0.6.1."""


@rule("TT359", "ending-for-loader", stage=Stage.PREPARE, severity=Severity.WARNING)
def ending_for_loader(settings: RecipeSettings) -> Iterator[Finding]:
    """The source of a dataset is the ending of its files, which is no loader.

    With `data_files`, `source` is the loader that reads them: text for .txt files, json for .jsonl, csv for .tsv. Any
    other word is looked up as a folder and on the Hub, which has no such data set.

    Source: load_dataset and the packaged builders of datasets 2.14 to 5.2.
    """
    for part in settings.datasets:
        source, builder = part.get("source"), _component(part)
        loader = LOADERS_OF_ENDINGS.get((source.text().known or "").lower().lstrip("."))
        if builder.startswith("torchtune.datasets.") and loader and source.own and part.get("data_files").given:
            message, fix = f"load_dataset has no loader {source.value}", mended.worded(source, loader)
            yield source.field.finding(message, help=f"write {loader}", fix=fix)


@rule("TT360", "unloadable-dataset", stage=Stage.PREPARE)
def unloadable_dataset(settings: RecipeSettings) -> Iterator[Finding]:
    """What the dataset is loaded from has a form that load_dataset refuses.

    source, name and data_dir are texts; data_files is a text, a list or a mapping of splits, and not empty. Files that
    are given as a text or a list all belong to the split train: any other split needs
    `data_files: {validation: held-out.json}`.

    Source: load_dataset, sanitize_patterns and ArrowReader of datasets 2.14 to 5.2.
    """
    for dataset in settings.datasets:
        if _component(dataset).startswith("torchtune.datasets.") and _component(dataset).endswith("_dataset"):
            yield from _no_texts(settings, dataset)
            yield from _no_files(settings, dataset.get("data_files"))
            yield from _no_such_split(settings, dataset)


def _no_texts(settings: RecipeSettings, dataset: ConfigNode) -> Iterator[Finding]:
    for key, needed in (("source", True), ("name", False), ("data_dir", False)):
        node = dataset.get(key)
        if not node.own or not node.present or node.unknown:
            continue
        if needed and node.text().known == "":
            yield settings.refusal(node, message="source of a dataset is empty", help=_SOURCES)
        elif node.text().known is None and (needed or node.given):
            message = f"{key} of a dataset must be a text, not {_kind(node)}"
            yield settings.refusal(node, message=message, help=_SOURCES if needed else "write it in quotes")


def _no_files(settings: RecipeSettings, files: ConfigNode) -> Iterator[Finding]:
    if not files.own or not files.given or files.unknown:
        return
    if not _is_true(files):
        yield settings.refusal(files, message="data_files is empty", help="name the files")
    elif files.text().known is None and not files.wrong_type:
        message = f"data_files must be a text, a list or a mapping, not {_kind(files)}"
        yield settings.refusal(files, message=message, help="write the path of the file")
    for of_split in files.entries.values():
        if not (of_split.unknown or of_split.text().known or of_split.elements):
            message = f"data_files names no file for {of_split.key}"
            yield settings.refusal(of_split, message=message, help="write the path of the file")


def _no_such_split(settings: RecipeSettings, dataset: ConfigNode) -> Iterator[Finding]:
    """Files that are not a mapping of splits have the split train alone."""
    files, split = dataset.get("data_files"), dataset.get("split")
    wanted = [item.value.known for item in split.elements or [split]]
    alone = files.text().known or (files.elements and not any(item.entries for item in files.elements))
    if None in wanted or not split.own or not alone or not dataset.get("source").is_(*PACKAGED_SOURCES):
        return
    names = (part.partition("[")[0].strip() for word in wanted for part in str(word).split("+"))
    other = next((name for name in names if name not in ("train", "all")), None)
    if other is not None:
        message = f'the files have no split "{other}"'
        help = f"write split: train, or data_files: {{{other or 'train'}: …}}"
        yield settings.refusal(split, files, message=message, help=help)


_SOURCES = "name a data set or a folder, or write json with data_files"


def _kind(node: ConfigNode) -> str:
    return "a mapping" if node.entries else "a list" if node.elements else str(node.value)


def _is_true(node: ConfigNode) -> bool:
    return bool(node.entries or node.elements or node.value.known)


@rule("TT338", "prompt-template", stage=Stage.PREPARE)
def prompt_template(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The tokenizer's prompt_template is no template.

    It is the dotted path of a template's class, or a mapping of roles to the texts before and after a message.

    Source: _get_prompt_template of torchtune 0.4.0 to 0.6.1.
    """
    template = settings.at("tokenizer.prompt_template")
    if settings.for_development:
        return
    if settings.section("tokenizer") is None or not template.own or not template.given or template.unknown:
        return
    path = template.text().known
    help = "write the dotted path of a template, such as torchtune.data.ChatMLTemplate"
    if path is None and (template.value.known is not None or template.elements):
        yield settings.refusal(template, message="prompt_template must be a path or a mapping", help=help)
    elif path is not None and not is_dotted_path(path):
        full = f"torchtune.data.{path}"
        fix = mended.worded(template, full) if facts.component(full).exists else None
        yield settings.refusal(template, message=f"prompt_template {path} is no dotted path", help=help, fix=fix)
    elif path is not None and path.startswith("torchtune.") and facts.component(path).exists is False:
        hint = did_you_mean(path.rpartition(".")[2], facts.component(path).known)
        near = [f"{path.rpartition('.')[0]}.{word}" for word in facts.component(path).known]
        message, fix = f"torchtune {facts.release} has no {path}", mended.respelled(template, near)
        yield settings.refusal(template, message=message, help=hint or help, fix=fix)


def _component(section: ConfigNode) -> str:
    return section.get("_component_").text().known or ""
