"""Known findings that do not count."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainlint.cli import main
from trainlint.engine import lint

JOB = """apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec:
  runtimeRef: {name: torchtune-llama3.2-1b}
  trainer: {command: [tune, run], numNodes: 2, numProcPerNode: 1}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(JOB, encoding="utf-8")
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(main, args)


def test_only_new_findings_count() -> None:
    written = run("--baseline", "known.json", "--write-baseline")
    assert written.exit_code == 0
    assert written.stderr.endswith("trainlint: known.json holds 1 finding\n")
    assert run("--baseline", "known.json").exit_code == 0
    Path("job.yaml").write_text(f"# moved\n\n{JOB}---\n{JOB}", encoding="utf-8")
    result = run("--baseline", "known.json", "--format", "json")
    document = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [f["line"] for f in document["findings"]] == [15]
    assert document["summary"]["baselined"] == 1


def test_a_baseline_holds_a_finding_as_often_as_it_was_found() -> None:
    Path("job.yaml").write_text(f"{JOB}---\n{JOB}", encoding="utf-8")
    run("--baseline", "known.json", "--write-baseline")
    assert run("--baseline", "known.json").exit_code == 0


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"version": 9, "findings": []}',
        '{"version": 2, "findings": [1]}',
        '{"version": 2, "findings": [{"path": "a"}]}',
        '{"version": 3, "findings": [{"path": "a", "rule": "b", "field": "c", "content": "d"}]}',
    ],
)
def test_what_is_no_baseline(content: str) -> None:
    Path("known.json").write_text(content, encoding="utf-8")
    result = run("--baseline", "known.json")
    assert result.exit_code == 2
    assert "known.json: not a baseline" in result.stderr


def test_a_moved_file_keeps_its_rows() -> None:
    run("--baseline", "known.json", "--write-baseline")
    Path("jobs").mkdir()
    Path("job.yaml").rename("jobs/renamed.yaml")
    assert run("--baseline", "known.json").exit_code == 0


def test_a_copy_is_new() -> None:
    run("--baseline", "known.json", "--write-baseline")
    Path("copy.yaml").write_text(JOB, encoding="utf-8")
    assert run("--baseline", "known.json").exit_code == 1


def test_another_value_at_the_same_place_is_new() -> None:
    run("--baseline", "known.json", "--write-baseline")
    Path("job.yaml").write_text(JOB.replace("numNodes: 2", "numNodes: 3"), encoding="utf-8")
    assert run("--baseline", "known.json").exit_code == 1


def test_another_job_of_the_file_is_new() -> None:
    run("--baseline", "known.json", "--write-baseline")
    Path("job.yaml").write_text(JOB.replace("name: tune}", "name: other}"), encoding="utf-8")
    assert run("--baseline", "known.json").exit_code == 1


def test_a_baseline_of_an_older_release() -> None:
    """It is read, holds nothing, and a notice says how to write it anew."""
    Path("known.json").write_text('{"version": 1, "findings": [{"fingerprint": "0"}]}', encoding="utf-8")
    result = run("--baseline", "known.json")
    assert result.exit_code == 1
    assert "write it again with --baseline known.json --write-baseline" in result.stderr


def rows(file: str = "known.json") -> list[list[str]]:
    return [list(row.values()) for row in json.loads(Path(file).read_text())["findings"]]


def test_a_row_is_a_line_with_rule_path_field_and_fingerprint() -> None:
    """Sorted, so that two branches that add findings change the same lines only where these are neighbours."""
    Path("a.yaml").write_text(JOB.replace("numProcPerNode: 1", "numProcPerNode: 0"), encoding="utf-8")
    run("--baseline", "known.json", "--write-baseline")
    document = json.loads(run("--format", "json").stdout)
    prints = [row[3] for row in rows()]
    assert [row[:3] for row in rows()] == [
        ["a.yaml", "TJ503", "spec.trainer.numProcPerNode"],
        ["a.yaml", "TT102", "spec.trainer.numNodes"],
        ["job.yaml", "TT102", "spec.trainer.numNodes"],
    ]
    assert prints[1] == prints[2], "a fingerprint does not hold the path"
    assert not set(prints) & {f["fingerprint"] for f in document["findings"]}
    lines = Path("known.json").read_text().splitlines()
    assert [lines[0], lines[1], lines[2], *lines[6:]] == ["{", ' "version": 3,', ' "findings": [', " ]", "}"]
    assert lines[3] == (
        '  {"path": "a.yaml", "rule": "TJ503", "field": "spec.trainer.numProcPerNode", '
        f'"fingerprint": "{prints[0]}"}},'
    )


