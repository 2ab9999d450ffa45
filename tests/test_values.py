"""Fields and values: what is read, its place, and what Unknown answers."""

from __future__ import annotations

import math

import pytest

from trainlint.reading.document import documents, of_data
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import Absent, Field, Known, Unknown, Value, WrongType, is_template, spelled


def root(content: str, dialect: Dialect = Dialect.KUBERNETES) -> Field:
    (document,) = documents("a.yaml", Text(content))
    return Field.root(document, dialect)


def under(content: str, field: Field) -> str:
    span = field.span
    assert span.line == span.end_line
    return Text(content).line(span.line)[span.column - 1 : span.end_column - 1]


def test_the_four_states() -> None:
    field = root("known: 3\nnull: ~\nempty:\nwrong: [1]\ntext: '3'\ntemplate: ${N}\n")
    assert isinstance(field.get("known").integer(), Known)
    assert isinstance(field.get("nowhere").integer(), Absent)
    assert isinstance(field.get("null").integer(), Absent)
    assert isinstance(field.get("empty").integer(), Absent)
    assert isinstance(field.get("wrong").integer(), WrongType)
    assert isinstance(field.get("text").integer(), WrongType)
    assert isinstance(field.get("template").integer(), Unknown)


@pytest.mark.parametrize(
    "content", ["k: ${N}", "k: {{ .Values.n }}", "k: '{{ n }}'", "k: <NODES>", "k: []", "k:", "m: 1"]
)
def test_no_test_on_what_is_not_known_holds(content: str) -> None:
    number = root(content).get("k").integer()
    assert not number.above(0)
    assert not number.below(10)
    assert not number.is_(1)
    assert not number.known_and_not_in([5])
    assert not number.known_and(lambda _: True)
    assert number.known is None
    assert number.map(str).known is None


@pytest.mark.parametrize(
    ("written", "kind", "value"),
    [
        ("2", "integer", 2), ("2.0", "integer", 2), ("2.5", "integer", None), ("true", "integer", None),
        ("2", "number", 2.0), ("2.5", "number", 2.5), ("true", "number", None), ("x", "number", None),
        (".inf", "number", math.inf), ("-.inf", "number", -math.inf),
        ("x", "text", "x"), ("2", "text", None), ("true", "boolean", True), ("1", "boolean", None),
        ("2", "scalar", 2), ("x", "scalar", "x"), ("false", "scalar", False),
        ("[a]", "scalar", None), ("{a: b}", "text", None), ("a", "texts", None), ("{a: b}", "texts", None),
    ],
)  # fmt: skip
def test_what_is_read(written: str, kind: str, value: object) -> None:
    read = getattr(root(f"v: {written}", Dialect.PYYAML).get("v"), kind)()
    assert (read.known, type(read.known)) == (value, type(value))
    assert read.wrong_type is (value is None)


@pytest.mark.parametrize(("content", "state"), [("", Absent), ("~", Absent), ("${V}", Unknown), ("{{ v }}", Unknown)])
@pytest.mark.parametrize("kind", ["text", "integer", "number", "boolean", "scalar", "texts"])
def test_what_is_not_there_yet(content: str, state: type, kind: str) -> None:
    read: Value[str] = getattr(root(f"v: {content}").get("v"), kind)()
    assert isinstance(read, state)
    assert (read.absent, read.given, read.unknown) == (state is Absent, state is not Absent, state is Unknown)
    assert (type(read), type(read.map(str))) == (state, state)


def test_texts_each_have_their_own_state() -> None:
    texts = root("v: [a, 1, '${B}', null]").get("v").texts().known or []
    assert [type(text) for text in texts] == [Known, WrongType, Unknown, Absent]
    assert [str(text) for text in texts] == ["a", "1", "${B}", "null"]


def test_tests_on_a_known_value() -> None:
    number = root("k: 3").get("k").integer()
    assert [number.is_(3), number.is_(1, 2), number.known_and_not_in([3]), number.known_and_not_in([1])] == [
        *(True, False, False, True),
    ]
    assert [number.above(2), number.above(3), number.below(4), number.below(3)] == [True, False, True, False]
    assert number.map(lambda n: n + 1).known == 4
    assert isinstance(root("k: x").get("k").integer().map(str), WrongType)


def test_a_value_that_takes_the_place_of_an_absent_one() -> None:
    field = root("given: 1\nother: 2\n")
    absent, given, other = (field.get(key).integer() for key in ("nowhere", "given", "other"))
    assert given.or_when_absent(5) is given
    assert absent.or_when_absent(other) is other
    default = absent.or_when_absent(5)
    assert (default.known, default.field) == (5, absent.field)


