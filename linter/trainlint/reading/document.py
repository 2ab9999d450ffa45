"""Text to documents: node trees in which each node has its place.

The events of libyaml are composed here and not by the library's own composer, which overflows the stack on deep
nesting, loses the place of an alias, and refuses a reused anchor that Go accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from itertools import islice
from typing import Protocol, TypeAlias, TypeVar, cast

from trainlint.budget import BUDGET, has_long_number
from trainlint.lazy import regex
from trainlint.reading.text import Text

_COLON_IN_FLOW = "found unexpected ':'"
"""What the C parser says of `{image: org/train:1}`, which PyYAML and Go's reader take."""
MAX_READ_AGAIN = 500_000
"""Characters up to which a file is read again by the parser in Python, which takes it too."""
_NUMBER = regex(r"[-+]?[0-9][0-9a-fA-FxX_:.+-]*")

T = TypeVar("T")
Node: TypeAlias = "Scalar | Sequence | Mapping | Alias"


class _Mark(Protocol):
    index: int


class _Event(Protocol):
    """The attributes of ruamel.yaml's events that are used; an event has those of its class."""

    start_mark: _Mark
    end_mark: _Mark
    anchor: str
    tag: str | None
    style: str | None
    value: str
    flow_style: bool | None


class _Parser(Protocol):
    def check_event(self) -> bool: ...

    def get_event(self) -> _Event: ...


class Scalar:
    """A scalar as written: its text, style (`''` plain, `'` `"` `|` `>`), explicit tag and place in characters."""

    __slots__ = ("anchor", "end", "start", "style", "tag", "value")

    def __init__(self, value: str, style: str, tag: str | None, start: int, end: int, anchor: str | None) -> None:
        self.value = value
        self.style = style
        self.tag = tag
        self.start = start
        self.end = end
        self.anchor = anchor

    @property
    def implicit_null(self) -> bool:
        """Nothing is written where a value is expected."""
        return self.start == self.end and self.style == ""


class Sequence:
    """A sequence of nodes; `weight` counts the values in it, `height` its levels, both with aliases written out."""

    __slots__ = ("anchor", "end", "flow", "height", "items", "start", "tag", "weight")

    def __init__(self, tag: str | None, start: int, flow: bool, anchor: str | None) -> None:
        self.items: list[Node] = []
        self.tag = tag
        self.start = start
        self.end = start
        self.flow = flow
        self.anchor = anchor
        self.weight = 1
        self.height = 1


class Mapping:
    """A mapping as written: pairs in order, with duplicate and merge keys."""

    __slots__ = ("anchor", "cache", "end", "flow", "height", "pairs", "start", "tag", "weight")

    def __init__(self, tag: str | None, start: int, flow: bool, anchor: str | None) -> None:
        self.pairs: list[tuple[Node, Node]] = []
        self.tag = tag
        self.start = start
        self.end = start
        self.flow = flow
        self.anchor = anchor
        self.weight = 1
        self.height = 1
        self.cache: dict[object, object] = {}


class Alias:
    """A `*name` with its own place; `target` is the node that the anchor names at this point of the file."""

    __slots__ = ("end", "name", "start", "target")

    def __init__(self, name: str, target: Scalar | Sequence | Mapping, start: int, end: int) -> None:
        self.name = name
        self.target = target
        self.start = start
        self.end = end


