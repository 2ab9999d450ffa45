"""Arguments in YAML: numbers, switches and texts, as the parsers read them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from trainlint.findings import Finding, Severity, Stage
from trainlint.programs.transformers.arguments import Arguments
from trainlint.programs.transformers.facts import (
    FALSE_WORDS,
    LOOKED_UP,
    TRUE_WORDS,
)
from trainlint.programs.transformers.rules.words import shown
from trainlint.reading import mending
from trainlint.reading.scalars import Dialect, plain_value
from trainlint.reading.values import Field
from trainlint.releases import names_within
from trainlint.rule import rule
from trainlint.training.declarations import Spec

_KINDS = {"int": "an integer", "float": "a number", "bool": "a boolean"}
_RAISING = frozenset({"learning_rate", "logging_steps", "warmup_steps", "warmup_ratio"})
"""Numbers that are compared before anything is trained."""


@rule(
    "FS203",
    "text-for-number",
    stage=Stage.START,
    severity=Severity.WARNING,
    varies="error where the text can be no number, or the parser converts it",
)
def text_for_number(arguments: Arguments) -> Iterator[Finding]:
    """An argument is text where a number is needed.

    PyYAML reads a number with an exponent only if the number has a dot and the exponent a sign: `2e-5`, `1e8` and
    `1.0e5` are text, and so is everything in quotes. HfArgumentParser converts nothing: the text gets into
    TrainingArguments and raises TypeError where it is first compared, `learning_rate` in the optimizer, `warmup_steps`,
    `eval_steps` and the like at once, batch sizes, epochs and `weight_decay` in train(). TrlParser converts text and
    stops with an error where it cannot (`max_steps: 1e3` must be an integer); since 1.6 `none` is null.

    Write `2.0e-5`, without quotes.

    Source: transformers 4.31 to 5.24, HfArgumentParser.parse_yaml_file; TRL 0.8 to 1.16, TrlParser; PyYAML's resolver.
    """
    converts = arguments.facts.converts
    for name, argument, field in arguments.given:
        kind = _kind(argument)
        text = field.text().known
        if name == "pad_to_multiple_of" and "str" in argument.types and text is not None:
            if _converted(text, "int") is None and text.lower() not in _NO_PADDING:
                message = f'pad_to_multiple_of must be an integer or auto, not "{text}"'
                yield arguments.refused(field, message, help="write for example 8", stage=Stage.LOAD)
            continue
        if kind not in ("int", "float") or text is None or not arguments.parsed or arguments.reader.uses_omegaconf:
            continue
        if arguments.is_none_text(argument, text):
            continue
        number = _converted(text, "float")
        if converts:
            if _converted(text, kind) is None:
                message = f'{name} must be {_KINDS[kind]}, not the text "{text}"'
                fix = mending.whole(field) if kind == "int" else None
                yield arguments.refused(field, message, help=f"write {_KINDS[kind]}", fix=fix)
        elif number is None or not math.isfinite(number):
            say = arguments.refused if name in _RAISING else arguments.warned
            yield say(field, f'{name} is the text "{text}", not a number', help="write a number")
        else:
            yaml = text if text.isdecimal() else _yaml_number(number, kind)
            say = arguments.refused if _is_compared_at_once(name, arguments) else arguments.warned
            message = f'{name} is the text "{text}", not a number'
            fix = mending.written(field, yaml, keeps=True)
            yield say(field, message, help=_why_text(text, kind), fix=fix)


_NO_PADDING = ("auto", "none", "null")


def _why_text(text: str, kind: str) -> str:
    """Help: why YAML reads a number as text."""
    if not isinstance(plain_value(text, Dialect.PYYAML), str):
        return "remove the quotes"
    return "write out the digits" if kind == "int" else "PyYAML needs a dot and a signed exponent to read a number"


def _is_compared_at_once(name: str, arguments: Arguments) -> bool:
    """The value is compared when TrainingArguments is built."""
    if name == "eval_steps":
        return arguments.eval_strategy.is_("steps")
    if name in ("logging_steps", "save_steps"):
        return arguments.word(name.replace("_steps", "_strategy")).is_("steps")
    facts = arguments.facts
    return (name == "warmup_steps" and facts.warmup_steps_compared) or (
        name == "warmup_ratio" and facts.warmup_ratio_compared
    )


def _kind(argument: Spec) -> str | None:
    """`int`, `float` or `bool` for an argument of that one type."""
    kinds = [kind for kind in argument.types if kind != "None"]
    return kinds[0] if kinds in (["int"], ["float"], ["bool"]) else None


def _converted(text: str, kind: str) -> float | None:
    try:
        return int(text) if kind == "int" else float(text)
    except ValueError:
        return None


def _yaml_number(number: float, kind: str) -> str:
    """A number as PyYAML reads it."""
    if kind == "int" and number.is_integer():
        return str(int(number))
    mantissa, exponent, power = repr(number).partition("e")
    if not exponent:
        return mantissa
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{int(power):+d}"


@rule(
    "FS204",
    "quoted-boolean",
    stage=Stage.RUN,
    severity=Severity.WARNING,
    varies="error where a parser reads it that stops at such a text",
)
def quoted_boolean(arguments: Arguments) -> Iterator[Finding]:
    """An argument is text where a boolean is needed, and counts as true.

    HfArgumentParser passes text on unchanged, and Python treats any text that is not empty as true: `bf16: "false"`
    turns bf16 on. TrlParser reads yes, true, t, y, 1 and their opposites, and stops with an error at any other text
    (also at a quoted `on`). PyYAML reads an unquoted `true`, `yes` or `on` as a boolean, and `y` and `n` as text.

    Write true or false, without quotes.

    Source: transformers 4.31 to 5.24, HfArgumentParser.parse_yaml_file and string_to_bool.
    """
    for name, argument, field in arguments.given:
        text = field.text().known
        # A union with text is parsed as a boolean too.
        switch = _kind(argument) == "bool" or (arguments.facts.converts and set(argument.types) == {"str", "bool"})
        if not switch or text is None or not arguments.parsed:
            continue
        folded = text.lower()
        meant = "true" if folded in TRUE_WORDS else "false" if folded in FALSE_WORDS else None
        help = f"write {meant or 'true or false'}{', without quotes' if field.is_quoted else ''}"
        if arguments.facts.converts:
            if meant is None or folded in ("on", "off"):
                message = f'{name} must be true or false, not the text "{text}"'
                say = arguments.refused if arguments.is_certain else arguments.warned
                fix = mending.written(field, meant) if meant else None
                yield say(field, message, help=help, stage=Stage.LOAD, fix=fix)
        elif text and meant != "true":
            yield arguments.warned(
                field,
                f'{name} is the text "{text}", which counts as true',
                help=help,
                fix=mending.written(field, meant) if meant else None,
            )


@rule(
    "FS205",
    "wrong-number",
    stage=Stage.START,
    severity=Severity.WARNING,
    varies="error where torch surely gets the value",
    follows=("FS255",),
)
def wrong_number(arguments: Arguments) -> Iterator[Finding]:
    """An argument is a float, boolean, list or mapping where an integer or a number is needed.

    The parsers only check text. A float such as `4.0` for a batch size, `max_steps` or `gradient_accumulation_steps` is
    accepted and raises TypeError in train(), where torch needs an integer. A boolean counts as 1 or 0. A list or
    mapping raises where it is first used. Where a boolean is needed, any number but 0 counts as true.

    Write one plain number.

    Source: transformers 4.31 to 5.24, HfArgumentParser; TRL 0.8 to 1.16, TrlParser.
    """
    for name, argument, field in arguments.given:
        # What is no word for pad_to_multiple_of is a number of tokens.
        kind = "int" if name == "pad_to_multiple_of" and isinstance(field.plain, float) else _kind(argument)
        if kind is None or field.is_absent or field.is_unknown:
            continue
        stage = arguments.raises_on_kind(name)
        say = arguments.warned if stage is None else arguments.refused
        if field.is_mapping or field.is_sequence:
            message = f"{name} must be {_KINDS[kind]}, not a {'mapping' if field.is_mapping else 'list'}"
            alone = field.items()[0] if len(field.items()) == 1 else None
            bare = alone is not None and alone.number().known is not None and kind != "bool"
            fix = mending.written(field, alone.written) if alone is not None and bare else None
            yield say(field, message, help="write one value", at_key=True, stage=stage, fix=fix)
        elif kind == "int" and isinstance(field.plain, float) and name != "warmup_steps":
            message = f"{name} must be an integer, not {field.written}"
            yield say(field, message, help="write an integer", stage=stage, fix=mending.whole(field, keeps=True))
        elif kind == "bool" and _is_no_switch(name, field.plain):
            yield arguments.warned(
                field, f"{name} must be true or false, not {field.written}", help="write one of them"
            )
        elif kind != "bool" and isinstance(field.plain, bool):
            yield arguments.warned(field, f"{name} must be a number, not {field.written}", help="write a number")


def _is_no_switch(name: str, plain: object) -> bool:
    """A number that stands for no boolean; 0 and 1 do, but for a setting that gets into the model's config."""
    number = isinstance(plain, (int, float)) and not isinstance(plain, bool)
    return number and (plain not in (0, 1) or name == "use_cache")


