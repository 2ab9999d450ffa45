"""Kubernetes' checks of the containers in the pods that a TrainJob becomes.

Each rule looks at what the controller builds and reports at the field of the TrainJob, the patch or the runtime that
gave the value. A refused Job or pod leaves no trace on the TrainJob, only events on the JobSet or the Job. Rules on a
`Build` check a job's own values even where its runtime is not known, those on a `BuiltJob` need the runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps

from trainlint.findings import Finding, Fix, Stage, did_you_mean, one_of, some_of
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.build import Build, BuiltJob
from trainlint.programs.kubeflow.built_pods import Container
from trainlint.programs.kubeflow.built_value import BuiltValue, repeated
from trainlint.programs.kubeflow.facts import pods as tables
from trainlint.programs.kubeflow.facts.admission import FLUX_INSTALLER
from trainlint.programs.kubeflow.facts.jobset import COPIED_ENV_SOURCES
from trainlint.programs.kubeflow.quantities import parse_quantity, whole
from trainlint.reading import mending
from trainlint.reading.document import Scalar, target_of
from trainlint.reading.values import Field
from trainlint.rule import rule

# images and names


@rule("TJ520", "missing-image", stage=Stage.CREATE, program="kubernetes")
def missing_image(job: BuiltJob) -> Iterator[Finding]:
    """A container has no image.

    Often an entry of runtimePatches names a container that the runtime's job does not have: it is added, with nothing
    but what the patch holds. The Job is refused; nothing on the TrainJob says so.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        if container.get("image").empty:
            known = [part.name for part in (*container.pods.containers, *container.pods.init_containers)]
            hint = did_you_mean(container.value.name, [name for name in known if name != container.value.name])
            yield job.finding(
                container.get("image"),
                f"{container} has no image",
                help=hint or "set its image, or patch a container that the runtime has",
            )


@rule("TJ521", "padded-image", stage=Stage.CREATE, program="kubernetes")
def padded_image(job: Build) -> Iterator[Finding]:
    """An image starts or ends with white space.

    The usual cause is a YAML block scalar (`image: |`), which ends in a newline. The Job is accepted, and its pods are
    refused again and again. Other spaces, doubled colons and upper case are accepted, and fail when the image is
    pulled.

    Source: Kubernetes 1.36, validation of pods.
    """
    for container in job.containers:
        image = container.get("image").text
        if image and image != image.strip():
            yield job.finding(
                container.get("image"),
                f"the image of {container} starts or ends with white space",
                help="write the image on the line of its key",
                fix=mending.trimmed(container.get("image").place),
            )


@rule("TJ539", "container-name", stage=Stage.CREATE, program="kubernetes")
def container_name(job: BuiltJob) -> Iterator[Finding]:
    """A container's name is malformed, or another container of the pod has it.

    Names are DNS labels: lower-case letters, digits and dashes, at most 63. Init containers and containers must not
    share a name.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        named = [part.get("name") for part in (*pods.containers, *pods.init_containers)]
        for name in named:
            yield from job.malformed(name, names.label, "container name", str(pods))
        flux = job.policy.get("flux").given
        for name in repeated(named):
            if flux and name.text == FLUX_INSTALLER:
                continue  # TJ152
            yield job.finding(name, f"{pods} has two containers called {name}", help="rename one of them")


# environment


@rule("TJ522", "env-name", stage=Stage.CREATE, program="kubernetes")
def env_name(job: Build) -> Iterator[Finding]:
    """The name of an environment variable is empty or has characters that every server refuses.

    Servers from 1.32 on accept any printable ASCII but `=`; older ones accept letters, digits, underscores, dashes and
    dots, with no digit first. The same holds for the prefix of an `envFrom`.

    Source: Kubernetes 1.30 to 1.36, validation of Jobs; gate RelaxedEnvironmentVariableValidation.
    """
    for container in job.containers:
        named = [env.get("name") for env in container.get("env").items()]
        for name in named:
            yield from job.malformed(name, names.env, "environment variable name")
        for name in (*named, *container.value.find("envFrom[].prefix")):
            if name.text and not names.env(name.text):
                yield from job.malformed(name, names.strict_env, "environment variable name", within="..1.31")


@rule("TJ523", "env-source", stage=Stage.CREATE, program="kubernetes")
def env_source(job: Build) -> Iterator[Finding]:
    """`valueFrom` has no source, several, or an invalid one.

    It must have exactly one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef and fileKeyRef; the Trainer
    does not copy a fileKeyRef from the env of a trainer or initializer, which leaves no source. Names and keys of
    Secrets and ConfigMaps must be well formed, and only some fields of a pod can be used.

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
                yield job.finding(name, f'fileKeyRef needs an emptyDir volume, and the pod has none called "{name}"')


