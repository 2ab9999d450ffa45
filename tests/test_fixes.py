"""Fixes in place."""

from __future__ import annotations

import codecs
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trainlint.catalogue import parse_target
from trainlint.cli import main
from trainlint.engine import lint
from trainlint.findings import Edit, Finding, Fix, Span
from trainlint.fixes import apply
from trainlint.reading.text import decode
from trainlint.report import Report
from trainlint.settings import Overrides


def report(file: Path, *fixes: Fix, suppressed: str | None = None) -> Report:
    path = str(file)
    findings = tuple(Finding("m", Span(path, 1, 1, 1, 2), 0, "f", "f", fix=fix, suppressed=suppressed) for fix in fixes)
    return Report(findings=findings, texts={path: decode(file.read_bytes())})


def fix(*edits: tuple[int, int, str], safe: bool = True) -> Fix:
    return Fix("mend", tuple(Edit(*edit) for edit in edits), safe)


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8], ids=["plain", "byte order mark"])
def test_edits_keep_encoding_and_line_ends(tmp_path: Path, mark: bytes) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(mark + "ü: fsdp_x\r\nb: fsdp_y\r\n".encode())
    assert apply(report(file, fix((3, 8, "")), fix((14, 19, "")))) == 2
    assert file.read_bytes() == mark + "ü: x\r\nb: y\r\n".encode()


