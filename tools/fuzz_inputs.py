"""What tools/fuzz.py makes repositories of: documents by grammar, mutated files, companions, settings, names, git.

A document is a tree in the vocabulary of a program, with values of right and wrong types, and is written event by
event: in any style, with anchors, aliases, merges and tags. The vocabularies are the facts that the rules use.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

import yaml

from cases import ROOT, cases
from trainlint.programs.kubeflow.facts.crds import SchemaNode, schema
from trainlint.programs.kubeflow.facts.release import RELEASES
from trainlint.training.declarations import DISTRIBUTIONS, Declarations, Spec, declarations

Tree: TypeAlias = "str | list[Tree] | Pairs"
Files: TypeAlias = "dict[str, bytes]"

WORDS = ROOT / "tools" / "fuzz_words.txt"
LONG = ("9" * 240, "9" * 300, "-" + "9" * 240, "0x" + "f" * 240, "1" + ":1" * 100, "a" * 2_000, "a/" * 400)


@dataclass
class Pairs:
    """A mapping: keys may be there twice, and may be trees."""

    pairs: list[tuple[Tree, Tree]] = field(default_factory=list)


def pieces() -> dict[str, list[str]]:
    """What files are made of, by section."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^\[(?=[\w./-]+\]$)", WORDS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = section.partition("]\n")
        written = text.strip("\n").replace("|\n", "|").split("|")
        found[name] = [piece.encode().decode("unicode_escape") for piece in written]
    found["values"] += LONG
    return found


PIECES = pieces()
ODD, MOVES, NAMES, TAGS = (PIECES.pop(name) for name in ("values", "moves", "names", "tags"))
KNOWING: Mapping[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "accelerate": ({"compute_environment": "LOCAL_MACHINE", "distributed_type": "FSDP"}, ("config",)),
    "transformers": ({"model_name_or_path": "x", "output_dir": "x", "num_train_epochs": "1"}, ("TrainingArguments",)),
    "trl": ({"model_name_or_path": "x", "dataset_name": "y"}, ("SFTConfig", "DPOConfig", "GRPOConfig", "ModelConfig")),
    "axolotl": ({"base_model": "x", "micro_batch_size": "1", "adapter": "lora"}, ("AxolotlInputConfig",)),
    "llamafactory": (
        {"model_name_or_path": "x", "finetuning_type": "lora", "stage": "sft", "template": "x"},
        ("FinetuningArguments", "ModelArguments", "DataArguments", "TrainingArguments"),
    ),
    "soup": ({"base": "x", "task": "sft"}, ("SoupConfig",)),
}
"""How a file of each trainer is known, and the tables with its keys."""


@cache
def fixtures() -> list[Files]:
    """The files of each case."""
    return [dict(case.files()) for prefix in ("bad", "good") for case in cases(prefix)]


@cache
def words() -> list[str]:
    """The keys in the fixtures."""
    lines = (
        line for files in fixtures() for data in files.values() for line in data.decode("utf-8", "replace").splitlines()
    )
    return sorted({line.partition(":")[0].strip(" -") for line in lines if re.match(r"[ -]*[\w-]+:", line)})


