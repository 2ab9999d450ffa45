"""What one release of Kubeflow Trainer does with a TrainJob and its runtime: one table, a row each release.

Source: the released modules github.com/kubeflow/trainer/v2 at v2.0.1, v2.1.0, v2.2.1 and v2.3.0, packages
pkg/constants, pkg/webhooks, pkg/runtime/core and pkg/runtime/framework/plugins, with k8s.io/apiextensions-apiserver and
k8s.io/apimachinery as their go.mod names them. The checks were measured on each release's admission, what it builds was
compared on thousands of jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlint.records import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trainlint.programs.kubeflow.facts.crds import Json, Kind, SchemaNode

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
    """One release; models are torchtune's names (`llama3_2/1B`)."""

    release: str
    patch: str
    """The patch release that was measured."""
    date: str
    """The day of that patch release, as the module's version says."""
    overrides_field: str
    """The field of a TrainJob that patches its runtime's pods."""
    patches_add_jobs: bool
    """A patch for a job that the runtime lacks adds the job; else only existing jobs are patched."""

    # the structure of new objects

    decodes_first: bool
    """A mutating webhook decodes a TrainJob into its Go types before the structure is checked; it looks at status too.

    Where it sets the time of a runtime patch, it sends the whole object back as Go writes it: required texts that were
    missing are empty then, quantities are texts.
    """
    ranges_in_structure: bool
    """The structure refuses an integer outside int32, and names no field; else decoding does."""
    empty_runtime_name: bool
    """An empty `runtimeRef.name` passes the structure, and no runtime of that name is found."""

    # the webhooks and the plugins that they ask

    launcher_replicas: bool
    """A runtime's job `launcher` must have one replica."""
    step_containers: bool
    """A runtime's job with a step's label must hold the step's container."""
    opt_out: bool
    """A label takes a runtime out of its webhook."""
    support_label: bool
    """A runtime that is labelled as deprecated draws a warning."""
    initializer_mounts: bool
    """An initializer's container must mount the volume `initializer`."""
    one_override_per_job: bool
    """No job may be the target of two overrides."""
    pull_secrets: bool
    """Overrides may set imagePullSecrets."""
    injection_targets: bool
    """The containers that envInjection names must exist."""
    integer_mpi_processes: bool
    """With MPI numProcPerNode must not be a word."""
    reserved_mpi_env: bool
    """A TrainJob must not set the variables of Open MPI that the controller sets."""
    flux_counts_job: bool
    """With Flux the TrainJob's numProcPerNode must be at least 1, not the runtime's alone."""

    # the torch plugin's checks, and its choice of torchtune's recipe

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
    """Admission refuses LoRA on several nodes; else such a job becomes a full fine-tune."""

    # how the controller builds the JobSet

    resources_merged: bool
    """resourcesPerNode is merged into the resources of a runtime with an mlPolicy; else it replaces any runtime's."""
    node_job_follows_launcher: bool
    """With runLauncherAsNode the job `node` gets the trainer's env and resources, too."""
    procs_from_gpus: bool
    """True: GPUs are counted, in resourcesPerNode or else in the runtime, and requests before limits.

    False: only the names of resources in resourcesPerNode count, and limits before requests.
    """
    runtime_procs: bool
    """A runtime's torch policy has numProcPerNode."""
    rendezvous_for_auto: bool
    """`tune run` gets a rendezvous endpoint unless there is exactly one process; else only for several."""
    labels_on_spec: bool
    """A TrainJob has spec.labels and spec.annotations for its JobSet."""
    jax_needs_trainer_job: bool
    """The controller crashes on a JAX runtime without a job of the trainer step."""
    init_ports_merged: bool
    """Ports of init containers are merged by number and name, too."""
    flux_wraps_runtime_command: bool
    """Flux starts the runtime's command where the job has none."""
    flux_shared_memory: bool
    """Flux mounts memory at /dev/shm."""

    # what the controller does around it

    needs_server_1_32: bool
    """API servers up to 1.31 refuse the release's CRDs of runtimes and JobSets."""
    ignores_managed_by: bool
    """The controller makes the JobSet whoever is named in managedBy."""
    runs_again_after_ttl: str
    """Which jobs are trained anew when the JobSet's time to live ends: `all`, `failed`, or none."""

    def structure(self, kind: Kind) -> SchemaNode:
        """The root of a kind's CRD; ClusterTrainingRuntime has that of TrainingRuntime."""
        from trainlint.programs.kubeflow.facts.crds import schema

        return schema(self.release, kind)

    @property
    def shipped_runtimes(self) -> Mapping[str, Mapping[str, Json]]:
        """The ClusterTrainingRuntimes that the release ships, by name."""
        from trainlint.programs.kubeflow.facts.crds import shipped_runtimes

        return shipped_runtimes(self.release)


