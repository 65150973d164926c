"""A file as it was, and the way back to that."""

import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from surehold.errors import AlreadyExists, NotAFile, NotFound
from surehold.stores.base import Entry, LedgerQuery
from surehold.text.plan import Delete, Keep
from surehold.text.rewrite import WriteText
from surehold.text.snapshot import ABSENT, Snapshot, Version, sha256_hex
from surehold.workspace.past.versions import (
    HistoryPoint,
    diff_since_recorded,
    last_version,
    point_at,
    point_before,
    propose_version,
    read_version,
    revert_files,
    version_at,
)
from surehold.workspace.proposal import Absent, CallAuthor, EntrySwitch, Exact, Proposal, Receipt, Unproven
from workspaces import Bench, call, make_bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("sqlite", "local", tmp_path)
    yield made
    made.workspace.close()


def write(bench: Bench, path: str, text: str) -> tuple[Entry, ...]:
    return bench.workspace.write(Proposal(path=path, edit=WriteText(text), proof=Unproven()), call=call()).entries


def move(bench: Bench, path: str, to: str) -> tuple[Entry, ...]:
    return bench.workspace.write(Proposal(path=path, to_path=to, edit=Keep(), proof=Exact()), call=call("move")).entries


def delete(bench: Bench, path: str) -> tuple[Entry, ...]:
    return bench.workspace.write(Proposal(path=path, edit=Delete(), proof=Exact()), call=call("delete")).entries


def refuse(bench: Bench, path: str) -> Entry:
    """Let a call be refused; return its entry."""
    proof = Absent() if bench.get(path) is not None else Exact()
    with pytest.raises((AlreadyExists, NotFound)):
        bench.workspace.write(Proposal(path=path, edit=Delete(), proof=proof), call=call("delete"))
    (entry,) = bench.store.list_entries(LedgerQuery(limit=1))
    assert not entry.ok
    return entry


def run(bench: Bench, *changed: str) -> tuple[Entry, ...]:
    """Record entries that are there as made by a command; those with a minus in front are taken away."""
    switches = list[EntrySwitch]()
    for word in changed:
        key = word.removeprefix("-")
        entry = bench.workspace.read_entry(key)
        assert entry
        if word != key:
            switches.append(EntrySwitch(old_key=key, old=entry.version, new_key="", new=None))
            continue
        switches.append(EntrySwitch(old_key="", old=None, new_key=key, new=entry.version, data=entry.data))
    for one in sorted(switches, key=lambda one: one.new_key, reverse=True):
        path = bench.root / one.new_key
        if one.new:
            path.rmdir() if one.new.kind == "directory" else path.unlink()
    proposals = [
        Proposal(path=one.old_key or one.new_key, edit=Keep(), proof=Unproven(), whole=one) for one in switches
    ]
    return bench.workspace.write(*proposals, call=call("run")).entries


def revert(bench: Bench, *paths: str, point: HistoryPoint | None = None, dry_run: bool = False) -> Receipt:
    return revert_files(bench.workspace, paths, point, author=CallAuthor(agent="ada"), dry_run=dry_run)


def text_of(bench: Bench, version: Version | None) -> str | None:
    return bench.store.read_blob(version.sha256).decode() if version else None


def test_a_path_has_at_each_point_what_the_entry_before_it_left(bench: Bench) -> None:
    story = [
        write(bench, "a", "1"),
        write(bench, "a", "2"),
        move(bench, "a", "b"),
        write(bench, "b", "3"),
        delete(bench, "b"),
        write(bench, "a", "4"),
    ]
    held = {"a": [None, "1", "2", None, None, None, "4"], "b": [None, None, None, "2", "3", None, None]}
    for key, texts in held.items():
        points = [point_before(story[0], "x"), *(point_at(one, "x") for one in story)]
        assert [text_of(bench, version_at(bench.store, key, point)) for point in points] == texts
        points = [point_before(one, "x") for one in story]
        assert [text_of(bench, version_at(bench.store, key, point)) for point in points] == texts[:-1]
        points = [HistoryPoint(moment=one[0].timestamp) for one in story]
        assert [text_of(bench, version_at(bench.store, key, point)) for point in points] == texts[:-1]

    with pytest.raises(NotFound) as refused:
        version_at(bench.store, "c", point_at(story[0], "x"))
    assert (refused.value.reason, refused.value.path) == ("no_history", "c")
    assert (point_at(story[0], "x").name, point_before(story[0], "x").name) == ("after x", "before x")


