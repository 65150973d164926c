"""Undo takes the directories away that a change had made for its files, and nothing else."""

import os
from pathlib import Path

import pytest

from spec.marks import requirement
from surehold.app import Settings, open_workspace
from surehold.disk.local import LocalDisk
from surehold.stores.base import Entry, LedgerQuery
from surehold.stores.ledger_entries import change_from_json, change_to_json
from surehold.stores.sqlite.store import SqliteStore
from surehold.text.plan import Delete, Keep
from surehold.text.rewrite import WriteText
from surehold.workspace.past.selectors import Selectors
from surehold.workspace.proposal import Absent, Exact, Proposal
from workspaces import Bench, call, make_bench

pytestmark = requirement("history:undo:directories")


@pytest.fixture
def local(tmp_path: Path) -> Bench:
    return make_bench("sqlite", "local", tmp_path)


def created(name: str) -> Proposal:
    return Proposal(path=name, edit=WriteText("text\n"), proof=Absent())


def create(bench: Bench, *names: str) -> str:
    return bench.workspace.write(*map(created, names), call=call("create")).change_id


def directories(bench: Bench) -> list[str]:
    return sorted(str(path.relative_to(bench.root)) for path in bench.root.rglob("*") if path.is_dir())


def test_a_new_file_goes_with_its_directories_and_comes_back_with_them(local: Bench) -> None:
    made = create(local, "sub/deep/x.txt")
    assert local.store.list_entries(LedgerQuery(change_id=made))[0].change.makes == ("sub", "sub/deep")

    local.workspace.history.undo(made)
    assert directories(local) == []

    local.workspace.history.redo(made)
    assert directories(local) == ["sub", "sub/deep"]
    local.workspace.history.undo(made)
    assert directories(local) == []
    assert local.workspace.history.verify().ok


def test_a_move_a_patch_and_a_restore_take_their_directories_back(local: Bench) -> None:
    local.put("a", b"a\n")
    history, workspace = local.workspace.history, local.workspace
    moved = workspace.write(
        Proposal(path="a", to_path="to/here/a", edit=Keep(), proof=Exact()), call=call("move")
    ).change_id
    history.undo(moved)
    assert directories(local) == []

    patched = create(local, "one/x", "one/two/y", "three/z")
    history.undo(patched)
    assert directories(local) == []

    deleted = workspace.write(Proposal(path="a", edit=Delete(), proof=Exact()), call=call("delete"))
    item = deleted.entries[0].change.trash_id
    restored = history.restore(item, to_path="back/in/a").change_id
    history.undo(restored)
    assert directories(local) == []


def test_what_was_there_or_is_used_by_others_stays(local: Bench) -> None:
    (local.root / "empty").mkdir()
    history = local.workspace.history
    history.undo(create(local, "empty/x"))
    assert directories(local) == ["empty"]

    made = create(local, "sub/deep/x")
    local.put("sub/other", b"of another program\n")
    history.undo(made)
    assert directories(local) == ["empty", "sub"]
    assert local.get("sub/other") == b"of another program\n"


@pytest.mark.parametrize("newest_first", [True, False])
def test_a_directory_goes_with_the_last_file_whichever_change_made_it(local: Bench, newest_first: bool) -> None:
    history, changes = local.workspace.history, [create(local, "sub/x"), create(local, "sub/y")]
    first, second = reversed(changes) if newest_first else changes

    history.undo(first)
    assert directories(local) == ["sub"]
    history.undo(second)
    assert directories(local) == []


def test_a_directory_stays_as_long_as_the_change_that_made_it_is_in_effect(local: Bench) -> None:
    create(local, "sub/x")
    local.workspace.write(Proposal(path="sub/x", edit=Delete(), proof=Exact()), call=call("delete"))

    local.workspace.history.undo(create(local, "sub/y"))

    assert directories(local) == ["sub"]


def test_a_moved_file_takes_back_the_directory_that_it_left(local: Bench) -> None:
    create(local, "sub/x")
    local.workspace.write(Proposal(path="sub/x", to_path="y", edit=Keep(), proof=Exact()), call=call("move"))

    local.workspace.history.undo_selected(Selectors(since="2026-01-01"))

    assert [*local.root.iterdir()] == []


def test_directories_of_a_second_root_go_too_and_never_the_root(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for root in (first, second):
        root.mkdir()
    with open_workspace(first, second, settings=Settings(state_dir=tmp_path / "state")) as workspace:
        made = workspace.write(created(f"{second}/sub/x"), call=call("create")).change_id
        workspace.history.undo(made)

    assert [*second.iterdir()] == []


def test_a_writer_that_comes_in_between_keeps_the_directory(local: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    made, real = create(local, "sub/x"), LocalDisk.lock_located

    def come_first(disk: LocalDisk, *words: object, **more: object) -> object:
        local.put("sub/late", b"late\n")
        return real(disk, *words, **more)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(LocalDisk, "lock_located", come_first)
    local.workspace.history.undo(made)

    assert local.get("sub/late") == b"late\n"
    assert local.get("sub/x") is None


def test_a_kill_before_the_directories_go_leaves_them_empty_and_the_history_whole(
    local: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(local, "sub/x")
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", _raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            local.workspace.history.undo(made)

    assert directories(local) == ["sub"]
    assert local.workspace.history.undone_by(made)
    assert local.workspace.history.verify().ok
    local.workspace.history.redo(made)
    assert local.get("sub/x") == b"text\n"


def _raise_interrupt(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_change_without_new_directories_is_spelled_as_before(local: Bench) -> None:
    local.put("sub/there", b"")
    made, plain = (
        change_to_json(local.store.list_entries(LedgerQuery(change_id=create(local, name)))[0].change)
        for name in ("new/x", "sub/y")
    )

    assert "makes" not in plain
    assert change_from_json(made).makes == ("new",)


def test_many_directories_go_with_one_look_at_the_history(local: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[LedgerQuery]()
    list_entries = SqliteStore.list_entries

    def count(store: SqliteStore, query: LedgerQuery) -> tuple[Entry, ...]:
        asked.append(query)
        return list_entries(store, query)

    def queries_of(number: int) -> int:
        for one in range(number):
            create(local, f"{number}/{one}/x.txt", f"{number}/{one}/y.txt")
        asked.clear()
        local.workspace.history.undo_selected(Selectors(paths=(str(number),)))
        assert directories(local) == []
        return len(asked)

    monkeypatch.setattr(SqliteStore, "list_entries", count)
    assert queries_of(20) == queries_of(2)


def test_a_directory_that_was_made_again_later_stays(local: Bench) -> None:
    history, first = local.workspace.history, create(local, "a/x.txt", "b/x.txt")
    history.undo(first)
    second = create(local, "b/y.txt")
    history.redo(first)
    local.workspace.write(Proposal(path="b/y.txt", edit=Delete(), proof=Exact()), call=call("delete"))

    history.undo(first)
    assert directories(local) == ["b"]  # the second change, which made it last, is in effect
    assert [entry.change.makes for entry in local.store.list_entries(LedgerQuery(change_id=second))] == [("b",)]
