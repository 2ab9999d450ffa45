"""Fixes: each helper's text, and every fix of every bad case linted again."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cases import FIXTURES, WITHOUT, Case, by_the_newest, cases
from trainlint.engine import Run
from trainlint.findings import Finding, Fix
from trainlint.fixes import applicable, mended
from trainlint.reading import mending
from trainlint.reading.document import Alias, Document, Mapping, Node, Scalar, Sequence, documents, target_of
from trainlint.reading.scalars import Dialect, value_of
from trainlint.reading.text import Text
from trainlint.reading.values import Field
from trainlint.report import Report
from trainlint.settings import Overrides

Mend = Callable[[Field], "Fix | None"]


def _root(text: str, path: str = "a.yaml") -> Field:
    return Field.root(next(documents(path, Text(text))), Dialect.PYYAML)


def _applied(content: str, fix: Fix | None) -> str | None:
    if fix is None:
        return None
    for edit in sorted(fix.edits, key=lambda one: (one.start, one.end), reverse=True):
        content = content[: edit.start] + edit.replacement + content[edit.end :]
    return content


def _fixed(text: str, *path: str | int, by: Mend, name: str = "a.yaml") -> str | None:
    field = _root(text, name)
    for step in path:
        field = field.items()[step] if isinstance(step, int) else field.get(step)
    return _applied(text, by(field))


# one helper after the other


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("old: 1  # why\n", "new: 1  # why\n"),
        ('"old": 1\n', '"new": 1\n'),
        ("{a: 1, 'old' : 2}", "{a: 1, 'new' : 2}"),
        ("old:\r\n  a: 1\r\n", "new:\r\n  a: 1\r\n"),
        ("old: &x 1\n", "new: &x 1\n"),
        ("old: &x 1\nb: *x\n", None),
        ("a: &x {old: 1}\nb: *x\n", None),
        ("old: 1\nnew: 2\n", None),
        ("? old\n: 1\n", "? new\n: 1\n"),
        ("&k old: 1\n", None),
    ],
)
def test_renamed(text: str, wanted: str | None) -> None:
    root = _root(text)
    field = root.get("old") if root.get("old").node is not None else root.get("a").get("old")
    assert _applied(text, mending.renamed(field, "new")) == wanted


def test_a_merged_key_is_renamed_where_it_stands() -> None:
    text = "base: &base\n  old: 1\njob:\n  <<: *base\n"
    assert _fixed(text, "job", "old", by=lambda field: mending.renamed(field, "new")) is None


@pytest.mark.parametrize(
    ("text", "word", "wanted"),
    [
        ("a: Old # c\n", "new", "a: new # c\n"),
        ("a: 'Old'\n", "new", "a: 'new'\n"),
        ('a: "Old"\n', 'ne"w', None),
        ("a: &x Old\n", "new", "a: &x new\n"),
        ("a: Old\n", "no", 'a: "no"\n'),
        ("a: no\n", "no", 'a: "no"\n'),
        ("a: Old\n", "2e5", "a: 2e5\n"),
        ("a: Old\n", "b: c", 'a: "b: c"\n'),
        ("a: Old\n", "<x>", 'a: "<x>"\n'),
        ("a: |\n  Old\n", "new", None),
        ('a: "O\\x6cd"\n', "new", None),
        ("a: Old\n  and more\n", "new", None),
        ("a: !!str Old\n", "new", None),
        ("a: new\n", "new", None),
    ],
)
def test_worded(text: str, word: str, wanted: str | None) -> None:
    assert _fixed(text, "a", by=lambda field: mending.worded(field, word)) == wanted


def test_words_in_json_have_quotes() -> None:
    text = '{"a": 1, "b": "x"}'
    assert _fixed(text, "a", by=lambda field: mending.worded(field, "new"), name="a.json") == '{"a": "new", "b": "x"}'
    assert _fixed(text, "b", by=lambda field: mending.worded(field, "new"), name="a.json") == '{"a": 1, "b": "new"}'


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("'2'", "2"),
        ('"true"', "true"),
        ("'2e-5'", None),
        ("'x'", None),
        ("2", None),
        ("'0x1F'", "0x1F"),
        ("''", None),
        ("'~'", None),
        ("'12:30:45'", None),
    ],
)
def test_unquoted(written: str, wanted: str | None) -> None:
    found = _fixed(f"a: {written}  # c\n", "a", by=mending.unquoted)
    assert found == (None if wanted is None else f"a: {wanted}  # c\n")


@pytest.mark.parametrize(
    ("by", "written", "wanted"),
    [
        (mending.whole, "1e8", "100000000"),
        (mending.whole, "'16'", "16"),
        (mending.whole, "4.0", "4"),
        (mending.whole, "1.5", None),
        (mending.whole, "1e99", None),
        (mending.whole, "-1", None),
        (mending.numbered, "2e-5", "2.0e-5"),
        (mending.numbered, "'0.01'", "0.01"),
        (mending.numbered, "'1e3'", "1000"),
        (mending.numbered, "'nan'", None),
        (mending.numbered, "'010'", None),
        (mending.switched, "'No'", "false"),
        (mending.switched, "'on'", "true"),
        (mending.switched, "maybe", None),
        (mending.quoted, "no", '"no"'),
        (mending.quoted, "1_000", '"1_000"'),
        (mending.quoted, "", None),
        (mending.quoted, "'x'", None),
        (mending.listed, "a.b", "[a.b]"),
        (mending.listed, "'a, b'", "['a, b']"),
        (mending.listed, "a, b", None),
        (mending.trimmed, "' x/y:1 '", "'x/y:1'"),
        (mending.trimmed, "|\n  x/y:1\n", '"x/y:1"\n'),
    ],
)
def test_values(by: Mend, written: str, wanted: str | None) -> None:
    assert _fixed(f"a: {written}\n", "a", by=by) == (None if wanted is None else f"a: {wanted}\n")


@pytest.mark.parametrize(
    ("text", "path", "wanted"),
    [
        ("a: 1\nb: 2\nc: 3\n", ("b",), "a: 1\nc: 3\n"),
        ("a: 1\nb: 2  # why\nc: 3\n", ("b",), "a: 1\n# why\nc: 3\n"),
        ("a: 1\r\nb:\r\n  x: 1\r\n  y: 2\r\nc: 3\r\n", ("b",), "a: 1\r\nc: 3\r\n"),
        ("a: 1\nb:\n  x: 1 # c\nc: 3\n", ("b",), "a: 1\n# c\nc: 3\n"),
        ("a: 1\nb:\n  x: 1 # c\n  y: 2\nc: 3\n", ("b",), None),
        ("a: 1\nb:\nc: 3\n", ("b",), "a: 1\nc: 3\n"),
        ("b: 1\n", ("b",), None),
        ("- b: 1\n  c: 2\n", (0, "b"), "- c: 2\n"),
        ("- b: 1 # w\n  c: 2\n", (0, "b"), None),
        ("- c: 2\n  b: 1\n", (0, "b"), "- c: 2\n"),
        ("{a: 1, b: 2, c: 3}", ("b",), "{a: 1, c: 3}"),
        ("{a: 1, b: 2}", ("b",), "{a: 1}"),
        ('{\n  "a": 1,\n  "b": 2\n}\n', ("b",), '{\n  "a": 1\n}\n'),
        ("{a: &x 1, b: *x}", ("a",), None),
        ("[a, b, c]", (1,), "[a, c]"),
        ("- a\n- b\n", (1,), "- a\n"),
        ("- a\n- b # w\n- c\n", (1,), "- a\n# w\n- c\n"),
        ("a: 1\nb: 2", ("b",), "a: 1\n"),
        ("a: 1\nb: |\n  x\n  y\nc: 3\n", ("b",), "a: 1\nc: 3\n"),
    ],
)
def test_removed(text: str, path: tuple[str | int, ...], wanted: str | None) -> None:
    assert _fixed(text, *path, by=mending.removed) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x: 1\ns:\n  a: 2\n", "s:\n  x: 1\n  a: 2\n"),
        ("s:\n    a: 2\nx: 1  # why\n", "s:\n    x: 1\n    a: 2\n# why\n"),
        ("x: 'q'\ns: {a: 2}\n", "s: {x: 'q', a: 2}\n"),
        ("x: a, b\ns: {a: 2}\n", None),
        ("x: 1\ns: {}\n", "s: {x: 1}\n"),
        ("x: 1\ns:\n  x: 2\n", None),
        ("x:\n  y: 1\ns:\n  a: 2\n", None),
        ("x: 1\nb: 2\n", "s:\n  x: 1\nb: 2\n"),
        ("x: 1\r\ns:\r\n  a: 2\r\n", "s:\r\n  x: 1\r\n  a: 2\r\n"),
        ("x: 1\ns: &s\n  a: 2\nt: *s\n", None),
    ],
)
def test_moved(text: str, wanted: str | None) -> None:
    root = _root(text)
    assert _applied(text, mending.moved(root.get("x"), root.get("s"))) == wanted


@pytest.mark.parametrize(
    ("text", "wanted", "safe"),
    [
        ("a: 1\nb: 2\na: 1\n", "b: 2\na: 1\n", True),
        ("a: 1\nb: 2\na: 3\n", "b: 2\na: 3\n", False),
        ("{a: 1, b: 2, a: 1}", "{b: 2, a: 1}", True),
    ],
)
def test_the_earlier_of_equal_keys_goes(text: str, wanted: str, safe: bool) -> None:
    fix = mending.without_earlier(_root(text).get("a"))
    assert fix is not None
    assert (_applied(text, fix), fix.safe) == (wanted, safe)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("env:\n  A: '1'\n  B: on # c\n", "env:\n  - name: A\n    value: '1'\n  - name: B\n    value: \"on\" # c\n"),
        ("env: {A: '1', B: x}", "env: [{name: A, value: '1'}, {name: B, value: \"x\"}]"),
        ("env:\n  A: [1]\n", None),
    ],
)
def test_a_mapping_of_variables_becomes_a_list(text: str, wanted: str | None) -> None:
    assert _fixed(text, "env", by=mending.as_entries) == wanted


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("full_shard", ["FULL_SHARD", "NO_SHARD"], "FULL_SHARD"),
        ("full-shard", ["FULL_SHARD"], "FULL_SHARD"),
        ("loging_steps", ["logging_steps", "logging_dir"], "logging_steps"),
        ("limits.gpu", ["limits.cpu"], None),
        ("int2", ["int4", "int8"], None),
        ("weight1", ["weight2"], None),
        ("sgd", ["sgd2", "sgdx"], None),
        ("simpo", ["ipo"], None),
        ("steps", ["steps"], None),
        ("stesp", ["steps"], "steps"),
        ("loss_x", ["loss_y", "loss_z"], None),
    ],
)
def test_a_slip_is_one_letter(word: str, known: list[str], meant: str | None) -> None:
    assert mending.meant(word, known) == meant


# every fix of every bad case

HIDDEN = {
    "FS508/bad.yaml": {"FS508"},
    "TT303/bad-moved-meta.yaml": {"TT328"},
    "TT303/bad-moved-tune.yaml": {"TT328", "TT339"},
    "TT304/bad.yaml": {"TT314"},
    "TJ102/bad.yaml": {"TJ101"},
    "FS114/bad.yaml": {"FS112", "FS113"},
}
"""Second mistakes in a case, which the program does not reach while it has the first."""


def _with_fixes() -> list[Case]:
    return [case for case in cases("bad") if case.code not in WITHOUT and re.search(r"^ *= fix: ", case.kept, re.M)]


def test_there_are_fixes_of_many_rules() -> None:
    assert len({case.code for case in _with_fixes()}) >= 100


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.rule, finding.path, finding.message


@pytest.mark.parametrize("case", _with_fixes(), ids=lambda case: str(case.path.relative_to(FIXTURES)))
def test_each_fix_alone(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its finding goes, no other comes, and nothing else of the file is read otherwise."""
    name = case.path.relative_to(FIXTURES).as_posix()
    overrides, report = _written(case, tmp_path, monkeypatch)
    before = Counter(map(_key, report.active))
    for finding in report.active:
        fix = applicable(finding, unsafe=True)
        if fix is None:
            continue
        text = report.texts[finding.path]
        content = _applied(text.content, fix) or ""
        after = Run(overrides, {os.path.abspath(finding.path): text.encoded(content)}).lint([Path()])
        found = Counter(map(_key, after.active))
        assert found[_key(finding)] < before[_key(finding)], f"{fix.title} leaves its finding"
        new = {key for key in found if found[key] > before[key]}
        assert {rule for rule, _, _ in new} <= HIDDEN.get(name, set()), f"{fix.title} brings about {new}"
        if case.code != "TL002":
            assert _comments(text.content) == _comments(content)
        assert _kinds_of_ends(text.content) >= _kinds_of_ends(content)
        assert _changed_elsewhere(text.content, content, fix) == []


