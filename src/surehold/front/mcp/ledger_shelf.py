"""The newest entries of the ledger as a resource."""

import json
from collections.abc import Iterable, Sequence

from surehold.errors import PermissionDenied
from surehold.front.mcp.shelves import Plain
from surehold.stores.base import Entry, Query
from surehold.tools.spec import Json
from surehold.workspace.workspace import Workspace

LOG = "surehold://log"
_NEWEST = 100
_LISTED: Json = {
    "uri": LOG,
    "name": "log",
    "title": "What happened here",
    "description": f"The newest {_NEWEST} entries of the ledger: changes, refused calls, outside edits.",
    "mimeType": "application/json",
}


class LedgerShelf(Plain):
    """Shows what happened in this workspace, newest first."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def entries(self) -> Iterable[Json]:
        """Yield the log."""
        yield _LISTED

    def read(self, uri: str) -> Sequence[Json] | None:
        """Return the newest entries as JSON."""
        if uri != LOG:
            return None
        rows = [_row(entry) for entry in self._workspace.store.entries(Query(limit=_NEWEST)) if self._may_show(entry)]
        return [{"uri": uri, "mimeType": "application/json", "text": json.dumps({"entries": rows}, indent=1)}]

    def _may_show(self, entry: Entry) -> bool:
        """Tell whether the rules let agents know of the files in an entry."""
        try:
            for key in filter(None, (entry.change.path, entry.change.to_path)):
                self._workspace.names.check_recorded(key)
        except PermissionDenied:
            return False
        return True

    def mark(self, uri: str) -> str | None:
        """Return the number of the newest entry."""
        if uri != LOG:
            return None
        return str(next((entry.seq for entry in self._workspace.store.entries(Query(limit=1))), 0))


def _row(entry: Entry) -> Json:
    change, call = entry.change, entry.call
    row: Json = {
        "seq": entry.seq,
        "changeId": entry.change_id,
        "timestamp": entry.timestamp,
        "ok": entry.ok,
        "operation": call.operation,
        "tool": call.tool,
        "agent": call.agent,
        "session": call.session,
        "path": change.path,
        "toPath": change.to_path,
        "beforeSha256": change.before.sha256 if change.before else "",
        "afterSha256": change.after.sha256 if change.after else "",
        "reason": call.reason,
        "errorKind": entry.error_kind,
        "message": entry.message,
    }
    return {key: value for key, value in row.items() if value != ""}
