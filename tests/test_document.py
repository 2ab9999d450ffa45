"""Composing documents: what stands where, and what is refused."""

from __future__ import annotations

import sys

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from trainlint.budget import BUDGET
from trainlint.reading.document import (
    Alias,
    Document,
    Mapping,
    Node,
    Scalar,
    Sequence,
    Unparsable,
    documents,
    of_data,
    target_of,
)
from trainlint.reading.text import Text


def compose(content: str) -> list[Document]:
    return list(documents("a.yaml", Text(content)))


def only(content: str) -> Node:
    (document,) = compose(content)
    return document.root


def plain(node: Node) -> object:
    """Nodes as nested tuples of what was written."""
    target = target_of(node)
    if isinstance(target, Scalar):
        return target.value
    if isinstance(target, Sequence):
        return [plain(item) for item in target.items]
    return [(plain(key), plain(value)) for key, value in target.pairs]


def places(content: str, node: Node) -> list[str]:
    """The text under each scalar and alias, in order."""
    if isinstance(node, (Scalar, Alias)):
        return [content[node.start : node.end]]
    children = node.items if isinstance(node, Sequence) else [child for pair in node.pairs for child in pair]
    return [text for child in children for text in places(content, child)]


def test_places_of_scalars() -> None:
    content = "a: 'x y'  # c\nb: |\n  one\n  two\n\n# end\nc:\n- - 1\nd: &n !!str v\ne: *n\nf:\n"
    assert places(content, only(content)) == [
        *("a", "'x y'", "b", "|\n  one\n  two", "c", "1", "d", "v", "e", "*n", "f", ""),
    ]
    content = "a: &n v\nb: !!str w\nc: ''\nd: &e\n"
    assert places(content, only(content)) == ["a", "v", "b", "w", "c", "''", "d", ""]


def test_block_scalar_at_the_end_of_the_file() -> None:
    content = "a: >-\n  folded\n  text\n\n\n"
    assert places(content, only(content)) == ["a", ">-\n  folded\n  text"]


def test_collections_end_at_their_last_content() -> None:
    content = "a:\n  b: [1,\n    2]\n\n# comment\nc: 1\n"
    root = only(content)
    assert isinstance(root, Mapping)
    block, flow = root.pairs[0][1], target_of(root.pairs[0][1])
    assert content[block.start : block.end] == "b: [1,\n    2]"
    assert isinstance(flow, Mapping)
    assert isinstance(flow.pairs[0][1], Sequence)
    assert content[root.start : root.end] == content.rstrip("\n")


def test_an_alias_has_its_own_place_and_its_anchor() -> None:
    root = only("a: &x {b: 1}\nc: *x\n")
    assert isinstance(root, Mapping)
    alias = root.pairs[1][1]
    assert isinstance(alias, Alias)
    assert (alias.name, alias.start) == ("x", 16)
    assert alias.target is root.pairs[0][1]


def test_a_reused_anchor_counts_from_there_on() -> None:
    (document,) = compose("a: &x 1\nb: *x\nc: &x 2\nd: *x\n")
    assert plain(document.root) == [("a", "1"), ("b", "1"), ("c", "2"), ("d", "2")]
    assert document.reused_anchors == [(17, 19)]


def test_empty_documents_do_not_count() -> None:
    found = compose("# nothing\n---\n---\na: 1\n---\n# nothing\n...\n---\nnull\n")
    assert [(d.index, plain(d.root)) for d in found] == [(0, [("a", "1")]), (1, "null")]


@pytest.mark.parametrize("rest", ["---\nb: [\n", "...\n%YAML 1.1\n%YAML 1.1\n---\nb: 1\n"], ids=["body", "head"])
def test_documents_before_a_broken_one_are_there(rest: str) -> None:
    reader = documents("a.yaml", Text(f"a: 1\n{rest}"))
    assert plain(next(reader).root) == [("a", "1")]
    with pytest.raises(Unparsable) as caught:
        next(reader)
    assert caught.value.document == 1


@pytest.mark.parametrize(
    ("content", "index"),
    [
        ("a: ]", 3),
        ("a: *nothing", 3),
        ("a: &x [*x]", 7),
        ("a: 1\n\tb: 2", 5),
        ("a: \x07", 3),
        ("[" * 100_000, BUDGET.depth),
        ("{" * 10_000 + "}" * 10_000, BUDGET.depth),
        ("- " * 10_000, 2 * BUDGET.depth),
    ],
    ids=["stray", "no anchor", "itself", "tab", "control", "deep brackets", "deep braces", "deep block"],
)
def test_unparsable(content: str, index: int) -> None:
    with pytest.raises(Unparsable) as caught:
        compose(content)
    assert caught.value.index == index
    assert "\n" not in str(caught.value)


def test_an_alias_bomb_stops() -> None:
    levels = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30))
    content = f"l0: &l0 [x, x, x, x]\n{levels}\n"
    with pytest.raises(Unparsable, match="aliases written out") as caught:
        compose(content)
    assert content[caught.value.index :].startswith("*l")


def test_many_uses_of_one_anchor_are_fine() -> None:
    assert compose("a: &x {b: 1}\nc: [" + ", ".join(["*x"] * 1000) + "]\n")


def test_the_pure_parser_gives_the_same_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    content = "a: &x 'one'\nb: *x\nc: !!int '3'\nd: |\n  t\ne: [1, {f: g}]\nh:\n"
    fast = only(content)
    monkeypatch.setitem(sys.modules, "_ruamel_yaml", None)
    slow = only(content)
    assert plain(slow) == plain(fast)
    assert places(content, slow) == places(content, fast)


def test_blanks_that_the_pure_parser_alone_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_ruamel_yaml", None)
    with pytest.raises(Unparsable, match="more indented") as caught:
        compose("a: |\n \n   \n  x\n")
    assert caught.value.index == 13


_keys = st.text(alphabet="abyn01 #:é😀\u2028", min_size=1, max_size=6)
_texts = st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029"), max_size=8)
"""What a quoted scalar gives back as it is: a reader folds these line ends of YAML 1.1."""
_data = st.recursive(
    st.none() | st.booleans() | st.integers() | _texts | _keys,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=12,
)


def _as_written(value: object) -> object:
    if isinstance(value, dict):
        return [(str(key), _as_written(item)) for key, item in value.items()]
    if isinstance(value, list):
        return [_as_written(item) for item in value]
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


@given(_data, st.booleans())
def test_what_a_dumper_writes_is_composed(data: object, flow: bool) -> None:
    content = yaml.safe_dump(data, default_flow_style=flow, allow_unicode=True, sort_keys=False, width=1000)
    (document,) = compose(content)
    assert plain(document.root) == _as_written(data) or data is None


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#\n\t ,?%@`~0", max_size=40))
def test_no_text_crashes(content: str) -> None:
    reader = documents("a.yaml", Text(content))
    try:
        for document in reader:
            places(content, document.root)
        index = 0
    except Unparsable as error:
        index = error.index
    assert 0 <= index <= len(content)


def test_data_becomes_a_document() -> None:
    document = of_data("built in", {"a": [1, True, None, "x"]})
    assert plain(document.root) == [("a", ["1", "true", "null", "x"])]
