"""DeepSpeed's config: one typed view for every program that names one, and how each release of DeepSpeed reads it.

A program that lets its files name a DeepSpeed config does three things:

1. `named_config(name, bases, repository)` reads the file that a field names, or `DeepSpeedConfig.field` is the mapping
   that stands in the program's own file. A file that is no JSON gives a `BrokenConfig`, which is a view, too.
2. It yields `DeepSpeedConfig(field=..., named=..., facts=deepspeed_facts(release), ...)` among its views. The release
   is `stated_release(repository, path, goes_with)`: what the repository says of the package deepspeed, else the one
   that goes with the program's.
3. Its row in programs/table.py has `trainlint.training.deepspeed_rules` among the rules.

What a program knows of the run it says in the view: `processes`, and in `fills` what it puts where the config says
"auto". A name that is not in `fills` is filled by nobody; one whose value is None is filled with something that the
files do not tell. `OWN_LOOP` is what accelerate fills in for a script with a loop of its own, `TRAINER` what
transformers' Trainer fills in. Where the files do not tell who trains, `fills` has the names of both.

    fills = dict.fromkeys(TRAINER) | {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}

A value that a program compares with its own arguments (the Trainer does) is the program's own rule.

Findings have their place in the config, be it a file of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.findings import Edit, Fix, Related, Stage
from trainlint.reading.document import Document, Scalar, Unparsable, documents
from trainlint.reading.scalars import Dialect, Plain
from trainlint.reading.text import Undecodable
from trainlint.reading.values import Field
from trainlint.records import NamedTuple, dataclass
from trainlint.releases import behaviour, during
from trainlint.targets import How
from trainlint.training.declarations import Spec, declarations
from trainlint.training.pydantic_types import Schema, as_boolean, as_number

if TYPE_CHECKING:
    from trainlint.repository.files import Repository

AUTO = "auto"
JSON = Dialect.OMEGACONF
"""A reader that reads JSON's numbers as numbers, also `1e-5`."""

OWN_LOOP = frozenset(
    (
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "gradient_clipping",
        "steps_per_print",
        "fp16.enabled",
        "bf16.enabled",
        "zero_optimization.stage",
        "zero_optimization.offload_optimizer.device",
        "zero_optimization.offload_optimizer.nvme_path",
        "zero_optimization.offload_param.device",
        "zero_optimization.offload_param.nvme_path",
        "zero_optimization.stage3_gather_16bit_weights_on_model_save",
        "zero_optimization.reduce_bucket_size",
        "zero_optimization.stage3_prefetch_bucket_size",
        "zero_optimization.stage3_param_persistence_threshold",
        "optimizer.params.lr",
        "optimizer.params.weight_decay",
        "scheduler.params.warmup_min_lr",
        "scheduler.params.warmup_max_lr",
        "scheduler.params.warmup_num_steps",
        "scheduler.params.total_num_steps",
    )
)
"""The settings whose "auto" accelerate fills in: DeepSpeedPlugin and Accelerator.prepare."""
TRAINER = OWN_LOOP | {"optimizer.params.betas", "optimizer.params.eps", "amp.enabled", "amp.opt_level"}
"""The settings whose "auto" transformers' Trainer fills in: HfTrainerDeepSpeedConfig, then accelerate."""

SECTIONS: Mapping[str, str] = {
    "zero_optimization": "DeepSpeedZeroConfig",
    "fp16": "DeepSpeedFP16Config",
    "bf16": "DeepSpeedBF16Config",
    "tensorboard": "TensorBoardConfig",
    "wandb": "WandbConfig",
    "csv_monitor": "CSVConfig",
    "comet": "CometConfig",
    "comms_logger": "CommsLoggerConfig",
    "compile": "CompileConfig",
    "hybrid_engine": "HybridEngineConfig",
    "tensor_parallel": "TPTrainingConfig",
    "weight_quantization": "WeightQuantConfig",
    "timers.throughput": "DeepSpeedThroughputTimerConfig",
}
"""The sections that DeepSpeed reads with a pydantic model, which refuses other keys and types."""

