"""The rules on single values: text where a number is needed, and numbers that are out of range."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage
from trainlint.programs.torchtune import mended
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.programs.torchtune.values import settings_with
from trainlint.reading.scalars import Dialect, plain_value
from trainlint.rule import rule


@rule("TT322", "not-a-number", stage=Stage.PREPARE, follows=("TT304",))
def not_a_number(settings: RecipeSettings) -> Iterator[Finding]:
    """A setting that is calculated with is not a number.

    Recipes and components convert nothing: batch_size, epochs or max_steps_per_epoch, the sizes of a model, the
    optimizer's lr or the tokenizer's max_seq_len raise a TypeError when they are a text. OmegaConf reads scientific
    notation without a dot (`2e-5`) as a number.

    Source: the recipes and components of torchtune 0.4.0 to 0.6.1; torch.optim and bitsandbytes.optim.
    """
    for node, accepts in settings_with(settings):
        text = node.text().known
        if accepts.text or text is None or (accepts.spelled and _is_float(text)):
            continue
        value = plain_value(text, Dialect.OMEGACONF)
        # OmegaConf reads "12:30" as a number of minutes, which nobody means here.
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and ":" not in text
        yield settings.refusal(
            node,
            message=f'{node.name} must be a number, not the text "{text}"',
            help="remove the quotes" if number else "write a number",
            stage=accepts.stage,
            fix=mended.written(node, text) if number else None,
        )


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@rule("TT346", "unusable-value", stage=Stage.PREPARE, follows=("TT304",))
def unusable_value(settings: RecipeSettings) -> Iterator[Finding]:
    """A value is out of range, null, or of a wrong kind.

    Recipes and components use their settings as they are: batch_size 0, a dropout above 1, a rank that is no whole
    number, log_every_n_steps 0 or a null where a number is needed raise where they are used, often after the model has
    been loaded.

    Source: the recipes and components of torchtune 0.4.0 to 0.6.1, each setting of 0.6.1 run with such values.
    """
    told: set[str] = set()
    for node, accepts in settings_with(settings):
        problem, origin = accepts.problem(node), node.origin
        if problem is not None and origin.name not in told:
            told.add(origin.name)
            help = _HELP.get(node.key, accepts.wanted)
            yield settings.refusal(origin, message=f"{origin.name} {problem}", help=help, stage=accepts.stage_of(node))


_HELP = {
    "output_dir": "write a directory",
    "gradient_accumulation_steps": "write 1 for no accumulation",
    "log_every_n_steps": "write 1 to log each step",
    "seed": "write null for a random seed",
}
