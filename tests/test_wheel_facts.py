"""The facts read from the released packages: whole, small, and found by the right release."""

from __future__ import annotations

import itertools

import pytest

from trainlint.releases import ReleaseSpan, version_tuple
from trainlint.training.declarations import DISTRIBUTIONS, LIBRARIES, Declarations, declarations, facts_file

SPAN = {"releases": ["1.0.0", "1.1.0", "1.2.0", "2.0.0"], "run": ["1.0.0", "2.0.0"], "dates": {}}


def facts(**tables: object) -> Declarations:
    return Declarations("program", {**SPAN, "values": {}, "tables": tables})  # type: ignore[dict-item]


@pytest.mark.parametrize("program", [*DISTRIBUTIONS, *LIBRARIES])
def test_every_table_reads_in_every_release(program: str) -> None:
    known = declarations(program)
    assert list(known.names) == sorted(known.names, key=version_tuple)
    assert set(known.run) <= set(known.names)
    for table, release in itertools.product(known.tables, known.names):
        for name, field in known.fields(table, release).items():
            assert field.name == name
            assert not (field.required and field.default is not None)
            assert all(field.types), (table, name)


@pytest.mark.parametrize("program", [*DISTRIBUTIONS, *LIBRARIES])
def test_no_variants_of_a_name_overlap(program: str) -> None:
    known = declarations(program)
    for histories in (*known._tables.values(), known._values):
        for name, history in histories.items():
            if isinstance(history, list):
                for release in known.names:
                    holding = [v for v in history if known._holds(str(v.get("in", "..")), release)]
                    assert len(holding) <= 1, (name, release)


@pytest.mark.parametrize("program", [*DISTRIBUTIONS, *LIBRARIES])
def test_small_enough_to_read_on_each_run(program: str) -> None:
    assert facts_file(program).stat().st_size < 150_000


@pytest.mark.parametrize(
    ("program", "table", "name", "since", "until"),
    [
        ("accelerate", "config", "mpirun_config", "0.28.0", None),
        ("accelerate", "config", "debug", "0.22.0", None),
        ("accelerate", "fsdp_config", "fsdp_backward_prefetch", "0.26.1", None),
        ("accelerate", "config", "fp8_config", "0.34.2", None),
        ("accelerate", "config", "tp_config", "1.4.0", "1.6.0"),
        ("accelerate", "config", "parallelism_config", "1.10.1", None),
        ("accelerate", "config", "ipex_config", None, "1.12.0"),
        ("accelerate", "config", "distributed_type", None, None),
        ("accelerate", "fsdp_config", "fsdp_version", "1.6.0", None),
        ("accelerate", "fsdp_config", "fsdp_reshard_after_forward", "1.6.0", None),
        ("accelerate", "fsdp_config", "fsdp_backward_prefetch_policy", None, "0.34.2"),
        ("accelerate", "fsdp_config", "fsdp_activation_checkpointing_offload", "1.15.0", None),
        ("transformers", "TrainingArguments", "evaluation_strategy", None, "4.50.3"),
        ("transformers", "TrainingArguments", "overwrite_output_dir", None, "4.57.6"),
        ("transformers", "TrainingArguments", "use_cpu", "4.32.1", None),
        ("transformers", "choices:FSDPOption", "hybrid_shard", "4.36.2", None),
        ("transformers", "TrainingArguments", "warmup_ratio", None, "5.14.1"),
        ("transformers", "TrainingArguments", "activation_checkpointing", "5.23.0", None),
        ("transformers", "fsdp_config", "cpu_ram_efficient_loading", "4.41.2", None),
        ("transformers", "fsdp_config", "version", "5.0.0", None),
        ("transformers", "fsdp_config", "state_dict_type", "5.10.4", None),
        ("transformers", "fsdp_config", "limit_all_gathers", None, None),
        ("trl", "SFTConfig", "max_seq_length", "0.9.6", "0.19.1"),
        ("trl", "ModelConfig", "torch_dtype", None, "0.26.2"),
        ("axolotl", "AxolotlInputConfig", "fsdp", None, "0.19.0"),
        ("axolotl", "FSDPConfig", "min_num_params", "0.18.0", None),
        ("llamafactory", "FinetuningArguments", "finetuning_type", None, None),
        ("soup", "TrainingConfig", "use_fsdp2_compile", None, None),
        ("soup", "staged", "training.lr_groups", "0.76.1", None),
    ],
)
def test_names_come_and_go_where_they_did(
    program: str, table: str, name: str, since: str | None, until: str | None
) -> None:
    assert declarations(program).span(table, name) == ReleaseSpan(since or "", until or "")


