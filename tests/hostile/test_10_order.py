"""The same files give the same findings: in any order, alone and together, under other names, on any machine."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path

import pytest

from cases import FIXTURES, Case, cases
from checkout import JOB, RUNTIME, build, check
from trainlint.engine import lint
from trainlint.findings import Finding
from trainlint.report import Report

FOLDERS = [case for case in cases("") if case.is_folder]
NAMED = re.compile(
    r"kustomization|environment|^env\.|conda|sft|dpo|grpo|trl|reward|orpo|kto|cpo|soup|compose", re.IGNORECASE
)
"""Names that a program or a tool knows."""


def told(report: Report, names: dict[str, str] | None = None) -> list[tuple[object, ...]]:
    """The findings, in words, with the files under their own names."""

    def plain(text: str) -> str:
        for new, old in (names or {}).items():
            text = text.replace(new, old)
        return text

    def row(f: Finding) -> tuple[object, ...]:
        related = sorted((plain(r.span.path), r.span.line, plain(r.message)) for r in f.related)
        return (
            plain(f.path),
            f.span.line,
            f.span.column,
            f.rule,
            f.level.value,
            plain(f.message),
            plain(f.help),
            related,
        )

    return sorted(map(row, report.findings), key=repr)


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    case: Case = request.param
    build(tmp_path, dict(case.files()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _id(case: Case) -> str:
    return str(case.path.relative_to(FIXTURES))


@pytest.mark.parametrize("folder", FOLDERS, indirect=True, ids=_id)
def test_order_names_and_company(folder: Path, request: pytest.FixtureRequest) -> None:
    case: Case = request.node.callspec.params["folder"]
    overrides = case.overrides()
    whole = lint([Path()], overrides)
    files = sorted(Path(name) for name in case.files() if name.endswith((".yaml", ".yml")))
    together = told(lint(files, overrides))
    assert told(lint(files[::-1], overrides)) == together
    random.Random(case.code).shuffle(files)
    assert told(lint(files, overrides)) == together

    # A config may bring a finding at the command that starts it, in another file.
    alone = {repr(row) for file in files for row in told(lint([file], overrides))}
    assert alone == set(map(repr, together))

    texts = {name: data.decode("utf-8", "replace") for name, data in case.files().items()}
    for prefix in ("a-", "zz-"):
        names = {}
        for file in files:
            name = file.name
            free = not NAMED.search(name) and not any(
                file.stem in text for other, text in texts.items() if other != file.as_posix()
            )
            if free and (folder / file).is_file():
                os.replace(folder / file, folder / file.with_name(prefix + name))
                names[prefix + name] = name
        assert told(lint([Path()], overrides), names) == told(whole)
        for new, old in names.items():
            (found,) = folder.rglob(new)
            os.replace(found, found.with_name(old))


def test_what_settings_leave_out_is_there_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = JOB.replace("torch-distributed", "r")
    build(
        tmp_path, {"x/job.yaml": job, "x/rt.yaml": RUNTIME.replace("NAME", "r"), "trainlint.toml": 'exclude = ["x/"]'}
    )
    monkeypatch.chdir(tmp_path)
    first, second = Path("x/job.yaml"), Path("x/rt.yaml")
    assert told(lint([first, second])) == told(lint([second, first])) == told(lint([Path("x")]))
    os.replace("x/rt.yaml", "x/a.yaml")
    assert told(lint([Path("x")]), {"a.yaml": "rt.yaml"}) == told(
        lint([first, Path("x/a.yaml")]), {"a.yaml": "rt.yaml"}
    )


def test_hash_seeds_and_locales(tmp_path: Path) -> None:
    files = {}
    for number, case in enumerate(random.Random(1).sample(cases("bad"), 40)):
        files.update({f"{number}/{name}": data for name, data in case.files().items() if name != "trainlint.toml"})
    files["companions/train.yaml"] = b"model_name_or_path: a/b\ndataset_name: a/c\noutput_dir: out\nfsdp: full_shard\n"
    files["companions/requirements.txt"] = b"transformers==4.46.3\naccelerate==0.34.2\npeft==0.13.2\ntorch==2.5.1\n"
    build(tmp_path, dict(files))
    outputs = {
        check(
            "--format", "json", "--exit-zero", ".", cwd=tmp_path, env={"PYTHONHASHSEED": seed, "LC_ALL": locale}
        ).stdout
        for seed, locale in (("1", "C"), ("2", "C.UTF-8"), ("3", "tr_TR.UTF-8"))
    }
    (output,) = outputs
    assert len(json.loads(output)["findings"]) > 30
