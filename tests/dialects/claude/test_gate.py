"""What must have been seen of a file before it is changed; the numbers are those of the hard scenarios."""

import os
from collections.abc import Callable

import pytest

from dialects.claude.desk import Desk, Told, numbered
from spec.marks import requirement

Change = Callable[[Desk], Told]


def edit_one(desk: Desk) -> Told:
    return desk.edit("file.txt", "line 2\n", "LINE 2\n")


def write_all(desk: Desk) -> Told:
    return desk.write("file.txt", "all new\n")


both = pytest.mark.parametrize("change", [edit_one, write_all])


@requirement("claude:gate:not_read", "claude:refusal:shape")
@both
def test_a_file_that_was_not_read_is_refused(desk: Desk, change: Change) -> None:
    desk.put("file.txt", numbered(3))

    told = change(desk)

    assert told.kind == "not_read"
    assert "Read it first" in told.text
    assert change(desk).kind == "not_read"
    assert desk.get("file.txt") == numbered(3).encode()


@requirement("claude:gate:content_hash")
@both
def test_1_a_touched_file_is_not_another_one(desk: Desk, change: Change) -> None:
    desk.put("file.txt", numbered(3))
    desk.read("file.txt")
    os.utime(desk.path("file.txt"), (1, 1))

    assert change(desk).ok


@requirement("claude:gate:content_hash", "claude:gate:stale")
@both
def test_2_an_equal_time_and_size_excuse_nothing(desk: Desk, change: Change) -> None:
    desk.put("file.txt", numbered(3))
    desk.read("file.txt")
    facts = desk.file("file.txt").stat()
    desk.put("file.txt", numbered(3).replace("line 3", "LINE 3"))
    os.utime(desk.path("file.txt"), ns=(facts.st_atime_ns, facts.st_mtime_ns))

    told = change(desk)

    assert told.kind == "stale"
    assert "-line 3\n+LINE 3" in told.error["details"]["changes_since"]
    assert desk.get("file.txt") == b"line 1\nline 2\nLINE 3\n"


@requirement("claude:gate:own_writes")
def test_3_edits_follow_edits_without_another_read(desk: Desk) -> None:
    desk.put("file.txt", numbered(300))
    desk.read("file.txt")

    assert desk.edit("file.txt", "line 2\n", "two\nand a half\n").ok
    assert desk.edit("file.txt", "two\n", "TWO\n").ok
    assert desk.edit("file.txt", "line 299\n", "almost\n").ok
    assert desk.write("file.txt", "all new\n").ok
    assert desk.edit("file.txt", "all new", "all newer").ok
    assert desk.get("file.txt") == b"all newer\n"


@requirement("claude:gate:own_writes")
def test_a_file_that_the_session_made_is_known_to_it(desk: Desk) -> None:
    assert desk.write("made.txt", "one\ntwo\n").ok

    assert desk.edit("made.txt", "two", "2").ok
    assert desk.write("made.txt", "three\n").ok


@requirement("claude:gate:own_writes")
def test_4_a_formatter_between_two_edits_does_not_get_in_the_way(desk: Desk) -> None:
    desk.put("code.py", "a = 1\nb=2\n\ndef f( x ):\n    return x\n")
    desk.read("code.py")
    assert desk.edit("code.py", "a = 1", "a = 10").ok
    desk.put("code.py", "a = 10\nb = 2\n\n\ndef f(x):\n    return x\n")

    told = desk.edit("code.py", "    return x\n", "    return x + a\n")

    assert told.ok, told.text
    assert desk.get("code.py") == b"a = 10\nb = 2\n\n\ndef f(x):\n    return x + a\n"
    assert told.data["warnings"] == [
        "The file was changed by another program since this session read it, but not the lines of this edit."
    ]
    assert "warnings" not in desk.edit("code.py", "x + a", "x - a").data


@requirement("claude:gate:own_writes", "claude:gate:stale")
def test_4_lines_that_the_formatter_changed_are_shown_first_and_then_edited(desk: Desk) -> None:
    desk.put("code.py", "a = 1\nb=2\n\ndef f( x ):\n    return x\n")
    desk.read("code.py")
    assert desk.edit("code.py", "a = 1", "a = 10").ok
    desk.put("code.py", "a = 10\nb = 2\n\n\ndef f(x):\n    return x\n")

    told = desk.edit("code.py", "def f(x):", "def g(x):")

    assert told.kind == "stale"
    assert "+def f(x):" in told.text
    assert desk.edit("code.py", "def f(x):", "def g(x):").ok


