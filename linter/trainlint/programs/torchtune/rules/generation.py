"""The rules on generation and evaluation."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage
from trainlint.programs.torchtune import mended
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.rule import rule


@rule("TT357", "generation-prompt", stage=Stage.TRAIN)
def generation_prompt(settings: RecipeSettings) -> Iterator[Finding]:
    """The prompt of a generation is not a mapping with a text for `user`.

    Up to 0.3 it was a text. Since then it has `user` and, if wanted, `system`, and a text raises after the model has
    been loaded.

    Source: convert_prompt_to_tokens of generate, torchtune 0.4.0 to 0.6.1.
    """
    prompt = settings.at("prompt")
    if settings.recipe is None or settings.recipe.name != "generate" or settings.fork or not prompt.present:
        return
    user = prompt.get("user")
    if prompt.unknown or not prompt.own:
        return
    help = "write prompt: {system: null, user: Tell me a joke}"
    if not prompt.wrong_type or prompt.elements:
        yield settings.refusal(prompt, message="prompt must be a mapping with user and system", help=help)
    elif not user.present:
        yield settings.refusal(prompt, message="prompt has no user", help=help)
    elif not user.unknown and user.text().known is None:
        yield settings.refusal(user, message="prompt.user must be a text", help=help)


@rule("TT358", "evaluation-tasks", stage=Stage.START)
def evaluation_tasks(settings: RecipeSettings) -> Iterator[Finding]:
    """The tasks of an evaluation are not a list of names.

    A text is read letter by letter, and the harness then knows no such task.

    Source: eleuther_eval of torchtune 0.4.0 to 0.6.1.
    """
    tasks = settings.at("tasks")
    if settings.recipe is None or settings.recipe.name != "eleuther_eval" or settings.fork or not tasks.own:
        return
    if not tasks.present or tasks.unknown or tasks.elements:
        return
    text = tasks.text().known
    help = f"write [{text}]" if text else 'write ["truthfulqa_mc2"]'
    alone = tasks.text().known
    fix = mended.written(tasks, f"[{alone}]") if alone and alone.isidentifier() else None
    yield settings.refusal(tasks, message="tasks must be a list of names", help=help, fix=fix)
