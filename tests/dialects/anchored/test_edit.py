"""What the anchored contract does not say, and what can go wrong."""

import json
from typing import Any

import pytest

from dialects.anchored.lines import Edited, Lines, bare
from dialects.place import Place
from spec.marks import requirement
from tool_names import DEFAULT_TOOLS

TEN = "".join(f"line number {n} here\n" for n in range(1, 11))


@requirement("anchored:anchor:row", "anchored:anchor:marks", "anchored:anchor:occurrence_suffix")
def test_rows_are_anchor_mark_bar_and_the_line_as_it_is(lines: Lines) -> None:
    lines.put("  indented text\n}\nx = 1\n}\n")

    data = lines.place.on("read_file", lines.name, hashes=True).data
    first, brace, short, again = data["content"].split("\n")

    assert first.endswith("|  indented text")
    assert (brace.endswith(".1!|}"), short.endswith("~|x = 1"), again.endswith(".2!|}")) == (True, True, True)
    assert [row["quality"] for row in data["lines"]] == ["high", "low", "med", "low"]


@requirement("anchored:fields:foreign")
@pytest.mark.parametrize(
    ("operation", "right"),
    [
        ({"op": "replace_line", "start_hash": "abcdef", "content": "x"}, "hash"),
        ({"op": "delete_range", "hash": "abcdef"}, "start_hash and end_hash"),
        ({"op": "replace_range", "start_hash": "abcdef", "end_hash": "abcdef", "occurrence": 2, "content": "x"}, ".K"),
        ({"op": "delete_line", "hash": "abcdef", "content": "x"}, "deletes"),
        ({"op": "insert_after", "hash": "abcdef"}, "`content`"),
        ({"op": "replace_range", "start_hash": "abcdef", "content": "x"}, "`end_hash`"),
    ],
)
def test_a_field_of_another_operation_is_refused_with_the_right_one(
    place: Place, operation: dict[str, Any], right: str
) -> None:
    lines = Lines(place, "file.txt")
    lines.put(TEN)

    answer = lines.edit(operation)

    assert answer.error["error"] == "schema_invalid"
    assert right in answer.error["message"]
    assert lines.get() == TEN


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "explode", "hash": "abcdef"},
        {"hash": "abcdef", "content": "x"},
        {"op": "replace_line", "hash": "abcdef", "content": "x", "colour": "red"},
        {"op": "replace_line", "hash": 123456, "content": "x"},
        {"op": "replace_line", "hash": "abcdef", "content": ["x"]},
        "delete line 3",
    ],
)
@requirement("anchored:fields:wrong")
def test_what_is_no_operation_is_refused(place: Place, operation: Any) -> None:
    lines = Lines(place, "file.txt")
    lines.put(TEN)

    answer = lines.edit(operation)

    assert answer.error["error"] == "schema_invalid"
    assert answer.text.startswith("Nothing was written. schema_invalid: ")
    assert lines.get() == TEN


@requirement("anchored:fields:wrong")
@pytest.mark.parametrize("wrong", [{"operations": {}}, {"operations": None}, {"safety_check": "lax"}, {"path": ""}])
def test_what_is_no_edit_is_refused(place: Place, wrong: dict[str, Any]) -> None:
    lines = Lines(place, "file.txt")
    lines.put(TEN)

    assert lines.edit({"op": "delete_line", "hash": "abcdef"}, **wrong).error["error"] == "schema_invalid"


@pytest.mark.parametrize("wrong", ["", "xyz", "12", "#", "3#zzzzzz", "line 3", "🎉"])
def test_what_is_no_anchor_is_refused(place: Place, wrong: str) -> None:
    lines = Lines(place, "file.txt")
    lines.put(TEN)

    assert lines.edit({"op": "delete_line", "hash": wrong}).error["error"] == "schema_invalid"
    assert lines.get() == TEN


def test_no_operations_are_refused(lines: Lines) -> None:
    lines.put(TEN)

    assert not lines.edit().ok
    assert lines.get() == TEN


@requirement("anchored:result:refusal")
def test_a_refusal_says_the_same_as_text_and_as_data(lines: Lines) -> None:
    lines.put(TEN)
    lines.read()

    answer = lines.edit({"op": "delete_line", "hash": "abcdef"})

    assert answer.text.startswith("Nothing was written. anchor_stale: ")
    assert answer.error["message"] in answer.text
    assert answer.raw["structuredContent"]["error"] == "anchor_stale"


