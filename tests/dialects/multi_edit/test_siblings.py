"""read_text_file, write_text_file and edit_text_file: the contract's own cases, and where they meet our promises."""

from pathlib import Path

import pytest

from dialects.multi_edit.ways import Desk
from dialects.place import sha256
from spec.marks import requirement


@requirement("multi_edit:sibling:read_text_file")
def test_a_whole_file_is_read(desk: Desk) -> None:
    sha = desk.put("hello.txt", "Hello\nWorld\n")

    assert desk.on("read_text_file", "hello.txt").whole == {
        "content": "Hello\nWorld\n",
        "_meta": {"total_lines": 2, "returned_lines": 2, "has_more": False, "sha256": sha},
    }


@requirement("multi_edit:sibling:read_text_file")
def test_some_lines_are_read_and_the_next_one_is_named(desk: Desk) -> None:
    sha = desk.put("numbers.txt", "".join(f"{number}\n" for number in range(1, 101)))

    assert desk.on("read_text_file", "numbers.txt", line=10, limit=5).whole == {
        "content": "10\n11\n12\n13\n14\n",
        "_meta": {"total_lines": 100, "returned_lines": 5, "has_more": True, "next_line": 15, "sha256": sha},
    }


@requirement("multi_edit:sibling:read_text_file")
def test_an_empty_file_has_no_lines(desk: Desk) -> None:
    sha = desk.put("empty.txt", "")

    assert desk.on("read_text_file", "empty.txt").whole == {
        "content": "",
        "_meta": {"total_lines": 0, "returned_lines": 0, "has_more": False, "sha256": sha},
    }


@requirement("multi_edit:sibling:read_text_file")
def test_lines_behind_the_end_are_no_lines_and_no_error(desk: Desk) -> None:
    desk.put("two.txt", "1\n2\n")

    reply = desk.on("read_text_file", "two.txt", line=9)

    assert (reply.whole["content"], reply.whole["_meta"]["total_lines"]) == ("", 2)
    assert reply.whole["_meta"]["notice"] == "there is no line 9; the file has 2"


@requirement("multi_edit:sibling:read_text_file")
def test_a_line_longer_than_a_page_says_so_and_does_not_count_as_read(desk: Desk) -> None:
    sha = desk.put("long.txt", "é" * 100_000)

    reply = desk.on("read_text_file", "long.txt")
    refused = desk.on("write_text_file", "long.txt", content="x")

    shown = len(reply.whole["content"])
    assert 0 < shown < 100_000
    assert f"these are its first {shown:,} characters" in reply.whole["_meta"]["notice"]
    assert refused.told == (-32009, f"File was read only in part: {desk.path('long.txt')}")
    assert refused.error["data"]["suggested_action"].endswith("or send its sha256 as expected_sha256.")
    assert desk.on("write_text_file", "long.txt", content="x", expected_sha256=sha).result["success"] is True


@requirement("multi_edit:sibling:read_text_file")
def test_what_cannot_be_read_has_the_codes_of_the_contract(desk: Desk) -> None:
    desk.put("image.png", b"\x89PNG\0\0")
    desk.put("a.txt", "a")

    assert desk.on("read_text_file", "no.txt").told == (-32001, f"File not found: {desk.path('no.txt')}")
    assert desk.on("read_text_file", ".").told == (-32003, f"{desk.path('.')} is not a file")
    assert desk.on("read_text_file", "image.png").told == (-32004, f"Cannot read binary file: {desk.path('image.png')}")
    assert desk.on("read_text_file", "a.txt", line=0).told == (-32600, "Line number must be >= 1: 0")
    assert desk.on("read_text_file", "a.txt", limit=0).told == (-32600, "Limit must be >= 1: 0")
    assert desk.way.call("read_text_file", {"path": "a.txt"}).told == (-32600, "Path must be absolute: a.txt")
    assert desk.way.call("read_text_file", {"path": "/etc/hostname"}).told == (
        -32002,
        "Permission denied: /etc/hostname",
    )


