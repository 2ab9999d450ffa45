"""Finds values that look like secrets in files, and masks them in a report.

A value counts as a secret because of its name (HF_TOKEN, `--db-password`: a whole part of the name is a word such as
TOKEN, unlike MAX_TOKENS), because it is in a Secret, or because it begins like a token of a well-known service. Each
file is searched twice: as YAML, where each value has its name, and as text, for shell lines and broken files.

Source of the prefixes: GitHub documentation, "About authentication to GitHub"; GitLab documentation, "Token overview";
Hugging Face Hub 1.0, AWS IAM ("Unique identifiers"), Slack ("Tokens") and OpenAI documentation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from trainlint.findings import Finding, Fix, Related
from trainlint.lazy import regex
from trainlint.reading.document import Mapping, Node, Scalar, Unparsable, documents, target_of
from trainlint.reading.document import Sequence as Items
from trainlint.reading.text import MASK, Stretch, Text, cut
from trainlint.records import replace
from trainlint.report import Report

# names

_PARTS = "TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|ACCESS_KEY|PRIVATE_KEY"
_ANYWHERE = regex(rf"_(?:{_PARTS})_")
_AT_THE_END = regex(rf"_({_PARTS})_$")
_HUMP = regex(r"(?<=[a-z0-9])(?=[A-Z])")
_OPENS_A_DOOR = frozenset("ACCESS API AUTH BEARER GH GITHUB GITLAB HF HUB OAUTH REFRESH SESSION SLACK WANDB".split())
"""Words before TOKEN in the name of a secret setting; `pad_token`, for example, is a setting of a tokenizer."""


def is_secret(name: str) -> bool:
    """A variable or flag of this name contains a secret: a part of the name is such a word."""
    return _ANYWHERE.search(_spelled(name)) is not None


def is_secret_setting(name: str) -> bool:
    """A key of this name contains a secret: the name ends with such a word (unlike `secretName`), not only `token`."""
    if name.isupper():
        return is_secret(name)
    spelled = _spelled(name)
    said = _AT_THE_END.search(spelled)
    if said is None or said[1] != "TOKEN":
        return said is not None
    return spelled[: said.start()].rpartition("_")[2] in _OPENS_A_DOOR


def _spelled(name: str) -> str:
    return f"_{re.sub(r'[^A-Za-z0-9]+', '_', _HUMP.sub('_', name)).upper()}_"


# values

_PREFIX = r"(?:hf_|gh[opsru]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|ASIA)"
_PREFIXED = regex(_PREFIX + r"[\w.-]{6}")
"""A variable, an argument or an entry of a Secret with this beginning is a token."""
_TOKEN = regex(
    r"(?<![A-Za-z0-9_-])(?:hf_[A-Za-z0-9]{16,255}|gh[opsru]_[A-Za-z0-9]{16,255}|github_pat_\w{16,255}"
    r"|glpat-[\w-]{16,255}|sk-[\w-]{20,255}|xox[a-z]-[\w-]{10,255}|A[KS]IA[0-9A-Z]{16})"
)
"""A token anywhere in a text: longer than names of packages or models with this beginning (hf_transfer, sk-learn)."""
_FILLED_IN = r"\$\{\{[^{}\n]*\}\}|\{\{[^{}\n]*\}\}|\$\([\w.-]+\)|\$\{\w+\}|\$[A-Z_][A-Z0-9_]*"
_REFERENCE = regex(_FILLED_IN)
_NO_SECRET = frozenset({"", "true", "false", "null", "~", "yes", "no", "on", "off", "none", "0", "1"})


def _is_shown(value: str) -> bool:
    return value.lower() in _NO_SECRET or _REFERENCE.fullmatch(value) is not None


def shown_value(name: str | None, value: str) -> str:
    """The value of a variable or flag, masked if it looks like a secret."""
    if _is_shown(value):
        return value
    return MASK if (name and is_secret(name)) or _PREFIXED.match(value) else shown(value)


def shown_words(words: Iterable[str]) -> list[str]:
    """The words of a command, with those masked that look like secrets."""
    told: list[str] = []
    flag = None
    for word in words:
        given = _GIVEN.match(word)
        if given:
            told.append(f"{word[: given.end()]}{shown_value(given[1], word[given.end() :])}")
        else:
            told.append(shown_value(None if word.startswith("-") else flag, word))
        flag = word if word.startswith("-") and not given else None
    return told


def shown(text: str) -> str:
    """Any text, with the parts masked that look like secrets."""
    return cut(text, 0, len(text), sorted(_in_text(text))) if _may_have_secrets(text) else text


# a file

_NAME = r"(?P<name>[A-Za-z][\w.-]{0,80})"
_QUOTED = r"\"(?P<double>[^\"\n]*)\"|'(?P<single>[^'\n]*)'"
_WORD = regex(rf"{_QUOTED}|(?P<plain>(?!{_FILLED_IN})[^\s\"'`,;&|()\[\]{{}}][^\s\"'`,;&|()\]}}]*)")
_LINE = regex(rf"{_QUOTED}|(?P<plain>(?!{_FILLED_IN})[^\s\"'`{{}}\[\],&*!|>%@#](?:[^\n,{{}}\[\]#]|(?<=\S)#)*)")

_GIVEN = regex(r"-{0,2}([A-Za-z][\w.-]{0,80})=")
_NAMED = (
    # NAME=value and --name=value, in a shell line or a list
    (regex(rf"(?<![\w.$-])-{{0,2}}{_NAME}="), _WORD, is_secret),
    # --name value, in a shell line or as two items of a list
    (
        regex(rf"(?<![\w-])--?{_NAME}[\"']?(?:[ \t]*,)?(?:[ \t]+|[ \t]*\r?\n[ \t]*(?:- +)?)(?!-)"),
        _WORD,
        is_secret,
    ),
    # name: NAME and value: value of a variable
    (
        regex(
            rf"(?<![\w.-])name[\"']?[ \t]*:[ \t]*[\"']?{_NAME}[\"']?[ \t]*(?:,|\r?\n)[ \t]*"
            r"[\"']?value[\"']?[ \t]*:[ \t]*"
        ),
        _LINE,
        is_secret,
    ),
    # NAME: value
    (regex(rf"(?<![\w.-]){_NAME}[\"']?[ \t]*:[ \t]+"), _LINE, is_secret_setting),
)
"""Patterns of a name before its value and of the value, with the test of the name."""
_KEY = regex(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(.*?)(?:-----END|\Z)", re.DOTALL)
_ADDRESS = regex(r"://[^\s/:@\"']{0,100}:([^\s/@\"']{1,200})@")
_HINT = regex(
    r"token|secret|passw|passphrase|credential|api.?key|access.?key|private.?key|://[^\s/]{1,301}@|" + _PREFIX,
    re.IGNORECASE,
)
"""A text without a match has no secrets."""
_HINTS = (
    "token secret passw passph credential key :// hf_ gho_ ghp_ ghs_ ghr_ ghu_ pat_ glpat- sk- xox akia asia".split()
)
"""One of these words is in each match, in lower case: to look for them is much faster."""
_VARIABLES = frozenset("env environment envs env_vars env_variables environment_variables variables".split())
_ARGUMENTS = frozenset("args arguments cmd command entrypoint".split())


def _may_have_secrets(text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in _HINTS) and _HINT.search(text) is not None


def secrets_of(path: str, text: Text) -> tuple[list[Stretch], set[str]]:
    """The places of secrets in a file (in order, not overlapping, each within one line), and their texts."""
    content = text.content
    if not _may_have_secrets(content):
        return [], set()
    found = set(_in_text(content))
    values: set[str] = set()
    for start, end, value in _in_yaml(path, text):
        found.update(_lines(content, start, end))
        values.update(line.strip() for line in value.splitlines())
    joined: list[Stretch] = []
    for start, end in sorted(found):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined, values | {content[start:end] for start, end in joined}


def _in_text(content: str) -> Iterator[Stretch]:
    for named, written, says in _NAMED:
        at = 0
        while found := named.search(content, at):
            at = found.end()
            value = written.match(content, at) if says(found["name"]) else None
            if value is not None:
                at = value.end()
                if not _is_shown(value[value.lastgroup or 0].strip()):
                    yield from _lines(content, *value.span(value.lastgroup or 0))
    for pattern in (_TOKEN, _ADDRESS, _KEY):
        for found in pattern.finditer(content):
            yield from _lines(content, *found.span(found.lastindex or 0))


_Secret = tuple[int, int, str]
"""The place of a secret, and its value without quotes and escapes."""


def _in_yaml(path: str, text: Text) -> Iterator[_Secret]:
    try:
        for document in documents(path, text):
            yield from _secrets_below(document.root, text.content)
    except Unparsable:
        return


def _secrets_below(root: Node, content: str) -> Iterator[_Secret]:
    seen: set[tuple[int, str, bool]] = set()
    waiting: list[tuple[Node, str, bool]] = [(root, "", False)]
    while waiting:
        node, held_by, secret = waiting.pop()
        target = target_of(node)
        if isinstance(target, Scalar):
            yield from _of_scalar(target, held_by, secret, content)
        elif (id(target), held_by, secret) not in seen:
            seen.add((id(target), held_by, secret))
            if isinstance(target, Items):
                waiting += _items(target, held_by, secret)
            else:
                waiting += _entries(target, held_by, secret)


def _of_scalar(scalar: Scalar, held_by: str, secret: bool, content: str) -> Iterator[_Secret]:
    value = scalar.value.strip()
    start, end = scalar.start, scalar.end
    if scalar.style in ("|", ">"):
        start = content.find("\n", start, end) + 1 or end
    elif scalar.style:
        start, end = start + 1, end - 1
    given = _GIVEN.match(value) if held_by in _ARGUMENTS else None
    # `NAME=value program` is a shell line, where the search in the text finds the end of the value.
    if given and not secret and not given[1].isupper():
        start, value, secret = content.find("=", start, end) + 1, value[given.end() :], is_secret(given[1])
    if not _is_shown(value) and (secret or (held_by and _PREFIXED.match(value))):
        yield start, end, value


def _items(items: Items, held_by: str, secret: bool) -> Iterator[tuple[Node, str, bool]]:
    flag = None
    for item in items.items:
        word = _text(item)
        yield item, held_by, secret or (flag is not None and not word.startswith("-") and is_secret(flag))
        flag = word if word.startswith("-") and "=" not in word else None


def _entries(mapping: Mapping, held_by: str, secret: bool) -> Iterator[tuple[Node, str, bool]]:
    entries = [(_text(name), value) for name, value in mapping.pairs]
    words = {name: _text(value) for name, value in entries}
    naming = _naming(words)
    variable = held_by in _VARIABLES
    for name, value in entries:
        plain = isinstance(target_of(value), Scalar)
        holder = name.lower() if name.lower() in _VARIABLES | _ARGUMENTS else ""
        if name == "value" or (variable and plain):
            own = (naming is not None and name != naming) or (variable and is_secret(name))
            holder = "env"
        else:
            own = plain and is_secret_setting(name)
        held = words.get("kind") == "Secret" and name in ("data", "stringData")
        yield value, "env" if held else holder, secret or own or held


def _naming(words: dict[str, str]) -> str | None:
    """The key with the name of a variable, if that is the name of a secret: `name`, or any key but `value`."""
    keys = ["name"] if "name" in words else [name for name in words if name != "value"]
    return next((name for name in keys if is_secret(words[name])), None)


def _text(node: Node) -> str:
    target = target_of(node)
    return target.value if isinstance(target, Scalar) else ""


def _lines(content: str, start: int, end: int) -> Iterator[Stretch]:
    """A stretch line by line, without the blanks around it."""
    for line in re.finditer(r"[^\s](?:[^\r\n]*[^\s])?", content[start:end]):
        yield start + line.start(), start + line.end()


# a report

_ANYWHERE_FROM = 8
"""Secrets with at least this number of characters are masked in the findings of all files."""
_FROM = 4
"""Those with this number only in findings of their own file; shorter ones only where a finding points at them."""
_CUT_OFF_AT = 24
"""Rules shorten long values in messages, but keep at least this number of characters."""
_REST = regex(r"[^\s'\"…]*…?")


class _Known:
    """Secrets to find in short texts, in a time that does not grow with their number."""

    def __init__(self, values: Iterable[str]) -> None:
        self._by_start: dict[str, dict[int, set[str]]] = {}
        for value in values:
            whole = value[:_CUT_OFF_AT]
            self._by_start.setdefault(whole[:_FROM], {}).setdefault(len(whole), set()).add(whole)

    def hide(self, text: str) -> str:
        """The text with these secrets masked."""
        parts: list[str] = []
        at = index = 0
        while index < len(text):
            end = self._end(text, index)
            if end is None:
                index += 1
            else:
                parts += [text[at:index], MASK]
                at = index = end
        return "".join([*parts, text[at:]])

    def _end(self, text: str, start: int) -> int | None:
        """The end of a secret that begins here, None if none does."""
        for length, values in sorted(self._by_start.get(text[start : start + _FROM], {}).items(), reverse=True):
            end = start + length
            if text[start:end] in values and (length >= _ANYWHERE_FROM or _is_word(text, start, end)):
                rest = _REST.match(text, end)
                return rest.end() if length == _CUT_OFF_AT and rest else end
        return None


def _is_word(text: str, start: int, end: int) -> bool:
    return not text[max(0, start - 1) : start].isalnum() and not text[end : end + 1].isalnum()


def masked(report: Report) -> Report:
    """The report with secrets masked in its words and texts; a fix that would write one keeps only its title."""
    found = {path: secrets_of(path, text) for path, text in report.texts.items()}
    texts = {path: text.hiding(found[path][0]) for path, text in report.texts.items()}
    values = {path: values for path, (_, values) in found.items()}
    everywhere = _Known(value for found in values.values() for value in found if len(value) >= _ANYWHERE_FROM)
    own = {path: _Known(value for value in found if len(value) >= _FROM) for path, found in values.items()}

    def said(finding: Finding | None, what: str) -> str:
        what = _TOKEN.sub(MASK, everywhere.hide(what))
        text = texts.get(finding.path) if finding is not None else None
        if finding is None or text is None:
            return what
        what = own[finding.path].hide(what)
        for start, end in _pointed_at(finding, text):
            word = rf"(?<![A-Za-z0-9]){re.escape(text.content[start:end])}(?![A-Za-z0-9])"
            what = re.sub(word, MASK, what)
        return what

    return replace(
        report,
        findings=tuple(_masked(finding, partial(said, finding)) for finding in report.findings),
        notices=tuple(said(None, notice) for notice in report.notices),
        texts=texts,
        masked=True,
    )


def _pointed_at(finding: Finding, text: Text) -> Sequence[Stretch]:
    span = finding.span
    if not text.hidden or span.end_line > text.line_count:
        return ()
    start = text.line_start(span.line) + span.column - 1
    end = text.line_start(span.end_line) + span.end_column - 1
    return [stretch for stretch in text.hidden_within(start, max(end, start + 1)) if stretch[1] - stretch[0] < _FROM]


def _masked(finding: Finding, said: Callable[[str], str]) -> Finding:
    return replace(
        finding,
        message=said(finding.message),
        help=said(finding.help),
        field=said(finding.field),
        yaml_path=said(finding.yaml_path),
        related=tuple(Related(related.span, said(related.message)) for related in finding.related),
        fix=_fix(finding.fix, said),
        suppressed=None if finding.suppressed is None else said(finding.suppressed),
    )


def _fix(fix: Fix | None, said: Callable[[str], str]) -> Fix | None:
    if fix is None:
        return None
    clean = all(said(edit.replacement) == edit.replacement for edit in fix.edits)
    return fix._replace(title=said(fix.title), edits=fix.edits if clean else ())
