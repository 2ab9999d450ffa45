"""Write the release facts of the trainers from their released packages.

    python -m wheel_facts axolotl --release 0.22.0             add a release, its package from the registry
    python -m wheel_facts axolotl --release 0.22.0 --from W    the same from a wheel or source distribution
    python -m wheel_facts axolotl                              read each known release again
    python -m wheel_facts llamafactory --older --release 0.8.3   add one before them, whose tables alone are read
    python -m wheel_facts axolotl --confirm                    check the claims about the newest known release
    python -m wheel_facts axolotl --changes                    show what changed in the code of its open claims
    python -m wheel_facts axolotl --ran 0.22.0                 note that the release was also run

Packages are read with `ast`, never imported or built; fetched ones stay in the cache. Where a package is missing or
cannot be read, nothing is written. For a newest release the claims that it inherits are checked (see
`wheel_facts.confirmed`), and those that somebody must confirm are listed.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from trainlint.training.declarations import READ_FURTHER
from trainlint.training.declarations import facts_file as facts_file
from wheel_facts import confirmed
from wheel_facts.history import History, Release, decode, dumps, encode
from wheel_facts.package import Package
from wheel_facts.readers import PROGRAMS, Program
from wheel_facts.registry import Missing, Registry, in_cache, version_of
from wheel_facts.source import texts_of

ROOT = Path(__file__).resolve().parents[2]


class Unreadable(Exception):
    """A release without the sources that its reader looks for."""


@dataclass
class Packages:
    """The source of packages and dates: a named file, the cache, else the registry."""

    cache: Path
    file: Path | None = None
    date: str = ""
    registry: Registry | None = None

    def asked(self) -> Registry:
        """The registry, which is only used where something is missing."""
        self.registry = self.registry or Registry.of_pip()
        return self.registry

    def package(self, program: Program, version: str) -> Path:
        """The archive of a release; raises Missing."""
        if self.file is not None:
            if version_of(self.file.name) != Version(version):
                raise Missing(f"{self.file.name} is not {program.distribution} {version}")
            return self.file
        found = in_cache(program.distribution, version, self.cache)
        return found or self.asked().fetch(program.distribution, version, self.cache)

    def day(self, program: Program, version: str, package: Package) -> str:
        """The day of a release: as given, from its archive, or from the registry; raises Missing."""
        found = self.date or package.built
        if not found and self.file is None:
            found = self.asked().dates(program.distribution).get(version, "")
        if not found:
            raise Missing(f"{program.distribution} {version} has no date: give it with --date")
        return found


def read(program: Program, version: str, packages: Packages) -> tuple[str, Release]:
    """The day of a release and its facts; raises Missing or Unreadable."""
    package = Package(packages.package(program, version), program.package)
    release = program.read(package)
    found = [name for name, table in release.tables.items() if table]
    lost = [names for names in program.essential if not any(re.fullmatch(names, name) for name in found)]
    if lost:
        raise Unreadable(f"{program.distribution} {version}: nothing found for {', '.join(lost)}")
    release.values |= {
        key: bound for key, bound in package.bounds().items() if key.partition(":")[2] != program.distribution
    }
    return packages.day(program, version, package), release


def file_of(name: str, *, older: bool = False) -> Path:
    """A program's facts file, or that of the releases before the known ones."""
    file = facts_file(name)
    return file.with_name(f"{name}-older.json") if older else file


