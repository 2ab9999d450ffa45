"""Kubernetes' checks of labels, and of where the pods that a TrainJob becomes run."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage, did_you_mean, shortened, some_of
from trainlint.programs.kubeflow import name_syntax as names
from trainlint.programs.kubeflow.build import Build, BuiltJob
from trainlint.programs.kubeflow.built_value import BuiltValue
from trainlint.programs.kubeflow.facts import pods as tables
from trainlint.programs.kubeflow.facts.admission import HIGHEST_PRIORITIES
from trainlint.rule import rule

# labels


@rule("TJ533", "label", stage=Stage.CREATE, program="kubernetes")
def label(job: Build) -> Iterator[Finding]:
    """A label, an annotation or a nodeSelector is malformed.

    Keys have an optional domain before a slash and a name of at most 63 letters, digits, dashes, underscores and dots;
    values of labels look like such names, values of annotations are free. A Job sets job-name and controller-uid on its
    pods itself, and refuses other values.

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
            if problem and text and text not in tables.FINALIZERS:
                yield job.finding(name, f'finalizer "{text}" {problem}')
        for key, value in pods.template.at("metadata", "labels").entries():
            if key in tables.JOB_LABELS:
                yield job.finding(value, f"the Job sets the label {key} itself", help="remove it", at_key=True)


def _labels(job: Build, what: str, labels: BuiltValue) -> Iterator[Finding]:
    for key, value in labels.entries():
        if names.key(key):
            yield job.finding(value, f'{what} key "{key}" {names.key(key)}', at_key=True)
        if value.text is not None and names.label_value(value.text):
            yield job.finding(value, f'{what} value "{shortened(value.text)}" {names.label_value(value.text)}')


def _annotations(job: Build, annotations: BuiltValue) -> Iterator[Finding]:
    size = 0
    for key, value in annotations.entries():
        size += len(key.encode("utf-8", "replace")) + len((value.text or "").encode("utf-8", "replace"))
        if names.annotation_key(key):
            yield job.finding(value, f'annotation key "{key}" {names.annotation_key(key)}', at_key=True)
    if size > 256 * 1024:
        yield job.finding(annotations, "annotations must not be larger than 256 KiB in all")


# nodes


@rule("TJ534", "toleration", stage=Stage.CREATE, program="kubernetes")
def toleration(job: Build) -> Iterator[Finding]:
    """The fields of a toleration contradict each other.

    Without a key the operator must be Exists; Exists takes no value; tolerationSeconds needs the effect NoExecute. Keys
    and values have the syntax of labels.

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
                yield job.finding(operator, "operator Exists takes no value", help="remove the value, or use Equal")
            elif operator.text in (None, "Equal") and names.label_value(value.text or ""):
                yield job.finding(value, f'toleration value "{value}" {names.label_value(value.text or "")}')
            if part.get("tolerationSeconds").given and not effect.is_("NoExecute"):
                yield job.finding(effect, "tolerationSeconds needs effect: NoExecute")


@rule("TJ535", "affinity", stage=Stage.CREATE, program="kubernetes")
def affinity(job: Build) -> Iterator[Finding]:
    """An affinity has a malformed term.

    In and NotIn need values, Exists and DoesNotExist take no values, Gt and Lt take one and exist for nodes only; a
    term for pods needs a topologyKey; a required node affinity needs a term.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    required, preferred = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))
    for pods in job.made:
        if pods.spec.get("affinity").absent:
            continue
        node = pods.spec.at("affinity", "nodeAffinity")
        terms = node.get(required).get("nodeSelectorTerms")
        if terms.content == []:
            yield job.finding(terms, "a required node affinity needs a term in nodeSelectorTerms")
        for term in terms.items():
            yield from _node_term(job, term, "1.33..")
        for term in node.get(preferred).items():
            yield from _node_term(job, term.get("preference"), None)
        for kind in ("podAffinity", "podAntiAffinity"):
            owner = pods.spec.at("affinity", kind)
            for term in owner.get(required).items():
                yield from _pod_term(job, term)
            for term in owner.get(preferred).items():
                yield from _pod_term(job, term.get("podAffinityTerm"))


def _node_term(job: Build, term: BuiltValue, values_within: str | None) -> Iterator[Finding]:
    for part in term.get("matchExpressions").items():
        yield from _requirement(job, part, tables.NODE_OPERATORS, values_within)
    for part in term.get("matchFields").items():
        key, values = part.get("key"), part.get("values")
        if part.get("operator").known_and_not_in(("In", "NotIn")):
            yield job.finding(part.get("operator"), "matchFields takes only the operators In and NotIn")
        if key.known_and_not_in(("metadata.name",)):
            yield job.finding(key, f'matchFields can only match metadata.name, not "{key}"')
        if not values.unknown and len(values.items()) != 1:
            yield job.finding(values, "matchFields takes one value")
        for value in values.items():
            yield from job.malformed(value, names.subdomain, "node name")


