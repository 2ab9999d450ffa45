"""Files outside the workspace: named by a path or reached by a link, they are neither read, nor told, nor written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from checkout import JOB, without_notice
from trainlint.cli import main
from trainlint.reports import FORMATS

pytestmark = pytest.mark.skipif(os.name == "nt", reason="making symbolic links takes rights on Windows")

SECRET = "dXNlcjpTRUNSRVQ"
ARGUMENTS = "model_name_or_path: x\nper_device_train_batch_size: 1\nnum_train_epochs: 1\noutput_dir: x\n"
CREDENTIALS = f'{{\n  "auths": {{"ghcr.io": {{"auth": "{SECRET}"}}}},\n  "credsStore": "x"\n}}\n'


class Place:
    """A workspace, what lies beside it, and what trainlint says there."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.outside = folder / "outside"
        self.root.mkdir()
        self.outside.mkdir()
        (self.root / ".git").mkdir()

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.root / name.replace("__", ".")).write_text(text, encoding="utf-8")

    def said(self, *arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, arguments or ("check", "."))
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, without_notice(done.output)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.chdir(made.root)
    return made


def ways(place: Place, file: str = "c.json") -> dict[str, str]:
    """Ways to name a file of `outside` from the workspace."""
    (place.root / file).symlink_to(place.outside / file)
    (place.root / "folder").symlink_to(place.outside)
    (place.root / "up").symlink_to("..")
    (place.root / f"chain-{file}").symlink_to(file)
    return {
        "relative": f"../outside/{file}",
        "absolute": str(place.outside / file),
        "link": file,
        "linked folder": f"folder/{file}",
        "link upward": f"up/outside/{file}",
        "link to a link": f"chain-{file}",
        "through itself": f"folder/../repo/../outside/{file}",
    }


AXOLOTL = "base_model: x\nadapter: lora\nmicro_batch_size: 1\n"
TRL = "model_name_or_path: x\ndataset_name: y\n"
LLAMA = "model_name_or_path: x\nfinetuning_type: full\n"
NAMING = {
    "fsdp_config": ("c.json", "train.yaml", ARGUMENTS + "fsdp: full_shard\nfsdp_config: NAME\n"),
    "deepspeed": ("c.json", "train.yaml", ARGUMENTS + "deepspeed: NAME\n"),
    "deepspeed of Axolotl": ("c.json", "a.yaml", AXOLOTL + "deepspeed: NAME\n"),
    "deepspeed of LLaMA-Factory": ("c.json", "l.yaml", LLAMA + "deepspeed: NAME\n"),
    "deepspeed of Soup": ("c.json", "run.sh", "soup train --config soup.yaml --fsdp full_shard --deepspeed NAME\n"),
    "soup train": ("c.yaml", "run.sh", "soup train --config NAME\n"),
    "tune run": ("c.yaml", "run.sh", "tune run full_finetune_single_device --config NAME\n"),
    "tune run of a bare name": ("c", "run.sh", "tune run full_finetune_single_device --config NAME\n"),
    "accelerate launch": ("c.yaml", "run.sh", "accelerate launch --config_file NAME train.py\n"),
    "llamafactory-cli": ("c.yaml", "run.sh", "llamafactory-cli train NAME\n"),
    "axolotl train": ("c.yaml", "run.sh", "axolotl train NAME\n"),
    "trl sft": ("c.yaml", "run.sh", "trl sft --config NAME\n"),
    "accelerate_config of TRL": ("c.yaml", "t.yaml", TRL + "accelerate_config: NAME\n"),
    "pip install -r": ("requirements.txt", "run.sh", "pip install -r NAME\n"),
    "kustomization": ("c.yaml", "kustomization.yaml", "resources: [NAME]\npatches: [{path: NAME}]\n"),
}
CONTENTS = {
    "c.json": CREDENTIALS,
    "c.yaml": f"base: x\ntask: sft\n_component_: {SECRET}\ndistributed_type: {SECRET}\n",
    "c": f"_component_: {SECRET}\n",
    "requirements.txt": f"accelerate==1.0.{int(SECRET[:4], 36)}\n",
}


@pytest.mark.parametrize("key", NAMING)
def test_what_a_file_names_outside_is_neither_read_nor_missed(place: Place, key: str) -> None:
    named, file, text = NAMING[key]
    secret = place.outside / named
    place.write(soup__yaml="base: x\ntask: sft\ndata: {train: a}\n", job__yaml=JOB)
    place.write(acc__yaml="compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n")
    for way, name in ways(place, named).items():
        (place.root / file).write_text(text.replace("NAME", name), encoding="utf-8")
        without = place.said()
        secret.write_text(CONTENTS[named], encoding="utf-8")
        assert place.said() == without, way
        secret.unlink()
        secret.mkdir()
        assert place.said() == without, way
        secret.rmdir()
        os.mkfifo(secret)
        assert place.said() == without, way
        secret.unlink()


