"""What a caller proposes and its evidence of having seen the file, and the receipt it gets for a change."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from surehold.errors import AlreadyExists, Cancelled, InvalidArgument, NotFound, StaleFile
from surehold.stores.base import Call, Change, Entry, Operation
from surehold.text.plan import Check, Delete, Edit, EditPlan
from surehold.text.snapshot import ABSENT, LineRanges, Snapshot, Version
from surehold.workspace.access.seen_lines import KnownFile
from surehold.workspace.paths import AnyPath

if TYPE_CHECKING:
    from typing_extensions import TypeIs

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
        if not file.seen:
            message = f"`{file.path}` was not read in this session."
            raise StaleFile(message, path=file.path, reason="not_read", action="Read it first.")
        if file.shown is None:
            raise StaleFile(
                f"`{file.path}` changed since this session read it.",
                path=file.path,
                expected_sha256=file.seen[0].sha256,
                actual_sha256=file.current.sha256,
            )
        if self.whole and not file.shown.whole:
            raise StaleFile(
                f"`{file.path}` was read only in part.",
                path=file.path,
                reason="partially_read",
                action="Read the rest of it first.",
                seen_lines=[list(span) for span in file.shown.spans],
            )


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The file is still what the session was shown last; one that it was never shown is taken as it is."""

    may_be_new: bool = False
    """Whether there may be no file."""

    def check(self, file: KnownFile) -> None:
        """Refuse only what changed outside since it was read."""
        if not self.may_be_new:
            _refuse_absent(file)
        if file.current.exists and file.seen and file.seen[0].sha256 != file.current.sha256:
            raise StaleFile(
                f"`{file.path}` changed since this session read it.",
                path=file.path,
                expected_sha256=file.seen[0].sha256,
                actual_sha256=file.current.sha256,
            )


@dataclass(frozen=True, slots=True)
class AllOf:
    """Several proofs, every one of which must hold."""

    proofs: tuple[Proof, ...]

    def check(self, file: KnownFile) -> None:
        for proof in self.proofs:
            proof.check(file)


@dataclass(frozen=True, slots=True)
class Unproven:
    """The caller offers no evidence, and the tool's contract allows that."""

    def check(self, file: KnownFile) -> None:
        """Accept whatever is there."""


def proof_of(expected_sha256: str, otherwise: Proof | None = None) -> Proof:
    """Return the caller's evidence; without a sha256 what the edit quotes is one, unless something else is named."""
    return Sha256(expected_sha256.strip().lower()) if expected_sha256 else otherwise or Exact()


def _refuse_absent(file: KnownFile) -> None:
    if not file.current.exists:
        raise NotFound(f"`{file.path}` does not exist.", path=file.path)


class SessionEdit(Protocol):
    """An edit that depends on what the session was shown, which is known only under the lock."""

    def edit_for(self, file: KnownFile) -> Edit:
        """Return the edit for the file as it is now."""
        ...


def depends_on_session(edit: Edit | SessionEdit) -> "TypeIs[SessionEdit]":
    """Tell the two kinds of edits apart; asking a protocol takes as long as planning a small edit."""
    return hasattr(edit, "edit_for")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAuthor:
    """Who makes calls, and for which request."""

    agent: str = ""
    session: str = ""
    turn: str = ""
    call_id: str = ""
    idempotency_key: str = ""
    reason: str = ""
    """Of calls that give none of their own."""

    def make_call(
        self, tool: str, operation: Operation, *, reason: str = "", undoes: str = "", restores: str = ""
    ) -> Call:
        """Name a call of this author, by a tool."""
        return Call(
            tool=tool,
            operation=operation,
            writer=tool,
            agent=self.agent,
            session=self.session,
            turn=self.turn,
            call_id=self.call_id,
            idempotency_key=self.idempotency_key,
            reason=reason or self.reason,
            undoes=undoes,
            restores=restores,
        )


