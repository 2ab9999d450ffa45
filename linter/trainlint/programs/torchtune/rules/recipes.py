"""The rules on recipe configs: files, and shipped configs with overrides."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage, did_you_mean, nearest, some_of
from trainlint.lazy import regex
from trainlint.programs.torchtune import mended
from trainlint.programs.torchtune.facts import (
    DATASET_PARAMETERS_GONE,
    INSTANTIATED,
    LOADER_KEYWORDS,
    LORA_PARAMETERS,
    LOW_BIT_OPTIMIZERS,
    NOT_NULL,
    PACKAGED_SOURCES,
    PROFILER,
    RENAMED,
    SUPPLIED,
    RecipeFacts,
    TorchtuneFacts,
    unreleased_component,
)
from trainlint.programs.torchtune.omegaconf import ConfigNode, Problem, is_dotted_path
from trainlint.programs.torchtune.program import ConfigFile, RecipeSettings
from trainlint.programs.torchtune.rules.models import has_unloadable_adapters
from trainlint.reading import mending
from trainlint.reading.document import Alias, Scalar
from trainlint.reading.values import Field
from trainlint.rule import rule


@rule("TT301", "unloadable-recipe-config", stage=Stage.LOAD)
def unloadable_recipe_config(file: ConfigFile) -> Iterator[Finding]:
    """OmegaConf refuses to load this file, although it is YAML.

    A text that is twice a key of one mapping, an anchor that is defined twice, a tag that YAML itself does not define
    and a second document raise before torchtune sees anything, in `tune validate` and in `tune run`. Other readers use
    the last of two equal keys, so the mistake goes unnoticed elsewhere.

    Source: OmegaConf's loader (on PyYAML's safe loader), which torchtune 0.4.0 to 0.6.1 reads configs with.
    """
    document = file.field.document
    for field in _written_in(file.field):
        for entry in field.entries():
            if entry.entry is not None and entry.entry.duplicates and entry.entry.use is None:
                fix = mending.without_earlier(entry)
                yield entry.finding(
                    f"the key {entry.name} is given twice",
                    help="remove one of them",
                    fix=fix if fix is not None and fix.safe else None,
                    at_key=True,
                    related=entry.earlier_keys,
                )
        node = field.target
        if node is not None and node.tag is not None and node.tag.removeprefix(_PREFIX) not in _TAGS:
            yield field.finding(f"OmegaConf does not know the tag {node.tag}", help="remove the tag")
    for start, end in document.reused_anchors:
        anchor = Scalar(document.text.content[start:end], "", None, start, end, None)
        place = Field(document, file.field.dialect, anchor)
        yield place.finding(f"the anchor {anchor.value} is defined twice", help="give one of them another name")
    if document.index:
        yield file.field.finding("the file has more than one document", help="write each config to a file of its own")


_PREFIX = "tag:yaml.org,2002:"
_TAGS = ("!", "null", "bool", "int", "float", "binary", "timestamp", "omap", "pairs", "set", "str", "seq", "map")


def _written_in(root: Field) -> Iterator[Field]:
    """Every value of a document where it is written, without the repetitions of aliases."""
    stack = [root]
    while stack:
        field = stack.pop()
        if not isinstance(field.node, Alias) and (field.entry is None or field.entry.use is None):
            yield field
            stack.extend(reversed([*field.entries(), *field.items()]))


@rule("TT302", "unresolved-interpolation", stage=Stage.LOAD)
def unresolved_interpolation(settings: RecipeSettings) -> Iterator[Finding]:
    """A `${…}` names nothing, or a value is still missing.

    `${output_dir}` is replaced by the value of that key, counted from the top of the config (`${.key}`: from its own
    section). One that names no key, or itself, raises: `tune run` writes out the whole config with everything resolved
    before it trains. A value of `???` raises where it is read. `${name:…}` needs a resolver; OmegaConf has `oc.env` and
    a few more, and torchtune's recipes register none. A name in capitals may be for a program that fills in the file
    before, as envsubst does: that is a warning where no command of the repository hands the file itself to torchtune.

    Source: OmegaConf 2.3 and 2.4; log_config and validate of torchtune 0.4.0 to 0.6.1.
    """
    paths = [node.get("_component_").text().known or "torchtune" for node in settings.components]
    foreign = settings.recipe is None or not all(path.startswith(_PACKAGES) for path in paths)
    found: dict[str, list[Problem]] = {}
    for node in settings.nodes:
        problem = node.problem if node.own else None
        if problem is not None and not (problem.resolver and foreign):
            found.setdefault(problem.message if problem.named else node.name, []).append(problem)
    for first, *others in found.values():
        related = tuple(part for other in others for part in other.node.field.relate(f"and {other.node.name}"))
        template = first.named and not settings.certain and _VARIABLE.search(str(first.node.plain)) is not None
        severity = Severity.WARNING if template else None
        message = f"{first.node.name}: {first.message}"
        yield first.node.field.finding(message, help=first.help, related=related, severity=severity)


_VARIABLE = regex(r"\$\{[A-Z][A-Z0-9_]*\}")


@rule(
    "TT303",
    "unknown-component",
    stage=Stage.PREPARE,
    varies="warning where nothing builds the section, or the package's release is not known",
)
def unknown_component(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """A `_component_` names nothing that can be imported.

    The value is a dotted path that begins with an installed package, not a relative path, a file or a text with spaces.
    torchtune imports it when it validates or builds the section; a name that the package does not have raises. Only
    torchtune's own modules, `torch.optim` and `bitsandbytes.optim` are checked, other packages are assumed to be there.
    It is a warning where nothing builds the section: the recipe does not read it, or it is deeper down. A name that the
    repository's own code defines may be put into torchtune; nothing is said of it.

    Source: _get_component_from_path of torchtune 0.4.0 to 0.6.1; the names in its wheels, in torch 2.13 and in
    bitsandbytes 0.50.
    """
    for section in settings.components:
        component = section.get("_component_")
        if not component.own or component.unknown:
            continue
        text = component.text().known
        severity, stage = _when(settings, section)
        if text is None:
            yield component.field.finding(
                f"{component.name} must be a dotted path",
                help="write package.module.name of a builder or class",
                severity=severity,
                stage=stage,
            )
        elif not is_dotted_path(text):
            message = f'{component.name} must be a dotted path, not "{text}"'
            yield component.field.finding(
                message if text else f"{component.name} must not be empty",
                help="write the path from the package on: package.module.name",
                severity=severity,
                stage=stage,
            )
        elif text.startswith(LOW_BIT_OPTIMIZERS):
            yield component.field.finding(
                f"torchao 0.11 and later have no {LOW_BIT_OPTIMIZERS}",
                help=f"write torchao.optim{text.removeprefix(LOW_BIT_OPTIMIZERS)}",
                fix=mended.worded(component, f"torchao.optim{text.removeprefix(LOW_BIT_OPTIMIZERS)}"),
                severity=Severity.WARNING,
                stage=stage,
            )
        elif not settings.fork and not (unreleased_component(text) and not settings.stated):
            yield from _misspelt_package(settings, component, text)
            yield from _missing_component(settings, component, text, facts)


def _misspelt_package(settings: RecipeSettings, component: ConfigNode, path: str) -> Iterator[Finding]:
    package = path.partition(".")[0]
    meant = nearest(package, ("torchtune", "torch", "bitsandbytes"), cutoff=0.9)
    severity, stage = _when(settings, component.parent)
    if meant is not None and package != meant:
        yield component.field.finding(
            f"there is no package {package}",
            help=f'did you mean "{meant}"?',
            severity=severity,
            stage=stage,
            fix=mended.worded(component, meant + path[len(package) :], sure=False),
        )


def _missing_component(
    settings: RecipeSettings, component: ConfigNode, path: str, facts: TorchtuneFacts
) -> Iterator[Finding]:
    found = facts.component(path)
    severity, stage = _when(settings, component.parent)
    only_almost = settings.for_development
    if found.is_module:
        yield component.field.finding(
            f"{path} is a module, not a component",
            help="add the name of a builder or class in it",
            severity=severity,
            stage=stage,
        )
    elif found.exists is False and not (only_almost and not nearest(path.rpartition(".")[2], found.known, cutoff=0.85)):
        if settings.provides(path.rpartition(".")[2]):
            return
        missing = path[len(found.parent) + 1 :].partition(".")[0]
        moved = next((old for old in RENAMED if path == old or path.startswith(f"{old}.")), None)
        hint, near = did_you_mean(missing, found.known), mending.meant(missing, found.known)
        before, after = f"{found.parent}.", path[len(found.parent) + 1 + len(missing) :]
        fix = mended.worded(component, f"{before}{near}{after}", sure=False) if near else None
        if moved is not None:
            hint = f"write {RENAMED[moved]}{path[len(moved) :]}"
            fix = mended.worded(component, RENAMED[moved] + path[len(moved) :])
        package = found.parent.partition(".")[0]
        owner = f"{package} {facts.release}" if package == "torchtune" else package
        yield component.field.finding(
            f"{owner} has no {found.parent}.{missing}",
            help=hint or f"choose another name from {found.parent}",
            severity=severity,
            stage=stage,
            fix=fix,
        )


def _when(settings: RecipeSettings, section: ConfigNode | None) -> tuple[Severity, Stage]:
    """An error for a section that the recipe builds, and for a top-level one of an unknown recipe; else a warning."""
    steps: list[ConfigNode] = []
    node = section
    while node is not None and node.parent is not None:
        steps.append(node)
        node = node.parent
    if section is None or not steps:
        return Severity.WARNING, Stage.PREPARE
    top = steps[-1]
    read = settings.recipe is None or not settings.certain or settings.reads(top.key)
    listed = len(steps) == 2 and top.key == "dataset" and top.items is not None and settings.reads("dataset")
    built = read and (len(steps) == 1 or listed)
    return Severity.ERROR if built else Severity.WARNING, settings.built_at(top.key)


@rule(
    "TT304",
    "unknown-parameter",
    stage=Stage.PREPARE,
    varies="warning where nothing builds the section, or the component passes the key on",
)
def unknown_parameter(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """A section has a key that its component does not accept.

    Every key beside `_component_` is passed to the component by name, also with a null, and an unknown one raises a
    TypeError. After `section=other.component` on the command line the keys of the config stay, so those of the old
    component must be removed (`~section.key`). Where nothing builds the section it is a warning.

    Datasets pass any keyword on to datasets.load_dataset, which refuses those that it does not know when the dataset is
    built. That is certain of a key that is almost a parameter or was one in earlier releases (max_seq_len, template,
    chat_format), and of any where the data are files or a data set that torchtune names.

    Source: validate and instantiate of torchtune 0.4.0 to 0.6.1; the signatures in its wheels, in torch 2.13 and in
    bitsandbytes 0.50.
    """
    if settings.fork:
        return
    for section in settings.components:
        path = _component(section)
        signature = facts.component(path).signature if path else None
        told = settings.recipe is not None and path is not None and path.endswith(_TOLD_ELSEWHERE)
        if signature is None or path is None or told or not any(node.own for node in section.walk()):
            continue
        name = path.rpartition(".")[2]
        unset = [parameter for parameter in signature.parameters if not section.get(parameter).present]
        unknown = [key for key in section.entries if key != "_component_" and key not in signature.parameters]
        if signature.keywords:
            yield from _passed_on(settings, section, name, unknown, unset)
            continue
        severity, stage = _when(settings, section)
        left_over = [key for key in unknown if not section.get(key).own]
        if left_over:
            yield section.get("_component_").field.finding(
                f"{name} does not accept the config's {some_of(left_over, 2)}",
                help="remove with " + some_of([f"~{section.name}.{key}" for key in left_over], 8),
                severity=severity,
                stage=stage,
            )
        of_lora = [key for key in unknown if key in LORA_PARAMETERS and section.get(key).own]
        if len(of_lora) > 1 and not settings.job:
            yield section.get("_component_").field.finding(
                f"{name} does not accept {some_of(of_lora, 3)}",
                help=f"write lora_{name}, or remove them",
                severity=severity,
                stage=stage,
            )
            unknown = [key for key in unknown if key not in of_lora]
        for key in unknown:
            node = section.get(key)
            if node.own and not (settings.for_development and not nearest(key, unset)):
                yield node.field.finding(
                    f"{name} does not accept {key}",
                    help=_parameter_help(settings, section, key, unset),
                    severity=severity,
                    stage=stage,
                    fix=mended.renamed(node, unset),
                    at_key=True,
                )


_TOLD_ELSEWHERE = (".DistributedCheckpointer", "torch.optim.LBFGS", "torch.optim.Muon", "torch.optim.SparseAdam")
"""Components that no recipe can use, whatever their parameters: TT330 and TT347."""


def _passed_on(
    settings: RecipeSettings, section: ConfigNode, name: str, unknown: list[str], unset: list[str]
) -> Iterator[Finding]:
    """Keys that a dataset or a logger passes on, and that what they are passed to does not know."""
    is_dataset = name.endswith("_dataset") and any(part is section for part in settings.datasets)
    source = section.get("source")
    sure = is_dataset and (source.is_(*PACKAGED_SOURCES) or (not source.present and "source" in unset))
    for key in unknown:
        node = section.get(key)
        moved = DATASET_PARAMETERS_GONE.get(key) if name.endswith("_dataset") else None
        almost = nearest(key, unset, cutoff=0.75)
        if not node.own or (key in LOADER_KEYWORDS and not moved) or (key == "packed" and is_dataset):
            continue
        if is_dataset and (moved or almost or sure):
            yield node.field.finding(
                f"{name} has no parameter {key}, and load_dataset refuses it",
                help=f"write {moved} instead" if moved else did_you_mean(key, unset) if almost else "remove it",
                severity=Severity.ERROR,
                fix=None if moved else mended.renamed(node, unset),
                at_key=True,
            )
        elif moved or almost:
            yield node.field.finding(
                f"{name} has no parameter {key} and passes it on",
                help=f"write {moved} instead" if moved else did_you_mean(key, unset),
                severity=Severity.WARNING,
                fix=None if moved else mended.renamed(node, unset),
                at_key=True,
            )


def _parameter_help(settings: RecipeSettings, section: ConfigNode, key: str, unset: list[str]) -> str:
    if settings.job and key in LORA_PARAMETERS and section.key == "model":
        if "model.lora_attn_modules" in settings.overridden:
            return "use command: [tune, run] and one node: else Kubeflow Trainer chooses a full fine-tune"
        return "add model.lora_attn_modules=[…] to args: without it Kubeflow Trainer chooses a full fine-tune"
    if hint := did_you_mean(key, unset):
        return hint
    return f"remove it; other keys of {section.name} are {some_of(unset)}" if unset else "remove it"


def _component(section: ConfigNode) -> str | None:
    """The component of a section if it is from a known package."""
    path = section.get("_component_").text().known
    return path if path is not None and path.startswith(_PACKAGES) else None


_PACKAGES = ("torchtune", "torch.", "bitsandbytes.")


@rule("TT305", "missing-parameter", stage=Stage.PREPARE)
def missing_parameter(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """A section lacks a parameter that its component requires.

    `tune validate` accepts that, since recipes pass some parameters themselves (the optimizer's params, the dataset's
    tokenizer). The others are needed when the recipe builds the component, which raises a TypeError.

    Source: instantiate of torchtune 0.4.0 to 0.6.1; the signatures in its wheels, in torch 2.13 and bitsandbytes 0.50.
    """
    if settings.fork or settings.is_open or (settings.certain and settings.recipe is None):
        return
    for name, section in settings.root.entries.items():
        path = _component(section) if section.mapping is not None and name in INSTANTIATED else None
        signature = facts.component(path).signature if path else None
        if signature is None or path is None or not any(node.own for node in section.walk()):
            continue
        if has_unloadable_adapters(settings, section):
            continue
        supplied = SUPPLIED.get("checkpointer" if name.endswith("checkpointer") else name, ())
        for parameter in signature.parameters:
            lacks = parameter in signature.required and parameter not in supplied and not section.get(parameter).present
            if lacks and not _is_misspelt(parameter, section, facts):
                place = section.get("_component_") if settings.certain else section
                yield place.field.finding(
                    f"{path.rpartition('.')[2]} requires {parameter}",
                    help=f"add {name}.{parameter}",
                    at_key=not settings.certain,
                    stage=settings.built_at(name),
                )


@rule("TT306", "missing-setting", stage=Stage.PREPARE)
def missing_setting(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The recipe reads a setting that the config does not have.

    Recipes read most settings without a default, so a missing one (also one removed by `~key` on the command line)
    raises a ConfigAttributeError; null counts as a value. The recipe of a file is the one in a `tune run` of the
    repository; else it follows from the settings, if hardly any is missing or unread, and then only settings that the
    recipe reads when it is constructed are reported. A misspelt key of a component is reported as TT304 alone.

    Source: the recipes of torchtune 0.4.0 to 0.6.1.
    """
    if settings.recipe is None or settings.fork or settings.is_open or not (settings.certain or settings.near):
        return
    missing: dict[str, list[str]] = {}
    for key in settings.recipe.required if settings.certain else settings.recipe.start:
        node = settings.at(key)
        head, _, part = key.rpartition(".")
        section = settings.at(head) if part and head else settings.root
        above = settings.root.entries.get(head)
        told = key in settings.referenced and settings.names_nothing(key)
        if told or (head and (above is None or "_component_" not in above.entries or _requires(key, section, facts))):
            continue
        if not node.present and section.present and not _is_misspelt(key, section, facts):
            missing.setdefault(head or key, []).append(key)
    by_command = {head: keys for head, keys in missing.items() if keys[0] in settings.removed}
    in_file = [key for head, keys in missing.items() if head not in by_command for key in keys]
    for keys in [*([in_file] if in_file else []), *by_command.values()]:
        key, removed = keys[0], settings.removed.get(keys[0])
        verb = "is" if len(keys) == 1 else "are"
        yield settings.refusal(
            settings.at(key) if removed is None else ConfigNode(removed, None, key),
            message=f"{some_of(keys, 4)} {verb} missing, which {settings.recipe.name} reads",
            help=f"add {some_of(keys, 4)}" if removed is None else f"remove ~{key}",
            stage=Stage.START if key in settings.recipe.start else Stage.PREPARE,
        )