def test_a_file_inside_is_read(place: Place) -> None:
    place.write(c__json=CREDENTIALS, train__yaml=f"{ARGUMENTS}fsdp: full_shard\nfsdp_config: c.json\n")
    assert "auths" in place.said()[1]


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_shows_it(place: Place, form: str) -> None:
    (place.outside / "c.json").write_text(CREDENTIALS, encoding="utf-8")
    (place.outside / "job.yaml").write_text(JOB.replace("numNodez", SECRET), encoding="utf-8")
    (place.root / "job.yaml").symlink_to(place.outside / "job.yaml")
    for number, name in enumerate(ways(place).values()):
        place.write(**{f"t{number}__yaml": f"{ARGUMENTS}fsdp: full_shard\nfsdp_config: {name}\n"})
    assert SECRET not in place.said("check", "--format", form, ".")[1]
    assert SECRET not in place.said("resolve", ".")[1]


@pytest.mark.parametrize("form", ["", "html="])
def test_no_report_is_written_through_a_link(place: Place, form: str) -> None:
    place.write(job__yaml=JOB)
    mine = place.outside / "mine"
    mine.write_text("mine", encoding="utf-8")
    (place.root / "report").symlink_to(mine)
    (place.root / "folder").symlink_to(place.outside)
    for name in ("report", "folder/mine", "folder/new"):
        code, told = place.said("check", "--output", f"{form}{name}", ".")
        assert code == 2
        assert f"trainlint: {name}: a link that leads out of the repository " in told
    assert mine.read_text(encoding="utf-8") == "mine"
    assert sorted(file.name for file in place.outside.iterdir()) == ["mine"]
    assert place.said("check", "--output", str(place.outside / "new"), ".")[0] == 1, "what the user names is written"


NAMED_BY_THE_USER = {
    "settings": ("check", "--config", "mine"),
    "settings that are shown": ("check", "--config", "mine", "--show-settings"),
    "a baseline": ("check", "--baseline", "mine"),
    "a baseline that is written": ("check", "--baseline", "mine", "--write-baseline"),
    "a baseline that is updated": ("check", "--baseline", "mine", "--update-baseline"),
    "a report": ("check", "--output", "mine"),
}


@pytest.mark.parametrize("option", NAMED_BY_THE_USER)
def test_a_file_that_the_user_names_is_no_trap(place: Place, option: str) -> None:
    place.write(job__yaml=JOB)
    known = {"settings": "ignore = []\n", "a baseline": '{"version": 3, "findings": [ ]}\n', "a report": "mine\n"}
    (theirs,) = (text for kind, text in known.items() if option.startswith(kind))
    outside, mine = place.outside / "mine", place.root / "mine"
    outside.write_text(theirs, encoding="utf-8")
    for target in (str(outside), "../outside/mine", "/dev/zero"):
        mine.symlink_to(target)
        code, told = place.said(*NAMED_BY_THE_USER[option], ".")
        assert code == 2
        assert told.endswith(f"trainlint: mine: a link that leads out of the repository {place.root}\n")
        assert outside.read_text(encoding="utf-8") == theirs
        mine.unlink()
    os.mkfifo(mine)
    assert place.said(*NAMED_BY_THE_USER[option], ".")[1].endswith("mine: not a regular file\n")
    mine.unlink()
    mine.symlink_to("real")
    (place.root / "real").write_text(theirs, encoding="utf-8")
    assert place.said(*NAMED_BY_THE_USER[option], ".")[0] < 2
    assert place.said(*NAMED_BY_THE_USER[option][:2], str(outside), *NAMED_BY_THE_USER[option][3:], ".")[0] < 2


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("to", ["file", "nothing", "folder"])
def test_a_linked_file_is_not_listed(place: Place, tracked: bool, to: str) -> None:
    (place.root / ".git").rmdir()
    subprocess.run(["git", "init", "-q"], cwd=place.root, check=True)
    (place.outside / "job.yaml").write_text(JOB, encoding="utf-8")
    (place.outside / "folder.yaml").mkdir()
    target = {"file": "job.yaml", "nothing": "none.yaml", "folder": "folder.yaml"}[to]
    (place.root / "job.yaml").symlink_to(place.outside / target)
    if tracked:
        subprocess.run(["git", "add", "."], cwd=place.root, check=True)
    assert place.said() == (0, "Found no YAML files.\n")


@pytest.mark.parametrize("path", ["link.yaml", "folder", "folder/job.yaml", "folder/none.yaml", "none.yaml", "up/repo"])
@pytest.mark.parametrize("repository", [True, False])
def test_a_path_of_the_user_that_leads_out(place: Place, path: str, repository: bool) -> None:
    """Also where it leads into another repository: the link is not the user's word."""
    (place.outside / "job.yaml").write_text(JOB, encoding="utf-8")
    if repository:
        (place.outside / ".git").mkdir()
    for name, target in (("link.yaml", "job.yaml"), ("none.yaml", "none.yaml"), ("folder", "."), ("up", "..")):
        (place.root / name).symlink_to(place.outside / target)
    assert place.said("check", path) == (2, f"trainlint: {path}: a link that leads out of the workspace {place.root}\n")


