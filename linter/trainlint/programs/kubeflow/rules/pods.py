"""What Kubernetes says of the Jobs and pods that an admitted TrainJob becomes.

Each rule looks at what the controller builds and reports at the field of the TrainJob, the patch or the runtime that
gave the value. A refused Job or pod leaves no trace on the TrainJob: only events on the JobSet or the Job tell. Rules
on a `Build` judge what a job says by itself even where its runtime is not known, those on a `BuiltJob` need the
runtime.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import wraps

from trainlint.findings import Finding, did_you_mean, some_of
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.build import Build, BuiltJob, Container, Pods
from trainlint.programs.kubeflow.built_value import BuiltValue, repeated
from trainlint.programs.kubeflow.facts import pods as facts
from trainlint.programs.kubeflow.facts.admission import HIGHEST_PRIORITIES
from trainlint.programs.kubeflow.quantities import parse_quantity, whole
from trainlint.rule import rule

# images and names


@rule("TJ520", "missing-image", program="kubernetes")
def missing_image(job: BuiltJob) -> Iterator[Finding]:
    """A container has no image.

    Often a runtimePatches entry names a container that the job of the runtime does not have: it is added, with nothing
    but what the patch says. The Job is refused; nothing on the TrainJob says so.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        if container.get("image").empty:
            known = [part.name for part in (*container.pods.containers, *container.pods.init_containers)]
            hint = did_you_mean(container.value.name, [name for name in known if name != container.value.name])
            yield job.finding(
                container.get("image"),
                f"{container} has no image",
                help=hint or "give it an image, or patch a container that the runtime has",
            )


@rule("TJ521", "padded-image", program="kubernetes")
def padded_image(job: Build) -> Iterator[Finding]:
    """An image begins or ends with white space.

    The usual cause is a YAML block scalar (`image: |`), which ends in a newline. The Job is accepted and the pod is
    refused, again and again. Other spaces, doubled colons and upper case are accepted, and fail when the image is
    pulled.

    Source: Kubernetes 1.36, validation of pods.
    """
    for container in job.containers:
        image = container.get("image").text
        if image and image != image.strip():
            yield job.finding(
                container.get("image"),
                f"the image of {container} begins or ends with white space",
                help="write the image on the line of its key",
            )


@rule("TJ539", "container-name", program="kubernetes")
def container_name(job: BuiltJob) -> Iterator[Finding]:
    """A container's name is malformed, or two containers of a pod have the same.

    Names are DNS labels: lower-case letters, digits and dashes, at most 63. Init containers share the names of the
    others.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        named = [part.get("name") for part in (*pods.containers, *pods.init_containers)]
        for name in named:
            yield from job.malformed(name, names.label, "container name", str(pods))
        for name in repeated(named):
            yield job.finding(name, f"{pods} has two containers called {name}")


# environment


@rule("TJ522", "env-name", program="kubernetes")
def env_name(job: Build) -> Iterator[Finding]:
    """The name of an environment variable is empty or holds characters that no server takes.

    Servers from 1.32 on take any printable ASCII but `=`; the rule `old-env-name` warns of what older ones refuse.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        for env in container.get("env").items():
            yield from job.malformed(env.get("name"), names.env, "environment variable name")


@rule("TJ523", "env-source", program="kubernetes")
def env_source(job: Build) -> Iterator[Finding]:
    """`valueFrom` names no source, several, or one that cannot be.

    It must hold exactly one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef; in the env of
    a TrainJob's trainer or initializer a fileKeyRef is not copied, so that no source is left. Names and keys of
    Secrets and ConfigMaps must be well formed, fields of the pod such as can be shown.

    Source: Kubernetes 1.36, validation of Jobs; Kubeflow Trainer 2.0 and later for what is copied.
    """
    for container in job.containers:
        for env in container.get("env").items():
            source = env.get("valueFrom")
            if source.given and not source.unknown:
                yield from _env_source(job, env, source)
        volumes = container.pods.spec.get("volumes")
        scratch = [volume.name for volume in volumes.items() if volume.get("emptyDir").given]
        for name in container.value.find("env[].valueFrom.fileKeyRef.volumeName"):
            if name.text and name.text not in scratch and not volumes.unknown:
                yield job.finding(name, f'fileKeyRef reads from "{name}", which is no emptyDir of the pod')


def _env_source(job: Build, env: BuiltValue, source: BuiltValue) -> Iterator[Finding]:
    given = [key for key in facts.ENV_SOURCES if source.get(key).given]
    if not given:
        yield job.finding(source, f"valueFrom of {env.name} names no source", help=f"use {some_of(facts.ENV_SOURCES)}")
    elif len(given) > 1:
        yield job.finding(source, f"valueFrom of {env.name} names {len(given)} sources: {some_of(given)}")
    elif not env.get("value").empty:
        yield job.finding(source, f"{env.name} has both a value and valueFrom", help="keep one of them")
    for key in ("configMapKeyRef", "secretKeyRef"):
        yield from _key_ref(job, source.get(key), "name", names.subdomain)
        yield from _key_ref(job, source.get(key), "key", names.config_key)
    yield from _key_ref(job, source.get("fileKeyRef"), "key", names.env)
    yield from _key_ref(job, source.get("fileKeyRef"), "volumeName", names.label)
    yield from _key_ref(job, source.get("fileKeyRef"), "path", names.no_way_up)
    yield from field_ref(job, source.get("fieldRef"), facts.ENV_FIELDS)
    yield from resource_ref(job, source.get("resourceFieldRef"))


def _key_ref(job: Build, ref: BuiltValue, key: str, check: names.Check) -> Iterator[Finding]:
    yield from job.malformed(ref.get(key), check, key, "the reference")