def _env_source(job: Build, env: BuiltValue, source: BuiltValue) -> Iterator[Finding]:
    given = [key for key in tables.ENV_SOURCES if source.get(key).given]
    if not given:
        message, help = f"valueFrom of {env.name} has no source", f"set {one_of(COPIED_ENV_SOURCES)}"
        lost = source.place.get("fileKeyRef")
        if lost.is_absent:
            yield job.finding(source, message, help=help)
        else:
            message += ": the Trainer does not copy fileKeyRef"
            yield job.finding(BuiltValue(None, lost, source.owner), message, help=help, at_key=True)
    elif len(given) > 1:
        yield job.finding(
            source, f"valueFrom of {env.name} has {len(given)} sources: {some_of(given)}", help="keep one"
        )
    elif not env.get("value").empty:
        yield job.finding(source, f"{env.name} has both a value and valueFrom", help="keep one of them")
    for key in ("configMapKeyRef", "secretKeyRef"):
        yield from _key_ref(job, source.get(key), "name", names.subdomain)
        yield from _key_ref(job, source.get(key), "key", names.config_key)
    if given == ["fileKeyRef"]:
        yield job.finding(source, f"valueFrom of {env.name} has no source that the server knows", within="..1.34")
    yield from _key_ref(job, source.get("fileKeyRef"), "key", names.env)
    yield from _key_ref(job, source.get("fileKeyRef"), "volumeName", names.label)
    file = source.get("fileKeyRef")
    if file.given and file.get("path").empty:
        yield job.finding(file.get("path"), f"the fileKeyRef of {env.name} has no path", within="1.35..")
    yield from _key_ref(job, file, "path", names.no_way_up)
    yield from field_ref(job, source.get("fieldRef"), tables.ENV_FIELDS)
    yield from resource_ref(job, source.get("resourceFieldRef"))


def _key_ref(job: Build, ref: BuiltValue, key: str, check: names.Check) -> Iterator[Finding]:
    yield from job.malformed(ref.get(key), check, key, "the reference")


def field_ref(job: Build, ref: BuiltValue, allowed: tuple[str, ...]) -> Iterator[Finding]:
    """A field of the pod that cannot be used here."""
    path, version = ref.get("fieldPath"), ref.get("apiVersion")
    if version.known_and_not_in(("v1",)):
        yield job.finding(version, f"apiVersion must be v1, not {version}", help="remove apiVersion")
    if ref.absent or path.text is None:
        return
    owner, bracket, rest = path.text.partition("['")
    if bracket and rest.endswith("']"):
        problem = names.key(rest[:-2].lower() if owner == "metadata.annotations" else rest[:-2])
        if owner not in ("metadata.annotations", "metadata.labels"):
            yield job.finding(path, f'field "{path}" cannot be used: only labels and annotations have keys')
        elif problem:
            yield job.finding(path, f"the key in {path} {problem}")
    elif path.text not in allowed and not (path.is_("spec.host") and "spec.nodeName" in allowed):
        yield job.finding(
            path,
            f'field "{path}" of a pod cannot be used here',
            help=_spelled(str(path), allowed) or f"use {one_of(allowed)}",
            fix=mending.respelled(path.place, allowed),
        )


def _spelled(word: str, known: tuple[str, ...]) -> str:
    """Help for a slip; another field of the pod is never meant."""
    meant = mending.meant(word, known)
    return f'did you mean "{meant}"?' if meant else ""


