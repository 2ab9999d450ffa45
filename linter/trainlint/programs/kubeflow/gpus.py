"""How many GPUs a list of resources counts as, for the Trainer.

Source: GetNumGPUPerNode of the controller: the first resource whose name contains `gpu`, of the requests or, where that
gives none, of the limits. With several such names the order of a Go map decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from trainlint.programs.kubeflow.quantities import Amount, whole

Amounts: TypeAlias = Iterable[tuple[str, "Amount | None"]]
"""Resources by name; an amount that is not known is None."""


def possible_gpus(requests: Amounts | None, limits: Amounts | None) -> set[int] | None:
    """The numbers that the count can give; None where a list or the amount of a GPU is not known."""
    requested, limited = _counts(requests), _counts(limits)
    if requested is None or limited is None:
        return None
    return (requested - {0}) | ({max(count, 0) for count in limited} if 0 in requested else set())


def _counts(listed: Amounts | None) -> set[int] | None:
    if listed is None:
        return None
    amounts = [amount for name, amount in listed if "gpu" in name.lower()]
    known = [whole(amount) for amount in amounts if amount is not None]
    return set(known or [0]) if len(known) == len(amounts) else None
