"""Command lines in workflows, manifests, scripts, Makefiles and Dockerfiles: words, flags and their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainlint.reading.document import documents, of_text
from trainlint.reading.text import Text
from trainlint.recognise import marks
from trainlint.repository.discover import Excluder
from trainlint.repository.files import Repository
from trainlint.repository.invocations import (
    Command,
    Invocation,
    invocations_in,
    invocations_in_script,
    named_file,
    repository_invocations,
)
from trainlint.repository.shell import Word

SOUP = Command("soup train", (("soup", "train"), ("soup_cli.cli", "train")), "soup", counts={"--fsdp": 1})
TUNE = Command("tune run", (("tune", "run"),), "tune", bare={"--standalone"})
LAUNCH = Command(
    "accelerate launch",
    (("accelerate", "launch"), ("accelerate.commands.launch",)),
    "accelerate",
    bare={"--multi_gpu"},
    dashes_as_underscores=True,
    ends_at_script=True,
)
ALL = (SOUP, TUNE, LAUNCH)


def in_yaml(text: str) -> list[Invocation]:
    return [found for document in documents("w.yaml", Text(text)) for found in invocations_in(document, ALL)]


def in_script(name: str, text: str) -> list[Invocation]:
    return invocations_in_script(of_text(name, Text(text)), ALL)


def place(word: Word) -> tuple[int, int, int]:
    span = word.field.span
    assert span.line == span.end_line
    return span.line, span.column, span.end_column


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("run: soup train --fsdp full-shard\n", (1, 24, 34)),
        ('run: soup train --fsdp "full-shard"\n', (1, 24, 36)),
        ("run: soup train --fsdp=full-shard\n", (1, 24, 34)),
        ("run: |\n    # a comment\n    FOO=1 soup train \\\n      --fsdp full-shard\n", (4, 14, 24)),
        ("run: >-\n  soup train\n  --fsdp full-shard\n", (3, 10, 20)),
        ("run: 'echo ''x''; soup train --fsdp ''full-shard'''\n", (1, 37, 50)),
        ('run: "soup train --gpus \\"4\\" \\\n   --fsdp full-shard\\nls"\n', (2, 11, 21)),
        ("command: [bash, -c, 'cd x && soup train --fsdp full-shard > log 2>&1']\n", (1, 48, 58)),
        ("command: [soup]\nargs: [train, --fsdp, full-shard]\n", (2, 23, 33)),
        ("command: [soup, train]\nargs:\n- --fsdp=full-shard\n", (3, 10, 20)),
        ('script:\n- ls\n- srun bash -lc "torchrun -m soup_cli.cli train --fsdp full-shard"\n', (3, 56, 66)),
        ("command: soup train --fsdp full-shard\n", (1, 28, 38)),
        ("data:\n  job.sh: |+\n\n    soup train --fsdp full-shard\n\n", (4, 23, 33)),
        ("run: |2\n    soup train --fsdp full-shard\n", (2, 23, 33)),
        ("run: |\r\n  soup train --fsdp full-shard\r\n", (2, 21, 31)),
    ],
)
def test_place_of_a_word_in_yaml(text: str, expected: tuple[int, int, int]) -> None:
    """The exact word, quotes included, whatever the style of the scalar."""
    (found,) = in_yaml(text)
    flag = found.given("--fsdp")
    assert flag is not None
    assert found.flag("--fsdp").known == "full-shard"
    assert place(flag.values[0]) == expected


def test_place_behind_an_escape_is_the_scalar() -> None:
    """A YAML escape that hides where a character stands leaves the whole scalar as the place."""
    (found,) = in_yaml('run: "soup train --fsdp \\x66ull"\n')
    assert found.flag("--fsdp").known == "full"
    assert found.flag("--fsdp").field.span.column == 6


@pytest.mark.parametrize(
    "text",
    ["$P", '"$P"', "${P:-x}", "$(cat p)", "`cat p`", "${{ inputs.preset }}", "{{ .Values.p }}", "<preset>", "a*"],
)
def test_filled_in_later(text: str) -> None:
    """What a shell or template fills in is Unknown."""
    (found,) = in_yaml(f"run: |\n  soup train --fsdp {text} --gpus 4\n")
    assert found.flag("--fsdp").unknown
    assert found.flag("--gpus").known == "4"
    assert found.flag("--config").absent


def test_single_quotes_keep_a_dollar() -> None:
    """The shell leaves `$` alone in single quotes, an escaped one everywhere."""
    (found,) = in_yaml("run: |\n  tune run r 'a=$b' \"c=\\$d\"\n")
    assert [word.known for word in found.positionals] == ["r", "a=$b", "c=$d"]


def test_script_that_begins_with_environment() -> None:
    """What goes before a command inside a shell's own text does not hide it."""
    (found,) = in_yaml("command: [/bin/sh, -c]\narguments: ['A=\"/x:$A\" tune run r a=b']\n")
    assert [word.text for word in found.positionals] == ["r", "a=b"]