def _requires(key: str, section: ConfigNode, facts: TorchtuneFacts) -> bool:
    """The section's component itself requires this parameter, which TT305 reports."""
    signature = facts.component(_component(section) or "").signature
    return signature is not None and key.rpartition(".")[2] in signature.required


def _is_misspelt(key: str, section: ConfigNode, facts: TorchtuneFacts) -> bool:
    """The section has a key that its component refuses and that is almost this one."""
    path = _component(section) if section.mapping is not None else None
    signature = facts.component(path).signature if path else None
    if signature is None or signature.keywords:
        return False
    wanted = [key.rpartition(".")[2]]
    foreign = [name for name in section.entries if name not in signature.parameters and section.get(name).own]
    return any(name != "_component_" and nearest(name, wanted) for name in foreign)


@rule("TT307", "section-without-component", stage=Stage.PREPARE)
def section_without_component(settings: RecipeSettings) -> Iterator[Finding]:
    """A section that the recipe builds has no `_component_`.

    Model, tokenizer, dataset, optimizer, loss, checkpointer and the like are built from their `_component_`; a mapping
    without one and anything else raise, and most may not be null. Only `dataset` may be a list, of such sections.
    `tune validate` only checks sections that have a component, and accepts this.

    Source: instantiate and the recipes of torchtune 0.4.0 to 0.6.1.
    """
    if settings.fork:
        return
    for name in INSTANTIATED:
        section = settings.root.entries.get(name)
        if section is None or not section.own or (settings.recipe and not settings.reads(name)):
            continue
        parts = section.items if name == "dataset" and section.items else [section]
        for part in parts:
            yield from _not_a_component(settings, name, part)


