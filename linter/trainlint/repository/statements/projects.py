"""Project files: `pyproject.toml`, `setup.cfg`, `Pipfile`, `pixi.toml`, `uv.toml`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from trainlint.budget import BUDGET
from trainlint.lazy import regex
from trainlint.records import replace
from trainlint.repository.statements import trees
from trainlint.repository.statements.model import Form, Include, Kind, Meaning, Statement
from trainlint.repository.statements.origins import of_address
from trainlint.repository.statements.page import Page
from trainlint.repository.statements.requirement import can_hold
from trainlint.repository.statements.specifiers import ANY, exact, of_conda_version, of_pip, of_poetry
from trainlint.repository.statements.trees import Items, Leaf, Table, Tree

_VERSION = regex(r"\d[\w.!+-]*")
VERSION_FILES = ("VERSION", "version.txt")
_PLACEHOLDER = "0.0.0"
"""What is written where a plugin takes the version from git."""


def read_pyproject(page: Page) -> Iterator[Statement | Include]:
    """`pyproject.toml` of any build backend.

    Where uv or Poetry takes a package from elsewhere, that replaces what the project requires of it; so do overrides.
    """
    root = trees.toml(page.content)
    yield from _own(page, root)
    tool = root.table("tool")
    found = [*_project(page, root.table("project")), *_groups(page, root.table("dependency-groups"))]
    uv = tool.table("uv")
    found += _requirements(page, uv.at("dev-dependencies"), "dev")
    found += _requirements(page, tool.at("rye", "dev-dependencies"), "dev")
    for name, group in tool.table("pdm", "dev-dependencies").entries.items():
        found += _requirements(page, group, name)
    for name, environment in tool.table("hatch", "envs").entries.items():
        if isinstance(environment, Table):
            for key in ("dependencies", "extra-dependencies"):
                found += _requirements(page, environment.at(key), name)
    poetry = [*_poetry(page, tool.table("poetry"))]
    found = _replaced(found, [*_sources(page, uv.table("sources")), *(s for sourced, s in poetry if sourced)])
    found += [statement for sourced, statement in poetry if not sourced]
    overrides = _requirements(page, uv.at("override-dependencies"), "")
    found = _replaced(found, [*overrides, *_pdm_overrides(page, tool.table("pdm"))])
    found += [*_pixi(page, tool.table("pixi"))]
    yield from found
    for statement in _requirements(page, uv.at("constraint-dependencies"), ""):
        yield statement._replace(form=Form.CONSTRAINTS)
    yield from _dynamic(page, root)


def read_uv(page: Page) -> Iterator[Statement]:
    """`uv.toml`: constraints and overrides without a project."""
    root = trees.toml(page.content)
    for key in ("constraint-dependencies", "override-dependencies"):
        for statement in _requirements(page, root.at(key), ""):
            yield statement._replace(form=Form.CONSTRAINTS)


def _requirements(page: Page, tree: Tree | None, extra: str) -> Iterator[Statement]:
    for leaf in trees.leaves(tree):
        yield from page.required(leaf.value, leaf.place, Form.PROJECT, extra=extra)


def _replaced(found: list[Statement], by: list[Statement]) -> list[Statement]:
    """Statements in which those of one package are replaced; the replacement belongs to what it stands for."""
    packages = {statement.package for statement in by}
    groups = {package: {s.extra for s in found if s.package == package} for package in packages}
    kept = [statement for statement in found if statement.package not in packages]
    for statement in by:
        extras = groups[statement.package] or {""}
        kept.append(statement if statement.extra or "" in extras else statement._replace(extra=min(extras)))
    return kept


def _own(page: Page, root: Table) -> Iterator[Statement | Include]:
    """The version of the project itself, where it is one of the packages."""
    for table in (root.table("project"), root.table("tool", "poetry"), root.table("tool", "flit", "metadata")):
        name = table.leaf("name")
        package = page.packages.distribution(name.value) if name else None
        if name is None or package is None:
            continue
        version = table.leaf("version")
        if version is not None and exact(version.value).kind is Kind.EXACT and version.value != _PLACEHOLDER:
            yield page.statement(package, exact(version.value), version.place, Form.VENDORED)
            return
        for file in [*_version_files(root), *(replace(name, value=file) for file in VERSION_FILES)]:
            yield page.include(file.value, file.place, Form.VENDORED, package=package)
        yield page.statement(package, Meaning(Kind.UNKNOWN, ".", local=True), name.place, Form.VENDORED)
        return


def _version_files(root: Table) -> Iterator[Leaf]:
    tool = root.table("tool")
    yield from trees.leaves(tool.at("setuptools", "dynamic", "version", "file"))
    for path in (("hatch", "version", "path"), ("pdm", "version", "path")):
        leaf = tool.leaf(*path)
        if leaf is not None:
            yield leaf
    attribute = tool.leaf("setuptools", "dynamic", "version", "attr")
    if attribute is not None:
        module = attribute.value.rpartition(".")[0].replace(".", "/")
        for file in (f"{module}/__init__.py", f"{module}.py", f"src/{module}/__init__.py", f"src/{module}.py"):
            yield replace(attribute, value=file)


def _project(page: Page, project: Table) -> Iterator[Statement]:
    yield from _requirements(page, project.at("dependencies"), "")
    for name, extra in project.table("optional-dependencies").entries.items():
        yield from _requirements(page, extra, name)


def _groups(page: Page, groups: Table) -> Iterator[Statement]:
    """Dependency groups; one that another includes speaks for that as well."""
    followed = 0
    for name in groups.entries:
        seen = {name}
        stack = [name]
        while stack:
            members = groups.entries.get(stack.pop())
            yield from _requirements(page, members, name)
            for item in members.items if isinstance(members, Items) else []:
                included = item.text("include-group") if isinstance(item, Table) else ""
                if included and included not in seen and followed < BUDGET.included:
                    followed += 1
                    seen.add(included)
                    stack.append(included)


def _sources(page: Page, sources: Table) -> Iterator[Statement]:
    """uv's own sources: git with tag, branch or rev, an address, a path. An index changes nothing."""
    for name, tree in sources.entries.items():
        package = page.packages.distribution(name)
        for source in tree.items if isinstance(tree, Items) else [tree]:
            if package is not None and isinstance(source, Table) and can_hold(source.text("marker"))[0]:
                yield from _source(page, package, source, Form.PROJECT, source.text("extra") or source.text("group"))