def test_utf16_stays_utf16(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes("a: 1\n".encode("utf-16"))
    assert apply(report(file, fix((3, 4, "2")))) == 1
    assert file.read_bytes() == "a: 2\n".encode("utf-16")


def test_a_fix_that_touches_an_earlier_one_waits(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("abcdef", encoding="utf-8")
    assert apply(report(file, fix((0, 3, "x")), fix((2, 4, "y")), fix((4, 5, "z")))) == 2
    assert file.read_text(encoding="utf-8") == "xdzf"


def test_unsafe_and_suppressed_ones_change_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("abc", encoding="utf-8")
    assert apply(report(file, fix((0, 1, "x"), safe=False))) == 0
    assert apply(report(file, fix((0, 1, "x")), suppressed="why")) == 0
    assert file.read_text(encoding="utf-8") == "abc"


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")
def test_mode_and_link_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "a.yaml", tmp_path / "b.yaml"
    file.write_text("abc", encoding="utf-8")
    file.chmod(0o640)
    link.symlink_to(file)
    assert apply(report(link, fix((0, 1, "x")))) == 1
    assert link.is_symlink()
    assert file.read_text(encoding="utf-8") == "xbc"
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_file_is_changed_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("abc", encoding="utf-8")

    def fail(source: str, target: str) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        apply(report(file, fix((0, 1, "x"))))
    assert file.read_text(encoding="utf-8") == "abc"
    assert list(tmp_path.iterdir()) == [file]


# the command line

ARGUMENTS = "output_dir: out\nper_device_train_batch_size: 8\nnum_train_epochs: 1\n"
BEFORE = f'{ARGUMENTS}save_strategy: no\nbf16: "false"\nlearning_rate: 2e-5  # why\n'
SAFE = f'{ARGUMENTS}save_strategy: "no"\nbf16: "false"\nlearning_rate: 2.0e-5  # why\n'
UNSAFE = SAFE.replace('bf16: "false"', "bf16: false")
DIFF = """\
--- a/a.yaml
+++ b/a.yaml
@@ -1,6 +1,6 @@
 output_dir: out
 per_device_train_batch_size: 8
 num_train_epochs: 1
-save_strategy: no
+save_strategy: "no"
 bf16: "false"
-learning_rate: 2e-5  # why
+learning_rate: 2.0e-5  # why
"""


def check(folder: Path, monkeypatch: pytest.MonkeyPatch, *options: str, stdin: str | None = None) -> Result:
    monkeypatch.chdir(folder)
    command = ["check", "--target", "transformers=5.24.0", *options]
    return CliRunner().invoke(main, [*command, *([] if stdin is not None else ["."])], input=stdin)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.yaml").write_text(BEFORE, encoding="utf-8")
    return tmp_path


def content(folder: Path) -> str:
    return (folder / "a.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize("options", [("--diff",), ("--fix", "--diff"), ("--fix-only", "--diff")])
def test_a_diff_changes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    done = check(folder, monkeypatch, *options)
    assert (done.exit_code, done.stdout, content(folder)) == (1, DIFF, BEFORE)
    assert done.stderr == "trainlint: would fix 2 findings, and 1 more with --unsafe-fixes\n"


def test_a_diff_may_exit_0(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(folder, monkeypatch, "--diff", "--exit-zero").exit_code == 0


def test_a_diff_of_nothing_is_empty(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.yaml").write_text(UNSAFE, encoding="utf-8")
    done = check(folder, monkeypatch, "--diff", "--unsafe-fixes")
    assert (done.exit_code, done.stdout) == (0, "")


def test_a_diff_of_unsafe_fixes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = check(folder, monkeypatch, "--diff", "--unsafe-fixes")
    assert done.stdout == DIFF.replace(' bf16: "false"\n', "").replace(
        "-learning_rate: 2e-5  # why\n", '-bf16: "false"\n-learning_rate: 2e-5  # why\n'
    ).replace('+save_strategy: "no"\n', "").replace(
        "+learning_rate", '+save_strategy: "no"\n+bf16: false\n+learning_rate'
    )
    assert done.exit_code == 1


def test_a_diff_has_all_rounds_and_keeps_ends_and_the_missing_last_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{ARGUMENTS}overwrite_output_dir: true\r\nsave_safetensors: true\r\nlearning_rate: 1e-5"
    (folder / "a.yaml").write_bytes(text.encode())
    done = check(folder, monkeypatch, "--diff")
    assert done.stdout_bytes.decode().split("\n")[-8:-1] == [
        " num_train_epochs: 1",
        "-overwrite_output_dir: true\r",
        "-save_safetensors: true\r",
        "-learning_rate: 1e-5",
        "\\ No newline at end of file",
        "+learning_rate: 1.0e-5",
        "\\ No newline at end of file",
    ]


def test_a_diff_masks_secrets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = "hf_" + "a1B2c3D4" * 4
    (folder / "a.yaml").write_text(f"{ARGUMENTS}hub_token: {token}\nlearning_rate: 1e-5\n", encoding="utf-8")
    done = check(folder, monkeypatch, "--diff")
    assert token not in done.stdout
    assert " hub_token: ***\n" in done.stdout
    assert "masked" in done.stderr
    assert f" hub_token: {token}\n" in check(folder, monkeypatch, "--diff", "--show-values").stdout


def test_a_diff_of_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = check(folder, monkeypatch, "--diff", "--stdin-filename", "b.yaml", "-", stdin=BEFORE)
    assert (done.exit_code, done.stdout) == (1, DIFF.replace("a.yaml", "b.yaml"))


def test_fix_only(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = check(folder, monkeypatch, "--fix-only")
    assert (done.exit_code, done.stdout, content(folder)) == (0, "", SAFE)
    assert done.stderr == "trainlint: fixed 2 findings\n"


def test_unsafe_fixes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = check(folder, monkeypatch, "--fix", "--unsafe-fixes")
    assert (done.exit_code, content(folder)) == (0, UNSAFE)


def test_standard_input_is_not_fixed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = check(folder, monkeypatch, "--fix", "-", stdin=BEFORE)
    assert (done.exit_code, done.stderr) == (
        2, "trainlint: --fix cannot be used with standard input, only --diff\n",
    )  # fmt: skip


# what many findings agree on


def test_a_fix_that_only_some_releases_want_is_unsafe(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.yaml").write_text(f"{ARGUMENTS}evaluation_strategy: steps\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    found = [
        f
        for f in lint([Path()], Overrides(targets=parse_target("transformers=4.40.2,5.24.0"))).active
        if f.rule == "FS215"
    ]
    assert [(f.fix.title, f.fix.safe) for f in found if f.fix] == [("rename the key to eval_strategy", False)]


def test_only_so_many_fixes_of_one_claim_go_in_a_round(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("abcdef", encoding="utf-8")
    fixes = [
        Fix("mend", (Edit(at, at + 1, ""),), claim="here", room=2)
        for at in range(0, 6, 2)
    ]  # fmt: skip
    assert apply(report(file, *fixes)) == 2
    assert file.read_text(encoding="utf-8") == "bdef"
