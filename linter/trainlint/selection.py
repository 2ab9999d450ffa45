"""Which rules are used on a file, and with which severity: the selectors of settings and options, layer upon layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trainlint.findings import Severity
from trainlint.records import NamedTuple

ALL = "ALL"
"""The selector that names every rule."""
OFF = "off"
"""The severity of a rule that is not used."""


def reach(code: str, name: str, selector: str) -> int:
    """How narrowly a selector (a code, a prefix of codes, a name, ALL) names a rule; -1 if it does not name it."""
    upper = selector.upper()
    if upper == ALL:
        return 0
    return len(selector) if code.startswith(upper) or name == selector.lower() else -1


def _narrowest(code: str, name: str, selectors: Iterable[str]) -> int:
    return max((reach(code, name, selector) for selector in selectors), default=-1)


class Choice(NamedTuple):
    """What one settings file, one of its overrides, or the options say about the rules.

    `select` names the rules that are used, whatever was said before; None leaves what was said. Of the selectors here
    the one that names a rule most narrowly counts; `ignore` counts if both are as narrow.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()

    def uses(self, code: str, name: str, before: bool) -> bool:
        """A rule is used; `before` is what was said so far."""
        on = _narrowest(code, name, (*(self.select or ()), *self.extend_select))
        off = _narrowest(code, name, self.ignore)
        return before if self.select is None and on == off == -1 else on > off


class Selection(NamedTuple):
    """All that counts for one file, the last layer winning.

    `ignored` are the selectors of `per-file-ignores`, against which nothing helps. `severities` are by selector, in
    layers.
    """

    choices: tuple[Choice, ...] = ()
    ignored: tuple[str, ...] = ()
    severities: tuple[Mapping[str, str], ...] = ()

    def uses(self, code: str, name: str) -> bool:
        """A rule is used; all are where nothing is said."""
        used = True
        for choice in self.choices:
            used = choice.uses(code, name, used)
        return used and _narrowest(code, name, self.ignored) < 0 and self._said(code, name) != OFF

    def severity(self, code: str, name: str) -> Severity | None:
        """The severity that the findings of a used rule are given; None leaves them theirs."""
        said = self._said(code, name)
        return None if said is None else Severity(said)

    def _said(self, code: str, name: str) -> str | None:
        for layer in reversed(self.severities):
            narrowest = max(layer, key=lambda selector: reach(code, name, selector), default=None)
            if narrowest is not None and reach(code, name, narrowest) >= 0:
                return layer[narrowest]
        return None
