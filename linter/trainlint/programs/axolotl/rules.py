"""The rules of Axolotl: what its validation refuses, and what it ignores without a message."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from trainlint.budget import BUDGET
from trainlint.findings import Finding, Fix, Severity, Stage, counted, did_you_mean, nearest, one_of, some_of
from trainlint.lazy import regex
from trainlint.programs.axolotl.facts import (
    BUILT_IN_ADAPTERS,
    COMPILE_OPTIONS,
    GGUF_QUANTS,
    METRICS,
    MIXLORA_DEFAULTS,
    NOT_EMPTY,
    PLUGINS,
    REFUSED_WHEN_TRUE,
    RENAMED,
    RESERVED_PROCESSOR_KEYS,
    UNDECLARED_KEYS,
    WORDS,
    WRITTEN_OUT,
    AxolotlFacts,
)
from trainlint.programs.axolotl.program import PREFIX, AxolotlConfig
from trainlint.reading import mending
from trainlint.reading.document import Scalar
from trainlint.reading.values import UNKNOWN, Field
from trainlint.releases import version_tuple
from trainlint.rule import rule
from trainlint.training.declarations import Spec, declarations
from trainlint.training.limits import Data, data_of, is_true, refused
from trainlint.training.pydantic_types import Refusal, as_number, mended, model_refusals, refusals


@rule("FS401", "axolotl-value", stage=Stage.LOAD, follows=("FS405",))
def axolotl_value(config: AxolotlConfig) -> Iterator[Finding]:
    """A value has a type or content that its field does not accept.

    Each field of a configuration has a type, and validation stops the run at a value that it cannot convert to that
    type. Text such as `"1e-5"` or `"true"` is converted to a number or boolean, but a number or boolean never to text:
    an unquoted `no`, which YAML reads as false, is refused where a word is needed. Words of an enumeration must match
    exactly. Sections such as `fsdp_config`, `trl` or an item of `datasets` have fields of their own.

    Write a value of the named type; quote a word that YAML reads as a boolean, a date or a number. A copy of Axolotl in
    the repository may have words of its own.

    Source: Axolotl, utils/schemas/ of each release, validated by pydantic in its lax mode.
    """
    for name, spec in config.fields.items():
        for key in (name, *spec.aliases):
            if name not in config.read_apart and not spec.converted:
                yield from _refused(refusals(config.field.get(key), spec, config.schema), config)
    yield from _refused(_datasets(config), config)
    for name in NOT_EMPTY:
        field = config.field.get(name)
        if name in config.fields and field.is_sequence and not field.items():
            yield field.finding(f"{name} must not be empty", help="add an item, or remove it", at_key=True)
    yield from _refused(_fsdp_config(config), config)
    tokens = config.field.get("tokens")
    if isinstance(tokens.target, Scalar) and _TOKEN.fullmatch(tokens.target.value):
        yield tokens.finding(
            f"tokens must be a list, not {tokens.target.value}",
            help="write it as an item of a list",
            fix=mending.listed(tokens, tokens.target.value),
        )


_TOKEN = regex(r"<[^<>\s]+>")
"""A token of a vocabulary, which elsewhere is the placeholder of a template."""


def _refused(found: Iterable[Refusal], config: AxolotlConfig) -> Iterator[Finding]:
    for refusal in found:
        place = refusal.place
        if place.is_null and config.may_be_filled(place.name):
            continue  # Code fills in what is left empty.
        if refusal.choices and config.may_know(place):
            continue
        if refusal.missing:
            yield place.finding(f"{refusal.wanted} is missing", help=f"add {refusal.wanted}", at_key=True)
            continue
        written = "a list" if place.is_sequence else "a mapping" if place.is_mapping else place.written or "empty"
        yield place.finding(
            f"{_label(place)} must be {refusal.wanted}, not {refusal.got or written}",
            help=did_you_mean(place.written, refusal.choices) or _quoted(place, refusal),
            fix=mended(refusal),
        )


def _label(field: Field) -> str:
    """The name of a field in a message: its key, or `an item of` its list."""
    return f"an item of {field.parent.name}" if field.parent and field.parent.is_sequence else field.name


def _quoted(place: Field, refusal: Refusal) -> str:
    if refusal.wanted == "a text" or refusal.choices:
        plain = place.plain
        if plain is not None and not isinstance(plain, str) and place.written:
            return f"quote it: YAML reads {place.written} as {'a boolean' if isinstance(plain, bool) else 'a number'}"
    return ""


def _fsdp_config(config: AxolotlConfig) -> Iterator[Refusal]:
    """The keys of fsdp_config under either spelling."""
    model = config.model("FSDPConfig")
    if not config.section.is_mapping or not model:
        yield from refusals(config.section, config.fields["fsdp_config"], config.schema)
        return
    for name, spec in model.items():
        yield from refusals(config.fsdp("version" if name == "fsdp_version" else name), spec, config.schema)


def _datasets(config: AxolotlConfig) -> Iterator[Refusal]:
    """The items of `datasets`, each checked as the kind of dataset that `rl` asks for."""
    datasets = config.field.get("datasets")
    if not datasets.is_sequence:
        if "datasets" not in config.overridden:
            yield from refusals(datasets, config.fields["datasets"], config.schema)
        return
    if config.field.get("rl").is_unknown:
        return
    for item in datasets.items():
        if item.is_mapping:
            yield from model_refusals(item, config.model(config.dataset_model(item)), config.schema)
        elif not item.is_unknown:
            yield Refusal(item, "a mapping")


@rule("FS402", "axolotl-word", stage=Stage.LOAD)
def axolotl_word(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """A setting has a word that Axolotl does not know, or text where a number is needed.

    Some settings are text in the schema and checked by hand: the attention implementation, the adapter (from 0.17 on it
    must be built in or come with a plugin), quantization dtypes, metrics, options of torch.compile, regular expressions
    of LoRA targets, datasets of the removed type sharegpt, and a learning rate in quotes, which must be a number.

    Source: Axolotl, validators of utils/schemas/config.py, peft.py, quantization.py and datasets.py.
    """
    for finding in _wrong_words(config, facts):
        if finding.field.partition(".")[0] not in config.overridden:
            yield finding


def _wrong_words(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    yield from _attention_word(config, facts)
    yield from _adapter_word(config, facts)
    for name, words in WORDS.items():
        value = config.field.get(name).text()
        if name in config.fields and value.map(str.lower).known_and_not_in(words):
            yield from _not_a_word(value.field, words, config)
        elif name in config.fields and name in WRITTEN_OUT and value.wrong_type:
            yield value.finding(f"{name} must be a text", help=f"write {one_of(words)}")
    yield from _quants(config)
    for section in ("qat", "quantization"):
        for name in ("weight_dtype", "activation_dtype"):
            value = config.field.at(section, name).text()
            if section in config.fields and value.known_and_not_in(facts.dtypes):
                yield from _not_a_word(value.field, facts.dtypes, config)
    for metric in config.field.get("eval_causal_lm_metrics").texts().known or []:
        if metric.known_and_not_in(METRICS):
            yield from _not_a_word(metric.field, METRICS, config)
    options = config.field.get("torch_compile_options")
    for entry in options.entries() if facts.compile_options else ():
        if entry.name not in COMPILE_OPTIONS:
            yield entry.finding(
                f"torch_compile_options has no option {entry.name}",
                help=did_you_mean(entry.name, COMPILE_OPTIONS) or f"write {one_of(COMPILE_OPTIONS)}",
                fix=mending.renamed_to_nearest(entry, COMPILE_OPTIONS),
                at_key=True,
            )
    rate = config.field.get("learning_rate").text()
    if rate.known_and(lambda text: bool(text) and as_number(text) is None):
        yield rate.finding(f'learning_rate must be a number, not "{rate}"', help="write a number such as 2e-5")
    yield from _compared_numbers(config, facts)
    yield from _bad_patterns(config, facts)
    yield from _dataset_types(config)


def _quants(config: AxolotlConfig) -> Iterator[Finding]:
    """The types of quantization in `export`: a list, or a text with commas."""
    field = config.field.at("export", "quantize")
    if "export" not in config.fields or not is_true(data_of(field)):
        return
    if not (field.is_sequence or field.is_mapping or field.text().known):
        yield field.finding("quantize must be a list", help="write a list such as [Q4_K_M]")
    for item in field.items() or [field]:
        for word in (item.text().known or "").split(","):
            name = word.strip()
            if item.text().known and name.upper() not in GGUF_QUANTS and not config.may_know(item):
                help = did_you_mean(name.upper(), GGUF_QUANTS) or f"write {one_of(GGUF_QUANTS)}"
                yield item.finding(f'quantize cannot be "{name}"', help=help)


def _not_a_word(field: Field, words: Iterable[str], config: AxolotlConfig) -> Iterator[Finding]:
    if not config.may_know(field):
        yield field.finding(
            f'{_label(field)} cannot be "{field.written}"',
            help=did_you_mean(field.written, words) or f"write {one_of(words)}",
            fix=mending.respelled(field, words),
        )


def _attention_word(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    value = config.field.get("attn_implementation").text()
    if not facts.attentions:
        return
    if value.known_and(lambda word: word not in facts.attentions and "/" not in word):
        yield from _not_a_word(value.field, facts.attentions, config)
    elif value.wrong_type:
        yield value.finding("attn_implementation must be a text", help=f"write {one_of(facts.attentions)}")


def _adapter_word(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    adapter = config.field.get("adapter").text()
    known = ("", *BUILT_IN_ADAPTERS, *(word for plugin in config.plugins for word in _adapters(plugin)))
    if facts.registered_adapters and not config.has_other_plugins and adapter.known_and_not_in(known):
        having = next((name for name, plugin in facts.plugins.items() if adapter.is_(*_adapters(plugin))), "")
        if not having and config.may_know(adapter.field):
            return
        yield adapter.finding(
            f"adapter: {adapter} needs its plugin" if having else f'unknown adapter "{adapter}"',
            help=f"add {PLUGINS}{having} to plugins"
            if having
            else did_you_mean(str(adapter), BUILT_IN_ADAPTERS) or "add the plugin that has it to plugins",
            fix=None if having else mending.respelled(adapter, BUILT_IN_ADAPTERS),
        )


def _adapters(plugin: Spec) -> list[str]:
    words = plugin.extra.get("adapters")
    return [str(word) for word in words] if isinstance(words, list) else []


def _compared_numbers(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    for name in facts.compared_as_numbers:
        value = config.field.get(name)
        if value.text().known is not None:
            fix = mending.numbered(value)
            help = "write a number" if fix is None else "remove the quotes"
            yield value.finding(f'{name} must be a number, not "{value.written}"', help=help, fix=fix)


def _bad_patterns(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    if facts.target_patterns_compiled:
        for pattern in config.field.get("lora_target_modules").texts().known or []:
            if pattern.known_and(lambda text: not _compiles(text)):
                yield pattern.finding(f'"{pattern}" is not a regular expression', help="escape literal characters")
    if facts.processor_keys_reserved:
        for entry in config.field.get("processor_kwargs").entries():
            if entry.name in RESERVED_PROCESSOR_KEYS:
                yield entry.finding(
                    f"{entry.name} cannot be set in processor_kwargs",
                    help=f"set {RESERVED_PROCESSOR_KEYS[entry.name]} instead",
                    at_key=True,
                )


def _compiles(pattern: str) -> bool:
    """Python takes a regular expression; one that is very long is taken on trust."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern if len(pattern) <= BUDGET.pattern else "")
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _dataset_types(config: AxolotlConfig) -> Iterator[Finding]:
    for item in config.field.get("datasets").items():
        kind = item.get("type").text()
        if kind.known_and(lambda text: text.startswith("sharegpt")):
            yield kind.finding(
                f"the dataset type {kind} no longer exists",
                help="write type: chat_template and field_messages: conversations, and in message_property_mappings "
                "role: from and content: value",
            )
        yield from _mapped_twice(item, config)
        jinja = item.get("chat_template").text()
        if jinja.is_("jinja") and is_true(config.data("datasets")) and not item.get("chat_template_jinja").written:
            yield jinja.finding("chat_template: jinja needs chat_template_jinja", help="add chat_template_jinja")


