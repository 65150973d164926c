"""Line endings of a file stay as they are, however the quoted and the new text spell theirs."""

import pytest

from dialects.every_tool import EveryTool, Said
from spec.marks import requirement

LF, CRLF = "\n", "\r\n"
QUOTING_TOOLS = ["Edit", "edit_file", "multi_edit_text_file"]
MIXES = [(file, old, new) for file in (LF, CRLF) for old in (LF, CRLF) for new in (LF, CRLF)]


def joined(end: str, *rows: str) -> str:
    return end.join(rows)


@requirement("text:strings:keeps_line_ends")
@pytest.mark.parametrize("tool", QUOTING_TOOLS)
@pytest.mark.parametrize(("file", "old", "new"), MIXES)
def test_a_changed_text_takes_the_line_ends_of_the_file(
    every_tool: EveryTool, tool: str, file: str, old: str, new: str
) -> None:
    every_tool.put({"a.txt": joined(file, "alpha", "beta", "gamma", "")})

    quoted, wanted = joined(old, "alpha", "beta", "gamma"), joined(new, "alpha", "beta-updated", "gamma")
    answer = every_tool.quote_edit(tool, "a.txt", quoted, wanted)

    assert answer.ok, answer.text
    assert every_tool.files() == {"a.txt": joined(file, "alpha", "beta-updated", "gamma", "")}


@requirement("text:strings:changes_line_ends")
@pytest.mark.parametrize("tool", QUOTING_TOOLS)
@pytest.mark.parametrize(("file", "new"), [(LF, CRLF), (CRLF, LF)])
def test_an_edit_that_changes_nothing_but_line_ends_changes_them(
    every_tool: EveryTool, tool: str, file: str, new: str
) -> None:
    every_tool.put({"a.txt": joined(file, "alpha", "beta", "gamma", "")})

    answer = every_tool.quote_edit(tool, "a.txt", joined(file, "alpha", "beta", ""), joined(new, "alpha", "beta", ""))

    assert answer.ok, answer.text
    assert every_tool.files() == {"a.txt": joined(new, "alpha", "beta", "") + joined(file, "gamma", "")}


@requirement("text:strings:keeps_line_ends")
@pytest.mark.parametrize("tool", QUOTING_TOOLS)
def test_every_line_of_a_mixed_file_keeps_its_own_end(every_tool: EveryTool, tool: str) -> None:
    every_tool.put({"a.txt": "one\r\ntwo\nthree\r\nfour\n"})

    answer = every_tool.quote_edit(tool, "a.txt", "one\r\ntwo\nthree\r\nfour", "one\n2\nthree\nfour")

    assert answer.ok, answer.text
    assert every_tool.files() == {"a.txt": "one\r\n2\nthree\r\nfour\n"}


MIXED = "one\r\ntwo\nthree\r\n"


def replace_second_line(every_tool: EveryTool, tool: str) -> Said:
    """Replace `two` by two lines, as each tool does it."""
    if tool in QUOTING_TOOLS:
        return every_tool.quote_edit(tool, "a.txt", "two", "2\n2.5")
    if tool == "edit":
        anchor = every_tool.anchors("a.txt")[2]
        return every_tool.edit_lines("a.txt", {"op": "replace_line", "hash": anchor, "content": "2\n2.5"})
    rows = ("*** Begin Patch", "*** Update File: {}/a.txt", "@@", "-two", "+2", "+2.5", "*** End Patch")
    return every_tool.patch(*rows)


@requirement("text:new_line:replaced")
@pytest.mark.parametrize("tool", [*QUOTING_TOOLS, "edit", "apply_patch"])
def test_new_lines_end_like_the_line_that_they_replace_whichever_tool_edits_them(
    every_tool: EveryTool, tool: str
) -> None:
    every_tool.put({"a.txt": MIXED})

    answer = replace_second_line(every_tool, tool)

    assert answer.ok, answer.text
    assert every_tool.files() == {"a.txt": "one\r\n2\n2.5\nthree\r\n"}