def resource_ref(job: Build, ref: BuiltValue) -> Iterator[Finding]:
    """An amount of resources that cannot be used."""
    resource = ref.get("resource")
    text = resource.text
    if text is None:
        return
    huge = text.startswith((f"limits.{tables.HUGEPAGES}", f"requests.{tables.HUGEPAGES}"))
    if text not in tables.RESOURCE_FIELDS and not huge:
        yield job.finding(
            resource,
            f'resource "{text}" of a container cannot be used',
            help=_spelled(text, tables.RESOURCE_FIELDS) or f"use {one_of(tables.RESOURCE_FIELDS)}",
            fix=mending.respelled(resource.place, tables.RESOURCE_FIELDS),
        )
    divisor = ref.get("divisor")
    allowed = tables.DIVISORS["cpu" if text.endswith(".cpu") else "other"]
    amounts = [0, *(parse_quantity(word) for word in allowed)]
    if divisor.amount is not None and divisor.amount not in amounts:
        yield job.finding(divisor, f"{text} cannot be divided by {divisor}", help=f"use {one_of(allowed)}")


@rule("TJ524", "env-from", stage=Stage.CREATE, program="kubernetes")
def env_from(job: Build) -> Iterator[Finding]:
    """An `envFrom` entry, or an initializer's secretRef, has no source or a malformed name.

    An entry must have exactly one of configMapRef and secretRef, with the name of an object.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        for entry in container.get("envFrom").items():
            refs = [entry.get(key) for key in ("configMapRef", "secretRef") if entry.get(key).given]
            if entry.unknown:
                continue
            if len(refs) != 1:
                what = "both configMapRef and secretRef" if refs else "neither configMapRef nor secretRef"
                yield job.finding(entry, f"an entry of envFrom in {container} has {what}", help="set one of them")
            for ref in refs:
                yield from _key_ref(job, ref, "name", names.subdomain)
            if entry.get("prefix").text:
                yield from job.malformed(entry.get("prefix"), names.env, "prefix")


# resources


def _once(check: Callable[[Build], Iterator[Finding]]) -> Callable[[Build], Iterator[Finding]]:
    """One finding for each place in the job, whose resources may go into both the launcher and the nodes of MPI."""

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
        if container.get("resources").given:
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


@rule("TJ525", "extended-resource-limit", stage=Stage.CREATE, program="kubernetes")
@_once
def extended_resource_limit(job: Build) -> Iterator[Finding]:
    """A GPU or another extended resource is requested without a limit.

    A request for an extended resource (nvidia.com/gpu, amd.com/gpu, hugepages) needs a limit of the same amount; a
    limit without a request is enough. What counts are the resources after resourcesPerNode was merged into the
    runtime's. The Job is refused; with torchtune only after both downloads are done.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for owner, resources in _resources(job) if isinstance(job, BuiltJob) else ():
        limits = resources.get("limits")
        for name, amount in resources.get("requests").entries():
            wrong = owner.startswith("the pod") and not _counts_for_pods(name)  # TJ528
            if _is_extended(name) and not limits.unknown and not limits.get(name).given and not wrong:
                requests = amount.place.parent
                around = requests.parent if requests else None
                place = around.get("limits").get(name) if around else amount.place
                yield job.finding(
                    BuiltValue(None, place, amount.owner),
                    f"{owner} requests {amount} {name} without a limit",
                    help=f"write {name}: {amount} under limits instead of requests",
                    fix=_as_limits(requests, around),
                )


def _as_limits(requests: Field | None, around: Field | None) -> Fix | None:
    """The requests become the limits, where they hold nothing but what needs a limit."""
    if requests is None or around is None or not all(_is_extended(entry.name) for entry in requests.entries()):
        return None
    return mending.renamed(requests, "limits")


