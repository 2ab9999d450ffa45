"""The words of a `tune run` command, and what they change in a recipe's config."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from trainlint.budget import BUDGET
from trainlint.findings import shortened
from trainlint.lazy import regex
from trainlint.programs.torchtune.omegaconf import ConfigNode, split_key
from trainlint.reading.document import Unparsable, documents
from trainlint.reading.scalars import Dialect, plain_value
from trainlint.reading.text import Text
from trainlint.reading.values import Absent, Field, Known, Unknown, Value, is_template
from trainlint.records import dataclass
from trainlint.repository.shell import Word


@dataclass(frozen=True)
class Arg:
    """One word of a command at its place; its key or value is unknown where a shell or a template fills it in."""

    text: str
    field: Field
    key_known: bool = True
    value_known: bool = True

    @classmethod
    def of_word(cls, word: Word) -> Arg:
        """A word of a command line."""
        equals = word.text.find("=")
        cut = equals if equals >= 0 else len(word.text)
        return cls(word.text, word.field, not any(word.hidden[:cut]), not any(word.hidden[cut:]))

    @classmethod
    def of_value(cls, value: Value[str]) -> Arg:
        """An item of a container's `args`."""
        text = value.known if value.known is not None else value.field.written
        key, _, rest = text.partition("=")
        return cls(text, value.field, not filled_in(key), not filled_in(rest))

    @property
    def key(self) -> str:
        """The text before the first `=`."""
        return self.text.partition("=")[0]


@dataclass(frozen=True)
class Override:
    """One argument of a recipe: the `value` of its key, or None where the key is removed.

    `refusal` and `help` are message and help where torchtune refuses it.
    """

    arg: Arg
    key: str
    value: ConfigNode | None = None
    refusal: str = ""
    help: str = ""
    missing: bool = False


@dataclass
class TuneRun:
    """A `tune run` command.

    `own_recipe`: the recipe is, or may be, the user's own module. `config_found`: the config is a file of the
    repository, or may be elsewhere. `launched` is True with torchrun's options, None where something else may have
    started the processes; `alone`: surely nothing has. `base` is the config before the overrides, where it is known,
    and `content` says what its file is where that is no config.
    """

    field: Field
    recipe: Value[str]
    config: Value[str]
    args: list[Arg]
    torchrun: Sequence[Arg] = ()
    launched: bool | None = True
    world_size: int | None = None
    alone: bool = False
    own_recipe: bool = False
    config_found: bool = False
    config_flag: Arg | None = None
    base: ConfigNode | None = None
    content: str = ""
    stated: bool = True
    fork: bool = False
    job: bool = False
    provides: Callable[[str], bool] = lambda name: False

    @cached_property
    def overrides(self) -> list[Override]:
        """The changes to the config, in order."""
        return list(_overrides(self.args, self.base))

    @property
    def merged(self) -> ConfigNode | None:
        """The config with all overrides; None where one is unknown or refused, or nested beyond the budget."""
        if self.base is None or any(o.refusal or not o.arg.key_known for o in self.overrides):
            return None
        if any(o.key.count(".") + o.key.count("[") > BUDGET.depth for o in self.overrides):
            return None
        config = self.base.copy()
        named = [override for override in self.overrides if override.key]
        for override in named:
            if override.value is None:
                config.remove(split_key(override.key))
        for override in named:
            if override.value is not None:
                config.put(split_key(override.key), override.value)
        return config


def config_word(args: list[Arg], place: Field) -> tuple[list[Arg], Value[str], Arg | None]:
    """The other arguments, the config that `--config` names, and the flag."""
    index = next((i for i, arg in enumerate(args) if arg.text == "--config"), None)
    if index is None:
        joined = next((arg for arg in args if arg.key == "--config"), None)
        unclear = any(not arg.key_known for arg in args)
        config: Value[str] = Unknown(place) if unclear else Absent(place)
        return [arg for arg in args if arg is not joined], config, joined
    if index + 1 == len(args):
        return args[:index], Absent(args[index].field), args[index]
    word = args[index + 1]
    known = word.key_known and word.value_known
    config = Known(word.field, word.text) if known else Unknown(word.field)
    return [*args[:index], *args[index + 2 :]], config, args[index]


def _overrides(args: Sequence[Arg], base: ConfigNode | None) -> Iterator[Override]:
    """Each argument as torchtune reads it. Source: _merge_yaml_and_cli_args and the recipes' argument parser."""
    removes = any(arg.text.startswith("~") for arg in args)
    left = base.copy() if base is not None and removes else base
    after_flag = False
    for arg in args:
        key = arg.key
        if not arg.key_known or (after_flag and "=" not in arg.text and not arg.text.startswith("-")):
            yield Override(arg, key)
            after_flag = False
            continue
        after_flag = arg.text.startswith("--") and "=" not in arg.text
        if arg.text.startswith("--"):
            yield Override(
                arg,
                key,
                refusal=f"a recipe takes no flag {key}",
                help="write key=value, and torchrun's options before the recipe",
            )
        elif arg.text.startswith("~"):
            yield _removal(arg, key.removeprefix("~"), left)
        elif arg.value_known and arg.text.count("=") != 1:
            yield Override(
                arg,
                key,
                refusal=f"not a key=value override: {shortened(arg.text, 60)}",
                help="write key=value, with one =",
            )
        elif not key:
            yield Override(arg, key)
        else:
            section = left.mapping.get(key) if left is not None and left.mapping is not None else None
            if section is not None and section.mapping is not None and "_component_" in section.mapping:
                key += "._component_"
            value = _value(arg)
            refusal = "" if value else f"the value of {key} is not valid YAML"
            yield Override(arg, key, value, refusal, "" if value else "write a YAML value, in quotes if it is text")


def _removal(arg: Arg, key: str, left: ConfigNode | None) -> Override:
    if "_component_" in key:
        return Override(arg, key, refusal="a component cannot be removed", help="replace it: section=component")
    if left is None:
        return Override(arg, key)
    node = left.at(key)
    if not node.present:
        return Override(arg, key, refusal=f"the config has no key {key} to remove", help=f"remove ~{key}", missing=True)
    if node.mapping is not None and "_component_" in node.mapping:
        return Override(
            arg, key, refusal=f"{key} is a component and cannot be removed", help=f"replace it: {key}=component"
        )
    left.remove(split_key(key))
    return Override(arg, key)


_PLAIN_WORD = regex(r"[A-Za-z0-9_/][A-Za-z0-9_/.]{0,99}", re.ASCII)
"""A text that any YAML parser reads as one plain scalar."""


def _value(arg: Arg) -> ConfigNode | None:
    """The value of an override, which OmegaConf reads as YAML; None where it is not valid YAML."""
    written = arg.text.partition("=")[2]
    node = ConfigNode(arg.field, None, "")
    if not arg.value_known:
        node.plain = f"{{{{ {written} }}}}"
    elif "max_filename" in arg.key:
        node.plain = written
    elif _PLAIN_WORD.fullmatch(written):
        node.plain = plain_value(written, Dialect.OMEGACONF) if written != "None" else None
    else:
        try:
            found = list(documents("", Text(written)))
        except Unparsable:
            return None
        if found:
            return ConfigNode.of_field(Field.root(found[0], Dialect.OMEGACONF), place=arg.field)
    return node


def filled_in(text: str) -> bool:
    """A template, a shell or Kubernetes (`$(NAME)`) fills in this text."""
    return is_template(text) or "$(" in text