@requirement("claude:gate:own_writes")
def test_what_was_known_before_a_formatter_ran_is_known_after_the_next_edit(desk: Desk) -> None:
    desk.put("file.txt", numbered(100))
    desk.read("file.txt")
    assert desk.edit("file.txt", "line 10\n", "ten\n").ok
    desk.put("file.txt", desk.get("file.txt").replace(b"line 50\n", b"formatted\n"))
    assert desk.edit("file.txt", "line 20\n", "twenty\n").ok

    assert desk.edit("file.txt", "line 90\n", "ninety\n").ok
    assert desk.edit("file.txt", "formatted\n", "line 50\n").kind == "partially_read"


@requirement("claude:gate:any_spelling", "claude:parameters:absolute")
def test_5_any_spelling_of_the_path_is_the_same_file(desk: Desk) -> None:
    desk.put("dir/file.txt", numbered(5))
    desk.file("link.txt").symlink_to("dir/file.txt")
    desk.file("other").symlink_to("dir")
    desk.read("dir/file.txt")

    for number, name in enumerate(("link.txt", "other/file.txt", "dir/../dir/./file.txt"), start=1):
        told = desk.edit(name, f"line {number}\n", f"LINE {number}\n")
        assert told.data["filePath"] == desk.path("dir/file.txt")
    relative = desk.call("Edit", file_path=desk.place.path("dir/file.txt"), old_string="line 4", new_string="LINE 4")

    assert relative.data["filePath"] == desk.path("dir/file.txt")
    assert desk.file("link.txt").is_symlink()
    assert desk.get("dir/file.txt") == b"LINE 1\nLINE 2\nLINE 3\nLINE 4\nline 5\n"


@requirement("claude:gate:lines_seen", "claude:gate:adds_up")
def test_6_an_edit_needs_its_lines_seen(desk: Desk) -> None:
    desk.put("file.txt", numbered(500))
    desk.read("file.txt", offset=1, limit=50)
    assert desk.edit("file.txt", "line 400\n", "x\n").kind == "partially_read"

    desk.put("other.txt", numbered(500))
    desk.read("other.txt", offset=1, limit=50)
    desk.read("other.txt", offset=390, limit=21)

    assert desk.edit("other.txt", "line 400\n", "x\n").ok


@requirement("claude:gate:lines_seen")
def test_the_lines_that_an_edit_would_touch_are_shown_and_a_plain_retry_works(desk: Desk) -> None:
    desk.put("file.txt", numbered(500))
    desk.read("file.txt", offset=1, limit=50)

    told = desk.edit("file.txt", "line 400\nline 401", "x")

    assert told.error["details"]["unseen_lines"] == ["400-401"]
    assert told.error["details"]["lines"] == "400→line 400\n401→line 401"
    assert desk.edit("file.txt", "line 400\nline 401", "x").ok
    assert desk.edit("file.txt", "line 300\n", "x\n").kind == "partially_read"


@requirement("claude:gate:lines_seen")
def test_more_lines_than_a_refusal_shows_are_named_with_the_call_that_shows_them(desk: Desk) -> None:
    desk.put("file.txt", numbered(1_000))
    desk.read("file.txt", offset=1, limit=1)
    told = desk.edit("file.txt", "line ", "row ", replace_all=True)

    assert told.kind == "partially_read"
    assert "First Read with offset=" in told.error["suggested_action"]
    assert "limit=" in told.error["suggested_action"]
    desk.read("file.txt", offset=100)
    assert desk.edit("file.txt", "line 7", "x", replace_all=True).ok


@requirement("claude:gate:lines_seen", "claude:gate:adds_up")
def test_7_pages_add_up_to_the_whole_file(desk: Desk) -> None:
    desk.put("file.txt", numbered(500))
    desk.read("file.txt", offset=1, limit=200)
    desk.read("file.txt", offset=301)

    told = desk.write("file.txt", "new\n")

    assert told.kind == "partially_read"
    assert told.error["details"]["unseen_lines"] == ["201-300"]
    assert "Read with offset=201, limit=100" in told.error["suggested_action"]
    desk.read("file.txt", offset=201, limit=100)
    assert desk.write("file.txt", "new\n").ok