@pytest.mark.parametrize(
    ("content", "mapping", "unknown", "keys"),
    [
        ("v: {a: 1}", True, False, ["a"]),
        ("v: {{ x }}", False, True, []),
        ("v: {? {a: 1} : b, c: d}", True, False, ["{}", "c"]),
        ("v: {[a]: b}", True, False, ["{}"]),
        ("v:\n  ? {a: 1}\n  : b", True, False, ["{}"]),
        ("w: &w\n  a: 1\nv: {*w : b}", True, False, ["{}"]),
        ("v: [a]", False, False, []),
        ("v: ${V}", False, True, []),
    ],
)
def test_a_mapping_and_a_template_that_looks_like_one(
    content: str, mapping: bool, unknown: bool, keys: list[str]
) -> None:
    field = root(content).get("v")
    assert (field.is_mapping, field.is_unknown, [entry.name for entry in field.entries()]) == (mapping, unknown, keys)


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("${X}", True), ("a-{{ b }}", True), ("{% if x %}", True), ("<YOUR_NAME>", True), ("<my name>", True),
        ("$(VAR)", False), ("a < b > c", False), ("$HOME", True), ("cat <<EOF", False), ("{}", False),
    ],
)  # fmt: skip
def test_is_template(text: str, template: bool) -> None:
    assert is_template(text) is template


def test_places_of_what_is_missing() -> None:
    content = "spec:\n  trainer:\n    env:\n    - name: a\n    empty:\n"
    field = root(content)
    assert under(content, field.at("spec", "trainer", "numNodes")) == "trainer"
    assert under(content, field.at("spec", "trainer", "deep", "er")) == "trainer"
    assert under(content, field.at("spec", "trainer", "empty")) == "empty"
    assert under(content, field.at("spec", "trainer", "env").items()[0].get("value")) == "name"
    assert under(content, field.get("nowhere")) == "spec"
    assert under(content, Field(field.document, field.dialect, None)) == "spec"


def test_a_block_is_reported_at_its_key_and_a_flow_in_whole() -> None:
    content = "a:\n  b:\n    c: 1\n  d: {e: 1}\n  f:\n  - g: 1\n  - - h\n  - [i, j]\n  - []\n  ? {k: 1}\n  : l\n"
    field = root(content)
    assert under(content, field.at("a", "b")) == "b"
    assert under(content, field.at("a", "d")) == "{e: 1}"
    assert under(content, field.at("a", "f")) == "f"
    assert [under(content, item) for item in field.at("a", "f").items()] == ["g", "h", "[i, j]", "[]"]
    assert under(content, list(field.get("a").entries())[-1]) == "l"
    content = "- - - a"
    assert under(content, root(content).items()[0]) == "a"
    content = "a: {b: [c]}\n"
    field = root(content)
    assert (field.get("a").items(), field.at("a", "b").name, field.at("a", "b").items()[0].name) == ([], "b", "0")


def test_an_aliased_value_is_reported_where_it_is_used() -> None:
    content = "base: &b\n  gpu: 2\nuse: *b\nlist: [*b]\n"
    field = root(content)
    value = field.at("use", "gpu")
    assert under(content, value) == "*b"
    assert value.yaml_path == "use.gpu"
    assert [r.span.line for r in value.related] == [2]
    assert under(content, field.get("list").items()[0].get("gpu")) == "*b"
    assert under(content, field.get("list").items()[0].get("nowhere")) == "*b"
    assert field.get("base").related == field.at("base", "gpu").related == field.at("use", "nowhere").related == ()
    assert [(r.span.line, r.message) for r in field.get("use").related] == [(2, "&b is defined here")]


def test_a_merged_value_is_reported_at_the_merge() -> None:
    content = "base: &b\n  x: 1\n  w:\n  z: 2\nuse:\n  <<: *b\n  z: 3\n"
    use = root(content).get("use")
    assert [entry.name for entry in use.entries()] == ["x", "w", "z"]
    assert under(content, use.get("x")) == under(content, use.get("w")) == "*b"
    assert under(content, use.get("z")) == "3"
    assert [(r.span.line, r.span.column) for key in ("x", "w", "z") for r in use.get(key).related] == [(2, 6), (3, 3)]
    assert [(merge.name, under(content, merge)) for merge in use.merges()] == [("<<", "*b")]
    assert use.get("z").merges() == root("a: {'<<': {b: 1}}").get("a").merges() == []
    assert root("a: {!!str <<: {b: 1}}").at("a", "b").node is None


@pytest.mark.parametrize(
    ("dialect", "x"), [(Dialect.KUBERNETES, 1), (Dialect.PYYAML, 2), (Dialect.OMEGACONF, 2)], ids=lambda v: str(v)
)
def test_a_merge_after_a_key(dialect: Dialect, x: int) -> None:
    """Go's reader applies a merge where it stands; the Python ones let the mapping's own key win."""
    assert root("base: &b {x: 1}\nuse:\n  x: 2\n  <<: *b\n", dialect).at("use", "x").plain == x