def known(name: str, *, older: bool = False) -> History:
    """The content of a program's facts file; nothing where there is none yet."""
    file = file_of(name, older=older)
    return decode(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else History("", [], {}, {})


def ran(name: str, version: str) -> str:
    """The text of a program's facts file in which a known release counts as run too; raises Missing."""
    history = known(name)
    if version not in history.releases:
        raise Missing(f"{name} {version} is not known")
    history.run = sorted({*history.run, version}, key=Version)
    return dumps(encode(history))


def written(name: str, versions: list[str], packages: Packages, *, older: bool = False) -> str:
    """The text of a program's facts file with these releases added or read again; raises Missing or Unreadable."""
    program = PROGRAMS[name]
    history = known(name, older=older)
    found: Mapping[str, tuple[str, Release]] = {text: read(program, text, packages) for text in versions}
    for version, (date, release) in found.items():
        history.add(version, date, release)
    history.source = program.read.__doc__ or ""
    return dumps(encode(history))


def confirm(name: str, release: str, packages: Packages) -> None:
    """Check the claims about a release, and print those that somebody must confirm; raises Missing."""
    program = PROGRAMS[name]
    left = confirmed.ask(name, release, Package(packages.package(program, release), program.package), program.behaviour)
    print(f"{name} {release}: {len(left)} claims to confirm in tests/confirmed/{name}.txt")
    for row in left:
        print(f"    {row}")


def changes(name: str, packages: Packages) -> Iterator[str]:
    """What the newest release changed in the code of the open claims, as a diff; raises Missing."""
    program = PROGRAMS[name]
    older, newest = list(known(name).releases)[-2:]
    before = texts_of(Package(Packages(packages.cache).package(program, older), program.package), program.behaviour)
    after = texts_of(Package(packages.package(program, newest), program.package), program.behaviour)
    for place in dict.fromkeys(place for row in confirmed.rows_of(name) if row.asked for place in row.places):
        old, new = (texts.get(place, "").splitlines() for texts in (before, after))
        yield from difflib.unified_diff(old, new, f"{older} {place}", f"{newest} {place}", lineterm="")


def main() -> None:
    """Write the facts of the program that is named, or ask what is claimed of its newest release."""
    parser = argparse.ArgumentParser(
        "wheel_facts", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--confirm", action="store_true", help="check the claims about the newest known release")
    parser.add_argument("--older", action="store_true", help="releases before the known ones, which are only read")
    parser.add_argument("--changes", action="store_true", help="show what changed in the code of the open claims")
    parser.add_argument("--ran", default="", help="a known release that was also run")
    parser.add_argument("--release", action="append", default=[], help="a release to add, or to read again")
    parser.add_argument("--from", dest="file", type=Path, help="its wheel or source distribution")
    parser.add_argument("--date", default="", help="its day, where the package has none")
    parser.add_argument("--cache", type=Path, default=ROOT / ".cache" / "packages", help="where packages are kept")
    options = parser.parse_args()
    programs = options.programs or list(PROGRAMS)
    if unknown := sorted(set(programs) - PROGRAMS.keys()):
        parser.error(f"unknown program {', '.join(unknown)}; known: {', '.join(PROGRAMS)}")
    asking = options.confirm or options.changes
    if (options.release or options.ran or (asking and options.file)) and len(programs) > 1:
        parser.error("--release, --ran and --from are for one program")
    if (options.file or options.date) and len(options.release) != 1 and not asking:
        parser.error("--from and --date are for one release")
    packages = Packages(options.cache, options.file, options.date)
    try:
        if options.ran:
            (name,) = programs
            facts_file(name).write_text(ran(name, options.ran), encoding="utf-8")
            return
        if options.changes:
            for name in programs:
                print(*changes(name, packages), sep="\n")
            return
        if options.older:
            programs = [name for name in programs if name in READ_FURTHER]
        texts: dict[str, str] = {}
        if not options.confirm:
            texts = {
                name: written(
                    name,
                    options.release or list(known(name, older=options.older).releases),
                    packages,
                    older=options.older,
                )
                for name in programs
            }
        for name, text in texts.items():
            file = file_of(name, older=options.older)
            file.write_text(text, encoding="utf-8")
            print(f"{file.name}: {len(decode(json.loads(text)).releases)} releases, {len(text) // 1024} KB")
        for name in () if options.older else programs:
            newest = max(known(name).releases, key=Version)
            if not options.release or newest in options.release:
                confirm(name, newest, packages)
    except (Missing, Unreadable) as problem:
        sys.exit(f"{problem}; nothing was written")


if __name__ == "__main__":
    main()
