"""Kubernetes' checks of the pods that a TrainJob becomes as a whole, and of their words, numbers and names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlint.findings import Finding, Stage, did_you_mean, one_of, shortened
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.build import Build, BuiltJob
from trainlint.programs.kubeflow.built_pods import Pods
from trainlint.programs.kubeflow.built_value import BuiltValue, repeated
from trainlint.programs.kubeflow.facts import pods as tables
from trainlint.programs.kubeflow.quantities import Amount
from trainlint.rule import rule

# security and systems


@rule("TJ538", "security-context", stage=Stage.CREATE, program="kubernetes")
def security_context(job: Build) -> Iterator[Finding]:
    """The fields of a security context contradict each other.

    A privileged container cannot forbid privilege escalation; a Localhost profile needs a path, and other types take no
    path; an unmasked /proc needs hostUsers: false. runAsNonRoot beside user 0 is accepted, and the container does not
    start.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for container in job.containers:
        context = container.get("securityContext")
        if context.absent:
            continue
        yield from _profiles(job, context)
        for part in context.find("windowsOptions.runAsUserName"):
            if part.text is not None and not re.fullmatch(
                r"([^\\]*\\)?[^\"/\\:;|=,+*?<>@\[\]\x00-\x1f]{1,104}", part.text
            ):
                yield job.finding(part, f'runAsUserName "{part}" is not the name of a Windows user')
        escalation = context.get("allowPrivilegeEscalation")
        if escalation.is_(False) and context.get("privileged").is_(True):
            message = f"{container} is privileged and forbids privilege escalation"
            yield job.finding(escalation, message, help="remove allowPrivilegeEscalation, or privileged")
        if escalation.is_(False) and "CAP_SYS_ADMIN" in (context.at("capabilities", "add").texts() or []):
            message = f"{container} adds CAP_SYS_ADMIN and forbids privilege escalation"
            yield job.finding(escalation, message, help="remove allowPrivilegeEscalation, or the capability")
        unmasked = context.get("procMount")
        if unmasked.is_("Unmasked") and not container.pods.spec.get("hostUsers").is_(False):
            yield job.finding(unmasked, "procMount: Unmasked needs hostUsers: false")
    for pods in job.made:
        context = pods.spec.get("securityContext")
        if context.absent:
            continue
        yield from _profiles(job, context)
        for name in repeated([item.get("name") for item in context.get("sysctls").items()]):
            yield job.finding(name, f"{pods} sets sysctl {name} twice")


def _profiles(job: Build, context: BuiltValue) -> Iterator[Finding]:
    for kind in ("seccompProfile", "appArmorProfile"):
        profile = context.get(kind)
        local, path = profile.get("type"), profile.get("localhostProfile")
        if local.is_("Localhost") and path.absent:
            yield job.finding(path, f"{kind} of type Localhost needs a localhostProfile")
        elif local.known_and_not_in(("Localhost",)) and path.given:
            yield job.finding(path, f"{kind} of type {local} cannot have a localhostProfile")
        elif kind == "appArmorProfile" and path.text is not None and (not path.text or path.text != path.text.strip()):
            yield job.finding(path, "localhostProfile must be a name without white space around it")


@rule("TJ551", "app-armor-annotation", stage=Stage.CREATE, program="kubernetes")
def app_armor_annotation(job: BuiltJob) -> Iterator[Finding]:
    """An annotation names an AppArmor profile that cannot be, or a container that the pod does not have.

    The annotation is called container.apparmor.security.beta.kubernetes.io/CONTAINER; its value is runtime/default,
    unconfined, or localhost/ and a name. appArmorProfile in a securityContext is the newer form.

    Source: Kubernetes 1.30 to 1.36, validation of Jobs.
    """
    for pods in job.made:
        known = [container.name for container in (*pods.containers, *pods.init_containers)]
        for key, value in pods.template.at("metadata", "annotations").entries():
            container, profile = key.removeprefix(tables.APP_ARMOR), value.text
            if container == key or profile is None:
                continue
            if container not in known:
                hint = did_you_mean(container, known)
                yield job.finding(value, f'{pods} has no container "{container}"', help=hint, at_key=True)
            if profile and profile not in tables.APP_ARMOR_PROFILES and not profile.startswith(tables.APP_ARMOR_LOCAL):
                wanted = one_of((*tables.APP_ARMOR_PROFILES, f"{tables.APP_ARMOR_LOCAL}NAME"))
                yield job.finding(value, f'"{profile}" is not an AppArmor profile', help=f"write {wanted}")