@requirement("claude:gate:adds_up")
def test_search_hits_count_as_seen(desk: Desk) -> None:
    desk.put("file.txt", numbered(20))
    assert desk.call("search_files", query="line 7", root=desk.place.name).ok
    found = desk.call("Grep", pattern="line 10", path=desk.path("file.txt"), output_mode="content")
    assert found.ok, found.text

    assert desk.edit("file.txt", "line 7", "seven").ok
    assert desk.edit("file.txt", "line 10", "ten").ok
    assert desk.edit("file.txt", "line 15", "fifteen").kind == "partially_read"


def search_text(desk: Desk, query: str) -> Told:
    return desk.call("search_files", query=query, root=f"{desk.place.name}/wide.txt", contextLines=1)


def grep_text(desk: Desk, query: str) -> Told:
    return desk.call("Grep", pattern=query, path=desk.path("wide.txt"), output_mode="content", context=1)


@requirement("claude:search:cut_line")
@pytest.mark.parametrize("search", [search_text, grep_text])
@pytest.mark.parametrize("query", ["here", "below"])
def test_a_line_that_a_search_cut_does_not_count_as_seen(
    desk: Desk, search: Callable[[Desk, str], Told], query: str
) -> None:
    wide = f"{'a' * 6_000} here {'b' * 5_000} secret {'c' * 900}\n"
    desk.put("wide.txt", wide + "short, below\n")

    found = search(desk, query)

    assert found.ok
    assert "secret" not in found.text
    assert desk.edit("wide.txt", "secret", "public").kind == "partially_read"
    assert desk.write("wide.txt", "all new\n").kind == "partially_read"
    assert desk.get("wide.txt").decode() == wide + "short, below\n"
    assert desk.edit("wide.txt", "short", "SHORT").ok


@requirement("claude:gate:lines_seen")
def test_8_a_line_that_was_cut_was_not_seen(desk: Desk) -> None:
    desk.put("file.txt", "x" * 1_000_000)
    desk.read("file.txt")

    assert desk.write("file.txt", "short\n").kind == "partially_read"
    assert len(desk.get("file.txt")) == 1_000_000


@requirement("claude:gate:stale")
def test_9_a_file_that_is_gone_is_not_edited_and_not_brought_back_by_accident(desk: Desk) -> None:
    desk.put("file.txt", numbered(3))
    desk.read("file.txt")
    desk.file("file.txt").unlink()

    assert edit_one(desk).kind == "file_not_found"
    told = write_all(desk)

    assert told.kind == "stale"
    assert "was deleted" in told.text
    assert not desk.file("file.txt").exists()
    assert write_all(desk).data["type"] == "create"


@requirement("claude:gate:stale")
def test_a_file_that_the_session_edited_and_another_program_deleted_is_not_brought_back_by_accident(desk: Desk) -> None:
    desk.put("file.txt", numbered(3))
    desk.read("file.txt")
    assert edit_one(desk).ok
    desk.file("file.txt").unlink()

    told = write_all(desk)

    assert (told.kind, "was deleted" in told.text) == ("stale", True)
    assert not desk.file("file.txt").exists()
    assert write_all(desk).data["type"] == "create"


@requirement("claude:gate:stale")
def test_a_file_that_the_session_moved_there_and_another_program_deleted_is_not_brought_back_by_accident(
    desk: Desk,
) -> None:
    desk.put("old.txt", numbered(3))
    digest = desk.read("old.txt").result["sha256"]
    places = {"fromPath": desk.place.path("old.txt"), "toPath": desk.place.path("file.txt")}
    assert desk.call("move_file", **places, expectedSha256=digest).ok
    desk.read("file.txt")
    desk.file("file.txt").unlink()

    assert write_all(desk).kind == "stale"
    assert not desk.file("file.txt").exists()