TOP_KEYS = frozenset(
    "activation_checkpointing aio amp autotuning bf16 bfloat16 checkpoint comet comms_logger communication_data_type"
    " compile compression_training csv_monitor curriculum_learning data_efficiency data_parallel_size data_types"
    " dataloader_drop_last datastates_ckpt disable_allgather disable_python_gc dump_state eigenvalue elasticity"
    " expert_parallel flops_profiler fp16 graph_harvesting gradient_accumulation_steps gradient_allreduce_op"
    " gradient_clipping gradient_predivide_factor hybrid_engine load_universal log_level managed_gradient_accumulation"
    " memory_breakdown nebula optimizer pipeline prescale_gradients progressive_layer_drop quantize_training scheduler"
    " seq_parallel_communication_data_type sequence_parallel_size sparse_attention sparse_gradients steps_per_print"
    " tensor_parallel tensorboard timers torch_autocast train_batch_size train_micro_batch_size_per_gpu"
    " use_data_before_expert_parallelism use_node_local_storage vocabulary_size wall_clock_breakdown wandb"
    " weight_quantization zero_allow_untested_optimizer zero_force_ds_cpu_optimizer zero_optimization".split()
)
"""The keys that some release of DeepSpeed reads at the top."""
TORCH_OPTIMIZERS: Mapping[str, str] = {
    "ASGD": "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable",
    "Adadelta": "lr rho eps weight_decay foreach capturable maximize differentiable",
    "Adafactor": "lr beta2_decay eps d weight_decay foreach maximize",
    "Adamax": "lr betas eps weight_decay foreach maximize differentiable capturable",
    "LBFGS": "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn",
    "Muon": "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn",
    "NAdam": "lr betas eps weight_decay momentum_decay decoupled_weight_decay foreach maximize capturable"
    " differentiable",
    "RAdam": "lr betas eps weight_decay decoupled_weight_decay foreach maximize capturable differentiable",
    "RMSprop": "lr alpha eps weight_decay momentum centered capturable foreach maximize differentiable",
    "Rprop": "lr etas step_sizes capturable foreach maximize differentiable",
    "SGD": "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
    "SparseAdam": "lr betas eps maximize",
}
"""The optimizers of torch.optim that DeepSpeed does not replace, with their arguments."""
TORCH_ADAM = "lr betas eps weight_decay amsgrad foreach maximize capturable differentiable fused".split()
TORCH_ADAGRAD = "lr lr_decay weight_decay initial_accumulator_value eps foreach maximize differentiable fused".split()
TORCH_SCHEDULERS = frozenset(
    "ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LambdaLR LinearLR"
    " MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau SequentialLR StepLR".split()
)
DTYPES = tuple(
    "fp16 float16 half torch.float16 fp32 float32 float torch.float32 int8 torch.int8 bf16 bfloat16"
    " torch.bfloat16".split()
)


@dataclass(frozen=True)
class DeepSpeedFacts:
    """One release of DeepSpeed, as data.

    Source: deepspeed 0.16.4 to 0.19.8 as released: runtime/config.py, runtime/engine.py, runtime/zero,
    runtime/lr_schedules.py, launcher; run in three releases with accelerate and a model to wrap.
    """

    release: str
    removed: frozenset[str]
    """Sections that the release refuses because it has dropped what they are for."""
    removed_zero: frozenset[str]
    optimizers: frozenset[str]
    """Names of the optimizers that it has itself, in lower case."""
    warmup_must_be_positive: bool = during("0.19.4..")
    """The schedulers refuse warmup_num_steps that is not a positive integer; before, it counts as 2."""
    sequence_parallel_divides: bool = during("0.17.1..")
    """sequence_parallel_size divides the number of processes in the batch equation."""
    autotp_excludes_zero3: bool = during("..0.18.9")
    """Tensor parallelism refuses ZeRO 3."""
    checkpoint_writer: bool = during("0.17.1..")
    """checkpoint.writer is read."""
    autocast: bool = during("0.17.6..")
    """torch_autocast is read."""
    autocast_excludes_precision: bool = during("0.17.6..0.18.2")
    """torch_autocast excludes fp16 and bf16."""
    old_sections: bool = during("..0.19.6")
    """Sections that were dropped later are still read."""
    loss_scale_checked: bool = during("0.18.9..")
    """fp16.loss_scale must be a finite number of at least 0."""
    scale_window_checked: bool = during("0.19.4..")
    """With dynamic loss scaling the window and the floor of the loss scale must be positive."""
    master_weights_need_zero2: bool = during("..0.18.2")
    """fp16_master_weights_and_grads works with ZeRO 2 alone; later with ZeRO 1 to 3."""
    allreduce_op: bool = during("0.19.6..")
    """gradient_allreduce_op is read."""
    slots_checked: bool = during("0.19.8..")
    """The launcher compares slots of an inclusion filter with those of the hostfile; before, a host that the filter
    names without slots has none."""
    openmpi_asks_environment: bool = during("..0.18.2")
    """The OpenMPI launcher first asks for MPI's environment variables."""

    @cached_property
    def schema(self) -> Schema:
        """The models and enums of the config."""
        known = declarations("deepspeed")

        def words(name: str) -> list[str] | None:
            return sorted(known.keys("choices:" + name, self.release)) or None

        return Schema(lambda name: known.fields(name, self.release), words)

    def model(self, section: str) -> Mapping[str, Spec]:
        """The fields of a section's model; empty where the release has none."""
        return declarations("deepspeed").fields(SECTIONS[section], self.release)

    def arguments(self, name: str) -> Mapping[str, Spec]:
        """What an optimizer or scheduler of DeepSpeed is called with; empty for one that it does not have."""
        return declarations("deepspeed").fields("arguments:" + name, self.release)


