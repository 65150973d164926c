"""What a refusal says to a model: sentences and rows to copy, nothing that only a program can read."""

import re
from collections.abc import Callable

import pytest

from dialects.every_tool import EveryTool, Said
from spec.marks import requirement

UNREADABLE = re.compile(r"\bNone\b|\bTrue\b|\bFalse\b|\{'|\[\{|\]\.|\[\d+\]|\w\.\d+\b(?=[.`])|\r")
"""Python's own spellings, paths into JSON, and a bare CR."""
CURLY = "He said “hello”\nsome—dash\nthe end\n"
TWO_FUNCTIONS = "def a():\n    return None\ndef b():\n    return 1\n"


def patch_of(every_tool: EveryTool, name: str, *rows: str) -> Said:
    return every_tool.patch("*** Begin Patch", f"*** Update File: {{}}/{name}", "@@", *rows, "*** End Patch")


@requirement("files:apply_patch:markers")
def test_blanks_around_the_first_and_the_last_marker_do_not_matter(every_tool: EveryTool) -> None:
    every_tool.put({"a.txt": "one\nkept\n"})

    answer = every_tool.patch(
        "  *** Begin Patch  ", "*** Update File: {}/a.txt", "@@", "-one", "+two", " kept", "   *** End Patch \t", ""
    )

    assert answer.ok, answer.text
    assert every_tool.files() == {"a.txt": "two\nkept\n"}


@requirement("files:apply_patch:near_misses")
@pytest.mark.parametrize(
    ("row", "shown", "why"),
    [
        ('He said "hello"', "1→He said “hello”", "which only looks the same (the file has U+201C, U+201D)"),
        ("some-dash", "2→some—dash", "which only looks the same (the file has U+2014)"),
        ("  the  end", "3→the end", "which differs in blanks only"),
        ("the very end", "3→the end", "where the hunk has `the very end`"),
    ],
)
def test_a_line_that_is_almost_there_is_shown(every_tool: EveryTool, row: str, shown: str, why: str) -> None:
    every_tool.put({"u.txt": CURLY})

    answer = patch_of(every_tool, "u.txt", f"-{row}", "+new")

    assert not answer.ok
    assert why in answer.text
    assert shown in answer.text.split("\n")
    assert "Copy the lines from `closest`, which are those of the file now" in answer.text


@requirement("files:apply_patch:already_applied")
def test_a_line_that_happens_to_be_there_does_not_mean_that_the_hunk_was_applied(every_tool: EveryTool) -> None:
    every_tool.put({"m.py": TWO_FUNCTIONS})

    alone = patch_of(every_tool, "m.py", "-    return 2", "+    return None")
    around = patch_of(every_tool, "m.py", " def a():", "-    return 2", "+    return None", " def b():")

    assert "the old line is not in the file; a line equal to the new one is at 2." in alone.text
    assert "applied before" not in alone.text
    assert "its new lines are already at line 1." in around.text
    assert "Leave this hunk out: it was applied before." in around.text


@requirement("text:strings:closest")
@pytest.mark.parametrize("tool", ["Edit", "edit_file", "multi_edit_text_file"])
@pytest.mark.parametrize(
    "quoted", ["\n  line1\n  line2\n", "  \n\n  line1\n  line2\n", "line0\n    line1\n    line2\n"]
)
def test_lines_below_a_wrong_beginning_are_shown(every_tool: EveryTool, tool: str, quoted: str) -> None:
    every_tool.put({"l.py": "    line1\n    line2\n    line3\n"})

    answer = every_tool.quote_edit(tool, "l.py", quoted, "  new\n")

    assert not answer.ok
    assert {"1→    line1", "2→    line2"} <= set(answer.text.split("\n"))


def stale_edit(every_tool: EveryTool) -> Said:
    anchors = every_tool.anchors("b.txt")
    every_tool.put({"b.txt": "alpha one\nnew\n"})
    return every_tool.edit_lines("b.txt", {"op": "delete_range", "start_hash": anchors[1], "end_hash": anchors[4]})


