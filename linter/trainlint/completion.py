"""Completion of words in a shell, which click does: the scripts, and the words that trainlint adds."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS: Mapping[str, tuple[str, str]] = {
    "bash": ("~/.bashrc", 'eval "$(trainlint completion bash)"'),
    "zsh": ("~/.zshrc", 'eval "$(trainlint completion zsh)"'),
    "fish": ("~/.config/fish/completions/trainlint.fish", "trainlint completion fish | source"),
}
"""By name of a shell: the file that it reads, and the line to add to it."""
VARIABLE = "_TRAINLINT_COMPLETE"


def installation() -> str:
    """What to write where."""
    lines = [f"{shell}: add to {file}\n    {line}\n" for shell, (file, line) in SHELLS.items()]
    return "".join(lines)


def script(command: click.Command, shell: str) -> str:
    """The script for a shell, which asks trainlint for words."""
    kind = get_completion_class(shell)
    if kind is None:
        raise ValueError(f"click does not complete in {shell}")
    completion = kind(command, {}, "trainlint", VARIABLE)
    return f"{completion.source_template % completion.source_vars()}\n"


def rules(incomplete: str) -> list[str]:
    """Codes and names of rules that continue a word; before it there may be others and a comma."""
    from trainlint.catalogue import all_rules

    before, comma, word = incomplete.rpartition(",")
    words = [*(rule.code for rule in all_rules()), *(rule.name for rule in all_rules())]
    return [f"{before}{comma}{one}" for one in words if word and one.lower().startswith(word.lower())]


def targets(incomplete: str) -> list[str]:
    """`PROGRAM=`, and after it the known releases of the program, the newest first."""
    from trainlint.catalogue import known_releases
    from trainlint.programs.table import TARGETS

    program, equals, version = incomplete.partition("=")
    if not equals:
        return [f"{name}=" for name in TARGETS if name.startswith(program)]
    return [f"{program}={one}" for one in reversed(known_releases(program)) if one.startswith(version)]


def command_words(command: click.Command, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """The options of a command, or a word that lets the shell complete a path."""
    if not incomplete.startswith("-"):
        return [CompletionItem(incomplete, type="file")]
    own = click.Context(command, info_name=command.name, parent=ctx)
    return command.shell_complete(own, incomplete)
