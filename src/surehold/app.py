"""Turns settings into an open workspace. The only module that chooses a disk and a store."""

import hashlib
import os
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from surehold.errors import InvalidArgument, NotFound
from surehold.workspace.settings import Limits, check_mode, utc_now

if TYPE_CHECKING:
    from collections.abc import Generator

    from surehold.disk.base import Disk, EditorFiles
    from surehold.library.workspace import AgentWorkspace
    from surehold.stores.sqlite.store import SqliteStore
    from surehold.text.encoding import EncodingDetector
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.history import HistoryReader
    from surehold.workspace.reader import WorkspaceReader
    from surehold.workspace.settings import Mode, ReadGateSettings

Durability = Literal["full", "file", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be chosen about a workspace."""

    state_dir: Path | None = None
    """Where Surehold keeps the history; None for the user's state directory, one folder per root."""
    durability: Durability = "full"
    deny: tuple[str, ...] = ()
    """Paths that are neither read nor written, in gitignore syntax."""
    ask: tuple[str, ...] = ()
    """Paths whose changes require approval, also in acceptEdits."""
    allow: tuple[str, ...] = ()
    """Paths that may change without approval, also in mode default."""
    protected: tuple[str, ...] | None = None
    """Paths that configure other programs; None for the default list."""
    unprotected: tuple[str, ...] = ()
    """Paths that are exempt from protection."""
    mode: "Mode | None" = None
    """How agents get permission to change files; None for default if there is an approver, else acceptEdits."""
    approver: "Approver | None" = None
    """Approves changes, unless a session has its own approver."""
    gate: "ReadGateSettings | None" = None
    """What must have been read before Write, Edit and NotebookEdit change a file; None for the strict rules."""
    limits: Limits | None = None
    """Limits of size and time; None for the defaults."""
    recover_on_open: bool = True
    """Settle what dead processes left open before anything else happens."""
    detector: "EncodingDetector | None" = None
    """Guesses the encoding of text when nothing declares it."""
    editor: "EditorFiles | None" = None
    """Read and write files through this editor, including unsaved changes; None for the disk alone."""

    def __post_init__(self) -> None:
        """Refuse unknown words now, not at the first write."""
        if self.mode is not None:
            check_mode(self.mode)
        if self.durability not in get_args(Durability):
            choose = f"Choose one of {', '.join(get_args(Durability))}."
            raise InvalidArgument(f"Unknown durability `{self.durability}`.", reason="bad_durability", action=choose)


def open_workspace(*roots: str | os.PathLike[str], settings: Settings | None = None) -> "AgentWorkspace":
    """Open one or several directories for editing; what a dead process left open is settled first."""
    from surehold.library.workspace import AgentWorkspace
    from surehold.stores.owner import current_owner
    from surehold.workspace.access.policy import Policy
    from surehold.workspace.access.protected_names import PROTECTED

    chosen = settings or Settings()
    given_roots = [os.fsdecode(root) for root in roots]
    paths, state_dir = locate_workspace(given_roots, chosen)
    disk = _open_disk(given_roots, chosen)
    policy = Policy(
        deny=chosen.deny,
        ask=chosen.ask,
        allow=chosen.allow,
        protected=PROTECTED if chosen.protected is None else chosen.protected,
        unprotected=chosen.unprotected,
        state_dir=_key_below_root(state_dir, paths),
    )
    store = _open_store(state_dir, chosen.durability, chosen.limits)
    workspace = AgentWorkspace(
        disk=disk,
        store=store,
        owner=current_owner,
        policy=policy,
        limits=chosen.limits,
        mode=chosen.mode,
        approver=chosen.approver,
        gate=chosen.gate,
        detector=chosen.detector,
        runs=state_dir / "runs",
    )
    if chosen.recover_on_open and chosen.editor is None:  # an editor answers only once the session is known to it
        workspace.recover(timeout=0)  # what a stopped process holds is waited for only by calls that need it
    return workspace


def locate_workspace(roots: list[str], settings: Settings) -> tuple[list[str], Path]:
    """Return the real paths of the roots, and the state directory; refuse what cannot be a workspace."""
    if not roots:
        raise InvalidArgument("A workspace needs at least one directory.", reason="no_roots")
    if any("\0" in root for root in roots):
        raise InvalidArgument("The name of a directory cannot contain a NUL byte.", reason="nul_in_path")
    paths = [os.path.realpath(root) for root in roots]
    for given, path in zip(roots, paths, strict=True):
        if not os.path.isdir(path):  # noqa: PTH112 - strings all the way: names need not be UTF-8
            message = f"`{given}` is not a directory."
            raise NotFound(message, path=path, reason="no_such_root", action="Name a directory.")
    state_dir = Path(settings.state_dir or default_state_dir(paths[0]))
    if any(Path(root).is_relative_to(os.path.realpath(state_dir)) for root in paths):
        message = "The state directory must not be the workspace or contain it."
        action = "Name another directory with --state-dir."
        raise InvalidArgument(message, path=str(state_dir), reason="state_dir_holds_root", action=action)
    return paths, state_dir


def open_history(state_dir: Path) -> "HistoryReader":
    """Open the history in a state directory, read-only."""
    from surehold.workspace.history import HistoryReader

    return HistoryReader(_open_store(state_dir, "full"))


@contextmanager
def open_reader(root: str, state_dir: Path) -> "Generator[WorkspaceReader]":
    """Open a directory for those who only read files and note what other programs do: faster than a workspace."""
    from surehold.workspace.access.policy import Policy
    from surehold.workspace.reader import WorkspaceReader

    paths, state_dir = locate_workspace([root], Settings(state_dir=state_dir))
    disk, store = _open_disk([root], Settings()), _open_store(state_dir, "full")
    try:
        policy = Policy(state_dir=_key_below_root(state_dir, paths))
        yield WorkspaceReader(disk=disk, store=store, policy=policy, runs=state_dir / "runs")
    finally:
        store.close()
        disk.close()


def open_records(state_dir: Path) -> "SqliteStore":
    """Open the records of a state directory alone: faster than a workspace, for those who read and change no file."""
    return _open_store(state_dir, "full")


def _open_disk(roots: list[str], chosen: Settings) -> "Disk":
    from surehold.disk.local import LocalDisk

    local = LocalDisk(roots, durability=chosen.durability)
    if chosen.editor is None:
        return local
    from surehold.disk.editor.disk import EditorDisk

    return EditorDisk(local, chosen.editor)


def _open_store(state_dir: Path, durability: Durability, limits: Limits | None = None) -> "SqliteStore":
    from surehold.stores.sqlite.store import SqliteStore

    idle = timedelta(seconds=(limits or Limits()).session_idle)
    return SqliteStore(state_dir, clock=utc_now, durability="none" if durability == "none" else "full", idle=idle)


def default_state_dir(root: str) -> Path:
    """Return the state directory of a root: outside of it, so that repositories stay clean."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    real = os.path.realpath(root)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in Path(real).name) or "root"
    return Path(base) / "surehold" / f"{name[:40]}-{digest}"


def _key_below_root(state_dir: Path, roots: list[str]) -> str:
    """Return how tools would name the state directory, if it is inside a root."""
    state = Path(os.path.realpath(state_dir))
    for number, root in enumerate(roots):
        if state.is_relative_to(root):
            return str(state.relative_to(root)) if number == 0 else str(state)
    return ""