def test_a_link_within_the_workspace_is_followed(place: Place) -> None:
    (place.root / "real").mkdir()
    (place.root / "real" / "job.txt").write_text(JOB, encoding="utf-8")
    (place.root / "job.yaml").symlink_to("real/job.txt")
    assert place.said()[1].startswith("job.yaml:6:13: error TJ011")
    assert place.said("check", "job.yaml")[1].startswith("job.yaml:6:13: error TJ011")


def test_what_the_user_names_outside_any_workspace_is_read(place: Place) -> None:
    (place.root / ".git").rmdir()
    (place.outside / "job.yaml").write_text(JOB, encoding="utf-8")
    (place.root / "job.yaml").symlink_to(place.outside / "job.yaml")
    assert place.said("check", "job.yaml")[1].startswith("job.yaml:6:13: error TJ011")
    assert place.said("check", "../outside/job.yaml")[0] == 1
    assert place.said() == (0, "Found no YAML files.\n")


@pytest.mark.parametrize("special", ["/dev/zero", "/proc/self/environ", "/proc/self/mem", "/sys/kernel/notes"])
def test_no_device_and_no_file_of_the_kernel(place: Place, special: str) -> None:
    place.write(train__yaml=f"{ARGUMENTS}fsdp: full_shard\nfsdp_config: c.json\n")
    without = place.said()
    (place.root / "c.json").symlink_to(special)
    (place.root / "requirements.txt").symlink_to(special)
    (place.root / "run.sh").symlink_to(special)
    (place.root / "trainlint.yaml").symlink_to(special)
    assert place.said() == without


def test_no_pipe(place: Place) -> None:
    place.write(train__yaml=f"{ARGUMENTS}fsdp: full_shard\nfsdp_config: c.json\n")
    without = place.said()
    for name in ("c.json", "requirements.txt", "run.sh", "a.yaml", "kustomization.yaml", "pyproject.toml"):
        os.mkfifo(place.root / name)
    assert place.said() == without
    assert place.said("check", "a.yaml")[1] == (
        "trainlint: a.yaml: cannot be read: not a regular file in the workspace\nFound no YAML files.\n"
    )


@pytest.mark.parametrize("there", [True, False])
def test_settings_that_are_a_link_out(place: Place, there: bool) -> None:
    if there:
        (place.outside / "t.toml").write_text("[registry]\ntoken = 'secret'\n", encoding="utf-8")
    (place.root / "trainlint.toml").symlink_to(place.outside / "t.toml")
    place.write(job__yaml=JOB)
    said = f"trainlint: {place.root}/trainlint.toml: a link that leads out of the repository {place.root}\n"
    assert place.said() == (2, said)


def test_a_project_file_that_is_a_link_out(place: Place) -> None:
    (place.outside / "p.toml").write_text("[tool.trainlint]\nignore = ['TJ011']\n", encoding="utf-8")
    (place.root / "pyproject.toml").symlink_to(place.outside / "p.toml")
    place.write(job__yaml=JOB)
    assert place.said()[0] == 1


def test_settings_shared_within_a_repository(place: Place) -> None:
    (place.root / "sub").mkdir()
    place.write(shared__toml="ignore = ['TJ011']\n")
    (place.root / "sub" / "trainlint.toml").symlink_to("../shared.toml")
    (place.root / "sub" / "job.yaml").write_text(JOB, encoding="utf-8")
    assert place.said()[0] == 0


def test_a_fix_does_not_write_through_a_link_that_leads_out(place: Place) -> None:
    fixable = f"{ARGUMENTS}learning_rate: 1e-5\n"
    (place.root / ".git").rmdir()
    (place.outside / "train.yaml").write_text(fixable, encoding="utf-8")
    (place.root / "train.yaml").symlink_to(place.outside / "train.yaml")
    (place.root / "real.yaml").write_text(fixable, encoding="utf-8")
    assert place.said("check", "--fix", "real.yaml")[1].startswith("trainlint: fixed ")
    code, said = place.said("check", "--fix", "train.yaml")
    assert code == 2
    assert "trainlint: train.yaml: cannot be changed: a link that leads out of the workspace\n" in said
    assert (place.outside / "train.yaml").read_text(encoding="utf-8") == fixable
    assert (place.root / "train.yaml").is_symlink()


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside/gone.yaml"])
def test_a_baseline_does_not_tell_what_exists(place: Place, path: str) -> None:
    place.write(job__yaml=JOB)
    place.said("check", "--baseline", "b.json", "--write-baseline")
    rows = (place.root / "b.json").read_text(encoding="utf-8").replace('"job.yaml"', f'"{path}"')
    rows = rows.replace('"fingerprint": "', '"fingerprint": "0')
    (place.root / "b.json").write_text(rows, encoding="utf-8")
    assert place.said("check", "--baseline", "b.json")[0] == 1
