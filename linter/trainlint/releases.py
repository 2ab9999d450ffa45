"""Versions and spans of releases: which known releases speak for a version that somebody runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class InForce:
    """The known releases that speak for one version: what they all say is said.

    Usually one, which is then the `label`; two for a version between them; none for one older than the oldest known.
    `notice` is what the user should know of the choice.
    """

    releases: tuple[str, ...]
    label: str
    notice: str = ""


def version_tuple(version: str) -> tuple[int, ...]:
    """The release part of a version as numbers: `v1.6.0rc1` is (1, 6, 0); () where there is none.

    A pre-release has the keys of its release rather than those of the release before.
    """
    parts = []
    for text in version.strip().lstrip("vV").split("."):
        digits = len(text) - len(text.lstrip("0123456789"))
        if not digits:
            break
        parts.append(int(text[:digits]))
        if digits < len(text):
            break
    return tuple(parts)


def speaking_for(program: str, names: Iterable[str], version: str) -> InForce:
    """Which of a program's known releases speak for a version."""
    known = {version_tuple(name): name for name in names}
    asked = version_tuple(version)
    if not asked:
        return InForce((), version, f"{version} is no version of {program}: nothing that depends on it is said")
    same = [name for name in known if name[: len(asked)] == asked]
    if same:
        return InForce((known[max(same)],), known[max(same)])
    near = [name for name in known if name[:2] == asked[:2]]
    below = max((name for name in near or known if name < asked), default=None)
    above = min((name for name in near or known if name > asked), default=None)
    if above is None and not near:
        newest = known[max(known)]
        notice = f"{program} {version} is newer than {newest}, the newest release that is known"
        return InForce((newest,), newest, notice)
    if below is None and not near:
        notice = f"{program} {version} is older than {known[min(known)]}, the oldest release that is known"
        return InForce((), version, notice)
    speaking = tuple(known[name] for name in (below, above) if name is not None)
    return InForce(speaking, speaking[0] if len(speaking) == 1 else version)
