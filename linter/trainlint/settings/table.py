"""Every setting, stated once: the reader, the JSON Schema, the documentation and --show-settings are made of this."""

from __future__ import annotations

from trainlint.findings import Severity
from trainlint.records import NamedTuple
from trainlint.reports import FORMATS
from trainlint.selection import OFF
from trainlint.settings import RUNTIMES
from trainlint.settings.kinds import (
    ByPattern,
    BySelector,
    File,
    Fixed,
    Flag,
    Kind,
    OneOf,
    Patterns,
    Selectors,
    Targets,
    Words,
)

SEVERITIES = tuple(severity.value for severity in reversed(Severity))


class Setting(NamedTuple):
    """One setting: its key, the kind of its values, what it does, and whether it may stand in `[[overrides]]`.

    `default` is what counts where nobody says anything, as TOML; `adds` that the values of extended files stay.
    """

    key: str
    kind: Kind
    doc: str
    default: str = ""
    in_overrides: bool = False
    only_in_overrides: bool = False
    adds: bool = False


SETTINGS = (
    Setting("extend", File(), "another settings file of the repository, whose settings count where these say nothing"),
    Setting("select", Selectors(), "use only these rules", '["ALL"]', in_overrides=True),
    Setting("ignore", Selectors(), "do not use these rules", "[]", in_overrides=True, adds=True),
    Setting("extend-select", Selectors(), "use these rules, too", "[]", in_overrides=True, adds=True),
    Setting("extend-ignore", Selectors(), "do not use these rules either", "[]", in_overrides=True, adds=True),
    Setting(
        "per-file-ignores",
        ByPattern(),
        "rules that are not used on some files; a pattern that begins with `!` means all other files",
        "{}",
        in_overrides=True,
    ),
    Setting(
        "extend-per-file-ignores",
        ByPattern(),
        "the same, added to the `per-file-ignores` of the extended file",
        "{}",
        in_overrides=True,
        adds=True,
    ),
    Setting(
        "severity",
        BySelector(OneOf((*SEVERITIES, OFF)), 'FS003 = "warning"'),
        "the severity of all findings of these rules; `off` is as good as `ignore`, whatever is selected",
        "{}",
        in_overrides=True,
        adds=True,
    ),
    Setting("require-reason", Flag(), "a suppression comment without a reason suppresses nothing", "false"),
    Setting("baseline", File(), "a file of known findings, which do not count; `--baseline` names another"),
    Setting("exclude", Patterns(), "files that are not checked, nor looked into for others", "[]", adds=True),
    Setting("targets", Targets(), "the releases that the files are for", "{}", in_overrides=True, adds=True),
    Setting(
        "program",
        OneOf(("none",), lambda known: known.programs, "a program, `none`"),
        "whose the files are; `none`: they are not checked",
        only_in_overrides=True,
    ),
    Setting(
        "runtimes",
        OneOf(RUNTIMES),
        "a runtime that is not in the repository is a note (`open`) or an error (`closed`)",
        '"open"',
    ),
    Setting("fail-on", OneOf(SEVERITIES), "the lowest severity that makes the exit code 1", '"error"'),
    Setting("format", OneOf(tuple(FORMATS)), "the format of the report", '"text"'),
    Setting(
        "cluster",
        Fixed(("runtimes", "priority-classes"), Words()),
        "what the cluster has that is not in the repository",
        "{}",
        adds=True,
    ),
)
"""In the order in which they are shown; `overrides`, a list of tables with `paths` and some of these, is not here."""

PATHS = Setting("paths", Patterns(), "the files that the override is for", only_in_overrides=True)
TOP = {one.key: one for one in SETTINGS if not one.only_in_overrides}
"""What a settings file may hold, beside `overrides`."""
IN_OVERRIDES = {one.key: one for one in (PATHS, *SETTINGS) if one.in_overrides or one.only_in_overrides}
"""What one of the `[[overrides]]` may hold."""
