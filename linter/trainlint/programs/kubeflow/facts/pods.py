"""What Kubernetes accepts in a Job and its pods, as tables: paths start at the Job's spec, the pod's, or a container.

Source: k8s.io/kubernetes 1.36.2, pkg/apis/batch/validation and pkg/apis/core/validation with the defaults before them;
the rows were tried on a real API server of that version. `[]` in a path means every item of a list.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainlint.programs.kubeflow.facts.paths import Paths

MAX_INT32 = 2**31 - 1
MAX_PODS = 100_000
"""The most pods of an Indexed Job, which every Job of a JobSet is unless it says otherwise."""

_SECCOMP = ("Localhost", "RuntimeDefault", "Unconfined")
_PULL = ("Always", "IfNotPresent", "Never")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")

JOB_WORDS = Paths[tuple[str, ...]](
    {
        "completionMode": ("Indexed", "NonIndexed"),
        "podReplacementPolicy": ("Failed", "TerminatingOrFailed"),
    }
)

POD_WORDS = Paths[tuple[str, ...]](
    {
        "dnsPolicy": ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
        "preemptionPolicy": ("PreemptLowerPriority", "Never"),
        "os.name": ("linux", "windows"),
        "securityContext.fsGroupChangePolicy": ("OnRootMismatch", "Always"),
        "securityContext.supplementalGroupsPolicy": ("Merge", "Strict"),
        "securityContext.seLinuxChangePolicy": ("Recursive",),
        "securityContext.seccompProfile.type": _SECCOMP,
        "securityContext.appArmorProfile.type": _SECCOMP,
        "topologySpreadConstraints[].whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
        "topologySpreadConstraints[].nodeAffinityPolicy": ("Honor", "Ignore"),
        "topologySpreadConstraints[].nodeTaintsPolicy": ("Honor", "Ignore"),
        "tolerations[].operator": ("Equal", "Exists"),
        "tolerations[].effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
        "volumes[].hostPath.type": (
            "",
            "DirectoryOrCreate",
            "Directory",
            "FileOrCreate",
            "File",
            "Socket",
            "CharDevice",
            "BlockDevice",
        ),
        "volumes[].image.pullPolicy": _PULL,
        "volumes[].azureDisk.cachingMode": ("None", "ReadOnly", "ReadWrite"),
        "volumes[].azureDisk.kind": ("Shared", "Dedicated", "Managed"),
        "volumes[].ephemeral.volumeClaimTemplate.spec.accessModes[]": _ACCESS_MODES,
        "volumes[].ephemeral.volumeClaimTemplate.spec.volumeMode": ("Block", "Filesystem"),
    }
)

CLAIM_WORDS = Paths[tuple[str, ...]](
    {
        "accessModes[]": _ACCESS_MODES,
        "volumeMode": ("Block", "Filesystem"),
    }
)
"""Words of a volume claim that JobSet creates."""

CONTAINER_WORDS = Paths[tuple[str, ...]](
    {
        "imagePullPolicy": _PULL,
        "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
        "ports[].protocol": ("TCP", "UDP", "SCTP"),
        "restartPolicyRules[].action": ("Restart", "RestartAllContainers"),
        "restartPolicyRules[].exitCodes.operator": ("In", "NotIn"),
        "resizePolicy[].resourceName": ("cpu", "memory"),
        "resizePolicy[].restartPolicy": ("NotRequired", "RestartContainer"),
        "securityContext.procMount": ("Default", "Unmasked"),
        "securityContext.seccompProfile.type": _SECCOMP,
        "securityContext.appArmorProfile.type": _SECCOMP,
        "volumeMounts[].mountPropagation": ("Bidirectional", "HostToContainer", "None"),
        "volumeMounts[].recursiveReadOnly": ("Disabled", "IfPossible", "Enabled"),
        **{f"{probe}.httpGet.scheme": ("HTTP", "HTTPS") for probe in _PROBES},
        "lifecycle.postStart.httpGet.scheme": ("HTTP", "HTTPS"),
        "lifecycle.preStop.httpGet.scheme": ("HTTP", "HTTPS"),
    }
)

RESTART_POLICIES = ("Always", "OnFailure", "Never")
MAX_RESTART_RULES = 20

JOB_RANGES = Paths[tuple[int, int | None]](
    {
        "activeDeadlineSeconds": (0, None),
        "backoffLimit": (0, None),
        "backoffLimitPerIndex": (0, None),
        "maxFailedIndexes": (0, MAX_PODS),
        "ttlSecondsAfterFinished": (0, None),
    }
)

POD_RANGES = Paths[tuple[int, int | None]](
    {
        "activeDeadlineSeconds": (1, MAX_INT32),
        "securityContext.fsGroup": (0, MAX_INT32),
        "securityContext.runAsUser": (0, MAX_INT32),
        "securityContext.runAsGroup": (0, MAX_INT32),
        "securityContext.supplementalGroups[]": (0, MAX_INT32),
        "topologySpreadConstraints[].maxSkew": (1, None),
        "topologySpreadConstraints[].minDomains": (1, None),
        "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[].weight": (1, 100),
        "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[].weight": (1, 100),
        "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[].weight": (1, 100),
        "volumes[].secret.defaultMode": (0, 0o777),
        "volumes[].secret.items[].mode": (0, 0o777),
        "volumes[].configMap.defaultMode": (0, 0o777),
        "volumes[].configMap.items[].mode": (0, 0o777),
        "volumes[].downwardAPI.defaultMode": (0, 0o777),
        "volumes[].downwardAPI.items[].mode": (0, 0o777),
        "volumes[].projected.defaultMode": (0, 0o777),
        "volumes[].projected.sources[].secret.items[].mode": (0, 0o777),
        "volumes[].projected.sources[].configMap.items[].mode": (0, 0o777),
        "volumes[].projected.sources[].downwardAPI.items[].mode": (0, 0o777),
        "volumes[].projected.sources[].serviceAccountToken.expirationSeconds": (600, 2**32),
        "volumes[].iscsi.lun": (0, 255),
        "volumes[].gcePersistentDisk.partition": (0, 255),
        "volumes[].awsElasticBlockStore.partition": (0, 255),
    }
)

CONTAINER_RANGES = Paths[tuple[int, int | None]](
    {
        "ports[].containerPort": (1, 65535),
        "ports[].hostPort": (0, 65535),
        "securityContext.runAsUser": (0, MAX_INT32),
        "securityContext.runAsGroup": (0, MAX_INT32),
        **{
            f"{probe}.{key}": (0, None)
            for probe in _PROBES
            for key in (
                "initialDelaySeconds",
                "timeoutSeconds",
                "periodSeconds",
                "successThreshold",
                "failureThreshold",
            )
        },
        **{f"{probe}.terminationGracePeriodSeconds": (1, None) for probe in _PROBES},
    }
)

POD_NAMES = Paths[str](
    {
        "serviceAccountName": "subdomain",
        "nodeName": "subdomain",
        "hostname": "label",
        "hostnameOverride": "subdomain",
        "priorityClassName": "subdomain",
        "runtimeClassName": "subdomain",
        "readinessGates[].conditionType": "key",
        "hostAliases[].ip": "ip",
        "hostAliases[].hostnames[]": "subdomain",
        "dnsConfig.nameservers[]": "ip",
        "dnsConfig.searches[]": "search",
        "resourceClaims[].name": "label",
        "resourceClaims[].resourceClaimName": "subdomain",
        "resourceClaims[].resourceClaimTemplateName": "subdomain",
        "securityContext.sysctls[].name": "sysctl",
        "securityContext.windowsOptions.gmsaCredentialSpecName": "subdomain",
        "securityContext.seccompProfile.localhostProfile": "inner_path",
        "volumes[].hostPath.path": "no_way_up",
        "volumes[].gitRepo.directory": "inner_path",
        "volumes[].csi.driver": "driver",
        "volumes[].csi.nodePublishSecretRef.name": "subdomain",
        "volumes[].ephemeral.volumeClaimTemplate.spec.storageClassName": "subdomain",
        "volumes[].storageos.volumeName": "label",
        "volumes[].storageos.volumeNamespace": "label",
    }
)
"""Texts with a syntax, by the name of its check in name_syntax.py."""

CONTAINER_NAMES = Paths[str](
    {
        "resources.claims[].request": "label",
        "ports[].name": "port",
        "securityContext.windowsOptions.gmsaCredentialSpecName": "subdomain",
        "securityContext.seccompProfile.localhostProfile": "inner_path",
    }
)

JOB_NAMES = Paths[str]()

MAY_BE_EMPTY = frozenset({"serviceAccountName", "storageClassName"})
"""Texts that may be empty where Go keeps an empty one."""

SELECTOR_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS = (*SELECTOR_OPERATORS, "Gt", "Lt")

CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
HUGEPAGES = "hugepages-"
NATIVE_DOMAIN = "kubernetes.io/"

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
"""Fields of a pod that a variable can have; also annotations and labels, one at a time: `metadata.labels['key']`."""

VOLUME_FIELDS = ("metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid")

RESOURCE_FIELDS = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)

ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")

VOLUME_SOURCES: Mapping[str, tuple[str, ...]] = {
    "emptyDir": (),
    "hostPath": ("path",),
    "gitRepo": ("repository",),
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "secret": ("secretName",),
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "glusterfs": ("endpoints", "path"),
    "flocker": (),
    "persistentVolumeClaim": ("claimName",),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "quobyte": ("registry", "volume"),
    "downwardAPI": (),
    "fc": (),
    "flexVolume": ("driver",),
    "configMap": ("name",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "storageos": ("volumeName",),
    "projected": ("sources",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "csi": ("driver",),
    "ephemeral": ("volumeClaimTemplate",),
    "image": ("reference",),
}
"""Kinds of volumes, and the fields that each requires."""

LEFT_OUT = frozenset(
    {
        ("secret", "secretName"),
        ("storageos", "volumeName"),
        ("projected", "sources"),
        ("scaleIO", "volumeName"),
        ("ephemeral", "volumeClaimTemplate"),
        ("image", "reference"),
    }
)
"""Those of these fields that the structure of a runtime does not require, so that only Kubernetes misses them."""

VOLUME_REFERENCES = ("csi.nodePublishSecretRef", "cinder.secretRef", "storageos.secretRef")
"""References to a Secret that may be left out, but not without a name."""

VOLUME_CHOICES: Mapping[str, tuple[str, str]] = {
    "fc": ("targetWWNs", "wwids"),
    "flocker": ("datasetName", "datasetUUID"),
}
"""Kinds of volumes that need exactly one of two fields."""

VOLUME_PREFIXES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "nfs": ("path", ("/",)),
    "iscsi": ("iqn", ("iqn", "eui", "naa")),
}
"""How a field of a volume must start."""

DIVISORS: Mapping[str, tuple[str, ...]] = {
    "cpu": ("1m", "1"),
    "other": ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"),
}
"""The divisors that the amount of a resource can have."""

FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
"""Finalizers of pods without a domain."""

POD_RESOURCES = ("cpu", "memory")
"""Resources that a whole pod can have, beside huge pages."""

APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
"""The prefix of annotations that name a container's AppArmor profile."""
APP_ARMOR_PROFILES = ("runtime/default", "unconfined")
APP_ARMOR_LOCAL = "localhost/"

HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")

JOB_LABELS = (
    "controller-uid",
    "job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-name",
)
"""Labels of a pod that the Job sets itself."""

WINDOWS_SWITCHES = frozenset({"hostPID", "hostIPC"})
"""Fields below that may be false; the others must be absent."""

WINDOWS_POD_FIELDS = (
    "hostPID",
    "hostIPC",
    "hostUsers",
    "shareProcessNamespace",
    "resources",
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "securityContext.seccompProfile",
    "securityContext.fsGroup",
    "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
    "securityContext.supplementalGroups",
    "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
)
WINDOWS_CONTAINER_FIELDS = (
    "securityContext.appArmorProfile",
    "securityContext.seLinuxOptions",
    "securityContext.seccompProfile",
    "securityContext.capabilities",
    "securityContext.readOnlyRootFilesystem",
    "securityContext.privileged",
    "securityContext.allowPrivilegeEscalation",
    "securityContext.procMount",
    "securityContext.runAsUser",
    "securityContext.runAsGroup",
)
"""Fields that a pod for Windows must not have."""
