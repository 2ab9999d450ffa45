"""torchtune: recipe configs, `tune run` commands, and TrainJobs that start torchtune, as one typed view.

All that start a recipe become the same two views: the words of `tune run`, and the resulting config, which is a file or
a shipped config with the overrides merged in. The rules look at these two only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from trainlint.findings import Finding, Fix, Severity, Stage
from trainlint.lazy import regex
from trainlint.programs import ProgramModule
from trainlint.programs.kubeflow.facts.release import LORA_ARG
from trainlint.programs.torchtune.command import Arg, TuneRun, config_word, filled_in
from trainlint.programs.torchtune.facts import (
    DATES,
    KUBEFLOW_IMAGE,
    RELEASES,
    RENAMED,
    TORCHRUN_BARE,
    RecipeFacts,
    TorchtuneFacts,
    facts_of,
    unreleased_component,
)
from trainlint.programs.torchtune.omegaconf import ConfigNode
from trainlint.reading.document import Document
from trainlint.reading.document import Mapping as MappingNode
from trainlint.reading.scalars import Dialect, whole_number
from trainlint.reading.text import Undecodable
from trainlint.reading.values import Field, Known, Unknown
from trainlint.reading.values import Path as YamlPath
from trainlint.records import dataclass, field
from trainlint.releases import InForce, speaking_for
from trainlint.repository.invocations import (
    Command,
    Invocation,
    documented_invocations,
    invocations_in,
    may_be_elsewhere,
    named_file,
    repository_invocations,
)
from trainlint.repository.python_code import python_code
from trainlint.repository.shell import Word
from trainlint.repository.stated import stated
from trainlint.repository.statements import Kind
from trainlint.targets import How, Target
from trainlint.training.meant import KnownReleases, target

if TYPE_CHECKING:
    from trainlint.programs import Surroundings, Views
    from trainlint.programs.kubeflow.facts.release import KubeflowFacts
    from trainlint.programs.kubeflow.objects import Recipe, TrainJob
    from trainlint.repository.files import Repository

RUN = Command(
    "tune run",
    (("tune", "run"),),
    r"\btune\W+run\b",
    bare=TORCHRUN_BARE,
    dashes_as_underscores=True,
    ends_at_script=True,
)
MAX_VALUES = 20_000
_KNOWN = KnownReleases("torchtune", RELEASES, DATES, lambda release: {})

_KUBEFLOW = "trainer.kubeflow.org"
_OTHER_LAUNCHER = regex(r"(?:.*/)?(?:torchrun|srun|mpirun|accelerate|deepspeed|ray)$|(?:RANK|WORLD_SIZE)=")
_OWN_LAYOUT = regex(r"(?:^|/)recipes/configs/")
_REGISTRY = "_recipe_registry.py"


# what is recognised


class RecipeFile:
    """A recipe's config: a document with a `_component_` in a top-level section."""

    owns_document = True

    def __init__(self, field: Field) -> None:
        self.field = field


class JobRun:
    """A TrainJob that may start torchtune."""

    owns_document = False

    def __init__(self, job: TrainJob) -> None:
        self.job = job
        self.field = job.field


TorchtuneSubject: TypeAlias = "RecipeFile | JobRun | Invocation"


# the views


class ConfigFile:
    """A recipe's config as OmegaConf loads it."""

    def __init__(self, field: Field) -> None:
        self.field = field


class Job:
    """A TrainJob that starts torchtune, with the recipe and config that Kubeflow Trainer chooses for it.

    `place` is the field that decides the choice.
    """

    def __init__(self, recipe: str, config: str, place: Field) -> None:
        self.recipe = recipe
        self.config = config
        self.place = place


