"""Mending: the edits that turn what is written at a place into what is right.

Each function gives a fix, or None where the text cannot be changed there alone: an alias or a merged key, whose text
stands elsewhere; a value that an alias repeats; a block scalar or escapes; a key that the mapping has already.
An edit keeps comments, quotes, anchors, flow style and line ends. A fix is safe if the text is certain (`sure`) and the
program cannot have started with what is there, or with `keeps`, if the program does the same before and after.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import TypeAlias, TypeVar

from trainlint.findings import Edit, Fix, common_letters
from trainlint.lazy import regex
from trainlint.reading.document import Alias, Document, Mapping, Node, Scalar, Sequence
from trainlint.reading.scalars import plain_value
from trainlint.reading.values import Field, Value

T = TypeVar("T")
Place: TypeAlias = Field | Value[T]

_BARE = regex(r"[\w./@:+=*-]*[\w./@+=*-]")
"""A text that needs no quotes in a shell, and none in YAML unless it is read as something else."""
_PLAIN = regex(r"[\w./$\\(<~^][^\n\r#:{}\[\],&*!|>'\"%@`]*")
"""A text that begins and goes on like a plain scalar of YAML, in a block and in flow."""
_INNER_COMMENT = regex(r"(?m)(?:^|[ \t])#")
_REST = regex(r"[ \t]*(#[^\r\n]*)?(\r\n|\n|\r|\Z)")
_ADVICE = regex(
    r"(?:write |call it |use (?=\w+, which ))(?P<name>\w+)(?:, which .+)?"
    r"|use (?P<key>\w+): (?P<value>\w+|\[\w+\]|\{\w+: …\})|(?P<gone>remove it)(?:: .+)?"
)
_POWER = regex(r"(-?[0-9]{1,17})(\.[0-9]{1,17})?[eE]([-+]?[0-9]{1,3})")
_NUMBER = regex(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_TRUE = frozenset(("true", "yes", "on"))
_FALSE = frozenset(("false", "no", "off"))
_EXPONENT = regex(r"([1-9][0-9]{0,17}|0)(?:\.([0-9]{0,17}))?(?:[eE]\+?([0-9]{1,2}))?")
_MOST_ZEROS = 15
_LEAST_PART = 4
"""Letters that the part of a word must have in which the slip is: cpu is no slip for gpu."""
_LEAST_TYPED = 5
"""Letters that a word must have for a slip in it to be certain enough to be mended."""


# what the rules ask for


def renamed(place: Place[T], name: str, *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """The key gets another name, which its mapping must not have."""
    field = _field(place)
    key = _own_key(field)
    if key is None or field.parent is None or field.parent.get(name).node is not None:
        return None
    edit = _in_place(field, key, name)
    if edit is None:
        return None
    claim = _claim(field.parent, name)
    return Fix(f"rename the key to {name}", (edit,), sure, keeps, claim=claim, renames=name)


def worded(place: Place[T], text: str, *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """Another text stands there, in quotes where it was, or where it would be read as something else."""
    field = _field(place)
    node = _own_scalar(field)
    edit = None if node is None else _in_place(field, node, text)
    return None if edit is None else Fix(f"write {edit.replacement}", (edit,), sure, keeps)


def written(place: Place[T], literal: str, *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """A number, boolean, null, or flow list or mapping stands there, as it is given here, without quotes."""
    field = _field(place)
    node = _own_value(field)
    if node is None or (isinstance(node, Scalar) and not _is_as_written(field, node)):
        return None
    if _text_of(field.document.text.content, node) == literal:
        return None
    return Fix(f"write {literal}", (Edit(node.start, node.end, literal),), sure, keeps)


def unquoted(place: Place[T], *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """The text in quotes is read as the number or boolean that it spells; "12:30" is no number that anyone means."""
    field = _field(place)
    target = field.target
    if not isinstance(target, Scalar) or not target.style or ":" in target.value:
        return None
    if not isinstance(plain_value(target.value, field.dialect), (bool, int, float)):
        return None
    return written(field, target.value, sure=sure, keeps=keeps)


def whole(place: Place[T], *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """A whole number with all its digits and without quotes in the place of `1e8`, `2.0` or `"4"`."""
    target = _field(place).target
    literal = digits(target.value) if isinstance(target, Scalar) else None
    return None if literal is None else written(place, literal, sure=sure, keeps=keeps)


def switched(place: Place[T], *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """A boolean in the place of a text that is a word for one: "true", "no", "Off"."""
    target = _field(place).target
    word = target.value.strip().lower() if isinstance(target, Scalar) else ""
    literal = "true" if word in _TRUE else "false" if word in _FALSE else None
    return None if literal is None else written(place, literal, sure=sure, keeps=keeps)


def numbered(place: Place[T], *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """A number without quotes, as the file's reader takes it, in the place of a text that spells it."""
    field = _field(place)
    target = field.target
    if not isinstance(target, Scalar):
        return None
    literal = target.value.strip()
    if isinstance(plain_value(literal, field.dialect) if literal else "", str):
        literal = digits(literal) or _with_point(literal)
    if not literal or not _NUMBER.fullmatch(literal) or isinstance(plain_value(literal, field.dialect), (str, bool)):
        return None
    return written(field, literal, sure=sure, keeps=keeps)


