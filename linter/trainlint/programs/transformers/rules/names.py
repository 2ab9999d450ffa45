"""Keys that are no argument of the release, or stand twice."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Related, Severity, Stage
from trainlint.programs.transformers.arguments import Arguments
from trainlint.programs.transformers.facts import MEANT, OTHER_VALUES
from trainlint.reading import mending
from trainlint.reading.scalars import Dialect
from trainlint.rule import rule
from trainlint.training.declarations import declarations


@rule(
    "FS215",
    "unknown-argument",
    stage=Stage.LOAD,
    severity=Severity.WARNING,
    ordinary_elsewhere=True,
    varies="error where the repository shows that a parser starts which refuses unknown keys",
)
def unknown_argument(arguments: Arguments) -> Iterator[Finding]:
    """A key is not an argument of this release, but of another one, or almost one of this.

    HfArgumentParser raises ValueError for a key that no dataclass has. TRL's own scripts ignore it without a message
    in some releases, so the setting keeps its default: where the repository shows how it starts them, it is an error or
    a warning as that start decides (up to 0.17 all refuse, later `trl sft`, since 0.29 every `trl` command; the scripts
    refuse up to 0.21). Scripts add dataclasses of their own: a key that no release knows is otherwise only reported
    when it is within two letters of a known one, never one of the repository's own classes or options, nor a key that
    its code reads from the file itself, and always as a warning. `evaluation_strategy` is `eval_strategy` (the old name
    ended with 4.50), `overwrite_output_dir` and `no_cuda` went in 5.0, `warmup_ratio` in 5.15 (a `warmup_steps` below 1
    is a ratio); TRL's `max_seq_length` is `max_length`, its `torch_dtype` is `dtype`. Names with hyphens are for the
    command line; in a file they have underscores. Settings of `accelerate launch` (several of `num_processes`,
    `mixed_precision` and the like) belong in its own config file.

    Source: the dataclasses of the released wheels of transformers 4.31 to 5.24 and TRL 0.8 to 1.16.
    """
    fields, others = arguments.facts.fields, arguments.facts.others
    unknown = {
        name: entry
        for name, entry in ((entry.name, entry) for entry in arguments.field.entries())
        if name not in fields and (name not in others or arguments.is_known(name))
    }
    keys = declarations("accelerate").keys_of_any("config")
    launched = [name for name in unknown if name in keys]
    related: tuple[Related, ...]
    for name, entry in unknown.items():
        other, near = arguments.facts.other_releases(name), arguments.near_miss(name)
        refused, dropped = arguments.is_refused(name), arguments.is_dropped(name)
        if not refused and (other is not None or near) and _is_own(name, arguments):
            continue
        message = f"{name} is not an argument of {arguments.facts.label}"
        fix, related = None, ()
        if other is not None:
            advice = arguments.facts.renamed(name)
            help = f"{advice} ({other})" if advice else f"remove it: {other}"
            off = name.startswith("fsdp_") and not arguments.options.on.is_(True)
            fix = None if off or name in OTHER_VALUES else mending.advised(entry, advice, among=fields)
        elif near:
            elsewhere = arguments.facts.other_releases(near) if near not in fields else None
            advice = arguments.facts.renamed(near) if elsewhere else ""
            help = advice or f'did you mean "{near}"?' + (f" {elsewhere}" if elsewhere else "")
            fix = mending.renamed(entry, near) if name in MEANT else mending.renamed_to_nearest(entry, [near])
            fix = None if elsewhere or arguments.has(near) else fix
        elif name in launched and (refused or dropped or len(launched) > 1):
            if name != launched[0]:
                continue
            help = "move it to the accelerate config: accelerate launch reads it"
            related = tuple(place for other in launched[1:] for place in unknown[other].relate("this too"))
        elif refused or dropped:
            help = "remove it"
        else:
            continue
        if refused:
            yield arguments.refused(entry, message, help=help, fix=fix, related=related, at_key=True)
        else:
            message = f"{message}, and ignored" if dropped else message
            yield arguments.warned(entry, message, help=help, fix=fix, related=related, at_key=True)


def _is_own(name: str, arguments: Arguments) -> bool:
    """The repository's code has a use of its own for a key."""
    reader = arguments.reader
    return reader.defines(name) or (not arguments.parsed and reader.reads_key(name))


@rule("FS216", "duplicate-argument", stage=Stage.RUN, severity=Severity.WARNING)
def duplicate_argument(arguments: Arguments) -> Iterator[Finding]:
    """An argument is given more than once, and only the last one counts.

    An argument is a name that some release has. PyYAML keeps the last of several equal keys in a mapping, without a
    message.

    Remove the others.

    Source: PyYAML's constructor, which transformers and TRL read with.
    """
    for entry in arguments.field.entries():
        if entry.dialect is not Dialect.PYYAML:
            continue
        if entry.entry and entry.entry.duplicates and arguments.facts.is_ever(entry.name):
            times = len(entry.entry.duplicates) + 1
            message = f"{entry.name} is given {times} times: only the last one counts"
            fix = mending.without_earlier(entry)
            yield arguments.warned(entry, message, help="keep one of them", fix=fix, at_key=True)