def test_before_its_first_entry_a_path_has_what_that_entry_found_and_refused_calls_do_not_count(bench: Bench) -> None:
    bench.put("a", b"0")
    refused = [refuse(bench, "a")]
    made = [write(bench, "a", "1")]
    refused.append(refuse(bench, "a"))
    made.append(write(bench, "a", "2"))
    refuse(bench, "gone")

    points = [point_before(refused, ""), point_at(refused, ""), point_at(made[1], "")]
    points += [HistoryPoint(moment=one.timestamp) for one in (refused[1], made[1][0])]
    assert [text_of(bench, version_at(bench.store, "a", point)) for point in points] == ["0", "1", "2", "1", "1"]
    with pytest.raises(NotFound, match="`gone` is not in the history"):
        version_at(bench.store, "gone", point_at(made[1], ""))
    assert (HistoryPoint().seq, HistoryPoint().moment) == (0, "")


def test_what_had_the_name_itself_at_that_time_comes_before_what_has_it_today(bench: Bench) -> None:
    write(bench, "a", "of a")
    both = write(bench, "b", "of b")
    delete(bench, "a")
    move(bench, "b", "a")

    assert read_version(bench.workspace, "a", point_at(both, "")).data == b"of a"
    assert read_version(bench.workspace, "b", point_at(both, "")).data == b"of b"


def test_a_path_that_is_to_be_absent_is_deleted_if_it_is_there(bench: Bench) -> None:
    bench.put("a", b"1")

    assert [propose_version(bench.workspace, "gone", one) for one in (None, ABSENT)] == [None, None]
    for wanted in (None, ABSENT):
        proposal = propose_version(bench.workspace, "a", wanted)
        assert proposal
        assert (proposal.edit, proposal.path) == (Delete(), "a")
    assert propose_version(bench.workspace, "a", Snapshot(b"1")) is None


def test_a_change_of_several_files_is_one_point(bench: Bench) -> None:
    pair = [Proposal(path=name, edit=WriteText(name), proof=Unproven()) for name in ("a", "b")]
    both = bench.workspace.write(*pair, call=call()).entries

    for entries in (both, both[::-1]):
        assert text_of(bench, version_at(bench.store, "a", point_at(entries, "x"))) == "a"
        assert text_of(bench, version_at(bench.store, "b", point_at(entries, "x"))) == "b"
        for key in ("a", "b"):
            assert version_at(bench.store, key, point_before(entries, "x")) is None


def test_a_file_is_read_under_the_name_that_it_had(bench: Bench) -> None:
    first, _, second = write(bench, "a", "1"), move(bench, "a", "b"), move(bench, "b", "c")
    third = write(bench, "c", "2")

    read = [read_version(bench.workspace, "c", point).data for point in (point_at(first, ""), point_at(third, ""))]
    assert read == [b"1", b"2"]
    assert read_version(bench.workspace, "c", HistoryPoint(moment=second[0].timestamp)).data == b"1"
    assert read_version(bench.workspace, "b", point_before(second, "")).data == b"1"
    with pytest.raises(NotFound) as refused:
        read_version(bench.workspace, "b", point_at(third, "that"))
    assert refused.value.message == "`b` did not exist after that."
    assert (refused.value.reason, refused.value.action) == ("not_at_that_time", "It was called a or c at other times.")
    write(bench, "d", "1")
    with pytest.raises(NotFound) as refused:
        read_version(bench.workspace, "d", point_at(third, "that"))
    assert refused.value.reason == "not_at_that_time"
    assert "called" not in refused.value.action


