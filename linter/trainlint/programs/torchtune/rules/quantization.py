"""The rules on quantizers."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.rule import rule


@rule("TT319", "quantizer-missing", stage=Stage.START)
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