def field_ref(job: Build, ref: BuiltValue, allowed: tuple[str, ...]) -> Iterator[Finding]:
    """A field of the pod that cannot be shown."""
    path, version = ref.get("fieldPath"), ref.get("apiVersion")
    if version.known_and_not_in(("v1",)):
        yield job.finding(version, f"pods have no version {version}", help="drop apiVersion")
    if ref.absent or path.text is None:
        return
    owner, bracket, rest = path.text.partition("['")
    if bracket and rest.endswith("']"):
        problem = names.key(rest[:-2].lower() if owner == "metadata.annotations" else rest[:-2])
        if owner not in ("metadata.annotations", "metadata.labels"):
            problem = "cannot be asked for by key"
        if problem:
            yield job.finding(path, f"field {path}: the key {problem}")
    elif path.text not in allowed and not (path.is_("spec.host") and "spec.nodeName" in allowed):
        yield job.finding(
            path,
            f'field "{path}" of a pod cannot be shown',
            help=did_you_mean(str(path), allowed) or f"one of {some_of(allowed)}",
        )


def resource_ref(job: Build, ref: BuiltValue) -> Iterator[Finding]:
    """An amount of resources that cannot be shown."""
    resource = ref.get("resource")
    text = resource.text
    if text is None:
        return
    huge = text.startswith((f"limits.{facts.HUGEPAGES}", f"requests.{facts.HUGEPAGES}"))
    if text not in facts.RESOURCE_FIELDS and not huge:
        yield job.finding(
            resource,
            f'resource "{text}" of a container cannot be shown',
            help=did_you_mean(text, facts.RESOURCE_FIELDS) or f"one of {some_of(facts.RESOURCE_FIELDS)}",
        )
    divisor = ref.get("divisor")
    allowed = facts.DIVISORS["cpu" if text.endswith(".cpu") else "other"]
    amounts = [0, *(parse_quantity(word) for word in allowed)]
    if divisor.amount is not None and divisor.amount not in amounts:
        yield job.finding(divisor, f"{text} cannot be divided by {divisor}", help=f"one of {some_of(allowed)}")


@rule("TJ524", "env-from", program="kubernetes")
def env_from(job: Build) -> Iterator[Finding]:
    """An `envFrom` entry, or an initializer's secretRef, names nothing or something malformed.

    An entry must hold exactly one of configMapRef and secretRef, with the name of an object.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        for entry in container.get("envFrom").items():
            refs = [entry.get(key) for key in ("configMapRef", "secretRef") if entry.get(key).given]
            if entry.unknown:
                continue
            if len(refs) != 1:
                what = "names both a ConfigMap and a Secret" if refs else "names no ConfigMap and no Secret"
                yield job.finding(entry, f"an entry of envFrom in {container} {what}")
            for ref in refs:
                yield from _key_ref(job, ref, "name", names.subdomain)
            if entry.get("prefix").text:
                yield from job.malformed(entry.get("prefix"), names.env, "prefix")


# resources


def _once(check: Callable[[Build], Iterator[Finding]]) -> Callable[[Build], Iterator[Finding]]:
    """One finding for each place in the job, whose resources may go into the launcher and the nodes of MPI."""

    @wraps(check)
    def checked(job: Build) -> Iterator[Finding]:
        seen: set[tuple[object, ...]] = set()
        for finding in check(job):
            place = (finding.span, finding.message if finding.field == "spec.runtimeRef.name" else finding.field)
            if place not in seen:
                yield finding
            seen.add(place)

    return checked


def _resources(job: Build) -> Iterator[tuple[str, BuiltValue]]:
    for container in job.containers:
        yield str(container), container.get("resources")
    for pods in job.made:
        if pods.spec.get("resources").given:
            yield f"the pod of {pods}", pods.spec.get("resources")
        overhead = pods.spec.get("overhead")
        if overhead.given:
            yield f"the overhead of {pods}", overhead.with_content({"limits": overhead})


def _is_native(name: str) -> bool:
    return "/" not in name or facts.NATIVE_DOMAIN in name


def _is_extended(name: str) -> bool:
    return not _is_native(name) or name.startswith(facts.HUGEPAGES)


@rule("TJ525", "extended-resource-limit", program="kubernetes")
@_once
def extended_resource_limit(job: Build) -> Iterator[Finding]:
    """A GPU or another extended resource is requested without a limit.

    Extended resources (nvidia.com/gpu, amd.com/gpu, hugepages) cannot be promised twice: a request needs a limit of
    the same amount, and a limit alone is enough. This holds after resourcesPerNode was merged into the runtime's. The
    Job is refused; with torchtune only after both downloads are done.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for owner, resources in _resources(job) if isinstance(job, BuiltJob) else ():
        limits = resources.get("limits")
        for name, amount in resources.get("requests").entries():
            if _is_extended(name) and not limits.unknown and not limits.get(name).given:
                requests = amount.place.parent
                around = requests.parent if requests else None
                place = around.get("limits").get(name) if around else amount.place
                yield job.finding(
                    BuiltValue(None, place, amount.owner),
                    f"{owner} requests {amount} {name} without a limit",
                    help=f"add {name}: {amount} under limits; the request follows by itself",
                )


@rule("TJ526", "request-above-limit", program="kubernetes")
@_once
def request_above_limit(job: Build) -> Iterator[Finding]:
    """A request is above its limit, or differs from it where it must be equal.

    CPUs and memory may be requested below their limit, never above; extended resources such as GPUs must be requested
    exactly as limited. What counts is the merge of resourcesPerNode into the runtime's resources: a request of one GPU
    meets the limit of two that the shipped torchtune runtimes have.

    Source: Kubernetes 1.36, validation of Jobs; Kubeflow Trainer 2.3, merge of resources.
    """
    for owner, resources in _resources(job):
        for name, request in resources.get("requests").entries():
            limit = resources.get("limits").get(name)
            if request.amount is None or limit.amount is None:
                continue
            differs = _is_extended(name) and request.amount != limit.amount
            if differs or request.amount > limit.amount:
                what = "differs from" if differs else "is above"
                # the job's own amount is the one to mend, wherever the other stands
                part = limit if limit.owner is not request.owner and limit.place.document is _document(job) else request
                yield job.finding(
                    part,
                    f"{owner}: request {request} of {name} {what} its limit {limit}",
                    help="set both in resourcesPerNode, or the limit alone",
                )


def _document(job: Build) -> object:
    return job.job.field.document


