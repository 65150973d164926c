"""Files in an encoding that nothing declares: who names it when reading can edit them."""

import pytest

from dialects.every_tool import EveryTool
from spec.marks import requirement

JAPANESE = "見出し\r\n日本語のテキスト\r\n終わり\r\n"
CHANGED = "見出し\r\n新しいテキスト\r\n終わり\r\n"
CODEC = "shift_jis"


@requirement("text:encoding:named")
@pytest.mark.parametrize("tool", ["edit_file", "multi_edit_text_file", "Edit"])
def test_a_quoted_text_is_replaced_in_the_encoding_that_was_named(every_tool: EveryTool, tool: str) -> None:
    every_tool.put({"a.txt": JAPANESE.encode(CODEC)})

    early = every_tool.quote_edit(tool, "a.txt", "日本語", "新しい")
    assert (early.ok, "Read the file with its `encoding` named" in early.text) == (False, True)
    assert (every_tool.folder / "a.txt").read_bytes() == JAPANESE.encode(CODEC)

    every_tool.call("read_file", path=every_tool.path("a.txt"), encoding=CODEC)
    answer = every_tool.quote_edit(tool, "a.txt", "日本語の", "新しい")

    assert answer.ok, answer.text
    assert (every_tool.folder / "a.txt").read_bytes() == CHANGED.encode(CODEC)


@requirement("text:encoding:named")
def test_lines_and_whole_files_are_written_in_the_encoding_that_was_named(every_tool: EveryTool) -> None:
    every_tool.put({"a.txt": JAPANESE.encode(CODEC), "b.txt": JAPANESE.encode(CODEC), "c.txt": JAPANESE.encode(CODEC)})
    for name in "abc":
        every_tool.call("Read", file_path=every_tool.path(f"{name}.txt"), encoding=CODEC)
    anchors = every_tool.anchors("a.txt")

    edited = every_tool.edit_lines("a.txt", {"op": "replace_line", "hash": anchors[2], "content": "新しいテキスト"})
    written = every_tool.call("Write", file_path=every_tool.path("b.txt"), content=CHANGED.replace("\r\n", "\n"))
    patched = every_tool.patch(
        "*** Begin Patch", "*** Update File: {}/c.txt", "@@", "-日本語のテキスト", "+新しいテキスト", "*** End Patch"
    )

    assert (edited.ok, written.ok, patched.ok) == (True, True, True)
    for name in "abc":
        assert (every_tool.folder / f"{name}.txt").read_bytes() == CHANGED.encode(CODEC)


@requirement("text:encoding:named")
def test_a_name_does_not_outweigh_what_the_bytes_say(every_tool: EveryTool) -> None:
    every_tool.put({"a.txt": "café\n", "b.txt": JAPANESE.encode(CODEC)})
    every_tool.call("read_file", path=every_tool.path("a.txt"), encoding="latin-1")
    every_tool.call("read_file", path=every_tool.path("b.txt"), encoding=CODEC)
    every_tool.put({"b.txt": "plain é\n"})

    for name, old in (("a.txt", "café"), ("b.txt", "plain é")):
        assert every_tool.quote_edit("edit_file", name, old, "thé").ok
    assert every_tool.files() == {"a.txt": "thé\n", "b.txt": "thé\n"}
