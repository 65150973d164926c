"""The undo of a command fails half-way: everything is as it was, nothing stays held, and it can be tried again."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from capture.fingerprint import take_fingerprint
from spec.marks import requirement
from surehold import Settings, open_workspace
from surehold.capture.filter import can_listen
from surehold.disk.base import KeepBytes, Step
from surehold.disk.local import LocalDisk
from surehold.errors import StateUnavailable
from surehold.library.workspace import AgentWorkspace
from surehold.stores.base import Entry
from surehold.stores.sqlite.store import SqliteStore
from surehold.text.snapshot import sha256_hex
from surehold.workspace.settings import Limits

pytestmark = pytest.mark.skipif(bool(can_listen()), reason="calls cannot be captured here")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[AgentWorkspace]:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text("one\n")
    (root / "sub/b.txt").write_text("two\n")
    with open_workspace(root, settings=Settings(state_dir=tmp_path / "state")) as opened:
        yield opened


def change_everything(workspace: AgentWorkspace, also: str = "") -> str:
    script = f"echo x >> a.txt; rm -r sub; mkdir new; ln -s a.txt new/link; {also}"
    done = workspace.run(["sh", "-c", script])
    assert done.change_id
    return done.change_id


@requirement("engine:recover:again", "run:undo:exact")
@pytest.mark.parametrize("also", ["", "chmod 0750 ."], ids=["entries", "the root too"])
def test_an_undo_that_cannot_be_recorded_is_taken_back_and_holds_nothing(
    workspace: AgentWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, also: str
) -> None:
    before = take_fingerprint(tmp_path / "root")
    change = change_everything(workspace, also)
    after = take_fingerprint(tmp_path / "root")

    def fail(*_: object) -> NoReturn:
        raise StateUnavailable("The disk with the history is full.", reason="disk_full")

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "finish", fail)
        with pytest.raises(StateUnavailable, match="is full"):
            workspace.history.undo(change)

    assert take_fingerprint(tmp_path / "root") == after
    workspace.history.undo(change)  # its paths are free
    assert take_fingerprint(tmp_path / "root") == before


@requirement("engine:recover:again")
def test_bytes_of_others_that_an_undo_meets_while_it_is_taken_back_are_kept(
    workspace: AgentWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = change_everything(workspace)
    after, apply = take_fingerprint(tmp_path / "root"), LocalDisk.apply

    def fail(*_: object) -> NoReturn:
        raise StateUnavailable("The disk with the history is full.", reason="disk_full")

    def meet_others(
        disk: LocalDisk, steps: Sequence[Step], *, tag: str, fence: Callable[[], None], keep: KeepBytes
    ) -> None:
        if tag.endswith("r"):
            keep("a.txt", b"by hand\n")
        apply(disk, steps, tag=tag, fence=fence, keep=keep)

    monkeypatch.setattr(SqliteStore, "finish", fail)
    monkeypatch.setattr(LocalDisk, "apply", meet_others)
    with pytest.raises(StateUnavailable, match="is full"):
        workspace.history.undo(change)

    assert take_fingerprint(tmp_path / "root") == after
    assert workspace.store.read_blob(sha256_hex(b"by hand\n")) == b"by hand\n"


@requirement("engine:recover:again")
def test_an_undo_that_was_recorded_although_the_store_failed_afterwards_stays(
    workspace: AgentWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, finish = take_fingerprint(tmp_path / "root"), SqliteStore.finish
    change = change_everything(workspace)

    def finish_untold(store: SqliteStore, intent_id: str) -> tuple[Entry, ...]:
        finish(store, intent_id)
        raise StateUnavailable("The disk was removed just after the commit.", reason="io_error")

    monkeypatch.setattr(SqliteStore, "finish", finish_untold)
    receipt = workspace.history.undo(change)

    assert take_fingerprint(tmp_path / "root") == before
    assert receipt.change_id == workspace.history.log()[0].change_id


@requirement("engine:recover:again")
def test_an_undo_whose_lease_was_lost_changes_nothing(
    workspace: AgentWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change = change_everything(workspace)
    after = take_fingerprint(tmp_path / "root")

    def refuse(*_: object, **__: object) -> bool:
        return False

    monkeypatch.setattr(SqliteStore, "renew", refuse)
    overdue = Settings(state_dir=tmp_path / "state", limits=Limits(lease=-1))
    with (
        open_workspace(tmp_path / "root", settings=overdue) as slow,
        pytest.raises(StateUnavailable, match="another process settled it"),
    ):
        slow.history.undo(change)

    assert take_fingerprint(tmp_path / "root") == after