def test_open_command() -> None:
    """A word that may expand to flags makes absent flags Unknown."""
    (found,) = in_yaml("run: soup train $FLAGS\n")
    assert found.flag("--fsdp").unknown


def test_launcher_ends_at_its_script() -> None:
    """Flags of either spelling, then the script, then what belongs to it."""
    (found,) = in_yaml("run: accelerate launch --multi-gpu --num-processes 8 train.py b.yaml --lr 1\n")
    assert found.has("--multi_gpu")
    assert found.flag("--num_processes").known == "8"
    assert [word.text for word in found.positionals] == ["train.py"]
    assert [word.text for word in found.rest] == ["b.yaml", "--lr", "1"]


@pytest.mark.parametrize(
    "text",
    [
        "run: echo soup train --fsdp x\n",
        "run: 'true # soup train'\n",
        "name: soup train\n",
        "run: soup trainer\n",
        "run: pip install soup train\n",
    ],
)
def test_not_an_invocation(text: str) -> None:
    """Mentions that start nothing."""
    assert in_yaml(text) == []


def test_folders() -> None:
    """`cd` within a script, a subshell's own, and the working directory of a step or workflow."""
    text = "run: |\n  (cd sub && tune run a)\n  cd x\n  tune run b\n  cd $Y && tune run c\n"
    assert [found.folder for found in in_yaml(text)] == ["sub", "x", None]
    text = "defaults:\n  run: {working-directory: w}\njobs:\n  j:\n    steps:\n"
    text += "    - run: tune run a\n    - run: tune run b\n      working-directory: v\n"
    assert [found.folder for found in in_yaml(text)] == ["w", "v"]


def test_script() -> None:
    """Here-documents are read, quotes in them do no harm outside, redirections are no words."""
    text = (
        "cat > job.sh <<EOF\ndon't\nsoup train --fsdp a\nEOF\nsoup train --fsdp b > log 2>&1 && soup train --fsdp c\n"
    )
    found = in_script("run.sh", text)
    assert [(f.flag("--fsdp").known, f.words[-1].text) for f in found] == [("a", "a"), ("b", "b"), ("c", "c")]


def test_makefile() -> None:
    """Recipe prefixes, make's own variables, and a shell for each line."""
    text = "train:\n\t@cd a && soup train --fsdp $(P)\n\t-soup train --fsdp x \\\n\t  --gpus 2\n"
    first, second = in_script("Makefile", text)
    assert (first.folder, first.flag("--fsdp").unknown) == ("a", True)
    assert (second.folder, second.flag("--gpus").known, second.name) == ("", "2", "soup train")


def test_dockerfile() -> None:
    """Shell form, list form, and an entry point with its default command."""
    text = 'FROM a\nWORKDIR /app\nRUN soup train --fsdp r\nENTRYPOINT ["soup", "train"]\nCMD ["--fsdp", "z"]\n'
    run, start = in_script("Dockerfile", text)
    assert (run.folder, run.flag("--fsdp").known) == ("/app", "r")
    assert start.flag("--fsdp").known == "z"
    assert place(start.words[1]) == (5, 16, 19)