@rule("TJ552", "pod-resources", stage=Stage.CREATE, program="kubernetes")
def pod_resources(job: BuiltJob) -> Iterator[Finding]:
    """The resources of a pod as a whole are less than its containers ask for.

    A request of the pod covers those of its containers together, a limit that of each of them, and one of huge pages
    those of all together. A container without a request asks for its limit.

    Source: Kubernetes 1.34 to 1.36, validation of Jobs and pods.
    """
    for pods in job.made:
        requests, limits = (pods.spec.at("resources", kind) for kind in ("requests", "limits"))
        for name, request in requests.entries():
            asked = _asked(pods, name, ("requests", "limits"))
            if request.amount is not None and asked is not None and asked > request.amount:
                yield job.finding(request, f"{pods} requests {request} of {name}, less than its containers together")
        for name, limit in limits.entries():
            if limit.amount is None:
                continue
            huge = name.startswith(tables.HUGEPAGES)
            together = _asked(pods, name, ("limits",) if huge else ("requests", "limits"))
            if together is not None and together > limit.amount and (huge or requests.get(name).absent):
                yield job.finding(limit, f"the limit {limit} of {name} of {pods} is less than its containers ask for")
            for container in (*pods.containers, *pods.init_containers) if not huge else ():
                own = container.at("resources", "limits").get(name)
                if own.amount is not None and own.amount > limit.amount:
                    message = f"limit {own} of {name} of container {container.name} is above that of its pod, {limit}"
                    yield job.finding(own, message, within="1.34..")


def _asked(pods: Pods, name: str, kinds: tuple[str, ...]) -> Amount | None:
    """The amount of a resource that the containers of a pod need together; None where it is not known.

    An init container runs beside the restarted ones before it, so the larger need of both phases counts.
    """
    beside: Amount = 0
    peak: Amount = 0
    for container in pods.init_containers:
        amount = _amount(container, name, kinds)
        if amount is None:
            return None
        if container.get("restartPolicy").is_("Always"):
            beside += amount
            peak = max(peak, beside)
        else:
            peak = max(peak, beside + amount)
    for container in pods.containers:
        amount = _amount(container, name, kinds)
        if amount is None:
            return None
        beside += amount
    return max(beside, peak)


def _amount(container: BuiltValue, name: str, kinds: tuple[str, ...]) -> Amount | None:
    for kind in kinds:
        value = container.at("resources", kind).get(name)
        if value.given:
            return value.amount
    return 0