_2_0 = KubeflowFacts(
    release="2.0",
    patch="2.0.1",
    date="2025-09-29",
    overrides_field="podSpecOverrides",
    patches_add_jobs=False,
    decodes_first=False,
    ranges_in_structure=False,
    empty_runtime_name=True,
    launcher_replicas=True,
    step_containers=False,
    opt_out=False,
    support_label=False,
    initializer_mounts=False,
    one_override_per_job=True,
    pull_secrets=False,
    injection_targets=False,
    integer_mpi_processes=True,
    reserved_mpi_env=False,
    flux_counts_job=False,
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
    resources_merged=False,
    node_job_follows_launcher=False,
    procs_from_gpus=False,
    runtime_procs=True,
    rendezvous_for_auto=True,
    labels_on_spec=True,
    jax_needs_trainer_job=False,
    init_ports_merged=False,
    flux_wraps_runtime_command=False,
    flux_shared_memory=False,
    needs_server_1_32=False,
    ignores_managed_by=True,
    runs_again_after_ttl="",
)
_2_1 = replace(
    _2_0,
    release="2.1",
    patch="2.1.0",
    date="2025-11-07",
    overrides_field="podTemplateOverrides",
    empty_runtime_name=False,
    launcher_replicas=False,
    step_containers=True,
    support_label=True,
    one_override_per_job=False,
    pull_secrets=True,
    supported_models=frozenset({"llama3_2/1B", "llama3_2/3B", "llama3_3/70B", "qwen2_5/1.5B"}),
    models_without_qlora=frozenset({"qwen2_5/1.5B"}),
    single_device_qlora_models=frozenset({"llama3_2/1B", "llama3_2/3B"}),
    immutable_keys=_2_0.immutable_keys | {"tokenizer.merges_file"},
    lora_recipes=True,
    node_job_follows_launcher=True,
    procs_from_gpus=True,
    rendezvous_for_auto=False,
    runs_again_after_ttl="all",
)
_2_2 = replace(
    _2_1,
    release="2.2",
    patch="2.2.1",
    date="2026-06-17",
    overrides_field="runtimePatches",
    decodes_first=True,
    ranges_in_structure=True,
    integer_mpi_processes=False,
    gated_by_num_proc=False,
    num_proc_words=frozenset(),
    missing_num_nodes_crashes=False,
    runtime_procs=False,
    labels_on_spec=False,
    jax_needs_trainer_job=True,
    needs_server_1_32=True,
    runs_again_after_ttl="failed",
)
_2_3 = replace(
    _2_2,
    release="2.3",
    patch="2.3.0",
    date="2026-08-06",
    patches_add_jobs=True,
    opt_out=True,
    initializer_mounts=True,
    injection_targets=True,
    reserved_mpi_env=True,
    flux_counts_job=True,
    immutable_in_args=True,
    qlora_needs_true=True,
    lora_multi_node_refused=True,
    resources_merged=True,
    jax_needs_trainer_job=False,
    init_ports_merged=True,
    flux_wraps_runtime_command=True,
    flux_shared_memory=True,
    ignores_managed_by=False,
)

RELEASES = {facts.release: facts for facts in (_2_0, _2_1, _2_2, _2_3)}
