"""The cases of the limits: each line of the tables is refused where a case says so, and silent beside it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from limit_cases import ORIGINS
from trainlint.programs import table
from trainlint.programs.soup.program import DERIVED
from trainlint.training.declarations import declarations
from trainlint.training.limits import Limit, ReadFile, limits_of, terms_of
from trials import Case, Expected, Trial, outcomes, read_cases, said

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
FILES = sorted(FIXTURES.glob("*/limits*.yaml"))
CASES = [case for path in FILES for case in read_cases(path)]
PROGRAMS = sorted(path.parent.name for path in Path(table.__file__).parent.glob("*/limits.txt"))
COMPUTED = {
    "axolotl": {
        *("attention", "packing_attention", "staged_nf4", "own_lora_kernels"),
        *(f"fsdp_config.fsdp_{name}" for name in ("version", "offload_params", "state_dict_type")),
        *(name.rpartition(".")[2] for name in declarations("axolotl").keys_of_any("plugins")),
    },
    "llamafactory": {"evaluates", "zero3", "image_pixels_swapped", "video_pixels_swapped", "transformers_4_53"},
    "soup": set(DERIVED),
    "trl": {
        *("trainer", "scripted", "evaluates", "streams", "zero3", "other_losses"),
        *("losses.exo_pair", "losses.aot", "losses.aot_unpaired"),
    },
}
"""Names in conditions for which the program's `data` computes a value."""
UNDECLARED = {
    *("inference", "bnb_config_kwargs", "gradient_checkpointing_kwargs", "lora_exclude_modules"),
    *("model_init_kwargs", "liger_kernel_config", "dataset_kwargs"),
}
"""Settings of Axolotl that no model declares, and mappings that take any key."""


@dataclass
class Tried:
    """A trial, what the rule said, and the limits that held."""

    trial: Trial
    said: tuple[Expected, ...]
    held: frozenset[Limit]


@cache
def tried(rule: str) -> dict[str, list[Tried]]:
    """All trials of a rule, by the name of the case."""
    trials = [(case.name, trial) for case in CASES if case.rule == rule for trial in case.trials()]
    held: dict[int, set[Limit]] = defaultdict(set)
    holds = Limit.holds

    def spy(limit: Limit, reading: ReadFile) -> bool:
        found = holds(limit, reading)
        if found:
            held[int(Path(reading.place("").document.path).stem)].add(limit)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Limit, "holds", spy)
        found = outcomes([trial for _, trial in trials], rule)
    results: dict[str, list[Tried]] = defaultdict(list)
    for index, ((name, trial), findings) in enumerate(zip(trials, found, strict=True)):
        results[name].append(Tried(trial, tuple(sorted(map(said, findings))), frozenset(held[index])))
    return results


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    """The rule says what the case states, and nothing of what differs from it."""
    for one in tried(case.rule)[case.name]:
        assert one.said == one.trial.expected, f"{one.trial.targets}\n{one.trial.text}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_limit_has_a_case(program: str) -> None:
    """Each holds at both ends of its span, is tried in the releases beside it, and without what decides."""
    results = [one for rule in dict.fromkeys(case.rule for case in CASES) for one in tried(rule).values()]
    limits = [limit for section in limits_of(program).values() for limit in section]
    shown = {limit for case in results for limit in _shown(case)}
    without = [f"{limit.since}..{limit.until}: {limit.when}" for limit in limits if limit not in shown]
    assert without == [], f"run make limit-cases PROGRAM={program}"
    beside = {(one.trial.text, one.trial.targets[0]) for case in results for one in case}
    for limit in limits:
        texts = {one.trial.text for case in results for one in case if limit in one.held}
        for release in _ends(limit, program):
            assert any((text, f"{program}={release}") in beside for text in texts), (
                f"no case of {limit.when} is tried in {release}: run make limit-cases PROGRAM={program}"
            )


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_condition_names_settings(program: str) -> None:
    """A misspelt name would never hold."""
    inherited = ["transformers"] if program in ("llamafactory", "trl") else []
    facts = [declarations(name) for name in (program, *inherited)]
    declared = {key for known in facts for one in known.tables for key in known.keys_of_any(one)}
    used = {
        name
        for section in limits_of(program).values()
        for limit in section
        for term in terms_of(limit.when)
        for name in term.names
    }
    unknown = {
        name
        for name in used - COMPUTED.get(program, set())
        if name.rpartition(".")[2] not in declared and name.partition(".")[0] not in UNDECLARED
    }
    assert unknown == set(), f"no release of {program} has these settings"


