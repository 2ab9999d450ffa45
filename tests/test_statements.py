"""What each form of file states of a package's release, and where it stands.

The cases are in `statements/*.txt`: `=== file name`, what it holds, and behind `>>>` each statement, as `told` has it.
"""

from __future__ import annotations

import json
import random
import re
import time
from pathlib import Path

import pytest

from trainlint.repository.statements import Form, Kind, Statement, form_of, statements_of, trees
from trainlint.repository.statements.page import Broken

ALL = (
    "accelerate axolotl kubeflow kubeflow-trainer kubeflow-trainer-api kubernetes llamafactory soup-cli torch torchtune"
    " transformers trl".split()
)
CASES = [
    (source.stem, match[1], match[2], re.findall(r"^>>> (.*)$", match[3], re.MULTILINE))
    for source in sorted(Path(__file__).with_name("statements").glob("*.txt"))
    for match in re.finditer(
        r"^=== ([^\n]+)\n((?:(?!>>>)[^\n]*\n)*)((?:>>> [^\n]*\n)+)", source.read_text(encoding="utf-8"), re.MULTILINE
    )
]


def told(statement: Statement) -> str:
    """A statement in one line: `trl ==0.17.0 @1:1`, `trl >=0.9 @2:3 [extra]`, `trl ? main @1:1`."""
    sign = {Kind.EXACT: "==", Kind.RANGE: "", Kind.UNKNOWN: "? "}[statement.kind]
    extra = f" [{statement.extra}]" if statement.extra else ""
    text = f"{sign}{statement.specifier}".strip() or "any"
    return f"{statement.package} {text} @{statement.span.line}:{statement.span.column}{extra}"


def test_cases_are_found() -> None:
    """Every block of the case files is one."""
    sources = Path(__file__).with_name("statements").glob("*.txt")
    blocks = sum(len(re.findall(r"^=== ", source.read_text(encoding="utf-8"), re.MULTILINE)) for source in sources)
    assert len(CASES) == blocks > 200


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{CASES.index(case)}")
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_statements(case: tuple[str, str, str, list[str]], ends: str) -> None:
    """Each form, with the place of each statement; ends of lines change nothing."""
    _, name, text, expected = case
    text = text.replace("\n", ends)
    reading = statements_of(name, text.encode(), ALL)
    assert reading.unreadable is None, reading.unreadable
    assert sorted(told(statement) for statement in reading.statements) == sorted(e for e in expected if e != "nothing")
    lines = text.split(ends)
    for span in (statement.span for statement in reading.statements):
        assert (span.line, span.column) < (span.end_line, span.end_column)
        assert lines[span.line - 1][span.column - 1 :].strip()


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("requirements-dev.txt", " [dev]"),
        ("requirements/docs.txt", " [docs]"),
        ("requirements_gpu.txt", ""),
        ("reqs.txt", ""),
        ("constraints.txt", ""),
        ("requirements.in", ""),
        ("requirements.lock", ""),
        ("a/requirements/train.txt", ""),
        ("environment.txt", ""),
        ("pip_list.txt", ""),
    ],
)
def test_requirements_of_any_name(name: str, extra: str) -> None:
    """The name tells, or that there is nothing but requirements in it."""
    reading = statements_of(name, b"numpy==1.26.4\ntrl==0.17.0\n", ALL)
    assert [told(statement) for statement in reading.statements] == [f"trl ==0.17.0 @2:1{extra}"]