def _not_a_component(settings: RecipeSettings, name: str, section: ConfigNode) -> Iterator[Finding]:
    what = name if section.key == name else f"a part of {name}"
    if section.mapping is not None:
        if "_component_" not in section.mapping:
            yield section.field.finding(
                f"{what} has no _component_",
                help=f"add {name}._component_ with the path of a builder",
                at_key=section.key == name,
                stage=settings.built_at(name),
            )
    elif section.items or (section.items is not None and name != "dataset") or section.value.known is not None:
        kind = (
            "a list" if section.items is not None else "a text" if section.text().known is not None else section.value
        )
        yield section.field.finding(
            f"{what} must be a section with a _component_, not {kind}",
            help=f"write the component as {name}._component_",
            stage=settings.built_at(name),
        )
    elif section.absent and _needed(settings, name):
        late = name in ("lr_scheduler", "optimizer")
        message = f"{name} is null, and {settings.recipe.name if settings.recipe else ''} uses it"
        help = f"write a section with {name}._component_"
        yield settings.refusal(section, message=message, help=help, stage=Stage.TRAIN if late else Stage.PREPARE)


def _needed(settings: RecipeSettings, name: str) -> bool:
    """The recipe uses the section without asking whether it is null."""
    recipe = settings.recipe
    if recipe is None or not settings.sure:
        return False
    if name == "quantizer":
        return recipe.name == "quantize"
    steps_always = name == "lr_scheduler" and recipe.name != "full_dpo_distributed" and name in recipe.required
    return name in NOT_NULL or steps_always


