"""Turns settings into an open workspace. The only module that chooses a disk and a store."""

import hashlib
import os
from collections.abc import Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from surehold.errors import BLOBS, STATE_DIR, InvalidArgument, NotFound, spell
from surehold.workspace.settings import Limits, ReadGateSettings, check_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from surehold.disk.base import Disk, EditorFiles
    from surehold.library.workspace import AgentWorkspace
    from surehold.stores.blobs.large_versions import LargeVersions
    from surehold.stores.migration import PortableStore
    from surehold.text.encoding import EncodingDetector
    from surehold.workspace.access.permission import Approver
    from surehold.workspace.past.history_reader import HistoryReader
    from surehold.workspace.reader import WorkspaceReader
    from surehold.workspace.settings import Mode

Durability = Literal["full", "file", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be chosen about a workspace."""

    state_dir: Path | None = None
    """Where Surehold keeps the history; None for the user's state directory, one folder per root."""
    blobs: str = ""
    """Where large earlier versions are kept: a directory, or `s3://bucket/prefix`; empty for the state directory."""
    state: str = ""
    """`postgresql://…` for a history in a database, which several machines can share; empty for the state directory."""
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
    gate: ReadGateSettings | None = None
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
        """Refuse unknown words and wrong types now, not at the first write."""
        for name, fits, what, example in _SETTING_CHECKS:
            given = getattr(self, name)
            if given is not None and not fits(given):
                raise _bad_setting(name, what, example)
        if self.mode is not None:
            check_mode(self.mode)
        if self.durability not in get_args(Durability):
            choose = f"Choose one of {', '.join(get_args(Durability))}."
            raise InvalidArgument(f"Unknown durability `{self.durability}`.", reason="bad_durability", action=choose)
        if self.state and not self.state.startswith(("postgresql://", "postgres://")):
            choose = "Use postgresql://USER@HOST/DATABASE, or name a directory as state_dir."
            raise InvalidArgument("A state is in PostgreSQL or in a directory.", reason="bad_state_url", action=choose)
        for name in ("deny", "ask", "allow", "protected", "unprotected"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _check_patterns(name, given))


def _is_editor(given: object) -> bool:
    return all(callable(getattr(given, name, None)) for name in ("read_text", "write_text"))


_SETTING_CHECKS: "tuple[tuple[str, Callable[[object], bool], str, str], ...]" = (
    ("state", lambda given: isinstance(given, str), "must be a text", 'state="postgresql://…"'),
    ("blobs", lambda given: isinstance(given, str), "must be a text", 'blobs="s3://bucket/prefix"'),
    ("state_dir", lambda given: isinstance(given, str | os.PathLike), "must be a path", 'state_dir=Path("state")'),
    (
        "limits",
        lambda given: isinstance(given, Limits),
        "must be a `Limits`",
        "limits=Limits(max_file_bytes=1_000_000)",
    ),
    (
        "gate",
        lambda given: isinstance(given, ReadGateSettings),
        "must be a `ReadGateSettings`",
        'gate=ReadGateSettings(require_read="matched")',
    ),
    ("approver", callable, "must be a function", "approver=lambda request: True"),
    ("detector", callable, "must be a function", 'detector=lambda data: "cp1252"'),
    ("editor", _is_editor, "must have `read_text` and `write_text`", "editor=None"),
    ("recover_on_open", lambda given: isinstance(given, bool), "must be True or False", "recover_on_open=False"),
)
"""What each setting must be; a program may have no type checker."""


def _check_patterns(name: str, given: object) -> tuple[str, ...]:
    """Return patterns as a tuple; refuse one string, which would be read as a list of its letters."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise _bad_setting(name, "must be a list of patterns", f'{name}=["src/**"]')
    patterns = tuple(cast("Iterable[object]", given))
    if not all(isinstance(one, str) for one in patterns):
        raise _bad_setting(name, "must be a list of patterns, each of them text", f'{name}=["src/**"]')
    return cast("tuple[str, ...]", patterns)


def _bad_setting(name: str, what: str, example: str) -> InvalidArgument:
    return InvalidArgument(f"The setting `{name}` {what}.", reason="bad_setting", action=f"For example: {example}")


def open_workspace(
    *roots: str | os.PathLike[str],
    settings: Settings | None = None,
    state: str | os.PathLike[str] | None = None,
    blobs: str | os.PathLike[str] | None = None,
) -> "AgentWorkspace":
    """Open one or several directories for editing; what a dead process left open is settled first.

    `state` is where the history is kept: `postgresql://…` or a directory. `blobs` is where large earlier versions are kept.
    Both are used instead of what the settings say.
    """
    from surehold.library.arguments import bad_argument, path_text
    from surehold.library.workspace import AgentWorkspace
    from surehold.stores.owner import current_owner
    from surehold.workspace.access.protected_names import PROTECTED
    from surehold.workspace.paths import Policy

    if settings is not None and not isinstance(settings, Settings):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise bad_argument("settings", "a `Settings`", settings, 'settings=Settings(mode="default")')
    place = path_text("state", state or "", example='state="/var/lib/surehold"')
    large = None if blobs is None else path_text("blobs", blobs, example='blobs="s3://bucket/prefix"')
    given_roots = [path_text("root", root, example='open_workspace("my-project")') for root in roots]
    chosen = _with_places(settings or Settings(), place, large)
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
    _check_blobs(chosen.blobs, paths)
    store = open_store(state_dir, chosen, root=paths[0])
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
        opened_with=("--state-dir", str(state_dir), *(("--blobs", chosen.blobs) if chosen.blobs else ())),
        state_url=chosen.state,
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
        action = spell("Name another directory with {}.", STATE_DIR)
        raise InvalidArgument(message, path=str(state_dir), reason="state_dir_holds_root", action=action)
    return paths, state_dir


def open_history(state_dir: Path, *, root: str, state: str = "", blobs: str = "") -> "HistoryReader":
    """Open the history in a state directory, or of a root in a database, for those who only look."""
    from surehold.workspace.past.history_reader import HistoryReader

    locate_workspace([root], Settings(state_dir=state_dir))
    return HistoryReader(open_store(state_dir, Settings(state=state, blobs=blobs), root=root))


@contextmanager
def open_reader(root: str, state_dir: Path, *, state: str = "", blobs: str = "") -> "Generator[WorkspaceReader]":
    """Open a directory for those who only read files and note what other programs do: faster than a workspace."""
    from surehold.workspace.paths import Policy
    from surehold.workspace.reader import WorkspaceReader

    paths, state_dir = locate_workspace([root], Settings(state_dir=state_dir))
    disk, store = _open_disk([root], Settings()), open_store(state_dir, Settings(state=state, blobs=blobs), root=root)
    try:
        policy = Policy(state_dir=_key_below_root(state_dir, paths))
        yield WorkspaceReader(disk=disk, store=store, policy=policy, runs=state_dir / "runs")
    finally:
        store.close()
        disk.close()


def open_records(root: str, state_dir: Path, *, state: str = "") -> "PortableStore":
    """Open the records of a workspace alone: faster than all of it, for those who read and change no file."""
    return open_store(state_dir, Settings(state=state), root=root)


def _open_disk(roots: list[str], chosen: Settings) -> "Disk":
    from surehold.disk.local import LocalDisk
    from surehold.disk.side_threads import leave_aside

    local = LocalDisk(roots, durability=chosen.durability, leave=leave_aside)
    if chosen.editor is None:
        return local
    from surehold.disk.editor.disk import EditorDisk

    return EditorDisk(local, chosen.editor)


def open_store(state_dir: Path, chosen: Settings, *, root: str, importing: bool = False) -> "PortableStore":
    """Open the history of a root: in its state directory, or in the database that the settings name.

    `importing`: to move a history there, or to go on with that.
    """
    idle = timedelta(seconds=(chosen.limits or Limits()).session_idle)
    synced: Literal["none", "full"] = "none" if chosen.durability == "none" else "full"
    opener = _blobs_opener(_absolute_place(chosen.blobs), fsync=synced == "full")
    if chosen.state:
        from surehold.stores.postgres.address import parse_address
        from surehold.stores.postgres.store import open_postgres_store

        address, real = parse_address(chosen.state), os.path.realpath(root)
        name, host = address.workspace or workspace_id(real), os.uname().nodename
        return open_postgres_store(
            address, workspace=name, root=real, host=host, idle=idle, open_blobs=opener, importing=importing
        )
    from surehold.stores.ledger_entries import utc_now
    from surehold.stores.sqlite.store import SqliteStore

    if not importing and (state_dir / "importing").exists():
        from surehold.stores.sqlite.importing import refuse_unfinished

        refuse_unfinished(state_dir)
    return SqliteStore(state_dir, clock=utc_now, durability=synced, idle=idle, open_blobs=opener)


def _with_places(chosen: Settings, state: str, blobs: str | None) -> Settings:
    """Return the settings with a place for the history, a URL or a directory, and one for large versions."""
    chosen = replace(chosen, blobs=_absolute_place(chosen.blobs if blobs is None else blobs))
    if not state:
        return chosen
    return replace(chosen, state=state) if "://" in state else replace(chosen, state="", state_dir=Path(state))


def _blobs_opener(address: str, *, fsync: bool) -> "Callable[[str], LargeVersions] | None":
    """Return what opens the place of large versions for a history; None if they stay with the state."""
    if not address:
        return None
    from surehold.stores.blobs.large_versions import open_blobs

    return lambda name: open_blobs(address, folder=name, fsync=fsync)


def _absolute_place(address: str) -> str:
    return os.path.abspath(address) if address and "://" not in address else address  # noqa: PTH100 - links stay


def _check_blobs(address: str, roots: list[str]) -> None:
    """Refuse a place that agents could write to."""
    if address and "://" not in address:
        place = Path(os.path.realpath(address))
        if any(place.is_relative_to(root) or Path(root).is_relative_to(place) for root in roots):
            message = "The directory of large versions must not be in the workspace, nor contain it."
            action = spell("Name another directory with {}.", BLOBS)
            raise InvalidArgument(message, path=address, reason="blobs_in_root", action=action)


def workspace_id(root: str) -> str:
    """Return what a workspace is called where several have one place: after its directory, unlike any other one."""
    real = os.path.realpath(root)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in Path(real).name) or "root"
    return f"{name[:40]}-{digest}"


def default_state_dir(root: str) -> Path:
    """Return the state directory of a root: outside of it, so that repositories stay clean."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "surehold" / workspace_id(root)


def _key_below_root(state_dir: Path, roots: list[str]) -> str:
    """Return how tools would name the state directory, if it is inside a root."""
    state = Path(os.path.realpath(state_dir))
    for number, root in enumerate(roots):
        if state.is_relative_to(root):
            return str(state.relative_to(root)) if number == 0 else str(state)
    return ""
