"""The tool that writes the facts: what it reads, adds and refuses, on small packages and a registry of its own."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

import whats_new
import wheel_facts.__main__ as tool
from trainlint.programs import WheelProgram, table
from trainlint.releases import ReleaseSpan
from trainlint.training.declarations import DISTRIBUTIONS, LIBRARIES, Declarations, declarations
from wheel_facts import confirmed
from wheel_facts.history import History, Json, Release, decode, dumps, encode
from wheel_facts.package import Package
from wheel_facts.readers import PROGRAMS
from wheel_facts.registry import Missing, Registry, in_cache

each_program = pytest.mark.parametrize("name", PROGRAMS)

ARGUMENTS = """
from dataclasses import dataclass, field
from enum import Enum

class FSDPOption(Enum):
    FULL_SHARD = "full_shard"

@dataclass
class TrainingArguments:
    output_dir: str
    made_up: int = field(default=3, metadata={"help": "new"})
    bf16: bool = False

    def __post_init__(self):
        if self.fsdp_config.get("made_up_key"):
            raise ValueError
"""
METADATA = """Metadata-Version: 2.1
Name: transformers
Requires-Dist: accelerate >=2.0 ; extra == 'torch'
Requires-Dist: accelerate >=2.0 ; extra == 'all'
Requires-Dist: accelerate ; extra == 'dev'
Requires-Dist: torch >=3 ; sys_platform == 'linux'
Requires-Dist: torch >=1 ; sys_platform == 'win32'
Requires-Dist: peft (<9) # as few packages say
Requires-Dist: transformers[all] ; extra == 'dev'
Requires-Dist: unheard-of
"""


def wheel(folder: Path, name: str = "transformers-9.1.0-py3-none-any.whl", year: int = 2027, **files: str) -> Path:
    held = {"training_args": ARGUMENTS, "training_args_seq2seq": "", "trainer_utils": "", "trainer": "", **files}
    folder.mkdir(exist_ok=True, parents=True)
    with zipfile.ZipFile(folder / name, "w") as archive:
        for module, text in held.items():
            archive.writestr(zipfile.ZipInfo(f"transformers/{module}.py", (year, 1, 2, 0, 0, 0)), text)
        archive.writestr(zipfile.ZipInfo("transformers-9.1.0.dist-info/METADATA", (2020, 2, 2, 0, 0, 0)), METADATA)
    return folder / name


@pytest.fixture
def facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The facts files and what is confirmed, copied, so that the tool can write them."""
    for name in PROGRAMS:
        (tmp_path / f"{name}.json").write_bytes(tool.facts_file(name).read_bytes())
        (tmp_path / f"{name}.txt").write_bytes(confirmed.file_of(name).read_bytes())
    monkeypatch.setattr(confirmed, "FOLDER", tmp_path)
    monkeypatch.setattr(tool, "facts_file", lambda name: tmp_path / f"{name}.json")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["wheel_facts", *arguments])
    tool.main()


class Answer:
    def __init__(self, content: bytes, status: int = 200) -> None:
        self.content, self.status_code = content, status

    def json(self) -> Json:
        return json.loads(self.content)  # type: ignore[no-any-return]


class Session:
    """A registry that holds files of its own, as the simple index lists them."""

    def __init__(self, *files: tuple[str, bytes], date: str = "2027-03-04T05:06:07Z", **attributes: Json) -> None:
        self.files = dict(files)
        self.rows = [
            {
                "filename": name,
                "url": f"there/{name}",
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                "upload-time": date,
                **attributes,
            }
            for name, content in files
        ]

    def get(self, url: str, headers: object = None) -> Answer:
        name = url.rpartition("/")[2]
        if name in self.files:
            return Answer(self.files[name])
        return Answer(json.dumps({"files": self.rows}).encode()) if "transformers" in url else Answer(b"", 404)


