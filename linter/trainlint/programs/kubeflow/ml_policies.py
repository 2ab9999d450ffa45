"""What the ML policies of a runtime add for torch, JAX and XGBoost.

Source: the plugins torch, jax, xgboost and plainml of pkg/runtime/framework/plugins.
"""

from __future__ import annotations

from trainlint.programs.kubeflow.built_value import UNKNOWN, BuiltValue, Content, Owner
from trainlint.programs.kubeflow.draft import NODE, TRAINER, Draft, env_of_job, upsert_env
from trainlint.programs.kubeflow.facts.jobset import TRAINER_PORT
from trainlint.programs.kubeflow.facts.release import TORCHTUNE_COMMAND
from trainlint.programs.kubeflow.objects import recipe_and_config
from trainlint.programs.kubeflow.quantities import whole
from trainlint.reading.values import Absent, Known, Unknown, Value


def plain(draft: Draft) -> None:
    """A runtime with neither torch, MPI nor JAX."""
    draft.count_from_job()
    if draft.container is not None:
        upsert_env(draft.container, env_of_job(draft.own.get("env")))


def torch(draft: Draft) -> None:
    """torchrun's variables, and torchtune's recipe and config."""
    draft.count_from_job()
    procs = _processes(draft)
    count = draft.trainer.count if draft.trainer else draft.made(1)
    env = [
        draft.env("PET_NNODES", count),
        draft.env("PET_NPROC_PER_NODE", procs),
        draft.index_env("PET_NODE_RANK"),
    ]
    master = [
        draft.env("PET_MASTER_ADDR", draft.made(draft.host())),
        draft.env("PET_MASTER_PORT", draft.made(str(TRAINER_PORT))),
    ]
    container = draft.container
    if container is not None:
        draft.processes = procs
        upsert_env(container, env_of_job(draft.own.get("env")))
        upsert_env(container, env)
        if draft.command.texts() == list(TORCHTUNE_COMMAND):
            _torchtune(draft, count, procs)
        else:
            upsert_env(container, master)
        draft.open_port(container)
    for target in draft.policy.at("torch", "envInjection", "targets").items():
        pods = next((pods for pods in draft.pods if pods.name == target.get("jobName").text), None)
        for name in target.get("containerNames").texts() or []:
            found = [each for each in [*pods.containers, *pods.init_containers] if each.name == name] if pods else []
            if found:
                upsert_env(found[0], [*env, *master])


def _processes(draft: Draft) -> BuiltValue:
    """How many processes torchrun starts on each node: a number, `auto` or another word."""
    procs = draft.own.get("numProcPerNode")
    if procs.absent and draft.facts.runtime_procs:
        procs = draft.policy.at("torch", "numProcPerNode")
    if procs.absent:
        procs = BuiltValue("auto", procs.place, Owner.JOB, made=True)
    if not draft.facts.procs_from_gpus:
        return _processes_by_names(draft, procs)
    gpus = draft.gpus
    if procs.is_("auto") and gpus.unknown:
        return gpus.derive(UNKNOWN)
    if (procs.is_("cpu") and draft.facts.runtime_procs) or (procs.is_("auto") and gpus.is_(0)):
        return _from_cpus(draft.resources)
    return procs


def _processes_by_names(draft: Draft, procs: BuiltValue) -> BuiltValue:
    """Release 2.0: the names in resourcesPerNode decide, limits before requests."""
    resources = draft.own.get("resourcesPerNode")
    if resources.absent:
        return procs
    if resources.unknown or procs.unknown:
        return resources.derive(UNKNOWN)
    fallback = procs.derive(1) if procs.is_("cpu") else procs
    answer = fallback
    for key in ("limits", "requests"):
        listed = resources.get(key)
        if listed.unknown:
            return listed.derive(UNKNOWN)
        names = [name for name, _ in listed.entries()]
        if listed.absent:
            answer = resources.derive(1)
        elif (procs.is_("auto") and not any("gpu" in name.lower() for name in names)) or (
            procs.is_("cpu") and "cpu" in names
        ):
            amount = listed.get("cpu").amount
            return listed.derive(max(1, whole(amount) if amount else 0))
        else:
            answer = fallback
    return answer


