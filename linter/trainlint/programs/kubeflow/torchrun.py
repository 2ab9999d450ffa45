"""How torchrun is started, and its options."""

from __future__ import annotations

from collections.abc import Sequence

from trainlint.reading.values import Field
from trainlint.repository.invocations import Command, Invocation, invocations_in

TORCHRUN = Command(
    "torchrun",
    (("torchrun",), ("torch.distributed.run",), ("torch.distributed.launch",)),
    r"torchrun|torch\.distributed\.(?:run|launch)",
    bare=frozenset("--standalone --module -m --no_python --run_path --use_env --signals_to_handle".split()),
    dashes_as_underscores=True,
    ends_at_script=True,
)
"""Source: argument parser of torch.distributed.run, torch 2.13."""


def starts_in(fields: Sequence[Field]) -> list[Invocation]:
    """Where torchrun is started in some fields of containers."""
    mappings = [field.parent.node for field in fields if field.parent is not None]
    documents = {id(field.document): field.document for field in fields}
    return [
        invocation
        for document in documents.values()
        for invocation in invocations_in(document, [TORCHRUN])
        if invocation.owner is not None and any(invocation.owner.node is node for node in mappings)
    ]
