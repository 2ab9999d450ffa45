"""How each program's YAML reader reads a plain scalar.

There are three readers. Kubernetes uses Go (sigs.k8s.io/yaml with the v2 line of go-yaml): YAML 1.1 words such as
`yes`, octal `010`, `1_0`. Python trainers use PyYAML's safe loader: also YAML 1.1, but a number such as `2e-5` without
a dot is text. OmegaConf is PyYAML with more forms of floats and without timestamps.
"""

from __future__ import annotations

import enum
import math
import re

from trainlint.budget import BUDGET
from trainlint.lazy import regex
from trainlint.reading.document import Scalar

Plain = bool | int | float | str | None

_PREFIX = "tag:yaml.org,2002:"


class Dialect(enum.Enum):
    """The reader of a document: it decides how plain scalars, duplicate keys and merge keys are read."""

    KUBERNETES = "kubernetes"
    PYYAML = "pyyaml"
    OMEGACONF = "omegaconf"

    __hash__ = object.__hash__
    """That of Enum is written in Python, and fields are looked up by dialect all the time."""


def value_of(scalar: Scalar, dialect: Dialect) -> Plain:
    """The value of a scalar in its dialect; quoted and block scalars are text."""
    tag = scalar.tag
    if tag is not None and tag.startswith(_PREFIX):
        tag = tag[len(_PREFIX) :]
        if tag == "str":
            return scalar.value
        if tag in ("int", "float", "bool", "null"):
            return _tagged(scalar.value, tag, dialect)
        return scalar.value
    if scalar.style or tag is not None:
        return scalar.value
    return plain_value(scalar.value, dialect)


def whole_number(text: str) -> int | None:
    """The number that digits spell; None for other text, and for more of them than a number may have."""
    return int(text) if text.isdecimal() and len(text) <= BUDGET.digits else None


def plain_value(text: str, dialect: Dialect) -> Plain:
    """The value of an unquoted, untagged text."""
    if dialect is Dialect.KUBERNETES:
        return _go(text)
    return _pyyaml(text, _OMEGACONF_FLOAT if dialect is Dialect.OMEGACONF else _PYYAML_FLOAT)


def _tagged(text: str, tag: str, dialect: Dialect) -> Plain:
    value = plain_value(text, dialect)
    if tag == "float" and isinstance(value, (int, str)) and not isinstance(value, bool):
        try:
            return float(value)
        except ValueError:
            return text
    return value if tag != "null" else None


_GO_WORDS: dict[str, Plain] = {
    **dict.fromkeys("y Y yes Yes YES true True TRUE on On ON".split(), True),
    **dict.fromkeys("n N no No NO false False FALSE off Off OFF".split(), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **{sign + word: math.inf for word in (".inf", ".Inf", ".INF") for sign in ("", "+")},
    **{"-" + word: -math.inf for word in (".inf", ".Inf", ".INF")},
}
_GO_FLOAT = regex(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_GO_BASES = (16, 2, 8, 10)
"""The base of the digits in each group of `_GO_INT` after the sign."""
_LONGEST_INT = 70
"""More characters than any 64-bit integer has, in base 2 with sign and prefix."""
_GO_INT = regex(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")


_LONGEST_PLAIN = 18
"""So many digits fit into 64 bits."""


def _is_plain_number(text: str) -> bool:
    """Digits that mean the same to every reader: most numbers are of this kind."""
    return len(text) <= _LONGEST_PLAIN and text.isdecimal() and text.isascii() and (text[0] != "0" or text == "0")


def _go(text: str) -> Plain:
    if text in _GO_WORDS:
        return _GO_WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _is_plain_number(text):
        return int(text)
    digits = text if text[0] == "." else text.replace("_", "")
    match = _GO_INT.fullmatch(digits)
    if match and len(digits) <= _LONGEST_INT:
        sign, *groups = match.groups()
        number = next(int(sign + group, base) for group, base in zip(groups, _GO_BASES, strict=True) if group)
        if -(2**63) <= number < 2**64:
            return number
    if _GO_FLOAT.fullmatch(digits):
        number_or_infinity = float(digits)
        return text if math.isinf(number_or_infinity) else number_or_infinity
    return text


_PY_WORDS: dict[str, Plain] = {
    **dict.fromkeys("yes Yes YES true True TRUE on On ON".split(), True),
    **dict.fromkeys("no No NO false False FALSE off Off OFF".split(), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_PY_INT = regex(
    r"[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+"
)
_PYYAML_FLOAT = regex(
    r"[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?"
    r"|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_OMEGACONF_FLOAT = regex(
    r"[-+]?(?:[0-9][0-9_]*)\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?(?:[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)"
    r"|\.[0-9_]+(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)"
    r"|\.(?:nan|NaN|NAN)"
)


def _pyyaml(text: str, floats: re.Pattern[str]) -> Plain:
    if text in _PY_WORDS:
        return _PY_WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _is_plain_number(text):
        return int(text)
    if _PY_INT.fullmatch(text):
        return _python_int(text)
    if floats.fullmatch(text):
        return _python_float(text)
    return text


def _python_int(text: str) -> Plain:
    sign = -1 if text[0] == "-" else 1
    digits = text.replace("_", "").lstrip("+-")
    try:
        if digits.startswith("0b"):
            return sign * int(digits[2:], 2)
        if digits.startswith("0x"):
            return sign * int(digits[2:], 16)
        if ":" in digits:
            return sign * _sexagesimal([int(part) for part in digits.split(":")])
        if digits.startswith("0") and digits != "0":
            return sign * int(digits, 8)
        return sign * int(digits)
    except ValueError:
        return text


def _python_float(text: str) -> Plain:
    sign = -1.0 if text[0] == "-" else 1.0
    digits = text.replace("_", "").lstrip("+-").lower()
    if digits == ".inf":
        return sign * math.inf
    if digits == ".nan":
        return math.nan
    try:
        if ":" in digits:
            parts = [float(part) for part in digits.split(":")]
            return sign * sum(part * 60.0**place for place, part in enumerate(reversed(parts)))
        return sign * float(digits)
    except ValueError:
        return text


def _sexagesimal(parts: list[int]) -> int:
    total = 0
    for part in parts:
        total = total * 60 + part
    return total
