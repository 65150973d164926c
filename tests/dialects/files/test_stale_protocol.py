import os

import pytest

from dialects.place import Place, sha256
from spec.marks import requirement

NEXT_ACTION = "Re-read the file to obtain the current sha256 and re-apply your edit."


@requirement("files:stale:lifecycle")
def test_read_write_stale_read_again_and_write(place: Place) -> None:
    place.put("server.ts", b"PORT = 3000\nHOST = a\n")

    read = place.on("read_file", "server.ts").data
    wrote = place.on("write_file", "server.ts", content="PORT = 4000\nHOST = a\n", expectedSha256=read["sha256"])
    place.put("server.ts", b"PORT = 4000\nHOST = somebody else\n")
    stale = place.on("write_file", "server.ts", content="PORT = 5000\n", expectedSha256=wrote.data["afterSha256"])
    again = place.on("read_file", "server.ts").data
    second = place.on(
        "write_file", "server.ts", content=again["content"].replace("4000", "5000"), expectedSha256=again["sha256"]
    )

    assert (stale.ok, stale.error["kind"]) == (False, "stale_file")
    assert second.data["beforeSha256"] == again["sha256"]
    assert place.get("server.ts") == b"PORT = 5000\nHOST = somebody else\n"


@requirement("files:stale:refusal", "files:result:error", "promise:refusal:first_words")
def test_a_wrong_sha256_is_refused_with_both_hashes_and_the_next_step(place: Place) -> None:
    actual = place.put("a.txt", b"one\n")
    answer = place.on("write_file", "a.txt", content="two\n", expectedSha256="0" * 64)

    assert answer.error == {
        "kind": "stale_file",
        "reason": "hash_mismatch",
        "code": -32009,
        "message": f"`{place.path('a.txt')}` is not the version you saw.",
        "path": place.path("a.txt"),
        "details": {"expectedSha256": "0" * 64, "actualSha256": actual, "editsStillApply": False},
        "recoverable": True,
        "suggestedNextAction": NEXT_ACTION,
    }
    assert answer.text.startswith("Nothing was written. ")
    assert NEXT_ACTION in answer.text
    assert actual in answer.text
    assert place.get("a.txt") == b"one\n"


@requirement("files:stale:still_apply", "promise:refusal:one_retry")
def test_a_stale_edit_says_that_it_still_applies_and_one_retry_from_the_refusal_succeeds(place: Place) -> None:
    seen = place.put("a.txt", b"one\ntwo\nthree\n")
    now = place.put("a.txt", b"zero\none\ntwo\nthree\n")
    edits = [{"oldText": "two", "newText": "TWO"}]

    details = place.on("edit_file", "a.txt", edits=edits, expectedSha256=seen).error["details"]
    retried = place.on("edit_file", "a.txt", edits=edits, expectedSha256=details["retryWithSha256"])

    assert (details["editsStillApply"], details["retryWithSha256"]) == (True, now)
    assert retried.ok
    assert place.get("a.txt") == b"zero\none\nTWO\nthree\n"


def test_a_stale_edit_whose_text_is_gone_says_so(place: Place) -> None:
    seen = place.put("a.txt", b"one\n")
    place.put("a.txt", b"other\n")

    edits = [{"oldText": "one", "newText": "two"}]
    details = place.on("edit_file", "a.txt", edits=edits, expectedSha256=seen).error["details"]

    assert details["editsStillApply"] is False
    assert "retryWithSha256" not in details


@requirement("promise:refusal:one_retry")
def test_a_stale_write_shows_what_changed_since_so_that_no_read_is_needed(place: Place) -> None:
    place.put("a.txt", b"one\ntwo\n")
    seen = place.on("read_file", "a.txt").data["sha256"]
    now = place.put("a.txt", b"one\nTWO\n")

    refused = place.on("write_file", "a.txt", content="1\n2\n", expectedSha256=seen)
    details = refused.error["details"]
    retried = place.on("write_file", "a.txt", content="1\nTWO\n", expectedSha256=details["actualSha256"])

    assert (details["actualSha256"], "-two\n+TWO\n" in details["changesSince"]) == (now, True)
    assert "+TWO" in refused.text
    assert retried.ok


