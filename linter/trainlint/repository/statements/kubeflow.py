"""What states the release of Kubeflow Trainer: references to its repository, charts, modules and CRDs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainlint.lazy import regex
from trainlint.repository.statements.model import Form, Include, Kind, Meaning, Statement
from trainlint.repository.statements.origins import of_ref
from trainlint.repository.statements.page import Page

NAME = "kubeflow-trainer"
CHART = "kubeflow-trainer"
_REFERENCE = regex(
    r"(?:github\.com[:/]kubeflow/(?:trainer|training-operator)(?:\.git)?(?:/[^\s\"'?]{0,300})?\?(?:[^\s\"']{0,100}&)?ref="
    r"|raw\.githubusercontent\.com/kubeflow/trainer/(?:refs/(?:tags|heads)/)?"
    r"|github\.com/kubeflow/trainer/(?:releases/download|archive/refs/(?:tags|heads))/)(?P<ref>[^\s\"'&/#]{1,200})"
)
_MODULE = regex(r"(?<![\w./-])github\.com/kubeflow/trainer/v2[ \t]+(?P<version>v[\w.+-]{1,100})")
_REPLACED = regex(
    r"github\.com/kubeflow/trainer/v2(?:[ \t]+v\S+)?[ \t]*=>[ \t]*(?P<by>\S+)(?:[ \t]+(?P<version>v[\w.+-]{1,100}))?"
)
_OWN_MODULE = regex(r"^module[ \t]+github\.com/kubeflow/trainer(?:/v2)?[ \t]*$", re.MULTILINE)
_PSEUDO = regex(r"-(?:0\.)?\d{14}-[0-9a-f]{12}$")


def of_tag(ref: str) -> Meaning | None:
    """A ref of the Trainer's repository; None for the operator that lived there before 2.0, which has no TrainJob."""
    meaning = of_ref(ref)
    return None if re.match(r"(?:==)?[01]\.", meaning.text) and meaning.kind is not Kind.UNKNOWN else meaning


def references_in(text: str) -> list[tuple[Meaning, int, int]]:
    """The references of a text to the Trainer's manifests at some ref, with their places."""
    found = []
    for match in _REFERENCE.finditer(text):
        meaning = of_tag(match["ref"])
        if meaning is not None:
            found.append((meaning, *match.span()))
    return found


def read_go_mod(page: Page) -> Iterator[Statement | Include]:
    """`go.mod`: the Trainer's module; a pseudo-version is a commit, and what replaces the module is what counts."""
    if NAME not in page.packages:
        return
    own = _OWN_MODULE.search(page.content)
    if own:
        yield page.include("VERSION", own.span(), Form.VENDORED, package=NAME)
    content = re.sub(r"//[^\n]*", lambda match: " " * len(match[0]), page.content)
    replaced = _REPLACED.search(content)
    match = replaced or _MODULE.search(content)
    if match is None:
        return
    version = match["version"] or ""
    if replaced and not (version and replaced["by"].startswith("github.com/kubeflow/trainer")):
        meaning = Meaning(Kind.UNKNOWN, replaced["by"], local=replaced["by"].startswith("."))
        yield page.statement(NAME, meaning, replaced.span("by"), Form.MANIFEST)
        return
    meaning = Meaning(Kind.UNKNOWN, version) if _PSEUDO.search(version) else of_ref(version)
    yield page.statement(NAME, meaning, match.span("version"), Form.MANIFEST)
