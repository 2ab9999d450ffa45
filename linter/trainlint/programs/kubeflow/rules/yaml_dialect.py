"""What the YAML reader makes of a manifest, before anyone looks at its fields."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage
from trainlint.programs.kubeflow.objects import TrainerObject
from trainlint.reading import mending
from trainlint.reading.document import Mapping, Scalar, Sequence, target_of
from trainlint.reading.scalars import Dialect, plain_value, value_of
from trainlint.reading.values import Field
from trainlint.rule import rule

_CORE = "tag:yaml.org,2002:"
_LARGEST_KEY = 2**63 - 1


def _fields(root: Field) -> list[Field]:
    """Every field below, those behind an alias once; they are the same for every rule and release."""
    return root.document.once(("below", root.path), lambda: list(_walk(root)))


def _walk(root: Field) -> Iterator[Field]:
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        field = waiting.pop()
        if id(field.target) not in seen:
            seen.add(id(field.target))
            children = [*field.entries(), *field.items()]
            yield from children
            waiting.extend(child for child in children if child.is_mapping or child.is_sequence)


@rule("YD001", "duplicate-key", stage=Stage.RUN, severity=Severity.WARNING, program="trainlint")
def duplicate_key(document: TrainerObject) -> Iterator[Finding]:
    """A mapping has a key twice, and the earlier value is lost.

    `kubectl` takes the last one without a word, where other readers refuse the file. A key that replaces one of a merge
    (`<<`) is intended and not reported.

    Source: sigs.k8s.io/yaml as kubectl uses it; YAML 1.2.2, section 3.2.1.3.
    """
    for field in _fields(document.field):
        if field.earlier_keys and _can_be_key(field):
            yield field.finding(
                f"this mapping has the key {field.name} twice: the earlier value is lost",
                help="remove one of them",
                related=field.earlier_keys,
                fix=mending.without_earlier(field),
                at_key=True,
            )


@rule("YD002", "unreadable-value", stage=Stage.ADMISSION)
def unreadable_value(document: TrainerObject) -> Iterator[Finding]:
    """Go's YAML reader refuses a tag, a key or a merge, and with it the whole document.

    A tag such as `!!int` must fit the value (an integer may be a float), a key must be a string, a boolean or a number
    of 64 bits (neither null nor a mapping), and a merge (`<<`) takes a mapping or a list of mappings, which may be
    aliases, but not an alias of a list.

    Source: sigs.k8s.io/yaml 1.4 to 1.6, as kubectl uses it.
    """
    for field in (document.field, *_fields(document.field)):
        for merge in field.merges():
            if not _can_be_merged(merge):
                yield merge.finding(
                    "<< takes a mapping or a list of mappings", help="write the alias of a mapping, such as <<: *name"
                )
        wanted = _contradicted_tag(field)
        if wanted:
            yield field.finding(f"{field.written!r} does not fit its tag !!{wanted}", help="remove the tag")
        if field.entry is not None and not _can_be_key(field):
            scalar = isinstance(target_of(field.entry.key), Scalar)
            yield field.finding(
                "a key must be a string, a boolean or a number of 64 bits",
                help="quote it" if scalar else "write a string as the key",
                fix=mending.quoted_key(field) if scalar else None,
                at_key=True,
            )


def _contradicted_tag(field: Field) -> str:
    """The type that a scalar's tag promises and its text does not hold; empty where they agree."""
    scalar = field.target
    if not isinstance(scalar, Scalar) or field.is_unknown or not (scalar.tag or "").startswith(_CORE):
        return ""
    tag = (scalar.tag or "")[len(_CORE) :]
    value = plain_value(scalar.value, Dialect.KUBERNETES)
    fits = {
        "null": value is None,
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, (int, float)) and not isinstance(value, bool),
    }
    return "" if fits.get(tag, True) else tag


def _can_be_key(field: Field) -> bool:
    key = target_of(field.entry.key) if field.entry else None
    if not isinstance(key, Scalar):
        return isinstance(key, Mapping) and key.flow  # a template such as {{ name }}
    value = value_of(key, Dialect.KUBERNETES)
    return value is not None and not (isinstance(value, int) and value > _LARGEST_KEY)


def _can_be_merged(merge: Field) -> bool:
    if isinstance(merge.node, Sequence):
        return all(isinstance(item.target, Mapping) for item in merge.items())
    return isinstance(merge.target, Mapping) or merge.is_unknown
