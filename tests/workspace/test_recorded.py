"""What the history knows of an entry of any kind: its name, its bytes, and what it was in words."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from surehold.errors import DeniedByRule, NotAFile, NotFound, OutsideWorkspace
from surehold.stores.base import Change, Intent
from surehold.stores.owner import current_owner
from surehold.text.plan import Delete, Keep
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import ABSENT, Kind, Meta, Snapshot, Version, sha256_hex
from surehold.workspace.past import recorded
from surehold.workspace.past.recorded import (
    describe_facts,
    find_trash_item,
    load_file,
    load_recorded,
    read_recorded,
    recorded_key,
    recorded_keys,
)
from surehold.workspace.paths import Policy
from surehold.workspace.proposal import EntrySwitch, Exact, Proposal, Unproven
from workspaces import Bench, call, make_bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("sqlite", "local", tmp_path, policy=Policy(deny=("secret",)))
    yield made
    made.workspace.close()


def version(kind: Kind, data: bytes = b"", mode: int = 0o644, *, size: int | None = None) -> Version:
    facts = {"size": len(data) if size is None else size, "meta": Meta(mode=mode, mtime_ns=1)}
    return Version(sha256=sha256_hex(data), kind=kind, **facts)  # type: ignore[arg-type]


def record(bench: Bench, *changes: Change, name: str = "run") -> None:
    """Record what a command did, with none of its bytes."""
    intent = Intent(id=name, call=call("run"), changes=(), owner=current_owner(), began=bench.clock().isoformat())
    bench.store.begin(intent, (), lease=60, fence=0)
    bench.store.finish_run(name, call("run"), changes)


def write(bench: Bench, path: str, text: str) -> None:
    bench.workspace.write(Proposal(path=path, edit=WriteText(text), proof=Unproven()), call=call())


def make_link(bench: Bench, key: str, to: bytes) -> None:
    switch = EntrySwitch(old_key="", old=None, new_key=key, new=version("link", to, 0o777), data=to)
    bench.workspace.write(Proposal(path=key, edit=Keep(), proof=Unproven(), whole=switch), call=call("run"))


def test_a_link_that_the_history_knows_is_not_followed_and_others_are(bench: Bench) -> None:
    write(bench, "file", "1")
    (bench.root / "unknown-link").symlink_to("file")
    make_link(bench, "link", b"file")
    record(bench, Change(path="secret", before=None, after=version("link", b"file", 0o777)))

    keys = [
        recorded_key(bench.workspace, word) for word in ("file", "./file", str(bench.root / "file"), "unknown-link")
    ]
    assert keys == ["file"] * 4
    links = [recorded_key(bench.workspace, word) for word in ("link", "x/../link", str(bench.root / "link"))]
    assert links == ["link"] * 3
    with pytest.raises(DeniedByRule):
        recorded_key(bench.workspace, "secret")


def test_a_directory_names_all_that_was_recorded_below_it(bench: Bench) -> None:
    for name in ("d/b", "d/a/c", "dd", "other"):
        write(bench, name, "1")
    bench.workspace.write(Proposal(path="d/b", to_path="d/moved", edit=Keep(), proof=Exact()), call=call("move"))
    bench.workspace.write(Proposal(path="other", to_path="d/from", edit=Keep(), proof=Exact()), call=call("move"))

    assert recorded_keys(bench.workspace, "d") == ["d/a/c", "d/b", "d/from", "d/moved"]
    assert recorded_keys(bench.workspace, "d/") == recorded_keys(bench.workspace, "d")
    assert recorded_keys(bench.workspace, "dd") == ["dd"]
    record(bench, Change(path="d", before=None, after=version("directory")))
    assert recorded_keys(bench.workspace, "d")[0] == "d"
    for name in ("d/refused", "refused"):
        with pytest.raises(NotFound):
            bench.workspace.write(Proposal(path=name, edit=Delete(), proof=Exact()), call=call("delete"))
    assert "d/refused" not in recorded_keys(bench.workspace, "d")
    for name in ("unknown", "refused"):
        with pytest.raises(NotFound) as refused:
            recorded_keys(bench.workspace, name)
        assert (refused.value.reason, refused.value.message) == ("no_history", f"`{name}` is not in the history.")
    with pytest.raises(OutsideWorkspace):
        recorded_keys(bench.workspace, "/")


def test_a_deleted_file_is_named_by_its_id_or_an_end_of_it(bench: Bench) -> None:
    for name in ("a", "b"):
        write(bench, name, "1")
        bench.workspace.write(Proposal(path=name, edit=Delete(), proof=Exact()), call=call("delete"))
    newer, older = bench.workspace.history.trash()

    for item in (newer, older):
        assert [find_trash_item(bench.store, word) for word in (item.id, item.id[-4:], item.id[-4:].upper())] == [
            item
        ] * 3
    for word in (newer.id[-3:], newer.id[:4], "nonsense", ""):
        with pytest.raises(NotFound):
            find_trash_item(bench.store, word)
    bench.workspace.history.empty_trash([newer.id])
    with pytest.raises(NotFound):
        find_trash_item(bench.store, newer.id)


@pytest.mark.parametrize("names_it", [True, False])
def test_bytes_that_were_not_stored_are_read_from_a_file_that_has_them(bench: Bench, names_it: bool) -> None:
    known = version("file", b"kept nowhere")
    record(bench, Change(path="a", before=version("file", b"older"), after=known))
    bench.put("a", b"kept nowhere")
    bench.put("b", b"kept nowhere")

    assert read_recorded(bench.workspace, known.sha256, "b" if names_it else "") == b"kept nowhere"
    bench.put("a", b"by another program")
    if names_it:
        assert read_recorded(bench.workspace, known.sha256, "b") == b"kept nowhere"
    else:
        with pytest.raises(NotFound) as refused:
            read_recorded(bench.workspace, known.sha256)
        assert refused.value.reason == "blob_missing"


BIG, LARGE, SMALL = 1 << 30, 10 << 20, 10


@pytest.mark.parametrize(
    ("before", "size", "why"),
    [
        (b"1", BIG, "files above 512 MiB are not stored as a command left them"),
        (None, BIG, "files above 512 MiB are not stored as a command left them"),
        (None, SMALL, "of the new files of a command 8 MiB are stored, all together"),
        (b"1", LARGE, "16 MiB of changes in large files are stored of a command, all together"),
        (b"1", SMALL, ""),
    ],
)
def test_why_a_command_left_bytes_that_were_not_kept_is_said_with_the_way_back(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, before: bytes | None, size: int, why: str
) -> None:
    limits = {"MAX_KEPT_AFTER_BYTES": 512 << 20, "CREATED_BUDGET_BYTES": 8 << 20, "DIFFERING_BUDGET_BYTES": 16 << 20}
    for name, limit in {**limits, "SMALL_AFTER_BYTES": 1 << 20}.items():
        monkeypatch.setattr(recorded, name, limit)
    for text in ("1", "2"):
        write(bench, "other", text)
    bench.clock.now += timedelta(days=9)
    old = None if before is None else version("file", before)
    lost = version("file", b"lost", size=size)
    record(bench, Change(path="a", before=version("file", b"0"), after=version("file", b"1")), name="earlier")
    record(bench, Change(path="a", before=old, after=lost), name="lossy")
    record(bench, Change(path="a", before=lost, after=version("file", b"2", size=LARGE)), name="later")
    record(bench, Change(path="a", before=version("file", b"2", size=LARGE), after=None), name="last")

    def refusal(key: str = "a") -> NotFound:
        with pytest.raises(NotFound) as refused:
            read_recorded(bench.workspace, lost.sha256, key)
        return refused.value

    found = refusal()
    assert refusal("").reason == refusal("b").reason == "blob_missing"
    if not why:
        assert found.reason == "blob_missing"
        return
    assert found.message == f"`a` as the command of change lossy left it ({size} bytes) was not kept: {why}."
    assert (found.reason, found.path, found.details) == ("not_kept", "a", {"sha256": lost.sha256})
    again = "Run the command again, or take the file from a backup."
    assert found.action == (
        again if before is None else "What it was before that is kept: surehold read a --before lossy"
    )
    bench.workspace.history.gc(keep=timedelta(days=5))
    assert refusal().reason == "not_kept"  # what was cleaned up is older
    for text in ("3", "4"):
        write(bench, "other", text)
    bench.clock.now += timedelta(days=9)
    bench.workspace.history.gc(keep=timedelta(days=5))
    assert refusal().reason == ("not_kept" if size == BIG else "blob_missing")


def test_only_what_has_bytes_is_loaded(bench: Bench) -> None:
    write(bench, "a", "target")
    file, link = version("file", b"target"), version("link", b"target", 0o777)

    assert [load_recorded(bench.workspace, one) for one in (None, version("directory"), version("fifo"))] == [
        ABSENT
    ] * 3
    assert [load_recorded(bench.workspace, one).data for one in (file, link)] == [b"target"] * 2
    loaded = load_file(bench.workspace, file, "a")
    assert (loaded.data, loaded.meta) == (b"target", file.meta)
    for one, what in (
        (link, "symbolic link to target"),
        (version("directory"), "directory"),
        (version("fifo"), "FIFO"),
    ):
        with pytest.raises(NotAFile) as refused:
            load_file(bench.workspace, one, "a")
        assert (refused.value.message, refused.value.path) == (f"`a` was a {what} then.", "a")


FILE, EMPTY, OTHER, BARE = version("file", b"1"), version("file"), version("file", b"2", 0o755), None
LINK, ELSEWHERE = version("link", b"1", 0o777), version("link", b"2", 0o700)
FOLDER, CLOSED = version("directory", mode=0o755), version("directory", mode=0o700)


@pytest.mark.parametrize(
    ("before", "after", "facts"),
    [
        (None, None, ()),
        (None, FILE, ()),
        (FILE, None, ()),
        (None, EMPTY, ("new empty file",)),
        (EMPTY, None, ("empty file, removed",)),
        (None, FOLDER, ("new directory",)),
        (FOLDER, None, ("directory, removed",)),
        (None, LINK, ("new symbolic link to 1",)),
        (LINK, None, ("symbolic link to 1, removed",)),
        (FILE, OTHER, ("mode 0644 → 0755",)),
        (FILE, replace(OTHER, meta=None), ()),
        (replace(FILE, meta=None), OTHER, ()),
        (FILE, replace(FILE), ()),
        (LINK, ELSEWHERE, ("symbolic link to 1, now symbolic link to 2",)),
        (FILE, LINK, ("file, now symbolic link to 1",)),
        (LINK, OTHER, ("symbolic link to 1, now file", "mode 0777 → 0755")),
        (FOLDER, CLOSED, ("mode 0755 → 0700",)),
        (FOLDER, FILE, ("directory, now file", "mode 0755 → 0644")),
    ],
)
def test_what_lines_do_not_say_is_said_in_words(
    before: Version | None, after: Version | None, facts: tuple[str, ...]
) -> None:
    def snapshot(one: Version | None) -> Snapshot:
        names = {sha256_hex(data): data for data in (b"", b"1", b"2")}
        return ABSENT if one is None or one.kind == "directory" else Snapshot(names[one.sha256])

    assert describe_facts(before, after, snapshot(before), snapshot(after)) == facts
