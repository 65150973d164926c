"""Commands that run: each of their calls is made by hand, right after the keeper has heard of it."""

import os
from pathlib import Path

from surehold.capture.settled.settlement import Settlement
from surehold.stores.base import LedgerQuery
from surehold.text.snapshot import Version
from surehold.workspace.workspace import Workspace
from workspaces import call


class Command:
    """A command under way."""

    def __init__(self, workspace: Workspace, name: str, **facts: str) -> None:
        self._root, self.id = Path(workspace.roots[0]), f"change-of-{name}"
        self.recorder = workspace.record_run(call("run", agent=name, argv=(name,), **facts), self.id)
        self.keeper = self.recorder.open_keeper()

    def write(self, name: str, text: str) -> None:
        self.keeper.keep_written(self._path(name))
        (self._root / name).write_text(text)
        self._has_happened()

    def remove(self, name: str) -> None:
        self.keeper.keep_removed(self._path(name))
        (self._root / name).unlink()
        self._has_happened()

    def begin_rename(self, name: str, new: str) -> None:
        """Announce that a file gets the name of another one; the call has not happened yet."""
        source, to = self._path(name), self._path(new)
        self.keeper.keep_removed(to, for_path=source)
        self.keeper.keep_renamed(source, leaves=False)

    def end_rename(self, name: str, new: str) -> None:
        (self._root / name).rename(self._root / new)
        self._has_happened()

    def finish(self, exit_code: int = 0) -> Settlement:
        return self.recorder.finish(exit_code)

    def _has_happened(self) -> None:
        if self.keeper.turns:
            assert self.keeper.turns.release() == []

    def _path(self, name: str) -> bytes:
        return os.fsencode(self._root / name)


def chain(workspace: Workspace, path: str) -> list[tuple[str, str, str]]:
    """Return what the history says of a path, oldest first: who changed it, from what, and to what."""

    def text(version: Version | None) -> str:
        return workspace.store.read_blob(version.sha256).decode() if version else "-"

    return [
        (row.call.agent or row.call.tool, text(before), text(after))
        for row in workspace.history.log(LedgerQuery(path=path, ok_only=True, limit=100))[::-1]
        for name, before, after in row.change.transitions()
        if name == path
    ]
