"""The seven test cases of the contract, each through the library and through both kinds of server."""

import subprocess
from pathlib import Path

from dialects.multi_edit.ways import Desk
from spec.marks import requirement
from surehold.library.families import tool_named

CONFIG = '[server]\nhost = "localhost"\nport = 8080\n\n[app]\ndebug = false\n'


@requirement(
    "multi_edit:case:tc1_multiple_edits",
    "multi_edit:result:shape",
    "multi_edit:result:line_ranges",
    "multi_edit:result:diff",
)
def test_tc1_multiple_edits_in_the_same_file(desk: Desk) -> None:
    desk.put("config.toml", CONFIG)

    reply = desk.multi_edit(
        "config.toml",
        ("port = 8080", "port = 3000"),
        ('host = "localhost"', 'host = "0.0.0.0"'),
        ("debug = false", "debug = true"),
    )

    assert reply.result == {
        "success": True,
        "diff": (
            "--- config.toml\n+++ config.toml\n@@ -1,6 +1,6 @@\n [server]\n"
            '-host = "localhost"\n-port = 8080\n+host = "0.0.0.0"\n+port = 3000\n \n [app]\n-debug = false\n+debug = true\n'
        ),
        "applied_count": 3,
        "line_ranges": [
            {"edit_index": 0, "start": 3, "end": 3},
            {"edit_index": 1, "start": 2, "end": 2},
            {"edit_index": 2, "start": 6, "end": 6},
        ],
    }
    assert desk.get("config.toml") == b'[server]\nhost = "0.0.0.0"\nport = 3000\n\n[app]\ndebug = true\n'


@requirement("multi_edit:result:diff")
def test_tc1_the_diff_is_one_that_patch_applies(desk: Desk, tmp_path: Path) -> None:
    desk.put("config.toml", CONFIG)
    (tmp_path / "config.toml").write_text(CONFIG)

    reply = desk.multi_edit("config.toml", ("port = 8080", "port = 3000\ntls = true"), ("debug = false\n", ""))

    subprocess.run(["patch", "-s", "-p0"], cwd=tmp_path, input=reply.result["diff"].encode(), check=True)
    assert (tmp_path / "config.toml").read_bytes() == desk.get("config.toml")


@requirement("multi_edit:case:tc2_sequential", "multi_edit:edit:staged")
def test_tc2_sequential_edits_see_what_the_ones_before_left(desk: Desk) -> None:
    desk.put("file.txt", "AAA")

    reply = desk.multi_edit("file.txt", ("AAA", "BBB"), ("BBB", "CCC"))

    assert (reply.result["success"], reply.result["applied_count"]) == (True, 2)
    assert reply.result["diff"].splitlines()[3:] == [
        "-AAA",
        "\\ No newline at end of file",
        "+CCC",
        "\\ No newline at end of file",
    ]
    assert desk.get("file.txt") == b"CCC"


@requirement("multi_edit:case:tc3_not_found", "multi_edit:edit:staged")
def test_tc3_a_string_that_is_not_found_in_edit_1_refuses_all_edits(desk: Desk) -> None:
    desk.put("file.txt", "line 1\nline 2\n")

    reply = desk.multi_edit("file.txt", ("line 1", "LINE 1"), ("line 3", "LINE 3"))

    assert reply.told == (-32010, "Edit 1: String not found: line 3")
    assert desk.get("file.txt") == b"line 1\nline 2\n"


@requirement("multi_edit:case:tc4_empty_edits")
def test_tc4_an_empty_array_is_refused(desk: Desk) -> None:
    desk.put("file.txt", "x")

    assert desk.multi_edit("file.txt").told == (-32600, "Edits array cannot be empty")


@requirement("multi_edit:case:tc5_duplicate")
def test_tc5_the_same_string_twice_is_not_found_the_second_time(desk: Desk) -> None:
    desk.put("file.txt", "foo")

    refused = desk.multi_edit("file.txt", ("foo", "bar"), ("foo", "baz"))

    assert refused.told == (-32010, "Edit 1: String not found: foo")
    assert refused.error["data"]["explanation"] == "Edit 1: edit 0 already replaced `foo`."
    assert desk.get("file.txt") == b"foo"


@requirement("multi_edit:case:tc6_hundred")
def test_tc6_a_hundred_edits_are_applied(desk: Desk) -> None:
    desk.put("file.txt", "".join(f"unique string {number:03d}\n" for number in range(100)))
    edits = [(f"unique string {number:03d}", f"changed {number:03d}") for number in range(100)]

    reply = desk.multi_edit("file.txt", *edits)

    assert (reply.result["success"], reply.result["applied_count"]) == (True, 100)
    assert reply.result["line_ranges"] == [
        {"edit_index": number, "start": number + 1, "end": number + 1} for number in range(100)
    ]
    assert desk.get("file.txt") == "".join(f"changed {number:03d}\n" for number in range(100)).encode()


@requirement("multi_edit:case:tc7_ambiguity", "multi_edit:edit:unique")
def test_tc7_an_edit_that_an_earlier_one_made_ambiguous_is_refused(desk: Desk) -> None:
    desk.put("file.txt", "A")

    assert desk.multi_edit("file.txt", ("A", "AA"), ("A", "B")).told == (-32011, "Edit 1: String appears 2 times: A")
    assert desk.get("file.txt") == b"A"


def test_the_schema_asks_for_what_the_contract_names_in_its_order() -> None:
    schema = tool_named("multi_edit_text_file").input_schema

    assert schema["required"] == ["path", "edits"]
    assert schema["properties"]["edits"]["items"]["required"] == ["old_string", "new_string"]
    assert list(schema["properties"]) == ["path", "edits", "expected_sha256", "dry_run", "reason"]
