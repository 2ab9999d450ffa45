"""The rules on `tune run` commands in workflows, manifests and scripts, and on those that TrainJobs start."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage, did_you_mean, one_of, some_of
from trainlint.programs.torchtune.command import TuneRun
from trainlint.programs.torchtune.facts import TorchtuneFacts, unreleased_config, unreleased_recipe
from trainlint.rule import rule


@rule("TT401", "unknown-recipe", stage=Stage.START)
def unknown_recipe(run: TuneRun, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The recipe is neither registered nor a module of your own.

    `tune run` looks the word up among the recipes of the release (names are case-sensitive, and include the suffixes
    _single_device and _distributed). Any other word is started as a Python module (a path becomes a dotted one), and
    raises when there is no such module.

    Source: tune run and the recipe registry of torchtune 0.4.0 to 0.6.1.
    """
    name = run.recipe.known
    if name is None or run.fork or run.own_recipe or name in facts.recipes:
        return
    if not (unreleased_recipe(name) and not run.stated):
        starts = [recipe for recipe in facts.recipes if recipe.startswith(name)]
        yield run.recipe.finding(
            f"torchtune {facts.release} has no recipe {name}",
            help=f"write {one_of(starts)}" if starts else did_you_mean(name, facts.recipes),
        )


@rule("TT402", "unknown-recipe-config", stage=Stage.START)
def unknown_recipe_config(run: TuneRun, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The config is neither registered nor a file.

    `--config NAME` is looked up among the configs of the recipe, then among those of all recipes, then as the path of a
    file; `tune run` without it, or with `--config=NAME`, is refused. A registered name is the path of the shipped file
    without its `.yaml`. One registered config (llama2/7B_full_early_exit) has no file in the packages.

    Source: tune run and the recipe registry of torchtune 0.4.0 to 0.6.1.
    """
    if run.config.absent:
        place = run.config_flag.field if run.config_flag else run.config.field
        yield place.finding("tune run needs --config NAME", help="write --config and the name as two words")
        return
    name = run.config.known
    if name is None or run.fork or run.job or run.config_found:
        return
    shipped = facts.config_file(name, run.recipe.known or "")
    if name in facts.configs:
        if shipped is None:
            yield run.config.finding(
                f"torchtune {facts.release} does not ship the file of config {name}",
                help="name another config or a file",
            )
    elif not (unreleased_config(name) and not run.stated):
        same = facts.configs_of_model(name)
        yield run.config.finding(
            f"torchtune {facts.release} has no config {name}, and there is no such file",
            help=f"configs of this model: {some_of(same)}" if same else did_you_mean(name, facts.configs),
        )


@rule("TT407", "config-without-settings", stage=Stage.START)
def config_without_settings(run: TuneRun) -> Iterator[Finding]:
    """The file that `--config` names is empty, or a list.

    A recipe's config is a mapping. An empty file is read as one without keys, and the recipe stops at the first setting
    that it reads; a list is refused before that.

    Source: the recipes' argument parser and constructors, torchtune 0.4.0 to 0.6.1; both run with 0.6.1.
    """
    if run.content and not run.fork and not (run.content == "empty" and run.args):
        yield run.config.finding(f"config {run.config} is {run.content}", help="name a file with a recipe's settings")


@rule("TT403", "config-of-another-recipe", stage=Stage.RUN, severity=Severity.WARNING)
def config_of_another_recipe(run: TuneRun, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The config is registered for another recipe.

    `tune run` accepts any registered config with any recipe, without a message. Settings that the recipe does not read
    have no effect, and a setting that it reads and does not find raises.

    Source: tune run of torchtune 0.4.0 to 0.6.1.
    """
    name, recipe = run.config.known, run.recipe.known
    owners = facts.configs.get(name or "", ())
    if not run.fork and not run.job and owners and recipe in facts.recipes and recipe not in owners:
        own = [config for config in facts.configs_of_model(str(name)) if config in facts.recipes[str(recipe)].configs]
        yield run.config.finding(
            f"config {name} is for {some_of(owners)}, not for {recipe}",
            help=f"write {one_of(own)}" if own else f"run {one_of(owners)}",
        )


@rule("TT404", "not-an-override", stage=Stage.LOAD)
def not_an_override(run: TuneRun) -> Iterator[Finding]:
    """An argument of a recipe is not an override, and the run stops at it.

    After the recipe come `--config NAME` and overrides: `key=value` with exactly one `=`, or `~key` to remove a key.
    Anything else raises before the recipe starts: a flag (`--batch_size=2`; torchrun's options go before the recipe), a
    value that contains `=`, a bare word, the removal of a key that the config does not have, or of a component.

    Source: the recipes' argument parser and _merge_yaml_and_cli_args of torchtune 0.4.0 to 0.6.1.
    """
    for override in run.overrides:
        if override.refusal and not (override.missing and run.fork):
            yield override.arg.field.finding(override.refusal, help=override.help)


@rule("TT405", "torchrun-options-for-one-device", stage=Stage.START)
def torchrun_options_for_one_device(run: TuneRun, facts: TorchtuneFacts) -> Iterator[Finding]:
    """torchrun's options are given to a recipe for a single device.

    With any option before the recipe `tune run` starts it through torchrun, and refuses that for a recipe that the
    registry lists for one device.

    Source: tune run and the recipe registry of torchtune 0.4.0 to 0.6.1.
    """
    recipe = facts.recipes.get(run.recipe.known or "")
    if recipe is not None and not run.fork and not recipe.distributed and run.torchrun:
        first = run.torchrun[0]
        if first.key_known:
            other = recipe.name.replace("_single_device", "_distributed")
            yield first.field.finding(
                f"{recipe.name} runs on one device and takes no options of torchrun",
                help=f"remove {first.key}" + (f", or run {other}" if other in facts.recipes else ""),
            )


@rule(
    "TT406",
    "distributed-without-launcher",
    stage=Stage.START,
    severity=Severity.WARNING,
    varies="error in a script of a repository without containers, manifests or batch jobs",
)
def distributed_without_launcher(run: TuneRun) -> Iterator[Finding]:
    """A recipe for several processes is started without torchrun.

    `tune run` uses torchrun only if one of torchrun's options comes before the recipe. Without any, the recipe runs in
    this process, finds no process group and raises, unless something else (srun, an operator) has set RANK, WORLD_SIZE
    and MASTER_ADDR. It is an error in a script of a repository that has no containers, manifests or batch jobs.

    Source: tune run and the distributed recipes of torchtune 0.4.0 to 0.6.1.
    """
    misplaced = any(override.refusal and override.arg.text.startswith("--") for override in run.overrides)
    if run.launched is False and not run.fork and not misplaced:
        yield run.recipe.finding(
            f"{run.recipe} starts as a single process and finds no process group",
            help="put torchrun's options before the recipe: tune run --nproc_per_node 2 …",
            severity=Severity.ERROR if run.alone else Severity.WARNING,
        )
