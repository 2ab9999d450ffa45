"""Admission as a whole: several releases, several alternatives, patches, what hides what."""

from __future__ import annotations

from pathlib import Path

import pytest

from train_jobs import cluster_runtime, train_job
from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Finding, Severity
from trainlint.programs.kubeflow.facts.release import RELEASES
from trainlint.report import Report
from trainlint.settings import Overrides

JOB = train_job()
RUNTIME = cluster_runtime("own")


def checked(folder: Path, *texts: str, target: str = "", runtimes: str = "open") -> Report:
    """A repository of one file, linted with the rules on admission."""
    (folder / "job.yaml").write_text("---\n".join(texts), encoding="utf-8")
    targets = parse_target(f"kubeflow-trainer={target}") if target else {}
    return lint([folder], Overrides(targets=targets, runtimes=runtimes, select=("TJ0", "TJ1", "TJ2", "YD", "TT")))


def errors(report: Report) -> list[Finding]:
    """The errors of the Trainer."""
    return [f for f in report.findings if f.level is Severity.ERROR and f.program == "kubeflow-trainer"]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ("  trainer: {numNodes: many}\n", "spec.trainer.numNodes"),
        ("  trainer: {numNodes: yes}\n", "spec.trainer.numNodes"),
        ("  trainer: {command: tune run}\n", "spec.trainer.command"),
        ("  trainer: {command: [tune, 1]}\n", "spec.trainer.command[1]"),
        ("  trainer: {args: [true]}\n", "spec.trainer.args[0]"),
        ("  trainer: {args: {lr: 1}}\n", "spec.trainer.args.lr"),
        ("  trainer: {env: [{name: 1}]}\n", "spec.trainer.env[0].name"),
        ("  trainer: {env: [PET_NNODES]}\n", "spec.trainer.env[0]"),
        ("  trainer: {numProcPerNode: 1.5}\n", "spec.trainer.numProcPerNode"),
        ("  trainer: {numProcPerNode: [1]}\n", "spec.trainer.numProcPerNode"),
        ("  trainer: {resourcesPerNode: 1}\n", "spec.trainer.resourcesPerNode"),
        ("  trainer: {resourcesPerNode: {limits: [gpu]}}\n", "spec.trainer.resourcesPerNode.limits"),
        ("  trainer: {resourcesPerNode: {limits: {nvidia.com/gpu: many}}}\n", None),
        ("  trainer: tune\n", "spec.trainer"),
    ],
)
def test_wrong_types_of_what_other_rules_read(release: str, fields: str, place: str | None, tmp_path: Path) -> None:
    """The rules on torchtune are silent on a value of a wrong type, so it must be refused here."""
    found = {f.yaml_path for f in errors(checked(tmp_path, JOB + fields, target=release))}
    assert (place or "spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]") in found


def test_one_finding_for_a_misspelt_required_field(tmp_path: Path) -> None:
    """The field is not reported as missing besides."""
    found = errors(checked(tmp_path, JOB.replace("runtimeRef", "runtimeref")))
    assert [(f.rule, f.field, f.help) for f in found] == [("TJ011", "spec.runtimeref", 'did you mean "runtimeRef"?')]


def test_field_of_another_release(tmp_path: Path) -> None:
    """One finding that names the release, and what this one has instead."""
    overrides = "  podTemplateOverrides:\n    - targetJobs: [{name: node}]\n      spec: {nodeSelector: {a: b}}\n"
    (first,) = errors(checked(tmp_path, JOB + overrides, target="2.3"))
    assert first.message == "spec has no field podTemplateOverrides; Kubeflow Trainer 2.1 has it"
    assert first.help == "write runtimePatches, whose entries look different"


def test_a_field_that_one_release_has_alone_states_it(tmp_path: Path) -> None:
    """Where nothing else states a release, the job is for the one whose field it has."""
    overrides = "  podTemplateOverrides:\n    - targetJobs: [{name: node}]\n      spec: {nodeSelector: {a: b}}\n"
    report = checked(tmp_path, JOB + overrides)
    assert report.findings == ()
    assert report.targets["kubeflow-trainer"].versions == ("2.1",)


