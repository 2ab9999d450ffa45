"""Fields and values: a place in a document, and what a program reads there.

A `Value` is Known, Absent, WrongType or Unknown, and has its place. Any test on a value that is not Known is false: a
rule that forgets the other three reports nothing instead of something wrong.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from trainlint.findings import Finding, Related, Span
from trainlint.lazy import regex
from trainlint.reading.document import Alias, Document, Mapping, Node, Scalar, Sequence, target_of
from trainlint.reading.scalars import Dialect, Plain, value_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from trainlint.findings import Details

T = TypeVar("T")
U = TypeVar("U")

Key = str | int
Path = tuple[Key, ...]


class UnknownContent(enum.Enum):
    """Stands in plain data for what is not in the file; a value with a place is `Unknown` instead."""

    UNKNOWN = enum.auto()


UNKNOWN = UnknownContent.UNKNOWN

_TEMPLATE = regex(r"\$\{|\{\{|\{%|<<[^<>]+>>|<[A-Za-z][A-Za-z0-9_ .-]*>")
_PLACEHOLDER = regex(
    r"\$[A-Za-z_]\w*|__[A-Z][A-Z0-9_]*__|@@?[A-Z][A-Z0-9_]*@@?|%\(\w+\)s|\{[A-Za-z_]\w*\}|\(\([\w./-]+\)\)"
)
_FIRST_OF_PLACEHOLDERS = frozenset("$_@%{(")
_PLAIN_KEY = regex(r"[A-Za-z_$][\w$-]*")


def is_template(text: str) -> bool:
    """The text is a template: it has `${…}`, `{{…}}`, `{%…%}`, `<<…>>` or a `<PLACEHOLDER>`, or is one as a whole.

    As a whole: envsubst's `$NAME`, Python's `{name}` and `%(name)s`, Concourse's `((name))`, `__NAME__` and `@NAME@`.
    """
    if text[:1] in _FIRST_OF_PLACEHOLDERS and _PLACEHOLDER.fullmatch(text):
        return True
    return ("{" in text or "<" in text) and _TEMPLATE.search(text) is not None


def spelled(path: Path) -> str:
    """A path as text: `spec.trainer.env[2].name`; a key that is not a plain word is in brackets."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _PLAIN_KEY.fullmatch(step):
            parts.append(f".{step}" if parts else step)
        else:
            parts.append(f"[{step}]")
    return "".join(parts)


class Entry:
    """One key of a mapping as its reader sees it: the last of duplicates, also from a merge.

    `use` is the alias or merge that brought the pair, None for a pair of the mapping itself. `duplicates` are the
    earlier equal keys of the same mapping.
    """

    __slots__ = ("duplicates", "key", "name", "use", "value")

    def __init__(self, name: str, key: Node, value: Node, use: Node | None, duplicates: list[Node]) -> None:
        self.name = name
        self.key = key
        self.value = value
        self.use = use
        self.duplicates = duplicates


def entries_of(mapping: Mapping, dialect: Dialect) -> dict[str, Entry]:
    """The keys of a mapping in its dialect, in the order in which they are first written.

    In Go a merge overrides the keys before it; in PyYAML and OmegaConf the mapping's own keys always win.
    """
    cached = mapping.cache.get(dialect)
    if isinstance(cached, dict):
        return cached
    entries: dict[str, Entry] = {}
    own: set[str] = set()
    for key, value in mapping.pairs:
        if _is_merge(key):
            for entry in _merged(value, dialect):
                if dialect is Dialect.KUBERNETES or entry.name not in own:
                    entries[entry.name] = Entry(entry.name, entry.key, entry.value, value, [])
            continue
        name = _key_name(key, dialect)
        before = entries.get(name) if name in own else None
        duplicates: list[Node] = []
        if before is not None and _is_one_key(before.key, key, dialect):
            duplicates = before.duplicates
            duplicates.append(before.key)
        own.add(name)
        entries[name] = Entry(name, key, value, None, duplicates)
    mapping.cache[dialect] = entries
    return entries


