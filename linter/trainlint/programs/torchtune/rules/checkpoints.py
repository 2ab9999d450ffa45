"""The rules on checkpointers: directories, files, formats and model types, and what the save refuses."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from trainlint.findings import Finding, Stage, did_you_mean, one_of
from trainlint.lazy import regex
from trainlint.programs.torchtune import mended
from trainlint.programs.torchtune.facts import (
    CONVERSIONS,
    FALSE_WORDS,
    META_FAMILIES,
    NOT_WEIGHTS,
    TorchtuneFacts,
    conversion_of,
    family_of,
)
from trainlint.programs.torchtune.omegaconf import ConfigNode
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.rule import rule

_SHARD = regex(r"(.*?)(\d+)-of-(\d+)(.*)")


def kind_of(checkpointer: ConfigNode) -> str:
    """The class of a checkpointer of torchtune: `FullModelHFCheckpointer`; empty for one of another package."""
    path = checkpointer.get("_component_").text().known or ""
    return path.rpartition(".")[2] if path.startswith("torchtune.training.") else ""


def _checkpointers(settings: RecipeSettings, *kinds: str) -> Iterator[tuple[str, ConfigNode]]:
    for section in settings.checkpointers:
        kind = kind_of(section)
        if kind in (kinds or _FULL_MODEL) and any(node.own for node in section.walk()):
            yield kind, section


_FILE = regex(r"[\w./-]+\.\w+")
_HF, _META, _TUNE = "FullModelHFCheckpointer", "FullModelMetaCheckpointer", "FullModelTorchTuneCheckpointer"
_FULL_MODEL = (_HF, _META, _TUNE)


@rule("TT326", "output-in-checkpoint-dir", stage=Stage.PREPARE)
def output_in_checkpoint_dir(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The checkpointer would write into the directory that it reads from.

    Each save copies the other files of checkpoint_dir to output_dir, so the checkpointer refuses an output_dir that is
    checkpoint_dir or lies below it. Relative paths count from the directory that `tune run` is started in.

    Source: check_outdir_not_in_ckptdir of torchtune 0.5.0 and 0.6.1, which 0.4.0 does not have.
    """
    if not facts.has("torchtune.training.checkpointing._utils.check_outdir_not_in_ckptdir"):
        return
    for _, section in _checkpointers(settings):
        written, read = section.get("output_dir"), section.get("checkpoint_dir")
        inside, outside = written.text().known, read.text().known
        if inside is None or outside is None or inside.startswith("/") != outside.startswith("/"):
            continue
        below = posixpath.relpath(posixpath.join("/_", inside), posixpath.join("/_", outside))
        if below == "." or below.split("/")[0] != "..":
            where = "is" if below == "." else "is inside"
            yield settings.refusal(
                written.origin,
                read.origin,
                message=f"{section.key}.output_dir {where} its checkpoint_dir",
                help="write to a directory outside of checkpoint_dir",
            )


