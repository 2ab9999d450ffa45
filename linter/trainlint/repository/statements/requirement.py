"""One requirement as pip reads it: `trl[peft]>=0.17,<1 ; python_version >= "3.10"`, `trl @ git+https://…@v0.17.0`."""

from __future__ import annotations

import re
from functools import lru_cache

from trainlint.lazy import regex
from trainlint.records import NamedTuple
from trainlint.repository.statements.model import Meaning
from trainlint.repository.statements.origins import of_address
from trainlint.repository.statements.packages import Packages
from trainlint.repository.statements.specifiers import ANY, of_pip

_CLAUSE = r"(?:===|==|~=|!=|<=|>=|<|>)[ \t]{0,9}[^\s,;#()\\]{1,100}"
_RANGE = rf"\(?[ \t]{{0,9}}(?P<range>{_CLAUSE}(?:[ \t]{{0,9}},[ \t]{{0,9}}{_CLAUSE}){{0,20}},?)[ \t]{{0,9}}\)?"
_HEAD = regex(
    r"(?P<name>[A-Za-z0-9][\w.-]{0,100})[ \t]{0,9}(?:\[[^\]\n]{0,300}\])?[ \t]{0,9}"
    rf"(?:@[ \t]{{0,9}}(?P<url>[^\s;][^\s]{{0,1000}})|{_RANGE})?"
)
_ADDRESS = regex(r"(?:(?:git|hg|svn|bzr)\+\w{1,10}://|https?://|file:|git@|git://|\.{0,2}/|\.$|\.\[)\S{0,1000}")
_TRAINERS = tuple(
    {
        "implementation_name": "cpython",
        "implementation_version": f"{version}.9",
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_release": "6.1",
        "platform_system": "Linux",
        "python_full_version": f"{version}.9",
        "python_version": version,
        "sys_platform": "linux",
    }
    for machine in ("x86_64", "aarch64")
    for version in ("3.10", "3.11", "3.12", "3.13", "3.14")
)


class Requirement(NamedTuple):
    """What one requirement asks of one of the packages; `length` are the characters from its start that say so."""

    package: str
    meaning: Meaning
    length: int
    marker: str = ""
    extra: str = ""


def requirement(text: str, packages: Packages) -> Requirement | None:
    """Read a requirement of one of the packages; None for another's, and for what is no requirement.

    None is also what holds on no machine that trains: another system than Linux, or a Python before 3.10.
    """
    if not text or not (text[0].isalnum() or text[0] in "./"):
        return None
    match = _HEAD.match(text)
    address = _ADDRESS.match(text)
    meaning: Meaning | None
    if address:
        package, meaning = of_address(address[0], packages)
        end = address.end()
    elif match:
        package = packages.distribution(match["name"])
        end = match.end()
        if package is None:
            return None
        if match["url"]:
            meaning = of_address(match["url"], Packages([package]))[1]
        else:
            meaning = of_pip(match["range"]) if match["range"] else ANY
    else:
        return None
    rest = text[end:].strip()
    marker = rest[1:].partition(" #")[0].strip() if rest[:1] == ";" else ""
    marker = re.split(r"\s--\w|\\", marker)[0].strip()
    if rest and not re.match(r";|#|--\w|\\", rest):
        return None
    if package is None or meaning is None:
        return None
    holds, extra = can_hold(marker)
    return Requirement(package, meaning, len(text[:end].rstrip()), marker, extra) if holds else None


@lru_cache(maxsize=1024)
def can_hold(marker: str) -> tuple[bool, str]:
    """An environment marker holds on some machine that trains; with the extra that it names."""
    if not marker:
        return True, ""
    if len(marker) > 2000:
        return True, ""
    from packaging.markers import InvalidMarker, Marker, UndefinedEnvironmentName

    named = re.search(r"\bextra\s*==\s*['\"]([\w.-]{1,100})['\"]", marker)
    extra = named[1] if named else ""
    try:
        parsed = Marker(marker)
        return any(parsed.evaluate({**machine, "extra": extra}) for machine in _TRAINERS), extra
    except (InvalidMarker, UndefinedEnvironmentName, ValueError, RecursionError):
        return True, extra
