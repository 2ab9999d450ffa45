"""A companion, a number or a setting of any kind takes the check from no other file, and is told in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from checkout import ACCELERATE, ARGUMENTS, AXOLOTL, JOB, RECIPE, SOUP, build, codes, without_notice
from trainlint.cli import main
from trainlint.engine import lint
from trainlint.programs.torchtune import program as torchtune
from trainlint.repository import invocations
from trainlint.repository.files import Repository

Files = dict[str, str | bytes]
LONG = "9" * 5_000
DEEP = "[" * 5_000
MISSPELT = ACCELERATE.replace("fsdp_version", "fsdp_versio")
STARTS = (
    "run: |\n  tune run --nproc_per_node {0} --nnodes {0} lora_finetune_distributed --config f.yaml batch_size={0}\n"
)
LAUNCHES = "run: accelerate launch --config_file acc.yaml --num_processes {0} --num_machines {0} x.py\n"

COMPANIONS: dict[str, Files] = {
    "an integer in a project": {"pyproject.toml": f"[project]\nname = 'accelerate'\nversion = {LONG}\n"},
    "a deep project": {"pyproject.toml": f"[project]\nx = {DEEP}\ndependencies = ['accelerate']\n"},
    "a pin with two meanings": {"requirements.txt": "accelerate===foo,>=1\n"},
    "an epoch": {"requirements.txt": "accelerate==1!0.1\n"},
    "a long pin": {"requirements.txt": f"accelerate==1.{LONG}\n"},
    "requirements in no encoding": {"requirements.txt": b"accelerate==1.0\n\xff\xfe\x81\n"},
    "requirements that name themselves": {"requirements.txt": "-r requirements.txt\naccelerate\n"},
    "a lock": {"uv.lock": f"[[package]]\nname = 'accelerate'\nversion = {DEEP}\n"},
    "a Pipfile.lock": {"Pipfile.lock": f'{{"default": {{"accelerate": {DEEP}'},
    "a notebook": {"a.ipynb": f'{{"cells": {DEEP} "pip install accelerate"'},
    "an environment": {"environment.yml": f"dependencies:\n- accelerate=={LONG}\n- pip: {DEEP}\n"},
    "code": {"a.py": f"pip_install({'(' * 5_000}'accelerate'\n", "setup.py": f"accelerate = {DEEP}"},
    "minus signs": {"a.py": f"x = {'-' * 100_000}1\npip_install('accelerate')\n"},
    "sums": {"setup.py": f"setup(install_requires={'1+' * 50_000}'accelerate')\n"},
    "a Makefile with a zero byte": {"Makefile": b"x:\n\taccelerate launch \0 x.py\n"},
    "a script in scripts": {"run.sh": f"pip install accelerate==1.0\nsbatch {'--wrap=' * 1_000}x\n"},
    "a script in no encoding": {"run.sh": b"accelerate launch \xff\xfe\n"},
    "a number in a script": {"run.sh": LAUNCHES.format(LONG)[5:], "w.yaml": STARTS.format(LONG)},
    "a superscript": {"w.yaml": STARTS.format("²"), "v.yaml": LAUNCHES.format("²"), "f.yaml": RECIPE},
    "a deep override": {
        "f.yaml": RECIPE,
        "w.yaml": f"run: tune run full_finetune_single_device --config f.yaml {'a.' * 50_000}b=1 {'c[0]' * 5_000}=1\n",
    },
    "a number in a command": {"v.yaml": LAUNCHES.format(LONG)},
    "DeepSpeed's file": {"t.yaml": f"{ARGUMENTS}deepspeed: ds.json\nfsdp: full_shard\n", "ds.json": DEEP},
    "a number in DeepSpeed's file": {
        "t.yaml": f"{ARGUMENTS}deepspeed: ds.json\nfsdp: full_shard\n",
        "ds.json": f'{{"train_batch_size": {LONG}}}',
    },
    "a number in JSON in a text": {
        "t.yaml": f"{ARGUMENTS}deepspeed: '{{\"a\": {LONG}}}'\n",
        "u.yaml": f"{ARGUMENTS}fsdp_config: '{{\"version\": {LONG}}}'\nfsdp: full_shard\n",
    },
    "Soup's file": {"soup.yaml": SOUP, "run.sh": "soup train --config soup.yaml --deepspeed d.json\n", "d.json": DEEP},
    "an integer in JSON": {
        "soup.yaml": SOUP,
        "run.sh": "soup train --config soup.yaml --deepspeed d.json\n",
        "d.json": f'{{"zero_optimization": {{"stage": {LONG}}}}}',
    },
    "a tagged number": {"n.yaml": ARGUMENTS.replace("size: 1", f"size: !!float 0x{'f' * 300}")},
    "a key of digits": {"n.yaml": f"{ACCELERATE}? 0x{'f' * 4_000}\n: 1\n"},
    "a strategy": {"n.yaml": f'{ACCELERATE}  fsdp_sharding_strategy: "²"\n'},
    "a quantity": {"n.yaml": JOB.replace("numNodez: 1", f"resourcesPerNode: {{limits: {{cpu: '{LONG}'}}}}")},
    "an exponent": {"n.yaml": JOB.replace("numNodez: 1", "resourcesPerNode: {limits: {cpu: '1e999999999'}}")},
    "an index": {"n.yaml": f"{RECIPE}a: [1, 2]\nb: ${{a.²}}\n"},
    "hidden numbers": {"n.yaml": f"{ARGUMENTS}learning_rate: 1e{LONG[:200]}\nmax_steps: -{LONG[:240]}\n"},
    **{
        f"pattern {number}": {"n.yaml": f"{AXOLOTL}lora_target_modules: ['{pattern}']\n"}
        for number, pattern in enumerate(
            [
                "a{99999999999999999999}",
                "[[a]",
                "(",
                r"\N{LATIN}",
                "(?P<a>x)(?P<a>y)",
                "a|" * 30_000,
                "(" * 900 + ")" * 900,
            ]
        )
    },
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", COMPANIONS)
def test_all_others_are_checked(name: str, tmp_path: Path) -> None:
    build(tmp_path, {"acc.yaml": MISSPELT, "job.yaml": JOB, **COMPANIONS[name]})
    report = lint([tmp_path])
    assert not report.crashed
    found = codes(report)
    assert "FS001" in found["acc.yaml"]
    assert "TJ011" in found["job.yaml"]
    assert all("\n" not in notice for notice in report.notices)


def test_a_file_that_is_gone_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else works in the repository: what is listed may be gone, and nothing else misses its check."""
    files: Files = {"acc.yaml": MISSPELT, "job.yaml": JOB, "ds.json": '{"a": 1}', "gone.yaml": JOB, "run.sh": "x\n"}
    build(tmp_path, {**files, "requirements.txt": "accelerate==1.8.1\n"})
    paths = Repository.paths

    def paths_then_gone(self: Repository, *suffixes: tuple[str, ...]) -> list[str]:
        found = paths(self, *suffixes)
        for name in ("ds.json", "gone.yaml", "run.sh", "requirements.txt"):
            (tmp_path / name).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Repository, "paths", paths_then_gone)
    report = lint([tmp_path])
    assert not report.crashed
    found = codes(report)
    assert ("FS001" in found["acc.yaml"], "TJ011" in found["job.yaml"]) == (True, True)


