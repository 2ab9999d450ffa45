"""How a repository starts a trainer of TRL with a file: `trl sft`, a script of TRL, or a script of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from trainlint.programs import FileReader
from trainlint.programs.trl.facts import (
    TRAINERS,
    Unknowns,
    known_tables,
    trainer_of,
    trainer_tables,
    under_command,
    under_script,
)
from trainlint.records import dataclass
from trainlint.repository.invocations import Command, Invocation, invocations_naming, named_file
from trainlint.repository.python_code import python_code
from trainlint.repository.shell import name_of
from trainlint.training.command_lines import NOTHING_BESIDE, GivenBeside, given_in

if TYPE_CHECKING:
    from trainlint.reading.document import Document
    from trainlint.repository.files import Repository
    from trainlint.repository.python_code import PythonCode
    from trainlint.repository.python_module import Module
    from trainlint.repository.shell import Word

COMMAND = Command("trl", tuple(("trl", word.replace("_", "-")) for word in TRAINERS), r"\btrl\b")
COMMAND_READER = FileReader(COMMAND, "--config")

SCRIPT = Command(
    "a training script",
    (("accelerate", "launch"), ("accelerate-launch",), ("torchrun",), ("deepspeed",), ("python",), ("python3",)),
    r"--config\b",
)

MODULE = Command("a script of TRL", tuple((f"trl.scripts.{word}",) for word in TRAINERS), r"\btrl\.scripts\.")

_PROCESSES = ("--num_processes", "--num-processes", "--nproc_per_node", "--nproc-per-node", "--num_gpus")
_MACHINES = ("--nnodes", "--num_nodes")


@dataclass(frozen=True)
class Start:
    """A command line that starts a trainer with the file.

    `tables` are the dataclasses that its parser fills from the file; `beside` the arguments that the command line gives
    itself, `processes` their number where the command line or the file tells it. `scripted`: it is one of TRL's own
    scripts, which load the model and the data as the arguments say.
    """

    invocation: Invocation
    trainer: str
    tables: tuple[str, ...]
    unknowns: Unknowns
    beside: GivenBeside = NOTHING_BESIDE
    processes: int | None = None
    scripted: bool = True
    command: bool = False


def starts(repository: Repository, document: Document, release: str) -> list[Start]:
    """The starts of a file in the repository, each different one once."""
    found: dict[tuple[object, ...], Start] = {}
    for start in (*_commands(repository, document, release), *_scripts(repository, document, release)):
        key = (start.trainer, start.tables, start.unknowns, start.beside, start.processes, start.scripted)
        found.setdefault(key, start)
    return list(found.values())


def start_of_own_script(repository: Repository, document: Document, release: str) -> Start | None:
    """A start of a script of the repository that fills TRL's own config of one trainer from the file."""
    found = _scripts(repository, document, release)
    return next((start for start in found if not start.scripted and start.unknowns is not Unknowns.UNSURE), None)


def _commands(repository: Repository, document: Document, release: str) -> Iterator[Start]:
    """The commands `trl TRAINER --config FILE`."""
    for invocation in COMMAND_READER.invocations(repository, document):
        trainer = invocation.program[-1].text.replace("-", "_")
        words = [word.known or "" for word in invocation.words]
        yield Start(
            invocation,
            trainer,
            trainer_tables(trainer),
            under_command(trainer, release),
            given_in(invocation.words),
            _number(words, _PROCESSES),
            command=True,
        )


def _scripts(repository: Repository, document: Document, release: str) -> Iterator[Start]:
    """The scripts that a launcher or Python starts with the file."""
    for invocation in invocations_naming(repository, document, SCRIPT, _config_of_script):
        script = _script(invocation.words)
        if script is None:
            continue
        index, name = script
        beside = given_in(invocation.words[index + 1 :])
        processes = _processes(invocation, invocation.words[:index])
        trainer = trl_script(name)
        if trainer is not None:
            unknowns = under_script(trainer, release)
            yield Start(invocation, trainer, trainer_tables(trainer), unknowns, beside, processes)
            continue
        file = named_file(repository, invocation, name)
        module = python_code(repository).module(file) if file is not None else None
        if module is not None:
            yield from _own(invocation, module, python_code(repository), release, beside, processes)


def _config_of_script(invocation: Invocation) -> list[str]:
    script = _script(invocation.words)
    rest = invocation.words[script[0] + 1 :] if script else ()
    return [_value([word.known or "" for word in rest], "--config")]


def _own(
    invocation: Invocation,
    module: Module,
    code: PythonCode,
    release: str,
    beside: GivenBeside,
    processes: int | None,
) -> Iterator[Start]:
    """A script of the repository that fills a config of TRL from the file.

    A class of the repository, also one of the same name as TRL's, has arguments that no release tells.
    """
    trainers = [trainer for name in sorted(module.parsed) if (trainer := trainer_of(name))]
    reads = [keywords for name, keywords in module.calls if name == "parse_args_and_config"]
    if len(trainers) != 1 or len(reads) != 1:
        return
    own = any(code.makes(name) for name in module.parsed)
    tables = () if own else known_tables(module.parsed, release)
    strict = not reads[0] & {"fail_with_unknown_args", "return_remaining_strings", ""}
    unknowns = Unknowns.UNSURE if not tables else Unknowns.REFUSED if strict else Unknowns.DROPPED
    tables = tables or trainer_tables(trainers[0])
    yield Start(invocation, trainers[0], tables, unknowns, beside, processes, scripted=False)


def trl_script(name: str) -> str | None:
    """The trainer of a script of TRL, by its module (`trl.scripts.sft`) or by its path."""
    path = PurePosixPath(name.replace(".", "/") if name.startswith("trl.") else name.removesuffix(".py"))
    trainer = path.name if path.parts[-3:-1] in (("trl", "scripts"), ("commands", "scripts")) else ""
    return trainer if trainer in TRAINERS else None


def _script(words: Sequence[Word]) -> tuple[int, str] | None:
    """The script that a launcher starts, with its index: the first path of a Python file, or a module of TRL."""
    for index, word in enumerate(words):
        known = word.known or ""
        if known.endswith(".py") or (index and words[index - 1].text in ("-m", "--module") and trl_script(known)):
            return index, known
    return None


def _value(words: Sequence[str], flag: str) -> str:
    """The value of a flag, as a word of its own or after an equals sign."""
    for word, following in zip(words, [*words[1:], ""], strict=False):
        if word == flag:
            return following
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return ""


def _processes(invocation: Invocation, words: Sequence[Word]) -> int | None:
    """The number of processes that a launcher starts; one for Python itself."""
    given = [word.known or "" for word in words]
    modules = [word for word in given if word in ("-m", "--module")]
    if name_of(invocation.program[0]).startswith("python") and len(modules) == len(given):
        return 1
    number, machines = _number(given, _PROCESSES), _number(given, _MACHINES)
    has_machines = any(_value(given, flag) for flag in _MACHINES)
    return None if number is None or (has_machines and machines is None) else number * (machines or 1)


def _number(words: Sequence[str], flags: Sequence[str]) -> int | None:
    """The number that one of the flags gives."""
    texts = [value for flag in flags if (value := _value(words, flag))]
    return int(texts[0]) if texts and texts[0].isdecimal() else None
