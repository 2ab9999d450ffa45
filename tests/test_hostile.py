"""Whatever a file holds, a run ends with findings and never with a fault of trainlint."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from trainlint.catalogue import all_rules
from trainlint.engine import lint
from trainlint.settings import Overrides

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
CODES = {rule.code for rule in all_rules()}
SEEDS = sorted(file for code in CODES for file in (FIXTURES / code).rglob("*.y*ml"))
SNIPPETS = [
    *(b": ", b"- ", b"[", b"]", b"{", b"}", b"*x", b"&x ", b"<<: *x", b"!!int ", b"!!binary ", b"|\n", b"? ", b"---\n"),
    *(
        b"null",
        b"~",
        b"1e999",
        b"-1",
        b"0x_",
        b"1:2:3",
        b"''",
        b'"\\u0000"',
        b"\xe2\x80\xa8",
        b"\xff",
        b"${x}",
        b"{{ x }}",
    ),
    *(
        b"true",
        b"[[1]]",
        b"{a: {b: c}}",
        b"9" * 400,
        b"2001-01-01",
        b"\t",
        b"\r",
        b"#",
        b"%YAML 1.2\n",
        b".nan",
        b"1_0",
    ),
]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The data with a few stretches removed, doubled, moved or replaced."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.randint(0, 12))
        choice = chance.random()
        if choice < 0.5:
            data = data[:at] + chance.choice(SNIPPETS) + data[end:]
        elif choice < 0.75:
            data = data[:at] + data[end:]
        else:
            lines = data.splitlines(keepends=True)
            chance.shuffle(lines) if choice > 0.95 else lines.insert(
                chance.randrange(len(lines) + 1), chance.choice(lines or [b""])
            )
            data = b"".join(lines)
    return data


@pytest.mark.parametrize("seed", range(12))
def test_mutated_fixtures(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINLINT_DEBUG", "1")
    chance = random.Random(seed)
    for number, file in enumerate(chance.sample(SEEDS, min(60, len(SEEDS)))):
        (tmp_path / f"{number}-{file.name}").write_bytes(mutated(file.read_bytes(), chance))
    for target in (Overrides(), Overrides(runtimes="closed")):
        report = lint([tmp_path], target)
        assert all(f.span.line >= 1 and f.span.column >= 1 for f in report.findings)
        assert all((f.span.line, f.span.column) <= (f.span.end_line, f.span.end_column) for f in report.findings)
