"""Kubeflow Trainer: which documents are its objects, and what a job needs from other files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from trainlint.programs import ProgramModule
from trainlint.programs.kubeflow.crd_walk import DefectKind
from trainlint.programs.kubeflow.facts.release import RELEASES, KubeflowFacts
from trainlint.programs.kubeflow.objects import (
    GROUP,
    KINDS,
    OLD_GROUP,
    OLD_VERSION,
    RUNTIME_KINDS,
    VERSION,
    Namesake,
    Runtime,
    TrainerObject,
    TrainJob,
    manifest_of,
)
from trainlint.reading.document import Document, of_data
from trainlint.reading.scalars import Dialect
from trainlint.reading.values import Field
from trainlint.releases import InForce, speaking_for
from trainlint.repository.stated import statements_in
from trainlint.repository.statements.model import Form
from trainlint.targets import How, Target
from trainlint.training.meant import KnownReleases, target

if TYPE_CHECKING:
    from trainlint.programs import Surroundings, Views
    from trainlint.programs.kubeflow.facts.crds import Kind
    from trainlint.programs.kubeflow.objects import Declares
    from trainlint.repository.files import Repository


def objects_of(document: Document) -> Sequence[TrainerObject]:
    """The objects of the Trainer's API group in a document; the items of a List are objects of their own."""
    return document.once(
        "objects of Kubeflow Trainer", lambda: list(_objects(Field.root(document, Dialect.KUBERNETES)))
    )


def _objects(field: Field) -> Iterator[TrainerObject]:
    group, _, version = (field.get("apiVersion").text().known or "").partition("/")
    kind = field.get("kind").text().known or ""
    if group == GROUP and version == VERSION and kind == "TrainJob":
        yield TrainJob(field.as_subject())
    elif group == GROUP and version == VERSION and kind in RUNTIME_KINDS:
        yield Runtime(field.as_subject())
    elif kind.endswith("List") and field.get("items").is_sequence:
        for item in field.get("items").items():
            yield from _objects(item)
    elif group == GROUP or (group == OLD_GROUP and version == OLD_VERSION and kind in KINDS):
        yield TrainerObject(field.as_subject())


def _built(job: TrainJob, surroundings: Surroundings, facts: KubeflowFacts) -> Views:
    """What the controller builds of the job; where its runtime is not known, or is refused itself, on a stand-in."""
    from trainlint.programs.kubeflow.build import BuiltJob, UnplacedJob

    runtime = job.runtime
    if runtime is not None and (
        runtime.shipped or surroundings.is_admitted("kubeflow-trainer", runtime, facts.release)
    ):
        return [BuiltJob(job, runtime, facts)]
    return [] if job.partial or job.runtime_missing else [UnplacedJob(job, facts)]


def _namesakes(job: TrainJob, surroundings: Surroundings) -> Views:
    """Runtimes of the other kind that the job could mean: it says no kind, or the one it says is not known."""
    name, kind = job.runtime_name.known, job.runtime_kind.known
    if (
        name is None
        or kind is None
        or job.partial
        or not (job.runtime is None or job.runtime_ref.get("kind").is_absent)
    ):
        return []
    return [
        Namesake(job, runtime)
        for runtime in _runtimes(name, surroundings)
        if runtime.kind.known in RUNTIME_KINDS
        and not runtime.kind.is_(kind)
        and (kind != "ClusterTrainingRuntime" or _in_reach(runtime, job, surroundings))
    ]


def _used_in(path: str, surroundings: Surroundings) -> frozenset[str]:
    """The names of the runtimes that the jobs of a file use."""

    def found() -> frozenset[str]:
        documents = surroundings.repository.documents_of(path)
        objects = (one for document in documents for one in objects_of(document))
        return frozenset(one.runtime_name.known or "" for one in objects if isinstance(one, TrainJob)) - {""}

    return surroundings.repository.once(("runtimes used in", path), found)


def _as_is(runtime: Runtime, surroundings: Surroundings, facts: KubeflowFacts) -> Views:
    """The runtime by itself; nothing for a patch of kustomize, and where a job of the same file shows what it does."""
    from trainlint.programs.kubeflow.build import RuntimeAsIs

    used = runtime.partial or (runtime.name.known or "") in _used_in(runtime.field.document.path, surroundings)
    return [] if used else [RuntimeAsIs(runtime, facts)]


