"""What a file states of a package's release, and where."""

from __future__ import annotations

import enum

from trainlint.findings import Span
from trainlint.records import NamedTuple


class Kind(enum.Enum):
    """How much a statement tells: one release, a range of them, or one that the repository cannot tell."""

    EXACT = "exact"
    RANGE = "range"
    UNKNOWN = "unknown"


class Form(enum.IntEnum):
    """What kind of place it is; of several that are equally near, the lower form speaks first."""

    LOCK = 0
    REQUIREMENTS = 1
    CONSTRAINTS = 2
    PROJECT = 3
    ENVIRONMENT = 4
    VENDORED = 5
    MANIFEST = 6
    COMMAND = 7
    IMAGE = 8
    NOTEBOOK = 9
    CODE = 10
    SUBMODULE = 11
    README = 12

    @property
    def label(self) -> str:
        """As it is shown to a user: `install command`."""
        return _LABELS.get(self, self.name.lower())


_LABELS = {Form.PROJECT: "project file", Form.COMMAND: "install command", Form.VENDORED: "vendored source"}


class Meaning(NamedTuple):
    """What a requirement, a reference or a version asks for.

    `text` is a version (EXACT), what `packaging` takes as a specifier (RANGE; empty where a name stands alone), or the
    commit, branch, address or path that nobody here can turn into a release (UNKNOWN). `local` is set where that is a
    path, which may lead to a vendored copy, and `fork` where it is somebody else's copy of the source.
    """

    kind: Kind
    text: str = ""
    local: bool = False
    fork: bool = False


OWN_HEADER = "its own header"
"""In place of an extra: the header of a script is for that script, and for files beside it."""


class Statement(NamedTuple):
    """One place that says which release of a package is used.

    `package` is a distribution's normalised name (or `kubeflow-trainer`). `extra` names the extra, dependency group or
    environment that it belongs to, empty for what is always installed; `marker` is the environment marker as written.
    `home` is the folder that it speaks for, which is the file's own but for vendored sources and workspaces' locks.
    `replaces`: a script installs it over what the project had it install before.
    """

    package: str
    meaning: Meaning
    span: Span
    form: Form
    extra: str = ""
    marker: str = ""
    home: str = ""
    replaces: bool = False

    @property
    def kind(self) -> Kind:
        """One release, a range, or unknown."""
        return self.meaning.kind

    @property
    def specifier(self) -> str:
        """The version, the range, or what is not known."""
        return self.meaning.text

    @property
    def is_bare(self) -> bool:
        """The package is named, and any release will do."""
        return self.kind is Kind.RANGE and not self.specifier

    @property
    def is_open_image(self) -> bool:
        """An image whose tag or digest tells no release."""
        return self.form is Form.IMAGE and self.kind is Kind.UNKNOWN

    @property
    def origin(self) -> str:
        """File and line: `requirements.txt:3`."""
        return f"{self.span.path}:{self.span.line}"


class Include(NamedTuple):
    """A file that another names: requirements, constraints, or where a package keeps its version.

    `path` is as written, relative to `home`. `package` is set for a version file.
    """

    path: str
    span: Span
    form: Form
    home: str
    package: str = ""
    extra: str = ""


class Unreadable(NamedTuple):
    """A file that states releases by its name, and that cannot be read."""

    span: Span
    reason: str


class Reading(NamedTuple):
    """All that one file states."""

    statements: tuple[Statement, ...] = ()
    includes: tuple[Include, ...] = ()
    unreadable: Unreadable | None = None