@requirement("multi_edit:sibling:read_text_file")
def test_a_long_file_comes_in_pages_that_add_up(served: Desk) -> None:
    text = "".join(f"row {number} of a long file\n" for number in range(5_000))
    served.put("long.txt", text)

    pages, line = list[str](), 1
    while line:
        reply = served.on("read_text_file", "long.txt", line=line)
        meta = reply.whole["_meta"]
        pages.append(reply.whole["content"])
        line = meta.get("next_line", 0)
        assert bool(line) is meta["has_more"] is (f"goes on: line={line}" in reply.text)

    assert "".join(pages) == text
    assert len(pages) >= 3


@requirement("multi_edit:sibling:read_text_file")
def test_a_read_is_answered_with_text_that_holds_the_content(served: Desk) -> None:
    sha = served.put("a.txt", "one\ntwo\n")

    text = served.on("read_text_file", "a.txt").text

    assert text == f"{served.path('a.txt')} · lines 1-2 of 2 · sha256 {sha}\none\ntwo\n"


@requirement("multi_edit:sibling:write_text_file")
@pytest.mark.parametrize(("content", "size"), [("Hello\n", 6), ("", 0), ("é", 2)])
def test_a_new_file_is_written(desk: Desk, content: str, size: int) -> None:
    reply = desk.on("write_text_file", "new.txt", content=content)

    assert reply.result == {"success": True, "bytes_written": size, "created": True}
    assert desk.get("new.txt") == content.encode()


@requirement("multi_edit:sibling:write_text_file")
def test_a_file_that_was_read_is_overwritten(desk: Desk) -> None:
    desk.put("existing.txt", "Old content\n")
    desk.on("read_text_file", "existing.txt")

    reply = desk.on("write_text_file", "existing.txt", content="New content\n")

    assert reply.result == {"success": True, "bytes_written": 12, "created": False}
    assert reply.whole["_meta"]["before_sha256"] == sha256(b"Old content\n")
    assert desk.get("existing.txt") == b"New content\n"


@requirement("multi_edit:sibling:write_text_file")
def test_a_file_that_was_written_here_may_be_written_again(desk: Desk) -> None:
    desk.on("write_text_file", "mine.txt", content="1\n")

    assert desk.on("write_text_file", "mine.txt", content="2\n").result["success"] is True


@requirement("multi_edit:sibling:write_text_file")
def test_a_file_that_was_not_read_is_not_overwritten(desk: Desk) -> None:
    sha = desk.put("theirs.txt", "theirs\n")

    reply = desk.on("write_text_file", "theirs.txt", content="mine\n")

    assert reply.told == (-32009, f"File was not read in this session: {desk.path('theirs.txt')}")
    assert desk.get("theirs.txt") == b"theirs\n"
    assert desk.on("write_text_file", "theirs.txt", content="mine\n", expected_sha256=sha).result["success"] is True


@requirement("multi_edit:sibling:write_text_file")
def test_a_file_that_changed_since_it_was_read_is_not_overwritten(desk: Desk) -> None:
    desk.put("theirs.txt", "one\n")
    desk.on("read_text_file", "theirs.txt")
    desk.put("theirs.txt", "two\n")

    reply = desk.on("write_text_file", "theirs.txt", content="mine\n")

    assert reply.told == (-32009, f"File changed since it was read: {desk.path('theirs.txt')}")
    assert desk.get("theirs.txt") == b"two\n"


@requirement("multi_edit:sibling:write_text_file")
def test_a_file_that_was_read_in_part_is_not_overwritten_until_the_rest_is_read(desk: Desk) -> None:
    desk.put("long.txt", "1\n2\n3\n")
    desk.on("read_text_file", "long.txt", limit=2)

    told = desk.on("write_text_file", "long.txt", content="x\n").told
    desk.on("read_text_file", "long.txt", line=3)

    assert told == (-32009, f"File was read only in part: {desk.path('long.txt')}")
    assert desk.on("write_text_file", "long.txt", content="x\n").result["success"] is True