@rule("TJ527", "resource-amount", program="kubernetes")
@_once
def resource_amount(job: Build) -> Iterator[Finding]:
    """An amount is negative, a fraction of something whole, or an odd part of huge pages.

    Extended resources such as GPUs come in whole numbers; 1000m is one, 500m is refused. Huge pages come in multiples
    of their size, and only beside CPUs or memory.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for owner, resources in _resources(job):
        listed = [entry for kind in ("limits", "requests") for entry in resources.get(kind).entries()]
        for name, part in listed:
            problem = _amount_problem(name, part)
            if problem:
                yield job.finding(part, f"{owner}: {part} of {name} {problem}")
        plain = {name for name, _ in listed} & {"cpu", "memory"}
        huge = [part for name, part in listed if name.startswith(facts.HUGEPAGES)]
        unclear = resources.get("limits").unknown or resources.get("requests").unknown
        if huge and not plain and not unclear and isinstance(job, BuiltJob):
            yield job.finding(huge[0], f"{owner} has huge pages without cpu or memory", help="add cpu or memory")


def _amount_problem(name: str, part: BuiltValue) -> str:
    amount = part.amount
    if amount is None:
        return ""
    if amount < 0:
        return "is negative"
    if not _is_native(name) and not name.startswith("requests.") and (amount * 1000) % 1000:
        return "is not whole"
    if name.startswith(facts.HUGEPAGES):
        size = parse_quantity(name.removeprefix(facts.HUGEPAGES))
        if size is None or size <= 0 or size.denominator != 1 or whole(amount) % whole(size):
            return "is no multiple of the page size"
    return ""


@rule("TJ528", "resource-name", program="kubernetes")
@_once
def resource_name(job: Build) -> Iterator[Finding]:
    """A resource has a name that no node can offer.

    Without a domain there are cpu, memory, ephemeral-storage and hugepages-SIZE; `gpu`, `storage` and `pods` are none.
    Any other resource needs a lower-case domain and a name of at most 63 characters, such as nvidia.com/gpu.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for owner, resources in _resources(job):
        for kind in ("limits", "requests"):
            for name, part in resources.get(kind).entries():
                problem = names.key(name)
                if not problem and "/" not in name and not _is_standard(name):
                    problem = "is no resource of a container"
                elif not problem and not _is_native(name):
                    problem = "must not begin with requests." if name.startswith("requests.") else ""
                    problem = problem or ("has too long a domain" if names.key(f"requests.{name}") else "")
                if not problem and owner.startswith("the pod") and not _counts_for_pods(name):
                    problem = "is counted by container, not by pod"
                if problem:
                    near = [*facts.CONTAINER_RESOURCES, "nvidia.com/gpu", "amd.com/gpu"]
                    yield job.finding(
                        part, f'{owner}: resource "{name}" {problem}', help=did_you_mean(name, near), at_key=True
                    )


def _counts_for_pods(name: str) -> bool:
    return name in facts.POD_RESOURCES or name.startswith(facts.HUGEPAGES)


def _is_standard(name: str) -> bool:
    return name in facts.CONTAINER_RESOURCES or name.startswith(facts.HUGEPAGES)


# volumes


@rule("TJ529", "mount-without-volume", program="kubernetes")
def mount_without_volume(job: BuiltJob) -> Iterator[Finding]:
    """A container mounts a volume that its pod does not have.

    Volumes belong to the pod, so a patch that adds a mount must add the volume next to the containers. From Kubeflow
    Trainer 2.3 a runtime's initializer must mount a volume called `initializer`, which its pod has to define. A volume
    that is refused itself counts as missing.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        volumes = container.pods.spec.get("volumes")
        known = {volume.name for volume in volumes.items()} | _claims(job)
        if volumes.unknown or any(volume.get("name").unknown for volume in volumes.items()):
            continue
        for kind in ("volumeMounts", "volumeDevices"):
            for mount in container.get(kind).items():
                name = mount.get("name").text
                if name is not None and name not in known:
                    yield job.finding(
                        mount.get("name"),
                        f'{container} mounts "{name}", a volume that its pod does not have',
                        help=did_you_mean(name, known) or "add it under volumes of the same pod",
                    )


def _claims(job: Build) -> set[str]:
    """Volumes that the JobSet adds to pods which mount them."""
    return {
        template.at("metadata", "name").text or ""
        for policy in job.jobset.get("volumeClaimPolicies").items()
        for template in policy.get("templates").items()
    }


@rule("TJ530", "mount-path", program="kubernetes")
def mount_path(job: BuiltJob) -> Iterator[Finding]:
    """A mount has no path, the path of another mount, or a subPath that leads out of its volume.

    A relative path or one with a colon is accepted. Bidirectional propagation needs a privileged container, and
    recursiveReadOnly needs readOnly.

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
            yield job.finding(path, f"{container} mounts two volumes at {path}")
        for mount in mounts:
            yield from _mount(job, container, mount)
        blocks = {volume.name: volume for volume in container.pods.spec.get("volumes").items()}
        for device in container.value.find("volumeDevices[].name"):
            volume = blocks.get(device.text or "")
            claims = ("persistentVolumeClaim", "ephemeral")
            if volume is not None and not volume.unknown and not any(volume.get(kind).given for kind in claims):
                yield job.finding(device, f"{container} uses {device} as a device, which is no volume claim")


def _mount(job: Build, container: Container, mount: BuiltValue) -> Iterator[Finding]:
    below, expression = mount.get("subPath"), mount.get("subPathExpr")
    for part in (below, expression):
        yield from job.malformed(part, names.inner_path, "subPath")
    if below.text and expression.text:
        yield job.finding(expression, "subPath and subPathExpr exclude each other")
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    if propagation.is_("Bidirectional") and not container.value.at("securityContext", "privileged").is_(True):
        yield job.finding(propagation, "Bidirectional propagation needs a privileged container")
    if recursive.is_("IfPossible", "Enabled"):
        if not mount.get("readOnly").is_(True):
            yield job.finding(recursive, f"recursiveReadOnly: {recursive} needs readOnly: true")
        if propagation.known_and_not_in(("None",)):
            yield job.finding(recursive, "recursiveReadOnly excludes mountPropagation")


