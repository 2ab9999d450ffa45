"""The syntax of names in Kubernetes: each function says what is wrong with a text, or returns an empty one.

Source: k8s.io/apimachinery 0.36, util/validation and api/validate/content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from trainlint.lazy import regex

Check: TypeAlias = Callable[[str], str]

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253

_LABEL = regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LETTER_FIRST = regex(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = regex(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SEARCH = regex(r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*")
_KEY = regex(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_CONFIG_KEY = regex(r"[-._a-zA-Z0-9]+")
_HTTP_PATH = regex(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_OLD_ENV = regex(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_LEADING_ZEROS = regex(r"(?<![\d:a-fA-F])0{1,40}(?=\d{1,40}(?:\.|$))(?=[\d.]{0,80}$)")
_SYSCTL = regex(r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?([./][a-z0-9]([-_a-z0-9]*[a-z0-9])?)*")


def label(text: str) -> str:
    """A DNS label, as containers and volumes are called."""
    return _sized(text, LABEL_LENGTH) or _formed(text, _LABEL, "lower-case letters, digits and inner dashes")


def letter_first(text: str) -> str:
    """A DNS label that begins with a letter, as services are called."""
    return _sized(text, LABEL_LENGTH) or _formed(
        text, _LETTER_FIRST, "lower-case letters, digits and inner dashes, with a letter first"
    )


def subdomain(text: str) -> str:
    """DNS labels joined by dots, as most objects are called."""
    return _sized(text, SUBDOMAIN_LENGTH) or _formed(
        text, _SUBDOMAIN, "lower-case letters, digits and inner dashes and dots"
    )


def search(text: str) -> str:
    """A domain to search names in, where underscores and a last dot are allowed."""
    if text == ".":
        return ""
    bare = text.removesuffix(".")
    return _sized(bare, SUBDOMAIN_LENGTH) or _formed(
        bare, _SEARCH, "lower-case letters, digits, underscores and inner dashes and dots"
    )


def key(text: str) -> str:
    """The key of a label: an optional domain before a slash, and a name."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return "must have at most one slash"
    if slash and (problem := subdomain(prefix)):
        return f"has a malformed domain, which {problem}"
    return _sized(name, LABEL_LENGTH) or _formed(name, _KEY, "letters, digits and inner dashes, underscores and dots")


def label_value(text: str) -> str:
    """The value of a label."""
    if not text:
        return ""
    return _sized(text, LABEL_LENGTH) or _formed(text, _KEY, "letters, digits and inner dashes, underscores and dots")


def annotation_key(text: str) -> str:
    """The key of an annotation, in which case does not count."""
    return key(text.lower())


def port(text: str) -> str:
    """The name of a port."""
    if problem := _sized(text, 15):
        return problem
    if not re.fullmatch(r"[-a-z0-9]+", text) or "--" in text or text[0] == "-" or text[-1] == "-":
        return "must have only lower-case letters, digits and single inner dashes"
    return "" if re.search(r"[a-z]", text) else "must have a letter"


def env(text: str) -> str:
    """The name of an environment variable, as servers from 1.32 on accept it."""
    if not text:
        return "must not be empty"
    fine = text.isascii() and text.isprintable() and "=" not in text
    return "" if fine else "must have only printable ASCII characters other than ="


def strict_env(text: str) -> str:
    """The name of an environment variable, as servers up to 1.31 want it."""
    return _dots(text) or _formed(text, _OLD_ENV, "letters, digits, _, - and ., with no digit first")


def config_key(text: str) -> str:
    """A key of a ConfigMap or Secret."""
    return (
        _sized(text, SUBDOMAIN_LENGTH)
        or _formed(text, _CONFIG_KEY, "letters, digits, dashes, underscores and dots")
        or _dots(text)
    )


def domain_path(text: str) -> str:
    """A domain, a slash and a path, as managers are called."""
    domain, slash, path = text.partition("/")
    if not (domain and slash and path):
        return "must have the form domain/path"
    return subdomain(domain) or ("" if _HTTP_PATH.fullmatch(path) else "must have only URL characters after the slash")


def sysctl(text: str) -> str:
    """The name of a sysctl."""
    return _sized(text, SUBDOMAIN_LENGTH) or _formed(text, _SYSCTL, "lower-case words joined by dots or slashes")


def ip(text: str) -> str:
    """An IP address; its numbers may have zeros in front."""
    import ipaddress

    try:
        ipaddress.ip_address(_LEADING_ZEROS.sub("", text))
    except ValueError:
        return "must be an IP address"
    return ""


def canonical_ip(text: str) -> str:
    """An IP address in its usual spelling, as servers from 1.36 on want it."""
    if _LEADING_ZEROS.search(text):
        return "must not have zeros in front of a number"
    return "must not be an IPv4 address in the form of IPv6" if re.match(r"(?i)::ffff:\d+\.", text) else ""


def inner_path(text: str) -> str:
    """A path that leads down: relative, and nowhere `..`."""
    return "must be a relative path" if text.startswith("/") else no_way_up(text)


def no_way_up(text: str) -> str:
    """A path without `..`."""
    return "must not contain '..'" if ".." in text.split("/") else ""


def file_path(text: str) -> str:
    """The path of a file in a volume, which must not begin with `..` either."""
    if not text:
        return "must not be empty"
    return inner_path(text) or ("must not begin with '..'" if text.startswith("..") else "")


def driver(text: str) -> str:
    """The name of a CSI driver."""
    return _sized(text, LABEL_LENGTH) or subdomain(text.lower())


SYNTAX: Mapping[str, Check] = {
    check.__name__: check
    for check in (label, letter_first, subdomain, search, key, port, sysctl, ip, inner_path, no_way_up, driver)
}
"""The checks that tables of facts refer to by name."""


def _sized(text: str, limit: int) -> str:
    return f"must not be longer than {limit} characters" if len(text.encode("utf-8", "replace")) > limit else ""


def _formed(text: str, pattern: re.Pattern[str], what: str) -> str:
    if not text:
        return "must not be empty"
    return "" if pattern.fullmatch(text) else f"must have only {what}"


def _dots(text: str) -> str:
    return "must not be '.' or begin with '..'" if text == "." or text.startswith("..") else ""
