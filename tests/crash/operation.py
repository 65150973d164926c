"""The operations that are killed, and the program that performs one of them.

As a program it is a nursery: it imports everything, performs the operation once on a scratch workspace so that nothing
is left to be loaded, and then forks a child for every job it reads. The child opens the workspace and waits; strace is
attached; on `go` the child does nothing but the operation. So a run costs a fork, and strace counts from the first
system call of the operation.

Lines in:  `{"root": …, "state": …}`, then `go`.
Lines out: `ready PID`, then `done`, `failed …` or `broke …` or none of them, then `exit STATUS`.
Answers are given by `writev`, which nothing else here uses, so that a fault in `write` cannot swallow them.
"""

import json
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from surehold.app import Settings, open_workspace
from surehold.errors import SureholdError
from surehold.library.session import AgentSession
from surehold.stores.base import Operation
from surehold.text.plan import Delete, Keep
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import sha256_hex
from surehold.workspace.proposal import Absent, CallAuthor, Exact, Proposal, Sha256
from surehold.workspace.workspace import Workspace

SESSION = "crash"
Act = Callable[[Workspace], object]


def open_at(root: Path, state: Path, *, durable: bool) -> Workspace:
    return open_workspace(root, settings=Settings(state_dir=state, durability="full" if durable else "none"))


def prepare(root: Path, state: Path, size: int) -> None:
    """Make the workspace that every operation starts from: a short past, a hard link, something in the trash."""
    root.mkdir()
    with open_at(root, state, durable=False) as workspace:
        session = workspace.session(agent="crash", id=SESSION)
        for name in ("a", "b", "c", "linked", "gone"):
            session.create(f"{name}.txt", _text(name, size))
        (root / "a.txt").chmod(0o640)
        (root / "b.txt").chmod(0o755)
        (root / "second.txt").hardlink_to(root / "linked.txt")
        session.edit("a.txt", ("a begins", "a began"))
        session.delete("gone.txt", expected_sha256=workspace.fingerprint("gone.txt"))
        workspace.read("second.txt")


def _text(name: str, size: int) -> str:
    begin = f"{name} begins\n"
    return begin + "".join(f"line {n} of {name}\n" for n in range(max(size - len(begin), 0) // 18))


def _write(workspace: Workspace, operation: Operation, *proposals: Proposal) -> None:
    call = CallAuthor(agent="crash", session=SESSION).make_call(operation, operation)
    workspace.write(*proposals, call=call)


def _edit(path: str, old: str, new: str, *, to_path: str = "", mode: int | None = None) -> Proposal:
    edits = SnapshotEdits((StringEdit(old=old, new=new),))
    return Proposal(path=path, to_path=to_path, edit=edits, proof=Exact(), mode=mode)


def _create(path: str, text: str) -> Proposal:
    return Proposal(path=path, edit=WriteText(text), proof=Absent())


def _over(workspace: Workspace, path: str, to_path: str) -> Proposal:
    displaced = Sha256(workspace.fingerprint(to_path))
    return Proposal(path=path, to_path=to_path, edit=Keep(), proof=Exact(), to_proof=displaced)


def _whole(workspace: Workspace, path: str) -> Proposal:
    text = workspace.read(path).text
    return Proposal(path=path, edit=WriteText(f"new head\n{text}new tail\n"), proof=Sha256(sha256_hex(text.encode())))


def _undo(workspace: Workspace) -> None:
    edit = next(entry for entry in workspace.history.log() if entry.call.operation == "edit")
    workspace.history.undo(edit.change_id, author=CallAuthor(agent="crash", session=SESSION))


PATCH = """\
*** Begin Patch
*** Update File: a.txt
@@
-a began
+a was patched
*** Add File: sub/new.txt
+made
*** Delete File: c.txt
*** End Patch
"""
OPERATIONS: dict[str, Act] = {
    "create": lambda w: _write(w, "create", _create("new/deep/file.txt", "made\n")),
    "write": lambda w: _write(w, "write", _whole(w, "a.txt")),
    "edit": lambda w: _write(w, "edit", _edit("a.txt", "a began", "a was edited")),
    "edit and mode": lambda w: _write(w, "edit", _edit("a.txt", "a began", "a was edited", mode=0o600)),
    "mode": lambda w: _write(w, "edit", Proposal(path="a.txt", edit=Keep(), proof=Exact(), mode=0o600)),
    "edit in place": lambda w: _write(w, "edit", _edit("linked.txt", "linked begins", "linked was made longer")),
    "shorter in place": lambda w: _write(w, "edit", _edit("linked.txt", "linked begins", "l")),
    "delete": lambda w: _write(w, "delete", Proposal(path="a.txt", edit=Delete(), proof=Exact())),
    "move": lambda w: _write(w, "move", Proposal(path="a.txt", to_path="sub/a.txt", edit=Keep(), proof=Exact())),
    "move over": lambda w: _write(w, "move", _over(w, "a.txt", "b.txt")),
    "move and edit": lambda w: _write(w, "move", _edit("a.txt", "a began", "a moved", to_path="sub/a.txt")),
    "patch": lambda w: AgentSession(w, id=SESSION, agent="crash").apply_patch(PATCH),
    "restore": lambda w: w.history.restore(w.history.trash()[0].id, author=CallAuthor(agent="crash", session=SESSION)),
    "undo": _undo,
}
UPKEEP: dict[str, Act] = {"gc": lambda w: w.history.gc(keep=timedelta(days=1))}
"""What changes the history and no file."""
RECOVER = "recover"
"""Opening the workspace is the operation: it closes what a dead process left open."""


def _rehearse(operation: str) -> None:
    """Do it once where it does not matter, so that everything is imported."""
    directory = Path(tempfile.mkdtemp(prefix="surehold-rehearsal-"))
    try:
        prepare(directory / "root", directory / "state", 10)
        with open_at(directory / "root", directory / "state", durable=True) as workspace:
            for act in OPERATIONS.values() if operation == RECOVER else ((OPERATIONS | UPKEEP)[operation],):
                try:
                    act(workspace)
                except SureholdError:
                    continue  # after the others there may be nothing left to do
    finally:
        shutil.rmtree(directory)


def _answer(word: str, value: object = "") -> None:
    os.writev(1, [f"{word} {json.dumps(value)}\n".encode()])


def _child(operation: str, root: Path, state: Path, gate: int) -> None:
    """Perform the operation when the gate opens, say how it went, and end."""
    try:
        act = (OPERATIONS | UPKEEP).get(operation)
        workspace = open_at(root, state, durable=True) if act else None
        _answer("ready", os.getpid())
        os.read(gate, 1)
        if act and workspace:
            act(workspace)
        else:
            workspace = open_at(root, state, durable=True)
        _answer("done")
        workspace.close()
    except SureholdError as error:
        _answer("failed", [error.kind, error.reason, error.message])
    except BaseException:  # noqa: BLE001 - the parent shows it
        _answer("broke", traceback.format_exc())
    finally:
        os._exit(0)


def main(operation: str) -> None:
    """Serve jobs until the input ends."""
    _rehearse(operation)
    while line := sys.stdin.readline():
        job = json.loads(line)
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(send)
            _child(operation, Path(job["root"]), Path(job["state"]), receive)
        os.close(receive)
        sys.stdin.readline()
        os.close(send)
        _, status = os.waitpid(child, 0)
        _answer("exit", os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(sys.argv[1])
