"""What YAML files state: conda environments, lists of packages, commands, images, charts, kustomizations and CRDs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from trainlint.reading.document import Document, Mapping, Node, Scalar, Sequence, Unparsable, documents
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field
from trainlint.records import NamedTuple
from trainlint.repository.shell import ShellText, exec_word
from trainlint.repository.statements import kubeflow, kubernetes
from trainlint.repository.statements.commands import Script
from trainlint.repository.statements.model import Form, Include, Kind, Meaning, Statement
from trainlint.repository.statements.origins import images_in, of_image
from trainlint.repository.statements.page import Broken, Page
from trainlint.repository.statements.requirements import of_line
from trainlint.repository.statements.specifiers import ANY, exact, of_conda, of_poetry

Found: TypeAlias = "Statement | Include"

MAX_LENGTH = 3_000_000
"""Longer ones are data, and state nothing."""
_LISTS = frozenset(
    "pip packages pip_packages python_packages py_packages requirements pip_requirements python_requirements"
    " dependencies pip_dependencies python_dependencies packages_to_install extra_pip_packages libraries".split()
)
_VARIABLES = frozenset("env envs environment variables vars args".split())
_FILES = frozenset("requirements python_requirements pip_requirements requirements_file requirements_txt".split())
_PROSE = frozenset("description help message title name summary comment note notes documentation".split())
_MAX_SCALAR = 200_000
_EXEC = frozenset("command args entrypoint arguments".split())


def read(page: Page) -> Iterator[Found]:
    """Everything that a YAML file of any kind states."""
    if len(page.content) > MAX_LENGTH:
        return
    try:
        for document in documents(page.path, page.text):
            yield from _Reader(page, document).read()
    except Unparsable as error:
        raise Broken(str(error), error.index) from None


class _Place(NamedTuple):
    """A node with the key and the mapping under which it stands, perhaps as an item of a list."""

    key: str
    node: Node
    parent: Mapping | None
    is_item: bool = False


class _Reader:
    def __init__(self, page: Page, document: Document) -> None:
        self.page = page
        self.document = document
        self.script = Script(page, Form.COMMAND)

    def read(self) -> Iterator[Found]:
        root = self.document.root
        places = list(_walk(root))
        self._gather(places)
        for place in places:
            if isinstance(place.node, Scalar):
                yield from self._scalar(place, place.node)
            elif isinstance(place.node, Sequence):
                yield from self._sequence(place, place.node)
            elif isinstance(place.node, Mapping):
                yield from self._mapping(place.node)
        if isinstance(root, Mapping) and kubeflow.NAME in self.page.packages:
            yield from self._crd(root)
        yield from self.script.found

    def _gather(self, places: list[_Place]) -> None:
        """Variables that have one value in the whole document."""
        values: dict[str, set[str]] = {}
        for place in places:
            if isinstance(place.node, Mapping) and place.key in _VARIABLES:
                for key, value in place.node.pairs:
                    if isinstance(key, Scalar) and isinstance(value, Scalar):
                        values.setdefault(key.value, set()).add(value.value)
        for name, known in values.items():
            text = known.pop()
            if not known and not re.search(r"[$`{]", text):
                self.script.variables[name] = text

    # scalars

    def _scalar(self, place: _Place, node: Scalar) -> Iterator[Found]:
        text = node.value
        if place.key in _FILES and text.endswith(".txt") and not place.is_item:
            yield self.page.include(text, (node.start, node.end), Form.REQUIREMENTS)
        if place.key in _PROSE or len(text) > _MAX_SCALAR or not self.script.concerns(text):
            return
        if re.search(r"\s", text.strip()):
            shell = ShellText.of(Field(self.document, Dialect.PYYAML, node))
            if shell is not None:
                self.script.folder = ""
                self.script.read(shell)
        elif place.key not in _EXEC or not place.is_item:
            yield from self._word(place, node)

    def _word(self, place: _Place, node: Scalar) -> Iterator[Found]:
        """A single word: an image, or a reference to the Trainer's manifests."""
        if _sibling(place.parent, "newTag") or _sibling(place.parent, "tag"):
            return
        untagged = place.key.lower().endswith("image")
        for package, meaning, _, _ in images_in(node.value, self.page.packages, untagged=untagged):
            yield self._state(package, meaning, node, Form.IMAGE)
        if kubeflow.NAME in self.page.packages:
            for meaning, _, _ in kubeflow.references_in(node.value):
                yield self._state(kubeflow.NAME, meaning, node, Form.MANIFEST)

    # lists

    def _sequence(self, place: _Place, node: Sequence) -> Iterator[Found]:
        scalars = [item for item in node.items if isinstance(item, Scalar)]
        if place.key in _EXEC:
            if scalars and not any(re.search(r"\s", item.value.strip()) for item in scalars):
                words = [exec_word(Field(self.document, Dialect.PYYAML, item)) for item in scalars]
                self.script.folder = ""
                self.script.command([word for word in words if word is not None])
        elif place.key == "dependencies" and self._is_environment(place):
            yield from self._environment(node)
        elif place.key in _LISTS:
            for item in scalars:
                yield from of_line(self.page, item.value.strip(), 0, Form.ENVIRONMENT, whole=(item.start, item.end))

    def _is_environment(self, place: _Place) -> bool:
        """A list of dependencies is conda's: beside channels, with a `pip:` part, or in a file of that name."""
        node = place.node
        items = node.items if isinstance(node, Sequence) else []
        return (
            _sibling(place.parent, "channels") is not None
            or any(isinstance(item, Mapping) and _value(item, "pip") is not None for item in items)
            or re.match(r"(?:conda|env|environment)", self.page.name) is not None
        )

    def _environment(self, node: Sequence) -> Iterator[Found]:
        for item in node.items:
            if isinstance(item, Scalar):
                conda = of_conda(item.value)
                package = self.page.packages.conda(conda[0]) if conda else None
                if conda and package:
                    for meaning in conda[1]:
                        yield self._state(package, meaning, item, Form.ENVIRONMENT)

    # mappings

    def _mapping(self, node: Mapping) -> Iterator[Found]:
        name = _value(node, "newName") or _value(node, "repository") or _value(node, "name")
        tag = _value(node, "newTag") or _value(node, "tag")
        if name is not None and tag is not None:
            registry = _value(node, "registry")
            image = f"{registry.value}/{name.value}" if registry else name.value
            found = of_image(image, tag.value, self.page.packages)
            if found is not None:
                yield self._state(*found, tag, Form.IMAGE)
        if kubeflow.NAME in self.page.packages:
            yield from self._chart(node)
        servers = _value(node, "kubeVersion")
        if servers is not None and kubernetes.NAME in self.page.packages:
            meaning = kubernetes.of_chart(servers.value)
            if meaning is not None:
                yield self._state(kubernetes.NAME, meaning, servers, Form.MANIFEST)

    def _chart(self, node: Mapping) -> Iterator[Found]:
        """A Helm dependency, the chart itself, and what Argo CD, Flux and helmfile deploy."""
        name = _value(node, "chart") or _value(node, "name")
        url = _value(node, "repoURL") or _value(node, "repository") or _value(node, "repo")
        version = _value(node, "version") or _value(node, "targetRevision")
        if version is None:
            return
        is_chart = name is not None and name.value.rpartition("/")[2] == kubeflow.CHART
        is_source = url is not None and re.search(r"github\.com[:/]kubeflow/trainer(?:\.git)?$", url.value) is not None
        if is_chart and (_value(node, "apiVersion") or url or _value(node, "chart") or _value(node, "sourceRef")):
            ranged = re.search(r"[<>=~^*x|]", version.value)
            meaning = _of_chart(version.value) if ranged else exact(version.value)
            yield self._state(kubeflow.NAME, meaning, version, Form.MANIFEST)
        elif is_source:
            found = kubeflow.of_tag(version.value)
            if found is not None:
                yield self._state(kubeflow.NAME, found, version, Form.MANIFEST)

    def _crd(self, root: Mapping) -> Iterator[Found]:
        """The Trainer's own CRDs: a release in their labels, else the fields that only some releases have.

        Source: the CRDs of Kubeflow Trainer 2.0 to 2.3.
        """
        kind, metadata = _value(root, "kind"), _child(root, "metadata")
        name = _value(metadata, "name") if isinstance(metadata, Mapping) else None
        if kind is None or kind.value != "CustomResourceDefinition" or name is None:
            return
        if not name.value.endswith(".trainer.kubeflow.org"):
            return
        for part in ("labels", "annotations"):
            entries = _child(metadata, part)
            for key in ("app.kubernetes.io/version", "helm.sh/chart"):
                label = _value(entries, key) if isinstance(entries, Mapping) else None
                version = re.fullmatch(r"(?:kubeflow-trainer-)?v?(\d+\.\d+\.\d[\w.-]*)", label.value) if label else None
                if label is not None and version is not None:
                    yield self._state(kubeflow.NAME, exact(version[1]), label, Form.MANIFEST)
                    return
        for found in _walk(root):
            for name_node, value in (
                found.node.pairs if isinstance(found.node, Mapping) and found.key == "properties" else ()
            ):
                if not isinstance(name_node, Scalar):
                    continue
                shape = _SHAPES.get(name_node.value, "")
                processes = _child(_child(value, "properties"), "numProcPerNode")
                if name_node.value == "torch" and processes is not None:
                    either = _value(processes, "x-kubernetes-int-or-string") is not None
                    shape = "<2.2" if either else ">=2.2"
                if shape:
                    yield self._state(kubeflow.NAME, Meaning(Kind.RANGE, shape), name_node, Form.MANIFEST)
                    return

    def _state(self, package: str, meaning: Meaning, node: Scalar, form: Form) -> Statement:
        return self.page.statement(package, meaning, (node.start, node.end), form)