_TEXTS: Mapping[str, str] = {
    "output_dir": "..",
    "logging_dir": "..4.57.6",
    "metric_for_best_model": "4.42.4..",
    "torch_compile_backend": "..",
    "torchdynamo": "..",
    "torch_compile_mode": "..4.57.6",
}
"""Arguments that raise when they are not text, with the releases in which they do."""


@rule("FS213", "wrong-text", stage=Stage.LOAD)
def wrong_text(arguments: Arguments) -> Iterator[Finding]:
    """An argument that must be text is something else.

    The parsers only check text. `output_dir: 2024` raises TypeError when its `~` is expanded, a numeric
    `metric_for_best_model` has no endswith(), and the backend of torch.compile is put into the environment or into
    upper case.

    Quote the value.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__.
    """
    for name in names_within(_TEXTS, arguments.facts.release):
        field = arguments.get(name)
        if name not in arguments.facts.fields:
            continue
        if name == "metric_for_best_model" and not arguments.get("greater_is_better").is_absent:
            continue
        if field.text().wrong_type:
            help = f'quote it: "{field.written}"' if field.written else "write one text"
            message = f"{name} must be text, not {field.written or shown(field)}"
            fix = None if name in ("torch_compile_backend", "torchdynamo") else mending.quoted(field)
            yield arguments.refused(field, message, help=help, fix=fix)