def _is_one_key(one: Node, other: Node, dialect: Dialect) -> bool:
    """The reader takes two keys of one name for the same: never collections, nor a number and a text in Python.

    OmegaConf keeps the last of two equal numbers without a word, as PyYAML does; it refuses equal texts alone.
    """
    values = [value_of(key, dialect) for key in (target_of(one), target_of(other)) if isinstance(key, Scalar)]
    texts = [isinstance(value, str) for value in values]
    if dialect is Dialect.KUBERNETES:
        return len(values) == 2
    return texts == [True, True] or (texts == [False, False] and dialect is Dialect.PYYAML)


def _is_merge(key: Node) -> bool:
    return isinstance(key, Scalar) and key.value == "<<" and not key.style and key.tag is None


def _merged(value: Node, dialect: Dialect) -> Iterator[Entry]:
    target = target_of(value)
    if isinstance(target, Mapping):
        yield from entries_of(target, dialect).values()
    elif isinstance(target, Sequence):
        for item in reversed(target.items):
            source = target_of(item)
            if isinstance(source, Mapping):
                yield from entries_of(source, dialect).values()


def _key_name(key: Node, dialect: Dialect) -> str:
    target = target_of(key)
    if not isinstance(target, Scalar):
        return "{}"
    value = value_of(target, dialect)
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return str(value)


class Unread(enum.Enum):
    """Stands for what a field has not read yet."""

    UNREAD = enum.auto()