@dataclass
class RecipeSettings:
    """A config as a recipe gets it.

    `recipe` is None where it is not one of torchtune's. `certain`: a command names the recipe; else it follows from the
    config's settings. `stated`: something names torchtune's release. `fork`: the repository contains torchtune itself,
    or installs somebody's copy, so its registry, components and recipes need not be those of a release.
    """

    root: ConfigNode
    recipe: RecipeFacts | None
    certain: bool = False
    near: bool = False
    stated: bool = True
    fork: bool = False
    launched: bool | None = True
    world_size: int | None = None
    job: bool = False
    overridden: frozenset[str] = frozenset()
    is_open: bool = False
    """The command with the file has words that are filled in later: they may give further settings."""
    filled_in: tuple[str, ...] = ()
    """Overrides with a value that a shell or a template fills in, as written."""
    provides: Callable[[str], bool] = lambda name: False
    """The repository defines a class or function of this name, which may be put into torchtune."""
    removed: Mapping[str, Field] = field(default_factory=dict)

    def overrides(self, key: str) -> bool:
        """The command line sets this top-level setting, or something in it."""
        return key in self._touched

    @cached_property
    def _touched(self) -> frozenset[str]:
        """The top-level settings that the command line sets, or something in them."""
        return frozenset(name.partition(".")[0] for name in self.overridden)

    def at(self, path: str) -> ConfigNode:
        """A setting by its dotted key."""
        return self.root.at(path)

    def checks(self, name: str) -> bool:
        """The recipe makes this check."""
        return self.recipe is not None and not self.fork and name in self.recipe.checks

    def reads(self, key: str) -> bool:
        """The recipe reads this top-level setting."""
        return self.recipe is not None and key in self.recipe.top_level

    @property
    def sure(self) -> bool:
        """The recipe is known: a command names it, or hardly any setting is missing or unread."""
        return self.recipe is not None and (self.certain or self.near)

    def built_at(self, name: str) -> Stage:
        """When the recipe builds a section from its component."""
        early = self.recipe is not None and name in self.recipe.start
        return Stage.START if name == "tensor_parallel_plan" or (early and name == "quantizer") else Stage.PREPARE

    def section(self, name: str) -> ConfigNode | None:
        """A section that the recipe builds from its `_component_`; None where it is not one, or nothing builds it."""
        node = self.root.entries.get(name)
        built = node is not None and node.mapping is not None and (self.recipe is None or self.reads(name))
        return node if built and not self.fork else None

    @cached_property
    def checkpointers(self) -> list[ConfigNode]:
        """The sections of checkpointers that the recipe builds."""
        names = (name for name in self.root.entries if name.endswith("checkpointer"))
        return [section for name in names if (section := self.section(name)) is not None]

    @cached_property
    def models(self) -> list[ConfigNode]:
        """The sections of models that the recipe builds."""
        names = ("model", "teacher_model", "policy_model", "reward_and_value_model")
        return [section for name in names if (section := self.section(name)) is not None]

    @cached_property
    def datasets(self) -> list[ConfigNode]:
        """The sections of datasets that the recipe builds: one, or each of a list."""
        node = self.root.entries.get("dataset")
        if node is None or self.fork or not (self.recipe is None or self.reads("dataset")):
            return []
        return [part for part in [node, *node.elements] if part.mapping is not None]

    @cached_property
    def nodes(self) -> list[ConfigNode]:
        """All nodes of the config, as written."""
        return list(self.root.walk())

    @cached_property
    def referenced(self) -> frozenset[str]:
        """The top-level settings that an interpolation names."""
        texts = [node.plain for node in self.nodes if isinstance(node.plain, str)]
        return frozenset(key for text in (*texts, *self.filled_in) for key in re.findall(r"\$\{\s*([\w-]+)", text))

    def names_nothing(self, key: str) -> bool:
        """An interpolation of the user's own names this key, which is not there."""
        missing = (node.problem for node in self.nodes if node.own and isinstance(node.plain, str))
        return any(problem is not None and problem.message.endswith(f"there is no {key}") for problem in missing)

    @cached_property
    def components(self) -> list[ConfigNode]:
        """All sections with a `_component_`."""
        return [node for node in self.nodes if node.mapping is not None and "_component_" in node.mapping]

    @cached_property
    def for_development(self) -> bool:
        """Some component is newer than the last release, and nothing names a release: other names may be as new.

        In such a config only a name that is almost a known one counts as a mistake.
        """
        paths = (section.get("_component_").text().known or "" for section in self.components)
        return not self.stated and any(unreleased_component(path) for path in paths)

    def refusal(
        self, *nodes: ConfigNode, message: str, help: str = "", stage: Stage | None = None, fix: Fix | None = None
    ) -> Finding:
        """A finding on what the recipe raises at its start, at the first of these nodes that the user wrote.

        It is a warning where it is not known how a recipe for several processes is started: it may not get that far.
        """
        place = next((node for node in nodes if node.own and node.present), nodes[0])
        severity = Severity.ERROR if self.launched else Severity.WARNING
        others = (node for node in nodes if node is not place and node.own and node.present)
        related = tuple(part for node in others for part in node.field.relate(f"{node.name} is here"))
        return place.field.finding(message, help=help, severity=severity, stage=stage, related=related, fix=fix)


