"""Entries of any kind are switched as a whole: what is checked, what is recorded, and what stays as others left it."""

import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from spec.marks import requirement
from surehold.disk.base import StoredEntry
from surehold.errors import (
    LockTimeout,
    PermissionDenied,
    PermissionRequired,
    ProtectedPath,
    StaleFile,
    StateUnavailable,
    UndoConflict,
)
from surehold.stores.base import Blob, Call, Change, Entry, Intent
from surehold.stores.owner import Owner, current_owner
from surehold.text.plan import Keep
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import Meta, Version, sha256_hex
from surehold.workspace.access.permission import Permission
from surehold.workspace.proposal import Absent, EntrySwitch, Proposal, Receipt, Unproven
from surehold.workspace.runs import entry_writer
from surehold.workspace.runs.entry_writer import (
    _merge_facts,  # pyright: ignore[reportPrivateUsage]
    _trust_unread,  # pyright: ignore[reportPrivateUsage]
)
from surehold.workspace.settings import Mode
from workspaces import Bench, call, make_bench

UNDO = call("undo", undoes="first")
HERE = Meta(mode=0o640, uid=os.getuid(), gid=os.getgid(), mtime_ns=10**18)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("sqlite", "local", tmp_path)
    yield made
    made.workspace.close()


def look(bench: Bench, key: str) -> Version | None:
    entry = bench.workspace.read_entry(key)
    return entry.version if entry else None


def file(data: bytes, **facts: int) -> Version:
    return Version(sha256=sha256_hex(data), size=len(data), meta=replace(HERE, **facts))


def link(to: bytes) -> Version:
    return Version(sha256=sha256_hex(to), size=len(to), meta=replace(HERE, mode=0o777), kind="link")


def folder(mode: int = 0o750) -> Version:
    return Version(sha256=sha256_hex(b"directory"), size=0, meta=replace(HERE, mode=mode), kind="directory")


def put(key: str, new: Version, data: bytes = b"", *, old: Version | None = None) -> EntrySwitch:
    return EntrySwitch(old_key=key if old else "", old=old, new_key=key, new=new, data=data)


def take(key: str, old: Version | None) -> EntrySwitch:
    return EntrySwitch(old_key=key, old=old, new_key="", new=None)


def write(
    bench: Bench, *switches: EntrySwitch, dry_run: bool = False, mode: Mode | None = None, asked: Call = UNDO
) -> Receipt:
    proposals = [
        Proposal(path=one.old_key or one.new_key, edit=Keep(), proof=Unproven(), whole=one) for one in switches
    ]
    permission = Permission(mode) if mode else None
    return bench.workspace.write(*proposals, call=asked, dry_run=dry_run, permission=permission)


def make_tree(bench: Bench) -> Receipt:
    made = put("d", folder()), put("d/a", file(b"one\n"), b"one\n"), put("d/link", link(b"a"), b"a")
    return write(bench, *made, asked=call("run"))


def tree(bench: Bench) -> dict[str, tuple[str, str]]:
    """Return every entry below the root with its kind and what it holds."""
    found = dict[str, tuple[str, str]]()
    for path in sorted(bench.root.rglob("*")):
        kind = stat.filemode(path.lstat().st_mode)
        holds = str(path.readlink()) if path.is_symlink() else path.read_text() if path.is_file() else ""
        found[str(path.relative_to(bench.root))] = (kind, holds)
    return found


TREE = {"d": ("drwxr-x---", ""), "d/a": ("-rw-r-----", "one\n"), "d/link": ("lrwxrwxrwx", "a")}


@requirement("run:undo:exact")
def test_a_tree_comes_and_goes_with_all_of_its_facts(bench: Bench) -> None:
    made = make_tree(bench)

    assert tree(bench) == TREE
    assert (bench.root / "d").stat().st_mtime_ns == (bench.root / "d/a").stat().st_mtime_ns == 10**18
    assert [(one.path, one.change.before, one.change.whole) for one in made.files] == [
        ("d", None, True),
        ("d/a", None, True),
        ("d/link", None, True),
    ]
    assert [one.change.diff for one in made.files] == ["", "--- /dev/null\n+++ d/a\n@@ -0,0 +1 @@\n+one\n", ""]
    assert [one.change_id for one in made.entries] == [made.change_id] * 3
    undone = bench.workspace.history.undo(made.change_id)
    assert tree(bench) == {}
    assert [one.change.after for one in undone.files] == [None] * 3
    bench.workspace.history.redo(made.change_id)
    assert tree(bench) == TREE
    assert bench.workspace.history.verify().ok