def low_and_stale_edit(every_tool: EveryTool) -> Said:
    bare = [anchor.partition("#")[2].partition(".")[0] for anchor in every_tool.anchors("b.txt").values()]
    operations = ({"op": "delete_line", "hash": hash_} for hash_ in (bare[1], bare[4], "abcdef"))
    return every_tool.edit_lines("b.txt", *operations)


def broken_edit(every_tool: EveryTool) -> Said:
    operation = {"op": "replace_line", "hash": every_tool.anchors("s.json")[1], "content": '{"a": 1'}
    return every_tool.edit_lines("s.json", operation)


def one_line_range(every_tool: EveryTool) -> Said:
    anchor = every_tool.anchors("b.txt")[1]
    return every_tool.edit_lines("b.txt", {"op": "delete_range", "start_hash": anchor, "end_hash": anchor})


def seam_edit(every_tool: EveryTool) -> Said:
    operation = {"op": "insert_after", "hash": every_tool.anchors("b.txt")[1], "content": "alpha one\nmore"}
    return every_tool.edit_lines("b.txt", operation)


REFUSED: dict[str, Callable[[EveryTool], Said]] = {
    "hunk past the end": lambda all_: patch_of(all_, "b.txt", " same thing", " y", "-more", "+x"),
    "hunk with a lone CR": lambda all_: patch_of(all_, "cr.txt", " one", "-two", "+2"),
    "hunk without a place": lambda all_: patch_of(all_, "b.txt", "+x"),
    "unreadable row": lambda all_: patch_of(all_, "b.txt", "nonsense\rhere"),
    "several problems": low_and_stale_edit,
    "changed range": stale_edit,
    "range of one line": one_line_range,
    "broken syntax": broken_edit,
    "repeated line": seam_edit,
    "no anchor": lambda all_: all_.edit_lines("b.txt", {"op": "delete_line", "hash": "z\rz"}),
    "no operation": lambda all_: all_.call("edit", path=all_.path("b.txt"), operations=[3, {"op": "x"}]),
    "wrong part of an argument": lambda all_: all_.call(
        "edit_file", path="b.txt", edits=[{"oldText": "a", "newText": 5}, {"oldText": 6, "newText": "b", "x": 1}]
    ),
    "wrong operation": lambda all_: all_.call("edit", path="b.txt", operations=[{"op": "x"}, {"op": "y", "hash": 3}]),
    "wrong argument": lambda all_: all_.call("edit_file", path="b.txt", edits=[3]),
    "wrong arguments": lambda all_: all_.call("edit_file", path=3, edits="x"),
    "text in several places": lambda all_: all_.quote_edit("Edit", "b.txt", "same thing", "x"),
    "text not there": lambda all_: all_.quote_edit("Edit", "b.txt", "  alpha  one\n},", "x"),
    "text with CR not there": lambda all_: all_.quote_edit("edit_file", "cr.txt", "two\rtree", "x"),
    "stale file": lambda all_: all_.call("write_file", path=all_.path("b.txt"), content="x", expectedSha256="0" * 64),
    "unknown cell": lambda all_: all_.call(
        "NotebookEdit", notebook_path=all_.path("n.ipynb"), new_source="x", cell_id="none"
    ),
    "unread file": lambda all_: all_.call("Write", file_path=all_.path("b.txt"), content="x"),
    "bad expression": lambda all_: all_.call("Grep", pattern="(", path=all_.path(".")),
    "several matches": lambda all_: all_.quote_edit("multi_edit_text_file", "b.txt", "same thing", "x"),
}


@requirement("promise:refusal:readable")
@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_made_of_sentences_and_rows(every_tool: EveryTool, case: str) -> None:
    every_tool.put(
        {
            "b.txt": "alpha one\n},\n},\nbeta two\nsame thing\nx\nsame thing\ny\n",
            "cr.txt": "one\r\ntwo\rthree\nfour\r\n",
            "s.json": '{"a": 1}\n',
            "n.ipynb": '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
        }
    )

    answer = REFUSED[case](every_tool)

    assert not answer.ok
    assert not (found := UNREADABLE.search(answer.text)), (found, answer.text)