def test_a_file_that_the_session_deleted_itself_may_be_written_again(desk: Desk) -> None:
    desk.put("file.txt", numbered(3))
    desk.read("file.txt")
    digest = desk.read("file.txt").result["sha256"]
    assert desk.call("delete_file", path=desk.place.path("file.txt"), expectedSha256=digest).ok

    assert write_all(desk).data["type"] == "create"


@requirement("claude:refusal:shape")
@both
def test_10_a_directory_or_a_pipe_in_the_place_of_the_file_is_refused(desk: Desk, change: Change) -> None:
    desk.put("file.txt", numbered(3))
    desk.read("file.txt")
    desk.file("file.txt").unlink()
    desk.file("file.txt").mkdir()
    assert change(desk).kind == "is_directory"

    desk.file("file.txt").rmdir()
    os.mkfifo(desk.path("file.txt"))
    assert change(desk).kind == "not_regular_file"


@requirement("claude:gate:stale")
def test_a_stale_edit_shows_what_changed_and_then_works_as_it_was_sent(desk: Desk) -> None:
    desk.put("file.txt", numbered(40))
    desk.read("file.txt")
    desk.put("file.txt", numbered(40).replace("line 20\n", "twenty\nmore\n"))

    told = desk.edit("file.txt", "line 30\n", "thirty\n")

    assert told.kind == "stale"
    assert told.error["details"]["changes_since"] == (
        "@@ -18,5 +18,6 @@\n line 18\n line 19\n-line 20\n+twenty\n+more\n line 21\n line 22"
    )
    assert desk.edit("file.txt", "line 30\n", "thirty\n").ok
    assert desk.edit("file.txt", "twenty\n", "20\n").ok
    assert desk.write("file.txt", "all of it was seen\n").ok


@requirement("claude:gate:stale")
def test_a_stale_write_shows_what_changed_and_then_works_as_it_was_sent(desk: Desk) -> None:
    desk.put("file.txt", numbered(40))
    desk.read("file.txt")
    desk.put("file.txt", numbered(41))

    assert write_all(desk).kind == "stale"
    assert write_all(desk).ok


@requirement("claude:gate:stale", "claude:gate:lines_seen")
def test_changes_that_a_refusal_has_no_room_for_are_still_unseen(desk: Desk) -> None:
    desk.put("file.txt", numbered(600))
    desk.read("file.txt")
    desk.put("file.txt", "".join(f"row {n} of quite some length\n" for n in range(600)))

    told = desk.write("file.txt", "new\n")

    assert told.kind == "stale"
    assert told.error["details"]["changes_since_truncated"] is True
    assert "Read with offset=" in told.error["suggested_action"]
    assert desk.write("file.txt", "new\n").kind == "partially_read"
    assert desk.edit("file.txt", "row 599 ", "x").kind == "partially_read"


@requirement("claude:gate:stale")
def test_lines_that_were_never_seen_stay_unseen_when_the_file_changes(desk: Desk) -> None:
    desk.put("file.txt", numbered(500))
    desk.read("file.txt", offset=1, limit=50)
    desk.put("file.txt", "first\n" + numbered(500))

    assert desk.edit("file.txt", "line 400\n", "x\n").kind == "stale"
    assert desk.edit("file.txt", "line 400\n", "x\n").kind == "partially_read"
    assert desk.edit("file.txt", "line 40\n", "x\n").ok


def test_a_version_that_was_seen_and_came_back_is_known(desk: Desk) -> None:
    desk.put("file.txt", numbered(3))
    desk.read("file.txt")
    desk.put("file.txt", "other\n")
    desk.read("file.txt")
    desk.put("file.txt", numbered(3))

    assert edit_one(desk).ok


@requirement("claude:gate:stale")
def test_13_a_version_too_large_to_be_kept_is_still_known_by_its_hash(desk: Desk) -> None:
    text = "".join(f"line {n} {'x' * 100}\n" for n in range(50_000))
    desk.put("file.txt", text)
    desk.read("file.txt", limit=10)
    desk.put("file.txt", text + "more\n")

    told = desk.edit("file.txt", "line 3 ", "LINE 3 ")

    assert told.kind == "stale"
    assert "Read it again" in told.text
    desk.read("file.txt", limit=10)
    assert desk.edit("file.txt", "line 3 ", "LINE 3 ").ok


