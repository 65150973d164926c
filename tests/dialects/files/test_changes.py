import json
import stat
from typing import Any

import pytest

from dialects.place import Outcome, Place, sha256
from spec.marks import requirement


@requirement("files:create_file:new", "files:result:modifying", "host:result:modifying_is_both")
def test_a_file_is_created_with_its_parents(place: Place) -> None:
    answer = place.on("create_file", "deep/er/a.txt", content="one\n", reason="because")

    assert place.get("deep/er/a.txt") == b"one\n"
    assert answer.data == {
        "created": True,
        "path": place.path("deep/er/a.txt"),
        "sha256": sha256(b"one\n"),
        "sizeBytes": 4,
        "changeId": answer.data["changeId"],
        "diff": f"--- /dev/null\n+++ {place.path('deep/er/a.txt')}\n@@ -0,0 +1 @@\n+one\n",
        "diffTruncated": False,
        "warnings": [],
    }
    assert answer.raw["structuredContent"] == answer.result
    assert sha256(b"one\n") in answer.text
    assert answer.data["changeId"] in answer.text


@requirement("files:create_file:parents_off")
def test_parents_are_not_made_when_they_must_not_be(place: Place) -> None:
    answer = place.on("create_file", "no/a.txt", content="x", createParentDirectories=False)

    assert (answer.error["kind"], answer.error["reason"]) == ("not_found", "no_such_parent")
    assert not place.file("no").exists()
    assert place.on("create_file", "a.txt", content="x", createParentDirectories=False).ok


@requirement("files:create_file:exists")
def test_an_existing_file_is_not_created_again(place: Place) -> None:
    place.put("a.txt", b"mine\n")

    answer = place.on("create_file", "a.txt", content="yours\n")

    assert (answer.error["kind"], answer.error["details"]["actualSha256"]) == ("already_exists", sha256(b"mine\n"))
    assert place.get("a.txt") == b"mine\n"


@requirement("files:create_file:exists")
def test_exactly_one_of_many_racing_creators_wins(place: Place) -> None:
    for number in range(5):
        arguments = [{"path": place.path(f"race{number}"), "content": f"{n}\n"} for n in range(8)]
        calls = [place.client.start_call("create_file", one) for one in arguments]
        answers = [Outcome(place.client.answer(call)) for call in calls]

        assert sorted(answer.ok for answer in answers) == [False] * 7 + [True]
        winner = next(n for n, answer in enumerate(answers) if answer.ok)
        assert place.get(f"race{number}") == f"{winner}\n".encode()