def test_what_was_no_file_is_not_read_as_one(bench: Bench) -> None:
    (bench.root / "link").symlink_to("a")
    made = run(bench, "link")

    with pytest.raises(NotAFile, match="`link` was a symbolic link to a then"):
        read_version(bench.workspace, "link", point_at(made, ""))


def test_files_become_what_they_were_at_a_point_as_one_change(bench: Bench) -> None:
    old = write(bench, "d/a", "1"), write(bench, "d/b", "1")
    bench.clock.now += timedelta(hours=1)
    write(bench, "d/a", "2")
    delete(bench, "d/b")
    write(bench, "d/new", "1")
    write(bench, "elsewhere", "1")
    point = point_at(old[1], "then")

    rehearsed = revert(bench, "d", point=point, dry_run=True)
    assert (rehearsed.dry_run, bench.get("d/a")) == (True, b"2")
    done = revert(bench, "d/", point=point)

    assert {name: bench.get(name) for name in ("d/a", "d/b", "d/new", "elsewhere")} == {
        "d/a": b"1",
        "d/b": b"1",
        "d/new": None,
        "elsewhere": b"1",
    }
    assert [one.path for one in done.files] == ["d/a", "d/b", "d/new"]
    assert {(one.call.tool, one.call.operation, one.call.agent) for one in done.entries} == {
        ("revert", "restore", "ada")
    }
    again = revert(bench, "d", point=point)
    assert (again.already_applied, again.change_id, again.files, again.dry_run) == (True, "", (), False)
    assert revert(bench, "d", point=point, dry_run=True).dry_run
    with pytest.raises(NotFound) as refused:
        revert(bench, "unknown", point=point)
    assert refused.value.reason == "no_history"


def test_the_mode_comes_back_too(bench: Bench) -> None:
    bench.put("a", b"0")
    made = write(bench, "a", "1")
    (bench.root / "a").chmod(0o600)
    done = revert(bench, "a", point=point_at(made, ""))

    assert (bench.root / "a").stat().st_mode & 0o777 == 0o644
    assert (len(done.files), bench.get("a")) == (1, b"1")


def test_a_file_that_was_moved_since_gets_back_what_it_held_and_keeps_its_name(bench: Bench) -> None:
    made = write(bench, "a", "1")
    write(bench, "a", "2")
    move(bench, "a", "b")

    revert(bench, "b", point=point_at(made, ""))

    assert (bench.get("a"), bench.get("b")) == (None, b"1")


def test_without_a_point_a_file_becomes_what_was_recorded_last(bench: Bench) -> None:
    write(bench, "a", "1")
    write(bench, "b", "1")
    bench.put("a", b"by another program")
    bench.put("b", None)
    write(bench, "gone", "1")
    delete(bench, "gone")

    revert(bench, "a", "b", "gone")

    assert {name: bench.get(name) for name in ("a", "b", "gone")} == {"a": b"1", "b": b"1", "gone": b"1"}


def test_of_a_directory_what_was_deleted_stays_so_unless_it_is_named(bench: Bench) -> None:
    for name in ("d/a", "d/b"):
        write(bench, name, "1")
    delete(bench, "d/a")
    bench.put("d/b", b"2")

    revert(bench, "d")
    assert (bench.get("d/a"), bench.get("d/b")) == (None, b"1")
    revert(bench, "d/a")
    assert bench.get("d/a") == b"1"


def test_a_file_that_was_moved_away_is_named_as_it_is_called_now(bench: Bench) -> None:
    write(bench, "a", "1")
    move(bench, "a", "b")

    with pytest.raises(NotFound) as refused:
        revert(bench, "a")

    assert (refused.value.reason, refused.value.action) == ("moved_away", "Name it as it is called now: b")
    assert bench.get("b") == b"1"
    move(bench, "b", "c")
    delete(bench, "c")
    revert(bench, "c")
    assert bench.get("c") == b"1"