def test_an_empty_baseline() -> None:
    Path("job.yaml").unlink()
    run("--baseline", "known.json", "--write-baseline")
    assert Path("known.json").read_text() == '{\n "version": 3,\n "findings": [ ]\n}\n'
    assert run("--baseline", "known.json").exit_code == 0


@pytest.mark.parametrize("marker", [".git", "trainlint.toml"])
def test_paths_are_those_of_the_workspace(folder: Path, monkeypatch: pytest.MonkeyPatch, marker: str) -> None:
    """Wherever the run starts, and however the files are named."""
    (folder / marker).mkdir() if marker == ".git" else (folder / marker).write_text("")
    (folder / "inner").mkdir()
    Path("job.yaml").rename("inner/job.yaml")
    run("--baseline", "known.json", "--write-baseline")
    written = rows()
    assert [row[0] for row in written] == ["inner/job.yaml"]
    monkeypatch.chdir(folder / "inner")
    assert run("--baseline", "../known.json", ".").exit_code == 0
    assert run("--baseline", "../known.json", "job.yaml").exit_code == 0
    assert run("--baseline", "../known.json", str(folder)).exit_code == 0
    run("--baseline", "../known.json", "--write-baseline", "job.yaml")
    assert rows("../known.json") == written


def test_a_nested_workspace_is_part_of_its_repository(folder: Path) -> None:
    """Two files of the same name in two workspaces have rows of their own."""
    (folder / ".git").mkdir()
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "trainlint.toml").write_text("")
        (folder / name / "job.yaml").write_text(JOB)
    Path("job.yaml").unlink()
    run("--baseline", "known.json", "--write-baseline", "a")
    assert [row[0] for row in rows()] == ["a/job.yaml"]
    result = run("--baseline", "known.json", "--format", "json")
    assert [f["path"] for f in json.loads(result.stdout)["findings"]] == ["b/job.yaml"]


def test_what_is_gone_is_counted_and_dropped() -> None:
    both = JOB.replace("numProcPerNode: 1", "numProcPerNode: 0")
    Path("job.yaml").write_text(both, encoding="utf-8")
    Path("b.yaml").write_text(both, encoding="utf-8")
    run("--baseline", "known.json", "--write-baseline")
    assert "gone" not in run("--baseline", "known.json").stderr
    Path("job.yaml").write_text(JOB.replace("numNodes: 2", "numNodes: 1"), encoding="utf-8")
    told = run("--baseline", "known.json", "--format", "json")
    notice = "2 findings of known.json are gone: --update-baseline drops them"
    assert f"trainlint: {notice}\n" in told.stderr
    assert notice in json.loads(told.stdout)["notices"]
    assert len(rows()) == 4
    updated = run("--baseline", "known.json", "--update-baseline")
    assert updated.exit_code == 0
    assert "trainlint: known.json holds 2 findings, 2 dropped\n" in updated.stderr
    assert "gone" not in updated.stderr
    assert [row[:2] for row in rows()] == [["b.yaml", "TJ503"], ["b.yaml", "TT102"]]
    Path("b.yaml").unlink()
    one = run("--baseline", "known.json", "--ignore", "TT102")
    assert "trainlint: 1 finding of known.json is gone: --update-baseline drops it\n" in one.stderr


def test_what_a_run_does_not_look_at_is_not_gone() -> None:
    """Files that are not named, rules that are left out, stages that are not asked for, other findings."""
    Path("b").mkdir()
    Path("b/b.yaml").write_text(JOB, encoding="utf-8")
    run("--baseline", "known.json", "--write-baseline")
    Path("b/b.yaml").write_text(JOB.replace("numNodes: 2", "numNodes: 1"), encoding="utf-8")
    for args in (["job.yaml"], ["--select", "TJ"], ["--ignore", "TT102"], ["--per-file-ignores", "b/:TT"]):
        assert "gone" not in run("--baseline", "known.json", *args).stderr, args
        assert "2 findings, 0 dropped" in run("--baseline", "known.json", "--update-baseline", *args).stderr
    assert "gone" not in run("--baseline", "known.json", "--stage", "save").stderr
    for args in (["."], ["b"], ["b/b.yaml"]):
        assert "1 finding of known.json is gone" in run("--baseline", "known.json", *args).stderr, args


