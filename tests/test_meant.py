"""Which known releases may be meant, by what is stated of a program and of its companions."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.engine import lint
from trainlint.repository.discover import Excluder
from trainlint.repository.files import Repository
from trainlint.targets import How, Target
from trainlint.training.meant import KnownReleases, known_releases, target, with_settings

KNOWN = KnownReleases(
    "accelerate",
    ("0.27.2", "0.34.2", "1.0.1", "1.6.0", "1.15.0"),
    {
        "0.27.2": "2023-01-01",
        "0.34.2": "2024-06-01",
        "1.0.1": "2025-02-01",
        "1.6.0": "2025-06-01",
        "1.15.0": "2026-06-01",
    },
    lambda release: {"torch": ">=2.4"} if release == "1.15.0" else {},
)


def meant(folder: Path, files: dict[str, str], known: KnownReleases = KNOWN) -> Target:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    repository = Repository(folder, Excluder((), folder), lambda _: ())
    return target(repository, str(folder / "a.yaml"), known)


@pytest.mark.parametrize(
    ("pin", "versions", "how"),
    [
        ("accelerate==1.6.0", ("1.6.0",), How.STATED),
        ("accelerate>=0.30,<1.1", ("0.34.2", "1.0.1"), How.RANGE),
        ("accelerate~=1.0", ("1.0.1", "1.6.0", "1.15.0"), How.RANGE),
        ("accelerate~=1.6.0", ("1.6.0",), How.RANGE),
        ("accelerate<0.27", ("0.26",), How.STATED),
        ("accelerate<=0.20.3", ("0.20.3",), How.STATED),
        ("accelerate>2", ("2.1",), How.STATED),
        ("accelerate @ git+https://github.com/huggingface/accelerate", KNOWN.names, How.UNKNOWN),
    ],
)
def test_one_statement(tmp_path: Path, pin: str, versions: tuple[str, ...], how: How) -> None:
    """One release, the known ones of a range, or a version of its own for a range outside all known."""
    found = meant(tmp_path, {"requirements.txt": f"# x\n{pin}\n"})
    assert (found.versions, found.how) == (versions, how)
    assert found.origin.endswith("requirements.txt:2")


@pytest.mark.parametrize("text", ["accelerate\n", ""])
def test_nothing_is_stated(tmp_path: Path, text: str) -> None:
    """The known releases of the two years before the newest."""
    found = meant(tmp_path, {"requirements.txt": text})
    assert found == Target(("0.34.2", "1.0.1", "1.6.0", "1.15.0"), "default", How.NOT_STATED)


@pytest.mark.parametrize(
    ("program", "settings", "first"),
    [
        ("accelerate", ["distributed_type", "parallelism_config"], "1.10.1"),
        ("axolotl", ["base_model", "dp_replicate_size"], "0.12.2"),
        ("transformers", ["evaluation_strategy", "fsdp"], "4.31.0"),
        ("trl", ["no_such_setting"], "0.8.6"),
        ("trl", ["lr_scheduler_type", "gradient_checkpointing"], "0.8.6"),
        ("llamafactory", ["finetuning_type", "overwrite_output_dir"], "0.9.0"),
    ],
)
def test_a_setting_that_older_releases_lack(program: str, settings: list[str], first: str) -> None:
    """Where nothing is stated, a file is for a release that has its settings, or for a newer one."""
    names = tuple(known_releases(program).names)
    found = with_settings(Target(names, how=How.NOT_STATED), program, settings)
    assert found.versions == names[names.index(first) :]


def test_settings_of_the_repository_itself() -> None:
    """A setting that the repository defines says nothing of a release that has one of the same name."""
    meant = Target(("1.0.1", "1.15.0"), how=How.NOT_STATED)
    assert with_settings(meant, "accelerate", ["parallelism_config"]).versions == ("1.15.0",)
    assert with_settings(meant, "accelerate", ["parallelism_config"], lambda name: True) == meant


def test_settings_that_no_meant_release_has() -> None:
    """Settings do not leave a file without a release."""
    found = Target(("1.0.1", "1.6.0"), how=How.NOT_STATED)
    assert with_settings(found, "accelerate", ["parallelism_config"]) == found


def test_several_that_differ(tmp_path: Path) -> None:
    """Equally near statements that differ are meant both, and nothing between them."""
    text = "FROM python\nRUN pip install accelerate==1.0.1\nRUN pip install accelerate==1.15.0\n"
    found = meant(tmp_path, {"Dockerfile": text})
    assert (set(found.versions), found.how) == ({"1.0.1", "1.15.0"}, How.STATED)


def test_a_companion_rules_releases_out(tmp_path: Path) -> None:
    """What a release requires of another package must go with what is stated of that."""
    found = meant(tmp_path, {"requirements.txt": "torch==2.1.0\n"})
    assert (found.versions, found.how) == (("0.27.2", "0.34.2", "1.0.1", "1.6.0"), How.RANGE)
    assert found.origin.endswith("requirements.txt:1")


def test_a_dependant_bounds_what_it_stands_on(tmp_path: Path) -> None:
    """LLaMA-Factory 0.9.5 keeps transformers at or below 5.6."""
    found = meant(tmp_path, {"requirements.txt": "llamafactory==0.9.5\n"}, known_releases("transformers"))
    assert found.how is How.RANGE
    assert "4.57.1" in found.versions
    assert not {"5.7.0", "4.49.0"} & set(found.versions)


def test_a_sibling_bounds_nothing(tmp_path: Path) -> None:
    """A copy of LLaMA-Factory beside a project that states its own range is another project's."""
    files = {
        "LLaMA-Factory/src/llamafactory/extras/env.py": 'VERSION = "0.9.2"\n',
        "a/setup.py": "from setuptools import setup\nsetup(install_requires=['accelerate>=0.34.0'])\n",
    }
    known = known_releases("accelerate")
    meant(tmp_path, files, known)
    repository = Repository(tmp_path, Excluder((), tmp_path), lambda _: ())
    inside = target(repository, str(tmp_path / "a" / "configs" / "x.yaml"), known)
    assert inside.versions[-1] == known.names[-1]
    outside = target(repository, str(tmp_path / "configs" / "x.yaml"), known)
    assert outside.versions[-1] == "1.2.1"


