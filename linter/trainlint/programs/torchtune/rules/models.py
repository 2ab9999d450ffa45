"""The rules on models: their sizes, and LoRA."""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Fix, Severity, Stage, nearest, one_of, some_of
from trainlint.programs.torchtune import mended
from trainlint.programs.torchtune.facts import LORA_TARGETS, NO_PEFT_CONFIG, SAVED_TARGETS, TIED_EMBEDDINGS, TIED_OUTPUT
from trainlint.programs.torchtune.omegaconf import ConfigNode
from trainlint.programs.torchtune.program import RecipeSettings
from trainlint.programs.torchtune.rules.checkpoints import kind_of
from trainlint.rule import rule


@rule(
    "TT315",
    "unmatched-lora-target",
    stage=Stage.RUN,
    severity=Severity.WARNING,
    varies="error where the checkpointer saves adapter_config.json",
)
def unmatched_lora_target(settings: RecipeSettings) -> Iterator[Finding]:
    """A name in lora_attn_modules matches no layer, and the checkpoint may not be saved.

    torchtune puts LoRA on q_proj, k_proj, v_proj and output_proj; the output projection is not called o_proj as in
    other libraries. Any other name is accepted and does nothing: with `[q_prj]` no layer gets LoRA. The LoRA recipes
    then train a whole epoch, and FullModelHFCheckpointer raises on the name when it saves adapter_config.json, after
    the weights: an error. Other checkpointers and model types without that file save: a warning.

    Source: the LoRA builders and tune_to_peft_adapter_config of torchtune 0.4.0 to 0.6.1; recipes of 0.6.1 run with
    such names.
    """
    checkpointer = settings.section("checkpointer")
    kept = settings.recipe is not None and "model.lora_attn_modules" in settings.recipe.required
    raises = (
        kept
        and checkpointer is not None
        and kind_of(checkpointer) == "FullModelHFCheckpointer"
        and checkpointer.get("model_type").text().known_and(lambda kind: kind not in NO_PEFT_CONFIG)
    )
    for targets in _lora_targets(settings):
        of_model = raises and targets.parent is not None and targets.parent.key == "model"
        names = [targets] if targets.text().known is not None else targets.elements
        for item in names:
            name = item.text()
            if name.known is None or (name.known in LORA_TARGETS and item is not targets):
                continue
            saved = of_model and (name.known not in SAVED_TARGETS or item is targets)
            hint = "output_proj" if name.is_("o_proj", "out_proj", "proj") else nearest(name.known, LORA_TARGETS)
            help = f'did you mean "{hint}"?' if hint else f"write {one_of(LORA_TARGETS)}"
            what = "lora_attn_modules is read letter by letter" if item is targets else f"{name} is no LoRA target"
            yield item.field.finding(
                f"{what} and cannot be saved" if saved else f"{what} and has no effect",
                help=f"write a list: [{name}]" if item is targets else help,
                fix=_target(item, hint) if item is not targets else mended.written(item, f"[{name}]"),
                severity=Severity.ERROR if saved else Severity.WARNING,
                stage=Stage.SAVE if saved else Stage.RUN,
            )


def _target(item: ConfigNode, hint: str | None) -> Fix | None:
    """The name that torchtune has for another library's, or the one that is meant."""
    other = hint == "output_proj" and item.text().is_("o_proj", "out_proj")
    return mended.worded(item, "output_proj") if other else mended.respelled(item, LORA_TARGETS)


@rule("TT316", "no-lora-target", stage=Stage.PREPARE, follows=("TT304",))
def no_lora_target(settings: RecipeSettings) -> Iterator[Finding]:
    """lora_attn_modules is empty.

    The builders of LoRA models need at least one attention module and raise on an empty list or null, also with
    apply_lora_to_mlp.

    Source: the LoRA builders of torchtune 0.4.0 to 0.6.1.
    """
    for targets in _lora_targets(settings):
        empty = targets.absent or (targets.wrong_type and not targets.elements and not targets.entries)
        help = f"write a list of names: {some_of(LORA_TARGETS)}"
        if targets.own and empty:
            yield targets.field.finding("lora_attn_modules must not be empty", help=f"add {one_of(LORA_TARGETS)}")
        elif targets.own and any(_is_no_name(node) for node in [targets, *targets.elements]):
            yield targets.field.finding("lora_attn_modules must be a list of names", help=help)