@rule("TJ531", "volume-source", program="kubernetes")
def volume_source(job: Build) -> Iterator[Finding]:
    """A volume has two sources, or a source without what it needs.

    A patch that gives a runtime's volume another source does not replace the first one: both are kept, and the Job is
    refused. A volume without a source is accepted and is an emptyDir.

    Source: Kubernetes 1.36, validation of Jobs; strategic merge patch for patches.
    """
    for pods in job.made:
        for volume in pods.spec.get("volumes").items():
            given = [kind for kind in facts.VOLUME_SOURCES if volume.get(kind).given]
            if len(given) > 1:
                patched = [kind for kind in given if volume.get(kind).owner is volume.owner]
                yield job.finding(
                    volume.get((patched or given)[-1]),
                    f"volume {volume.name} of {pods} has two sources: {some_of(given)}",
                    help="give the volume another name; a patch cannot replace the source of a runtime's volume",
                )
            for kind in given:
                yield from _volume(job, volume, kind)


def _volume(job: Build, volume: BuiltValue, kind: str) -> Iterator[Finding]:
    source = volume.get(kind)
    if source.unknown:
        return
    for key in facts.VOLUME_SOURCES[kind]:
        empty = source.get(key).content in ("", [])
        if empty or (not source.get(key).given and (kind, key) in facts.LEFT_OUT):
            yield job.finding(source.get(key), f"{kind} of volume {volume.name} has no {key}")
    size = source.get("sizeLimit")
    if kind == "emptyDir" and size.amount is not None and size.amount < 0:
        yield job.finding(size, f"sizeLimit {size} of volume {volume.name} is negative")
    for key, prefixes in [facts.VOLUME_PREFIXES[kind]] if kind in facts.VOLUME_PREFIXES else []:
        text = source.get(key).text
        if text and not text.startswith(prefixes):
            yield job.finding(source.get(key), f"{key} of volume {volume.name} must begin with {some_of(prefixes)}")
    if kind == "azureDisk" and source.get("diskURI").text:
        start = "/subscriptions/" if source.get("kind").is_("Managed") else "https://"
        if not (source.get("diskURI").text or "").startswith(start):
            yield job.finding(source.get("diskURI"), f"diskURI of volume {volume.name} must begin with {start}")
    choices = facts.VOLUME_CHOICES.get(kind, ())
    if choices and sum(not source.get(key).empty for key in choices) != 1:
        yield job.finding(source, f"{kind} of volume {volume.name} needs one of {some_of(choices)}")
    for path in facts.VOLUME_REFERENCES:
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
            yield job.finding(file, f"volume {volume.name} has two files at {file}")


def _projected(job: Build, volume: BuiltValue, part: BuiltValue, inside: bool) -> Iterator[Finding]:
    """The files of a secret, ConfigMap or downward API, in a volume of their own or inside a projected one."""
    given = [key for key, _ in part.entries()]
    if inside and len(given) > 1:
        yield job.finding(part.get(given[-1]), f"a source of volume {volume.name} is two things: {some_of(given)}")
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
            yield job.finding(item, f"a file of volume {volume.name} needs one of fieldRef and resourceFieldRef")
        yield from field_ref(job, field, facts.VOLUME_FIELDS)
        yield from resource_ref(job, resource)
        if resource.given and resource.get("containerName").empty:
            yield job.finding(resource, f"resourceFieldRef in volume {volume.name} needs a containerName")
    if part.get("serviceAccountToken").given:
        yield from _file(job, volume, part.at("serviceAccountToken", "path"))


def _file(job: Build, volume: BuiltValue, path: BuiltValue) -> Iterator[Finding]:
    yield from job.malformed(path, names.file_path, "path", f"volume {volume.name}")


def _claim(job: Build, volume: BuiltValue, spec: BuiltValue) -> Iterator[Finding]:
    if spec.absent or spec.unknown:
        return
    modes, storage = spec.get("accessModes"), spec.at("resources", "requests", "storage")
    if modes.empty:
        yield job.finding(modes, f"the claim of volume {volume.name} has no accessModes")
    elif len(modes.items()) > 1 and "ReadWriteOncePod" in (modes.texts() or []):
        yield job.finding(modes, "ReadWriteOncePod excludes other accessModes")
    if storage.absent:
        yield job.finding(storage, f"the claim of volume {volume.name} requests no storage")
    elif storage.amount is not None and storage.amount <= 0:
        yield job.finding(storage, f"the claim of volume {volume.name} requests {storage} of storage")


@rule("TJ532", "volume-name", program="kubernetes")
def volume_name(job: Build) -> Iterator[Finding]:
    """A volume's name is empty or malformed.

    Names are DNS labels: lower-case letters, digits and dashes, at most 63.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        for volume in pods.spec.get("volumes").items():
            yield from job.malformed(volume.get("name"), names.label, "volume name", str(pods))


# labels


@rule("TJ533", "label", program="kubernetes")
def label(job: Build) -> Iterator[Finding]:
    """A label, an annotation or a nodeSelector is malformed.

    Keys have an optional domain before a slash and a name of at most 63 letters, digits, dashes, underscores and dots;
    values of labels follow the same rule, values of annotations are free. A Job sets job-name and controller-uid on
    its pods itself and refuses others.

    Source: Kubernetes 1.36, validation of Jobs; JobSet 0.12.
    """
    yield from _labels(job, "label", job.labels)
    yield from _annotations(job, job.annotations)
    for pods in job.made:
        for metadata in (pods.value.at("template", "metadata"), pods.template.get("metadata")):
            yield from _labels(job, "label", metadata.get("labels"))
            yield from _annotations(job, metadata.get("annotations"))
        yield from _labels(job, "nodeSelector", pods.spec.get("nodeSelector"))
        for name in pods.template.find("metadata.finalizers[]"):
            text = name.text or ""
            problem = names.key(text) or ("needs a domain" if "/" not in text else "")
            if problem and text and text not in facts.FINALIZERS:
                yield job.finding(name, f'finalizer "{text}" {problem}')
        for key, value in pods.template.at("metadata", "labels").entries():
            if key in facts.JOB_LABELS:
                yield job.finding(value, f"label {key} belongs to the Job", help="drop it", at_key=True)


def _labels(job: Build, what: str, labels: BuiltValue) -> Iterator[Finding]:
    for key, value in labels.entries():
        if names.key(key):
            yield job.finding(value, f'{what} key "{key}" {names.key(key)}', at_key=True)
        if value.text is not None and names.label_value(value.text):
            yield job.finding(value, f'{what} value "{_short(value.text)}" {names.label_value(value.text)}')


def _annotations(job: Build, annotations: BuiltValue) -> Iterator[Finding]:
    size = 0
    for key, value in annotations.entries():
        size += len(key.encode()) + len((value.text or "").encode())
        if names.annotation_key(key):
            yield job.finding(value, f'annotation key "{key}" {names.annotation_key(key)}', at_key=True)
    if size > 256 * 1024:
        yield job.finding(annotations, "annotations must not be larger than 256 KiB in all")


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"


# scheduling


@rule("TJ534", "toleration", program="kubernetes")
def toleration(job: Build) -> Iterator[Finding]:
    """A toleration contradicts itself.

    Without a key the operator must be Exists; with Exists there is no value; tolerationSeconds goes with the effect
    NoExecute alone. Keys and values have the syntax of labels.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        for part in pods.spec.get("tolerations").items():
            key, operator, value, effect = (part.get(name) for name in ("key", "operator", "value", "effect"))
            if any(item.unknown for item in (part, key, operator, value, effect)):
                continue
            if key.text:
                yield from job.malformed(key, names.key, "toleration key")
            if not key.text and not operator.is_("Exists"):
                yield job.finding(operator, "a toleration without a key needs operator: Exists")
            if operator.is_("Exists") and value.text:
                yield job.finding(operator, "operator Exists takes no value", help="drop the value, or use Equal")
            elif operator.text in (None, "Equal") and names.label_value(value.text or ""):
                yield job.finding(value, f'toleration value "{value}" {names.label_value(value.text or "")}')
            if part.get("tolerationSeconds").given and not effect.is_("NoExecute"):
                yield job.finding(effect, "tolerationSeconds needs effect: NoExecute")


