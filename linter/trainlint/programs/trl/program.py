"""TRL: YAML files for `trl sft --config` and the scripts behind it, as TrlParser reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from trainlint.programs import FileReader, WheelProgram
from trainlint.programs.transformers.facts import TABLES, ArgumentFacts
from trainlint.programs.transformers.program import (
    Arguments,
    ArgumentsFile,
    arguments_in,
    deepspeed_config,
    flag_names,
    fsdp_config,
    launches,
    release_below,
    training,
    views,
)
from trainlint.programs.trl.facts import FSDP_PROFILES, GOES_WITH, TRAINERS, trainer_tables, trl_facts
from trainlint.reading.document import Document, of_data
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field, Known
from trainlint.repository.invocations import Command, Invocation, invocations_naming
from trainlint.repository.python_code import own_reader
from trainlint.training.declarations import declarations
from trainlint.training.fsdp import FsdpSetup, Training, nothing

if TYPE_CHECKING:
    from trainlint.programs import Surroundings, Views

COMMAND = Command("trl", tuple(("trl", word.replace("_", "-")) for word in TRAINERS), r"\btrl\b")

EXAMPLE_SCRIPT_KEYS = frozenset(
    """
    dataset_config_name train_file validation_file block_size max_train_samples max_eval_samples use_fast_tokenizer
    """.split()
)
"""Arguments of transformers' example scripts, which use HfArgumentParser."""

_COMMON = frozenset(
    """
    base_model batch_size columns config data_dir data_files dataset_config dataset_name dataset_num_proc datasets
    device dtype exp_name label_smoothing log_with max_length max_new_tokens max_seq_length mixed_precision
    model_name_or_path model_revision name num_epochs num_updates packing path resume_from sanity_check seed split
    streaming temperature tools top_k top_p torch_dtype train_batch_size trust_remote_code user attn_implementation
    lora_alpha lora_dropout lora_r lora_target_modules load_in_4bit load_in_8bit use_peft
    """.split()
)
"""Arguments of TRL that other scripts have too."""


class TrlArguments(Arguments):
    """The arguments of one of TRL's trainers."""


@cache
def _own_names() -> frozenset[str]:
    known, theirs = declarations("trl"), declarations("transformers")
    names: frozenset[str] = frozenset().union(*(known.keys_of_any(table) for table in trainer_tables()))
    return names.difference(_COMMON, *(theirs.keys_of_any(table) for table in TABLES))


def _is_trl(file: ArgumentsFile) -> bool:
    keys = {entry.name for entry in file.field.entries()}
    if keys & EXAMPLE_SCRIPT_KEYS:
        return False
    named = "dataset_name" in keys or _is_mixture(file.field.get("datasets"))
    return ("model_name_or_path" in keys and named) or len(keys & _own_names()) >= 2


def _is_mixture(field: Field) -> bool:
    """The field lists datasets by their paths."""
    items = field.items()
    return bool(items) and all(not item.get("path").is_absent for item in items)


def _started(
    arguments: TrlArguments, surroundings: Surroundings, subject: ArgumentsFile
) -> Iterator[tuple[FsdpSetup, set[str]]]:
    """The setups that the file's `accelerate_config` names, or a `trl` command with this file."""
    own = arguments.get("accelerate_config").text().known
    if own:
        yield from ((setup, set()) for setup in _profile(own, subject, surroundings))
    for invocation in invocations_naming(surroundings.repository, subject.field.document, COMMAND, _config_of):
        config = invocation.flag("--accelerate_config").known
        if config:
            given = flag_names(flag.name.text for flag in invocation.flags)
            yield from ((setup, given) for setup in _profile(config, subject, surroundings))


def _config_of(invocation: Invocation) -> list[str | None]:
    return [invocation.flag("--config").known]


def _profile(name: str, subject: ArgumentsFile, surroundings: Surroundings) -> Iterator[FsdpSetup]:
    """The setup of an accelerate config, named by its path or, if TRL ships it, by its name."""
    from trainlint.programs.accelerate import program as accelerate
    from trainlint.programs.accelerate.config import AccelerateConfig
    from trainlint.programs.accelerate.facts import accelerate_facts
    from trainlint.repository.files import display_path

    if name in FSDP_PROFILES:
        data = {"distributed_type": "FSDP", "fsdp_config": FSDP_PROFILES[name]}
        document = of_data(f"{name}.yaml of TRL", data)
        config = AccelerateConfig(Field.root(document, Dialect.PYYAML))
        yield accelerate.fsdp_setup(config, accelerate_facts(declarations("accelerate").newest))
    holder = Path(subject.field.document.path).absolute().parent
    paths = {
        display_path(file)
        for base in (surroundings.repository.root, holder)
        if (file := surroundings.repository.find(base / name))
    }
    for theirs in surroundings.subjects("accelerate", AccelerateConfig):
        if theirs.field.document.path in paths:
            setup = accelerate.setup_as_checked(theirs, surroundings)
            if setup is not None:
                yield setup


def _trainer(subject: ArgumentsFile) -> str | None:
    """The one trainer in the file's name, if there is exactly one."""
    words = set(re.split(r"[^a-z]+", PurePath(subject.field.document.path).stem.lower()))
    named = [trainer for trainer in TRAINERS if trainer in words]
    return named[0] if len(named) == 1 else None


def _training(arguments: TrlArguments) -> Training:
    """Training arguments that interact with sharding, with the quantization of the model."""
    dtype_name = "dtype" if "dtype" in arguments.facts.fields and arguments.has("dtype") else "torch_dtype"
    dtype = arguments.word(dtype_name if arguments.has(dtype_name) else "dtype")
    quantized = arguments.is_on("load_in_4bit")
    return replace(
        training(arguments),
        quantization=Known(arguments.get("load_in_4bit"), "4bit") if quantized else nothing(),
        quant_storage=arguments.get("bnb_4bit_quant_storage").text(),
        compute_dtype=dtype,
    )


class Trl(WheelProgram[ArgumentsFile, ArgumentFacts]):
    """Files for TRL's trainers."""

    name = "trl"
    readers = (FileReader(COMMAND, "--config"),)

    def adopt(self, document: Document) -> Sequence[ArgumentsFile]:
        """A file of arguments, whatever they are."""
        return [ArgumentsFile(Field.root(document, Dialect.PYYAML), True)]

    def recognise(self, document: Document) -> Sequence[ArgumentsFile]:
        """Training arguments that name a model and a dataset as TRL does, or have two arguments that only TRL has."""
        return [file for file in arguments_in(document) if file.whole and _is_trl(file)]

    def alternatives(self, subject: ArgumentsFile, surroundings: Surroundings, release: str) -> Sequence[Views]:
        """The arguments, how they shard the model, and both together; one alternative for each transformers release."""
        trainer = _trainer(subject)
        reader = own_reader(surroundings.repository, subject.field.document.path)
        found: list[Views] = []
        for transformers in release_below(subject, surroundings, GOES_WITH[release]):
            known = trl_facts(release, transformers, trainer)
            config = fsdp_config(subject.field, known, surroundings)
            arguments = TrlArguments(subject, known, config, deepspeed_config(subject, surroundings), reader)
            launched = [*launches(subject, surroundings), *_started(arguments, surroundings, subject)]
            found.append(list(views(arguments, _training(arguments), launched)))
        return found

    def facts(self, release: str) -> ArgumentFacts:
        """What one known release accepts, with its usual transformers."""
        return trl_facts(release, GOES_WITH[release])


PROGRAM = Trl()
