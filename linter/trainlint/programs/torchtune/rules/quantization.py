"""The rules on quantizers."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage
from trainlint.lazy import regex
from trainlint.programs.torchtune.facts import FAMILY_WIDTHS, family_of
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.rule import rule


@rule("TT319", "quantizer-missing", stage=Stage.PREPARE)
def quantizer_missing(settings: RecipeSettings) -> Iterator[Finding]:
    """Quantization-aware training has no quantizer.

    The recipe needs it before it trains. The shipped configs have a section `quantizer` with the component
    `torchtune.training.quantization.Int8DynActInt4WeightQATQuantizer` and a `groupsize`.

    Source: _setup_model of qat_distributed and qat_lora_finetune_distributed, torchtune 0.4.0 to 0.6.1.
    """
    quantizer = settings.at("quantizer")
    if settings.recipe and settings.checks("quantizer") and not quantizer.given:
        yield settings.refusal(
            quantizer, message=f"{settings.recipe.name} needs a quantizer", help="add a section quantizer"
        )


@rule("TT349", "quantizer-of-another-recipe", stage=Stage.PREPARE, follows=("TT303",))
def quantizer_of_another_recipe(settings: RecipeSettings) -> Iterator[Finding]:
    """The recipe cannot use this quantizer.

    Quantization-aware training wants one with QAT in its name. Generation and evaluation want one without, together
    with FullModelTorchTuneCheckpointer, since they read weights that the recipe quantize has written. quantize takes
    both kinds. torchtune knows its own quantizers only.

    Source: get_quantizer_mode and the recipes of torchtune 0.4.0 to 0.6.1.
    """
    section, recipe = settings.section("quantizer"), settings.recipe
    if section is None or recipe is None or not settings.sure:
        return
    place, checkpointer = section.get("_component_"), settings.at("checkpointer._component_")
    path = place.text().known or ""
    name, trains = path.rpartition(".")[2], recipe.name.startswith("qat_")
    reads = recipe.name in ("generate", "eleuther_eval")
    help = f"write {_AWARE if trains else _AFTERWARDS}"
    if not _KNOWN.fullmatch(name):
        if path.startswith(("torch.", "torchao.", "torchtune.")) and not reads:
            yield settings.refusal(place, message=f"{name} is no quantizer that torchtune knows", help=help)
    elif (trains and "QAT" not in name) or (reads and "QAT" in name):
        yield settings.refusal(place, message=f"{recipe.name} does not work with {name}", help=help)
    elif reads and checkpointer.text().known_and(lambda text: text.endswith(("HFCheckpointer", "MetaCheckpointer"))):
        yield settings.refusal(
            checkpointer,
            place,
            message="quantized weights are read by FullModelTorchTuneCheckpointer alone",
            help="write torchtune.training.FullModelTorchTuneCheckpointer, or quantizer: null",
        )


_KNOWN = regex(r"(?:Int8DynActInt4Weight|Int4WeightOnly)(?:QAT)?Quantizer(?:ModuleSwap)?")
_AWARE = "torchtune.training.quantization.Int8DynActInt4WeightQATQuantizer"
_AFTERWARDS = "torchtune.training.quantization.Int8DynActInt4WeightQuantizer"


@rule("TT350", "nothing-quantized", stage=Stage.RUN, severity=Severity.WARNING)
def nothing_quantized(settings: RecipeSettings) -> Iterator[Finding]:
    """No layer can be quantized with this group size.

    A layer is quantized in groups along its width, and left as it is where groupsize does not divide the width. When
    that is so for all layers, quantize writes the plain weights under a name that ends in 8da4w, and QAT trains
    without fake quantization, without a message.

    Source: Int8DynActInt4WeightQuantizer and its QAT of torchao 0.7 to 0.15, the layers counted with 0.15.
    """
    section, model = settings.section("quantizer"), settings.section("model")
    if section is None or model is None or settings.recipe is None:
        return
    size, place = section.get("groupsize"), section.get("_component_").text().known or ""
    width, inner = model.get("embed_dim"), model.get("intermediate_dim")
    family = family_of(model.get("_component_").text().known or "")
    widths = [node.number().known for node in (width, inner) if node.present] if width.present else []
    known = widths or FAMILY_WIDTHS.get(family, ())
    groups = size.number().known
    odd = size.present and not size.unknown and (size.absent or (groups is not None and (groups < 0 or groups % 1)))
    ours = place.rpartition(".")[2].startswith("Int8DynActInt4Weight")
    if ours and size.own and (odd or (groups and known and all(each and each % groups for each in known))):
        yield size.field.finding(
            f"groups of {size.value} divide the width of no layer: nothing is quantized",
            help="write 32, 64, 128 or 256",
        )
