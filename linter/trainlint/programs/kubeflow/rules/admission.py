"""The rest of a TrainJob's and a runtime's admission: structure, metadata, CEL rules and webhooks."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from trainlint.findings import Finding, Severity, did_you_mean, some_of
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.crd_walk import Defect, DefectKind, dotted
from trainlint.programs.kubeflow.facts.admission import (
    FLUX_INSTALLER,
    HIGHEST_PRIORITIES,
    INITIALIZER_MOUNT,
    INITIALIZERS,
    MANAGERS,
    MOVED,
    OVERRIDES,
    POLICIES,
    QUEUE_ANNOTATION,
    RESERVED_MPI_ENV,
    RESERVED_XGBOOST_ENV,
    STEP_CONTAINERS,
    TORCH_PROCESS_WORDS,
    WEBHOOK_LABEL,
)
from trainlint.programs.kubeflow.facts.release import KubeflowFacts
from trainlint.programs.kubeflow.objects import (
    GROUP,
    KINDS,
    RUNTIME_KINDS,
    VERSION,
    Manifest,
    MergedJob,
    Runtime,
    TrainerObject,
    TrainJob,
)
from trainlint.reading.values import Field, Value, is_template
from trainlint.rule import rule

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.facts.crds import Kind

_JOB_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+", re.ASCII)
_LONGEST_GENERATED = 58
_LARGEST_ANNOTATIONS = 256 * 1024


# decoding and structure


@rule("TJ001", "unknown-kind")
def unknown_kind(document: TrainerObject) -> Iterator[Finding]:
    """The API group is the Trainer's, its version or kind is none that the Trainer serves.

    The group trainer.kubeflow.org has the version v1alpha1 with the kinds TrainJob, TrainingRuntime and
    ClusterTrainingRuntime. `kubectl apply` finds no match for anything else.

    Source: Kubeflow Trainer 2.0 and later, its CRDs.
    """
    version = document.api_version.map(lambda text: text.partition("/")[2])
    if version.known_and(lambda text: text != VERSION):
        yield version.finding(
            f"{GROUP} has no version {version}", help=f"write apiVersion: {GROUP}/{VERSION}", field="kind"
        )
    elif document.kind.absent or document.kind.wrong_type:
        yield document.kind.finding("kind is missing", help=f"write one of {', '.join(KINDS)}")
    elif document.kind.known_and_not_in(KINDS):
        hint = did_you_mean(str(document.kind), KINDS)
        yield document.kind.finding(f"{GROUP} has no kind {document.kind}", help=hint)


@rule("TJ011", "unknown-field")
def unknown_field(manifest: Manifest, facts: KubeflowFacts) -> Iterator[Finding]:
    """A field is not known at this place in this release.

    `kubectl apply` asks for strict decoding, and the API server refuses every field that the CRD does not state, at any
    depth, also in metadata and status. Where another release knows the field the finding names it: the fields that
    patch pods were renamed twice (podSpecOverrides in 2.0, podTemplateOverrides in 2.1, runtimePatches from 2.2),
    numProcPerNode left the runtime's torch policy after 2.1, and `spec.labels` and `spec.annotations` are gone since
    2.2. Spelling counts, capitals included. A null field is dropped by `kubectl apply` and does no harm.

    Source: Kubeflow Trainer 2.0 and later, its CRDs, decoded by k8s.io/apiextensions-apiserver.
    """
    for defect in manifest.defects(DefectKind.UNKNOWN_FIELD):
        known_in = manifest.releases_with(defect.field)
        message = f"{defect.message}, it is one of Kubeflow Trainer {_listed(known_in)}" if known_in else defect.message
        help = _where_instead(manifest, defect, facts, known_in)
        yield defect.field.finding(message, help=help, field=defect.dotted, at_key=True)


def _listed(releases: list[str]) -> str:
    return " and ".join(releases) if len(releases) < 3 else f"{', '.join(releases[:-1])} and {releases[-1]}"


def _where_instead(manifest: Manifest, defect: Defect, facts: KubeflowFacts, known_in: list[str]) -> str:
    """Where the field may have been meant, else what is known here."""
    name = defect.field.name
    if defect.dotted == f"spec.{name}" and name in OVERRIDES:
        return f"write {facts.overrides_field}, which has another shape"
    moved = MOVED.get((manifest.kind, defect.dotted))
    if moved is not None:
        return f"write it in {moved}"
    if known_in:
        return f"remove it, or check against the release that you run: --target kubeflow-trainer={known_in[-1]}"
    close = did_you_mean(name, defect.structure.properties)
    if close:
        return close
    own = manifest.place_of(name, manifest.kind)
    if own is not None:
        return f"it belongs in {own}"
    other: Kind = "TrainingRuntime" if manifest.kind == "TrainJob" else "TrainJob"
    foreign = manifest.place_of(name, other)
    if foreign is not None:
        return f"a {other} has it as {foreign}"
    known = list(defect.structure.properties)
    return f"known here: {some_of(known)}" if known else ""


@rule("TJ012", "wrong-type")
def wrong_type(manifest: Manifest) -> Iterator[Finding]:
    """A value is of another type than its field.

    YAML decides what a plain word is, as Go reads it: `yes`, `on` and `y` are booleans, `010` is 8, `1_0` is 10, and a
    number in an env value or an argument is a number, which is refused: quote it. A mapping where a text or a list
    belongs is answered with one unknown field for each of its keys.

    Source: Kubeflow Trainer 2.0 and later, its CRDs; from 2.2 a webhook decodes a TrainJob first, and its status too.
    """
    for defect in manifest.defects(DefectKind.WRONG_TYPE):
        yield defect.field.finding(defect.message, help=defect.help, field=defect.dotted, at_key=defect.stray)
        yield from _unplaced(manifest, defect)


def _unplaced(manifest: Manifest, defect: Defect) -> Iterator[Finding]:
    """The answer to some checks names no field of the object: that is said at its name."""
    if defect.unplaced:
        yield manifest.name.finding(
            f"refused as a whole for {defect.dotted}, line {defect.field.span.line}",
            help="mend the value there",
            field="metadata.name",
        )


@rule("TJ013", "required-field")
def required_field(manifest: Manifest) -> Iterator[Finding]:
    """A required field is missing.

    A field that is null or has no value is missing too, unless the CRD has a default for it. With a runtime patch
    without `time`, 2.2 and 2.3 fill in some missing texts with empty ones and take the object.

    Source: Kubeflow Trainer 2.0 and later, its CRDs.
    """
    for defect in manifest.defects(DefectKind.MISSING):
        parent = dotted(defect.field.path[defect.field.origin : -1])
        yield defect.field.finding(
            f"{defect.message} in {parent}", help=f"add {defect.field.name}", field=defect.dotted
        )


@rule("TJ014", "out-of-bounds")
def out_of_bounds(manifest: Manifest) -> Iterator[Finding]:
    """A number, text or list is smaller or larger than its field allows.

    2.2 bounded many fields: 128 items in command, args and env, 16 runtime patches, 500 characters of an image.
    Integers must fit into 32 bits where Go holds them so.

    Source: Kubeflow Trainer 2.0 and later, its CRDs and Go types.
    """
    for defect in manifest.defects(DefectKind.OUT_OF_BOUNDS):
        yield (defect.at or defect.field).finding(defect.message, help=defect.help, field=defect.dotted)
        yield from _unplaced(manifest, defect)


@rule("TJ015", "malformed-value")
def malformed_value(manifest: Manifest) -> Iterator[Finding]:
    """A text has not the form that its field wants: a quantity, a date and time, a pattern.

    Quantities are numbers with at most one of the suffixes n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an
    exponent; `5GB` is none.

    Source: Kubeflow Trainer 2.0 and later, its CRDs and Go types; quantities by k8s.io/apimachinery.
    """
    for defect in manifest.defects(DefectKind.MALFORMED):
        yield defect.field.finding(defect.message, help=defect.help, field=defect.dotted)


@rule("TJ016", "value-not-allowed")
def value_not_allowed(manifest: Manifest) -> Iterator[Finding]:
    """A field takes some words only, and this is none of them.

    Source: Kubeflow Trainer 2.0 and later, the enums of its CRDs.
    """
    for defect in manifest.defects(DefectKind.NOT_ALLOWED):
        yield defect.field.finding(defect.message, help=defect.help, field=defect.dotted)


@rule("TJ017", "duplicate-entry")
def duplicate_entry(manifest: Manifest) -> Iterator[Finding]:
    """Two entries of a list have the same key.

    Lists such as env, containers, volumes and runtimePatches are maps by one of their fields (name, manager); the
    second entry with a key is refused.

    Source: Kubeflow Trainer 2.0 and later, the list types of its CRDs.
    """
    for defect in manifest.defects(DefectKind.DUPLICATE):
        related = defect.earlier.relate("the first one stands here") if defect.earlier else ()
        at = defect.at or defect.field
        yield at.finding(defect.message, help=defect.help, field=defect.field.field_path, related=related)


# metadata


@rule("TJ021", "object-name")
def object_name(manifest: Manifest) -> Iterator[Finding]:
    """The object's name is missing or not one that the Trainer takes.

    Every object needs `metadata.name` or `metadata.generateName`, which must be a lower case DNS subdomain. The name of
    a TrainJob becomes that of its JobSet, so it must be a DNS label that starts with a letter: lower case letters,
    digits and dashes, 63 characters at most, no dots. To a generated name the server adds five characters; a bad start
    of it is refused twice, as generateName and as the name that it makes.

    Source: k8s.io/apimachinery; the TrainJob's webhook in Kubeflow Trainer 2.0, CEL rules of its CRD from 2.1.
    """
    if manifest.partial:
        return
    name, prefix = manifest.name, manifest.field.at("metadata", "generateName").text()
    if prefix.known_and(lambda start: start != "" and names.subdomain(_masked(start)) != ""):
        yield prefix.finding("generateName starts no valid name", help=_NAME_HELP, field="metadata.generateName")
    given, text = name, name.known
    if name.absent or text == "":
        given, text = prefix, prefix.map(lambda start: f"{start[:_LONGEST_GENERATED]}xxxxx" if start else "").known
        if prefix.absent or text == "":
            yield name.finding("an object needs a name", help="add metadata.name", field="metadata.name")
    problem = _problem_of_name(text, job=manifest.kind == "TrainJob") if text else ""
    if problem:
        yield given.finding(f"the name {_shortened(str(given))} {problem}", help=_NAME_HELP, field="metadata.name")


def _problem_of_name(name: str, *, job: bool) -> str:
    if names.subdomain(name):
        return "is no lower case DNS name"
    if job and not _JOB_NAME.fullmatch(name):
        return "holds a dot" if "." in name else "must start with a letter"
    if job and len(name) > names.LABEL_LENGTH:
        return f"has {len(name)} characters, at most {names.LABEL_LENGTH} are allowed"
    return ""


def _masked(start: str) -> str:
    """The start of a name may end with a dash, which is checked as if it were a letter."""
    return f"{start[:-2]}a" if len(start) > 1 and start.endswith("-") else start


_NAME_HELP = "use lower case letters, digits and dashes, with a letter first"


def _shortened(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


@rule("TJ022", "namespace-name")
def namespace_name(manifest: Manifest) -> Iterator[Finding]:
    """The namespace is no DNS label.

    A namespace has lower case letters, digits and dashes, at most 63 of them. That of a ClusterTrainingRuntime is
    ignored: it belongs to the cluster.

    Source: k8s.io/apimachinery, validation of object metadata.
    """
    namespace = manifest.field.at("metadata", "namespace").text()
    if not manifest.cluster_scoped and namespace.known_and(lambda text: text != "" and names.label(text) != ""):
        yield namespace.finding(
            f"{_shortened(str(namespace))} is no name of a namespace",
            help="use lower case letters, digits and dashes, 63 at most",
        )


@rule("TJ023", "label-or-annotation")
def label_or_annotation(manifest: Manifest) -> Iterator[Finding]:
    """A label's or annotation's key, or a label's value, has not the form that Kubernetes wants.

    Keys are up to 63 letters, digits, dashes, underscores and dots, which start and end with a letter or digit, after
    an optional DNS name and `/`. A label's value is empty or of the same form; an annotation's is free, 256 KiB in all.

    Source: k8s.io/apimachinery, validation of object metadata.
    """
    metadata = manifest.field.get("metadata")
    for label in metadata.get("labels").entries():
        if not is_template(label.name) and names.key(label.name):
            yield label.finding(f"{label.name!r} is no label key", help=_KEY_HELP, field="metadata.labels", at_key=True)
        elif label.text().known_and(lambda value: names.label_value(value) != ""):
            message = f"{_shortened(str(label.text()))!r} is no label value"
            yield label.finding(message, help="use letters, digits, -, _ and ., 63 at most", field="metadata.labels")
    size = 0
    for annotation in metadata.get("annotations").entries():
        size += len(f"{annotation.name}{annotation.text().known or ''}".encode("utf-8", "replace"))
        if not is_template(annotation.name) and names.annotation_key(annotation.name):
            message = f"{annotation.name!r} is no annotation key"
            yield annotation.finding(message, help=_KEY_HELP, field="metadata.annotations", at_key=True)
    if size > _LARGEST_ANNOTATIONS:
        message = f"the annotations hold {size} bytes, at most {_LARGEST_ANNOTATIONS} are allowed"
        yield metadata.get("annotations").finding(message, at_key=True)


_KEY_HELP = "write NAME or PREFIX/NAME, such as example.com/team"


@rule("TJ024", "owner-or-finalizer")
def owner_or_finalizer(manifest: Manifest) -> Iterator[Finding]:
    """An owner reference or finalizer of the metadata is not well formed.

    An owner reference names the version, kind, name and uid of its owner, one of them may be the controller;
    a finalizer is a qualified name. Both are usually written by programs and came along in a copied manifest.

    Source: k8s.io/apimachinery, validation of object metadata.
    """
    metadata = manifest.field.get("metadata")
    controllers: list[Field] = []
    for owner in metadata.get("ownerReferences").items():
        for key in ("apiVersion", "kind", "name", "uid"):
            value = owner.get(key)
            version_missing = key == "apiVersion" and value.text().known_and(lambda text: text.endswith("/"))
            if not owner.is_unknown and (value.is_absent or value.text().is_("") or version_missing):
                yield value.finding(f"{key} of the owner is empty", field=f"metadata.ownerReferences.{key}")
        if owner.get("kind").text().is_("Event") and owner.get("apiVersion").text().is_("v1"):
            yield owner.get("kind").finding("an Event owns nothing", field="metadata.ownerReferences")
        if owner.get("controller").boolean().is_(True):
            controllers.append(owner.get("controller"))
    for controller in controllers[1:]:
        yield controller.finding("only one owner may be the controller", field="metadata.ownerReferences")
    finalizers = [item.text() for item in metadata.get("finalizers").items()]
    for finalizer in finalizers:
        if finalizer.known_and(lambda text: names.key(text) != ""):
            yield finalizer.finding(f"{finalizer!s} is no qualified name", help=_KEY_HELP, field="metadata.finalizers")
    exclusive = [finalizer for finalizer in finalizers if finalizer.is_("orphan", "foregroundDeletion")]
    if len({str(finalizer) for finalizer in exclusive}) > 1:
        message = "orphan and foregroundDeletion exclude each other"
        yield exclusive[-1].finding(message, field="metadata.finalizers")


# CEL rules


@rule("TJ031", "managed-by")
def managed_by(manifest: Manifest) -> Iterator[Finding]:
    """managedBy names a manager that the Trainer does not know.

    A TrainJob is reconciled by the Trainer's own controller, or by MultiKueue's.

    Source: Kubeflow Trainer 2.0 and later, CEL rule on `spec.managedBy`.
    """
    for field in manifest.places("managed-by"):
        if field.text().known_and_not_in(MANAGERS):
            yield field.finding(
                f"managedBy is {field.written!r}, it must be {' or '.join(MANAGERS)}",
                help=did_you_mean(field.written, MANAGERS) or "remove it for the Trainer's own controller",
            )


@rule("TJ032", "storage-uri")
def storage_uri(manifest: Manifest) -> Iterator[Finding]:
    """storageUri is no URI.

    It must be empty, or a scheme, `://` and something behind that: `hf://org/name`, `s3://bucket/path`. Earlier
    releases took any text.

    Source: Kubeflow Trainer 2.3, CEL rule on `spec.initializer.dataset.storageUri` and the model's.
    """
    for field in manifest.places("storage-uri"):
        if field.text().known_and(lambda text: text != "" and not _URI.fullmatch(text)):
            yield field.finding(
                f"storageUri is {_shortened(field.written)!r}, which is no URI",
                help="write scheme://…, such as hf://org/name or s3://bucket/path",
            )


@rule("TJ033", "several-policies")
def several_policies(manifest: Manifest) -> Iterator[Finding]:
    """A runtime has more than one ML policy.

    Of torch, mpi, jax, xgboost and flux one can be configured, an empty one counts.

    Source: Kubeflow Trainer 2.0 and later, CEL rule on `spec.mlPolicy`.
    """
    for policy in manifest.places("one-policy"):
        given = [policy.get(name) for name in POLICIES if not policy.get(name).is_absent]
        if len(given) > 1:
            policies = " and ".join(field.name for field in given)
            yield given[1].finding(
                f"{policies} are configured, only one policy is allowed", field="spec.mlPolicy", at_key=True
            )


@rule("TJ034", "policy-processes")
def policy_processes(manifest: Manifest) -> Iterator[Finding]:
    """numProcPerNode of a runtime's policy is below 1 or no word that the policy takes.

    The torch policy of 2.0 and 2.1 takes a positive number, auto, cpu or gpu; a number in quotes is a text and refused.
    The flux policy takes a positive number.

    Source: Kubeflow Trainer 2.0 and 2.1, CEL rule on the torch policy; 2.2 and later, on the flux policy.
    """
    for rule_name, words in (("torch-processes", TORCH_PROCESS_WORDS), ("flux-processes", ())):
        for field in manifest.places(rule_name):
            text = field.text()
            if field.integer().below(1) or (words and text.known_and_not_in(words)):
                yield field.finding(
                    f"numProcPerNode must be a number of at least 1{''.join(f' or {word}' for word in words)}",
                    help="remove the quotes" if text.known_and(str.isdigit) else "",
                )


@rule("TJ035", "elastic-num-nodes")
def elastic_num_nodes(manifest: Manifest) -> Iterator[Finding]:
    """A runtime sets numNodes beside an elastic torch policy.

    The elastic policy says itself between how many nodes the job may move.

    Source: Kubeflow Trainer 2.0 and 2.1, CEL rule on `spec.mlPolicy`.
    """
    for policy in manifest.places("elastic-nodes"):
        if not policy.get("numNodes").is_absent and not policy.at("torch", "elasticPolicy").is_absent:
            yield policy.get("numNodes").finding(
                "numNodes and torch.elasticPolicy exclude each other", field="spec.mlPolicy", at_key=True
            )


@rule("TJ036", "injected-node-container")
def injected_node_container(manifest: Manifest) -> Iterator[Finding]:
    """envInjection names the container `node`.

    The PET_* variables are always set in the container `node`; envInjection is for others.

    Source: Kubeflow Trainer 2.3, CEL rule on `spec.mlPolicy.torch.envInjection.targets`.
    """
    for injected in manifest.places("injected-node"):
        for item in injected.items():
            if item.text().is_("node"):
                yield item.finding("node gets these variables anyway", help="remove it", field=injected.field_path)


@rule("TJ037", "job-set-rule")
def job_set_rule(manifest: Manifest) -> Iterator[Finding]:
    """The JobSet template of a runtime breaks a rule of JobSet's.

    `startupPolicy` with the order InOrder excludes `dependsOn`, and a claim in `volumeClaimPolicies` sets no namespace.

    Source: JobSet 0.8 to 0.12, CEL rules that the Trainer's CRDs hold.
    """
    for spec in manifest.places("startup-or-depends"):
        depending = [
            job.get("dependsOn") for job in spec.get("replicatedJobs").items() if not job.get("dependsOn").is_absent
        ]
        if depending and spec.at("startupPolicy", "startupPolicyOrder").text().is_("InOrder"):
            yield depending[0].finding(
                "dependsOn and an InOrder startupPolicy exclude each other", field=spec.field_path, at_key=True
            )
    for policy in manifest.places("claim-namespace"):
        for template in policy.get("templates").items():
            metadata = template.get("metadata")
            if metadata.is_absent or metadata.get("namespace").text().known:
                yield metadata.get("namespace").finding(
                    "a claim needs metadata without a namespace", field=policy.field_path
                )


# the TrainJob's webhook


@rule("TJ101", "runtime-not-found")
def runtime_not_found(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The runtime that the job names does not exist.

    It is looked up by kind (ClusterTrainingRuntime unless `runtimeRef.kind` says otherwise) and name, a TrainingRuntime
    in the job's namespace. Admission refuses a job without its runtime, also one that is applied before it, and
    checks nothing else. By default a runtime found neither in the repository nor among those that the release ships
    may exist in the cluster: then this is a note that the checks which need it could not be made. `--runtimes closed`
    says that there are no others but those of `[tool.trainlint.cluster]`.

    Source: Kubeflow Trainer 2.0 and later, validation of TrainJobs.
    """
    if job.partial or job.runtime is not None or job.runtime_installed or job.runtime_name.known is None:
        return
    kind = str(job.runtime_kind)
    if kind not in RUNTIME_KINDS or not job.runtime_group.is_(GROUP):
        return
    if job.runtime_name.is_(""):
        if facts.empty_runtime_name:
            yield job.runtime_name.finding(f"no {kind} has an empty name", field="spec.runtimeRef")
    elif job.runtime_missing:
        yield job.runtime_name.finding(
            f"there is no {kind} {job.runtime_name} when this job is applied",
            help="define the runtime before the job, or name one that the release ships",
            field="spec.runtimeRef",
        )
    else:
        yield job.runtime_name.finding(
            f"{kind} {job.runtime_name} is not in this repository: what depends on it is not checked",
            help="name the cluster's runtimes in the settings, or add its manifest",
            severity=Severity.NOTE,
        )


