"""This process as the server of the process that started it: which session it serves, and how it ends."""

import threading
from contextlib import suppress
from dataclasses import replace

from surehold.errors import SureholdError
from surehold.stores.ledger_entries import utc_timestamp
from surehold.stores.owner import current_owner, parent_owner
from surehold.stores.server_runs import ServerRun
from surehold.workspace.workspace import Workspace


class CurrentServer:
    """Serves one session: the one it was told, one of an earlier server of its parent, or a new one."""

    def __init__(self, workspace: Workspace, *, named: str = "") -> None:
        """`named`: the id of the session to serve, whoever served it before."""
        self._workspace, self._named = workspace, named
        self._lock = threading.Lock()
        parent, began = parent_owner(), utc_timestamp(workspace.clock())
        self._run = parent and ServerRun(
            id=workspace.new_id(), server=current_owner(), parent=parent, roots=workspace.roots, began=began
        )

    def choose_session(self, client: str, *, fresh: str) -> str:
        """Return the session to serve, the same each time; `fresh` is the id of a new one."""
        if self._named or self._run is None:
            return self._named or fresh
        with self._lock:
            if not self._run.session:
                mine = replace(self._run, client=client)
                self._run = replace(mine, session=self._workspace.store.claim_session(mine, fresh=fresh))
            return self._run.session

    def end(self) -> None:
        """Remember that this process ended properly: what it served is over, unless its parent starts one for each call."""
        if self._run is not None and not self._named:
            with suppress(SureholdError):  # the next server then takes this one for dead
                self._workspace.store.end_server(self._run)
