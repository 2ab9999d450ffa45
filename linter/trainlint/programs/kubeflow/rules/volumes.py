"""Kubernetes' checks of the volumes in the pods that a TrainJob becomes, and of their mounts."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage, did_you_mean, some_of
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.build import Build, BuiltJob
from trainlint.programs.kubeflow.built_pods import Container
from trainlint.programs.kubeflow.built_value import BuiltValue, repeated
from trainlint.programs.kubeflow.facts import pods as tables
from trainlint.programs.kubeflow.rules.containers import field_ref, resource_ref
from trainlint.rule import rule


@rule("TJ529", "mount-without-volume", stage=Stage.CREATE, program="kubernetes")
def mount_without_volume(job: BuiltJob) -> Iterator[Finding]:
    """A container mounts a volume that its pod does not have.

    Volumes belong to the pod, so a patch that adds a mount must add the volume beside the containers. From Kubeflow
    Trainer 2.3 on a runtime's initializer must mount a volume called `initializer`, which its pod has to define. A
    volume that is refused counts as missing.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        volumes = container.pods.spec.get("volumes")
        known = {volume.name for volume in volumes.items()} | _claims(job)
        if volumes.unknown or any(volume.get("name").unknown for volume in volumes.items()):
            continue
        if container.get("image").empty:
            continue  # A patch that was meant for another container made it: TJ520 says so.
        for kind in ("volumeMounts", "volumeDevices"):
            for mount in container.get(kind).items():
                name = mount.get("name").text
                if name is not None and name not in known:
                    yield job.finding(
                        mount.get("name"),
                        f'{container} mounts the volume "{name}", which its pod does not have',
                        help=did_you_mean(name, known) or "add it under volumes of the same pod",
                    )


def _claims(job: Build) -> set[str]:
    """Volumes that the JobSet adds to the pods that mount them."""
    return {
        template.at("metadata", "name").text or ""
        for policy in job.jobset.get("volumeClaimPolicies").items()
        for template in policy.get("templates").items()
    }


@rule("TJ530", "mount-path", stage=Stage.CREATE, program="kubernetes")
def mount_path(job: BuiltJob) -> Iterator[Finding]:
    """A mount has no path, the path of another mount, or a subPath that leads out of its volume.

    Kubernetes accepts a relative path, and one with a colon. Bidirectional propagation needs a privileged container,
    and recursiveReadOnly needs readOnly.

    Source: Kubernetes 1.36, validation of Jobs; JobSet 0.12 for equal paths.
    """
    for container in job.containers:
        mounts = container.get("volumeMounts").items()
        devices = container.get("volumeDevices").items()
        paths = [mount.get("mountPath") for mount in mounts] + [device.get("devicePath") for device in devices]
        for path in paths:
            if path.is_(""):
                yield job.finding(path, f"a mount of {container} has no path")
        for path in repeated([path for path in paths if path.text]):
            yield job.finding(path, f"{container} mounts two volumes at {path}", help="give one of them another path")
        for mount in mounts:
            yield from _mount(job, container, mount)
        blocks = {volume.name: volume for volume in container.pods.spec.get("volumes").items()}
        for device in container.value.find("volumeDevices[].name"):
            volume = blocks.get(device.text or "")
            claims = ("persistentVolumeClaim", "ephemeral")
            if volume is not None and not volume.unknown and not any(volume.get(kind).given for kind in claims):
                yield job.finding(device, f"{container} uses {device} as a device, and only a volume claim can be one")


def _mount(job: Build, container: Container, mount: BuiltValue) -> Iterator[Finding]:
    below, expression = mount.get("subPath"), mount.get("subPathExpr")
    for part in (below, expression):
        yield from job.malformed(part, names.inner_path, "subPath")
    if below.text and expression.text:
        message, help = "subPath and subPathExpr exclude each other", "remove one of them"
        yield job.finding(expression, message, help=help, related=below.place.as_other_half)
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation.is_("Bidirectional") and not container.value.at("securityContext", "privileged").is_(True):
        yield job.finding(propagation, "mountPropagation: Bidirectional needs a privileged container")
    if recursive.is_("IfPossible", "Enabled"):
        if not mount.get("readOnly").is_(True):
            yield job.finding(recursive, f"recursiveReadOnly: {recursive} needs readOnly: true")
        if propagation.known_and_not_in(("None",)):
            message = "recursiveReadOnly and mountPropagation exclude each other"
            yield job.finding(recursive, message, related=propagation.place.as_other_half)


@rule("TJ531", "volume-source", stage=Stage.CREATE, program="kubernetes")
def volume_source(job: Build) -> Iterator[Finding]:
    """A volume has two sources, or a source that lacks a field.

    A patch that gives a runtime's volume another source does not replace the first one: the volume has both, and the
    Job is refused. A volume without a source is accepted and is an emptyDir.

    Source: Kubernetes 1.36, validation of Jobs; strategic merge patch for patches.
    """
    for pods in job.made:
        for volume in pods.spec.get("volumes").items():
            given = [kind for kind in tables.VOLUME_SOURCES if volume.get(kind).given]
            if len(given) > 1:
                patched = [kind for kind in given if volume.get(kind).owner is volume.owner]
                replaces = patched and len(patched) < len(given)
                yield job.finding(
                    volume.get((patched or given)[-1]),
                    f"volume {volume.name} of {pods} has two sources: {some_of(given)}",
                    help="rename the volume: a patch cannot replace the source of a runtime's volume"
                    if replaces
                    else "keep one of them",
                )
            for kind in given:
                yield from _volume(job, volume, kind)