def test_a_development_version_bounds_nothing_alone(tmp_path: Path) -> None:
    """The releases around it differ in what they require; the project's own range counts."""
    files = {
        "src/llamafactory/extras/env.py": 'VERSION = "0.9.1.dev0"\n',
        "requirements.txt": "accelerate>=0.30.1,<=0.34.2\n",
    }
    assert meant(tmp_path, files, known_releases("accelerate")).versions[0] == "0.30.1"


@pytest.mark.parametrize(
    "project", [{"trl/setup.py": "setup(install_requires=['accelerate'])\n"}, {"trl/pyproject.toml": ""}]
)
def test_a_sibling_bounds_no_project(tmp_path: Path, project: dict[str, str]) -> None:
    """Also where the file's own project names no release, or nothing at all."""
    known = known_releases("accelerate")
    meant(tmp_path, {"LLaMA-Factory/src/llamafactory/extras/env.py": 'VERSION = "0.9.2"\n', **project}, known)
    repository = Repository(tmp_path, Excluder((), tmp_path), lambda _: ())
    inside = target(repository, str(tmp_path / "trl" / "examples" / "x.yaml"), known)
    assert (inside.versions, inside.how) == (known.recent, How.NOT_STATED)


@pytest.mark.parametrize(
    ("files", "versions", "maybe_another"),
    [
        ({"a.sh": "docker run axolotlai/axolotl:main-20250520-py3.11\n"}, ("0.9.2", "0.10.0"), True),
        ({"a.sh": "docker run winglian/axolotl:main-20241202\n"}, ("0.5.2", "0.6.0"), True),
        ({"a.sh": "docker run winglian/axolotl:main-20250301\n"}, ("0.7.0", "0.8.0"), True),
        ({"a.sh": "docker run winglian/axolotl:main-20241001\n"}, (), False),
        (
            {"README.md": "```\npip install git+https://github.com/axolotl-ai-cloud/axolotl@0a1b2c3d\n```\n"},
            known_releases("axolotl").names,
            True,
        ),
        (
            {"README.md": "```\npip install git+https://github.com/axolotl-ai-cloud/axolotl\n```\n"},
            known_releases("axolotl").names,
            True,
        ),
        (
            {
                "README.md": "```\npip install git+https://github.com/axolotl-ai-cloud/axolotl@0a1b2c3d\n"
                "pip install torch==2.1.2\n```\n"
            },
            (),
            False,
        ),
        ({"requirements.txt": "axolotl\ntransformers==4.36.2\n"}, (), False),
        ({"requirements.txt": "transformers==4.36.2\n"}, known_releases("axolotl").recent, False),
        ({"requirements.txt": "axolotl==0.9.2\ntorch==2.1.2\n"}, ("0.9.2",), False),
        (
            {"Dockerfile": "FROM axolotlai/axolotl:main-py3.11\n", "requirements.txt": "torch==2.1.2\n"},
            known_releases("axolotl").names,
            True,
        ),
    ],
)
def test_older_than_all(tmp_path: Path, files: dict[str, str], versions: tuple[str, ...], maybe_another: bool) -> None:
    """The day of an image, and what an old package beside it shows; a commit alone may be of any time."""
    found = meant(tmp_path, files, known_releases("axolotl"))
    assert (found.versions, found.maybe_another) == (versions, maybe_another)