def test_what_some_releases_refuse_is_a_warning_that_names_them(tmp_path: Path) -> None:
    """Where nothing states the release: an error needs them all."""
    report = checked(tmp_path, JOB + "  trainer: {numProcPerNode: auto}\n  managedBy: me\n")
    said = {f.field: (f.level.value, f.releases) for f in report.active}
    assert said["spec.trainer.numProcPerNode"] == ("warning", "since 2.2")
    assert said["spec.managedBy"] == ("error", "2.0 to 2.3")
    (notice,) = report.notices
    assert "no file states the release of Kubeflow Trainer: checked for 2.0 to 2.3" in notice


def test_several_releases_are_named(tmp_path: Path) -> None:
    """Each finding says which of the targeted releases refuse."""
    report = checked(tmp_path, JOB + "  trainer: {numProcPerNode: gpu}\n  labels: {a: b}\n", target="2.0,2.1,2.2,2.3")
    said = {(f.field, f.program_versions) for f in errors(report)}
    assert said == {("spec.labels", ("2.2", "2.3")), ("spec.trainer.numProcPerNode", ("2.2", "2.3"))}


def test_templates_are_silent(tmp_path: Path) -> None:
    """What is filled in later is neither wrong nor missing, and hides what depends on it."""
    text = JOB.replace("tune", "${NAME}").replace("torch-distributed", "<RUNTIME>") + (
        "  managedBy: ${MANAGER}\n  trainer:\n    numNodes: ${NODES}\n    args: ${ARGS}\n    ${EXTRA}: 1\n"
        "  initializer:\n    model: {storageUri: '${URI}'}\n"
    )
    assert checked(tmp_path, text, runtimes="closed").findings == ()


def test_template_in_a_runtime(tmp_path: Path) -> None:
    """A job of an unknown name may be the one that is asked for."""
    runtime = RUNTIME.replace("- name: node\n          template", "- name: ${JOB}\n          template")
    job = JOB.replace("torch-distributed", "own") + "  initializer: {model: {}}\n"
    assert checked(tmp_path, runtime, job).findings == ()


def test_nothing_else_is_said_of_a_job_without_runtime(tmp_path: Path) -> None:
    """The webhook answers that alone."""
    job = JOB.replace("torch-distributed", "missing") + "  initializer: {model: {}}\n  trainer: {numNodes: 0}\n"
    (found,) = errors(checked(tmp_path, job, runtimes="closed"))
    assert (found.rule, found.field) == ("TJ101", "spec.runtimeRef")


def test_definitions_that_disagree(tmp_path: Path) -> None:
    """With two definitions in two files a finding counts where it holds for both; in one file the later one counts."""
    job = JOB.replace("torch-distributed", "own") + "  initializer: {model: {}}\n"
    model = RUNTIME.replace(
        "- name: node\n          template", "- name: model-initializer\n          template"
    ).replace(
        "- name: node\n",
        "- name: model-initializer\n                      volumeMounts: [{name: initializer, mountPath: /w}]\n",
    )
    model = model.replace("ancestor-step: trainer", "ancestor-step: model-initializer")
    (tmp_path / "other.yaml").write_text(model, encoding="utf-8")
    assert [f.rule for f in errors(checked(tmp_path, RUNTIME, job))] == []
    (tmp_path / "other.yaml").unlink()
    assert [f.rule for f in errors(checked(tmp_path, model, RUNTIME, job))] == ["TJ111"]
    assert [f.rule for f in errors(checked(tmp_path, RUNTIME, model, job))] == []


@pytest.mark.parametrize(
    "listed",
    [
        "patches:\n  - path: patch.yaml\n",
        "patchesStrategicMerge:\n  - overlay/../patch.yaml\n",
        "patches:\n  - path: patch.yaml\n    target: {kind: TrainJob}\n",
    ],
)
def test_kustomize_patch(listed: str, tmp_path: Path) -> None:
    """Only what a patch says is checked; the runtime that one patches is not known."""
    patch = JOB[: JOB.index("  runtimeRef")] + "  trainer:\n    numNode: 2\n    env:\n      - value: x\n"
    (tmp_path / "patch.yaml").write_text(patch, encoding="utf-8")
    (tmp_path / "kustomization.yaml").write_text(f"resources: [job.yaml]\n{listed}", encoding="utf-8")
    found = errors(checked(tmp_path, JOB, runtimes="closed"))
    assert [(Path(f.path).name, f.field) for f in found] == [("patch.yaml", "spec.trainer.numNode")]


