"""A workspace at a glance: what sessions did, servers that run, and files that other programs changed."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from threading import Lock

from surehold.errors import SureholdError
from surehold.stores.base import Entry, LedgerQuery, Store
from surehold.stores.conversations import SessionRow, SessionTurn
from surehold.stores.owner import is_dead
from surehold.stores.server_runs import ServerRun
from surehold.text.snapshot import Version
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
    """Links too; directories do not count."""
    added: int
    removed: int


class SessionTallies:
    """What sessions did, kept from one look to the next: only what the ledger got since is read. For any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tallies = dict[str, _SessionTally]()
        self._lock = Lock()

    def summarize(self, rows: Iterable[SessionRow] | None = None) -> Iterator[SessionSummary]:
        """Yield what sessions did, the one that did something last first; those that changed nothing are left out."""
        for row in self._store.list_sessions() if rows is None else rows:
            with self._lock:
                summary = self._update(row)
            if summary:
                yield summary

    def find(self, session_id: str) -> SessionSummary | None:
        """Return what one session did; None if nothing."""
        rows = [row for row in self._store.list_sessions() if row.id == session_id]
        return next(self.summarize(rows), None)

    def list_turns(self, session_id: str) -> tuple[SessionTurn, ...]:
        return self._store.list_turns(session_id)

    def _update(self, row: SessionRow) -> SessionSummary | None:
        tally = self._tallies.setdefault(row.id, _SessionTally())
        query = LedgerQuery(session=row.id, ok_only=True, after_seq=tally.newest_seq, limit=_MAX_ENTRIES)
        for entry in reversed(self._store.list_entries(query)):
            tally.add(entry)
        return tally.summarize(row) if tally.newest_seq else None


def tally_sessions(workspace: Workspace) -> SessionTallies:
    """Return what sessions of a workspace did, to be asked again and again."""
    return SessionTallies(workspace.store)


def summarize_entries(store: Store, entries: Iterable[Entry]) -> Iterator[SessionSummary]:
    """Yield what sessions did with some entries of the ledger, which come newest first, in the order of the newest."""
    by_session = dict[str, list[Entry]]()
    for entry in entries:
        by_session.setdefault(entry.call.session, []).append(entry)
    rows = {row.id: row for row in store.list_sessions()}
    for name, found in by_session.items():
        if row := rows.get(name):
            tally = _SessionTally()
            for entry in reversed(found):
                tally.add(entry)
            yield tally.summarize(row)


@dataclass(slots=True)
class _SessionTally:
    newest_seq: int = 0
    first: str = ""
    last: str = ""
    turns: set[str] = field(default_factory=set[str])
    changes: set[str] = field(default_factory=set[str])
    files: set[str] = field(default_factory=set[str])
    added: int = 0
    removed: int = 0

    def add(self, entry: Entry) -> None:
        self.newest_seq, self.first, self.last = entry.seq, self.first or entry.timestamp, entry.timestamp
        self.turns |= {entry.call.turn} - {""}
        self.changes.add(entry.change_id)
        self.files.update(path for path, *sides in entry.change.transitions() if _has_file(sides))
        added, removed = count_lines(entry)
        self.added, self.removed = self.added + added, self.removed + removed

    def summarize(self, row: SessionRow) -> SessionSummary:
        return SessionSummary(
            session=row.id,
            agent=row.agent,
            started=min(row.opened, self.first),
            ended=self.last,
            turns=len(self.turns) or 1,
            changes=len(self.changes),
            files=len(self.files),
            added=self.added,
            removed=self.removed,
        )


def _has_file(sides: Sequence[Version | None]) -> bool:
    """Whether there was something else than a directory, before or after."""
    return any(one is not None and one.kind != "directory" for one in sides)


def working_agents(workspace: Workspace) -> list[ServerRun]:
    """Return the servers that run and were called, newest first."""
    runs = workspace.store.list_servers()
    return [run for run in runs if not run.ended and not is_dead(run.server)]


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