def _jobs(job: TrainJob, surroundings: Surroundings, facts: KubeflowFacts) -> list[TrainJob]:
    name, kind, group = job.runtime_name.known, job.runtime_kind.known, job.runtime_group.known
    if name is None or kind not in RUNTIME_KINDS or group != GROUP:
        return [TrainJob(job.field)]
    named = [
        runtime
        for runtime in _runtimes(name, surroundings)
        if runtime.kind.is_(kind) and (kind == "ClusterTrainingRuntime" or _in_reach(runtime, job, surroundings))
    ]
    found = [runtime for runtime in named if not _is_patch(runtime, surroundings)]
    patched = len(found) < len(named)
    if surroundings.cluster.closed:
        found = [
            runtime
            for runtime in found
            if _comes_before(runtime, job) and surroundings.is_admitted("kubeflow-trainer", runtime, facts.release)
        ]
    if not found and kind == "ClusterTrainingRuntime":
        found = [shipped] if (shipped := _shipped(name, facts.release)) is not None else []
    if not found or patched:
        installed = patched or name in (surroundings.cluster.runtimes or ())
        missing = surroundings.cluster.closed and not installed
        unknown = TrainJob(job.field, runtime_missing=missing, runtime_installed=installed)
        return [TrainJob(job.field, runtime) for runtime in found] + [unknown]
    return [TrainJob(job.field, runtime) for runtime in _last_of_each_file(found)]


@cache
def _shipped(name: str, release: str) -> Runtime | None:
    """A runtime that a release ships."""
    shipped = RELEASES[release].shipped_runtimes.get(name)
    if shipped is None:
        return None
    document = of_data(f"{name} of Kubeflow Trainer {release}", shipped)
    return Runtime(Field.root(document, Dialect.KUBERNETES), shipped=True)


def _runtimes(name: str, surroundings: Surroundings) -> list[Runtime]:
    """The repository's runtimes of a name."""

    def found() -> list[Runtime]:
        runtimes = surroundings.subjects("kubeflow-trainer", Runtime, saying=("TrainingRuntime", name))
        return [runtime for runtime in runtimes if (runtime.name.known or "") == name]

    return surroundings.repository.once(("runtimes", name), found)


def _linked(subject: TrainerObject, surroundings: Surroundings) -> list[TrainerObject]:
    """The jobs that name a runtime, or the runtimes that a job names; those of its file or folder, if there are any."""
    found: Sequence[TrainerObject] = ()
    name = subject.name.known or "" if isinstance(subject, Runtime) else ""
    if name:
        jobs = surroundings.subjects("kubeflow-trainer", TrainJob, saying=("TrainJob", name))
        found = [job for job in jobs if job.runtime_name.is_(name)]
    elif isinstance(subject, TrainJob):
        found = _runtimes(subject.runtime_name.known or "", surroundings)
    path = subject.field.document.path
    in_file = [one for one in found if one.field.document.path == path]
    in_folder = [one for one in found if os.path.dirname(one.field.document.path) == os.path.dirname(path)]
    return in_file or in_folder or list(found)


def _is_patch(subject: TrainerObject, surroundings: Surroundings) -> bool:
    from trainlint.programs.kubeflow.kustomize import is_patch

    path, repository = subject.field.document.path, surroundings.repository
    return repository.once(("patch", path), lambda: is_patch(Path(path), repository))


def _last_of_each_file(runtimes: list[Runtime]) -> list[Runtime]:
    """Within a file a later definition replaces an earlier one."""
    return list({runtime.field.document.path: runtime for runtime in runtimes}.values())


def _in_reach(runtime: Runtime, job: TrainJob, surroundings: Surroundings) -> bool:
    """A namespaced runtime and the job are in one namespace, or may be: what names none is applied to any.

    So is what has a placeholder for it.
    """
    if runtime.namespace == job.namespace:
        return True
    places = [one.field.at("metadata", "namespace") for one in (runtime, job)]
    if any(place.is_unknown for place in places):
        return True
    return any(place.is_absent for place in places) and not surroundings.cluster.closed


def _comes_before(runtime: Runtime, job: TrainJob) -> bool:
    theirs, ours = runtime.field.document, job.field.document
    if theirs.path != ours.path:
        return True
    return (theirs.index, runtime.field.path) < (ours.index, job.field.path)


