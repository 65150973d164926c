import pytest

from dialects.claude.desk import Desk, numbered
from dialects.place import sha256
from spec.marks import requirement


@requirement("claude:edit:result", "claude:edit:unique", "claude:parameters:absolute")
def test_an_edit_is_told_completely_to_programs_and_to_models(desk: Desk) -> None:
    desk.put("file.txt", "one\ntwo\nthree\n")
    desk.read("file.txt")

    told = desk.edit("file.txt", "two", "2")

    after = b"one\n2\nthree\n"
    assert desk.get("file.txt") == after
    assert told.data == {
        "filePath": desk.path("file.txt"),
        "oldString": "two",
        "newString": "2",
        "replaceAll": False,
        "replacements": 1,
        "matchTier": "exact",
        "lines": [2],
        "structuredPatch": [
            {"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [" one", "-two", "+2", " three"]}
        ],
        "userModified": False,
        "sha256": sha256(after),
        "changeId": told.data["changeId"],
    }
    assert told.raw["structuredContent"] == told.data
    assert told.text == (
        f"Edited {desk.path('file.txt')}: 1 replacement at line 2.\nsha256: {sha256(after)}\n"
        f"changeId: {told.data['changeId']}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    )


@requirement("claude:edit:result")
def test_a_file_with_a_byte_order_mark_can_lose_its_only_line(desk: Desk) -> None:
    desk.put("file.txt", "\ufeffone\n")
    desk.read("file.txt")

    told = desk.edit("file.txt", "one\n", "")

    assert desk.get("file.txt") == "\ufeff".encode()
    assert told.data["structuredPatch"] == [
        {"oldStart": 1, "oldLines": 1, "newStart": 0, "newLines": 0, "lines": ["-one"]}
    ]


@requirement("claude:edit:result")
def test_long_texts_that_the_caller_sent_are_for_programs_alone(desk: Desk) -> None:
    desk.put("file.txt", numbered(200))
    desk.read("file.txt")

    told = desk.edit("file.txt", numbered(200), "short\n")

    assert told.data["oldString"] == numbered(200)
    assert "oldString" not in told.raw["structuredContent"]
    assert told.raw["structuredContent"]["newString"] == "short\n"


@requirement("claude:edit:result")
def test_a_patch_too_large_for_an_answer_says_so(desk: Desk) -> None:
    text = "".join(f"a{n}\n\n\n\n\n\n\n\n\n" for n in range(3_000))
    desk.put("file.txt", text)
    for offset in range(1, 27_000, 2_000):
        desk.read("file.txt", offset=offset)

    told = desk.edit("file.txt", "a", "some longer text", replace_all=True)

    assert told.data["replacements"] == 3_000
    assert told.data["structuredPatchTruncated"] is True
    assert told.text.endswith("[more lines changed; Read shows them]")
    assert len(told.text) < 40_000
    assert desk.get("file.txt") == text.replace("a", "some longer text").encode()


@requirement("claude:edit:unique", "claude:edit:not_unique")
def test_a_text_that_stands_twice_is_refused_with_its_places(desk: Desk) -> None:
    desk.put("file.txt", "x = 1\ny = 1\nx = 1\n")
    desk.read("file.txt")

    told = desk.edit("file.txt", "x = 1", "x = 2")

    assert told.kind == "not_unique"
    assert told.error["details"]["count"] == 2
    assert told.error["details"]["lines"] == [1, 3]
    assert "3→x = 1" in told.text
    assert desk.edit("file.txt", "x = 1", "x = 2", replace_all=True).data["replacements"] == 2
    assert desk.get("file.txt") == b"x = 2\ny = 1\nx = 2\n"


@requirement("claude:edit:tiers", "claude:edit:style_kept")
def test_25_inserted_quotes_are_written_as_sent_and_the_others_stay(desk: Desk) -> None:
    desk.put("file.md", "She said “it’s fine”.\n")
    desk.read("file.md")

    told = desk.edit("file.md", 'said "it\'s fine".', 'said "it\'s fine". Match: re.compile("\'x\'")')

    assert told.data["matchTier"] == "quotes"
    assert told.data["oldString"] == "said “it’s fine”."
    assert told.data["newString"] == "said “it’s fine”. Match: re.compile(\"'x'\")"
    assert "quotes" in told.text
    assert desk.get("file.md").decode() == "She said “it’s fine”. Match: re.compile(\"'x'\")\n"


@requirement("claude:edit:quote_purpose")
@pytest.mark.parametrize(
    ("text", "old", "new", "after"),
    [
        ("say “hello”\n", "“hello”", '"hello"', 'say "hello"\n'),
        ('say "hello"\n', '"hello"', "“hello”", "say “hello”\n"),
        ("say “hello”\n", '"hello"', "'hello'", "say 'hello'\n"),
    ],
)
def test_26_an_edit_of_the_quote_style_is_made(desk: Desk, text: str, old: str, new: str, after: str) -> None:
    assert desk.edited(text, old, new).decode() == after


@requirement("claude:edit:unique", "claude:edit:tiers")
def test_27_two_curly_variants_are_two_places(desk: Desk) -> None:
    desk.put("file.txt", "“same” and „same”\n")
    desk.read("file.txt")

    told = desk.edit("file.txt", '"same"', "x")

    assert told.kind == "not_unique"
    assert told.error["details"]["match_tier"] == "quotes"


@requirement("claude:edit:literal")
@pytest.mark.parametrize("new", ["$1", "\\n", "\\\\title", "$&", "\\g<0>"])
def test_28_the_replacement_is_literal(desk: Desk, new: str) -> None:
    assert desk.edited("put it here\n", "it", new) == f"put {new} here\n".encode()


@requirement("claude:edit:unique")
def test_29_the_whole_file_its_end_and_overlapping_places(desk: Desk) -> None:
    assert desk.edited("whole\nfile\n", "whole\nfile\n", "new") == b"new"
    assert desk.edited("a\nend", "end", "END") == b"a\nEND"
    assert desk.edited("all", "all", "") == b""
    desk.put("file.txt", "aaa")
    desk.read("file.txt")
    assert desk.edit("file.txt", "aa", "b").kind == "not_unique"


@requirement("claude:edit:unique")
def test_30_new_text_that_holds_the_old_one_is_replaced_once(desk: Desk) -> None:
    assert desk.edited("a b a\n", "a", "aXa", replace_all=True) == b"aXa b aXa\n"


@requirement("claude:edit:not_found", "claude:edit:tiers")
@pytest.mark.parametrize("old", ["   ", "\n\n\n", "\t", "''", "'''''", "' ' '"])
def test_31_blanks_or_quotes_that_are_not_there_touch_nothing(desk: Desk, old: str) -> None:
    desk.put("file.txt", "a\nb “”““ c\n")
    desk.read("file.txt")

    assert desk.edit("file.txt", old, "X").kind == "not_found"
    assert desk.edit("file.txt", old, "X", replace_all=True).kind == "not_found"
    assert desk.get("file.txt") == "a\nb “”““ c\n".encode()


@requirement("claude:edit:not_found")
def test_32_the_line_numbers_that_read_shows_are_named_as_the_cause(desk: Desk) -> None:
    desk.put("file.txt", numbered(12))
    shown = desk.read("file.txt").text
    rows = [row for row in shown.split("\n") if "→line 1" in row]

    told = desk.edit("file.txt", "\n".join(rows[-3:]), "x")

    assert told.kind == "not_found"
    assert told.error["details"]["reason"] == "line_numbers_copied"


@requirement("claude:edit:no_similarity", "claude:edit:not_found")
def test_33_35_close_lines_are_shown_and_never_replaced(desk: Desk) -> None:
    before = b"func f() {\n\ty := 2\n}\n"
    desk.put("file.go", before)
    desk.read("file.go")

    drifted = desk.edit("file.go", "func f() {\n\ty := 99\n}", "x")
    blanks = desk.edit("file.go", "func f() {\n    y := 2\n}", "x")

    assert drifted.kind == blanks.kind == "not_found"
    assert "in file `\\ty := 2`, in old string `\\ty := 99`" in drifted.text
    assert "the file has tabs where you sent spaces" in blanks.text
    assert desk.get("file.go") == before


@requirement("claude:edit:not_found")
def test_34_an_edit_that_was_made_before_is_named(desk: Desk) -> None:
    desk.put("file.txt", "count = 1\n")
    desk.read("file.txt")
    assert desk.edit("file.txt", "count = 1", "total = 2").ok

    told = desk.edit("file.txt", "count = 1", "total = 2")

    assert told.error["details"]["already_applied"] is True
    assert "already there" in told.error["message"]


@requirement("claude:edit:not_found")
def test_21_23_a_final_newline_and_look_alikes_are_named(desk: Desk) -> None:
    desk.put("file.txt", "cafe\u0301 au lait")
    desk.read("file.txt")

    assert "U+0301" in desk.edit("file.txt", "café au lait", "tea").error["message"]
    assert "no line break" in desk.edit("file.txt", "au lait\n", "tea\n").error["message"]
    assert desk.edit("file.txt", "au lait", "noir").ok
    assert desk.get("file.txt") == "cafe\u0301 noir".encode()


@requirement("claude:edit:no_change")
def test_the_same_text_is_no_change(desk: Desk) -> None:
    told = desk.edit("nowhere.txt", "a", "a")

    assert told.kind == "no_change"


def test_an_empty_old_string_fills_an_empty_file_and_nothing_else(desk: Desk) -> None:
    desk.put("empty.txt", b"")
    desk.put("full.txt", b"text\n")
    desk.read("empty.txt")
    desk.read("full.txt")

    assert desk.edit("full.txt", "", "x").kind == "invalid_arguments"
    told = desk.edit("empty.txt", "", "one\ntwo\n")

    assert told.ok, told.text
    assert told.text.startswith(f"Edited {desk.path('empty.txt')}: 1 replacement.\n")
    assert desk.get("empty.txt") == b"one\ntwo\n"
    assert desk.edit("empty.txt", "two", "2").ok


def test_22_line_numbers_are_those_of_grep(desk: Desk) -> None:
    desk.put("file.txt", "a\x0cb\u2028c\u0085d\ne\nf\n")
    desk.read("file.txt")

    assert desk.edit("file.txt", "e\n", "E\n").data["lines"] == [2]


@requirement("claude:parameters:names")
def test_true_as_a_word_is_understood(desk: Desk) -> None:
    assert desk.edited("a a\n", "a", "b", replace_all="true") == b"b b\n"


@requirement("claude:refusal:shape")
def test_43_a_name_that_only_looks_the_same_is_found_when_there_is_one(desk: Desk) -> None:
    desk.put("Screenshot at 9.41\u202fAM.txt", "text\n")
    desk.read("Screenshot at 9.41 AM.txt")

    told = desk.edit("Screenshot at 9.41 AM.txt", "text", "other")

    assert told.data["filePath"] == desk.path("Screenshot at 9.41\u202fAM.txt")
    assert told.data["warnings"]
    assert desk.get("Screenshot at 9.41\u202fAM.txt") == b"other\n"
    desk.put("Screenshot at 9.41\u00a0AM.txt", "second\n")
    two = desk.edit("Screenshot at 9.41 AM.txt", "other", "x")
    assert two.kind == "file_not_found"
    assert len(two.error["details"]["look_alikes"]) == 2


def test_43_a_new_file_does_not_take_a_name_that_looks_like_that_of_another(desk: Desk) -> None:
    desk.put("Screenshot at 9.41\u202fAM.txt", "text\n")

    assert desk.write("Screenshot at 9.41 AM.txt", "other\n").kind == "not_read"
    desk.read("Screenshot at 9.41 AM.txt")
    assert desk.write("Screenshot at 9.41 AM.txt", "other\n").data["type"] == "update"
    assert not desk.file("Screenshot at 9.41 AM.txt").exists()


@requirement("claude:refusal:shape")
def test_a_missing_file_is_refused_with_near_names(desk: Desk) -> None:
    desk.put("settings.toml", "a = 1\n")

    told = desk.edit("setings.toml", "a", "b")

    assert told.kind == "file_not_found"
    assert told.error["details"]["near_names"] == ["settings.toml"]