class Field:
    """A place in a document, with the node there if there is one; what it has read, and what is below, it keeps.

    `path` is the true path from the document's root; where it is None, that of the parent and one `step`. `origin` is
    the number of steps to the subject, so that fields of an item of a `kind: List` are spelled as the program does.
    `target` is the node here, or the target of an alias.
    """

    __slots__ = (
        "_children",
        "_items",
        "_open",
        "_path",
        "_plain",
        "_step",
        "_unknown",
        "dialect",
        "document",
        "entry",
        "node",
        "origin",
        "parent",
        "target",
        "use",
    )

    def __init__(
        self,
        document: Document,
        dialect: Dialect,
        node: Node | None,
        path: Path | None = (),
        *,
        step: Key = "",
        entry: Entry | None = None,
        parent: Field | None = None,
        origin: int = 0,
        use: Node | None = None,
    ) -> None:
        self.document = document
        self.dialect = dialect
        self.node = node
        self._path = path
        self._step = step
        self.entry = entry
        self.parent = parent
        self.origin = origin
        self.use = use
        self.target: Scalar | Sequence | Mapping | None = node.target if isinstance(node, Alias) else node
        self._children: dict[str, Field] | None = None
        self._items: list[Field] | None = None
        self._plain: Plain | Unread = Unread.UNREAD
        self._unknown: bool | None = None
        self._open = False

    @classmethod
    def root(cls, document: Document, dialect: Dialect) -> Field:
        """The whole document."""
        return document.once(dialect, lambda: cls(document, dialect, document.root))

    def as_subject(self) -> Field:
        """This field as the root of a subject: paths of fields below it begin here."""
        if self.origin == len(self.path):
            return self
        return Field(
            self.document,
            self.dialect,
            self.node,
            self.path,
            entry=self.entry,
            parent=self.parent,
            origin=len(self.path),
            use=self.use,
        )

    def left_open(self) -> Field:
        """This mapping, where a key that is not written may be given elsewhere: its value is not known."""
        copy = Field(
            self.document, self.dialect, self.node, self.path, entry=self.entry, parent=self.parent, origin=self.origin
        )
        copy.use, copy._open = self.use, True
        return copy

    def given_elsewhere(self) -> Field:
        """This place with nothing written, and a value all the same, which is not known."""
        given = Field(self.document, self.dialect, None, self.path, parent=self.parent, origin=self.origin)
        given._unknown = True
        return given

    # what is here

    @property
    def path(self) -> Path:
        """The true path from the document's root."""
        if self._path is None:
            above = self.parent.path if self.parent is not None else ()
            self._path = (*above, self._step)
        return self._path

    @property
    def name(self) -> str:
        """The key of this field, or its index as text."""
        if self._path is None:
            return str(self._step)
        return str(self._path[-1]) if self._path else ""

    @property
    def plain(self) -> Plain:
        """The scalar here in its dialect; None also where there is no scalar."""
        if isinstance(self._plain, Unread):
            target = self.target
            self._plain = value_of(target, self.dialect) if isinstance(target, Scalar) else None
        return self._plain

    @property
    def is_null(self) -> bool:
        """A null is written here, or a key without a value."""
        return isinstance(self.target, Scalar) and self.plain is None

    @property
    def is_absent(self) -> bool:
        """Nothing is written here, or a null."""
        return not self._unknown if self.node is None else self.is_null

    @property
    def is_mapping(self) -> bool:
        """A mapping is here."""
        return isinstance(self.target, Mapping) and not self.is_unknown

    @property
    def is_sequence(self) -> bool:
        """A sequence is here."""
        return isinstance(self.target, Sequence)

    @property
    def is_quoted(self) -> bool:
        """A text in quotes is here."""
        return isinstance(self.target, Scalar) and self.target.style in ("'", '"')

    @property
    def is_unknown(self) -> bool:
        """A template is here, or the value is given elsewhere: it is not in the file."""
        if self._unknown is None:
            self._unknown = _is_template_node(self.target)
        return self._unknown

    @property
    def written(self) -> str:
        """The scalar as written, for a message; empty where there is none."""
        target = self.target
        return target.value if isinstance(target, Scalar) else ""

    # going down

    def get(self, key: str) -> Field:
        """The field of a key; an absent one, with this field as its parent, where there is none."""
        children = self._children
        if children is None:
            children = self._children = {}
        child = children.get(key)
        if child is None:
            target = self.target
            entry = entries_of(target, self.dialect).get(key) if isinstance(target, Mapping) else None
            child = children[key] = self._child(key, entry)
            if self._open and entry is None:
                child._unknown = True
        return child

    def at(self, *keys: str) -> Field:
        """The field of several keys, one below the other."""
        field = self
        for key in keys:
            field = field.get(key)
        return field

    def entries(self) -> Iterator[Field]:
        """The fields of a mapping, in written order; none where there is no mapping."""
        target = self.target
        if isinstance(target, Mapping) and not self.is_unknown:
            for name in entries_of(target, self.dialect):
                yield self.get(name)

    def merges(self) -> list[Field]:
        """The merge keys (`<<`) of a mapping, as fields of that name; the merged keys are among the entries."""
        target = self.target
        pairs = target.pairs if isinstance(target, Mapping) else []
        return [
            Field(self.document, self.dialect, value, (*self.path, "<<"), parent=self, origin=self.origin)
            for key, value in pairs
            if _is_merge(key)
        ]

    def items(self) -> list[Field]:
        """The fields of a sequence's items; empty where there is no sequence."""
        if self._items is None:
            target, use = self.target, self._inner_use()
            self._items = [
                Field(self.document, self.dialect, item, None, step=index, parent=self, origin=self.origin, use=use)
                for index, item in enumerate(target.items if isinstance(target, Sequence) else ())
            ]
        return self._items

    def _child(self, key: str, entry: Entry | None) -> Field:
        return Field(
            self.document,
            self.dialect,
            entry.value if entry else None,
            None,
            step=key,
            entry=entry,
            parent=self,
            origin=self.origin,
            use=self._inner_use() or (entry.use if entry else None),
        )

    def _inner_use(self) -> Node | None:
        return self.use or (self.node if isinstance(self.node, Alias) else None)

    # reading

    def text(self) -> Value[str]:
        """The text here; a number or boolean is WrongType."""
        return self._read(_as_text)

    def integer(self) -> Value[int]:
        """The integer here; a float without a fraction counts, as in JSON."""
        return self._read(_as_integer)

    def number(self) -> Value[float]:
        """The number here."""
        return self._read(_as_number)

    def boolean(self) -> Value[bool]:
        """The boolean here."""
        return self._read(_as_boolean)

    def scalar(self) -> Value[Plain]:
        """The scalar here, of any type."""
        if not self.is_absent and not self.is_unknown and isinstance(self.target, Scalar):
            return Known(self, self.plain)
        return self._read(lambda _: None)

    def texts(self) -> Value[list[Value[str]]]:
        """The sequence of texts here, each with its own place."""
        if self.is_absent:
            return Absent(self)
        if self.is_unknown:
            return Unknown(self)
        if not self.is_sequence:
            return WrongType(self)
        return Known(self, [item.text() for item in self.items()])

    def _read(self, convert: Callable[[Plain], T | None]) -> Value[T]:
        target = self.target
        if target is None:
            return Unknown(self) if self._unknown else Absent(self)
        plain = self.plain
        if plain is None and isinstance(target, Scalar):
            return Absent(self)
        if self.is_unknown:
            return Unknown(self)
        converted = None if plain is None else convert(plain)
        return WrongType(self) if converted is None else Known(self, converted)

    # places and findings

    @property
    def yaml_path(self) -> str:
        """The path in the document: `spec.trainer.env[2].name`."""
        return spelled(self.path)

    @property
    def field_path(self) -> str:
        """The path from the subject on, as the program spells it."""
        return spelled(self.path[self.origin :])

    @property
    def span(self) -> Span:
        """The smallest place: the value (for a block its key), else the key, else the nearest parent's key."""
        node = self.node
        if node is None:
            return self.parent.key_span if self.parent is not None else self.key_span
        if self.use is not None:
            return self._span_of(self.use)
        if (isinstance(node, Scalar) and node.implicit_null) or _is_block(node):
            return self.key_span
        return self._span_of(node)

    @property
    def key_span(self) -> Span:
        """The place of the key; for an item its first key, else its content."""
        if self.use is not None:
            return self._span_of(self.use)
        if self.entry is not None:
            return self._span_of(self.entry.key)
        target = self.target
        if isinstance(self.node, Alias):
            return self._span_of(self.node)
        if isinstance(target, Mapping) and target.pairs:
            return self._span_of(target.pairs[0][0])
        if self.node is not None:
            return self._span_of(self.node)
        return self.parent.key_span if self.parent is not None else self._span_of(self.document.root)

    @property
    def related(self) -> tuple[Related, ...]:
        """The place where an aliased or merged value is written."""
        if self.use is not None and self.node is not None:
            empty = isinstance(self.node, Scalar) and self.node.implicit_null
            real = self.entry.key if empty and self.entry else self.node
            return (Related(self._span_of(target_of(real)), "the value is here"),)
        if isinstance(self.node, Alias):
            return (Related(self._span_of(self.node.target), f"&{self.node.name} is defined here"),)
        return ()

    @property
    def earlier_keys(self) -> tuple[Related, ...]:
        """The places of earlier equal keys in the same mapping, which this one replaces."""
        earlier = self.entry.duplicates if self.entry else []
        return tuple(Related(self._span_of(target_of(key)), "the same key is here") for key in earlier)

    def _span_of(self, node: Node) -> Span:
        text = self.document.text
        line, column = text.position(node.start)
        if _is_block(node):
            first = _first_leaf(node)
            line, column = text.position(first.start)
            end_line, end_column = text.position(first.end)
        else:
            end_line, end_column = text.position(node.end)
        return Span(self.document.path, line, column, end_line, end_column)

    def finding(self, message: str, **details: Unpack[Details]) -> Finding:
        """A finding at this place; the details are those of `Details`."""
        field = details.get("field")
        return Finding(
            message=message,
            span=self.key_span if details.get("at_key") else self.span,
            document=self.document.index,
            field=self.field_path if field is None else field,
            yaml_path=self.yaml_path,
            help=details.get("help", ""),
            severity=details.get("severity"),
            stage=details.get("stage"),
            within=details.get("within") or "",
            program=details.get("program", ""),
            related=self.related + details.get("related", ()),
            fix=details.get("fix"),
        )

    def relate(self, message: str) -> tuple[Related, ...]:
        """This place as a related place of another finding; empty for a definition that is in no file."""
        if not self.document.text.content:
            return ()
        return (Related(self.span, message),)

    @property
    def as_other_half(self) -> tuple[Related, ...]:
        """This place as the other half of a contradiction; empty where nothing is written."""
        return () if self.node is None else self.relate(f"{self.name} is here")