def _jobs(document: Document) -> Iterator[TrainJob]:
    from trainlint.programs.kubeflow.objects import TrainJob
    from trainlint.programs.kubeflow.program import objects_of

    for subject in objects_of(document):
        if isinstance(subject, TrainJob):
            yield subject


def _is_a_jobs(invocation: Invocation) -> bool:
    """The command belongs to a TrainJob that Kubeflow Trainer completes with a recipe and a config."""
    owner, document = invocation.owner, invocation.document
    if owner is None or _KUBEFLOW not in document.text.content:
        return False
    return any(job.trainer.path == owner.path and job.runs_tune for job in _jobs(document))


def _path(subject: TorchtuneSubject) -> str:
    return subject.field.document.path if not isinstance(subject, Invocation) else subject.document.path


def _stated(subject: TorchtuneSubject, surroundings: Surroundings) -> bool:
    """Something names the release: an option, a setting, a pin, or the image of a job's runtime."""
    return (
        isinstance(subject, JobRun)
        or surroundings.named_target("torchtune", _path(subject)) is not None
        or stated(surroundings.repository, _path(subject), "torchtune").how is not How.NOT_STATED
    )


# config files


def _of_file(subject: RecipeFile, surroundings: Surroundings, release: str) -> list[Views]:
    """One alternative for each command that uses the file, else for each recipe that it may belong to.

    Commands in scripts are reported with the config that they name, else with the first config that is for the same
    releases as the script, so that each is reported once.
    """
    path = _path(subject)
    every: list[object] = [ConfigFile(subject.field)]
    if _is_too_large(subject.field):
        return [every]
    root = ConfigNode.of_field(subject.field)
    stated = _stated(subject, surroundings)
    if _is_fork(surroundings, path):
        return [[*every, RecipeSettings(root, None, stated=stated, fork=True)]]
    uses = []
    is_certain = is_open = False
    for command in _commands(surroundings, release):
        uses_this = command.config == Path(path).absolute()
        nameless = command.in_script and command.config is None
        if (uses_this and command.in_script) or (nameless and _first_beside(command.path, surroundings) is subject):
            every += command.views
        if uses_this:
            found = [view for view in command.views if isinstance(view, RecipeSettings)]
            uses += found
            is_certain = is_certain or (command.in_script and bool(found))
            is_open = is_open or not found
    if is_certain:
        # What a command in a script does is in every alternative already.
        return [every]
    recipes, near = _candidates(path, root, facts_of(release))
    if _is_documented_for_another(path, surroundings, release):
        recipes = []
    provides = python_code(surroundings.repository).makes
    likely: Sequence[RecipeFacts | None] = recipes or [None]
    alone = [
        RecipeSettings(root, one, near=near and bool(one), stated=stated, provides=provides, is_open=is_open)
        for one in likely
    ]
    return [[*every, settings] for settings in uses or alone]


