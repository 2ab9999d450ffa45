"""The rules on losses: which one a recipe can call, and what it is given."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage
from trainlint.programs.torchtune.facts import DISTILLATION_LOSSES, LABEL_LOSSES, PAIR_LOSSES, TorchtuneFacts
from trainlint.programs.torchtune.omegaconf import ConfigNode
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.rule import rule


@rule("TT339", "loss-of-another-recipe", stage=Stage.TRAIN)
def loss_of_another_recipe(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The recipe cannot call this loss.

    A fine-tune calls its loss with logits and labels and reads its ignore_index: CEWithChunkedOutputLoss or
    torch.nn.CrossEntropyLoss. DPO calls it with the probabilities of two answers under two models: DPOLoss or RSOLoss.
    Distillation has a `loss` as a fine-tune and a `kd_loss`, one of the losses for distillation.

    Source: the recipes, torchtune.modules.loss and torchtune.rlhf.loss of 0.4.0 to 0.6.1.
    """
    recipe = settings.recipe
    if recipe is None or not settings.sure:
        return
    wanted: dict[str, tuple[str, ...]] = {
        "loss": PAIR_LOSSES if recipe.is_dpo else LABEL_LOSSES if recipe.is_fine_tune else ()
    }
    if recipe.is_distillation:
        wanted["kd_loss"] = DISTILLATION_LOSSES
    for key, losses in wanted.items():
        section = settings.section(key)
        name = _loss(section) if section is not None else ""
        if section is not None and losses and name and name not in losses and _exists(section, facts):
            no_index = losses is LABEL_LOSSES and name not in DISTILLATION_LOSSES
            first = settings.section("loss")
            no_index = no_index or (key == "kd_loss" and first is not None and "Chunked" in _loss(first))
            other = "" if (name in PAIR_LOSSES) == recipe.is_dpo else _RECIPES[recipe.is_dpo]
            yield settings.refusal(
                section.get("_component_"),
                message=f"{recipe.name} cannot call {name} as its {key}",
                help=f"write {_HELP[losses[0]]}{other}",
                stage=Stage.PREPARE if no_index else Stage.TRAIN,
            )


_RECIPES = {False: ", or run a recipe of DPO", True: ", or run a recipe that fine-tunes"}
_HELP = {
    LABEL_LOSSES[0]: "torchtune.modules.loss.CEWithChunkedOutputLoss",
    PAIR_LOSSES[0]: "torchtune.rlhf.loss.DPOLoss",
    DISTILLATION_LOSSES[0]: "torchtune.modules.loss.ForwardKLWithChunkedOutputLoss",
}


def _exists(section: ConfigNode, facts: TorchtuneFacts) -> bool:
    return facts.component(section.get("_component_").text().known or "").exists is not False


def _loss(section: ConfigNode) -> str:
    """The class of a loss of torchtune or torch; empty for one of another package."""
    path = section.get("_component_").text().known or ""
    known = path.startswith(("torchtune.modules.loss.", "torchtune.rlhf.loss.", "torch.nn."))
    return path.rpartition(".")[2] if known else ""


@rule("TT340", "unequal-chunks", stage=Stage.PREPARE)
def unequal_chunks(settings: RecipeSettings) -> Iterator[Finding]:
    """The two losses of a distillation do not cut the output into the same chunks.

    With CEWithChunkedOutputLoss the models give their output in num_output_chunks parts (8 by default), which kd_loss
    must have too; with a loss for the whole output kd_loss must be one for the whole output.

    Source: setup of the distillation recipes and torchtune.modules.loss, 0.4.0 to 0.6.1.
    """
    loss, other = settings.section("loss"), settings.section("kd_loss")
    if settings.recipe is None or not settings.recipe.is_distillation or loss is None or other is None:
        return
    first, second = _loss(loss), _loss(other)
    if first not in LABEL_LOSSES or second not in DISTILLATION_LOSSES:
        return
    if ("Chunked" in first) != ("Chunked" in second):
        place, wanted = other.get("_component_"), "Chunked" in first
        yield settings.refusal(
            place,
            loss.get("_component_"),
            message=f"{second} takes {'the whole output' if wanted else 'chunks'}, and {first} does not",
            help=f"use the loss with{'' if wanted else 'out'} ChunkedOutput in its name",
            stage=Stage.PREPARE if wanted else Stage.TRAIN,
        )
    elif "Chunked" in first:
        one, two = loss.get("num_output_chunks"), other.get("num_output_chunks")
        counts = [8 if not node.present else node.number().known for node in (one, two)]
        if all(count is not None and count >= 1 for count in counts) and counts[0] != counts[1]:
            yield settings.refusal(
                two if two.present else other.get("_component_"),
                one if one.present else loss.get("_component_"),
                message=f"loss has {counts[0]:.0f} chunks and kd_loss {counts[1]:.0f}",
                help="give both the same num_output_chunks",
            )