@requirement("multi_edit:sibling:write_text_file")
def test_what_cannot_be_written_has_the_codes_of_the_contract(desk: Desk) -> None:
    Path(desk.path("dir")).mkdir()

    def told(path: str) -> tuple[int, str]:
        return desk.way.call("write_text_file", {"path": path, "content": "data"}).told

    missing = desk.path("missing-dir")
    assert told(f"{missing}/file.txt") == (-32001, f"Parent directory not found: {missing}")
    assert told(desk.path("dir")) == (-32003, f"{desk.path('dir')} is a directory")
    assert told("relative/path.txt") == (-32600, "Path must be absolute: relative/path.txt")
    assert told("/root/secret.txt") == (-32002, "Permission denied: /root/secret.txt")
    assert not Path(missing).exists()


@requirement("multi_edit:sibling:write_text_file")
def test_a_file_that_is_gone_is_not_made_again_for_one_who_names_its_version(desk: Desk) -> None:
    reply = desk.on("write_text_file", "gone.txt", content="x", expected_sha256="0" * 64)

    assert reply.told == (-32001, f"File not found: {desk.path('gone.txt')}")
    assert "leave expected_sha256 out" in reply.error["data"]["suggested_action"]


def test_the_path_of_every_refusal_is_the_one_that_was_sent(desk: Desk) -> None:
    desk.put("latin.py", b"# coding: latin-1\n\xe9\n")

    reply = desk.on("edit_text_file", "latin.py", old_string="é", new_string="€")

    assert (reply.error["data"]["reason"], reply.error["data"]["path"]) == ("not_encodable", desk.path("latin.py"))


@requirement("multi_edit:sibling:edit_text_file")
def test_one_replacement(desk: Desk) -> None:
    desk.put("config.toml", '[server]\nhost = "localhost"\nport = 8080\n')

    reply = desk.on("edit_text_file", "config.toml", old_string="port = 8080", new_string="port = 3000")

    assert reply.result == {
        "success": True,
        "diff": (
            "--- config.toml\n+++ config.toml\n@@ -1,3 +1,3 @@\n [server]\n"
            ' host = "localhost"\n-port = 8080\n+port = 3000\n'
        ),
        "line_range": {"start": 3, "end": 3},
    }
    assert desk.get("config.toml") == b'[server]\nhost = "localhost"\nport = 3000\n'


@requirement("multi_edit:sibling:edit_text_file")
def test_several_lines_and_a_deleted_line(desk: Desk) -> None:
    desk.put("file.txt", "line 1\nline 2\nline 3\n")

    first = desk.on("edit_text_file", "file.txt", old_string="line 2\n", new_string="")
    second = desk.on("edit_text_file", "file.txt", old_string="line 1\nline 3", new_string="a\nb\nc")

    assert first.result["line_range"] == {"start": 2, "end": 2}
    assert second.result["line_range"] == {"start": 1, "end": 2}
    assert desk.get("file.txt") == b"a\nb\nc\n"


@requirement("multi_edit:sibling:edit_text_file")
def test_what_cannot_be_edited_has_the_codes_of_the_contract(desk: Desk) -> None:
    desk.put("file.txt", "foo\nfoo\nfoo")
    desk.put("image.png", b"\x89PNG\0\0")

    def told(name: str, old: str, new: str) -> tuple[int, str]:
        return desk.on("edit_text_file", name, old_string=old, new_string=new).told

    assert told("file.txt", "Goodbye", "Hello") == (-32010, "String not found in file: Goodbye")
    assert told("file.txt", "foo", "bar") == (-32011, "String appears 3 times (must be unique): foo")
    assert told("missing.txt", "same", "same") == (-32600, "old_string and new_string are identical")
    assert told("file.txt", "", "x") == (-32600, "old_string cannot be empty")
    assert told("missing.txt", "a", "b") == (-32001, f"File not found: {desk.path('missing.txt')}")
    assert told("image.png", "P", "b") == (-32004, f"Cannot edit binary file: {desk.path('image.png')}")