def _is_block(node: Node) -> bool:
    return isinstance(node, (Mapping, Sequence)) and not node.flow


def _first_leaf(node: Node) -> Node:
    """The first key or item of a block, which stands for the block in a finding."""
    while True:
        if isinstance(node, Mapping) and not node.flow and node.pairs:
            node = node.pairs[0][0]
        elif isinstance(node, Sequence) and not node.flow and node.items:
            node = node.items[0]
        else:
            return node


def _is_template_node(node: Node | None) -> bool:
    if isinstance(node, Scalar):
        return is_template(node.value)
    if isinstance(node, Mapping) and node.flow and len(node.pairs) == 1:
        inner, value = map(target_of, node.pairs[0])
        # `{{name}}` and, of Python, `{name}`: no value is written.
        named = isinstance(inner, Scalar) and is_template(f"{{{inner.value}}}")
        return (isinstance(inner, Mapping) and inner.flow) or (
            named and isinstance(value, Scalar) and value.implicit_null
        )
    return False


def _as_text(plain: Plain) -> str | None:
    return plain if isinstance(plain, str) else None


def _as_boolean(plain: Plain) -> bool | None:
    return plain if isinstance(plain, bool) else None


def _as_integer(plain: Plain) -> int | None:
    if isinstance(plain, bool):
        return None
    if isinstance(plain, int):
        return plain
    if isinstance(plain, float) and plain.is_integer():
        return int(plain)
    return None


