"""The rules on models: their sizes, and LoRA."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage, nearest, one_of
from trainlint.programs.torchtune.facts import (
    LORA_TARGETS,
    TIED_OUTPUT,
)
from trainlint.programs.torchtune.omegaconf import Node
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.rule import rule


@rule("TT315", "unmatched-lora-target", stage=Stage.RUN, severity=Severity.WARNING)
def unmatched_lora_target(settings: RecipeSettings) -> Iterator[Finding]:
    """A name in lora_attn_modules matches no layer and has no effect.

    torchtune puts LoRA on q_proj, k_proj, v_proj and output_proj; the output projection is not called o_proj as in
    other libraries. Any other name is accepted and does nothing: with `[q_prj]` no layer gets LoRA.

    Source: the LoRA builders of torchtune 0.4.0 to 0.6.1, those of 0.6.1 called with such names.
    """
    for targets in _lora_targets(settings):
        for item in targets.elements:
            name = item.text()
            if name.known is not None and name.known not in LORA_TARGETS:
                hint = "output_proj" if name.is_("o_proj", "out_proj", "proj") else nearest(name.known, LORA_TARGETS)
                yield item.field.finding(
                    f"{name} is not a LoRA target of torchtune and has no effect",
                    help=f'did you mean "{hint}"?' if hint else f"write {one_of(LORA_TARGETS)}",
                )


@rule("TT316", "no-lora-target", stage=Stage.START)
def no_lora_target(settings: RecipeSettings) -> Iterator[Finding]:
    """lora_attn_modules is empty.

    The builders of LoRA models need at least one attention module and raise on an empty list, also with
    apply_lora_to_mlp.

    Source: the LoRA builders of torchtune 0.4.0 to 0.6.1.
    """
    for targets in _lora_targets(settings):
        if targets.own and targets.wrong_type and not targets.elements and not targets.entries:
            yield targets.field.finding("lora_attn_modules must not be empty", help=f"add {one_of(LORA_TARGETS)}")


def _lora_targets(settings: RecipeSettings) -> Iterator[Node]:
    for section in settings.components:
        path = section.get("_component_").text().known or ""
        targets = section.get("lora_attn_modules")
        if path.startswith("torchtune.models.") and targets.present:
            yield targets


@rule("TT317", "lora-on-tied-output", stage=Stage.RUN, severity=Severity.WARNING)
def lora_on_tied_output(settings: RecipeSettings) -> Iterator[Finding]:
    """LoRA is put on an output layer that is the embedding itself.

    llama3_2 1B and 3B and qwen2_5 up to 3B have no output layer of their own. `apply_lora_to_output: True` passes `tune
    validate` and the recipe's start; the builder of the model raises after the checkpoint has been read.

    Source: the LoRA builders of torchtune 0.4.0 to 0.6.1.
    """
    for section in settings.components:
        path = section.get("_component_").text().known or ""
        output = section.get("apply_lora_to_output")
        if TIED_OUTPUT.match(path) and output.own and output.truth().is_(True):
            yield output.field.finding(
                f"{path.rpartition('.')[2]} has no output layer of its own for LoRA, and its builder raises",
                help="set apply_lora_to_output: False",
            )
