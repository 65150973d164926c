"""What a change answers: bytes that stay, ranges, a diff that fits, and data for programs."""

import json

from dialects.multi_edit.ways import Desk
from dialects.place import sha256
from spec.marks import requirement


@requirement("multi_edit:result:shape")
def test_programs_get_both_versions_and_the_change_beside_the_result(desk: Desk) -> None:
    before = desk.put("a.txt", "one\n")

    whole = desk.multi_edit("a.txt", ("one", "two")).whole

    meta = whole.pop("_meta")
    assert set(whole) == {"success", "diff", "applied_count", "line_ranges"}
    assert (meta["before_sha256"], meta["sha256"]) == (before, sha256(b"two\n"))
    assert meta["change_id"]


@requirement("multi_edit:result:dry_run")
def test_a_dry_run_answers_the_same_and_writes_nothing(desk: Desk) -> None:
    desk.put("a.txt", "one\n")

    said = desk.multi_edit("a.txt", ("one", "two"), dry_run=True)
    refused = desk.multi_edit("a.txt", ("three", "two"), dry_run=True)

    assert desk.get("a.txt") == b"one\n"
    assert said.text.startswith("Dry run, nothing was written. Would do: 1 edit applied.")
    assert refused.told == (-32010, "Edit 0: String not found: three")
    assert said.result == {**desk.multi_edit("a.txt", ("one", "two")).result, "dry_run": True}


@requirement("multi_edit:result:line_ranges")
def test_a_final_line_break_does_not_extend_a_range_and_ranges_follow_earlier_edits(desk: Desk) -> None:
    desk.put("a.txt", "1\n2\n3\n4\n")

    reply = desk.multi_edit("a.txt", ("1\n", "a\nb\nc\n"), ("3\n4\n", "x"), ("c\n2", "y"))

    assert reply.result["line_ranges"] == [
        {"edit_index": 0, "start": 1, "end": 1},
        {"edit_index": 1, "start": 5, "end": 6},
        {"edit_index": 2, "start": 3, "end": 4},
    ]
    assert desk.get("a.txt") == b"a\nb\ny\nx"


@requirement("multi_edit:edit:staged")
def test_bytes_that_no_edit_names_stay_as_they_are(desk: Desk) -> None:
    data = "\ufeffä\r\nb\nc\r\nd".encode("utf-16-le")
    desk.put("a.txt", data)

    reply = desk.multi_edit("a.txt", ("b", "B"), ("c\nd", "C\nD"))

    assert reply.result["applied_count"] == 2
    assert desk.get("a.txt") == "\ufeffä\r\nB\nC\r\nD".encode("utf-16-le")


def test_edits_that_lead_back_to_the_original_write_nothing(desk: Desk) -> None:
    desk.put("a.txt", "one\n")

    reply = desk.multi_edit("a.txt", ("one", "two"), ("two", "one"))

    assert (reply.result["diff"], reply.result["applied_count"]) == ("", 2)
    assert reply.whole["_meta"]["change_id"] == ""


def test_a_long_diff_is_cut_for_a_model_and_whole_for_a_program(served: Desk) -> None:
    served.put("long.txt", "".join(f"row {number}\n" for number in range(9_000)))
    edits = [(f"row {number}\n", f"line {number}\n") for number in range(1_000, 9_000, 8)]

    reply = served.multi_edit("long.txt", *edits)

    change = reply.whole["_meta"]["change_id"]
    assert reply.whole["diff"].count("\n@@ ") == len(edits)
    assert reply.result["diff"].endswith(f"\n[the diff goes on; all of it: surehold show {change}]\n")
    assert set(reply.result) == {"success", "diff", "applied_count", "line_ranges"}
    assert len(json.dumps(reply.result)) < 80_000
    assert reply.text.count("\n") < 2_500


def test_other_names_for_arguments_are_understood_and_unknown_ones_are_mentioned(desk: Desk) -> None:
    desk.put("a.txt", "one\n")
    arguments = {"file_path": desk.path("a.txt"), "edits": [{"oldText": "one", "newText": "two"}], "wait": True}

    reply = desk.way.call("multi_edit_text_file", arguments)

    assert desk.get("a.txt") == b"two\n"
    assert reply.whole["_meta"]["warnings"] == ["Unknown argument `wait` was ignored."]
    assert "Warning: Unknown argument `wait` was ignored." in reply.text