def _mapped_twice(item: Field, config: AxolotlConfig) -> Iterator[Finding]:
    """The old names of the fields of a message contradict the mapping that has replaced them."""
    for part in ("role", "content") if config.dataset_model(item) == "SFTDataset" else ():
        old, new = item.get(f"message_field_{part}"), item.at("message_property_mappings", part)
        contradicts = old.node is not None and new.node is not None and not old.is_unknown and not new.is_unknown
        if contradicts and old.plain != new.plain:
            yield old.finding(
                f"{old.name} contradicts {part} in message_property_mappings",
                help=f"remove {old.name}",
                related=new.relate("the other name"),
            )


@rule("FS403", "axolotl-required", stage=Stage.LOAD)
def axolotl_required(config: AxolotlConfig) -> Iterator[Finding]:
    """A required setting is missing.

    A configuration needs `base_model`, `learning_rate`, and one of `datasets` and `pretraining_dataset`. Where code of
    the repository names the file, or stores the key into a mapping, it may fill in what is missing: nothing is said.

    Source: Axolotl, utils/schemas/config.py and validation.py of each release.
    """
    for name, spec in config.fields.items():
        given = [place for key in (name, *spec.aliases) if (place := config.field.get(key)).node or place.is_unknown]
        if spec.required and not given and name not in config.overridden and not config.may_be_filled(name):
            yield config.field.finding(f"{name} is missing", help=f"add {name}")
    if config.field.get("datasets").is_null and not config.field.get("pretraining_dataset").is_absent:
        datasets = config.field.get("datasets")
        fix = mending.removed(datasets)
        yield datasets.finding("datasets must be a list", help="remove it", fix=fix, at_key=True)
    if config.field.get("datasets").is_absent and config.field.get("pretraining_dataset").is_absent:
        place = config.field.get("datasets") if config.field.get("datasets").is_null else config.field
        if config.reader.fills("datasets"):  # Also a plugin of Axolotl's own source may bring its data.
            return
        yield place.finding("datasets is missing: there is nothing to train on", help="add datasets")


