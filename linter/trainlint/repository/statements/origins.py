"""Where a package comes from when it is not an index: repositories, archives, wheels, container images."""

from __future__ import annotations

import re
from urllib.parse import unquote

from trainlint.lazy import regex
from trainlint.repository.statements.model import Kind, Meaning
from trainlint.repository.statements.packages import Packages
from trainlint.repository.statements.specifiers import exact

_TAG = regex(
    r"(?:refs/tags/)?(?:release[-/])?[vV]?(\d{1,9}(?:\.\d{1,9}){1,3}[-.]?(?:(?:a|b|rc|post|dev)[-.]?\d{0,9})?)"
)
_RELEASE_BRANCH = regex(
    r"(?:origin/|refs/heads/)?(?:v?(\d{1,4}\.\d{1,4})(?:\.x)?[-_]release|release[-_/]v?(\d{1,4}\.\d{1,4})(?:\.x)?)"
)
_WEB = regex(
    r"(?:[a-z+]{0,20}://)?(?:[^/@\s]{1,100}@)?(?:www\.)?(?:api\.|codeload\.)?github\.com[:/](?:repos/)?"
    r"([\w.-]{1,100})/([\w.-]{1,100})(.*)",
    re.IGNORECASE | re.DOTALL,
)
_ARCHIVE = regex(
    r"/(?:archive(?:/refs/(?:tags|heads))?|(?:legacy\.)?(?:zip|tar\.gz)(?:/refs/(?:tags|heads))?|(?:zip|tar)ball)/([^?#]{1,200})"
)
_DISTRIBUTION = regex(r"(?P<stem>[\w.!+-]{3,250})\.(?:whl|tar\.gz|tar\.bz2|zip|conda)")


def of_ref(ref: str) -> Meaning:
    """A tag, a branch or a commit of a package's own repository.

    A tag of a release is that release. Of a branch on which one release is prepared (`v4.41-release`, `release-2.1`)
    only the release's first two numbers are known.
    """
    tag = _TAG.fullmatch(ref)
    if tag:
        return exact(tag[1])
    branch = _RELEASE_BRANCH.fullmatch(ref)
    if branch:
        return Meaning(Kind.RANGE, f"=={branch[1] or branch[2]}.*")
    return Meaning(Kind.UNKNOWN, ref)


def repository_of(url: str) -> tuple[str, str] | None:
    """The `owner/name` of a GitHub address, and what stands behind it."""
    match = _WEB.match(url.strip())
    if not match:
        return None
    return f"{match[1]}/{match[2].removesuffix('.git')}".lower(), match[3]


def of_address(url: str, packages: Packages, ref: str | None = None) -> tuple[str | None, Meaning]:
    """What an address installs, and which package that is (None where the address does not tell).

    Understood are `git+https://…@ref#egg=name`, archives of GitHub, wheels and source archives by their names, and
    paths. `ref` is what stands beside the address (a `tag` or `rev` of its own).
    """
    url, _, fragment = url.strip().partition("#")
    egg = re.search(r"(?:^|&)egg=([A-Za-z0-9][\w.-]{0,100})", fragment)
    named = packages.distribution(egg[1]) if egg else None
    found = repository_of(url.removeprefix("git+"))
    if found:
        slug, rest = found
        known = packages.repository(slug)
        package = named or (known[0] if known else None)
        archive = _ARCHIVE.match(rest)
        if archive:
            ref = re.sub(r"\.(?:zip|tar\.gz|tar\.bz2|tgz)$", "", archive[1])
        elif "/releases/download/" in rest:
            ref = rest.split("/releases/download/")[1].partition("/")[0]
        elif ref is None:
            ref = rest.removeprefix(".git").partition("@")[2].partition("?")[0] or (
                fragment if not egg and re.fullmatch(r"[\w./-]{1,100}", fragment) else ""
            )
        own = known is not None and known[1] and (named is None or named == known[0])
        if not own:
            return package, Meaning(Kind.UNKNOWN, f"{slug}@{ref}" if ref else slug, fork=known is not None)
        return package, of_ref(unquote(ref or ""))
    name = unquote(url.partition("?")[0].rstrip("/").rpartition("/")[2])
    file = _DISTRIBUTION.fullmatch(name)
    parts = file["stem"].split("-") if file else []
    version = next((index for index, part in enumerate(parts) if index and re.match(r"v?\d", part)), None)
    if version is not None:
        stem = "-".join(parts[:version])
        package = packages.conda(stem) if name.endswith((".conda", ".tar.bz2")) else packages.distribution(stem)
        return package, exact(parts[version])
    if re.match(r"(?:file:|\.{0,2}/|~/|\.$|[A-Za-z]:\\)", url) or "://" not in url:
        path = re.sub(r"^file:(?://)?", "", url)
        path = re.sub(r"\[[^\]]{0,200}\]$", "", path)
        folder = path.rstrip("/").rpartition("/")[2]
        known = packages.repository(f"/{folder}")
        package = named or packages.distribution(folder) or (known[0] if known else None)
        return package, Meaning(Kind.UNKNOWN, path, local=True)
    return named, Meaning(Kind.UNKNOWN, url)