def _source(page: Page, package: str, source: Table, form: Form, extra: str) -> Iterator[Statement]:
    """A table that says where a package comes from."""
    git = source.leaf("git")
    if git is not None:
        ref = next((leaf for key in ("tag", "rev", "branch", "ref") if (leaf := source.leaf(key))), None)
        meaning = of_address(git.value, page.packages, ref.value if ref else None)[1]
        place = (ref or git).place
    else:
        where = next((leaf for key in ("url", "path", "file") if (leaf := source.leaf(key))), None)
        if where is None:
            return
        meaning, place = of_address(where.value, page.packages)[1], where.place
        if source.leaf("url") is None and meaning.kind is Kind.UNKNOWN:
            meaning = Meaning(Kind.UNKNOWN, where.value, local=True)
    yield page.statement(package, meaning, place, form, extra=extra, marker=source.text("marker"))


def _poetry(page: Page, poetry: Table) -> Iterator[tuple[bool, Statement]]:
    """Poetry's dependencies and groups; with each whether it says where the package comes from."""
    tables = [("", poetry.table("dependencies")), ("dev", poetry.table("dev-dependencies"))]
    for name, group in poetry.table("group").entries.items():
        if isinstance(group, Table):
            tables.append((name, group.table("dependencies")))
    extras = poetry.table("extras")
    for group_name, table in tables:
        for name, value in table.entries.items():
            package = page.packages.distribution(name)
            if package is None:
                continue
            for item in value.items if isinstance(value, Items) else [value]:
                optional = isinstance(item, Table) and item.text("optional") == "true"
                extra = group_name or (_extra_of(extras, name) if optional else "")
                for statement in _poetry_item(page, package, item, extra):
                    yield isinstance(item, Table) and item.leaf("version") is None, statement


def _extra_of(extras: Table, name: str) -> str:
    """The extra that installs an optional dependency."""
    for extra, members in extras.entries.items():
        if any(re.match(re.escape(name) + r"(?![\w.-])", leaf.value, re.IGNORECASE) for leaf in trees.leaves(members)):
            return extra
    return "optional"


def _poetry_item(page: Page, package: str, item: Tree, extra: str) -> Iterator[Statement]:
    version = item if isinstance(item, Leaf) else item.leaf("version") if isinstance(item, Table) else None
    if version is not None:
        marker = item.text("markers") if isinstance(item, Table) else ""
        for meaning in of_poetry(version.value) if can_hold(marker)[0] else ():
            yield page.statement(package, meaning, version.place, Form.PROJECT, extra=extra, marker=marker)
    elif isinstance(item, Table):
        yield from _source(page, package, item, Form.PROJECT, extra)


def _pdm_overrides(page: Page, pdm: Table) -> Iterator[Statement]:
    for table in (pdm.table("resolution", "overrides"), pdm.table("overrides")):
        for name, value in table.entries.items():
            package = page.packages.distribution(name)
            if package is not None and isinstance(value, Leaf):
                meaning = exact(value.value) if _VERSION.fullmatch(value.value) else of_pip(value.value)
                if meaning is None:
                    meaning = of_address(value.value, page.packages)[1]
                yield page.statement(package, meaning, value.place, Form.PROJECT)