_SHAPES = {"podSpecOverrides": "==2.0.*", "podTemplateOverrides": "==2.1.*", "runtimePatches": ">=2.2"}


def _of_chart(text: str) -> Meaning:
    """A range of Helm's, which spells it as Poetry does but for `2.1.x`."""
    found = of_poetry(re.sub(r"\.x\b", ".*", text))
    return found[0] if len(found) == 1 else ANY


def _walk(root: Node | None) -> Iterator[_Place]:
    """Every node, each once where it is written, in the order of the file."""
    stack: list[_Place] = [_Place("", root, None)] if root is not None else []
    while stack:
        place = stack.pop()
        yield place
        node = place.node
        if isinstance(node, Mapping):
            below = [_Place(key.value if isinstance(key, Scalar) else "", value, node) for key, value in node.pairs]
            stack.extend(reversed(below))
        elif isinstance(node, Sequence):
            stack.extend(reversed([_Place(place.key, item, place.parent, True) for item in node.items]))


def _child(node: Node | None, key: str) -> Node | None:
    if not isinstance(node, Mapping):
        return None
    written = node.cache.get("written")
    if not isinstance(written, dict):
        pairs = reversed(node.pairs)
        written = node.cache["written"] = {name.value: value for name, value in pairs if isinstance(name, Scalar)}
    found: Node | None = written.get(key)
    return found


def _value(node: Node | None, key: str) -> Scalar | None:
    found = _child(node, key)
    return found if isinstance(found, Scalar) else None


def _sibling(parent: Mapping | None, key: str) -> Node | None:
    return _child(parent, key)
