"""What the repository's own Python code tells about configuration files; it is never imported.

Only files that contain the wanted bytes are parsed, by python_module.py; files that cannot be parsed are ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from trainlint.budget import BUDGET
from trainlint.lazy import regex
from trainlint.repository.files import display_path

if TYPE_CHECKING:
    from trainlint.repository.files import Repository
    from trainlint.repository.python_module import Class, Module

T = TypeVar("T")

MAX_TOTAL = 64_000_000
"""All Python files together that are kept in memory."""

_OMEGACONF = regex(rb"\bOmegaConf\.(?:load|create|unsafe_merge|merge)\b|@hydra\.main\b|\bhydra\.compose\b")
_WHOLE_FILE = regex(rb"\bparse_yaml_file\b|\bparse_args_and_config\b|\bparse_args_into_dataclasses\b|\bTrlParser\b")
_PARSERS = regex(rb"(?:Argument|Arguments|Arg|Trl|H4|Hf\w{0,40})Parser\(|\b(?:cli|parse)\(")
"""A cheap test for what `_is_parser` finds."""
_WHOLE_PARSERS = regex(rb"(?:\w(?:Argument|Arguments|Arg)|Trl|H4|Hf\w{0,40})Parser\(")
_HANDED_ON = regex(rb"\bHfArgumentParser\b|\bparse_dict\b|(?:Arguments|Config)\(\*\*")
_FILLED = regex(rb"\b([A-Z]\w{0,60}(?:Arguments|Args|Config))\(\*\*")
_MADE = regex(rb"\b([A-Z]\w{0,60}(?:Arguments|Config))\(")
_TRAINER = regex(rb"^[ \t]*class\s+\w+\s*\([^)]{0,200}Trainer\b", re.MULTILINE)
_INTO_OPTIONS = regex(
    rb"\bset_defaults\(\s*\*\*|\bNamespace\(\s*\*\*|\bvars\(\w+\)\.update\(|\b__dict__\.update\(|\bsetattr\(\s*\w*args\b"
)
_SCHEDULES = regex(rb"\bget_(?:\w+_)?schedule(?:r|_with_\w+)?\(|\b(?:def create|create_optimizer_and)_scheduler\(")
_CONFIG_PATH = regex(rb"\bhydra\.(?:main|initialize)\([^()]{0,300}\bconfig_path\s*=\s*[\"']([^\"'\n\\]{1,200})[\"']")
_PICKED = 2
"""So many keys make code the reader of a file, at the least."""
_NAMES_TRAINER = regex(rb"\b\w*Trainer\b|\bTrainingArguments\b")
_LOADS = regex(rb"\byaml\.\w*load\w*\b|\bsafe_load\b|\bYAML\(|\bOmegaConf\.load\b|\bjson\.load\b|\btoml")


class PythonCode:
    """The Python files of one repository, found by their content."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._modules: dict[Path, Module | None] = {}
        self._defined: dict[str, bool] = {}
        self._given: dict[Callable[[str], bool], tuple[Mapping[str, Sequence[object]], frozenset[str]]] = {}
        self._replaced: dict[tuple[str, str], bool] = {}

    @cached_property
    def _texts(self) -> Sequence[tuple[Path, bytes]]:
        found: list[tuple[Path, bytes]] = []
        total = 0
        for file in self._repository.files_named((".py",)):
            try:
                data = self._repository.read(file)
            except OSError:
                continue
            if len(data) <= BUDGET.code and total + len(data) <= MAX_TOTAL:
                found.append((file, data))
                total += len(data)
        return found

    @cached_property
    def _data(self) -> dict[Path, bytes]:
        return dict(self._texts)

    def _holding(self, *needles: bytes) -> Iterator[tuple[Path, bytes]]:
        return ((file, data) for file, data in self._texts if all(needle in data for needle in needles))

    def defines(self, name: str) -> bool:
        """The repository has a class with this field or an option of this name, or its code reads such an argument.

        If any classes are passed to an argument parser, only they and their bases count.
        """
        if name not in self._defined:
            self._defined[name] = self._defines(name)
        return self._defined[name]

    def _defines(self, name: str) -> bool:
        needle = _utf8(name)
        fields: set[str] = set()
        for file, _ in self._holding(needle):
            module = self._module(file)
            if module is None:
                continue
            if name in module.options or name in module.read:
                return True
            fields.update(found.name for found in module.classes if name in found.fields)
        return bool(fields & self._read_by_parsers) if self._read_by_parsers else bool(fields)

    def fills(self, key: str, path: str, apart: Collection[str] = ()) -> bool:
        """Code may fill this key in before the file is used: it names the file, or stores the key in a mapping.

        What lies in folders with the names in `apart` does not do so.
        """
        if self.names_file(path):
            return True
        for file, _ in self._holding(_utf8(key)):
            module = self._module(file) if not apart or set(file.parts).isdisjoint(apart) else None
            if module is not None and key in module.stored:
                return True
        return False

    def replaces_value(self, key: str, word: str) -> bool:
        """Code that loads settings compares values with this word, and sets the key: the word is not what is used."""
        if (key, word) not in self._replaced:
            modules = (
                self._module(file) for file, data in self._holding(_utf8(word), _utf8(key)) if _LOADS.search(data)
            )
            self._replaced[key, word] = any(
                module is not None and word in module.compared and key in module.stored | module.given
                for module in modules
            )
        return self._replaced[key, word]

    def holds_text(self, word: str) -> bool:
        """A Python file contains this word in quotes."""
        return any(name in data for name in _quoted(word) for _, data in self._texts)

    def registers(self, function: str, word: str) -> bool:
        """A Python file that calls this function contains this word in quotes."""
        calling = [data for _, data in self._holding(_utf8(f"{function}("))]
        return any(name in data for name in _quoted(word) for data in calling)

    def may_list(self, name: str, word: str) -> bool:
        """The list of this name in a Python file has the word, or is computed, so that it may have it."""
        modules = (self._module(file) for file, _ in self._holding(_utf8(name)))
        lists = (found for module in modules if module is not None for found in module.lists)
        return any(texts is None or word in texts for listed, texts in lists if listed == name)

    def reads_key(self, key: str) -> bool:
        """A Python file reads this key from a mapping."""
        modules = (self._module(file) for file, _ in self._holding(_utf8(key)))
        return any(module is not None and key in module.keys for module in modules)

    def makes(self, name: str) -> bool:
        """A Python file defines a class or a function of this name."""
        defined = re.compile(rb"^[ \t]*(?:class|def)[ \t]+%s\b" % re.escape(_utf8(name)), re.MULTILINE)
        return any(defined.search(data) for _, data in self._holding(_utf8(name)))

    def replaces(self, name: str) -> bool:
        """A Python file defines a class of this name that is not derived from one of the same name."""
        modules = (self._module(file) for file, _ in self._holding(b"class " + _utf8(name)))
        classes = (found for module in modules if module is not None for found in module.classes)
        return any(found.name == name and name not in found.bases for found in classes)

    @cached_property
    def computes_losses(self) -> bool:
        """A Python file with a class derived from a trainer asks for the loss by its name."""
        return any(_TRAINER.search(data) for _, data in self._holding(b"loss_type", b"Trainer"))

    @cached_property
    def schedules(self) -> bool:
        """A Python file makes a schedule of learning rates itself, or has a trainer of its own do so."""
        return any(_SCHEDULES.search(data) for _, data in self._texts)

    @cached_property
    def has_trainer(self) -> bool:
        """A Python file names a Trainer or its arguments."""
        return any(_NAMES_TRAINER.search(data) for _, data in self._texts)

    @cached_property
    def loads_alone(self) -> bool:
        """Some Python file loads files of settings, and none passes all keys of one to a parser or a dataclass."""
        loads = any(_LOADS.search(data) for _, data in self._texts)
        return loads and not any(_WHOLE_FILE.search(data) or _HANDED_ON.search(data) for _, data in self._texts)

    def module(self, path: Path) -> Module | None:
        """What one file of the repository tells; None if it is not one of its Python files."""
        wanted = os.path.abspath(path)
        return next((self._module(file) for file, _ in self._texts if os.path.abspath(file) == wanted), None)

    def names_file(self, path: str) -> bool:
        """A Python file contains this file's name."""
        return any(True for _ in self._holding(os.fsencode(PurePosixPath(path).name)))

    def reads_itself(self, path: str) -> bool:
        """A Python file with this file's name loads YAML itself, and passes no whole file to an argument parser."""
        found = [data for _, data in self._holding(os.fsencode(PurePosixPath(path).name)) if _LOADS.search(data)]
        return bool(found) and not any(_WHOLE_FILE.search(data) for data in found)

    def reads_into_options(self, keys: Collection[str]) -> Path | None:
        """A Python file that loads settings into the options of its own parser, which are most of these keys."""
        for file, data in self._loading:
            module = self._module(file) if _INTO_OPTIONS.search(data) else None
            if module is not None and 2 * len(module.options.intersection(keys)) > len(keys):
                return file
        return None

    @cached_property
    def _loading(self) -> Sequence[tuple[Path, bytes]]:
        """The Python files that load settings from files."""
        return [(file, data) for file, data in self._texts if _LOADS.search(data)]

    def picks(self, foreign: Collection[str], is_config: Callable[[str], bool]) -> Path | None:
        """A Python file that loads settings and picks most of these keys, which no config of a trainer has, itself.

        It hands no whole mapping to a parser, or to a config of a trainer.
        """
        wanted = max(_PICKED, (len(foreign) + 1) // 2)
        for file, data in self._loading if len(foreign) >= wanted else ():
            named = sum(_utf8(key) in data for key in foreign)
            if named < wanted or _WHOLE_FILE.search(data):
                continue
            module = self._module(file)
            if module is None or any(map(is_config, module.filled)):
                continue
            if len(module.keys.intersection(foreign)) >= wanted:
                return file
        return None

    def composes(self, path: str, is_config: Callable[[str], bool]) -> Path | None:
        """A Python file for which Hydra composes settings of the folder that this file is in, or below.

        None where code makes a config of a trainer of a mapping: what Hydra composes may get there.
        """
        wanted = os.path.abspath(path)
        for file, folder in self._composed:
            if wanted.startswith(folder):
                made = {name.decode() for _, text in self._holding(b"**") for name in _FILLED.findall(text)}
                return None if any(map(is_config, self._with_bases(made))) else file
        return None

    @cached_property
    def _composed(self) -> Sequence[tuple[Path, str]]:
        """The folders from which Hydra composes settings, each behind the Python file that says so."""
        return [
            (file, os.path.join(os.path.abspath(os.path.join(file.parent, os.fsdecode(folder))), ""))
            for file, data in self._holding(b"hydra")
            for folder in _CONFIG_PATH.findall(data)
        ]

    def reads_with_omegaconf(self, path: str) -> bool:
        """A Python file that uses OmegaConf contains the name of this file or of its folder."""
        pure = PurePosixPath(path)
        names = [os.fsencode(name) for name in (pure.name, pure.stem, pure.parent.name) if name]
        return any(
            _OMEGACONF.search(data) is not None and any(name in data for name in names) for _, data in self._texts
        )

    def parsers_near(self, path: str) -> list[tuple[str, Path]]:
        """The parsers of whole files that are made in Python files nearest to a file, with these files."""
        found = [
            (parser, file)
            for file, data in self._holding(b"Parser(")
            if _WHOLE_PARSERS.search(data) and (module := self._module(file)) is not None
            for parser in sorted(module.parsers)
        ]
        return _nearest(path, found, lambda one: one[1])

    def made_of_section(self, path: str, section: str) -> frozenset[str] | None:
        """What the nearest code that reads a section of a file makes of mappings: classes, with their bases.

        None if no code loads files, or makes a class of a mapping, and has the section's name in quotes.
        """
        quoted = _quoted(section)
        found = [
            (file, data)
            for file, data in self._texts
            if any(name in data for name in quoted) and (b"(**" in data or b", **" in data or _LOADS.search(data))
        ]
        nearest = _nearest(path, found, lambda one: one[0])
        modules = [module for file, _ in nearest if (module := self._module(file)) is not None]
        made = {name for module in modules for name in module.filled}
        made |= {"parse_dict" for _, data in nearest if b"parse_dict" in data}
        return self._with_bases(made) if nearest else None

    def types_of(self, name: str) -> Sequence[frozenset[str]]:
        """The types that the classes which take settings give a field of this name."""
        return self._taken.get(name, ())

    def gives(self, name: str, default: object, is_config: Callable[[str], bool]) -> bool:
        """A config of the repository has another default for this name, or code makes a config of a mapping and it.

        Such code gives the argument itself, or stores the key in a mapping before.
        """
        if is_config not in self._given:
            found: dict[str, list[object]] = {}
            for taking in self._taking:
                if any(map(is_config, self._with_bases([taking.name]))):
                    for field, own in taking.defaults.items():
                        found.setdefault(field, []).append(own)
            self._given[is_config] = found, frozenset(self._given_beside(is_config))
        defaults, beside = self._given[is_config]
        return name in beside or any(own != default for own in defaults.get(name, ()))

    def _given_beside(self, is_config: Callable[[str], bool]) -> Iterator[str]:
        """The keys that code which makes a config of a mapping gives besides, or stores in mappings."""
        for file, data in self._holding(b"**"):
            makes = any(is_config(name.decode()) for name in set(_MADE.findall(data)))
            module = self._module(file) if makes else None
            if module is not None and any(map(is_config, module.filled)):
                yield from module.stored
                yield from (key for name, key in module.beside if is_config(name))

    @cached_property
    def _taken(self) -> dict[str, list[frozenset[str]]]:
        """The fields of the repository's classes that parsers fill in, or code from a mapping, with their types."""
        found: dict[str, list[frozenset[str]]] = {}
        for taking in self._taking:
            for name, types in taking.fields.items():
                found.setdefault(name, []).append(types)
        return found

    @cached_property
    def _taking(self) -> list[Class]:
        names = {name.decode() for _, data in self._texts for name in _FILLED.findall(data)}
        return list(self._classes(self._read_by_parsers | self._with_bases(names)))

    def owns(self, name: str, is_config: Callable[[str], bool]) -> bool:
        """A class of the repository that takes settings, and is no config of a trainer, has a field of this name."""
        having = (taking.name for taking in self._taking if name in taking.fields)
        return any(not any(map(is_config, self._with_bases([one]))) for one in having)

    def takes_with(self, is_config: Callable[[str], bool]) -> bool:
        """A class of the repository that takes settings is, or is derived from, a config of a trainer."""
        return any(is_config(name) for taking in self._taking for name in (taking.name, *taking.bases))

    def fills_null(self, name: str) -> bool:
        """A file with a class that takes settings, or with a parser, sets this attribute where it is None."""
        return name in self._nulls_filled

    @cached_property
    def _nulls_filled(self) -> frozenset[str]:
        files = {file for taking in self._taking for file, _ in self._holding(b"class " + _utf8(taking.name))}
        files |= {file for file, data in self._holding(b"Parser(") if _PARSERS.search(data)}
        modules = [module for file in files if (module := self._module(file)) is not None]
        return frozenset().union(*(module.nulls_filled for module in modules))

    @cached_property
    def _read_by_parsers(self) -> frozenset[str]:
        """The classes that argument parsers fill in, with their bases in the repository."""
        parsed: set[str] = set()
        for file, data in self._holding(b"Parser("):
            module = self._module(file) if _PARSERS.search(data) else None
            parsed.update(module.parsed if module is not None else ())
        return self._with_bases(parsed)

    def _with_bases(self, names: Iterable[str]) -> frozenset[str]:
        """Classes with all their bases."""
        waiting = list(names)
        reached: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting.extend(base for found in self._classes([name]) for base in found.bases)
        return frozenset(reached)

    def _classes(self, names: Iterable[str]) -> Iterator[Class]:
        """The repository's classes of these names."""
        for name in names:
            modules = (self._module(file) for file, _ in self._holding(b"class " + _utf8(name)))
            classes = (found for module in modules if module is not None for found in module.classes)
            yield from (found for found in classes if found.name == name)

    def _module(self, file: Path) -> Module | None:
        if file not in self._modules:
            # It needs `ast`, which costs a start more than to find out that there is no Python code.
            from trainlint.repository.python_module import parse

            self._modules[file] = None
            with self._repository.companion(display_path(file)):
                self._modules[file] = parse(self._data[file])
        return self._modules[file]


class OwnReader:
    """What the repository's own code does with one configuration file; nothing if there is no code."""

    def __init__(self, code: PythonCode | None = None, path: str = "") -> None:
        self._code = code
        self._path = path

    def defines(self, name: str) -> bool:
        """A key of the file is a field of a class or an option in the repository."""
        return self._code is not None and self._code.defines(name)

    def fills(self, key: str, apart: Collection[str] = ()) -> bool:
        """Code outside of some folders may fill in this key, which the file lacks, before the file is used."""
        return self._code is not None and self._code.fills(key, self._path, apart)

    @cached_property
    def parser(self) -> tuple[str, str]:
        """The one parser of whole files that the nearest code uses, and a file with it; empty where there are more."""
        found = self._code.parsers_near(self._path) if self._code is not None else []
        names = {name for name, _ in found}
        return (found[0][0], display_path(found[0][1])) if len(names) == 1 else ("", "")

    def made_of(self, section: str) -> frozenset[str] | None:
        """The classes, with their bases, that the nearest code which reads a section makes of mappings."""
        return self._code.made_of_section(self._path, section) if self._code is not None else None

    def replaces_value(self, key: str, word: str) -> bool:
        """Code sets this key itself where the file has this word."""
        return self._code is not None and self._code.replaces_value(key, word)

    def knows_word(self, word: str) -> bool:
        """The repository's code contains this word in quotes."""
        return self._code is not None and self._code.holds_text(word)

    def registers(self, function: str, word: str) -> bool:
        """The repository's code registers this word with a function of the program."""
        return self._code is not None and self._code.registers(function, word)

    def may_list(self, name: str, word: str) -> bool:
        """A list of this name in the repository's code has the word, or is computed, so that it may have it."""
        return self._code is not None and self._code.may_list(name, word)

    def makes(self, name: str) -> bool:
        """The repository's code defines a class or a function of this name."""
        return self._code is not None and self._code.makes(name)

    def replaces(self, name: str) -> bool:
        """The repository has a class of its own in the place of one of this name, not derived from it."""
        return self._code is not None and self._code.replaces(name)

    def types_of(self, name: str) -> Sequence[frozenset[str]]:
        """The types that the repository's classes which take settings give a field of this name."""
        return self._code.types_of(name) if self._code is not None else ()

    def gives(self, name: str, default: object, is_config: Callable[[str], bool]) -> bool:
        """The repository's code gives an argument that the file leaves out another value than the default."""
        return self._code is not None and self._code.gives(name, default, is_config)

    def owns(self, name: str, is_config: Callable[[str], bool]) -> bool:
        """A class of the repository that takes settings, and is no config of a trainer, has a field of this name."""
        return self._code is not None and self._code.owns(name, is_config)

    def takes_with(self, is_config: Callable[[str], bool]) -> bool:
        """A class of the repository that takes settings is, or is derived from, a config of a trainer."""
        return self._code is not None and self._code.takes_with(is_config)

    def fills_null(self, name: str) -> bool:
        """The repository's code sets this argument where the file has null."""
        return self._code is not None and self._code.fills_null(name)

    @property
    def schedules(self) -> bool:
        """Code of the repository makes a schedule of learning rates itself."""
        return self._code is not None and self._code.schedules

    @property
    def computes_losses(self) -> bool:
        """The repository has a trainer of its own that computes losses by their names."""
        return self._code is not None and self._code.computes_losses

    def reads_key(self, key: str) -> bool:
        """The repository's code reads this key from a mapping."""
        return self._code is not None and self._code.reads_key(key)

    @property
    def loads_alone(self) -> bool:
        """The repository's code loads files of settings itself, and passes none to an argument parser."""
        return self._code is not None and self._code.loads_alone

    @cached_property
    def takes_apart(self) -> bool:
        """Code of the repository loads the file and reads single keys; no parser reads the whole file."""
        return self._code is not None and self._code.reads_itself(self._path)

    @cached_property
    def uses_omegaconf(self) -> bool:
        """Code of the repository loads the file with OmegaConf, which reads `1e-5` as a number."""
        return self._code is not None and self._code.reads_with_omegaconf(self._path)


def own_reader(repository: Repository, path: str) -> OwnReader:
    """What the repository's own code does with a file; its Python files are read on first use."""
    return OwnReader(python_code(repository), path)


def python_code(repository: Repository) -> PythonCode:
    """The Python files of a repository, which are read on first use."""
    return repository.once("python code", lambda: PythonCode(repository))


def _nearest(path: str, found: Sequence[T], file_of: Callable[[T], Path]) -> list[T]:
    """Those whose files have the longest way down from the root in common with a path."""
    here = os.path.abspath(path)

    def shared(one: T) -> int:
        return len(os.path.commonpath([here, os.path.abspath(file_of(one))]))

    most = max(map(shared, found), default=0)
    return [one for one in found if shared(one) == most]


def _quoted(word: str) -> tuple[bytes, ...]:
    """A text in either kind of quotes."""
    return tuple(quote + _utf8(word) + quote for quote in (b'"', b"'"))


def _utf8(text: str) -> bytes:
    """A text as it stands in a file of Python code; a lone surrogate stands in none."""
    return text.encode("utf-8", "surrogatepass")
