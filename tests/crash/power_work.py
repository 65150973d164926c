"""Processes that change files of one workspace, and write down what they ask for and what they are told.

Lines of a diary: `["ask", worker, {path: sha256 or null}]`, then `["told", worker, change_id]`.
"""

import hashlib
import json
import os
import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from surehold.app import Settings, open_workspace
from surehold.stores.base import Begun, Busy, Call, Intent, Operation, Replay, StaleRead
from surehold.stores.sqlite import writers
from surehold.stores.sqlite.store import SqliteStore
from surehold.text.plan import Delete, Keep
from surehold.text.rewrite import WriteBytes
from surehold.workspace.proposal import Absent, Exact, Proposal, Receipt
from surehold.workspace.workspace import Workspace

LARGE_BYTES = 150_000


class Worker:
    """One process: every file it writes is its own."""

    def __init__(self, workspace: Workspace, name: str, diary: Path) -> None:
        self.workspace, self.name = workspace, name
        self._diary = os.open(diary, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def work(self, edits: int) -> None:
        """Create, edit, move and delete."""
        mine, moved = f"new/{self.name}/a.txt", f"shared/{self.name}-moved.txt"
        self.write(mine, b"begin\n", new=True)
        for number in range(edits):
            self.write(f"shared/{self.name}.txt", b"%d\n" % number, new=number == 0)
        self.write(f"shared/{self.name}.bin", random.Random(self.name).randbytes(LARGE_BYTES), new=True)
        self.call(
            "move", {mine: None, moved: b"begin\n"}, Proposal(path=mine, to_path=moved, edit=Keep(), proof=Exact())
        )
        self.write(moved, b"begin\nmore\n", new=False)
        self.call("delete", {moved: None}, Proposal(path=moved, edit=Delete(), proof=Exact()))

    def write(self, path: str, data: bytes, *, new: bool) -> None:
        proof = Absent() if new else Exact()
        self.call("write", {path: data}, Proposal(path=path, edit=WriteBytes(data), proof=proof))

    def call(self, operation: Operation, result: dict[str, bytes | None], proposal: Proposal) -> None:
        hashes = {path: data if data is None else hashlib.sha256(data).hexdigest() for path, data in result.items()}
        self._note("ask", hashes)
        receipt: Receipt = self.workspace.write(
            proposal, call=Call(tool=operation, operation=operation, writer=operation)
        )
        self._note("told", receipt.entries[0].change_id)

    def _note(self, word: str, what: object) -> None:
        os.write(self._diary, f"{json.dumps([word, self.name, what])}\n".encode())


def answer_before_the_disk() -> None:
    """Break it: the log is never synced."""

    def no_sync(place: int) -> None:
        del place

    writers.sync_data = no_sync


def begin_without_the_disk() -> None:
    """Break it: a file is changed before the intent to do so is on the disk."""
    begin: Callable[..., Begun | Replay | Busy | StaleRead] = SqliteStore.begin

    def begin_relaxed(store: SqliteStore, intent: Intent, *args: object, **more: object) -> object:
        database = store._database  # pyright: ignore[reportPrivateUsage] - to break it
        whole = database.write_transaction
        database.write_transaction = partial(whole, durable=False)
        try:
            return begin(store, intent, *args, **more)
        finally:
            database.write_transaction = whole

    SqliteStore.begin = begin_relaxed  # pyright: ignore[reportAttributeAccessIssue] - to break it


BREAK: dict[str, Callable[[], None]] = {
    "nothing": lambda: None,
    "answer before the disk": answer_before_the_disk,
    "begin without the disk": begin_without_the_disk,
}


def main(broken: str, workers: str, edits: str, *places: str) -> None:
    """Fork the workers, and wait for them."""
    BREAK[broken]()
    root, state, diaries = places
    children = list[int]()
    for number in range(int(workers)):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                settings = Settings(state_dir=Path(state), durability="full")
                with open_workspace(root, settings=settings) as workspace:
                    Worker(workspace, f"w{number}", Path(diaries, f"{number}.diary")).work(int(edits))
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))


if __name__ == "__main__":
    main(*sys.argv[1:])