class Document:
    """One non-empty YAML document of a file; `index` counts them from 0."""

    __slots__ = ("_made", "index", "path", "reused_anchors", "root", "text")

    def __init__(self, path: str, text: Text, index: int, root: Node, reused_anchors: list[tuple[int, int]]) -> None:
        self.path = path
        self.text = text
        self.index = index
        self.root = root
        self.reused_anchors = reused_anchors
        self._made: dict[Hashable, object] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is made of the document, by key: the result of `make`, which is called once for each key."""
        if key not in self._made:
            self._made[key] = make()
        return cast("T", self._made[key])


class Unparsable(ValueError):
    """The YAML is broken or has an alias without an anchor, at the character `index`; `help`: what to do."""

    def __init__(self, message: str, index: int, document: int, help: str = "") -> None:
        super().__init__(message)
        self.index = index
        self.document = document
        self.help = help


class BeyondBudget(Unparsable):
    """The file has more of something than trainlint reads; a program may well read it."""

    def __init__(self, message: str, index: int, document: int, help: str = "split it") -> None:
        super().__init__(message, index, document, f"{help}, or exclude the file in the settings")


def target_of(node: Node) -> Scalar | Sequence | Mapping:
    """The node, or the target of an alias."""
    return node.target if isinstance(node, Alias) else node


def documents(path: str, text: Text) -> Iterator[Document]:
    """Compose the non-empty documents of a text, one after another.

    Raises Unparsable at the first broken document, after those before it.
    """
    composer = _Composer(path, text)
    try:
        yield from composer.documents()
    except Unparsable as error:
        if _COLON_IN_FLOW not in str(error) or len(text.content) > MAX_READ_AGAIN:
            raise
        yield from islice(_Composer(path, text, pure=True).documents(), composer.count, None)


def of_data(path: str, data: object) -> Document:
    """A document of plain data (dict, list, str, int, float, bool, None), which is in no file."""
    return Document(path, Text(""), 0, _node_of(data), [])


def of_text(path: str, text: Text) -> Document:
    """A whole text, such as a script, as a document of one scalar; other Scalar nodes may be placed in it."""
    return Document(path, text, 0, Scalar(text.content, "|", None, 0, len(text.content), None), [])


def _node_of(data: object) -> Node:
    if isinstance(data, dict):
        mapping = Mapping(None, 0, False, None)
        mapping.pairs = [(Scalar(str(key), '"', None, 0, 0, None), _node_of(value)) for key, value in data.items()]
        return mapping
    if isinstance(data, list):
        sequence = Sequence(None, 0, False, None)
        sequence.items = [_node_of(item) for item in data]
        return sequence
    if isinstance(data, str):
        return Scalar(data, '"', None, 0, 0, None)
    word = {None: "null", True: "true", False: "false"}.get(data) if data is None or isinstance(data, bool) else None
    return Scalar(word or str(data), "", None, 0, 0, None)


class _Composer:
    """Builds nodes from events in a loop, so that nesting needs no Python stack."""

    def __init__(self, path: str, text: Text, *, pure: bool = False) -> None:
        self.path = path
        self.text = text
        self.pure = pure
        self.count = 0
        self.has_long_values = False

    def documents(self) -> Iterator[Document]:
        from ruamel.yaml.events import (
            AliasEvent,
            DocumentEndEvent,
            MappingEndEvent,
            MappingStartEvent,
            ScalarEvent,
            SequenceEndEvent,
            SequenceStartEvent,
        )

        root: Node | None = None
        stack: list[tuple[Sequence | Mapping, list[Node]]] = []
        anchors: dict[str, Scalar | Sequence | Mapping] = {}
        reused: list[tuple[int, int]] = []
        last = values = 0
        for event in self._events():
            start: int = event.start_mark.index
            values += 1
            if values > BUDGET.values:
                raise BeyondBudget(f"it has more than {BUDGET.values:,} values", start, self.count)
            end: int = event.end_mark.index
            node: Node
            if isinstance(event, ScalarEvent):
                node = self._scalar(event, start, end)
            elif isinstance(event, AliasEvent):
                target = anchors.get(event.anchor)
                if target is None:
                    message = f"alias *{event.anchor} has no anchor before it"
                    raise Unparsable(
                        message, start, self.count, f"define &{event.anchor} before it, or write the value"
                    )
                if any(target is container for container, _ in stack):
                    message = f"alias *{event.anchor} is inside its own anchor"
                    raise Unparsable(message, start, self.count, "write the value instead of the alias")
                node = Alias(event.anchor, target, start, end)
            elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
                self._deepen(len(stack) + 1, start)
                make = Mapping if isinstance(event, MappingStartEvent) else Sequence
                container = make(event.tag, self._skip_properties(event, start), bool(event.flow_style), event.anchor)
                self._name(event.anchor, container, anchors, reused, start)
                stack.append((container, []))
                continue
            elif isinstance(event, (MappingEndEvent, SequenceEndEvent)):
                container, children = stack.pop()
                container.end = end if container.flow else max(last, container.start)
                self._weigh(container, children, len(stack))
                if isinstance(container, Mapping):
                    container.pairs = list(zip(children[::2], children[1::2], strict=True))
                    if self.has_long_values:
                        self._measure_keys(children[::2])
                else:
                    container.items = children
                node = container
            else:
                if isinstance(event, DocumentEndEvent):
                    if root is not None and not (isinstance(root, Scalar) and root.implicit_null):
                        yield Document(self.path, self.text, self.count, root, reused)
                        self.count += 1
                    root, anchors, reused = None, {}, []
                continue
            last = max(last, node.end)
            if isinstance(node, Scalar):
                self._name(node.anchor, node, anchors, reused, start)
            if stack:
                stack[-1][1].append(node)
            else:
                root = node

    def _weigh(self, container: Sequence | Mapping, children: list[Node], depth: int) -> None:
        for child in children:
            target = target_of(child)
            if isinstance(target, Scalar):
                container.weight += 1
                continue
            container.weight += target.weight
            container.height = max(container.height, target.height + 1)
            if isinstance(child, Alias):
                self._deepen(depth + container.height, child.start)
            if container.weight > BUDGET.expanded:
                message = f"a document has more than {BUDGET.expanded:,} values, with its aliases written out"
                raise BeyondBudget(message, child.start, self.count, "use fewer aliases")

    def _deepen(self, depth: int, index: int) -> None:
        if depth > BUDGET.depth:
            raise BeyondBudget(
                f"it is nested more than {BUDGET.depth} levels deep", index, self.count, "nest less deeply"
            )

    def _events(self) -> Iterator[_Event]:
        from ruamel.yaml.error import MarkedYAMLError
        from ruamel.yaml.reader import ReaderError

        parser = _pure_parser(self.text.content) if self.pure else _parser(self.text.content)
        try:
            while parser.check_event():
                yield parser.get_event()
        except MarkedYAMLError as error:
            # ruamel.yaml's own parser has one error without a problem: a block scalar that begins with uneven blanks.
            raise self._unparsable(
                error.problem or error.context, (error.problem_mark or error.context_mark).index
            ) from None
        except ReaderError as error:
            raise self._unparsable(error.reason, error.position) from None

    def _unparsable(self, reason: str, index: int) -> Unparsable:
        return Unparsable(" ".join(reason.split()), min(index, len(self.text.content)), self.count)

    def _scalar(self, event: _Event, start: int, end: int) -> Scalar:
        if len(event.value) > BUDGET.digits:
            self.has_long_values = True
            self._measure(event, start)
        content = self.text.content
        style = event.style if event.style in ("'", '"', "|", ">") else ""
        content_start = self._skip_properties(event, start)
        start = content_start if content_start <= end else start
        if style in ("|", ">"):
            end = max(start + 1, start + len(content[start:end].rstrip()))
        elif style == "" and not event.value:
            end = start
        return Scalar(event.value, style, event.tag, start, end, event.anchor)

    def _measure(self, event: _Event, start: int) -> None:
        """A long scalar is within the budget, as a number and as a text."""
        if len(event.value) > BUDGET.scalar:
            raise BeyondBudget(f"a value has more than {BUDGET.scalar:,} characters", start, self.count)
        plain = not event.style and _NUMBER.fullmatch(event.value)
        if plain or has_long_number(event.value):
            raise BeyondBudget(f"a number has more than {BUDGET.digits:,} digits", start, self.count)

    def _measure_keys(self, keys: list[Node]) -> None:
        for key in keys:
            target = target_of(key)
            if isinstance(target, Scalar) and len(target.value) > BUDGET.key:
                raise BeyondBudget(f"a key has more than {BUDGET.key:,} characters", key.start, self.count)

    def _skip_properties(self, event: _Event, start: int) -> int:
        """The start of a node's content, behind its anchor and tag, where its event begins."""
        if event.anchor is None and event.tag is None:
            return start
        content, index = self.text.content, start
        while index < len(content) and content[index] in "&!":
            while index < len(content) and not content[index].isspace() and content[index] not in ",]}":
                index += 1
            while index < len(content) and content[index].isspace():
                index += 1
        return index

    @staticmethod
    def _name(
        anchor: str | None,
        node: Scalar | Sequence | Mapping,
        anchors: dict[str, Scalar | Sequence | Mapping],
        reused: list[tuple[int, int]],
        start: int,
    ) -> None:
        if anchor is not None:
            if anchor in anchors:
                reused.append((start, start + len(anchor) + 1))
            anchors[anchor] = node


def _parser(content: str) -> _Parser:
    try:
        from _ruamel_yaml import CParser  # type: ignore[import-not-found]
    except ImportError:
        return _pure_parser(content)
    parser: _Parser = CParser(content)
    return parser


def _pure_parser(content: str) -> _Parser:
    from ruamel.yaml import YAML

    parser: _Parser = YAML(typ="safe", pure=True).get_constructor_parser(content)[1]
    return parser