@rule("TJ526", "request-above-limit", stage=Stage.CREATE, program="kubernetes")
@_once
def request_above_limit(job: Build) -> Iterator[Finding]:
    """A request is above its limit, or differs from it where it must be equal.

    Requests of CPUs and memory must not exceed their limits; those of extended resources such as GPUs must be equal to
    them. What counts are the resources after resourcesPerNode was merged into the runtime's: a request of one GPU meets
    the limit of two that the shipped torchtune runtimes have.

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
                # the job's own amount is the one to fix, wherever the other is
                part = limit if limit.owner is not request.owner and limit.place.document is _document(job) else request
                yield job.finding(
                    part,
                    f"{owner}: request {request} of {name} {what} its limit {limit}",
                    help="set both to the same amount, or only the limit" if differs else "raise the limit",
                )


def _document(job: Build) -> object:
    return job.job.field.document


@rule("TJ527", "resource-amount", stage=Stage.CREATE, program="kubernetes")
@_once
def resource_amount(job: Build) -> Iterator[Finding]:
    """The amount of a resource is negative, not whole, or no multiple of the page size.

    Extended resources such as GPUs come in whole numbers: 1000m is 1, and 500m is refused. Huge pages come in multiples
    of their size, and only beside CPUs or memory.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for owner, resources in _resources(job):
        listed = [entry for kind in ("limits", "requests") for entry in resources.get(kind).entries()]
        for name, part in listed:
            problem = _amount_problem(name, part)
            if problem:
                help = f"write a multiple of {name.removeprefix(tables.HUGEPAGES)}" if "multiple" in problem else ""
                yield job.finding(part, f"{owner}: {part} of {name} {problem}", help=help)
        plain = {name for name, _ in listed} & {"cpu", "memory"}
        huge = [part for name, part in listed if name.startswith(tables.HUGEPAGES)]
        unknown = resources.get("limits").unknown or resources.get("requests").unknown
        if huge and not plain and not unknown and isinstance(job, BuiltJob):
            yield job.finding(huge[0], f"{owner} has huge pages without cpu or memory", help="add cpu or memory")


def _amount_problem(name: str, part: BuiltValue) -> str:
    amount = part.amount
    if amount is None:
        return ""
    if amount < 0:
        return "is negative"
    if not _is_native(name) and not name.startswith("requests.") and (amount * 1000) % 1000:
        return "is not a whole number"
    if name.startswith(tables.HUGEPAGES):
        size = parse_quantity(name.removeprefix(tables.HUGEPAGES))
        if size is None or size <= 0 or size.denominator != 1 or whole(amount) % whole(size):
            return "is not a multiple of the page size"
    return ""


_RESOURCES_MEANT = {
    **dict.fromkeys(("gpu", "gpus", "nvidia-gpu"), "write the domain of its driver, too: nvidia.com/gpu, amd.com/gpu"),
    **dict.fromkeys(("storage", "disk"), "write ephemeral-storage"),
    **dict.fromkeys(("cpus", "vcpu"), "write cpu"),
    **dict.fromkeys(("mem", "ram"), "write memory"),
}
"""What is probably meant by a word that is no resource."""


