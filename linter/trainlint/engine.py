"""Runs the stages in order: discover, read, recognise, rules, suppress, report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, groupby, islice, starmap
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

from trainlint.budget import BUDGET
from trainlint.catalogue import OWN_RULES, VOCABULARY, code_of, nearest_rule, rule_names
from trainlint.findings import Finding, Span, counted
from trainlint.judging import Judge, common_to_all, run_rules
from trainlint.programs import Subject, Surroundings, Views
from trainlint.programs.table import PROGRAMS, VERDICTS, Program
from trainlint.reading.text import Text
from trainlint.recognise import (
    BY_SETTINGS,
    NONE,
    Recogniser,
    answers_version,
    is_templated,
    marks,
    owner_of_broken,
    programs_of,
    sought,
)
from trainlint.records import dataclass, field, replace
from trainlint.releases import minor, speaking_for, version_tuple
from trainlint.report import FileCounts, Near, Report
from trainlint.repository.bounds import PathError
from trainlint.repository.discover import (
    Candidate,
    Excluder,
    MissingPath,
    discover,
    is_too_deep,
    is_workspace,
    misspelt_settings,
    repository_root,
    settings_file,
    workspace_of,
)
from trainlint.repository.files import Repository, Shared, Source, display_path
from trainlint.repository.generated import Generated
from trainlint.rule import Rule, followed_by, is_covering, rules_of
from trainlint.selection import Selection
from trainlint.settings import Overrides, Settings, SettingsError
from trainlint.suppressions import Suppressed
from trainlint.targets import How, Target
from trainlint.weighing import chosen, differing, meant, weakened, within, without_consequences

if TYPE_CHECKING:
    from trainlint.own_rules import Excess, Fault
    from trainlint.reading.document import Document
    from trainlint.releases import InForce
    from trainlint.settings.show import Shown
    from trainlint.show_files import ShownFile
    from trainlint.suppressions import Suppression


MAX_NAMED_JSON = 64_000
"""The size in bytes up to which a JSON file is read that the user did not name."""
FEW = 200
"""Files that could be a program's, below which one process is faster than several."""