def test_what_cannot_be_read_is_said_once(tmp_path: Path) -> None:
    files = {f"{number}.yaml": MISSPELT for number in range(3)}
    build(tmp_path, {**files, "requirements.txt": b"accelerate==1.0\n\xff\n"})
    report = lint([tmp_path])
    assert [notice for notice in report.notices if "requirements.txt" in notice] == [
        f"{(tmp_path / 'requirements.txt').as_posix()}:2: byte 16 is not UTF-8; the releases in it are not known"
    ]


SETTINGS: dict[str, str | bytes] = {
    "nested": f"exclude = {DEEP}{']' * 5_000}",
    "keys in keys": f"{'a.' * 5_000}b = 1",
    "tables in tables": f"{'[[a]]' * 3}",
    "an integer": f"exclude = {LONG}",
    "a release": f'[targets]\nkubeflow-trainer = "2.{LONG}"',
    "a release of others": f'[targets]\nkubeflow-trainer = ["1", "{LONG}"]',
    "a surrogate": b'exclude = ["\xed\xa0\x80"]',
    "an escaped surrogate": 'exclude = ["\\ud800"]',
    "bytes": b"exclude = ['\xff']",
    "a zero byte": b"exclude = ['\0']",
    "a backslash": 'exclude = ["a\\\\"]',
    "no pattern": 'exclude = ["!"]',
    "patterns": "exclude = [" + '"a",' * 1_001 + "]",
    "a pattern": f"exclude = ['{'*a' * 501}']",
    "size": f"# {'a' * 500_000}\n",
    "a key": f"{'a' * 5_000} = 1",
    "a word": f"select = ['{'a' * 5_000}']",
    "blank lines": f"exclude = []\n{chr(10) * 20_000}#\nzzz = 1",
    "an end": "exclude = [",
    "a table in a table": f"severity = {'{a = ' * 3_000}1{'}' * 3_000}",
    "a severity": f"[severity]\nTT102 = {LONG[:4_000]}",
    "a rule with a line end": 'ignore = ["TT\\n::error::x"]',
    "rules": "select = [" + "'TT102'," * 2_000 + "]",
    "a key of a pattern": f"[per-file-ignores]\n'{'a' * 2_000}' = []",
    "a pattern with a zero byte": '[per-file-ignores]\n"a\\u0000" = ["TT9"]',
    "overrides": "[[overrides]]\npaths = ['a']\n" * 1_001,
    "an override of overrides": "[[overrides]]\npaths = ['a']\noverrides = []",
    "an override of nothing": "overrides = [1]",
    "a number of a file": f"extend = {LONG[:4_000]}",
    "a device": 'extend = "/dev/zero"',
    "a folder": 'extend = "."',
    "a zero byte in a file": 'extend = "a\\u0000b"',
    "itself": 'extend = "./trainlint.toml"',
    "a file that is long": f'extend = "{"a/" * 3_000}b"',
    "infinity": "require-reason = inf",
    "a day": "cluster = 1979-05-27",
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_one_clear_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path, {"job.yaml": JOB, "trainlint.toml": SETTINGS[name]})
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["check", "."])
    (line,) = done.output.splitlines()
    assert "trainlint.toml:" in line
    assert "internal error" not in line
    assert len(line) < 1_000
    assert done.exit_code == 2


