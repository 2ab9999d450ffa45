"""The GitHub Action's step: it reads its inputs from the environment and writes log, SARIF, outputs and summary.

The checkout belongs to whoever opened the pull request. Inputs are data and never options. No content or name of a file
can end the part of the log in which GitHub reads no commands, nor an output, nor the block in the summary. The SARIF
document is never written through a link of the checkout.

Source: GitHub documentation, "Workflow commands for GitHub Actions": stopping commands, multiline values, summaries.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainlint.baseline import Places, marked, read
from trainlint.engine import Run
from trainlint.faults import fault
from trainlint.findings import Severity
from trainlint.records import dataclass
from trainlint.reports import FORMATS, RenderOptions, render, without_secrets
from trainlint.reports.escape import visible
from trainlint.reports.github import wrong_use
from trainlint.repository.bounds import Bounds, PathError, leads_out
from trainlint.repository.discover import SUFFIXES, repository_root
from trainlint.repository.git import changed
from trainlint.settings import Overrides, SettingsError

MAX_SUMMARY = 900_000
"""Bytes of the report in the summary; GitHub accepts 1 MiB in all."""


class _Unusable(ValueError):
    """An input that cannot be used, or a document that cannot be written."""


@dataclass(frozen=True)
class _Inputs:
    paths: list[Path]
    config: Path | None
    format: str
    sarif_file: str
    fail_on: Severity | None
    directory: str
    only_changed: bool

    @classmethod
    def of(cls, env: Mapping[str, str]) -> _Inputs:
        """Raises _Unusable."""
        paths = [Path(line) for line in env.get("PATHS", ".").splitlines() if line]
        format_, fail_on = env.get("FORMAT") or "github", env.get("FAIL_ON", "")
        if format_ not in FORMATS:
            raise _Unusable(f"format must be one of {', '.join(FORMATS)}")
        only_changed = env.get("ONLY_CHANGED", "").lower() == "true"
        if env.get("ONLY_CHANGED", "").lower() not in ("", "true", "false"):
            raise _Unusable("only-changed must be true or false")
        severities = [severity.value for severity in Severity]
        if fail_on and fail_on not in severities:
            raise _Unusable(f"fail-on must be one of {', '.join(severities)}")
        return cls(
            paths or [Path()],
            Path(env["CONFIG"]) if env.get("CONFIG") else None,
            format_,
            env.get("SARIF_FILE") or "trainlint.sarif",
            Severity(fail_on) if fail_on else None,
            env.get("DIRECTORY") or ".",
            only_changed,
        )


def main(env: Mapping[str, str] = os.environ) -> int:
    """Run the step in the current folder, which is the workspace; returns the exit code."""
    report, told, code, sarif = None, "", 2, ""
    try:
        inputs = _Inputs.of(env)
        workspace = Path(env.get("GITHUB_WORKSPACE") or os.getcwd())
        _enter(inputs.directory, workspace)
        target = _free(inputs.sarif_file, workspace)
        base = _base_of_pull_request(env) if inputs.only_changed else None
        run = Run(Overrides(fail_on=inputs.fail_on, config=inputs.config, force_exclude=base is not None, jobs=0))
        settings = run.settings_for(inputs.paths)
        paths = inputs.paths if base is None else _changed(inputs.paths, base)
        report = marked(run.lint(paths), map(read, run.baselines), Places(run.homes, paths))
        report = without_secrets(report)
        options = RenderOptions(root=repository_root(Path.cwd()), fail_on=settings.fail_on)
        notices = "".join(f"trainlint: {visible(notice)}\n" for notice in report.notices)
        told = notices + render("text", report, options)
        if base is not None and not paths:
            below = ", ".join(map(str, inputs.paths))
            told = f"{notices}The pull request changes no YAML file below {visible(below)}.\n"
        code = 2 if report.crashed else int(report.fails(settings.fail_on))
        try:
            _write(target, render("sarif", report, options))
            sarif = _from_workspace(inputs)
        except _Unusable as error:
            # What was found is shown all the same.
            code, told = 2, f"{told}trainlint: {visible(str(error))}\n"
            print(wrong_use(str(error)))
        if inputs.format in ("github", "text"):
            _print_inert(told)
        elif inputs.format == "concise":
            _print_inert(notices + render("concise", report, options))
        else:
            _print_inert(render(inputs.format, report, options))
        if inputs.format == "github":
            print(render("github", report, options), end="")
    except Exception as error:
        said = str(error) if isinstance(error, (_Unusable, PathError, SettingsError)) else fault(error)
        code, told = 2, f"trainlint: {visible(said)}\n"
        _print_inert(told)
        print(wrong_use(said))
    findings = str(sum(1 for _ in report.active)) if report is not None and sarif else ""
    _append(env.get("GITHUB_OUTPUT"), _outputs({"sarif-file": sarif, "exit-code": str(code), "findings": findings}))
    _append(env.get("GITHUB_STEP_SUMMARY"), _summary(told))
    return code


def _base_of_pull_request(env: Mapping[str, str]) -> str | None:
    """The commit that a pull request is made against; None where the workflow runs for something else.

    Source: GitHub documentation, "Events that trigger workflows" and "Webhook events and payloads": pull_request.
    """
    if env.get("GITHUB_EVENT_NAME") not in ("pull_request", "pull_request_target"):
        return None
    try:
        event = json.loads(Path(env["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        return str(event["pull_request"]["base"]["sha"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise _Unusable("only-changed: the event of this workflow cannot be read") from None


def _changed(paths: Sequence[Path], base: str) -> list[Path]:
    """The YAML files at or below some paths that the pull request changes; no link that leads out of the repository."""
    here = Path(os.path.realpath(os.getcwd()))
    bounds = Bounds(repository_root(here))
    named = [os.path.realpath(path) for path in paths]
    found = []
    for file in changed(here, base):
        below = any(str(file) == path or str(file).startswith(os.path.join(path, "")) for path in named)
        if below and file.name.lower().endswith(SUFFIXES) and bounds.file(file):
            found.append(file.relative_to(here) if file.is_relative_to(here) else file)
    return found


def _enter(directory: str, workspace: Path) -> None:
    if _leads_out(Path(directory), workspace):
        raise _Unusable(f"working-directory {directory} leads out of the workspace")
    try:
        os.chdir(directory)
    except OSError as error:
        raise _Unusable(f"working-directory {directory}: {error.strerror}") from None


def _free(sarif_file: str, workspace: Path) -> Path:
    """The path of the document; what was there before, such as a link, is removed."""
    target = Path(sarif_file)
    if not sarif_file.isprintable():
        raise _Unusable(f"sarif-file {sarif_file} is not a file name")
    if sarif_file.endswith(("/", os.sep)) or target.is_dir():
        raise _Unusable(f"sarif-file {sarif_file} is a folder: name a file in it, such as trainlint.sarif")
    if _leads_out(target.parent, workspace):
        raise _Unusable(f"sarif-file {sarif_file} leads out of the workspace")
    try:
        if os.path.lexists(target) and not os.path.islink(target) and not os.path.isfile(target):
            raise OSError(errno.EINVAL, "not a regular file")
        target.unlink(missing_ok=True)
    except OSError as error:
        raise _Unusable(f"{sarif_file}: cannot be written: {error.strerror}") from None
    return target


def _leads_out(folder: Path, workspace: Path) -> bool:
    """The folder is in the workspace by its name, but not after links are resolved."""
    named = Path(os.path.abspath(folder))
    roots = (Path(os.path.abspath(workspace)), Path(os.path.realpath(workspace)))
    return any(named.is_relative_to(root) for root in roots) and leads_out(workspace, folder)


def _write(target: Path, document: str) -> None:
    try:
        with open(target, "x", encoding="utf-8", newline="\n") as stream:
            stream.write(document)
    except OSError as error:
        raise _Unusable(f"{target}: cannot be written: {error.strerror}") from None


def _from_workspace(inputs: _Inputs) -> str:
    """The document's path relative to the workspace, where the following steps start."""
    if Path(inputs.sarif_file).is_absolute():
        return inputs.sarif_file
    return f"{inputs.directory.rstrip('/')}/{inputs.sarif_file}".removeprefix("./")


def _print_inert(text: str) -> None:
    """Print text in which the runner reads no commands, up to a random word."""
    word = secrets.token_hex(32)
    print(f"::stop-commands::{word}\n{text}::{word}::")


def _outputs(values: Mapping[str, str]) -> str:
    word = secrets.token_hex(32)
    return "".join(f"{name}<<{word}\n{value}\n{word}\n" for name, value in values.items())


def _summary(told: str) -> str:
    """The report as an indented block: no line of it can end the block."""
    block = "".join(f"    {line}\n" for line in told.splitlines())
    return f"### trainlint\n\n{block.encode()[:MAX_SUMMARY].decode(errors='ignore')}\n"


def _append(file: str | None, text: str) -> None:
    if file:
        # A folder may have a name that is no text.
        with open(file, "a", encoding="utf-8", errors="surrogateescape", newline="\n") as stream:
            stream.write(text)


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", lambda **_: None)(encoding="utf-8", errors="backslashreplace")
    sys.exit(main())
