"""The registry of rules. A rule is a decorated function; everything else about rules is derived from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from importlib import import_module
from itertools import chain, repeat
from typing import TypeVar

from trainlint.findings import Finding, Severity, Stage
from trainlint.records import dataclass

Check = TypeVar("Check", bound=Callable[..., Iterable[Finding]])

_REGISTRY: dict[str, Rule] = {}
_NAMES: dict[str, str] = {}
"""The code of each name."""


@dataclass(frozen=True)
class Rule:
    """A check with its code, name, default severity and stage, and the program whose verdict it gives.

    `program` is None for the subject's own program.
    """

    code: str
    name: str
    check: Callable[..., Iterable[Finding]]
    severity: Severity
    stage: Stage
    program: str | None
    ordinary_elsewhere: bool = False
    """Releases without the finding accept the setting as an ordinary one, for example a key that they have."""
    varies: str = ""
    """Which other severity its findings have, and when: `warning where the release ignores the key`."""
    covers: bool = False
    """The program does not read the place of a finding: what other rules say of it and of what is in it follows."""
    follows: tuple[str, ...] = ()
    """Rules whose finding at the same place, around it or at a related place is the cause, and says it better."""

    @cached_property
    def _parameters(self) -> list[type]:
        # Not typing.get_type_hints, which costs a run more than most rules do.
        check = self.check
        while hasattr(check, "__wrapped__"):
            check = check.__wrapped__
        return [check.__globals__[hint] for name, hint in check.__annotations__.items() if name != "return"]

    @cached_property
    def subject(self) -> type:
        """The type of the view that this rule looks at."""
        return self._parameters[0]

    @cached_property
    def takes_facts(self) -> bool:
        """The rule also wants the facts of the release."""
        return len(self._parameters) > 1

    @property
    def documentation(self) -> str:
        """The whole docstring: what is wrong, why, what to do, the source."""
        from inspect import cleandoc

        return cleandoc(self.check.__doc__ or "")

    @property
    def severities(self) -> tuple[Severity, ...]:
        """The severities of its findings, the most severe first, where the release is known."""
        other = self.varies.partition(" ")[0]
        return tuple(one for one in reversed(Severity) if one is self.severity or one.value == other)

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return self.documentation.partition("\n")[0]

    @property
    def module(self) -> str:
        """The rule set: the name of the rule's module."""
        return self.check.__module__

    def run(self, views: Iterable[object], facts: object) -> Iterable[Finding]:
        """The findings on views of the type that this rule looks at."""
        found = map(self.check, views, repeat(facts)) if self.takes_facts else map(self.check, views)
        return chain.from_iterable(found)


def rule(
    code: str,
    name: str,
    *,
    stage: Stage,
    severity: Severity = Severity.ERROR,
    program: str | None = None,
    varies: str = "",
    ordinary_elsewhere: bool = False,
    covers: bool = False,
    follows: tuple[str, ...] = (),
) -> Callable[[Check], Check]:
    """Register a function as a rule.

    The type of its first parameter is the view that it looks at; a second parameter gets the facts of the release. Its
    docstring is its documentation. `stage` says when its findings show; a finding may say another. `program` names the
    program of the verdict where that is not the subject's own; the others are told at `Rule`.
    """

    def register(check: Check) -> Check:
        taken = code if code in _REGISTRY else _NAMES.get(name)
        if taken is not None:
            raise ValueError(f"{code} {name}: code or name is taken by {taken}")
        _NAMES[name] = code
        _REGISTRY[code] = Rule(code, name, check, severity, stage, program, ordinary_elsewhere, varies, covers, follows)
        return check

    return register


def is_covering(code: str) -> bool:
    """The rule with this code covers what is at and below the places of its findings."""
    return _REGISTRY[code].covers


def followed_by(code: str) -> tuple[str, ...]:
    """The rules whose findings make one of this rule at the same place superfluous."""
    return _REGISTRY[code].follows


def known_rules() -> list[Rule]:
    """The rules whose modules are imported."""
    return list(_REGISTRY.values())


def rules_of(modules: Iterable[str]) -> list[Rule]:
    """The rules of these rule sets, by code; this imports their modules."""
    wanted = set(modules)
    for module in wanted:
        import_module(module)
    return sorted((r for r in _REGISTRY.values() if r.module in wanted), key=lambda r: r.code)
