"""What a caller wants to change, and the proof that it has seen the file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from surehold.errors import AlreadyExists, InvalidArgument, NotFound, StaleFile
from surehold.text.line_ranges import LineRanges
from surehold.text.plan import Check, Delete, Edit, EditPlan
from surehold.text.snapshot import Snapshot
from surehold.workspace.access.known_file import KnownFile
from surehold.workspace.paths import AnyPath

_SHA256_DIGITS = 64
_ALL_MODE_BITS = 0o7777


class Proof(Protocol):
    """Evidence that the caller saw the file."""

    def check(self, file: KnownFile) -> None:
        """Refuse when the file is not what the caller saw."""
        ...


@dataclass(frozen=True, slots=True)
class Sha256:
    """The caller names the bytes it saw."""

    expected: str

    def __post_init__(self) -> None:
        """Refuse what cannot be a sha256, before anything is looked at."""
        if len(self.expected) != _SHA256_DIGITS or not set(self.expected) <= set("0123456789abcdef"):
            raise InvalidArgument(
                f"`{self.expected[:80]}` is not a sha256.",
                reason="malformed_sha256",
                action="Send the 64 lower-case hexadecimal digits that reading the file returned.",
            )

    def check(self, file: KnownFile) -> None:
        """Compare with the file's bytes as they are now."""
        _refuse_absent(file)
        if file.current.sha256 != self.expected:
            raise StaleFile(
                f"`{file.path}` is not the version you saw.",
                path=file.path,
                expected_sha256=self.expected,
                actual_sha256=file.current.sha256,
            )


@dataclass(frozen=True, slots=True)
class Absent:
    """The caller says that nothing is there."""

    def check(self, file: KnownFile) -> None:
        """Refuse when something is there."""
        if file.current.exists:
            raise AlreadyExists(f"`{file.path}` exists already.", path=file.path, actual_sha256=file.current.sha256)


@dataclass(frozen=True, slots=True)
class Exact:
    """The edit quotes what it replaces; that is the evidence."""

    def check(self, file: KnownFile) -> None:
        """Refuse only when there is no file to quote from."""
        _refuse_absent(file)


@dataclass(frozen=True, slots=True)
class Seen:
    """The session was shown this very version."""

    whole: bool = False
    """Every line of it, not only some."""

    def check(self, file: KnownFile) -> None:
        """Compare the content hash with what was shown; times never decide."""
        _refuse_absent(file)
        shown = next((sighting for sighting in file.seen if sighting.sha256 == file.current.sha256), None)
        if shown is None and not file.seen:
            raise StaleFile(
                f"`{file.path}` was not read in this session.",
                path=file.path,
                reason="not_read",
                action="Read it first.",
            )
        if shown is None:
            raise StaleFile(
                f"`{file.path}` changed since this session read it.",
                path=file.path,
                expected_sha256=file.seen[0].sha256,
                actual_sha256=file.current.sha256,
            )
        if self.whole and not shown.whole:
            raise StaleFile(
                f"`{file.path}` was read only in part.",
                path=file.path,
                reason="partially_read",
                action="Read the rest of it first.",
                seen_lines=[list(span) for span in shown.spans],
            )


@dataclass(frozen=True, slots=True)
class AllOf:
    """Several proofs, every one of which must hold."""

    proofs: tuple[Proof, ...]

    def check(self, file: KnownFile) -> None:
        """Ask one after the other."""
        for proof in self.proofs:
            proof.check(file)


@dataclass(frozen=True, slots=True)
class Unproven:
    """The caller offers no evidence, and the tool's contract allows that."""

    def check(self, file: KnownFile) -> None:
        """Accept whatever is there."""


def _refuse_absent(file: KnownFile) -> None:
    if not file.current.exists:
        raise NotFound(f"`{file.path}` does not exist.", path=file.path)


@runtime_checkable
class SessionEdit(Protocol):
    """An edit that depends on what the session was shown, which is known only under the lock."""

    def edit_for(self, file: KnownFile) -> Edit:
        """Return the edit for the file as it is now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One path, what to make of it, and the evidence."""

    path: AnyPath
    edit: Edit | SessionEdit
    proof: Proof
    checks: tuple[Check, ...] = ()
    to_path: AnyPath = ""
    """Where it goes, when it moves."""
    to_proof: Proof = field(default_factory=Absent)
    """What the caller says about the place it goes to."""
    mode: int | None = None
    """New permission bits."""
    parents: bool = True
    """A new file may make the directories that it needs."""
    permanent: bool = False
    """Deleted bytes are not offered in the trash (they stay in the history until it is pruned)."""
    restore: Snapshot | None = None
    """The version whose mode, owner, times and attributes a created file takes back."""
    shows: Callable[[EditPlan], LineRanges] | None = None
    """Which lines of the new version the answer will show: they count as shown to the session, as do those of a refusal."""
    shows_anchors: bool = False
    """Whether those lines are shown with their anchors."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.to_path and isinstance(self.edit, Delete):
            raise InvalidArgument("A deleted file cannot move.", path=str(self.path), reason="delete_and_move")
        if self.mode is not None and not 0 <= self.mode <= _ALL_MODE_BITS:
            raise InvalidArgument(
                f"{self.mode:#o} is not a set of permission bits.", path=str(self.path), reason="bad_mode"
            )
