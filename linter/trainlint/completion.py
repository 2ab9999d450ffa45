"""Completion of words in a shell, which click does: the scripts, our own words, and `--option=value`."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
)

SHELLS: Mapping[str, tuple[str, str]] = {
    "bash": ("~/.bashrc", 'eval "$(trainlint completion bash)"'),
    "zsh": ("~/.zshrc", 'eval "$(trainlint completion zsh)"'),
    "fish": ("~/.config/fish/completions/trainlint.fish", "trainlint completion fish | source"),
}
"""By name of a shell: the file that it reads, and the line to add to it."""
VARIABLE = "_TRAINLINT_COMPLETE"


class _WithEquals(ShellComplete):
    """Completes `--option=value` as a whole: click offers the value alone, in whose place the shell has the word."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What continues the word."""
        option, equals, _ = incomplete.partition("=")
        # What comes first without a command is an option of `check`.
        found = super().get_completions(args or ["check"] if equals else args, incomplete)
        if not (equals and option.startswith("--")):
            return found
        return [_renamed(item, f"{option}={item.value}") if item.type == "plain" else item for item in found]


@add_completion_class
class _Bash(_WithEquals, BashComplete):
    """bash makes three words of `a=b`, and puts what it is offered in the place of the last."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words of the command line, and the one to complete, as the user has written them."""
        before, last = super().get_completion_args()
        words: list[str] = []
        for word in [*before, last]:
            if words and (word == "=" or words[-1].endswith("=")):
                words[-1] += word
            else:
                words.append(word)
        return words[:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """What stands behind the equals sign, where bash has made a word of it."""
        _, last = super().get_completion_args()
        start = len(incomplete) - len("" if last == "=" else last)
        return [_renamed(item, item.value[start:]) for item in super().get_completions(args, incomplete)]


@add_completion_class
class _Zsh(_WithEquals, ZshComplete):
    """zsh replaces the whole word."""


@add_completion_class
class _Fish(_WithEquals, FishComplete):
    """fish replaces the whole word."""


def _renamed(item: CompletionItem, value: str) -> CompletionItem:
    return CompletionItem(value, item.type, item.help)


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
    """Codes and names of rules that continue a word, or all families; before it there may be others and a comma."""
    from trainlint.catalogue import FAMILIES, rule_names

    before, comma, word = incomplete.rpartition(",")
    names = rule_names()
    words = [*names, *names.values()] if word else FAMILIES
    return [f"{before}{comma}{one}" for one in words if one.lower().startswith(word.lower())]


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