@rule("TJ528", "resource-name", stage=Stage.CREATE, program="kubernetes")
@_once
def resource_name(job: Build) -> Iterator[Finding]:
    """The name of a resource is unknown or malformed.

    Without a domain there are only cpu, memory, ephemeral-storage and hugepages-SIZE, not `gpu`, `storage` or `pods`.
    Any other resource needs a lower-case domain and a name of at most 63 characters, such as nvidia.com/gpu.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for owner, resources in _resources(job):
        for kind in ("limits", "requests"):
            for name, part in resources.get(kind).entries():
                if part.place.entry is not None and not isinstance(target_of(part.place.entry.key), Scalar):
                    continue  # Go's reader refuses such a key, and with it the document.
                problem = names.key(name)
                if not problem and "/" not in name and not _is_standard(name):
                    problem = "is unknown"
                elif not problem and not _is_native(name):
                    problem = "must not start with requests." if name.startswith("requests.") else ""
                    problem = problem or ("has a domain that is too long" if names.key(f"requests.{name}") else "")
                help = ""
                if not problem and owner.startswith("the pod") and not _counts_for_pods(name):
                    problem, help = "can be set for containers, not for a pod", "set it for the container"
                if problem:
                    help = help or _RESOURCES_MEANT.get(name, "")
                    help = help or did_you_mean(name, [*tables.CONTAINER_RESOURCES, "nvidia.com/gpu", "amd.com/gpu"])
                    yield job.finding(part, f'{owner}: resource "{name}" {problem}', help=help, at_key=True)


def _counts_for_pods(name: str) -> bool:
    return name in tables.POD_RESOURCES or name.startswith(tables.HUGEPAGES)


def _is_standard(name: str) -> bool:
    return name in tables.CONTAINER_RESOURCES or name.startswith(tables.HUGEPAGES)


@rule("TJ548", "resource-claim", stage=Stage.CREATE, program="kubernetes")
def resource_claim(job: BuiltJob) -> Iterator[Finding]:
    """A resource claim or a resize policy is invalid.

    A claim of the pod needs one of resourceClaimName and resourceClaimTemplateName, and its containers use claims of
    the pod. A container that restarts on a resize cannot be in a pod that is never restarted.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        claims = pods.spec.get("resourceClaims").items()
        for claim in claims:
            given = [key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(key).given]
            if len(given) != 1:
                yield job.finding(
                    claim, f"resource claim {claim.name} needs either resourceClaimName or resourceClaimTemplateName"
                )
        for part in pods.spec.find("resources.claims"):
            yield job.finding(part, f"the pod of {pods} cannot claim resources: containers do")
        listed = [claim.name for claim in claims]
        for part in (*pods.containers, *pods.init_containers):
            for name in part.find("resources.claims[].name"):
                if name.known_and_not_in(listed) and not pods.spec.get("resourceClaims").unknown:
                    yield job.finding(
                        name, f'container {part.name} uses the resource claim "{name}", which its pod does not have'
                    )
    for container in job.containers:
        policies = container.get("resizePolicy").items()
        never = container.pods.spec.get("restartPolicy").is_("Never")
        for policy in policies:
            if policy.get("restartPolicy").is_("RestartContainer") and (never or not container.stays):
                yield job.finding(
                    policy.get("restartPolicy"),
                    f"{container} cannot have restartPolicy: RestartContainer in its resizePolicy",
                    within="1.33.." if never else "1.36..",
                )
        for name in repeated([policy.get("resourceName") for policy in policies]):
            yield job.finding(name, f"{container} has two resize policies for {name}")


@rule("TJ550", "container-restart", stage=Stage.CREATE, program="kubernetes")
def container_restart(job: BuiltJob) -> Iterator[Finding]:
    """A container's restartPolicy or its restart rules are invalid, or the server takes neither.

    Up to Kubernetes 1.33 only an init container has a restartPolicy, which is Always; 1.34 drops any other, and the
    rules. Rules need a restartPolicy beside them; RestartAllContainers, and rules of an init container that is always
    restarted, need 1.36.

    Source: Kubernetes 1.30 to 1.36, validation of Jobs.
    """
    for container in job.containers:
        rules, restart = container.get("restartPolicyRules"), container.get("restartPolicy")
        if restart.known_and_not_in(tables.RESTART_POLICIES):
            wanted = one_of(tables.RESTART_POLICIES)
            message = f'restartPolicy of {container} must be {wanted}, not "{restart}"'
            hint = did_you_mean(str(restart), tables.RESTART_POLICIES)
            yield job.finding(restart, message, help=hint, within="..1.33,1.35..")
        elif restart.known is not None and not (container.init and restart.is_("Always")):
            yield job.finding(restart, f"{container} cannot have restartPolicy: {restart}", within="..1.33")
        if rules.items() and restart.absent:
            yield job.finding(rules, f"restartPolicyRules of {container} need its restartPolicy")
        if rules.items() and container.init and restart.is_("Always"):
            yield job.finding(rules, f"{container} is always restarted and cannot have rules", within="1.35")
        if len(rules.items()) > tables.MAX_RESTART_RULES:
            yield job.finding(rules, f"{container} has more than {tables.MAX_RESTART_RULES} restart rules")
        for item in rules.items():
            if item.get("exitCodes").absent:
                yield job.finding(item, f"a restart rule of {container} has no exitCodes")
            if item.get("action").is_("RestartAllContainers"):
                yield job.finding(item.get("action"), "action RestartAllContainers is unknown", within="1.35")