@requirement("files:stale:already_applied")
def test_a_file_that_already_is_what_was_asked_for_is_success(place: Place) -> None:
    seen = place.put("a.txt", b"one\n")
    place.on("read_file", "a.txt")
    edit = {"edits": [{"oldText": "one", "newText": "two"}], "expectedSha256": seen}

    first, lost_answer = place.on("edit_file", "a.txt", **edit), place.on("edit_file", "a.txt", **edit)
    written = place.on("write_file", "a.txt", content="two\n", expectedSha256=seen)

    assert (first.ok, lost_answer.data["alreadyApplied"], written.data["alreadyApplied"]) == (True, True, True)
    assert lost_answer.data["changeId"] == ""
    assert place.get("a.txt") == b"two\n"


@requirement("files:stale:sliced_read")
def test_the_sha256_of_a_sliced_read_serves_for_a_write(place: Place) -> None:
    place.put("a.txt", b"one\ntwo\nthree\n")

    read = place.on("read_file", "a.txt", startLine=2, endLine=2, maxBytes=4).data

    assert read["sha256"] == sha256(b"one\ntwo\nthree\n")
    assert place.on("write_file", "a.txt", content="new\n", expectedSha256=read["sha256"]).ok


@requirement("files:stale:not_times")
def test_the_time_of_modification_never_decides(place: Place) -> None:
    seen = place.put("a.txt", b"one\n")
    os.utime(place.file("a.txt"), ns=(1, 1))
    touched = place.on("write_file", "a.txt", content="two\n", expectedSha256=seen, dryRun=True)
    status = place.file("a.txt").stat()
    place.put("a.txt", b"six\n")
    os.utime(place.file("a.txt"), ns=(status.st_atime_ns, status.st_mtime_ns))
    same_time = place.on("write_file", "a.txt", content="two\n", expectedSha256=seen)

    assert (touched.ok, same_time.error["kind"]) == (True, "stale_file")


@requirement("files:stale:required")
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("write_file", {"content": "x"}),
        ("edit_file", {"edits": [{"oldText": "one", "newText": "x"}]}),
        ("delete_file", {}),
    ],
)
def test_a_change_without_a_sha256_is_refused_with_the_way_to_get_one(
    place: Place, tool: str, arguments: dict[str, object]
) -> None:
    place.put("a.txt", b"one\n")

    answer = place.on(tool, "a.txt", **arguments)

    assert (answer.error["kind"], answer.error["reason"]) == ("command_failed", "expected_sha256_missing")
    assert "read_file" in answer.error["suggestedNextAction"]
    assert place.get("a.txt") == b"one\n"


@requirement("files:stale:required")
def test_a_move_without_a_sha256_is_refused(place: Place) -> None:
    place.put("a.txt", b"one\n")

    answer = place.call("move_file", fromPath=place.path("a.txt"), toPath=place.path("b.txt"))

    assert answer.error["reason"] == "expected_sha256_missing"
    assert place.get("a.txt") == b"one\n"


@pytest.mark.parametrize("wrong", ["abc", "Z" * 64, "0" * 63, "sha256:" + "0" * 57, "0" * 65])
def test_what_is_no_sha256_is_refused_as_such(place: Place, wrong: str) -> None:
    place.put("a.txt", b"one\n")

    answer = place.on("write_file", "a.txt", content="x", expectedSha256=wrong)

    assert answer.error["reason"] == "malformed_sha256"


def test_the_sha256_of_another_file_is_stale(place: Place) -> None:
    place.put("a.txt", b"one\n")
    other = place.put("b.txt", b"two\n")

    assert place.on("delete_file", "a.txt", expectedSha256=other).error["kind"] == "stale_file"


def test_an_upper_case_sha256_is_the_same_sha256(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")

    assert place.on("write_file", "a.txt", content="two\n", expectedSha256=digest.upper()).ok