def _is_no_name(node: ConfigNode) -> bool:
    """A number, or in the list a null or something that holds others."""
    unnamed = (node.absent or node.wrong_type) and node.key.isdigit()
    return unnamed or (node.value.known is not None and node.text().known is None)


def _lora_targets(settings: RecipeSettings) -> Iterator[ConfigNode]:
    for section in settings.components:
        path = section.get("_component_").text().known or ""
        targets = section.get("lora_attn_modules")
        if path.startswith("torchtune.models.") and targets.present:
            yield targets


@rule("TT317", "lora-on-tied-output", stage=Stage.PREPARE)
def lora_on_tied_output(settings: RecipeSettings) -> Iterator[Finding]:
    """LoRA is put on an output layer that is the embedding itself.

    llama3_2 1B and 3B, qwen2_5 up to 3B and models with tie_word_embeddings have no output layer of their own.
    `apply_lora_to_output: True` passes `tune validate` and the recipe's start; the builder of the model raises after
    the checkpoint has been read.

    Source: the LoRA builders of torchtune 0.4.0 to 0.6.1.
    """
    for section in settings.components:
        path = section.get("_component_").text().known or ""
        output, tied = section.get("apply_lora_to_output"), section.get("tie_word_embeddings")
        alone = TIED_OUTPUT.match(path) or (_is_torchtune(section) and "lora" in path and tied.truth().is_(True))
        if alone and not settings.fork and (output.own or tied.own) and output.truth().is_(True):
            yield settings.refusal(
                output,
                tied if tied.present else section.get("_component_"),
                message=f"{path.rpartition('.')[2]} has no output layer of its own for LoRA",
                help="set apply_lora_to_output: False",
                fix=mended.written(output, "False", sure=False) if output.own else None,
            )


@rule("TT341", "attention-heads", stage=Stage.PREPARE)
def attention_heads(settings: RecipeSettings) -> Iterator[Finding]:
    """The sizes of a model's attention do not divide.

    embed_dim must be a multiple of num_heads, and num_heads one of num_kv_heads.

    Source: MultiHeadAttention of torchtune 0.4.0 to 0.6.1.
    """
    for section in settings.models:
        for larger, smaller in (("num_heads", "num_kv_heads"), ("embed_dim", "num_heads")):
            whole, part = section.get(larger), section.get(smaller)
            one, two = whole.number().known, part.number().known
            explicit = _is_torchtune(section) and not (smaller == "num_heads" and section.get("head_dim").present)
            counts = all(type(node.value.known) is int and (node.number().known or 0) > 0 for node in (whole, part))
            if explicit and counts and one and two and one % two and (whole.own or part.own):
                yield settings.refusal(
                    part,
                    whole,
                    message=f"{larger} {whole.value} is not a multiple of {smaller} {part.value}",
                    help="write the sizes of the checkpoint's config.json",
                )
                break


@rule("TT342", "adapters-without-lora-recipe", stage=Stage.PREPARE)
def adapters_without_lora_recipe(settings: RecipeSettings) -> Iterator[Finding]:
    """A model with LoRA is built by a recipe that does not know adapters.

    A full fine-tune, DPO of all weights, QAT and quantize load the checkpoint strictly into the model, and a teacher is
    loaded so too: the weights of the adapters are not in it.

    Source: load_state_dict of the recipes, torchtune 0.4.0 to 0.6.1.
    """
    for section in settings.models:
        path = section.get("_component_")
        name = (path.text().known or "").rpartition(".")[2]
        if settings.recipe is not None and has_unloadable_adapters(settings, section):
            recipe = settings.recipe
            other = f"{path.text().known}".replace(name, name.partition("lora_")[2])
            yield settings.refusal(
                path,
                message=f"{recipe.name} cannot load a checkpoint into {name}",
                help=f"write {other}" if section.key == "teacher_model" else f"write {other}, or run a LoRA recipe",
            )


