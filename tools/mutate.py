"""Find the conditions of trainlint that no test checks: invert them one at a time, and run the tests.

    python tools/mutate.py --seed 1 2 3        60 conditions for each seed, of rules, reading and training
    python tools/mutate.py rules/fsdp.py:120   every condition of these lines (PATH, PATH:LINE or PATH:FIRST-LAST)

A condition is the test of an `if`, `while`, conditional expression or comprehension, an operand of `and` or `or`, or a
comparison, inside a function (code at module level has run before a test begins). All conditions are wrapped when the
modules are imported. pytest collects the tests once, and one run of all tests records which conditions each reaches. A
mutant is a fork of that process with one inverted condition: the tests that reach it run there, the quick ones first,
until one fails, hangs or dies. The conditions that no test notices are printed, with the share of the others.

Why not cosmic-ray or mutmut: the first starts a process and all tests for each mutant, the second skips decorated
functions, so nearly all rules.
"""

from __future__ import annotations

import argparse
import ast
import functools
import gc
import importlib.machinery
import itertools
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, TextIO

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "linter" / "trainlint"
TESTS = ROOT / "tests"
TOOLS = ROOT / "tools"
ROOMS = ("reading", "training")
# A mutant exists in this process only: tests that start another process do not see it.
LEFT_OUT = ("test_action", "test_hook", "test_package", "test_sarif_schema", "test_wheel_facts", "test_kubeflow_facts")
MEMORY = 4 << 30


@dataclass(frozen=True)
class Site:
    """A condition: its place and its text."""

    path: Path
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(PACKAGE).as_posix()}:{self.line}:{self.column}  {self.text}"


def modules(package: Path) -> Iterator[Path]:
    """The modules with rules, those beside them in a folder or file `rules`, and the rooms below the programs."""
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package).with_suffix("").parts
        if place[0] in ROOMS or "rules" in place[1:] or _has_rules(path):
            yield path


def _has_rules(path: Path) -> bool:
    return any(
        isinstance(node, ast.FunctionDef) and any("rule" in _called(decorator) for decorator in node.decorator_list)
        for node in ast.parse(path.read_text(encoding="utf-8")).body
    )


def _called(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.id if isinstance(called, ast.Name) else ""


class Wrapped(ast.NodeTransformer):
    """Passes each condition inside a function to `PROBE`, with its number among the sites."""

    PROBE = "_condition_"

    def __init__(self, path: Path, source: str, sites: list[Site]) -> None:
        self.path = path
        self.source = source
        self.sites = sites
        self._conditions: set[ast.expr] = set()
        self._depth = 0

    def visit(self, node: ast.AST) -> ast.AST:
        """Wrap a condition and the conditions in it."""
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            self._conditions.add(node.test)
        elif isinstance(node, ast.comprehension):
            self._conditions.update(node.ifs)
        elif isinstance(node, ast.BoolOp):
            self._conditions.update(node.values)
        elif isinstance(node, ast.Compare):
            self._conditions.add(node)
        number = self._number(node) if node in self._conditions and self._depth else None
        inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        self._depth += inside
        visited: ast.AST = self.generic_visit(node)
        self._depth -= inside
        if number is None:
            return visited
        call = ast.Call(ast.Name(self.PROBE, ast.Load()), [ast.Constant(number), visited], [])  # type: ignore[list-item]
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def _number(self, node: ast.AST) -> int:
        assert isinstance(node, ast.expr)
        text = " ".join((ast.get_source_segment(self.source, node) or "").split())
        self.sites.append(Site(self.path, node.lineno, node.col_offset + 1, text))
        return len(self.sites) - 1


class Conditions:
    """The conditions of the imported modules: which are reached, and which one is inverted."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.sites: list[Site] = []
        self.reached: set[int] = set()
        self.inverted = -1
        # All at once, although most modules are imported late, so that a fork knows the numbers of the others.
        self.code = {str(path): self._compiled(path) for path in paths}

    def probe(self, number: int, value: object) -> object:
        """The value of a condition, or its opposite."""
        self.reached.add(number)
        return not value if number == self.inverted else value

    def _compiled(self, path: Path) -> CodeType:
        source = path.read_text(encoding="utf-8")
        tree = Wrapped(path, source, self.sites).visit(ast.parse(source))
        code: CodeType = compile(tree, str(path), "exec", dont_inherit=True)  # type: ignore[call-overload]
        return code

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        """The module's own place, with this as its loader (a finder of `sys.meta_path`)."""
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin not in self.code:
            return None
        spec.loader = _Loader(self, name, spec.origin)
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, conditions: Conditions, name: str, path: str) -> None:
        super().__init__(name, path)
        self.conditions = conditions

    def get_code(self, fullname: str) -> CodeType:
        return self.conditions.code[self.path]

    def exec_module(self, module: Any) -> None:
        setattr(module, Wrapped.PROBE, self.conditions.probe)
        super().exec_module(module)


@dataclass
class Record:
    """The conditions that a test reached, and how long it took."""

    seconds: float
    reached: set[int]


