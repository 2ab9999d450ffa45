"""Whole runs: workspaces, runtimes, targets, suppression, trouble."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Severity
from trainlint.programs.kubeflow.objects import TrainJob
from trainlint.report import Report
from trainlint.reports import render
from trainlint.repository.bounds import Bounds
from trainlint.settings import Overrides, SettingsError
from trainlint.targets import How, Target

JOB = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: tune}}
spec:
  runtimeRef: {{name: {runtime}}}
  trainer: {{command: [tune, run], numNodes: {nodes}}}
"""
RUNTIME = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {{name: {name}}}
spec:
  mlPolicy: {{{policy}}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: trainer}}}}
          spec: {{template: {{spec: {{containers: [{{name: node, image: example}}]}}}}}}
"""


def write(folder: Path, **files: str) -> None:
    for name, content in files.items():
        file = folder / f"{name}.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")


def found(report: Report) -> list[tuple[str, int, str]]:
    return [(Path(f.path).name, f.span.line, f.rule) for f in report.findings]


def closed(**targets: str) -> Overrides:
    return Overrides(
        runtimes="closed", targets={name.replace("_", "-"): Target((version,)) for name, version in targets.items()}
    )


def job(runtime: str = "torchtune-llama3.2-1b", nodes: object = 2) -> str:
    return JOB.format(runtime=runtime, nodes=nodes)


def newest() -> Overrides:
    return Overrides(targets=parse_target("kubeflow-trainer=2.3"))


def torch(name: str) -> str:
    return RUNTIME.format(name=name, policy="numNodes: 1, torch: {}")


def test_counts_and_targets(tmp_path: Path) -> None:
    write(tmp_path, job=job(), other="a: 1\n", crd="# trainer.kubeflow.org\nkind: Other\n")
    report = lint([tmp_path])
    assert found(report) == [("job.yaml", 6, "TT102")]
    assert (report.files.discovered, report.files.parsed, report.files.recognised) == (3, 2, 1)
    assert report.targets == {
        "kubeflow-trainer": Target(("2.0", "2.1", "2.2", "2.3"), "default", How.NOT_STATED),
        "torchtune": Target(("0.6.1",), "the image of Kubeflow Trainer", How.STATED),
    }


def test_a_runtime_is_found_in_another_file_that_is_not_linted(tmp_path: Path) -> None:
    write(tmp_path, job=job("torchtune-mistral-7b"), runtime=torch("torchtune-mistral-7b"))
    (tmp_path / ".git").mkdir()
    report = lint([tmp_path / "job.yaml"])
    assert {f.rule for f in report.findings} == {"TT101", "TT102"}
    assert report.files.discovered == 1


def test_a_lone_file_has_what_lies_beside_it(tmp_path: Path) -> None:
    write(tmp_path, job=job("torchtune-mistral-7b"))
    write(tmp_path / "deep", runtime=torch("torchtune-mistral-7b"))
    assert "TJ101" in {f.rule for f in lint([tmp_path / "job.yaml"]).findings}
    assert "TT101" in {f.rule for f in lint([tmp_path]).findings}
    write(tmp_path, runtime=torch("torchtune-mistral-7b"))
    assert "TT101" in {f.rule for f in lint([tmp_path / "job.yaml"]).findings}


def test_a_runtime_that_is_found_nowhere(tmp_path: Path) -> None:
    write(tmp_path, job=job("own"))
    (note,) = lint([tmp_path]).findings
    assert (note.rule, note.level.value) == ("TJ101", "note")
    (error,) = lint([tmp_path], closed()).findings
    assert (error.rule, error.level.value, error.field) == ("TJ101", "error", "spec.runtimeRef")


def test_with_closed_runtimes_order_counts_within_a_file(tmp_path: Path) -> None:
    write(tmp_path, both=f"{job('own', 1)}---\n{torch('own')}")
    assert {f.level.value for f in lint([tmp_path], newest()).findings} == {"error"}
    assert [f.rule for f in lint([tmp_path], closed()).findings] == ["TJ101"]


def test_overlays_must_agree(tmp_path: Path) -> None:
    mpi = RUNTIME.format(name="torchtune-mistral-7b", policy="numNodes: 1")
    write(tmp_path, job=job("torchtune-mistral-7b"), base=torch("torchtune-mistral-7b"), overlay=mpi)
    assert lint([tmp_path]).findings == ()


def test_a_namespaced_runtime_is_looked_up_in_the_jobs_namespace(tmp_path: Path) -> None:
    namespaced = torch("own").replace("ClusterTrainingRuntime", "TrainingRuntime")
    ours = job("own", 1).replace("{name: own}", "{name: own, kind: TrainingRuntime}")
    write(tmp_path, runtime=namespaced.replace("{name: own}", "{name: own, namespace: default}"), job=ours)
    assert "TJ101" not in {f.rule for f in lint([tmp_path], closed()).findings}
    write(tmp_path, job=ours.replace("{name: tune}", "{name: tune, namespace: team}"))
    assert "TJ101" in {f.rule for f in lint([tmp_path], closed()).findings}


def test_releases_merge_where_they_agree(tmp_path: Path) -> None:
    write(tmp_path, job=job(nodes="2, numProcPerNode: 1, args: [output_dir=/x]"))
    targets = {"kubeflow-trainer": Target(("2.1.0", "2.2", "2.3"), "option")}
    report = lint([tmp_path], Overrides(targets=targets, select=("TT",)))
    assert {f.rule: f.program_versions for f in report.findings} == {
        "TT102": ("2.1", "2.2", "2.3"),
        "TT106": ("2.3",),
    }


@pytest.mark.parametrize(
    ("version", "notice", "count"),
    [("2.3.9", None, 1), ("2", None, 1), ("3.0", "newer than 2.3", 1), ("1.9", "older than 2.0", 0)],
)
def test_versions_that_are_not_known(tmp_path: Path, version: str, notice: str | None, count: int) -> None:
    write(tmp_path, job=job())
    report = lint([tmp_path], Overrides(targets={"kubeflow-trainer": Target((version,), "option")}, select=("TT102",)))
    assert len(report.findings) == count
    assert [notice in n for n in report.notices] == [True] if notice else not report.notices


ACCELERATE = "compute_environment: LOCAL_MACHINE\nnum_processes: 8\n"
SHARDED = "distributed_type: FSDP\nfsdp_config:\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # No wrap policy is missing: it stands below the misspelt section.
        (ACCELERATE + SHARDED.replace("fsdp_config", "fsdp_confg"), [(4, "FS101")]),
        (ACCELERATE + SHARDED.replace("fsdp_auto_wrap_policy", "fsdp_auto_wrap_polcy"), [(5, "FS001")]),
        (ACCELERATE + SHARDED.replace("distributed_type", "distributed_typ"), [(3, "FS101")]),
        # What is missing all the same is told.
        (ACCELERATE + "distributed_type: FSDP\nnum_machine: 1\n", [(3, "FS024"), (4, "FS101")]),
        # That data.train is missing is an error, and the misspelt key but a warning: the error stays, at the key.
        ("base: a/b\ntask: sft\ndata:\n  trainn: a.jsonl\n", [(4, "FS324")]),
    ],
)
def test_what_follows_from_a_misspelt_key_is_not_told(
    tmp_path: Path, content: str, expected: list[tuple[int, str]]
) -> None:
    write(tmp_path, config=content)
    report = lint([tmp_path], Overrides(targets={"accelerate": Target(("1.15.0",))}))
    assert sorted((f.span.line, f.rule) for f in report.findings) == sorted(expected)


def test_a_misspelt_key_of_another_file_hides_nothing(tmp_path: Path) -> None:
    """Its fix is not for the file that names it."""
    write(
        tmp_path,
        config=ACCELERATE + "distributed_type: DEEPSPEED\ndeepspeed_config: {deepspeed_config_file: ds.json}\n",
    )
    zero = '{"stage": 2, "overlap_com": true, "reduce_bucket_size": "many"}'
    (tmp_path / "ds.json").write_text(
        f'{{"train_micro_batch_size_per_gpu": 4,\n"optimizer": {{"type": "AdamX"}},\n"zero_optimization": {zero}}}\n'
    )
    report = lint([tmp_path], Overrides(targets={"accelerate": Target(("1.15.0",))}))
    assert sorted((f.span.line, f.rule) for f in report.findings) == [(2, "FS142"), (3, "FS135"), (3, "FS136")]


def test_items_of_a_list_are_subjects(tmp_path: Path) -> None:
    item = "\n".join("  " + line for line in job().splitlines()).replace("  apiVersion", "- apiVersion", 1)
    write(tmp_path, list=f"apiVersion: v1\nkind: List\nitems:\n{item}\n")
    (finding,) = lint([tmp_path]).findings
    assert (finding.field, finding.yaml_path) == ("spec.trainer.numNodes", "items[0].spec.trainer.numNodes")


def test_another_group_is_not_ours(tmp_path: Path) -> None:
    write(tmp_path, job=job().replace("trainer.kubeflow.org", "train.example.org") + "# trainer.kubeflow.org\n")
    assert lint([tmp_path]).findings == ()


def test_trouble_stops_one_file_only(tmp_path: Path) -> None:
    write(tmp_path, a=job() + "---\n" + job().replace("spec:", "spec: ["), b=job())
    (tmp_path / "c.yaml").write_bytes(b"apiVersion: trainer.kubeflow.org/v1alpha1\n\xff\n")
    (tmp_path / "d.yaml").write_bytes(b"\xff [\n")
    report = lint([tmp_path])
    assert found(report) == [
        ("a.yaml", 6, "TT102"),
        ("a.yaml", 13, "TL001"),
        ("b.yaml", 6, "TT102"),
        ("c.yaml", 2, "TL001"),
    ]
    assert {f.program for f in report.findings} == {"kubeflow-trainer"}


@pytest.mark.parametrize("hostile", ["[" * 10_000, "{" * 10_000, "- " * 5_000], ids=["brackets", "braces", "dashes"])
def test_hostile_files_end_with_a_finding(tmp_path: Path, hostile: str) -> None:
    write(tmp_path, deep=f"# trainer.kubeflow.org\n{hostile}\n")
    assert found(lint([tmp_path])) == [("deep.yaml", 2, "TL003")]


def test_an_alias_bomb_ends_with_a_finding(tmp_path: Path) -> None:
    levels = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 20))
    write(tmp_path, bomb=job() + f"extra:\n  l0: &l0 x\n{levels}")
    assert [rule for _, _, rule in found(lint([tmp_path]))] == ["TL003"]


def test_settings_of_each_workspace(tmp_path: Path) -> None:
    write(tmp_path / "one", job=job())
    write(tmp_path / "two", job=job())
    (tmp_path / "two/trainlint.toml").write_text('ignore = ["TT102"]\n', encoding="utf-8")
    assert [Path(f.path).parent.name for f in lint([tmp_path / "one", tmp_path / "two"]).findings] == ["one"]
    isolated = Overrides(isolated=True)
    assert len(lint([tmp_path / "one", tmp_path / "two"], isolated).findings) == 2


def test_a_workspace_that_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    """It is told, and the run is not whole; where there is no other one, it is an error as ever."""
    for name in ("one", "two", "three"):
        write(tmp_path / name, job=job())
    (tmp_path / "one/trainlint.toml").write_text("zzz = 1\n", encoding="utf-8")
    (tmp_path / "two/trainlint.toml").write_text("yyy = 1\n", encoding="utf-8")
    report = lint([tmp_path])
    assert [Path(finding.path).parent.name for finding in report.findings] == ["three"]
    told = [notice for notice in report.notices if notice.endswith("; nothing there is checked")]
    assert [notice.rpartition("/")[2].split(";")[0] for notice in told] == [
        "trainlint.toml:1: unknown setting 'zzz'",
        "trainlint.toml:1: unknown setting 'yyy'",
    ]
    assert report.crashed
    with pytest.raises(SettingsError, match="zzz"):
        lint([tmp_path / "one"])


@pytest.mark.parametrize(
    ("name", "content", "notice"),
    [
        ("trainlint.toml", "select = []\n", "trainlint.toml leaves none"),
        ("trainlint.toml", 'select = ["TT"]\nignore = ["TT"]\n', "no rule is used, so nothing is found"),
        ("pyproject.toml", "[tool.trainlnt]\nignore = []\n", '[tool.trainlnt] is not read, did you mean "trainlint"?'),
        ("pyproject.toml", "[tool.trainlint-x.targets]\n", "[tool.trainlint-x] is not read"),
        ("pyproject.toml", "[tool.trove]\n[tool.ruff]\n[tool.trainer]\n", ""),
        (".trainlint.toml", "select = []\n", ".trainlint.toml is not read: settings are in trainlint.toml"),
    ],
)
def test_settings_that_are_surely_not_meant(tmp_path: Path, name: str, content: str, notice: str) -> None:
    write(tmp_path, job=job())
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(content, encoding="utf-8")
    targets = {"kubeflow-trainer": Target(("2.3",), "option")}
    told = list(lint([tmp_path], Overrides(targets=targets)).notices)
    assert [notice in one for one in told] == [True] if notice else told == []
    assert not lint([tmp_path], Overrides(isolated=True, targets=targets)).notices


def test_excludes(tmp_path: Path) -> None:
    write(tmp_path, job=job(), gen=job())
    (tmp_path / "trainlint.toml").write_text('exclude = ["gen.yaml"]\n', encoding="utf-8")
    assert found(lint([tmp_path])) == [("job.yaml", 6, "TT102")]
    assert len(lint([tmp_path / "gen.yaml"]).findings) == 1
    assert lint([tmp_path / "gen.yaml"], Overrides(force_exclude=True)).findings == ()


def test_a_named_folder_is_walked_though_settings_exclude_it(tmp_path: Path) -> None:
    write(tmp_path / "build" / "deep", job=job())
    (tmp_path / "trainlint.toml").write_text('exclude = ["build/"]\n', encoding="utf-8")
    assert lint([tmp_path]).findings == ()
    assert found(lint([tmp_path / "build"])) == [("job.yaml", 6, "TT102")]
    assert lint([tmp_path / "build"], Overrides(force_exclude=True)).findings == ()


def test_a_walk_keeps_to_the_excludes_of_where_it_began(tmp_path: Path) -> None:
    (tmp_path / "trainlint.toml").write_text('exclude = ["inner/"]\n', encoding="utf-8")
    write(tmp_path / "inner", job=job())
    (tmp_path / "inner/trainlint.toml").write_text("", encoding="utf-8")
    assert lint([tmp_path]).findings == ()
    assert len(lint([tmp_path / "inner"]).findings) == 1


def test_standard_input_stands_for_its_file(tmp_path: Path) -> None:
    write(tmp_path, job=job(nodes=1), runtime=torch("torchtune-mistral-7b"))
    (tmp_path / ".git").mkdir()
    data = job("torchtune-mistral-7b", 1).encode()
    report = lint([], stdin=(tmp_path / "job.yaml", data))
    assert found(report) == [("job.yaml", 5, "TT101")]


def test_a_suppressed_finding_is_kept_apart(tmp_path: Path) -> None:
    write(tmp_path, job=job().replace("numNodes: 2}", "numNodes: 2}  # trainlint: ignore[TT102] later"))
    report = lint([tmp_path])
    assert report.suppressed == 1
    assert list(report.active) == []


def test_utf16_and_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(job().encode("utf-16"))
    (tmp_path / "b.yaml").write_bytes(job().replace("\n", "\r\n").encode())
    (tmp_path / "c.yaml").write_bytes(job().replace("\n", "\r").encode())
    assert found(lint([tmp_path])) == [(f"{name}.yaml", 6, "TT102") for name in "abc"]


@pytest.mark.parametrize(
    "line",
    ["fsdp_config: {}.json", "deepspeed: {}.json", 'fsdp_config: "a\\0{}.json"', "accelerate_config: {}"],
)
def test_a_name_that_no_file_can_have(tmp_path: Path, line: str) -> None:
    arguments = "per_device_train_batch_size: 1\nnum_train_epochs: 1\nfsdp: full_shard\n"
    command = "on: push\njobs: {{a: {{steps: [{{run: accelerate launch --config_file {0}.yaml train.py}}]}}}}\n"
    name = "x" * 400
    write(tmp_path, arguments=arguments + line.format(name) + "\n", workflow=command.format(name))
    write(tmp_path, accelerate="compute_environment: LOCAL_MACHINE\ndistributed_type: 'NO'\nnum_processes: 1\n")
    report = lint([tmp_path])
    assert not report.crashed
    assert report.files.recognised >= 2


def test_a_fault_of_ours_is_one_finding_and_all_else_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(job: TrainJob) -> bool:
        if job.name.is_("broken"):
            raise KeyError("what the file holds")
        return True

    monkeypatch.delenv("TRAINLINT_DEBUG", raising=False)
    monkeypatch.setattr(TrainJob, "runs_tune", property(fail))
    broken = job().replace("{name: tune}", "{name: broken}").replace("runtimeRef:", "unknown: 1\n  runtimeRef:")
    write(tmp_path, a=f"{job()}---\n{broken}", b=job())
    report = lint([tmp_path], newest())
    assert report.crashed
    assert found(report) == [
        ("a.yaml", 6, "TT102"),
        ("a.yaml", 8, "TL004"),
        ("a.yaml", 12, "TJ011"),
        ("b.yaml", 6, "TT102"),
    ]
    (fault,) = (finding for finding in report.findings if finding.rule == "TL004")
    assert re.fullmatch(r"internal error in T[JT]\d+: KeyError at test_engine\.py:\d+", fault.message)
    assert (fault.document, fault.level) == (1, Severity.ERROR)


def test_a_release_that_is_too_old_is_not_judged(tmp_path: Path) -> None:
    write(tmp_path, job=job(nodes=1), config=ACCELERATE + SHARDED)
    report = lint([tmp_path], Overrides(targets={"accelerate": Target(("0.1",)), "kubeflow-trainer": Target(("2.3",))}))
    assert (report.files.recognised, report.unjudged) == (2, 1)
    assert render("text", report) == "Checked 2 files: nothing found (1 file not judged).\n"
    alone = lint([tmp_path / "config.yaml"], Overrides(targets={"accelerate": Target(("0.1",))}))
    assert render("text", alone) == "Checked 1 file: nothing to judge (1 file not judged).\n"
    assert alone.notices == (
        "Accelerate 0.1 is older than 0.20.3, the oldest release that is known: its files are not checked",
    )


def test_of_several_ways_in_which_a_release_is_known_the_least_certain_is_told(tmp_path: Path) -> None:
    write(tmp_path / "one", config=ACCELERATE + SHARDED)
    write(tmp_path / "two", config=ACCELERATE + SHARDED)
    (tmp_path / "one" / "requirements.txt").write_text("accelerate==1.5.2\n", encoding="utf-8")
    (tmp_path / ".git").mkdir()
    assert lint([tmp_path]).targets["accelerate"].how is How.NOT_STATED


def test_what_has_no_word_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A config makes trainlint look for launches and for what states a release; most files can have none."""
    write(
        tmp_path,
        config="distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\n",
        other="key: value\n",
        text="Install: Accelerate\n",
        wide="a: b\n",
    )
    (tmp_path / "wide.yaml").write_bytes("run: accelerate launch --config_file config.yaml a.py\n".encode("utf-16"))
    read: Counter[str] = Counter()
    bounded = Bounds.read

    def counted(self: Bounds, path: str | Path) -> bytes:
        read[Path(path).name] += 1
        return bounded(self, path)

    monkeypatch.setattr(Bounds, "read", counted)
    lint([tmp_path])
    assert read["other.yaml"] == 1
    assert read["text.yaml"] > 1
    assert read["wide.yaml"] > 1
