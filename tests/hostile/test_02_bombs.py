"""Small files that would take long, or much memory: steps grow with the size of a file, up to the budget.

Steps are calls, which depend on no machine. Where a file goes beyond the budget that is one finding, and the job beside
it is checked in every case.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from checkout import ACCELERATE, ARGUMENTS, AXOLOTL, JOB, RECIPE, RUNTIME, SOUP, build, codes, steps
from trainlint import fixes
from trainlint.budget import BUDGET
from trainlint.catalogue import parse_target
from trainlint.engine import lint
from trainlint.findings import Severity, nearest
from trainlint.reading.document import documents
from trainlint.reading.text import Text
from trainlint.report import Report
from trainlint.reports.diff import Rounds
from trainlint.settings import Overrides

Files = dict[str, str | bytes]
Made = Callable[[int], Files]
CLEAN = JOB.replace("numNodez", "numNodes")
PROGRAMS = {
    "job": CLEAN,
    "accelerate": ACCELERATE,
    "arguments": ARGUMENTS,
    "axolotl": AXOLOTL,
    "soup": SOUP,
    "recipe": RECIPE,
}


LLAMA = "model_name_or_path: x\nfinetuning_type: lora\nstage: sft\ntemplate: x\noutput_dir: b\n"


def each(n: int, line: str) -> str:
    """A line for each number."""
    return "".join(line.replace("#", str(number)) for number in range(n))


def chain(n: int, link: str) -> str:
    """Anchors that each hold the one before."""
    return "a0: &a0 {k: 1}\n" + "".join(f"a{i}: &a{i} {link.replace('#', str(i - 1))}\n" for i in range(1, n))


BEYOND: dict[str, tuple[str, str]] = {
    "brackets": (f"env: {'[' * 100_000}", "levels deep"),
    "dashes": (f"env:\n{'- ' * 100_000}a", "levels deep"),
    "braces": (f"x: {'{a: ' * 150}1{'}' * 150}", "levels deep"),
    "aliases of aliases": (chain(400, "{k: *a#}"), "levels deep"),
    "merges of merges": (chain(400, "{<<: *a#}"), "levels deep"),
    "alias bomb": (
        "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 24)),
        "values, with its aliases",
    ),
    "merges of one map": (
        f"b: &b {{{each(2000, 'k#: 1, ')}}}\nx:\n{'- {<<: [*b, *b, *b, *b]}' * 1}\n"
        + "- {<<: [*b, *b, *b, *b]}\n" * 20,
        "values, with its aliases",
    ),
    "documents": ("---\na: 1\n" * 70_000, "250,000 values"),
    "lines": ("\n" * 600_000, "500,000 lines"),
    "comments": ("# trainlint: ignore[TT102]\n" * 500_001, "larger than 10 MB"),
    "bytes": (f"x: '{'a' * BUDGET.bytes}'\n", "larger than 10 MB"),
    "a text": (f"x: '{'a' * 1_000_001}'\n", "1,000,000 characters"),
    "a number": (f"x: {'7' * 900_000}\n", "250 digits"),
    "an octal number": (f"x: 0{'7' * 900_000}\n", "250 digits"),
    "a sexagesimal number": (f"x: 1{':1' * 100_000}\n", "250 digits"),
    "a quoted number": (f"x: 'a={'9' * 5_000}'\n", "250 digits"),
    "a key": (f"? 0x{'f' * 4_000}\n: 1\n", "250 digits"),
}


@pytest.mark.parametrize(("name", "program"), [*((name, "job") for name in BEYOND), *(("braces", p) for p in PROGRAMS)])
def test_one_finding_where_a_file_goes_beyond(name: str, program: str, tmp_path: Path) -> None:
    content, what = BEYOND[name]
    build(tmp_path, {"bomb.yaml": f"{PROGRAMS[program]}{content}", "job.yaml": JOB})
    report = lint([tmp_path])
    (beyond,) = (finding for finding in report.findings if finding.rule == "TL003")
    assert what in beyond.message
    assert beyond.level is Severity.NOTE
    assert "TJ011" in codes(report)["job.yaml"]
    assert not report.crashed


def config(text: str, line: str, end: str = "") -> Made:
    """One config with a line for each number."""
    return lambda n: {"bomb.yaml": text + each(n, line) + end}


def script(line: str, start: str = "accelerate launch x\n", end: str = "\n") -> Made:
    """A config, and a script that repeats something."""
    return lambda n: {"f.yaml": ACCELERATE, "run.sh": start + line * n + end}


def folders(**files: str) -> Made:
    """Files in each of many folders."""
    named = {name.replace("__", "."): text for name, text in files.items()}
    return lambda n: {f"o{i}/{name}": text for i in range(n) for name, text in named.items()}


def companion(name: str, line: str, start: str = "", end: str = "") -> Made:
    """A config, and a file that states releases."""
    return lambda n: {"f.yaml": ACCELERATE, name: start + each(n, line) + end}


def comments(*words: str) -> Made:
    """A job, and comments with the number of each line."""
    return lambda n: {"f.yaml": CLEAN + "".join(f"# trainlint: {w.format(i)}\n" for i in range(n) for w in words)}


TRAINER = CLEAN.replace("{numNodes: 1}", "")
TUNED = TRAINER.replace("torch-distributed", "torchtune-llama3.2-1b")
LAUNCH = "accelerate launch --config_file {} t.py\n"
TUNE = "  tune run full_finetune_single_device --config f.yaml a=1\n"
FAR = LAUNCH.format(f"/{'q/' * 40}z#.yaml")
CLONE = "git clone https://github.com/huggingface/accelerate\ngit checkout v1.0.0\n"


def doubled(n: int) -> str:
    """A config in which each value is made of the one before, twice."""
    return f"{RECIPE}a0: ''\n" + "".join(f"a{i + 1}: '${{a{i}}}${{a{i}}}'\n" for i in range(n))


BOMBS: dict[str, tuple[int, Made]] = {
    "unknown fields of a job": (25, config(CLEAN, "  numNode#s: 1\n")),
    "variables": (25, config(f"{TRAINER}\n    env:\n", "    - {name: PET_#, value: $(PET_1)}\n")),
    "arguments of torchtune": (25, config(f"{TUNED}\n    args:\n", "    - optimizer.lr#=1\n")),
    "keys of accelerate": (25, config(ACCELERATE, "  fsdp_auto_wrap_polic#: 1\n")),
    "keys of transformers": (25, config(ARGUMENTS, "per_device_train_batch_siz#: 1\n")),
    "keys of axolotl": (25, config(AXOLOTL, "gradient_accumulation_stepz#: 1\n")),
    "keys of soup": (25, config(SOUP.replace("epochs: 1}", ""), "gradient_stepz#: 1, ", "epochs: 1}\n")),
    "keys of torchtune": (25, config(RECIPE, "  vocab_siz#: 1\n")),
    "components": (15, config(RECIPE, "m#:\n  _component_: torchtune.models.llama3.llama3_8c#\n")),
    "one key again and again": (100, config(ARGUMENTS, "num_train_epochs: 1\n")),
    "jobs": (10, config("", f"---\n{JOB}")),
    "runtimes": (8, config("", f"---\n{RUNTIME.replace('NAME', 'r#')}")),
    "documents of others": (100, config(CLEAN, "---\na: 1\n")),
    "suppressions of nothing": (25, config(f"{CLEAN}# trainlint: ignore[", "TT1#x,", "] x\n")),
    "lines of suppressions": (25, comments("ignore[TT1{0}x] x")),
    "ranges of suppressions": (25, comments("ignore-start[TT1{0}x] x")),
    "ends of ranges": (25, comments("ignore-start[TT102] x", "ignore-end[TT10{0}]")),
    "overrides": (
        25,
        lambda n: {"j.yaml": JOB, "trainlint.toml": each(n, "[[overrides]]\npaths = ['p#']\nselect = ['TT']\n")},
    ),
    "files with rules": (
        25,
        lambda n: {"j.yaml": JOB, "trainlint.toml": "[per-file-ignores]\n" + each(n, "p# = ['TT']\n")},
    ),
    "launches of one config": (15, script(LAUNCH.format("f.yaml"))),
    "launches of a config that is not there": (15, lambda n: {"f.yaml": ACCELERATE, "run.sh": each(n, FAR)}),
    "launches of many configs": (8, folders(f__yaml=ACCELERATE, run__sh=LAUNCH.format("f.yaml"))),
    "starts of torchtune": (15, lambda n: {"f.yaml": RECIPE, "w.yaml": f"run: |\n{TUNE * n}"}),
    "starts that differ": (8, lambda n: {"f.yaml": RECIPE, "run.sh": each(n, f"{TUNE.strip()} b=#\n")}),
    "one script by many aliases": (8, config(f"s: &s '{'tune run x a=1; ' * 20}'\n", "j#: {run: *s}\n")),
    "definitions of one runtime": (
        8,
        folders(r__yaml=RUNTIME.replace("NAME", "r"), j__yaml=CLEAN.replace("torch-distributed", "r")),
    ),
    "patches": (15, lambda n: {"kustomization.yaml": "patches:\n" + each(20 * n, "- path: p#\n"), "j.yaml": CLEAN}),
    "folders with settings": (6, folders(a__yaml=ACCELERATE, trainlint__toml="")),
    "folders with requirements": (6, folders(a__yaml=ACCELERATE, requirements__txt="accelerate==1.0\n")),
    "constraints": (
        20,
        lambda n: {
            "f.yaml": ACCELERATE,
            "requirements.txt": each(n, "accelerate>=1.#\n"),
            "constraints.txt": each(n, "accelerate<2.#\n"),
        },
    ),
    "requirements": (50, companion("requirements.txt", "accelerate==1.0.#\n")),
    "blanks in requirements": (300, companion("requirements.txt", " ", "accelerate")),
    "project": (50, companion("pyproject.toml", "'accelerate>=1.#',", "[project]\ndependencies = [", "]\n")),
    "equals signs of conda": (300, companion("environment.yml", "=", 'dependencies:\n- "accelerate', '\\n\\nx"\n')),
    "code": (50, companion("a.py", 'run("pip install accelerate==1.#")\n')),
    "code on one line": (50, companion("a.py", 'run("pip install accelerate==1.#"); ', "é = 1; ")),
    "words": (200, script("w ", "accelerate ")),
    "options": (200, script("-c ", "accelerate ")),
    "names as options": (200, script("-accelerate ", "x ")),
    "scripts in scripts": (50, script("--wrap=", "accelerate launch x\nsbatch ", "x\n")),
    "evals": (50, script("eval --wrap=", end="x\n")),
    "here-documents": (50, script("cat <<E <<E <<E\n")),
    "folders entered": (200, script("cd a\n")),
    "clones": (30, script(CLONE)),
    "words of fsdp": (100, config(f"{ARGUMENTS}fsdp: '", "full_shar# ", "'\n")),
    "references in a row": (60, config(f"{RECIPE}a0: ${{model}}\n", "b#: ${b#x}\n")),
    "references of references": (7, lambda n: {"f.yaml": doubled(n)}),
    "a long text with a reference": (500, config(f"{RECIPE}a: '${{model}}", "\\xyz", "'\n")),
}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All is imported, and no fact is read for the first time."""
    files = {name: text for _, made in BOMBS.values() for name, text in made(2).items()}
    lint([build(tmp_path_factory.mktemp("warm"), {**files, **{f"{n}.yaml": text for n, text in PROGRAMS.items()}})])