@rule("TT321", "unread-setting", stage=Stage.RUN, severity=Severity.WARNING)
def unread_setting(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """A setting has no effect, because the recipe does not read it.

    torchtune accepts any key in a config or on the command line and never checks whether something reads it: with
    `batchsize=4` the run keeps the old batch_size. On the command line every key is reported that the recipe does not
    read (`tensor_parallel_dim` or `optimizer_in_bwd` for LoRA). In a file only a key is reported that is almost one
    that recipes read, since a recipe of your own may read others.

    Source: the recipes of torchtune 0.4.0 to 0.6.1 and the configs shipped for them.
    """
    if settings.fork or settings.recipe is None:
        return
    known = facts.settings_of(settings.recipe)
    for key, node in settings.root.entries.items():
        if not node.own or key in known or key in settings.referenced:
            continue
        missing = [name for name in sorted(known) if name not in settings.root.entries or _is_shipped(settings, name)]
        hint = nearest(key, missing, cutoff=0.8)
        if settings.certain and settings.overrides(key):
            meant = "" if key in facts.settings else did_you_mean(key, known)
            yield node.field.finding(f"{settings.recipe.name} does not read {key}", help=meant or "remove it")
        elif hint is not None and key not in facts.settings:
            message = f"{key} is not read by any recipe of torchtune"
            fix = mended.renamed(node, [hint])
            yield node.field.finding(message, help=f'did you mean "{hint}"?', fix=fix, at_key=True)


def _is_shipped(settings: RecipeSettings, key: str) -> bool:
    return not settings.root.entries[key].own


@rule("TT323", "profiler-component", stage=Stage.PREPARE)
def profiler_component(settings: RecipeSettings, facts: TorchtuneFacts) -> Iterator[Finding]:
    """The profiler section names a component that recipes refuse, or is none.

    Recipes compare the name with that of their own profiler and raise at any other. Without a name they build their
    own from the section, which must be a mapping with the keys of that profiler.

    Write `torchtune.training.setup_torch_profiler`, or remove the section.

    Source: _setup_profiler of the recipes, torchtune 0.4.0 to 0.6.1.
    """
    profiler, component = settings.at("profiler"), settings.at("profiler._component_")
    recipe: RecipeFacts | None = settings.recipe
    if recipe is None or settings.fork or "profiler._component_" not in recipe.optional:
        return
    if profiler.own and profiler.mapping is None and profiler.given and not profiler.unknown:
        message = "profiler must be a section, or null"
        yield settings.refusal(profiler, message=message, help="write a section with enabled: True or False")
    elif component.text().known_and(lambda path: path != PROFILER and facts.component(path).exists is not False):
        message = f"the component of profiler must be {PROFILER}"
        yield settings.refusal(component, message=message, help="write that, or remove the section")
    elif component.absent:
        signature = facts.component(PROFILER).signature
        for key, node in profiler.entries.items():
            if signature is not None and node.own and key not in (*signature.parameters, "_component_"):
                hint = did_you_mean(key, signature.parameters) or "remove it"
                fix = mended.renamed(node, signature.parameters)
                yield node.field.finding(f"the profiler does not accept {key}", help=hint, fix=fix, at_key=True)


@rule("TT324", "config-as-a-key", stage=Stage.START)
def config_as_a_key(settings: RecipeSettings) -> Iterator[Finding]:
    """A config has a key `config`, which tune run uses itself.

    The parser keeps the path of the config under that name and refuses a config that has it too.

    Rename the key.

    Source: the recipes' argument parser, torchtune 0.4.0 to 0.6.1.
    """
    node = settings.root.entries.get("config")
    if node is not None and node.own and not settings.overrides("config"):
        yield node.field.finding("tune run refuses a config with a key config", help="rename the key", at_key=True)
