"""The rules on Axolotl's plugins: their names, and what they refuse together."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Fix, Severity, Stage, did_you_mean, one_of
from trainlint.programs.axolotl.facts import KERNEL_WORDS, PLUGINS, SWANLAB_MODES, AxolotlFacts
from trainlint.programs.axolotl.program import AxolotlConfig
from trainlint.reading import mending
from trainlint.reading.scalars import Plain
from trainlint.reading.values import Field
from trainlint.rule import rule
from trainlint.training.declarations import declarations
from trainlint.training.limits import is_true, refused


@rule(
    "FS417",
    "axolotl-plugin",
    stage=Stage.LOAD,
    varies="warning where the plugin is only skipped, or may come from elsewhere",
)
def axolotl_plugin(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """A plugin cannot be loaded.

    An item of `plugins` names a module and a class in it: `axolotl.integrations.liger.LigerPlugin`. A name without a
    class, a module alone, and a class that its module does not have end the run. A module that does not exist is only
    logged (from 0.21 on it ends the run too), and the plugin's settings are then not read. Plugins of other packages
    are not checked.

    Write the full name of the plugin's class.

    Source: Axolotl, load_plugin and PluginManager.register of integrations/base.py of each release.
    """
    if config.own_package:
        return
    for item in config.field.get("plugins").items():
        written, name = item.text().known, config.plugin_name(item)
        if written is None or name in facts.plugins:
            continue
        full = written.replace(":", ".", 1) if facts.plugins_required else written
        if "." not in full:
            help = _meant(full, facts) or "write module.Class"
            yield item.finding(f"{written} names no class", help=help, fix=_full_name(item, help))
        elif name and "." not in name:
            help = _meant(name, facts)
            yield item.finding(f"{written} is a module, not a plugin", help=help, fix=_full_name(item, help))
        elif name.rpartition(".")[0] in {known.rpartition(".")[0] for known in facts.plugins}:
            help = _meant(name, facts)
            message = f"{_last(name, 2)} has no class {_last(name, 1)}"
            yield item.finding(message, help=help, fix=_full_name(item, help, sure=False))
        elif name:
            yield item.finding(
                f"Axolotl {facts.release} has no plugin {name}{'' if facts.plugins_required else ': it is skipped'}",
                help=_elsewhere(name) or _meant(name, facts) or "remove it",
                severity=Severity.WARNING,
                stage=Stage.LOAD if facts.plugins_required else Stage.RUN,
            )


def _full_name(item: Field, help: str, *, sure: bool = True) -> Fix | None:
    """The plugin that the help names."""
    return mending.worded(item, help.removeprefix("write "), sure=sure) if help.startswith(f"write {PLUGINS}") else None


def _last(name: str, place: int) -> str:
    """The last part of a plugin's name, or the module before it."""
    return (PLUGINS + name).split(".")[-place]


def _meant(name: str, facts: AxolotlFacts) -> str:
    """The plugin of the named package, or the one with the most similar name."""
    package = name.partition(".")[0]
    shortest = sorted(facts.plugins, key=len)
    inside = next((known for known in shortest if known.startswith(f"{package}.") and known != "base.BasePlugin"), None)
    return f"write {PLUGINS}{inside}" if inside else did_you_mean(name, facts.plugins)


def _elsewhere(name: str) -> str:
    having = [
        release for release in declarations("axolotl").names if name in declarations("axolotl").keys("plugins", release)
    ]
    return f"remove it, or use Axolotl {having[0]} or newer" if having else ""


