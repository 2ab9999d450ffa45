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
        yield from _profiles(job, context)
        for part in context.find("windowsOptions.runAsUserName"):
            if part.text is not None and not re.fullmatch(
                r"([^\\]*\\)?[^\"/\\:;|=,+*?<>@\[\]\x00-\x1f]{1,104}", part.text
            ):
                yield job.finding(part, f'runAsUserName "{part}" is not the name of a Windows user')
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


@rule("TJ541", "number-out-of-range", stage=Stage.CREATE, program="kubernetes")
def number_out_of_range(job: Build) -> Iterator[Finding]:
    """A number of a Job, pod or container is out of its range.

    Deadlines, limits and delays must not be negative; ports go from 1 to 65535, users and groups from 0 to 2147483647,
    weights from 1 to 100, modes of files from 0 to 0777.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    ranges = {"job": tables.JOB_RANGES, "pod": tables.POD_RANGES, "container": tables.CONTAINER_RANGES}
    for kind, owner, _, name in _owners(job):
        for path, (low, high) in ranges[kind].items():
            for part in owner.find(path):
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
        for path, words in vocabulary[kind].items():
            for part in owner.find(path):
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
    syntaxes = {"pod": tables.POD_NAMES, "container": tables.CONTAINER_NAMES, "job": {}}
    for kind, owner, pods, name in _owners(job):
        for path, syntax in syntaxes[kind].items():
            for part in owner.find(path):
                empty = not part.text and _last(path) in tables.MAY_BE_EMPTY
                problem = names.SYNTAX[syntax](part.text) if part.text is not None and not empty else ""
                if problem:
                    yield job.finding(part, f'{_last(path)} "{shortened(str(part))}" of {name} {problem}')
        own = owner.get("subdomain") if kind == "pod" else owner
        named = job.jobset.at("network", "enableDNSHostnames").is_(False)
        if kind == "pod" and named and own.text:
            yield from job.malformed(own, names.label, "subdomain", str(pods))


def _last(path: str) -> str:
    return path.replace("[]", "").rpartition(".")[2]