@pytest.mark.parametrize("case", _with_fixes(), ids=lambda case: str(case.path.relative_to(FIXTURES)))
@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
def test_all_fixes_in_rounds(case: Case, unsafe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the end nothing is left that could be fixed, and one more round changes nothing."""
    overrides, report = _written(case, tmp_path, monkeypatch)
    first = len(list(report.active))
    contents: dict[str, bytes] = {}
    rounds = 0
    while changed := mended(report, unsafe=unsafe):
        rounds += 1
        assert rounds < 25
        contents |= {os.path.abspath(file.path): file.data for file in changed}
        report = Run(overrides, contents).lint([Path()])
    assert [finding.message for finding in report.active if applicable(finding, unsafe=unsafe)] == []
    if case.path.relative_to(FIXTURES).as_posix() not in HIDDEN:
        assert len(list(report.active)) <= first - bool(rounds)


def _written(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Overrides, Report]:
    for name, data in case.files().items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    monkeypatch.chdir(folder)
    overrides = by_the_newest(case.overrides())
    return overrides, Run(overrides).lint([Path()])


def _comments(content: str) -> Counter[str]:
    return Counter(re.findall(r"(?m)(?:^|[ \t])(#[^\r\n]*)", content))


def _kinds_of_ends(content: str) -> set[str]:
    return set(re.findall(r"\r\n|\n|\r", content))


def _changed_elsewhere(before: str, after: str, fix: Fix) -> list[str]:
    """What is read otherwise and is not the entry or item that an edit is in."""
    old, new = _documents(before), _documents(after)
    if not old or len(old) != len(new):
        return [] if old == new or not old else ["the number of documents"]
    changed: list[str] = []
    for one, two in zip(old, new, strict=True):
        touched = {_place(one.root, at) for edit in fix.edits for at in (edit.start, max(edit.start, edit.end - 1))}
        changed += _differences(one.root, two.root, (), touched)
    return changed


def _documents(content: str) -> list[Document]:
    try:
        return list(documents("a.yaml", Text(content)))
    except ValueError:
        return []


def _place(node: Node, at: int) -> tuple[str, ...]:
    """The path of the smallest entry or item that a character is in."""
    path: tuple[str, ...] = ()
    while True:
        inner = next(((step, child) for step, first, last, child in _parts(node) if first <= at <= last), None)
        if inner is None:
            return path
        path, node = (*path, inner[0]), inner[1]
        if isinstance(node, (Scalar, Alias)):
            return path


def _parts(node: Node) -> Iterator[tuple[str, int, int, Node]]:
    if isinstance(node, Mapping):
        for key, value in node.pairs:
            yield str(getattr(target_of(key), "value", "?")), key.start, max(key.end, value.end), value
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield str(index), item.start, item.end, item


def _differences(one: Node, two: Node, path: tuple[str, ...], touched: set[tuple[str, ...]]) -> list[str]:
    below = [place for place in touched if place[: len(path)] == path]
    if path in touched:
        return []
    first, second = target_of(one), target_of(two)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        mine, others = ({step: child for step, _, _, child in _parts(node)} for node in (first, second))
        own = {place[len(path)] for place in below if len(place) > len(path)}
        changed = [".".join((*path, step)) for step in mine if step not in others and step not in own]
        if not own and set(others) - set(mine) and path not in {place[:-1] for place in touched}:
            changed.append(f"{'.'.join(path)} has more keys")
        for step in mine:
            if step in others:
                changed += _differences(mine[step], others[step], (*path, step), touched)
        return changed
    if isinstance(first, Sequence) and isinstance(second, Sequence):
        if len(first.items) != len(second.items):
            return [] if below else [".".join(path)]
        pairs = enumerate(zip(first.items, second.items, strict=True))
        return [part for index, (a, b) in pairs for part in _differences(a, b, (*path, str(index)), touched)]
    if below and type(first) is not type(second):
        return []
    same = isinstance(first, Scalar) and isinstance(second, Scalar) and _value(first) == _value(second)
    return [] if same else [".".join(path)]


def _value(node: Scalar) -> tuple[str, object]:
    value = value_of(node, Dialect.PYYAML)
    return type(value).__name__, value


def test_a_fix_never_writes_a_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that looks like a secret is written as it is, or its fix has a title alone."""
    from trainlint.reports import without_secrets

    monkeypatch.chdir(tmp_path)
    token = "hf_" + "a1B2c3D4" * 4
    (tmp_path / "train.yaml").write_text(
        "output_dir: out\nper_device_train_batch_size: 8\nnum_train_epochs: 1\nsave_strategy: steps\n"
        f"push_to_hub_token: {token}\nlearning_rate: 2e-5\n",
        encoding="utf-8",
    )
    report = without_secrets(Run(Case(tmp_path).overrides()).lint([Path()]))
    assert [finding.rule for finding in report.active if finding.fix and "***" in str(finding.fix.edits)] == []
    assert {finding.rule for finding in report.active if finding.fix and finding.fix.edits} >= {"FS203"}