@rule("FS418", "axolotl-plugin-limit", stage=Stage.LOAD, follows=("FS401", "FS402"))
def axolotl_plugin_limit(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """Settings of a plugin exclude each other, need another one, or have a word that the plugin does not know.

    A plugin that is named in `plugins` adds fields and checks of its own: Liger's normalization does not work with
    tensor parallelism, cut cross entropy needs half precision, SwanLab a project, expert parallelism FSDP2 and full
    state dicts, and only one of ScatterMoE and SonicMoE can be used. Without the plugin the settings are not read.

    Source: Axolotl, integrations/*/args.py and the plugins' register of each release.
    """
    yield from refused(facts.limits["plugins"], config, config.converted)
    yield from _swanlab(config)
    yield from _kernels(config, facts)
    yield from _mask_ratios(config)
    yield from _context_parallel(config)


def _swanlab(config: AxolotlConfig) -> Iterator[Finding]:
    if config.data("SwanLabPlugin") is not True:
        return
    mode, project = config.field.get("swanlab_mode").text(), config.field.get("swanlab_project")
    if mode.known_and_not_in(SWANLAB_MODES):
        help = did_you_mean(str(mode), SWANLAB_MODES) or f"write {one_of(SWANLAB_MODES)}"
        fix = mending.respelled(mode, SWANLAB_MODES)
        yield mode.finding(f'swanlab_mode cannot be "{mode}"', help=help, fix=fix)
    enabled = config.converted.data("use_swanlab")
    if project.text().known_and(lambda name: not name.strip()):
        yield project.finding("swanlab_project must not be empty", help="name a project")
    elif enabled is True and config.data("swanlab_project") is None:
        switch = config.field.get("use_swanlab")
        place = switch if switch.node is not None else config.field.get("plugins")
        yield place.finding(
            "SwanLabPlugin needs swanlab_project", help="add swanlab_project, or set use_swanlab: false", at_key=True
        )


def _kernels(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    if config.data("KernelsPlugin") is not True:
        return
    for name, words in KERNEL_WORDS.items():
        value = config.field.get(name).text()
        if name in config.fields and value.map(str.lower).known_and_not_in(words):
            yield value.finding(
                f'{name} cannot be "{value}"',
                help=did_you_mean(str(value), words) or f"write {one_of(words)}",
                fix=mending.respelled(value, words),
            )
    start, aware = config.field.get("nvfp4_merge_aware_start_step"), config.data("nvfp4_merge_aware")
    # Later releases look at the step where nothing switches it off.
    alone = facts.looks_at_start_step and aware is None
    adapted = config.data("adapter") in ("lora", "multilora")
    if (alone or (is_true(aware) and adapted)) and _is_no_start(start.plain):
        yield start.finding(
            "nvfp4_merge_aware_start_step must be a step or a share below 1", help="write a step such as 100"
        )


def _is_no_start(plain: Plain) -> bool:
    if isinstance(plain, float):
        return not 0 < plain < 1
    return isinstance(plain, bool) or (isinstance(plain, int) and plain < 0)


def _mask_ratios(config: AxolotlConfig) -> Iterator[Finding]:
    """The mask ratios of diffusion, of the plugin or of the release itself."""
    for name in ("diffusion", "diffusion_lm"):
        section = config.field.get(name)
        least, most = section.get("min_mask_ratio").number(), section.get("max_mask_ratio").number()
        low, high = least.or_when_absent(0.1).known, most.or_when_absent(0.9).known
        if name in config.fields and section.is_mapping and low is not None and high is not None and low > high:
            place = most.field if least.absent else least.field
            yield place.finding(
                f"min_mask_ratio ({low}) is above max_mask_ratio ({high})",
                help="lower min_mask_ratio, or raise max_mask_ratio",
            )


FLAT_SIZES = ("context_parallel_size", "sequence_parallel_degree")
"""The size of context parallelism outside its section; the first that is given counts."""


def _context_parallel(config: AxolotlConfig) -> Iterator[Finding]:
    section = config.field.get("context_parallel")
    if "context_parallel" not in config.fields:
        return
    if section.is_absent or (section.is_mapping and section.get("size").is_absent):
        given = [field for name in FLAT_SIZES if not (field := config.field.get(name)).is_absent]
        for field in given[:1]:
            if field.number().known_and(lambda size: size < 1):
                yield field.finding(f"{field.name} must be at least 1", help="write 1, or remove it")
    if not section.is_mapping:
        return
    size = section.get("size").integer()
    for name in FLAT_SIZES:
        flat = config.field.get(name).integer()
        if size.known is not None and flat.known_and(lambda number: number != size.known):
            yield flat.finding(
                f"{name} ({flat}) contradicts size ({size}) in context_parallel",
                help="remove one of them",
                related=size.field.relate("the other size"),
            )
        if not flat.absent:
            break
    whole = size.or_when_absent(1).known
    degrees = {name: section.get(f"{name}_size").integer() for name in ("ulysses", "ring")}
    if whole is None:
        return
    for name, degree in degrees.items():
        if degree.known_and(lambda number: number > 0 and whole % number != 0):
            yield degree.finding(f"{name}_size must divide size ({whole})", help=f"write a divisor of {whole}")
            return
    yield from _split(section, whole, degrees["ulysses"].known, degrees["ring"].known)


def _split(section: Field, whole: int, ulysses: int | None, ring: int | None) -> Iterator[Finding]:
    """The degrees must fit the backend, and their product the size."""
    backend = section.get("backend").text()
    alone = {"ulysses": (ulysses, ring), "ring": (ring, ulysses)}.get(str(backend.known))
    if alone and (alone[0] not in (None, whole) or alone[1] not in (None, 1)):
        yield backend.finding(
            f"backend: {backend} needs {backend}_size: {whole} and no other degree",
            help="set backend: auto",
            fix=mending.worded(backend, "auto", sure=False),
        )
    elif ulysses and ring and ulysses * ring != whole:
        yield section.get("ring_size").finding(
            f"ulysses_size times ring_size must be size ({whole})", help=f"write {whole // ulysses}"
        )