def test_every_program_with_limits_has_an_origin_for_their_cases() -> None:
    assert sorted(ORIGINS) == PROGRAMS


def _shown(case: Sequence[Tried]) -> set[Limit]:
    """The limits that hold where a case is refused and do not where a line of it differs."""
    refused = [one.held for one in case if one.trial.expected]
    differing = [one.held for one in case if one.trial.instead]
    return {limit for held in refused for limit in held if any(limit not in other for other in differing)}


def _ends(limit: Limit, program: str) -> Iterator[str]:
    """The first and the last release of a span, and the known ones beside."""
    order = declarations(program).names
    for end, step in ((limit.since, -1), (limit.until, 1)):
        if end:
            yield end
            index = order.index(end) + step
            yield from order[index : index + 1] if index >= 0 else ()


FORM = """\
# A head.
base_model: acme/tiny-lm
optimizer: adamw_torch
output_dir: out
---
# target: axolotl=0.8.1,0.11.0 transformers=4.50
# silent: axolotl=0.12.2
# base: no output_dir
fsdp: [full_shard]
optimizer: adamw_8bit  # expect: FS411 12-22 FS411 30-31
# error: the first
# warning: the second
# help: what to write
# instead: optimizer: muon
# instead: no fsdp
"""


def in_folder(folder: Path, text: str) -> list[Case]:
    path = folder / "FS411" / "limits.yaml"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return list(read_cases(path))


def test_form(tmp_path: Path) -> None:
    """A case stands above the settings of all, each release and each other line is a trial."""
    (case,) = in_folder(tmp_path, FORM)
    text, base = "fsdp: [full_shard]\noptimizer: adamw_8bit\n", "base_model: acme/tiny-lm\n"
    expected = (
        Expected(2, 12, 22, "error", "the first"),
        Expected(2, 30, 31, "warning", "the second", "what to write"),
    )
    assert case.name == "FS411/limits.yaml:5"
    assert list(case.trials()) == [
        Trial(text + base, ("axolotl=0.8.1", "transformers=4.50"), expected),
        Trial(text + base, ("axolotl=0.11.0", "transformers=4.50"), expected),
        Trial(text + base, ("axolotl=0.12.2",)),
        Trial(
            "fsdp: [full_shard]\noptimizer: muon\n" + base,
            ("axolotl=0.11.0", "transformers=4.50"),
            instead="optimizer: muon",
        ),
        Trial("optimizer: adamw_8bit\n" + base, ("axolotl=0.11.0", "transformers=4.50"), instead="no fsdp"),
    ]


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("# silent: axolotl=0.12.2", "# quiet: axolotl=0.12.2"),
        ("# error: the first\n# warning: the second\n", "# error: the first\n"),
        ("# error: the first\n", "# help: too early\n# error: the first\n"),
        ("# help: what to write", "# help: what to write\n# error: the third"),
        ("FS411 12-22", "FS412 12-22"),
        ("# target: axolotl=0.8.1,0.11.0 transformers=4.50\n", ""),
    ],
)
def test_form_is_kept(line: str, other: str, tmp_path: Path) -> None:
    """What says nothing of a case, or too little, is a fault."""
    assert line in FORM
    with pytest.raises(ValueError, match=r"FS411/limits\.yaml:5"):
        in_folder(tmp_path, FORM.replace(line, other))