def test_a_part_is_written_beside_the_rest() -> None:
    """What a run with paths, other rules or excludes does not look at stays in the file."""
    Path("b").mkdir()
    both = JOB.replace("numProcPerNode: 1", "numProcPerNode: 0")
    Path("job.yaml").write_text(both, encoding="utf-8")
    Path("b/b.yaml").write_text(both, encoding="utf-8")
    run("--baseline", "known.json", "--write-baseline")
    whole = rows()
    assert len(whole) == 4
    for args in (["b"], ["job.yaml"], ["--select", "TJ503"], ["--ignore", "TT"], ["--exclude", "b/"]):
        told = run("--baseline", "known.json", "--write-baseline", *args)
        assert "known.json holds 4 findings, 2 of them of what this run did not look at" in told.stderr, args
        assert rows() == whole, args
    Path("b/b.yaml").write_text(JOB, encoding="utf-8")
    run("--baseline", "known.json", "--write-baseline", "b")
    assert [row[:2] for row in rows()] == [["b/b.yaml", "TT102"], ["job.yaml", "TJ503"], ["job.yaml", "TT102"]]
    assert run("--baseline", "known.json", "--write-baseline").stderr.endswith("known.json holds 3 findings\n")


def test_what_is_no_baseline_is_written_anew() -> None:
    """As after a merge with conflicts."""
    Path("known.json").write_text("<<<<<<< HEAD\n", encoding="utf-8")
    assert run("--baseline", "known.json", "--write-baseline", "job.yaml").exit_code == 0
    assert len(rows()) == 1


def test_a_file_that_may_have_moved_keeps_its_rows() -> None:
    """A run of the old folder alone does not know where it is; one of all paths does."""
    for name in ("old", "new"):
        Path(name).mkdir()
    Path("job.yaml").rename("old/job.yaml")
    run("--baseline", "known.json", "--write-baseline")
    Path("old/job.yaml").rename("new/job.yaml")
    for option in ("--update-baseline", "--write-baseline"):
        done = run("--baseline", "known.json", option, "old")
        assert "known.json holds 1 finding" in done.stderr
        assert [row[0] for row in rows()] == ["old/job.yaml"]
    assert "gone" not in run("--baseline", "known.json", "old").stderr
    run("--baseline", "known.json", "--write-baseline", "new")
    assert [row[0] for row in rows()] == ["new/job.yaml"]
    Path("new/job.yaml").unlink()
    assert "1 finding of known.json is gone" in run("--baseline", "known.json").stderr


