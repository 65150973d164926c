"""Which bytes an operation writes, and which it leaves alone."""

import pytest

from surehold.text.anchored.edits import AnchoredEdits
from surehold.text.anchored.operations import (
    DeleteLine,
    DeleteRange,
    InsertAfter,
    InsertBefore,
    ReplaceLine,
    ReplaceRange,
)
from surehold.text.snapshot import Snapshot
from text.anchored import File


def test_new_lines_in_a_crlf_file_end_in_crlf() -> None:
    file = File(b"one\r\ntwo\r\nthree\r\n")

    assert file.edit(ReplaceLine(hash=file.anchor(2), content="a\nb")) == b"one\r\na\r\nb\r\nthree\r\n"
    assert file.edit(InsertAfter(hash=file.anchor(3), content="four")) == b"one\r\ntwo\r\nthree\r\nfour\r\n"
    assert file.edit(InsertBefore(hash=file.anchor(1), content="zero\n")) == b"zero\r\none\r\ntwo\r\nthree\r\n"


def test_a_replaced_line_keeps_its_own_ending_among_others() -> None:
    file = File(b"one\r\ntwo\nthree\r\n")

    assert file.edit(ReplaceLine(hash=file.anchor(2), content="2")) == b"one\r\n2\nthree\r\n"
    assert file.edit(ReplaceLine(hash=file.anchor(2), content="2\n2b")) == b"one\r\n2\n2b\nthree\r\n"
    assert file.edit(ReplaceRange(start_hash=file.anchor(1), end_hash=file.anchor(2), content="1\n2\n3")) == (
        b"1\r\n2\n3\nthree\r\n"
    )


def test_an_inserted_line_takes_the_ending_of_the_line_it_follows_else_of_the_one_it_precedes() -> None:
    file = File(b"one\r\ntwo\nthree\r\n")

    assert file.edit(InsertAfter(hash=file.anchor(1), content="x\ny")) == b"one\r\nx\r\ny\r\ntwo\nthree\r\n"
    assert file.edit(InsertAfter(hash=file.anchor(2), content="x")) == b"one\r\ntwo\nx\nthree\r\n"
    assert file.edit(InsertBefore(hash=file.anchor(1), content="x")) == b"x\r\none\r\ntwo\nthree\r\n"
    assert file.edit(InsertBefore(hash=file.anchor(3), content="x")) == b"one\r\ntwo\nx\nthree\r\n"


def test_a_lone_cr_inside_a_line_is_content() -> None:
    file = File(b"one\rmore\ntwo\n")

    assert file.edit(ReplaceLine(hash=file.anchor(2), content="2")) == b"one\rmore\n2\n"
    assert len(file.rows) == 2


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le"])
def test_a_cr_at_the_end_of_the_file_stays_content_when_lines_follow(codec: str) -> None:
    mark = "\ufeff" if codec != "utf-8" else ""
    file = File(f"{mark}one\nlast\r".encode(codec))

    after = f"{mark}one\nlast\r\r\nnew\nmore".encode(codec)
    assert file.edit(InsertAfter(hash=file.anchor(2), content="new\nmore")) == after
    assert file.edit(InsertAfter(hash="EOF", content="new\nmore")) == after
    assert [row.text for row in File(after).rows.values()] == ["one", "last\r", "new", "more"]


def test_a_file_of_lone_crs_keeps_them() -> None:
    file = File(b"one\rtwo\rthree\r")

    assert file.edit(ReplaceLine(hash=file.anchor(2), content="a\nb\rc")) == b"one\ra\rb\rc\rthree\r"


@pytest.mark.parametrize("bom", [b"\xef\xbb\xbf", b""])
def test_the_byte_order_mark_stays_first(bom: bytes) -> None:
    file = File(bom + b"one\ntwo\n")

    assert file.edit(ReplaceLine(hash=file.anchor(1), content="1")) == bom + b"1\ntwo\n"
    assert file.edit(InsertBefore(hash=file.anchor(1), content="0")) == bom + b"0\none\ntwo\n"
    assert file.edit(DeleteRange(start_hash=file.anchor(1), end_hash=file.anchor(2))) == bom
    assert file.edit(InsertBefore(hash="BOF", content="0")) == bom + b"0\none\ntwo\n"
    assert File(bom).edit(InsertAfter(hash="EOF", content="0")) == bom + b"0\n"


