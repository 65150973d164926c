"""Any sequence of calls, outside edits and crashes leaves the files that a plain dictionary predicts."""

import itertools
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from doubles.memory_disk import MemoryDisk
from spec.marks import requirement
from stores.scenes import ELSEWHERE
from surehold.disk.base import KeepBytes, Step, StoredFile, Target
from surehold.disk.local import LocalDisk
from surehold.errors import SureholdError
from surehold.stores.base import LedgerQuery, Operation
from surehold.text.plan import Delete, Keep
from surehold.text.quoted.edits import SnapshotEdits, StringEdit
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import sha256_hex
from surehold.workspace.proposal import Absent, Exact, Proof, Proposal, Sha256
from surehold.workspace.workspace import Workspace
from workspaces import Clock, DiskKind, StoreKind, call, make_store

pytestmark = requirement("engine:model:dictionary", "promise:nothing_lost:undo", "promise:half_done:many_files")
SOAK = bool(os.environ.get("SUREHOLD_SOAK"))
PATHS = ("a", "b", "dir/c", "dir/d", "other/deep/e")
Model = dict[str, bytes]

paths = st.sampled_from(PATHS)
contents = (
    st.lists(st.sampled_from(("one\n", "two\n", "three\n", "four", "\n")), max_size=6).map("".join).map(str.encode)
)


class Crash(BaseException):
    """The process ends here: nothing of ours catches it but the tests."""


@dataclass
class Fuse:
    """Lets a disk break after so many steps, as with a machine whose power fails: what is done stays done."""

    steps_left: int | None = None
    blown: bool = False

    def check(self) -> None:
        if self.blown:
            raise Crash

    def apply(self, apply: Callable[[Sequence[Step]], None], steps: Sequence[Step]) -> None:
        self.check()
        if self.steps_left is None:
            apply(steps)
            return
        for step in steps[: self.steps_left]:
            apply([step])
        self.blown = True
        raise Crash


class FragileMemory(MemoryDisk):
    """A disk in memory that can break."""

    fuse = Fuse()

    def read(self, target: Target, *, limit: int) -> StoredFile | None:
        self.fuse.check()
        return super().read(target, limit=limit)

    def apply(
        self, steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes, leased: bool = True
    ) -> None:
        self.fuse.apply(partial(super().apply, tag=tag, fence=fence, keep=keep, leased=leased), steps)


class FragileLocal(LocalDisk):
    """A real disk that can break."""

    fuse = Fuse()

    def read(self, target: Target, *, limit: int) -> StoredFile | None:
        self.fuse.check()
        return super().read(target, limit=limit)

    def apply(
        self, steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes, leased: bool = True
    ) -> None:
        self.fuse.apply(partial(super().apply, tag=tag, fence=fence, keep=keep, leased=leased), steps)


@dataclass
class Done:
    """A change that the model knows, and what was there before it."""

    id: str
    before: Model = field(default_factory=dict[str, bytes])


