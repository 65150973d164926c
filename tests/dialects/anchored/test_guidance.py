"""What a model is told about `edit`: in the description that every host shows, and in the long form."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from front.mcp.client import StdioClient, surehold
from front.shell import Shell
from spec.marks import requirement
from surehold.dialects.anchored.wire import GUIDE
from surehold.library.families import tools_of
from surehold.tools.export import build_guidance

MAX_DESCRIPTION_CHARS = 2_000
"""One host cuts descriptions there."""
MAX_LISTED_CHARS = 16_000
"""4,000 tokens for all default tools, at four characters each."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StdioClient]:
    folder = tmp_path_factory.mktemp("guided")
    with StdioClient(surehold("mcp", folder, "--state-dir", folder.with_name("state"))) as client:
        yield client


@pytest.fixture(scope="module")
def description(served: StdioClient) -> str:
    """What `tools/list` says about `edit`, in one line."""
    return " ".join(description_from(served).split())


def description_from(client: StdioClient) -> str:
    (entry,) = (tool for tool in client.request("tools/list")["tools"] if tool["name"] == "edit")
    return str(entry["description"])


@requirement("anchored:guidance:freshness")
def test_edits_follow_reading_at_once_one_file_after_the_other(description: str) -> None:
    assert "edit that file in the same response turn or the next one" in description
    assert "Do not read A, then B, and edit A later: its anchors would be stale" in description
    assert "Process one file completely before you read anchors of another" in description
    assert "in the same response turn or the next one" in GUIDE
    assert "Finish one file (read, edit) before you read anchors of another." in GUIDE


@requirement("anchored:guidance:selection")
def test_distinctive_lines_are_preferred_and_ranges_go_around_repeated_ones(description: str) -> None:
    assert "prefer unique, distinctive content" in description
    assert "avoid empty lines, closing braces, boilerplate (`display: flex;`, `</div>`)" in description
    assert "use replace_range between two distinctive lines: both ends must be unique" in description
    assert "occurrence (from 1) together with line" in description
    assert "prefer lines with unique, distinctive content" in GUIDE
    assert "Avoid empty lines, closing braces and repeated boilerplate" in GUIDE
    assert "occurrence (from 1) and line together" in GUIDE


@requirement("anchored:guidance:operations")
@pytest.mark.parametrize("where", ["description", "guide"])
def test_a_table_maps_situations_to_operations(served: StdioClient, where: str) -> None:
    text = description_from(served) if where == "description" else GUIDE
    rows = [row for row in text.splitlines() if row.startswith("|")]

    assert len(rows) == 8
    for word in ("replace_line", "replace_range", "insert_after, insert_before", "delete_line", "delete_range"):
        assert any(row.split("|")[2].strip().startswith(word) for row in rows), word
    assert re.search(r"repeats \(empty, `}`, boilerplate\) \| replace_range around it", text)


@requirement("anchored:guidance:multi_file")
def test_files_are_edited_one_after_the_other_in_one_call_each(description: str) -> None:
    assert "read A, edit A, read B, edit B" in description
    assert "all operations on a file in one call" in description
    assert "The operations of one call are atomic, against the same snapshot" in description
    assert "read A, edit A, read B, edit B" in GUIDE
    assert "in one call: they are atomic and address the same snapshot" in " ".join(GUIDE.split())


@requirement("anchored:guidance:parameters")
def test_the_fields_of_each_operation_are_named(description: str) -> None:
    text = " ".join(GUIDE.split())

    assert "`path` names the file; `file_path` is deprecated and will be rejected" in description
    assert "replace_line, delete_line, insert_after, insert_before take hash;" in description
    assert "replace_range, delete_range take start_hash, end_hash; mixing is refused" in description
    assert "such as start_hash with a replace_line" in description
    assert "`file_path` is deprecated and will be rejected" in text
    assert "insert_before take `hash`; replace_range and delete_range take `start_hash` and `end_hash`" in text
    assert "Mixing them, such as `start_hash` with a replace_line, is refused" in text


@requirement("anchored:guidance:identity")
def test_the_number_is_advisory_and_the_hash_is_the_identity(description: str) -> None:
    text = " ".join(GUIDE.split())

    assert "The number is advisory (a snapshot position), the hash is the authoritative identity" in description
    assert "the line number is advisory (a position in that snapshot) only" in text
    assert "the hash is the authoritative identity of the line" in text


@requirement("anchored:guidance:places", "front:cli:prompt")
def test_the_guidance_is_where_models_look(served: StdioClient, shell: Shell) -> None:
    prompt = served.request("prompts/get", {"name": "surehold"})["messages"][0]["content"]["text"]
    listed = served.request("tools/list")["tools"]

    assert GUIDE in served.opening["instructions"]
    assert GUIDE in prompt
    assert GUIDE in shell("prompt").out
    assert shell.json("prompt")["prompt"] == build_guidance(tools_of())
    assert len(description_from(served)) <= MAX_DESCRIPTION_CHARS
    assert all(len(tool["description"]) <= MAX_DESCRIPTION_CHARS for tool in listed)
    assert len(json.dumps(listed, ensure_ascii=False, separators=(",", ":"))) <= MAX_LISTED_CHARS


@requirement("anchored:guidance:lean")
def test_the_lean_form_says_the_same_in_a_third(served: StdioClient, shell: Shell, tmp_path: Path) -> None:
    with StdioClient(surehold("mcp", tmp_path, "--lean", "--state-dir", tmp_path.with_name("lean"))) as client:
        lean, instructions = description_from(client), client.opening["instructions"]
    text = " ".join(lean.split())

    assert len(lean) <= len(description_from(served)) / 3
    for words in (
        "advisory (a snapshot position), the hash is the authoritative identity",
        "right after reading, one file after the other, all operations on a file in one call",
        "unique lines, not blanks, braces or boilerplate",
        "replace_range around them, or occurrence with line",
        "mixing is refused",
        "`file_path` is deprecated and will be rejected",
    ):
        assert words in text
    assert lean in instructions
    assert lean in shell("prompt", "--lean").out
