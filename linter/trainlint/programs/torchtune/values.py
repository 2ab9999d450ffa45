"""What recipes and components accept as the value of a setting, where they do not convert it.

Source: the recipes and components of torchtune 0.4.0 to 0.6.1, torch.optim and torch.nn; each setting of 0.6.1 was
given null, texts, numbers, a list and a mapping, and the recipe run until it raised or had saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from trainlint.findings import Stage, one_of
from trainlint.programs.torchtune.omegaconf import ConfigNode
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.reading.scalars import Plain
from trainlint.records import dataclass, replace


@dataclass(frozen=True)
class Accepts:
    """A number between `least` and `most`, or a text; any other value raises at `stage`.

    `whole`: neither a fraction nor a float; `null`: null too; `boolean`: a boolean too, as 0 or 1, so no false where
    it is `nonzero`; `spelled`: a text that float() reads too; `finite`: no infinity; `words`: these values alone. Null,
    lists and mappings raise as `early` as that.
    """

    whole: bool = False
    text: bool = False
    null: bool = False
    boolean: bool = True
    spelled: bool = False
    nonzero: bool = False
    finite: bool = False
    least: float | None = None
    most: float | None = None
    words: tuple[Plain, ...] = ()
    stage: Stage = Stage.PREPARE
    early: Stage | None = None

    def stage_of(self, node: ConfigNode) -> Stage:
        """When a value raises."""
        return (self.early or self.stage) if node.wrong_type or node.absent else self.stage

    def problem(self, node: ConfigNode) -> str | None:
        """What is wrong with a value, after its name; None where it is accepted, not known, or a text for a number."""
        value = node.value
        if not node.present or value.unknown:
            return None
        if value.absent:
            return None if self.null else "must not be null"
        if value.wrong_type:
            return f"must be a {self._kind}, not a {'mapping' if node.entries else 'list'}"
        plain = value.known
        if self.words:
            return None if plain in self.words else f"must be {one_of(self.words)}, not {value}"
        if self.text:
            return None if isinstance(plain, str) else f"must be a text, not {value}"
        if isinstance(plain, bool):
            if self.boolean and (plain or not self.nonzero):
                return None
            return f"must be a {self._kind}, not {str(plain).lower()}"
        if isinstance(plain, str) or not isinstance(plain, (int, float)):
            return None
        if self.whole and isinstance(plain, float):
            return f"must be a whole number, not {value}"
        if self.nonzero and not plain:
            return "must not be 0"
        if self.finite and math.isinf(plain):
            return f"must be a finite number, not {value}"
        if self.least is not None and not plain >= self.least:  # NaN, too
            return f"must be at least {self.least:g}, not {value}"
        if self.most is not None and plain > self.most:
            return f"must be at most {self.most:.10g}, not {value}"
        return None

    @property
    def wanted(self) -> str:
        """What to write, for a help."""
        if self.words:
            return f"write one of {', '.join(map(str, self.words))}"
        if self.least is not None and self.most is not None:
            return f"write a {self._kind} from {self.least:.10g} to {self.most:.10g}"
        if self.least is not None:
            return f"write a {self._kind} from {self.least:g} on"
        return f"write a {self._kind}" + (f" up to {self.most:g}" if self.most is not None else "")

    @property
    def _kind(self) -> str:
        return "text" if self.text else "whole number" if self.whole else "number"


COUNT = Accepts(whole=True, boolean=False, least=1)
NUMBER = Accepts()
SHARE = Accepts(least=0, most=1)
PATH = Accepts(text=True)
IN_TRAINING = Stage.TRAIN

TOP: Mapping[str, Accepts] = {
    "batch_size": COUNT,
    "clip_grad_norm": Accepts(spelled=True, null=True, stage=IN_TRAINING),
    "cudnn_deterministic_mode": Accepts(
        words=("default", "warn", "error", 0, 1, 2), text=True, null=True, stage=Stage.START
    ),
    "epochs": Accepts(whole=True, stage=IN_TRAINING, early=Stage.PREPARE),
    "gradient_accumulation_steps": Accepts(nonzero=True),
    "kd_ratio": replace(NUMBER, stage=IN_TRAINING),
    "log_every_n_steps": Accepts(nonzero=True, stage=IN_TRAINING),
    "max_new_tokens": Accepts(whole=True, stage=IN_TRAINING),
    "max_seq_length": Accepts(whole=True, stage=IN_TRAINING),
    "max_steps_per_epoch": Accepts(null=True),
    "seed": Accepts(whole=True, null=True, least=0, most=2**32 - 1, stage=Stage.START),
    "temperature": replace(NUMBER, stage=IN_TRAINING),
    "tensor_parallel_dim": Accepts(whole=True, nonzero=True, stage=Stage.START),
}
"""Settings of recipes, where the recipe reads them; generation and evaluation count as training."""

_NO_MEMORY = 1_000_000
"""Nothing has the memory for as many weights in both directions; the largest models have 16384."""

MODEL: Mapping[str, Accepts] = {
    "embed_dim": replace(COUNT, most=_NO_MEMORY),
    **dict.fromkeys(("head_dim", "num_classes", "num_heads", "num_layers"), COUNT),
    "num_kv_heads": replace(COUNT, null=True, least=0),
    **dict.fromkeys(("lora_rank", "vocab_size"), COUNT),
    "intermediate_dim": COUNT,
    "max_seq_len": Accepts(boolean=False, least=2, finite=True, stage=IN_TRAINING, early=Stage.PREPARE),
    "attn_dropout": SHARE,
    "lora_dropout": Accepts(most=1),
    "lora_alpha": replace(NUMBER, stage=IN_TRAINING),
    "norm_eps": Accepts(null=True, stage=IN_TRAINING),
    "rope_base": NUMBER,
    "scale_factor": NUMBER,
}
"""Parameters of torchtune's model builders."""

