"""One hunk of a change is taken back, and everything else stays."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from surehold.errors import NotFound, UndoConflict
from surehold.text.plan import diff_between
from surehold.text.snapshot import ABSENT, Snapshot
from surehold.workspace.undo.part import ChangedText, undo_part
from workspaces import Bench, call, make_bench

OLD = b"".join(b"line %d\n" % number for number in range(1, 41))
NEW = OLD.replace(b"line 3\n", b"three\nand more\n").replace(b"line 20\n", b"").replace(b"line 38\n", b"line 38\nnew\n")
PARTS = (
    NEW.replace(b"three\nand more\n", b"line 3\n"),
    NEW.replace(b"line 19\n", b"line 19\nline 20\n"),
    NEW.replace(b"line 38\nnew\n", b"line 38\n"),
)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = make_bench("sqlite", "local", tmp_path)
    yield made
    made.workspace.close()


def changed(old: bytes | None, new: bytes | None) -> ChangedText:
    before, after = (ABSENT if data is None else Snapshot(data) for data in (old, new))
    diff = diff_between(before, after, from_name="a", to_name="a").text
    return ChangedText(key="a", before=before, after=after, diff=diff)


def test_each_hunk_can_be_left_out_alone_or_with_others() -> None:
    text = changed(OLD, NEW)

    assert (text.has_parts, text.part_count) == (True, 3)
    assert [text.without_parts(frozenset({number})) for number in range(3)] == [*PARTS]
    assert text.without_parts(frozenset()) == NEW
    assert text.without_parts(frozenset({0, 1, 2})) == OLD
    assert text.without_parts(frozenset({0, 2})) == OLD.replace(b"line 20\n", b"")


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        (b"a\n", b"b\n", 1),
        (b"", b"b\n", 1),
        (b"a\n", b"", 1),
        (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n", 1),
        (b"a\n", b"a\n", 0),
        (None, b"a\n", 0),
        (b"a\n", None, 0),
        (b"a\0\n", b"b\n", 0),
        (b"a\n", b"a\0\n", 0),
        (b"\xef\xbb\xbfa\n", b"a\n", 0),
    ],
)
def test_only_two_texts_of_one_encoding_have_parts(old: bytes | None, new: bytes | None, count: int) -> None:
    text = changed(old, new)

    assert (text.has_parts, text.part_count) == (count > 0, count)
    if count:
        assert text.without_parts(frozenset({0})) == old


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_part_is_taken_back_and_later_changes_stay(bench: Bench, number: int) -> None:
    for later in (b"", b"at the end, later\n"):
        bench.put("a", NEW + later)

        receipt = undo_part(bench.workspace, changed(OLD, NEW), number, call("undo", agent="ada"))

        assert bench.get("a") == PARTS[number] + later
        assert [entry.call.agent for entry in receipt.entries] == ["ada"]


@pytest.mark.parametrize("number", [-1, 3])
def test_a_part_that_there_is_not_is_refused(bench: Bench, number: int) -> None:
    bench.put("a", NEW)

    with pytest.raises(NotFound) as refused:
        undo_part(bench.workspace, changed(OLD, NEW), number, call())

    assert (refused.value.reason, refused.value.path, bench.get("a")) == ("no_such_part", "a", NEW)


def test_a_part_whose_lines_were_changed_later_is_refused_with_the_lines(bench: Bench) -> None:
    later = NEW.replace(b"and more\n", b"and much more\n")
    bench.put("a", later)

    with pytest.raises(UndoConflict) as refused:
        undo_part(bench.workspace, changed(OLD, NEW), 0, call())

    assert (refused.value.reason, refused.value.path, bench.get("a")) == ("later_changes", "a", later)
    assert refused.value.message.endswith("later changes touch the same lines (4).")
    assert undo_part(bench.workspace, changed(OLD, NEW), 2, call()).files[0].changed
    text = changed(b"\xef\xbb\xbfone\n", b"\xef\xbb\xbftwo\n")
    bench.put("a", b"without the mark\n")
    with pytest.raises(UndoConflict, match=r"the same lines \(unknown\)"):
        undo_part(bench.workspace, text, 0, call())