@cache
def deepspeed_facts(release: str) -> DeepSpeedFacts:
    """The facts of one known release."""
    known = declarations("deepspeed")
    return DeepSpeedFacts(
        release=release,
        removed=known.keys("removed", release),
        removed_zero=known.keys("removed_zero", release),
        optimizers=known.keys("choices:optimizer", release),
        **behaviour(DeepSpeedFacts, release),
    )


def stated_release(repository: Repository, path: str, goes_with: str) -> str | None:
    """The known release of deepspeed that the repository states near a file, else the one that goes with the program.

    None where it states one that is not known.
    """
    from trainlint.repository.stated import statements_in

    known = declarations("deepspeed")
    found = statements_in(repository).stated(path, "deepspeed")
    if found.how is How.STATED and len(found.versions) == 1:
        speaking = known.in_force(found.versions[0]).releases
        return speaking[-1] if speaking else None
    if found.how is How.RANGE and not found.allows(goes_with):
        fitting = [name for name in known.names if found.allows(name)]
        return fitting[-1] if fitting else None
    return None if found.how is How.UNKNOWN else goes_with


@dataclass(frozen=True, kw_only=True)
class DeepSpeedConfig:
    """A DeepSpeed config as one run reads it."""

    field: Field
    """The mapping, or whatever stands in its place."""
    facts: DeepSpeedFacts
    named: Field | None = None
    """Where a file names the config."""
    processes: int | None = None
    """The processes of the run, None where the files do not tell."""
    fills: Mapping[str, Plain]
    """What is put where the config says "auto", by name (`zero_optimization.stage`)."""
    has_trainer: bool = False
    """transformers' Trainer trains, or may: it knows the whole batch, too."""
    read_at: Stage = Stage.START
    """When the program itself reads the config, before DeepSpeed does."""

    def at(self, name: str) -> Field:
        """A setting by its name: `zero_optimization.stage`."""
        return self.field.at(*name.split("."))

    def plain(self, name: str) -> Plain:
        """A scalar, filled in where it is "auto"; None also where it is not known."""
        field = self.at(name)
        if field.is_unknown:
            return None
        return self.fills.get(name) if field.plain == AUTO else field.plain

    def number(self, name: str) -> float | None:
        """A number that is known; text is none."""
        plain = self.plain(name)
        return None if isinstance(plain, str) else as_number(plain)

    def is_on(self, name: str, default: bool = False) -> bool | None:
        """Whether a switch is on, None where that is not known."""
        field = self.at(name)
        if field.node is None:
            return default
        plain = self.plain(name)
        return None if plain is None else as_boolean(plain)

    @property
    def stage(self) -> int | None:
        """The ZeRO stage, None where it is not known or wrong."""
        field = self.at("zero_optimization.stage")
        if field.node is None:
            return 0 if self.at("zero_optimization").is_mapping else None
        number = as_number(self.plain("zero_optimization.stage"))
        return int(number) if number in (0, 1, 2, 3) else None

    @property
    def stage_place(self) -> tuple[Related, ...]:
        """Where the stage is written, as the other half of a contradiction."""
        return self.at("zero_optimization.stage").as_other_half

    @property
    def world(self) -> float | None:
        """The number of processes that each train on batches of their own; None where it is not known."""
        if self.processes is None or self.at("tensor_parallel").node is not None:
            return None
        size = self.at("sequence_parallel_size")
        if size.node is None or not self.facts.sequence_parallel_divides:
            return self.processes
        number = self.number("sequence_parallel_size")
        return self.processes / number if number and self.at("data_parallel_size").node is None else None

    @property
    def offloads_optimizer(self) -> bool | None:
        """The optimizer runs on the CPU; None where that is not known."""
        device = self.plain("zero_optimization.offload_optimizer.device")
        if self.at("zero_optimization.cpu_offload").node is not None:
            return self.is_on("zero_optimization.cpu_offload")
        if self.at("zero_optimization.offload_optimizer.device").node is None:
            return False
        return device in ("cpu", "nvme") if isinstance(device, str) else None