@rule("TJ102", "unsupported-runtime-kind")
def unsupported_runtime_kind(job: TrainJob) -> Iterator[Finding]:
    """runtimeRef names a group or kind that is no runtime of the Trainer's.

    The group must be trainer.kubeflow.org and the kind ClusterTrainingRuntime or TrainingRuntime, spelled exactly; both
    may be left out, an empty text is refused. A TrainJob without `spec` has no runtime at all.

    Source: Kubeflow Trainer 2.0 and later, the TrainJob's webhook.
    """
    if job.partial:
        return
    if job.spec.is_absent:
        yield job.spec.finding("a TrainJob needs a spec", help="name its runtime in spec.runtimeRef.name")
    if job.runtime_group.known_and(lambda group: group != GROUP):
        yield job.runtime_group.finding(f"no runtime has the group {str(job.runtime_group)!r}", help=f"write {GROUP}")
    if job.runtime_kind.known_and_not_in(RUNTIME_KINDS):
        yield job.runtime_kind.finding(
            f"there is no runtime of kind {str(job.runtime_kind)!r}",
            help=did_you_mean(str(job.runtime_kind), RUNTIME_KINDS) or f"write {' or '.join(RUNTIME_KINDS)}",
        )


@rule("TJ103", "deprecated-runtime", severity=Severity.WARNING)
def deprecated_runtime(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The job's runtime is labelled as deprecated.

    A ClusterTrainingRuntime with the label trainer.kubeflow.org/support: deprecated will go in a later release; the
    API server answers with a warning.

    Source: Kubeflow Trainer 2.1 and later, validation of TrainJobs.
    """
    if job.runtime and _deprecated(job.runtime, facts):
        yield job.runtime_name.finding(
            f"the runtime {job.runtime_name} is deprecated",
            help="move to another runtime",
            related=job.runtime.support.field.relate("it is labelled here"),
        )


def _deprecated(runtime: Runtime, facts: KubeflowFacts) -> bool:
    labelled = runtime.kind.is_(RUNTIME_KINDS[0]) and runtime.support.is_("deprecated")
    return labelled and facts.support_label


@rule("TJ111", "runtime-without-initializer")
def runtime_without_initializer(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The job has an initializer and its runtime none to run it.

    `initializer.dataset`, even an empty one, needs a job `dataset-initializer` with a container of that name in the
    runtime; `initializer.model` likewise. From 2.3 that container must mount a volume called `initializer`.

    Source: Kubeflow Trainer 2.0 and later, jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    if jobs is None:
        return
    for key, name in INITIALIZERS.items():
        initializer = job.spec.at("initializer", key)
        if not initializer.is_absent and not initializer.is_unknown:
            lacks = _initializer_lacks(jobs.get(name), name, mounts=facts.initializer_mounts)
            if lacks:
                yield initializer.finding(
                    f"the runtime {job.runtime_name} has no {lacks}, which initializer.{key} needs",
                    help=f"remove initializer.{key}, or use a runtime that has it",
                    field="spec.runtimeRef",
                    at_key=True,
                )


def _initializer_lacks(job: MergedJob | None, name: str, *, mounts: bool) -> str:
    if job is None:
        return f"job {name}"
    containers, initial = job.containers(), job.containers("initContainers")
    if containers is None or initial is None:
        return ""
    if name not in containers and name not in initial:
        return f"container {name} in its job {name}"
    mounted = job.mounts(name)
    if mounts and not any(mount.is_(INITIALIZER_MOUNT) or mount.unknown for mount in mounted):
        return f"mount of a volume {INITIALIZER_MOUNT} in its container {name}"
    return ""


@rule("TJ112", "patch-of-unknown-job")
def patch_of_unknown_job(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An override or patch names a job that the runtime does not have.

    From 2.3 such a patch is taken and adds a job of that name to the JobSet.

    Source: Kubeflow Trainer 2.0, 2.1 and 2.2, jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    for patch in job.pod_patches if jobs is not None else ():
        if jobs is not None and patch.job.known_and_not_in(jobs):
            yield patch.job.finding(
                f"the runtime {job.runtime_name} has no job {patch.job}",
                help=did_you_mean(str(patch.job), jobs) or f"it has {some_of(jobs)}",
                field=f"spec.{facts.overrides_field}",
            )


@rule("TJ113", "job-overridden-twice")
def job_overridden_twice(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """Two overrides have the same target job.

    2.0 takes a job as target once, over all entries of podSpecOverrides.

    Source: Kubeflow Trainer 2.0, jobset plugin.
    """
    if job.runtime is None or not facts.one_override_per_job:
        return
    seen: dict[str, Value[str]] = {}
    for patch in job.pod_patches:
        name = patch.job.known
        if name is not None and name in seen:
            yield patch.job.finding(
                f"{name} is the target of an earlier override",
                help="put both into one entry",
                field=f"spec.{facts.overrides_field}",
                related=seen[name].field.relate("the first one"),
            )
        elif name is not None:
            seen[name] = patch.job


@rule("TJ114", "patched-env")
def patched_env(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An override or patch sets the environment of a container that the Trainer fills.

    The environment of `node`, `dataset-initializer` and `model-initializer` comes from `spec.trainer.env` and
    `spec.initializer`; patches may set that of other containers only.

    Source: Kubeflow Trainer 2.0 and later, jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    for patch in job.pod_patches if jobs is not None else ():
        if jobs is not None and patch.job.known in jobs:
            for container in patch.pod_spec.get("containers").items():
                if container.get("name").text().is_(*STEP_CONTAINERS.values()) and container.get("env").items():
                    yield container.get("env").finding(
                        f"a patch must not set env of the container {container.get('name').written}",
                        help="set it in spec.trainer.env, or in the initializer's env",
                        field=f"spec.{facts.overrides_field}",
                        at_key=True,
                    )


@rule("TJ115", "patch-manager")
def patch_manager(job: TrainJob) -> Iterator[Finding]:
    """The manager of a runtime patch is no domain and path.

    It says who wrote the patch: a DNS name, `/` and a path, such as example.com/me.

    Source: Kubeflow Trainer 2.2 and later, jobset plugin.
    """
    for patch in job.runtime_patches if job.runtime else ():
        manager = patch.get("manager").text()
        if manager.known_and(lambda text: names.domain_path(text) != ""):
            yield manager.finding(
                f"the manager {manager!s} is no domain and path",
                help="write example.com/NAME",
                field="spec.runtimePatches.manager",
            )


@rule("TJ116", "nameless-pull-secret")
def nameless_pull_secret(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """A patch holds a pull secret without a name for pods that have pull secrets, and the webhook crashes on it.

    Patches are merged by name; where that fails the webhook goes on without the merged runtime and crashes, which
    refuses the job with an internal error that names no field.

    Source: Kubeflow Trainer 2.1 and later, merging of patches before the jobset plugin.
    """
    jobs = job.merged_jobs(facts)
    if jobs is None or not facts.pull_secrets:
        return
    for merged in jobs.values():
        lists = [spec.get("imagePullSecrets") for spec in merged.pod_specs if spec.get("imagePullSecrets").items()]
        for item in (item for later in lists[1:] for item in later.items()):
            if item.is_mapping and (item.get("name").is_absent or item.get("name").text().is_("")):
                yield item.finding(
                    f"a nameless pull secret cannot be merged with those of {merged.name}", help="name the secret"
                )


@rule("TJ121", "injection-target-missing")
def injection_target_missing(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The runtime's envInjection names a job or container that is not there.

    Every job on such a runtime is refused, while the runtime itself is taken.

    Source: Kubeflow Trainer 2.3, torch plugin.
    """
    jobs = job.merged_jobs(facts)
    if jobs is None or job.runtime is None or not facts.injection_targets:
        return
    for target in job.runtime.ml_policy.at("torch", "envInjection", "targets").items():
        name = target.get("jobName").text().known
        if name is None:
            continue
        for container in target.get("containerNames").texts().known or []:
            if container.known is not None and _lacks_container(jobs.get(name), container.known):
                yield job.runtime_name.finding(
                    f"the runtime injects PET_* into container {container} of job {name}, which does not exist",
                    help="mend the runtime's envInjection",
                    field="spec.runtimeRef",
                    related=container.field.relate("it is named here"),
                )


def _lacks_container(job: MergedJob | None, name: str) -> bool:
    if job is None:
        return True
    listed = [job.containers(), job.containers("initContainers")]
    return all(containers is not None and name not in containers for containers in listed)


@rule("TJ131", "mpi-num-proc-word")
def mpi_num_proc_word(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """numProcPerNode is a word on an MPI runtime, which needs a number.

    Source: Kubeflow Trainer 2.0 and 2.1, mpi plugin.
    """
    words = job.num_proc_per_node.text()
    if job.runs_policy("mpi") and facts.integer_mpi_processes and words.known is not None:
        yield words.finding(
            f"MPI needs a number of processes, not {str(words)!r}", help="write a number without quotes"
        )


@rule("TJ132", "mpi-launcher-missing")
def mpi_launcher_missing(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """Several nodes on an MPI runtime whose launcher is a node and whose jobs are not both there.

    With `runLauncherAsNode` more than one node needs a job `launcher` and a job `node` in the runtime.

    Source: Kubeflow Trainer 2.0 and later, mpi plugin.
    """
    jobs = job.merged_jobs(facts)
    if jobs is None or job.runtime is None or not job.runs_policy("mpi") or not job.num_nodes.above(1):
        return
    lacking = [name for name in ("launcher", "node") if name not in jobs]
    if lacking and job.runtime.ml_policy.at("mpi", "runLauncherAsNode").boolean().is_(True):
        yield job.num_nodes.finding(
            f"numNodes must be 1: the runtime {job.runtime_name} has no job {' and no job '.join(lacking)}",
            help="use a runtime with the jobs launcher and node",
        )


@rule("TJ133", "mpi-reserved-env")
def mpi_reserved_env(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """An environment variable of Open MPI that the controller sets is set by hand.

    Source: Kubeflow Trainer 2.3, mpi plugin.
    """
    if job.runs_policy("mpi") and facts.reserved_mpi_env:
        for name in _env_names(job, RESERVED_MPI_ENV):
            yield name.finding(
                f"{name} is reserved: the controller sets it", help="remove it", field="spec.trainer.env"
            )


def _env_names(job: TrainJob, reserved: Collection[str]) -> Iterator[Value[str]]:
    for env in job.env:
        name = env.get("name").text()
        if name.is_(*reserved):
            yield name


@rule("TJ141", "xgboost-reserved-env")
def xgboost_reserved_env(job: TrainJob) -> Iterator[Finding]:
    """An environment variable of XGBoost's tracker that the controller sets is set by hand.

    Source: Kubeflow Trainer 2.2 and later, xgboost plugin.
    """
    if job.runs_policy("xgboost"):
        for name in _env_names(job, RESERVED_XGBOOST_ENV):
            entry = name.field.parent or name.field
            yield name.finding(f"{name} is reserved: the controller sets it", help="remove it", field=entry.field_path)


@rule("TJ151", "flux-processes")
def flux_processes(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """numProcPerNode is below 1 on a Flux runtime.

    Source: Kubeflow Trainer 2.3, flux plugin.
    """
    procs = job.num_proc_per_node.integer()
    if job.runs_policy("flux") and facts.flux_counts_job and procs.below(1):
        yield procs.finding(
            f"Flux needs at least 1 process per node, not {procs}", help="set numProcPerNode to 1 or more"
        )


@rule("TJ152", "flux-installer")
def flux_installer(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The pods of a Flux runtime hold an init container called flux-installer.

    The controller adds one of that name itself.

    Source: Kubeflow Trainer 2.2 and later, flux plugin.
    """
    jobs = job.merged_jobs(facts) if job.runs_policy("flux") else None
    node = (jobs or {}).get("node")
    for container in (node.containers("initContainers") or {}).get(FLUX_INSTALLER, []) if node else []:
        own = container.document is job.field.document and container.path[: job.field.origin] == job.field.path
        at = container.get("name") if own else job.runtime_name.field
        yield at.finding(
            f"the init container {FLUX_INSTALLER} is the controller's own",
            help="rename yours",
            field="spec.trainer.initContainers",
            related=() if own else container.get("name").relate("the runtime has it here"),
        )
        return


@rule("TJ161", "volcano-queue")
def volcano_queue(job: TrainJob) -> Iterator[Finding]:
    """The queue for Volcano is an empty text.

    The annotation scheduling.volcano.sh/queue-name of the runtime's template, of the job (2.1) or of its patches (from
    2.2) names the queue; leave it out for the default queue.

    Source: Kubeflow Trainer 2.1 and later, volcano plugin.
    """
    if job.gangs_with_volcano and job.queue is not None and job.queue.is_(""):
        own = job.queue.field.document is job.field.document and job.queue.field.origin == job.field.origin
        at = job.queue.field if own and job.queue.field.path[: job.field.origin] == job.field.path else None
        yield (at or job.runtime_name.field).finding(
            f"{QUEUE_ANNOTATION} names no queue",
            help="name a queue, or remove the annotation",
            field=f"spec.annotations[{QUEUE_ANNOTATION}]",
            related=() if at else job.queue.field.relate("the runtime has it here"),
        )


@rule("TJ162", "volcano-priority-class")
def volcano_priority_class(job: TrainJob, facts: KubeflowFacts) -> Iterator[Finding]:
    """The priority class of the runtime's pods must exist in the cluster.

    With Volcano the webhook looks up the class of each job's pods, until it meets one of Kubernetes' own
    (system-cluster-critical, system-node-critical). Which classes a cluster has can be said in
    `[tool.trainlint.cluster]`, `priority-classes`; without that this is a note.

    Source: Kubeflow Trainer 2.1 and later, volcano plugin.
    """
    jobs = job.merged_jobs(facts) if job.gangs_with_volcano else None
    for merged in (jobs or {}).values():
        name = merged.pod_specs[0].get("priorityClassName").text() if merged.pod_specs else None
        if name is None or name.unknown or name.is_(*HIGHEST_PRIORITIES):
            return
        if name.known and (job.priority_classes is None or name.known not in job.priority_classes):
            unsure = job.priority_classes is None
            yield job.runtime_name.finding(
                f"the runtime's priority class {name} {'must exist' if unsure else 'does not exist'} in the cluster",
                help="list the cluster's classes in [tool.trainlint.cluster] priority-classes",
                severity=Severity.NOTE if unsure else None,
                field="spec.templateSpec.priorityClassName",
                related=name.field.relate("it is named here"),
            )


# the runtimes' webhooks


def _webhook_looks(runtime: Runtime, facts: KubeflowFacts) -> bool:
    opted_out = runtime.field.at("metadata", "labels", WEBHOOK_LABEL).text().is_("disabled")
    return not (opted_out and facts.opt_out)


@rule("TJ201", "runtime-replicas")
def runtime_replicas(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """A job of the runtime that a TrainJob's step goes into has not one replica.

    Nodes come from the parallelism of the one job, which numNodes sets. It concerns jobs that are labelled as trainer,
    dataset-initializer or model-initializer, in 2.0 also a job called launcher.

    Source: Kubeflow Trainer 2.0 and later, the runtimes' webhook; the label webhook-validation: disabled skips it from
    2.3.
    """
    if not _webhook_looks(runtime, facts):
        return
    for job in runtime.jobs:
        launcher = facts.launcher_replicas and job.name.is_("launcher")
        if (launcher or job.ancestor.is_(*STEP_CONTAINERS)) and job.replicas.known_and(lambda count: count != 1):
            yield job.replicas.finding(f"the job {job.name} must have 1 replica", help="set numNodes for more nodes")


@rule("TJ202", "runtime-container")
def runtime_container(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """A job of the runtime lacks the container that a TrainJob's step goes into.

    The job labelled as trainer needs a container `node`, the ones labelled as dataset-initializer and model-initializer
    a container of that name. 2.0 took such a runtime, and image, command and arguments of its jobs went nowhere.

    Source: Kubeflow Trainer 2.1 and later, the runtimes' webhook; the label webhook-validation: disabled skips it from
    2.3.
    """
    if runtime.partial or not facts.step_containers or not _webhook_looks(runtime, facts):
        return
    for job in runtime.jobs:
        wanted = STEP_CONTAINERS.get(job.ancestor.known or "")
        listed = job.pod_spec.get("containers")
        if wanted is None or listed.is_unknown or job.container(wanted):
            continue
        called = [container.name for container in job.containers]
        if not any(name.unknown for name in called):
            at = called[0].field if called else listed
            yield at.finding(
                f"the job {job.name} has no container {wanted}, where {job.ancestor} goes",
                help=f"name the main container {wanted}",
                field=listed.field_path,
            )


@rule("TJ203", "deprecated-runtime-manifest", severity=Severity.WARNING)
def deprecated_runtime_manifest(runtime: Runtime, facts: KubeflowFacts) -> Iterator[Finding]:
    """A ClusterTrainingRuntime is labelled as deprecated.

    The API server answers with a warning to it, and to each TrainJob that names it.

    Source: Kubeflow Trainer 2.1 and later, the ClusterTrainingRuntime's webhook.
    """
    if _deprecated(runtime, facts) and _webhook_looks(runtime, facts):
        yield runtime.support.finding("this runtime is deprecated", help="move its jobs to another runtime")
