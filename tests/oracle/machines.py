"""What this machine lacks, for the Hugging Face drivers: GPUs, other processes, and models and data small enough."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from oracle.asking import module

GPUS = 8


def always(value: object) -> Callable[..., Any]:
    """A function that has one answer."""
    return lambda *given, **named: value


def quiet() -> None:
    """No network, one thread, no reports, DeepSpeed without a GPU."""
    os.environ.update(
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        HF_DATASETS_OFFLINE="1",
        OMP_NUM_THREADS="1",
        TOKENIZERS_PARALLELISM="false",
        WANDB_MODE="disabled",
        CUDA_VISIBLE_DEVICES="",
        DS_ACCELERATOR="cpu",
        DS_BUILD_OPS="0",
        TRL_EXPERIMENTAL_SILENCE="1",
    )


@contextmanager
def with_gpus() -> Any:
    """torch says that there are GPUs of a recent kind; nothing is computed on them."""
    torch = module("torch")
    properties = mock.Mock(major=9, minor=0, total_memory=80 << 30)
    properties.name = "simulated"
    answers = {
        torch.cuda: {
            "is_available": True,
            "device_count": GPUS,
            "current_device": 0,
            "set_device": None,
            "is_bf16_supported": True,
            "get_device_capability": (9, 0),
            "get_device_name": "simulated",
            "empty_cache": None,
            "manual_seed_all": None,
            "get_device_properties": properties,
        },
        torch.accelerator: {
            "is_available": True,
            "current_accelerator": torch.device("cuda"),
            "device_count": GPUS,
            "current_device_index": 0,
            "set_device_index": None,
        },
    }
    before = [(at, name, getattr(at, name)) for at, names in answers.items() for name in names if hasattr(at, name)]
    for at, name, _ in before:
        setattr(at, name, always(answers[at][name]))
    try:
        yield
    finally:
        for at, name, value in before:
            setattr(at, name, value)


def gpus() -> AbstractContextManager[None]:
    """`with_gpus`, typed."""
    found: AbstractContextManager[None] = with_gpus()
    return found


def first_of(processes: int) -> None:
    """This process is the first of a group whose other members do not exist (torch's own backend for tests)."""
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE=str(processes), LOCAL_WORLD_SIZE=str(processes))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    store = module("torch.testing._internal.distributed.fake_pg").FakeStore()
    module("torch.distributed").init_process_group("fake", store=store, rank=0, world_size=processes)


def deepspeed_on_cpu() -> None:
    """DeepSpeed's CPU accelerator has every precision, and its compiled operations do nothing."""
    torch = module("torch")
    kind = type(module("deepspeed.accelerator").get_accelerator())
    kind.is_fp16_supported = kind.is_bf16_supported = always(True)
    kind.supported_dtypes = always([torch.float, torch.half, torch.bfloat16])
    builder = module("deepspeed.ops.op_builder.builder").OpBuilder
    builder.load = always(mock.MagicMock())
    builder.is_compatible = builder.has_function = always(True)


def few_workers() -> None:
    """As many processes as a case asks for would take this machine: two load the data and prepare it.

    What checks the numbers sees them before.
    """
    loader = module("torch.utils.data").DataLoader
    made = loader.__init__

    def make(at: Any, *given: Any, **named: Any) -> None:
        made(at, *given, **_fewer(named, "num_workers"))

    loader.__init__ = make


def few_processes(datasets: Any) -> None:
    """The same for the data sets of Hugging Face."""
    mapped = datasets.Dataset.map
    datasets.Dataset.map = lambda *given, **named: mapped(*given, **_fewer(named, "num_proc"))


def _fewer(named: dict[str, Any], name: str) -> dict[str, Any]:
    number = named.get(name)
    return {**named, name: 2} if isinstance(number, int) and number > 2 else named


def half_precision(*modules: Any) -> None:
    """transformers' questions for bf16 and tf32 are answered with yes."""
    for at in modules:
        for name in ("is_torch_bf16_gpu_available", "is_torch_tf32_available"):
            if hasattr(at, name):
                setattr(at, name, always(True))


WORDS = "the sky is blue what colour it green red a good answer bad question why because think".split()
TEMPLATE = (
    "{% for m in messages %}{{ '<|' + m['role'] + '|> ' + m['content'] + ' </s> ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|> ' }}{% endif %}"
)


def tiny_models(folder: Path) -> None:
    """Two tiny Llamas with a tokenizer: `causal`, and `reward` with one label."""
    if (folder / "reward").is_dir():
        return
    tokenizers, transformers = module("tokenizers"), module("transformers")
    module("torch").manual_seed(0)
    special = ["<unk>", "<s>", "</s>", "<pad>", "<|user|>", "<|assistant|>", "<|system|>"]
    words = [*special, *"abcdefghijklmnopqrstuvwxyz", *WORDS]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(words))}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>", pad_token="<pad>"
    )
    tokenizer.chat_template = TEMPLATE
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "vocab_size": len(vocabulary),
        "max_position_embeddings": 4096,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 3,
    }
    causal = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))
    reward = transformers.LlamaForSequenceClassification(transformers.LlamaConfig(num_labels=1, **sizes))
    for name, model in (("causal", causal), ("reward", reward)):
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