def has_unloadable_adapters(settings: RecipeSettings, section: ConfigNode) -> bool:
    """The section is a model with LoRA, whose checkpoint the recipe loads strictly."""
    recipe, path = settings.recipe, section.get("_component_")
    if recipe is None or not settings.sure or recipe.name.startswith(("ppo", "generate", "eleuther")):
        return False
    alone = section.key == "teacher_model" or "model.lora_rank" not in recipe.required
    name = (path.text().known or "").rpartition(".")[2]
    return alone and path.own and _is_torchtune(section) and name.startswith(("lora_", "qlora_"))


@rule("TT343", "quantized-base-size", stage=Stage.PREPARE, follows=("TT304",))
def quantized_base_size(settings: RecipeSettings) -> Iterator[Finding]:
    """The layers are too small for a quantized base.

    quantize_base stores weights as NF4 in blocks of 64 with a scaler for each 256 of them, so each layer's number of
    weights must be a multiple of 16384.

    Source: NF4Tensor of torchao 0.7 to 0.15, and the LoRA builders of torchtune 0.4.0 to 0.6.1.
    """
    for section in settings.models:
        quantized = section.get("quantize_base")
        width, heads, shared = (section.get(key).number().known for key in ("embed_dim", "num_heads", "num_kv_heads"))
        if not _is_torchtune(section) or not quantized.truth().is_(True) or section.get("head_dim").present:
            continue
        if width and heads and shared and any((width * part) % _NF4 for part in (width, width / heads * shared)):
            yield settings.refusal(
                quantized,
                section.get("embed_dim"),
                message=f"attention layers of width {width:.0f} do not divide into blocks of NF4",
                help="set quantize_base: False",
                fix=mended.written(quantized, "False", sure=False),
            )


_NF4 = 64 * 256


@rule("TT344", "sharded-tied-embeddings", stage=Stage.TRAIN)
def sharded_tied_embeddings(settings: RecipeSettings) -> Iterator[Finding]:
    """The embeddings are sharded, although they are also the output layer.

    llama3_2, gemma and the small models of qwen2 and qwen2_5 compute their output with the embeddings. With
    `custom_sharded_layers: [tok_embeddings]` the first step raises, since the output does not gather the shards.

    Source: shard_model and TiedLinear of torchtune 0.4.0 to 0.6.1, run with torch 2.9.
    """
    layers, section = settings.at("custom_sharded_layers"), settings.section("model")
    if section is None or not settings.reads("custom_sharded_layers") or not (settings.world_size or 0) > 1:
        return
    path = section.get("_component_").text().known or ""
    tied = section.get("tie_word_embeddings").truth()
    if (TIED_EMBEDDINGS.match(path) and not tied.is_(False)) or (tied.is_(True) and _is_torchtune(section)):
        for item in layers.elements:
            if item.text().is_("tok_embeddings"):
                message = "tok_embeddings are the output layer of this model, and cannot be sharded alone"
                fix = mended.removed(item, sure=False)
                yield settings.refusal(
                    item, section.get("_component_"), message=message, help="remove it from the list", fix=fix
                )


@rule("TT345", "unknown-sharded-layer", stage=Stage.RUN, severity=Severity.WARNING)
def unknown_sharded_layer(settings: RecipeSettings) -> Iterator[Finding]:
    """A name in custom_sharded_layers is no layer, and is ignored.

    The whole name counts: tok_embeddings and output.

    Source: get_shard_conditions of torchtune 0.4.0 to 0.6.1.
    """
    layers = settings.at("custom_sharded_layers")
    if not settings.reads("custom_sharded_layers") or settings.fork:
        return
    for item in layers.elements:
        name = item.text().known or ""
        meant = nearest(name, ("tok_embeddings", "output"))
        if item.own and meant is not None and name != meant and "." not in name:
            fix = mended.respelled(item, [meant])
            message = f"no layer is called {name}: it is ignored"
            yield item.field.finding(message, help=f'did you mean "{meant}"?', fix=fix)


def _is_torchtune(section: ConfigNode) -> bool:
    return (section.get("_component_").text().known or "").startswith("torchtune.models.")
