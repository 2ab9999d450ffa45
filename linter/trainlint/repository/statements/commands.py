"""Commands that install a package, clone its source or start an image of it, in shell text.

Shell text is read in order: variables whose value is written out are filled in, `cd` is followed, and a checkout
belongs to the clone in whose folder it happens.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from trainlint.budget import BUDGET
from trainlint.lazy import regex
from trainlint.reading.document import Scalar, of_text
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field
from trainlint.records import dataclass
from trainlint.repository.shell import ShellText, Word, commands_of, name_of, script_of
from trainlint.repository.statements import kubeflow, kubernetes
from trainlint.repository.statements.model import Form, Include, Kind, Meaning, Statement
from trainlint.repository.statements.origins import images_in, of_address, of_ref, repository_of, with_named_tag
from trainlint.repository.statements.page import Page
from trainlint.repository.statements.requirement import requirement
from trainlint.repository.statements.specifiers import ANY, exact, of_conda, of_poetry

OPEN = "\ufffc"
"""Stands for what a shell or a template fills in later."""
_MAX_CLONES = 50
_MAX_VALUE = 1000
_MAX_WORDS = 2000
_VARIABLE = regex(
    r"\$\{\{\s*(?:env|vars)\.(?P<github>\w+)\s*\}\}|\$\{(?P<braced>\w+)(?:(?P<how>:?[-=]|##?|%%?)(?P<word>[^{}]*))?\}"
    r"|\$\((?P<make>\w+)\)|\$(?P<plain>\w+)|\{\{-?\s*(?P<just>\w+)\s*-?\}\}"
)
_ASSIGNMENT = regex(r"([A-Za-z_]\w*)[:?+]{0,2}=(.*)", re.DOTALL)
_DECLARE = frozenset("export local readonly declare typeset arg env set".split())
_QUOTING = frozenset("echo printf grep egrep rg sed awk alias man which type log cat".split())
_PIP = regex(r"(?:pip|pip\d(?:\.\d{1,2})?)$")
_CONDA = frozenset(("conda", "mamba", "micromamba"))
_FOLDERS = frozenset(("cd", "pushd", "workdir"))
_SYNCS = {"uv": ("sync",), "poetry": ("install", "sync"), "pdm": ("install", "sync"), "pipenv": ("install", "sync")}
_PROJECT = regex(r"\.{1,2}/?(?:\[[^\]]*\])?")
_TARGET = regex(r"[A-Za-z][\w./-]*[ \t]*:(?![=:])")
_INSTRUCTIONS = frozenset("RUN CMD ENTRYPOINT ONBUILD SHELL".split())
_KEYWORDS = frozenset("! { if then else elif do while until sudo time exec nohup command eval".split())
_BUILDERS = frozenset("docker podman nerdctl buildah".split())
_MAKING = frozenset("build push rmi save tag".split())
"""Commands of builders that name an image which is made here, or was made before."""
_CONTAINERS = frozenset("from docker podman nerdctl apptainer singularity enroot".split())
_FILES = frozenset(
    ("-r", "--requirement", "--requirements", "--with-requirements", "-c", "--constraint", "--constraints")
)
_CONDA_FILES = frozenset(("-f", "--file"))
_PACKAGES = frozenset(("-e", "--editable", "--with", "--with-editable", "--from", "--spec"))
_WITH_VALUE = frozenset(
    "-t --target -i --index-url --extra-index-url --find-links --prefix --root --python --cache-dir --log --platform"
    " --group --extra --index --python-version --reinstall-package --upgrade-package --no-binary --only-binary"
    " --optional -G -E --torch-backend --feature --refresh-package --build-constraint".split()
)
_CONDA_WITH_VALUE = frozenset("-n --name -p --prefix -c --channel --feature --platform".split())
"""Options whose value may look like a package that is installed."""
_ALL = 1_000_000
INSTALLS = regex(
    r"\b(?:pip3?(?:\.\d+)?|uv|uvx|pipx|conda|mamba|micromamba|poetry|pdm|pixi|pipenv|rye)\b[^\n]|\bgit\b[^\n]{0,300}\b(?:clone|submodule)\b"
    r"|kubeflow/(?:trainer|training-operator)|kubeflow-trainer|axolotl(?:ai)?/|winglian/|hiyouga/|huggingface[/-]|pytorch/pytorch"
    r"|kindest/node|rancher/k3s|--kubernetes-version"
)
"""A cheap test of text that may hold such a command."""
_CHECKOUT = regex(r"\bgit\b[^\n]{0,300}\b(?:checkout|switch|reset)\b")


@dataclass
class _Clone:
    package: str
    own: bool
    folder: str
    place: tuple[int, int]
    ref: str
    checked_out: bool
    replaces: bool = False


class Script:
    """What the commands of one file state, gathered in order."""

    def __init__(
        self, page: Page, form: Form, variables: dict[str, str] | None = None, *, docker: bool = False
    ) -> None:
        self.page = page
        self.form = form
        self.variables: dict[str, str] = dict(variables or {})
        self.docker = docker
        self.folder: str | None = ""
        self.workdir: str | None = ""
        self.clones: list[_Clone] = []
        self._others: set[str] = set()
        self._has_project = False
        """The project, or a file of its requirements, was installed before."""
        self._nightly = False
        """The command that is read installs from an index of nightly builds."""
        self._stages = 0
        """The stages of a Dockerfile that have begun."""
        self._gone: set[str] = set()
        """Packages that were uninstalled before."""
        self._built: set[str] = set()
        """Images that are built or handed on."""
        self._found: list[Statement | Include] = []

    @property
    def found(self) -> Iterator[Statement | Include]:
        """All of it; a clone that is installed from its own folder says more than that folder does."""
        stated = {s.package for s in self._found if isinstance(s, Statement) and s.kind is Kind.EXACT}
        cloned = {clone.package for clone in self.clones}
        clones = [self._of_clone(clone) for clone in self.clones if clone.package]
        installed = stated | {clone.package for clone in clones if clone.kind is Kind.EXACT}
        for statement in self._found:
            if isinstance(statement, Statement):
                if statement.meaning.local and statement.package in cloned:
                    continue
                # What is built on an image that tells no release replaces what it holds.
                if self._stages == 1 and statement.is_open_image and statement.package in installed:
                    continue
            yield statement
        yield from (clone for clone in clones if clone.kind is not Kind.UNKNOWN or clone.package not in stated)

    def _of_clone(self, clone: _Clone) -> Statement:
        meaning = of_ref(clone.ref) if clone.own else Meaning(Kind.UNKNOWN, clone.ref or "a fork", fork=True)
        if clone.package == kubeflow.NAME:
            meaning = kubeflow.of_tag(clone.ref) or Meaning(Kind.UNKNOWN)
        return self.page.statement(clone.package, meaning, clone.place, self.form, replaces=clone.replaces)

    # going through

    def concerns(self, text: str) -> bool:
        """Text may hold such a command, or a checkout in what an earlier part of the script cloned."""
        return bool(INSTALLS.search(text) or (self.clones and _CHECKOUT.search(text)))

    def read(self, text: ShellText, *, each_line_alone: bool = False, depth: int = 0) -> None:
        """The commands of shell text."""
        text = text if len(text.text) <= BUDGET.script else text.cut(0, BUDGET.script)
        outer: list[str | None] = []
        start = self.folder
        for item in commands_of(text, listed=self.docker):
            if item == "(":
                outer.append(self.folder)
            elif item == ")":
                self.folder = outer.pop() if outer else self.folder
            elif item == "\n":
                self.folder = start if each_line_alone else self.folder
            elif not isinstance(item, str):
                if each_line_alone and not depth and _TARGET.match(item[0].line.text, item[0].span[0]):
                    self._start_anew()
                self.command(item, depth)

    def command(self, words: Sequence[Word], depth: int = 0) -> None:
        """One simple command."""
        words = list(words[:_MAX_WORDS])
        if self.docker and words[0].text.upper() in _INSTRUCTIONS:
            words = words[1:]
            self.folder = self.workdir
        while words and (words[0].text in _KEYWORDS or (self.docker and words[0].text.startswith("--"))):
            words.pop(0)
        words = self._assigned(words) if words else words
        if not words:
            return
        head = name_of(words[0]).lower()
        if head == "from" and self.docker:
            self._stages += 1
            self._start_anew()
        if head in _FOLDERS:
            self._enter(self.expanded(words[1]) if len(words) > 1 else OPEN)
            self.workdir = self.folder if head == "workdir" else self.workdir
            return
        script = script_of(list(words))
        if script is not None and depth < BUDGET.command:
            folder = self.folder
            self.read(script.line.inside(script), depth=depth + 1)
            self.folder = folder
            return
        texts = [self.expanded(word) for word in words]
        self._images(words, texts)
        if head in _QUOTING:
            return
        self._references(words, texts)
        self._servers(words, texts)
        for index, text in enumerate(texts):
            name = text.lstrip("@-+!%").rpartition("/")[2].lower()
            if name == "git":
                self._git(words[index:], texts[index:])
                return
            if self._uninstalls(name, texts[index + 1 :]):
                return
            if any(verb in texts[index + 1 :] for verb in _SYNCS.get(name, ())) and texts[-1] in _SYNCS[name]:
                self._has_project = self._has_project or self._is_at_project
                return
            rest = self._installer(name, texts[index + 1 :])
            if rest is not None:
                tool, skipped, limit = rest
                first = index + 1 + skipped
                self._install(tool, words[first:], texts[first:], limit)
                return

    def expanded(self, word: Word) -> str:
        """A word with the variables filled in that are known, OPEN in place of others."""
        if not any(word.hidden):
            return word.text
        parts: list[str] = []
        index = 0
        while index < len(word.text):
            end = index + 1
            while end < len(word.text) and word.hidden[end] == word.hidden[index]:
                end += 1
            part = word.text[index:end]
            parts.append(self._filled(part) if word.hidden[index] else part)
            index = end
        return "".join(parts)

    def _filled(self, text: str) -> str:
        if not re.search(r"[$`{<]", text):
            return text
        parts: list[str] = []
        index = 0
        for match in _VARIABLE.finditer(text):
            parts += [OPEN] if match.start() > index else []
            parts.append(self._value(match))
            index = match.end()
        return "".join(parts) + (OPEN if index < len(text) else "")

    def _value(self, match: re.Match[str]) -> str:
        name = match["github"] or match["braced"] or match["make"] or match["plain"] or match["just"]
        value = self.variables.get(name)
        how, word = match["how"], match["word"] or ""
        if how in (":-", "-", ":=", "=") and value is None:
            return OPEN if re.search(r"[$`]", word) else word.strip("\"'")
        if value is not None and how in ("#", "##"):
            return value.removeprefix(word)
        if value is not None and how in ("%", "%%"):
            return value.removesuffix(word)
        return OPEN if value is None else value

    def _assigned(self, words: list[Word]) -> list[Word]:
        """The command behind its assignments, which count when no command follows or they are exported."""
        head = name_of(words[0]).lower()
        if head in _DECLARE and len(words) > 1:
            first = self._pair(words[1])
            if first is None and head == "env" and len(words) == 3 and re.fullmatch(r"\w+", words[1].text):
                self._set(words[1].text, self.expanded(words[2]))
                return []
            if first is not None or head in ("arg", "export", "local", "readonly", "declare", "typeset"):
                for word in words[1:]:
                    self._assign(word)
                if head != "env":
                    return []
                return [word for word in words[1:] if self._pair(word) is None]
        if len(words) > 2 and words[1].text in ("=", ":=", "::=", "?=") and re.fullmatch(r"\w+", words[0].text):
            self._set(words[0].text, self.expanded(words[2]))
            return []
        rest = list(words)
        while rest and self._pair(rest[0]) is not None:
            self._assign(rest.pop(0))
        return rest

    @staticmethod
    def _pair(word: Word) -> re.Match[str] | None:
        return _ASSIGNMENT.fullmatch(word.text)

    def _assign(self, word: Word) -> None:
        pair = self._pair(word)
        if pair is not None:
            value = self.expanded(word.part(pair.start(2))) if pair[2] else ""
            if "?=" not in word.text[: pair.start(2)] or pair[1] not in self.variables:
                self._set(pair[1], value)

    def _set(self, name: str, value: str) -> None:
        """A variable has a value, or one that only a run tells."""
        if OPEN in value or len(value) > _MAX_VALUE:
            self.variables.pop(name, None)
        else:
            self.variables[name] = value

    def _enter(self, folder: str) -> None:
        if OPEN in folder or folder == "-" or (self.folder is None and not folder.startswith("/")):
            self.folder = None if OPEN not in folder or not folder.startswith("/") else self.folder
            return
        joined = posixpath.normpath(posixpath.join(self.folder or "", folder))
        self.folder = joined if len(joined) <= BUDGET.path else None

    # what a command says

    @staticmethod
    def _installer(name: str, following: Sequence[str]) -> tuple[str, int, int] | None:
        """The tool that installs, how many words stand before what it installs, and how many of those it takes."""
        verbs = [(index, text) for index, text in enumerate(following[:12]) if not text.startswith("-")][:2]
        first, at = (verbs[0][1], verbs[0][0] + 1) if verbs else ("", 0)
        second, behind = (verbs[1][1], verbs[1][0] + 1) if len(verbs) > 1 else ("", 0)
        if _PIP.match(name) or name == "pipenv":
            return ("pip", at, _ALL) if first in ("install", "download", "wheel") else None
        if name == "uv":
            if first == "pip":
                return ("pip", behind, _ALL) if second in ("install", "sync") else None
            if first == "tool":
                return ("uv", behind, 1) if second in ("install", "run") else None
            return ("uv", at, 0 if first == "run" else _ALL) if first in ("add", "run") else None
        if name == "uvx":
            return "uv", 0, 1
        if name == "pipx":
            return ("pip", at, 1) if first in ("install", "run") else None
        if name in _CONDA:
            if first == "env":
                return ("conda", behind, _ALL) if second in ("create", "update") else None
            return ("conda", at, _ALL) if first in ("install", "create", "update") else None
        if name in ("poetry", "pdm", "rye", "pixi"):
            return (name, at, _ALL) if first == "add" else None
        return None

    def _start_anew(self) -> None:
        """Another target of a Makefile or another stage of a Dockerfile begins: nothing is installed in it."""
        self._has_project = False
        self._gone.clear()

    def _uninstalls(self, name: str, following: Sequence[str]) -> bool:
        """The command removes packages; what is installed later replaces them."""
        if not _PIP.match(name) and name not in ("uv", "pipenv", *_CONDA):
            return False
        given = [text for text in following if not text.startswith("-")]
        verbs = given[:2] if name == "uv" else given[:1]
        if not verbs or verbs[-1] not in ("uninstall", "remove"):
            return False
        named = (self.page.packages.distribution(text) for text in given[len(verbs) :])
        self._gone.update(package for package in named if package)
        return True

    @property
    def _is_at_project(self) -> bool:
        """The commands run in the project's own folder, not in one that they cloned."""
        parts = set((self.folder or OPEN).split("/"))
        return self.folder is not None and not parts & {*self._others, *(clone.folder for clone in self.clones)}

    def _install(self, tool: str, words: Sequence[Word], texts: Sequence[str], limit: int) -> None:
        has_project = False
        self._nightly = any("nightly" in text and "://" in text for text in texts)
        refs = [texts[i + 1] for i, t in enumerate(texts[:-1]) if t in ("--tag", "--rev", "--branch")]
        pypi = tool != "conda" and (tool != "pixi" or "--pypi" in texts)
        files = _CONDA_FILES if tool == "conda" else _FILES
        others = _CONDA_WITH_VALUE if tool in ("conda", "pixi") else _WITH_VALUE
        index = 0
        while index < len(words):
            text, word = texts[index], words[index]
            index += 1
            if text.startswith("-") and len(text) > 1:
                option, equals, value = text.partition("=") if text.startswith("--") else (text, "", "")
                if not equals and index < len(words) and (option in files or option in _PACKAGES):
                    value, word = texts[index], words[index]
                    index += 1
                elif text.startswith("-r") and len(text) > 2 and tool == "pip":
                    option, value = "-r", text[2:]
                elif not equals and option in others:
                    index += 1
                if option in ("--from", "--spec"):
                    limit = 0
                if option in files and value:
                    self._file(option, value, word)
                    has_project = has_project or option not in ("-c", "--constraint", "--constraints")
                elif option in _PACKAGES and value:
                    has_project = has_project or _PROJECT.fullmatch(value) is not None
                    for part in re.split(r",(?=\s*[A-Za-z])", value) if option.startswith("--with") else [value]:
                        self._package(part, word, pypi=True, refs=refs)
                continue
            if limit <= 0:
                break
            limit -= 1
            has_project = has_project or _PROJECT.fullmatch(text) is not None
            if index + 1 < len(words) and texts[index] == "@":
                text = f"{text} @ {texts[index + 1]}"
                index += 2
            if tool in ("poetry", "uv") and re.match(r"[A-Za-z][\w.-]*(?:\[[^\]]*\])?@[^/]", text):
                self._at(text, word)
            else:
                self._package(text, word, pypi=pypi, refs=refs)
        # What one command installs must go together; only a later one replaces anything.
        self._has_project = self._has_project or (has_project and self._is_at_project)

    def _file(self, option: str, value: str, word: Word) -> None:
        if OPEN in value or "://" in value:
            return
        form = Form.CONSTRAINTS if option in ("-c", "--constraint", "--constraints") else Form.REQUIREMENTS
        if value.endswith((".yml", ".yaml")):
            form = Form.ENVIRONMENT
        path = posixpath.join(self.folder or "", value) if not value.startswith("/") else value
        self._found.append(self.page.include(path, self.place(word), form))

    def _at(self, text: str, word: Word) -> None:
        """`trl@^0.17` of Poetry, `trl@0.17.0` of uv."""
        name, _, version = text.partition("@")
        package = self.page.packages.distribution(name.partition("[")[0])
        if package is None or version == "latest":
            return
        if OPEN in version:
            self._state(package, self._open(word), word)
            return
        for meaning in of_poetry(version):
            self._state(package, meaning, word)

    def _package(self, text: str, word: Word, *, pypi: bool, refs: Sequence[str]) -> None:
        packages = self.page.packages
        if OPEN in text:
            name = re.match(r"[A-Za-z0-9][\w.-]*", text)
            package = packages.distribution(name[0]) if name else None
            if package is None and "://" in text:
                package = of_address(text.partition(OPEN)[0].rstrip("@"), packages)[0]
            if package is not None:
                self._state(package, self._open(word), word)
            return
        if not pypi:
            conda = of_conda(text)
            package = packages.conda(conda[0]) if conda else None
            if conda and package:
                for meaning in conda[1]:
                    self._state(package, meaning, word)
            return
        if refs and "://" in text:
            url = text.partition(" @ ")[2] or text
            package, meaning = of_address(url, packages, refs[0])
            if package:
                self._state(package, meaning, word)
            return
        found = requirement(text, packages)
        if found is not None and found.length == len(text.partition(";")[0].rstrip()):
            newest = found.meaning == ANY and self._nightly
            meaning = Meaning(Kind.UNKNOWN, "a nightly build") if newest else found.meaning
            self._state(found.package, meaning, word, marker=found.marker)

    def _state(self, package: str, meaning: Meaning, word: Word, form: Form | None = None, *, marker: str = "") -> None:
        place, replaces = self.place(word), self._replaces(package)
        self._found.append(
            self.page.statement(package, meaning, place, form or self.form, marker=marker, replaces=replaces)
        )

    def _replaces(self, package: str) -> bool:
        return self._has_project or package in self._gone

    # git, images, charts

    def _git(self, words: Sequence[Word], texts: Sequence[str]) -> None:
        verb = next(
            (i for i, t in enumerate(texts) if t in ("clone", "checkout", "switch", "reset", "submodule")), None
        )
        if verb is None:
            return
        rest = list(zip(words[verb + 1 :], texts[verb + 1 :], strict=True))
        at = next((texts[i + 1] for i, text in enumerate(texts[:verb]) if text == "-C"), None)
        if texts[verb] == "clone" or (texts[verb] == "submodule" and rest and rest[0][1] == "add"):
            self._clone(rest[texts[verb] == "submodule" :])
        elif texts[verb] != "submodule":
            self._checkout(texts[verb], rest, at)

    def _clone(self, rest: Sequence[tuple[Word, str]]) -> None:
        branch: tuple[Word, str] | None = None
        positional: list[tuple[Word, str]] = []
        index = 0
        while index < len(rest):
            word, text = rest[index]
            index += 1
            if text in ("-b", "--branch", "--revision") and index < len(rest):
                branch = rest[index]
                index += 1
            elif text.startswith(("--branch=", "--revision=")):
                branch = word, text.partition("=")[2]
            elif text in ("--depth", "-o", "--origin", "-c", "--config", "-j", "--jobs", "--reference", "--filter"):
                index += 1
            elif not text.startswith("-"):
                positional.append((word, text))
        own = repository_of(positional[0][1]) if positional else None
        known = self.page.packages.repository(own[0]) if own else None
        if own is None or known is None:
            if positional and len(self._others) < _MAX_CLONES:
                self._others.add(_folder_of(positional, self.folder))
            if positional and self.clones and len(self.clones) < _MAX_CLONES:
                # A checkout behind another clone is that one's.
                self.clones.append(_Clone("", False, _folder_of(positional, self.folder), (0, 0), "", True))
            return
        word = branch[0] if branch else positional[0][0]
        ref = branch[1] if branch else ""
        folder = _folder_of(positional, self.folder)
        if len(self.clones) < _MAX_CLONES:
            replaces, checked_out = self._replaces(known[0]), branch is not None
            self.clones.append(_Clone(known[0], known[1], folder, self.place(word), ref, checked_out, replaces))

    def _checkout(self, verb: str, rest: Sequence[tuple[Word, str]], at: str | None) -> None:
        if any(text in ("-b", "-B", "-c", "-C", "--orphan", "--") for _, text in rest):
            return
        named = [(word, text) for word, text in rest if not text.startswith("-")]
        clone = self._current(at)
        if clone is None or not named or len(named) > 1:
            return
        word, ref = named[0]
        clone.ref, clone.place, clone.checked_out = ref, self.place(word), True

    def _current(self, at: str | None) -> _Clone | None:
        """The clone in whose folder a command runs."""
        folder = self.folder if at is None else at if OPEN not in at else None
        if folder is not None:
            for clone in reversed(self.clones):
                if clone.folder in folder.split("/"):
                    return clone
        if folder is None or (not folder and self.clones and not self.clones[-1].checked_out):
            return self.clones[-1] if self.clones else None
        return None

    def _images(self, words: Sequence[Word], texts: Sequence[str]) -> None:
        starts = name_of(words[0]).lower() in _CONTAINERS
        builds = name_of(words[0]).lower() in _BUILDERS or texts[0] == OPEN
        made = builds and not _MAKING.isdisjoint(texts[1:4])
        before = ""
        for word, text in zip(words, texts, strict=True):
            # What is built or handed on here gets its name from the script, and says nothing of what is in it.
            own = made and ("build" not in texts or before in ("-t", "--tag") or text.startswith(("-t", "--tag=")))
            before = text
            if own:
                self._built.add(text)
            shown = "" if text in self._built else text.replace(OPEN, "$")
            for package, meaning, _, _ in images_in(shown, self.page.packages, untagged=starts):
                form = Form.IMAGE if self.form is Form.COMMAND else self.form
                meaning = with_named_tag(meaning, self.page.content)
                known = "$" not in meaning.text
                self._state(package, meaning if known else self._open(word), word, form)

    def _references(self, words: Sequence[Word], texts: Sequence[str]) -> None:
        if kubeflow.NAME not in self.page.packages:
            return
        form = Form.MANIFEST if self.form is Form.COMMAND else self.form
        for word, text in zip(words, texts, strict=True):
            if "kubeflow/train" in text:
                for meaning, _, _ in kubeflow.references_in(text):
                    opened = OPEN in text or OPEN in meaning.text
                    self._state(kubeflow.NAME, self._open(word) if opened else meaning, word, form)
        chart = any(re.search(r"(?:^|/)kubeflow-trainer$", text) for text in texts)
        makes = any(text in ("package", "push") for text in texts)
        if chart and not makes and any(name_of(word) in ("helm", "helmfile") for word in words):
            for index, text in enumerate(texts):
                value = text.partition("=")[2] if text.startswith("--version=") else ""
                word = words[index]
                if text == "--version" and index + 1 < len(texts):
                    value, word = texts[index + 1], words[index + 1]
                if value:
                    meaning = self._open(word) if OPEN in value else exact(value)
                    self._state(kubeflow.NAME, meaning, word, form)

    def _servers(self, words: Sequence[Word], texts: Sequence[str]) -> None:
        """The API server that minikube starts."""
        if kubernetes.NAME not in self.page.packages:
            return
        for index, text in enumerate(texts):
            option, equals, value = text.partition("=")
            word = words[index]
            if option == kubernetes.OPTION and not equals and index + 1 < len(texts):
                value, word = texts[index + 1], words[index + 1]
            meaning = kubernetes.of_version(value) if option == kubernetes.OPTION else None
            if meaning is not None:
                self._state(kubernetes.NAME, meaning, word, Form.MANIFEST if self.form is Form.COMMAND else self.form)

    def _open(self, word: Word) -> Meaning:
        """What something fills in later, as it is written."""
        return Meaning(Kind.UNKNOWN, self.page.content[slice(*self.place(word))].strip("\"'\\"))

    def place(self, word: Word) -> tuple[int, int]:
        """Where a word stands in the file, with its quotes; the whole scalar where an escape hides that."""
        line = word.line
        start, end = word.span
        if line.places is None or not start < end:
            target = line.source.target
            return (target.start, target.end) if target is not None else (0, 0)
        return line.places[start], line.places[end - 1] + 1


