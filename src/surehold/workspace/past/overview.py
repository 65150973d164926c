"""A workspace at a glance: what sessions did, servers that run, and files that other programs changed."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from surehold.errors import SureholdError
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.stores.conversations import SessionRow, SessionTurn
from surehold.stores.owner import is_dead
from surehold.stores.server_runs import ServerRun
from surehold.workspace.undo.recorded_changes import count_lines
from surehold.workspace.workspace import Workspace

_MAX_ENTRIES = 10_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    """What one session did."""

    session: str
    agent: str
    started: str
    ended: str
    """When it last did something."""
    turns: int
    """How many were marked; a session in which none was is one turn."""
    changes: int
    files: int
    added: int
    removed: int


def summarize_sessions(store: Store, rows: Iterable[SessionRow]) -> Iterator[SessionSummary]:
    """Yield what sessions did, in the given order; those that changed nothing are left out."""
    for row in rows:
        entries = store.list_entries(LedgerQuery(session=row.id, ok_only=True, limit=_MAX_ENTRIES))
        if entries:
            yield _summarize(row, entries)


def _summarize(row: SessionRow, entries: tuple[Entry, ...]) -> SessionSummary:
    counts = [count_lines(entry) for entry in entries]
    return SessionSummary(
        session=row.id,
        agent=row.agent,
        started=min(row.opened, entries[-1].timestamp),
        ended=entries[0].timestamp,
        turns=len({entry.call.turn for entry in entries if entry.call.turn}) or 1,
        changes=len({entry.change_id for entry in entries}),
        files=len({path for entry in entries for path, _, _ in entry.change.transitions()}),
        added=sum(added for added, _ in counts),
        removed=sum(removed for _, removed in counts),
    )


def find_conversation(workspace: Workspace, session_id: str) -> tuple[SessionSummary | None, tuple[SessionTurn, ...]]:
    """Return what one session did, None if nothing, and its turns."""
    row = workspace.store.find_session(session_id)
    summary = next(summarize_sessions(workspace.store, [row] if row else []), None)
    return summary, workspace.store.list_turns(session_id)


def working_agents(workspace: Workspace) -> list[ServerRun]:
    """Return the servers that run and were called, newest first."""
    runs = workspace.store.list_servers()
    return [run for run in runs if run.session and not run.ended and not is_dead(run.server)]


def outside_edits(workspace: Workspace) -> list[str]:
    """Return the files that are not what the ledger last knew, in the order of their names."""
    changed = list[str]()
    for head in workspace.store.list_heads():
        try:
            known = head.version
            if known and known.kind == "directory":
                continue
            if known and known.kind != "file":
                entry = workspace.read_entry(head.path)
                is_same = entry is not None and (entry.version.kind, entry.version.sha256) == (known.kind, known.sha256)
            else:
                is_same = workspace.fingerprint(head.path) == (known.sha256 if known else "")
            if not is_same:
                changed.append(head.path)
        except SureholdError:
            continue  # the rules hide it, or it is not a file now
    return sorted(changed)
