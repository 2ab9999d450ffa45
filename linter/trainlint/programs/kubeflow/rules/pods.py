"""What Kubernetes says of the pods that an admitted TrainJob becomes as a whole, and of their words and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlint.findings import Finding, did_you_mean, shortened, some_of
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.build import Build, BuiltJob
from trainlint.programs.kubeflow.built_pods import Pods
from trainlint.programs.kubeflow.built_value import BuiltValue, repeated
from trainlint.programs.kubeflow.facts import pods as tables
from trainlint.rule import rule

# security and systems


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
            found = [part for path in tables.WINDOWS_POD_FIELDS for part in pods.spec.find(path)]
            found = [part for part in found if part.content or part.place.name not in tables.WINDOWS_SWITCHES]
            found += [p for path in tables.WINDOWS_CONTAINER_FIELDS for c in containers for p in c.find(path)]
        elif system == "linux":
            found = [p for owner in (pods.spec, *containers) for p in owner.find("securityContext.windowsOptions")]
        else:
            continue
        for part in found:
            yield job.finding(part, f"{part.place.name} cannot be set on a pod for {system}")


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
    ranges = {"job": tables.JOB_RANGES, "pod": tables.POD_RANGES, "container": tables.CONTAINER_RANGES}
    for kind, owner, _, name in _owners(job):
        for path, (low, high) in ranges[kind].items():
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
    vocabulary = {"job": tables.JOB_WORDS, "pod": tables.POD_WORDS, "container": tables.CONTAINER_WORDS}
    for kind, owner, _, name in _owners(job):
        for path, words in vocabulary[kind].items():
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