def _first_beside(script: str, surroundings: Surroundings) -> RecipeFile | None:
    """The first config of the repository that is for the same releases as a script."""

    def releases(path: str) -> tuple[tuple[str, ...], How]:
        found = surroundings.named_target("torchtune", path) or target(surroundings.repository, path, _KNOWN)
        return found.versions, found.how

    def found() -> RecipeFile | None:
        configs, ours = surroundings.subjects("torchtune", RecipeFile), releases(script)
        return next((config for config in configs if releases(_path(config)) == ours), None)

    return surroundings.repository.once(("first config beside", script), found)


def _is_documented_for_another(path: str, surroundings: Surroundings, release: str) -> bool:
    """A README starts a recipe of the repository's own with the file."""
    repository = surroundings.repository
    for invocation in documented_invocations(repository, RUN):
        recipe = invocation.positionals[-1].text if invocation.positionals else ""
        name = config_word([Arg.of_word(word) for word in invocation.rest], invocation.field)[1].known
        file = named_file(repository, invocation, name) if name else None
        if file is not None and file.absolute() == Path(path).absolute():
            return recipe not in facts_of(release).recipes and _may_be_module(recipe, repository)
    return False


def _is_too_large(field: Field) -> bool:
    """Aliases expand the file to more values than any config has."""
    return isinstance(field.target, MappingNode) and field.target.weight > MAX_VALUES


@dataclass(frozen=True)
class _Command:
    """A `tune run` of the repository: the file that holds it, that of its config, and its views."""

    path: str
    config: Path | None
    in_script: bool
    views: Views


def _commands(surroundings: Surroundings, release: str) -> list[_Command]:
    """Every `tune run` of the repository, read once."""
    return surroundings.repository.once(("tune run", release), lambda: list(_read_commands(surroundings, release)))


def _read_commands(surroundings: Surroundings, release: str) -> Iterator[_Command]:
    for invocation in repository_invocations(surroundings.repository, RUN):
        run = None if _is_a_jobs(invocation) else _of_invocation(invocation, surroundings, release)
        if run is not None:
            file = named_file(surroundings.repository, invocation, run.config.known or "")
            config = file.absolute() if file is not None else None
            yield _Command(_path(invocation), config, invocation.owner is None, _views(run, release))


def _candidates(path: str, root: ConfigNode, facts: TorchtuneFacts) -> tuple[list[RecipeFacts], bool]:
    """The most likely recipes of a config, and whether it fits them well.

    A file with the name of a shipped config belongs to the recipes of that config. Otherwise those recipes count for
    which the fewest settings are missing or unread.
    """
    shipped = facts.recipes_of_file(path)
    if shipped:
        return list(shipped), True
    given = set(root.entries)
    lora = "lora_" in (root.at("model._component_").text().known or "")
    distances = {}
    for recipe in facts.recipes.values():
        missing = [key for key in recipe.required if not root.at(key).present]
        unread = given - facts.settings_of(recipe)
        wrong_kind = lora != ("model.lora_rank" in recipe.required) and "model" in given
        distances[recipe.name] = len(missing) + len(unread) + 2 * wrong_kind
    least = min(distances.values())
    if least > _TOO_FAR:
        return [], False
    return [facts.recipes[name] for name, distance in distances.items() if distance == least], least <= _NEAR


_NEAR, _TOO_FAR = 2, 8
"""Up to `_NEAR` missing or unread settings the recipe is certain; above `_TOO_FAR` the config is no recipe's."""


def _is_for_an_older_release(subject: RecipeFile) -> bool:
    """Several components stand where the releases before all known ones had them, and none where they are now."""
    components = [entry.get("_component_").text().known or "" for entry in subject.field.entries()]
    old = [path for path in components if any(path == name or path.startswith(f"{name}.") for name in RENAMED)]
    return len(old) > 1 and not any(path.startswith("torchtune.training.") for path in components)


def _is_fork(surroundings: Surroundings, path: str) -> bool:
    """The file belongs to torchtune's own source tree or to a copy of it, or runs with one that lies elsewhere."""
    repository = surroundings.repository
    if _OWN_LAYOUT.search(path) is not None or repository.once(
        "torchtune's own tree", lambda: bool(repository.files_named([_REGISTRY]))
    ):
        return True
    if surroundings.named_target("torchtune", path) is not None:
        return False
    meanings = [statement.meaning for statement in stated(repository, path, "torchtune").statements]
    return any(meaning.fork or (meaning.kind is Kind.UNKNOWN and meaning.local) for meaning in meanings)