def _folder_of(positional: Sequence[tuple[Word, str]], folder: str | None) -> str:
    """The last part of the folder into which a clone goes."""
    if len(positional) > 1:
        target = positional[1][1]
        if target in (".", "./"):
            target = folder or ""
    else:
        target = positional[0][1].removesuffix(".git")
    return target.rstrip("/").rpartition("/")[2]


def whole(page: Page, content: str | None = None) -> ShellText:
    """The file's text, or one of the same length in which something was blanked out, as shell text."""
    text = page.content if content is None else content
    return shell_text(page, text, range(len(text)))


def shell_text(page: Page, text: str, places: Sequence[int] | None, whole: tuple[int, int] = (0, 0)) -> ShellText:
    """Shell text inside a file; `whole` is its place where that of each character is not known."""
    document = of_text(page.path, page.text)
    node = Scalar(text, '"', None, *whole, None)
    return ShellText(Field(document, Dialect.PYYAML, node), text, places)


_PYTHON_TEXT = regex(
    r"""^[ \t]*([A-Za-z_]\w*)[ \t]*=[ \t]*(["'])([^"'\n\\]{0,200})\2[ \t]*(?:#[^\n]*)?\r?$""", re.MULTILINE
)


def texts_of(code: str) -> Iterator[tuple[str, str]]:
    """The names to which Python gives a short text, and that text."""
    return ((match[1], match[3]) for match in _PYTHON_TEXT.finditer(code))


def read_script(page: Page) -> Iterator[Statement | Include]:
    """A shell script, a Makefile, a justfile or a Dockerfile."""
    name = page.name
    script = Script(page, Form.COMMAND, docker="dockerfile" in name or "containerfile" in name)
    script.read(whole(page), each_line_alone=name.endswith(("makefile", ".mk", "justfile")))
    yield from script.found
