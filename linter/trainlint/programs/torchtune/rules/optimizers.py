"""The rules on optimizers and learning rate schedulers."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.rule import rule


@rule("TT347", "unusable-optimizer", stage=Stage.TRAIN)
def unusable_optimizer(settings: RecipeSettings) -> Iterator[Finding]:
    """Recipes cannot step with this optimizer, or its arguments exclude one another.

    torch.optim.LBFGS wants a closure, SparseAdam sparse gradients and Muon matrices alone. `fused` excludes `foreach`
    and `differentiable`, `nesterov` needs a momentum, and `betas` are two numbers from 0 to below 1.

    Source: torch.optim of torch 2.5 to 2.13, each class built and stepped with 2.9, and bitsandbytes.optim; the recipes
    of torchtune 0.4.0 to 0.6.1.
    """
    section = settings.section("optimizer")
    path = section.get("_component_").text().known or "" if section is not None else ""
    if section is None or not path.startswith(("torch.optim.", "bitsandbytes.optim.")):
        return
    name = path.rpartition(".")[2]
    if name in _UNUSABLE:
        stage = Stage.PREPARE if name == "Muon" else Stage.TRAIN
        message = f"{name} {_UNUSABLE[name]}"
        yield settings.refusal(section.get("_component_"), message=message, help="write torch.optim.AdamW", stage=stage)
        return
    fused = section.get("fused")
    for other in (section.get("foreach"), section.get("differentiable")):
        if fused.truth().is_(True) and other.truth().is_(True):
            message = f"fused and {other.key} exclude each other"
            yield settings.refusal(other, fused, message=message, help="remove one of them", stage=Stage.PREPARE)
    betas = section.get("betas")
    momentum, nesterov = section.get("momentum"), section.get("nesterov")
    without = not (momentum.number().known or 0) > 0 or section.get("dampening").number().known
    if name == "SGD" and nesterov.truth().is_(True) and not momentum.unknown and without:
        message, help = "nesterov needs a momentum and no dampening", "add momentum: 0.9"
        yield settings.refusal(nesterov, momentum, message=message, help=help, stage=Stage.PREPARE)
    numbers = [item.number().known for item in betas.elements]
    unclear = any(item.unknown for item in betas.elements) or (not path.startswith("torch.") and not betas.elements)
    if not betas.own or not betas.present or betas.unknown or unclear:
        return
    fine = len(numbers) == 2 and all(number is not None and 0 <= number < 1 for number in numbers)
    if not fine:
        message = "betas must be two numbers from 0 to below 1"
        yield settings.refusal(betas, message=message, help="write [0.9, 0.95]", stage=Stage.PREPARE)


_UNUSABLE = {
    "LBFGS": "wants a closure, which no recipe gives it",
    "Muon": "takes matrices alone, and a model has other parameters",
    "SparseAdam": "wants sparse gradients, which no model of torchtune has",
}


@rule("TT348", "unusable-scheduler", stage=Stage.PREPARE)
def unusable_scheduler(settings: RecipeSettings) -> Iterator[Finding]:
    """The scheduler does not take what recipes pass.

    Recipes build the scheduler with num_training_steps and last_epoch. Those of torch.optim.lr_scheduler have no
    num_training_steps; torchtune's own is get_cosine_schedule_with_warmup.

    Source: _setup_lr_scheduler of the recipes, torchtune 0.4.0 to 0.6.1; torch 2.5 to 2.13.
    """
    section = settings.section("lr_scheduler")
    place = section.get("_component_") if section is not None else None
    if place is not None and place.text().known_and(lambda path: path.startswith("torch.optim.lr_scheduler.")):
        name = (place.text().known or "").rpartition(".")[2]
        yield settings.refusal(
            place,
            message=f"{name} does not take num_training_steps, which recipes pass",
            help="write torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup",
        )
