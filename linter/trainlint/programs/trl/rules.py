"""The rules of TRL alone: config files as TrlParser reads them."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage, did_you_mean, one_of
from trainlint.programs.trl.facts import PROFILES
from trainlint.programs.trl.program import TrlArguments
from trainlint.rule import rule


@rule("FS250", "environment-not-a-mapping", stage=Stage.LOAD)
def environment_not_a_mapping(arguments: TrlArguments) -> Iterator[Finding]:
    """`env` is not a mapping.

    TrlParser takes `env` out of the file and sets each of its keys as an environment variable before it parses
    anything; a list or a text raises ValueError (AttributeError in 0.12).

    Write `NAME: value` lines below it.

    Source: TRL 0.8 to 1.16, TrlParser.parse_args_and_config.
    """
    env = arguments.get("env")
    if env.node is not None and not env.is_mapping and not env.is_unknown:
        yield arguments.refused(env, "env must be a mapping", help="write NAME: value lines below it", at_key=True)


@rule("FS251", "unknown-accelerate-profile", stage=Stage.START, severity=Severity.WARNING)
def unknown_accelerate_profile(arguments: TrlArguments) -> Iterator[Finding]:
    """`accelerate_config` names neither a file nor a config that TRL ships.

    `trl sft --config` reads it as a path, and if there is no such file as the name of a shipped config: fsdp1, fsdp2,
    multi_gpu, single_gpu, zero1, zero2 or zero3. Anything else raises ValueError before the launch. Your own script may
    not use the key, so this is a warning.

    Source: TRL 0.18 to 1.16, the command line's resolution of `accelerate_config`.
    """
    name = arguments.get("accelerate_config").text()
    looks_like_file = name.known_and(lambda text: "/" in text or text.endswith((".yaml", ".yml", ".json")))
    if name.known_and_not_in(PROFILES) and not looks_like_file:
        hint = did_you_mean(str(name), PROFILES) or f"write a path, or {one_of(sorted(PROFILES), 7)}"
        yield arguments.warned(name, f"TRL has no accelerate config {name}", help=hint)