@rule("TJ535", "affinity", program="kubernetes")
def affinity(job: Build) -> Iterator[Finding]:
    """An affinity holds a term that selects nothing or cannot be read.

    In and NotIn need values, Exists and DoesNotExist take none, Gt and Lt take one and exist for nodes alone; a term
    for pods needs a topologyKey; a required node affinity needs a term.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    required, preferred = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
    for pods in job.made:
        node = pods.spec.at("affinity", "nodeAffinity")
        terms = node.get(required).get("nodeSelectorTerms")
        if terms.content == []:
            yield job.finding(terms, "a required node affinity needs a term in nodeSelectorTerms")
        for term in terms.items():
            yield from _node_term(job, term, checks_values=True)
        for term in node.get(preferred).items():
            yield from _node_term(job, term.get("preference"), checks_values=False)
        for kind in ("podAffinity", "podAntiAffinity"):
            owner = pods.spec.at("affinity", kind)
            for term in owner.get(required).items():
                yield from _pod_term(job, term)
            for term in owner.get(preferred).items():
                yield from _pod_term(job, term.get("podAffinityTerm"))


def _node_term(job: Build, term: BuiltValue, *, checks_values: bool) -> Iterator[Finding]:
    for part in term.get("matchExpressions").items():
        yield from _requirement(job, part, facts.NODE_OPERATORS, checks_values=checks_values)
    for part in term.get("matchFields").items():
        key, values = part.get("key"), part.get("values")
        if part.get("operator").known_and_not_in(("In", "NotIn")):
            yield job.finding(part.get("operator"), "matchFields takes the operators In and NotIn")
        if key.known_and_not_in(("metadata.name",)):
            yield job.finding(key, f'matchFields knows metadata.name, not "{key}"')
        if not values.unknown and len(values.items()) != 1:
            yield job.finding(values, "matchFields takes one value")
        for value in values.items():
            yield from job.malformed(value, names.subdomain, "node name")


def _requirement(job: Build, part: BuiltValue, operators: tuple[str, ...], *, checks_values: bool) -> Iterator[Finding]:
    operator, values, key = part.get("operator"), part.get("values"), part.get("key")
    count = len(values.items())
    if operator.known_and_not_in(operators):
        hint = did_you_mean(str(operator), operators) or f"one of {some_of(operators, 6)}"
        yield job.finding(operator, f'operator "{operator}" does not exist', help=hint)
    elif operator.is_("In", "NotIn") and not count and not values.unknown:
        yield job.finding(values, f"operator {operator} needs values")
    elif operator.is_("Exists", "DoesNotExist") and count:
        yield job.finding(values, f"operator {operator} takes no values")
    elif operator.is_("Gt", "Lt") and count != 1 and not values.unknown:
        yield job.finding(values, f"operator {operator} takes one value")
    yield from job.malformed(key, names.key, "key")
    for value in values.items() if checks_values else ():
        yield from job.malformed(value, names.label_value, "value")


def label_selector(job: Build, selector: BuiltValue) -> Iterator[Finding]:
    """What is wrong with a selector of labels."""
    yield from _labels(job, "selector", selector.get("matchLabels"))
    for part in selector.get("matchExpressions").items():
        yield from _requirement(job, part, facts.SELECTOR_OPERATORS, checks_values=True)


def _pod_term(job: Build, term: BuiltValue) -> Iterator[Finding]:
    for kind in ("labelSelector", "namespaceSelector"):
        yield from label_selector(job, term.get(kind))
    yield from job.malformed(term.get("topologyKey"), names.key, "topologyKey")
    for namespace in term.get("namespaces").items():
        yield from job.malformed(namespace, names.label, "namespace")
    yield from _label_keys(job, term)


def _label_keys(job: Build, owner: BuiltValue) -> Iterator[Finding]:
    selector = owner.get("labelSelector")
    taken = {key for key, _ in selector.get("matchLabels").entries()}
    mismatched = owner.get("mismatchLabelKeys").texts() or []
    for kind in ("matchLabelKeys", "mismatchLabelKeys"):
        listed = owner.get(kind)
        if listed.items() and selector.absent:
            yield job.finding(listed, f"{kind} needs a labelSelector")
            continue
        for part in listed.items():
            if part.text is not None and names.key(part.text):
                yield job.finding(part, f'key "{part}" {names.key(part.text)}')
            elif kind == "matchLabelKeys" and part.text in mismatched:
                yield job.finding(part, f"{part} stands in matchLabelKeys and mismatchLabelKeys")
    for part in selector.get("matchExpressions").items():
        key = part.get("key").text
        if key is not None and key in taken and key in (owner.get("matchLabelKeys").texts() or []):
            yield job.finding(part.get("key"), f"{key} stands in matchLabelKeys and labelSelector")
        taken.add(key or "")


@rule("TJ536", "topology-spread", program="kubernetes")
def topology_spread(job: BuiltJob) -> Iterator[Finding]:
    """A topologySpreadConstraint lacks its key, repeats another, or contradicts itself.

    minDomains goes with DoNotSchedule alone.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        seen: Counter[tuple[str | None, str | None]] = Counter()
        for part in pods.spec.get("topologySpreadConstraints").items():
            key, action = part.get("topologyKey"), part.get("whenUnsatisfiable")
            if key.is_(""):
                yield job.finding(key, "a topologySpreadConstraint needs a topologyKey")
            if part.get("minDomains").given and action.known_and_not_in(("DoNotSchedule",)):
                yield job.finding(part.get("minDomains"), "minDomains needs whenUnsatisfiable: DoNotSchedule")
            seen[key.text, action.text] += 1
            if seen[key.text, action.text] == 2 and key.text:
                yield job.finding(key, f"{key} has two constraints with whenUnsatisfiable: {action}")
            yield from label_selector(job, part.get("labelSelector"))
            yield from _label_keys(job, part)


