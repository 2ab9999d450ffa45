"""What accelerate's launcher hands to DeepSpeed: the section of the config file, the file it names, the hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from trainlint.lazy import regex
from trainlint.reading.document import Document, Scalar
from trainlint.reading.scalars import Dialect, Plain
from trainlint.reading.text import Undecodable
from trainlint.reading.values import Field
from trainlint.records import NamedTuple, dataclass
from trainlint.releases import within
from trainlint.targets import How
from trainlint.training.deepspeed import (
    OWN_LOOP,
    TRAINER,
    BrokenConfig,
    DeepSpeedConfig,
    DeepSpeedFacts,
    deepspeed_facts,
    named_config,
    stated_release,
)

if TYPE_CHECKING:
    from trainlint.programs.accelerate.config import AccelerateConfig
    from trainlint.programs.accelerate.facts import AccelerateFacts
    from trainlint.repository.files import Repository

_PLUGIN: dict[str, Plain] = {
    "zero_optimization.stage": 2,
    "zero_optimization.offload_optimizer.device": "none",
    "zero_optimization.offload_param.device": "none",
    "zero_optimization.stage3_gather_16bit_weights_on_model_save": False,
}
"""What DeepSpeedPlugin puts for "auto" where the config file says nothing, which it may not beside a JSON."""


@dataclass(frozen=True)
class DeepSpeedLaunch:
    """A config file whose workers run under DeepSpeed, with the release of DeepSpeed."""

    config: AccelerateConfig
    accelerate: AccelerateFacts
    facts: DeepSpeedFacts
    file: Field | BrokenConfig | None
    """The DeepSpeed config that the section names, where it is in the repository."""
    is_folder: bool
    """The section names a folder in place of a file."""
    hosts: Hosts | None
    repository: Repository

    @property
    def field(self) -> Field:
        """The config file's mapping."""
        return self.config.field

    def setting(self, name: str) -> Field:
        """A setting of the section, or its flag."""
        return self.config.deepspeed(name, self.accelerate)

    @property
    def named(self) -> Field:
        """`deepspeed_config_file`; the word none names no file, as does null."""
        return config_file(self.config, self.accelerate)

    @property
    def launcher(self) -> str | None:
        """The launcher on several machines, in lower case; None for torchrun, which `standard` is."""
        if not self.config.machines.above(1):
            return None
        field = self.setting("deepspeed_multinode_launcher")
        if field.is_absent:
            return "pdsh"
        text = field.text()
        return None if text.known is None or text.is_("standard") else text.known.lower()

    @property
    def counts_steps(self) -> bool:
        """The Accelerator reads the steps of accumulation from the launcher: no Trainer may give it a plugin for them.

        Source: transformers, Trainer.create_accelerator_and_postprocess: 4.46 to 4.57 give none.
        """
        from trainlint.training.meant import known_releases, target

        if not _may_have_trainer(self.config, self.repository):
            return True
        meant = target(self.repository, self.field.document.path, known_releases("transformers"))
        certain = meant.how in (How.STATED, How.RANGE) and bool(meant.versions)
        return certain and all(within(version, _WITHOUT_PLUGIN) for version in meant.versions)


_WITHOUT_PLUGIN = "4.46.0..4.57.6"


class HostLine(NamedTuple):
    """A line of a hostfile; name and slots are empty where it is none that DeepSpeed reads."""

    field: Field
    name: str = ""
    slots: int = 0


class Hosts(NamedTuple):
    """The hostfile of DeepSpeed's launcher."""

    field: Field
    """The whole file."""
    lines: Sequence[HostLine]


def deepspeed_views(
    config: AccelerateConfig, known: AccelerateFacts, repository: Repository
) -> Iterator[DeepSpeedLaunch | DeepSpeedConfig | BrokenConfig]:
    """The launch under DeepSpeed, and the DeepSpeed config that it names."""
    release = stated_release(repository, config.field.document.path, known.deepspeed)
    if config.launcher != "deepspeed" or release is None:
        return
    facts = deepspeed_facts(release)
    field = config_file(config, known)
    name = field.text().known or ""
    bases = _bases(config, repository)
    found = named_deepspeed(config, known, repository)
    hostfile = config.deepspeed("deepspeed_hostfile", known).text().known
    hosts = _hosts(hostfile, bases, repository) if hostfile else None
    launch = DeepSpeedLaunch(config, known, facts, found, bool(name) and repository.has_folder(name), hosts, repository)
    yield launch
    if isinstance(found, BrokenConfig):
        yield found
    elif found is not None:
        mesh = config.mesh(known)
        several = launch.launcher is not None or (mesh is not None and mesh.size("sp") > 1)
        yield DeepSpeedConfig(
            field=found,
            named=field,
            facts=facts,
            processes=None if several else config.world_size,
            fills=_fills(config, repository),
            has_trainer=_may_have_trainer(config, repository),
        )


