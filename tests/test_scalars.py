"""Plain scalars as Go, PyYAML and OmegaConf read them."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from trainlint.reading.document import Scalar
from trainlint.reading.scalars import Dialect, Plain, plain_value, value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True), ("yes", True), ("On", True), ("n", False), ("off", False), ("yES", "yES"),
        ("010", 8), ("0o10", 8), ("0x1F", 31), ("0b11", 3), ("-0b11", -3), ("1_0", 10), ("08", 8.0),
        ("+5", 5), ("-7", -7),
        ("1e3", 1000.0), ("2.0", 2.0), (".5", 0.5), ("1.", 1.0), ("1:30", "1:30"), ("2001-01-01", "2001-01-01"),
        ("", None), ("~", None), ("Null", None), ("nUll", "nUll"), (".inf", math.inf), ("-.INF", -math.inf),
        ("18446744073709551615", 18446744073709551615), ("0.5.1", "0.5.1"), ("1a", "1a"),
        ("9" * 400, "9" * 400), ("9" * 30, 1e30), ("1e999", "1e999"), ("-", "-"), (".", "."),
    ],
)  # fmt: skip
def test_go(text: str, value: Plain) -> None:
    read = plain_value(text, Dialect.KUBERNETES)
    assert read == value
    assert type(read) is type(value)


_scalar_texts = st.text(alphabet="0123456789abcdefoxyYNnESsx+-._:eE~nulTrFIif", min_size=1, max_size=8)


@given(_scalar_texts)
@example("1:30.5")
@example("-1:30.5")
@example("1_0:0:1.")
@example("-1:30")
@example("+.INF")
@example("-.inf")
@example(".NaN")
@example("-0b1_1")
@example("0x_1F")
@example("-0")
def test_pyyaml_agrees_with_pyyaml(text: str) -> None:
    resolver = yaml.SafeLoader("")
    try:
        tag: str = resolver.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        if tag.endswith((":timestamp", ":merge", ":value")):
            return
        wanted = resolver.construct_object(yaml.ScalarNode(tag, text))
    except (ValueError, yaml.YAMLError):
        return
    read = plain_value(text, Dialect.PYYAML)
    assert read == wanted or (isinstance(wanted, float) and math.isnan(wanted))
    assert type(read) is type(wanted)


@pytest.mark.parametrize(
    ("text", "pyyaml", "omegaconf"),
    [
        ("2e-5", "2e-5", 2e-5),
        ("1e8", "1e8", 1e8),
        ("1.0e5", "1.0e5", 1.0e5),
        ("1.e-5", 1e-5, 1e-5),
        ("1_000", 1000, 1000),
        ("0100", 64, 64),
        ("1:30", 90, 90),
        ("on", True, True),
        ("y", "y", "y"),
        ("nan", "nan", "nan"),
    ],
)
def test_omegaconf_reads_more_floats(text: str, pyyaml: Plain, omegaconf: Plain) -> None:
    assert plain_value(text, Dialect.PYYAML) == pyyaml
    assert plain_value(text, Dialect.OMEGACONF) == omegaconf


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (Scalar("1", '"', None, 0, 3, None), "1"),
        (Scalar("1", "", "tag:yaml.org,2002:str", 0, 1, None), "1"),
        (Scalar("1", "'", "tag:yaml.org,2002:int", 0, 1, None), 1),
        (Scalar("1", "", "tag:yaml.org,2002:float", 0, 1, None), 1.0),
        (Scalar("2e5", "'", "tag:yaml.org,2002:float", 0, 3, None), 2e5),
        (Scalar("~", "", "tag:yaml.org,2002:float", 0, 1, None), None),
        (Scalar("yes", "", "tag:yaml.org,2002:float", 0, 3, None), True),
        (Scalar("off", "'", "tag:yaml.org,2002:bool", 0, 3, None), False),
        (Scalar("MTIz", "", "tag:yaml.org,2002:binary", 0, 4, None), "MTIz"),
        (Scalar("x", "", "!custom", 0, 1, None), "x"),
        (Scalar("", "", "tag:yaml.org,2002:null", 0, 0, None), None),
    ],
)
def test_tags_and_quotes_decide(scalar: Scalar, value: Plain) -> None:
    read = value_of(scalar, Dialect.PYYAML)
    assert read == value
    assert type(read) is type(value)
