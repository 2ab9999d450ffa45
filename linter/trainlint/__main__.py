"""The command `trainlint`.

Every commit waits for the start of a hook, and click is a large part of it. So the command lines of hooks are read here
(`check`, `--force-exclude`, `--fix`, files), and all others by cli.py.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from trainlint import __version__
from trainlint.checking import COMMANDS, Options, guarded, run_check
from trainlint.settings import Overrides

_OTHERS = COMMANDS - {"check"}


def plain_options(arguments: Sequence[str]) -> Options | None:
    """The options in `check`, `--force-exclude`, `--fix` and paths; None for a command line with anything else."""
    words = list(arguments)
    if words[:1] == ["check"]:
        del words[0]
    elif words and words[0] in _OTHERS:
        return None
    flags = [word for word in words if word in ("--force-exclude", "--fix")]
    paths = [word for word in words if word not in flags]
    if any(path.startswith("-") for path in paths):
        return None
    overrides = Overrides(force_exclude="--force-exclude" in flags, cache=True, jobs=0)
    return Options(tuple(Path(path) for path in paths), overrides, fix="--fix" in flags)


class _Program:
    """The entry point: it runs without click where that is enough, and has the parts of click's command."""

    def __call__(self) -> None:
        """Run the command line."""
        # A run keeps most of what it makes, in which the collector would look for garbage again and again.
        gc.set_threshold(100_000)
        arguments = sys.argv[1:]
        # click completes words for a shell, and expands stars for that of Windows.
        options = None if os.name == "nt" or "_TRAINLINT_COMPLETE" in os.environ else plain_options(arguments)
        try:
            if options is not None:
                with guarded():
                    run_check(options)
            elif arguments == ["--version"]:
                print(f"trainlint {__version__}")
            else:
                from trainlint.cli import main as cli

                cli(prog_name="trainlint")
        finally:
            # The collector would look through all of it once more before the process ends.
            gc.freeze()

    def __getattr__(self, name: str) -> object:
        """A part of click's command: test runners want its `name` and `main`."""
        from trainlint.cli import main as cli

        return getattr(cli, name)


main = _Program()


if __name__ == "__main__":
    main()