def test_a_rehearsal_writes_nothing(bench: Bench) -> None:
    rehearsed = write(bench, put("a", file(b"one\n"), b"one\n"), dry_run=True)

    assert (rehearsed.dry_run, rehearsed.change_id, rehearsed.entries) == (True, "", ())
    assert [(one.plan.after.data, one.change.diff[-5:]) for one in rehearsed.files] == [(b"one\n", "+one\n")]
    assert (tree(bench), bench.workspace.history.log()) == ({}, ())


def test_what_is_as_wanted_is_not_recorded(bench: Bench) -> None:
    make_tree(bench)
    before = look(bench, "d/a")
    assert before is not None

    same = write(bench, put("d/a", before, b"one\n", old=before))

    assert (same.files, same.entries, same.change_id) == ((), (), "")
    assert len(bench.workspace.history.log()) == 3


@pytest.mark.parametrize(
    "old", [None, file(b"two\n"), link(b"one\n")], ids=["it was not there", "other content", "another kind"]
)
def test_an_entry_that_is_not_what_was_expected_stays(bench: Bench, old: Version | None) -> None:
    bench.put("a", b"one\n")

    with pytest.raises(StaleFile, match="`a` was changed while this was planned") as refused:
        write(bench, take("a", old))

    assert (refused.value.reason, refused.value.path) == ("displaced_mismatch", "a")
    assert bench.get("a") == b"one\n"
    with pytest.raises(StaleFile, match="`gone` was changed while this was planned"):
        write(bench, take("gone", file(b"one\n")))


@pytest.mark.parametrize("new", [file(b"x"), folder(), link(b"x")], ids=["file", "directory", "link"])
def test_a_name_that_is_taken_by_now_is_not_given_away(bench: Bench, new: Version) -> None:
    bench.put("a", b"one\n")

    with pytest.raises(StaleFile, match="`a` now exists") as refused:
        write(bench, put("a", new, b"x"))

    assert (refused.value.reason, refused.value.path) == ("displaced_mismatch", "a")
    assert bench.get("a") == b"one\n"


def test_a_directory_that_is_there_already_will_do_as_one(bench: Bench) -> None:
    bench.put("d/other", b"by hand\n")

    write(bench, put("d", folder()), put("d/a", file(b"one\n"), b"one\n"))

    assert sorted(tree(bench)) == ["d", "d/a", "d/other"]
    with pytest.raises(StaleFile, match="`d` now exists"):
        write(bench, put("d", file(b"x"), b"x"))