class Grammar:
    """Documents in the vocabulary of a program."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    def document(self) -> Tree:
        """A document of one of the programs."""
        kind = self.chance.random()
        if kind < 0.35:
            return self.manifest()
        if kind < 0.7:
            return self.config(self.chance.choice(sorted(KNOWING)))
        return self.varied(self.honest())

    def odd(self, depth: int = 0) -> Tree:
        """A value of any type."""
        kind = self.chance.random()
        if depth > 4 or kind < 0.75:
            return self.chance.choice(ODD if kind < 0.5 else words())
        items = [self.odd(depth + 1) for _ in range(self.chance.randint(0, 4))]
        return items if kind < 0.87 else Pairs([(self.chance.choice(words()), item) for item in items])

    def manifest(self) -> Tree:
        """A TrainJob or a runtime that follows the structure of a release, but for some of it."""
        kind = self.chance.choice(("TrainJob", "TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"))
        root = schema(self.chance.choice(list(RELEASES)), "TrainJob" if kind == "TrainJob" else "TrainingRuntime")
        spec = self.structured(root.properties["spec"], 0)
        head: list[tuple[Tree, Tree]] = [
            ("apiVersion", "trainer.kubeflow.org/v1alpha1"),
            ("kind", kind),
            ("metadata", Pairs([("name", "a")])),
        ]
        return Pairs([*head, ("spec", spec)])

    def structured(self, node: SchemaNode, depth: int) -> Tree:
        """A value that a structure allows, or not."""
        chance = self.chance
        if chance.random() < 0.07 or depth > 14:
            return self.odd()
        if node.enum and chance.random() < 0.9:
            return str(chance.choice(node.enum))
        if node.type == "object":
            some = 0.12 if len(node.properties) > 12 else 0.4
            names = [name for name in node.properties if name in node.required or chance.random() < some]
            pairs: list[tuple[Tree, Tree]] = [
                (name, self.structured(node.properties[name], depth + 1)) for name in names
            ]
            if node.values is not None:
                pairs += [(chance.choice(words()), self.structured(node.values, depth + 1))]
            if chance.random() < 0.05:
                pairs.append((chance.choice([*node.properties, "x"])[:-1] or "x", self.odd()))
            return Pairs(pairs)
        if node.type == "array" and node.items is not None:
            return [self.structured(node.items, depth + 1) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
        return chance.choice(
            {
                "integer": ("0", "1", "2", "8", "-1", "2147483648"),
                "number": ("0", "1.5"),
                "boolean": ("true", "false"),
                "int-or-string": ("1", "10%", "100m", "1Gi", "auto"),
            }.get(node.type, ("a", "node", "tune", "torchrun", "nvidia.com/gpu", "1", "x/y:z", *words()[:20]))
        )

    def config(self, program: str) -> Tree:
        """A config with some of the keys that a release of a trainer reads."""
        known, tables = KNOWING[program]
        found = declarations(program)
        release = self.chance.choice(found.names)
        pairs: list[tuple[Tree, Tree]] = list(known.items())
        for table in tables:
            pairs += self.keys(found, table, release, 0)
        for section in ("fsdp_config", "deepspeed_config"):
            if section in found.tables and self.chance.random() < 0.6:
                pairs.append((section, Pairs(self.keys(found, section, release, 1))))
        return Pairs(pairs)

    def keys(self, found: Declarations, table: str, release: str, depth: int) -> list[tuple[Tree, Tree]]:
        """Some keys of a table, with values."""
        fields = list(found.fields(table, release).values()) if table in found.tables else []
        chosen = self.chance.sample(fields, min(len(fields), self.chance.randint(0, 8)))
        return [(spec.name, self.fitting(found, spec, release, depth)) for spec in chosen]

    def fitting(self, found: Declarations, spec: Spec, release: str, depth: int) -> Tree:
        """A value of one of a key's types, or of none."""
        chance = self.chance
        kind = chance.choice(spec.types) if spec.types else "str"
        if chance.random() < 0.3 or depth > 4:
            return self.odd()
        if spec.choices and chance.random() < 0.8:
            return str(chance.choice(spec.choices))
        if kind in found.tables:
            return Pairs(self.keys(found, kind, release, depth + 1))
        if kind.startswith(("list", "tuple")):
            return [chance.choice(("a", "1", "q_proj")) for _ in range(chance.randint(0, 3))]
        if kind.startswith("dict"):
            return Pairs([(chance.choice(words()), self.odd())])
        values = {"int": ("0", "1", "-1", "8"), "float": ("0.0", "1e-5", "1.0"), "bool": ("true", "false")}
        return chance.choice(values.get(kind, ("", "null", "x", "auto", "a/b")))

    def honest(self) -> Tree:
        """A document of a fixture."""
        for _ in range(20):
            data = self.chance.choice(
                [data for name, data in self.chance.choice(fixtures()).items() if ".y" in name] or [b""]
            )
            try:
                found = [tree(one) for one in yaml.load_all(data, yaml.BaseLoader) if one]
            except (yaml.YAMLError, ValueError, TypeError):
                continue
            if found:
                return self.chance.choice(found)
        return "x"

    def varied(self, made: Tree) -> Tree:
        """A tree in which some is another."""
        chance = self.chance
        if chance.random() < 0.04:
            return self.odd()
        if isinstance(made, Pairs):
            pairs = [(key, self.varied(value)) for key, value in made.pairs if chance.random() > 0.03]
            if chance.random() < 0.1:
                pairs.append((chance.choice(words()), self.odd()))
            if pairs and chance.random() < 0.03:
                pairs.append((chance.choice(pairs)[0] if chance.random() < 0.7 else self.odd(), self.odd()))
            return Pairs(pairs)
        return [self.varied(item) for item in made] if isinstance(made, list) else made