# commands


def _views(run: TuneRun, release: str) -> Views:
    merged = run.merged
    recipe = facts_of(release).recipes.get(run.recipe.known or "")
    if merged is None or (recipe is None and not run.own_recipe):
        return [run]
    settings = RecipeSettings(
        merged,
        recipe,
        certain=recipe is not None,
        stated=run.stated,
        fork=run.fork,
        provides=run.provides,
        launched=run.launched,
        world_size=run.world_size,
        job=run.job,
        overridden=frozenset(override.key for override in run.overrides),
        filled_in=tuple(override.arg.text for override in run.overrides if not override.arg.value_known),
        removed={override.key: override.arg.field for override in run.overrides if override.value is None},
    )
    return [run, settings]


def _of_invocation(invocation: Invocation, surroundings: Surroundings, release: str) -> TuneRun | None:
    """The command of an invocation; None where its recipe is filled in later."""
    words, rest = invocation.words, invocation.rest
    position = len(words) - len(rest) - 1
    if not invocation.positionals or invocation.positionals[-1].known is None or position < 0:
        return None
    recipe, before = words[position], words[:position]
    known = facts_of(release).recipes.get(recipe.text)
    if known is None and len(invocation.positionals) > 1:
        return None
    args, config, flag = config_word([Arg.of_word(word) for word in rest], invocation.field)
    run = TuneRun(invocation.field, recipe.value, config, args, torchrun=[Arg.of_word(word) for word in before])
    run.config_flag = flag
    run.launched = _launched(invocation, before, known)
    run.world_size = _world_size(invocation) if before else 1
    run.stated = _stated(invocation, surroundings)
    run.alone = run.launched is False and _stands_alone(invocation, surroundings.repository)
    run.fork = _is_fork(surroundings, _path(invocation))
    run.provides = python_code(surroundings.repository).makes
    run.own_recipe = known is None and _may_be_module(recipe.text, surroundings.repository)
    _find_config(run, surroundings, release, invocation)
    return run


def _find_config(run: TuneRun, surroundings: Surroundings, release: str, invocation: Invocation | None) -> None:
    """Fill in `config_found` and `base`: whether the config exists, and its content."""
    name = run.config.known
    if name is None:
        run.config_found = True
        return
    facts = facts_of(release)
    shipped = facts.config_file(name, run.recipe.known or "")
    if name in facts.configs:
        content = facts.config(shipped) if shipped is not None else None
        if content is not None and not run.fork:
            run.base = ConfigNode.of_data(dict(content), run.config.field)
        return
    file = named_file(surroundings.repository, invocation, name) if invocation is not None else None
    run.config_found = (
        file is not None
        or name.endswith((".yaml", ".yml"))
        or (invocation is not None and may_be_elsewhere(surroundings.repository, invocation, name))
    )
    if file is not None:
        root = _root_of(file, surroundings.repository)
        usable = root is not None and root.is_mapping and not _is_too_large(root)
        run.base = ConfigNode.of_field(root) if root is not None and usable else None
        run.content = "a list" if root is not None and root.is_sequence else ""
        if root is None and not surroundings.repository.read(file).strip():
            run.content = "empty"


def _root_of(file: Path, repository: Repository) -> Field | None:
    try:
        found = repository.documents(file, re.compile(""))
    except OSError:
        return None
    return Field.root(found[0], Dialect.OMEGACONF) if found else None


def _launched(invocation: Invocation, before: Sequence[Word], recipe: RecipeFacts | None) -> bool | None:
    if before or recipe is None or not recipe.distributed:
        return True
    in_container = invocation.owner is not None and invocation.owner.get("image").node is not None
    elsewhere = in_container or any(_OTHER_LAUNCHER.match(word.text) for word in invocation.before)
    return None if elsewhere else False