class Mutator:
    """The plugin that forks a mutant of the session for each condition, once the tests are collected."""

    def __init__(
        self,
        conditions: Conditions,
        draw: Callable[[Sequence[Site]], Iterable[tuple[str, list[int]]]],
        output: TextIO,
        patience: float,
    ) -> None:
        self.conditions = conditions
        self.draw = draw
        self.output = output
        self.patience = patience
        self.rates: list[float] = []
        self._failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a test failed."""
        self._failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Record, then judge the mutants of each draw."""
        # A mutant's dots and failures are not the result.
        session.config.pluginmanager.unregister(name="terminalreporter")
        started = time.monotonic()
        records = self._recorded(session.items)
        took = time.monotonic() - started
        reached = set().union(*(record.reached for record in records.values()))
        self._say(f"{len(records)} tests reach {len(reached)} of {len(self.conditions.sites)} conditions, {took:.0f} s")
        gc.collect()
        gc.freeze()
        for title, numbers in self.draw(self.conditions.sites):
            started = time.monotonic()
            survivors = 0
            for number in numbers:
                seconds = {name: record.seconds for name, record in records.items() if number in record.reached}
                if not self._killed(number, session.items, seconds):
                    survivors += 1
                    self._say(f"{self.conditions.sites[number]}  [{len(seconds)} tests]")
            self.rates.append(1 - survivors / max(1, len(numbers)))
            killed = f"{len(numbers) - survivors} of {len(numbers)} killed"
            self._say(f"{title}: {killed}, {self.rates[-1]:.0%}, {time.monotonic() - started:.0f} s")
        return True

    def _say(self, line: str) -> None:
        print(line, file=self.output, flush=True)

    def _recorded(self, items: Sequence[pytest.Item]) -> dict[str, Record]:
        """What each passing test reaches."""
        found = {}
        for item in items:
            _forget()
            self.conditions.reached = set()
            started = time.process_time()
            if self._passes(item) and self.conditions.reached:
                found[item.nodeid] = Record(time.process_time() - started, self.conditions.reached)
        return found

    def _killed(self, number: int, items: Sequence[pytest.Item], seconds: dict[str, float]) -> bool:
        """One of these tests notices the inverted condition."""
        quick = sorted((item for item in items if item.nodeid in seconds), key=lambda item: seconds[item.nodeid])
        after = itertools.accumulate(seconds[item.nodeid] for item in quick)
        chosen = [item for item, spent in zip(quick, after, strict=True) if spent <= self.patience]

        def run() -> None:
            self.conditions.inverted = number
            _forget(self.conditions.sites[number].path)
            for item in chosen:
                signal.setitimer(signal.ITIMER_PROF, 5 + 10 * seconds[item.nodeid])
                if not self._passes(item):
                    raise SystemExit(1)

        return self._forked(run) != 0

    def _passes(self, item: pytest.Item) -> bool:
        self._failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return not self._failed

    @staticmethod
    def _forked(run: Callable[[], None]) -> int:
        """Run in a fork of this process; returns its status."""
        child = os.fork()
        if child:
            return os.waitpid(child, 0)[1]
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            run()
            status = 0
        finally:
            os._exit(status)


def _forget(changed: Path | None = None) -> None:
    """Clear the caches of trainlint and its tests that may depend on the changed module.

    A package below the programs depends only on packages below itself, never on modules with rules.
    """
    below = changed is None or changed.relative_to(PACKAGE).parts[0] in ROOMS
    for module in list(sys.modules.values()):
        file = Path(getattr(module, "__file__", None) or "")
        if file == changed or file.parent in (TESTS, TOOLS) or (below and file.is_relative_to(PACKAGE)):
            for kept in vars(module).values():
                if isinstance(kept, functools._lru_cache_wrapper):
                    kept.cache_clear()


def _draws(seeds: Sequence[int], count: int, sites: Sequence[Site]) -> Iterator[tuple[str, list[int]]]:
    for seed in seeds:
        yield f"seed {seed}", sorted(random.Random(seed).sample(range(len(sites)), min(count, len(sites))))


def _named(places: Sequence[str], sites: Sequence[Site]) -> Iterator[tuple[str, list[int]]]:
    for place in places:
        path, _, lines = place.partition(":")
        first, _, last = lines.partition("-")
        yield (
            place,
            [
                number
                for number, site in enumerate(sites)
                if site.path.as_posix().endswith(path) and (not lines or int(first) <= site.line <= int(last or first))
            ],
        )


def main() -> None:
    """Print the surviving conditions of each draw; exit 1 if the share of the others is below `--fail-under`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", help="invert every condition of these places instead of random ones")
    parser.add_argument("--seed", type=int, nargs="+", default=[1])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--fail-under", type=float, default=85, help="percentage that must be noticed (default: 85)")
    parser.add_argument("--tests", nargs="+", default=[str(TESTS)])
    parser.add_argument(
        "--patience", type=float, default=float("inf"), help="seconds of tests after which a mutant counts as surviving"
    )
    options = parser.parse_args()
    conditions = Conditions(modules(PACKAGE))
    sys.meta_path.insert(0, conditions)
    draw = (
        functools.partial(_named, options.places)
        if options.places
        else functools.partial(_draws, options.seed, options.count)
    )
    # pytest captures what goes to the descriptors of standard output and error.
    with tempfile.TemporaryDirectory() as folder, os.fdopen(os.dup(1), "w", encoding="utf-8") as output:
        mutator = Mutator(conditions, draw, output, options.patience)
        left_out = [f"--ignore={TESTS / name}.py" for name in LEFT_OUT]
        quiet = [
            "-qq",
            "--tb=native",
            "--assert=plain",
            "--rootdir",
            str(ROOT),
            "--basetemp",
            f"{folder}/tests",
            "-p",
            "no:cacheprovider",
            "--hypothesis-seed=0",
        ]
        status = pytest.main([*options.tests, *left_out, *quiet], plugins=[mutator])
    if not mutator.rates:
        raise SystemExit(f"pytest collected nothing: status {status}")
    raise SystemExit(any(100 * rate < options.fail_under for rate in mutator.rates))


if __name__ == "__main__":
    main()