NO_AUTHOR = CallAuthor()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySwitch:
    """An entry of any kind as it is, and as it is to be; a key is empty when there is none."""

    old_key: str
    old: Version | None
    new_key: str
    new: Version | None
    data: bytes = b""
    """The bytes of the new file, or where the new link leads to."""
    undoes: tuple[str, ...] = ()
    """As in `Proposal`."""


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
    undoes: tuple[str, ...] = ()
    """The entries of the ledger that it takes back or makes again, as `CHANGE#INDEX`."""
    restore: Snapshot | None = None
    """The version whose mode, owner, times and attributes a created file takes back."""
    instead_of: Snapshot | None = None
    """What the caller proposed, when the edit is the text of the person who was asked; the caller has not seen that."""
    shows: Callable[[EditPlan], LineRanges] | None = None
    """Which lines of the new version the answer will show: they count as shown to the session, as do those of a refusal."""
    shows_anchors: bool = False
    """Whether those lines are shown with their anchors."""
    whole: EntrySwitch | None = None
    """Switch the entry as a whole, instead of editing its bytes; all proposals of a call do, or none."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.to_path and isinstance(self.edit, Delete):
            raise InvalidArgument("A deleted file cannot move.", path=str(self.path), reason="delete_and_move")
        if self.mode is not None and not 0 <= self.mode <= _ALL_MODE_BITS:
            raise InvalidArgument(
                f"{self.mode:#o} is not a set of permission bits.", path=str(self.path), reason="bad_mode"
            )


_CHANGED_BY_A_PERSON = "The person who allowed this changed the content first; the diff shows what was written."


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReceipt:
    """What became of one path."""

    path: str
    plan: EditPlan
    change: Change
    warnings: tuple[str, ...] = ()
    mode: int | None = None
    """Permission bits that the change sets; None when it leaves them alone."""
    left_out: bool = False
    """The person who was asked allowed the rest of the change, and not this."""
    displaced: Snapshot = ABSENT
    """The file that a move overwrites."""

    @property
    def summary(self) -> str:
        """What happens to the path, in words for the person who is asked; nothing in it is escaped."""
        change = self.change
        meta = change.before.meta if change.before else None
        bits = f", with mode {self.mode:04o}" if self.mode is not None and not (meta and meta.mode == self.mode) else ""
        if change.to_path:
            over = ", over the file that is there" if change.displaced else ""
            return f"move {change.path} to {change.to_path}{over}{bits}"
        if change.after is None:
            return f"delete {change.path}{'' if change.trash_id else ', not into the trash'}"
        return f"{'create' if change.before is None else 'change'} {change.path}{bits}"

    @property
    def changed(self) -> bool:
        """Whether anything is different from before: bytes, place or mode."""
        return bool(self.change.to_path) or self.change.before != self.change.after

    @property
    def before_sha256(self) -> str | None:
        """Name of the bytes before; None when there were none."""
        return self.change.before.sha256 if self.change.before else None

    @property
    def after_sha256(self) -> str | None:
        """Name of the bytes after; None when there are none."""
        return self.change.after.sha256 if self.change.after else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one call did, and where it is recorded."""

    change_id: str
    """Empty when nothing had to be written."""
    files: tuple[FileReceipt, ...]
    entries: tuple[Entry, ...] = ()
    dry_run: bool = False
    replayed: bool = False
    """The same call was made before; this is its first answer."""
    already_applied: bool = False
    """The file already was what the call asked for."""
    user_modified: bool = False
    """Whoever was asked wanted other content, and that was written."""
    left_out: tuple[str, ...] = ()
    """What was asked for and not done, with the reason."""

    @property
    def sha256(self) -> str:
        """Name of the bytes of one file, of those that were deleted if it is gone; of several files `files` has them."""
        return (self.files[0].after_sha256 or self.files[0].before_sha256 or "") if len(self.files) == 1 else ""

    @property
    def diff(self) -> str:
        """The unified diffs of all files."""
        return "".join(receipt.change.diff for receipt in self.files)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What was left out, what the checks of all files said, and that the content is not the caller's own."""
        own = (_CHANGED_BY_A_PERSON,) if self.user_modified else ()
        return (*self.left_out, *own, *(warning for receipt in self.files for warning in receipt.warnings))


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """Collects the receipts of one call, says when a change of it requires no approval, and knows when it was cancelled."""

    on_free: Callable[[], None] = lambda: None
    cancelled: Callable[[], bool] = lambda: False
    receipts: list[Receipt] = field(default_factory=list[Receipt])

    def check_cancelled(self, proposal: Proposal) -> Proposal:
        """Return a proposal that is refused, last of all, if the call was cancelled while it was planned."""
        return replace(proposal, checks=(*proposal.checks, self._refuse_cancelled))

    def _refuse_cancelled(self, _: EditPlan) -> tuple[str, ...]:
        if self.cancelled():
            raise Cancelled("The call was cancelled.")
        return ()

    @property
    def files(self) -> tuple[FileReceipt, ...]:
        return tuple(one for receipt in self.receipts for one in receipt.files)

    @property
    def change_ids(self) -> tuple[str, ...]:
        return tuple(one.change_id for one in self.receipts if one.change_id and not one.dry_run)