def _stands_alone(invocation: Invocation, repository: Repository) -> bool:
    """A script starts it, and nothing in the repository could set the variables of a process group for it."""
    if invocation.owner is not None or invocation.elsewhere or _LAUNCHER_TEXT.search(invocation.document.text.content):
        return False
    return repository.once("nothing but scripts", lambda: not _has_launchers(repository))


def _has_launchers(repository: Repository) -> bool:
    with suppress(OSError, Undecodable):
        if any(_STARTS.search(repository.text(file)) for file in repository.files_named(_CONTAINER_FILES)):
            return True
        return any("apiVersion" in repository.text(file) for file in repository.files)
    return True


_CONTAINER_FILES = ("Dockerfile", "dockerfile", "Containerfile", "compose.yaml", "compose.yml", ".sbatch", ".slurm")
_STARTS = regex(
    r"^[ \t]*(?i:CMD|ENTRYPOINT)\b|\b(?:command|entrypoint|services)[ \t]*:|#SBATCH"
    r"|\b(?:MASTER_ADDR|RANK|WORLD_SIZE|mpirun|srun|torchrun|tune)\b",
    re.MULTILINE,
)
"""A container or a job starts something; a Dockerfile that only installs does not."""
_LAUNCHER_TEXT = regex(r"\b(?:MASTER_ADDR|RANK|SBATCH|SLURM\w*|WORLD_SIZE|mpirun|srun|torchrun)\b")


def _world_size(invocation: Invocation) -> int | None:
    """The number of processes in torchrun's options, where both options are plain numbers."""
    sizes = []
    for option in ("--nproc_per_node", "--nnodes"):
        given = invocation.flag(option)
        text = given.or_when_absent("1").known or ""
        number = whole_number(text)
        if number is None:
            return None
        sizes.append(number)
    return sizes[0] * sizes[1]


def _may_be_module(recipe: str, repository: Repository) -> bool:
    """An unregistered recipe may be the user's own module: it is a path, or there is a file of that name.

    The file of one of torchtune's own recipes, without a folder, is nobody's where the repository has no such file.
    """
    if recipe.endswith(".py") and recipe.removesuffix(".py") in facts_of(RELEASES[-1]).recipes:
        return bool(repository.files_named([recipe]))
    if "/" in recipe or recipe.endswith(".py"):
        return True
    name = recipe.replace(".", "/") + ".py"
    return any(
        ("/" + file.as_posix()).endswith("/" + name) for file in repository.files_named([PurePosixPath(name).name])
    )


# TrainJobs


def _of_job(subject: JobRun, surroundings: Surroundings, release: str) -> Iterator[Views]:
    """One alternative for each definition of a job's runtime and each recipe that it may resolve to."""
    from trainlint.programs.kubeflow.program import PROGRAM as KUBEFLOW

    named = surroundings.named_target("kubeflow-trainer", subject.field.document.path)
    target = named or KUBEFLOW.default_target(subject.job, surroundings)
    for version in dict.fromkeys(r for v in target.versions for r in KUBEFLOW.in_force(v).releases):
        for job in KUBEFLOW.jobs(subject.job, surroundings, version):
            yield from _job_alternatives(job, surroundings, release, version) or [[]]


def _job_alternatives(job: TrainJob, surroundings: Surroundings, release: str, version: str) -> list[Views]:
    from trainlint.programs.kubeflow.objects import built_recipe
    from trainlint.programs.kubeflow.program import PROGRAM as KUBEFLOW

    if not job.runs_tune:
        run = _runtime_run(job, surroundings, release) if job.command.absent else None
        return [_views(run, release)] if run is not None else []
    if job.runtime is not None and not job.runtime.torch:
        run = _from_words(_job_args(job), job.command.field, surroundings, release)
        return [_views(run, release)] if run is not None else []
    kubeflow_facts = KUBEFLOW.facts(version)
    place, args = job.runtime_name.field, [*_runtime_args(job), *_job_args(job)]
    built = built_recipe(job, kubeflow_facts) if job.runtime is not None else None
    pairs = [(built.name, built.config)] if built else list(_possible(job, kubeflow_facts, facts_of(release)))
    if not pairs or not _is_admitted(job, surroundings, version):
        return [[TuneRun(job.command.field, Unknown(place), Unknown(place), args, job=True)]]
    found: list[Views] = []
    for recipe, config in pairs:
        run = TuneRun(job.command.field, Known(place, recipe), Known(place, config), args, job=True)
        _find_config(run, surroundings, release, None)
        found.append([*_views(run, release), *([Job(recipe, config, _deciding_field(job, built))] if built else [])])
    return found


