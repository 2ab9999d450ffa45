"""Versions and ranges in the spellings of pip, conda, Poetry and Pipenv, as one Meaning."""

from __future__ import annotations

import re
from functools import lru_cache

from trainlint.lazy import regex
from trainlint.repository.statements.model import Kind, Meaning

MAX_LENGTH = 300
"""No longer range is read; packaging's own patterns and numbers are then out of harm's way."""

ANY = Meaning(Kind.RANGE, "")


def exact(version: str) -> Meaning:
    """One version; unknown where it is none."""
    from packaging.version import InvalidVersion, Version

    text = version.strip()
    if len(text) <= MAX_LENGTH:
        try:
            return Meaning(Kind.EXACT, str(Version(text)))
        except (InvalidVersion, ValueError):
            pass
    return Meaning(Kind.UNKNOWN, text[:MAX_LENGTH])


@lru_cache(maxsize=4096)
def of_pip(specifier: str) -> Meaning | None:
    """A range of PEP 440, which is one version where it has one `==` without a star; None where it is no range."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    text = specifier.strip().rstrip(",")
    if not text or text == "*":
        return ANY
    if len(text) > MAX_LENGTH:
        return None
    try:
        parts = list(SpecifierSet(text))
    except (InvalidSpecifier, ValueError):
        return None
    pinned = {part.version for part in parts if part.operator in ("==", "===") and not part.version.endswith(".*")}
    if len(pinned) == 1:
        return exact(pinned.pop())
    if any(part.operator == "===" for part in parts):
        return None
    return Meaning(Kind.RANGE, ",".join(re.sub(r"\s+", "", part) for part in text.split(",") if part.strip()))


def of_poetry(constraint: str) -> list[Meaning]:
    """Poetry's constraints (`^1.6`, `~1.6`, `1.6.*`, `1.6`, `>=1,<2`, `a || b`), one for each alternative."""
    if len(constraint) > MAX_LENGTH:
        return []
    found = []
    for alternative in re.split(r"\|\|?", constraint):
        parts: list[str] = []
        for part in re.split(r"(?<=[\w*])\s*,\s*|(?<=[\w*])\s+(?=[<>=!^~])", alternative.strip()):
            text = re.sub(r"\s+", "", part)
            if text in ("", "*"):
                continue
            number = re.sub(r"^[\^~=<>!vV]+", "", text)
            if text[0] == "^":
                parts += _caret(number)
            elif text[0] == "~" and text[:2] != "~=":
                parts += [f">={number}", f"=={'.'.join(number.split('.')[:2])}.*"]
            elif text[0].isdecimal() or text[0] in "vV":
                parts.append(f"=={number}")
            elif text[0] == "=" and text[:2] != "==":
                parts.append(f"={text}")
            else:
                parts.append(text)
        meaning = of_pip(",".join(parts))
        if meaning is not None:
            found.append(meaning)
    return found


def _caret(number: str) -> list[str]:
    """`^1.6` allows all that leaves the first number that is not zero as it is."""
    match = re.match(r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?", number)
    if not match:
        return [f">={number}"]
    numbers = [int(text) for text in match.groups() if text is not None]
    first = next((index for index, n in enumerate(numbers) if n), len(numbers) - 1)
    upper = ".".join(str(n) for n in [*numbers[:first], numbers[first] + 1])
    return [f">={number}", f"<{upper}"]


_CONDA_VERSION = regex(r"(?P<version>[<>=!~]{0,2}[^=<>!~,|]+(?:[,|][<>=!~]{0,2}[^=<>!~,|]+)*)(?:=.*)?")


def of_conda(text: str) -> tuple[str, list[Meaning]] | None:
    """A conda specification (`trl=0.17`, `trl==0.17.0`, `trl 0.17.* py_0`, `channel::trl[version='>=0.17']`).

    A version of three numbers behind one `=` is that version in any build; one of fewer is a range.
    """
    if len(text) > 2 * MAX_LENGTH:
        return None
    text = text.partition("#")[0].strip().rpartition("::")[2]
    name = re.match(r"[A-Za-z0-9_](?:[\w.-]*\w)?", text)
    if not name:
        return None
    rest = text[name.end() :]
    inside = re.search(r"\bversion\s*=\s*(['\"]?)([^'\"\]]+)\1", rest) if rest.lstrip()[:1] == "[" else None
    if inside:
        return name[0], of_conda_version(inside[2])
    words = re.sub(r" ?([,|<>=!~]) ?", r"\1", " ".join(rest.partition("[")[0].split())).split()
    if not words:
        return name[0], [ANY]
    version = _CONDA_VERSION.fullmatch(words[0])
    if version is None or not (rest[0].isspace() or rest[0] in "<>=!~") or not re.match(r"[<>=!~\d*]", words[0]):
        return None
    return name[0], of_conda_version(version["version"])


def of_conda_version(text: str) -> list[Meaning]:
    """The version part of a conda specification, one meaning for each alternative of `a|b`."""
    found = []
    for alternative in text.split("|"):
        parts = []
        for part in alternative.split(","):
            part = re.sub(r"\s+", "", part)
            number = part.lstrip("=")
            if part in ("", "*"):
                continue
            if (part[0] == "=" and part[:2] != "==") or part[0].isdecimal():
                fuzzy = part[0] == "=" and number.count(".") < 2 and "*" not in number
                number = re.sub(r"(?<!\.)\*$", ".*", number)
                parts.append(f"=={number}.*" if fuzzy else f"=={number}")
            else:
                parts.append(part)
        meaning = of_pip(",".join(parts))
        if meaning is not None:
            found.append(meaning)
    return found