def test_kustomize_patch_of_a_runtime(tmp_path: Path) -> None:
    """A job on a runtime that a patch changes is not judged by what the runtime lacks."""
    job = JOB.replace("torch-distributed", "own") + "  initializer: {model: {}}\n"
    patch = RUNTIME[: RUNTIME.index("  mlPolicy")] + "  podGroupPolicy: {coscheduling: {}}\n"
    (tmp_path / "patch.yaml").write_text(patch, encoding="utf-8")
    (tmp_path / "kustomization.yml").write_text("patches:\n  - path: patch.yaml\n", encoding="utf-8")
    assert checked(tmp_path, RUNTIME, job).findings == ()


def test_settings_of_the_cluster(tmp_path: Path) -> None:
    """Runtimes and priority classes that the cluster has."""
    volcano = RUNTIME.replace(
        "  template:\n    spec:", "  podGroupPolicy: {volcano: {}}\n  template:\n    spec:", 1
    ).replace("                  containers", "                  priorityClassName: high\n                  containers")
    jobs = JOB.replace("torch-distributed", "own"), JOB.replace("torch-distributed", "installed").replace("tune", "b")
    report = checked(tmp_path, volcano, *jobs)
    assert [(f.rule, f.level) for f in report.findings] == [("TJ162", Severity.NOTE), ("TJ101", Severity.NOTE)]
    settings = tmp_path / "trainlint.toml"
    settings.write_text('[cluster]\nruntimes = ["installed"]\npriority-classes = ["low"]\n', encoding="utf-8")
    assert [(f.rule, f.level) for f in checked(tmp_path, volcano, *jobs).findings] == [("TJ162", Severity.ERROR)]
    settings.write_text('[cluster]\nruntimes = ["installed"]\npriority-classes = ["high"]\n', encoding="utf-8")
    assert checked(tmp_path, volcano, *jobs, runtimes="closed").findings == ()


def test_items_of_a_list(tmp_path: Path) -> None:
    """Each item is an object of its own, with its own paths."""
    item = "  " + JOB.replace("\n", "\n  ").rstrip() + "\n    foo: 1\n"
    text = "apiVersion: v1\nkind: List\nitems:\n- " + item.lstrip()
    (found,) = errors(checked(tmp_path, text))
    assert (found.field, found.yaml_path, found.span.line) == ("spec.foo", "items[0].spec.foo", 11)


def test_alias_is_reported_where_it_is_used(tmp_path: Path) -> None:
    """With the anchor as a related place."""
    text = JOB + "  trainer:\n    resourcesPerNode:\n      limits: &r {cpu: many}\n      requests: *r\n"
    first, second = errors(checked(tmp_path, text))
    assert [(f.span.line, f.span.column, f.field) for f in (first, second)] == [
        (10, 24, "spec.trainer.resourcesPerNode.limits.cpu"),
        (11, 17, "spec.trainer.resourcesPerNode.requests.cpu"),
    ]
    assert [related.span.line for related in second.related] == [10]


def test_null_resource_counts_nothing(tmp_path: Path) -> None:
    """It is dropped before anyone counts GPUs."""
    job = JOB.replace("torch-distributed", "torchtune-llama3.2-1b") + (
        "  trainer:\n    command: [tune, run]\n    args: [model.quantize_base=True]\n"
        "    resourcesPerNode: {limits: {nvidia.com/gpu: null}}\n"
    )
    fields = {f.field for f in errors(checked(tmp_path, job, target="2.3"))}
    assert fields == {"spec.trainer.numProcPerNode", "spec.trainer.resourcesPerNode"}
