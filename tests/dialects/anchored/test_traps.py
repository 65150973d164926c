"""Edits that looked right and were not: each of these once landed on a wrong line, or could have."""

import pytest

from dialects.anchored.lines import Lines, bare
from dialects.every_tool import EveryTool
from dialects.place import Place
from spec.marks import requirement
from surehold.text.encoding import UTF8
from surehold.text.snapshot import digest_text, line_digests


def periodic(count: int) -> str:
    return "".join(f"alpha {n}\nbeta {n}\n    return x\n" for n in range(count))


def test_an_offset_that_was_counted_before_an_own_edit_is_not_counted_in_the_new_version(lines: Lines) -> None:
    text = "".join(f"def function_{n}():\n" if n % 10 == 9 else f"    body_{n}\n" for n in range(1, 31))
    lines.put(text)
    rows = str(lines.place.on("read_file", lines.name, hashes=True, anchors="sparse").data["content"]).split("\n")
    line = next(n for n, row in enumerate(rows, start=1) if "function_9" in row)
    anchor = rows[line - 1].partition("|")[0]
    assert "#" in anchor
    assert lines.edit({"op": "insert_after", "hash": anchor, "content": '    """Doc."""'}, safety_check="off").ok
    before = lines.get()

    answer = lines.edit({"op": "replace_line", "hash": f"{anchor}+3", "content": "    CHANGED"}, safety_check="off")

    if answer.ok:
        assert lines.get() == before.replace("    body_12\n", "    CHANGED\n")
    else:
        assert lines.get() == before


@requirement("anchored:resolution:line_number")
@pytest.mark.parametrize("wrong", ["field", "copied"])
def test_a_number_that_fits_no_line_does_not_fetch_an_older_version(place: Place, wrong: str) -> None:
    """It was read again, and both lines were shown: that one of them was once the only one says nothing."""
    lines = Lines(place, "file.txt")
    text = "header one here\nrepeat me please\nmiddle text line\nrepeat me please\nfooter text line\n"
    lines.put(text)
    anchors = lines.read()
    assert lines.edit({"op": "replace_line", "hash": anchors[4], "content": "something else"}).ok
    lines.put(text)
    lines.read()
    hash_ = bare(anchors[2])

    pointer = {"hash": hash_, "line": 3} if wrong == "field" else {"hash": f"3#{hash_}"}
    answer = lines.edit({"op": "replace_line", **pointer, "content": "x y z"})

    assert answer.error["error"] == "anchor_ambiguous"
    assert lines.get() == text


@requirement("anchored:resolution:line_number")
def test_two_numbers_that_name_two_equal_lines_decide_nothing(place: Place) -> None:
    lines = Lines(place, "file.txt")
    text = "header one here\nrepeat me please\nmiddle text line\nrepeat me please\nfooter text line\n"
    lines.put(text)
    hash_ = bare(lines.read()[2])

    answer = lines.edit({"op": "replace_line", "hash": f"2#{hash_}", "line": 4, "content": "x y z"})

    assert answer.error["error"] == "anchor_ambiguous"
    assert lines.get() == text
    assert lines.edit({"op": "replace_line", "hash": f"2#{hash_}", "line": 3, "content": "x y z"}).ok
    assert lines.get() == text.replace("repeat me please", "x y z", 1)


@pytest.mark.parametrize("how", ["suffix", "field"])
def test_an_occurrence_that_was_counted_before_an_own_edit_is_not_counted_in_the_new_version(
    place: Place, how: str
) -> None:
    lines = Lines(place, "file.txt")
    rows = [f"line number {n} here" for n in range(1, 61)]
    for number in (3, 5, 30, 50):
        rows[number - 1] = "    return x"
    lines.put("\n".join(rows) + "\n")
    anchors = lines.read()
    hash_ = bare(anchors[3])
    assert lines.edit({"op": "delete_line", "hash": anchors[3]}).ok
    before = lines.get()

    sent = {"hash": f"{hash_}.3"} if how == "suffix" else {"hash": hash_, "occurrence": 3}
    answer = lines.edit({"op": "replace_line", **sent, "content": "CHANGED"})

    assert not answer.ok or lines.get().splitlines()[28] == "CHANGED"
    assert lines.get().splitlines()[48] == "    return x"
    assert answer.ok or lines.get() == before