def test_names_of_bases_belong_to_a_table() -> None:
    trl = declarations("trl")
    assert trl.bases("SFTConfig", "1.16.0") == ("TrainingArguments",)
    assert "dataset_name" in trl.keys("GRPOScriptArguments", "1.16.0")
    assert "total_episodes" in trl.keys("PPOConfig", "0.12.2")
    assert trl.fields("KTOConfig", "1.0.0")["beta"].default == 0.1
    assert "base_model" in declarations("axolotl").keys("AxolotlConfigWCapabilities", "0.21.0")


def test_what_a_release_requires_bounds_its_companions() -> None:
    assert declarations("axolotl").bounds("0.12.2") == {
        "accelerate": "==1.10.0",
        "deepspeed": ">=0.17.0",
        "peft": "==0.17.0",
        "transformers": "==4.55.2",
        "trl": "==0.21.0",
    }
    assert declarations("trl").bounds("0.12.2") == {"accelerate": ">=0.34.0", "transformers": "<4.47.0"}
    assert declarations("transformers").bounds("4.57.6") == {}, "extras bind nobody"
    assert declarations("transformers").value("optional:accelerate", "4.57.6") == ">=0.26.0"


def test_a_field_tells_types_choices_and_bounds() -> None:
    fields = declarations("axolotl").fields("FSDPConfig", "0.21.0")
    assert fields["auto_wrap_policy"].types == ("literal", "None")
    assert fields["auto_wrap_policy"].choices == ("TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP")
    assert fields["min_num_params"].bounds == {"ge": 1}
    assert fields["fsdp_version"].aliases == ("fsdp_version", "version")
    arguments = declarations("transformers").fields("TrainingArguments", "4.57.6")
    assert arguments["save_strategy"].types == ("SaveStrategy", "str")
    assert arguments["save_strategy"].choices == ("best", "epoch", "no", "steps")
    assert arguments["fsdp"].types == ("list[FSDPOption]", "str", "None")
    assert declarations("accelerate").fields("fsdp_config", "1.15.0")["fsdp_version"].extra == {"env": "FSDP_VERSION"}
    assert declarations("accelerate").fields("launch_flags", "1.15.0")["use_fsdp"].extra["takes"] == "nothing"


def test_soup_says_what_it_does_with_keys_it_does_not_know() -> None:
    soup = declarations("soup")
    assert [soup.value("unknown_key", name) for name in soup.names] == ["silent", "warn", "error", "error", "error"]
    assert [soup.value("staged_field", name) for name in soup.names] == ["silent", "silent", "silent", "warn", "error"]
    assert list(soup.fields("fsdp_presets", soup.newest)) == ["full_shard", "shard_grad", "full_offload"]


def test_runs_of_releases() -> None:
    known = facts(table={"old": {"in": "..1.1.0"}, "gone and back": {"in": "1.0.0,2.0.0.."}, "now": {"in": "1.2.0.."}})
    assert [name for name in known.names if "gone and back" in known.keys("table", name)] == ["1.0.0", "2.0.0"]
    assert known.span("table", "old") == ReleaseSpan("", "1.1.0")
    assert known.keys_of_any("table", ["1.1.0", "1.2.0"]) == {"old", "now"}
    assert known.keys_of_all("table", ["1.1.0", "1.2.0"]) == frozenset()
    with pytest.raises(KeyError):
        known.span("table", "never")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("1.1.0", ("1.1.0",)),
        ("1.1", ("1.1.0",)),
        ("1", ("1.2.0",)),
        ("v1.1.7", ("1.1.0",)),
        ("1.1.0rc1", ("1.1.0",)),
        ("1.5", ("1.2.0", "2.0.0")),
        ("2.0.3.post1", ("2.0.0",)),
    ],
)
def test_release_in_force(asked: str, expected: tuple[str, ...]) -> None:
    found = facts().in_force(asked)
    assert (found.releases, found.label) == (expected, expected[0] if len(expected) == 1 else asked)


def test_between_two_patches_of_a_minor_both_speak() -> None:
    assert declarations("transformers").in_force("4.57.3").releases == ("4.57.1", "4.57.6")
    assert declarations("transformers").in_force("4.57").releases == ("4.57.6",)


def test_outside_of_the_known_releases_a_notice_says_so() -> None:
    newer, older, word = (facts().in_force(version) for version in ("3.1", "0.9", "latest"))
    assert newer.releases == ("2.0.0",)
    assert newer.notice == "is newer than 2.0.0, the newest release that is known: checked as that one"
    assert older.releases == word.releases == ()
    assert older.notice
    assert word.notice