def test_each_program_that_is_a_wheel_has_a_reader_and_its_distribution() -> None:
    wheels = {name for name, program in table.PROGRAMS.items() if isinstance(program.load(), WheelProgram)}
    assert wheels == DISTRIBUTIONS.keys(), "DISTRIBUTIONS of training/declarations.py"
    found = {name: program.distribution for name, program in PROGRAMS.items()}
    assert found == {**DISTRIBUTIONS, **LIBRARIES}, "wheel_facts/readers"


@each_program
def test_what_is_written_is_read_back_byte_for_byte(name: str) -> None:
    text = tool.facts_file(name).read_text(encoding="utf-8")
    assert dumps(encode(decode(json.loads(text)))) == text


@each_program
def test_a_release_that_is_added_to_the_others_makes_what_all_together_make(name: str) -> None:
    text = tool.facts_file(name).read_text(encoding="utf-8")
    whole = decode(json.loads(text))
    for version in (min(whole.releases), max(whole.releases), list(whole.releases)[-1], list(whole.releases)[:3][-1]):
        rest = {other: release for other, release in whole.releases.items() if other != version}
        without = decode(encode(History(whole.source, whole.run, whole.dates, rest)))
        without.run = whole.run
        without.add(version, whole.dates[version], whole.releases[version])
        assert dumps(encode(without)) == text, version


@each_program
def test_every_release_has_its_day_and_what_it_requires(name: str) -> None:
    known = declarations(name)
    assert list(known.dates) == list(known.names)
    assert all(len(day) == len("2026-10-02") and day >= "2023" for day in known.dates.values())
    for release in known.names:
        assert any(known.value(f"{kind}:torch", release) is not None for kind in ("requires", "optional")) or (
            known.value("requires:transformers", release) is not None
        )