def _is_admitted(job: TrainJob, surroundings: Surroundings, version: str) -> bool:
    """Admission accepts the job; for a refused job nothing more is reported here."""
    from trainlint.programs.kubeflow.objects import TrainerObject

    def found() -> dict[tuple[str, int, YamlPath], TrainerObject]:
        subjects = surroundings.subjects_in(path, "kubeflow-trainer", TrainerObject)
        return {_place(subject.field): subject for subject in reversed(subjects)}

    path = job.field.document.path
    same = surroundings.repository.once(("jobs by place", path), found).get(_place(job.field))
    return same is None or surroundings.is_admitted("kubeflow-trainer", same, version)


def _place(field: Field) -> tuple[str, int, YamlPath]:
    return field.document.path, field.document.index, field.path


def _possible(job: TrainJob, kubeflow_facts: KubeflowFacts, facts: TorchtuneFacts) -> Iterator[tuple[str, str]]:
    """The recipes and configs that a job may resolve to where its GPUs or its runtime are not known."""
    model = job.torchtune_model.known
    if not model or job.num_nodes.or_when_absent(1).known != 1:
        return
    lora, quantized = job.uses_lora, job.uses_qlora(kubeflow_facts)
    kinds = ["_qlora"] if quantized is not False else []
    if not quantized:
        kinds += ["_lora"] if lora is not False else []
        kinds += ["_full"] if not lora else []
    for recipe in ("full_finetune", "lora_finetune"):
        for where, suffix in (("single_device", "_single_device"), ("distributed", "")):
            for kind in kinds:
                name, config = f"{recipe}_{where}", f"{model}{kind}{suffix}"
                if config in facts.recipes[name].configs:
                    yield name, config


def _deciding_field(job: TrainJob, recipe: Recipe | None) -> Field:
    """The field of the job that decides its recipe and config."""
    if recipe is not None and recipe.single_device:
        for place in (job.num_proc_per_node, job.trainer.get("resourcesPerNode")):
            if not place.is_absent:
                return place
    if recipe is not None and recipe.config.endswith("_multinode") and job.num_nodes.given:
        return job.num_nodes.field
    if recipe is not None and recipe.lora:
        for arg in job.args:
            if arg.known_and(lambda text: LORA_ARG in text):
                return arg.field
    return job.runtime_name.field


def _job_args(job: TrainJob) -> list[Arg]:
    return [Arg.of_value(arg) for arg in job.args]


def _runtime_args(job: TrainJob) -> list[Arg]:
    """The part of the runtime's command that the plugin passes on, and its args where the job has none."""
    container = job.runtime.trainer_container if job.runtime else None
    if container is None:
        return []
    words = [str(word) for word in container.command.known or []]
    kept = [word for word in words if word.partition("=")[0] in _HANDED_ON]
    if job.trainer.get("args").is_absent:
        kept += [str(word) for word in container.args.known or []]
    place = job.runtime_name.field
    return [Arg(word, place, not filled_in(word.partition("=")[0]), not filled_in(word)) for word in kept]


_HANDED_ON = ("output_dir", "tokenizer.path", "tokenizer.merges_file", "checkpointer.checkpoint_dir")