# images

_MAX_TEXT = 2000

_IMAGE = regex(
    r"(?:(?<![\w./@-])|(?<=docker://))(?:[\w.-]{1,100}(?::\d{1,5})?/){0,6}?"
    r"(?P<name>(?:axolotlai|winglian)/axolotl(?:-cloud|-cloud-term|-runpod)?(?:-uv)?"
    r"|hiyouga/llama-?factory|huggingface/(?:transformers-[\w-]{1,60}|accelerate|trl(?:-[\w-]{1,60})?)"
    r"|huggingface-pytorch-(?:trcomp-)?training[\w.-]{0,100}"
    r"|pytorch/pytorch|kindest/node|rancher/k3s|(?:kubeflow/(?:trainer/)?)(?:trainer-controller-manager|[a-z]{2,30}-(?:trainer|initializer|runtime)))"
    r"(?![\w/-])(?::(?P<tag>[\w.${}:-]{1,200}))?(?P<digest>@sha256:(?:[0-9a-f]{1,64}|\$\{\}))?"
)
"""Images that hold a release of a package; the tags of Axolotl's `-base` images say nothing of Axolotl.

Source: the projects' own image documentation and build workflows; transformers in the names of AWS' and Google's
training containers.
"""
_IMAGE_PACKAGES = (
    ("axolotl", regex(r"axolotl")),
    ("llamafactory", regex(r"llama-?factory")),
    ("transformers", regex(r"transformers|huggingface-pytorch")),
    ("accelerate", regex(r"huggingface/accelerate")),
    ("trl", regex(r"huggingface/trl")),
    ("torch", regex(r"pytorch/pytorch$")),
    ("kubeflow-trainer", regex(r"kubeflow/")),
    ("kubernetes", regex(r"kindest/node|rancher/k3s")),
)
_VERSION = r"v?(\d{1,4}(?:\.\d{1,6}){1,3}(?:[-.]?(?:a|b|rc|post|dev)[-.]?\d{1,9})?)"


def images_in(text: str, packages: Packages, *, untagged: bool = False) -> list[tuple[str, Meaning, int, int]]:
    """The images of a text that hold a package, each with what its tag says and its place.

    Without a tag a name may be a repository's or a model's: it counts where nothing but an image can stand.
    """
    found: list[tuple[str, Meaning, int, int]] = []
    if "/" not in text or len(text) > _MAX_TEXT:
        return found
    for match in _IMAGE.finditer(text):
        name, tag = match["name"], match["tag"] or ""
        package = next((known for known, pattern in _IMAGE_PACKAGES if pattern.search(name)), None)
        if package is not None and package in packages and (tag or match["digest"] or untagged):
            meaning = _of_image(package, name, tag, (match["digest"] or "").lstrip("@"))
            if meaning is not None:
                found.append((package, meaning, match.start(), match.end()))
    return found


_NAMED_TAG = regex(r"#[^\n]*\b(main-20\d{6}[\w.-]{0,60})")


def with_named_tag(meaning: Meaning, content: str) -> Meaning:
    """What an image says; instead of a digest, the tag of a nightly image that a comment above it names."""
    digest = meaning.text.removeprefix("sha256:")
    place = content.find(digest) if digest != meaning.text else -1
    tags = _NAMED_TAG.findall(content, max(0, place - _ABOVE), place) if place >= 0 else []
    return Meaning(Kind.UNKNOWN, tags[-1]) if tags else meaning


_ABOVE = 300
"""So many characters above a digest its comment may stand."""


def of_image(name: str, tag: str, packages: Packages) -> tuple[str, Meaning] | None:
    """An image whose name and tag stand apart."""
    found = images_in(f"{name}:{tag}", packages)
    return found[0][:2] if found else None


def _of_image(package: str, name: str, tag: str, digest: str) -> Meaning | None:
    if name.startswith("huggingface-pytorch"):
        # AWS: `2.1.0-transformers4.36.0-gpu-py310`; Google: `…-training-cu121.2-3.transformers.4-42.ubuntu2204`.
        match = re.search(r"transformers(\d{1,3}(?:\.\d{1,3}){2})", tag)
        if match:
            return exact(match[1])
        match = re.search(r"transformers\.(\d{1,3})-(\d{1,3})(?:-(\d{1,3}))?(?!\d)", name)
        if match:
            return exact(".".join(match.groups())) if match[3] else Meaning(Kind.RANGE, f"=={match[1]}.{match[2]}.*")
        return Meaning(Kind.UNKNOWN, tag or name)
    prefix = r"(?:(?:c|g)pu-(?:deepspeed-)?release-)?" if package == "accelerate" else ""
    match = re.match(prefix + _VERSION + r"(?=-|$|\b)", tag)
    if match and not (package == "transformers" and "latest" in name):
        return exact(match[1])
    if package in ("torch", "kubernetes") or (package == "kubeflow-trainer" and not tag and not digest):
        return None
    return Meaning(Kind.UNKNOWN, tag or digest or "latest")