def test_a_range_is_not_made_of_ends_that_belong_to_two_versions(lines: Lines) -> None:
    rows = [f"line number {n} here" for n in range(1, 61)]
    for number in (3, 5, 30, 50):
        rows[number - 1] = "    return x"
    lines.put("\n".join(rows) + "\n")
    anchors = lines.read()
    assert lines.edit({"op": "delete_line", "hash": anchors[3]}).ok

    answer = lines.edit({"op": "delete_range", "start_hash": anchors[28], "end_hash": f"{bare(anchors[30])}.3"})

    assert not answer.ok or answer.data["net_line_change"] == -3


def test_a_large_file_is_guarded_although_its_bytes_are_not_kept(lines: Lines) -> None:
    text = periodic(160_000)
    lines.put(text)
    anchors = lines.read(startLine=3001, endLine=3006)
    far = lines.read(startLine=9001, endLine=9003)

    unseen = lines.edit({"op": "delete_range", "start_hash": anchors[3001], "end_hash": far[9001]}, dry_run=True)
    seen = lines.edit({"op": "replace_line", "hash": anchors[3003], "content": "    return y"}, dry_run=True)
    lines.put("".join(text.splitlines(keepends=True)[3:]))
    moved = lines.edit({"op": "replace_line", "hash": anchors[3003], "content": "CHANGED"})

    assert len(text) > 4 << 20
    assert unseen.error["error"] == "range_unseen"
    assert seen.data["operations"][0]["start_line"] == 3003
    assert not moved.ok
    assert "CHANGED" not in lines.get()


def test_rows_that_were_cut_from_an_answer_were_not_shown(lines: Lines) -> None:
    lines.put(periodic(200))
    anchors = lines.read()
    first = lines.edit(
        {"op": "replace_line", "hash": anchors[1], "content": "x" * 25_000},
        {"op": "delete_range", "start_hash": anchors[4], "end_hash": anchors[6]},
        {"op": "replace_line", "hash": anchors[298], "content": "alpha ninety-nine"},
    )
    assert first.data["diff_truncated"] is True
    before = lines.get().splitlines()

    answer = lines.edit({"op": "replace_line", "hash": anchors[294], "content": "CHANGED"})

    after = lines.get().splitlines()
    assert not answer.ok or after[290] == "CHANGED"
    assert after[293] == before[293]


def test_only_rows_that_reach_the_caller_count_as_shown_by_a_refusal(lines: Lines) -> None:
    lines.put("".join(f"line {n} {'x' * 360}\n" for n in range(1, 401)))
    first, last = lines.read(endLine=2), lines.read(startLine=399)
    operation = {"op": "delete_range", "start_hash": first[1], "end_hash": last[400]}

    refused = lines.edit(operation)
    again = lines.edit(operation)

    assert len(refused.error["details"]["fresh_rows"]) < 396
    assert all(row in refused.text for row in refused.error["details"]["fresh_rows"])
    assert again.error["error"] == "range_unseen"


def test_a_long_stale_range_shows_both_of_its_ends(lines: Lines) -> None:
    rows = [f"line number {n} here" for n in range(1, 201)]
    lines.put("\n".join(rows) + "\n")
    anchors = lines.read()
    lines.put("\n".join([*rows[:100], "an outside line", *rows[100:]]) + "\n")

    refused = lines.edit({"op": "delete_range", "start_hash": anchors[50], "end_hash": anchors[150]})

    shown = " ".join(refused.error["details"]["fresh_rows"])
    assert "line number 50 here" in shown
    assert "line number 150 here" in shown