@requirement("anchored:dry_run:same", "anchored:continuity:refused_edit")
def test_a_dry_run_and_a_refused_edit_leave_nothing_behind(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()
    operation = {"op": "replace_line", "hash": anchors[3], "content": "three"}

    dry = lines.edit(operation, dry_run=True)
    refused = lines.edit({"op": "delete_line", "hash": "abcdef"})
    real = lines.edit(operation)

    assert (dry.data["dry_run"], dry.data["change_id"], dry.data["diff"]) == (True, "", real.data["diff"])
    assert (refused.ok, real.data["writers"], real.data["baseline_continuity"]) == (False, [], "clean")
    assert [row["ok"] for row in lines.place.entries()] == [True, False]


def test_the_anchors_in_an_answer_serve_for_the_next_edit(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()
    first = lines.edit({"op": "insert_after", "hash": anchors[2], "content": "new one\nnew two"})

    second = lines.edit({"op": "replace_line", "hash": first.data["new_anchors"][1], "content": "newer"})

    assert second.data["cross_version"] is False
    assert lines.get().splitlines()[2:4] == ["new one", "newer"]


@requirement("anchored:unseen:refused", "anchored:unseen:retry")
def test_a_range_over_unseen_lines_is_shown_and_a_plain_retry_works(lines: Lines) -> None:
    lines.put(TEN)
    first, last = lines.read(endLine=2), lines.read(startLine=9)
    operation = {"op": "delete_range", "start_hash": first[2], "end_hash": last[9]}

    refused, retried = lines.edit(operation), lines.edit(operation)

    assert refused.error["error"] == "range_unseen"
    assert any("line number 5 here" in row for row in refused.error["details"]["fresh_rows"])
    assert retried.ok
    assert lines.get() == "line number 1 here\nline number 10 here\n"


@requirement("anchored:content:copied_prefixes")
def test_rows_that_were_copied_into_the_content_lose_their_anchors(lines: Lines) -> None:
    lines.put(TEN)
    data = lines.place.on("read_file", lines.name, hashes=True).data
    copied = "\n".join(data["content"].split("\n")[:2])
    anchors = lines.read()

    answer = lines.edit({"op": "insert_after", "hash": anchors[10], "content": copied})

    assert answer.data["auto_corrections"]
    assert lines.get() == TEN + "line number 1 here\nline number 2 here\n"


@requirement("anchored:virtual:ends")
def test_an_empty_file_is_filled_from_its_ends(lines: Lines) -> None:
    lines.put("")

    assert lines.edit({"op": "insert_after", "hash": "EOF", "content": "one\ntwo\n"}).ok
    assert lines.get() in ("one\ntwo\n", "one\ntwo")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one text\r\ntwo text\r\n", b"one text\r\nnew\r\nnewer\r\ntwo text\r\n"),
        (b"one text\ntwo text", b"one text\nnew\nnewer\ntwo text"),
        (b"\xef\xbb\xbfone text\ntwo text\n", b"\xef\xbb\xbfone text\nnew\nnewer\ntwo text\n"),
        (b"one text\rtwo text\r", b"one text\rnew\rnewer\rtwo text\r"),
        ("one text\ntwo text\n".encode("utf-16"), "one text\nnew\nnewer\ntwo text\n".encode("utf-16")),
    ],
)
def test_new_lines_take_the_endings_of_the_file(place: Place, before: bytes, after: bytes) -> None:
    lines = Lines(place, "file.txt")
    place.put(lines.name, before)
    anchors = lines.read()

    assert lines.edit({"op": "insert_after", "hash": anchors[1], "content": "new\r\nnewer"}).ok
    assert place.get(lines.name) == after


def test_characters_that_the_file_cannot_hold_are_refused(place: Place) -> None:
    lines = Lines(place, "file.py")
    place.put(lines.name, "# coding: latin-1\ncafé = 1\n".encode("latin-1"))
    anchors = lines.read()

    answer = lines.edit({"op": "insert_after", "hash": anchors[2], "content": "# →"})

    assert answer.error["error"] == "encoding_unencodable"
    assert answer.error["details"]["characters"] == ["U+2192"]


@pytest.mark.parametrize("what", ["gone", "directory", "link", "binary"])
def test_a_file_that_is_none_any_more_is_refused(place: Place, what: str) -> None:
    lines = Lines(place, "file.txt")
    lines.put(TEN)
    anchors = lines.read()
    path = place.file(lines.name)
    path.unlink()
    if what == "directory":
        path.mkdir()
    elif what == "link":
        path.symlink_to("/etc/passwd")
    elif what == "binary":
        path.write_bytes(b"\0\1\2\3" * 100)

    answer = lines.edit({"op": "delete_line", "hash": anchors[1]})

    kinds = {"gone": "not_found", "directory": "not_found", "link": "outside_workspace", "binary": "binary_file"}
    assert answer.error["error"] == kinds[what]


def test_the_anchors_of_another_file_name_nothing(place: Place) -> None:
    one, other = Lines(place, "one.txt"), Lines(place, "other.txt")
    one.put(TEN)
    other.put(TEN.replace("line", "row"))
    anchors = other.read()

    assert one.edit({"op": "delete_line", "hash": anchors[1]}).error["error"] == "anchor_stale"


def test_a_very_long_line_is_replaced(lines: Lines) -> None:
    lines.put("short one\n" + "x" * 1_000_000 + "\nshort two\n")
    anchors = lines.read(startLine=3)

    assert lines.edit({"op": "insert_before", "hash": anchors[3], "content": "between"}).ok
    assert lines.get().splitlines()[2] == "between"