@rule("TJ537", "scheduling-gate", program="kubernetes")
def scheduling_gate(job: Build) -> Iterator[Finding]:
    """A scheduling gate is malformed or named twice, or stands beside nodeName.

    Source: Kubernetes 1.36, validation of Jobs and pods.
    """
    for pods in job.made:
        gates = [gate.get("name") for gate in pods.spec.get("schedulingGates").items()]
        for gate in gates:
            yield from job.malformed(gate, names.key, "scheduling gate")
        for gate in repeated(gates):
            yield job.finding(gate, f"scheduling gate {gate} stands twice")
        if gates and pods.spec.get("nodeName").text:
            yield job.finding(pods.spec.get("nodeName"), "a pod with scheduling gates must not name its node")


# security


@rule("TJ538", "security-context", program="kubernetes")
def security_context(job: Build) -> Iterator[Finding]:
    """A security context contradicts itself.

    A privileged container cannot forbid privilege escalation; a Localhost profile needs its path, and another type
    takes none; an unmasked /proc needs hostUsers: false. runAsNonRoot beside user 0 is accepted, and the container
    does not start.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        context = container.get("securityContext")
        yield from _profiles(job, context)
        for part in context.find("windowsOptions.runAsUserName"):
            if part.text is not None and not re.fullmatch(
                r"([^\\]*\\)?[^\"/\\:;|=,+*?<>@\[\]\x00-\x1f]{1,104}", part.text
            ):
                yield job.finding(part, f'"{part}" is no name of a user of Windows')
        escalation = context.get("allowPrivilegeEscalation")
        if escalation.is_(False) and context.get("privileged").is_(True):
            yield job.finding(escalation, f"{container} is privileged and forbids privilege escalation")
        if escalation.is_(False) and "CAP_SYS_ADMIN" in (context.at("capabilities", "add").texts() or []):
            yield job.finding(escalation, f"{container} adds CAP_SYS_ADMIN and forbids privilege escalation")
        unmasked = context.get("procMount")
        if unmasked.is_("Unmasked") and not container.pods.spec.get("hostUsers").is_(False):
            yield job.finding(unmasked, "procMount: Unmasked needs hostUsers: false")
    for pods in job.made:
        context = pods.spec.get("securityContext")
        yield from _profiles(job, context)
        for name in repeated([item.get("name") for item in context.get("sysctls").items()]):
            yield job.finding(name, f"sysctl {name} stands twice")


def _profiles(job: Build, context: BuiltValue) -> Iterator[Finding]:
    for kind in ("seccompProfile", "appArmorProfile"):
        profile = context.get(kind)
        local, path = profile.get("type"), profile.get("localhostProfile")
        if local.is_("Localhost") and path.absent:
            yield job.finding(path, f"{kind} of type Localhost needs a localhostProfile")
        elif local.known_and_not_in(("Localhost",)) and path.given:
            yield job.finding(path, f"localhostProfile belongs to the type Localhost, not {local}")
        elif kind == "appArmorProfile" and path.text is not None and (not path.text or path.text != path.text.strip()):
            yield job.finding(path, "localhostProfile must be a name without white space around it")


@rule("TJ546", "pod-contradiction", program="kubernetes")
def pod_contradiction(job: BuiltJob) -> Iterator[Finding]:
    """Two fields of a pod exclude each other, or one belongs to no pod that a Job makes.

    These do: shareProcessNamespace and hostPID; hostUsers: false and hostPID, hostIPC or hostNetwork; hostnameOverride
    and hostNetwork or setHostnameAsFQDN; a port of the host other than the container's and hostNetwork. Ephemeral
    containers are added to a running pod and belong to no template.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        spec = pods.spec
        network = spec.get("hostNetwork")
        if spec.get("ephemeralContainers").items():
            yield job.finding(spec.get("ephemeralContainers"), f"{pods} cannot have ephemeral containers")
        if spec.get("shareProcessNamespace").flag and spec.get("hostPID").flag:
            yield job.finding(spec.get("shareProcessNamespace"), "shareProcessNamespace and hostPID exclude each other")
        if spec.get("hostUsers").is_(False):
            for key in ("hostPID", "hostIPC", "hostNetwork"):
                if spec.get(key).flag:
                    yield job.finding(spec.get(key), f"{key} and hostUsers: false exclude each other")
        override = spec.get("hostnameOverride")
        if override.given:
            for key in ("hostNetwork", "setHostnameAsFQDN"):
                if spec.get(key).flag:
                    yield job.finding(override, f"hostnameOverride and {key} exclude each other")
            if override.text and len(override.text) > 64:
                yield job.finding(override, "hostnameOverride must not be longer than 64 characters")
        for container in pods.containers if network.flag else ():
            for port in container.get("ports").items():
                host, own = port.get("hostPort"), port.get("containerPort")
                if host.number and own.number is not None and host.number != own.number:
                    yield job.finding(host, f"hostPort {host.number} differs from containerPort under hostNetwork")