@rule("TT327", "checkpoint-files", stage=Stage.PREPARE)
def checkpoint_files(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """checkpoint_files has a form that the checkpointer refuses.

    It is a list of file names. FullModelHFCheckpointer also takes a mapping with `filename_format`, a text with two
    `{}`, and `max_filename`, a number in quotes with its leading zeros. The checkpointers of Meta's and torchtune's
    format read one file. A pattern (`*.safetensors`) is not expanded.

    Source: the checkpointers and FormattedCheckpointFiles of torchtune 0.4.0 to 0.6.1; save_checkpoint of quantize.
    """
    for kind, section in _checkpointers(settings):
        files = section.get("checkpoint_files")
        if not files.present or files.unknown or not any(node.own for node in files.walk()):
            continue
        for node, message, help, stage in _wrong_files(kind, files, settings):
            alone = node is files and node.text().known
            fix = mended.written(node, f"[{alone}]") if alone and _FILE.fullmatch(alone) else None
            yield settings.refusal(node, message=message, help=help, stage=stage, fix=fix)


def _wrong_files(
    kind: str, files: ConfigNode, settings: RecipeSettings
) -> Iterator[tuple[ConfigNode, str, str, Stage]]:
    """What is wrong with a list of files, its help, and when it raises."""
    elements, entries = files.elements, files.entries
    if entries and kind == _HF:
        wrong = list(_wrong_format(files))
        yield from wrong
        if not wrong and settings.recipe is not None and settings.recipe.name == "quantize":
            message = "quantize names its output after checkpoint_files[0], which a mapping does not have"
            yield files, message, "write checkpoint_files as a list", Stage.SAVE
    elif not files.wrong_type or entries:
        text = files.text().known
        help = f"write [{text}]" if text else "write a list of file names"
        yield files, "checkpoint_files must be a list of file names", help, Stage.PREPARE
    elif not elements:
        yield files, "checkpoint_files is empty", "name the files of the checkpoint", Stage.PREPARE
    elif kind != _HF and len(elements) > 1:
        hint = "name one file, or use torchtune.training.FullModelHFCheckpointer"
        yield files, f"{kind} reads one file, not {len(elements)}", hint, Stage.PREPARE
    else:
        for item in elements:
            text = item.text().known
            if text is None and not item.unknown:
                yield item, "a checkpoint file must be a name", "write the name of a file", Stage.PREPARE
                return
            elif text is not None and ("*" in text or "?" in text):
                help = "list the files, or give filename_format and max_filename"
                yield item, f"{text} is not expanded: there is no such file", help, Stage.PREPARE
            elif text is not None and text.endswith(NOT_WEIGHTS):
                yield item, f"{text} holds no weights", "name the files of the weights", Stage.PREPARE
        if kind == _HF:
            yield from _missing_shards(files, elements)


def _missing_shards(files: ConfigNode, elements: list[ConfigNode]) -> Iterator[tuple[ConfigNode, str, str, Stage]]:
    """Of files that are named as the parts of one checkpoint, not all are listed."""
    names = {item.text().known or "" for item in elements}
    shards = [match for name in names if (match := _SHARD.fullmatch(name))]
    whole = {(shard[1], shard[3], shard[4]) for shard in shards}
    if len(whole) == 1 and len(shards) == len(names):
        total = int(shards[0][3])
        if len(shards) < total:
            message = f"checkpoint_files lists {len(shards)} of the {total} files of this checkpoint"
            yield files, message, "list all files, or give filename_format and max_filename", Stage.PREPARE


def _wrong_format(files: ConfigNode) -> Iterator[tuple[ConfigNode, str, str, Stage]]:
    form, last = files.get("filename_format"), files.get("max_filename")
    lacking = " and ".join(node.key for node in (form, last) if not node.present)
    if lacking:
        yield files, f"checkpoint_files lacks {lacking}", f"add {lacking}, or write a list", Stage.PREPARE
    text = form.text().known
    if text is not None and _placeholders(text) != 2:
        yield form, "filename_format must have two {}", "write model-{}-of-{}.safetensors", Stage.PREPARE
    if last.present and not last.unknown:
        number = last.text().known
        if number is None:
            help = 'write it in quotes, with its leading zeros: "00004"'
            yield last, "max_filename must be a text", help, Stage.PREPARE
        elif not number.isdigit() or not int(number):
            yield last, f"max_filename must be a number, not {number}", "write the number of files", Stage.PREPARE


def _placeholders(text: str) -> int:
    try:
        from string import Formatter

        return sum(name is not None for _, name, _, _ in Formatter().parse(text))
    except ValueError:
        return 0


@rule("TT328", "checkpoint-format", stage=Stage.PREPARE)
def checkpoint_format(settings: RecipeSettings) -> Iterator[Finding]:
    """The checkpointer reads another format than that of the file.

    FullModelHFCheckpointer reads the weights of Hugging Face (`model-00001-of-00002.safetensors`, `pytorch_model.bin`),
    FullModelMetaCheckpointer those of Meta (`consolidated.00.pth`), and FullModelTorchTuneCheckpointer those with
    torchtune's own names. The names of the weights in the file decide, and those of another format raise a KeyError or
    do not fit the model.

    Source: load_checkpoint of the checkpointers, torchtune 0.4.0 to 0.6.1.
    """
    for kind, section in _checkpointers(settings):
        elements = section.get("checkpoint_files").elements
        place = section.get("_component_")
        if len(elements) != 1 and kind != _HF:
            continue
        for item in elements:
            name = posixpath.basename(item.text().known or "")
            meta = re.fullmatch(r"consolidated\.\d+\.pth", name) is not None
            face = name.endswith(".safetensors") or re.fullmatch(r"pytorch_model(-\d+-of-\d+)?\.bin", name) is not None
            wanted = _META if meta else _HF if face else kind
            if wanted != kind:
                yield settings.refusal(
                    place if place.own and not item.own else item,
                    item if place.own and not item.own else place,
                    message=f"{kind} does not read {name}, a file of {'Meta' if meta else 'Hugging Face'}",
                    help=f"write torchtune.training.{wanted}, or name other files",
                )
                break


@rule("TT320", "unknown-model-type", stage=Stage.PREPARE)
def unknown_model_type(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The checkpointer's model_type is unknown.

    It decides how weights are renamed, and is the name of a family in capitals (LLAMA3_2, QWEN2); several families
    share one. Any other value raises a KeyError when the checkpointer is built.

    Source: ModelType of torchtune 0.4.0 to 0.6.1.
    """
    if settings.fork or settings.for_development:
        return
    for _, section in _checkpointers(settings):
        kind = section.get("model_type")
        if not kind.own or not kind.present or kind.unknown or kind.is_(*facts.model_types):
            continue
        text = kind.text().known
        message = f"torchtune {facts.release} has no model_type {text}" if text else "model_type must be a name"
        hint = did_you_mean(text, facts.model_types) if text else ""
        fix = mended.respelled(kind, facts.model_types) if text else None
        yield kind.field.finding(message, help=hint or f"write {one_of(facts.model_types, 15)}", fix=fix)


@rule("TT329", "model-type-of-another-family", stage=Stage.PREPARE)
def model_type_of_another_family(settings: RecipeSettings) -> Iterator[Finding]:
    """The checkpointer's model_type cannot convert the weights of this model.

    It decides how weights are renamed. GEMMA, LLAMA2, LLAMA3, LLAMA3_2 and MISTRAL share one conversion of Hugging
    Face's files; QWEN2, GEMMA2, PHI3_MINI, PHI4, LLAMA3_VISION and REWARD have their own, and the weights of another
    family raise a KeyError. In Meta's format LLAMA3_2 drops the output layer, which the others keep.

    Source: load_checkpoint of the checkpointers and the conversions that it calls, torchtune 0.4.0 to 0.6.1.
    """
    for kind, section in _checkpointers(settings, _HF, _META):
        model = settings.root.get(_MODELS.get(section.key, "model"))
        path, given = model.get("_component_"), section.get("model_type")
        family, name = family_of(path.text().known or ""), given.text().known
        if not family or name is None or conversion_of(name) is None or not (given.own or path.own):
            continue
        fits, tied = CONVERSIONS[family], family in META_FAMILIES and family == "llama3_2"
        if kind == _META:
            refused = family in META_FAMILIES and (name == "LLAMA3_2") != tied and name != "LLAMA3_VISION"
            fits = ("LLAMA3_2",) if tied else tuple(word for word in fits if word != "LLAMA3_2")
        else:
            refused = _cannot_convert(family, name)
        if refused:
            yield settings.refusal(
                given,
                path,
                message=f"model_type {name} does not convert the weights of {family}",
                help=f"write {one_of(fits)}",
                fix=mended.worded(given, fits[0]) if len(fits) == 1 and given.own else None,
            )


_MODELS = {
    "teacher_checkpointer": "teacher_model",
    "ref_policy_checkpointer": "policy_model",
    "value_checkpointer": "reward_and_value_model",
    "reward_checkpointer": "reward_and_value_model",
}


def _cannot_convert(family: str, name: str) -> bool:
    """Hugging Face's weights of this family surely raise with this model_type."""
    wanted, given = conversion_of(CONVERSIONS[family][0]), conversion_of(name)
    if wanted == given:
        return False
    if given == "qwen2":
        return wanted not in ("generic", "reward")
    if given == "reward":
        return wanted != "generic" or family not in ("gemma", "llama3_2")
    return True


@rule("TT330", "distributed-checkpointer", stage=Stage.PREPARE)
def distributed_checkpointer(settings: RecipeSettings) -> Iterator[Finding]:
    """DistributedCheckpointer is no checkpointer of a recipe.

    It saves during training, beside the checkpointer, where `enable_async_checkpointing` is on. A recipe that builds it
    from its section `checkpointer` passes arguments that it does not take.

    Source: CheckpointClient and load_checkpoint of the recipes, torchtune 0.6.1.
    """
    for _, section in _checkpointers(settings, "DistributedCheckpointer"):
        place = section.get("_component_")
        if settings.recipe is not None:
            yield settings.refusal(
                place,
                message=f"DistributedCheckpointer cannot be the {section.key} of a recipe",
                help="write torchtune.training.FullModelHFCheckpointer and enable_async_checkpointing: True",
            )


@rule("TT331", "resumes-by-a-text", stage=Stage.PREPARE)
def resumes_by_a_text(settings: RecipeSettings) -> Iterator[Finding]:
    """resume_from_checkpoint is a text, and any text is true.

    With `"false"` the recipe looks for the state of an earlier run in output_dir, and raises where there is none.

    Source: the recipes and get_recipe_checkpoint_path of torchtune 0.4.0 to 0.6.1.
    """
    resume = settings.at("resume_from_checkpoint")
    text = resume.text().known
    if settings.reads("resume_from_checkpoint") and resume.own and text and text.lower() in FALSE_WORDS:
        message = f'resume_from_checkpoint is the text "{text}", which counts as true'
        fix = mended.written(resume, "false")
        yield settings.refusal(resume, message=message, help="write false, without quotes", fix=fix)
