"""What a caller wants to change, and the proof that it has seen the file."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from surehold.errors import AlreadyExists, InvalidArgument, NotFound, StaleFile
from surehold.stores.base import Sighting
from surehold.text.plan import Check, Delete, Edit
from surehold.text.snapshot import Snapshot

_SHA256_DIGITS = 64
_ALL_MODE_BITS = 0o7777


class Proof(Protocol):
    """Evidence that the caller saw the file."""

    def check(self, path: str, current: Snapshot, seen: Sequence[Sighting]) -> None:
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

    def check(self, path: str, current: Snapshot, seen: Sequence[Sighting]) -> None:  # noqa: ARG002 - one shape for all
        """Compare with the file's bytes as they are now."""
        if not current.exists:
            raise NotFound(f"`{path}` does not exist.", path=path)
        if current.sha256 != self.expected:
            raise StaleFile(
                f"`{path}` is not the version you saw.",
                path=path,
                expected_sha256=self.expected,
                actual_sha256=current.sha256,
            )


@dataclass(frozen=True, slots=True)
class Absent:
    """The caller says that nothing is there."""

    def check(self, path: str, current: Snapshot, seen: Sequence[Sighting]) -> None:  # noqa: ARG002 - one shape for all
        """Refuse when something is there."""
        if current.exists:
            raise AlreadyExists(f"`{path}` exists already.", path=path, actual_sha256=current.sha256)


@dataclass(frozen=True, slots=True)
class Exact:
    """The edit quotes what it replaces; that is the evidence."""

    def check(self, path: str, current: Snapshot, seen: Sequence[Sighting]) -> None:  # noqa: ARG002 - one shape for all
        """Refuse only when there is no file to quote from."""
        if not current.exists:
            raise NotFound(f"`{path}` does not exist.", path=path)


@dataclass(frozen=True, slots=True)
class Seen:
    """The session was shown this very version."""

    whole: bool = False
    """Every line of it, not only some."""

    def check(self, path: str, current: Snapshot, seen: Sequence[Sighting]) -> None:
        """Compare the content hash with what was shown; times never decide."""
        if not current.exists:
            raise NotFound(f"`{path}` does not exist.", path=path)
        shown = next((sighting for sighting in seen if sighting.sha256 == current.sha256), None)
        if shown is None and not seen:
            raise StaleFile(
                f"`{path}` was not read in this session.", path=path, reason="not_read", action="Read it first."
            )
        if shown is None:
            raise StaleFile(
                f"`{path}` changed since this session read it.",
                path=path,
                expected_sha256=seen[0].sha256,
                actual_sha256=current.sha256,
            )
        if self.whole and not shown.whole:
            raise StaleFile(
                f"`{path}` was read only in part.",
                path=path,
                reason="partially_read",
                action="Read the rest of it first.",
                seen_lines=[list(span) for span in shown.spans],
            )


@dataclass(frozen=True, slots=True)
class AllOf:
    """Several proofs, every one of which must hold."""

    proofs: tuple[Proof, ...]

    def check(self, path: str, current: Snapshot, seen: Sequence[Sighting]) -> None:
        """Ask one after the other."""
        for proof in self.proofs:
            proof.check(path, current, seen)


@dataclass(frozen=True, slots=True)
class Unproven:
    """The caller offers no evidence, and the tool's contract allows that."""

    def check(self, path: str, current: Snapshot, seen: Sequence[Sighting]) -> None:
        """Accept whatever is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One path, what to make of it, and the evidence."""

    path: str
    edit: Edit
    proof: Proof
    checks: tuple[Check, ...] = ()
    to_path: str = ""
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

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.to_path and isinstance(self.edit, Delete):
            raise InvalidArgument("A deleted file cannot move.", path=self.path, reason="delete_and_move")
        if self.mode is not None and not 0 <= self.mode <= _ALL_MODE_BITS:
            raise InvalidArgument(f"{self.mode:#o} is not a set of permission bits.", path=self.path, reason="bad_mode")
