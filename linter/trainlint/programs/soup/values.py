"""What Soup's validators refuse of single values: their types, texts, lists and mappings.

Source: Soup 0.73.3 to 0.77.0, config/schema.py, and in utils/ data_pipeline.py, distill.py, classifier.py,
mole_routing.py, agent_rollout.py, lr_groups.py, safe_regex.py, net_guard.py.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from trainlint.findings import did_you_mean, one_of, some_of
from trainlint.programs.soup.facts import (
    FOLDED,
    FUNCTION_NAME,
    FUNCTION_NAMES,
    INSIDE,
    INTERLEAVE,
    LOCAL_HOSTS,
    PREFERENCE_LOSSES,
    STRICT_NUMBERS,
    TEMPLATE_DIRECTIVES,
    TEXTS,
    WORD_ALIASES,
    TextLimit,
)
from trainlint.reading import mending
from trainlint.records import dataclass
from trainlint.training.pydantic_types import Refusal, Schema, as_number, model_refusals, refusals, wanted

if TYPE_CHECKING:
    from trainlint.findings import Finding, Fix, Severity
    from trainlint.programs.soup.facts import SoupFacts
    from trainlint.reading.values import Field
    from trainlint.training.declarations import Spec

SECTIONS = {"TrainingConfig": "training", "DataConfig": "data", "ShipConfig": "eval.ship"}


class Config(Protocol):
    """A `soup.yaml` as one release reads it."""

    field: Field
    facts: SoupFacts

    def place(self, name: str) -> Field:
        """Where a setting is written."""

    def declares(self, name: str) -> bool:
        """The release has this setting."""


@dataclass(frozen=True)
class Wrong:
    """A value that Soup refuses, and what to write instead; `certain` is false where it depends on the place."""

    place: Field
    message: str
    help: str
    certain: bool = True
    fix: Fix | None = None

    def finding(self, severity: Severity | None = None) -> Finding:
        """The finding at the value."""
        at_key = self.place.is_sequence or self.place.is_mapping
        return self.place.finding(self.message, help=self.help, severity=severity, fix=self.fix, at_key=at_key)


# types, words and bounds


def wrong_types(config: Config) -> Iterator[Refusal]:
    """Values of the wrong type, other words than the field's, and numbers out of bounds."""
    facts = config.facts
    schema = Schema(facts.fields, lambda _: None)
    found = list(model_refusals(config.field, facts.fields("SoupConfig"), schema))
    if config.field.get("lora").node is not None:
        found += refusals(config.field.get("lora"), facts.fields("TrainingConfig")["lora"], schema)
    yield from (refusal for refusal in found if not refusal.missing)
    seen = {refusal.place.path for refusal in found}
    for table, section in SECTIONS.items():
        for name, spec in facts.fields(table).items():
            place = config.place(f"{section}.{name}")
            if place.node is not None and not place.is_unknown and place.path not in seen:
                yield from _strictly(place, name, spec)


def _strictly(place: Field, name: str, spec: Spec) -> Iterator[Refusal]:
    """What a validator refuses that sees the value before pydantic converts it."""
    value, words = place.plain, tuple(str(choice) for choice in spec.choices)
    kinds = set(spec.types) - {"None"}
    if place.is_mapping or place.is_sequence:
        if name in FOLDED or name in ("reward_hack_mitigation", "stream_recompute"):
            yield Refusal(place, wanted(spec), choices=words)
    elif name in FOLDED:
        known = (*words, *WORD_ALIASES.get(name, {}))
        if (value is None and "None" not in spec.types) or (value is not None and not _is_word(value, known)):
            yield Refusal(place, wanted(spec), choices=words)
    elif name == "reward_hack_mitigation":
        if value is not False and value not in words:
            yield Refusal(place, wanted(spec), choices=words, got="true" if value is True else "")
    elif name == "stream_recompute":
        if not isinstance(value, bool) and value not in words:
            yield Refusal(place, wanted(spec), choices=words)
    elif spec.extra["before"] and value is not None and kinds & {"bool", "int", "float"}:
        if isinstance(value, bool) != (kinds == {"bool"}) or (name in STRICT_NUMBERS and not _is_number(value, kinds)):
            yield Refusal(place, wanted(spec))
        elif name == "grpo_beta" and not math.isfinite(as_number(value) or 0):
            yield Refusal(place, "a finite number")


def _is_word(value: object, words: Iterable[str]) -> bool:
    return isinstance(value, str) and value.lower() in words


def _is_number(value: object, kinds: set[str]) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and "float" in kinds)


# texts


