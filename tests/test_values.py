"""Fields and values: what is read, where it is said to stand, and what Unknown answers."""

from __future__ import annotations

import pytest

from trainlint.reading.document import documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import Absent, Field, Known, Unknown, WrongType, is_template, spelled


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
    "content", ["n: ${N}", "n: {{ .Values.n }}", "n: '{{ n }}'", "n: <NODES>", "n: []", "n:", "m: 1"]
)
def test_no_test_on_what_is_not_known_holds(content: str) -> None:
    number = root(content).get("n").integer()
    assert not number.above(0)
    assert not number.below(10)
    assert not number.is_(1)
    assert not number.known_and_not_in([5])
    assert not number.known_and(lambda _: True)
    assert number.known is None
    assert number.map(str).known is None


@pytest.mark.parametrize(
    ("text", "template"),
    [
        ("${X}", True), ("a-{{ b }}", True), ("{% if x %}", True), ("<YOUR_NAME>", True), ("<my name>", True),
        ("$(VAR)", False), ("a < b > c", False), ("$HOME", False), ("cat <<EOF", False), ("{}", False),
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


def test_a_block_is_reported_at_its_key_and_a_flow_in_whole() -> None:
    content = "a:\n  b:\n    c: 1\n  d: {e: 1}\n  f:\n  - g: 1\n"
    field = root(content)
    assert under(content, field.at("a", "b")) == "b"
    assert under(content, field.at("a", "d")) == "{e: 1}"
    assert under(content, field.at("a", "f")) == "f"
    assert under(content, field.at("a", "f").items()[0]) == "g"


def test_an_aliased_value_is_reported_where_it_is_used() -> None:
    content = "base: &b\n  gpu: 2\nuse: *b\nlist: [*b]\n"
    field = root(content)
    value = field.at("use", "gpu")
    assert under(content, value) == "*b"
    assert value.yaml_path == "use.gpu"
    assert [r.span.line for r in value.related] == [2]
    assert under(content, field.get("list").items()[0].get("gpu")) == "*b"
    assert [(r.span.line, r.message) for r in field.get("use").related] == [(2, "&b is defined here")]


def test_a_merged_value_is_reported_at_the_merge() -> None:
    content = "base: &b {x: 1, z: 2}\nuse:\n  <<: *b\n  z: 3\n"
    use = root(content).get("use")
    assert [entry.name for entry in use.entries()] == ["x", "z"]
    assert under(content, use.get("x")) == "*b"
    assert under(content, use.get("z")) == "3"


@pytest.mark.parametrize(
    ("dialect", "x"), [(Dialect.KUBERNETES, 1), (Dialect.PYYAML, 2), (Dialect.OMEGACONF, 2)], ids=lambda v: str(v)
)
def test_a_merge_after_a_key(dialect: Dialect, x: int) -> None:
    """Go's reader applies a merge where it stands; the Python ones let the mapping's own key win."""
    assert root("base: &b {x: 1}\nuse:\n  x: 2\n  <<: *b\n", dialect).at("use", "x").plain == x


def test_several_merges() -> None:
    field = root("a: &a {x: 1}\nb: &b {x: 2, y: 2}\nuse: {<<: [*a, *b]}\n", Dialect.PYYAML)
    assert field.at("use", "x").plain == 1
    assert field.at("use", "y").plain == 2


def test_the_last_duplicate_counts() -> None:
    field = root("a: 1\nb: 2\na: 3\n").get("a")
    assert field.plain == 3
    assert field.entry is not None
    assert len(field.entry.duplicates) == 1


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