class KubeflowTrainer(ProgramModule[TrainerObject, KubeflowFacts]):
    """TrainJobs and the runtimes that they name."""

    def recognise(self, document: Document) -> Sequence[TrainerObject]:
        """The objects of the Trainer's API group; the items of a List are subjects of their own."""
        return objects_of(document)

    def against(self, subject: TrainerObject, repository: Repository) -> str:
        """A job as a cluster gave it out, such as the data of a test: it ran, and nobody submits it as it stands."""
        given = isinstance(subject, TrainJob) and subject.is_from_a_cluster
        return "a cluster gave it out: it has a uid or a status" if given else ""

    def alternatives(self, subject: TrainerObject, surroundings: Surroundings, release: str) -> Iterable[Views]:
        """One alternative for each definition of the job's runtime, looked up as the cluster would.

        The repository's documents come first, then the runtimes that the release ships. With closed runtimes a runtime
        counts only if it is admitted itself and, in the same file, comes before the job. A patch of kustomize is
        checked by itself; a runtime that such a patch changes may be anything, so one alternative has no runtime.
        """
        facts = self.facts(release)
        if isinstance(subject, Runtime):
            runtime = Runtime(subject.field, partial=True) if _is_patch(subject, surroundings) else subject
            manifest = manifest_of(subject, facts, partial=runtime.partial, declares=_declared(surroundings.repository))
            return [[runtime, manifest, *_as_is(runtime, surroundings, facts)]]
        if not isinstance(subject, TrainJob):
            return [[subject]]
        jobs = self.jobs(subject, surroundings, release)
        declares = _declared(surroundings.repository)
        manifest = manifest_of(subject, facts, partial=jobs[0].partial, declares=declares)
        return ([job, manifest, *_built(job, surroundings, facts), *_namesakes(job, surroundings)] for job in jobs)

    def jobs(self, subject: TrainJob, surroundings: Surroundings, release: str) -> list[TrainJob]:
        """A job with each definition of its runtime."""
        if _is_patch(subject, surroundings):
            jobs = [TrainJob(subject.field, partial=True)]
        else:
            jobs = _jobs(subject, surroundings, self.facts(release))
        for job in jobs:
            job.priority_classes = surroundings.cluster.priority_classes
        return jobs

    def facts(self, release: str) -> KubeflowFacts:
        """What one known release checks."""
        return RELEASES[release]

    def default_target(self, subject: TrainerObject, surroundings: Surroundings) -> Target:
        """The releases that are stated, that the repository's CRDs are of, or whose fields the object has.

        The CRDs say more than a range that none of their releases is in, and than the version of the Trainer's own
        source. A field that exists in one release alone says that the object is for that one, and what is used with it,
        too.
        """
        field = subject.field
        return field.document.once(("target", field.path), lambda: self._target(subject, surroundings))

    def _target(self, subject: TrainerObject, surroundings: Surroundings) -> Target:
        from trainlint.programs.kubeflow.installed import installed

        repository, path = surroundings.repository, subject.field.document.path
        stated = (target(repository, path, known) for known in (_KNOWN, _API))
        named = next((one for one in stated if one.how is not How.NOT_STATED), None)
        if named is not None and named.how is How.STATED and not _is_of_own_source(repository, path):
            return named
        found = installed(repository)
        if named is not None and not found.is_between:
            meant = {release for version in named.versions for release in self.in_force(version).releases}
            if not found.releases or not meant.isdisjoint(found.releases):
                return named
        if found.releases:
            return found.target
        shaped = self._shaped_for(subject)
        for linked in _linked(subject, surroundings) if len(shaped) > 1 else ():
            theirs = self._shaped_for(linked)
            shaped = tuple(release for release in shaped if release in theirs) or shaped
        if len(shaped) == 1 and shaped[0] != next(reversed(RELEASES)):
            return Target(shaped, "its fields", How.RANGE)
        return Target(tuple(RELEASES), "default", How.NOT_STATED)

    def in_force(self, version: str) -> InForce:
        """The minor release of a version; the newest known for a newer one, none for an older."""
        return speaking_for(RELEASES, version)

    def _shaped_for(self, subject: TrainerObject) -> tuple[str, ...]:
        """The releases whose structure has every field of the object that some release's has."""
        if not isinstance(subject, (TrainJob, Runtime)):
            return tuple(RELEASES)
        manifest = manifest_of(subject, self.facts(next(reversed(RELEASES))))
        fitting = set(RELEASES)
        for defect in manifest.defects(DefectKind.UNKNOWN_FIELD):
            having = manifest.releases_with(defect.field)
            if having:
                fitting &= set(having)
        return tuple(name for name in RELEASES if name in fitting)


def _is_of_own_source(repository: Repository, path: str) -> bool:
    """The release is the version that the Trainer's own source has: that of its last release, while it goes on."""
    found = statements_in(repository).stated(path, _KNOWN.package)
    return any(statement.form is Form.VENDORED for statement in found.statements)


def _declared(repository: Repository) -> Declares:
    """Asks the CRDs of the repository for a field, once there is a field to ask for."""

    def declares(kind: Kind, field: Field) -> bool:
        from trainlint.programs.kubeflow.installed import installed

        return installed(repository).declares(kind, field)

    return declares


_DATES = {name: facts.date for name, facts in RELEASES.items()}
_KNOWN = KnownReleases("kubeflow-trainer", tuple(RELEASES), _DATES, lambda release: {})
_API = KnownReleases("kubeflow-trainer-api", tuple(RELEASES), _DATES, lambda release: {})
"""The package of the API's types has the versions of the Trainer that it is made from."""

PROGRAM = KubeflowTrainer()
