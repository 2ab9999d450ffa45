"""Command lines: which programs a workflow, manifest, script, Makefile or Dockerfile starts, word by word.

Shell text is read leniently, and every word keeps its place, so that a finding points at the word itself, also inside a
block scalar. Words that a shell or a template fills in (`$PRESET`, `$(…)`, `${{ … }}`) are Unknown.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import dropwhile
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from trainlint.budget import BUDGET
from trainlint.reading.document import Document, Scalar
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Absent, Field, Unknown, Value
from trainlint.records import NamedTuple, dataclass
from trainlint.repository import fences
from trainlint.repository.discover import SUFFIXES
from trainlint.repository.shell import SHELLS, ShellText, Word, commands_of, exec_word, name_of, script_of

if TYPE_CHECKING:
    from trainlint.repository.files import Repository

SCRIPT_SUFFIXES = (
    ".sh", ".bash", ".slurm", ".sbatch", ".mk", "makefile", "dockerfile", "containerfile", "justfile"
)  # fmt: skip
_SCRIPT_KEYS = frozenset(
    "after_script bash before_script cmd cmds commands run script setup setup_commands source start".split()
)
_EXEC_KEYS = ("entrypoint", "command", "args", "arguments")
_FOLDER_KEYS = ("working-directory", "working_directory", "workingDirectory", "workingDir", "working_dir", "workdir")
_QUOTING_COMMANDS = frozenset("alias cat echo git grep log man pip pip3 printf rg sed type which".split())


class Command(NamedTuple):
    """How a program is started, and how its flags take values.

    `starts` are the words that name it (`("soup", "train")`, `("soup_cli.cli", "train")`); flags may come between them,
    and a path before the first is ignored. `marker` is a pattern that every text with the program matches. A flag in
    `bare` takes no value, one in `counts` so many; any other takes the next word unless that looks like a flag.
    `ends_at_script`, for launchers: the words after the first positional belong to the launched script.
    """

    name: str
    starts: tuple[tuple[str, ...], ...]
    marker: str
    bare: Collection[str] = frozenset()
    counts: Mapping[str, int] = MappingProxyType({})
    dashes_as_underscores: bool = False
    ends_at_script: bool = False

    def spelling(self, flag: str) -> str:
        """The form of a flag for comparison: `--num-processes` is `--num_processes` if the program accepts both."""
        return "--" + flag[2:].replace("-", "_") if self.dashes_as_underscores and flag.startswith("--") else flag


@dataclass
class Flag:
    """A flag with its values."""

    name: Word
    values: list[Word]


@dataclass(eq=False)
class Invocation:
    """A program that a command line starts.

    `before` are the words in front (environment, launcher), `program` those that name it, `words` the following ones.
    `folder` is where it starts, relative to the folder of the workspace or of the file, None where that is not known.
    `owner` is the YAML mapping around it (a workflow's step, a container), None in a script. `elsewhere`: the text is
    passed to another machine, a container or a queue (`ssh host '…'`, `docker run image sh -c '…'`). `stored`: it is
    the text of a variable, and who runs it may add words.
    """

    command: Command
    before: list[Word]
    program: list[Word]
    words: list[Word]
    folder: str | None
    owner: Field | None
    elsewhere: bool = False
    stored: bool = False

    owns_document = False

    @cached_property
    def field(self) -> Field:
        """The words that name the program, or the last of them where they are not adjacent."""
        first, last = self.program[0], self.program[-1]
        if first.line is not last.line or "\n" in first.line.text[first.span[0] : last.span[1]]:
            return last.field
        return first.line.field(self.name, first.span[0], last.span[1])

    @property
    def name(self) -> str:
        """The words that name the program: `soup train`."""
        return " ".join(word.text for word in self.program).lstrip("@-+")

    @property
    def document(self) -> Document:
        """The document with the command."""
        return self.program[0].line.source.document

    @cached_property
    def _parsed(self) -> tuple[list[Flag], list[Word], list[Word]]:
        return _parse(self.command, self.words)

    @property
    def flags(self) -> list[Flag]:
        """The program's flags, in order."""
        return self._parsed[0]

    @property
    def positionals(self) -> list[Word]:
        """The words that are neither flags nor their values; for a launcher only the script."""
        return self._parsed[1]

    @property
    def rest(self) -> list[Word]:
        """The words that a launcher passes to its script."""
        return self._parsed[2]

    @property
    def is_open(self) -> bool:
        """A word that is filled in later may add flags that are not in the file."""
        return self.stored or any(word.known is None for word in self.positionals)

    def given(self, *names: str) -> Flag | None:
        """The last flag with one of these names."""
        found = [at for name in names if (at := self._last.get(self.command.spelling(name))) is not None]
        return self.flags[max(found)] if found else None

    @cached_property
    def _last(self) -> dict[str, int]:
        """The number of the last flag of each spelling."""
        return {self.command.spelling(flag.name.text): number for number, flag in enumerate(self.flags)}

    def named_by(self, *names: str) -> str | None:
        """The name of the file in the last flag with one of these names."""
        found = self.given(*names)
        return found.values[0].file_name if found is not None and found.values else None

    def has(self, *names: str) -> bool:
        """There is a flag with one of these names."""
        return self.given(*names) is not None

    def flag(self, *names: str) -> Value[str]:
        """The value of the last flag with one of these names.

        Absent (at the place of the program's name) where it is not given, Unknown where a word that is filled in later
        may give it.
        """
        found = self.given(*names)
        if found is None:
            return Unknown(self.field) if self.is_open else Absent(self.field)
        return found.values[0].value if found.values else Unknown(found.name.field)


def invocations_in(document: Document, wanted: Iterable[Command]) -> list[Invocation]:
    """The wanted programs that a YAML document starts.

    `run:`, `script:` and the like are read as shell text; `command:`, `args:` and `entrypoint:` of one mapping are the
    words of one command.
    """
    content, root = document.text.content, document.root
    commands = [command for command in wanted if _pattern(command.marker).search(content, root.start, root.end)]
    found: list[Invocation] = []
    left = BUDGET.script
    if commands:
        for mapping in _mappings(Field.root(document, Dialect.PYYAML)):
            if not any(_may_hold_commands(entry.name) for entry in mapping.entries()):
                continue
            finder = _Finder(commands, mapping, _folder_of(mapping))
            finder.read_exec([mapping.get(key) for key in _EXEC_KEYS])
            for entry in mapping.entries():
                if _holds_script(entry.name):
                    items = entry.items() or [entry]
                    if any(_pattern(c.marker).search(item.written) for c in commands for item in items):
                        for item in items:
                            left -= len(item.written)
                            finder.read_script(ShellText.of(item) if left >= 0 else None)
            found.extend(finder.found)
    return found


def _holds_script(key: str) -> bool:
    return key in _SCRIPT_KEYS or key.endswith(".sh")


def _may_hold_commands(key: str) -> bool:
    return key in _EXEC_KEYS or _holds_script(key)


def invocations_in_script(document: Document, wanted: Iterable[Command]) -> list[Invocation]:
    """The wanted programs that a script, Makefile or Dockerfile starts (a document of one scalar)."""
    content = document.text.content
    commands = [command for command in wanted if _pattern(command.marker).search(content)]
    if not commands:
        return []
    name = PurePosixPath(document.path).name.lower()
    finder = _Finder(commands, None, "")
    content = content[: BUDGET.script]
    text = ShellText(Field.root(document, Dialect.PYYAML), content, range(len(content)))
    if name.endswith(("dockerfile", "containerfile")):
        finder.read_dockerfile(text)
    else:
        finder.read_script(text, each_line_alone=name.endswith(("makefile", ".mk", "justfile")))
    return finder.found


def repository_invocations(repository: Repository, wanted: Command) -> list[Invocation]:
    """Every start of a program in the workspace's YAML files, scripts, Makefiles and Dockerfiles, by file."""
    return repository.once(("invocations", wanted.name), lambda: list(_repository_invocations(repository, wanted)))


def _repository_invocations(repository: Repository, wanted: Command) -> Iterator[Invocation]:
    from trainlint.reading.text import Undecodable

    pattern = _pattern(wanted.marker)
    for file in repository.with_commands(SUFFIXES):
        try:
            documents = repository.documents(file, pattern)
        except OSError:
            continue
        for document in documents:
            with repository.companion(document.path):
                yield from invocations_in(document, [wanted])
    for file in repository.with_commands(SCRIPT_SUFFIXES):
        try:
            document = repository.script(file)
        except (OSError, Undecodable):
            continue
        with repository.companion(document.path):
            found = invocations_in_script(document, [wanted])
            if found and len(document.text.content) > BUDGET.script:
                repository.note(f"{document.path}: commands are read in its first {BUDGET.script:,} characters only")
            yield from found


def documented_invocations(
    repository: Repository, wanted: Command, files: Sequence[str] | None = None
) -> list[Invocation]:
    """Every start of a program in the fenced blocks of a README, or of these files, from a folder that is not known.

    What a README shows need not be what runs; it tells what a file is for where nothing else does.
    """
    if files is not None:
        return list(_documented(repository, wanted, files))
    every = repository.with_commands(fences.SUFFIXES)
    return repository.once(("documented", wanted.name), lambda: list(_documented(repository, wanted, every)))


def _documented(repository: Repository, wanted: Command, files: Sequence[str]) -> Iterator[Invocation]:
    from trainlint.reading.text import Undecodable

    for file in files:
        try:
            document = repository.script(file)
        except (OSError, Undecodable):
            continue
        content = document.text.content[: BUDGET.script]
        finder = _Finder([wanted], None, None)
        with repository.companion(document.path):
            for language, start, end in fences.fences(content) if _pattern(wanted.marker).search(content) else ():
                if language in fences.SHELLS:
                    text = fences.without_prompts(content[start:end])
                    finder.read_script(ShellText(Field.root(document, Dialect.PYYAML), text, range(start, end)))
        yield from finder.found


def invocations_naming(
    repository: Repository,
    document: Document,
    wanted: Command,
    names: Callable[[Invocation], Iterable[str | None]],
    *,
    documented: bool = False,
) -> Sequence[Invocation]:
    """The starts of a program that name the file of a document, or those that a README shows.

    `names` is a function of a module. All starts are looked through once, not once for each file.
    """

    def found() -> dict[str, list[Invocation]]:
        by_path: dict[str, list[Invocation]] = {}
        for invocation in (documented_invocations if documented else repository_invocations)(repository, wanted):
            files = (named_file(repository, invocation, name) for name in names(invocation) if name)
            for path in dict.fromkeys(display_path(file) for file in files if file is not None):
                by_path.setdefault(path, []).append(invocation)
        return by_path

    from trainlint.repository.files import display_path

    return repository.once(("naming", wanted.name, names, documented), found).get(document.path, ())


def named_file(repository: Repository, invocation: Invocation, name: str) -> Path | None:
    """The file of the workspace that a word of an invocation names; None where there is none, or more than one.

    A relative name is resolved from the folder where the program starts, both from the workspace and from the file with
    the command. A path in a container (`/app/soup.yaml`), or from an unknown folder, is compared by its end.
    """
    return repository.once(("named", invocation, name), lambda: _named_file(repository, invocation, name))


def _named_file(repository: Repository, invocation: Invocation, name: str) -> Path | None:
    folder = invocation.folder
    if folder is not None and not posixpath.join(folder, name).startswith(("/", "~")):
        holder = Path(invocation.document.path).absolute().parent
        found = [base / posixpath.normpath(posixpath.join(folder, name)) for base in (repository.root, holder)]
        files = [file for file in dict.fromkeys(found) if repository.find(file)]
        is_one = len(files) == 1 or len({file.resolve() for file in files}) == 1
        return files[-1] if is_one else None
    path = posixpath.normpath(posixpath.join(folder or "", name))
    parts = PurePosixPath(path.lstrip("/")).parts
    by_name = repository.once("files by name", lambda: _by_name(repository.files))
    alike = by_name.get(parts[-1], []) if parts else []
    for start in range(len(parts) if path.startswith("/") and alike else 1):
        tail = "/" + "/".join(parts[start:])
        matches = [file for file in alike if ("/" + file.as_posix()).endswith(tail)]
        if matches:
            return matches[0] if len(matches) == 1 else None
    return None


def _by_name(files: Iterable[Path]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for file in files:
        found.setdefault(file.name, []).append(file)
    return found


def may_be_elsewhere(repository: Repository, invocation: Invocation, name: str) -> bool:
    """A word of an invocation names a file that is, or may be, outside the workspace, where nothing is looked up."""
    path = posixpath.join(invocation.folder or "", name)
    holder = Path(invocation.document.path).absolute().parent
    return path.startswith(("/", "~")) or any(
        repository.is_outside(base / posixpath.normpath(path)) for base in (repository.root, holder)
    )


# finding them


class _Finder:
    """Reads commands in order and follows `cd`."""

    def __init__(self, wanted: Sequence[Command], owner: Field | None, folder: str | None) -> None:
        self.wanted = wanted
        self.owner = owner
        self.folder = folder
        self.elsewhere = self.stored = False
        self.depth = 0
        self.found: list[Invocation] = []

    def read_script(self, text: ShellText | None, *, each_line_alone: bool = False) -> None:
        """The commands of shell text."""
        if text is None or self.depth > BUDGET.command:
            return
        outer: list[str | None] = []
        start = self.folder
        for item in commands_of(text):
            if item == "(":
                outer.append(self.folder)
            elif item == ")":
                self.folder = outer.pop() if outer else self.folder
            elif item == "\n":
                self.folder = start if each_line_alone else self.folder
            elif not isinstance(item, str):
                self.read_command(item)

    def read_exec(self, fields: Sequence[Field]) -> None:
        """The words of entrypoint, command and args together; a single text is a whole command line."""
        given = [field for field in fields if not field.is_absent]
        if len(given) == 1 and not given[0].is_sequence:
            self.read_script(ShellText.of(given[0]))
            return
        words: list[Word] = []
        for field_ in given:
            text = ShellText.of(field_)
            if field_.is_sequence:
                words += [word for item in field_.items() if (word := exec_word(item))]
            elif text is not None:
                words += [word for command in commands_of(text) if not isinstance(command, str) for word in command]
        self.read_command(words)

    def read_dockerfile(self, text: ShellText) -> None:
        """Instructions in shell form or as a list; the entry point comes before the command."""
        entry: list[Word] = []
        default: list[Word] = []
        for item in [*commands_of(text, listed=True), _stage_end(text)]:
            if isinstance(item, str):
                continue
            head = item[0].text.upper()
            if head == "WORKDIR" and len(item) > 1:
                self.folder = _joined(self.folder, item[1])
            elif head == "ENTRYPOINT":
                entry = item[1:]
            elif head == "CMD":
                default = item[1:]
            elif head == "FROM":
                self.read_command([*entry, *default])
                entry, default = [], []
            else:
                self.read_command(item)

    def read_command(self, words: list[Word]) -> None:
        """One simple command: the programs that it starts, also in a script that it passes to a shell."""
        rest = list(dropwhile(lambda word: re.match(r"[A-Za-z_]\w*=", word.text), words))
        if not rest:
            self._read_stored(words)
            return
        if name_of(rest[0]) == "cd":
            self.folder = _joined(self.folder, rest[1]) if len(rest) > 1 else None
            return
        script = script_of(rest)
        if script is not None:
            folder, elsewhere = self.folder, self.elsewhere
            self.elsewhere = elsewhere or name_of(rest[0]) not in SHELLS
            self.depth += 1
            self.read_script(script.line.inside(script))
            self.depth -= 1
            self.folder, self.elsewhere = folder, elsewhere
            return
        for command in self.wanted:
            for start in command.starts:
                match = _match(words, start)
                if match and name_of(rest[0]) not in _QUOTING_COMMANDS - {start[0]}:
                    first, last = match
                    program = [words[first], *(w for w in words[first + 1 : last] if not w.text.startswith("-"))]
                    found = Invocation(command, words[:first], program, words[last:], self.folder, self.owner)
                    found.elsewhere, found.stored = self.elsewhere, self.stored
                    self.found.append(found)
                    break

    def _read_stored(self, assignments: Sequence[Word]) -> None:
        """The commands that variables hold: `eval $COMMAND` runs them, or `$COMMAND` itself."""
        names = {start[0] for command in self.wanted for start in command.starts}
        for word in assignments:
            value = word.part(word.text.index("=") + 1)
            first = next((part for part in value.text.split(None, 20) if "=" not in part), "")
            if " " in value.text and posixpath.basename(first) in names:
                folder = self.folder
                self.depth += 1
                self.stored = True
                self.read_script(value.line.inside(value))
                self.stored = False
                self.depth -= 1
                self.folder = folder


def _stage_end(text: ShellText) -> list[Word]:
    return [Word(text, "FROM", (), (), (0, 0))]


def _match(words: Sequence[Word], start: tuple[str, ...]) -> tuple[int, int] | None:
    """Where the words of a start stand: the first, and behind the last; flags may come between them."""
    for first, word in enumerate(words):
        if name_of(word) != start[0]:
            continue
        last = first
        for wanted in start[1:]:
            last = next((i for i in range(last + 1, len(words)) if not words[i].text.startswith("-")), len(words))
            if last == len(words):
                # Only flags follow, and they follow every later start as well.
                return None
            if words[last].text != wanted:
                break
        else:
            return first, last + 1
    return None


def _joined(folder: str | None, word: Word) -> str | None:
    known = word.known
    if known is None or folder is None or known == "-" or known.startswith("~"):
        return None
    joined = posixpath.normpath(posixpath.join(folder, known))
    return joined if len(joined) <= BUDGET.path else None


def _folder_of(mapping: Field) -> str | None:
    """The working directory that a step or container, or the job or workflow around it, names."""
    for key in _FOLDER_KEYS:
        folder = mapping.get(key).text()
        if folder.given:
            return folder.known
    around = mapping.parent
    while around is not None:
        folder = around.at("defaults", "run", "working-directory").text()
        if folder.given:
            return folder.known
        around = around.parent
    return ""


def _mappings(root: Field) -> Iterator[Field]:
    stack, seen = [root], set()
    while stack:
        field = stack.pop()
        if id(field.target) in seen:
            continue
        seen.add(id(field.target))
        if field.is_mapping:
            yield field
        children = [*field.entries(), *field.items()]
        stack.extend(child for child in reversed(children) if not isinstance(child.target, Scalar))


# flags


def _parse(command: Command, words: Sequence[Word]) -> tuple[list[Flag], list[Word], list[Word]]:
    flags: list[Flag] = []
    positionals: list[Word] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if word.text == "--":
            positionals += words[index:]
            break
        if len(word.text) < 2 or word.text[0] != "-" or re.match(r"-[.\d]", word.text):
            positionals.append(word)
            if command.ends_at_script and word.known is not None:
                return flags, positionals, list(words[index:])
            continue
        equals = word.text.find("=")
        if word.text.startswith("--") and equals > 0:
            flags.append(Flag(word.part(0, equals), [word.part(equals + 1)]))
            continue
        name = command.spelling(word.text)
        count = 0 if name in command.bare else command.counts.get(name)
        if count is None:
            count = int(index < len(words) and not re.match(r"--?[A-Za-z]", words[index].text))
        flags.append(Flag(word, list(words[index : index + count])))
        index += count
    return flags, positionals, []


@cache
def _pattern(marker: str) -> re.Pattern[str]:
    return re.compile(marker)
