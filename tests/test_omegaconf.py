"""Configs as OmegaConf holds them: interpolation, merging, and the place of every value."""

from __future__ import annotations

import pytest

from trainlint.programs.torchtune.omegaconf import ConfigNode, split_key
from trainlint.reading.document import documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.text import Text
from trainlint.reading.values import Field


def tree(content: str) -> ConfigNode:
    (document,) = documents("recipe.yaml", Text(content))
    return ConfigNode.of_field(Field.root(document, Dialect.OMEGACONF))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a: 1\nx: ${a}\n", 1),
        ("a: {b: [5, 6]}\nx: ${a.b[1]}\n", 6),
        ("a: {b: 2}\nx: ${a[b]}\n", 2),
        ("a: run\nx: /data/${a}/logs\n", "/data/run/logs"),
        ("k: a\na: 3\nx: ${${k}}\n", 3),
        ("a: 4\nx: '${ a }'\n", 4),
        ("a: null\nx: ${a}/logs\n", "None/logs"),
        ("x: '\\${a}'\n", "${a}"),
        ("a: 1\nx: '\\\\${a}'\n", "\\1"),
        ("a: 2e-5\nx: ${a}\n", 2e-5),
    ],
)
def test_interpolation(content: str, expected: object) -> None:
    assert tree(content).at("x").value.known == expected


def test_relative_interpolation() -> None:
    config = tree("o: /data\ns:\n  name: run\n  x: ${..o}/${.name}\n")
    assert config.at("s.x").text().known == "/data/run"


def test_interpolation_to_a_section() -> None:
    config = tree("model: {rank: 8}\nteacher: ${model}\n")
    assert config.at("teacher.rank").number().is_(8)
    assert config.at("teacher").value.wrong_type
    assert list(config.at("teacher").entries) == ["rank"]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("output_dir: /x\nx: ${out_dir}\n", "no out_dir"),
        ("x: ${x}\n", "refers to itself"),
        ("x: ${y}\ny: ${x}\n", "refers to itself"),
        ("x: '${a'\n", "has no end or is empty"),
        ("x: '${}'\n", "has no end or is empty"),
        ("x: ${..a}\na: 1\n", "leads out"),
        ("x: ???\n", "is missing"),
        ("x: ${a}\na: ???\n", "is missing"),
        ("x: ${now:%Y}\n", "no resolver"),
    ],
)
def test_what_raises(content: str, part: str) -> None:
    problem = tree(content).at("x").problem
    assert problem is not None
    assert part in problem.message


@pytest.mark.parametrize("content", ["x: ${oc.env:HOME}\n", "x: '{{ value }}'\n", "x: {{ value }}\n", "x: <MODEL>\n"])
def test_what_is_not_in_the_file(content: str) -> None:
    node = tree(content).at("x")
    assert node.value.unknown
    assert node.problem is None


def test_a_node_is_tested_like_a_value() -> None:
    """Every test on what is not known is false."""
    config = tree("a: 1\nb: null\nc: {d: 2}\ne: ${oc.env:X}\nf: ${nothing}\n")
    assert config.at("a").known == 1
    assert config.at("a").is_(2, 1)
    assert config.at("a").known_and_not_in([2])
    assert not config.at("a").known_and_not_in([1])
    assert [config.at(key).absent for key in "abcefz"] == [False, True, False, False, False, True]
    assert [config.at(key).given for key in "abcefz"] == [True, False, True, True, True, False]
    assert [config.at(key).wrong_type for key in "abcefz"] == [False, False, True, False, False, False]
    assert [config.at(key).unknown for key in "abcefz"] == [False, False, False, True, True, False]
    assert not any(config.at(key).is_(1) or config.at(key).known_and_not_in([1]) for key in "bcefz")


def test_truth_is_pythons() -> None:
    config = tree("a: 'False'\nb: []\nc: 0\nd: {x: 1}\ne: null\n")
    assert [config.at(key).truth().known for key in "abcd"] == [True, False, False, True]
    assert config.at("e").truth().absent


def test_places() -> None:
    config = tree("a: 1\nsection:\n  b: ${a}\n")
    assert config.at("section.b").value.field.span.line == 3
    assert config.at("section.missing").field.span.line == 2
    assert config.at("nowhere.at.all").field.span.line == 1
    assert config.at("section.b").name == "section.b"


def test_merging() -> None:
    base = ConfigNode.of_data({"model": {"_component_": "a", "rank": 8}, "files": [1, 2]}, tree("x: 1\n").field)
    merged = base.copy()
    merged.put(["model", "rank"], tree("v: 16\n").at("v"))
    merged.put(["files"], tree("v: [3]\n").at("v"))
    merged.put(["new", "key"], tree("v: yes\n").at("v"))
    assert merged.at("model.rank").number().is_(16)
    assert merged.at("model._component_").text().is_("a")
    assert [item.number().known for item in merged.at("files").elements] == [3]
    assert merged.at("new.key").truth().is_(True)
    assert (merged.at("model.rank").own, merged.at("model._component_").own) == (True, False)
    assert base.at("model.rank").number().is_(8)


def test_removal_takes_emptied_sections_along() -> None:
    config = tree("a: {b: {c: 1}}\nd: 1\n")
    assert config.remove(["a", "b", "c"])
    assert list(config.entries) == ["d"]
    assert not config.remove(["nope"])
    assert not config.remove(["d", "x"])


def test_keys_of_overrides() -> None:
    assert split_key("checkpointer.checkpoint_files[0]") == ["checkpointer", "checkpoint_files", "0"]


@pytest.mark.parametrize(
    "content",
    [
        "x: " + "[" * 90 + "]" * 90 + "\n",
        "a0: x\n" + "".join(f"a{n}: ${{a{n - 1}}}${{a{n - 1}}}\n" for n in range(1, 30)) + "x: ${a29}\n",
        "a0: 1\n" + "".join(f"a{n}: ${{a{n - 1}}}\n" for n in range(1, 1000)) + "x: ${a999}\n",
        "x: " + "${" * 300 + "a" + "}" * 300 + "\na: a\n",
    ],
    ids=["nested", "doubling", "far", "inside one another"],
)
def test_what_no_config_has_ends_at_once(content: str) -> None:
    assert [node.problem for node in tree(content).walk()].count(None) > 0
    assert tree(content).at("x").text().known is None