@rule("TJ546", "pod-contradiction", stage=Stage.CREATE, program="kubernetes")
def pod_contradiction(job: BuiltJob) -> Iterator[Finding]:
    """Two fields of a pod exclude each other, or a field cannot be set on the pods of a Job.

    shareProcessNamespace excludes hostPID; hostUsers: false excludes hostPID, hostIPC and hostNetwork; hostnameOverride
    excludes hostNetwork and setHostnameAsFQDN; hostNetwork needs host ports equal to the container's. Ephemeral
    containers can only be added to a running pod.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        spec = pods.spec
        network = spec.get("hostNetwork")
        if spec.get("ephemeralContainers").items():
            yield job.finding(spec.get("ephemeralContainers"), f"{pods} cannot have ephemeral containers")
        if spec.get("shareProcessNamespace").flag and spec.get("hostPID").flag:
            message, other = "shareProcessNamespace and hostPID exclude each other", spec.get("hostPID")
            yield job.finding(spec.get("shareProcessNamespace"), message, related=other.place.as_other_half)
        if spec.get("hostUsers").is_(False):
            for key in ("hostPID", "hostIPC", "hostNetwork"):
                if spec.get(key).flag:
                    message, other = f"{key} and hostUsers: false exclude each other", spec.get("hostUsers")
                    yield job.finding(spec.get(key), message, within="1.33..", related=other.place.as_other_half)
            for container in (*pods.containers, *pods.init_containers):
                for part in container.find("volumeDevices"):
                    message = f"volumeDevices of container {container.name} and hostUsers: false exclude each other"
                    other = spec.get("hostUsers")
                    yield job.finding(part, message, within="1.34..", related=other.place.as_other_half)
        override = spec.get("hostnameOverride")
        if override.given:
            for key in ("hostNetwork", "setHostnameAsFQDN"):
                if spec.get(key).flag:
                    message, other = f"hostnameOverride and {key} exclude each other", spec.get(key)
                    yield job.finding(override, message, related=other.place.as_other_half)
            if override.text and len(override.text) > 64:
                yield job.finding(override, "hostnameOverride must not be longer than 64 characters")
        for container in pods.containers if network.flag else ():
            for port in container.get("ports").items():
                host, own = port.get("hostPort"), port.get("containerPort")
                if host.number and own.number is not None and host.number != own.number:
                    yield job.finding(host, f"hostPort must be {own.number}, the containerPort, with hostNetwork")


@rule("TJ547", "windows-pod", stage=Stage.CREATE, program="kubernetes")
def windows_pod(job: BuiltJob) -> Iterator[Finding]:
    """A pod has fields of another operating system.

    With `os.name: windows` a pod must not set users, groups, profiles, capabilities or the host's namespaces; with
    `os.name: linux` no windowsOptions.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        system = pods.spec.at("os", "name").text
        containers = [*pods.containers, *pods.init_containers]
        if system == "windows":
            found = [part for path in tables.WINDOWS_POD_FIELDS for part in pods.spec.find(path)]
            found = [part for part in found if part.content or part.place.name not in tables.WINDOWS_SWITCHES]
            found += [p for path in tables.WINDOWS_CONTAINER_FIELDS for c in containers for p in c.find(path)]
        elif system == "linux":
            found = [p for owner in (pods.spec, *containers) for p in owner.find("securityContext.windowsOptions")]
        else:
            continue
        for part in found:
            yield job.finding(part, f"{part.place.name} cannot be set with os.name: {system}", help="remove it")