def named_deepspeed(
    config: AccelerateConfig, known: AccelerateFacts, repository: Repository
) -> Field | BrokenConfig | None:
    """The DeepSpeed config that a file names, where it is in the repository."""
    name = config_file(config, known).text().known
    return named_config(name, _bases(config, repository), repository) if name else None


def config_file(config: AccelerateConfig, known: AccelerateFacts) -> Field:
    """The name of a DeepSpeed config, absent where none is named."""
    field = config.deepspeed("deepspeed_config_file", known)
    named = not field.text().is_("none")
    return field if named else Field(field.document, field.dialect, None, field.path, parent=field.parent)


def _bases(config: AccelerateConfig, repository: Repository) -> list[Path]:
    """The folders that a relative name may start from: where the command starts, the workspace, the file's own."""
    holder = Path(config.field.document.path).absolute().parent
    folder = config.launch.invocation.folder if config.launch else ""
    started = [repository.root / folder] if folder else []
    return list(dict.fromkeys([*started, repository.root, holder]))


_TRAINS = regex(r"\b\w*Trainer\b|\bTrainingArguments\b")
_LOOP = regex(r"\bAccelerator\(")


def _fills(config: AccelerateConfig, repository: Repository) -> dict[str, Plain]:
    """What is put for "auto": by accelerate alone where the script that is launched has a loop of its own."""
    text = _script_text(config, repository) or ""
    own = _LOOP.search(text) and not _TRAINS.search(text)
    filled = {**dict.fromkeys(OWN_LOOP if own else TRAINER), **_PLUGIN}
    if own:
        filled["gradient_clipping"] = 1.0
    if own and "gradient_accumulation_steps" not in text:
        filled["gradient_accumulation_steps"] = 1
    return filled


def _may_have_trainer(config: AccelerateConfig, repository: Repository) -> bool:
    """The script that is launched has a Trainer, or is not to be seen; without a launch, some code has one."""
    from trainlint.repository.python_code import python_code

    if config.launch is None:
        return python_code(repository).has_trainer
    text = _script_text(config, repository)
    return text is None or not _LOOP.search(text) or bool(_TRAINS.search(text))


def _script_text(config: AccelerateConfig, repository: Repository) -> str | None:
    """The script that is launched with a config file, where it is in the repository."""
    words = config.launch.invocation.positionals if config.launch else []
    name = words[0].known if words else None
    file = _script(config, name, repository) if name and name.endswith(".py") else None
    if file is not None:
        with suppress(OSError, Undecodable):
            return repository.text(file)
    return None


def _script(config: AccelerateConfig, name: str, repository: Repository) -> Path | None:
    for base in _bases(config, repository):
        if not PurePosixPath(name).is_absolute() and repository.find(base / name):
            return base / name
    return None


_HOST = regex(r"(\S+)\s+slots=(\d{1,250})")


def _hosts(name: str, bases: Sequence[Path], repository: Repository) -> Hosts | None:
    """A hostfile as DeepSpeed reads it; None where it is not in the repository."""
    for base in bases:
        if not PurePosixPath(name).is_absolute() and repository.find(base / name):
            try:
                document = repository.script(base / name)
            except (OSError, Undecodable):
                return None
            return Hosts(Field(document, Dialect.PYYAML, document.root), list(_lines(document)))
    return None


def _lines(document: Document) -> Iterator[HostLine]:
    text = document.text
    for number in range(1, text.line_count + 1):
        line = text.line(number)
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        start = text.line_start(number) + line.index(stripped)
        node = Scalar(stripped, "", None, start, start + len(stripped), None)
        field = Field(document, Dialect.PYYAML, node)
        match = _HOST.match(stripped)
        yield HostLine(field, match[1], int(match[2])) if match else HostLine(field)