def _volume(job: Build, volume: BuiltValue, kind: str) -> Iterator[Finding]:
    source = volume.get(kind)
    if source.unknown:
        return
    for key in tables.VOLUME_SOURCES[kind]:
        # A malformed name is another rule's, also where it is empty.
        syntax = tables.POD_NAMES.get(f"volumes[].{kind}.{key}")
        malformed = syntax is not None and names.SYNTAX[syntax]("") != ""
        empty = source.get(key).content in ("", []) and not malformed
        if empty or (not source.get(key).given and (kind, key) in tables.LEFT_OUT):
            yield job.finding(source.get(key), f"{kind} of volume {volume.name} has no {key}")
    size = source.get("sizeLimit")
    if kind == "emptyDir" and size.amount is not None and size.amount < 0:
        yield job.finding(size, f"sizeLimit {size} of volume {volume.name} is negative")
    for key, prefixes in [tables.VOLUME_PREFIXES[kind]] if kind in tables.VOLUME_PREFIXES else []:
        text = source.get(key).text
        if text and not text.startswith(prefixes):
            yield job.finding(source.get(key), f"{key} of volume {volume.name} must start with {' or '.join(prefixes)}")
    if kind == "azureDisk" and source.get("diskURI").text:
        start = "/subscriptions/" if source.get("kind").is_("Managed") else "https://"
        if not (source.get("diskURI").text or "").startswith(start):
            yield job.finding(source.get("diskURI"), f"diskURI of volume {volume.name} must start with {start}")
    choices = tables.VOLUME_CHOICES.get(kind, ())
    if choices and sum(not source.get(key).empty for key in choices) != 1:
        yield job.finding(source, f"{kind} of volume {volume.name} needs either {' or '.join(choices)}")
    for path in tables.VOLUME_REFERENCES:
        for reference in volume.find(path):
            if reference.get("name").empty:
                yield job.finding(reference, f"{path} of volume {volume.name} has no name")
    if kind == "ephemeral":
        yield from _claim(job, volume, source.at("volumeClaimTemplate", "spec"))
    parts = source.get("sources").items() if kind == "projected" else [source.with_content({kind: source})]
    taken: list[BuiltValue] = []
    for part in parts:
        yield from _projected(job, volume, part, kind == "projected")
        taken.extend(
            path for key in ("secret", "configMap", "downwardAPI") for path in part.find(f"{key}.items[].path")
        )
    if kind == "projected":
        for file in repeated(taken):
            yield job.finding(file, f"volume {volume.name} has two files at {file}", help="give one another path")


def _projected(job: Build, volume: BuiltValue, part: BuiltValue, inside: bool) -> Iterator[Finding]:
    """The files of a secret, ConfigMap or downward API, in a volume of their own or inside a projected one."""
    given = [key for key, _ in part.entries()]
    if inside and len(given) > 1:
        yield job.finding(
            part.get(given[-1]),
            f"a source of volume {volume.name} has {len(given)} kinds: {some_of(given)}",
            help="make a source of each",
        )
    for key in ("secret", "configMap"):
        if inside and part.get(key).given and part.get(key).get("name").empty:
            yield job.finding(part.get(key).get("name"), f"a {key} of volume {volume.name} has no name")
        for item in part.get(key).get("items").items():
            if item.get("key").is_(""):
                yield job.finding(item.get("key"), f"an item of volume {volume.name} has no key")
            yield from _file(job, volume, item.get("path"))
    for item in part.at("downwardAPI", "items").items():
        yield from _file(job, volume, item.get("path"))
        field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
        if field.given == resource.given and not item.unknown:
            yield job.finding(item, f"a file of volume {volume.name} needs either fieldRef or resourceFieldRef")
        yield from field_ref(job, field, tables.VOLUME_FIELDS)
        yield from resource_ref(job, resource)
        if resource.given and resource.get("containerName").empty:
            yield job.finding(resource, f"resourceFieldRef in volume {volume.name} needs a containerName")
    if part.get("serviceAccountToken").given:
        yield from _file(job, volume, part.at("serviceAccountToken", "path"))


def _file(job: Build, volume: BuiltValue, path: BuiltValue) -> Iterator[Finding]:
    yield from job.malformed(path, names.file_path, "path", f"volume {volume.name}")


def _claim(job: Build, volume: BuiltValue, spec: BuiltValue) -> Iterator[Finding]:
    yield from claim_problems(job, f"the claim of volume {volume.name}", spec)


def claim_problems(job: Build, what: str, spec: BuiltValue) -> Iterator[Finding]:
    """What is wrong with the spec of a volume claim, beside words and names that the tables of pods check."""
    if spec.absent or spec.unknown:
        return
    modes, storage = spec.get("accessModes"), spec.at("resources", "requests", "storage")
    if modes.empty:
        yield job.finding(modes, f"{what} has no accessModes")
    elif len(modes.items()) > 1 and "ReadWriteOncePod" in (modes.texts() or []):
        yield job.finding(modes, "ReadWriteOncePod and other accessModes exclude each other")
    if storage.absent:
        yield job.finding(storage, f"{what} requests no storage")
    elif storage.amount is not None and storage.amount <= 0:
        yield job.finding(storage, f"{what} must request more than {storage} of storage")


@rule("TJ532", "volume-name", stage=Stage.CREATE, program="kubernetes")
def volume_name(job: Build) -> Iterator[Finding]:
    """A volume's name is empty or malformed.

    Names are DNS labels: lower-case letters, digits and dashes, at most 63.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        for volume in pods.spec.get("volumes").items():
            yield from job.malformed(volume.get("name"), names.label, "volume name", str(pods))
