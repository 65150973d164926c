"""Every scenario of the anchored contract, by its name, through a real server process."""

from pathlib import Path
from typing import Any

import pytest

from dialects.anchored.lines import Lines, bare
from dialects.place import Place
from front.mcp.client import StdioClient, surehold
from spec.marks import requirement

TEN = "".join(f"line number {n} here\n" for n in range(1, 11))
BRACES = "function one() {\n  call();\n}\n\nfunction two() {\n  call();\n}\n"


def refusals_of(lines: Lines, sent: dict[str, str]) -> list[dict[str, Any]]:
    """Return the details of a refusal of each hash alone."""
    return [lines.edit({"op": "delete_line", "hash": hash_}, dry_run=True).error["details"] for hash_ in sent.values()]


def numbered(count: int) -> str:
    return "".join(f"line number {n} here\n" for n in range(1, count + 1))


@requirement("anchored:replace_line:success")
def test_successful_single_line_replacement(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    assert lines.edit({"op": "replace_line", "hash": bare(anchors[3]), "content": "  return x + 1;"}).ok
    assert lines.get() == TEN.replace("line number 3 here", "  return x + 1;")


@requirement("anchored:stale:unknown_hash")
def test_replace_line_with_unknown_hash(lines: Lines) -> None:
    lines.put(TEN)
    lines.read()

    answer = lines.edit({"op": "replace_line", "hash": "abcdef", "content": "x"})

    assert (answer.error["error"], answer.error["suggested_action"]) == ("anchor_stale", "re-read_file")
    assert "abcdef" in answer.error["message"]
    assert lines.get() == TEN


@requirement("anchored:low:bare_hash", "anchored:low:neighbours")
def test_replace_line_targeting_low_entropy_line_rejected(lines: Lines) -> None:
    lines.put("alpha one\nbeta two\n},\ngamma three\ndelta four\n")
    anchors = lines.read()

    answer = lines.edit({"op": "replace_line", "hash": bare(anchors[3]), "content": "x"})

    details = answer.error["details"]
    assert (answer.error["error"], details["line"]) == ("anchor_low_entropy", 3)
    assert details["neighbor_anchors"] == [anchors[1], anchors[2], anchors[4], anchors[5]]


@requirement("anchored:replace_range:success")
def test_successful_range_replacement(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    answer = lines.edit(
        {"op": "replace_range", "start_hash": bare(anchors[5]), "end_hash": bare(anchors[8]), "content": "a\nb\nc"}
    )

    assert answer.data["net_line_change"] == -1
    kept = TEN.splitlines()
    assert lines.get().splitlines() == [*kept[:4], "a", "b", "c", *kept[8:]]


@requirement("anchored:ambiguous:range")
@pytest.mark.parametrize("which", ["start_hash", "end_hash"])
def test_replace_range_with_ambiguous_endpoint_after_all_resolution_levels(place: Place, which: str) -> None:
    lines = Lines(place, "file.txt")
    block = "above the same\nthe same line\nbelow the same\n"
    lines.put(block + "a unique line\n" + block)
    anchors = lines.read()
    other = "end_hash" if which == "start_hash" else "start_hash"

    answer = lines.edit({"op": "replace_range", which: bare(anchors[2]), other: bare(anchors[4]), "content": "x"})

    assert (answer.error["error"], answer.error["details"]["which"]) == ("anchor_context_ambiguous", which)
    assert lines.get() == block + "a unique line\n" + block


@requirement("anchored:range:swapped")
def test_replace_range_with_reversed_hashes_auto_corrected(lines: Lines) -> None:
    lines.put(numbered(800))
    anchors = lines.read()

    answer = lines.edit(
        {"op": "replace_range", "start_hash": bare(anchors[791]), "end_hash": bare(anchors[17]), "content": "one line"}
    )

    assert answer.data["auto_corrections"] == [
        {"type": "range_order_swapped", "detail": "start_line (791) was after end_line (17). Swapped automatically."}
    ]
    kept = numbered(800).splitlines()
    assert lines.get().splitlines() == [*kept[:16], "one line", *kept[791:]]


@requirement("anchored:range:same_line")
def test_replace_range_with_same_line_for_both_hashes_rejected(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    answer = lines.edit(
        {"op": "replace_range", "start_hash": bare(anchors[4]), "end_hash": bare(anchors[4]), "content": "x"}
    )

    assert answer.error["error"] == "invalid_range_order"
    assert "no-op" in answer.error["message"]
    retried = lines.edit(answer.error["details"]["operation"])
    assert retried.ok
    assert lines.get() == TEN.replace("line number 4 here", "x")


@requirement("anchored:range:strict_order")
def test_replace_range_with_reversed_hashes(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    answer = lines.edit(
        {"op": "delete_range", "start_hash": bare(anchors[8]), "end_hash": bare(anchors[3])}, strict_order=True
    )

    assert answer.error["error"] == "invalid_range_order"
    assert lines.get() == TEN


@requirement("anchored:insert_after:success")
def test_successful_insert_after(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    lines.edit({"op": "insert_after", "hash": bare(anchors[4]), "content": "  console.log('debug');\n  return result;"})

    kept = TEN.splitlines()
    assert lines.get().splitlines() == [*kept[:4], "  console.log('debug');", "  return result;", *kept[4:]]


@requirement("anchored:low:bare_hash")
def test_insert_after_targeting_low_entropy_line_rejected(lines: Lines) -> None:
    lines.put(BRACES)
    anchors = lines.read()

    assert lines.edit({"op": "insert_after", "hash": bare(anchors[3]), "content": "x"}).error["error"] == (
        "anchor_low_entropy"
    )


@requirement("anchored:insert_before:success", "anchored:content:final_terminator")
def test_successful_insert_before(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    lines.edit({"op": "insert_before", "hash": bare(anchors[1]), "content": "// Copyright 2024\n"})

    assert lines.get() == "// Copyright 2024\n" + TEN


@requirement("anchored:delete_line:success")
def test_successful_line_deletion(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    lines.edit({"op": "delete_line", "hash": bare(anchors[3])})

    assert lines.get() == TEN.replace("line number 3 here\n", "")


@requirement("anchored:delete_range:success")
def test_successful_range_deletion(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    lines.edit({"op": "delete_range", "start_hash": bare(anchors[2]), "end_hash": bare(anchors[4])})

    kept = TEN.splitlines()
    assert lines.get().splitlines() == [kept[0], *kept[4:]]


@requirement("anchored:batch:invalid_hash")
def test_all_or_nothing_batch_rejection_for_invalid_hash(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    answer = lines.edit(
        {"op": "replace_line", "hash": bare(anchors[1]), "content": "x"},
        {"op": "delete_line", "hash": bare(anchors[2])},
        {"op": "delete_line", "hash": "abcdef"},
    )

    assert answer.error["error"] == "anchor_stale"
    assert "abcdef" in answer.text
    assert lines.get() == TEN


@requirement("anchored:batch:ambiguous_hash", "anchored:ambiguous:single_line", "anchored:ambiguous:candidates")
def test_all_or_nothing_batch_rejection_for_ambiguous_hash(lines: Lines) -> None:
    text = "first of all\nthe same line\nsecond of all\nthe same line\nthird of all\n"
    lines.put(text)
    anchors = lines.read()

    answer = lines.edit(
        {"op": "replace_line", "hash": bare(anchors[1]), "content": "x"},
        {"op": "delete_line", "hash": bare(anchors[2])},
    )

    assert answer.error["error"] == "anchor_ambiguous"
    rows = answer.error["details"]["candidates"]
    assert [(row["occurrence"], row["line"], row["anchor"]) for row in rows] == [(1, 2, anchors[2]), (2, 4, anchors[4])]
    assert lines.get() == text
    assert lines.edit({"op": "delete_line", "hash": rows[1]["anchor"]}).ok
    assert lines.get() == "first of all\nthe same line\nsecond of all\nthird of all\n"


@requirement("anchored:batch:snapshot")
def test_sequential_operations_in_batch_use_initial_snapshot(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    lines.edit(
        {"op": "delete_line", "hash": bare(anchors[2])},
        {"op": "insert_after", "hash": bare(anchors[4]), "content": "new"},
    )

    kept = TEN.splitlines()
    assert lines.get().splitlines() == [kept[0], *kept[2:4], "new", *kept[4:]]


@requirement("anchored:moved_on:rebased")
def test_functions_of_equal_body_that_changed_places_are_not_mistaken_for_each_other(lines: Lines) -> None:
    login, delete, logout = (
        f"def {name}(request):\n    check(request)\n    return None\n\n" for name in ("login", "delete_user", "logout")
    )
    lines.put(login + delete + logout)
    anchors = lines.read()
    lines.put(delete + login + logout)

    answer = lines.edit(
        {"op": "replace_range", "start_hash": anchors[6], "end_hash": anchors[7], "content": "    delete_everything()"}
    )

    assert answer.error["error"] == "anchor_stale"
    assert lines.get() == delete + login + logout


@requirement("anchored:moved_on:changed_target", "anchored:stale:was_line", "anchored:stale:fresh_rows")
def test_file_modified_externally_between_read_and_edit(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()
    changed = TEN.replace("line number 5 here", "somebody else was here")
    lines.put(changed)

    answer = lines.edit({"op": "replace_line", "hash": bare(anchors[5]), "content": "x"})

    assert (answer.error["error"], answer.error["suggested_action"]) == ("anchor_stale", "re-read_file")
    assert any("somebody else was here" in row for row in answer.error["details"]["fresh_rows"])
    assert "line number 5 here" in answer.text
    assert lines.get() == changed


@requirement("anchored:moved_on:rebased", "anchored:moved_on:report")
def test_a_file_that_grew_elsewhere_is_edited_at_the_same_line(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()
    lines.put("a new head\nand another\n" + TEN)

    answer = lines.edit({"op": "replace_line", "hash": anchors[5], "content": "five"})

    assert answer.data["cross_version"] is True
    (operation,) = answer.data["operations"]
    assert (operation["start_line"], operation["rebase"]["from_line"], operation["rebase"]["to_line"]) == (7, 5, 7)
    assert lines.get() == "a new head\nand another\n" + TEN.replace("line number 5 here", "five")


@requirement("anchored:moved_on:expected_sha256")
def test_an_expected_sha256_turns_rebasing_off(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()
    seen = lines.place.on("read_file", lines.name).data["sha256"]
    lines.put("a new head\n" + TEN)

    answer = lines.edit({"op": "replace_line", "hash": anchors[5], "content": "five"}, expected_sha256=seen)

    assert answer.error["error"] == "stale_file"
    assert lines.get() == "a new head\n" + TEN


@requirement("anchored:ambiguous:context")
def test_file_has_duplicate_content_causing_ambiguity_at_all_resolution_levels(lines: Lines) -> None:
    text = "begin of it\nthe same line\nend of it\n" * 2
    lines.put(text)
    anchors = lines.read()

    answer = lines.edit({"op": "replace_line", "hash": bare(anchors[2]), "content": "x"})

    assert answer.error["error"] == "anchor_context_ambiguous"
    assert [row["preview"] for row in answer.error["details"]["candidates"]] == ["the same line"] * 2


@requirement("anchored:result:summary", "anchored:result:horizon", "anchored:result:diff", "anchored:result:fields")
def test_successful_edit_summary_with_invalidation_scope(lines: Lines) -> None:
    lines.put(numbered(30))
    anchors = lines.read()

    answer = lines.edit(
        {"op": "replace_line", "hash": bare(anchors[12]), "content": "twelve"},
        {"op": "insert_after", "hash": bare(anchors[14]), "content": "one\ntwo"},
    )

    data = answer.data
    assert answer.text.startswith("2 operations applied")
    assert {name: data[name] for name in ("operations_applied", "lines_before", "lines_after", "net_line_change")} == {
        "operations_applied": 2,
        "lines_before": 30,
        "lines_after": 32,
        "net_line_change": 2,
    }
    assert (data["anchors_valid_through"], data["must_refresh_from_line"]) == (11, 12)
    assert (data["baseline_continuity"], data["writer_type"], data["safety_status"]) == ("clean", "edit", "clean")
    after = lines.read()
    assert data["new_anchors"] == [after[12], after[15], after[16]]
    assert f"+{after[12]}|twelve" in data["diff"]
    assert f" {after[13]}|line number 13 here" in data["diff"]
    assert "-line number 12 here" in data["diff"]


@requirement("anchored:occurrence:third", "anchored:low:explicit")
def test_replace_line_with_occurrence_targets_correct_line(lines: Lines) -> None:
    rows = ["x"] * 12
    for number in (2, 5, 7, 12):
        rows[number - 1] = ""
    lines.put("".join(f"text of {n}\n" if row else "\n" for n, row in enumerate(rows, start=1)))
    anchors = lines.read()

    answer = lines.edit({"op": "replace_line", "hash": bare(anchors[2])[:4], "occurrence": 3, "content": "new content"})

    assert answer.ok
    assert lines.get().splitlines()[6] == "new content"


@requirement("anchored:occurrence:first")
def test_delete_line_with_occurrence_1_targets_first_match(lines: Lines) -> None:
    lines.put("one text\n\nthree text\nfour text\n\nsix text\n\n")
    anchors = lines.read()

    lines.edit({"op": "delete_line", "hash": bare(anchors[2]), "occurrence": 1})

    assert lines.get() == "one text\nthree text\nfour text\n\nsix text\n\n"


@requirement("anchored:occurrence:out_of_range")
@pytest.mark.parametrize("occurrence", [0, 4, -1])
def test_an_occurrence_that_is_not_there_is_refused(place: Place, occurrence: int) -> None:
    lines = Lines(place, "file.txt")
    lines.put("one text\n\nthree text\n\nfive text\n\n")
    anchors = lines.read()

    answer = lines.edit({"op": "delete_line", "hash": bare(anchors[2]), "occurrence": occurrence})

    assert answer.error["error"] in ("anchor_ambiguous", "schema_invalid")
    assert lines.get() == "one text\n\nthree text\n\nfive text\n\n"


@requirement("anchored:result:horizon")
def test_invalidation_scope_after_middle_of_file_edit(lines: Lines) -> None:
    lines.put(numbered(30))
    anchors = lines.read()

    answer = lines.edit(
        {"op": "replace_range", "start_hash": anchors[20], "end_hash": anchors[22], "content": "a\nb\nc"}
    )

    assert (answer.data["anchors_valid_through"], answer.data["must_refresh_from_line"]) == (19, 20)


@requirement("anchored:resolution:context", "anchored:resolution:sighting")
def test_context_augmented_resolution_succeeds(lines: Lines) -> None:
    text = numbered(9) + "the same line\n" + numbered(14).replace("line", "other") + "the same line\nthe end\n"
    lines.put(text)
    anchors = lines.read(startLine=20)

    answer = lines.edit({"op": "replace_line", "hash": bare(anchors[25]), "content": "only here"})

    assert answer.data["operations"][0]["start_line"] == 25
    assert lines.get().splitlines()[24] == "only here"
    assert lines.get().splitlines()[9] == "the same line"


@requirement("anchored:resolution:context_id")
@pytest.mark.parametrize("spelling", ["{}", "{:.6}", "6#{}", "6#{:.6}", "{}|same line", "99#{}"])
def test_a_context_id_that_a_refusal_offers_names_its_line(place: Place, spelling: str) -> None:
    lines = Lines(place, "twice.txt")
    lines.put("head one\nsame line\ntail one\nmid\nhead two\nsame line\ntail two\n")
    refused = lines.edit({"op": "replace_line", "hash": bare(lines.read()[6]), "content": "x"})
    context = str(refused.error["details"]["candidates"][1]["context"])

    answer = lines.edit({"op": "replace_line", "hash": spelling.format(context), "content": "only here"})

    assert refused.error["error"] == "anchor_ambiguous"
    assert answer.data["operations"][0]["resolution_level"] == "context"
    assert lines.get() == "head one\nsame line\ntail one\nmid\nhead two\nonly here\ntail two\n"


@requirement("anchored:resolution:context_id")
def test_the_ends_of_a_range_may_be_context_ids(lines: Lines) -> None:
    lines.put("".join(f"head {n}\nsame line\nbody {n}\nsame end\n" for n in range(3)))
    anchors = lines.read()
    sent = {"start_hash": bare(anchors[6]), "end_hash": bare(anchors[8])}

    problems = lines.edit({"op": "replace_range", **sent, "content": "x"}).error["details"]["problems"]
    start, end = (str(each["candidates"][1]["context"]) for each in refusals_of(lines, sent))
    answer = lines.edit({"op": "replace_range", "start_hash": start, "end_hash": f"8#{end}", "content": "x"})

    assert [each["error"] for each in problems] == ["anchor_context_ambiguous"] * 2
    assert answer.data["operations"][0]["start_line"] == 6
    assert lines.get() == "head 0\nsame line\nbody 0\nsame end\nhead 1\nx\nhead 2\nsame line\nbody 2\nsame end\n"


@requirement("anchored:resolution:context_id")
def test_a_context_id_that_several_lines_share_is_refused_with_all_of_them(lines: Lines) -> None:
    text = "above\nsame line\nbelow\n" * 3
    lines.put(text)
    refused = lines.edit({"op": "delete_line", "hash": bare(lines.read()[5])})

    again = lines.edit({"op": "delete_line", "hash": refused.error["details"]["candidates"][1]["context"]})

    assert again.error["error"] == "anchor_context_ambiguous"
    assert [row["line"] for row in again.error["details"]["candidates"]] == [2, 5, 8]
    assert lines.get() == text


@requirement("anchored:resolution:context_id")
def test_a_context_id_is_carried_over_when_the_file_moves_on(lines: Lines) -> None:
    text = "head one\nsame line\ntail one\nhead two\nsame line\ntail two\n"
    lines.put(text)
    refused = lines.edit({"op": "delete_line", "hash": bare(lines.read()[5])})
    context = refused.error["details"]["candidates"][1]["context"]
    lines.put("new first line\n" + text)

    assert lines.edit({"op": "delete_line", "hash": context}).data["cross_version"]
    assert lines.get() == "new first line\nhead one\nsame line\ntail one\nhead two\ntail two\n"


@requirement("anchored:sanity:clean")
def test_clean_edit_commits_checkpoint(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()

    answer = lines.edit({"op": "delete_line", "hash": bare(anchors[3])})

    assert answer.data["safety_status"] == "clean"
    assert lines.place.shell("recover") == "There was nothing to recover.\n"


@requirement("anchored:sanity:rolled_back", "anchored:sanity:delimiters", "anchored:sanity:names_operation")
def test_suspicious_edit_rolls_back(place: Place) -> None:
    lines = Lines(place, "code.js")
    lines.put(BRACES)
    anchors = lines.read()

    answer = lines.edit(
        {"op": "replace_line", "hash": anchors[1], "content": "function eins() {"},
        {"op": "delete_line", "hash": anchors[7]},
    )

    assert answer.error["error"] == "safety_check_failed"
    assert answer.error["details"]["safety_warnings"]
    assert answer.error["details"]["operation"] == 1
    assert lines.get() == BRACES


@requirement("anchored:continuity:mixed")
def test_edit_on_file_previously_modified_by_write_file_reports_mixed(lines: Lines) -> None:
    lines.put(TEN)
    sha256 = lines.place.on("read_file", lines.name).data["sha256"]
    lines.read()
    lines.place.on("write_file", lines.name, content=TEN + "more\n", expectedSha256=sha256)
    anchors = {5: "5#" + bare(lines.read(startLine=5, endLine=5)[5])}

    answer = lines.edit({"op": "delete_line", "hash": anchors[5]})

    assert answer.data["baseline_continuity"] == "mixed"
    assert "write_file" in answer.data["writers"]


@requirement("anchored:continuity:mixed")
def test_reading_again_does_not_make_a_mixed_baseline_clean(lines: Lines) -> None:
    lines.put(TEN)
    sha256 = lines.place.on("read_file", lines.name).data["sha256"]
    lines.place.on("write_file", lines.name, content=TEN + "more\n", expectedSha256=sha256)

    written = lines.edit({"op": "delete_line", "hash": lines.read()[5]})
    lines.put(lines.get() + "outside\n")
    outside = lines.edit({"op": "delete_line", "hash": lines.read()[3]})

    assert (written.data["baseline_continuity"], written.data["writers"]) == ("mixed", ["write_file"])
    assert "Not only `edit` wrote this file since you first saw it." in written.text
    assert (outside.data["baseline_continuity"], outside.data["writers"][-1]) == ("mixed", "external")


@requirement("anchored:continuity:mixed")
def test_a_file_that_the_session_itself_created_with_another_tool_is_mixed(lines: Lines) -> None:
    lines.place.on("create_file", lines.name, content=TEN)

    answer = lines.edit({"op": "delete_line", "hash": lines.read()[5]})

    assert (answer.data["baseline_continuity"], answer.data["writers"]) == ("mixed", ["create_file"])


@requirement("anchored:continuity:clean")
def test_edit_on_file_only_modified_by_edit_reports_clean(lines: Lines) -> None:
    lines.put(TEN)
    anchors = lines.read()
    lines.edit({"op": "delete_line", "hash": anchors[5]})

    answer = lines.edit({"op": "delete_line", "hash": anchors[3]})

    assert answer.data["baseline_continuity"] == "clean"


@requirement("anchored:path:required")
def test_edit_called_without_path_parameter(lines: Lines) -> None:
    from dialects.anchored.lines import Edited

    answer = Edited(lines.place.client.call("edit", {"operations": []}))

    assert "`path`" in answer.error["message"]
    assert "required" in answer.error["message"]


@requirement("anchored:path:alias")
def test_edit_called_with_deprecated_file_path(lines: Lines) -> None:
    from dialects.anchored.lines import Edited

    lines.put(TEN)
    anchors = lines.read()
    call = {"file_path": lines.place.path(lines.name), "operations": [{"op": "delete_line", "hash": anchors[1]}]}

    answer = Edited(lines.place.client.call("edit", call))

    assert any("`file_path` is deprecated" in warning for warning in answer.data["warnings"])


@requirement("anchored:path:alias")
def test_the_deprecated_name_can_be_turned_off(tmp_path: Path) -> None:
    from dialects.anchored.lines import Edited

    (tmp_path / "a.txt").write_text(TEN)
    words = ("mcp", tmp_path, "--state-dir", tmp_path.with_name("state"), "--no-deprecated")
    with StdioClient(surehold(*words)) as client:
        answer = Edited(client.call("edit", {"file_path": "a.txt", "operations": []}))

    assert "`path`" in answer.error["message"]


@requirement("anchored:path:both")
def test_edit_called_with_both_path_and_file_path(lines: Lines) -> None:
    lines.put(TEN)
    lines.place.put("other.txt", TEN.encode())
    anchors = lines.read()

    answer = lines.edit({"op": "delete_line", "hash": anchors[1]}, file_path=lines.place.path("other.txt"))

    assert answer.ok
    assert lines.place.get("other.txt").decode() == TEN
    assert lines.get() == TEN.replace("line number 1 here\n", "")