@pytest.mark.parametrize(
    ("files", "places"),
    [
        ({"a.sh": "docker run winglian/axolotl:main-20241001\n"}, ["a.sh:1"]),
        (
            {
                "README.md": "```\npip install git+https://github.com/axolotl-ai-cloud/axolotl@0a1b2c3d\n"
                "pip install torch==2.1.2\n```\n"
            },
            ["README.md:2", "README.md:3"],
        ),
    ],
)
def test_what_shows_that_a_program_is_older(tmp_path: Path, files: dict[str, str], places: list[str]) -> None:
    """What states nothing leaves no gap in the list."""
    origin = meant(tmp_path, files, known_releases("axolotl")).origin
    assert [Path(place).name for place in origin.split(", ")] == places


CLONE = "git clone https://github.com/axolotl-ai-cloud/axolotl\npip install -e axolotl\n"


@pytest.mark.parametrize(
    ("files", "is_bounded"),
    [
        ({"setup.sh": f"conda install pytorch==2.3.1\n{CLONE}"}, False),
        ({"setup.sh": f"{CLONE}pip install torch==2.3.1\n"}, True),
        ({"README.md": f"```\n{CLONE}```\n", "requirements.txt": "torch==2.3.1\n"}, False),
        ({"requirements.txt": "axolotl @ git+https://github.com/axolotl-ai-cloud/axolotl\ntorch==2.3.1\n"}, True),
        ({"requirements.txt": "transformers==4.57.6\naccelerate==1.12.0\n"}, False),
        ({"requirements.txt": "axolotl\ntransformers==4.57.6\naccelerate==1.12.0\n"}, True),
    ],
)
def test_companions_that_are_installed_together(tmp_path: Path, files: dict[str, str], is_bounded: bool) -> None:
    """What is installed for itself brings its own; what only another program's requirements name says nothing."""
    known = known_releases("axolotl")
    found = meant(tmp_path, files, known)
    assert (found.versions not in (known.names, known.recent)) == is_bounded


def test_releases_that_were_only_read_beside_an_old_companion(tmp_path: Path) -> None:
    """Axolotl 0.6.0 goes with transformers 4.47.0, which no known release does."""
    found = meant(tmp_path, {"requirements.txt": "axolotl\naccelerate==1.2.0\n"}, known_releases("axolotl"))
    assert (found.versions, found.how) == (("0.6.0",), How.RANGE)


def test_a_fork_that_tells_its_version(tmp_path: Path) -> None:
    """Its version counts, what it refuses is a warning, and what it needs is not known."""
    lock = '[[package]]\nname = "trl"\nversion = "0.18.0.dev0"\nsource = { git = "https://github.com/me/trl#0" }\n'
    found = meant(tmp_path, {"uv.lock": lock}, known_releases("trl"))
    assert (found.versions, found.how, found.maybe_another) == (("0.18.0.dev0",), How.STATED, True)
    known = known_releases("accelerate")
    assert meant(tmp_path, {}, known).versions == known.recent