def test_two_files_take_each_others_names(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.put(name, name.encode())
    one, other = look(bench, "a"), look(bench, "b")

    done = write(
        bench,
        EntrySwitch(old_key="a", old=one, new_key="b", new=one, undoes=("x#0",)),
        EntrySwitch(old_key="b", old=other, new_key="a", new=other, undoes=("x#1",)),
    )

    assert (bench.get("a"), bench.get("b")) == (b"b", b"a")
    assert [(one.path, one.change.to_path, one.change.undoes) for one in done.files] == [
        ("a", "", ("x#0", "x#1")),
        ("b", "", ()),
    ]


def test_a_file_that_moves_is_the_same_file(bench: Bench) -> None:
    bench.put("a", b"one\n")
    inode, old = (bench.root / "a").stat().st_ino, look(bench, "a")

    done = write(bench, EntrySwitch(old_key="a", old=old, new_key="b", new=old))

    assert (bench.root / "b").stat().st_ino == inode
    assert [(one.path, one.change.to_path) for one in done.files] == [("a", "b")]


def test_a_directory_with_other_entries_stays_and_is_named(bench: Bench) -> None:
    make_tree(bench)
    bench.put("d/other", b"by hand\n")

    done = write(bench, *(take(key, look(bench, key)) for key in ("d", "d/a", "d/link")))

    assert sorted(tree(bench)) == ["d", "d/other"]
    assert [(one.path, one.warnings) for one in done.files] == [
        ("d/a", ("`d` stays: it has other entries now.",)),
        ("d/link", ()),
    ]


def test_an_outside_edit_keeps_an_entry_from_being_undone(bench: Bench) -> None:
    made = make_tree(bench)
    bench.put("d/a", b"by hand\n")

    with pytest.raises(UndoConflict, match="`d/a` cannot be taken back"):
        bench.workspace.history.undo(made.change_id)

    assert bench.get("d/a") == b"by hand\n"


def test_a_directory_does_not_come_back_where_a_file_has_its_name(bench: Bench) -> None:
    made = make_tree(bench)
    gone = write(bench, *(take(key, look(bench, key)) for key in ("d", "d/a", "d/link")), asked=call("run"))
    bench.workspace.write(Proposal(path="d", edit=WriteText("a file\n"), proof=Absent()), call=call("create"))

    with pytest.raises(UndoConflict, match="`d` cannot be taken back") as refused:
        bench.workspace.history.undo(gone.change_id)

    assert (refused.value.path, bench.get("d")) == ("d", b"a file\n")
    bench.workspace.history.undo()
    bench.workspace.history.undo(gone.change_id)
    assert tree(bench) == TREE
    assert bench.workspace.history.show(made.change_id).undone_by == ""


@pytest.mark.parametrize(
    ("key", "mode", "error"),
    [("a", "default", PermissionRequired), ("a", "acceptEdits", None), (".bashrc", "acceptEdits", ProtectedPath)],
)
def test_rules_and_mode_hold_for_entries_too(
    bench: Bench, key: str, mode: Mode, error: type[PermissionRequired] | type[ProtectedPath] | None
) -> None:
    switch = put(key, file(b"x"), b"x")
    if error is None:
        done = write(bench, switch, mode=mode)
        assert done.entries[0].call.approval is not None
        assert done.entries[0].call.approval.rule == "mode acceptEdits"
        return
    with pytest.raises(error) as refused:
        write(bench, switch, mode=mode)
    assert bench.get(key) is None
    if error is PermissionRequired:
        assert refused.value.path == key
        assert "surehold undo first" in refused.value.action
        assert write(bench, switch, mode=mode, dry_run=True).dry_run


def test_an_owner_that_cannot_be_given_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def leave_owner(path: str, meta: Meta, *, follow: bool) -> None:
        del path, meta, follow

    monkeypatch.setattr("surehold.disk.entries._set_owner", leave_owner)

    done = write(bench, put("a", file(b"x", uid=12345, gid=54321), b"x"), put("b", file(b"y"), b"y"))

    said = f"`a` belonged to 12345:54321, and now belongs to {os.getuid()}:{os.getgid()}."
    assert [one.warnings for one in done.files] == [(said,), ()]


def test_files_have_a_diff_up_to_a_size_and_a_number(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_writer, "_DIFFED_BYTES", 4)
    monkeypatch.setattr(entry_writer, "_DIFFED_FILES", 3)
    texts = {"a": b"1234", "b": b"12345", "c": b"1", "d": b"2"}

    done = write(bench, *(put(name, file(data), data) for name, data in texts.items()))

    assert [(one.path, bool(one.change.diff), one.change.diff_truncated) for one in done.files] == [
        ("a", True, False),
        ("b", False, True),
        ("c", True, False),
        ("d", False, True),
    ]
    monkeypatch.undo()
    shown = "--- /dev/null\n+++ {0}\n@@ -0,0 +1 @@\n+{1}\n\\ No newline at end of file\n"
    texts_in_order = ((name, data.decode()) for name, data in texts.items())
    assert bench.workspace.history.diff(done.change_id) == "".join(shown.format(*one) for one in texts_in_order)


@requirement("engine:ledger:bounded_diff")
def test_a_long_difference_is_cut_and_its_lines_are_counted(bench: Bench) -> None:
    rows = b"".join(b"row number %d\n" % number for number in range(8_000))

    (one,) = write(bench, put("a", file(rows), rows)).files

    assert len(one.change.diff.encode()) <= 64 * 1024
    assert (one.change.diff_truncated, one.change.added, one.change.removed) == (True, 8_000, 0)


def test_names_that_files_hand_on_are_recorded_each_for_itself(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.put(name, name.encode())
    one, other = look(bench, "a"), look(bench, "b")
    assert one
    assert other

    done = write(
        bench,
        EntrySwitch(old_key="a", old=one, new_key="b", new=one),
        EntrySwitch(old_key="b", old=other, new_key="c", new=other),
    )

    assert (bench.get("a"), bench.get("b"), bench.get("c")) == (None, b"a", b"b")
    assert {(one.change.added, one.change.removed, one.change.diff_truncated) for one in done.files} == {(0, 0, False)}
    sides = [(one.path, one.change.to_path, one.change.before, one.change.after) for one in done.files]
    names = [(path, to, before and before.sha256, after and after.sha256) for path, to, before, after in sides]
    assert names == [("a", "", one.sha256, None), ("b", "", other.sha256, one.sha256), ("c", "", None, other.sha256)]


def test_an_entry_without_facts_is_made_and_nothing_is_said_of_its_owner(bench: Bench) -> None:
    (one,) = write(bench, put("a", replace(file(b"x"), meta=None), b"x")).files

    assert (bench.get("a"), one.warnings) == (b"x", ())


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_change_counts_if_it_was_recorded_although_the_answer_of_the_history_was_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, is_recorded: bool
) -> None:
    finish = bench.store.finish

    def lose_answer(intent_id: str) -> tuple[Entry, ...]:
        if is_recorded:
            finish(intent_id)
        raise StateUnavailable("The answer was lost.")

    monkeypatch.setattr(bench.store, "finish", lose_answer)
    if is_recorded:
        done = write(bench, put("a", file(b"x"), b"x"))
        assert [(entry.change_id, entry.change.path) for entry in done.entries] == [(done.change_id, "a")]
    else:
        with pytest.raises(StateUnavailable, match="The answer was lost"):
            write(bench, put("a", file(b"x"), b"x"))

    assert bench.get("a") == (b"x" if is_recorded else None)
    assert bench.store.open_intents() == ()
    assert [entry.ok for entry in bench.workspace.history.log()] == [is_recorded]


UNREAD = StoredEntry(version=replace(file(b"old"), sha256=""), data=b"", links=1, identity=(1, 2))


@pytest.mark.parametrize(
    ("old", "new", "is_trusted"),
    [
        (file(b"old"), file(b"old", mode=0o600), True),
        (file(b"old"), link(b"old"), False),
        (file(b"old"), file(b"new"), False),
        (file(b"old"), None, False),
        (file(b"older"), file(b"older"), False),
        (link(b"old"), file(b"old"), False),
        (None, file(b"old"), False),
    ],
)
def test_a_file_that_we_may_not_read_gets_another_name_or_other_facts_and_nothing_else(
    old: Version | None, new: Version | None, is_trusted: bool
) -> None:
    switch = EntrySwitch(old_key="a", old=old, new_key="a" if new else "", new=new)
    if is_trusted:
        assert _trust_unread(switch, UNREAD) == replace(UNREAD, version=file(b"old"))
    else:
        with pytest.raises(
            PermissionDenied, match="`a` may not be read, so what it holds now would be lost"
        ) as refused:
            _trust_unread(switch, UNREAD)
        assert refused.value.path == "a"
    read, a_link = replace(UNREAD, version=file(b"x")), replace(UNREAD, version=replace(link(b"old"), sha256=""))
    assert [_trust_unread(switch, one) for one in (read, a_link, None)] == [read, a_link, None]


OLD, NEW = file(b"old"), file(b"new")
INTERRUPTED = {
    "nothing has happened": ({"a": b"old"}, "backward", {"a": b"old"}, ()),
    "all has happened": ({"a": b"new", "b": b"new"}, "forward", {"a": b"new", "b": b"new"}, ()),
    "a part has happened": ({"a": b"new"}, "backward", {"a": b"old"}, ()),
    "the other part has": ({"a": b"old", "b": b"new"}, "backward", {"a": b"old"}, ()),
    "what was there is gone": ({"b": b"new"}, "backward", {"a": b"old"}, ()),
    "others have written": ({"a": b"by hand", "b": b"new"}, "conflict", {"a": b"by hand"}, ("a",)),
    "others have written the new one": (
        {"a": b"new", "b": b"by hand"},
        "conflict",
        {"a": b"old", "b": b"by hand"},
        ("b",),
    ),
}


@requirement("engine:recover:backward", "engine:recover:forward")
@pytest.mark.parametrize(("now", "direction", "then", "conflicts"), INTERRUPTED.values(), ids=INTERRUPTED)
def test_what_was_interrupted_is_finished_or_taken_back(
    bench: Bench, now: dict[str, bytes], direction: str, then: dict[str, bytes], conflicts: tuple[str, ...]
) -> None:
    for name, data in now.items():
        bench.put(name, data)
        (bench.root / name).chmod(0o640)
    changes = (
        Change(path="a", before=OLD, after=NEW, whole=True),
        Change(path="b", before=None, after=NEW, whole=True),
    )
    dead = Owner(host="elsewhere", boot="", pid=1, started="")
    intent = Intent(id="left", call=UNDO, changes=changes, owner=dead, began=bench.clock().isoformat())
    bench.store.begin(intent, [Blob(data=one, sha256=sha256_hex(one)) for one in (b"old", b"new")], lease=-1, fence=0)

    (settled,) = bench.workspace.recover()

    assert (settled.direction, settled.conflicts, settled.problem) == (direction, conflicts, "")
    assert {path.name: path.read_bytes() for path in bench.root.iterdir()} == then
    assert {entry.ok for entry in bench.workspace.history.log()} == {direction == "forward"}


def test_an_entry_with_the_mode_of_neither_version_is_left_to_its_writer(bench: Bench) -> None:
    bench.put("a", b"new")
    (bench.root / "a").chmod(0o600)
    dead = Owner(host="elsewhere", boot="", pid=1, started="")
    changes = (Change(path="a", before=OLD, after=NEW, whole=True),)
    intent = Intent(id="left", call=UNDO, changes=changes, owner=dead, began=bench.clock().isoformat())
    bench.store.begin(intent, [Blob(data=one, sha256=sha256_hex(one)) for one in (b"old", b"new")], lease=-1, fence=0)

    (settled,) = bench.workspace.recover()

    assert (settled.direction, settled.conflicts) == ("conflict", ("a",))
    assert bench.get("a") == b"new"


def test_paths_that_another_change_holds_are_left_to_it(bench: Bench) -> None:
    held = Change(path="a", before=None, after=file(b"x"))
    intent = Intent(id="other", call=call(), changes=(held,), owner=current_owner(), began=bench.clock().isoformat())
    bench.store.begin(intent, [], lease=60, fence=0)

    with pytest.raises(LockTimeout, match=r"Another change \(edit, other\) holds these paths") as refused:
        write(bench, put("a", file(b"x"), b"x"))

    assert (refused.value.details["holder"], tree(bench)) == ("other", {})


def test_what_cannot_be_recorded_is_taken_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.put("a", b"one\n")
    before = tree(bench)

    def fail(*_: object, **__: object) -> NoReturn:
        raise StateUnavailable("The disk with the history is full.", reason="disk_full")

    monkeypatch.setattr(bench.store, "finish", fail)
    with pytest.raises(StateUnavailable, match="is full"):
        write(bench, take("a", look(bench, "a")), put("d", folder()), put("d/b", file(b"x"), b"x"))

    assert tree(bench) == before
    assert bench.store.open_intents() == ()
    assert {entry.error_kind for entry in bench.workspace.history.log()} == {StateUnavailable.kind}


WAS, THEN = (
    Meta(mode=0o600, uid=1, gid=1, mtime_ns=1),
    Meta(mode=0o644, uid=2, gid=2, mtime_ns=2, xattrs=(("user.a", b""),)),
)


def named(meta: Meta | None, data: bytes = b"x") -> Version:
    return Version(sha256=sha256_hex(data), size=1, meta=meta)


@pytest.mark.parametrize(
    ("fact", "value"), [("mode", 0o777), ("uid", 9), ("gid", 9), ("mtime_ns", 9), ("xattrs", (("user.b", b""),))]
)
def test_a_fact_that_another_program_changed_since_stays(fact: str, value: object) -> None:
    now = replace(WAS, **{fact: value})
    assert _merge_facts(named(WAS), now, named(THEN)) == replace(THEN, **{fact: value})
    assert _merge_facts(named(WAS), WAS, named(THEN)) == THEN


def test_new_content_is_as_old_as_its_writing_where_the_time_was_changed() -> None:
    now = replace(WAS, mtime_ns=9)
    assert _merge_facts(named(WAS), now, named(THEN, b"y")) == replace(THEN, mtime_ns=0)
    assert _merge_facts(named(WAS), WAS, named(THEN, b"y")) == THEN


def test_facts_that_are_not_known_come_from_what_is() -> None:
    assert _merge_facts(None, None, named(THEN)) == THEN
    assert _merge_facts(named(WAS), None, named(None)) is None
    assert _merge_facts(None, WAS, named(THEN)) == THEN
    assert _merge_facts(named(None), WAS, named(THEN)) == THEN
    assert _merge_facts(named(WAS), WAS, named(None)) == WAS