def test_a_release_is_added_from_a_file_without_the_packages_of_the_others(
    facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = declarations("transformers")
    package = wheel(tmp_path / "from")
    run(monkeypatch, "transformers", "--release", "9.1.0", "--from", str(package), "--cache", str(tmp_path / "none"))
    after = Declarations("transformers", json.loads((facts / "transformers.json").read_bytes()))
    assert after.names == (*before.names, "9.1.0")
    assert after.dates["9.1.0"] == "2027-01-02"
    assert after.keys("TrainingArguments", "9.1.0") == {"output_dir", "made_up", "bf16"}
    assert after.fields("TrainingArguments", "9.1.0")["made_up"].default == 3
    assert after.span("TrainingArguments", "made_up") == ReleaseSpan("9.1.0")
    assert after.span("TrainingArguments", "bf16") == ReleaseSpan()
    assert after.span("TrainingArguments", "num_train_epochs") == ReleaseSpan(until=before.newest)
    assert after.keys("fsdp_config", "9.1.0") == {"made_up_key"}
    assert after.keys("choices:FSDPOption", "9.1.0") == {"full_shard"}
    for release in before.names:
        assert after.fields("TrainingArguments", release) == before.fields("TrainingArguments", release)
    bounds = {key: after.value(key, "9.1.0") for key in ("optional:accelerate", "requires:torch", "requires:peft")}
    assert bounds == {"optional:accelerate": ">=2.0", "requires:torch": ">=3", "requires:peft": "<9"}
    assert after.value("optional:transformers", "9.1.0") is None
    rows = {row.claim: row for row in confirmed.rows_of("transformers")}
    assert {row.release for row in rows.values()} == {"9.1.0"}
    assert rows["rule FS201"].asked, "TrainingArguments.__post_init__ changed"
    assert not rows["rule FS215"].asked, "it rests on the tables"
    out = capsys.readouterr().out
    assert f"transformers 9.1.0: {sum(row.asked for row in rows.values())} claims to confirm" in out
    assert str(rows["rule FS201"]) in out


def test_what_changed_in_the_code_of_open_claims_is_shown(
    facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    older = wheel(tmp_path / "cache", f"transformers-{declarations('transformers').newest}-py3-none-any.whl")
    changed = ARGUMENTS.replace("raise ValueError", "raise TypeError")
    package = wheel(tmp_path / "from", training_args=changed)
    run(monkeypatch, "transformers", "--release", "9.1.0", "--from", str(package), "--cache", str(older.parent))
    capsys.readouterr()
    run(monkeypatch, "transformers", "--changes", "--from", str(package), "--cache", str(older.parent))
    shown = capsys.readouterr().out
    assert "+++ 9.1.0 training_args.py:TrainingArguments.__post_init__" in shown
    assert "-        raise ValueError\n+        raise TypeError" in shown


def test_the_first_release_of_a_program_makes_its_file(
    facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (facts / "transformers.json").unlink()
    package = wheel(tmp_path / "from")
    run(monkeypatch, "transformers", "--release", "9.1.0", "--from", str(package))
    assert list(tool.known("transformers").releases) == ["9.1.0"]


def test_an_older_release_is_not_asked(facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = wheel(tmp_path / "from", "transformers-4.1.0-py3-none-any.whl")
    before = confirmed.file_of("transformers").read_bytes()
    run(monkeypatch, "transformers", "--release", "4.1.0", "--from", str(package))
    assert confirmed.file_of("transformers").read_bytes() == before
    assert next(iter(tool.known("transformers").releases)) == "4.1.0"


@pytest.mark.parametrize(
    ("arguments", "trouble"),
    [
        (["--release", "9.2.0"], "the registry has no transformers 9.2.0"),
        ([], "the registry has no transformers 4."),
        (["--confirm", "--from", "{wheel}"], "is not transformers 5"),
        (["--release", "9.2.0", "--from", "{wheel}"], "is not transformers 9.2.0"),
        (["--release", "9.1.0", "--from", "{undated}"], "has no date"),
        (["--release", "9.1.0", "--from", "{moved}"], "nothing found for TrainingArguments"),
    ],
)
def test_nothing_is_written_where_something_is_missing(
    facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], trouble: str
) -> None:
    registry = Registry(Session(("transformers-9.1.0-py3-none-any.whl", b"")), "there")
    monkeypatch.setattr(Registry, "of_pip", lambda: registry)
    packages = {
        "wheel": wheel(tmp_path / "wheel"),
        "undated": wheel(tmp_path / "undated", year=2020),
        "moved": wheel(tmp_path / "moved", training_args="class Elsewhere: pass"),
    }
    before = {path.name: path.read_bytes() for path in facts.glob("*.*")}
    with pytest.raises(SystemExit) as stop:
        run(monkeypatch, "transformers", "--cache", str(tmp_path / "empty"), *(a.format(**packages) for a in arguments))
    assert trouble in str(stop.value)
    assert {path.name: path.read_bytes() for path in facts.glob("*.*")} == before


def test_a_date_can_be_named(facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = wheel(tmp_path / "undated", year=2020)
    run(monkeypatch, "transformers", "--release", "9.1.0", "--from", str(package), "--date", "2027-05-06")
    assert decode(json.loads((facts / "transformers.json").read_bytes())).dates["9.1.0"] == "2027-05-06"


def test_a_release_is_fetched_from_the_registry_with_its_date(
    facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = wheel(tmp_path / "made", year=2020).read_bytes()
    registry = Registry(Session(("transformers-9.1.0-py3-none-any.whl", content)), "there")
    monkeypatch.setattr(Registry, "of_pip", lambda: registry)
    run(monkeypatch, "transformers", "--release", "9.1.0", "--cache", str(tmp_path / "cache"))
    assert decode(json.loads((facts / "transformers.json").read_bytes())).dates["9.1.0"] == "2027-03-04"
    assert in_cache("transformers", "9.1.0", tmp_path / "cache")


def test_what_is_newer_is_listed(
    facts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["transformers-4.9.0.tar.gz", "transformers-99.2.0-py3-none-any.whl", "transformers-99.10.0.tar.gz"]
    registry = Registry(
        Session(*((name, b"") for name in [*names, "transformers-99.11rc1.tar.gz", "any.zip"])), "there"
    )
    monkeypatch.setattr(Registry, "of_pip", lambda: registry)
    monkeypatch.setattr("sys.argv", ["whats_new", "transformers"])
    whats_new.main()
    assert capsys.readouterr().out == f"transformers {declarations('transformers').newest}: 99.2.0 99.10.0\n"


def test_what_go_lists_of_kubeflow_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "github.com/kubeflow/trainer/v2 v2.3.0 v2.10.0 v2.9.1 v2.11.0-rc.0\n"
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, told))
    assert whats_new.newer("kubeflow-trainer") == ["2.9.1", "2.10.0"]


def test_no_go(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise FileNotFoundError("go")

    monkeypatch.setattr(subprocess, "run", none)
    with pytest.raises(Missing, match="go cannot list"):
        whats_new.newer("kubeflow-trainer")


def test_a_release_that_was_also_run(facts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = decode(json.loads((facts / "transformers.json").read_bytes())).run
    run(monkeypatch, "transformers", "--ran", "4.44.2")
    after = decode(json.loads((facts / "transformers.json").read_bytes())).run
    assert after == [*before[:4], "4.44.2", *before[4:]]
    with pytest.raises(SystemExit, match=r"9\.9\.9 is not known"):
        run(monkeypatch, "transformers", "--ran", "9.9.9")


def test_the_registry_gives_the_wheel_and_what_it_promised(tmp_path: Path) -> None:
    session = Session(
        ("soup_transformers-1.0.tar.gz", b"sources"), ("soup_transformers-1.0-py3-none-any.whl", b"built")
    )
    registry = Registry(session, "there")
    assert registry.fetch("soup-transformers", "1.0", tmp_path).read_bytes() == b"built"
    assert in_cache("soup-transformers", "1.0", tmp_path) == tmp_path / "soup_transformers-1.0-py3-none-any.whl"
    session.files["soup_transformers-1.0-py3-none-any.whl"] = b"other"
    with pytest.raises(Missing, match="digest"):
        registry.fetch("soup-transformers", "1.0", tmp_path)
    with pytest.raises(Missing, match="404"):
        registry.versions("nowhere")
    assert Registry(Session(("transformers-1.0.tar.gz", b""), yanked=True), "there").versions("transformers") == []


def test_a_source_distribution_says_what_it_requires_in_its_requirements(tmp_path: Path) -> None:
    files = {
        "axolotl-0.5.0/PKG-INFO": "Name: axolotl\n",
        "axolotl-0.5.0/requirements.txt": "--extra-index-url x\ntransformers==4.46.1\ntrl @ git+https://e.org\n",
        "axolotl-0.5.0/src/axolotl/utils/config.py": "a = 1\n",
        "axolotl-0.5.0/tests/axolotl.py": "",
    }
    with tarfile.open(tmp_path / "axolotl-0.5.0.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(text), 1_700_000_000
            archive.addfile(member, io.BytesIO(text.encode()))
    package = Package(tmp_path / "axolotl-0.5.0.tar.gz", "axolotl")
    assert package.names(r".+\.py") == ["utils/config.py"]
    assert package.bounds() == {"requires:transformers": "==4.46.1", "requires:trl": ""}
    assert package.built.startswith("2023-11-1")


def test_a_table_that_no_release_has_any_more_stays() -> None:
    one, two = Release({"t": {"a": {"x": 1}}}, {"v": None}), Release({"t": {}, "u": {}}, {"v": None})
    history = History("s", ["1.0"], {"1.0": "2024-01-01", "2.0": "2025-01-01"}, {"1.0": one, "2.0": two})
    data = encode(history)
    assert data == {
        "source": "s",
        "releases": ["1.0", "2.0"],
        "run": ["1.0"],
        "dates": {"1.0": "2024-01-01", "2.0": "2025-01-01"},
        "values": {"v": []},
        "tables": {"t": {"a": {"in": "..1.0", "x": 1}}, "u": {}},
    }
    assert encode(decode(data)) == data