def test_what_replaces_is_not_bounded(tmp_path: Path) -> None:
    """TRL from its main branch, installed behind the project, brings the transformers that it needs."""
    files = {
        "requirements.txt": "trl==0.17.0\ntransformers==4.51.3\n",
        "setup.sh": "pip install -r requirements.txt\npip install git+https://github.com/huggingface/trl\n",
    }
    known = known_releases("trl")
    assert meant(tmp_path, files, known).versions == known.names


@pytest.mark.parametrize(
    ("comment", "versions"),
    [
        ("# for the image `axolotlai/axolotl:0.12.2-py3.11`", ("0.12.2",)),
        ("# winglian/axolotl:main-20241202", ("0.5.2", "0.6.0")),
        ("# winglian/axolotl:main-20241001", ()),
        ("base: 1  # pip install axolotl==0.12.2", None),
        ("# pip install axolotl==0.9.2", ("0.9.2",)),
        ("# axolotl 0.9.2", None),
    ],
)
def test_a_comment_of_the_file(tmp_path: Path, comment: str, versions: tuple[str, ...] | None) -> None:
    """A line of comment names an image or an install command; anything else states more."""
    known = known_releases("axolotl")
    found = meant(tmp_path, {"a.yaml": f"{comment}\nbase_model: x\n"}, known)
    assert found.versions == (known.recent if versions is None else versions)
    assert meant(tmp_path, {"requirements.txt": "axolotl==0.10.0\n"}, known).versions == ("0.10.0",)


OLDER = """base_model: org/model
datasets: [{path: a/b, type: alpaca}]
micro_batch_size: 2
gradient_accumulation_steps: 1
learning_rate: 0.0002
sample_packing: maybe
sequence_parallel_degree: 2
adapter: lora
load_in_8bit: true
load_in_4bit: true
fsdp: [full_shard]
"""


@pytest.mark.parametrize(
    ("pin", "said", "notice"),
    [
        ("==0.8.0", {"FS401": "error", "FS412": "error"}, ""),
        ("==0.6.0", {"FS401": "warning", "FS404": "warning"}, "Axolotl 0.6.0 is known by its settings alone"),
        ("==0.5.1", {"FS401": "warning", "FS404": "warning"}, "Axolotl 0.5.1 is known by its settings alone"),
        (">=0.5,<0.8", {"FS401": "warning", "FS404": "warning"}, ""),
        ("==0.4.1", {}, "Axolotl 0.4.1 is older than 0.5.2"),
    ],
)
def test_releases_that_were_only_read(tmp_path: Path, pin: str, said: dict[str, str], notice: str) -> None:
    """Of these the settings and their types are known: nothing is an error, and no limit counts."""
    (tmp_path / "config.yaml").write_text(OLDER, encoding="utf-8")
    (tmp_path / "requirements.txt").write_text(f"axolotl{pin}\n", encoding="utf-8")
    report = lint([tmp_path / "config.yaml"])
    found = {f.rule: f.level.value for f in report.active if f.rule in ("FS401", "FS404", "FS412")}
    assert found == said
    assert [text[: len(notice)] for text in report.notices] == ([notice] if notice else [])


def test_arguments_of_a_release_that_was_only_read(tmp_path: Path) -> None:
    """LLaMA-Factory's own, and those of the transformers that it goes with."""
    text = (
        "model_name_or_path: org/model\noutput_dir: out\nstage: sft\nfinetuning_type: lora\ndataset: a\n"
        "template: llama3\ndo_train: true\neval_strategy: no\nenable_liger_kernel: true\n"
        "val_size: 0.1\neval_dataset: b\n"
    )
    (tmp_path / "sft.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "requirements.txt").write_text("llamafactory==0.8.3\n", encoding="utf-8")
    found = {(f.rule, f.level.value, f.field) for f in lint([tmp_path / "sft.yaml"]).active}
    assert found == {("FS501", "warning", "enable_liger_kernel"), ("FS201", "warning", "eval_strategy")}
