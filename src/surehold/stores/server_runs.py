"""The server processes of one parent process, and which of their sessions a new one goes on with.

1. A session whose server died without a proper end is taken up by the next server of the same parent, client and roots.
2. A parent that starts a server for every call is recognised by two servers that ended within seconds. From then on all
   of its short-lived servers share one session.
3. A session that a living server holds is never taken up.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from surehold.stores.owner import Owner

_BRIEF = timedelta(seconds=60)
"""A server that ended so soon may have been started for one call."""
_BRIEF_RUNS = 2
"""So many of them show that its parent does that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRun:
    """One server process: who started it, which session it served, and how it ended."""

    id: str
    server: "Owner"
    parent: "Owner"
    roots: tuple[str, ...]
    began: str
    client: str = ""
    session: str = ""
    """Empty if it was never called."""
    ended: str = ""
    """When it ended properly; empty while it runs, and if it died."""

    @property
    def is_brief(self) -> bool:
        return bool(self.ended) and datetime.fromisoformat(self.ended) - datetime.fromisoformat(self.began) <= _BRIEF


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """The session to go on with, and others of short-lived servers that become part of it, oldest first."""

    session: str
    joined: tuple[str, ...] = ()


def choose_session(client: str, earlier: Sequence[ServerRun], *, is_dead: "Callable[[Owner], bool]") -> Takeover | None:
    """Return what a new server goes on with, given the earlier ones of its parent and roots, oldest first."""
    sessions = dict[str, list[ServerRun]]()
    for run in earlier:
        if run.session and run.client == client:
            sessions.setdefault(run.session, []).append(run)
    free = {name: runs for name, runs in sessions.items() if all(run.ended or is_dead(run.server) for run in runs)}
    if sum(run.is_brief for run in earlier) >= _BRIEF_RUNS:
        shared = [name for name, runs in free.items() if not runs[-1].ended or any(run.is_brief for run in runs)]
        return Takeover(session=shared[0], joined=tuple(shared[1:])) if shared else None
    died = [(runs[-1].began, name) for name, runs in free.items() if not runs[-1].ended]
    return Takeover(session=max(died)[1]) if died else None


def server_run_columns(run: ServerRun) -> tuple[object, ...]:
    """Return a run as a row: id, server, parent, roots, began, client, session, ended."""
    from surehold.stores.ledger_entries import owner_text, to_key

    facts = (to_key(run.id), owner_text(run.server), owner_text(run.parent), to_key("\0".join(run.roots)), run.began)
    return (*facts, to_key(run.client), to_key(run.session), run.ended)


def server_run_from_row(id_: bytes, server: str, parent: str, roots: bytes, *others: Any) -> ServerRun:
    from surehold.stores.ledger_entries import owner_from_text, text_of

    began, client, session, ended = others
    return ServerRun(
        id=text_of(id_),
        server=owner_from_text(server),
        parent=owner_from_text(parent),
        roots=tuple(text_of(roots).split("\0")),
        began=began,
        client=text_of(client),
        session=text_of(session),
        ended=ended,
    )


class ServerRuns(Protocol):
    """What a store remembers of server processes."""

    def claim_session(self, run: ServerRun, *, fresh: str) -> str:
        """Remember a server that is called for the first time, and return the session it serves: `fresh`, or an earlier one."""
        ...

    def list_servers(self) -> tuple[ServerRun, ...]:
        """List the servers that are remembered, newest first."""
        ...

    def end_server(self, run: ServerRun) -> None:
        """Remember that a server ended properly."""
        ...