def wrong_texts(config: Config) -> Iterator[Wrong]:
    """Texts that are empty, too long or of the wrong form."""
    name = config.place("experiment_name")
    if re.search(r"[/\\:\0]", _text(name)):
        yield Wrong(name, "experiment_name must not contain / \\ : or NUL", "write a plain name")
    for setting, limit in TEXTS.items():
        place = config.place(setting)
        if _has(config, setting) and isinstance(place.plain, str):
            wrong = _wrong_text(place, place.plain, limit) or _wrong_form(config, setting, place)
            if wrong is not None:
                yield wrong
    for setting in FUNCTION_NAMES:
        place = config.place(setting)
        if _has(config, setting) and isinstance(place.plain, str) and not FUNCTION_NAME.fullmatch(place.plain):
            message = f"{place.name} must name a function as module.path:function"
            yield Wrong(place, message, "write the module, a colon and the function, such as my_module:my_function")


def _has(config: Config, setting: str) -> bool:
    """The release knows the setting, and the file has it."""
    return config.declares(setting) and config.place(setting).node is not None


def _text(place: Field) -> str:
    return place.plain if isinstance(place.plain, str) else ""


def _wrong_text(place: Field, text: str, limit: TextLimit) -> Wrong | None:
    stripped = text if limit.blank else text.strip()
    if not stripped and not (limit.empty and not text):
        return Wrong(place, f"{place.name} must not be empty", f"write a text, or remove {place.name}")
    if "\0" in text:
        return Wrong(place, f"{place.name} must not contain a NUL character", "remove the NUL")
    if len(text) > limit.most:
        return Wrong(place, f"{place.name} must have {limit.most} characters at most", "shorten it")
    return None


def _wrong_form(config: Config, setting: str, place: Field) -> Wrong | None:
    text = _text(place)
    if setting in INSIDE and text:
        outside = PurePosixPath(text).is_absolute()
        if outside or _climbs(text):
            help = "write a path below the folder in which Soup is started"
            return Wrong(place, f"{place.name} must lie below the working directory", help, certain=not outside)
    if setting == "training.reward_fn" and not all(part.strip() for part in text.split(",")):
        return Wrong(place, "reward_fn has a comma without a reward", "remove the comma")
    if setting == "data.chat_template":
        for word in TEMPLATE_DIRECTIVES:
            if re.search(r"\{%-? " + word, text, re.IGNORECASE):
                return Wrong(place, f"chat_template must not use the Jinja directive {word}", "write it without")
    if setting == "training.grpo_judge":
        return _wrong_judge(place, text)
    if setting == "training.online_dpo_judge" and config.facts.judged_urls:
        url = urlsplit(text)
        return _private(place, url.hostname) if url.scheme in ("http", "https") else None
    return None


def _climbs(path: str) -> bool:
    """The path leads out of the folder where it starts."""
    depth = 0
    for part in path.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


def _wrong_judge(place: Field, text: str) -> Wrong | None:
    url = urlsplit(text)
    if url.scheme == "ollama":
        return None
    if url.scheme != "https" and not (url.scheme == "http" and url.hostname in LOCAL_HOSTS):
        help = "write ollama://model, https://host/model or http://localhost:8000/model"
        return Wrong(place, f"{place.name} must be an ollama or https URL, or http on localhost", help)
    if not text.rpartition("/")[2]:
        return Wrong(place, f"{place.name} must end in the name of a model", "write it behind the last slash")
    return _private(place, url.hostname)


def _private(place: Field, host: str | None) -> Wrong | None:
    """A host that is an address of a private network; Soup does not connect to it."""
    try:
        address = ipaddress.ip_address((host or "").rstrip("."))
    except ValueError:
        return None
    if address.is_loopback or address.is_global:
        return None
    return Wrong(place, f"{place.name} must not name a private address", "write a public host, or localhost")


# lists and mappings