@requirement("files:write_file:overwrite")
def test_a_file_is_overwritten_in_its_own_style(place: Place) -> None:
    digest = place.put("a.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    place.file("a.txt").chmod(0o755)

    answer = place.on("write_file", "a.txt", content="1\n2\n3\n", expectedSha256=digest)
    after = b"\xef\xbb\xbf1\r\n2\r\n3\r\n"

    assert place.get("a.txt") == after
    assert stat.S_IMODE(place.file("a.txt").stat().st_mode) == 0o755
    assert {key: answer.data[key] for key in ("beforeSha256", "afterSha256", "sizeBytes", "unchanged")} == {
        "beforeSha256": digest,
        "afterSha256": sha256(after),
        "sizeBytes": len(after),
        "unchanged": False,
    }


@requirement("files:write_file:overwrite")
def test_writing_what_is_there_changes_nothing_and_says_so(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")
    before = place.file("a.txt").stat()

    answer = place.on("write_file", "a.txt", content="one\n", expectedSha256=digest)

    assert (answer.data["unchanged"], answer.data["changeId"]) == (True, "")
    assert place.file("a.txt").stat().st_mtime_ns == before.st_mtime_ns


@requirement("files:write_file:missing")
def test_a_missing_file_is_not_written(place: Place) -> None:
    answer = place.on("write_file", "none.txt", content="x", expectedSha256="0" * 64)

    assert answer.error["kind"] == "not_found"
    assert not place.file("none.txt").exists()


@requirement("files:edit_file:exact", "files:edit_file:applied")
def test_edits_all_match_the_original_and_say_where(place: Place) -> None:
    digest = place.put("a.txt", b"one\r\ntwo\nthree\r\ntwo and a half\n")

    answer = place.on(
        "edit_file",
        "a.txt",
        expectedSha256=digest,
        edits=[
            {"oldText": "three", "newText": "one"},
            {"oldText": "one\n", "newText": "1\n"},
            {"oldText": "two", "newText": "2", "replaceAll": True},
        ],
    )

    assert place.get("a.txt") == b"1\r\n2\none\r\n2 and a half\n"
    ranges = [
        (edit["editIndex"], edit["occurrences"], [(r["startLine"], r["newEndLine"]) for r in edit["ranges"]])
        for edit in answer.data["appliedEdits"]
    ]
    assert ranges == [(0, 1, [(3, 3)]), (1, 1, [(1, 1)]), (2, 2, [(2, 2), (4, 4)])]
    assert (answer.data["beforeSha256"], answer.data["afterSha256"]) == (digest, sha256(place.get("a.txt")))


@requirement("files:edit_file:not_found")
def test_a_missing_text_is_refused_with_its_index_and_the_likely_cause(place: Place) -> None:
    digest = place.put("a.py", b"def f():\n\treturn 1\n")

    answer = place.on(
        "edit_file",
        "a.py",
        expectedSha256=digest,
        edits=[{"oldText": "def f", "newText": "def g"}, {"oldText": "    return 1", "newText": "    return 2"}],
    )

    assert (answer.error["kind"], answer.error["editIndex"]) == ("old_text_not_found", 1)
    assert answer.error["details"]["closest"] == [{"line": 2, "text": "\treturn 1"}]
    assert place.get("a.py") == b"def f():\n\treturn 1\n"


@requirement("files:edit_file:multiple")
def test_a_text_in_several_places_is_refused_with_their_lines(place: Place) -> None:
    digest = place.put("a.txt", b"x\ny\nx\n")

    answer = place.on("edit_file", "a.txt", expectedSha256=digest, edits=[{"oldText": "x", "newText": "z"}])

    assert (answer.error["kind"], answer.error["details"]["lines"]) == ("multiple_matches", [1, 3])
    assert place.get("a.txt") == b"x\ny\nx\n"


@requirement("files:edit_file:expected_occurrences")
def test_an_expected_number_of_places_must_be_met(place: Place) -> None:
    digest = place.put("a.txt", b"x\ny\nx\n")
    edit = {"oldText": "x", "newText": "z"}

    refused = place.on("edit_file", "a.txt", expectedSha256=digest, edits=[{**edit, "expectedOccurrences": 3}])
    done = place.on("edit_file", "a.txt", expectedSha256=digest, edits=[{**edit, "expectedOccurrences": 2}])

    assert (refused.error["kind"], refused.error["details"]["count"]) == ("multiple_matches", 2)
    assert done.ok
    assert place.get("a.txt") == b"z\ny\nz\n"


@requirement("files:edit_file:overlap")
def test_edits_that_want_the_same_bytes_are_refused(place: Place) -> None:
    digest = place.put("a.txt", b"one two three\n")

    answer = place.on(
        "edit_file",
        "a.txt",
        expectedSha256=digest,
        edits=[{"oldText": "one two", "newText": "1"}, {"oldText": "two three", "newText": "2"}],
    )

    assert (answer.error["kind"], answer.error["details"]["editIndices"]) == ("overlapping_edits", [0, 1])
    assert place.get("a.txt") == b"one two three\n"


@pytest.mark.parametrize(
    ("edits", "kind"),
    [
        ([], "command_failed"),
        ([{"oldText": "", "newText": "x"}], "command_failed"),
        ([{"oldText": "one", "newText": "one"}], "command_failed"),
        ([{"oldText": "one"}], "command_failed"),
        ("one", "command_failed"),
        ([{"oldText": 3, "newText": "x"}], "command_failed"),
        ([{"oldText": "one", "newText": "x", "expectedOccurrences": 0}], "command_failed"),
    ],
)
def test_edits_that_make_no_sense_are_refused(place: Place, edits: object, kind: str) -> None:
    digest = place.put("a.txt", b"one\n")

    assert place.on("edit_file", "a.txt", expectedSha256=digest, edits=edits).error["kind"] == kind
    assert place.get("a.txt") == b"one\n"


def test_characters_that_the_file_cannot_hold_are_refused_by_name(place: Place) -> None:
    data = "# -*- coding: latin-1 -*-\ncafé = 1\n".encode("latin-1")
    digest = place.put("a.py", data)

    answer = place.on("edit_file", "a.py", expectedSha256=digest, edits=[{"oldText": "= 1", "newText": "= '→'"}])

    assert (answer.error["reason"], answer.error["details"]["characters"]) == ("not_encodable", ["U+2192"])
    assert place.get("a.py") == data


@requirement("files:result:modifying")
@pytest.mark.parametrize("tool", ["create_file", "write_file", "edit_file", "delete_file"])
def test_a_dry_run_shows_the_difference_and_writes_nothing(place: Place, tool: str) -> None:
    digest = place.put("a.txt", b"one\n")
    arguments: dict[str, dict[str, Any]] = {
        "create_file": {"path": place.path("new.txt"), "content": "x\n"},
        "write_file": {"path": place.path("a.txt"), "content": "x\n", "expectedSha256": digest},
        "edit_file": {
            "path": place.path("a.txt"),
            "edits": [{"oldText": "one", "newText": "x"}],
            "expectedSha256": digest,
        },
        "delete_file": {"path": place.path("a.txt"), "expectedSha256": digest},
    }

    answer = place.call(tool, **arguments[tool], dryRun=True)

    assert (answer.data["dryRun"], answer.data["changeId"]) == (True, "")
    assert answer.text.startswith("Dry run, nothing was written.")
    assert "@@" in answer.data["diff"]
    assert (place.get("a.txt"), place.file("new.txt").exists()) == (b"one\n", False)
    assert place.entries() == []


@requirement("files:result:diff_limit")
def test_a_diff_is_at_most_64_kib_and_says_when_it_was_cut(place: Place) -> None:
    before = b"".join(b"line %d\n" % n for n in range(20_000))
    digest = place.put("a.txt", before)

    answer = place.on("write_file", "a.txt", content=before.decode().replace("line", "LINE"), expectedSha256=digest)

    assert len(answer.data["diff"].encode()) <= 64 * 1024
    assert answer.data["diffTruncated"] is True
    assert len(answer.raw["structuredContent"]["data"]["diff"]) <= 20_000
    assert f"surehold show {answer.data['changeId']}" in answer.text


@requirement("files:result:kinds")
def test_every_refusal_of_these_scenarios_is_of_a_known_kind(place: Place) -> None:
    place.put("a.txt", b"one\n")
    place.put("b.bin", b"\0\1\2")
    digest = sha256(b"one\n")
    (place.root / place.name / "d").mkdir()
    kinds = {
        "not_found": place.on("read_file", "none"),
        "already_exists": place.on("create_file", "a.txt", content=""),
        "permission_denied": place.on("create_file", ".git/hooks/pre-commit", content=""),
        "outside_workspace": place.call("read_file", path="/etc/passwd"),
        "binary_file": place.on("read_file", "b.bin"),
        "stale_file": place.on("delete_file", "a.txt", expectedSha256="0" * 64),
        "old_text_not_found": place.on(
            "edit_file", "a.txt", expectedSha256=digest, edits=[{"oldText": "zzz", "newText": ""}]
        ),
        "patch_parse_error": place.call("apply_patch", patch="no patch"),
        "command_failed": place.on("read_file", "a.txt", startLine=-1),
    }

    assert {name: answer.error["kind"] for name, answer in kinds.items()} == {name: name for name in kinds}


@requirement("host:arguments:unknown_nested")
def test_an_unknown_key_inside_an_edit_is_refused_with_the_allowed_ones(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")

    answer = place.on("edit_file", "a.txt", expectedSha256=digest, edits=[{"oldText": "one", "newTxt": "x"}])

    assert "allowed are expectedOccurrences, newText, oldText, replaceAll" in answer.text
    assert place.get("a.txt") == b"one\n"


def test_too_many_edits_and_too_long_notes_are_refused_at_once(place: Place) -> None:
    digest = place.put("a.txt", b"one\n")
    edits = [{"oldText": f"text {n}", "newText": "x"} for n in range(2_001)]

    many = place.on("edit_file", "a.txt", expectedSha256=digest, edits=edits)
    wordy = place.on("write_file", "a.txt", expectedSha256=digest, content="x", reason="r" * 10_000)

    assert [answer.error["reason"] for answer in (many, wordy)] == ["invalid_argument"] * 2
    assert len(json.dumps(many.raw)) < 20_000


def test_a_text_that_stands_in_very_many_places_is_answered_briefly(place: Place) -> None:
    digest = place.put("a.txt", b"x\n" * 5_000)

    answer = place.on(
        "edit_file", "a.txt", expectedSha256=digest, edits=[{"oldText": "x", "newText": "y", "replaceAll": True}]
    )

    (edit,) = answer.data["appliedEdits"]
    assert (edit["occurrences"], len(edit["ranges"])) == (5_000, 100)
    assert len(json.dumps(answer.raw["structuredContent"])) < 80_000
