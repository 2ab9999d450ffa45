"""How torchrun is started, and its options."""

from __future__ import annotations

from trainlint.repository.invocations import Command

TORCHRUN = Command(
    "torchrun",
    (("torchrun",), ("torch.distributed.run",), ("torch.distributed.launch",)),
    r"torchrun|torch\.distributed\.(?:run|launch)",
    bare=frozenset("--standalone --module -m --no_python --run_path --use_env --signals_to_handle".split()),
    dashes_as_underscores=True,
    ends_at_script=True,
)
"""Source: argument parser of torch.distributed.run, torch 2.13."""
