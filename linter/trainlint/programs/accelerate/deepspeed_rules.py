"""The rules on launches under DeepSpeed: the section of accelerate's config file, and the hosts.

What stands in the DeepSpeed config that the section names is judged by training/deepspeed_rules.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainlint.findings import Finding, Severity, Stage, did_you_mean, one_of, some_of
from trainlint.programs.accelerate.config import python_integer, python_text
from trainlint.programs.accelerate.deepspeed import DeepSpeedLaunch, HostLine
from trainlint.programs.accelerate.facts import FALSE_WORDS, FILE_SETTINGS, LAUNCHERS, MPI_LAUNCHERS, TRUE_WORDS
from trainlint.reading.values import Field
from trainlint.rule import rule

_DEVICES = ("none", "cpu", "nvme")


@rule("FS150", "settings-beside-deepspeed-file", stage=Stage.START)
def settings_beside_deepspeed_file(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """A setting stands beside deepspeed_config_file, which must hold it.

    With a DeepSpeed config of its own the run takes stage, accumulation, clipping, offloading, the 16-bit model and the
    precision from there. The workers refuse them in the launcher's file, also where both agree and where one is null.

    Move them into the DeepSpeed config. `zero3_init_flag`, the MoE layers and the settings of the launcher stay.

    Source: accelerate, DeepSpeedPlugin._deepspeed_config_checks.
    """
    config, named = launch.config, launch.named
    # What names no file is told by itself.
    if not named.text().known:
        return
    section = config.field.get("deepspeed_config")
    found = [section.get(name) for name in FILE_SETTINGS if section.get(name).node is not None]
    precision = config.field.get("mixed_precision")
    flagged = config.launch is not None and config.launch.flag("mixed_precision") is not None
    if not precision.is_absent and not flagged:
        found.append(precision)
    if found:
        # The stage is what most runs take from such a config.
        found.sort(key=lambda field: field.name != "zero_stage")
        them = "them" if len(found) > 1 else "it"
        yield found[0].finding(
            f"{some_of(field.name for field in found)} cannot stand beside deepspeed_config_file",
            help=f"remove {them}, and write {them} in the DeepSpeed config",
            at_key=True,
            related=(
                *named.relate("the DeepSpeed config is named here"),
                *(place for field in found[1:] for place in field.relate("nor can this")),
            ),
        )


@rule("FS151", "deepspeed-config-file", stage=Stage.START)
def deepspeed_config_file(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """deepspeed_config_file is not the name of a file.

    A mapping in its place is not read as one: the workers get Python's text of it, which is neither a path nor JSON.

    Source: accelerate, HfDeepSpeedConfig of utils/deepspeed.py.
    """
    field = launch.named
    if field.is_absent or field.is_unknown:
        return
    if launch.is_folder:
        yield field.finding(f"{field.written} is a folder", help="name the JSON file in it")
    elif field.text().wrong_type or field.text().is_(""):
        yield field.finding("deepspeed_config_file must be the name of a JSON file", help="write its name")


@rule("FS152", "deepspeed-setting", stage=Stage.START, varies="warning where the value is read as another one")
def deepspeed_setting(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """A setting of deepspeed_config has a value that the workers or DeepSpeed refuse.

    The workers get the text of each value. `zero_stage` and `gradient_accumulation_steps` are read as integers, so
    "auto" is refused, and so is 2.0; `gradient_clipping` is a number or "auto"; the devices are none, cpu or nvme in
    any case; `zero3_init_flag` is a boolean. `zero3_save_16bit_model` is true for the word true, else false.

    The Trainer of transformers tells the Accelerator how many steps to accumulate, except from 4.46 to 4.57. Then
    nobody reads `gradient_accumulation_steps: auto` as a number, and nothing is said of it where a Trainer may run.

    Source: accelerate, DeepSpeedPlugin and Accelerator; deepspeed, runtime/zero/config.py; transformers, Trainer.
    """
    flag = launch.setting("zero3_init_flag")
    word = python_text(flag).map(str.lower)
    if not flag.is_absent and (word.wrong_type or word.known_and_not_in(TRUE_WORDS | FALSE_WORDS)):
        yield flag.finding("zero3_init_flag must be true or false", help="write true or false")
    if not launch.named.is_absent:
        return
    yield from _stage(launch.setting("zero_stage"))
    steps = launch.setting("gradient_accumulation_steps")
    if not python_text(steps).is_("auto") or launch.counts_steps:
        yield from _accumulation(steps)
    clipping = launch.setting("gradient_clipping")
    if not clipping.is_absent and not clipping.is_unknown and not _is_number(clipping):
        yield clipping.finding("gradient_clipping must be a number or auto", help="write a number; 0 clips nothing")
    for name in ("offload_optimizer_device", "offload_param_device"):
        device = launch.setting(name)
        known = python_text(device).map(str.lower)
        if not device.is_absent and (known.wrong_type or known.known_and_not_in(_DEVICES)):
            yield device.finding(
                f"{name} must be {one_of(_DEVICES)}",
                help=did_you_mean(device.written, _DEVICES) or "write none, cpu or nvme",
                stage=Stage.PREPARE,
            )
    model = launch.setting("zero3_save_16bit_model")
    saved = python_text(model).map(str.lower)
    if not model.is_absent and saved.known_and(lambda text: text != "true" and text not in FALSE_WORDS):
        yield model.finding(
            f"zero3_save_16bit_model {model.written} counts as false",
            help="write true",
            severity=Severity.WARNING,
            stage=Stage.RUN,
        )


def _stage(stage: Field) -> Iterator[Finding]:
    number = python_integer(stage)
    if stage.is_absent or stage.is_unknown:
        return
    if number.wrong_type:
        yield stage.finding("zero_stage must be an integer", help="write 0, 1, 2 or 3")
    elif number.known_and_not_in((0, 1, 2, 3)):
        yield stage.finding(f"there is no ZeRO {number}", help="write 0, 1, 2 or 3", stage=Stage.PREPARE)


def _accumulation(steps: Field) -> Iterator[Finding]:
    if steps.is_absent or steps.is_unknown:
        return
    number = python_integer(steps)
    if number.wrong_type:
        yield steps.finding(
            "gradient_accumulation_steps must be an integer",
            help="write the number, or remove it" if steps.plain == "auto" else "write the number",
        )
    elif number.below(1) or python_text(steps).known_and(lambda text: not text.isdecimal()):
        # What is not all digits stays text in the DeepSpeed config.
        yield steps.finding(
            "gradient_accumulation_steps must be at least 1", help="write 1 or more", stage=Stage.PREPARE
        )


def _is_number(field: Field) -> bool:
    text = python_text(field).known
    try:
        return text is not None and (text.lower() == "auto" or float(text) is not None)
    except ValueError:
        return False


@rule("FS153", "nvme-path-not-passed", stage=Stage.RUN, severity=Severity.WARNING)
def nvme_path_not_passed(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """The launcher does not pass the path for NVMe on.

    It hands the devices to the workers, but not `offload_optimizer_nvme_path` and `offload_param_nvme_path`: DeepSpeed
    then swaps to a folder called `none` in the current one, on whatever disk that is.

    Name a DeepSpeed config with `deepspeed_config_file`, and write `nvme_path` there.

    Source: accelerate, prepare_deepspeed_cmd_env of utils/launch.py.
    """
    if not launch.named.is_absent:
        return
    for name in ("offload_optimizer", "offload_param"):
        device = launch.setting(f"{name}_device")
        if python_text(device).map(str.lower).is_("nvme"):
            path = launch.setting(f"{name}_nvme_path")
            at = path if not path.is_absent else device
            yield at.finding(
                f"no path reaches DeepSpeed for {name}: it swaps to a folder called none",
                help="name a DeepSpeed config in deepspeed_config_file, with nvme_path in it",
            )


@rule("FS154", "moe-layer-names", stage=Stage.PREPARE)
def moe_layer_names(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """deepspeed_moe_layer_cls_names is not a list of class names with commas.

    The names are split at their commas and looked up in the model as they are: a blank behind a comma belongs to the
    name, and a list gets Python's brackets.

    Source: accelerate, DeepSpeedPlugin.set_moe_leaf_modules.
    """
    field = launch.setting("deepspeed_moe_layer_cls_names")
    text = python_text(field)
    if field.is_absent:
        return
    if text.wrong_type or text.known_and(lambda names: not all(name.isidentifier() for name in names.split(","))):
        names = [item.written for item in field.items()] or [part.strip() for part in (text.known or "").split(",")]
        yield field.finding(
            "deepspeed_moe_layer_cls_names must be class names with commas, without blanks",
            help=f"write {','.join(name for name in names if name) or 'the names, or remove it'}",
        )


@rule("FS155", "deepspeed-precision-flag", stage=Stage.START)
def deepspeed_precision_flag(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """The flag --mixed_precision contradicts the DeepSpeed config.

    The workers refuse bf16 where the DeepSpeed config switches fp16 on, and fp16 where it switches bf16 on.

    Source: accelerate, DeepSpeedPlugin.set_mixed_precision.
    """
    flag = launch.config.launch.flag("mixed_precision") if launch.config.launch else None
    if flag is None or not isinstance(launch.file, Field):
        return
    other = {"fp16": "bf16", "bf16": "fp16", "fp8": "fp16"}.get(flag.written.lower())
    switched = launch.file.get(other).get("enabled") if other else None
    if switched is not None and str(switched.plain).lower() == "true":
        yield flag.finding(
            f"--mixed_precision {flag.written} contradicts {other} in {launch.file.document.path}",
            help="remove one of them",
            related=switched.relate(f"{other} is on here"),
        )


@rule("FS156", "deepspeed-tensor-parallel", stage=Stage.PREPARE)
def deepspeed_tensor_parallel(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """Tensor parallelism under DeepSpeed leaves no batch size.

    With a tensor parallel size the data loader is wrapped so that it has no batch size, and accelerate asks it for one
    where the DeepSpeed config has none, as it never has without a file of its own.

    Source: accelerate 1.12 and later, Accelerator.prepare.
    """
    mesh = launch.config.mesh(launch.accelerate)
    size = mesh.sizes.get("tp") if mesh else None
    micro = launch.file.get("train_micro_batch_size_per_gpu").plain if isinstance(launch.file, Field) else "auto"
    named = not launch.named.is_absent and not isinstance(launch.file, Field)
    if size is not None and size.above(1) and micro == "auto" and not named:
        yield size.finding(
            "tensor parallelism under DeepSpeed needs train_micro_batch_size_per_gpu",
            help="write it in a DeepSpeed config, or remove the size",
        )


# several machines


@rule("FS160", "deepspeed-launcher", stage=Stage.START)
def deepspeed_launcher(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """DeepSpeed's launcher does not know this one, or does not work with what accelerate passes it.

    With several machines accelerate calls the `deepspeed` command, unless the launcher is `standard`, in lower case.
    It always limits the GPUs or the hosts, which the launchers for MPI refuse. They are asked once there are several
    hosts, so a hostfile must be there.

    Source: accelerate, prepare_deepspeed_cmd_env; deepspeed, launcher/runner.py and multinode_runner.py.
    """
    config, word, facts = launch.config, launch.launcher, launch.facts
    field = launch.setting("deepspeed_multinode_launcher")
    port = config.key("main_process_port")
    if word is None:
        return
    if port.is_absent and not launch.accelerate.deepspeed_port_given:
        yield config.machines.field.finding(
            f"main_process_port is missing for {config.machines} machines under DeepSpeed",
            help="add main_process_port: 29500",
        )
        return
    if launch.hosts is None or any(not line.name for line in launch.hosts.lines):
        return
    if field.text().known is None and not field.is_absent:
        return
    hosts = _left(launch)
    several = hosts is not None and len(hosts) > 1
    flag = word == "nossh" and launch.accelerate.nossh_is_a_flag
    if flag:
        rank = config.number("machine_rank")
        if hosts is not None and rank.known is not None and not 0 <= rank.known < len(hosts):
            yield rank.finding(
                f"machine_rank {rank} is not among the {len(hosts)} hosts",
                help="number the machines from 0",
                related=launch.setting("deepspeed_hostfile").relate("the hosts"),
            )
    elif several and (word not in LAUNCHERS or word in ("nossh", "standard")):
        help = did_you_mean(field.written, LAUNCHERS) or f"write {one_of(LAUNCHERS)}"
        if word in ("standard", "torchrun"):
            help = "write standard"
        yield field.finding(f"DeepSpeed does not know the launcher {field.written}", help=help)
    elif several and (word in MPI_LAUNCHERS or (word == "openmpi" and not facts.openmpi_asks_environment)):
        yield field.finding(
            f"the launcher {word} refuses the limit on GPUs or hosts that Accelerate always passes",
            help="write pdsh, slurm or standard",
        )


@rule("FS161", "deepspeed-hostfile", stage=Stage.START)
def deepspeed_hostfile(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """The hostfile is not one that DeepSpeed reads.

    Each line is a name, blanks and `slots=` with a number; no name stands twice; lines with # are comments.

    Source: deepspeed, _parse_hostfile of launcher/runner.py.
    """
    if launch.hosts is None or launch.launcher is None:
        return
    seen: dict[str, HostLine] = {}
    for line in launch.hosts.lines:
        if not line.name:
            yield line.field.finding("DeepSpeed cannot read this host", help="write NAME slots=8")
            return
        if line.name in seen:
            yield line.field.finding(
                f"the host {line.name} stands twice",
                help="remove one of the lines",
                related=seen[line.name].field.relate("the same host is here"),
            )
            return
        seen[line.name] = line
    if not launch.hosts.lines:
        yield launch.setting("deepspeed_hostfile").finding(
            "the hostfile has no hosts", help="write a line NAME slots=8 for each machine"
        )


@rule("FS162", "deepspeed-host-filter", stage=Stage.START)
def deepspeed_host_filter(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """The filter of hosts does not fit the hostfile.

    A filter is `host@host:0,1`: hosts with @ between them, each with the slots that are meant. Each host must be in the
    hostfile, and something must be left. Up to 0.19.6 a host that an inclusion filter names without slots has none.

    Source: deepspeed, parse_resource_filter and parse_inclusion_exclusion of launcher/runner.py.
    """
    if launch.hosts is None or launch.launcher is None or any(not line.name for line in launch.hosts.lines):
        return
    field, excludes = _filter(launch)
    if field is None or not launch.hosts.lines:
        return
    slots = {line.name: line.slots for line in launch.hosts.lines}
    named = launch.setting("deepspeed_hostfile").relate("the hosts")
    for name, wanted in _nodes(field.text().known or ""):
        if wanted is None:
            yield field.finding(f"DeepSpeed cannot read {name}", help="write host@host:0,1")
            return
        if name not in slots:
            yield field.finding(
                f'the host "{name}" is not in the hostfile',
                help=did_you_mean(name, slots) or f"write {one_of(slots)}",
                related=named,
            )
            return
        over = [slot for slot in wanted if not 0 <= slot < slots[name]]
        if over and (excludes or launch.facts.slots_checked):
            yield field.finding(f"the host {name} has no slot {some_of(over)}", help="count from 0", related=named)
            return
    if _left(launch) == {}:
        help = "leave a host" if excludes or launch.facts.slots_checked else "write the slots, as in host:0,1"
        yield field.finding("no host is left", help=help, related=named)


def _filter(launch: DeepSpeedLaunch) -> tuple[Field | None, bool]:
    """The filter that accelerate passes, the one that excludes first, and whether it excludes."""
    for name, excludes in (("deepspeed_exclusion_filter", True), ("deepspeed_inclusion_filter", False)):
        field = launch.setting(name)
        if not field.is_absent:
            return (field if field.text().known is not None and not field.is_unknown else None), excludes
    return None, False


def _nodes(text: str) -> Iterator[tuple[str, list[int] | None]]:
    """The hosts of a filter with their slots, None where a part cannot be read."""
    for part in text.split("@"):
        name, colon, rest = part.partition(":")
        try:
            slots = [int(slot) for slot in rest.split(",")] if colon else []
        except ValueError:
            yield part, None
            continue
        yield name, slots


def _left(launch: DeepSpeedLaunch) -> dict[str, int] | None:
    """The hosts that a filter leaves, with the number of their slots; None where that is not known."""
    if launch.hosts is None:
        return None
    slots = {line.name: set(range(line.slots)) for line in launch.hosts.lines}
    for name in ("deepspeed_exclusion_filter", "deepspeed_inclusion_filter"):
        if launch.setting(name).is_unknown:
            return None
    field, excludes = _filter(launch)
    if field is None:
        return {name: len(numbers) for name, numbers in slots.items() if numbers}
    wanted: dict[str, list[int]] = {}
    for name, numbers in _nodes(field.text().known or ""):
        if numbers is None or name not in slots:
            return None
        wanted.setdefault(name, []).extend(numbers)
    left = slots if excludes else {}
    for name, numbers in wanted.items():
        if excludes:
            left[name] = left[name] - set(numbers) if numbers else set()
        else:
            left[name] = set(numbers) if numbers else slots[name] if launch.facts.slots_checked else set()
    return {name: len(numbers) for name, numbers in left.items() if numbers}


@rule("FS163", "deepspeed-without-hosts", stage=Stage.RUN, severity=Severity.WARNING)
def deepspeed_without_hosts(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """There are several machines, and DeepSpeed gets no hostfile.

    Without one its launcher starts workers on this machine alone.

    Write `deepspeed_hostfile`, or `deepspeed_multinode_launcher: standard` and start the command on each machine.

    Source: accelerate, prepare_deepspeed_cmd_env; deepspeed, fetch_hostfile of launcher/runner.py.
    """
    hostfile = launch.setting("deepspeed_hostfile")
    if launch.launcher is not None and hostfile.is_absent:
        machines = launch.config.machines
        yield machines.finding(
            f"without deepspeed_hostfile only one of {machines} machines trains",
            help="add deepspeed_hostfile, or deepspeed_multinode_launcher: standard",
        )


@rule("FS164", "zero-stage-too-low", stage=Stage.RUN, severity=Severity.WARNING)
def zero_stage_too_low(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """A setting for ZeRO 3 stands beside another stage.

    accelerate switches `zero3_init_flag` off, with a warning. `zero3_save_16bit_model` and the offloading of parameters
    have no effect, without one; the offloading of the optimizer has none with ZeRO 0.

    Source: accelerate, DeepSpeedPlugin; deepspeed, runtime/engine.py.
    """
    if not launch.named.is_absent:
        return
    field = launch.setting("zero_stage")
    stage = 2 if field.is_absent else python_integer(field).known
    if stage is None or field.is_unknown or stage not in (0, 1, 2):
        return
    for name, needed in (
        ("zero3_init_flag", 3),
        ("zero3_save_16bit_model", 3),
        ("offload_param_device", 3),
        ("offload_optimizer_device", 1),
    ):
        setting = launch.setting(name)
        if python_text(setting).map(str.lower).known in _ON and stage < needed:
            yield setting.finding(
                f"{name} has no effect with ZeRO {stage}",
                help=f"remove it, or set zero_stage: {needed}",
                related=field.relate("the stage") if not field.is_absent else (),
            )


_ON = TRUE_WORDS | {"cpu", "nvme"}


@rule("FS165", "unread-under-deepspeed", stage=Stage.RUN, severity=Severity.WARNING)
def unread_under_deepspeed(launch: DeepSpeedLaunch) -> Iterator[Finding]:
    """A setting does not reach the workers under DeepSpeed.

    The launcher for DeepSpeed passes neither the settings of torch.compile on, whatever they are, nor `use_cpu`.

    Call `torch.compile` in the script, or give the arguments of the trainer.

    Source: accelerate, prepare_deepspeed_cmd_env of utils/launch.py.
    """
    section = launch.field.get("dynamo_config")
    backends = (launch.field.get("dynamo_backend"), section.get("dynamo_backend"), section.get("backend"))
    for backend in backends:
        if backend.text().known_and(lambda word: word.upper() != "NO"):
            yield backend.finding(
                "the settings of torch.compile do not reach the workers under DeepSpeed",
                help="remove them, and compile in the script",
                at_key=True,
            )
    cpu = launch.field.get("use_cpu")
    if cpu.plain is True:
        yield cpu.finding("use_cpu has no effect under DeepSpeed: the GPUs are used", help="remove it")