def test_a_baseline_that_git_ignores_is_told(folder: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    told = "known.json is ignored by git: others have it only after git add --force known.json"
    assert told not in run("--baseline", "known.json", "--write-baseline").stderr
    Path(".gitignore").write_text("*.json\n", encoding="utf-8")
    assert told in run("--baseline", "known.json", "--write-baseline").stderr
    subprocess.run(["git", "add", "--force", "known.json"], cwd=folder, check=True)
    assert told not in run("--baseline", "known.json", "--write-baseline").stderr


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_a_baseline_is_written_as_a_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is ended leaves the old one; a mode and a link stay."""
    run("--baseline", "known.json", "--write-baseline")
    Path("known.json").chmod(0o640)
    Path("link.json").symlink_to("known.json")
    before = Path("known.json").read_text(encoding="utf-8")
    Path("job.yaml").write_text(JOB.replace("numProcPerNode: 1", "numProcPerNode: 0"), encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr("os.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run("--baseline", "known.json", "--write-baseline").exit_code == 130
    assert Path("known.json").read_text(encoding="utf-8") == before
    assert sorted(path.name for path in folder.iterdir()) == ["job.yaml", "known.json", "link.json"]
    run("--baseline", "link.json", "--write-baseline")
    assert (Path("link.json").is_symlink(), len(rows())) == (True, 2)
    assert Path("known.json").stat().st_mode & 0o777 == 0o640


def test_an_update_adds_nothing_and_follows_moved_files() -> None:
    run("--baseline", "known.json", "--write-baseline")
    Path("job.yaml").rename("moved.yaml")
    Path("new.yaml").write_text(JOB.replace("name: tune}", "name: other}"), encoding="utf-8")
    result = run("--baseline", "known.json", "--update-baseline")
    assert result.exit_code == 1
    assert "known.json holds 1 finding, 0 dropped" in result.stderr
    assert [row[0] for row in rows()] == ["moved.yaml"]


def test_severities_count_before_the_baseline() -> None:
    """A rule that is off has no row, and one that is a warning keeps its row."""
    run("--baseline", "known.json", "--write-baseline")
    Path("trainlint.toml").write_text('severity = {TT102 = "warning"}')
    assert run("--baseline", "known.json", "--fail-on", "warning").exit_code == 0
    Path("trainlint.toml").write_text('severity = {TT102 = "off"}')
    run("--baseline", "known.json", "--write-baseline")
    assert rows() == []


def test_rows_of_version_2_are_read() -> None:
    """They hold the fingerprint without the path beside the other one."""
    run("--baseline", "known.json", "--write-baseline")
    ((path, rule, field, fingerprint),) = rows()
    row = {"path": path, "rule": rule, "field": field, "fingerprint": "0", "content": fingerprint}
    Path("known.json").write_text(json.dumps({"version": 2, "findings": [row]}), encoding="utf-8")
    assert run("--baseline", "known.json").exit_code == 0


def test_rows_name_no_file_outside(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whether such a file exists shows in nothing: its row is never taken for that of a moved file."""
    (folder / ".git").mkdir()
    outside = tmp_path_factory.mktemp("outside")
    run("--baseline", "known.json", "--write-baseline")
    text = Path("known.json").read_text()
    for name in ("there", "not-there"):
        (outside / "there").write_text("")
        Path("known.json").write_text(text.replace("job.yaml", f"{outside}/{name}"))
        assert run("--baseline", "known.json").exit_code == 1


def test_wrong_use() -> None:
    for option in ("--write-baseline", "--update-baseline"):
        done = run(option)
        assert done.exit_code == 2
        assert done.stderr == f"trainlint: {option} needs --baseline FILE, or the setting baseline\n"
    both = run("--baseline", "a.json", "--write-baseline", "--update-baseline")
    assert both.exit_code == 2
    assert "--write-baseline and --update-baseline exclude each other." in both.stderr
    for name, *value in (["--baseline", "a.json"], ["--update-baseline"], ["--write-baseline"]):
        assert run("--no-baseline", name, *value).stderr.endswith(f"--no-baseline and {name} exclude each other.\n")
    assert run("--baseline", "nowhere.json").exit_code == 2
    assert run("--baseline", "no/where.json", "--write-baseline").exit_code == 2


def test_the_settings_name_a_baseline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("trainlint.toml").write_text('baseline = "known/base.json"\n', encoding="utf-8")
    missing = run()
    assert missing.exit_code == 2
    assert missing.stderr.endswith("base.json: there is no such baseline; write it with --write-baseline\n")
    Path("known").mkdir()
    assert run("--write-baseline").stderr.endswith("trainlint: known/base.json holds 1 finding\n")
    assert run().exit_code == 0
    assert list(lint([folder]).active) == []
    assert run("--no-baseline").exit_code == 1
    Path("jobs").mkdir()
    Path("jobs/new.yaml").write_text(JOB, encoding="utf-8")
    assert run().exit_code == 1
    assert run("--isolated", "job.yaml").exit_code == 1
    monkeypatch.chdir("known")
    assert run("../job.yaml").exit_code == 0


def test_each_workspace_has_a_baseline_of_its_own() -> None:
    for name in ("one", "two"):
        Path(name).mkdir()
        Path(name, "job.yaml").write_text(JOB, encoding="utf-8")
        Path(name, "trainlint.toml").write_text('baseline = "base.json"\n', encoding="utf-8")
        assert run("--write-baseline", name).exit_code == 0
    assert run("two/job.yaml", "one/job.yaml").exit_code == 0
    Path("job.yaml").unlink()
    assert json.loads(run("one", "two", "--format", "json").stdout)["summary"]["baselined"] == 2


@pytest.mark.parametrize("named", ["../base.json", "/etc/passwd", "out.json", "pipe"])
def test_a_baseline_of_the_settings_is_in_the_repository(folder: Path, named: str) -> None:
    inner = folder / "inner"
    inner.mkdir()
    if named == "out.json":
        inner.joinpath(named).symlink_to(folder / "base.json")
    elif named == "pipe" and hasattr(os, "mkfifo"):
        os.mkfifo(inner / named)
    (folder / "base.json").write_text("[]", encoding="utf-8")
    (inner / "trainlint.toml").write_text(f"baseline = {json.dumps(named)}\n", encoding="utf-8")
    (inner / "job.yaml").write_text(JOB, encoding="utf-8")
    for option in ([], ["--write-baseline"]):
        done = run("inner", *option)
        assert done.exit_code == 2
        assert "inner/trainlint.toml:1: " in done.stderr
    assert (folder / "base.json").read_text(encoding="utf-8") == "[]"


def test_what_is_known_is_not_fixed() -> None:
    """Nor is it shown as fixable; a fix that is wanted needs --no-baseline."""
    Path("job.yaml").write_text(JOB.replace("numNodes", "num_nodes"), encoding="utf-8")
    before = Path("job.yaml").read_bytes()
    Path("trainlint.toml").write_text('baseline = "base.json"\n', encoding="utf-8")
    run("--write-baseline")
    assert run("--diff").exit_code == 0
    assert run("--fix").exit_code == 0
    assert Path("job.yaml").read_bytes() == before
    assert run("--diff", "--no-baseline").exit_code == 1
    assert run("--fix", "--no-baseline", "--unsafe-fixes").stderr.startswith("trainlint: fixed 1 finding\n")
