"""What Kubernetes says of the containers of the pods that an admitted TrainJob becomes.

Each rule looks at what the controller builds and reports at the field of the TrainJob, the patch or the runtime that
gave the value. A refused Job or pod leaves no trace on the TrainJob: only events on the JobSet or the Job tell. Rules
on a `Build` judge what a job says by itself even where its runtime is not known, those on a `BuiltJob` need the
runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps

from trainlint.findings import Finding, did_you_mean, some_of
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.build import Build, BuiltJob
from trainlint.programs.kubeflow.built_pods import Container
from trainlint.programs.kubeflow.built_value import BuiltValue, repeated
from trainlint.programs.kubeflow.facts import pods as tables
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
    given = [key for key in tables.ENV_SOURCES if source.get(key).given]
    if not given:
        yield job.finding(source, f"valueFrom of {env.name} names no source", help=f"use {some_of(tables.ENV_SOURCES)}")
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
    yield from field_ref(job, source.get("fieldRef"), tables.ENV_FIELDS)
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
    huge = text.startswith((f"limits.{tables.HUGEPAGES}", f"requests.{tables.HUGEPAGES}"))
    if text not in tables.RESOURCE_FIELDS and not huge:
        yield job.finding(
            resource,
            f'resource "{text}" of a container cannot be shown',
            help=did_you_mean(text, tables.RESOURCE_FIELDS) or f"one of {some_of(tables.RESOURCE_FIELDS)}",
        )
    divisor = ref.get("divisor")
    allowed = tables.DIVISORS["cpu" if text.endswith(".cpu") else "other"]
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
    return "/" not in name or tables.NATIVE_DOMAIN in name


def _is_extended(name: str) -> bool:
    return not _is_native(name) or name.startswith(tables.HUGEPAGES)


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
        huge = [part for name, part in listed if name.startswith(tables.HUGEPAGES)]
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
    if name.startswith(tables.HUGEPAGES):
        size = parse_quantity(name.removeprefix(tables.HUGEPAGES))
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
                    near = [*tables.CONTAINER_RESOURCES, "nvidia.com/gpu", "amd.com/gpu"]
                    yield job.finding(
                        part, f'{owner}: resource "{name}" {problem}', help=did_you_mean(name, near), at_key=True
                    )


def _counts_for_pods(name: str) -> bool:
    return name in tables.POD_RESOURCES or name.startswith(tables.HUGEPAGES)


def _is_standard(name: str) -> bool:
    return name in tables.CONTAINER_RESOURCES or name.startswith(tables.HUGEPAGES)


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


# ports and probes


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
    given = [key for key in tables.HANDLERS if owner.get(key).given]
    if len(given) != 1:
        what = f"has {len(given)} handlers: {some_of(given)}" if given else "has no handler"
        yield job.finding(owner, f"{owner.place.name} of {container} {what}", help=f"one of {some_of(tables.HANDLERS)}")
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
