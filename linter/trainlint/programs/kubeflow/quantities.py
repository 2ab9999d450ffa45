"""Kubernetes resource quantities: `500m`, `2`, `1.5Gi`, `1e3`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from trainlint.lazy import regex

if TYPE_CHECKING:
    from fractions import Fraction

Amount: TypeAlias = "int | Fraction"
"""An exact amount; most are whole numbers, which need no fractions."""

_QUANTITY = regex(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)([numkMGTPE]?|[KMGTPE]i|[eE][+-]?\d+)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_LARGEST_EXPONENT = 1000
_INT64_DIGITS = 18


def is_quantity(text: str) -> bool:
    """Kubernetes takes the text as a quantity, however large.

    Source: resource.ParseQuantity of k8s.io/apimachinery; an exponent must be a 64-bit integer.
    """
    match = _QUANTITY.fullmatch(text)
    return match is not None and len(match[3].lstrip("eE+-0")) <= _INT64_DIGITS


def parse_quantity(text: str) -> Amount | None:
    """The exact amount, or None when Kubernetes would not take the text as a quantity.

    Source: resource.ParseQuantity of k8s.io/apimachinery; decimal and binary suffixes and exponents.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    sign, digits, suffix = match.groups()
    base, exponent = (2, _BINARY[suffix]) if suffix in _BINARY else (10, _DECIMAL.get(suffix))
    if exponent is None:
        exponent = int(suffix[1:])
        if abs(exponent) > _LARGEST_EXPONENT:
            return None
    amount: Amount
    if exponent >= 0 and "." not in digits:
        amount = int(digits) * base**exponent
    else:
        from fractions import Fraction

        amount = Fraction(digits if digits[-1] != "." else digits[:-1]) * Fraction(base) ** exponent
    return -amount if sign == "-" else amount


def whole(amount: Amount) -> int:
    """The amount rounded away from zero, as Quantity.Value does."""
    return -(-amount.numerator // amount.denominator) if amount >= 0 else amount.numerator // amount.denominator