def test_two_thousand_operations_are_one_edit(lines: Lines) -> None:
    count = 4_000
    lines.put("".join(f"line number {n} here\n" for n in range(count)))
    anchors = lines.read() | lines.read(startLine=2001) | lines.read(startLine=3500)

    operations = [
        {"op": "replace_line", "hash": anchors[n], "content": f"changed {n}"} for n in sorted(anchors) if n % 2 == 0
    ]
    answer = lines.edit(*operations[:2_000])

    assert answer.data["operations_applied"] == len(operations[:2_000])
    assert lines.get().count("changed") == len(operations[:2_000])


@requirement("anchored:sanity:markers", "anchored:sanity:settings", "anchored:sanity:broken_before")
def test_damage_is_refused_unless_the_caller_insists(place: Place) -> None:
    lines = Lines(place, "code.py")
    lines.put("def one():\n    return 1\n")
    anchors = lines.read()
    marker = {"op": "insert_after", "hash": anchors[2], "content": "<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> other"}

    strict = lines.edit(marker)
    warned = lines.edit(marker, safety_check="warn")
    already_broken = lines.edit({"op": "delete_line", "hash": anchors[1]}, safety_check="strict")

    assert strict.error["error"] == "safety_check_failed"
    assert (warned.data["safety_status"], bool(warned.data["safety_warnings"])) == ("suspicious", True)
    assert already_broken.ok


@requirement("anchored:sanity:habits")
def test_a_plus_of_a_diff_and_lost_indentation_are_written_with_a_warning(lines: Lines) -> None:
    lines.put("fn example() {\n    let first = 1;\n    let second = 2;\n}\n")
    anchors = lines.read()

    plus = lines.edit({"op": "replace_line", "hash": anchors[2], "content": "+    let first = 3;"}, dry_run=True)
    lost = lines.edit({"op": "replace_line", "hash": anchors[3], "content": "let second = 3;"})

    assert "Line 2 begins with `+`, as in a diff, and what it replaces does not." in plus.data["warnings"]
    assert (lost.data["safety_status"], lost.data["warnings"]) == (
        "clean",
        ["Line 3 is not indented, and what it replaces was."],
    )
    assert "Warning: Line 3 is not indented, and what it replaces was." in lost.text
    assert lines.get() == "fn example() {\n    let first = 1;\nlet second = 3;\n}\n"


@requirement("promise:product:default_tools", "promise:product:shared_tools")
def test_both_families_are_served_and_their_common_tools_once(place: Place) -> None:
    names = [tool["name"] for tool in place.client.request("tools/list")["tools"]]

    assert names == DEFAULT_TOOLS


def test_an_edit_is_undone_by_a_person(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()
    change = lines.edit({"op": "delete_line", "hash": anchors[5]}).data["change_id"]

    lines.place.shell("undo", change)

    assert lines.get() == TEN


@requirement("front:cli:read", "front:cli:edit")
def test_a_person_reads_with_hashes_and_edits_by_them(lines: Lines) -> None:
    lines.put(TEN)
    path, operations = lines.place.path(lines.name), lines.place.root / "operations.json"
    rows = lines.place.shell("read", path, "--hashes", "--lines", "2:3").splitlines()
    operations.write_text(json.dumps([{"op": "replace_line", "hash": rows[0], "content": "two"}]))

    shown = lines.place.shell("edit", path, "--operations", str(operations), "--dry-run")
    untouched = lines.get()
    lines.place.shell("edit", path, "--operations", str(operations))

    assert [row.partition("|")[2] for row in rows] == ["line number 2 here", "line number 3 here"]
    assert ("1 operation would be applied" in shown, untouched) == (True, TEN)
    assert lines.get() == TEN.replace("line number 2 here", "two")


@requirement("anchored:resolution:level", "anchored:anchor:spellings")
def test_every_spelling_of_an_anchor_finds_its_line(lines: Lines) -> None:
    lines.put(TEN)
    row = lines.place.on("read_file", lines.name, hashes=True).data["content"].split("\n")[3]
    anchor = row.partition("|")[0]

    for spelled in (bare(anchor), bare(anchor).upper(), bare(anchor)[:4], anchor, row):
        answer = lines.edit({"op": "replace_line", "hash": spelled, "content": "x"}, dry_run=True)

        assert answer.data["operations"][0]["start_line"] == 4
        assert answer.data["operations"][0]["resolution_level"]


def test_the_call_reaches_the_ledger_as_edit(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()
    lines.edit({"op": "delete_line", "hash": anchors[5]}, reason="not needed")

    (entry,) = lines.place.entries()

    assert (entry["tool"], entry["operation"], entry["reason"]) == ("edit", "edit", "not needed")


def test_arguments_that_are_none_at_all_are_refused(lines: Lines) -> None:
    answer = Edited(lines.place.client.call("edit", {"path": lines.place.path("none"), "operations": "all of them"}))

    assert not answer.ok
    assert list((lines.place.root / lines.place.name).iterdir()) == []