@rule("TJ545", "dns", stage=Stage.CREATE, program="kubernetes")
def dns(job: BuiltJob) -> Iterator[Finding]:
    """The pod's DNS has no name server, or too many.

    dnsPolicy None needs a dnsConfig with nameservers. There can be three nameservers, and 32 searches of 2048
    characters in all.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        policy, config = pods.spec.get("dnsPolicy"), pods.spec.get("dnsConfig")
        servers, searches = config.get("nameservers"), config.get("searches")
        if policy.is_("None") and not config.unknown and not servers.unknown and servers.empty:
            yield job.finding(policy, "dnsPolicy None needs nameservers in dnsConfig")
        if len(servers.items()) > 3:
            yield job.finding(servers, "dnsConfig can have three nameservers at most")
        if len(searches.items()) > 32 or len(" ".join(searches.texts() or [])) > 2048:
            yield job.finding(searches, "dnsConfig can have 32 searches of 2048 characters in all at most")
        for part in searches.items():
            if not names.search(part.text or "") and names.subdomain((part.text or "").removesuffix(".")):
                message = f'search "{part}" must have only lower-case letters, digits and inner dashes and dots'
                yield job.finding(part, message, within="..1.32")
        for part in (*servers.items(), *pods.spec.find("hostAliases[].ip")):
            if part.text and not names.ip(part.text):
                yield from job.malformed(part, names.canonical_ip, "address", within="1.36..")
        for option in config.get("options").items():
            if option.get("name").empty:
                yield job.finding(option, "an option of dnsConfig has no name")


# words, numbers and names by table


def _owners(job: Build) -> Iterator[tuple[str, BuiltValue, Pods, str]]:
    """Everything that has a table: its kind, the value, its pods, and what to call it."""
    for pods in job.made:
        yield "job", pods.job, pods, str(pods)
        yield "pod", pods.spec, pods, f"the pod of {pods}"
    for container in job.containers:
        yield "container", container.value, container.pods, str(container)


@rule("TJ541", "number-out-of-range", stage=Stage.CREATE, program="kubernetes", follows=("TJ516",))
def number_out_of_range(job: Build) -> Iterator[Finding]:
    """A number of a Job, pod or container is out of its range.

    Deadlines, limits and delays must not be negative; ports go from 1 to 65535, users and groups from 0 to 2147483647,
    weights from 1 to 100, modes of files from 0 to 0777.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    ranges = {"job": tables.JOB_RANGES, "pod": tables.POD_RANGES, "container": tables.CONTAINER_RANGES}
    for kind, owner, _, name in _owners(job):
        for path, (low, high), part in owner.rows(ranges[kind]):
            if part.number is not None and not (low <= part.number and (high is None or part.number <= high)):
                wanted = f"{low} or more" if high is None else f"between {low} and {high}"
                yield job.finding(part, f"{_last(path)} of {name} must be {wanted}, not {part.number}")


@rule("TJ542", "unsupported-word", stage=Stage.CREATE, program="kubernetes")
def unsupported_word(job: Build) -> Iterator[Finding]:
    """A field that takes one of a few words has another.

    Case counts: `imagePullPolicy: always` is refused.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    vocabulary = {"job": tables.JOB_WORDS, "pod": tables.POD_WORDS, "container": tables.CONTAINER_WORDS}
    for kind, owner, _, name in _owners(job):
        for path, words, part in owner.rows(vocabulary[kind]):
            if part.known_and_not_in(words):
                wanted = one_of(word for word in words if word)
                message = f'{_last(path)} of {name} must be {wanted}, not "{part}"'
                yield job.finding(part, message, help=did_you_mean(str(part), words))


@rule("TJ543", "malformed-name", stage=Stage.CREATE, program="kubernetes")
def malformed_name(job: Build) -> Iterator[Finding]:
    """A name, address or path of a pod is malformed.

    Service accounts, priority and runtime classes have the names of objects; a hostname is a DNS label; a port's name
    has at most 15 lower-case letters, digits and dashes. Only the cluster knows whether the object exists.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    syntaxes = {"pod": tables.POD_NAMES, "container": tables.CONTAINER_NAMES, "job": tables.JOB_NAMES}
    named = job.jobset.at("network", "enableDNSHostnames").is_(False)
    for kind, owner, pods, name in _owners(job):
        for path, syntax, part in owner.rows(syntaxes[kind]):
            empty = not part.text and _last(path) in tables.MAY_BE_EMPTY
            problem = names.SYNTAX[syntax](part.text) if part.text is not None and not empty else ""
            if problem:
                yield job.finding(part, f'{_tail(path)} "{shortened(str(part))}" of {name} {problem}')
        if kind == "pod" and named and owner.get("subdomain").text:
            yield from job.malformed(owner.get("subdomain"), names.label, "subdomain", str(pods))


def _tail(path: str) -> str:
    """The last step of a path; with the list before it, since a name may be that of anything."""
    before, _, last = path.rpartition(".")
    return f"{before.rpartition('.')[2]}.{last}" if before.endswith("[]") else last.replace("[]", "")


def _last(path: str) -> str:
    return path.replace("[]", "").rpartition(".")[2]