@rule("TJ547", "windows-pod", program="kubernetes")
def windows_pod(job: BuiltJob) -> Iterator[Finding]:
    """A pod for one system holds what only the other has.

    With `os.name: windows` a pod must not set users, groups, profiles, capabilities or the host's namespaces; with
    `os.name: linux` no windowsOptions.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        system = pods.spec.at("os", "name").text
        containers = [*pods.containers, *pods.init_containers]
        if system == "windows":
            found = [part for path in facts.WINDOWS_POD_FIELDS for part in pods.spec.find(path)]
            found = [part for part in found if part.content or part.place.name not in facts.WINDOWS_SWITCHES]
            found += [p for path in facts.WINDOWS_CONTAINER_FIELDS for c in containers for p in c.find(path)]
        elif system == "linux":
            found = [p for owner in (pods.spec, *containers) for p in owner.find("securityContext.windowsOptions")]
        else:
            continue
        for part in found:
            yield job.finding(part, f"{part.place.name} cannot be set on a pod for {system}")


# ports, probes and the rest


@rule("TJ540", "container-port", program="kubernetes")
def container_port(job: BuiltJob) -> Iterator[Finding]:
    """Two ports of a container share a name, or two containers a port of the host.

    A name stands for one port in Services and probes, and a node has each of its ports once for each protocol and
    address. Give each port a name and a hostPort of its own, or leave hostPort out.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        taken: set[tuple[object, ...]] = set()
        for container in [*pods.containers, *pods.init_containers]:
            for name in repeated([port.get("name") for port in container.get("ports").items()]):
                if name.text:
                    yield job.finding(name, f"container {container.name} has two ports called {name}")
        for container in pods.containers:
            for port in container.get("ports").items():
                host = port.get("hostPort")
                where = (port.get("protocol").text or "TCP", port.get("hostIP").text, host.number)
                if host.number and where in taken:
                    yield job.finding(host, f"two containers of {pods} take port {host.number} of the host")
                taken.add(where)


@rule("TJ544", "probe", program="kubernetes")
def probe(job: BuiltJob) -> Iterator[Finding]:
    """A probe or a lifecycle hook has no handler, several, or one that cannot work.

    There must be one of exec, httpGet, tcpSocket and grpc, a hook may also sleep. successThreshold is 1 but for
    readiness, init containers have neither probes nor hooks unless they are always restarted, and
    terminationGracePeriodSeconds does not belong to readiness.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        hooks = container.get("lifecycle")
        if not container.stays:
            for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(key).given:
                    yield job.finding(container.get(key), f"{container} cannot have {key}", at_key=True)
            continue
        for key in ("postStart", "preStop"):
            yield from _handler(job, container, hooks.get(key))
        for key in ("livenessProbe", "readinessProbe", "startupProbe"):
            part = container.get(key)
            yield from _handler(job, container, part)
            threshold, grace = part.get("successThreshold"), part.get("terminationGracePeriodSeconds")
            if key != "readinessProbe" and threshold.known_and_not_in((0, 1)):
                yield job.finding(threshold, f"successThreshold of a {key} must be 1")
            if key == "readinessProbe" and grace.given:
                yield job.finding(grace, "terminationGracePeriodSeconds does not belong to a readinessProbe")


def _handler(job: Build, container: Container, owner: BuiltValue) -> Iterator[Finding]:
    if owner.absent or owner.unknown:
        return
    given = [key for key in facts.HANDLERS if owner.get(key).given]
    if len(given) != 1:
        what = f"has {len(given)} handlers: {some_of(given)}" if given else "has no handler"
        yield job.finding(owner, f"{owner.place.name} of {container} {what}", help=f"one of {some_of(facts.HANDLERS)}")
        return
    handler = owner.get(given[0])
    port = handler.get("port")
    if given[0] == "exec" and handler.get("command").empty:
        yield job.finding(handler, "exec has no command")
    if given[0] in ("httpGet", "tcpSocket", "grpc") and not port.unknown:
        number = port.number
        problem = "must be between 1 and 65535" if number is not None and not 1 <= number <= 65535 else ""
        problem = names.port(port.text) if port.text is not None else problem
        if problem or port.absent:
            yield job.finding(port, f'port "{port}" of {owner.place.name} {problem or "is missing"}')
    for header in handler.get("httpHeaders").items():
        name = header.get("name").text or ""
        if not name.replace("-", "").isalnum() or not name.isascii():
            yield job.finding(header.get("name"), f'"{name}" is no name of an HTTP header')
    if given[0] == "sleep":
        grace = container.pods.spec.get("terminationGracePeriodSeconds").number
        seconds = handler.get("seconds")
        if seconds.number is not None and not 0 <= seconds.number <= (30 if grace is None else grace):
            yield job.finding(seconds, "a hook must not sleep longer than terminationGracePeriodSeconds")


@rule("TJ545", "dns", program="kubernetes")
def dns(job: BuiltJob) -> Iterator[Finding]:
    """The pod's DNS has no server or too many.

    dnsPolicy None needs a dnsConfig with nameservers, of which there are three at most; 32 searches of 2048 characters
    in all.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        policy, config = pods.spec.get("dnsPolicy"), pods.spec.get("dnsConfig")
        servers, searches = config.get("nameservers"), config.get("searches")
        if policy.is_("None") and not config.unknown and not servers.unknown and servers.empty:
            yield job.finding(policy, "dnsPolicy None needs nameservers in dnsConfig")
        if len(servers.items()) > 3:
            yield job.finding(servers, "dnsConfig takes three nameservers at most")
        if len(searches.items()) > 32 or len(" ".join(searches.texts() or [])) > 2048:
            yield job.finding(searches, "dnsConfig takes 32 searches and 2048 characters at most")
        for option in config.get("options").items():
            if option.get("name").empty:
                yield job.finding(option, "an option of dnsConfig has no name")


