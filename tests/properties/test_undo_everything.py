"""Any history can be undone completely, in any order: every file and directory is again what it was, and no advice is wrong."""

import itertools
import os
import random
import re
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.errors import SureholdError, UndoConflict
from surehold.stores.base import Call, LedgerQuery, Operation
from surehold.text.plan import Delete, Edit, Keep
from surehold.text.rewrite import WriteBytes
from surehold.text.snapshot import sha256_hex
from surehold.workspace.past.selectors import Selectors
from surehold.workspace.proposal import Absent, Proposal, Sha256
from workspaces import Bench, call, make_bench

pytestmark = requirement(
    "engine:undo:any_order", "engine:undo:advice", "history:undo:directories", "promise:nothing_lost:undo"
)
HISTORIES = 400 if os.environ.get("SUREHOLD_SOAK") else 40
NAMES = ("a", "b", "c", "dir/d", "dir/e", "other/deep/f", "other/deep/g", "other/h")
Tree = dict[str, tuple[int, bytes]]


class Historian:
    """Makes a random history in a real workspace, and takes all of it back."""

    def __init__(self, bench: Bench, seed: int, *, outside: bool) -> None:
        self.bench, self.random, self.outside = bench, random.Random(seed), outside
        self.history, self.words = bench.workspace.history, itertools.count()
        for name in NAMES[:4]:
            bench.put(name, self.new_text())
            (bench.root / name).chmod(self.random.choice((0o644, 0o755)))

    def new_text(self) -> bytes:
        """Return a few lines, many of them equal; the last one may have no terminator."""
        lines = self.random.choices([b"{\n", b"}\n", b"\n", b"one\n", b"two\r\n", b"three\n", self.new_line()], k=12)
        return b"".join(lines[: self.random.randint(0, 12)]) + self.random.choice([b"", b"", b"end"])

    def new_line(self) -> bytes:
        return b"word %d\n" % next(self.words)

    def tree(self) -> Tree:
        files = [path for path in self.bench.root.rglob("*") if path.is_file()]
        return {
            str(path.relative_to(self.bench.root)): (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
            for path in files
        }

    def directories(self) -> set[str]:
        return {str(path.relative_to(self.bench.root)) for path in self.bench.root.rglob("*") if path.is_dir()}

    # What can happen.

    def make_history(self, length: int) -> None:
        ways = self.ways()
        for _ in range(length):
            try:
                self.random.choice(ways)()
            except SureholdError:
                continue  # there was nothing to choose from, or it was refused: nothing happened

    def ways(self) -> list[Callable[[], object]]:
        ways: list[Callable[[], object]] = [self.edit, self.edit, self.edit, self.create, self.delete]
        ways += [self.move, self.move_over, self.patch, self.restore, self.undo_one, self.redo_one]
        return ways + ([self.edit_outside, self.delete_outside] if self.outside else [])

    def call(self, operation: Operation) -> Call:
        return call(operation)

    def present(self) -> str:
        return self.random.choice([*self.tree(), "missing"])

    def free(self) -> str:
        return self.random.choice([name for name in NAMES if name not in self.tree()] or ["a"])

    def proof(self, name: str) -> Sha256:
        return Sha256(sha256_hex(self.bench.get(name) or b""))

    def changed(self, name: str) -> bytes:
        """Return the text of a file with one line or one block changed, added or removed."""
        lines = (self.bench.get(name) or b"").splitlines(keepends=True)
        at = self.random.randint(0, len(lines))
        new = self.random.choice([[self.new_line()], [b"}\n"], [], [self.new_line(), b"one\n"], [b"one\n"]])
        lines[at : at + self.random.choice((0, 0, 1, 1, 2))] = new
        return self.new_text() if self.random.random() < 0.1 else b"".join(lines)

    def edited(self, name: str, to_path: str = "") -> Proposal:
        edit: Edit = Keep() if to_path and self.random.random() < 0.5 else WriteBytes(self.changed(name))
        mode = self.random.choice((None, None, None, 0o600, 0o755))
        return Proposal(path=name, to_path=to_path, edit=edit, proof=self.proof(name), mode=mode)

    def edit(self) -> None:
        self.bench.workspace.write(self.edited(self.present()), call=self.call("edit"))

    def create(self) -> None:
        self.bench.workspace.write(self.created(self.free()), call=self.call("create"))

    def created(self, name: str) -> Proposal:
        return Proposal(path=name, edit=WriteBytes(self.new_text()), proof=Absent())

    def deleted(self, name: str) -> Proposal:
        return Proposal(path=name, edit=Delete(), proof=self.proof(name), permanent=self.random.random() < 0.2)

    def delete(self) -> None:
        self.bench.workspace.write(self.deleted(self.present()), call=self.call("delete"))

    def move(self) -> None:
        self.bench.workspace.write(self.edited(self.present(), self.free()), call=self.call("move"))

    def move_over(self) -> None:
        name, to_path = self.present(), self.present()
        proposal = Proposal(
            path=name, to_path=to_path, edit=Keep(), proof=self.proof(name), to_proof=self.proof(to_path)
        )
        self.bench.workspace.write(proposal, call=self.call("move"))

    def patch(self) -> None:
        names = self.random.sample(NAMES, k=4)
        here, free = ([n for n in names if (n in self.tree()) is known] for known in (True, False))
        proposals = [self.random.choice((self.edited, self.edited, self.deleted))(name) for name in here[1:]]
        proposals += [self.edited(here[0], free[0])] if here and free else []
        proposals += [self.created(name) for name in free[1:]]
        self.bench.workspace.write(*proposals, call=self.call("patch"))

    def restore(self) -> None:
        items = self.history.trash()
        if items:
            item = self.random.choice(items)
            self.history.restore(item.id, to_path=self.random.choice(("", self.free())))

    def undo_one(self) -> None:
        if ids := self.in_effect():
            self.history.undo(self.random.choice(ids))

    def redo_one(self) -> None:
        if ids := [name for name, active in self.effects().items() if not active]:
            self.history.redo(self.random.choice(ids))

    def edit_outside(self) -> None:
        name = self.random.choice(list(self.tree()) or ["a"])
        self.bench.put(name, self.changed(name))

    def delete_outside(self) -> None:
        if names := list(self.tree()):
            self.bench.put(self.random.choice(names), None)

    # The way back.

    def effects(self) -> dict[str, bool]:
        """Tell for every change whether it is in effect, from what the log says alone."""
        undoes, effects = dict[str, str](), dict[str, bool]()
        for row in reversed(self.history.log(LedgerQuery(ok_only=True, limit=10_000))):
            if row.change_id in undoes:
                continue
            undoes[row.change_id] = root = row.call.undoes
            while undoes.get(root):
                root = undoes[root]
            effects |= {root: not effects[root]} if root else {row.change_id: True}
        return effects

    def in_effect(self) -> list[str]:
        return [name for name, active in self.effects().items() if active]

    def undo_everything(self) -> int:
        """Undo one change after the other, in any order; return how often the advice of a refusal was needed."""
        advised = 0
        while ids := self.in_effect():
            chosen = self.random.choice(ids)
            try:
                self.history.undo(chosen)
            except UndoConflict as refused:
                self.follow_advice(chosen, refused)
                advised += 1
        return advised

    def follow_advice(self, chosen: str, refused: UndoConflict) -> None:
        later = refused.details["later"]
        assert later
        assert all(name in refused.action for name in later[:10])
        for name in later:
            self.switch(name)
        self.history.undo(chosen)

    def switch(self, name: str) -> None:
        (self.history.undo if self.effects()[name] else self.history.redo)(name)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_undoing_everything_in_any_order_gives_back_every_file(tmp_path: Path, seed: int) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    historian = Historian(bench, seed, outside=False)
    before, directories = historian.tree(), historian.directories()

    historian.make_history(18)
    historian.undo_everything()

    assert all(bench.workspace.history.undone_by(name) for name in historian.effects())
    assert historian.tree() == before
    assert historian.directories() == directories
    assert [path.name for path in bench.root.rglob(".surehold-*")] == []
    assert bench.workspace.history.verify().ok
    bench.workspace.close()


AGENTS = ("ada", "bob", "cyd")
_COMMAND = re.compile(r"surehold (undo|redo) (\w+)")


class SelectingHistorian(Historian):
    """Also undoes and redoes what an agent did as one change, and takes such changes back."""

    def call(self, operation: Operation) -> Call:
        return call(operation, agent=self.random.choice(AGENTS))

    def ways(self) -> list[Callable[[], object]]:
        return [*super().ways(), self.undo_agent, self.undo_agent, self.redo_agent, self.undo_switch]

    def undo_agent(self) -> None:
        self.try_selection(self.history.undo_selected)

    def redo_agent(self) -> None:
        self.try_selection(self.history.redo_selected)

    def try_selection(self, switch: Callable[..., object]) -> None:
        words = Selectors(agent=self.random.choice(AGENTS))
        before = self.tree()
        try:
            switch(words, partial=False)
        except UndoConflict as refused:
            assert self.tree() == before
            if "--partial" in refused.action:
                switch(words, partial=True)

    def undo_switch(self) -> None:
        """Take an undo or a redo back, whatever it switched."""
        rows = self.history.log(LedgerQuery(ok_only=True, limit=10_000))
        ids = {row.change_id for row in rows if row.call.operation in {"undo", "redo"}}
        if ids := sorted(name for name in ids if not self.history.undone_by(name)):
            self.history.undo(self.random.choice(ids))

    def effects(self) -> dict[str, bool]:
        own = dict[str, bool]()
        board = self.history.load_board()
        for row in reversed(self.history.log(LedgerQuery(ok_only=True, limit=10_000))):
            if row.call.operation not in {"undo", "redo"}:
                own[row.change_id] = own.get(row.change_id, False) or board.is_on(row)
        return own

    def follow_advice(self, chosen: str, refused: UndoConflict) -> None:
        if since := refused.details.get("since"):
            assert f"surehold undo --since {since}" in refused.action
            self.history.undo_selected(Selectors(since=since))
            return
        commands = _COMMAND.findall(refused.action)
        assert commands, refused.action
        for verb, name in commands:
            (self.history.undo if verb == "undo" else self.history.redo)(name)
        if refused.action.startswith("Instead"):
            assert self.history.undone_by(chosen)
        elif " more." not in refused.action:
            self.history.undo(chosen)


@pytest.mark.parametrize("seed", range(HISTORIES // 4))
def test_whatever_a_refusal_advises_works_also_after_selections_were_undone(tmp_path: Path, seed: int) -> None:
    bench = make_bench("sqlite", "local", tmp_path)
    historian = SelectingHistorian(bench, seed, outside=False)
    before, directories = historian.tree(), historian.directories()

    historian.make_history(24)
    historian.undo_everything()

    assert historian.tree() == before
    assert historian.directories() == directories
    assert bench.workspace.history.verify().ok
    bench.workspace.close()