def lint(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    settings: Overrides | None = None,
    stdin: tuple[str | os.PathLike[str], bytes] | None = None,
) -> Report:
    """Lint files and folders, one or several, as `trainlint check` does; nothing is printed or written.

    `settings` are what the options of the command line are: they win over the settings files that count for the paths.
    What their baseline knows is marked.
    `stdin` is content to lint under a name that need not exist. What looks like a secret is in the report as it is in
    the files; `trainlint.reports.render` masks it.

    Raises PathError for a path that is not there or leads out, SettingsError for settings that cannot be used; both are
    ValueErrors whose text is one line for the user.
    """
    options = Overrides()
    if settings is not None:
        from trainlint.settings.given import checked

        options = checked(settings, VOCABULARY)
    named = [Path(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    run = Run(options)
    report = run.lint(named, None if stdin is None else (Path(stdin[0]), stdin[1]))
    files = run.baselines
    if not files:
        return report
    from trainlint import baseline

    return baseline.marked(report, map(baseline.read, files), baseline.Places(run.homes, named))


class Workspace:
    """One workspace of a run: its settings, its files, what is recognised in them."""

    def __init__(
        self, root: Path, settings: Settings, run: Shared | None = None, above: Sequence[Excluder] = ()
    ) -> None:
        self.settings = settings
        self.faults = Faults()
        self.judge = Judge(self._may_use, self._views, self.faults.add)
        self._selections: dict[str, Selection] = {}
        self.repository = Repository(root, Excluder((), root, (*settings.excluders, *above)), marks, run, sought())
        self.recogniser = Recogniser(self.repository, settings.program_of, self.faults.of)
        self.surroundings = Surroundings(
            self.repository,
            replace(settings.cluster, closed=settings.runtimes == "closed"),
            self._named_target,
            self.recogniser.subjects_of,
            self.recogniser.subjects_in,
            lambda program, subject, release: self.judge.admits(PROGRAMS[program], subject, release),
        )

    def target(self, program: Program, subject: Subject) -> Target:
        """The releases that a subject may be for."""
        named = self._named_target(program.name, subject.field.document.path)
        return named or program.load().default_target(subject, self.surroundings)

    def verdict_target(self, program: str, subject: Subject) -> Target:
        """The releases of a program that gives verdicts on the subject's files, such as the cluster's API server."""
        path, verdict = subject.field.document.path, VERDICTS[program]
        named = self._named_target(program, path)
        if named is not None:
            return named
        from trainlint.repository.stated import statements_in

        stated = statements_in(self.repository).stated(path, program)
        if stated.how is How.STATED:
            return Target(stated.versions, stated.origin, How.STATED)
        allowed = tuple(release for release in verdict.releases if stated.allows(release))
        if stated.how is How.RANGE and allowed:
            return Target(allowed, stated.origin, How.RANGE)
        return Target(verdict.usual, "default", How.NOT_STATED)

    def _named_target(self, program: str, path: str) -> Target | None:
        return self.settings.targets_of(path).get(program)

    def _views(self, program: Program, subject: Subject, release: str) -> tuple[Views, Iterable[Views]]:
        asked, module = (subject, self.surroundings, release), program.load()
        return module.in_all(*asked), module.alternatives(*asked)

    def _may_use(self, rule: Rule) -> bool:
        return self.settings.selects_all or self.settings.may_use(rule.code, rule.name)

    def selection(self, path: str) -> Selection:
        """Which rules the settings select for a file, and with which severity."""
        if path not in self._selections:
            self._selections[path] = self.settings.selection_of(path)
        return self._selections[path]

    def used(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings of rules that the settings select for the file."""
        if not self.settings.differs_by_file:
            yield from findings
            return
        for finding in findings:
            if self.selection(finding.path).uses(finding.rule, finding.name):
                yield finding

    def graded(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        """The findings with the severities that the settings give them."""
        if not self.settings.differs_by_file:
            yield from findings
            return
        for finding in findings:
            severity = self.selection(finding.path).severity(finding.rule, finding.name)
            given = severity is not None and severity is not finding.level
            yield replace(finding, severity=severity, verdict=finding.level) if given else finding


@dataclass
class Told:
    """What the check of files tells besides findings, in order, each once."""

    notices: dict[str, None] = field(default_factory=dict)
    targets: dict[tuple[str, Target], None] = field(default_factory=dict)
    """The programs of the files, with the releases that they may be for."""
    near: list[Near] = field(default_factory=list)
    left_alone: int = 0
    """The files that the settings give to no program."""
    parsed: int = 0
    recognised: int = 0
    unjudged: int = 0
    """The files that are recognised, and for releases older than all known ones."""
    judged: int = 0
    """The subjects that are checked for some known release."""


@dataclass
class Checked:
    """The check of one file: findings with the texts and names of their documents. It goes between processes."""

    findings: list[Finding] = field(default_factory=list)
    texts: dict[str, Text] = field(default_factory=dict)
    names: dict[tuple[str, int], str] = field(default_factory=dict)
    told: Told = field(default_factory=Told)


class Run:
    """One run over any number of workspaces.

    `contents` is what files are taken to hold, by absolute path, whatever is on the disk.
    """

    def __init__(self, overrides: Overrides, contents: Mapping[str, bytes] | None = None) -> None:
        self.overrides = overrides
        self._workspaces: dict[Path, Workspace] = {}
        self._settings: dict[Path, Settings] = {}
        self._shared = Shared(answers_version() if overrides.cache and not contents else "", contents)
        self._roots: dict[Path, Path] = {}
        self._excluders: dict[tuple[Path, Path], list[Excluder]] = {}
        self._targets: dict[str, Target] = {}
        self._told = Told()
        self._unstated: dict[str, set[str]] = {}
        self._names: dict[tuple[str, int], str] = {}
        self._generated = Generated()
        self._left_alone: set[str] = set()
        self.progress: Callable[[int, int, str], None] | None = None
        """Called before each file, with how many are done, of how many."""
        self.tell: Callable[[str, str], None] | None = None
        """Called with each file, and what is done with it."""
        self.refused: dict[Path, PathError | SettingsError] = {}
        """The workspaces of several that cannot be read, with the reason: the others are checked."""

    def lint(self, paths: Sequence[Path], stdin: tuple[Path, bytes] | None = None) -> Report:
        """Check everything; returns the report."""
        work: list[tuple[Told, Candidate, Source]] = []
        discovered = 0
        for candidate, source in self._sources(paths, stdin):
            discovered += 1
            if self.tell is not None:
                self._tell(candidate, source)
            if source.text is not None and not self._is_generated(candidate, source):
                work.append((self._take_told(), candidate, source))
        last = self._take_told()
        findings: list[Finding] = []
        texts: dict[str, Text] = {}
        all_checked = list(self._all_checked(work))
        for (told, _, _), checked in zip(work, all_checked, strict=True):
            self._retell(told)
            self._retell(checked.told)
            findings.extend(checked.findings)
            texts.update(checked.texts)
            self._names.update(checked.names)
        self._retell(last)
        self._note_unstated()
        self._note_settings()
        if self._left_alone:
            one, several = (f"not checked: .gitattributes marks {them} as generated" for them in ("it", "them"))
            self._notice(counted(len(self._left_alone), f"file is {one}", f"files are {several}"))
        for workspace in self._workspaces.values():
            for fault in workspace.faults.found.values():
                path = fault.span.path
                texts.setdefault(path, workspace.repository.text_of(path) or Text(""))
                findings.extend(run_rules(rules_of([OWN_RULES]), [fault], "trainlint"))
            for notice in sorted(workspace.repository.notices):
                self._notice(notice)
        self._shared.save()
        settled = [finding.settled for finding in _merge_duplicates(findings)]
        findings = sorted(settled, key=lambda f: (f.span, f.rule, f.message))
        return Report(
            findings=self._fingerprinted(findings, texts),
            files=FileCounts(discovered, self._told.parsed, self._told.recognised),
            targets=self._targets,
            notices=tuple(self._told.notices),
            texts=texts,
            near=tuple(self._told.near),
            left_alone=len(self._left_alone) + self._told.left_alone,
            unjudged=self._told.unjudged,
            crashed=bool(self.refused)
            or any(one.faults.found or one.repository.has_faults for one in self._workspaces.values()),
        )

    def _all_checked(self, work: Sequence[tuple[Told, Candidate, Source]]) -> Iterator[Checked]:
        """The check of each file, in their order; that of many is spread over several processes."""
        spread: Mapping[int, Checked] = {}
        if len(work) >= FEW and self.overrides.jobs != 1:
            spread = self._spread(work)
        for number, (_, candidate, source) in enumerate(work):
            checked = spread.get(number)
            if checked is None and self.progress is not None:
                self.progress(number, len(work), source.path)
            yield checked if checked is not None else self._checked(candidate, source)

    def _spread(self, work: Sequence[tuple[Told, Candidate, Source]]) -> dict[int, Checked]:
        from trainlint.jobs import Crash, Spread, can_copy, cores

        jobs = self.overrides.jobs or cores()
        if jobs < 2 or not can_copy():
            return {}
        # What all files of a kind ask for is found before the processes part.
        first = {source.marks: number for number, (_, _, source) in reversed(list(enumerate(work)))}
        found = {number: self._checked(*work[number][1:]) for number in first.values()}
        spread = Spread(lambda number: self._checked(*work[number][1:]), self._own_remarks)
        spread.run([number for number in range(len(work)) if number not in found], jobs)
        for number, result in spread.found.items():
            if isinstance(result, Crash):
                _, candidate, source = work[number]
                self._workspace(candidate.workspace).faults.ended(source.path, result.how)
                found[number] = Checked()
            else:
                found[number] = result
        for remarks in spread.rests:
            for root, (faults, notices, has_faults) in remarks.items():
                workspace = self._workspace(root)
                workspace.faults.found.update(faults)
                workspace.repository.notices.update(notices)
                workspace.repository.has_faults |= has_faults
        return found

    def _own_remarks(self) -> dict[Path, tuple[dict[object, Fault], dict[str, None], bool]]:
        """What this process has to say of each workspace besides the check of its files."""
        return {
            root: (workspace.faults.found, workspace.repository.notices, workspace.repository.has_faults)
            for root, workspace in self._workspaces.items()
        }

    def _checked(self, candidate: Candidate, source: Source) -> Checked:
        """The check of one file."""
        checked = Checked()
        by_path: dict[str, list[Finding]] = {source.path: []}
        for finding in self._findings(candidate, source):
            by_path.setdefault(finding.path, []).append(finding)
        workspace = self._workspace(candidate.workspace)
        repository = workspace.repository
        for path, found in by_path.items():
            text = source.text if path == source.path else repository.text_of(path)
            if text is not None:
                own = path == source.path
                comments = Suppressed(
                    text,
                    repository.documents_of(path) if own else (),
                    require_reason=workspace.settings.require_reason,
                )
                reported = list(comments.apply(found))
                if own:
                    reported.extend(self._unused(candidate, path, comments))
                if reported:
                    checked.texts[path] = text
                    checked.findings.extend(reported)
                    for number in {finding.document for finding in reported}:
                        checked.names[path, number] = self._document_name(path, number, [workspace])
        checked.told = self._take_told()
        return checked

    def _take_told(self) -> Told:
        told, self._told = self._told, Told()
        return told

    def _retell(self, told: Told) -> None:
        self._told.notices.update(told.notices)
        self._told.near.extend(told.near)
        self._told.left_alone += told.left_alone
        self._told.parsed += told.parsed
        self._told.recognised += told.recognised
        self._told.unjudged += told.unjudged
        for program, target in told.targets:
            if target.how is How.NOT_STATED:
                self._unstated.setdefault(program, set()).update(target.versions)
            known = self._targets.get(program)
            if known is None:
                self._targets[program] = target
            elif known != target:
                origins = dict.fromkeys([*known.origin.split(", "), target.origin])
                versions = dict.fromkeys([*known.versions, *target.versions])
                how = max(known.how, target.how, key=list(How).index)
                self._targets[program] = Target(tuple(versions), ", ".join(origins), how)

    def subjects(self, paths: Sequence[Path], program: str) -> Iterator[tuple[Surroundings, Subject, InForce]]:
        """Each subject of one program in these files and folders, with each version that is targeted."""
        for candidate, source in self._sources(paths, None):
            workspace = self._workspace(candidate.workspace)
            for owner, subject in workspace.recogniser.subjects(source):
                if owner.name == program:
                    target = workspace.target(owner, subject)
                    self._note_target(owner, target)
                    for in_force in self._in_force(owner, target.newest):
                        yield workspace.surroundings, subject, in_force

    def files(self, paths: Sequence[Path]) -> Iterator[ShownFile]:
        """The program and release of each file with the marker of a program, and how it was recognised."""
        for candidate, source in self._sources(paths, None):
            if source.marks:
                yield self._shown(candidate, source)

    def _shown(self, candidate: Candidate, source: Source) -> ShownFile:
        from trainlint.show_files import Owned, ShownFile
        from trainlint.training.meant import passed_over

        if self._is_generated(candidate, source):
            return ShownFile(source.path, (), (), "a .gitattributes file marks it as generated")
        workspace = self._workspace(candidate.workspace)
        claims = workspace.recogniser.claims(source)
        owned = []
        for claim in claims:
            target = None if claim.lost else workspace.target(claim.program, claim.subject)
            versions = target.versions if target else ()
            known = [one for version in versions for one in claim.program.load().in_force(version).releases]
            told = target is not None and target.how not in (How.CHOSEN, How.NOT_STATED)
            others = passed_over(workspace.repository, source.path, claim.program.name) if told else ()
            if claim.evidence == BY_SETTINGS:
                claim = claim._replace(evidence=workspace.settings.place_of_program(source.path))
            owned.append(Owned(claim, target, bool(known) or not versions, others))
        claiming = {claim.program.name for claim in claims}
        if not claims and workspace.settings.program_of(source.path) == NONE:
            place = workspace.settings.place_of_program(source.path)
            return ShownFile(source.path, (), (), f'{place} says program = "{NONE}"')
        near = [(p.title, p.known_by) for p in programs_of(source) if p.name not in claiming]
        counts = any(one.target is not None and one.claim.subject.owns_document for one in owned)
        return ShownFile(source.path, tuple(owned), () if counts else tuple(near))

    def _tell(self, candidate: Candidate, source: Source) -> None:
        """What is done with a file, and why, for the user who asked."""
        from trainlint.show_files import remarks

        if self.tell is None:
            return
        path = display_path(candidate.file)
        told = remarks(self._shown(candidate, source)) if source.marks else ["not judged: it has no word of a program"]
        if source.trouble is not None:
            told.insert(0, f"read up to line {source.trouble.line}: {source.trouble.message}")
        for what in told:
            self.tell(path, what)

    def settings_for(self, paths: Sequence[Path]) -> Settings:
        """The settings that govern the run as a whole: those of the first path's workspace."""
        first = paths[0].absolute() if paths else Path.cwd()
        folder = first if os.path.isdir(first) else first.parent
        return self.settings_of(workspace_of(folder, folder))

    def settings_of(self, workspace: Path) -> Settings:
        """The settings of a workspace: those of its file, or of the named one, overridden by the options."""
        if workspace not in self._settings:
            file = self.overrides.config or (None if self.overrides.isolated else settings_file(workspace))
            settings = Settings(base=workspace)
            if file is not None:
                from trainlint.settings.reader import read_settings

                settings = read_settings(file, VOCABULARY)
            self._settings[workspace] = self.overrides.over(settings, settings.base or workspace)
        return self._settings[workspace]

    def _above(self, workspace: Path) -> Iterator[Path]:
        """The folders above a workspace, up to the root of its repository, whose settings exclude files for it, too."""
        root = repository_root(workspace)
        if workspace == root or self.overrides.isolated or self.overrides.config is not None:
            return
        for folder in workspace.parents:
            if settings_file(folder) is not None:
                yield folder
            if folder == root:
                return

    def show_settings(self, paths: Sequence[Path]) -> Iterator[Shown]:
        """The settings that count for each of these files or folders, and where they come from.

        Raises MissingPath.
        """
        from trainlint.settings.reader import written
        from trainlint.settings.show import Shown, abridged, shown_path, values_of

        for path in paths:
            if not os.path.exists(path):
                raise MissingPath(f"{path}: no such file or folder")
            folder = Path(os.path.abspath(path if os.path.isdir(path) else path.parent))
            workspace = workspace_of(folder, folder)
            selection = self.settings_of(workspace).selection_of(str(path))
            named = self.overrides.config or (None if self.overrides.isolated else settings_file(workspace))
            files = written(named, VOCABULARY) if named else []
            above = [file for folder in self._above(workspace) if (file := settings_file(folder)) is not None]
            excluding = [one for file in reversed(above) for one in written(file, VOCABULARY)]
            off = {code: None for code, name in rule_names().items() if not selection.uses(code, name)}
            yield Shown(
                shown_path(path),
                tuple(display_path(one.at.file) for one in reversed(files)),
                tuple(values_of(path, files, excluding, self.overrides)),
                tuple(abridged(off, rule_names())),
                len(rule_names()) - len(off),
                len(rule_names()),
                self.settings_of(workspace).program_of(str(path)) == NONE,
            )

    def _sources(self, paths: Sequence[Path], stdin: tuple[Path, bytes] | None) -> Iterator[tuple[Candidate, Source]]:
        candidates = []
        for candidate in discover(paths, self._shared.tree):
            if self._is_refused(candidate):
                continue
            if not self._excluded(candidate):
                candidates.append(candidate)
            elif self.tell is not None:
                self.tell(display_path(candidate.file), "not read: the settings exclude it")
        for error in self.refused.values():
            if not candidates and len(self.refused) == 1:
                raise error
            self._notice(f"{error}; nothing there is checked")
        near = [candidate for candidate in candidates if not is_too_deep(candidate.key, candidate.workspace)]
        if len(near) < len(candidates):
            deep = f"more than {BUDGET.depth} folders deep"
            one, several = f"file is not checked: it lies {deep}", f"files are not checked: they lie {deep}"
            self._notice(counted(len(candidates) - len(near), one, several))
            candidates = near
        if stdin is not None:
            file, data = stdin
            folder = file.parent if file.is_absolute() else Path.cwd()
            workspace = workspace_of((folder / file).parent, folder)
            candidate = Candidate(os.path.abspath(file), workspace, workspace, file, named=True)
            if not self._excluded(candidate):
                candidates.insert(0, candidate)
                self._workspace(workspace).repository.adopt(file, data)
        self._limit(candidates)
        candidates.extend(self._named_json(paths, candidates))
        for workspace, ours in groupby(candidates, key=lambda candidate: candidate.workspace):
            self._workspace(workspace).repository.name(candidate.key for candidate in ours)
        for candidate in filter(self._is_in_shard, candidates):
            try:
                yield candidate, self._source(candidate)
            except OSError as error:
                self._notice(f"{display_path(candidate.key)}: cannot be read: {error.strerror}")

    def _is_refused(self, candidate: Candidate) -> bool:
        """The workspace of a file cannot be read: its settings are wrong, or git refuses its repository."""
        root = candidate.workspace
        if root not in self._workspaces and root not in self.refused:
            try:
                self._workspace(root)
                if root != candidate.start and os.path.exists(root / ".git"):
                    _ = self._shared.tree(root).names
            except (PathError, SettingsError) as error:
                self.refused[root] = error
        return root in self.refused

    def _source(self, candidate: Candidate) -> Source:
        """A file that is checked; the program that the settings give it reads it, whatever words it has.

        Raises OSError.
        """
        workspace = self._workspace(candidate.workspace)
        source = workspace.repository.checked(candidate.key)
        if not source.marks and workspace.settings.gives_programs:
            program = workspace.settings.program_of(candidate.key)
            if program not in (None, NONE):
                return workspace.repository.read_for(candidate.key, program)
        return source

    def _is_in_shard(self, candidate: Candidate) -> bool:
        """The file belongs to the part of a run that this one does: its path tells, whatever other files there are."""
        if self.overrides.shard is None:
            return True
        number, count = self.overrides.shard
        path = self._home_path(candidate.key)
        return crc32(os.fsencode(path)) % count == number - 1

    def _named_json(self, paths: Sequence[Path], candidates: Sequence[Candidate]) -> list[Candidate]:
        """The JSON files in the given folders that a command passes to a program; no other JSON file is read."""
        seen = {candidate.key for candidate in candidates}
        found: list[Candidate] = []
        for path in paths:
            if not os.path.isdir(path):
                continue
            root = workspace_of(Path(os.path.abspath(path)), Path(os.path.abspath(path)))
            workspace = self._workspace(root)
            below = os.path.join(os.path.abspath(path), "")
            for key in workspace.repository.paths((".json",)):
                if key in seen or not key.startswith(below) or os.path.getsize(key) > MAX_NAMED_JSON:
                    continue
                try:
                    source = workspace.repository.source(key)
                except OSError:
                    continue
                if source.marks and workspace.recogniser.subjects(source):
                    found.append(Candidate(key, root, root, path, named=False))
        return found

    def _is_generated(self, candidate: Candidate, source: Source) -> bool:
        """The file could be a program's and is marked as generated; settings that name its program win."""
        settings = self._workspace(candidate.workspace).settings
        if not source.marks or settings.program_of(source.path) or candidate.file not in self._generated:
            return False
        self._left_alone.add(source.path)
        return True

    def _limit(self, candidates: Sequence[Candidate]) -> None:
        """A named file outside any workspace is read together with its own folder only, not with folders below."""
        walked = {candidate.workspace for candidate in candidates if not candidate.named}
        for workspace in {candidate.workspace for candidate in candidates} - walked:
            self._workspace(workspace).repository.whole = is_workspace(workspace)

    def _excluded(self, candidate: Candidate) -> bool:
        """Excluded by settings. Paths named by the user, and files below a named folder, only with --force-exclude."""
        key = candidate.workspace, candidate.start
        if key not in self._excluders:
            more = [self._workspace(workspace).repository.exclude.more for workspace in dict.fromkeys(key)]
            self._excluders[key] = [excluder for excluders in more for excluder in excluders]
        excluders = self._excluders[key]
        if excluders and not self.overrides.force_exclude:
            excluders = [e for e in excluders if not e.excludes(candidate.path, folder=not candidate.named)]
        return any(excluder.excludes(candidate.key) for excluder in excluders)

    def _workspace(self, root: Path) -> Workspace:
        if root not in self._workspaces:
            above = [one for folder in self._above(root) for one in self.settings_of(folder).excluders]
            self._workspaces[root] = Workspace(root, self.settings_of(root), self._shared, above)
        return self._workspaces[root]

    def _findings(self, candidate: Candidate, source: Source) -> Iterator[Finding]:
        """The findings of a file; an exception in trainlint ends the check of a subject, not that of the others."""
        workspace = self._workspace(candidate.workspace)
        stages = workspace.settings.stages
        self._told.parsed += bool(source.documents or source.trouble)
        subjects = workspace.recogniser.subjects(source)
        self._told.recognised += bool(subjects)
        chosen = workspace.settings.program_of(source.path) if source.marks and not subjects else None
        if chosen == NONE:
            self._told.left_alone += 1
        elif chosen is not None and source.trouble is None:
            self._notice(
                f"{source.path}: nothing in it is of {PROGRAMS[chosen].title}, whose it is by "
                f"{workspace.settings.place_of_program(source.path)}: its files have {PROGRAMS[chosen].known_by}"
            )
        elif source.marks and not subjects and source.trouble is None:
            self._told.near.append(Near(source.path, tuple(program.title for program in programs_of(source))))
        verdicts = (self._guarded(workspace, *owned) for owned in subjects)
        judged = self._told.judged
        found = list(workspace.used(chain(_trouble(workspace, source), *verdicts)))
        self._told.unjudged += bool(subjects) and self._told.judged == judged
        covers = {finding.rule for finding in found if is_covering(finding.rule)}
        follows = {finding.rule: followed_by(finding.rule) for finding in found}
        texts = {source.path: source.text} if source.text is not None else {}
        causes = without_consequences(found, covers, follows, texts)
        causes = self._without_consequences_of_names(workspace, source, list(causes))
        for finding in workspace.graded(causes):
            if not stages or finding.stage in stages:
                yield finding

    def _without_consequences_of_names(
        self, workspace: Workspace, source: Source, findings: list[Finding]
    ) -> Iterator[Finding]:
        if len(findings) < 2 or not any(finding.fix is not None and finding.fix.renames for finding in findings):
            yield from findings
            return
        from trainlint.misspelt import without_consequences_of_names

        def found_in(content: str) -> list[Finding]:
            told = self._take_told()
            supposed = workspace.recogniser.supposed(Source(source.path, Text(content), source.marks))
            found = [finding for owned in supposed for finding in self._guarded(workspace, *owned)]
            self._told = told
            return found

        yield from without_consequences_of_names(findings, source.path, source.text, found_in)

    def _guarded(self, workspace: Workspace, program: Program, subject: Subject) -> Iterator[Finding]:
        with workspace.faults.of(subject.field.document, program.name):
            yield from self._verdicts(workspace, program, subject)

    def _unused(self, candidate: Candidate, path: str, comments: Suppressed) -> Iterator[Finding]:
        """Findings on comments that suppress nothing, except those that name rules which this run leaves out."""
        workspace = self._workspace(candidate.workspace)
        found = list(islice(comments.unused(), BUDGET.findings))
        if comments.beyond is not None:
            yield from workspace.judge.own(_many_comments(path, comments.beyond))
        if not found or workspace.settings.stages:
            return
        from trainlint.own_rules import UnusedSuppression

        selection = workspace.selection(path)
        room = BUDGET.findings
        for idle in found:
            codes = {word: code_of(word) for word in idle.words[:room]}
            room -= len(codes)
            kept = tuple(w for w, code in codes.items() if code is None or selection.uses(code, rule_names()[code]))
            if idle.words and not kept:
                continue
            unknown = {word: nearest_rule(word) for word in kept if codes[word] is None}
            known = tuple(word for word in kept if word not in unknown)
            fix = comments.without(idle, known) if known or idle.problem else None
            prefixes = tuple(word for word in unknown if any(code.startswith(word) for code in rule_names()))
            told = workspace.judge.own(UnusedSuppression(path, idle, kept, unknown, fix, prefixes))
            yield from workspace.graded(workspace.used(told))

    def _verdicts(self, workspace: Workspace, program: Program, subject: Subject) -> Iterator[Finding]:
        """The findings on a subject in the releases that it may be for."""
        rules, module = workspace.judge.rules(program), program.load()
        target = workspace.target(program, subject)
        self._note_target(program, target)

        def judge(release: str, codes: frozenset[str] | None) -> list[Finding]:
            wanted = rules if codes is None else [rule for rule in rules if rule.code in codes]
            only_read = module.is_only_read(release)
            if only_read:
                wanted = [rule for rule in wanted if rule.code.startswith(module.of_tables)]
            found = workspace.judge.findings(program, subject, release, wanted)
            return [weakened(finding) for finding in found] if only_read else found

        found: list[Finding]
        if target.how in (How.CHOSEN, How.STATED):
            verdicts = []
            for in_force in self._in_force(program, target):
                self._told.judged += bool(in_force.releases)
                common = common_to_all([judge(release, None) for release in in_force.releases])
                verdicts.append((in_force.label, common))
            found = list(chosen(verdicts) if target.how is How.CHOSEN else differing(verdicts))
            if target.maybe_another:
                found = [weakened(finding) for finding in found]
        else:
            self._told.judged += bool(target.versions)
            ordinary = frozenset(rule.code for rule in rules if rule.ordinary_elsewhere)
            unknown = target.how is How.UNKNOWN
            another = target.maybe_another
            found = list(
                meant(
                    target.versions, judge, all_must_agree=unknown, maybe_another=another, ordinary_elsewhere=ordinary
                )
            )
        at = "" if target.how is How.NOT_STATED else target.origin
        for finding in found:
            kept = self._within(workspace, subject, finding)
            if kept is not None:
                yield replace(kept, stated=target.how.value, stated_at=at)

    def _within(self, workspace: Workspace, subject: Subject, finding: Finding) -> Finding | None:
        """The finding, as far as it holds in the releases of the program that gives the verdict."""
        if not finding.within:
            return finding
        verdict = VERDICTS[finding.program]
        target = workspace.verdict_target(finding.program, subject)
        known = [speaking_for(verdict.releases, version) for version in target.versions]
        for version, in_force in zip(target.versions, known, strict=True):
            self._note_choice(verdict.title, version, in_force)
        releases = list(dict.fromkeys(release for in_force in known for release in in_force.releases))
        return within(finding, releases, target.how)

    def _note_target(self, program: Program, target: Target) -> None:
        self._told.targets[program.name, target] = None
        if not target.versions:
            self._notice(
                f"{program.title} is older than all known releases, as {target.origin} shows: its files are not checked"
            )

    def _note_unstated(self) -> None:
        """Say once for each program that nothing states its release, and which ones its files were checked for."""
        for program, releases in self._unstated.items():
            oldest, newest = min(releases, key=version_tuple), max(releases, key=version_tuple)
            first, last = minor(oldest), minor(newest)
            if first == last:
                first, last = oldest, newest
            self._notice(
                f"no file states the release of {PROGRAMS[program].title}: checked for "
                f"{last if first == last else f'{first} to {last}'}; pin it, or set "
                f'{program} = "{newest}" in [tool.trainlint.targets]'
            )

    def _note_settings(self) -> None:
        """Say what is surely not meant in settings, and which file looks like settings and is none."""
        for root, workspace in self._workspaces.items():
            file = self.overrides.config or (None if self.overrides.isolated else settings_file(root))
            if not (workspace.settings.selects_all or any(starmap(workspace.settings.may_use, rule_names().items()))):
                who = display_path(file) if file else "options"
                self._notice(f"no rule is used, so nothing is found: {who} leave{'s' if file else ''} none")
            if file is None and not self.overrides.isolated:
                for problem in misspelt_settings(root):
                    self._notice(problem)

    def _in_force(self, program: Program, target: Target) -> Iterator[InForce]:
        """The known releases that stand in for each chosen or stated version."""
        for version in target.versions:
            in_force = program.load().in_force(version)
            self._note_choice(program.title, version, in_force)
            yield in_force

    def _note_choice(self, title: str, version: str, in_force: InForce) -> None:
        if in_force.notice:
            self._notice(f"{title} {version} {in_force.notice}")

    def _home_path(self, path: str) -> str:
        """A path from the root of its repository, or of its workspace outside git: the same wherever the run starts."""
        absolute = Path(os.path.abspath(path))
        home = self.home_of(absolute.parent)
        return absolute.relative_to(home).as_posix() if absolute.is_relative_to(home) else absolute.as_posix()

    def home_of(self, folder: Path) -> Path:
        """The root of the repository that a folder is in, or of its workspace outside git.

        Where nothing marks a workspace, it is the current folder if the folder is below it.
        """
        if folder not in self._roots:
            here = Path.cwd()
            root = workspace_of(folder, here if folder.is_relative_to(here) else folder)
            self._roots[folder] = repository_root(root)
        return self._roots[folder]

    @property
    def homes(self) -> set[Path]:
        """These roots, of all files of the run."""
        return {self.home_of(Path(os.path.abspath(root))) for root in self._workspaces}

    @property
    def baselines(self) -> list[Path]:
        """The baselines whose findings do not count: those that the settings of the run's files name, or the option."""
        if self.overrides.baseline is not None:
            return [self.overrides.baseline]
        named = {workspace.settings.baseline for workspace in self._workspaces.values()}
        return sorted(Path(display_path(file)) for file in named if file is not None)

    def looks_for(self, file: Path, code: str, *, as_set: bool = True) -> bool:
        """The run would report findings of a rule in a file, if there were some; or its options alone let it."""
        workspace = workspace_of(file.parent, self.home_of(file.parent))
        settings = self.settings_of(workspace) if as_set else self.overrides.over(Settings(), workspace)
        excluded = Excluder(self.overrides.exclude, settings.base or workspace).excludes(file)
        if self.overrides.stages or excluded:
            return False
        name = rule_names().get(code)
        return name is None or settings.selection_of(str(file)).uses(code, name)

    def _fingerprinted(self, findings: Sequence[Finding], texts: Mapping[str, Text]) -> tuple[Finding, ...]:
        if not findings:
            return ()
        from trainlint.fingerprints import fingerprinted

        return tuple(fingerprinted(findings, texts, self._home_path, self._document_name))

    def _document_name(self, path: str, index: int, nearest: Iterable[Workspace] = ()) -> str:
        from trainlint.fingerprints import document_name

        if (path, index) in self._names:
            return self._names[path, index]
        for workspace in chain(nearest, self._workspaces.values()):
            for document in workspace.repository.documents_of(path):
                if document.index == index:
                    return document_name(document)
        return f"#{index}"

    def _notice(self, text: str) -> None:
        self._told.notices[text] = None


def _merge_duplicates(findings: Sequence[Finding]) -> list[Finding]:
    """Each finding once: equal findings on two subjects become one, with the related places of both."""
    found: dict[Finding, Finding] = {}
    for finding in findings:
        alone = replace(finding, related=()) if finding.related else finding
        known = found.get(alone, finding)
        related = tuple(dict.fromkeys((*known.related, *finding.related)))
        found[alone] = known if related == known.related else replace(known, related=related)
    return list(found.values())


class Faults:
    """The exceptions in trainlint itself, each of which the user sees as one finding."""

    def __init__(self) -> None:
        self.found: dict[object, Fault] = {}
        """All of them, each once for a document."""

    @contextmanager
    def of(self, document: Document, doing: str) -> Iterator[None]:
        """An exception in trainlint ends the block and is kept."""
        try:
            yield
        except Exception as error:
            self.add(document, doing, error)

    def add(self, document: Document, doing: str, error: Exception) -> None:
        """Keep an exception; one that is meant for the user is raised again."""
        from trainlint.faults import at_fault, is_debugged
        from trainlint.own_rules import Fault

        if isinstance(error, (PathError, SettingsError)) or is_debugged():
            raise error
        line, column = document.text.position(document.root.start)
        span = Span(document.path, line, column, line, column)
        key = (document.path, document.index, at_fault(error))
        self.found.setdefault(key, Fault(span, document.index, doing, at_fault(error)))

    def ended(self, path: str, how: str) -> None:
        """Keep that the process ended which was checking a file."""
        from trainlint.own_rules import Fault

        self.found[path, how] = Fault(Span(path, 1, 1, 1, 1), 0, "the check", f"its process ended with {how}")


def _trouble(workspace: Workspace, source: Source) -> Iterator[Finding]:
    """The finding on a file that could not be read to its end."""
    trouble, text = source.trouble, source.text
    if trouble is None or text is None:
        return
    chosen = workspace.settings.program_of(source.path)
    if chosen == NONE:
        return
    owner = owner_of_broken(source) if chosen is None else PROGRAMS[chosen]
    from trainlint.own_rules import BrokenFile, Excess

    line_end = len(text.line(trouble.line)) + 1 if trouble.line <= text.line_count else trouble.column
    end = max(trouble.column, min(line_end, trouble.column + 1))
    span = Span(source.path, trouble.line, trouble.column, trouble.line, end)
    if trouble.cause == "budget":
        yield from workspace.judge.own(Excess(span, trouble.document, trouble.message, trouble.help))
    elif owner is not None:
        templated = trouble.cause == "syntax" and is_templated(source)
        yield from workspace.judge.own(BrokenFile(span, trouble, templated), "trainlint" if templated else owner.name)


def _many_comments(path: str, first: Suppression) -> Excess:
    """The place of the first suppression comment that the budget leaves out."""
    from trainlint.own_rules import Excess

    span = Span(path, first.line, first.column, first.line, first.end_column)
    message = f"further suppression comments are not read: there are more than {BUDGET.comments:,}"
    return Excess(span, 0, message, "use per-file-ignores in the settings")
