"""The `accelerate launch` commands that hand a file of arguments to a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trainlint.programs.accelerate.config import LAUNCH, AccelerateConfig
from trainlint.programs.accelerate.deepspeed import config_file, named_deepspeed
from trainlint.programs.accelerate.facts import AccelerateFacts
from trainlint.programs.accelerate.program import launched_configs
from trainlint.reading.values import Field
from trainlint.records import dataclass
from trainlint.repository.invocations import Invocation, invocations_naming

if TYPE_CHECKING:
    from trainlint.programs import Surroundings
    from trainlint.reading.document import Document


@dataclass(frozen=True)
class LaunchOfFile:
    """A launch that passes a file to its script: the launcher's file with its flags, and the script's words."""

    config: AccelerateConfig
    facts: AccelerateFacts
    words: Sequence[str]
    deepspeed: Field | None
    """The DeepSpeed config that the launcher's file names, where it is there to read."""

    @property
    def named(self) -> Field:
        """`deepspeed_config_file` of the launcher's file; absent where none is named."""
        return config_file(self.config, self.facts)


def launches_of_file(document: Document, surroundings: Surroundings) -> Iterator[LaunchOfFile]:
    """Each launch in the repository that passes the file of this document to its script."""
    naming = invocations_naming(surroundings.repository, document, LAUNCH, passed_files)
    for invocation, config, facts in launched_configs(surroundings, naming):
        words = [word.known or "" for word in invocation.rest]
        found = named_deepspeed(config, facts, surroundings.repository)
        yield LaunchOfFile(config, facts, words, found if isinstance(found, Field) else None)


def passed_files(invocation: Invocation) -> list[str]:
    """The YAML files that a launch passes to its script."""
    words = [word.file_name or "" for word in invocation.rest]
    return [word.rpartition("=")[2] for word in words if word.endswith((".yaml", ".yml"))]