def wrong_collections(config: Config) -> Iterator[Wrong]:
    """Lists and mappings with too few, too many, repeated or wrong entries."""
    sources = config.place("data.train")
    if sources.is_sequence:
        if len(sources.items()) < 2:
            alone = sources.items()[0].text().known if len(sources.items()) == 1 else None
            fix = mending.as_text(sources, alone) if alone else None
            yield Wrong(
                sources, "a list in data.train must have two entries or more", "write one path as a text", fix=fix
            )
        yield from (Wrong(item, "data.train has an empty entry", "remove it") for item in _blank(sources.items()))
    for setting in ("data.add_new_tokens", "data.new_special_tokens"):
        if config.place(setting).written.startswith("<"):
            # A token such as <tool>, not a placeholder of the file.
            message = f"{config.place(setting).name} must be a list of texts"
            place = config.place(setting)
            yield Wrong(place, message, f"write [{place.written}]", fix=mending.listed(place, place.written))
        yield from _wrong_names(config.place(setting), 0, 10000, 256)
    yield from _wrong_names(config.place("training.label_names"), 0, 1024, 128)
    yield from _wrong_names(config.place("training.mole_task_adapters"), 2, 64, 4096)
    yield from _wrong_interleave(config)
    for item in config.place("training.unfrozen_parameters").items():
        yield from _wrong_pattern(item, _text(item), config.facts.judged_urls)
    for setting in ("training.lora.rank_pattern", "training.lora.alpha_pattern"):
        yield from _wrong_ranks(config.place(setting), config.facts.judged_urls)
    if config.declares("training.lora.target_parameters"):
        yield from _wrong_targets(config.place("training.lora.target_parameters"))
    if config.place("task").plain == "preference":
        yield from _wrong_weights(config.place("training.preference_loss_weights"))
    yield from _wrong_rates(config.place("training.lr_groups"), config.facts.judged_urls)


def _blank(items: Sequence[Field]) -> Iterator[Field]:
    return (item for item in items if isinstance(item.plain, str) and not item.plain.strip())


def _wrong_names(place: Field, least: int, most: int, longest: int) -> Iterator[Wrong]:
    """A list of different texts."""
    items = place.items()
    if place.is_sequence and not least <= len(items) <= most:
        words = f"{least} to {most}" if least else f"at most {most}"
        yield Wrong(place, f"{place.name} must have {words} entries, not {len(items)}", "write another number of them")
    earlier: set[str] = set()
    for item in items:
        text = item.plain
        if isinstance(text, str):
            wrong = _wrong_text(item, text, TextLimit(longest, empty=False))
            if wrong is not None:
                message = wrong.message.replace(str(item.name), f"an entry of {place.name}", 1)
                yield Wrong(item, message, "remove it, or write another")
            elif text in earlier:
                yield Wrong(item, f"{place.name} has {text} twice", "remove one of them")
            earlier.add(text)


def _wrong_interleave(config: Config) -> Iterator[Wrong]:
    place, sources = config.place("data.interleave"), config.place("data.train")
    strategy = place.get("strategy") if place.is_mapping else place
    if place.node is None or place.is_unknown or place.is_null or strategy.is_unknown:
        return
    if place.is_mapping and strategy.node is None:
        yield Wrong(place, "interleave has no strategy", f"add strategy: {one_of(INTERLEAVE)}")
    elif place.is_mapping and not config.facts.several_sources:
        return
    elif strategy.plain not in INTERLEAVE:
        help = did_you_mean(strategy.written, INTERLEAVE) or f"write {one_of(INTERLEAVE)}"
        yield Wrong(strategy, f"interleave must be {some_of(INTERLEAVE)}", help)
    elif strategy.plain == "probs" and not place.is_mapping:
        yield Wrong(place, "interleave: probs needs the list probs", "write {strategy: probs, probs: [0.7, 0.3]}")
    elif place.is_mapping:
        yield from _wrong_probabilities(place, strategy.plain == "probs", len(sources.items()))


def _wrong_probabilities(place: Field, needed: bool, count: int) -> Iterator[Wrong]:
    probs = place.get("probs")
    numbers = [item.plain for item in probs.items()]
    if not needed:
        if probs.node is not None and not probs.is_null:
            yield Wrong(probs, "probs needs strategy: probs", "remove it, or set strategy: probs")
    elif count >= 2 and len(numbers) != count:
        at = probs if probs.node is not None else place
        yield Wrong(at, f"interleave.probs must have {count} numbers", "write one number for each of data.train")
    elif any(item.is_unknown for item in probs.items()):
        return
    elif not all(_is_share(number) for number in numbers):
        yield Wrong(probs, "interleave.probs must be numbers above 0, at most 1", "write shares such as 0.7 and 0.3")
    elif numbers and abs(sum(as_number(number) or 0 for number in numbers) - 1) > 1e-6:
        yield Wrong(probs, "interleave.probs must add up to 1", "write shares such as 0.7 and 0.3")


def _is_share(number: object) -> bool:
    return isinstance(number, (int, float)) and not isinstance(number, bool) and 0 < number <= 1


def _wrong_pattern(place: Field, pattern: str, costly: bool, longest: int = 512) -> Iterator[Wrong]:
    """A regular expression; `costly`: the release refuses also those that may take very long."""
    named = "pattern" if place.name.isdigit() else place.name
    wrong = _wrong_text(place, pattern, TextLimit(longest, empty=False)) if place.plain is not None else None
    if wrong is not None:
        yield Wrong(place, wrong.message.replace(place.name, f"the {named}", 1), wrong.help)
        return
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        yield Wrong(place, f"this is no regular expression: {error}", "write a name, or escape it with \\")
        return
    if _repeats_repetition(pattern) or (costly and _unbounded(pattern) > 3):
        yield Wrong(place, "this regular expression may take too long to match", "write a plain name")