def test_a_dry_run_is_asked_the_same_questions(desk: Desk) -> None:
    desk.put("file.txt", numbered(3))

    assert desk.edit("file.txt", "line 2", "x", dry_run=True).kind == "not_read"
    desk.read("file.txt")
    told = desk.edit("file.txt", "line 2", "x", dry_run=True)

    assert told.data["dryRun"] is True
    assert told.text.startswith("Dry run, nothing was written.")
    assert desk.get("file.txt") == numbered(3).encode()


def test_a_named_version_must_be_the_one_that_is_there(desk: Desk) -> None:
    desk.put("file.txt", numbered(3))
    digest = desk.read("file.txt").result["sha256"]

    assert desk.edit("file.txt", "line 2", "x", expected_sha256="0" * 64).kind == "stale"
    assert desk.edit("file.txt", "line 2", "x", expected_sha256=digest).ok


@requirement("claude:gate:lines_seen", "claude:refusal:shape")
def test_a_refusal_about_very_many_lines_still_shows_what_it_counts_as_shown(desk: Desk) -> None:
    desk.put("file.txt", "this\nother\n" * 30_000)
    desk.read("file.txt", limit=2)

    told = desk.edit("file.txt", "this", "that", replace_all=True)
    details = told.error["details"]

    assert (told.kind, len(details["unseen_lines"]), details["unseen_ranges"]) == ("partially_read", 50, 29_999)
    assert details["lines"] in told.text
    assert told.error["suggested_action"].startswith("First Read with offset=437, limit=1999 (unseen are 437, 439,")


@requirement("claude:gate:stale")
@both
def test_a_hash_that_is_named_does_not_hide_what_changed(desk: Desk, change: Change) -> None:
    desk.put("file.txt", numbered(3))
    seen = desk.read("file.txt").data["sha256"]
    desk.put("file.txt", numbered(4))
    arguments = {"old_string": "line 2\n", "new_string": "two\n"} if change is edit_one else {"content": "new\n"}
    tool = "Edit" if change is edit_one else "Write"

    for expected in ("changes_since", "actual_sha256"):
        told = desk.call(tool, file_path=desk.path("file.txt"), expected_sha256=seen, **arguments)
        assert (told.kind, expected in told.error["details"]) == ("stale", True)
    assert desk.get("file.txt") == numbered(4).encode()


@requirement("claude:gate:adds_up", "claude:edit:not_found")
def test_close_lines_that_a_refusal_shows_may_be_quoted_in_the_next_call(desk: Desk) -> None:
    desk.put("file.txt", numbered(400) + "    value = compute(1)\n    other = compute(2)\n" + "long " * 500 + "\n")
    desk.read("file.txt", limit=10)

    assert desk.edit("file.txt", "long  " + "long " * 499, "x").kind == "not_found"
    assert desk.edit("file.txt", "long " * 500, "x").kind == "partially_read"
    assert desk.edit("file.txt", "value = compute(1)\n\tother = compute(2)", "x").kind == "not_found"
    assert desk.edit("file.txt", "value = compute(1)\n    other = compute(2)", "x").ok


@requirement("claude:gate:adds_up", "claude:edit:not_unique")
def test_lines_around_the_places_of_a_text_may_be_quoted_in_the_next_call(desk: Desk) -> None:
    desk.put("file.txt", numbered(400) + "first\nsame\nlast\n" + "word " * 50 + "\nsame\n")
    desk.read("file.txt", limit=10)

    assert desk.edit("file.txt", "same", "x").kind == "not_unique"
    assert desk.edit("file.txt", "word " * 50 + "\nsame", "x").error["details"]["unseen_lines"] == ["404"]
    assert desk.edit("file.txt", "first\nsame\nlast", "x").ok


@requirement("claude:gate:stale")
def test_line_endings_that_changed_are_shown_as_such(desk: Desk) -> None:
    desk.put("file.txt", numbered(3))
    desk.read("file.txt")
    desk.put("file.txt", numbered(3).replace("\n", "\r\n"))

    told = edit_one(desk)

    assert "-line 3\n+line 1\\r\n" in told.error["details"]["changes_since"]
    assert edit_one(desk).ok
    assert desk.get("file.txt") == b"line 1\r\nLINE 2\r\nline 3\r\n"