# ports and probes


@rule("TJ540", "container-port", stage=Stage.CREATE, program="kubernetes")
def container_port(job: BuiltJob) -> Iterator[Finding]:
    """Two ports of a container share a name, or two containers a port of the host.

    A name means one port in Services and probes, and a host has each port once for each protocol and address. Give each
    port a name and a hostPort of its own, or leave hostPort out.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        taken: set[tuple[object, ...]] = set()
        for container in [*pods.containers, *pods.init_containers]:
            numbers = [port.get("containerPort").number for port in container.get("ports").items()]
            for name in repeated([port.get("name") for port in container.get("ports").items()]):
                if name.text and len(set(numbers)) == len(numbers):  # TJ507 speaks of equal numbers.
                    yield job.finding(name, f"container {container.name} has two ports called {name}")
        for container in pods.containers:
            for port in container.get("ports").items():
                host = port.get("hostPort")
                where = (port.get("protocol").text or "TCP", port.get("hostIP").text, host.number)
                if host.number and where in taken:
                    yield job.finding(host, f"two containers of {pods} use port {host.number} of the host")
                taken.add(where)


@rule("TJ544", "probe", stage=Stage.CREATE, program="kubernetes")
def probe(job: BuiltJob) -> Iterator[Finding]:
    """A probe or a lifecycle hook has no handler, several, or an invalid one.

    A probe has one of exec, httpGet, tcpSocket and grpc, a hook one of exec, httpGet, tcpSocket and sleep. Only a
    readinessProbe may have another successThreshold than 1, and it has no terminationGracePeriodSeconds. Init
    containers have neither probes nor hooks unless they are always restarted.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        hooks = container.get("lifecycle")
        if not container.stays:
            for key in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(key).given:
                    yield job.finding(
                        container.get(key), f"{container} cannot have {key}", help="remove it", at_key=True
                    )
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
                yield job.finding(grace, "a readinessProbe cannot have terminationGracePeriodSeconds")


def _handler(job: Build, container: Container, owner: BuiltValue) -> Iterator[Finding]:
    if owner.absent or owner.unknown:
        return
    given = [key for key in tables.HANDLERS if owner.get(key).given]
    if len(given) != 1:
        other = "sleep" if owner.place.name.endswith("Probe") else "grpc"
        handlers = [key for key in tables.HANDLERS if key != other]
        what = f"has {len(given)} handlers: {some_of(given)}" if given else "has no handler"
        yield job.finding(owner, f"{owner.place.name} of {container} {what}", help=f"set {one_of(handlers)}")
        return
    handler = owner.get(given[0])
    port = handler.get("port")
    if given[0] == "exec" and handler.get("command").empty:
        yield job.finding(handler, "exec has no command")
    if given[0] in ("httpGet", "tcpSocket", "grpc") and not port.unknown:
        number = port.number
        problem = "must be between 1 and 65535" if number is not None and not 1 <= number <= 65535 else ""
        problem = names.port(port.text) if port.text is not None else problem
        if problem:
            yield job.finding(port, f'port "{port}" of {owner.place.name} {problem}')
    for header in handler.get("httpHeaders").items():
        name = header.get("name").text or ""
        if not name.replace("-", "").isalnum() or not name.isascii():
            yield job.finding(
                header.get("name"),
                f'the name of an HTTP header must have only letters, digits and dashes, not "{name}"',
            )
    if given[0] == "sleep":
        grace = container.pods.spec.get("terminationGracePeriodSeconds").number
        seconds = handler.get("seconds")
        if seconds.is_(0):
            yield job.finding(seconds, "a hook must sleep for a second or longer", within="..1.32")
        if seconds.number is not None and not 0 <= seconds.number <= (30 if grace is None else grace):
            yield job.finding(seconds, "a hook must not sleep longer than terminationGracePeriodSeconds")