def _repeats_repetition(pattern: str) -> bool:
    """A group without groups in it is repeated, and repeats something itself."""
    inside = repeats = closed = False
    for letter in pattern:
        if closed and letter in "+*":
            return True
        closed = inside and repeats and letter == ")"
        if letter in "()":
            inside, repeats = letter == "(", False
        elif inside and letter in "+*":
            repeats = True
    return False


def _unbounded(pattern: str) -> int:
    """The number of `*` and `+` that repeat something."""
    return len(re.findall(r"[*+]", re.sub(r"\\.|\[[^\]\[]*\]|(?<=[*+?}])[+?]", "", pattern)))


def _wrong_ranks(place: Field, costly: bool) -> Iterator[Wrong]:
    """Ranks by pattern."""
    entries = list(place.entries())
    if len(entries) > 256:
        yield Wrong(place, f"{place.name} must have 256 entries at most", "write fewer patterns")
    for entry in entries:
        value = entry.plain
        if entry.is_unknown:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= 1024:
            yield Wrong(entry, f"{place.name} must have integers from 1 to 1024", "write such a number")
        elif costly:
            yield from _wrong_pattern(entry, entry.name, costly)
        elif not entry.name or "\0" in entry.name:
            yield Wrong(entry, f"{place.name} must have patterns without a NUL, none of them empty", "correct the key")


def _wrong_targets(place: Field) -> Iterator[Wrong]:
    for item in place.items():
        text = item.plain
        if isinstance(text, str) and (not text.strip() or text.strip() == "auto" or "\0" in text or len(text) > 512):
            yield Wrong(item, "target_parameters must list names of parameters", "write their names, or auto alone")
    if len(place.items()) > 256:
        yield Wrong(place, "target_parameters must have 256 entries at most", "write fewer names")


def _wrong_weights(place: Field) -> Iterator[Wrong]:
    """Weights of preference losses."""
    if not place.is_mapping or any(entry.is_unknown for entry in place.entries()):
        return
    entries = list(place.entries())
    numbers = [as_number(entry.plain) for entry in entries]
    for entry in entries:
        if entry.name not in PREFERENCE_LOSSES:
            help = did_you_mean(entry.name, PREFERENCE_LOSSES) or f"write {one_of(PREFERENCE_LOSSES)}"
            yield Wrong(entry, f"preference_loss_weights has no loss {entry.name}", help)
            return
    if len(entries) < 2:
        help = "add another loss, or set preference_loss instead"
        yield Wrong(place, "preference_loss_weights needs two losses or more", help)
    elif None not in numbers and not all(0 < (number or 0) <= 1 for number in numbers):
        yield Wrong(place, "preference_loss_weights must be above 0, at most 1", "write shares such as 0.7 and 0.3")
    elif None not in numbers and abs(sum(number or 0 for number in numbers) - 1) > 1e-6:
        yield Wrong(place, "preference_loss_weights must add up to 1", "write shares such as 0.7 and 0.3")


def _wrong_rates(place: Field, costly: bool) -> Iterator[Wrong]:
    """Learning rates by pattern."""
    if place.node is None or place.is_null or place.is_unknown:
        return
    if not place.is_mapping and not place.is_sequence:
        yield Wrong(place, "lr_groups must be a list of patterns with their lr", "write [{pattern: q_proj, lr: 1e-5}]")
    pairs = [(entry, entry.name, entry) for entry in place.entries()]
    for item in place.items():
        if {entry.name for entry in item.entries()} == {"pattern", "lr"}:
            pairs.append((item.get("pattern"), _text(item.get("pattern")), item.get("lr")))
        elif len(item.items()) == 2:
            first, second = item.items()
            pairs.append((first, _text(first), second))
        elif not item.is_unknown:
            yield Wrong(item, "an entry of lr_groups has a pattern and an lr", "write {pattern: q_proj, lr: 1e-5}")
    for at, pattern, rate in pairs:
        number = None if isinstance(rate.plain, bool) else as_number(rate.plain)
        if not rate.is_unknown and (number is None or not 0 < number <= 1):
            yield Wrong(rate, "an lr of lr_groups must be a number above 0, at most 1", "write one such as 1e-5")
        elif not at.is_unknown:
            yield from _wrong_pattern(at, pattern, costly, 256)