def test_any_fault_is_one_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise LookupError("what a file holds\nand more")

    monkeypatch.delenv("TRAINLINT_DEBUG", raising=False)
    monkeypatch.setattr(torchtune, "_of_file", fail)
    build(tmp_path, {"job.yaml": JOB, "f.yaml": f"a: 1\n---\n{RECIPE}", "acc.yaml": MISSPELT})
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["check", "--format", "concise", "."])
    lines = without_notice(done.output).splitlines()
    (fault,) = (line for line in lines if "TL004" in line)
    assert fault.startswith(
        "f.yaml:3:1: error TL004 internal-error: internal error in torchtune: LookupError at test_13"
    )
    assert [line.split()[2] for line in lines if "job.yaml" in line] == ["TJ011"]
    assert any("acc.yaml" in line for line in lines)
    assert done.exit_code == 2


def test_a_fault_in_a_companion_is_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise LookupError("what a file holds")

    monkeypatch.delenv("TRAINLINT_DEBUG", raising=False)
    monkeypatch.setattr(invocations._Finder, "read_command", fail)
    build(tmp_path, {"job.yaml": JOB, "acc.yaml": MISSPELT, "run.sh": "accelerate launch x.py\n"})
    report = lint([tmp_path])
    assert report.crashed
    assert [notice for notice in report.notices if "run.sh" in notice and "LookupError" in notice]
    assert "FS001" in codes(report)["acc.yaml"]