class BrokenConfig(NamedTuple):
    """A file that is named as a DeepSpeed config and is no JSON; the field is the place where reading stops."""

    field: Field
    reason: str
    read_at: Stage = Stage.START
    fix: Fix | None = None
    help: str = "write it as JSON"


def named_config(name: str, bases: Iterable[Path], repository: Repository) -> Field | BrokenConfig | None:
    """The root of a JSON file that is named relative to one of these folders; None where it is not there to read."""
    for base in bases:
        file = base / name
        if not Path(name).is_absolute() and repository.find(file):
            try:
                document = repository.script(file)
            except (OSError, Undecodable):
                return None
            return _of_json(document)
    return None


@lru_cache(maxsize=2**6)
def _of_json(document: Document) -> Field | BrokenConfig | None:
    text = document.text
    if text.has_mark:
        help = "save it as UTF-8 without a byte order mark"
        return BrokenConfig(_place(document, 0), "it begins with a byte order mark", help=help)
    try:
        json.loads(text.content)
    except json.JSONDecodeError as error:
        return _trouble(document, error)
    except (RecursionError, ValueError):
        # Nested too deeply, or a number of thousands of digits.
        return None
    try:
        return Field.root(next(documents(document.path, text)), JSON)
    except (StopIteration, Unparsable):
        return None


_REASONS = {
    "Expecting value": "a value is missing here",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing here",
    "Expecting ',' delimiter": "a comma is missing here",
    "Expecting ':' delimiter": "a colon is missing here",
    "Extra data": "something follows its end",
}


_PYTHON = {"True": "true", "False": "false", "None": "null"}


def _trouble(document: Document, error: json.JSONDecodeError) -> BrokenConfig:
    content, at = document.text.content, error.pos
    before = content[:at].rstrip()
    if not content.strip():
        return BrokenConfig(_place(document, 0), "it is empty", help="write an object, or name another file")
    if content.startswith(("//", "/*", "#"), at):
        return BrokenConfig(_place(document, at), "it has a comment", help="remove the comments")
    comma = at if content.startswith(",", at) else len(before) - 1
    if content[comma : comma + 1] == "," and content[comma + 1 :].lstrip().startswith(("}", "]")):
        # Python names the comma or the bracket, depending on its version.
        without = Fix("remove the comma", (Edit(comma, comma + 1, ""),))
        found = _place(document, comma)
        return BrokenConfig(found, "a comma stands before a bracket", fix=without, help="remove the comma")
    word = next((word for word in _PYTHON if re.match(rf"{word}\b", content[at : at + 6])), "")
    fix = Fix(f"write {_PYTHON[word]}", (Edit(at, at + len(word), _PYTHON[word]),)) if word else None
    return BrokenConfig(_place(document, at), _REASONS.get(error.msg, error.msg.lower()), fix=fix)


def _place(document: Document, at: int) -> Field:
    content = document.text.content
    at = min(at, max(len(content.rstrip()) - 1, 0))
    return Field(document, JSON, Scalar(content[at : at + 1], "", None, at, at + 1, None))