@pytest.mark.parametrize("merged", ["[*a, *b]", "[*a, x, *b]"])
def test_several_merges(merged: str) -> None:
    field = root(f"a: &a {{x: 1}}\nb: &b {{x: 2, y: 2}}\nuse: {{<<: {merged}}}\n", Dialect.PYYAML)
    assert {entry.name: entry.plain for entry in field.get("use").entries()} == {"x": 1, "y": 2}


def test_a_merge_of_no_mapping_brings_nothing() -> None:
    assert [entry.name for entry in root("use: {<<: x, a: 1}").get("use").entries()] == ["a"]


def test_the_last_duplicate_counts() -> None:
    field = root("a: 1\nb: 2\na: 3\n").get("a")
    assert field.plain == 3
    assert field.entry is not None
    assert len(field.entry.duplicates) == 1
    assert [related.span.line for related in field.earlier_keys] == [1]
    assert root("base: &b {a: 1}\nuse:\n  <<: *b\n  a: 2\n").at("use", "a").earlier_keys == ()


@pytest.mark.parametrize(
    ("content", "dialects"),
    [
        ("a: 1\n'a': 2", (Dialect.KUBERNETES, Dialect.PYYAML, Dialect.OMEGACONF)),
        ("2001-01-01: 1\n2001-01-01: 2", (Dialect.KUBERNETES, Dialect.PYYAML, Dialect.OMEGACONF)),
        ("7: 1\n7: 2", (Dialect.KUBERNETES, Dialect.PYYAML)),
        ("yes: 1\ntrue: 2", (Dialect.KUBERNETES, Dialect.PYYAML)),
        ("7: 1\n'7': 2", (Dialect.KUBERNETES,)),
        ("? [a]\n: 1\n? [b]\n: 2", ()),
        ("{{a}}: 1\n{{b}}: 2", ()),
    ],
)
def test_which_keys_are_one(content: str, dialects: tuple[Dialect, ...]) -> None:
    for dialect in Dialect:
        entries = Field.root(next(documents("a.yaml", Text(content))), dialect).entries()
        assert any(entry.earlier_keys for entry in entries) is (dialect in dialects), dialect


def test_fields_of_a_subject_are_spelled_from_its_root() -> None:
    field = root("items:\n- spec: {args: [a, b]}\n").get("items").items()[0].as_subject()
    arg = field.at("spec", "args").items()[1]
    assert (arg.field_path, arg.yaml_path) == ("spec.args[1]", "items[0].spec.args[1]")


def test_spelled() -> None:
    assert spelled(("metadata", "labels", "a.b/c", 2, "x-y")) == "metadata.labels[a.b/c][2].x-y"


@pytest.mark.parametrize(("content", "name"), [("1: a", "1"), ("yes: a", "true"), ("~: a", "null"), ("[a]: b", "{}")])
def test_keys_as_texts(content: str, name: str) -> None:
    assert [entry.name for entry in root(content).entries()] == [name]


def test_a_finding_carries_its_place() -> None:
    finding = root("spec:\n  nodes: 2\n").at("spec", "nodes").integer().finding("too many", field="spec.n")
    assert (finding.span.line, finding.span.column, finding.span.end_column) == (2, 10, 11)
    assert (finding.field, finding.yaml_path, finding.document) == ("spec.n", "spec.nodes", 0)
    at_key = root("spec:\n  nodes: 2\n").at("spec", "nodes").finding("too many", at_key=True)
    assert (at_key.span.column, at_key.span.end_column, at_key.field) == (3, 8, "spec.nodes")


def test_a_definition_that_stands_in_no_file_is_not_related() -> None:
    field = Field.root(of_data("built in", {"a": [{}], "b": []}), Dialect.KUBERNETES)
    assert field.get("a").relate("here") == ()
    assert (field.get("a").items()[0].span.line, field.get("b").span.column) == (1, 1)
    (related,) = root("a: 1").get("a").relate("here")
    assert (related.message, related.span.column) == ("here", 4)


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("$NODES", True),
        ("'$nodes'", True),
        ("{nodes}", True),
        ("'{nodes}'", True),
        ("{{nodes}}", True),
        ("__NODES__", True),
        ("'@NODES@'", True),
        ("'%(nodes)s'", True),
        ("((nodes))", True),
        ("$5", False),
        ("cost $NODES", False),
        ("{nodes: 1}", False),
        ("{nodes: ''}", False),
        ("{nodes, more}", False),
        ("__init__", False),
        ("(nodes)", False),
        ("", False),
    ],
)
def test_placeholders(text: str, unknown: bool) -> None:
    """A value that is a placeholder as a whole is filled in later."""
    (document,) = documents("a.yaml", Text(f"a: {text}\n"))
    assert Field.root(document, Dialect.PYYAML).get("a").is_unknown is unknown