def test_a_file_without_a_final_newline_keeps_it_so() -> None:
    file = File(b"one\ntwo\nthree")

    assert file.edit(ReplaceLine(hash=file.anchor(3), content="3\n")) == b"one\ntwo\n3"
    assert file.edit(ReplaceLine(hash=file.anchor(3), content="3\n4")) == b"one\ntwo\n3\n4"
    assert file.edit(InsertAfter(hash=file.anchor(3), content="four")) == b"one\ntwo\nthree\nfour"
    assert file.edit(InsertAfter(hash="EOF", content="four\nfive")) == b"one\ntwo\nthree\nfour\nfive"
    assert file.edit(InsertBefore(hash=file.anchor(3), content="x")) == b"one\ntwo\nx\nthree"
    assert file.edit(ReplaceLine(hash=file.anchor(1), content="1")) == b"1\ntwo\nthree"


def test_the_line_before_a_deleted_last_one_keeps_its_own_ending() -> None:
    file = File(b"one\ntwo\nthree")

    assert file.edit(DeleteLine(hash=file.anchor(3))) == b"one\ntwo\n"
    assert file.edit(DeleteRange(start_hash=file.anchor(2), end_hash=file.anchor(3))) == b"one\n"
    assert file.edit(DeleteRange(start_hash=file.anchor(1), end_hash=file.anchor(3))) == b""


def test_deleting_the_last_line_and_inserting_there_ends_as_the_file_did() -> None:
    file = File(b"one\r\ntwo\r\nthree")

    assert file.edit(DeleteLine(hash=file.anchor(3)), InsertAfter(hash=file.anchor(3), content="x\ny")) == (
        b"one\r\ntwo\r\nx\r\ny"
    )
    assert file.edit(
        ReplaceLine(hash=file.anchor(3), content="3"), InsertAfter(hash=file.anchor(3), content="4\n")
    ) == (b"one\r\ntwo\r\n3\r\n4")


def test_a_file_of_one_line_without_newline() -> None:
    file = File(b"only")

    assert file.edit(ReplaceLine(hash=file.hash(1), content="other")) == b"other"
    assert file.edit(InsertAfter(hash=file.hash(1), content="more")) == b"only\nmore"
    assert file.edit(InsertBefore(hash=file.hash(1), content="more")) == b"more\nonly"
    assert file.edit(DeleteLine(hash=file.hash(1))) == b""


def test_lines_are_those_of_grep_whatever_unicode_calls_a_line_break() -> None:
    file = File("one\u2028still one\ntwo\u0085\x0b\x0c\nthree\n".encode())

    assert len(file.rows) == 3
    assert file.edit(DeleteLine(hash=file.anchor(2))) == "one\u2028still one\nthree\n".encode()


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be", "utf-32-le", "shift_jis", "gbk", "cp1252", "latin-1"])
def test_untouched_bytes_of_any_encoding_stay(name: str) -> None:
    text = {"cp1252": "ab €“\nmiddle\nend é\n", "latin-1": "ab é\nmiddle\nend é\n"}.get(
        name, "表ソ中\nmiddle\nend 表\n"
    )
    snapshot = Snapshot(text.encode(name), encoding=name)
    anchored = AnchoredEdits(operations=(ReplaceLine(hash="2#" + _hash(snapshot, 2), content="new\nlines"),))

    assert anchored.plan(snapshot).after.data == text.replace("middle", "new\nlines").encode(name)


def _hash(snapshot: Snapshot, line: int) -> str:
    return f"{snapshot.digests[line - 1]:016x}"[:6]


def test_bytes_that_are_no_text_stay_and_their_line_can_be_replaced() -> None:
    file = File(b"caf\xe9 and more\nplain line\n\xff\xfe\xfd bytes\n")

    assert file.edit(ReplaceLine(hash=file.anchor(2), content="new")) == b"caf\xe9 and more\nnew\n\xff\xfe\xfd bytes\n"
    assert file.edit(ReplaceLine(hash=file.row(1), content="cafe")) == b"cafe\nplain line\n\xff\xfe\xfd bytes\n"


@pytest.mark.parametrize("text", ["e\u0301 combining", "שלום rtl", "👩\u200d👩\u200d👧 family", "\u202eevil\u202c"])
def test_lines_of_unusual_characters_are_named_and_copied(text: str) -> None:
    file = File(f"before\n{text}\nafter\n".encode())

    assert file.edit(DeleteLine(hash=file.row(2))) == b"before\nafter\n"


def test_a_line_of_a_million_bytes() -> None:
    file = File(b"first\n" + b"x" * 1_000_000 + b"\nlast\n")

    assert file.edit(ReplaceLine(hash=file.anchor(2), content="short")) == b"first\nshort\nlast\n"
    assert file.edit(InsertAfter(hash=file.anchor(2), content="y")) == b"first\n" + b"x" * 1_000_000 + b"\ny\nlast\n"