def _as_number(plain: Plain) -> float | None:
    if isinstance(plain, bool) or not isinstance(plain, (int, float)):
        return None
    try:
        return float(plain)
    except OverflowError:
        return math.inf if plain > 0 else -math.inf


class Value(Generic[T]):
    """What a program reads in a field. Every test is false unless the value is Known."""

    __slots__ = ("field",)

    def __init__(self, field: Field) -> None:
        self.field = field

    @property
    def known(self) -> T | None:
        """The value if it is Known, else None."""
        return None

    @property
    def absent(self) -> bool:
        """Nothing is written, or null."""
        return isinstance(self, Absent)

    @property
    def given(self) -> bool:
        """Something other than null is written, known or not."""
        return not isinstance(self, Absent)

    @property
    def wrong_type(self) -> bool:
        """Something of a type that the program refuses is written."""
        return isinstance(self, WrongType)

    @property
    def unknown(self) -> bool:
        """A template is written: the value is not in the file."""
        return isinstance(self, Unknown)

    def is_(self, *wanted: T) -> bool:
        """Known and one of these."""
        return self.known_and(lambda value: value in wanted)

    def known_and_not_in(self, allowed: Collection[T]) -> bool:
        """Known and none of these."""
        return self.known_and(lambda value: value not in allowed)

    def known_and(self, test: Callable[[T], bool]) -> bool:
        """Known and the test holds."""
        return False

    def above(self: Value[int], bound: int) -> bool:
        """Known and greater than the bound."""
        return self.known_and(lambda value: value > bound)

    def below(self: Value[int], bound: int) -> bool:
        """Known and less than the bound."""
        return self.known_and(lambda value: value < bound)

    def map(self, convert: Callable[[T], U]) -> Value[U]:
        """The converted value if it is Known, else the same state."""
        if isinstance(self, Unknown):
            return Unknown(self.field)
        if isinstance(self, WrongType):
            return WrongType(self.field)
        return Absent(self.field)

    def or_when_absent(self, other: Value[T] | T) -> Value[T]:
        """This value, or the other one if this is Absent; a plain value gets this place."""
        if not isinstance(self, Absent):
            return self
        return other if isinstance(other, Value) else Known(self.field, other)

    def finding(self, message: str, **details: Unpack[Details]) -> Finding:
        """A finding at this place; see Field.finding."""
        return self.field.finding(message, **details)

    def __str__(self) -> str:
        return str(self.known) if isinstance(self, Known) else self.field.written


class Known(Value[T]):
    """The program reads this value."""

    __slots__ = ("value",)

    def __init__(self, field: Field, value: T) -> None:
        super().__init__(field)
        self.value = value

    @property
    def known(self) -> T | None:
        """The value."""
        return self.value

    def known_and(self, test: Callable[[T], bool]) -> bool:
        """The test holds."""
        return test(self.value)

    def map(self, convert: Callable[[T], U]) -> Value[U]:
        """The converted value at the same place."""
        return Known(self.field, convert(self.value))


class Absent(Value[T]):
    """Nothing is written here, or null; the place is the key, else the nearest parent's key."""

    __slots__ = ()


class WrongType(Value[T]):
    """Something is written that the program refuses for this field."""

    __slots__ = ()


class Unknown(Value[T]):
    """A template or placeholder: the value is not in the file."""

    __slots__ = ()
