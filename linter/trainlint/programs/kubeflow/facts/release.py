"""What each release of Kubeflow Trainer checks of a TrainJob that runs torchtune.

Source: the released modules github.com/kubeflow/trainer/v2 at v2.0.1, v2.1.0, v2.2.1 and v2.3.0, packages
pkg/constants and pkg/runtime/framework/plugins/torch; each fact was measured on that release's admission webhooks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

RESERVED_ENV = frozenset(
    {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"},
)
TORCHTUNE_COMMAND = ("tune", "run")
LORA_ARG = "model.lora_attn_modules"
QUANTIZE_ARG = "model.quantize_base"
DORA_ARG = "model.use_dora"
ANCESTOR_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
FRAMEWORK_LABEL = "trainer.kubeflow.org/framework"


@dataclass(frozen=True)
class KubeflowFacts:
    """One release's torch plugin, as data; models are torchtune's names (`llama3_2/1B`)."""

    release: str
    patch: str
    """The patch release that was measured."""
    supported_models: frozenset[str]
    multi_node_models: frozenset[str]
    models_without_qlora: frozenset[str]
    single_device_qlora_models: frozenset[str]
    """Models whose QLoRA runs on a single device only."""
    immutable_keys: frozenset[str]
    """torchtune settings that the runtime owns."""
    immutable_in_args: bool
    """Admission refuses an immutable key in args."""
    gated_by_num_proc: bool
    """The torch plugin checks nothing unless spec.trainer.numProcPerNode is set."""
    num_proc_words: frozenset[str]
    """Texts that numProcPerNode may hold; empty where it is an integer only."""
    missing_num_nodes_crashes: bool
    """The webhook dereferences an absent numNodes and fails."""
    lora_recipes: bool
    """The recipe follows the LoRA arguments and the GPU count; else it is always a full fine-tune."""
    qlora_needs_true: bool
    """QLoRA and DoRA follow an argument's value; else the argument's mere presence."""
    lora_multi_node_refused: bool
    overrides_field: str
    """The field of a TrainJob that patches its runtime's pods."""


_2_0 = KubeflowFacts(
    release="2.0",
    patch="2.0.1",
    supported_models=frozenset({"llama3_2/1B", "llama3_2/7B", "llama3_3/70B"}),
    multi_node_models=frozenset({"llama3_3/70B"}),
    models_without_qlora=frozenset(),
    single_device_qlora_models=frozenset(),
    immutable_keys=frozenset({"output_dir", "tokenizer.path", "checkpointer.checkpoint_dir"}),
    immutable_in_args=False,
    gated_by_num_proc=True,
    num_proc_words=frozenset({"auto", "cpu", "gpu"}),
    missing_num_nodes_crashes=True,
    lora_recipes=False,
    qlora_needs_true=False,
    lora_multi_node_refused=False,
    overrides_field="podSpecOverrides",
)
_2_1 = replace(
    _2_0,
    release="2.1",
    patch="2.1.0",
    supported_models=frozenset({"llama3_2/1B", "llama3_2/3B", "llama3_3/70B", "qwen2_5/1.5B"}),
    models_without_qlora=frozenset({"qwen2_5/1.5B"}),
    single_device_qlora_models=frozenset({"llama3_2/1B", "llama3_2/3B"}),
    immutable_keys=_2_0.immutable_keys | {"tokenizer.merges_file"},
    lora_recipes=True,
    overrides_field="podTemplateOverrides",
)
_2_2 = replace(
    _2_1,
    release="2.2",
    patch="2.2.1",
    gated_by_num_proc=False,
    num_proc_words=frozenset(),
    missing_num_nodes_crashes=False,
    overrides_field="runtimePatches",
)
_2_3 = replace(
    _2_2,
    release="2.3",
    patch="2.3.0",
    immutable_in_args=True,
    qlora_needs_true=True,
    lora_multi_node_refused=True,
)

RELEASES = {facts.release: facts for facts in (_2_0, _2_1, _2_2, _2_3)}