def test_outside_edits_do_not_count_as_what_was_recorded(bench: Bench) -> None:
    bench.put("a", b"0")
    write(bench, "a", "1")
    bench.put("a", b"by another program")
    bench.workspace.read("a")
    assert bench.workspace.history.log()[0].call.operation == "external"

    assert text_of(bench, last_version(bench.store, "a")) == "1"
    assert last_version(bench.store, "unknown") is None
    difference = diff_since_recorded(bench.workspace, "a")
    assert (difference.key, difference.to_key, difference.before.data, difference.after.data) == (
        "a",
        "",
        b"1",
        b"by another program",
    )
    assert (difference.added, difference.removed) == (1, 1)
    bench.put("a", None)
    assert diff_since_recorded(bench.workspace, "a").after_version is None


def test_of_bytes_that_are_not_stored_the_difference_names_both_versions(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(bench, "a", "1")

    def read_nothing(sha256: str) -> bytes:
        raise NotFound(f"{sha256} was cleaned up.")

    monkeypatch.setattr(bench.store, "read_blob", read_nothing)
    assert diff_since_recorded(bench.workspace, "a").diff == ""  # its bytes are still in the file
    bench.put("a", b"by another program")
    difference = diff_since_recorded(bench.workspace, "a")
    assert difference.diff.startswith("Files a and a differ: the bytes of the last recorded change are not stored (")
    assert difference.diff.endswith(f"; 18 bytes, sha256 {sha256_hex(b'by another program')})\n")
    assert difference.after.data == b"by another program"
    assert difference.before_version == last_version(bench.store, "a")
    bench.put("a", None)
    gone = diff_since_recorded(bench.workspace, "a")
    assert (gone.diff.endswith("; no file)\n"), gone.after.exists) == (True, False)


def names(bench: Bench) -> dict[str, str]:
    found = dict[str, str]()
    for path in sorted(bench.root.rglob("*")):
        what = os.readlink(path) if path.is_symlink() else "/" if path.is_dir() else path.read_text()  # noqa: PTH115
        found[str(path.relative_to(bench.root))] = what
    return found


def test_links_and_directories_become_what_they_were(bench: Bench) -> None:
    (bench.root / "d").mkdir(mode=0o750)
    (bench.root / "d" / "link").symlink_to("a")
    bench.put("d/file", b"1")
    made = run(bench, "d", "d/link", "d/file")
    there = names(bench)
    assert there == {"d": "/", "d/file": "1", "d/link": "a"}
    run(bench, "-d/link", "-d/file", "-d")
    assert names(bench) == {}

    done = revert(bench, "d", point=point_at(made, ""))

    assert names(bench) == there
    assert (bench.root / "d").stat().st_mode & 0o777 == 0o750
    assert revert(bench, "d", point=point_at(made, "")).already_applied
    assert {one.call.operation for one in done.entries} == {"restore"}
    (bench.root / "d").chmod(0o700)
    revert(bench, "d")
    assert (bench.root / "d").stat().st_mode & 0o777 == 0o750
    (bench.root / "d" / "link").unlink()
    (bench.root / "d" / "link").symlink_to("b")
    revert(bench, "d/link")
    assert names(bench) == there


@pytest.mark.parametrize("is_known", [True, False])
def test_the_directories_above_a_link_are_made_as_they_were_or_like_those_around(bench: Bench, is_known: bool) -> None:
    (bench.root / "d" / "e").mkdir(parents=True)
    (bench.root / "d" / "e" / "link").symlink_to("a")
    for number, name in enumerate(("d", "d/e")):
        (bench.root / name).chmod(0o700 + number)
    made = run(bench, *(["d", "d/e"] if is_known else []), "d/e/link")
    (bench.root / "d" / "e" / "link").unlink()
    for name in ("d/e", "d"):
        (bench.root / name).rmdir()
    bench.root.chmod(0o711)

    revert(bench, "d/e/link", point=point_at(made, ""))

    assert names(bench) == {"d": "/", "d/e": "/", "d/e/link": "a"}
    modes = [(bench.root / name).stat().st_mode & 0o777 for name in ("d", "d/e")]
    assert modes == ([0o700, 0o701] if is_known else [0o711, 0o711])
