"""Files with a byte order mark, and files whose last line ends in a CR: what is left, and what a model is told."""

import pytest

from dialects.every_tool import EveryTool
from spec.marks import requirement

MARK = "\ufeff"


@requirement("text:bom:emptied")
@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_the_only_line_is_deleted_and_the_mark_stays(every_tool: EveryTool, codec: str, end: str) -> None:
    every_tool.put({"a.txt": f"{MARK}only line here{end}".encode(codec)})
    anchors = every_tool.anchors("a.txt")

    answer = every_tool.edit_lines("a.txt", {"op": "delete_line", "hash": anchors[1]})

    assert answer.ok, answer.text
    assert answer.text.startswith("1 operation applied")
    assert (every_tool.folder / "a.txt").read_bytes() == MARK.encode(codec)


@requirement("text:bom:emptied")
def test_a_range_over_all_lines_is_deleted_and_the_mark_stays(every_tool: EveryTool) -> None:
    every_tool.put({"a.txt": f"{MARK}one line\ntwo line\n"})
    anchors = every_tool.anchors("a.txt")

    answer = every_tool.edit_lines("a.txt", {"op": "delete_range", "start_hash": anchors[1], "end_hash": anchors[2]})

    assert "2 -> 0 lines (-2)" in answer.text
    assert every_tool.files() == {"a.txt": MARK}


@requirement("text:bom:emptied")
@pytest.mark.parametrize("tool", ["Edit", "Write"])
def test_an_edit_that_empties_the_file_shows_no_new_line(every_tool: EveryTool, tool: str) -> None:
    every_tool.put({"a.txt": f"{MARK}one line\n"})
    every_tool.call("Read", file_path=every_tool.path("a.txt"))

    if tool == "Edit":
        answer = every_tool.quote_edit("Edit", "a.txt", "one line\n", "")
    else:
        answer = every_tool.call("Write", file_path=every_tool.path("a.txt"), content="")

    assert answer.text.split("\n")[-2:] == ["@@ -1,1 +0,0 @@", "-one line"]
    assert every_tool.files() == {"a.txt": MARK}


@requirement("text:line:last_cr")
def test_lines_after_a_last_line_that_ends_in_a_cr_leave_it_as_it_is(every_tool: EveryTool) -> None:
    before = "one line\r\ntwo line\nlast line\r"
    every_tool.put({"edit.txt": before, "patch.txt": before})
    anchors = every_tool.anchors("edit.txt")

    edited = every_tool.edit_lines("edit.txt", {"op": "insert_after", "hash": anchors[3], "content": "new"})
    patched = every_tool.patch(
        "*** Begin Patch", "*** Update File: {}/patch.txt", "@@", "+new", "*** End of File", "*** End Patch"
    )

    assert edited.ok, edited.text
    assert patched.ok, patched.text
    after = "one line\r\ntwo line\nlast line\r\r\nnew"
    assert every_tool.files() == {"edit.txt": after, "patch.txt": after}


@requirement("text:line:lone_cr")
def test_small_pages_of_a_file_of_lone_crs_count_its_lines(every_tool: EveryTool) -> None:
    every_tool.put({"cr.txt": "one\rtwo\rthree\rfour\r"})

    pages = [
        every_tool.call("read_file", path=every_tool.path("cr.txt"), maxBytes=8, startLine=start).text.split("\n")[0]
        for start in (1, 3)
    ]

    assert "lines 1-2 of 4" in pages[0]
    assert "startLine=3" in pages[0]
    assert "lines 3-3 of 4" in pages[1]