def quoted(place: Place[T], *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """The plain value is read as a text."""
    field = _field(place)
    node = _own_scalar(field)
    if node is None or node.style or node.implicit_null or not _is_as_written(field, node):
        return None
    return Fix(f'write "{node.value}"', (Edit(node.start, node.end, _in_quotes(node.value)),), sure, keeps)


def quoted_key(place: Place[T]) -> Fix | None:
    """The plain key is read as a text."""
    field = _field(place)
    key = _own_key(field)
    if key is None or key.style or not _is_as_written(field, key):
        return None
    return Fix(f'write "{key.value}"', (Edit(key.start, key.end, _in_quotes(key.value)),))


def listed(place: Place[T], *items: str, sure: bool = True) -> Fix | None:
    """The scalar is the only item of a list, or these texts are its items."""
    field = _field(place)
    node = _own_scalar(field)
    if node is None or node.implicit_null or not _is_as_written(field, node):
        return None
    content = field.document.text.content[node.start : node.end]
    if items:
        content = ", ".join(_as_item(field, item) for item in items)
    elif not node.style and not _PLAIN.fullmatch(content):
        return None
    return Fix(f"write [{content}]", (Edit(node.start, node.end, f"[{content}]"),), sure)


def emptied(place: Place[T]) -> Fix | None:
    """An empty list in the place of an empty text."""
    return written(place, "[]") if _field(place).text().known == "" else None


def is_same(one: Field, other: Field) -> bool:
    """Two fields of one document are written alike."""
    if one.node is None or other.node is None or one.document is not other.document:
        return False
    content = one.document.text.content
    return _text_of(content, one.node) == _text_of(content, other.node)


def trimmed(place: Place[T]) -> Fix | None:
    """The text without the white space around it, in one line."""
    field = _field(place)
    node = _own_scalar(field)
    text = node.value.strip() if node is not None else ""
    if node is None or not _BARE.fullmatch(text):
        return None
    if node.style not in ("|", ">"):
        return worded(field, text)
    return Fix(f"write {text}", (Edit(node.start, node.end, _as_item(field, text)),))


def as_text(place: Place[T], text: str, *, sure: bool = True) -> Fix | None:
    """A text stands in the place of a list or mapping in flow style."""
    field = _field(place)
    node = _own_value(field)
    if isinstance(node, Scalar) or node is None:
        return None
    literal = _as_item(field, text)
    return Fix(f"write {literal}", (Edit(node.start, node.end, literal),), sure)


def respelled(place: Place[T], words: Iterable[str], *, keeps: bool = False) -> Fix | None:
    """The one of these words that is written there but for case or joints, or (then it is not sure) for a slip."""
    field = _field(place)
    target = field.target
    if not isinstance(target, Scalar):
        return None
    word = meant(target.value, words)
    return None if word is None else worded(field, word, sure=_is_same(target.value, word), keeps=keeps)


def renamed_to_nearest(place: Place[T], names: Iterable[str]) -> Fix | None:
    """The key is that one of these which is written there but for case or joints, or (not sure) for a slip."""
    field = _field(place)
    name = meant(field.name, names)
    return None if name is None else renamed(field, name, sure=_is_same(field.name, name))


def removed(place: Place[T], *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """The key goes with its value, or the item of a list; the last one of its mapping or list stays."""
    field = _field(place)
    edit = _removal(field)
    name = field.name if field.entry is not None else "this item"
    if edit is None or field.parent is None:
        return None
    others = len([*field.parent.entries(), *field.parent.items()]) - 1
    return Fix(f"remove {name}", (edit,), sure, keeps, claim=_claim(field.parent, "-"), room=others)


def without_item(place: Place[T], *, sure: bool = True) -> Fix | None:
    """The item goes, with its list where it is the only one."""
    field = _field(place)
    fix = removed(field, sure=sure)
    alone = field.parent is not None and len(field.parent.items()) == 1
    return removed(field.parent, sure=sure) if fix is None and alone and field.parent is not None else fix


def moved(place: Place[T], section: Field, name: str = "", *, sure: bool = True) -> Fix | None:
    """The key goes with its value into a mapping beside or below it, which must not have it."""
    field = _field(place)
    key, removal = _own_key(field), _removal(field)
    name = name or field.name
    node = _own_value(field)
    if key is None or node is None or section.get(name).node is not None:
        return None
    if section.node is None:
        nested = _nested(field, key, section, name)
        return nested and nested._replace(safe=sure)
    if removal is None:
        return None
    start, end = _line_of(field, key.start), node.end
    content = field.document.text.content
    if content[start : key.start].strip() or not _same_line(content, key.start, end):
        return None
    value = content[key.end : end]
    inserted = _insertion(
        section, f"{_spelled(key, content, name)}{value}", isinstance(node, Scalar) and not node.style
    )
    if inserted is None:
        return None
    title = f"move it to {section.field_path}" if section.field_path else "move it to the top level"
    return Fix(title, (removal, inserted), sure, claim=_claim(section, name))


def _nested(field: Field, key: Scalar, section: Field, name: str) -> Fix | None:
    """The key in a new mapping in its own place, where the section is missing beside it."""
    removal = _removal(field) if field.parent is not None else None
    here = section.parent is not None and field.parent is not None and section.parent.target is field.parent.target
    if removal is None or not here or section.node is not None or section.parent is None:
        return None
    line = _line_of(field, key.start)
    content = field.document.text.content
    indent = content[line : key.start]
    end = field.node.end if field.node is not None else key.end
    if indent.strip() or not _same_line(content, key.start, end):
        return None
    inner = f"{section.name}:{_line_end(content)}{indent}  {_spelled(key, content, name)}"
    claim = _claim(section.parent, section.name)
    return Fix(f"move it to {section.field_path}", (Edit(key.start, key.end, inner),), claim=claim)


def added(section: Field, name: str, literal: str, *, sure: bool = True) -> Fix | None:
    """The mapping gets one more key."""
    if section.get(name).node is not None:
        return None
    inserted = _insertion(section, f"{name}: {literal}", False)
    if inserted is None:
        return None
    return Fix(f"add {name}: {literal}", (inserted,), sure, claim=_claim(section, name))


def instead(place: Place[T], name: str, literal: str, *, sure: bool = True, keeps: bool = False) -> Fix | None:
    """Another key with another value stands there; its mapping must not have it."""
    first, second = renamed(place, name, sure=sure, keeps=keeps), written(place, literal, sure=sure, keeps=keeps)
    if first is None or second is None:
        return None
    return first._replace(title=f"write {name}: {literal}", edits=(*first.edits, *second.edits))


def advised(place: Place[T], advice: str, among: Container[str] | None = None) -> Fix | None:
    """What a table advises on a key, where that is one step: `write NAME`, `use NAME: VALUE`, `remove it`.

    In VALUE the sign `…` stands for the value that is written there. A key is renamed to one `among` these names only.
    """
    field = _field(place)
    match = _ADVICE.fullmatch(advice)
    if match is None:
        return None
    if match["gone"]:
        return removed(field, keeps=True)
    if match["name"]:
        return renamed(field, match["name"]) if among is None or match["name"] in among else None
    value = _own_value(field)
    if value is None or ("…" not in match["value"] and field.plain is not True):
        return None
    own = _text_of(field.document.text.content, value)
    bare = isinstance(value, Scalar) and not value.style
    if "…" in match["value"] and bare and not _PLAIN.fullmatch(own):
        return None
    return instead(field, match["key"], match["value"].replace("…", own))


_MOST_EARLIER = 20
"""How often a key may be given again; what is repeated more often was not written by a slip."""


def without_earlier(place: Place[T]) -> Fix | None:
    """The earlier ones of equal keys go, which the last one replaces; not sure where the values differ.

    Only for mappings in which the last one counts.
    """
    field = _field(place)
    target = field.parent.target if field.parent is not None else None
    if field.entry is None or not isinstance(target, Mapping) or field.use is not None or not field.entry.duplicates:
        return None
    if len(field.entry.duplicates) > _MOST_EARLIER:
        return None
    content = field.document.text.content
    earlier = {id(key) for key in field.entry.duplicates}
    pairs = [pair for pair in target.pairs if id(pair[0]) in earlier]
    edits = [_pair_removal(field, target, pair) for pair in pairs]
    if not all(edits) or _is_shared(field) or len(edits) != len(field.entry.duplicates):
        return None
    same = all(_text_of(content, value) == _text_of(content, field.entry.value) for _, value in pairs)
    found = tuple(edit for edit in edits if edit is not None)
    return Fix(f"remove the earlier {field.name}", found, safe=same, keeps=True)


def as_entries(place: Place[T]) -> Fix | None:
    """A list of `name` and `value` in the place of a mapping of names to values, which become texts."""
    field = _field(place)
    target = field.target
    if not isinstance(target, Mapping) or not target.pairs or field.use is not None or _is_shared(field):
        return None
    content = field.document.text.content
    pairs = [(key, value) for key, value in target.pairs if isinstance(key, Scalar) and isinstance(value, Scalar)]
    written = [_as_written_text(content, value) for _, value in pairs]
    if len(pairs) < len(target.pairs) or any(_has_properties(key) or _has_properties(value) for key, value in pairs):
        return None
    if target.flow:
        listed = [
            f"{{name: {_text_of(content, key)}, value: {text}}}" for (key, _), text in zip(pairs, written, strict=True)
        ]
        edits = [Edit(target.start, target.end, f"[{', '.join(listed)}]")]
        return None if None in written else Fix("write a list of name and value", tuple(edits))
    edits = []
    for (key, value), text in zip(pairs, written, strict=True):
        line = _line_of(field, key.start)
        indent = content[line : key.start]
        if text is None or indent.strip() or not _same_line(content, key.start, value.end):
            return None
        entry = f"- name: {_text_of(content, key)}{_line_end(content)}{indent}  value: {text}"
        edits.append(Edit(key.start, value.end, entry))
    return Fix("write a list of name and value", tuple(edits))


def _has_properties(node: Scalar) -> bool:
    return node.anchor is not None or node.tag is not None


def _as_written_text(content: str, value: Scalar) -> str | None:
    """The value as a text in one line: as it is written, or in quotes where it would be read as something else."""
    source = _text_of(content, value)
    if value.style in ("'", '"'):
        return source
    return None if value.style or not source else _in_quotes(source)


def all_of(*fixes: Fix | None, title: str = "") -> Fix | None:
    """Several fixes as one; None if one of them is."""
    found = [fix for fix in fixes if fix is not None]
    if len(found) < len(fixes) or not found:
        return None
    first = found[0]
    return first._replace(
        title=title or " and ".join(fix.title for fix in found),
        edits=tuple(edit for fix in found for edit in fix.edits),
        safe=all(fix.safe for fix in found),
        keeps=all(fix.keeps for fix in found),
    )


def meant(word: str, words: Iterable[str]) -> str | None:
    """The one word that differs in case or joints alone, else the one that a slip of the hand makes of this."""
    known = list(dict.fromkeys(words))
    same = [other for other in known if _is_same(word, other)]
    if same:
        return same[0] if len(same) == 1 and same[0] != word else None
    if len(word) < _LEAST_TYPED:
        return None
    folded = _folded(word)
    near = [other for other in known if len(other) >= _LEAST_TYPED and _is_slip(folded, _folded(other))]
    return near[0] if len(near) == 1 else None


# words and numbers


def digits(text: str) -> str | None:
    """A whole number that is written with an exponent or a point, with all its digits; None for other text."""
    match = _EXPONENT.fullmatch(text.strip())
    if match is None:
        return None
    whole, part, power = match[1], (match[2] or "").rstrip("0"), int(match[3] or 0)
    if not 0 <= power - len(part) <= _MOST_ZEROS and part:
        return None
    return f"{whole}{part}{'0' * (power - len(part))}" if 0 <= power <= _MOST_ZEROS else None


def _with_point(text: str) -> str:
    """`2e-5` as `2.0e-5`, which PyYAML takes for a number; empty for other text."""
    match = _POWER.fullmatch(text)
    if match is None:
        return ""
    return f"{match[1]}{match[2] or '.0'}e{int(match[3]):+d}"


def _folded(word: str) -> str:
    return word.strip().lower().replace("-", "_").replace(" ", "_")


def _is_same(word: str, other: str) -> bool:
    return _folded(word).replace("_", "") == _folded(other).replace("_", "")


def _is_slip(word: str, other: str) -> bool:
    """One letter more, less or other, or two neighbours swapped; not a digit, nor in a short part such as `gpu`."""
    if abs(len(word) - len(other)) > 1 or len(word) + len(other) - 2 * common_letters(word, other) > 2:
        return False
    start = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    one, two = word[start:], other[start:]
    if len(one) == len(two):
        swapped = one[:2] == two[1::-1] and one[2:] == two[2:]
        changed, letters = (swapped or one[1:] == two[1:]), one[: 1 + swapped] + two[: 1 + swapped]
    else:
        longer, shorter = (one, two) if len(one) > len(two) else (two, one)
        changed, letters = longer[1:] == shorter, longer[:1]
    part = re.split(r"[\W_]", other[:start])[-1] + re.split(r"[\W_]", other[start:])[0]
    return changed and len(part) >= _LEAST_PART and not any(letter.isdigit() for letter in letters)


# nodes that may be changed


def _field(place: Place[T]) -> Field:
    return place.field if isinstance(place, Value) else place


def _own_value(field: Field) -> Node | None:
    """The node that is written here and nowhere else; None for a block of keys or items."""
    node = field.node
    if node is None or isinstance(node, Alias) or field.use is not None or node.start >= node.end:
        return None
    if not field.document.text.content or node.tag is not None or _is_shared(field):
        return None
    if isinstance(node, (Mapping, Sequence)) and (not node.flow or _has_comment(field, node)):
        return None
    return node


def _own_scalar(field: Field) -> Scalar | None:
    node = _own_value(field)
    return node if isinstance(node, Scalar) else None


def _own_key(field: Field) -> Scalar | None:
    """The key that is written here and nowhere else."""
    entry = field.entry
    if entry is None or entry.use is not None or field.use is not None or not isinstance(entry.key, Scalar):
        return None
    key = entry.key
    plain = key.tag is None and key.anchor is None and key.style not in ("|", ">")
    return key if plain and key.end > key.start and not _is_shared(field) else None


def _has_comment(field: Field, node: Node) -> bool:
    return bool(_INNER_COMMENT.search(field.document.text.content, node.start, node.end))


def _is_shared(field: Field) -> bool:
    """An alias of the document repeats this value, or a mapping or list that it is in or that is in it."""
    named = _aliased(field.document)
    if not named:
        return False
    at: Field | None = field
    while at is not None:
        if at.target is not None and id(at.target) in named:
            return True
        at = at.parent
    return field.target is not None and any(id(node) in named for node in _nodes(field.target))


def _aliased(document: Document) -> set[int]:
    return {id(node.target) for node in _nodes(document.root) if isinstance(node, Alias)}


def _nodes(root: Node) -> Iterator[Node]:
    """The node and all nodes that are written in it."""
    left = [root]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, Mapping):
            left.extend(part for pair in node.pairs for part in pair)
        elif isinstance(node, Sequence):
            left.extend(node.items)


# text


def _is_as_written(field: Field, node: Scalar) -> bool:
    """The characters at the scalar's place are its value, perhaps in quotes: no escapes, no folding."""
    source = field.document.text.content[node.start : node.end]
    return source == node.value or (source[:1] in ("'", '"') and source == f"{source[0]}{node.value}{source[0]}")


def _in_place(field: Field, node: Scalar, text: str) -> Edit | None:
    """Another text in the place of a scalar or of a word in a script, in the same quotes."""
    if not _is_as_written(field, node) or "\n" in text:
        return None
    source = field.document.text.content[node.start : node.end]
    if source != node.value:
        replacement = f"{source[0]}{text}{source[0]}"
        fits = source[0] not in text and "\\" not in text
    elif node.style:  # A word in a script, which has no quotes there.
        replacement, fits = text, _BARE.fullmatch(text) is not None
    else:
        replacement, fits = _as_item(field, text), True
    return Edit(node.start, node.end, replacement) if fits and replacement != source else None


def _as_item(field: Field, text: str) -> str:
    """A text as YAML reads it, in a block or in flow; in JSON with quotes."""
    bare = not field.document.path.endswith(".json") and _PLAIN.fullmatch(text) and text == text.strip()
    return text if bare and plain_value(text, field.dialect) == text else _in_quotes(text)


def _in_quotes(text: str) -> str:
    return f'"{text}"' if '"' not in text and "\\" not in text else "'" + text.replace("'", "''") + "'"


def _text_of(content: str, node: Node) -> str:
    return content[node.start : node.end]


def _spelled(key: Scalar, content: str, name: str) -> str:
    quote = content[key.start] if key.style else ""
    return f"{quote}{name}{quote}"


def _line_of(field: Field, index: int) -> int:
    text = field.document.text
    return text.line_start(text.position(index)[0])


def _same_line(content: str, start: int, end: int) -> bool:
    return "\n" not in content[start:end] and "\r" not in content[start:end]


def _claim(section: Field, name: str) -> str:
    return f"{section.document.index}:{section.yaml_path}.{name}"


# removing and inserting


def _removal(field: Field) -> Edit | None:
    """The edit that takes an entry or an item out of its mapping or list; None where it is the only one."""
    parent = field.parent
    if parent is None or field.use is not None or not field.document.text.content or _is_shared(field):
        return None
    container = parent.target
    if isinstance(container, Mapping) and field.entry is not None and _own_key(field) is not None:
        return _pair_removal(field, container, (field.entry.key, field.entry.value))
    if isinstance(container, Sequence) and field.entry is None:
        index = next((i for i, item in enumerate(container.items) if item is field.node), None)
        if index is not None:
            spans = [(item.start, item.end) for item in container.items]
            return _part_removal(field, spans, index, container.flow, dashed=True)
    return None


def _pair_removal(field: Field, mapping: Mapping, pair: tuple[Node, Node]) -> Edit | None:
    index = next((i for i, (key, _) in enumerate(mapping.pairs) if key is pair[0]), None)
    if index is None:
        return None
    spans = [(key.start, max(key.end, value.end)) for key, value in mapping.pairs]
    properties = any(isinstance(node, Scalar) and (node.anchor or node.tag) for node, _ in mapping.pairs)
    return None if properties else _part_removal(field, spans, index, mapping.flow, dashed=False)


def _part_removal(field: Field, spans: list[tuple[int, int]], index: int, flow: bool, *, dashed: bool) -> Edit | None:
    content = field.document.text.content
    start, end = spans[index]
    if len(spans) < 2 or _INNER_COMMENT.search(content, start, end):
        return None
    if flow:
        return _flow_removal(content, spans, index)
    if content[end : end + 1] == ":":  # A key without a value.
        end += 1
    line = _line_of(field, start)
    before = content[line:start]
    rest = _REST.match(content, end)
    if rest is None:
        return None
    own = before.strip() == ("-" if dashed else "")
    if own and rest[1]:
        comment = rest.start(1)
        return Edit(start if not dashed else content.index("-", line), comment, "")
    if own:
        return Edit(line, rest.end(), "")
    if dashed or index + 1 == len(spans) or rest[1]:
        return None
    return Edit(start, spans[index + 1][0], "")


def _flow_removal(content: str, spans: list[tuple[int, int]], index: int) -> Edit | None:
    """The part with the comma behind it, or of the last one the comma before it."""
    last = index + 1 == len(spans)
    start, end = (spans[index - 1][1], spans[index][1]) if last else (spans[index][0], spans[index + 1][0])
    between = content[spans[index - 1][1] : spans[index][0]] if last else content[spans[index][1] : end]
    return Edit(start, end, "") if between.strip() == "," else None


def _insertion(section: Field, text: str, plain: bool) -> Edit | None:
    """The edit that puts `key: value` into a mapping: before its first key, or between its empty braces."""
    target = section.target
    if section.use is not None or isinstance(section.node, Alias) or _is_shared(section):
        return None
    content = section.document.text.content
    if not isinstance(target, Mapping):
        return None
    if target.flow:
        value = text.partition(":")[2].strip()
        if content[target.start : target.start + 1] != "{" or (plain and not _PLAIN.fullmatch(value)):
            return None
        return Edit(target.start + 1, target.start + 1, f"{text}, " if target.pairs else text)
    if not target.pairs:
        return None
    first = target.pairs[0][0].start
    line = _line_of(section, first)
    indent = content[line:first]
    if indent.strip() not in ("", "-") or content[line:first].count("-") > 1:
        return None
    return Edit(first, first, f"{text}{_line_end(content)}{' ' * len(indent)}")


def _line_end(content: str) -> str:
    """How the lines of a text end."""
    return next((end for end in ("\r\n", "\n", "\r") if end in content), "\n")