_FORMS: Mapping[str, str] = {
    "str": "text",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "dict": "a mapping",
    "bool": "a boolean",
    "int": "a number",
    "float": "a number",
}
"""What YAML has for a type; other types say nothing."""
_ALSO: Mapping[str, str] = {
    "resume_from_checkpoint": "a boolean",
    "attn_implementation": "a mapping",
    "lora_target_modules": "text",
    "include_for_metrics": "text",
    "loss_type": "text",
    "report_to": "text",
    "deepspeed": "a mapping",
    "fsdp_config": "a mapping",
    "accelerator_config": "a mapping",
}
"""What an argument takes beside what its type says."""


@rule(
    "FS227",
    "another-kind-of-value",
    stage=Stage.START,
    severity=Severity.WARNING,
    varies="error where the trainer surely uses the value",
    follows=tuple(
        """
        FS201 FS202 FS203 FS206 FS210 FS211 FS212 FS213 FS219 FS220 FS221 FS222 FS223 FS230
        FS254 FS255 FS257
        """.split()
    ),
)
def another_kind_of_value(arguments: Arguments) -> Iterator[Finding]:
    """An argument is a list, a mapping, a text or a number, and another one of these is needed.

    The parsers take what YAML gives, whatever the type of the argument says; text alone is converted, by TrlParser. A
    list for a text, a mapping for a list, a number for a mapping, a null for a number then fail where they are first
    used, in the trainer or long after. A text for a list of names is worse: it is a list of its letters. Nothing is
    said where a class of the repository, derived from the trainer's config, takes the arguments.

    Write what the help says.

    Source: transformers 4.31 to 5.24, HfArgumentParser; TRL 0.8 to 1.16, TrlParser.
    """
    # The rules on sharding look at fsdp themselves.
    for name, argument, field in (one for one in arguments.given if one[0] != "fsdp"):
        wanted = _forms(name, argument)
        given = _form(field)
        if not arguments.parsed or arguments.has_own_config or not wanted or name in arguments.facts.lenient:
            continue
        if field.is_null and not _may_be_null(argument) and wanted == {"a number"}:
            yield arguments.warned(field, f"{name} must be a number, not null", help="remove it, or write a number")
        if given is None or wanted <= {"a number", "a boolean"}:
            continue
        if given in wanted:
            yield from _items(arguments, name, argument, field)
            # JSON is text, too; an empty one is none.
            if "a mapping" in wanted and name.endswith("_kwargs") and field.text().is_(""):
                yield arguments.warned(field, f"{name} must be a mapping, not an empty text", help="remove it")
            continue
        scalar = "text" in wanted and "a mapping" not in wanted and ("a list" not in wanted or not _is_something(field))
        as_text = given in ("a number", "a boolean") and scalar
        if (as_text and name not in LOOKED_UP) or (given == "text" and "a list" not in wanted):
            continue
        stage = arguments.raises_on_kind(name) if _is_something(field) else None
        say = arguments.warned if stage is None else arguments.refused
        told = {"a mapping"} if "a mapping" in wanted else wanted - {"a boolean"}
        message = f"{name} must be {' or '.join(sorted(told))}, not {given}"
        fix = mending.listed(field) if given == "text" and wanted == {"a list"} and field.written else None
        at_key = field.is_mapping or field.is_sequence
        yield say(field, message, help=_HELP[min(wanted)], at_key=at_key, stage=stage, fix=fix)


