from pathlib import Path

from front.mcp.client import StdioClient, surehold
from front.shell import Shell
from spec.marks import requirement
from surehold.dialects.anchored.edit import edit
from surehold.dialects.anchored.wire import BRIEF, GUIDE
from surehold.library.families import tools_of
from surehold.tools.export import build_guidance


@requirement("anchored:guidance:freshness")
def test_edits_follow_reading_at_once_one_file_after_the_other() -> None:
    assert "in the same response turn or the next one" in GUIDE
    assert "Finish one file (read, edit) before you read anchors of another." in GUIDE


@requirement("anchored:guidance:selection")
def test_distinctive_lines_are_preferred_and_ranges_go_around_repeated_ones() -> None:
    assert "prefer lines with unique, distinctive content" in GUIDE
    assert "Avoid empty lines, closing braces and repeated boilerplate" in GUIDE
    assert "replace_range between two distinctive lines" in GUIDE
    assert "occurrence (from 1) and line" in GUIDE


@requirement("anchored:guidance:operations")
def test_a_table_maps_situations_to_operations() -> None:
    rows = [row for row in GUIDE.splitlines() if row.startswith("|")]

    assert len(rows) == 8
    for word in ("replace_line", "replace_range", "insert_after, insert_before", "delete_line", "delete_range"):
        assert any(row.endswith(f"| {word} |") for row in rows), word


@requirement("anchored:guidance:multi_file")
def test_files_are_edited_one_after_the_other_in_one_call_each() -> None:
    assert "read A, edit A, read B, edit B" in GUIDE
    assert "in one call: they are atomic and address the same snapshot" in " ".join(GUIDE.split())


@requirement("anchored:guidance:parameters")
def test_the_fields_of_each_operation_are_named() -> None:
    text = " ".join(GUIDE.split())

    assert "`file_path` is deprecated and will be rejected" in text
    assert "insert_before take `hash`; replace_range and delete_range take `start_hash` and `end_hash`" in text


@requirement("anchored:guidance:identity")
def test_the_number_is_advisory_and_the_hash_is_the_identity() -> None:
    text = " ".join(GUIDE.split())

    assert "the line number is advisory (a position in that snapshot) only" in text
    assert "the hash is the authoritative identity of the line" in text
    assert "advisory" in edit.description


@requirement("anchored:guidance:places", "front:cli:prompt")
def test_the_guidance_stands_where_models_look(tmp_path: Path, shell: Shell) -> None:
    with StdioClient(surehold("mcp", tmp_path, "--state-dir", tmp_path.with_name("state"))) as client:
        instructions = client.opening["instructions"]
        prompt = client.request("prompts/get", {"name": "surehold"})["messages"][0]["content"]["text"]

    assert BRIEF in instructions
    assert GUIDE in prompt
    assert GUIDE in shell("prompt").out
    assert shell.json("prompt")["prompt"] == build_guidance(tools_of())
    for word in ("distinctive", "one file completely after the other", "start_hash", "advisory", "fresh anchors"):
        assert word in edit.description


@requirement("anchored:guidance:lean")
def test_the_lean_form_says_the_same_in_a_third(shell: Shell) -> None:
    assert len(BRIEF) <= len(GUIDE) / 3
    for word in ("advisory", "identity", "right after", "one file after the other", "one call", "distinctive", "hash"):
        assert word in BRIEF
    assert BRIEF in shell("prompt", "--lean").out