_COMPUTES_A_SIZE = ("llama2", "llama3", "llama3_1", "llama3_2")
"""The builders of these families compute intermediate_dim where it is null or 0."""

OPTIMIZER: Mapping[str, Accepts] = dict.fromkeys(("eps", "lr", "momentum", "weight_decay"), Accepts(least=0))
"""Parameters of torch.optim and bitsandbytes.optim."""

_EPS_OF_ANOTHER_KIND = ("Adafactor", "Muon")

_AWARE: Mapping[str, Accepts] = {"groupsize": Accepts(nonzero=True)}
"""Parameters of quantizers for training, which count layers at once."""

SECTIONS: Mapping[str, tuple[str, Mapping[str, Accepts]]] = {
    "lr_scheduler": ("torchtune.", {"num_cycles": replace(NUMBER, stage=IN_TRAINING), "num_warmup_steps": NUMBER}),
    "metric_logger": (
        "torchtune.training.metric_logging.DiskLogger",
        {"filename": replace(PATH, null=True), "log_dir": PATH},
    ),
    "optimizer": ("", OPTIMIZER),
    "quantizer": ("torchtune.", {"groupsize": Accepts(null=True, nonzero=True, stage=IN_TRAINING)}),
    "tokenizer": (
        "torchtune.models.",
        {"max_seq_len": Accepts(whole=True, null=True, nonzero=True, stage=IN_TRAINING)},
    ),
}
"""By section: the beginning of its component's path, and the parameters of that component."""

LOSSES: Mapping[str, Mapping[str, Accepts]] = {
    "CrossEntropyLoss": {
        "ignore_index": Accepts(whole=True), "label_smoothing": Accepts(most=1, stage=IN_TRAINING),
        "reduction": Accepts(words=("mean", "sum"), text=True, stage=IN_TRAINING),
    },
    "DPOLoss": {key: replace(NUMBER, stage=IN_TRAINING) for key in ("beta", "label_smoothing")},
    "RSOLoss": {"gamma": replace(NUMBER, stage=IN_TRAINING)},
    "SymmetricKLLoss": {"ignore_index": Accepts(whole=True), "sym_kd_ratio": SHARE},
    "SymmetricKLWithChunkedOutputLoss": {
        "ignore_index": Accepts(whole=True), "num_output_chunks": replace(COUNT, stage=IN_TRAINING),
        "sym_kd_ratio": SHARE,
    },
    **{
        name: {"ignore_index": Accepts(whole=True), "num_output_chunks": replace(COUNT, stage=IN_TRAINING)}
        for name in ("CEWithChunkedOutputLoss", "ForwardKLWithChunkedOutputLoss", "ReverseKLWithChunkedOutputLoss")
    },
    **{name: {"ignore_index": Accepts(whole=True)} for name in ("ForwardKLLoss", "ReverseKLLoss")},
}  # fmt: skip
"""Parameters of losses, by class."""

SCHEDULE: Mapping[str, Accepts] = {
    "active_steps": replace(COUNT, null=True),
    "output_dir": replace(PATH, null=True),
    **dict.fromkeys(("num_cycles", "wait_steps", "warmup_steps"), Accepts(null=True, least=0)),
}
"""Parameters of the profiler, where it is enabled."""


def settings_with(settings: RecipeSettings) -> Iterator[tuple[ConfigNode, Accepts]]:
    """The settings that the user wrote, with what is accepted for them."""
    if not settings.fork:
        yield from _written(settings.root, ((key, accepts) for key, accepts in TOP.items() if settings.reads(key)))
    for section in settings.models:
        if _path(section).startswith("torchtune.models."):
            yield from _written(section, _of_model(settings, _path(section)))
    for name, (component, table) in SECTIONS.items():
        found = settings.section(name)
        if found is not None and _path(found).startswith(component):
            pairs = _path(found).endswith(_EPS_OF_ANOTHER_KIND)
            table = _AWARE if name == "quantizer" and "QAT" in _path(found) else table
            yield from _written(found, (row for row in table.items() if not (pairs and row[0] == "eps")))
    for name in ("loss", "kd_loss"):
        found = settings.section(name)
        if found is not None and _path(found).startswith(("torchtune.", "torch.nn.")):
            yield from _written(found, LOSSES.get(_path(found).rpartition(".")[2], {}).items())
    for section in settings.checkpointers:
        if _path(section).startswith("torchtune.training."):
            yield from _written(section, ((key, PATH) for key in ("checkpoint_dir", "output_dir")))
    profiler = settings.at("profiler")
    if settings.reads("profiler") and not settings.fork and profiler.get("enabled").truth().is_(True):
        yield from _written(profiler, SCHEDULE.items())


def _written(section: ConfigNode, table: Iterable[tuple[str, Accepts]]) -> Iterator[tuple[ConfigNode, Accepts]]:
    entries = section.entries
    if any(node.own for node in entries.values()):
        yield from ((entries[key], accepts) for key, accepts in table if key in entries and entries[key].own)


def _of_model(settings: RecipeSettings, path: str) -> Iterator[tuple[str, Accepts]]:
    computes = any(family in path.split(".") for family in _COMPUTES_A_SIZE)
    for key, accepts in MODEL.items():
        if key == "intermediate_dim" and computes:
            accepts = replace(accepts, null=True, least=0)
        elif key == "max_seq_len" and settings.recipe is not None and settings.recipe.name == "quantize":
            accepts = NUMBER
        yield key, accepts


def _path(section: ConfigNode) -> str:
    return section.get("_component_").text().known or ""
