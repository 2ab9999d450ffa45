"""Lock files: uv, Poetry, PDM, Pipenv, PEP 751, conda-lock and pixi.

They are long and written by machines, so only the entries of the packages that are asked for are read.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from trainlint.lazy import regex
from trainlint.repository.statements import trees
from trainlint.repository.statements.model import Form, Kind, Meaning, Statement
from trainlint.repository.statements.origins import of_address, repository_of
from trainlint.repository.statements.page import Broken, Page
from trainlint.repository.statements.requirement import can_hold
from trainlint.repository.statements.specifiers import exact, of_pip
from trainlint.repository.statements.trees import Leaf, Table

_HEADER = regex(r"^[ \t]*\[\[[ \t]*(packages?)[ \t]*\]\][ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE)
_ANY_HEADER = regex(r"^\[(?!\[?[ \t]*packages?[ \t]*[].])", re.MULTILINE)
_NAME = regex(r"""^[ \t]*name[ \t]*=[ \t]*["']([\w.-]+)["']""", re.MULTILINE)
_MAX_ENTRIES = 500
"""More entries of one package than any resolution has."""
_MAX_MEMBERS = 5_000
"""Members of a workspace, each with the entries of one package: more than any workspace has."""


def read(page: Page) -> Iterator[Statement]:
    """The entries of `uv.lock`, `poetry.lock`, `pdm.lock` or `pylock.toml`."""
    if not _HEADER.search(page.content):
        # One table that is written inline, or no lock at all.
        tree = trees.toml(page.content)
        for item in tree.items("packages") or tree.items("package"):
            if isinstance(item, Table):
                yield from _entry(page, item, [""])
        return
    starts = [match.start() for match in _HEADER.finditer(page.content)]
    homes = _members(page.content) if page.name == "uv.lock" else [""]
    left, left_members = _MAX_ENTRIES, _MAX_MEMBERS
    for start, following in zip(starts, [*starts[1:], len(page.content)], strict=True):
        name = _NAME.search(page.content, start, following)
        if name is None or page.packages.distribution(name[1]) is None:
            continue
        left -= 1
        if left < 0:
            break
        stop = _ANY_HEADER.search(page.content, start + 1, following)
        tree = trees.toml(page.content, start, stop.start() if stop else following)
        for item in tree.items("package") or tree.items("packages"):
            if isinstance(item, Table):
                # Many entries of one package speak for few members, and each of many members has few.
                yield from _entry(page, item, homes[: max(1, left_members)])
                left_members -= len(homes)


def _members(content: str) -> list[str]:
    """The folders of a workspace that a uv.lock is for, besides its own."""
    found = re.findall(r"""^source = \{ (?:editable|virtual|directory) = "([^"\n]+)" \}""", content, re.MULTILINE)
    return ["", *(path for path in found if path != ".")]


def _entry(page: Page, entry: Table, homes: list[str]) -> Iterator[Statement]:
    name, version = entry.text("name"), entry.leaf("version")
    package = page.packages.distribution(name)
    if package is None:
        return
    place = version.place if version else (entry.start, entry.end)
    meaning = exact(version.value) if version else Meaning(Kind.UNKNOWN)
    source = entry.text("source", "git") or entry.text("git") or entry.text("vcs", "url")
    if entry.text("source", "type") == "git":
        source = entry.text("source", "url")
    own = repository_of(source) if source else None
    if source and not (own and page.packages.repository(own[0]) == (package, True)):
        meaning = _of_fork(meaning, source)
    local = entry.text("source", "editable") or entry.text("source", "virtual") or entry.text("source", "directory")
    if version is None and (local or entry.text("path")):
        meaning = Meaning(Kind.UNKNOWN, local or entry.text("path"), local=True)
    markers = [leaf.value for leaf in trees.leaves(entry.at("resolution-markers"))] or [
        entry.text("marker") or entry.text("markers")
    ]
    if not any(can_hold(_dialect(marker))[0] for marker in markers):
        return
    extra = _group(entry)
    for home in homes:
        where = posixpath.normpath(posixpath.join(page.home, home)) if home else page.home
        if not where.startswith(".."):
            yield page.statement(
                package, meaning, place, Form.LOCK, extra=extra, marker=markers[0], home="" if where == "." else where
            )


def _of_fork(meaning: Meaning, source: str) -> Meaning:
    """The version that somebody's copy of a source calls itself; it may differ from the release of that name."""
    return meaning._replace(fork=True) if meaning.kind is Kind.EXACT else Meaning(Kind.UNKNOWN, source, fork=True)


def _dialect(marker: str) -> str:
    """A marker as PEP 508 has it; PDM and PEP 751 may test extras and groups in ways of their own."""
    return "" if " in extras" in marker or "dependency_groups" in marker else marker


def _group(entry: Table) -> str:
    groups = [leaf.value for leaf in trees.leaves(entry.at("groups"))]
    if groups and not {"main", "default"} & set(groups):
        return groups[0]
    category = entry.text("category")
    return category if category not in ("", "main") else ""


def read_pipfile_lock(page: Page) -> Iterator[Statement]:
    """`Pipfile.lock`: `default`, `develop` and further categories."""
    tree = trees.json(page.content)
    if not isinstance(tree, Table):
        raise Broken("no JSON object")
    for category, section in tree.entries.items():
        if category == "_meta" or not isinstance(section, Table):
            continue
        for name, entry in section.entries.items():
            package = page.packages.distribution(name)
            if package is None or not isinstance(entry, Table):
                continue
            extra = "" if category == "default" else category
            version, git = entry.leaf("version"), entry.leaf("git")
            if not can_hold(entry.text("markers"))[0]:
                continue
            if git is not None:
                meaning = of_address(git.value, page.packages, entry.text("ref"))[1]
                yield page.statement(package, meaning, (entry.leaf("ref") or git).place, Form.LOCK, extra=extra)
            elif version is not None:
                meaning = of_pip(version.value) or Meaning(Kind.UNKNOWN, version.value)
                yield page.statement(package, meaning, version.place, Form.LOCK, extra=extra)
            else:
                path = entry.leaf("path") or entry.leaf("file")
                if path is not None:
                    meaning = of_address(path.value, page.packages)[1]
                    yield page.statement(package, meaning, path.place, Form.LOCK, extra=extra)


_KEY = regex(r"^(?P<indent>[ ]*)(?P<dash>-[ ]+)?(?P<key>[\w-]+):(?:[ ]+(?P<value>\S[^\r\n]*))?[ \t]*\r?$", re.MULTILINE)


def read_conda(page: Page) -> Iterator[Statement]:
    """`conda-lock.yml` and `pixi.lock`, line by line: they are YAML as one program writes it."""
    found: list[tuple[bool, Statement]] = []
    for item in _items(page.content):
        conda = item.get("conda")
        if conda is not None:
            package, meaning = of_address(conda.value, page.packages)
            place = (item.get("version") or conda).place
            linux = "/linux-" in conda.value or "/noarch/" in conda.value
        else:
            name, version = item.get("name"), item.get("version")
            if name is None or version is None:
                continue
            package, meaning, place = page.packages.distribution(name.value), exact(version.value), version.place
            platform = (item.get("platform") or item.get("subdir") or Leaf("linux-64", 0, 0)).value
            linux = platform.startswith("linux") or platform == "noarch"
            url = item.get("pypi") or item.get("url")
            if package and url is not None and "git+" in url.value:
                own = repository_of(url.value.removeprefix("git+"))
                if not (own and page.packages.repository(own[0]) == (package, True)):
                    meaning = _of_fork(meaning, url.value)
        if package is None:
            continue
        category = item.get("category")
        extra = category.value if category and category.value != "main" else ""
        if len(found) == _MAX_ENTRIES:
            break
        found.append((linux, page.statement(package, meaning, place, Form.LOCK, extra=extra)))
    kept = [statement for linux, statement in found if linux] or [statement for _, statement in found]
    seen: set[tuple[str, Meaning, str]] = set()
    for statement in kept:
        key = statement.package, statement.meaning, statement.extra
        if key not in seen:
            seen.add(key)
            yield statement


def _items(content: str) -> Iterator[dict[str, Leaf]]:
    """The items of the list `package` or `packages`: the scalars that stand directly in each."""
    item: dict[str, Leaf] = {}
    depth = -1
    inside = False
    for match in _KEY.finditer(content):
        indent, dash = len(match["indent"]), match["dash"]
        if not indent and not dash:
            inside = match["key"] in ("package", "packages")
            depth = -1
        if not inside:
            continue
        column = indent + len(dash or "")
        if dash and (depth < 0 or column <= depth):
            if item:
                yield item
            item, depth = {}, column
        if column == depth and match["value"] and match["key"] not in item:
            value, start = match["value"].rstrip(), match.start("value")
            quoted = len(value) > 1 and value[0] in "'\"" and value[-1] == value[0]
            item[match["key"]] = Leaf(value[1:-1] if quoted else value, start, start + len(value), quoted)
    if item:
        yield item