class Machine(RuleBasedStateMachine):
    """A workspace beside a dictionary."""

    store_kind: ClassVar[StoreKind] = "memory"
    disk_kind: ClassVar[DiskKind] = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory(prefix="surehold-machine-")
        place = Path(self.directory.name)
        self.root = place / "root"
        self.root.mkdir()
        self.clock, self.numbers = Clock(), itertools.count(1)
        self.store = make_store(self.store_kind, place / "state", self.clock)
        self.disk = FragileMemory() if self.disk_kind == "memory" else FragileLocal([self.root], durability="none")
        self.workspace = self._open()
        self.model: Model = {}
        self.undoable = list[Done]()
        """Changes that can certainly be taken back: nothing happened since."""
        self.trashed = dict[str, tuple[str, bytes]]()

    def _open(self) -> Workspace:
        return Workspace(
            disk=self.disk,
            store=self.store,
            owner=lambda: ELSEWHERE,
            clock=self.clock,
            new_id=lambda: f"id{next(self.numbers):06d}",
        )

    def teardown(self) -> None:
        self.workspace.close()
        self.directory.cleanup()

    # What the model says, and what the workspace does.

    def _write(self, operation: Operation, after: Model | None, *proposals: Proposal) -> None:
        """Make a call; `after` is what it must leave, None when it must be refused."""
        before = dict(self.model)
        try:
            receipt = self.workspace.write(*proposals, call=call(operation))
        except SureholdError:
            if after is not None:
                raise  # it was refused without a reason
            return
        assert after is not None, "it should have been refused"
        self.model = after
        if receipt.change_id:
            self.undoable.append(Done(receipt.change_id, before))
        for item in receipt.files:
            if item.change.trash_id:
                path = item.change.to_path or item.change.path
                self.trashed[item.change.trash_id] = (path, before[path])

    def _proof(self, path: str) -> Proof:
        return Sha256(sha256_hex(self.model[path])) if path in self.model else Exact()

    @rule(path=paths, data=contents)
    def create(self, path: str, data: bytes) -> None:
        after = None if path in self.model else self.model | {path: data}
        self._write("create", after, Proposal(path=path, edit=WriteBytes(data), proof=Absent()))

    @rule(path=paths, data=contents)
    def write(self, path: str, data: bytes) -> None:
        after = self.model | {path: data} if path in self.model else None
        self._write("write", after, Proposal(path=path, edit=WriteBytes(data), proof=self._proof(path)))

    @rule(path=paths, data=contents)
    def write_what_was_never_seen(self, path: str, data: bytes) -> None:
        proposal = Proposal(path=path, edit=WriteBytes(data), proof=Sha256("0" * 64))
        self._write("write", dict(self.model) if self.model.get(path) == data else None, proposal)

    @rule(path=paths, old=st.sampled_from(("one", "two", "three")), new=st.sampled_from(("four", "x\ny", "")))
    def edit(self, path: str, old: str, new: str) -> None:
        data = self.model.get(path, b"")
        after = self.model | {path: data.replace(old.encode(), new.encode())} if data.count(old.encode()) == 1 else None
        edits = SnapshotEdits((StringEdit(old=old, new=new),))
        self._write("edit", after, Proposal(path=path, edit=edits, proof=Exact()))

    @rule(path=paths)
    def delete(self, path: str) -> None:
        after = {name: data for name, data in self.model.items() if name != path} if path in self.model else None
        self._write("delete", after, Proposal(path=path, edit=Delete(), proof=self._proof(path)))

    @rule(path=paths, to_path=paths, over=st.booleans())
    def move(self, path: str, to_path: str, over: bool) -> None:
        known = over and to_path in self.model
        proof: Proof = self._proof(to_path) if known else Absent()
        possible = path in self.model and path != to_path and (known or to_path not in self.model)
        after = {k: v for k, v in self.model.items() if k != path} | {to_path: self.model[path]} if possible else None
        proposal = Proposal(path=path, to_path=to_path, edit=Keep(), proof=self._proof(path), to_proof=proof)
        self._write("move", after, proposal)

    @rule(changes=st.dictionaries(paths, st.one_of(st.none(), contents), min_size=2, max_size=4))
    def batch(self, changes: dict[str, bytes | None]) -> None:
        possible = all(data is not None or path in self.model for path, data in changes.items())
        after = {k: v for k, v in (self.model | changes).items() if v is not None} if possible else None
        self._write("patch", after, *(self._change(path, data) for path, data in changes.items()))

    def _change(self, path: str, data: bytes | None) -> Proposal:
        proof = self._proof(path) if path in self.model or data is None else Absent()
        return Proposal(path=path, edit=Delete() if data is None else WriteBytes(data), proof=proof)

    # The way back.

    @precondition(lambda self: self.undoable)
    @rule()
    def undo_the_newest(self) -> None:
        done = self.undoable.pop()
        receipt = self.workspace.history.undo(done.id)
        assert receipt.change_id
        self.model = dict(done.before)
        self.trashed = {k: v for k, v in self.trashed.items() if self._is_kept(k)}

    @precondition(lambda self: self.undoable)
    @rule()
    def undo_and_redo_the_newest(self) -> None:
        done = self.undoable[-1]
        self.workspace.history.undo(done.id)
        assert self._files() == done.before
        self.workspace.history.redo(done.id)
        self.trashed = {k: v for k, v in self.trashed.items() if self._is_kept(k)}

    @rule(data=st.data(), again=st.booleans())
    def undo_or_redo_anything(self, data: st.DataObject, again: bool) -> None:
        """Take back any change: it may be refused, and then nothing happened; else only its own files change."""
        ids = sorted({entry.change_id for entry in self.workspace.history.log(LedgerQuery(ok_only=True, limit=1000))})
        if not ids:
            return
        try:
            history = self.workspace.history
            receipt = (history.redo if again else history.undo)(data.draw(st.sampled_from(ids)))
        except SureholdError:
            return
        touched = {path for file in receipt.files for path, _, _ in file.change.transitions()}
        now = self._files()
        assert {k: v for k, v in now.items() if k not in touched} == {
            k: v for k, v in self.model.items() if k not in touched
        }
        self.model = now
        self.undoable.clear()

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        if not self.trashed:
            return
        trash_id = data.draw(st.sampled_from(sorted(self.trashed)))
        path, old = self.trashed[trash_id]
        try:
            receipt = self.workspace.history.restore(trash_id)
        except SureholdError:
            assert path in self.model
            return
        assert path not in self.model
        self.undoable.append(Done(receipt.change_id, dict(self.model)))
        self.model[path] = old

    def _is_kept(self, trash_id: str) -> bool:
        item = self.store.trash_item(trash_id)
        return item is not None and item.state != "emptied"

    # The world outside.

    @rule(path=paths, data=contents)
    def edit_from_outside(self, path: str, data: bytes) -> None:
        if isinstance(self.disk, MemoryDisk):
            self.disk.poke(path, data)
        else:
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_bytes(data)
        self.model[path] = data
        self.undoable.clear()

    @rule(path=paths)
    def delete_from_outside(self, path: str) -> None:
        if path not in self.model:
            return
        if isinstance(self.disk, MemoryDisk):
            self.disk.poke(path, None)
        else:
            (self.root / path).unlink()
        del self.model[path]
        self.undoable.clear()

    @rule(
        changes=st.dictionaries(paths, st.one_of(st.none(), contents), min_size=1, max_size=4),
        steps=st.integers(min_value=0, max_value=4),
    )
    def crash_in_the_middle(self, changes: dict[str, bytes | None], steps: int) -> None:
        """The process dies after some steps of a call; the next one to open the workspace settles it."""
        changes = {path: data for path, data in changes.items() if data is not None or path in self.model}
        after = {k: v for k, v in (self.model | changes).items() if v is not None}
        if after == self.model:
            return
        effective = sum(self.model.get(path) != data for path, data in changes.items())
        self.disk.fuse = Fuse(steps_left=steps)
        with suppress(Crash):
            self.workspace.write(*(self._change(path, data) for path, data in changes.items()), call=call("patch"))
        self.disk.fuse = Fuse()
        self.workspace = self._open()
        self.clock.now += timedelta(seconds=60)  # its owner cannot be seen, so the lease says that the call is dead
        (settled,) = self.workspace.recover()
        assert settled.direction == ("forward" if steps >= effective else "backward")
        self.model = after if steps >= effective else self.model
        self.undoable.clear()

    # What must always be true.

    def _files(self) -> Model:
        found = dict[str, bytes]()
        for path in PATHS:
            stored = self.disk.read(self.disk.resolve(path), limit=1 << 20)
            if stored is not None:
                found[path] = stored.data
        return found

    @invariant()
    def the_files_are_what_the_model_says(self) -> None:
        assert self._files() == self.model

    @invariant()
    def nothing_is_left_lying_about(self) -> None:
        assert self.store.open_intents() == ()
        assert [path.name for path in self.root.rglob(".surehold-*")] == []

    @invariant()
    def the_history_is_whole_and_newest_first(self) -> None:
        assert self.workspace.history.verify().ok
        seqs = [entry.seq for entry in self.workspace.history.log(LedgerQuery(limit=10_000))]
        assert seqs == list(range(len(seqs), 0, -1))


class OnDisk(Machine):
    """The same, on a real disk with a real database."""

    store_kind: ClassVar[StoreKind] = "sqlite"
    disk_kind: ClassVar[DiskKind] = "local"


def _often(limit: int) -> settings:
    examples = settings.default.max_examples if settings.default else limit
    return settings(max_examples=examples if SOAK else min(examples, limit), stateful_step_count=20)


TestInMemory = Machine.TestCase
TestInMemory.settings = _often(40)
TestOnDisk = OnDisk.TestCase
TestOnDisk.settings = _often(15)