def count(folder: Path, files: Files) -> int:
    """The steps of a run over a folder, in which the job beside the files is checked as ever."""
    build(folder, {"beside/job.yaml": JOB, **files})
    reports: list[Report] = []
    taken = steps(lambda: reports.append(lint([folder])))
    assert "TJ011" in codes(reports[0])["job.yaml"]
    assert not reports[0].crashed
    return taken


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("name", BOMBS)
def test_steps_grow_with_the_size(name: str, tmp_path: Path) -> None:
    size, made = BOMBS[name]
    few, many = (count(tmp_path / str(times), made(size * times)) for times in (1, 4))
    assert many < 4.5 * few


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("part", ["{", "$(a", "`{{", "$(((a)", '"', "'", "\\a", "<a", "$a", "a ", "{%", "${a"])
def test_a_script_of_any_text(part: str, tmp_path: Path) -> None:
    def made(length: int) -> Files:
        return {"f.yaml": ACCELERATE, "run.sh": f"accelerate launch x\n{part * length}"}

    few, many = (count(tmp_path / str(length), made(length)) for length in (700, 2800))
    assert many < 4.5 * few


LARGE: dict[str, Made] = {
    "misspelt arguments": lambda n: {"t.yaml": ARGUMENTS + each(n // 20, "learning_rat#: 1\n")},
    "misspelt keys of axolotl": lambda n: {"a.yaml": AXOLOTL + each(n // 24, "sample_packin#: true\n")},
    "datasets that are not there": lambda n: {
        "l.yaml": f"{LLAMA}dataset: {each(n // 24, 'datase#,')}\n",
        "data/dataset_info.json": f'{{{each(n // 36, chr(34) + "dataset#" + chr(34) + ": {}, ")}"a": {{}}}}',
    },
    "keys of DeepSpeed": lambda n: {
        "t.yaml": f"{ARGUMENTS}deepspeed: d.json\n",
        "d.json": f'{{{each(n // 18, chr(34) + "k#" + chr(34) + ": {}, ")}"a": 1}}',
    },
    "keys of DeepSpeed in a text": lambda n: {
        "t.yaml": f"{ARGUMENTS}deepspeed: '{{{each(n // 18, chr(34) + 'k#' + chr(34) + ': {}, ')}\"a\": 1}}'\n"
    },
    "groups that include groups": lambda n: {
        "f.yaml": ACCELERATE,
        "pyproject.toml": "[dependency-groups]\n"
        + "".join(f"g{i}=['accelerate>=1.0',{{include-group='g{i + 1}'}}]\n" for i in range(n // 54)),
    },
    "requirements that name requirements": lambda n: {
        "f.yaml": ACCELERATE,
        "requirements.txt": "-r r0.txt\n",
        **{f"r{i}.txt": f"-r r{i + 1}.txt\n-r r{i + 2}.txt\naccelerate>=1.0\n" for i in range(n // 800)},
    },
    "requirements that all name all": lambda n: {
        "f.yaml": ACCELERATE,
        **{f"requirements-{i}.txt": each(n // 1_800, "-r requirements-#.txt\n") for i in range(n // 1_800)},
    },
    "members of a lock": lambda n: {
        "f.yaml": ACCELERATE,
        "uv.lock": each(n // 90, '[[package]]\nname = "m#"\nsource = { editable = "folder/member#" }\n')
        + '[[package]]\nname = "accelerate"\nversion = "1.8.1"\n' * 499,
    },
}


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("name", LARGE)
def test_a_large_file_is_no_bomb(name: str, tmp_path: Path) -> None:
    """150 kB of one kind take less than two seconds: so many calls, whatever the machine."""
    assert count(tmp_path, LARGE[name](150_000)) < 12_000_000


@pytest.mark.usefixtures("warm")
def test_many_fixes_of_many_lines(tmp_path: Path) -> None:
    """A diff looks for no common lines, and no fix is compared with each other."""

    def taken(lines: int) -> int:
        rest = each(lines, "- {a: 1}\n") + "- 1\n" * lines
        fixed = f"---\n{ARGUMENTS}overwrite_output_dir: true\nlearning_rate: 1e-5\nx:\n{rest}" * 2
        build(tmp_path, {"a.yaml": fixed})
        report = lint([tmp_path], Overrides(targets=parse_target("transformers=5.24.0")))
        (mended,) = fixes.mended(report)
        assert mended.fixed == 4
        rounds = Rounds(mended.path, mended.before)
        rounds.add(mended)
        return steps(rounds.diff)

    assert taken(2_000) < 4.5 * taken(500)


def test_a_long_script_is_cut(tmp_path: Path) -> None:
    words = "accelerate launch --config_file f.yaml t.py\n"
    build(tmp_path, {"f.yaml": ACCELERATE, "run.sh": words + "a" * BUDGET.script})
    (said,) = (notice for notice in lint([tmp_path]).notices if "run.sh" in notice)
    assert said.endswith(f"run.sh: commands are read in its first {BUDGET.script:,} characters only")


@pytest.mark.parametrize("link", ["| a", "[0]", ".a"])
def test_a_long_annotation_is_no_fault(link: str, tmp_path: Path) -> None:
    """Code that is nested too deeply tells nothing; the file that it may read is checked."""
    code = (
        f"class Own(TrainingArguments):\n    alpha: a{link * 1_800} = 1\n"
        "HfArgumentParser((Own,)).parse_yaml_file('a.yaml')\n"
    )
    build(tmp_path, {"a.yaml": f"{ARGUMENTS}max_steps: x\n", "train.py": code})
    report = lint([tmp_path], Overrides(targets=parse_target("transformers=5.24.0")))
    assert not report.crashed
    assert codes(report) == {"a.yaml": {"FS203"}}


def test_honest_large_files_are_whole() -> None:
    jobs = each(1000, f"---\n{CLEAN}")
    config = AXOLOTL + "plugins:\n" + "- a.b.Plugin\n" * 15_000
    assert len(config) > 200_000 - 10_000
    assert len(list(documents("jobs.yaml", Text(jobs)))) == 1000
    assert len(list(documents("config.yaml", Text(config)))) == 1


def test_findings_of_one_rule(tmp_path: Path) -> None:
    build(tmp_path, {"a.yaml": ACCELERATE + each(BUDGET.findings + 100, "  k#: 1\n")})
    report = lint([tmp_path], Overrides(select=("FS001", "TL003")))
    assert [f.rule for f in report.findings] == ["FS001"] * BUDGET.findings + ["TL003"]
    assert report.findings[-1].span.line == report.findings[-2].span.line + 1


def test_suppression_comments_of_one_file(tmp_path: Path) -> None:
    build(tmp_path, comments("ignore[TT102] {0}")(BUDGET.comments + 1))
    (beyond,) = (finding for finding in lint([tmp_path]).findings if finding.rule == "TL003")
    assert beyond.message == f"further suppression comments are not read: there are more than {BUDGET.comments:,}"
    assert beyond.span.line == CLEAN.count("\n") + BUDGET.comments + 1


def test_few_words_are_compared() -> None:
    known = [f"gradient_accumulation_step{i}" for i in range(2000)]
    assert nearest("gradient_accumulation_stepz", known) in known
    assert nearest("g" * (BUDGET.likened + 1), known) is None
    assert steps(lambda: nearest("learning_rate", known)) < 100
