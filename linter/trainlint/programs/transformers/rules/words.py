"""Arguments in YAML: words that a release has, and others."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Stage, did_you_mean, one_of, some_of
from trainlint.programs.transformers.arguments import Arguments
from trainlint.programs.transformers.facts import COMPILE_BACKENDS, COMPILE_MODES
from trainlint.reading import mending
from trainlint.reading.values import Field
from trainlint.rule import rule

ENUMERATIONS = (
    "eval_strategy", "evaluation_strategy", "logging_strategy", "save_strategy", "hub_strategy", "lr_scheduler_type",
    "optim",
)  # fmt: skip
_DEBUG_WORDS = ("underflow_overflow", "tpu_metrics_debug")


@rule("FS201", "unknown-argument-word", stage=Stage.LOAD)
def unknown_argument_word(arguments: Arguments) -> Iterator[Finding]:
    """An argument has a value that is not one of its words.

    TrainingArguments turns `save_strategy`, `eval_strategy`, `logging_strategy`, `hub_strategy`, `lr_scheduler_type`
    and `optim` into members of an enumeration and raises ValueError for anything else: a misspelt word, another case, a
    null where the default is a word, and the boolean that YAML makes of an unquoted `no` or `off`. The words differ by
    release: `save_strategy: best` came with 4.47, `adamw_hf` went in 4.50.

    Quote the word, or write one of those that the help lists.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__.
    """
    for name in ENUMERATIONS:
        argument = arguments.facts.fields.get(name)
        if argument is None or not arguments.has(name) or _is_overridden(arguments, name) or arguments.is_own(name):
            continue
        field = arguments.get(name)
        words = [str(choice) for choice in argument.choices]
        if field.is_null:
            if argument.default is not None or argument.computed:
                yield arguments.refused(field, f"{name} cannot be null", help=f"remove it, or write {one_of(words)}")
        elif field.boolean().is_(False) and "no" in words:
            message = f"{name} is false: YAML reads an unquoted {field.written} as a boolean"
            fix = mending.worded(field, "no")
            yield arguments.refused(field, message, help='the word "no" needs quotes in YAML', fix=fix)
        elif field.text().known_and_not_in(words) or field.text().wrong_type:
            torch = f"{field.written}_torch"
            hint = did_you_mean(torch if torch in words else field.written, words) or f"write {one_of(words)}"
            fix = mending.respelled(field, words)
            yield arguments.refused(field, f"{name} cannot be {shown(field)}", help=hint, fix=fix)


def shown(field: Field) -> str:
    """A value as a message names it."""
    if field.is_sequence or field.is_mapping:
        return "a list" if field.is_sequence else "a mapping"
    return f'"{field.written}"' if field.written else "empty"


def _is_overridden(arguments: Arguments, name: str) -> bool:
    """From 4.41 to 4.50 evaluation_strategy replaces eval_strategy before that is checked."""
    old = "evaluation_strategy"
    return name == "eval_strategy" and old in arguments.facts.fields and not arguments.get(old).is_absent


@rule("FS202", "unknown-log-or-report-word", stage=Stage.LOAD)
def unknown_log_or_report_word(arguments: Arguments) -> Iterator[Finding]:
    """log_level, report_to or debug has an unknown word.

    The Trainer looks up `log_level`, also a null, in its table of levels (KeyError) and each name of `report_to` in its
    table of integrations (ValueError). `all` and `none` must stand alone, several names are a YAML list, and the
    boolean that YAML makes of an unquoted `no` or `off` is not a name, nor is a null in the list; since 5.0 a null
    `report_to` is not one either. `debug` is split at spaces into members of an enumeration; TrlParser makes one member
    of the whole.

    Source: transformers 4.31 to 5.24, Trainer.__init__ and get_reporting_integration_callbacks.
    """
    for name in ("log_level", "log_level_replica"):
        field = arguments.get(name)
        levels = arguments.facts.log_levels
        if field.text().known_and_not_in(levels) or (field.text().wrong_type and name in arguments.facts.fields):
            hint = did_you_mean(field.written, levels) or f"write {one_of(sorted(levels))}"
            fix = mending.respelled(field, levels)
            yield arguments.refused(field, f"{name} cannot be {shown(field)}", help=hint, fix=fix)
        elif field.is_null and arguments.has(name) and name in arguments.facts.fields:
            message, help = f"{name} cannot be null", "remove it, or write passive"
            yield arguments.refused(field, message, help=help, stage=Stage.START)
    yield from _debug(arguments)
    yield from _reporters(arguments)


def _debug(arguments: Arguments) -> Iterator[Finding]:
    field = arguments.own("debug")
    text = field.text()
    # A parser that converts texts makes one member of the whole.
    words = [text.known] if arguments.facts.converts and text.known is not None else (text.known or "").split()
    for word in words:
        if word not in _DEBUG_WORDS:
            yield arguments.refused(text, f'unknown word "{word}" in debug', help=f"write {one_of(_DEBUG_WORDS)}")
    if text.wrong_type and not field.is_sequence and not field.is_mapping:
        message = f"debug cannot be {field.written}"
        yield arguments.refused(field, message, help=f"write {one_of(_DEBUG_WORDS)}", stage=Stage.TRAIN)


def _reporters(arguments: Arguments) -> Iterator[Finding]:
    field = arguments.get("report_to")
    items = field.items() if field.is_sequence else [field]
    names = arguments.facts.reporters | (frozenset({"all", "none"}) if len(items) == 1 else frozenset())
    if field.is_null and arguments.has("report_to") and arguments.facts.null_report_to_refused:
        yield arguments.refused(field, "report_to cannot be null", help="write none, all or names of integrations")
    for item in items:
        if field.is_sequence and (item.is_null or item.is_sequence or item.is_mapping):
            message = f"report_to cannot list {'null' if item.is_null else shown(item)}"
            help = "write none, all or names of integrations"
            yield arguments.refused(item, message, help=help, at_key=not item.is_null)
        elif item.boolean().known is not None:
            message = f"report_to cannot be {item.written}: YAML reads it as a boolean"
            fix = mending.worded(item, "none") if item.plain is False else None
            yield arguments.refused(item, message, help='write "none" to report to nothing', fix=fix)
        elif item.text().is_("all", "none") and len(items) > 1:
            yield arguments.refused(item, f"report_to cannot list {item.written} with others", help="write it alone")
        elif item.text().known_and_not_in(names) or isinstance(item.plain, (int, float)):
            hint = "write a list, one name in each item" if "," in item.written else did_you_mean(item.written, names)
            hint = hint or f"write all, none, or names such as {some_of(sorted(arguments.facts.reporters))}"
            parts = [part.strip() for part in item.written.split(",")]
            several = len(parts) > 1 and not field.is_sequence and names.issuperset(parts)
            fix = mending.listed(item, *parts) if several else mending.respelled(item, names)
            yield arguments.refused(item, f"report_to cannot be {shown(item)}", help=hint, fix=fix)


@rule(
    "FS224",
    "unknown-compile-backend",
    stage=Stage.START,
    varies="warning for a mode that a script of one's own may use in another way",
)
def unknown_compile_backend(arguments: Arguments) -> Iterator[Finding]:
    """torch_compile_backend is not a backend that accelerate knows, or torch_compile_mode no mode of torch.

    TrainingArguments puts the words into the environment, and Accelerator() looks the backend up among its own:
    ValueError. torch looks at the mode when the model is compiled, before the first step: RuntimeError. Naming a
    backend or a mode turns compiling on, also without `torch_compile`.

    Source: transformers 4.31 to 5.24, TrainingArguments.__post_init__; accelerate, DynamoBackend; torch 2.2 to 2.13,
    _TorchCompileInductorWrapper.apply_mode.
    """
    for name in ("torch_compile_backend", "torchdynamo"):
        backend = arguments.own(name).text()
        if backend.known_and(lambda word: word.lower() not in COMPILE_BACKENDS):
            hint = did_you_mean(str(backend), COMPILE_BACKENDS) or "write for example inductor"
            fix = mending.respelled(backend, COMPILE_BACKENDS)
            yield arguments.refused(backend, f"Accelerate has no compile backend {backend}", help=hint, fix=fix)
    mode = arguments.own("torch_compile_mode").text()
    own = arguments.own("torch_compile_backend")
    other = mode.wrong_type and bool(mode.field.plain)
    unknown = other or mode.known_and(lambda word: word not in ("", *COMPILE_MODES))
    if (own.is_absent or own.text().is_("inductor")) and unknown:
        written = mode.field.written
        hint = did_you_mean(written, COMPILE_MODES) or f"write {one_of(COMPILE_MODES)}"
        # Whether a script of one's own compiles the model with these words is not known.
        say = arguments.refused if arguments.facts.converts else arguments.warned
        fix = mending.respelled(mode, COMPILE_MODES)
        yield say(mode, f"torch has no compile mode {written}", help=hint, stage=Stage.TRAIN, fix=fix)