def _from_cpus(resources: BuiltValue) -> BuiltValue:
    """The number of processes where there are no GPUs: the CPUs of the requests, else of the limits."""
    for cpu in (resources.at("requests", "cpu"), resources.at("limits", "cpu")):
        if cpu.unknown or (cpu.given and cpu.amount is None):
            return cpu.derive(UNKNOWN)
        if cpu.amount:
            return cpu.derive(max(1, whole(cpu.amount)))
    return resources.derive(1)


def _torchtune(draft: Draft, count: BuiltValue, procs: BuiltValue) -> None:
    """`tune run` gets its rendezvous, recipe, config and the runtime's own settings."""
    if not isinstance(draft.command.content, list):
        return
    words: list[BuiltValue] = []
    rendezvous = _has_rendezvous(draft, count, procs)
    if rendezvous is None:
        words.append(draft.made(UNKNOWN))
    elif rendezvous:
        address = draft.address()
        words.append(draft.made(f"--rdzv_endpoint={address}" if isinstance(address, str) else UNKNOWN))
    recipe = recipe_and_config(draft.job, draft.facts, num_nodes=_as_number(count), procs=_as_number(procs))
    settings: list[Content] = [recipe.name, "--config", recipe.config] if recipe else [UNKNOWN]
    words.extend(draft.made(word) for word in settings)
    for pods in draft.pods:
        container = pods.container(NODE) if pods.ancestor == TRAINER else None
        for word in container.get("command").items() if container else []:
            if (word.text or "").partition("=")[0] in draft.facts.immutable_keys:
                words.append(word)
    draft.command = draft.command.with_content([*draft.command.content, *words])


def _has_rendezvous(draft: Draft, count: BuiltValue, procs: BuiltValue) -> bool | None:
    """`tune run` gets the address where the processes meet; None where that is not known."""
    several = count.number is not None and count.number > 1
    gpus = draft.gpus
    if procs.unknown or count.unknown or (procs.text is not None and gpus.unknown):
        return True if several else None
    if draft.facts.rendezvous_for_auto:
        return several or not procs.is_(1)
    several_procs = procs.number is not None and procs.number > 1
    several_gpus = procs.text is not None and gpus.number is not None and gpus.number > 1
    return several or several_procs or several_gpus


def _as_number(value: BuiltValue) -> Value[int]:
    """A count as a `Value`; a word such as `auto` counts as Absent."""
    if value.unknown:
        return Unknown(value.place)
    return Absent(value.place) if value.number is None else Known(value.place, value.number)


def jax(draft: Draft) -> None:
    """The variables of JAX's processes."""
    if draft.trainer is None and draft.facts.jax_needs_trainer_job:
        draft.stops = (draft.policy.get("jax"), "the controller crashes on a JAX runtime without a trainer job")
        return
    draft.count_from_job()
    container = draft.container
    if container is None or draft.trainer is None:
        return
    env = [
        draft.env("JAX_NUM_PROCESSES", draft.trainer.count),
        draft.index_env("JAX_PROCESS_ID"),
        draft.env("JAX_COORDINATOR_ADDRESS", draft.made(draft.address())),
    ]
    upsert_env(container, env)
    draft.open_port(container)


def xgboost(draft: Draft) -> None:
    """The variables of XGBoost's tracker."""
    draft.count_from_job()
    container = draft.container
    if container is None or draft.trainer is None:
        return
    gpus, count = draft.gpus, draft.trainer.count
    workers: Content = UNKNOWN
    if gpus.number is not None and count.number is not None:
        workers = str(count.number * max(gpus.number, 1))
    env = [
        draft.env("DMLC_TRACKER_URI", draft.made(draft.host())),
        draft.env("DMLC_TRACKER_PORT", draft.made(str(TRAINER_PORT))),
        draft.index_env("DMLC_TASK_ID"),
        draft.env("DMLC_NUM_WORKER", gpus.derive(workers)),
    ]
    upsert_env(container, env)
    draft.open_port(container)