def test_pasted_sparse_anchors_are_not_written(lines: Lines) -> None:
    lines.put(periodic(3))
    anchors = lines.read()

    answer = lines.edit({"op": "insert_after", "hash": anchors[1], "content": f"{anchors[1]}+1|beta"})

    assert not answer.ok or "#" not in lines.get()


def test_a_zero_byte_is_not_written_by_a_text_tool(lines: Lines) -> None:
    lines.put("alpha one\n")
    anchors = lines.read()
    sha256 = lines.place.on("read_file", lines.name).data["sha256"]

    edited = lines.edit({"op": "insert_after", "hash": anchors[1], "content": "a\0b"})
    replaced = lines.place.on(
        "edit_file", lines.name, expectedSha256=sha256, edits=[{"oldText": "one", "newText": "a\0b"}]
    )

    assert (edited.error["error"], replaced.error["reason"]) == ("schema_invalid", "zero_byte")
    assert lines.get() == "alpha one\n"


def test_a_word_that_json_does_not_know_breaks_a_json_file(place: Place) -> None:
    lines = Lines(place, "data.json")
    lines.put('{\n  "a": 1,\n  "b": 2\n}\n')
    anchors = lines.read()

    answer = lines.edit({"op": "replace_line", "hash": anchors[2], "content": '  "a": NaN,'})

    assert answer.error["error"] == "safety_check_failed"


@requirement("anchored:unseen:whole_lines")
@pytest.mark.parametrize("length", [300, 3_000])
def test_long_lines_of_an_unseen_range_are_shown_whole_and_a_plain_retry_works(lines: Lines, length: int) -> None:
    lines.put(f"first line\nsecond {'x' * length} END\nthird {'y' * length} END\nlast line\n")
    anchors = lines.read(startLine=1, endLine=1) | lines.read(startLine=4)
    operation = {"op": "delete_range", "start_hash": anchors[1], "end_hash": anchors[4]}

    refused, retried = lines.edit(operation), lines.edit(operation)

    assert [row.rpartition(" ")[2] for row in refused.error["details"]["fresh_rows"]] == ["END", "END"]
    assert retried.ok, retried.text


@requirement("anchored:unseen:whole_lines")
def test_a_line_that_a_refusal_cuts_does_not_count_as_shown(lines: Lines) -> None:
    lines.put(f"first line\nsecond {'x' * 60_000} END\nlast line\n")
    anchors = lines.read(startLine=1, endLine=1) | lines.read(startLine=3)
    operation = {"op": "delete_range", "start_hash": anchors[1], "end_hash": anchors[3]}

    refused, again = lines.edit(operation), lines.edit(operation)

    assert "END" not in refused.text
    assert "Line 2 is too long to be shown here: read it with hashes" in refused.error["details"]["next"]
    assert again.error["error"] == "range_unseen"
    assert lines.edit({"op": "delete_line", "hash": refused.error["details"]["fresh_rows"][0]}).ok


@requirement("anchored:unseen:whole_lines")
def test_the_beginning_of_a_line_names_it_but_does_not_show_it(every_tool: EveryTool) -> None:
    long = f"the same {'x' * 500} SECRET"
    every_tool.put({"f.txt": f"{long}\n{long}\n"})
    digest = digest_text(line_digests([long.encode()], UTF8)[0])[:6]

    refused = every_tool.edit_lines("f.txt", {"op": "replace_line", "hash": f"2#{digest}.2", "content": "new"})
    edited = every_tool.call(
        "Edit", file_path=every_tool.path("f.txt"), old_string="SECRET", new_string="", replace_all=True
    )
    named = every_tool.edit_lines("f.txt", {"op": "insert_after", "hash": f"2#{digest}.2", "content": "new"})

    assert f"2#{digest}.2" in refused.text
    assert "SECRET" not in refused.text
    assert "partially_read" in edited.text
    assert named.ok, named.text
    assert every_tool.files() == {"f.txt": f"{long}\n{long}\nnew\n"}