@rule(
    "FS404",
    "axolotl-unread-key",
    stage=Stage.RUN,
    severity=Severity.WARNING,
    ordinary_elsewhere=True,
    varies="error in a section that refuses unknown keys",
    follows=("FS405", "FS414"),
)
def axolotl_unread_key(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """A key is not read.

    Keys that a release does not know are ignored without a message, so a misspelt one leaves its default in force: with
    a misspelt `fsdp_config` every device trains the whole model. Reported are keys that are almost keys of the release,
    also in sections and datasets, keys that another release reads, and keys of a plugin that is not in `plugins`. A
    plugin that does not come with Axolotl may read top-level keys of its own. Only a few sections, such as
    `fp8_config`, refuse unknown keys.

    Source: Axolotl, the fields of utils/schemas/config.py of each release and of its plugins.
    """
    if config.own_package:
        return
    if not config.has_other_plugins:
        read = _names(facts.release)
        for entry in config.field.entries():
            if (
                entry.name not in read
                and not entry.is_null
                and not entry.name.startswith(("_", "x-"))
                and not config.reader.defines(entry.name)
            ):
                yield from _unread(entry, read, config)
        yield from _without_plugin(config, facts)
    yield from _unread_inside(config, facts)


def _without_plugin(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """The keys of each plugin that is not loaded, as one finding; none where a plugin's name is wrong."""
    if any(config.plugin_name(item) not in facts.plugins for item in config.field.get("plugins").items()):
        return
    for name, keys in _plugin_keys(facts.release).items():
        unread = [config.field.get(key) for key in keys if key not in config.fields]
        given = [field for field in unread if field.node is not None and field.plain not in (None, False)]
        if given:
            yield given[0].finding(
                f"{given[0].name} is not read: {name.rpartition('.')[2]} is not in plugins",
                help=f"add {PLUGINS}{name} to plugins, or remove {'it' if len(given) == 1 else 'them'}",
                at_key=True,
                related=tuple(place for field in given[1:] for place in field.relate("not read either")),
            )


def _unread(entry: Field, read: frozenset[str], config: AxolotlConfig) -> Iterator[Finding]:
    names = declarations("axolotl").names
    meant = nearest(entry.name, read, cutoff=0.85)
    others = [release for release in names if entry.name in _names(release)]
    if others:
        gone = version_tuple(others[-1]) < version_tuple(config.facts.release)
        advice = f": only Axolotl up to {others[-1]} reads it" if gone else f", or use Axolotl {others[0]} or newer"
        yield entry.finding(f"{entry.name} is not read in this release", help=f"remove it{advice}", at_key=True)
    elif meant:
        what = ": nothing is sharded" if meant == "fsdp_config" and config.section.is_absent else ""
        fix = mending.renamed_to_nearest(entry, [meant])
        yield entry.finding(f"{entry.name} is not read{what}", help=f'did you mean "{meant}"?', fix=fix, at_key=True)


def _unread_inside(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """Keys in a section or a dataset that are almost keys of its model, or that the model refuses."""
    known = declarations("axolotl")
    for name, spec in config.fields.items():
        models = [kind for kind in spec.types if config.model(kind) and name != "fsdp_config"]
        places = [(config.field.get(name), models[0])] if models else []
        if name in ("datasets", "test_datasets"):
            places = [(item, config.dataset_model(item)) for item in config.field.get(name).items()]
        for place, model in places:
            fields = config.model(model)
            forbidden = known.value(f"extra:{model}", facts.release) == "forbid"
            for entry in place.entries():
                meant = nearest(entry.name, fields, cutoff=0.85)
                if entry.name not in fields and (forbidden or (meant and not entry.name.startswith("message_field_"))):
                    yield entry.finding(
                        f"{name} has no key {entry.name}",
                        help=f'did you mean "{meant}"?' if meant else f"remove it; the keys are {some_of(fields)}",
                        severity=Severity.ERROR if forbidden else None,
                        fix=mending.renamed_to_nearest(entry, [meant]) if meant else None,
                        at_key=True,
                    )


@cache
def _plugin_keys(release: str) -> Mapping[str, Sequence[str]]:
    """The plugins of a release by their shortest names, each with the keys that it reads."""
    known = declarations("axolotl")
    models: dict[str, str] = {}
    for name, spec in known.fields("plugins", release).items():
        model = str(spec.extra.get("args", ""))
        models[model] = min(name, models.get(model, name), key=len)
    return {name: tuple(known.fields(model, release)) for model, name in models.items() if model}


@cache
def _names(release: str) -> frozenset[str]:
    """The keys that a release and its plugins read."""
    known = declarations("axolotl")
    fields = known.fields("AxolotlInputConfig", release)
    aliases = {alias for spec in fields.values() for alias in spec.aliases}
    added = (key for keys in _plugin_keys(release).values() for key in keys)
    return frozenset({*fields, *aliases, *added, *UNDECLARED_KEYS})


@rule("FS405", "axolotl-removed-key", stage=Stage.LOAD, varies="note for a renamed setting, which is still read")
def axolotl_removed_key(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """A setting is gone, or has a new name.

    Removed settings are still fields, so that validation can refuse them. Renamed ones are still read, with a warning.

    Source: Axolotl, utils/schemas/deprecated.py of each release.
    """
    for name, spec in declarations("axolotl").fields("deprecated", facts.release).items():
        field = config.field.get(name)
        refused = spec.extra.get("effect") == "error"
        given = is_true(config.converted.data(name)) if name in REFUSED_WHEN_TRUE else not field.is_absent
        if given and not field.is_unknown:
            yield field.finding(
                f"{name} is no longer supported" if refused else f"{name} is deprecated",
                help=RENAMED.get(name, "remove it"),
                severity=Severity.ERROR if refused else Severity.NOTE,
                fix=_new_name(field, RENAMED.get(name, ""), refused=refused),
                at_key=True,
            )


def _new_name(field: Field, help: str, *, refused: bool) -> Fix | None:
    """A renamed key means the same under its new name; a setting that is gone may have been wanted."""
    fix = mending.advised(field, help) if help else mending.removed(field, sure=False)
    return fix if fix is None or refused else fix._replace(keeps=True)


@rule("FS406", "axolotl-fsdp1-removed", stage=Stage.LOAD)
def axolotl_fsdp1_removed(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """A setting asks for FSDP1, which Axolotl no longer has.

    From 0.20 on only FSDP2 shards. A non-empty list `fsdp`, a version other than 2 (`fsdp_version`, or `fsdp_version`
    or `version` in `fsdp_config`), `sharding_strategy` and `forward_prefetch` are refused, with and without the prefix.
    Other FSDP1 settings are ignored with a warning.

    Remove the list `fsdp`, keep `fsdp_config`, and write `reshard_after_forward` instead of a sharding strategy.

    Source: Axolotl 0.20, check_fsdp_version of utils/schemas/validation.py.
    """
    if facts.fsdp1:
        return
    if is_true(config.data("fsdp")):
        yield config.field.get("fsdp").finding(
            f"the list fsdp is refused since Axolotl {_REMOVED_IN}",
            help="remove it: fsdp_config alone switches FSDP2 on",
            fix=mending.removed(config.field.get("fsdp"), sure=config.section.is_mapping),
            at_key=True,
        )
    written = [config.field.get("fsdp_version"), config.section.get("fsdp_version"), config.section.get("version")]
    for version in written:
        if not version.is_absent and not version.is_unknown and str(version.plain) != "2":
            yield version.finding(
                f"FSDP{version.written} is gone since Axolotl {_REMOVED_IN}",
                help="write fsdp_version: 2",
                fix=mending.written(version, "2", sure=False),
            )
    for name, entry in config.fsdp_keys():
        if name in facts.refused_keys:
            yield entry.finding(
                f"{entry.name} is a setting of FSDP1, which Axolotl {_REMOVED_IN} removed",
                help=facts.refused_keys[name],
                fix=_without_fsdp1(entry, name),
                at_key=True,
            )


def _without_fsdp1(entry: Field, name: str) -> Fix | None:
    """FSDP2's switch in place of a strategy that it has; settings that have become the rule go."""
    if name != "sharding_strategy":
        return mending.removed(entry)
    reshards = {"FULL_SHARD": "true", "1": "true", "SHARD_GRAD_OP": "false", "2": "false"}.get(entry.written.upper())
    return mending.instead(entry, "reshard_after_forward", reshards) if reshards else None


_REMOVED_IN = "0.20"


@rule("FS407", "axolotl-fsdp-prefix", stage=Stage.RUN, severity=Severity.NOTE)
def axolotl_fsdp_prefix(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """A key in fsdp_config has the old prefix `fsdp_`.

    From 0.12 on the keys have no prefix. It is still stripped, with a warning at each start.

    Remove the prefix (`--fix` does).

    Source: Axolotl 0.12 and later, check_fsdp_config_kwargs_prefix of utils/schemas/validation.py.
    """
    if not facts.prefix_stripped:
        return
    spelled = [name for name, _ in config.fsdp_keys()]
    for name, entry in config.fsdp_keys():
        known = name in facts.fsdp_keys and spelled.count(name) == 1
        if entry.name.startswith(PREFIX) and entry.name != "fsdp_version" and known:
            yield entry.finding(
                f"{entry.name} has the old prefix: it is {name} since Axolotl 0.12",
                help="remove the prefix fsdp_",
                fix=mending.renamed(entry, name, keeps=True),
                at_key=True,
            )


@rule("FS408", "axolotl-two-spellings", stage=Stage.RUN, severity=Severity.WARNING)
def axolotl_two_spellings(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """A setting of fsdp_config is given twice, with the prefix and without.

    Both have the same name once the prefix is stripped, and only the last one in the file counts.

    Remove one of them.

    Source: Axolotl 0.12 and later, check_fsdp_config_kwargs_prefix of utils/schemas/validation.py.
    """
    if not facts.prefix_stripped:
        return
    last: dict[str, Field] = {}
    for name, entry in config.fsdp_keys():
        before = last.get(name)
        if before is not None and name != "version" and (before.written != entry.written or before.is_sequence):
            yield before.finding(
                f"{before.name} has no effect: {entry.name} comes after it",
                help="remove one of them",
                at_key=True,
                related=entry.relate("only this one counts"),
                fix=mending.removed(before, sure=False, keeps=True),
            )
        last[name] = entry


@rule("FS409", "axolotl-nothing-sharded", stage=Stage.RUN, severity=Severity.WARNING)
def axolotl_nothing_sharded(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """FSDP is meant to be on, but stays off.

    From 0.12 on a non-empty `fsdp_config` switches FSDP on. `fsdp_version: 2`, `dp_shard_size` or an empty
    `fsdp_config` alone do not: every device holds the whole model, without a message.

    Add `fsdp_config` with at least a wrap policy.

    Source: Axolotl 0.12 and later, prepare_optim_env of utils/trainer.py.
    """
    if not facts.prefix_stripped or is_true(config.data("fsdp_config")) is not False:
        return
    if is_true(config.data("fsdp")) is not False or is_true(config.data("deepspeed")) is not False:
        return
    section = config.section
    if section.is_mapping:
        yield section.finding(
            "an empty fsdp_config does not switch FSDP on", help="add auto_wrap_policy, or remove it", at_key=True
        )
        return
    for name in ("fsdp_version", "dp_shard_size"):
        value = config.field.get(name)
        if name in config.fields and value.integer().above(1):
            yield value.finding(
                f"{name} does not switch FSDP on without fsdp_config", help="add fsdp_config", at_key=True
            )


@rule("FS410", "axolotl-sharding-limit", stage=Stage.LOAD, follows=("FS401", "FS402"))
def axolotl_sharding_limit(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """A setting does not work under FSDP or DeepSpeed, or needs one of them.

    ReLoRA, Falcon models and per-layer embeddings on the CPU do not work with FSDP; norms in fp32 and fp8 gathering
    need it; a size-based wrap policy needs its size; memory stays unpinned only where parameters are offloaded;
    DeepCompile needs DeepSpeed.

    Source: Axolotl, validators of utils/schemas/validation.py, config.py and fsdp.py of each release.
    """
    yield from refused(facts.limits["sharding"], config, config.converted)


@rule("FS411", "axolotl-optimizer-limit", stage=Stage.LOAD, follows=("FS401", "FS402"))
def axolotl_optimizer_limit(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """The optimizer does not work with the kind of sharding or training.

    bitsandbytes' 8-bit AdamW (adamw_8bit, adamw_bnb_8bit) fails under FSDP2 and under tensor parallelism; in releases
    with FSDP1 any 8-bit optimizer fails with its parameter offload. Muon and the flash optimizers do not work with
    DeepSpeed; PoLoRA and Q-GaLore have conditions of their own.

    Use `adamw_torch_fused`, or `adamw_torch_8bit` under FSDP2.

    Source: Axolotl, validators of utils/schemas/validation.py of each release.
    """
    found = list(refused(facts.limits["optimizers"], config, config.converted))
    yield from found
    optimizer = config.field.get("optimizer")
    if facts.offload_key_needed and not found and is_true(config.data("fsdp_config")):
        offload, name = config.fsdp("offload_params"), optimizer.text()
        if offload.node is None and config.section.is_mapping and name.known_and(lambda word: "8bit" in word):
            yield optimizer.finding(
                f"{name} needs offload_params in fsdp_config", help="add offload_params: false to fsdp_config"
            )
    rates = (config.data(name) for name in ("loraplus_lr_ratio", "embedding_lr_scale", "embedding_lr", "lr_groups"))
    if facts.null_optimizer_with_rates and optimizer.is_null and any(r is not None and r is not UNKNOWN for r in rates):
        yield optimizer.finding("optimizer is empty", help="name one, such as adamw_torch_fused", at_key=True)


@rule("FS412", "axolotl-adapter-limit", stage=Stage.LOAD, follows=("FS401", "FS402"))
def axolotl_adapter_limit(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """Adapter, quantization and loading exclude each other.

    A quantized model can only be trained through an adapter, and qlora only in 4 bits. Loading a 4-bit model on the
    first process (`cpu_ram_efficient_loading`) deadlocks under FSDP2: 0.19 refuses it, later releases unless it is a
    qlora model that is loaded in shards. The LoRA kernels, DoRA, GPTQ, ReLoRA and QAT have limits of their own.

    Source: Axolotl, validators of utils/schemas/peft.py, validation.py and config.py of each release.
    """
    yield from refused(facts.limits["adapters"], config, config.converted)
    if "mixlora_top_k" in config.fields:
        used, experts = (
            config.field.get(name).integer().or_when_absent(default) for name, default in MIXLORA_DEFAULTS.items()
        )
        if experts.known is not None and used.above(experts.known):
            place = used if used.field.node is not None else experts
            yield place.finding(
                f"each token uses {used.known} experts, but there are only {experts.known}",
                help="lower mixlora_top_k, or raise mixlora_num_experts",
            )


@rule("FS413", "axolotl-rl-limit", stage=Stage.LOAD, follows=("FS401", "FS402"))
def axolotl_rl_limit(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """A setting does not work with this method of reinforcement learning.

    Preference data cannot be packed. KTO keeps all columns. DPO, KTO, ORPO and IPO do not train a quantized model under
    FSDP2. Losses and weights are for DPO alone, one weight for each loss. GRPO's batch is a multiple of its
    generations.

    Source: Axolotl, validators of utils/schemas/validation.py of each release.
    """
    yield from refused(facts.limits["reinforcement"], config, config.converted)
    if not facts.rl_counts_checked:
        return
    rl = config.field.get("rl").text()
    losses, weights = config.field.get("dpo_loss_type"), config.field.get("dpo_loss_weights")
    counts = len(losses.items()), len(weights.items())
    if rl.is_("dpo") and losses.is_sequence and weights.is_sequence and counts[0] != counts[1]:
        yield weights.finding(
            f"dpo_loss_weights has {counted(counts[1], 'weight')} for {counted(counts[0], 'loss', 'losses')}",
            help="write one for each loss",
            at_key=True,
        )
    many = config.field.at("trl", "num_generations").integer().known or 0
    batch = config.field.at("trl", "generation_batch_size").integer()
    if rl.is_("grpo") and many > 1 and batch.known_and(lambda size: size % many != 0):
        yield batch.finding(
            f"generation_batch_size must be a multiple of num_generations ({many})", help=f"write a multiple of {many}"
        )


@rule("FS414", "axolotl-training-limit", stage=Stage.LOAD, follows=("FS401", "FS402"))
def axolotl_training_limit(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """Two settings exclude each other, or one needs another.

    Steps and strategies of saving and evaluating must agree, batch sizes are given in one way, streamed data needs
    max_steps, activation offloading needs gradient checkpointing, only one attention and one cross entropy can be
    chosen, and so on: validation stops at the first such pair.

    Source: Axolotl, validators of utils/schemas/validation.py, model.py and config.py of each release.
    """
    yield from refused(facts.limits["training"], config, config.converted)
    save, evaluate = config.field.get("save_steps").number().known, config.field.get("eval_steps").number().known
    if is_true(config.data("early_stopping_patience")) and save and evaluate and save % evaluate:
        yield config.field.get("eval_steps").finding(
            "early_stopping_patience needs eval_steps that divide save_steps", help="make save_steps a multiple of it"
        )
    several = len(config.field.get("datasets").items()) > 1
    if (
        facts.streams_packed_alone
        and several
        and is_true(config.data("streaming"))
        and is_true(config.data("sample_packing"))
    ):
        yield config.field.get("sample_packing").finding(
            "several streamed datasets cannot be packed", help="use one dataset, or remove sample_packing"
        )


@rule("FS415", "axolotl-offload-clipping", stage=Stage.RUN, severity=Severity.WARNING)
def axolotl_offload_clipping(config: AxolotlConfig) -> Iterator[Finding]:
    """Gradients are clipped while FSDP2 offloads parameters.

    With `offload_params` the gradients are on the CPU. Clipping sums their norms over all processes, on the CPU, and
    the process group that Axolotl makes only has NCCL, which cannot do that: the run stops at the first step.

    Remove `max_grad_norm` or `offload_params`, or make the process group with both backends.

    Source: Axolotl issue 3058; torch, clip_grad_norm_ of distributed tensors.
    """
    converted = config.converted
    offloads = is_true(converted.data("fsdp_config.offload_params"))
    if offloads and is_true(converted.data("max_grad_norm")) and converted.data("fsdp_version") == 2:
        yield config.fsdp("offload_params").finding(
            "gradients of offloaded parameters cannot be clipped",
            help="remove max_grad_norm or offload_params",
            related=config.field.get("max_grad_norm").relate("gradients are clipped"),
        )


@rule("FS416", "axolotl-duplicate-key", stage=Stage.RUN, severity=Severity.WARNING)
def axolotl_duplicate_key(config: AxolotlConfig) -> Iterator[Finding]:
    """A key is written twice, and only the last one counts.

    PyYAML keeps the last of equal keys in a mapping, without a message, so the first value is lost.

    Remove the wrong one.

    Source: Axolotl, utils/config and cli/config.py of each release, which load with PyYAML's safe_load.
    """
    yield from _written_twice(config.field)


SIZES = ("tensor_parallel_size", "context_parallel_size", "dp_replicate_size", "dp_shard_size")


@rule("FS419", "axolotl-parallel-sizes", stage=Stage.PREPARE)
def axolotl_parallel_sizes(config: AxolotlConfig, facts: AxolotlFacts) -> Iterator[Finding]:
    """The parallel sizes do not fit the number of processes.

    Tensor and context parallelism, copies and shards of the model divide the processes among them: their sizes must
    multiply to the number of processes that the command starts. What is left is sharded, if FSDP2 is on. Otherwise the
    run stops before the model is loaded. Copies and shards alone, without FSDP, are not looked at.

    Checked where each command of the repository that trains with the file says how many processes it starts.

    Source: Axolotl 0.12 and later, build_parallelism_config of utils/distributed.py; accelerate, ParallelismConfig.
    """
    settings = config.converted
    sizes = {name: _whole(settings.data(name)) for name in SIZES}
    fsdp = is_true(settings.data("fsdp_config")) or is_true(settings.data("fsdp"))
    others = [is_true(settings.data(name)) for name in ("deepspeed", "fsdp_config", "fsdp")]
    known = all(size is None or isinstance(size, int) for size in sizes.values()) and None not in others
    experts = settings.data("expert_parallel_size")
    if not facts.sizes_multiply or not known or others[0] or experts not in (None, 1, 1.0) or not any(sizes.values()):
        return
    if (others[1] and settings.data("fsdp_version") != 2) or not (others[1] or _above_one(sizes, SIZES[:2])):
        return
    for count in config.processes:
        product = _product(count.number, {name: size for name, size in sizes.items() if isinstance(size, int)}, fsdp)
        if product != count.number:
            written = [settings.place(name) for name in SIZES if isinstance(sizes[name], int) and sizes[name] != 1]
            place = written[0] if written else config.field.get("dp_shard_size")
            yield place.finding(
                f"the parallel sizes do not fit {count.number} processes",
                help=f"write sizes that multiply to {count.number}, or start another number of processes",
                related=count.place.relate("the number of processes"),
            )
            return


def _whole(value: Data) -> Data:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _above_one(sizes: Mapping[str, object], names: Sequence[str]) -> bool:
    return any(isinstance(size, int) and size > 1 for size in (sizes[name] for name in names))


def _product(processes: int, sizes: Mapping[str, int], fsdp: bool | None) -> int:
    """The number of processes that Axolotl makes of the sizes; 0 where it refuses them."""
    left, product = processes, 1
    for name in SIZES[:2]:
        size = max(sizes.get(name, 1), 1)
        left, product = left // size, product * size
    copies, shards = sizes.get("dp_replicate_size", 1), sizes.get("dp_shard_size")
    if shards is None and copies in (0, 1) and left > 1:
        return product * left
    if copies > 1:
        left, product = left // copies, product * copies
    if left > 1 and shards is not None and shards > 1:
        if not fsdp:
            return 0
        left, product = left // shards, product * shards
        return product * left if left > 1 and copies in (0, 1) else product if left <= 1 else 0
    return product * left if left > 1 and fsdp else product if left <= 1 else 0


def _written_twice(field: Field) -> Iterator[Finding]:
    for entry in (*field.entries(), *field.items()):
        if entry.entry is not None and entry.entry.duplicates and not entry.use:
            yield entry.finding(
                f"{entry.name} is written twice: only this one counts",
                help="remove the wrong one",
                fix=mending.without_earlier(entry),
                at_key=True,
                related=entry.earlier_keys,
            )
        yield from _written_twice(entry)