def _may_be_null(argument: Spec) -> bool:
    return "None" in argument.types or argument.default is None


def _items(arguments: Arguments, name: str, argument: Spec, field: Field) -> Iterator[Finding]:
    """The items of a list that are not what its type says; a number may stand for a text."""
    kinds = [kind for kind in argument.types if kind.startswith("list[")]
    wanted = _FORMS.get(kinds[0][len("list[") : -1]) if len(kinds) == 1 else None
    if wanted not in ("text", "a number"):
        return
    for item in field.items():
        given = "null" if item.is_null else _form(item)
        as_text = wanted == "text" and given in ("a number", "a boolean")
        if given is not None and given != wanted and not as_text:
            message = f"{name} must be a list of {'texts' if wanted == 'text' else 'numbers'}: an item is {given}"
            at_key = item.is_mapping or item.is_sequence
            yield arguments.warned(item, message, help=_HELP[wanted], at_key=at_key)
            return


_HELP = {
    "text": "write one text",
    "a list": "write a list",
    "a mapping": "write its settings below it",
    "a number": "write a number",
    "a boolean": "write true or false",
}


def _forms(name: str, argument: Spec) -> set[str]:
    """What an argument may be in YAML; empty where its type does not tell."""
    kinds = [kind.partition("[")[0] for kind in argument.types if kind != "None"]
    if not kinds or not all(kind in _FORMS for kind in kinds):
        return set()
    also = {_ALSO[name]} if name in _ALSO else set()
    return {_FORMS[kind] for kind in kinds} | also


def _form(field: Field) -> str | None:
    """What a value is in YAML; None for null and for what is not known."""
    if field.is_absent or field.is_unknown:
        return None
    if field.is_mapping or field.is_sequence:
        return "a mapping" if field.is_mapping else "a list"
    plain = field.plain
    if isinstance(plain, bool):
        return "a boolean"
    return "text" if isinstance(plain, str) else "a number" if isinstance(plain, (int, float)) else None


def _is_something(field: Field) -> bool:
    """The value is true in Python: what is false is often not looked at."""
    return bool(field.plain) or any(field.entries()) or bool(field.items())