@rule("TJ548", "resource-claim", program="kubernetes")
def resource_claim(job: BuiltJob) -> Iterator[Finding]:
    """A resource claim is named twice or points nowhere, or a container changes resources as its pod forbids.

    A claim of the pod needs one of resourceClaimName and resourceClaimTemplateName, and a container claims what its
    pod has. A container that is restarted on a resize cannot be in a pod that is never restarted.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        claims = pods.spec.get("resourceClaims").items()
        for name in repeated([claim.get("name") for claim in claims]):
            yield job.finding(name, f"resource claim {name} stands twice")
        for claim in claims:
            given = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(key).given]
            if len(given) != 1:
                yield job.finding(claim, f"resource claim {claim.name} needs a claim or a template, not both")
        for part in pods.spec.find("resources.claims"):
            yield job.finding(part, f"the pod of {pods} as a whole cannot claim resources")
        listed = [claim.name for claim in claims]
        for part in (*pods.containers, *pods.init_containers):
            for name in part.find("resources.claims[].name"):
                if name.known_and_not_in((*listed,)) and not pods.spec.get("resourceClaims").unknown:
                    yield job.finding(name, f'container {part.name} claims "{name}", which its pod does not have')
    for container in job.containers:
        policies = container.get("resizePolicy").items()
        never = container.pods.spec.get("restartPolicy").is_("Never") or not container.stays
        for policy in policies:
            if policy.get("restartPolicy").is_("RestartContainer") and never:
                yield job.finding(policy.get("restartPolicy"), f"{container} cannot be restarted on a resize")
        for name in repeated([policy.get("resourceName") for policy in policies]):
            yield job.finding(name, f"{container} has two resize policies for {name}")
        rules, restart = container.get("restartPolicyRules"), container.get("restartPolicy")
        if rules.items() and restart.absent:
            yield job.finding(rules, f"restartPolicyRules of {container} need a restartPolicy")
        for item in rules.items():
            if item.get("exitCodes").absent:
                yield job.finding(item, f"a restart rule of {container} names no exitCodes")


@rule("TJ549", "unknown-priority-class", program="kubernetes")
def unknown_priority_class(job: BuiltJob) -> Iterator[Finding]:
    """The pods name a priority class that the cluster does not have.

    The pods are refused, again and again. The cluster alone knows its classes: this is checked where the settings list
    them (`priority-classes` in `[tool.trainlint.cluster]`); every cluster has system-cluster-critical and
    system-node-critical. Service accounts and runtime classes must exist as well, and are not checked.

    Source: Kubernetes 1.36, admission of pods.
    """
    known = job.job.priority_classes
    if known is None or job.runtime.field.at("spec", "podGroupPolicy", "volcano").node is not None:
        return
    for pods in job.made:
        name = pods.spec.get("priorityClassName")
        if name.text and name.text not in (*known, *HIGHEST_PRIORITIES):
            yield job.finding(name, f"the cluster has no priority class {name}", help=did_you_mean(str(name), known))


# words, numbers and names by table


def _owners(job: Build) -> Iterator[tuple[str, BuiltValue, Pods, str]]:
    """Everything that the tables speak of: kind of table, the part, its pods, and what to call it."""
    for pods in job.made:
        yield "job", pods.job, pods, str(pods)
        yield "pod", pods.spec, pods, f"the pod of {pods}"
    for container in job.containers:
        yield "container", container.value, container.pods, str(container)


@rule("TJ541", "number-out-of-range", program="kubernetes")
def number_out_of_range(job: Build) -> Iterator[Finding]:
    """A number of a Job, pod or container is out of its range.

    Deadlines, limits and delays must not be negative; ports go from 1 to 65535, users and groups from 0 to 2147483647,
    weights from 1 to 100, modes of files from 0 to 0777.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    tables = {"job": facts.JOB_RANGES, "pod": facts.POD_RANGES, "container": facts.CONTAINER_RANGES}
    for kind, owner, _, name in _owners(job):
        for path, (low, high) in tables[kind].items():
            for part in owner.find(path):
                if part.number is not None and not (low <= part.number and (high is None or part.number <= high)):
                    wanted = f"{low} or more" if high is None else f"between {low} and {high}"
                    yield job.finding(part, f"{_last(path)} {part.number} of {name} must be {wanted}")


@rule("TJ542", "unsupported-word", program="kubernetes")
def unsupported_word(job: Build) -> Iterator[Finding]:
    """A field that takes one of a few words holds another.

    Case counts: `imagePullPolicy: always` is refused.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    tables = {"job": facts.JOB_WORDS, "pod": facts.POD_WORDS, "container": facts.CONTAINER_WORDS}
    for kind, owner, _, name in _owners(job):
        for path, words in tables[kind].items():
            for part in owner.find(path):
                if part.known_and_not_in(words):
                    yield job.finding(
                        part,
                        f'{_last(path)} "{part}" of {name} is none of {some_of([word for word in words if word])}',
                        help=did_you_mean(str(part), words),
                    )


@rule("TJ543", "malformed-name", program="kubernetes")
def malformed_name(job: Build) -> Iterator[Finding]:
    """A name, address or path of a pod is malformed.

    Service accounts, priority and runtime classes have the names of objects; a hostname is a DNS label; a port's name
    has at most 15 lower-case letters, digits and dashes. Whether the object exists, the cluster alone knows.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    tables = {"pod": facts.POD_NAMES, "container": facts.CONTAINER_NAMES, "job": {}}
    for kind, owner, pods, name in _owners(job):
        for path, syntax in tables[kind].items():
            for part in owner.find(path):
                empty = not part.text and _last(path) in facts.MAY_BE_EMPTY
                problem = names.SYNTAX[syntax](part.text) if part.text is not None and not empty else ""
                if problem:
                    yield job.finding(part, f'{_last(path)} "{_short(str(part))}" of {name} {problem}')
        own = owner.get("subdomain") if kind == "pod" else owner
        named = job.jobset.at("network", "enableDNSHostnames").is_(False)
        if kind == "pod" and named and own.text:
            yield from job.malformed(own, names.label, "subdomain", str(pods))


def _last(path: str) -> str:
    return path.replace("[]", "").rpartition(".")[2]
