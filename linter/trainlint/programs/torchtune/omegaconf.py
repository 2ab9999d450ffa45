"""A config as OmegaConf holds it: files, data and overrides merged, interpolation resolved, and every place kept.

Source: OmegaConf 2.3 and 2.4: its grammar of interpolation (`${a.b}`, `${.sibling}`, `${a[0]}`, `${name:argument}`,
`\\${` for a literal one), its loader and its rules for merging; each was run on every form that is read here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from trainlint.findings import did_you_mean
from trainlint.lazy import regex
from trainlint.reading.scalars import whole_number
from trainlint.reading.values import UNKNOWN, Absent, Field, Known, Unknown, UnknownContent, Value, WrongType
from trainlint.records import dataclass

if TYPE_CHECKING:
    from typing import TypeAlias

    from trainlint.reading.scalars import Plain

    Json: TypeAlias = dict[str, "Json"] | list["Json"] | str | int | float | bool | None

T = TypeVar("T")

MISSING = "???"
"""OmegaConf's mark of a value that is still missing."""

RESOLVERS = frozenset("oc.create oc.decode oc.deprecated oc.dict.keys oc.dict.values oc.env oc.select".split())
"""OmegaConf's own resolvers; a program may register others."""

MAX_DEPTH = 40
MAX_REFERENCES = 25
MAX_LENGTH = 2_000
"""A value that is nested deeper, refers to more values, or grows longer than in any config counts as unknown."""

_REFERENCE = regex(r"\$\{\s*([\w.]+)\s*\}")
_FILLED_IN = regex(r"\{\{|\{%|<[A-Za-z][A-Za-z0-9_ .-]*>")
_RESOLVER = regex(r"\s*([A-Za-z_][\w.]*)\s*:")
_KEYS = regex(r"[^.\[\]]+")
_BACKSLASHES = regex(r"\\*")


@dataclass(frozen=True)
class Problem:
    """Why a value cannot be read; `resolver`: it names a resolver that OmegaConf does not have."""

    node: ConfigNode
    message: str
    help: str = ""
    resolver: bool = False

    @property
    def named(self) -> bool:
        """It names a key that is not there, as others may too."""
        return "names nothing" in self.message