def test_lock_of_a_workspace() -> None:
    """A uv.lock speaks for each member of its workspace."""
    package = '[[package]]\nname = "{}"\nversion = "0.17.0"\nsource = {{ {} }}\n'
    text = package.format("trl", 'registry = "r"') + package.format("job", 'editable = "packages/job"')
    reading = statements_of("a/uv.lock", text.encode(), ["trl"])
    assert [statement.home for statement in reading.statements] == ["a", "a/packages/job"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(encoding: str) -> None:
    """What PowerShell writes is read too."""
    reading = statements_of("requirements.txt", "numpy\r\ntrl==0.17.0\r\n".encode(encoding), ALL)
    assert [told(statement) for statement in reading.statements] == ["trl ==0.17.0 @2:1"]


@pytest.mark.parametrize(
    ("name", "text", "includes"),
    [
        ("requirements.txt", "-r train.txt\n--requirement=a/b.txt\n-c c.txt\n", ["train.txt", "a/b.txt", "-c c.txt"]),
        ("pyproject.toml", "[tool.setuptools.dynamic]\ndependencies = {file = ['deps.txt']}", ["deps.txt"]),
        (
            "pyproject.toml",
            "[project]\nname = 'trl'\n[tool.setuptools.dynamic]\nversion = {file = 'VERSION'}",
            ["trl: VERSION", "trl: version.txt"],
        ),
        (
            "pyproject.toml",
            "[project]\nname = 'llamafactory'\n[tool.hatch.version]\npath = 'src/llamafactory/extras/env.py'",
            ["llamafactory: src/llamafactory/extras/env.py", "llamafactory: VERSION", "llamafactory: version.txt"],
        ),
        ("setup.cfg", "[options]\ninstall_requires = file: a.txt, b.txt\n", ["a.txt", "b.txt"]),
        ("setup.py", "with open('r.txt') as f:\n    r = f.readlines()\nsetup(install_requires=r)", ["r.txt"]),
        ("setup.py", "def get():\n  return open('r.txt').read().split()\nsetup(install_requires=get())", ["r.txt"]),
        ("setup.py", "setup(install_requires=(HERE / 'r.txt').read_text().splitlines())", ["r.txt"]),
        ("setup.py", "def v():\n  return open('VERSION').read()\nsetup(name='trl', version=v())", ["trl: VERSION"]),
        (
            "install.sh",
            "cd a && pip install -r r.txt -c c.txt\nconda env create -f e.yml\n",
            ["a/r.txt", "-c a/c.txt", "a/e.yml"],
        ),
        ("install.sh", "pip install -rr.txt && uv pip install --requirement=s.txt\n", ["r.txt", "s.txt"]),
        ("environment.yml", "dependencies:\n- pip:\n  - -r r.txt\n# trl\n", ["r.txt"]),
        ("go.mod", "module github.com/kubeflow/trainer/v2\n", ["kubeflow-trainer: VERSION"]),
    ],
)
def test_includes(name: str, text: str, includes: list[str]) -> None:
    """Files that a file names, for others to follow."""
    reading = statements_of(name, text.encode(), ALL)
    found = [
        ("-c " if i.form is Form.CONSTRAINTS else "") + (f"{i.package}: " if i.package else "") + i.path
        for i in reading.includes
    ]
    assert list(dict.fromkeys(found)) == includes


@pytest.mark.parametrize(
    ("name", "text", "line", "reason"),
    [
        ("pyproject.toml", b"[project]\ndependencies = ['trl==0.17.0'", 2, "not TOML"),
        ("uv.lock", b"[[package]]\nname = 'trl'\nversion = \n", 3, "not TOML"),
        ("Pipfile.lock", b'{"default": {"trl": ', 1, "not JSON: it ends too early"),
        ("setup.py", b"x = 1\nsetup(install_requires=['trl'", 1, "not Python: line 2"),
        ("setup.py", b"trl = '\0'", 1, "not Python"),
        ("environment.yml", b"dependencies: [trl", 1, "expected"),
        ("requirements.txt", b"trl==0.17.0\n\xff\n", 2, "not UTF-8"),
    ],
)
def test_unreadable(name: str, text: bytes, line: int, reason: str) -> None:
    """A file whose name promises a release, and that cannot be read, says why, and states nothing."""
    reading = statements_of(name, text, ALL)
    assert reading.statements == ()
    assert reading.unreadable is not None
    assert (reading.unreadable.span.path, reading.unreadable.span.line) == (name, line)
    assert reason in reading.unreadable.reason


@pytest.mark.parametrize("name", ["a.yaml", "train.py", "a.ipynb", "README.md", "notes.txt"])
def test_others_cannot_be_read_in_silence(name: str) -> None:
    """A file that may hold anything is no news when it is not what it seems."""
    assert statements_of(name, b"pip install trl: [\xff", ALL).unreadable is None
    assert statements_of(name, b"pip install trl: [ ((", ALL).unreadable is None


def test_nothing_is_parsed_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without the name of a package that is asked for is not even decoded."""
    monkeypatch.setattr("trainlint.repository.statements.decode", None)
    for name in ("pyproject.toml", "uv.lock", "setup.py", "a.yaml", "train.py", "README.md", "install.sh"):
        assert statements_of(name, b"install numpy image", ["trl"]).statements == ()
    assert statements_of("a.yaml", b"trl: 1", ["trl"]).statements == ()


def test_forms() -> None:
    """The name tells the form."""
    names = "uv.lock requirements.txt setup.py environment.yaml a.yaml Dockerfile a.ipynb a.py README.md a.png"
    assert [None if form is None else form.name for form in map(form_of, names.split())] == [
        "LOCK", "REQUIREMENTS", "PROJECT", "ENVIRONMENT", "COMMAND", "COMMAND", "NOTEBOOK", "CODE", "README", None,
    ]  # fmt: skip


def notebook(*cells: str) -> str:
    """A notebook of code cells, with an output that counts for nothing."""
    output = [{"output_type": "stream", "text": ["pip install trl==9.9.9\n"]}]
    made = [{"cell_type": "code", "outputs": output, "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": [*made, {"cell_type": "markdown", "source": "!pip install trl==9.9.8"}]}, indent=1)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["!pip install -q trl==0.17.0\n"], ["trl ==0.17.0"]),
        (['%pip install "trl==0.17.0" \\\n  accelerate\n'], ["trl ==0.17.0", "accelerate"]),
        (["if x:\n    !uv pip install trl==0.17.0\nelse:\n    print('!pip install trl==1')\n"], ["trl ==0.17.0"]),
        (["%%bash\npip install trl==0.17.0\n"], ["trl ==0.17.0"]),
        (["V = '0.17.0'\n", "!pip install trl=={V} torch=={W}"], ["trl ==0.17.0", "torch ?"]),
        (["pip install trl==0.17.0\n"], []),
    ],
)
def test_notebooks(cells: list[str], expected: list[str]) -> None:
    """Cells that speak to the shell, with the place in the JSON itself."""
    text = notebook(*cells)
    reading = statements_of("a.ipynb", text.encode(), ALL)
    assert [told(s).partition(" @")[0] for s in reading.statements] == [
        f"{e} torch=={{W}}" if e.endswith("?") else e if " " in e else f"{e} any" for e in expected
    ]
    for statement in reading.statements:
        line = text.splitlines()[statement.span.line - 1]
        assert (
            line[statement.span.column - 1 : statement.span.end_column - 1].strip('"\\').startswith(statement.package)
        )


TOML = """
a = 1
b.c = [1, 2.5, [true, 'x'], ] # comment ]
"d e".'f' = "q\\"\\u00e9\\\\"
long = \"\"\"
one \\
   two\"\"\"\"
raw = '''a\\b'''
date = 1979-05-27 07:32:00
inline = {x = 1, y.z = [{}], }
[t.u]
v = ''
[[list]]
n = 1
[list.inner]
k = "1"
[[list]]
n = 2
"""


def plain(tree: trees.Tree | None) -> object:
    """A tree as tomllib and json have it, with numbers and dates as text."""
    if isinstance(tree, trees.Table):
        return {key: plain(value) for key, value in tree.entries.items()}
    return [plain(item) for item in tree.items] if isinstance(tree, trees.Items) else tree.value if tree else None


def texts(value: object) -> object:
    """Data with every scalar as the text that it is written as."""
    if isinstance(value, dict):
        return {key: texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [texts(item) for item in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize(
    "text", [TOML.replace(", }", "}"), *(text for _, name, text, _ in CASES if name.endswith(".toml"))]
)
def test_toml_is_read_as_tomllib_reads_it(text: str) -> None:
    tomllib = pytest.importorskip("tomllib")
    assert plain(trees.toml(text)) == texts(tomllib.loads(text))


@pytest.mark.parametrize(
    "text", ["a", "a =", "a = 1 2", "[a", "a = 'x", "a = {b = 1", "a = 1\na = 2", "[a]\n[[a]]", "= 1", "a = ]"]
)
def test_broken_toml(text: str) -> None:
    with pytest.raises(Broken):
        trees.toml(text)


JSON = '{"a": [1, -2.5e3, true, null, "x\\"\\u00e9\\n", {}], "b": {"c": [[], {"d": ""}]}}'


def test_json_is_read_as_json_reads_it() -> None:
    """And as editors read it, with comments and a comma too many."""
    assert plain(trees.json(JSON)) == {"a": ["1", "-2.5e3", "true", "null", 'x"é\n', {}], "b": {"c": [[], {"d": ""}]}}
    assert plain(trees.json('// c\n{"a": [1, /* d */ 2,],}')) == {"a": ["1", "2"]}
    leaf = trees.json(JSON).at("b", "c")  # type: ignore[union-attr]
    assert isinstance(leaf, trees.Items)
    assert JSON[leaf.start : leaf.end] == '[[], {"d": ""}]'


@pytest.mark.parametrize("text", ["", "{", "[1", '{"a"}', '{"a": }', "]", '{"a" 1}', "{1: 2}", '"x'])
def test_broken_json(text: str) -> None:
    with pytest.raises(Broken):
        trees.json(text)


EVERY = [(name, text) for _, name, text, _ in CASES]
EVERY += [("Dockerfile", text) for group, _, text, _ in CASES if group == "commands"]
EVERY += [("a.ipynb", notebook(text)) for group, _, text, _ in CASES if group == "commands"]


@pytest.mark.parametrize("seed", range(8))
def test_nothing_raises(seed: int) -> None:
    """A file that is cut off, mixed up or full of strange characters states what it states, or nothing."""
    draw = random.Random(seed)
    strange = [
        "\0",
        "\n",
        '"',
        "'",
        "[",
        "{",
        "\\",
        "\r",
        "\t",
        "é",
        "\ud800",
        "=",
        "#",
        "$(",
        "`",
        "9" * 5000,
        "- ",
        ": ",
    ]
    for name, text in EVERY:
        data = text
        for _ in range(draw.randrange(1, 4)):
            at, to = sorted(draw.randrange(len(data) + 1) for _ in range(2))
            what = [data[:at], data[at:], data[:at] + data[to:], data[:to] + draw.choice(strange) + data[to:]]
            data = draw.choice(what) or data
        encoded = data.encode("utf-16" if draw.random() < 0.1 else "utf-8", "surrogatepass")
        for statement in statements_of(name, encoded, ALL).statements:
            assert 1 <= statement.span.line <= statement.span.end_line
            assert len(statement.specifier) < 400 or statement.kind is Kind.UNKNOWN


DEEP = 100_000
HOSTILE = [
    ("pyproject.toml", "trl = " + "[" * DEEP),
    ("pyproject.toml", "trl = " + "{a=" * DEEP),
    ("pyproject.toml", "trl." * DEEP + "x = 1"),
    ("pyproject.toml", "[" + "trl." * DEEP + "x]"),
    ("pyproject.toml", "trl = " + "9" * DEEP),
    ("pyproject.toml", 'trl = "' + "a" * DEEP),
    ("pyproject.toml", "trl = '''" + "''a" * DEEP),
    ("pyproject.toml", "[project]\ndependencies = ['trl==" + "9" * DEEP + "']"),
    ("pyproject.toml", "[project]\ndependencies = ['trl" + ">=1," * DEEP + "']"),
    ("Pipfile.lock", '{"trl": ' * DEEP),
    ("Pipfile.lock", "[" * DEEP + '"trl"'),
    ("Pipfile.lock", '"trl' + "\\" * DEEP),
    ("a.ipynb", '{"cells": ["trl' + " " * DEEP),
    ("setup.py", "trl = " + "(" * 150 + "1" + ")" * 150),
    ("setup.py", "trl = " + "-" * DEEP + "1"),
    ("setup.py", "trl = " + "a." * DEEP + "b"),
    ("setup.py", "trl = " + "a + " * DEEP + "b\nsetup(install_requires=trl)"),
    ("setup.py", "trl = lambda: " * 5000 + "1"),
    ("setup.py", "a = ['trl==0.17.0']\n" + "a = a + a\n" * 2000 + "setup(install_requires=a)"),
    ("setup.py", "trl = 1\n" + "".join(f"a{i + 1} = a{i} + a{i}\n" for i in range(90)) + "setup(install_requires=a90)"),
    ("setup.py", "trl = 1\ndef f():\n return f() + f()\nsetup(install_requires=f())"),
    ("setup.py", "trl = " + "9" * DEEP),
    ("setup.py", "trl = '\0'"),
    ("requirements.txt", "trl" + " " * DEEP + "x"),
    ("requirements.txt", "trl[" + "a" * DEEP),
    ("requirements.txt", "trl==" + "1." * DEEP),
    ("requirements.txt", "trl" + "==1," * DEEP),
    ("requirements.txt", "trl==1 ; " + "(" * DEEP + "python_version > '3'"),
    ("requirements.txt", "trl==1!9" + "9" * 5000),
    ("requirements.txt", "trl \\\n" * DEEP),
    ("requirements.txt", "trl=" * DEEP),
    ("requirements.txt", "trl@" * DEEP),
    ("requirements.txt", "git+https://" + "a@" * DEEP + "github.com/huggingface/trl"),
    ("requirements.txt", "https://x/trl" + "-a" * DEEP + "-1.whl"),
    ("notes.txt", "trl\n" + "a " * DEEP),
    ("uv.lock", '[[package]]\nname = "trl"\n' * 20_000),
    ("uv.lock", "[[package]]\n" * DEEP + 'name = "trl"'),
    ("conda-lock.yml", "package:\n" + "- name: trl\n  version: 1\n" * 20_000),
    ("pixi.lock", "packages:\n- conda: " + "trl-" * DEEP),
    ("environment.yml", "dependencies: " + "[" * DEEP + "trl"),
    ("environment.yml", "a: &a [trl==1]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(1000)) + "pip: [x]"),
    ("environment.yml", "dependencies:\n- trl" + " " * DEEP + "x\n- pip: []"),
    ("a.yml", "run: pip install trl==" + "$A" * DEEP),
    ("install.sh", "pip install trl==" + "${" * DEEP),
    ("install.sh", "pip install trl " + "a " * DEEP),
    ("install.sh", "A=1 " * DEEP + "pip install trl"),
    ("install.sh", "git clone https://github.com/huggingface/trl\n" * 5000),
    ("install.sh", "A=x\n" + "A=$A$A\n" * 60 + "pip install trl==$A"),
    ("install.sh", "docker run " + "axolotlai/axolotl" * 20_000),
    ("install.sh", "docker run " + "a/" * DEEP + "axolotlai/axolotl:1"),
    ("README.md", "trl\n" + "```sh\n" * DEEP),
    ("README.md", "trl pip\n" + "`" * DEEP),
    ("go.mod", "github.com/kubeflow/trainer/v2" + " " * DEEP),
    ("a.yml", "image: kubeflow/trainer " + "github.com/kubeflow/trainer?" * 20_000),
    ("train.py", "# /// script\n" + "# trl\n" * DEEP),
    ("train.py", "pip_install(" * 90 + "'trl==0.17.0'" + ")" * 90),
    (".gitmodules", "[submodule]\n" * 5000 + "url = https://github.com/huggingface/trl\npath = a\n"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(HOSTILE)))
def test_hostile(case: int) -> None:
    """Deep, long and repeated input is read in steps that grow with its length."""
    name, text = HOSTILE[case]
    before = time.process_time()
    statements_of(name, text.encode(), ALL)
    assert time.process_time() - before < 5
