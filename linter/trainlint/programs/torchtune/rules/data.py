"""The rules on tokenizers, datasets and collate functions."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage
from trainlint.programs.torchtune.facts import (
    MULTIMODAL,
    TorchtuneFacts,
)
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.rule import rule


@rule("TT313", "left-padding-collator", stage=Stage.START)
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
        )


@rule("TT314", "packed-dataset", stage=Stage.START)
def packed_dataset(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """A dataset is packed that cannot be.

    `packed: True` joins samples up to the tokenizer's max_seq_len. Where that is null, as in most shipped configs, the
    dataset raises, after every rank has loaded the model. Multimodal datasets refuse packing.

    Source: the dataset builders of torchtune 0.4.0 to 0.6.1.
    """
    tokenizer = settings.at("tokenizer")
    builder = tokenizer.get("_component_").text().known or ""
    length = tokenizer.get("max_seq_len")
    dataset = settings.at("dataset")
    for part in [dataset, *dataset.elements]:
        packed = part.get("packed")
        path = part.get("_component_").text().known or ""
        signature = facts.component(path).signature if path.startswith("torchtune.datasets.") else None
        if signature is None or "packed" not in signature.parameters or not packed.truth().is_(True):
            continue
        if path.startswith(MULTIMODAL):
            yield packed.field.finding("multimodal datasets cannot be packed", help="set packed: False")
        elif not length.given and builder.startswith("torchtune.models.") and builder.endswith("_tokenizer"):
            place = next((node for node in (packed, length) if node.own), packed)
            yield place.field.finding(
                "a packed dataset needs the tokenizer's max_seq_len", help="set tokenizer.max_seq_len, or packed: False"
            )