@rule(
    "FS206",
    "steps-out-of-range",
    stage=Stage.LOAD,
    varies="warning for a negative ratio, which some releases round to a number of steps",
)
def steps_out_of_range(arguments: Arguments) -> Iterator[Finding]:
    """A number of steps or a ratio is out of range.

    TrainingArguments raises ValueError for: logging, evaluation or saving by steps with a step number above 1 that is
    not whole, or with none (`logging_steps: 0`); a negative `warmup_steps` (since 4.42), a fraction in it (4.42 to
    4.57; from 5.0 on it is a ratio); a `warmup_ratio` outside 0 to 1 (up to 4.57); a `torch_empty_cache_steps` that is
    not a positive integer (since 4.50). A step number below 1 is a ratio of all steps.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__ and _validate_args.
    """
    for strategy, steps in (("logging", "logging_steps"), ("eval", "eval_steps"), ("save", "save_steps")):
        by_steps = arguments.eval_strategy if strategy == "eval" else arguments.word(f"{strategy}_strategy")
        if by_steps.is_("steps"):
            yield from _steps(arguments, steps)
    yield from _warmup(arguments)
    cache = arguments.get("torch_empty_cache_steps")
    if arguments.facts.empty_cache_steps_checked and (cache.number().known_and(lambda n: n < 1 or n % 1 != 0)):
        message = f"torch_empty_cache_steps must be a positive integer, not {cache.written}"
        yield arguments.refused(cache, message, help="remove it, or write 1 or more")


def _steps(arguments: Arguments, name: str) -> Iterator[Finding]:
    value = arguments.steps(name)
    if value.known_and(lambda number: number > 1 and number % 1 != 0):
        message = f"{name} above 1 must be an integer, not {value.field.written}"
        yield arguments.refused(value, message, help="write an integer, or a ratio below 1")
    elif value.known_and(lambda number: number < 0 and number % 1 != 0) and value.field.name == name:
        message = f"{name} must be above 0, not {value.field.written}"
        yield arguments.warned(value, message, help="write a ratio below 1, or a number of steps")
    elif name == "logging_steps" and value.is_(0):
        help = 'write a number above 0, or logging_strategy: "no"'
        yield arguments.refused(value, "logging_steps must not be 0", help=help)
    elif name == "eval_steps" and value.field.name == "logging_steps" and value.known_and(lambda number: number <= 0):
        message = f"eval_steps follows logging_steps, which is {value.field.written}"
        yield arguments.refused(value, message, help="set eval_steps")
    elif name != "eval_steps" and value.field.is_null and arguments.has(name):
        yield arguments.refused(value, f"{name} cannot be null", help="remove it, or write a number")


def _warmup(arguments: Arguments) -> Iterator[Finding]:
    facts = arguments.facts
    steps, ratio = arguments.number("warmup_steps"), arguments.number("warmup_ratio")
    for value, looked_at in ((steps, facts.warmup_steps_compared), (ratio, facts.warmup_ratio_compared)):
        if looked_at and value.field.is_null and arguments.has(value.field.name):
            yield arguments.refused(value, f"{value.field.name} cannot be null", help="remove it, or write a number")
    if facts.warmup_steps_integer and isinstance(steps.field.plain, float):
        message = f"warmup_steps must be an integer, not {steps.field.written}"
        ratio_meant = steps.known_and(lambda number: 0 <= number < 1)
        fix = mending.renamed(steps, "warmup_ratio") if ratio_meant else None
        yield arguments.refused(steps, message, help="write a ratio as warmup_ratio", fix=fix)
    elif facts.warmup_steps_not_one and steps.is_(1):
        yield arguments.refused(steps, "warmup_steps cannot be 1", help="write 0, or a number above 1")
    elif facts.warmup_steps_compared and steps.known_and(lambda number: number < 0):
        yield arguments.refused(steps, "warmup_steps must not be negative", help="write 0 or more")
    if facts.warmup_ratio_compared and ratio.known_and(lambda number: not 0 <= number <= 1):
        message = f"warmup_ratio must be between 0 and 1, not {ratio.field.written}"
        yield arguments.refused(ratio, message, help="write a number of steps as warmup_steps")