def _requirement(
    job: Build, part: BuiltValue, operators: tuple[str, ...], values_within: str | None = ""
) -> Iterator[Finding]:
    """What is wrong with a term; `values_within` are the releases that check its values, as a span; None if none do."""
    operator, values, key = part.get("operator"), part.get("values"), part.get("key")
    count = len(values.items())
    if operator.known_and_not_in(operators):
        hint = did_you_mean(str(operator), operators) or f"use one of {some_of(operators, 6)}"
        yield job.finding(operator, f'operator "{operator}" does not exist', help=hint)
    elif operator.is_("In", "NotIn") and not count and not values.unknown:
        yield job.finding(values, f"operator {operator} needs values")
    elif operator.is_("Exists", "DoesNotExist") and count:
        yield job.finding(values, f"operator {operator} takes no values")
    elif operator.is_("Gt", "Lt") and count != 1 and not values.unknown:
        yield job.finding(values, f"operator {operator} takes one value")
    yield from job.malformed(key, names.key, "key")
    for value in values.items() if values_within is not None else ():
        yield from job.malformed(value, names.label_value, "value", within=values_within)


def _label_selector(job: Build, selector: BuiltValue) -> Iterator[Finding]:
    """What is wrong with a selector of labels."""
    yield from _labels(job, "selector", selector.get("matchLabels"))
    for part in selector.get("matchExpressions").items():
        yield from _requirement(job, part, tables.SELECTOR_OPERATORS)


def _pod_term(job: Build, term: BuiltValue) -> Iterator[Finding]:
    for kind in ("labelSelector", "namespaceSelector"):
        yield from _label_selector(job, term.get(kind))
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
                yield job.finding(part, f"{part} is in both matchLabelKeys and mismatchLabelKeys")
    for part in selector.get("matchExpressions").items():
        key = part.get("key").text
        if key is not None and key in taken and key in (owner.get("matchLabelKeys").texts() or []):
            yield job.finding(part.get("key"), f"{key} is in both matchLabelKeys and labelSelector")
        taken.add(key or "")


@rule("TJ536", "topology-spread", stage=Stage.CREATE, program="kubernetes")
def topology_spread(job: BuiltJob) -> Iterator[Finding]:
    """A topologySpreadConstraint has no key, or contradicts itself.

    minDomains needs whenUnsatisfiable: DoNotSchedule.

    Source: Kubernetes 1.36, validation of Jobs.
    """
    for pods in job.made:
        for part in pods.spec.get("topologySpreadConstraints").items():
            key, action = part.get("topologyKey"), part.get("whenUnsatisfiable")
            if key.is_(""):
                yield job.finding(key, "a topologySpreadConstraint needs a topologyKey")
            if part.get("minDomains").given and action.known_and_not_in(("DoNotSchedule",)):
                yield job.finding(part.get("minDomains"), "minDomains needs whenUnsatisfiable: DoNotSchedule")
            yield from _label_selector(job, part.get("labelSelector"))
            yield from _label_keys(job, part)
            selector = part.get("labelSelector")
            selected = {key for key, _ in selector.get("matchLabels").entries()}
            selected |= {item.get("key").text or "" for item in selector.get("matchExpressions").items()}
            for item in part.get("matchLabelKeys").items():
                if item.text in selected:
                    yield job.finding(item, f"{item} is in both matchLabelKeys and labelSelector", within="..1.33")


@rule("TJ537", "scheduling-gate", stage=Stage.CREATE, program="kubernetes")
def scheduling_gate(job: Build) -> Iterator[Finding]:
    """A scheduling gate is malformed, listed twice, or set beside nodeName.

    Source: Kubernetes 1.36, validation of Jobs and pods.
    """
    for pods in job.made:
        gates = [gate.get("name") for gate in pods.spec.get("schedulingGates").items()]
        for gate in gates:
            yield from job.malformed(gate, names.key, "scheduling gate")
        if gates and pods.spec.get("nodeName").text:
            yield job.finding(pods.spec.get("nodeName"), "a pod with scheduling gates must not have a nodeName")


@rule("TJ549", "unknown-priority-class", stage=Stage.CREATE, program="kubernetes")
def unknown_priority_class(job: BuiltJob) -> Iterator[Finding]:
    """The pods name a priority class that the cluster does not have.

    The pods are refused again and again. Only the cluster knows its classes: this is checked where the settings list
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