def _runtime_run(job: TrainJob, surroundings: Surroundings, release: str) -> TuneRun | None:
    """The runtime's own command with the job's arguments: what a job without a command starts."""
    container = job.runtime.trainer_container if job.runtime else None
    words = [str(word) for word in (container.command.known or [])] if container else []
    if words[:2] != ["tune", "run"] or container is None:
        return None
    place = job.runtime_name.field
    if job.trainer.get("args").is_absent:
        words += [str(word) for word in container.args.known or []]
    args = [Arg(word, place, not filled_in(word), not filled_in(word)) for word in words[2:]]
    return _from_words([*args, *_job_args(job)], place, surroundings, release)


def _from_words(args: list[Arg], place: Field, surroundings: Surroundings, release: str) -> TuneRun | None:
    """`tune run` with these words; None where the recipe among them is not known."""
    index = 0
    while index < len(args) and args[index].text.startswith("-"):
        flag = RUN.spelling(args[index].key)
        index += 1 if "=" in args[index].text or flag in RUN.bare else 2
    if index >= len(args) or not (args[index].key_known and args[index].value_known):
        return None
    recipe = args[index]
    known = facts_of(release).recipes.get(recipe.text)
    rest, config, flag_arg = config_word(args[index + 1 :], place)
    run = TuneRun(place, Known(recipe.field, recipe.text), config, rest, torchrun=args[:index], job=True)
    run.config_flag = flag_arg
    run.launched = True if index or known is None or not known.distributed else None
    run.own_recipe = known is None
    _find_config(run, surroundings, release, None)
    run.config_found = True
    return run


_IMAGE = regex(r"(?:^|/)kubeflow/trainer/torchtune-trainer(?:[:@]|$)")


def _is_in_image(invocation: Invocation) -> bool:
    """The container of a command has Kubeflow's own image, as in the runtimes that a release ships."""
    image = invocation.owner.get("image").text().known if invocation.owner is not None else None
    return image is not None and _IMAGE.search(image) is not None


class Torchtune(ProgramModule["RecipeFile | JobRun | Invocation", TorchtuneFacts]):
    """The program torchtune: its configs, and the commands and jobs that start it."""

    def recognise(self, document: Document) -> Sequence[TorchtuneSubject]:
        """A recipe's config, the `tune run` commands in a document, and its TrainJobs."""
        root = Field.root(document, Dialect.OMEGACONF)
        found: list[TorchtuneSubject] = []
        if any(entry.is_mapping and entry.get("_component_").node is not None for entry in root.entries()):
            found.append(RecipeFile(root.as_subject()))
        found.extend(invocations_in(document, [RUN]))
        if _KUBEFLOW in document.text.content:
            found.extend(JobRun(job) for job in _jobs(document) if not job.is_from_a_cluster)
        return found

    def alternatives(self, subject: TorchtuneSubject, surroundings: Surroundings, release: str) -> Iterable[Views]:
        """One alternative for each command, recipe or runtime that the subject may run with."""
        if isinstance(subject, RecipeFile):
            return _of_file(subject, surroundings, release)
        if isinstance(subject, JobRun):
            return _of_job(subject, surroundings, release)
        if isinstance(subject, Invocation) and not _is_a_jobs(subject):
            run = _of_invocation(subject, surroundings, release)
            return [[]] if run is None else [_views(run, release)]
        return [[]]

    def facts(self, release: str) -> TorchtuneFacts:
        """What one known release ships."""
        return facts_of(release)

    def default_target(self, subject: TorchtuneSubject, surroundings: Surroundings) -> Target:
        """For a job the release in the image of its runtime, else the pinned one, else the newest."""
        if isinstance(subject, JobRun) or (
            isinstance(subject, Invocation) and (_is_a_jobs(subject) or _is_in_image(subject))
        ):
            return Target((KUBEFLOW_IMAGE,), "the image of Kubeflow Trainer", How.STATED)
        found = target(surroundings.repository, _path(subject), _KNOWN)
        old = found.how is How.NOT_STATED and isinstance(subject, RecipeFile) and _is_for_an_older_release(subject)
        return found._replace(maybe_another=True) if old else found

    def in_force(self, version: str) -> InForce:
        """The known releases that stand in for a version."""
        return speaking_for(RELEASES, version)


PROGRAM = Torchtune()
