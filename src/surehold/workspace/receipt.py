"""What a caller gets back after a change."""

from collections.abc import Callable
from dataclasses import dataclass, field

from surehold.stores.base import Change, Entry
from surehold.text.plan import EditPlan

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

    @property
    def diff(self) -> str:
        """The unified diffs of all files."""
        return "".join(receipt.change.diff for receipt in self.files)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the checks of all files said, and that the content is not the caller's own."""
        own = (_CHANGED_BY_A_PERSON,) if self.user_modified else ()
        return (*own, *(warning for receipt in self.files for warning in receipt.warnings))


@dataclass(frozen=True, slots=True)
class ChangeRecord:
    """Collects the receipts of one call, and says when a change of it requires no approval."""

    on_free: Callable[[], None] = lambda: None
    receipts: list[Receipt] = field(default_factory=list[Receipt])

    @property
    def files(self) -> tuple[FileReceipt, ...]:
        """What became of every path."""
        return tuple(one for receipt in self.receipts for one in receipt.files)

    @property
    def change_ids(self) -> tuple[str, ...]:
        """The changes that were written."""
        return tuple(one.change_id for one in self.receipts if one.change_id and not one.dry_run)
