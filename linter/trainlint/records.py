"""Dataclasses that cost a start little.

The module `dataclasses` imports `inspect`, and compiles the methods of each class: together a tenth of the time that a
hook takes for one file. The decorator here means what the one there means, as far as it is used here; its methods are
functions that all classes share. For type checkers it is that one, and `dataclasses` takes the classes for its own.
NamedTuple is that of `typing`, which compiles each annotation to see whether it is one.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

T = TypeVar("T")

_MISSING: Any = object()


class Member:
    """One member of a class: its default, or what makes it, and whether it counts when two instances are compared."""

    __slots__ = ("compare", "default", "factory", "kw_only", "metadata")

    def __init__(
        self,
        default: Any = _MISSING,
        factory: Callable[[], Any] | None = None,
        *,
        compare: bool = True,
        metadata: Mapping[str, Any] | None = None,
        kw_only: bool | None = None,
    ) -> None:
        self.default = default
        self.factory = factory
        self.compare = compare
        self.metadata = metadata or {}
        self.kw_only = kw_only


class _Fields:
    """The members as `dataclasses` wants them, made when it asks."""

    def __get__(self, instance: object, owner: type) -> dict[str, Any]:
        import dataclasses

        listed = []
        for name, member in members(owner).items():
            given: dict[str, Any] = {"compare": member.compare, "metadata": member.metadata, "kw_only": True}
            if member.factory is not None:
                given["default_factory"] = member.factory
            elif member.default is not _MISSING:
                given["default"] = member.default
            listed.append((name, Any, dataclasses.field(**given)))
        made = dataclasses.make_dataclass(owner.__name__, listed)
        return {field.name: field for field in dataclasses.fields(made)}


class _Signature:
    """The parameters of a class as `help` and `inspect` show them, made when they ask."""

    def __get__(self, instance: object, owner: type) -> Any:
        from inspect import Parameter, Signature

        own = (getattr(base, "__annotations__", {}) for base in reversed(owner.__mro__))
        hints = {name: hint for one in own for name, hint in one.items()}
        parameters = []
        for name, member in sorted(members(owner).items(), key=lambda one: bool(one[1].kw_only)):
            default = Parameter.empty if member.default is _MISSING else member.default
            if member.factory is not None:
                default = member.factory()
            kind = Parameter.KEYWORD_ONLY if member.kw_only else Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(Parameter(name, kind, default=default, annotation=hints[name]))
        return Signature(parameters)


def members(record: type) -> dict[str, Member]:
    """The members of a class, those of its bases first."""
    found: dict[str, Member] = getattr(record, "_members", {})
    return found


def _dataclass(
    cls: type[T] | None = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    kw_only: bool = False,
    slots: bool = False,
) -> Any:
    def made(cls: type[T]) -> type[T]:
        return _made(cls, frozen=frozen, eq=eq, kw_only=kw_only, slots=slots)

    return made if cls is None else made(cls)


def _made(cls: type[T], *, frozen: bool, eq: bool, kw_only: bool, slots: bool) -> type[T]:
    own: dict[str, Member] = {}
    for name, hint in cls.__annotations__.items():
        if not str(hint).startswith("ClassVar"):
            value = cls.__dict__.get(name, _MISSING)
            own[name] = value if isinstance(value, Member) else Member(value)
            if own[name].kw_only is None:
                own[name].kw_only = kw_only
    found = {name: member for base in reversed(cls.__mro__[1:]) for name, member in members(base).items()} | own
    methods: dict[str, Any] = {
        "_members": found,
        "__dataclass_fields__": _Fields(),
        "__signature__": _Signature(),
        "__match_args__": tuple(name for name, member in found.items() if not member.kw_only),
        "__init__": _initializer(cls.__name__, found, by_name=slots),
        "__repr__": _spelled,
    }
    if eq:
        compared = tuple(name for name, member in found.items() if member.compare)
        methods |= {"_compared": compared, "__eq__": _equals, "__hash__": _hash if frozen else None}
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    if slots:
        # A class has its slots from the beginning; and pickle would set the members of a frozen one.
        methods |= {"__getstate__": _state, "__setstate__": _restore}
        kept = {name: value for name, value in cls.__dict__.items() if name not in (*own, "__dict__", "__weakref__")}
        again: type[T] = type(cls.__name__, cls.__bases__, {**methods, **kept, "__slots__": tuple(own)})
        return again
    for name, method in methods.items():
        if cls.__dict__.get(name) is None:
            setattr(cls, name, method)
    for name, member in own.items():
        if member.default is not _MISSING:
            setattr(cls, name, member.default)
        elif name in cls.__dict__:
            delattr(cls, name)
    return cls


def _initializer(called: str, found: Mapping[str, Member], *, by_name: bool) -> Callable[..., None]:
    ordered = [name for name, member in found.items() if not member.kw_only]
    defaults = {name: member.default for name, member in found.items() if member.default is not _MISSING}
    factories = [(name, member.factory) for name, member in found.items() if member.factory is not None]

    def __init__(self: object, *args: Any, **given: Any) -> None:
        passed = {**dict(zip(ordered, args)), **given}  # noqa: B905 - fewer arguments than members, the rest is in `given`
        if len(passed) < len(args) + len(given) or not passed.keys() <= found.keys():
            raise TypeError(f"{called} does not take these arguments: {args}, {given}")
        values = {**defaults, **passed}
        for name, factory in factories:
            if name not in passed:
                values[name] = factory()
        if len(values) < len(found):
            raise TypeError(f"{called} needs {', '.join(found.keys() - values.keys())}")
        if by_name:
            for name, value in values.items():
                object.__setattr__(self, name, value)
        else:
            self.__dict__.update(values)

    return __init__


def _shown(one: object) -> Iterator[str]:
    return (f"{name}={getattr(one, name)!r}" for name in members(type(one)))


def _spelled(self: object) -> str:
    return f"{type(self).__qualname__}({', '.join(_shown(self))})"


def _content(one: Any) -> tuple[Any, ...]:
    return tuple(getattr(one, name) for name in one._compared)


def _equals(self: object, other: object) -> Any:
    return _content(self) == _content(other) if type(self) is type(other) else NotImplemented


def _hash(self: object) -> int:
    return hash(_content(self))


def _refuse(self: object, *named: object) -> NoReturn:
    raise AttributeError(f"{type(self).__name__} cannot be changed: {named[0]}")


def _state(self: object) -> list[Any]:
    return [getattr(self, name) for name in members(type(self))]


def _restore(self: object, state: list[Any]) -> None:
    for name, value in zip(members(type(self)), state, strict=True):
        object.__setattr__(self, name, value)


def _field(
    *,
    default: Any = _MISSING,
    default_factory: Callable[[], Any] | None = None,
    compare: bool = True,
    metadata: Mapping[str, Any] | None = None,
    kw_only: bool | None = None,
) -> Any:
    return Member(default, default_factory, compare=compare, metadata=metadata, kw_only=kw_only)


def _replace(one: Any, /, **changes: Any) -> Any:
    """A copy with other members."""
    named = members(type(one))
    if not changes.keys() <= named.keys():
        raise TypeError(f"{type(one).__name__} has not all of these members: {changes}")
    copy = object.__new__(type(one))
    for name in named:
        object.__setattr__(copy, name, changes[name] if name in changes else getattr(one, name))
    return copy


class _NamedTupleType(type):
    def __new__(cls, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> Any:
        if not bases:
            return super().__new__(cls, name, bases, content)
        names = list(content.get("__annotations__", {}))
        defaults = [content.pop(one) for one in names if one in content]
        made = namedtuple(name, names, defaults=defaults, module=content["__module__"])  # type: ignore[misc]
        for key, value in content.items():
            if key not in ("__module__", "__qualname__"):
                setattr(made, key, value)
        return made


class _NamedTuple(metaclass=_NamedTupleType):
    """A class whose members are those of a tuple, in the order in which they are annotated."""


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import NamedTuple as NamedTuple
else:
    NamedTuple = _NamedTuple
    dataclass, field, replace = _dataclass, _field, _replace
