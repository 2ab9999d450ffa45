"""What decoding, the CRDs and their CEL rules, and the checks of metadata refuse in a TrainJob or a runtime."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainlint.findings import Finding, Fix, Stage, did_you_mean, shortened, some_of
from trainlint.lazy import regex
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.crd_walk import Defect, DefectKind, dotted
from trainlint.programs.kubeflow.facts.admission import MANAGERS, MOVED, OVERRIDES, POLICIES, TORCH_PROCESS_WORDS
from trainlint.programs.kubeflow.facts.release import KubeflowFacts
from trainlint.programs.kubeflow.objects import GROUP, KINDS, OLD_GROUP, OLD_VERSION, VERSION, Manifest, TrainerObject
from trainlint.reading import mending
from trainlint.reading.values import Field, is_template
from trainlint.rule import rule

if TYPE_CHECKING:
    from trainlint.programs.kubeflow.facts.crds import Kind

_JOB_NAME = regex(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_URI = regex(r"[A-Za-z][A-Za-z0-9+.-]*://.+", re.ASCII)
_LONGEST_GENERATED = 58
_LARGEST_ANNOTATIONS = 256 * 1024


# decoding and structure


@rule("TJ001", "unknown-kind", stage=Stage.ADMISSION)
def unknown_kind(document: TrainerObject) -> Iterator[Finding]:
    """The version or kind of trainer.kubeflow.org is unknown.

    The group has the version v1alpha1 with the kinds TrainJob, TrainingRuntime and ClusterTrainingRuntime. `kubectl
    apply` finds no match for anything else, nor for kubeflow.org/v2alpha1, the group of the time before 2.0.

    Source: Kubeflow Trainer 2.0 and later, its CRDs.
    """
    version = document.api_version.map(lambda text: text.partition("/")[2])
    if document.api_version.is_(f"{OLD_GROUP}/{OLD_VERSION}"):
        yield document.api_version.finding(
            f"no release serves {document.kind} in {document.api_version}",
            help=f"write apiVersion: {GROUP}/{VERSION}",
            fix=mending.worded(document.api_version, f"{GROUP}/{VERSION}", sure=False),
        )
    elif version.known_and(lambda text: text != VERSION):
        yield version.finding(
            f"{GROUP} has no version {version}",
            help=f"write apiVersion: {GROUP}/{VERSION}",
            field="kind",
            fix=mending.worded(document.api_version, f"{GROUP}/{VERSION}", sure=False),
        )
    elif document.kind.absent or document.kind.wrong_type:
        yield document.kind.finding("kind is missing", help=f"write one of {', '.join(KINDS)}")
    elif document.kind.known_and_not_in(KINDS):
        hint = did_you_mean(str(document.kind), KINDS)
        fix = mending.respelled(document.kind, KINDS)
        yield document.kind.finding(f"{GROUP} has no kind {document.kind}", help=hint, fix=fix)


@rule("TJ011", "unknown-field", stage=Stage.ADMISSION, covers=True)
def unknown_field(manifest: Manifest, facts: KubeflowFacts) -> Iterator[Finding]:
    """The release does not have this field here.

    `kubectl apply` asks for strict decoding, and the API server refuses every field that the CRD does not define, at
    any depth, also in metadata and status. Where another release has the field, the finding names it: the fields that
    patch pods were renamed twice (podSpecOverrides in 2.0, podTemplateOverrides in 2.1, runtimePatches from 2.2),
    numProcPerNode left the runtime's torch policy after 2.1, and `spec.labels` and `spec.annotations` went with 2.2.
    Spelling counts, capitals included. `kubectl apply` drops a null field, which does no harm.

    Source: Kubeflow Trainer 2.0 and later, its CRDs, decoded by k8s.io/apiextensions-apiserver.
    """
    for defect in manifest.defects(DefectKind.UNKNOWN_FIELD):
        known_in = manifest.releases_with(defect.field)
        message = f"{defect.message}; {_listed(known_in)} it" if known_in else defect.message
        help = _where_instead(manifest, defect, facts, known_in)
        fix = _mended_field(manifest, defect, known_in)
        yield defect.field.finding(message, help=help, field=defect.dotted, fix=fix, at_key=True)


def _mended_field(manifest: Manifest, defect: Defect, known_in: list[str]) -> Fix | None:
    """The field gets the name that is meant, or goes where its object has it."""
    name = defect.field.name
    if known_in or (manifest.kind, defect.dotted) in MOVED or (name in OVERRIDES and defect.dotted == f"spec.{name}"):
        return None
    fix = mending.renamed_to_nearest(defect.field, defect.structure.properties)
    own = manifest.place_of(name, manifest.kind)
    if fix is not None or own is None or did_you_mean(name, defect.structure.properties):
        return fix
    return mending.moved(defect.field, manifest.field.at(*own.split(".")[:-1]))


def _listed(releases: list[str]) -> str:
    *others, last = releases
    return f"Kubeflow Trainer {', '.join(others)} and {last} have" if others else f"Kubeflow Trainer {last} has"


def _where_instead(manifest: Manifest, defect: Defect, facts: KubeflowFacts, known_in: list[str]) -> str:
    """What to write instead, else what is known here."""
    name = defect.field.name
    if defect.dotted == f"spec.{name}" and name in OVERRIDES:
        return f"write {facts.overrides_field}, whose entries look different"
    moved = MOVED.get((manifest.kind, defect.dotted))
    if moved is not None:
        return f"set {moved}"
    if known_in:
        return f"remove it, or check against the release that you run: --target kubeflow-trainer={known_in[-1]}"
    close = did_you_mean(name, defect.structure.properties)
    if close:
        return close
    own = manifest.place_of(name, manifest.kind)
    if own is not None:
        return f"write it as {own}"
    other: Kind = "TrainingRuntime" if manifest.kind == "TrainJob" else "TrainJob"
    foreign = manifest.place_of(name, other)
    if foreign is not None:
        return f"set {foreign} of the {other}"
    known = list(defect.structure.properties)
    return f"allowed here: {some_of(known)}" if known else ""


@rule("TJ012", "wrong-type", stage=Stage.ADMISSION, covers=True)
def wrong_type(manifest: Manifest) -> Iterator[Finding]:
    """A value has another type than its field.

    Go's YAML reader decides what a plain word is: `yes`, `on` and `y` are booleans, `010` is 8, `1_0` is 10, and a
    number in an env value or an argument is a number, which is refused: quote it. For a mapping in place of a string
    or a list, the API server reports each of its keys as an unknown field.

    Source: Kubeflow Trainer 2.0 and later, its CRDs; from 2.2 a webhook decodes a TrainJob first, and its status too.
    """
    for defect in manifest.defects(DefectKind.WRONG_TYPE):
        yield from _placed(manifest, defect, defect.field, fix=_typed(defect), at_key=defect.stray)


def _typed(defect: Defect) -> Fix | None:
    """The value as its field wants it, where nothing but the form is wrong."""
    field, wanted = defect.field, defect.structure.type
    if defect.stray:
        above = field.parent
        return mending.as_entries(above) if above is not None and above.name == "env" and wanted == "array" else None
    text = field.text().known
    if text is None:
        quantity = wanted == "int-or-string" and isinstance(field.plain, float)
        return mending.quoted(field) if wanted == "string" or quantity else None
    if wanted == "integer":
        return mending.whole(field)
    if wanted == "boolean":
        return mending.switched(field)
    if wanted == "array" and field.name in ("command", "args"):
        return mending.listed(field, *text.split()) if _WORDS.fullmatch(text) else mending.emptied(field)
    return None


_WORDS = regex(r"[\w./=:,@+-]+(?:\s[\w./=:,@+-]+)*")
"""Words that a shell would not change."""


def _placed(
    manifest: Manifest, defect: Defect, place: Field, *, fix: Fix | None = None, at_key: bool = False
) -> Iterator[Finding]:
    """The finding on a defect, with further keys that have the same.

    The API server's message on some checks names no field of the object: the object's name is flagged, too.
    """
    related = tuple(place for other in defect.others for place in other.relate("this key, too"))
    yield place.finding(defect.message, help=defect.help, field=defect.dotted, fix=fix, at_key=at_key, related=related)
    if defect.unplaced:
        yield manifest.name.finding(
            f"the object is refused because of {defect.dotted}",
            help=f"fix the value in line {defect.field.span.line}",
            field="metadata.name",
        )


@rule("TJ013", "required-field", stage=Stage.ADMISSION)
def required_field(manifest: Manifest) -> Iterator[Finding]:
    """A required field is missing.

    A field that is null or has no value is missing too, unless the CRD has a default for it. Beside a runtime patch
    without `time`, 2.2 and 2.3 fill in some missing strings with empty ones and accept the object.

    Source: Kubeflow Trainer 2.0 and later, its CRDs.
    """
    for defect in manifest.defects(DefectKind.MISSING):
        parent = dotted(defect.field.path[defect.field.origin : -1])
        yield defect.field.finding(
            f"{defect.message} in {parent}", help=f"add {defect.field.name}", field=defect.dotted
        )


@rule("TJ014", "out-of-bounds", stage=Stage.ADMISSION)
def out_of_bounds(manifest: Manifest) -> Iterator[Finding]:
    """A number, string or list is smaller or larger than its field allows.

    2.2 bounded many fields: 128 items in command, args and env, 16 runtime patches, 500 characters of an image.
    Integers must fit into 32 bits where Go has 32-bit fields.

    Source: Kubeflow Trainer 2.0 and later, its CRDs and Go types.
    """
    for defect in manifest.defects(DefectKind.OUT_OF_BOUNDS):
        yield from _placed(manifest, defect, defect.place)


@rule("TJ015", "malformed-value", stage=Stage.ADMISSION)
def malformed_value(manifest: Manifest) -> Iterator[Finding]:
    """A string does not match the format that its field requires: a quantity, a date and time, a pattern.

    Quantities are numbers with at most one of the suffixes n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or with
    an exponent; `5GB` is not a quantity.

    Source: Kubeflow Trainer 2.0 and later, its CRDs and Go types; quantities by k8s.io/apimachinery.
    """
    for defect in manifest.defects(DefectKind.MALFORMED):
        fix = _quantity(defect.field) if defect.structure.type == "int-or-string" else None
        yield defect.field.finding(defect.message, help=defect.help, field=defect.dotted, fix=fix)


def _quantity(field: Field) -> Fix | None:
    """The amount with the suffix that Kubernetes has for the unit: `5GB` is 5G, `16 gib` 16Gi."""
    match = _AMOUNT.fullmatch(field.written.strip())
    unit = _UNITS.get(match[2].lower().removesuffix("b")) if match else None
    return mending.worded(field, f"{match[1]}{unit}") if match and unit else None


_AMOUNT = regex(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)\s?([A-Za-z]{1,3})")
_UNITS = {"k": "k", "ki": "Ki", "m": "M", "mi": "Mi", "g": "G", "gi": "Gi", "t": "T", "ti": "Ti"}


@rule("TJ016", "value-not-allowed", stage=Stage.ADMISSION)
def value_not_allowed(manifest: Manifest) -> Iterator[Finding]:
    """A field that takes one of a few words has another value.

    Source: Kubeflow Trainer 2.0 and later, the enums of its CRDs.
    """
    for defect in manifest.defects(DefectKind.NOT_ALLOWED):
        fix = mending.respelled(defect.field, [str(word) for word in defect.structure.enum])
        yield defect.field.finding(defect.message, help=defect.help, field=defect.dotted, fix=fix)


@rule("TJ017", "duplicate-entry", stage=Stage.ADMISSION)
def duplicate_entry(manifest: Manifest) -> Iterator[Finding]:
    """Two entries of a list have the same key.

    The entries of env, containers, volumes, runtimePatches and the like are told apart by one of their fields (name,
    manager); the second entry with a key is refused.

    Source: Kubeflow Trainer 2.0 and later, the list types of its CRDs.
    """
    for defect in manifest.defects(DefectKind.DUPLICATE):
        related = defect.earlier.relate("the first one is here") if defect.earlier else ()
        fix = (
            mending.removed(defect.field) if defect.earlier and mending.is_same(defect.field, defect.earlier) else None
        )
        yield defect.place.finding(
            defect.message, help=defect.help, field=defect.field.field_path, related=related, fix=fix
        )


# metadata


@rule("TJ021", "object-name", stage=Stage.ADMISSION)
def object_name(manifest: Manifest) -> Iterator[Finding]:
    """The object's name is missing or malformed.

    Every object needs `metadata.name` or `metadata.generateName`, which must be a lower-case DNS subdomain. The name of
    a TrainJob becomes that of its JobSet, so it must be a DNS label that starts with a letter: lower-case letters,
    digits and dashes, 63 characters at most, no dots. The server adds five characters to a generateName; a malformed
    one is refused twice, as generateName and as the name made from it.

    Source: k8s.io/apimachinery; the TrainJob's webhook in Kubeflow Trainer 2.0, CEL rules of its CRD from 2.1.
    """
    if manifest.partial:
        return
    name, prefix = manifest.name, manifest.field.at("metadata", "generateName").text()
    job = manifest.kind == "TrainJob"
    if prefix.known_and(lambda start: start != "" and names.subdomain(_masked(start)) != ""):
        help = _name_help(str(prefix), job=job)
        yield prefix.finding("generateName cannot begin a name", help=help, field="metadata.generateName")
    given, text = name, name.known
    if name.absent or text == "":
        given, text = prefix, prefix.map(lambda start: f"{start[:_LONGEST_GENERATED]}xxxxx" if start else "").known
        if prefix.absent or text == "":
            yield name.finding("the object has no name", help="add metadata.name", field="metadata.name")
    problem = _problem_of_name(text, job=job) if text else ""
    if text and problem:
        help = _name_help(text, job=job)
        better = text.lower().replace("_", "-").replace(" ", "-")
        named = given is name and better != text and not _problem_of_name(better, job=job)
        fix = mending.worded(given, better, sure=False) if named else None
        yield given.finding(f"the name {shortened(str(given))} {problem}", help=help, field="metadata.name", fix=fix)


def _problem_of_name(name: str, *, job: bool) -> str:
    if names.subdomain(name):
        return "is not a lower-case DNS name"
    if job and not _JOB_NAME.fullmatch(name):
        return "must not contain a dot" if "." in name else "must start with a letter"
    if job and len(name) > names.LABEL_LENGTH:
        return f"has {len(name)} characters, at most {names.LABEL_LENGTH} are allowed"
    return ""


def _name_help(name: str, *, job: bool) -> str:
    limit = names.LABEL_LENGTH if job else names.SUBDOMAIN_LENGTH
    if len(name) > limit:
        return f"shorten the name to {limit} characters"
    if job:
        return "use lower-case letters, digits and dashes, with a letter first"
    return "use lower-case letters, digits, dashes and dots, with a letter or digit first and last"


def _masked(start: str) -> str:
    """The start of a name may end with a dash, which is checked as if it were a letter."""
    return f"{start[:-2]}a" if len(start) > 1 and start.endswith("-") else start


@rule("TJ022", "namespace-name", stage=Stage.ADMISSION)
def namespace_name(manifest: Manifest) -> Iterator[Finding]:
    """The name of the namespace is malformed.

    It has at most 63 lower-case letters, digits and dashes. A ClusterTrainingRuntime belongs to the whole cluster: its
    namespace is ignored.

    Source: k8s.io/apimachinery, validation of object metadata.
    """
    namespace = manifest.field.at("metadata", "namespace").text()
    if not manifest.cluster_scoped and namespace.known_and(lambda text: text != "" and names.label(text) != ""):
        yield namespace.finding(
            f"namespace {shortened(str(namespace))!r} is malformed",
            help="use lower-case letters, digits and dashes, 63 at most",
        )


@rule("TJ023", "label-or-annotation", stage=Stage.ADMISSION)
def label_or_annotation(manifest: Manifest) -> Iterator[Finding]:
    """The key of a label or annotation, or the value of a label, is malformed.

    Keys are up to 63 letters, digits, dashes, underscores and dots, which start and end with a letter or digit, after
    an optional DNS name and `/`. A label's value is empty or looks the same; an annotation's is free. All annotations
    together have 256 KiB at most.

    Source: k8s.io/apimachinery, validation of object metadata.
    """
    metadata = manifest.field.get("metadata")
    for label in metadata.get("labels").entries():
        if not is_template(label.name) and names.key(label.name):
            yield label.finding(
                f"label key {label.name!r} is malformed", help=_KEY_HELP, field="metadata.labels", at_key=True
            )
        elif label.text().known_and(lambda value: names.label_value(value) != ""):
            message = f"label value {shortened(str(label.text()))!r} is malformed"
            yield label.finding(message, help=_LABEL_HELP, field="metadata.labels")
    size = 0
    for annotation in metadata.get("annotations").entries():
        size += len(f"{annotation.name}{annotation.text().known or ''}".encode("utf-8", "replace"))
        if not is_template(annotation.name) and names.annotation_key(annotation.name):
            message = f"annotation key {annotation.name!r} is malformed"
            yield annotation.finding(message, help=_KEY_HELP, field="metadata.annotations", at_key=True)
    if size > _LARGEST_ANNOTATIONS:
        message = f"the annotations have {size} bytes, at most {_LARGEST_ANNOTATIONS} are allowed"
        yield metadata.get("annotations").finding(message, at_key=True)


_LABEL_HELP = "use at most 63 letters, digits, -, _ and ., with a letter or digit first and last"
_KEY_HELP = "write NAME or PREFIX/NAME, such as example.com/team"


@rule("TJ024", "owner-or-finalizer", stage=Stage.ADMISSION)
def owner_or_finalizer(manifest: Manifest) -> Iterator[Finding]:
    """An owner reference or finalizer of the metadata is malformed.

    An owner reference names the version, kind, name and uid of its owner, and one owner may be the controller; a
    finalizer is a qualified name. Programs write both: they usually came along in a copied manifest.

    Source: k8s.io/apimachinery, validation of object metadata.
    """
    metadata = manifest.field.get("metadata")
    controllers: list[Field] = []
    for owner in metadata.get("ownerReferences").items():
        for key in ("apiVersion", "kind", "name", "uid"):
            value = owner.get(key)
            version_missing = key == "apiVersion" and value.text().known_and(lambda text: text.endswith("/"))
            if not owner.is_unknown and (value.is_absent or value.text().is_("") or version_missing):
                yield value.finding(f"{key} of the owner reference is missing", field=f"metadata.ownerReferences.{key}")
        if owner.get("kind").text().is_("Event") and owner.get("apiVersion").text().is_("v1"):
            yield owner.get("kind").finding("an Event cannot be an owner", field="metadata.ownerReferences")
        if owner.get("controller").boolean().is_(True):
            controllers.append(owner.get("controller"))
    for controller in controllers[1:]:
        yield controller.finding("only one owner may be the controller", field="metadata.ownerReferences")
    finalizers = [item.text() for item in metadata.get("finalizers").items()]
    for finalizer in finalizers:
        if finalizer.known_and(lambda text: names.key(text) != ""):
            yield finalizer.finding(
                f"finalizer {str(finalizer)!r} is malformed", help=_KEY_HELP, field="metadata.finalizers"
            )
    exclusive = [finalizer for finalizer in finalizers if finalizer.is_("orphan", "foregroundDeletion")]
    if len({str(finalizer) for finalizer in exclusive}) > 1:
        message = "orphan and foregroundDeletion exclude each other"
        other = next(one for one in exclusive if str(one) != str(exclusive[-1])).field.relate("the other one is here")
        yield exclusive[-1].finding(message, field="metadata.finalizers", related=other)


# CEL rules


@rule("TJ031", "managed-by", stage=Stage.ADMISSION)
def managed_by(manifest: Manifest) -> Iterator[Finding]:
    """managedBy names a manager that the Trainer does not know.

    The Trainer's own controller reconciles a TrainJob, or MultiKueue's.

    Source: Kubeflow Trainer 2.0 and later, CEL rule on `spec.managedBy`.
    """
    for field in manifest.places("managed-by"):
        if field.text().known_and_not_in(MANAGERS):
            yield field.finding(
                f"managedBy must be {' or '.join(MANAGERS)}, not {field.written!r}",
                help=did_you_mean(field.written, MANAGERS) or "remove it for the Trainer's own controller",
                fix=mending.respelled(field, MANAGERS),
            )


@rule("TJ032", "storage-uri", stage=Stage.ADMISSION)
def storage_uri(manifest: Manifest) -> Iterator[Finding]:
    """storageUri is not a URI.

    It must be empty, or a scheme, `://` and a location: `hf://org/name`, `s3://bucket/path`. Earlier releases accepted
    any string.

    Source: Kubeflow Trainer 2.3, CEL rule on `spec.initializer.dataset.storageUri` and the model's.
    """
    for field in manifest.places("storage-uri"):
        if field.text().known_and(lambda text: text != "" and not _URI.fullmatch(text)):
            yield field.finding(
                f"storageUri {shortened(field.written)!r} is not a URI",
                help="write SCHEME://LOCATION, such as hf://org/name or s3://bucket/path",
            )


@rule("TJ033", "several-policies", stage=Stage.ADMISSION)
def several_policies(manifest: Manifest) -> Iterator[Finding]:
    """A runtime has more than one ML policy.

    It may have one of torch, mpi, jax, xgboost and flux; an empty one counts.

    Source: Kubeflow Trainer 2.0 and later, CEL rule on `spec.mlPolicy`.
    """
    for policy in manifest.places("one-policy"):
        given = [policy.get(name) for name in POLICIES if not policy.get(name).is_absent]
        if len(given) > 1:
            policies = " and ".join(field.name for field in given)
            yield given[1].finding(
                f"mlPolicy has {policies}, only one is allowed", help="keep one", field="spec.mlPolicy", at_key=True
            )


@rule("TJ034", "policy-processes", stage=Stage.ADMISSION)
def policy_processes(manifest: Manifest) -> Iterator[Finding]:
    """numProcPerNode of a runtime's policy is below 1 or an unknown word.

    The torch policy of 2.0 and 2.1 takes a positive number, auto, cpu or gpu; a number in quotes is a string and is
    refused.
    The flux policy takes a positive number.

    Source: Kubeflow Trainer 2.0 and 2.1, CEL rule on the torch policy; 2.2 and later, on the flux policy.
    """
    for rule_name, words in (("torch-processes", TORCH_PROCESS_WORDS), ("flux-processes", ())):
        for field in manifest.places(rule_name):
            text = field.text()
            if field.integer().below(1) or (words and text.known_and_not_in(words)):
                yield field.finding(
                    "numProcPerNode must be at least 1" + (", or auto, cpu or gpu" if words else ""),
                    help="remove the quotes" if text.known_and(str.isdecimal) else did_you_mean(field.written, words),
                    fix=mending.whole(field) if text.known_and(str.isdecimal) else mending.respelled(field, words),
                )


@rule("TJ035", "elastic-num-nodes", stage=Stage.ADMISSION)
def elastic_num_nodes(manifest: Manifest) -> Iterator[Finding]:
    """A runtime sets numNodes beside an elastic torch policy.

    The elastic policy has limits of its own for the number of nodes.

    Source: Kubeflow Trainer 2.0 and 2.1, CEL rule on `spec.mlPolicy`.
    """
    for policy in manifest.places("elastic-nodes"):
        if not policy.get("numNodes").is_absent and not policy.at("torch", "elasticPolicy").is_absent:
            yield policy.get("numNodes").finding(
                "numNodes and torch.elasticPolicy exclude each other",
                help="remove numNodes, or the elasticPolicy",
                field="spec.mlPolicy",
                related=policy.at("torch", "elasticPolicy").as_other_half,
                at_key=True,
            )


@rule("TJ036", "injected-node-container", stage=Stage.ADMISSION)
def injected_node_container(manifest: Manifest) -> Iterator[Finding]:
    """envInjection names the container `node`.

    The PET_* variables are always set in the container `node`; envInjection is for other containers.

    Source: Kubeflow Trainer 2.3, CEL rule on `spec.mlPolicy.torch.envInjection.targets`.
    """
    for injected in manifest.places("injected-node"):
        for item in injected.items():
            if item.text().is_("node"):
                message = "envInjection must not name the container node, which has the variables anyway"
                yield item.finding(message, help="remove node", field=injected.field_path, fix=mending.removed(item))


@rule("TJ037", "job-set-rule", stage=Stage.ADMISSION)
def job_set_rule(manifest: Manifest) -> Iterator[Finding]:
    """The JobSet template of a runtime breaks a CEL rule of JobSet.

    `startupPolicy` with the order InOrder excludes `dependsOn`, and a claim in `volumeClaimPolicies` has metadata
    without a namespace.

    Source: JobSet 0.8 to 0.12, CEL rules that the Trainer's CRDs hold.
    """
    for spec in manifest.places("startup-or-depends"):
        depending = [
            job.get("dependsOn") for job in spec.get("replicatedJobs").items() if not job.get("dependsOn").is_absent
        ]
        if depending and spec.at("startupPolicy", "startupPolicyOrder").text().is_("InOrder"):
            yield depending[0].finding(
                "dependsOn and startupPolicyOrder: InOrder exclude each other",
                help="remove one of them",
                field=spec.field_path,
                related=spec.at("startupPolicy", "startupPolicyOrder").as_other_half,
                at_key=True,
            )
    for policy in manifest.places("claim-namespace"):
        for template in policy.get("templates").items():
            metadata = template.get("metadata")
            if metadata.is_absent or metadata.get("namespace").text().known:
                yield metadata.get("namespace").finding(
                    "a volume claim must have metadata, without a namespace",
                    help="add metadata.name" if metadata.is_absent else "remove the namespace",
                    field=policy.field_path,
                    fix=None if metadata.is_absent else mending.removed(metadata.get("namespace")),
                )