def _dynamic(page: Page, root: Table) -> Iterator[Include]:
    """Files from which a build backend takes the dependencies."""
    dynamic = root.table("tool", "setuptools", "dynamic")
    for leaf in trees.leaves(dynamic.at("dependencies", "file")):
        yield page.include(leaf.value, leaf.place, Form.REQUIREMENTS)
    for name in dynamic.table("optional-dependencies").entries:
        for leaf in trees.leaves(dynamic.at("optional-dependencies", name, "file")):
            yield page.include(leaf.value, leaf.place, Form.REQUIREMENTS, extra=name)
    for leaf in trees.leaves(root.at("tool", "hatch", "metadata", "hooks", "requirements_txt", "files")):
        yield page.include(leaf.value, leaf.place, Form.REQUIREMENTS)


# Pipfile and pixi


def read_pipfile(page: Page) -> Iterator[Statement]:
    """`Pipfile`: packages, dev-packages and further categories."""
    for category, section in trees.toml(page.content).entries.items():
        if not isinstance(section, Table) or category in ("requires", "scripts", "pipenv", "source"):
            continue
        extra = "" if category == "packages" else category.removesuffix("-packages")
        for name, value in section.entries.items():
            package = page.packages.distribution(name)
            if package is not None:
                yield from _specified(page, package, value, extra, of_pip)


def read_pixi(page: Page) -> Iterator[Statement]:
    """The dependencies in `pixi.toml`, those of its features, and PyPI's."""
    yield from _pixi(page, trees.toml(page.content))


def _pixi(page: Page, root: Table) -> Iterator[Statement]:
    places = [("", root)]
    places += [("", target) for target in _linux(root)]
    for name, feature in root.table("feature").entries.items():
        if isinstance(feature, Table):
            places += [(name, feature), *((name, target) for target in _linux(feature))]
    for extra, table in places:
        for name, value in table.table("dependencies").entries.items():
            package = page.packages.conda(name)
            if package is not None:
                yield from _specified(page, package, value, extra, _pixi_conda)
        for name, value in table.table("pypi-dependencies").entries.items():
            package = page.packages.distribution(name)
            if package is not None:
                yield from _specified(page, package, value, extra, of_pip)


def _linux(table: Table) -> list[Table]:
    targets = table.table("target").entries.items()
    return [target for name, target in targets if isinstance(target, Table) and name.startswith(("linux", "unix"))]


def _pixi_conda(text: str) -> Meaning | None:
    return next(iter(of_conda_version(text)), None)


def _specified(
    page: Page, package: str, value: Tree, extra: str, read: Callable[[str], Meaning | None]
) -> Iterator[Statement]:
    version = value if isinstance(value, Leaf) else value.leaf("version") if isinstance(value, Table) else None
    if version is not None:
        meaning = read(version.value)
        if meaning is not None:
            yield page.statement(package, meaning, version.place, Form.PROJECT, extra=extra)
    elif isinstance(value, Table):
        found = list(_source(page, package, value, Form.PROJECT, extra))
        yield from found or [page.statement(package, ANY, (value.start, value.end), Form.PROJECT, extra=extra)]


# setup.cfg


def read_setup_cfg(page: Page) -> Iterator[Statement | Include]:
    """`setup.cfg`: the requirements, those of the extras, and the version of the project itself."""
    name = ""
    version: Leaf | None = None
    for section, key, lines in trees.ini(page.content):
        if section == "metadata" and key == "name" and lines:
            name = lines[0].value
        elif section == "metadata" and key == "version" and lines:
            version = lines[0]
        elif section == "options" and key == "install_requires":
            yield from _cfg_lines(page, lines, "")
        elif section == "options.extras_require":
            yield from _cfg_lines(page, lines, key)
    package = page.packages.distribution(name) if name else None
    if package is not None and version is not None:
        kind, _, rest = version.value.partition(":")
        if kind == "file":
            yield page.include(rest.strip(), version.place, Form.VENDORED, package=package)
        elif kind == "attr":
            module = rest.strip().rpartition(".")[0].replace(".", "/")
            for file in (f"{module}/__init__.py", f"{module}.py", f"src/{module}/__init__.py"):
                yield page.include(file, version.place, Form.VENDORED, package=package)
        elif exact(version.value).kind is Kind.EXACT:
            yield page.statement(package, exact(version.value), version.place, Form.VENDORED)


def _cfg_lines(page: Page, lines: list[Leaf], extra: str) -> Iterator[Statement | Include]:
    for line in lines:
        if line.value.startswith("file:"):
            for name in line.value[len("file:") :].split(","):
                yield page.include(name.strip(), line.place, Form.REQUIREMENTS, extra=extra)
        else:
            for part in re.finditer(r"[^\n]+", line.value):
                yield from page.required(part[0], line.place, Form.PROJECT, extra=extra)
