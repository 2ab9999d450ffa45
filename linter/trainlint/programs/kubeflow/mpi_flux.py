"""What the ML policies of a runtime add for MPI and Flux: launchers, volumes, and other commands.

Source: the plugins mpi and flux of pkg/runtime/framework/plugins.
"""

from __future__ import annotations

from trainlint.programs.kubeflow.built_pods import Pods
from trainlint.programs.kubeflow.built_value import UNKNOWN, BuiltValue, Content, Owner
from trainlint.programs.kubeflow.draft import LAUNCHER, NODE, Draft, append, upsert_env, upsert_volume
from trainlint.programs.kubeflow.facts.admission import FLUX_INSTALLER
from trainlint.programs.kubeflow.facts.jobset import FLUX_IMAGE, FLUX_MOUNTS


def mpi(draft: Draft) -> None:
    """The nodes' number, the SSH keys, and the host file of the launcher."""
    node = draft.pods_called(NODE)
    count = draft.num_nodes
    if count.given and node is not None:
        if draft.launcher_is_node:
            count = count.derive(UNKNOWN if count.number is None else max(count.number - 1, 1))
        draft.set_count(node, count)
    slots = draft.processes = _slots(draft)
    for pods in draft.pods:
        if pods.name not in (NODE, LAUNCHER):
            continue
        keys = draft.made("mpi-ssh-auth")
        upsert_volume(pods, draft.struct(name=keys, secret=draft.struct(secretName=draft.called("mpi-ssh-auth"))))
        if pods.name == LAUNCHER:
            hosts = draft.struct(name=draft.called("mpi-hostfile"))
            upsert_volume(pods, draft.struct(name=draft.made("mpi-hostfile"), configMap=hosts))
        for container in pods.containers:
            if container.name != NODE:
                continue
            draft.mount(container, keys, draft.policy.at("mpi", "sshAuthMountPath"))
            if pods.name == LAUNCHER:
                draft.mount(container, draft.made("mpi-hostfile"), draft.made("/etc/mpi"))
                _openmpi(draft, container, slots)


def _slots(draft: Draft) -> BuiltValue:
    """The processes on each node; the runtime's 1 gives way to the number of GPUs."""
    slots = draft.own.get("numProcPerNode")
    if slots.given:
        return slots
    slots = draft.policy.at("mpi", "numProcPerNode")
    if draft.facts.procs_from_gpus and slots.is_(1):
        gpus = draft.gpus
        if gpus.unknown or (gpus.number or 0) > 1:
            return gpus
    return slots


def _openmpi(draft: Draft, container: BuiltValue, slots: BuiltValue) -> None:
    implementation = draft.policy.at("mpi", "mpiImplementation")
    if implementation.known_and_not_in(("OpenMPI",)):
        draft.stops = (implementation, f"the controller can only start OpenMPI, not {implementation}")
        return
    env = [
        draft.env("OMPI_MCA_orte_default_hostfile", draft.made("/etc/mpi/hostfile")),
        draft.env("OMPI_MCA_orte_keep_fqdn_hostnames", draft.made("true")),
        draft.env("OMPI_MCA_orte_set_default_slots", slots),
        draft.env("OMPI_MCA_plm_rsh_args", draft.made("-o ConnectionAttempts=10")),
    ]
    upsert_env(container, env)


def flux(draft: Draft) -> None:
    """Flux's own command around the trainer's, and the pods that install Flux."""
    if draft.own.absent or draft.num_nodes.absent:
        missing = draft.num_nodes if draft.own.given else draft.own
        draft.stops = (missing, "the controller crashes on a Flux runtime without spec.trainer.numNodes")
        return
    image = draft.made(FLUX_IMAGE)
    container = draft.container
    for env in [*(container.get("env").items() if container else []), *draft.own.get("env").items()]:
        if env.name == "FLUX_VIEW_IMAGE":
            image = env.get("value")
    command = container.get("command") if container and draft.facts.flux_wraps_runtime_command else None
    if draft.command.given or command is None:
        command = draft.command
    words = [*(command.texts() or []), *(draft.args.texts() or [])]
    known = command.absent or command.texts() is not None
    original: Content = " ".join(words).strip() if known else UNKNOWN
    draft.command = BuiltValue(
        [draft.made(word) for word in ("/bin/bash", "/etc/flux-config/entrypoint.sh", original)],
        draft.command.place,
        Owner.JOB,
        made=True,
    )
    draft.args = BuiltValue(None, draft.args.place, Owner.JOB)
    node = draft.pods_called(NODE)
    if node is not None:
        _flux_pods(draft, node, image)


def _flux_pods(draft: Draft, node: Pods, image: BuiltValue) -> None:
    scripts = draft.called("flux-entrypoint")
    empty = draft.made({})
    volumes = [
        draft.struct(name=draft.made("spack-install"), emptyDir=empty),
        draft.struct(name=draft.made("flux-install"), emptyDir=empty),
        draft.struct(name=scripts, configMap=draft.struct(name=scripts)),
    ]
    mounts = [(draft.made(name), path) for name, path in FLUX_MOUNTS]
    mounts += [(scripts, "/etc/flux-config"), (draft.made("flux-curve"), "/curve")]
    if draft.facts.flux_shared_memory:
        memory = draft.struct(medium=draft.made("Memory"))
        volumes.append(draft.struct(name=draft.made("shared-memory"), emptyDir=memory))
        mounts.append((draft.made("shared-memory"), "/dev/shm"))
    secret = draft.struct(secretName=draft.called("flux-curve"))
    volumes.append(draft.struct(name=draft.made("flux-curve"), secret=secret))
    for volume in volumes:
        upsert_volume(node, volume)
    installer = draft.struct(
        name=draft.made(FLUX_INSTALLER),
        image=image,
        command=draft.made([draft.made(word) for word in ("/bin/bash", "/etc/flux-config/init.sh")]),
        volumeMounts=draft.made([]),
    )
    draft.mount(installer, draft.made("flux-install"), draft.made("/mnt/flux"))
    draft.mount(installer, scripts, draft.made("/etc/flux-config"))
    append(node.spec, "initContainers", installer)
    for container in node.containers:
        if container.name == NODE:
            for name, path in mounts:
                draft.mount(container, name, draft.made(path))