def test_hostile() -> None:
    """Nothing that is never closed costs more than a glance."""
    for piece in ("$(", "{{ ", "`", "${", "<<A\n", "'", '"', "\\", "( ", "bash -c '"):
        assert in_script("run.sh", "soup train --fsdp a\n" + piece * 20_000)


def test_repository(tmp_path: Path) -> None:
    """All files of the workspace, also YAML without any program's marker; files that commands name."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "a.yaml").write_text("x: 1\n")
    (tmp_path / "run.sh").write_text("cd conf && tune run r --config a.yaml\n")
    (tmp_path / "ci.yml").write_text("run: tune run r --config /app/conf/a.yaml\n")
    repository = Repository(tmp_path, Excluder((), tmp_path), marks)
    found = repository_invocations(repository, TUNE)
    assert [Path(f.document.path).name for f in found] == ["ci.yml", "run.sh"]
    for invocation in found:
        file = named_file(repository, invocation, invocation.flag("--config").known or "")
        assert file is not None
        assert file.samefile(tmp_path / "conf" / "a.yaml")
    assert named_file(repository, found[1], "b.yaml") is None


def test_which_file_is_meant(tmp_path: Path) -> None:
    """From the workspace or from beside the script, never a guess between two."""
    for name in ("a.yaml", "jobs/a.yaml", "jobs/b.yaml", "c/d.yaml", "e/d.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x: 1\n")
    lines = ["--c a.yaml", "--c b.yaml", "--c ../a.yaml", "--c /w/jobs/b.yaml", "--c /w/d.yaml", "--c /w/c/d.yaml"]
    script = "".join(f"tune run r {line}\n" for line in lines) + "cd $X && tune run r --c b.yaml\n"
    (tmp_path / "jobs" / "run.sh").write_text(script + "cd /app && tune run r --c jobs/b.yaml\n")
    repository = Repository(tmp_path, Excluder((), tmp_path), marks)
    found = invocations_in_script(repository.script(tmp_path / "jobs" / "run.sh"), [TUNE])
    files = [named_file(repository, f, f.flag("--c").known or "") for f in found]
    names = [file and file.resolve().relative_to(tmp_path.resolve()).as_posix() for file in files]
    assert names == [None, "jobs/b.yaml", "a.yaml", "jobs/b.yaml", None, "c/d.yaml", "jobs/b.yaml", "jobs/b.yaml"]


@pytest.mark.parametrize(
    ("before", "word", "name"),
    [
        ("C=conf/a.yaml\n", "$C", "conf/a.yaml"),
        ('export C="conf/a.yaml"\n', '"${C}"', "conf/a.yaml"),
        ("D=conf\nN='a'\n", "$D/${N}.yaml", "conf/a.yaml"),
        ("C=a.yaml\nC=b.yaml\n", "$C", None),
        ("C=$1\n", "$C", None),
        ("C=${1:-a.yaml}\n", "$C", None),
        ("for C in a.yaml b.yaml; do\n", "$C", None),
        ("for C in *.yaml; do\n", "$C", None),
        ("", "$C", None),
        ("C=a.yaml\n", "{{ C }}", None),
        ("C=a.yaml\n", "a.yaml", "a.yaml"),
    ],
)
def test_a_file_in_a_variable(before: str, word: str, name: str | None) -> None:
    """A variable counts that gets one text, in one place; of a loop nobody knows which."""
    (found,) = in_script("run.sh", f"{before}tune run r --config {word}\n")
    assert found.named_by("--config") == name


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ('cmd="soup train --fsdp x"\neval $cmd\n', True),
        ("cmd='X=1 /opt/soup train --fsdp x'\n$cmd\n", True),
        ("soup train --fsdp x\n", False),
    ],
)
def test_a_command_in_a_variable(text: str, stored: bool) -> None:
    """Who runs it may add words, so that nothing is known to be absent."""
    (found,) = in_script("run.sh", text)
    assert (found.stored, found.flag("--fsdp").known, found.flag("--data").unknown) == (stored, "x", stored)


@pytest.mark.parametrize("text", ['usage="run soup train --fsdp x"\n', "name='soup train'er\n", "a=soup b=train\n"])
def test_no_command_in_a_variable(text: str) -> None:
    assert in_script("run.sh", text) == []