class Unresolved(Exception):
    """Reading this value raises."""

    def __init__(self, message: str, help: str = "", *, resolver: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.resolver = resolver


class NotInFiles(Exception):
    """No file holds this value."""


class _Trail:
    """The references behind one value: the nodes that are being read, and how many more references may follow."""

    __slots__ = ("left", "nodes")

    def __init__(self) -> None:
        self.nodes: set[ConfigNode] = set()
        self.left = MAX_REFERENCES


class ConfigNode:
    """One node of a config, or the place of a missing one.

    `field` is the place for findings: in a file the node's own, otherwise the words that gave it. `own`: the user wrote
    it; it does not come from a shipped config.
    """

    __slots__ = ("field", "items", "key", "mapping", "own", "parent", "plain", "present")

    def __init__(
        self, field: Field, parent: ConfigNode | None, key: str, *, own: bool = True, present: bool = True
    ) -> None:
        self.field = field
        self.parent = parent
        self.key = key
        self.own = own
        self.present = present
        self.mapping: dict[str, ConfigNode] | None = None
        self.items: list[ConfigNode] | None = None
        self.plain: Plain | UnknownContent = None

    # making it

    @classmethod
    def of_field(
        cls, field: Field, parent: ConfigNode | None = None, key: str = "", place: Field | None = None, depth: int = 0
    ) -> ConfigNode:
        """The node of a field; `place` is its place where the field is not in a file.

        A value that is nested deeper than in any config counts as unknown.
        """
        node = cls(place or field, parent, key)
        below = depth + 1
        if depth == MAX_DEPTH:
            node.plain = UNKNOWN
        elif field.is_mapping:
            node.mapping = {e.name: cls.of_field(e, node, e.name, place, below) for e in field.entries()}
        elif field.is_sequence:
            node.items = [cls.of_field(item, node, str(i), place, below) for i, item in enumerate(field.items())]
        elif field.target is not None and not isinstance(field.plain, str) and field.is_unknown:
            node.plain = UNKNOWN
        else:
            node.plain = field.plain
        return node

    @classmethod
    def of_data(cls, data: Json, place: Field, parent: ConfigNode | None = None, key: str = "") -> ConfigNode:
        """The node of plain data from a shipped config, all at one place."""
        node = cls(place, parent, key, own=False)
        if isinstance(data, dict):
            node.mapping = {name: cls.of_data(value, place, node, name) for name, value in data.items()}
        elif isinstance(data, list):
            node.items = [cls.of_data(value, place, node, str(i)) for i, value in enumerate(data)]
        else:
            node.plain = data
        return node

    def copy(self, parent: ConfigNode | None = None) -> ConfigNode:
        """A copy below another parent."""
        node = ConfigNode(self.field, parent, self.key, own=self.own, present=self.present)
        node.plain = self.plain
        if self.mapping is not None:
            node.mapping = {name: child.copy(node) for name, child in self.mapping.items()}
        if self.items is not None:
            node.items = [item.copy(node) for item in self.items]
        return node

    def put(self, keys: list[str], value: ConfigNode) -> None:
        """Merge a value at a path: mappings key by key, anything else as a whole."""
        node = self
        for key in keys[:-1]:
            child = node.mapping.get(key) if node.mapping is not None else None
            if child is None or child.mapping is None:
                child = ConfigNode(value.field, node, key)
                child.mapping = {}
                node._set(key, child)
            node = child
        last = keys[-1]
        before = node.mapping.get(last) if node.mapping is not None else None
        if before is not None and before.mapping is not None and value.mapping is not None:
            for name, child in value.mapping.items():
                before.put([name], child)
            return
        copied = value.copy(node)
        copied.key = last
        node._set(last, copied)

    def _set(self, key: str, child: ConfigNode) -> None:
        if self.mapping is None:
            self.mapping, self.items, self.plain = {}, None, None
        self.mapping[key] = child

    def remove(self, keys: list[str]) -> bool:
        """Remove a key, and the sections that this leaves empty; False where there is no such key."""
        child = self.mapping.get(keys[0]) if self.mapping is not None else None
        if child is None or self.mapping is None:
            return False
        if len(keys) > 1 and not child.remove(keys[1:]):
            return False
        if len(keys) == 1 or not child.mapping:
            del self.mapping[keys[0]]
        return True

    # going down and up

    @property
    def root(self) -> ConfigNode:
        """The whole config."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @property
    def name(self) -> str:
        """The dotted key from the root."""
        steps = []
        node: ConfigNode | None = self
        while node is not None and node.parent is not None:
            steps.append(node.key)
            node = node.parent
        return ".".join(reversed(steps))

    @property
    def target(self) -> ConfigNode:
        """This node, or the one that its interpolation stands for.

        Raises Unresolved and NotInFiles.
        """
        plain = self.plain
        return self._target(_Trail()) if type(plain) is str and "${" in plain else self

    @property
    def origin(self) -> ConfigNode:
        """The setting that this node's whole value is an interpolation of, else the node itself."""
        text = self.plain if isinstance(self.plain, str) else ""
        name = _REFERENCE.fullmatch(text)
        found = self.root.at(name[1]) if name and not name[1].startswith(".") else self
        return found if found.present else self

    def get(self, key: str) -> ConfigNode:
        """The node of a key; a missing one where there is none."""
        try:
            holder = self.target
        except (Unresolved, NotInFiles):
            unknown = ConfigNode(self.field, self, key, own=self.own)
            unknown.plain = UNKNOWN
            return unknown
        child = holder.mapping.get(key) if holder.mapping is not None else None
        if child is not None:
            return child
        if holder.plain is UNKNOWN or (isinstance(holder.plain, str) and _FILLED_IN.search(holder.plain)):
            return holder
        place = holder.field.get(key) if holder.field.is_mapping else holder.field
        return ConfigNode(place, holder, key, own=holder.own, present=False)

    def at(self, path: str) -> ConfigNode:
        """The node of a dotted key."""
        node = self
        for key in path.split("."):
            node = node.get(key)
        return node

    def walk(self) -> Iterator[ConfigNode]:
        """This node and all below it, as written."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            if node.mapping is not None:
                waiting.extend(reversed(node.mapping.values()))
            elif node.items is not None:
                waiting.extend(reversed(node.items))

    @property
    def entries(self) -> Mapping[str, ConfigNode]:
        """The keys of a mapping."""
        try:
            return self.target.mapping or {}
        except (Unresolved, NotInFiles):
            return {}

    @property
    def elements(self) -> list[ConfigNode]:
        """The items of a sequence."""
        try:
            return self.target.items or []
        except (Unresolved, NotInFiles):
            return []

    # reading it

    @property
    def value(self) -> Value[Plain]:
        """The scalar here; null is Absent, a mapping or sequence is WrongType."""
        if not self.present:
            return Absent(self.field)
        try:
            plain = self._read(_Trail())
        except (Unresolved, NotInFiles):
            return Unknown(self.field)
        if isinstance(plain, ConfigNode):
            return WrongType(self.field)
        return Absent(self.field) if plain is None else Known(self.field, plain)

    @property
    def known(self) -> Plain:
        """The scalar here when it is known, else None."""
        return self.value.known

    @property
    def absent(self) -> bool:
        """Nothing is here, or null."""
        return self.value.absent

    @property
    def given(self) -> bool:
        """Something other than null is here, known or not."""
        return self.value.given

    @property
    def wrong_type(self) -> bool:
        """A mapping or a sequence is here."""
        return self.value.wrong_type

    @property
    def unknown(self) -> bool:
        """No file holds the value, or reading it raises."""
        return self.value.unknown

    def is_(self, *wanted: Plain) -> bool:
        """Known and one of these."""
        return self.value.is_(*wanted)

    def known_and_not_in(self, allowed: Collection[Plain]) -> bool:
        """Known and none of these."""
        return self.value.known_and_not_in(allowed)

    def text(self) -> Value[str]:
        """The text here; anything else is WrongType."""
        return self._typed(lambda plain: plain if isinstance(plain, str) else None)

    def number(self) -> Value[float]:
        """The number here; a boolean counts as one, as in Python."""
        return self._typed(lambda plain: float(plain) if isinstance(plain, (int, float)) else None)

    def truth(self) -> Value[bool]:
        """Whether the value is true in Python: `"False"` is, an empty list is not."""
        value = self.value
        if isinstance(value, WrongType):
            return Known(self.field, bool(self.entries or self.elements))
        return value.map(bool)

    def _typed(self, convert: Callable[[Plain], T | None]) -> Value[T]:
        value = self.value
        if not isinstance(value, Known):
            return value.map(lambda plain: plain)  # type: ignore[arg-type, return-value]
        converted = convert(value.known)
        return WrongType(self.field) if converted is None else Known(self.field, converted)

    @property
    def problem(self) -> Problem | None:
        """Why reading this node raises."""
        try:
            self._read(_Trail())
        except Unresolved as error:
            return Problem(self, error.message, error.help, error.resolver)
        except NotInFiles:
            pass
        return None

    # interpolation

    def _target(self, trail: _Trail) -> ConfigNode:
        read = self._read(trail) if isinstance(self.plain, str) and "${" in self.plain else self
        return read if isinstance(read, ConfigNode) else self

    def _read(self, trail: _Trail) -> ConfigNode | Plain:
        """The node or the scalar that is read here."""
        if self.mapping is not None or self.items is not None:
            return self
        if self.plain is UNKNOWN:
            raise NotInFiles
        if not isinstance(self.plain, str):
            return self.plain
        if self.plain == MISSING:
            raise Unresolved("the value is missing (???)", f"write it here, or give {self.name}=… to tune run")
        if _FILLED_IN.search(self.plain.replace("${", "")):
            raise NotInFiles
        if "${" not in self.plain:
            return self.plain
        if self in trail.nodes:
            raise Unresolved("the value refers to itself", "write the value itself")
        trail.left -= self.plain.count("${")
        if trail.left < 0:
            raise NotInFiles
        trail.nodes.add(self)
        found = self._interpolated(self.plain, trail)
        trail.nodes.remove(self)
        return found

    def _interpolated(self, text: str, trail: _Trail) -> ConfigNode | Plain:
        parts = [self._refer(part, trail) if is_reference else part for is_reference, part in _split(text)]
        if len(parts) == 1:
            return parts[0]
        joined = "".join(_spelled(part) for part in parts)
        if len(joined) > MAX_LENGTH:
            raise NotInFiles
        return joined

    def _refer(self, inner: str, trail: _Trail) -> ConfigNode | Plain:
        """What `${inner}` stands for here."""
        resolver = _RESOLVER.match(inner)
        if resolver:
            if resolver[1] in RESOLVERS:
                raise NotInFiles
            raise Unresolved(
                f'OmegaConf has no resolver "{resolver[1]}"',
                did_you_mean(resolver[1], RESOLVERS) or "write the value itself",
                resolver=True,
            )
        path = _spelled(self._interpolated(inner, trail)) if "${" in inner else inner
        path = path.strip()
        dots = len(path) - len(path.lstrip("."))
        node = self.root if not dots else self
        for _ in range(dots):
            if node.parent is None:
                raise Unresolved(f"${{{path}}} leads out of the config", "use fewer dots: each leads one level up")
            node = node.parent
        for key in _KEYS.findall(path):
            node = self._step(node._target(trail), key, path)
        return node._read(trail)

    @staticmethod
    def _step(node: ConfigNode, key: str, path: str) -> ConfigNode:
        found = (node.mapping or {}).get(key)
        number = whole_number(key)
        if found is None and node.items is not None and number is not None and number < len(node.items):
            found = node.items[number]
        if found is None:
            hint = did_you_mean(key, node.mapping or ()) or f"add {key}, or name another key"
            raise Unresolved(f"${{{path}}} names nothing: there is no {key}", hint)
        return found


def _split(text: str) -> Iterator[tuple[bool, str]]:
    """The parts of a text: literal ones (False) and the insides of interpolations (True).

    Raises Unresolved where an interpolation has no end or is empty.
    """
    literal, index = "", 0
    while index < len(text):
        slashes = _backslashes(text, index)
        if not text.startswith("${", index + slashes):
            literal += text[index : index + slashes + 1]
            index += slashes + 1
            continue
        literal += "\\" * (slashes // 2)
        index += slashes + 2
        if slashes % 2:
            literal += "${"
            continue
        end = _end(text, index)
        if literal:
            yield False, literal
        literal = ""
        yield True, text[index:end]
        index = end + 1
    if literal:
        yield False, literal


def _backslashes(text: str, start: int) -> int:
    found = _BACKSLASHES.match(text, start)
    return found.end() - start if found else 0


def _end(text: str, start: int) -> int:
    depth = 1
    for index in range(start, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if not depth:
            if not text[start:index].strip():
                break
            return index
    raise Unresolved("the interpolation has no end or is empty", "write ${key}, or \\${ for the literal characters")


def _spelled(part: ConfigNode | Plain) -> str:
    return "{…}" if isinstance(part, ConfigNode) else str(part)


def is_dotted_path(text: str) -> bool:
    """A text has the form of `package.module.name`; a number such as 0.5 has not."""
    parts = text.split(".")
    return len(parts) > 1 and all(parts) and not all(part.isdecimal() for part in parts)


def split_key(dotted: str) -> list[str]:
    """The steps of an override's key: `checkpointer.checkpoint_files[0]`."""
    return _KEYS.findall(dotted)