def tree(loaded: object) -> Tree:
    """A document as a reader gives it."""
    if isinstance(loaded, dict):
        return Pairs([(str(key), tree(value)) for key, value in loaded.items()])
    return [tree(item) for item in loaded] if isinstance(loaded, list) else str(loaded)


class Writer:
    """Writes trees as YAML: each scalar in some style, with anchors, aliases, merges and tags here and there."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.oddity = chance.choice((0.0, 0.02, 0.1))
        self.known: dict[bool, list[str]] = {True: [], False: []}
        """The anchors so far: of mappings, and of all else."""

    def text(self, documents: Sequence[Tree]) -> str:
        """The documents of a file."""
        events: list[yaml.Event] = [yaml.StreamStartEvent()]
        for made in documents:
            self.known = {True: [], False: []}
            events += [yaml.DocumentStartEvent(explicit=len(documents) > 1 or self.seldom()), *self.node(made)]
            events.append(yaml.DocumentEndEvent(explicit=self.seldom()))
        events.append(yaml.StreamEndEvent())
        line_break = self.chance.choice(("\n",) * 8 + ("\r\n", "\r"))
        return str(
            yaml.emit(events, width=self.chance.choice((20, 80, 1_000)), line_break=line_break, allow_unicode=True)
        )

    def seldom(self) -> bool:
        return self.chance.random() < self.oddity

    def node(self, made: Tree) -> Iterator[yaml.Event]:
        chance, is_map = self.chance, isinstance(made, Pairs)
        if self.known[is_map] and self.seldom():
            yield yaml.AliasEvent(chance.choice(self.known[is_map]))
            return
        anchor = f"a{chance.randint(0, 30)}" if chance.random() < 2 * self.oddity else None
        tag = chance.choice(TAGS) if self.seldom() else None
        if isinstance(made, str):
            style = chance.choice((None, None, None, None, "'", '"', "|", ">")) if self.oddity else None
            yield yaml.ScalarEvent(anchor, tag, (tag is None, tag is None), made, style=style)
        elif isinstance(made, Pairs):
            yield yaml.MappingStartEvent(anchor, tag, tag is None, flow_style=chance.random() < 0.2)
            if self.known[True] and self.seldom():
                yield from self.merge()
            for key, value in made.pairs:
                yield from self.node(key)
                yield from self.node(value)
            yield yaml.MappingEndEvent()
        else:
            yield yaml.SequenceStartEvent(anchor, tag, tag is None, flow_style=chance.random() < 0.3)
            for item in made:
                yield from self.node(item)
            yield yaml.SequenceEndEvent()
        if anchor:
            self.known[is_map].append(anchor)

    def merge(self) -> Iterator[yaml.Event]:
        yield yaml.ScalarEvent(None, None, (True, False), "<<")
        names = [self.chance.choice(self.known[True]) for _ in range(self.chance.randint(1, 3))]
        if len(names) == 1:
            yield yaml.AliasEvent(names[0])
            return
        yield yaml.SequenceStartEvent(None, None, True, flow_style=True)
        yield from map(yaml.AliasEvent, names)
        yield yaml.SequenceEndEvent()


def written(chance: random.Random) -> bytes:
    """A file of documents that follow the grammar."""
    grammar = Grammar(chance)
    made = [grammar.document() for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    try:
        return Writer(chance).text(made).encode("utf-8", "surrogatepass")
    except yaml.YAMLError:
        return b"a: 1\n"


def flow(chance: random.Random, depth: int = 0) -> str:
    """A value in flow style, or a scalar, of words that programs know."""
    kind = chance.random()
    if depth > 4 or kind < 0.55:
        return chance.choice(ODD) if chance.random() < 0.6 else chance.choice(words())
    items = [flow(chance, depth + 1) for _ in range(chance.randint(0, 4))]
    name = f"&{chance.choice('xyz')} " if chance.random() < 0.1 else ""
    if kind < 0.75:
        return f"{name}[{', '.join(items)}]"
    return f"{name}{{{', '.join(f'{chance.choice(words())}: {item}' for item in items)}}}"


def changed(chance: random.Random, data: bytes) -> bytes:
    """A file in which a few values, lines or stretches are others."""
    lines = data.decode("utf-8", "replace").splitlines(keepends=True)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(lines) + 1)
        line = lines[at] if at < len(lines) else ""
        key, colon, _ = line.partition(":")
        how = chance.random()
        if how < 0.45 and colon:
            lines[at] = f"{key}: {flow(chance)}\n"
        elif how < 0.6 and colon:
            lines[at] = f"{key[: len(key) - len(key.lstrip())]}{chance.choice(words())}:{line[len(key) + 1 :]}"
        elif how < 0.7:
            lines[at:at] = [chance.choice(lines or [""])]
        elif how < 0.8:
            lines[at : at + 1] = []
        else:
            cut = chance.randrange(len(line) + 1)
            lines[at : at + 1] = [line[:cut] + chance.choice(MOVES) + line[cut:]]
    text = "".join(lines)
    encodings = ["utf-8"] * 12 + ["utf-16", "utf-8-sig", "latin-1"]
    encoding = chance.choice(encodings)
    return text.encode(encoding, "replace" if encoding == "latin-1" else "surrogatepass")


def referring(chance: random.Random) -> bytes:
    """A file in which each value is made of those before, often of several: `${a1}${a1}`, `$(a1)`, `*a1`."""
    form = chance.choice(("${{{0}}}", "$({0})", "*{0}", "{{{{ {0} }}}}", "${{.{0}}}", "${{{0}.{0}}}"))
    most, count = chance.choice((1, 2, 3, 8)), chance.choice((3, 30, 200))
    start = chance.choice(("", "x", "???", "${model}"))
    lines = [f"_component_: torchtune.models.llama3.llama3_8b\na0: &a0 '{start}'\n"]
    for number in range(1, count):
        parts = (form.format(f"a{chance.randrange(number) if most == 1 else number - 1}") for _ in range(most))
        value = next(parts) if form[0] == "*" else f"'{''.join(parts)}'"
        lines.append(f"a{number}: {value}\n" if form[0] == "*" else f"a{number}: &a{number} {value}\n")
    return safely("".join(lines))


def safely(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def companion(chance: random.Random, name: str) -> bytes:
    """A file of words that files of this name have."""
    count = chance.randint(1, 40)
    return safely("".join(chance.choice(PIECES[name]) + chance.choice(["", " ", " ", "\n"]) for _ in range(count)))


def release(chance: random.Random) -> str:
    """A version of something, or what stands in its place."""
    odd = ("", "*", "1!0.1", "1.0.dev0+x", "9" * 300, "1." * 200 + "1", "\u0663.1", "v1", "^1", "latest", "1.0; x")
    return chance.choice(odd) if chance.random() < 0.2 else f"{chance.randint(0, 5)}.{chance.randint(0, 50)}.0"


def stating(chance: random.Random) -> tuple[str, bytes]:
    """A file that states releases, of a known form and with odd contents."""
    packages = [*DISTRIBUTIONS.values(), "torchtune", "deepspeed", "torch"]
    pins = [(chance.choice(packages), release(chance)) for _ in range(chance.randint(1, 4))]
    name = chance.choice(("uv.lock", "poetry.lock", "Pipfile.lock", "a.ipynb", "pyproject.toml", "environment.yml"))
    if name in ("uv.lock", "poetry.lock"):
        return name, safely("".join(f'[[package]]\nname = "{p}"\nversion = "{v}"\n' for p, v in pins))
    if name == "Pipfile.lock":
        return name, safely(json.dumps({"default": {p: {"version": f"=={v}"} for p, v in pins}}))
    if name == "a.ipynb":
        source = [f"!pip install {p}=={v}\n" for p, v in pins] + [chance.choice(ODD)]
        made: object = {"cells": [{"cell_type": "code", "source": source}, chance.choice((None, 1, {}, []))]}
        return name, safely(json.dumps(made, ensure_ascii=chance.random() < 0.5))
    if name == "pyproject.toml":
        return name, safely(f"[project]\nname = 'x'\ndependencies = {json.dumps([f'{p}=={v}' for p, v in pins])}\n")
    return name, safely("dependencies:\n" + "".join(f"- {p}={v}\n" for p, v in pins))


def settings(chance: random.Random) -> bytes:
    """A file of settings, with right and wrong values."""
    values = (
        '[""]',
        '["FS", "TJ"]',
        '["TJ011"]',
        '["*.yaml", "!a*"]',
        '["x/"]',
        '"error"',
        '"json"',
        "5",
        "true",
        "{}",
    )
    keys = ("select", "ignore", "exclude", "fail-on", "format", "runtimes", "stages", "x")
    lines = [f"{chance.choice(keys)} = {chance.choice(values)}" for _ in range(chance.randint(0, 2))]
    if chance.random() < 0.5:
        program = chance.choice(("kubeflow-trainer", "accelerate", "torchtune", "trl", "axolotl", "soup", "kubernetes"))
        lines += ["[targets]", f"{program} = {json.dumps(release(chance))}"]
    if chance.random() < 0.3:
        program = chance.choice(("none", "axolotl", "soup", "x"))
        lines += ["[[overrides]]", f"paths = {chance.choice(values)}", f"program = '{program}'"]
    return safely("\n".join(lines) + "\n")


def repository(chance: random.Random, seeds: Sequence[Files]) -> Files:
    """A few files that know of each other."""
    files: Files = {}
    for number in range(chance.randint(1, 3)):
        if chance.random() < 0.4:
            name = chance.choice(("a.yaml", "b.yml", "f.yaml", "soup.yaml", "sft.yaml"))
            data = referring(chance) if chance.random() < 0.05 else written(chance)
            made = {name: changed(chance, data) if chance.random() < 0.2 else data}
        else:
            made = {name: changed(chance, data) for name, data in chance.choice(seeds).items()}
        for name, data in made.items():
            place = name if chance.random() < 0.7 else f"{chance.choice('abc')}/{name}"
            if chance.random() < 0.06 and os.name != "nt":
                place = f"{os.path.dirname(place)}/{os.fsdecode(safely(chance.choice(NAMES)))}.yaml".lstrip("/")
            files[place if place not in files else f"{number}-{place}"] = data
    for name in chance.sample(sorted(PIECES), chance.randint(0, 3)):
        files[name] = companion(chance, name)
    if chance.random() < 0.3:
        name, data = stating(chance)
        files[name] = data
    if chance.random() < 0.15:
        files["trainlint.toml"] = settings(chance)
    return {name: data for name, data in files.items() if not any(other.startswith(f"{name}/") for other in files)}


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, capture_output=True, check=False, stdin=subprocess.DEVNULL)


def _tracked(folder: Path) -> None:
    _git(folder, "init", "-q")
    _git(folder, "add", "--all")


def _with_bare(folder: Path) -> None:
    _git(folder, "init", "-q")
    _git(folder, "init", "-q", "--bare", "bare")


def _garbled(name: str, data: bytes) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        _tracked(folder)
        (folder / ".git" / name).write_bytes(data)

    return make


STATES: Mapping[str, Callable[[Path], object]] = {
    "a folder": lambda folder: (folder / ".git").mkdir(),
    "a file": lambda folder: (folder / ".git").write_bytes(b"gitdir: .git\n"),
    "tracked": _tracked,
    "untracked": lambda folder: _git(folder, "init", "-q"),
    "a bare one below": _with_bare,
    "a lock": _garbled("index.lock", b""),
    "a broken index": _garbled("index", b"DIRC\0\0\0\2\0\0\0\1"),
    "a broken head": _garbled("HEAD", b"\0"),
    "a broken configuration": _garbled("config", b"[core\n"),
    "another work tree": _garbled("config", b"[core]\nsplitIndex = true\nworktree = ..\n"),
}
"""What a folder may be to git."""
