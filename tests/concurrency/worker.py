"""One of several processes that work on the same files. It writes down what it asks for before, and what it was told after.

Lines in its diary: `["ask", path, marker, time]`, `["told", path, marker, time, seq]`, and what its task adds.
"""

import json
import os
import random
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from surehold.app import Settings, open_workspace
from surehold.disk.kernel import Kernel
from surehold.errors import AlreadyExists, LockTimeout, NotFound, RecoveryRequired, StaleFile
from surehold.stores.base import Call
from surehold.text.plan import Keep
from surehold.text.rewrite import WriteBytes, WriteText
from surehold.text.snapshot import sha256_hex
from surehold.workspace.proposal import Absent, Exact, Proposal, Receipt, Sha256
from surehold.workspace.workspace import Workspace

EDIT = Call(tool="edit", operation="edit", writer="edit")
CREATE = Call(tool="create", operation="create", writer="create")
MOVE = Call(tool="move", operation="move", writer="move")


class Diary:
    """What this process did; every line is on its way before the next thing happens."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, *words: Any) -> None:
        os.write(self._fd, f"{json.dumps(words)}\n".encode())


def append(workspace: Workspace, path: str, marker: str) -> Receipt:
    while True:
        with suppress(StaleFile, LockTimeout):
            seen = workspace.read(path)
            edit = WriteBytes(seen.data + f"{marker}\n".encode())
            return workspace.write(Proposal(path=path, edit=edit, proof=Sha256(seen.sha256)), call=EDIT)


def edit(workspace: Workspace, diary: Diary, name: str, count: int) -> None:
    """Append so many markers to one file."""
    for number in range(count):
        marker = f"m{name}-{number}"
        diary.note("ask", "file", marker, time.monotonic())
        try:
            receipt = append(workspace, "file", marker)
        except RecoveryRequired:
            continue  # not told
        diary.note("told", "file", marker, time.monotonic(), receipt.entries[0].seq)


def create(workspace: Workspace, diary: Diary, name: str, count: int) -> None:
    """Create the same files as everybody else; the start of a round is a moment that all know."""
    start = float(sys.stdin.readline())
    for number in range(count):
        time.sleep(max(0.0, start + number * 0.01 - time.monotonic()))
        proposal = Proposal(path=f"new/{number}", edit=WriteText(name), proof=Absent())
        with suppress(AlreadyExists):
            workspace.write(proposal, call=CREATE)
            diary.note("won", number, name)


def move(workspace: Workspace, diary: Diary, name: str, count: int) -> None:
    """Move files from one directory to the other and back, whoever else does the same."""
    del name
    for _ in range(count):
        file = random.choice(("one", "two", "three"))
        here, there = random.sample(("left", "right"), 2)
        proposal = Proposal(path=f"{here}/{file}", to_path=f"{there}/{file}", edit=Keep(), proof=Exact())
        with suppress(NotFound, AlreadyExists, StaleFile, LockTimeout):
            workspace.write(proposal, call=MOVE)
            diary.note("moved", file)


def meddle(root: Path, diary: Diary, name: str, count: int) -> None:
    """Edit the file as programs do that know nothing of us: a new file takes the place of the old one.

    The two trade places instead of one being overwritten, which is the same for everybody else, but shows what
    the new one displaced.
    """
    kernel, here = Kernel(), os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for number in range(count):
        time.sleep(random.uniform(0, 0.01))
        data = (root / "file").read_bytes() + f"o{name}-{number}\n".encode()
        (root / "meddler").write_bytes(data)
        kernel.swap(here, "meddler", "file")
        diary.note("put", sha256_hex(data))
        diary.note("displaced", sha256_hex((root / "meddler").read_bytes()))
        (root / "meddler").unlink()
    os.close(here)


TASKS = {"edit": edit, "create": create, "move": move}


def main(task: str, name: str, count: str, *places: str) -> None:
    """Do one task."""
    root, state, diary = places
    notes = Diary(Path(diary))
    if task == "meddle":
        meddle(Path(root), notes, name, int(count))
        return
    with open_workspace(root, settings=Settings(state_dir=Path(state))) as workspace:
        print("open", flush=True)
        TASKS[task](workspace, notes, name, int(count))


if __name__ == "__main__":
    main(*sys.argv[1:])
